"""Clients that give up a tunnel after it was intercepted leave a line in the log, and are counted."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest
from support.interception import HOST, curl
from support.origin import reply


@pytest.fixture
def running(gateway, pki, authority):
    return gateway({
        "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
        "hosts": [{"match": [HOST], "name": "ours", "intercept": True}],
        "interception": authority.section})


@pytest.fixture
def there(origin, pki):
    return origin(lambda _: reply(b"here"), tls=pki.intermediate.issue(HOST).server_context())


def check_given_up(running, there, sign: str, alpn: str) -> None:
    line = running.wait_log(rf'gave up an intercepted tunnel.*sign="?{sign}')
    assert f"authority={HOST}:{there.port}" in line
    assert "client=127.0.0.1" in line and "entry=ours" in line and f"alpn={alpn}" in line
    assert running.metric("pinfold_interception_given_up_total", host="ours") == 1
    assert running.metric("pinfold_interception_rejections_total", host="ours") == 0


def shake(wire, authority, *protocols: str) -> ssl.SSLSocket:
    """A handshake in the tunnel."""
    context = ssl.create_default_context(cafile=str(authority.file))
    context.set_alpn_protocols(list(protocols))
    return context.wrap_socket(wire.socket, server_hostname=HOST)


def test_a_client_that_speaks_only_http2(running, there, authority):
    wire, answer = running.connect(f"{HOST}:{there.port}")
    with wire:
        assert answer.status == 200
        with pytest.raises(ssl.SSLError):
            shake(wire, authority, "h2")
    check_given_up(running, there, "no common protocol", "h2")


def test_a_client_that_sends_nothing(running, there):
    wire, answer = running.connect(f"{HOST}:{there.port}")
    assert answer.status == 200
    wire.close()
    check_given_up(running, there, "no ClientHello", "none")


def test_a_client_that_speaks_no_tls(running, there):
    wire, answer = running.connect(f"{HOST}:{there.port}")
    with wire:
        assert answer.status == 200
        wire.send(b"SSH-2.0-client\r\n")
        check_given_up(running, there, "not TLS", "none")


def test_a_client_that_closes_after_the_handshake(running, there, authority):
    wire, answer = running.connect(f"{HOST}:{there.port}")
    with wire:
        assert answer.status == 200
        shake(wire, authority, "http/1.1").close()
    check_given_up(running, there, "closed after the handshake", "http/1.1")


def test_javas_older_client_sends_an_alert_where_its_newer_one_just_closes(running, there):
    done = subprocess.run(
        ["java", str(Path(__file__).parent / "clients/OlderClient.java"), str(running.proxy[1]),
         f"https://{HOST}:{there.port}/"], capture_output=True, text=True, timeout=60)
    assert "PKIX path building failed" in done.stderr
    line = running.wait_log("does not accept the certificate")
    assert 'sign="alert certificate_unknown"' in line
    assert running.metric("pinfold_interception_rejections_total", host="ours") == 1
    assert running.metric("pinfold_interception_given_up_total", host="ours") == 1


def test_a_client_that_makes_a_request_is_not_logged_as_given_up(running, there, authority):
    assert curl(running, authority, f"https://{HOST}:{there.port}/") == "here"
    assert "gave up" not in running.log()
    assert running.metric("pinfold_interception_given_up_total", host="ours") == 0
