"""Listeners that speak TLS to their clients, with clients of every kind."""

from __future__ import annotations

import hashlib
import socket
import ssl
import struct

import httpx
import pytest
import requests
import requests.adapters
from cryptography.x509.oid import ExtendedKeyUsageOID
from support.origin import reply
from support.secure import (
    NAME, client_context, curl, forward, reverse, secure_wire, tls_of)
from support.wait import until
from support.websocket import converse, serving
from support.wire import Wire, request

HOST = "origin.test"


@pytest.fixture(scope="module")
def leaf(pki):
    return pki.intermediate.issue(NAME, "127.0.0.1")


@pytest.fixture(scope="module")
def device(pki):
    return pki.root.issue("device-17", usage=ExtendedKeyUsageOID.CLIENT_AUTH)


@pytest.fixture
def there(origin):
    return origin(lambda seen: reply(
        seen.method.encode() + b" " + seen.target.encode() + b" "
        + hashlib.sha256(seen.body).hexdigest().encode(), "200 OK", "Cache-Control: no-store"))


@pytest.fixture
def running(gateway, leaf, there):
    return gateway({"listeners": [
        forward(tls_of(leaf)), reverse(tls_of(leaf), there.url().rstrip("/"))]})


def secure_url(running, listener: str = "proxy") -> str:
    return f"https://{NAME}:{running.listeners[listener][1]}"


def resolved(running, listener: str = "proxy") -> list[str]:
    return ["--resolve", f"{NAME}:{running.listeners[listener][1]}:127.0.0.1"]


def test_curl_speaks_tls_to_its_proxy(running, there, pki):
    answer = curl(
        "-x", f"https://127.0.0.1:{running.proxy[1]}", "--proxy-cacert", str(pki.root.pem_file),
        there.url("/path"))
    assert answer.startswith("GET /path ")
    line = running.wait_access()[0]
    assert (line["client_tls"], line["listener"]) == ("TLSv1.3", "proxy")
    assert line["client_cipher"].startswith("TLS_")
    assert "client_subject" not in line
    assert running.metric(
        "pinfold_client_tls_handshakes_total", version="1.3", resumed="false") == 1


def test_curl_speaks_tls_within_the_tunnel_of_a_tls_proxy(running, origin, pki):
    server = pki.intermediate.issue(HOST, "127.0.0.1")
    there = origin(lambda _: reply(b"inside", "200 OK"), tls=server.server_context())
    answer = curl(
        "-x", f"https://127.0.0.1:{running.proxy[1]}", "--proxy-cacert", str(pki.root.pem_file),
        "--cacert", str(pki.root.pem_file), f"https://127.0.0.1:{there.address[1]}/")
    assert answer == "inside"
    line = running.wait_access()[0]
    assert (line["method"], line["client_tls"]) == ("CONNECT", "TLSv1.3")
    assert running.metric("pinfold_tunnels_opened_total") == 1


def test_curl_asks_a_reverse_route_over_tls(running, there, pki):
    answer = curl("--cacert", str(pki.root.pem_file), *resolved(running, "route"),
                  secure_url(running, "route") + "/over")
    assert answer.startswith("GET /over ")
    seen = there.requests[0]
    assert seen.get("x-forwarded-proto") == "https"
    assert "proto=https" in seen.get("forwarded")


def test_what_is_stored_for_clear_text_is_not_given_to_tls(gateway, leaf, origin, pki):
    there = origin(lambda seen: reply(
        seen.get("x-forwarded-proto").encode(), "200 OK", "Cache-Control: max-age=600"))
    upstream = there.url().rstrip("/")
    clear = {"name": "clear", "address": "127.0.0.1:0", "kind": "reverse", "upstream": upstream}
    running = gateway({"listeners": [
        forward(None), reverse(tls_of(leaf), upstream), clear]})
    for _ in range(2):
        assert running.get("/", "clear", host="same.test").body == b"http"
        with secure_wire(running, pki.root, "route") as wire:
            assert wire.ask(request("/", host="same.test")).body == b"https"


def test_requests_follow_each_other_on_one_connection(running, there, pki):
    with secure_wire(running, pki.root) as wire:
        for number in range(20):
            answer = wire.ask(request(there.url(f"/{number}")))
            assert answer.body.startswith(b"GET /%d " % number)
        wire.send(b"".join(request(there.url(f"/p{number}")) for number in range(5)))
        for number in range(5):
            assert wire.read_final().body.startswith(b"GET /p%d " % number)
    assert running.metric("pinfold_client_tls_handshakes_total", version="1.3") == 1


