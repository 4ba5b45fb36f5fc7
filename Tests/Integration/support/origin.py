"""Origins that follow a script and record every byte that reached them."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .wait import until
from .wire import Address, Closed, Message, Wire


@dataclass
class Request(Message):
    """What the origin received."""

    method: str
    target: str
    version: str
    headers: list[tuple[str, str]]
    head: bytes
    body: bytes = b""
    trailers: list[tuple[str, str]] = field(default_factory=list)


class OriginConnection(Wire):
    """One connection, from the origin's side. `received` is all that arrived, decrypted."""

    # Whether bodies that a client announces with Expect are asked for.
    continues = False

    def __init__(self, sock: socket.socket, number: int):
        super().__init__(("", 0), sock=sock)
        self.number = number
        self.received = bytearray()
        self.finished = threading.Event()

    def _more(self) -> bool:
        try:
            data = self.socket.recv(1 << 16)
        except (ConnectionError, ssl.SSLError, socket.timeout, OSError):
            return False
        self.received += data
        self.buffer += data
        return bool(data)

    def read_request_head(self) -> Request | None:
        """The next request's head, or None when the peer has closed."""
        try:
            head = self.read_until(b"\r\n\r\n")
        except Closed:
            return None
        first, *lines = head[:-4].split(b"\r\n")
        method, target, version = first.decode("latin-1").split(" ")
        return Request(method, target, version, self._fields(lines), head)

    def read_request(self) -> Request | None:
        """The next request with its body, or None when the peer has closed."""
        request = self.read_request_head()
        if request is None:
            return None
        if self.continues and request.get("expect").lower() == "100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if request.get("transfer-encoding").lower() == "chunked":
            while True:
                size = int(self.read_until(b"\r\n")[:-2].split(b";")[0], 16)
                if size == 0:
                    break
                request.body += self.read_exactly(size)
                assert self.read_exactly(2) == b"\r\n"
            lines = []
            while (line := self.read_until(b"\r\n")[:-2]) != b"":
                lines.append(line)
            request.trailers = self._fields(lines)
        elif request.get("content-length"):
            request.body = self.read_exactly(int(request.get("content-length")))
        return request


Script = Callable[[OriginConnection], None]
Handler = Callable[[Request], "bytes | None"]


class Origin:
    """A listening origin; every connection runs `script` in a thread of its own.

    It listens at a port of its own, or at `listener`. With a `tls` context the handshake comes first; `handshakes` counts those that completed, and
    `application_bytes` is all that clients sent inside TLS, over all connections.
    """

    def __init__(
        self,
        script: Script,
        tls: ssl.SSLContext | None = None,
        host: str = "127.0.0.1",
        backlog: int = 512,
        listener: socket.socket | None = None,
    ):
        self.script = script
        self.tls = tls
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.listener = listener or socket.create_server(
            (host, 0), family=family, backlog=backlog)
        # At a Unix socket, its path.
        self.is_unix = self.listener.family == socket.AF_UNIX
        name = self.listener.getsockname()
        self.address: Address = (f"unix:{name}", 0) if self.is_unix else name[:2]
        self.port = self.address[1]
        self.connections: list[OriginConnection] = []
        self.requests: list[Request] = []
        self.accepted = 0
        self.handshakes = 0
        self.handshake_failures: list[str] = []
        self.problems: list[BaseException] = []
        self._lock = threading.Lock()
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def authority(self) -> str:
        host = f"[{self.address[0]}]" if ":" in self.address[0] else self.address[0]
        return f"{host}:{self.port}"

    def url(self, path: str = "/") -> str:
        return self.address[0] if self.is_unix else f"http://{self.authority}{path}"

    @property
    def application_bytes(self) -> bytes:
        return b"".join(connection.received for connection in self.connections)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with self._lock:
                self.accepted += 1
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        sock.settimeout(60)
        # As servers do: a small answer does not wait for the acknowledgement of what came before.
        if not self.is_unix:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.tls is not None:
            try:
                sock = self.tls.wrap_socket(sock, server_side=True)
            except (OSError, ValueError) as error:
                with self._lock:
                    self.handshake_failures.append(str(error))
                sock.close()
                return
        with self._lock:
            if self.tls is not None:
                self.handshakes += 1
            connection = OriginConnection(sock, len(self.connections))
            self.connections.append(connection)
        try:
            self.script(connection)
        except (ConnectionError, ssl.SSLError, Closed, socket.timeout):
            pass
        except OSError as error:
            if not self._closed:
                self.problems.append(error)
        except BaseException as error:  # an assertion in a script fails the test at its end
            self.problems.append(error)
        finally:
            with contextlib.suppress(OSError):
                sock.close()
            connection.finished.set()

    def wait_finished(self, count: int = 1) -> None:
        """Until `count` connections have been served to their end."""
        until(
            lambda: sum(c.finished.is_set() for c in list(self.connections)) >= count,
            f"{count} finished connections at the origin")

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.socket.shutdown(socket.SHUT_RDWR)


class HTTPOrigin(Origin):
    """An origin that answers request by request; `handler` returns the reply's bytes, or None to
    have the connection closed. `requests` holds what arrived, in order. One that `continues` asks
    for bodies that are announced with `Expect: 100-continue`."""

    def __init__(self, handler: Handler, continues: bool = False, **options: object):
        self.handler = handler
        self.continues = continues
        super().__init__(self._converse, **options)  # type: ignore[arg-type]

    def _converse(self, connection: OriginConnection) -> None:
        connection.continues = self.continues
        while (request := connection.read_request()) is not None:
            with self._lock:
                self.requests.append(request)
            reply = self.handler(request)
            if reply is None:
                return
            connection.send(reply)
            head = reply.partition(b"\r\n\r\n")[0].lower()
            if b"connection: close" in head or request.get("connection").lower() == "close":
                return


def reply(
    body: bytes = b"", status: str = "200 OK", *fields: str, length: bool = True
) -> bytes:
    """A response: `fields` are whole lines. Content-Length is added unless `length` is False."""
    lines = [f"HTTP/1.1 {status}", *fields]
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def chunked(parts: list[bytes], *fields: str, trailers: tuple[str, ...] = ()) -> bytes:
    """A chunked response of 200."""
    lines = ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked", *fields]
    data = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    for part in parts:
        data += f"{len(part):x}\r\n".encode() + part + b"\r\n"
    return data + b"0\r\n" + b"".join(f"{line}\r\n".encode() for line in trailers) + b"\r\n"


def scripted(data: bytes, *, close: bool = True, reset: bool = False) -> Script:
    """A script: read one request, send `data` as it is, then close (or wait for the peer to)."""

    def run(connection: OriginConnection) -> None:
        if connection.read_request() is None:
            return
        connection.send(data)
        if reset:
            connection.reset()
        elif not close:
            connection.read_to_end()

    return run


def waiting(release: threading.Event, arrived: threading.Event) -> Script:
    """A script: say that a request has arrived, and answer it when released."""

    def run(connection: OriginConnection) -> None:
        while connection.read_request() is not None:
            arrived.set()
            release.wait(30)
            connection.send(reply(b"late"))

    return run


@contextlib.contextmanager
def serving(origin: Origin) -> Iterator[Origin]:
    """Closes the origin at the end, and fails if one of its scripts failed."""
    try:
        yield origin
    finally:
        origin.close()
    if origin.problems:
        raise origin.problems[0]
