"""Stored responses in codings other than the stored one: decoded for clients that do not accept it,
compressed for those that do where the route asks for it."""

from __future__ import annotations

import gzip
import re
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor

import brotlicffi as brotli
import pytest
from support import zstd
from support.gateway import Gateway
from support.origin import HTTPOrigin, Request, chunked, reply
from support.wait import until
from support.wire import Response
from test_reload import reload

LONG = "Cache-Control: max-age=600"
TEXT = b"".join(b"line %d of a text that can be compressed\n" % number for number in range(400))
TAG = 'ETag: "abc"'
VARY = "Vary: Accept-Encoding"
HTML = "Content-Type: text/html"
PACKED = {"gzip": gzip.compress(TEXT, mtime=0), "deflate": zlib.compress(TEXT),
          "br": brotli.compress(TEXT), "zstd": zstd.compress(TEXT)}
UNPACK = {"": bytes, "gzip": gzip.decompress, "deflate": zlib.decompress, "br": brotli.decompress,
          "zstd": zstd.decompress}


def is_hit(response: Response) -> bool:
    return "hit" in response.cache_status


def content(response: Response) -> bytes:
    return UNPACK[response.get("content-encoding")](response.body)


class Table:
    """A gateway, and a server whose response is always `packed`, or `TEXT`, with some fields."""

    def __init__(self, gateway, origin, packed: str = "", *fields: str, cache: dict | None = None,
                 body: bytes | None = None, config: dict | None = None):
        self.packed = packed
        self.fields = fields
        self.body = (PACKED[packed] if packed else TEXT) if body is None else body
        self.there: HTTPOrigin = origin(self.answer)
        entry = {"match": ["**"], **({"cache": cache} if cache else {})}
        self.running: Gateway = gateway({"hosts": [entry], **(config or {})})

    def answer(self, asked: Request) -> bytes:
        fields = [LONG, *([f"Content-Encoding: {self.packed}"] if self.packed else []),
                  *self.fields]
        if '"abc"' in asked.get("if-none-match"):
            return reply(b"", "304 Not Modified", *fields, length=False)
        data = reply(self.body, "200 OK", *fields)
        return data.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if asked.method == "HEAD" else data

    def get(self, accept: str | None = None, method: str = "GET", path: str = "/it",
            **fields: str) -> Response:
        lines = [f"{method} {self.there.url(path)} HTTP/1.1", f"Host: {self.there.authority}",
                 "Connection: close"]
        if accept is not None:
            lines.append(f"Accept-Encoding: {accept}")
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        return self.running.ask("\r\n".join(lines) + "\r\n\r\n")

    @property
    def count(self) -> int:
        return len(self.there.requests)

    def compressed(self, accept: str = "gzip", **fields: str) -> Response:
        """The compressed form, once that is made."""
        def got() -> Response | None:
            response = self.get(accept, **fields)
            return response if "content-encoding" in response else None

        return until(got, f"compressed for {accept}")


# Decoding


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("vary", [[], [VARY]], ids=["for all", "by coding"])
def test_a_client_that_accepts_no_coding_gets_the_stored_content_decoded(
        gateway, origin, packed, vary):
    table = Table(gateway, origin, packed, TAG, HTML, *vary)
    first = table.get(packed)
    assert (first.body, first.get("content-encoding")) == (PACKED[packed], packed)
    for _ in range(2):
        plain = table.get("identity")
        assert is_hit(plain)
        assert (plain.status, plain.body, plain.get("content-length")) == (
            200, TEXT, str(len(TEXT)))
        assert "content-encoding" not in plain
        assert re.fullmatch(r'"abc-[0-9a-f]{8}"', plain.get("etag"))
        assert "accept-encoding" in ", ".join(plain.all("vary")).lower()
        assert plain.get("content-type") == "text/html"
    again = table.get(packed)
    assert is_hit(again)
    assert (again.body, again.get("etag")) == (PACKED[packed], '"abc"'), "it is as it was stored"
    assert table.count == 1


@pytest.mark.parametrize("inner", ["br", "zstd"])
def test_two_codings_one_in_the_other_are_both_undone(gateway, origin, inner):
    table = Table(gateway, origin, inner, TAG, body=gzip.compress(PACKED[inner]))
    table.packed = f"{inner}, gzip"
    table.get(f"gzip, {inner}")
    assert table.get(inner).body == TEXT
    assert table.count == 1


