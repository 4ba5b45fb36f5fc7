"""What `strict` asks of a chain, clause by clause: each violation refused with its own reason by
`pinfold trust --batch`, and its twin without the fault trusted."""

from __future__ import annotations

import hashlib
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID as Purpose
from support.chains import (ACCESS, AUTHORITY_KEY, BASIC, HOST, MD5_RSA, NAMES, POLICY, PURPOSES,
                            SAN, SHA1_ECDSA, SHA1_RSA, SHA224_ECDSA, SHA256_RSA, SUBJECT_KEY, USAGE,
                            Chain, ask, authority, authority_key, chain, dns, key, key_identifier,
                            name, oid, pem, sequence, server, subtrees, tlv, usage)


def purposes(*them) -> bytes:
    return x509.ExtendedKeyUsage(list(them)).public_bytes()


def tree(host: str) -> bytes:
    return tlv(0x82, host.encode())


def certificate_key(draft, private):
    """Another key for a server, with its identifier."""
    draft.key = private
    draft.put(SUBJECT_KEY, tlv(0x04, key_identifier(private)))


def authority_with(made: Chain, which: str, private) -> None:
    """Another key for an authority of the chain, and identifiers that fit."""
    draft = getattr(made, which)
    certificate_key(draft, private)
    below = made.middle if which == "root" else made.leaf
    below.put(AUTHORITY_KEY, authority_key(private))


def leaf_key(kind):
    return lambda c: certificate_key(c.leaf, key(kind, "leaf"))


def authority_key_of(which, kind):
    return lambda c: authority_with(c, which, key(kind, which))


def signed_by_rsa(which, algorithm):
    """`which` is signed by an RSA key of the one above it."""
    def change(c):
        above = "root" if which in ("middle", "root") else "middle"
        authority_with(c, above, key("rsa2048", above))
        getattr(c, which).algorithm = algorithm
    return change


def names(*them, common="Server", critical=False):
    def change(c):
        c.leaf.subject = name(common)
        c.leaf.put(SAN, dns(*them), critical)
    return change


def put(which, identifier, value, critical=False):
    return lambda c: getattr(c, which).put(identifier, value, critical)


def drop(which, identifier):
    return lambda c: getattr(c, which).drop(identifier)


def criticality(which, identifier, critical):
    return lambda c: getattr(c, which).criticality(identifier, critical)


def attribute(which, field, value):
    return lambda c: setattr(getattr(c, which), field, value)


def renamed(which, common):
    return lambda c: setattr(getattr(c, which), "subject", name(common))


def clean(_):
    pass


AIA = sequence(sequence(oid("1.3.6.1.5.5.7.48.1"), tlv(0x86, b"http://ocsp.example.com/")))
LONG = b"\x01" * 20

