"""OCSP stapling: what a required response must say, offline, on connections of both versions, and in
inspected tunnels; and the responses that others could get hold of."""

from __future__ import annotations

import json
import subprocess
from datetime import datetime, timedelta, timezone

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509 import ocsp
from cryptography.x509.oid import ExtendedKeyUsageOID
from support import pki as certificates
from support.gateway import free_port, run_pinfold
from support.revocation import crl
from support.servers import Server
from support.wait import until
from support.wire import request

HOST = "stapled.test"
GOOD, REVOKED, UNKNOWN = (
    ocsp.OCSPCertStatus.GOOD, ocsp.OCSPCertStatus.REVOKED, ocsp.OCSPCertStatus.UNKNOWN)


def response(leaf, issuer, *, status=GOOD, days=(-1, 5), signer=None, attach=(),
             algorithm=None, named=ocsp.OCSPResponderEncoding.HASH):
    """A response in DER; `signer` signs in place of the issuer, `attach` are its certificates."""
    now = datetime.now(timezone.utc)
    signer = signer or issuer
    revoked = status is REVOKED
    builder = ocsp.OCSPResponseBuilder().add_response(
        cert=leaf.certificate, issuer=issuer.certificate, algorithm=algorithm or hashes.SHA1(),
        cert_status=status, this_update=now + timedelta(days=days[0]),
        next_update=now + timedelta(days=days[1]) if days[1] is not None else None,
        revocation_time=now - timedelta(days=1) if revoked else None, revocation_reason=None,
    ).responder_id(named, signer.certificate)
    if attach:
        builder = builder.certificates([one.certificate for one in attach])
    made = builder.sign(signer.key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.DER)


def delegate(authority, usage=ExtendedKeyUsageOID.OCSP_SIGNING, **options):
    return authority.issue("Responder", usage=usage, **options)


def twin(pki, of):
    name = of.certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value
    return certificates.root(pki.folder, name)


def delegated(leaf, issuer, responder):
    return response(leaf, issuer, signer=responder, attach=[responder])


def token(answer):
    return answer.proxy_status["details"].split(":")[0]


def flipped(message: bytes) -> bytes:
    """The message with another last byte, whichever it was."""
    return message[:-1] + bytes([message[-1] ^ 1])


CASES = {
    "good": (lambda p, leaf: response(leaf, p.intermediate), "trusted"),
    "good, named by SHA-256": (lambda p, leaf: response(
        leaf, p.intermediate, algorithm=hashes.SHA256()), "trusted"),
    "a delegated responder": (lambda p, leaf: delegated(
        leaf, p.intermediate, delegate(p.intermediate)), "trusted"),
    "none": (lambda p, leaf: None, "tls-ocsp-missing"),
    "text": (lambda p, leaf: b"hello", "tls-ocsp-invalid"),
    "try later": (lambda p, leaf: ocsp.OCSPResponseBuilder.build_unsuccessful(
        ocsp.OCSPResponseStatus.TRY_LATER).public_bytes(serialization.Encoding.DER),
        "tls-ocsp-invalid"),
    "damaged": (lambda p, leaf: flipped(response(leaf, p.intermediate)), "tls-ocsp-invalid"),
    "revoked": (lambda p, leaf: response(leaf, p.intermediate, status=REVOKED), "tls-ocsp-revoked"),
    "unknown": (lambda p, leaf: response(leaf, p.intermediate, status=UNKNOWN), "tls-ocsp-unknown"),
    "old": (lambda p, leaf: response(leaf, p.intermediate, days=(-9, -2)), "tls-ocsp-expired"),
    "of the future": (lambda p, leaf: response(leaf, p.intermediate, days=(2, 9)), "tls-ocsp-invalid"),
    "without an end": (lambda p, leaf: response(
        leaf, p.intermediate, days=(-1, None)), "tls-ocsp-invalid"),
    "of another certificate": (lambda p, leaf: response(
        p.intermediate.issue(HOST), p.intermediate), "tls-ocsp-invalid"),
    "of another authority": (lambda p, leaf: response(leaf, p.other_root), "tls-ocsp-invalid"),
    "of another authority of the same name": (lambda p, leaf: response(
        leaf, twin(p, p.intermediate)), "tls-ocsp-invalid"),
    "signed by the root": (lambda p, leaf: response(
        leaf, p.intermediate, signer=p.root, attach=[p.root]), "tls-ocsp-invalid"),
    "signed by another authority": (lambda p, leaf: response(
        leaf, p.intermediate, signer=p.rogue_root, attach=[p.rogue_root]), "tls-ocsp-invalid"),
    "signed by another in the issuer's name": (lambda p, leaf: response(
        leaf, p.intermediate, signer=twin(p, p.intermediate),
        named=ocsp.OCSPResponderEncoding.NAME), "tls-ocsp-invalid"),
    "signed by the server itself": (lambda p, leaf: response(
        leaf, p.intermediate, signer=leaf, attach=[leaf]), "tls-ocsp-invalid"),
    "a responder without the purpose": (lambda p, leaf: delegated(
        leaf, p.intermediate, delegate(p.intermediate, ExtendedKeyUsageOID.SERVER_AUTH)),
        "tls-ocsp-invalid"),
    "a responder of another authority": (lambda p, leaf: delegated(
        leaf, p.intermediate, delegate(p.other_root)), "tls-ocsp-invalid"),
    "a responder of the root": (lambda p, leaf: delegated(
        leaf, p.intermediate, delegate(p.root)), "tls-ocsp-invalid"),
    "a responder that has expired": (lambda p, leaf: delegated(
        leaf, p.intermediate, delegate(p.intermediate, days=(-9, -2))), "tls-ocsp-invalid"),
}


