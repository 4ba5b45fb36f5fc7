"""Interception: the client's TLS ends in the gateway, and the requests inside take the same way as
all others, upstream over verified and pinned TLS."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
import requests
from support.gateway import BINARY, free_port
from support.interception import (
    HOST, OTHER, PINNED, WRONG_PIN, Inside, connect_head, curl, no_client_is_connected)
from support.origin import reply
from support.servers import Server
from support.wait import until
from support.websocket import converse, serving
from support.wire import request

pytestmark = pytest.mark.usefixtures("no_proxy_variables")


@pytest.fixture
def no_proxy_variables(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def running(gateway, pki, authority):
    return gateway({
        "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
        "interception": authority.section,
        "hosts": [{"match": [HOST], "pinsets": ["right"], "intercept": True},
                  {"match": [PINNED], "pinsets": ["wrong"]}],
        "pinsets": {"wrong": {"mode": "publicKey", "pins": [WRONG_PIN]},
                    "right": {"mode": "publicKey", "pins": [pki.intermediate.pin]}}})


@pytest.fixture
def there(origin, pki):
    def answer(seen):
        return reply(seen.method.encode() + b" " + seen.body, "200 OK", "Cache-Control: no-store")

    leaf = pki.intermediate.issue(HOST, PINNED, OTHER, "127.0.0.1")
    return origin(answer, tls=leaf.server_context())


@pytest.fixture
def session(running, authority):
    with requests.Session() as made:
        made.trust_env = False
        made.proxies = {"https": running.proxy_url}
        made.verify = str(authority.file)
        yield made


_NGINX = """
daemon off; user root; pid nginx.pid; error_log error.log warn; worker_processes 1;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path tmp/body; proxy_temp_path tmp/proxy;
    fastcgi_temp_path tmp/fastcgi; uwsgi_temp_path tmp/uwsgi; scgi_temp_path tmp/scgi;
    server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {chain}; ssl_certificate_key {key};
        location / {{ add_header Cache-Control max-age=600; return 200 "nginx over TLS"; }} }} }}
