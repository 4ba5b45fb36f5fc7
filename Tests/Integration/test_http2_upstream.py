"""HTTP/2 towards servers (RFC 9113): who is spoken to in it; requests, responses and content."""

from __future__ import annotations

import hashlib
import os

import pytest
from h2.errors import ErrorCodes
from support.http2 import http2
from support.http2origin import HTTP2Origin, Setting, content
from support.interception import HOST, WRONG_PIN
from support.secure_ways import WAYS, ask_by, prepare
from support.wait import until
from support.wire import Response, request

CLEAR = "clear.test"
H2 = ("h2", "http/1.1")


@pytest.fixture(scope="module")
def context(pki):
    """context(*protocols): a server's TLS with these for ALPN."""
    return lambda *alpn: pki.intermediate.issue(HOST, CLEAR).server_context(alpn=alpn or H2)


@pytest.fixture
def start(gateway, pki):
    """start(entries, config): a gateway that requires HTTP/2 of one host, in clear text."""

    def made(*entries: dict, **config):
        return gateway({
            "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
            "cache": {"enabled": False},
            "hosts": [*entries, {"match": [CLEAR], "http2": "require"}]} | config)

    return made


@pytest.fixture
def running(start):
    return start()


class Asking:
    """A client of HTTP/1.1, or of HTTP/2, of a forward listener."""

    def __init__(self, running, version: str):
        self.running, self.version = running, version

    def get(self, url: str, method: str = "GET", body: bytes = b"", **fields: str) -> Response:
        if self.version == "HTTP/1.1":
            return self.running.ask(request(url, method=method, body=body, **fields))
        scheme, _, rest = url.partition("://")
        authority, _, path = rest.partition("/")
        with http2(self.running.proxy) as client:
            stream = client.begin(f"/{path}", method, authority, scheme, end=not body, **fields)
            if body:
                client.send(stream, body, end=True)
            answer = client.answer(stream)
            assert answer.complete, answer
            return Response(answer.status, "", "HTTP/2", answer.headers, answer.body,
                            answer.trailers)


@pytest.fixture(params=["HTTP/1.1", "HTTP/2"])
def client(request, running) -> Asking:
    return Asking(running, request.param)


@pytest.fixture(params=["tls", "clear"])
def there(request, http2_origin, context) -> HTTP2Origin:
    """An origin that answers by path, over TLS or in clear text."""
    return http2_origin(tls=context() if request.param == "tls" else None)


def url(there: HTTP2Origin, path: str = "/") -> str:
    return there.url(path, HOST if there.tls else CLEAR)


# Who is spoken to in HTTP/2


@pytest.mark.parametrize("way", WAYS)
def test_a_server_that_agrees_on_it_is_spoken_to_in_it(gateway, http2_origin, context, pki, way):
    there = http2_origin(tls=context())
    running = gateway(prepare({
        "tls": {"roots": [str(pki.root.pem_file)]},
        "hosts": [{"match": [HOST], "upgrade": "https"}]}, pki, way, HOST, there.port))
    assert ask_by(way, running, HOST, there.port).body == b"GET /"
    seen = there.requests[0]
    assert seen.version == "HTTP/2"
    assert (seen.method, seen.scheme, seen.authority, seen.target) == (
        "GET", "https", f"{HOST}:{there.port}", "/")
    assert "host" not in seen and "connection" not in seen


@pytest.mark.parametrize("mode, offered, spoken", [
    ("auto", H2, "HTTP/2"), ("auto", ("http/1.1",), "HTTP/1.1"), ("off", H2, "HTTP/1.1"),
    ("require", H2, "HTTP/2"), ("auto", ("h2",), "HTTP/2")])
def test_the_protocol_is_agreed_by_alpn(start, http2_origin, context, mode, offered, spoken):
    there = http2_origin(tls=context(*offered))
    running = start({"match": [HOST], "http2": mode})
    assert running.ask(request(there.url(host=HOST))).status == 200
    assert there.versions == {spoken}


@pytest.mark.parametrize("mode, spoken", [
    ("auto", "HTTP/1.1"), ("off", "HTTP/1.1"), ("require", "HTTP/2")])
def test_clear_text_is_http_1_unless_http_2_is_required(start, http2_origin, mode, spoken):
    there = http2_origin()
    running = start({"match": [HOST], "http2": mode})
    assert running.ask(request(there.url(host=HOST))).status == 200
    assert there.versions == {spoken}


def test_a_server_that_does_not_agree_is_refused_if_it_is_required(
        start, http2_origin, context):
    there = http2_origin(tls=context("http/1.1"))
    running = start({"match": [HOST], "http2": "require"})
    answer = running.ask(request(there.url(host=HOST)))
    assert answer.status == 502
    assert b"upstream-http2-not-spoken" in answer.body
    assert there.application_bytes == b"" and there.requests == []


