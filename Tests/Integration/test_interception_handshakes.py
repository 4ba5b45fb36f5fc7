"""Handshakes in intercepted tunnels that stall, end, flood or stray: nothing is left of them, and
others are served meanwhile."""

from __future__ import annotations

import contextlib
import signal
import ssl
import time

import pytest
from support.handshakes import (
    ALERT, CHANGE_CIPHER_SPEC, STEPS, in_records, message_of, record, stopped, tunnel, update_keys,
    with_extensions)
from support.interception import HOST, Inside, ask_inside, connect_head, no_client_is_connected
from support.origin import HTTPOrigin, reply, serving
from support.secure import NAME, forward, secure_wire, tls_of
from support.wait import SANITIZER, until
from support.wire import Wire, request

TLS12 = {"maximum_version": ssl.TLSVersion.TLSv1_2}
VERSIONS = [TLS12, {}]


@pytest.fixture(scope="module")
def there(pki):
    with serving(HTTPOrigin(lambda _: reply(b"here", "200 OK", "Cache-Control: no-store"),
                            tls=pki.intermediate.issue(HOST).server_context())) as made:
        yield made


@pytest.fixture(scope="module")
def config(pki):
    # Without a cache, whose files are opened some time after the start. Whoever rejects as often as
    # these tests do would be given up.
    return {"listeners": [forward(None), forward(tls_of(pki.root.issue(NAME)), "secure")],
            "tls": {"roots": [str(pki.root.pem_file)]}, "cache": {"enabled": False},
            "interception": pki.interception.section | {
                "default": True, "rejections": {"alerts": 0, "closes": 0}}}


@pytest.fixture(scope="module")
def running(module_gateways, config):
    return module_gateways(config)


@pytest.fixture(scope="module")
def hasty(module_gateways, config):
    """A gateway that does not wait for long."""
    return module_gateways(config | {"timeouts": {"head": "400ms"}})


@pytest.fixture
def inside(pki):
    return Inside(pki.interception.file)


@pytest.fixture(params=["over TCP", "over TLS"])
def wire(request, pki):
    """wire(gateway): a client's connection to the proxy, in which its tunnel's TLS is the only one
    or an inner one."""
    if request.param == "over TCP":
        return lambda running: running.wire()
    return lambda running: secure_wire(running, pki.root, "secure")


def ends(wire: Wire) -> bytes:
    """What comes before the end. That of an outer session may be an alert, or none."""
    with contextlib.suppress(ssl.SSLError):
        wire.read_to_end()
    return wire.buffer


def serves(running, there) -> None:
    asked = request("/", host=f"{HOST}:{there.port}")
    assert ask_inside(running, HOST, there.port, asked).body == b"here"


def without_pool(running) -> float:
    """Descriptors but those of connections to servers."""
    return running.descriptors - running.metric("pinfold_upstream_connections_open")


@contextlib.contextmanager
def leaving_nothing(running, there):
    """Descriptors and accounts are afterwards what they were before."""
    serves(running, there)
    no_client_is_connected(running)
    descriptors = without_pool(running)
    yield
    no_client_is_connected(running)
    until(lambda: without_pool(running) <= descriptors,
          lambda: f"{without_pool(running)} descriptors instead of {descriptors}")
    assert running.metric("pinfold_client_head_buffer_bytes") == 0
    serves(running, there)


@pytest.mark.parametrize("version", VERSIONS, ids=["1.2", "1.3"])
def test_a_client_that_stalls_at_any_step_is_given_up(hasty, there, pki, wire, version):
    with leaving_nothing(hasty, there):
        timeouts = hasty.metric("pinfold_client_tls_failures_total", reason="timeout")
        made = [stopped(hasty, there.port, Inside(pki.interception.file, **version), step,
                        wire(hasty)) for step in STEPS]
        for one in made:
            with one:
                ends(one)
        # The last one has shaken hands.
        assert hasty.metric("pinfold_client_tls_failures_total", reason="timeout") \
            == timeouts + len(STEPS) - 1


