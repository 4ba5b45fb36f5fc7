"""Rules by who is asking: users and groups, with passwords and tokens, in tunnels and for hits."""

from __future__ import annotations

import pytest
from support.credentials import basic, bcrypt, digest, write
from support.gateway import run_pinfold
from support.interception import HOST, Inside
from support.origin import reply
from support.secure import reload

ANN, BEA = basic("ann", "one"), basic("bea", "two")
CI = "Bearer sesame"
RULES = [
    {"name": "admins", "groups": ["admins"], "action": "allow"},
    {"name": "builds", "users": ["ci"], "hosts": ["127.0.0.1"], "action": "allow"},
    {"name": "readers", "groups": ["staff"], "methods": ["GET"], "action": "allow"},
]


@pytest.fixture
def config(workspace):
    write(workspace / "users", f"ann:{bcrypt('one')}", f"bea:{bcrypt('two')}", f"eve:{bcrypt('x')}")
    write(workspace / "groups", "admins: ann", "staff: ann bea")
    write(workspace / "tokens", f"ci:{digest('sesame')}:build")
    return {
        "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward",
                       "authentication": ["basic", "bearer"]}],
        "authentication": {"users": str(workspace / "users"), "tokens": str(workspace / "tokens"),
                           "groups": str(workspace / "groups")},
        "access": {"default": "deny", "rules": RULES, "clients": ["127.0.0.0/8"],
                   "connectPorts": "any", "destinations": {"allow": ["127.0.0.0/8", "**.test"]}}}


@pytest.fixture
def there(origin):
    return origin(lambda seen: reply(seen.method.encode(), "200 OK", "Cache-Control: max-age=60"))


def head(method: str, url: str, credentials: str | None, *fields: str) -> str:
    lines = [f"{method} {url} HTTP/1.1", "Host: x", *fields]
    lines += [f"Proxy-Authorization: {credentials}"] if credentials else []
    return "\r\n".join(lines) + "\r\n\r\n"


def test_rules_apply_to_users_and_groups(gateway, config, there):
    running = gateway(config)
    url = there.url("/")
    with running.wire() as wire:
        def status(method: str, credentials: str | None, target: str = url) -> int:
            wire.send(head(method, target, credentials, "Content-Length: 0"))
            return wire.read().status

        assert status("GET", None) == 407
        assert [status("GET", who) for who in (ANN, BEA, CI, basic("eve", "x"))] == [
            200, 200, 200, 403]
        # Known, and may not: never another 407.
        assert [status("PUT", who) for who in (ANN, BEA, CI)] == [200, 403, 200]
        other = f"http://other.test:{there.port}/"
        assert [status("GET", who, other) for who in (ANN, CI)] == [200, 403]
    lines = running.wait_access(10)
    assert [(line.get("user"), line.get("rule")) for line in lines][:5] == [
        (None, None), ("ann", "admins"), ("bea", "readers"), ("ci", "builds"), ("eve", None)]


def test_a_hit_is_given_only_to_those_who_may_ask(gateway, config, there):
    running = gateway(config)
    url = there.url("/x")
    with running.wire() as wire:
        for who in (ANN, BEA):
            wire.send(head("GET", url, who))
            response = wire.read()
        assert "hit" in response.cache_status
        wire.send(head("GET", url, basic("eve", "x")))
        assert wire.read().status == 403


def test_the_user_of_a_connect_is_that_of_every_request_in_it(
        gateway, config, origin, pki, authority):
    there = origin(lambda seen: reply(b"inside"), tls=pki.intermediate.issue(HOST).server_context())
    running = gateway({**config, "tls": {"roots": [str(pki.root.pem_file)]},
                       "interception": {**authority.section, "default": True}})

    def inside(credentials: str, *lines: str) -> bytes:
        with running.wire() as wire:
            wire.send(head("CONNECT", f"{HOST}:{there.port}", credentials))
            response = wire.read_head()
            if response.status != 200:
                return str(response.status).encode()
            client = Inside(authority.file)
            client.shake(wire)
            text = "\r\n".join([*lines, f"Host: {HOST}:{there.port}", "Content-Length: 0"])
            return client.ask(wire, (text + "\r\n\r\n").encode(), b"\r\n\r\n")[9:12]

    assert inside(BEA, "GET / HTTP/1.1") == b"200"
    assert inside(BEA, "PUT / HTTP/1.1") == b"403"
    # What a server is told is not who asks the gateway.
    assert inside(BEA, "PUT / HTTP/1.1", f"Authorization: {ANN}") == b"403"
    assert inside(ANN, "PUT / HTTP/1.1") == b"200"
    assert inside(basic("eve", "x"), "GET / HTTP/1.1") == b"403"


