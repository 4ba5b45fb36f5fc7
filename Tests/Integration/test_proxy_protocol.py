"""Clients that come through load balancers, which name them in PROXY headers."""

from __future__ import annotations

import signal
import socket

import pytest
from support.gateway import Gateway, run_pinfold, wire_from
from support.http2 import http2
from support.origin import reply
from support.proxy_headers import (
    LOCAL, PROXY, HAProxy, NginxStream, behind, binary, checked, framed, line, wire_after)
from support.secure import NAME, client_context, tls_of
from support.wait import until
from support.wire import Closed, Wire, request

CLIENT, OTHER = "192.0.2.7", "192.0.2.8"
CLIENTS = {"access": {"clients": ["192.0.2.0/24", "2001:db8::/32"]}}
NO_CACHE = {"cache": {"enabled": False}}


@pytest.fixture
def there(origin):
    return origin(lambda _: reply(b"here", "200 OK", "Cache-Control: no-store"))


@pytest.fixture
def running(gateway) -> Gateway:
    return gateway({"listeners": [behind("127.0.0.1")], **CLIENTS, **NO_CACHE})


def refused(running: Gateway, cause: str) -> float:
    return running.metric("pinfold_proxy_headers_refused_total", cause=cause)


def clients(running: Gateway) -> float:
    """How many are connected, besides who asks."""
    return running.metric("pinfold_client_connections_open") - 1


def is_closed(wire: Wire) -> bool:
    """Whether the peer closes without a byte."""
    try:
        return wire.read_to_end() == b""
    except ConnectionResetError:
        return True


HEADERS = {
    "version 1": (line(CLIENT), CLIENT), "version 2": (binary(CLIENT), CLIENT),
    "version 1, IPv6": (line("2001:db8::7"), "2001:db8::7"),
    "version 2, IPv6": (binary("2001:db8::7"), "2001:db8::7"),
    "version 1, mapped": (line("::ffff:" + CLIENT), CLIENT),
    "fields": (binary(CLIENT, fields=b"\x01\0\x02h2\x20\0\x05\x01\0\0\0\0"), CLIENT),
    "a checksum": (checked(CLIENT), CLIENT),
}


@pytest.mark.parametrize("name", HEADERS)
def test_the_client_is_whom_the_header_names(running, there, name):
    header, client = HEADERS[name]
    with wire_after(running, header) as wire:
        for _ in range(2):
            assert wire.ask(request(there.url("/"))).body == b"here"
    for logged in running.wait_access(2):
        assert logged["client"].rsplit(":", 1)[0].strip("[]") == client
    version = "1" if name.startswith("version 1") else "2"
    assert running.metric("pinfold_proxy_headers_total", version=version) == 1


@pytest.mark.parametrize("header", [line(CLIENT), binary(CLIENT), checked(CLIENT)],
                         ids=["1", "2", "checksum"])
def test_a_header_may_arrive_byte_by_byte(running, there, header):
    with running.wire() as wire:
        for byte in header + request(there.url("/")):
            wire.send(bytes([byte]))
        assert wire.read_final("GET").body == b"here"
    assert CLIENT in running.wait_access()[0]["client"]


def test_a_request_may_come_with_the_header(running, there):
    with running.wire() as wire:
        wire.send(binary(CLIENT) + request(there.url("/a")) + request(there.url("/b")))
        assert wire.read_final("GET").status == wire.read_final("GET").status == 200


