"""Listeners of kind transparent: clients that know of no gateway, whose connections a firewall
leads to it. The firewall, the client and the servers are in network namespaces of the
tests' own."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator

import pytest
from support import namespaces
from support.checkout import PAGES
from support.gateway import ROOT, Gateway, run_pinfold
from support.interception import Inside
from support.namespaces import CLIENT, SERVER_6, SERVERS, Network
from support.origin import reply
from support.socks import is_closed
from support.upgrades import Succession
from support.wait import until
from support.wire import Closed, Wire

RIGHT, OTHER = "right.test", "other.test"
# Of linux/in.h.
IP_TRANSPARENT = 19
WITHOUT_CAPABILITIES = ["setpriv", "--bounding-set", "-net_admin,-net_raw", "--inh-caps", "-all"]
ACCESS_DENIED = b"\x15\x03\x03\x00\x02\x02\x31"


@pytest.fixture(scope="module")
def spaces() -> Iterator[Network]:
    try:
        made = Network()
        made.redirect(1)
    except namespaces.Unavailable as error:
        pytest.skip(f"TRANSPARENT LISTENERS ARE NOT TESTED: {error}")
    yield made
    made.close()


@pytest.fixture
def network(spaces, dns) -> Network:
    spaces.rules("")
    dns.set(RIGHT, SERVERS[0])
    dns.set(OTHER, SERVERS[1])
    return spaces


def listener(how: str = "redirect", **more: object) -> dict:
    return {"name": "gate", "address": "0.0.0.0:0", "kind": "transparent", "transparent": how,
            **more}


def config(one: dict | None = None, *others: dict, **more: object) -> dict:
    access = {"clients": ["10.9.0.0/24", "fd09::/64", "198.51.100.0/24", "127.0.0.0/8"],
              "connectPorts": [443],
              "destinations": {"allow": ["198.51.100.0/24", "2001:db8::/32"]}}
    access |= more.pop("access", {})
    return {"listeners": [one or listener(), *others], "access": access,
            "cache": {"enabled": False}, "workers": 1, **more}


@pytest.fixture
def led(network, gateway):
    """A gateway to which the firewall leads what the client sends to the servers."""

    def make(*arguments: dict, ports: str = "80, 443", **more: object) -> Gateway:
        running = gateway(config(*arguments, **more))
        network.redirect(running.listeners["gate"][1], ports)
        return running

    return make


@pytest.fixture
def serve(network, origin):
    """Servers at an address of the router that say who they are."""

    def make(name: str, address: str, port: int = 80, **options: object):
        at = socket.create_server((address, port), family=socket.AF_INET6 if ":" in address
                                  else socket.AF_INET)
        handler = options.pop("handler", lambda _: reply(name.encode(), "200 OK",
                                                         "Cache-Control: max-age=60"))
        return origin(handler, listener=at, **options)

    return make


@pytest.fixture
def right(serve):
    return serve("right", SERVERS[0])


@pytest.fixture
def other(serve):
    return serve("other", SERVERS[1])


@pytest.fixture
def secure(serve, pki):
    leaf = pki.intermediate.issue(RIGHT)
    return serve("right", SERVERS[0], 443, tls=leaf.server_context())


def curl(network: Network, *arguments: str, code: int = 0) -> str:
    with network.at_client():
        done = subprocess.run(["curl", "-q", "-sS", "--max-time", "20", *arguments],
                              capture_output=True, text=True, timeout=30)
    assert done.returncode == code, f"{done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def at(host: str, address: str) -> list[str]:
    """curl's options for a host that has this address, as far as the client knows."""
    return ["--resolve", f"{host}:80:{address}", "--resolve", f"{host}:443:{address}"]


def wire(network: Network, address: str = SERVERS[0], port: int = 80) -> Wire:
    return Wire(("", 0), sock=network.connect(address, port))


def asked(network: Network, lines: str, address: str = SERVERS[0], port: int = 80):
    """The answer to a request, of which `lines` is all but the end of the head."""
    with wire(network, address, port) as made:
        made.send(lines + "\r\n\r\n")
        return made.read_final(lines.split()[0])


