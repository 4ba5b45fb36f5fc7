"""What the rules of a route (hosts[].request, hosts[].response) do to real clients and servers: an
old client in front of a JSON API, and what is refused."""

from __future__ import annotations

import functools
import gzip
import json
import plistlib
import shlex
import subprocess
import threading

import httpx
import pytest
import requests
import yaml
from support import zstd
from support.checkout import PAGES
from support.examples import blocks
from support.gateway import Gateway
from support.origin import Request, reply
from support.wait import until
from support.wire import request

JSON = "Content-Type: application/json"
FORM = "application/x-www-form-urlencoded"


def rules(response: dict | None = None, request: dict | None = None, **entry: object) -> dict:
    """A configuration whose one route, for all that is on loopback, has these rules."""
    sections = {name: value for name, value in (("request", request), ("response", response))
                if value is not None}
    return {"hosts": [{"match": ["127.0.0.1"], "name": "route", **sections, **entry}]}


def wait_failures(running: Gateway, reason: str, count: int) -> None:
    """Until so many exchanges were counted as failed for a reason: that is after the reply."""
    def counted() -> float:
        return sum(value for sample, value in running.metrics().items()
                   if sample.startswith("pinfold_http_request_failures_total")
                   and f'reason="{reason}"' in sample)

    until(lambda: counted() == count, lambda: f"{count} {reason}, not {counted()}")


@functools.cache
def gzip_bomb() -> bytes:
    """200 MB of spaces."""
    return gzip.compress(b" " * 200_000_000, 6)


@functools.cache
def zstd_bomb() -> bytes:
    """The same."""
    return zstd.compress(b" " * 200_000_000)


# A legacy client of a JSON API


def legacy(gateway, dns, port: int) -> tuple[Gateway, list[str]]:
    """A gateway on the configuration that the page of examples prints, and the command that it prints
    with it, for a server at a port of loopback."""
    configuration, command = [block.text for block in blocks(PAGES["Examples"])
                              if block.heading == "A legacy client of a JSON API"]
    assert len(configuration.splitlines()) <= 10
    dns.set("api.example.com", "127.0.0.1")
    running = gateway(yaml.safe_load(configuration))
    command = command.replace("http://127.0.0.1:8080", running.proxy_url)
    return running, shlex.split(
        command.replace("//api.example.com/", f"//api.example.com:{port}/"))


def test_a_form_reaches_httpbin_as_json_and_its_answer_is_a_property_list(gateway, dns, httpbin):
    running, command = legacy(gateway, dns, httpbin.port)
    answered = subprocess.run([*command, "-s", "-i"], capture_output=True, timeout=30)
    head, _, body = answered.stdout.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), answered.stdout
    assert b"application/x-plist" in head
    echoed = plistlib.loads(body)
    assert echoed["json"] == {"user": {"name": "Ada", "langs": ["en"]}}
    assert echoed["headers"]["Content-Type"] == "application/json"
    assert echoed["form"] == {}
    assert running.wait_access()[0]["changed"] == "request-translated,json-to-plist"
    assert running.metric("pinfold_transformed_messages_total", direction="request",
                          result="changed") == 1
    assert running.metric("pinfold_transformed_messages_total", direction="response",
                          result="changed") == 1


def test_a_server_that_knows_only_json_serves_an_old_client(gateway, dns, origin):
    def handler(asked: Request) -> bytes:
        if asked.get("content-type").split(";")[0] != "application/json":
            return reply(b"", "415 Unsupported Media Type")
        return reply(json.dumps({"got": json.loads(asked.body)}).encode(), "200 OK", JSON)

    there = origin(handler)
    running, command = legacy(gateway, dns, there.port)
    direct = requests.post(there.url("/anything"), data={"a": "1"}, timeout=20)
    assert direct.status_code == 415
    answered = subprocess.run([*command, "-s"], capture_output=True, timeout=30)
    assert plistlib.loads(answered.stdout) == {"got": {"user": {"name": "Ada", "langs": ["en"]}}}
    url = f"http://api.example.com:{there.port}/anything"
    with httpx.Client(proxy=running.proxy_url, timeout=20) as client:
        response = client.post(url, data={"a": "1"})
    assert plistlib.loads(response.content) == {"got": {"a": "1"}}
    response = requests.post(url, data={"b": "ü"}, timeout=20, proxies={"http": running.proxy_url})
    assert plistlib.loads(response.content) == {"got": {"b": "ü"}}


