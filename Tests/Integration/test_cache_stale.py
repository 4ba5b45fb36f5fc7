"""Stale responses: served while the origin is asked (RFC 5861), in place of its errors, and
brought up to date by responses to HEAD (RFC 9111 §4.3.5)."""

from __future__ import annotations

import signal
import threading
import time

import pytest
from support.gateway import Gateway
from support.origin import OriginConnection, Request, reply
from support.wait import until
from support.wire import Response, request

WINDOW = "Cache-Control: max-age=0, stale-while-revalidate=600"
FRESH = "Cache-Control: max-age=600"


def fetch(gateway: Gateway, url: str, **fields: str) -> Response:
    return gateway.get(url, **fields)


def hit(response: Response) -> bool:
    return "hit" in response.cache_status


class Versions:
    """An origin's content that a test changes: answers 304 to the present version's ETag."""

    def __init__(self, control: str, validator: bool = True):
        self.control = control
        self.version = "1"
        self.validator = validator
        self.release = threading.Event()
        self.release.set()

    def __call__(self, seen: Request) -> bytes:
        self.release.wait(20)
        etag = [f'ETag: "{self.version}"'] if self.validator else []
        if etag and seen.get("if-none-match") == f'"{self.version}"':
            return reply(b"", "304 Not Modified", self.control, *etag, "X-New: 304", length=False)
        body = f"version {self.version}".encode()
        return reply(b"" if seen.method == "HEAD" else body, "200 OK", self.control, *etag,
                     *([f"Content-Length: {len(body)}"] if seen.method == "HEAD" else []),
                     length=seen.method != "HEAD")


# While the origin is asked


@pytest.mark.parametrize("validator", [True, False])
def test_a_stale_response_is_served_while_the_origin_is_asked(through, validator):
    content = Versions(WINDOW, validator)
    there = through.origin(content)
    running = through.gateway()
    assert fetch(running, there.url("/")).body == b"version 1"
    content.version = "2"
    content.control = FRESH
    content.release.clear()
    for _ in range(3):
        response = fetch(running, there.url("/"))
        assert response.body == b"version 1", "nobody waits for the origin"
        assert hit(response)
        assert response.cache_status["detail"] == "stale-while-revalidate"
    content.release.set()
    until(lambda: fetch(running, there.url("/")).body == b"version 2", "the new version is stored")
    assert len(there.requests) == 2, "the origin is asked once however many are served"
    assert there.requests[1].get("if-none-match") == ('"1"' if validator else "")
    assert running.metric("pinfold_cache_background_revalidations_total") == 1


def test_a_304_in_the_background_makes_the_response_fresh(through):
    content = Versions(WINDOW)
    there = through.origin(content)
    running = through.gateway()
    fetch(running, there.url("/"))
    content.control = FRESH
    fetch(running, there.url("/"))
    response = until(
        lambda: found if (found := fetch(running, there.url("/"))).get("x-new") else None,
        "the 304's fields are there")
    assert response.body == b"version 1"
    assert response.cache_status["ttl"] > 500
    assert len(there.requests) == 2


def test_the_request_in_the_background_asks_for_the_whole_with_the_variants_fields(through):
    def handler(seen: Request) -> bytes:
        if seen.get("if-none-match") == '"e"':
            return reply(b"", "304 Not Modified", FRESH, 'ETag: "e"', length=False)
        return reply(b"0123456789", "200 OK", WINDOW, 'ETag: "e"', "Vary: X-Kind")

    there = through.origin(handler)
    running = through.gateway()
    fetch(running, there.url("/"), X_Kind="a")
    response = fetch(running, there.url("/"), X_Kind="a", Range="bytes=2-3", Authorization="mine",
                     If_Range='"e"')
    assert response.cache_status["fwd"] == "request", "not marked as shared"
    part = fetch(running, there.url("/"), X_Kind="a", Range="bytes=2-3", If_None_Match='"other"')
    assert (part.status, part.body) == (206, b"23")
    until(lambda: len(there.requests) == 3, "the origin is asked")
    asked = there.requests[2]
    assert asked.method == "GET"
    assert asked.get("x-kind") == "a"
    assert asked.all("if-none-match") == ['"e"'], "the cache's own validator, not the client's"
    assert "range" not in asked


