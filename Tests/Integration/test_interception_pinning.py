"""Servers that an intercepted tunnel must not reach: an error at CONNECT before the client has been
greeted, and inside a tunnel that is open when the server changes."""

from __future__ import annotations

import copy
import ssl
import threading

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from support.interception import (
    WRONG_PIN, ask_inside, connect_head, curl, inside, no_client_is_connected)
from support.origin import OriginConnection, reply
from support.secure import reload
from support.wait import until
from support.wire import Wire, request
def old_versions(pki, host):
    return pki.intermediate.issue(host).server_context(
        minimum=ssl.TLSVersion.TLSv1_1, maximum=ssl.TLSVersion.TLSv1_1)


def without_chain(pki, host):
    leaf = pki.intermediate.issue(host)
    leaf.chain.clear()
    return leaf


def with_genuine_appended(authority, pki, host):
    genuine = pki.intermediate.issue(host)
    own = [authority.certificate] if authority is pki.rogue_root else []
    return authority.issue(
        host, append=[*own, genuine.certificate, pki.intermediate.certificate])


# What the server has, and the reason with which it is refused. The host is pinned to the key of the
# intermediate, and two roots are trusted.
FAULTS = {
    "another key": ("tls-no-pin-matches", lambda pki, host: pki.other_root.issue(host)),
    "another name": ("tls-host-mismatch", lambda pki, host: pki.intermediate.issue("else.test")),
    "expired": ("tls-certificate-expired",
                lambda pki, host: pki.intermediate.issue(host, days=(-9, -2))),
    "not yet valid": ("tls-certificate-not-yet-valid",
                      lambda pki, host: pki.intermediate.issue(host, days=(2, 9))),
    "self-signed": ("tls-self-signed", lambda pki, host: pki.self_signed(host)),
    "a root that is not trusted": (
        "tls-untrusted-root",
        lambda pki, host: pki.rogue_root.issue(host, append=[pki.rogue_root.certificate])),
    "no intermediate": ("tls-incomplete-chain", without_chain),
    "a rogue chain and the genuine one": (
        "tls-untrusted-root", lambda pki, host: with_genuine_appended(pki.rogue_root, pki, host)),
    "another chain and the genuine one": (
        "tls-no-pin-matches", lambda pki, host: with_genuine_appended(pki.other_root, pki, host)),
    "for clients only": (
        "tls-not-for-servers",
        lambda pki, host: pki.intermediate.issue(host, usage=ExtendedKeyUsageOID.CLIENT_AUTH)),
    "an old version": ("tls-version-refused", old_versions),
}
PROXY_STATUS = {"tls-version-refused": "tls_protocol_error"}


def context(made) -> ssl.SSLContext:
    return made if isinstance(made, ssl.SSLContext) else made.server_context()


def host_of(case: str, kind: str) -> str:
    return case.replace(" ", "-") + f".{kind}.test"


@pytest.fixture(scope="module")
def running(module_gateways, pki):
    return module_gateways({
        "workers": 1, "interception": pki.interception.section,
        "tls": {"roots": [str(one.pem_file) for one in (pki.root, pki.other_root)]},
        "hosts": [
            {"match": ["**.first.test", "**.later.test"], "pinsets": ["right"]},
            {"match": ["**.apart.test"], "pinsets": ["right", "wrong"]},
            {"match": ["exact.entries.test"], "pinsets": ["wrong"]},
            {"match": ["**.entries.test"], "pinsets": ["right"]}],
        "pinsets": {"right": {"mode": "publicKey", "pins": [pki.intermediate.pin]},
                    "wrong": {"mode": "publicKey", "pins": [WRONG_PIN]}}})


def answer(seen):
    return reply(b"genuine:" + seen.body, "200 OK", "Cache-Control: no-store")


def secret(there, host: str) -> bytes:
    return request("/path?q", host=f"{host}:{there.port}", method="POST", body=b"SECRET",
                   Authorization="SECRET")


def refusals(running, reason: str) -> float:
    try:
        return running.metric("pinfold_http_request_failures_total", reason=reason)
    except AssertionError:  # none yet
        return 0


def lines_of(running, there, host: str, count: int) -> list[dict]:
    """The lines of the access log about tunnels to it and what is in them."""
    target = f"{host}:{there.port}"

    def found() -> list[dict]:
        lines = [one for one in running.access_lines()
                 if target in (one.get("tunnel"), one["target"])]
        return lines if len(lines) >= count else []

    return until(found, f"{count} lines in the access log")


def nothing_came(there) -> None:
    until(lambda: there.accepted == len(there.handshake_failures)
          + sum(one.finished.is_set() for one in there.connections), "the origin is closed on")
    assert there.application_bytes == b""


