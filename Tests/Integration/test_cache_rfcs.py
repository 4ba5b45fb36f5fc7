"""What the RFCs on caching require beyond the usual life of a stored response: RFC 9111 §3.2,
§5.2.2.2, §5.2.2.4 and §5.2.2.7, responses to POST (RFC 9110 §9.3.3), and trailers."""

from __future__ import annotations

import re
import threading

import pytest
from support.gateway import ROOT
from support.origin import OriginConnection, Request, chunked, reply
from support.wait import until
from support.wire import Response, request

FRESH = "Cache-Control: max-age=600"
STALE = "Cache-Control: max-age=0"


def hit(response: Response) -> bool:
    return "hit" in response.cache_status


# A stale response that must be confirmed (RFC 9111 §5.2.2.2)


def once(*fields: str):
    """A script: the first connection gets a response, the others are closed without one."""

    def script(connection: OriginConnection) -> None:
        if connection.read_request() and connection.number == 0:
            connection.send(reply(b"old", "200 OK", *fields, "Connection: close"))

    return script


@pytest.mark.parametrize("control", [
    "must-revalidate, max-age=1", "proxy-revalidate, max-age=1", "s-maxage=1",
    "must-revalidate, max-age=1, stale-if-error=600"])
@pytest.mark.parametrize("validator", ['ETag: "a"', "X-None: 1"])
def test_a_stale_response_that_must_be_confirmed_is_a_504_if_it_cannot_be(
        through, control, validator):
    there = through.scripted_origin(once(f"Cache-Control: {control}", "Age: 0", validator))
    running = through.gateway()
    assert running.get(there.url("/")).body == b"old"
    assert hit(running.get(there.url("/"))), "still fresh"

    def stale() -> Response | None:
        response = running.get(there.url("/"), Accept="application/json")
        return None if response.body == b"old" else response

    response = until(stale, "it is stale")
    assert response.status == 504
    assert response.json()["reason"] == "must-revalidate"
    gone = "stream" if through.way == "http2-server" else "connection"
    assert gone in response.json()["message"], "it says why the server is not reached"
    assert response.proxy_status["error"] == "destination_unavailable"
    assert response.cache_status["fwd"] == "stale"


@pytest.mark.ways("forward")
def test_a_stale_response_that_need_not_be_confirmed_leaves_the_failure_as_it_is(through):
    there = through.scripted_origin(once(STALE, 'ETag: "a"'))
    running = through.gateway()
    assert running.get(there.url("/")).body == b"old"
    response = running.get(there.url("/"), Accept="application/json")
    assert (response.status, response.json()["reason"]) == (502, "upstream-closed")


@pytest.mark.ways("forward")
def test_a_fresh_response_that_the_client_does_not_want_leaves_the_failure_as_it_is(through):
    there = through.scripted_origin(
        once("Cache-Control: must-revalidate, max-age=600", 'ETag: "a"'))
    running = through.gateway()
    assert running.get(there.url("/")).body == b"old"
    response = running.get(there.url("/"), Accept="application/json", Cache_Control="no-cache")
    assert (response.status, response.json()["reason"]) == (502, "upstream-closed")


# Cookies of a 304 (RFC 9111 §3.2, §4.3.4)


class Cookies:
    """An origin that confirms what is stored with a cookie for whoever asks."""

    def __init__(self, *stored: str, confirmed: str = FRESH):
        self.stored = stored
        self.confirmed = confirmed
        self.release = threading.Event()
        self.release.set()

    def __call__(self, seen: Request) -> bytes:
        if seen.get("if-none-match") != '"e"':
            return reply(b"0123456789", "200 OK", 'ETag: "e"', *self.stored)
        self.release.wait(20)
        return reply(b"", "304 Not Modified", self.confirmed, 'ETag: "e"',
                     f"Set-Cookie: for={seen.get('x-who', 'nobody')}; HttpOnly",
                     "Set-Cookie2: old=1", "X-New: 1", length=False)


@pytest.mark.parametrize("stored", [
    (STALE,), ("Cache-Control: max-age=0, public",),
    ("Cache-Control: max-age=0, public", "Set-Cookie: all=1")])
def test_a_cookie_of_a_304_is_for_the_client_that_asked(through, stored):
    content = Cookies(*stored, confirmed="Cache-Control: max-age=600, public")
    there = through.origin(content)
    running = through.gateway()
    of_all = [field.partition(": ")[2] for field in stored[1:]]
    running.get(there.url("/"))
    first = running.get(there.url("/"), X_Who="first")
    assert first.cache_status["fwd-status"] == 304
    assert first.body == b"0123456789"
    assert first.all("set-cookie") == [*of_all, "for=first; HttpOnly"]
    assert first.all("set-cookie2") == ["old=1"]
    second = running.get(there.url("/"), X_Who="second")
    assert hit(second) and second.get("x-new") == "1"
    assert second.all("set-cookie") == of_all
    assert "set-cookie2" not in second