def get(network: Network, host: str, address: str = SERVERS[0], port: int = 80):
    return asked(network, f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close", address, port)


def refused(running: Gateway, cause: str) -> float:
    return running.metric("pinfold_transparent_refused_total", cause=cause)


def foreign(running: Gateway) -> float:
    return running.metric("pinfold_transparent_foreign_addresses_total")


def carried(running: Gateway, protocol: str) -> float:
    return running.metric("pinfold_transparent_connections_total", protocol=protocol)


def opened(running: Gateway) -> float:
    """How many connections clients have open, without the one of who asks."""
    return running.metric("pinfold_client_connections_open") - 1


# HTTP in clear text


def test_a_request_goes_to_the_host_that_it_names(network, led, right):
    running = led()
    assert curl(network, *at(RIGHT, SERVERS[0]), f"http://{RIGHT}/x?y") == "right"
    assert right.requests[0].get("host") == RIGHT and right.requests[0].target == "/x?y"
    assert "pinfold" in right.requests[0].get("via")
    (logged,) = running.wait_access()
    assert logged["authority"] == f"{RIGHT}:80" and logged["target"] == "/x?y"
    assert logged["client"].startswith(CLIENT) and logged["version"] == "HTTP/1.1"
    assert logged["listener"] == "gate" and "original" not in logged
    assert carried(running, "http") == 1 and foreign(running) == 0


def test_the_combined_log_has_the_whole_url(network, led, right):
    running = led(log={"access": {"format": "combined"}})
    assert get(network, RIGHT).status == 200
    line = until(running.access_file.read_text, "a line")
    assert f'"GET http://{RIGHT}:80/ HTTP/1.1" 200' in line


def test_a_forged_host_is_not_reached_at_another_address(network, led, right, other):
    running = led(cache={"enabled": True})
    assert get(network, RIGHT, SERVERS[1]).body == b"right"
    assert other.accepted == 0
    (logged,) = running.wait_access()
    assert logged["original"] == f"{SERVERS[1]}:80" and logged["upstream"] == f"{SERVERS[0]}:80"
    assert foreign(running) == 1
    # What is stored under the name is the name's own.
    assert get(network, RIGHT).body == b"right"
    assert running.wait_access(2)[1]["cache"] == "hit" and len(right.requests) == 1


def test_each_request_of_a_connection_is_for_its_own_host(network, led, right, other):
    running = led()
    with wire(network) as made:
        for host, body in ((RIGHT, b"right"), (OTHER, b"other"), (RIGHT, b"right")):
            made.send(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")
            assert made.read_final("GET").body == body
    lines = running.wait_access(3)
    assert [line.get("original") for line in lines] == [None, f"{SERVERS[0]}:80", None]
    assert foreign(running) == 1


def test_the_port_is_that_of_the_connection(network, led, serve):
    there = serve("eight", SERVERS[0], 8080)
    led(ports="8080")
    assert get(network, f"{RIGHT}:9999", port=8080).body == b"eight"
    assert get(network, RIGHT, port=8080).body == b"eight"
    assert {one.get("host") for one in there.requests} == {f"{RIGHT}:8080"}


def test_without_a_host_the_address_is_the_host(network, led, right):
    running = led()
    assert asked(network, "GET / HTTP/1.0").body == b"right"
    assert right.requests[0].get("host") == SERVERS[0]
    assert running.wait_access()[0]["authority"] == f"{SERVERS[0]}:80"


def test_a_client_that_speaks_to_a_proxy_is_told_so(network, led, right):
    led()
    absolute = f"GET http://{RIGHT}/ HTTP/1.1\r\nHost: {RIGHT}\r\nConnection: close"
    assert asked(network, absolute).body == b"right"
    for lines in (f"CONNECT {RIGHT}:443 HTTP/1.1\r\nHost: {RIGHT}:443",
                  f"GET https://{RIGHT}/ HTTP/1.1\r\nHost: {RIGHT}",
                  f"GET http://{RIGHT}:81/ HTTP/1.1\r\nHost: {RIGHT}:81"):
        answer = asked(network, lines)
        assert answer.status == 400 and b"request-for-a-proxy" in answer.body, lines


def test_a_malformed_request_is_answered(network, led, right):
    led()
    assert asked(network, "GET / HTTP/1.1\r\nHost: a b").status == 400
    assert asked(network, "GET /" + "a" * 80_000).status in (400, 414)
    assert right.accepted == 0


def test_rules_and_lists_judge_by_name(network, led, right, other):
    running = led(
        hosts=[{"match": [RIGHT]}, {"match": [OTHER]}],
        access={"hosts": "listed", "rules": [{"name": "no", "hosts": [OTHER], "action": "deny"}]})
    assert get(network, RIGHT).status == 200
    assert b"denied-by-rule" in get(network, OTHER, SERVERS[1]).body
    # Neither by the address of an allowed host, nor by none.
    assert get(network, OTHER).status == 403
    assert b"host-not-listed" in asked(network, "GET / HTTP/1.0", SERVERS[1]).body
    assert other.accepted == 0 and foreign(running) == 0


def test_names_that_are_refused_are_not_looked_up(network, led, dns):
    led(access={"rules": [{"name": "no", "hosts": [OTHER], "action": "deny"}]})
    assert get(network, OTHER).status == 403
    assert dns.asked(OTHER) == 0


def test_a_request_may_be_sent_as_verified_tls(network, led, secure, pki):
    running = led(
        tls={"roots": [str(pki.root.pem_file)]},
        hosts=[{"match": [RIGHT], "upgrade": "https", "pinsets": ["p"]}],
        pinsets={"p": {"mode": "publicKey", "pins": [pki.intermediate.pin]}})
    assert get(network, RIGHT).body == b"right"
    assert running.wait_access()[0]["upstream"] == f"{SERVERS[0]}:443"


def test_destinations_apply(network, led, right):
    led(access={"destinations": {"deny": [SERVERS[0]], "allow": ["198.51.100.0/24"]}})
    assert b"destination-refused" in get(network, RIGHT).body
    assert right.accepted == 0


def test_http2_may_be_spoken_by_prior_knowledge(network, led, right, other):
    running = led()
    assert curl(network, *at(RIGHT, SERVERS[1]), "--http2-prior-knowledge",
                f"http://{RIGHT}/") == "right"
    (logged,) = running.wait_access()
    assert logged["version"] == "HTTP/2.0" and logged["authority"] == f"{RIGHT}:80"
    assert logged["original"] == f"{SERVERS[1]}:80" and other.accepted == 0


def test_http2_may_be_turned_off(network, led, right):
    led(listener(http2="off"))
    assert asked(network, "PRI * HTTP/2.0").status in (400, 505)


# TLS


def test_tls_passes_to_the_host_that_it_names(network, led, secure, pki):
    running = led()
    assert curl(network, *at(RIGHT, SERVERS[0]), "--cacert", str(pki.root.pem_file),
                f"https://{RIGHT}/") == "right"
    (logged,) = running.wait_access()
    assert (logged["method"], logged["target"], logged["version"], logged["status"]) == (
        "CONNECT", f"{RIGHT}:443", "TLS", 200)
    assert "original" not in logged
    assert carried(running, "tls") == 1 and foreign(running) == 0


def test_a_forged_name_is_not_reached_at_another_address(network, led, secure, serve, pki):
    rogue = serve("rogue", SERVERS[1], 443, tls=pki.self_signed(RIGHT).server_context())
    running = led()
    assert curl(network, *at(RIGHT, SERVERS[1]), "--cacert", str(pki.root.pem_file),
                f"https://{RIGHT}/") == "right"
    assert rogue.accepted == 0
    assert running.wait_access()[0]["original"] == f"{SERVERS[1]}:443"
    assert foreign(running) == 1


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("isRight", [True, False])
def test_pins_are_checked_in_the_passing_handshake(network, led, secure, pki, version, isRight):
    pin = pki.intermediate.pin if isRight else pki.other_root.pin
    running = led(
        tls={"roots": [str(pki.root.pem_file)]},
        hosts=[{"match": [RIGHT], "tunnel": "inspect", "tls13Tunnel": "probe", "pinsets": ["p"]}],
        pinsets={"p": {"mode": "publicKey", "pins": [pin]}})
    found = curl(network, *at(RIGHT, SERVERS[0]), "-k", f"--tlsv{version}", "--tls-max", version,
                 f"https://{RIGHT}/", code=0 if isRight else 35)
    assert found == ("right" if isRight else "")
    (logged,) = running.wait_access()
    assert logged["inspected"] == (("probed" if version == "1.3" else "verified") if isRight
                                   else "refused")
    assert logged.get("reason") == (None if isRight else "tls-no-pin-matches")
    assert b"GET" not in secure.application_bytes or isRight


@pytest.mark.parametrize("isRight", [True, False])
def test_interception_serves_the_requests_inside(network, led, secure, pki, authority, isRight):
    pin = pki.intermediate.pin if isRight else pki.other_root.pin
    running = led(
        tls={"roots": [str(pki.root.pem_file)]}, interception=authority.section,
        hosts=[{"match": [RIGHT], "intercept": True, "pinsets": ["p"]}],
        pinsets={"p": {"mode": "publicKey", "pins": [pin]}})
    found = curl(network, *at(RIGHT, SERVERS[1]), "--cacert", str(authority.file),
                 f"https://{RIGHT}/inside", code=0 if isRight else 35)
    assert found == ("right" if isRight else "")
    lines = running.wait_access(2 if isRight else 1)
    if isRight:
        assert secure.requests[0].target == "/inside"
        inside = next(line for line in lines if line["method"] == "GET")
        assert inside["intercepted"] and inside["tunnel"] == f"{RIGHT}:443"
        assert inside["original"] == f"{SERVERS[1]}:443"
    else:
        assert lines[0]["reason"] == "tls-no-pin-matches"


def test_without_a_name_the_address_is_the_host(network, led, secure):
    running = led()
    assert curl(network, "-k", f"https://{SERVERS[0]}/") == "right"
    assert running.wait_access()[0]["target"] == f"{SERVERS[0]}:443"


def hello(pki, name: str | None) -> bytes:
    return Inside(pki.root.pem_file, name).hello


def test_who_is_denied_is_told_by_an_alert(network, led, secure, pki):
    running = led(hosts=[{"match": [RIGHT]}],
                  access={"hosts": "listed", "rules": [
                      {"name": "no", "hosts": [RIGHT], "action": "deny"}]})
    for name, reason in ((RIGHT, "denied-by-rule"), (None, "host-not-listed")):
        with wire(network, port=443) as made:
            made.send(hello(pki, name))
            assert is_closed(made, ACCESS_DENIED)
    assert [line["reason"] for line in running.wait_access(2)] == ["denied-by-rule",
                                                                  "host-not-listed"]
    assert secure.accepted == 0


def test_a_server_that_is_not_there_is_told_by_an_alert(network, led, pki):
    led()
    with wire(network, port=443) as made:
        made.send(hello(pki, RIGHT))
        assert made.read_to_end()[:1] == b"\x15"


def test_the_hello_may_arrive_byte_by_byte(network, led, secure, pki):
    running = led()
    with wire(network, port=443) as made:
        for byte in hello(pki, RIGHT):
            made.send(bytes([byte]))
        assert made.read_exactly(1) == b"\x16"
    assert running.wait_access()[0]["target"] == f"{RIGHT}:443"


@pytest.mark.parametrize("change", ["address", "nonsense", "length"])
def test_a_name_that_cannot_be_read_is_refused(network, led, secure, pki, change):
    running = led()
    said = hello(pki, "aaaaaaaaaaaa.test")
    place = said.index(b"aaaaaaaaaaaa.test")
    if change == "address":
        said = said.replace(b"aaaaaaaaaaaa.test", b"198.051.100.00001"[:17]).replace(
            b"198.051.100.00001", b"::ffff:198.51.1.1")
    elif change == "nonsense":
        said = said.replace(b"aaaaaaaaaaaa.test", b"aaaaaaaaaaaa:443/")
    else:
        said = said[:place - 1] + bytes([said[place - 1] + 1]) + said[place:]
    with wire(network, port=443) as made:
        made.send(said)
        assert is_closed(made)
    assert refused(running, "malformed") == 1
    assert secure.accepted == 0


# Anything else


def echo(connection) -> None:
    while connection._more():
        connection.send(connection.buffer)
        connection.buffer = b""


@pytest.fixture
def echoing(network, scripted_origin):
    return scripted_origin(echo, listener=socket.create_server((SERVERS[0], 2222)))


def test_other_protocols_are_tunnelled_to_the_address(network, led, echoing):
    running = led(ports="2222", access={"connectPorts": [2222]})
    with wire(network, port=2222) as made:
        made.send(b"SSH-2.0-test\r\n")
        assert made.read_exactly(14) == b"SSH-2.0-test\r\n"
    (logged,) = running.wait_access()
    assert logged["target"] == f"{SERVERS[0]}:2222" and logged["version"] == "TCP"
    assert carried(running, "other") == 1


def test_they_are_closed_where_the_port_may_not_be_tunnelled(network, led, echoing):
    running = led(ports="2222")
    with wire(network, port=2222) as made:
        made.send(b"SSH-2.0-test\r\n")
        assert is_closed(made)
    assert running.wait_access()[0]["reason"] == "connect-port-refused"
    assert echoing.accepted == 0


def test_where_servers_speak_first_nothing_is_awaited(network, led, scripted_origin):
    def greet(connection) -> None:
        connection.send(b"220 here\r\n")
        echo(connection)

    scripted_origin(greet, listener=socket.create_server((SERVERS[0], 2525)))
    running = led(listener(serverFirst=[2525]), ports="2525", access={"connectPorts": [2525]})
    with wire(network, port=2525) as made:
        assert made.read_exactly(10) == b"220 here\r\n"
        made.send(b"QUIT\r\n")
        assert made.read_exactly(6) == b"QUIT\r\n"
    assert running.wait_access()[0]["target"] == f"{SERVERS[0]}:2525"
    assert carried(running, "server_first") == 1


@pytest.mark.parametrize("said", [b"HELLO", b"USER somebody", b"\r"])
def test_who_awaits_an_answer_to_a_text_without_end_is_tunnelled(network, led, echoing, said):
    running = led(ports="2222", access={"connectPorts": [2222]}, timeouts={"head": "60s"})
    with wire(network, port=2222) as made:
        made.send(said)
        assert made.read_exactly(len(said)) == said
    assert running.wait_access()[0]["version"] == "TCP" and carried(running, "other") == 1


def test_who_finishes_with_a_text_without_end_is_tunnelled(network, led, echoing):
    running = led(ports="2222", access={"connectPorts": [2222]}, timeouts={"head": "60s"})
    with wire(network, port=2222) as made:
        made.send(b"HELLO")
        made.half_close()
        assert made.read_to_end() == b"HELLO"
    assert carried(running, "other") == 1


def test_a_pause_within_a_request_line_makes_it_nothing_else(network, led, right):
    """As when a packet is lost."""
    led(timeouts={"head": "60s"})
    with wire(network) as made:
        made.send("GET /some")
        # Longer than what is taken for the wait for an answer.
        time.sleep(0.8)
        made.send(f"where HTTP/1.1\r\nHost: {RIGHT}\r\n\r\n")
        assert made.read_final("GET").body == b"right"
    assert right.requests[0].target == "/somewhere"


@pytest.mark.parametrize("end", ["half_close", "close", "reset"])
@pytest.mark.parametrize("said", [b"GET / HT", b"\x16\x03\x01"])
def test_who_leaves_before_it_has_said_enough_is_not_kept(network, led, right, said, end):
    running = led(timeouts={"head": "60s"})
    with wire(network) as made:
        made.send(said)
        begun(running, 1)
        getattr(made, end)()
        until(lambda: opened(running) == 0, "it is closed")
        assert end != "half_close" or is_closed(made)
    assert running.metric("pinfold_client_head_buffer_bytes") == 0
    assert refused(running, "timeout") == 0 and right.accepted == 0


@pytest.mark.parametrize(("said", "cause"), [(b"", "silent"), (b"GET / HT", "timeout"),
                                             (b"\x16\x03\x01", "timeout")])
def test_who_says_nothing_or_too_little_is_closed(network, led, right, said, cause):
    running = led(timeouts={"head": "1s"})
    with wire(network) as made:
        made.send(said)
        assert is_closed(made)
    assert refused(running, cause) == 1
    assert "transparent-" + cause in running.wait_log("a connection at a transparent listener")


def test_a_client_has_no_more_connections_than_elsewhere(network, led, right):
    running = led(limits={"perClient": {"connections": 2}})
    with wire(network) as first, wire(network) as second, wire(network) as third:
        # The first one has said nothing, and makes room.
        assert is_closed(first)
        second.send(f"GET / HTTP/1.1\r\nHost: {RIGHT}\r\n\r\n")
        assert second.read_final("GET").body == b"right"
        third.send(f"GET / HTTP/1.1\r\nHost: {RIGHT}\r\n\r\n")
        assert third.read_final("GET").body == b"right"
    until(lambda: opened(running) == 0, "none is left")


def begun(running: Gateway, count: int) -> None:
    """So many connections have begun to say something, as far as the gateway has seen it."""
    until(lambda: opened(running) >= count, "they are accepted")
    until(lambda: running.metric("pinfold_client_head_buffer_bytes") > 0, "it has been seen")


@pytest.mark.parametrize("said", [b"GET / HT", b"\x16\x03\x01"])
def test_who_stops_within_its_first_words_makes_room(network, led, right, said):
    running = led(limits={"connections": 2}, timeouts={"head": "60s"})
    with wire(network) as first, wire(network) as second:
        first.send(said)
        begun(running, 1)
        second.send(said)

        def served() -> bool:
            try:
                return get(network, RIGHT).status == 200
            except (OSError, Closed):
                return False

        until(served, "after a second one of them makes room")
        assert is_closed(first)
        assert running.metric("pinfold_client_connections_evicted_total", state="head") == 1


def test_who_stops_within_its_first_words_hides_nobody_idle(network, led, right):
    running = led(limits={"connections": 7}, timeouts={"head": "60s"})
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(wire(network)) for _ in range(6)]
        for one in slow:
            one.send(b"GET / HT")
        silent = stack.enter_context(wire(network))
        until(lambda: opened(running) == 7, "all are accepted")
        until(lambda: running.metric("pinfold_client_head_buffer_bytes") == 6 * 8, "all are seen")
        assert get(network, RIGHT).status == 200
        assert is_closed(silent)
        assert running.metric("pinfold_client_connections_evicted_total", state="head") == 0
        slow[0].send(f"TP/1.1\r\nHost: {RIGHT}\r\n\r\n")
        assert slow[0].read_final("GET").body == b"right"


def test_a_drain_waits_for_those_who_have_begun(network, led, right):
    running = led(timeouts={"head": "60s"})
    with wire(network) as made, wire(network) as silent:
        made.send(b"GET / HT")
        begun(running, 2)
        running.signal(signal.SIGTERM)
        # Who has said nothing is closed after a while, and all idle ones with it.
        assert is_closed(silent)
        made.send(f"TP/1.1\r\nHost: {RIGHT}\r\n\r\n")
        assert made.read_final("GET").body == b"right"
        assert is_closed(made)
    assert running.wait_exit() == 0


def test_parents_are_asked_for_the_name(network, led, gateway, right, secure, pki):
    parent = gateway({"listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"}],
                      "access": {"destinations": {"allow": ["198.51.100.0/24"]}}})
    running = led(parents={"corp": {"url": parent.proxy_url}}, ways={"parents": ["corp"]})
    assert get(network, RIGHT, SERVERS[1]).body == b"right"
    assert curl(network, *at(RIGHT, SERVERS[1]), "--cacert", str(pki.root.pem_file),
                f"https://{RIGHT}/") == "right"
    assert [line["parent"] for line in running.wait_access(2)] == ["corp", "corp"]
    assert {line["target"] for line in parent.wait_access(2)} == {
        f"http://{RIGHT}/", f"{RIGHT}:443"}
    # The parent resolves the name: nothing is known of the address.
    assert foreign(running) == 0


