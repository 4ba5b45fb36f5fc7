"""What a client or the gateway still has from before a reload, a session or a connection, does not
go around what the reload has tightened."""

from __future__ import annotations

import re
import ssl
import subprocess
import threading

import pytest
from support.handshakes import STEPS, stopped
from support.interception import (
    HOST, OTHER, WRONG_PIN, Inside, InterceptionAuthority, ask_inside, connect_head,
    no_client_is_connected)
from support.origin import OriginConnection, reply
from support.secure import reload
from support.wait import until
from support.wire import request

WRONG = {"wrong": {"mode": "publicKey", "pins": [WRONG_PIN]}}


@pytest.fixture
def there(origin, pki):
    """A server that speaks TLS 1.2 at most, and keeps its connections."""
    leaf = pki.intermediate.issue(HOST)
    return origin(lambda _: reply(b"here", "200 OK", "Cache-Control: no-store"),
                  tls=leaf.server_context(maximum=ssl.TLSVersion.TLSv1_2))


@pytest.fixture
def running(gateway, pki):
    return gateway({
        "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]}, "cache": {"enabled": False},
        "interception": pki.interception.section,
        "hosts": [{"match": [HOST], "intercept": True}, {"match": [OTHER]}]})


class Device:
    """openssl s_client with a session that it keeps."""

    def __init__(self, running, there, version: str, folder):
        self.target = f"{HOST}:{there.port}"
        self.command = ["openssl", "s_client", "-proxy", "%s:%d" % running.proxy, "-connect",
                        self.target, "-servername", HOST, version, "-ign_eof"]
        self.session = str(folder / f"session{version}")

    def ask(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self.command, *arguments], capture_output=True, text=True, timeout=30,
            input=f"GET / HTTP/1.1\r\nHost: {self.target}\r\nConnection: close\r\n\r\n")
        return done.stdout + done.stderr

    def begin(self) -> None:
        """Has a session that is good for another connection."""
        assert "\nhere" in self.ask("-sess_out", self.session)
        output = self.ask("-sess_in", self.session)
        assert "\nhere" in output and self.resumed(output)

    def again(self) -> str:
        return self.ask("-sess_in", self.session)

    @staticmethod
    def resumed(output: str) -> bool:
        return bool(re.search(r"^Reused, TLS", output, re.M))


def tightened(config: dict, pki, how: str) -> dict:
    hosts = {"match": [HOST], "intercept": True}
    return config | {
        "pins": {"hosts": [hosts | {"pinsets": ["wrong"]}], "pinsets": WRONG},
        "minimum": {"tls": config["tls"] | {"minimum": "1.3"}},
        "roots": {"tls": {"roots": [str(pki.rogue_root.pem_file)]}},
        "refused": {"hosts": [{"match": [HOST], "intercept": False, "tunnel": "refuse"}]},
        "denied": {"access": config["access"] | {"destinations": {"deny": [HOST]}}},
    }[how]


@pytest.fixture
def devices(running, there, workspace):
    """One for each kind of ticket, with a session."""
    made = [Device(running, there, version, workspace) for version in ("-tls1_2", "-tls1_3")]
    for device in made:
        device.begin()
    return made


@pytest.mark.parametrize("how, answer", [
    ("pins", "502 tls-no-pin-matches"), ("minimum", "502 tls-version-refused"),
    ("roots", "502 tls-incomplete-chain"), ("refused", "403 tunnel-refused"),
    ("denied", "403 destination-refused")])
def test_a_session_opens_nothing_that_a_reload_has_closed(
        running, there, pki, devices, how, answer):
    asked = len(there.requests)
    reload(running, tightened(running.config, pki, how))
    for device in devices:
        assert f"HTTP CONNECT failed, reason= {answer}" in device.again()
    assert len(there.requests) == asked


def test_a_session_is_of_no_use_where_a_host_is_no_longer_intercepted(running, devices):
    reload(running, running.config | {"hosts": [{"match": [HOST], "intercept": False}]})
    output = devices[0].again()
    assert "\nhere" in output and not Device.resumed(output)
    assert "Trusted intermediate" in output, "the server's own certificate"