@pytest.mark.parametrize("fields, status", [
    ({"If-None-Match": '"e"'}, 304), ({"Range": "bytes=2-3"}, 206),
    ({"Range": "bytes=50-"}, 416)])
def test_a_cookie_of_a_304_is_sent_whatever_the_client_asked_for(through, fields, status):
    there = through.origin(Cookies(STALE))
    running = through.gateway()
    running.get(there.url("/"))
    response = running.get(there.url("/"), X_Who="me", **fields)
    assert response.status == status
    assert response.all("set-cookie") == ["for=me; HttpOnly"]
    assert "set-cookie" not in running.get(there.url("/"), **fields)


def test_those_who_waited_for_a_304_do_not_get_its_cookie(through):
    content = Cookies(STALE)
    there = through.origin(content)
    running = through.gateway()
    running.get(there.url("/"))
    content.release.clear()
    answers: list[Response] = []

    def ask(who: str) -> None:
        answers.append(running.get(there.url("/"), X_Who=who))

    def waits() -> float:
        return running.metric("pinfold_cache_collapse_waits_total")

    before = waits()
    waiting = [threading.Thread(target=ask, args=(f"client{number}",)) for number in range(4)]
    waiting[0].start()
    until(lambda: len(there.requests) == 2, "the first one asks")
    for one in waiting[1:]:
        one.start()
    until(lambda: waits() == before + 3, "the others wait")
    content.release.set()
    for one in waiting:
        one.join()
    assert len(there.requests) == 2
    cookies = [one.get("set-cookie") for one in answers]
    assert sorted(cookies) == ["", "", "", "for=client0; HttpOnly"]


@pytest.mark.ways("forward")
def test_a_cookie_of_a_304_in_the_background_is_dropped(through):
    there = through.origin(Cookies("Cache-Control: max-age=0, stale-while-revalidate=600"))
    running = through.gateway()
    running.get(there.url("/"))
    assert "set-cookie" not in running.get(there.url("/"), X_Who="me")
    response = until(
        lambda: found if (found := running.get(there.url("/"))).get("x-new") else None,
        "it is confirmed")
    assert "set-cookie" not in response


# Fields that private and no-cache name (RFC 9111 §5.2.2.4, §5.2.2.7)


def named(control: str, *fields: str, etag: bool = True):
    """An origin whose response has fields for whoever asks; it confirms with them, too."""

    def handler(seen: Request) -> bytes:
        lines = [f"Cache-Control: {control}", f"X-User: {seen.get('x-who')}", *fields]
        if etag and seen.get("if-none-match") == '"e"':
            return reply(b"", "304 Not Modified", 'ETag: "e"', *lines, length=False)
        return reply(b"for all", "200 OK", *(['ETag: "e"'] if etag else []), *lines)

    return handler


@pytest.mark.parametrize("argument", ['"x-user"', '"set-cookie, X-User"', "x-user"])
def test_a_field_that_private_names_is_for_the_first_client(through, argument):
    there = through.origin(named(f"max-age=600, private={argument}", "X-All: 1"))
    running = through.gateway()
    first = running.get(there.url("/"), X_Who="first")
    assert first.get("x-user") == "first"
    assert "stored" in first.cache_status
    second = running.get(there.url("/"), X_Who="second")
    assert hit(second) and second.body == b"for all"
    assert "x-user" not in second and second.get("x-all") == "1"


def test_a_cookie_that_private_names_does_not_keep_the_rest_from_being_stored(through):
    there = through.origin(
        named('max-age=600, private="set-cookie"', "Set-Cookie: session=1", etag=False))
    running = through.gateway()
    assert running.get(there.url("/")).get("set-cookie") == "session=1"
    second = running.get(there.url("/"))
    assert hit(second) and "set-cookie" not in second


def test_what_private_names_comes_with_a_304_for_the_client_that_asked(through):
    there = through.origin(named('max-age=0, private="x-user"'))
    running = through.gateway()
    running.get(there.url("/"), X_Who="first")
    second = running.get(there.url("/"), X_Who="second")
    assert second.cache_status["fwd-status"] == 304
    assert second.all("x-user") == ["second"]
    stale = running.get(there.url("/"), Cache_Control="max-stale", X_Who="third")
    assert hit(stale) and "x-user" not in stale


