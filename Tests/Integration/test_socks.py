"""Listeners of kind socks5: what clients ask for is decided as a CONNECT is."""

from __future__ import annotations

import json
import signal
import ssl
import subprocess

import pytest
import socks
from support.credentials import bcrypt, write
from support.gateway import Gateway, free_port, run_pinfold, wire_from
from support.git import git, git_http_backend, make_repository
from support.interception import HOST, Inside
from support.origin import reply
from support.proxy_headers import line
from support.socks import (
    GREETING, asked, code, credentials, is_closed, listener, negotiated, tunnel)
from support.wait import until
from support.wire import Wire

NO_CACHE = {"cache": {"enabled": False}}
PLAIN = {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"}
ANN = ("ann", "secret")


@pytest.fixture
def there(origin):
    return origin(lambda _: reply(b"here", "200 OK", "Cache-Control: no-store"))


@pytest.fixture
def running(gateway) -> Gateway:
    return gateway({"listeners": [PLAIN, listener()], **NO_CACHE})


@pytest.fixture
def files(workspace):
    write(workspace / "users", f"ann:{bcrypt('secret')}", f"bob:{bcrypt('')}")
    write(workspace / "groups", "staff: ann")
    return workspace


def asking(files, **more: object) -> dict:
    return {"listeners": [PLAIN, listener("basic")], **NO_CACHE,
            "authentication": {"users": str(files / "users"), "groups": str(files / "groups")},
            **more}


def clients(running: Gateway) -> float:
    """How many are connected, besides who asks."""
    return running.metric("pinfold_client_connections_open") - 1


def get(there, path: str = "/") -> bytes:
    return (f"GET {path} HTTP/1.1\r\nHost: {there.authority}\r\nConnection: close\r\n\r\n").encode()


def refused(running: Gateway, cause: str) -> float:
    return running.metric("pinfold_socks_refused_total", cause=cause)


# Tunnels


@pytest.mark.parametrize("host, kind", [
    ("127.0.0.1", 1), ("127.0.0.1", 3), ("localhost", 3), ("::ffff:127.0.0.1", 4)])
def test_a_tunnel_leads_to_an_address_or_a_name(running, there, host, kind):
    with tunnel(running, host, there.port, kind=kind) as wire:
        wire.send(get(there))
        assert wire.read_final("GET").body == b"here"
    (logged,) = running.wait_access()
    assert logged["method"] == "CONNECT" and logged["version"] == "SOCKS5"
    shown = f"[{host}]" if ":" in host else host
    assert logged["target"] == f"{shown}:{there.port}" and logged["status"] == 200
    assert logged["listener"] == "socks" and logged["upstream"].endswith(f":{there.port}")


def test_all_may_arrive_at_once_and_what_follows_is_relayed(running, there):
    with running.wire("socks") as wire:
        wire.send(GREETING + asked("127.0.0.1", there.port) + get(there))
        assert wire.read_exactly(2) == b"\x05\x00"
        assert code(wire) == 0
        assert wire.read_final("GET").body == b"here"


def test_all_may_arrive_byte_by_byte(running, there):
    with running.wire("socks") as wire:
        for byte in GREETING + asked("localhost", there.port) + get(there):
            wire.send(bytes([byte]))
        assert wire.read_exactly(2) == b"\x05\x00"
        assert code(wire) == 0
        assert wire.read_final("GET").body == b"here"


def test_both_directions_and_ends_are_relayed(running, scripted_origin):
    def echo(connection):
        data = connection.read_to_end()
        connection.send(data[::-1])

    there = scripted_origin(echo)
    with tunnel(running, "127.0.0.1", there.port) as wire:
        wire.send(b"x" * 300_000 + b"y")
        wire.half_close()
        assert wire.read_to_end() == b"y" + b"x" * 300_000


# Rules: as for CONNECT


def socks_code(running: Gateway, host: str, port: int, user=None, kind: int | None = None) -> int:
    with negotiated(running, user) as wire:
        wire.send(asked(host, port, kind=kind))
        found = code(wire)
        if found:
            assert is_closed(wire)
        return found


def connect_status(running: Gateway, host: str, port: int) -> int:
    shown = f"[{host}]" if ":" in host else host
    wire, answer = running.connect(f"{shown}:{port}")
    wire.close()
    return answer.status


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0", "169.254.169.254", "10.1.2.3",
                                  "::1", "::ffff:10.0.0.1", "denied.test"])
