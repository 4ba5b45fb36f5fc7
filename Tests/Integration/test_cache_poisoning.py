"""What one client sends must not change what others are given from the cache."""

from __future__ import annotations

import signal

import pytest
from support.gateway import Gateway
from support.origin import Request, reply
from support.wait import until
from support.wire import Response

FRESH = "Cache-Control: max-age=600"

BYPASSING = [
    "X-Forwarded-Host", "X-Host", "X-Forwarded-Server", "X-Forwarded-Scheme", "X-Original-URL",
    "X-Rewrite-URL", "X-HTTP-Method", "X-HTTP-Method-Override", "X-Method-Override",
    "X_Forwarded_Host", "x-forwarded-proto", "Forwarded",
]


def hit(response: Response) -> bool:
    return "hit" in response.cache_status


def echo_fields(seen: Request) -> bytes:
    """Answers with what the fields that may be poisonous say."""
    values = [seen.get(name.lower()) for name in BYPASSING]
    return reply(("said:" + "".join(values)).encode(), "200 OK", FRESH)


def ask(gateway: Gateway, url: str, *fields: str) -> Response:
    host = url.split("//", 1)[-1].split("/", 1)[0]
    lines = [f"GET {url} HTTP/1.1", f"Host: {host}", *fields, "Connection: close"]
    return gateway.ask("\r\n".join(lines) + "\r\n\r\n")


@pytest.mark.ways("forward", "interception")
def test_a_request_with_such_a_field_neither_gives_nor_takes(through):
    there = through.origin(echo_fields)
    running = through.gateway()
    for name in BYPASSING:
        url = there.url(f"/{name}")
        poison = ask(running, url, f"{name}: evil")
        assert poison.body == b"said:evil"
        assert poison.cache_status["fwd"] == "bypass"
        assert poison.cache_status["detail"] == "bypass-field"
        clean = ask(running, url)
        assert clean.body == b"said:"
        assert clean.cache_status["fwd"] == "uri-miss", "nothing was stored"
        assert hit(ask(running, url))
        again = ask(running, url, f"{name}: evil")
        assert again.body == b"said:evil", "the stored one does not answer it"
        assert hit(ask(running, url)), "and is still there"


def test_a_field_that_the_key_names_is_cached_by_its_value(gateway, origin):
    there = origin(echo_fields)
    running = gateway({"hosts": [{
        "match": ["127.0.0.1"], "cache": {"key": ["X-Forwarded-Host"]}}]})
    for host in ("a.example", "b.example"):
        assert not hit(ask(running, there.url(), f"X-Forwarded-Host: {host}"))
        stored = ask(running, there.url(), f"X-Forwarded-Host: {host}")
        assert hit(stored)
        assert stored.body == f"said:{host}".encode()
    assert not hit(ask(running, there.url(), "X-Host: c")), "the others still keep out"
    assert not hit(ask(running, there.url(), "X-Host: c"))


def test_the_list_is_the_operators_and_changes_with_a_reload(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", FRESH))
    running = gateway({"cache": {"bypassFields": ["X-Mine"]}})
    assert ask(running, there.url(), "X-Host: a").cache_status.get("stored") is True
    assert hit(ask(running, there.url(), "X-Host: b"))
    assert ask(running, there.url(), "x-mine: 1").cache_status["detail"] == "bypass-field"
    running.config["cache"]["bypassFields"] = []
    running.write_config(running.config)
    running.signal(signal.SIGHUP)
    until(lambda: running.metric("pinfold_config_generation") == 2, "reloaded")
    assert hit(ask(running, there.url(), "x-mine: 1"))


def test_an_answer_to_a_cookie_gets_no_guess_of_freshness(through):
    calls = 0

    def handler(seen: Request) -> bytes:
        nonlocal calls
        calls += 1
        return reply(seen.get("cookie").encode() or b"nobody", "200 OK",
                     "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT")

    there = through.origin(handler)
    running = through.gateway()
    mine = ask(running, there.url(), "Cookie: me")
    assert mine.body == b"me"
    assert mine.cache_status["detail"] == "request-cookie"
    assert ask(running, there.url()).body == b"nobody"
    assert hit(ask(running, there.url())), "without a cookie the guess is made"


@pytest.mark.parametrize("status", ["400 Bad Request", "414 URI Too Long", "501 Not Implemented",
                                    "401 Unauthorized", "431 Too Large", "422 Unprocessable"])
def test_a_refusal_of_one_request_is_not_stored(through, status):
    calls = 0

    def handler(_: Request) -> bytes:
        nonlocal calls
        calls += 1
        return reply(b"no" if calls == 1 else b"yes", status if calls == 1 else "200 OK",
                     "Cache-Control: public, max-age=600")

    there = through.origin(handler)
    running = through.gateway()
    refused = ask(running, there.url())
    assert refused.body == b"no"
    assert refused.cache_status["detail"] == "this-request-only"
    assert ask(running, there.url()).body == b"yes"
