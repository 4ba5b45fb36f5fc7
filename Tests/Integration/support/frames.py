"""Frames of HTTP/2 as bytes, and a client that sends any of them."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterable

import hpack

DATA, HEADERS, PRIORITY, RESET, SETTINGS, PING, GOAWAY, WINDOW, CONTINUATION, PRIORITY_UPDATE = (
    0, 1, 2, 3, 4, 6, 7, 8, 9, 16)
END_STREAM, END_HEADERS, PADDED = 1, 4, 8
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(
        ">I", stream) + payload


def block(
    authority: str, path: str = "/", method: str = "GET", *more: tuple[str, str],
    scheme: str = "http"
) -> bytes:
    """A field block that needs no table."""
    fields = [(":method", method), (":scheme", scheme), (":authority", authority),
              (":path", path), *more]
    return b"".join(literal(name, value) for name, value in fields)


def literal(name: str, value: str) -> bytes:
    return b"\x00" + bytes_of(name.encode()) + bytes_of(value.encode())


def bytes_of(text: bytes) -> bytes:
    return hpack.hpack.encode_integer(len(text), 7) + text


class Attacker:
    """A connection that sends frames without reading, and remembers how it ends."""

    def __init__(self, address: tuple[str, int], authority: str, begins: bool = True):
        self.authority = authority
        self.socket = socket.create_connection(address)
        self.socket.settimeout(20)
        self.stream = -1
        self.received = bytearray()
        self.ended = threading.Event()
        if begins:
            self.send(PREFACE + frame(SETTINGS, 0, 0))
        self.reader = threading.Thread(target=self._read, daemon=True)

    def reads(self) -> Attacker:
        self.reader.start()
        return self

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := self.socket.recv(1 << 16):
                self.received += data
        self.ended.set()

    def send(self, data: bytes) -> bool:
        try:
            self.socket.sendall(data)
            return True
        except OSError:
            return False

    def next(self) -> int:
        self.stream += 2
        return self.stream

    def request(
        self, flags: int = END_HEADERS | END_STREAM, fields: Iterable[tuple[str, str]] = (),
        path: str = "/", method: str = "GET"
    ) -> bytes:
        return frame(HEADERS, flags, self.next(), block(self.authority, path, method, *fields))

    def frames(self, kind: int | None = None) -> list[tuple[int, int, int, bytes]]:
        """What has arrived: kinds, flags, streams and payloads."""
        found, data = [], bytes(self.received)
        while len(data) >= 9:
            length = int.from_bytes(data[:3], "big")
            if len(data) < 9 + length:
                break
            found.append((data[3], data[4], int.from_bytes(data[5:9], "big"), data[9:9 + length]))
            data = data[9 + length:]
        return [one for one in found if kind is None or one[0] == kind]

    @property
    def goaways(self) -> list[tuple[int, bytes]]:
        """The codes and texts of the GOAWAY frames that have arrived."""
        return [(struct.unpack(">I", payload[4:8])[0], payload[8:])
                for _, _, _, payload in self.frames(GOAWAY)]

    def close(self) -> None:
        self.socket.close()
