"""Those who wait for one response read it while it arrives (RFC 9111 §4): at their own speed, from
memory and from where it is stored, whatever becomes of the client for which it was requested."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from support.crowd import crowd
from support.gateway import Gateway
from support.origin import OriginConnection, Request
from support.wait import until
from support.wire import Closed, Response, Wire, request

FRESH = "Cache-Control: max-age=600"
STORES = "pinfold_cache_stores_total"
CROWD = 8

# Before servers of both versions.
pytestmark = pytest.mark.ways("forward", "http2-server")


@pytest.fixture
def start(through) -> Callable[..., Gateway]:
    """start(config): a gateway of the test's own."""
    return lambda config={}: through.gateway({"workers": 2} | config).gateway



def content(size: int) -> bytes:
    return b"".join(b"%07d\n" % number for number in range(size // 8 + 1))[:size]


class Halting:
    """Sends a part of its content, and the rest when released; knows ranges."""

    def __init__(self, size: int, *fields: str, part: float = 0.5, chunked: bool = False):
        self.body = content(size)
        self.fields = (FRESH, *fields)
        self.part = int(size * part)
        self.chunked = chunked
        self.breaks_off = False
        self.asked: list[Request] = []
        self.release = threading.Event()

    def __call__(self, connection: OriginConnection) -> None:
        while (seen := connection.read_request()) is not None:
            self.asked.append(seen)
            if len(self.asked) == 1:
                if not self.first(connection):
                    return
            else:
                self.again(connection, seen)

    def head(self, status: str, *fields: str) -> bytes:
        lines = [f"HTTP/1.1 {status}", *self.fields, *fields]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def pack(self, data: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(data), data) if self.chunked and data else data

    def first(self, connection: OriginConnection) -> bool:
        framing = ("Transfer-Encoding: chunked" if self.chunked
                   else f"Content-Length: {len(self.body)}")
        connection.send(self.head("200 OK", framing) + self.pack(self.body[:self.part]))
        self.release.wait(30)
        if self.breaks_off:
            return False
        connection.send(self.pack(self.body[self.part:]) + (b"0\r\n\r\n" if self.chunked else b""))
        return True

    def again(self, connection: OriginConnection, seen: Request) -> None:
        wanted = seen.get("range")
        if not wanted:
            connection.send(self.head("200 OK", f"Content-Length: {len(self.body)}") + self.body)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-"))
        connection.send(self.head(
            "206 Partial Content", f"Content-Length: {len(self.body) - start}",
            f"Content-Range: bytes {start}-{len(self.body) - 1}/{len(self.body)}")
            + self.body[start:])


def read_part(wire: Wire, size: int, chunked: bool = False) -> Response:
    """The head, and so many bytes of the content."""
    response = wire.read_head()
    while len(response.body) < size:
        if chunked:
            count = int(wire.read_until(b"\r\n")[:-2], 16)
            response.body += wire.read_exactly(count)
            assert wire.read_exactly(2) == b"\r\n"
        else:
            response.body += wire.read_exactly(size - len(response.body))
    return response


def read_rest(wire: Wire, response: Response, size: int, chunked: bool = False) -> bytes:
    if not chunked:
        return response.body + wire.read_exactly(size - len(response.body))
    while (count := int(wire.read_until(b"\r\n")[:-2], 16)) > 0:
        response.body += wire.read_exactly(count)
        assert wire.read_exactly(2) == b"\r\n"
    assert wire.read_until(b"\r\n") == b"\r\n"
    return response.body


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("size", [2_000, 200_000, 6_000_000])
def test_a_crowd_reads_what_has_arrived_before_the_rest_is_there(
        start, through, size, chunked, workers):
    server = Halting(size, chunked=chunked)
    url = through.scripted_origin(server).url("/")
    running = start({"workers": workers})
    running.wait_for_disk()
    with crowd(running, url, CROWD) as wires:
        parts = [read_part(wire, server.part, chunked) for wire in wires]
        assert len(server.asked) == 1
        server.release.set()
        for wire, part in zip(wires, parts):
            assert part.body == server.body[:server.part]
            assert read_rest(wire, part, size, chunked) == server.body
    assert sum("collapsed" in part.cache_status for part in parts) == CROWD - 1
    assert len(server.asked) == 1
    until(lambda: running.metric(STORES) == 1, "it is stored")
    response = running.get(url)
    assert "hit" in response.cache_status and response.body == server.body


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("begun", [False, True])
def test_the_response_goes_on_if_the_first_client_leaves(
        start, through, begun, workers):
    server = Halting(500_000, part=0.5 if begun else 0)
    url = through.scripted_origin(server).url("/")
    running = start({"workers": workers})
    with crowd(running, url, CROWD) as wires:
        waits = "pinfold_cache_collapse_waits_total"
        until(lambda: running.metric(waits) == CROWD - 1, "the others wait")
        if begun:
            for wire in wires:
                wire.first = read_part(wire, server.part)
        wires[0].reset()
        until(lambda: running.metric("pinfold_client_connections_open") <= CROWD, "it has left")
        server.release.set()
        for wire in wires[1:]:
            part = wire.first if begun else wire.read_head()
            assert read_rest(wire, part, len(server.body)) == server.body
    assert len(server.asked) == 1
    until(lambda: running.metric(STORES) == 1, "it is stored")


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("size", [100_000, 6_000_000])
def test_a_response_that_breaks_off_is_completed_for_all(
        start, through, size, workers):
    server = Halting(size, 'ETag: "one"')
    server.breaks_off = True
    url = through.scripted_origin(server).url("/")
    running = start({"workers": workers})
    running.wait_for_disk()
    with crowd(running, url, CROWD) as wires:
        parts = [read_part(wire, server.part) for wire in wires]
        server.release.set()
        for wire, part in zip(wires, parts):
            assert read_rest(wire, part, size) == server.body
    first, second = server.asked
    assert second.get("range") == f"bytes={server.part}-"
    assert second.get("if-range") == '"one"'
    until(lambda: running.metric(STORES) == 1, "it is stored")
    response = running.get(url)
    assert "hit" in response.cache_status and response.body == server.body


@pytest.mark.parametrize("stays", [True, False])
@pytest.mark.parametrize("size", [100_000, 6_000_000])
def test_a_response_that_breaks_off_is_completed_for_its_client_and_the_cache(
        start, through, size, stays):
    server = Halting(size, 'ETag: "one"')
    server.breaks_off = True
    url = through.scripted_origin(server).url("/")
    running = start()
    running.wait_for_disk()
    with running.wire() as wire:
        wire.send(request(url))
        part = read_part(wire, server.part)
        if stays:
            server.release.set()
            assert read_rest(wire, part, size) == server.body
        else:
            wire.reset()
    if not stays:
        until(lambda: running.metric("pinfold_cache_fills") == 1, "it goes on for the cache")
        server.release.set()
    until(lambda: running.metric(STORES) == 1, "it is stored")
    assert [one.get("range") for one in server.asked] == ["", f"bytes={server.part}-"]
    response = running.get(url)
    assert "hit" in response.cache_status and response.body == server.body
    assert running.metric("pinfold_cache_fills") == 0


@pytest.mark.parametrize("tag", ["", 'W/"one"', "other"])
def test_what_cannot_be_completed_is_cut_off_for_all(start, through, tag):
    server = Halting(100_000, *([f"ETag: {tag}"] if tag.startswith("W") else ['ETag: "one"']
                                if tag else []))
    server.breaks_off = True
    url = through.scripted_origin(server).url("/")
    running = start()
    with crowd(running, url, CROWD) as wires:
        parts = [read_part(wire, server.part) for wire in wires]
        if tag == "other":
            server.fields = (FRESH, 'ETag: "two"')
        server.release.set()
        for wire, part in zip(wires, parts):
            with pytest.raises(Closed):
                read_rest(wire, part, len(server.body))
    assert len(server.asked) == (2 if tag == "other" else 1)
    assert running.metric(STORES) == 0


def test_a_first_client_that_reads_nothing_holds_nobody_up(start, through):
    server = Halting(24 << 20)
    url = through.scripted_origin(server).url("/")
    running = start({"cache": {"disk": "1GiB", "maximumObject": "64MiB"}})
    running.wait_for_disk()
    with running.wire() as slow:
        slow.send(request(url))
        slow.read_head()
        with crowd(running, url, 3) as wires:
            server.release.set()
            for wire in wires:
                response = wire.read()
                assert response.body == server.body
        assert len(server.asked) == 1
        assert slow.read_exactly(len(server.body)) == server.body


def test_those_who_must_ask_themselves_do(start, through):
    """What arrives is of another variant, or stale at once."""
    server = Halting(50_000, "Vary: Accept-Language")
    url = through.scripted_origin(server).url("/")
    running = start({"workers": 1})
    with running.wire() as first, running.wire() as other, running.wire() as same:
        first.send(request(url, Accept_Language="en"))
        until(lambda: server.asked, "the first one is under way")
        other.send(request(url, Accept_Language="de"))
        assert other.read().body == server.body
        assert len(server.asked) == 2
        same.send(request(url, Accept_Language="en"))
        part = read_part(same, server.part)
        assert "collapsed" in part.cache_status
        server.release.set()
        assert read_rest(same, part, 50_000) == server.body
        assert first.read().body == server.body
    assert len(server.asked) == 2
