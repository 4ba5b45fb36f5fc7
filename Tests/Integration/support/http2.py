"""A client of HTTP/2 that sends exactly the given fields and frames, and reads what comes back.

Fields are not checked before they are sent: refusing them is what is tested.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings
import hyperframe.frame

from .origin import OriginConnection, Request
from .wait import SLOWDOWN
from .wire import Closed, Message, Response, Wire

Fields = list[tuple[str | bytes, str | bytes]]


@dataclass
class Answer(Message):
    """What has arrived on a stream."""

    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    interim: list[tuple[int, list[tuple[str, str]]]] = field(default_factory=list)
    body: bytes = b""
    trailers: list[tuple[str, str]] = field(default_factory=list)
    # Whether the stream has ended with END_STREAM.
    complete: bool = False
    # The code of RST_STREAM.
    reset: int | None = None


class HTTP2Client:
    """One connection. `at` is an address, or a socket that is connected already."""

    def __init__(
        self, at: tuple[str, int] | socket.socket, tls: ssl.SSLContext | None = None,
        name: str = "localhost", window: int | None = None, reads: bool = True,
        timeout: float = 10.0,
    ):
        self.timeout = timeout * SLOWDOWN
        raw = socket.create_connection(at) if isinstance(at, tuple) else at
        raw.settimeout(self.timeout)
        if raw.family != socket.AF_UNIX:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            tls.set_alpn_protocols(["h2", "http/1.1"])
            raw = tls.wrap_socket(raw, server_hostname=name)
        self.socket = raw
        self.secure = tls is not None
        self.connection = h2.connection.H2Connection(h2.config.H2Configuration(
            client_side=True, header_encoding=None, validate_outbound_headers=False,
            normalize_outbound_headers=False, validate_inbound_headers=True))
        self.answers: dict[int, Answer] = {}
        # Whether what has arrived is credited to the gateway.
        self.reads = reads
        self.goaway: tuple[int, int, bytes] | None = None
        self.pings: list[bytes] = []
        self.closed = False
        self.buffer = b""
        self.settled = False
        self.connection.initiate_connection()
        if window is not None:
            self.connection.update_settings(
                {h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
        self.flush()
        if window is not None:
            self.until(lambda: self.settled, "the settings are acknowledged")

    # Sending

    def flush(self) -> None:
        data = self.connection.data_to_send()
        if data:
            self.socket.sendall(data)

    def send_raw(self, data: bytes) -> None:
        self.flush()
        self.socket.sendall(data)

    def send_frame(self, frame: hyperframe.frame.Frame) -> None:
        self.send_raw(frame.serialize())

    def head(self, fields: Fields, end: bool = True) -> int:
        """Opens a stream with these fields; returns its number."""
        stream = self.connection.get_next_available_stream_id()
        self.answers[stream] = Answer()
        self.connection.send_headers(
            stream, [(bytes_of(name), bytes_of(value)) for name, value in fields],
            end_stream=end)
        self.flush()
        return stream

    def begin(
        self, path: str = "/", method: str = "GET", authority: str = "origin.test",
        scheme: str | None = None, end: bool = True, **more: str
    ) -> int:
        scheme = scheme or ("https" if self.secure else "http")
        fields: Fields = [(":method", method), (":scheme", scheme), (":authority", authority),
                          (":path", path)]
        fields += [(name.replace("_", "-").lower(), value) for name, value in more.items()]
        return self.head(fields, end)

    def send(self, stream: int, data: bytes, end: bool = False) -> None:
        """Sends content as the windows allow it, unless the stream has been reset."""
        rest = memoryview(data)
        while rest or end:
            if self.answers[stream].reset is not None:
                raise h2.exceptions.StreamClosedError(stream)
            room = min(self.connection.local_flow_control_window(stream),
                       self.connection.max_outbound_frame_size)
            if rest and room == 0:
                self.receive()
                continue
            part = bytes(rest[:room])
            rest = rest[len(part):]
            last = end and not rest
            self.connection.send_data(stream, part, end_stream=last)
            self.flush()
            if last:
                return

    def trailers(self, stream: int, fields: Fields) -> None:
        self.connection.send_headers(
            stream, [(bytes_of(name), bytes_of(value)) for name, value in fields],
            end_stream=True)
        self.flush()

    def reset(self, stream: int, code: int = 8) -> None:
        self.connection.reset_stream(stream, code)
        self.flush()

    # Receiving

    def receive(self) -> bool:
        """Reads once. Returns False if the gateway has closed the connection."""
        try:
            data = self.socket.recv(1 << 18)
        except (ConnectionError, ssl.SSLError):
            data = b""
        if not data:
            self.closed = True
            return False
        self.buffer += data
        while (frame := self._next_frame()) is not None:
            # The library ends the connection with the first GOAWAY; streams may go on after it.
            if frame[3] == 7:
                last, code = struct.unpack(">II", frame[9:17])
                self.goaway = (last & 0x7FFFFFFF, code, frame[17:])
                continue
            for event in self.connection.receive_data(frame):
                self._take(event)
        self.flush()
        return True

    def _next_frame(self) -> bytes | None:
        if len(self.buffer) < 9:
            return None
        end = 9 + int.from_bytes(self.buffer[:3], "big")
        if len(self.buffer) < end:
            return None
        frame, self.buffer = self.buffer[:end], self.buffer[end:]
        return frame

    def _take(self, event: h2.events.Event) -> None:
        answer = self.answers.get(getattr(event, "stream_id", None) or 0) or Answer()
        if isinstance(event, h2.events.InformationalResponseReceived):
            status, fields = split(event.headers)
            answer.interim.append((status, fields))
        elif isinstance(event, h2.events.ResponseReceived):
            answer.status, answer.headers = split(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            answer.body += event.data
            if self.reads:
                self.credit(event.stream_id, event.flow_controlled_length)
        elif isinstance(event, h2.events.TrailersReceived):
            answer.trailers = split(event.headers)[1]
        elif isinstance(event, h2.events.StreamEnded):
            answer.complete = True
        elif isinstance(event, h2.events.StreamReset):
            answer.reset = int(event.error_code)
        elif isinstance(event, h2.events.SettingsAcknowledged):
            code = h2.settings.SettingCodes.INITIAL_WINDOW_SIZE
            self.settled = self.settled or code in event.changed_settings
        elif isinstance(event, h2.events.PingAckReceived):
            self.pings.append(event.ping_data)

    def credit(self, stream: int, count: int) -> None:
        if count:
            with contextlib.suppress(h2.exceptions.ProtocolError):
                self.connection.acknowledge_received_data(count, stream)

    def until(self, condition: Callable[[], object], what: str = "the answer") -> None:
        deadline = time.monotonic() + self.timeout
        while not condition():
            assert time.monotonic() < deadline, f"not in time: {what}"
            assert self.receive(), f"closed before {what}; goaway: {self.goaway}"

    def answer(self, stream: int) -> Answer:
        """All of a stream: its end, or its reset."""
        answer = self.answers[stream]
        self.until(lambda: answer.complete or answer.reset is not None, f"stream {stream}")
        return answer

    def get(self, path: str = "/", **options: str) -> Answer:
        return self.answer(self.begin(path, **options))

    def ask(self, fields: Fields, body: bytes | None = None) -> Answer:
        stream = self.head(fields, end=body is None)
        if body is not None:
            self.send(stream, body, end=True)
        return self.answer(stream)

    def until_closed(self) -> None:
        deadline = time.monotonic() + self.timeout
        while not self.closed:
            assert time.monotonic() < deadline, "not closed in time"
            self.receive()

    def close(self) -> None:
        self.socket.close()


def bytes_of(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("latin-1")


def split(headers: list) -> tuple[int, list[tuple[str, str]]]:
    """The status of a response's fields, or 0, and the others."""
    status = 0
    fields = []
    for name, value in headers:
        if bytes_of(name) == b":status":
            status = int(value)
        else:
            fields.append((bytes_of(name).decode("latin-1"), bytes_of(value).decode("latin-1")))
    return status, fields


