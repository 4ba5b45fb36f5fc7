"""Rules of a route where they meet what else an exchange does: invalidation, errors that a stale
response stands in for, reloads, and content whose end is the connection's."""

from __future__ import annotations

import json
import plistlib

import pytest
from support.origin import OriginConnection, Request, reply
from support.wait import until
from support.wire import request
from test_reload import reload
from test_route_rules import FORM, JSON, rules

LONG = "Cache-Control: max-age=600"


def hit(response) -> bool:
    return "hit" in response.cache_status


@pytest.mark.parametrize(("method", "asked", "content", "stored"), [
    ("DELETE", "/d", b"id=5", "/d?id=5"), ("POST", "/p?a=1", b"", "/p"), ("PUT", "/q?a=1", b"", "/q")])
def test_an_unsafe_request_invalidates_the_target_that_its_server_sees(
        gateway, origin, method, asked, content, stored):
    """RFC 9111 §4.4; parameters move to where their method has them."""
    there = origin(lambda seen: reply(
        b"%d" % len(there.requests), "200 OK", *([LONG] if seen.method == "GET" else [])))
    running = gateway(rules(request={"parameters": "byMethod"}))
    first = running.get(there.url(stored)).body
    assert hit(running.get(there.url(stored)))
    data = request(there.url(asked), method=method, body=content, Content_Type=FORM)
    assert running.ask(data).status == 200
    assert there.requests[-1].target == stored
    assert running.get(there.url(stored)).body != first


@pytest.mark.parametrize("status", [
    "500 Internal Server Error", "503 Service Unavailable", "404 Not Found"])
def test_a_refused_server_error_is_bridged_as_one_that_is_passed_on(gateway, origin, status):
    def handler(_: Request) -> bytes:
        if len(there.requests) == 1:
            return reply(b"{}", "200 OK", JSON, "Cache-Control: max-age=0, stale-if-error=600")
        return reply(b"error", status)

    there = origin(handler)
    running = gateway(rules({"statusCodes": ["200-299"]}))
    assert running.get(there.url()).status == 200
    response = running.get(there.url())
    if status.startswith("404"):
        assert response.status == 502
        assert b"response-status-refused" in response.body
    else:
        assert (response.status, response.body) == (200, b"{}")
        assert response.cache_status["detail"] == "stale-if-error"


@pytest.mark.parametrize("form", ["translated", "origin"])
def test_what_ends_with_its_connection_is_not_kept_translated_either(
        gateway, scripted_origin, form):
    """Without TLS it cannot be distinguished from what was cut off: this might have become 123456."""
    def script(connection: OriginConnection) -> None:
        connection.read_request()
        connection.send(reply(b"123", "200 OK", JSON, LONG, length=False))

    there = scripted_origin(script)
    running = gateway(rules({"body": {"from": "json", "to": "plist"}}, cache={"form": form}))
    for _ in range(2):
        response = running.get(there.url())
        assert plistlib.loads(response.body) == 123
        assert not hit(response)
        assert response.cache_status["detail"] == "incomplete"


@pytest.mark.parametrize("after", [
    {"path": {"prefixes": {"/": "/new"}}, "headers": {"set": {"X-Rules": "new"}},
     "body": {"from": "form", "to": "plist"}}, None], ids=["others", "none"])
@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_request_keeps_its_rules_over_a_reload(gateway, origin, after, framing):
    there = origin(lambda seen: reply(b"[1]", "200 OK", JSON, LONG))
    before = {"path": {"prefixes": {"/": "/old"}}, "headers": {"set": {"X-Rules": "old"}},
              "body": {"from": "form", "to": "json"}}
    running = gateway(rules({"body": {"from": "json", "to": "plist"}}, before))
    head = (f"POST {there.url('/p')} HTTP/1.1\r\nHost: {there.authority}\r\nContent-Type: {FORM}\r\n")
    with running.wire() as wire:
        if framing == "length":
            wire.send(head + "Content-Length: 7\r\n\r\na=1&")
        else:
            wire.send(head + "Transfer-Encoding: chunked\r\n\r\n4\r\na=1&\r\n")
        until(lambda: running.metric("pinfold_http_requests_in_flight") == 1, "it has begun")
        reload(running, rules({"contentTypes": ["application/json"]}, after))
        wire.send("b=2" if framing == "length" else "3\r\nb=2\r\n0\r\n\r\n")
        response = wire.read_final()
    assert response.status == 200
    assert plistlib.loads(response.body) == [1], "what the former rules ask of the response"
    (seen,) = there.requests
    assert (seen.target, seen.get("x-rules")) == ("/old/p", "old")
    assert json.loads(seen.body) == {"a": "1", "b": "2"}


# Other protocols (RFC 9110 §7.8)

WEBSOCKET = {"Connection": "Upgrade", "Upgrade": "websocket"}


