"""`tls13Tunnel`: inspected tunnels in which TLS 1.3 is spoken, where the server's certificate is
encrypted: they are refused, another connection is verified, or they are intercepted."""

from __future__ import annotations

import contextlib
import ssl
import threading

import pytest
from support.echserver import EncryptedHelloServer
from support.inspection import (
    alert_in, ask, careless, grease, hello_of, inspected, inspections, opened, through,
    with_extension)
from support.interception import Inside, no_client_is_connected
from support.origin import reply
from support.secondhello import SecondHelloClient, handshake_records
from support.secure import reload
from support.wait import until
from test_interception_pinning import FAULTS, context, host_of
from test_pinning import LEFT_OUT, left_out

PROTOCOL_VERSION, ACCESS_DENIED, ILLEGAL_PARAMETER, UNRECOGNIZED_NAME = 70, 49, 47, 112
HOST = "new.test"


def configured(pki, mode: str, pins=None, host: str = HOST, **keys) -> dict:
    return inspected(host, pins or [pki.intermediate.pin],
                     [pki.root.pem_file, pki.other_root.pem_file], tls13Tunnel=mode, **keys)


@pytest.fixture
def there(origin, pki):
    return origin(lambda _: reply(b"served"), tls=pki.intermediate.issue(HOST).server_context())


# MARK: refuse


@pytest.mark.parametrize("written", [True, False])
def test_it_is_refused_by_default(gateway, pki, there, written):
    config = configured(pki, "refuse")
    if not written:
        del config["hosts"][0]["tls13Tunnel"]
    gate = gateway(config)
    with opened(gate, HOST, there.port) as wire:
        wire.send(hello_of(HOST, None))
        assert alert_in(wire.read_to_end()) == PROTOCOL_VERSION
    (line,) = gate.wait_access(1)
    assert (line["reason"], line["inspected"], line["upstream_tls"]) == (
        "tunnel-tls13-refused", "refused", "TLSv1.3")
    assert inspections(gate, "refused", "1.3") == 1
    # The same server and the same pins, by TLS 1.2.
    assert ask(through(gate, HOST, there.port, careless("1.2")), HOST).body == b"served"


def test_a_server_that_asks_for_another_hello_is_refused_too(gateway, pki, origin):
    made = pki.intermediate.issue(HOST).server_context()
    made.set_ecdh_curve("secp521r1")
    there = origin(lambda _: reply(b"served"), tls=made)
    for mode, body in [("refuse", None), ("probe", b"served")]:
        gate = gateway(configured(pki, mode))
        if body is None:
            with pytest.raises(ssl.SSLError, match="protocol version"):
                through(gate, HOST, there.port)
        else:
            assert ask(through(gate, HOST, there.port), HOST).body == body


# MARK: probe


def test_a_probe_verifies_the_server_and_is_kept(gateway, pki, there):
    gate = gateway(configured(pki, "probe") | {"workers": 1})
    for count in range(1, 4):
        assert ask(through(gate, HOST, there.port), HOST).body == b"served"
        line = gate.wait_access(count)[-1]
        assert (line["inspected"], line["upstream_tls"]) == ("probed", "TLSv1.3")
        assert "reason" not in line
    assert inspections(gate, "probed", "1.3") == 3
    until(lambda: there.accepted == 4, "three tunnels and one probe")
    assert gate.metric("pinfold_tls_handshakes_total", result="ok", resumed="false") == 1


REFUSED = {name: reason for name, (reason, _) in FAULTS.items() if name != "an old version"}


@pytest.mark.parametrize("case", REFUSED)
def test_a_server_that_the_probe_refuses_is_cut_off(gateway, pki, origin, case):
    host = host_of(case, "new")
    reason, make = FAULTS[case]
    gate = gateway(configured(pki, "probe", host=host))
    there = origin(lambda _: reply(b"secret"), tls=context(make(pki, host)))
    for count in (1, 2):
        with opened(gate, host, there.port) as wire:
            wire.send(hello_of(host, None))
            assert alert_in(wire.read_to_end()) == ACCESS_DENIED
        line = gate.wait_access(count)[-1]
        assert (line["reason"], line["inspected"]) == (reason, "refused")
    assert inspections(gate, "refused", "1.3") == 2
    # Refusals are not kept: whoever corrects the server is served at once.
    until(lambda: there.accepted == 4, "each tunnel has its probe")
    assert there.application_bytes == b""
    no_client_is_connected(gate)


