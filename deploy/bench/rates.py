#!/usr/bin/env python3
"""Measures rates of access rules (`rate`) against what was set, with 1, 10 and 1,000 clients, which are
addresses of loopback. Prints a table: what was set, what passed in the time, and how far that is off;
with a rate for each client also the client that is off the most.

Usage: deploy/bench/rates.py [--binary FILE] [--seconds 10] [--clients 1,10,1000]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BODY = bytes(1 << 16)


async def origin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers /small with a byte, anything else with bytes for ever; reads what is sent to it."""
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"POST"):
                while await reader.read(1 << 16):
                    pass
                return
            if b"/small" in head.split(b"\r\n")[0]:
                writer.write(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=9999\r\n"
                             b"Content-Length: 1\r\n\r\nx")
                continue
            writer.write(b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n")
            while True:
                writer.write(BODY)
                await writer.drain()


def source(number: int) -> tuple[str, int]:
    return f"127.1.{number // 250}.{number % 250 + 1}", 0


class Client:
    """What one client got, and when: the first and the last of it."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.bytes = 0

    def rate(self) -> float:
        """Requests in a second, by the time from the first to the last."""
        if len(self.times) < 2:
            return 0.0
        return (len(self.times) - 1) / (self.times[-1] - self.times[0])


async def ask(client: Client, port: int, to: int, number: int, end: float) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=source(number))
    request = f"GET http://127.0.0.1:{to}/small HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    while time.monotonic() < end:
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        if time.monotonic() < end and head.startswith(b"HTTP/1.1 200"):
            client.times.append(time.monotonic())
    writer.close()


class Receiver(asyncio.Protocol):
    """Counts what it receives while `counts` is true."""

    counts = False

    def __init__(self, client: Client, request: bytes) -> None:
        self.client, self.request = client, request
        self.began: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.write(self.request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        if Receiver.counts:
            self.client.bytes += len(data)
        elif not self.began.done():
            self.began.set_result(None)


async def receive(clients: list[Client], port: int, to: int, seconds: float) -> float:
    """Counts for a time, once all have begun to receive. Returns that time."""
    loop = asyncio.get_running_loop()
    protocols = []
    for number, client in enumerate(clients):
        request = f"GET http://127.0.0.1:{to}/{number} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        _, made = await loop.create_connection(
            lambda client=client, request=request: Receiver(client, request), "127.0.0.1", port,
            local_addr=source(number))
        protocols.append(made)
    await asyncio.gather(*[one.began for one in protocols])
    Receiver.counts, began = True, time.monotonic()
    await asyncio.sleep(seconds)
    Receiver.counts, taken = False, time.monotonic() - began
    for one in protocols:
        one.transport.close()
    return taken


async def run(
    kind: str, count: int, port: int, to: int, seconds: float
) -> tuple[list[Client], float]:
    clients = [Client() for _ in range(count)]
    if kind != "requests":
        return clients, await receive(clients, port, to, seconds)
    end = time.monotonic() + seconds
    await asyncio.gather(*[
        ask(client, port, to, number, end) for number, client in enumerate(clients)])
    return clients, seconds


def configuration(port: int, rate: dict, to: int) -> dict:
    return {
        "workers": 2, "admin": {"address": "127.0.0.1:0"},
        "listeners": [{"name": "proxy", "address": f"127.0.0.1:{port}", "kind": "forward"}],
        "access": {"destinations": {"allow": ["127.0.0.0/8"]},
                   "rules": [{"name": "limited", "action": "allow", "rate": rate}]},
        # Each client has a connection to the one server.
        "limits": {"upstreamPerHost": 4096, "connections": 16384},
        "log": {"level": "warning", "access": "none"}, "cache": {"memory": "16MiB", "disk": "0"}}


async def measure(binary: str, kind: str, per: str, count: int, each: int, seconds: float) -> str:
    server = await asyncio.start_server(origin, "127.0.0.1", 0, backlog=4096)
    to = server.sockets[0].getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    total = each * count
    set_to = each if per == "client" else total
    rate = {"per": per, "over": "delay"}
    rate |= ({"requests": f"{set_to}/s", "burst": 1} if kind == "requests"
             else {"down": f"{set_to}/s"})
    if kind != "requests":
        del rate["over"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pinfold.yaml"
        file.write_text(json.dumps(configuration(port, rate, to)))
        process = subprocess.Popen([binary, "run", "--config", str(file)], cwd=folder,
                                   stderr=subprocess.DEVNULL)
        try:
            for _ in range(200):
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                await asyncio.sleep(0.05)
            clients, taken = await run(kind, count, port, to, seconds)
        finally:
            process.kill()
            process.wait()
            server.close()
    if kind == "requests":
        together = Client()
        together.times = sorted(time for client in clients for time in client.times)
        rates = [client.rate() for client in clients]
        # The first of each is the burst.
        got = together.rate() if per == "rule" else sum(rates)
    else:
        got = sum(client.bytes for client in clients) / taken
        rates = [client.bytes / taken for client in clients]
    worst = max((abs(rate - each) / each for rate in rates), default=0)
    fair = f"{worst * 100:6.1f} %" if count > 1 else "–"
    return (f"| {kind} | {per} | {count} | {set_to} | {got:.1f} of {total} "
            f"| {(got - total) / total * 100:+.2f} % | {fair} |")


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default=str(ROOT / ".build/release/pinfold"))
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", default="1,10,1000")
    given = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print("| limit | per | clients | set, in a second | got | off | the worst client |")
    print("|---|---|---|---|---|---|---|")
    for count in [int(number) for number in given.clients.split(",")]:
        for kind, each in (("requests", {1: 50, 10: 20}.get(count, 1)),
                           ("bytes down", {1: 4 << 20, 10: 1 << 20}.get(count, 5_000))):
            for per in ("client", "rule"):
                # A queue of all clients is shorter than 1,000.
                if kind == "requests" and per == "rule" and count > 100:
                    continue
                print(await measure(given.binary, kind, per, count, each, given.seconds))
                sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
