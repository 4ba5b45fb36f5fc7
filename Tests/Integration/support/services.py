"""A service manager for one gateway: its socket for notifications, the sockets that it passes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from .gateway import Gateway
from .wait import SLOWDOWN

LAUNCHER = Path(__file__).with_name("activation.py")


class NotifySocket:
    """What a service says about itself, message by message (sd_notify(3))."""

    def __init__(self, address: str):
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self.messages: list[dict[str, str]] = []
        self.senders: set[int] = set()

    def close(self) -> None:
        self.socket.close()

    def _receive(self, timeout: float) -> dict[str, str] | None:
        self.socket.settimeout(max(0.001, timeout))
        try:
            data, ancillary, _, _ = self.socket.recvmsg(65_536, 1024)
        except (TimeoutError, BlockingIOError):
            return None
        for _, kind, content in ancillary:
            if kind == socket.SCM_CREDENTIALS:
                self.senders.add(struct.unpack("3i", content)[0])
        message = dict(line.split("=", 1) for line in data.decode().split("\n"))
        self.messages.append(message)
        return message

    def wait(self, timeout: float = 15, **expected: str) -> dict[str, str]:
        """The next message whose assignments match these patterns, each as a whole."""
        deadline = time.monotonic() + timeout * min(SLOWDOWN, 4)
        while (left := deadline - time.monotonic()) > 0:
            message = self._receive(left)
            if message is not None and all(re.fullmatch(pattern, message.get(name, ""))
                                           for name, pattern in expected.items()):
                return message
        raise AssertionError(f"no message with {expected}; there were {self.messages[-20:]}")

    def waiting(self) -> list[dict[str, str]]:
        """The messages that have arrived by now."""
        found = []
        while (message := self._receive(0)) is not None:
            found.append(message)
        return found


def activated(made: Gateway, sockets: list[tuple[str, socket.socket]]) -> Gateway:
    """Passes sockets, each with a name, to a gateway that has not been started."""
    made.passed = tuple(one.fileno() for _, one in sockets)
    made.launcher = [sys.executable, str(LAUNCHER),
                     *(f"{name}={one.fileno()}" for name, one in sockets), "--"]
    return made


def listening(host: str = "127.0.0.1", port: int = 0, *, reuse: bool = False) -> socket.socket:
    """A listening socket as a socket unit opens it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    one = socket.socket(family, socket.SOCK_STREAM)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if reuse:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if family == socket.AF_INET6:
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    one.bind((host, port))
    one.listen(128)
    return one


# ptrace(2)
_SEIZE, _INTERRUPT, _DETACH = 0x4206, 0x4207, 17
# wait(2): a thread of another process, too.
_WALL = 0x40000000


@contextlib.contextmanager
def stopped_threads(pid: int, *names: str) -> Iterator[list[int]]:
    """Stops threads of a process, as a debugger does, and lets them go on at the end, if they are
    still there. PermissionError if this machine does not allow that."""
    tasks = Path(f"/proc/{pid}/task")
    threads = [int(one.name) for one in tasks.iterdir()
               if (one / "comm").read_text().strip() in names]
    assert len(threads) == len(names)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

    def ptrace(request: int, thread: int) -> None:
        if libc.ptrace(request, thread, None, None) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))

    seized = []
    try:
        for thread in threads:
            ptrace(_SEIZE, thread)
            seized.append(thread)
            ptrace(_INTERRUPT, thread)
            _, status = os.waitpid(thread, _WALL)
            assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGTRAP, status
        yield threads
    finally:
        for thread in seized:
            with contextlib.suppress(ProcessLookupError):
                ptrace(_DETACH, thread)
