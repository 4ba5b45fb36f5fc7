"""`pinfold pin`: what servers and files are pinned by."""

from __future__ import annotations

import json
import socket

import pytest
import yaml
from support.gateway import besides_open_hosts, run_pinfold
from support.origin import reply
from support.pki import without_readable_end
from support.wait import SLOWDOWN
from support.wire import request


def shown(*arguments) -> tuple[int, dict, str]:
    done = run_pinfold("pin", *map(str, arguments), "--json")
    line = done.stdout.strip()
    return done.returncode, json.loads(line) if line else {}, done.stderr


def serve(origin, certificate):
    return origin(lambda _: reply(b"genuine"), tls=certificate.server_context())


def test_a_trusted_server_is_shown_with_its_whole_chain(origin, pki):
    leaf = pki.intermediate.issue("localhost", "127.0.0.1")
    there = serve(origin, leaf)
    code, report, _ = shown(f"127.0.0.1:{there.port}", "--roots", pki.root.pem_file)
    assert code == 0
    assert report["verdict"] == "pass"
    members = [leaf, pki.intermediate, pki.root]
    assert [one["pin"] for one in report["chain"]] == [one.pin for one in members]
    assert [one["kind"] for one in report["chain"]] == [
        "server", "issuer", "trust anchor, not sent"]
    assert [one["fingerprint"].replace(":", "").lower() for one in report["chain"]] == [
        one.fingerprint.replace(":", "").lower() for one in members]
    assert report["pins"] == [leaf.pin, pki.intermediate.pin]
    assert report["chain"][0]["names"] == ["localhost", "127.0.0.1"]
    assert there.tls.names == [None] and there.application_bytes == b""


def test_a_certificate_without_a_readable_end_is_shown_nevertheless(pki, workspace):
    file = workspace / "endless.pem"
    file.write_text(without_readable_end(pki.intermediate.issue("localhost").certificate))
    done = run_pinfold("pin", str(file))
    assert done.returncode == 0 and "valid until: 0000-01-01" in done.stdout, done.stderr


@pytest.mark.parametrize(("kind", "reason"), [
    ("self-signed", "tls-self-signed"), ("unknown root", "tls-incomplete-chain"),
    ("another name", "tls-host-mismatch"), ("expired", "tls-certificate-expired")])
def test_a_refused_server_is_shown_nevertheless(origin, pki, kind, reason):
    leaf = {
        "self-signed": lambda: pki.self_signed("127.0.0.1"),
        "unknown root": lambda: pki.intermediate.issue("127.0.0.1"),
        "another name": lambda: pki.intermediate.issue("other.test"),
        "expired": lambda: pki.intermediate.issue("127.0.0.1", days=(-5, -1)),
    }[kind]()
    there = serve(origin, leaf)
    roots = [] if kind == "unknown root" else ["--roots", pki.root.pem_file]
    code, report, _ = shown(f"https://127.0.0.1:{there.port}/path", *roots)
    assert code == 0
    assert (report["verdict"], report["reason"]) == ("fail", reason)
    assert report["detail"]
    assert report["chain"][0]["pin"] == leaf.pin


def test_the_configuration_that_is_printed_pins_the_server(gateway, origin, pki, tmp_path):
    leaf = pki.intermediate.issue("127.0.0.1")
    there = serve(origin, leaf)
    done = run_pinfold("pin", f"127.0.0.1:{there.port}", "--roots", str(pki.root.pem_file))
    assert done.returncode == 0, done.stderr
    assert "verdict: trusted" in done.stdout
    printed = yaml.safe_load(done.stdout[done.stdout.index("hosts:"):])
    file = tmp_path / "pinned.yaml"
    file.write_text(done.stdout[done.stdout.index("# The server's own key"):])
    checked = run_pinfold("check", "--config", str(file))
    assert (checked.returncode, besides_open_hosts(checked.stderr)) == (0, "")
    # The entry shows what it was verified by, too.
    assert printed["hosts"][0]["tls"] == {"roots": [str(pki.root.pem_file)]}
    running = gateway(printed)
    answer = running.ask(request(f"http://127.0.0.1:{there.port}/", Connection="close"))
    assert (answer.status, answer.body) == (200, b"genuine")
    wrong = serve(origin, pki.root.issue("127.0.0.1"))
    answer = running.ask(request(f"http://127.0.0.1:{wrong.port}/", Connection="close"))
    assert answer.status == 502


