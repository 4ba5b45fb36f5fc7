"""Peers that stall, die or lie at the worst moment: nothing hangs, starves or gets mixed up."""

from __future__ import annotations

import contextlib
import socket
import statistics
import threading
import time

import pytest
from support.origin import reply
from support.wait import SLOWDOWN, until
from support.wire import Wire, request

NO_CACHE = {"cache": {"enabled": False}}


# Bodies that do not come


@pytest.mark.parametrize("sent", ["", "ab"])
@pytest.mark.parametrize("framing", ["Content-Length: 5", "Transfer-Encoding: chunked"])
def test_a_request_whose_body_does_not_come_ends(gateway, scripted_origin, framing, sent):
    there = scripted_origin(lambda connection: connection.read_to_end())
    running = gateway({**NO_CACHE, "timeouts": {"body": "300ms", "firstByte": "60s"}})
    with running.wire(timeout=20 * SLOWDOWN) as wire:
        if framing.startswith("T") and sent:
            sent = "5\r\nab"
        wire.send(f"PUT {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n"
                  f"{framing}\r\n\r\n{sent}")
        assert wire.read().status == 408
    there.wait_finished()
    until(lambda: running.metric("pinfold_http_requests_in_flight") == 0, "no exchange is left")


def test_a_client_that_never_follows_100_continue_with_its_body_ends(gateway, scripted_origin):
    def script(connection):
        connection.read_request_head()
        connection.send("HTTP/1.1 100 Continue\r\n\r\n")
        connection.read_to_end()

    there = scripted_origin(script)
    running = gateway({**NO_CACHE, "timeouts": {"body": "300ms", "firstByte": "60s"}})
    with running.wire(timeout=20 * SLOWDOWN) as wire:
        wire.send(f"PUT {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n"
                  "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        assert wire.read().status == 100
        assert wire.read().status == 408
    there.wait_finished()


def test_a_server_that_stalls_after_a_slow_reader_is_cut_off(gateway, scripted_origin):
    """While the client is the slow one the server's deadline does not count; afterwards it does."""
    sent = 3 << 20

    def script(connection):
        connection.read_request()
        connection.send(f"HTTP/1.1 200 OK\r\nContent-Length: {sent + 1}\r\n\r\n")
        connection.send(b"x" * sent)
        connection.read_to_end()

    there = scripted_origin(script)
    running = gateway({**NO_CACHE, "timeouts": {"body": "500ms"}})
    # Small segments and a small window: the gateway's socket takes little at a time.
    slow = socket.socket()
    slow.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.settimeout(20 * SLOWDOWN)
    slow.connect(running.proxy)
    with Wire(running.proxy, sock=slow, timeout=20 * SLOWDOWN) as wire:
        wire.send(request(there.url("/")))
        wire.read_until(b"\r\n\r\n")
        taken = len(wire.buffer)
        began = time.monotonic()
        while time.monotonic() - began < 3:
            taken += len(wire.socket.recv(1 << 14))
            time.sleep(0.01)  # the reader's pace
        while data := wire.socket.recv(1 << 18):
            taken += len(data)
    assert taken == sent
    there.wait_finished()


@pytest.mark.slow
def test_a_reader_is_not_too_slow_while_it_takes_anything(gateway, scripted_origin):
    """The kernel reports room for more only when a third of a large buffer is free: here after
    about three seconds. What the reader takes is acknowledged several times a second, for its own
    buffer is small."""
    sent = 16 << 20

    def script(connection):
        connection.read_request()
        connection.send(reply(b"x" * sent))

    there = scripted_origin(script)
    running = gateway({**NO_CACHE, "timeouts": {"body": "1200ms"}})
    reader = socket.socket()
    reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 128 << 10)
    reader.settimeout(20 * SLOWDOWN)
    reader.connect(running.proxy)
    with Wire(running.proxy, sock=reader, timeout=20 * SLOWDOWN) as wire:
        wire.send(request(there.url("/")))
        taken = 0
        began = time.monotonic()
        while time.monotonic() - began < 5:
            taken += len(wire.socket.recv(1 << 14))
            time.sleep(0.05)  # the reader's pace
        while data := wire.socket.recv(1 << 18):
            taken += len(data)
            if taken > sent:
                break
    assert taken > sent