def test_the_probe_asks_what_the_client_asks(gateway, pki, origin):
    made = pki.intermediate.issue(HOST).server_context(alpn=("h2", "http/1.1"))
    there = origin(lambda _: reply(b"served"), tls=made)
    gate = gateway(configured(pki, "probe"))
    client = careless()
    client.set_alpn_protocols(["h2"])
    with through(gate, HOST, there.port, client) as sock:
        assert sock.selected_alpn_protocol() == "h2"
    assert made.names == [HOST, HOST]


def test_a_probe_that_is_not_answered_ends(gateway, pki, scripted_origin):
    """The tunnel is answered, and the probe is not."""
    made = pki.intermediate.issue(HOST).server_context()
    first = threading.Lock()

    def script(connection):
        if not first.acquire(blocking=False):
            connection.socket.recv(1 << 16)
            connection.socket.recv(1)
            return
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = made.wrap_bio(incoming, outgoing, server_side=True)
        incoming.write(connection.socket.recv(1 << 16))
        with pytest.raises(ssl.SSLWantReadError):
            session.do_handshake()
        connection.send(outgoing.read())
        connection.socket.recv(1)

    there = scripted_origin(script)
    config = configured(pki, "probe")
    config["timeouts"] = {"connect": "300ms"}
    gate = gateway(config)
    with opened(gate, HOST, there.port) as wire:
        wire.send(hello_of(HOST, None))
        assert alert_in(wire.read_to_end()) == ACCESS_DENIED
    assert gate.wait_access(1)[0]["reason"] == "tls-timeout"
    no_client_is_connected(gate)


def test_a_probe_is_not_answered_for_another_configuration(gateway, pki, there):
    config = configured(pki, "probe")
    gate = gateway(config)
    assert ask(through(gate, HOST, there.port), HOST).body == b"served"
    tightened = configured(pki, "probe", pins=[pki.other_root.pin])
    reload(gate, gate.config | {key: tightened[key] for key in ("pinsets", "hosts")})
    with pytest.raises(ssl.SSLError, match="access denied"):
        through(gate, HOST, there.port)
    assert "tls-no-pin-matches" in {line.get("reason") for line in gate.wait_access(2)}


def test_who_answers_the_probe_and_not_the_tunnel_is_not_found_out(gateway, pki, scripted_origin):
    """The documented limit of the weaker check, and why it is reported separately."""
    contexts = [pki.rogue_root.issue(HOST).server_context(),
                pki.intermediate.issue(HOST).server_context()]

    def script(connection):
        made = contexts.pop(0)
        with made.wrap_socket(connection.socket, server_side=True) as sock:
            while sock.recv(65536):
                sock.sendall(reply(b"rogue", "200 OK", "Connection: close"))
                return

    there = scripted_origin(script)
    gate = gateway(configured(pki, "probe"))
    assert ask(through(gate, HOST, there.port), HOST).body == b"rogue"
    assert gate.wait_access(1)[0]["inspected"] == "probed"


def test_grease_is_let_through_where_no_server_reads_it(gateway, pki, there):
    """What a browser sends beside the name of the host; this server knows nothing of it."""
    gate = gateway(configured(pki, "probe"))
    with opened(gate, HOST, there.port) as wire:
        wire.send(with_extension(hello_of(HOST, None), 0xFE0D, grease()))
        assert wire.read_exactly(6)[5] == 2  # a ServerHello


def test_grease_is_refused_where_the_server_might_read_it(gateway, pki):
    """The name inside would be one for which the gateway has not verified the server."""
    leaf = pki.intermediate.issue(HOST)
    gate = gateway(configured(pki, "probe"))
    with contextlib.closing(EncryptedHelloServer(leaf.chain_file(), leaf.key_file)) as there:
        for count in (1, 2):  # the second time by what is kept of the probe
            with opened(gate, HOST, there.port) as wire:
                wire.send(with_extension(hello_of(HOST, None), 0xFE0D, grease()))
                assert alert_in(wire.read_to_end()) == ACCESS_DENIED
            line = gate.wait_access(count)[-1]
            assert (line["reason"], line["upstream_tls"]) == ("tunnel-encrypted-hello", "TLSv1.3")
        assert there.asked == 3
        # Who sends none is served.
        assert ask(through(gate, HOST, there.port), HOST).body == b"read"


@pytest.mark.parametrize("first", ["root", "other"])
@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_pin_holds_in_whatever_order_the_intermediates_are_sent(
        gateway, pki, origin, version, first):
    leaf = pki.intermediate.issue(HOST)
    leaf.chain = [pki.intermediate.certificate, pki.intermediate.cross_signed(pki.other_root)]
    if first == "other":
        leaf.chain.reverse()
    there = origin(lambda _: reply(b"served"), tls=leaf.server_context())
    for pin in (pki.root.pin, pki.other_root.pin):
        gate = gateway(configured(pki, "probe", pins=[pin]))
        assert ask(through(gate, HOST, there.port, careless(version)), HOST).body == b"served"


