"""What certificates are issued for, and what none is issued for, whatever a client asks for and
whatever a server's own certificate contains."""

from __future__ import annotations

import ssl

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from support.interception import HOST, OTHER, PINNED, ask_inside, connect_head
from support.origin import reply
from support.wait import until
from support.wire import Wire, request

LONGEST = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 56, "test"])
assert len(LONGEST) == 253


@pytest.fixture(scope="module")
def running(module_gateways, pki):
    # Servers with names and subjects of every kind, some of which only `lenient` lets through.
    tls = {"roots": [str(pki.root.pem_file)], "profile": "lenient"}
    return module_gateways({"workers": 1, "tls": tls,
                            "interception": pki.interception.section | {"default": True}})


def served(origin, certificate, **options):
    return origin(lambda _: reply(b"here", "200 OK", "Cache-Control: no-store"),
                  tls=certificate.server_context(), **options)


def shown(running, pki, target: str, name: str | None = None) -> x509.Certificate:
    """The certificate that a client is shown, which it verifies for `name`."""
    wire, answer = running.connect(target)
    with wire:
        assert answer.status == 200, answer
        context = ssl.create_default_context(cafile=str(pki.interception.file))
        context.check_hostname = name is not None
        with context.wrap_socket(wire.socket, server_hostname=name) as secure:
            return x509.load_der_x509_certificate(secure.getpeercert(True))


def names_of(certificate: x509.Certificate) -> list[str]:
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(one.value) for one in names]


@pytest.mark.parametrize("asked, name", [
    (HOST, HOST), (HOST.upper(), HOST), (HOST + ".", HOST), ("xn--bcher-kva.test",) * 2,
    ("under_score.test",) * 2, ("a" * 63 + ".test",) * 2, (LONGEST,) * 2, (LONGEST + ".", LONGEST),
    ("127.0.0.1",) * 2], ids=lambda name: name[:30])
def test_a_certificate_names_what_was_asked_for(running, origin, pki, asked, name):
    there = served(origin, pki.intermediate.issue(name))
    made = shown(running, pki, f"{asked}:{there.port}", None if name == LONGEST else name)
    assert names_of(made) == [name]
    common = made.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    is_named = len(name) <= 64 and name != "127.0.0.1"
    assert [one.value for one in common] == ([name] if is_named else [])


def test_a_certificate_names_an_ipv6_address(gateway, origin, pki):
    there = served(origin, pki.intermediate.issue("::1"), host="::1")
    running = gateway({"tls": {"roots": [str(pki.root.pem_file)]},
                       "interception": pki.interception.section | {"default": True}})
    assert names_of(shown(running, pki, f"[::1]:{there.port}", "::1")) == ["::1"]


@pytest.mark.parametrize("names", [
    ["*.wild.test"], ["*.wild.test", "wild.test", "one.wild.test"],
    [f"n{number}.test" for number in range(200)] + ["one.wild.test"],
    ["127.0.0.1", OTHER, PINNED, "one.wild.test"]],
    ids=["wildcard", "both", "two hundred", "others"])
def test_a_certificate_is_never_wider_than_what_was_asked_for(running, origin, pki, names):
    there = served(origin, pki.intermediate.issue(*names))
    made = shown(running, pki, f"one.wild.test:{there.port}", "one.wild.test")
    assert names_of(made) == ["one.wild.test"]


NOT_NAMES = {
    "raw UTF-8": "b\xc3\xbccher.test", "a wildcard": "*.test", "a NUL": "a\0.test",
    "a percent sign": "a%00.test", "an encoded dot": "a%2etest", "a space": "a b.test",
    "a label of 64": "a" * 64 + ".test", "a name of 254": "e" + LONGEST,
    "an empty label": "a..test", "a first dot": ".test", "a hyphen first": "-a.test",
    "a hyphen last": "a-.test", "a number at the end": "a.1", "part of an address": "127.1",
    "a number": "2130706433", "hexadecimal": "0x7f000001", "a zone": "[fe80::1%25lo]",
    "userinfo": "a@b.test", "a path": "a.test/b", "two dots at the end": "a.test..",
    "a quotation mark": 'a"b.test', "a comma": "a,DNS:b.test", "a newline": "a\nb.test",
    "a colon": "a:b.test", "nothing": ""}


@pytest.mark.parametrize("name", NOT_NAMES)
def test_no_certificate_is_issued_for(running, name):
    issued = running.metric("pinfold_interception_certificates_issued_total")
    with running.wire() as wire:
        wire.send(f"CONNECT {NOT_NAMES[name]}:443 HTTP/1.1\r\nHost: a.test\r\n\r\n")
        answer = wire.read_final("CONNECT")
        assert answer.status in (400, 403), answer
        assert answer.body or answer.reason
    assert running.metric("pinfold_interception_certificates_issued_total") == issued