def test_a_client_that_reads_nothing_is_closed(gateway, scripted_origin):
    def script(connection):
        connection.read_request()
        connection.send(reply(b"x" * (32 << 20)))

    there = scripted_origin(script)
    running = gateway({**NO_CACHE, "timeouts": {"body": "400ms"}})
    with running.wire() as wire:
        wire.send(request(there.url("/")))
        there.wait_finished()
        until(lambda: running.metric("pinfold_http_requests_in_flight") == 0, "it was cut off")


def test_an_upload_that_was_blocked_once_may_take_its_time(gateway, scripted_origin):
    """The deadline of a blocked write ends with it."""
    begin = threading.Event()
    burst, drops = 16 << 20, 12

    def script(connection):
        head = connection.read_request_head()
        begin.wait(20)
        left = int(head.get("content-length")) - len(connection.buffer)
        while left > 0:
            left -= len(connection.socket.recv(1 << 20))
        connection.send(reply(b"got it"))

    there = scripted_origin(script)
    running = gateway({**NO_CACHE, "timeouts": {"body": "1s", "firstByte": "20s"}})
    with running.wire(timeout=20) as wire:
        wire.send(f"POST {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n"
                  f"Content-Length: {burst + drops}\r\n\r\n")
        threading.Timer(0.4, begin.set).start()  # the server's pace: it takes nothing before
        wire.send(b"x" * burst)
        for _ in range(drops):
            wire.send(b"y")
            time.sleep(0.25)  # the client's pace: longer in all than the time that is set
        assert wire.read().body == b"got it"


# The retry


@pytest.mark.parametrize("trailer", ["", "X-Trailer: 1\r\n"])
def test_an_empty_chunked_body_is_whole_after_a_retry(gateway, scripted_origin, trailer):
    seen = []

    def script(connection):
        while (asked := connection.read_request()) is not None:
            seen.append((connection.number, asked.method))
            if connection.number == 0 and len(seen) > 1:
                return
            connection.send(reply(b"ok"))

    there = scripted_origin(script)
    running = gateway({**NO_CACHE, "workers": 1, "timeouts": {"firstByte": "2s"}})
    with running.wire() as wire:
        assert wire.ask(request(there.url("/"))).body == b"ok"
        wire.send(f"PUT {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n"
                  f"Transfer-Encoding: chunked\r\n\r\n0\r\n{trailer}\r\n")
        assert wire.read().status == 502
    assert seen == [(0, "GET"), (0, "PUT")], "its end could not be sent again"


def test_a_retry_gets_a_fresh_connection_at_the_limit(gateway, scripted_origin):
    """The one connection that is allowed goes to who waited first; when it is idle again, it makes
    way for the fresh one that the retry needs."""
    dying, waits = threading.Event(), threading.Event()

    def script(connection):
        served = 0
        while (asked := connection.read_request()) is not None:
            if asked.target == "/die" and served:
                dying.set()
                assert waits.wait(20)
                return
            served += 1
            connection.send(reply(b"ok"))

    there = scripted_origin(script)
    running = gateway({**NO_CACHE, "workers": 1,
                       "limits": {"upstreamPerHost": 1}, "timeouts": {"connect": "2s"}})
    with running.wire() as one, running.wire() as other:
        assert one.ask(request(there.url("/"))).body == b"ok"
        one.send(request(there.url("/die")))
        assert dying.wait(10)
        other.send(request(there.url("/")))
        until(lambda: running.metric("pinfold_upstream_pool_waiting") == 1, "the other one waits")
        waits.set()
        assert other.read().body == b"ok"
        assert one.read().status == 200


# Limits


def test_one_origins_end_makes_room_for_another(gateway, scripted_origin):
    """The limit of all connections is the process's: three exchanges have them whichever workers
    they are on, and what they leave behind idle makes way for another origin."""
    begun = threading.Semaphore(0)
    release = threading.Event()

    def script(connection):
        while connection.read_request() is not None:
            begun.release()
            release.wait(20)
            connection.send(reply(b"ok"))

    origins = [scripted_origin(script) for _ in range(4)]
    running = gateway({**NO_CACHE, "workers": 2, "limits": {"connections": 3},
                       "timeouts": {"connect": "2s"}})
    wires = [running.wire() for _ in range(3)]
    try:
        for wire, there in zip(wires, origins, strict=False):
            wire.send(request(there.url("/")))
        for _ in wires:
            assert begun.acquire(timeout=20), "all three are with their servers at once"
        release.set()
        assert [wire.read().status for wire in wires] == [200] * 3
        assert [wire.ask(request(origins[3].url("/"))).status for wire in wires] == [200] * 3
        assert running.metric("pinfold_upstream_connections_open") <= 3
    finally:
        release.set()
        for wire in wires:
            wire.close()


