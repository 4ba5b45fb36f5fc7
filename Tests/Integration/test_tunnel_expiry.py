"""Relayed tunnels and WebSockets end when the proof of who asked expires: the clock decides, although no
file changes and nobody sends anything."""

from __future__ import annotations

import time

import pytest
from support.credentials import basic, bcrypt, digest, write
from support.signed_tokens import claims, key_set, signers

KEYS = signers()
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"


@pytest.fixture
def end():
    """A whole second."""
    return int(time.time()) + 4


@pytest.fixture
def serve(gateway, workspace, end):
    def make(**more):
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end))
        write(workspace / "users", f"ann:{bcrypt('secret')}")
        write(workspace / "tokens", f"ci:{digest('short')}::{stamp}",
              f"ci:{digest('long')}::2100-01-01")
        write(workspace / "jwks.json", key_set(*KEYS.values()))
        return gateway({
            "workers": 1,
            "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward",
                           "authentication": ["bearer", "basic"]}],
            "authentication": {
                "users": str(workspace / "users"), "tokens": str(workspace / "tokens"),
                "jwt": {"keys": str(workspace / "jwks.json"), "issuer": "https://id.test",
                        "audience": "pinfold", "leeway": "0s"}},
            "access": {"clients": ["127.0.0.0/8"], "connectPorts": "any",
                       "destinations": {"allow": ["127.0.0.0/8"]}}, **more})
    return make


@pytest.fixture
def there(scripted_origin):
    def echo(connection):
        data = connection.socket.recv(1000)
        if data.startswith(b"GET"):
            connection.socket.sendall(SWITCH)
            data = connection.socket.recv(1000)
        while data:
            connection.socket.sendall(data)
            data = connection.socket.recv(1000)

    return scripted_origin(echo)


def opened(running, there, credentials, websocket=False):
    wire = running.wire()
    target = f"127.0.0.1:{there.port}"
    lines = ([f"GET http://{target}/ HTTP/1.1", "Connection: Upgrade", "Upgrade: echo"]
             if websocket else [f"CONNECT {target} HTTP/1.1"])
    wire.send("\r\n".join([*lines, f"Host: {target}", f"Proxy-Authorization: {credentials}"])
              + "\r\n\r\n")
    assert wire.read_head().status == (101 if websocket else 200)
    wire.send("x")
    assert wire.read_exactly(1) == b"x"
    return wire


def is_open(wire) -> bool:
    wire.send("y")
    return wire.read_exactly(1) == b"y"


@pytest.mark.parametrize("websocket", [False, True])
@pytest.mark.parametrize("proof", ["token", "jwt"])
def test_a_tunnel_ends_with_its_proof_and_others_go_on(serve, there, end, proof, websocket):
    running = serve()
    token = "short" if proof == "token" else KEYS["ec"].token(claims(exp=end))
    lasting = [opened(running, there, who) for who in ("Bearer long", basic("ann", "secret"))]
    wire = opened(running, there, f"Bearer {token}", websocket)
    assert wire.ended()
    assert time.time() >= end
    line = running.wait_access(1)[-1]
    assert line["reason"] == "credentials-ended"
    assert all(map(is_open, lasting))
    for other in lasting:
        other.close()


def test_a_host_may_keep_its_tunnels(serve, there, end):
    running = serve(hosts=[{"match": ["127.0.0.1"], "liveTunnels": "keep"}])
    wire = opened(running, there, "Bearer short")
    time.sleep(max(0.0, end + 1 - time.time()))
    assert is_open(wire)
    wire.close()
