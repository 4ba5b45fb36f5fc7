"""Limits hold for the process and for each client: one client cannot take what others need."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest
from support.gateway import Gateway
from support.origin import OriginConnection, reply, waiting
from support.wait import until
from support.wire import Closed, Wire, connect, request

NO_CACHE = {"cache": {"enabled": False}}


def wire_from(running: Gateway, source: str, timeout: float = 20) -> Wire:
    """A connection from an address of loopback: another client."""
    sock = socket.create_connection(running.proxy, timeout, source_address=(source, 0))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Wire(running.proxy, timeout, sock)


def is_refused(wire: Wire, url: str) -> bool:
    """Whether the gateway closes the connection without an answer."""
    try:
        wire.ask(request(url))
    except (Closed, ConnectionError):
        return True
    return False


@contextlib.contextmanager
def closing(*wires: Wire):
    try:
        yield
    finally:
        for wire in wires:
            wire.close()


# One client


@pytest.mark.parametrize("workers", [1, 2])
def test_a_client_has_at_most_its_share_of_connections(gateway, origin, workers):
    there = origin(lambda _: reply(b"x"))
    running = gateway({**NO_CACHE, "workers": workers, "limits": {"perClient": {"connections": 3}}})
    held = [wire_from(running, "127.0.0.2") for _ in range(3)]
    with closing(*held):
        for wire in held:
            assert wire.ask(request(there.url("/"))).status == 200
        beyond = wire_from(running, "127.0.0.2")
        assert is_refused(beyond, there.url("/")), "a fourth connection is closed"
        beyond.close()
        other = wire_from(running, "127.0.0.3")
        assert other.ask(request(there.url("/"))).status == 200, "others have a share of their own"
        other.close()
        assert running.metric(
            "pinfold_client_connections_refused_total", reason="client_limit") == 1
        running.wait_log(r"client-connection-limit")
        held.pop().close()

        def served() -> bool:
            with contextlib.closing(wire_from(running, "127.0.0.2")) as wire:
                return not is_refused(wire, there.url("/"))

        until(served, "a connection that was closed makes room")


def test_a_client_has_at_most_its_share_of_exchanges(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway({**NO_CACHE, "limits": {"perClient": {"exchanges": 2}}})
    held = [wire_from(running, "127.0.0.2") for _ in range(2)]
    beyond, other = wire_from(running, "127.0.0.2"), wire_from(running, "127.0.0.3")
    try:
        for wire in held:
            wire.send(request(there.url("/")))
        until(lambda: there.accepted == 2, "both are at the origin")
        refused = beyond.ask(request(there.url("/")))
        assert refused.status == 503
        assert b"client-exchange-limit" in refused.body
        assert refused.proxy_status["error"] == "connection_limit_reached"
        assert running.wait_access(1)[-1]["reason"] == "client-exchange-limit"
        other.send(request(there.url("/")))
        until(lambda: there.accepted == 3, "another client's request goes on")
        release.set()
        assert [wire.read().status for wire in held + [other]] == [200] * 3
        assert beyond.ask(request(there.url("/"))).status == 200, "the connection goes on"
    finally:
        release.set()
        for wire in [*held, beyond, other]:
            wire.close()


def test_a_tunnel_counts_as_an_exchange_as_long_as_it_is_open(gateway, scripted_origin):
    there = scripted_origin(lambda connection: connection.read_to_end())
    running = gateway({**NO_CACHE, "limits": {"perClient": {"exchanges": 1}}})
    tunnel, opened = connect(running.proxy, there.authority)
    assert opened.status == 200
    second, refused = connect(running.proxy, there.authority)
    second.close()
    assert refused.status == 503
    tunnel.close()
    until(lambda: running.metric("pinfold_tunnels_open") == 0, "the tunnel is closed")
    third, opened = connect(running.proxy, there.authority)
    third.close()
    assert opened.status == 200


def test_what_is_answered_from_memory_is_not_counted(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()

    def script(connection: OriginConnection) -> None:
        while (asked := connection.read_request()) is not None:
            if asked.target == "/slow":
                arrived.set()
                release.wait(20)
            connection.send(reply(b"x", "200 OK", "Cache-Control: max-age=60"))

    there = scripted_origin(script)
    running = gateway({"limits": {"perClient": {"exchanges": 1}}})
    with running.wire() as one, running.wire() as other:
        assert one.ask(request(there.url("/hit"))).status == 200
        one.send(request(there.url("/slow")))
        try:
            assert arrived.wait(10)
            assert other.ask(request(there.url("/hit"))).status == 200
            assert other.ask(request(there.url("/miss"))).status == 503
        finally:
            release.set()
        assert one.read().status == 200


# The process


@pytest.mark.parametrize("workers", [1, 3])
def test_idle_connections_make_room_the_longest_idle_first(gateway, origin, workers):
    there = origin(lambda _: reply(b"x"))
    running = gateway({**NO_CACHE, "workers": workers, "limits": {"connections": 6}})
    held = [running.wire() for _ in range(6)]
    with closing(*held):
        for wire in held:
            assert wire.ask(request(there.url("/"))).status == 200
        newcomers = [wire_from(running, "127.0.0.2") for _ in range(3)]
        with closing(*newcomers):
            for wire in newcomers:
                assert wire.ask(request(there.url("/"))).status == 200, "nobody is turned away"
            assert running.metric("pinfold_client_connections_evicted_total") == 3
            if workers == 1:
                for wire in held[:3]:
                    assert wire.ended(), "the longest idle are closed"
                for wire in held[3:]:
                    assert wire.ask(request(there.url("/"))).status == 200
            assert running.metric("pinfold_client_connections_refused_total", reason="limit") == 0


def test_connections_that_never_asked_make_room_too(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway({**NO_CACHE, "workers": 2, "limits": {"connections": 20}})
    flood = [running.wire() for _ in range(20)]
    with closing(*flood):
        until(lambda: running.metric("pinfold_client_connections_open") >= 20, "all are there")
        for _ in range(5):
            with contextlib.closing(wire_from(running, "127.0.0.2")) as wire:
                assert wire.ask(request(there.url("/"))).status == 200


@pytest.mark.parametrize("workers", [1, 2])
def test_a_connection_in_use_is_not_closed_for_another(gateway, scripted_origin, workers):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway({**NO_CACHE, "workers": workers, "limits": {"connections": 3}})
    held = [running.wire() for _ in range(3)]
    try:
        for wire in held:
            wire.send(request(there.url("/")))
        until(lambda: running.metric("pinfold_http_requests_in_flight") == 3, "all are in use")
        with contextlib.closing(wire_from(running, "127.0.0.2")) as beyond:
            assert is_refused(beyond, there.url("/")), "there is no room"
        assert running.metric("pinfold_client_connections_refused_total", reason="limit") >= 1
        release.set()
        assert [wire.read().status for wire in held] == [200] * 3
    finally:
        release.set()
        for wire in held:
            wire.close()


# Thousands at once


@pytest.mark.large
@pytest.mark.parametrize("answers", [True, False])
def test_thousands_who_wait_for_one_response_are_all_answered(gateway, scripted_origin, answers):
    """One response helps them all; and when it does not come, all of them give up together."""
    release, arrived = threading.Event(), threading.Event()

    def script(connection: OriginConnection) -> None:
        while (asked := connection.read_request()) is not None:
            if asked.target == "/slow":
                arrived.set()
                release.wait(60)
            connection.send(reply(b"x", "200 OK", "Cache-Control: max-age=60"))

    there = scripted_origin(script)
    running = gateway({
        "workers": 1, "limits": {"upstreamPerHost": 4, "pending": 8},
        "timeouts": {"collapse": "60s" if answers else "1s", "connect": "1s", "firstByte": "5s"}})
    wires = [running.wire(timeout=60) for _ in range(2000)]
    try:
        with running.wire() as bystander:
            assert bystander.ask(request(there.url("/hit"))).status == 200
            for wire in wires:
                wire.send(request(there.url("/slow")))
            assert arrived.wait(10)
            until(lambda: running.metric("pinfold_cache_collapse_waits_total") >= 1999, "all wait")
            if answers:
                release.set()
            statuses = [wire.read().status for wire in wires]
            assert bystander.ask(request(there.url("/hit"))).status == 200
        assert len(statuses) == 2000
        if answers:
            assert set(statuses) == {200}
        else:
            assert statuses.count(503) > 1900, "few of them find a place in the queue"
    finally:
        release.set()
        for wire in wires:
            wire.close()
