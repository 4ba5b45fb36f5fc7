"""Traffic that keeps a gateway as busy as one machine can: run as a process of its own, so that it
does not share the tests' interpreter.
`python -m support.flood KIND HOST PORT CONNECTIONS SECONDS TARGET`."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

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


def _interim_source(sock: socket.socket) -> None:
    """As many interim responses as the gateway takes, then an empty answer."""
    one = b"HTTP/1.1 102 Processing\r\nX-Pad: " + b"x" * 1000 + b"\r\n\r\n"
    with contextlib.suppress(OSError), sock:
        while data := sock.recv(1 << 16):
            answer = one * 32 + b"HTTP/1.1 204 No Content\r\n\r\n"
            sock.sendall(answer * max(1, data.count(b"\r\n\r\n")))


class Flood:
    """The attackers of one kind and the server that they ask for. Each of them says in `begun` when
    its traffic flows."""

    def __init__(self, kind: str, gateway: tuple[str, int], seconds: float, target: str):
        self.kind = kind
        self.gateway = gateway
        self.target = target
        self.begun = threading.Semaphore(0)
        self.end = time.monotonic() + seconds
        self.origin = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.origin.getsockname()[1]
        self.authority = f"127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, args=(self.serve(),), daemon=True).start()

    def serve(self) -> Callable[[socket.socket], None]:
        """What the server does on a connection."""
        return {"response": _chunk_source, "interim": _interim_source}.get(self.kind, _sink)

    def is_over(self) -> bool:
        return time.monotonic() >= self.end

    def _accept(self, serve: Callable[[socket.socket], None]) -> None:
        while True:
            sock, _ = self.origin.accept()
            threading.Thread(target=serve, args=(sock,), daemon=True).start()

    def attack(self) -> None:
        with contextlib.suppress(OSError), socket.create_connection(self.gateway) as sock:
            getattr(self, f"_{self.kind}")(sock)

    def _pour(self, sock: socket.socket, data: bytes) -> None:
        sock.sendall(data)
        self.begun.release()
        while not self.is_over():
            sock.sendall(data)

    def _head(self, method: str, *fields: str) -> bytes:
        lines = [f"{method} http://{self.authority}/ HTTP/1.1", f"Host: {self.authority}", *fields]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def _upload(self, sock: socket.socket) -> None:
        sock.sendall(self._head("POST", "Transfer-Encoding: chunked"))
        self._pour(sock, CHUNKS)

    def _stream(self, sock: socket.socket) -> None:
        sock.sendall(self._head("POST", f"Content-Length: {1 << 50}"))
        self._pour(sock, bytes(1 << 20))

    def _response(self, sock: socket.socket) -> None:
        sock.sendall(self._head("GET"))
        sock.recv(1)
        self.begun.release()
        while not self.is_over() and sock.recv(1 << 20):
            pass

    def _tunnel(self, sock: socket.socket) -> None:
        sock.sendall(
            f"CONNECT {self.authority} HTTP/1.1\r\nHost: {self.authority}\r\n\r\n".encode())
        sock.recv(1 << 16)
        self._pour(sock, bytes(1 << 20))

    def _frames(self, sock: socket.socket) -> None:
        """A tunnel in segments of one byte."""
        sock.sendall(
            f"CONNECT {self.authority} HTTP/1.1\r\nHost: {self.authority}\r\n\r\n".encode())
        sock.recv(1 << 16)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pour(sock, b"x")

    def _extensions(self, sock: socket.socket) -> None:
        """The most that chunk extensions may have, then empty lines' worth of chunks."""
        sock.sendall(self._head("POST", "Transfer-Encoding: chunked"))
        sock.sendall(b"1;" + b"a" * 4000 + b"\r\nx\r\n")
        self._pour(sock, b"00000000000001\r\nx\r\n" * 10_000)

    def _interim(self, sock: socket.socket) -> None:
        threading.Thread(target=_sink, args=(sock.dup(),), daemon=True).start()
        self._pour(sock, self._head("GET") * 500)

    def _refused(self, sock: socket.socket) -> None:
        """One connection after the other, each refused at its first line."""
        self._refuse_one()
        self.begun.release()
        while not self.is_over():
            self._refuse_one()

    def _refuse_one(self) -> None:
        with contextlib.suppress(ConnectionError), socket.create_connection(self.gateway) as one:
            one.sendall(b"GARBAGE\r\n\r\n" * 1000)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0] + [0] * 4))

    def _pipeline(self, sock: socket.socket) -> None:
        threading.Thread(target=_sink, args=(sock.dup(),), daemon=True).start()
        self._pour(sock, self._request("HEAD") * 1000)

    def _metrics(self, sock: socket.socket) -> None:
        threading.Thread(target=_sink, args=(sock.dup(),), daemon=True).start()
        self._pour(sock, self._request("GET") * 1000)

    def _request(self, method: str) -> bytes:
        return f"{method} {self.target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


@contextlib.contextmanager
def flooding(
    kind: str, gateway: tuple[str, int], connections: int, target: str = "/", seconds: float = 600,
    module: str = __name__
) -> Iterator[int]:
    """The flood runs while the block does, and for `seconds` at most. `target`
    is what pipelined requests ask for. Yields the port of its server."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, kind, gateway[0], str(gateway[1]), str(connections),
         str(seconds), target], stdout=subprocess.PIPE, cwd=Path(__file__).parents[1])
    try:
        assert process.stdout is not None
        line = process.stdout.readline().split()
        assert line[:1] == [b"begun"], line
        yield int(line[1])
    finally:
        process.kill()
        process.wait()


def main(flood_type: type[Flood]) -> None:
    kind, host, port, connections, seconds, target = sys.argv[1:]
    flood = flood_type(kind, (host, int(port)), float(seconds), target)
    threads = [threading.Thread(target=flood.attack, daemon=True) for _ in range(int(connections))]
    for thread in threads:
        thread.start()
    # What is measured waits for the line.
    if not all(flood.begun.acquire(timeout=30) for _ in threads):
        os._exit(1)
    print("begun", flood.port, flush=True)
    # Without attackers there is only the server.
    threading.Event().wait(max(0.0, flood.end - time.monotonic()))
    os._exit(0)


if __name__ == "__main__":
    main(Flood)
