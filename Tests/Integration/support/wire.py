"""A client that sends exactly the given bytes, and reads replies by RFC 9112 §6.3."""

from __future__ import annotations

import fcntl
import json
import socket
import struct
import termios
import time
from dataclasses import dataclass, field

import http_sfv

from .wait import SLOWDOWN, until

Address = tuple[str, int]


def connected(address: Address, timeout: float) -> socket.socket:
    """A connection to an address, or to a Unix socket: `("unix:/path", 0)`."""
    path = address[0].removeprefix("unix:")
    if path == address[0]:
        return socket.create_connection(address, timeout)
    made = socket.socket(socket.AF_UNIX)
    try:
        made.settimeout(timeout)
        made.connect(path)
    except BaseException:
        made.close()
        raise
    return made


class Closed(Exception):
    """The peer closed before what was asked for had arrived."""


class Message:
    """A message's fields, by name."""

    headers: list[tuple[str, str]]

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def get(self, name: str, default: str = "") -> str:
        values = self.all(name)
        return ", ".join(values) if values else default

    def __contains__(self, name: str) -> bool:
        return bool(self.all(name))


@dataclass
class Response(Message):
    status: int
    reason: str
    version: str
    headers: list[tuple[str, str]]
    body: bytes = b""
    trailers: list[tuple[str, str]] = field(default_factory=list)
    complete: bool = True

    def json(self) -> dict:
        return json.loads(self.body)

    def members(self, name: str) -> list[tuple[str, dict]]:
        """The field as a structured list (RFC 8941): [(value, parameters)]; raises if it is not."""
        values = http_sfv.List()
        values.parse(self.get(name).encode())
        return [(str(item.value), dict(item.params)) for item in values]

    @property
    def cache_status(self) -> dict:
        """The parameters of the last member of Cache-Status, which is ours."""
        return self.members("cache-status")[-1][1]

    @property
    def proxy_status(self) -> dict:
        """The parameters of the last member of Proxy-Status, which is ours."""
        return self.members("proxy-status")[-1][1]


class Wire:
    """One connection, from the client's side."""

    def __init__(self, address: Address, timeout: float = 20.0 * SLOWDOWN,
                 sock: socket.socket | None = None):
        self.socket = sock or connected(address, timeout)
        self.socket.settimeout(timeout)
        if self.socket.family in (socket.AF_INET, socket.AF_INET6) and sock is None:
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, data: bytes | str) -> None:
        self.socket.sendall(data.encode("latin-1") if isinstance(data, str) else data)

    def half_close(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Closes with RST instead of FIN."""
        linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.socket.close()

    def _more(self) -> bool:
        try:
            data = self.socket.recv(1 << 16)
        except ConnectionResetError:
            return False
        self.buffer += data
        return bool(data)

    def read_until(self, mark: bytes) -> bytes:
        while mark not in self.buffer:
            if not self._more():
                raise Closed(f"closed after {self.buffer!r}, before {mark!r}")
        head, self.buffer = self.buffer.split(mark, 1)
        return head + mark

    def read_exactly(self, count: int) -> bytes:
        pieces = [self.buffer]
        read = len(self.buffer)
        while read < count:
            self.buffer = b""
            if not self._more():
                raise Closed(f"closed after {read} of {count} bytes")
            pieces.append(self.buffer)
            read += len(self.buffer)
        data = b"".join(pieces)
        data, self.buffer = data[:count], data[count:]
        return data

    def read_to_end(self) -> bytes:
        while self._more():
            pass
        data, self.buffer = self.buffer, b""
        return data

    def ended(self) -> bool:
        """Whether the peer closes without sending anything more (waits for it)."""
        return self.read_to_end() == b""

    def _fields(self, lines: list[bytes]) -> list[tuple[str, str]]:
        pairs = []
        for line in lines:
            name, colon, value = line.partition(b":")
            assert colon and name == name.strip(), f"malformed field line {line!r}"
            pairs.append((name.decode("latin-1"), value.strip().decode("latin-1")))
        return pairs

    def read_head(self) -> Response:
        head = self.read_until(b"\r\n\r\n")
        status_line, *lines = head[:-4].split(b"\r\n")
        version, status, *reason = status_line.split(b" ", 2)
        assert version in (b"HTTP/1.1", b"HTTP/1.0"), f"not a status line: {status_line!r}"
        return Response(
            int(status), (reason or [b""])[0].decode("latin-1"), version.decode(),
            self._fields(lines))

    def read_body(self, response: Response, method: str = "GET") -> Response:
        status = response.status
        codings = response.get("transfer-encoding").lower()
        if method == "HEAD" or status < 200 or status in (204, 304):
            return response
        if codings:
            assert codings == "chunked", codings
            assert "content-length" not in response, "both framings"
            while True:
                line = self.read_until(b"\r\n")[:-2]
                size = int(line.split(b";")[0], 16)
                if size == 0:
                    break
                response.body += self.read_exactly(size)
                assert self.read_exactly(2) == b"\r\n"
            lines = []
            while (line := self.read_until(b"\r\n")[:-2]) != b"":
                lines.append(line)
            response.trailers = self._fields(lines)
        elif "content-length" in response:
            lengths = response.all("content-length")
            assert len(lengths) == 1, lengths
            response.body = self.read_exactly(int(lengths[0]))
        else:
            response.body = self.read_to_end()
        return response

    def read(self, method: str = "GET") -> Response:
        """The next response, final or interim (an interim one has no body)."""
        return self.read_body(self.read_head(), method)

    def read_final(self, method: str = "GET") -> Response:
        while True:
            response = self.read(method)
            if response.status >= 200 or response.status == 101:
                return response

    def ask(self, data: bytes | str, method: str | None = None) -> Response:
        raw = data.encode("latin-1") if isinstance(data, str) else data
        self.send(raw)
        return self.read_final(method or raw.split(b" ", 1)[0].decode("latin-1"))


def ask(address: Address, data: bytes | str, **options: float) -> Response:
    """One request on a connection of its own."""
    with Wire(address, **options) as wire:
        return wire.ask(data)


def request(
    target: str, host: str | None = None, method: str = "GET", body: bytes = b"", **fields: str
) -> bytes:
    """A request in absolute-form (or whatever form `target` has) with the Host that fits it."""
    if host is None:
        host = target.split("//", 1)[-1].split("/", 1)[0].split("?", 1)[0]
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    if body or method in ("POST", "PUT", "PATCH"):
        if not any(name.lower() in ("content_length", "transfer_encoding") for name in fields):
            lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def connect(address: Address, authority: str, **options: float) -> tuple[Wire, Response]:
    """Opens a tunnel; the caller looks at the response."""
    wire = Wire(address, **options)
    wire.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n")
    head = wire.read_head()
    if head.status // 100 != 2:
        wire.read_body(head)
    return wire, head


def until_sent(sock: socket.socket) -> None:
    """Until the peer's kernel has acknowledged all that was sent."""
    until(lambda: struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, b"\0" * 4))[0] == 0,
          "what was sent has arrived")


def drip(wire: Wire, data: bytes, pause: float) -> None:
    """Sends byte by byte. The pause is the load itself, not a wait for something to happen."""
    for index in range(len(data)):
        wire.send(data[index : index + 1])
        time.sleep(pause)