def test_a_field_that_no_cache_names_is_left_out_unless_the_response_was_validated(through):
    there = through.origin(named('max-age=600, no-cache="x-user"', "X-All: 1"))
    running = through.gateway()
    assert running.get(there.url("/"), X_Who="first").get("x-user") == "first"
    for fields in ({}, {"Range": "bytes=0-2"}, {"If-None-Match": '"e"'}):
        second = running.get(there.url("/"), X_Who="second", **fields)
        assert hit(second) and "x-user" not in second
    validated = running.get(there.url("/"), X_Who="third", Cache_Control="no-cache")
    assert validated.cache_status["fwd-status"] == 304
    assert validated.all("x-user") == ["third"]
    last = running.get(there.url("/"))
    assert hit(last) and "x-user" not in last and last.get("x-all") == "1"


@pytest.mark.ways("forward")
@pytest.mark.parametrize("argument", ['=""', '="content-length"', '="a b"', '="etag, x-user"'])
def test_a_list_that_cannot_be_followed_is_about_the_whole_response(through, argument):
    there = through.origin(named(f"max-age=600, private{argument}"))
    running = through.gateway()
    assert running.get(there.url("/a")).cache_status["detail"] == "private"
    there = through.origin(named(f"max-age=600, no-cache{argument}"))
    running.get(there.url("/b"), X_Who="first")
    validated = running.get(there.url("/b"), X_Who="second")
    assert validated.cache_status["fwd-status"] == 304


def test_what_is_left_out_is_left_out_after_a_restart(gateway, origin):
    there = origin(named('max-age=600, no-cache="x-user", private="x-own"', "X-Own: 1"))
    running = gateway({"workers": 1})
    running.get(there.url("/"), X_Who="first")
    running.restart()
    running.wait_for_disk()
    second = running.get(there.url("/"))
    assert hit(second) and "x-user" not in second and "x-own" not in second


# POST whose response is what a GET would get (RFC 9110 §9.3.3)


def post(running, url: str, body: bytes = b"q", **fields: str) -> Response:
    return running.ask(request(url, method="POST", body=body, Connection="close", **fields))


class Posts:
    """An origin that answers each request with its number; POST with these fields."""

    def __init__(self, *fields: str, status: str = "200 OK"):
        self.fields = fields
        self.status = status

    def __call__(self, seen: Request) -> bytes:
        self.number = getattr(self, "number", 0) + 1
        body = f"{seen.method} {self.number}".encode()
        if seen.method == "POST":
            return reply(body, self.status, *self.fields)
        return reply(body, "200 OK", FRESH)


@pytest.mark.parametrize("location", ["/a/x?y", "x?y", "./../a/x?y#part", "{url}"])
def test_the_response_to_a_post_answers_get_and_head(through, location):
    content = Posts(FRESH, 'ETag: "p"')
    there = through.origin(content)
    running = through.gateway()
    url = there.url("/a/x?y")
    content.fields += (f"Content-Location: {location.replace('{url}', url)}",)
    assert running.get(url).body == b"GET 1"
    first = post(running, url)
    assert first.body == b"POST 2"
    assert first.cache_status["fwd"] == "method" and first.cache_status["stored"]
    for fields, status, body in (
            ({}, 200, b"POST 2"), ({"Range": "bytes=0-3"}, 206, b"POST"),
            ({"If-None-Match": '"p"'}, 304, b"")):
        response = running.get(url, **fields)
        assert hit(response) and (response.status, response.body) == (status, body)
    head = running.ask(request(url, method="HEAD", Connection="close"))
    assert hit(head) and head.get("content-length") == "6"
    again = post(running, url)
    assert again.body == b"POST 3", "no POST is answered from the cache"
    assert running.get(url).body == b"POST 3"


@pytest.mark.parametrize("fields, status", [
    ([FRESH], "200 OK"), ([FRESH, "Content-Location: /b"], "200 OK"),
    ([FRESH, "Content-Location: /a?"], "200 OK"),
    ([FRESH, "Content-Location: http://other.test/a"], "200 OK"),
    ([FRESH, "Content-Location: /a", "Content-Location: /a"], "200 OK"),
    (["Content-Location: /a", 'ETag: "p"'], "200 OK"),
    (["Content-Location: /a", "Last-Modified: Mon, 01 Jan 2001 00:00:00 GMT"], "200 OK"),
    ([STALE, "Content-Location: /a", 'ETag: "p"'], "200 OK"),
    (["Cache-Control: max-age=600, private", "Content-Location: /a"], "200 OK"),
    (["Cache-Control: max-age=600, no-store", "Content-Location: /a"], "200 OK"),
    ([FRESH, "Content-Location: /a", "Set-Cookie: a=b"], "200 OK"),
    ([FRESH, "Content-Location: /a"], "404 Not Found"),
    ([FRESH, "Content-Location: /a", "Location: /a"], "303 See Other")])
