"""Lists of revoked certificates: what they refuse, on every way and offline; lists that are missing,
old, forged or another's; and lists that change while the gateway runs."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from support import pki as certificates
from support.gateway import run_pinfold
from support.interception import ask_inside
from support.origin import reply
from support.revocation import crl
from support.wait import until
from support.wire import request

HOST = "listed.test"
PEM, DER = serialization.Encoding.PEM, serialization.Encoding.DER


class Lists:
    """Files of lists, by name."""

    def __init__(self, folder):
        self.folder = folder

    def hold(self, name, *lists, encoding=PEM):
        file = self.folder / f"{name}.crl"
        file.write_bytes(b"".join(one.public_bytes(encoding) for one in lists))
        return str(file)


@pytest.fixture
def lists(workspace):
    return Lists(workspace)


def configuration(pki, crls, **tls):
    return {"workers": 1, "hosts": [
        {"match": [HOST], "upgrade": "https",
         "tls": {"roots": [str(pki.root.pem_file)], "crls": crls, **tls}}]}


def token(answer):
    return answer.proxy_status["details"].split(":")[0]


def judged(folder, config, leaf, *arguments):
    """The reason by which `pinfold trust` decides under a configuration."""
    file = folder / "judged.yaml"
    file.write_text(yaml.safe_dump(config))
    done = run_pinfold("trust", "--chain", str(leaf.chain_file()), "--host", HOST, "--json",
                       "--config", str(file), *arguments)
    return json.loads(done.stdout)


def served(origin, leaf, **fields):
    return origin(lambda _: reply(b"here", "200 OK", "Cache-Control: no-store"),
                  tls=leaf.server_context(**fields))


def twin(pki, of):
    """Another authority of the same name."""
    name = of.certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value
    return certificates.root(pki.folder, name)


CASES = {
    "none revoked": (lambda p, leaf: [crl(p.root), crl(p.intermediate)], "trusted"),
    "others revoked": (lambda p, leaf: [
        crl(p.root), crl(p.intermediate, p.intermediate.issue("x.test"))], "trusted"),
    "a newer list beside an old one": (lambda p, leaf: [
        crl(p.root), crl(p.intermediate, days=(-9, -2)), crl(p.intermediate)], "trusted"),
    "the leaf revoked": (lambda p, leaf: [
        crl(p.root), crl(p.intermediate, leaf)], "certificate-revoked"),
    "the intermediate revoked": (lambda p, leaf: [
        crl(p.root, p.intermediate), crl(p.intermediate)], "certificate-revoked"),
    "the leaf's serial in the list of another issuer": (lambda p, leaf: [
        crl(p.root, leaf), crl(p.intermediate)], "trusted"),
    "no list of the intermediate": (lambda p, leaf: [crl(p.root)], "crl-missing"),
    "no list of the root": (lambda p, leaf: [crl(p.intermediate)], "crl-missing"),
    "the leaf's list is old": (lambda p, leaf: [
        crl(p.root), crl(p.intermediate, days=(-9, -2))], "crl-expired"),
    "the root's list is old": (lambda p, leaf: [
        crl(p.root, days=(-9, -2)), crl(p.intermediate)], "crl-expired"),
    "a list of the future": (lambda p, leaf: [
        crl(p.root), crl(p.intermediate, days=(2, 9))], "crl-invalid"),
    "signed by another key": (lambda p, leaf: [
        crl(p.root), crl(p.intermediate, signer=p.rogue_root)], "crl-invalid"),
    "of another authority of the same name": (lambda p, leaf: [
        crl(p.root), crl(twin(p, p.intermediate))], "crl-missing"),
    "old and revoking": (lambda p, leaf: [
        crl(p.root), crl(p.intermediate, leaf, days=(-9, -2))], "crl-expired"),
    "only for authorities": (lambda p, leaf: [
        crl(p.root), crl(p.intermediate, extensions=[(x509.IssuingDistributionPoint(
            None, None, False, True, None, False, False), True)])], "crl-missing"),
    "an unknown critical extension": (lambda p, leaf: [
        crl(p.root), crl(p.intermediate, extensions=[(x509.UnrecognizedExtension(
            x509.ObjectIdentifier("1.2.3.4.5"), b"\x05\x00"), True)])], "crl-invalid"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_chain_is_held_to_the_lists(workspace, pki, lists, name):
    make, reason = CASES[name]
    leaf = pki.intermediate.issue(HOST)
    file = lists.hold("all", *make(pki, leaf))
    answer = judged(workspace, configuration(pki, [file]), leaf)
    assert answer["reason"] == reason, answer
    assert answer["verdict"] == ("pass" if reason == "trusted" else "fail")


def test_lists_may_be_der_in_files_of_their_own(workspace, pki, lists):
    leaf = pki.intermediate.issue(HOST)
    files = [lists.hold("root", crl(pki.root), encoding=DER),
             lists.hold("leaf", crl(pki.intermediate, leaf), encoding=DER)]
    config = configuration(pki, files)
    assert judged(workspace, config, leaf)["reason"] == "certificate-revoked"
    other = pki.intermediate.issue(HOST)
    assert judged(workspace, config, other)["reason"] == "trusted"


def test_the_verdict_is_that_of_the_day_that_is_asked_for(workspace, pki, lists):
    leaf = pki.intermediate.issue(HOST)
    config = configuration(pki, [lists.hold("all", crl(pki.root), crl(pki.intermediate))])
    later = (datetime.now(timezone.utc) + timedelta(days=8)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert judged(workspace, config, leaf, "--at", later)["reason"] == "crl-expired"
    # And the verdict of today ends with the lists, before the certificates do.
    end = datetime.now(timezone.utc) + timedelta(days=7)
    assert end.strftime("%Y-%m-%d") in judged(workspace, config, leaf)["detail"]


def test_an_anchor_needs_no_list_of_its_issuer(workspace, pki, lists):
    leaf = pki.intermediate.issue(HOST)
    config = configuration(pki, [lists.hold("one", crl(pki.intermediate))])
    config["hosts"][0]["tls"]["roots"] = [str(pki.intermediate.pem_file)]
    assert judged(workspace, config, leaf)["reason"] == "trusted"
    config = configuration(pki, [lists.hold("one", crl(pki.intermediate, leaf))])
    config["hosts"][0]["tls"]["roots"] = [str(pki.intermediate.pem_file)]
    assert judged(workspace, config, leaf)["reason"] == "certificate-revoked"


def test_a_revoked_way_gives_way_to_another(workspace, pki, lists):
    """A cross-signed authority: one of its two certificates is revoked."""
    authority = pki.root.intermediate("Crossed")
    leaf = authority.issue(HOST, append=[authority.cross_signed(pki.other_root)])
    file = lists.hold("all", crl(pki.root, authority), crl(authority), crl(pki.other_root))
    config = configuration(pki, [file])
    assert judged(workspace, config, leaf)["reason"] == "certificate-revoked"
    config["hosts"][0]["tls"]["roots"].append(str(pki.other_root.pem_file))
    assert judged(workspace, config, leaf)["reason"] == "trusted"


@pytest.mark.parametrize("way", ["upgrade", "https target", "reverse", "interception"])
def test_a_revoked_server_is_refused_on_every_way(gateway, pki, lists, origin, way):
    good, bad = pki.intermediate.issue(HOST), pki.intermediate.issue(HOST)
    file = lists.hold("all", crl(pki.root), crl(pki.intermediate, bad))
    for leaf, status in ((good, 200), (bad, 502)):
        there = served(origin, leaf)
        config = configuration(pki, [file])
        config["listeners"] = [
            {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
            {"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
             "upstream": f"https://{HOST}:{there.port}"}]
        if way == "interception":
            config["hosts"][0]["intercept"] = True
            config["interception"] = pki.interception.section
        running = gateway(config)
        if way == "interception":
            answer = ask_inside(running, HOST, there.port,
                                request("/", host=f"{HOST}:{there.port}"))
        elif way == "reverse":
            answer = running.ask(request("/", host="back"), "back")
        else:
            scheme = "https" if way == "https target" else "http"
            answer = running.ask(request(f"{scheme}://{HOST}:{there.port}/"))
        assert answer.status == status, answer
        if status == 502:
            assert token(answer) == "tls-certificate-revoked"
            assert there.application_bytes == b""
            running.wait_log("tls-certificate-revoked")
            assert running.metric("pinfold_http_request_failures_total",
                                  reason="tls-certificate-revoked") == 1


def test_a_revoked_server_is_refused_in_an_inspected_tunnel(gateway, pki, lists, origin):
    import ssl

    from support.wire import Wire
    good, bad = pki.intermediate.issue(HOST), pki.intermediate.issue(HOST)
    file = lists.hold("all", crl(pki.root), crl(pki.intermediate, bad))
    config = configuration(pki, [file])
    config["hosts"][0] |= {"tunnel": "inspect"}
    running = gateway(config)
    context = ssl.create_default_context(cafile=str(pki.root.pem_file))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    for leaf, passes in ((good, True), (bad, False)):
        there = served(origin, leaf)
        wire, answer = running.connect(f"{HOST}:{there.port}")
        assert answer.status == 200
        with wire:
            if not passes:
                with pytest.raises((ssl.SSLError, OSError)):
                    context.wrap_socket(wire.socket, server_hostname=HOST)
            else:
                inner = Wire(("", 0), sock=context.wrap_socket(
                    wire.socket, server_hostname=HOST))
                assert inner.ask(request("/", host=HOST)).body == b"here"
        if not passes:
            until(lambda: any(line.get("reason") == "tls-certificate-revoked"
                              for line in running.access_lines()), "the reason is told")
            assert there.application_bytes == b""


def test_a_new_list_is_in_force_without_a_reload(gateway, pki, lists, origin):
    leaf = pki.intermediate.issue(HOST)
    there = origin(lambda _: reply(b"here", "200 OK", "Cache-Control: max-age=600"),
                   tls=leaf.server_context())
    file = lists.hold("all", crl(pki.root), crl(pki.intermediate))
    running = gateway(configuration(pki, [file]))
    url = f"http://{HOST}:{there.port}/"
    assert running.ask(request(url)).status == 200
    assert running.ask(request(url)).status == 200
    assert len(there.requests) == 1, "the second is a hit"
    # As good as the one before: what was stored is used on.
    lists.hold("all", crl(pki.root), crl(pki.intermediate, days=(0, 9)))
    running.wait_log("have changed and are in force")
    assert running.ask(request(url)).status == 200
    assert len(there.requests) == 1
    # A broken one leaves the one before in force.
    (lists.folder / "all.crl").write_text("hello")
    running.wait_log("cannot be used, the old one stays")
    assert running.ask(request(url)).status == 200
    # One that revokes the server: neither its connection nor what is stored is used.
    lists.hold("all", crl(pki.root), crl(pki.intermediate, leaf))
    until(lambda: running.log().count("have changed and are in force") == 2, running.log)
    answer = running.ask(request(url))
    assert (answer.status, token(answer)) == (502, "tls-certificate-revoked")
    assert len(there.requests) == 1


def check(folder, config):
    file = folder / "checked.yaml"
    file.write_text(yaml.safe_dump(config))
    return run_pinfold("check", "--config", str(file))


WRONG = {
    "text": (lambda pki: b"hello", "holds a list that cannot be read"),
    "empty": (lambda pki: b"", "the file is empty"),
    "a certificate": (lambda pki: pki.root.pem, "CERTIFICATE, not X509 CRL"),
    "cut": (lambda pki: crl(pki.root).public_bytes(DER)[:-1], "holds a list that cannot be read"),
    "more behind": (lambda pki: crl(pki.root).public_bytes(DER) + b"\0",
                    "holds a list that cannot be read"),
    "armour": (lambda pki: crl(pki.root).public_bytes(PEM)[:-20], "armor is damaged"),
    "a delta": (lambda pki: crl(pki.root, extensions=[
        (x509.DeltaCRLIndicator(1), True)]).public_bytes(PEM), "delta CRL"),
}


@pytest.mark.parametrize("name", WRONG)
def test_check_refuses_files_that_hold_no_lists(workspace, pki, name):
    make, word = WRONG[name]
    (workspace / "wrong.crl").write_bytes(make(pki))
    done = check(workspace, configuration(pki, [str(workspace / "wrong.crl")]))
    assert done.returncode == 1
    (error,) = done.stderr.splitlines()
    assert "hosts[0].tls.crls[0]" in error and word in error and "expected CRLs" in error, error


def test_check_warns_of_lists_that_are_of_no_use(workspace, pki, lists):
    def warned(*made):
        done = check(workspace, configuration(pki, [lists.hold("all", *made)]))
        assert done.returncode == 0, done.stderr
        assert "crls: [" in done.stdout
        return done.stderr

    assert warned(crl(pki.root)) == ""
    assert "is out of date: servers" in warned(crl(pki.root, days=(-9, -2)))
    assert "is out of date in" in warned(crl(pki.root, days=(-99, 1)))
    assert "not among the roots" in warned(crl(pki.other_root))
    assert "not signed by the root" in warned(crl(pki.root, signer=pki.rogue_root))
    missing = check(workspace, configuration(pki, [str(workspace / "none.crl")]))
    assert missing.returncode == 1 and "cannot be read" in missing.stderr