@pytest.mark.parametrize("case", FAULTS)
def test_a_server_that_is_refused_is_an_error_at_connect(running, origin, pki, case):
    reason, make = FAULTS[case]
    host = host_of(case, "first")
    there = origin(answer, tls=context(make(pki, host)))
    before = refusals(running, reason)
    intercepted = running.metric("pinfold_tunnels_intercepted_total")
    refused = ask_inside(running, host, there.port, secret(there, host))
    assert (refused.status, refused.reason) == (502, reason)
    assert refused.proxy_status["error"] == PROXY_STATUS.get(reason, "tls_certificate_error")
    assert refused.body.startswith(f"502 {reason}\n".encode())
    assert refused.get("connection") == "close"
    nothing_came(there)
    [line] = lines_of(running, there, host, 1)
    assert (line["method"], line["status"], line["reason"]) == ("CONNECT", 502, reason)
    assert "intercepted" not in line
    assert refusals(running, reason) == before + 1
    assert running.metric("pinfold_tunnels_intercepted_total") == intercepted


@pytest.mark.parametrize("case", FAULTS)
def test_a_server_that_changes_is_verified_again_inside_an_open_tunnel(running, origin, pki, case):
    """The client has been greeted: it is answered within the tunnel, which stays open."""
    reason, make = FAULTS[case]
    host = host_of(case, "later")
    genuine, changed = pki.intermediate.issue(host).server_context(), context(make(pki, host))
    there = origin(lambda seen: reply(b"genuine", "200 OK", "Cache-Control: no-store",
                                      "Connection: close"), tls=genuine)
    data = request("/", host=f"{host}:{there.port}", Authorization="SECRET")
    wire, refused = inside(running, host, there.port)
    assert refused is None
    with wire:
        assert wire.ask(data).body == b"genuine"
        there.wait_finished(1)
        before, received = refusals(running, reason), there.application_bytes
        there.tls = changed
        response = wire.ask(data)
        assert response.status == 502
        assert response.proxy_status["error"] == PROXY_STATUS.get(reason, "tls_certificate_error")
        assert response.body.startswith(f"502 {reason}\n".encode())
        until(lambda: there.accepted == len(there.handshake_failures)
              + sum(one.finished.is_set() for one in there.connections), "it is closed on")
        assert there.application_bytes == received, "nothing is sent to it"
        assert refusals(running, reason) == before + 1
        there.tls = genuine
        assert wire.ask(data).body == b"genuine"
    lines = lines_of(running, there, host, 4)
    assert [(one["method"], one["status"], one.get("reason")) for one in lines] == [
        ("CONNECT", 200, None), ("GET", 200, None), ("GET", 502, reason), ("GET", 200, None)]
    assert all(one["intercepted"] is True for one in lines)


def test_curl_gets_the_reason_at_connect_and_inside(running, origin, pki):
    host = "curl.later.test"
    genuine = pki.intermediate.issue(host).server_context()
    there = origin(lambda _: None, tls=genuine)

    def change(_):
        there.tls = pki.other_root.issue(host).server_context()
        return reply(b"genuine\n", "200 OK", "Cache-Control: no-store", "Connection: close")

    there.handler = change
    url = f"https://{host}:{there.port}/"
    output = curl(running, pki.interception, url, url, "-w", "%{http_connect} %{http_code}\n")
    first, second = output.split("200 200\n")
    assert first == "genuine\n"
    assert second.startswith("502 tls-no-pin-matches\n") and WRONG_PIN not in second
    assert pki.intermediate.pin in second and pki.other_root.pin in second, "both sides"
    # The same connection: there was one CONNECT.
    assert second.endswith("200 502\n") or second.endswith("000 502\n")
    lines = lines_of(running, there, host, 3)
    assert [one["method"] for one in lines] == ["CONNECT", "GET", "GET"]
    refused = curl(running, pki.interception, url, code=56)
    assert "CONNECT tunnel failed, response 502" in refused
    assert len(there.requests) == 1


@pytest.mark.parametrize("host, passes", [
    ("a.first.test", True), ("a.apart.test", False), ("exact.entries.test", False),
    ("other.entries.test", True)])
def test_the_pinsets_of_the_entry_that_applies_must_all_pass(running, origin, pki, host, passes):
    there = origin(answer, tls=pki.intermediate.issue(host).server_context())
    response = ask_inside(running, host, there.port, secret(there, host))
    if passes:
        assert (response.status, response.body) == (200, b"genuine:SECRET")
    else:
        assert (response.status, response.reason) == (502, "tls-no-pin-matches")
        nothing_came(there)


