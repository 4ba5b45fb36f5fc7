"""Lists of revoked certificates where a chain ends: in an intermediate authority, in the server's own
certificate, in a pinned one."""

from __future__ import annotations

import pytest
from cryptography import x509
from support import pki as certificates
from support.revocation import HOST, check, configuration, crl, served, token, trust_result
from support.wire import request


def test_an_anchor_needs_no_list_of_its_issuer(workspace, pki, lists):
    leaf = pki.intermediate.issue(HOST)
    config = configuration(pki, [lists.hold("one", crl(pki.intermediate))])
    config["hosts"][0]["tls"]["roots"] = [str(pki.intermediate.pem_file)]
    assert trust_result(workspace, config, leaf)["reason"] == "trusted"
    config = configuration(pki, [lists.hold("one", crl(pki.intermediate, leaf))])
    config["hosts"][0]["tls"]["roots"] = [str(pki.intermediate.pem_file)]
    assert trust_result(workspace, config, leaf)["reason"] == "tls-certificate-revoked"


@pytest.mark.parametrize("keyed", [True, False])
def test_nothing_is_asked_above_an_anchor(workspace, pki, lists, keyed):
    """Lists of the authority above do not count, whatever they say and however old they are."""
    leaf = pki.intermediate.issue(HOST)
    for above in (crl(pki.root, keyed=keyed), crl(pki.root, pki.intermediate, keyed=keyed),
                  crl(pki.root, keyed=keyed, days=(-9, -2))):
        config = configuration(pki, [lists.hold("all", crl(pki.intermediate), above)])
        config["hosts"][0]["tls"]["roots"] = [str(pki.intermediate.pem_file)]
        answer = trust_result(workspace, config, leaf)
        assert answer["reason"] == "trusted", answer


@pytest.mark.parametrize("above", [[], ["another"], ["intermediate"]])
@pytest.mark.parametrize("sends", ["all", "the leaf alone", "its root, too"])
def test_an_anchor_that_another_anchor_has_revoked_is_refused(
        workspace, pki, lists, sends, above):
    """A bundle of an intermediate authority and its root as `roots`."""
    leaf = pki.intermediate.issue(HOST)
    if sends == "the leaf alone":
        leaf.chain.clear()
    elif sends == "its root, too":
        leaf.chain.append(pki.root.certificate)
    named = {"another": pki.root.issue("another.test"), "intermediate": pki.intermediate}
    file = lists.hold("all", crl(pki.root, *(named[one] for one in above)),
                      crl(pki.intermediate))
    config = configuration(pki, [file])
    roots = [str(pki.intermediate.pem_file), str(pki.root.pem_file)]
    for order in (roots, roots[::-1]):
        config["hosts"][0]["tls"]["roots"] = order
        answer = trust_result(workspace, config, leaf)
        wanted = "tls-certificate-revoked" if "intermediate" in above else "trusted"
        assert answer["reason"] == wanted, answer


@pytest.mark.parametrize("revoked", [False, True])
@pytest.mark.parametrize("held", ["anchors", "pins"])
def test_a_pinset_may_have_the_anchor_that_revokes_another(workspace, pki, lists, held, revoked):
    """Both are the pinset's own, and none of `roots`."""
    leaf = pki.intermediate.issue(HOST)
    file = lists.hold("all", crl(pki.root, *[pki.intermediate] * revoked), crl(pki.intermediate))
    config = configuration(pki, [file])
    config["hosts"][0]["tls"]["roots"] = [str(pki.other_root.pem_file)]
    config["hosts"][0]["pinsets"] = ["own"]
    both = [str(pki.intermediate.pem_file), str(pki.root.pem_file)]
    for files in (both, both[::-1]):
        config["pinsets"] = {"own": {
            "anchors": {"mode": "none", "anchors": files},
            "pins": {"mode": "certificate", "pins": files, "allowInvalidCertificates": True},
        }[held]}
        answer = trust_result(workspace, config, leaf)
        assert answer["reason"] == ("tls-certificate-revoked" if revoked else "trusted"), answer


def test_a_list_of_a_root_for_servers_only_is_enough(workspace, pki, lists):
    leaf = pki.root.issue(HOST)
    only = crl(pki.root, extensions=[(x509.IssuingDistributionPoint(
        None, None, True, False, None, False, False), True)])
    config = configuration(pki, [lists.hold("one", only)])
    assert trust_result(workspace, config, leaf)["reason"] == "trusted"


