"""One list of tests, five ways that a request takes to its server: a reverse route, the forward
proxy asked in clear text by HTTP/1.1 and by HTTP/2, an intercepted tunnel, and the forward proxy
before servers that speak HTTP/2.

A test names what is requested by its URL. Each way sends that as its clients do, and to a server
that speaks TLS where the way needs it. Tests that leave nothing behind share one gateway for each
way: each has servers of its own, so that no two ask for the same URL.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable
from typing import Any, Protocol

from .gateway import Gateway
from .http2 import HTTP2Wire
from .http2front import HTTP2Front
from .interception import inside
from .origin import HTTPOrigin, Origin
from .wire import Response, Wire, request

WAYS = ["reverse", "forward", "http2", "interception", "http2-server"]

# A test's own server may be asked by these, where a way names the server at all.
NAMES = ["127.0.0.1", *(f"{name}.test" for name in (
    "a", "b", "same", "one", "other", "never", "keyed"))]

# Reverse routes of a gateway, and how many of them one test may want.
ROUTES, ROUTES_OF_A_TEST = 64, 16

_ABSOLUTE = re.compile(rb"^([A-Z]+) https?://([^/ \r\n]+)(\S*) HTTP/1\.1\r$", re.M)


class _At(Origin):
    """An origin at a socket that listens already; its URLs are those of what it speaks."""

    def __init__(self, *arguments: Any, scheme: str, **options: Any):
        self.scheme = scheme
        super().__init__(*arguments, **options)

    def url(self, path: str = "/") -> str:
        return f"{self.scheme}://{self.authority}{path}"


class _HTTPAt(_At, HTTPOrigin):
    pass


class StartsGateways(Protocol):
    def __call__(self, config: dict | None = None) -> Gateway: ...


class SharedGateways:
    """A gateway for each way, and for the reverse routes the servers that they lead to."""

    def __init__(self, start: StartsGateways, authority: dict, roots: list[str],
                 context: Callable[[], ssl.SSLContext]):
        self.start = start
        self.authority = authority
        self.roots = roots
        self.context = context
        self.gateways: dict[str, Gateway] = {}
        # To which the reverse routes lead, one for each server of a test.
        self.sockets: list[socket.socket] = []
        # Of the servers that there were: what a gateway has stored is under their ports.
        self._ports: set[int] = set()

    def prepare(self, way: str) -> None:
        """Before each test: one gateway leads to all of its servers."""
        if way != "reverse" or len(self.sockets) >= ROUTES_OF_A_TEST:
            return
        self.close()
        self.sockets = [socket.create_server(("127.0.0.1", 0), backlog=512)
                        for _ in range(ROUTES)]
        self.gateways["reverse"] = self.start(self.reverse(
            [one.getsockname()[1] for one in self.sockets]))

    def listener(self, way: str) -> socket.socket:
        """For a server, at a port that no other has had."""
        while True:
            made = (self.sockets.pop() if way == "reverse"
                    else socket.create_server(("127.0.0.1", 0), backlog=512))
            port = made.getsockname()[1]
            if port not in self._ports:
                self._ports.add(port)
                return made
            made.close()

    def gateway(self, way: str) -> Gateway:
        if way not in self.gateways:
            self.gateways[way] = self.start(self.configuration(way, []))
        return self.gateways[way]

    def configuration(self, way: str, ports: list[int]) -> dict:
        if way == "reverse":
            return self.reverse(ports)
        if way == "interception":
            return {"workers": 1, "tls": {"roots": self.roots},
                    "interception": self.authority | {"default": True}}
        if way == "http2-server":
            return {"workers": 1, "hosts": [{"match": NAMES, "http2": "require"}]}
        return {"workers": 1}

    def reverse(self, ports: list[int]) -> dict:
        return {"workers": 1, "listeners": [
            {"name": f"to-{port}", "address": "127.0.0.1:0", "kind": "reverse",
             "upstream": f"http://127.0.0.1:{port}"} for port in ports]}

    def close(self) -> None:
        for one in self.sockets:
            one.close()


class Through:
    """One of the ways, for one test."""

    def __init__(self, way: str, shared: SharedGateways,
                 own: Callable[[], Callable[[dict], Gateway]],
                 opened: Callable[[Origin], Origin]):
        self.way = way
        self._shared = shared
        self._own = own
        self._opened = opened
        self._ports: list[int] = []
        shared.prepare(way)

    def origin(self, handler: Callable) -> HTTPOrigin:
        return self._fronted(self._opened(_HTTPAt(handler, **self._options())))

    def scripted_origin(self, script: Callable) -> Origin:
        return self._fronted(self._opened(_At(script, **self._options())))

    def _fronted(self, made: Any) -> Any:
        """The origin, at the address of a front that speaks HTTP/2 if the way wants it."""
        if self.way == "http2-server":
            front = self._opened(HTTP2Front(
                made.address, listener=self._shared.listener(self.way)))
            made.address, made.port = front.address, front.port
            self._ports.append(front.port)
        return made

    def _options(self) -> dict:
        tls = self.way == "interception"
        options: dict = {"scheme": "https" if tls else "http"}
        if tls:
            options["tls"] = self._shared.context()
        options["listener"] = self._shared.listener(self.way)
        self._ports.append(options["listener"].getsockname()[1])
        return options

    def gateway(self, config: dict | None = None) -> Client:
        """The shared one, or with a configuration one of the test's own: its servers are there."""
        if config is None:
            return Client(self.way, self._shared.gateway(self.way))
        made = {**self._shared.configuration(self.way, self._ports), **config}
        if self.way == "interception":
            made["hosts"] = [one | {"intercept": True} for one in config.get("hosts", [])]
        elif self.way == "http2-server":
            made["hosts"] = [one | {"http2": "require"} for one in config.get("hosts", [])]
            listed = {name for one in made["hosts"] for name in one["match"]}
            if rest := [name for name in NAMES if name not in listed]:
                made["hosts"].append({"match": rest, "http2": "require"})
        return Client(self.way, self._own()(made))


