"""An origin that speaks HTTP/2, by ALPN or in clear text by prior knowledge, and follows a script.

Each stream is handled in a thread of its own by a function that is given the stream: it answers by
`respond`, or step by step, or sends frames that no server should (`raw`). What the gateway sends is
held against RFC 9113 by the library h2: a violation fails the test, unless the origin has lied on
the connection, after which the library no longer knows what goes on there.

A connection on which HTTP/1.1 was agreed, or spoken, is served in HTTP/1.1, by `respond` only.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from typing import Any

from .http2served import Gone, PlainStream, ServedConnection, ServedStream, Setting
from .origin import Origin, OriginConnection
from .wait import until

Handler = Callable[[Any], None]


class HTTP2Origin(Origin):
    """`handler` is called for each stream, when its head has arrived. `requests` are all streams,
    in the order of their heads, `served` the connections of HTTP/2.

    `settings` lie over h2's own; an origin that does not `settle` sends none by itself; one that
    does not `credit` opens no window again. `on_connection` is called when a connection begins, and
    `http1` serves one on which HTTP/1.1 was chosen instead."""

    def __init__(self, handler: Handler | None = None, *, settings: dict[int, int] | None = None,
                 settles: bool = True, credits: bool = True,
                 http1: Callable[[OriginConnection], None] | None = None,
                 on_connection: Callable[[ServedConnection], None] = lambda _: None,
                 **options: Any):
        self.handler = handler or by_path
        self.settings = {Setting(key): value for key, value in (settings or {}).items()}
        self.settles = settles
        self.credits = credits
        self.http1 = http1 or self._serve_http1
        self.on_connection = on_connection
        self.served: list[ServedConnection] = []
        super().__init__(self._converse, **options)

    @property
    def versions(self) -> set[str]:
        return {seen.version for seen in list(self.requests)}

    def url(self, path: str = "/", host: str | None = None) -> str:
        scheme = "https" if self.tls else "http"
        return f"{scheme}://{f'{host}:{self.port}' if host else self.authority}{path}"

    def wait_request(self, count: int = 1) -> Any:
        """The request of that number, when its head has arrived."""
        until(lambda: len(self.requests) >= count, f"{count} requests at the origin")
        return self.requests[count - 1]

    def takes(self, stream: ServedStream) -> None:
        with self._lock:
            self.requests.append(stream)
        threading.Thread(target=self._handle, args=(stream,), daemon=True).start()

    def _handle(self, stream: ServedStream) -> None:
        try:
            self.handler(stream)
        except (Gone, ConnectionError):
            pass
        except BaseException as error:  # fails the test at its end
            self.problems.append(error)
        finally:
            stream.finished.set()

    def _converse(self, wire: OriginConnection) -> None:
        selected = wire.socket.selected_alpn_protocol() if self.tls else None
        if selected is None and not wire.buffer and not wire._more():
            return
        if selected == "h2" or wire.buffer.startswith(b"PRI"):
            with self._lock:
                connection = ServedConnection(self, wire)
                self.served.append(connection)
            # What was read is received again.
            del wire.received[:]
            return connection.serve(wire.buffer)
        self.http1(wire)

    def _serve_http1(self, wire: OriginConnection) -> None:
        while (seen := wire.read_request()) is not None:
            plain = PlainStream(wire, seen)
            with self._lock:
                self.requests.append(plain)
            self.handler(plain)

    def close(self) -> None:
        super().close()
        for connection in list(self.served):
            connection.close()


def content(count: int) -> bytes:
    """That many bytes, which differ from each other."""
    block = b"".join(b"%07d\n" % number for number in range(1024))
    return (block * (count // len(block) + 1))[:count]


def by_path(stream: Any) -> None:
    """Answers by path: /status/N, /body/N (that many bytes), /unknown/N (without a length), /echo,
    /trailers, /hints, /fields (what has arrived), and what was asked for by any other."""
    what, _, rest = stream.target.partition("?")[0].lstrip("/").partition("/")
    no_store = ("cache-control", "no-store")
    match what:
        case "status":
            stream.respond(int(rest), no_store)
        case "body":
            stream.respond(200, no_store, body=content(int(rest)))
        case "unknown":
            stream.respond(200, no_store, body=content(int(rest)), length=False)
        case "echo":
            body = stream.read_all()
            # With a length there would be no trailers for clients of HTTP/1.1.
            stream.respond(200, no_store, body=body, trailers=stream.trailers,
                           length=not stream.trailers)
        case "digest":
            digest = hashlib.sha256(stream.read_all()).hexdigest()
            stream.respond(200, no_store, body=digest.encode())
        case "trailers":
            stream.respond(200, no_store, ("trailer", "x-sum"), body=b"content",
                           trailers=[("x-sum", "42")], length=False)
        case "hints":
            stream.interim(103, [("link", "</style.css>; rel=preload")])
            stream.respond(200, no_store, body=b"hinted")
        case "fields":
            lines = [f"{name}: {value}" for name, value in
                     [*stream.pseudo.items(), *stream.headers]]
            stream.respond(200, no_store, body="\n".join(lines).encode("latin-1"))
        case _:
            stream.respond(200, no_store, body=f"{stream.method} {stream.target}".encode())
