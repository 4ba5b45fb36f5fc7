"""HTTP/2 towards servers: what the cache asks for by itself, in the background and in parts, when
streams and connections end as only those of HTTP/2 do."""

from __future__ import annotations

import threading

import pytest
from support.http2fixtures import context
from support.http2lies import LIES
from support.http2origin import content
from support.http2upstream import Code, configuration, get, goaway, refused
from support.interception import HOST
from support.wait import until
from support.wire import request

WINDOW = ("cache-control", "max-age=0, stale-while-revalidate=600")
FRESH = ("cache-control", "max-age=600")


@pytest.fixture
def start(gateway, pki):
    """start(host, config): a gateway with a cache and an entry for the host."""
    return lambda host=None, **config: gateway(
        configuration(pki, host, **{"cache": {"enabled": True}} | config))


# In the background


class Versions:
    """Answers with a stale response at first, then does `how` to so many requests, then has a new
    version. Nothing is done before `release`."""

    def __init__(self, how=None, times: int = 0):
        self.how, self.left = how, times
        self.count = 0
        self.release = threading.Event()

    def __call__(self, stream) -> None:
        self.count += 1
        if self.count == 1:
            return stream.respond(200, WINDOW, ("etag", '"1"'), body=b"old")
        assert self.release.wait(30)
        if self.left:
            self.left -= 1
            return self.how(stream)
        stream.respond(200, FRESH, ("etag", '"2"'), body=b"new")


@pytest.mark.parametrize("how", [refused, goaway], ids=["refused", "goaway"])
def test_a_validation_that_was_not_processed_is_sent_again(start, http2_origin, context, how):
    versions = Versions(how, 2)
    there = http2_origin(versions, tls=context())
    running = start()
    assert get(running, there).body == b"old"
    assert get(running, there).body == b"old"
    versions.release.set()
    until(lambda: get(running, there).body == b"new", "the new version is stored")
    assert [seen.get("if-none-match") for seen in there.requests] == ["", '"1"', '"1"', '"1"']
    assert running.metric("pinfold_upstream_retries_total", reason="not_processed") == 2
    assert running.metric("pinfold_cache_background_revalidations_total") == 1


@pytest.mark.parametrize("how", [
    lambda stream: stream.reset_with(Code.INTERNAL_ERROR),
    lambda stream: stream.raw(LIES["data-on-0"](0)),
    lambda stream: stream.connection.close(),
], ids=["reset", "breaks the rules", "closed"])
def test_a_validation_that_fails_leaves_what_is_stored(start, http2_origin, context, how):
    versions = Versions(how, 1000)
    there = http2_origin(versions, tls=context())
    running = start({"http2": "require"})
    versions.release.set()
    for _ in range(5):
        assert get(running, there).body == b"old"
    there.wait_request(2)
    assert all(line["status"] == 200 for line in running.wait_access(5))


def test_a_client_that_leaves_does_not_reset_the_validation(start, http2_origin, context):
    versions = Versions()
    there = http2_origin(versions, tls=context())
    running = start()
    get(running, there)
    with running.wire() as wire:
        wire.send(request(there.url("/after", HOST)))
        assert wire.read().body == b"old"
        seen = there.wait_request(2)
        wire.reset()
    versions.release.set()
    until(lambda: get(running, there).body == b"new", "the new version is stored")
    assert seen.reset is None and len(there.served) == 1


# In parts


BODY = content(4 << 20)


def ranged(stream) -> None:
    """Knows ranges."""
    first, _, last = stream.get("range").removeprefix("bytes=").partition("-")
    if not first:
        return stream.respond(200, FRESH, ("etag", '"1"'), body=BODY)
    start, end = int(first), min(int(last or len(BODY)) + 1, len(BODY))
    stream.respond(206, FRESH, ("etag", '"1"'),
                   ("content-range", f"bytes {start}-{end - 1}/{len(BODY)}"), body=BODY[start:end])


def test_slices_are_streams_of_one_connection(start, http2_origin, context):
    there = http2_origin(ranged, tls=context())
    running = start({"cache": {"slice": "1MiB"}})
    assert get(running, there).body == BODY
    assert sorted(seen.get("range") for seen in there.requests) == [
        "bytes=0-1048575", "bytes=1048576-2097151", "bytes=2097152-3145727", "bytes=3145728-"]
    assert len(there.served) == 1
    assert get(running, there).body == BODY
    assert len(there.requests) == 4


@pytest.mark.parametrize("end", ["reset", "closed"])
def test_a_response_that_breaks_off_is_completed_in_another_stream(
        start, http2_origin, context, end):
    def breaks_off(stream) -> None:
        if stream.get("range"):
            return ranged(stream)
        stream.head(200, [FRESH, ("etag", '"1"'), ("content-length", str(len(BODY)))])
        stream.data(BODY[:1_000_000])
        if end == "reset":
            # What was sent is not taken back.
            stream.reset_with(Code.INTERNAL_ERROR)
        else:
            stream.connection.close()

    there = http2_origin(breaks_off, tls=context())
    running = start()
    assert get(running, there).body == BODY
    first, second = there.requests
    assert 0 < int(second.get("range").removeprefix("bytes=").removesuffix("-")) <= 1_000_000
    assert second.get("if-range") == '"1"'
    assert len(there.served) == (1 if end == "reset" else 2)
    until(lambda: running.metric("pinfold_cache_stores_total") == 1, "it is stored")
    assert get(running, there).body == BODY and len(there.requests) == 2
