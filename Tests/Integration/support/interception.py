"""Clients of intercepted tunnels, and the authority that they trust."""

from __future__ import annotations

import contextlib
import functools
import ssl
import subprocess
from pathlib import Path

from .gateway import Gateway, run_pinfold
from .wait import until
from .wire import Response, Wire

HOST, PINNED, OTHER = "seen.test", "pinned.test", "other.test"
WRONG_PIN = "sha256/" + "A" * 43 + "="


class InterceptionAuthority:
    """An authority as `pinfold ca init` makes it."""

    def __init__(self, folder: Path, *arguments: str):
        self.file, self.key = folder / "ca.pem", folder / "ca.key"
        done = run_pinfold("ca", "init", *arguments, "--certificate", str(self.file),
                           "--key", str(self.key))
        assert done.returncode == 0, done.stdout + done.stderr

    @property
    def section(self) -> dict:
        return {"certificate": str(self.file), "key": str(self.key)}


def curl(
    running: Gateway, authority: InterceptionAuthority, *arguments: str, code: int = 0
) -> str:
    done = subprocess.run(
        ["curl", "-q", "-sS", "--max-time", "30", "--http1.1", "--proxytunnel", "-x",
         running.proxy_url, "--cacert", str(authority.file), *arguments],
        capture_output=True, text=True, timeout=40)
    assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout + (done.stderr if code else "")


class Inside:
    """A client's TLS over memory, so that a test chooses which segment its bytes are in."""

    def __init__(self, authority: Path, name: str | None = HOST, **settings: object):
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.create_default_context(cafile=str(authority))
        if name is None:
            context.check_hostname = False
        for key, value in settings.items():
            setattr(context, key, value)
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=name)
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()

    @property
    def hello(self) -> bytes:
        return self.outgoing.read()

    def shake(self, wire: Wire) -> None:
        wire.send(self.last_flight(wire))

    def last_flight(self, wire: Wire) -> bytes:
        """Shakes hands, up to what is to be sent at the end."""
        while True:
            try:
                self.tls.do_handshake()
                return self.outgoing.read()
            except ssl.SSLWantReadError:
                wire.send(self.outgoing.read())
                if not wire.buffer:
                    assert wire._more(), "the gateway closed in the handshake"
                self.incoming.write(wire.buffer)
                wire.buffer = b""

    def ask(self, wire: Wire, data: bytes, end: bytes) -> bytes:
        self.tls.write(data)
        wire.send(self.outgoing.read())
        seen = b""
        while end not in seen:
            try:
                seen += self.tls.read(65536)
            except ssl.SSLWantReadError:
                assert wire._more(), seen
                self.incoming.write(wire.buffer)
                wire.buffer = b""
        return seen


@functools.cache
def _trusting(authority: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority)


def inside(
    running: Gateway, host: str, port: int, **options: float
) -> tuple[Wire, Response | None]:
    """A connection inside an intercepted tunnel, by the authority of the gateway's file; or the
    answer to CONNECT with which there is none."""
    wire, answer = running.connect(f"{host}:{port}", **options)
    if answer.status != 200:
        wire.close()
        return wire, answer
    try:
        context = _trusting(running.config["interception"]["certificate"])
        made = context.wrap_socket(wire.socket, server_hostname=host.rstrip("."))
    except BaseException:
        wire.close()
        raise
    return Wire(("", 0), sock=made, **options), None


def ask_inside(running: Gateway, host: str, port: int, data: bytes) -> Response:
    """The answer to a request inside a tunnel of its own, or to CONNECT if that is refused."""
    wire, refused = inside(running, host, port)
    with wire:
        return refused or wire.ask(data)


class InnerWire(Wire):
    """A client's connection inside a tunnel: its bytes go through TLS over another wire, which may
    speak TLS itself."""

    def __init__(self, outer: Wire, inside: Inside):
        self.outer, self.inside, self.buffer = outer, inside, b""
        self.ended_well = False

    def shake(self) -> InnerWire:
        self.inside.shake(self.outer)
        return self

    def close(self) -> None:
        self.outer.close()

    def reset(self) -> None:
        self.outer.reset()

    def send(self, data: bytes | str) -> None:
        self.inside.tls.write(data.encode("latin-1") if isinstance(data, str) else data)
        self.outer.send(self.inside.outgoing.read())

    def _more(self) -> bool:
        while True:
            try:
                data = self.inside.tls.read(1 << 16)
                self.ended_well = not data
                self.buffer += data
                return bool(data)
            except ssl.SSLWantReadError:
                if not self.outer.buffer and not self.outer._more():
                    return False
                self.inside.incoming.write(self.outer.buffer)
                self.outer.buffer = b""
            except ssl.SSLZeroReturnError:
                self.ended_well = True
                return False


def connect_head(host: str, port: int) -> bytes:
    return f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()


def no_client_is_connected(running: Gateway) -> None:
    # The one that asks is connected itself.
    until(lambda: running.metric("pinfold_client_connections_open") == 1,
          lambda: f"open: {running.metric('pinfold_client_connections_open')}")
