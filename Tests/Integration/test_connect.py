"""CONNECT: a tunnel to an allowed port, with backpressure, half-close and an idle time-out."""

import contextlib
import hashlib
import socket
import threading

import pytest
from support.origin import OriginConnection, reply
from support.wait import until
from support.wire import Wire, request


def echo(connection: OriginConnection) -> None:
    while connection.buffer or connection._more():
        data, connection.buffer = connection.buffer, b""
        connection.send(data)


def test_bytes_pass_both_ways_unchanged(shared_gateway, scripted_origin):
    there = scripted_origin(echo)
    wire, response = shared_gateway.connect(there.authority)
    with wire:
        assert response.status == 200
        assert "content-length" not in response
        assert "transfer-encoding" not in response
        for size in (1, 17, 4096, 1_000_003):
            data = (hashlib.sha256(b"%d" % size).digest() * (size // 32 + 1))[:size]
            sender = threading.Thread(target=wire.send, args=(data,))
            sender.start()
            assert wire.read_exactly(size) == data
            sender.join()


def test_bytes_sent_with_the_request_reach_the_origin(shared_gateway, scripted_origin):
    """A client may send its first bytes without waiting for the 200."""
    there = scripted_origin(echo)
    with shared_gateway.wire() as wire:
        wire.send(f"CONNECT {there.authority} HTTP/1.1\r\nHost: {there.authority}\r\n\r\nearly")
        assert wire.read_head().status == 200
        assert wire.read_exactly(5) == b"early"


def test_bytes_of_an_origin_that_sends_first_are_relayed(shared_gateway, scripted_origin):
    there = scripted_origin(lambda connection: (connection.send("220 ready\r\n"), echo(connection)))
    wire, response = shared_gateway.connect(there.authority)
    with wire:
        assert response.status == 200
        assert wire.read_until(b"\r\n") == b"220 ready\r\n"


def test_200_comes_only_after_the_upstream_is_connected(shared_gateway):
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        wire, response = shared_gateway.connect("127.0.0.1:%d" % bound.getsockname()[1])
    with wire:
        assert response.status == 502
        assert response.proxy_status["error"] == "connection_refused"


@pytest.mark.parametrize("why", ["not there", "refused by its port", "refused by its address"])
@pytest.mark.parametrize("when", ["with the head", "after the answer"])
def test_what_follows_a_connect_that_failed_is_never_a_request(gateway, origin, why, when):
    """It was meant for the tunnel: a client may send it before it knows that there is none."""
    there = origin(lambda _: reply(b"reached"))
    running = gateway({"access": {"connectPorts": [443]} if why == "refused by its port" else {}})
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        host = "169.254.169.254" if why == "refused by its address" else "127.0.0.1"
        connect = f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
        optimistic = request(there.url("/smuggled"))
        with running.wire() as wire:
            wire.send(connect + (optimistic if when == "with the head" else b""))
            response = wire.read_final()
            assert response.status == (502 if why == "not there" else 403)
            assert response.get("connection").lower() == "close"
            if when == "after the answer":
                # The reply is read, and still nothing is taken for a request.
                with contextlib.suppress(OSError):
                    wire.send(optimistic)
            assert wire.ended()
    assert running.get(there.url("/afterwards")).body == b"reached"
    assert [one.target for one in there.requests] == ["/afterwards"]


def test_a_connect_that_cannot_be_made_in_time_is_a_504(gateway):
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        fillers = [socket.socket() for _ in range(8)]
        try:
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(address)
            running = gateway({"timeouts": {"connect": "300ms"}})
            wire, response = running.connect("127.0.0.1:%d" % address[1])
            wire.close()
        finally:
            for filler in fillers:
                filler.close()
    assert response.status == 504


@pytest.mark.parametrize(("ports", "allowed"), [([443], False), ("any", True), ([], False)])
def test_only_allowed_ports_are_tunnelled_to(gateway, scripted_origin, ports, allowed):
    there = scripted_origin(echo)
    running = gateway({"access": {"connectPorts": ports}})
    wire, response = running.connect(there.authority)
    with wire:
        assert response.status == (200 if allowed else 403)
    if not allowed:
        assert there.accepted == 0
        assert response.proxy_status["error"] == "http_request_denied"


@pytest.mark.parametrize(("port", "words"), [
    (80, ["access.connectPorts", "[443, 80]", "some clients use CONNECT for http:// URLs, too"]),
    (8443, ["access.connectPorts", "[443, 8443]"])])
def test_the_reply_for_a_refused_port_names_the_key_to_set(gateway, port, words):
    running = gateway({"access": {"connectPorts": [443]}})
    wire, response = running.connect(f"127.0.0.1:{port}")
    wire.close()
    assert response.status == 403
    for word in words:
        assert word in response.body.decode()


def test_why_a_tunnel_is_not_made_stands_in_the_status_line(gateway):
    """Clients show of a refused or failed CONNECT neither body nor fields."""
    running = gateway({"access": {"destinations": {"allow": ["127.0.0.1"]}}})
    for authority, reason in [("10.0.0.1:443", "destination-refused"),
                              ("127.0.0.1:1", "connection-refused")]:
        wire, response = running.connect(authority)
        wire.close()
        assert response.reason == reason
    response = running.get("http://10.0.0.1/")
    assert (response.status, response.reason) == (403, "Forbidden"), "only there"


def test_a_listed_port_is_tunnelled_to(gateway, scripted_origin):
    there = scripted_origin(echo)
    running = gateway({"access": {"connectPorts": [443, there.port]}})
    wire, response = running.connect(there.authority)
    with wire:
        assert response.status == 200


def test_a_host_may_refuse_tunnels(gateway, scripted_origin):
    there = scripted_origin(echo)
    running = gateway({"hosts": [{"match": ["closed.test"], "tunnel": "refuse"}]})
    wire, response = running.connect(f"closed.test:{there.port}")
    wire.close()
    assert response.status == 403
    wire, response = running.connect(f"open.test:{there.port}")
    wire.close()
    assert response.status == 200
    until(lambda: there.accepted == 1, "the origin has the one connection")


def test_half_close_by_the_client_leaves_the_other_direction(shared_gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        everything = connection.read_to_end()
        connection.send(hashlib.sha256(everything).hexdigest())

    there = scripted_origin(script)
    wire, _ = shared_gateway.connect(there.authority)
    with wire:
        wire.send(b"x" * 500_000)
        wire.half_close()
        assert wire.read_to_end() == hashlib.sha256(b"x" * 500_000).hexdigest().encode()


def test_half_close_by_the_origin_leaves_the_other_direction(shared_gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        connection.send("bye")
        connection.half_close()
        connection.read_to_end()

    there = scripted_origin(script)
    wire, _ = shared_gateway.connect(there.authority)
    with wire:
        assert wire.read_to_end() == b"bye"
        wire.send(b"still here")
        wire.half_close()
        there.wait_finished()
    assert there.connections[0].received == b"still here"


def test_a_tunnel_ends_with_either_side(shared_gateway, scripted_origin):
    there = scripted_origin(lambda connection: connection.read_exactly(1))
    wire, _ = shared_gateway.connect(there.authority)
    with wire:
        wire.send(b"x")
        there.wait_finished()
        assert wire.ended()
    other = scripted_origin(lambda connection: connection.read_to_end())
    wire, _ = shared_gateway.connect(other.authority)
    wire.close()
    other.wait_finished()


def test_an_idle_tunnel_is_closed(gateway, scripted_origin):
    there = scripted_origin(lambda connection: connection.read_to_end())
    running = gateway({"timeouts": {"tunnel": "300ms"}})
    wire, _ = running.connect(there.authority)
    with wire:
        assert wire.ended()
    there.wait_finished()


def test_traffic_in_one_direction_keeps_a_tunnel_open(gateway, scripted_origin):
    """Longer than the idle time-out in all, never idle for that long."""
    got: list[int] = []

    def script(connection: OriginConnection) -> None:
        while connection._more():
            got.append(len(connection.received))

    there = scripted_origin(script)
    running = gateway({"timeouts": {"tunnel": "500ms"}})
    wire, _ = running.connect(there.authority)
    with wire:
        for count in range(1, 21):
            wire.send(b".")
            threading.Event().wait(0.05)  # the pace is the point of this test
            until(lambda: got and got[-1] >= count, "the byte arrives")
    assert got[-1] == 20


def test_a_slow_reader_holds_the_sender_back(gateway, scripted_origin):
    """Backpressure: what nobody reads is not piled up in the gateway."""
    sent = 0
    stop = threading.Event()

    def script(connection: OriginConnection) -> None:
        nonlocal sent
        connection.socket.settimeout(0.2)
        while not stop.is_set():
            try:
                sent += connection.socket.send(b"x" * 65536)
            except TimeoutError:
                continue

    there = scripted_origin(script)
    running = gateway()
    before = running.rss_bytes
    wire = Wire(running.proxy)
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    with wire:
        wire.send(f"CONNECT {there.authority} HTTP/1.1\r\nHost: {there.authority}\r\n\r\n")
        assert wire.read_head().status == 200
        last = -1

        def stalled() -> bool:
            nonlocal last
            previous, last = last, sent
            threading.Event().wait(0.3)  # that nothing moves shows in time only
            return last == previous

        until(stalled, "the sender is held back", 20)
        stop.set()
        assert sent < 64 << 20, "the kernel's socket buffers, and little more"
        assert running.rss_bytes - before < 16 << 20


def test_many_tunnels_at_once_keep_their_bytes_apart(shared_gateway, scripted_origin):
    there = scripted_origin(echo)
    tunnels = [shared_gateway.connect(there.authority)[0] for _ in range(100)]
    try:
        for number, wire in enumerate(tunnels):
            wire.send(b"%08d" % number)
        for number, wire in enumerate(tunnels):
            assert wire.read_exactly(8) == b"%08d" % number
    finally:
        for wire in tunnels:
            wire.close()


def test_a_tunnel_is_made_by_name_and_to_ipv6(shared_gateway, scripted_origin):
    there = scripted_origin(echo)
    wire, response = shared_gateway.connect(f"tunnel.test:{there.port}")
    wire.close()
    assert response.status == 200
    six = scripted_origin(echo, host="::1")
    wire, response = shared_gateway.connect(six.authority)
    with wire:
        assert response.status == 200
        wire.send(b"six")
        assert wire.read_exactly(3) == b"six"


def test_a_tunnel_is_in_the_access_log_with_its_bytes(gateway, scripted_origin):
    there = scripted_origin(echo)
    running = gateway()
    wire, _ = running.connect(there.authority)
    with wire:
        wire.send(b"12345")
        wire.read_exactly(5)
    (line,) = running.wait_access(1)
    assert line["method"] == "CONNECT"
    assert line["status"] == 200
