#!/usr/bin/env python3
"""How long a client of HTTP/2 waits that has one stream at a time: where a peer's delayed
acknowledgment and a sender that waits for it meet, that is 40 ms.

Responses of 0, 1, 1,024 and 16,385 bytes, in clear text and over TLS, from the cache and from a server;
500 requests each on one connection. A mean of 1 ms or more gives the status 1. With --busy, as many
processes as there are cores use them up meanwhile: the gateway, the client and the server then wait for
the processor, and the mean is printed only.

Usage: deploy/bench/http2_latency.py [--binary FILE] [--requests 500] [--busy]
Needs what the integration tests need: run it with .build-venv/bin/python.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import ssl
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Connection
from pathlib import Path

from surroundings import ROOT, Frames, Gateway, apart, running
from support import pki

SIZES = (0, 1, 1024, 16_385)
MEAN_MILLISECONDS = 1.0


def serve(pipe: Connection) -> None:
    """A server that says its authority; a path names the length of its content."""

    def converse(wire: socket.socket) -> None:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        data = b""
        with contextlib.suppress(ConnectionError), wire:
            while part := wire.recv(1 << 16):
                data += part
                while (end := data.find(b"\r\n\r\n")) >= 0:
                    _, way, size = data[:end].split(b" ")[1].split(b"/")
                    data = data[end + 4:]
                    use = b"max-age=9999" if way == b"hit" else b"no-store"
                    wire.sendall(b"HTTP/1.1 200 OK\r\nCache-Control: " + use
                                 + b"\r\nContent-Length: " + size + b"\r\n\r\n" + b"x" * int(size))

    listener = socket.create_server(("127.0.0.1", 0))
    pipe.send("127.0.0.1:%d" % listener.getsockname()[1])
    while True:
        threading.Thread(target=converse, args=(listener.accept()[0],), daemon=True).start()


def spin(pipe: Connection) -> None:
    while True:
        pass


def connected(gateway: Gateway, listener: str, root: pki.Certificate) -> Frames:
    wire = socket.create_connection(gateway.listeners[listener])
    wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if listener == "clear":
        return Frames(wire, "localhost", 1 << 20)
    context = ssl.create_default_context(cafile=str(root.pem_file))
    context.set_alpn_protocols(["h2"])
    return Frames(context.wrap_socket(wire, server_hostname="localhost"), "localhost", 1 << 20, "https")


def measure(frames: Frames, path: str, size: int, count: int) -> list[float]:
    """The times of so many requests in milliseconds, in order of size."""
    for _ in range(5):
        frames.get(path)
    taken = []
    for _ in range(count):
        began = time.monotonic()
        if frames.get(path) != size:
            raise ValueError(f"not {size} bytes")
        taken.append((time.monotonic() - began) * 1000)
    return sorted(taken)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default=str(ROOT / ".build/release/pinfold"))
    parser.add_argument("--requests", type=int, default=500)
    parser.add_argument("--busy", action="store_true")
    given = parser.parse_args()
    server = apart(serve)
    upstream = f"http://{server.recv()}"
    good = True
    with tempfile.TemporaryDirectory() as folder:
        root = pki.root(Path(folder), "root")
        leaf = root.issue("localhost")
        tls = {"certificate": str(leaf.chain_file()), "key": str(leaf.key_file)}
        listeners = [
            {"name": "clear", "address": "127.0.0.1:0", "kind": "reverse", "upstream": upstream},
            {"name": "tls", "address": "127.0.0.1:0", "kind": "reverse", "upstream": upstream, "tls": tls}]
        with running({"listeners": listeners}) as gateway:
            if given.busy:
                spinning = [apart(spin) for _ in range(os.cpu_count() or 1)]  # noqa: F841
            print("| connection | response | bytes | mean, ms | p50 | p99 | max |")
            print("|---|---|---|---|---|---|---|", flush=True)
            for listener in ("clear", "tls"):
                frames = connected(gateway, listener, root)
                for way in ("hit", "pass"):
                    for size in SIZES:
                        taken = measure(frames, f"/{way}/{size}", size, given.requests)
                        mean = sum(taken) / len(taken)
                        p50, p99 = (taken[int(len(taken) * share)] for share in (0.5, 0.99))
                        print(f"| {listener} | {way} | {size} | {mean:.3f} | {p50:.3f} | {p99:.3f} "
                              f"| {taken[-1]:.2f} |", flush=True)
                        good = good and (given.busy or mean < MEAN_MILLISECONDS)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