def test_a_server_without_alpn_is_spoken_to_in_http_1(start, http2_origin, pki):
    there = http2_origin(tls=pki.intermediate.issue(HOST).server_context(alpn=()))
    running = start({"match": [HOST]})
    assert running.ask(request(there.url(host=HOST))).status == 200
    assert there.versions == {"HTTP/1.1"}


def test_hosts_with_one_address_and_certificate_have_connections_of_their_own(
        start, http2_origin, context):
    """A pin is checked for each name: nothing is coalesced (RFC 9113 §9.1.1 only allows it)."""
    there = http2_origin(tls=context())
    running = start()
    for host in (HOST, CLEAR, HOST, CLEAR):
        assert running.ask(request(there.url(host=host))).status == 200
    assert len(there.served) == 2
    assert {seen.connection.number for seen in there.requests if HOST in seen.authority} == {0}


@pytest.mark.parametrize("right", [True, False])
def test_pins_are_checked_before_anything_is_sent(start, http2_origin, pki, right):
    leaf = pki.intermediate.issue(HOST)
    there = http2_origin(tls=leaf.server_context(alpn=H2))
    running = start(
        {"match": [HOST], "pinsets": ["p"]},
        pinsets={"p": {"mode": "publicKey", "pins": [leaf.pin if right else WRONG_PIN]}})
    answers = [running.ask(request(there.url(host=HOST))) for _ in range(3)]
    assert [one.status for one in answers] == [200 if right else 502] * 3
    if not right:
        assert b"tls-no-pin-matches" in answers[0].body
        assert there.application_bytes == b""
    else:
        assert len(there.served) == 1


# Requests


def test_a_request_has_its_pseudo_fields_and_no_field_of_a_connection(client, there):
    answer = client.get(url(there, "/fields?a=b&c"), X_Mine="1", TE="trailers",
                        Cookie="a=1; b=2", Accept="text/plain")
    assert answer.status == 200
    seen = there.requests[0]
    assert seen.pseudo == {
        ":method": "GET", ":scheme": "https" if there.tls else "http",
        ":authority": f"{HOST if there.tls else CLEAR}:{there.port}", ":path": "/fields?a=b&c"}
    assert seen.get("x-mine") == "1" and seen.get("accept") == "text/plain"
    assert "; ".join(seen.all("cookie")) == "a=1; b=2"
    assert seen.get("te") in ("", "trailers")
    assert seen.get("via").startswith("2.0 " if client.version == "HTTP/2" else "1.1 ")
    forbidden = {"host", "connection", "keep-alive", "proxy-connection", "transfer-encoding",
                 "upgrade"}
    assert not forbidden & {name for name, _ in seen.headers}


def test_fields_that_a_client_says_belong_to_its_connection_do_not_arrive(running, there):
    running.ask(request(url(there), Connection="close, x-mine", X_Mine="1", Keep_Alive="max=5"))
    names = {name for name, _ in there.requests[0].headers}
    assert not {"x-mine", "connection", "keep-alive"} & names


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_methods_arrive(client, there, method):
    answer = client.get(url(there, "/method"), method)
    assert answer.status == 200
    assert answer.body == (b"" if method == "HEAD" else f"{method} /method".encode())
    assert there.requests[0].method == method


def test_options_of_the_server_itself_has_an_asterisk(running, there):
    authority = url(there).split("//")[1].rstrip("/")
    # RFC 9112 §3.2.4: the last proxy sends `*` for a target without a path.
    answer = running.ask(request(url(there).rstrip("/"), method="OPTIONS", host=authority))
    assert answer.status == 200
    assert there.requests[0].target == "*"


@pytest.mark.parametrize("size", [1, 1024, 16_385, 70_000, 3_000_000])
def test_content_of_a_request_arrives(client, there, size):
    data = os.urandom(size)
    answer = client.get(url(there, "/digest"), "PUT", data)
    assert answer.body == hashlib.sha256(data).hexdigest().encode()
    assert there.requests[0].complete


@pytest.mark.parametrize("parts", [[], [b"one"], [b"a" * 70_000, b"", b"b" * 1000]])
def test_chunked_content_and_trailers_of_a_request_arrive(running, there, parts):
    head = request(url(there, "/echo"), method="POST", Transfer_Encoding="chunked",
                   Trailer="x-sum", TE="trailers")
    data = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts if part)
    answer = running.ask(head + data + b"0\r\nX-Sum: 42\r\n\r\n")
    assert answer.body == b"".join(parts)
    assert there.requests[0].trailers == [("x-sum", "42")]
    assert answer.trailers == [("x-sum", "42")]


