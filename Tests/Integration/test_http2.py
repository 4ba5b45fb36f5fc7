"""HTTP/2 towards clients (RFC 9113): requests, responses, content and ends of streams."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import socket
import ssl
import subprocess
import threading

import h2.errors
import pytest
from support.frames import DATA, HEADERS, PREFACE, SETTINGS, Attacker, frame
from support.http2 import Answer, HTTP2Client, TLSInStream, http2
from support.origin import OriginConnection, Request, reply
from support.secure import (
    NAME, client_context, forward, reload, reverse, secure_wire, tls_of)
from support.wait import until


def echo(seen: Request) -> bytes:
    return reply(
        f"{seen.method} {seen.target} {hashlib.sha256(seen.body).hexdigest()}".encode(),
        "200 OK", "Cache-Control: no-store")


@pytest.fixture(scope="module")
def leaf(pki):
    return pki.intermediate.issue(NAME, "127.0.0.1")


@pytest.fixture
def there(origin):
    return origin(echo)


@pytest.fixture
def running(gateway, there):
    return gateway({"listeners": [
        {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
        {"name": "route", "address": "127.0.0.1:0", "kind": "reverse",
         "upstream": there.url().rstrip("/")}]})


@pytest.fixture
def route(running):
    with http2(running.listeners["route"]) as client:
        yield client


# Requests and responses


def test_a_request_in_clear_text_is_served(route, there):
    answer = route.get("/path?query")
    assert answer.status == 200 and answer.complete
    assert answer.body.startswith(b"GET /path?query ")
    assert there.requests[0].version == "HTTP/1.1"
    assert "pinfold" in answer.get("via")


def test_a_request_through_a_forward_listener_is_served(running, there):
    with http2(running.proxy) as client:
        answer = client.get("/there", authority=there.authority)
        assert answer.status == 200
        assert answer.body.startswith(b"GET /there ")
    assert there.requests[0].get("via").startswith("2.0 ")


def test_a_request_over_tls_is_served(gateway, there, leaf, pki):
    running = gateway({"listeners": [
        forward(tls_of(leaf)), reverse(tls_of(leaf), there.url().rstrip("/"))]})
    with http2(running.listeners["route"], client_context(pki.root), NAME) as client:
        assert client.socket.selected_alpn_protocol() == "h2"
        assert client.get("/secure").body.startswith(b"GET /secure ")


def test_many_requests_share_a_connection(running, route, there):
    streams = [route.begin(f"/{number}") for number in range(100)]
    for number, stream in enumerate(streams):
        answer = route.answer(stream)
        assert answer.body.startswith(f"GET /{number} ".encode()), answer
    assert len(there.requests) == 100
    addresses = {line["client"] for line in running.wait_access(100)}
    assert len(addresses) == 1, "one connection"


def test_requests_follow_each_other(route, there):
    for number in range(300):
        assert route.get(f"/{number}").body.startswith(f"GET /{number} ".encode())


def test_the_head_of_a_response_is_answered_to_head(route):
    answer = route.answer(route.begin("/", method="HEAD"))
    assert answer.status == 200 and answer.body == b"" and answer.complete
    assert int(answer.get("content-length")) > 0


@pytest.mark.parametrize("size", [0, 1, 1024, 16 * 1024 + 1, 70_000, 3_000_000])
def test_content_of_any_size_comes_back(gateway, origin, size):
    content = os.urandom(size)
    there = origin(lambda _: reply(content, "200 OK", "Cache-Control: max-age=60"))
    running = gateway({})
    with http2(running.proxy) as client:
        for _ in range(3):
            answer = client.get(authority=there.authority)
            assert (answer.status, answer.complete) == (200, True)
            assert answer.body == content
    assert len(there.requests) == 1, "the others came from the cache"


def test_content_of_unknown_length_comes_back_with_its_trailers(gateway, origin):
    there = origin(lambda _: (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
        b"5\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 11\r\n\r\n"))
    running = gateway({})
    with http2(running.proxy) as client:
        answer = client.get(authority=there.authority)
    assert answer.body == b"hello world"
    assert answer.trailers == [("x-sum", "11")]
    assert "transfer-encoding" not in answer


def test_no_field_of_a_connection_comes_back(gateway, origin):
    there = origin(lambda _: reply(
        b"x", "200 OK", "Connection: X-Mine, keep-alive", "X-Mine: 1", "Keep-Alive: timeout=5",
        "Proxy-Connection: keep-alive", "X-Kept: 2"))
    running = gateway({})
    with http2(running.proxy) as client:
        answer = client.get(authority=there.authority)
    names = {name for name, _ in answer.headers}
    assert names.isdisjoint({"connection", "keep-alive", "proxy-connection", "x-mine"})
    assert answer.get("x-kept") == "2"
    assert all(name == name.lower() for name in names)


def test_interim_responses_come_back(gateway, origin):
    there = origin(lambda _: (
        b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
        + reply(b"x", "200 OK")))
    running = gateway({})
    with http2(running.proxy) as client:
        answer = client.get(authority=there.authority)
    assert answer.interim[0][0] == 103
    assert ("link", "</a.css>; rel=preload") in answer.interim[0][1]
    assert answer.status == 200


def test_cookies_in_parts_are_one_field(running, route, there):
    answer = route.ask([
        (":method", "GET"), (":scheme", "http"), (":authority", "origin.test"), (":path", "/"),
        ("cookie", "a=1"), ("x-other", "y"), ("cookie", "b=2"), ("cookie", "c=3")])
    assert answer.status == 200
    assert there.requests[0].all("cookie") == ["a=1; b=2; c=3"]


# Bytes as they come


def test_a_connection_may_arrive_byte_by_byte(route):
    route.send_raw(b"")
    stream = route.connection.get_next_available_stream_id()
    route.answers[stream] = Answer()
    route.connection.send_headers(
        stream, [(":method", "POST"), (":scheme", "http"), (":authority", "origin.test"),
                 (":path", "/slow"), ("x-long", "y" * 300)])
    route.connection.send_data(stream, b"some content", end_stream=True)
    for byte in route.connection.data_to_send():
        route.socket.sendall(bytes([byte]))
    answer = route.answer(stream)
    assert answer.body.startswith(b"POST /slow ")
    assert answer.body.endswith(hashlib.sha256(b"some content").hexdigest().encode())


def test_a_preface_may_arrive_byte_by_byte(running, there):
    with socket.create_connection(running.listeners["route"]) as plain:
        client = HTTP2Client(_Slowly(plain))
        assert client.get("/").body.startswith(b"GET / ")


class _Slowly:
    """A socket that sends each byte alone."""

    family = socket.AF_UNIX

    def __init__(self, plain: socket.socket):
        self.plain = plain
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def sendall(self, data: bytes) -> None:
        for byte in data:
            self.plain.sendall(bytes([byte]))

    def __getattr__(self, name: str):
        return getattr(self.plain, name)


def test_a_frame_that_does_not_arrive_in_full_ends_the_connection(gateway, there):
    running = gateway({"timeouts": {"head": "1s"}})
    with http2(running.proxy) as client:
        assert client.get(authority=there.authority).status == 200
        client.send_raw(b"\x00\x00\x10\x01\x05\x00\x00")
        client.until_closed()


# Settings


def test_a_listener_may_refuse_it(gateway, there, leaf, pki):
    running = gateway({"listeners": [
        forward(tls_of(leaf)) | {"http2": "off"},
        {"name": "clear", "address": "127.0.0.1:0", "kind": "forward", "http2": "off"}]})
    with secure_wire(running, pki.root) as wire:
        assert wire.ask(f"GET {there.url()} HTTP/1.1\r\nHost: x\r\n\r\n").status == 200
    context = client_context(pki.root)
    context.set_alpn_protocols(["h2"])
    with pytest.raises(ssl.SSLError, match="no application protocol|NO_APPLICATION_PROTOCOL"):
        secure_wire(running, pki.root, context=context)
    wire = running.wire("clear")
    wire.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert wire.read_to_end().startswith(b"HTTP/1.1 505 ")


def test_no_more_streams_than_allowed_are_open(gateway, origin):
    release = threading.Event()

    def handler(_: Request) -> bytes:
        release.wait(20)
        return reply(b"done", "200 OK", "Cache-Control: no-store")

    there = origin(handler)
    running = gateway({"limits": {"streams": 4}})
    with http2(running.proxy) as client:
        # Before its settings have arrived.
        streams = [client.begin(f"/{number}", authority=there.authority) for number in range(6)]
        refused = [client.answer(stream) for stream in streams[4:]]
        assert [one.reset for one in refused] == [h2.errors.ErrorCodes.REFUSED_STREAM] * 2
        assert client.connection.remote_settings.max_concurrent_streams == 4
        release.set()
        assert all(client.answer(stream).body == b"done" for stream in streams[:4])
        assert client.get(authority=there.authority).body == b"done"
    assert len(there.requests) == 5


def test_a_reload_leaves_streams_and_connections_alone(running, there):
    with http2(running.proxy) as client:
        stream = client.begin("/up", method="PUT", authority=there.authority, end=False)
        client.send(stream, b"first ")
        reload(running)
        client.send(stream, b"second", end=True)
        assert client.answer(stream).body.endswith(
            hashlib.sha256(b"first second").hexdigest().encode())
        assert client.get(authority=there.authority).status == 200
        assert client.goaway is None


# Uploads


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 3_000_000])
@pytest.mark.parametrize("known", [True, False])
def test_an_upload_arrives(route, there, size, known):
    content = os.urandom(size)
    more = {"content_length": str(size)} if known else {}
    stream = route.begin("/up", method="PUT", end=False, **more)
    route.send(stream, content, end=True)
    answer = route.answer(stream)
    assert answer.status == 200
    assert there.requests[0].body == content
    assert answer.body.endswith(hashlib.sha256(content).hexdigest().encode())


def test_trailers_of_a_request_arrive(route, there):
    stream = route.begin("/up", method="POST", end=False, te="trailers", trailer="x-sum")
    route.send(stream, b"content")
    route.trailers(stream, [("x-sum", "7")])
    assert route.answer(stream).status == 200
    assert there.requests[0].body == b"content"
    assert there.requests[0].trailers == [("x-sum", "7")]


def test_an_upload_that_nobody_takes_does_not_hold_up_others(gateway, scripted_origin):
    release = threading.Event()

    def script(connection: OriginConnection) -> None:
        while (head := connection.read_request_head()) is not None:
            if head.target == "/stalled":
                release.wait(20)
                connection.read_exactly(4_000_000)
            connection.send(reply(b"done", "200 OK"))

    there = scripted_origin(script)
    running = gateway({})
    with http2(running.proxy) as client:
        stalled = client.begin("/stalled", method="PUT", authority=there.authority, end=False,
                               content_length="4000000")
        sent = 0
        # As much as the windows allow; then they are not opened any more.
        while client.connection.local_flow_control_window(stalled) > 0 and sent < 4_000_000:
            part = min(client.connection.local_flow_control_window(stalled), 16_384,
                       4_000_000 - sent)
            client.connection.send_data(stalled, bytes(part))
            client.flush()
            sent += part
            client.get("/other", authority=there.authority)
        for _ in range(5):
            assert client.get("/other", authority=there.authority).body == b"done"
        release.set()
        client.send(stalled, bytes(4_000_000 - sent), end=True)
        assert client.answer(stalled).body == b"done"


def test_an_upload_that_is_aborted_never_looks_complete(running, route, there):
    stream = route.begin("/up", method="POST", end=False)
    route.send(stream, b"a part of it")
    until(lambda: b"a part of it" in there.application_bytes, "the part arrives")
    route.reset(stream)
    until(lambda: there.connections[0].finished.is_set(), "the connection is closed")
    assert not there.application_bytes.endswith(b"0\r\n\r\n")
    assert route.get("/after").status == 200


def test_an_early_answer_ends_the_upload(gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        if connection.read_request_head() is not None:
            connection.send(reply(b"no", "403 Forbidden", "Connection: close"))

    there = scripted_origin(script)
    running = gateway({})
    with http2(running.proxy) as client:
        stream = client.begin("/", method="POST", authority=there.authority, end=False)
        answer = client.answers[stream]
        client.until(lambda: answer.complete)
        assert (answer.status, answer.body) == (403, b"no")
        client.until(lambda: answer.reset is not None)
        assert answer.reset == h2.errors.ErrorCodes.NO_ERROR


# Flow control


def test_nothing_exceeds_the_client_s_windows(gateway, origin):
    content = os.urandom(300_000)
    there = origin(lambda _: reply(content, "200 OK", "Cache-Control: max-age=60"))
    running = gateway({})
    with http2(running.proxy, window=1000, reads=False) as client:
        stream = client.begin(authority=there.authority)
        answer = client.answers[stream]
        client.until(lambda: len(answer.body) == 1000)
        # A window is opened bit by bit; the library refuses what exceeds it.
        while not answer.complete:
            before = len(answer.body)
            client.connection.increment_flow_control_window(20_000, stream)
            client.connection.increment_flow_control_window(20_000)
            client.flush()
            client.until(lambda: len(answer.body) > before or answer.complete)
        assert answer.body == content


def test_a_client_that_does_not_read_is_closed_though_no_stream_is_open(gateway, origin):
    """What the system still holds for it is memory as well."""
    there = origin(lambda _: reply(b"x" * 600_000, "200 OK", "Cache-Control: no-store"))
    running = gateway({"timeouts": {"body": "500ms", "idle": "300s"}})
    others = running.metric("pinfold_client_connections_open")
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.connect(running.proxy)
    with http2(sock, window=1 << 24) as client:
        client.connection.increment_flow_control_window(1 << 24)
        client.begin(authority=there.authority)
        until(lambda: len(running.access_lines()) == 1, "the exchange is over")
        until(lambda: running.metric("pinfold_client_connections_open") <= others,
              "the connection is closed")


def test_a_client_that_does_not_read_does_not_stop_other_streams(gateway, origin):
    content = os.urandom(500_000)
    there = origin(lambda seen: reply(
        content if seen.target == "/large" else b"small", "200 OK", "Cache-Control: no-store"))
    running = gateway({})
    with http2(running.proxy, window=10_000, reads=False) as client:
        stalled = [client.begin("/large", authority=there.authority) for _ in range(5)]
        client.until(lambda: all(len(client.answers[s].body) == 10_000 for s in stalled))
        for _ in range(20):
            assert client.get("/small", authority=there.authority).body == b"small"
        client.reads = True
        for stream in stalled:
            client.connection.increment_flow_control_window(1_000_000, stream)
        client.connection.increment_flow_control_window(5_000_000)
        client.flush()
        for stream in stalled:
            assert client.answer(stream).body == content


# Ends


def test_a_response_that_breaks_off_is_reset(gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        if connection.read_request_head() is not None:
            connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")

    there = scripted_origin(script)
    running = gateway({})
    with http2(running.proxy) as client:
        answer = client.get(authority=there.authority)
        assert not answer.complete
        assert answer.reset == h2.errors.ErrorCodes.INTERNAL_ERROR
        assert client.goaway is None


def test_an_idle_connection_is_told_to_go_away(gateway, there):
    running = gateway({"timeouts": {"idle": "1s"}})
    with http2(running.proxy) as client:
        assert client.get(authority=there.authority).status == 200
        client.until_closed()
        assert client.goaway is not None
        assert client.goaway[1] == h2.errors.ErrorCodes.NO_ERROR


def test_a_connection_ends_with_its_streams_when_the_gateway_drains(gateway, origin):
    release = threading.Event()

    def handler(seen: Request) -> bytes:
        if seen.target == "/slow":
            release.wait(20)
        return reply(b"done", "200 OK")

    there = origin(handler)
    running = gateway({})
    with http2(running.proxy) as client:
        slow = client.begin("/slow", authority=there.authority)
        until(lambda: there.requests, "it is asked")
        running.signal(signal.SIGTERM)
        client.until(lambda: client.goaway is not None)
        assert client.goaway[1] == h2.errors.ErrorCodes.NO_ERROR
        release.set()
        assert client.answer(slow).body == b"done"
        client.until_closed()
    assert running.wait_exit() == 0


def test_a_preface_that_is_wrong_is_refused(running):
    wire = running.wire()
    wire.send(b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n")
    assert wire.read_to_end().startswith(b"HTTP/1.1 505 ")


def test_settings_come_before_what_they_decide(gateway, origin):
    """The preface, SETTINGS and a request in one write, whose answer is ready at once."""
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: max-age=60"))
    running = gateway({"workers": 1})
    assert running.get(there.url()).status == 200
    attacker = Attacker(running.proxy, there.authority, begins=False)
    attacker.send(PREFACE + frame(SETTINGS, 0, 0, b"\0\x01\0\0\x10\0") + attacker.request())
    attacker.reads()
    until(lambda: attacker.frames(DATA), "the answer")
    kinds = [kind for kind, flags, _, _ in attacker.frames()]
    acknowledged = [index for index, (kind, flags, _, _) in enumerate(attacker.frames())
                    if kind == SETTINGS and flags & 1]
    assert kinds[0] == SETTINGS and acknowledged[0] < kinds.index(HEADERS)
    attacker.close()


def test_h2load_gets_what_is_stored(gateway, origin):
    there = origin(lambda _: reply(b"x" * 1000, "200 OK", "Cache-Control: max-age=60"))
    running = gateway({"workers": 1, "listeners": [
        {"name": "route", "address": "127.0.0.1:0", "kind": "reverse",
         "upstream": there.url().rstrip("/")}]})
    port = running.listeners["route"][1]
    done = subprocess.run(
        ["h2load", "-n", "2000", "-c", "4", "-m", "50", f"http://127.0.0.1:{port}/"],
        capture_output=True, text=True, timeout=60)
    assert "2000 succeeded, 0 failed, 0 errored" in done.stdout, done.stdout
    assert len(there.requests) <= 4


def test_a_client_that_reads_nothing_is_not_read_from(gateway, origin):
    # A field that no table takes: each answer to HEAD has it whole.
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: max-age=60",
                                   "X-Large: " + "y" * 8000))
    running = gateway({"workers": 1})
    assert running.get(there.url()).status == 200
    before = running.rss_bytes
    attacker = Attacker(running.proxy, there.authority)
    attacker.socket.settimeout(2)
    sent = 0
    with contextlib.suppress(TimeoutError):
        # More than the kernel's buffers take, in both directions.
        while sent < 2_000_000:
            attacker.socket.sendall(b"".join(
                attacker.request(method="HEAD") for _ in range(1000)))
            sent += 1000
    assert sent < 2_000_000, "it stops reading"
    assert running.rss_bytes - before < 16 << 20
    assert running.get(there.url()).status == 200
    attacker.close()


def test_the_access_log_names_the_version(running, route):
    route.get("/logged")
    line = running.wait_access()[0]
    assert line["version"].startswith("HTTP/2"), line
    assert (line["method"], line["status"]) == ("GET", 200)


# Tunnels


def test_a_tunnel_in_a_stream_carries_bytes_both_ways(gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        while data := connection.socket.recv(1 << 16):
            connection.socket.sendall(data.upper())

    there = scripted_origin(script)
    running = gateway({"access": {"connectPorts": "any"}})
    with http2(running.proxy) as client:
        stream = client.head([(":method", "CONNECT"), (":authority", there.authority)], end=False)
        answer = client.answers[stream]
        client.until(lambda: answer.status)
        assert answer.status == 200
        for number in range(20):
            text = b"abc%d" % number
            client.send(stream, text)
            client.until(lambda: answer.body.endswith(text.upper()))
        before = len(answer.body)
        large = os.urandom(100_000).hex().encode()
        for start in range(0, len(large), 10_000):
            client.send(stream, large[start:start + 10_000])
        client.until(lambda: len(answer.body) - before == len(large))
        assert answer.body[before:] == large.upper()
        client.send(stream, b"", end=True)
        client.until(lambda: answer.complete)
    until(lambda: running.metric("pinfold_tunnels_open") == 0, "the tunnel is over")


@pytest.mark.parametrize("ends", [False, True])
def test_what_a_client_sends_before_the_tunnel_is_open_arrives_in_order(
    gateway, scripted_origin, ends
):
    received = []

    def script(connection: OriginConnection) -> None:
        while data := connection.socket.recv(1 << 16):
            received.append(data)
        received.append(None)

    there = scripted_origin(script)
    running = gateway({"workers": 1})
    with http2(running.proxy) as client:
        for _ in range(20):
            received.clear()
            stream = client.head(
                [(":method", "CONNECT"), (":authority", there.authority)], end=False)
            for part in (b"A" * 1000, b"B" * 1000, b"C" * 1000):
                client.connection.send_data(stream, part)
            if ends:
                client.connection.end_stream(stream)
            client.flush()
            until(lambda: sum(len(data) for data in received if data) == 3000, "all arrives")
            assert b"".join(data for data in received if data) == (
                b"A" * 1000 + b"B" * 1000 + b"C" * 1000)
            if ends:
                until(lambda: received[-1] is None, "the end arrives")
                assert client.answer(stream).complete
            else:
                client.reset(stream)


def test_a_connect_that_ends_at_once_is_an_empty_tunnel(gateway, scripted_origin):
    ends = []

    def script(connection: OriginConnection) -> None:
        connection.socket.sendall(b"hello")
        ends.append(connection.socket.recv(1))

    there = scripted_origin(script)
    running = gateway({})
    with http2(running.proxy) as client:
        answer = client.ask([(":method", "CONNECT"), (":authority", there.authority)])
        assert (answer.status, answer.body, answer.complete) == (200, b"hello", True)
    assert ends == [b""]


def test_a_client_s_tunnels_in_streams_count_as_its_connections(gateway, scripted_origin):
    there = scripted_origin(lambda connection: connection.socket.recv(1))
    running = gateway({"limits": {"perClient": {"connections": 4}}, "workers": 1})
    with http2(running.proxy) as client:
        streams = [client.head([(":method", "CONNECT"), (":authority", there.authority)],
                               end=False) for _ in range(10)]
        client.until(lambda: all(client.answers[stream].status for stream in streams))
        statuses = [client.answers[stream].status for stream in streams]
        assert statuses.count(200) <= 4 and statuses.count(503) >= 6, statuses
        for stream, status in zip(streams, statuses):
            if status == 200:
                client.reset(stream)
        until(lambda: running.metric("pinfold_tunnels_open") == 0, "they are over")
        again = client.head([(":method", "CONNECT"), (":authority", there.authority)], end=False)
        client.until(lambda: client.answers[again].status == 200)


@pytest.mark.parametrize("way", ["intercepted", "inspected", "relayed"])
def test_tls_in_a_tunnel_in_a_stream(gateway, origin, pki, way):
    """Pins are enforced, and tunnels answered, as on connections of HTTP/1."""
    leaf = pki.intermediate.issue("inside.test", "127.0.0.1")
    there = origin(lambda seen: reply(b"inside " + seen.target.encode()),
                   tls=leaf.server_context())
    entry = {"match": ["inside.test"], "tls": {"roots": [str(pki.root.pem_file)]}}
    config: dict = {"workers": 1, "hosts": [entry], "timeouts": {"idle": "1s"}}
    trusted = client_context(pki.root)
    if way == "intercepted":
        entry["intercept"] = True
        config["interception"] = pki.interception.section
        trusted = ssl.create_default_context(cafile=str(pki.interception.file))
    elif way == "inspected":
        entry |= {"tunnel": "inspect", "tls13Tunnel": "probe"}
    running = gateway(config)
    with http2(running.proxy) as client:
        for number in range(3):
            inside = TLSInStream(client, f"inside.test:{there.port}", trusted,
                                 "inside.test")
            text = inside.ask(f"GET /{number} HTTP/1.1\r\nHost: inside.test:{there.port}\r\n"
                              "Connection: close\r\n\r\n".encode())
            assert text.endswith(b"inside /%d" % number), text
        # Nothing is left of the tunnels: the connection is idle, and ends.
        client.until_closed()
    until(lambda: running.metric("pinfold_client_connections_open") <= 1, "none is left")


def test_the_server_of_a_tunnel_notices_that_its_stream_was_reset(gateway, scripted_origin):
    ends = []

    def script(connection: OriginConnection) -> None:
        connection.socket.sendall(b"hello")
        try:
            ends.append(connection.socket.recv(1))
        except ConnectionResetError as error:
            ends.append(error)

    there = scripted_origin(script)
    running = gateway({"access": {"connectPorts": "any"}})
    with http2(running.proxy) as client:
        stream = client.head([(":method", "CONNECT"), (":authority", there.authority)], end=False)
        answer = client.answers[stream]
        client.until(lambda: answer.body == b"hello")
        client.reset(stream)
        until(lambda: ends, "the server notices")
        assert isinstance(ends[0], ConnectionResetError)
        again = client.head([(":method", "CONNECT"), (":authority", there.authority)], end=False)
        client.until(lambda: client.answers[again].body == b"hello")
    until(lambda: running.metric("pinfold_tunnels_open") == 0, "the tunnel is over")


def test_a_stream_is_reset_if_its_tunnel_s_server_resets(gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        connection.socket.sendall(b"hello")
        connection.socket.recv(1)
        connection.reset()

    there = scripted_origin(script)
    running = gateway({"access": {"connectPorts": "any"}})
    with http2(running.proxy) as client:
        stream = client.head([(":method", "CONNECT"), (":authority", there.authority)], end=False)
        answer = client.answers[stream]
        client.until(lambda: answer.body == b"hello")
        client.send(stream, b"x")
        client.until(lambda: answer.complete or answer.reset is not None)
        assert answer.reset == h2.errors.ErrorCodes.CONNECT_ERROR


def test_a_tunnel_that_is_refused_leaves_the_connection_open(gateway):
    running = gateway({"access": {"connectPorts": [443]}})
    with http2(running.proxy) as client:
        for _ in range(2):
            refused = client.ask([(":method", "CONNECT"), (":authority", "origin.test:1")])
            assert refused.status == 403
        assert client.goaway is None