"""


@pytest.fixture
def secure_nginx(workspace, pki):
    leaf, port = pki.intermediate.issue(HOST), free_port()
    (workspace / "tmp").mkdir()
    (workspace / "nginx.conf").write_text(
        _NGINX.format(port=port, chain=leaf.chain_file(), key=leaf.key_file))
    binary = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    server = Server(workspace, port, [binary, "-p", str(workspace), "-c", "nginx.conf",
                                      "-e", str(workspace / "error.log")])
    yield server
    server.stop()


def test_curl_gets_and_posts(running, there, authority):
    url = f"https://{HOST}:{there.port}/path"
    assert curl(running, authority, url, "-w", " %{http_code} %{http_connect}") == "GET  200 200"
    assert curl(running, authority, url, "-d", "a body") == "POST a body"
    assert [one.target for one in there.requests] == ["/path", "/path"]
    assert all("pinfold" in one.get("via") for one in there.requests), "not relayed: forwarded"
    assert running.metric("pinfold_tunnels_opened_total") == 0
    assert running.metric("pinfold_tunnels_intercepted_total") == 2
    assert running.metric("pinfold_client_tls_handshakes_total", version="1.3") == 2
    assert running.metric("pinfold_pin_evaluations_total", pinset="right", result="passed") >= 1
    assert len(there.connections) == 1, "the connection that was verified carries the requests"
    no_client_is_connected(running)


def test_the_access_log_has_the_connect_and_what_is_inside(running, there, authority):
    curl(running, authority, f"https://{HOST}:{there.port}/path?q")
    outer, inner = running.wait_access(2)
    assert (outer["method"], outer["status"]) == ("CONNECT", 200)
    assert outer["intercepted"] is True and "tunnel" not in outer
    assert (inner["method"], inner["target"], inner["status"]) == ("GET", "/path?q", 200)
    assert inner["intercepted"] is True
    assert inner["tunnel"] == f"{HOST}:{there.port}"
    assert inner["client_tls"] == "TLSv1.3"
    assert outer["upstream_tls"] == inner["upstream_tls"] == "TLSv1.3"
    assert outer["host"] == inner["host"] == HOST
    assert outer["listener"] == inner["listener"] == "proxy"


def test_requests_on_one_connection(running, there, session):
    url = f"https://{HOST}:{there.port}"
    accepted = running.metric("pinfold_client_connections_accepted_total")
    assert session.get(url + "/one").text == "GET "
    assert session.post(url + "/two", data=b"x" * 300_000).text == "POST " + "x" * 300_000
    assert session.get(url + "/three").text == "GET "
    # One more for each reading of the metrics.
    assert running.metric("pinfold_client_connections_accepted_total") == accepted + 2
    assert len(there.connections) == 1, "and one upstream"
    session.close()
    no_client_is_connected(running)


def test_the_second_get_is_a_hit(running, secure_nginx, session):
    url = f"https://{HOST}:{secure_nginx.port}/cached"
    first, second = session.get(url), session.get(url)
    assert first.text == second.text == "nginx over TLS"
    assert "hit" not in first.headers["Cache-Status"]
    assert second.headers["Cache-Status"].startswith("pinfold; hit")
    assert running.metric("pinfold_cache_hits_total") == 1


def test_a_pinned_host_is_intercepted_where_there_is_an_authority(running, there, authority):
    """`intercept: auto`: the pin is checked before the client is answered at all."""
    wire, answer = running.connect(f"{PINNED}:{there.port}")
    with wire:
        assert (answer.status, answer.reason) == (502, "tls-no-pin-matches")
        assert b"sha256/" in answer.body
    assert there.application_bytes == b""
    assert running.wait_access(1)[0]["reason"] == "tls-no-pin-matches"


@pytest.mark.parametrize("target", ["/", f"https://{OTHER}/", "http://{authority}/"])
def test_a_wrong_host_inside_is_misdirected(running, there, authority, target):
    target = target.format(authority=f"{HOST}:{there.port}")
    wire, answer = running.connect(f"{HOST}:{there.port}")
    with wire:
        assert answer.status == 200
        inside = Inside(authority.file)
        inside.shake(wire)
        seen = inside.ask(wire, request(target, host=OTHER), b"misdirected-request")
        assert seen.startswith(b"HTTP/1.1 421 ")
    assert there.requests == []


@pytest.mark.parametrize("fields", ["", f"Host: {HOST}\r\n", f"Host: {HOST.upper()}.\r\n"])
def test_http_1_0_inside_is_for_the_authority_of_its_tunnel(running, there, authority, fields):
    """RFC 9112 §3.3: neither Host nor a port in it is known to HTTP/1.0."""
    wire, _ = running.connect(f"{HOST}:{there.port}")
    with wire:
        inside = Inside(authority.file)
        inside.shake(wire)
        seen = inside.ask(wire, f"GET /old HTTP/1.0\r\n{fields}\r\n".encode(), b"GET ")
        assert seen.startswith(b"HTTP/1.1 200 ")
    (one,) = there.requests
    assert (one.target, one.all("host")) == ("/old", [f"{HOST}:{there.port}"])


@pytest.mark.parametrize(("version", "fields"), [
    ("1.0", f"Host: {OTHER}\r\n"), ("1.0", f"Host: {HOST}:1\r\n"), ("1.1", f"Host: {HOST}\r\n")])
def test_another_authority_inside_is_misdirected(running, there, authority, version, fields):
    wire, _ = running.connect(f"{HOST}:{there.port}")
    with wire:
        inside = Inside(authority.file)
        inside.shake(wire)
        data = f"GET / HTTP/{version}\r\n{fields}\r\n".encode()
        assert inside.ask(wire, data, b"\r\n\r\n").startswith(b"HTTP/1.1 421 ")
    assert there.requests == []


def test_a_connect_inside_is_misdirected(running, there, authority):
    wire, _ = running.connect(f"{HOST}:{there.port}")
    with wire:
        inside = Inside(authority.file)
        inside.shake(wire)
        seen = inside.ask(wire, connect_head(HOST, there.port), b"\r\n\r\n")
        assert seen.startswith(b"HTTP/1.1 421 misdirected-request")


def test_a_hello_in_the_segment_of_connect(running, there, authority):
    inside = Inside(authority.file)
    with running.wire() as wire:
        wire.send(connect_head(HOST, there.port) + inside.hello)
        assert wire.read_head().status == 200
        inside.shake(wire)
        data = request("/", host=f"{HOST}:{there.port}")
        assert inside.ask(wire, data, b"GET ").startswith(b"HTTP/1.1 200 ")


def test_a_connect_and_a_hello_that_trickle(running, there, authority):
    inside = Inside(authority.file)
    with running.wire() as wire:
        data = connect_head(HOST, there.port) + inside.hello
        for index in range(len(data)):
            wire.send(data[index:index + 1])
        assert wire.read_head().status == 200
        inside.shake(wire)
        data = request("/", host=f"{HOST}:{there.port}")
        assert inside.ask(wire, data, b"GET ").startswith(b"HTTP/1.1 200 ")
    assert running.metric("pinfold_client_head_buffer_bytes") == 0
    no_client_is_connected(running)


def test_behind_a_pipelined_request_whose_answer_fills_the_socket(
        running, there, authority, origin):
    """The 200 waits for room, in clear text, before the handshake begins."""
    long = origin(lambda _: reply(b"l" * 8_000_000, "200 OK", "Cache-Control: no-store"))
    inside = Inside(authority.file)
    with running.wire() as wire:
        wire.send(request(long.url()) + connect_head(HOST, there.port) + inside.hello)
        until(lambda: long.requests, "the first request has arrived")
        assert len(wire.read_final("GET").body) == 8_000_000
        assert wire.read_head().status == 200
        inside.shake(wire)
        data = request("/", host=f"{HOST}:{there.port}")
        assert inside.ask(wire, data, b"GET ").startswith(b"HTTP/1.1 200 ")


def test_other_hosts_are_relayed_untouched(running, there, pki):
    with requests.Session() as one:
        one.trust_env = False
        one.proxies = {"https": running.proxy_url}
        one.verify = str(pki.root.pem_file)
        assert one.get(f"https://{OTHER}:{there.port}/").text == "GET "
    assert "via" not in there.requests[0], "the gateway saw nothing of it"
    assert running.metric("pinfold_tunnels_opened_total") == 1
    assert running.metric("pinfold_tunnels_intercepted_total") == 0


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("sent", ["nothing", "a byte", "half a hello", "a hello"])
def test_a_client_that_disconnects_in_the_handshake_leaves_nothing(running, there, authority, sent, how):
    no_client_is_connected(running)
    descriptors = running.descriptors
    for _ in range(10):
        wire, answer = running.connect(f"{HOST}:{there.port}")
        assert answer.status == 200
        hello = Inside(authority.file).hello
        wire.send(hello[:{"nothing": 0, "a byte": 1, "half a hello": 100}.get(sent, len(hello))])
        if sent == "a hello":
            assert wire._more(), "the server's part has begun"
        assert running.metric("pinfold_client_connections_open") == 2
        wire.close() if how == "close" else wire.reset()
        no_client_is_connected(running)
    # The one that was verified is kept.
    until(lambda: running.descriptors <= descriptors + 1, "descriptors are as before")
    assert there.requests == []


def test_what_is_not_tls_is_closed_on(running, there):
    wire, answer = running.connect(f"{HOST}:{there.port}")
    with wire:
        assert answer.status == 200
        wire.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"HTTP" not in wire.read_to_end()
    assert running.metric("pinfold_client_tls_failures_total", reason="not_tls") == 1
    assert there.requests == []
    no_client_is_connected(running)


def test_a_client_that_sends_nothing_is_given_up(gateway, pki, authority, there):
    running = gateway({
        "tls": {"roots": [str(pki.root.pem_file)]}, "timeouts": {"head": "300ms"},
        "interception": authority.section, "hosts": [{"match": [HOST], "intercept": True}]})
    wire, answer = running.connect(f"{HOST}:{there.port}")
    with wire:
        assert answer.status == 200
        assert wire.ended()
    assert running.metric("pinfold_client_tls_failures_total", reason="timeout") == 1


def test_a_websocket_inside(running, authority, pki):
    client = ssl.create_default_context(cafile=str(authority.file))
    with serving(tls=pki.intermediate.issue(HOST).server_context(alpn=())) as port:
        converse(f"wss://{HOST}:{port}/", "x" * 100_000, proxy=running.proxy_url, ssl=client)
        assert running.metric("pinfold_upgrades_total") == 1
    no_client_is_connected(running)


def test_a_hundred_clients_share_one_signature(running, there, authority):
    wires = [running.connect(f"{HOST}:{there.port}")[0] for _ in range(100)]
    insides = [Inside(authority.file) for _ in wires]
    for wire, inside in zip(wires, insides):
        wire.send(inside.hello)
    data = request("/", host=f"{HOST}:{there.port}")
    for wire, inside in zip(wires, insides):
        inside.shake(wire)
        assert inside.ask(wire, data, b"GET ").startswith(b"HTTP/1.1 200 ")
        wire.close()
    assert running.metric("pinfold_interception_certificates_issued_total") == 1
    assert running.metric("pinfold_interception_certificates") == 1
    assert running.metric("pinfold_interception_certificate_requests_total") == 99
    no_client_is_connected(running)


def test_ports_and_destinations_are_checked_as_without_interception(gateway, authority):
    running = gateway({
        "access": {"connectPorts": [443], "destinations": {"deny": [PINNED]}},
        "interception": authority.section | {"default": True}})
    for target, reason in [(f"{HOST}:444", "connect-port-refused"),
                           (f"{PINNED}:443", "destination-refused"),
                           ("169.254.169.254:443", "destination-refused")]:
        wire, answer = running.connect(target)
        wire.close()
        assert (answer.status, answer.reason) == (403, reason)


def test_the_command_line_intercepts_hosts(gateway, pki, authority, there):
    running = gateway(
        {"tls": {"roots": [str(pki.root.pem_file)]}, "interception": authority.section,
         "hosts": [{"match": [PINNED], "intercept": False}]},
        "--intercept", PINNED, "--intercept", HOST)
    for host in (HOST, PINNED):
        assert curl(running, authority, f"https://{host}:{there.port}/") == "GET "
    assert running.metric("pinfold_tunnels_intercepted_total") == 2


def test_the_command_line_takes_the_authority_of_the_state_folder(
        gateway, pki, authority, there, monkeypatch):
    running = gateway({"tls": {"roots": [str(pki.root.pem_file)]}}, "--intercept", HOST, start=False)
    state = running.folder / "state"
    (state / "pinfold").mkdir(parents=True)
    for file in (authority.file, authority.key):
        shutil.copy(file, state / "pinfold")
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    running.start()
    assert curl(running, authority, f"https://{HOST}:{there.port}/") == "GET "


def test_one_command_makes_an_authority_and_intercepts_with_it(workspace, pki, there):
    state, script = workspace / "state", Path(__file__).parents[2] / "deploy/run"
    proxy = f"127.0.0.1:{free_port()}"
    (workspace / "c.yaml").write_text("access: { connectPorts: any }")
    with (workspace / "output").open("wb") as output:
        process = subprocess.Popen(
            [script, "--config", workspace / "c.yaml", "--intercept", "127.0.0.1", "--listen", proxy,
             "--admin", "127.0.0.1:0", "--roots", pki.root.pem_file, "--workers", "1",
             "--allow-destination", "127.0.0.0/8"],
            stdout=output, stderr=output, stdin=subprocess.DEVNULL,
            env=os.environ | {"XDG_STATE_HOME": str(state), "PINFOLD_BINARY": str(BINARY)})
    try:
        until(lambda: "listener=forward" in (workspace / "output").read_text(), "listening")
        done = subprocess.run(
            ["curl", "-sS", "--proxy", f"http://{proxy}", "--cacert", state / "pinfold/ca.pem",
             f"https://127.0.0.1:{there.port}/"], capture_output=True, text=True, timeout=30)
        assert done.stdout == "GET ", done.stderr + (workspace / "output").read_text()
        assert (state / "pinfold/ca.key").stat().st_mode & 0o077 == 0
    finally:
        process.terminate()
        assert process.wait(10) == 0
