"""Listeners on Unix sockets: whose clients have no address, and are one client to limits."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest
from support.gateway import Gateway, run_pinfold
from support.origin import reply
from support.proxy_headers import HAProxy, behind, line
from support.secure import NAME, client_context, tls_of
from support.servers import accepts
from support.socks import asked, code, listener, negotiated
from support.upgrades import Succession
from support.wait import until
from support.wire import Wire, request

NO_CACHE = {"cache": {"enabled": False}}


@pytest.fixture
def there(origin):
    return origin(lambda _: reply(b"here", "200 OK", "Cache-Control: no-store"))


@pytest.fixture
def path(workspace) -> Path:
    return workspace / "proxy.sock"


def on(path: Path, *clients: str, **keys: object) -> dict:
    return {"listeners": [{"name": "proxy", "address": f"unix:{path}", "kind": "forward", **keys}],
            "access": {"clients": list(clients) or ["unix"]}, **NO_CACHE}


def clients(running: Gateway) -> float:
    """How many are connected, besides who asks."""
    return running.metric("pinfold_client_connections_open") - 1


def is_closed(wire: Wire) -> bool:
    try:
        return wire.read_to_end() == b""
    except ConnectionResetError:
        return True


def answers(running: Gateway, there) -> bool:
    with running.wire() as wire:
        return wire.ask(request(there.url("/"))).body == b"here"


@pytest.mark.parametrize("workers", [1, 3])
def test_clients_of_a_unix_socket_are_served(gateway, there, path, workers):
    running = gateway({**on(path), "workers": workers})
    assert running.listeners["proxy"] == (f"unix:{path}", 0)
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    for _ in range(2 * workers):
        assert answers(running, there)
    for logged in running.wait_access(2 * workers):
        assert logged["client"] == "unix"
    assert running.stop() == 0
    assert not path.exists()


def test_all_workers_serve_them(gateway, there, path):
    running = gateway({**on(path), "workers": 3})
    wires = [running.wire() for _ in range(9)]
    for wire in wires:
        assert wire.ask(request(there.url("/"))).body == b"here"
    assert clients(running) == 9
    for wire in wires:
        wire.close()
    until(lambda: clients(running) == 0, "all are gone")


@pytest.mark.parametrize("clients", [["127.0.0.1"], ["0.0.0.0/0", "::/0"], ["0.0.0.0/8"]])
def test_they_are_served_only_where_the_file_says_so(gateway, there, path, clients):
    running = gateway(on(path, *clients))
    with running.wire() as wire:
        answer = wire.ask(request(there.url("/")))
        assert answer.status == 403 and b"client-not-allowed" in answer.body
    assert "refuses everyone" in run_pinfold("check", "--config", str(running.config_file)).stderr


def test_nobody_else_is_served_by_that_word(gateway, there, path):
    running = gateway({
        **on(path), "listeners": [*on(path)["listeners"],
                                  {"name": "tcp", "address": "127.0.0.1:0", "kind": "forward"}]})
    assert answers(running, there)
    with running.wire("tcp") as wire:
        assert wire.ask(request(there.url("/"))).status == 403


def test_rules_name_them(gateway, there, path):
    running = gateway({**on(path), "access": {"clients": ["unix"], "rules": [
        {"name": "net", "clients": ["0.0.0.0/0"], "action": "deny"},
        {"name": "local", "clients": ["unix"], "methods": ["POST"], "action": "deny"}]}})
    with running.wire() as wire:
        assert wire.ask(request(there.url("/"))).status == 200
    with running.wire() as wire:
        assert wire.ask(request(there.url("/"), method="POST")).status == 403
    assert "local" in [one.get("rule") for one in running.wait_access(2)]


def test_limits_count_them_as_one_client(gateway, there, path):
    running = gateway({**on(path), "limits": {"perClient": {"connections": 2}}, "workers": 1})
    wires = [running.wire() for _ in range(2)]
    for wire in wires:
        assert wire.ask(request(there.url("/"))).status == 200
    with running.wire() as third:
        assert third.ask(request(there.url("/"))).status == 200
    assert is_closed(wires[0])


@pytest.mark.parametrize("mode", ["0660", "0666"])
def test_the_file_has_its_mode(gateway, path, mode):
    running = gateway(on(path, mode=mode), preexec=lambda: os.umask(0o077))
    assert stat.S_IMODE(path.lstat().st_mode) == int(mode, 8)
    running.config["listeners"][0]["mode"] = "0600"
    running.write_config(running.config)
    running.signal(signal.SIGHUP)
    until(lambda: stat.S_IMODE(path.lstat().st_mode) == 0o600, "the mode has changed")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_file_has_its_owner(gateway, there, path):
    nobody = pwd.getpwnam("nobody")
    running = gateway(on(path, owner=f"nobody:{nobody.pw_gid}", mode="0660"))
    assert (path.lstat().st_uid, path.lstat().st_gid) == (nobody.pw_uid, nobody.pw_gid)
    assert stat.S_IMODE(path.lstat().st_mode) == 0o660
    assert answers(running, there)


def test_a_file_that_was_left_behind_is_replaced(gateway, there, path):
    running = gateway(on(path))
    running.kill()
    assert path.exists()
    running.start()
    assert answers(running, there)


def test_a_file_in_use_or_of_another_kind_is_not(gateway, there, path):
    first = gateway(on(path))
    second = gateway(on(path), start=False)
    second.start(wait=False)
    assert second.wait_exit() == 1 and "another process listens there" in second.log()
    assert answers(first, there)
    first.stop()
    path.write_text("mine")
    third = gateway(on(path), start=False)
    third.start(wait=False)
    assert third.wait_exit() == 1 and "not replaced" in third.log()
    assert path.read_text() == "mine"


def test_a_reload_adds_and_removes_them(gateway, there, path, workspace):
    other = workspace / "other.sock"
    running = gateway(on(path))
    running.config["listeners"].append(
        {"name": "more", "address": f"unix:{other}", "kind": "forward"})
    running.write_config(running.config)
    running.signal(signal.SIGHUP)
    until(lambda: accepts((f"unix:{other}", 0)), "the socket is there")
    with Wire((f"unix:{other}", 0)) as wire:
        assert wire.ask(request(there.url("/"))).body == b"here"
    del running.config["listeners"][0]
    running.write_config(running.config)
    running.signal(signal.SIGHUP)
    until(lambda: not path.exists(), "the file is gone")
    with Wire((f"unix:{other}", 0)) as wire:
        assert wire.ask(request(there.url("/"))).body == b"here"


def test_a_reload_keeps_connections_and_the_queue(gateway, there, path):
    running = gateway(on(path))
    with running.wire() as wire:
        assert wire.ask(request(there.url("/"))).status == 200
        inode = path.lstat().st_ino
        running.signal(signal.SIGHUP)
        until(lambda: running.admin_get("/api/v1/status").json()["configuration"]["generation"] == 2,
              "it is reloaded")
        assert wire.ask(request(there.url("/"))).status == 200
        assert path.lstat().st_ino == inode
    assert answers(running, there)


def test_nobody_waits_at_a_gateway_that_ends(gateway, path, scripted_origin):
    there = scripted_origin(lambda connection: connection.read_to_end())
    running = gateway(on(path))
    with running.wire() as wire:
        wire.send(f"CONNECT {there.authority} HTTP/1.1\r\nHost: {there.authority}\r\n\r\n")
        assert wire.read_head().status == 200
        running.signal(signal.SIGTERM)

        def refused() -> bool:
            try:
                running.wire().close()
            except OSError:
                return True
            return False

        until(refused, "no connection is accepted any more")
    assert running.wait_exit() == 0


def test_a_path_may_be_relative_and_must_fit(workspace):
    file = workspace / "c.yaml"

    def check(address: str, *more: str):
        file.write_text(f"listeners: [{{ address: '{address}'{''.join(', ' + one for one in more)} }}]\n"
                        "access: { clients: [unix] }\ncache: { enabled: false }\n")
        return run_pinfold("check", "--config", str(file))

    done = check("unix:a.sock", 'mode: "0660"', "owner: root")
    assert done.returncode == 0, done.stderr
    assert f'address: "unix:{workspace}/a.sock"' in done.stdout
    assert 'mode: "0660"' in done.stdout and 'owner: "root"' in done.stdout
    assert 'clients: ["unix"]' in done.stdout
    for address, word in (("unix:", "names no file"), ("unix:" + "x" * 120, "too long"),
                          ("unix:a/", "names no file")):
        done = check(address)
        assert done.returncode == 1 and word in done.stderr, done.stderr
    for keys, word in (("mode: 660", "octal"), ("owner: no-such-user", "no user"),
                       ("owner: root:no-such-group", "no group"), ("owner: 'a:b:c'", "owner")):
        done = check("unix:a.sock", keys)
        assert done.returncode == 1 and word in done.stderr, done.stderr
    for keys in ('mode: "0660"', "owner: root"):
        done = check("127.0.0.1:0", keys)
        assert done.returncode == 1 and "only to a Unix socket" in done.stderr


def test_two_listeners_have_two_paths(workspace):
    file = workspace / "c.yaml"
    file.write_text("listeners: [{ address: 'unix:a' }, { address: 'unix:./a' }]\n"
                    "access: { clients: [unix] }\ncache: { enabled: false }\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1 and "used by another listener" in done.stderr


@pytest.mark.parametrize("place", ["access: { clients: [0.0.0.0] }",
                                   "access: { clients: [0.0.0.0/32] }"])
def test_the_word_has_no_other_spelling(workspace, place):
    file = workspace / "c.yaml"
    file.write_text(f"{place}\ncache: {{ enabled: false }}\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1 and "unix" in done.stderr


def test_explain_knows_them(workspace):
    file = workspace / "c.yaml"
    file.write_text("listeners: [{ address: 'unix:a' }]\naccess: { clients: [unix] }\n"
                    "cache: { enabled: false }\n")

    def explained(client: str):
        return run_pinfold("explain", "--config", str(file), "--client", client,
                           "--address", "192.0.2.1", "http://a.test/").stdout

    assert "client: unix is served" in explained("unix")
    assert "is served" not in explained("127.0.0.1")


# With the others


def test_tls_and_socks_over_them(gateway, there, path, workspace, pki):
    secure, socks = workspace / "tls.sock", workspace / "socks.sock"
    config = on(path)
    config["listeners"] += [
        {"name": "tls", "address": f"unix:{secure}", "kind": "forward",
         "tls": tls_of(pki.root.issue(NAME))},
        listener(address=f"unix:{socks}")]
    running = gateway(config)
    plain = running.wire("tls")
    with Wire(running.proxy, sock=client_context(pki.root).wrap_socket(
            plain.socket, server_hostname=NAME)) as wire:
        assert wire.ask(request(there.url("/"))).body == b"here"
    with negotiated(running) as wire:
        wire.send(asked("127.0.0.1", there.port))
        assert code(wire) == 0
        wire.send(f"GET / HTTP/1.1\r\nHost: {there.authority}\r\nConnection: close\r\n\r\n")
        assert wire.read_final("GET").body == b"here"


def test_servers_are_told_that_the_client_is_unknown(gateway, origin, path):
    seen = []
    there = origin(lambda one: seen.append(one) or reply(b"here"))
    running = gateway(on(path, kind="reverse", upstream=there.url("")))
    done = subprocess.run(["curl", "-q", "-sS", "--unix-socket", str(path), "http://a.test/"],
                          capture_output=True, text=True, timeout=30)
    assert done.stdout == "here", done.stderr
    assert seen[0].get("x-forwarded-for") == "unknown"
    assert "for=unknown" in seen[0].get("forwarded")
    running.config["listeners"][0]["trustedProxies"] = ["unix"]
    running.write_config(running.config)
    running.signal(signal.SIGHUP)

    def trusted() -> bool:
        with running.wire() as wire:
            wire.ask("GET / HTTP/1.1\r\nHost: a.test\r\nX-Forwarded-For: 192.0.2.9\r\n\r\n")
        return seen[-1].get("x-forwarded-for") == "192.0.2.9, unknown"

    until(trusted, "who speaks at the socket is trusted")


def test_a_load_balancer_may_connect_to_one(gateway, there, path, workspace):
    running = gateway({**NO_CACHE, "listeners": [behind("unix", address=f"unix:{path}")],
                       "access": {"clients": ["192.0.2.0/24", "127.0.0.3"]}})
    with running.wire() as wire:
        wire.send(line("192.0.2.7"))
        assert wire.ask(request(there.url("/"))).body == b"here"
    front = HAProxy(workspace / "haproxy", running.proxy, "send-proxy-v2")
    try:
        sock = socket.create_connection(front.address, 20, source_address=("127.0.0.3", 0))
        with Wire(front.address, sock=sock) as wire:
            assert wire.ask(request(there.url("/"))).body == b"here"
    finally:
        front.stop()
    found = [one["client"].rsplit(":", 1)[0] for one in running.wait_access(2)]
    assert "192.0.2.7" in found and "127.0.0.3" in found


def test_a_header_cannot_name_them(gateway, there, path):
    running = gateway({**NO_CACHE, "listeners": [behind("127.0.0.1")],
                       "access": {"clients": ["unix"]}})
    with running.wire() as wire:
        wire.send(line("0.0.0.0", port=0) + request(there.url("/")))
        assert is_closed(wire)


# Upgrades


def test_a_successor_accepts_at_the_same_socket(gateway, there, path):
    one = Succession(gateway(on(path), start=False))
    inode = path.lstat().st_ino
    try:
        for _ in range(2):
            former, start = one.pid, one.begin()
            while "the successor serves" not in one.log_from(start):
                assert answers(one.gateway, there)
            one.pid = int(one.log_from(start).split("pid=")[-1].split()[0].strip('"'))
            until(lambda: former not in one.members(), "the predecessor has ended", 20)
            assert path.lstat().st_ino == inode
            assert answers(one.gateway, there)
    finally:
        one.close()
    assert not path.exists()


def test_a_successor_that_listens_elsewhere_leaves_no_file(gateway, there, path, workspace):
    one = Succession(gateway(on(path), start=False))
    other = workspace / "other.sock"
    try:
        former = one.pid
        one.gateway.config["listeners"][0]["address"] = f"unix:{other}"
        one.gateway.write_config(one.gateway.config)
        one.upgrade()
        until(lambda: former not in one.members(), "the predecessor has ended", 20)
        assert not path.exists()
        one.gateway.listeners["proxy"] = (f"unix:{other}", 0)
        assert answers(one.gateway, there)
    finally:
        one.close()
    assert not other.exists()