@pytest.mark.parametrize("version", VERSIONS, ids=["1.2", "1.3"])
@pytest.mark.parametrize("step", STEPS)
def test_a_client_that_ends_its_side_at_any_step_is_let_go(
        running, there, pki, wire, step, version):
    inside = Inside(pki.interception.file, **version)
    with leaving_nothing(running, there):
        with stopped(running, there.port, inside, step, wire(running)) as one:
            one.half_close()
            ends(one)


@pytest.mark.parametrize("size", [1, 3, 50])
def test_a_first_message_in_many_records_is_understood(running, there, inside, size):
    with tunnel(running, there.port) as wire:
        # The first bytes say whether it is TLS at all.
        wire.send(in_records(message_of(inside.hello), size))
        inside.shake(wire)
        asked = request("/", host=f"{HOST}:{there.port}")
        assert inside.ask(wire, asked, b"here").startswith(b"HTTP/1.1 200 ")


def test_a_first_message_of_one_byte_records_in_one_byte_segments(running, there, inside):
    with tunnel(running, there.port) as wire:
        for byte in in_records(message_of(inside.hello), 1):
            wire.send(bytes([byte]))
        inside.shake(wire)
        asked = request("/", host=f"{HOST}:{there.port}")
        assert inside.ask(wire, asked, b"here").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("size", [1, 7, 60, 74, 1 << 14])
def test_a_request_in_the_segments_of_the_handshakes_end_is_answered(
        running, there, inside, wire, size):
    """In TLS 1.3 a client may send its request together with its Finished."""
    with tunnel(running, there.port, wire(running)) as one:
        data = inside.last_flight(one)
        inside.tls.write(request("/", host=f"{HOST}:{there.port}"))
        data += inside.outgoing.read()
        for start in range(0, len(data), size):
            one.send(data[start:start + size])
        assert inside.ask(one, b"", b"here").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("count, size", [(200, 0), (200, 60), (3000, 0)])
def test_a_first_message_with_many_extensions_is_answered(running, there, inside, count, size):
    message = with_extensions(message_of(inside.hello), count, size)
    with tunnel(running, there.port) as wire:
        wire.send(in_records(message, 16_000))
        assert wire.read_exactly(6)[0::5] == b"\x16\x02", "a ServerHello"


STRAYS = {
    "a first message with a length of 130 KB": record(b"\x01\x01\xfb\xd0"),
    "the same in records of one byte": in_records(b"\x01\x01\xfb\xd0", 1),
    "one of more than a record": in_records(b"\x01\x00\x40\x01" + bytes(16_385), 16_384),
    "the longest possible length": record(b"\x01\xff\xff\xff"),
    "another message first": record(b"\x10\x00\x00\x03\x01\x02\x03"),
    "a record that is too long": b"\x16\x03\x01\xff\xff" + bytes(66_000),
    "records without content": record(b"") * 5000,
    "alerts": record(b"\x01\x00") + record(b"\x01\x5a", ALERT) * 5000,
    "a fatal alert in the middle": record(b"\x01\x00") + record(b"\x02\x50", ALERT),
    "application data": record(b"\x01\x00\x00") + record(b"GET / HTTP/1.1\r\n\r\n", 23),
    "a message of nothing": record(b"\x01\x00\x00\x00"),
    "a message of noise": record(b"\x01\x00\x01\x00" + bytes(range(256))),
}


@pytest.mark.parametrize("name", STRAYS)
def test_what_is_no_handshake_is_ended_at_once(running, there, wire, name):
    with leaving_nothing(running, there):
        failures = running.metrics()
        with tunnel(running, there.port, wire(running)) as one:
            with contextlib.suppress(ConnectionError):
                one.send(STRAYS[name])
            assert b"HTTP" not in ends(one)
        found = [label for label, value in running.metrics().items()
                 if label.startswith("pinfold_client_tls_failures_total") and "timeout" not in label
                 and value > failures[label]]
        assert len(found) == 1


BEHIND = {
    "garbage": b"\xff" * 100,
    "a request": b"GET / HTTP/1.1\r\nHost: seen.test\r\n\r\n",
    "early data": record(b"GET / HTTP/1.1\r\nHost: seen.test\r\n\r\n", 23) * 1000,
    "another first message": b"",
    "alerts": record(b"\x01\x5a", ALERT) * 5000,
    "records without content": record(b"") * 5000,
}


