"""Tunnels are counted by the host entry that they are for, and by how they were judged."""

from __future__ import annotations

import re
import ssl
from collections import Counter

import pytest
from support.gateway import free_port
from support.inspection import ask, careless, opened, through
from support.interception import inside
from support.origin import reply
from support.wait import until
from test_interception_passing import clear


@pytest.fixture
def running(gateway, pki, authority):
    return gateway({
        "tls": {"roots": [str(pki.root.pem_file)]}, "interception": authority.section,
        "access": {"clients": ["127.0.0.0/8"], "connectPorts": "any",
                   "destinations": {"allow": ["127.0.0.0/8", "**.test"]},
                   "rules": [{"name": "no", "hosts": ["denied.test"], "action": "deny"}]},
        "hosts": [
            {"match": ["relayed.test"], "name": "relayed"},
            {"match": ["denied.test"], "name": "denied"},
            {"match": ["*.inspected.test"], "name": "inspected", "tunnel": "inspect"},
            {"match": ["*.ours.test"], "name": "ours", "intercept": True, "tunnel": "pass"},
        ]})


def tunnels(running) -> dict[tuple[str, str], float]:
    """Those that there are, by host entry and result."""
    found = {}
    for sample, value in running.metrics().items():
        if value and sample.startswith("pinfold_host_tunnels_total{"):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', sample))
            found[labels["host"], labels["result"]] = value
    return found


def test_every_result_of_every_entry_is_there_from_the_start(running):
    shown = Counter(
        re.search(r'host="([^"]*)"', sample)[1] for sample in running.metrics()
        if sample.startswith("pinfold_host_tunnels_total{"))
    assert shown == dict.fromkeys(
        ("none", "default", "relayed", "denied", "inspected", "ours"), 7)
    assert tunnels(running) == {}


def test_relayed_tunnels_and_those_that_are_refused_or_fail(running, origin):
    there = origin(lambda _: reply(b"x"))
    for _ in range(2):
        opened(running, "relayed.test", there.port).close()
    opened(running, "default.test", there.port).close()
    for host, port, status in [("denied.test", 443, 403), ("relayed.test", free_port(), 502)]:
        wire, answer = running.connect(f"{host}:{port}")
        wire.close()
        assert answer.status == status
    running.wait_access(5)
    assert tunnels(running) == {
        ("relayed", "relayed"): 2, ("default", "relayed"): 1, ("denied", "refused"): 1,
        ("relayed", "refused"): 1}
    # A request is none, whatever its method.
    assert running.get(there.url("/")).status == 200
    assert sum(tunnels(running).values()) == 5


def test_inspected_tunnels_by_how_their_server_proved_its_identity(running, origin, pki):
    def there(name, authority, version):
        made = authority.issue(name).server_context()
        made.maximum_version = version
        return origin(lambda _: reply(b"hello"), tls=made)

    good, rogue, modern = (f"{name}.inspected.test" for name in ("good", "rogue", "modern"))
    server = there(good, pki.root, ssl.TLSVersion.TLSv1_2)
    assert ask(through(running, good, server.port), good).body == b"hello"
    bad = there(rogue, pki.rogue_root, ssl.TLSVersion.TLSv1_2)
    with pytest.raises(ssl.SSLError, match="access denied"):
        through(running, rogue, bad.port)
    # Where the server speaks TLS 1.3, the default is to refuse.
    newer = there(modern, pki.root, ssl.TLSVersion.TLSv1_3)
    with pytest.raises(ssl.SSLError):
        through(running, modern, newer.port, careless())
    expected = {("inspected", "verified"): 1, ("inspected", "refused"): 2}
    until(lambda: tunnels(running) == expected, lambda: f"counted: {tunnels(running)}")


def test_intercepted_tunnels_and_those_that_are_passed(running, origin, pki):
    host = "a.ours.test"
    there = origin(lambda _: reply(b"here"), tls=pki.root.issue(host).server_context())
    wire, refused = inside(running, host, there.port)
    with wire:
        assert refused is None
        assert wire.ask(f"GET / HTTP/1.1\r\nHost: {host}:{there.port}\r\n\r\n").body == b"here"
    with clear() as echo:
        wire, answer = running.connect(f"{host}:{echo.port}")
        with wire:
            assert answer.status == 200
            wire.send(b"SSH-2.0-client\r\n")
            assert wire.read_exactly(16) == b"SSH-2.0-client\r\n"
    bad = origin(lambda _: reply(b"x"), tls=pki.rogue_root.issue(host).server_context())
    with pytest.raises(ssl.SSLError):
        inside(running, host, bad.port)
    expected = {("ours", "intercepted"): 1, ("ours", "passed"): 1, ("ours", "refused"): 1}
    until(lambda: tunnels(running) == expected, lambda: f"counted: {tunnels(running)}")
