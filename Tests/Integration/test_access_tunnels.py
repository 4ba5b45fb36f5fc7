"""How the rule that allows a tunnel has it handled: relayed, inspected, refused, intercepted or not, for
one client and not for another."""

from __future__ import annotations

import json
import ssl

import pytest
from support.gateway import Gateway, run_pinfold, wire_from
from support.interception import HOST, WRONG_PIN
from support.origin import reply
from support.secure import reload
from support.wire import Response, Wire, request

GUEST, OTHER = "127.0.0.2", "127.0.0.1"


def config(pki, authority, *rules: dict, **keys) -> dict:
    return {"access": {"connectPorts": "any", "clients": ["127.0.0.0/8"], "rules": list(rules),
                       "destinations": {"allow": ["127.0.0.0/8", "**.test"]}},
            "tls": {"roots": [str(pki.root.pem_file)]}, "interception": authority.section, **keys}


def guests(**settings) -> dict:
    return {"name": "guests", "clients": [GUEST], "action": "allow", **settings}


@pytest.fixture
def leaf(pki):
    return pki.intermediate.issue(HOST)


@pytest.fixture
def there(origin, leaf):
    return origin(lambda seen: reply(b"hello"), tls=leaf.server_context())


def connected(running: Gateway, source: str, port: int) -> tuple[Wire, Response]:
    wire = wire_from(running, source)
    wire.send(f"CONNECT {HOST}:{port} HTTP/1.1\r\nHost: {HOST}:{port}\r\n\r\n")
    answer = wire.read_head()
    if answer.status != 200:
        wire.read_body(answer)
    return wire, answer


def issuer(running: Gateway, source: str, port: int, **options) -> str:
    """Who has issued the certificate that a client sees in its tunnel, or why there is none."""
    wire, answer = connected(running, source, port)
    with wire:
        if answer.status != 200:
            return str(answer.status)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        for name, value in options.items():
            setattr(context, name, value)
        try:
            secure = context.wrap_socket(wire.socket, server_hostname=HOST)
        except (ssl.SSLError, OSError):
            return "closed"
        shown = secure.getpeercert(True)
        with Wire(("", 0), sock=secure) as inner:
            inner.send(request("/", host=f"{HOST}:{port}"))
            assert inner.read().body == b"hello"
    return "server" if shown == LEAVES[port] else "gateway"


LEAVES: dict[int, bytes] = {}


@pytest.fixture(autouse=True)
def known_leaf(there, leaf):
    LEAVES[there.port] = ssl.PEM_cert_to_DER_cert(
        leaf.pem_file.read_text().split("-----END CERTIFICATE-----")[0]
        + "-----END CERTIFICATE-----\n")


def test_one_clients_tunnels_are_intercepted_and_anothers_are_not(gateway, pki, authority, there):
    running = gateway(config(pki, authority, guests(intercept=True)))
    assert issuer(running, GUEST, there.port) == "gateway"
    assert issuer(running, OTHER, there.port) == "server"


def test_one_clients_tunnels_are_never_intercepted(gateway, pki, authority, there):
    running = gateway(config(
        pki, authority, guests(intercept=False), hosts=[{"match": [HOST], "intercept": True}]))
    assert issuer(running, GUEST, there.port) == "server"
    assert issuer(running, OTHER, there.port) == "gateway"


def test_one_clients_tunnels_are_inspected(gateway, pki, authority, origin):
    rogue = pki.rogue_root.issue(HOST)
    bad = origin(lambda seen: reply(b"hello"), tls=rogue.server_context())
    running = gateway(config(
        pki, authority, guests(tunnel="inspect"), hosts=[{"match": ["**"], "tls13Tunnel": "probe"}]))
    # Only the one whose tunnels are inspected is kept from the wrong server.
    assert issuer(running, GUEST, bad.port) == "closed"
    wire, answer = connected(running, OTHER, bad.port)
    wire.close()
    assert answer.status == 200
    assert "refused" in {line.get("inspected") for line in running.wait_access(2)}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_what_is_inspected_and_good_passes(gateway, pki, authority, there, version):
    running = gateway(config(
        pki, authority, guests(tunnel="inspect"), hosts=[{"match": ["**"], "tls13Tunnel": "probe"}]))
    assert issuer(running, GUEST, there.port, maximum_version=version) == "server"
    assert "inspected" in running.wait_access(1)[0]


def test_without_an_entry_tls_1_3_is_refused_when_inspected(gateway, pki, authority, there):
    running = gateway(config(pki, authority, guests(tunnel="inspect")))
    assert issuer(running, GUEST, there.port) == "closed"
    assert issuer(running, GUEST, there.port,
                  maximum_version=ssl.TLSVersion.TLSv1_2) == "server"


def test_one_clients_tunnels_are_refused(gateway, pki, authority, there):
    running = gateway(config(pki, authority, guests(tunnel="refuse")))
    assert issuer(running, GUEST, there.port) == "403"
    assert issuer(running, OTHER, there.port) == "server"
    assert "tunnel-refused" in {line.get("reason") for line in running.wait_access(2)}


