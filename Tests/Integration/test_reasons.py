"""One vocabulary: body, Proxy-Status, access log, metric and operational log say the same token."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from support.gateway import Gateway, free_port, run_pinfold
from support.origin import reply
from support.wait import until
from support.wire import Response

TRUSTED = "trusted.reasons.test"
EMPTY_PIN = "sha256/" + "A" * 43 + "="


@dataclass
class Fault:
    """What brings a reason about. `request` is sent as it stands; `{port}` is a port of an origin
    of the kind `origin`."""

    status: int
    request: str
    config: dict = field(default_factory=dict)
    origin: str = "none"


def get(target: str, *fields: str) -> str:
    host = target.split("//", 1)[-1].split("/", 1)[0]
    lines = [f"GET {target} HTTP/1.1", f"Host: {host}", "Accept: application/json", *fields]
    return "\r\n".join(lines) + "\r\n\r\n"


FAULTS = {
    "malformed-version": Fault(400, "GET http://a.test/ HTTP/11\r\nAccept: application/json\r\n\r\n"),
    "not-a-proxy-request": Fault(
        400, "GET / HTTP/1.1\r\nHost: a.test\r\nAccept: application/json\r\n\r\n"),
    "connect-port-refused": Fault(
        403, "CONNECT a.test:25 HTTP/1.1\r\nHost: a.test:25\r\nAccept: application/json\r\n\r\n",
        {"access": {"connectPorts": [443]}}),
    "destination-refused": Fault(403, get("http://10.0.0.1/")),
    "only-if-cached": Fault(
        504, get("http://127.0.0.1:{port}/", "Cache-Control: only-if-cached"), origin="plain"),
    "connection-refused": Fault(502, get("http://127.0.0.1:{port}/"), origin="closed"),
    "dns-nxdomain": Fault(502, get("http://no-such-name.invalid/")),
    "upstream-malformed-version": Fault(
        502, get("http://127.0.0.1:{port}/"), origin="nonsense"),
    "upstream-closed": Fault(502, get("http://127.0.0.1:{port}/"), origin="closing"),
    "tls-not-tls": Fault(502, get("https://127.0.0.1:{port}/"), origin="eager"),
    "tls-incomplete-chain": Fault(502, get("https://" + TRUSTED + ":{port}/"), origin="tls"),
    "tls-no-pin-matches": Fault(
        502, get("https://" + TRUSTED + ":{port}/"), {
            "hosts": [{"match": [TRUSTED], "pinsets": ["wrong"], "tls": {"roots": ["{root}"]}}],
            "pinsets": {"wrong": {"mode": "publicKey", "pins": [EMPTY_PIN]}}}, origin="tls"),
}


def with_root(config: object, root: str) -> object:
    """The configuration with the test authority's file in its place."""
    if isinstance(config, dict):
        return {key: with_root(value, root) for key, value in config.items()}
    if isinstance(config, list):
        return [with_root(value, root) for value in config]
    return root if config == "{root}" else config


@pytest.fixture
def port_of(origin, scripted_origin, pki) -> Callable[[str], int]:
    def start(kind: str) -> int:
        if kind == "none":
            return 0
        if kind == "closed":
            return free_port()
        if kind == "nonsense":
            return origin(lambda _: b"220 mail.example ESMTP\r\n\r\n").port
        if kind == "eager":
            return scripted_origin(lambda there: there.send(reply(b"clear text"))).port
        if kind == "closing":
            return origin(lambda _: None).port
        if kind == "tls":
            return origin(lambda _: reply(b"secret"),
                          tls=pki.root.issue(TRUSTED).server_context()).port
        return origin(lambda _: reply(b"plain")).port

    return start


def check(running: Gateway, response: Response, reason: str, status: int) -> None:
    """The token is the same in all five places."""
    assert response.status == status, response
    body = response.json()
    assert body["reason"] == reason
    assert response.proxy_status["details"].startswith(f"{reason}: ")
    logged = [line for line in running.wait_access(1) if line["id"] == body["id"]]
    assert [line.get("reason") for line in logged] == [reason]
    operational = running.wait_log(re.escape(body["id"]))
    assert re.search(rf'\breason="?{re.escape(reason)}"?(\s|$)', operational), operational
    assert running.metric("pinfold_http_request_failures_total", reason=reason) == 1


@pytest.mark.parametrize("reason", FAULTS)
def test_a_fault_has_the_same_token_everywhere(gateway, pki, port_of, reason):
    fault = FAULTS[reason]
    running = gateway({"workers": 1, **with_root(fault.config, str(pki.root.pem_file))})
    port = port_of(fault.origin)
    response = running.ask(fault.request.replace("{port}", str(port)))
    check(running, response, reason, fault.status)
    explained = run_pinfold("reasons", reason)
    assert explained.returncode == 0 and f"status {fault.status}" in explained.stdout


def test_the_access_log_has_the_reason_why_a_response_was_not_stored(gateway, origin):
    there = origin(lambda seen: reply(b"x", "200 OK", "Cache-Control: no-store"))
    running = gateway()
    assert running.get(f"http://127.0.0.1:{there.port}/").status == 200
    (line,) = running.wait_access(1)
    assert (line["forwarded"], line["not_stored"]) == ("uri-miss", "no-store")
    assert "reason" not in line


def test_combined_lines_end_with_id_and_reason(gateway):
    running = gateway({"log": {"access": {"path": "access.log", "format": "combined"}}})
    identity = running.ask(get("http://10.0.0.1/")).json()["id"]
    text = until(lambda: running.access_file.read_text(), "a line")
    assert text.endswith(f'"-" {identity} destination-refused\n')


def test_an_unknown_token_is_an_error():
    done = run_pinfold("reasons", "no-such-token")
    assert done.returncode != 0 and "no-such-token" in done.stderr
