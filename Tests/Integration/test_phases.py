"""What the time of an exchange is spent on, in the access log and in the metrics: each phase is made
slow in turn, and is the one that is long. A machine under load makes phases longer, never shorter."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from support.gateway import Gateway, free_port
from support.http2fixtures import context, start
from support.inspection import ask, careless, inspected, opened, through
from support.interception import HOST, inside
from support.origin import OriginConnection, reply, serving, waiting
from support.parents import HTTPParent, ways
from support.wait import until
from support.wire import request
from test_resolver import black_hole

PHASES = ["queue", "dns", "connect", "tls", "first_byte", "body"]
COUNT = "pinfold_host_phase_duration_seconds_count"
# How long the slow phase takes, in seconds and in microseconds.
LATE = 0.4
LATE_US = 400_000
POOL = {"workers": 1, "cache": {"enabled": False}}


def later(seconds: float = LATE) -> None:
    begun = time.monotonic()
    until(lambda: time.monotonic() >= begun + seconds, "it is late")


def phases(line: dict) -> dict[str, int]:
    return {name: line[f"{name}_us"] for name in PHASES if f"{name}_us" in line}


def is_spent_on(line: dict, name: str, *others: str, least: int = LATE_US) -> None:
    """Most of an exchange's time was spent on one phase; it and the others are those that happened,
    and they add up."""
    found = phases(line)
    assert set(found) == {name, *others}, line
    assert found[name] >= least, line
    # What is missing is the gateway's own time.
    assert line["duration_us"] * 0.5 <= sum(found.values()) <= line["duration_us"], line


class Late:
    """A server's TLS whose handshakes are late."""

    def __init__(self, context: ssl.SSLContext, seconds: float = LATE):
        self.context, self.seconds = context, seconds

    def wrap_socket(self, sock: socket.socket, **options: bool) -> ssl.SSLSocket:
        later(self.seconds)
        return self.context.wrap_socket(sock, **options)


def late(data: bytes = reply(b"late")) -> Callable[[object], bytes]:
    def handler(_: object) -> bytes:
        later()
        return data

    return handler


def trusting(pki, **more) -> dict:
    return {**POOL, "tls": {"roots": [str(pki.root.pem_file)]}, **more}


@contextlib.contextmanager
def giving_up(running: Gateway, data: bytes) -> Iterator[None]:
    """A client that sends a request, and leaves after a while without a response."""
    with running.wire() as wire:
        wire.send(data)
        yield
        later()
        wire.reset()


# One phase after the other


def test_a_slow_server_is_the_first_byte(gateway, origin):
    there = origin(late())
    running = gateway(POOL)
    with running.wire() as wire:
        for _ in range(2):
            assert wire.ask(request(there.url("/"))).body == b"late"
    first, second = running.wait_access(2)
    is_spent_on(first, "first_byte", "connect", "body")
    assert first["reused"] is False
    is_spent_on(second, "first_byte", "body")
    assert second["reused"] is True
    assert first["upstream"] == second["upstream"] == there.authority


