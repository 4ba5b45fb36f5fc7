"""Which time bounds what, and that the log names the one that ended an exchange."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import time

import pytest
from support.origin import reply
from support.wait import SLOWDOWN, until
from support.wire import request, until_sent

NO_CACHE = {"cache": {"enabled": False}}
UPGRADE = ("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
           "Upgrade: websocket\r\n\r\n")
STREAM = ("HTTP/1.1 200 OK\r\nContent-Type: {}\r\nTransfer-Encoding: chunked\r\n\r\n"
          "6\r\nfirst\n\r\n")


def upgraded(running, there):
    wire = running.wire(timeout=20 * SLOWDOWN)
    wire.send(f"GET {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n"
              "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
    assert wire.read().status == 101
    return wire


def upgrading(connection):
    connection.read_request_head()
    connection.send(UPGRADE)
    connection.read_to_end()


def keepalives(pid: int, port: int) -> list[str]:
    """The timers of established connections to or from a port, as ss(8) shows them."""
    import subprocess

    text = subprocess.run(["ss", "-tnoe", "state", "established"], capture_output=True, text=True,
                          check=True).stdout
    return [line for line in text.splitlines() if f":{port} " in line and "keepalive" in line]


# Tunnels and upgraded connections


@pytest.mark.parametrize("kind", ["tunnel", "upgrade"])
def test_a_quiet_tunnel_outlives_the_idle_time_and_ends_with_its_own(
        gateway, scripted_origin, kind):
    there = scripted_origin(
        upgrading if kind == "upgrade" else lambda connection: connection.read_to_end())
    running = gateway({**NO_CACHE, "timeouts": {
        "idle": "200ms", "body": "200ms", "tunnel": "1500ms"}})
    began = time.monotonic()
    if kind == "upgrade":
        wire = upgraded(running, there)
    else:
        wire, answer = running.connect(there.authority, timeout=20 * SLOWDOWN)
        assert answer.status == 200
    with wire:
        assert wire.ended()
    assert time.monotonic() - began >= 1.4
    line = running.wait_access()[-1]
    assert line["reason"] == "tunnel-idle-timeout"


def test_a_host_entry_has_times_of_its_own(gateway, scripted_origin):
    there = scripted_origin(upgrading)
    running = gateway({
        **NO_CACHE, "timeouts": {"tunnel": "60s"},
        "hosts": [{"match": ["127.0.0.1"], "timeouts": {"tunnel": "300ms"}}]})
    with upgraded(running, there) as wire:
        assert wire.ended()
    assert running.wait_access()[-1]["reason"] == "tunnel-idle-timeout"


@pytest.mark.parametrize("times,reason", [
    ({"firstByte": "300ms"}, "first-byte-timeout"), ({"body": "300ms"}, "upstream-body-timeout")])
def test_a_host_entry_bounds_the_answer(gateway, scripted_origin, times, reason):
    def script(connection):
        connection.read_request()
        if "body" in times:
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        connection.read_to_end()

    there = scripted_origin(script)
    running = gateway({**NO_CACHE, "hosts": [{"match": ["127.0.0.1"], "timeouts": times}]})
    with running.wire(timeout=20 * SLOWDOWN) as wire:
        wire.send(request(there.url("/")))
        with contextlib.suppress(Exception):
            wire.read()
        assert running.wait_access()[-1]["reason"] == reason


def test_tunnels_detect_peers_that_have_disappeared(gateway, scripted_origin):
    """TCP keep-alive, on both sides."""
    there = scripted_origin(lambda connection: connection.read_to_end())
    running = gateway(NO_CACHE)
    wire, _ = running.connect(there.authority)
    with wire:
        mine = wire.socket.getsockname()[1]
        until(lambda: keepalives(running.pid, mine), "the client's socket has a timer")
        until(lambda: keepalives(running.pid, there.port), "the server's socket has a timer")


# Event streams


def test_an_event_stream_may_pause_longer_than_a_body(gateway, scripted_origin):
    paused = threading.Event()

    def script(connection):
        connection.read_request()
        connection.send(STREAM.format("text/event-stream; charset=utf-8"))
        paused.wait(20)
        connection.send("4\r\nlate\r\n0\r\n\r\n")
        connection.read_to_end()

    there = scripted_origin(script)
    running = gateway({**NO_CACHE, "timeouts": {"body": "200ms", "eventStream": "60s"}})
    with running.wire(timeout=20 * SLOWDOWN) as wire:
        wire.send(request(there.url("/")))
        wire.read_until(b"first\n")
        mine = wire.socket.getsockname()[1]
        until(lambda: keepalives(running.pid, mine), "the client's socket has a timer")
        time.sleep(1)  # the pause itself: five times what a body may take
        paused.set()
        wire.read_until(b"late")


@pytest.mark.parametrize("media_type,reason", [
    ("text/event-stream", "event-stream-timeout"), ("text/plain", "upstream-body-timeout"),
    ("text/event-streams", "upstream-body-timeout")])
def test_a_stream_that_stands_still_is_cut_off_with_the_reason(
        gateway, scripted_origin, media_type, reason):
    def script(connection):
        connection.read_request()
        connection.send(STREAM.format(media_type))
        connection.read_to_end()

    there = scripted_origin(script)
    running = gateway({**NO_CACHE, "timeouts": {"body": "300ms", "eventStream": "300ms"}})
    with running.wire(timeout=20 * SLOWDOWN) as wire:
        wire.send(request(there.url("/")))
        wire.read_until(b"first\n")
        assert running.wait_access()[-1]["reason"] == reason


# Nobody outlives the idle time by being sent to


def pour(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            sock.sendall(bytes(1 << 16))


def test_tunnels_to_a_client_that_does_not_read_end(gateway, scripted_origin):
    """The server sends all the time; what is not taken is no progress."""
    count = 60
    there = scripted_origin(lambda connection: pour(connection.socket))
    running = gateway({**NO_CACHE, "timeouts": {"tunnel": "700ms"}})
    wires = [running.connect(there.authority)[0] for _ in range(count)]
    try:
        assert running.metric("pinfold_tunnels_open") >= 0
        until(lambda: running.metric("pinfold_tunnels_open") == 0, "all tunnels have ended", 20)
    finally:
        for wire in wires:
            wire.close()
    assert {line["reason"] for line in running.wait_access(count)} == {"tunnel-idle-timeout"}


def test_tunnels_to_a_server_that_does_not_read_end(gateway, scripted_origin):
    release = threading.Event()
    there = scripted_origin(lambda connection: release.wait(30))
    running = gateway({**NO_CACHE, "timeouts": {"tunnel": "700ms"}})
    wires = [running.connect(there.authority)[0] for _ in range(10)]
    for wire in wires:
        threading.Thread(target=pour, args=(wire.socket,), daemon=True).start()
    try:
        until(lambda: running.metric("pinfold_tunnels_open") == 0, "all tunnels have ended", 20)
    finally:
        release.set()
        for wire in wires:
            wire.close()


@pytest.mark.parametrize("kind", ["pass", "hit"])
def test_a_client_that_does_not_read_its_response_is_cut_off_with_the_reason(
        gateway, origin, kind):
    body = b"x" * (12 << 20)
    there = origin(lambda _: reply(body, "200 OK", "Cache-Control: max-age=600"))
    running = gateway({"cache": {"enabled": kind == "hit", "memory": "64MiB"},
                       "timeouts": {"body": "500ms"}})
    if kind == "hit":
        assert running.get(there.url("/")).status == 200
    seen = len(running.wait_access(1)) if kind == "hit" else 0
    with running.wire() as wire:
        wire.send(request(there.url("/")))
        until(lambda: len(running.access_lines()) > seen, "it was cut off", 20)
    assert running.access_lines()[-1]["reason"] == "client-timeout"


@pytest.mark.slow
def test_a_peer_that_reads_nothing_is_closed_after_one_idle_time(gateway, origin, scripted_origin):
    """Not after two: a tunnel that is merely quiet, with an idle time half as long again, ends later
    than all of them."""
    release = threading.Event()
    body = b"x" * (12 << 20)
    plain = origin(lambda asked: reply(body, "200 OK", "Cache-Control: max-age=600"))
    pouring = scripted_origin(lambda connection: pour(connection.socket))
    deaf = scripted_origin(lambda connection: release.wait(60))

    def half(connection):
        """Answers an upload that it does not take, and stops with that too."""
        connection.read_request_head()
        connection.send(STREAM.format("text/plain"))
        time.sleep(0.5)  # the upload waits by now
        connection.send("6\r\nsecond\r\n")
        release.wait(60)

    rude = scripted_origin(half)
    running = gateway({
        "cache": {"memory": "64MiB"}, "timeouts": {"tunnel": "4s", "body": "4s"},
        "hosts": [{"match": ["localhost"], "timeouts": {"tunnel": "6400ms"}}]})
    assert running.get(plain.url("/hit")).status == 200
    warmed = len(running.wait_access(1))
    wires = []
    try:
        for authority in [f"localhost:{deaf.port}", deaf.authority, pouring.authority]:
            wire, opened = running.connect(authority, timeout=30)
            wires.append(wire)
            assert opened.status == 200
        threading.Thread(target=pour, args=(wires[1].socket,), daemon=True).start()
        for path in ["/hit", "/pass"]:
            wires.append(running.wire())
            wires[-1].send(request(plain.url(path)))
        for there in [deaf, rude]:
            wires.append(running.wire())
            wires[-1].send(f"PUT {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n"
                           f"Content-Length: {1 << 30}\r\n\r\n")
            threading.Thread(target=pour, args=(wires[-1].socket,), daemon=True).start()
        lines = running.wait_access(warmed + 7)[warmed:]
    finally:
        release.set()
        for wire in wires:
            wire.close()
    assert lines[-1]["host"] == "localhost", [line["reason"] for line in lines]
    assert sorted(line["reason"] for line in lines) == [
        "client-timeout", "client-timeout", "tunnel-idle-timeout", "tunnel-idle-timeout",
        "tunnel-idle-timeout", "upstream-body-timeout", "upstream-send-timeout"]


# Uploads


def upload_head(there, size: int) -> str:
    return (f"PUT {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n"
            f"Accept: application/json\r\nContent-Length: {size}\r\n\r\n")


@pytest.mark.parametrize("size", [1 << 20, 64 << 20])
def test_an_upload_that_the_server_does_not_take_ends_with_a_reason_of_its_own(
        gateway, scripted_origin, size):
    """Whether the rest waits here or, small enough, in the kernel."""
    release = threading.Event()
    there = scripted_origin(lambda connection: (
        connection.read_request_head(), release.wait(60)))
    running = gateway({**NO_CACHE, "timeouts": {"body": "600ms", "firstByte": "60s"}})
    with running.wire(timeout=20 * SLOWDOWN) as wire:
        def send() -> None:
            with contextlib.suppress(OSError):
                wire.send(upload_head(there, size))
                wire.send(bytes(size))

        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        try:
            answer = wire.read()
            assert answer.status == 504
            assert answer.json()["reason"] == "upstream-send-timeout"
            assert answer.proxy_status["error"] == "connection_write_timeout"
            assert running.wait_access(1)[-1]["reason"] == "upstream-send-timeout"
            assert running.metric(
                "pinfold_http_request_failures_total", reason="upstream-send-timeout") == 1
        finally:
            release.set()
    sender.join(20)


def test_an_upload_that_is_taken_slowly_is_waited_for_and_then_its_answer(gateway, scripted_origin):
    """The first byte's time begins when the content has been taken, not when it lies in the kernel."""
    size, taken = 2 << 20, []

    def script(connection):
        connection.read_request_head()
        sock = connection.socket
        left = size - len(connection.buffer)
        while left > 0:
            time.sleep(0.05)  # the server is slow: two and a half seconds in all
            left -= len(sock.recv(min(left, 40_000)))
        taken.append(time.monotonic())
        connection.send(reply(b"thanks"))
        connection.read_to_end()

    there = scripted_origin(script)
    running = gateway({**NO_CACHE, "timeouts": {"body": "1s", "firstByte": "800ms"}})
    with running.wire(timeout=20 * SLOWDOWN) as wire:
        wire.send(upload_head(there, size))
        wire.send(bytes(size))
        answer = wire.read()
        assert answer.status == 200, answer.body
    assert taken