def test_a_host_is_compared_once_no_parent_is_asked_for_it(network, led, gateway, right):
    parent = gateway({"listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"}],
                      "access": {"destinations": {"allow": ["198.51.100.0/24"]}}})
    running = led(parents={"corp": {"url": parent.proxy_url}},
                  access={"rules": [{"name": "up", "hosts": [RIGHT], "methods": ["POST"],
                                     "action": "allow", "parents": ["corp"]}]})
    with wire(network, SERVERS[1]) as made:
        made.send(f"POST / HTTP/1.1\r\nHost: {RIGHT}\r\nContent-Length: 0\r\n\r\n")
        assert made.read_final("POST").body == b"right"
        assert foreign(running) == 0
        made.send(f"GET / HTTP/1.1\r\nHost: {RIGHT}\r\n\r\n")
        assert made.read_final("GET").body == b"right"
    through, direct = running.wait_access(2)
    assert through["parent"] == "corp" and "original" not in through
    assert "parent" not in direct and direct["original"] == f"{SERVERS[1]}:80"
    assert foreign(running) == 1


# Connections that nobody has led here


@pytest.mark.parametrize("isTracked", [True, False])
def test_a_connection_to_the_port_itself_is_refused(network, led, isTracked):
    running = led()
    if not isTracked:
        network.rules("")
    port = running.listeners["gate"][1]
    for address, connect in ((namespaces.ROUTER, network.connect),
                             ("127.0.0.1", lambda *to: socket.create_connection(to, 20))):
        with Wire(("", 0), sock=connect(address, port)) as made:
            assert is_closed(made)
    # A connection that is not tracked has no destination that is known.
    until(lambda: refused(running, "direct") + refused(running, "unknown") == 2, "both are counted")
    if isTracked:
        assert refused(running, "direct") == 2


