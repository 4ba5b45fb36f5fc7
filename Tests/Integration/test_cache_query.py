"""Responses to QUERY, which are cached by the content of the request
(draft-ietf-httpbis-safe-method-w-body)."""

from __future__ import annotations

import signal
import threading

import pytest
from support.origin import Request, reply
from support.wait import until
from support.wire import Closed, Response, Wire, drip, request

FRESH = "Cache-Control: max-age=600"
JSON = "application/json"
LIMIT = 64 << 10


def hit(response: Response) -> bool:
    return "hit" in response.cache_status


def head(url: str, *lines: str, method: str = "QUERY", **fields: str) -> bytes:
    made = request(url, method=method, **fields)
    return made[:-2] + b"".join(f"{line}\r\n".encode() for line in lines) + b"\r\n"


def query(running, url: str, body: bytes = b"q", kind: str | None = JSON, **fields) -> Response:
    if kind is not None:
        fields["Content_Type"] = kind
    return running.ask(request(url, method="QUERY", body=body, Connection="close", **fields))


class Answers:
    """An origin that answers with the method, the content and a number."""

    def __init__(self, *fields: str, status: str = "200 OK"):
        self.fields = fields or (FRESH,)
        self.status = status
        self.number = 0

    def __call__(self, seen: Request) -> bytes:
        self.number += 1
        body = b"%s %d %s" % (seen.method.encode(), self.number, seen.body[:20])
        return reply(body, self.status, *self.fields)


def test_the_same_content_is_a_hit_and_anything_else_is_not(through):
    there = through.origin(Answers())
    running = through.gateway()
    url = there.url("/a?b")
    first = query(running, url)
    assert first.body == b"QUERY 1 q"
    assert first.cache_status["fwd"] == "uri-miss" and first.cache_status["stored"]
    again = query(running, url)
    assert hit(again) and again.body == first.body
    others = [
        lambda: query(running, url, b"Q"), lambda: query(running, url, b"qq"),
        lambda: query(running, url, kind="text/plain"),
        lambda: query(running, url, Content_Encoding="identity"),
        lambda: query(running, there.url("/a")),
        lambda: running.get(url),
        lambda: running.ask(request(url, method="POST", body=b"q", Content_Type=JSON)),
    ]
    for other in others[:-1]:
        assert not hit(other())
    for other in others[:-1]:
        assert hit(other()), "each has an entry of its own"
    assert query(running, url).body == first.body
    assert running.get(url).body.startswith(b"GET")
    assert not hit(others[-1]())


def test_content_that_is_not_part_of_the_key_is_passed_and_not_stored(through):
    there = through.origin(Answers())
    running = through.gateway()
    url = there.url("/")

    def passes(response: Response) -> None:
        assert response.status == 200 and response.body.startswith(b"QUERY")
        assert response.cache_status["fwd"] == "bypass"
        assert response.cache_status["detail"] == "request-content"

    long = b"x" * (LIMIT + 1)
    for _ in range(2):
        passes(query(running, url, kind=None))
        passes(query(running, url, Range="bytes=0-1"))
        passes(query(running, url, long))
        assert there.requests[-1].body == long
        lines = ("Transfer-Encoding: chunked", f"Content-Type: {JSON}", "Connection: close")
        data = b"%x\r\n%s\r\n0\r\n\r\n" % (len(long), long)
        passes(running.ask(head(url, *lines) + data))
        assert there.requests[-1].body == long
        passes(running.ask(head(url, *lines) + b"1\r\nq\r\n0\r\nX-Sum: 1\r\n\r\n"))
        assert there.requests[-1].body == b"q"
    at_limit = b"x" * LIMIT
    assert not hit(query(running, url, at_limit))
    assert hit(query(running, url, at_limit))


