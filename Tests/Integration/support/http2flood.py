"""The floods of `support.flood` over HTTP/2: by clients of the gateway, and by a server.
`python -m support.http2flood KIND HOST PORT CONNECTIONS SECONDS TARGET`.

Whole frames are written here, not a library's calls: it is the gateway that is to be busy."""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

import hpack

from .flood import Flood, flooding, main
from .frames import (
    DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, SETTINGS, WINDOW, block, frame, literal)

# The name by which the flood's own server is asked in HTTP/2.
SERVER = "flood.test"
WINDOW_BYTES, CREDIT = 1 << 30, 64 << 20
ACKNOWLEDGED = 1
OK = literal(":status", "200")


class Peer:
    """One side of a connection. A thread reads it; `opened` is told of the heads that arrive."""

    def __init__(self, sock: socket.socket, begins: bytes,
                 opened: Callable[[Peer, int, bytes], None] = lambda *_: None):
        self.socket = sock
        self.opened = opened
        self.changed = threading.Condition()
        self._sending = threading.Lock()
        self.windows: dict[int, int] = {0: 65_535}
        self.initial = 65_535
        self.is_closed = False
        self._owed: dict[int, int] = {}
        # What the peer may send: as much as it likes.
        self.send(begins + frame(SETTINGS, 0, 0, b"\0\4" + WINDOW_BYTES.to_bytes(4, "big"))
                  + self._credit(0, WINDOW_BYTES))

    def send(self, data: bytes) -> None:
        with self._sending:
            self.socket.sendall(data)

    @staticmethod
    def _credit(stream: int, count: int) -> bytes:
        return frame(WINDOW, 0, stream, count.to_bytes(4, "big"))

    def read(self) -> None:
        """Until the connection ends."""
        data = bytearray()
        with contextlib.suppress(OSError):
            while part := self.socket.recv(1 << 18):
                data += part
                self._take(data)
        with self.changed:
            self.is_closed = True
            self.changed.notify_all()

    def _take(self, data: bytearray) -> None:
        start, answer = 0, bytearray()
        with self.changed:
            while len(data) - start >= 9:
                size = int.from_bytes(data[start:start + 3], "big")
                if len(data) - start < 9 + size:
                    break
                kind, flags = data[start + 3], data[start + 4]
                stream = int.from_bytes(data[start + 5:start + 9], "big")
                payload = data[start + 9:start + 9 + size] if kind != DATA else b""
                answer += self._frame(kind, flags, stream, size, bytes(payload))
                start += 9 + size
            self.changed.notify_all()
        del data[:start]
        if answer:
            self.send(bytes(answer))

    def _frame(self, kind: int, flags: int, stream: int, size: int, payload: bytes) -> bytes:
        if kind == DATA:
            answer = b""
            for one in (0, stream):
                owed = self._owed[one] = self._owed.get(one, 0) + size
                if owed >= CREDIT // 64:
                    answer += self._credit(one, owed)
                    self._owed[one] = 0
            return answer
        if kind == HEADERS:
            self.opened(self, stream, payload)
        elif kind == WINDOW:
            self.windows[stream] = self.windows.get(stream, self.initial) + int.from_bytes(
                payload, "big")
        elif kind == SETTINGS and not flags & ACKNOWLEDGED:
            for at in range(0, len(payload), 6):
                if payload[at:at + 2] == b"\0\4":
                    self.initial = int.from_bytes(payload[at + 2:at + 6], "big")
            return frame(SETTINGS, ACKNOWLEDGED, 0)
        elif kind == PING and not flags & ACKNOWLEDGED:
            return frame(PING, ACKNOWLEDGED, 0, payload)
        return b""

    def pour(self, stream: int, size: int, until: Callable[[], bool]) -> None:
        """Content in frames of `size` bytes, as fast as the windows allow."""
        most = max(1, (1 << 20) // size)
        frames = memoryview(frame(DATA, 0, stream, bytes(size)) * most)
        while not until():
            with self.changed:
                self.windows.setdefault(stream, self.initial)
                room = min(self.windows[0], self.windows[stream]) // size
                if room == 0 and not self.is_closed:
                    self.changed.wait(1)
                    continue
                if self.is_closed:
                    return
                count = min(room, most)
                for window in (0, stream):
                    self.windows[window] -= count * size
            self.send(frames[:count * (size + 9)])

    def swallow(self, stream: int) -> None:
        """Takes all that comes, which costs least if nobody looks what it is. What is credited is a
        little more than the content."""
        self.send(frame(SETTINGS, ACKNOWLEDGED, 0))
        owed = 0
        with contextlib.suppress(OSError):
            while part := self.socket.recv(1 << 20):
                owed += len(part)
                if owed >= CREDIT:
                    self.send(self._credit(0, owed) + self._credit(stream, owed))
                    owed = 0


def _bulk(sock: socket.socket) -> None:
    """An origin of HTTP/1.1 whose response does not end."""
    with contextlib.suppress(OSError), sock:
        sock.recv(1 << 16)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (1 << 50))
        while True:
            sock.sendall(bytes(1 << 20))