@pytest.mark.parametrize("kind", [None, 3])
def test_what_connect_refuses_is_refused(gateway, host, kind):
    running = gateway({
        "listeners": [PLAIN, listener()], **NO_CACHE,
        "access": {"connectPorts": [443], "destinations": {"allow": [], "deny": ["denied.test"]}}})
    assert connect_status(running, host, 443) == 403
    assert socks_code(running, host, 443, kind=kind) == 2
    connected, by_socks = sorted(running.wait_access(2), key=lambda one: one["listener"])
    assert connected["reason"] == by_socks["reason"] == "destination-refused"
    assert by_socks["version"] == "SOCKS5" and by_socks["status"] == 403
    assert connected["target"] == by_socks["target"]


def test_ports_hosts_and_rules_are_those_of_connect(gateway, there):
    running = gateway({
        "listeners": [PLAIN, listener()], **NO_CACHE,
        "access": {"connectPorts": [443, there.port], "rules": [
            {"name": "no", "listeners": ["socks"], "hosts": ["localhost"], "action": "deny"},
            {"name": "teapot", "methods": ["CONNECT"], "ports": [443], "action": "deny",
             "status": 451}]}})
    assert socks_code(running, "127.0.0.1", 80) == 2
    assert socks_code(running, "localhost", there.port) == 2
    assert socks_code(running, "127.0.0.1", 443) == 2
    assert socks_code(running, "127.0.0.1", there.port) == 0
    lines = {one["target"]: one for one in running.wait_access(4)}
    assert lines["127.0.0.1:80"]["reason"] == "connect-port-refused"
    assert lines[f"localhost:{there.port}"]["rule"] == "no"
    assert lines["127.0.0.1:443"]["reason"] == "denied-by-rule"
    assert lines["127.0.0.1:443"]["status"] == 451


def test_only_listed_hosts_are_reached_where_only_those_may_be(gateway, there):
    running = gateway({"listeners": [PLAIN, listener()], **NO_CACHE,
                       "access": {"hosts": "listed"}, "hosts": [{"match": ["localhost"]}]})
    assert socks_code(running, "127.0.0.1", there.port) == 2
    assert socks_code(running, "localhost", there.port) == 0


def test_a_pinned_host_is_not_reached_past_its_pins(gateway, there):
    running = gateway({
        "listeners": [PLAIN, listener()], **NO_CACHE,
        "pinsets": {"p": {"mode": "publicKey", "pins": ["sha256/" + "A" * 43 + "="]}},
        "hosts": [{"match": ["localhost"], "pinsets": ["p"]}]})
    assert socks_code(running, "localhost", there.port) == 2
    assert running.wait_access()[0]["reason"] == "tunnel-refused"


def test_clients_outside_access_are_refused(gateway, there):
    running = gateway({"listeners": [PLAIN, listener()], **NO_CACHE,
                       "access": {"clients": ["127.0.0.1"]}})
    wire = wire_from(running, "127.0.0.2", listener="socks")
    with negotiated(running, wire=wire):
        wire.send(asked("127.0.0.1", there.port))
        assert code(wire) == 2
    assert running.wait_access()[0]["reason"] == "client-not-allowed"


def test_a_client_has_its_limit_of_tunnels(gateway, scripted_origin):
    there = scripted_origin(lambda connection: connection.read_to_end())
    running = gateway({"listeners": [PLAIN, listener()], **NO_CACHE,
                       "limits": {"perClient": {"exchanges": 1}}})
    with tunnel(running, "127.0.0.1", there.port):
        assert socks_code(running, "127.0.0.1", there.port) == 1
        assert running.wait_access()[0]["reason"] == "client-exchange-limit"


