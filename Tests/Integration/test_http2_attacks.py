"""What a client of HTTP/2 can do that costs work and brings nothing: what reaches the server, what
stays in memory, whether others notice, and how the client is told."""

from __future__ import annotations

import contextlib
import os

import pytest
from support.attacks import ATTACKS, CONFIGURATION, LARGE, PATH, STREAMS, is_over
from support.frames import Attacker
from support.gateway import merged
from support.http2 import HTTP2Client
from support.origin import HTTPOrigin, reply, serving
from support.wait import until

COUNT = 3000


@pytest.fixture(scope="module")
def there():
    large = os.urandom(200_000)
    with serving(HTTPOrigin(lambda seen: reply(
            large if seen.target == LARGE else b"x" * 100, "200 OK",
            "Cache-Control: no-store"))) as made:
        yield made


def asked(there: HTTPOrigin) -> int:
    """How many requests of attackers have begun to reach the server."""
    return sum(one.received.count(f"{path} ".encode())
               for one in list(there.connections) for path in (PATH, LARGE))


def counted(running) -> float:
    """Connections that were asked to open no more streams, or ended, because of abuse."""
    return (running.metric("pinfold_client_protocol_abuse_total")
            + running.metric("pinfold_client_protocol_warnings_total"))


@pytest.mark.parametrize("attack", ATTACKS, ids=[attack.name for attack in ATTACKS])
def test_an_attack_reaches_nothing(gateway, there, attack):
    running = gateway(merged(CONFIGURATION, {"cache": {"enabled": False}, "workers": 1}))
    bystander = HTTP2Client(running.proxy)
    bystander.get("/before", authority=there.authority)
    before = asked(there)
    others = running.metric("pinfold_client_connections_open")
    attacker = Attacker(running.proxy, there.authority)
    try:
        if attack.reads:
            attacker.reads()
        attack.run(attacker, COUNT)
        assert bystander.get("/beside", authority=there.authority).status == 200
        if attack.end != "none":
            # A client that does not read does not see its end.
            until(lambda: is_over(attacker) if attack.end == "streams" else attacker.ended.is_set()
                  or running.metric("pinfold_client_connections_open") <= others,
                  "the connection is ended", 20)
        if attack.end == "budget":
            assert attacker.ended.wait(10)
            assert any(text for _, text in attacker.goaways), "it says what was counted"
            until(lambda: counted(running) > 0, f"it is counted: {attacker.goaways}")
    finally:
        attacker.close()
    reached = asked(there) - before
    assert reached <= STREAMS, f"{reached} requests reached the server"
    assert bystander.get("/after", authority=there.authority).status == 200
    assert bystander.goaway is None
    bystander.close()
    # That of the bystander is one more.
    until(lambda: running.metric("pinfold_upstream_connections_open") <= STREAMS + 1, "none is left")


def test_a_client_that_never_reads_holds_little(gateway, there):
    running = gateway({"cache": {"enabled": False}, "workers": 1})
    with contextlib.ExitStack() as stack:
        client = HTTP2Client(running.proxy)
        stack.callback(client.close)
        client.get("/before", authority=there.authority)
        before, already = running.rss_bytes, asked(there)
        attacker = Attacker(running.proxy, there.authority)
        stack.callback(attacker.close)
        for _ in range(STREAMS):
            attacker.send(attacker.request(path=LARGE))
        until(lambda: asked(there) - already >= STREAMS, "all are asked for")
        assert client.get("/beside", authority=there.authority).status == 200
        assert running.rss_bytes - before < 40 << 20