# The violation, its reason, and what is right in its place.
CLAUSES = {
    # Names.
    "no SAN": (drop("leaf", SAN), "san-missing", clean),
    "no SAN, the host as common name": (
        lambda c: (renamed("leaf", HOST)(c), drop("leaf", SAN)(c)), "san-missing",
        names(HOST, common=HOST)),
    "SAN critical beside a subject": (
        names(HOST, critical=True), "san-critical", names(HOST, common=None, critical=True)),
    "SAN not critical without a subject": (
        names(HOST, common=None), "san-not-critical", names(HOST, common=None, critical=True)),
    "SAN that cannot be read": (
        put("leaf", SAN, b"\x30\x05\x82\x09abc"), "san-malformed", clean),
    "SAN without a name": (put("leaf", SAN, sequence()), "san-malformed", clean),
    "underscore": (names(HOST, "a_b.example.com"), "san-underscore", names(HOST, "a-b.example.com")),
    "leading dot": (names(HOST, ".example.com"), "san-bad-name", names(HOST, "example.com")),
    "trailing dot": (names(HOST, "example.com."), "san-bad-name", names(HOST, "example.com")),
    "empty label": (names(HOST, "a..example.com"), "san-bad-name", names(HOST, "a.example.com")),
    "NUL": (names(HOST, b"www.example.com\0.evil.test"), "san-bad-name", clean),
    "a name beyond ASCII": (
        names(HOST, "bücher.example.com"), "san-bad-name", names(HOST, "xn--bcher-kva.example.com")),
    "wildcard in part of a label": (
        names(HOST, "w*.example.com"), "san-bad-name", names(HOST, "*.example.com")),
    "wildcard in the middle": (
        names(HOST, "a.*.example.com"), "san-bad-name", names(HOST, "*.a.example.com")),
    "wildcard alone": (names(HOST, "*"), "san-bad-name", names(HOST, "*.example.com")),
    "address of five octets": (
        put("leaf", SAN, sequence(tlv(0x82, HOST.encode()), tlv(0x87, b"\x7f\0\0\1\0"))),
        "san-bad-name", names(HOST, "127.0.0.1")),
    "common name of another host": (
        names(HOST, common="other.example.com"), "common-name-not-in-san",
        names(HOST, "other.example.com", common="other.example.com")),
    "common name in other letters": (
        names(HOST, common="WWW.example.com"), "common-name-not-in-san", names(HOST, common=HOST)),
    "common name of an address": (
        names(HOST, common="127.0.0.1"), "common-name-not-in-san",
        names(HOST, "127.0.0.1", common="127.0.0.1")),
    "common name of an address in hex": (
        names(HOST, "127.0.0.1", common="0x7f000001"), "common-name-not-in-san",
        names(HOST, "127.0.0.1", common="127.0.0.1")),
    "common name of an IPv6 address in capitals": (
        names(HOST, "2001:db8::a", common="2001:DB8::A"), "common-name-not-in-san",
        names(HOST, "2001:db8::a", common="2001:db8::a")),
    "common name of an IPv6 address uncompressed": (
        names(HOST, "2001:db8::a", common="2001:db8:0:0:0:0:0:a"), "common-name-not-in-san",
        names(HOST, "2001:db8::a", common="2001:db8::a")),
    "common name in Unicode": (
        names("xn--bcher-kva.example.com", HOST, common="bücher.example.com"),
        "common-name-not-in-san",
        names("xn--bcher-kva.example.com", HOST, common="xn--bcher-kva.example.com")),
    "wildcard over a top-level domain": (
        names(HOST, "*.com"), "public-suffix-wildcard", names(HOST, "*.example.com")),
    "wildcard over co.uk": (
        names(HOST, "*.co.uk"), "public-suffix-wildcard", names(HOST, "*.example.co.uk")),
    "wildcard over CO.UK": (
        names(HOST, "*.CO.UK"), "public-suffix-wildcard", names(HOST, "*.example.CO.UK")),
    "wildcard over a private suffix": (
        names(HOST, "*.github.io"), "private-suffix-wildcard", names(HOST, "*.example.github.io")),
    "wildcard over an internationalised suffix": (
        names(HOST, "*.xn--55qx5d.cn"), "public-suffix-wildcard",
        names(HOST, "*.example.xn--55qx5d.cn")),
    "wildcard over a domain nobody knows": (
        names(HOST, "*.nosuchdomain"), "unlisted-suffix-wildcard",
        names(HOST, "*.example.nosuchdomain")),
    # Purposes.
    "no purpose": (drop("leaf", PURPOSES), "purpose-missing", clean),
    "for clients": (
        put("leaf", PURPOSES, purposes(Purpose.CLIENT_AUTH)), "not-for-servers",
        put("leaf", PURPOSES, purposes(Purpose.CLIENT_AUTH, Purpose.SERVER_AUTH))),
    "any purpose": (
        put("leaf", PURPOSES, purposes(Purpose.SERVER_AUTH, Purpose.ANY_EXTENDED_KEY_USAGE)),
        "any-purpose", clean),
    "any purpose alone": (
        put("leaf", PURPOSES, purposes(Purpose.ANY_EXTENDED_KEY_USAGE)), "any-purpose", clean),
    "critical purpose": (criticality("leaf", PURPOSES, True), "purpose-critical", clean),
    "purpose without content": (put("leaf", PURPOSES, sequence()), "not-for-servers", clean),
    "a root with a purpose": (
        put("root", PURPOSES, purposes(Purpose.SERVER_AUTH)), "root-with-purpose",
        put("middle", PURPOSES, purposes(Purpose.SERVER_AUTH))),
    # Authorities and leaves.
    "an authority as leaf": (
        lambda c: (put("leaf", BASIC, sequence(tlv(1, b"\xff")), True)(c),
                   put("leaf", USAGE, usage(0x86), True)(c)), "authority-as-leaf",
        put("leaf", BASIC, sequence(), True)),
    "basicConstraints cA on a leaf": (
        put("leaf", BASIC, sequence(tlv(1, b"\xff")), True), "leaf-with-authority-flag",
        put("leaf", BASIC, sequence(), True)),
    "keyCertSign on a leaf": (
        put("leaf", USAGE, usage(0x84), True), "leaf-may-sign", put("leaf", USAGE, usage(0xA0), True)),
    "root without basicConstraints": (drop("root", BASIC), "basic-constraints-missing", clean),
    "intermediate without basicConstraints": (
        drop("middle", BASIC), "basic-constraints-missing", clean),
    "root's basicConstraints not critical": (
        criticality("root", BASIC, False), "basic-constraints-not-critical", clean),
    "intermediate's basicConstraints not critical": (
        criticality("middle", BASIC, False), "basic-constraints-not-critical", clean),
    "intermediate that is no authority": (
        put("middle", BASIC, sequence(), True), "not-an-authority", clean),
    "intermediate that may not sign": (
        put("middle", USAGE, usage(0x80), True), "not-an-authority", clean),
    "root that may not sign": (put("root", USAGE, usage(0x80), True), "not-an-authority", clean),
    "intermediate without a name": (
        renamed("middle", None), "authority-without-name", renamed("middle", "Other")),
    "root without a name": (
        renamed("root", None), "authority-without-name", renamed("root", "Other")),
    # Key identifiers.
    "leaf without authorityKeyIdentifier": (
        drop("leaf", AUTHORITY_KEY), "authority-key-missing", clean),
    "intermediate without authorityKeyIdentifier": (
        drop("middle", AUTHORITY_KEY), "authority-key-missing", clean),
    "authorityKeyIdentifier with issuer and serial": (
        lambda c: put("leaf", AUTHORITY_KEY, sequence(
            tlv(0x80, key_identifier(c.middle.key)), tlv(0xA1, tlv(0xA4, c.root.subject)),
            tlv(0x82, c.middle.serial)))(c), "authority-key-form", clean),
    "authorityKeyIdentifier with issuer and serial alone": (
        lambda c: put("leaf", AUTHORITY_KEY, sequence(
            tlv(0xA1, tlv(0xA4, c.root.subject)), tlv(0x82, c.middle.serial)))(c),
        "authority-key-form", clean),
    "root's authorityKeyIdentifier with issuer and serial": (
        lambda c: put("root", AUTHORITY_KEY, sequence(
            tlv(0x80, key_identifier(c.root.key)), tlv(0xA1, tlv(0xA4, c.root.subject)),
            tlv(0x82, c.root.serial)))(c), "authority-key-form",
        lambda c: put("root", AUTHORITY_KEY, authority_key(c.root.key))(c)),
    "empty authorityKeyIdentifier": (
        put("leaf", AUTHORITY_KEY, sequence()), "authority-key-form", clean),
    "authorityKeyIdentifier of another key": (
        lambda c: put("leaf", AUTHORITY_KEY, authority_key(c.root.key))(c),
        "key-identifier-mismatch", clean),
    "intermediate with another's authorityKeyIdentifier": (
        lambda c: put("middle", AUTHORITY_KEY, authority_key(c.leaf.key))(c),
        "key-identifier-mismatch", clean),
    "critical authorityKeyIdentifier": (
        criticality("leaf", AUTHORITY_KEY, True), "key-identifier-critical", clean),
    "critical subjectKeyIdentifier": (
        criticality("middle", SUBJECT_KEY, True), "key-identifier-critical", clean),
    "intermediate without subjectKeyIdentifier": (
        drop("middle", SUBJECT_KEY), "subject-key-missing", drop("leaf", SUBJECT_KEY)),
    "root without subjectKeyIdentifier": (drop("root", SUBJECT_KEY), "subject-key-missing", clean),
    # Constraints.
    "name constraints on a leaf": (
        put("leaf", NAMES, subtrees([tree("example.com")]), True), "name-constraints-on-leaf",
        put("middle", NAMES, subtrees([tree("example.com")]), True)),
    "name constraints that are not critical": (
        put("middle", NAMES, subtrees([tree("example.com")])), "name-constraints-not-critical",
        put("middle", NAMES, subtrees([tree("example.com")]), True)),
    "name constraints without lists": (
        put("middle", NAMES, sequence(), True), "name-constraints-empty",
        put("middle", NAMES, subtrees(None, [tree("other.test")]), True)),
    "name constraints with empty lists": (
        put("middle", NAMES, subtrees([], []), True), "name-constraints-empty",
        put("middle", NAMES, subtrees([tree("example.com")], [tree("a.example.com")]), True)),
    "name constraints with a leading dot": (
        put("middle", NAMES, subtrees([tree(".example.com")]), True), "name-constraints-malformed",
        put("middle", NAMES, subtrees([tree("example.com")]), True)),
    "name constraints with a wildcard": (
        put("middle", NAMES, subtrees(None, [tree("*.other.test")]), True),
        "name-constraints-malformed",
        put("middle", NAMES, subtrees(None, [tree("other.test")]), True)),
    "name constraints with a mask of holes": (
        put("middle", NAMES, subtrees(None, [tlv(0x87, b"\x0a\0\0\0\xff\0\xff\0")]), True),
        "name-constraints-malformed",
        put("middle", NAMES, subtrees(None, [tlv(0x87, b"\x0a\0\0\0\xff\0\0\0")]), True)),
    "name constraints that cannot be read": (
        put("middle", NAMES, b"\x30\x03\xa0\x09\x00", True), "name-constraints-malformed", clean),
    "root's name constraints malformed": (
        put("root", NAMES, subtrees([tree(".example.com")]), True), "name-constraints-malformed",
        put("root", NAMES, subtrees([tree("example.com")]), True)),
    "a name that is not permitted": (
        put("middle", NAMES, subtrees([tree("other.test")]), True), "constraint-violated",
        put("middle", NAMES, subtrees([tree("other.test"), tree(HOST)]), True)),
    "a name that is excluded": (
        put("middle", NAMES, subtrees(None, [tree("example.com")]), True), "constraint-violated",
        put("middle", NAMES, subtrees(None, [tree("a.example.com")]), True)),
    "a wildcard over a name that is excluded": (
        lambda c: (names(HOST, "*.example.com")(c),
                   put("middle", NAMES, subtrees(None, [tree("secret.example.com")]), True)(c)),
        "name-constraints-wildcard",
        lambda c: (names(HOST, "*.example.com")(c),
                   put("middle", NAMES, subtrees(None, [tree("a.secret.example.com")]), True)(c))),
    "policy constraints that are not critical": (
        put("middle", POLICY, sequence(tlv(0x80, b"\x05"))), "policy-constraints-not-critical",
        put("middle", POLICY, sequence(tlv(0x80, b"\x05")), True)),
    # The certificate.
    "version 1": (
        lambda c: (attribute("leaf", "version", b"")(c), c.leaf.extensions.clear()),
        "not-version-3", clean),
    "version 2 intermediate": (
        attribute("middle", "version", tlv(0xA0, tlv(0x02, b"\x01"))), "not-version-3", clean),
    "negative serial number": (
        attribute("leaf", "serial", b"\x81"), "serial-not-positive",
        attribute("leaf", "serial", b"\x00\x81")),
    "serial number zero": (
        attribute("leaf", "serial", b"\0"), "serial-zero", attribute("leaf", "serial", b"\1")),
    "root's serial number zero": (
        attribute("root", "serial", b"\0"), "serial-zero", attribute("root", "serial", b"\1")),
    "serial number of 21 octets": (
        attribute("leaf", "serial", LONG + b"\1"), "serial-too-long",
        attribute("leaf", "serial", LONG)),
    "intermediate's serial number of 21 octets": (
        attribute("middle", "serial", LONG + b"\1"), "serial-too-long",
        attribute("middle", "serial", LONG)),
    "an extension twice": (attribute("leaf", "twice", ACCESS), "duplicate-extension", clean),
    "AIA of zeros": (
        put("leaf", ACCESS, b"\0" * 8), "information-access-malformed", put("leaf", ACCESS, AIA)),
    "AIA without content": (
        put("leaf", ACCESS, sequence()), "information-access-malformed", put("leaf", ACCESS, AIA)),
    "AIA whose URL is no text": (
        put("leaf", ACCESS, sequence(sequence(oid("1.3.6.1.5.5.7.48.1"), tlv(0x86, b"\xff")))),
        "information-access-malformed", put("leaf", ACCESS, AIA)),
    # Cryptography.
    "leaf of RSA 1024": (leaf_key("rsa1024"), "rsa-too-short", leaf_key("rsa2048")),
    "root of RSA 1024": (
        authority_key_of("root", "rsa1024"), "rsa-too-short", authority_key_of("root", "rsa2048")),
    "leaf of RSA 2052": (leaf_key("rsa2052"), "rsa-not-multiple-of-8", leaf_key("rsa3072")),
    "root of RSA 2052": (
        authority_key_of("root", "rsa2052"), "rsa-not-multiple-of-8",
        authority_key_of("root", "rsa3072")),
    "leaf on P-224": (leaf_key("p224"), "key-not-allowed", leaf_key("p384")),
    "leaf on secp256k1": (leaf_key("k256"), "key-not-allowed", leaf_key("p521")),
    "leaf of DSA": (leaf_key("dsa"), "key-not-allowed", leaf_key("ed25519")),
    "root of DSA": (
        authority_key_of("root", "dsa"), "signature-not-allowed", authority_key_of("root", "ed25519")),
    "leaf signed with SHA-1": (
        signed_by_rsa("leaf", SHA1_RSA), "weak-signature", signed_by_rsa("leaf", SHA256_RSA)),
    "leaf signed with MD5": (
        signed_by_rsa("leaf", MD5_RSA), "weak-signature", signed_by_rsa("leaf", SHA256_RSA)),
    "leaf signed with ECDSA and SHA-1": (
        attribute("leaf", "algorithm", SHA1_ECDSA), "weak-signature", clean),
    "intermediate signed with SHA-1": (
        signed_by_rsa("middle", SHA1_RSA), "weak-signature", signed_by_rsa("middle", SHA256_RSA)),
    "root signed with SHA-1": (
        signed_by_rsa("root", SHA1_RSA), "weak-signature", signed_by_rsa("root", SHA256_RSA)),
    "leaf signed with SHA-224": (
        attribute("leaf", "algorithm", SHA224_ECDSA), "signature-not-allowed", clean),
    "two signature algorithms": (
        attribute("leaf", "inner_algorithm", SHA224_ECDSA), "signature-mismatch", clean),
}
# For the extension that is there twice there must be one.
CLAUSES["an extension twice"] = (
    lambda c: (put("leaf", ACCESS, AIA)(c), attribute("leaf", "twice", ACCESS)(c)),
    "duplicate-extension", put("leaf", ACCESS, AIA))


