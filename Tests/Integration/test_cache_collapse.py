"""Misses for the same key wait for the response to the first one (RFC 9111 §4)."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest
from support.crowd import crowd
from support.gateway import Gateway, free_port
from support.origin import OriginConnection, Request, reply
from support.wait import until
from support.wire import Wire, request

FRESH = "Cache-Control: max-age=600"
# Collapsing is each worker's own: with one worker every request meets the others.
ONE = {"workers": 1}
CROWD = 12


def waiting(gateway: Gateway) -> float:
    return gateway.metric("pinfold_cache_collapse_waits_total")


def wait_for(gateway: Gateway, count: int) -> None:
    until(lambda: waiting(gateway) >= count, f"{count} requests wait")


class Held:
    """Answers with `answer(request)` when released; counts what it was asked."""

    def __init__(self, answer):
        self.answer = answer
        self.asked: list[Request] = []
        self.release = threading.Event()

    def __call__(self, connection: OriginConnection) -> None:
        while (seen := connection.read_request()) is not None:
            self.asked.append(seen)
            self.release.wait(20)
            data = self.answer(seen)
            if data is None:
                return
            connection.send(data)


class Together:
    """Answers only when `count` requests are there at the same time."""

    def __init__(self, count: int, *fields: str):
        self.barrier = threading.Barrier(count)
        self.fields = fields
        self.asked = 0

    def __call__(self, connection: OriginConnection) -> None:
        while (seen := connection.read_request()) is not None:
            self.asked += 1
            self.barrier.wait(20)
            body = b"" if seen.method == "HEAD" else b"body"
            connection.send(reply(body, "200 OK", *self.fields))


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_a_crowd_asks_the_origin_once(through, size):
    body = bytes(range(250)) * (size // 250) + b"end"
    there = Held(lambda _: reply(body, "200 OK", FRESH))
    url = through.scripted_origin(there).url("/")
    # However busy the machine is: nobody waits in vain, and the disk takes the large response,
    # for which there is no room in memory.
    running = through.gateway({**ONE, "timeouts": {"collapse": "60s"}})
    running.wait_for_disk()
    with crowd(running, url, CROWD) as wires:
        wait_for(running, CROWD - 1)
        there.release.set()
        responses = [wire.read() for wire in wires]
    assert len(there.asked) == 1
    assert all(response.body == body for response in responses)
    statuses = [response.cache_status for response in responses]
    assert all(one["fwd"] == "uri-miss" for one in statuses)
    assert sum("stored" in one for one in statuses) == 1
    assert sum("collapsed" in one for one in statuses) == CROWD - 1
    assert running.metric("pinfold_http_requests_total", cache="collapsed") == CROWD - 1


def test_what_cannot_be_stored_is_asked_for_in_parallel(through):
    first = threading.Event()
    rest = threading.Barrier(CROWD - 1)
    later = threading.Barrier(CROWD)
    asked = 0

    def script(connection: OriginConnection) -> None:
        nonlocal asked
        while connection.read_request() is not None:
            asked += 1
            if asked == 1:
                first.wait(20)
            elif asked <= CROWD:
                rest.wait(20)
            else:
                later.wait(20)
            connection.send(reply(b"mine", "200 OK", "Cache-Control: no-store"))

    url = through.scripted_origin(script).url("/")
    running = through.gateway()
    with crowd(running, url, CROWD) as wires:
        wait_for(running, CROWD - 1)
        first.set()
        assert all(wire.read().body == b"mine" for wire in wires)
    # The key is remembered: the next crowd does not wait for one of its own first.
    with crowd(running, url, CROWD) as wires:
        assert all(wire.read().body == b"mine" for wire in wires)
    assert asked == 2 * CROWD
    assert waiting(running) == CROWD - 1


def test_the_first_request_goes_on_for_the_others(through):
    there = Held(lambda _: reply(b"whole", "200 OK", FRESH))
    url = through.scripted_origin(there).url("/")
    running = through.gateway({**ONE, "timeouts": {"collapse": "60s"}})
    leader = running.wire()
    leader.send(request(url))
    until(lambda: there.asked, "the first one is under way")
    with crowd(running, url, CROWD) as wires:
        wait_for(running, CROWD)
        leader.reset()
        until(lambda: running.metric("pinfold_client_connections_open") <= CROWD + 1, "it left")
        there.release.set()
        responses = [wire.read() for wire in wires]
    assert all(response.body == b"whole" for response in responses)
    assert all("collapsed" in response.cache_status for response in responses)
    assert len(there.asked) == 1
    assert running.metric("pinfold_cache_stores_total") == 1


def test_the_next_one_leads_when_the_first_fails(through):
    first = threading.Event()
    asked = 0

    def script(connection: OriginConnection) -> None:
        nonlocal asked
        while connection.read_request() is not None:
            asked += 1
            if asked == 1:
                first.wait(20)
                return
            connection.send(reply(b"whole", "200 OK", FRESH))

    url = through.scripted_origin(script).url("/")
    running = through.gateway()
    leader = running.wire()
    leader.send(request(url))
    until(lambda: asked == 1, "the first one is under way")
    with crowd(running, url, CROWD) as wires:
        wait_for(running, CROWD)
        first.set()
        responses = [wire.read() for wire in wires]
    first.set()
    leader.close()
    assert all(response.body == b"whole" for response in responses)
    assert asked == 2
    # On a connection that was verified for a tunnel the first one is sent another time, as on any
    # that was idle, and still leads.
    leads = running.way == "interception"
    collapsed = sum("collapsed" in response.cache_status for response in responses)
    assert collapsed == CROWD - (not leads)


def test_the_wait_is_bounded(through):
    release = threading.Event()
    asked = 0

    def script(connection: OriginConnection) -> None:
        nonlocal asked
        while connection.read_request() is not None:
            asked += 1
            if asked == 1:
                release.wait(30)
            connection.send(reply(b"body", "200 OK", FRESH))

    url = through.scripted_origin(script).url("/")
    running = through.gateway({**ONE, "timeouts": {"collapse": "300ms"}})
    leader = running.wire()
    leader.send(request(url))
    until(lambda: asked == 1, "the first one is under way")
    began = time.monotonic()
    response = running.get(url)
    assert response.body == b"body"
    assert response.cache_status.get("collapsed") is None
    assert time.monotonic() - began >= 0.3
    release.set()
    assert leader.read().body == b"body"
    leader.close()


def test_collapsing_can_be_turned_off(through):
    there = Together(4, FRESH)
    url = through.scripted_origin(there).url("/")
    running = through.gateway({**ONE, "timeouts": {"collapse": "0s"}})
    with crowd(running, url, 4) as wires:
        assert all(wire.read().body == b"body" for wire in wires)
    assert there.asked == 4


@pytest.mark.parametrize(("method", "fields"), [
    ("GET", {"Cache_Control": "no-cache"}), ("GET", {"Cache_Control": "no-store"}),
    ("GET", {"Pragma": "no-cache"}), ("GET", {"Authorization": "Basic eDp5"}),
    ("GET", {"Range": "bytes=0-1", "If_Range": '"x"'}), ("GET", {"If_None_Match": '"x"'}),
    ("HEAD", {}), ("POST", {"Content_Length": "0"})])
def test_requests_with_a_mind_of_their_own_do_not_wait(through, method, fields):
    there = Together(4, FRESH)
    url = through.scripted_origin(there).url("/")
    running = through.gateway()
    with crowd(running, url, 4, method=method, **fields) as wires:
        for wire in wires:
            assert wire.read(method).status == 200
    assert there.asked == 4
    assert waiting(running) == 0


def test_variants_get_their_own_response(through):
    there = Held(lambda seen: reply(
        seen.get("x-kind").encode(), "200 OK", FRESH, "Vary: X-Kind"))
    url = through.scripted_origin(there).url("/")
    running = through.gateway()
    with crowd(running, url, 4, X_Kind="a") as some, crowd(running, url, 4, X_Kind="b") as others:
        wait_for(running, 7)
        there.release.set()
        assert all(wire.read().body == b"a" for wire in some)
        assert all(wire.read().body == b"b" for wire in others)


def test_a_stale_response_is_confirmed_once_for_a_crowd(through):
    def answer(seen: Request) -> bytes:
        if seen.get("if-none-match") == '"e"':
            return reply(b"", "304 Not Modified", FRESH, 'ETag: "e"', length=False)
        return reply(b"body", "200 OK", "Cache-Control: max-age=1", "Age: 1", 'ETag: "e"')

    there = Held(answer)
    there.release.set()
    url = through.scripted_origin(there).url("/")
    running = through.gateway()
    running.get(url)
    there.release.clear()
    with crowd(running, url, CROWD) as wires:
        wait_for(running, CROWD - 1)
        there.release.set()
        responses = [wire.read() for wire in wires]
    assert all(response.body == b"body" for response in responses)
    assert [seen.get("if-none-match") for seen in there.asked] == ["", '"e"']
    collapsed = [one for one in responses if "collapsed" in one.cache_status]
    assert len(collapsed) == CROWD - 1
    assert all(one.cache_status["fwd"] == "stale" for one in collapsed)


def test_what_is_stale_at_once_is_not_asked_for_one_by_one(through):
    """Each answer is stored, and none may be used for another request without asking."""
    rounds = threading.Barrier(CROWD - 1)
    asked = 0
    first = threading.Event()

    def script(connection: OriginConnection) -> None:
        nonlocal asked
        while connection.read_request() is not None:
            asked += 1
            if asked == 1:
                first.wait(20)
            else:
                rounds.wait(20)
            connection.send(reply(b"body", "200 OK", "Cache-Control: max-age=0", 'ETag: "e"'))

    url = through.scripted_origin(script).url("/")
    running = through.gateway()
    with crowd(running, url, CROWD) as wires:
        wait_for(running, CROWD - 1)
        first.set()
        assert all(wire.read().body == b"body" for wire in wires)
    assert asked == CROWD


def test_who_waits_may_leave(through):
    there = Held(lambda _: reply(b"body", "200 OK", FRESH))
    url = through.scripted_origin(there).url("/")
    running = through.gateway()
    with crowd(running, url, CROWD) as wires:
        wait_for(running, CROWD - 1)
        for wire in wires[1::2]:
            wire.reset()
        until(lambda: running.metric("pinfold_client_connections_open") <= CROWD // 2 + 1,
              "they are gone")
        there.release.set()
        assert all(wire.read().body == b"body" for wire in wires[::2])
    assert len(there.asked) == 1


def test_connections_go_on_after_a_wait(through):
    """A keep-alive connection serves its next request, pipelined ones included."""
    there = Held(lambda seen: reply(seen.target.encode(), "200 OK", FRESH))
    origin = through.scripted_origin(there)
    running = through.gateway()
    wires = [running.wire() for _ in range(3)]
    for wire in wires:
        wire.send(b"".join(
            part if isinstance(part, bytes) else part.encode()
            for part in (request(origin.url("/a")), request(origin.url("/b")))))
    wait_for(running, 2)
    there.release.set()
    for wire in wires:
        assert wire.read().body == b"/a"
        assert wire.read().body == b"/b"
        wire.close()
    assert sorted({seen.target for seen in there.asked}) == ["/a", "/b"]


def test_a_loop_does_not_wait_for_itself(gateway):
    """Each pass of a request would else follow the first one until it gives up."""
    port = free_port()
    running = gateway({
        **ONE, "timeouts": {"collapse": "60s"},
        "listeners": [{"name": "ring", "address": f"127.0.0.1:{port}", "kind": "reverse",
                       "upstream": f"http://127.0.0.1:{port}"}]})
    assert running.ask("GET / HTTP/1.1\r\nHost: loop.test\r\n\r\n", "ring").status == 508
    assert waiting(running) == 0


def test_another_cookie_waits_only_where_the_last_response_was_shared(through):
    # All are fresh for longer than it takes to look at them.
    there = Held(lambda _: reply(
        b"shared", "200 OK", f"Cache-Control: max-age={4 if len(there.asked) < 3 else 60}",
        'ETag: "one"'))
    url = through.scripted_origin(there).url("/")
    running = through.gateway({**ONE, "timeouts": {"collapse": "60s"}})
    with running.wire() as first, running.wire() as other, running.wire() as same:
        first.send(request(url, Cookie="a=1"))
        until(lambda: len(there.asked) == 1, "the first one is under way")
        other.send(request(url, Cookie="a=2"))
        until(lambda: len(there.asked) == 2, "what may be personal is not waited for")
        same.send(request(url, Cookie="a=1"))
        wait_for(running, 1)
        there.release.set()
        assert all(wire.read().body == b"shared" for wire in (first, other, same))
    assert len(there.asked) == 2
    until(lambda: running.get(url, **{"Cache-Control": "only-if-cached"}).status == 504,
          "it is stale")
    there.release.clear()
    with running.wire() as first, running.wire() as other:
        first.send(request(url, Cookie="a=1"))
        until(lambda: len(there.asked) == 3, "the server is asked")
        other.send(request(url, Cookie="a=2"))
        wait_for(running, 2)
        there.release.set()
        assert all(wire.read().body == b"shared" for wire in (first, other))
    assert len(there.asked) == 3


def send_with_cookies(running: Gateway, url: str, cookies: list[str], stack) -> list[Wire]:
    wires = [stack.enter_context(running.wire()) for _ in cookies]
    for wire, cookie in zip(wires, cookies):
        wire.send(request(url, **({"Cookie": cookie} if cookie else {})))
    return wires


@pytest.mark.parametrize("workers", [1, 2])
def test_of_those_with_the_same_cookies_one_asks(through, workers):
    there = Held(lambda seen: reply(
        seen.get("cookie").encode(), "200 OK", FRESH, 'ETag: "one"', "Vary: Cookie"))
    url = through.scripted_origin(there).url("/")
    running = through.gateway({"workers": workers, "timeouts": {"collapse": "60s"}})
    cookies = ["", "a=1", "a=2"] * 4
    with contextlib.ExitStack() as stack:
        wires = send_with_cookies(running, url, cookies, stack)
        until(lambda: len(there.asked) + waiting(running) >= len(cookies), "all ask or wait")
        there.release.set()
        assert [wire.read().body.decode() for wire in wires] == cookies
    # A worker does not know with which cookies another one asks for the first response.
    assert len(there.asked) <= 3 + 2 * (workers - 1)


def test_those_with_cookies_get_what_is_private_at_the_same_time(through):
    there = Held(lambda seen: reply(
        seen.get("cookie").encode(), "200 OK", "Cache-Control: private"))
    url = through.scripted_origin(there).url("/")
    running = through.gateway({"timeouts": {"collapse": "60s"}})
    cookies = ["a=1", "a=2"] * 6
    with contextlib.ExitStack() as stack:
        wires = send_with_cookies(running, url, cookies, stack)
        until(lambda: len(there.asked) + waiting(running) >= len(cookies), "all ask or wait")
        there.release.set()
        assert [wire.read().body.decode() for wire in wires] == cookies
    assert len(there.asked) == len(cookies)
