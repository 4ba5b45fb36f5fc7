"""HTTP/2 towards servers: what passes at once, what a reload and the end of the gateway change,
what is counted, and how much a server can make it keep."""

from __future__ import annotations

import signal
import threading

import pytest
from support.frames import (
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, bytes_of, frame)
from support.http2 import http2
from support.http2fixtures import context, running, start
from support.http2lies import FRESH, GOOD, LIES, block, head
from support.http2origin import content
from support.http2upstream import (
    Code, asked, get, refused, refusing, send)
from support.interception import HOST
from support.secure import reload
from support.wait import SLOWDOWN, until
from support.wire import request


# What passes at once


def test_events_pass_one_by_one(running, http2_origin, context):
    arrived = threading.Semaphore(0)

    def events(stream) -> None:
        stream.head(200, [("content-type", "text/event-stream")])
        for number in range(20):
            stream.data(b"data: %d\n\n" % number)
            assert arrived.acquire(timeout=20)
        stream.end()

    there = http2_origin(events, tls=context())
    with running.wire() as wire:
        wire.send(request(there.url("/", HOST)))
        assert wire.read_head().status == 200
        for number in range(20):
            wire.read_until(b"data: %d\n\n" % number)
            arrived.release()


def test_content_of_a_request_passes_part_by_part(running, http2_origin, context):
    there = http2_origin(lambda stream: stream.respond(body=stream.read_all()), tls=context())
    with http2(running.proxy) as client:
        stream = client.begin("/", "POST", f"{HOST}:{there.port}", "https", end=False)
        for number in range(20):
            client.send(stream, b"%02d" % number)
            seen = there.wait_request(1)
            until(lambda: seen.body.endswith(b"%02d" % number), "the part is there")
            assert not seen.complete
        client.send(stream, b"", end=True)
        assert len(client.answer(stream).body) == 40


def test_an_answer_may_begin_before_the_request_has_ended(running, http2_origin, context):
    def early(stream) -> None:
        stream.head(200)
        stream.data(b"early,")
        stream.data(stream.read_all(), end=True)

    there = http2_origin(early, tls=context())
    with http2(running.proxy) as client:
        stream = client.begin("/", "POST", f"{HOST}:{there.port}", "https", end=False)
        client.until(lambda: client.answers[stream].body == b"early,")
        client.send(stream, b"late", end=True)
        assert client.answer(stream).body == b"early,late"


# Reload and end


def test_a_reload_that_turns_it_off_holds_for_the_next_request(
        start, http2_origin, context, pki):
    running = start()
    there = http2_origin(tls=context())
    assert get(running, there).status == 200
    reload(running, running.config | {"hosts": [{"match": [HOST], "http2": "off"}]})
    assert get(running, there).status == 200
    assert [seen.version for seen in there.requests] == ["HTTP/2", "HTTP/1.1"]
    until(lambda: there.served[0].is_closed, "the connection is closed")


def test_what_is_in_progress_at_a_reload_is_finished(start, http2_origin, context):
    running = start()
    release = threading.Event()

    def slow(stream) -> None:
        stream.head(200)
        stream.data(b"one,")
        assert release.wait(30)
        stream.data(b"two", end=True)

    there = http2_origin(slow, tls=context())
    with asked(running, there, 1) as (client, [stream]):
        client.until(lambda: client.answers[stream].body == b"one,")
        reload(running, running.config | {"hosts": [{"match": [HOST], "http2": "off"}]})
        release.set()
        assert client.answer(stream).body == b"one,two"


def test_what_is_in_progress_at_the_end_is_finished(running, http2_origin, context):
    release = threading.Event()

    def slow(stream) -> None:
        stream.head(200)
        stream.data(b"one,")
        assert release.wait(30)
        stream.data(b"two", end=True)

    there = http2_origin(slow, tls=context())
    with asked(running, there, 1) as (client, [stream]):
        client.until(lambda: client.answers[stream].body == b"one,")
        running.signal(signal.SIGTERM)
        running.wait_log("(?i)drain|shutting down|stopping")
        release.set()
        assert client.answer(stream).body == b"one,two"
    assert running.wait_exit() == 0
    until(lambda: there.served[0].is_closed, "the server's connection is closed")


# What is counted


