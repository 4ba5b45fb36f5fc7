"""Responses that a route translates, in the cache: the table of Routes.md, row by row."""

from __future__ import annotations

import gzip
import json
import plistlib
import re
import zlib

import brotlicffi as brotli
import pytest
from support import zstd
from support.checkout import PAGES
from support.gateway import Gateway
from support.origin import HTTPOrigin, Request, reply
from support.wire import Response, Wire
from test_reload import reload
from test_route_rules import rules

RULES = {"body": {"from": "json", "to": "plist"}}
TYPE = "Content-Type: application/json"
TAG = 'ETag: "abc"'
LONG = "Cache-Control: max-age=600"
PAGE = PAGES["Routes"].read_text()


class Table:
    """A gateway with the rules, an origin with one resource, and what the two say."""

    def __init__(self, gateway, origin, form: str = "translated", response: dict = RULES):
        self.form = form
        self.fields = [LONG, TAG]
        # Whether it compresses for clients that take it.
        self.packs = False
        self.value: dict = {"a": [1, "two"], "pad": "x" * 100}
        self.there: HTTPOrigin = origin(self.handler)
        self.running: Gateway = gateway(self.rules(response))

    def rules(self, response: dict | None) -> dict:
        return rules(response, cache={"form": self.form})

    def handler(self, asked: Request) -> bytes:
        if asked.method == "POST":
            return reply(b"", "204 No Content", length=False)
        if '"abc"' in [tag.strip() for tag in asked.get("if-none-match").split(",")]:
            return reply(b"", "304 Not Modified", *self.fields, length=False)
        value = dict(self.value)
        fields = [TYPE, *self.fields]
        if "accept-language" in asked:
            value["language"] = asked.get("accept-language")
            fields.append("Vary: Accept-Language")
        content = json.dumps(value).encode()
        if self.packs:
            fields.append("Vary: Accept-Encoding")
            if "gzip" in asked.get("accept-encoding"):
                content = gzip.compress(content)
                fields.append("Content-Encoding: gzip")
        data = reply(content, "200 OK", *fields)
        return data.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if asked.method == "HEAD" else data

    def get(self, method: str = "GET", **fields: str) -> Response:
        lines = [f"{method} {self.there.url('/it')} HTTP/1.1", f"Host: {self.there.authority}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        return self.running.ask("\r\n".join(lines) + "\r\n\r\n")

    @property
    def asked(self) -> list[Request]:
        return self.there.requests


def is_hit(response: Response) -> bool:
    return "hit" in response.cache_status


def is_translation(response: Response, table: Table) -> bool:
    return plistlib.loads(response.body) == table.value and response.get("content-type").startswith(
        "application/x-plist") and bool(re.fullmatch(r'"abc-[0-9a-f]{8}"', response.get("etag")))


def miss_then_hit(table: Table) -> None:
    first, second = table.get(), table.get()
    assert (is_hit(first), is_hit(second)) == (False, True)
    assert is_translation(first, table) and is_translation(second, table)
    assert (first.body, first.get("etag")) == (second.body, second.get("etag"))
    assert int(second.get("age")) >= 0
    assert len(table.asked) == 1


def freshened(table: Table) -> None:
    table.fields = ["Cache-Control: max-age=0", TAG]
    first = table.get()
    table.fields = [LONG, TAG]
    second = table.get()
    assert table.asked[1].get("if-none-match") == '"abc"'
    assert second.status == 200 and second.body == first.body
    assert is_translation(second, table)
    third = table.get()
    assert is_hit(third) and third.body == first.body and third.get("etag") == first.get("etag")
    assert len(table.asked) == 2


def the_tag_of_the_translation(table: Table) -> None:
    tag = table.get().get("etag")
    response = table.get(If_None_Match=tag)
    assert (response.status, response.get("etag"), response.body) == (304, tag, b"")
    assert len(table.asked) == 1
    # Nothing is stored: the server is asked with its own tag, and the client answered with ours.
    response = table.get(If_None_Match=tag, Cache_Control="no-cache")
    assert (response.status, response.get("etag")) == (304, tag)
    assert table.asked[-1].get("if-none-match") == '"abc"'


def the_tag_of_the_server(table: Table) -> None:
    missed = table.get(If_None_Match='"abc"')
    assert missed.status == 200 and is_translation(missed, table)
    assert "if-none-match" not in table.asked[0]
    response = table.get(If_None_Match='"abc"')
    assert response.status == 200 and response.body == missed.body


def variants(table: Table) -> None:
    for _ in range(2):
        for language in ("de", "fr"):
            response = table.get(Accept_Language=language)
            assert plistlib.loads(response.body)["language"] == language
            assert response.get("vary") == "Accept-Language"
    assert len(table.asked) == 2


def range_on_a_hit(table: Table) -> None:
    whole = table.get().body
    response = table.get(Range="bytes=10-29")
    assert (response.status, response.body) == (206, whole[10:30])
    assert response.get("content-range") == f"bytes 10-29/{len(whole)}"
    assert len(table.asked) == 1


def range_on_a_miss(table: Table) -> None:
    response = table.get(Range="bytes=10-29")
    assert "range" not in table.asked[0]
    whole = table.get()
    assert is_hit(whole) and is_translation(whole, table)
    if response.status == 206:
        assert response.body == whole.body[10:30]
        assert response.get("content-range") == f"bytes 10-29/{len(whole.body)}"
    else:
        assert (response.status, response.body) == (200, whole.body)


def if_range_with_the_tag(table: Table) -> None:
    whole = table.get()
    response = table.get(Range="bytes=0-4", If_Range=whole.get("etag"))
    assert (response.status, response.body) == (206, whole.body[:5])


def if_range_with_another(table: Table) -> None:
    whole = table.get()
    for tag in ('"abc"', '"other"'):
        response = table.get(Range="bytes=0-4", If_Range=tag)
        assert (response.status, response.body) == (200, whole.body)
    assert len(table.asked) == 1


def head_on_a_hit(table: Table) -> None:
    whole = table.get()
    response = table.get("HEAD")
    assert is_hit(response) and response.body == b""
    for name in ("content-type", "etag", "content-length"):
        assert response.get(name) == whole.get(name), name


def head_on_a_miss(table: Table) -> None:
    response = table.get("HEAD")
    whole = table.get()
    assert is_translation(whole, table)
    for name in ("content-type", "etag"):
        assert response.get(name) == whole.get(name), name
    assert response.get("content-length") in ("", whole.get("content-length"))


def post_invalidates(table: Table) -> None:
    table.get()
    assert is_hit(table.get())
    assert table.get("POST", Content_Length="0").status == 204
    assert not is_hit(table.get())
    assert [one.method for one in table.asked][:2] == ["GET", "POST"]


def compressed(table: Table) -> None:
    table.packs = True
    for reused in (False, True):
        packed = table.get(Accept_Encoding="gzip")
        plain = table.get()
        assert (is_hit(packed), is_hit(plain)) == (reused, reused)
        assert packed.get("content-encoding") == "gzip"
        assert plistlib.loads(gzip.decompress(packed.body)) == table.value
        assert "content-encoding" not in plain and plistlib.loads(plain.body) == table.value
        assert packed.get("vary") == "Accept-Encoding"
        assert re.fullmatch(r'"abc-[0-9a-f]{8}-gzip"', packed.get("etag"))
        assert plain.get("etag") == packed.get("etag").replace("-gzip", "")


def unchanged(table: Table) -> None:
    table.fields = ["Cache-Control: max-age=600, no-transform", TAG]
    first, second = table.get(), table.get()
    assert (is_hit(first), is_hit(second)) == (False, True)
    for response in (first, second):
        assert json.loads(response.body) == table.value
        assert (response.get("etag"), response.get("content-type")) == ('"abc"', "application/json")
    assert table.get(If_None_Match='"abc"').status == 304
    assert len(table.asked) == 1


def restarted(table: Table) -> None:
    first = table.get()
    table.running.restart()
    table.running.wait_for_disk()
    response = table.get()
    assert is_hit(response) and is_translation(response, table)
    assert (response.body, response.get("etag")) == (first.body, first.get("etag"))
    assert len(table.asked) == 1


def reloaded(table: Table) -> None:
    table.value = {"a": None, "b": 1}
    kept = {"body": RULES["body"], "larger": "pass"}
    nulls = {"body": {"from": "json", "to": "plist", "removesKeysWithNullValues": True}}
    to_xml = {"body": {"from": "json", "to": "xml"}}
    table.running.config["hosts"] = rules(nulls)["hosts"]
    reload(table.running, {})
    first = table.get()
    assert plistlib.loads(first.body) == {"b": 1} and is_hit(table.get())
    table.value = {"b": 1, "c": "x"}
    for response in (kept, to_xml, None, nulls):
        reload(table.running, rules(response))
        answer = table.get()
        assert not is_hit(answer), response
        assert answer.status == 200 and answer.body != first.body
        assert is_hit(table.get())


ROWS = {
    "GET, then GET again": miss_then_hit,
    "GET of a stale response": freshened,
    "If-None-Match with the tag of the translation": the_tag_of_the_translation,
    "If-None-Match with the server's tag": the_tag_of_the_server,
    "GET with another Accept-Language, where Vary names it": variants,
    "Range on a hit": range_on_a_hit,
    "Range on a miss": range_on_a_miss,
    "If-Range with the tag of the translation": if_range_with_the_tag,
    "If-Range with another tag": if_range_with_another,
    "HEAD on a hit": head_on_a_hit,
    "HEAD on a miss": head_on_a_miss,
    "POST that succeeds": post_invalidates,
    "GET of a compressed response": compressed,
    "GET of a response with no-transform": unchanged,
    "GET after a restart": restarted,
    "GET after a reload that changed the rules": reloaded,
}


def test_the_table_of_the_page_is_this_one() -> None:
    text = PAGE.split("\n## Caching\n", 1)[1].split("\n##", 1)[0]
    rows = re.findall(r"^\| (.*?) \| .* \| 911[01], [\d.]+ \|$", text, re.MULTILINE)
    assert rows == list(ROWS)


@pytest.mark.parametrize("row", ROWS)
def test_a_translated_response_is_cached_as_the_table_says(gateway, origin, row: str) -> None:
    ROWS[row](Table(gateway, origin))


# form: origin


def the_translation_changed(table: Table) -> None:
    first = table.get()
    table.value = {**table.value, "later": 1}
    reload(table.running, table.rules({"body": {"from": "json", "to": "plist",
                                                "propertyList": "binary"}}))
    response = table.get()
    assert is_hit(response) and response.body.startswith(b"bplist")
    assert plistlib.loads(response.body) == plistlib.loads(first.body)
    assert response.get("etag") != first.get("etag")
    assert is_hit(table.get(If_None_Match=response.get("etag")))
    assert len(table.asked) == 1


def the_checks_changed(table: Table) -> None:
    table.get()
    for checks in ({"statusCodes": [200]}, {"validate": "json"}, {"maximum": "1MiB"}):
        reload(table.running, table.rules({**RULES, **checks}))
        assert not is_hit(table.get()), checks
        assert is_hit(table.get())


def the_form_changed(table: Table) -> None:
    for form in ("origin", "translated"):
        table.form = form
        reload(table.running, table.rules(RULES))
        for known in (False, True):
            response = table.get()
            assert is_hit(response) == known
            assert is_translation(response, table)
    table.form = "origin"
    reload(table.running, table.rules(RULES))
    assert not is_hit(table.get())


def the_tag_of_other_rules(table: Table) -> None:
    old = table.get().get("etag")
    reload(table.running, table.rules({"body": {"from": "json", "to": "plist",
                                                "propertyList": "binary"}}))
    response = table.get(If_None_Match=old)
    assert (response.status, is_hit(response)) == (200, True)
    assert len(table.asked) == 1


def untranslatable(table: Table) -> None:
    table.value = {"a": None}
    reload(table.running, table.rules(
        {"body": {"from": "json", "to": "plist", "removesKeysWithNullValues": True}}))
    assert plistlib.loads(table.get().body) == {} and is_hit(table.get())
    reload(table.running, table.rules(RULES))
    response = table.get()
    assert response.status == 502 and b"response-body-untranslatable" in response.body
    assert len(table.asked) == 1
    # What is refused was not answered from the cache.
    caches = [line["cache"] for line in table.running.wait_access(3)]
    assert sorted(caches) == ["hit", "miss", "none"]
    table.value = {"a": 1}
    response = table.get()
    assert (response.status, is_hit(response)) == (200, False)
    assert is_translation(response, table) and is_hit(table.get())


def one_coding_for_all(table: Table) -> None:
    content = gzip.compress(json.dumps(table.value).encode())
    fields = [TYPE, LONG, TAG, "Content-Encoding: gzip"]
    table.there.handler = lambda _: reply(content, "200 OK", *fields)
    packed = table.get(Accept_Encoding="gzip")
    plain = table.get()
    again = table.get(Accept_Encoding="gzip")
    assert [is_hit(response) for response in (packed, plain, again)] == [False, True, True]
    assert plistlib.loads(plain.body) == table.value
    assert plistlib.loads(gzip.decompress(again.body)) == table.value
    assert plain.get("etag") == again.get("etag").replace("-gzip", "") == (
        packed.get("etag").replace("-gzip", ""))
    for response in (packed, plain, again):
        assert response.get("vary") == "Accept-Encoding"
    known = table.get(If_None_Match=again.get("etag"), Accept_Encoding="gzip")
    assert (known.status, known.get("etag")) == (304, again.get("etag"))
    assert table.get(If_None_Match=again.get("etag")).status == 200
    assert len(table.asked) == 1


ORIGIN_ROWS = {
    "GET after a reload that changed the translation": the_translation_changed,
    "GET after a reload that changed what is refused": the_checks_changed,
    "GET after a reload that changed the form": the_form_changed,
    "If-None-Match with a tag of other rules": the_tag_of_other_rules,
    "GET of a response that the new rules cannot translate": untranslatable,
    "GET of a compressed response without Vary": one_coding_for_all,
}


def test_the_table_of_the_origins_form_is_this_one() -> None:
    text = PAGE.split("### What the server sent\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (.*?) \| .* \| 911[01], [\d.]+ \|$", text, re.MULTILINE)
    assert rows == list(ORIGIN_ROWS)


@pytest.mark.parametrize("row", [row for row in ROWS if "reload" not in row] + list(ORIGIN_ROWS))
def test_a_response_in_the_origins_form_is_cached_as_the_tables_say(
        gateway, origin, row: str) -> None:
    (ROWS | ORIGIN_ROWS)[row](Table(gateway, origin, "origin"))


def test_a_repeated_translation_is_logged_and_counted_as_such(gateway, origin) -> None:
    table = Table(gateway, origin, "origin")
    tag = table.get().get("etag")
    table.get()
    table.get(If_None_Match=tag)
    lines = table.running.wait_access(3)
    assert sorted(line.get("changed") or "" for line in lines) == [
        "", "json-to-plist", "json-to-plist"]
    assert table.running.metric("pinfold_transformed_messages_total", direction="response",
                                result="changed") == 2


@pytest.mark.parametrize("size", [100, 20_000, 300_000, 3_000_000])
def test_content_of_any_size_is_translated_from_memory_and_from_disk(
        gateway, origin, size: int) -> None:
    table = Table(gateway, origin, "origin")
    # What is stored before that is only in memory.
    table.running.wait_for_disk()
    table.value = {"pad": [f"line {number}" for number in range(size // 15)]}
    first = table.get()
    assert plistlib.loads(first.body) == table.value
    for _ in range(2):
        hit = table.get()
        assert is_hit(hit) and hit.body == first.body
        assert hit.get("etag") == first.get("etag")
    part = table.get(Range="bytes=20-99")
    assert (part.status, part.body) == (206, first.body[20:100])
    table.running.restart()
    table.running.wait_for_disk()
    response = table.get()
    assert is_hit(response) and response.body == first.body
    assert len(table.asked) == 1


def test_clients_that_leave_or_read_slowly_do_no_harm(gateway, origin) -> None:
    table = Table(gateway, origin, "origin")
    table.value = {"pad": [f"line {number}" for number in range(100_000)]}
    first = table.get()
    asked = f"GET {table.there.url('/it')} HTTP/1.1\r\nHost: {table.there.authority}\r\n\r\n"
    for _ in range(5):
        with Wire(table.running.proxy) as gone:
            gone.send(asked)
            gone.reset()
    with Wire(table.running.proxy) as slow:
        slow.send(asked)
        head = slow.read_head()
        assert is_hit(head) and head.get("etag") == first.get("etag")
        hit = table.get()
        assert is_hit(hit) and hit.body == first.body
        reload(table.running, table.rules({"body": {"from": "json", "to": "xml"}}))
        assert slow.read_body(head).body == first.body
    assert len(table.asked) == 1


def test_vary_names_the_coding_that_was_chosen_where_the_server_forgot_it(gateway, origin) -> None:
    value = {"a": 1, "pad": "x" * 200}

    def handler(asked: Request) -> bytes:
        return reply(gzip.compress(json.dumps(value).encode()), "200 OK", TYPE, LONG,
                     "Content-Encoding: gzip")

    there = origin(handler)
    running = gateway(rules(RULES))
    packed = running.get(there.url(), Accept_Encoding="gzip")
    assert (packed.get("vary"), packed.get("content-encoding")) == ("Accept-Encoding", "gzip")
    plain = running.get(there.url())
    assert not is_hit(plain) and plistlib.loads(plain.body) == value
    assert (plain.get("vary"), "content-encoding" in plain) == ("Accept-Encoding", False)
    assert is_hit(running.get(there.url()))


@pytest.mark.parametrize(("coding", "packed"), [
    ("gzip", gzip.compress), ("deflate", zlib.compress), ("br", brotli.compress),
    ("zstd", zstd.compress)], ids=["gzip", "deflate", "br", "zstd"])
def test_content_in_any_coding_that_the_server_was_asked_for_is_translated(
        gateway, origin, coding, packed) -> None:
    value = {"a": 1, "pad": "x" * 200}
    there = origin(lambda _: reply(packed(json.dumps(value).encode()), "200 OK", TYPE, LONG,
                                   f"Content-Encoding: {coding}"))
    running = gateway(rules(RULES))
    response = running.get(there.url(), Accept_Encoding=coding)
    assert there.requests[0].get("accept-encoding") == coding
    unpacked = gzip.decompress(response.body) if coding == "gzip" else response.body
    assert response.get("content-encoding") == ("gzip" if coding == "gzip" else "")
    assert plistlib.loads(unpacked) == value


def test_a_hit_changes_nothing_in_the_access_log(gateway, origin) -> None:
    table = Table(gateway, origin)
    table.get()
    table.get()
    lines = table.running.wait_access(2)
    assert {line["cache"]: line.get("changed") for line in lines} == {
        "miss": "json-to-plist", "hit": None}


def test_a_restart_with_other_rules_does_not_use_what_is_on_disk(gateway, origin) -> None:
    table = Table(gateway, origin)
    first = table.get()
    table.running.config["hosts"] = rules({"body": {"from": "json", "to": "xml"}})["hosts"]
    table.value = {"root": "other"}
    table.running.restart()
    table.running.wait_for_disk()
    response = table.get()
    assert not is_hit(response) and response.status == 200 and response.body != first.body


@pytest.mark.parametrize("changed", [
    {"headers": {"set": {"X-Tenant": "b"}}}, {"path": {"prefixes": {"/it": "/that"}}},
    {"query": {"set": {"v": "2"}}}], ids=lambda one: next(iter(one)))
def test_a_reload_that_changes_requests_uses_nothing_from_before(
        gateway, origin, changed: dict) -> None:
    table = Table(gateway, origin)
    table.get()
    assert is_hit(table.get())
    reload(table.running, rules(RULES, changed))
    assert not is_hit(table.get())
    assert len(table.asked) == 2


@pytest.mark.parametrize("policy", ["returnCacheElseLoad", "returnCacheDontLoad"])
@pytest.mark.parametrize(("directives", "is_used"), [
    ("max-age=0", True), ("max-age=0, must-revalidate", False),
    ("max-age=0, proxy-revalidate", False), ("s-maxage=0", False), ("no-cache", False)])
def test_a_policy_uses_what_is_stale_unless_the_server_forbids_it(
        gateway, origin, policy: str, directives: str, is_used: bool) -> None:
    there = origin(lambda _: reply(b"{}", "200 OK", TYPE, f"Cache-Control: {directives}", TAG))
    running = gateway(rules(RULES))
    assert running.get(there.url()).status == 200
    reload(running, rules(RULES, {"cachePolicy": policy}))
    first = running.get(there.url())
    if policy == "returnCacheDontLoad":
        assert first.status == 504, "nothing is stored under these rules"
        assert len(there.requests) == 1
        return
    assert first.status == 200 and len(there.requests) == 2
    assert running.get(there.url()).status == 200
    assert len(there.requests) == (2 if is_used else 3)
