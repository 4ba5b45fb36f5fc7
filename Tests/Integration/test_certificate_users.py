"""Client certificates as proof of who is asking: subjects and names, optional and required, and those
that look like somebody."""

from __future__ import annotations

import json
import ssl

import pytest
from cryptography import x509
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from support.credentials import basic, bcrypt, digest, write
from support.gateway import run_pinfold
from support.origin import reply
from support.secure import NAME, client_context, forward, reload, reverse, secure_wire, tls_of

ANN = basic("ann", "secret")
RULES = [
    {"subject": r"CN=boss\, the,O=Example", "user": "boss", "groups": ["admins"]},
    {"dns": "device-*.example.test", "user": "device:$1", "groups": ["devices"]},
    {"uri": "spiffe://example.test/ns/*/main", "user": "ns:$1"},
    {"email": "*@example.test", "user": "mail:$1"},
    {"subject": "CN=kiosk-*,O=Example", "user": "kiosk"},
]


@pytest.fixture(scope="module")
def leaf(pki):
    return pki.intermediate.issue(NAME, "127.0.0.1")


@pytest.fixture
def files(workspace):
    write(workspace / "users", f"ann:{bcrypt('secret')}", f"bob:{bcrypt('secret')}",
          f"jürgen:{bcrypt('secret')}")
    write(workspace / "groups", "staff: kiosk ann")
    write(workspace / "tokens", f"ci:{digest('open-sesame')}")
    return workspace


@pytest.fixture
def there(origin):
    return origin(lambda seen: reply(
        seen.get("x-forwarded-user", "-").encode(), "200 OK", "Cache-Control: no-store"))


def section(files, rules=RULES, **more):
    return {"users": str(files / "users"), "groups": str(files / "groups"),
            "tokens": str(files / "tokens"), "certificates": rules} | more


@pytest.fixture
def serve(gateway, leaf, pki, files):
    def make(*methods, rules=RULES, mode="optional", **top):
        tls = tls_of(leaf, clientRoots=[str(pki.root.pem_file)], clientCertificates=mode)
        return gateway({"workers": 1, "listeners": [forward(tls) | {"authentication": list(methods)}],
                        "authentication": section(files, rules),
                        "access": {"clients": ["127.0.0.0/8"], "connectPorts": "any"}} | top)
    return make


def name(*pairs):
    """Attributes one after the other; those in a list are one set."""
    return x509.Name([x509.RelativeDistinguishedName(
        [x509.NameAttribute(*one) for one in (pair if isinstance(pair, list) else [pair])])
        for pair in pairs])


O_EXAMPLE = (NameOID.ORGANIZATION_NAME, "Example")


def client(authority, subject=None, *names, extensions=()):
    return authority.issue(*(names or ("x",)), usage=ExtendedKeyUsageOID.CLIENT_AUTH,
                           subject=subject, extensions=extensions)


def other_names(*names):
    return (x509.SubjectAlternativeName(list(names)),)


def get(there, *fields, path="/"):
    return "\r\n".join([f"GET {there.url(path)} HTTP/1.1", f"Host: {there.authority}", *fields,
                        "", ""])


def reason(response):
    return response.proxy_status["details"].split(":")[0]


def user_of(running, pki, there, certificate, *fields):
    """The status, and who it was by the log."""
    count = len(running.access_lines())
    with secure_wire(running, pki.root, client=certificate) as wire:
        response = wire.ask(get(there, *fields))
    return response.status, running.wait_access(count + 1)[count].get("user")


def test_a_certificate_proves_who_is_asking(serve, pki, there):
    running = serve("certificate", "basic")
    kiosk = client(pki.intermediate, name(O_EXAMPLE, (NameOID.COMMON_NAME, "kiosk-1")))
    device = client(pki.root, None, "other.test", "device-7.example.test")
    boss = client(pki.root, name(O_EXAMPLE, (NameOID.COMMON_NAME, "boss, the")))
    assert user_of(running, pki, there, kiosk) == (200, "kiosk")
    assert user_of(running, pki, there, device) == (200, "device:7")
    assert user_of(running, pki, there, boss) == (200, "boss")
    for extension, user in (
            (x509.UniformResourceIdentifier("spiffe://example.test/ns/prod/main"), "ns:prod"),
            (x509.RFC822Name("ann@example.test"), "mail:ann")):
        one = client(pki.root, name((NameOID.COMMON_NAME, "x")), extensions=other_names(extension))
        assert user_of(running, pki, there, one) == (200, user)
    # Who shows none, or one that stands for nobody, proves it otherwise.
    stranger = client(pki.root, name((NameOID.COMMON_NAME, "kiosk-1")))
    for one in (None, stranger):
        assert user_of(running, pki, there, one) == (407, None)
        assert user_of(running, pki, there, one, f"Proxy-Authorization: {ANN}") == (200, "ann")
    # Whoever is known by a certificate is that, whatever else is sent; and it is not passed on.
    assert user_of(running, pki, there, kiosk, f"Proxy-Authorization: {ANN}") == (200, "kiosk")
    assert not any("proxy-authorization" in one for one in there.requests)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_every_request_of_a_connection_and_a_resumed_one(serve, pki, there, version):
    running = serve("certificate")
    context = client_context(
        pki.root, client(pki.root, name(O_EXAMPLE, (NameOID.COMMON_NAME, "kiosk-1"))))
    context.minimum_version = context.maximum_version = version
    with secure_wire(running, pki.root, context=context) as wire:
        for _ in range(3):
            wire.send(get(there))
            assert wire.read().status == 200
        session = wire.socket.session
    with running.wire() as plain:
        again = context.wrap_socket(plain.socket, server_hostname=NAME, session=session)
        assert again.session_reused
        again.sendall(get(there).encode())
        assert again.recv(1000).startswith(b"HTTP/1.1 200")
    assert [line["user"] for line in running.wait_access(4)] == ["kiosk"] * 4


