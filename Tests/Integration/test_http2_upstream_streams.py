"""HTTP/2 towards servers: many exchanges on a connection."""

from __future__ import annotations

import hashlib
import os
import threading

import pytest
from support.http2 import http2
from support.http2fixtures import context, running, start
from support.http2origin import Setting, content
from support.http2upstream import (
    Gate, asked, get, get_first, refused, refusing)
from support.interception import HOST
from support.wait import until
from support.wire import request


def test_exchanges_of_one_client_share_a_connection(running, http2_origin, context):
    gate = Gate()
    there = http2_origin(gate, tls=context())
    get_first(running, there, gate)
    with asked(running, there, 50) as (client, streams):
        there.wait_request(51)
        gate.opened.set()
        for number, stream in enumerate(streams):
            assert client.answer(stream).body == f"/{number}".encode()
    assert len(there.served) == 1


def test_exchanges_of_many_clients_share_a_connection(running, http2_origin, context):
    gate = Gate()
    there = http2_origin(gate, tls=context())
    get_first(running, there, gate)
    wires = [running.wire() for _ in range(20)]
    for number, wire in enumerate(wires):
        wire.send(request(there.url(f"/{number}", HOST)))
    there.wait_request(21)
    gate.opened.set()
    assert [wire.read().body for wire in wires] == [f"/{n}".encode() for n in range(20)]
    for wire in wires:
        wire.close()
    assert len(there.served) == 1


def test_no_more_share_a_connection_than_is_configured(start, http2_origin, context):
    running = start(limits={"upstreamStreams": 5})
    gate = Gate()
    there = http2_origin(gate, tls=context())
    get_first(running, there, gate)
    with asked(running, there, 12) as (client, streams):
        there.wait_request(6)
        gate.opened.set()
        assert [client.answer(stream).status for stream in streams] == [200] * 12
    assert max(gate.most.values()) <= 5


@pytest.mark.parametrize("allowed", [1, 3])
def test_a_server_gets_no_more_streams_than_it_allows(running, http2_origin, context, allowed):
    """The library fails the test if there are more."""
    gate = Gate()
    there = http2_origin(gate, tls=context(),
                         settings={Setting.MAX_CONCURRENT_STREAMS: allowed})
    get_first(running, there, gate)
    with asked(running, there, 12) as (client, streams):
        there.wait_request(1 + allowed)
        gate.opened.set()
        assert [client.answer(stream).status for stream in streams] == [200] * 12
    assert max(gate.most.values()) <= allowed


def test_a_server_that_allows_no_more_streams_is_asked_on_another_connection(
        running, http2_origin, context):
    there = http2_origin(tls=context())
    get(running, there)
    there.served[0].settings({Setting.MAX_CONCURRENT_STREAMS: 0})
    until(lambda: there.served[0].acknowledged == 2, "the settings hold")
    assert [get(running, there).status for _ in range(3)] == [200] * 3
    assert [len(one.streams) for one in there.served] == [1, 3]


def test_a_server_that_allows_no_streams_at_all_is_a_502(running, http2_origin, context):
    """One may be on its way before the settings have arrived: it is refused, and sent again."""
    there = http2_origin(refusing(10, refused), tls=context(),
                         settings={Setting.MAX_CONCURRENT_STREAMS: 0})
    answer = get(running, there)
    assert answer.status in (502, 503)
    assert len(there.requests) <= 4


def test_a_connection_has_one_stream_until_the_server_s_settings_have_arrived(
        start, http2_origin, context):
    running = start()
    gate = Gate()
    there = http2_origin(gate, tls=context(), settles=False)
    with asked(running, there, 8) as (client, streams):
        there.wait_request(1)
        until(lambda: there.served and there.served[0].streams, "a request is there")
        assert all(len(one.streams) <= 1 for one in list(there.served))
        for one in list(there.served):
            one.begin()
        there.settles = True
        gate.opened.set()
        assert [client.answer(stream).status for stream in streams] == [200] * 8


def test_a_slow_client_does_not_hold_up_others(running, http2_origin, context):
    there = http2_origin(tls=context())
    with http2(running.proxy, reads=False) as slow:
        stalled = slow.begin("/body/3000000", authority=f"{HOST}:{there.port}", scheme="https")
        slow.until(lambda: len(slow.answers[stalled].body) >= 65_535)
        for size in (10, 1_000_000):
            assert get(running, there, f"/body/{size}").body == content(size)
        assert len(there.served) == 1
        slow.reads = True
        slow.credit(stalled, len(slow.answers[stalled].body))
        slow.flush()
        assert slow.answer(stalled).body == content(3_000_000)


def test_an_upload_that_the_server_does_not_read_does_not_hold_up_others(
        running, http2_origin, context):
    def reads_late(stream) -> None:
        if stream.target == "/stalled":
            stream.wait(lambda: stream.body, "content")
            release.wait(30)
            for one in list(there.served):
                one.credit()
        stream.respond(body=hashlib.sha256(stream.read_all()).hexdigest().encode())

    release = threading.Event()
    there = http2_origin(reads_late, tls=context(), credits=False,
                         settings={Setting.INITIAL_WINDOW_SIZE: 20_000})
    data = os.urandom(100_000)
    # Before the settings have arrived, the window is what it is by default.
    get(running, there)
    with running.wire() as wire:
        wire.send(request(there.url("/stalled", HOST), method="PUT", body=data))
        there.wait_request(2)
        for number in range(3):
            small = os.urandom(1000)
            answer = running.ask(request(there.url(f"/{number}", HOST), method="PUT", body=small))
            assert answer.body == hashlib.sha256(small).hexdigest().encode()
        release.set()
        assert wire.read().body == hashlib.sha256(data).hexdigest().encode()
    assert len(there.served) == 1


@pytest.mark.parametrize("early", [20_000, 30_000, 31_000, 33_000, 60_000])
def test_content_goes_on_after_settings_that_make_its_window_smaller(
        running, http2_origin, context, early):
    """The window may be closed by them, until the server opens it."""
    def handler(stream):
        stream.wait(lambda: len(stream.body) >= early, "the beginning")
        stream.connection.begin()
        stream.respond(body=hashlib.sha256(stream.read_all()).digest())

    there = http2_origin(handler, tls=context(), settles=False,
                         settings={Setting.INITIAL_WINDOW_SIZE: 30_000})
    body = os.urandom(100_000)
    with http2(running.proxy) as client:
        stream = client.begin("/", "PUT", f"{HOST}:{there.port}", "https", end=False)
        client.send(stream, body[:early])
        until(lambda: there.served and there.served[0].acknowledged, "the settings")
        client.send(stream, body[early:], end=True)
        assert client.answer(stream).body == hashlib.sha256(body).digest()
