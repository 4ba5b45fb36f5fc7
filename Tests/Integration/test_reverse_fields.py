"""The fields about the client's side that a reverse listener sends its upstream, and what that means for the
cache."""

from __future__ import annotations

import pytest
from support.gateway import Gateway
from support.origin import Request, reply
from support.wait import until
from support.wire import Response

FRESH = "Cache-Control: max-age=600"
SPOOFED = ["X-Forwarded-For: 1.1.1.1", "X-Forwarded-Host: evil", "X-Forwarded-Proto: https",
           "Forwarded: for=1.1.1.1;host=evil", "X_Forwarded_Host: evil"]
FIELDS = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "forwarded"]


def hit(response: Response) -> bool:
    return "hit" in response.cache_status


def echo_origin(seen: Request) -> bytes:
    """Answers with the host that the origin would build its links with."""
    host = seen.get("x-forwarded-host") or seen.get("host")
    proto = seen.get("x-forwarded-proto", "none")
    return reply(f"{proto}://{host}".encode(), "200 OK", FRESH)


def reverse(upstream: str, **keys: object) -> dict:
    return {"listeners": [{"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
                           "upstream": upstream, **keys}]}


def ask(gateway: Gateway, host: str, *fields: str, path: str = "/",
        method: str = "GET") -> Response:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *fields, "Connection: close"]
    return gateway.ask("\r\n".join(lines) + "\r\n\r\n", listener="back")


def seen(request: Request) -> list[list[str]]:
    return [request.all(name) for name in FIELDS]


@pytest.mark.parametrize("keys", [{}, {"forwarded": "set"}, {"forwarded": "append"}, {
    "forwarded": "append", "trustedProxies": ["192.0.2.0/24"]}])
def test_the_gateways_own_fields_replace_those_of_a_client(gateway, origin, keys):
    there = origin(echo_origin)
    running = gateway(reverse(there.url(""), **keys))
    ask(running, "public.example:81", *SPOOFED)
    request = there.requests[0]
    assert seen(request) == [
        ["127.0.0.1"], ["public.example:81"], ["http"],
        ['for=127.0.0.1;host="public.example:81";proto=http']]
    assert "x_forwarded_host" not in request
    assert request.get("host") == there.authority


@pytest.mark.parametrize("keys", [{"forwarded": "append", "trustedProxies": ["127.0.0.0/8"]},
                                  {"trustedProxies": ["127.0.0.1"]}])
def test_fields_of_a_trusted_proxy_are_kept_and_appended_to(gateway, origin, keys):
    there = origin(echo_origin)
    running = gateway(reverse(there.url(""), **keys))
    ask(running, "inner", "X-Forwarded-For: 192.0.2.1", "X-Forwarded-Host: public.example",
        "X-Forwarded-Proto: https", "Forwarded: for=192.0.2.1;proto=https")
    assert seen(there.requests[0]) == [
        ["192.0.2.1, 127.0.0.1"], ["public.example"], ["https"],
        ['for=192.0.2.1;proto=https, for=127.0.0.1;host="inner";proto=http']]


def test_none_sends_none(gateway, origin):
    there = origin(echo_origin)
    running = gateway(reverse(there.url(""), forwarded="none"))
    ask(running, "public.example", *SPOOFED)
    assert seen(there.requests[0]) == [[], [], [], []]


def test_host_is_kept_by_choice(gateway, origin):
    there = origin(echo_origin)
    running = gateway(reverse(there.url(""), host="keep", forwarded="none"))
    ask(running, "public.example:8443")
    assert there.requests[0].all("host") == ["public.example:8443"]


def test_a_forward_proxy_leaves_the_fields_as_they_are(gateway, origin):
    there = origin(echo_origin)
    running = gateway()
    running.ask(f"GET {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n"
                "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Host: a\r\nConnection: close\r\n\r\n")
    assert seen(there.requests[0]) == [["192.0.2.1"], ["a"], [], []]


# The cache


@pytest.mark.parametrize("keys", [{}, {"host": "keep", "forwarded": "none"}])
def test_each_forwarded_host_has_its_own_responses(gateway, origin, keys):
    there = origin(echo_origin)
    running = gateway(reverse(there.url(""), **keys))
    for host in ("a.example", "b.example"):
        assert not hit(ask(running, host))
        stored = ask(running, host)
        assert hit(stored)
        assert stored.body.endswith(host.encode())
    assert not hit(ask(running, "a.example", path="http://c.example/")), "the target's host wins"
    assert ask(running, "a.example").body.endswith(b"a.example")


def test_without_a_forwarded_host_all_share_the_responses(gateway, origin):
    there = origin(echo_origin)
    running = gateway(reverse(there.url(""), forwarded="none"))
    ask(running, "a.example")
    assert hit(ask(running, "b.example"))


def test_the_gateways_own_fields_do_not_keep_out_of_the_cache(gateway, origin):
    there = origin(echo_origin)
    running = gateway(reverse(there.url("")))
    ask(running, "a.example")
    assert hit(ask(running, "a.example", *SPOOFED)), "what is replaced means nothing"
    assert not hit(ask(running, "a.example", "X-Original-URL: /admin")), "others do"


def test_a_trusted_scheme_is_part_of_the_key_and_an_untrusted_one_keeps_out(gateway, origin):
    there = origin(echo_origin)
    running = gateway(reverse(there.url(""), trustedProxies=["127.0.0.1"]))
    for proto in ("https", "http"):
        assert not hit(ask(running, "a", f"X-Forwarded-Proto: {proto}"))
        stored = ask(running, "a", f"X-Forwarded-Proto: {proto}")
        assert hit(stored)
        assert stored.body == f"{proto}://a".encode()
    running = gateway(reverse(there.url(""), trustedProxies=["192.0.2.1"]))
    poison = ask(running, "a", "X-Forwarded-Proto: https")
    assert poison.body == b"http://a"
    assert poison.cache_status["detail"] == "bypass-field"


def test_an_unsafe_request_invalidates_the_responses_for_every_host(gateway, origin):
    there = origin(echo_origin)
    running = gateway(reverse(there.url("")))
    for host in ("a.example", "b.example"):
        ask(running, host)
        assert hit(ask(running, host))
    assert ask(running, "b.example", "Content-Length: 0", method="POST").status == 200
    for host in ("a.example", "b.example"):
        assert not hit(ask(running, host))


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded"])
def test_what_varies_by_the_client_is_not_shared(gateway, origin, name):
    there = origin(lambda seen: reply(seen.get(name.lower()).encode(), "200 OK", FRESH,
                                      f"Vary: {name}"))
    running = gateway(reverse(there.url("")))
    first = ask(running, "a")
    assert first.cache_status["detail"] == "vary-any"
    assert not hit(ask(running, "a"))


def test_a_refresh_in_the_background_sends_the_same_fields(gateway, origin):
    def handler(seen: Request) -> bytes:
        return reply(echo_origin(seen).split(b"\r\n\r\n")[1], "200 OK",
                     "Cache-Control: max-age=0, stale-while-revalidate=600")

    there = origin(handler)
    running = gateway(reverse(there.url("")))
    ask(running, "a.example")
    assert ask(running, "a.example").body == b"http://a.example"
    until(lambda: len(there.requests) == 2, "the origin is asked")
    assert seen(there.requests[0]) == seen(there.requests[1])
    assert ask(running, "a.example").body == b"http://a.example"
