"""Servers whose keys rotate, and the record that the gateway keeps of them."""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
import ssl
import time
from pathlib import Path
from typing import Any

from .gateway import Gateway, run_pinfold
from .pki import Certificate
from .wait import until

DAY = 86_400


class Rotating:
    """TLS contexts in turn behind one port; no session is resumed."""

    def __init__(self, certificate: Certificate):
        self.use(certificate)
        self.context = self.current
        self.context.sni_callback = self._choose

    def use(self, certificate: Certificate) -> None:
        self.current = certificate.server_context()
        self.current.num_tickets = 0
        self.current.options |= ssl.OP_NO_TICKET

    def _choose(self, sock: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        sock.context = self.current


def record_file(running: Gateway) -> Path:
    return running.folder / "cache" / "observed-pins.sqlite"


def record(running: Gateway) -> dict[str, dict[str, Any]]:
    """What is recorded, by host."""
    if not record_file(running).exists():
        return {}
    base = sqlite3.connect(record_file(running), timeout=10)
    try:
        rows = base.execute("SELECT record FROM observed").fetchall()
    except sqlite3.DatabaseError:
        return {}
    finally:
        base.close()
    return {one["host"]: one for one in (json.loads(row[0]) for row in rows)}


def chains(running: Gateway, host: str) -> list[dict[str, Any]]:
    """The chains of a host, with the certificates in place of their indices."""
    found = record(running).get(host)
    if not found:
        return []
    of = found["certificates"]
    return [chain | {"leaf": of[chain["leaf"]],
                     "paths": [[of[index] for index in path["issuers"]] for path in chain["paths"]]}
            for chain in found["chains"]]


def wait_chains(running: Gateway, host: str, count: int) -> list[dict[str, Any]]:
    return until(lambda: found if len(found := chains(running, host)) >= count else [],
                 lambda: f"{count} chains of {host}: {chains(running, host)}", 20)


def _aged(value: Any, seconds: int) -> Any:
    if isinstance(value, dict):
        return {name: one - seconds if name in ("first", "last", "newKeySeen", "lastVerified")
                and isinstance(one, int) else _aged(one, seconds) for name, one in value.items()}
    return [_aged(one, seconds) for one in value] if isinstance(value, list) else value


def age(running: Gateway, days: float, last: float | None = None) -> None:
    """Makes the record of a stopped gateway that much older; if `last`, each certificate is
    then said to have been seen on each day until that many days ago."""
    base = sqlite3.connect(record_file(running))
    with base:
        for host, port, text in base.execute("SELECT host, port, record FROM observed").fetchall():
            made = _aged(json.loads(text), int(days * DAY))
            if last is not None:
                until_then = int(time.time() - last * DAY)
                for one in [made, *made["chains"],
                            *(path for chain in made["chains"] for path in chain["paths"])]:
                    one["last"] = max(one["first"], until_then)
                # Each was verified every day.
                for chain in made["chains"]:
                    if chain["verified"]:
                        chain["lastVerified"] = chain["last"]
                        chain["verifiedDays"] = (chain["last"] - chain["first"]) // DAY + 1
            base.execute("UPDATE observed SET record = ?, last = ? WHERE host = ? AND port = ?",
                         (json.dumps(made), made["last"], host, port))
    base.close()


def pin(running: Gateway, *arguments: str) -> Any:
    """`pinfold pin …` for its configuration."""
    return run_pinfold("pin", *arguments, "--config", str(running.config_file))


# Records that no gateway has made


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def key_pin(name: str) -> str:
    """The pin of a key of such a record, by the key's name."""
    return "sha256/" + base64.b64encode(digest(name)).decode()


def observed_certificate(subject: str, issuer: str, ends: int, key: str | None = None) -> dict[str, Any]:
    """A certificate, with a key that is named like its subject unless it has a name of its own."""
    return {"key": key_pin(key or subject), "fingerprint": digest(f"{subject} {key} {ends}").hex(":").upper(),
            "subject": subject, "issuer": issuer, "notAfter": ends}


def observed_host(name: str, *seen: tuple[list[dict[str, Any]], int, int], port: int = 443,
                  address: str = "192.0.2.10") -> dict[str, Any]:
    """A host that has shown chains, each with when it was seen first and last: every day between."""
    certificates: list[dict[str, Any]] = []

    def index(one: dict[str, Any]) -> int:
        if one not in certificates:
            certificates.append(one)
        return certificates.index(one)

    found = []
    for path, first, last in seen:
        days = (last - first) // DAY + 1
        found.append({
            "leaf": index(path[0]),
            "paths": [{"issuers": [index(one) for one in path[1:]], "first": first, "last": last}],
            "first": first, "last": last, "verified": days, "verifiedDays": days, "lastVerified": last,
            "reported": 0,
            "addresses": [{"address": address, "first": first, "last": last, "count": days}],
            "forgottenAddresses": 0})
    return {"host": name, "port": port, "first": min(one["first"] for one in found),
            "last": max(one["last"] for one in found), "newKeys": 0, "newKeySeen": None,
            "forgottenChains": 0, "certificates": certificates, "chains": found}


def write_record(file: Path, *hosts: dict[str, Any]) -> Path:
    """A record of these hosts, as a gateway writes it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    base = sqlite3.connect(file)
    with base:
        base.execute("CREATE TABLE observed (host TEXT NOT NULL, port INTEGER NOT NULL, client TEXT, "
                     "last INTEGER NOT NULL, record TEXT NOT NULL, PRIMARY KEY (host, port))")
        base.execute("PRAGMA user_version = 1")
        base.executemany("INSERT INTO observed VALUES (?, ?, NULL, ?, ?)", [
            (one["host"], one["port"], one["last"], json.dumps(one)) for one in hosts])
    base.close()
    return file