# What is refused


def test_a_captive_portal_is_refused_and_not_stored(gateway, origin):
    page = "<html>log in</html>"

    def handler(asked: Request) -> bytes:
        if asked.target == "/moved":
            return reply(b"", "302 Found", "Location: http://portal.example/", "Cache-Control: max-age=60")
        if len(there.requests) > 2:
            return reply(b"{}", "200 OK", JSON, "Cache-Control: max-age=60")
        return reply(page.encode(), "200 OK", "Content-Type: text/html", "Cache-Control: max-age=600")

    there = origin(handler)
    running = gateway(rules({"statusCodes": ["200-299"], "contentTypes": ["application/json"]}))
    for _ in range(2):
        response = running.get(there.url("/page"))
        assert response.status == 502
        assert response.body.decode().startswith("502 response-type-refused\n")
        assert "text/html" in response.body.decode() and "log in" not in response.body.decode()
        assert response.proxy_status["error"] == "http_protocol_error"
    assert len(there.requests) == 2
    wait_failures(running, "response-type-refused", 2)
    assert running.get(there.url("/page")).body == b"{}"
    response = running.get(there.url("/moved"))
    assert (response.status, "location" in response) == (502, False)
    assert response.body.decode().startswith("502 response-status-refused\n")
    assert "302" in response.body.decode()
    wait_failures(running, "response-status-refused", 1)


def test_broken_json_is_refused_with_its_place_and_a_short_quotation(gateway, origin):
    content = b'{"a": 1,\n "b": tru, "c": "' + b"x" * 5000 + b'"}'
    there = origin(lambda _: reply(content, "200 OK", JSON, "Cache-Control: max-age=60"))
    running = gateway(rules({"validate": "json"}))
    for _ in range(2):
        response = running.get(there.url(), Accept="application/json")
        assert response.status == 502
        details = response.json()
        assert details["reason"] == "response-body-invalid"
        assert "line 2, column" in details["message"]
        assert "tru" in details["excerpt"] and len(details["excerpt"].encode()) <= 200
    assert len(there.requests) == 2, "it was not stored"


def bounded(running: Gateway) -> None:
    assert running.peak_rss_bytes < 200 << 20


