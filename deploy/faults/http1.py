"""HTTP/1 of the faulty server: what a request's path asks for, it gets."""

from __future__ import annotations

import asyncio
import gzip
import re
import socket
import struct
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from shared import State, body

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
EXPECT = re.compile(rb"\r\nexpect: *100-continue", re.IGNORECASE)
BEARER = re.compile(rb"\r\nauthorization: *bearer ([\w-]+)", re.IGNORECASE)

# The first byte of a message of TLS.
TLS_HANDSHAKE = 0x16

# Heads that no client can accept, chosen by the number of the request.
BAD_HEADS = [
    b"HTTP/1.1 abc OK\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nno colon here\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nna\x00me: value\r\ncontent-length: 0\r\n\r\n",
    b"\x16\x03\x01\x00\x00garbage\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: rot13\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nlong: " + b"x" * 70_000 + b"\r\ncontent-length: 0\r\n\r\n",
]
BAD_CHUNKS = [b"xyz\r\n", b"-5\r\nhello\r\n", b"5\r\nhelloXX", b"fffffffffffffffff\r\n"]


class Request:
    """A request whose head has arrived."""

    def __init__(self, head: bytes):
        line, _, _ = head.partition(b"\r\n")
        method, target, _ = line.split(b" ")
        path, _, query = target.decode().partition("?")
        _, self.fault, number, *_ = path.split("/")
        self.method, self.head, self.number = method.decode(), head, int(number)
        self.query = dict(parse_qsl(query))
        length = LENGTH.search(head)
        self.left = int(length[1]) if length else 0
        self.chunked = CHUNKED.search(head) is not None
        self.received = 0

    def asked(self, name: str, default: int = 0) -> int:
        return int(self.query.get(name, default))


