"""The shared cache, seen from outside (RFC 9111), and Cache-Status (RFC 9211)."""

from __future__ import annotations

import gzip
import hashlib
import random
import signal
import subprocess
import threading
import time
from email.utils import formatdate

import pytest
from support.gateway import Gateway
from support.origin import OriginConnection, Request, chunked, reply
from support.wait import SANITIZER, until
from support.wire import Closed, Response, request

FRESH = "Cache-Control: max-age=600"


def date(offset: float = 0) -> str:
    """An IMF-fixdate `offset` seconds from now."""
    return formatdate(time.time() + offset, usegmt=True)


def counting(*fields: str, status: str = "200 OK", body: bytes = b"body"):
    """A handler whose bodies are numbered, so that a test sees which response it got."""
    count = 0

    def handler(_: Request) -> bytes:
        nonlocal count
        count += 1
        return reply(body + b" %d" % count, status, *fields)

    return handler


def hit(response: Response) -> bool:
    return "hit" in response.cache_status


def fetch(gateway: Gateway, url: str, **fields: str) -> Response:
    return gateway.get(url, **fields)


def send(gateway: Gateway, url: str, method: str, body: bytes = b"", **fields: str) -> Response:
    return gateway.ask(request(url, method=method, body=body, Connection="close", **fields))


def prime(gateway: Gateway, url: str, **fields: str) -> Response:
    """Stores the response; returns it as the cache answered it."""
    first = fetch(gateway, url, **fields)
    stored = fetch(gateway, url, **fields)
    assert hit(stored), f"first {first.get('cache-status')}, then {stored.get('cache-status')}"
    return stored


# Hit and miss


def test_the_second_request_is_a_hit(through):
    there = through.origin(counting(FRESH))
    running = through.gateway()
    first = fetch(running, there.url("/x"))
    assert first.body == b"body 1"
    assert not hit(first)
    assert first.cache_status["fwd"] == "uri-miss"
    assert first.cache_status.get("stored") is True
    second = fetch(running, there.url("/x"))
    assert second.body == b"body 1"
    assert hit(second)
    assert int(second.get("age")) >= 0
    assert second.cache_status["ttl"] <= 600
    assert len(there.requests) == 1


def test_a_hit_has_the_stored_fields_and_one_age(through):
    there = through.origin(lambda _: reply(
        b"x", "200 OK", FRESH, "X-Kept: yes", 'ETag: "e"', "Content-Type: text/x-mine",
        "Connection: X-Hop", "X-Hop: 1", "Age: 100", f"Date: {date(-5)}"))
    running = through.gateway()
    prime(running, there.url("/"))
    response = fetch(running, there.url("/"))
    assert response.get("x-kept") == "yes"
    assert response.get("content-type") == "text/x-mine"
    assert response.get("etag") == '"e"'
    assert "x-hop" not in response
    assert len(response.all("age")) == 1
    assert 100 <= int(response.get("age")) < 130


def test_every_response_has_a_cache_status(through):
    there = through.origin(lambda seen: reply(b"x", "200 OK", "Cache-Control: no-store"))
    running = through.gateway()
    for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"):
        assert "fwd" in send(running, there.url("/"), method).cache_status, method
    assert send(running, there.url("/"), "POST").cache_status["fwd"] in ("method", "bypass")


@pytest.mark.ways("forward", "interception")
def test_the_query_and_the_host_are_part_of_the_key(through):
    there = through.origin(
        lambda seen: reply(f"{seen.get('host')}{seen.target}".encode(), "200 OK", FRESH))
    running = through.gateway()
    urls = [f"http://{host}:{there.port}{target}" for host in ("a.test", "b.test")
            for target in ("/", "/?q=1", "/?q=2", "/p")]
    for _ in range(2):
        for url in urls:
            assert fetch(running, url).body == url.removeprefix("http://").encode()
    assert len(there.requests) == len(urls)


@pytest.mark.ways("forward", "interception")
def test_equivalent_urls_share_an_entry(through):
    there = through.origin(counting(FRESH))
    running = through.gateway()
    prime(running, f"http://Same.test:{there.port}")
    assert hit(fetch(running, f"http://same.TEST:{there.port}/"))


# Storability

