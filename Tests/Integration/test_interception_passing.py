"""Tunnels to intercepted hosts that are not intercepted: what is not TLS, and clients that keep
rejecting the certificates that they are shown."""

from __future__ import annotations

import re
import socket
import subprocess
import threading
from contextlib import contextmanager

import pytest
from support.gateway import run_pinfold
from support.interception import (
    HOST, OTHER, WRONG_PIN, Inside, connect_head, curl, no_client_is_connected)
from support.origin import reply
from support.secure import reload
from support.wait import until
from support.wire import request

PASS = {"match": [HOST], "intercept": True, "tunnel": "pass"}


@pytest.fixture
def configured(gateway, pki, authority):
    def make(*hosts: dict, pins=(WRONG_PIN,), **interception: object):
        return gateway({
            "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]}, "hosts": list(hosts),
            "interception": authority.section | interception,
            "pinsets": {"some": {"mode": "publicKey", "pins": list(pins)}}})
    return make


@pytest.fixture
def there(origin, pki):
    return origin(lambda _: reply(b"here", "200 OK", "Cache-Control: no-store"),
                  tls=pki.intermediate.issue(HOST, OTHER).server_context())


class Clear:
    """A server that speaks no TLS: greets, if it has a greeting, and sends back what it is sent."""

    def __init__(self, greeting: bytes = b""):
        self.greeting, self.seen = greeting, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                one = self.socket.accept()[0]
            except OSError:
                return
            self.seen.append(b"")
            threading.Thread(target=self._serve, args=(one, len(self.seen) - 1),
                             daemon=True).start()

    def _serve(self, one: socket.socket, index: int) -> None:
        with one:
            one.settimeout(20)
            try:
                one.sendall(self.greeting)
                while data := one.recv(65536):
                    self.seen[index] += data
                    one.sendall(data)
            except OSError:
                return


@contextmanager
def clear(greeting: bytes = b""):
    server = Clear(greeting)
    try:
        yield server
    finally:
        # A thread in accept keeps a socket that is only closed.
        server.socket.shutdown(socket.SHUT_RDWR)
        server.socket.close()


