"""TLS within TLS: a client that speaks TLS to its proxy is intercepted like any other."""

from __future__ import annotations

import contextlib
import os
import signal
import ssl

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from support.interception import (
    HOST, OTHER, Inside, InnerWire, connect_head, no_client_is_connected)
from support.origin import chunked, reply
from support.secure import NAME, client_context, curl, forward, reload, secure_wire, tls_of
from support.wait import until
from support.websocket import converse, serving
from support.wire import request

LONG = os.urandom(3 << 20)


@pytest.fixture(scope="module")
def leaf(pki):
    return pki.intermediate.issue(NAME, "127.0.0.1")


@pytest.fixture
def settings(pki, authority, leaf) -> dict:
    return {"workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
            "listeners": [forward(tls_of(leaf))], "interception": authority.section,
            "hosts": [{"match": [HOST], "intercept": True}]}


@pytest.fixture
def running(gateway, settings):
    return gateway(settings)


@pytest.fixture
def there(origin, pki):
    def answer(seen):
        body = LONG if seen.target == "/long" else seen.method.encode() + b" " + seen.body
        return reply(body, "200 OK", "Cache-Control: no-store")

    return origin(answer, tls=pki.intermediate.issue(HOST, OTHER).server_context())


@pytest.fixture
def opened(running, there, pki, authority):
    """A tunnel, and the TLS of the client in it."""
    wire = tunnel(running, there, pki, authority)
    with wire:
        yield wire


def tunnel(running, there, pki, authority, **options) -> InnerWire:
    outer = secure_wire(running, pki.root, **options)
    outer.send(connect_head(HOST, there.port))
    assert outer.read_head().status == 200
    return InnerWire(outer, Inside(authority.file)).shake()


def path(there, target: str = "/", **fields) -> bytes:
    return request(target, host=f"{HOST}:{there.port}", **fields)


def test_curl_gets_and_posts(running, there, authority, pki, tmp_path):
    (tmp_path / "long").write_bytes(LONG)
    url = f"https://{HOST}:{there.port}"
    proxy = ["-x", f"https://127.0.0.1:{running.proxy[1]}", "--proxy-cacert",
             str(pki.root.pem_file), "--cacert", str(authority.file), "--http1.1"]
    seen = curl(*proxy, f"{url}/one", f"{url}/two", "-d", "a body", "-w", " %{num_connects} ")
    assert seen == "POST a body 1 POST a body 0 "
    seen = curl(*proxy, "--data-binary", f"@{tmp_path / 'long'}", "-H", "Expect:",
                "-o", str(tmp_path / "echo"), f"{url}/echo")
    assert (tmp_path / "echo").read_bytes() == b"POST " + LONG
    assert all("pinfold" in one.get("via") for one in there.requests)
    assert running.metric("pinfold_tunnels_intercepted_total") == 2
    assert running.metric("pinfold_tunnels_opened_total") == 0
    outer, inner, *_ = running.wait_access(5)
    assert (outer["method"], outer["intercepted"]) == ("CONNECT", True)
    assert (inner["method"], inner["tunnel"]) == ("POST", f"{HOST}:{there.port}")
    no_client_is_connected(running)


@pytest.mark.parametrize("outer", ["1.2", "1.3"])
@pytest.mark.parametrize("inner", ["1.2", "1.3"])
def test_versions(running, there, authority, pki, outer, inner):
    versions = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
    context = client_context(pki.root)
    context.maximum_version = versions[outer]
    with secure_wire(running, pki.root, context=context) as wire:
        wire.send(connect_head(HOST, there.port))
        assert wire.read_head().status == 200
        inside = Inside(authority.file, maximum_version=versions[inner])
        with InnerWire(wire, inside).shake() as one:
            assert one.ask(path(there)).body == b"GET "
            assert one.ask(path(there, "/long")).body == LONG
            assert one.ask(path(there, method="POST", body=LONG)).body == b"POST " + LONG
            assert one.ask(path(there)).body == b"GET "
    assert [line.get("client_tls") for line in running.wait_access(2)[:2]] == [
        f"TLSv{outer}", f"TLSv{inner}"]
    for version in versions:
        assert running.metric("pinfold_client_tls_handshakes_total", version=version) == (
            (version == outer) + (version == inner))


def test_a_hello_in_the_record_of_connect(running, there, authority, pki):
    inside = Inside(authority.file)
    with secure_wire(running, pki.root) as wire:
        wire.send(connect_head(HOST, there.port) + inside.hello)
        assert wire.read_head().status == 200
        assert InnerWire(wire, inside).shake().ask(path(there)).body == b"GET "


