"""What old servers send, and clients take: bare line feeds, empty lines, names that are no names."""

from __future__ import annotations

import pytest
from support.origin import OriginConnection, reply, scripted
from support.wire import Closed, request


def bare(head: str) -> bytes:
    return head.replace("\r\n", "\n").encode("latin-1")


def split(data: bytes) -> list[bytes]:
    return [data[index : index + 1] for index in range(len(data))]


def in_pieces(*pieces: bytes):
    """A script: answer a request with pieces, each in a segment of its own, and close."""

    def run(connection: OriginConnection) -> None:
        if connection.read_request() is not None:
            for piece in pieces:
                connection.send(piece)

    return run


# name → (the origin's bytes, status, body)
BARE = {
    "a length": (bare("HTTP/1.1 200 OK\nX-A: b\nContent-Length: 2\n\n") + b"ok", b"ok"),
    "the connection's end": (bare("HTTP/1.0 200 OK\nX-A: b\n\n") + b"o\nk", b"o\nk"),
    "chunks in strict form": (
        bare("HTTP/1.1 200 OK\nX-A: b\nTransfer-Encoding: chunked\n\n")
        + b"2\r\nok\r\n0\r\nX-T: 1\r\n\r\n", b"ok"),
    "no reason phrase": (bare("HTTP/1.1 200\nX-A:b\nContent-Length: 1\n\n") + b"\n", b"\n"),
    "interim responses before it": (
        bare("HTTP/1.1 103 Early\nLink: </x>\n\nHTTP/1.1 200 OK\nX-A: b\nContent-Length: 2\n\n")
        + b"ok", b"ok"),
}


@pytest.mark.parametrize("how", ["whole", "byte by byte"])
@pytest.mark.parametrize("name", BARE)
def test_a_head_of_bare_lines_is_rewritten(shared_gateway, scripted_origin, name, how):
    sent, body = BARE[name]
    there = scripted_origin(in_pieces(*(split(sent) if how == "byte by byte" else [sent])))
    with shared_gateway.wire() as wire:
        wire.send(request(there.url("/")))
        received = b""
        while True:
            response = wire.read_head()
            received += str(response.headers).encode()
            if response.status >= 200:
                break
        wire.read_body(response)
    assert (response.status, response.body, response.get("x-a")) == (200, body, "b")
    assert b"\\n" not in received, "no bare line feed is passed on"


