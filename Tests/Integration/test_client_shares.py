"""One client against the others: what it leaves unfinished or unused gives way to theirs."""

from __future__ import annotations

import ssl

import pytest
from support.gateway import Gateway, wire_from
from support.interception import (
    HOST, OTHER, Inside, ask_inside, connect_head, no_client_is_connected)
from support.origin import reply
from support.secure import NAME, forward, tls_of
from support.wait import until
from support.wire import Wire, request

FLOOD, BYSTANDER = "127.0.0.1", "127.0.0.2"
# What unfinished handshakes may take up, at 32 KiB each: half of it is one client's.
BUDGET = 1 << 20
INSPECTED = "inspected.test"


@pytest.fixture
def there(origin, pki):
    return origin(lambda _: reply(b"here", "200 OK", "Cache-Control: no-store"),
                  tls=pki.intermediate.issue(HOST, OTHER, INSPECTED, "*.wild.test").server_context())


@pytest.fixture
def running(gateway, pki):
    # Enough for all of the flood's connections to be open at once.
    return gateway({
        "workers": 1, "cache": {"enabled": False},
        "listeners": [forward(None), forward(tls_of(pki.root.issue(NAME)), "secure")],
        "tls": {"roots": [str(pki.root.pem_file)]}, "limits": {"bufferBytes": BUDGET},
        "hosts": [{"match": [HOST, "*.wild.test"], "intercept": True},
                  {"match": [OTHER], "intercept": True, "tunnel": "pass"},
                  {"match": [INSPECTED], "tunnel": "inspect"}],
        "interception": pki.interception.section})


class Way:
    """One way to begin something that takes up memory until it is finished."""

    def __init__(self, running: Gateway, there, pki, kind: str):
        self.running, self.kind = running, kind
        self.port, self.url = there.port, f"http://localhost:{there.port}/"
        self.host = {"an inspected tunnel": INSPECTED, "a tunnel that may pass": OTHER}.get(kind, HOST)
        self.is_tunnel = "tunnel" in kind
        # What is TLS 1.3 is not inspected by default.
        self.settings = {"maximum_version": ssl.TLSVersion.TLSv1_2} if self.host == INSPECTED else {}
        self.listener = "secure" if kind == "TLS" else "proxy"
        if kind == "TLS":
            self.trusted, self.name = pki.root.pem_file, NAME
        else:
            shown = pki.root.pem_file if self.host == INSPECTED else pki.interception.file
            self.trusted, self.name = shown, self.host

    def begin(self, source: str, count: int) -> tuple[Wire, bytes, Inside | None]:
        """A connection that has sent so many bytes of what it begins, and the rest."""
        wire = wire_from(self.running, source, listener=self.listener)
        if self.kind == "a head":
            head = request(self.url)
            wire.send(head[:count])
            return wire, head[count:], None
        if self.is_tunnel:
            wire.send(connect_head(self.host, self.port))
            assert wire.read_head().status == 200
        inside = Inside(self.trusted, self.name, **self.settings)
        hello = inside.hello
        wire.send(hello[:count])
        return wire, hello[count:], inside

    def finish(self, wire: Wire, rest: bytes, inside: Inside | None) -> None:
        wire.send(rest)
        if inside is None:
            return
        inside.shake(wire)
        asked = request("/", host=f"{self.host}:{self.port}") if self.is_tunnel else request(
            "http://nobody.invalid/")
        if self.is_tunnel:
            assert b" 200 " in inside.ask(wire, asked, b"here")
        else:
            assert inside.ask(wire, asked, b"\r\n\r\n").startswith(b"HTTP/1.1 5")


WAYS = ["a head", "TLS", "an intercepted tunnel", "a tunnel that may pass", "an inspected tunnel"]


@pytest.mark.parametrize("kind", WAYS)
def test_what_one_client_does_not_finish_does_not_end_what_another_is_slow_with(
        running, there, pki, kind):
    way = Way(running, there, pki, kind)
    slow = [way.begin(BYSTANDER, 15) for _ in range(3)]
    flood = [way.begin(FLOOD, 11) for _ in range(400 if kind == "a head" else 60)]
    try:
        until(lambda: running.metric("pinfold_client_heads_evicted_total") >= 20,
              "the flood's own make way")
        for wire, rest, inside in slow:
            way.finish(wire, rest, inside)
            if inside is None:
                assert wire.read().status == 502  # it speaks TLS
        assert running.metric("pinfold_client_head_buffer_bytes") <= BUDGET / 2
    finally:
        for wire, *_ in slow + flood:
            wire.close()
    no_client_is_connected(running)
    assert running.metric("pinfold_client_head_buffer_bytes") == 0


def test_content_that_one_client_does_not_send_leaves_room_for_that_of_others(gateway, origin):
    """Requests whose content is still to come take half of an origin's connections; that of others
    is gathered first."""
    there = origin(lambda _: reply(b"taken"))
    running = gateway({"workers": 1, "cache": {"enabled": False},
                       "limits": {"bufferBytes": BUDGET, "upstreamPerHost": 2}})
    head = request(there.url(), method="POST", Content_Length="60000")

    def begin(source: str, count: int) -> Wire:
        wire = wire_from(running, source)
        wire.send(head + b"x" * count)
        return wire

    flood = [begin(FLOOD, 100)]
    until(lambda: running.metric("pinfold_upstream_connections_open") == 1, "it has a connection")
    slow = [begin(BYSTANDER, 50_000) for _ in range(3)]
    flood += [begin(FLOOD, 50_000) for _ in range(40)]
    try:
        until(lambda: running.metric("pinfold_client_heads_evicted_total") >= 20,
              "the flood's own make way")
        refused = flood[1].read()
        assert refused.status == 408 and b"head-buffers-full" in refused.body
        for wire in slow:
            wire.send(b"x" * 10_000)
            assert wire.read().body == b"taken"
        assert running.metric("pinfold_client_head_buffer_bytes") <= BUDGET / 2
    finally:
        for wire in slow + flood:
            wire.close()
    no_client_is_connected(running)
    until(lambda: running.metric("pinfold_client_head_buffer_bytes") == 0, "nothing is left")


@pytest.mark.slow
def test_unused_connections_made_for_a_connect_are_few_and_soon_closed(
        running, there, pki):
    """The server is verified before the answer to CONNECT, and the client then sends nothing."""
    idle = "pinfold_upstream_connections_idle"
    asked = request("/", host=f"{HOST}:{there.port}")
    assert ask_inside(running, HOST, there.port, asked).body == b"here"
    for number in range(300):
        with wire_from(running, FLOOD) as wire:
            wire.send(connect_head(f"n{number}.wild.test", there.port))
            assert wire.read_head().status == 200
    # Another client's is not among those that make way.
    with wire_from(running, BYSTANDER) as wire:
        wire.send(connect_head("mine.wild.test", there.port))
        assert wire.read_head().status == 200
        assert 2 <= running.metric(idle) <= 1 + 1 + 128
        created = running.metric("pinfold_upstream_connections_created_total")
        inside = Inside(running.config["interception"]["certificate"], "mine.wild.test")
        wire.send(inside.hello)
        inside.shake(wire)
        asked = request("/", host=f"mine.wild.test:{there.port}")
        assert b" 200 " in inside.ask(wire, asked, b"here")
        assert running.metric("pinfold_upstream_connections_created_total") == created
    until(lambda: running.metric(idle) == 2, "those that requests have used are left", 15)