@pytest.mark.parametrize("packed,body", [
    ("gzip", gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:])),
    ("zstd", zstd.skippable(b"x") + zstd.compress(TEXT[:1000]) + zstd.skippable(b"")
     + zstd.compress(TEXT[1000:], "-19", "--no-check") + zstd.skippable(b"y" * 1000))],
    ids=["gzip", "zstd"])
def test_content_in_several_pieces_is_one_content(gateway, origin, packed, body):
    table = Table(gateway, origin, packed, TAG, body=body)
    table.get(packed)
    response = table.get("identity")
    assert (is_hit(response), response.body) == (True, TEXT)


def test_all_forms_of_a_response_for_all_clients_say_on_what_they_depend(gateway, origin):
    table = Table(gateway, origin, "gzip", "Vary: Accept-Language")
    for accept, is_stored in [("gzip", False), ("gzip", True), ("identity", True)]:
        response = table.get(accept)
        assert is_hit(response) == is_stored
        named = ", ".join(response.all("vary")).lower()
        assert "accept-encoding" in named
        assert "accept-language" in named


def test_without_the_field_every_coding_is_acceptable(gateway, origin):
    """RFC 9110 §12.5.3, rule 1."""
    table = Table(gateway, origin, "gzip", TAG)
    table.get()
    response = table.get()
    assert is_hit(response)
    assert (response.body, response.get("content-encoding")) == (PACKED["gzip"], "gzip")


def test_without_the_field_the_server_would_have_chosen_no_coding(gateway, origin):
    table = Table(gateway, origin, "gzip", TAG, VARY)
    table.get("gzip")
    response = table.get()
    assert (is_hit(response), response.body) == (True, TEXT)


def test_a_client_that_accepts_another_coding_gets_the_variant_that_the_server_has_for_it(
        gateway, origin):
    table = Table(gateway, origin, "br", TAG, VARY)
    table.get("br")
    response = table.get("gzip")
    assert response.cache_status["fwd"] == "vary-miss"
    assert table.count == 2


@pytest.mark.parametrize("other", [{"Accept_Language": "fr"}, {"X_Tenant": "b"}])
def test_a_variant_that_differs_in_anything_else_is_not_decoded(gateway, origin, other):
    table = Table(gateway, origin, "gzip", "Vary: Accept-Encoding, Accept-Language, X-Tenant")
    table.get("gzip", Accept_Language="de", X_Tenant="a")
    assert is_hit(table.get("identity", Accept_Language="de", X_Tenant="a"))
    own = {"Accept_Language": "de", "X_Tenant": "a"} | other
    assert table.get("identity", **own).cache_status["fwd"] == "vary-miss"


def test_a_variant_of_its_own_goes_before_one_that_could_be_decoded(gateway, origin):
    table = Table(gateway, origin, "gzip", TAG, VARY)
    table.packed = ""
    table.body = b"its own"
    table.get("identity")
    table.packed = "gzip"
    table.body = PACKED["gzip"]
    table.get("gzip")
    assert table.get("identity").body == b"its own"
    assert table.count == 2


@pytest.mark.parametrize("fields", [
    ["Cache-Control: no-transform"], ["Content-Type: application/gzip"],
    ["Content-Type: application/x-tar"]])
def test_what_is_to_stay_as_it_is_is_not_decoded(gateway, origin, fields):
    table = Table(gateway, origin, "gzip", *fields)
    table.get("gzip")
    response = table.get("identity")
    assert (is_hit(response), response.body) == (True, PACKED["gzip"])


def test_a_file_that_is_named_as_a_compressed_one_is_not_decoded(gateway, origin):
    table = Table(gateway, origin, "gzip")
    table.get("gzip", path="/a.tar.gz?x=1")
    assert table.get("identity", path="/a.tar.gz?x=1").body == PACKED["gzip"]
    table.get("gzip", path="/a.svgz")
    assert table.get("identity", path="/a.svgz").body == TEXT
    table.packed, table.body = "zstd", PACKED["zstd"]
    table.get("zstd", path="/a.tar.zst")
    assert table.get("identity", path="/a.tar.zst").body == PACKED["zstd"]


@pytest.mark.parametrize("packed,body", [
    ("gzip", PACKED["gzip"][:-20]), ("gzip", b"no gzip at all" * 50), ("br", b"\x00" * 300),
    ("gzip", gzip.compress(bytes(9 << 20))), ("zstd", PACKED["zstd"][:-20]),
    ("zstd", b"no frame at all" * 50), ("zstd", zstd.compress(bytes(9 << 20))),
    ("zstd", zstd.compress(TEXT, "--long=24")), ("zstd", PACKED["zstd"] + PACKED["gzip"])],
    ids=["short", "other", "broken", "bomb", "short zstd", "other zstd", "zstd bomb",
         "zstd with a window of 16 MiB", "zstd and more"])