def configuration(pki, **entry):
    return {"workers": 1, "hosts": [
        {"match": [HOST], "upgrade": "https",
         "tls": {"roots": [str(pki.root.pem_file)], "ocspStapling": "required"}, **entry}]}


def trust_result(folder, pki, leaf, staple, *arguments, config=None):
    file = folder / "trust.yaml"
    file.write_text(yaml.safe_dump(config or configuration(pki)))
    if staple is not None:
        (folder / "staple.der").write_bytes(staple)
        arguments = ("--ocsp", str(folder / "staple.der"), *arguments)
    done = run_pinfold("trust", "--chain", str(leaf.chain_file()), "--host", HOST, "--json",
                       "--config", str(file), *arguments)
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", CASES)
def test_a_required_response_is_checked(workspace, pki, name):
    make, reason = CASES[name]
    leaf = pki.intermediate.issue(HOST)
    answer = trust_result(workspace, pki, leaf, make(pki, leaf))
    assert answer["reason"] == reason, answer
    assert answer["verdict"] == ("pass" if reason == "trusted" else "fail")


RESPONDERS = {
    # nocheck, what the lists revoke (None: there are none), profile → reason
    "with nocheck": (True, None, "strict", "trusted"),
    "with nocheck, in no list": (True, [], "strict", "trusted"),
    "with nocheck, revoked": (True, ["responder"], "strict", "tls-ocsp-invalid"),
    "in no list": (False, [], "strict", "trusted"),
    "revoked": (False, ["responder"], "strict", "tls-ocsp-invalid"),
    "revoked, lenient": (False, ["responder"], "lenient", "tls-ocsp-invalid"),
    "its server revoked as well": (False, ["leaf", "responder"], "strict", "tls-certificate-revoked"),
    "that nobody can look up": (False, None, "strict", "tls-ocsp-invalid"),
    "that nobody can look up, pedantic": (False, None, "pedantic", "tls-ocsp-invalid"),
    "that nobody can look up, lenient": (False, None, "lenient", "trusted"),
    "of a private authority": (False, None, None, "trusted"),
}