@pytest.fixture(scope="module")
def answers() -> dict[str, tuple[dict, dict, dict]]:
    """By clause: the answer about the violation, its twin, and the violation under `lenient`."""
    questions = []
    for violation, _, twin in CLAUSES.values():
        wrong = chain(violation)
        questions += [wrong.question(), chain(twin).question(),
                      wrong.question(profile="lenient")]
    found = iter(ask(questions))
    return {clause: (next(found), next(found), next(found)) for clause in CLAUSES}


@pytest.mark.parametrize("clause", CLAUSES)
def test_a_violation_is_refused_with_its_own_reason_and_its_twin_passes(answers, clause):
    wrong, twin, _ = answers[clause]
    assert (wrong["verdict"], wrong["reason"]) == ("fail", f"tls-{CLAUSES[clause][1]}"), wrong
    assert wrong["detail"]
    assert (twin["verdict"], twin["reason"]) == ("pass", "trusted"), twin


# What OpenSSL refuses by itself, with or without a profile.
REFUSED_ANYWAY = {
    "no SAN", "no SAN, the host as common name", "SAN that cannot be read", "SAN without a name",
    "for clients", "any purpose alone", "purpose without content",
    "intermediate without basicConstraints", "root without basicConstraints",
    "intermediate that is no authority", "intermediate that may not sign", "root that may not sign",
    "authorityKeyIdentifier of another key", "intermediate with another's authorityKeyIdentifier",
    "name constraints that cannot be read", "a name that is not permitted",
    "a name that is excluded", "version 1", "version 2 intermediate", "an extension twice",
    "leaf of RSA 1024", "root of RSA 1024", "leaf signed with SHA-1", "leaf signed with MD5",
    "leaf signed with ECDSA and SHA-1", "intermediate signed with SHA-1", "two signature algorithms",
    "intermediate without a name", "root without a name",
    "name constraints with a wildcard", "name constraints with a mask of holes",
    "authorityKeyIdentifier with issuer and serial alone", "leaf of DSA", "root of DSA",
    "leaf signed with SHA-224", "critical authorityKeyIdentifier", "critical subjectKeyIdentifier",
}


