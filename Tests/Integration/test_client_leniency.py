"""Responses that a user agent reads, and a gateway refuses to pass on."""

from __future__ import annotations

import subprocess

import pytest
from support.gateway import BINARY
from support.origin import OriginConnection
from support.wait import SLOWDOWN

FOLDED = b"HTTP/1.1 200 OK\r\nX-Long: one,\r\n two,\r\n\t three\r\nContent-Length: 2\r\n\r\nok"
EMPTY = b"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\n"
PATIENT = b"HTTP/1.1 102 Processing\r\n\r\n" * 50 + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PADDED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2  \r\nok\r\n0 \r\n\r\n"
BOTH = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n2\r\nok\r\n0\r\n\r\n"
IDENTITY = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok"
# Of the fields that say where a message ends only a user agent reads folded lines.
FOLDED_LENGTH = FOLDED.replace(b"Content-Length: ", b"Content-Length:\r\n\t")
RESPONSES = [
    (FOLDED, b"ok"), (EMPTY, b""), (PATIENT, b"ok"), (PADDED, b"ok"), (BOTH, b"ok"), (IDENTITY, b"ok"),
    (FOLDED_LENGTH, b"ok"),
]
NAMES = [
    "folded lines", "a 204 with a length", "fifty interim responses", "spaces behind chunk sizes",
    "a coding and a length", "the coding identity", "a folded length",
]


def script(data: bytes, size: int):
    def run(connection: OriginConnection) -> None:
        while connection.read_request():
            for start in range(0, len(data), size):
                connection.send(data[start:start + size])

    return run


@pytest.mark.parametrize("size", [1, 1 << 16], ids=["byte by byte", "at once"])
@pytest.mark.parametrize(("data", "content"), RESPONSES, ids=NAMES)
def test_the_client_reads_it(scripted_origin, data, content, size):
    there = scripted_origin(script(data, size))
    done = subprocess.run(
        [BINARY, "get", "-i", "--silent", there.url("/1"), there.url("/2"), "--parallel", "1"],
        capture_output=True, timeout=60 * SLOWDOWN)
    assert done.returncode == 0, done.stderr
    if data is FOLDED:
        (line, *_) = [one for one in done.stdout.splitlines() if one.startswith(b"X-Long")]
        assert line.split() == [b"X-Long:", b"one,", b"two,", b"three"]
    assert done.stdout.count(content or b"HTTP/1.1 204 No Content") == 2
    # What could have been read otherwise ends its connection.
    assert there.accepted == (2 if data in (EMPTY, BOTH, IDENTITY) else 1)


@pytest.mark.parametrize("data", [data for data, _ in RESPONSES[1:]], ids=NAMES[1:])
def test_the_gateway_refuses_it(gateway, scripted_origin, data):
    there = scripted_origin(script(data, 1 << 16))
    assert gateway().get(there.url()).status == 502
