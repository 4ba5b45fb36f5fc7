"""What the measurements of HTTP/2 have around them: a gateway, a server in a process of its own, and
connections that send frames."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/Integration"))
# Where the support finds the gateway is decided when it is imported.
for argument, following in zip(sys.argv, [*sys.argv[1:], ""]):
    if argument == "--binary" or argument.startswith("--binary="):
        os.environ["PINFOLD_BINARY"] = argument.partition("=")[2] or following

import hpack  # noqa: E402
from support.frames import (  # noqa: E402
    DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PREFACE, RESET, SETTINGS, WINDOW, block, frame)
from support.gateway import Gateway, merged  # noqa: E402

ACKNOWLEDGED = frame(SETTINGS, 1, 0)


def apart(run: Callable[..., None], *arguments: object) -> Connection:
    """Runs a function in a process of its own, which begins with one end of a pipe; returns the
    other. The process ends with this one."""
    mine, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=run, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    return mine


@contextlib.contextmanager
def running(config: dict) -> Iterator[Gateway]:
    """A gateway with one worker, a cache in memory and no access log."""
    base = {
        "workers": 1, "admin": {"address": "127.0.0.1:0"},
        "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"}],
        "access": {"clients": ["127.0.0.0/8"], "destinations": {"allow": ["127.0.0.0/8"]}},
        "cache": {"memory": "64MiB", "disk": "0"}, "log": {"level": "info", "access": "none"}}
    with tempfile.TemporaryDirectory() as folder:
        gateway = Gateway(Path(folder), merged(base, config), [])
        gateway.start()
        try:
            yield gateway
        finally:
            gateway.stop()


class Frames:
    """A connection of a client, which reads frame by frame."""

    def __init__(self, wire: socket.socket, authority: str, window: int = 65535, scheme: str = "http"):
        wire.settimeout(30)
        self.wire, self.authority, self.scheme, self.stream = wire, authority, scheme, -1
        self.buffer = b""
        beginning = PREFACE + frame(SETTINGS, 0, 0, b"\0\x04" + struct.pack(">I", window))
        self.wire.sendall(beginning + frame(WINDOW, 0, 0, struct.pack(">I", 0x7FFF0000)))

    def begin(self, path: str) -> int:
        """Asks for a path; returns the stream."""
        self.stream += 2
        fields = block(self.authority, path, scheme=self.scheme)
        self.wire.sendall(frame(HEADERS, END_HEADERS | END_STREAM, self.stream, fields))
        return self.stream

    def ask(self, fields: list[tuple[str, str]], path: str = "/stored/small") -> int:
        """The same with more fields, compressed."""
        self.stream += 2
        encoded = hpack.Encoder().encode([
            (":method", "GET"), (":scheme", self.scheme), (":authority", self.authority),
            (":path", path), *fields])
        self.wire.sendall(frame(HEADERS, END_HEADERS | END_STREAM, self.stream, encoded))
        return self.stream

    def next(self) -> tuple[int, int, int, int]:
        """The next frame: its kind, flags, stream, and how long its payload is."""
        while True:
            if len(self.buffer) >= 9:
                length = int.from_bytes(self.buffer[:3], "big")
                if len(self.buffer) >= 9 + length:
                    head = self.buffer[:9]
                    self.buffer = self.buffer[9 + length:]
                    break
            part = self.wire.recv(1 << 18)
            if not part:
                raise ConnectionError("the gateway has closed the connection")
            self.buffer += part
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:9], "big")
        if kind == SETTINGS and not flags & 1:
            self.wire.sendall(ACKNOWLEDGED)
        if kind in (GOAWAY, RESET):
            raise ConnectionError(f"a frame of type {kind} for stream {stream}")
        return kind, flags, stream, length

    def finish(self, stream: int) -> int:
        """Reads a stream to its end; returns the number of bytes of its content."""
        count = 0
        while True:
            kind, flags, of, length = self.next()
            if of != stream:
                continue
            if kind == DATA:
                count += length
            if flags & END_STREAM:
                return count

    def get(self, path: str) -> int:
        return self.finish(self.begin(path))
