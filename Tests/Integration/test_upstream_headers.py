"""Servers that are told who the client is, by the PROXY header with which each connection begins."""

from __future__ import annotations

import signal
import threading

import pytest
from support.gateway import run_pinfold, wire_from
from support.http2 import http2
from support.origin import reply, serving
from support.parents import HTTPParent, SOCKSParent
from support.proxy_headers import (
    HAProxyServer, Header, NginxServer, ToldOrigin, behind, binary, line)
from support.wait import until
from support.wire import Wire

NO_CACHE = {"cache": {"enabled": False}}
VERSIONS = ["v1", "v2"]
CLIENT = "192.0.2.7"


def number(version: str) -> int:
    return int(version[1:])


@pytest.fixture
def told():
    """told(handler, **options): a server that is told who the client is."""
    made = []

    def make(handler=lambda _: reply(b"here", "200 OK", "Cache-Control: no-store"), **options):
        made.append(serving(ToldOrigin(handler, **options)))
        return made[-1].__enter__()

    yield make
    for one in made:
        one.__exit__(None, None, None)


def single(server, version: str = "v2", **keys: object) -> dict:
    url = server if isinstance(server, str) else server.url("")
    return {"listeners": [{"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
                           "upstream": url, "sendProxyProtocol": version, **keys}], **NO_CACHE}


def several(*servers, version: str = "v2", listener: dict | None = None, **keys: object) -> dict:
    return {"listeners": [{"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
                           "upstreams": {"servers": [{"url": one.url("")} for one in servers],
                                         "proxyProtocol": version, **keys}, **(listener or {})}],
            **NO_CACHE}


def ask(wire: Wire, path: str = "/", method: str = "GET"):
    wire.send(f"{method} {path} HTTP/1.1\r\nHost: front\r\n\r\n")
    return wire.read(method)


def names(wire: Wire) -> tuple[tuple[str, int], tuple[str, int]]:
    return wire.socket.getsockname()[:2], wire.socket.getpeername()[:2]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("shape", [single, several])
def test_a_server_is_told_the_ends_of_the_clients_connection(gateway, told, version, shape):
    there = told()
    running = gateway(shape(there, version=version))
    with wire_from(running, "127.0.0.5", listener="back") as wire:
        source, destination = names(wire)
        for _ in range(3):
            assert ask(wire).body == b"here"
    assert there.told == [Header(number(version), source, destination)] * 3
    assert len(there.headers) == 1, "one connection, for one client"
    assert running.metric("pinfold_upstream_proxy_headers_total", of="client") == 1


@pytest.mark.parametrize("shape", [single, several])
def test_no_connection_carries_requests_of_two_clients(gateway, told, shape):
    there = told()
    running = gateway(shape(there) | {"workers": 1})
    wires = [running.wire("back") for _ in range(4)]
    expected = []
    for _ in range(3):
        for wire in wires:
            assert ask(wire).body == b"here"
            expected.append(names(wire)[0])
    assert [header.source for header in there.told] == expected
    assert len(there.headers) == 4
    for wire in wires:
        wire.close()


