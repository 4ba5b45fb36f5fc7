"""Connections and streams of HTTP/2 from the side of an origin: see `http2origin`."""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings

from .frames import GOAWAY, frame
from .origin import OriginConnection
from .wait import SLOWDOWN
from .wire import Message

if TYPE_CHECKING:
    from .http2origin import HTTP2Origin

Fields = tuple[tuple[str, str], ...] | list[tuple[str, str]]
Setting = h2.settings.SettingCodes
PATIENCE = 30 * SLOWDOWN


class Gone(Exception):
    """The stream or its connection has ended, or did not go on in time."""


class Seen(Message):
    """A request, as far as it has arrived."""

    def __init__(self, version: str, headers: list[tuple[str, str]]):
        pseudo = dict(field for field in headers if field[0].startswith(":"))
        self.version = version
        self.method = pseudo.get(":method", "")
        self.scheme = pseudo.get(":scheme", "")
        self.authority = pseudo.get(":authority", "")
        self.target = pseudo.get(":path", "")
        self.pseudo = pseudo
        self.headers = [field for field in headers if not field[0].startswith(":")]
        self.body = b""
        self.trailers: list[tuple[str, str]] = []
        # Whether it has ended with END_STREAM.
        self.complete = False


class ServedStream(Seen):
    """One stream, from the origin's side."""

    def __init__(self, connection: ServedConnection, number: int, headers: list[tuple[str, str]]):
        super().__init__("HTTP/2", headers)
        self.connection = connection
        self.number = number
        # The code with which the gateway reset it.
        self.reset: int | None = None
        self.finished = threading.Event()

    @property
    def is_gone(self) -> bool:
        """Whether the gateway has ended the stream, or the connection."""
        return (self.reset is not None or self.connection.is_closed
                or bool(self.connection.goaways))

    # What arrives

    def wait(self, condition: Callable[[], object], what: str) -> None:
        with self.connection.changed:
            deadline = time.monotonic() + PATIENCE
            while not condition():
                if self.is_gone:
                    raise Gone(f"{self.target}: reset with {self.reset} before {what}")
                if not self.connection.changed.wait(deadline - time.monotonic()):
                    raise AssertionError(f"{self.target}: not in time: {what}")

    def read_all(self) -> bytes:
        """The request's content, when it has ended."""
        self.wait(lambda: self.complete, "the request's end")
        return self.body

    def wait_reset(self) -> int:
        """The code with which the gateway resets the stream."""
        with contextlib.suppress(Gone):
            self.wait(lambda: self.reset is not None, "a reset")
        assert self.reset is not None, f"{self.target}: the connection closed, no reset"
        return self.reset

    # What is sent

    def head(self, status: int | str, fields: Fields = (), end: bool = False) -> None:
        self.connection.headers(self.number, [(":status", str(status)), *fields], end)

    def interim(self, status: int, fields: Fields = ()) -> None:
        self.head(status, fields)

    def data(self, content: bytes, end: bool = False) -> None:
        """Sends content as the gateway's windows allow it."""
        rest = memoryview(content)
        with self.connection.changed:
            while rest or end:
                room = 0
                if not self.is_gone:
                    room = min(self.connection.h2.local_flow_control_window(self.number),
                               self.connection.h2.max_outbound_frame_size)
                if rest and room <= 0:
                    self.wait(lambda: not self.is_gone and
                              self.connection.h2.local_flow_control_window(self.number) > 0,
                              "room in the windows")
                    continue
                if self.is_gone:
                    raise Gone(f"{self.target}: before all was sent")
                part, rest = bytes(rest[:room]), rest[room:]
                last = end and not rest
                self.connection.h2.send_data(self.number, part, end_stream=last)
                self.connection.flush()
                if last:
                    return

    def end(self, trailers: Fields = ()) -> None:
        if trailers:
            self.connection.headers(self.number, list(trailers), end=True)
        else:
            self.data(b"", end=True)

    def respond(self, status: int = 200, *fields: tuple[str, str], body: bytes = b"",
                trailers: Fields = (), length: bool = True) -> None:
        """A whole response. Content-Length is added unless `length` is False."""
        if length and status not in (204, 304):
            fields += (("content-length", str(len(body))),)
        without = self.method == "HEAD" or status in (204, 304) or not (body or trailers)
        self.head(status, fields, end=without)
        if not without:
            self.data(body, end=not trailers)
            if trailers:
                self.end(trailers)

    def reset_with(self, code: int) -> None:
        with self.connection.changed:
            if not self.is_gone:
                self.connection.h2.reset_stream(self.number, code)
                self.connection.flush()

    def raw(self, data: bytes) -> None:
        """Sends these bytes, of which the library learns nothing."""
        self.connection.raw(data)


