"""Clients of intercepted tunnels that stop, stall and stray within their handshakes."""

from __future__ import annotations

import ctypes
import socket
import ssl

from .gateway import Gateway
from .interception import HOST, Inside, connect_head
from .wire import Wire

HANDSHAKE, ALERT, CHANGE_CIPHER_SPEC = 22, 21, 20

# How far a client gets before it does what a test is about.
STEPS = ["after CONNECT", "in the record's header", "in its first message", "after the answer",
         "within Finished", "after Finished"]


def record(content: bytes, kind: int = HANDSHAKE) -> bytes:
    return bytes([kind, 3, 1]) + len(content).to_bytes(2, "big") + content


def message_of(hello: bytes) -> bytes:
    """The message in its one record."""
    assert int.from_bytes(hello[3:5], "big") == len(hello) - 5
    return hello[5:]


def in_records(message: bytes, size: int) -> bytes:
    return b"".join(
        record(message[start:start + size]) for start in range(0, len(message), size))


def with_extensions(message: bytes, count: int, size: int = 0) -> bytes:
    """A ClientHello with so many more extensions, which nobody knows."""
    more = b"".join(
        (0x4000 + number).to_bytes(2, "big") + size.to_bytes(2, "big") + bytes(size)
        for number in range(count))
    position = 4 + 2 + 32
    position += 1 + message[position]
    position += 2 + int.from_bytes(message[position:position + 2], "big")
    position += 1 + message[position]
    extensions = message[position + 2:] + more
    body = message[4:position] + len(extensions).to_bytes(2, "big") + extensions
    return message[:1] + len(body).to_bytes(3, "big") + body


def tunnel(running: Gateway, port: int, wire: Wire | None = None) -> Wire:
    """An open tunnel, in which nothing has been sent."""
    wire = wire or running.wire()
    wire.send(connect_head(HOST, port))
    assert wire.read_head().status == 200
    return wire


def stopped(
    running: Gateway, port: int, inside: Inside, step: str, wire: Wire | None = None
) -> Wire:
    """A client in a tunnel that has got as far as `step`."""
    wire = tunnel(running, port, wire)
    hello = inside.hello
    if step == "after CONNECT":
        return wire
    if step in STEPS[1:3]:
        wire.send(hello[:3 if step == STEPS[1] else 100])
        return wire
    wire.send(hello)
    if step == "after the answer":
        assert wire._more()
        return wire
    if step == "after Finished":
        inside.shake(wire)
        return wire
    while True:
        assert wire._more()
        inside.incoming.write(wire.buffer)
        wire.buffer = b""
        try:
            inside.tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        if last := inside.outgoing.read():
            wire.send(last[:-5])
            return wire


_ssl = ctypes.CDLL("libssl.so.3")
for _name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
    getattr(_ssl, _name).restype = ctypes.c_void_p


def update_keys(sock: socket.socket, count: int, answered: bool) -> int:
    """Has a handshake in a tunnel, and updates its keys so many times, asking for the same of the
    server or not; how many times that went well. Python's ssl cannot do it."""
    sock.setblocking(True)
    context = ctypes.c_void_p(_ssl.SSL_CTX_new(ctypes.c_void_p(_ssl.TLS_client_method())))
    connection = ctypes.c_void_p(_ssl.SSL_new(context))
    _ssl.SSL_set_fd(connection, sock.fileno())
    try:
        assert _ssl.SSL_connect(connection) == 1
        for number in range(count):
            if (_ssl.SSL_key_update(connection, 1 if answered else 0) != 1
                    or _ssl.SSL_do_handshake(connection) != 1):
                return number
        return count
    finally:
        _ssl.SSL_free(connection)
        _ssl.SSL_CTX_free(context)
