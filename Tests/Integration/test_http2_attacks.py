"""What a client of HTTP/2 can do that costs work and brings nothing: what reaches the server, what
stays in memory, whether others notice, and how the client is told."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from support.frames import (
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, PING, PRIORITY, RESET,
    SETTINGS, WINDOW, Attacker, block, bytes_of, frame, literal)
from support.http2 import HTTP2Client
from support.origin import HTTPOrigin, reply, serving
from support.wait import until

COUNT = 3000
# What a gateway may send in the way of requests for one connection: its concurrent streams.
STREAMS = 100


def rapid_reset(one: Attacker) -> Iterator[bytes]:
    for _ in range(COUNT):
        yield one.request(path="/attack") + frame(RESET, 0, one.stream, b"\0\0\0\x08")


def made_to_reset_by_window(one: Attacker) -> Iterator[bytes]:
    for _ in range(COUNT):
        yield one.request(path="/attack") + frame(WINDOW, 0, one.stream, b"\0\0\0\0")


def made_to_reset_by_overflow(one: Attacker) -> Iterator[bytes]:
    for _ in range(COUNT):
        yield one.request(path="/attack") + frame(WINDOW, 0, one.stream, b"\x7f\xff\xff\xff")


def made_to_reset_by_data(one: Attacker) -> Iterator[bytes]:
    for _ in range(COUNT):
        yield one.request(path="/attack") + frame(DATA, 0, one.stream, b"x")


def made_to_reset_by_priority(one: Attacker) -> Iterator[bytes]:
    for _ in range(COUNT):
        yield one.request(path="/attack") + frame(PRIORITY, 0, one.stream, b"\0\0\0\0")


def made_to_reset_by_headers(one: Attacker) -> Iterator[bytes]:
    for _ in range(COUNT):
        yield one.request(path="/attack") + frame(
            HEADERS, END_HEADERS | END_STREAM, one.stream, literal("x", "y"))


def malformed_heads(one: Attacker) -> Iterator[bytes]:
    for _ in range(COUNT):
        yield frame(HEADERS, END_HEADERS | END_STREAM, one.next(), literal("Connection", "close"))


def streams_beyond_the_limit(one: Attacker) -> Iterator[bytes]:
    for _ in range(COUNT):
        yield one.request(path="/attack", flags=END_HEADERS, method="POST")


def continuations(one: Attacker) -> Iterator[bytes]:
    yield frame(HEADERS, 0, one.next(), block(one.authority))
    for _ in range(COUNT):
        yield frame(CONTINUATION, 0, one.stream, literal("x-more", "y" * 50))


def empty_continuations(one: Attacker) -> Iterator[bytes]:
    yield frame(HEADERS, 0, one.next(), block(one.authority))
    for _ in range(COUNT):
        yield frame(CONTINUATION, 0, one.stream)


def compression_bombs(one: Attacker) -> Iterator[bytes]:
    """A large entry of the table, referred to a thousand times by each head."""
    yield frame(HEADERS, END_HEADERS | END_STREAM, one.next(),
                block(one.authority) + b"\x40" + bytes_of(b"x") + bytes_of(b"y" * 3900))
    for _ in range(200):
        yield frame(HEADERS, END_HEADERS | END_STREAM, one.next(),
                    block(one.authority) + b"\xbe" * 8000)


def pings(one: Attacker) -> Iterator[bytes]:
    for _ in range(COUNT):
        yield frame(PING, 0, 0, b"12345678")


def settings(one: Attacker) -> Iterator[bytes]:
    for number in range(COUNT):
        yield frame(SETTINGS, 0, 0, b"\0\x04" + struct.pack(">I", 1000 + number % 100))


def priorities(one: Attacker) -> Iterator[bytes]:
    for number in range(4 * COUNT):
        yield frame(PRIORITY, 0, 2 * number + 1, b"\0\0\0\0\x10")


def unknown_frames(one: Attacker) -> Iterator[bytes]:
    for _ in range(4 * COUNT):
        yield frame(0xFA, 0, 0, b"x")


def empty_data(one: Attacker) -> Iterator[bytes]:
    yield one.request(path="/upload", flags=END_HEADERS, method="POST")
    for _ in range(COUNT):
        yield frame(DATA, 0, one.stream)


def padding(one: Attacker) -> Iterator[bytes]:
    yield one.request(path="/upload", flags=END_HEADERS, method="POST")
    for _ in range(200):
        yield frame(DATA, PADDED, one.stream, bytes([255]) + bytes(255))


def tiny_windows(one: Attacker) -> Iterator[bytes]:
    yield frame(SETTINGS, 0, 0, b"\0\x04\0\0\0\0")
    yield one.request(path="/large")
    for _ in range(COUNT):
        yield frame(WINDOW, 0, one.stream, b"\0\0\0\x01")


def goaways(one: Attacker) -> Iterator[bytes]:
    for _ in range(COUNT):
        yield frame(GOAWAY, 0, 0, bytes(8))


@dataclass
class Attack:
    send: Callable[[Attacker], Iterator[bytes]]
    # Whether the connection is ended, and says why.
    ends: bool = True


ATTACKS = [
    Attack(rapid_reset), Attack(made_to_reset_by_window), Attack(made_to_reset_by_overflow),
    Attack(made_to_reset_by_data, False), Attack(made_to_reset_by_priority),
    Attack(made_to_reset_by_headers, False), Attack(malformed_heads),
    Attack(streams_beyond_the_limit, False), Attack(continuations), Attack(empty_continuations),
    Attack(compression_bombs, False), Attack(pings), Attack(settings), Attack(priorities),
    Attack(unknown_frames), Attack(empty_data), Attack(padding, False), Attack(tiny_windows),
    Attack(goaways)]


@pytest.fixture(scope="module")
def there():
    large = os.urandom(200_000)
    with serving(HTTPOrigin(lambda seen: reply(
            large if seen.target == "/large" else b"x" * 100, "200 OK",
            "Cache-Control: no-store"))) as made:
        yield made


@pytest.mark.parametrize("attack", ATTACKS, ids=[attack.send.__name__ for attack in ATTACKS])
def test_an_attack_reaches_nothing(gateway, there, attack):
    running = gateway({"cache": {"enabled": False}, "workers": 1})
    bystander = HTTP2Client(running.proxy)
    bystander.get("/before", authority=there.authority)
    before = sum(seen.target == "/attack" for seen in there.requests)
    attacker = Attacker(running.proxy, there.authority).reads()
    try:
        pending = b""
        for part in attack.send(attacker):
            pending += part
            if len(pending) > 8000:
                if not attacker.send(pending):
                    break
                pending = b""
        attacker.send(pending)
        assert bystander.get("/beside", authority=there.authority).status == 200
        if attack.ends:
            assert attacker.ended.wait(20), "the connection is ended"
            assert any(text for _, text in attacker.goaways), "it says what was counted"
    finally:
        attacker.close()
    reached = sum(seen.target == "/attack" for seen in there.requests) - before
    assert reached <= STREAMS, f"{reached} requests reached the server"
    assert bystander.get("/after", authority=there.authority).status == 200
    assert bystander.goaway is None
    bystander.close()
    until(lambda: running.metric("pinfold_upstream_connections_open") <= STREAMS, "none is left")


def test_a_client_that_never_reads_holds_little(gateway, there):
    running = gateway({"cache": {"enabled": False}, "workers": 1})
    with contextlib.ExitStack() as stack:
        client = HTTP2Client(running.proxy)
        stack.callback(client.close)
        client.get("/before", authority=there.authority)
        before = running.rss_bytes
        attacker = Attacker(running.proxy, there.authority)
        stack.callback(attacker.close)
        for _ in range(STREAMS):
            attacker.send(attacker.request(path="/large"))
        until(lambda: sum(seen.target == "/large" for seen in there.requests) >= STREAMS,
              "all are asked for")
        assert client.get("/beside", authority=there.authority).status == 200
        assert running.rss_bytes - before < 40 << 20