def test_content_without_a_length_and_trailers_arrive_from_http_2(running, there):
    authority = url(there).split("//")[1].rstrip("/")
    with http2(running.proxy) as client:
        stream = client.begin("/echo", "POST", authority, "https" if there.tls else "http",
                              end=False)
        client.send(stream, data := os.urandom(200_000))
        client.trailers(stream, [("x-sum", "42")])
        answer = client.answer(stream)
    assert answer.body == data and answer.trailers == [("x-sum", "42")]
    assert "content-length" not in there.requests[0]


@pytest.mark.parametrize("window", [1, 100, 5000])
def test_content_is_sent_as_the_server_s_windows_allow(running, http2_origin, context, window):
    there = http2_origin(tls=context(), settings={Setting.INITIAL_WINDOW_SIZE: window})
    # Before the settings have arrived, the window is what it is by default.
    running.ask(request(there.url("/", HOST)))
    data = os.urandom(min(300 * window, 300_000))
    answer = running.ask(request(there.url("/digest", HOST), method="PUT", body=data))
    assert answer.body == hashlib.sha256(data).hexdigest().encode()


def test_a_window_that_becomes_negative_is_waited_for(running, http2_origin, context):
    """SETTINGS_INITIAL_WINDOW_SIZE also changes the windows of open streams (§6.9.2)."""
    def shrinks(stream) -> None:
        if stream.target == "/upload":
            stream.wait(lambda: len(stream.body) == 65_535, "a full window")
            connection, before = stream.connection, stream.connection.acknowledged
            connection.settings({Setting.INITIAL_WINDOW_SIZE: 1000})
            stream.wait(lambda: connection.acknowledged > before, "the settings hold")
            stream.connection.credit()
        stream.respond(body=hashlib.sha256(stream.read_all()).hexdigest().encode())

    there = http2_origin(shrinks, tls=context(), credits=False)
    data = os.urandom(200_000)
    answer = running.ask(request(there.url("/upload", HOST), method="PUT", body=data))
    assert answer.body == hashlib.sha256(data).hexdigest().encode()


def test_a_server_may_begin_with_a_window_of_nothing(running, http2_origin, context):
    def opens(stream) -> None:
        if stream.method == "GET":
            return stream.respond()
        assert stream.body == b""
        stream.connection.settings({Setting.INITIAL_WINDOW_SIZE: 70_000})
        stream.respond(body=stream.read_all())

    there = http2_origin(opens, tls=context(), settings={Setting.INITIAL_WINDOW_SIZE: 0})
    running.ask(request(there.url("/", HOST)))
    data = os.urandom(50_000)
    assert running.ask(request(there.url("/", HOST), method="PUT", body=data)).body == data


def test_heads_are_encoded_for_a_server_without_a_table(running, http2_origin, context):
    there = http2_origin(tls=context(), settings={Setting.HEADER_TABLE_SIZE: 0})
    for number in range(20):
        answer = running.ask(request(there.url("/fields", HOST), X_Number=str(number),
                                     X_Same="always"))
        assert f"x-number: {number}\n" in answer.body.decode() + "\n"
        assert "x-same: always" in answer.body.decode()


def test_a_table_may_shrink_and_grow_meanwhile(running, http2_origin, context):
    there = http2_origin(tls=context())
    for size in (4096, 0, 100, 4096, 0, 65_536):
        running.ask(request(there.url("/", HOST)))
        connection = there.served[0]
        before = connection.acknowledged
        connection.settings({Setting.HEADER_TABLE_SIZE: size})
        for number in range(5):
            answer = running.ask(request(there.url("/fields", HOST), X_Size=str(size)))
            assert f"x-size: {size}" in answer.body.decode(), number
        assert connection.acknowledged > before
    assert len(there.served) == 1


def test_large_heads_are_sent_in_several_frames(running, there):
    value = content(40_000).decode().replace("\n", "-")
    answer = running.ask(request(url(there, "/fields"), X_Large=value))
    assert answer.status in (200, 431)
    if answer.status == 200:
        assert f"x-large: {value}" in answer.body.decode()


def test_a_server_is_told_that_it_may_not_push(running, there):
    running.ask(request(url(there)))
    settings = there.served[0].h2.remote_settings
    assert settings.enable_push == 0


# Responses


@pytest.mark.parametrize("path", ["body", "unknown"])
@pytest.mark.parametrize("size", [0, 1, 1024, 16_385, 70_000, 3_000_000])
def test_content_of_a_response_comes_back(client, there, path, size):
    answer = client.get(url(there, f"/{path}/{size}"))
    assert answer.status == 200 and answer.body == content(size)
    if path == "body":
        assert answer.get("content-length") == str(size)