@pytest.mark.parametrize("port", [80, 443])
def test_the_gateways_own_connections_do_not_go_round(network, gateway, right, secure, pki, port):
    running = gateway(config(access={"clients": ["198.51.100.0/24"]}))
    network.redirect_local(running.listeners["gate"][1])
    with socket.create_connection((SERVERS[0], port), 20) as sock:
        made = Wire(("", 0), sock=sock)
        made.send(hello(pki, RIGHT) if port == 443 else f"GET / HTTP/1.1\r\nHost: {RIGHT}\r\n\r\n")
        if port == 443:
            assert is_closed(made)
        else:
            assert made.read_final("GET").status == 502
    assert 1 <= refused(running, "own_connection") <= 3
    assert right.accepted == secure.accepted == 0
    running.wait_log("transparent-own-connection")


def test_clients_on_the_same_machine_are_served(network, gateway, right):
    """As beside an application, where the firewall exempts the gateway's user."""
    running = gateway(config(access={"clients": ["198.51.100.0/24"]}))
    port = running.listeners["gate"][1]
    network.rules(f"""
        table ip transparent {{
            chain output {{
                type nat hook output priority -100;
                ip daddr 198.51.100.0/24 tcp dport 80 tcp sport 20000-20999 redirect to :{port}
            }}
        }}""")
    with socket.create_connection((SERVERS[0], 80), 20, (namespaces.LOCAL, 20001)) as sock:
        made = Wire(("", 0), sock=sock)
        made.send(f"GET / HTTP/1.1\r\nHost: {RIGHT}\r\n\r\n")
        assert made.read_final("GET").body == b"right"
    assert running.wait_access()[0]["client"].startswith(namespaces.LOCAL)


