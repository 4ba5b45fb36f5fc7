"""The pool of connections to origins: waiting for one, and what arrives on an idle one."""

from __future__ import annotations

import signal
import socket
import threading
import time

import pytest
from support.gateway import Gateway
from support.origin import OriginConnection, reply, waiting
from support.wait import until
from support.wire import Wire, request

POOL = {"workers": 1, "cache": {"enabled": False}}
WAITED = "pinfold_upstream_pool_wait_duration_seconds"


# Waiting


def test_the_time_in_the_queue_is_observed_and_nothing_else(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway({**POOL, "limits": {"upstreamPerHost": 1}})
    try:
        with running.wire() as first, running.wire() as second:
            first.send(request(there.url("/")))
            assert arrived.wait(10)
            assert running.metric(f"{WAITED}_count") == 0, "a connection that is made is no wait"
            began = time.monotonic()
            second.send(request(there.url("/")))
            until(lambda: running.metric("pinfold_upstream_pool_waiting") == 1, "it waits")
            waited = time.monotonic()
            time.sleep(0.3)  # the wait itself, which is measured
            held = time.monotonic() - waited
            release.set()
            assert [first.read().body, second.read().body] == [b"late"] * 2
            total = time.monotonic() - began
            assert first.ask(request(there.url("/"))).body == b"late", "no wait: it is free"
    finally:
        release.set()
    assert running.metric(f"{WAITED}_count") == running.metric("pinfold_upstream_pool_waits_total")
    assert running.metric(f"{WAITED}_count") == 1
    assert held <= running.metric(f"{WAITED}_sum") <= total
    assert running.metric("pinfold_upstream_pool_waiting") == 0


def test_a_wait_that_fails_is_observed_too(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway({**POOL, "limits": {"upstreamPerHost": 1}, "timeouts": {"connect": "100ms"}})
    try:
        with running.wire() as first, running.wire() as second, running.wire() as third:
            first.send(request(there.url("/")))
            assert arrived.wait(10)
            third.send(request(there.url("/")))
            until(lambda: running.metric("pinfold_upstream_pool_waiting") == 1, "it waits")
            third.reset()  # gives up
            until(lambda: running.metric("pinfold_upstream_pool_waiting") == 0, "it left")
            second.send(request(there.url("/")))
            assert second.read().status == 504
    finally:
        release.set()
    assert running.metric("pinfold_upstream_pool_wait_timeouts_total") == 1
    assert running.metric(f"{WAITED}_count") == 2
    assert running.metric(f"{WAITED}_sum") >= 1


def test_the_connection_idle_the_longest_makes_room(gateway, origin):
    """At the limit over all origins an idle connection of another one is closed."""
    origins = [origin(lambda _: reply(b"x")) for _ in range(4)]
    running = gateway({**POOL, "limits": {"connections": 3}})
    with running.wire() as wire:
        for there in origins[:3]:
            assert wire.ask(request(there.url("/"))).status == 200
            time.sleep(0.01)  # the time between them itself: their order is by the millisecond
        assert wire.ask(request(origins[0].url("/"))).status == 200
        assert wire.ask(request(origins[3].url("/"))).status == 200
        origins[1].wait_finished()
        for index in (0, 2, 3):
            assert wire.ask(request(origins[index].url("/"))).status == 200
    assert [one.accepted for one in origins] == [1] * 4


# What arrives on an idle connection


POISON = reply(b"POISON")


class Talker:
    """An origin's script: `first` and what follows it on the first connection, then clean answers."""

    def __init__(self, first: bytes, later: bytes = b""):
        self.first = first
        self.later = later
        self.speak = threading.Event()
        self.spoken = threading.Event()

    def __call__(self, connection: OriginConnection) -> None:
        while connection.read_request() is not None:
            if connection.number > 0:
                connection.send(reply(b"clean"))
                continue
            connection.send(self.first)
            if self.later:
                assert self.speak.wait(20)
                connection.send(self.later)
                self.spoken.set()
            connection.read_to_end()


def check_others(running: Gateway, url: str) -> None:
    """No client gets unsolicited data, whichever asks and however often."""
    with running.wire() as kept:
        for _ in range(5):
            assert kept.ask(request(url)).body == b"clean"
            assert running.get(url).body == b"clean"


@pytest.mark.parametrize("extra", [POISON, b"\r\n", b"x", POISON[:20]])
def test_extra_bytes_in_the_segment_of_a_response_reach_no_client(gateway, scripted_origin, extra):
    there = scripted_origin(Talker(reply(b"first") + extra))
    running = gateway(POOL)
    assert running.get(there.url("/")).body == b"first"
    check_others(running, there.url("/"))


@pytest.mark.parametrize("extra", [POISON, b"\r\n", b"x"])
def test_extra_bytes_in_a_later_segment_reach_no_client(gateway, scripted_origin, extra):
    talker = Talker(reply(b"first"), extra)
    there = scripted_origin(talker)
    running = gateway(POOL)
    with running.wire() as wire:
        assert wire.ask(request(there.url("/"))).body == b"first"
        talker.speak.set()
        assert talker.spoken.wait(10)
        there.wait_finished()
        assert wire.ask(request(there.url("/"))).body == b"clean"
    check_others(running, there.url("/"))


@pytest.mark.parametrize("count", [1, 20])
def test_extra_bytes_that_arrive_with_the_next_request_reach_no_client(gateway, scripted_origin, count):
    """The request is ready before the origin's bytes, and the loop hears of both in one turn."""
    talker = Talker(reply(b"first"), POISON)
    there = scripted_origin(talker)
    running = gateway(POOL)
    wires = [running.wire() for _ in range(count)]
    try:
        assert wires[0].ask(request(there.url("/"))).body == b"first"
        for wire in wires[1:]:  # accepted, and known to the loop
            wire.ask("OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n")
        running.pause()
        for wire in wires:
            wire.send(request(there.url("/")))
        talker.speak.set()
        assert talker.spoken.wait(10)
        running.signal(signal.SIGCONT)
        assert [wire.read().body for wire in wires] == [b"clean"] * count
    finally:
        running.signal(signal.SIGCONT)
        for wire in wires:
            wire.close()


def test_extra_bytes_after_a_response_that_the_client_reads_slowly_reach_no_client(
    gateway, scripted_origin
):
    """The response ends by the client's taking it, while the origin's next bytes are there."""
    body = b"z" * 8_000_000
    talker = Talker(reply(body), POISON)
    there = scripted_origin(talker)
    running = gateway(POOL)
    with running.wire() as slow, running.wire() as other:
        slow.send(request(there.url("/")))
        head = slow.read_head()
        talker.speak.set()
        assert slow.read_body(head).body == body
        # Sent after the next request, they would be its answer for anybody.
        assert talker.spoken.wait(10)
        assert other.ask(request(there.url("/"))).body == b"clean"
    check_others(running, there.url("/"))
