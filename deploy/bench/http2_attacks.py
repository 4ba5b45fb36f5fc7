#!/usr/bin/env python3
"""Attacks of a client of HTTP/2 on a gateway, and what they cost it: a table with a line for each.

Every attack (they are those of Tests/Integration/support/attacks.py, where they are described) is run
by one connection on a gateway of its own, which has one worker, while another client asks for a stored
response every 5 ms (HTTP/1.1, keep-alive). Of each the table has

  origin   the requests that reached the server
  CPU      of the gateway, from the first byte to the end of everything that followed, without what it
           needs for the other client in that time, in milliseconds: exact to a few of them
  memory   by how much the anonymous memory of the gateway grew at most, in KiB
  p50, p99, max
           what the other client waited for its responses, in milliseconds, in a second at least; `inf`
           is a response that did not come in 20 s
  the end  GOAWAY's code and text, or how the connection ended otherwise: `open` if it did not, `not all
           read` if bytes of the attack still wait to be read. A program whose memory grows by 4 GiB is
           killed

Figures beyond the limits are bold: more requests than streams reached the server, 50 ms of CPU, 2 MiB,
and 50 ms for the other client's p99. The status is 1 if there are any for the gateway. The attacker, the
server and the other client need the machine's cores as well: the first line of the table is what is
measured without an attack.

With --peers the same is measured for other proxies, with the configurations of peers.py (one thread for
connections, but Varnish has one for each stream), before the same server; over HTTP/2 in clear text.
Their timeouts are as they are set there, and waited for eight seconds only. nghttpx, h2o and Caddy store nothing: the other
client's requests reach the server.

Usage: deploy/bench/http2_attacks.py [--binary FILE] [--frames 20000] [--only rapid_reset,pings]
                                     [--peers ours,haproxy,nginx,h2o,nghttpx,varnish,ats,envoy,caddy]
Needs what the integration tests need: run it with .build-venv/bin/python.
"""

from __future__ import annotations

import argparse
import math
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

import peers
from surroundings import ROOT, Frames, apart  # isort: skip
from programs import Program, started
from support.attacks import ATTACKS, LARGE, PATH, STREAMS, Attack, is_over
from support.frames import RESET, Attacker
from support.gateway import raise_descriptor_limit
from support.origin import HTTPOrigin, Request, reply

CPU_MILLISECONDS, MEMORY_KIB, P99_MILLISECONDS = 50, 2048, 50
PAUSE = 0.005
# More memory than that no program gets.
MOST_KIB = 4 << 20
# How long an attack may take, what it leaves to be done, and a response to the other client, in seconds.
ALLOWED, SETTLED, WAITED = 60, 10, 20
CODES = ["NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
         "STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR",
         "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"]


def serve(pipe: Connection) -> None:
    """A server. It says its authority, and then for each message how often it was asked for what the
    attackers want."""
    large = os.urandom(200_000)

    def answer(seen: Request) -> bytes:
        if seen.target.endswith("/stored"):
            return reply(b"x" * 100, "200 OK", "Cache-Control: max-age=9999")
        return reply(large if seen.target.endswith(LARGE) else b"x" * 100, "200 OK",
                     "Cache-Control: no-store")

    origin = HTTPOrigin(answer)
    pipe.send(origin.authority)
    while pipe.recv() is not None:
        pipe.send(sum(one.received.count(f"{path} ".encode())
                      for one in list(origin.connections) for path in (PATH, LARGE)))


def stand_by(pipe: Connection, address: tuple[str, int], authority: str) -> None:
    """The other client: for each message, it says how long its requests have taken since the last."""
    request = (f"GET http://{authority}/stored HTTP/1.1\r\nHost: {authority}\r\n\r\n").encode()
    wire: socket.socket | None = None
    taken: list[float] = []
    due = time.monotonic()
    while True:
        # One that was late asks at once.
        if pipe.poll(max(0.0, due - time.monotonic())):
            goes_on = pipe.recv() is not None
            pipe.send(taken)
            if not goes_on:
                return
            taken = []
        due = max(due + PAUSE, time.monotonic())
        began = time.monotonic()
        try:
            if wire is None:
                wire = socket.create_connection(address, WAITED)
                wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            ask(wire, request)
            taken.append(time.monotonic() - began)
        except OSError:
            taken.append(math.inf)
            if wire:
                wire.close()
            wire = None


def ask(wire: socket.socket, request: bytes) -> None:
    """Sends a request and reads its response."""
    wire.sendall(request)
    data = b""
    while not data.endswith(b"x" * 100):
        part = wire.recv(1 << 16)
        if not part:
            raise ConnectionError("the other client was cut off")
        data += part


def speaks(program: Program, authority: str) -> bool:
    """Whether it answers a request over HTTP/2."""
    try:
        with socket.create_connection(program.http2) as wire:
            return Frames(wire, authority).get(PATH) == 100
    except OSError:
        return False


@dataclass
class Watch:
    """The anonymous memory of a program, looked at all the time. One that takes all of the machine's
    is killed."""

    program: Program
    highest: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Watch:
        self.first = self.highest = self.program.memory()
        self.thread = threading.Thread(target=self._look)
        self.thread.start()
        return self

    def _look(self) -> None:
        while not self.ended.wait(0.002):
            now = self.program.memory()
            self.highest = max(self.highest, now)
            if now - self.first > MOST_KIB:
                self.program.kill()

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    @property
    def grown(self) -> int:
        return self.highest - self.first


