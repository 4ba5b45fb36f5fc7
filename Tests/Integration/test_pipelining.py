"""Pipelined requests: what belongs to one is never taken for another's."""

from __future__ import annotations

import threading

import pytest
from support.origin import OriginConnection, reply
from support.wait import until
from support.wire import request
from test_upstream_faults import retries
from test_reload import HOST, reload


def test_a_body_sent_again_after_a_reload_is_the_request_s_own(
    gateway, scripted_origin, pki
):
    """The retry's connection is still being made when the configuration changes: the exchange
    begins anew, when its body has long been taken out of the buffer that the next request is in."""
    context = pki.root.issue(HOST).server_context()
    stalled, release = threading.Event(), threading.Event()
    bodies = []

    def script(connection: OriginConnection) -> None:
        if connection.number == 1:
            # The retry's connection: its handshake does not end before the reload.
            stalled.set()
            release.wait(30)
            return
        connection.socket = context.wrap_socket(connection.socket, server_side=True)
        try:
            while (received := connection.read_request()) is not None:
                if received.method == "PUT":
                    bodies.append(received.body)
                    if connection.number == 0:
                        return  # no answer on a connection used before: it is sent again
                connection.send(reply(b"ok"))
        finally:
            connection.socket.close()

    there = scripted_origin(script)
    running = gateway({
        "workers": 1, "cache": {"enabled": False},
        "hosts": [{"match": [f"{HOST}:{there.port}"], "upgrade": "https",
                   "tls": {"roots": [str(pki.root.pem_file)]}}]})
    url = f"http://{HOST}:{there.port}/"
    with running.wire() as wire:
        assert wire.ask(request(url)).body == b"ok"
        put = request(url, method="PUT", body=b"the body of the PUT, as long as what follows")
        wire.send(put + request(url + "next-request", Padding="x" * 100))
        assert stalled.wait(20)
        reload(running, {"limits": {"headBytes": "8KiB"}})
        release.set()
        assert wire.read().body == b"ok"
        assert wire.read().body == b"ok"
    assert bodies == [b"the body of the PUT, as long as what follows"] * 2
    assert retries(running) == {"connection_died": 1, "superseded": 1}


def test_each_byte_is_counted_once_and_no_head_as_a_body(gateway, origin):
    """However many requests arrive in one segment."""
    there = origin(lambda _: reply(b"12345"))
    running = gateway({"workers": 1, "cache": {"enabled": False}})
    data = b"".join(request(there.url(f"/{n}"), method="PUT", body=b"x" * 10) for n in range(50))
    with running.wire() as wire:
        wire.send(data)
        assert [wire.read().status for _ in range(50)] == [200] * 50
    until(lambda: running.metric("pinfold_http_request_size_bytes_count") == 50, "all are counted")
    assert running.metric("pinfold_http_request_size_bytes_sum") == 50 * 10
    assert running.metric("pinfold_http_response_size_bytes_sum") == 50 * 5
    assert running.metric("pinfold_client_received_bytes_total") == len(data)


def test_what_is_sent_with_a_connect_is_counted_once(gateway, scripted_origin):
    there = scripted_origin(lambda connection: connection.send(connection.read_exactly(5)))
    running = gateway({"workers": 1})
    data = f"CONNECT {there.authority} HTTP/1.1\r\nHost: {there.authority}\r\n\r\nearly".encode()
    with running.wire() as wire:
        wire.send(data)
        assert wire.read_head().status == 200
        assert wire.read_exactly(5) == b"early"
    until(lambda: running.metric("pinfold_http_requests_in_flight") == 0, "the tunnel has ended")
    assert running.metric("pinfold_client_received_bytes_total") == len(data)


@pytest.mark.parametrize(("listener", "first", "takes_connect"), [
    ("proxy", "OPTIONS * HTTP/1.1", True),
    ("route", "OPTIONS / HTTP/1.1\r\nMax-Forwards: 0", False),
    ("route", "CONNECT a.test:443 HTTP/1.1", False)])
def test_allow_lists_what_the_listener_takes(gateway, origin, listener, first, takes_connect):
    there = origin(lambda _: reply())
    running = gateway({"listeners": [
        {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
        {"name": "route", "address": "127.0.0.1:0", "kind": "reverse", "upstream": there.url("")}]})
    response = running.ask(f"{first}\r\nHost: a.test:443\r\n\r\n", listener)
    assert response.status == (405 if first.startswith("CONNECT") else 200)
    allowed = response.get("allow").split(", ")
    assert ("CONNECT" in allowed) == takes_connect
    assert {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"} <= set(allowed)
    if not takes_connect:
        patch = running.ask("PATCH / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "route")
        assert patch.status == 200
