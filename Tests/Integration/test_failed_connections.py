"""A refused CONNECT and a connection that fails are reported with the server's name, port and address:
in the operational log, in the access log and, where the client named the server, in the reply."""

from __future__ import annotations

import re

import pytest
from support.gateway import free_port
from support.wire import request

NAME = "named.failed.test"


def line(running, token: str) -> str:
    return running.wait_log(rf"request not served.*reason={token}\b")


def connect(running, authority: str):
    wire, response = running.connect(authority)
    wire.close()
    return response


def test_a_refused_connection_is_reported_with_every_address(gateway, dns):
    port = free_port()
    dns.set(NAME, "127.0.0.1", "127.0.0.2", "::1")
    running = gateway({})
    response = connect(running, f"{NAME}:{port}")
    assert response.status == 502
    text = response.body.decode()
    assert f"\nserver: {NAME}:{port}\n" in text
    for address in (f"127.0.0.1:{port}", f"127.0.0.2:{port}", f"[::1]:{port}"):
        assert f"{address}: Connection refused" in text
    logged = line(running, "connection-refused")
    assert f"host={NAME}:{port}" in logged
    assert f"127.0.0.1:{port}: Connection refused" in logged
    (access,) = running.wait_access(1)
    assert access["target"] == f"{NAME}:{port}"
    assert re.fullmatch(rf"(127\.0\.0\.[12]|\[::1\]):{port}", access["upstream"])
    assert response.proxy_status["next-hop"] in ("127.0.0.1", "127.0.0.2", "::1")


def test_of_many_addresses_few_are_named_and_the_others_counted(gateway, dns):
    port = free_port()
    dns.set(NAME, *(f"127.0.0.{last}" for last in range(1, 11)))
    running = gateway({})
    response = running.ask(request(f"http://{NAME}:{port}/"))
    assert response.status == 502
    (tried,) = re.findall(r"^tried: (.*)$", response.body.decode(), re.MULTILINE)
    assert tried.count("Connection refused") == 4
    assert "6 more" in tried


def test_a_plain_request_gets_the_same_in_json(gateway, dns):
    port = free_port()
    dns.set(NAME, "127.0.0.1")
    running = gateway({})
    response = running.get(f"http://{NAME}:{port}/", Accept="application/json")
    body = response.json()
    assert body["server"] == f"{NAME}:{port}"
    assert body["tried"].startswith(f"127.0.0.1:{port}: Connection refused")
    assert f"127.0.0.1:{port}: Connection refused" in line(running, "connection-refused")
    (access,) = running.wait_access(1)
    assert access["upstream"] == f"127.0.0.1:{port}"


def test_replies_of_a_reverse_listener_do_not_reveal_its_upstream(gateway, dns):
    port = free_port()
    dns.set(NAME, "127.0.0.1")
    running = gateway({"listeners": [
        {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
        {"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
         "upstream": f"http://{NAME}:{port}"}]})
    response = running.get("/", "back")
    assert response.status == 502
    assert NAME not in response.body.decode() and "127.0.0.1" not in response.body.decode()
    assert "next-hop" not in response.proxy_status
    logged = line(running, "connection-refused")
    assert f"host={NAME}:{port}" in logged and f"127.0.0.1:{port}" in logged


@pytest.mark.parametrize("config, authority, token", [
    ({}, f"{NAME}:25", "connect-port-refused"),
    ({"access": {"destinations": {"deny": [NAME]}}}, f"{NAME}:443", "destination-refused"),
    ({"hosts": [{"match": [NAME], "tunnel": "refuse"}]}, f"{NAME}:443", "tunnel-refused"),
    ({}, "missing.invalid:443", "dns-nxdomain"),
])
def test_a_connect_that_is_refused_by_its_name_names_it(gateway, dns, config, authority, token):
    running = gateway({"access": {"connectPorts": [443]}} | config)
    response = connect(running, authority)
    assert response.status in (403, 502)
    assert f"\nserver: {authority}\n" in response.body.decode()
    assert f"host={authority}" in line(running, token)


def test_an_address_that_the_rules_refuse_is_logged_but_not_in_the_reply(gateway, dns):
    dns.set(NAME, "10.1.2.3")
    running = gateway({})
    response = connect(running, f"{NAME}:443")
    assert response.status == 403
    assert "10.1.2.3" not in response.body.decode()
    assert "10.1.2.3:443: refused by the rules" in line(running, "destination-refused")
    (access,) = running.wait_access(1)
    assert access["upstream"] == "10.1.2.3:443"


@pytest.mark.parametrize("passes", [False, True])
def test_an_intercepted_tunnel_that_gets_no_connection_names_the_server(
    gateway, dns, pki, passes
):
    port = free_port()
    dns.set(NAME, "127.0.0.1")
    entry = {"match": [NAME], "intercept": True} | ({"tunnel": "pass"} if passes else {})
    running = gateway({"hosts": [entry], "interception": pki.interception.section,
                       "access": {"connectPorts": [port]}})
    wire, response = running.connect(f"{NAME}:{port}")
    with wire:
        assert response.status == (200 if passes else 502)
        if passes:
            wire.send(b"not TLS\r\n")
    logged = line(running, "connection-refused")
    assert f"host={NAME}:{port}" in logged
    assert f"127.0.0.1:{port}: Connection refused" in logged
    (access,) = running.wait_access(1)
    assert access["upstream"] == f"127.0.0.1:{port}"


def test_a_failed_handshake_is_reported_with_the_address(gateway, dns, origin, pki):
    dns.set(NAME, "127.0.0.1")
    there = origin(lambda _: None, tls=pki.root.issue("other.test").server_context())
    running = gateway({"tls": {"roots": [str(pki.root.pem_file)]}})
    response = running.get(f"https://{NAME}:{there.port}/")
    assert response.status == 502
    assert f"\nserver: {NAME}:{there.port}\ntried: 127.0.0.1:{there.port}\n" in (
        response.body.decode())
    assert f"server=127.0.0.1:{there.port}" in running.wait_log("server refused")
    (access,) = running.wait_access(1)
    assert access["upstream"] == f"127.0.0.1:{there.port}"


def test_the_reply_to_a_pipelined_request_names_its_own_server(gateway):
    """It is checked while the one before it is being answered."""
    port = free_port()
    running = gateway({})
    with running.wire() as wire:
        wire.send(request(f"http://127.0.0.1:{port}/first") + request("http://10.1.2.3/second"))
        first, second = wire.read(), wire.read()
    assert f"\ntried: 127.0.0.1:{port}: Connection refused" in first.body.decode()
    assert second.status == 403
    assert "tried:" not in second.body.decode()
    assert "next-hop" not in second.proxy_status
    assert str(port) not in line(running, "destination-refused")
    assert {entry["target"]: entry.get("upstream") for entry in running.wait_access(2)} == {
        f"http://127.0.0.1:{port}/first": f"127.0.0.1:{port}", "http://10.1.2.3/second": None}