def switching(connection: OriginConnection) -> None:
    connection.read_request_head()
    connection.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
                    "Upgrade: websocket\r\n\r\nhello")
    connection.read_to_end()


@pytest.mark.parametrize(("sections", "entry", "passes"), [
    ({"response": {"statusCodes": ["200-299"]}}, {}, False),
    ({"response": {"contentTypes": ["application/json"]}}, {}, False),
    ({"response": {"validate": "json"}}, {}, False),
    ({"request": {"body": {"from": "form", "to": "json"}}}, {}, False),
    ({"request": {"parameters": "byMethod"}}, {}, False),
    ({"response": {"validate": "json"}}, {"switchProtocols": "allow"}, True),
    ({"request": {"parameters": "byMethod"}}, {"switchProtocols": "allow"}, True),
    ({"request": {"headers": {"set": {"X-A": "b"}}}}, {}, True),
    ({}, {}, True), ({}, {"switchProtocols": "refuse"}, False)])
def test_no_other_protocol_passes_rules_that_cannot_look_into_it(
        gateway, scripted_origin, sections, entry, passes):
    there = scripted_origin(switching)
    running = gateway(rules(**sections, **entry))
    with running.wire() as wire:
        response = wire.ask(request(there.url("/"), **WEBSOCKET))
        if passes:
            assert response.status == 101
            assert wire.read_exactly(5) == b"hello"
        else:
            assert response.body.startswith(b"403 protocol-switch-refused\n")
            assert response.status == 403
            assert response.proxy_status["error"] == "http_request_denied"
    assert there.accepted == passes


def test_a_request_for_another_protocol_does_not_bypass_the_rules(gateway, origin):
    there = origin(lambda _: reply(b"ok"))
    running = gateway(rules(request={"body": {"from": "form", "to": "json"}}))
    response = running.ask(request(
        there.url("/"), method="POST", body=b"a=1", Content_Type=FORM, **WEBSOCKET))
    assert response.status == 200
    assert (there.requests[0].body, "upgrade" in there.requests[0]) == (b'{"a":"1"}', False)


def test_a_websocket_ends_when_a_reload_refuses_it(gateway, scripted_origin, pki):
    there = scripted_origin(switching, tls=pki.intermediate.issue("127.0.0.1").server_context())
    configuration = rules(upgrade="https")
    configuration["tls"] = {"roots": [str(pki.root.pem_file)]}
    running = gateway(configuration)
    with running.wire() as wire:
        assert wire.ask(request(there.url("/"), **WEBSOCKET)).status == 101
        assert wire.read_exactly(5) == b"hello"
        configuration["hosts"][0]["response"] = {"validate": "json"}
        reload(running, configuration)
        assert wire.ended()
    (line,) = running.wait_access(1)
    assert line["reason"] == "tunnel-policy-changed"


# What Content-Type says, and content that is absent


@pytest.mark.parametrize(("lines", "accepted"), [
    (["application/json"], True), (["application/json;"], True),
    (["Application/JSON ; ;charset=utf-8;"], True), (['application/json; a="b, text/html"'], True),
    (["application/json;,text/html"], False), (["application/json, text/html"], False),
    (["application/json; charset=utf-8, text/html"], False), (["application/json; utf-8"], True),
    (['application/json; a="b'], False), (["application/json;a=b c"], True),
    (["application/json; profile=http://a/"], True), (["application/json; a, text/html"], False),
    (["application/json; charset=utf 8"], False), (["application/json charset=utf-8"], False),
    (["application/json", "application/json; a=b"], True),
    (["application/json", "application/json;,text/html"], False)])
def test_what_is_no_media_type_to_its_end_is_no_type(gateway, origin, lines, accepted):
    """RFC 9110 §8.3.1: browsers take the last type of such a list."""
    there = origin(lambda _: reply(b"{}", "200 OK", *(f"Content-Type: {one}" for one in lines)))
    response = gateway(rules({"contentTypes": ["application/*"]})).get(there.url())
    if accepted:
        assert (response.status, response.body) == (200, b"{}")
    else:
        assert response.status == 502
        assert response.body.startswith(b"502 response-type-refused\n")


UNCLEAR = [["application/json;,text/html"], ["text/html, application/json"],
           ["text/html", "application/json"], ["application/json", "text/html"],
           ['application/json; a="b'], ["application/json charset=utf-8"], [";,application/json"],
           ["application/json(c)"], ["application/json\x80"]]
SLIPS = ["application/json; utf-8", "application/json; charset",
         "application/json; charset=utf-8; boundary=a b", "application/json; type=text/html"]


