"""WebSockets in streams of servers (RFC 8441), whatever their clients speak."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable

import pytest
from support.http2 import http2
from support.http2fixtures import context, start
from support.http2origin import Setting, content
from support.http2served import ServedStream
from support.http2sockets import SocketByUpgrade, SocketInStream, accepted
from support.http2upstream import get
from support.interception import HOST, inside
from support.wait import until
from websockets.frames import Opcode
from websockets.protocol import Protocol, Side, State

TAKES = {Setting.ENABLE_CONNECT_PROTOCOL: 1}
CLIENTS = ["1.1", "2"]
CONTENT = content(900_000)


def converse(stream: ServedStream) -> None:
    """Echoes the messages of a WebSocket, until the client closes it."""
    if stream.method != "CONNECT":
        return stream.respond(body=stream.target.encode())
    stream.head(200, [("sec-websocket-protocol", "b"), ("content-length", "7")])
    server = Protocol(Side.SERVER, state=State.OPEN, max_size=None)
    taken = 0
    while not server.close_expected():
        stream.wait(lambda: len(stream.body) > taken or stream.complete, "more of the protocol")
        data, taken = stream.body[taken:], len(stream.body)
        if not data:
            break
        server.receive_data(data)
        for frame in server.events_received():
            if frame.opcode is Opcode.BINARY:
                server.send_binary(frame.data)
        for out in server.data_to_send():
            if out:
                stream.data(out)
    stream.end()


@pytest.fixture(params=CLIENTS)
def client(request) -> Callable[..., SocketInStream | SocketByUpgrade]:
    """client(running, there): a WebSocket to the server, by a client of either version."""
    stack = contextlib.ExitStack()

    def make(running, there, path: str = "/chat", **more):
        if request.param == "1.1":
            wire = stack.enter_context(running.wire())
            return SocketByUpgrade(wire, there.url(path, HOST if there.tls else None), **more)
        connection = stack.enter_context(http2(running.proxy))
        return SocketInStream(
            connection, f"{HOST}:{there.port}" if there.tls else there.authority, path,
            scheme="https" if there.tls else "http", **more).opened()

    make.status = 101 if request.param == "1.1" else 200
    make.version = request.param
    with stack:
        yield make


def tunnels(there) -> list:
    return [seen for seen in list(there.requests) if seen.method == "CONNECT"]


def test_it_is_a_stream_beside_others(start, http2_origin, context, client):
    there = http2_origin(converse, tls=context(), settings=TAKES)
    running = start()
    assert get(running, there).status == 200
    one = client(running, there, "/chat?a=b", origin="http://page.test",
                 sec_websocket_protocol="a, b")
    assert one.answer.status == client.status
    assert one.answer.get("sec-websocket-protocol") == "b"
    assert "content-length" not in one.answer and "transfer-encoding" not in one.answer
    if client.version == "1.1":
        assert one.answer.get("sec-websocket-accept") == accepted(one.key)
        assert one.answer.get("upgrade") == "websocket"
        assert one.answer.get("connection").lower() == "upgrade"
    else:
        assert not {"sec-websocket-accept", "upgrade"} & {name for name, _ in one.answer.headers}
    for message in (b"x", b"y" * 300_000, b""):
        one.send(message)
        assert one.receive() == message
    assert get(running, there).status == 200
    one.protocol.send_close(1000)
    one.flush()
    [seen] = tunnels(there)
    until(lambda: seen.finished.is_set(), "the server has closed it")
    one.end()
    assert len(there.served) == 1
    assert seen.pseudo == {":method": "CONNECT", ":protocol": "websocket", ":scheme": "https",
                           ":authority": f"{HOST}:{there.port}", ":path": "/chat?a=b"}
    fields = dict(seen.headers)
    assert (fields["origin"], fields["sec-websocket-version"]) == ("http://page.test", "13")
    assert not {"sec-websocket-key", "upgrade", "connection", "content-length"} & set(fields)
    line = next(line for line in running.wait_access(3) if line["status"] == 101)
    assert (line["method"], line["upstream_version"]) == ("GET", "HTTP/2.0")
    until(lambda: running.metric("pinfold_tunnels_open") == 0, "it is over")


@pytest.mark.parametrize("over", ["tls", "clear"])
def test_where_nothing_else_is_spoken_settings_are_awaited(
        start, http2_origin, context, client, over):
    """A client must not ask before the server has said that it takes it (RFC 8441 §3)."""
    there = http2_origin(converse, tls=context() if over == "tls" else None, settings=TAKES,
                         settles=False)
    running = start({"match": [HOST, "127.0.0.1"], "http2": "require"})
    answers: list = []
    asking = threading.Thread(target=lambda: answers.append(client(running, there)))
    asking.start()
    until(lambda: there.served, "a connection")
    [connection] = there.served
    connection.ping()
    until(lambda: len(connection.wire.received) > 24, "the preface")
    assert not tunnels(there)
    connection.begin()
    asking.join(30)
    [one] = answers
    one.send(b"hello")
    assert one.receive() == b"hello"
    assert len(tunnels(there)) == 1


def test_a_server_that_does_not_take_it_is_asked_in_http_1(start, http2_origin, context, client):
    def switches(wire) -> None:
        seen = wire.read_request_head()
        assert seen is not None and seen.get("upgrade") == "websocket"
        wire.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                  b"Connection: Upgrade\r\nSec-WebSocket-Accept: "
                  + accepted(seen.get("sec-websocket-key")).encode() + b"\r\n\r\n")
        wire.read_to_end()

    there = http2_origin(converse, tls=context(), http1=switches)
    running = start()
    assert get(running, there).status == 200
    assert client(running, there).answer.status == client.status
    assert not tunnels(there)


def test_one_that_speaks_nothing_else_is_asked_without_upgrade(
        start, http2_origin, context):
    there = http2_origin(lambda stream: stream.respond(426, body=b"no"), tls=context())
    running = start({"http2": "require"})
    with running.wire() as wire:
        one = SocketByUpgrade(wire, there.url("/chat", HOST))
        assert (one.answer.status, one.answer.body) == (426, b"no")
    [seen] = there.requests
    assert seen.method == "GET" and seen.complete
    assert "upgrade" not in dict(seen.headers)


@pytest.mark.parametrize("more", [{"protocol": "a, b"}, {"protocol": "x" * 65}],
                         ids=["several", "long"])
def test_what_a_stream_cannot_carry_goes_over_http_1(start, http2_origin, context, more):
    def switches(wire) -> None:
        assert wire.read_request_head().get("upgrade") == more["protocol"]
        name = more["protocol"].rpartition(", ")[2]
        wire.send(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: {name}\r\n"
                  "Connection: Upgrade\r\n\r\n".encode())
        wire.read_to_end()

    there = http2_origin(converse, tls=context(), settings=TAKES, http1=switches)
    running = start()
    assert get(running, there).status == 200
    with running.wire() as wire:
        assert SocketByUpgrade(wire, there.url("/chat", HOST), **more).answer.status == 101
    assert not tunnels(there)


def test_any_protocol_may_be_asked_for(start, http2_origin, context):
    def run(stream) -> None:
        if stream.method == "CONNECT":
            assert stream.pseudo[":protocol"] == "echo/2"
            stream.head(204)
            stream.data(b"begun ")
            stream.data(stream.read_all(), end=True)
        else:
            stream.respond()

    there = http2_origin(run, tls=context(), settings=TAKES)
    running = start()
    assert get(running, there).status == 200
    with running.wire() as wire:
        one = SocketByUpgrade(wire, there.url("/chat", HOST), protocol="echo/2")
        assert (one.answer.status, one.answer.get("upgrade")) == (101, "echo/2")
        assert "sec-websocket-accept" not in one.answer
        wire.send(b"back and forth")
        wire.half_close()
        assert wire.read_to_end() == b"begun back and forth"


@pytest.mark.parametrize("status", [302, 400, 403, 404, 426, 503])
def test_another_answer_is_a_response(start, http2_origin, context, client, status):
    def run(stream) -> None:
        if stream.method == "CONNECT":
            stream.respond(status, ("location", "/b"), body=b"no socket")
            # The request has no content.
            assert stream.read_all() == b""
        else:
            stream.respond()

    there = http2_origin(run, tls=context(), settings=TAKES)
    running = start()
    assert get(running, there).status == 200
    one = client(running, there)
    if client.version == "2":
        one.client.until(lambda: one.answer.complete)
    assert (one.answer.status, one.answer.body) == (status, b"no socket")
    assert get(running, there).status == 200
    [seen] = tunnels(there)
    until(lambda: seen.finished.is_set() and seen.reset is None, "the stream has ended")
    assert len(there.served) == 1


def test_what_comes_with_the_answer_is_not_lost(start, http2_origin, context, client):
    def run(stream) -> None:
        if stream.method == "CONNECT":
            stream.head(200)
            stream.data(b"\x82\x05early", end=True)
        else:
            stream.respond()

    there = http2_origin(run, tls=context(), settings=TAKES)
    running = start()
    assert get(running, there).status == 200
    assert client(running, there).receive() == b"early"


# Ends


def cut_by_server(stream) -> None:
    stream.head(200)
    stream.wait(lambda: stream.body, "something")
    stream.reset_with(2)


def closed_by_server(stream) -> None:
    stream.head(200)
    stream.wait(lambda: stream.body, "something")
    stream.connection.close(reset=True)


@pytest.mark.parametrize("how", [cut_by_server, closed_by_server])
def test_a_server_that_breaks_off_cuts_the_client_off(
        start, http2_origin, context, client, how):
    """The end must not look like one that was meant (RFC 9113 §8.5)."""
    there = http2_origin(lambda stream: how(stream) if stream.method == "CONNECT"
                         else stream.respond(), tls=context(), settings=TAKES)
    running = start()
    assert get(running, there).status == 200
    one = client(running, there)
    one.send(b"go")
    if client.version == "2":
        one.client.until(lambda: one.answer.reset is not None, "the reset")
        assert not one.answer.complete
    else:
        with pytest.raises(ConnectionResetError):
            while one.wire.socket.recv(1000):
                pass
    until(lambda: running.metric("pinfold_tunnels_open") == 0, "it is over")


@pytest.mark.parametrize("how", ["reset", "closed"])
def test_what_a_server_has_ended_is_delivered_though_it_is_gone(
        start, http2_origin, context, client, how):
    """It need not wait for a client that reads slowly."""
    def run(stream) -> None:
        if stream.method != "CONNECT":
            return stream.respond()
        stream.head(200)
        stream.data(CONTENT, end=True)
        if how == "reset":
            stream.reset_with(0)
        else:
            stream.connection.close()

    there = http2_origin(run, tls=context(), settings=TAKES)
    running = start()
    assert get(running, there).status == 200
    one = client(running, there)
    if client.version == "1.1":
        # The windows of the other one are open only as long as it reads.
        [seen] = tunnels(there)
        until(lambda: seen.finished.is_set(), "the server has sent all")
    received = b""
    while len(received) < len(CONTENT):
        data = one.more()
        assert data, f"{len(received)} of {len(CONTENT)} bytes"
        received += data
    assert received == CONTENT


@pytest.mark.parametrize("over", ["tls", "clear"])
def test_a_server_that_never_answers_is_given_up(start, http2_origin, context, client, over):
    """Also if its settings were awaited before it was asked, and it does not take the protocol."""
    there = http2_origin(lambda stream: stream.wait_reset(),
                         tls=context() if over == "tls" else None, settles=False,
                         on_connection=lambda connection: connection.begin())
    running = start({"match": [HOST, "127.0.0.1"], "http2": "require"},
                    timeouts={"firstByte": "300ms"})
    one = client(running, there)
    if client.version == "2":
        one.client.until(lambda: one.answer.complete)
    assert one.answer.status == 504
    until(lambda: there.requests[0].reset is not None, "the stream is reset")


def test_a_client_that_breaks_off_resets_the_stream(start, http2_origin, context, client):
    codes: list[int] = []

    def run(stream) -> None:
        if stream.method != "CONNECT":
            return stream.respond()
        stream.head(200)
        codes.append(stream.wait_reset())

    there = http2_origin(run, tls=context(), settings=TAKES)
    running = start()
    assert get(running, there).status == 200
    one = client(running, there)
    if client.version == "2":
        one.client.reset(one.stream)
    else:
        one.wire.reset()
    until(lambda: codes, "the reset")
    assert codes == [8]
    # The connection goes on.
    assert get(running, there).status == 200
    assert len(there.served) == 1


@pytest.mark.parametrize("first", ["client", "server"])
def test_each_direction_ends_for_itself(start, http2_origin, context, first):
    def run(stream) -> None:
        if stream.method != "CONNECT":
            return stream.respond()
        stream.head(200)
        if first == "server":
            stream.data(b"all", end=True)
            assert stream.read_all() == b"later"
        else:
            assert stream.read_all() == b"later"
            stream.data(b"all", end=True)

    there = http2_origin(run, tls=context(), settings=TAKES)
    running = start()
    assert get(running, there).status == 200
    with running.wire() as wire:
        one = SocketByUpgrade(wire, there.url("/chat", HOST))
        assert one.answer.status == 101
        if first == "server":
            assert wire.read_exactly(3) == b"all"
        wire.send(b"later")
        wire.half_close()
        assert wire.read_to_end() == (b"all" if first == "client" else b"")
    [seen] = tunnels(there)
    until(lambda: seen.finished.is_set(), "the server's end")
    assert seen.reset is None


def test_a_client_that_reads_nothing_stops_nobody_else(start, http2_origin, context, client):
    """What waits counts towards its stream's window alone."""
    def run(stream) -> None:
        if stream.method != "CONNECT":
            return stream.respond(body=b"x" * 200_000)
        stream.head(200)
        stream.data(b"\0" * 8_000_000)
        stream.end()

    there = http2_origin(run, tls=context(), settings=TAKES)
    running = start()
    assert get(running, there).status == 200
    one = client(running, there)
    assert one.answer.status == client.status
    [seen] = tunnels(there)
    until(lambda: seen.connection.h2.local_flow_control_window(seen.number) == 0,
          "the server may send no more")
    for _ in range(20):
        assert len(get(running, there).body) == 200_000
    assert len(there.served) == 1


