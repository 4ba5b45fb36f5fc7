"""What a route that changes content does not change: it keeps the server's tags, and is asked about
and stored as without rules."""

from __future__ import annotations

import json

import pytest
from support.gateway import Gateway
from support.origin import HTTPOrigin, Request, reply
from support.wire import Response, request
from test_route_caching import is_hit
from test_route_rules import FORM, rules

TO_PLIST = {"body": {"from": "json", "to": "plist"}}
NO_NULLS = {"body": {"from": "json", "to": "json", "removesKeysWithNullValues": True}}
PAGE, WITHOUT, WITH = b"<p>hello</p>", b'{ "a": 1 }', b'{"a":null,"b":1}'


class Resource:
    """A resource of a server that is stale at once, behind a route."""

    def __init__(self, gateway, origin, response: dict, content: bytes, kind: str):
        self.content, self.kind, self.tag = content, kind, '"one"'
        self.lifetime = 0
        self.there: HTTPOrigin = origin(self.handler)
        self.running: Gateway = gateway(rules(response))

    def handler(self, asked: Request) -> bytes:
        fields = [f"ETag: {self.tag}", f"Cache-Control: max-age={self.lifetime}"]
        if self.tag in [tag.strip() for tag in asked.get("if-none-match").split(",")]:
            return reply(b"", "304 Not Modified", *fields, length=False)
        data = reply(self.content, "200 OK", f"Content-Type: {self.kind}", *fields)
        return data.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if asked.method == "HEAD" else data

    def ask(self, method: str = "GET", **fields: str) -> Response:
        return self.running.ask(request(self.there.url("/it"), method=method, **fields))

    @property
    def asked(self) -> list[Request]:
        return self.there.requests


@pytest.mark.parametrize(("response", "content", "kind"), [
    (TO_PLIST, PAGE, "text/html"), (NO_NULLS, PAGE, "text/html"),
    (NO_NULLS, WITHOUT, "application/json")], ids=["plist-page", "nulls-page", "nulls-json"])
def test_what_is_stored_unchanged_is_confirmed_by_the_server(
        gateway, origin, response: dict, content: bytes, kind: str) -> None:
    it = Resource(gateway, origin, response, content, kind)
    assert (first := it.ask()).body == content and first.get("etag") == '"one"'
    it.lifetime = 600
    second = it.ask()
    assert it.asked[1].get("if-none-match") == '"one"'
    assert (second.status, second.body, second.get("etag")) == (200, content, '"one"')
    assert is_hit(it.ask()) and len(it.asked) == 2
    answer = it.ask(If_None_Match='"one"', Cache_Control="no-cache")
    assert (answer.status, answer.get("etag")) == (304, '"one"')


def test_what_was_unchanged_and_is_new_takes_its_place(gateway, origin) -> None:
    it = Resource(gateway, origin, NO_NULLS, WITHOUT, "application/json")
    assert it.ask().body == WITHOUT
    it.content, it.tag, it.lifetime = WITH, '"two"', 600
    changed = it.ask()
    assert it.asked[1].get("if-none-match") == '"one"'
    assert json.loads(changed.body) == {"b": 1} and changed.get("etag").startswith('"two-')
    assert is_hit(it.ask()) and it.ask().body == changed.body


def test_head_has_no_fields_that_depend_on_the_content(gateway, origin) -> None:
    it = Resource(gateway, origin, NO_NULLS, WITH, "application/json")
    response = it.ask("HEAD")
    assert response.status == 200 and response.get("content-type") == "application/json"
    assert "content-length" not in response and "etag" not in response
    whole = it.ask()
    assert json.loads(whole.body) == {"b": 1}


@pytest.mark.parametrize("content", [WITHOUT, WITH], ids=["without", "with"])
def test_head_has_the_stored_fields_while_the_server_has_the_same(
        gateway, origin, content: bytes) -> None:
    it = Resource(gateway, origin, NO_NULLS, content, "application/json")
    whole = it.ask()
    it.lifetime = 600
    head = it.ask("HEAD", Cache_Control="no-cache")
    assert head.status == 200 and head.get("etag") == whole.get("etag")
    assert head.get("content-length") in ("", str(len(whole.body)))
    # That was news of it.
    assert is_hit(again := it.ask()) and again.body == whole.body


def test_head_of_something_new_outdates_what_is_stored(gateway, origin) -> None:
    it = Resource(gateway, origin, NO_NULLS, WITH, "application/json")
    it.lifetime = 600
    it.ask()
    assert is_hit(it.ask())
    it.tag = '"two"'
    it.ask("HEAD", Cache_Control="no-cache")
    assert not is_hit(response := it.ask()) and response.get("etag").startswith('"two-')


# Requests without content


@pytest.mark.parametrize(("source", "kind", "target", "sent", "becomes"), [
    ("form", FORM, "json", b"{}", "application/json"),
    ("form", FORM + "; charset=utf-8", "xml", b'<?xml version="1.0" encoding="UTF-8"?>\n<root/>\n',
     "application/xml; charset=utf-8"),
    ("json", "application/json", "form", b"", FORM),
    ("plist", "application/x-plist", "json", b"", "application/json"),
    ("xml", "application/xml", "json", b"", "application/xml"),
    ("form", "text/plain", "json", b"", "text/plain")],
    ids=["form", "form-xml", "json", "plist", "xml", "text"])
@pytest.mark.parametrize("framing", ["Content-Length: 0", ""])
def test_a_post_of_nothing_is_in_the_format_of_the_server(
        gateway, origin, source, kind, target, sent, becomes, framing) -> None:
    there = origin(lambda _: reply(b"ok"))
    running = gateway(rules(request={"body": {"from": source, "to": target}}))
    head = [f"POST {there.url('/')} HTTP/1.1", f"Host: {there.authority}",
            f"Content-Type: {kind}", *([framing] if framing else []), "Connection: close"]
    response = running.ask("\r\n".join(head).encode() + b"\r\n\r\n")
    assert response.status == 200
    (asked,) = there.requests
    assert (asked.body, asked.get("content-type")) == (sent, becomes)


def test_a_get_without_content_stays_without(gateway, origin) -> None:
    there = origin(lambda _: reply(b"ok"))
    running = gateway(rules(request={"body": {"from": "form", "to": "json"}}))
    for method in ("GET", "DELETE"):
        assert running.ask(request(there.url(), method=method, Content_Type=FORM)).status == 200
        asked = there.requests[-1]
        assert (asked.body, asked.get("content-type")) == (b"", FORM)
        assert "content-length" not in asked
