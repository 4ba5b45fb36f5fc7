"""What a client or the gateway still has from before a reload, a session or a connection, does not
go around what the reload has tightened."""

from __future__ import annotations

import re
import ssl
import subprocess

import pytest
from support.interception import HOST, OTHER, WRONG_PIN, InterceptionAuthority, ask_inside
from support.origin import reply
from support.secure import reload
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
        "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
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
        said = self.ask("-sess_in", self.session)
        assert "\nhere" in said and self.resumed(said)

    def again(self) -> str:
        return self.ask("-sess_in", self.session)

    @staticmethod
    def resumed(said: str) -> bool:
        return bool(re.search(r"^Reused, TLS", said, re.M))


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
    said = devices[0].again()
    assert "\nhere" in said and not Device.resumed(said)
    assert "Trusted intermediate" in said, "the server's own certificate"


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
        said = device.again()
        assert "\nhere" in said and not device.resumed(said)


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