def confusing():
    """Certificates that look like somebody, and are not."""
    cn, ou = NameOID.COMMON_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME
    dns = x509.DNSName
    return {
        "other order": (name((cn, "kiosk-1"), O_EXAMPLE), ()),
        "in one value": (name((cn, "kiosk-1,O=Example")), ()),
        "escaped in one value": (name((cn, "kiosk-1\\,O=Example")), ()),
        "a set": (name([(cn, "kiosk-1"), O_EXAMPLE]), ()),
        "a set beside": (name(O_EXAMPLE, [(cn, "kiosk-1"), (ou, "x")]), ()),
        "one more": (name(O_EXAMPLE, (ou, "x"), (cn, "kiosk-1")), ()),
        "two names": (name(O_EXAMPLE, (cn, "kiosk-1"), (cn, "x")), ()),
        "another case": (name(O_EXAMPLE, (cn, "Kiosk-1")), ()),
        "another attribute": (name(O_EXAMPLE, (ou, "kiosk-1")), ()),
        "NUL": (name(O_EXAMPLE, (cn, "kiosk-1\0evil")), ()),
        "line feed": (name(O_EXAMPLE, (cn, "kiosk-1\n")), ()),
        "two bytes each": (name(O_EXAMPLE, (cn, "kiosk-1", _ASN1Type.BMPString)), ()),
        "Teletex": (name(O_EXAMPLE, (cn, "kiosk-1", _ASN1Type.T61String)), ()),
        "an odd one beside": (name((ou, "x", _ASN1Type.BMPString), O_EXAMPLE, (cn, "kiosk-1")), ()),
        "two devices": (None, other_names(dns("device-1.example.test"), dns("device-2.example.test"))),
        "a wildcard": (None, other_names(dns("device-*.example.test"))),
        "more labels": (None, other_names(dns("device-1.a.example.test"))),
        "more behind": (None, other_names(dns("device-1.example.test.evil.test"))),
        "more before": (None, other_names(dns("x.device-1.example.test"))),
        "an address": (None, other_names(x509.RFC822Name("device-1.example.test"))),
        "a URI": (None, other_names(x509.UniformResourceIdentifier("device-1.example.test"))),
        "two hosts": (None, other_names(x509.UniformResourceIdentifier(
            "spiffe://example.test/ns/a/b/main"))),
    }


@pytest.mark.parametrize("what", confusing())
def test_a_certificate_that_looks_like_somebody_is_nobody(serve, pki, there, what):
    subject, extensions = confusing()[what]
    running = serve("certificate", mode="required")
    one = client(pki.root, subject or name((NameOID.COMMON_NAME, "x")), extensions=extensions)
    with secure_wire(running, pki.root, client=one) as wire:
        response = wire.ask(get(there, f"Proxy-Authorization: {ANN}"))
    assert (response.status, reason(response)) in (
        (403, "certificate-unknown"), (407, "credentials-unusable"))
    assert "proxy-authenticate" not in response
    assert there.requests == []


@pytest.mark.parametrize("mode", ["required", "optional"])
def test_a_certificate_of_another_issuer_is_never_accepted(serve, pki, there, mode):
    running = serve("certificate", "basic", mode=mode)
    rogue = client(pki.rogue_root, name(O_EXAMPLE, (NameOID.COMMON_NAME, "kiosk-1")))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        with secure_wire(running, pki.root, client=rogue) as wire:
            wire.send(get(there, f"Proxy-Authorization: {ANN}"))
            wire.socket.recv(100)
    if mode == "required":
        with pytest.raises((ssl.SSLError, ConnectionError)):
            with secure_wire(running, pki.root) as wire:
                wire.send(get(there, f"Proxy-Authorization: {ANN}"))
                assert wire.socket.recv(100)
    assert there.requests == []


