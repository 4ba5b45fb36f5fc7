"""A TLS 1.3 client that a server asks for a second ClientHello, and that may lie in it: it names
another host, or offers other protocols. Python's ssl has no such thing, so it speaks to libssl
itself."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable

from .wire import Wire

_HOST_NAME, _MINIMUM = 55, 123
_TLS13 = 0x0304
# SHA-256 of "HelloRetryRequest" (RFC 8446, section 4.1.3).
_RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")

_ssl = ctypes.CDLL("libssl.so.3")
_crypto = ctypes.CDLL("libcrypto.so.3")
for _library, _names in ((_ssl, ("TLS_client_method", "SSL_CTX_new", "SSL_new")),
                         (_crypto, ("BIO_s_mem", "BIO_new"))):
    for _name in _names:
        getattr(_library, _name).restype = ctypes.c_void_p


def handshake_records(flight: bytes, size: int, between: bytes = b"") -> bytes:
    """A flight whose handshake messages are in records of a size, with something between them."""
    result = b""
    while flight:
        length = 5 + int.from_bytes(flight[3:5], "big")
        record, flight = flight[:length], flight[length:]
        if record[0] != 22:
            result += record
            continue
        content = record[5:]
        result += between.join(
            record[:3] + len(part).to_bytes(2, "big") + part
            for part in (content[at:at + size] for at in range(0, len(content), size)))
    return result


class SecondHelloClient:
    """One connection, over what `wire` is connected to."""

    def __init__(self, wire: Wire, name: str, protocols: bytes = b""):
        self.wire = wire
        self._context = ctypes.c_void_p(_ssl.SSL_CTX_new(ctypes.c_void_p(_ssl.TLS_client_method())))
        self._ssl = ctypes.c_void_p(_ssl.SSL_new(self._context))
        _ssl.SSL_ctrl(self._ssl, _MINIMUM, ctypes.c_long(_TLS13), None)
        memory = ctypes.c_void_p(_crypto.BIO_s_mem())
        self._incoming = ctypes.c_void_p(_crypto.BIO_new(memory))
        self._outgoing = ctypes.c_void_p(_crypto.BIO_new(memory))
        _ssl.SSL_set_bio(self._ssl, self._incoming, self._outgoing)
        _ssl.SSL_set_connect_state(self._ssl)
        self._offer(name, protocols)

    def _offer(self, name: str, protocols: bytes) -> None:
        _ssl.SSL_ctrl(self._ssl, _HOST_NAME, ctypes.c_long(0), name.encode())
        _ssl.SSL_set_alpn_protos(self._ssl, protocols, len(protocols))

    def shake(
        self, second_name: str, second_protocols: bytes = b"",
        change: Callable[[bytes], bytes] = lambda flight: flight
    ) -> bytes | None:
        """What the server's side sent instead, if the handshake did not come to its end. `change`
        is applied to the flight with the second ClientHello."""
        asked = False
        while _ssl.SSL_do_handshake(self._ssl) != 1:
            flight = self._taken()
            self.wire.send(change(flight) if asked else flight)
            received = self.wire.socket.recv(1 << 16)
            if not received or received[0] == 21:
                return received
            asked = _RETRY in received
            if asked:
                self._offer(second_name, second_protocols)
            _crypto.BIO_write(self._incoming, received, len(received))
        self.wire.send(self._taken())
        return None

    def hello(self) -> bytes:
        """What it sends next, before the handshake has come to its end."""
        assert _ssl.SSL_do_handshake(self._ssl) != 1
        return self._taken()

    def take(self, received: bytes) -> None:
        _crypto.BIO_write(self._incoming, received, len(received))

    def ask(self, text: bytes) -> bytes:
        """What has come when something has, after the handshake."""
        _ssl.SSL_write(self._ssl, text, len(text))
        self.wire.send(self._taken())
        buffer = ctypes.create_string_buffer(1 << 16)
        while (count := _ssl.SSL_read(self._ssl, buffer, len(buffer))) <= 0:
            received = self.wire.socket.recv(1 << 16)
            assert received, "the connection ended without an answer"
            _crypto.BIO_write(self._incoming, received, len(received))
        return buffer.raw[:count]

    def _taken(self) -> bytes:
        buffer = ctypes.create_string_buffer(1 << 16)
        count = _crypto.BIO_read(self._outgoing, buffer, len(buffer))
        return buffer.raw[:max(count, 0)]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.wire.close()
        _ssl.SSL_free(self._ssl)
        _ssl.SSL_CTX_free(self._context)