def test_a_servers_subject_brings_nothing_but_whom_it_belongs_to(running, origin, pki):
    def attribute(kind: x509.ObjectIdentifier, value: str) -> x509.NameAttribute:
        return x509.NameAttribute(kind, value, _validate=False)

    subject = x509.Name([
        attribute(NameOID.ORGANIZATION_NAME, "Bank\n/CN=bank.test"),
        attribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "Unit\0.test"),
        attribute(NameOID.LOCALITY_NAME, "L" * 5000),
        attribute(NameOID.STATE_OR_PROVINCE_NAME, "Good, CN=bank.test"),
        *[attribute(NameOID.COMMON_NAME, f"bank{number}.test") for number in range(100)],
        attribute(NameOID.EMAIL_ADDRESS, "a@bank.test"),
        attribute(NameOID.DOMAIN_COMPONENT, "bank")])
    there = served(origin, pki.intermediate.issue(HOST, subject=subject))
    made = shown(running, pki, f"{HOST}:{there.port}", HOST)
    assert names_of(made) == [HOST]
    assert [(one.oid, one.value) for one in made.subject] == [
        (NameOID.STATE_OR_PROVINCE_NAME, "Good, CN=bank.test"), (NameOID.COMMON_NAME, HOST)]


def test_a_server_whose_certificate_changes_is_shown_as_it_is(running, origin, pki):
    first = pki.intermediate.issue(HOST, days=(-1, 5))
    context = first.server_context()
    # A session that is resumed would not show another one.
    context.num_tickets, context.options = 0, context.options | ssl.OP_NO_TICKET
    there = origin(lambda _: reply(b"here", "200 OK", "Connection: close"), tls=context)
    ends = set()
    for days in (5, 9, 3):
        leaf = pki.intermediate.issue(HOST, days=(-1, days))
        context.load_cert_chain(leaf.chain_file(), leaf.key_file)
        made = shown(running, pki, f"{HOST}:{there.port}", HOST)
        expected = x509.load_der_x509_certificate(leaf.der).not_valid_after_utc
        assert made.not_valid_after_utc == expected
        ends.add(expected)
        # The connection that was verified goes with the answer.
        ask_inside(running, HOST, there.port, request("/", host=f"{HOST}:{there.port}"))
        there.wait_finished(len(ends))
    assert len(ends) == 3
    rogue = pki.rogue_root.issue(HOST)
    context.load_cert_chain(rogue.chain_file(), rogue.key_file)
    wire, answer = running.connect(f"{HOST}:{there.port}")
    wire.close()
    assert (answer.status, answer.reason) == (502, "tls-incomplete-chain")


def reset(connection: Wire) -> None:
    connection.read_until(b"\x16")
    connection.reset()


def stop(connection: Wire) -> None:
    connection.send(b"\x16\x03\x03\x40\x00\x02")
    connection.read_to_end()


SERVERS = {
    "stalls": lambda connection: connection.read_to_end(), "closes": lambda _: None,
    "resets": reset,
    "sends garbage": lambda connection: connection.send(b"\xff" * 100_000),
    "answers in clear text": lambda connection: connection.send(reply(b"x", "400 No")),
    "stops in a record": stop,
    "sends alerts": lambda connection: connection.send(b"\x15\x03\x03\0\2\1\0" * 1000),
}


@pytest.fixture(scope="module")
def impatient(module_gateways, pki):
    return module_gateways({
        "tls": {"roots": [str(pki.root.pem_file)]}, "timeouts": {"connect": "500ms"},
        "cache": {"enabled": False},
        "interception": pki.interception.section | {"default": True}})


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_that_does_not_shake_hands_is_an_error_at_connect(
        impatient, scripted_origin, name):
    there = scripted_origin(SERVERS[name])
    count, descriptors = 5, impatient.descriptors
    wires = [impatient.wire() for _ in range(count)]
    for wire in wires:
        wire.send(connect_head(HOST, there.port))
    for wire in wires:
        with wire:
            answer = wire.read_final("CONNECT")
            assert answer.status in (502, 504), answer
            assert answer.proxy_status["error"]
            assert answer.body, "it has a reason"
    # The first question for a name may have opened something that stays.
    until(lambda: impatient.descriptors < descriptors + count, "nothing is left open")
    assert impatient.metric("pinfold_tunnels_intercepted_total") == 0