@pytest.mark.parametrize("name", RESPONDERS)
def test_a_responder_may_itself_be_revoked(workspace, pki, lists, name):
    nocheck, revoked, profile, reason = RESPONDERS[name]
    issuer = pki.root.intermediate("Responding")
    leaf = issuer.issue(HOST)
    responder = delegate(issuer, extensions=(x509.OCSPNoCheck(),) if nocheck else ())
    config = configuration(pki)
    tls = config["hosts"][0]["tls"]
    if profile:
        tls["profile"] = profile
    if revoked is not None:
        ones = [{"leaf": leaf, "responder": responder}[one] for one in revoked]
        tls["crls"] = [lists.hold("all", crl(pki.root), crl(issuer, *ones))]
    answer = trust_result(workspace, pki, leaf, delegated(leaf, issuer, responder), config=config)
    assert answer["reason"] == reason, answer
    if reason == "tls-ocsp-invalid":
        assert ("revoked" if revoked else "id-pkix-ocsp-nocheck") in answer["detail"]


@pytest.mark.parametrize("digest, reason", [("sha256", "trusted"), ("sha1", "tls-ocsp-invalid")])
def test_a_response_of_sha1_proves_nothing_by_pss_either(workspace, pki, digest, reason):
    leaf, issuer = pki.intermediate.issue(HOST), pki.intermediate
    signer = delegate(issuer, key=rsa.generate_private_key(public_exponent=65537, key_size=2048))
    made = signed_by_openssl(workspace, leaf, issuer, signer, "-rmd", digest,
                             "-rsigopt", "rsa_padding_mode:pss")
    answer = trust_result(workspace, pki, leaf, made)
    assert answer["reason"] == reason, answer
    assert reason == "trusted" or "SHA-1" in answer["detail"]


@pytest.mark.parametrize("digest, reason", [("sha256", "trusted"), ("sha1", "tls-ocsp-invalid")])
def test_a_response_of_sha1_proves_nothing(workspace, pki, digest, reason):
    leaf, issuer = pki.intermediate.issue(HOST), pki.intermediate
    made = signed_by_openssl(workspace, leaf, issuer, issuer, "-rmd", digest)
    answer = trust_result(workspace, pki, leaf, made)
    assert answer["reason"] == reason, answer
    assert reason == "trusted" or "SHA-1" in answer["detail"]


def signed_by_openssl(workspace, leaf, issuer, signer, *arguments):
    serial = f"{leaf.certificate.serial_number:X}"
    serial = serial.zfill(len(serial) + len(serial) % 2)
    (workspace / "index").write_text(f"V\t491231235959Z\t\t{serial}\tunknown\t/CN={HOST}\n")
    signed = workspace / "signed.der"
    subprocess.run(
        ["openssl", "ocsp", "-index", str(workspace / "index"), "-CA", str(issuer.pem_file),
         "-issuer", str(issuer.pem_file), "-cert", str(leaf.pem_file), "-rsigner",
         str(signer.pem_file), "-rkey", str(signer.key_file), *arguments, "-ndays", "5",
         "-respout", str(signed), "-noverify"], check=True, capture_output=True, timeout=30)
    return signed.read_bytes()