def test_what_cannot_be_decoded_is_asked_for(gateway, origin, packed, body):
    table = Table(gateway, origin, packed, TAG, body=body)
    table.get(packed)
    for number in [2, 3]:
        response = table.get("identity")
        assert (response.status, response.body) == (200, body), "what the server sends for it"
        assert response.cache_status["fwd"] == "miss"
        assert response.cache_status["detail"] == "coding"
        assert table.count == number
        assert is_hit(table.get(packed)), "others are not concerned"
    only = table.get("identity", Cache_Control="only-if-cached")
    assert only.status == 504


def test_an_unknown_coding_stays(gateway, origin):
    table = Table(gateway, origin, "gzip", TAG, body=b"something")
    table.packed = "dcz"
    table.get("dcz")
    response = table.get("identity")
    assert (is_hit(response), response.get("content-encoding")) == (True, "dcz")


def test_conditions_and_ranges_are_about_the_decoded_form(gateway, origin):
    table = Table(gateway, origin, "gzip", TAG, VARY)
    table.get("gzip")
    tag = table.get("identity").get("etag")
    known = table.get("identity", If_None_Match=f'"other", {tag}')
    assert (known.status, known.get("etag"), known.body) == (304, tag, b"")
    assert "accept-encoding" in known.get("vary").lower()
    assert table.get("identity", If_None_Match='"abc"').body == TEXT
    part = table.get("identity", Range="bytes=100-199")
    assert (part.status, part.body) == (206, TEXT[100:200])
    assert part.get("content-range") == f"bytes 100-199/{len(TEXT)}"
    assert part.get("etag") == tag
    assert table.get("identity", Range="bytes=-5", If_Range=tag).body == TEXT[-5:]
    assert table.get("identity", Range="bytes=-5", If_Range='"abc"').body == TEXT
    assert table.get("identity", Range="bytes=999999-").status == 416
    assert table.get("identity", Range="bytes=0-1,5-6").body == TEXT
    head = table.get("identity", method="HEAD")
    assert (head.status, head.get("content-length"), head.body) == (200, str(len(TEXT)), b"")
    assert head.get("etag") == tag
    assert table.count == 1


def test_a_date_does_not_tell_the_forms_apart(gateway, origin):
    modified = "Last-Modified: Mon, 05 Jan 2015 10:00:00 GMT"
    table = Table(gateway, origin, "gzip", modified, VARY)
    table.get("gzip")
    date = modified.partition(": ")[2]
    assert table.get("identity", Range="bytes=0-4", If_Range=date).body == TEXT
    assert table.get("gzip", Range="bytes=0-4", If_Range=date).body == PACKED["gzip"][:5]
    assert table.get("identity", If_Modified_Since=date).status == 304


def test_a_condition_about_the_decoded_form_is_about_what_the_server_has(gateway, origin):
    table = Table(gateway, origin, "gzip", TAG)
    table.get("gzip")
    tag = table.get("identity").get("etag")
    table.get(method="PUT", If_Match=f'"x", {tag}')
    assert table.there.requests[-1].get("if-match") == '"x", "abc"'
    table.get(method="DELETE", If_Match='"x-12345678"')
    assert table.there.requests[-1].get("if-match") == '"x-12345678"'
    for _ in range(2):
        table.get("identity", If_Match=tag)
        assert table.there.requests[-1].get("if-match") == '"abc"'


def test_a_stale_response_is_confirmed_and_then_decoded(gateway, origin):
    table = Table(gateway, origin, "gzip", TAG)
    table.get("gzip")
    tag = table.get("identity").get("etag")
    for fields, expected in [({}, (200, TEXT)), ({"If_None_Match": tag}, (304, b""))]:
        response = table.get("identity", Cache_Control="max-age=0", **fields)
        assert response.cache_status["fwd-status"] == 304
        assert (response.status, response.body, response.get("etag")) == (*expected, tag)
    assert is_hit(table.get("gzip"))
    assert table.count == 3


def test_digests_of_the_stored_bytes_are_left_out(gateway, origin):
    digests = ["Content-MD5: x", "Repr-Digest: sha-256=:x:", "Accept-Ranges: bytes"]
    table = Table(gateway, origin, "gzip", *digests)
    table.get("gzip")
    response = table.get("identity")
    assert response.body == TEXT
    for name in ["content-md5", "repr-digest", "accept-ranges"]:
        assert name not in response
        assert name in table.get("gzip")


