"""HTTP/2 towards servers: how streams and connections end, and what is sent again."""

from __future__ import annotations

import contextlib
import threading

import pytest
from support.frames import DATA, PING, frame
from support.http2 import http2
from support.http2fixtures import context, running, start
from support.http2origin import Setting
from support.http2upstream import (
    Code, Gate, asked, get, get_first, goaway, refused, refusing)
from support.interception import HOST
from support.wait import until
from support.wire import Closed, Wire, request

HOWS = {"refused": refused, "goaway": goaway}


# Requests that the server did not process


@pytest.mark.parametrize("how", sorted(HOWS))
@pytest.mark.parametrize("method, body", [("GET", b""), ("POST", b"content"), ("PUT", b"x" * 1000)])
def test_what_the_server_did_not_process_is_sent_again(
        running, http2_origin, context, how, method, body):
    there = http2_origin(refusing(1, HOWS[how]), tls=context())
    get(running, there, "/before")
    answer = running.ask(request(there.url("/again", HOST), method=method, body=body))
    assert (answer.status, answer.body) == (200, b"served " + body)
    assert [seen.target for seen in there.requests] == ["/before", "/again", "/again"]
    assert len(there.served) == (1 if how == "refused" else 2)


@pytest.mark.parametrize("how", sorted(HOWS))
def test_it_is_sent_again_three_times(running, http2_origin, context, how):
    there = http2_origin(refusing(9, HOWS[how]), tls=context())
    get(running, there, "/before")
    answer = get(running, there)
    assert answer.status == 502 and b"upstream-not-processed" in answer.body
    assert len(there.requests) == 1 + 4


def test_content_that_is_gone_is_not_sent_again(running, http2_origin, context):
    def late(stream) -> None:
        stream.wait(lambda: len(stream.body) > 1 << 20, "much of the content")
        refused(stream)

    there = http2_origin(refusing(1, late), tls=context())
    get(running, there, "/before")
    with running.wire() as wire:
        wire.send(request(there.url("/large", HOST), method="POST", Content_Length=str(8 << 20)))
        with contextlib.suppress(ConnectionError):
            wire.send(b"x" * (8 << 20))
        with contextlib.suppress(Closed):
            answer = wire.read()
            assert answer.status == 502 and b"upstream-not-processed" in answer.body
    assert len(there.requests) == 2
    assert "upstream-not-processed" in [line["reason"] for line in running.wait_access(2)
                                        if "reason" in line]


def test_streams_up_to_the_last_are_finished_after_goaway(running, http2_origin, context):
    gate = Gate()

    def answers_up_to_the_last(stream) -> None:
        if stream.connection.number == 0 and stream.number > 7:
            return stream.finished.set()
        gate(stream)

    there = http2_origin(answers_up_to_the_last, tls=context())
    get_first(running, there, gate)
    with asked(running, there, 5) as (client, streams):
        there.wait_request(6)
        assert sorted(there.served[0].streams) == [1, 3, 5, 7, 9, 11]
        there.served[0].goaway(7)
        # The two beyond it come again, on another connection.
        there.wait_request(8)
        gate.opened.set()
        assert [client.answer(stream).body for stream in streams] == [
            f"/{number}".encode() for number in range(5)]
    assert len(there.served) == 2
    assert len(there.served[1].streams) == 2
    assert get(running, there).status == 200
    assert len(there.served) == 2, "the new one is used again"


def test_a_warning_before_the_end_costs_nothing(running, http2_origin, context):
    """GOAWAY in two steps (RFC 9113 §6.8): 2^31 - 1 first."""
    gate = Gate()
    there = http2_origin(gate, tls=context())
    get_first(running, there, gate)
    with asked(running, there, 3) as (client, streams):
        there.wait_request(4)
        there.served[0].goaway(2**31 - 1)
        there.served[0].goaway(max(there.served[0].streams))
        gate.opened.set()
        assert [client.answer(stream).status for stream in streams] == [200] * 3
    assert get(running, there).status == 200
    assert len(there.served) == 2


def test_a_connection_that_broke_is_sent_again_where_that_is_safe(
        running, http2_origin, context):
    there = http2_origin(refusing(1, lambda stream: stream.connection.close(reset=True)),
                         tls=context())
    get(running, there, "/before")
    assert get(running, there).body == b"served "
    assert len(there.served) == 2


def test_a_post_on_a_connection_that_broke_is_not_sent_again(running, http2_origin, context):
    there = http2_origin(refusing(1, lambda stream: stream.connection.close()), tls=context())
    get(running, there, "/before")
    answer = running.ask(request(there.url("/once", HOST), method="POST", body=b"x"))
    assert answer.status == 502
    assert len(there.requests) == 2


def test_an_idle_connection_that_the_server_closed_costs_no_request(
        running, http2_origin, context):
    there = http2_origin(tls=context())
    get(running, there, "/before")
    there.served[0].close()
    there.wait_finished(1)
    answer = running.ask(request(there.url("/once", HOST), method="POST", body=b"x"))
    assert answer.status == 200
    assert len(there.served) == 2


# Resets

OTHER_CODES = [code for code in Code if code not in (Code.REFUSED_STREAM, Code.HTTP_1_1_REQUIRED)]


