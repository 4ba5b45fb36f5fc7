"""Clients that speak TLS to a listener, and the files that it needs."""

from __future__ import annotations

import os
import re
import signal
import ssl
import subprocess
from pathlib import Path
from typing import Any

from cryptography.x509 import ocsp
from cryptography.hazmat.primitives import hashes, serialization
from datetime import datetime, timedelta, timezone

from .gateway import Gateway
from .pki import Authority, Certificate
from .wait import until
from .wire import Wire

NAME = "proxy.test"


def tls_of(*leaves: Certificate, **keys: Any) -> dict:
    """`tls` of a listener that has these certificates."""
    chains = [str(one.chain_file()) for one in leaves]
    secrets = [str(one.key_file) for one in leaves]
    single = len(leaves) == 1
    return {"certificate": chains[0] if single else chains,
            "key": secrets[0] if single else secrets, **keys}


def forward(tls: dict | None, name: str = "proxy") -> dict:
    made = {"name": name, "address": "127.0.0.1:0", "kind": "forward"}
    return made | ({"tls": tls} if tls else {})


def reverse(tls: dict, upstream: str, name: str = "route", **keys: Any) -> dict:
    return {"name": name, "address": "127.0.0.1:0", "kind": "reverse", "upstream": upstream,
            "tls": tls, **keys}


def client_context(root: Certificate, client: Certificate | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(root.pem_file))
    if client:
        context.load_cert_chain(client.chain_file(), client.key_file)
    return context


def secure_wire(
    running: Gateway, root: Certificate, listener: str = "proxy", name: str = NAME,
    client: Certificate | None = None, context: ssl.SSLContext | None = None,
    **options: float
) -> Wire:
    plain = running.wire(listener, **options)
    try:
        made = (context or client_context(root, client)).wrap_socket(
            plain.socket, server_hostname=name)
    except BaseException:
        plain.close()
        raise
    return Wire(("", 0), sock=made, **options)


def s_client(
    running: Gateway, *arguments: str, listener: str = "proxy", sent: str = "Q\n",
    name: str | None = NAME
) -> str:
    """What `openssl s_client` prints; it ends after what it is given to send."""
    host, port = running.listeners[listener]
    sni = ["-servername", name] if name else ["-noservername"]
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"{host}:{port}", *sni, *arguments],
        input=sent, capture_output=True, text=True, errors="replace", timeout=30)
    return done.stdout + done.stderr


def subject_seen(output: str) -> str:
    found = re.search(r"^subject=(.*)$", output, re.M)
    return found[1].strip() if found else ""


def curl(*arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        ["curl", "-sS", "-q", "--max-time", "30", *arguments], capture_output=True, text=True,
        timeout=40)
    assert done.returncode == code, f"{done.returncode}: {done.stderr}"
    return done.stdout if code == 0 else done.stderr


def staple(
    folder: Path, leaf: Certificate, issuer: Authority, days: tuple[int, int] = (-1, 5)
) -> Path:
    """An OCSP response for a certificate, as DER."""
    now = datetime.now(timezone.utc)
    made = ocsp.OCSPResponseBuilder().add_response(
        cert=leaf.certificate, issuer=issuer.certificate, algorithm=hashes.SHA1(),
        cert_status=ocsp.OCSPCertStatus.GOOD, this_update=now + timedelta(days=days[0]),
        next_update=now + timedelta(days=days[1]), revocation_time=None, revocation_reason=None,
    ).responder_id(ocsp.OCSPResponderEncoding.HASH, issuer.certificate).sign(
        issuer.key, hashes.SHA256())
    file = folder / f"staple-{os.urandom(4).hex()}.der"
    file.write_bytes(made.public_bytes(serialization.Encoding.DER))
    return file


def reload(running: Gateway, config: dict | None = None, succeeds: bool = True) -> None:
    """Has the gateway read its file again, changed or not, and waits for the outcome."""
    pattern = "configuration reloaded" if succeeds else "not reloaded"
    before = running.log().count(pattern)
    generation = running.metric("pinfold_config_generation")
    if config is not None:
        running.write_config(config)
    running.signal(signal.SIGHUP)
    until(lambda: running.log().count(pattern) > before, lambda: running.log()[-2000:])
    if succeeds:
        until(lambda: running.metric("pinfold_config_generation") > generation,
              "all workers go by it")