def test_the_verdict_holds_no_longer_than_the_response(workspace, pki):
    leaf = pki.intermediate.issue(HOST)
    made = response(leaf, pki.intermediate)
    # Clocks may be five minutes apart.
    end = ocsp.load_der_ocsp_response(made).next_update_utc + timedelta(minutes=5)
    assert end.strftime("%Y-%m-%dT%H:%M:%SZ") in trust_result(workspace, pki, leaf, made)["detail"]
    later = (datetime.now(timezone.utc) + timedelta(days=6)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert trust_result(workspace, pki, leaf, made, "--at", later)["reason"] == "tls-ocsp-expired"


def test_a_pinset_that_verifies_no_chain_leaves_nothing_to_judge_by(workspace, pki):
    leaf = pki.intermediate.issue(HOST)
    config = configuration(pki, pinsets=["p"])
    config["pinsets"] = {"p": {"mode": "publicKey", "pins": [leaf.pin],
                               "allowInvalidCertificates": True}}
    made = response(leaf, pki.intermediate)
    assert trust_result(workspace, pki, leaf, made, config=config)["reason"] == "tls-ocsp-invalid"
    done = run_pinfold("check", "--config", str(workspace / "trust.yaml"))
    assert done.returncode == 0
    assert "refuses every server" in done.stderr


class Stapler(Server):
    """`openssl s_server`, which staples a file and answers requests."""

    def __init__(self, folder, leaf, staple, version):
        port = free_port()
        arguments = []
        if staple is not None:
            file = folder / f"staple-{port}.der"
            file.write_bytes(staple)
            arguments = ["-status_file", str(file)]
        super().__init__(folder, port, [
            "openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", str(leaf.pem_file),
            "-key", str(leaf.key_file), "-cert_chain", str(leaf.chain_file()), "-www", "-quiet",
            f"-tls{version.replace('.', '_') if version != '1.3' else '1_3'}", *arguments])


@pytest.fixture
def stapler(workspace):
    made = []

    def make(*arguments):
        folder = workspace / f"server-{len(made)}"
        folder.mkdir()
        made.append(Stapler(folder, *arguments))
        return made[-1]
    yield make
    for one in made:
        one.stop()


LIVE = ["good", "a delegated responder", "none", "revoked", "unknown", "old",
        "of another certificate", "signed by another authority"]


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_connections_are_held_to_it(gateway, pki, stapler, version):
    running = gateway(configuration(pki))
    for name in LIVE:
        make, reason = CASES[name]
        leaf = pki.intermediate.issue(HOST)
        there = stapler(leaf, make(pki, leaf), version)
        for _ in range(2):
            answer = running.ask(request(f"http://{HOST}:{there.port}/"))
            if reason == "trusted":
                assert answer.status == 200, (name, answer)
            else:
                assert (answer.status, token(answer)) == (502, reason), (name, answer)
        if reason != "trusted":
            assert running.metric("pinfold_http_request_failures_total",
                                  reason=reason) >= 2


def test_what_is_not_required_is_not_asked_for(gateway, pki, stapler):
    leaf = pki.intermediate.issue(HOST)
    there = stapler(leaf, response(leaf, pki.intermediate, status=REVOKED), "1.3")
    config = configuration(pki)
    config["hosts"][0]["tls"]["ocspStapling"] = "ignored"
    running = gateway(config)
    assert running.ask(request(f"http://{HOST}:{there.port}/")).status == 200


@pytest.mark.parametrize("name", ["good", "none", "revoked", "not asked for"])
def test_an_inspected_tunnel_is_held_to_it_where_the_client_asks(
        gateway, pki, stapler, workspace, name):
    make, reason = CASES.get(name, CASES["good"])
    asks = name != "not asked for"
    reason = reason if asks else "tls-ocsp-missing"
    leaf = pki.intermediate.issue(HOST)
    there = stapler(leaf, make(pki, leaf), "1.2")
    running = gateway(configuration(pki, tunnel="inspect"))
    host, port = running.proxy
    done = subprocess.run(
        ["openssl", "s_client", "-proxy", f"{host}:{port}", "-connect", f"{HOST}:{there.port}",
         "-servername", HOST, "-tls1_2", "-CAfile", str(pki.root.pem_file),
         *(["-status"] if asks else [])],
        input="Q\n", capture_output=True, text=True, timeout=30)
    if reason == "trusted":
        assert "Verify return code: 0" in done.stdout, done.stdout + done.stderr
    else:
        assert "BEGIN CERTIFICATE" not in done.stdout
        until(lambda: any(line.get("reason") == reason
                          for line in running.access_lines()), lambda: running.log()[-2000:])


def test_check_prints_and_checks_the_key(workspace, pki):
    file = workspace / "checked.yaml"
    file.write_text(yaml.safe_dump(configuration(pki)))
    done = run_pinfold("check", "--config", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert "ocspStapling: required" in done.stdout
    file.write_text(file.read_text().replace("required", "requires"))
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1
    assert "hosts[0].tls.ocspStapling: \"requires\" is not valid; expected one of ignored, " \
        "required" in done.stderr