def test_failures_have_their_codes(running, dns):
    assert socks_code(running, "127.0.0.1", free_port()) == 5
    assert socks_code(running, "nowhere.invalid", 443) == 4


@pytest.mark.parametrize("name", ["127.1", "0x7f000001", "a..b", "-", "x" * 254, "a%zz"])
def test_names_are_validated_as_authorities(running, name):
    """Whatever a CONNECT to it would be answered."""
    status = connect_status(running, name, 443)
    assert status >= 400
    assert socks_code(running, name, 443, kind=3) in (1, 4)
    lines = running.wait_access(2)
    assert lines[0]["reason"] == lines[1]["reason"], lines


@pytest.mark.parametrize("name", [
    "a\r\nX: 1", "a b", "a:443", "user@a", "a/b", "a#b", "", "\0", "[::1", "é.test"])
def test_a_name_cannot_be_more_than_a_name(running, name):
    with negotiated(running) as wire:
        wire.send(asked(name, 443, kind=3))
        assert code(wire) == 1
        assert is_closed(wire)
    assert refused(running, "malformed") == 1


# What is no request


@pytest.mark.parametrize("data, token", [
    (b"\x04\x01\x01\xbb\x7f\x00\x00\x01me\x00", "socks-version-4"),
    (b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", "socks-http"),
    (b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n", "socks-http"),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "socks-http"), (line("192.0.2.1"), "socks-http"),
    (b"\x16\x03\x01\x00\xf8\x01", "socks-tls"), (b"\x00\x00", "socks-version")])
def test_other_protocols_get_no_answer(running, data, token):
    with running.wire("socks") as wire:
        wire.send(data)
        assert is_closed(wire)
    assert refused(running, "version") == 1
    assert f"reason={token}" in running.wait_log("a client of a socks5 listener is refused")
    assert running.access_lines() == []


@pytest.mark.parametrize("data, answer, cause", [
    (b"\x05\x00", b"\x05\xff", "method"), (b"\x05\x01\x02", b"\x05\xff", "method"),
    (b"\x05\xff" + b"\x02" * 255, b"\x05\xff", "method")])
def test_a_client_without_the_method_is_told(running, there, data, answer, cause):
    with running.wire("socks") as wire:
        wire.send(data + asked("127.0.0.1", there.port))
        assert is_closed(wire, answer)
    assert refused(running, cause) == 1


def test_of_many_methods_the_accepted_one_is_found(running, there):
    with running.wire("socks") as wire:
        wire.send(b"\x05\xff" + bytes(range(1, 255)) + b"\x00" + asked("127.0.0.1", there.port))
        assert wire.read_exactly(2) == b"\x05\x00" and code(wire) == 0


@pytest.mark.parametrize("data, expected, cause", [
    (asked("127.0.0.1", 80, command=2), 7, "command"),
    (asked("127.0.0.1", 80, command=3), 7, "command"),
    (asked("127.0.0.1", 80, command=9), 7, "command"),
    (b"\x05\x01\x00\x02\x00", 8, "address_type"), (b"\x05\x01\x00\xff", 8, "address_type"),
    (b"\x05\x01\x01\x01", 1, "malformed"), (b"\x04\x01\x00\x01", 1, "malformed"),
    (asked("127.0.0.1", 0), 1, "malformed")])
def test_other_commands_and_types_have_their_codes(running, there, data, expected, cause):
    with negotiated(running) as wire:
        # What follows is never taken for another request.
        wire.send(data + GREETING + asked("127.0.0.1", there.port) + get(there))
        assert code(wire) == expected
        assert is_closed(wire)
    assert refused(running, cause) == 1


def test_a_client_has_the_time_of_a_head(gateway):
    running = gateway({"listeners": [PLAIN, listener()], **NO_CACHE, "timeouts": {"head": "200ms"}})
    with running.wire("socks") as silent, running.wire("socks") as slow:
        slow.send(b"\x05")
        assert is_closed(silent) and is_closed(slow)
    with negotiated(running) as wire:
        assert is_closed(wire)
    until(lambda: refused(running, "timeout") == 3, "all are counted")


def test_clients_that_leave_are_forgotten(running):
    for data in (b"", b"\x05", GREETING, GREETING + b"\x05\x01"):
        with running.wire("socks") as wire:
            wire.send(data)
    until(lambda: clients(running) == 0, "all are gone")


# Passwords


def test_a_password_opens_a_tunnel(gateway, files, there):
    running = gateway(asking(files))
    with tunnel(running, "127.0.0.1", there.port, ANN) as wire:
        wire.send(get(there))
        assert wire.read_final("GET").body == b"here"
    (logged,) = running.wait_access()
    assert logged["user"] == "ann" and logged["version"] == "SOCKS5"
    # The proof alone is no exchange.
    assert running.metric("pinfold_authentications_total", result="accepted") == 1
    # A second time it is remembered.
    tunnel(running, "127.0.0.1", there.port, ANN).close()
    assert running.metric("pinfold_authentications_total", result="remembered") == 1
    until(lambda: running.metric("pinfold_http_requests_in_flight") == 0, "all have ended")


@pytest.mark.parametrize("user", [("ann", "wrong"), ("nobody", "secret"), ("ann", ""), ("ann", "x" * 255)])
def test_a_wrong_password_is_refused_before_the_request(gateway, files, there, user):
    running = gateway(asking(files))
    with running.wire("socks") as wire:
        wire.send(b"\x05\x01\x02" + credentials(*user) + asked("127.0.0.1", there.port))
        assert is_closed(wire, b"\x05\x02\x01\x01")
    (logged,) = running.wait_access()
    assert logged["method"] == "CONNECT" and logged["version"] == "SOCKS5"
    assert logged["status"] == 407 and logged["reason"] == "credentials-wrong"
    assert "x" * 255 not in running.log() + json.dumps(logged)
    assert running.metric("pinfold_authentications_total", result="wrong") == 1


@pytest.mark.parametrize("data", [
    b"\x01\x00\x01a", b"\x02\x01a\x01a", b"\x01\x05ann:x\x01a", b"\x05\x01\x00\x01"])
def test_malformed_credentials_are_refused(gateway, files, data):
    running = gateway(asking(files))
    with running.wire("socks") as wire:
        wire.send(b"\x05\x01\x02" + data)
        assert is_closed(wire, b"\x05\x02\x01\x01")
    assert refused(running, "malformed") == 1


def test_nobody_comes_in_without_a_password(gateway, files, there):
    running = gateway(asking(files))
    with running.wire("socks") as wire:
        wire.send(GREETING + asked("127.0.0.1", there.port))
        assert is_closed(wire, b"\x05\xff")
    assert refused(running, "method") == 1


def test_rules_know_users_and_groups(gateway, files, there):
    running = gateway(asking(files, access={
        "default": "deny", "rules": [{"name": "staff", "groups": ["staff"], "action": "allow"}]}))
    write(files / "users", f"ann:{bcrypt('secret')}", f"bob:{bcrypt('hush')}")
    running.signal(signal.SIGHUP)
    running.wait_log("reloaded|configuration")
    assert socks_code(running, "127.0.0.1", there.port, ANN) == 0
    until(lambda: authenticates(running, ("bob", "hush")), "the users are read again")
    assert socks_code(running, "127.0.0.1", there.port, ("bob", "hush")) == 2
    assert any(one.get("reason") == "denied-by-default" for one in running.wait_access(2))


def authenticates(running: Gateway, user: tuple[str, str]) -> bool:
    with running.wire("socks") as wire:
        wire.send(b"\x05\x01\x02" + credentials(*user))
        return wire.read_exactly(4) == b"\x05\x02\x01\x00"


def test_a_client_that_leaves_while_its_password_is_checked_is_forgotten(gateway, files):
    running = gateway(asking(files))
    for number in range(5):
        with running.wire("socks") as wire:
            wire.send(b"\x05\x01\x02" + credentials("ann", f"{number}"))
    until(lambda: clients(running) == 0, "all are gone")
    until(lambda: running.metric("pinfold_http_requests_in_flight") == 0, "all have ended")


# Interception and inspection


def test_an_intercepted_tunnel_is_served(gateway, pki, origin):
    there = origin(lambda _: reply(b"inside"), tls=pki.intermediate.issue(HOST).server_context())
    running = gateway({
        "listeners": [PLAIN, listener()], **NO_CACHE, "tls": {"roots": [str(pki.root.pem_file)]},
        "hosts": [{"match": [HOST], "intercept": True}],
        "interception": pki.interception.section})
    with tunnel(running, HOST, there.port) as wire:
        inside = Inside(pki.interception.file, HOST)
        wire.send(inside.hello)
        inside.shake(wire)
        found = inside.ask(wire, f"GET / HTTP/1.1\r\nHost: {HOST}:{there.port}\r\n\r\n".encode(),
                           b"inside")
        assert b"200 OK" in found
        # The tunnel outlives a reload that changes nothing about it.
        running.signal(signal.SIGHUP)
        running.wait_log("reloaded|configuration")
        assert b"200 OK" in inside.ask(
            wire, f"GET / HTTP/1.1\r\nHost: {HOST}:{there.port}\r\n\r\n".encode(), b"inside")


@pytest.mark.parametrize("is_right", [True, False])
def test_an_inspected_tunnel_has_its_pins_checked(gateway, pki, origin, is_right):
    leaf = pki.intermediate.issue(HOST)
    context = leaf.server_context()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    there = origin(lambda _: reply(b"inside"), tls=context)
    pin = leaf.pin if is_right else "sha256/" + "A" * 43 + "="
    running = gateway({
        "listeners": [PLAIN, listener()], **NO_CACHE, "tls": {"roots": [str(pki.root.pem_file)]},
        "pinsets": {"p": {"mode": "publicKey", "pins": [pin]}},
        "hosts": [{"match": [HOST], "tunnel": "inspect", "pinsets": ["p"]}]})
    wire = tunnel(running, HOST, there.port)
    trusted = ssl.create_default_context(cafile=str(pki.root.pem_file))
    if is_right:
        with trusted.wrap_socket(wire.socket, server_hostname=HOST) as secure:
            secure.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
            assert b"inside" in Wire(running.proxy, sock=secure).read_to_end()
    else:
        with pytest.raises((ssl.SSLError, OSError)):
            trusted.wrap_socket(wire.socket, server_hostname=HOST)
        assert running.wait_access()[0]["reason"] == "tls-no-pin-matches"
    wire.close()


# Clients


@pytest.mark.parametrize("kind", ["--socks5", "--socks5-hostname"])
@pytest.mark.parametrize("is_known", [False, True], ids=["open", "password"])
def test_curl(gateway, files, there, kind, is_known):
    running = gateway(asking(files) if is_known else {"listeners": [PLAIN, listener()], **NO_CACHE})
    host, port = running.listeners["socks"]
    user = ["--proxy-user", "ann:secret"] if is_known else []
    done = subprocess.run(
        ["curl", "-q", "-sS", "--noproxy", "", "--max-time", "20", kind, f"{host}:{port}", *user,
         f"http://localhost:{there.port}/"], capture_output=True, text=True, timeout=30)
    assert done.stdout == "here", done.stderr


def test_curl_says_that_the_password_is_wrong(gateway, files, there):
    running = gateway(asking(files))
    host, port = running.listeners["socks"]
    done = subprocess.run(
        ["curl", "-q", "-sS", "--noproxy", "", "--max-time", "20", "--socks5-hostname",
         f"{host}:{port}", "--proxy-user", "ann:wrong", there.url("/")],
        capture_output=True, text=True, timeout=30)
    assert done.returncode == 97 and "rejected" in done.stderr


@pytest.mark.parametrize("is_remote", [True, False])
def test_pysocks(gateway, files, there, is_remote):
    running = gateway(asking(files))
    made = socks.socksocket()
    made.set_proxy(socks.SOCKS5, *running.listeners["socks"], rdns=is_remote, username="ann",
                   password="secret")
    made.connect(("localhost" if is_remote else "127.0.0.1", there.port))
    made.sendall(get(there))
    with Wire(running.proxy, sock=made) as wire:
        assert wire.read_final("GET").body == b"here"
    wrong = socks.socksocket()
    wrong.set_proxy(socks.SOCKS5, *running.listeners["socks"], username="ann", password="no")
    with pytest.raises(socks.ProxyError):
        wrong.connect(("127.0.0.1", there.port))


def test_git(running, origin, workspace):
    there = origin(git_http_backend(make_repository(workspace).parent))
    host, port = running.listeners["socks"]
    git("clone", "-q", there.url("/repo.git"), str(workspace / "copy"),
        ALL_PROXY=f"socks5h://{host}:{port}", NO_PROXY="", no_proxy="")
    assert (workspace / "copy" / "file-9").stat().st_size == 200_000
    assert all(one["version"] == "SOCKS5" for one in running.wait_access())


# With the others


def test_a_load_balancer_may_be_before_it(gateway, there):
    running = gateway({"listeners": [PLAIN, listener(proxyProtocol={"from": ["127.0.0.1"]})],
                       **NO_CACHE, "access": {"clients": ["192.0.2.0/24"]}})
    with running.wire("socks") as wire:
        wire.send(line("192.0.2.7") + GREETING + asked("127.0.0.1", there.port) + get(there))
        assert wire.read_exactly(2) == b"\x05\x00" and code(wire) == 0
        assert wire.read_final("GET").body == b"here"
    assert "192.0.2.7" in running.wait_access()[0]["client"]


def test_a_reload_ends_what_came_under_other_requirements(gateway, files, there):
    running = gateway({**asking(files), "listeners": [PLAIN, listener()]})
    with negotiated(running) as waiting:
        running.config["listeners"][1]["authentication"] = ["basic"]
        running.write_config(running.config)
        running.signal(signal.SIGHUP)
        assert is_closed(waiting)
    assert socks_code(running, "127.0.0.1", there.port, ANN) == 0


def test_the_status_names_its_kind(running):
    found = running.admin_get("/api/v1/status").json()
    assert [one["kind"] for one in found["listeners"]] == ["forward", "socks5", "admin"]
    assert "socks5" not in running.admin_get("/setup").body.decode()


# The configuration


@pytest.mark.parametrize("keys, word", [
    ("http2: off", "http2"), ("tls: { certificate: a, key: b }", "tls"),
    ("upstream: http://a.test", "upstream"), ("authentication: [bearer]", "[basic]"),
    ("authentication: [certificate]", "[basic]"), ("authentication: [basic]", "authentication.users")])
def test_keys_that_do_not_apply_are_refused(workspace, keys, word):
    file = workspace / "c.yaml"
    file.write_text(f"listeners: [{{ address: '127.0.0.1:0', kind: socks5, {keys} }}]\n"
                    "cache: { enabled: false }\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1 and word in done.stderr, done.stderr


def test_check_prints_what_it_reads(workspace):
    file = workspace / "c.yaml"
    file.write_text("listeners: [{ address: '127.0.0.1:0', kind: socks5 }]\ncache: { enabled: false }\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 0 and "kind: socks5" in done.stdout and "http2" not in done.stdout
    again = workspace / "again.yaml"
    again.write_text(done.stdout)
    assert run_pinfold("check", "--config", str(again)).stdout == done.stdout


def test_explain_says_what_becomes_of_a_request(workspace):
    file = workspace / "c.yaml"
    file.write_text("listeners: [{ address: '127.0.0.1:0', kind: socks5 }]\ncache: { enabled: false }\n"
                    "access: { connectPorts: [443], rules: [{ name: no, methods: [CONNECT], "
                    "hosts: [a.test], action: deny }] }\n")
    def explained(url: str) -> str:
        done = run_pinfold("explain", "--config", str(file), url)
        return done.stdout + done.stderr

    assert "CONNECT" in explained("https://b.test/")
    assert "no" in explained("https://a.test/") and "denied" in explained("https://a.test/")
    assert "port" in explained("http://b.test/")
