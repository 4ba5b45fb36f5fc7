"""Requests that no recipient reads alike, by name, each with the status that refuses it."""

from __future__ import annotations

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
    "a wrong preface of HTTP/2": (505, "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"),
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
