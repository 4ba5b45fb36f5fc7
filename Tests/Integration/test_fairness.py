"""One connection's work never keeps others waiting, nor the process from ending."""

from __future__ import annotations

import signal

import pytest
from support.bystander import STALL, p99, waits
from support.flood import flooding
from support.gateway import Gateway
from support.keyupdates import KeyUpdateServer
from support.origin import reply
from support.wait import until
from support.wire import Wire, request

def waits_of(running: Gateway, wire: Wire, data: bytes, count: int) -> list[float]:
    def ask() -> None:
        wire.send(data)
        assert wire.read().status == 200

    return waits(running, ask, count)


FLOODS = [
    ("upload", 1), ("upload", 8), ("response", 1), ("response", 8), ("stream", 4), ("tunnel", 4),
    ("pipeline", 4), ("metrics", 2), ("frames", 8), ("extensions", 4), ("interim", 4),
    ("refused", 4),
]


@pytest.mark.slow
@pytest.mark.parametrize("kind,connections", FLOODS)
def test_a_bystander_is_served_during_a_flood(gateway, origin, kind, connections):
    """All on one worker: what one connection does there is what all others wait for."""
    there = origin(lambda _: reply(b"hello", "200 OK", "Cache-Control: max-age=600"))
    running = gateway({"workers": 1, "log": {"access": "none"}})
    hit = request(there.url("/"))
    health = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    at = running.admin if kind == "metrics" else running.proxy
    target = "/metrics" if kind == "metrics" else there.url("/")
    with running.wire(timeout=30) as client:
        idle = p99(waits_of(running, client, hit, 100))
        with flooding(kind, at, connections, target):
            hits = waits_of(running, client, hit, 150)
            with running.wire("admin", timeout=30) as admin:
                checks = waits_of(running, admin, health, 150)
    limit = max(STALL, 10 * idle)
    assert p99(hits) < limit, (hits[-5:], idle)
    assert p99(checks) < limit, (checks[-5:], idle)


@pytest.mark.parametrize("kind", ["upload", "response", "stream"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_answered_during_a_flood(gateway, kind, number):
    running = gateway({"workers": 1, "timeouts": {"grace": "500ms"},
                       "log": {"access": "none"}})
    with flooding(kind, running.proxy, 4):
        running.signal(number)
        assert running.wait_exit(50) == 0, "it ends, and before the flood does"


def test_a_second_signal_ends_the_process_whatever_a_worker_does(gateway):
    """The first one lets exchanges finish, for an hour here; the second does not wait."""
    running = gateway({"workers": 1, "timeouts": {"grace": "1h"}})
    with flooding("upload", running.proxy, 4):
        running.signal(signal.SIGTERM)
        running.wait_log("draining")
        running.signal(signal.SIGTERM)
        assert running.wait_exit(50) == 0


def test_chunks_of_one_byte_are_passed_on_in_few_writes(gateway, scripted_origin):
    """Both ways: what is at hand leaves as one chunk."""
    count = 5000
    body = b"1\r\nx\r\n" * count + b"0\r\n\r\n"

    def script(connection):
        head = connection.read_request_head()
        assert head is not None
        connection.read_until(b"0\r\n\r\n")
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body)

    there = scripted_origin(script)
    running = gateway({"cache": {"enabled": False}})
    with running.wire() as wire:
        wire.send(f"POST {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n"
                  "Transfer-Encoding: chunked\r\n\r\n".encode() + body)
        answer = wire.read()
    assert answer.body == b"x" * count
    received = there.connections[0].received.partition(b"\r\n\r\n")[2]
    # Each chunk costs a line and an end; gathered, few are left of the five thousand.
    assert len(received) < count + 20 * 100, len(received)


def test_a_flood_of_key_updates_is_cut_off_while_others_are_served(gateway, origin, pki):
    there = origin(lambda _: reply(b"hello", "200 OK", "Cache-Control: max-age=600"))
    leaf = pki.intermediate.issue("localhost")
    server = KeyUpdateServer(leaf.chain_file(), leaf.key_file, 3_000_000)
    running = gateway({
        "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
        "listeners": [
            {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
            {"name": "tls", "address": "127.0.0.1:0", "kind": "reverse",
             "upstream": f"https://localhost:{server.port}"}]})
    hit = request(there.url("/"))
    try:
        with running.wire(timeout=30) as client, running.wire("tls", timeout=30) as flooded:
            idle = p99(waits_of(running, client, hit, 100))
            flooded.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
            hits = waits_of(running, client, hit, 100)
            answer = flooded.read()
        assert answer.status == 502
        assert b"tls-too-many-messages" in answer.body
        assert p99(hits) < max(STALL, 10 * idle), (hits[-5:], idle)
        until(server.finished.is_set, "the server has noticed")
        assert server.sent < server.count
    finally:
        server.close()