@pytest.mark.parametrize("lines", [*([slip] for slip in SLIPS), *UNCLEAR])
def test_no_response_passes_untranslated_by_a_slip_in_its_type(gateway, origin, lines):
    there = origin(lambda _: reply(
        b'{"a":"b"}', "200 OK", *(f"Content-Type: {one}" for one in lines)))
    response = gateway(rules({"body": {"from": "json", "to": "plist"}})).get(there.url())
    if lines in UNCLEAR:
        assert response.status == 502
        assert response.body.startswith(b"502 response-type-refused\n")
        assert b"could be read as json" in response.body
    else:
        assert (response.status, response.get("content-type")) == (200, "application/x-plist")
        assert plistlib.loads(response.body) == {"a": "b"}


@pytest.mark.parametrize("lines", [*([slip] for slip in SLIPS), *UNCLEAR])
def test_no_request_passes_untranslated_by_a_slip_in_its_type(gateway, origin, lines):
    there = origin(lambda _: reply(b"ok"))
    running = gateway(rules(request={"body": {"from": "json", "to": "form"}}))
    fields = "".join(f"Content-Type: {one}\r\n" for one in lines)
    response = running.ask(f"POST {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n{fields}"
                       'Content-Length: 9\r\n\r\n{"a":"b"}')
    if lines in UNCLEAR:
        assert response.status == 400
        assert response.body.startswith(b"400 request-body-invalid\n")
        assert b"could be read as json" in response.body and there.requests == []
    else:
        assert response.status == 200
        assert (there.requests[0].body, there.requests[0].get("content-type")) == (b"a=b", FORM)


@pytest.mark.parametrize("kind", ["text/html", "text/html; utf-8", "text/html, text/plain"])
def test_what_is_read_as_another_format_passes_untranslated(gateway, origin, kind):
    there = origin(lambda _: reply(b'{"a":"b"}', "200 OK", f"Content-Type: {kind}"))
    running = gateway(rules({"body": {"from": "json", "to": "plist"}},
                            request={"body": {"from": "json", "to": "form"}}))
    response = running.ask(request(
        there.url("/"), method="POST", body=b'{"c":1}', Content_Type=kind))
    assert (response.status, response.body) == (200, b'{"a":"b"}')
    assert there.requests[0].body == b'{"c":1}'


def without_content(seen: Request) -> bytes:
    """An answer without content, framed as the target says."""
    framing = {"/length": "Content-Length: 0", "/chunks": "Transfer-Encoding: chunked",
               "/close": "Connection: close"}[seen.target.partition("?")[0]]
    end = "0\r\n\r\n" if "chunks" in seen.target and seen.method != "HEAD" else ""
    kind = seen.target.partition("?")[2]
    return f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{framing}\r\n\r\n{end}".encode()


@pytest.mark.parametrize("framing", ["length", "chunks", "close"])
@pytest.mark.parametrize(("response", "kind", "reason"), [
    ({"validate": "json"}, "application/json", None),
    ({"validate": "plist"}, "application/x-plist", None),
    ({"validate": "json", "schema": "any.json"}, "application/json", "response-schema-violated"),
    ({"validate": "image"}, "image/png", "response-image-refused"),
    ({"image": {"accept": ["image/png"]}}, "image/png", "response-image-refused"),
    ({"image": {"accept": ["image/png"]}}, "text/html", None)])
def test_no_content_satisfies_a_schema_or_is_an_image(
        gateway, scripted_origin, workspace, framing, response, kind, reason):
    (workspace / "any.json").write_text("{}")
    if "schema" in response:
        response = {**response, "schema": str(workspace / "any.json")}

    def script(connection: OriginConnection) -> None:
        while (seen := connection.read_request()) is not None:
            connection.send(without_content(seen))
            if "close" in seen.target:
                return

    there = scripted_origin(script)
    running = gateway(rules(response))
    answer = running.get(there.url(f"/{framing}?{kind}"))
    assert answer.status == (502 if reason else 200)
    assert answer.body.startswith(f"502 {reason}\n".encode() if reason else b"")
    head = running.ask(request(there.url(f"/{framing}?{kind}"), method="HEAD"))
    assert head.status == 200, "a response to HEAD is not checked for content"