def test_the_response_to_a_post_is_not_stored_without_being_what_a_get_would_get(
        through, fields, status):
    there = through.origin(Posts(*fields, status=status))
    running = through.gateway()
    url = there.url("/a")
    assert running.get(url).body == b"GET 1"
    posted = post(running, url)
    assert posted.body == b"POST 2" and "stored" not in posted.cache_status
    expected = b"GET 1" if status[0] == "4" else b"GET 3"
    assert running.get(url).body == expected


def test_the_variants_of_a_post_are_those_of_its_own_fields(through):
    there = through.origin(Posts(FRESH, "Content-Location: /a", "Vary: X-Kind, Content-Type"))
    running = through.gateway()
    url = there.url("/a")
    post(running, url, X_Kind="a")
    assert running.get(url, X_Kind="a").body == b"POST 1"
    assert running.get(url, X_Kind="b").body == b"GET 2"
    post(running, url, X_Kind="a", Content_Type="text/plain")
    assert running.get(url, X_Kind="a").body == b"GET 4"


@pytest.mark.ways("forward")
def test_a_post_with_a_field_that_is_not_part_of_the_key_is_not_stored(through):
    there = through.origin(Posts(FRESH, "Content-Location: /a"))
    running = through.gateway()
    url = there.url("/a")
    response = post(running, url, X_Forwarded_Host="evil.test")
    assert response.cache_status["detail"] == "bypass-field"
    assert running.get(url).body == b"GET 2"


@pytest.mark.ways("forward")
def test_a_post_that_another_request_has_overtaken_is_not_stored(through):
    arrived, release = threading.Event(), threading.Event()

    def handler(seen: Request) -> bytes:
        if seen.method == "POST":
            arrived.set()
            release.wait(20)
        return reply(seen.method.encode(), "200 OK", FRESH, "Content-Location: /a")

    there = through.origin(handler)
    running = through.gateway()
    url = there.url("/a")
    answers: list[Response] = []
    slow = threading.Thread(target=lambda: answers.append(post(running, url)))
    slow.start()
    assert arrived.wait(20)
    running.ask(request(url, method="PUT", body=b"new", Connection="close"))
    release.set()
    slow.join()
    assert answers[0].body == b"POST"
    assert answers[0].cache_status["detail"] == "invalidated"
    assert running.get(url).body == b"GET"


@pytest.mark.ways("forward")
def test_the_response_to_a_post_that_breaks_off_replaces_nothing(through):
    def script(connection: OriginConnection) -> None:
        while (seen := connection.read_request()) is not None:
            if seen.method == "POST":
                connection.send(reply(b"", "200 OK", FRESH, "Content-Location: /a",
                                      'ETag: "a"', "Content-Length: 10", length=False) + b"part")
                return
            connection.send(reply(b"GET", "200 OK", FRESH))

    there = through.scripted_origin(script)
    running = through.gateway()
    url = there.url("/a")
    with running.wire() as wire:
        wire.send(request(url, method="POST", body=b"q"))
        wire.read_head()
        assert wire.read_to_end() == b"part"
    assert running.get(url).body == b"GET"


# Trailers (RFC 9110 §6.5)


def ask_for_trailers(running, url: str, **fields: str) -> Response:
    with running.wire() as wire:
        return wire.ask(request(url, TE="trailers", Connection="TE", **fields))


SUM = ("X-Sum: 123", "X-Two: a", "X-Two: b")
SUM_READ = [("X-Sum", "123"), ("X-Two", "a"), ("X-Two", "b")]


