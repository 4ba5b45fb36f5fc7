"""Many names, one after the other and at once: what the gateway keeps of them is bounded."""

from __future__ import annotations

import signal
import ssl
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.interception import Inside, connect_head, no_client_is_connected
from support.origin import reply
from support.wait import SANITIZER, until
from support.wire import request

KEPT, CONNECTIONS = 50, 60


@pytest.fixture
def there(origin, pki):
    return origin(lambda _: reply(b"here", "200 OK", "Cache-Control: no-store"),
                  tls=pki.intermediate.issue("*.load.test").server_context())


@pytest.fixture
def running(gateway, pki):
    return gateway({
        "tls": {"roots": [str(pki.root.pem_file)]}, "cache": {"enabled": False},
        "interception": pki.interception.section | {
            "default": True, "maximumCertificates": KEPT},
        "limits": {"connections": CONNECTIONS}})


@pytest.fixture
def ask(running, there, pki):
    context = ssl.create_default_context(cafile=str(pki.interception.file))

    def one(number: int) -> None:
        host = f"n{number}.load.test"
        wire, answer = running.connect(f"{host}:{there.port}")
        with wire:
            assert answer.status == 200, answer
            with context.wrap_socket(wire.socket, server_hostname=host) as secure:
                secure.sendall(request("/", host=f"{host}:{there.port}"))
                assert secure.recv(1000).startswith(b"HTTP/1.1 200 ")

    return one


def test_many_names_leave_no_more_than_is_kept(running, ask):
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(ask, range(60)))
        descriptors, memory = running.descriptors, running.rss_bytes
        list(pool.map(ask, range(60, 200)))
    no_client_is_connected(running)
    assert running.metric("pinfold_interception_certificates_issued_total") == 200
    assert running.metric("pinfold_interception_certificates") == KEPT
    assert running.metric("pinfold_upstream_connections_open") <= CONNECTIONS
    assert running.descriptors <= descriptors + CONNECTIONS
    assert SANITIZER or running.rss_bytes < memory + (16 << 20)
    # The last one is kept, and the first one is not.
    ask(199)
    assert running.metric("pinfold_interception_certificates_issued_total") == 200
    ask(0)
    assert running.metric("pinfold_interception_certificates_issued_total") == 201


def test_clients_that_do_not_wait_for_their_certificates_leave_nothing(running, there, ask, pki):
    """Their names were queued; no client is left to be answered."""
    ask(0)
    wires = []
    for number in range(1, 41):
        host = f"n{number}.load.test"
        wire = running.wire()
        wire.send(connect_head(host, there.port))
        assert wire.read_head().status == 200
        wires.append((wire, Inside(pki.interception.file, host).hello))
    running.pause()
    for wire, hello in wires:
        wire.send(hello)
        wire.reset()
    running.signal(signal.SIGCONT)
    no_client_is_connected(running)
    until(lambda: running.metric("pinfold_interception_certificates_waiting") == 0,
          "no name is queued")
    ask(41)