def no_content(status: str, framing: str, *fields: str) -> bytes:
    end = {"length": "Content-Length: 0\r\n\r\n", "close": "Connection: close\r\n\r\n",
           "chunks": "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}[framing]
    return "\r\n".join([f"HTTP/1.1 {status}", *fields, end]).encode()


def answer_once(there, answer: bytes):
    def script(connection: OriginConnection) -> None:
        while connection.read_request() is not None:
            connection.send(answer)
            if b"Connection: close" in answer:
                return

    return there(script)


HELD = {
    "schema": {"validate": "json", "schema": "any.json"},
    "image": {"validate": "image"},
}


def held(kind: str, workspace, **more) -> dict:
    (workspace / "any.json").write_text("{}")
    found = {**HELD[kind], **more}
    return {**found, "schema": str(workspace / "any.json")} if "schema" in found else found


@pytest.mark.parametrize("framing", ["length", "chunks", "close"])
@pytest.mark.parametrize("kind", [*HELD, "xml"])
def test_a_response_without_content_passes_where_content_has_rules(
        gateway, scripted_origin, workspace, kind, framing):
    """Redirects, challenges, errors, and success for what asks for no representation (RFC 9110
    §15.3.2, §15.4, §15.5.2, §9.3.3 to §9.3.8)."""
    table = [
        ("GET", "302 Found", "Location: /next"), ("GET", "303 See Other", "Location: /next"),
        ("GET", "401 Unauthorized", "WWW-Authenticate: Basic realm=a"),
        ("GET", "407 Proxy Authentication Required", "X-A: b"),
        ("GET", "404 Not Found", "X-A: b"), ("GET", "202 Accepted", "X-A: b"),
        ("GET", "416 Range Not Satisfiable", "Content-Range: bytes */5"),
        ("GET", "503 Service Unavailable", "Retry-After: 3"),
        ("POST", "201 Created", "Location: /new"), ("POST", "303 See Other", "Location: /next"),
        ("PUT", "200 OK", "X-A: b"), ("PUT", "201 Created", "X-A: b"),
        ("PATCH", "200 OK", "X-A: b"), ("DELETE", "200 OK", "X-A: b"),
        ("DELETE", "202 Accepted", "X-A: b"),
        ("OPTIONS", "200 OK", "Access-Control-Allow-Origin: *")]
    # XML is asked for in the head: of Content-Length: 0 nothing is parsed.
    wanted = {"validate": "xml"} if kind == "xml" else held(kind, workspace)
    running = gateway(rules(wanted))
    for method, status, field in table:
        there = answer_once(scripted_origin, no_content(status, framing, field))
        response = running.ask(request(there.url("/"), method=method, Connection="close"))
        name, _, value = field.partition(": ")
        assert (f"{response.status}", response.body) == (status[:3], b""), (method, status, response.body)
        assert response.get(name) == value, (method, status)


@pytest.mark.parametrize("framing", ["length", "chunks", "close"])
@pytest.mark.parametrize("kind", HELD)
def test_the_representation_that_was_asked_for_has_content(
        gateway, scripted_origin, workspace, kind, framing):
    reason = {"schema": "response-schema-violated", "image": "response-image-refused"}[kind]
    running = gateway(rules(held(kind, workspace)))
    for method, status in [
            ("GET", "200 OK"), ("POST", "200 OK"), ("GET", "203 Non-Authoritative Information")]:
        there = answer_once(scripted_origin, no_content(status, framing))
        response = running.ask(request(there.url("/"), method=method, Connection="close"))
        assert response.status == 502, (method, status)
        assert response.body.startswith(f"502 {reason}\n".encode())


@pytest.mark.parametrize(("method", "status", "passes"), [
    ("POST", "201 Created", False), ("GET", "202 Accepted", False), ("PUT", "201 Created", True),
    ("DELETE", "200 OK", True), ("GET", "302 Found", True), ("POST", "204 No Content", True)])
@pytest.mark.parametrize("kind", HELD)
def test_a_success_that_the_rules_name_has_content(
        gateway, scripted_origin, workspace, kind, method, status, passes):
    running = gateway(rules(held(kind, workspace, statusCodes=["200-202", "204", "302"])))
    framing = "close" if status.startswith("204") else "length"
    there = answer_once(scripted_origin, no_content(status, framing))
    response = running.ask(request(there.url("/"), method=method, Connection="close"))
    assert response.status == (int(status[:3]) if passes else 502)


@pytest.mark.parametrize("status", ["204 No Content", "205 Reset Content", "304 Not Modified"])
def test_a_status_that_has_no_content_needs_none(gateway, origin, workspace, status):
    (workspace / "any.json").write_text("{}")
    length = status.startswith("205")
    there = origin(lambda _: reply(b"", status, JSON, length=length))
    running = gateway(rules({"validate": "json", "schema": str(workspace / "any.json")}))
    assert f"{running.get(there.url(), If_None_Match='x').status}" == status[:3]


@pytest.mark.parametrize("boundary", ["=_Part/1:2?3=4", "b", '"quoted part"'])
def test_a_boundary_is_taken_as_servers_take_it(gateway, origin, boundary):
    there = origin(lambda _: reply(b"ok"))
    running = gateway(rules(request={"body": {"from": "multipart", "to": "json"}}))
    mark = boundary.strip('"')
    body = (f"--{mark}\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--{mark}--\r\n")
    response = running.ask(request(
        there.url(), method="POST", body=body.encode(),
        Content_Type=f"multipart/form-data; boundary={boundary}"))
    assert response.status == 200
    assert json.loads(there.requests[0].body) == {"a": "1"}
