"""What goes wrong on the origin's side: 502 or 504 with a reason, and no smuggling through it."""

import contextlib
import ctypes
import signal
import socket
import ssl
import struct
import threading
from pathlib import Path

import pytest
from support.gateway import Gateway
from support.origin import OriginConnection, reply, scripted
from support.wait import until
from support.wire import Closed, Wire, request, until_sent

# name → the origin's bytes. Each is ambiguous or malformed: 502, and nothing of it is forwarded.
BAD_RESPONSES = {
    "no HTTP at all": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "an unknown version": b"HTTP/2.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
    "HTTP/0.9": b"<html>hello</html>",
    "a status of two digits": b"HTTP/1.1 20 OK\r\nContent-Length: 1\r\n\r\nx",
    "a status of four digits": b"HTTP/1.1 2000 OK\r\nContent-Length: 1\r\n\r\nx",
    "a status below 100": b"HTTP/1.1 099 OK\r\nContent-Length: 1\r\n\r\nx",
    "content-length with transfer-encoding":
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "content-lengths that differ":
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
    "a malformed content-length": b"HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\n12345",
    "a negative content-length": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n12345",
    "an unknown transfer coding":
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: rot13, chunked\r\n\r\n0\r\n\r\n",
    "chunked that is not final": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nxx",
    "chunked twice":
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"0\r\n\r\n",
    "chunked in HTTP/1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "bare CR in a value": b"HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 1\r\n\r\nx",
    "bare LF": b"HTTP/1.1 200 OK\r\nX: a\nContent-Length: 1\r\n\r\nx",
    "obs-fold in a length": b"HTTP/1.1 200 OK\r\nContent-Length:\r\n 1\r\n\r\nx",
    "space before the colon": b"HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\nx",
    "NUL in a value": b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 1\r\n\r\nx",
    "a head beyond the limit": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 40_000 + b"\r\n\r\n",
    "more fields than the limit":
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: a\r\n" % n for n in range(200)) + b"\r\n",
    "nothing": b"",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "an interim response and nothing more": b"HTTP/1.1 100 Continue\r\n\r\n",
}


@pytest.mark.parametrize("name", BAD_RESPONSES)
def test_a_bad_response_is_a_502(shared_gateway, scripted_origin, name):
    there = scripted_origin(scripted(BAD_RESPONSES[name]))
    with shared_gateway.wire() as wire:
        wire.send(request(there.url("/"), Accept="application/json"))
        response = wire.read_final()
        assert response.status == 502, response
        assert response.json()["reason"]
        assert response.proxy_status["error"]


def test_a_framing_field_in_disguise_is_dropped_from_a_response(shared_gateway, scripted_origin):
    """It means nothing to HTTP, and the framing to a reader that takes `_` for `-`."""
    there = scripted_origin(scripted(
        b"HTTP/1.1 200 OK\r\nTransfer_Encoding: chunked\r\nX-A: 1\r\nCONTENT_LENGTH: 1\r\n"
        b"Content-Length: 2\r\n\r\nok"))
    response = shared_gateway.get(there.url("/"))
    assert (response.status, response.body, response.get("x-a")) == (200, b"ok", "1")
    assert not [name for name, _ in response.headers if "_" in name]


# Well-formed heads whose content is damaged from its first byte on, in the same segment.
BAD_BEGINNINGS = {
    "a chunk size that is none": b"zz\r\n",
    "a chunk extension beyond the limit": b"5;" + b"a" * 5000 + b"\r\nhello\r\n",
    "a chunk of 2^64 bytes": b"10000000000000000\r\n",
}


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("name", BAD_BEGINNINGS)
def test_a_head_that_was_not_sent_yet_is_taken_back(gateway, scripted_origin, name, method):
    """The client has seen nothing: it gets the reason, and the log does not have 200."""
    there = scripted_origin(scripted(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + BAD_BEGINNINGS[name]))
    running = gateway()
    with running.wire() as wire:
        response = wire.ask(request(there.url("/"), method=method, Accept="application/json"))
        assert response.status == 502
        assert response.json()["reason"].startswith("upstream-")
    assert running.wait_access()[0]["status"] == 502


