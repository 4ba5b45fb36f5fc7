#!/usr/bin/env python3
"""Attacks of a client of HTTP/2 on a gateway, and what they cost it: a table with a line for each.

Every attack (they are those of Tests/Integration/support/attacks.py, where they are described) is run
by one connection on a gateway of its own, which has one worker, while another client asks for a stored
response every 5 ms (HTTP/1.1, keep-alive). Of each the table has

  origin   the requests that reached the server
  CPU      of the gateway, from the first byte to the end of everything that followed, without what it
           needs for the other client in that time, in milliseconds
  memory   by how much the anonymous memory of the gateway grew at most, in KiB
  p50, p99, max
           what the other client waited for its responses, in milliseconds, in a second at least
  the end  GOAWAY's code and text, or how the connection ended otherwise

The status is 1 if more requests than streams reached the server, or a limit was passed: 50 ms of CPU,
2 MiB, and 50 ms for the other client's p99. The attacker, the server and the other client need the
machine's cores as well: the first line of the table is what is measured without an attack.

Usage: deploy/bench/http2_attacks.py [--binary FILE] [--frames 20000] [--only rapid_reset,pings]
Needs what the integration tests need: run it with .build-venv/bin/python.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from surroundings import ROOT, Gateway, apart, running
from support.attacks import ATTACKS, CONFIGURATION, LARGE, PATH, STREAMS, Attack, is_over
from support.frames import PING, RESET, Attacker, frame
from support.gateway import raise_descriptor_limit
from support.origin import HTTPOrigin, Request, reply

CPU_MILLISECONDS, MEMORY_KIB, P99_MILLISECONDS = 50, 2048, 50
PAUSE = 0.005
CODES = ["NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT",
         "STREAM_CLOSED", "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR",
         "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"]


def serve(pipe: Connection) -> None:
    """A server. It says its authority, and then for each message how often it was asked for what the
    attackers want."""
    large = os.urandom(200_000)

    def answer(seen: Request) -> bytes:
        if seen.target == "/stored":
            return reply(b"x" * 100, "200 OK", "Cache-Control: max-age=9999")
        return reply(large if seen.target == LARGE else b"x" * 100, "200 OK",
                     "Cache-Control: no-store")

    origin = HTTPOrigin(answer)
    pipe.send(origin.authority)
    while pipe.recv() is not None:
        pipe.send(sum(one.received.count(f"{path} ".encode())
                      for one in list(origin.connections) for path in (PATH, LARGE)))


def stand_by(pipe: Connection, address: tuple[str, int], authority: str) -> None:
    """The other client: for each message, it says how long its requests have taken since the last."""
    request = (f"GET http://{authority}/stored HTTP/1.1\r\nHost: {authority}\r\n\r\n").encode()
    with socket.create_connection(address) as wire:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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
            wire.sendall(request)
            data = b""
            while not data.endswith(b"x" * 100):
                part = wire.recv(1 << 16)
                if not part:
                    raise ConnectionError("the other client was cut off")
                data += part
            taken.append(time.monotonic() - began)


@dataclass
class Watch:
    """The anonymous memory of a gateway, looked at all the time."""

    gateway: Gateway
    highest: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Watch:
        self.first = self.highest = self.gateway.status("RssAnon")
        self.thread = threading.Thread(target=self._look)
        self.thread.start()
        return self

    def _look(self) -> None:
        while not self.ended.wait(0.002):
            self.highest = max(self.highest, self.gateway.status("RssAnon"))

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        self.thread.join()

    @property
    def grown(self) -> int:
        return self.highest - self.first


def run(attack: Attack, gateway: Gateway, authority: str, frames: int) -> str:
    """Runs an attack; returns how it ended."""
    attacker = Attacker(gateway.proxy, authority)
    try:
        if attack.reads:
            attacker.reads()
        attack.run(attacker, frames)
        if attack.end == "none":
            # Everything that was sent has been read once this is answered.
            if attack.reads and attacker.send(frame(PING, 0, 0, b"the end.")):
                wait(lambda: attacker.ended.is_set()
                     or any(one[3] == b"the end." for one in attacker.frames(PING)))
        elif attack.reads:
            wait(lambda: is_over(attacker) if attack.end == "streams" else attacker.ended.is_set())
        else:
            wait(lambda: is_gone(gateway))
        # What it asked for at the server, or has thrown away, is still to be dealt with.
        settle(gateway)
        if attacker.goaways:
            code, text = attacker.goaways[-1]
            return f"{CODES[code]} {text.decode()}".strip()
        if resets := len(attacker.frames(RESET)):
            return f"open, {resets} streams reset"
        return "closed" if is_gone(gateway) else "open"
    finally:
        attacker.close()


def is_gone(gateway: Gateway) -> bool:
    """Whether there are only the connections of the other client, and the one that asks."""
    return gateway.metric("pinfold_client_connections_open") <= 2


def wait(condition: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.25)


def settle(gateway: Gateway) -> None:
    """Until it does no more than it does for the other client."""
    calm = 0
    for _ in range(200):
        before = gateway.cpu_seconds()
        time.sleep(0.05)
        calm = calm + 1 if gateway.cpu_seconds() - before < 0.003 else 0
        if calm == 3:
            return


def measure(attack: Attack | None, frames: int) -> bool:
    """Prints a line; returns whether all is within the limits."""
    server = apart(serve)
    authority = server.recv()
    with running(CONFIGURATION) as gateway:
        client = apart(stand_by, gateway.proxy, authority)
        time.sleep(0.3)
        # How much the other client needs.
        began, used = time.monotonic(), gateway.cpu_seconds()
        time.sleep(0.5)
        rate = (gateway.cpu_seconds() - used) / (time.monotonic() - began)
        client.send(True)
        client.recv()
        server.send(True)
        asked = server.recv()
        began, used = time.monotonic(), gateway.cpu_seconds()
        with Watch(gateway) as memory:
            end = run(attack, gateway, authority, frames) if attack else "–"
        cpu = (gateway.cpu_seconds() - used - rate * (time.monotonic() - began)) * 1000
        # The 99th percentile needs some requests.
        time.sleep(max(0, began + 1 - time.monotonic()))
        client.send(True)
        waited = sorted(one * 1000 for one in client.recv())
        server.send(True)
        reached = server.recv() - asked
        client.send(None)
        client.recv()
    server.send(None)
    p50, p99 = (waited[int(len(waited) * share)] for share in (0.5, 0.99))
    over = [reached > STREAMS, cpu > CPU_MILLISECONDS, memory.grown > MEMORY_KIB,
            p99 > P99_MILLISECONDS]
    figures = [f"{reached}", f"{cpu:.1f}", f"{memory.grown}", f"{p99:.2f}"]
    origin, used_ms, grown, late = (
        f"**{text}**" if bad else text for text, bad in zip(figures, over))
    print(f"| {attack.name if attack else 'none'} | {origin} | {used_ms} | {grown} | {p50:.2f} "
          f"| {late} | {waited[-1]:.2f} | {end} |", flush=True)
    return not any(over)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default=str(ROOT / ".build/release/pinfold"))
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    raise_descriptor_limit()
    print("| attack | origin | CPU, ms | memory, KiB | p50 | p99 | max | the end |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    wanted = given.only.split(",") if given.only else []
    good = wanted != [] or measure(None, 0)
    for attack in ATTACKS:
        if not wanted or attack.name in wanted:
            good = measure(attack, given.frames) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
