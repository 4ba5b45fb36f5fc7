"""Tunnels that are open when a reload changes what their host must prove: closed or left, by choice."""

from __future__ import annotations

import contextlib
import copy

import pytest
from support.inspection import careless, inspected, opened, through
from support.secure import reload
from support.wait import until
from support.wire import Wire

HOST = "api.live.test"
OTHER = "sha256/" + "A" * 43 + "="
NEXT = "sha256/" + "B" * 42 + "A="


def echo(connection) -> None:
    while data := connection.socket.recv(1 << 16):
        connection.socket.sendall(data)


def websocket(connection) -> None:
    """Agrees to another protocol, and gives back what it gets."""
    assert connection.read_request_head() is not None
    connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                    b"Upgrade: echo\r\n\r\n")
    echo(connection)


def answers(sock) -> bool:
    """Whether what is sent comes back; False: the tunnel is closed."""
    try:
        sock.sendall(b"still there?")
        got = b""
        while len(got) < 12:
            part = sock.recv(12 - len(got))
            if not part:
                return False
            got += part
        return got == b"still there?"
    except OSError:
        return False


def closed(running, count: int = 1) -> None:
    """The client's log and metrics say why it ended."""
    ended = until(lambda: found if len(found := [
        line for line in running.access_lines()
        if line.get("reason") == "tunnel-policy-changed"]) >= count else [], "its line is there")
    assert len(ended) == count
    assert running.metric("pinfold_http_request_failures_total",
                          reason="tunnel-policy-changed") == count
    assert running.metric("pinfold_tunnels_open") == 0


def changed(config: dict, **pinset) -> dict:
    made = copy.deepcopy(config)
    made["pinsets"]["p"].update(pinset)
    return made


@pytest.fixture
def leaf(pki):
    return pki.intermediate.issue(HOST)


def config_of(pki, leaf, **keys) -> dict:
    return inspected(HOST, [leaf.pin, OTHER], [pki.root.pem_file], **keys)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_verified_tunnel_is_closed_when_the_pins_of_its_host_change(
    gateway, scripted_origin, pki, leaf, version
):
    there = scripted_origin(echo, tls=leaf.server_context())
    config = config_of(pki, leaf, tls13Tunnel="probe")
    running = gateway(config)
    with through(running, HOST, there.port, careless(version)) as sock:
        assert answers(sock)
        reload(running, {**running.config, **changed(config, pins=[OTHER, NEXT])})
        until(lambda: not answers(sock), "it is closed")
    closed(running)
    [line] = [one for one in running.access_lines() if one.get("reason")]
    assert line["status"] == 200 and line["inspected"] == {
        "1.2": "verified", "1.3": "probed"}[version]
    running.wait_log("tunnel-policy-changed")
    with pytest.raises(OSError):
        through(running, HOST, there.port, careless(version))