@pytest.mark.parametrize("entry,settings", [
    ({"tunnel": "refuse"}, {"tunnel": "pass"}),
    ({"tunnel": "refuse"}, {"tunnel": "inspect"}),
    ({"pinsets": ["p"]}, {"tunnel": "pass"}),
    ({"pinsets": ["p"]}, {"intercept": False}),
    ({"pinsets": ["p"]}, {"tunnel": "pass", "intercept": False}),
    ({"pinsets": ["p"], "intercept": True}, {"intercept": False}),
])
def test_a_rule_opens_nothing_that_the_entry_or_a_pin_closes(
        gateway, pki, authority, there, entry, settings):
    running = gateway(config(
        pki, authority, guests(**settings), hosts=[{"match": [HOST], **entry}],
        pinsets={"p": {"mode": "publicKey", "pins": [WRONG_PIN]}}))
    assert issuer(running, GUEST, there.port) == "403"


def test_a_pinned_host_is_inspected_by_its_pins(gateway, pki, authority, there):
    running = gateway(config(
        pki, authority, guests(tunnel="inspect", intercept=False),
        hosts=[{"match": [HOST], "pinsets": ["p"], "tls13Tunnel": "probe"}],
        pinsets={"p": {"mode": "publicKey", "pins": [WRONG_PIN]}}))
    assert issuer(running, GUEST, there.port) == "closed"
    assert running.wait_access(1)[0]["reason"] == "tls-no-pin-matches"


def test_requests_in_a_tunnel_that_a_rule_has_intercepted_are_judged(
        gateway, pki, authority, there):
    running = gateway(config(
        pki, authority, {"name": "no-admin", "hosts": [HOST], "paths": ["/admin/**"], "action": "deny"},
        guests(intercept=True)))
    wire, answer = connected(running, GUEST, there.port)
    assert answer.status == 200
    context = ssl.create_default_context(cafile=str(authority.file))
    with Wire(("", 0), sock=context.wrap_socket(wire.socket, server_hostname=HOST)) as inner:
        for path, status in (("/", 200), ("/admin/x", 403)):
            inner.send(request(path, host=f"{HOST}:{there.port}"))
            assert inner.read().status == status


@pytest.mark.parametrize("settings", [{"tunnel": "inspect"}, {"tunnel": "refuse"}, {"intercept": True}])
def test_an_open_tunnel_ends_when_a_reload_has_it_handled_otherwise(
        gateway, pki, authority, there, settings):
    running = gateway(config(pki, authority, guests()))
    mine, answer = connected(running, GUEST, there.port)
    others, _ = connected(running, OTHER, there.port)
    assert answer.status == 200
    changed = {**running.config, "access": {
        **running.config["access"], "rules": [guests(**settings)]}}
    reload(running, changed)
    assert mine.ended()
    assert issuer(running, OTHER, there.port) == "server"
    for wire in (mine, others):
        wire.close()


def test_an_intercepted_tunnel_ends_when_a_reload_no_longer_intercepts_it(
        gateway, pki, authority, there):
    running = gateway(config(pki, authority, guests(intercept=True)))
    wire, answer = connected(running, GUEST, there.port)
    assert answer.status == 200
    context = ssl.create_default_context(cafile=str(authority.file))
    with Wire(("", 0), sock=context.wrap_socket(wire.socket, server_hostname=HOST)) as inner:
        inner.send(request("/", host=f"{HOST}:{there.port}"))
        assert inner.read().status == 200
        changed = {**running.config, "access": {
            **running.config["access"], "rules": [guests(intercept=False)]}}
        reload(running, changed)
        assert inner.ended()


def test_explain_and_check_show_what_happens(gateway, pki, authority, there):
    running = gateway(config(
        pki, authority, guests(tunnel="inspect"),
        {"name": "staff", "clients": ["127.0.0.3"], "action": "allow", "intercept": True}))

    def way(client: str) -> str:
        done = run_pinfold("explain", f"https://{HOST}:{there.port}/", "--client", client,
                           "--address", "127.0.0.1", "--config", str(running.config_file))
        return done.stdout

    assert "inspected" in way(GUEST)
    assert "intercepted" in way("127.0.0.3")
    assert "intercepted" not in way(OTHER) and "inspected" not in way(OTHER)
    checked = run_pinfold("check", "--config", str(running.config_file))
    assert "clients 127.0.0.2/32; tunnel inspect" in checked.stdout, checked.stdout
    assert "clients 127.0.0.3/32; intercept true" in checked.stdout
    assert json.dumps("tunnels")[1:-1] in checked.stdout


@pytest.mark.parametrize("rule,message", [
    ({"action": "deny", "tunnel": "inspect"}, "does not apply to action: deny"),
    ({"action": "report", "intercept": False}, "does not apply to action: report"),
    ({"action": "allow", "tunnel": "open"}, "auto, pass, inspect, refuse"),
    ({"action": "allow", "intercept": "maybe"}, "true, false, auto"),
    ({"action": "allow", "methods": ["GET"], "tunnel": "inspect"}, "applies to no tunnel"),
    ({"action": "allow", "paths": ["/x"], "tunnel": "inspect"}, "applies to no tunnel"),
    ({"action": "allow", "intercept": True}, "interception requires a certificate authority"),
])
def test_settings_that_cannot_be_are_errors(gateway, rule, message):
    made = gateway({"access": {"rules": [{"name": "r", **rule}]}}, start=False)
    made.write_config(made.config)
    checked = run_pinfold("check", "--config", str(made.config_file))
    assert checked.returncode == 1 and message in checked.stderr, checked.stderr
