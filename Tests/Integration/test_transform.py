"""`pinfold transform`: a route's rules applied to content, without a connection."""

from __future__ import annotations

import base64
import json
import os
import plistlib
import subprocess
from pathlib import Path

import pytest
import yaml
from support.gateway import BINARY, SLOWDOWN

HOSTS = [
    {"match": ["api.example.com"],
     "request": {"body": {"from": "form", "to": "json", "maximum": "64KiB"}},
     "response": {"statusCodes": ["200-299"], "contentTypes": ["application/json"],
                  "body": {"from": "json", "to": "plist", "maximum": "64KiB"}}},
    {"match": ["*.nulls.example.com"], "name": "nulls",
     "response": {"body": {"from": "json", "to": "json", "removesKeysWithNullValues": True,
                           "maximum": "4KiB", "larger": "pass"}}},
    {"match": ["binary.example.com"],
     "response": {"body": {"from": "json", "to": "plist", "propertyList": "binary"}}},
    {"match": ["parts.example.com"], "request": {"body": {"from": "multipart", "to": "json"}}},
    {"match": ["forms.example.com"], "request": {"body": {"from": "form", "to": "json"}}},
    {"match": ["xml.example.com"],
     "response": {"contentTypes": ["text/html", "application/soap+xml"],
                  "body": {"from": "xml", "to": "json"}}},
    {"match": ["plain.example.com"]},
    {"match": ["schema.example.com"],
     "response": {"validate": "json", "schema": "reply.schema.json",
                  "body": {"from": "json", "to": "plist"}}},
    {"match": ["images.example.com"], "response": {"validate": "image"}},
]
SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


@pytest.fixture
def transform(tmp_path: Path):
    file = tmp_path / "pinfold.yaml"
    file.write_text(yaml.safe_dump({"hosts": HOSTS}))
    (tmp_path / "reply.schema.json").write_text(json.dumps(SCHEMA))

    def run(route: str, content: bytes, *arguments: str) -> tuple[int, bytes, list[str]]:
        done = subprocess.run(
            [str(BINARY), "transform", "--route", route, "--config", str(file), *arguments],
            input=content, capture_output=True, timeout=20 * min(SLOWDOWN, 4), check=False)
        return done.returncode, done.stdout, done.stderr.decode().splitlines()

    return run


# One pixel.
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg"
    "==")
JSON = ("--content-type", "application/json")
FORM = ("--request", "--content-type", "application/x-www-form-urlencoded")


def test_a_response_is_translated_and_the_steps_are_printed(transform) -> None:
    content = b'{"id":7,"tags":["a","b"]}'
    code, out, err = transform("api.example.com", content, *JSON)
    assert code == 0
    assert plistlib.loads(out) == {"id": 7, "tags": ["a", "b"]}
    assert err == ["steps: json-to-plist", "type: application/json to application/x-plist",
                   f"bytes: {len(content)} to {len(out)}"]


def test_a_binary_property_list_is_written_where_the_route_says_so(transform) -> None:
    code, out, _ = transform("binary.example.com", b'{"a":[1.5,true]}', *JSON)
    assert code == 0 and out.startswith(b"bplist00")
    assert plistlib.loads(out) == {"a": [1.5, True]}


def test_a_request_is_translated(transform) -> None:
    code, out, err = transform("api.example.com", b"a=1&b[]=x&b[]=y+z&c[d]=%C3%A9", *FORM)
    assert (code, json.loads(out)) == (0, {"a": "1", "b": ["x", "y z"], "c": {"d": "é"}})
    assert err[:2] == ["steps: form-to-json",
                       "type: application/x-www-form-urlencoded to application/json"]


@pytest.mark.parametrize(("route", "content", "out", "kind"), [
    ("nulls", b'{"a":null,"b":1}', b'{"b":1}', "application/json"),
    ("forms.example.com", b"a=1", b'{"a":"1"}',
     "application/x-www-form-urlencoded to application/json"),
    ("parts.example.com", b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b--',
     b'{"a":"1"}', 'multipart/form-data; boundary="b" to application/json'),
    ("xml.example.com", b"<a>1</a>", b'{"a":"1"}', "application/soap+xml to application/json"),
    ("images.example.com", PNG, PNG, "image/*")],
    ids=["json", "form", "multipart", "xml", "image"])
def test_content_is_of_the_type_and_side_that_the_route_is_for(
        transform, route, content, out, kind) -> None:
    code, output, err = transform(route, content)
    assert (code, output, err[1]) == (0, out, f"type: {kind}")


def test_of_a_route_for_both_sides_a_response_is_meant(transform) -> None:
    assert plistlib.loads(transform("api.example.com", b'{"a":1}')[1]) == {"a": 1}
    assert transform("api.example.com", b"a=1", "--request")[:2] == (0, b'{"a":"1"}')
    assert transform("forms.example.com", b"a=1", "--status", "200")[1:] == (
        b"a=1", ["steps: none", "type: none", "content passed on unread"])


def test_null_is_taken_out_and_content_without_null_stays_as_it_is(transform) -> None:
    code, out, err = transform("nulls", b'{"a":null,"b":1}', *JSON)
    assert (code, out, err[0]) == (0, b'{"b":1}', "steps: removes-nulls")
    kept = b'{ "b" : 1 }'
    code, out, err = transform("nulls", kept, *JSON)
    assert (code, out, err) == (0, kept, ["steps: none", "type: application/json",
                                          "bytes: 11 to 11"])