NOT_STORED = {
    "no-store": ("200 OK", ["Cache-Control: no-store, max-age=600"]),
    "private": ("200 OK", ["Cache-Control: private, max-age=600"]),
    "max-age 0 without validator": ("200 OK", ["Cache-Control: max-age=0"]),
    "no freshness and no validator": ("200 OK", []),
    "Expires in the past": ("200 OK", [f"Expires: {date(-100)}", f"Date: {date()}"]),
    "an invalid Expires": ("200 OK", ["Expires: 0"]),
    "an unknown status without freshness": ("299 Odd", []),
    "an error status without freshness": ("500 Internal Server Error", []),
    # RFC 9111 §7.3 would allow it; a cookie in a shared cache is rarely meant.
    "Set-Cookie": ("200 OK", [FRESH, "Set-Cookie: a=b"]),
    "Set-Cookie2": ("200 OK", [FRESH, "Set-Cookie2: a=b; Version=1"]),
    "Vary: *": ("200 OK", [FRESH, "Vary: *"]),
    "a partial response": ("206 Partial Content", [FRESH, "Content-Range: bytes 0-5/100"]),
}


@pytest.mark.parametrize("name", NOT_STORED)
def test_a_response_that_may_not_be_stored_is_not_reused(through, name):
    status, fields = NOT_STORED[name]
    there = through.origin(counting(*fields, status=status))
    running = through.gateway()
    assert fetch(running, there.url("/")).body == b"body 1"
    assert fetch(running, there.url("/")).body == b"body 2"


STORED = {
    "max-age": ("200 OK", [FRESH]),
    "s-maxage wins over max-age": ("200 OK", ["Cache-Control: max-age=0, s-maxage=600"]),
    "Expires": ("200 OK", [f"Expires: {date(36_000)}", f"Date: {date()}"]),
    "max-age wins over Expires": ("200 OK", [FRESH, f"Expires: {date(-100)}"]),
    "Expires in the old formats": (
        "200 OK", [time.strftime("Expires: %a %b %e %H:%M:%S %Y", time.gmtime(time.time() + 36_000)),
                   f"Date: {date()}"]),
    "heuristic freshness": ("200 OK", [f"Last-Modified: {date(-864_000)}", f"Date: {date()}"]),
    "404 with max-age": ("404 Not Found", [FRESH]),
    "301 with max-age": ("301 Moved Permanently", [FRESH, "Location: /else"]),
    "410 heuristically": ("410 Gone", [f"Last-Modified: {date(-864_000)}"]),
    "public": ("200 OK", ["Cache-Control: public, max-age=600"]),
    "a quoted value": ("200 OK", ['Cache-Control: max-age="600"']),
    "directives in capitals": ("200 OK", ["Cache-Control: MAX-AGE=600"]),
    "over two lines": ("200 OK", ["Cache-Control: public", "Cache-Control: max-age=600"]),
    "Pragma in a response means nothing": ("200 OK", [FRESH, "Pragma: no-cache"]),
}


@pytest.mark.parametrize("name", STORED)
def test_a_response_that_may_be_stored_is_reused(through, name):
    status, fields = STORED[name]
    there = through.origin(counting(*fields, status=status))
    running = through.gateway()
    prime(running, there.url("/"))
    response = fetch(running, there.url("/"))
    assert f"{response.status}" == status[:3]
    assert response.body == b"body 1"
    assert len(there.requests) == 1


@pytest.mark.parametrize(("control", "stored"), [
    ("max-age=600", False), ("public, max-age=600", True), ("s-maxage=600", True),
    ("must-revalidate, max-age=600", True)])
def test_responses_to_authorized_requests_are_stored_only_if_shared(through, control, stored):
    """RFC 9111 §3.5."""
    there = through.origin(counting(f"Cache-Control: {control}"))
    running = through.gateway()
    fetch(running, there.url("/"), Authorization="Basic YTpi")
    second = fetch(running, there.url("/"), Authorization="Basic YTpi")
    assert hit(second) == stored
    assert fetch(running, there.url("/")).body == (b"body 1" if stored else b"body 3")


@pytest.mark.parametrize("coding", ["length", "chunked"])
def test_every_framing_is_stored_whole(through, coding):
    body = bytes(range(256)) * 900
    replies = {
        "length": reply(body, "200 OK", FRESH),
        "chunked": chunked([body[:1000], body[1000:]], FRESH),
    }
    there = through.origin(lambda _: replies[coding])
    running = through.gateway()
    response = prime(running, there.url("/"))
    assert response.body == body
    assert response.get("content-length") == str(len(body))


@pytest.mark.ways("reverse", "forward")
def test_what_ends_with_the_connection_is_not_stored(through):
    """In clear text it cannot be distinguished from what was cut off."""
    there = through.origin(lambda _: reply(
        b"whole?", "200 OK", FRESH, "Connection: close", length=False))
    running = through.gateway()
    for _ in range(2):
        response = fetch(running, there.url("/"))
        assert response.body == b"whole?"
        assert not hit(response)