def test_most_violations_pass_the_library_alone(answers):
    """Else the rules would be tested by what OpenSSL does."""
    passed = {clause for clause, (_, _, lenient) in answers.items() if lenient["verdict"] == "pass"}
    assert set(CLAUSES) - passed <= REFUSED_ANYWAY, set(CLAUSES) - passed - REFUSED_ANYWAY
    assert len(passed) > len(CLAUSES) / 2


def test_what_is_right_is_not_refused():
    own = chain()
    leaf = own.leaf.made(own.middle)
    limited = chain(put("leaf", BASIC, sequence(tlv(0x02, b"\0")), True))
    bare = server(key("p256", "own"), key("p256", "own"), HOST).put(
        BASIC, sequence(tlv(1, b"\xff")), True).made(None)
    questions = [
        # A path length in a leaf says nothing.
        limited.question(),
        # A leaf that is its own anchor is trusted for what it is, by roots and by a pin.
        {"chain": pem(leaf), "roots": pem(leaf), "host": HOST},
        {"chain": pem(bare), "roots": pem(bare), "host": HOST},
        {"chain": pem(bare), "roots": [], "host": HOST, "mode": "certificate",
         "pins": [pem(bare)], "allowInvalidCertificates": True},
        # An intermediate as anchor.
        {"chain": pem(leaf), "roots": pem(own.middle.made(own.root)), "host": HOST},
        # The root is sent too.
        {**own.question(), "chain": pem(leaf, own.middle.made(own.root), own.root.made(None))},
    ]
    for answer in ask(questions):
        assert answer["verdict"] == "pass", answer


