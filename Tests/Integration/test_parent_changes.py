"""What ends with a parent: a refused reload, other pins or an expired certificate of a parent, servers that
are removed, credentials of many clients, and parents that are the gateway itself."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest
from support.gateway import free_port, wire_from
from support.origin import Origin, reply, serving
from support.parents import HTTPParent, SOCKSParent, basic, relay, ways
from support.secure import reload
from support.wait import until
from support.wire import Closed, request
from test_connect import echo

HOST = "api.behind.test"
WRONG_PIN = "sha256/" + "A" * 43 + "="


@pytest.fixture
def parent(pki):
    """parent(scheme, certificate): a parent, and its URL."""
    with contextlib.ExitStack() as stack:

        def make(scheme: str = "http", certificate=None, *arguments):
            if scheme.startswith("socks"):
                made = stack.enter_context(serving(SOCKSParent()))
            else:
                made = stack.enter_context(serving(HTTPParent(
                    *arguments, tls=certificate.server_context() if certificate else None)))
            made.url = f"{scheme}://parent.test:{made.port}"
            return made

        yield make


def test_a_refused_reload_shows_the_state_of_the_parents_in_force(gateway, origin, parent):
    there = origin(lambda _: reply(b"ok"))
    way = parent()
    way.close()
    running = gateway(ways(way.url, "direct"))
    assert running.get(f"http://{HOST}:{there.port}/").status == 200
    assert running.metric("pinfold_parent_up", parent="p0") == 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        changed = {**running.config, "parents": {"p0": {"url": "http://parent.test:1"}}}
        changed["listeners"] = [*running.config["listeners"], {
            "name": "more", "address": "127.0.0.1:%d" % taken.getsockname()[1], "kind": "forward"}]
        reload(running, changed, succeeds=False)
    assert running.metric("pinfold_parent_up", parent="p0") == 0
    assert running.get(f"http://{HOST}:{there.port}/").status == 200


@pytest.mark.parametrize("mode", ["auto", "keep"])
def test_a_tunnel_ends_when_its_parent_must_prove_something_else(
    gateway, scripted_origin, parent, pki, mode
):
    there = scripted_origin(echo)
    leaf = pki.intermediate.issue("parent.test")
    way = parent("https", leaf)
    kept = {"match": [HOST], "liveTunnels": mode}
    config = ways(way.url, tls={"roots": [str(pki.root.pem_file)]}, hosts=[kept],
                  pinsets={"right": {"mode": "publicKey", "pins": [leaf.pin]},
                           "wrong": {"mode": "publicKey", "pins": [WRONG_PIN]}})
    running = gateway(config)
    wire, response = running.connect(f"{HOST}:{there.port}")
    with wire:
        assert response.status == 200
        began = time.monotonic()
        reload(running, {**running.config, "hosts": [kept, {
            "match": ["parent.test"], "pinsets": ["wrong"]}]})
        if mode == "keep":
            wire.send(b"ping")
            assert wire.read_exactly(4) == b"ping"
        else:
            with pytest.raises((Closed, ConnectionError)):
                wire.read_exactly(1)
            assert time.monotonic() - began < 10
    wire, response = running.connect(f"{HOST}:{there.port}")
    wire.close()
    assert response.status == 502


def test_kept_tunnels_end_with_the_certificate_of_their_parent(gateway, origin, parent, pki):
    there = origin(lambda _: reply(b"ok"), tls=pki.intermediate.issue(HOST).server_context())
    # The certificate's times are whole seconds.
    end = int(time.time()) + 4
    way = parent("https", pki.intermediate.issue(
        "parent.test", days=(-1, (end - time.time()) / 86400)))
    running = gateway({"workers": 1} | ways(way.url, tls={"roots": [str(pki.root.pem_file)]}))
    url = f"https://{HOST}:{there.port}/"
    assert running.get(url).status == 200
    accepted = way.accepted
    assert running.get(url).status == 200
    assert way.accepted == accepted, "it is kept"
    until(lambda: time.time() > end + 1, "it has expired")
    response = running.get(url)
    assert response.status == 502
    assert b"proxy-tls-failed" in response.body


@pytest.mark.parametrize("isSecure", [True, False], ids=["tunnel", "forwarded"])
def test_kept_connections_are_not_used_under_other_pins_of_their_parent(
    gateway, origin, parent, pki, isSecure
):
    there = origin(lambda _: reply(b"ok"), tls=pki.intermediate.issue(HOST).server_context()
                   if isSecure else None)
    way = parent("https", pki.intermediate.issue("parent.test"))
    running = gateway(ways(way.url, tls={"roots": [str(pki.root.pem_file)]}))
    url = f"{'https' if isSecure else 'http'}://{HOST}:{there.port}/"
    assert running.get(url).status == 200
    reload(running, {**running.config, "hosts": [{"match": ["parent.test"], "pinsets": ["wrong"]}],
                     "pinsets": {"wrong": {"mode": "publicKey", "pins": [WRONG_PIN]}}})
    response = running.get(url)
    assert response.status == 502
    assert b"proxy-tls-failed" in response.body
    assert len(there.requests) == 1


@pytest.mark.parametrize("scheme", ["http", "socks5h", "https server"])
def test_who_waits_for_a_server_that_is_removed_goes_to_another(gateway, pki, scheme):
    """By a parent, too: until now they waited for as long as it could take."""
    isSecure = scheme == "https server"
    release = threading.Event()
    with contextlib.ExitStack() as stack:
        certificate = pki.intermediate.issue("two.behind.test", "one.behind.test")
        two = stack.enter_context(serving(Origin(
            lambda connection: answer(connection), tls=certificate.server_context()
            if isSecure else None)))

        def answer(connection):
            while connection.read_request():
                connection.send(reply(b"two"))

        arrived = threading.Semaphore(0)

        class Stubborn(SOCKSParent if scheme == "socks5h" else HTTPParent):
            """A parent that does not answer for the first server."""

            def _proxy(self, connection):
                if scheme != "socks5h":
                    while (seen := connection.read_request()) is not None:
                        if "one.behind" in seen.target:
                            arrived.release()
                            release.wait(30)
                            return None
                        if seen.method == "CONNECT":
                            return self._tunnel(connection, seen)
                        self._forward(connection, seen)
                    return None
                connection.read_exactly(3)
                connection.send(b"\x05\x00")
                _, _, _, kind = connection.read_exactly(4)
                assert kind == 3
                host = connection.read_exactly(connection.read_exactly(1)[0])
                port = int.from_bytes(connection.read_exactly(2), "big")
                if host.startswith(b"one"):
                    arrived.release()
                    release.wait(30)
                    return None
                with socket.create_connection(("127.0.0.1", port), timeout=20) as there:
                    connection.send(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
                    relay(connection.socket, there)
                return None

        way = stack.enter_context(serving(Stubborn()))
        stack.callback(release.set)
        prefix = "https" if isSecure else "http"
        urls = [f"{prefix}://{name}.behind.test:{two.port}" for name in ("one", "two")]

        def route(*urls: str) -> dict:
            return {"listeners": [{
                "name": "back", "address": "127.0.0.1:0", "kind": "reverse", "upstreams": {
                    "servers": [{"url": url} for url in urls], "balance": "roundRobin",
                    "ejection": {"failures": 0}, "retries": {"attempts": 0}}}]}

        url = f"{'socks5h' if scheme == 'socks5h' else 'http'}://127.0.0.1:{way.port}"
        running = gateway({"workers": 1, "timeouts": {"connect": "1m", "firstByte": "1m"},
                           "limits": {"upstreamPerHost": 1},
                           "tls": {"roots": [str(pki.root.pem_file)]}} | ways(url) | route(urls[0]))
        wires = []
        # The first one has the connection, or the one that is being made; the second one waits.
        for _ in range(2):
            wires.append(stack.enter_context(running.wire("back")))
            wires[-1].send(request("/", host="front"))
            if len(wires) == 1:
                assert arrived.acquire(timeout=20)
        until(lambda: running.metric("pinfold_upstream_pool_waiting") >= 1, "one waits")
        listeners = running.config["listeners"]
        changed = {**running.config, "listeners": [
            {**one, **({"upstreams": route(urls[1])["listeners"][0]["upstreams"]}
                       if one["name"] == "back" else {})} for one in listeners]}
        began = time.monotonic()
        reload(running, changed)
        if scheme == "http":
            # The parent has one connection, which the first request is still on.
            until(lambda: running.metric(
                "pinfold_upstream_retries_total", reason="superseded") >= 1, "it goes on")
            release.set()
        response = wires[1].read()
        assert (response.status, response.body) == (200, b"two")
        assert time.monotonic() - began < 20


def test_the_limit_of_a_parent_holds_over_all_credentials(gateway, origin, parent):
    there = origin(lambda _: reply(b"ok"))
    lock, release = threading.Lock(), threading.Event()
    now, most = 0, 0

    def answer(asked):
        nonlocal now, most
        if asked.target != "*":
            with lock:
                now += 1
                most = max(most, now)
            release.wait(20)
            with lock:
                now -= 1
        return b""

    way = parent("http", None, answer)
    config = ways(way.url, limits={"upstreamPerHost": 2})
    config["parents"]["p0"]["authorization"] = "pass"
    running = gateway({"workers": 1} | config)
    url = f"http://{HOST}:{there.port}/"
    with contextlib.ExitStack() as stack:

        def ask(source: str, user: str):
            wire = stack.enter_context(wire_from(running, source))
            wire.send(request(url, Proxy_Authorization=basic(user, "x")))
            return wire

        wires = [ask("127.0.0.1", f"user{number}") for number in range(6)]
        until(lambda: running.metric("pinfold_upstream_pool_waiting") == 4, "the others wait")
        wires.append(ask("127.0.0.2", "other"))
        until(lambda: running.metric("pinfold_upstream_pool_waiting") == 5, "it waits, too")
        release.set()
        assert [wire.read().status for wire in wires] == [200] * 7
    assert most == 2
    # The other client has its turn after the two that were under way.
    order = [one.get("proxy-authorization") for one in way.requests]
    assert order.index(basic("other", "x")) == 2


@pytest.mark.parametrize("carrier", ["HTTP/1.1", "HTTP/2"])
def test_tunnels_with_many_credentials_are_within_the_limit(
    gateway, origin, http2_origin, pki, carrier
):
    context = pki.intermediate.issue(HOST).server_context()
    if carrier == "HTTP/2":
        context.set_alpn_protocols(["h2"])
        there = http2_origin(tls=context)
    else:
        there = origin(lambda _: reply(b"ok"), tls=context)
    lock = threading.Lock()
    now, most = 0, 0

    class Counting(HTTPParent):
        def _tunnel(self, connection, asked):
            nonlocal now, most
            with lock:
                now += 1
                most = max(most, now)
            super()._tunnel(connection, asked)
            with lock:
                now -= 1

    with serving(Counting()) as way:
        config = ways(way.url(""), limits={"upstreamPerHost": 2},
                      tls={"roots": [str(pki.root.pem_file)]})
        config["parents"]["p0"]["authorization"] = "pass"
        running = gateway({"workers": 2} | config)
        statuses = []

        def ask(client: int) -> None:
            with wire_from(running, f"127.0.0.{client + 1}") as wire:
                for number in range(8):
                    wire.send(request(f"https://{HOST}:{there.port}/", Proxy_Authorization=basic(
                        f"{client}-{number % 4}", "x")))
                    statuses.append(wire.read().status)

        threads = [threading.Thread(target=ask, args=(client,)) for client in range(6)]
        for one in threads:
            one.start()
        for one in threads:
            one.join(50)
        assert statuses == [200] * 48
        # The gateway may have closed one that the parent still has.
        assert most <= 4
        assert running.metric("pinfold_upstream_pool_waiting") == 0
        assert running.metric("pinfold_upstream_connections_open") <= 2


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
@pytest.mark.parametrize("hasOther", [True, False], ids=["another way", "no other way"])
def test_a_parent_whose_name_is_the_gateways_is_not_connected_to(gateway, origin, scheme, hasOther):
    there = origin(lambda _: reply(b"ok"))
    port = free_port()
    config = ways(f"{scheme}://parent.test:{port}", *(["direct"] if hasOther else []))
    running = gateway(config | {"listeners": [
        {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
        {"name": "own", "address": f"127.0.0.1:{port}",
         "kind": "socks5" if scheme == "socks5h" else "forward"}]})
    wire, response = running.connect(f"{HOST}:{there.port}")
    wire.close()
    answers = [response, running.get(f"http://{HOST}:{there.port}/")]
    if hasOther:
        assert [one.status for one in answers] == [200, 200]
    else:
        assert [one.status for one in answers] == [508, 508]
        assert b"proxy-loop" in answers[1].body
    assert running.metric("pinfold_parent_up", parent="p0") == 0
    assert {line["listener"] for line in running.wait_access(2)} == {"proxy"}