@pytest.mark.parametrize(("route", "content", "arguments", "errors"), [
    ("api.example.com", b'{"a":\n[1,}', JSON,
     ["refused: response-body-invalid", "it is not JSON: not a value (line 2, column 4, at $.a[1])",
      'content: {"a": [1,}']),
    ("api.example.com", b'{"a":null}', JSON,
     ["refused: response-body-untranslatable", "null cannot be represented in a property list (at $.a)"]),
    ("api.example.com", b"<html>", ("--content-type", "text/html; charset=utf-8"),
     ["refused: response-type-refused",
      "the content is text/html; expected application/json"]),
    ("api.example.com", b"{}", (*JSON, "--status", "503"),
     ["refused: response-status-refused", "the status is 503; expected 200-299"]),
    ("api.example.com", b"[" + b" " * (64 << 10) + b"]", JSON,
     ["refused: response-body-too-large", "it has more than 65536 bytes"]),
    ("api.example.com", b"a=%zz", FORM,
     ["refused: request-body-invalid", "it is not a form: a percent sign without two hex digits"
      " (line 1, column 3)", "content: a=%zz"]),
    ("api.example.com", b"a=" + b"x" * (64 << 10), FORM,
     ["refused: request-body-too-large", "it has more than 65536 bytes"]),
], ids=["invalid", "untranslatable", "type", "status", "large", "form", "large form"])
def test_what_is_refused_is_reported_with_its_place(transform, route, content, arguments, errors) -> None:
    code, out, err = transform(route, content, *arguments)
    assert (code, out) == (1, b"")
    assert err == errors


def test_a_file_among_the_parts_is_refused_with_its_name(transform) -> None:
    part = b'--b\r\nContent-Disposition: form-data; name="photo"; filename="x.png"\r\n\r\nx\r\n--b--'
    code, _, err = transform(
        "parts.example.com", part, "--request", "--content-type", "multipart/form-data; boundary=b")
    assert code == 1
    assert err[0] == "refused: request-file-refused"
    assert err[1].startswith("a file cannot be translated (") and err[1].endswith(", at photo)")


def test_control_characters_of_the_content_are_printed_as_spaces(transform) -> None:
    code, _, err = transform("api.example.com", b'{"a":\x1b[31m}', *JSON)
    assert code == 1 and err[-1] == 'content: {"a": [31m}'


@pytest.mark.parametrize(("route", "arguments"), [
    ("plain.example.com", JSON), ("api.example.com", ("--request", *JSON)), ("nulls", ("--content-type", "")),
], ids=["no rules", "another type", "no type"])
def test_what_no_rule_looks_at_passes_as_it_is(transform, route, arguments) -> None:
    content = os.urandom(1 << 20)
    code, out, err = transform(route, content, *arguments)
    assert (code, out == content, err[-1]) == (0, True, "content passed on unread")


def test_what_is_larger_passes_where_the_route_says_so(transform) -> None:
    content = b'{"a":null,"b":"' + b"x" * (1 << 20) + b'"}'
    code, out, err = transform("nulls", content, *JSON)
    assert (code, out == content, err[-1]) == (0, True, "content passed on unread")


def test_json_is_held_to_the_schema_before_it_is_translated(transform) -> None:
    code, out, err = transform("schema.example.com", b'{"id":1}', *JSON)
    assert (code, plistlib.loads(out), err[0]) == (0, {"id": 1}, "steps: json-to-plist")
    code, out, err = transform("schema.example.com", b'{"id":"x"}', *JSON)
    assert (code, out, err[0]) == (1, b"", "refused: response-schema-violated")
    assert err[1].endswith("(at $.id)") and err[2] == 'content: "x"'


def test_an_image_is_decoded(transform) -> None:
    code, out, err = transform("images.example.com", PNG, "--content-type", "image/png")
    assert (code, out, err[0]) == (0, PNG, "steps: none")
    code, out, err = transform("images.example.com", b"<html>", "--content-type", "image/png")
    assert (code, out, err[0]) == (1, b"", "refused: response-image-refused")


def test_the_type_of_a_response_to_head_is_printed(transform) -> None:
    code, out, err = transform("api.example.com", b"", "--head", *JSON)
    assert (code, out) == (0, b"")
    assert err == ["steps: none", "type: application/json to application/x-plist"]


def test_an_unknown_route_and_an_invalid_configuration_are_no_answer(
        transform, tmp_path: Path) -> None:
    code, out, err = transform("nobody", b"")
    assert (code, out) == (2, b"")
    assert err == ["Error: there is no entry nobody in hosts; expected one of api.example.com, nulls, "
                   "binary.example.com, parts.example.com, forms.example.com, "
                   "xml.example.com, plain.example.com, schema.example.com, images.example.com"]
    (tmp_path / "pinfold.yaml").write_text("hosts: 1\n")
    assert transform("nobody", b"")[0] == 2


@pytest.mark.parametrize("arguments", [("--status", "200"), ("--head",)])
def test_what_is_about_responses_is_not_taken_for_requests(transform, arguments) -> None:
    code, _, err = transform("api.example.com", b"", "--request", *arguments)
    assert code == 64 and "cannot be combined with --request" in "".join(err)
