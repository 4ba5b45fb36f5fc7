"""Start and stop; the command line; the output of `check`."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import threading
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from support.gateway import BINARY, ROOT, free_port, run_pinfold
from support.origin import reply, waiting
from support.wait import SLOWDOWN, until
from support.wire import Closed, Wire, request


# Start


def test_a_start_takes_little_work(gateway):
    """Of processor time: how long it takes besides is up to who else is busy."""
    assert min(gateway().cpu_seconds() for _ in range(3)) < 0.3 * SLOWDOWN


def test_it_is_ready_before_the_cache_has_been_read(gateway, origin):
    """Somebody else holds the database for as long as the gateway waits for it, which is 2 s."""
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: max-age=6000"))
    running = gateway()
    assert running.get(there.url("/")).status == 200
    running.stop()
    with closing(sqlite3.connect(running.folder / "cache/cache.sqlite",
                                 isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        running.start()
        running.wait_log("cache.*locked")
        lines = running.log().splitlines()
        given_up = next(i for i, line in enumerate(lines) if re.search("cache.*locked", line))
        assert len([line for line in lines[:given_up] if "listening" in line]) == 2


def test_the_addresses_are_logged(gateway):
    running = gateway()
    line = running.wait_log("listening.*|.*listening")
    assert "127.0.0.1" in line


def test_the_version_is_printed():
    done = run_pinfold("--version")
    assert done.returncode == 0
    assert re.search(r"\d+\.\d+\.\d+", done.stdout)


def test_the_help_names_the_commands():
    done = run_pinfold("--help")
    assert done.returncode == 0
    for word in ("run", "check"):
        assert word in done.stdout


def test_an_unknown_command_or_option_exits_with_64():
    for arguments in (["fly"], ["run", "--fly"], ["check", "--fly"]):
        assert run_pinfold(*arguments).returncode == 64, arguments


def test_an_address_in_use_is_a_clear_error(gateway):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        made = gateway({"listeners": [
            {"name": "proxy", "address": f"127.0.0.1:{port}", "kind": "forward"}]}, start=False)
        made.start(wait=False)
        assert made.wait_exit() == 1
        assert str(port) in made.log()
        assert "use" in made.log().lower()


def test_a_missing_configuration_file_is_a_clear_error(workspace):
    done = run_pinfold("run", "--config", str(workspace / "none.yaml"))
    assert done.returncode == 1
    assert "none.yaml" in done.stderr


def test_an_invalid_configuration_does_not_start(gateway):
    made = gateway({"workers": "many"}, start=False)
    made.start(wait=False)
    assert made.wait_exit() == 1
    assert re.search(r"pinfold\.yaml:\d+: workers: ", made.log())


def test_options_are_enough_without_a_file(workspace, origin):
    there = origin(lambda _: reply(b"by option"))
    with (workspace / "err").open("wb") as stderr:
        process = subprocess.Popen(
            [str(BINARY), "run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0",
             "--reverse", f"127.0.0.1:0=http://{there.authority}", "--workers", "1",
             "--allow-destination", "127.0.0.0/8", "--cache-path", str(workspace / "c")],
            stderr=stderr, cwd=workspace)
    try:
        def addresses() -> list[str]:
            found = re.findall(r"address=\"?(127\.0\.0\.1:\d+)", (workspace / "err").read_text())
            return found if len(found) >= 3 else []

        bodies = set()
        for address in until(addresses, "three listening lines"):
            host, port = address.split(":")
            with Wire((host, int(port))) as wire:
                bodies.add(wire.ask(request(there.url("/"))).body)
                with Wire((host, int(port))) as other:
                    bodies.add(other.ask("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").body)
        assert b"by option" in bodies
        assert (workspace / "c").is_dir()
    finally:
        process.terminate()
        assert process.wait(10) == 0


def test_the_cache_is_in_the_xdg_state_folder_by_default(workspace):
    done = run_pinfold("check", XDG_STATE_HOME=str(workspace / "state"))
    assert done.returncode == 0
    assert str(workspace / "state" / "pinfold") in done.stdout
    done = run_pinfold("check", XDG_STATE_HOME="", HOME=str(workspace))
    assert str(workspace / ".local/state/pinfold") in done.stdout


# Stop


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_with_exit_code_0(gateway, number):
    # With nothing in progress there is nothing to wait for.
    running = gateway({"timeouts": {"grace": "10m"}})
    running.signal(number)
    assert running.wait_exit() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_is_in_flight_is_finished_first(gateway, scripted_origin, number):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway()
    try:
        with running.wire(), running.wire() as wire:
            wire.send(request(there.url("/")))
            assert arrived.wait(10)
            running.signal(number)

            def refused() -> bool:
                try:
                    Wire(running.proxy, timeout=2).close()
                except ConnectionRefusedError:
                    return True
                except ConnectionResetError:
                    pass  # it stood in the queue of a listener that closed in this moment
                return False

            until(refused, "no new connections")
            assert running.process.poll() is None
            release.set()
            response = wire.read()
            assert response.body == b"late"
            assert response.get("connection").lower() == "close"
            assert wire.ended()
    finally:
        release.set()
    assert running.wait_exit() == 0


def test_idle_connections_do_not_delay_the_stop(gateway, origin):
    there = origin(lambda _: reply())
    running = gateway({"timeouts": {"grace": "1h", "idle": "1h", "head": "1h"}})
    wires = [running.wire() for _ in range(20)]
    for wire in wires[:10]:
        wire.ask(request(there.url("/")))
    running.signal(signal.SIGTERM)
    assert running.wait_exit(50) == 0
    for wire in wires:
        wire.close()


def test_the_grace_period_is_an_upper_bound(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway({"timeouts": {"grace": "500ms"}})
    try:
        with running.wire() as wire:
            wire.send(request(there.url("/")))
            assert arrived.wait(10)
            running.signal(signal.SIGTERM)
            assert running.wait_exit() == 0
            with pytest.raises(Closed):
                wire.read()
    finally:
        release.set()


def test_a_second_sigint_exits_at_once(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway({"timeouts": {"grace": "1h"}})
    try:
        with running.wire() as wire:
            wire.send(request(there.url("/")))
            assert arrived.wait(10)
            running.signal(signal.SIGINT)
            running.wait_log("(?i)grace|finish|drain|stopp|shutting")
            assert running.process.poll() is None
            running.signal(signal.SIGINT)
            assert running.wait_exit() is not None
            with pytest.raises((Closed, ConnectionError)):
                wire.read()  # the exchange was not waited for
    finally:
        release.set()


def test_readyz_answers_503_while_it_drains(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway()
    try:
        with running.wire() as wire:
            wire.send(request(there.url("/")))
            assert arrived.wait(10)
            running.signal(signal.SIGTERM)

            def says_no() -> bool:
                try:
                    return running.admin_get("/readyz").status == 503
                except (Closed, ConnectionResetError):  # it was idle when the draining began
                    return False

            until(says_no, "/readyz answers 503")
            assert running.admin_get("/healthz").status == 200
            release.set()
            wire.read()
    finally:
        release.set()
    assert running.wait_exit() == 0


def test_tunnels_end_with_the_grace_period(gateway, scripted_origin):
    there = scripted_origin(lambda connection: connection.read_to_end())
    running = gateway({"timeouts": {"grace": "300ms"}})
    wire, _ = running.connect(there.authority)
    with wire:
        running.signal(signal.SIGTERM)
        assert running.wait_exit() == 0
        assert wire.ended()


# check


def check(folder: Path, text: str, *arguments: str):
    (folder / "c.yaml").write_text(text)
    return run_pinfold("check", "--config", "c.yaml", *arguments, cwd=folder)


def test_check_prints_the_effective_configuration(workspace):
    done = check(workspace, "workers: 3\nlimits: { fields: 77 }\n")
    assert done.returncode == 0, done.stderr
    effective = yaml.safe_load(done.stdout)
    assert effective["workers"] == 3
    assert effective["limits"]["fields"] == 77
    assert effective["listeners"][0]["address"] == "127.0.0.1:8080"
    assert effective["admin"]["address"] == "127.0.0.1:9090"
    (workspace / "again.yaml").write_text(done.stdout)
    again = run_pinfold("check", "--config", "again.yaml", cwd=workspace)
    assert again.stdout == done.stdout, "what it prints is a configuration"


def test_check_without_a_file_prints_the_defaults():
    done = run_pinfold("check")
    assert done.returncode == 0
    assert yaml.safe_load(done.stdout)["cache"]["memory"] == "64MiB"


def test_the_commented_example_is_valid(workspace):
    done = run_pinfold("check", "--config", str(ROOT / "config/pinfold.yaml"), cwd=workspace)
    assert done.returncode == 0, done.stderr


def test_check_takes_the_options(workspace):
    done = check(workspace, "workers: 3\n", "--listen", "127.0.0.1:7777", "--workers", "1")
    effective = yaml.safe_load(done.stdout)
    assert effective["listeners"][0]["address"] == "127.0.0.1:7777"
    assert effective["workers"] == 1


@pytest.mark.parametrize(("text", "arguments", "words"), [
    ('admin: { address: "127.0.0.1:8080" }\n', [], ["c.yaml:1", "admin.address", "is used by"]),
    ("", ["--admin", "127.0.0.1:8080"], ["--admin: 127.0.0.1:8080 is used by"]),
    ("", ["--listen", "127.0.0.1:7", "--reverse", "127.0.0.1:7=http://a"],
     ["--reverse", "127.0.0.1:7", "is used by"]),
    ("", ["--reverse", "127.0.0.1:7=http://a", "--reverse", "127.0.0.1:7=http://b"],
     ["--reverse", "127.0.0.1:7", "is used by"]),
])
def test_two_listeners_do_not_share_an_address(workspace, text, arguments, words):
    done = check(workspace, text + "workers: 1\n", *arguments)
    assert done.returncode == 1
    (error,) = [one for one in done.stderr.splitlines() if one.strip()]
    assert all(word in error for word in words), error
    run = run_pinfold("run", "--config", "c.yaml", *arguments, cwd=workspace)
    assert run.returncode == 1


# text → what the line for it must say; lines count from 1.
WRONG = {
    "an unknown key": ("limits:\n  feilds: 3\n", 2, "feilds", "fields"),
    "an unknown section": ("limts: {}\n", 1, "limts", "limits"),
    "a wrong type": ("workers: [1]\n", 1, "workers", "expected"),
    "a number out of range": ("workers: 0\n", 1, "workers", "expected"),
    "a duration without a unit": ("timeouts: { head: 10 }\n", 1, "timeouts.head", "expected"),
    "a size that is none": ("cache: { memory: lots }\n", 1, "cache.memory", "expected"),
    "an address without a port":
        ("listeners:\n  - { name: a, address: 127.0.0.1, kind: forward }\n", 2, "address",
         "expected"),
    "an unknown kind":
        ("listeners:\n  - { name: a, address: 127.0.0.1:1, kind: sideways }\n", 2, "kind", "forward"),
    "a reverse listener without an upstream":
        ("listeners:\n  - { name: a, address: 127.0.0.1:1, kind: reverse }\n", 2, "upstream", ""),
    "an unknown pinset": ("hosts:\n  - match: [a.test]\n    pinsets: [none]\n", 3, "pinsets", "none"),
    "a malformed pin":
        ("pinsets:\n  p:\n    mode: publicKey\n    pins: [sha256/short]\n", 4, "pins", "expected"),
    "a pin file that is missing":
        ("pinsets:\n  p: { mode: certificate, pins: [none.pem] }\n", 2, "pins", "none.pem"),
    "a malformed host pattern": ("hosts:\n  - match: [a.*.test]\n", 2, "match", ""),
    "roots that are missing": ("tls: { roots: [none.pem] }\n", 1, "roots", "none.pem"),
    "a TLS version that is none": ('tls: { minimum: "1.1" }\n', 1, "minimum", "1.2"),
    "a client network that is none": ("access: { clients: [everyone] }\n", 1, "clients", "expected"),
    "no YAML": ("workers: [\n", 0, "", ""),
}


@pytest.mark.parametrize("name", WRONG)
def test_check_prints_where_what_and_what_was_expected(workspace, name):
    text, line, key, word = WRONG[name]
    done = check(workspace, text)
    assert done.returncode == 1
    (error,) = [one for one in done.stderr.splitlines() if one.strip()]
    match = re.match(r"Error: c\.yaml(?::(\d+))?: ", error)
    assert match, error
    if line:
        assert match[1] == str(line), error
    assert key in error
    assert word in error


def test_check_reports_every_error_on_a_line_of_its_own(workspace):
    done = check(workspace, "workers: x\nlimits: { feilds: 1, fields: -1 }\ncache: { disk: 1XB }\n")
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 4


@pytest.mark.parametrize("address", ["0.0.0.0:8080", "[::]:8080", "192.0.2.1:8080"])
def test_nothing_becomes_an_open_proxy_by_accident(workspace, address):
    text = f"listeners:\n  - {{ name: a, address: '{address}', kind: forward }}\n"
    done = check(workspace, text)
    assert done.returncode == 1
    assert "clients" in done.stderr
    assert check(workspace, text + "access: { clients: [192.0.2.0/24] }\n").returncode == 0
    assert run_pinfold("check", "--listen", address).returncode == 1


def test_check_needs_no_free_address(gateway):
    running = gateway({"listeners": [
        {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"}]})
    address = "%s:%d" % running.proxy
    assert run_pinfold("check", "--listen", address).returncode == 0


def test_the_exit_code_of_check_shows_whether_run_would_start(workspace):
    (workspace / "c.yaml").write_text("tls: { roots: [missing.pem] }\n")
    for command in ("check", "run"):
        done = run_pinfold(command, "--config", "c.yaml", cwd=workspace)
        assert done.returncode == 1
        assert "missing.pem" in done.stderr


def test_relative_paths_are_relative_to_the_configuration_file(workspace, pki):
    (workspace / "conf").mkdir()
    (workspace / "conf" / "r.pem").write_bytes(pki.root.pem)
    (workspace / "conf" / "c.yaml").write_text("tls: { roots: [r.pem] }\ncache: { path: here }\n")
    done = run_pinfold("check", "--config", "conf/c.yaml", cwd=workspace)
    assert done.returncode == 0, done.stderr
    effective = yaml.safe_load(done.stdout)
    assert Path(effective["cache"]["path"]) == workspace / "conf" / "here" or Path(
        effective["cache"]["path"]) == Path(os.path.realpath(workspace)) / "conf" / "here"


def test_a_successor_may_have_the_administrative_address_of_one_that_drains(gateway, origin):
    """A restart: the second one starts while the first one still finishes."""
    there = origin(lambda _: reply(b"x"))
    ports = {"admin": {"address": f"127.0.0.1:{free_port()}"},
             "listeners": [{"name": "proxy", "kind": "forward",
                            "address": f"127.0.0.1:{free_port()}"}],
             "timeouts": {"tunnelGrace": "60s"}}
    first = gateway(ports)
    tunnel, answer = first.connect(there.authority)
    assert answer.status == 200
    # One that does not drain keeps its address.
    refused = gateway(ports, start=False)
    refused.start(wait=False)
    assert refused.wait_exit() == 1
    first.signal(signal.SIGTERM)
    until(lambda: first.admin_get("/readyz").status == 503, "it drains")
    second = gateway(ports)
    # For a moment both answer.
    until(lambda: all(json.loads(second.admin_get("/api/v1/status").body)["pid"] == second.pid
                      for _ in range(20)), "only the second one answers")
    request = f"GET / HTTP/1.1\r\nHost: {there.authority}\r\n\r\n"
    assert tunnel.ask(request).status == 200
    tunnel.close()
    assert first.wait_exit() == 0
    assert second.admin_get("/readyz").status == 200


def test_a_connection_without_a_request_yet_is_served_at_the_end(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway({})
    wire = running.wire()
    # The other one is that which asks for the metric.
    until(lambda: running.metric("pinfold_client_connections_open") == 2, "it is accepted")
    running.signal(signal.SIGTERM)
    until(lambda: running.admin_get("/readyz").status == 503, "it drains")
    answer = wire.ask(f"GET http://{there.authority}/ HTTP/1.1\r\nHost: x\r\n\r\n")
    assert answer.status == 200
    assert answer.get("Connection").lower() == "close"
    assert running.wait_exit() == 0
