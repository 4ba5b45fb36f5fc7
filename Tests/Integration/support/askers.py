"""Clients that notice if anything is lost.

deploy/package-test uses them, too: nothing is imported here that is not Python's own.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator

from .wait import until


class Clients:
    """Threads that send one request after the other, and remember what went wrong."""

    def __init__(self, address: tuple[str, int], request: bytes, answer: bytes):
        self.address = address
        self.request = request
        self.answer = answer
        self.served = 0
        self.wrong: list[str] = []
        # The longest time from connect(2) to the answer, in seconds.
        self.longest = 0.0
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self.threads: list[threading.Thread] = []

    def run(self, count: int, keeps: bool) -> None:
        for _ in range(count):
            thread = threading.Thread(target=self._kept if keeps else self._fresh)
            thread.start()
            self.threads.append(thread)

    def _once(self, sock: socket.socket, fields: bytes) -> bytes:
        sock.sendall(self.request + fields + b"\r\n\r\n")
        received = b""
        while b"\r\n\r\n" not in received:
            more = sock.recv(65536)
            if not more:
                raise ConnectionError(f"closed after {received!r}")
            received += more
        head, _, body = received.partition(b"\r\n\r\n")
        match = re.search(rb"\r\ncontent-length: (\d+)", head, re.I)
        while match and len(body) < int(match[1]):
            more = sock.recv(65536)
            if not more:
                raise ConnectionError(f"closed in the content after {len(body)} bytes")
            body += more
        if not head.startswith(b"HTTP/1.1 200 ") or body != self.answer:
            raise ConnectionError(f"answered {head[:200]!r} {body[:60]!r}")
        return head

    def _fresh(self) -> None:
        while not self.ended.is_set():
            begun = time.monotonic()
            try:
                with socket.create_connection(self.address, 20) as sock:
                    self._once(sock, b"\r\nConnection: close")
            except (OSError, ConnectionError) as error:
                self._note(f"new connection: {error!r}")
            self._count(time.monotonic() - begun)

    def _kept(self) -> None:
        while not self.ended.is_set():
            try:
                with socket.create_connection(self.address, 20) as sock:
                    while not self.ended.is_set():
                        head = self._once(sock, b"")
                        self._count(0)
                        if b"\r\nconnection: close" in head.lower():
                            break
            except (OSError, ConnectionError) as error:
                self._note(f"kept connection: {error!r}")

    def _note(self, text: str) -> None:
        with self.lock:
            self.wrong.append(text)

    def _count(self, seconds: float) -> None:
        with self.lock:
            self.served += 1
            self.longest = max(self.longest, seconds)

    @contextlib.contextmanager
    def running(self, fresh: int = 2, kept: int = 2) -> Iterator[Callable[[], None]]:
        """While they run; yields a function that waits until they are served again, a while."""
        self.run(fresh, keeps=False)
        self.run(kept, keeps=True)

        def wait() -> None:
            before = self.served
            until(lambda: self.served >= before + 50 or self.wrong, "clients are served", 20)

        try:
            wait()
            yield wait
        finally:
            self.ended.set()
            for thread in self.threads:
                thread.join()
