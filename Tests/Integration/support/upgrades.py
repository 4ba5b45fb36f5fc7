"""Gateways that hand over to a successor, and clients that notice if anything is lost."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from . import gateway as gateways
from .gateway import Gateway
from .wait import until
from .wire import Address

SERVES = re.compile(r"the successor serves.* pid=(\d+)")


class Succession:
    """A gateway and those that succeed it: all are in one process group, of which only the first is
    our child. The program is a link that can be made to lead to another."""

    def __init__(self, first: Gateway):
        self.gateway = first
        self.program = first.folder / "bin" / "pinfold"
        self.program.parent.mkdir()
        self.lead_to(gateways.BINARY)
        first.launcher = [
            "/bin/sh", "-c", f"shift; exec {shlex.quote(str(self.program))} \"$@\"", "sh"]
        first.start()
        self.group = first.pid
        self.pid = first.pid

    def lead_to(self, program: Path) -> None:
        link = self.program.with_name("next")
        link.symlink_to(program)
        link.rename(self.program)

    def script(self, text: str) -> None:
        """Puts a shell script in the program's place. `"$PINFOLD" "$@"` runs the program."""
        file = self.program.with_name("script")
        file.unlink(missing_ok=True)
        file.write_text(f"#!/bin/sh\nPINFOLD={shlex.quote(str(gateways.BINARY))}\n{text}\n")
        file.chmod(0o755)
        self.lead_to(file)

    def log_from(self, start: int) -> str:
        return self.gateway.log()[start:]

    def begin(self) -> int:
        """Asks for an upgrade; returns the length of the log before it."""
        start = len(self.gateway.log())
        os.kill(self.pid, signal.SIGUSR2)
        return start

    def upgrade(self) -> int:
        """Another process serves: its number."""
        start = self.begin()
        match = until(lambda: SERVES.search(self.log_from(start)),
                      lambda: f"the successor serves:\n{self.log_from(start)}", 30)
        self.pid = int(match[1])
        return self.pid

    def fail(self) -> str:
        """An upgrade that fails: the line that says why."""
        start = self.begin()
        return self.failure(start)

    def failure(self, start: int) -> str:
        def line() -> str:
            return next((line for line in self.log_from(start).splitlines()
                         if "upgrade failed; this process goes on" in line), "")

        return until(line, lambda: f"the upgrade has failed:\n{self.log_from(start)}", 30)

    def members(self) -> set[int]:
        """The processes of the group that have not ended."""
        found = set()
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[2]) == self.group and fields[0] != "Z":
                    found.add(int(entry.name))
        return found

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        try:
            until(lambda: not self.members(), lambda: f"all have ended: {self.members()}, {self.pid}\n" + self.gateway.log()[-3000:], 15)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.group, signal.SIGKILL)


class Clients:
    """Threads that send one request after the other, and remember what went wrong."""

    def __init__(self, address: Address, request: bytes, answer: bytes):
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