ENTITIES = "".join(
    f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
LAUGHS = f'<!DOCTYPE l [<!ENTITY l0 "ha">{ENTITIES}]><l>&l9;</l>'.encode()
DEEP = b"[" * 10_000 + b"]" * 10_000


def plist_bomb() -> bytes:
    """A binary property list whose arrays name the next one many times: small, but enormous if
    every value is written out."""
    objects = [b"\xa8" + bytes([n + 1]) * 8 for n in range(20)] + [b"\x51a"]
    data, offsets = b"bplist00", []
    for one in objects:
        offsets.append(len(data))
        data += one
    table = len(data)
    data += b"".join(offset.to_bytes(2, "big") for offset in offsets)
    numbers = (len(objects), 0, table)
    return data + b"\0" * 6 + b"\x02\x01" + b"".join(n.to_bytes(8, "big") for n in numbers)


PLIST = "Content-Type: application/x-plist"
XML = "Content-Type: application/xml"
# By name: the rules, the content with its fields, the reasons, and content that passes the rules.
BOMBS = {
    "gzip": ({"validate": "json"}, gzip_bomb, (JSON, "Content-Encoding: gzip"),
             {"response-body-too-large"}, b"{}"),
    "zstd": ({"validate": "json"}, zstd_bomb, (JSON, "Content-Encoding: zstd"),
             {"response-body-too-large"}, b"{}"),
    "deep": ({"validate": "json"}, lambda: DEEP, (JSON,), {"response-body-invalid"}, b"{}"),
    "deep-translated": ({"body": {"from": "json", "to": "plist"}}, lambda: DEEP, (JSON,),
                        {"response-body-invalid"}, b"plain"),
    "laughs": ({"validate": "xml"}, lambda: LAUGHS, (XML,), {"response-body-invalid"}, b"<a/>"),
    "plist": ({"body": {"from": "plist", "to": "json"}}, plist_bomb, (PLIST,),
              {"response-body-invalid", "response-body-too-large"}, b"plain"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_while_others_are_served(gateway, origin, name):
    response, content, fields, reasons, good = BOMBS[name]
    made = content()
    there = origin(lambda asked: reply(made, "200 OK", *fields)
                   if asked.target == "/bomb" else reply(good, "200 OK", "Content-Type: text/x"))
    running = gateway(rules(response))
    answers: list = []
    asking = [threading.Thread(target=lambda: answers.append(running.get(there.url("/bomb"))))
              for _ in range(4)]
    for one in asking:
        one.start()
    for _ in range(10):
        other = running.get(there.url("/other"))
        assert (other.status, other.body) == (200, good)
    for one in asking:
        one.join()
    assert [one.status for one in answers] == [502] * 4
    assert {one.body.decode().split()[1] for one in answers} <= reasons
    assert all(len(one.body) < 2000 for one in answers)
    bounded(running)


@pytest.mark.parametrize(("content", "fields", "status", "reason"), [
    (b'{"a": ', {"Content_Type": "application/json"}, 400, "request-body-invalid"),
    (b'{"a": "' + b"x" * 600_000 + b'"}', {"Content_Type": "application/json"}, 413,
     "request-body-too-large"),
    (gzip_bomb,
     {"Content_Type": "application/json", "Content_Encoding": "gzip"}, 413,
     "request-body-too-large"),
    (zstd_bomb,
     {"Content_Type": "application/json", "Content_Encoding": "zstd"}, 413,
     "request-body-too-large"),
    (lambda: zstd.compress(b"{}")[:-1],
     {"Content_Type": "application/json", "Content_Encoding": "zstd"}, 400,
     "request-body-invalid"),
    (b"{}", {"Content_Type": "application/json", "Content_Encoding": "dcz"}, 415,
     "request-coding-unknown"),
    (b"{}", {"Content_Type": "application/json", "Cache_Control": "no-transform"}, 400,
     "request-no-transform")],
    ids=["broken", "large", "bomb", "zstd bomb", "broken zstd", "coding", "no-transform"])
def test_a_request_that_cannot_be_translated_is_refused(
        gateway, origin, content, fields, status, reason):
    there = origin(lambda _: reply(b"ok"))
    running = gateway(rules(request={"body": {
        "from": "json", "to": "plist", "maximum": "512KiB", "noTransform": "refuse"}}))
    body = content if isinstance(content, bytes) else content()
    response = running.ask(request(there.url(), method="POST", body=body, **fields))
    assert response.status == status
    assert response.body.decode().startswith(f"{status} {reason}\n")
    assert there.requests == []
    wait_failures(running, reason, 1)
    bounded(running)


def plist_naming(text: bytes, times: int) -> bytes:
    """A binary property list of an array that names one string so many times."""
    array = b"\xaf\x11" + times.to_bytes(2, "big") + b"\x01" * times
    string = b"\x5f\x11" + len(text).to_bytes(2, "big") + text
    table = b"".join(offset.to_bytes(2, "big") for offset in (8, 8 + len(array)))
    numbers = (2, 0, 8 + len(array) + len(string))
    return (b"bplist00" + array + string + table + b"\0" * 6 + b"\x02\x01"
            + b"".join(n.to_bytes(8, "big") for n in numbers))


def test_what_is_short_and_stands_for_much_is_translated(gateway, origin):
    text, times = b"a" * 1000, 1000
    made = json.dumps([text.decode()] * times, separators=(",", ":")).encode()
    there = origin(lambda asked: reply(plist_naming(text, times), "200 OK", PLIST)
                   if asked.method == "GET" else reply(b"taken"))
    running = gateway(rules(
        {"body": {"from": "plist", "to": "json"}},
        request={"body": {"from": "plist", "to": "json", "maximum": "2MiB"}}))
    assert running.get(there.url()).body == made
    response = running.ask(request(there.url(), method="POST", body=plist_naming(text, times),
                               Content_Type="application/x-plist"))
    assert (response.status, response.body, there.requests[-1].body) == (200, b"taken", made)


def test_a_file_that_a_form_sends_is_refused(gateway, origin):
    there = origin(lambda _: reply(b"ok"))
    running = gateway(rules(request={"body": {"from": "multipart", "to": "json"}}))
    response = requests.post(there.url(), files={"a": ("a.bin", b"\0\1")}, timeout=20,
                         proxies={"http": running.proxy_url})
    assert response.status_code == 415
    assert response.text.startswith("415 request-file-refused\n")
    assert there.requests == []


@pytest.mark.parametrize("allowed", [False, True])
def test_credentials_go_out_in_clear_text_only_where_that_is_allowed(
        gateway, origin, workspace, allowed):
    there = origin(lambda _: reply(b"ok"))
    secret = workspace / "token"
    secret.write_text("s3cret\n")
    secret.chmod(0o600)
    authorization = {"bearer": {"tokenFile": str(secret)}}
    if allowed:
        authorization["clearText"] = "allow"
    running = gateway(rules(request={"authorization": authorization}))
    response = running.get(there.url())
    if allowed:
        assert response.status == 200
        assert there.requests[0].get("authorization") == "Bearer s3cret"
    else:
        assert response.body.decode().startswith("502 authorization-in-clear-text\n")
        assert response.status == 502 and there.requests == []
    assert running.get(there.url(), Authorization="Basic eDp5").status == 200
    assert there.requests[-1].get("authorization") == "Basic eDp5"
    assert "s3cret" not in running.log()


def test_what_is_larger_passes_where_the_route_says_so(gateway, origin):
    content = b'["' + b"x" * (1 << 17) + b'"]'
    there = origin(lambda _: reply(content, "200 OK", JSON, 'ETag: "a"'))
    running = gateway(rules({"body": {"from": "json", "to": "plist"}, "maximum": "64KiB",
                             "larger": "pass"}))
    response = running.get(there.url())
    assert (response.status, response.body, response.get("etag")) == (200, content, '"a"')
    strict = gateway(rules({"body": {"from": "json", "to": "plist"}, "maximum": "64KiB"}))
    response = strict.get(there.url())
    assert response.body.decode().startswith("502 response-body-too-large\n")


@pytest.mark.parametrize("form,status,body", [
    (b"f[1][a]=2&f[0][a]=1", 200, b'{"f":[{"a":"1"},{"a":"2"}]}'),
    (b"f[999999999]=x", 400, None),
])
def test_numbers_in_names_of_forms_are_indices_where_a_route_says_so(
    gateway, origin, form, status, body
):
    there = origin(lambda request: reply(request.body))
    rules = {"from": "form", "to": "json", "arrays": "indices"}
    running = gateway({"hosts": [{"match": ["127.0.0.1"], "request": {"body": rules}}]})
    with running.wire() as wire:
        response = wire.ask(request(
            there.url(), method="POST", body=form, Content_Type=FORM))
    assert response.status == status
    assert body is None or response.body == body
    assert len(there.requests) == (1 if status == 200 else 0)
