"""Signed policies, made by another implementation than the gateway's, and a server that has one."""

from __future__ import annotations

import base64
import contextlib
import hashlib
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from .gateway import Gateway
from .origin import HTTPOrigin, Request, reply, serving
from .wait import until

HOST = "policy.test"
DOMAIN = b"pinfold policy 1\0"
PIN = "sha256/" + "A" * 43 + "="


class Signer:
    """A private key."""

    def __init__(self) -> None:
        self.key = Ed25519PrivateKey.generate()

    @property
    def public(self) -> str:
        raw = self.key.public_key().public_bytes(
            serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return f"ed25519:{base64.b64encode(raw).decode()}"

    def write(self, path: Path) -> Path:
        path.write_bytes(self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption()))
        return path

    def line(self, signed: bytes) -> bytes:
        signature = base64.b64encode(self.key.sign(DOMAIN + signed)).decode()
        return f"# signature: {self.public} {signature}\n".encode()


def time(seconds: float) -> str:
    """So many seconds from now."""
    moment = datetime.now(timezone.utc) + timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def unsigned(content: dict | str, serial: int, expires: float = 86_400) -> bytes:
    text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
    header = f"# pinfold-policy: 1\n# serial: {serial}\n# expires: {time(expires)}\n"
    return (header + text.rstrip("\n") + "\n").encode()


def policy(content: dict | str, serial: int, *signers: Signer, expires: float = 86_400) -> bytes:
    signed = unsigned(content, serial, expires)
    return signed + b"".join(signer.line(signed) for signer in signers)


class PolicyServer(HTTPOrigin):
    """Has a policy, with a tag made of it; `answer` is sent in its place if it is set."""

    def __init__(self, content: bytes | None, **options: object):
        self.content = content
        self.answer: bytes | None = None
        super().__init__(self._policy, **options)

    def _policy(self, request: Request) -> bytes | None:
        if self.answer is not None:
            return self.answer
        if self.content is None:
            return reply(b"", "404 Not Found")
        tag = f'"{hashlib.sha256(self.content).hexdigest()[:16]}"'
        if request.get("if-none-match") == tag:
            return reply(b"", "304 Not Modified", f"ETag: {tag}", length=False)
        return reply(self.content, "200 OK", f"ETag: {tag}")


@contextlib.contextmanager
def policy_server(pki, content: bytes | None) -> Iterator[PolicyServer]:
    tls = pki.intermediate.issue(HOST).server_context()
    with serving(PolicyServer(content, tls=tls)) as server:
        yield server


def configuration(pki, server: PolicyServer, *signers: Signer, **settings: object) -> dict:
    """Asks the server each second."""
    return {
        "tls": {"roots": [str(pki.root.pem_file)]},
        "policy": {"url": f"https://{HOST}:{server.port}/pinfold.yaml",
                   "publicKeys": [one.public for one in signers], "interval": "1s", **settings}}


def serial(running: Gateway) -> int:
    return int(running.metric("pinfold_policy_serial"))


def wait_serial(running: Gateway, number: int) -> None:
    until(lambda: serial(running) == number, lambda: f"serial {number}:\n{running.log()[-3000:]}", 20)


def refused(running: Gateway, cause: str) -> float:
    return running.metric("pinfold_policy_refusals_total", cause=cause)


def alarms(running: Gateway) -> set[str]:
    return {name for name in ("missing", "refused", "unreachable", "expired", "unkept")
            if running.metric("pinfold_policy_alarm", alarm=name)}


def start_unready(running: Gateway) -> Gateway:
    """Starts a gateway whose /readyz is not 200, and waits until it answers."""
    running._is_ready = lambda: answers(running)  # type: ignore[method-assign]
    try:
        return running.start()
    finally:
        del running._is_ready  # type: ignore[attr-defined]


def answers(running: Gateway) -> bool:
    try:
        return running.admin_get("/readyz").status in (200, 503)
    except OSError:
        return False
