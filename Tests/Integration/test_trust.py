"""`pinfold trust`: verdicts without a connection, and that they are those of live connections."""

from __future__ import annotations

import itertools
import json
import ssl
import subprocess
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives import serialization
from support.chains import (AUTHORITY_KEY, PEM, SAN, USAGE, ask, authority, authority_key, key, pem,
                            server, usage)
from support.gateway import BINARY, run_pinfold
from support.origin import reply
from support.wire import request

MODES = ["none", "publicKey", "certificate"]
SITUATIONS = ["valid", "wrong-host", "expired", "self-signed", "untrusted"]
PINNED = ["leaf", "intermediate", "root", "other", "none"]


class Row(NamedTuple):
    mode: str
    allow: bool
    validates: bool
    situation: str
    pinned: str

    @property
    def label(self) -> str:
        return (f"{self.mode}-{'invalid' if self.allow else 'valid'}-"
                f"{'name' if self.validates else 'noname'}-{self.situation}-{self.pinned}")

    @property
    def host(self) -> str:
        return f"{self.label.lower()}.{self.situation}.af.test"


ROWS = [Row(*one) for one in itertools.product(
    MODES, [False, True], [True, False], SITUATIONS, PINNED)]


def expected(row: Row) -> str:
    """AFSecurityPolicy's verdict, step by step."""
    mode, allow, validates, situation, pinned = row
    # What would be proved?
    if allow and validates and (mode == "none" or pinned == "none"):
        return "tls-invalid-policy"
    # The chain under the trust anchors, the name part of it.
    problem = {"valid": None, "wrong-host": "tls-host-mismatch" if validates else None,
               "expired": "tls-certificate-expired", "self-signed": "tls-self-signed",
               "untrusted": "tls-untrusted-root"}[situation]
    if problem and not allow:
        return problem
    if mode == "none":
        return "trusted"
    if pinned == "none":
        return "tls-pinset-without-pins"
    # A server that signed itself has neither intermediate nor root.
    isOnChain = pinned == "leaf" or (pinned != "other" and situation != "self-signed")
    if mode == "publicKey":
        # Without a verified chain there is nothing but the key that the handshake proves.
        return "trusted" if isOnChain and (pinned == "leaf" or not allow) else "tls-no-pin-matches"
    if not isOnChain:
        return "tls-no-pin-matches"
    # The chain once more, the pins its only anchors.
    return problem if problem in ("tls-host-mismatch", "tls-certificate-expired") else "trusted"


class Server(NamedTuple):
    certificate: object
    sent: list
    # leaf, intermediate, root and another's.
    pins: dict


@pytest.fixture(scope="module")
def servers(pki) -> dict[str, Server]:
    rogue = pki.rogue_root.intermediate("Rogue intermediate")
    made = {
        "valid": pki.intermediate.issue("*.valid.af.test"),
        "wrong-host": pki.intermediate.issue("another.af.test"),
        "expired": pki.intermediate.issue("*.expired.af.test", days=(-2, -1)),
        "self-signed": pki.self_signed("*.self-signed.af.test"),
        "untrusted": rogue.issue("*.untrusted.af.test", append=[pki.rogue_root.certificate]),
    }
    other = pki.other_root.issue("other.test")
    result = {}
    for situation, leaf in made.items():
        above = (rogue, pki.rogue_root) if situation == "untrusted" else (pki.intermediate, pki.root)
        result[situation] = Server(
            leaf, [leaf.certificate, *leaf.chain],
            {"leaf": leaf, "intermediate": above[0], "root": above[1], "other": other})
    return result


def pins(row: Row, server: Server) -> list[str]:
    """Whole certificates, as AFNetworking has them."""
    return [] if row.pinned == "none" else [server.pins[row.pinned].pem.decode()]


@pytest.fixture(scope="module")
def verdicts(pki, servers) -> dict[Row, dict]:
    questions = [{
        "id": row.label, "chain": pem(*servers[row.situation].sent), "roots": pki.root.pem.decode(),
        "host": row.host, "mode": row.mode, "pins": pins(row, servers[row.situation]),
        "allowInvalidCertificates": row.allow, "validatesDomainName": row.validates,
    } for row in ROWS]
    answers = ask(questions)
    assert [one["id"] for one in answers] == [row.label for row in ROWS]
    return dict(zip(ROWS, answers))


