"""Over HTTP/2 as well, one connection's work keeps nobody waiting, nor one stream's."""

from __future__ import annotations

import contextlib
import signal
import socket
from pathlib import Path

import pytest
from support.bystander import STALL, p99, waits
from support.http2 import HTTP2Client, http2
from support.http2flood import SERVER, http2_flooding
from support.http2origin import by_path
from support.http2upstream import Code
from support.origin import reply
from support.wait import SLOWDOWN
from support.wire import request

CONFIGURATION = {"workers": 1, "log": {"access": "none"},
                 "hosts": [{"match": [SERVER], "http2": "require"}]}

# Of its processor time in one turn of all connections of a flood.
LONG_TURNS = 0.008 * SLOWDOWN

FLOODS = [("download", 1), ("download", 8), ("upload", 8), ("messages", 4), ("requests", 4),
          ("serves_large", 8), ("serves_small", 4), ("takes", 4)]


@pytest.mark.slow
@pytest.mark.parametrize("kind, connections", FLOODS)
def test_a_bystander_is_served_during_a_flood(gateway, origin, kind, connections):
    """All on one worker. Of a flood by a server, others of its own streams are bystanders too."""
    there = origin(lambda _: reply(b"hello", "200 OK", "Cache-Control: max-age=600"))
    running = gateway(CONFIGURATION)

    with running.wire(timeout=30) as plain, http2(running.proxy, timeout=30) as client:
        def in_http1() -> None:
            assert plain.ask(request(there.url("/"))).body == b"hello"

        def in_http2() -> None:
            assert client.get("/", authority=there.authority).body == b"hello"

        def beside() -> None:
            assert plain.ask(request(f"http://{SERVER}:{port}/beside")).status == 200

        idle = max(p99(waits(running, one, 100)) for one in (in_http1, in_http2))
        with http2_flooding(kind, running.proxy, connections, there.url("/")) as port:
            served = [in_http1, in_http2]
            if kind in ("serves_large", "serves_small", "takes"):
                served.append(beside)
            found = {one.__name__: waits(running, one, 150) for one in served}
    for name, values in found.items():
        assert p99(values) < max(STALL, 10 * idle), (name, values[-5:], idle)


@pytest.mark.parametrize("kind", ["messages", "serves_small"])
def test_frames_of_small_messages_do_not_make_turns_long(gateway, origin, kind):
    """As many as the windows allow are at hand at once, and each is passed on to a peer with
    HTTP/1."""
    there = origin(lambda _: reply(b"hello", "200 OK", "Cache-Control: max-age=600"))
    running = gateway(CONFIGURATION)
    with http2(running.proxy, timeout=30) as client:
        def ask() -> None:
            assert client.get("/", authority=there.authority).body == b"hello"

        ask()
        with http2_flooding(kind, running.proxy, 4):
            found = waits(running, ask, 150)
    assert found[75] < LONG_TURNS, found[::10]


@pytest.mark.parametrize("kind", ["download", "upload", "serves_small"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_are_answered_during_a_flood(gateway, kind, number):
    running = gateway(CONFIGURATION | {"timeouts": {"grace": "500ms"}})
    with http2_flooding(kind, running.proxy, 4):
        running.signal(number)
        assert running.wait_exit(50) == 0, "it ends, and before the flood does"


def buffered_bytes() -> int:
    """The most that the kernel keeps of what the gateway has sent, besides what is received."""
    return int(Path("/proc/sys/net/ipv4/tcp_wmem").read_text().split()[2])


RECEIVED = 1 << 18


@contextlib.contextmanager
def without_windows(running):
    """A client whose windows are no limit: what it is sent waits in the kernel."""
    sock = socket.socket()
    # Before it is connected: it is a limit then.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED // 2)
    sock.connect(running.proxy)
    with http2(sock, window=1 << 30) as client:
        client.connection.increment_flow_control_window(1 << 30)
        client.flush()
        yield client


def endless(stream) -> None:
    if stream.target != "/endless":
        return by_path(stream)
    stream.head(200)
    while not stream.is_gone:
        stream.data(bytes(1 << 20))


def begin_endless(client: HTTP2Client, authority: str) -> int:
    stream = client.begin("/endless", authority=authority)
    client.until(lambda: len(client.answers[stream].body) > 1 << 20, "much of it")
    return stream


def pours(connection) -> None:
    """The same server in HTTP/1.1."""
    if connection.read_request().target != "/endless":
        return connection.send(reply(b"GET /small"))
    with contextlib.suppress(OSError):
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
        while True:
            connection.send(bytes(1 << 20))


@pytest.mark.parametrize("server", ["HTTP/1.1", "HTTP/2"])
def test_a_stream_without_an_end_does_not_keep_small_ones_waiting(
        gateway, scripted_origin, http2_origin, server):
    """Before a small response comes at most what was on its way when it was asked for. Over HTTP/2
    both share the server's connection as well."""
    if server == "HTTP/1.1":
        there = scripted_origin(pours)
        authority = there.authority
    else:
        there = http2_origin(endless)
        authority = f"{SERVER}:{there.port}"
    running = gateway(CONFIGURATION | {"cache": {"enabled": False}})
    with without_windows(running) as client:
        stream = begin_endless(client, authority)
        content = client.answers[stream]
        between = []
        for _ in range(10):
            before = len(content.body)
            assert client.get("/small", authority=authority).body == b"GET /small"
            between.append(len(content.body) - before)
            content.body = b""
        client.reset(stream)
    # On a busy machine some wait for a processor, and one for a connection, while the other flows.
    assert sorted(between)[5] <= buffered_bytes() + RECEIVED + (1 << 20), between
    if server == "HTTP/2":
        assert len(there.served) == 1


def test_streams_without_an_end_get_equal_parts(gateway):
    """The server is another process, which is always faster than the client."""
    running = gateway(CONFIGURATION | {"cache": {"enabled": False}})
    with http2_flooding("download", running.proxy, 0) as port, without_windows(running) as client:
        authority = f"127.0.0.1:{port}"
        parts = dict.fromkeys((begin_endless(client, authority) for _ in range(4)), 0)

        def receive(count: int) -> None:
            for stream in parts:
                parts[stream] = 0
            while sum(parts.values()) < count:
                assert client.receive()
                for stream in parts:
                    parts[stream] += len(client.answers[stream].body)
                    client.answers[stream].body = b""

        # What was on its way when the last of them began, and until its server is as fast.
        receive(32 << 20)
        receive(16 << 20)
        for stream in parts:
            client.reset(stream, Code.CANCEL)
    assert min(parts.values()) > (16 << 20) / len(parts) / 2, parts