class _Requests(OriginConnection):
    """Requests of HTTP/1.1 as bytes, one after the other."""

    def __init__(self, data: bytes):
        self.buffer = data

    def _more(self) -> bool:
        return False


class HTTP2Wire(Wire):
    """Takes requests of HTTP/1.1 in absolute-form, and sends them over HTTP/2."""

    # What HTTP/2 says otherwise, or not at all.
    LEFT_OUT = {"host", "connection", "keep-alive", "transfer-encoding", "proxy-connection"}

    def __init__(self, address: tuple[str, int]):
        self.client = HTTP2Client(address)
        self.socket = self.client.socket
        self.buffer = b""
        self.unread: list[int] = []

    def send(self, data: bytes | str) -> None:
        raw = data.encode("latin-1") if isinstance(data, str) else data
        requests = _Requests(raw)
        while requests.buffer:
            seen = requests.read_request()
            assert seen is not None, f"not a request: {requests.buffer[:100]!r}"
            self.unread.append(self._begin(seen))

    def _begin(self, seen: Request) -> int:
        scheme, _, rest = seen.target.partition("://")
        authority, slash, path = rest.partition("/")
        authority, question, query = authority.partition("?")
        path = slash + path + question + query
        if not path.startswith("/"):
            path = "*" if seen.method == "OPTIONS" and not path else "/" + path
        fields: Fields = [(":method", seen.method), (":scheme", scheme),
                          (":authority", authority), (":path", path)]
        fields += [(name.lower(), value) for name, value in seen.headers
                   if name.lower() not in self.LEFT_OUT
                   and (name.lower() != "te" or value == "trailers")]
        has_body = "content-length" in seen or "transfer-encoding" in seen
        stream = self.client.head(fields, end=not has_body)
        if has_body:
            self.client.send(stream, seen.body, end=not seen.trailers)
            if seen.trailers:
                self.client.trailers(stream, [(name.lower(), v) for name, v in seen.trailers])
        return stream

    def read_head(self) -> Response:
        self.reading = self.unread.pop(0)
        answer = self.client.answers[self.reading]
        self.client.until(lambda: answer.status or answer.reset is not None)
        if not answer.status:
            raise Closed(f"reset with {answer.reset}")
        return Response(answer.status, "", "HTTP/2", answer.headers)

    def read_body(self, response: Response, method: str = "GET") -> Response:
        answer = self.client.answer(self.reading)
        if not answer.complete:
            raise Closed(f"reset with {answer.reset} after {len(answer.body)} bytes")
        # In the letter case that tests write for HTTP/1.1.
        response.trailers = [(name.title(), value) for name, value in answer.trailers]
        response.body = answer.body
        return response

    def read(self, method: str = "GET") -> Response:
        return self.read_body(self.read_head(), method)

    def read_final(self, method: str = "GET") -> Response:
        return self.read(method)

    def close(self) -> None:
        self.client.close()