# IPv6, iptables and TPROXY


@pytest.mark.parametrize("how", ["redirect", "tproxy"])
def test_ipv6(network, gateway, serve, dns, how):
    dns.set("six.test", SERVER_6)
    serve("six", SERVER_6)
    running = gateway(config({**listener(how), "address": "[::]:0"}))
    getattr(network, how)(running.listeners["gate"][1])
    assert get(network, "six.test", SERVER_6).body == b"six"
    assert asked(network, "GET / HTTP/1.0", SERVER_6).body == b"six"
    assert running.wait_access(2)[1]["authority"] == f"[{SERVER_6}]:80"
    assert foreign(running) == 0


def test_rules_of_iptables(network, gateway, right):
    if shutil.which("iptables") is None:
        pytest.skip("iptables is not installed: its rules are not tested")
    running = gateway(config())
    namespaces.run("iptables", "-t", "nat", "-A", "PREROUTING", "-i", "inner", "-p", "tcp",
                   "--dport", "80", "-j", "REDIRECT", "--to-ports",
                   str(running.listeners["gate"][1]))
    assert get(network, RIGHT).body == b"right"


@pytest.fixture
def tproxied(network, gateway):
    def make(**more: object) -> Gateway:
        running = gateway(config(listener("tproxy"), **more))
        network.tproxy(running.listeners["gate"][1])
        return running

    return make