ANCHORED = {
    # The leaf's list, whether the server sends the issuer's certificate, and the verdict.
    "revoked": (lambda p, leaf, keyed: [crl(p.intermediate, leaf, keyed=keyed)], True,
                "tls-certificate-revoked"),
    "revoked, its issuer left out": (
        lambda p, leaf, keyed: [crl(p.intermediate, leaf, keyed=keyed)], False,
        "tls-certificate-revoked"),
    "not revoked": (lambda p, leaf, keyed: [crl(p.intermediate, keyed=keyed)], True, "trusted"),
    "not revoked, its issuer left out": (
        lambda p, leaf, keyed: [crl(p.intermediate, keyed=keyed)], False, "tls-crl-missing"),
    "no list of its issuer": (lambda p, leaf, keyed: [crl(p.root, keyed=keyed)], True,
                              "tls-crl-missing"),
    "no list of its issuer, which is left out": (
        lambda p, leaf, keyed: [crl(p.root, keyed=keyed)], False, "tls-crl-missing"),
    "its issuer revoked": (lambda p, leaf, keyed: [
        crl(p.root, p.intermediate, keyed=keyed), crl(p.intermediate, keyed=keyed)], True,
        "trusted"),
    "old": (lambda p, leaf, keyed: [crl(p.intermediate, keyed=keyed, days=(-9, -2))], True,
            "tls-crl-expired"),
}


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("name", ANCHORED)
def test_a_leaf_that_is_the_anchor_is_looked_up(workspace, pki, lists, name, keyed):
    make, is_sent, reason = ANCHORED[name]
    leaf = pki.intermediate.issue(HOST)
    config = configuration(pki, [lists.hold("all", *make(pki, leaf, keyed))])
    config["hosts"][0]["tls"]["roots"] = [str(leaf.pem_file)]
    if not is_sent:
        leaf.chain.clear()
    answer = trust_result(workspace, config, leaf)
    assert answer["reason"] == reason, answer
    if name == "not revoked, its issuer left out":
        assert "cannot be verified" in answer["detail"]


def test_a_leaf_signed_by_itself_needs_no_list(workspace, pki, lists):
    leaf = certificates.self_signed(pki.folder, HOST)
    config = configuration(pki, [lists.hold("one", crl(pki.root))])
    config["hosts"][0]["tls"]["roots"] = [str(leaf.pem_file)]
    assert trust_result(workspace, config, leaf)["reason"] == "trusted"


@pytest.mark.parametrize("revoked", [False, True])
def test_a_pinned_certificate_is_looked_up_in_the_list_of_its_root(
        workspace, pki, lists, revoked):
    """The server sends its certificate alone, as all do that a root has signed."""
    leaf = pki.root.issue(HOST)
    file = lists.hold("one", crl(pki.root, *[leaf] * revoked))
    config = configuration(pki, [file])
    config["hosts"][0]["pinsets"] = ["leaf"]
    for fields in ({}, {"allowInvalidCertificates": True}):
        config["pinsets"] = {"leaf": {
            "mode": "certificate", "pins": [str(leaf.pem_file)], **fields}}
        answer = trust_result(workspace, config, leaf)
        assert answer["reason"] == ("tls-certificate-revoked" if revoked else "trusted"), answer


def test_a_revoked_leaf_that_is_the_anchor_is_refused(gateway, pki, lists, origin):
    leaf = pki.intermediate.issue(HOST)
    leaf.chain.clear()
    there = served(origin, leaf)
    config = configuration(pki, [lists.hold("all", crl(pki.intermediate, leaf))])
    config["hosts"][0]["tls"]["roots"] = [str(leaf.pem_file)]
    answer = gateway(config).ask(request(f"http://{HOST}:{there.port}/"))
    assert (answer.status, token(answer)) == (502, "tls-certificate-revoked")
    assert there.application_bytes == b""


def test_check_warns_of_pinned_servers_that_must_send_their_issuer(workspace, pki, lists):
    """No chain to the roots is verified, so that nothing else has the issuer's certificate."""
    leaf = pki.intermediate.issue(HOST)
    config = configuration(pki, [lists.hold("all", crl(pki.intermediate))])
    config["hosts"][0]["pinsets"] = ["leaf"]
    pinset = {"mode": "certificate", "pins": [str(leaf.pem_file), str(pki.root.pem_file)]}
    config["pinsets"] = {"leaf": pinset}
    assert "unless it sends" not in check(workspace, config).stderr
    pinset["allowInvalidCertificates"] = True
    done = check(workspace, config)
    assert done.returncode == 0
    assert "hosts[0]" in done.stderr and "unless it sends" in done.stderr, done.stderr
    config["hosts"][0]["tls"]["crls"] = []
    assert "unless it sends" not in check(workspace, config).stderr
