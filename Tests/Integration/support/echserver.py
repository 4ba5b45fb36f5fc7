"""A TLS 1.3 server that reads encrypted ClientHellos, as far as others can tell: it answers the
extension with keys for it (RFC 9849, section 7.1). Python's ssl has no such thing, so it speaks to
libssl itself."""

from __future__ import annotations

import ctypes
import socket
import threading
from pathlib import Path

_FILETYPE_PEM = 1
_EXTENSION = 0xFE0D
# The ClientHello, and TLS 1.3's EncryptedExtensions.
_CONTEXTS = 0x80 | 0x400
_KEYS = b"\0\4\xfe\x0d\0\0"

_ssl = ctypes.CDLL("libssl.so.3")
for _name in ("TLS_server_method", "SSL_CTX_new", "SSL_new"):
    getattr(_ssl, _name).restype = ctypes.c_void_p
_Bytes = ctypes.POINTER(ctypes.c_char)
_Add = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint, ctypes.POINTER(ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_size_t), ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p,
    ctypes.c_void_p)
_Parse = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p, ctypes.c_size_t,
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p)


class EncryptedHelloServer:
    """Answers each request by its one page; `asked` counts the ClientHellos with the extension."""

    def __init__(self, chain: Path, key: Path):
        self.asked = 0
        self._keys = ctypes.create_string_buffer(_KEYS, len(_KEYS))
        self._callbacks = _Add(self._add), _Parse(self._parse)
        self.context = ctypes.c_void_p(
            _ssl.SSL_CTX_new(ctypes.c_void_p(_ssl.TLS_server_method())))
        assert _ssl.SSL_CTX_use_certificate_chain_file(self.context, str(chain).encode()) == 1
        assert _ssl.SSL_CTX_use_PrivateKey_file(
            self.context, str(key).encode(), _FILETYPE_PEM) == 1
        assert _ssl.SSL_CTX_add_custom_ext(
            self.context, _EXTENSION, _CONTEXTS, self._callbacks[0], None, None,
            self._callbacks[1], None) == 1
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _add(self, _ssl_, _type, _context, out, length, *_rest) -> int:
        out[0] = ctypes.addressof(self._keys)
        length[0] = len(_KEYS)
        return 1

    def _parse(self, *_arguments) -> int:
        self.asked += 1
        return 1

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        connection = ctypes.c_void_p(_ssl.SSL_new(self.context))
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nread"
        with sock:
            _ssl.SSL_set_fd(connection, sock.fileno())
            buffer = ctypes.create_string_buffer(1 << 16)
            if _ssl.SSL_accept(connection) == 1 and _ssl.SSL_read(connection, buffer, 1 << 16) > 0:
                _ssl.SSL_write(connection, answer, len(answer))
                _ssl.SSL_shutdown(connection)
            _ssl.SSL_free(connection)

    def close(self) -> None:
        self.listener.close()
