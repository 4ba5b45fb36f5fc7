"""Reload: what a SIGHUP changes, and what goes on undisturbed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest
from support.gateway import Gateway, free_port
from support.origin import reply, waiting
from support.wait import until
from support.wire import Closed, Wire, request


def reload(running: Gateway, config: dict | None = None) -> None:
    """Reloads, with `config` on top of what is in force, and waits until it is done."""
    if config is not None:
        running.config = {**running.config, **config}
        running.write_config(running.config)
    generation = running.metric("pinfold_config_generation")
    running.signal(signal.SIGHUP)
    until(lambda: running.metric("pinfold_config_generation") > generation,
          lambda: f"reloaded:\n{running.log()}")



def test_a_reload_takes_over_a_valid_configuration(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway()
    assert running.get(there.url("/")).status == 200
    running.write_config({**running.config, "access": {
        **running.config["access"], "destinations": {"allow": []}}})
    running.signal(signal.SIGHUP)
    until(lambda: running.get(there.url("/")).status == 403, "the new configuration applies")
    assert running.metric("pinfold_config_generation") == 2
    assert running.metric("pinfold_config_last_reload_successful") == 1


def test_an_invalid_configuration_is_reported_and_the_old_one_stays(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway()
    running.write_config({**running.config, "limits": {"feilds": 3}})
    running.signal(signal.SIGHUP)
    line = running.wait_log("feilds")
    assert "fields" in line, "the nearest known key is suggested"
    assert running.get(there.url("/")).status == 200
    assert running.metric("pinfold_config_generation") == 1
    assert running.metric("pinfold_config_last_reload_successful") == 0


def test_connections_survive_a_reload(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway()
    with running.wire() as wire, running.wire() as idle:
        release.set()
        assert idle.ask(request(there.url("/"))).body == b"late"
        release.clear()
        arrived.clear()
        wire.send(request(there.url("/")))
        assert arrived.wait(10)
        running.signal(signal.SIGHUP)
        until(lambda: running.metric("pinfold_config_generation") == 2, "reloaded")
        release.set()
        assert wire.read().body == b"late"
        assert idle.ask(request(there.url("/"))).body == b"late"


def test_many_reloads_under_traffic_lose_nothing(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: max-age=60"))
    running = gateway()
    stop, problems, done = threading.Event(), [], [0]

    def work() -> None:
        try:
            with running.wire() as wire:
                while not stop.is_set():
                    assert wire.ask(request(there.url(f"/{done[0] % 7}"))).status == 200
                    done[0] += 1
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for generation in range(2, 22):
            running.signal(signal.SIGHUP)
            until(lambda g=generation: running.metric("pinfold_config_generation") >= g, "reloaded")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not problems, problems[0]
    assert done[0] > 0


def test_descriptors_and_threads_do_not_grow(gateway, origin):
    there = origin(lambda _: reply())
    running = gateway()

    def round_() -> None:
        for _ in range(20):
            running.get(there.url("/"))
        running.signal(signal.SIGHUP)
        wire, _ = running.connect(there.authority)
        wire.close()

    round_()
    until(lambda: running.metric("pinfold_client_connections_open") <= 1, "all closed")
    before, threads = running.descriptors, running.status("Threads")
    for _ in range(10):
        round_()
    until(lambda: running.descriptors <= before + 8, f"descriptors come back to about {before}")
    assert running.status("Threads") <= threads


# Upstream connections


HOST = "kept.test"


def pinned(port: int, roots: list[str], pin: str, **limits: int) -> dict:
    return {"workers": 1, "limits": limits, "cache": {"enabled": False},
            "hosts": [{"match": [f"{HOST}:{port}"], "upgrade": "https", "pinsets": ["p"],
                       "tls": {"roots": roots}}],
            "pinsets": {"p": {"mode": "publicKey", "pins": [pin]}}}


@pytest.mark.parametrize("change", [{}, {"timeouts": {"idle": "50s"}}, {"limits": {"fields": 128}}])
def test_upstream_connections_survive_a_reload_that_changes_nothing_for_them(
    gateway, origin, change
):
    there = origin(lambda _: reply(b"x"))
    running = gateway({"workers": 1, "cache": {"enabled": False}})
    for _ in range(3):
        assert running.get(there.url("/")).status == 200
        reload(running, change)
    assert running.get(there.url("/")).status == 200
    assert there.accepted == 1
    assert running.metric("pinfold_upstream_connections_outdated_total") == 0


@pytest.mark.parametrize("change", [
    {"access": {"clients": ["127.0.0.0/8"], "connectPorts": "any",
                "destinations": {"allow": ["127.0.0.1/32"]}}},
    {"limits": {"headBytes": "8KiB"}}])
def test_upstream_connections_end_with_what_they_depend_on(gateway, origin, change):
    there = origin(lambda _: reply(b"x"))
    running = gateway({"workers": 1, "cache": {"enabled": False}})
    assert running.get(there.url("/")).status == 200
    reload(running, change)
    there.wait_finished()
    assert running.get(there.url("/")).status == 200
    assert there.accepted == 2
    assert running.metric("pinfold_upstream_connections_outdated_total") == 1


@pytest.mark.parametrize("change", ["nothing", "pins", "roots", "the content of a roots file"])
def test_pinned_connections_survive_only_the_same_policy(
    gateway, origin, pki, workspace, change
):
    leaf = pki.root.issue(HOST)
    there = origin(lambda _: reply(b"x"), tls=leaf.server_context())
    roots = workspace / "roots.pem"
    roots.write_bytes(pki.root.pem)
    running = gateway(pinned(there.port, [str(roots)], leaf.pin))
    url = f"http://{HOST}:{there.port}/"
    assert running.get(url).status == 200
    if change == "pins":
        config = pinned(there.port, [str(roots)], leaf.pin)
        config["pinsets"]["p"]["pins"].append("sha256/" + "A" * 43 + "=")
    elif change == "roots":
        config = pinned(there.port, [str(roots), str(pki.other_root.pem_file)], leaf.pin)
    else:
        config = {}
        if change != "nothing":
            roots.write_bytes(pki.root.pem + pki.other_root.pem)
    reload(running, config)
    if change != "nothing":
        there.wait_finished()
    assert running.get(url).status == 200
    assert there.accepted == (1 if change == "nothing" else 2)


def test_tls_sessions_survive_a_reload_that_changes_nothing_for_them(gateway, origin, pki):
    leaf = pki.root.issue(HOST)
    there = origin(lambda _: reply(b"x", "200 OK", "Connection: close"),
                   tls=leaf.server_context())
    running = gateway(pinned(there.port, [str(pki.root.pem_file)], leaf.pin))
    url = f"http://{HOST}:{there.port}/"
    assert running.get(url).status == 200
    reload(running)
    assert running.get(url).status == 200
    assert running.metric("pinfold_tls_handshakes_total", resumed="true") == 1


def test_an_update_of_the_systems_roots_is_taken_up(gateway, origin, pki, workspace):
    leaf = pki.root.issue(HOST)
    there = origin(lambda _: reply(b"x"), tls=leaf.server_context())
    bundle = workspace / "system.pem"
    bundle.write_bytes(pki.other_root.pem)
    running = gateway(pinned(there.port, ["system"], leaf.pin), start=False)
    running.environment = {"SSL_CERT_FILE": str(bundle), "SSL_CERT_DIR": str(workspace / "none")}
    running.start()
    url = f"http://{HOST}:{there.port}/"
    assert running.get(url).status == 502
    bundle.write_bytes(pki.other_root.pem + pki.root.pem)
    reload(running)
    assert running.get(url).status == 200


def test_who_waits_for_a_connection_gets_it_under_a_raised_limit(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway({"workers": 1, "limits": {"upstreamPerHost": 1}, "cache": {"enabled": False}})
    wires = [running.wire() for _ in range(3)]
    try:
        for wire in wires:
            wire.send(request(there.url("/")))
        until(lambda: running.metric("pinfold_upstream_pool_waiting") == 2, "two wait")
        reload(running, {"limits": {"upstreamPerHost": 3}})
        until(lambda: there.accepted == 3, "a connection for each")
        release.set()
        assert [wire.read().body for wire in wires] == [b"late"] * 3
    finally:
        release.set()
        for wire in wires:
            wire.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_who_waits_for_a_connection_while_the_policy_changes_gets_the_next_place(
        gateway, scripted_origin, workers):
    """The connection under the old policy ends with its exchange, and others wait for its place."""
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway(
        {"workers": workers, "limits": {"upstreamPerHost": 1}, "cache": {"enabled": False}})
    wires = [running.wire() for _ in range(4)]
    try:
        for wire in wires:
            wire.send(request(there.url("/")))
        until(lambda: running.metric("pinfold_upstream_pool_waiting") == 3, "the others wait")
        reload(running, {"hosts": [{"match": ["new.test"]}]})
        release.set()
        assert [wire.read().body for wire in wires] == [b"late"] * 4
    finally:
        release.set()
        for wire in wires:
            wire.close()


# Listeners


def listening(address: str) -> dict:
    return {"listeners": [{"name": "proxy", "address": address, "kind": "forward"}]}


@pytest.mark.parametrize(("before", "after"), [
    ("127.0.0.1", "0.0.0.0"), ("0.0.0.0", "127.0.0.1"), ("[::1]", "[::]"),
    ("127.0.0.1", "127.0.0.2")])
def test_a_listener_moves_to_another_address_on_its_port(gateway, origin, before, after):
    there = origin(lambda _: reply(b"x"))
    port = free_port()
    running = gateway(listening(f"{before}:{port}"))
    assert running.get(there.url("/")).status == 200
    reload(running, listening(f"{after}:{port}"))
    host = {"0.0.0.0": "127.0.0.3", "[::]": "::1"}.get(after, after)

    def served() -> bool:
        try:
            with Wire((host, port), timeout=5) as wire:
                return wire.ask(request(there.url("/"))).status == 200
        except (Closed, ConnectionError):
            return False

    until(served, f"it listens on {after}")


def test_a_reload_logs_the_listeners_that_are_new(gateway):
    running = gateway()
    reload(running, {"timeouts": {"idle": "59s"}})
    assert running.log().count("listening") == 2, running.log()
    more = {"name": "more", "address": "127.0.0.1:0", "kind": "forward"}
    reload(running, {"listeners": [*running.config["listeners"], more]})
    running.wait_log("listening.*more|more.*listening")
    assert running.log().count("listening") == 3, running.log()
    # One that has been away is new again.
    reload(running, {"listeners": running.config["listeners"][:1]})
    reload(running, {"listeners": [*running.config["listeners"], more]})
    assert running.log().count("listening") == 4, running.log()


FOREIGN = """
import socket, sys
held = socket.socket()
held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
held.bind((sys.argv[1], int(sys.argv[2])))
held.listen()
print("listening", flush=True)
sys.stdin.read()
"""


def test_a_port_that_another_process_shares_is_refused(gateway, origin):
    """Also if its socket would let us: SO_REUSEPORT, the same user."""
    there = origin(lambda _: reply(b"x"))
    port = free_port()
    running = gateway(listening(f"127.0.0.1:{port}"))
    other = subprocess.Popen(
        [sys.executable, "-c", FOREIGN, "127.0.0.2", str(port)], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"listening\n"
        running.write_config({**running.config, **listening(f"0.0.0.0:{port}")})
        running.signal(signal.SIGHUP)
        line = running.wait_log("not reloaded")
        assert str(port) in line and "use" in line
        assert running.get(there.url("/")).status == 200
        assert running.metric("pinfold_config_generation") == 1
    finally:
        other.communicate()
    reload(running, listening(f"0.0.0.0:{port}"))
