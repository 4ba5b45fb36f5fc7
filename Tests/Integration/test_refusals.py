"""Whatever is ambiguous is refused, never guessed: each malformed request, its exact status."""

import http_sfv
import pytest
from support.origin import reply
from support.wait import until
from support.wire import Response, Wire, request

CRLF = "\r\n"


def post(*lines: str, body: str = "") -> str:
    return CRLF.join(["POST http://{at}/ HTTP/1.1", "Host: {at}", *lines]) + CRLF * 2 + body


def get(*lines: str) -> str:
    return CRLF.join(["GET http://{at}/ HTTP/1.1", "Host: {at}", *lines]) + CRLF * 2


def first(line: str) -> str:
    return f"{line}{CRLF}Host: {{at}}{CRLF * 2}"


CHUNKED = "Transfer-Encoding: chunked"

# name → (status, request). {at} is the origin's authority.
MALFORMED = {
    # Framing (RFC 9112 §6.3)
    "content-length with transfer-encoding": (
        400, post("Content-Length: 5", CHUNKED, body="0\r\n\r\n")),
    "transfer-encoding with content-length": (
        400, post(CHUNKED, "Content-Length: 5", body="0\r\n\r\n")),
    "two content-lengths that differ": (
        400, post("Content-Length: 5", "Content-Length: 6", body="12345")),
    "a list of content-lengths that differ": (400, post("Content-Length: 5, 6", body="12345")),
    "negative content-length": (400, post("Content-Length: -1")),
    "content-length with a sign": (400, post("Content-Length: +5", body="12345")),
    "content-length in hexadecimal": (400, post("Content-Length: 0x5", body="12345")),
    "content-length with a space inside": (400, post("Content-Length: 1 2", body="123")),
    "content-length with a point": (400, post("Content-Length: 5.0", body="12345")),
    "empty content-length": (400, post("Content-Length:")),
    "content-length beyond 64 bits": (413, post("Content-Length: 99999999999999999999999")),
    "content-length in other digits": (400, post("Content-Length: \xb2")),
    "unknown transfer coding": (501, post("Transfer-Encoding: rot13, chunked", body="0\r\n\r\n")),
    "transfer coding that we do not decode": (
        501, post("Transfer-Encoding: gzip, chunked", body="0\r\n\r\n")),
    "chunked that is not final": (400, post("Transfer-Encoding: chunked, gzip")),
    "chunked twice": (400, post("Transfer-Encoding: chunked, chunked", body="0\r\n\r\n")),
    "chunked twice on two lines": (400, post(CHUNKED, CHUNKED, body="0\r\n\r\n")),
    "empty transfer-encoding": (400, post("Transfer-Encoding:")),
    "transfer-encoding in HTTP/1.0": (
        400, f"POST http://{{at}}/ HTTP/1.0{CRLF}Host: {{at}}{CRLF}{CHUNKED}{CRLF * 2}0{CRLF * 2}"),
    "chunked with a vertical tab": (400, post("Transfer-Encoding: \x0bchunked", body="0\r\n\r\n")),
    # Lines and fields (RFC 9112 §2.2, §5)
    "bare LF after the request line": (
        400, "GET http://{at}/ HTTP/1.1\nHost: {at}\r\n\r\n"),
    "bare LF after a field": (400, "GET http://{at}/ HTTP/1.1\r\nHost: {at}\nX: y\r\n\r\n"),
    "bare LF at the end of the head": (400, "GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\n\n"),
    "bare CR in a value": (400, get("X: a\rb")),
    "bare CR before a field name": (400, get("\rX: a")),
    "space before the colon": (400, get("X : a")),
    "tab before the colon": (400, get("X\t: a")),
    "space before the first field": (
        400, "GET http://{at}/ HTTP/1.1\r\n X: a\r\nHost: {at}\r\n\r\n"),
    "obs-fold with a space": (400, get("X: a", " b")),
    "obs-fold with a tab": (400, get("X: a", "\tb")),
    "NUL in a value": (400, get("X: a\0b")),
    "NUL in a name": (400, get("X\0: a")),
    "control character in a value": (400, get("X: a\x01b")),
    "DEL in a value": (400, get("X: a\x7fb")),
    "empty field name": (400, get(": a")),
    "field line without a colon": (400, get("nonsense")),
    "separator in a field name": (400, get("X(1): a")),
    "byte above 127 in a field name": (400, get("X\xe9: a")),
    # Programs in the way of CGI read `_` in a name as `-`.
    "Transfer_Encoding beside Content-Length": (
        400, post("Content-Length: 0", "Transfer_Encoding: chunked")),
    "Content_Length": (400, post("content_length: 3", "Content-Length: 0")),
    "Keep_Alive": (400, get("KEEP_ALIVE: 3")),
    "Proxy_Connection": (400, get("proxy_Connection: x")),
    # TRACE has no content (RFC 9110 §9.3.8)
    "TRACE with content": (
        400, "TRACE http://{at}/ HTTP/1.1\r\nHost: {at}\r\nContent-Length: 3\r\n\r\nabc"),
    "TRACE with chunked content": (
        400, "TRACE http://{at}/ HTTP/1.1\r\nHost: {at}\r\nMax-Forwards: 0\r\n"
             "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
    # Host (RFC 9112 §3.2)
    "no Host": (400, "GET http://{at}/ HTTP/1.1\r\n\r\n"),
    "two Hosts": (400, get("Host: {at}")),
    "two Hosts that differ": (400, get("Host: elsewhere.test")),
    "Host with a path": (400, "GET http://{at}/ HTTP/1.1\r\nHost: {at}/x\r\n\r\n"),
    "Host with userinfo": (400, "GET http://{at}/ HTTP/1.1\r\nHost: a@{at}\r\n\r\n"),
    "Host that is a list": (400, "GET http://{at}/ HTTP/1.1\r\nHost: {at}, b.test\r\n\r\n"),
    "Host with a port that is no number": (
        400, "GET http://{at}/ HTTP/1.1\r\nHost: a.test:8x\r\n\r\n"),
    # The request line (RFC 9112 §3)
    "userinfo in the target": (400, first("GET http://user:pass@{at}/ HTTP/1.1")),
    "empty userinfo in the target": (400, first("GET http://@{at}/ HTTP/1.1")),
    "fragment in the target": (400, first("GET http://{at}/#part HTTP/1.1")),
    "control character in the target": (400, first("GET http://{at}/\x01 HTTP/1.1")),
    "NUL in the target": (400, first("GET http://{at}/\0 HTTP/1.1")),
    "space in the target": (400, first("GET http://{at}/a b HTTP/1.1")),
    "tab in the request line": (400, first("GET\thttp://{at}/ HTTP/1.1")),
    "two spaces in the request line": (400, first("GET  http://{at}/ HTTP/1.1")),
    "space after the version": (400, first("GET http://{at}/ HTTP/1.1 ")),
    "space before the method": (400, first(" GET http://{at}/ HTTP/1.1")),
    "no version": (400, first("GET http://{at}/")),
    "no target": (400, first("GET HTTP/1.1")),
    "no host in the target": (400, first("GET http:///x HTTP/1.1")),
    "port beyond 65535": (400, first("GET http://127.0.0.1:65536/ HTTP/1.1")),
    "port zero": (400, first("GET http://127.0.0.1:0/ HTTP/1.1")),
    "port that is no number": (400, first("GET http://127.0.0.1:8o/ HTTP/1.1")),
    "backslash in the host": (400, first("GET http://a\\b.test/ HTTP/1.1")),
    "unclosed bracket": (400, first("GET http://[::1/ HTTP/1.1")),
    "nonsense in brackets": (400, first("GET http://[nonsense]/ HTTP/1.1")),
    "unknown scheme": (400, first("GET ftp://{at}/ HTTP/1.1")),
    "origin-form on a forward listener": (400, first("GET / HTTP/1.1")),
    "separator in the method": (400, first("G(T http://{at}/ HTTP/1.1")),
    "authority-form without CONNECT": (400, first("GET {at} HTTP/1.1")),
    "absolute-form with CONNECT": (400, first("CONNECT http://{at}/ HTTP/1.1")),
    "CONNECT without a port": (400, first("CONNECT 127.0.0.1 HTTP/1.1")),
    "asterisk-form without OPTIONS": (400, first("GET * HTTP/1.1")),
    # Versions
    "version 2.0": (505, first("GET http://{at}/ HTTP/2.0")),
    "version 1.2": (505, first("GET http://{at}/ HTTP/1.2")),
    "version 0.9": (505, first("GET http://{at}/ HTTP/0.9")),
    "version with two digits": (400, first("GET http://{at}/ HTTP/1.10")),
    "version in lower case": (400, first("GET http://{at}/ http/1.1")),
    "another protocol": (400, first("GET http://{at}/ HTTPS/1.1")),
    "the preface of HTTP/2": (505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "a TLS handshake": (400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + "\0" * 60 + "\r\n\r\n"),
    # Limits
    "a target beyond its limit": (414, first("GET http://{at}/" + "a" * 20_000 + " HTTP/1.1")),
    "a head beyond its limit": (431, get("X: " + "a" * 33_000)),
    "more fields than the limit": (431, get(*[f"X-{number}: a" for number in range(130)])),
    # Expect (RFC 9110 §10.1.1)
    "an expectation that we do not know": (
        417, post("Expect: 200-maybe", "Content-Length: 0")),
}

# The head is fine and has been forwarded; the body is not.
MALFORMED_BODIES = {
    "space before the chunk size": (400, " 3\r\nabc\r\n0\r\n\r\n"),
    "space after the chunk size": (400, "3 \r\nabc\r\n0\r\n\r\n"),
    "tab after the chunk size": (400, "3\t\r\nabc\r\n0\r\n\r\n"),
    "space before a chunk extension": (400, "3 ;x\r\nabc\r\n0\r\n\r\n"),
    "empty chunk size": (400, "\r\nabc\r\n0\r\n\r\n"),
    "signed chunk size": (400, "+3\r\nabc\r\n0\r\n\r\n"),
    "negative chunk size": (400, "-3\r\nabc\r\n0\r\n\r\n"),
    "chunk size with a prefix": (400, "0x3\r\nabc\r\n0\r\n\r\n"),
    "chunk size that is no number": (400, "xyz\r\nabc\r\n0\r\n\r\n"),
    "oversize chunk size": (413, "fffffffffffffffff\r\nabc"),
    "chunk size that overflows 64 bits": (413, "10000000000000003\r\nabc\r\n0\r\n\r\n"),
    "bare LF after the chunk size": (400, "3\nabc\r\n0\r\n\r\n"),
    "bare CR after the chunk size": (400, "3\rabc\r\n0\r\n\r\n"),
    "bare LF after the chunk data": (400, "3\r\nabc\n0\r\n\r\n"),
    "more data than the chunk size": (400, "3\r\nabcd\r\n0\r\n\r\n"),
    "chunk extension beyond the limit": (413, "3;" + "x" * 5000 + "\r\nabc\r\n0\r\n\r\n"),
    "many chunk extensions beyond the limit": (
        413, ("1;" + "x" * 50 + "\r\na\r\n") * 200 + "0\r\n\r\n"),
    "control character in a chunk extension": (400, "3;\x01\r\nabc\r\n0\r\n\r\n"),
    "bare LF at the end of the trailers": (400, "0\r\n\n"),
    "space before the colon of a trailer": (400, "0\r\nX : a\r\n\r\n"),
    "obs-fold in a trailer": (400, "0\r\nX: a\r\n b\r\n\r\n"),
    "trailers beyond their limit": (431, "0\r\nX: " + "a" * 10_000 + "\r\n\r\n"),
    "more trailers than the limit": (
        431, "0\r\n" + "".join(f"X-{number}: a\r\n" for number in range(40)) + "\r\n"),
}


def check_error(response: Response, status: int, wire: Wire) -> None:
    """What every refusal must have."""
    assert response.status == status, response
    assert response.get("connection").lower() == "close"
    assert response.get("content-type").split(";")[0] == "application/json"
    body = response.json()
    assert body["reason"] and body["id"]
    members = http_sfv.List()
    members.parse(response.get("proxy-status").encode())
    assert members[-1].params.get("error"), response.get("proxy-status")
    assert wire.ended(), "the connection must be closed"


@pytest.fixture(scope="module")
def origin_for_refusals():
    from support.origin import HTTPOrigin, serving
    with serving(HTTPOrigin(lambda _: reply(b"reached", "200 OK", "Cache-Control: no-store"))) as made:
        yield made


def with_accept(data: str) -> str:
    """The request with `Accept: application/json` as the last field of its head."""
    return data if CRLF * 2 not in data else data.replace(
        CRLF * 2, f"{CRLF}Accept: application/json{CRLF * 2}", 1)


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_request_is_refused(shared_gateway, origin_for_refusals, name):
    status, text = MALFORMED[name]
    there = origin_for_refusals
    before = len(there.requests)
    with shared_gateway.wire() as wire:
        wire.send(text.replace("{at}", there.authority))
        response = wire.read_final()
        assert response.status == status, response
        assert response.get("connection").lower() == "close"
        assert response.body, "every refusal says why"
        assert response.proxy_status
        assert wire.ended()
    assert len(there.requests) == before, "nothing of it reaches the origin"


@pytest.mark.parametrize("name", [name for name in MALFORMED if name not in (
    "a TLS handshake", "bare LF at the end of the head", "a head beyond its limit",
    "the preface of HTTP/2")])
def test_a_refusal_is_the_same_byte_by_byte(shared_gateway, origin_for_refusals, name):
    """However the bytes are cut, the answer is the same."""
    status, text = MALFORMED[name]
    data = text.replace("{at}", origin_for_refusals.authority).encode("latin-1")
    step = 1 if len(data) < 3000 else 1000  # long ones are cut in larger pieces
    with shared_gateway.wire() as wire:
        try:
            for index in range(0, len(data), step):
                wire.send(data[index : index + step])
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before the end; the answer may still be read
        assert wire.read_final().status == status


@pytest.mark.parametrize("name", MALFORMED_BODIES)
def test_a_malformed_chunked_body_is_refused(shared_gateway, scripted_origin, name):
    status, body = MALFORMED_BODIES[name]
    there = scripted_origin(lambda connection: (
        connection.read_request(), connection.send(reply(b"whole", "200 OK", "X: whole"))))
    with shared_gateway.wire() as wire:
        wire.send(request(there.url("/"), method="POST", Transfer_Encoding="chunked"))
        wire.send(body)
        response = wire.read_final()
        assert response.status == status, response
        assert response.get("connection").lower() == "close"
        assert wire.ended()
    if there.accepted:
        there.wait_finished()
        assert "X: whole" not in str(there.connections[0].buffer)
        # The origin never saw the end of a body that had none.
        assert not there.connections[0].received.endswith(b"0\r\n\r\n")


def test_a_refused_request_is_not_followed_by_another(shared_gateway, origin_for_refusals):
    """What follows an ambiguous request on its connection is never looked at."""
    there = origin_for_refusals
    before = len(there.requests)
    bad = MALFORMED["content-length with transfer-encoding"][1].replace("{at}", there.authority)
    with shared_gateway.wire() as wire:
        wire.send(bad.encode() + request(there.url("/smuggled")))
        assert wire.read_final().status == 400
        assert wire.ended()
    assert len(there.requests) == before


# At the limit and one past it


@pytest.mark.parametrize(("over", "status"), [(0, 200), (1, 431)])
def test_a_head_has_no_more_fields_than_the_limit(gateway, origin, over, status):
    there = origin(lambda _: reply())
    running = gateway({"limits": {"fields": 20}})
    lines = ["GET " + there.url("/") + " HTTP/1.1", f"Host: {there.authority}"]
    lines += [f"X-{number}: a" for number in range(19 + over)]
    assert running.ask(CRLF.join(lines) + CRLF * 2).status == status


@pytest.mark.parametrize(("over", "status"), [(0, 200), (1, 431)])
def test_a_head_has_no_more_bytes_than_the_limit(gateway, origin, over, status):
    there = origin(lambda _: reply())
    limit = 4096
    running = gateway({"limits": {"headBytes": "4KiB"}})
    start = f"GET {there.url('/')} HTTP/1.1{CRLF}Host: {there.authority}{CRLF}X: "
    data = start + "a" * (limit + over - len(start) - 4) + CRLF * 2
    assert len(data) == limit + over
    assert running.ask(data).status == status


# What a refusal looks like


def test_a_refusal_names_its_reason_and_an_id_as_json(shared_gateway, origin_for_refusals):
    at = origin_for_refusals.authority
    with shared_gateway.wire() as wire:
        wire.send(f"GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\nAccept: application/json\r\n"
                  "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n")
        check_error(wire.read_final(), 400, wire)


def test_a_refusal_is_plain_text_otherwise(shared_gateway, origin_for_refusals):
    at = origin_for_refusals.authority
    response = shared_gateway.ask(
        f"GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\nHost: {at}\r\nAccept: text/html\r\n\r\n")
    assert response.get("content-type").split(";")[0] == "text/plain"
    assert "host" in response.body.decode().lower()
    assert response.get("cache-control") == "no-store"


# Accept fields → whether JSON is what they like best.
ACCEPTED = {
    ("application/json",): True,
    ("Application/JSON",): True,
    ("application/*",): True,
    ("text/plain;q=0.5", "application/json"): True,
    ("application/json;q=0",): False,
    ("text/plain, application/json;q=0.2",): False,
    ("application/json, text/plain",): False,
    ("application/jsonlines",): False,
    ("*/*",): False,
    (): False,
}


@pytest.mark.parametrize("broken", [False, True], ids=["read", "unread"])
@pytest.mark.parametrize("accept", ACCEPTED, ids=lambda values: " + ".join(values) or "none")
def test_a_refusal_is_in_the_form_that_is_liked_more(shared_gateway, accept, broken):
    """Also when the head, Accept included, could not be parsed."""
    lines = ["GET /not-absolute HTTP/1.1", "Host: a"]
    lines += [f"Accept: {value}" for value in accept]
    lines += ["Host: b"] if broken else []
    response = shared_gateway.ask(CRLF.join(lines) + CRLF * 2)
    assert response.status == 400
    expected = "application/json" if ACCEPTED[accept] else "text/plain"
    assert response.get("content-type").split(";")[0] == expected


def test_the_id_of_a_refusal_is_in_the_access_log(gateway, origin):
    there = origin(lambda _: reply())
    running = gateway()
    response = running.ask(
        f"GET {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\nHost: x\r\n"
        "Accept: application/json\r\n\r\n")
    identifier = response.json()["id"]
    (line,) = running.wait_access(1)
    assert identifier in line.values()
    assert line["status"] == 400


def test_the_body_of_a_refused_head_request_is_empty(shared_gateway, origin_for_refusals):
    at = origin_for_refusals.authority
    with shared_gateway.wire() as wire:
        wire.send(f"HEAD http://{at}/ HTTP/1.1\r\nHost: {at}\r\nHost: {at}\r\n\r\n")
        response = wire.read("HEAD")
        assert response.status == 400
        assert wire.ended()


def test_refusals_are_counted(gateway):
    running = gateway()
    for _ in range(3):
        assert running.ask("GET nonsense HTTP/1.1\r\nHost: a\r\n\r\n").status == 400
    until(lambda: running.metric("pinfold_http_request_failures_total") == 3, "three failures")
    until(lambda: running.metric("pinfold_http_requests_total", code_class="4xx") == 3,
          "three exchanges")


def test_reverse_listeners_refuse_ambiguity_too(gateway, origin):
    there = origin(lambda _: reply())
    running = gateway({"listeners": [
        {"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
         "upstream": f"http://{there.authority}"}]})
    for text in ("POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 3\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                 "GET / HTTP/1.1\r\nHost: a.test\r\nHost: b.test\r\n\r\n",
                 "GET / HTTP/1.1\r\n\r\n",
                 "GET / HTTP/1.1\r\nHost: a.test\r\nX : y\r\n\r\n"):
        assert running.ask(text, "back").status == 400
    assert there.requests == []