@pytest.mark.parametrize("coding", ["length", "chunked"])
def test_a_truncated_response_is_never_stored(through, coding):
    framing = {"length": b"Content-Length: 1000\r\n\r\n" + b"x" * 500,
               "chunked": b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n" + b"x" * 500}[coding]

    def script(connection: OriginConnection) -> None:
        connection.read_request()
        connection.send(b"HTTP/1.1 200 OK\r\n" + FRESH.encode() + b"\r\n" + framing)

    there = through.scripted_origin(script)
    running = through.gateway()
    for _ in range(3):
        with pytest.raises(Closed):
            fetch(running, there.url("/"))
    assert there.accepted == 3


def test_a_client_that_leaves_does_not_leave_a_truncated_entry(through):
    body = b"0123456789" * 30_000
    go = threading.Event()

    def script(connection: OriginConnection) -> None:
        while connection.read_request() is not None:
            data = reply(body, "200 OK", FRESH)
            connection.send(data[:1000])
            go.wait(10)
            connection.send(data[1000:])

    there = through.scripted_origin(script)
    running = through.gateway()
    with running.wire() as wire:
        wire.send(request(there.url("/")))
        wire.read_head()
    go.set()
    for _ in range(3):
        assert fetch(running, there.url("/")).body == body


@pytest.mark.parametrize(("size", "stored"), [(100_000, True), (100_001, False)])
def test_a_body_over_the_largest_object_is_not_stored(through, size, stored):
    there = through.origin(lambda _: reply(b"x" * size, "200 OK", FRESH))
    running = through.gateway({"cache": {"maximumObject": "100000"}})
    assert len(fetch(running, there.url("/")).body) == size
    if stored:
        prime(running, there.url("/"))
    else:
        response = fetch(running, there.url("/"))
        assert not hit(response)
        assert len(response.body) == size


def test_a_disabled_cache_stores_nothing(gateway, origin):
    there = origin(counting(FRESH))
    running = gateway({"cache": {"enabled": False}})
    assert fetch(running, there.url("/")).body == b"body 1"
    assert fetch(running, there.url("/")).body == b"body 2"
    assert not (running.folder / "cache").exists() or not list((running.folder / "cache").iterdir())


@pytest.mark.ways("forward", "interception")
def test_a_host_may_be_excluded(through):
    there = through.origin(counting(FRESH))
    running = through.gateway({"hosts": [{"match": ["never.test"], "cache": {"store": False}}]})
    for number in (1, 2):
        assert fetch(running, f"http://never.test:{there.port}/").body == b"body %d" % number
    prime(running, f"http://other.test:{there.port}/")


@pytest.mark.ways("forward", "interception")
def test_fields_may_be_part_of_the_key(through):
    there = through.origin(lambda seen: reply(seen.get("x-tenant").encode(), "200 OK", FRESH))
    running = through.gateway(
        {"hosts": [{"match": ["keyed.test"], "cache": {"key": ["X-Tenant"]}}]})
    url = f"http://keyed.test:{there.port}/"
    for tenant in ("a", "b"):
        prime(running, url, X_Tenant=tenant)
    for tenant in ("a", "b"):
        assert fetch(running, url, X_Tenant=tenant).body == tenant.encode()
    assert len(there.requests) == 2


# Vary


def test_vary_keeps_variants_apart(through):
    there = through.origin(lambda seen: reply(
        seen.get("accept-language").encode(), "200 OK", FRESH, "Vary: Accept-Language"))
    running = through.gateway()
    for language in ("de", "fr", "en"):
        prime(running, there.url("/"), Accept_Language=language)
    for language in ("en", "de", "fr"):
        response = fetch(running, there.url("/"), Accept_Language=language)
        assert hit(response)
        assert response.body == language.encode()
    miss = fetch(running, there.url("/"), Accept_Language="it")
    assert miss.cache_status["fwd"] == "vary-miss"
    assert len(there.requests) == 4


def test_a_field_that_is_missing_is_a_variant_too(through):
    there = through.origin(counting(FRESH, "Vary: X-Maybe"))
    running = through.gateway()
    prime(running, there.url("/"))
    assert not hit(fetch(running, there.url("/"), X_Maybe="1"))
    assert hit(fetch(running, there.url("/")))


def test_vary_counts_all_fields_on_all_lines(through):
    there = through.origin(lambda seen: reply(
        f"{seen.get('x-a')}{seen.get('x-b')}".encode(), "200 OK", FRESH, "Vary: x-a", "Vary: X-B"))
    running = through.gateway()
    for pair in ("12", "13", "22"):
        prime(running, there.url("/"), X_A=pair[0], X_B=pair[1])
    for pair in ("22", "13", "12"):
        assert fetch(running, there.url("/"), X_A=pair[0], X_B=pair[1]).body == pair.encode()
    assert len(there.requests) == 3


def test_packed_and_plain_are_variants(gateway, nginx):
    text = b"compress me " * 500
    (nginx.files / "variants.txt").write_bytes(text)
    running = gateway()
    url = nginx.url("/packed/variants.txt")
    prime(running, url, Accept_Encoding="gzip")
    prime(running, url)
    assert gzip.decompress(fetch(running, url, Accept_Encoding="gzip").body) == text
    assert fetch(running, url).body == text


# Validation


def validating(body: bytes = b"body", *fields: str, etag: str = '"v1"', control: str = "no-cache"):
    """Answers 304 to a matching If-None-Match."""
    def handler(seen: Request) -> bytes:
        common = (f"ETag: {etag}", f"Cache-Control: {control}", *fields)
        if etag in seen.get("if-none-match"):
            return reply(b"", "304 Not Modified", *common, "X-New: 304", length=False)
        return reply(body, "200 OK", *common, "X-New: 200")

    return handler


def test_a_stale_entry_is_validated_with_its_etag(through):
    there = through.origin(validating())
    running = through.gateway()
    assert fetch(running, there.url("/")).body == b"body"

    def validated() -> Response | None:
        response = fetch(running, there.url("/"))
        return response if there.requests[-1].get("if-none-match") == '"v1"' else None

    response = until(validated, "the stored response is validated")
    assert response.status == 200
    assert response.body == b"body"
    assert response.cache_status["fwd"] == "stale"
    assert response.cache_status["fwd-status"] == 304
    assert response.get("x-new") == "304", "fields of the 304 replace the stored ones"


def test_a_stale_entry_is_validated_with_its_date(through):
    modified = date(-1000)

    def handler(seen: Request) -> bytes:
        if seen.get("if-modified-since") == modified:
            return reply(b"", "304 Not Modified", FRESH, length=False)
        return reply(b"dated", "200 OK", "Cache-Control: max-age=0", f"Last-Modified: {modified}")

    there = through.origin(handler)
    running = through.gateway()
    assert fetch(running, there.url("/")).body == b"dated"
    until(lambda: fetch(running, there.url("/")).body == b"dated" and hit(
        fetch(running, there.url("/"))), "the 304 made it fresh")
    assert there.requests[-1].get("if-modified-since") == modified


def test_a_304_makes_an_entry_fresh_again(through):
    there = through.origin(validating(control="max-age=600", etag='"fresh"'))
    running = through.gateway()
    prime(running, there.url("/"))
    response = fetch(running, there.url("/"), Cache_Control="no-cache")
    assert response.body == b"body"
    assert response.cache_status["fwd"] == "request"
    asked = len(there.requests)
    assert hit(fetch(running, there.url("/")))
    assert len(there.requests) == asked


def test_a_304_about_another_response_is_asked_again_without_conditions(through):
    """RFC 9111 §4.3.3: the cache has nothing that it could be about."""
    def handler(seen: Request) -> bytes:
        if seen.get("if-none-match"):
            return reply(b"", "304 Not Modified", 'ETag: "another"', length=False)
        return reply(b"content", "200 OK", 'ETag: "this"', "Cache-Control: no-cache")

    there = through.origin(handler)
    running = through.gateway()
    for _ in range(3):
        response = fetch(running, there.url("/"))
        assert response.status == 200 and response.body == b"content"
    asked = [bool(seen.get("if-none-match")) for seen in there.requests]
    assert asked == [False, True, False, True, False]
    assert running.metric("pinfold_upstream_retries_total", reason="validation_failed") == 2


def test_a_changed_response_replaces_the_stored_one(through):
    version = ["1"]

    def handler(seen: Request) -> bytes:
        etag = f'"{version[0]}"'
        if seen.get("if-none-match") == etag:
            return reply(b"", "304 Not Modified", f"ETag: {etag}", length=False)
        return reply(version[0].encode(), "200 OK", f"ETag: {etag}", "Cache-Control: no-cache")

    there = through.origin(handler)
    running = through.gateway()
    for number in ("1", "1", "2", "2", "3"):
        version[0] = number
        assert fetch(running, there.url("/")).body == number.encode()


@pytest.mark.parametrize(("field", "value", "status"), [
    ("If-None-Match", '"v1"', 304), ("If-None-Match", 'W/"v1"', 304), ("If-None-Match", "*", 304),
    ("If-None-Match", '"other", "v1"', 304), ("If-None-Match", '"other"', 200),
    ("If-Modified-Since", 0, 304), ("If-Modified-Since", -100_000, 200)])
def test_conditional_requests_are_answered_from_the_cache(through, field, value, status):
    there = through.origin(lambda _: reply(
        b"body", "200 OK", FRESH, 'ETag: "v1"', f"Last-Modified: {date(-5000)}",
        "X-Kept: yes"))
    running = through.gateway()
    prime(running, there.url("/"))
    text = value if isinstance(value, str) else date(value)
    response = fetch(running, there.url("/"), **{field.replace("-", "_"): text})
    assert response.status == status
    assert hit(response)
    assert response.get("etag") == '"v1"'
    assert response.body == (b"body" if status == 200 else b"")
    assert len(there.requests) == 1


def test_a_clients_own_condition_passes_when_nothing_is_stored(through):
    there = through.origin(validating(etag='"mine"', control="no-store"))
    running = through.gateway()
    assert fetch(running, there.url("/"), If_None_Match='"mine"').status == 304
    assert there.requests[0].get("if-none-match") == '"mine"'


def test_a_304_to_a_client_is_not_stored_as_a_response(through):
    there = through.origin(validating(etag='"mine"', control="max-age=600"))
    running = through.gateway()
    assert fetch(running, there.url("/"), If_None_Match='"mine"').status == 304
    response = fetch(running, there.url("/"))
    assert (response.status, response.body) == (200, b"body")


@pytest.mark.parametrize("control", [
    "must-revalidate, max-age=1", "proxy-revalidate, max-age=1", "s-maxage=1"])
def test_must_revalidate_forbids_stale_answers(through, control):
    def script(connection: OriginConnection) -> None:
        if connection.read_request() and connection.number == 0:
            connection.send(reply(b"old", "200 OK", f"Cache-Control: {control}", "Age: 100",
                                  'ETag: "a"', "Connection: close"))

    there = through.scripted_origin(script)
    running = through.gateway()
    assert fetch(running, there.url("/")).body == b"old"
    response = fetch(running, there.url("/"), Cache_Control="max-stale=1000")
    assert response.status == 504, "RFC 9111 §5.2.2.2"


# Request directives


def test_no_cache_asks_the_origin(through):
    there = through.origin(counting(FRESH))
    running = through.gateway()
    prime(running, there.url("/"))
    response = fetch(running, there.url("/"), Cache_Control="no-cache")
    assert response.body == b"body 2"
    assert response.cache_status["fwd"] == "request"
    assert fetch(running, there.url("/")).body == b"body 2", "and what came back is stored"


def test_pragma_no_cache_counts_without_cache_control(through):
    there = through.origin(counting(FRESH))
    running = through.gateway()
    prime(running, there.url("/"))
    assert fetch(running, there.url("/"), Pragma="no-cache").body == b"body 2"


def test_no_store_in_a_request_keeps_the_response_out(through):
    there = through.origin(counting(FRESH))
    running = through.gateway()
    for number in (1, 2):
        response = fetch(running, there.url("/"), Cache_Control="no-store")
        assert response.body == b"body %d" % number
        assert not response.cache_status.get("stored")


@pytest.mark.parametrize(("directive", "served"), [
    ("max-age=50", False), ("max-age=200", True), ("max-age=0", False),
    ("min-fresh=100", True), ("min-fresh=580", False)])
def test_max_age_and_min_fresh_of_a_request_are_honoured(through, directive, served):
    there = through.origin(counting(FRESH, "Age: 100"))
    running = through.gateway()
    prime(running, there.url("/"))
    assert hit(fetch(running, there.url("/"), Cache_Control=directive)) == served


@pytest.mark.parametrize(("directive", "served"), [
    ("max-stale", True), ("max-stale=1000", True), ("max-stale=10", False), ("", False)])
def test_max_stale_of_a_request_is_honoured(through, directive, served):
    there = through.origin(counting("Cache-Control: max-age=60", "Age: 160", 'ETag: "s"'))
    running = through.gateway()
    assert fetch(running, there.url("/")).body == b"body 1"
    fields = {"Cache_Control": directive} if directive else {}
    response = fetch(running, there.url("/"), **fields)
    assert response.body == (b"body 1" if served else b"body 2")


def test_only_if_cached_never_asks_the_origin(through):
    there = through.origin(counting(FRESH))
    running = through.gateway()
    assert fetch(running, there.url("/"), Cache_Control="only-if-cached").status == 504
    assert there.requests == []
    prime(running, there.url("/"))
    response = fetch(running, there.url("/"), Cache_Control="only-if-cached")
    assert (response.status, response.body) == (200, b"body 1")


# Methods


def test_head_is_answered_from_a_stored_get(through):
    there = through.origin(counting(FRESH))
    running = through.gateway()
    prime(running, there.url("/"))
    response = send(running, there.url("/"), "HEAD")
    assert hit(response)
    assert response.get("content-length") == "6"
    assert response.body == b""


def test_get_is_not_answered_from_a_head(through):
    there = through.origin(lambda seen: reply(
        b"" if seen.method == "HEAD" else b"whole", "200 OK", FRESH,
        *(["Content-Length: 5"] if seen.method == "HEAD" else []), length=seen.method != "HEAD"))
    running = through.gateway()
    send(running, there.url("/"), "HEAD")
    response = fetch(running, there.url("/"))
    assert response.body == b"whole"


@pytest.mark.parametrize(("update", "asked", "expected"), [
    ([], {}, "stored"),
    (["Cache-Control: no-store"], {}, "no-store"), (["Cache-Control: private"], {}, "private"),
    (["Vary: *"], {}, "vary-any"), ([], {"Authorization": "mine"}, "authorization")])
def test_a_304_is_reported_as_stored_only_if_it_is(through, update, asked, expected):
    """RFC 9211 §2.6; otherwise `detail` has the reason."""
    def handler(seen: Request) -> bytes:
        if seen.get("if-none-match"):
            return reply(b"", "304 Not Modified", 'ETag: "a"', *update, length=False)
        return reply(b"body", "200 OK", "Cache-Control: max-age=0", 'ETag: "a"')

    there = through.origin(handler)
    running = through.gateway()
    fetch(running, there.url("/"))
    response = fetch(running, there.url("/"), **asked)
    assert response.body == b"body"
    status = response.cache_status
    assert (status["fwd-status"], "stored" in status) == (304, expected == "stored")
    assert status.get("detail", "stored") == expected


@pytest.mark.parametrize("ending", ["client", "server"])
def test_an_unsafe_request_without_an_answer_invalidates(through, ending):
    """What it has changed at the server is changed, whoever waits for the answer."""
    arrived, release = threading.Event(), threading.Event()

    def handler(seen: Request) -> bytes | None:
        if seen.method == "GET":
            return reply(b"%d" % len(there.requests), "200 OK", FRESH)
        arrived.set()
        if ending == "server":
            return None
        release.wait(20)
        return reply(b"changed")

    there = through.origin(handler)
    running = through.gateway()
    first = prime(running, there.url("/")).body
    if ending == "server":
        assert send(running, there.url("/"), "POST").status == 502
    else:
        wire = running.wire()
        wire.send(request(there.url("/"), method="POST"))
        assert arrived.wait(20)
        wire.reset()
    until(lambda: fetch(running, there.url("/")).body != first, "it is asked for again")
    release.set()


@pytest.mark.parametrize(("method", "status", "invalidated"), [
    ("POST", "200 OK", True), ("PUT", "204 No Content", True), ("DELETE", "200 OK", True),
    ("PATCH", "303 See Other", True), ("UNKNOWN", "200 OK", True),
    ("POST", "500 Internal Server Error", False), ("DELETE", "404 Not Found", False),
    ("PROPPATCH", "207 Multi-Status", True), ("OPTIONS", "200 OK", False),
    ("PROPFIND", "207 Multi-Status", False), ("REPORT", "207 Multi-Status", False),
    ("SEARCH", "200 OK", False), ("QUERY", "200 OK", False)])
def test_unsafe_methods_invalidate(through, method, status, invalidated):
    def handler(seen: Request) -> bytes:
        if seen.method == "GET":
            return reply(b"%d" % len(there.requests), "200 OK", FRESH)
        return reply(b"", status, length=not status.startswith("204"))

    there = through.origin(handler)
    running = through.gateway()
    first = prime(running, there.url("/")).body
    assert f"{send(running, there.url('/'), method).status}" == status[:3]
    assert (fetch(running, there.url("/")).body != first) == invalidated


@pytest.mark.ways("forward", "interception")
@pytest.mark.parametrize("field", ["Location", "Content-Location"])
@pytest.mark.parametrize(("elsewhere", "invalidated"), [(False, True), (True, False)])
def test_invalidation_reaches_the_named_resource_of_the_same_origin(
        through, field, elsewhere, invalidated):
    """RFC 9111 §4.4."""
    def handler(seen: Request) -> bytes:
        if seen.method == "GET":
            return reply(b"%d" % len(there.requests), "200 OK", FRESH)
        host = "other.test" if seen.target == "/elsewhere" else "one.test"
        return reply(b"", "201 Created", f"{field}: {there.scheme}://{host}:{there.port}/named")

    there = through.origin(handler)
    running = through.gateway()
    host = "other.test" if elsewhere else "one.test"
    first = prime(running, f"http://{host}:{there.port}/named").body
    path = "/elsewhere" if elsewhere else "/here"
    send(running, f"http://one.test:{there.port}{path}", "POST")
    assert (fetch(running, f"http://{host}:{there.port}/named").body != first) == invalidated


def test_ranges_are_right_whether_cached_or_not(gateway, nginx):
    data = bytes(range(256)) * 1000
    (nginx.files / "ranges.bin").write_bytes(data)
    running = gateway()
    url = nginx.url("/fresh/ranges.bin")

    def check() -> None:
        for first, last in ((0, 0), (0, 99), (1000, 255_999), (255_999, 255_999)):
            response = fetch(running, url, Range=f"bytes={first}-{last}")
            if response.status == 200:
                assert response.body == data
            else:
                assert response.status == 206
                assert response.get("content-range") == f"bytes {first}-{last}/{len(data)}"
                assert response.body == data[first : last + 1]

    check()
    assert fetch(running, url).body == data, "a part is never taken for the whole"
    prime(running, url)
    check()
    assert fetch(running, url).body == data


# Coalescing


def test_simultaneous_misses_ask_the_origin_once_or_are_right_anyway(through):
    release = threading.Event()
    asked = []

    def script(connection: OriginConnection) -> None:
        while connection.read_request() is not None:
            asked.append(connection.number)
            release.wait(10)
            connection.send(reply(b"shared" * 1000, "200 OK", FRESH))

    there = through.scripted_origin(script)
    running = through.gateway()
    wires = [running.wire() for _ in range(20)]
    try:
        for wire in wires:
            wire.send(request(there.url("/")))
        until(lambda: asked, "the origin is asked")
        release.set()
        assert {wire.read().body for wire in wires} == {b"shared" * 1000}
    finally:
        release.set()
        for wire in wires:
            wire.close()
    assert hit(fetch(running, there.url("/")))


# Disk


def wait_on_disk(running: Gateway, count: int) -> None:
    """Until the store thread has written that many entries."""
    until(lambda: running.metric("pinfold_cache_disk_writes_total") >= count,
          f"{count} entries on disk")


def test_entries_survive_a_restart(gateway, origin):
    def handler(seen: Request) -> bytes:
        body = hashlib.sha256(seen.target.encode()).digest() * 3000
        return reply(body, "200 OK", FRESH, f"X-Sum: {hashlib.sha256(body).hexdigest()}")

    there = origin(handler)
    running = gateway()
    running.wait_for_disk()
    urls = [there.url(f"/{number}") for number in range(20)]
    for url in urls:
        prime(running, url)
    assert running.stop() == 0
    running.start()
    running.wait_for_disk()
    for url in urls:
        response = fetch(running, url)
        assert hit(response), response.get("cache-status")
        assert hashlib.sha256(response.body).hexdigest() == response.get("x-sum")
    assert len(there.requests) == len(urls)


def test_a_large_response_comes_whole_from_disk(gateway, nginx):
    data = hashlib.sha256(b"seed").digest() * 600_000  # 19.2 MB, larger than the memory tier
    (nginx.files / "large.bin").write_bytes(data)
    running = gateway({"cache": {"memory": "4MiB"}})
    url = nginx.url("/fresh/large.bin")
    prime(running, url)
    response = fetch(running, url)
    assert hit(response)
    assert hashlib.sha256(response.body).digest() == hashlib.sha256(data).digest()
    assert SANITIZER or running.peak_rss_bytes < 100 << 20


@pytest.mark.parametrize("how", ["Vary", "cache.key"])
def test_a_hop_by_hop_field_does_not_distinguish_variants(gateway, origin, how):
    """Else who names it in Connection would store the answer to nobody under somebody's name."""
    def answer(seen: Request) -> bytes:
        vary = ["Vary: X-Tenant"] if how == "Vary" else []
        return reply((seen.get("x-tenant") or "nobody").encode(), "200 OK", FRESH, *vary)

    there = origin(answer)
    running = gateway({} if how == "Vary" else {
        "hosts": [{"match": ["127.0.0.1"], "cache": {"key": ["X-Tenant"]}}]})
    url = there.url("/")
    attack = fetch(running, url, X_Tenant="good", Connection="x-tenant")
    assert attack.body == b"nobody"
    assert fetch(running, url, X_Tenant="good").body == b"good"
    assert fetch(running, url).body == b"nobody"


@pytest.mark.large
def test_an_origin_that_is_faster_than_the_disk_waits_for_it(gateway, nginx, workspace):
    """Else the largest responses would be fetched again and again and never be stored."""
    data = random.Random(7).randbytes(1 << 20) * (20 if SANITIZER else 200)
    (nginx.files / "fast.bin").write_bytes(data)
    running = gateway({"cache": {"memory": "4MiB", "disk": "1GiB"}})
    for answered in ("stored", "hit"):
        copy = workspace / answered
        done = subprocess.run(
            ["curl", "-sS", "-x", running.proxy_url, "-o", copy, "-D", "-",
             nginx.url("/fresh/fast.bin")], capture_output=True, text=True, timeout=60, check=True)
        assert answered in done.stdout.lower().partition("cache-status:")[2].splitlines()[0]
        assert hashlib.sha256(copy.read_bytes()).digest() == hashlib.sha256(data).digest()
        copy.unlink()
    assert SANITIZER or running.peak_rss_bytes < 100 << 20
    (nginx.files / "fast.bin").unlink()


def test_the_disk_tier_stays_within_its_size(gateway, origin):
    there = origin(lambda seen: reply(b"x" * 100_000, "200 OK", FRESH))
    running = gateway({"cache": {"memory": "1MiB", "disk": "4MiB"}})
    with running.wire() as wire:
        for number in range(150):
            assert wire.ask(request(there.url(f"/{number}"))).status == 200

    def small() -> bool:
        # The database itself; the write-ahead log has a bound of its own.
        folder = running.folder / "cache"
        return ((folder / "cache.sqlite").stat().st_size < 8 << 20
                and sum(one.stat().st_size for one in folder.iterdir()) < 32 << 20)

    until(small, "eviction keeps the database small")
    until(lambda: running.metric("pinfold_cache_size_bytes", tier="disk") <= 4 << 20,
          "the metric agrees")
    assert hit(fetch(running, there.url("/149")))
    assert not hit(fetch(running, there.url("/0")))


def test_without_a_disk_the_cache_is_in_memory_only(gateway, origin):
    there = origin(counting(FRESH))
    running = gateway({"cache": {"disk": "0"}})
    prime(running, there.url("/"))
    assert not list(running.folder.glob("cache/*.sqlite*"))
    running.restart()
    assert fetch(running, there.url("/")).body == b"body 2"


# Changes of policy


def test_entries_of_an_older_policy_are_not_used(gateway, origin):
    """What was stored without a pin is not served once the host has one."""
    import signal

    there = origin(counting(FRESH))
    running = gateway({"timeouts": {"connect": "300ms"}})
    url = f"http://policy.test:{there.port}/"
    prime(running, url)
    running.write_config({**running.config, "hosts": [
        {"match": ["policy.test"], "upgrade": "https"}]})
    running.signal(signal.SIGHUP)
    # The origin speaks no TLS, so that only the cache could still answer.
    until(lambda: fetch(running, url).status == 504, "the new policy applies to cached entries too")
    assert fetch(running, url).status == 504


def test_a_wire_level_hit_is_framed_for_keep_alive(through):
    there = through.origin(counting(FRESH))
    running = through.gateway()
    prime(running, there.url("/"))
    with running.wire() as wire:
        wire.send(request(there.url("/")) * 30)
        for _ in range(30):
            assert wire.read().body == b"body 1"


# Routes


def test_a_forward_and_a_reverse_route_to_one_origin_have_entries_of_their_own(gateway, origin):
    there = origin(counting(FRESH))
    running = gateway({"listeners": [
        {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
        {"name": "back", "address": "127.0.0.1:0", "kind": "reverse", "upstream": there.url("")}]})

    def forward() -> Response:
        return fetch(running, there.url("/x"))

    def reverse() -> Response:
        return running.ask(request("/x", host="public", Connection="close"), listener="back")

    assert forward().body == b"body 1"
    first = reverse()
    assert first.body == b"body 2"
    assert first.cache_status["fwd"] == "uri-miss", "nothing is stored for this route"
    for _ in range(3):
        for ask, body in [(forward, b"body 1"), (reverse, b"body 2")]:
            stored = ask()
            assert hit(stored)
            assert stored.body == body
    assert len(there.requests) == 2


@pytest.mark.parametrize("unsafe", ["proxy", "back"])
def test_an_unsafe_request_invalidates_along_every_route(gateway, origin, unsafe):
    there = origin(counting(FRESH))
    running = gateway({"listeners": [
        {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
        {"name": "back", "address": "127.0.0.1:0", "kind": "reverse", "upstream": there.url("")}]})
    targets = {"proxy": (there.url("/x"), there.authority), "back": ("/x", "public")}

    def ask(listener: str, method: str = "GET") -> Response:
        target, host = targets[listener]
        return running.ask(
            request(target, host=host, method=method, Connection="close"), listener=listener)

    for listener in targets:
        ask(listener)
        assert hit(ask(listener))
    assert ask(unsafe, "POST").status == 200
    for listener in targets:
        assert not hit(ask(listener))


def test_a_changed_trust_is_given_as_the_reason(gateway, origin):
    there = origin(counting(FRESH))
    running = gateway()
    prime(running, there.url("/x"))
    running.config["access"] = {"destinations": {"allow": ["127.0.0.0/8", "192.0.2.1"]}}
    running.write_config(running.config)
    running.signal(signal.SIGHUP)
    until(lambda: running.metric("pinfold_config_generation") == 2, "reloaded")
    miss = fetch(running, there.url("/x"))
    assert miss.cache_status["fwd"] == "miss"
    assert miss.cache_status.get("stored") is True
    assert hit(fetch(running, there.url("/x")))