def test_a_connection_with_bare_lines_is_not_used_again(gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        while connection.read_request() is not None:
            connection.send(bare("HTTP/1.1 200 OK\nContent-Length: 2\n\n") + b"ok")

    there = scripted_origin(script)
    running = gateway({"workers": 1, "cache": {"enabled": False}})
    with running.wire() as wire:
        for _ in range(3):
            assert wire.ask(request(there.url("/"))).body == b"ok"
    assert there.accepted == 3


def test_a_stored_head_of_bare_lines_is_served_with_proper_ones(gateway, scripted_origin):
    there = scripted_origin(scripted(
        bare("HTTP/1.1 200 OK\nX-A: b\nCache-Control: max-age=60\nContent-Length: 2\n\n") + b"ok"))
    running = gateway({"workers": 1})
    for hit in (False, True):
        with running.wire() as wire:
            wire.send(request(there.url("/")))
            head = wire.read_until(b"\r\n\r\n")
            assert head.count(b"\n") == head.count(b"\r\n")
            assert (b"; hit" in head) == hit
            assert b"\r\nX-A: b\r\n" in head
            assert wire.read_exactly(2) == b"ok"


# A head that mixes line ends is what an injected line looks like; and chunks are strict.
MIXED = {
    "CRLF, then LF": b"HTTP/1.1 200 OK\r\nX-A: b\nSet-Cookie: evil\r\nContent-Length: 2\r\n\r\nok",
    "LF, then CRLF": b"HTTP/1.1 200 OK\nX-A: b\r\nSet-Cookie: evil\nContent-Length: 2\n\nok",
    "an end in CRLF": b"HTTP/1.1 200 OK\nContent-Length: 2\n\r\nok",
    "an end in LF": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\nok",
    "bare CR among bare lines": b"HTTP/1.1 200 OK\nX-A: b\rc\nContent-Length: 2\n\nok",
    "bare lines with a folded one": b"HTTP/1.1 200 OK\nX-A: b\n c\nContent-Length: 2\n\nok",
    "chunks in bare lines": b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nok\n0\n\n",
    "an interim of bare lines, then a mixed head":
        b"HTTP/1.1 103 Early\n\nHTTP/1.1 200 OK\r\nContent-Length: 2\n\r\nok",
}


@pytest.mark.parametrize("how", ["whole", "byte by byte"])
@pytest.mark.parametrize("name", MIXED)
def test_a_head_that_mixes_line_ends_is_refused(shared_gateway, scripted_origin, name, how):
    sent = MIXED[name]
    there = scripted_origin(in_pieces(*(split(sent) if how == "byte by byte" else [sent])))
    with shared_gateway.wire() as wire:
        wire.send(request(there.url("/")))
        if name == "chunks in bare lines" and how == "byte by byte":
            # The head may be on its way already: then the response is cut off.
            try:
                assert wire.read_final().status == 502
            except Closed:
                assert b"ok" not in wire.buffer
            return
        response = wire.read_final()
        assert response.status == 502
        assert "set-cookie" not in response


# Lines that can be mended: folded ones, a space before the colon (RFC 9112 §5.1, §5.2), and one
# length said twice (RFC 9110 §8.6)

OK = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n"
# name → (field lines and more, what clients get of X-A, how the content is framed)
MENDED = {
    "a folded line": ("X-A: one\r\n two\r\nContent-Length: 2\r\n\r\nok", "one   two"),
    "a line folded twice": ("X-A: a\r\n\tb\r\n  c\r\nContent-Length: 2\r\n\r\nok", "a  \tb    c"),
    "a value on the next line": ("X-A:\r\n b\r\nContent-Length: 2\r\n\r\nok", "b"),
    "a folded last line": ("Content-Length: 2\r\nX-A: b\r\n \r\n\r\nok", "b"),
    "a space before the colon": ("X-A : b\r\nContent-Length: 2\r\n\r\nok", "b"),
    "both, beside chunks": (
        "X-A\t : b\r\n c\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "b   c"),
    "one length on two lines": (
        "Content-Length: 2\r\nX-A: b\r\nContent-Length: 2\r\n\r\nok", "b"),
    "one length in a list": ("Content-Length: 2, 2\r\nX-A: b\r\n\r\nok", "b"),
    "all of it behind an interim response": (
        "X-A : b\r\n\r\nHTTP/1.1 200 OK\r\nCache-Control:\r\n max-age=60\r\nX-A : b\r\n c\r\n"
        "Content-Length: 2, 02\r\n\r\nok", "b   c"),
}


@pytest.mark.parametrize("how", ["whole", "byte by byte"])
@pytest.mark.parametrize("name", MENDED)
def test_irregular_lines_are_mended(gateway, scripted_origin, name, how):
    rest, value = MENDED[name]
    start = OK.replace("200 OK", "103 Early") if "interim" in name else OK
    sent = (start + rest).encode()
    there = scripted_origin(in_pieces(*(split(sent) if how == "byte by byte" else [sent])))
    running = gateway({"workers": 1})
    for hit in (False, True):
        with running.wire() as wire:
            wire.send(request(there.url("/")))
            response = wire.read_final()
            assert (response.status, response.body, response.get("x-a")) == (200, b"ok", value)
            assert ("hit" in response.cache_status) == hit, "it is stored as it is sent on"
    assert there.accepted == 1


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_a_repeated_length_is_forwarded_once_without_content(
        shared_gateway, scripted_origin, method):
    status = "200 OK" if method == "HEAD" else "304 Not Modified"
    there = scripted_origin(scripted(
        f"HTTP/1.1 {status}\r\nContent-Length: 5, 5\r\nContent-Length: 5\r\n\r\n".encode()))
    response = shared_gateway.ask(request(there.url("/"), method=method, If_None_Match='"x"'))
    assert response.all("content-length") == ["5"]


@pytest.mark.parametrize("line", [
    "Content-Length : 2", "Content-Length:\r\n 2", "Content-Length: 2\r\n ", "Content-Length: 2, 3",
    "Content-Length: 2,", "Content-Length: 2\r\nContent-Length: 3", "Transfer-Encoding : chunked",
    "Transfer-Encoding:\r\n chunked", "Connection : close", "Connection: close,\r\n X-A",
    "Trailer : X-A", "Trailer:\r\n X-A", "X-A: b\r\n Content-Length: 3", " X-A: b", "X A: b", ": b"])
def test_what_recipients_could_read_in_two_ways_is_refused(shared_gateway, scripted_origin, line):
    length = "" if line.lower().startswith(("content-l", "transfer")) else "Content-Length: 2\r\n"
    there = scripted_origin(in_pieces(f"HTTP/1.1 200 OK\r\n{line}\r\n{length}\r\nok".encode()))
    assert shared_gateway.ask(request(there.url("/"))).status == 502


# Empty lines between a 100 and the final response


@pytest.mark.parametrize("empty", ["", "\r\n", "\n"])
@pytest.mark.parametrize("how", ["whole", "byte by byte"])
def test_an_empty_line_after_an_interim_response_is_passed_over(
    shared_gateway, scripted_origin, empty, how
):
    sent = (f"HTTP/1.1 100 Continue\r\n\r\n{empty}HTTP/1.1 103 Early\r\n\r\n{empty}"
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").encode()
    there = scripted_origin(in_pieces(*(split(sent) if how == "byte by byte" else [sent])))
    with shared_gateway.wire() as wire:
        assert wire.ask(request(there.url("/"))).body == b"ok"


@pytest.mark.parametrize("sent", [
    "\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 100 Continue\r\n\r\n\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "HTTP/1.1 100 Continue\r\n\r\n\r\rHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"])
def test_other_empty_lines_before_a_response_are_refused(shared_gateway, scripted_origin, sent):
    there = scripted_origin(in_pieces(sent.encode()))
    with shared_gateway.wire() as wire:
        assert wire.ask(request(there.url("/"))).status == 502


# Whitespace around chunk extensions (RFC 9112 §7.1.1)


def test_whitespace_around_chunk_extensions_is_taken_and_not_passed_on(
    shared_gateway, scripted_origin
):
    body = b"2; a = b ; c\r\nok\r\n0;\td\t=\"e\"\r\n\r\n"
    there = scripted_origin(
        scripted(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body, close=False))
    with shared_gateway.wire() as wire:
        wire.send(f"PUT {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n"
                  "Transfer-Encoding: chunked\r\n\r\n".encode() + body)
        head = wire.read_head()
        assert head.status == 200
        assert wire.read_until(b"0\r\n\r\n") == b"2\r\nok\r\n0\r\n\r\n"
    assert there.connections[0].received.endswith(b"\r\n\r\n2\r\nok\r\n0\r\n\r\n")


# Registered names that are no domain names (RFC 3986 §3.2.2)

NAMES = ["0.0.0.0=5000", "a,b", "ex%61mple.test", "a!b", "(a)", "a..b", "%7Ea", "x" * 64]


@pytest.mark.parametrize("name", NAMES)
def test_a_host_that_is_no_domain_name_has_no_address(gateway, dns, name):
    """Percent-encoding is not undone: a denied name cannot be reached by another spelling."""
    running = gateway({"access": {"destinations": {
        "allow": ["127.0.0.0/8"], "deny": ["example.test"]}}})
    for data in (request(f"http://{name}/"),
                 f"CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n\r\n"):
        response = running.ask(data)
        assert response.status == 502
        assert b"neither an address nor a valid name" in response.body
    assert dns.asked("example.test") == 0
    assert dns.asked(name) == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_reverse_route_takes_any_registered_name_as_host(gateway, origin, name):
    there = origin(lambda _: reply(b"ok"))
    running = gateway({"listeners": [
        {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
        {"name": "route", "address": "127.0.0.1:0", "kind": "reverse", "upstream": there.url("")}]})
    response = running.ask(f"GET / HTTP/1.1\r\nHost: {name}\r\n\r\n", "route")
    assert (response.status, response.body) == (200, b"ok")