@pytest.mark.parametrize("code", OTHER_CODES, ids=[code.name for code in OTHER_CODES])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_reset_without_a_response_is_a_502(running, http2_origin, context, code, method):
    there = http2_origin(refusing(1, lambda stream: stream.reset_with(code)), tls=context())
    get(running, there, "/before")
    answer = running.ask(request(there.url("/reset", HOST), method=method,
                                 body=b"x" if method == "POST" else b""))
    assert answer.status == 502 and b"upstream-stream-reset" in answer.body
    assert code.name.encode() in answer.body, answer.body
    assert get(running, there).status == 200
    assert len(there.served) == 1
    assert [seen.target for seen in there.requests] == ["/before", "/reset", "/after"]


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("code", [Code.NO_ERROR, Code.CANCEL, Code.INTERNAL_ERROR],
                         ids=lambda code: code.name)
def test_a_response_that_is_reset_never_looks_complete(
        running, http2_origin, context, version, known, code):
    arrived = threading.Event()

    def breaks_off(stream) -> None:
        stream.head(200, [("content-length", "1000")] if known else [])
        stream.data(b"x" * 500)
        assert arrived.wait(30)
        stream.reset_with(code)

    there = http2_origin(refusing(1, breaks_off), tls=context())
    if version == "HTTP/2":
        with asked(running, there, 1) as (client, [stream]):
            client.until(lambda: len(client.answers[stream].body) == 500)
            arrived.set()
            answer = client.answer(stream)
            assert not answer.complete and answer.reset is not None
    else:
        with running.wire() as wire:
            wire.send(request(there.url("/0", HOST)))
            head = wire.read_head()
            arrived.set()
            with pytest.raises(Closed):
                wire.read_body(head)
    assert get(running, there).status == 200
    assert len(there.served) == 1
    reasons = [line.get("reason") for line in running.wait_access(2)]
    assert "upstream-stream-reset" in reasons


def test_a_server_may_answer_and_leave_the_rest_of_the_content(running, http2_origin, context):
    """§8.1: a complete response, then RST_STREAM with NO_ERROR."""
    def early(stream) -> None:
        stream.wait(lambda: stream.body, "some content")
        stream.respond(413, body=b"too large")
        stream.reset_with(Code.NO_ERROR)

    there = http2_origin(early, tls=context(), settings={Setting.INITIAL_WINDOW_SIZE: 20_000},
                         credits=False)
    with running.wire() as wire:
        wire.send(request(there.url("/", HOST), method="PUT", Content_Length="1000000"))
        wire.send(b"x" * 10_000)
        answer = wire.read()
        assert (answer.status, answer.body) == (413, b"too large")
    there.handler = lambda stream: stream.respond()
    assert get(running, there).status == 200
    assert len(there.served) == 1


def test_a_client_that_goes_resets_the_stream_and_not_the_connection(
        running, http2_origin, context):
    codes = []
    there = http2_origin(lambda stream: codes.append(stream.wait_reset())
                         if stream.target == "/0" else stream.respond(), tls=context())
    with asked(running, there, 1) as (client, [stream]):
        there.wait_request(1)
        client.reset(stream)
        until(lambda: codes, "the stream is reset")
    assert codes[0] in (Code.CANCEL, Code.NO_ERROR)
    assert get(running, there).status == 200
    assert len(there.served) == 1


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/2"])
def test_an_upload_that_is_aborted_never_looks_complete(
        running, http2_origin, context, version):
    def reads(stream) -> None:
        if stream.target == "/0":
            return stream.wait(lambda: stream.complete, "the end")
        stream.respond()

    there = http2_origin(reads, tls=context())
    if version == "HTTP/2":
        with http2(running.proxy) as client:
            stream = client.begin("/0", "PUT", f"{HOST}:{there.port}", "https", end=False)
            client.send(stream, b"x" * 100_000)
            until(lambda: there.wait_request(1).body, "content arrives")
            client.reset(stream)
            seen = there.requests[0]
            until(lambda: seen.reset is not None, "the stream is reset")
    else:
        with Wire(running.proxy) as wire:
            wire.send(request(there.url("/0", HOST), method="PUT", Content_Length="100000"))
            wire.send(b"x" * 50_000)
            until(lambda: there.wait_request(1).body, "content arrives")
        seen = there.requests[0]
        until(lambda: seen.reset is not None, "the stream is reset")
    assert not seen.complete
    assert get(running, there).status == 200
    assert len(there.served) == 1


def test_a_client_that_leaves_while_a_frame_is_half_there_disturbs_no_other(
        running, http2_origin, context):
    ping = frame(PING, 0, 0, b"12345678")

    def half(stream) -> None:
        if stream.target != "/half":
            return stream.respond(body=b"whole")
        stream.head(200)
        stream.raw(frame(DATA, 0, stream.number, b"x" * 100) + ping[:5])
        stream.wait_reset()
        stream.raw(ping[5:])

    there = http2_origin(half, tls=context())
    with running.wire() as wire:
        wire.send(request(there.url("/half", HOST)))
        wire.read_until(b"x" * 100)
        wire.reset()
    until(lambda: there.requests[0].finished.is_set(), "the rest of the frame is sent")
    assert there.requests[0].reset is not None
    for _ in range(3):
        assert get(running, there).body == b"whole"
    assert len(there.served) == 1 and there.versions == {"HTTP/2"}