def test_a_response_says_by_which_version_it_came(client, there):
    assert client.get(url(there)).get("via").startswith("2.0 ")


def test_trailers_of_a_response_come_back(client, there):
    answer = client.get(url(there, "/trailers"), TE="trailers")
    assert answer.body == b"content"
    assert [(name.lower(), value) for name, value in answer.trailers] == [("x-sum", "42")]


def test_a_response_of_known_length_may_have_trailers(client, http2_origin, context):
    """HTTP/1.1 has no place for them there."""
    there = http2_origin(lambda stream: stream.respond(
        body=b"content", trailers=[("x-sum", "42")]), tls=context())
    answer = client.get(there.url("/", HOST), TE="trailers")
    assert (answer.body, answer.get("content-length")) == (b"content", "7")
    assert answer.trailers == ([("x-sum", "42")] if client.version == "HTTP/2" else [])


@pytest.mark.parametrize("status", [204, 304, 205, 404, 500, 599])
def test_statuses_come_back(client, there, status):
    assert client.get(url(there, f"/status/{status}"), If_None_Match='"a"').status == status


@pytest.mark.parametrize("status", [204, 304])
def test_a_response_without_content_may_end_with_an_empty_frame(
        client, http2_origin, context, status):
    def ends(stream) -> None:
        stream.head(status)
        stream.data(b"", end=True)

    there = http2_origin(ends, tls=context())
    answer = client.get(there.url("/", HOST), If_None_Match='"a"')
    assert (answer.status, answer.body) == (status, b"")


def test_the_head_of_a_response_has_its_length_and_no_content(client, there):
    answer = client.get(url(there, "/body/70000"), "HEAD")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.get("content-length") == "70000"


def test_interim_responses_come_back(running, there):
    with running.wire() as wire:
        wire.send(request(url(there, "/hints")))
        interim = wire.read()
        assert (interim.status, interim.get("link")) == (103, "</style.css>; rel=preload")
        assert wire.read().body == b"hinted"
    authority = url(there).split("//")[1].rstrip("/")
    with http2(running.proxy) as client:
        answer = client.get("/hints", authority=authority,
                            scheme="https" if there.tls else "http")
        [(status, fields)] = answer.interim
        assert (status, fields[0]) == (103, ("link", "</style.css>; rel=preload"))
        assert answer.body == b"hinted"


def test_a_client_waits_until_the_server_asks_for_the_content(running, http2_origin, context):
    before = []

    def asks(stream) -> None:
        before.append(stream.body)
        stream.interim(100)
        stream.respond(body=stream.read_all())

    there = http2_origin(asks, tls=context())
    with running.wire() as wire:
        wire.send(request(there.url("/", HOST), method="PUT", Expect="100-continue",
                          Content_Length="5"))
        assert wire.read().status == 100
        wire.send(b"12345")
        assert wire.read().body == b"12345"
    assert before == [b""]


@pytest.mark.parametrize("length", [True, False], ids=["length", "streamed"])
def test_content_that_the_server_does_not_ask_for_is_not_waited_for(
        running, http2_origin, context, length):
    resets = []

    def refuses(stream) -> None:
        if stream.method == "GET":
            return stream.respond(body=b"yes")
        stream.interim(103)
        stream.respond(403, body=b"no", length=length)
        # It does not reset the stream, though it may.
        resets.append((stream.wait_reset(), stream.body))

    there = http2_origin(refuses, tls=context())
    with running.wire() as wire:
        wire.send(request(there.url("/", HOST), method="PUT", Expect="100-continue",
                          Content_Length="5"))
        assert wire.read().status == 103
        response = wire.read()
        assert (response.status, response.body) == (403, b"no")
        assert wire.ended()
    until(lambda: resets, "the stream is reset")
    assert resets == [(ErrorCodes.CANCEL, b"")]
    # The connection goes on.
    assert running.ask(request(there.url("/", HOST))).body == b"yes"
    assert len(there.served) == 1


def test_fields_of_a_response_may_be_encoded_with_a_table(running, there):
    """The library's encoder refers to what it has sent before."""
    for _ in range(5):
        answer = running.ask(request(url(there, "/body/10")))
        assert answer.get("cache-control") == "no-store" and answer.body == content(10)
    assert len(there.served) == 1


def test_padding_is_no_content(client, http2_origin, context):
    def pads(stream) -> None:
        stream.head(200)
        with stream.connection.changed:
            for part in (b"one ", b"", b"two"):
                stream.connection.h2.send_data(stream.number, part, pad_length=200)
            stream.connection.h2.end_stream(stream.number)
            stream.connection.flush()

    there = http2_origin(pads, tls=context())
    assert client.get(there.url("/", HOST)).body == b"one two"