class Client:
    """What tests ask of a gateway, whatever the way."""

    def __init__(self, way: str, gateway: Gateway):
        self.way = way
        self.gateway = gateway
        self._before = gateway.metrics()

    def get(self, url: str, **fields: str) -> Response:
        """GET with the connection closed afterwards."""
        return self.ask(request(url, Connection="close", **fields))

    def ask(self, data: bytes | str) -> Response:
        with self.wire() as wire:
            return wire.ask(data)

    def wire(self) -> Wire:
        if self.way == "http2":
            return HTTP2Wire(self.gateway.proxy)
        return _Titled(self) if self.way == "http2-server" else _WireThrough(self)

    def metric(self, name: str, **labels: str) -> float:
        """As the gateway's; of a counter, how often it has counted since the test began."""
        def wanted(sample: str) -> bool:
            base, _, rest = sample.partition("{")
            return base == name and all(f'{key}="{text}"' in rest for key, text in labels.items())

        now = self.gateway.metric(name, **labels)
        if not name.endswith("_total"):
            return now
        return now - sum(value for sample, value in self._before.items() if wanted(sample))

    def wait_for_disk(self) -> None:
        self.gateway.wait_for_disk()

    def wait_log(self, pattern: str) -> str:
        return self.gateway.wait_log(pattern)

    def signal(self, number: int) -> None:
        self.gateway.signal(number)

    def open(self, authority: str) -> socket.socket:
        """A connection on which that server is asked."""
        host, _, port = authority.rpartition(":")
        if self.way == "interception":
            wire, refused = inside(self.gateway, host, int(port))
            assert refused is None, refused
            return wire.socket
        listener = f"to-{port}" if self.way == "reverse" else "proxy"
        return self.gateway.wire(listener).socket

    def form(self, data: bytes) -> bytes:
        """Requests in absolute-form, in the form of this way's clients."""
        if self.way in ("forward", "http2-server"):
            return data
        return _ABSOLUTE.sub(
            lambda found: b"%s %s HTTP/1.1\r" % (found[1], found[3] or b"/"), data)


class _WireThrough(Wire):
    """Connected with the first request, which names the server."""

    def __init__(self, client: Client):
        self.client = client
        self.socket = None
        self.buffer = b""

    def send(self, data: bytes | str) -> None:
        raw = data.encode("latin-1") if isinstance(data, str) else data
        if self.socket is None:
            found = _ABSOLUTE.match(raw)
            assert found, f"no server in {raw[:100]!r}"
            self.socket = self.client.open(found[2].decode())
        self.socket.sendall(self.client.form(raw))

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()


class _Titled(_WireThrough):
    """Gives trailers the letter case that tests write; HTTP/2 has lost it."""

    def read_body(self, response: Response, method: str = "GET") -> Response:
        super().read_body(response, method)
        response.trailers = [(name.title(), value) for name, value in response.trailers]
        return response