@pytest.mark.parametrize("row", ROWS, ids=[row.label for row in ROWS])
def test_a_verdict_is_that_of_AFSecurityPolicy(verdicts, row):
    answer = verdicts[row]
    assert answer["reason"] == expected(row), answer
    assert answer["verdict"] == ("pass" if expected(row) == "trusted" else "fail")


def entry(row: Row, server: Server) -> dict:
    files = [] if row.pinned == "none" else [str(server.pins[row.pinned].pem_file)]
    return {"mode": row.mode, "pins": files, "allowInvalidCertificates": row.allow,
            "validatesDomainName": row.validates}


def is_refused_by_the_configuration(row: Row) -> bool:
    return (row.mode != "none" and row.pinned == "none") or (
        row.mode == "none" and row.allow and row.validates)


def test_a_live_connection_has_the_same_verdict(verdicts, servers, pki, gateway, origin):
    """One gateway, and for each row a host of its own with a pinset of its own. A pinset that no
    server can pass is an error of the configuration."""
    origins = {
        situation: origin(lambda _: reply(b"", "200 OK", "Cache-Control: no-store"),
                          tls=server.certificate.server_context())
        for situation, server in servers.items()}
    live = [row for row in ROWS if not is_refused_by_the_configuration(row)]
    config = {
        "tls": {"roots": [str(pki.root.pem_file)]}, "workers": 1,
        "pinsets": {row.label: entry(row, servers[row.situation]) for row in live},
        "hosts": [{"match": [row.host], "upgrade": "https", "pinsets": [row.label]}
                  for row in live],
    }
    running = gateway(config)
    found = {}
    for row in live:
        port = origins[row.situation].port
        response = running.ask(request(
            f"http://{row.host}:{port}/", host=f"{row.host}:{port}", Accept="application/json",
            Connection="close"))
        found[row] = ("trusted" if response.status == 200
                      else json.loads(response.body)["reason"])
    assert found == {row: verdicts[row]["reason"] for row in live}
    assert len(live) == len(ROWS) - 65


def test_a_pinset_that_no_server_can_pass_is_an_error_of_the_configuration(
        workspace, servers):
    rows = [row for row in ROWS if is_refused_by_the_configuration(row)]
    config = workspace / "refused.yaml"
    config.write_text(json.dumps({
        "pinsets": {row.label: entry(row, servers[row.situation]) for row in rows}}))
    done = run_pinfold("check", "--config", str(config))
    assert done.returncode == 1
    for row in rows:
        assert f"pinsets.{row.label}." in done.stderr


