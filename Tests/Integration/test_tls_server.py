"""What `openssl s_client` finds at a TLS listener: names, versions, sessions, staples."""

from __future__ import annotations

import re

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from support.pki import make
from support.secure import NAME, forward, reload, reverse, s_client, staple, subject_seen, tls_of


@pytest.fixture(scope="module")
def leaf(pki):
    return pki.intermediate.issue(NAME)


@pytest.fixture(scope="module")
def others(pki):
    return [pki.root.issue("second.test", "*.wild.test"), pki.root.issue("third.test")]


@pytest.mark.parametrize("name,subject", [
    (NAME, NAME), ("second.test", "second.test"), ("SECOND.test", "second.test"),
    ("a.wild.test", "second.test"), ("a.b.wild.test", NAME), ("third.test", "third.test"),
    ("unknown.test", NAME), (None, NAME)])
def test_the_certificate_is_chosen_by_name(gateway, leaf, others, name, subject):
    running = gateway({"listeners": [forward(tls_of(leaf, *others))]})
    assert subject_seen(s_client(running, name=name)) == f"CN = {subject}"


def test_of_two_kinds_of_keys_the_client_gets_one_that_it_can_verify(gateway, leaf, pki):
    key = rsa.generate_private_key(65537, 2048)
    old = make(pki.folder, (NAME,), issuer=pki.root, key=key)
    running = gateway({"listeners": [forward(tls_of(leaf, old))]})
    assert "Peer signature type: ECDSA" in s_client(running)
    for suite in ("ECDHE-RSA-AES128-GCM-SHA256", "AES128-SHA"):
        assert "Server public key is 2048 bit" in s_client(
            running, "-tls1_2", "-cipher", suite)


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_a_session_is_resumed_by_any_worker_and_nowhere_else(
        gateway, leaf, others, workspace, version):
    tls = tls_of(leaf, *others)
    running = gateway({"workers": 2, "listeners": [forward(tls), forward(tls, "other")]})
    session = str(workspace / "session")
    # In TLS 1.3 tickets come behind the handshake, with the first bytes.
    sent = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"

    def resumed(*arguments: str, **options: object) -> bool:
        output = s_client(running, version, *arguments, sent=sent, **options)
        return re.search(r"^(Reused|New), TLS", output, re.M)[1] == "Reused"

    assert not resumed("-sess_out", session, "-ign_eof")
    for _ in range(6):
        assert resumed("-sess_in", session, "-ign_eof")
    assert not resumed("-sess_in", session, "-ign_eof", listener="other")
    assert not resumed("-sess_in", session, "-ign_eof", name="third.test")
    reload(running)
    assert resumed("-sess_in", session, "-ign_eof"), "nothing has changed"
    reload(running, running.config | {"limits": {"fields": 99}})
    assert not resumed("-sess_in", session, "-ign_eof")


def test_renegotiation_is_refused(gateway, leaf):
    running = gateway({"listeners": [forward(tls_of(leaf))]})
    output = s_client(running, "-tls1_2", sent="R\n")
    assert "no renegotiation" in output


@pytest.mark.parametrize("minimum,spoken", [
    ("1.0", {"1.0", "1.1", "1.2", "1.3"}), ("1.1", {"1.1", "1.2", "1.3"}),
    ("1.2", {"1.2", "1.3"}), ("1.3", {"1.3"})])
def test_the_minimum_is_kept(gateway, leaf, minimum, spoken):
    running = gateway({"listeners": [forward(tls_of(leaf, minimum=minimum))]})
    for version in ("1.0", "1.1", "1.2", "1.3"):
        flag = {"1.0": "-tls1", "1.1": "-tls1_1", "1.2": "-tls1_2", "1.3": "-tls1_3"}[version]
        output = s_client(running, flag, "-cipher", "DEFAULT:@SECLEVEL=0")
        protocol = "TLSv1" if version == "1.0" else f"TLSv{version}"
        assert (f", {protocol}, Cipher is" in output or f"Protocol  : {protocol}\n" in output
                and "Cipher is (NONE)" not in output) == (version in spoken), output
    seen = {version for version in ("1.0", "1.1", "1.2", "1.3") if running.metric(
        "pinfold_client_tls_handshakes_total", version=version) == 1}
    assert seen == spoken
    if minimum != "1.0":
        assert running.metric("pinfold_client_tls_failures_total", reason="version") >= 1


@pytest.mark.parametrize("http2", ["auto", "off"])
def test_http_2_is_preferred_where_it_is_spoken(gateway, leaf, http2):
    running = gateway({"listeners": [forward(tls_of(leaf)) | {"http2": http2}]})
    preferred = "h2" if http2 == "auto" else "http/1.1"
    assert f"ALPN protocol: {preferred}" in s_client(running, "-alpn", "http/1.1,h2")
    assert "ALPN protocol: http/1.1" in s_client(running, "-alpn", "http/1.1")
    assert "No ALPN negotiated" in s_client(running)
    alone = s_client(running, "-alpn", "h2")
    assert "ALPN protocol: h2" in alone or http2 == "off"
    assert "no application protocol" in alone or http2 == "auto"
    assert "no application protocol" in s_client(running, "-alpn", "spdy/3")


def test_no_early_data_and_no_compression(gateway, leaf):
    running = gateway({"listeners": [forward(tls_of(leaf))]})
    output = s_client(running, "-ign_eof", sent="GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
    assert "Max Early Data: 0" in output
    assert "Compression: NONE" in s_client(running, "-tls1_2")


def test_a_staple_is_sent_to_whom_asks(gateway, leaf, others, pki, workspace):
    made = staple(workspace, leaf, pki.intermediate)
    running = gateway({"listeners": [
        forward(tls_of(leaf, *others, ocsp=[str(made), "none", "none"]))]})
    assert "OCSP Response Status: successful" in s_client(running, "-status")
    assert "OCSP response: no response sent" in s_client(
        running, "-status", name="third.test")


def test_a_staple_that_has_expired_is_not_sent(gateway, leaf, pki, workspace):
    made = staple(workspace, leaf, pki.intermediate, days=(-5, -1))
    running = gateway({"listeners": [forward(tls_of(leaf, ocsp=str(made)))]})
    assert "OCSP response: no response sent" in s_client(running, "-status")
    running.wait_log("has expired: it is not sent")


def test_a_handshake_makes_one_line_of_the_trace(gateway, leaf):
    running = gateway({"listeners": [forward(tls_of(leaf))], "log": {"level": "trace"}})
    s_client(running, "-verify_return_error", "-CAfile", str(leaf.pem_file))
    line = running.wait_log("tls handshake with a client failed")
    assert "unknown_ca" in line
    s_client(running, "-tls1_2")
    line = running.wait_log("tls handshake with a client ended")
    assert NAME in line and "1.2" in line


def test_s_client_asks_a_reverse_route(gateway, leaf, origin):
    from support.origin import reply
    there = origin(lambda _: reply(b"from there", "200 OK"))
    running = gateway({"listeners": [
        forward(None), reverse(tls_of(leaf), there.url().rstrip("/"))]})
    output = s_client(running, "-quiet", listener="route",
                      sent="GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert "from there" in output