@pytest.mark.parametrize("case", LEFT_OUT)
@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("mode", ["publicKey", "certificate"])
def test_a_pin_holds_where_what_leads_to_it_is_trusted_and_not_sent(
        gateway, pki, origin, mode, version, case):
    leaf, trusted, pinned, right = left_out(pki, case, HOST)
    pin = pinned.pin if mode == "publicKey" else pinned.fingerprint
    there = origin(lambda _: reply(b"served"), tls=leaf.server_context())
    config = inspected(HOST, [pin], [one.pem_file for one in trusted], tls13Tunnel="probe")
    config["pinsets"]["p"]["mode"] = mode
    gate = gateway(config)
    if right:
        assert ask(through(gate, HOST, there.port, careless(version)), HOST).body == b"served"
    else:
        with pytest.raises(ssl.SSLError):
            through(gate, HOST, there.port, careless(version))
        assert gate.wait_access(1)[0]["reason"] == "tls-no-pin-matches"


# MARK: a second ClientHello

SECRET = "secret.test"
REQUEST = b"GET /there HTTP/1.1\r\nHost: there\r\nConnection: close\r\n\r\n"


@pytest.fixture
def retrying(origin, pki):
    """A server of two hosts that asks for a second ClientHello, and what names it was asked for."""
    made = pki.intermediate.issue(HOST, SECRET).server_context(alpn=("one", "two"))
    made.set_ecdh_curve("secp521r1")
    there = origin(lambda _: reply(b"served"), tls=made)
    there.names = made.names
    return there


def with_secret(pki) -> dict:
    """Tunnels to one host of the server are probed, those to the other are refused."""
    config = configured(pki, "probe")
    config["hosts"].append({"match": [SECRET], "tunnel": "refuse", "pinsets": ["p"]})
    return config


@contextlib.contextmanager
def asked_twice(gate, port: int, protocols: bytes = b""):
    client = SecondHelloClient(opened(gate, HOST, port), HOST, protocols)
    try:
        yield client
    finally:
        client.close()


def test_a_second_hello_for_another_host_never_reaches_the_server(gateway, pki, retrying):
    gate = gateway(with_secret(pki))
    with asked_twice(gate, retrying.port) as client:
        received = client.shake(SECRET)
        assert received is not None, "the handshake came to its end"
        assert alert_in(received) == UNRECOGNIZED_NAME
    (line,) = gate.wait_access(1)
    assert (line["reason"], line["inspected"], line["upstream_tls"]) == (
        "tunnel-name-mismatch", "refused", "TLSv1.3")
    assert inspections(gate, "refused", "1.3") == 1
    assert SECRET not in retrying.names and retrying.requests == []
    no_client_is_connected(gate)


def test_a_second_hello_with_other_protocols_never_reaches_the_server(gateway, pki, retrying):
    """The probe was asked what the first had offered."""
    gate = gateway(with_secret(pki))
    with asked_twice(gate, retrying.port, b"\3one") as client:
        received = client.shake(HOST, b"\3two")
        assert received is not None, "the handshake came to its end"
        assert alert_in(received) == ILLEGAL_PARAMETER
    (line,) = gate.wait_access(1)
    assert (line["reason"], line["inspected"]) == ("tunnel-hello-changed", "refused")
    assert retrying.requests == []


@pytest.mark.parametrize("records", [1, 7, 1 << 14])
def test_a_second_hello_that_is_the_first_is_let_through(gateway, pki, retrying, records):
    gate = gateway(with_secret(pki))
    with asked_twice(gate, retrying.port, b"\3one") as client:
        assert client.shake(
            HOST, b"\3one", lambda flight: handshake_records(flight, records)) is None
        assert b"served" in client.ask(REQUEST)
    assert gate.wait_access(1)[0]["inspected"] == "probed"
    assert set(retrying.names) == {HOST}


def encrypted(key: bytes, payload: bytes, configuration: int = 42) -> bytes:
    """An encrypted ClientHello as it goes by openly (RFC 9849, section 5)."""
    fields = b"".join(len(one).to_bytes(2, "big") + one for one in (key, payload))
    return b"\0\0\x01\0\x01" + bytes([configuration]) + fields


@pytest.mark.parametrize(("second", "passes"), [
    (encrypted(b"", b"other"), True), (encrypted(b"key", b"first"), True),
    (encrypted(b"key", b"other"), False), (encrypted(b"", b"other", 43), False)])