def test_concurrent_clients_are_never_mixed_up(gateway, told):
    """Each asks for its own port, with fewer connections than clients, so that they take turns."""
    there = told(lambda request: reply(request.target.encode()))
    running = gateway(single(there) | {"workers": 2, "limits": {"upstreamPerHost": 3}})
    problems: list[str] = []

    def client() -> None:
        with running.wire("back") as wire:
            port = names(wire)[0][1]
            for number in range(15):
                body = ask(wire, f"/{port}/{number}").body
                if body != f"/{port}/{number}".encode():
                    problems.append(f"{port}: {body!r}")

    threads = [threading.Thread(target=client) for _ in range(12)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not problems
    assert len(there.requests) == len(there.told) == 180
    for request, header in zip(there.requests, there.told):
        assert header.source is not None
    asked = {(int(r.target.split("/")[1]), r.target) for r in there.requests}
    assert len(asked) == 180
    until(lambda: running.metric("pinfold_upstream_connections_open") == 0, "nothing is left")


def test_each_request_arrives_under_its_own_clients_header(gateway, told):
    """The same, seen by the server: the address is in the path."""
    wrong: list[str] = []
    there = told()

    def handler(request):
        header = there._of_connection[threading.get_ident()]
        if request.target != f"/{header.source[1]}":
            wrong.append(f"{request.target} under {header}")
        return reply(b"x")

    there.handler = handler
    running = gateway(several(there, there_too := told(handler=lambda r: reply(b"x")))
                      | {"workers": 2, "limits": {"upstreamPerHost": 2}})

    def client() -> None:
        for _ in range(3):
            with running.wire("back") as wire:
                port = names(wire)[0][1]
                for _ in range(5):
                    assert ask(wire, f"/{port}").body == b"x"

    threads = [threading.Thread(target=client) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not wrong
    assert len(there.requests) + len(there_too.requests) == 120


def test_the_connection_ends_with_the_clients(gateway, told):
    there = told()
    running = gateway(single(there))
    wire = running.wire("back")
    assert ask(wire).status == 200
    assert running.metric("pinfold_upstream_connections_idle") == 1
    wire.close()
    there.wait_finished(1)
    assert running.metric("pinfold_upstream_connections_open") == 0


def test_streams_of_one_client_share_its_connections(gateway, told):
    there = told()
    running = gateway(single(there))
    with http2(running.listeners["back"]) as client:
        for _ in range(4):
            assert client.get().status == 200
        assert len(there.headers) == 1
    assert {header.source for header in there.told} == {there.headers[0].source}
    there.wait_finished(1)


def test_connections_of_others_make_room(gateway, told):
    """An idle connection of one client is closed for another one, which is not made to wait."""
    there = told()
    running = gateway(single(there) | {"workers": 1, "limits": {"upstreamPerHost": 1}})
    with running.wire("back") as one, running.wire("back") as other:
        for _ in range(3):
            assert ask(one).status == ask(other).status == 200
    assert len(there.headers) == 6
    assert [h.source for h in there.told[::2]] == [there.told[0].source] * 3


@pytest.mark.parametrize("is_idle", [True, False])
def test_who_leaves_in_another_protocol_leaves_no_connection(gateway, told, is_idle):
    """Neither an idle one, nor one that is in use at that time, for a request of the gateway's own."""
    arrived, release = threading.Event(), threading.Event()

    def answer(asked):
        if asked.target == "/ws":
            return (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                    b"Upgrade: echo\r\n\r\n")
        if asked.get("if-none-match"):
            arrived.set()
            release.wait(20)
        return reply(b"x", "200 OK", "Cache-Control: max-age=0, stale-while-revalidate=600", 'ETag: "a"')

    there = told(answer)
    running = gateway({**single(there), "cache": {}, "workers": 1})
    idle = 'pinfold_upstream_connections_idle'
    with running.wire("back") as wire:
        for _ in range(2):
            assert ask(wire).body == b"x"
        assert arrived.wait(20), "it is validated in the background"
        wire.send("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        assert b"101" in wire.read_until(b"\r\n\r\n")
        assert there.accepted == 2
        if is_idle:
            release.set()
            until(lambda: running.metric(idle) == 1, "the answer has come")
    until(lambda: there.connections[1].finished.is_set(), "the relay has ended")
    release.set()
    until(lambda: there.connections[0].finished.is_set(), "the other connection is closed")


def test_who_leaves_while_connected_leaves_no_connection_to_others(gateway, told, pki):
    """The handshake of a connection is slow, and its client leaves: whoever waits gets another."""
    leaf = pki.intermediate.issue("127.0.0.1")
    hold = threading.Event()
    there = told(tls=leaf.server_context())
    serve = there._serve

    def slow(sock):
        hold.wait(20)
        serve(sock)

    there._serve = slow
    running = gateway(single(there.url("").replace("http:", "https:")) | {
        "workers": 1, "limits": {"upstreamPerHost": 2}, "tls": {"roots": [str(pki.root.pem_file)]}})
    leaving = [running.wire("back") for _ in range(2)]
    for wire in leaving:
        wire.send("GET /left HTTP/1.1\r\nHost: front\r\n\r\n")
    until(lambda: there.accepted == 2, "both are being made")
    with running.wire("back") as staying:
        staying.send("GET /stays HTTP/1.1\r\nHost: front\r\n\r\n")
        until(lambda: running.metric("pinfold_upstream_pool_waiting") == 3, "it waits, too")
        for wire in leaving:
            wire.close()
        until(lambda: running.metric("pinfold_upstream_pool_waiting") == 1, "they have left")
        hold.set()
        assert staying.read("GET").status == 200
        assert there.told[-1].source == names(staying)[0]
    assert [request.target for request in there.requests] == ["/stays"]


def test_the_client_is_whom_an_incoming_header_names(gateway, told):
    there = told()
    config = single(there, proxyProtocol={"from": ["127.0.0.1"]})
    running = gateway({**config, "access": {"clients": ["192.0.2.0/24", "2001:db8::/32"]}})
    for header, source, destination in [
            (binary(CLIENT), (CLIENT, 56324), ("198.51.100.2", 443)),
            (line("2001:db8::7"), ("2001:db8::7", 56324), ("2001:db8::2", 443))]:
        with running.wire("back") as wire:
            wire.send(header)
            assert ask(wire).status == 200
        assert there.told[-1] == Header(2, source, destination)


def test_an_ipv6_client_is_told_as_one(gateway, told):
    there = told()
    config = single(there, version="v1", address="[::1]:0")
    running = gateway(config)
    with running.wire("back") as wire:
        assert ask(wire).status == 200
        assert there.told[0] == Header(1, *names(wire))


@pytest.mark.parametrize("version", VERSIONS)
def test_clients_of_a_unix_socket_have_no_address(gateway, told, workspace, version):
    there = told()
    path = workspace / "front.sock"
    config = single(there, version, address=f"unix:{path}")
    running = gateway({**config, "access": {"clients": ["unix"]}, "workers": 1})
    for _ in range(2):
        with running.wire("back") as wire:
            assert ask(wire).status == 200
    assert there.told == [Header(number(version))] * 2
    assert len(there.headers) == 1, "they are one to the server"
    assert running.metric("pinfold_upstream_proxy_headers_total", of="none") == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_checks_are_the_gateways_own(gateway, told, version):
    there = told()
    running = gateway(several(there, version=version, health={"path": "/health", "interval": "100ms",
                                                             "timeout": "90ms"}))
    until(lambda: len(there.requests) >= 2, "it is checked")
    assert {header for header in there.headers} == {Header(number(version))}
    with running.wire("back") as wire:
        assert ask(wire).status == 200
        until(lambda: any(h.source == names(wire)[0] for h in there.told), "the client is told")
    assert running.metric("pinfold_upstream_server_state", state="up") == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_the_header_comes_before_tls(gateway, told, pki, version):
    leaf = pki.intermediate.issue("127.0.0.1")
    there = told(tls=leaf.server_context())
    running = gateway(single(there.url("").replace("http:", "https:"), version)
                      | {"tls": {"roots": [str(pki.root.pem_file)]}})
    with running.wire("back") as wire:
        assert ask(wire).body == ask(wire).body == b"here"
        assert there.told == [Header(number(version), *names(wire))] * 2


def test_http2_is_not_spoken_with_such_a_server(gateway, told, pki):
    leaf = pki.intermediate.issue("127.0.0.1")
    context = leaf.server_context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    there = told(tls=context)
    running = gateway(single(there.url("").replace("http:", "https:"))
                      | {"tls": {"roots": [str(pki.root.pem_file)]}})
    with running.wire("back") as wire:
        assert ask(wire).body == b"here"


@pytest.mark.parametrize("shape", ["upstream", "upstreams"])
def test_an_entry_that_requires_http2_is_refused(workspace, shape):
    server = ("upstream: https://a.example.com, sendProxyProtocol: v2" if shape == "upstream" else
              "upstreams: { servers: [{ url: https://a.example.com }], proxyProtocol: v1 }")
    file = workspace / "pinfold.yaml"
    file.write_text(
        f"listeners:\n  - {{ name: a, address: '127.0.0.1:0', kind: reverse, {server} }}\n"
        "hosts:\n  - { match: [a.example.com], http2: require }\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1
    assert "requires HTTP/2" in done.stderr and "PROXY header" in done.stderr


def test_the_key_of_one_server_is_not_for_several(workspace):
    file = workspace / "pinfold.yaml"
    file.write_text(
        "listeners:\n  - name: a\n    address: '127.0.0.1:0'\n    kind: reverse\n"
        "    upstreams: { servers: [{ url: http://a.example.com }] }\n"
        "    sendProxyProtocol: v2\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1
    assert "6: listeners[0].sendProxyProtocol: does not apply to several servers" in done.stderr


@pytest.mark.parametrize("tls", [False, True])
def test_haproxy_reads_the_header(gateway, workspace, pki, tls):
    leaf = pki.intermediate.issue("127.0.0.1") if tls else None
    server = HAProxyServer(workspace / "haproxy", tls=leaf)
    try:
        url = server.url("").replace("http:", "https:" if tls else "http:")
        for version in VERSIONS:
            running = gateway(single(url, version) | {"tls": {"roots": [str(pki.root.pem_file)]}})
            for source in ("127.0.0.7", "127.0.0.8"):
                with wire_from(running, source, listener="back") as wire:
                    mine, its = names(wire)
                    assert ask(wire).body.decode() == "%s:%d %s:%d" % (*mine, *its)
            running.stop()
    finally:
        server.stop()


def test_nginx_reads_the_header(gateway, workspace):
    server = NginxServer(workspace / "nginx")
    try:
        for version in VERSIONS:
            running = gateway(single(server.url(""), version))
            for source in ("127.0.0.7", "127.0.0.8"):
                with wire_from(running, source, listener="back") as wire:
                    mine, its = names(wire)
                    for _ in range(2):
                        assert ask(wire).body.decode() == "%s:%d %s:%d" % (*mine, *its)
            running.stop()
    finally:
        server.stop()


def test_one_gateway_tells_another(gateway, told):
    there = told()
    second = gateway({**single(there, proxyProtocol={"from": ["127.0.0.1"]}),
                      "access": {"clients": ["127.0.0.9"]}})
    first = gateway(single("http://127.0.0.1:%d" % second.listeners["back"][1]))
    with wire_from(first, "127.0.0.9", listener="back") as wire:
        assert ask(wire).status == 200
        assert there.told == [Header(2, *names(wire))]
    assert second.wait_access()[0]["client"].startswith("127.0.0.9:")


@pytest.mark.parametrize("kind", ["http", "socks5"])
def test_the_header_goes_to_the_server_in_a_parents_tunnel(gateway, told, kind):
    there = told()
    with serving(HTTPParent() if kind == "http" else SOCKSParent()) as way:
        running = gateway({**single(there), "parents": {"p": {"url": f"{kind}://127.0.0.1:{way.port}"}},
                           "ways": {"parents": ["p"]}})
        with running.wire("back") as one, running.wire("back") as other:
            for wire in (one, other, one):
                assert ask(wire).status == 200
            assert [h.source for h in there.told] == [
                names(wire)[0] for wire in (one, other, one)]
        assert len(there.headers) == 2
        if kind == "http":
            assert set(way.asked) == {f"CONNECT {there.authority}"}


def test_in_such_a_tunnel_nothing_is_the_parents_answer(gateway, told):
    there = told(lambda _: reply(b"", "407 Who", 'Proxy-Authenticate: Basic realm="theirs"'))
    with serving(HTTPParent()) as way:
        running = gateway({
            **single(there, host="keep"), "ways": {"parents": ["p"]},
            "parents": {"p": {"url": f"http://127.0.0.1:{way.port}"}}})
        with running.wire("back") as wire:
            response = ask(wire)
    assert (response.status, response.get("proxy-authenticate")) == (407, "")
    assert there.requests[0].get("host") == "front"
    assert "reason" not in running.wait_access()[0]


def test_another_protocol_is_relayed_after_the_header(gateway, told):
    def handler(request):
        return (b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
                b"hello")

    there = told(handler)
    running = gateway(single(there))
    with running.wire("back") as wire:
        wire.send("GET / HTTP/1.1\r\nHost: front\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        assert b"101" in wire.read_until(b"\r\n\r\n")
        assert wire.read_exactly(5) == b"hello"
        assert there.told[0].source == names(wire)[0]


def test_a_request_that_the_gateway_makes_for_a_client_has_its_address(gateway, told):
    """A stale response is served, and validated for the client who got it."""
    there = told(lambda _: reply(b"old", "200 OK", "Cache-Control: max-age=0, stale-while-revalidate=60"))
    running = gateway({**single(there), "cache": {}})
    with running.wire("back") as wire:
        assert ask(wire).body == ask(wire).body == b"old"
        until(lambda: len(there.told) == 2, "it is validated")
        assert {header.source for header in there.told} == {names(wire)[0]}


def test_a_server_that_takes_no_header_fails_the_request(gateway, scripted_origin):
    """It takes the header for a malformed request, which it answers at once."""

    def refuse(connection):
        assert connection.read_until(b"\r\n").startswith(b"PROXY TCP4 127.0.0.1 ")
        connection.send(reply(b"", "400 Bad Request", "Connection: close"))

    there = scripted_origin(refuse)
    running = gateway(single(there, "v1"))
    with running.wire("back") as wire:
        assert ask(wire).status in (400, 502)


def test_a_reload_that_turns_it_on_makes_new_connections(gateway, told, origin):
    plain, there = origin(lambda _: reply(b"plain")), told()
    running = gateway(several(plain, version="none"))
    with running.wire("back") as wire:
        assert ask(wire).body == b"plain"
    running.write_config({**running.config, **several(there)} | {
        "listeners": [{**running.config["listeners"][0], "upstreams":
                       several(there)["listeners"][0]["upstreams"]}]})
    running.signal(signal.SIGHUP)
    until(lambda: running.metric("pinfold_config_generation") == 2, "reloaded")
    with running.wire("back") as wire:
        assert ask(wire).body == b"here"
        assert there.told[0].source == names(wire)[0]


def test_explain_says_so(workspace, told, pki):
    leaf = pki.intermediate.issue("127.0.0.1")
    there = told(tls=leaf.server_context())
    url = there.url("").replace("http:", "https:")
    file = workspace / "pinfold.yaml"
    file.write_text(
        f"tls: {{ roots: ['{pki.root.pem_file}'] }}\n"
        f"listeners:\n  - {{ name: a, address: '127.0.0.1:0', kind: reverse, upstream: '{url}', "
        "sendProxyProtocol: v2 }\n")
    done = run_pinfold("explain", "--config", str(file), "--connect", url + "/")
    assert "the reverse listener a (sent with a PROXY header of version 2)" in done.stdout
    assert "server: trusted" in done.stdout
    assert there.headers == [Header(2)]
    done = run_pinfold("explain", "--config", str(file), "--json", url + "/")
    assert '"proxyProtocol":"v2"' in done.stdout.replace(" ", "")
