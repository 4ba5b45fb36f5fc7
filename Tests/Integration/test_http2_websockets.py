"""WebSockets in streams of HTTP/2 (RFC 8441), with servers that speak HTTP/1.1."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator

import pytest
from support import websocket
from support.chromium import Chromium
from support.http2 import http2
from support.http2sockets import SocketInStream, accepted
from support.origin import Origin, OriginConnection, Request, Script, reply, serving
from support.secure import NAME, client_context, reverse, tls_of
from support.wait import until
from websockets.frames import Opcode
from websockets.protocol import Protocol, Side, State


UPGRADE = ("Upgrade: websocket", "Connection: Upgrade")
ACCEPT = "Sec-WebSocket-Accept: %"


def switch(connection: OriginConnection, *lines: str, then: bytes = b"") -> None:
    """Answers a request by another protocol; `%` stands for the right answer to its key."""
    seen = connection.read_request_head()
    assert seen is not None
    answer(connection, seen, *(lines or (*UPGRADE, ACCEPT)), then=then)


def answer(connection: OriginConnection, seen: Request, *lines: str, then: bytes = b"") -> None:
    head = "\r\n".join(["HTTP/1.1 101 Switching Protocols", *lines, "", ""])
    connection.send(head.replace("%", accepted(seen.get("sec-websocket-key"))).encode() + then)


def switching(*lines: str) -> Script:
    """A server that answers so, and then receives whatever comes."""

    def run(connection: OriginConnection) -> None:
        switch(connection, *lines)
        connection.read_to_end()

    return run


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    with websocket.serving() as port:
        yield f"127.0.0.1:{port}"


@pytest.fixture(scope="module")
def leaf(pki):
    return pki.intermediate.issue(NAME, "127.0.0.1", "localhost")


@pytest.fixture
def running(gateway, leaf, echo):
    upstream = f"http://{echo}"
    return gateway({"listeners": [
        {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
        {"name": "clear", "address": "127.0.0.1:0", "kind": "reverse", "upstream": upstream},
        reverse(tls_of(leaf), upstream, "secure")]})


@pytest.mark.parametrize("listener", ["proxy", "clear", "secure"])
def test_messages_pass_both_ways(running, pki, echo, listener):
    tls = client_context(pki.root) if listener == "secure" else None
    with http2(running.listeners[listener], tls, NAME) as client:
        opened = SocketInStream(client, echo if listener == "proxy" else "origin.test").opened()
        assert opened.answer.status == 200
        names = {name for name, _ in opened.answer.headers}
        assert not names & {"upgrade", "connection", "sec-websocket-accept", "content-length",
                            "transfer-encoding"}
        for message in (b"x", b"y" * 200_000, b""):
            opened.send(message)
            assert opened.receive() == message
        # Others go on beside it.
        assert client.get("/", authority=echo).status != 200
        opened.protocol.send_close(1000)
        opened.flush()
        client.until(lambda: opened.answer.complete, "the server closes")
        client.send(opened.stream, b"", end=True)
        assert client.goaway is None
    line = next(one for one in running.wait_access(2) if one["status"] == 101)
    assert (line["method"], line["version"], line["target"][-5:]) == ("GET", "HTTP/2.0", "/chat")


def test_many_are_on_one_connection(running, echo):
    with http2(running.proxy) as client:
        opened = [SocketInStream(client, echo, f"/{number}") for number in range(50)]
        for number, one in enumerate(opened):
            one.opened().send(b"%d" % number)
        assert [one.receive() for one in opened] == [b"%d" % number for number in range(50)]
    until(lambda: running.metric("pinfold_tunnels_open") == 0, "all are over")


def test_the_server_gets_a_handshake_of_http_1(gateway):
    with serving(Origin(switching(*UPGRADE, ACCEPT, "Sec-WebSocket-Protocol: b"))) as there:
        running = gateway({})
        with http2(running.proxy) as client:
            one = SocketInStream(
                client, there.authority, "/a?b", sec_websocket_protocol="a, b",
                origin="http://page.test").opened()
            assert one.answer.status == 200
            assert dict(one.answer.headers)["sec-websocket-protocol"] == "b"
            # What is sent before the answer is not lost, nor what comes at once.
            client.send(one.stream, b"hello", end=True)
            there.wait_finished()
        seen = bytes(there.connections[0].received).decode()
        head, _, rest = seen.partition("\r\n\r\n")
        lines = head.split("\r\n")
        fields = {name.lower(): value for name, value in (one.split(": ") for one in lines[1:])}
        assert lines[0] == "GET /a?b HTTP/1.1"
        assert (fields["upgrade"], fields["connection"].lower()) == ("websocket", "upgrade")
        assert (fields["sec-websocket-version"], fields["origin"]) == ("13", "http://page.test")
        assert len(base64.b64decode(fields["sec-websocket-key"])) == 16
        assert rest == "hello"
        assert "content-length" not in fields and "transfer-encoding" not in fields


def test_keys_differ(gateway):
    with serving(Origin(switching(*UPGRADE, ACCEPT))) as there:
        running = gateway({})
        with http2(running.proxy) as client:
            for _ in range(3):
                SocketInStream(client, there.authority).opened()
        keys = {next(line for line in bytes(one.received).split(b"\r\n")
                     if line.lower().startswith(b"sec-websocket-key")) for one in there.connections}
        assert len(keys) == 3


def test_what_is_sent_before_the_answer_waits_for_it(gateway):
    release = threading.Event()

    def late(connection: OriginConnection) -> None:
        release.wait(20)
        switch(connection, then=b"early")
        connection.read_to_end()

    with serving(Origin(late)) as there:
        running = gateway({})
        with http2(running.proxy) as client:
            one = SocketInStream(client, there.authority)
            client.send(one.stream, b"z" * 30_000)
            client.get("/metrics", authority="nobody.invalid")
            release.set()
            client.until(lambda: one.answer.body == b"early")
            client.send(one.stream, b"", end=True)
            there.wait_finished()
        assert bytes(there.connections[0].received).endswith(b"\r\n\r\n" + b"z" * 30_000)


@pytest.mark.parametrize("how, status, reason", [
    (switching(*UPGRADE, "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA="), 502,
     b"upstream-failed-switch"),
    (switching(*UPGRADE), 502, b"upstream-failed-switch"),
    (switching(*UPGRADE, ACCEPT, ACCEPT), 502, b"upstream-failed-switch"),
    (switching("Upgrade: other", "Connection: Upgrade", ACCEPT), 502, b"upstream-unexpected-switch"),
    (reply(b"page", "200 OK"), 502, b"upstream-failed-switch"),
    (reply(b"", "204 No Content", length=False), 502, b"upstream-failed-switch"),
    (reply(b"no", "403 Forbidden"), 403, b"no"),
    (reply(b"old", "426 Upgrade Required", "Upgrade: websocket", "Connection: Upgrade"), 426, b"old"),
    (reply(b"", "302 Found", "Location: /b"), 302, b""),
], ids=["wrong", "none", "twice", "other", "200", "204", "403", "426", "302"])
def test_only_the_right_answer_opens_it(gateway, how, status, reason):
    def run(connection: OriginConnection) -> None:
        if callable(how):
            return how(connection)
        connection.read_request_head()
        connection.send(how)
        connection.read_to_end()

    with serving(Origin(run)) as there:
        running = gateway({})
        with http2(running.proxy) as client:
            one = SocketInStream(client, there.authority).opened()
            client.until(lambda: one.answer.complete)
            assert (one.answer.status, reason in one.answer.body) == (status, True), one.answer
            assert client.get("/", authority="nobody.invalid").status == 502
            assert client.goaway is None


@pytest.mark.parametrize("protocol, more, status, reason", [
    ("h2c", {}, 501, b"unsupported-protocol"), ("HTTP", {}, 501, b"unsupported-protocol"),
    ("TLS", {}, 501, b"unsupported-protocol"), ("a b", {}, 400, b"malformed-protocol"),
    ("websocket", {"content_length": "0"}, 400, b"content-in-connect"),
    ("websocket", {"content_length": "5"}, 400, b"content-in-connect"),
    ("websocket", {"upgrade": "websocket"}, 400, b"connection-field")])
def test_a_request_for_a_protocol_is_refused(gateway, origin, protocol, more, status, reason):
    there = origin(lambda seen: reply(b"no"))
    running = gateway({})
    with http2(running.proxy) as client:
        one = SocketInStream(client, there.authority, protocol=protocol, **more).opened()
        client.until(lambda: one.answer.complete or one.answer.reset is not None)
        assert (one.answer.status, reason in one.answer.body) == (status, True), one.answer
        assert client.get("/after", authority=there.authority).status == 200
    assert [seen.target for seen in there.requests] == ["/after"]


@pytest.mark.parametrize("config", [
    {"hosts": [{"match": ["127.0.0.1"], "switchProtocols": "refuse"}]},
    {"access": {"rules": [{"name": "none", "action": "deny", "methods": ["GET"]}]}}],
    ids=["host", "rule"])
def test_hosts_and_rules_forbid_it(gateway, echo, config):
    running = gateway(config)
    with http2(running.proxy) as client:
        one = SocketInStream(client, echo).opened()
        assert one.answer.status == 403, one.answer


def test_one_that_the_client_resets_is_cut_off_at_the_server(gateway):
    how: list[str] = []

    def run(connection: OriginConnection) -> None:
        switch(connection)
        try:
            how.append("end" if connection.socket.recv(100) == b"" else "data")
        except ConnectionError:
            how.append("reset")

    with serving(Origin(run)) as there:
        running = gateway({})
        with http2(running.proxy) as client:
            one = SocketInStream(client, there.authority).opened()
            client.reset(one.stream)
            there.wait_finished()
        assert how == ["reset"]


def test_a_server_that_breaks_off_resets_the_stream(gateway):
    def run(connection: OriginConnection) -> None:
        switch(connection)
        connection.read_exactly(2)
        connection.reset()

    with serving(Origin(run)) as there:
        running = gateway({})
        with http2(running.proxy) as client:
            one = SocketInStream(client, there.authority).opened()
            client.send(one.stream, b"go")
            client.until(lambda: one.answer.reset is not None, "the reset")
            assert not one.answer.complete


def test_each_counts_as_a_connection(gateway, echo):
    running = gateway({"limits": {"perClient": {"connections": 5}}})
    with http2(running.proxy) as client:
        opened = [SocketInStream(client, echo).opened() for _ in range(8)]
        statuses = [one.answer.status for one in opened]
        assert statuses[0] == 200 and statuses[-1] == 503, statuses


# Has loaded when the image has, which comes once the server knows that the echo is shown.
PAGE = """<!DOCTYPE html><title>waiting</title><p id="result"></p><img src="/image"><script>
const socket = new WebSocket("wss://" + location.host + "/chat");
const done = (text) => {
  document.getElementById("result").textContent = text;
  socket.send("seen");
};
socket.onopen = () => socket.send("hello");
socket.onmessage = (event) => done("echoed " + event.data);
</script>"""


def test_chromium_opens_one(gateway, pki, leaf, tmp_path):
    """In a stream of the connection on which the page came."""
    shown = threading.Event()

    def converse(connection: OriginConnection) -> None:
        server = Protocol(Side.SERVER, state=State.OPEN)
        while data := connection.socket.recv(1 << 16):
            server.receive_data(data)
            for frame in server.events_received():
                if frame.opcode is Opcode.TEXT and frame.data == b"seen":
                    shown.set()
                elif frame.opcode is Opcode.TEXT:
                    server.send_text(frame.data)
            for out in server.data_to_send():
                connection.send(out)

    def serve(connection: OriginConnection) -> None:
        while (seen := connection.read_request_head()) is not None:
            match seen.target:
                case "/chat":
                    answer(connection, seen, *UPGRADE, ACCEPT)
                    return converse(connection)
                case "/image":
                    shown.wait(20)
                    connection.send(reply(b"", "404 Not Found"))
                case _:
                    connection.send(reply(PAGE.encode(), "200 OK", "Content-Type: text/html"))

    with serving(Origin(serve)) as there:
        running = gateway({"listeners": [reverse(tls_of(leaf), there.url().rstrip("/"))]})
        browser = Chromium(tmp_path, "direct://", [pki.root.pem_file])
        port = running.listeners["route"][1]
        assert "echoed hello" in browser.shows(f"https://127.0.0.1:{port}/")
        until(lambda: 101 in {one["status"] for one in running.access_lines()}, "its line")
        assert {one["version"] for one in running.access_lines()} == {"HTTP/2.0"}
