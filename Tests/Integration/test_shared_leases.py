"""Of the gateways that share a cache, one asks the server for what none of them has."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time

import pytest
from support.fleet import get, is_shared_hit, stored, wait_shared
from support.gateway import Gateway
from support.origin import OriginConnection, Request, reply
from support.wait import SLOWDOWN, until
from support.wire import Wire, request

FRESH = "Cache-Control: max-age=600"


def waits_for(duration: str) -> dict:
    """A configuration with `cache.shared.wait`."""
    return {"timeouts": {"collapse": "60s"}, "cache": {"shared": {"wait": duration}}}


# However busy the machine is, nobody waits in vain.
PATIENT = waits_for("60s")


class Held:
    """Answers with `answer(request)` when released; knows what it was asked."""

    def __init__(self, answer=lambda _: reply(b"whole", "200 OK", FRESH)):
        self.answer = answer
        self.asked: list[Request] = []
        self.release = threading.Event()

    def __call__(self, connection: OriginConnection) -> None:
        while (seen := connection.read_request()) is not None:
            self.asked.append(seen)
            self.release.wait(60)
            connection.send(self.answer(seen))

    def wait_asked(self, count: int = 1) -> None:
        until(lambda: len(self.asked) >= count, lambda: f"asked {count}: {self.asked}", 20)


class Together:
    """Answers only when `count` requests are there at the same time."""

    def __init__(self, count: int, *fields: str):
        self.barrier = threading.Barrier(count)
        self.fields = fields

    def __call__(self, connection: OriginConnection) -> None:
        while connection.read_request() is not None:
            self.barrier.wait(20 * SLOWDOWN)
            connection.send(reply(b"mine", "200 OK", *self.fields))


def waiting(running: Gateway) -> float:
    """Requests that wait for another gateway."""
    return running.metric("pinfold_cache_shared_waiting_lookups")


def leases(running: Gateway) -> float:
    return running.metric("pinfold_cache_shared_leases_total")


def waits(running: Gateway, result: str) -> float:
    return running.metric("pinfold_cache_shared_waits_total", result=result)


@contextlib.contextmanager
def asking(gateways, url: str, **fields: str):
    """A client of each gateway, in turn, that has sent the same request."""
    wires: list[Wire] = []
    try:
        for running in gateways:
            wires.append(running.wire())
            wires[-1].send(request(url, **fields))
        yield wires
    finally:
        for wire in wires:
            wire.close()


@contextlib.contextmanager
def leading(fleet, there: Held, url: str):
    """The first gateway asks the server, and another one waits for it: their clients."""
    with asking([fleet[0]], url) as first:
        there.wait_asked()
        with asking([fleet[1]], url) as second:
            until(lambda: waiting(fleet[1]) == 1, "the other one waits", 20)
            yield first[0], second[0]


@pytest.mark.large
@pytest.mark.slow
def test_two_thousand_clients_of_three_gateways_ask_the_server_once(fleet, scripted_origin):
    count = 2000
    body = bytes(range(256)) * 4096
    there = Held(lambda _: reply(body, "200 OK", FRESH))
    url = scripted_origin(there).url("/")
    three = fleet(3, PATIENT)
    with asking(itertools.islice(itertools.cycle(three), count), url) as wires:
        until(lambda: sum(waiting(one) + one.metric("pinfold_cache_collapse_waits_total")
                          for one in three) >= count - 1, "all but one wait", 60)
        there.release.set()
        for wire in wires:
            assert wire.read().body == body
    assert len(there.asked) == 1
    assert sum(leases(one) for one in three) == 1
    assert sum(waits(one, "answered") for one in three) >= count // 3 * 2
    assert all(waiting(one) == 0 for one in three)


def test_a_response_that_was_waited_for_is_one_of_the_shared_cache(fleet, scripted_origin):
    there = Held()
    url = scripted_origin(there).url("/")
    two = fleet(2, PATIENT)
    with leading(two, there, url) as (first, second):
        there.release.set()
        assert first.read().cache_status["stored"]
        response = second.read()
        assert is_shared_hit(response) and response.body == b"whole"
    assert len(there.asked) == 1


def test_waiting_for_another_gateway_and_then_within_one_is_waiting_once(fleet, scripted_origin):
    """`timeouts.collapse` is for both together."""
    there = Held()
    url = scripted_origin(there).url("/")
    unit = min(SLOWDOWN, 4)
    two = fleet(2, {"timeouts": {"collapse": f"{3000 * unit:.0f}ms"},
                    "cache": {"shared": {"wait": f"{2000 * unit:.0f}ms"}}})
    with leading(two, there, url) as (_, second):
        begun = time.monotonic()
        with asking([two[1]], url) as (third,):
            until(lambda: waiting(two[1]) == 2, "both wait for the first one")
            # One of them asks for both, and the other one waits for it for what is left.
            there.wait_asked(2)
            until(lambda: two[1].metric("pinfold_cache_collapse_waits_total") == 1, "the other waits", 5)
            there.wait_asked(3)
            assert time.monotonic() - begun < 4.2 * unit
            there.release.set()
            assert second.read().body == third.read().body == b"whole"


def test_another_gateway_asks_when_the_one_that_did_is_killed(fleet, scripted_origin):
    there = Held()
    url = scripted_origin(there).url("/")
    two = fleet(2, PATIENT)
    with leading(two, there, url) as (_, second):
        two[0].kill()
        there.wait_asked(2)
        assert leases(two[1]) == 1
        there.release.set()
        assert second.read().body == b"whole"


def test_another_gateway_asks_when_the_one_that_did_is_stopped(fleet, scripted_origin):
    there = Held()
    url = scripted_origin(there).url("/")
    two = fleet(2, PATIENT)
    with leading(two, there, url) as (first, second):
        first.close()
        two[0].stop(patience=0.1)
        there.wait_asked(2)
        there.release.set()
        assert second.read().body == b"whole"


def test_another_gateway_asks_when_the_servers_response_to_the_first_breaks_off(
        fleet, scripted_origin):
    release = threading.Event()
    asked = 0

    def script(connection: OriginConnection) -> None:
        nonlocal asked
        while connection.read_request() is not None:
            asked += 1
            if asked == 1:
                release.wait(60)
                connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n" + FRESH.encode()
                                + b"\r\n\r\nhalf")
                connection.close()
                return
            connection.send(reply(b"whole", "200 OK", FRESH))

    url = scripted_origin(script).url("/")
    two = fleet(2, PATIENT)
    with asking([two[0]], url):
        until(lambda: asked, "the server is asked", 20)
        with asking([two[1]], url) as second:
            until(lambda: waiting(two[1]) == 1, "the other one waits", 20)
            release.set()
            assert second[0].read().body == b"whole"
    assert leases(two[1]) == 1


def test_what_may_not_be_stored_is_asked_for_by_all_without_waiting(fleet, scripted_origin):
    there = Held(lambda _: reply(b"mine", "200 OK", "Cache-Control: no-store"))
    url = scripted_origin(there).url("/")
    three = fleet(3, PATIENT)
    with asking(three, url) as wires:
        until(lambda: sum(waiting(one) for one in three) == 2, "two wait", 20)
        there.release.set()
        assert all(wire.read().body == b"mine" for wire in wires)
    assert len(there.asked) == 3
    assert sum(waits(one, "none") for one in three) == 2
    # For a while nobody waits: all are with the server at the same time.
    there.release.clear()
    with asking(three, url) as wires:
        there.wait_asked(6)
        there.release.set()
        assert all(wire.read().body == b"mine" for wire in wires)
    assert sum(leases(one) for one in three) == 1


def test_one_gateway_has_a_stale_response_confirmed(fleet, scripted_origin):
    def answer(seen: Request) -> bytes:
        if "if-none-match" in seen:
            return reply(b"", "304 Not Modified", FRESH, 'ETag: "v"', length=False)
        return reply(b"whole", "200 OK", "Cache-Control: max-age=2", 'ETag: "v"')

    there = Held(answer)
    there.release.set()
    url = scripted_origin(there).url("/")
    three = fleet(3, PATIENT)
    for one in three:
        assert get(one, url).body == b"whole"
    for one in three:
        until(lambda one=one: get(one, url, Cache_Control="only-if-cached").status == 504,
              "it is stale", 20)
    there.asked.clear()
    there.release.clear()
    with asking(three, url) as wires:
        until(lambda: sum(waiting(one) for one in three) == 2, "two wait", 20)
        there.release.set()
        responses = [wire.read() for wire in wires]
    assert [response.body for response in responses] == [b"whole"] * 3
    assert len(there.asked) == 1
    assert sum(is_shared_hit(response) for response in responses) == 2


def test_what_has_to_be_confirmed_each_time_is_not_waited_for_each_time(fleet, scripted_origin):
    def answer(seen: Request) -> bytes:
        if "if-none-match" in seen:
            return reply(b"", "304 Not Modified", "Cache-Control: max-age=0", 'ETag: "v"',
                         length=False)
        return reply(b"whole", "200 OK", "Cache-Control: max-age=0", 'ETag: "v"')

    there = Held(answer)
    there.release.set()
    url = scripted_origin(there).url("/")
    two = fleet(2, PATIENT)
    for one in two:
        assert get(one, url).body == b"whole"
        assert get(one, url).body == b"whole"
    before = len(there.asked)
    there.release.clear()
    with asking(two, url) as wires:
        there.wait_asked(before + 2)
        there.release.set()
        assert all(wire.read().body == b"whole" for wire in wires)


def test_what_is_too_large_for_the_engine_is_asked_for_by_all(fleet, scripted_origin):
    there = Held(lambda _: reply(bytes(5000), "200 OK", FRESH))
    url = scripted_origin(there).url("/")
    two = fleet(2, PATIENT, maximumObject="1KiB")
    with leading(two, there, url) as (first, second):
        there.release.set()
        assert first.read().body == second.read().body == bytes(5000)
    assert len(there.asked) == 2
    assert waits(two[1], "timed_out") == 0


def test_nobody_waits_for_longer_than_is_configured(fleet, scripted_origin):
    there = Held()
    url = scripted_origin(there).url("/")
    two = fleet(2, waits_for("300ms"))
    with asking([two[0]], url) as first:
        there.wait_asked()
        began = time.monotonic()
        with asking([two[1]], url) as second:
            there.wait_asked(2)
            assert time.monotonic() - began >= 0.3
            there.release.set()
            assert first[0].read().body == second[0].read().body == b"whole"
    assert waits(two[1], "timed_out") == 1
    assert two[1].metric("pinfold_cache_shared_up") == 1


def test_gateways_need_not_wait_for_each_other(fleet, scripted_origin):
    url = scripted_origin(Together(2, FRESH)).url("/")
    two = fleet(2, waits_for("0s"))
    with asking(two, url) as wires:
        assert all(wire.read().body == b"mine" for wire in wires)
    assert leases(two[0]) == leases(two[1]) == 0


@pytest.mark.parametrize("fields", [
    {"Cookie": "session=1"}, {"Authorization": "Basic eDp5"}, {"Cache_Control": "no-cache"},
    {"Range": "bytes=0-1"},
], ids=lambda fields: next(iter(fields)))
def test_what_may_be_for_one_client_is_not_waited_for(fleet, scripted_origin, fields):
    url = scripted_origin(Together(2, FRESH)).url("/")
    two = fleet(2, PATIENT)
    with asking(two, url, **fields) as wires:
        assert all(wire.read().body == b"mine" for wire in wires)
    assert leases(two[0]) == leases(two[1]) == 0


def test_who_waits_goes_on_at_once_when_the_engine_is_gone(fleet, engine, scripted_origin):
    there = Held()
    url = scripted_origin(there).url("/")
    two = fleet(2, PATIENT)
    with leading(two, there, url) as (first, second):
        engine.stop()
        there.wait_asked(2)
        there.release.set()
        assert first.read().body == second.read().body == b"whole"
    engine.start()
    for one in two:
        wait_shared(one)
    assert get(two[0], url + "other").body == b"whole"


def test_who_waits_goes_on_at_once_when_the_url_is_purged(fleet, scripted_origin):
    numbers = itertools.count(1)
    there = Held(lambda _: reply(b"%d" % next(numbers), "200 OK", FRESH))
    url = scripted_origin(there).url("/")
    two = fleet(2, PATIENT)
    with leading(two, there, url) as (first, second):
        assert get(two[1], url, method="PURGE").status == 200
        there.wait_asked(2)
        there.release.set()
        assert {first.read().body, second.read().body} == {b"1", b"2"}
    until(lambda: stored(two[1]) == 1, "what was asked for after the purge is in the engine", 20)
    # What was asked for before it is found by nobody.
    assert get(two[0], url).body == get(two[1], url).body


def test_a_client_that_leaves_while_it_waits_leaves_nothing_behind(fleet, engine, scripted_origin):
    there = Held()
    url = scripted_origin(there).url("/")
    two = fleet(2, PATIENT)
    with leading(two, there, url) as (first, second):
        second.reset()
        until(lambda: two[1].metric("pinfold_client_connections_open") <= 1, "it left", 20)
        there.release.set()
        assert first.read().body == b"whole"
        until(lambda: waiting(two[1]) == 0, "nobody waits", 20)
    until(lambda: not engine.keys("*1:l:*"), "there is no lease", 20)
    assert len(there.asked) == 1


def test_a_lease_that_was_forged_stops_nobody(fleet, engine, scripted_origin):
    there = Held()
    there.release.set()
    origin = scripted_origin(there)
    one = fleet(1, PATIENT)[0]
    held = Held(there.answer)
    slow = scripted_origin(held).url("/")
    with asking([one], slow) as wires:
        until(lambda: engine.keys("*1:l:*"), "there is a lease", 20)
        name = engine.keys("*1:l:*")[0]
        record = bytearray(engine.command("GET", name))
        held.release.set()
        assert wires[0].read().body == b"whole"
    until(lambda: not engine.keys("*1:l:*"), "there is no lease", 20)
    # For the key that it was made for, changed in one place.
    record[20] ^= 1
    engine.command("SET", name, bytes(record))
    assert get(one, slow, method="PURGE").status == 200
    assert get(one, slow).body == b"whole"
    assert one.metric("pinfold_cache_shared_errors_total", reason="damaged") == 1
    assert get(one, origin.url("/")).body == b"whole"