def test_protocols_retries_and_fallbacks_are_counted(running, http2_origin, context):
    there = http2_origin(refusing(1, refused), tls=context())
    assert get(running, there, "/before").status == get(running, there).status == 200
    assert running.metric("pinfold_tls_protocols_total", protocol="h2") == 1
    assert running.metric("pinfold_upstream_retries_total", reason="not_processed") == 1
    assert running.metric("pinfold_upstream_protocol_fallbacks_total") == 0
    there.handler = refusing(1, lambda stream: stream.raw(LIES["data-on-0"](0)))
    assert send(running, there, "/breaks", "POST").status == 502
    assert get(running, there).status == 200
    assert running.metric("pinfold_upstream_protocol_fallbacks_total") == 1
    assert running.metric("pinfold_tls_protocols_total", protocol="http/1.1") == 1


# What a server can make the gateway keep


def test_endless_interim_responses_are_bounded(running, http2_origin, context):
    def interim(stream) -> None:
        while stream.reset is None and not stream.connection.is_closed:
            stream.raw(head(stream.number, (":status", "103"), flags=END_HEADERS))

    there = http2_origin(interim, tls=context())
    answer = get(running, there)
    assert answer.status == 502
    assert b"too-many-interim" in answer.body or b"upstream-http2-error" in answer.body
    until(lambda: there.requests[0].finished.is_set(), "the server is told")


def continuations(stream) -> None:
    stream.raw(frame(HEADERS, END_STREAM, stream.number, block(GOOD)))
    while not stream.connection.is_closed:
        stream.raw(frame(CONTINUATION, 0, stream.number, block(("x", "y" * 1000))) * 10)


def empty_continuations(stream) -> None:
    stream.raw(frame(HEADERS, END_STREAM, stream.number, block(GOOD)))
    while not stream.connection.is_closed:
        stream.raw(frame(CONTINUATION, 0, stream.number) * 1000)


def empty_data(stream) -> None:
    stream.head(200)
    while not stream.connection.is_closed and stream.reset is None:
        stream.raw(frame(DATA, 0, stream.number) * 1000)


def compressed(stream) -> None:
    """One field of 4 KB, referred to by one byte each."""
    value = bytes_of(b"x" * 3000)
    stream.raw(frame(HEADERS, END_HEADERS | END_STREAM, stream.number,
                     block(GOOD, FRESH) + b"\x40" + bytes_of(b"x-large") + value
                     + b"\xbe" * 12_000))


def overrun(stream) -> None:
    """Sends on, whatever the windows are."""
    stream.head(200)
    for _ in range(4000):
        if stream.connection.is_closed or stream.reset is not None:
            return
        stream.raw(frame(DATA, 0, stream.number, b"x" * 16_384))


@pytest.mark.parametrize("flood", [continuations, empty_continuations, empty_data, compressed,
                                   overrun], ids=lambda flood: flood.__name__)
def test_a_flood_is_cut_off(running, http2_origin, context, flood):
    there = http2_origin(refusing(1, flood), tls=context())
    get(running, there, "/before")
    before = running.rss_bytes
    # The client reads nothing meanwhile.
    with http2(running.proxy, reads=False) as client:
        stream = client.begin("/flood", "POST", f"{HOST}:{there.port}", "https")
        answer = client.answer(stream)
        assert answer.status in (0, 502) or not answer.complete
    seen = there.wait_request(2)
    until(lambda: seen.finished.is_set(), "the server is told")
    assert (running.peak_rss_bytes - before) / SLOWDOWN < 32 << 20
    assert get(running, there).status == 200


def test_what_a_client_does_not_read_is_not_read_from_the_server(
        running, http2_origin, context):
    there = http2_origin(lambda stream: stream.respond(body=content(64 << 20)), tls=context())
    before = running.rss_bytes
    with http2(running.proxy, reads=False) as client:
        stream = client.begin("/", authority=f"{HOST}:{there.port}", scheme="https")
        client.until(lambda: len(client.answers[stream].body) == 65_535)
        seen = there.wait_request(1)
        # The server's windows are used up.
        until(lambda: seen.connection.h2.local_flow_control_window(1) == 0, "it waits")
        client.reset(stream)
        until(lambda: seen.reset is not None, "the stream is reset")
    assert seen.reset == Code.CANCEL
    assert (running.peak_rss_bytes - before) / SLOWDOWN < 32 << 20


def test_a_head_that_does_not_arrive_in_full_is_a_504(start, http2_origin, context):
    running = start(timeouts={"firstByte": "300ms"})
    there = http2_origin(refusing(1, lambda stream: stream.raw(
        frame(HEADERS, END_STREAM, stream.number, block(GOOD)))), tls=context())
    get(running, there, "/before")
    answer = send(running, there, "/half", "POST")
    assert answer.status == 504, answer
    assert get(running, there).status == 200