def test_requests_and_httpx_speak_tls_to_their_proxy(running, there, pki):
    context = client_context(pki.root)

    class Adapter(requests.adapters.HTTPAdapter):
        def proxy_manager_for(self, proxy, **options):
            return super().proxy_manager_for(proxy, proxy_ssl_context=context, **options)

    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", Adapter())
        session.proxies = {"http": f"https://127.0.0.1:{running.proxy[1]}"}
        for _ in range(3):
            assert session.post(there.url("/r"), data=b"x" * 100_000).text.endswith(
                hashlib.sha256(b"x" * 100_000).hexdigest())
    proxy = httpx.Proxy(f"https://127.0.0.1:{running.proxy[1]}", ssl_context=context)
    with httpx.Client(proxy=proxy, trust_env=False) as client:
        assert client.get(there.url("/h")).text.startswith("GET /h ")


def test_a_websocket_passes_a_tls_listener(gateway, leaf, pki):
    with serving() as port:
        running = gateway({"listeners": [
            forward(None), reverse(tls_of(leaf), f"http://127.0.0.1:{port}")]})
        converse(
            f"wss://{NAME}/", "x" * 300_000, sock=running.wire("route").socket,
            ssl=client_context(pki.root), server_hostname=NAME)
    until(lambda: running.access_lines(), "the relay has ended")
    assert running.access_lines()[0]["client_tls"] == "TLSv1.3"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_large_bodies_pass_both_ways(running, origin, pki, version):
    body = hashlib.sha256(b"seed").digest() * 500_000
    there = origin(lambda seen: reply(seen.body, "200 OK", "Cache-Control: no-store"))
    context = client_context(pki.root)
    context.minimum_version = context.maximum_version = version
    with secure_wire(running, pki.root, context=context) as wire:
        # One after the other: a session of Python's may not be read and written at once.
        wire.send(request(there.url(), method="POST", body=body))
        assert wire.read_final().body == body


def test_a_slow_reader_gets_everything(running, origin, pki):
    body = b"0123456789abcdef" * 500_000
    there = origin(lambda _: reply(body, "200 OK", "Cache-Control: no-store"))
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.settimeout(20)
        raw.connect(running.proxy)
        with client_context(pki.root).wrap_socket(raw, server_hostname=NAME) as secure:
            wire = Wire(running.proxy, sock=secure)
            wire.send(request(there.url()))
            until(lambda: there.requests, "it has been asked")
            assert wire.read_final().body == body


def test_a_client_that_ends_its_side_still_gets_the_answer(running, there, pki):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    inside = client_context(pki.root).wrap_bio(incoming, outgoing, server_hostname=NAME)
    with running.wire() as wire:
        def step(call):
            while True:
                try:
                    return call()
                except ssl.SSLWantReadError:
                    if data := outgoing.read():
                        wire.send(data)
                    assert wire._more(), "the gateway closed"
                    incoming.write(wire.buffer)
                    wire.buffer = b""
        step(inside.do_handshake)
        inside.write(request(there.url("/last")))
        with pytest.raises(ssl.SSLWantReadError):
            inside.unwrap()
        # The request, close_notify, and the end of the stream.
        wire.send(outgoing.read())
        wire.half_close()
        assert step(lambda: inside.read(100)).startswith(b"HTTP/1.1 200 ")


def test_clear_text_at_a_tls_listener_ends_cleanly_and_is_counted(running, there):
    for data in (request(there.url()), b"CONNECT a:443 HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff"
                 + b"x" * 70_000):
        with running.wire() as wire:
            wire.send(data)
            seen = b""
            # A reset would raise: what was sent has been read.
            while more := wire.socket.recv(1 << 16):
                seen += more
            assert b"HTTP" not in seen
    assert there.accepted == 0
    assert running.metric("pinfold_client_tls_failures_total", reason="not_tls") >= 2


def test_a_handshake_that_does_not_end_is_timed_out(gateway, leaf):
    running = gateway({"listeners": [forward(tls_of(leaf))], "timeouts": {"head": "300ms"}})
    with running.wire() as nothing, running.wire() as half:
        half.send(b"\x16\x03\x01\x02\x00\x01")
        assert nothing.ended() and half.ended()
    until(lambda: running.metric("pinfold_client_tls_failures_total", reason="timeout") == 2,
          "both are counted")


def test_an_idle_connection_is_closed_with_close_notify(gateway, leaf, there, pki):
    running = gateway({"listeners": [forward(tls_of(leaf))], "timeouts": {"idle": "300ms"}})
    with secure_wire(running, pki.root) as wire:
        assert wire.ask(request(there.url())).status == 200
        # Without close_notify the library would raise SSLEOFError.
        assert wire.socket.recv(100) == b""


def test_half_done_handshakes_do_not_starve_others(gateway, leaf, there, pki):
    count = 5000
    running = gateway({
        "listeners": [forward(tls_of(leaf))],
        "limits": {"connections": 2000, "perClient": {"connections": 1900}}})
    hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc"
    waiting = []
    try:
        for _ in range(count):
            one = socket.create_connection(running.proxy, 10)
            one.send(hello)
            waiting.append(one)
        for _ in range(5):
            with secure_wire(running, pki.root) as wire:
                assert wire.ask(request(there.url())).status == 200
        assert running.metric("pinfold_client_connections_open") <= 2001
    finally:
        for one in waiting:
            one.close()
    until(lambda: running.metric("pinfold_client_connections_open") == 1, "all are gone")


