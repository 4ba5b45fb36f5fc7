"""Pinsets over their life: pins that are only reported, pins whose time is over, and the metrics."""

from __future__ import annotations

import signal
import time
from datetime import datetime, timezone

import pytest
from support.origin import reply
from support.pki import Certificate
from support.secure import reload
from support.wait import until
from support.wire import Response

HOST = "api.life.test"
EMPTY_PIN = "sha256/" + "A" * 43 + "="
OTHER_PIN = "sha256/" + "B" * 42 + "A="


def at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def serve(origin, certificate: Certificate, **fields: str):
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return origin(lambda _: reply(b"genuine", "200 OK", *(lines or ["Cache-Control: no-store"])),
                  tls=certificate.server_context())


def configuration(pki, **pinset) -> dict:
    return {
        "hosts": [{"match": [HOST], "upgrade": "https", "pinsets": ["wanted"],
                   "tls": {"roots": [str(pki.root.pem_file)]}}],
        "workers": 1,
        "pinsets": {"wanted": {"mode": "publicKey", "pins": [EMPTY_PIN, OTHER_PIN], **pinset}}}


def ask(running, there) -> Response:
    return running.get(f"http://{HOST}:{there.port}/", Accept="application/json")


def evaluations(running, result: str) -> float:
    return running.metric("pinfold_pin_evaluations_total", pinset="wanted", result=result)


def test_a_mismatch_is_reported_and_passes(gateway, origin, pki):
    there = serve(origin, pki.intermediate.issue(HOST))
    running = gateway(configuration(pki, enforce=False))
    for _ in range(3):
        assert ask(running, there).status == 200
    assert evaluations(running, "reported") == there.handshakes
    assert evaluations(running, "passed") == 0
    assert running.metric("pinfold_pinset_enforced", pinset="wanted") == 0
    line = running.wait_log("server accepted by a report-only pinset")
    assert "warning" in line and "tls-no-pin-matches" in line and HOST in line
    assert running.log().count("server accepted by a report-only pinset") == 1


@pytest.mark.parametrize("loose", [{}, {"allowInvalidCertificates": True},
                                   {"validatesDomainName": False}])
@pytest.mark.parametrize("bad", ["unknown authority", "another name"])
def test_a_server_that_is_not_trusted_without_pins_is_refused(gateway, origin, pki, bad, loose):
    leaf = pki.self_signed(HOST) if bad == "unknown authority" else pki.root.issue("other.test")
    there = serve(origin, leaf)
    running = gateway(configuration(pki, enforce=False, **loose))
    response = ask(running, there)
    assert response.status == 502
    expected = {"unknown authority": "tls-self-signed", "another name": "tls-host-mismatch"}[bad]
    assert response.json()["reason"] == expected
    assert there.application_bytes == b""
    assert evaluations(running, "reported") == 0


def test_report_only_does_not_open_the_host_to_clear_text_and_tunnels(gateway, origin, pki):
    there = serve(origin, pki.intermediate.issue(HOST))
    config = configuration(pki, enforce=False)
    del config["hosts"][0]["upgrade"]
    running = gateway(config | {"access": {"connectPorts": "any"}})
    assert ask(running, there).json()["reason"] == "clear-text-refused"
    refused = running.ask(f"CONNECT {HOST}:{there.port} HTTP/1.1\r\nHost: {HOST}\r\n\r\n")
    assert refused.status == 403
    assert there.accepted == 0


def test_enforcing_ends_what_reporting_let_pass(gateway, origin, pki):
    """Connections, sessions and stored responses of the looser time are not used again."""
    there = serve(origin, pki.intermediate.issue(HOST), Cache_Control="max-age=3600")
    config = configuration(pki, enforce=False)
    running = gateway(config)
    assert ask(running, there).status == 200
    assert ask(running, there).get("cache-status").startswith("pinfold; hit")
    del config["pinsets"]["wanted"]["enforce"]
    running.write_config({**running.config, **config})
    running.signal(signal.SIGHUP)
    running.wait_log("configuration reloaded")
    response = ask(running, there)
    assert response.status == 502
    assert response.json()["reason"] == "tls-no-pin-matches"
    assert running.metric("pinfold_pinset_enforced", pinset="wanted") == 1


