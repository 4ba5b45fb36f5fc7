"""`pinfold explain` beside the gateway: every kind of configuration with every kind of request, by
the gateway's own answer."""

from __future__ import annotations

import contextlib
import json
import ssl
from typing import NamedTuple

import pytest
from support.gateway import Gateway, free_port, run_pinfold
from support.origin import reply
from support.wait import until
from support.wire import Closed, request

HOST, OTHER, BOTH, DENIED, ABSENT = (
    "plain.test", "other.test", "both.test", "denied.test", "absent.example")
NAMES = [HOST, OTHER, BOTH, DENIED, "localhost"]
LOOPBACK = ["127.0.0.0/8"]


class Servers(NamedTuple):
    """The ports of one that speaks clear text, and of one that speaks TLS."""
    clear: int
    secure: int
    pins: list[str]


@pytest.fixture
def servers(origin, pki, dns) -> Servers:
    leaf = pki.intermediate.issue(*NAMES, "127.0.0.1")
    # The first of them is never connected to: no configuration here allows it.
    dns.set(BOTH, "10.255.255.1", "127.0.0.1")
    return Servers(
        origin(lambda _: reply(b"answer")).port,
        origin(lambda _: reply(b"answer"), tls=leaf.server_context()).port, [leaf.pin])


def access(allow=(), deny=(), ports="any") -> dict:
    return {"access": {"connectPorts": ports,
                       "destinations": {"allow": list(allow), "deny": list(deny)}}}


def entry(servers: Servers, *more: dict, **keys) -> dict:
    """An entry with pinsets, and entries after it."""
    return {**access(LOOPBACK), "pinsets": {
        "wanted": {"mode": "publicKey", "pins": servers.pins, "expires": "2999-01-01"},
        "over": {"mode": "publicKey", "pins": servers.pins, "expires": "2020-01-01"},
    }, "hosts": [{"match": [HOST], **keys}, *more]}


PINNED = {"pinsets": ["wanted"]}

CONFIGURATIONS = {
    "nothing allowed": lambda s: access(),
    "allowed": lambda s: access(LOOPBACK),
    "a name allowed": lambda s: access([HOST]),
    "a name allowed, every network denied": lambda s: access([HOST], ["0.0.0.0/0"]),
    "allowed, every network denied": lambda s: access(LOOPBACK, ["0.0.0.0/0", "::/0"]),
    "a name denied": lambda s: access(LOOPBACK, [DENIED, "**.localhost"]),
    "an address denied": lambda s: access(LOOPBACK, ["127.0.0.1"]),
    "a port denied": lambda s: access(LOOPBACK, [f"{HOST}:{s.clear}"]),
    "CONNECT to 443 alone": lambda s: access(LOOPBACK, ports=[443]),
    "CONNECT to one port": lambda s: access(LOOPBACK, ports=[s.secure]),
    "pinned": lambda s: entry(s, **PINNED),
    "pinned and upgraded": lambda s: entry(s, **PINNED, upgrade="https"),
    "pinned and passed": lambda s: entry(s, **PINNED, tunnel="pass", clearText="allow"),
    "pinned at another port": lambda s: entry(
        s, {"match": [f"{OTHER}:1"], **PINNED}, {"match": [OTHER]}),
    "tunnels and clear text refused": lambda s: entry(s, tunnel="refuse", clearText="refuse"),
    "inspected": lambda s: entry(s, **PINNED, tunnel="inspect", tls13Tunnel="probe"),
    "a pinset that is over": lambda s: entry(
        s, pinsets=["wanted", "over"], upgrade="https", tunnel="pass"),
    "a pinset that is over, inspected": lambda s: entry(
        s, pinsets=["over"], tunnel="inspect", tls13Tunnel="probe"),
    "intercepted": lambda s: {**entry(s, **PINNED), "interception": True},
    "intercepted or passed": lambda s: {
        **entry(s, **PINNED, intercept=True, tunnel="pass"), "interception": True},
    "intercepted or inspected": lambda s: {
        **entry(s, **PINNED, intercept=True, tunnel="inspect"), "interception": True},
    "all intercepted": lambda s: {
        **entry(s, intercept=False), "interception": {"default": True}},
    "intercepted, a pinset that is over": lambda s: {
        **entry(s, pinsets=["over"]), "interception": True},
}


def refusal(answer) -> str | None:
    """The reason that the gateway gives; None: it has let the request through."""
    if "Proxy-Status" not in answer or answer.status < 400:
        return None
    return answer.json()["reason"]


def through_tunnel(running: Gateway, host: str, port: int) -> str | None:
    """What becomes of a CONNECT and of a request in its tunnel, up to the server's answer."""
    wire = running.wire(timeout=5)
    with wire:
        wire.send(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}\r\n"
                  "Accept: application/json\r\n\r\n")
        head = wire.read_head()
        if head.status != 200:
            return refusal(wire.read_body(head))
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        before = len(running.access_lines())
        with contextlib.suppress(OSError, Closed):
            with context.wrap_socket(wire.socket, server_hostname=host) as inside:
                inside.sendall(request("/", host=f"{host}:{port}", Connection="close"))
                if inside.recv(1 << 16).startswith(b"HTTP/1.1 200"):
                    return None
        wire.close()
        # The lines of earlier requests may come late.
        def reasons() -> list[str]:
            return [line["reason"] for line in running.access_lines()[before:] if "reason" in line
                    and f"{host}:{port}" in (line.get("tunnel"), line["target"])]

        until(reasons, f"why the tunnel to {host}:{port} failed")
        return reasons()[-1]