CHANGES = {
    "enforcement": lambda config: config["pinsets"]["p"].update(enforce=False),
    "a pin more": lambda config: config["pinsets"]["p"]["pins"].append(NEXT),
    "no pins": lambda config: config["hosts"][0].pop("pinsets"),
    "the version": lambda config: config["hosts"][0].update(tls={"minimum": "1.3"}),
    "the roots": lambda config: config["tls"]["roots"].append("system"),
    "denial": lambda config: config.update(
        access={"connectPorts": "any", "clients": ["127.0.0.0/8"], "destinations": {
            "allow": ["127.0.0.0/8"], "deny": [HOST]}}),
    "the clients": lambda config: config.update(
        access={"connectPorts": "any", "clients": ["192.0.2.0/24"], "destinations": {
            "allow": ["127.0.0.0/8"]}}),
    "refusal": lambda config: config["hosts"][0].update(tunnel="refuse"),
    "the ports": lambda config: config.update(
        access={"connectPorts": [1], "clients": ["127.0.0.0/8"], "destinations": {
            "allow": ["127.0.0.0/8"]}}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_of_what_counts_closes_it(gateway, scripted_origin, pki, leaf, change):
    there = scripted_origin(echo, tls=leaf.server_context())
    config = config_of(pki, leaf)
    running = gateway(config)
    with through(running, HOST, there.port, careless("1.2")) as sock:
        assert answers(sock)
        CHANGES[change](config)
        reload(running, {**running.config, **config})
        until(lambda: not answers(sock), "it is closed")
    closed(running)


ACCESS = ["denial", "the clients", "the ports"]


@pytest.mark.parametrize("change", ACCESS)
def test_no_tunnel_stays_that_access_forbids(gateway, scripted_origin, pki, leaf, change):
    """Also where nobody has looked into it."""
    there = scripted_origin(echo)
    config = {"hosts": [{"match": [HOST], "tunnel": "pass"}]}
    running = gateway(config)
    with opened(running, HOST, there.port) as wire:
        assert answers(wire.socket)
        CHANGES[change](config)
        reload(running, {**running.config, **config})
        until(lambda: not answers(wire.socket), "it is closed")
    closed(running)


def test_a_handshake_under_way_makes_no_tunnel_that_access_forbids(
    gateway, scripted_origin, pki, leaf
):
    there = scripted_origin(echo, tls=leaf.server_context())
    config = config_of(pki, leaf)
    running = gateway(config)
    with opened(running, HOST, there.port) as wire:
        CHANGES["the clients"](config)
        reload(running, {**running.config, **config})
        with contextlib.suppress(OSError), careless("1.2").wrap_socket(
                wire.socket, server_hostname=HOST) as sock:
            until(lambda: not answers(sock), "it is closed")
    closed(running)


def test_what_is_not_tls_makes_no_tunnel_that_access_forbids(
    gateway, scripted_origin, authority
):
    """The client shows only after the reload which protocol it speaks."""
    there = scripted_origin(echo)
    config: dict = {"hosts": [{"match": [HOST], "intercept": True, "tunnel": "pass"}],
                    "interception": authority.section}
    running = gateway(config)
    with opened(running, HOST, there.port) as wire:
        CHANGES["the clients"](config)
        reload(running, {**running.config, **config})
        until(lambda: not answers(wire.socket), "it is closed")
    closed(running)


@pytest.mark.parametrize("change", ACCESS[:2])
def test_no_upgraded_connection_stays_that_access_forbids(gateway, scripted_origin, change):
    there = scripted_origin(websocket)
    config: dict = {"hosts": []}
    running = gateway(config)
    with running.wire() as wire:
        wire.send(f"GET http://{HOST}:{there.port}/ HTTP/1.1\r\nHost: {HOST}:{there.port}\r\n"
                  "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        assert wire.read_head().status == 101
        assert answers(wire.socket)
        CHANGES[change](config)
        reload(running, {**running.config, **config})
        until(lambda: not answers(wire.socket), "it is closed")
    closed(running)


@pytest.mark.parametrize("mode", ["refuse", "intercept"])
def test_a_probed_tunnel_is_closed_when_probing_is_not_enough_any_more(
    gateway, scripted_origin, pki, leaf, authority, mode
):
    there = scripted_origin(echo, tls=leaf.server_context())
    config = config_of(pki, leaf, tls13Tunnel="probe") | {"interception": authority.section}
    running = gateway(config)
    with through(running, HOST, there.port, careless("1.3")) as probed, \
            through(running, HOST, there.port, careless("1.2")) as verified:
        assert answers(probed) and answers(verified)
        config["hosts"][0]["tls13Tunnel"] = mode
        reload(running, {**running.config, **config})
        until(lambda: not answers(probed), "it is closed")
        assert answers(verified)
        [line] = running.wait_access(1)
        assert line["reason"] == "tunnel-policy-changed" and line["inspected"] == "probed"


OTHERS = {
    "nothing": lambda config: None,
    "limits": lambda config: config.update(limits={"pending": 7}),
    "another host": lambda config: config["hosts"].append(
        {"match": ["other.test"], "upgrade": "https", "pinsets": ["q"]}),
    "where failures are reported to": lambda config: config["pinsets"]["p"].update(
        reportTo="https://reports.test/"),
    "what is cached": lambda config: config["hosts"][0].update(cache={"key": ["accept"]}),
    "an expiry that is far off": lambda config: config["pinsets"]["p"].update(
        expires="2126-01-01"),
    "another destination": lambda config: config.update(
        access={"connectPorts": "any", "clients": ["127.0.0.0/8"], "destinations": {
            "allow": ["127.0.0.0/8"], "deny": ["other.test"]}}),
}


@pytest.mark.parametrize("change", OTHERS)
def test_no_other_change_closes_it(gateway, scripted_origin, pki, leaf, change):
    there = scripted_origin(echo, tls=leaf.server_context())
    config = config_of(pki, leaf)
    config["pinsets"]["q"] = {"mode": "publicKey", "pins": [OTHER, NEXT]}
    running = gateway(config)
    with through(running, HOST, there.port, careless("1.2")) as sock:
        assert answers(sock)
        OTHERS[change](config)
        reload(running, {**running.config, **config})
        # A change that counts comes after it, and takes the same way: by then the other was met.
        with through(running, HOST, there.port, careless("1.2")) as another:
            assert answers(another) and answers(sock)
        final = changed(config, pins=[leaf.pin, NEXT])
        reload(running, {**running.config, **final})
        until(lambda: not answers(sock), "it is closed")
    ended = [one for one in running.wait_access(2) if one.get("reason")]
    assert [one["reason"] for one in ended] == ["tunnel-policy-changed"]


def test_tunnels_are_left_where_the_entry_says_so(gateway, scripted_origin, pki, leaf):
    there = scripted_origin(echo, tls=leaf.server_context())
    config = config_of(pki, leaf)
    running = gateway(config)
    with through(running, HOST, there.port, careless("1.2")) as sock:
        assert answers(sock)
        # The file that is loaded says what becomes of what is open.
        final = changed(config, pins=[OTHER, NEXT])
        final["hosts"][0]["liveTunnels"] = "keep"
        reload(running, {**running.config, **final})
        with pytest.raises(OSError):
            through(running, HOST, there.port, careless("1.2"))
        assert answers(sock)
        del final["hosts"][0]["liveTunnels"]
        reload(running, {**running.config, **final})
        until(lambda: not answers(sock), "it is closed by the next reload")
    running.wait_log("tunnel-policy-changed")


@pytest.mark.parametrize("mode", ["auto", "close"])
def test_a_tunnel_that_was_not_inspected_is_closed_only_if_configured(
    gateway, scripted_origin, pki, leaf, mode
):
    there = scripted_origin(echo)
    config = {"hosts": [{"match": [HOST], "tunnel": "pass"}]}
    running = gateway(config)
    final = config_of(pki, leaf, liveTunnels=mode)
    with opened(running, HOST, there.port) as wire:
        assert answers(wire.socket)
        reload(running, {**running.config, **final})
        with pytest.raises(OSError), opened(running, HOST, there.port) as another:
            careless("1.2").wrap_socket(another.socket, server_hostname=HOST)
        if mode == "auto":
            assert answers(wire.socket)
        else:
            until(lambda: not answers(wire.socket), "it is closed")
            running.wait_log("tunnel-policy-changed")


def test_an_upgraded_connection_is_closed_as_a_verified_tunnel_is(
    gateway, scripted_origin, pki, leaf
):
    there = scripted_origin(websocket, tls=leaf.server_context())
    config = {"hosts": [{"match": [HOST], "upgrade": "https", "pinsets": ["p"]}],
              "tls": {"roots": [str(pki.root.pem_file)]},
              "pinsets": {"p": {"mode": "publicKey", "pins": [leaf.pin, OTHER]}}}
    running = gateway(config)
    with running.wire() as wire:
        wire.send(f"GET http://{HOST}:{there.port}/ HTTP/1.1\r\nHost: {HOST}:{there.port}\r\n"
                  "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        assert wire.read_head().status == 101
        assert answers(wire.socket)
        reload(running, {**running.config, **{**config, "limits": {"pending": 9}}})
        assert answers(wire.socket)
        reload(running, {**running.config, **changed(config, pins=[OTHER, NEXT])})
        until(lambda: not answers(wire.socket), "it is closed")
    closed(running)


def test_many_tunnels_on_all_workers_are_closed(gateway, scripted_origin, pki, leaf):
    there = scripted_origin(echo, tls=leaf.server_context())
    config = config_of(pki, leaf)
    running = gateway(config)
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(through(running, HOST, there.port, careless("1.2")))
                 for _ in range(40)]
        assert all(answers(one) for one in socks)
        reload(running, {**running.config, **changed(config, pins=[leaf.pin, NEXT])})
        until(lambda: not any(answers(one) for one in socks), "all are closed")
        closed(running, 40)


def test_a_client_in_an_intercepted_tunnel_meets_the_new_pins(
    gateway, origin, pki, leaf, authority
):
    from support.origin import reply
    there = origin(lambda _: reply(b"genuine", "200 OK", "Cache-Control: no-store"),
                   tls=leaf.server_context())
    config = {"hosts": [{"match": [HOST], "intercept": True, "pinsets": ["p"]}],
              "interception": authority.section,
              "tls": {"roots": [str(pki.root.pem_file)]},
              "pinsets": {"p": {"mode": "publicKey", "pins": [leaf.pin, OTHER]}}}
    running = gateway(config)
    request = f"GET / HTTP/1.1\r\nHost: {HOST}:{there.port}\r\n\r\n"
    with through(running, HOST, there.port, careless()) as sock, Wire(("", 0), sock=sock) as wire:
        wire.send(request)
        assert wire.read().status == 200
        reload(running, {**running.config, **changed(config, pins=[OTHER, NEXT])})

        def status() -> int:
            wire.send(request)
            return wire.read().status
        until(lambda: status() == 502, "the new pins hold")


