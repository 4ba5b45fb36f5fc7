"""What members of groups do, in metrics: passwords, tokens, signed tokens, tunnels, reloads."""

from __future__ import annotations

import pytest
from support.credentials import basic, bcrypt, digest, write
from support.interception import HOST, Inside
from support.origin import reply
from support.secure import reload
from support.signed_tokens import claims, key_set, signers

KEYS = signers()
ANN, EVE = basic("ann", "one"), basic("eve", "three")
CI = "Bearer sesame"
REQUESTS, RECEIVED, SENT = (
    f"pinfold_group_{what}_total" for what in ("requests", "received_bytes", "sent_bytes"))


@pytest.fixture
def config(workspace):
    write(workspace / "users", f"ann:{bcrypt('one')}", f"eve:{bcrypt('three')}")
    write(workspace / "groups", "admins: ann", "staff: ann")
    write(workspace / "tokens", f"ci:{digest('sesame')}:build")
    write(workspace / "jwks.json", key_set(*KEYS.values()))
    return {
        "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward",
                       "authentication": ["basic", "bearer"]}],
        "authentication": {
            "users": str(workspace / "users"), "groups": str(workspace / "groups"),
            "tokens": str(workspace / "tokens"),
            "jwt": {"keys": str(workspace / "jwks.json"), "issuer": "https://id.test",
                    "audience": "pinfold", "groups": "roles"}},
        "access": {"clients": ["127.0.0.0/8"], "connectPorts": "any",
                   "destinations": {"allow": ["127.0.0.0/8", "**.test"]},
                   "rules": [{"name": "no", "groups": ["jwt:dev"], "methods": ["DELETE"],
                              "action": "deny"}]}}


@pytest.fixture
def there(origin):
    return origin(lambda seen: reply(b"12345", "200 OK", "Cache-Control: no-store"))


def series(running, name=REQUESTS) -> dict[str, float]:
    """The values of a metric by group."""
    return {sample.split('"')[1]: value for sample, value in running.metrics().items()
            if sample.startswith(f'{name}{{group="')}


def counts(running, name=REQUESTS) -> dict[str, float]:
    """Those that are not 0."""
    return {group: value for group, value in series(running, name).items() if value}


def ask(running, there, credentials, method="GET", content=""):
    with running.wire() as wire:
        lines = [f"{method} {there.url('/')} HTTP/1.1", f"Host: {there.authority}",
                 f"Content-Length: {len(content)}", "Connection: close"]
        lines += [f"Proxy-Authorization: {credentials}"] if credentials else []
        wire.send("\r\n".join(lines) + "\r\n\r\n" + content)
        return wire.read().status


def test_each_proof_counts_in_its_groups(gateway, config, there):
    running = gateway(config)
    jwt = f"Bearer {KEYS['ec'].token(claims(roles=['dev', 'night', 'day']))}"
    assert counts(running) == {}
    assert set(series(running)) == {"admins", "staff", "build", "jwt:dev", "none", "other"}

    assert [ask(running, there, who) for who in (ANN, ANN, CI, EVE, jwt)] == [200] * 5
    # Nobody, somebody else, and somebody known who may not.
    assert [ask(running, there, who) for who in (None, "Bearer wrong")] == [407, 407]
    assert ask(running, there, jwt, "DELETE") == 403
    assert ask(running, there, CI, "POST", "x" * 1000) == 200
    running.wait_access(9)
    assert counts(running) == {
        "admins": 2, "staff": 2, "build": 2, "none": 1, "jwt:dev": 2, "other": 2}
    assert counts(running, RECEIVED) == {"build": 1000}
    sent = counts(running, SENT)
    refusal = sent.pop("jwt:dev") - 5
    assert refusal > 5 and sent.pop("other") == refusal + 5
    assert sent == {"admins": 10, "staff": 10, "build": 10, "none": 5}


def test_tunnels_count_when_they_end_and_intercepted_ones_by_request(
        gateway, config, origin, scripted_origin, pki, authority):
    def echo(connection):
        while data := connection.socket.recv(1000):
            connection.socket.sendall(data * 2)

    relayed = scripted_origin(echo)
    there = origin(lambda seen: reply(b"inside"), tls=pki.intermediate.issue(HOST).server_context())
    running = gateway({**config, "tls": {"roots": [str(pki.root.pem_file)]},
                       "interception": dict(authority.section),
                       "hosts": [{"match": [HOST], "intercept": True}]})
    with running.wire() as wire:
        wire.send(f"CONNECT 127.0.0.1:{relayed.port} HTTP/1.1\r\nHost: x\r\n"
                  f"Proxy-Authorization: {CI}\r\n\r\n")
        assert wire.read_head().status == 200
        wire.send("x" * 100)
        assert len(wire.read_exactly(200)) == 200
        assert counts(running) == {}
    running.wait_access(1)
    assert counts(running) == {"build": 1}
    assert (counts(running, RECEIVED), counts(running, SENT)) == ({"build": 100}, {"build": 200})

    with running.wire() as wire:
        wire.send(f"CONNECT {HOST}:{there.port} HTTP/1.1\r\nHost: x\r\n"
                  f"Proxy-Authorization: {ANN}\r\n\r\n")
        assert wire.read_head().status == 200
        client = Inside(authority.file)
        client.shake(wire)
        for _ in range(2):
            client.ask(wire, f"GET / HTTP/1.1\r\nHost: {HOST}:{there.port}\r\n\r\n".encode(),
                       b"inside")
    running.wait_access(4)
    # The CONNECT and the two requests in its tunnel.
    assert counts(running) == {"build": 1, "admins": 3, "staff": 3}
    assert counts(running, SENT)["admins"] == 12


def test_a_reload_keeps_the_counts_of_groups_that_stay(gateway, config, there, workspace):
    running = gateway(config)
    assert [ask(running, there, who) for who in (ANN, CI)] == [200, 200]
    running.wait_access(2)
    write(workspace / "groups", "staff: ann", "night: ann")
    reload(running)
    assert set(series(running)) == {"staff", "night", "build", "jwt:dev", "none", "other"}
    assert counts(running) == {"staff": 1, "build": 1}
    assert ask(running, there, ANN) == 200
    running.wait_access(3)
    assert counts(running) == {"staff": 2, "night": 1, "build": 1}


def test_a_gateway_that_asks_nobody_counts_no_groups(gateway, there):
    running = gateway({"access": {"clients": ["127.0.0.0/8"], "connectPorts": "any",
                                  "destinations": {"allow": ["127.0.0.0/8"]}}})
    assert ask(running, there, ANN) == 200
    running.wait_access(1)
    assert series(running) == {}
