"""Lists of revoked certificates: what they refuse, on every way and offline; lists that are missing,
old, forged or another's; and lists that change while the gateway runs."""

from __future__ import annotations

import signal
from datetime import datetime, timedelta, timezone

import pytest
from cryptography import x509
from support.origin import reply
from support.revocation import (
    DER, HOST, PEM, check, configuration, crl, served, token, trust_result, twin)
from support.secure_ways import WAYS, ask_by, prepare
from support.wait import until
from support.wire import request


CASES = {
    "none revoked": (lambda p, leaf: [crl(p.root), crl(p.intermediate)], "trusted"),
    "others revoked": (lambda p, leaf: [
        crl(p.root), crl(p.intermediate, p.intermediate.issue("x.test"))], "trusted"),
    "a newer list beside an old one": (lambda p, leaf: [
        crl(p.root), crl(p.intermediate, days=(-9, -2)), crl(p.intermediate)], "trusted"),
    "the leaf revoked": (lambda p, leaf: [
        crl(p.root), crl(p.intermediate, leaf)], "tls-certificate-revoked"),
    "the intermediate revoked": (lambda p, leaf: [
        crl(p.root, p.intermediate), crl(p.intermediate)], "tls-certificate-revoked"),
    "the leaf's serial in the list of another issuer": (lambda p, leaf: [
        crl(p.root, leaf), crl(p.intermediate)], "trusted"),
    "no list of the intermediate": (lambda p, leaf: [crl(p.root)], "tls-crl-missing"),
    "no list of the root": (lambda p, leaf: [crl(p.intermediate)], "tls-crl-missing"),
    "the leaf's list is old": (lambda p, leaf: [
        crl(p.root), crl(p.intermediate, days=(-9, -2))], "tls-crl-expired"),
    "the root's list is old": (lambda p, leaf: [
        crl(p.root, days=(-9, -2)), crl(p.intermediate)], "tls-crl-expired"),
    "a list of the future": (lambda p, leaf: [
        crl(p.root), crl(p.intermediate, days=(2, 9))], "tls-crl-invalid"),
    "signed by another key": (lambda p, leaf: [
        crl(p.root), crl(p.intermediate, signer=p.rogue_root)], "tls-crl-invalid"),
    "of another authority of the same name": (lambda p, leaf: [
        crl(p.root), crl(twin(p, p.intermediate))], "tls-crl-missing"),
    "old and revoking": (lambda p, leaf: [
        crl(p.root), crl(p.intermediate, leaf, days=(-9, -2))], "tls-crl-expired"),
    "only for authorities": (lambda p, leaf: [
        crl(p.root), crl(p.intermediate, extensions=[(x509.IssuingDistributionPoint(
            None, None, False, True, None, False, False), True)])], "tls-crl-missing"),
    "an unknown critical extension": (lambda p, leaf: [
        crl(p.root), crl(p.intermediate, extensions=[(x509.UnrecognizedExtension(
            x509.ObjectIdentifier("1.2.3.4.5"), b"\x05\x00"), True)])], "tls-crl-invalid"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_chain_is_held_to_the_lists(workspace, pki, lists, name):
    make, reason = CASES[name]
    leaf = pki.intermediate.issue(HOST)
    file = lists.hold("all", *make(pki, leaf))
    answer = trust_result(workspace, configuration(pki, [file]), leaf)
    assert answer["reason"] == reason, answer
    assert answer["verdict"] == ("pass" if reason == "trusted" else "fail")


def test_lists_may_be_der_in_files_of_their_own(workspace, pki, lists):
    leaf = pki.intermediate.issue(HOST)
    files = [lists.hold("root", crl(pki.root), encoding=DER),
             lists.hold("leaf", crl(pki.intermediate, leaf), encoding=DER)]
    config = configuration(pki, files)
    assert trust_result(workspace, config, leaf)["reason"] == "tls-certificate-revoked"
    other = pki.intermediate.issue(HOST)
    assert trust_result(workspace, config, other)["reason"] == "trusted"


def test_the_verdict_is_that_of_the_day_that_is_asked_for(workspace, pki, lists):
    leaf = pki.intermediate.issue(HOST)
    config = configuration(pki, [lists.hold("all", crl(pki.root), crl(pki.intermediate))])
    later = (datetime.now(timezone.utc) + timedelta(days=8)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert trust_result(workspace, config, leaf, "--at", later)["reason"] == "tls-crl-expired"
    # And the verdict of today ends with the lists, before the certificates do.
    end = datetime.now(timezone.utc) + timedelta(days=7)
    assert end.strftime("%Y-%m-%d") in trust_result(workspace, config, leaf)["detail"]


def test_the_verdict_ends_with_the_list_that_fits(workspace, pki, lists):
    """A list of another authority of the same name is valid for longer."""
    leaf = pki.intermediate.issue(HOST)
    config = configuration(pki, [lists.hold(
        "all", crl(pki.root, days=(-1, 20)), crl(pki.intermediate, days=(-1, 3)),
        crl(twin(pki, pki.intermediate), days=(-1, 9)),
        crl(pki.intermediate, days=(-9, -2), number=0))])
    answer = trust_result(workspace, config, leaf)
    end = datetime.now(timezone.utc) + timedelta(days=3)
    assert answer["reason"] == "trusted" and end.strftime("%Y-%m-%d") in answer["detail"], answer


def test_a_revoked_way_gives_way_to_another(workspace, pki, lists):
    """A cross-signed authority: one of its two certificates is revoked."""
    authority = pki.root.intermediate("Crossed")
    leaf = authority.issue(HOST, append=[authority.cross_signed(pki.other_root)])
    file = lists.hold("all", crl(pki.root, authority), crl(authority), crl(pki.other_root))
    config = configuration(pki, [file])
    assert trust_result(workspace, config, leaf)["reason"] == "tls-certificate-revoked"
    config["hosts"][0]["tls"]["roots"].append(str(pki.other_root.pem_file))
    assert trust_result(workspace, config, leaf)["reason"] == "trusted"


@pytest.mark.parametrize("way", WAYS)
def test_a_revoked_server_is_refused_on_every_way(gateway, pki, lists, origin, way):
    good, bad = pki.intermediate.issue(HOST), pki.intermediate.issue(HOST)
    file = lists.hold("all", crl(pki.root), crl(pki.intermediate, bad))
    for leaf, status in ((good, 200), (bad, 502)):
        there = served(origin, leaf)
        config = configuration(pki, [file])
        running = gateway(prepare(config, pki, way, HOST, there.port))
        answer = ask_by(way, running, HOST, there.port)
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
                              for line in running.access_lines()), "the reason is logged")
            assert there.application_bytes == b""


@pytest.mark.slow
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
    lists.hold("all", crl(pki.root), crl(pki.intermediate, days=(0, 9), number=2))
    running.wait_log("files are now in effect")
    assert running.ask(request(url)).status == 200
    assert len(there.requests) == 1
    # A broken one leaves the one before in force.
    (lists.folder / "all.crl").write_text("hello")
    running.wait_log("cannot be used; the old content stays in use")
    assert running.ask(request(url)).status == 200
    # One that revokes the server: neither its connection nor what is stored is used.
    lists.hold("all", crl(pki.root), crl(pki.intermediate, leaf, number=3))
    until(lambda: running.log().count("files are now in effect") == 2, running.log)
    answer = running.ask(request(url))
    assert (answer.status, token(answer)) == (502, "tls-certificate-revoked")
    assert len(there.requests) == 1


@pytest.mark.parametrize("older", [
    {"number": 1}, {"number": 2, "days": (-3, 7)}, {"number": None, "days": (-3, 7)},
    {"number": 2, "days": (-3, 7), "keyed": False}])
def test_an_older_list_does_not_take_the_place_of_a_newer_one(
        gateway, pki, lists, origin, older):
    leaf = pki.intermediate.issue(HOST)
    there = served(origin, leaf)
    root, other = crl(pki.root), crl(pki.other_root)
    newer = None if older["number"] is None else 2
    file = lists.hold("all", root, crl(pki.intermediate, leaf, number=newer))
    running = gateway(configuration(pki, [file]))

    def ask():
        answer = running.ask(request(f"http://{HOST}:{there.port}/"))
        return answer.status

    assert ask() == 502
    lists.hold("all", other, root, crl(pki.intermediate, **older))
    line = running.wait_log("older list")
    assert "hosts[0].tls.crls[0]" in line and pki.intermediate.name.split("-")[1] in line
    # What else the file has is taken up.
    running.wait_log("files are now in effect")
    assert ask() == 502
    lists.hold("all", root, crl(pki.intermediate, number=newer and 3, days=(-1, 9)))
    until(lambda: running.log().count("files are now in effect") == 2, running.log)
    assert ask() == 200
    assert running.log().count("older list") == 1


@pytest.mark.slow
def test_a_broken_file_does_not_keep_others_from_being_taken_up(gateway, pki, lists, origin):
    leaf = pki.intermediate.issue(HOST)
    there = served(origin, leaf)
    broken = lists.hold("broken", crl(pki.root))
    good = lists.hold("good", crl(pki.intermediate))
    config = configuration(pki, [broken, good])
    running = gateway(config)
    url = f"http://{HOST}:{there.port}/"
    assert running.ask(request(url)).status == 200
    (lists.folder / "broken.crl").write_text("hello")
    running.wait_log("cannot be used; the old content stays in use")
    lists.hold("good", crl(pki.intermediate, leaf, number=2))
    running.wait_log("files are now in effect")
    answer = running.ask(request(url))
    assert (answer.status, token(answer)) == (502, "tls-certificate-revoked")
    assert running.metric("pinfold_config_last_reload_successful") == 0
    # It is logged once, whatever becomes of the other one.
    assert running.log().count("cannot be used; the old content stays in use") == 1
    lists.hold("broken", crl(pki.root))
    until(lambda: running.metric("pinfold_config_last_reload_successful") == 1, running.log)
    running.wait_log("can be used again")


def file_state(running, file):
    """The state that metrics tell of a watched file."""
    mark = f'pinfold_config_file_state{{file="{file}",state="'
    (state,) = [name.removeprefix(mark).removesuffix('"}')
                for name, value in running.metrics().items() if name.startswith(mark) and value]
    return state


@pytest.mark.slow
def test_metrics_show_what_is_in_force_of_each_file(gateway, pki, lists):
    other, file = lists.hold("other", crl(pki.root)), lists.hold("file", crl(pki.other_root))
    running = gateway(configuration(pki, [other, file]))

    def refusals():
        return running.metric("pinfold_config_file_refusals_total")

    def becomes(state):
        until(lambda: file_state(running, file) == state, running.log)
        assert file_state(running, other) == "current"

    becomes("current")
    assert refusals() == 0
    (lists.folder / "file.crl").write_text("hello")
    becomes("unusable")
    (lists.folder / "file.crl").unlink()
    until(lambda: refusals() == 2, running.log)
    becomes("unusable")
    lists.hold("file", crl(pki.other_root, number=2))
    becomes("current")
    lists.hold("file", crl(pki.other_root, number=1))
    becomes("outdated")
    lists.hold("file", crl(pki.other_root, number=3))
    becomes("current")
    assert refusals() == 2


def test_check_and_the_log_report_a_file_alike(gateway, workspace, pki, lists):
    file = lists.hold("all", crl(pki.root))
    config = configuration(pki, [file])
    running = gateway(config)
    for number, spoil in enumerate([lambda: (lists.folder / "all.crl").write_text("hello"),
                                    lambda: (lists.folder / "all.crl").unlink()]):
        spoil()
        until(lambda: running.log().count("cannot be used; the old content stays in use") == number + 1,
              running.log)
        (error,) = check(workspace, config).stderr.splitlines()
        message = error.split(": ", 2)[2]
        assert message.startswith("hosts[0].tls.crls[0]: ") and "; expected " in message
        assert message.replace('"', '\\"') in running.log(), (message, running.log())


@pytest.mark.slow
def test_files_that_are_well_do_not_hide_a_reload_that_failed(gateway, pki, lists):
    file = lists.hold("all", crl(pki.root))
    running = gateway(configuration(pki, [file]))

    def is_well():
        return running.metric("pinfold_config_last_reload_successful")

    assert is_well() == 1
    running.write_config({**running.config, "limits": {"feilds": 3}})
    running.signal(signal.SIGHUP)
    until(lambda: is_well() == 0, "the reload fails")
    lists.hold("all", crl(pki.root, number=2))
    running.wait_log("files are now in effect")
    assert is_well() == 0
    (lists.folder / "all.crl").write_text("hello")
    running.wait_log("cannot be used; the old content stays in use")
    lists.hold("all", crl(pki.root, number=3))
    until(lambda: running.log().count("files are now in effect") == 2, running.log)
    assert is_well() == 0
    running.write_config(running.config)
    running.signal(signal.SIGHUP)
    until(lambda: is_well() == 1, "the reload succeeds")


def unreadable_end(made):
    """The list with a month 99 in nextUpdate."""
    bare = made.public_bytes(DER)
    end = made.next_update_utc.strftime("%y%m%d%H%M%SZ").encode()
    assert bare.count(end) == 1
    return bare.replace(end, end[:2] + b"99" + end[4:])


def unreadable(identifier):
    """An extension whose value is a string, which none of those that lists have is."""
    return x509.UnrecognizedExtension(x509.ObjectIdentifier(identifier), b"\x0c\x01a")


WRONG = {
    "text": (lambda pki: b"hello", "holds a list that cannot be read"),
    "empty": (lambda pki: b"", "the file is empty"),
    "a certificate": (lambda pki: pki.root.pem, "CERTIFICATE, not X509 CRL"),
    "cut": (lambda pki: crl(pki.root).public_bytes(DER)[:-1], "holds a list that cannot be read"),
    "more behind": (lambda pki: crl(pki.root).public_bytes(DER) + b"\0",
                    "holds a list that cannot be read"),
    "armour": (lambda pki: crl(pki.root).public_bytes(PEM)[:-20], "armor is damaged"),
    "an unreadable nextUpdate": (lambda pki: unreadable_end(crl(pki.root)),
                                 "holds a list that cannot be read"),
    "a delta": (lambda pki: crl(pki.root, extensions=[
        (x509.DeltaCRLIndicator(1), True)]).public_bytes(PEM), "delta CRL"),
    "a removal": (lambda pki: crl(pki.root, pki.root, entry=x509.CRLReason(
        x509.ReasonFlags.remove_from_crl)).public_bytes(DER), "delta CRL"),
    "a removal in other bytes": (lambda pki: crl(pki.root, pki.root, entry=x509.UnrecognizedExtension(
        x509.ObjectIdentifier("2.5.29.21"), b"\x0a\x81\x01\x08")).public_bytes(DER), "delta CRL"),
    "a removal and more behind": (
        lambda pki: crl(pki.root, pki.root, entry=x509.UnrecognizedExtension(
            x509.ObjectIdentifier("2.5.29.21"), b"\x0a\x01\x08\x00")).public_bytes(DER), "delta CRL"),
    "an unreadable scope": (lambda pki: crl(pki.root, extensions=[
        (unreadable("2.5.29.28"), True)]).public_bytes(DER), "holds a list that cannot be read"),
    "an unreadable number": (lambda pki: crl(pki.root, number=None, extensions=[
        (unreadable("2.5.29.20"), False)]).public_bytes(DER), "holds a list that cannot be read"),
    "an unreadable reason": (lambda pki: crl(pki.root, pki.root, entry=unreadable(
        "2.5.29.21")).public_bytes(DER), "holds a list that cannot be read"),
    "an unreadable issuer": (lambda pki: crl(pki.root, pki.root, entry=unreadable(
        "2.5.29.29")).public_bytes(DER), "holds a list that cannot be read"),
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
    assert "will be out of date in" in warned(crl(pki.root, days=(-99, 1)))
    assert "not among the roots" in warned(crl(pki.other_root))
    assert "not signed by the root" in warned(crl(pki.root, signer=pki.rogue_root))
    missing = check(workspace, configuration(pki, [str(workspace / "none.crl")]))
    assert missing.returncode == 1 and "cannot be read" in missing.stderr