def test_head_served_stale_asks_with_get(through):
    content = Versions(WINDOW, validator=False)
    there = through.origin(content)
    running = through.gateway()
    fetch(running, there.url("/"))
    content.control = FRESH
    response = running.ask(request(there.url("/"), method="HEAD", Connection="close"))
    assert hit(response)
    until(lambda: len(there.requests) == 2, "the origin is asked")
    assert there.requests[1].method == "GET"
    until(lambda: fetch(running, there.url("/")).cache_status["ttl"] > 0, "it is fresh again")


def test_an_origin_that_fails_in_the_background_is_not_asked_at_every_hit(through):
    asked = 0

    def script(connection: OriginConnection) -> None:
        nonlocal asked
        if connection.read_request():
            asked += 1
            if asked == 1:
                connection.send(reply(b"old", "200 OK", WINDOW, "Connection: close"))

    there = through.scripted_origin(script)
    running = through.gateway()
    assert fetch(running, there.url("/")).body == b"old"
    began = time.monotonic()
    for _ in range(20):
        assert fetch(running, there.url("/")).body == b"old"
    seconds = time.monotonic() - began
    # On a connection that was verified for a tunnel each is sent another time, as on any idle one.
    times = 2 if running.way == "interception" else 1
    assert asked <= 1 + times * (2 + seconds)
    running.wait_log("upstream-closed|upstream-stream-reset")


def test_what_may_not_be_kept_any_more_is_dropped_in_the_background(through):
    content = Versions(WINDOW)
    there = through.origin(content)
    running = through.gateway()
    fetch(running, there.url("/"))
    content.version = "2"
    content.control = "Cache-Control: no-store"
    assert fetch(running, there.url("/")).body == b"version 1"
    until(lambda: fetch(running, there.url("/")).body == b"version 2", "it is not served any more")


def test_a_client_that_leaves_does_not_end_the_background_request(through):
    content = Versions(WINDOW)
    there = through.origin(content)
    running = through.gateway()
    fetch(running, there.url("/"))
    content.version = "2"
    content.release.clear()
    fetch(running, there.url("/"))
    until(lambda: len(there.requests) == 2, "the origin is asked")
    content.release.set()
    until(lambda: fetch(running, there.url("/")).body == b"version 2", "it is stored")


def test_a_reload_during_a_background_request_does_no_harm(gateway, origin):
    content = Versions(WINDOW)
    there = origin(content)
    running = gateway()
    fetch(running, there.url("/"))
    content.release.clear()
    fetch(running, there.url("/"))
    until(lambda: len(there.requests) == 2, "the origin is asked")
    running.signal(signal.SIGHUP)
    running.wait_log("reload")
    content.release.set()
    assert fetch(running, there.url("/")).body == b"version 1"


def broken(kind: str) -> bytes | None:
    """What a failing origin answers; None: it closes the connection."""
    if kind == "truncated":
        return b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nCache-Control: max-age=600\r\n\r\npart"
    if kind == "truncated, not to be stored":
        return b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"
    if kind == "truncated chunks":
        return (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
                b"Cache-Control: max-age=600\r\n\r\n4\r\npart\r\n")
    if kind == "error":
        return reply(b"no", "503 Service Unavailable")
    if kind == "error to be stored":
        return reply(b"no", "500 Internal Server Error", FRESH)
    if kind == "too many requests":
        return reply(b"no", "429 Too Many Requests", FRESH)
    return None


BROKEN = ["truncated", "truncated, not to be stored", "truncated chunks", "error",
          "error to be stored", "too many requests", "closed"]


class Failing:
    """Answers the first request, and every later one as an origin that fails."""

    def __init__(self, kind: str, validator: list[str]):
        self.kind = kind
        self.validator = validator
        self.asked = 0

    def __call__(self, connection: OriginConnection) -> None:
        while connection.read_request() is not None:
            self.asked += 1
            answer = (reply(b"old", "200 OK", WINDOW, *self.validator) if self.asked == 1
                      else broken(self.kind))
            if answer is None:
                return
            connection.send(answer)
            if self.kind.startswith("truncated") and self.asked > 1:
                return


def test_a_failed_refresh_leaves_the_stale_response_for_its_window(through):
    # Each failure ends before the next is begun, a second later at the earliest: all at a time.
    kinds = [Failing(kind, field) for kind in BROKEN for field in (['ETag: "e"'], [])]
    urls = {one: through.scripted_origin(one).url("/") for one in kinds}
    running = through.gateway()
    for url in urls.values():
        assert fetch(running, url).body == b"old"
    for attempt in range(2, 5):
        for one, url in urls.items():
            until(lambda: (found := fetch(running, url)).body == b"old" and hit(found)
                  and one.asked >= attempt,
                  f"refresh {attempt - 1} was tried: {one.kind} {one.validator}", 30)
    for one, url in urls.items():
        response = fetch(running, url)
        assert (response.status, response.body) == (200, b"old"), one.kind
        assert response.cache_status["detail"] == "stale-while-revalidate"


