"""`tunnel: inspect` up to TLS 1.2: the server's flight is held back until it has proved who it is,
and a client that verifies nothing sees not a byte of one that has not."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from support.inspection import (
    alert_in, ask, careless, grease, hello_of, inspected, inspections, openssl_server, opened,
    rsa_key, through, with_extension)
from support.interception import no_client_is_connected
from support.origin import reply, serving, Origin
from support.wait import until
from test_interception_pinning import FAULTS, context, host_of

ACCESS_DENIED, UNRECOGNIZED_NAME, HANDSHAKE_FAILURE = 49, 112, 40


def up_to_12(made: ssl.SSLContext) -> ssl.SSLContext:
    if made.maximum_version > ssl.TLSVersion.TLSv1_2 or made.maximum_version < 0:
        made.maximum_version = ssl.TLSVersion.TLSv1_2
    return made


@pytest.fixture(scope="module")
def running(module_gateways, pki):
    """Tunnels to hosts under `pinned.test` need the intermediate's key, all others a chain."""
    roots = [pki.root.pem_file, pki.other_root.pem_file]
    config = inspected("**.pinned.test", [pki.intermediate.pin], roots)
    config["hosts"].append({"match": ["**.test", "127.0.0.1"], "tunnel": "inspect"})
    return module_gateways(config)


def leaf(pki, host, kind="ec", days=(-1, 30)):
    key = rsa_key() if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())
    return pki.intermediate.issue(host, key=key, days=days)


SUITES = [
    ("1.2", "ec", "ECDHE-ECDSA-AES128-GCM-SHA256"), ("1.2", "rsa", "ECDHE-RSA-AES128-GCM-SHA256"),
    ("1.2", "rsa", "ECDHE-RSA-CHACHA20-POLY1305"), ("1.2", "rsa", "DHE-RSA-AES256-GCM-SHA384"),
    ("1.2", "rsa", "AES128-SHA256"), ("1.1", "ec", "ECDHE-ECDSA-AES128-SHA"),
    ("1.1", "rsa", "AES256-SHA"), ("1.0", "rsa", "ECDHE-RSA-AES128-SHA"),
    ("1.0", "rsa", "DHE-RSA-AES128-SHA"), ("1.0", "ec", "ECDHE-ECDSA-AES256-SHA"),
]


@pytest.mark.parametrize(("version", "kind", "suite"), SUITES, ids=lambda value: str(value))
def test_a_server_with_the_right_pin_is_let_through(
    running, workspace, pki, version, kind, suite
):
    host = "right.pinned.test"
    flag = {"1.0": "-tls1", "1.1": "-tls1_1", "1.2": "-tls1_2"}[version]
    before = inspections(running, "verified", version)
    # Without -dhparam the library chooses a group by the strength of the certificate.
    with openssl_server(workspace, leaf(pki, host, kind), flag,
                        "-cipher", f"{suite}:@SECLEVEL=0") as port:
        sock = through(running, host, port, careless(version))
        assert sock.cipher()[0] == suite
        assert ask(sock, host).status == 200
    until(lambda: inspections(running, "verified", version) == before + 1, "it is counted")


REFUSED = {name: reason for name, (reason, _) in FAULTS.items() if name != "an old version"}


@pytest.mark.parametrize("case", REFUSED)
def test_a_server_that_is_not_trusted_is_cut_off_before_its_flight(gateway, pki, origin, case):
    host = host_of(case, "pinned")
    gate = gateway(inspected(host, [pki.intermediate.pin],
                             [pki.root.pem_file, pki.other_root.pem_file]))
    reason, make = FAULTS[case]
    there = origin(lambda _: reply(b"secret"), tls=up_to_12(context(make(pki, host))))
    wire = opened(gate, host, there.port)
    with wire:
        wire.send(hello_of(host))
        assert alert_in(wire.read_to_end()) == ACCESS_DENIED
    (line,) = gate.wait_access(1)
    assert (line["reason"], line["inspected"], line["upstream_tls"]) == (
        reason, "refused", "TLSv1.2")
    assert line["response_bytes"] == 0
    assert inspections(gate, "refused", "1.2") == 1
    assert gate.metric("pinfold_http_request_failures_total", reason=reason) == 1
    gate.wait_log("server refused")
    until(lambda: there.handshake_failures, "the server's connection has ended")
    assert there.application_bytes == b""
    no_client_is_connected(gate)


def test_chain_and_name_hold_without_pins(running, pki, origin):
    for host, made, fits in [
        ("plain.test", pki.intermediate.issue("plain.test"), True),
        ("plain.test", pki.other_root.issue("plain.test"), True),
        ("plain.test", pki.intermediate.issue("else.test"), False),
        ("plain.test", pki.rogue_root.issue("plain.test"), False),
        ("127.0.0.1", pki.intermediate.issue("127.0.0.1"), True),
        ("127.0.0.1", pki.intermediate.issue("plain.test"), False),
    ]:
        there = origin(lambda _: reply(b"hello"), tls=up_to_12(made.server_context()))
        if fits:
            assert ask(through(running, host, there.port), host).body == b"hello"
        else:
            with pytest.raises(ssl.SSLError, match="access denied"):
                through(running, host, there.port)


