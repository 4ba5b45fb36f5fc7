"""What intercepted clients are shown: never a good certificate in the name of a bad server, and
only the name that they asked for; and what a reload makes of open tunnels."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess

import pytest
from cryptography import x509
from support.interception import (
    HOST, OTHER, PINNED, WRONG_PIN, Inside, InterceptionAuthority, curl, no_client_is_connected)
from support.origin import reply
from support.secure import reload
from support.wait import until
from support.wire import request


@pytest.fixture
def running(gateway, pki, authority):
    return gateway({
        "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
        "interception": authority.section | {"default": True}})


def served(origin, certificate):
    return origin(lambda _: reply(b"here", "200 OK", "Cache-Control: no-store"),
                  tls=certificate.server_context())


@pytest.mark.parametrize("fault, reason", [
    ("name", "tls-host-mismatch"), ("expired", "tls-certificate-expired"), ("self-signed", "tls-self-signed"),
    ("root", "tls-untrusted-root")])
def test_a_server_that_is_not_trusted_is_an_error_at_connect(
        running, origin, pki, authority, fault, reason):
    certificate = {
        "name": lambda: pki.intermediate.issue(OTHER),
        "expired": lambda: pki.intermediate.issue(HOST, days=(-9, -2)),
        "self-signed": lambda: pki.self_signed(HOST),
        "root": lambda: pki.rogue_root.issue(HOST, append=[pki.rogue_root.certificate]),
    }[fault]()
    there = served(origin, certificate)
    wire, answer = running.connect(f"{HOST}:{there.port}")
    with wire:
        assert answer.status == 502
        assert answer.reason == reason, answer
        assert answer.proxy_status["error"] == "tls_certificate_error"
    assert there.application_bytes == b""
    assert running.wait_access(1)[0]["reason"] == reason
    assert running.metric("pinfold_tunnels_intercepted_total") == 0


def test_a_server_that_cannot_be_reached_is_an_error_at_connect(running):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        wire, answer = running.connect(f"{HOST}:{closed.getsockname()[1]}")
        wire.close()
    assert (answer.status, answer.reason) == (502, "connection-refused")


def certificate_shown(running, target: str, authority, name: str | None, **settings):
    wire, answer = running.connect(target)
    with wire:
        assert answer.status == 200
        inside = Inside(authority.file, name, **settings)
        inside.shake(wire)
        return x509.load_der_x509_certificate(inside.tls.getpeercert(True))


def test_the_certificate_names_the_host_alone(running, origin, pki, authority):
    leaf = pki.intermediate.issue(HOST, "*.test", OTHER, days=(-1, 7))
    there = served(origin, leaf)
    shown = certificate_shown(running, f"{HOST.upper()}.:{there.port}", authority, HOST)
    names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == [HOST]
    served_until = x509.load_der_x509_certificate(leaf.der).not_valid_after_utc
    assert shown.not_valid_after_utc == served_until, "not beyond the server's"


def test_an_address_needs_no_name(running, origin, pki, authority):
    there = served(origin, pki.intermediate.issue("127.0.0.1"))
    assert curl(running, authority, f"https://127.0.0.1:{there.port}/") == "here"
    shown = certificate_shown(
        running, f"127.0.0.1:{there.port}", authority, None, check_hostname=False)
    names = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(one) for one in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


@pytest.mark.parametrize("name", [OTHER, "sub." + HOST, "test"])
def test_another_name_than_connects_is_refused(running, origin, pki, authority, name):
    there = served(origin, pki.intermediate.issue(HOST))
    wire, answer = running.connect(f"{HOST}:{there.port}")
    with wire:
        assert answer.status == 200
        inside = Inside(authority.file, name)
        wire.send(inside.hello)
        seen = wire.read_to_end()
    assert seen[0] == 21 and seen[-1] == 112, "an alert: unrecognized_name"
    assert running.metric("pinfold_client_tls_failures_total", reason="name") == 1
    assert there.requests == []
    no_client_is_connected(running)


def test_a_name_with_the_port_of_connect_is_the_host(running, origin, pki, authority):
    there = served(origin, pki.intermediate.issue(HOST))
    target = f"{HOST}:{there.port}"
    assert certificate_shown(running, target, authority, target, check_hostname=False)
    wire, _ = running.connect(target)
    with wire:
        wire.send(Inside(authority.file, f"{HOST}:1").hello)
        assert wire.read_to_end()[-1] == 112, "an alert: unrecognized_name"


def s_client(running, there, authority, *arguments: str) -> str:
    done = subprocess.run(
        ["openssl", "s_client", "-proxy", "%s:%d" % running.proxy, "-connect",
         f"{HOST}:{there.port}", "-servername", HOST, "-CAfile", str(authority.file),
         "-verify_return_error", *arguments],
        input=f"GET / HTTP/1.0\r\nHost: {HOST}:{there.port}\r\n\r\n", capture_output=True,
        text=True, timeout=30)
    return done.stdout + done.stderr


@pytest.mark.parametrize("arguments, kind", [
    (["-tls1_3"], "ECDSA"), (["-tls1_2"], "ECDSA"), (["-tls1_2", "-sigalgs", "RSA+SHA256"], "RSA"),
    (["-tls1_3", "-sigalgs", "RSA-PSS+SHA256"], "RSA")])
def test_the_key_is_of_a_kind_that_the_client_verifies(
        running, origin, pki, authority, arguments, kind):
    there = served(origin, pki.intermediate.issue(HOST))
    output = s_client(running, there, authority, "-ign_eof", *arguments)
    assert "Verify return code: 0 (ok)" in output
    assert f"type: {kind}" in output.replace("ecdsa_secp256r1_sha256", "ECDSA").replace(
        "rsa_pss_rsae_sha256", "RSA"), output
    assert "\nhere" in output


def test_a_client_that_does_not_know_the_authority_is_counted(running, origin, pki, authority):
    there = served(origin, pki.intermediate.issue(HOST))
    done = subprocess.run(
        ["curl", "-q", "-sS", "-x", running.proxy_url, "--cacert", str(pki.root.pem_file),
         f"https://{HOST}:{there.port}/"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 60, done.stderr
    until(lambda: running.metric("pinfold_interception_rejections_total", host="default") == 1,
          "the rejection is counted")
    assert running.metric("pinfold_client_tls_failures_total", reason="untrusted") == 1
    assert f"{HOST}:{there.port}" in running.wait_log("does not accept the certificate")


def test_what_the_authority_may_not_name_is_not_served(
        gateway, origin, pki, tmp_path):
    limited = InterceptionAuthority(tmp_path, "--permit", "else.test")
    running = gateway({"tls": {"roots": [str(pki.root.pem_file)]},
                       "interception": limited.section | {"default": True}})
    there = served(origin, pki.intermediate.issue(HOST))
    wire, answer = running.connect(f"{HOST}:{there.port}")
    with wire:
        assert answer.status == 200
        wire.send(Inside(limited.file).hello)
        seen = wire.read_to_end()
    assert seen[0] == 21 and seen[-1] == 80, "an alert: internal_error"
    running.wait_log("name constraints")
    assert running.metric(
        "pinfold_interception_certificate_requests_total", result="failed") == 1


def test_a_host_that_no_certificate_can_name_is_refused(running):
    wire, answer = running.connect("a..b:443")
    wire.close()
    assert answer.status in (400, 403)


class TestReload:
    def test_a_tightened_policy_holds_inside_open_tunnels(self, gateway, origin, pki, authority):
        there = served(origin, pki.intermediate.issue(HOST))
        running = gateway({
            "tls": {"roots": [str(pki.root.pem_file)]}, "interception": authority.section,
            "hosts": [{"match": [HOST], "intercept": True}]})
        wire, _ = running.connect(f"{HOST}:{there.port}")
        with wire:
            inside = Inside(authority.file)
            inside.shake(wire)
            data = request("/", host=f"{HOST}:{there.port}")
            assert inside.ask(wire, data, b"here").startswith(b"HTTP/1.1 200 ")
            config = dict(running.config)
            config["hosts"] = [{"match": [HOST], "intercept": True, "pinsets": ["wrong"]}]
            config["pinsets"] = {"wrong": {"mode": "publicKey", "pins": [WRONG_PIN]}}
            reload(running, config)
            assert b"tls-no-pin-matches" in inside.ask(wire, data, b"tls-no-pin-matches")

    def test_tunnels_to_a_host_that_is_no_longer_intercepted_end(
            self, gateway, origin, pki, authority):
        there = served(origin, pki.intermediate.issue(HOST))
        running = gateway({
            "tls": {"roots": [str(pki.root.pem_file)]}, "interception": authority.section,
            "hosts": [{"match": [HOST], "intercept": True}]})
        wire, _ = running.connect(f"{HOST}:{there.port}")
        with wire:
            inside = Inside(authority.file)
            inside.shake(wire)
            config = dict(running.config)
            config["hosts"] = [{"match": [HOST], "intercept": False}]
            reload(running, config)
            wire.read_to_end()
        no_client_is_connected(running)

    def test_a_listener_that_goes_takes_its_tunnels_with_it(
            self, gateway, origin, pki, authority):
        there = served(origin, pki.intermediate.issue(HOST))
        running = gateway({
            "tls": {"roots": [str(pki.root.pem_file)]},
            "interception": authority.section | {"default": True}})
        wire, _ = running.connect(f"{HOST}:{there.port}")
        with wire:
            inside = Inside(authority.file)
            inside.shake(wire)
            reload(running)
            data = request("/", host=f"{HOST}:{there.port}")
            assert inside.ask(wire, data, b"here"), "one that changes nothing leaves it open"
            config = dict(running.config)
            config["listeners"] = [
                {"name": "proxy", "address": "127.0.0.2:0", "kind": "forward"}]
            reload(running, config)
            wire.read_to_end()

    def test_an_authority_comes_with_a_reload_and_changes_with_one(
            self, gateway, origin, pki, authority, tmp_path):
        there = served(origin, pki.intermediate.issue(HOST))
        running = gateway({"tls": {"roots": [str(pki.root.pem_file)]}})
        config = dict(running.config)
        for one in (authority, InterceptionAuthority(tmp_path)):
            config["interception"] = one.section | {"default": True}
            reload(running, config)
            assert curl(running, one, f"https://{HOST}:{there.port}/") == "here"
        assert running.metric("pinfold_interception_certificates_issued_total") == 2

    def test_a_drain_ends_idle_tunnels(self, running, origin, pki, authority):
        there = served(origin, pki.intermediate.issue(HOST))
        wire, _ = running.connect(f"{HOST}:{there.port}")
        with wire:
            inside = Inside(authority.file)
            inside.shake(wire)
            running.signal(signal.SIGTERM)
            assert running.wait_exit() == 0


def test_sessions_are_resumed_for_the_same_host_only(running, origin, pki, authority):
    there = served(origin, pki.intermediate.issue(HOST, PINNED))
    context = ssl.create_default_context(cafile=str(authority.file))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = False

    def shake(host: str, name: str | None, session: ssl.SSLSession | None):
        wire, answer = running.connect(f"{host}:{there.port}")
        assert answer.status == 200
        with context.wrap_socket(wire.socket, server_hostname=name, session=session) as tls:
            return tls.session, tls.session_reused

    first, reused = shake(HOST, HOST, None)
    assert not reused
    assert shake(HOST, HOST, first)[1]
    # Without a name nothing in the client's message says which host is meant.
    nameless, _ = shake(HOST, None, None)
    assert shake(HOST, None, nameless)[1]
    assert not shake(PINNED, None, nameless)[1]
