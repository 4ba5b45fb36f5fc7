"""What is refused of responses over HTTP/2, and what their clients see: http2_bad_responses.txt."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass
from pathlib import Path

import h2.errors
import pytest
from support.http2 import Answer, HTTP2Client
from support.http2lies import frames_of
from support.http2origin import HTTP2Origin
from support.interception import HOST
from support.wait import until
from support.wire import Closed, Response, request

TABLE = Path(__file__).with_name("http2_bad_responses.txt")
REQUIRED = "required.test"


@dataclass
class Case:
    name: str
    frames: str
    outcome: str
    reason: str
    explanation: str
    connection: str


def cases() -> list[Case]:
    lines = [line for line in TABLE.read_text().splitlines() if line and not line.startswith("#")]
    return [Case(*(part.strip() for part in line.split(" | "))) for line in lines]


CASES = cases()
NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def running(module_gateways, pki):
    return module_gateways({
        "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
        "hosts": [{"match": [f"*.{REQUIRED}"], "http2": "require"}]})


@pytest.fixture(scope="module")
def context(pki):
    return lambda: pki.intermediate.issue(f"*.{HOST}").server_context(alpn=("h2", "http/1.1"))


class Ways:
    """How it is asked for: with which version by the client, and by which to the server."""

    def __init__(self, running, there: HTTP2Origin, client: str):
        self.running, self.client = running, client
        self.scheme = "https" if there.tls else "http"
        # Another server may have been at the same port before.
        name = f"case-{next(NUMBERS)}.{HOST if there.tls else REQUIRED}"
        self.authority = f"{name}:{there.port}"

    def ask(self, method: str, path: str) -> Response | Answer | None:
        """The answer, or None if it was cut off."""
        if self.client == "HTTP/2":
            with contextlib.closing(HTTP2Client(self.running.proxy)) as client:
                answer = client.answer(client.begin(path, method, self.authority, self.scheme))
                return answer if answer.complete else None
        try:
            return self.running.ask(
                request(f"{self.scheme}://{self.authority}{path}", method=method))
        except Closed:
            return None


@pytest.mark.parametrize("client", ["HTTP/1.1", "HTTP/2"])
@pytest.mark.parametrize("server", ["tls", "clear"])
@pytest.mark.parametrize("case", CASES, ids=[case.name.replace(" ", "-") for case in CASES])
def test_a_response_is_refused(running, http2_origin, context, case, server, client):
    first = True
    def lies_once(stream) -> None:
        nonlocal first
        if stream.target == "/refused" and first:
            first = False
            stream.raw(frames_of(stream.number, case.frames))
        else:
            stream.respond(body=b"served")

    there = http2_origin(lies_once, tls=context() if server == "tls" else None)
    way = Ways(running, there, client)
    # A connection that is settled.
    assert way.ask("GET", "/before").body == b"served"
    # What is idempotent is sent again when a connection ends in an error.
    answer = way.ask("GET" if case.connection == "kept" else "POST", "/refused")
    if case.outcome == "502" or answer is not None:
        assert answer is not None and answer.status == 502, answer
        assert case.reason in answer.body.decode()
        assert case.explanation == "-" or case.explanation in answer.body.decode(), answer.body
    refused = f"{way.authority}/refused"
    [line] = until(lambda: [one for one in running.access_lines() if refused in one["target"]],
                   "its line in the access log")
    assert line["reason"] == case.reason
    # Nothing of it is stored, and the host is still spoken with.
    assert way.ask("GET", "/refused").body == b"served"
    assert [seen.target for seen in there.requests] == ["/before", "/refused", "/refused"]
    lied, after = there.requests[1], there.requests[2]
    if case.connection == "kept":
        assert len(there.served) == 1 and lied.connection.goaways == []
        assert after.version == "HTTP/2"
    else:
        until(lambda: lied.connection.goaways, "the gateway says why it closes")
        assert lied.connection.goaways[0][1] == h2.errors.ErrorCodes[case.connection]
        assert after.version == ("HTTP/1.1" if server == "tls" else "HTTP/2")