class TestWhatIsNotTLS:
    @pytest.mark.parametrize("how", ["at once", "with CONNECT", "byte by byte"])
    def test_it_is_relayed_where_the_entry_says_pass(self, configured, how):
        running = configured(PASS)
        data = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
        with clear() as server, running.wire() as wire:
            early = data if how == "with CONNECT" else b""
            wire.send(connect_head(HOST, server.port) + early)
            assert wire.read_head().status == 200
            rest = data[len(early):]
            for part in ([rest] if how == "at once" else [rest[i:i + 1] for i in range(len(rest))]):
                wire.send(part)
            assert wire.read_exactly(len(data)) == data
            assert server.seen == [data], "one connection, and nothing but the client's bytes"
        line = running.wait_access(1)[0]
        assert (line["status"], line["passed"]) == (200, "not_tls")
        assert "intercepted" not in line and "reason" not in line
        assert (line["request_bytes"], line["response_bytes"]) == (len(data), len(data))
        assert line["upstream"] == f"127.0.0.1:{server.port}"
        assert running.metric("pinfold_interception_passed_total", cause="not_tls") == 1
        assert running.metric("pinfold_tunnels_opened_total") == 1
        assert running.metric("pinfold_tunnels_intercepted_total") == 0
        no_client_is_connected(running)

    @pytest.mark.parametrize("greeting", [b"SSH-2.0-old\r\n", b"220 mail.test ESMTP\r\n"],
                             ids=["ssh", "smtp"])
    def test_a_server_that_speaks_first_is_relayed(self, configured, greeting):
        running = configured(PASS)
        with clear(greeting) as server:
            wire, answer = running.connect(f"{HOST}:{server.port}")
            with wire:
                assert answer.status == 200
                assert wire.read_exactly(len(greeting)) == greeting
                wire.send(b"hello")
                assert wire.read_exactly(5) == b"hello"
            assert server.seen == [b"hello"], "no handshake was tried on it"
        assert running.wait_access(1)[0]["passed"] == "server_first"
        assert running.metric("pinfold_interception_passed_total", cause="server_first") == 1

    def test_tls_is_intercepted_beside_it(self, configured, there, authority, pki):
        running = configured(PASS | {"pinsets": ["some"]}, pins=[pki.intermediate.pin])
        assert curl(running, authority, f"https://{HOST}:{there.port}/") == "here"
        assert "pinfold" in there.requests[0].get("via")
        outer, inner = running.wait_access(2)
        assert outer["intercepted"] is inner["intercepted"] is True
        assert outer["upstream_tls"] == "TLSv1.3"
        assert len(there.connections) == 1, "the connection that was verified carries the request"
        assert running.metric("pinfold_interception_passed_total", cause="not_tls") == 0
        no_client_is_connected(running)

    def test_tls_after_a_silence_is_intercepted_nevertheless(
            self, configured, there, authority):
        """By then the server is connected to in clear, too, for it may have been the one to
        speak."""
        running = configured(PASS)
        wire, answer = running.connect(f"{HOST}:{there.port}")
        with wire:
            assert answer.status == 200
            until(lambda: running.metric("pinfold_upstream_connect_duration_seconds_count") == 1,
                  "the server is connected")
            inside = Inside(authority.file)
            inside.shake(wire)
            data = request("/", host=f"{HOST}:{there.port}")
            assert inside.ask(wire, data, b"here").startswith(b"HTTP/1.1 200 ")
        assert running.metric("pinfold_tunnels_intercepted_total") == 1

    def test_a_server_that_is_not_trusted_is_not_shown(self, configured, origin, pki, authority):
        """The client has its 200 by then, so it gets an alert, and the log has the reason."""
        running = configured(PASS)
        there = origin(lambda _: reply(b""), tls=pki.self_signed(HOST).server_context())
        wire, answer = running.connect(f"{HOST}:{there.port}")
        with wire:
            assert answer.status == 200
            wire.send(Inside(authority.file).hello)
            seen = wire.read_to_end()
        assert seen[0] == 21 and seen[-1] == 40, "an alert: handshake_failure"
        line = running.wait_access(1)[0]
        assert (line["status"], line["reason"]) == (200, "tls-self-signed")
        assert running.metric("pinfold_client_tls_failures_total", reason="server") == 1
        assert there.application_bytes == b""
        no_client_is_connected(running)

    def test_a_wrong_pin_is_not_bypassed_by_tls(self, configured, there, authority):
        running = configured(PASS | {"pinsets": ["some"]})
        wire, answer = running.connect(f"{HOST}:{there.port}")
        with wire:
            assert answer.status == 200
            wire.send(Inside(authority.file).hello)
            assert wire.read_to_end()[-1] == 40
        assert running.wait_access(1)[0]["reason"] == "tls-no-pin-matches"
        assert there.application_bytes == b""

    def test_a_server_that_cannot_be_reached_closes_the_tunnel(self, configured):
        running = configured(PASS)
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            wire, answer = running.connect(f"{HOST}:{closed.getsockname()[1]}")
            with wire:
                assert answer.status == 200
                wire.send("GET / HTTP/1.1\r\n\r\n")
                assert wire.ended()
        assert running.wait_access(1)[0]["reason"] == "connection-refused"
        no_client_is_connected(running)

    def test_destinations_are_checked_before_the_answer(self, gateway, authority):
        running = gateway({
            "access": {"destinations": {"deny": [HOST]}}, "interception": authority.section,
            "hosts": [PASS | {"match": [HOST, "169.254.169.254"]}]})
        for host in (HOST, "169.254.169.254"):
            wire, answer = running.connect(f"{host}:443")
            wire.close()
            assert (answer.status, answer.reason) == (403, "destination-refused")

    @pytest.mark.parametrize("tunnel, pinned", [("auto", False), ("auto", True), ("refuse", False)])
    def test_it_is_closed_on_without_the_word(self, configured, there, pki, tunnel, pinned):
        entry = {"match": [HOST], "intercept": True, "tunnel": tunnel}
        running = configured(
            entry | ({"pinsets": ["some"]} if pinned else {}), pins=[pki.intermediate.pin])
        wire, answer = running.connect(f"{HOST}:{there.port}")
        with wire:
            assert answer.status == 200
            wire.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert wire.read_to_end() == b""
        assert running.metric("pinfold_client_tls_failures_total", reason="not_tls") == 1
        assert running.metric("pinfold_interception_passed_total", cause="not_tls") == 0
        assert there.requests == []

    def test_a_reload_that_takes_the_word_back_holds_for_tunnels_that_wait(
            self, configured, authority):
        with clear() as server:
            running = configured(PASS)
            wire, answer = running.connect(f"{HOST}:{server.port}")
            with wire:
                assert answer.status == 200
                until(lambda: server.seen, "the server is connected, for it may speak first")
                reload(running, running.config | {"hosts": [{"match": [HOST], "intercept": True}]})
                wire.send(b"EHLO\r\n")
                assert not wire._more(), "the tunnel is closed"
            assert server.seen == [b""]

    def test_neither_side_sends_anything(self, gateway, authority):
        running = gateway({
            "timeouts": {"head": "900ms"}, "interception": authority.section, "hosts": [PASS]})
        with clear() as server:
            wire, answer = running.connect(f"{HOST}:{server.port}")
            with wire:
                assert answer.status == 200
                assert wire.ended()
            assert server.seen == [b""]
        assert running.metric("pinfold_client_tls_failures_total", reason="timeout") == 1
        no_client_is_connected(running)

    def test_a_client_that_goes_leaves_nothing(self, configured, there, authority):
        running = configured(PASS)
        no_client_is_connected(running)
        descriptors = running.descriptors
        hello = Inside(authority.file).hello
        for sent in (b"", hello[:1], hello, b"GET / HTTP/1.1\r\n") * 2:
            for how in ("close", "reset"):
                wire, answer = running.connect(f"{HOST}:{there.port}")
                assert answer.status == 200
                wire.send(sent)
                wire.close() if how == "close" else wire.reset()
                no_client_is_connected(running)
        # A connection that was verified may be kept, and the two pipes of a relay.
        until(lambda: running.descriptors <= descriptors + 5, "descriptors are as before")

    def test_check_warns_where_it_goes_around_pins(self, configured, authority):
        running = configured(PASS | {"pinsets": ["some"]})
        done = run_pinfold("check", "--config", str(running.config_file))
        assert done.returncode == 0
        assert re.search(r"hosts\[0\]\.tunnel: .*without TLS.* bypass the pinsets", done.stderr)


