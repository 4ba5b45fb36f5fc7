"""A front that speaks HTTP/2, in clear text, before an origin of HTTP/1.1: what a test's own origin
does on its connections, it does in streams. Each stream has a connection of its own behind."""

from __future__ import annotations

import contextlib
import select
import socket
from typing import Any

import h11
import h2.errors

from .http2origin import HTTP2Origin
from .http2served import Gone, ServedStream
from .wire import Address

# What HTTP/2 says otherwise, or not at all.
LEFT_OUT = {b"connection", b"keep-alive", b"transfer-encoding", b"upgrade", b"proxy-connection"}


class HTTP2Front(HTTP2Origin):
    """Passes on to `behind`."""

    def __init__(self, behind: Address, **options: Any):
        self.behind = behind
        super().__init__(self._pass, **options)

    def _pass(self, stream: ServedStream) -> None:
        body = stream.read_all()
        peer = h11.Connection(h11.CLIENT, max_incomplete_event_size=1 << 20)
        fields = [("Host", stream.authority)]
        # In the letter case that tests write.
        fields += [(name.title(), value) for name, value in stream.headers]
        chunked = bool(body or stream.trailers) and "content-length" not in stream
        if chunked:
            fields.append(("Transfer-Encoding", "chunked"))
        with contextlib.closing(socket.create_connection(self.behind)) as sock:
            data = peer.send(h11.Request(
                method=stream.method, target=stream.target, headers=fields))
            if body:
                data += peer.send(h11.Data(body))
            trailers = [(name.title(), value) for name, value in stream.trailers]
            data += peer.send(h11.EndOfMessage(headers=trailers))
            try:
                sock.sendall(data)
                self._answer(stream, peer, sock)
            except (h11.RemoteProtocolError, ConnectionError):
                stream.reset_with(h2.errors.ErrorCodes.INTERNAL_ERROR)

    def _answer(self, stream: ServedStream, peer: h11.Connection, sock: socket.socket) -> None:
        while True:
            event = peer.next_event()
            if event is h11.NEED_DATA:
                self._wait(stream, sock)
                peer.receive_data(sock.recv(1 << 16))
            elif isinstance(event, h11.InformationalResponse):
                stream.interim(event.status_code, _fields(event.headers))
            elif isinstance(event, h11.Response):
                stream.head(event.status_code, _fields(event.headers))
            elif isinstance(event, h11.Data):
                stream.data(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                # No field of framing, which HTTP/2 refuses there.
                return stream.end([(name, value) for name, value in _fields(event.headers)
                                   if name != "content-length"])
            else:
                raise ConnectionError("closed without a response")

    def _wait(self, stream: ServedStream, sock: socket.socket) -> None:
        """Until there is something to read, or the gateway has lost interest."""
        while not select.select([sock], [], [], 0.02)[0]:
            if stream.reset is not None or stream.connection.is_closed:
                raise Gone(stream.target)


def _fields(headers: Any) -> list[tuple[str, str]]:
    of_connection = {option.strip() for name, value in headers if name == b"connection"
                     for option in value.lower().split(b",")}
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers
            if name not in LEFT_OUT | of_connection]
