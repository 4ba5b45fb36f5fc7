"""`pinfold status` and `pinfold reload`."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import threading
from pathlib import Path

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from support.gateway import Gateway, free_port, run_pinfold
from support.origin import reply
from support.secure import tls_of
from support.wait import until
from support.wire import request


def address(running: Gateway) -> list[str]:
    return ["--admin", "%s:%d" % running.admin]


@pytest.fixture(params=["tcp", "unix"])
def named(request, gateway, workspace):
    """A gateway whose file names its address."""
    where = (f"127.0.0.1:{free_port()}" if request.param == "tcp"
             else f"unix:{workspace / 'admin.sock'}")
    return gateway({"admin": {"address": where}, "hosts": [{"match": ["a.test"]}]})


def test_the_state_is_printed_for_people(named):
    done = run_pinfold("status", "--config", str(named.config_file))
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert re.match(rf"ready \(Pinfold [\d.]+, revision \S+, process {named.pid}, running for ",
                    lines[0])
    assert f"{named.config_file}, number 1, loaded " in lines[1]
    assert lines[1].endswith(": 1 host entry, 0 pinsets")
    assert "listener       proxy (forward) on %s:%d" % named.proxy in lines
    assert any(line.startswith("listener       admin (admin) on ") for line in lines)
    assert any(line.startswith("in progress    0 client connections, 0 requests") for line in lines)
    assert any(line.endswith(f"in {named.folder / 'cache'}") for line in lines)


def test_json_is_the_answer_as_it_is(named):
    done = run_pinfold("status", "--json", "--config", str(named.config_file))
    assert done.returncode == 0
    assert json.loads(done.stdout)["pid"] == named.pid


def test_the_folder_of_the_file_is_that_of_its_paths(gateway, workspace):
    running = gateway({"admin": {"address": "unix:admin.sock"}})
    assert run_pinfold("status", "--config", "pinfold.yaml", cwd=running.folder).returncode == 0
    assert run_pinfold("status", "--config", str(running.config_file), cwd=workspace
                       ).returncode == 0
    assert run_pinfold("status", "--admin", "unix:admin.sock", cwd=running.folder).returncode == 0


def test_what_a_reload_has_changed_is_printed(named):
    named.config["hosts"] = []
    named.config["workers"] = 1
    named.write_config(named.config)
    done = run_pinfold("reload", "--config", str(named.config_file))
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "configuration reloaded: workers, hosts\nremoved from hosts: a.test\n"
        "workers: was 2, is 1\nhosts: a.test: removed; no entry applies now:\n"
        "  name was a.test, is default (in metrics and logs)\n")
    assert done.stderr == "Warning: workers: the change takes effect only after a restart\n"
    again = run_pinfold("reload", "--config", str(named.config_file))
    assert again.stdout == "configuration reloaded: nothing has changed\n"
    shown = run_pinfold("status", "--config", str(named.config_file)).stdout
    assert "last reload    applied " in shown


def test_a_refused_reload_fails_with_file_and_line(named):
    text = named.config_file.read_text()
    named.write_config(text + "limits: { connections: many }\nwrong: 1\n")
    count = len(text.splitlines())
    done = run_pinfold("reload", "--config", str(named.config_file))
    assert done.returncode == 1
    assert done.stdout == ""
    errors = done.stderr.splitlines()
    assert errors[0].startswith(
        f"Error: {named.config_file}:{count + 1}: limits.connections: \"many\" is not valid")
    assert errors[1].startswith(f"Error: {named.config_file}:{count + 2}: wrong: unknown key")
    assert errors == run_pinfold("check", "--config", str(named.config_file)).stderr.splitlines()
    shown = run_pinfold("status", "--config", str(named.config_file))
    assert shown.returncode == 0
    assert "last reload    refused " in shown.stdout
    assert f"error          {named.config_file}:{count + 2}: wrong: unknown key" in shown.stdout


def test_warnings_of_a_reload_are_printed(named):
    named.config["pinsets"] = {"idle": {"mode": "publicKey", "pins": [
        "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
        "sha256/AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]}}
    named.write_config(named.config)
    done = run_pinfold("reload", "--config", str(named.config_file))
    assert done.returncode == 0
    assert done.stdout.startswith(
        "configuration reloaded: pinsets\npinsets: idle: added; no entry of hosts uses it; ")
    assert done.stderr.startswith(f"Warning: {named.config_file}:")
    assert "idle" in done.stderr


def test_a_gateway_that_is_ending_is_not_ready(gateway, origin):
    go = threading.Event()
    there = origin(lambda _: go.wait(20) and reply(b"done"))
    running = gateway({"timeouts": {"grace": "20s"}})
    wire = running.wire()
    wire.send(request(there.url("/")))
    until(lambda: "1 client connection, 1 request," in run_pinfold(
        "status", *address(running)).stdout, "a request")
    running.signal(signal.SIGTERM)
    until(lambda: running.admin_get("/readyz").status == 503, "draining")
    done = until(lambda: done if "accepts no connections" in (
        done := run_pinfold("status", *address(running))).stdout else None, "listeners closed")
    assert done.returncode == 1
    assert done.stdout.startswith("draining: no new connections are accepted (")
    assert "in progress    1 client connection, 1 request," in done.stdout
    assert re.search(r"^draining       since \S+, until \S+ at the latest$", done.stdout, re.M)
    refused = run_pinfold("reload", *address(running))
    assert refused.returncode == 2
    assert "shutting down" in refused.stderr
    go.set()
    assert wire.read().status == 200
    assert running.wait_exit() == 0


# No answer


def no_answer(*arguments: str) -> str:
    for command in ("status", "reload"):
        done = run_pinfold(command, *arguments)
        assert done.returncode == 2, (command, done)
        assert done.stdout == ""
        assert done.stderr.startswith("Error: ")
    return done.stderr


def test_nobody_there(workspace):
    port = free_port()
    assert f"127.0.0.1:{port}" in no_answer("--admin", f"127.0.0.1:{port}")
    path = workspace / "a.sock"
    assert "No such file" in no_answer("--admin", f"unix:{path}")
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    assert "nothing listens there" in no_answer("--admin", f"unix:{path}")
    assert "longer than" in no_answer("--admin", f"unix:/{'x' * 200}")


def test_files_that_name_no_gateway(workspace):
    assert "cannot be read" in no_answer("--config", str(workspace / "none.yaml"))
    broken = workspace / "broken.yaml"
    broken.write_text("admin: { address: [1\n")
    assert f"{broken}:" in no_answer("--config", str(broken))
    wrong = workspace / "wrong.yaml"
    wrong.write_text("workers: 1\nadmin: { address: nowhere }\n")
    assert f"{wrong}:2: admin.address: " in no_answer("--config", str(wrong))
    chosen = workspace / "chosen.yaml"
    chosen.write_text("admin: { address: '127.0.0.1:0' }\n")
    assert "--admin" in no_answer("--config", str(chosen))
    assert "--admin nonsense" in no_answer("--admin", "nonsense")


def test_an_invalid_command_line_is_64():
    for arguments in (["--timeout", "0"], ["--key", "a"], ["--nonsense"], ["more"]):
        assert run_pinfold("status", *arguments).returncode == 64


@pytest.mark.parametrize("kind", ["silent", "closes", "talks"])
@pytest.mark.parametrize("family", ["unix", "tcp"])
def test_something_else_that_listens(workspace, kind, family):
    if family == "unix":
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(workspace / "odd.sock"))
        where = f"unix:{workspace / 'odd.sock'}"
    else:
        listener = socket.create_server(("127.0.0.1", 0))
        where = "127.0.0.1:%d" % listener.getsockname()[1]
    listener.listen(8)
    held = []

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            if kind == "talks":
                client.sendall(b"220 mail.example ESMTP\r\n")
            if kind == "silent":
                held.append(client)
            else:
                client.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        no_answer("--admin", where, "--timeout", "1")
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        for client in held:
            client.close()


def test_an_http_server_that_is_no_gateway(origin):
    there = origin(lambda _: reply(b"<html>", "200 OK"))
    assert "status 200" in no_answer("--admin", there.authority)


# Who may


def test_the_token_is_taken_from_the_file(gateway, tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret-token\n")
    token.chmod(0o600)
    running = gateway({"admin": {"address": f"127.0.0.1:{free_port()}", "tokenFile": str(token)}})
    assert run_pinfold("status", "--config", str(running.config_file)).returncode == 0
    assert run_pinfold("reload", "--config", str(running.config_file)).returncode == 0
    assert "requires the token" in no_answer(*address(running))
    assert run_pinfold("status", *address(running), "--token-file", str(token)).returncode == 0
    other = tmp_path / "other"
    other.write_text("wrong")
    assert "requires the token" in no_answer(*address(running), "--token-file", str(other))
    assert "cannot be read" in no_answer(*address(running), "--token-file", str(tmp_path / "no"))


def test_tls_is_spoken_with_who_has_the_configured_key(gateway, pki, tmp_path):
    server = pki.root.issue("some-name.test")
    operator = pki.root.issue("operator", usage=ExtendedKeyUsageOID.CLIENT_AUTH)
    port = free_port()
    running = gateway({"admin": {"address": f"127.0.0.1:{port}", "tls": tls_of(
        server, clientRoots=[str(pki.root.pem_file)])}}, start=False)
    running.start(wait=False)
    running.wait_log("listening.*listener=admin")
    config = ["--config", str(running.config_file)]
    shown = ["--cert", str(operator.chain_file()), "--key", str(operator.key_file)]
    assert run_pinfold("status", *config, *shown).returncode == 0
    assert run_pinfold("reload", *config, *shown).returncode == 0
    no_answer(*config)
    # By name, as everywhere.
    trusted = ["--cacert", str(pki.root.pem_file), *shown]
    assert run_pinfold("status", "--admin", f"https://127.0.0.1:{port}", *trusted).returncode == 2
    named = pki.root.issue("some-name.test", "127.0.0.1")
    running.config["admin"]["tls"] |= tls_of(named)
    running.write_config(running.config)
    # The file already names the next certificate, and the gateway still has the former one.
    assert run_pinfold("reload", *config, *shown).returncode == 2
    running.signal(signal.SIGHUP)
    running.wait_log("configuration reloaded.*generation=3")
    assert run_pinfold("status", "--admin", f"https://127.0.0.1:{port}", *trusted).returncode == 0
    assert run_pinfold("status", "--admin", f"https://127.0.0.1:{port}", *shown).returncode == 2
    assert run_pinfold("status", *config, *shown).returncode == 0


def test_proxies_in_the_environment_are_not_asked(gateway, origin):
    asked = origin(lambda _: reply(b"", "502 Bad Gateway"))
    running = gateway()
    proxies = {"http_proxy": asked.url("/"), "all_proxy": asked.url("/"), "no_proxy": ""}
    assert run_pinfold("status", *address(running), **proxies).returncode == 0
    assert asked.accepted == 0