def test_without_a_profile_in_the_batch_it_is_strict():
    wrong = chain(drop("leaf", PURPOSES))
    plain, strict, pedantic = ask([
        wrong.question(), wrong.question(profile="strict"), wrong.question(profile="pedantic")])
    assert plain["reason"] == strict["reason"] == pedantic["reason"] == "tls-purpose-missing"


def test_pedantic_asks_authorities_for_their_key_usage():
    without = chain(drop("middle", USAGE))
    assert [one["verdict"] for one in ask([without.question()])] == ["pass"]
    (answer,) = ask([without.question(profile="pedantic")])
    assert answer["reason"] == "tls-key-usage-missing"


@pytest.mark.parametrize("which", ["leaf", "middle", "root"])
@pytest.mark.parametrize("profile", ["strict", "lenient"])
def test_a_certificate_is_valid_in_its_first_and_its_last_second(which, profile):
    """RFC 5280, section 4.1.2.5: the period is inclusive at both ends."""
    made = chain(attribute(which, "days", (0, 1)))
    question = made.question(profile=profile)
    certificates = {"root": question["roots"]} | dict(zip(
        ("leaf", "middle"), (f"-----BEGIN{one}" for one in
                             question["chain"].split("-----BEGIN")[1:])))
    read = x509.load_pem_x509_certificate(certificates[which].encode())
    begin, end = read.not_valid_before_utc, read.not_valid_after_utc
    reasons = [answer["reason"] for answer in ask([
        {**question, "at": moment.strftime("%Y-%m-%dT%H:%M:%SZ")}
        for moment in (begin - timedelta(seconds=1), begin, end, end + timedelta(seconds=1))])]
    assert reasons == [
        "tls-certificate-not-yet-valid", "trusted", "trusted", "tls-certificate-expired"]