class Replaying:
    """A server that sends another one's certificate, which it has not the key of."""

    def __init__(self, genuine, own):
        self.genuine, self.own = genuine, own
        self.received = b""

    def __call__(self, connection):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        made = up_to_12(self.own.server_context())
        session = made.wrap_bio(incoming, outgoing, server_side=True)
        sock = connection.socket
        while True:
            data = sock.recv(65536)
            if not data:
                return
            self.received += data
            incoming.write(data)
            try:
                session.do_handshake()
            except ssl.SSLWantReadError:
                pass
            sock.sendall(self._exchanged(outgoing.read()))

    def _exchanged(self, flight: bytes) -> bytes:
        messages = b""
        while flight:
            size = int.from_bytes(flight[3:5], "big")
            assert flight[0] == 22
            messages, flight = messages + flight[5:5 + size], flight[5 + size:]
        result = b""
        while messages:
            size = int.from_bytes(messages[1:4], "big")
            message, messages = messages[:4 + size], messages[4 + size:]
            if message[0] == 11:
                chain = b"".join(
                    len(der).to_bytes(3, "big") + der for der in self.genuine)
                body = len(chain).to_bytes(3, "big") + chain
                message = b"\x0b" + len(body).to_bytes(3, "big") + body
            result += message
        return b"".join(
            b"\x16\x03\x03" + len(part).to_bytes(2, "big") + part
            for part in (result[at:at + 16384] for at in range(0, len(result), 16384)))


@pytest.mark.parametrize("kind", ["ec", "rsa"])
def test_the_genuine_certificate_in_the_wrong_hands_is_refused(
    gateway, pki, scripted_origin, kind
):
    host = "replayed.test"
    gate = gateway(inspected(host, [pki.intermediate.pin], [pki.root.pem_file]))
    genuine, own = leaf(pki, host, kind), leaf(pki, host, kind)
    script = Replaying([genuine.der, pki.intermediate.der], own)
    there = scripted_origin(script)
    hello = hello_of(host)
    with opened(gate, host, there.port) as wire:
        wire.send(hello)
        assert alert_in(wire.read_to_end()) == ACCESS_DENIED
    assert gate.wait_access(1)[0]["reason"] == "tls-unauthenticated"
    gate.wait_log("not signed with its certificate's key")
    assert script.received == hello


# MARK: what is refused before the server hears of it

HELLOS = {
    "not TLS": (b"SSH-2.0-OpenSSH_9\r\n", "tunnel-not-tls", None),
    "a request in clear text": (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "tunnel-not-tls", None),
    "SSLv2": (bytes.fromhex("802e0103010015000000100100800300800700c0") + bytes(40),
              "tunnel-not-tls", None),
    "no name": (hello_of(None), "tunnel-name-missing", UNRECOGNIZED_NAME),
    "another name": (hello_of("other.test"), "tunnel-name-mismatch", UNRECOGNIZED_NAME),
    "an encrypted name": (
        with_extension(hello_of("public.test"), 0xFE0D, grease()), "tunnel-encrypted-hello",
        ACCESS_DENIED),
    "an encrypted name alone": (
        with_extension(hello_of(None), 0xFE0D, grease()), "tunnel-encrypted-hello",
        ACCESS_DENIED),
    "an encrypted name of a draft": (
        with_extension(hello_of("hello.test"), 0xFFCE, b"\0" * 80), "tunnel-encrypted-hello",
        ACCESS_DENIED),
    "half an encrypted name": (
        with_extension(hello_of("hello.test"), 0xFE0D, b"\0\0\1"), "tunnel-encrypted-hello",
        ACCESS_DENIED),
    "a ServerHello": (b"\x16\x03\x03\0\x04\x02\0\0\0", "tunnel-hello-malformed",
                      HANDSHAKE_FAILURE),
    "a message of 1 MiB": (b"\x16\x03\x01\x40\0\x01\x10\0\0", "tunnel-hello-malformed",
                           HANDSHAKE_FAILURE),
    "two names": (with_extension(hello_of("hello.test"), 0, b"\0\4\0\0\1a"),
                  "tunnel-hello-malformed", HANDSHAKE_FAILURE),
}


