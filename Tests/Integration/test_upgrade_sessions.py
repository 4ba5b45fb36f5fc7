"""TLS sessions that clients have from a gateway, and its successor: they are resumed there as long as
a full handshake would end the same way."""

from __future__ import annotations

import os
import re
import signal
import subprocess

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID
from support.interception import HOST
from support.origin import HTTPOrigin, reply, serving
from support.secure import NAME, forward, reload, s_client, tls_of
from support.upgrades import Succession
from support.wait import until
from support.wire import connect

# In TLS 1.3 tickets come behind the handshake, with the first bytes.
SENT = "GET / HTTP/1.1\r\nConnection: close\r\n\r\n"
VERSIONS = pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])


@pytest.fixture(scope="module")
def there():
    with serving(HTTPOrigin(lambda seen: reply(b"answer"))) as made:
        yield made


@pytest.fixture(scope="module")
def leaf(pki):
    return pki.intermediate.issue(NAME)


@pytest.fixture
def succession(gateway):
    made: list[Succession] = []

    def make(*listeners: dict, **config) -> Succession:
        one = Succession(gateway(
            {"cache": {"enabled": False}, "listeners": list(listeners)} | config, start=False))
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


class Client:
    """openssl s_client with a session that it keeps."""

    def __init__(self, one: Succession, version: str, folder, listener: str = "proxy",
                 *arguments: str):
        self.running = one.gateway
        self.listener = listener
        self.arguments = [version, "-ign_eof", *arguments]
        self.session = str(folder / f"session{version}-{listener}")
        assert not self._resumes("-sess_out", self.session)
        assert self.again(), "while nothing has changed"

    def _resumes(self, *arguments: str) -> bool:
        output = s_client(self.running, *self.arguments, *arguments, sent=SENT,
                          listener=self.listener)
        return re.search(r"^(Reused|New), TLS", output, re.M)[1] == "Reused"

    def again(self) -> bool:
        """Whether another connection resumes the session."""
        return self._resumes("-sess_in", self.session)

    def renew(self) -> bool:
        """The same, with a session of that connection from now on."""
        return self._resumes("-sess_in", self.session, "-sess_out", self.session)


@VERSIONS
def test_a_session_is_resumed_by_the_successor_and_by_its_successors(
        succession, leaf, workspace, version):
    one = succession(forward(tls_of(leaf)), workers=2)
    client = Client(one, version, workspace)
    for _ in range(3):
        former = one.pid
        one.upgrade()
        for _ in range(4):
            assert client.again()
        until(lambda: former not in one.members(), "the predecessor has ended", 20)
        assert client.renew()


@VERSIONS
def test_a_process_that_serves_again_resumes_what_its_successor_issued(
        succession, leaf, there, workspace, version):
    one = succession(forward(tls_of(leaf)), forward(None, "plain"))
    # As long as a tunnel is open, the predecessor has not finished.
    wire, answer = connect(one.gateway.listeners["plain"], there.authority)
    assert answer.status == 200
    first = Client(one, version, workspace)
    former = one.pid
    successor = one.upgrade()
    assert first.renew()
    start = len(one.gateway.log())
    os.kill(successor, signal.SIGKILL)
    until(lambda: "this process serves again" in one.log_from(start), "it serves again")
    one.pid = former
    assert first.again()
    wire.close()


@VERSIONS
def test_a_session_inside_a_tunnel_begins_anew(succession, origin, pki, workspace, version):
    """Its server is verified anew, too."""
    there = origin(lambda _: reply(b"here"), tls=pki.intermediate.issue(HOST).server_context())
    one = succession(
        forward(None), tls={"roots": [str(pki.root.pem_file)]},
        interception=pki.interception.section, hosts=[{"match": [HOST], "intercept": True}])
    session = str(workspace / "session")

    def resumes(*arguments: str) -> bool:
        done = subprocess.run(
            ["openssl", "s_client", "-proxy", "%s:%d" % one.gateway.proxy, "-connect",
             f"{HOST}:{there.port}", "-servername", HOST, version, "-ign_eof", *arguments],
            capture_output=True, text=True, timeout=30,
            input=f"GET / HTTP/1.1\r\nHost: {HOST}:{there.port}\r\nConnection: close\r\n\r\n")
        assert "\nhere" in done.stdout, done.stdout + done.stderr
        return re.search(r"^(Reused|New), TLS", done.stdout, re.M)[1] == "Reused"

    assert not resumes("-sess_out", session)
    assert resumes("-sess_in", session)
    one.upgrade()
    assert not resumes("-sess_in", session)


@VERSIONS
@pytest.mark.parametrize(
    "what", ["a certificate", "the issuers of clients", "the minimum", "nothing of it"])
def test_a_session_is_not_resumed_where_the_listener_has_changed(
        succession, leaf, pki, workspace, version, what):
    client_leaf = pki.root.issue("client.test", usage=ExtendedKeyUsageOID.CLIENT_AUTH)
    tls = tls_of(leaf, clientRoots=[str(pki.root.pem_file)], minimum="1.1")
    one = succession(forward(tls))
    client = Client(one, version, workspace, "proxy", "-cert", str(client_leaf.chain_file()),
                    "-key", str(client_leaf.key_file))
    changed = {
        "a certificate": forward(tls | tls_of(pki.intermediate.issue(NAME))),
        "the issuers of clients": forward(tls | {"clientRoots": [
            str(pki.root.pem_file), str(pki.intermediate.pem_file)]}),
        "the minimum": forward(tls | {"minimum": "1.2"}),
        "nothing of it": forward(tls) | {"http2": "off"},
    }[what]
    one.gateway.write_config(one.gateway.config | {"listeners": [changed]})
    one.upgrade()
    assert client.again() == (what == "nothing of it")


@VERSIONS
def test_a_session_that_a_reload_has_ended_is_not_resumed_after_an_upgrade(
        succession, leaf, workspace, version):
    one = succession(forward(tls_of(leaf)))
    client = Client(one, version, workspace)
    reload(one.gateway, one.gateway.config | {"limits": {"fields": 99}})
    assert not client.again()
    fresh = Client(one, version, workspace)
    one.upgrade()
    assert fresh.again()


@VERSIONS
def test_a_session_is_resumed_at_the_listener_where_it_began_and_nowhere_else(
        succession, leaf, workspace, version):
    one = succession(forward(tls_of(leaf)), forward(tls_of(leaf), "other"))
    client = Client(one, version, workspace)
    one.upgrade()
    client.listener = "other"
    assert not client.again()
    client.listener = "proxy"
    assert client.again()


@VERSIONS
def test_a_client_is_who_it_was(succession, leaf, pki, workspace, version):
    client_leaf = pki.root.issue("client.test", usage=ExtendedKeyUsageOID.CLIENT_AUTH)
    log = workspace / "access.log"
    one = succession(
        forward(tls_of(leaf, clientRoots=[str(pki.root.pem_file)])),
        log={"access": {"path": str(log), "format": "json"}})
    client = Client(one, version, workspace, "proxy", "-cert", str(client_leaf.chain_file()),
                    "-key", str(client_leaf.key_file))
    one.upgrade()
    before = log.read_text().count("client.test") if log.exists() else 0
    # Without its certificate: the session stands for it.
    client.arguments = client.arguments[:2]
    assert client.again()
    until(lambda: log.read_text().count("client.test") > before, "it is logged as that client")
