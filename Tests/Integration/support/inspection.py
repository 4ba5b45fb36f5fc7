"""Tunnels whose server has to prove who it is, and servers that prove it, or do not."""

from __future__ import annotations

import contextlib
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa

from .gateway import Gateway
from .origin import serving
from .pki import Certificate
from .wait import until
from .wire import Response, Wire

VERSIONS = {"1.0": ssl.TLSVersion.TLSv1, "1.1": ssl.TLSVersion.TLSv1_1,
            "1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
ALERT = 21


def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def inspected(host: str, pins: list[str] | None, roots: list[Path], **keys: object) -> dict:
    """A configuration that inspects the tunnels to a host, pinned unless `pins` is None."""
    entry: dict = {"match": [host], "tunnel": "inspect", **keys}
    made: dict = {"tls": {"roots": [str(root) for root in roots]}, "hosts": [entry],
                  "timeouts": {"connect": "5s", "head": "5s"}}
    if pins is not None:
        entry["pinsets"] = ["p"]
        made["pinsets"] = {"p": {"mode": "publicKey", "pins": pins}}
    return made


def careless(version: str | None = None, **options: object) -> ssl.SSLContext:
    """A client that verifies nothing, as those that the gateway is there for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    if version:
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = VERSIONS[version]
        context.minimum_version = VERSIONS[version]
    return context


def opened(running: Gateway, host: str, port: int) -> Wire:
    """A tunnel that has been answered."""
    wire = running.wire()
    wire.send(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n")
    assert wire.read_head().status == 200
    return wire


def through(
    running: Gateway, host: str, port: int, context: ssl.SSLContext | None = None,
    name: str | None = None, session: ssl.SSLSession | None = None
) -> ssl.SSLSocket:
    """A client's TLS in a tunnel, its handshake done."""
    wire = opened(running, host, port)
    try:
        return (context or careless()).wrap_socket(
            wire.socket, server_hostname=name or host, session=session)
    except BaseException:
        wire.close()
        raise


def ask(sock: ssl.SSLSocket, host: str) -> Response:
    wire = Wire(("", 0), sock=sock)
    with wire:
        wire.send(f"GET /there HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
        return wire.read()


def hello_of(name: str | None, version: str | None = "1.2") -> bytes:
    """A ClientHello as OpenSSL makes it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    made = careless(version).wrap_bio(incoming, outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        made.do_handshake()
    return outgoing.read()


def with_extension(hello: bytes, kind: int, content: bytes) -> bytes:
    """A ClientHello in its one record, with one more extension."""
    message = hello[5:]
    position = 4 + 2 + 32
    position += 1 + message[position]
    position += 2 + int.from_bytes(message[position:position + 2], "big")
    position += 1 + message[position]
    extensions = (message[position + 2:] + kind.to_bytes(2, "big")
                  + len(content).to_bytes(2, "big") + content)
    body = message[4:position] + len(extensions).to_bytes(2, "big") + extensions
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return hello[:3] + len(message).to_bytes(2, "big") + message


def grease() -> bytes:
    """An encrypted ClientHello as browsers invent it (RFC 9849, section 6.2)."""
    return (b"\0" + b"\0\x01\0\x01" + b"\x2a" + (32).to_bytes(2, "big") + bytes(range(32))
            + (144).to_bytes(2, "big") + bytes(144))


def alert_in(data: bytes) -> int:
    """The alert that is all that a client received."""
    assert len(data) == 7 and data[0] == ALERT and data[1] == 3, data[:64].hex()
    assert data[3:6] == b"\0\x02\x02", data.hex()
    return data[6]


def inspections(running: Gateway, result: str, version: str) -> int:
    return int(running.metric(
        "pinfold_tunnels_inspected_total", result=result, version=version))


@contextlib.contextmanager
def openssl_server(
    folder: Path, certificate: Certificate, *arguments: str
) -> Iterator[int]:
    """`openssl s_server` that answers requests for pages; its port."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with open(folder / "s_server.log", "wb") as log:
        process = subprocess.Popen(
            ["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-www",
             "-cert", str(certificate.pem_file), "-key", str(certificate.key_file),
             "-cert_chain", str(certificate.chain_file()), *arguments],
            stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        def accepts() -> bool:
            assert process.poll() is None, (folder / "s_server.log").read_text()
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0
        until(accepts, "openssl's server accepts")
        yield port
    finally:
        process.terminate()
        process.wait()