def test_endless_interim_responses_are_bounded(shared_gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        connection.read_request()
        while True:
            connection.send("HTTP/1.1 102 Processing\r\n\r\n" * 100)

    there = scripted_origin(script)
    with shared_gateway.wire() as wire:
        wire.send(request(there.url("/")))
        assert wire.read_final().status == 502
    there.wait_finished()


TRUNCATED = {
    "a length": b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
    "chunks, in a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\nonly",
    "chunks, between chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nonly\r\n",
    "chunks, in the trailers":
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nonly\r\n0\r\nX: y\r\n",
}


@pytest.mark.parametrize("name", TRUNCATED)
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_a_truncated_body_is_not_passed_off_as_whole(shared_gateway, scripted_origin, name, reset):
    there = scripted_origin(scripted(TRUNCATED[name], reset=reset))
    with shared_gateway.wire() as wire:
        wire.send(request(there.url("/")))
        try:
            response = wire.read()
        except Closed:
            return
        # With a reset the head may be lost as well; then it is an error of its own.
        assert response.status == 502, response


BAD_CHUNKS = {
    "a size that is no number": b"zz\r\nabc\r\n0\r\n\r\n",
    "a space after the size": b"3 \r\nabc\r\n0\r\n\r\n",
    "a size that overflows": b"fffffffffffffffff\r\nabc\r\n0\r\n\r\n",
    "more data than its size": b"3\r\nabcd\r\n0\r\n\r\n",
    "bare LF": b"3\nabc\n0\n\n",
    "a malformed trailer": b"3\r\nabc\r\n0\r\nX : y\r\n\r\n",
}


@pytest.mark.parametrize("name", BAD_CHUNKS)
def test_malformed_chunks_end_the_response(shared_gateway, scripted_origin, name):
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    there = scripted_origin(scripted(head + BAD_CHUNKS[name]))
    with shared_gateway.wire() as wire:
        wire.send(request(there.url("/")))
        try:
            response = wire.read()
        except Closed:
            return
        assert response.status == 502, response


def test_bytes_after_a_response_are_not_the_next_one(shared_gateway, scripted_origin):
    """A second response that nobody asked for must not answer the next request (smuggling)."""
    evil = reply(b"first") + reply(b"POISON")

    def script(connection: OriginConnection) -> None:
        seen = connection.read_request()
        if connection.number == 0:
            connection.send(evil)
            connection.read_to_end()
        elif seen is not None:
            connection.send(reply(b"second"))
            connection.read_to_end()

    there = scripted_origin(script)
    with shared_gateway.wire() as wire:
        assert wire.ask(request(there.url("/1"))).body == b"first"
        assert wire.ask(request(there.url("/2"))).body == b"second"


def test_a_body_on_a_head_response_is_not_the_next_response(shared_gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        seen = connection.read_request()
        if seen is None:
            return
        if seen.method == "HEAD":
            connection.send(reply(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON"))
            connection.read_to_end()
        else:
            connection.send(reply(b"clean"))
            connection.read_to_end()

    there = scripted_origin(script)
    with shared_gateway.wire() as wire:
        assert wire.ask(request(there.url("/"), method="HEAD")).status == 200
        assert wire.ask(request(there.url("/"))).body == b"clean"


def test_an_idle_upstream_that_sends_something_is_dropped(shared_gateway, scripted_origin):
    """Bytes on a pooled connection before any request belong to no response."""
    spoken = threading.Event()
    release = threading.Event()

    def script(connection: OriginConnection) -> None:
        if connection.read_request() is None:
            return
        connection.send(reply(f"{connection.number}".encode()))
        if connection.number == 0:
            release.wait(10)
            connection.send(reply(b"POISON"))
            spoken.set()
        connection.read_to_end()

    there = scripted_origin(script)
    with shared_gateway.wire() as wire:
        assert wire.ask(request(there.url("/"))).body == b"0"
        release.set()
        assert spoken.wait(10)
        until(lambda: there.connections[0].finished.is_set(), "the gateway drops the connection")
        assert wire.ask(request(there.url("/"))).body == b"1"


# Connecting


def test_a_refused_connection_is_a_502(shared_gateway):
    with socket.socket() as bound:  # bound but not listening: nobody else gets the port
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        response = shared_gateway.get(f"http://127.0.0.1:{port}/", Accept="application/json")
    assert response.status == 502
    assert response.proxy_status["error"] == "connection_refused"


def test_a_connection_that_does_not_come_about_is_a_504(gateway):
    """A listening socket whose backlog is full drops every further SYN."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        fillers = []
        try:
            for _ in range(8):
                filler = socket.socket()
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.1", port))
                fillers.append(filler)
            running = gateway({"timeouts": {"connect": "300ms"}})
            response = running.get(f"http://127.0.0.1:{port}/")
        finally:
            for filler in fillers:
                filler.close()
    assert response.status == 504
    assert response.proxy_status["error"] == "connection_timeout"


def test_a_silent_origin_is_a_504(gateway, scripted_origin):
    there = scripted_origin(lambda connection: connection.read_to_end())
    running = gateway({"timeouts": {"firstByte": "300ms"}})
    response = running.get(there.url("/"))
    assert response.status == 504
    assert response.proxy_status["error"] == "http_response_timeout"
    there.wait_finished()


def test_a_body_that_stalls_is_cut_off(gateway, scripted_origin):
    there = scripted_origin(lambda connection: (
        connection.read_request(),
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"),
        connection.read_to_end()))
    running = gateway({"timeouts": {"body": "300ms"}})
    with running.wire() as wire:
        wire.send(request(there.url("/")))
        with pytest.raises(Closed):
            wire.read()
    there.wait_finished()


def test_a_client_whose_head_stalls_gets_408(gateway):
    running = gateway({"timeouts": {"head": "300ms"}})
    with running.wire() as wire:
        wire.send("GET http://never.test/ HTTP/1.1\r\nHo")
        data = wire.read_to_end()
    assert data == b"" or data.startswith(b"HTTP/1.1 408 ")


def test_an_idle_client_is_closed_without_a_word(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway({"timeouts": {"idle": "300ms"}})
    with running.wire() as wire:
        assert wire.ask(request(there.url("/"))).body == b"x"
        assert wire.ended()


def test_an_idle_upstream_connection_is_closed(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway({"timeouts": {"idle": "300ms"}})
    assert running.get(there.url("/")).body == b"x"
    there.wait_finished()


# Retry (RFC 9112 §9.3.1): once, on a reused connection, only what is idempotent


def retries(running) -> dict[str, int]:
    """Requests sent another time so far, by the reason."""
    reasons = ["connection_died", "superseded", "validation_failed", "stored_body_unreadable"]
    counts = {reason: int(running.metric("pinfold_upstream_retries_total", reason=reason))
              for reason in reasons}
    return {reason: count for reason, count in counts.items() if count}


def dies_when_reused(seen: list[str]):
    """Answers the first request of its first connection, then closes upon the second one."""
    def script(connection: OriginConnection) -> None:
        while (asked := connection.read_request()) is not None:
            seen.append(f"{connection.number} {asked.method} {asked.body.decode()}".strip())
            if connection.number == 0 and seen[-1] != seen[0]:
                return
            if connection.number == 0 and len(seen) > 1:
                return
            connection.send(reply(f"{connection.number}".encode()))

    return script


@pytest.mark.parametrize(("method", "body"), [
    ("GET", b""), ("HEAD", b""), ("PUT", b"small"), ("DELETE", b""), ("OPTIONS", b"")])
def test_an_idempotent_request_is_retried_once(gateway, scripted_origin, method, body):
    seen: list[str] = []
    there = scripted_origin(dies_when_reused(seen))
    running = gateway({"workers": 1, "cache": {"enabled": False}})
    with running.wire() as wire:
        assert wire.ask(request(there.url("/"))).body == b"0"
        response = wire.ask(request(there.url("/"), method=method, body=body))
        assert response.status == 200
    assert seen == ["0 GET", f"0 {method} {body.decode()}".strip(),
                    f"1 {method} {body.decode()}".strip()]
    assert retries(running) == {"connection_died": 1}


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_a_request_that_is_not_idempotent_is_not_retried(gateway, scripted_origin, method):
    seen: list[str] = []
    there = scripted_origin(dies_when_reused(seen))
    running = gateway({"workers": 1})
    with running.wire() as wire:
        assert wire.ask(request(there.url("/"))).body == b"0"
        assert wire.ask(request(there.url("/"), method=method, body=b"once")).status == 502
    assert seen == ["0 GET", f"0 {method} once"]
    assert retries(running) == {}


def test_a_fresh_connection_that_dies_is_not_retried(shared_gateway, scripted_origin):
    there = scripted_origin(lambda connection: connection.read_request())
    assert shared_gateway.get(there.url("/")).status == 502
    assert there.accepted == 1


def test_a_request_is_retried_only_once(gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        if connection.read_request() and connection.number == 0:
            connection.send(reply(b"0"))
            connection.read_request()

    there = scripted_origin(script)
    running = gateway({"workers": 1, "cache": {"enabled": False}})
    with running.wire() as wire:
        assert wire.ask(request(there.url("/"))).body == b"0"
        assert wire.ask(request(there.url("/"))).status == 502
    assert there.accepted == 2


def test_a_response_that_has_begun_is_never_retried(gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        while connection.read_request() is not None:
            if connection.number == 0 and len(connection.received.split(b"GET")) > 2:
                connection.send("HTTP/1.1 2")
                return
            connection.send(reply(b"ok"))

    there = scripted_origin(script)
    running = gateway({"workers": 1, "cache": {"enabled": False}})
    with running.wire() as wire:
        assert wire.ask(request(there.url("/"))).body == b"ok"
        assert wire.ask(request(there.url("/"))).status == 502
    assert there.accepted == 1


# Pool and its limits


def test_the_pool_is_bounded_per_host_and_the_rest_waits(gateway, scripted_origin):
    release = threading.Event()
    arrived = threading.Semaphore(0)

    def script(connection: OriginConnection) -> None:
        while connection.read_request() is not None:
            arrived.release()
            release.wait(20)
            connection.send(reply(b"done"))

    there = scripted_origin(script)
    running = gateway({"workers": 1, "limits": {"upstreamPerHost": 2, "pending": 2},
                       "cache": {"enabled": False}})
    wires = [running.wire() for _ in range(4)]
    try:
        for wire in wires:
            wire.send(request(there.url("/")))
        assert arrived.acquire(timeout=10) and arrived.acquire(timeout=10)
        # The two that wait fill the queue; one more is refused at once.
        until(lambda: running.metric("pinfold_upstream_pool_waiting") == 2, "the queue is full")
        def refused():
            response = running.get(there.url("/"))
            return response if response.status != 200 else None
        response = until(refused, "the queue is full")
        assert response.status == 503
        assert there.accepted == 2
        release.set()
        assert [wire.read().body for wire in wires] == [b"done"] * 4
        assert there.accepted == 2
    finally:
        release.set()
        for wire in wires:
            wire.close()


def test_error_replies_do_not_end_the_connection_when_nothing_is_lost(shared_gateway, origin):
    """An upstream fault does not affect the client's connection."""
    there = origin(lambda _: reply(b"x"))
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        gone = f"http://127.0.0.1:{bound.getsockname()[1]}/"
        with shared_gateway.wire() as wire:
            assert wire.ask(request(gone)).status == 502
            assert wire.ask(request(there.url("/"))).body == b"x"


def test_every_reply_has_cache_status(gateway):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        running = gateway()
        failed = running.get(f"http://127.0.0.1:{port}/")
        assert failed.status == 502
        assert failed.cache_status == {"detail": "uri-miss"}
    refused = running.ask("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
    assert refused.status == 400
    assert refused.cache_status["detail"] == "bypass"


# A server that speaks before it was asked

UNASKED = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npoisonous"


# <linux/filter.h>: BPF_RET | BPF_K, with nothing of the packet accepted.
DROP_ALL = struct.pack("HBBI", 6, 0, 0, 0)
SO_ATTACH_FILTER, SO_DETACH_FILTER = 26, 27


def drop_all(listener: socket.socket) -> None:
    """The listener hears nothing: whoever connects to it sends SYN after SYN."""
    program = ctypes.create_string_buffer(DROP_ALL)
    listener.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER,
                        struct.pack("HP", 1, ctypes.addressof(program)))


def is_connecting_to(port: int) -> bool:
    """Whether some socket has sent a SYN to this port of 127.0.0.1, and waits."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    return any(row[2] == f"0100007F:{port:04X}" and row[3] == "02" for row in rows)


def speaks_first(running: Gateway, wire: Wire) -> socket.socket:
    """Asks for something over `wire`, and has the server speak on the gateway's connection before
    the gateway has seen that there is one. Returns the server's side.

    The gateway's first SYN is dropped. Then the gateway stands still, while its kernel sends the
    next one and takes in what the server sends."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        drop_all(listener)
        port = listener.getsockname()[1]
        wire.send(request(f"http://127.0.0.1:{port}/"))
        until(lambda: is_connecting_to(port), "the gateway connects")
        running.pause()
        try:
            listener.setsockopt(socket.SOL_SOCKET, SO_DETACH_FILTER, 0)
            listener.settimeout(20)
            made, _ = listener.accept()
            made.sendall(UNASKED)
            until_sent(made)
            return made
        finally:
            running.signal(signal.SIGCONT)


def test_unsolicited_data_on_a_new_connection_is_no_answer(gateway):
    running = gateway({"workers": 1})
    with running.wire() as wire, speaks_first(running, wire) as made:
        response = wire.read()
        assert response.status == 502
        assert b"upstream-spoke-unasked" in response.body
        made.settimeout(20)
        with contextlib.suppress(ConnectionResetError):
            assert made.recv(100) == b"", "nothing was sent to it"


class Unasked:
    """A TLS 1.2 server whose handshake ends in the segment that its unasked bytes are in."""

    def __init__(self, context: ssl.SSLContext):
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        self.context = context
        self.received = b""

    def __call__(self, connection: OriginConnection) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self.context.wrap_bio(incoming, outgoing, server_side=True)
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                connection.socket.sendall(outgoing.read())
                incoming.write(connection.socket.recv(1 << 16))
        tls.write(UNASKED)
        connection.socket.sendall(outgoing.read())
        while data := connection.socket.recv(1 << 16):
            incoming.write(data)
            with contextlib.suppress(ssl.SSLError):
                self.received += tls.read()


def test_unsolicited_data_inside_tls_is_no_answer(gateway, scripted_origin, pki):
    unasked = Unasked(pki.root.issue("kept.test").server_context())
    there = scripted_origin(unasked)
    running = gateway({"cache": {"enabled": False}, "hosts": [
        {"match": [f"kept.test:{there.port}"], "upgrade": "https",
         "tls": {"roots": [str(pki.root.pem_file)]}}]})
    response = running.get(f"http://kept.test:{there.port}/")
    assert response.status == 502
    assert b"upstream-spoke-unasked" in response.body
    there.wait_finished()
    assert unasked.received == b""