def rejects(running, port: int, pki, host: str = HOST, *arguments: str) -> None:
    """curl, which does not know the authority."""
    done = subprocess.run(
        ["curl", "-q", "-sS", "--max-time", "20", "-x", running.proxy_url, "--cacert",
         str(pki.root.pem_file), *arguments, f"https://{host}:{port}/"],
        capture_output=True, text=True, timeout=30)
    assert done.returncode == 60, f"{done.returncode} {done.stdout}{done.stderr}"


def rejections(running, count: int) -> None:
    until(lambda: sum(running.metric("pinfold_interception_rejections_total", host=host)
                      for host in (HOST,)) == count, f"{count} rejections are counted")


class TestRejections:
    @pytest.mark.parametrize("version", ["1.2", "1.3"])
    def test_a_client_that_keeps_rejecting_is_tunnelled(self, configured, there, pki, version):
        running = configured(PASS, {"match": [OTHER]})
        for count in range(1, 4):
            rejects(running, there.port, pki, HOST, "--tls-max", version)
            rejections(running, count)
        done = subprocess.run(
            ["curl", "-q", "-sS", "-x", running.proxy_url, "--cacert", str(pki.root.pem_file),
             f"https://{HOST}:{there.port}/"], capture_output=True, text=True, timeout=30)
        assert done.stdout == "here", done.stderr
        assert "via" not in there.requests[0], "relayed untouched"
        line = next(line for line in running.wait_access(4) if "passed" in line)
        assert (line["status"], line["passed"]) == (200, "rejected")
        assert running.metric("pinfold_interception_passed_total", cause="rejected") == 1
        log = running.wait_log("keeps rejecting")
        assert "relayed unread" in log and f"{HOST}:{there.port}" in log

    def test_another_host_of_the_same_client_is_not(self, configured, there, pki, authority):
        running = configured(PASS, default=True)
        for count in range(1, 4):
            rejects(running, there.port, pki)
            rejections(running, count)
        assert curl(running, authority, f"https://{OTHER}:{there.port}/") == "here"
        assert "via" in there.requests[0]

    @pytest.mark.parametrize("entry", [
        {"intercept": True}, {"intercept": True, "tunnel": "refuse"}, {"pinsets": ["some"]},
        {"intercept": True, "pinsets": ["some"]}])
    def test_it_is_not_given_up_without_the_word(self, configured, there, pki, authority, entry):
        """Whoever could make the gateway look away by rejecting would go around it."""
        running = configured({"match": [HOST]} | entry, pins=[pki.intermediate.pin])
        for count in range(1, 5):
            rejects(running, there.port, pki)
            rejections(running, count)
        assert curl(running, authority, f"https://{HOST}:{there.port}/") == "here"
        assert "via" in there.requests[0]
        assert running.metric("pinfold_interception_passed_total", cause="rejected") == 0
        assert "keeps rejecting" not in running.log()

    def test_a_request_in_between_resets_the_count(
            self, configured, there, pki, authority):
        running = configured(PASS)
        for count in range(1, 6):
            rejects(running, there.port, pki)
            rejections(running, count)
            if count % 2 == 0:
                assert curl(running, authority, f"https://{HOST}:{there.port}/") == "here"
        assert curl(running, authority, f"https://{HOST}:{there.port}/") == "here"

    def test_it_ends_after_the_period(self, configured, there, pki, authority):
        running = configured(
            PASS, rejections={"alerts": 1, "period": "1ms"})
        rejects(running, there.port, pki)
        rejections(running, 1)
        assert curl(running, authority, f"https://{HOST}:{there.port}/") == "here"

    def test_a_reload_that_changes_something_resets_it(self, configured, there, pki, authority):
        running = configured(PASS, rejections={"alerts": 1})
        rejects(running, there.port, pki)
        rejections(running, 1)
        reload(running, running.config | {"limits": {"fields": 99}})
        assert curl(running, authority, f"https://{HOST}:{there.port}/") == "here"

    @pytest.mark.parametrize("when", ["in the handshake", "after the handshake"])
    def test_those_who_just_close_are_counted_too(
            self, configured, there, authority, when):
        running = configured(PASS, rejections={"closes": 2})
        for _ in range(2):
            wire, answer = running.connect(f"{HOST}:{there.port}")
            with wire:
                assert answer.status == 200
                inside = Inside(authority.file)
                if when == "after the handshake":
                    inside.shake(wire)
                else:
                    wire.send(inside.hello)
                    assert wire._more(), "the certificate is there"
            no_client_is_connected(running)
        wire, _ = running.connect(f"{HOST}:{there.port}")
        wire.close()
        assert "rejected" in {line.get("passed") for line in running.wait_access(3)}

    def test_clients_that_send_nothing_have_seen_no_certificate(self, configured, there, authority):
        running = configured(PASS, rejections={"closes": 1})
        for sent in (b"", Inside(authority.file).hello[:100]):
            wire, _ = running.connect(f"{HOST}:{there.port}")
            wire.send(sent)
            wire.close()
            no_client_is_connected(running)
        assert curl(running, authority, f"https://{HOST}:{there.port}/") == "here"

    def test_an_alert_after_the_handshake_is_one(self, configured, there, authority):
        """In TLS 1.3 a client may send its Finished before it has looked at the certificate."""
        running = configured(PASS, rejections={"alerts": 1})
        done = subprocess.run(
            ["openssl", "s_client", "-proxy", "%s:%d" % running.proxy, "-connect",
             f"{HOST}:{there.port}", "-servername", HOST, "-tls1_3", "-verify_return_error"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
        assert "unknown ca" in done.stderr or "verify failed" in done.stderr, done.stderr
        rejections(running, 1)
        wire, _ = running.connect(f"{HOST}:{there.port}")
        wire.close()
        assert "rejected" in {line.get("passed") for line in running.wait_access(2)}


    @pytest.mark.parametrize("rule", [
        {"methods": ["POST"], "action": "deny"}, {"paths": ["/admin/**"], "action": "deny"}])
    def test_who_rejects_does_not_go_around_rules_about_requests(
            self, gateway, there, pki, authority, rule):
        """What is relayed cannot be judged: interception goes on, and the client's handshakes fail."""
        running = gateway({
            "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]}, "hosts": [PASS],
            "interception": authority.section | {"rejections": {"alerts": 1}},
            "access": {"connectPorts": "any",
                       "destinations": {"allow": ["127.0.0.0/8", "**.test"]},
                       "rules": [{"name": "no", **rule}]}})
        for count in range(1, 4):
            rejects(running, there.port, pki)
            rejections(running, count)
        assert not there.requests
        assert running.metric("pinfold_interception_passed_total", cause="rejected") == 0
        # A rule that cannot concern this client changes nothing.
        reload(running, running.config | {"access": running.config["access"] | {
            "rules": [{"name": "no", **rule, "clients": ["203.0.113.0/24"]}]}})
        rejects(running, there.port, pki)
        rejections(running, 4)
        wire, _ = running.connect(f"{HOST}:{there.port}")
        wire.close()
        until(lambda: running.metric("pinfold_interception_passed_total", cause="rejected") == 1,
              "it is relayed")


class TestOldVersions:
    def s_client(self, running, there, authority, *arguments: str) -> str:
        done = subprocess.run(
            ["openssl", "s_client", "-proxy", "%s:%d" % running.proxy, "-connect",
             f"{HOST}:{there.port}", "-servername", HOST, "-CAfile", str(authority.file),
             "-ign_eof", *arguments],
            input=f"GET / HTTP/1.0\r\nHost: {HOST}:{there.port}\r\n\r\n", capture_output=True,
            text=True, timeout=30)
        return done.stdout + done.stderr

    @pytest.mark.parametrize("minimum, spoken", [
        (None, {"1.2", "1.3"}), ("1.0", {"1.0", "1.1", "1.2", "1.3"}), ("1.3", {"1.3"})])
    def test_the_minimum_inside_tunnels_is_kept(
            self, configured, there, authority, minimum, spoken):
        running = configured(
            {"match": [HOST], "intercept": True}, **({"minimum": minimum} if minimum else {}))
        served = set()
        for version, flag in (("1.0", "-tls1"), ("1.1", "-tls1_1"), ("1.2", "-tls1_2"),
                              ("1.3", "-tls1_3")):
            output = self.s_client(
                running, there, authority, flag, "-cipher", "DEFAULT:@SECLEVEL=0")
            if "\nhere" in output:
                assert "Verify return code: 0 (ok)" in output
                served.add(version)
        assert served == spoken
        assert {version for version in ("1.0", "1.1", "1.2", "1.3") if running.metric(
            "pinfold_client_tls_handshakes_total", version=version) == 1} == spoken

    @pytest.mark.parametrize("ciphers, kind", [
        ("ECDHE-RSA-AES128-SHA", "RSA"), ("AES128-SHA", "RSA"), ("ECDHE-ECDSA-AES128-SHA", "EC")])
    def test_old_clients_that_verify_one_kind_of_key(
            self, configured, there, authority, ciphers, kind):
        running = configured({"match": [HOST], "intercept": True}, minimum="1.0")
        for version in ("-tls1", "-tls1_1"):
            output = self.s_client(
                running, there, authority, version, "-cipher", f"{ciphers}:@SECLEVEL=0")
            assert "\nhere" in output, output
            assert ("rsaEncryption" if kind == "RSA" else "id-ecPublicKey") in output, output

    def test_a_raised_minimum_ends_open_tunnels(self, configured, there, authority):
        running = configured({"match": [HOST], "intercept": True}, minimum="1.0")
        wire, _ = running.connect(f"{HOST}:{there.port}")
        with wire:
            Inside(authority.file).shake(wire)
            config = dict(running.config)
            config["interception"] = authority.section
            reload(running, config)
            wire.read_to_end()
        no_client_is_connected(running)

    def test_check_warns_of_it(self, configured, authority):
        running = configured(minimum="1.0")
        done = run_pinfold("check", "--config", str(running.config_file))
        assert done.returncode == 0
        assert "interception.minimum: TLS 1.0 is insecure" in done.stderr