def test_a_response_of_unknown_length_is_decoded(gateway, origin):
    packed = PACKED["gzip"]
    there = origin(lambda _: chunked([packed[:50], packed[50:]], LONG, "Content-Encoding: gzip"))
    running = gateway()
    running.get(there.url("/"), Accept_Encoding="gzip")
    response = running.get(there.url("/"), Accept_Encoding="identity")
    assert (response.body, response.get("content-length")) == (TEXT, str(len(TEXT)))


@pytest.mark.parametrize("vary", [[], [VARY]], ids=["for all", "by coding"])
@pytest.mark.parametrize("size", [1, 150], ids=["small", "large"])
def test_what_is_on_disk_is_decoded_as_well(gateway, origin, vary, size):
    text = b"".join(b"%d" % (number * 7919 % 10**9) for number in range(len(TEXT) * size // 50))
    table = Table(gateway, origin, "gzip", TAG, *vary, body=gzip.compress(text, 1))
    table.running.wait_for_disk()
    table.get("gzip")
    table.running.restart()
    table.running.wait_for_disk()
    response = table.get("identity")
    assert (is_hit(response), response.body) == (True, text)
    assert table.get("identity", Range="bytes=3-9").body == text[3:10]
    assert table.count == 1


def test_by_every_way_the_content_is_decoded(through):
    there = through.origin(lambda _: reply(
        PACKED["gzip"], "200 OK", LONG, TAG, VARY, "Content-Encoding: gzip"))
    running = through.gateway()
    assert running.get(there.url("/"), Accept_Encoding="gzip").body == PACKED["gzip"]
    response = running.get(there.url("/"), Accept_Encoding="identity")
    assert (is_hit(response), response.body) == (True, TEXT)


def test_followers_that_accept_no_coding_get_what_arrives_decoded(gateway, origin):
    arrived, release = threading.Event(), threading.Event()

    def answer(_: Request) -> bytes:
        arrived.set()
        release.wait(10)
        return reply(PACKED["gzip"], "200 OK", LONG, TAG, "Content-Encoding: gzip")

    there = origin(answer)
    running = gateway()

    def get(accept: str) -> Response:
        return running.get(there.url("/"), Accept_Encoding=accept)

    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(get, "gzip")
        assert arrived.wait(10)
        others = [pool.submit(get, "identity") for _ in range(8)]
        until(lambda: running.metric("pinfold_cache_collapse_waits_total") == 8, "they wait")
        release.set()
        assert first.result().body == PACKED["gzip"]
        assert {one.result().body for one in others} == {TEXT}
    assert len(there.requests) == 1


def test_followers_ask_themselves_for_what_cannot_be_decoded(gateway, origin):
    arrived, release = threading.Event(), threading.Event()
    broken = PACKED["gzip"][:-20]

    def answer(asked: Request) -> bytes:
        if asked.get("accept-encoding") == "identity":
            return reply(TEXT, "200 OK", LONG)
        arrived.set()
        release.wait(10)
        return reply(broken, "200 OK", LONG, TAG, "Content-Encoding: gzip")

    there = origin(answer)
    running = gateway()

    def get(accept: str) -> Response:
        return running.get(there.url("/"), Accept_Encoding=accept)

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(get, "gzip")
        assert arrived.wait(10)
        others = [pool.submit(get, "identity") for _ in range(3)]
        until(lambda: running.metric("pinfold_cache_collapse_waits_total") == 3, "they wait")
        release.set()
        assert first.result().body == broken
        assert {one.result().body for one in others} == {TEXT}


def test_where_the_field_does_not_count_the_content_is_decoded_all_the_same(gateway, origin):
    ignored = {"key": {"fields": {"ignore": ["Accept-Encoding"]}}}
    table = Table(gateway, origin, "gzip", TAG, VARY, cache=ignored)
    table.get("gzip")
    for accept, body in [("identity", TEXT), ("br", TEXT), ("gzip, br", PACKED["gzip"])]:
        response = table.get(accept)
        assert (is_hit(response), response.body) == (True, body), accept


def test_what_stands_in_for_an_error_is_decoded(gateway, origin):
    fails = threading.Event()

    def answer(_: Request) -> bytes:
        if fails.is_set():
            return reply(b"down", "503 Service Unavailable")
        return reply(PACKED["gzip"], "200 OK", "Cache-Control: max-age=0, stale-if-error=600", TAG,
                     "Content-Encoding: gzip")

    there = origin(answer)
    running = gateway()
    running.get(there.url("/"), Accept_Encoding="gzip")
    fails.set()
    response = running.get(there.url("/"), Accept_Encoding="identity")
    assert (response.status, response.body) == (200, TEXT)
    assert response.cache_status["detail"] == "stale-if-error"


# Compressing

TYPES = {"compress": ["text/*", "application/json"]}


@pytest.mark.parametrize("coding", ["gzip", "br", "zstd"])
def test_content_is_compressed_once_for_those_who_accept_it(gateway, origin, coding):
    table = Table(gateway, origin, "", HTML, TAG, "Content-MD5: x", cache=TYPES)
    first = table.get(coding)
    assert (first.body, first.get("etag")) == (TEXT, '"abc"'), "as it arrives"
    assert "accept-encoding" in first.get("vary").lower()
    packed = table.compressed(coding)
    assert is_hit(packed)
    assert packed.get("content-encoding") == coding
    assert content(packed) == TEXT
    assert packed.get("content-length") == str(len(packed.body))
    assert len(packed.body) < len(TEXT) / 2
    assert re.fullmatch(rf'"abc-[0-9a-f]{{8}}-{coding}"', packed.get("etag"))
    assert "accept-encoding" in packed.get("vary").lower()
    assert "content-md5" not in packed
    for accept in [None, "", "identity", "dcz", "gzip;q=0.1, identity", "*;q=0"]:
        plain = table.get(accept)
        assert (is_hit(plain), plain.body, plain.get("etag")) == (True, TEXT, '"abc"'), accept
        assert "accept-encoding" in plain.get("vary").lower()
        assert "content-md5" in plain
    assert table.count == 1


def test_each_client_gets_what_it_prefers(gateway, origin):
    table = Table(gateway, origin, "", HTML, TAG, cache=TYPES)
    table.get()
    for accept, coding in [("gzip, deflate, br, zstd", "br"), ("gzip, br;q=0.5", "gzip"),
                           ("*", "br"), ("x-gzip", "gzip"), ("gzip, zstd", "zstd"),
                           ("gzip, br;q=0.5, zstd", "zstd"), ("zstd;q=0.5, gzip;q=0.6", "gzip")]:
        assert table.compressed(accept).get("content-encoding") == coding


@pytest.mark.parametrize("body,fields", [
    (TEXT, ["Content-Type: image/png"]),
    (TEXT, []),
    (TEXT[:200], [HTML]),
    (TEXT, [HTML, "Cache-Control: no-transform"]),
    (TEXT, [HTML, "Cache-Control: public", "Set-Cookie: a=b"]),
    (TEXT, [HTML, "Vary: Cookie"]),
    (TEXT, [HTML, "Vary: X-Tenant"]),
    (bytes(9 << 20), [HTML]),
], ids=["type", "no type", "short", "no-transform", "cookie", "by cookie", "by tenant", "large"])
def test_what_is_not_to_be_compressed_is_not(gateway, origin, body, fields):
    table = Table(gateway, origin, "", *fields, cache=TYPES, body=body)
    for _ in range(3):
        response = table.get("gzip", Cookie="a=1")
        assert "content-encoding" not in response
        assert response.body == body
    # Something else has been compressed meanwhile, by the same threads.
    table.fields, table.body = [HTML], TEXT
    table.get("gzip", path="/other")
    table.compressed("gzip", path="/other")
    assert "content-encoding" not in table.get("gzip", Cookie="a=1")


def test_without_the_key_nothing_is_compressed(gateway, origin):
    table = Table(gateway, origin, "", HTML)
    for _ in range(5):
        response = table.get("gzip")
        assert "content-encoding" not in response
        assert "vary" not in response


def test_conditions_are_about_any_form_and_ranges_about_the_one_they_name(gateway, origin):
    table = Table(gateway, origin, "", HTML, TAG, cache=TYPES)
    table.get()
    packed = table.compressed("gzip")
    tag, data = packed.get("etag"), packed.body
    known = table.get("gzip", If_None_Match=tag)
    assert (known.status, known.get("etag")) == (304, tag)
    assert "accept-encoding" in known.get("vary").lower()
    plain = table.get("gzip", If_None_Match='"abc"')
    assert (plain.status, plain.get("etag")) == (304, '"abc"')
    assert table.get("identity", If_None_Match=tag).body == TEXT
    part = table.get("gzip", Range="bytes=10-19", If_Range=tag)
    assert (part.status, part.body, part.get("content-encoding")) == (206, data[10:20], "gzip")
    assert part.get("content-range") == f"bytes 10-19/{len(data)}"
    plain = table.get("gzip", Range="bytes=10-19")
    assert (plain.status, plain.body) == (206, TEXT[10:20]), "it may have begun with the other form"
    assert "content-encoding" not in plain
    resumed = table.get("gzip", Range="bytes=10-19", If_Range='"abc"')
    assert (resumed.status, resumed.body) == (206, TEXT[10:20]), "the form that it has a part of"
    assert "content-encoding" not in resumed
    assert table.get("gzip", Range="bytes=10-19", If_Range='"x"').body == data
    assert table.get("gzip", Range=f"bytes={len(data)}-", If_Range=tag).status == 416
    assert table.get("identity", Range="bytes=10-19").body == TEXT[10:20]
    head = table.get("gzip", method="HEAD")
    assert (head.get("content-length"), head.get("etag"), head.body) == (
        str(len(data)), tag, b"")
    assert table.count == 1


def test_a_form_that_is_known_need_not_be_there(gateway, origin):
    table = Table(gateway, origin, "", HTML, TAG, cache=TYPES)
    table.running.wait_for_disk()
    table.get()
    tag = table.compressed("gzip").get("etag")
    table.running.restart()
    table.running.wait_for_disk()
    assert table.get("gzip", If_None_Match=tag).status == 304
    assert table.count == 1


def test_a_confirmed_response_keeps_its_compressed_form(gateway, origin):
    table = Table(gateway, origin, "", HTML, TAG, cache=TYPES)
    table.get()
    packed = table.compressed("gzip")
    again = table.get("gzip", Cache_Control="max-age=0")
    assert again.cache_status["fwd-status"] == 304
    assert (again.body, again.get("etag")) == (packed.body, packed.get("etag"))
    assert table.get("gzip").body == packed.body


@pytest.mark.parametrize("how", ["POST", "PURGE", "replaced"])
def test_with_the_response_its_forms_are_gone(gateway, origin, how):
    purge = {"cache": {"purge": {"clients": ["127.0.0.1/32"]}}}
    table = Table(gateway, origin, "", HTML, cache=TYPES, config=purge)
    table.get()
    table.compressed("gzip")
    table.body = TEXT.replace(b"line", b"LINE")
    if how != "replaced":
        assert table.get(method=how).status == 200
    else:
        table.get("gzip", Cache_Control="no-cache")
    for accept in ["identity", "gzip"]:
        assert content(table.get(accept)) == table.body
    assert content(table.compressed("gzip")) == table.body


def test_a_crowd_makes_it_once(gateway, origin):
    text = b"".join(b"%d " % (number * 7919 % 10**9) for number in range(40_000))
    table = Table(gateway, origin, "", HTML, cache=TYPES, body=text)
    table.get()
    with ThreadPoolExecutor(100) as pool:
        all_of_them = list(pool.map(lambda _: table.get("gzip"), range(100)))
    assert {content(one) for one in all_of_them} == {text}
    packed = {one.body for one in [table.compressed("gzip"), *all_of_them]
              if "content-encoding" in one}
    assert len(packed) == 1
    assert table.count == 1


def test_what_the_server_compressed_for_all_is_decoded_and_not_compressed_again(gateway, origin):
    table = Table(gateway, origin, "gzip", HTML, TAG, cache=TYPES)
    table.get("gzip")
    assert table.get("br").body == TEXT, "decoded, for a client that accepts another coding"
    assert table.get("gzip").body == PACKED["gzip"]


def test_a_reload_begins_to_compress_what_is_stored_and_ends_it(gateway, origin):
    table = Table(gateway, origin, "", HTML, TAG)
    table.get("gzip")
    entry = {"match": ["**"]}
    reload(table.running, {"hosts": [{**entry, "cache": TYPES}]})
    assert content(table.compressed("gzip")) == TEXT
    reload(table.running, {"hosts": [entry]})
    response = table.get("gzip")
    assert (is_hit(response), response.body) == (True, TEXT)
    assert table.count == 1


def test_the_access_log_says_what_was_done(gateway, origin):
    table = Table(gateway, origin, "gzip", TAG)
    table.get("gzip")
    table.get("identity")
    # In the order in which the workers have written them.
    assert {line.get("changed") for line in table.running.wait_access(2)} == {None, "decoded"}
