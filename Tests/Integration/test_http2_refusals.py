"""What is refused of requests over HTTP/2, and what the server saw of it: http2_refusals.txt."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import h2.errors
import pytest
from support.http2 import Fields, HTTP2Client
from support.origin import HTTPOrigin, reply, serving
from support.secure import NAME, client_context, reverse, tls_of

TABLE = Path(__file__).with_name("http2_refusals.txt")


@dataclass
class Case:
    name: str
    changes: list[str]
    content: str
    status: int
    end: str
    reason: str


def unescaped(text: str) -> str:
    for mark, meant in {r"\r": "\r", r"\n": "\n", r"\0": "\0", r"\t": "\t", r"\x80": "\x80",
                        r"\s": " "}.items():
        text = text.replace(mark, meant)
    return text


def cases() -> list[Case]:
    found = []
    for line in TABLE.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, changes, content, status, end, reason = (part.strip() for part in line.split("|"))
        found.append(Case(name, changes.split(" ;; "), content, int(status), end, reason))
    return found


CASES = cases()


def field(text: str) -> tuple[str, str]:
    """`name: value`; the name may begin with a colon."""
    if text.startswith(": "):
        return "", text[2:]
    colon = text.find(": ", 1)
    name, value = (text[:colon], text[colon + 2:]) if colon > 0 else (text[:-1], "")
    return unescaped(name), unescaped(value)


def request(case: Case, scheme: str) -> Fields:
    fields: Fields = [(":method", "GET"), (":scheme", scheme), (":authority", "origin.test"),
                      (":path", "/refused")]
    for change in case.changes:
        name, value = field(change[1:])
        match change[0]:
            case "+":
                fields.append((name, value))
            case "^":
                fields.insert(0, (name, value))
            case "=":
                fields = [(name, value) if key == name else (key, old) for key, old in fields]
            case "-":
                fields = [(key, old) for key, old in fields if key != change[1:]]
    return fields


@pytest.fixture(scope="module")
def there():
    with serving(HTTPOrigin(lambda seen: reply(
            b"served " + seen.target.encode(), "200 OK", "Cache-Control: no-store"))) as made:
        yield made


@pytest.fixture(scope="module")
def running(module_gateways, there, pki):
    leaf = pki.intermediate.issue(NAME, "127.0.0.1")
    upstream = there.url().rstrip("/")
    return module_gateways({"listeners": [
        {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
        {"name": "clear", "address": "127.0.0.1:0", "kind": "reverse", "upstream": upstream},
        reverse(tls_of(leaf), upstream, "secure")]})


@pytest.mark.parametrize("case", CASES, ids=[case.name.replace(" ", "-") for case in CASES])
@pytest.mark.parametrize("carrier", ["clear", "secure"])
def test_a_request_is_refused(running, there, pki, carrier, case):
    tls = client_context(pki.root) if carrier == "secure" else None
    before = len(there.requests)
    client = HTTP2Client(running.listeners[carrier], tls, NAME)
    try:
        answer = run(client, case)
        assert answer.status == case.status, answer
        if case.end == "END_STREAM":
            assert answer.complete and answer.reset is None
        else:
            assert not answer.complete
            assert answer.reset == h2.errors.ErrorCodes[case.end]
        assert case.reason.encode() in answer.body
        # No other stream notices, nor does the connection.
        assert client.get("/after", authority="origin.test").body == b"served /after"
        assert client.goaway is None
    finally:
        client.close()
    assert [seen.target for seen in there.requests[before:]] == ["/after"]


def run(client: HTTP2Client, case: Case):
    fields = request(case, "https" if client.secure else "http")
    if case.content == "-":
        return client.ask(fields)
    content, _, trailers = case.content.partition(">")
    stream = client.head(fields, end=False)
    data = b"" if content == "~" else content.encode()
    # One write, so that an answer cannot come between.
    client.connection.send_data(stream, data, end_stream=not trailers)
    if trailers:
        client.connection.send_headers(
            stream, [tuple(part.encode("latin-1") for part in field(trailers))], end_stream=True)
    client.flush()
    return client.answer(stream)