def test_a_second_hello_may_be_encrypted_again_where_no_server_reads_it(
        gateway, pki, retrying, second, passes):
    """RFC 9849 §6.1.5. What OpenSSL makes of a hello that was changed on its way is no matter."""
    gate = gateway(with_secret(pki))
    hellos = iter((encrypted(b"key", b"first"), second))

    def change(flight: bytes) -> bytes:
        start = 6 if flight.startswith(b"\x14") else 0  # behind a change of cipher
        return flight[:start] + with_extension(flight[start:], 0xFE0D, next(hellos))

    with asked_twice(gate, retrying.port) as client:
        client.wire.send(change(client.hello()))
        client.take(client.wire.socket.recv(1 << 16))
        client.wire.send(change(client.hello()))
        received = client.wire.socket.recv(1 << 16)
    if passes:
        assert received[:1] == b"\x16" and received[5] == 2, "a ServerHello"
    else:
        assert alert_in(received) == ILLEGAL_PARAMETER
        assert gate.wait_access(1)[0]["reason"] == "tunnel-hello-changed"


def test_a_second_hello_with_something_between_its_fragments_is_refused(gateway, pki, retrying):
    gate = gateway(with_secret(pki))
    with asked_twice(gate, retrying.port) as client:
        received = client.shake(
            HOST, b"", lambda flight: handshake_records(flight, 100, b"\x14\3\3\0\1\1"))
        assert received is not None and alert_in(received) == 40
    assert gate.wait_access(1)[0]["reason"] == "tunnel-hello-malformed"
    assert retrying.requests == []


def test_a_second_hello_that_does_not_come_is_not_waited_for(gateway, pki, retrying):
    config = with_secret(pki)
    config["timeouts"]["head"] = "300ms"
    gate = gateway(config)
    with asked_twice(gate, retrying.port) as client:
        received = client.shake(HOST, b"", lambda flight: flight[:-1])
        assert received is not None and alert_in(received) == 40
    assert gate.wait_access(1)[0]["reason"] == "tunnel-handshake-timeout"
    no_client_is_connected(gate)


# MARK: intercept


def test_it_is_intercepted_instead(gateway, pki, authority, there):
    gate = gateway(configured(pki, "intercept") | {"interception": authority.section})
    trusting = ssl.create_default_context(cafile=str(authority.file))
    at = f"{HOST}:{there.port}"
    assert ask(through(gate, HOST, there.port, trusting), at).body == b"served"
    lines = gate.wait_access(2)
    connect = next(line for line in lines if line["method"] == "CONNECT")
    assert (connect["inspected"], connect["intercepted"]) == ("intercepted", True)
    assert inspections(gate, "intercepted", "1.3") == 1
    assert there.requests[-1].get("via")
    # TLS 1.2 is not: the client sees the server's own certificate.
    real = ssl.create_default_context(cafile=str(pki.root.pem_file))
    real.maximum_version = ssl.TLSVersion.TLSv1_2
    assert ask(through(gate, HOST, there.port, real), HOST).body == b"served"
    assert not there.requests[-1].get("via")
    assert inspections(gate, "verified", "1.2") == 1


def test_a_server_that_is_not_trusted_is_not_spoken_for(gateway, pki, authority, origin):
    there = origin(lambda _: reply(b"x"), tls=pki.other_root.issue(HOST).server_context())
    gate = gateway(configured(pki, "intercept") | {"interception": authority.section})
    with opened(gate, HOST, there.port) as wire:
        wire.send(hello_of(HOST, None))
        alert_in(wire.read_to_end())
    assert gate.wait_access(1)[0]["reason"] == "tls-no-pin-matches"
    no_client_is_connected(gate)


def test_an_open_tunnel_continues_after_a_reload(gateway, pki, authority, there):
    gate = gateway(configured(pki, "intercept") | {"interception": authority.section})
    inside = Inside(authority.file, HOST)
    with opened(gate, HOST, there.port) as wire:
        inside.shake(wire)
        request = f"GET / HTTP/1.1\r\nHost: {HOST}:{there.port}\r\n\r\n".encode()
        assert b"served" in inside.ask(wire, request, b"served")
        reload(gate)
        assert b"served" in inside.ask(wire, request, b"served")


@pytest.mark.parametrize("minimum", ["1.2", "1.3"])
def test_a_minimum_of_tls_13_holds_in_tunnels(gateway, pki, there, minimum):
    gate = gateway(configured(pki, "probe", tls={"minimum": minimum}))
    if minimum == "1.2":
        assert ask(through(gate, HOST, there.port, careless("1.2")), HOST).body == b"served"
        return
    with pytest.raises(ssl.SSLError, match="protocol version"):
        through(gate, HOST, there.port, careless("1.2"))
    assert gate.wait_access(1)[0]["reason"] == "tls-version-refused"
    assert ask(through(gate, HOST, there.port), HOST).body == b"served"