def test_many_share_a_connection(start, http2_origin, context, client):
    there = http2_origin(converse, tls=context(), settings=TAKES)
    running = start()
    assert get(running, there).status == 200
    opened = [client(running, there, f"/{number}") for number in range(40)]
    for number, one in enumerate(opened):
        one.send(b"%d" % number)
    assert [one.receive() for one in opened] == [b"%d" % number for number in range(40)]
    assert len(there.served) == 1


def test_a_goaway_leaves_it_alone(start, http2_origin, context, client):
    there = http2_origin(converse, tls=context(), settings=TAKES)
    running = start()
    assert get(running, there).status == 200
    one = client(running, there)
    [seen] = tunnels(there)
    seen.connection.goaway(seen.number)
    # The next one needs a connection of its own.
    assert get(running, there).status == 200
    assert len(there.served) == 2
    one.send(b"still here")
    assert one.receive() == b"still here"


def test_it_is_for_the_tunnel_s_client_too(start, http2_origin, context, pki):
    """In an intercepted tunnel."""
    there = http2_origin(converse, tls=context(), settings=TAKES)
    running = start({"intercept": True}, interception=pki.interception.section)
    wire, _ = inside(running, HOST, there.port)
    with wire:
        for path in ("/first", "/second"):
            wire.send(f"GET {path} HTTP/1.1\r\nHost: {HOST}:{there.port}\r\n\r\n")
            assert wire.read().status == 200
        one = SocketByUpgrade(wire, f"https://{HOST}:{there.port}/chat")
        assert one.answer.status == 101
        one.send(b"inside")
        assert one.receive() == b"inside"
    assert [seen.method for seen in there.requests] == ["GET", "GET", "CONNECT"]