def test_roots_that_were_named_by_a_relative_path_are_printed_by_an_absolute_one(
        origin, pki, workspace):
    there = serve(origin, pki.intermediate.issue("127.0.0.1"))
    (workspace / "corp.pem").write_bytes(pki.root.pem)
    done = run_pinfold("pin", f"127.0.0.1:{there.port}", "--roots", "system", "--roots", "corp.pem",
                       cwd=workspace)
    printed = yaml.safe_load(done.stdout[done.stdout.index("hosts:"):])
    assert printed["hosts"][0]["tls"] == {"roots": ["system", str(workspace / "corp.pem")]}
    plain = run_pinfold("pin", f"127.0.0.1:{there.port}")
    assert "roots:" not in plain.stdout


def test_files_are_shown_one_after_the_other(pki, tmp_path):
    leaf = pki.intermediate.issue("file.test")
    done = run_pinfold("pin", str(leaf.pem_file), str(pki.root.der_file))
    assert done.returncode == 0, done.stderr
    assert done.stdout.index(leaf.pin) < done.stdout.index(pki.root.pin)
    assert "verdict" not in done.stdout


def test_what_has_no_pins_is_an_error_and_the_rest_is_shown(pki, tmp_path):
    leaf = pki.intermediate.issue("file.test")
    (tmp_path / "bad.pem").write_text("hello")
    done = run_pinfold("pin", "missing.pem", "bad.pem", str(leaf.pem_file), cwd=tmp_path)
    assert done.returncode == 1
    assert leaf.pin in done.stdout
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert lines[0] == 'Error: "missing.pem" cannot be read: No such file or directory'
    assert lines[1].startswith("Error: bad.pem: ") and "not PEM" in lines[1]


@pytest.mark.parametrize("name", [
    "missing.pem", "missing.CRT", "./missing", "certificates/missing", "missing.der"])
def test_a_file_that_is_missing_is_not_taken_for_a_host(tmp_path, name):
    done = run_pinfold("pin", name, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f'Error: "{name}" cannot be read: No such file or directory\n'


@pytest.mark.parametrize("name", ["no-such-name.invalid", "missing.pem:443"])
def test_a_name_that_is_not_that_of_a_file_is_a_server(tmp_path, name):
    done = run_pinfold("pin", name, cwd=tmp_path)
    assert done.returncode == 1 and "cannot be resolved" in done.stderr


def test_what_is_neither_a_file_nor_a_server_is_told(tmp_path):
    done = run_pinfold("pin", "a b", cwd=tmp_path)
    assert done.returncode == 1 and "neither an existing file nor a server" in done.stderr


def test_a_port_without_a_listener_is_an_error(pki):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    code, _, error = shown(f"127.0.0.1:{port}")
    assert code == 1
    assert "Connection refused" in error


@pytest.mark.slow
def test_a_server_without_tls_is_an_error(scripted_origin, origin):
    there = origin(lambda _: reply(b"clear text"))
    code, _, error = shown(f"127.0.0.1:{there.port}")
    assert code == 1
    assert "sent no certificate" in error and error.count("\n") == 1


def test_a_silent_server_is_waited_for_only_so_long():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        done = run_pinfold(
            "pin", f"127.0.0.1:{listener.getsockname()[1]}", "--timeout", "1",
            timeout=20 * SLOWDOWN)
    assert done.returncode == 1
    assert "sent no certificate in time" in done.stderr


@pytest.mark.parametrize("arguments", [["pin"], ["pin", "--timeout", "0", "a"]])
def test_wrong_usage_is_an_error(arguments):
    assert run_pinfold(*arguments).returncode == 64
