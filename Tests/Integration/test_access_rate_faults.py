"""Rates of rules where something else ends or changes: the day's bytes within an upload, a reload
during a wait, and a tunnel that is relayed after all."""

from __future__ import annotations

import contextlib
import signal
import time

import pytest
from support.credentials import basic, bcrypt, write
from support.gateway import wire_from
from support.interception import HOST
from support.origin import OriginConnection, reply
from support.wait import until
from support.wire import Closed, request

ANN = basic("ann", "secret")


def config(*rules: dict, **keys) -> dict:
    return {"workers": 1, "access": {
        "connectPorts": "any", "clients": ["127.0.0.0/8"], "rules": list(rules),
        "destinations": {"allow": ["127.0.0.0/8", "**.test"]}}, **keys}


@pytest.fixture
def there(origin):
    return origin(lambda seen: reply(
        b"x" * int(seen.target.rpartition("/")[2] or 1), "200 OK", "Cache-Control: no-store"))


def reads_on(connection: OriginConnection) -> None:
    """Reads what comes, and answers nothing before all of it is there."""
    while (head := connection.read_request_head()) is not None:
        connection.read_exactly(int(head.get("content-length")))
        connection.send(reply(b"all"))


@pytest.mark.parametrize("more", [{}, {"up": "1MiB/s"}], ids=["day", "day and up"])
def test_an_upload_that_uses_up_the_day_is_refused_and_leaves_nothing(
        gateway, scripted_origin, more):
    there = scripted_origin(reads_on)
    running = gateway(config(
        {"name": "r", "action": "allow", "rate": {"day": "20KiB", "exchanges": 3, **more}}))
    before = running.metric("pinfold_client_connections_open")
    head = (f"POST {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n"
            "Content-Length: 40000\r\n\r\n")
    for number in range(3):
        with wire_from(running, "127.0.7.1") as wire:
            wire.send(head + "b" * 40000)
    with wire_from(running, "127.0.7.2") as wire:
        wire.send(head + "b" * 40000)
        assert wire.read().status == 429
    until(lambda: running.metric("pinfold_client_connections_open") == before, "all are gone")
    with wire_from(running, "127.0.7.1") as wire:
        wire.send(request(there.url("/")))
        refused = wire.read()
        assert refused.status == 429
        assert int(refused.get("retry-after")) > 1, "of the day, not of exchanges at once"


def waiting(running, there, path: str, **fields: str):
    """A request that waits for its turn, after one that has used the burst."""
    with running.wire() as first:
        assert first.ask(request(there.url("/"), **fields)).status == 200
    wire = running.wire()
    wire.send(request(there.url(path), **fields))
    time.sleep(0.2)
    return wire


def take_up(running, changed: dict | None = None) -> None:
    generation = running.metric("pinfold_config_generation")
    running.write_config(changed or running.config)
    running.signal(signal.SIGHUP)
    until(lambda: running.metric("pinfold_config_generation") > generation, "it is in force")


def test_a_request_that_waited_through_a_reload_keeps_its_rate(gateway, there):
    running = gateway(config({"name": "r", "action": "allow", "rate": {
        "requests": "30/m", "burst": 1, "down": "1MiB/s", "day": "300KiB", "over": "delay"}}))
    wire = waiting(running, there, "/1000000")
    take_up(running)
    with contextlib.suppress(Closed):
        assert len(wire.read().body) < 1_000_000
    wire.close()
    with running.wire() as after:
        assert after.ask(request(there.url("/"))).status == 429


def test_a_request_that_waited_is_not_served_when_its_client_is_gone(gateway, there):
    running = gateway(config({"name": "r", "action": "allow", "rate": {
        "requests": "10/m", "burst": 1, "over": "delay"}}))
    wire = waiting(running, there, "/")
    changed = config(*running.config["access"]["rules"])
    changed["access"]["clients"] = ["127.0.9.0/24"]
    take_up(running, {**running.config, **changed})
    assert wire.read().status == 403
    wire.close()
    assert len(there.requests) == 1


def test_a_request_that_waited_is_not_served_when_its_user_is_gone(gateway, there, workspace):
    users = write(workspace / "users", f"ann:{bcrypt('secret')}", f"bob:{bcrypt('secret')}")
    running = gateway(config(
        {"name": "r", "action": "allow", "rate": {
            "requests": "10/m", "burst": 1, "over": "delay"}},
        listeners=[{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward",
                    "authentication": ["basic"]}],
        authentication={"users": str(users)}))
    wire = waiting(running, there, "/", Proxy_Authorization=ANN)
    write(users, f"bob:{bcrypt('secret')}")
    take_up(running)
    assert wire.read().status == 407
    wire.close()
    assert len(there.requests) == 1


def test_a_tunnel_that_is_relayed_after_all_has_the_rate_of_its_rule(
        gateway, scripted_origin, authority, pki):
    def sends(connection: OriginConnection) -> None:
        connection.send(bytes(1_000_000))

    there = scripted_origin(sends)
    running = gateway(config(
        {"name": "free", "action": "allow", "paths": ["/free/**"]},
        {"name": "slow", "action": "allow", "rate": {"requests": "2/h", "burst": 2, "exchanges": 1}},
        hosts=[{"match": [HOST], "intercept": True, "tunnel": "pass"}],
        tls={"roots": [str(pki.root.pem_file)]}, interception=authority.section))
    found = []
    for _ in range(3):
        wire, response = running.connect(f"{HOST}:{there.port}")
        found.append(response.status)
        wire.close()
        until(lambda: running.metric("pinfold_client_connections_open") <= 1, "it is closed")
    assert found == [200, 200, 429]