def test_half_done_handshakes_take_up_no_more_than_unfinished_heads_may(
        gateway, leaf, there, pki):
    running = gateway({
        "workers": 2, "listeners": [forward(tls_of(leaf))], "limits": {"bufferBytes": "1MiB"}})
    waiting = []
    try:
        for _ in range(300):
            one = socket.create_connection(running.proxy, 10)
            one.send(b"\x16\x03\x01\x02\x00\x01")
            waiting.append(one)
        until(lambda: running.metric("pinfold_client_heads_evicted_total") >= 200, "the oldest go")
        # The whole at one worker, and the share of the other.
        assert running.metric("pinfold_client_head_buffer_bytes") <= 3 << 19
        for _ in range(10):
            with secure_wire(running, pki.root) as wire:
                assert wire.ask(request(there.url())).status == 200
    finally:
        for one in waiting:
            one.close()
    until(lambda: running.metric("pinfold_client_head_buffer_bytes") == 0, "nothing is left")


def test_a_first_message_in_segments_of_one_byte_is_understood(running, there, pki):
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    inside = client_context(pki.root).wrap_bio(incoming, outgoing, server_hostname=NAME)
    with running.wire() as wire:
        def step(call):
            while True:
                try:
                    return call()
                except ssl.SSLWantReadError:
                    for byte in outgoing.read():
                        wire.send(bytes([byte]))
                    assert wire.buffer or wire._more()
                    incoming.write(wire.buffer)
                    wire.buffer = b""
        step(inside.do_handshake)
        inside.write(request(there.url()))
        wire.send(outgoing.read())
        assert step(lambda: inside.read(100)).startswith(b"HTTP/1.1 200 ")


# Clients that prove who they are.


@pytest.fixture
def private(gateway, leaf, pki):
    def make(**keys):
        roots = [str(pki.root.pem_file)]
        return gateway({"listeners": [forward(tls_of(leaf, clientRoots=roots, **keys))]})
    return make


def test_a_client_without_a_certificate_does_not_get_in(private, there, pki):
    running = private()
    with pytest.raises((ssl.SSLError, ConnectionError)):
        with secure_wire(running, pki.root) as wire:
            wire.ask(request(there.url()))
            raise AssertionError("it was answered")
    stranger = pki.rogue_root.issue("device-17", usage=ExtendedKeyUsageOID.CLIENT_AUTH)
    with pytest.raises(ssl.SSLError, match="unknown ca"):
        with secure_wire(running, pki.root, client=stranger) as wire:
            wire.send(request(there.url()))
            wire.socket.recv(100)
    until(lambda: running.metric(
        "pinfold_client_tls_failures_total", reason="certificate") == 2, "both are counted")
    assert there.accepted == 0


def test_the_subject_of_a_client_is_logged(private, there, pki, device):
    running = private()
    with secure_wire(running, pki.root, client=device) as wire:
        assert wire.ask(request(there.url())).status == 200
    assert running.wait_access()[0]["client_subject"] == "CN=device-17"


@pytest.mark.parametrize("pattern,status", [
    ("CN=device-*", 200), ("CN=device-17", 200), ("**", 200), ("CN=device-1", 403),
    ("CN=device-*,O=Example", 403)])
def test_only_the_subjects_that_are_listed_are_served(
        private, there, pki, device, pattern, status):
    running = private(clientSubjects=["CN=somebody-else", pattern])
    with secure_wire(running, pki.root, client=device) as wire:
        answer = wire.ask(request(there.url()))
        assert answer.status == status
    if status == 403:
        assert b"client-subject-not-allowed" in answer.body
        assert there.accepted == 0


def test_a_resumed_client_is_who_it_was(private, there, pki, device):
    running = private(clientSubjects=["CN=device-*"])
    context = client_context(pki.root, device)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with secure_wire(running, pki.root, context=context) as wire:
        assert wire.ask(request(there.url())).status == 200
        session = wire.socket.session
    with running.wire() as plain:
        again = context.wrap_socket(plain.socket, server_hostname=NAME, session=session)
        assert again.session_reused
        assert Wire(("", 0), sock=again).ask(request(there.url())).status == 200
    assert [line["client_subject"] for line in running.wait_access(2)] == ["CN=device-17"] * 2


def test_a_reset_in_the_middle_of_a_handshake_leaves_nothing(running):
    descriptors = running.descriptors
    for _ in range(50):
        with socket.create_connection(running.proxy, 10) as one:
            one.send(b"\x16\x03\x01\x02\x00\x01")
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    until(lambda: running.metric("pinfold_client_connections_open") == 1, "they are gone")
    until(lambda: running.descriptors <= descriptors, "descriptors are as before")