@pytest.mark.parametrize("size", [0, 5, 40_000, 3_000_000])
def test_trailers_are_stored_and_sent_again(through, size):
    body = b"x" * size
    parts = [body[:size // 2], body[size // 2:]] if size else []
    there = through.origin(lambda _: chunked(
        parts, FRESH, 'ETag: "e"', "Trailer: X-Sum, X-Two", trailers=SUM))
    running = through.gateway()
    url = there.url("/")
    first = ask_for_trailers(running, url)
    assert (first.body, first.trailers) == (body, SUM_READ)
    for _ in range(2):
        response = ask_for_trailers(running, url)
        assert hit(response)
        assert (response.body, response.trailers) == (body, SUM_READ)
        assert ("transfer-encoding" in response) == (through.way != "http2")
        assert "content-length" not in response
        named = {name.strip().lower() for name in response.get("trailer").split(",")}
        assert named == {"x-sum", "x-two"}
    plain = running.get(url)
    assert hit(plain) and plain.body == body
    if through.way == "http2":
        # Every client takes them (RFC 9113 §8.1).
        assert plain.trailers == SUM_READ
    else:
        assert plain.get("content-length") == str(size)
        assert "trailer" not in plain and not plain.trailers
    head = running.ask(request(url, method="HEAD", TE="trailers", Connection="TE, close"))
    assert hit(head) and "x-sum" not in head
    if size:
        part = ask_for_trailers(running, url, Range="bytes=0-1")
        assert (part.status, part.body, part.trailers) == (206, b"xx", [])
    known = ask_for_trailers(running, url, If_None_Match='"e"')
    assert known.status == 304 and "x-sum" not in known
    assert len(there.requests) == 1


def test_a_client_of_http_1_0_gets_no_trailers(gateway, origin):
    there = origin(lambda _: chunked([b"abc"], FRESH, trailers=SUM))
    running = gateway({"workers": 1})
    url = there.url("/")
    running.get(url)
    old = request(url, TE="trailers", Connection="TE").replace(b" HTTP/1.1", b" HTTP/1.0")
    with running.wire() as wire:
        wire.send(old)
        response = wire.read_head()
        assert hit(response) and "trailer" not in response
        assert wire.read_to_end() == b"abc"


@pytest.mark.parametrize("trailers", [
    ("Set-Cookie: a=b",), ("Content-Length: 3", "Vary: x", "Cache-Control: no-store", "Age: 1"),
    ("X-Own: me",)])
def test_fields_that_are_not_for_trailers_or_not_for_all_are_not_stored(through, trailers):
    there = through.origin(lambda _: chunked(
        [b"abc"], 'Cache-Control: max-age=600, private="x-own"', trailers=(*trailers, "X-Sum: 1")))
    running = through.gateway()
    url = there.url("/")
    ask_for_trailers(running, url)
    response = ask_for_trailers(running, url)
    assert hit(response)
    assert response.trailers == [("X-Sum", "1")]


def test_trailers_stay_with_content_that_is_confirmed(through):
    def handler(seen: Request) -> bytes:
        if seen.get("if-none-match"):
            return reply(b"", "304 Not Modified", FRESH, 'ETag: "e"', "X-New: 1", length=False)
        return chunked([b"abc"], STALE, 'ETag: "e"', trailers=SUM)

    there = through.origin(handler)
    running = through.gateway()
    url = there.url("/")
    ask_for_trailers(running, url)
    confirmed = ask_for_trailers(running, url)
    assert confirmed.cache_status["fwd-status"] == 304
    assert (confirmed.body, confirmed.trailers) == (b"abc", SUM_READ)
    response = ask_for_trailers(running, url)
    assert hit(response) and response.get("x-new") == "1"
    assert (response.body, response.trailers) == (b"abc", SUM_READ)


@pytest.mark.parametrize("size", [5, 40_000, 3_000_000])
def test_trailers_are_there_after_a_restart(gateway, origin, size):
    there = origin(lambda _: chunked([b"x" * size], FRESH, trailers=SUM))
    running = gateway({"workers": 1})

    def ask() -> Response:
        return running.ask(request(there.url("/"), TE="trailers", Connection="TE, close"))

    assert ask().trailers == SUM_READ
    running.restart()
    running.wait_for_disk()
    for _ in range(2):
        response = ask()
        assert hit(response)
        assert (len(response.body), response.trailers) == (size, SUM_READ)
    plain = running.get(there.url("/"))
    assert hit(plain) and len(plain.body) == size


# The page


def test_every_test_that_the_page_on_conformance_names_exists():
    page = (ROOT / "Sources/Gateway/Gateway/Gateway.docc/CachingConformance.md").read_text()
    named = re.findall(r"`([^`]+\.(?:swift|py))::([^`]+)`", page)
    assert len(named) > 60
    absent = []
    for file, name in named:
        if file.endswith(".py"):
            path, found = ROOT / "Tests/Integration" / file, f"def {name}("
        else:
            path, found = ROOT / "Tests/Core/CachePolicyTests" / file, f"func `{name}`("
        if not path.exists() or found not in path.read_text():
            absent.append(f"{file}::{name}")
    assert absent == []