class TestProfiles:
    """What an authority of one's own made with openssl's plain commands: a server's certificate
    with a SAN and nothing else."""

    @pytest.fixture
    def plain(self, workspace):
        root = authority("Own CA", key("p256", "own ca"))
        root.put(USAGE, usage(0x04), True).put(AUTHORITY_KEY, authority_key(root.key))
        leaf = server(key("p256", "plain"), root.key, "plain.test", "127.0.0.1", common="plain.test")
        leaf.extensions = {SAN: leaf.extensions[SAN]}
        files = {"leaf.pem": pem(leaf.made(root)), "root.pem": pem(root.made(None)),
                 "leaf.key": leaf.key.private_bytes(
                     PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()}
        for name, text in files.items():
            (workspace / name).write_text(text)
            (workspace / name).chmod(0o600)
        return workspace

    @pytest.mark.parametrize("default", [None, "lenient", "strict", "pedantic"])
    @pytest.mark.parametrize("own", [None, "lenient", "strict"])
    def test_what_private_authorities_leave_out_is_asked_for_where_it_is_written_down(
            self, plain, gateway, origin, default, own):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(plain / "leaf.pem", plain / "leaf.key")
        there = origin(lambda _: reply(b"there", "200 OK"), tls=context)
        tls = {"roots": [str(plain / "root.pem")], **({"profile": default} if default else {})}
        entry = {"match": ["plain.test"], "upgrade": "https"}
        if own:
            entry["tls"] = {"profile": own}
        running = gateway({"tls": tls, "hosts": [entry], "workers": 1})
        response = running.ask(request(
            f"http://plain.test:{there.port}/", host=f"plain.test:{there.port}",
            Accept="application/json", Connection="close"))
        done = trust("--config", running.config_file, "--chain", plain / "leaf.pem",
                     "--host", "plain.test")
        if (own or default) in (None, "lenient"):
            assert (response.status, response.body) == (200, b"there")
            assert done.returncode == 0, done.stdout
        else:
            assert response.status == 502
            assert json.loads(response.body)["reason"] == "tls-purpose-missing"
            assert "extendedKeyUsage" in json.loads(response.body)["message"]
            assert there.application_bytes == b""
            assert done.stdout.startswith("fail: tls-purpose-missing: ")

    def test_a_broken_rule_that_is_not_of_presence_is_refused_by_default(
            self, plain, gateway, origin, workspace):
        root = authority("Own CA", key("p256", "own ca"))
        leaf = server(key("p256", "plain"), root.key, "plain.test", common="other.test")
        (workspace / "leaf.pem").write_text(pem(leaf.made(root)))
        (workspace / "root.pem").write_text(pem(root.made(None)))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(workspace / "leaf.pem", workspace / "leaf.key")
        there = origin(lambda _: reply(b"there", "200 OK"), tls=context)
        running = gateway({"tls": {"roots": [str(workspace / "root.pem")]}, "workers": 1, "hosts": [
            {"match": ["plain.test"], "upgrade": "https"}]})
        response = running.ask(request(
            f"http://plain.test:{there.port}/", host=f"plain.test:{there.port}",
            Accept="application/json", Connection="close"))
        assert json.loads(response.body)["reason"] == "tls-common-name-not-in-san"
        running.wait_log("tls-common-name-not-in-san")


# The command.


def trust(*arguments: object) -> subprocess.CompletedProcess:
    return subprocess.run([BINARY, "trust", *map(str, arguments)], capture_output=True, text=True,
                          timeout=20)


def later(days: int) -> str:
    return (datetime.now(timezone.utc) + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture
def leaf(pki):
    return pki.intermediate.issue("trust.test", "*.wild.trust.test", "127.0.0.1", "::1")


@pytest.mark.parametrize("host, reason", [
    ("trust.test", None), ("TRUST.test.", None), ("a.wild.trust.test", None), ("127.0.0.1", None),
    ("::1", None), ("[::1]", None), ("0:0:0::1", None), ("other.test", "tls-host-mismatch"),
    ("a.b.wild.trust.test", "tls-host-mismatch"), ("wild.trust.test", "tls-host-mismatch"),
    ("127.0.0.2", "tls-host-mismatch"), ("127.1", "tls-host-mismatch"), ("", "tls-host-mismatch"),
    ("trust.test\0.evil.test", "tls-host-mismatch"),
])
def test_a_name_is_matched_as_in_a_connection(pki, leaf, host, reason):
    question = {"chain": leaf.chain_file().read_text(), "roots": pki.root.pem.decode(), "host": host}
    (answer,) = ask([question])
    assert (answer["verdict"], answer["reason"]) == (
        ("fail", reason) if reason else ("pass", "trusted")), answer


def test_pass_and_fail_are_shown_by_words_and_by_the_exit_code(pki, leaf):
    common = ("--chain", leaf.chain_file(), "--roots", pki.root.pem_file)
    passed = trust(*common, "--host", "trust.test")
    assert (passed.returncode, passed.stderr) == (0, "")
    assert passed.stdout.startswith("pass: trusted: trusted until 20")
    failed = trust(*common, "--host", "other.test")
    assert (failed.returncode, failed.stderr) == (1, "")
    assert failed.stdout == (
        "fail: tls-host-mismatch: the certificate is for trust.test, *.wild.trust.test, 127.0.0.1,"
        " 0:0:0:0:0:0:0:1, not for other.test\n")
    printed = json.loads(trust(*common, "--host", "other.test", "--json").stdout)
    assert printed["verdict"] == "fail" and printed["reason"] == "tls-host-mismatch"
    assert trust(*common, "--no-domain").returncode == 0


def test_certificates_come_from_pem_and_der_and_in_parts(pki, leaf):
    apart = ("--chain", leaf.der_file, "--intermediates", pki.intermediate.pem_file,
             "--roots", pki.root.der_file, "--host", "trust.test")
    assert trust(*apart).returncode == 0
    without = trust("--chain", leaf.der_file, "--roots", pki.root.der_file, "--host", "trust.test")
    assert without.stdout.startswith("fail: tls-incomplete-chain: ")
    system = trust("--chain", leaf.chain_file(), "--host", "trust.test")
    assert system.stdout.startswith("fail: tls-incomplete-chain: ")


def test_pins_decide_and_a_pin_alone_is_of_the_key(pki, leaf):
    common = ("--chain", leaf.chain_file(), "--roots", pki.root.pem_file, "--host", "trust.test")
    other = pki.intermediate.issue("trust.test")
    for pin in (leaf.pin, leaf.pem_file, pki.root.pin, leaf.fingerprint):
        assert trust(*common, "--pin", pin).returncode == 0
    assert trust(*common, "--pin", other.pin, "--pin", leaf.pin).returncode == 0
    wrong = trust(*common, "--pin", other.pin)
    assert wrong.returncode == 1 and wrong.stdout.startswith("fail: tls-no-pin-matches: ")
    assert leaf.spki_sha256 in wrong.stdout
    assert trust(*common, "--mode", "none", "--pin", other.pin).returncode == 0
    assert trust(*common, "--mode", "certificate", "--pin", leaf.pem_file).returncode == 0
    assert trust(*common, "--mode", "certificate", "--pin", other.pem_file).returncode == 1


def test_it_shows_whether_the_new_certificate_passes_on_the_day(pki):
    new = pki.intermediate.issue("trust.test", days=(10, 20))
    common = ("--chain", new.chain_file(), "--roots", pki.root.pem_file, "--host", "trust.test")
    assert trust(*common).stdout.startswith("fail: tls-certificate-not-yet-valid: ")
    assert trust(*common, "--at", later(15)).returncode == 0
    assert trust(*common, "--at", later(21)).stdout.startswith("fail: tls-certificate-expired: ")


def test_a_configuration_brings_anchors_profile_and_pinsets(workspace, pki, leaf):
    other = pki.intermediate.issue("trust.test")
    config = workspace / "gateway.yaml"
    config.write_text(json.dumps({
        "tls": {"roots": [str(pki.root.pem_file)]},
        "hosts": [{"match": ["trust.test"], "pinsets": ["right"]},
                  {"match": ["*.wild.trust.test"], "pinsets": ["wrong"]}],
        "pinsets": {"right": {"mode": "publicKey", "pins": [leaf.pin]},
                    "wrong": {"mode": "publicKey", "pins": [other.pin]}}}))
    common = ("--config", config, "--chain", leaf.chain_file())
    assert trust(*common, "--host", "trust.test").returncode == 0
    assert trust(*common, "--host", "Trust.test.").returncode == 0
    assert trust(*common, "--host", "127.0.0.1").returncode == 0
    refused = trust(*common, "--host", "a.wild.trust.test")
    assert refused.returncode == 1
    assert refused.stdout.startswith("fail: tls-no-pin-matches: pinset wrong: ")
    assert trust(*common, "--host", "a.wild.trust.test", "--pinset", "right").returncode == 0
    unknown = trust(*common, "--host", "trust.test", "--pinset", "rihgt")
    assert unknown.returncode == 2
    assert unknown.stderr == (
        "Error: there is no pinset rihgt; expected one of right, wrong\n")


def test_entries_of_a_configuration_may_name_the_port(workspace, pki, leaf):
    other = pki.intermediate.issue("trust.test")
    config = workspace / "ports.yaml"
    config.write_text(json.dumps({
        "tls": {"roots": [str(pki.root.pem_file)]},
        "hosts": [{"match": ["trust.test:8443"], "pinsets": ["other"]},
                  {"match": ["trust.test:9443"]},
                  {"match": ["trust.test"], "pinsets": ["right"]}],
        "pinsets": {"right": {"mode": "publicKey", "pins": [leaf.pin]},
                    "other": {"mode": "publicKey", "pins": [other.pin]}}}))
    common = ("--config", config, "--chain", leaf.chain_file(), "--host", "trust.test")
    assert trust(*common).returncode == 0
    assert trust(*common, "--port", "443").returncode == 0
    refused = trust(*common, "--port", "8443")
    assert refused.returncode == 1
    assert refused.stdout.startswith("fail: tls-no-pin-matches: pinset other: ")
    # The words of the 403 page: the entry that applies goes around the pins.
    around = trust(*common, "--port", "9443")
    assert around.returncode == 1
    assert around.stdout.startswith(
        "fail: pinned-port-refused: this host has pinsets, but not in the entry")
    assert trust(*common, "--port", "9443", "--pinset", "right").returncode == 0


@pytest.mark.parametrize("arguments, words", [
    (("--chain", "/nowhere/at.all", "--host", "a"), '"/nowhere/at.all" cannot be read'),
    (("--chain", "{leaf}", "--host", "a", "--roots", "{key}"), "holds a private key"),
    (("--chain", "{key}", "--host", "a"), "holds a private key"),
    (("--chain", "{leaf}", "--host", "a", "--pin", "sha1/AAAA"), "only SHA-256"),
    (("--chain", "{leaf}", "--host", "a", "--at", "soon"), "expected RFC 3339 format"),
    (("--chain", "{leaf}", "--host", "a", "--config", "/nowhere/at.all"), "cannot be read"),
])
def test_what_cannot_be_answered_is_an_error_of_its_own(leaf, arguments, words):
    places = {"{leaf}": leaf.pem_file, "{key}": leaf.key_file}
    done = trust(*(places.get(one, one) for one in arguments))
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments, words", [
    (("--host", "a"), "--chain is missing"), (("--chain", "x"), "--host is missing"),
    (("--batch", "--host", "a"), "--batch reads all settings from standard input"),
    (("--chain", "x", "--host", "a", "--pinset", "p"), "--pinset needs --config"),
    (("--chain", "x", "--host", "a", "--port", "1"), "--port needs --config"),
    (("--chain", "x", "--host", "a", "--config", "c", "--port", "0"), "--port is 0"),
    (("--batch", "--port", "1"), "--batch reads all settings from standard input"),
    (("--chain", "x", "--host", "a", "--config", "c", "--pin", "p"),
     "--config supplies the pinsets"),
    (("--chain", "x", "--host", "a", "--mode", "some"), "mode"),
])
def test_options_that_do_not_fit_are_refused(arguments, words):
    done = trust(*arguments)
    assert done.returncode == 64
    assert words in done.stderr