@pytest.mark.parametrize("case", HELLOS)
def test_a_client_that_cannot_be_inspected_is_refused(gateway, pki, scripted_origin, case):
    host = "hello.test"
    hello, reason, alert = HELLOS[case]
    heard: list[bytes] = []
    there = scripted_origin(lambda connection: heard.append(connection.socket.recv(100)))
    gate = gateway(inspected(host, [pki.intermediate.pin], [pki.root.pem_file]))
    with opened(gate, host, there.port) as wire:
        wire.send(hello)
        received = wire.read_to_end()
    assert received == b"" if alert is None else alert_in(received) == alert
    (line,) = gate.wait_access(1)
    assert (line["reason"], line["inspected"]) == (reason, "refused")
    assert "upstream_tls" not in line
    assert inspections(gate, "refused", "none") == 1
    until(lambda: heard, "the server's connection has ended")
    assert heard == [b""]


def test_a_refused_tunnel_keeps_its_reason_when_its_client_begins_others(gateway, pki, origin):
    """A refused tunnel is answered for a while, and is not closed for another meanwhile."""
    host = "hello.test"
    config = inspected(host, [pki.intermediate.pin], [pki.root.pem_file])
    gate = gateway({**config, "workers": 1, "limits": {"bufferBytes": "1MiB"}})
    there = origin(lambda _: reply(b"", "200 OK"), tls=leaf(pki, host).server_context())
    lied = opened(gate, host, there.port)
    lied.send(hello_of("other.test"))
    begun = [opened(gate, host, there.port) for _ in range(30)]
    for wire in begun:
        wire.send(b"\x16\x03\x01")
    until(lambda: gate.metric("pinfold_client_heads_evicted_total") > 0, "some make way")
    for wire in [lied, *begun]:
        wire.close()
    lines = gate.wait_access(31)
    assert [line.get("reason") for line in lines].count("tunnel-name-mismatch") == 1


def test_a_server_that_speaks_first_speaks_no_tls(gateway, pki, scripted_origin):
    gate = gateway(inspected("first.test", None, [pki.root.pem_file]))
    there = scripted_origin(
        lambda connection: (connection.send("220 ready\r\n"), connection.socket.recv(1)))
    with opened(gate, "first.test", there.port) as wire:
        assert wire.read_to_end() == b""
    assert gate.wait_access(1)[0]["reason"] == "tunnel-not-tls"


def test_an_encrypted_hello_that_cannot_be_read_before_tls_13_does_no_harm(
    running, pki, origin
):
    """As browsers send it: GREASE, beside the name of the host."""
    host = "grease.pinned.test"
    there = origin(lambda _: reply(b"x"), tls=up_to_12(leaf(pki, host).server_context()))
    with opened(running, host, there.port) as wire:
        wire.send(with_extension(hello_of(host), 0xFE0D, grease()))
        assert wire.read_exactly(6)[5] == 2  # a ServerHello


@pytest.mark.parametrize("spelling", ["UPPER.pinned.test", "upper.pinned.test"])
def test_names_are_compared_without_case(running, pki, origin, spelling):
    there = origin(lambda _: reply(b"x"),
                   tls=up_to_12(leaf(pki, "upper.pinned.test").server_context()))
    sock = through(running, spelling, there.port, name="Upper.Pinned.Test")
    assert ask(sock, "upper.pinned.test").body == b"x"


# MARK: fragments, stalls and floods


def pieces(data: bytes, size: int):
    return (data[at:at + size] for at in range(0, len(data), size))


class InPieces:
    """A TLS server whose bytes go out in pieces, and its first flight in records, of a size."""

    def __init__(self, made: ssl.SSLContext, size: int, records: int):
        self.made, self.size, self.records = made, size, records

    def __call__(self, connection):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = self.made.wrap_bio(incoming, outgoing, server_side=True)
        sock = connection.socket
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        first = True
        while True:
            try:
                session.do_handshake()
                break
            except ssl.SSLWantReadError:
                data = outgoing.read()
                if data and first:
                    data, first = self._cut(data), False
                for piece in pieces(data, self.size):
                    sock.sendall(piece)
                more = sock.recv(65536)
                if not more:
                    return
                incoming.write(more)
        session.write(b"in pieces")
        for piece in pieces(outgoing.read(), self.size):
            sock.sendall(piece)
        sock.recv(65536)

    def _cut(self, flight: bytes) -> bytes:
        messages = b""
        while flight:
            size = int.from_bytes(flight[3:5], "big")
            messages, flight = messages + flight[5:5 + size], flight[5 + size:]
        return b"".join(b"\x16\x03\x03" + len(part).to_bytes(2, "big") + part
                        for part in pieces(messages, self.records))


@pytest.mark.parametrize(("size", "records"), [(1, 1), (1, 16384), (7, 3), (16384, 1)])
def test_flights_in_any_fragments_are_put_together(
    running, pki, scripted_origin, size, records
):
    host = "pieces.pinned.test"
    made = up_to_12(leaf(pki, host).server_context())
    there = scripted_origin(InPieces(made, size, records))
    with through(running, host, there.port) as sock:
        assert sock.recv(9) == b"in pieces"