def test_a_tunnel_ends_when_its_user_may_no_longer(gateway, config, scripted_origin):
    def echo(connection):
        while data := connection.socket.recv(1000):
            connection.socket.sendall(data)

    there = scripted_origin(echo)
    running = gateway(config)
    with running.wire() as wire:
        wire.send(head("CONNECT", f"127.0.0.1:{there.port}", CI))
        assert wire.read_head().status == 200
        wire.send("x")
        assert wire.read_exactly(1) == b"x"
        reload(running, {**running.config, "access": {**config["access"], "rules": RULES[:1]}})
        assert wire.ended()


def test_explain_judges_for_a_user(gateway, config, there):
    running = gateway(config)

    def explain(*arguments: str):
        return run_pinfold("explain", "--config", str(running.config_file), "--address",
                           "127.0.0.1", there.url("/"), *arguments)

    assert "none decides; refused: 403 denied-by-default" in explain().stdout
    assert "admins decides; allowed" in explain("--user", "ann", "--method", "PUT").stdout
    assert "builds decides; allowed" in explain("--user", "ci").stdout
    assert "admins decides; allowed" in explain("--user", "ci", "--group", "admins").stdout
    assert explain("--group", "admins").returncode == 2
    done = explain("--user", "nobody")
    assert done.returncode == 2 and "there is no user nobody" in done.stderr


@pytest.mark.parametrize("rule, error", [
    ("users: [anna]", 'there is no user "anna" (did you mean "ann"?)'),
    ("groups: [admin]", 'there is no group "admin" (did you mean "admins"?)'),
])
def test_a_rule_that_names_nobody_is_an_error(workspace, rule, error):
    write(workspace / "users", f"ann:{bcrypt('one')}")
    write(workspace / "groups", "admins: ann")
    file = workspace / "pinfold.yaml"
    file.write_text(f"""
listeners: [{{ name: p, address: "127.0.0.1:0", kind: forward, authentication: [basic] }}]
authentication: {{ users: users, groups: groups }}
access: {{ rules: [{{ name: a, {rule}, action: deny }}] }}
""")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1 and error in done.stderr, done.stderr


@pytest.mark.parametrize("field", ["Proxy-Authorization", "Authorization"])
def test_no_proof_is_in_the_cache_whatever_a_server_nominates(gateway, config, origin, field):
    there = origin(lambda seen: reply(b"x", "200 OK", "Cache-Control: public, max-age=60",
                                      f"Vary: {field}"))
    kind = {"Proxy-Authorization": {"kind": "forward"}, "Authorization": {
        "kind": "reverse", "upstream": there.url("").rstrip("/")}}[field]
    running = gateway({**config, "access": {**config["access"], "rules": [
        {"name": "all", "action": "allow"}]}, "listeners": [
            {"name": "proxy", "address": "127.0.0.1:0", "authentication": ["basic"], **kind}]})
    running.wait_for_disk()
    target = there.url("/") if field == "Proxy-Authorization" else "/"
    for who in (ANN, BEA, ANN):
        with running.wire() as wire:
            wire.send(f"GET {target} HTTP/1.1\r\nHost: x\r\n{field}: {who}\r\n\r\n")
            response = wire.read()
            assert response.status == 200
    # It is the proxy's, and not sent on: it is no reason for variants.
    assert ("hit" in response.cache_status) == (field == "Proxy-Authorization")
    assert running.stop() == 0
    stored = b"".join(file.read_bytes() for file in (running.folder / "cache").glob("cache.sqlite*"))
    assert stored
    for proof in (ANN, BEA):
        assert proof.encode() not in stored
        assert proof.removeprefix("Basic ").encode() not in stored
        assert bytes.fromhex(digest(proof)) not in stored