def test_tproxy_leads_both_kinds_of_clients(network, tproxied, right, other, secure, pki):
    running = tproxied()
    assert get(network, RIGHT).body == b"right"
    assert get(network, RIGHT, SERVERS[1]).body == b"right"
    assert curl(network, *at(RIGHT, SERVERS[1]), "--cacert", str(pki.root.pem_file),
                f"https://{RIGHT}/") == "right"
    lines = running.wait_access(3)
    assert [line.get("original") for line in lines] == [
        None, f"{SERVERS[1]}:80", f"{SERVERS[1]}:443"]
    assert other.accepted == 0


def test_a_connection_to_the_port_of_tproxy_is_refused(network, tproxied):
    running = tproxied()
    with Wire(("", 0), sock=network.connect(namespaces.ROUTER,
                                            running.listeners["gate"][1])) as made:
        assert is_closed(made)
    assert refused(running, "direct") == 1


def test_tproxy_needs_a_capability(network, gateway):
    made = gateway(config(listener("tproxy")), start=False)
    made.launcher = WITHOUT_CAPABILITIES
    made.start(wait=False)
    assert made.wait_exit() != 0
    assert "CAP_NET_ADMIN" in made.log() and "gate" in made.log()


def test_a_socket_that_is_transparent_needs_none(network, gateway, right):
    """As systemd makes it with Transparent=yes."""
    with socket.socket() as passed:
        passed.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        passed.setsockopt(socket.SOL_IP, IP_TRANSPARENT, 1)
        passed.bind(("0.0.0.0", 0))
        passed.listen()
        port = passed.getsockname()[1]
        made = gateway(config({**listener("tproxy"), "address": "fd:gate"}), start=False)
        passed_to(made, passed, *WITHOUT_CAPABILITIES)
    network.tproxy(port)
    assert get(network, RIGHT).body == b"right"
    assert get(network, RIGHT, SERVERS[1]).body == b"right"
    assert made.wait_access(2)[1]["original"] == f"{SERVERS[1]}:80"