def test_an_interim_response_does_not_end_the_first_byte(gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        connection.read_request()
        connection.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        later()
        connection.send(reply(b"late"))

    there = scripted_origin(script)
    running = gateway(POOL)
    with running.wire() as wire:
        wire.send(request(there.url("/")))
        assert wire.read_final().body == b"late"
    is_spent_on(running.wait_access()[0], "first_byte", "connect", "body")


def test_slow_content_is_the_body(gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        connection.read_request()
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na")
        later()
        connection.send("b")

    there = scripted_origin(script)
    running = gateway(POOL)
    assert running.get(there.url("/")).body == b"ab"
    is_spent_on(running.wait_access()[0], "body", "connect", "first_byte")


def test_a_server_that_breaks_off_has_a_body(gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        connection.read_request()
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na")
        later()

    there = scripted_origin(script)
    running = gateway(POOL)
    with running.wire() as wire:
        wire.send(request(there.url("/")))
        assert wire.read_head().status == 200
        assert wire.read_to_end() == b"a"
    (line,) = running.wait_access()
    is_spent_on(line, "body", "connect", "first_byte")
    assert "reason" in line


def test_a_slow_handshake_is_tls(gateway, origin, pki):
    there = origin(lambda _: reply(b"x"),
                   tls=Late(pki.intermediate.issue(HOST).server_context()))
    running = gateway(trusting(pki))
    with running.wire() as wire:
        for _ in range(2):
            url = f"https://{HOST}:{there.port}/"
            assert wire.ask(request(url)).body == b"x"
    first, second = running.wait_access(2)
    is_spent_on(first, "tls", "dns", "connect", "first_byte", "body")
    assert set(phases(second)) == {"first_byte", "body"} and second["reused"] is True


def test_slow_names_are_dns(gateway, origin, dns):
    dns.delays["late.test"] = LATE
    there = origin(lambda _: reply(b"x", "200 OK", "Connection: close"))
    running = gateway(POOL)
    for _ in range(2):
        assert running.get(f"http://late.test:{there.port}/").body == b"x"
    first, second = running.wait_access(2)
    is_spent_on(first, "dns", "connect", "first_byte", "body")
    assert set(phases(second)) == {"connect", "first_byte", "body"}, "the answer is kept"


def test_a_full_pool_is_the_queue(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway({**POOL, "limits": {"upstreamPerHost": 1}})
    with running.wire() as one, running.wire() as other:
        one.send(request(there.url("/one")))
        assert arrived.wait(20)
        other.send(request(there.url("/other")))
        until(lambda: running.metric("pinfold_upstream_pool_waiting") == 1, "it waits")
        later()
        release.set()
        assert [one.read().body, other.read().body] == [b"late"] * 2
    lines = {line["target"].rpartition("/")[2]: line for line in running.wait_access(2)}
    is_spent_on(lines["one"], "first_byte", "connect", "body")
    is_spent_on(lines["other"], "queue", "first_byte", "body")
    assert lines["other"]["reused"] is True


def test_whoever_waits_for_a_place_and_then_connects_has_both(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()

    def script(connection: OriginConnection) -> None:
        connection.read_request()
        arrived.set()
        assert release.wait(20)
        connection.send(reply(b"x", "200 OK", "Connection: close"))

    there = scripted_origin(script)
    running = gateway({**POOL, "limits": {"upstreamPerHost": 1}})
    with running.wire() as one, running.wire() as other:
        one.send(request(there.url("/one")))
        assert arrived.wait(20)
        other.send(request(there.url("/other")))
        until(lambda: running.metric("pinfold_upstream_pool_waiting") == 1, "it waits")
        later()
        release.set()
        assert one.read().status == other.read().status == 200
    (line,) = [line for line in running.wait_access(2) if line["target"].endswith("/other")]
    is_spent_on(line, "queue", "connect", "first_byte", "body")
    assert line["reused"] is False


# Elsewhere in the gateway


def test_a_request_that_waits_for_its_turn_is_queued(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    rule = {"name": "slowly", "action": "allow",
            "rate": {"requests": "2/s", "burst": 1, "over": "delay"}}
    running = gateway({**POOL, "access": {"rules": [rule]}})
    with running.wire() as wire:
        for _ in range(2):
            assert wire.ask(request(there.url("/"))).status == 200
    first, second = running.wait_access(2)
    assert "queue_us" not in first
    is_spent_on(second, "queue", "first_byte", "body", least=300_000)
    assert second["rule"] == "slowly"


def test_a_response_that_is_waited_for_is_the_queue(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()

    def script(connection: OriginConnection) -> None:
        while connection.read_request() is not None:
            arrived.set()
            assert release.wait(20)
            connection.send(reply(b"shared", "200 OK", "Cache-Control: max-age=60"))

    there = scripted_origin(script)
    running = gateway({"workers": 1})
    with running.wire() as one, running.wire() as other:
        one.send(request(there.url("/")))
        assert arrived.wait(20)
        other.send(request(there.url("/")))
        until(lambda: running.metric("pinfold_cache_collapse_waits_total") == 1, "it waits")
        later()
        release.set()
        assert [one.read().body, other.read().body] == [b"shared"] * 2
    (line,) = [line for line in running.wait_access(2) if line["cache"] == "collapsed"]
    is_spent_on(line, "queue", "body")
    assert "reused" not in line


def test_a_hit_in_memory_is_all_body_and_not_counted(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: max-age=60"))
    running = gateway({"workers": 1})
    assert running.get(there.url("/")).status == 200
    counted = running.metric(COUNT, phase="body")
    assert running.get(there.url("/")).status == 200
    line = running.wait_access(2)[1]
    assert line["cache"] == "hit" and set(phases(line)) == {"body"} and "reused" not in line
    assert running.metric(COUNT, phase="body") == counted == 1


# Failures


def test_a_server_that_is_down_is_connect_with_the_address_that_was_tried(gateway):
    running = gateway(POOL)
    port = free_port()
    assert running.get(f"http://127.0.0.1:{port}/").status == 502
    (line,) = running.wait_access()
    assert set(phases(line)) == {"connect"} and line["reason"] == "connection-refused"
    assert line["upstream"] == f"127.0.0.1:{port}" and "reused" not in line


def test_a_server_that_does_not_answer_is_connect(gateway):
    port = free_port()
    with black_hole("127.0.0.1", port):
        running = gateway({**POOL, "timeouts": {"connect": "400ms"}})
        assert running.get(f"http://127.0.0.1:{port}/").status == 504
    (line,) = running.wait_access()
    is_spent_on(line, "connect", least=LATE_US * 9 // 10)
    assert line["reason"] == "connect-timeout"


def test_a_handshake_that_is_not_finished_is_tls(gateway, scripted_origin, pki):
    there = scripted_origin(lambda connection: connection.read_to_end())
    running = gateway(trusting(pki, timeouts={"connect": "400ms"}))
    assert running.get(f"https://{HOST}:{there.port}/").status == 504
    (line,) = running.wait_access()
    is_spent_on(line, "tls", "dns", "connect", least=LATE_US * 9 // 10)
    assert line["reason"] == "tls-timeout" and line["upstream"] == f"127.0.0.1:{there.port}"


def test_a_client_that_gives_up_while_names_are_dead_has_dns(gateway, dns):
    dns.silence("dead.test")
    running = gateway(POOL)
    with giving_up(running, request("http://dead.test/")):
        until(lambda: dns.asked("dead.test"), "it is asked for")
    (line,) = running.wait_access()
    is_spent_on(line, "dns", least=LATE_US * 9 // 10)
    assert line["status"] is None and "upstream" not in line


def test_a_client_that_gives_up_in_a_handshake_has_tls_and_the_address(
        gateway, scripted_origin, pki):
    there = scripted_origin(lambda connection: connection.read_to_end())
    running = gateway(trusting(pki))
    with giving_up(running, request(f"https://{HOST}:{there.port}/")):
        until(lambda: there.accepted, "it is connected to")
    (line,) = running.wait_access()
    is_spent_on(line, "tls", "dns", "connect", least=LATE_US * 9 // 10)
    assert line["upstream"] == f"127.0.0.1:{there.port}"


def test_a_client_that_gives_up_a_place_in_the_pool_has_the_queue(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway({**POOL, "limits": {"upstreamPerHost": 1}})
    with running.wire() as first:
        first.send(request(there.url("/")))
        assert arrived.wait(20)
        with giving_up(running, request(there.url("/given-up"))):
            until(lambda: running.metric("pinfold_upstream_pool_waiting") == 1, "it waits")
        (line,) = running.wait_access()
        release.set()
        assert first.read().status == 200
    assert line["target"].endswith("/given-up")
    is_spent_on(line, "queue", least=LATE_US * 9 // 10)


def test_attempts_are_added_up(gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        connection.read_request()
        if connection.number == 0:
            connection.send(reply(b"first"))
            connection.read_request()
            later()
            return
        later()
        connection.send(reply(b"again"))
        connection.read_to_end()

    there = scripted_origin(script)
    running = gateway(POOL)
    with running.wire() as wire:
        assert wire.ask(request(there.url("/"))).body == b"first"
        assert wire.ask(request(there.url("/"))).body == b"again"
    line = running.wait_access(2)[1]
    is_spent_on(line, "first_byte", "connect", "body", least=2 * LATE_US)
    assert line["reused"] is False


def test_the_gateways_own_replies_have_no_phases(gateway):
    running = gateway(POOL)
    assert running.get("http://10.0.0.1/").status == 403
    (line,) = running.wait_access()
    assert phases(line) == {} and "reused" not in line


# Ways


def test_a_slow_parent_is_connect(gateway, origin, pki):
    there = origin(lambda _: reply(b"x"), tls=pki.intermediate.issue(HOST).server_context())

    def answer(_: object) -> bytes:
        later()
        return b""

    with serving(HTTPParent(answer)) as parent:
        running = gateway(ways(f"http://127.0.0.1:{parent.port}", **trusting(pki)))
        assert running.get(f"https://{HOST}:{there.port}/").body == b"x"
    (line,) = running.wait_access()
    assert line["parent"] == "p0"
    found = phases(line)
    # A parent is not told names that may not be connected to.
    found.pop("dns", None)
    assert set(found) == {"connect", "tls", "first_byte", "body"}
    assert found["connect"] >= LATE_US and line["reused"] is False


def test_a_way_that_failed_is_added_to_the_next(gateway, origin, pki):
    there = origin(lambda _: reply(b"x"), tls=pki.intermediate.issue(HOST).server_context())

    def answer(_: object) -> None:
        later()

    with serving(HTTPParent(answer)) as parent:
        running = gateway(
            ways(f"http://127.0.0.1:{parent.port}", "direct", **trusting(pki)))
        assert running.get(f"https://{HOST}:{there.port}/").body == b"x"
    (line,) = running.wait_access()
    assert "parent" not in line
    found = phases(line)
    found.pop("dns", None)
    assert set(found) == {"connect", "tls", "first_byte", "body"}
    assert found["connect"] >= LATE_US and line["upstream"] == f"127.0.0.1:{there.port}"
    assert line["duration_us"] * 0.5 <= sum(phases(line).values()) <= line["duration_us"]


# HTTP/2


def test_streams_that_wait_for_one_connection_share_its_handshake(start, http2_origin, context):
    there = http2_origin(tls=Late(context()))
    running = start()
    with running.wire() as one, running.wire() as other:
        for wire in (one, other):
            wire.send(request(there.url("/", HOST)))
        assert one.read().status == other.read().status == 200
        assert one.ask(request(there.url("/third", HOST))).status == 200
    lines = running.wait_access(3)
    third = lines.pop(next(i for i, line in enumerate(lines) if line["target"].endswith("/third")))
    assert len(there.served) == 1
    for line in lines:
        assert line["upstream_version"] == "HTTP/2.0"
        assert line["tls_us"] >= LATE_US * 9 // 10 and line["reused"] is False, line
        assert sum(phases(line).values()) <= line["duration_us"]
    assert set(phases(third)) == {"first_byte", "body"} and third["reused"] is True


# Tunnels


def test_a_tunnel_is_open_in_its_body(gateway, scripted_origin):
    there = scripted_origin(lambda connection: connection.read_to_end())
    running = gateway(POOL)
    wire, answer = running.connect(f"tunnel.test:{there.port}")
    with wire:
        assert answer.status == 200
        later()
    (line,) = running.wait_access()
    is_spent_on(line, "body", "dns", "connect")
    assert line["reused"] is False
    assert running.metric(COUNT, phase="connect") == 1
    assert not [name for name in running.metrics() if name.startswith(COUNT) and "body" in name]


def test_a_client_that_gives_up_a_tunnel_has_what_it_waited_for(gateway, dns):
    dns.silence("dead.test")
    running = gateway(POOL)
    with giving_up(running, b"CONNECT dead.test:443 HTTP/1.1\r\nHost: dead.test:443\r\n\r\n"):
        until(lambda: dns.asked("dead.test"), "it is asked for")
    (line,) = running.wait_access()
    is_spent_on(line, "dns", least=LATE_US * 9 // 10)


@pytest.mark.parametrize("more", [{}, {"tunnel": "pass"}], ids=["at once", "undecided"])
def test_the_connect_of_an_intercepted_tunnel_has_the_handshake(
        gateway, origin, pki, authority, more):
    there = origin(late(), tls=Late(pki.intermediate.issue(HOST).server_context()))
    running = gateway(trusting(
        pki, interception=authority.section,
        hosts=[{"match": [HOST], "intercept": True, **more}]))
    wire, refused = inside(running, HOST, there.port)
    assert refused is None
    with wire:
        assert wire.ask(request("/a", f"{HOST}:{there.port}")).body == b"late"
        assert wire.ask(b"nonsense\r\n\r\n").status == 400
    connect, inner, broken = running.wait_access(3)
    assert connect["method"] == "CONNECT" and connect["target"] == f"{HOST}:{there.port}"
    assert connect["tls_us"] >= LATE_US and connect["reused"] is False
    assert "first_byte_us" not in connect and "body_us" not in connect
    is_spent_on(inner, "first_byte", "body")
    assert inner["reused"] is True
    assert inner["tunnel"] == broken["tunnel"] == f"{HOST}:{there.port}"


def test_an_inspected_tunnel_has_the_servers_proof_as_tls(gateway, origin, pki):
    there = origin(lambda _: reply(b"there"),
                   tls=Late(pki.intermediate.issue(HOST).server_context()))
    running = gateway({**inspected(HOST, None, [pki.root.pem_file]), "workers": 1})
    with through(running, HOST, there.port, careless("1.2")) as tls:
        assert ask(tls, HOST).body == b"there"
    (line,) = running.wait_access()
    assert line["inspected"] == "verified" and line["tls_us"] >= LATE_US
    assert set(phases(line)) == {"dns", "connect", "tls", "body"}


def test_the_wait_for_the_client_of_an_inspected_tunnel_is_not_the_servers(gateway, origin, pki):
    there = origin(lambda _: reply(b"there"),
                   tls=pki.intermediate.issue(HOST).server_context())
    running = gateway({**inspected(HOST, None, [pki.root.pem_file]), "workers": 1})
    with opened(running, HOST, there.port):
        pass
    (line,) = running.wait_access()
    assert line["method"] == "CONNECT" and "tls_us" not in line
    wire = opened(running, HOST, there.port)
    later()
    with careless("1.2").wrap_socket(wire.socket, server_hostname=HOST) as tls:
        assert ask(tls, HOST).body == b"there"
    line = running.wait_access(2)[-1]
    assert line["inspected"] == "verified" and line["tls_us"] > 0
    assert line["duration_us"] - line["tls_us"] >= LATE_US


# Elsewhere


def test_each_phase_is_counted_by_host_entry(gateway, origin, pki):
    there = origin(lambda _: reply(b"x"), tls=pki.intermediate.issue(HOST).server_context())
    running = gateway(trusting(pki, hosts=[{"name": "seen", "match": [HOST]}]))
    with running.wire() as wire:
        for _ in range(3):
            assert wire.ask(request(f"https://{HOST}:{there.port}/")).body == b"x"
    running.wait_access(3)
    counts = {phase: running.metric(COUNT, host="seen", phase=phase)
              for phase in ("dns", "connect", "tls", "first_byte", "body")}
    assert counts == {"dns": 1, "connect": 1, "tls": 1, "first_byte": 3, "body": 3}
    assert not [name for name in running.metrics() if name.startswith(COUNT) and "queue" in name]


def test_a_combined_line_has_the_same_names(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway({**POOL, "log": {"access": {"format": "combined"}}})
    assert running.get(there.url("/")).status == 200
    text = until(lambda: running.access_file.exists() and running.access_file.read_text(), "a line")
    named = dict(part.split("=") for part in text.split(" - ")[-1].split())
    assert list(named) == ["connect_us", "first_byte_us", "body_us", "upstream", "reused"], text
    assert named["upstream"] == there.authority and named["reused"] == "false"


def test_the_debug_log_has_them_too(gateway, origin):
    there = origin(late())
    running = gateway({**POOL, "log": {"level": "debug"}})
    assert running.get(there.url("/")).status == 200
    line = running.wait_log(r"\bended\b.*first_byte=")
    assert "connect=" in line and "queue=" not in line
