"""A TLS 1.3 server that answers every request with key updates: Python's ssl cannot send them, so
it speaks to libssl itself."""

from __future__ import annotations

import ctypes
import socket
import threading
from pathlib import Path

_FILETYPE_PEM = 1
_ssl = ctypes.CDLL("libssl.so.3")
for _name in ("TLS_server_method", "SSL_CTX_new", "SSL_new"):
    getattr(_ssl, _name).restype = ctypes.c_void_p


class KeyUpdateServer:
    """Sends up to `count` key updates to each client that has asked for something; `sent` says how
    many the last client took."""

    def __init__(self, chain: Path, key: Path, count: int):
        self.count = count
        self.sent = 0
        self.finished = threading.Event()
        self.context = ctypes.c_void_p(
            _ssl.SSL_CTX_new(ctypes.c_void_p(_ssl.TLS_server_method())))
        assert _ssl.SSL_CTX_use_certificate_chain_file(self.context, str(chain).encode()) == 1
        assert _ssl.SSL_CTX_use_PrivateKey_file(
            self.context, str(key).encode(), _FILETYPE_PEM) == 1
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.setblocking(True)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        connection = ctypes.c_void_p(_ssl.SSL_new(self.context))
        with sock:
            _ssl.SSL_set_fd(connection, sock.fileno())
            buffer = ctypes.create_string_buffer(1 << 16)
            if _ssl.SSL_accept(connection) == 1 and _ssl.SSL_read(connection, buffer, 1 << 16) > 0:
                self.sent = 0
                while self.sent < self.count:
                    if (_ssl.SSL_key_update(connection, 0) != 1
                            or _ssl.SSL_do_handshake(connection) != 1):
                        break
                    self.sent += 1
                self.finished.set()
            _ssl.SSL_free(connection)

    def close(self) -> None:
        self.listener.close()
