"""What a server confirms of what is stored (304, HEAD), and dates in place of tags: the rules of
the route have decided what clients are sent, and clients are sent nothing else."""

from __future__ import annotations

import gzip
import json
import plistlib

import pytest
from support.gateway import Gateway
from support.origin import HTTPOrigin, Request, reply
from support.wire import Response, request
from test_route_caching import is_hit
from test_route_rules import rules

TO_PLIST = {"body": {"from": "json", "to": "plist"}}
NO_NULLS = {"body": {"from": "json", "to": "json", "removesKeysWithNullValues": True}}
PLIST = "application/x-plist"
VALUE = {"a": 1, "text": "x" * 200}
MODIFIED = "Sun, 01 Nov 2026 10:00:00 GMT"


class Resource:
    """A resource of a server behind a route."""

    def __init__(self, gateway, origin, response: dict, form: str = "translated",
                 *fields: str, lifetime: int = 0):
        self.fields, self.confirming = fields, ()
        self.lifetime = lifetime
        self.content = json.dumps(VALUE).encode()
        self.kind = "application/json"
        self.there: HTTPOrigin = origin(self.handler)
        self.running: Gateway = gateway(rules(response, cache={"form": form}))

    def handler(self, asked: Request) -> bytes:
        fields = [f"Cache-Control: max-age={self.lifetime}", *self.fields]
        if ('"v1"' in asked.get("if-none-match", "")
                or asked.get("if-modified-since") == MODIFIED):
            return reply(b"", "304 Not Modified", *fields, *self.confirming, length=False)
        content = self.content
        if "gzip" in asked.get("accept-encoding", "") and "Vary: Origin" in self.fields:
            content = gzip.compress(content)
            fields.append("Content-Encoding: gzip")
        data = reply(content, "200 OK", f"Content-Type: {self.kind}", *fields)
        return data.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if asked.method == "HEAD" else data

    def ask(self, method: str = "GET", **fields: str) -> Response:
        return self.running.ask(request(self.there.url("/it"), method=method, **fields))


@pytest.mark.parametrize("form", ["translated", "origin"])
@pytest.mark.parametrize(("response", "kind"), [
    (TO_PLIST, PLIST), (TO_PLIST | {"contentTypes": ["application/json"]}, PLIST),
    ({"contentTypes": ["application/json"]}, "application/json")],
    ids=["translated", "both", "checked"])
@pytest.mark.parametrize("again", ["application/json", "text/html"])
def test_a_304_does_not_change_the_type(
        gateway, origin, form: str, response: dict, kind: str, again: str) -> None:
    it = Resource(gateway, origin, response, form if "body" in response else "translated",
                  'ETag: "v1"')
    it.confirming = (f"Content-Type: {again}",)
    first = it.ask()
    assert first.get("content-type") == kind
    for lifetime in (0, 600, 600):
        it.lifetime = lifetime
        answer = it.ask()
        assert (answer.status, answer.get("content-type"), answer.body) == (200, kind, first.body)
    assert is_hit(answer) and len(it.there.requests) == 3
    # Nor for a client that asks for itself.
    answer = it.ask(If_None_Match=first.get("etag"), Cache_Control="no-cache")
    assert (answer.status, answer.get("content-type")) == (304, "")


def test_a_head_of_another_type_is_refused(gateway, origin) -> None:
    it = Resource(gateway, origin, {"contentTypes": ["application/json"]}, lifetime=600)
    assert it.ask().status == 200
    it.kind = "text/html"
    response = it.ask("HEAD", Cache_Control="no-cache")
    assert (response.status, response.get("proxy-status")) == (502, response.get("proxy-status"))
    hit = it.ask()
    assert is_hit(hit) and hit.get("content-type") == "application/json"


@pytest.mark.parametrize("form", ["translated", "origin"])
def test_a_date_does_not_join_parts_of_what_rules_make(gateway, origin, form: str) -> None:
    it = Resource(gateway, origin, TO_PLIST, form, f"Last-Modified: {MODIFIED}", lifetime=600)
    whole = it.ask()
    assert plistlib.loads(whole.body) == VALUE
    response = it.ask(Range="bytes=10-", If_Range=MODIFIED)
    assert (response.status, response.body) == (200, whole.body) and is_hit(response)
    assert it.ask(Range="bytes=10-").status == 206


@pytest.mark.parametrize("form", ["translated", "origin"])
@pytest.mark.parametrize("stored", [False, True])
def test_a_date_alone_does_not_confirm_what_rules_make(
        gateway, origin, form: str, stored: bool) -> None:
    it = Resource(gateway, origin, TO_PLIST, form, f"Last-Modified: {MODIFIED}",
                  lifetime=600 if stored else 0)
    whole = it.ask()
    response = it.ask(If_Modified_Since=MODIFIED)
    assert (response.status, response.body) == (200, whole.body) and is_hit(response) == stored
    if not stored:
        # What the gateway has stored is confirmed by it.
        assert it.there.requests[1].get("if-modified-since") == MODIFIED
    response = it.ask(If_Modified_Since=MODIFIED, Cache_Control="no-store")
    assert (response.status, response.body) == (200, whole.body)


def test_where_nothing_is_changed_a_date_does(gateway, origin) -> None:
    it = Resource(gateway, origin, {"validate": "json"}, "translated",
                  f"Last-Modified: {MODIFIED}", lifetime=600)
    it.ask()
    response = it.ask(Range="bytes=10-", If_Range=MODIFIED)
    assert (response.status, response.body) == (206, it.content[10:])


def test_a_304_with_vary_does_not_take_away_the_gateways(gateway, origin) -> None:
    it = Resource(gateway, origin, TO_PLIST, "translated", 'ETag: "v1"', "Vary: Origin")
    packed = it.ask(Accept_Encoding="gzip")
    assert packed.get("content-encoding") == "gzip"
    it.lifetime = 600
    again = it.ask(Accept_Encoding="gzip")
    assert (again.status, again.body) == (200, packed.body) and len(it.there.requests) == 2
    assert is_hit(it.ask(Accept_Encoding="gzip"))
    plain = it.ask()
    assert "content-encoding" not in plain and plistlib.loads(plain.body) == VALUE


def test_in_the_origins_form_a_head_reveals_nothing_of_the_origins_content(gateway, origin) -> None:
    it = Resource(gateway, origin, NO_NULLS, "origin", 'ETag: "v1"', lifetime=600)
    it.content = b'{"a":null,"b":1}'
    first = it.ask()
    assert first.body == b'{"b":1}' and first.get("etag") != '"v1"'
    response = it.ask("HEAD", Cache_Control="no-store")
    assert response.status == 200 and len(it.there.requests) == 2
    assert "etag" not in response and "content-length" not in response


def test_the_servers_tag_is_known_by_the_weak_comparison(gateway, origin) -> None:
    it = Resource(gateway, origin, TO_PLIST, "origin", 'ETag: "v1"')
    it.ask()
    it.ask(If_None_Match='W/"v1"')
    assert it.there.requests[1].get("if-none-match") == '"v1"'