def passed_to(made: Gateway, sock: socket.socket, *launcher: str) -> Gateway:
    made.passed = (sock.fileno(),)
    made.launcher = [
        *launcher, str(ROOT / ".build-venv/bin/python"),
        str(ROOT / "Tests/Integration/support/activation.py"), f"gate={sock.fileno()}", "--"]
    return made.start()


@pytest.mark.parametrize("how", ["redirect", "tproxy"])
def test_a_passed_socket_may_be_for_both_families(network, gateway, right, serve, dns, how):
    dns.set("six.test", SERVER_6)
    serve("six", SERVER_6)
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as sock:
        port = sock.getsockname()[1]
        made = gateway(config({**listener(how), "address": "fd:gate"}), start=False)
        passed_to(made, sock)
    getattr(network, how)(port)
    assert get(network, RIGHT).body == b"right"
    assert get(network, "six.test", SERVER_6).body == b"six"
    assert asked(network, "GET / HTTP/1.0").body == b"right"
    assert [line["authority"] for line in made.wait_access(3)] == [
        f"{RIGHT}:80", "six.test:80", f"{SERVERS[0]}:80"]
    assert foreign(made) == 0
    with Wire(("", 0), sock=network.connect(namespaces.ROUTER, port)) as direct:
        assert is_closed(direct)
    assert refused(made, "direct") == 1


