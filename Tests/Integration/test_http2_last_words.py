"""What the other side of a connection with HTTP/2 is told before it is closed: a server that breaks
the rules, and everyone when the time for draining is over."""

from __future__ import annotations

import signal
import struct
import threading

import pytest
from support.frames import GOAWAY, HEADERS, RESET, Attacker, frame
from support.http2 import http2
from support.http2fixtures import context, start
from support.http2lies import LIES
from support.http2upstream import Code, asked, get, refusing, send
from support.interception import HOST
from support.secure import client_context, tls_of
from support.wait import until


# Servers that break the rules


BUSY = frame(0xB0, 0, 0, bytes(16_384)) * 30


def lying(lie: str, after: bytes = BUSY):
    """Lies once, and sends on as if nothing had happened."""
    return refusing(1, lambda stream: stream.raw(LIES[lie](stream.number) + after))


@pytest.mark.parametrize("over", ["tls", "clear"])
@pytest.mark.parametrize("lie, code", [
    ("data-on-0", Code.PROTOCOL_ERROR), ("push-promise", Code.PROTOCOL_ERROR),
    ("garbage", Code.COMPRESSION_ERROR), ("large-frame", Code.FRAME_SIZE_ERROR),
    ("huge-window", Code.FLOW_CONTROL_ERROR), ("odd-ping", Code.FRAME_SIZE_ERROR)])
def test_a_server_that_sends_on_is_told_what_was_wrong(
        start, http2_origin, context, over, lie, code):
    """It would not be if the connection were closed with what it has sent since unread."""
    running = start({"http2": "require"})
    there = http2_origin(lying(lie), tls=context() if over == "tls" else None)
    assert get(running, there, "/before").status == 200
    assert send(running, there, "/breaks", "POST").status == 502
    until(lambda: there.served[0].goaways, "GOAWAY arrives")
    [(last, found, text)] = there.served[0].goaways
    assert (last, found) == (0, code)
    line = running.wait_log(rf"warning.*{HOST}")
    assert text and text.decode() in line, (text, line)


def test_a_server_that_reads_late_is_told_what_was_wrong(start, http2_origin, context):
    """The next connection needs no place meanwhile: there may be one."""
    running = start({"http2": "require"}, limits={"upstreamPerHost": 1})

    def stops_reading(stream) -> None:
        stream.connection.reads = False
        stream.raw(LIES["data-on-0"](0) + BUSY)

    there = http2_origin(refusing(1, stops_reading), tls=context())
    assert get(running, there, "/before").status == 200
    assert send(running, there, "/breaks", "POST").status == 502
    assert get(running, there).status == 200
    assert not there.served[0].goaways and not there.served[0].is_closed
    there.served[0].read_again()
    until(lambda: there.served[0].goaways, "GOAWAY arrives")
    assert there.served[0].goaways[0][1] == Code.PROTOCOL_ERROR


def test_servers_that_never_close_are_not_waited_for(start, http2_origin):
    """Neither for long, nor for many of them."""
    running = start({"http2": "require"})

    def stops_reading(stream) -> None:
        stream.connection.reads = False
        stream.raw(LIES["data-on-0"](0))

    before = running.descriptors
    liars = [http2_origin(stops_reading) for _ in range(40)]
    for there in liars:
        assert send(running, there, "/breaks", "POST").status == 502
        assert running.descriptors <= before + 16 + 8
    until(lambda: running.descriptors <= before + 8, "they are closed")


# The end of the time for draining


GRACE = {"timeouts": {"grace": "300ms"}}


@pytest.fixture
def half(scripted_origin):
    """An origin that sends half of its response, or nothing for /silent."""
    end = threading.Event()

    def script(connection) -> None:
        if connection.read_request().target != "/silent":
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 500)
        end.wait(60)

    yield scripted_origin(script)
    end.set()


@pytest.mark.parametrize("over", ["tls", "clear"])
def test_streams_that_are_cut_off_are_reset(gateway, half, pki, over):
    config = {"workers": 1} | GRACE
    if over == "tls":
        leaf = pki.intermediate.issue("localhost")
        config["listeners"] = [{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward",
                                "tls": tls_of(leaf)}]
    running = gateway(config)
    tls = client_context(pki.root) if over == "tls" else None
    with http2(running.proxy, tls=tls) as client:
        streams = [client.begin(path, authority=half.authority, scheme="http")
                   for path in ("/half", "/silent")]
        client.until(lambda: len(client.answers[streams[0]].body) == 500)
        until(lambda: len(half.connections) == 2, "both are asked")
        running.signal(signal.SIGTERM)
        client.until_closed()
        assert client.goaway == (streams[-1], Code.NO_ERROR, b"")
        for stream in streams:
            answer = client.answers[stream]
            assert answer.reset == Code.CANCEL and not answer.complete
    assert running.wait_exit() == 0


@pytest.mark.parametrize("times", [1, 2])
def test_a_client_that_does_not_answer_is_told_which_stream_was_the_last(gateway, half, times):
    """As long as it may not have seen the first GOAWAY, there is no second one. A second signal ends
    it at once."""
    running = gateway({"workers": 1} | (GRACE if times == 1 else {}))
    client = Attacker(running.proxy, half.authority).reads()
    client.send(client.request(path="/half") + client.request(path="/silent"))
    until(lambda: client.frames(HEADERS), "a response begins")
    running.signal(signal.SIGTERM)
    until(lambda: client.frames(GOAWAY), "it is told")
    if times == 2:
        running.signal(signal.SIGTERM)
    assert client.ended.wait(20)
    last = [struct.unpack(">II", payload[:8]) for *_, payload in client.frames(GOAWAY)]
    assert last == [(2**31 - 1, Code.NO_ERROR), (client.stream, Code.NO_ERROR)]
    assert sorted((stream, payload) for _, _, stream, payload in client.frames(RESET)) == [
        (stream, struct.pack(">I", Code.CANCEL)) for stream in (1, 3)]
    client.close()
    assert running.wait_exit() == 0


def test_a_tunnel_in_a_stream_is_reset(gateway, scripted_origin):
    there = scripted_origin(lambda connection: connection.read_to_end())
    running = gateway({"workers": 1} | GRACE)
    with http2(running.proxy) as client:
        stream = client.head([(":method", "CONNECT"), (":authority", there.authority)], end=False)
        client.until(lambda: client.answers[stream].status == 200)
        running.signal(signal.SIGTERM)
        client.until_closed()
        assert client.goaway == (stream, Code.NO_ERROR, b"")
        assert client.answers[stream].reset == Code.CANCEL
    there.wait_finished()
    assert running.wait_exit() == 0


def test_a_server_is_told_as_well(start, http2_origin, context):
    there = http2_origin(lambda stream: stream.wait_reset(), tls=context())
    running = start(**GRACE)
    with asked(running, there, 2):
        there.wait_request(2)
        running.signal(signal.SIGTERM)
        assert running.wait_exit() == 0
    until(lambda: there.served[0].goaways, "GOAWAY arrives")
    assert [seen.reset for seen in there.requests] == [Code.CANCEL] * 2
    assert there.served[0].goaways == [(0, Code.NO_ERROR, b"")]
