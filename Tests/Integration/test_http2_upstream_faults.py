"""HTTP/2 towards servers: what is done when a server breaks its rules, is silent, or asks for
HTTP/1.1; and what the cache makes of it."""

from __future__ import annotations

import pytest
from support.frames import SETTINGS, frame
from support.http2 import http2
from support.http2fixtures import context, running, start
from support.http2lies import LIES, head
from support.http2origin import Setting, content
from support.http2upstream import (
    Code, Gate, asked, get, get_first, refusing, send)
from support.interception import HOST
from support.wait import until
from support.wire import Closed, request


# Errors of the connection


@pytest.mark.parametrize("mode", ["auto", "require"])
def test_a_host_that_breaks_the_rules_is_spoken_to_in_http_1(
        start, http2_origin, context, mode):
    running = start({"http2": mode})
    there = http2_origin(refusing(1, lambda stream: stream.raw(LIES["data-on-0"](0))),
                         tls=context())
    get(running, there, "/before")
    answer = send(running, there, "/breaks", "POST")
    assert answer.status == 502 and b"upstream-http2-error" in answer.body
    if mode == "auto":
        assert "HTTP/1.1" in running.wait_log(rf"warning.*{HOST}")
    for _ in range(3):
        assert get(running, there).status == 200
    spoken = [seen.version for seen in there.requests[2:]]
    assert spoken == ["HTTP/1.1" if mode == "auto" else "HTTP/2"] * 3
    until(lambda: there.served[0].goaways, "GOAWAY arrives")
    assert there.served[0].goaways[0][1] == Code.PROTOCOL_ERROR


def test_one_host_s_errors_are_no_other_s(start, http2_origin, context, pki):
    running = start()
    there = http2_origin(refusing(1, lambda stream: stream.raw(LIES["data-on-0"](0))),
                         tls=context())
    other = http2_origin(tls=context())
    assert get(running, there, "/before").status == get(running, other).status == 200
    # What is idempotent is sent again.
    assert get(running, there).status == get(running, other).status == 200
    assert there.requests[-1].version == "HTTP/1.1"
    assert other.versions == {"HTTP/2"}


def test_an_error_ends_all_streams_of_the_connection(running, http2_origin, context):
    gate = Gate()

    def breaks(stream) -> None:
        if stream.version == "HTTP/1.1":
            return stream.respond(body=b"again")
        if stream.target == "/breaks":
            return stream.raw(LIES["data-on-0"](0))
        gate(stream)

    there = http2_origin(breaks, tls=context())
    get_first(running, there, gate)
    with asked(running, there, 5) as (client, streams):
        there.wait_request(6)
        assert send(running, there, "/breaks", "POST").status == 502
        # What is idempotent is sent again, in HTTP/1.1.
        assert {client.answer(stream).body for stream in streams} == {b"again"}
        gate.opened.set()


def test_a_server_that_sends_no_settings_is_in_error(running, http2_origin, context):
    there = http2_origin(
        lambda stream: stream.raw(head(stream.number)), tls=context(), settles=False)
    answer = send(running, there, "/", "POST")
    assert answer.status == 502 and b"upstream-http2-error" in answer.body