# Reload and upgrade


def test_a_reload_changes_how_connections_are_led(network, gateway, right):
    running = gateway(config(listener("redirect")))
    port = running.listeners["gate"][1]
    network.redirect(port)
    assert get(network, RIGHT).body == b"right"
    with wire(network) as kept:
        kept.send(f"GET / HTTP/1.1\r\nHost: {RIGHT}\r\n\r\n")
        assert kept.read_final("GET").body == b"right"
        running.write_config(running.config | {"listeners": [listener("tproxy")]})
        running.signal(signal.SIGHUP)
        assert is_closed(kept)
    network.tproxy(port)
    assert get(network, RIGHT).body == b"right"


@pytest.mark.parametrize("how", ["redirect", "tproxy"])
def test_a_successor_goes_on(network, gateway, right, how):
    made = gateway(config(listener(how, serverFirst=[25]), workers=2), start=False)
    with contextlib.closing(Succession(made)) as one:
        getattr(network, how)(made.listeners["gate"][1])
        assert get(network, RIGHT).body == b"right"
        one.upgrade()
        for _ in range(4):
            assert get(network, RIGHT, SERVERS[1]).body == b"right"
        assert {line.get("original") for line in made.wait_access(5)} == {None, f"{SERVERS[1]}:80"}


# What is said about them


def test_explain_check_and_status_know_them(network, led, workspace):
    running = led(hosts=[{"match": [RIGHT], "tunnel": "inspect"}],
                  access={"rules": [{"name": "no", "listeners": ["gate"], "hosts": [OTHER],
                                     "action": "deny"}]})
    file = str(running.config_file)
    done = run_pinfold("explain", f"https://{RIGHT}/", "--address", SERVERS[0], "--listener",
                       "gate", "--config", file)
    assert "led to the transparent listener gate: inspected" in done.stdout, done.stdout
    done = run_pinfold("explain", f"http://{RIGHT}/", "--address", SERVERS[0], "--config", file)
    assert "led to the transparent listener gate: sent in clear text" in done.stdout, done.stdout
    done = run_pinfold("explain", f"https://{OTHER}/", "--address", SERVERS[1], "--json",
                       "--config", file)
    (way,) = json.loads(done.stdout)["ways"]
    assert way["asking"] == "transparent" and way["listener"] == "gate"
    assert way["reason"] == "denied-by-rule" and done.returncode == 1
    printed = run_pinfold("check", "--config", file).stdout
    assert "transparent: redirect" in printed and "serverFirst: []" in printed
    admin = "%s:%d" % running.admin
    status = json.loads(run_pinfold("status", "--json", "--admin", admin).stdout)
    assert "transparent" in {one["kind"] for one in status["listeners"]}


def test_the_rules_of_the_page_are_rules(network):
    page = PAGES["WaysIn"].read_text()
    tables = re.findall(r"^```text\n(table ip.*?)^```", page, re.M | re.S)
    assert len(tables) == 3
    for text in tables:
        network.rules(text.replace("meta skuid != pinfold", "meta skuid != 0"))
        assert "hook" in namespaces.run("nft", "list", "ruleset")
    commands = re.findall(r"^((?:iptables|ip rule|ip route) .*)$", page.replace("\\\n", ""), re.M)
    assert len(commands) == 10
    for command in commands:
        if command.startswith("ip ") or shutil.which("iptables"):
            # The table is in use by other tests, and the user is not on every machine.
            command = command.replace(namespaces.TABLE, "209").replace("owner pinfold", "owner 0")
            namespaces.run(*command.split())