def test_a_server_that_takes_an_upload_and_does_not_answer_is_a_first_byte_timeout(
        gateway, scripted_origin):
    there = scripted_origin(lambda connection: (
        connection.read_request(), connection.read_to_end()))
    running = gateway({**NO_CACHE, "timeouts": {"body": "400ms", "firstByte": "900ms"}})
    with running.wire(timeout=20 * SLOWDOWN) as wire:
        wire.send(upload_head(there, 1 << 20))
        wire.send(bytes(1 << 20))
        answer = wire.read()
        assert answer.status == 504
        assert answer.json()["reason"] == "first-byte-timeout"


# Time that did not run


@pytest.mark.slow
def test_a_stopped_process_does_not_let_its_deadlines_pass(gateway, scripted_origin, origin):
    """Both sides are well: it is the gateway that was stopped, for longer than any time allows."""
    release, sent = threading.Event(), threading.Semaphore(0)

    def send(connection, data):
        release.wait(60)
        connection.send(data)
        until_sent(connection.socket)
        sent.release()

    def script(connection):
        connection.read_request()
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf")
        send(connection, "half")
        connection.read_to_end()

    there = scripted_origin(script)
    slow = scripted_origin(
        lambda connection: connection.read_request() and send(connection, reply(b"late")))
    plain = origin(lambda _: reply(b"plain"))
    times = {"head": "5s", "firstByte": "5s", "body": "5s", "tunnel": "5s", "idle": "5s"}
    running = gateway({**NO_CACHE, "timeouts": times})
    with running.wire(timeout=30) as body, running.wire(timeout=30) as first, \
            running.wire(timeout=30) as head:
        body.send(request(there.url("/")))
        body.read_until(b"half")
        first.send(request(slow.url("/")))
        head.send(f"GET {plain.url('/')} HTT")
        tunnel, _ = running.connect(slow.authority)
        until(lambda: slow.accepted == 2, "both are at the server")
        running.pause()
        time.sleep(8)  # the time itself that must not count
        release.set()
        for _ in range(2):
            assert sent.acquire(timeout=20), "what the servers send is in the gateway's sockets"
        running.signal(signal.SIGCONT)
        body.read_until(b"half")
        assert first.read().body == b"late"
        head.send(f"P/1.1\r\nHost: {plain.authority}\r\n\r\n")
        assert head.read().body == b"plain"
        tunnel.close()
    assert not [line for line in running.access_lines() if "timeout" in str(line.get("reason"))]