@pytest.mark.parametrize("size", [1, 5, 100])
def test_a_client_in_fragments_is_understood(running, pki, origin, size):
    host = "slow.pinned.test"
    there = origin(lambda _: reply(b"x"), tls=up_to_12(leaf(pki, host).server_context()))
    with opened(running, host, there.port) as wire:
        wire.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces(hello_of(host), size):
            wire.send(piece)
        assert wire.read_exactly(6)[5] == 2


STALLS = ["before the ClientHello", "within the ClientHello", "before the flight",
          "within the flight", "after the flight"]


@pytest.mark.parametrize("stall", STALLS)
def test_a_handshake_that_stalls_ends(gateway, pki, scripted_origin, stall):
    host = "stall.test"
    config = inspected(host, [pki.intermediate.pin], [pki.root.pem_file])
    config["timeouts"] = {"connect": "300ms", "head": "300ms"}
    gate = gateway(config)
    made = up_to_12(leaf(pki, host).server_context())

    def script(connection):
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = made.wrap_bio(incoming, outgoing, server_side=True)
        incoming.write(connection.socket.recv(65536))
        try:
            session.do_handshake()
        except ssl.SSLError:
            return
        finally:
            data = outgoing.read()
            keep = {"before the flight": 0, "within the flight": len(data) // 2}.get(
                stall, len(data))
            connection.socket.sendall(data[:keep])
            connection.socket.recv(1)

    there = scripted_origin(script)
    hello = hello_of(host)
    with opened(gate, host, there.port) as wire:
        wire.send({STALLS[0]: b"", STALLS[1]: hello[:50]}.get(stall, hello))
        received = wire.read_to_end()
    line = gate.wait_access(1)[0]
    if stall in STALLS[2:4]:
        assert line["reason"] == "tls-timeout"
    else:
        assert line["reason"] == "tunnel-handshake-timeout"
    if stall == STALLS[4]:
        assert received[0] == 22 and received[-7:-2] == b"\x15\x03\x03\0\x02"
    else:
        assert alert_in(received) == HANDSHAKE_FAILURE
    no_client_is_connected(gate)


FLOODS = {
    "a chain of 100": lambda leaf, more: [leaf, *[more] * 99],
    "a certificate of 1 MiB": lambda leaf, more: [leaf, b"\x30\x83\x10\0\0" + bytes(1 << 20)],
    "an empty chain": lambda leaf, more: [],
    "something else": lambda leaf, more: [b"certificate"],
    "bytes behind it": lambda leaf, more: [leaf + b"\0", more],
}


@pytest.mark.parametrize("case", FLOODS)
def test_what_is_no_chain_is_refused_at_bounded_cost(gateway, pki, scripted_origin, case):
    host = "flood.test"
    gate = gateway(inspected(host, [pki.intermediate.pin], [pki.root.pem_file]))
    made = leaf(pki, host)
    script = Replaying(FLOODS[case](made.der, pki.intermediate.der), made)
    there = scripted_origin(script)
    before = gate.rss_bytes
    with opened(gate, host, there.port) as wire:
        wire.send(hello_of(host))
        assert alert_in(wire.read_to_end()) in (ACCESS_DENIED, HANDSHAKE_FAILURE)
    assert gate.wait_access(1)[0]["inspected"] == "refused"
    assert gate.rss_bytes - before < 8 << 20


def test_a_client_that_leaves_leaves_nothing(gateway, pki, scripted_origin):
    host = "leaving.test"
    gate = gateway(inspected(host, None, [pki.root.pem_file]))
    gone = threading.Event()
    there = scripted_origin(lambda connection: (connection.socket.recv(1 << 16),
                                                connection.socket.recv(1), gone.set()))
    with opened(gate, host, there.port) as wire:
        wire.send(hello_of(host))
        until(lambda: there.accepted, "the server is connected")
        wire.reset()
    assert gone.wait(10)
    assert "reason" not in gate.wait_access(1)[0]
    no_client_is_connected(gate)


def test_what_goes_through_is_relayed_as_in_any_tunnel(running, pki, origin):
    host = "bulk.pinned.test"
    body = bytes(range(256)) * 40_000
    there = origin(lambda request: reply(request.body or body),
                   tls=up_to_12(leaf(pki, host).server_context()))
    assert ask(through(running, host, there.port), host).body == body


def test_curl_is_unaware(running, pki, origin):
    host = "curl.pinned.test"
    there = origin(lambda _: reply(b"served"), tls=up_to_12(leaf(pki, host).server_context()))
    done = subprocess.run(
        ["curl", "-sS", "-x", running.proxy_url, "--cacert", str(pki.root.pem_file),
         f"https://{host}:{there.port}/"], capture_output=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, b"served"), done.stderr
