#!/usr/bin/env python3
"""A server with every fault that a path asks for (http1.py, http2.py), on a port for each protocol, and on
others that have one fault each. Certificates are those of a folder (deploy/client_soak.py makes them).

It prints its ports as a line of JSON, and at the end of its standard input how often it has served what, and
how many connections are open."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import socket
import ssl
import sys
from pathlib import Path
from typing import Any

from http1 import HTTP1
from http2 import HTTP2
from shared import State


class Hangup(asyncio.Protocol):
    """Ends every connection when something arrives, in one of three ways."""

    def __init__(self, state: State):
        self.state = state
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.state.connections += 1

    def connection_lost(self, error: Exception | None) -> None:
        self.state.connections -= 1

    def data_received(self, data: bytes) -> None:
        self.state.count("hangup")
        self.transport.close()


class Garbage(Hangup):
    """Answers the first message of TLS with something else."""

    def data_received(self, data: bytes) -> None:
        self.state.count("garbage")
        self.transport.write(b"220 mail.example.com ESMTP\r\n" * 4)
        self.transport.close()


class Mute(Hangup):
    """Never answers."""

    def data_received(self, data: bytes) -> None:
        self.state.count("mute")


class Chosen(asyncio.Protocol):
    """Speaks what has been agreed on."""

    def __init__(self, state: State):
        self.state = state

    def connection_made(self, transport: Any) -> None:
        agreed = transport.get_extra_info("ssl_object").selected_alpn_protocol()
        protocol = HTTP2(self.state, False) if agreed == "h2" else HTTP1(self.state)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)


def tls(folder: Path, name: str, *protocols: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    context.set_alpn_protocols(list(protocols))
    return context


def bound() -> socket.socket:
    one = socket.socket()
    one.bind(("127.0.0.1", 0))
    return one


def full() -> list[socket.socket]:
    """A listener that never accepts, and as many connections as its queue has room for."""
    listener = bound()
    listener.listen(0)
    sockets = [listener]
    for _ in range(3):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(listener.getsockname())
        sockets.append(one)
    return sockets


async def serve(folder: Path) -> None:
    state = State()
    loop = asyncio.get_running_loop()
    h1, h2 = tls(folder, "good", "http/1.1"), tls(folder, "good", "h2")
    factories: dict[str, tuple[Any, ssl.SSLContext | None]] = {
        "plain": (lambda: HTTP1(state), None),
        "tls": (lambda: HTTP1(state), h1),
        "h2": (lambda: HTTP2(state, True), h2),
        "lossy": (lambda: HTTP2(state, False), h2),
        "junk": (lambda: Chosen(state), tls(folder, "good", "h2", "http/1.1")),
        "fickle": (lambda: HTTP1(state), None),
        "fickleTLS": (lambda: HTTP1(state), h1),
        "hangup": (lambda: Hangup(state), None),
        "garbage": (lambda: Garbage(state), None),
        "mute": (lambda: Mute(state), None),
    }
    for name in ("unknown", "misnamed", "expired"):
        factories[name] = (lambda: HTTP1(state), tls(folder, name, "http/1.1"))
    ports = {}
    for name, (factory, context) in factories.items():
        server = await loop.create_server(factory, "127.0.0.1", 0, ssl=context, backlog=1024)
        ports[name] = server.sockets[0].getsockname()[1]
    refused, queue = bound(), full()
    ports |= {"refused": refused.getsockname()[1], "full": queue[0].getsockname()[1]}
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    # Faults are what this is for: what asyncio says about them is not news.
    loop.set_exception_handler(lambda loop, context: report(context))
    print(json.dumps(ports), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    # The last connections end a moment after the client.
    for _ in range(250):
        if state.connections == 0:
            break
        await asyncio.sleep(0.05)
    print(json.dumps({"served": state.served, "connections": state.connections}), flush=True)
    os._exit(0)


def report(context: dict[str, Any]) -> None:
    error = context.get("exception")
    if not isinstance(error, (OSError, ssl.SSLError)):
        print(f"server: {context.get('message')}: {error!r}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(serve(Path(sys.argv[1])))
