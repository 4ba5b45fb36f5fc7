"""What http2_attacks.py attacks: the gateway, or another proxy with the configuration of peers.py. Each
is started for one attack, before the server of the attacks."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import peers
from support.attacks import CONFIGURATION
from surroundings import running

# What PyPI has installed is beside the interpreter.
os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
ESTABLISHED = "01"


@dataclass
class Program:
    """A proxy that runs. `patience` is how long its end of an attack is waited for, in seconds."""

    name: str
    processes: list[int]
    http1: tuple[str, int]
    http2: tuple[str, int]
    patience: float

    def cpu_seconds(self) -> float:
        """The processor time of all its processes, to the nanosecond (clock_getcpuclockid(3))."""
        return sum(time.clock_gettime(~pid << 3 | 2) for pid in self.processes if exists(pid))

    def memory(self) -> int:
        """The anonymous memory of all its processes, in KiB."""
        return sum(int(line.split()[1]) for pid in self.processes for line in status(pid)
                   if line.startswith("RssAnon:"))

    def died(self) -> bool:
        """Whether one of its processes has ended, also if another one was started for it."""
        return not all(exists(pid) for pid in self.processes)

    def kill(self) -> None:
        for pid in self.processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def unread(self, client: tuple[str, int]) -> int | None:
        """How much of what a client has sent the program has not read, in bytes; none if it has
        ended the connection (proc_net_tcp)."""
        here, there = f":{self.http2[1]:04X}", f":{client[1]:04X}"
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, local, remote, state, queues, *_ = line.split()
            if local.endswith(here) and remote.endswith(there) and state == ESTABLISHED:
                return int(queues.partition(":")[2], 16)
        return None


def status(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return []


def exists(pid: int) -> bool:
    return any(line.startswith("State:") and "Z" not in line.split()[1] for line in status(pid))


@contextlib.contextmanager
def started(name: str, origin: int) -> Iterator[Program | None]:
    """Runs a program, `ours` or one of peers.py, before a server's port. None if it does not start."""
    if name == "ours":
        with running(CONFIGURATION) as gateway:
            yield Program(name, [gateway.pid], gateway.proxy, gateway.proxy, 20)
        return
    work = tempfile.mkdtemp(prefix="attacks-")
    os.chmod(work, 0o777)  # some of them change their user
    peers.make_certificates(work)
    peers.ORIGIN = origin
    peer = peers.PEERS[name]
    peer.port = free_ports()
    host = "127.0.0.1"
    try:
        ready = peer.start(work) and peers.wait_port(peer.port + peers.H2CLEAR)
        yield Program(name, peers.tree(peer.proc.pid), (host, peer.port),
                      (host, peer.port + peers.H2CLEAR), 8) if ready else None
    finally:
        peer.stop()
        shutil.rmtree(work, ignore_errors=True)


def free_ports() -> int:
    """A port of which those that peers.py adds to it are free as well."""
    for port in range(20_000, 21_000):
        with contextlib.ExitStack() as held:
            try:
                for more in (0, peers.H2TLS, peers.H2CLEAR, peers.H2H2TLS, peers.H2H2):
                    held.enter_context(socket.create_server(("127.0.0.1", port + more)))
                return port
            except OSError:
                continue
    raise OSError("no ports are free")
