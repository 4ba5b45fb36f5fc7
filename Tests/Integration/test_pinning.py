"""The TLS of origins: verified, pinned, and nothing sent to the wrong one.

Each failure is shown for every way by which a clear-text request becomes TLS: a host with
`upgrade: https`, an absolute-form `https://` target, a reverse listener with an https upstream; and
for requests in an intercepted tunnel.
"""

from __future__ import annotations

import re
import signal
import socket
import ssl

import pytest
from support.gateway import Gateway
from support.interception import InterceptionAuthority, ask_inside
from support.origin import HTTPOrigin, reply
from support.pki import Certificate
from support.secure_ways import WAYS
from support.wait import until
from support.wire import Response, request

HOST = "api.pinned.test"
# Where one gateway is asked in clear text and through a tunnel.
BOTH = ["interception", "upgrade"]
EMPTY_PIN = "sha256/" + "A" * 43 + "="


def configuration(
    way: str, port: int, entry: dict, pinset: dict | None,
    authority: InterceptionAuthority | None = None
) -> dict:
    """One host with `entry` and, if given, one pinset; intercepted, if there is an authority."""
    host = {"match": [HOST], **entry}
    if way == "upgrade":
        host["upgrade"] = "https"
    config: dict = {"hosts": [host], "workers": 1}
    if pinset is not None:
        host["pinsets"] = ["wanted"]
        config["pinsets"] = {"wanted": pinset}
    listeners = [{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"}]
    if way == "reverse":
        listeners.append({"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
                          "upstream": f"https://{HOST}:{port}"})
    config["listeners"] = listeners
    if authority is not None:
        host["intercept"] = True
        config["interception"] = authority.section
    return config


def ask(running: Gateway, way: str, port: int, path: str = "/", **fields: str) -> Response:
    """A request with a body that must not leak. The answer may be that to CONNECT."""
    target = {"upgrade": f"http://{HOST}:{port}{path}",
              "https target": f"https://{HOST}:{port}{path}"}.get(way, path)
    listener = "back" if way == "reverse" else "proxy"
    data = request(target, host=f"{HOST}:{port}", method="POST", body=b"SECRET BODY",
                   Authorization="SECRET FIELD", Accept="application/json", Connection="close",
                   **fields)
    if way == "interception":
        return ask_inside(running, HOST, port, data)
    return running.ask(data, listener)


def serve(origin, certificate: Certificate, **options) -> HTTPOrigin:
    return origin(lambda seen: reply(b"genuine:" + seen.body, "200 OK", "Cache-Control: no-store"),
                  tls=certificate.server_context(**options))


def check_failure(running: Gateway, there: HTTPOrigin, way: str, *words: str) -> Response:
    """502 with a reason that has one of `words`; nothing of the request reached the origin."""
    response = ask(running, way, there.port)
    assert response.status == 502, response
    assert response.proxy_status["error"].startswith("tls_"), response.get("proxy-status")
    text = (response.body.decode() + response.get("proxy-status")).lower()
    assert any(word in text for word in words), f"none of {words} in {text}"
    until(lambda: there.accepted == len(there.handshake_failures)
          + sum(one.finished.is_set() for one in there.connections), "the origin is closed on")
    assert there.application_bytes == b"", "nothing is sent to an origin that is not trusted"
    assert there.requests == []
    return response


@pytest.mark.parametrize("way", WAYS)
class TestFailures:
    """The list of the first capability, each with its reason."""

    @staticmethod
    def run(gateway, origin, pki, way, certificate, *words, pins=None, roots=None, **pinset):
        there = serve(origin, certificate)
        entry = {"tls": {"roots": [str(r.pem_file) for r in (roots or [pki.root])]}}
        chosen = None
        if pins is not None:
            chosen = {"mode": "publicKey", "pins": pins, **pinset}
        authority = pki.interception if way == "interception" else None
        running = gateway(configuration(way, there.port, entry, chosen, authority))
        if not words:
            response = ask(running, way, there.port)
            assert response.status == 200, response
            assert response.body == b"genuine:SECRET BODY"
            assert there.requests[0].get("host") == f"{HOST}:{there.port}"
            assert there.tls.names == [HOST]
            return response, running, there
        return check_failure(running, there, way, *words), running, there

    def test_the_right_pin_passes(self, gateway, origin, pki, way):
        leaf = pki.intermediate.issue(HOST)
        self.run(gateway, origin, pki, way, leaf, pins=[leaf.pin])

    def test_a_wrong_pin_is_refused(self, gateway, origin, pki, way):
        leaf = pki.intermediate.issue(HOST)
        other = pki.intermediate.issue(HOST)
        response, running, _ = self.run(
            gateway, origin, pki, way, leaf, "pin", pins=[other.pin])
        text = response.body.decode()
        assert other.spki_sha256 in text, "the expected pin"
        for link in (leaf, pki.intermediate, pki.root):
            assert link.spki_sha256 in text, "the chain's pins, ready to paste"
        running.wait_log(re.escape(leaf.spki_sha256))
        assert running.metric(
            "pinfold_pin_evaluations_total", pinset="wanted", result="no_pin_matched") == 1

    def test_a_wrong_host_name_is_refused(self, gateway, origin, pki, way):
        leaf = pki.intermediate.issue("other.pinned.test")
        self.run(gateway, origin, pki, way, leaf, "name", "host", pins=[leaf.pin])

    def test_an_expired_certificate_is_refused(self, gateway, origin, pki, way):
        leaf = pki.intermediate.issue(HOST, days=(-30, -1))
        self.run(gateway, origin, pki, way, leaf, "expired", pins=[leaf.pin])

    def test_a_certificate_that_is_not_yet_valid_is_refused(self, gateway, origin, pki, way):
        leaf = pki.intermediate.issue(HOST, days=(2, 30))
        self.run(gateway, origin, pki, way, leaf, "not-yet-valid", pins=[leaf.pin])

    def test_a_self_signed_certificate_is_refused(self, gateway, origin, pki, way):
        leaf = pki.self_signed(HOST)
        self.run(gateway, origin, pki, way, leaf, "self", pins=[leaf.pin])

    def test_an_untrusted_root_is_refused(self, gateway, origin, pki, way):
        leaf = pki.rogue_root.issue(HOST, append=[pki.rogue_root.certificate])
        self.run(gateway, origin, pki, way, leaf, "root", "trust", "issuer", "self", pins=[leaf.pin])

    def test_an_incomplete_chain_is_refused(self, gateway, origin, pki, way):
        leaf = pki.intermediate.issue(HOST)
        leaf.chain.clear()
        self.run(gateway, origin, pki, way, leaf, "issuer", "chain", "incomplete", "trust",
                 pins=[leaf.pin])

    def test_a_genuine_certificate_appended_to_a_rogue_chain_does_not_help(
            self, gateway, origin, pki, way):
        genuine = pki.intermediate.issue(HOST)
        rogue = pki.rogue_root.issue(
            HOST, append=[pki.rogue_root.certificate, genuine.certificate,
                          pki.intermediate.certificate, pki.root.certificate])
        self.run(gateway, origin, pki, way, rogue, "root", "trust", "issuer", "self", "chain",
                 pins=[genuine.pin])

    def test_a_genuine_certificate_appended_to_another_chain_does_not_help(
            self, gateway, origin, pki, way):
        """The chain verifies under the roots; the pin is in the message but not in that chain."""
        genuine = pki.intermediate.issue(HOST)
        rogue = pki.other_root.issue(
            HOST, append=[genuine.certificate, pki.intermediate.certificate])
        self.run(gateway, origin, pki, way, rogue, "pin", pins=[genuine.pin],
                 roots=[pki.root, pki.other_root])

    def test_an_appended_certificate_does_not_help_where_invalid_ones_pass(
            self, gateway, origin, pki, way):
        """Without a verified chain only the leaf's key, which the handshake proved, may match."""
        genuine = pki.intermediate.issue(HOST)
        rogue = pki.rogue_root.issue(HOST, append=[genuine.certificate])
        self.run(gateway, origin, pki, way, rogue, "pin", pins=[genuine.pin],
                 allowInvalidCertificates=True)

    def test_a_certificate_for_clients_only_is_refused(self, gateway, origin, pki, way):
        from cryptography.x509.oid import ExtendedKeyUsageOID
        leaf = pki.intermediate.issue(HOST, usage=ExtendedKeyUsageOID.CLIENT_AUTH)
        self.run(gateway, origin, pki, way, leaf, "purpose", "usage", "certificate",
                 pins=[leaf.pin])

    def test_verification_does_not_depend_on_pins(self, gateway, origin, pki, way):
        """Verification does not depend on pinning."""
        leaf = pki.rogue_root.issue(HOST)
        self.run(gateway, origin, pki, way, leaf, "root", "trust", "issuer", "chain", pins=None)


# Kinds of pins


KINDS = {
    "sha256/ of the leaf": ("publicKey", lambda leaf, pki: [leaf.pin]),
    "sha256// of the leaf": ("publicKey", lambda leaf, pki: [f"sha256//{leaf.spki_sha256}"]),
    "sha256/ of the intermediate": ("publicKey", lambda leaf, pki: [pki.intermediate.pin]),
    "sha256/ of the root": ("publicKey", lambda leaf, pki: [pki.root.pin]),
    "one of several": ("publicKey", lambda leaf, pki: [EMPTY_PIN, leaf.pin]),
    "a PEM file's key": ("publicKey", lambda leaf, pki: [str(leaf.pem_file)]),
    "a DER file's key": ("publicKey", lambda leaf, pki: [str(leaf.der_file)]),
    "a certificate in PEM": ("certificate", lambda leaf, pki: [str(leaf.pem_file)]),
    "a certificate in DER": ("certificate", lambda leaf, pki: [str(leaf.der_file)]),
    "the root's certificate": ("certificate", lambda leaf, pki: [str(pki.root.pem_file)]),
    "the intermediate's certificate": (
        "certificate", lambda leaf, pki: [str(pki.intermediate.pem_file)]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("genuine", [True, False], ids=["genuine", "other"])
def test_a_pin_of_each_kind_passes_its_server_alone(gateway, origin, pki, kind, genuine):
    """Each kind accepts its server and refuses another one of the same trusted root."""
    leaf = pki.intermediate.issue(HOST)
    mode, make = KINDS[kind]
    pins = make(leaf, pki)
    there = serve(origin, leaf if genuine else pki.other_root.issue(HOST))
    running = gateway(configuration(
        "upgrade", there.port,
        {"tls": {"roots": [str(pki.root.pem_file), str(pki.other_root.pem_file)]}},
        {"mode": mode, "pins": pins}, pki.interception))
    for way in BOTH:
        if genuine:
            response = ask(running, way, there.port)
            assert response.status == 200, response
        else:
            check_failure(running, there, way, "pin", "trust", "chain", "issuer")


@pytest.mark.parametrize("upper", [False, True])
def test_a_pin_may_be_a_hexadecimal_certificate_fingerprint(gateway, origin, pki, upper):
    leaf = pki.intermediate.issue(HOST)
    print_ = leaf.fingerprint
    if upper:
        print_ = ":".join(print_[at : at + 2].upper() for at in range(0, 64, 2))
    there = serve(origin, leaf)
    running = gateway(configuration(
        "upgrade", there.port, {"tls": {"roots": [str(pki.root.pem_file)]}},
        {"mode": "certificate", "pins": [print_]}))
    assert ask(running, "upgrade", there.port).status == 200


def policy_case(gateway, origin, pki, leaf, pinset, roots=None):
    there = serve(origin, leaf)
    running = gateway(configuration(
        "upgrade", there.port,
        {"tls": {"roots": [str(one.pem_file) for one in (roots or [pki.root])]}}, pinset,
        pki.interception))
    return running, there


def passes(running: Gateway, there: HTTPOrigin) -> None:
    for way in BOTH:
        response = ask(running, way, there.port)
        assert (response.status, response.body) == (200, b"genuine:SECRET BODY"), way


def fails(running: Gateway, there: HTTPOrigin, *words: str) -> None:
    for way in BOTH:
        check_failure(running, there, way, *words)


@pytest.mark.parametrize("what", ["self-signed", "expired", "untrusted"])
def test_invalid_certificates_pass_when_allowed_and_pinned(gateway, origin, pki, what):
    leaf = {"self-signed": lambda: pki.self_signed(HOST),
            "expired": lambda: pki.intermediate.issue(HOST, days=(-30, -1)),
            "untrusted": lambda: pki.rogue_root.issue(HOST)}[what]()
    running, there = policy_case(gateway, origin, pki, leaf, {
        "mode": "publicKey", "pins": [leaf.pin], "allowInvalidCertificates": True})
    passes(running, there)


def test_another_host_name_passes_when_names_are_not_validated(gateway, origin, pki):
    leaf = pki.intermediate.issue("elsewhere.test")
    running, there = policy_case(gateway, origin, pki, leaf, {
        "mode": "publicKey", "pins": [leaf.pin], "validatesDomainName": False})
    passes(running, there)


def test_names_not_validated_still_need_a_pin_that_matches(gateway, origin, pki):
    leaf = pki.intermediate.issue("elsewhere.test")
    running, there = policy_case(gateway, origin, pki, leaf, {
        "mode": "publicKey", "pins": [EMPTY_PIN], "validatesDomainName": False})
    fails(running, there, "pin")


def test_mode_none_verifies_the_chain(gateway, origin, pki):
    leaf = pki.intermediate.issue(HOST)
    running, there = policy_case(gateway, origin, pki, leaf, {"mode": "none"})
    passes(running, there)
    rogue = pki.rogue_root.issue(HOST)
    running, there = policy_case(gateway, origin, pki, rogue, {"mode": "none"})
    fails(running, there, "trust", "issuer", "root", "chain")


@pytest.mark.parametrize(("second", "status"), [("right", 200), ("wrong", 502)])
def test_every_pinset_must_pass(gateway, origin, pki, second, status):
    leaf = pki.intermediate.issue(HOST)
    there = serve(origin, leaf)
    running = gateway({
        "hosts": [{"match": [HOST], "upgrade": "https", "pinsets": ["one", "two"],
                   "tls": {"roots": [str(pki.root.pem_file)]}}],
        "pinsets": {"one": {"mode": "publicKey", "pins": [leaf.pin]},
                    "two": {"mode": "publicKey",
                            "pins": [pki.root.pin if second == "right" else EMPTY_PIN]}},
        "interception": pki.interception.section})
    for way in BOTH:
        assert ask(running, way, there.port).status == status, way
    if status == 502:
        assert there.application_bytes == b""


CROSS_SIGNED = {
    # Who is trusted, what the server sends behind its certificate, whose key is pinned.
    "the intermediate by either root": ("other", "cross", "intermediate", True),
    "the root that the server leads to": ("other", "cross", "other", True),
    "a root that is trusted and not led to": ("both", "cross", "root", False),
    "a root that is sent and not led to": ("other", "root", "root", False),
}


@pytest.mark.parametrize("case", CROSS_SIGNED)
def test_pins_are_compared_with_the_chain_that_was_verified(gateway, origin, pki, case):
    """Of an intermediate with certificates by two roots, one leads to the root that is trusted."""
    trusted, sent, pinned, right = CROSS_SIGNED[case]
    cross = pki.intermediate.cross_signed(pki.other_root)
    leaf = pki.intermediate.issue(HOST)
    leaf.chain = [cross] if sent == "cross" else [cross, pki.root.certificate]
    pin = {"intermediate": pki.intermediate, "other": pki.other_root, "root": pki.root}[pinned].pin
    running, there = policy_case(
        gateway, origin, pki, leaf, {"mode": "publicKey", "pins": [pin]},
        [pki.other_root, pki.root] if trusted == "both" else [pki.other_root])
    if right:
        passes(running, there)
    else:
        fails(running, there, "tls-no-pin-matches")


LEFT_OUT = {
    # Who is trusted, what the server sends behind its certificate, whose pin: may it pass?
    "the root above a trusted intermediate": (["intermediate", "root"], [], "root", True),
    "a trusted intermediate": (["intermediate", "root"], [], "intermediate", True),
    "a root that is not trusted": (["intermediate", "root"], [], "other", False),
    "a root across": (["root", "across", "other"], ["intermediate"], "other", True),
    "a root that nothing leads to": (["root", "other"], ["intermediate"], "other", False),
}


def left_out(
        pki, case: str, host: str = HOST) -> tuple[Certificate, list[Certificate], Certificate, bool]:
    """A leaf, what is trusted, who is pinned, and whether that may pass."""
    trusted, sent, pinned, right = LEFT_OUT[case]
    across = pki.root.crossed(pki.other_root)
    known = {"intermediate": pki.intermediate, "root": pki.root, "other": pki.other_root,
             "across": across}
    leaf = pki.intermediate.issue(host)
    leaf.chain = [known[one].certificate for one in sent]
    return leaf, [known[one] for one in trusted], known[pinned], right


@pytest.mark.parametrize("form", ["key", "fingerprint", "file"])
@pytest.mark.parametrize("case", LEFT_OUT)
def test_a_pin_holds_where_what_leads_to_it_is_trusted_and_not_sent(
        gateway, origin, pki, case, form):
    """Roots with the intermediate among them are the usual mend for servers that leave it out."""
    leaf, trusted, pinned, right = left_out(pki, case)
    pin = {"key": pinned.pin, "fingerprint": pinned.fingerprint,
           "file": str(pinned.pem_file)}[form]
    mode = "publicKey" if form == "key" else "certificate"
    running, there = policy_case(
        gateway, origin, pki, leaf, {"mode": mode, "pins": [pin]}, trusted)
    if right:
        passes(running, there)
    else:
        fails(running, there, "tls-no-pin-matches")


@pytest.mark.parametrize("first", ["root", "other"])
@pytest.mark.parametrize("pinned", ["root", "other"])
@pytest.mark.parametrize("mode", ["publicKey", "certificate"])
def test_a_pin_holds_in_whatever_order_the_intermediates_are_sent(
        gateway, origin, pki, mode, pinned, first):
    """Both roots are trusted, and the one intermediate has a certificate by each."""
    leaf = pki.intermediate.issue(HOST)
    leaf.chain = [pki.intermediate.certificate, pki.intermediate.cross_signed(pki.other_root)]
    if first == "other":
        leaf.chain.reverse()
    authority = pki.root if pinned == "root" else pki.other_root
    pin = authority.pin if mode == "publicKey" else authority.fingerprint
    running, there = policy_case(gateway, origin, pki, leaf, {"mode": mode, "pins": [pin]},
                                 [pki.root, pki.other_root])
    passes(running, there)


@pytest.mark.parametrize(("pattern", "host", "applies"), [
    ("*.pinned.test", "a.pinned.test", True), ("*.pinned.test", "b.a.pinned.test", False),
    ("*.pinned.test", "pinned.test", False), ("**.pinned.test", "b.a.pinned.test", True),
    ("**.pinned.test", "a.pinned.test", True), ("A.Pinned.Test", "a.pinned.test", True)])
def test_an_entry_applies_to_the_hosts_of_its_pattern(gateway, origin, pki, pattern, host, applies):
    leaf = pki.intermediate.issue(host)
    secure = serve(origin, leaf)
    running = gateway({"hosts": [{"match": [pattern], "upgrade": "https",
                                  "tls": {"roots": [str(pki.root.pem_file)]}}]})
    response = running.get(f"http://{host}:{secure.port}/")
    if applies:
        assert response.status == 200
    else:  # goes out in clear text, which this origin does not speak
        assert response.status == 502
        assert secure.handshakes == 0


def test_a_pattern_with_a_port_applies_to_that_port_only(gateway, origin, pki):
    leaf = pki.intermediate.issue(HOST)
    secure = serve(origin, leaf)
    plain = origin(lambda _: reply(b"plain"))
    running = gateway({"hosts": [{"match": [f"{HOST}:{secure.port}"], "upgrade": "https",
                                  "tls": {"roots": [str(pki.root.pem_file)]}}]})
    assert running.get(f"http://{HOST}:{secure.port}/").body == b"genuine:"
    assert running.get(f"http://{HOST}:{plain.port}/").body == b"plain"


@pytest.mark.parametrize("pinsets, status", [(["exempt"], 200), ([], 403)])
def test_the_first_matching_entry_applies(gateway, origin, pki, pinsets, status):
    """Which exempts a host from the pins of a later entry only in so many words."""
    leaf = pki.intermediate.issue(HOST)
    there = serve(origin, leaf)
    roots = {"roots": [str(pki.root.pem_file)]}
    running = gateway({
        "hosts": [{"match": [HOST], "upgrade": "https", "tls": roots, "pinsets": pinsets},
                  {"match": ["**.test"], "upgrade": "https", "tls": roots, "pinsets": ["no"]}],
        "pinsets": {"no": {"mode": "publicKey", "pins": [EMPTY_PIN]}, "exempt": {"mode": "none"}}})
    assert ask(running, "upgrade", there.port).status == status
    assert there.accepted == (status == 200)


def test_an_origin_by_address_is_verified_by_address(gateway, origin, pki):
    there = serve(origin, pki.root.issue("127.0.0.1"))
    running = gateway({"tls": {"roots": [str(pki.root.pem_file)]}})
    assert running.get(f"https://127.0.0.1:{there.port}/").status == 200
    assert there.tls.names == [None], "no server name for an address (RFC 6066 §3)"
    wrong = serve(origin, pki.root.issue("127.0.0.2"))
    assert running.get(f"https://127.0.0.1:{wrong.port}/").status == 502
    assert wrong.application_bytes == b""


# What goes around pins


def pinned(there, pki, leaf, **entry) -> dict:
    """The host pinned by `leaf`, at every port unless `entry` says otherwise."""
    return {
        "hosts": [{"match": [HOST], "pinsets": ["wanted"],
                   "tls": {"roots": [str(pki.root.pem_file)]}, **entry}],
        "pinsets": {"wanted": {"mode": "publicKey", "pins": [leaf.pin]}}}


CLEAR_TEXT_WAYS = {
    "as it is": {}, "in other letters": {"host": "API.Pinned.TEST"}, "with a final dot":
    {"host": f"{HOST}."}, "by a pinset of mode none": {"mode": "none"}}


@pytest.mark.parametrize("way", CLEAR_TEXT_WAYS)
def test_a_pinned_host_gets_nothing_in_clear_text(gateway, origin, pki, way):
    leaf = pki.intermediate.issue(HOST)
    there = origin(lambda _: reply(b"unjudged"))
    config = pinned(there, pki, leaf)
    options = dict(CLEAR_TEXT_WAYS[way])
    if "mode" in options:
        config["pinsets"]["wanted"] = {"mode": options.pop("mode")}
    running = gateway(config)
    host = options.get("host", HOST)
    response = running.get(f"http://{host}:{there.port}/", Accept="application/json")
    assert response.status == 403
    assert response.json()["reason"] == "clear-text-refused"
    assert "upgrade: https" in response.json()["message"], "the remedy"
    assert response.proxy_status["error"] == "http_request_denied"
    assert there.accepted == 0
    line = running.wait_access()[0]
    assert line["reason"] == "clear-text-refused"


@pytest.mark.parametrize("host", [HOST, "API.Pinned.TEST", f"{HOST}."])
def test_a_pinned_host_gets_no_tunnel(gateway, origin, pki, host):
    leaf = pki.intermediate.issue(HOST)
    there = serve(origin, leaf)
    running = gateway(pinned(there, pki, leaf, upgrade="https"))
    wire, response = running.connect(f"{host}:{there.port}")
    wire.close()
    assert response.status == 403
    assert response.reason == "tunnel-refused", "in the status line, which clients show"
    assert b"tunnel: inspect" in response.body, "the remedy"
    assert there.accepted == 0


def test_a_pinned_host_gets_what_the_file_lets_through_in_words(gateway, origin, pki):
    leaf = pki.intermediate.issue(HOST)
    plain = origin(lambda _: reply(b"unjudged"))
    running = gateway(pinned(plain, pki, leaf, clearText="allow", tunnel="pass"))
    assert running.get(f"http://{HOST}:{plain.port}/").body == b"unjudged"
    wire, response = running.connect(f"{HOST}:{plain.port}")
    wire.close()
    assert response.status == 200
    log = running.log()
    assert "requests in clear text bypass the pinsets" in log
    assert "tunnels bypass the pinsets" in log


@pytest.mark.parametrize("order", ["alone", "before a general entry", "after a general entry"])
def test_other_ports_of_a_pinned_host_are_no_way_around(gateway, origin, pki, order):
    leaf = pki.intermediate.issue(HOST)
    secure = serve(origin, leaf)
    plain = origin(lambda _: reply(b"unjudged"))
    config = pinned(plain, pki, leaf, match=[f"{HOST}:{secure.port}"])
    general = {"match": ["**.pinned.test"]}
    if order != "alone":
        config["hosts"].insert(1 if "before" in order else 0, general)
    running = gateway(config)
    for url in (f"http://{HOST}:{plain.port}/", f"http://{HOST}:{secure.port}/"):
        assert running.get(url).status == 403
    for there in (plain, secure):
        wire, response = running.connect(f"{HOST}:{there.port}")
        wire.close()
        assert response.status == 403
    # Verified TLS alone is not enough either: whatever entry applies to that port names no pinsets.
    refused = running.get(f"https://{HOST}:{plain.port}/")
    assert (refused.status, b"pinned-port-refused" in refused.body) == (403, True)
    assert plain.accepted == secure.accepted == 0


def test_a_clear_text_reverse_route_to_a_pinned_host_is_refused(gateway, origin, pki):
    leaf = pki.intermediate.issue(HOST)
    there = origin(lambda _: reply(b"unjudged"))
    config = pinned(there, pki, leaf, upgrade="https")
    config["listeners"] = [{"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
                            "upstream": f"http://{HOST}:{there.port}"}]
    running = gateway(config)
    response = running.get("/", "back")
    assert response.status == 403
    assert b"clear-text-refused" in response.body
    assert there.accepted == 0
    assert "all requests are refused" in running.log()


def test_the_probe_of_a_pinned_host_speaks_tls(gateway, origin, pki):
    leaf = pki.intermediate.issue(HOST)
    there = serve(origin, leaf)
    running = gateway(pinned(there, pki, leaf, match=[f"{HOST}:{there.port}"],
                             probe={"interval": "50ms"}))
    until(lambda: there.requests, "the probe has asked")
    assert there.handshakes >= 1
    assert there.tls.names[0] == HOST
    assert running.metric("pinfold_pin_evaluations_total", pinset="wanted", result="passed") >= 1


def test_an_untrusted_server_is_reachable(gateway, origin, pki):
    """It has answered: the alert for hosts that are down is not the one for wrong pins."""
    leaf = pki.intermediate.issue(HOST)
    there = serve(origin, leaf)
    config = pinned(there, pki, leaf, upgrade="https")
    config["pinsets"]["wanted"]["pins"] = [EMPTY_PIN]
    running = gateway(config)

    def state(name: str) -> float:
        return running.metric("pinfold_host_reachability", host=HOST, state=name)

    assert ask(running, "upgrade", there.port).status == 502
    assert state("not_reachable") == 0
    assert state("reachable") == 1
    assert running.metric("pinfold_pin_evaluations_total", result="no_pin_matched") == 1


# Versions, ALPN, resumption, pooling


@pytest.mark.parametrize(("offered", "minimum", "passes"), [
    (ssl.TLSVersion.TLSv1_3, "1.2", True), (ssl.TLSVersion.TLSv1_2, "1.2", True),
    (ssl.TLSVersion.TLSv1_2, "1.3", False), (ssl.TLSVersion.TLSv1_1, "1.2", False)])
def test_servers_below_the_minimum_version_are_refused(
        gateway, origin, pki, offered, minimum, passes):
    leaf = pki.root.issue(HOST)
    there = serve(origin, leaf, minimum=min(offered, ssl.TLSVersion.TLSv1_1), maximum=offered)
    running = gateway(configuration(
        "upgrade", there.port,
        {"tls": {"minimum": minimum, "roots": [str(pki.root.pem_file)]}}, None,
        pki.interception))
    for way in BOTH:
        assert ask(running, way, there.port).status == (200 if passes else 502), way
    assert there.connections == [] or passes


@pytest.mark.parametrize("http2", ["auto", "off"])
def test_alpn_is_what_the_entry_says(gateway, origin, pki, http2):
    chosen = []
    there = origin(lambda seen: reply(), tls=pki.root.issue(HOST).server_context(
        alpn=("h2", "http/1.1") if http2 == "off" else ("http/1.1",)))
    original = there._converse

    def converse(connection):
        chosen.append(connection.socket.selected_alpn_protocol())
        original(connection)

    there.script = converse
    running = gateway(configuration(
        "upgrade", there.port, {"tls": {"roots": [str(pki.root.pem_file)]}, "http2": http2}, None))
    assert ask(running, "upgrade", there.port).status == 200
    # Servers that speak HTTP/2 are asked in it otherwise (test_http2_upstream.py).
    assert chosen == ["http/1.1"]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_are_resumed_but_never_past_a_changed_policy(gateway, origin, pki, version):
    resumed = []
    leaf = pki.intermediate.issue(HOST)
    there = origin(lambda seen: reply(b"x", "200 OK", "Connection: close"),
                   tls=leaf.server_context(maximum=version))
    original = there._converse

    def converse(connection):
        resumed.append(connection.socket.session_reused)
        original(connection)

    there.script = converse
    running = gateway(configuration(
        "upgrade", there.port, {"tls": {"roots": [str(pki.root.pem_file)]}},
        {"mode": "publicKey", "pins": [leaf.pin]}))
    for _ in range(4):
        assert ask(running, "upgrade", there.port).status == 200
    assert resumed[0] is False
    assert any(resumed[1:]), "later connections resume"
    seen = len(there.requests)
    changed = configuration(
        "upgrade", there.port, {"tls": {"roots": [str(pki.root.pem_file)]}},
        {"mode": "publicKey", "pins": [EMPTY_PIN]})
    running.write_config({**running.config, **changed})
    running.signal(signal.SIGHUP)
    until(lambda: ask(running, "upgrade", there.port).status == 502, "the new pin applies")
    settled = len(there.requests)
    for _ in range(3):
        assert ask(running, "upgrade", there.port).status == 502
    assert len(there.requests) == settled
    assert settled - seen < 50


def test_pooled_connections_are_dropped_when_the_policy_changes(gateway, origin, pki):
    leaf = pki.intermediate.issue(HOST)
    there = serve(origin, leaf)
    config = configuration(
        "upgrade", there.port, {"tls": {"roots": [str(pki.root.pem_file)]}},
        {"mode": "publicKey", "pins": [leaf.pin]})
    running = gateway(config)
    with running.wire() as wire:
        url = f"http://{HOST}:{there.port}/"
        for _ in range(3):
            assert wire.ask(request(url)).status == 200
        assert there.accepted == 1
        config["pinsets"]["wanted"]["pins"] = [EMPTY_PIN]
        running.write_config({**running.config, **config})
        running.signal(signal.SIGHUP)

        def refused() -> bool:
            with running.wire() as other:
                return other.ask(request(url)).status == 502

        until(refused, "the new pin applies")
        assert wire.ask(request(url)).status == 502, "on this connection too"


def test_an_origin_that_speaks_no_tls_is_a_502(gateway, scripted_origin, pki):
    def script(connection):
        connection._more()
        connection.send("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    plain = scripted_origin(script)
    running = gateway(configuration(
        "upgrade", plain.port, {"tls": {"roots": [str(pki.root.pem_file)]}}, None))
    response = ask(running, "upgrade", plain.port)
    assert response.status == 502
    assert response.proxy_status["error"].startswith("tls_")
    assert b"SECRET" not in plain.application_bytes


def test_a_handshake_that_stalls_is_a_504(gateway, scripted_origin, pki):
    there = scripted_origin(lambda connection: connection.read_to_end())
    config = configuration("upgrade", there.port, {"tls": {"roots": [str(pki.root.pem_file)]}}, None)
    running = gateway({**config, "timeouts": {"connect": "300ms"}})
    response = ask(running, "upgrade", there.port)
    assert response.status == 504
    assert b"SECRET" not in there.application_bytes


def test_a_large_body_passes_over_tls_both_ways(gateway, origin, pki):
    there = origin(lambda seen: reply(seen.body), tls=pki.root.issue(HOST).server_context())
    running = gateway(configuration(
        "upgrade", there.port, {"tls": {"roots": [str(pki.root.pem_file)]}}, None))
    body = bytes(range(256)) * 20_000
    assert running.ask(request(
        f"http://{HOST}:{there.port}/", method="POST", body=body)).body == body


def test_a_body_cut_off_inside_tls_is_not_passed_off_as_whole(gateway, scripted_origin, pki):
    """Without close_notify a body that ends with the connection is truncated (RFC 9112 §9.8)."""
    from support.wire import Closed

    def script(connection):
        connection.read_request()
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\npart")
        raw = socket.socket(fileno=connection.socket.detach())
        raw.close()

    there = scripted_origin(script, tls=pki.root.issue(HOST).server_context())
    running = gateway({**configuration(
        "upgrade", there.port, {"tls": {"roots": [str(pki.root.pem_file)]}}, None)})
    with running.wire() as wire:
        wire.send(request(f"http://{HOST}:{there.port}/"))
        try:
            assert wire.read().status == 502
        except Closed:
            pass


def test_roots_may_be_given_on_the_command_line(gateway, origin, pki):
    there = serve(origin, pki.root.issue(HOST))
    running = gateway({}, "--roots", str(pki.root.pem_file))
    assert running.get(f"https://{HOST}:{there.port}/").status == 200


def test_the_default_roots_do_not_trust_a_private_authority(gateway, origin, pki):
    there = serve(origin, pki.root.issue(HOST))
    running = gateway()
    assert running.get(f"https://{HOST}:{there.port}/").status == 502
    assert there.application_bytes == b""


def test_cached_answers_of_a_pinned_host_need_no_connection(gateway, origin, pki):
    leaf = pki.root.issue(HOST)
    there = origin(lambda _: reply(b"kept", "200 OK", "Cache-Control: max-age=600"),
                   tls=leaf.server_context())
    running = gateway(configuration(
        "upgrade", there.port, {"tls": {"roots": [str(pki.root.pem_file)]}},
        {"mode": "publicKey", "pins": [leaf.pin]}))
    url = f"http://{HOST}:{there.port}/"
    running.get(url)
    until(lambda: "hit" in running.get(url).cache_status, "a hit")
    assert len(there.requests) <= 2


def test_a_clear_text_answer_is_never_served_for_https(gateway, origin, pki):
    """http and https are different keys."""
    leaf = pki.root.issue(HOST)
    there = origin(lambda _: reply(b"secure", "200 OK", "Cache-Control: max-age=600"),
                   tls=leaf.server_context())
    running = gateway({"tls": {"roots": [str(pki.root.pem_file)]}})
    secure = f"https://{HOST}:{there.port}/"
    running.get(secure)
    until(lambda: "hit" in running.get(secure).cache_status, "a hit")
    assert running.get(f"http://{HOST}:{there.port}/").status == 502