def test_a_server_without_certificates_or_with_bytes_in_their_place_fails(pki, workspace):
    junk = workspace / "junk.der"
    junk.write_bytes(b"\x30\x03abc")
    done = trust("--chain", junk, "--roots", pki.root.pem_file, "--host", "a")
    assert done.returncode == 1
    assert done.stdout.startswith("fail: tls-malformed-certificate: certificate 1 of the chain")
    armored = "-----BEGIN CERTIFICATE-----\nMAMCAQE=\n-----END CERTIFICATE-----\n"
    absent, malformed = ask([{"chain": [], "roots": []}, {"chain": armored, "roots": []}])
    assert absent["reason"] == "tls-no-certificate"
    assert malformed["reason"] == "tls-malformed-certificate"


def test_a_line_that_is_no_question_does_not_end_the_batch(pki, leaf):
    good = {"id": 1, "chain": str(leaf.chain_file()), "roots": str(pki.root.pem_file),
            "host": "trust.test"}
    answers = ask([good, "no question", {"id": "x", "chian": []}, {**good, "id": 2}], code=2)
    assert [one["verdict"] for one in answers] == ["pass", "error", "error", "pass"]
    assert [one["id"] for one in answers] == [1, None, "x", 2]
    assert answers[1]["reason"] == "bad-question" and "line 2: not JSON" in answers[1]["detail"]
    assert 'unknown member "chian"' in answers[2]["detail"]


def test_absent_and_null_members_are_at_their_defaults(pki, leaf):
    plain = {"chain": leaf.chain_file().read_text(), "roots": [pki.root.pem.decode(), "system"]}
    empty = dict.fromkeys(["id", "intermediates", "host", "mode", "pins", "at", "profile",
                           "allowInvalidCertificates", "validatesDomainName"])
    other = pki.intermediate.issue("trust.test")
    first, second, pinned = ask([plain, {**plain, **empty}, {**plain, "pins": [other.pin]}])
    assert first["verdict"] == second["verdict"] == "pass"
    assert pinned["reason"] == "tls-no-pin-matches"