@pytest.mark.parametrize("version", VERSIONS, ids=["1.2", "1.3"])
@pytest.mark.parametrize("name", BEHIND)
def test_what_strays_behind_the_first_message_is_ended(running, there, pki, name, version):
    before = len(there.requests)
    inside = Inside(pki.interception.file, **version)
    hello = inside.hello
    with tunnel(running, there.port) as wire:
        wire.send(hello)
        with contextlib.suppress(ConnectionError):
            wire.send(BEHIND[name] or hello)
        assert b"HTTP" not in wire.read_to_end()
    assert len(there.requests) == before
    no_client_is_connected(running)


@pytest.mark.parametrize("kind, content", [
    (CHANGE_CIPHER_SPEC, b"\x01"), (ALERT, b"\x01\x5a"), (23, b"x")])
def test_a_flood_does_not_put_off_the_end_of_its_time(hasty, there, inside, kind, content):
    with tunnel(hasty, there.port) as wire:
        wire.send(inside.hello)
        assert wire._more()
        end = time.monotonic() + 20
        with pytest.raises(ConnectionError):
            while time.monotonic() < end:
                wire.send(record(content, kind) * 50)
    no_client_is_connected(hasty)


@pytest.mark.parametrize("answered", [False, True])
def test_keys_are_not_updated_without_end(running, there, answered):
    with leaving_nothing(running, there):
        with tunnel(running, there.port) as wire:
            update_keys(wire.socket, 20_000, answered)
            with contextlib.suppress(ConnectionError):
                wire.read_to_end()
    serves(running, there)


def test_an_alert_for_every_certificate_leaves_nothing(running, there, pki):
    """A client that does not know the authority, and tries again and again."""
    context = ssl.create_default_context(cafile=str(pki.root.pem_file))
    with leaving_nothing(running, there):
        rejections = running.metric("pinfold_interception_rejections_total")
        issued = running.metric("pinfold_interception_certificates_issued_total")
        for _ in range(60):
            with tunnel(running, there.port) as wire, pytest.raises(ssl.SSLError):
                context.wrap_socket(wire.socket, server_hostname=HOST)
        until(lambda: running.metric("pinfold_interception_rejections_total") == rejections + 60,
              "all are counted")
        assert running.metric("pinfold_interception_certificates_issued_total") == issued


class TestHalfDone:
    def test_five_thousand_take_up_no_more_than_is_allowed(self, gateway, config, there):
        count, allowed = 5000, 8 << 20
        running = gateway(config | {"limits": {
            "bufferBytes": allowed, "connections": 12_000, "pending": 6000,
            "perClient": {"connections": 11_000}}})
        serves(running, there)
        descriptors, memory = without_pool(running), running.rss_bytes
        # It takes up the most that one can without a byte of it having come.
        data = connect_head(HOST, there.port) + record(b"\x01\x00\x40\x00" + bytes(8000))
        waiting: list[Wire] = []
        try:
            for index in range(count):
                waiting.append(running.wire())
                waiting[-1].send(data)
                if index % 1000 == 999:
                    serves(running, there)
            until(lambda: running.metric("pinfold_client_heads_evicted_total") >= count - 400,
                  "the oldest have made way", 30)
            assert running.metric("pinfold_client_head_buffer_bytes") <= allowed * 3 / 2
            serves(running, there)
        finally:
            for one in waiting:
                one.close()
        no_client_is_connected(running)
        assert running.metric("pinfold_client_head_buffer_bytes") == 0
        until(lambda: without_pool(running) <= descriptors, "all descriptors are free again")
        assert SANITIZER or running.peak_rss_bytes - memory < 80 << 20

    def test_a_stop_does_not_wait_for_them(self, gateway, config, there, pki):
        running = gateway(config | {"timeouts": {"grace": "300ms"}})
        wires = [stopped(running, there.port, Inside(pki.interception.file), step)
                 for step in STEPS]
        running.signal(signal.SIGTERM)
        assert running.wait_exit() == 0
        for wire in wires:
            wire.close()