def test_chunks_do_not_matter_and_the_content_may_be_empty(through):
    there = through.origin(Answers())
    running = through.gateway()
    url = there.url("/")
    lines = ("Transfer-Encoding: chunked", f"Content-Type: {JSON}", "Connection: close")
    first = running.ask(head(url, *lines) + b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n")
    assert first.body == b"QUERY 1 abc"
    assert hit(running.ask(head(url, *lines) + b"3;x=y\r\nabc\r\n0\r\n\r\n"))
    assert hit(query(running, url, b"abc"))
    assert not hit(query(running, url, b""))
    assert hit(query(running, url, b""))


@pytest.mark.parametrize(("method", "target"), [
    ("POST", "/"), ("PUT", "/"), ("DELETE", "/"), ("POST", "/elsewhere")])
def test_unsafe_methods_invalidate_the_results(through, method, target):
    content = Answers()
    there = through.origin(content)
    running = through.gateway()
    url = there.url("/")
    for body in (b"a", b"b"):
        query(running, url, body)
        assert hit(query(running, url, body))
    content.fields = (FRESH, "Location: /")
    running.ask(request(there.url(target), method=method, Connection="close"))
    for body in (b"a", b"b"):
        assert not hit(query(running, url, body))


def test_a_result_that_an_unsafe_method_overtakes_is_not_stored(through):
    content = Answers()
    asked, release = threading.Event(), threading.Event()

    def script(seen: Request) -> bytes:
        data = content(seen)
        if content.number == 1:
            asked.set()
            release.wait(20)
        return data

    there = through.origin(script)
    running = through.gateway()
    url = there.url("/")
    made = request(url, method="QUERY", body=b"q", Content_Type=JSON)
    with running.wire() as wire:
        wire.send(made)
        assert asked.wait(20)
        running.ask(request(url, method="POST", body=b"", Connection="close"))
        release.set()
        assert wire.read().body == b"QUERY 1 q"
    after = query(running, url)
    assert not hit(after) and after.body == b"QUERY 3 q"
    assert hit(query(running, url))


@pytest.mark.ways("forward")
def test_a_query_invalidates_nothing_and_is_not_stored_under_its_content_location(through):
    there = through.origin(Answers(FRESH, "Content-Location: /result"))
    running = through.gateway()
    assert not hit(running.get(there.url("/")))
    assert not hit(running.get(there.url("/result")))
    query(running, there.url("/"))
    assert hit(running.get(there.url("/"))) and hit(running.get(there.url("/result")))
    assert running.get(there.url("/result")).body == b"GET 2 "


@pytest.mark.parametrize("size", [5, 40_000, 3_000_000])
def test_results_are_there_after_a_restart(gateway, origin, size):
    there = origin(lambda seen: reply(
        seen.body[:1] * size, "200 OK", FRESH, "Vary: Accept"))
    running = gateway({"workers": 1})
    url = there.url("/")
    for body in (b"a", b"b"):
        query(running, url, body, Accept="text/html")
    running.restart()
    running.wait_for_disk()
    for body in (b"a", b"b", b"a"):
        response = query(running, url, body, Accept="text/html")
        assert hit(response) and response.body == body * size
    assert not hit(query(running, url, b"a", Accept="text/plain"))
    assert not hit(query(running, url, b"c", Accept="text/html"))
    assert not hit(running.get(url, Accept="text/html"))
    running.ask(request(url, method="DELETE", Connection="close"))
    running.restart()
    running.wait_for_disk()
    assert not hit(query(running, url, b"a", Accept="text/html"))


def test_a_result_is_for_all_workers(gateway, origin):
    there = origin(Answers())
    running = gateway({"workers": 2})
    url = there.url("/")
    first = query(running, url)
    for _ in range(20):
        again = query(running, url)
        assert hit(again) and again.body == first.body
    assert len(there.requests) == 1


def test_a_request_may_arrive_byte_by_byte(gateway, origin):
    there = origin(Answers())
    running = gateway({"workers": 1})
    whole = request(there.url("/"), method="QUERY", body=b"abcdef", Content_Type=JSON)
    for expected in (False, True, True):
        with Wire(running.proxy) as wire:
            drip(wire, whole, 0.001)
            response = wire.read()
            assert (hit(response), response.body) == (expected, b"QUERY 1 abcdef")
            # The connection is still of use.
            wire.send(whole)
            assert hit(wire.read())


@pytest.mark.ways("forward")
def test_requests_follow_each_other_on_a_connection(through):
    there = through.origin(Answers())
    running = through.gateway()
    url = there.url("/")
    with running.wire() as wire:
        wire.send(b"".join(
            request(url, method="QUERY", body=body, Content_Type=JSON)
            for body in (b"a", b"b", b"a")) + request(url))
        bodies = [wire.read().body for _ in range(4)]
    assert bodies == [b"QUERY 1 a", b"QUERY 2 b", b"QUERY 1 a", b"GET 3 "]


@pytest.mark.ways("forward")
def test_a_client_that_leaves_within_the_content_asks_for_nothing(through):
    there = through.origin(Answers())
    running = through.gateway()
    url = there.url("/")
    wire = running.wire()
    wire.send(head(url, "Content-Length: 10", f"Content-Type: {JSON}") + b"abc")
    wire.close()
    assert query(running, url, b"abc").body == b"QUERY 1 abc"
    assert [seen.body for seen in there.requests] == [b"abc"]


@pytest.mark.ways("forward", "interception")
@pytest.mark.parametrize("size", [5, LIMIT + 1])
def test_a_client_that_waits_for_100_is_asked_for_the_content(through, size):
    there = through.origin(Answers())
    running = through.gateway()
    body = b"e" * size
    for expected in (False, size == 5):
        with running.wire() as wire:
            wire.send(head(there.url("/"), "Transfer-Encoding: chunked", f"Content-Type: {JSON}",
                           "Expect: 100-continue"))
            assert wire.read_head().status == 100
            wire.send(b"%x\r\n%s\r\n0\r\n\r\n" % (size, body))
            response = wire.read_final()
            assert response.status == 200 and hit(response) == expected
    assert all(seen.body == body and "expect" not in seen for seen in there.requests)


def test_authorization_counts_as_for_get(through):
    content = Answers()
    there = through.origin(content)
    running = through.gateway()
    url = there.url("/")
    query(running, url, Authorization="Basic eDp5")
    assert not hit(query(running, url)), "it was not stored"
    assert not hit(query(running, url, Authorization="Basic eDp5")), "nor used for a user"
    content.fields = ("Cache-Control: max-age=600, public",)
    query(running, url, b"b", Authorization="Basic eDp5")
    assert hit(query(running, url, b"b"))
    assert hit(query(running, url, b"b", Authorization="Basic eDp6"))


@pytest.mark.ways("forward")
def test_directives_of_the_request_count_as_for_get(through):
    there = through.origin(Answers())
    running = through.gateway()
    url = there.url("/")
    assert query(running, url, Cache_Control="only-if-cached").status == 504
    query(running, url, Cache_Control="no-store")
    assert not hit(query(running, url)), "it was not stored"
    assert hit(query(running, url, Cache_Control="only-if-cached"))
    assert not hit(query(running, url, Cache_Control="max-age=0"))
    assert len(there.requests) == 3


def test_a_stale_result_is_validated_with_the_content(through):
    content = Answers("Cache-Control: max-age=0, stale-while-revalidate=600", 'ETag: "a"')
    there = through.origin(content)
    running = through.gateway()
    url = there.url("/")
    assert query(running, url).body == b"QUERY 1 q"
    content.status = "304 Not Modified"
    response = query(running, url)
    assert (response.status, response.body) == (200, b"QUERY 1 q")
    asked = there.requests[-1]
    assert (asked.get("if-none-match"), asked.body) == ('"a"', b"q")
    content.status, content.fields = "200 OK", (FRESH, 'ETag: "b"')
    assert query(running, url).body == b"QUERY 3 q"
    assert hit(query(running, url))
    assert query(running, url, If_None_Match='"b"').status == 304
    assert all(seen.method == "QUERY" for seen in there.requests)


@pytest.mark.ways("forward")
def test_a_304_about_another_result_is_asked_again_with_the_content(through):
    content = Answers("Cache-Control: max-age=0", 'ETag: "a"')
    there = through.origin(content)
    running = through.gateway()

    def other(seen: Request) -> bytes:
        if "if-none-match" in seen:
            return reply(b"", "304 Not Modified", 'ETag: "b"', length=False)
        return reply(b"new " + seen.body, "200 OK", FRESH)

    assert query(running, there.url("/")).body == b"QUERY 1 q"
    there.handler = other
    assert query(running, there.url("/")).body == b"new q"
    assert hit(query(running, there.url("/")))


@pytest.mark.ways("forward")
def test_a_query_is_sent_again_when_a_reused_connection_is_dead(through):
    first = threading.Event()

    def handler(seen: Request) -> bytes | None:
        if seen.target.endswith("/b") and not first.is_set():
            first.set()
            return None
        return reply(b"%s" % seen.body, "200 OK", FRESH)

    there = through.origin(handler)
    running = through.gateway()
    with running.wire() as wire:
        for path, body in (("/a", b"1"), ("/b", b"2")):
            wire.send(request(there.url(path), method="QUERY", body=body, Content_Type=JSON))
            assert wire.read().body == body
    assert [seen.body for seen in there.requests] == [b"1", b"2", b"2"]


@pytest.mark.ways("forward")
def test_many_contents_of_one_url_do_not_drive_out_the_response_to_get(through):
    there = through.origin(Answers())
    running = through.gateway()
    url = there.url("/")
    running.get(url)
    for number in range(80):
        query(running, url, b"%d" % number)
    assert hit(running.get(url))
    assert hit(query(running, url, b"79"))
    kept = sum(hit(query(running, url, b"%d" % number, Cache_Control="only-if-cached"))
               for number in range(80))
    assert kept == 64


@pytest.mark.ways("forward")
def test_content_that_cannot_be_parsed_is_answered_with_400(through):
    there = through.origin(Answers())
    running = through.gateway()
    with running.wire() as wire:
        wire.send(head(there.url("/"), "Transfer-Encoding: chunked", f"Content-Type: {JSON}"))
        wire.send(b"1\r\nq\r\nxyz\r\n")
        try:
            assert wire.read().status == 400
        except Closed:
            pytest.fail("there was no response")
    assert there.requests == []


def test_a_reload_while_content_arrives_counts(gateway, origin):
    there = origin(Answers())
    running = gateway({"workers": 1})
    url = there.url("/")
    with Wire(running.proxy) as wire:
        wire.send(head(url, "Content-Length: 4", f"Content-Type: {JSON}", "X-A: 1"))
        wire.send(b"ab")
        running.write_config({**running.config, "cache": {
            **running.config.get("cache", {}), "bypassFields": ["x-a"]}})
        running.signal(signal.SIGHUP)
        until(lambda: running.metric("pinfold_config_generation") == 2, "reloaded")
        running.get(there.url("/other"))
        wire.send(b"cd")
        response = wire.read()
        assert response.body == b"QUERY 2 abcd"
        assert "stored" not in response.cache_status
    assert not hit(query(running, url, b"abcd"))
    assert hit(query(running, url, b"abcd"))
