"""Sessions in inspected tunnels: no certificate comes with them, so they go on only where they began
under the gateway's eyes; and what a reload does to tunnels that are being verified."""

from __future__ import annotations

import ssl
import threading

import pytest
from support.inspection import (
    ask, careless, hello_of, inspected, inspections, openssl_server, opened, through)
from support.interception import no_client_is_connected
from support.origin import reply
from support.secure import reload
from support.wait import until
from support.wire import Wire

HOST = "session.test"


@pytest.fixture(params=["ticket", "identifier"])
def port(request, workspace, pki):
    flags = ["-no_ticket"] if request.param == "identifier" else []
    with openssl_server(workspace, pki.intermediate.issue(HOST), "-tls1_2", *flags) as port:
        yield port


def configured(pki, **keys) -> dict:
    return inspected(HOST, [pki.intermediate.pin],
                     [pki.root.pem_file, pki.other_root.pem_file], **keys)


def visit(gate, port, client, session=None, host=HOST) -> tuple[ssl.SSLSession, bool]:
    """A request; the session, and whether it was an old one."""
    sock = through(gate, host, port, client, session=session)
    found = sock.session, sock.session_reused
    assert ask(sock, host).status == 200
    return found


def test_a_session_that_was_verified_is_resumed(gateway, pki, port):
    gate = gateway(configured(pki))
    client = careless("1.2")
    session, reused = visit(gate, port, client)
    assert not reused
    for _ in range(3):
        session, reused = visit(gate, port, client, session)
        assert reused
    assert inspections(gate, "verified", "1.2") == 1
    assert inspections(gate, "resumed", "1.2") == 3
    lines = gate.wait_access(4)
    assert sorted(line["inspected"] for line in lines) == ["resumed"] * 3 + ["verified"]


def test_a_session_of_elsewhere_is_refused_and_a_full_handshake_follows(gateway, pki, port):
    gate = gateway(configured(pki))
    client = careless("1.2")
    with client.wrap_socket(
            Wire(("127.0.0.1", port)).socket, server_hostname=HOST) as sock:
        session = sock.session
        wire = Wire(("", 0), sock=sock)
        wire.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert wire.read_to_end()
    with pytest.raises(ssl.SSLError, match="handshake failure"):
        through(gate, HOST, port, client, session=session)
    assert gate.wait_access(1)[0]["reason"] == "tunnel-session-unknown"
    assert not visit(gate, port, client)[1]


def test_a_session_ends_with_the_pins_under_which_it_began(gateway, pki, port):
    gate = gateway(configured(pki))
    client = careless("1.2")
    session, _ = visit(gate, port, client)
    # Nothing changes: it goes on.
    reload(gate)
    session, reused = visit(gate, port, client, session)
    assert reused
    # Another pin is added: what was seen under the old ones counts no more.
    changed = configured(pki)
    changed["pinsets"]["p"]["pins"].append(pki.other_root.pin)
    reload(gate, gate.config | {"pinsets": changed["pinsets"]})
    with pytest.raises(ssl.SSLError, match="handshake failure"):
        through(gate, HOST, port, client, session=session)
    session, reused = visit(gate, port, client)
    assert not reused
    # The pins are tightened: the server is not reached at all.
    changed["pinsets"]["p"]["pins"] = [pki.other_root.pin]
    reload(gate, gate.config | {"pinsets": changed["pinsets"]})
    with pytest.raises(ssl.SSLError, match="handshake failure"):
        through(gate, HOST, port, client, session=session)
    with pytest.raises(ssl.SSLError, match="access denied"):
        through(gate, HOST, port, client)
    reasons = [line.get("reason") for line in gate.wait_access(6)]
    assert reasons.count("tunnel-session-unknown") == 2
    assert reasons.count("tls-no-pin-matches") == 1


def test_a_session_is_one_hosts(gateway, pki, origin):
    """Two names of one server, one of which is inspected since a moment ago."""
    made = pki.intermediate.issue(HOST, "other.test").server_context(
        maximum=ssl.TLSVersion.TLSv1_2)
    there = origin(lambda _: reply(b"served", "200 OK", "Connection: close"), tls=made)
    config = configured(pki)
    config["hosts"][0]["match"].append("other.test")
    gate = gateway(config)
    client = careless("1.2")
    session, _ = visit(gate, there.port, client)
    with pytest.raises(ssl.SSLError, match="handshake failure"):
        through(gate, "other.test", there.port, client, session=session)
    # The first tunnel may end after the second one.
    reasons = [line.get("reason") for line in gate.wait_access(2)]
    assert sorted(map(str, reasons)) == ["None", "tunnel-session-unknown"]


def test_a_reload_applies_to_servers_that_are_being_verified(gateway, pki, scripted_origin):
    """The server's flight comes when other pins are in force than at the CONNECT."""
    made = pki.intermediate.issue(HOST).server_context(maximum=ssl.TLSVersion.TLSv1_2)
    received, may_answer = threading.Event(), threading.Event()

    def script(connection):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = made.wrap_bio(incoming, outgoing, server_side=True)
        incoming.write(connection.socket.recv(1 << 16))
        received.set()
        with pytest.raises(ssl.SSLWantReadError):
            session.do_handshake()
        assert may_answer.wait(20)
        connection.send(outgoing.read())
        connection.socket.recv(1)

    there = scripted_origin(script)
    base = configured(pki)
    tightened = configured(pki)
    tightened["pinsets"]["p"]["pins"] = [pki.other_root.pin]
    loosened = configured(pki)
    loosened["pinsets"]["p"]["pins"].append(pki.other_root.pin)
    refused = configured(pki)
    refused["hosts"][0]["tunnel"] = "refuse"
    passed = configured(pki)
    passed["hosts"][0]["tunnel"] = "pass"
    for config, reason in [(tightened, "tls-no-pin-matches"), (loosened, None),
                           (refused, "superseded"), (passed, "superseded")]:
        received.clear()
        may_answer.clear()
        gate = gateway(base)
        with opened(gate, HOST, there.port) as wire:
            wire.send(hello_of(HOST))
            assert received.wait(10)
            reload(gate, gate.config | {key: config[key] for key in ("hosts", "pinsets")})
            may_answer.set()
            if reason is None:
                assert wire.read_exactly(6)[5] == 2
                continue
            wire.read_to_end()
        assert gate.wait_access(1)[0]["reason"] == reason
        no_client_is_connected(gate)


def test_fifty_clients_resume_at_once(gateway, pki, port):
    gate = gateway(configured(pki))
    results: list[bool] = []

    def client() -> None:
        own = careless("1.2")
        session, _ = visit(gate, port, own)
        results.append(visit(gate, port, own, session)[1])

    threads = [threading.Thread(target=client) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 50
    until(lambda: inspections(gate, "resumed", "1.2") == 50, "all are counted")
    no_client_is_connected(gate)
