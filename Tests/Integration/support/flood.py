"""Traffic that keeps a gateway as busy as one machine can: run as a process of its own, so that it
does not share the tests' interpreter. `python flood.py KIND HOST PORT CONNECTIONS SECONDS TARGET`."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

CHUNKS = b"1\r\nx\r\n" * 20_000


def _sink(sock: socket.socket) -> None:
    with contextlib.suppress(OSError), sock:
        while sock.recv(1 << 20):
            pass


def _chunk_source(sock: socket.socket) -> None:
    with contextlib.suppress(OSError), sock:
        sock.recv(1 << 16)
        sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            sock.sendall(CHUNKS)


def _pour(sock: socket.socket, data: bytes, end: float) -> None:
    with contextlib.suppress(OSError):
        while time.monotonic() < end:
            sock.sendall(data)


class Flood:
    def __init__(self, kind: str, gateway: tuple[str, int], seconds: float, target: str):
        self.kind = kind
        self.gateway = gateway
        self.target = target
        self.end = time.monotonic() + seconds
        self.origin = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.authority = f"127.0.0.1:{self.origin.getsockname()[1]}"
        serve = _chunk_source if kind == "response" else _sink
        threading.Thread(target=self._accept, args=(serve,), daemon=True).start()

    def _accept(self, serve) -> None:
        while True:
            sock, _ = self.origin.accept()
            threading.Thread(target=serve, args=(sock,), daemon=True).start()

    def attack(self) -> None:
        with contextlib.suppress(OSError), socket.create_connection(self.gateway) as sock:
            getattr(self, f"_{self.kind}")(sock)

    def _head(self, method: str, *fields: str) -> bytes:
        lines = [f"{method} http://{self.authority}/ HTTP/1.1", f"Host: {self.authority}", *fields]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def _upload(self, sock: socket.socket) -> None:
        sock.sendall(self._head("POST", "Transfer-Encoding: chunked"))
        _pour(sock, CHUNKS, self.end)

    def _stream(self, sock: socket.socket) -> None:
        sock.sendall(self._head("POST", f"Content-Length: {1 << 50}"))
        _pour(sock, bytes(1 << 20), self.end)

    def _response(self, sock: socket.socket) -> None:
        sock.sendall(self._head("GET"))
        while time.monotonic() < self.end and sock.recv(1 << 20):
            pass

    def _tunnel(self, sock: socket.socket) -> None:
        sock.sendall(
            f"CONNECT {self.authority} HTTP/1.1\r\nHost: {self.authority}\r\n\r\n".encode())
        sock.recv(1 << 16)
        _pour(sock, bytes(1 << 20), self.end)

    def _pipeline(self, sock: socket.socket) -> None:
        threading.Thread(target=_sink, args=(sock.dup(),), daemon=True).start()
        _pour(sock, self._request("HEAD") * 1000, self.end)

    def _metrics(self, sock: socket.socket) -> None:
        threading.Thread(target=_sink, args=(sock.dup(),), daemon=True).start()
        _pour(sock, self._request("GET") * 1000, self.end)

    def _request(self, method: str) -> bytes:
        return f"{method} {self.target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


@contextlib.contextmanager
def flooding(
    kind: str, gateway: tuple[str, int], connections: int, target: str = "/", seconds: float = 60
) -> Iterator[None]:
    """The flood runs while the block does, and for `seconds` at most. `target`
    is what pipelined requests ask for."""
    process = subprocess.Popen(
        [sys.executable, __file__, kind, gateway[0], str(gateway[1]), str(connections),
         str(seconds), target], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None and process.stdout.readline() == b"begun\n"
        yield
    finally:
        process.kill()
        process.wait()


def main() -> None:
    kind, host, port, connections, seconds, target = sys.argv[1:]
    flood = Flood(kind, (host, int(port)), float(seconds), target)
    threads = [threading.Thread(target=flood.attack, daemon=True) for _ in range(int(connections))]
    for thread in threads:
        thread.start()
    time.sleep(0.3)  # for the connections to be under way; what is measured waits for the line
    print("begun", flush=True)
    for thread in threads:
        thread.join(max(0.0, flood.end - time.monotonic()))
    os._exit(0)


if __name__ == "__main__":
    main()