def test_a_connect_and_a_hello_in_records_of_one_byte(running, there, authority, pki):
    inside = Inside(authority.file)
    with secure_wire(running, pki.root) as wire:
        data = connect_head(HOST, there.port) + inside.hello
        for index in range(len(data)):
            wire.send(data[index:index + 1])
        assert wire.read_head().status == 200
        assert InnerWire(wire, inside).shake().ask(path(there)).body == b"GET "
    no_client_is_connected(running)


def test_requests_in_one_record_and_a_request_in_many(opened, there):
    opened.send(path(there) * 5)
    for _ in range(5):
        assert opened.read_final().body == b"GET "
    for byte in path(there):
        opened.send(bytes([byte]))
    assert opened.read_final().body == b"GET "
    # Twenty inner records in one of the outer ones.
    for byte in path(there)[:20]:
        opened.inside.tls.write(bytes([byte]))
    opened.outer.send(opened.inside.outgoing.read())
    opened.send(path(there)[20:])
    assert opened.read_final().body == b"GET "


def test_behind_a_pipelined_request_whose_answer_fills_the_socket(
        running, there, authority, pki, origin):
    """The 200 waits for room in the outer session before the inner handshake begins."""
    long = origin(lambda _: reply(LONG * 2, "200 OK", "Cache-Control: no-store"))
    inside = Inside(authority.file)
    with secure_wire(running, pki.root) as wire:
        wire.send(request(long.url()) + connect_head(HOST, there.port) + inside.hello)
        until(lambda: long.requests, "the first request has arrived")
        assert wire.read_final("GET").body == LONG * 2
        assert wire.read_head().status == 200
        assert InnerWire(wire, inside).shake().ask(path(there)).body == b"GET "


def test_a_client_that_reads_nothing_while_it_sends(opened, there):
    """Both directions stand still at full sockets, and go on."""
    opened.send(path(there, "/long") * 4)
    until(lambda: there.requests, "the first has arrived")
    for _ in range(4):
        assert opened.read_final().body == LONG


def test_a_body_of_unknown_length(running, origin, authority, pki):
    leaf = pki.intermediate.issue(HOST)
    there = origin(lambda _: chunked([LONG[:70_000]] * 10), tls=leaf.server_context())
    with tunnel(running, there, pki, authority) as one:
        assert one.ask(path(there)).body == LONG[:70_000] * 10


def test_other_hosts_are_relayed_untouched(running, there, pki):
    with secure_wire(running, pki.root) as wire:
        wire.send(connect_head(OTHER, there.port))
        assert wire.read_head().status == 200
        one = InnerWire(wire, Inside(pki.root.pem_file, OTHER)).shake()
        data = request("/long", host=f"{OTHER}:{there.port}")
        assert one.ask(data).body == LONG
    assert "via" not in there.requests[0]
    assert running.metric("pinfold_tunnels_opened_total") == 1


def test_the_end_of_the_inner_session_ends_both(opened, there):
    answer = opened.ask(path(there, Connection="close"))
    assert answer.body == b"GET "
    assert not opened._more()
    assert opened.ended_well
    opened.outer.socket.suppress_ragged_eofs = False
    assert opened.outer.socket.recv(1) == b"", "it was ended, too, or this would raise"


def test_the_end_of_the_outer_session_truncates_the_inner(running, there, authority, pki):
    one = tunnel(running, there, pki, authority)
    with one:
        one.send(path(there, method="POST", Content_Length="100") + b"x" * 50)
        until(lambda: b"x" * 50 in there.application_bytes, "the server has what was sent")
        # The gateway's close_notify is not owed to who has cut a request.
        with contextlib.suppress(ssl.SSLError, OSError):
            one.outer.socket.unwrap()
        no_client_is_connected(running)
    assert there.requests == []


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("step", ["connect", "half a hello", "a hello", "open", "in a response"])
def test_a_client_that_disconnects_leaves_nothing(running, there, authority, pki, step, how):
    no_client_is_connected(running)
    descriptors = running.descriptors
    for _ in range(2):
        wire, inside = secure_wire(running, pki.root), Inside(authority.file)
        wire.send(connect_head(HOST, there.port))
        assert wire.read_head().status == 200
        hello = inside.hello
        wire.send(hello[:{"connect": 0, "half a hello": 100}.get(step, len(hello))])
        if step == "a hello":
            assert wire._more(), "the server's part has begun"
        if step in ("open", "in a response"):
            one = InnerWire(wire, inside).shake()
            one.send(path(there, "/long" if step == "in a response" else "/"))
            assert one.read_head().status == 200
        wire.close() if how == "close" else wire.reset()
        no_client_is_connected(running)
    until(lambda: running.descriptors <= descriptors + 1, "descriptors are as before")