class PlainStream(Seen):
    """A request of HTTP/1.1, which is there in full, answered by `respond` only."""

    reset = None

    def __init__(self, wire: OriginConnection, seen: Any):
        super().__init__(seen.version, [(name.lower(), value) for name, value in seen.headers])
        self.wire = wire
        self.method, self.target, self.body = seen.method, seen.target, seen.body
        self.authority, self.trailers, self.complete = self.get("host"), seen.trailers, True

    def read_all(self) -> bytes:
        return self.body

    def respond(self, status: int = 200, *fields: tuple[str, str], body: bytes = b"",
                trailers: Fields = (), length: bool = True) -> None:
        lines = [f"HTTP/1.1 {status} Status", *(f"{name}: {value}" for name, value in fields)]
        data = body
        if trailers or not length:
            lines.append("transfer-encoding: chunked")
            data = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
            data += b"0\r\n" + "".join(f"{n}: {v}\r\n" for n, v in trailers).encode() + b"\r\n"
        elif status not in (204, 304):
            lines.append(f"content-length: {len(body)}")
        if self.method == "HEAD" or status in (204, 304):
            data = b""
        self.wire.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + data)


class ServedConnection:
    """One connection of HTTP/2. A thread reads and writes; what is known of it is under a lock."""

    def __init__(self, origin: HTTP2Origin, wire: OriginConnection):
        self.origin = origin
        self.wire = wire
        self.socket = wire.socket
        self.number = len(origin.served)
        self.changed = threading.Condition(threading.RLock())
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=False, header_encoding="latin-1", validate_outbound_headers=False,
            normalize_outbound_headers=False))
        self.streams: dict[int, ServedStream] = {}
        # What has arrived of GOAWAY: (last stream, code, text).
        self.goaways: list[tuple[int, int, bytes]] = []
        self.pings = 0
        self.acknowledged = 0
        # Whether what arrives is credited to the gateway.
        self.credits = origin.credits
        self.reads = True
        self.has_begun = False
        self.has_lied = False
        self.is_closed = False
        self._out = bytearray()
        self._wake, self._woken = socket.socketpair()
        for end in (self._wake, self._woken):
            end.setblocking(False)

    # Sending

    def flush(self) -> None:
        """Sends what the library has to say; what does not go at once follows from the thread."""
        with self.changed:
            # SETTINGS is the first frame.
            if self.has_begun:
                self._out += self.h2.data_to_send()
            self._write()

    def raw(self, data: bytes) -> None:
        with self.changed:
            self.flush()
            while len(self._out) > 1 << 20 and not self.is_closed:
                self.changed.wait(1)
            self.has_lied = True
            self._out += data
            self._write()

    def headers(self, stream: int, fields: Fields, end: bool) -> None:
        with self.changed:
            if self.is_closed:
                raise Gone(f"stream {stream}: the connection is closed")
            try:
                self.h2.send_headers(stream, list(fields), end_stream=end)
            except h2.exceptions.ProtocolError:
                if not self.streams[stream].is_gone and not self.has_lied:
                    raise
                raise Gone(f"stream {stream} is reset") from None
            self.flush()

    def settings(self, changes: dict[int, int]) -> None:
        with self.changed:
            self.h2.update_settings({Setting(key): value for key, value in changes.items()})
            self.flush()

    def begin(self) -> None:
        """Sends the preface: SETTINGS. An origin that does not `settle` does it when it likes.

        The library's own way to begin holds the peer to them at once; this one does from when they
        are acknowledged."""
        with self.changed:
            early = self.h2.data_to_send()
            self.h2.update_settings({Setting.MAX_CONCURRENT_STREAMS: 100} | self.origin.settings)
            self._out += self.h2.data_to_send() + early
            self.has_begun = True
            self._write()

    def goaway(self, last: int, code: int = 0, text: bytes = b"") -> None:
        self.raw(frame(GOAWAY, 0, 0, last.to_bytes(4, "big") + code.to_bytes(4, "big") + text))

    def ping(self, data: bytes = b"pinfold?") -> None:
        with self.changed:
            self.h2.ping(data)
            self.flush()

    def read_again(self) -> None:
        """After `reads` was false."""
        self.reads = True
        self._stir()

    def close(self, reset: bool = False) -> None:
        with self.changed:
            self.is_closed = True
            with contextlib.suppress(OSError):
                if reset:
                    # The thread closes it, with RST.
                    self.socket.setsockopt(
                        socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                else:
                    self.socket.shutdown(socket.SHUT_RDWR)
            self.changed.notify_all()
        self._stir()

    def credit(self) -> None:
        """Credits all that has arrived, from now on as well."""
        with self.changed:
            self.credits = True
            for stream, owed in self._owed.items():
                self._credit(stream, owed)
            self._owed.clear()
            self.flush()

    def _write(self) -> None:
        while self._out and not self.is_closed:
            try:
                del self._out[:self.socket.send(self._out)]
            except (BlockingIOError, ssl.SSLWantWriteError):
                return self._stir()
            except OSError:
                self.is_closed = True
                self.changed.notify_all()

    def _stir(self) -> None:
        with contextlib.suppress(OSError):
            self._wake.send(b"!")

    # Receiving

    def serve(self, buffered: bytes) -> None:
        self._owed: dict[int, int] = {}
        self.socket.setblocking(False)
        try:
            if self.origin.settles:
                self.begin()
            self.origin.on_connection(self)
            if not self._take(buffered):
                return
            with selectors.DefaultSelector() as selector:
                selector.register(self._woken, selectors.EVENT_READ)
                selector.register(self.socket, selectors.EVENT_READ)
                while self._turn(selector):
                    pass
        finally:
            with self.changed:
                self.is_closed = True
                self.changed.notify_all()
            for end in (self._wake, self._woken):
                end.close()

    def _turn(self, selector: selectors.BaseSelector) -> bool:
        interest = selectors.EVENT_READ if self.reads else 0
        interest |= selectors.EVENT_WRITE if self._out else 0
        if self.socket in selector.get_map():
            selector.unregister(self.socket)
        if interest:
            selector.register(self.socket, interest)
        selector.select(PATIENCE * 2)
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(1 << 10)
        with self.changed:
            self._write()
            self.changed.notify_all()
            data = b""
            while self.reads and not self.is_closed:
                try:
                    part = self.socket.recv(1 << 16)
                except (BlockingIOError, ssl.SSLWantReadError):
                    break
                except (OSError, ssl.SSLError):
                    part = b""
                if not part:
                    self.is_closed = True
                data += part
            taken = self._take(data)
            return taken and not self.is_closed

    def _take(self, data: bytes) -> bool:
        self.wire.received += data
        with self.changed:
            acknowledged = self.acknowledged
            try:
                for event in self.h2.receive_data(data):
                    self._event(event)
                if self.acknowledged > acknowledged:
                    self._open_closed_windows()
            except h2.exceptions.ProtocolError as error:
                self.is_closed = True
                if not self.has_lied:
                    self.origin.problems.append(AssertionError(
                        f"connection {self.number}: {type(error).__name__}: {error}"))
                self.flush()
                return False
            self.flush()
            self.changed.notify_all()
        return True

    def _event(self, event: h2.events.Event) -> None:
        stream = self.streams.get(getattr(event, "stream_id", None) or 0)
        if isinstance(event, h2.events.RequestReceived):
            stream = ServedStream(self, event.stream_id, list(event.headers))
            self.streams[event.stream_id] = stream
            self.origin.takes(stream)
        elif isinstance(event, h2.events.DataReceived) and stream:
            stream.body += event.data
            owed = event.flow_controlled_length
            if self.credits:
                self._credit(event.stream_id, owed)
            else:
                self._owed[event.stream_id] = self._owed.get(event.stream_id, 0) + owed
        elif isinstance(event, h2.events.TrailersReceived) and stream:
            stream.trailers = list(event.headers)
        elif isinstance(event, h2.events.StreamEnded) and stream:
            stream.complete = True
        elif isinstance(event, h2.events.StreamReset) and stream:
            stream.reset = int(event.error_code)
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.goaways.append((event.last_stream_id, int(event.error_code),
                                 event.additional_data or b""))
        elif isinstance(event, h2.events.PingReceived):
            self.pings += 1
        elif isinstance(event, h2.events.SettingsAcknowledged):
            self.acknowledged += 1

    def _credit(self, stream: int, count: int) -> None:
        if count:
            with contextlib.suppress(h2.exceptions.ProtocolError):
                self.h2.acknowledge_received_data(count, stream)

    def _open_closed_windows(self) -> None:
        """Opens windows that settings have closed. The library credits a stream when content has
        been taken, and not before half a window has been: with a smaller window, what it has kept
        back may be all there is, and no more content would ever come."""
        if not self.credits:
            return
        size = self.h2.local_settings.initial_window_size
        for number, stream in self.streams.items():
            if stream.complete or stream.reset is not None:
                continue
            with contextlib.suppress(h2.exceptions.ProtocolError):
                left = self.h2.remote_flow_control_window(number)
                if left <= 0 and left < size:
                    self.h2.increment_flow_control_window(size - left, number)