@pytest.mark.parametrize("how", ["authority", "another setting", "pins that pass"])
def test_a_session_is_not_resumed_under_another_configuration(
        running, pki, workspace, devices, how):
    changed = {
        "authority": lambda: {"interception": InterceptionAuthority(workspace).section},
        "another setting": lambda: {"limits": {"fields": 99}},
        "pins that pass": lambda: {
            "hosts": [{"match": [HOST], "intercept": True, "pinsets": ["right"]}],
            "pinsets": {"right": {"mode": "publicKey", "pins": [pki.intermediate.pin]}}}}[how]()
    reload(running, running.config | changed)
    for device in devices:
        output = device.again()
        assert "\nhere" in output and not device.resumed(output)


@pytest.mark.parametrize("how, reason", [
    ("pins", "tls-no-pin-matches"), ("minimum", "tls-version-refused")])
def test_a_kept_connection_to_a_server_does_not_answer_for_a_tightened_policy(
        running, there, pki, how, reason):
    asked = request("/", host=f"{HOST}:{there.port}")
    assert ask_inside(running, HOST, there.port, asked).body == b"here"
    assert running.metric("pinfold_upstream_connections_open") == 1
    reload(running, tightened(running.config, pki, how))
    answer = ask_inside(running, HOST, there.port, asked)
    assert (answer.status, answer.reason) == (502, reason)
    assert len(there.requests) == 1


class TestMeanwhile:
    """A reload in the middle of what is being verified, and of handshakes."""

    @pytest.fixture
    def slow(self, scripted_origin, pki):
        """A server that shakes hands when the test lets it."""
        context = pki.intermediate.issue(HOST).server_context()

        def shake(connection: OriginConnection) -> None:
            assert there.goes_on.wait(20)
            secure = context.wrap_socket(connection.socket, server_side=True)
            connection.socket = secure
            while connection.read_request() is not None:
                connection.send(reply(b"here", "200 OK", "Cache-Control: no-store"))

        there = scripted_origin(shake)
        there.goes_on = threading.Event()
        return there

    @pytest.mark.parametrize("how, status, reason", [
        ("pins", 502, "tls-no-pin-matches"), ("roots", 502, "tls-incomplete-chain"),
        ("denied", 403, "destination-refused"), ("refused", 502, "superseded")])
    def test_a_server_is_not_taken_for_verified_under_what_was_in_force_before(
            self, running, slow, pki, how, status, reason):
        with running.wire() as wire:
            wire.send(connect_head(HOST, slow.port))
            until(lambda: slow.accepted, "the server is being verified")
            reload(running, tightened(running.config, pki, how))
            slow.goes_on.set()
            answer = wire.read_final("CONNECT")
            assert (answer.status, answer.reason) == (status, reason)
        no_client_is_connected(running)

    def test_a_client_that_leaves_while_the_server_is_verified_leaves_nothing(
            self, running, slow):
        descriptors = running.descriptors
        for _ in range(5):
            accepted = slow.accepted
            wire = running.wire()
            wire.send(connect_head(HOST, slow.port))
            until(lambda: slow.accepted > accepted, "the server is being verified")
            wire.reset()
        no_client_is_connected(running)
        slow.goes_on.set()
        until(lambda: running.descriptors
              <= descriptors + running.metric("pinfold_upstream_connections_open"),
              "descriptors are as before")
        assert running.metric("pinfold_tunnels_intercepted_total") == 0

    def test_half_done_handshakes_end_where_a_host_is_no_longer_intercepted(
            self, running, there, pki):
        wires = [stopped(running, there.port, Inside(pki.interception.file), step)
                 for step in STEPS]
        reload(running, running.config | {"hosts": [{"match": [HOST], "intercept": False}]})
        for wire in wires:
            with wire:
                wire.read_to_end()
        no_client_is_connected(running)

    @pytest.mark.parametrize("step", ["after CONNECT", "in its first message"])
    def test_a_handshake_that_outlives_a_reload_brings_the_requests_under_it(
            self, running, there, pki, step):
        inside = Inside(pki.interception.file)
        hello = inside.hello
        inside.outgoing.write(hello)
        with stopped(running, there.port, inside, step) as wire:
            reload(running, tightened(running.config, pki, "pins"))
            wire.send(hello[{"after CONNECT": 0}.get(step, 100):])
            inside.shake(wire)
            data = request("/", host=f"{HOST}:{there.port}")
            assert inside.ask(wire, data, b"tls-no-pin-matches").startswith(b"HTTP/1.1 502 ")
        assert there.requests == []
