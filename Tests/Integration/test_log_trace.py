"""The operational log at level trace: what happens to the connections to servers."""

from __future__ import annotations

import json
import re
import signal
import ssl
import threading

import pytest
from support.gateway import Gateway, merged
from support.origin import OriginConnection, reply, waiting
from support.wait import until
from support.wire import request

HOST = "api.traced.test"
EMPTY_PIN = "sha256/" + "A" * 43 + "="


def fields(line: str) -> dict[str, str]:
    """The values of a line of the operational log, by key."""
    return {found[1]: found[2] if found[3] is None else json.loads(found[2])
            for found in re.finditer(r' (\w+)=("((?:[^"\\]|\\.)*)"|\S+)', line)}


def events(running: Gateway, event: str) -> list[dict[str, str]]:
    """The lines of an event at level trace."""
    return [fields(line) for line in running.log().splitlines()
            if re.match(rf"\S+ trace {event}( \w+=|$)", line)]


def wait_event(running: Gateway, event: str, count: int = 1, **expected: str) -> dict[str, str]:
    """Waits for the event that has these fields, by its number, and returns all its fields."""

    def found() -> list[dict[str, str]]:
        return [one for one in events(running, event) if expected.items() <= one.items()]

    until(lambda: len(found()) >= count, lambda: f"{count} × {event} {expected}:\n{running.log()}")
    return found()[count - 1]


# Handshakes


def traced_tls(port: int, roots, **over) -> dict:
    """Clear-text requests for HOST go out as TLS, and everything of connections is logged."""
    entry = {"match": [f"{HOST}:{port}"], "upgrade": "https",
             "tls": {"roots": [str(roots.pem_file)]}}
    return merged({"workers": 1, "log": {"level": "trace"}, "cache": {"enabled": False},
                   "hosts": [entry]}, over)


def test_at_level_trace_a_handshake_is_logged(gateway, scripted_origin, pki):
    leaf = pki.root.issue(HOST)
    ciphers = []

    def script(connection: OriginConnection) -> None:
        ciphers.append(connection.socket.cipher()[0])
        connection.read_request()
        connection.send(reply(b"x", "200 OK", "Connection: close"))

    there = scripted_origin(script, tls=leaf.server_context())
    config = traced_tls(
        there.port, pki.root, pinsets={"wanted": {"mode": "publicKey", "pins": [leaf.pin]}})
    config["hosts"][0]["pinsets"] = ["wanted"]
    running = gateway(config)
    assert running.get(f"http://{HOST}:{there.port}/").status == 200
    server = {"host": HOST, "server": f"127.0.0.1:{there.port}"}
    wait_event(running, "connected", **server)
    wait_event(running, "tls handshake started", **server, sni=HOST, alpn="h2,http/1.1",
               min_version="1.2", session="none")
    done = wait_event(
        running, "tls handshake finished", **server, version="1.3", alpn="http/1.1",
        resumed="false", verified="by-the-handshake", pins="passed", pinsets="wanted")
    assert done["cipher"] == ciphers[0]
    assert re.fullmatch(r"\d+us", done["duration"])
    wait_event(running, "connection not kept", **server, reason="not-persistent")
    # The next connection resumes the session, by which the server is trusted.
    assert running.get(f"http://{HOST}:{there.port}/").status == 200
    wait_event(running, "tls handshake started", **server, session="offered")
    wait_event(running, "tls handshake finished", **server, resumed="true",
               verified="by-the-session", pins="passed", pinsets="wanted")
    assert events(running, "tls handshake failed") == []


def refusing_name(context: ssl.SSLContext) -> ssl.SSLContext:
    context.sni_callback = lambda *_: ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
    return context


HANDSHAKE_FAILURES = {
    "another root": (
        lambda pki: pki.rogue_root.issue(HOST).server_context(), {},
        {"reason": "tls-incomplete-chain", "alert_sent": "unknown_ca (48)"}),
    "another name": (
        lambda pki: pki.root.issue("other.test").server_context(), {},
        {"reason": "tls-host-mismatch", "alert_sent": "bad_certificate (42)"}),
    "another pin": (
        lambda pki: pki.root.issue(HOST).server_context(),
        {"pinsets": {"wanted": {"mode": "publicKey", "pins": [EMPTY_PIN]}}},
        {"reason": "tls-no-pin-matches", "pinset": "wanted",
         "alert_sent": "handshake_failure (40)"}),
    "an old version": (
        lambda pki: pki.root.issue(HOST).server_context(maximum=ssl.TLSVersion.TLSv1_2),
        {"tls": {"minimum": "1.3"}},
        {"reason": "tls-version-refused", "alert_sent": "none"}),
    "an alert": (
        lambda pki: refusing_name(pki.root.issue(HOST).server_context()), {},
        {"reason": "tls-alert-received", "alert_sent": "none"}),
}


@pytest.mark.parametrize("kind", HANDSHAKE_FAILURES)
def test_at_level_trace_a_handshake_that_fails_is_logged(gateway, origin, pki, kind):
    context, over, expected = HANDSHAKE_FAILURES[kind]
    there = origin(lambda _: reply(b"x"), tls=context(pki))
    config = traced_tls(there.port, pki.root, **over)
    config["hosts"][0]["pinsets"] = list(over.get("pinsets", []))
    if "tls" in over:
        config["hosts"][0]["tls"] |= config.pop("tls")
    running = gateway(config)
    response = running.get(f"http://{HOST}:{there.port}/")
    assert response.status == 502
    server = {"host": HOST, "server": f"127.0.0.1:{there.port}"}
    failed = wait_event(running, "tls handshake failed", **server)
    assert expected.items() <= failed.items(), failed
    assert failed["detail"] in response.body.decode()
    assert events(running, "tls handshake finished") == []