# Leaving HTTP


def test_a_switch_of_protocols_before_the_requests_end_is_a_502(gateway, scripted_origin):
    def script(connection):
        connection.read_request_head()
        connection.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: raw\r\n"
                        "Connection: Upgrade\r\n\r\n")
        connection.read_to_end()

    there = scripted_origin(script)
    running = gateway(NO_CACHE)
    with running.wire() as wire:
        wire.send(f"POST {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n"
                  "Connection: Upgrade\r\nUpgrade: raw\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "3\r\nabc\r\n")
        assert wire.read().status == 502


def test_a_reset_after_a_half_close_ends_the_tunnel(gateway, scripted_origin):
    ended = threading.Event()

    def script(connection):
        connection.read_to_end()
        ended.set()
        until(lambda: connection.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR),
              "the other end is gone")

    there = scripted_origin(script)
    running = gateway()
    wire, _ = running.connect(there.authority)
    wire.send(b"hello")
    wire.half_close()
    assert ended.wait(10)
    wire.reset()
    until(lambda: running.metric("pinfold_client_connections_open") <= 1, "the tunnel is closed")
    there.wait_finished()


def test_what_a_stop_cuts_off_is_in_the_access_log(gateway, scripted_origin):
    there = scripted_origin(lambda connection: connection.read_to_end())
    running = gateway({**NO_CACHE, "timeouts": {"grace": "200ms"}})
    with running.wire() as wire:
        wire.send(request(there.url("/cut")))
        until(lambda: there.connections and there.connections[0].received, "it has arrived")
        assert running.stop() == 0
    assert [line for line in running.access_lines() if "/cut" in str(line)]


# Fairness


def test_a_fast_download_leaves_others_their_turn(gateway, scripted_origin):
    """One worker; a server and a client that are faster than it."""
    block = b"x" * (1 << 20)
    stop = threading.Event()

    def script(connection):
        while (asked := connection.read_request()) is not None:
            if asked.target == "/small":
                connection.send(reply(b"x"))
                continue
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
            while not stop.is_set():
                connection.socket.sendall(block)
            return

    there = scripted_origin(script)
    running = gateway({**NO_CACHE, "workers": 1})

    def swallow(wire):
        memory = bytearray(1 << 20)
        with contextlib.suppress(OSError):
            while not stop.is_set() and wire.socket.recv_into(memory):
                pass

    wires = [running.wire() for _ in range(3)]
    threads = []
    try:
        for wire in wires:
            wire.send(request(there.url("/large")))
            threads.append(threading.Thread(target=swallow, args=(wire,), daemon=True))
            threads[-1].start()

        def ask():
            assert running.get(there.url("/small")).body == b"x"

        took = statistics.median(running.work(ask, 20))
        assert took < 1 * SLOWDOWN, "it goes on with the others instead"
    finally:
        stop.set()
        for wire in wires:
            wire.close()


def test_a_client_that_pipelines_without_end_leaves_others_their_turn(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: max-age=600"))
    running = gateway({"workers": 1})
    asked = request(there.url("/"))
    assert running.get(there.url("/")).body == b"x"
    stop = threading.Event()
    with running.wire() as flood:
        def swallow():
            memory = bytearray(1 << 20)
            with contextlib.suppress(OSError):
                while not stop.is_set() and flood.socket.recv_into(memory):
                    pass

        def send():
            data = asked * 2000
            with contextlib.suppress(OSError):
                while not stop.is_set():
                    flood.socket.sendall(data)

        for work in (swallow, send):
            threading.Thread(target=work, daemon=True).start()

        def ask():
            assert running.get(there.url("/")).body == b"x"

        took = statistics.median(running.work(ask, 20))
        stop.set()
    assert took < 1 * SLOWDOWN, "it goes on with the flood instead"
