"""Attacks inside intercepted tunnels: other names, other hosts, and what two parsers could read
differently."""

from __future__ import annotations

import contextlib
import subprocess

import pytest
from support.interception import HOST, OTHER, Inside, ask_inside, inside, no_client_is_connected
from support.malformed import MALFORMED, MALFORMED_BODIES
from support.origin import HTTPOrigin, reply, serving
from support.wire import request

# The form of a server is the one that is expected inside.
FORMS = {"origin-form on a forward listener"}


@pytest.fixture(scope="module")
def there(pki):
    leaf = pki.intermediate.issue(HOST, OTHER)
    with serving(HTTPOrigin(lambda _: reply(b"reached", "200 OK", "Cache-Control: no-store"),
                            tls=leaf.server_context())) as made:
        yield made


@pytest.fixture(scope="module")
def running(module_gateways, pki):
    return module_gateways({"tls": {"roots": [str(pki.root.pem_file)]},
                            "interception": pki.interception.section | {"default": True}})


def within(text: str, there: HTTPOrigin) -> bytes:
    """A request as a client inside a tunnel has it."""
    text = text.replace("http://{at}", "https://{at}")
    return text.replace("{at}", f"{HOST}:{there.port}").encode("latin-1")


@pytest.mark.parametrize("name", [name for name in MALFORMED if name not in FORMS])
def test_a_malformed_request_inside_is_refused(running, there, name):
    status, text = MALFORMED[name]
    before = len(there.requests)
    wire, refused = inside(running, HOST, there.port)
    with wire:
        assert refused is None
        wire.send(within(text, there) + request("/smuggled", host=f"{HOST}:{there.port}"))
        response = wire.read_final()
        assert response.status == status, response
        assert response.get("connection").lower() == "close"
        assert response.proxy_status
        assert wire.ended()
    assert len(there.requests) == before, "nothing of it reaches the server"


@pytest.mark.parametrize("name", MALFORMED_BODIES)
def test_a_malformed_body_inside_is_refused(running, there, name):
    status, body = MALFORMED_BODIES[name]
    before = len(there.requests)
    wire, refused = inside(running, HOST, there.port)
    with wire:
        assert refused is None
        wire.send(request("/", host=f"{HOST}:{there.port}", method="POST",
                          Transfer_Encoding="chunked"))
        wire.send(body)
        response = wire.read_final()
        assert response.status == status, response
        assert wire.ended()
    assert len(there.requests) == before, "the server sees no end of it"


@pytest.mark.parametrize("host", [HOST, f"{HOST}:1", f"{OTHER}:{{port}}", f"sub.{HOST}:{{port}}",
                                  "127.0.0.1:{port}", f"{HOST}.{OTHER}:{{port}}"])
@pytest.mark.parametrize("target", ["/", "https://{host}/"])
def test_a_request_for_another_host_or_port_is_misdirected(running, there, target, host):
    before = len(there.requests)
    host = host.format(port=there.port)
    answer = ask_inside(running, HOST, there.port, request(target.format(host=host), host=host))
    assert (answer.status, answer.reason) == (421, "Misdirected Request")
    assert len(there.requests) == before


@pytest.mark.parametrize("host", [HOST.upper(), f"{HOST}."])
def test_the_same_host_written_otherwise_is_served(running, there, host):
    host = f"{host}:{there.port}"
    assert ask_inside(running, HOST, there.port, request("/", host=host)).body == b"reached"


def test_a_target_in_absolute_form_must_match_the_tunnel_whatever_host_is(running, there):
    """RFC 9112 §3.2.2: the target replaces Host, which may not bring a request elsewhere."""
    before = len(there.requests)
    answer = ask_inside(
        running, HOST, there.port,
        request(f"https://{OTHER}:{there.port}/", host=f"{HOST}:{there.port}"))
    assert answer.status in (400, 421)
    assert len(there.requests) == before


@pytest.mark.parametrize("name", [
    b"othr.test", b"*een.test", b"se%n.test", b"se\0n.test", b"s\xc3\xabn.test", b"see/.test",
    b"seen-test", b".een.test"])
def test_a_handshake_for_another_name_is_ended(running, there, pki, name):
    """As long as the real one, so that the lengths around it hold."""
    hello = Inside(pki.interception.file).hello
    assert hello.count(HOST.encode()) == 1 and len(name) == len(HOST)
    failures = running.metric("pinfold_client_tls_failures_total")
    wire, answer = running.connect(f"{HOST}:{there.port}")
    with wire:
        assert answer.status == 200
        wire.send(hello.replace(HOST.encode(), name))
        seen = wire.read_to_end()
    assert seen[0] == 21 and len(seen) == 7, "an alert and nothing else"
    assert running.metric("pinfold_client_tls_failures_total") == failures + 1


def s_client(running, there, pki, *arguments: str, sent: str = "Q\n") -> str:
    done = subprocess.run(
        ["openssl", "s_client", "-proxy", "%s:%d" % running.proxy, "-connect",
         f"{HOST}:{there.port}", "-servername", HOST, "-CAfile", str(pki.interception.file),
         *arguments], input=sent, capture_output=True, text=True, timeout=30)
    return done.stdout + done.stderr


def test_renegotiation_inside_is_refused(running, there, pki):
    assert "no renegotiation" in s_client(running, there, pki, "-tls1_2", sent="R\n")


def test_no_early_data_is_offered_inside(running, there, pki):
    asked = f"GET / HTTP/1.1\r\nHost: {HOST}:{there.port}\r\nConnection: close\r\n\r\n"
    assert "Max Early Data: 0" in s_client(running, there, pki, "-ign_eof", sent=asked)


def test_no_client_connection_is_left(running):
    with contextlib.suppress(ConnectionError):
        no_client_is_connected(running)
    assert running.metric("pinfold_client_head_buffer_bytes") == 0
