#!/usr/bin/env python3
"""How much memory a gateway needs for what clients of HTTP/2 leave open, in clear text: its anonymous
memory (/proc) before and after, divided by the number of what was opened.

  idle      connections that are open and have no stream (10,000), without a request, after one, and
            after one with the fields of a browser, which enter a table; three seconds later.
            HTTP/1.1 is beside it
  stalled   streams whose response cannot be sent (1,000 on 10 connections), because the client gives
            no window, or because it does not read and the system's buffers are full; responses of
            16 KiB from the cache and from a server, and of 1 MiB from a server

An idle connection may have 4 KiB, a stalled stream 24 KiB: if one is above that, the status is 1.

Usage: deploy/bench/http2_memory.py [--binary FILE] [--connections 10000] [--streams 1000]
Needs what the integration tests need: run it with .build-venv/bin/python.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
import sys
import time
from multiprocessing.connection import Connection

from surroundings import ROOT, Frames, Gateway, apart, running
from support.gateway import raise_descriptor_limit

IDLE_BYTES, STALLED_BYTES = 4 << 10, 24 << 10
# What a connection has for its next stream is given back after two seconds.
REST = 3
# Fields that a browser has in each request, and puts into the table of header compression.
BROWSER = [
    ("sec-ch-ua", '"Chromium";v="138", "Not)A;Brand";v="8"'), ("sec-ch-ua-mobile", "?0"),
    ("sec-ch-ua-platform", '"Linux"'), ("upgrade-insecure-requests", "1"),
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
                   "Chrome/138.0.0.0 Safari/537.36"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"),
    ("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate"), ("sec-fetch-user", "?1"),
    ("sec-fetch-dest", "document"), ("accept-encoding", "gzip, deflate, br, zstd"),
    ("accept-language", "en-US,en;q=0.9"), ("cookie", "session=0123456789abcdef0123456789abcdef")]
# By what a path has in it.
SIZES = {b"/small": 100, b"/large": 1 << 20, b"/filler": 8 << 20, b"/": 16 << 10}


def serve(pipe: Connection) -> None:
    """A server that says its authority: /stored may be stored, everything else may not."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                use = b"max-age=9999" if b" /stored" in head else b"no-store"
                size = next(size for path, size in SIZES.items() if path in head)
                writer.write(b"HTTP/1.1 200 OK\r\nCache-Control: " + use + b"\r\nContent-Length: "
                             + str(size).encode() + b"\r\n\r\n" + b"x" * size)

    async def run() -> None:
        server = await asyncio.start_server(converse, "127.0.0.1", 0, backlog=4096)
        pipe.send("127.0.0.1:%d" % server.sockets[0].getsockname()[1])
        await server.serve_forever()

    raise_descriptor_limit()
    asyncio.run(run())


def anonymous(gateway: Gateway) -> int:
    """The anonymous memory in bytes, once it does not change any more."""
    last, calm = -1, 0
    while calm < 5:
        time.sleep(0.1)
        now = gateway.status("RssAnon") * 1024
        calm = calm + 1 if now == last else 0
        last = now
    return last


def wait_until_still(gateway: Gateway) -> None:
    """Until nothing is sent to clients any more, nor received from servers."""
    last, calm = -1.0, 0
    while calm < 4:
        time.sleep(0.25)
        now = sum(gateway.metric(f"pinfold_{name}") for name in (
            "client_sent_bytes_total", "upstream_received_bytes_total"))
        # Asking for the metrics is counted as well.
        calm = calm + 1 if now - last < 200_000 else 0
        last = now


def connected(gateway: Gateway, buffer: int = 0) -> socket.socket:
    wire = socket.socket()
    if buffer:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    wire.connect(gateway.proxy)
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return wire


def idle(kind: str, count: int, authority: str) -> float:
    """Bytes for an idle connection."""
    request = (f"GET http://{authority}/stored/small HTTP/1.1\r\nHost: {authority}\r\n\r\n").encode()

    def open_one(gateway: Gateway) -> object:
        wire = connected(gateway)
        if kind == "HTTP/1.1":
            wire.sendall(request)
            data = b""
            while not data.endswith(b"x" * 100):
                data += wire.recv(1 << 16)
            return wire
        frames = Frames(wire, authority)
        # Both sides have each other's settings.
        while frames.next()[:2] != (4, 1):
            pass
        if kind == "HTTP/2, one request":
            frames.get("/stored/small")
        if kind == "HTTP/2, a browser's request":
            frames.finish(frames.ask(BROWSER))
        return frames

    with running({}) as gateway, contextlib.ExitStack() as stack:
        # What is needed once is there before.
        kept = [open_one(gateway) for _ in range(50)]
        time.sleep(REST)
        before = anonymous(gateway)
        kept += [open_one(gateway) for _ in range(count)]
        time.sleep(REST)
        grown = anonymous(gateway) - before
        for one in kept:
            stack.callback((one if isinstance(one, socket.socket) else one.wire).close)
        return grown / count


def stalled(how: str, path: str, count: int, authority: str) -> tuple[float, int]:
    """Bytes for a stream that is stalled, and how many were."""
    connections = max(1, count // 100)
    config = {"limits": {"upstreamPerHost": 4096},
              # Nobody is cut off meanwhile.
              "timeouts": {"body": "10m", "idle": "10m"}}
    with running(config) as gateway, contextlib.ExitStack() as stack:
        # All of its buffers have been used once.
        warm = Frames(connected(gateway), authority)
        stack.callback(warm.wire.close)
        for _ in range(20):
            warm.get("/stored" if "stored" in path else "/passed")
        window = 0 if how == "no window" else 0x7FFFFFFF
        opened: list[Frames] = []
        for _ in range(connections):
            one = Frames(connected(gateway, 4096), authority, window)
            opened.append(one)
            stack.callback(one.wire.close)
            if how == "no window":
                while one.next()[:2] != (4, 1):
                    pass
            else:
                one.begin("/filler")
        # What fills the system's buffers comes before the others.
        wait_until_still(gateway)
        before = anonymous(gateway)
        for one in opened:
            for _ in range(count // connections):
                one.begin(path)
        wait_until_still(gateway)
        grown = anonymous(gateway) - before
        # A client that does not read is not read from any more, once much waits for it.
        stalled = int(gateway.metric("pinfold_http_requests_in_flight"))
        if how != "no window":
            stalled -= connections
        return grown / max(1, stalled), stalled


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default=str(ROOT / ".build/release/pinfold"))
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--streams", type=int, default=1000)
    given = parser.parse_args()
    raise_descriptor_limit()
    server = apart(serve)
    authority = server.recv()
    good = True
    print("| what | bytes each | limit |\n|---|---|---|", flush=True)
    for kind in ("HTTP/1.1", "HTTP/2, no request", "HTTP/2, one request",
                 "HTTP/2, a browser's request"):
        found = idle(kind, given.connections, authority)
        print(f"| an idle connection, {kind} | {found:.0f} | {IDLE_BYTES} |", flush=True)
        good = good and found <= IDLE_BYTES
    for how in ("no window", "does not read"):
        for path, name in (("/stored", "hit"), ("/passed", "pass"),
                           ("/passed/large", "pass, 1 MiB")):
            found, count = stalled(how, path, given.streams, authority)
            print(f"| one of {count} stalled streams, {how}, {name} | {found:.0f} | {STALLED_BYTES} |",
                  flush=True)
            good = good and found <= STALLED_BYTES
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