class HTTP1(asyncio.Protocol):
    """A connection."""

    def __init__(self, state: State):
        self.state = state
        self.buffer = bytearray()
        self.request: Request | None = None
        self.ignores = False
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.state.connections += 1

    def connection_lost(self, error: Exception | None) -> None:
        self.state.connections -= 1

    # What is written and how a connection ends.

    def write(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(data)

    def close(self) -> None:
        """Ends the connection as it is done properly."""
        self.transport.close()

    def cut(self) -> None:
        """Ends the connection without a word of TLS."""
        self.transport.abort()

    def reset(self) -> None:
        """Ends the connection by RST."""
        with_socket = self.transport.get_extra_info("socket")
        if with_socket is not None and not self.transport.is_closing():
            with_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def reset_in_time(self, pauses: int = 50) -> None:
        """Ends a connection that is not read, in ten seconds in which this process runs: the client may have
        ended it, which nobody sees behind what it had to send."""
        if pauses == 0:
            self.reset()
        elif not self.transport.is_closing():
            self.later(0.2, lambda: self.reset_in_time(pauses - 1))

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(seconds, action)

    def answer(self, status: str, content: bytes = b"", *fields: str) -> None:
        lines = [f"HTTP/1.1 {status}", f"content-length: {len(content)}", *fields, "", ""]
        self.write("\r\n".join(lines).encode() + content)

    # Requests.

    def data_received(self, data: bytes) -> None:
        if self.ignores:
            return
        self.buffer += data
        if self.request is None and self.buffer[0] == TLS_HANDSHAKE:
            self.state.count("tls")
            self.answer("400 Bad Request", b"", "connection: close")
            self.close()
            return
        while self.buffer and not self.transport.is_closing():
            if self.request is None:
                end = self.buffer.find(b"\r\n\r\n")
                if end < 0:
                    return
                self.request = Request(bytes(self.buffer[:end]))
                del self.buffer[:end + 4]
                self.state.count(self.request.fault)
                if self.begin(self.request):
                    self.ignores = self.request is not None
                    return
            if not self.read(self.request):
                return
            request, self.request = self.request, None
            self.respond(request)

    def begin(self, request: Request) -> bool:
        """What happens at a request's head. Whether nothing more is read."""
        match request.fault:
            case "upload-reset":
                self.later(0.002, self.reset)
            case "upload-early":
                self.answer("413 Content Too Large", b"", "connection: close")
                self.later(0.05, self.close)
            case "upload-stall":
                self.transport.pause_reading()
                self.reset_in_time()
            case "refuse-expectation":
                if not EXPECT.search(request.head):
                    return False
                self.answer("417 Expectation Failed", b"", "connection: close")
                self.later(0.05, self.close)
            case "reject-expectation":
                self.answer("403 Forbidden", b"", "connection: close")
                self.later(0.05, self.close)
            case "upload-expected":
                if EXPECT.search(request.head):
                    self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                return False
            case _:
                return False
        return True

    def read(self, request: Request) -> bool:
        """Whether the whole content of a request has arrived."""
        if not request.chunked:
            taken = min(request.left, len(self.buffer))
            del self.buffer[:taken]
            request.received += taken
            request.left -= taken
            return request.left == 0
        while True:
            end = self.buffer.find(b"\r\n")
            if end < 0:
                return False
            size = int(bytes(self.buffer[:end]), 16)
            if len(self.buffer) < end + 4 + size:
                return False
            del self.buffer[:end + 4 + size]
            request.received += size
            if size == 0:
                return True

    def respond(self, request: Request) -> None:
        action = getattr(self, "do_" + request.fault.replace("-", "_"), None)
        if action is None:
            self.answer("500 Unknown Fault")
        else:
            action(request)

    def content(self, request: Request) -> bytes:
        return body(request.number, request.asked("size", 1000))

    # Without a fault.

    def do_whole(self, request: Request) -> None:
        fields = ["set-cookie: seen=1; path=/"] if request.number % 16 == 0 else []
        if request.method == "HEAD":
            self.write(f"HTTP/1.1 200 OK\r\ncontent-length: {request.asked('size')}\r\n\r\n".encode())
        else:
            self.answer("200 OK", self.content(request), *fields)

    def do_cacheable(self, request: Request) -> None:
        self.answer("200 OK", self.content(request), "cache-control: max-age=60", 'etag: "1"')

    def do_empty(self, request: Request) -> None:
        self.write(b"HTTP/1.1 204 No Content\r\n\r\n")

    def do_closing(self, request: Request) -> None:
        self.answer("200 OK", self.content(request), "connection: close")
        self.close()

    def do_unannounced(self, request: Request) -> None:
        self.answer("200 OK", str(request.received).encode() if request.method == "POST"
                    else self.content(request))
        self.close()

    def do_unsized(self, request: Request) -> None:
        self.write(b"HTTP/1.1 200 OK\r\n\r\n" + self.content(request))
        self.close()

    def chunks(self, request: Request) -> list[bytes]:
        content = self.content(request)
        step = max(1, len(content) // 3)
        parts = [content[at:at + step] for at in range(0, len(content), step)]
        return [b"%x\r\n%b\r\n" % (len(part), part) for part in parts]

    def do_chunked(self, request: Request) -> None:
        self.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: end\r\n\r\n"
                   + b"".join(self.chunks(request)) + b"0\r\nend: yes\r\n\r\n")

    def do_interim(self, request: Request) -> None:
        self.write(b"HTTP/1.1 103 Early Hints\r\nlink: </a>; rel=preload\r\n\r\n" * 3)
        self.answer("200 OK", self.content(request))

    def do_dripping(self, request: Request) -> None:
        parts = [b"HTTP/1.1 200 OK\r\ntransfer-en", b"coding: chunked\r\n\r\n",
                 *self.chunks(request), b"0\r", b"\n\r\n"]

        def next_part() -> None:
            if parts and not self.transport.is_closing():
                self.write(parts.pop(0))
                self.later(0.002, next_part)
        next_part()

    def do_gzip(self, request: Request) -> None:
        self.answer("200 OK", self.state.compressed(self.content(request)), "content-encoding: gzip")

    def do_upload(self, request: Request) -> None:
        self.answer("200 OK", str(request.received).encode())

    do_upload_expected = do_refuse_expectation = do_upload

    # Connections that end.

    def do_reset_early(self, request: Request) -> None:
        self.reset()

    def do_close_early(self, request: Request) -> None:
        self.cut()

    def do_reset_head(self, request: Request) -> None:
        self.write(b"HTTP/1.1 200 OK\r\ncontent-le")
        self.reset()

    def do_close_head(self, request: Request) -> None:
        self.write(b"HTTP/1.1 200 OK\r\ncontent-le")
        self.close()

    def half(self, request: Request) -> None:
        content = self.content(request)
        self.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (len(content) + 10) + content)

    def do_reset_body(self, request: Request) -> None:
        self.half(request)
        self.later(0.002, self.reset)

    def do_close_body(self, request: Request) -> None:
        self.half(request)
        self.close()

    def do_close_chunk(self, request: Request) -> None:
        self.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
                   + b"".join(self.chunks(request))[:-5])
        self.close()

    # Messages that are wrong.

    def do_bad_chunk(self, request: Request) -> None:
        self.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
                   + self.chunks(request)[0] + BAD_CHUNKS[request.number % len(BAD_CHUNKS)])
        self.later(0.05, self.close)

    def do_bad_head(self, request: Request) -> None:
        self.write(BAD_HEADS[request.number % len(BAD_HEADS)])
        self.later(0.05, self.close)

    def do_bad_gzip(self, request: Request) -> None:
        whole = gzip.compress(self.content(request), 1)
        damaged = whole[:len(whole) // 2] if request.number % 2 else b"not gzip" + whole
        self.answer("200 OK", damaged, "content-encoding: gzip")

    # What a client that spoke HTTP/2 asks for when it does not any more.
    do_junk = do_bad_block = do_endless_block = do_bad_head

    # Slow ones: the client ends the connection.

    def do_slow_head(self, request: Request) -> None:
        if request.number % 2:
            self.write(b"HTTP/1.1 200 OK\r\ncontent-le")

    def do_slow_body(self, request: Request) -> None:
        self.half(request)

    # Requests that are sent again.

    def do_flaky(self, request: Request) -> None:
        if self.state.fails(request.number, request.asked("fails")):
            fields = ["retry-after: 0"] if request.number % 2 else []
            self.answer("503 Service Unavailable", b"", *fields)
        else:
            self.answer("200 OK", self.content(request))

    def do_flaky_connection(self, request: Request) -> None:
        if self.state.fails(request.number, request.asked("fails")):
            self.reset()
        else:
            self.answer("200 OK", self.content(request))

    def do_busy(self, request: Request) -> None:
        self.answer("503 Service Unavailable", b"busy")

    def do_redirect(self, request: Request) -> None:
        hops = request.asked("hops")
        target = f"/redirect/{request.number}?hops={hops - 1}&size={request.asked('size', 1000)}"
        if hops == 0:
            self.answer("200 OK", self.content(request))
        else:
            self.answer(("302 Found", "303 See Other", "307 Temporary Redirect")[hops % 3], b"",
                        f"location: {target}")

    def do_redirect_to(self, request: Request) -> None:
        status = request.query.get("status", "302")
        self.answer(f"{status} Redirect", b"moved", f"location: {request.query['to']}")

    def do_loop(self, request: Request) -> None:
        self.answer("302 Found", b"", f"location: /loop/{request.number}")

    def do_two_locations(self, request: Request) -> None:
        self.answer("302 Found", b"", "location: /whole/1", "location: /whole/2")

    def do_token(self, request: Request) -> None:
        self.answer("200 OK", self.state.new_token().encode())

    def do_protected(self, request: Request) -> None:
        token = BEARER.search(request.head)
        if token and self.state.uses(token[1].decode()):
            self.answer("200 OK", self.content(request))
        else:
            self.answer("401 Unauthorized")