@pytest.mark.parametrize("said", [
    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", b"\0" * 9, b"220 smtp.test\r\n"])
def test_a_server_that_selects_it_and_speaks_another_protocol_is_asked_in_http_1(
        running, http2_origin, context, said):
    there = http2_origin(tls=context(), settles=False,
                         on_connection=lambda connection: connection.raw(said))
    assert send(running, there, "/first", "POST").status == 502
    assert get(running, there).body == b"GET /after"
    # It may see the first one later.
    assert [seen.version for seen in list(there.requests) if seen.target == "/after"] == [
        "HTTP/1.1"]


def test_settings_are_acknowledged(running, http2_origin, context):
    there = http2_origin(tls=context())
    get(running, there)
    for streams in (10, 20, 30):
        there.served[0].settings({Setting.MAX_CONCURRENT_STREAMS: streams})
    until(lambda: there.served[0].acknowledged == 4, "all settings are acknowledged")
    assert get(running, there).status == 200 and len(there.served) == 1


def test_unknown_frames_and_settings_are_ignored(running, http2_origin, context):
    def unknown(stream) -> None:
        stream.raw(frame(0xB0, 0xFF, stream.number, b"unknown")
                   + frame(0xB1, 0, 0, b"unknown")
                   + frame(SETTINGS, 0, 0, b"\xfa\xfa" + bytes(4)))
        stream.respond(body=b"served")

    there = http2_origin(unknown, tls=context())
    for _ in range(3):
        assert get(running, there).body == b"served"
    assert len(there.served) == 1


def test_pings_are_answered(running, http2_origin, context):
    def pings(stream) -> None:
        if stream.target == "/pings":
            stream.connection.ping(b"12345678")
        stream.respond()

    there = http2_origin(pings, tls=context())
    get(running, there, "/pings")
    acknowledged = frame(6, 1, 0, b"12345678")
    until(lambda: acknowledged in there.application_bytes, "the answer to PING")


def test_a_flood_ends_the_connection(running, http2_origin, context):
    """What costs work and brings nothing is counted towards servers as well."""
    def floods(stream) -> None:
        for _ in range(200):
            stream.raw(frame(SETTINGS, 0, 0) * 100)
        stream.wait(lambda: False, "the end of the connection")

    there = http2_origin(floods, tls=context())
    answer = send(running, there, "/", "POST")
    assert answer.status == 502 and b"upstream-http2-error" in answer.body
    until(lambda: there.served[0].is_closed, "the connection is closed")


# HTTP/1.1 instead


@pytest.mark.parametrize("method, body", [("GET", b""), ("POST", b"content")])
def test_a_server_may_ask_for_http_1(running, http2_origin, context, method, body):
    """HTTP_1_1_REQUIRED (RFC 9113 §7)."""
    there = http2_origin(
        refusing(1, lambda stream: stream.reset_with(Code.HTTP_1_1_REQUIRED)), tls=context())
    get(running, there, "/before")
    answer = send(running, there, "/after", method, body)
    assert (answer.status, answer.body) == (200, b"served " + body)
    assert get(running, there).status == 200
    assert [seen.version for seen in there.requests[1:]] == ["HTTP/2", "HTTP/1.1", "HTTP/1.1"]


def test_an_upgrade_goes_over_http_1_beside_streams(running, http2_origin, context):
    """The same host is asked in HTTP/2 for everything else."""
    def switches(wire) -> None:
        assert wire.socket.selected_alpn_protocol() in (None, "http/1.1")
        assert wire.read_request().get("upgrade") == "echo"
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n"
                  b"Connection: Upgrade\r\n\r\n")
        wire.send(wire.read_exactly(10).upper())

    there = http2_origin(http1=switches, tls=context())
    assert get(running, there).status == 200
    with running.wire() as wire:
        wire.send(request(there.url("/socket", HOST), Connection="Upgrade", Upgrade="echo"))
        assert wire.read_head().status == 101
        wire.send(b"to and fro")
        assert wire.read_exactly(10) == b"TO AND FRO"
        assert get(running, there).status == 200
    assert there.versions == {"HTTP/2"} and len(there.served) == 1


# Time


def quiet(stream) -> None:
    """Answers what is asked for after something else was left."""
    if stream.target == "/silent":
        stream.wait_reset()
    elif stream.target == "/stalls":
        stream.head(200, [("content-length", "1000")])
        stream.data(b"x" * 500)
        stream.wait_reset()
    else:
        stream.respond(body=b"served")


def test_a_silent_server_is_a_504_and_its_connection_goes_on(start, http2_origin, context):
    running = start(timeouts={"firstByte": "300ms"})
    there = http2_origin(quiet, tls=context())
    get(running, there)
    answer = get(running, there, "/silent")
    assert answer.status == 504 and b"first-byte" in answer.body
    until(lambda: there.requests[1].reset is not None, "the stream is reset")
    assert there.requests[1].reset == Code.CANCEL
    assert get(running, there).body == b"served"
    assert len(there.served) == 1


def test_content_that_stalls_is_cut_off_and_its_connection_goes_on(
        start, http2_origin, context):
    running = start(timeouts={"body": "300ms"})
    there = http2_origin(quiet, tls=context())
    get(running, there)
    with running.wire() as wire:
        wire.send(request(there.url("/stalls", HOST)))
        head = wire.read_head()
        with pytest.raises(Closed):
            wire.read_body(head)
    until(lambda: there.requests[1].reset is not None, "the stream is reset")
    assert get(running, there).body == b"served"
    assert len(there.served) == 1
    assert "upstream-body-timeout" in [line.get("reason") for line in running.wait_access(2)]


def test_content_that_the_server_does_not_take_is_a_504(start, http2_origin, context):
    running = start(timeouts={"body": "300ms"})
    there = http2_origin(quiet, tls=context(), credits=False)
    get(running, there)
    answer = send(running, there, "/silent", "PUT", b"x" * 200_000)
    assert answer.status == 504 and b"upstream-send-timeout" in answer.body
    until(lambda: there.requests[1].reset is not None, "the stream is reset")
    assert not there.requests[1].complete


def test_an_idle_connection_is_closed(start, http2_origin, context):
    running = start(timeouts={"idle": "200ms"})
    there = http2_origin(tls=context())
    get(running, there)
    until(lambda: there.served[0].is_closed, "the connection is closed")
    assert get(running, there).status == 200
    assert len(there.served) == 2


# The cache


@pytest.fixture
def caching(start):
    return start(cache={"enabled": True})


def fresh(body: bytes):
    return lambda stream: stream.respond(
        200, ("cache-control", "max-age=600"), body=body)


def test_a_response_is_stored(caching, http2_origin, context):
    there = http2_origin(fresh(content(100_000)), tls=context())
    for _ in range(3):
        assert get(caching, there).body == content(100_000)
    assert len(there.requests) == 1
    assert [line["cache"] for line in caching.wait_access(3)] == ["miss", "hit", "hit"]


def test_a_response_is_validated(caching, http2_origin, context):
    def validates(stream) -> None:
        tag = ("etag", '"one"')
        if stream.get("if-none-match") == '"one"':
            return stream.respond(304, tag, ("cache-control", "max-age=600"))
        stream.respond(200, tag, ("cache-control", "no-cache"), body=b"validated")

    there = http2_origin(validates, tls=context())
    for _ in range(3):
        assert get(caching, there).body == b"validated"
    assert [seen.get("if-none-match") for seen in there.requests] == ["", '"one"']


# What is no response, by what the server does instead of answering.
FAILURES = {
    "reset": lambda stream: stream.reset_with(Code.INTERNAL_ERROR),
    "refused": lambda stream: stream.reset_with(Code.REFUSED_STREAM),
    "malformed": lambda stream: stream.raw(head(stream.number, (":status", "2000"))),
    "ends early": lambda stream: stream.head(200, [("content-length", "5")], end=True),
    "closed": lambda stream: stream.connection.close(),
    "breaks the rules": lambda stream: stream.raw(LIES["data-on-0"](0)),
}


def failing_after_the_first(control: str, how):
    """A handler whose first response is stale at once."""
    answered = []

    def handler(stream) -> None:
        if answered:
            return how(stream)
        answered.append(stream)
        stream.respond(200, ("cache-control", control), ("etag", '"a"'), body=b"old")

    return handler


@pytest.mark.parametrize("failure", sorted(FAILURES))
def test_a_stale_response_is_served_instead_of_an_error(
        start, http2_origin, context, failure):
    caching = start({"http2": "require"}, cache={"enabled": True})
    there = http2_origin(failing_after_the_first(
        "max-age=0, stale-if-error=600", FAILURES[failure]), tls=context())
    assert get(caching, there).body == b"old"
    answer = get(caching, there)
    assert (answer.status, answer.body) == (200, b"old")
    assert len(there.requests) >= 2


@pytest.mark.parametrize("failure, status", [
    ("reset", 504), ("refused", 504), ("closed", 504), ("malformed", 502), ("ends early", 502),
    ("breaks the rules", 502)])
def test_a_stale_response_that_must_be_confirmed_is_not_served_if_it_cannot_be(
        start, http2_origin, context, failure, status):
    """RFC 9111 §5.2.2.2: 504 where the server cannot be reached."""
    caching = start({"http2": "require"}, cache={"enabled": True})
    there = http2_origin(failing_after_the_first(
        "max-age=0, must-revalidate", FAILURES[failure]), tls=context())
    assert get(caching, there).body == b"old"
    assert get(caching, there).status == status
    assert len(there.requests) >= 2


@pytest.mark.parametrize("end", ["reset", "closed"])
def test_a_response_that_breaks_off_is_not_stored(caching, http2_origin, context, end):
    def breaks_off(stream) -> None:
        stream.head(200, [("cache-control", "max-age=600")])
        stream.data(b"x" * 500)
        if end == "reset":
            stream.reset_with(Code.CANCEL)
        else:
            stream.connection.close()

    there = http2_origin(refusing(1, breaks_off), tls=context())
    get(caching, there, "/before")
    with pytest.raises(Closed):
        get(caching, there)
    assert get(caching, there).body == b"served "


def test_requests_that_come_together_are_one_at_the_server(caching, http2_origin, context):
    gate = Gate()

    def shared(stream) -> None:
        if stream.target == "/0":
            assert gate.opened.wait(30)
        fresh(b"shared")(stream)

    there = http2_origin(shared, tls=context())
    with http2(caching.proxy) as client:
        streams = [client.begin("/0", authority=f"{HOST}:{there.port}", scheme="https")
                   for _ in range(10)]
        there.wait_request(1)
        gate.opened.set()
        assert [client.answer(stream).body for stream in streams] == [b"shared"] * 10
    assert len(there.requests) == 1


def test_a_server_of_http_2_alone_is_asked_in_it_again(running, http2_origin, pki):
    there = http2_origin(
        refusing(1, lambda stream: stream.raw(LIES["data-on-0"](0))), http1=lambda _: None,
        tls=pki.intermediate.issue(HOST).server_context(alpn=("h2",)))
    assert get(running, there, "/before").status == 200
    assert send(running, there, "/breaks", "POST").status == 502
    until(lambda: get(running, there).status == 200, "it is asked in HTTP/2 again")