WRONG = {
    "a request": (b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "missing"),
    "TLS": (b"\x16\x03\x01\x02\x00\x01", "missing"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "missing"),
    "a leading zero": (line("192.0.2.07"), "malformed"),
    "a port with a zero": (line(CLIENT).replace(b" 443", b" 0443"), "malformed"),
    "a large port": (line(CLIENT, port=65536), "malformed"),
    "two spaces": (line(CLIENT).replace(b"TCP4 ", b"TCP4  "), "malformed"),
    "a bare LF": (line(CLIENT).replace(b"\r\n", b"\n"), "malformed"),
    "another family": (line(CLIENT).replace(b"TCP4", b"TCP6"), "malformed"),
    "a long line": (b"PROXY UNKNOWN " + b"x" * 94 + b"\r\n", "malformed"),
    "a datagram": (framed(PROXY, 0x12, bytes(12)), "malformed"),
    "a short header": (framed(PROXY, 0x11, bytes(11)), "malformed"),
    "another command": (framed(0x22, 0x11, bytes(12)), "malformed"),
    "another version": (framed(0x11, 0x11, bytes(12)), "malformed"),
    "a long header": (framed(PROXY, 0x11, bytes(4081)), "malformed"),
    "cut fields": (binary(CLIENT, fields=b"\x04\0\x09\0"), "malformed"),
    "a wrong checksum": (checked(CLIENT)[:-1] + b"\0", "checksum"),
    "no address": (line("0.0.0.0"), "address"),
    "a group": (binary("224.0.0.1"), "address"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_valid_header_is_refused_without_a_reply(running, name):
    data, cause = WRONG[name]
    with wire_after(running, data) as wire:
        assert is_closed(wire)
    assert refused(running, cause) == 1
    logged = running.wait_log("no valid PROXY header")
    assert "reason=proxy-header-" in logged and "127.0.0.1" in logged
    assert running.access_lines() == []


def test_the_end_within_a_header_is_counted(running):
    with wire_after(running, b"PROXY TCP4") as wire:
        wire.half_close()
        assert is_closed(wire)
    running.wire().close()
    until(lambda: refused(running, "closed") == 2, "both are counted")


def test_a_header_has_the_time_of_a_head(gateway, there):
    running = gateway({"listeners": [behind("127.0.0.1")], **CLIENTS, **NO_CACHE,
                       "timeouts": {"head": "200ms"}})
    with wire_after(running, b"PROXY TCP4 ") as wire, running.wire() as silent:
        assert is_closed(wire) and is_closed(silent)
    assert refused(running, "timeout") == 2
    # The client has its own time after it.
    with wire_after(running, line(CLIENT)) as wire:
        assert wire.ask(request(there.url("/"))).status == 200


def test_nobody_but_the_senders_connects(gateway, there):
    running = gateway({"listeners": [behind("127.0.0.2")], **CLIENTS, **NO_CACHE})
    for header in (line(CLIENT), b""):
        with wire_from(running, "127.0.0.1") as wire:
            wire.send(header + request(there.url("/")))
            assert is_closed(wire)
    assert refused(running, "sender") == 2
    assert "proxy-header-sender-not-allowed" in running.wait_log("no valid PROXY header")
    with wire_from(running, "127.0.0.2") as wire:
        wire.send(line(CLIENT))
        assert wire.ask(request(there.url("/"))).status == 200


def test_a_second_header_is_the_clients_request_and_refused(running, there):
    for second in (line("127.0.0.1"), binary("127.0.0.1")):
        with wire_after(running, line(CLIENT) + second + request(there.url("/"))) as wire:
            assert wire.read_final("GET").status == 400


def test_a_named_sender_is_no_sender_itself(gateway, there):
    """The header's address does not fulfil `from`."""
    running = gateway({"listeners": [behind("127.0.0.2", CLIENT)], **CLIENTS, **NO_CACHE})
    with wire_from(running, "127.0.0.2") as wire:
        wire.send(line(CLIENT) + line(OTHER))
        assert wire.read_final("GET").status == 400
    assert CLIENT in running.wait_access()[0]["client"]


def test_the_clients_of_access_are_those_of_the_header(running, there):
    with wire_after(running, line("203.0.113.9")) as wire:
        answer = wire.ask(request(there.url("/")))
        assert answer.status == 403 and b"client-not-allowed" in answer.body
    assert running.metric("pinfold_client_connections_refused_total", reason="address") == 1


@pytest.mark.parametrize("header", [
    framed(LOCAL, 0), framed(LOCAL, 0x11, bytes(12)), framed(PROXY, 0), b"PROXY UNKNOWN\r\n",
    framed(PROXY, 0x31, b"/" * 216)], ids=["local", "discarded", "unspecified", "unknown", "unix"])
@pytest.mark.parametrize("is_client", [True, False], ids=["a client", "no client"])
def test_without_an_address_the_connection_is_the_senders(gateway, there, header, is_client):
    clients = ["192.0.2.0/24"] + (["127.0.0.1"] if is_client else [])
    running = gateway({"listeners": [behind("127.0.0.1")], "access": {"clients": clients},
                       **NO_CACHE})
    with wire_after(running, header) as wire:
        assert wire.ask(request(there.url("/"))).status == (200 if is_client else 403)
    assert "127.0.0.1" in running.wait_access()[0]["client"]


def test_rules_are_about_the_client(gateway, there):
    running = gateway({
        "listeners": [behind("127.0.0.1")], **NO_CACHE,
        "access": {**CLIENTS["access"], "rules": [
            {"name": "no", "clients": [CLIENT], "action": "deny"}]}})
    for client, status in ((CLIENT, 403), (OTHER, 200)):
        with wire_after(running, line(client)) as wire:
            assert wire.ask(request(there.url("/"))).status == status


def test_limits_are_the_clients_and_not_the_senders(gateway, there):
    # With another worker, one of a client that has just connected there may be its longest idle one.
    running = gateway({"listeners": [behind("127.0.0.1")], **CLIENTS, **NO_CACHE, "workers": 1,
                       "limits": {"perClient": {"connections": 2}}})
    # More connections than one client may have, of the one sender.
    wires = [wire_after(running, line(f"192.0.2.{number}")) for number in range(1, 7)]
    for wire in wires:
        assert wire.ask(request(there.url("/"))).status == 200
    # A third one of a client takes the place of its idle one.
    mine = []
    for _ in range(2):
        mine.append(wire_after(running, binary("192.0.2.1")))
        assert mine[-1].ask(request(there.url("/"))).status == 200
    assert is_closed(wires[0])
    for wire in wires[1:] + mine:
        assert wire.ask(request(there.url("/"))).status == 200
        wire.close()
    until(lambda: clients(running) == 0, "all are gone")


def test_busy_connections_of_a_client_are_the_limit(gateway, scripted_origin):
    slow = scripted_origin(lambda connection: connection.read_request())
    running = gateway({"listeners": [behind("127.0.0.1")], **CLIENTS, **NO_CACHE, "workers": 1,
                       "limits": {"perClient": {"connections": 1}}})
    tunnel = wire_after(running, line(CLIENT))
    tunnel.send(f"CONNECT {slow.authority} HTTP/1.1\r\nHost: {slow.authority}\r\n\r\n")
    assert tunnel.read_head().status == 200
    with wire_after(running, line(CLIENT)) as wire:
        assert is_closed(wire)
    assert running.metric(
        "pinfold_client_connections_refused_total", reason="client_limit") == 1
    with wire_after(running, line(OTHER)) as wire:
        assert wire.ask(request("http://nowhere.invalid/")).status >= 400
    tunnel.close()


@pytest.mark.parametrize("header", [framed(LOCAL, 0), b"PROXY UNKNOWN\r\n"],
                         ids=["local", "unknown"])
def test_the_senders_own_connections_have_the_share_of_a_client(
    gateway, scripted_origin, there, header
):
    """It can neither take all connections by its own, nor are its clients kept out by them."""
    slow = scripted_origin(lambda connection: connection.read_request())
    running = gateway({
        "listeners": [behind("127.0.0.1")], **NO_CACHE, "workers": 1,
        "access": {"clients": ["192.0.2.0/24", "127.0.0.1"]},
        "limits": {"perClient": {"connections": 2}}})
    # They do not count for that.
    waiting = [running.wire() for _ in range(5)]
    until(lambda: clients(running) == 5, "their headers are awaited")
    busy = []
    for _ in range(2):
        busy.append(wire_after(running, header))
        busy[-1].send(f"CONNECT {slow.authority} HTTP/1.1\r\nHost: {slow.authority}\r\n\r\n")
        assert busy[-1].read_head().status == 200
    with wire_after(running, header) as wire:
        assert is_closed(wire)
    assert running.metric(
        "pinfold_client_connections_refused_total", reason="client_limit") == 1
    for number in range(1, 4):
        with wire_after(running, line(f"192.0.2.{number}")) as wire:
            assert wire.ask(request(there.url("/"))).status == 200
    busy[0].close()
    until(lambda: clients(running) == 6, "one has ended")
    with wire_after(running, header) as wire:
        assert wire.ask(request(there.url("/"))).status == 200
    for wire in waiting + busy[1:]:
        wire.close()
    until(lambda: clients(running) == 0, "all are gone")


def test_a_lowered_limit_of_clients_closes_nobody_whose_header_is_awaited(gateway, there):
    running = gateway({"listeners": [behind("127.0.0.1")], **CLIENTS, **NO_CACHE, "workers": 1})
    waiting = [running.wire() for _ in range(4)]
    until(lambda: clients(running) == 4, "their headers are awaited")
    running.write_config({**running.config, "limits": {"perClient": {"connections": 1}}})
    running.signal(signal.SIGHUP)
    until(lambda: running.metric("pinfold_config_generation") == 2, "reloaded")
    for number, wire in enumerate(waiting):
        wire.send(line(f"192.0.2.{number + 1}"))
        assert wire.ask(request(there.url("/"))).status == 200


def test_headers_that_do_not_arrive_give_way(gateway, there):
    """If there are as many connections as there may be, the youngest stay."""
    running = gateway({"listeners": [behind("127.0.0.1")], **CLIENTS, **NO_CACHE, "workers": 1,
                       "limits": {"connections": 4}})
    waiting = [running.wire() for _ in range(4)]
    until(lambda: clients(running) == 4, "all are accepted")
    for number in range(4):
        with wire_after(running, line(f"192.0.2.{number + 1}")) as wire:
            assert wire.ask(request(there.url("/"))).status == 200
    assert any(is_closed(wire) for wire in waiting[:1])
    for wire in waiting:
        wire.close()


def test_the_limit_of_all_connections_counts_each_once(gateway, there):
    running = gateway({"listeners": [behind("127.0.0.1")], **CLIENTS, **NO_CACHE,
                       "limits": {"connections": 3}})
    for number in range(1, 30):
        with wire_after(running, line(f"192.0.2.{number}")) as wire:
            assert wire.ask(request(there.url("/"))).status == 200
    with wire_after(running, framed(LOCAL, 0)) as wire:
        assert wire.ask(request(there.url("/"))).status == 403
    until(lambda: clients(running) == 0, "all are gone")


# With TLS, HTTP/2 and reverse listeners


def test_the_header_comes_before_tls(gateway, there, pki):
    leaf = pki.root.issue(NAME)
    running = gateway({"listeners": [behind("127.0.0.1", tls=tls_of(leaf))], **CLIENTS, **NO_CACHE})
    plain = running.wire()
    plain.send(binary(CLIENT))
    secure = client_context(pki.root).wrap_socket(plain.socket, server_hostname=NAME)
    with Wire(running.proxy, sock=secure) as wire:
        assert wire.ask(request(there.url("/"))).body == b"here"
    assert CLIENT in running.wait_access()[0]["client"]
    # Without it the ClientHello is taken for what it is.
    with running.wire() as wire:
        with pytest.raises((OSError, Closed)):
            client_context(pki.root).wrap_socket(wire.socket, server_hostname=NAME)
    assert refused(running, "missing") == 1


def test_http2_by_prior_knowledge_follows_the_header(running, there):
    wire = wire_after(running, line(CLIENT))
    with http2(wire.socket) as client:
        answer = client.ask([(":method", "GET"), (":scheme", "http"),
                             (":authority", there.authority), (":path", "/")])
        assert answer.status == 200
    assert CLIENT in running.wait_access()[0]["client"]


def test_a_server_is_told_of_the_client(gateway, origin):
    seen = []
    there = origin(lambda one: seen.append(one) or reply(b"here"))
    running = gateway({
        "listeners": [behind("127.0.0.1"), {
            **behind("127.0.0.1"), "name": "route", "kind": "reverse", "upstream": there.url("")}],
        **CLIENTS, **NO_CACHE})
    with wire_after(running, binary(CLIENT), "route") as wire:
        wire.send("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.1\r\n\r\n")
        assert wire.read_final("GET").body == b"here"
    assert seen[0].get("x-forwarded-for") == CLIENT
    assert f"for={CLIENT}" in seen[0].get("forwarded")


def test_a_tunnel_is_the_clients(running, scripted_origin):
    there = scripted_origin(lambda connection: connection.send(connection.read_exactly(4)))
    with wire_after(running, line(CLIENT)) as wire:
        wire.send(f"CONNECT {there.authority} HTTP/1.1\r\nHost: {there.authority}\r\n\r\nping")
        assert wire.read_head().status == 200
        assert wire.read_exactly(4) == b"ping"
    assert CLIENT in running.wait_access()[0]["client"]


# Reload, shutdown, upgrade


def test_a_reload_changes_the_senders(running, there):
    with wire_after(running, line(CLIENT)) as kept, running.wire() as waiting:
        assert kept.ask(request(there.url("/"))).status == 200
        running.config["listeners"][0]["proxyProtocol"] = {"from": ["127.0.0.2"]}
        running.write_config(running.config)
        running.signal(signal.SIGHUP)
        # Who came under other requirements is not kept.
        assert is_closed(kept) and is_closed(waiting)
    with wire_after(running, line(CLIENT)) as wire:
        assert is_closed(wire)
    with wire_from(running, "127.0.0.2") as wire:
        wire.send(line(CLIENT))
        assert wire.ask(request(there.url("/"))).status == 200


def test_a_client_whose_header_is_under_way_is_served_by_a_gateway_that_ends(running, there):
    with wire_after(running, line(CLIENT)[:10]) as wire:
        until(lambda: clients(running) == 1, "it is accepted")
        running.signal(signal.SIGTERM)
        running.wait_log("drain|shutting|stopp")
        wire.send(line(CLIENT)[10:])
        assert wire.ask(request(there.url("/"))).status == 200
    assert running.wait_exit() == 0


def test_senders_without_a_valid_header_do_not_hold_up_the_end(running):
    with wire_after(running, b"PROXY") as wire:
        until(lambda: clients(running) == 1, "it is accepted")
        running.signal(signal.SIGTERM)
        assert is_closed(wire)
    assert running.wait_exit() == 0


# The configuration


@pytest.mark.parametrize("written, word", [
    ("{}", "proxyProtocol.from"), ("{ from: [] }", "names no sender"), ("true", "mapping"),
    ("{ from: [10.0.0.1/8] }", "10.0.0.0/8"), ("{ from: [example.com] }", "not a network"),
    ("{ from: 10.0.0.0/8 }", "list"), ("{ from: [10.0.0.0/8], to: x }", "unknown key")])
def test_the_key_is_checked(workspace, written, word):
    file = workspace / "c.yaml"
    file.write_text(f"listeners: [{{ address: '127.0.0.1:0', proxyProtocol: {written} }}]\n"
                    "cache: { enabled: false }\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1 and word in done.stderr, done.stderr


def test_check_prints_the_key_and_warns_of_everyone(workspace):
    file = workspace / "c.yaml"
    file.write_text("listeners: [{ address: '127.0.0.1:0', proxyProtocol: { from: [0.0.0.0/0] } }]\n"
                    "cache: { enabled: false }\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 0
    assert 'proxyProtocol: { from: ["0.0.0.0/0"] }' in done.stdout
    assert "name the load balancers" in done.stderr


# Real load balancers


@pytest.mark.parametrize("options", [
    "send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options crc32c,unique-id,authority",
    "send-proxy-v2-ssl", "send-proxy-v2-ssl-cn"])
@pytest.mark.parametrize("is_secure", [False, True], ids=["clear", "tls"])
def test_haproxy_names_its_clients(gateway, there, workspace, pki, options, is_secure):
    running = gateway({"listeners": [behind("127.0.0.1")], "access": {"clients": ["127.0.0.3"]},
                       **NO_CACHE})
    leaf = pki.root.issue(NAME) if is_secure else None
    front = HAProxy(workspace / "haproxy", running.proxy, options, leaf)
    try:
        sock = socket.create_connection(front.address, 20, source_address=("127.0.0.3", 0))
        port = sock.getsockname()[1]
        if is_secure:
            sock = client_context(pki.root).wrap_socket(sock, server_hostname=NAME)
        with Wire(front.address, sock=sock) as wire:
            assert wire.ask(request(there.url("/"))).body == b"here"
    finally:
        front.stop()
    line_ = next(one for one in running.wait_access() if one["status"] == 200)
    assert line_["client"] == f"127.0.0.3:{port}"


def test_health_checks_of_haproxy_are_its_own(gateway, there, workspace):
    running = gateway({"listeners": [behind("127.0.0.1")], "access": {"clients": ["127.0.0.3"]},
                       **NO_CACHE})
    front = HAProxy(workspace / "haproxy", running.proxy,
                    "send-proxy-v2 check check-send-proxy inter 100")
    try:
        until(lambda: running.metric("pinfold_proxy_headers_total", version="2") >= 2, "checks")
        sock = socket.create_connection(front.address, 20, source_address=("127.0.0.3", 0))
        with Wire(front.address, sock=sock) as wire:
            assert wire.ask(request(there.url("/"))).body == b"here"
    finally:
        front.stop()


def test_nginx_names_its_clients(gateway, there, workspace):
    running = gateway({"listeners": [behind("127.0.0.1")], "access": {"clients": ["127.0.0.3"]},
                       **NO_CACHE})
    front = NginxStream(workspace / "stream", running.proxy)
    try:
        sock = socket.create_connection(front.address, 20, source_address=("127.0.0.3", 0))
        with Wire(front.address, sock=sock) as wire:
            assert wire.ask(request(there.url("/"))).body == b"here"
    finally:
        front.stop()
    assert any("127.0.0.3" in one["client"] for one in running.wait_access())