def test_an_expired_pinset_refuses_even_the_right_server(gateway, origin, pki):
    leaf = pki.intermediate.issue(HOST)
    there = serve(origin, leaf)
    running = gateway(configuration(pki, pins=[leaf.pin, EMPTY_PIN], expires="2026-01-01"))
    response = ask(running, there)
    assert response.status == 502
    assert response.json()["reason"] == "tls-pinset-expired"
    assert "2026-01-01T00:00:00Z" in response.json()["message"] + str(response.json())
    assert there.application_bytes == b""
    assert evaluations(running, "expired") == 1
    assert running.metric("pinfold_pinset_expiry_timestamp_seconds", pinset="wanted") == (
        datetime(2026, 1, 1, tzinfo=timezone.utc).timestamp())
    running.wait_log("warning.*pinsets.wanted.expires.*expired at 2026-01-01T00:00:00Z")


def test_an_expired_pinset_may_go_on_reporting(gateway, origin, pki):
    there = serve(origin, pki.intermediate.issue(HOST))
    running = gateway(configuration(pki, expires="2026-01-01", afterExpiry="report"))
    assert ask(running, there).status == 200
    assert evaluations(running, "reported") == 1
    assert running.metric("pinfold_pinset_enforced", pinset="wanted") == 0


def test_a_connection_is_not_used_beyond_the_expiry_of_its_pinset(gateway, origin, pki):
    leaf = pki.intermediate.issue(HOST)
    there = serve(origin, leaf)
    running = gateway(configuration(
        pki, pins=[leaf.pin, EMPTY_PIN], expires=at(time.time() + 4)))
    seen = []

    def is_refused() -> bool:
        seen.append(ask(running, there))
        return seen[-1].status != 200

    until(is_refused, "the pinset expires", 20)
    assert seen[0].status == 200, "before its expiry"
    assert seen[-1].status == 502
    assert seen[-1].json()["reason"] == "tls-pinset-expired"
    assert there.handshakes == 1, "one connection carried all requests until then"
    assert running.metric("pinfold_upstream_connections_outdated_total") == 1
    assert running.metric("pinfold_upstream_connections_open") == 0


def test_metrics_show_which_pins_match_and_when_certificates_end(gateway, origin, pki):
    leaf = pki.intermediate.issue(HOST, days=(-1, 20))
    there = serve(origin, leaf)
    expires = int(time.time()) + 100_000
    running = gateway(configuration(
        pki, pins=[EMPTY_PIN, leaf.pin, pki.root.pin], expires=at(expires)))
    assert ask(running, there).status == 200

    def matches(pin: str) -> float:
        return running.metric("pinfold_pin_matches_total", pinset="wanted", pin=pin[:7 + 12])

    assert [matches(pin) for pin in (EMPTY_PIN, leaf.pin, pki.root.pin)] == [0, 1, 1]
    assert running.metric("pinfold_pinset_expiry_timestamp_seconds", pinset="wanted") == expires
    certificate = running.metric(
        "pinfold_certificate_not_after_timestamp_seconds", use="upstream", host=HOST)
    chain = running.metric("pinfold_chain_not_after_timestamp_seconds", host=HOST)
    assert certificate == leaf.certificate.not_valid_after_utc.timestamp()
    assert time.time() < chain <= certificate


def test_a_pin_keeps_its_count_wherever_it_stands_after_a_rotation(gateway, origin, pki):
    leaf = pki.intermediate.issue(HOST)
    there = serve(origin, leaf)
    running = gateway(configuration(pki, pins=[leaf.pin, EMPTY_PIN]))
    assert ask(running, there).status == 200

    def matches() -> dict[str, float]:
        return {pin: running.metric("pinfold_pin_matches_total", pinset="wanted", pin=pin[:7 + 12])
                for pin in (leaf.pin, EMPTY_PIN)}

    assert matches() == {leaf.pin: 1, EMPTY_PIN: 0}
    # The backup takes the first place, and the key that is in use goes behind a new one.
    rotated = configuration(pki, pins=[EMPTY_PIN, pki.other_root.pin, leaf.pin])
    reload(running, running.config | {"pinsets": rotated["pinsets"]})
    assert matches() == {leaf.pin: 1, EMPTY_PIN: 0}
    assert running.metric("pinfold_pin_matches_total", pinset="wanted",
                          pin=pki.other_root.pin[:7 + 12]) == 0
    assert ask(running, there).status == 200
    assert matches() == {leaf.pin: 2, EMPTY_PIN: 0}
