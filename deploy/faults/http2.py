"""HTTP/2 of the faulty server, frame by frame: what a request's path asks for, it gets.

On a connection with `spares` set, only streams fail; otherwise whole connections do, and what else runs on
them."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any
from urllib.parse import parse_qsl

import hpack
from shared import State, body

DATA, HEADERS, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY = 1, 1, 4, 8, 32
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
INTERNAL_ERROR, REFUSED_STREAM, CANCEL, ENHANCE_YOUR_CALM = 2, 7, 8, 11
MOST, MOST_STREAM = 1 << 14, (1 << 31) - 1


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(
        ">I", stream) + payload


def literal(name: str, value: str) -> bytes:
    """A field that is in no table, of less than 127 bytes each."""
    return bytes([0, len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


# Frames that end a connection, chosen by the number of the request.
JUNK = [
    frame(DATA, 0, 0, b"x"),
    frame(SETTINGS, 0, 0, b"12345"),
    frame(PING, 0, 0, b"1234567"),
    frame(WINDOW, 0, 0, struct.pack(">I", 0)),
    frame(RESET, 0, 1 << 30 | 1, struct.pack(">I", CANCEL)),
    frame(CONTINUATION, END_HEADERS, 1, b""),
    frame(PUSH, END_HEADERS, 1, struct.pack(">I", 2)),
    b"\xff\xff\xff" + bytes([DATA, 0]) + struct.pack(">I", 1),
    b"HTTP/1.1 200 OK\r\n\r\n",
]


class Request:
    def __init__(self, fields: list[tuple[str, str]]):
        self.fields = dict(fields)
        path, _, query = self.fields[":path"].partition("?")
        _, self.fault, number, *_ = path.split("/")
        self.number, self.query = int(number), dict(parse_qsl(query))
        self.received = 0

    def asked(self, name: str, default: int = 0) -> int:
        return int(self.query.get(name, default))

    @property
    def content(self) -> bytes:
        return body(self.number, self.asked("size", 1000))


class HTTP2(asyncio.Protocol):
    """A connection."""

    def __init__(self, state: State, spares: bool):
        self.state, self.spares = state, spares
        self.buffer, self.begun = bytearray(), False
        self.decoder = hpack.Decoder()
        self.requests: dict[int, Request] = {}
        self.window, self.first_window, self.largest = 65_535, 65_535, MOST
        # What waits to be sent, and what follows it, of each stream.
        self.waiting: dict[int, tuple[bytes, bytes]] = {}
        self.windows: dict[int, int] = {}
        self.block = b""
        self.last = 0
        # The last stream that is processed.
        self.final = MOST_STREAM
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.state.connections += 1
        self.write(frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100)))

    def connection_lost(self, error: Exception | None) -> None:
        self.state.connections -= 1

    def write(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(data)

    def reset(self) -> None:
        """Ends the connection by RST."""
        connection = self.transport.get_extra_info("socket")
        if connection is not None and not self.transport.is_closing():
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def later(self, seconds: float, action: Any, *arguments: Any) -> None:
        asyncio.get_running_loop().call_later(seconds, action, *arguments)

    # Frames.

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if not self.begun:
            if len(self.buffer) < len(PREFACE):
                return
            del self.buffer[:len(PREFACE)]
            self.begun = True
        while len(self.buffer) >= 9 and not self.transport.is_closing():
            length = int.from_bytes(self.buffer[:3], "big")
            if len(self.buffer) < 9 + length:
                return
            kind, flags = self.buffer[3], self.buffer[4]
            stream = int.from_bytes(self.buffer[5:9], "big")
            payload = bytes(self.buffer[9:9 + length])
            del self.buffer[:9 + length]
            self.read(kind, flags, stream, payload)

    def read(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        match kind:
            case 1 | 9:
                if kind == HEADERS and flags & PRIORITY:
                    payload = payload[5:]
                self.block = payload if kind == HEADERS else self.block + payload
                if kind == HEADERS and flags & END_STREAM:
                    self.last = stream
                if flags & END_HEADERS:
                    self.head(stream, self.decoder.decode(self.block))
            case 0:
                self.content(stream, flags, payload)
            case 3:
                self.forget(stream)
            case 4 if not flags & ACK:
                self.settings(payload)
            case 6 if not flags & ACK:
                self.write(frame(PING, ACK, 0, payload))
            case 8:
                self.opened(stream, int.from_bytes(payload, "big"))

    def settings(self, payload: bytes) -> None:
        for at in range(0, len(payload), 6):
            name, value = struct.unpack(">HI", payload[at:at + 6])
            if name == 4:
                for stream in self.windows:
                    self.windows[stream] += value - self.first_window
                self.first_window = value
            elif name == 5:
                self.largest = value
        self.write(frame(SETTINGS, ACK, 0))
        self.send_all()

    def opened(self, stream: int, size: int) -> None:
        if stream == 0:
            self.window += size
        elif stream in self.windows:
            self.windows[stream] += size
        self.send_all()

    def forget(self, stream: int) -> None:
        for table in (self.requests, self.waiting, self.windows):
            table.pop(stream, None)

    # Requests.

    def head(self, stream: int, fields: list[tuple[str, str]]) -> None:
        request = Request(fields)
        self.state.count(request.fault)
        self.requests[stream] = request
        self.windows[stream] = self.first_window
        if request.fault == "upload-reset":
            self.later(0.002, self.end, stream, INTERNAL_ERROR)
        elif request.fault == "upload-early":
            self.answer(stream, 413, b"")
            self.later(0.002, self.end, stream, 0)
        elif self.last == stream:
            self.respond(stream, request)

    def content(self, stream: int, flags: int, payload: bytes) -> None:
        request = self.requests.get(stream)
        if payload:
            self.write(frame(WINDOW, 0, 0, struct.pack(">I", len(payload))))
        if request is None:
            return
        request.received += len(payload)
        if request.fault == "upload-stall":
            return
        if payload and not flags & END_STREAM:
            self.write(frame(WINDOW, 0, stream, struct.pack(">I", len(payload))))
        if flags & END_STREAM and request.fault != "upload-reset":
            self.respond(stream, request)

    def respond(self, stream: int, request: Request) -> None:
        if stream > self.final:
            # It has been said that this is not processed.
            return
        action = getattr(self, "do_" + request.fault.replace("-", "_"), None)
        if action is None or self.spares and action.__name__ in CONNECTIONS:
            self.answer(stream, 500, b"")
        else:
            action(stream, request)

    def headers(self, stream: int, status: int, *fields: tuple[str, str], end: bool = False) -> None:
        block = bytes([0x08, 3]) + str(status).encode() + b"".join(
            literal(name, value) for name, value in fields)
        self.write(frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, block))

    def answer(self, stream: int, status: int, content: bytes, *fields: tuple[str, str]) -> None:
        self.headers(stream, status, ("content-length", str(len(content))), *fields,
                     end=not content)
        if content:
            self.send(stream, content, b"")
        else:
            self.forget(stream)

    def send(self, stream: int, content: bytes, after: bytes | None) -> None:
        """Sends content as the windows allow, and then frames, with the end of the stream before them if
        they are empty; with None the stream stays as it is."""
        self.waiting[stream] = (content, after)  # type: ignore[assignment]
        self.send_all()

    def send_all(self) -> None:
        for stream, (content, after) in list(self.waiting.items()):
            at = 0
            if not content and after == b"":
                self.write(frame(DATA, END_STREAM, stream))
            while at < len(content):
                size = min(MOST, len(content) - at, self.window, self.windows[stream])
                if size <= 0:
                    break
                self.window -= size
                self.windows[stream] -= size
                ends = END_STREAM if after == b"" and at + size == len(content) else 0
                self.write(frame(DATA, ends, stream, content[at:at + size]))
                at += size
            if at < len(content):
                self.waiting[stream] = (content[at:], after)
                continue
            del self.waiting[stream]
            if after is None:
                continue
            if after:
                self.write(after)
            self.forget(stream)

    def end(self, stream: int, code: int) -> None:
        self.write(frame(RESET, 0, stream, struct.pack(">I", code)))
        self.forget(stream)

    # Without a fault.

    def do_whole(self, stream: int, request: Request) -> None:
        if request.fields[":method"] == "HEAD":
            self.headers(stream, 200, ("content-length", request.query.get("size", "1000")), end=True)
            self.forget(stream)
        else:
            self.answer(stream, 200, request.content)

    def do_cacheable(self, stream: int, request: Request) -> None:
        self.answer(stream, 200, request.content, ("cache-control", "max-age=60"))

    def do_empty(self, stream: int, request: Request) -> None:
        self.headers(stream, 204, end=True)
        self.forget(stream)

    def do_unsized(self, stream: int, request: Request) -> None:
        self.headers(stream, 200)
        self.send(stream, request.content, b"")

    def do_chunked(self, stream: int, request: Request) -> None:
        self.headers(stream, 200)
        self.send(stream, request.content,
                  frame(HEADERS, END_HEADERS | END_STREAM, stream, literal("end", "yes")))

    def do_interim(self, stream: int, request: Request) -> None:
        for _ in range(3):
            self.headers(stream, 103, ("link", "</a>; rel=preload"))
        self.answer(stream, 200, request.content)

    def do_dripping(self, stream: int, request: Request) -> None:
        self.headers(stream, 200)
        content = request.content
        step = max(1, len(content) // 3)
        parts = [content[at:at + step] for at in range(0, len(content), step)] or [b""]

        def next_part() -> None:
            if stream in self.windows and stream not in self.waiting and parts:
                part = parts.pop(0)
                self.send(stream, part, None if parts else b"")
            if parts:
                self.later(0.002, next_part)
        next_part()

    def do_gzip(self, stream: int, request: Request) -> None:
        self.answer(stream, 200, self.state.compressed(request.content), ("content-encoding", "gzip"))

    def do_upload(self, stream: int, request: Request) -> None:
        self.answer(stream, 200, str(request.received).encode())

    def do_token(self, stream: int, request: Request) -> None:
        self.answer(stream, 200, self.state.new_token().encode())

    def do_protected(self, stream: int, request: Request) -> None:
        word, _, token = request.fields.get("authorization", "").partition(" ")
        good = word == "Bearer" and self.state.uses(token)
        self.answer(stream, 200 if good else 401, request.content if good else b"")

    # Streams that fail.

    def do_reset_early(self, stream: int, request: Request) -> None:
        self.end(stream, (INTERNAL_ERROR, CANCEL, ENHANCE_YOUR_CALM)[request.number % 3])

    def do_refused(self, stream: int, request: Request) -> None:
        self.end(stream, REFUSED_STREAM)

    def do_refused_once(self, stream: int, request: Request) -> None:
        if self.state.fails(request.number, 1):
            self.end(stream, REFUSED_STREAM)
        else:
            self.answer(stream, 200, request.content)

    def do_reset_body(self, stream: int, request: Request) -> None:
        self.headers(stream, 200)
        code = (INTERNAL_ERROR, CANCEL, ENHANCE_YOUR_CALM)[request.number % 3]
        self.send(stream, request.content, frame(RESET, 0, stream, struct.pack(">I", code)))

    def do_close_body(self, stream: int, request: Request) -> None:
        content = request.content
        self.headers(stream, 200, ("content-length", str(len(content) + 10)))
        self.send(stream, content, b"")

    def do_bad_head(self, stream: int, request: Request) -> None:
        block = [
            literal("server", "no status"),
            literal(":status", "abc"),
            literal(":status", "200") + literal("Upper", "case"),
            literal(":status", "200") + literal(":path", "/"),
            literal(":status", "200") + literal("connection", "close"),
            literal(":status", "200") + literal("content-length", "-1"),
        ][request.number % 6]
        self.write(frame(HEADERS, END_HEADERS | END_STREAM, stream, block))
        self.forget(stream)

    def do_slow_head(self, stream: int, request: Request) -> None:
        pass

    def do_slow_body(self, stream: int, request: Request) -> None:
        self.headers(stream, 200)
        self.send(stream, request.content, None)

    # Requests that are sent again.

    def do_flaky(self, stream: int, request: Request) -> None:
        fails = self.state.fails(request.number, request.asked("fails"))
        self.answer(stream, 503 if fails else 200, b"" if fails else request.content)

    def do_flaky_connection(self, stream: int, request: Request) -> None:
        if self.state.fails(request.number, request.asked("fails")):
            self.end(stream, INTERNAL_ERROR)
        else:
            self.answer(stream, 200, request.content)

    def do_busy(self, stream: int, request: Request) -> None:
        self.answer(stream, 503, b"busy")

    def do_redirect(self, stream: int, request: Request) -> None:
        hops = request.asked("hops")
        target = f"/redirect/{request.number}?hops={hops - 1}&size={request.asked('size', 1000)}"
        if hops == 0:
            self.answer(stream, 200, request.content)
        else:
            self.answer(stream, (302, 303, 307)[hops % 3], b"", ("location", target))

    def do_redirect_to(self, stream: int, request: Request) -> None:
        self.answer(stream, request.asked("status", 302), b"moved", ("location", request.query["to"]))

    def do_loop(self, stream: int, request: Request) -> None:
        self.answer(stream, 302, b"", ("location", f"/loop/{request.number}"))

    # Connections that fail.

    def goaway(self, last: int, code: int) -> None:
        # It must not become more again (RFC 9113 section 6.8).
        self.final = min(self.final, last)
        self.write(frame(GOAWAY, 0, 0, struct.pack(">II", self.final, code)))

    def do_goaway(self, stream: int, request: Request) -> None:
        """The request is not processed, and those after it."""
        self.goaway(max(0, stream - 2), 0)
        self.later(0.01, self.transport.close)

    def do_goaway_after(self, stream: int, request: Request) -> None:
        self.goaway(stream, 0)
        self.answer(stream, 200, request.content)
        self.later(0.01, self.transport.close)

    def do_goaway_error(self, stream: int, request: Request) -> None:
        self.goaway(stream, ENHANCE_YOUR_CALM)
        self.transport.close()

    def do_cut(self, stream: int, request: Request) -> None:
        self.reset()

    def do_cut_body(self, stream: int, request: Request) -> None:
        self.headers(stream, 200)
        self.send(stream, request.content, None)
        self.later(0.001, self.reset)

    def do_junk(self, stream: int, request: Request) -> None:
        self.write(JUNK[request.number % len(JUNK)])
        self.later(0.05, self.transport.close)

    def do_bad_block(self, stream: int, request: Request) -> None:
        self.write(frame(HEADERS, END_HEADERS, stream, b"\xff\xff\xff\xff\xff"))
        self.later(0.05, self.transport.close)

    def do_endless_block(self, stream: int, request: Request) -> None:
        self.write(frame(HEADERS, 0, stream, bytes([0x08, 3]) + b"200"))
        self.write(frame(CONTINUATION, 0, stream, literal("a", "b" * 100) * 100) * 12)
        self.later(0.05, self.transport.close)


CONNECTIONS = {"do_goaway", "do_goaway_after", "do_goaway_error", "do_cut", "do_cut_body", "do_junk",
               "do_bad_block", "do_endless_block"}
