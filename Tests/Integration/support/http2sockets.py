"""WebSockets of a client of HTTP/2 (RFC 8441), and of one of HTTP/1.1 that sends what it likes."""

from __future__ import annotations

import base64
import hashlib
import os

from websockets.frames import Opcode
from websockets.protocol import Protocol, Side, State

from .http2 import Fields, HTTP2Client
from .wire import Response, Wire, request


class Socket:
    """What is the same over both versions."""

    def __init__(self) -> None:
        self.protocol = Protocol(Side.CLIENT, state=State.OPEN, max_size=None)

    def write(self, data: bytes) -> None:
        raise NotImplementedError

    def more(self) -> bytes:
        """More of the other protocol's bytes; none at its end."""
        raise NotImplementedError

    def end(self) -> None:
        """Ends the client's direction."""
        raise NotImplementedError

    def flush(self) -> None:
        for data in self.protocol.data_to_send():
            if data:
                self.write(data)

    def send(self, message: bytes) -> None:
        self.protocol.send_binary(message)
        self.flush()

    def receive(self) -> bytes:
        """The next message."""
        message = b""
        while True:
            for frame in self.protocol.events_received():
                if frame.opcode in (Opcode.BINARY, Opcode.CONT):
                    message += frame.data
                    if frame.fin:
                        return message
            data = self.more()
            assert data, "ended without a message"
            self.protocol.receive_data(data)


class SocketInStream(Socket):
    """A WebSocket in a stream, or what was answered instead."""

    def __init__(self, client: HTTP2Client, authority: str, path: str = "/chat", **more: str):
        self.client = client
        client.until(lambda: client.connection.remote_settings.enable_connect_protocol,
                     "the gateway takes extended CONNECT")
        fields: Fields = [
            (":method", "CONNECT"), (":protocol", more.pop("protocol", "websocket")),
            (":scheme", more.pop("scheme", "https" if client.secure else "http")),
            (":authority", authority),
            (":path", path), ("sec-websocket-version", "13")]
        fields += [(name.replace("_", "-"), value) for name, value in more.items()]
        self.stream = client.head(fields, end=False)
        self.answer = client.answers[self.stream]
        super().__init__()
        self.taken = 0

    def opened(self) -> SocketInStream:
        self.client.until(lambda: self.answer.status, "the answer")
        return self

    def write(self, data: bytes) -> None:
        self.client.send(self.stream, data)

    def end(self) -> None:
        self.client.send(self.stream, b"", end=True)

    def more(self) -> bytes:
        self.client.until(lambda: len(self.answer.body) > self.taken or self.answer.complete,
                          "a message")
        data = self.answer.body[self.taken:]
        self.taken = len(self.answer.body)
        return data


class SocketByUpgrade(Socket):
    """A WebSocket of a client of HTTP/1.1, or what was answered instead."""

    def __init__(self, wire: Wire, url: str, **more: str):
        super().__init__()
        self.wire = wire
        self.key = base64.b64encode(os.urandom(16)).decode()
        fields = {"Connection": "Upgrade", "Upgrade": more.pop("protocol", "websocket"),
                  "Sec-WebSocket-Key": self.key, "Sec-WebSocket-Version": "13"}
        fields |= {name.replace("_", "-"): value for name, value in more.items()}
        wire.send(request(url, **fields))
        self.answer: Response = wire.read_final()

    def write(self, data: bytes) -> None:
        self.wire.send(data)

    def end(self) -> None:
        self.wire.half_close()

    def more(self) -> bytes:
        if not self.wire.buffer:
            self.wire._more()
        data, self.wire.buffer = self.wire.buffer, b""
        return data


def accepted(key: str) -> str:
    digest = hashlib.sha1(f"{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()
    return base64.b64encode(digest).decode()