@pytest.mark.parametrize("which", ["leaf", "middle", "root"])
@pytest.mark.parametrize("serial", ["81", "80", "ff", "ff7f", "80" + "01" * 19])
def test_no_certificate_of_a_chain_may_have_a_negative_serial_number(which, serial):
    made = chain(attribute(which, "serial", bytes.fromhex(serial)))
    assert ask([made.question(profile="strict")])[0]["reason"] == "tls-serial-not-positive"


class TestPaths:
    """Several chains lead from one leaf to an anchor: one that is accepted is enough."""

    @staticmethod
    def crossed(wrong, right):
        """A leaf under an authority with two certificates, by one root each."""
        roots = [authority(f"Root {i}", key("p256", f"root {i}")) for i in range(2)]
        middles = []
        for root, change in zip(roots, (wrong, right)):
            middle = authority("Middle", key("p256", "middle"), root.key)
            change(middle)
            middles.append(middle.made(root))
        leaf = server(key("p256", "leaf"), key("p256", "middle"), HOST)
        made = leaf.made(authority("Middle", key("p256", "middle")))
        return made, middles, pem(*(root.made(None) for root in roots))

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    @pytest.mark.parametrize("wrong, reason", [
        (lambda m: m.put(NAMES, subtrees([tree("other.test")]), True), "constraint-violated"),
        (lambda m: m.put(NAMES, subtrees([tree("example.com")])), "name-constraints-not-critical"),
        (lambda m: setattr(m, "days", (-9, -5)), "certificate-expired"),
        (lambda m: m.criticality(BASIC, False), "basic-constraints-not-critical"),
        (lambda m: setattr(m, "signer", key("p256", "stranger")), None),
    ], ids=["name constraints", "a rule", "expired", "basicConstraints", "bad signature"])
    def test_a_chain_that_is_refused_gives_way_to_another(self, order, wrong, reason):
        leaf, middles, roots = self.crossed(wrong, lambda _: None)
        sent = pem(leaf, *(middles[i] for i in order))
        both, alone = ask([{"chain": sent, "roots": roots, "host": HOST},
                           {"chain": pem(leaf, middles[0]), "roots": roots, "host": HOST}])
        assert both["verdict"] == "pass", both
        assert alone["verdict"] == "fail"
        assert reason is None or alone["reason"] == f"tls-{reason}", alone

    @pytest.mark.parametrize("mode", ["publicKey", "certificate"])
    def test_a_pin_on_either_chain_is_found_in_either_order(self, mode):
        leaf, middles, _ = self.crossed(lambda _: None, lambda _: None)
        roots = [authority(f"Root {i}", key("p256", f"root {i}")).made(None) for i in range(2)]
        answers = ask([
            {"chain": pem(leaf, *sent), "roots": pem(*roots), "host": HOST, "mode": mode,
             "pins": [hashlib.sha256(root).hexdigest()]}
            for root in roots for sent in (middles, middles[::-1])])
        assert [one["verdict"] for one in answers] == ["pass"] * 4, answers

    @pytest.mark.parametrize("mode", ["publicKey", "certificate"])
    @pytest.mark.parametrize("as_file", [False, True])
    def test_a_pin_is_found_above_what_is_trusted_and_was_not_sent(self, mode, as_file):
        """An intermediate, and an authority's certificate by another."""
        leaf, (middle, _), _ = self.crossed(lambda _: None, lambda _: None)
        drafts = [authority(f"Root {i}", key("p256", f"root {i}")) for i in range(2)]
        roots = [one.made(None) for one in drafts]
        across = authority("Root 0", key("p256", "root 0"), drafts[1].key).made(drafts[1])

        def pin(certificate: bytes) -> str:
            return pem(certificate) if as_file else hashlib.sha256(certificate).hexdigest()

        table = [
            ([leaf], [middle, roots[0]], roots[0], "pass"),
            ([leaf], [middle, roots[0]], middle, "pass"),
            ([leaf], [middle, roots[0]], roots[1], "fail"), ([leaf], [middle], roots[0], "fail"),
            ([leaf, middle], [roots[0], across, roots[1]], roots[1], "pass"),
            ([leaf, middle], [roots[0], across, roots[1]], across, "pass"),
            ([leaf, middle], roots, roots[1], "fail"), ([leaf], roots, roots[0], "fail")]
        answers = ask([
            {"chain": pem(*sent), "roots": pem(*trusted), "host": HOST, "mode": mode,
             "pins": [pin(pinned)]} for sent, trusted, pinned, _ in table])
        assert [one["verdict"] for one in answers] == [row[3] for row in table], answers

    def test_two_chains_that_are_refused_are_refused(self):
        leaf, middles, roots = self.crossed(
            lambda m: m.criticality(BASIC, False), lambda m: setattr(m, "days", (-9, -5)))
        (answer,) = ask([{"chain": pem(leaf, *middles), "roots": roots, "host": HOST}])
        assert answer["verdict"] == "fail"

    def test_a_hundred_certificates_are_checked(self):
        made = chain()
        strangers = [authority(f"Stranger {i}", key("p256", "stranger")).made(None)
                     for i in range(98)]
        question = made.question()
        question["chain"] = (pem(made.leaf.made(made.middle)) + pem(*strangers)
                             + pem(made.middle.made(made.root)))
        (answer,) = ask([question])
        assert answer["verdict"] == "pass", answer

    @pytest.mark.parametrize("anchored", [True, False], ids=["to a bad anchor", "to no anchor"])
    def test_a_bomb_of_authorities_that_certify_each_other_is_bounded(self, anchored):
        """Each of twelve authorities has a certificate by every other: 12! chains without end."""
        keys = [key("p256", f"bomb {i}") for i in range(12)]
        drafts = [authority(f"Bomb {i}", one) for i, one in enumerate(keys)]
        sent = [authority(f"Bomb {i}", keys[i], keys[j]).made(drafts[j])
                for i in range(12) for j in range(12) if i != j]
        leaf = server(key("p256", "leaf"), keys[0], HOST).made(drafts[0])
        # The one that could end a chain may not issue for the host.
        root = authority("Bomb root", key("p256", "bomb root"))
        if anchored:
            last = authority("Bomb 11", keys[11], root.key)
            last.put(NAMES, subtrees([tree("other.test")]), True)
            sent.append(last.made(root))
        done = ask([{"chain": pem(leaf, *sent), "roots": pem(root.made(None)), "host": HOST}] * 4)
        assert {one["verdict"] for one in done} == {"fail"}, done[0]

    def test_a_certificate_of_a_mebibyte_is_checked(self):
        made = chain(put("leaf", "2.16.840.1.99999.1", tlv(0x04, b"\0" * (1 << 20))))
        (answer,) = ask([made.question()])
        assert answer["verdict"] == "pass", answer