# In place of an error


@pytest.mark.parametrize("fields", [['ETag: "e"'], []])
@pytest.mark.parametrize("broken", [
    b"HTTP/1.1 200 OK\r\nContent-Le", b"HTTP/1.1 2000 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx"])
def test_stale_if_error_bridges_what_is_no_response(through, fields, broken):
    """RFC 5861 §4: whatever would come to a 502."""
    def script(connection: OriginConnection) -> None:
        connection.read_request()
        old = reply(b"old", "200 OK", "Cache-Control: max-age=0, stale-if-error=600",
                    "Connection: close", *fields)
        connection.send(broken if is_stored else old)

    is_stored = False
    there = through.scripted_origin(script)
    running = through.gateway()
    assert fetch(running, there.url("/")).body == b"old"
    is_stored = True
    response = fetch(running, there.url("/"))
    assert (response.status, response.body) == (200, b"old")
    assert response.cache_status["detail"] == "stale-if-error"


@pytest.mark.parametrize("fields", [['ETag: "e"'], []])
@pytest.mark.parametrize("failure", ["503 Service Unavailable", ""])
def test_stale_if_error_needs_no_validator(through, fields, failure):
    calls = 0

    def handler(_: Request) -> bytes | None:
        nonlocal calls
        calls += 1
        if calls == 1:
            return reply(b"old", "200 OK", "Cache-Control: max-age=0, stale-if-error=600", *fields)
        return reply(b"error", failure) if failure else None

    there = through.origin(handler)
    running = through.gateway()
    assert fetch(running, there.url("/")).body == b"old"
    for _ in range(2):
        response = fetch(running, there.url("/"))
        assert (response.status, response.body) == (200, b"old")
        assert response.cache_status["detail"] == "stale-if-error"


def test_without_leave_an_error_is_passed_on(through):
    calls = 0

    def handler(_: Request) -> bytes:
        nonlocal calls
        calls += 1
        if calls == 1:
            return reply(b"old", "200 OK", "Cache-Control: max-age=0", 'ETag: "e"')
        return reply(b"error", "503 Service Unavailable")

    there = through.origin(handler)
    running = through.gateway()
    fetch(running, there.url("/"))
    assert fetch(running, there.url("/")).status == 503


# Responses to HEAD


def head(gateway: Gateway, url: str, **fields: str) -> Response:
    return gateway.ask(request(url, method="HEAD", Connection="close", **fields))


@pytest.mark.parametrize("validator", [True, False])
def test_a_response_to_head_brings_the_stored_one_up_to_date(through, validator):
    content = Versions("Cache-Control: max-age=0, stale-if-error=1", validator)
    there = through.origin(content)
    running = through.gateway()
    assert fetch(running, there.url("/")).body == b"version 1"
    content.control = FRESH + "\r\nX-Seen: by-head"
    response = head(running, there.url("/"))
    assert response.status == 200
    assert there.requests[-1].method == "HEAD"
    stored = fetch(running, there.url("/"))
    assert hit(stored)
    assert stored.body == b"version 1"
    assert stored.get("x-seen") == "by-head"


def test_a_response_to_head_about_another_version_drops_the_stored_one(through):
    content = Versions(FRESH)
    there = through.origin(content)
    running = through.gateway()
    fetch(running, there.url("/"))
    content.version = "2"
    assert head(running, there.url("/"), Cache_Control="no-cache").get("etag") == '"2"'
    response = fetch(running, there.url("/"))
    assert not hit(response)
    assert response.body == b"version 2"


def test_an_error_to_head_leaves_the_stored_response(through):
    def handler(seen: Request) -> bytes:
        if seen.method == "HEAD":
            return reply(b"", "410 Gone", "Content-Length: 4", length=False)
        return reply(b"body", "200 OK", FRESH)

    there = through.origin(handler)
    running = through.gateway()
    fetch(running, there.url("/"))
    assert head(running, there.url("/"), Cache_Control="no-cache").status == 410
    assert hit(fetch(running, there.url("/")))