def test_rules_tunnels_and_changes(serve, pki, there, scripted_origin, files):
    def echo(connection):
        while data := connection.socket.recv(1000):
            connection.socket.sendall(data)

    tunnel = scripted_origin(echo)
    running = serve("certificate", access={
        "clients": ["127.0.0.0/8"], "connectPorts": "any", "default": "deny", "rules": [
            {"name": "devices", "groups": ["devices"], "action": "allow"},
            {"name": "staff", "groups": ["staff"], "methods": ["CONNECT"], "action": "allow"},
            {"name": "seven", "users": ["device:8"], "action": "deny"}]})
    device = client(pki.root, None, "device-7.example.test")
    kiosk = client(pki.root, name(O_EXAMPLE, (NameOID.COMMON_NAME, "kiosk-1")))
    assert user_of(running, pki, there, device) == (200, "device:7")
    assert user_of(running, pki, there, kiosk) == (403, "kiosk")
    with secure_wire(running, pki.root, client=kiosk) as wire:
        wire.send(f"CONNECT {tunnel.authority} HTTP/1.1\r\nHost: x\r\n\r\n")
        assert wire.read_head().status == 200
        wire.send(b"through")
        assert wire.read_exactly(7) == b"through"
        write(files / "groups", "others: kiosk")
        assert wire.ended()
    config = running.config
    config["authentication"]["certificates"] = RULES[:1]
    reload(running, config | {"access": {"clients": ["127.0.0.0/8"]}})
    assert user_of(running, pki, there, device) == (403, None)


def test_on_a_reverse_listener_authorization_is_the_servers(gateway, leaf, pki, there, files):
    tls = tls_of(leaf, clientRoots=[str(pki.root.pem_file)], clientCertificates="optional")
    running = gateway({"listeners": [reverse(tls, there.url().rstrip("/"), "proxy")
                                     | {"authentication": ["certificate", "basic"]}],
                       "authentication": section(files)})
    kiosk = client(pki.root, name(O_EXAMPLE, (NameOID.COMMON_NAME, "kiosk-1")))
    ask = f"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: {ANN}\r\n\r\n"
    with secure_wire(running, pki.root, client=kiosk) as wire:
        assert wire.ask(ask).status == 200
    assert there.requests[0].get("authorization") == ANN
    with secure_wire(running, pki.root) as wire:
        wire.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert wire.read().status == 401
        wire.send(ask)
        assert wire.read().status == 200
    assert "authorization" not in there.requests[1]


@pytest.mark.parametrize("rules, tls, methods, problem", [
    ([], {}, ["certificate"], "clientRoots"),
    (None, {"clientRoots": ["root.pem"]}, ["certificate"], "authentication.certificates"),
    ([{"dns": "*.x.test", "user": "$1"}], {"clientRoots": ["root.pem"]}, ["certificate"], "colon"),
    ([{"dns": "x.test", "user": "d:$1"}], {"clientRoots": ["root.pem"]}, ["certificate"], "one *"),
    ([{"dns": "a", "subject": "CN=a", "user": "u"}], {}, [], "one of subject, dns"),
    ([{"user": "u"}], {}, [], "one of subject, dns"), ([{"subject": "CN", "user": "u"}], {}, [], "RFC 4514"),
    ([{"dns": "a"}], {}, [], "user"), ([{"dns": "a", "user": "a b"}], {}, [], "user"),
    ([{"dns": "a", "user": "a", "groups": ["a b"]}], {}, [], "group"),
    ([], {"clientCertificates": "optional"}, [], "clientRoots"),
    ([], {"clientRoots": ["root.pem"], "clientCertificates": "optional"}, [], "without any proof")])
def test_what_cannot_be_meant_is_an_error(files, pki, leaf, rules, tls, methods, problem):
    (files / "root.pem").write_bytes(pki.root.pem)
    listeners = [{"address": "127.0.0.1:0", "authentication": methods, "tls": tls_of(leaf, **tls)}]
    authentication = {} if rules is None else {"certificates": rules}
    config = files / "pinfold.yaml"
    config.write_text(json.dumps({"listeners": listeners, "authentication": authentication}))
    done = run_pinfold("check", "--config", str(config))
    assert done.returncode != 0 and problem in done.stdout + done.stderr, done.stdout + done.stderr


def test_check_warns_of_a_name_that_is_also_in_a_file(files, pki, leaf):
    (files / "root.pem").write_bytes(pki.root.pem)
    config = files / "pinfold.yaml"
    config.write_text(json.dumps({
        "listeners": [{"address": "127.0.0.1:0", "authentication": ["certificate", "basic"],
                       "tls": tls_of(leaf, clientRoots=["root.pem"])}],
        "authentication": {"users": "users", "certificates": [{"dns": "a", "user": "ann"}]}}))
    done = run_pinfold("check", "--config", str(config))
    assert done.returncode == 0 and '"ann" is the name of a user' in done.stdout + done.stderr
