"""Servers that take reports of pin failures, and what such a report has to be."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from cryptography import x509

from .gateway import Gateway
from .origin import HTTPOrigin, Request, reply
from .pki import Certificate
from .wait import until
from .wire import Response

# The host that the gateway is asked for, and pins that no key has.
HOST = "api.report.test"
WRONG = ["sha256/" + "A" * 43 + "=", "sha256/" + "B" * 42 + "A="]


class Collector(HTTPOrigin):
    """Takes reports. `answers` are given in turn, 204 after them."""

    def __init__(self, tls: ssl.SSLContext | None = None, answers: list[bytes] | None = None,
                 **options: object):
        self.answers = list(answers or [])
        super().__init__(self._answer, tls=tls, **options)

    def _answer(self, request: Request) -> bytes:
        return self.answers.pop(0) if self.answers else reply(b"", "204 No Content")

    @property
    def reports(self) -> list[dict]:
        return [json.loads(one.body) for one in list(self.requests)]

    def wait(self, count: int = 1, timeout: float = 20) -> list[dict]:
        return until(lambda: found if len(found := self.reports) >= count else [],
                     lambda: f"{count} reports, not {self.reports}", timeout)


def configuration(pki: Any, url: str, host: str = HOST, entry: dict | None = None,
                  **pinset: object) -> dict:
    """A host whose pinset no key satisfies, and which reports that to a URL."""
    return {
        "hosts": [{"match": [host], "upgrade": "https", "pinsets": ["wanted"], **(entry or {})}],
        "tls": {"roots": [str(pki.root.pem_file)]},
        "workers": 1,
        "pinsets": {"wanted": {"mode": "publicKey", "pins": WRONG, "reportTo": url, **pinset}}}


def serve(origin: Callable[..., HTTPOrigin], certificate: Certificate) -> HTTPOrigin:
    """A server with that certificate."""
    return origin(lambda _: reply(b"genuine", "200 OK", "Cache-Control: no-store"),
                  tls=certificate.server_context())


def ask(running: Gateway, there: HTTPOrigin, host: str = HOST) -> Response:
    """What a client gets that asks the gateway for a host at a server's port."""
    return running.get(f"http://{host}:{there.port}/", Accept="application/json")


def counted(running: Gateway, result: str) -> float:
    return running.metric("pinfold_pin_reports_total", result=result)


def waiting(running: Gateway) -> float:
    return running.metric("pinfold_pin_reports_waiting")


def files(running: Gateway) -> list[Path]:
    folder = running.folder / "cache" / "pin-reports"
    return sorted(folder.glob("*.report"))


def certificates(chain: list[str]) -> list[x509.Certificate]:
    return [x509.load_pem_x509_certificate(one.encode()) for one in chain]


def seconds_ago(report: dict) -> float:
    made = datetime.fromisoformat(report["date-time"])
    return (datetime.now(timezone.utc) - made).total_seconds()