@dataclass
class Trial:
    """An attack on a program: what it is run with."""

    attack: Attack
    program: Program
    authority: str
    frames: int
    # The processor time that the program needs in a second without it, and how often the server was
    # asked.
    rate: float
    asked: Callable[[], int]

    def run(self) -> str:
        """Runs it; returns how it ended."""
        attacker = Attacker(self.program.http2, self.authority)
        client = attacker.socket.getsockname()
        late = threading.Event()

        def stop() -> None:
            late.set()
            attacker.ended.set()
            attacker.socket.shutdown(socket.SHUT_RDWR)

        slow = self.attack.name.startswith("slow")
        limit = threading.Timer(self.program.patience if slow else ALLOWED, stop)
        limit.start()
        try:
            if self.attack.reads:
                attacker.reads()
            self.attack.run(attacker, self.frames)
            limit.cancel()
            if self.attack.end in ("time", "streams"):
                self._wait(lambda: is_over(attacker) or self.program.unread(client) is None)
            elif self.attack.reads:
                self._wait(lambda: attacker.ended.is_set() or not self.program.unread(client))
            # What it asked for at the server, or has thrown away, is still to be dealt with.
            self._settle()
            return self._end(attacker, client, late.is_set(), slow)
        finally:
            limit.cancel()
            attacker.close()

    def _end(self, attacker: Attacker, client: tuple[str, int], late: bool, slow: bool) -> str:
        if late:
            return f"open after {self.program.patience} s" if slow else f"more than {ALLOWED} s"
        if attacker.goaways:
            code, text = attacker.goaways[-1]
            return f"{name_of(code)} {text.decode(errors='replace')}".strip()
        unread = self.program.unread(client)
        state = "closed" if unread is None else "open, not all read" if unread else "open"
        resets = len(attacker.frames(RESET))
        return f"{state}, {resets} streams reset" if resets else state

    def _wait(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + self.program.patience
        while not condition() and not self.program.died() and time.monotonic() < end:
            time.sleep(0.1)

    def _settle(self) -> None:
        """Until it does no more than it does for the other client, and nothing arrives at the server."""
        calm, arrived = 0, self.asked()
        end = time.monotonic() + SETTLED
        while calm < 3 and time.monotonic() < end:
            before = self.program.cpu_seconds()
            time.sleep(0.05)
            used = self.program.cpu_seconds() - before - self.rate * 0.05
            now = self.asked()
            calm, arrived = calm + 1 if used < 0.003 and now == arrived else 0, now


def name_of(code: int) -> str:
    return CODES[code] if code < len(CODES) else f"code {code}"


def measure(attack: Attack | None, name: str, frames: int) -> bool:
    """Prints a line; returns whether all is within the limits."""
    server = apart(serve)
    authority = server.recv()
    title = attack.name if attack else "none"

    def asked() -> int:
        server.send(True)
        return int(server.recv())

    with started(name, int(authority.rpartition(":")[2])) as program:
        if not program or not speaks(program, authority):
            print(f"| {title} | {name} | – | – | – | – | – | – | did not start |", flush=True)
            server.send(None)
            return False
        client = apart(stand_by, program.http1, authority)

        def waited(seconds: float) -> list[float]:
            """What the other client waited in milliseconds, once so many seconds are over."""
            time.sleep(max(0, seconds))
            client.send(True)
            return sorted(one * 1000 for one in client.recv())

        # How much the other client needs.
        waited(0.3)
        began, used = time.monotonic(), program.cpu_seconds()
        count = len(waited(0.5))
        needed = program.cpu_seconds() - used
        rate, each = needed / (time.monotonic() - began), needed / max(1, count)
        before = asked()
        waited(0)
        began, used = time.monotonic(), program.cpu_seconds()
        with Watch(program) as memory:
            end = "–"
            if attack:
                end = Trial(attack, program, authority, frames, rate, asked).run()
            else:
                time.sleep(0.5)
        times = waited(0)
        cpu = max(0.0, program.cpu_seconds() - used - each * len(times)) * 1000
        # The 99th percentile needs some requests.
        times = sorted(times + waited(began + 1 - time.monotonic()))
        reached = asked() - before
        died = program.died()
        client.send(None)
        client.recv()
    server.send(None)
    times = times or [math.inf]
    p50, p99 = (times[int(len(times) * share)] for share in (0.5, 0.99))
    over = [reached > STREAMS, cpu > CPU_MILLISECONDS, memory.grown > MEMORY_KIB,
            p99 > P99_MILLISECONDS, math.isinf(times[-1])]
    if died:
        end = f"killed at {MOST_KIB >> 20} GiB" if memory.grown > MOST_KIB else "a process died"
    figures = [f"{reached}", "–" if died else f"{cpu:.1f}", f"{memory.grown}", f"{p99:.2f}",
               f"{times[-1]:.2f}"]
    origin, used_ms, grown, late, latest = (
        f"**{text}**" if bad else text for text, bad in zip(figures, over))
    print(f"| {title} | {name} | {origin} | {used_ms} | {grown} | {p50:.2f} | {late} | {latest} "
          f"| {end} |", flush=True)
    return not any(over)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default=str(ROOT / ".build/release/pinfold"))
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--peers", default="ours")
    given = parser.parse_args()
    raise_descriptor_limit()
    names = [name for name in given.peers.split(",")
             if name == "ours" or peers.PEERS[name].installed()]
    print("| attack | program | origin | CPU, ms | memory, KiB | p50 | p99 | max | the end |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    wanted = given.only.split(",") if given.only else []
    good = True
    for attack in [None, *ATTACKS]:
        for name in names:
            if not wanted or attack and attack.name in wanted:
                good = (measure(attack, name, given.frames) or name != "ours") and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