def test_entries_for_ports_apply_by_the_port_of_connect(gateway, origin, pki):
    host = "ports.test"
    there = [origin(answer, tls=pki.intermediate.issue(host).server_context()) for _ in range(4)]
    right, wrong, exempt, unnamed = there
    running = gateway({
        "tls": {"roots": [str(pki.root.pem_file)]}, "interception": pki.interception.section,
        "hosts": [
            {"match": [f"{host}:{right.port}"], "pinsets": ["right"]},
            {"match": [f"{host}:{wrong.port}"], "pinsets": ["wrong"]},
            {"match": [f"{host}:{exempt.port}"], "pinsets": ["exempt"]},
            {"match": ["**.test"], "intercept": True}],
        "pinsets": {"right": {"mode": "publicKey", "pins": [pki.intermediate.pin]},
                    "wrong": {"mode": "publicKey", "pins": [WRONG_PIN]},
                    "exempt": {"mode": "none"}}})
    answers = [ask_inside(running, host, one.port, secret(one, host)) for one in there]
    assert [(one.status, one.reason) for one in answers] == [
        (200, "OK"), (502, "tls-no-pin-matches"), (200, "OK"), (403, "pinned-port-refused")]
    for one in (wrong, unnamed):
        nothing_came(one)
    assert unnamed.accepted == 0


class Stalled:
    """A server whose handshake begins when a test lets it."""

    def __init__(self, tls: ssl.SSLContext):
        self.tls = tls
        self.goes_on = threading.Event()
        self.requests: list[bytes] = []

    def __call__(self, connection: OriginConnection) -> None:
        self.goes_on.wait(20)
        raw = connection.socket
        with self.tls.wrap_socket(raw, server_side=True) as connection.socket:
            while (seen := connection.read_request()) is not None:
                self.requests.append(seen.head)
                connection.send(reply(b"here", "200 OK", "Cache-Control: no-store"))


def test_a_reload_while_the_server_is_verified_changes_what_clients_are_spoken_to_with(
        gateway, scripted_origin, pki):
    host = "stalled.test"
    server = Stalled(pki.intermediate.issue(host).server_context())
    there = scripted_origin(server)
    running = gateway({
        "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
        "interception": pki.interception.section,
        "hosts": [{"match": [host], "intercept": True}]})
    with running.wire() as wire:
        wire.send(connect_head(host, there.port))
        until(lambda: there.accepted == 1, "the server is being verified")
        reload(running, running.config | {
            "interception": pki.interception.section | {"minimum": "1.3"}})
        server.goes_on.set()
        assert wire.read_head().status == 200
        context = ssl.create_default_context(cafile=str(pki.interception.file))
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(ssl.SSLError, match="protocol version"):
            context.wrap_socket(wire.socket, server_hostname=host)


@pytest.mark.parametrize(("change", "expected"), [
    ({}, (200, "OK")), ({"timeouts": {"idle": "50s"}}, (200, "OK")),
    ({"pinsets": ["right"]}, (200, "OK")),
    ({"pinsets": ["wrong"]}, (502, "tls-no-pin-matches")),
    ({"deny": True}, (403, "destination-refused")), ({"intercept": False}, (502, "superseded"))],
    ids=["nothing", "what is not of trust", "a pin that matches", "one that does not",
         "the host is denied", "no interception"])
def test_a_server_is_verified_by_what_is_in_force_after_a_reload_meanwhile(
        gateway, scripted_origin, pki, change, expected):
    host = "stalled.test"
    server = Stalled(pki.intermediate.issue(host).server_context())
    there = scripted_origin(server)
    config = {
        "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
        "interception": pki.interception.section,
        "hosts": [{"match": [host], "intercept": True}],
        "pinsets": {"right": {"mode": "publicKey", "pins": [pki.intermediate.pin]},
                    "wrong": {"mode": "publicKey", "pins": [WRONG_PIN]}}}
    running = gateway(config)
    with running.wire() as wire:
        wire.send(connect_head(host, there.port))
        until(lambda: there.accepted == 1, "the server is being verified")
        changed = copy.deepcopy(running.config)
        changed["hosts"][0] |= {key: value for key, value in change.items()
                                if key in ("pinsets", "intercept")}
        if "timeouts" in change:
            changed["timeouts"] = change["timeouts"]
        if "deny" in change:
            changed["access"]["destinations"]["deny"] = [host]
        reload(running, changed)
        server.goes_on.set()
        answer = wire.read_head()
        status, reason = expected
        assert answer.status == status
        if status == 200:
            context = ssl.create_default_context(cafile=str(pki.interception.file))
            with context.wrap_socket(wire.socket, server_hostname=host) as tls:
                inner = Wire(("", 0), sock=tls)
                assert inner.ask(request("/", host=f"{host}:{there.port}")).body == b"here"
        else:
            assert answer.reason == reason
            assert server.requests == []
    no_client_is_connected(running)