def test_at_level_trace_a_handshake_that_takes_too_long_is_logged(gateway, scripted_origin, pki):
    silent = scripted_origin(lambda connection: connection.read_to_end())
    running = gateway(traced_tls(silent.port, pki.root, timeouts={"connect": "100ms"}))
    assert running.get(f"http://{HOST}:{silent.port}/").status == 504
    wait_event(running, "tls handshake started", host=HOST)
    wait_event(running, "tls handshake failed", host=HOST, reason="tls-timeout")


# The pool


TRACED_POOL = {"workers": 1, "cache": {"enabled": False}, "log": {"level": "trace"}}


def test_at_level_trace_idle_connections_are_logged(gateway, origin):
    there, other = origin(lambda _: reply(b"x")), origin(lambda _: reply(b"x"))
    running = gateway({**TRACED_POOL, "limits": {"connections": 1}})
    server = {"host": "127.0.0.1", "server": f"127.0.0.1:{there.port}"}
    for uses in ("1", "2"):
        assert running.get(there.url()).status == 200
        wait_event(running, "connection kept", **server, uses=uses, idle_connections="1")
    second = running.wait_access(2)[1]["id"]
    assert wait_event(running, "connection reused", **server, uses="1")["id"] == second
    assert running.get(other.url()).status == 200
    wait_event(running, "idle connection closed", **server, uses="2", reason="makes-room")
    wait_event(running, "closed", server=f"127.0.0.1:{there.port}")
    wait_event(running, "connection kept", server=f"127.0.0.1:{other.port}")
    other.close()
    wait_event(running, "idle connection closed", server=f"127.0.0.1:{other.port}",
               reason="server-ended-or-spoke")


def test_at_level_trace_an_idle_connection_that_expires_is_logged(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway({**TRACED_POOL, "timeouts": {"idle": "50ms"}})
    assert running.get(there.url()).status == 200
    closed = wait_event(running, "idle connection closed", reason="idle-timeout")
    assert closed["server"] == f"127.0.0.1:{there.port}"
    assert int(closed["idle"].removesuffix("ms")) >= 50


def test_at_level_trace_a_reload_that_outdates_connections_is_logged(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway(TRACED_POOL)
    assert running.get(there.url()).status == 200
    running.write_config(merged(running.config, {"hosts": [{"match": ["new.test"]}]}))
    running.signal(signal.SIGHUP)
    wait_event(running, "idle connection closed", reason="outdated")


def test_at_level_trace_waits_for_a_connection_are_logged(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway({**TRACED_POOL, "limits": {"upstreamPerHost": 1, "pending": 1}})
    server = {"host": "127.0.0.1", "port": str(there.port)}
    limit = "limits.upstreamPerHost"
    with running.wire() as first, running.wire() as second, running.wire() as third:
        first.send(request(there.url(), Connection="close"))
        assert arrived.wait(10)
        second.send(request(there.url()))
        waits = wait_event(running, "waits for a place", **server, limit=limit, waiting="1")
        assert third.ask(request(there.url())).status == 503
        refused = wait_event(running, "place refused", **server, limit="limits.pending")
        release.set()
        assert [first.read().status, second.read().status] == [200, 200]
    ids = [line["id"] for line in running.wait_access(3)]
    assert ids.index(refused["id"]) == 0
    ended = wait_event(running, "wait ended", **server, end="connection", id=waits["id"])
    assert int(ended["waited"].removesuffix("us")) > 0
    wait_event(running, "connection reused", id=waits["id"], uses="1", idle="0ms")


def test_at_level_trace_a_place_that_is_handed_on_is_logged(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()

    def once(connection) -> None:
        if connection.read_request() is not None:
            arrived.set()
            release.wait(30)
            connection.send(reply(b"x", "200 OK", "Connection: close"))

    there = scripted_origin(once)
    running = gateway({**TRACED_POOL, "limits": {"upstreamPerHost": 1}})
    with running.wire() as first, running.wire() as second:
        first.send(request(there.url()))
        assert arrived.wait(10)
        second.send(request(there.url()))
        waits = wait_event(running, "waits for a place")
        assert events(running, "place granted") == []
        release.set()
        assert [first.read().status, second.read().status] == [200, 200]
    wait_event(running, "connection not kept", reason="not-persistent")
    wait_event(running, "place granted", port=str(there.port), limit="limits.upstreamPerHost")
    wait_event(running, "wait ended", id=waits["id"], end="connection")


def test_at_level_trace_a_wait_that_fails_is_logged(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway({**TRACED_POOL, "limits": {"upstreamPerHost": 1}})
    try:
        with running.wire() as first, running.wire() as second, running.wire() as third:
            first.send(request(there.url()))
            assert arrived.wait(10)
            third.send(request(there.url()))
            waits = wait_event(running, "waits for a place", waiting="1")
            third.reset()
            wait_event(running, "wait ended", id=waits["id"], end="abandoned")
            second.send(request(there.url()))
            waits = wait_event(running, "waits for a place", 2, waiting="1")
            # The same server under new rules: the request waits there anew.
            running.write_config(merged(running.config, {"hosts": [{"match": ["new.test"]}]}))
            running.signal(signal.SIGHUP)
            wait_event(running, "wait ended", id=waits["id"], end="superseded")
            wait_event(running, "waits for a place", 2, id=waits["id"], waiting="1")
            release.set()
            assert [first.read().status, second.read().status] == [200, 200]
    finally:
        release.set()
    wait_event(running, "connection not kept", reason="outdated")
    wait_event(running, "wait ended", id=waits["id"], end="connection")
