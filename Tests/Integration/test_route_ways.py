"""The rules of a route by each way that a request takes: a reverse listener, the forward proxy in
clear text, and intercepted tunnels."""

from __future__ import annotations

import json
import plistlib

import pytest
from support.origin import Request, reply
from support.wire import request
from test_route_caching import is_hit
from test_route_rules import FORM, JSON, rules

LEGACY = {"request": {"body": {"from": "form", "to": "json"},
                      "headers": {"set": {"X-Tenant": "a"}},
                      "path": {"prefixes": {"/old": "/v2"}}, "query": {"remove": ["debug"]}},
          "response": {"contentTypes": ["application/json"],
                       "body": {"from": "json", "to": "plist"}}}


def api(asked: Request) -> bytes:
    """Says what it was asked; what was not asked in JSON is answered with a page."""
    if asked.target == "/v2/portal":
        return reply(b"<html>log in</html>", "200 OK", "Content-Type: text/html",
                     "Cache-Control: max-age=600")
    if asked.target == "/v2/broken":
        return reply(b'{"a":', "200 OK", JSON, "Cache-Control: max-age=600")
    content = {"target": asked.target, "tenant": asked.get("x-tenant"),
            "body": json.loads(asked.body) if asked.body else ""}
    return reply(json.dumps(content).encode(), "200 OK", JSON, 'ETag: "x"',
                 "Cache-Control: max-age=600")


def test_content_is_translated_both_ways(through) -> None:
    there = through.origin(api)
    running = through.gateway(rules(**LEGACY))
    response = running.ask(request(there.url("/old/it?debug=1&a=2"), method="POST", body=b"k[]=v",
                               Content_Type=FORM, Connection="close"))
    assert response.status == 200 and response.get("content-type") == "application/x-plist"
    assert plistlib.loads(response.body) == {
        "target": "/v2/it?a=2", "tenant": "a", "body": {"k": ["v"]}}


def test_what_is_translated_is_stored(through) -> None:
    there = through.origin(api)
    running = through.gateway(rules(**LEGACY))
    first, second = (running.get(there.url("/old/it")) for _ in range(2))
    assert (is_hit(first), is_hit(second)) == (False, True)
    assert first.body == second.body and plistlib.loads(first.body)["target"] == "/v2/it"
    assert running.get(there.url("/old/it"), If_None_Match=first.get("etag")).status == 304
    assert len(there.requests) == 1


def test_a_connection_outlives_what_is_refused(through) -> None:
    there = through.origin(api)
    running = through.gateway(rules(**LEGACY))
    with running.wire() as wire:
        for body, path, status, reason in (
                (b"a=%", "/old/it", 400, "request-body-invalid"),
                (b"a=1", "/old/portal", 502, "response-type-refused"),
                (b"a=1", "/old/broken", 502, "response-body-invalid"),
                (b"a=1", "/old/it", 200, ""),
                (b"", "/old/it", 200, "")):
            response = wire.ask(request(there.url(path), method="POST", body=body, Content_Type=FORM))
            assert response.status == status
            assert response.body.decode().startswith(f"{status} {reason}\n" if reason else "<?xml")
    assert [json.loads(one.body) for one in there.requests] == [{"a": "1"}] * 3 + [{}]


@pytest.mark.ways("reverse", "forward", "interception")
def test_content_that_waits_to_be_asked_for_is_asked_for(through) -> None:
    there = through.origin(api)
    running = through.gateway(rules(**LEGACY))
    with running.wire() as wire:
        wire.send(request(there.url("/old/it"), method="POST", Content_Type=FORM,
                          Content_Length="3", Expect="100-continue"))
        assert wire.read_head().status == 100
        assert there.requests == []
        wire.send(b"a=1")
        assert plistlib.loads(wire.read().body)["body"] == {"a": "1"}
    (asked,) = there.requests
    assert "expect" not in asked and asked.get("content-type") == "application/json"