def explained(running: Gateway, url: str, *arguments: str) -> tuple[int, dict]:
    done = run_pinfold(
        "explain", url, "--json", "--config", str(running.config_file), *arguments)
    assert done.stderr == "", done.stderr
    return done.returncode, json.loads(done.stdout)


def configuration(case: str, servers: Servers, pki) -> dict:
    config = {"tls": {"roots": [str(pki.root.pem_file)]}, **CONFIGURATIONS[case](servers)}
    if wanted := config.get("interception"):
        config["interception"] = pki.interception.section | (
            {} if wanted is True else wanted)
    return config


@pytest.mark.parametrize("case", CONFIGURATIONS)
def test_the_explanation_of_a_request_is_what_the_gateway_answers(
        case, gateway, servers, pki, dns):
    running = gateway(configuration(case, servers, pki))
    upgraded = [host for one in running.config.get("hosts", [])
                if one.get("upgrade") == "https" for host in one["match"]]
    wrong = {}
    for host in [*NAMES, ABSENT, "127.0.0.1"]:
        for scheme, port in (("http", servers.clear), ("https", servers.secure)):
            url = f"{scheme}://{host}:{port}/"
            if scheme == "http" and host in upgraded:
                url = f"{scheme}://{host}:{servers.secure}/"
            code, shown = explained(running, url, "--client", "127.0.0.1")
            found = {way["asking"]: way["reason"] for way in shown["ways"]}
            real = {"absolute": refusal(running.ask(
                request(url, Connection="close", Accept="application/json")))}
            if scheme == "https":
                real["connect"] = through_tunnel(running, host, port)
            if found != real or code != all(real.values()):
                wrong[url] = (found, real, code)
    assert not wrong


def test_the_gateways_own_listeners_are_recognized(gateway, dns):
    port = free_port()
    running = gateway({**access(LOOPBACK), "listeners": [
        {"name": "proxy", "address": f"127.0.0.1:{port}"}]})
    url = f"http://{HOST}:{port}/"
    code, shown = explained(running, url)
    answer = running.ask(request(url, Connection="close", Accept="application/json"))
    assert code == 1
    assert shown["ways"][0]["reason"] == refusal(answer) == "own-listener-refused"


def test_a_reverse_listener_leads_to_its_upstream_alone(gateway, servers, pki, dns):
    """`access.destinations` is not asked there, and no request names another server."""
    running = gateway({
        "tls": {"roots": [str(pki.root.pem_file)]},
        "listeners": [{"name": "front", "address": "127.0.0.1:0", "kind": "reverse",
                       "upstream": f"https://{HOST}:{servers.secure}"}]})
    assert running.get("/", "front").status == 200
    code, shown = explained(running, f"https://{HOST}:{servers.secure}/")
    assert code == 0
    assert [(one["asking"], one["listener"], one["way"]) for one in shown["ways"]] == [
        ("reverse", "front", "verified")]
    code, shown = explained(running, f"https://{OTHER}:{servers.secure}/")
    assert code == 1 and shown["ways"] == []


@pytest.mark.parametrize("allowed", [True, False])
def test_nothing_is_connected_to_that_is_denied(gateway, origin, pki, dns, allowed):
    leaf = pki.intermediate.issue(HOST)
    there = origin(lambda _: reply(b"answer"), tls=leaf.server_context())
    running = gateway({"tls": {"roots": [str(pki.root.pem_file)]}, **access(
        LOOPBACK, [] if allowed else ["127.0.0.1"])})
    code, shown = explained(running, f"https://{HOST}:{there.port}/", "--connect")
    assert shown["server"]["verdict"] == ("trusted" if allowed else "not-asked")
    assert code == (0 if allowed else 1)
    assert there.accepted == (1 if allowed else 0)


def test_the_addresses_are_those_that_the_gateway_finds(gateway, dns):
    running = gateway(access([], ["192.0.2.0/24"]))
    dns.set(BOTH, "192.0.2.1", "127.0.0.1", "192.0.32.1")
    code, shown = explained(running, f"https://{BOTH}/")
    assert code == 0
    assert [(one["address"], one["reason"]) for one in shown["addresses"]] == [
        ("192.0.2.1", "destination-refused"), ("127.0.0.1", "destination-refused"),
        ("192.0.32.1", None)]
    # What is named in place of a lookup is not looked up.
    asked = dns.asked(OTHER)
    code, shown = explained(running, f"https://{OTHER}/", "--address", "192.0.2.7")
    assert code == 1 and dns.asked(OTHER) == asked
    assert [one["address"] for one in shown["addresses"]] == ["192.0.2.7"]
