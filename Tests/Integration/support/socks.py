"""A client of SOCKS 5 that sends exactly the given bytes."""

from __future__ import annotations

import ipaddress
import struct

from .gateway import Gateway
from .wire import Closed, Wire

NONE, PASSWORD, REFUSED = 0, 2, 0xFF
GREETING = b"\x05\x01\x00"
REPLY_BYTES = 10


def listener(*methods: str, **more: object) -> dict:
    return {"name": "socks", "address": "127.0.0.1:0", "kind": "socks5",
            "authentication": list(methods), **more}


def asked(host: str, port: int, command: int = 1, kind: int | None = None) -> bytes:
    """A request; an address goes as one, unless `kind` is 3."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    if kind == 3 or address is None:
        raw = host.encode()
        body = b"\x03" + bytes([len(raw)]) + raw
    else:
        body = (b"\x01" if address.version == 4 else b"\x04") + address.packed
    return bytes([5, command, 0]) + body + struct.pack(">H", port)


def credentials(user: str, password: str) -> bytes:
    raw, secret = user.encode(), password.encode()
    return b"\x01" + bytes([len(raw)]) + raw + bytes([len(secret)]) + secret


def code(wire: Wire) -> int:
    """The code of the answer to a request."""
    answer = wire.read_exactly(REPLY_BYTES)
    assert answer[0] == 5 and answer[2:] == b"\0\1\0\0\0\0\0\0", answer
    return answer[1]


def negotiated(running: Gateway, user: tuple[str, str] | None = None, wire: Wire | None = None) -> Wire:
    """A connection on which the request may be sent."""
    wire = wire or running.wire("socks")
    if user is None:
        wire.send(GREETING)
        assert wire.read_exactly(2) == b"\x05\x00"
    else:
        wire.send(b"\x05\x02\x00\x02")
        assert wire.read_exactly(2) == b"\x05\x02"
        wire.send(credentials(*user))
        assert wire.read_exactly(2) == b"\x01\x00"
    return wire


def tunnel(running: Gateway, host: str, port: int, user: tuple[str, str] | None = None,
           kind: int | None = None) -> Wire:
    """A tunnel that has been answered."""
    wire = negotiated(running, user)
    wire.send(asked(host, port, kind=kind))
    assert code(wire) == 0
    return wire


def is_closed(wire: Wire, expected: bytes = b"") -> bool:
    """Whether the gateway sends this and closes."""
    try:
        return wire.read_to_end() == expected
    except (ConnectionResetError, Closed):
        return expected == b""