class TLSInStream:
    """TLS in the tunnel of a stream."""

    def __init__(self, client: HTTP2Client, authority: str, context: ssl.SSLContext, name: str):
        self.client = client
        self.stream = client.head(
            [(":method", "CONNECT"), (":authority", authority)], end=False)
        self.answer = client.answers[self.stream]
        client.until(lambda: self.answer.status, "the tunnel")
        assert self.answer.status == 200, self.answer
        self.taken = 0
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=name)
        self._until_done(self.tls.do_handshake)

    def _until_done(self, step: Callable[[], object]) -> object:
        while True:
            try:
                return step()
            except ssl.SSLWantReadError:
                self._pass()
            finally:
                if out := self.outgoing.read():
                    self.client.send(self.stream, out)

    def _pass(self) -> None:
        if out := self.outgoing.read():
            self.client.send(self.stream, out)
        self.client.until(lambda: len(self.answer.body) > self.taken or self.answer.complete
                          or self.answer.reset is not None, "bytes of the tunnel")
        if len(self.answer.body) == self.taken:
            return self.incoming.write_eof()
        self.incoming.write(self.answer.body[self.taken:])
        self.taken = len(self.answer.body)

    def ask(self, data: bytes) -> bytes:
        """Sends it; returns all that comes back until the other side has ended, and ends."""
        self.tls.write(data)
        received = b""
        while True:
            try:
                part = self._until_done(lambda: self.tls.read(1 << 16))
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                break
            if not part:
                break
            received += part
        self.client.send(self.stream, b"", end=True)
        self.client.answer(self.stream)
        return received


@contextlib.contextmanager
def http2(*arguments, **options) -> Iterator[HTTP2Client]:
    client = HTTP2Client(*arguments, **options)
    try:
        yield client
    finally:
        client.close()