class HTTP2Flood(Flood):
    """`serves_large` and `serves_small` are what its server does on a stream for /flood, in frames
    of two sizes; anything else it answers at once. `takes` takes uploads. All others are clients'.
    """

    SIZES = {"serves_large": 16_384, "serves_small": 256}

    def serve(self) -> Callable[[socket.socket], None]:
        if self.kind == "download":
            return _bulk
        return self._server if self.kind in (*self.SIZES, "takes") else super().serve()

    # The server

    def _server(self, sock: socket.socket) -> None:
        decoder = hpack.Decoder()

        def opened(peer: Peer, stream: int, payload: bytes) -> None:
            path = dict(decoder.decode(payload))[":path"]
            if path != "/flood":
                return peer.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, OK))
            if self.kind != "takes":
                peer.send(frame(HEADERS, END_HEADERS, stream, OK))
                threading.Thread(target=self._pour_out, args=(peer, stream), daemon=True).start()

        with contextlib.suppress(OSError), sock:
            if sock.recv(len(PREFACE), socket.MSG_WAITALL) == PREFACE:
                Peer(sock, b"", opened).read()

    def _pour_out(self, peer: Peer, stream: int) -> None:
        with contextlib.suppress(OSError):
            peer.pour(stream, self.SIZES[self.kind], self.is_over)

    # Clients

    def _ask(self, method: str = "GET") -> bytes:
        return frame(HEADERS, END_HEADERS | (END_STREAM if method == "GET" else 0), 1,
                     block(self.authority, "/flood", method))

    def _download(self, sock: socket.socket) -> None:
        peer = Peer(sock, PREFACE)
        peer.send(self._ask())
        sock.recv(1)
        self.begun.release()
        peer.swallow(1)

    def _upload(self, sock: socket.socket) -> None:
        self._pour_in(sock, 16_384)

    def _messages(self, sock: socket.socket) -> None:
        """Uploads as of gRPC, whose messages are small."""
        self._pour_in(sock, 256)

    def _pour_in(self, sock: socket.socket, size: int) -> None:
        peer = Peer(sock, PREFACE)
        threading.Thread(target=peer.read, daemon=True).start()
        peer.send(self._ask("POST"))
        self.begun.release()
        peer.pour(1, size, self.is_over)

    def _requests(self, sock: socket.socket) -> None:
        """For what is stored: fifty are on their way while fifty are answered, in their order."""
        peer = Peer(sock, PREFACE)
        url = urlsplit(self.target)
        fields = block(url.netloc, url.path, "HEAD")
        start = frame(HEADERS, END_HEADERS | END_STREAM, 0, fields)[:5]
        data = bytearray()

        def answered(last: int) -> None:
            answer = bytes([HEADERS, END_HEADERS | END_STREAM]) + last.to_bytes(4, "big")
            while (at := data.find(answer)) < 0:
                del data[:-len(answer)]
                part = sock.recv(1 << 18)
                assert part
                data.extend(part)
            del data[:at]

        peer.send(frame(SETTINGS, ACKNOWLEDGED, 0))
        stream = 1
        while not self.is_over():
            peer.send(b"".join(start + number.to_bytes(4, "big") + fields
                               for number in range(stream, stream + 100, 2)))
            if stream > 100:
                answered(stream - 2)
                self.begun.release()
            stream += 100

    def _serves_large(self, sock: socket.socket) -> None:
        """Its client speaks HTTP/1.1."""
        self.authority = f"{SERVER}:{self.port}"
        sock.sendall(f"GET http://{self.authority}/flood HTTP/1.1\r\nHost: {self.authority}\r\n\r\n"
                     .encode())
        sock.recv(1)
        self.begun.release()
        while not self.is_over() and sock.recv(1 << 20):
            pass

    _serves_small = _serves_large

    def _takes(self, sock: socket.socket) -> None:
        self.authority = f"{SERVER}:{self.port}"
        self._upload(sock)


http2_flooding = functools.partial(flooding, module=__name__)

if __name__ == "__main__":
    main(HTTP2Flood)
