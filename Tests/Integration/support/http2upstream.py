"""Gateways that speak HTTP/2 with a server, and what several tests do with them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import h2.errors

from .gateway import Gateway
from .http2 import HTTP2Client, http2
from .http2origin import HTTP2Origin
from .http2served import ServedStream
from .interception import HOST
from .wire import Response, request

H2 = ("h2", "http/1.1")
Code = h2.errors.ErrorCodes


def configuration(pki: Any, host: dict | None = None, **config: Any) -> dict:
    """Without a cache, and with an entry for HOST."""
    return {"workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
            "cache": {"enabled": False}, "hosts": [{"match": [HOST]} | (host or {})]} | config


def get(running: Gateway, there: HTTP2Origin, path: str = "/after") -> Response:
    return running.ask(request(there.url(path, HOST)))


def send(running: Gateway, there: HTTP2Origin, path: str, method: str = "PUT",
         body: bytes = b"") -> Response:
    return running.ask(request(there.url(path, HOST), method=method, body=body))


class Gate:
    """A handler that answers nothing until it is open."""

    def __init__(self):
        self.opened = threading.Event()
        # By connection, how many of its streams have been open at a time.
        self.most: dict[int, int] = {}

    def __call__(self, stream: ServedStream) -> None:
        connection = stream.connection
        with connection.changed:
            now = connection.h2.open_inbound_streams
            self.most[connection.number] = max(self.most.get(connection.number, 0), now)
        assert self.opened.wait(30)
        stream.respond(body=stream.target.encode())


@contextlib.contextmanager
def asked(
    running: Gateway, there: HTTP2Origin, count: int, path: str = "/"
) -> Iterator[tuple[HTTP2Client, list[int]]]:
    """That many requests in streams of one client's connection, none of them answered yet."""
    authority = f"{HOST}:{there.port}"
    with http2(running.proxy) as client:
        yield client, [client.begin(f"{path}{number}", authority=authority, scheme="https")
                       for number in range(count)]


def get_first(running: Gateway, there: HTTP2Origin, gate: Gate) -> None:
    """One request, after which the server's settings have arrived."""
    gate.opened.set()
    assert get(running, there, "/first").status == 200
    gate.opened.clear()


def refusing(
    times: int, how: Callable[[ServedStream], None]
) -> Callable[[ServedStream], None]:
    """A handler that does `how` to the first requests, and answers the others."""
    left = [times]

    def handler(stream: ServedStream) -> None:
        if stream.target == "/before":
            return stream.respond(body=b"before")
        if left[0]:
            left[0] -= 1
            return how(stream)
        stream.respond(body=b"served " + stream.read_all())

    return handler


def refused(stream: ServedStream) -> None:
    stream.reset_with(Code.REFUSED_STREAM)


def goaway(stream: ServedStream) -> None:
    stream.connection.goaway(max(stream.number - 2, 0))