def test_what_is_not_tls_is_closed_on(running, there, pki):
    with secure_wire(running, pki.root) as wire:
        wire.send(connect_head(HOST, there.port))
        assert wire.read_head().status == 200
        wire.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert wire.read_to_end() == b""
    assert running.metric("pinfold_client_tls_failures_total", reason="not_tls") == 1
    assert there.requests == []
    no_client_is_connected(running)


def test_a_client_that_sends_nothing_is_given_up(gateway, settings, there, pki):
    running = gateway(settings | {"timeouts": {"head": "300ms"}})
    with secure_wire(running, pki.root) as wire:
        wire.send(connect_head(HOST, there.port))
        assert wire.read_head().status == 200
        assert wire.read_to_end() == b""
    assert running.metric("pinfold_client_tls_failures_total", reason="timeout") == 1


def test_another_name_inside_is_refused_with_an_alert(running, there, authority, pki):
    with secure_wire(running, pki.root) as wire:
        wire.send(connect_head(HOST, there.port))
        assert wire.read_head().status == 200
        with pytest.raises(ssl.SSLError, match="UNRECOGNIZED_NAME"):
            Inside(authority.file, OTHER).shake(wire)
        assert wire.read_to_end() == b""
    assert running.metric("pinfold_client_tls_failures_total", reason="name") == 1
    no_client_is_connected(running)


def test_a_client_that_does_not_trust_the_authority_is_counted(running, there, pki):
    with secure_wire(running, pki.root) as wire:
        wire.send(connect_head(HOST, there.port))
        assert wire.read_head().status == 200
        inside = Inside(pki.root.pem_file)
        with pytest.raises(ssl.SSLCertVerificationError):
            inside.shake(wire)
        wire.send(inside.outgoing.read())
        assert wire.read_to_end() == b""
    assert running.metric("pinfold_client_tls_failures_total", reason="untrusted") == 1
    running.wait_log("does not accept the certificate")


def test_the_subject_of_the_outer_session_is_that_of_its_requests(
        gateway, settings, leaf, there, authority, pki):
    device = pki.root.issue("device-17", usage=ExtendedKeyUsageOID.CLIENT_AUTH)
    tls = tls_of(leaf, clientRoots=[str(pki.root.pem_file)])
    running = gateway(settings | {"listeners": [forward(tls)]})
    with tunnel(running, there, pki, authority, client=device) as one:
        assert one.ask(path(there)).body == b"GET "
        outer, inner = running.wait_access(2)
        assert outer["client_subject"] == inner["client_subject"] == "CN=device-17"


def test_a_subject_that_is_no_longer_served_is_refused_inside_its_tunnel(
        gateway, settings, leaf, there, authority, pki):
    device = pki.root.issue("device-17", usage=ExtendedKeyUsageOID.CLIENT_AUTH)
    tls = tls_of(leaf, clientRoots=[str(pki.root.pem_file)])
    running = gateway(settings | {"listeners": [forward(tls)]})
    with tunnel(running, there, pki, authority, client=device) as one:
        assert one.ask(path(there)).body == b"GET "
        config = dict(running.config)
        config["listeners"] = [
            {**running.config["listeners"][0], "tls": {**tls, "clientSubjects": ["CN=other"]}}]
        reload(running, config)
        one.send(path(there))
        assert b" 200 " not in one.read_to_end()[:20]


def test_a_reload_leaves_it_open_and_a_drain_ends_it(running, opened, there):
    reload(running)
    assert opened.ask(path(there)).body == b"GET "
    running.signal(signal.SIGTERM)
    assert not opened._more()
    assert opened.ended_well
    assert running.wait_exit() == 0


def test_a_reload_that_no_longer_intercepts_ends_it(running, opened, there):
    config = dict(running.config)
    config["hosts"] = [{"match": [HOST], "intercept": False}]
    reload(running, config)
    assert not opened._more()
    no_client_is_connected(running)


def test_a_websocket_inside(running, authority, pki):
    with serving(tls=pki.intermediate.issue(HOST).server_context(alpn=())) as port:
        converse(
            f"wss://{HOST}:{port}/", "x", "x" * 300_000,
            proxy=f"https://127.0.0.1:{running.proxy[1]}", proxy_ssl=client_context(pki.root),
            ssl=ssl.create_default_context(cafile=str(authority.file)))
        assert running.metric("pinfold_upgrades_total") == 1
    no_client_is_connected(running)
