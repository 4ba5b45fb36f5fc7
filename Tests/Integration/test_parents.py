"""Requests and tunnels through another proxy: what it is asked, and what it is told."""

from __future__ import annotations

import contextlib
import ssl

import pytest
from support.gateway import run_pinfold
from support.interception import ask_inside
from support.origin import reply, serving
from support.parents import HTTPParent, SOCKSParent, basic, ways
from support.secure import reload, reverse, tls_of
from support.wait import until
from support.wire import request
from test_connect import echo

SCHEMES = ["http", "https", "socks5", "socks5h"]
HOST = "api.behind.test"


@pytest.fixture
def parent(pki):
    """parent(scheme, …): a parent in the test's hands, and its URL."""
    with contextlib.ExitStack() as stack:

        def make(scheme: str = "http", *arguments, **options):
            if scheme.startswith("socks"):
                made = stack.enter_context(serving(SOCKSParent(*arguments, **options)))
            else:
                if scheme == "https":
                    options["tls"] = pki.intermediate.issue("parent.test").server_context()
                made = stack.enter_context(serving(HTTPParent(*arguments, **options)))
            made.url = f"{scheme}://parent.test:{made.port}"
            return made

        yield make


def trusting(pki, **more) -> dict:
    return {"tls": {"roots": [str(pki.root.pem_file)]}, **more}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_request_in_clear_text_goes_through_a_parent(gateway, origin, parent, pki, scheme):
    there = origin(lambda asked: reply(asked.target.encode()))
    way = parent(scheme)
    running = gateway(ways(way.url, **trusting(pki)))
    url = f"http://{HOST}:{there.port}/a?b=c"
    for _ in range(2):
        response = running.get(url)
        assert (response.status, response.body) == (200, b"/a?b=c")
    expected = {"http": f"GET {url}", "https": f"GET {url}", "socks5": f"127.0.0.1 {there.port}",
                "socks5h": f"{HOST} {there.port}"}[scheme]
    assert set(way.asked) == {expected}
    assert [line["parent"] for line in running.wait_access(2)] == ["p0", "p0"]
    assert running.metric("pinfold_parent_requests_total", parent="p0") == 2
    assert running.metric("pinfold_parent_up", parent="p0") == 1
    # What the server got is as without a parent.
    assert there.requests[0].get("host") == f"{HOST}:{there.port}"
    assert "pinfold" in there.requests[0].get("via")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("right", [True, False], ids=["right", "wrong"])
def test_pins_are_checked_through_a_parent(gateway, origin, parent, pki, scheme, right):
    leaf = pki.intermediate.issue(HOST)
    there = origin(lambda _: reply(b"pinned"), tls=leaf.server_context())
    way = parent(scheme)
    pin = leaf.pin if right else "sha256/" + "A" * 43 + "="
    running = gateway(ways(way.url, **trusting(
        pki, hosts=[{"match": [HOST], "upgrade": "https", "pinsets": ["p"]}],
        pinsets={"p": {"mode": "publicKey", "pins": [pin]}})))
    response = running.get(f"http://{HOST}:{there.port}/")
    if right:
        assert (response.status, response.body) == (200, b"pinned")
    else:
        assert response.status == 502
        assert b"tls-no-pin-matches" in response.body
        assert there.application_bytes == b""
    if not scheme.startswith("socks"):
        assert way.asked == [f"CONNECT {HOST}:{there.port}"]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_tunnel_leads_through_a_parent(gateway, scripted_origin, parent, pki, scheme):
    there = scripted_origin(echo)
    way = parent(scheme)
    running = gateway(ways(way.url, **trusting(pki)))
    wire, response = running.connect(f"{HOST}:{there.port}")
    with wire:
        assert response.status == 200
        data = bytes(range(256)) * 4000
        wire.send(data)
        assert wire.read_exactly(len(data)) == data
    line = running.wait_access()[0]
    assert (line["parent"], line["status"]) == ("p0", 200)
    assert line["upstream"] == f"127.0.0.1:{way.port}"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_server_that_speaks_first_is_heard_through_a_parent(
    gateway, scripted_origin, parent, pki, scheme
):
    there = scripted_origin(lambda connection: (connection.send("220 ready\r\n"), echo(connection)))
    running = gateway(ways(parent(scheme).url, **trusting(pki)))
    wire, response = running.connect(f"{HOST}:{there.port}")
    with wire:
        assert response.status == 200
        assert wire.read_until(b"\r\n") == b"220 ready\r\n"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_tunnel_is_inspected_through_a_parent(gateway, origin, parent, pki, scheme):
    leaf = pki.intermediate.issue(HOST)
    for tls13 in (False, True):
        context = leaf.server_context()
        if not tls13:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        there = origin(lambda _: reply(b"inside"), tls=context)
        running = gateway(ways(parent(scheme).url, **trusting(
            pki, hosts=[{"match": [HOST], "tunnel": "inspect", "tls13Tunnel": "probe",
                         "pinsets": ["p"]}],
            pinsets={"p": {"mode": "publicKey", "pins": [leaf.pin]}})))
        wire, response = running.connect(f"{HOST}:{there.port}")
        assert response.status == 200
        client = ssl.create_default_context(cafile=str(pki.root.pem_file))
        with wire, client.wrap_socket(wire.socket, server_hostname=HOST) as inside:
            inside.sendall(request("/", host=HOST, Connection="close"))
            assert b"inside" in b"".join(iter(lambda: inside.recv(4096), b""))
        line = running.wait_access()[0]
        assert line["inspected"] == ("probed" if tls13 else "verified")
        assert line["parent"] == "p0"


@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_intercepted_tunnel_leads_through_a_parent(
    gateway, origin, parent, pki, authority, scheme
):
    leaf = pki.intermediate.issue(HOST)
    there = origin(lambda _: reply(b"seen"), tls=leaf.server_context())
    way = parent(scheme)
    running = gateway(ways(way.url, **trusting(
        pki, hosts=[{"match": [HOST], "intercept": True}], interception=authority.section)))
    response = ask_inside(running, HOST, there.port, request(
        "/", host=f"{HOST}:{there.port}", Connection="close"))
    assert (response.status, response.body) == (200, b"seen")
    assert len(way.asked) == 1


def test_without_a_listed_way_nothing_goes_directly(gateway, origin, parent):
    there = origin(lambda _: reply(b"direct"))
    way = parent()
    way.close()
    running = gateway(ways(way.url))
    for _ in range(2):
        response = running.get(f"http://{HOST}:{there.port}/")
        assert (response.status, response.proxy_status["error"]) == (502, "destination_unavailable")
        assert b"proxy-unreachable" in response.body
    wire, response = running.connect(f"{HOST}:{there.port}")
    wire.close()
    assert response.status == 502
    assert there.accepted == 0
    assert {line["parent"] for line in running.wait_access(3)} == {"p0"}
    assert running.metric("pinfold_parent_failures_total", parent="p0", cause="unreachable") == 3


def test_a_host_entry_has_its_own_ways_and_exceptions(gateway, origin, parent):
    there = origin(lambda _: reply(b"ok"))
    first, second = parent(), parent()
    config = ways(first.url, second.url)
    config["ways"] = {"parents": ["p0"], "noProxy": ["127.0.0.0/8", "**.near.test"]}
    config["hosts"] = [
        {"match": ["**.other.test"], "parents": ["p1"], "noProxy": ["not.other.test"]},
        {"match": ["own.test"], "parents": ["direct"]},
    ]
    running = gateway(config)
    expected = {"default.test": "p0", "a.other.test": "p1", "not.other.test": None,
                "own.test": None, "near.test": None, "a.near.test": None, "127.0.0.1": None}
    for host in expected:
        assert running.get(f"http://{host}:{there.port}/").status == 200
    # The lines of two workers are in no order.
    lines = running.wait_access(len(expected))
    assert {line["target"].split("/")[2].split(":")[0]: line.get("parent")
            for line in lines} == expected
    assert len(first.asked) == len(second.asked) == 1


def test_only_the_parent_with_credentials_gets_them(gateway, origin, parent, workspace):
    there = origin(lambda _: reply(b"ok"))
    way = parent()
    secret = workspace / "password"
    secret.write_text("open sesame\n")
    secret.chmod(0o600)
    config = ways(way.url)
    config["parents"]["p0"] |= {"user": "pinfold", "passwordFile": str(secret)}
    running = gateway(config)
    client = {"Proxy_Authorization": basic("client", "own")}
    assert running.get(f"http://{HOST}:{there.port}/", **client).status == 200
    wire, _ = running.connect(f"{HOST}:{there.port}")
    wire.close()
    got = [one.get("proxy-authorization") for one in way.requests]
    assert got == [basic("pinfold", "open sesame")] * 2
    assert "proxy-authorization" not in there.requests[0]
    shown = run_pinfold("check", "--config", str(running.config_file)).stdout
    assert "pinfold" in shown and str(secret) in shown
    for text in (shown, running.log()):
        assert "sesame" not in text and basic("pinfold", "open sesame")[6:] not in text
    # A file that changes is read again.
    secret.write_text("another\n")
    until(lambda: running.get(f"http://{HOST}:{there.port}/").status == 200
          and way.requests[-1].get("proxy-authorization") == basic("pinfold", "another"),
          "the new password is sent", 20)


def test_a_407_of_the_parent_is_not_the_clients(gateway, origin, parent):
    there = origin(lambda _: reply(b"ok"))
    challenge = reply(b"x" * 70_000, "407 Who", "Proxy-Authenticate: Basic realm=\"corp\"",
                      "Cache-Control: public, max-age=600")
    way = parent("http", lambda asked: challenge if asked.target != "*" else b"")
    config = ways(way.url)
    config["cache"] = {"enabled": True}
    running = gateway(config)
    for _ in range(2):
        response = running.get(f"http://{HOST}:{there.port}/")
        assert response.status == 502
        assert b"proxy-authentication-required" in response.body
        assert "proxy-authenticate" not in response
    wire, response = running.connect(f"{HOST}:{there.port}")
    wire.close()
    assert response.status == 502
    assert "proxy-authenticate" not in response
    assert len(way.asked) == 3
    assert {line["reason"] for line in running.wait_access(3)} == {"proxy-authentication-required"}
    assert running.metric("pinfold_parent_failures_total", parent="p0", cause="authentication") == 3


def test_a_clients_credentials_are_passed_on_where_the_file_says_so(gateway, origin, parent):
    there = origin(lambda _: reply(b"ok"))

    def answer(asked):
        if asked.target == "*" or asked.get("proxy-authorization") == basic("a", "b"):
            return b""
        return reply(b"no", "407 Who", "Proxy-Authenticate: Basic realm=\"corp\"")

    way = parent("http", answer)
    config = ways(way.url)
    config["parents"]["p0"]["authorization"] = "pass"
    running = gateway(config)
    url = f"http://{HOST}:{there.port}/"
    response = running.get(url)
    assert response.status == 407
    assert response.get("proxy-authenticate") == 'Basic realm="corp"'
    assert running.get(url, Proxy_Authorization=basic("a", "b")).status == 200
    assert running.get(url, Proxy_Authorization=basic("a", "wrong")).status == 407
    # What would hold for the connection, and so for others, is not passed on.
    assert running.get(url, Proxy_Authorization="Negotiate abc").status == 407
    assert [one.get("proxy-authorization") for one in way.requests] == [
        "", basic("a", "b"), basic("a", "wrong"), ""]
    with running.wire() as wire:
        wire.send(f"CONNECT {HOST}:{there.port} HTTP/1.1\r\nHost: {HOST}:{there.port}\r\n"
                  f"Proxy-Authorization: {basic('a', 'b')}\r\n\r\n")
        assert wire.read_head().status == 200


def test_a_tunnel_of_one_clients_credentials_is_not_anothers(gateway, origin, parent, pki):
    leaf = pki.intermediate.issue(HOST)
    there = origin(lambda _: reply(b"ok"), tls=leaf.server_context())
    way = parent("http", lambda asked: b"" if asked.target == "*" or asked.get(
        "proxy-authorization") == basic("a", "b") else reply(b"", "407 Who"))
    config = ways(way.url, **trusting(pki))
    config["parents"]["p0"]["authorization"] = "pass"
    running = gateway(config)
    url = f"https://{HOST}:{there.port}/"
    for credentials, status in ((basic("a", "b"), 200), (basic("c", "d"), 502), (None, 502),
                                (basic("a", "b"), 200)):
        fields = {"Proxy_Authorization": credentials} if credentials else {}
        assert running.get(url, **fields).status == status


def test_a_reverse_listener_that_keeps_host_asks_the_parent_for_its_own_server(
    gateway, origin, parent
):
    """Otherwise whoever reaches the listener could have the parent ask anybody."""
    there, elsewhere = origin(lambda _: reply(b"there")), origin(lambda _: reply(b"elsewhere"))
    way = parent()
    config = ways(way.url)
    config["listeners"] = [{"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
                            "upstream": f"http://{HOST}:{there.port}", "host": "keep"}]
    running = gateway(config)
    for target in ("/x", f"http://evil.test:{elsewhere.port}/x"):
        response = running.ask(request(target, host=f"evil.test:{elsewhere.port}",
                                       Connection="close"), "back")
        assert response.body == b"there"
    assert way.asked == [f"GET http://{HOST}:{there.port}/x"] * 2
    assert {one.get("host") for one in way.requests} == {f"{HOST}:{there.port}"}
    assert elsewhere.accepted == 0


def test_the_parents_own_certificate_is_verified_and_pinned(gateway, origin, parent, pki):
    there = origin(lambda _: reply(b"ok"))
    way = parent("https")
    plain = gateway(ways(way.url))
    response = plain.get(f"http://{HOST}:{there.port}/")
    assert (response.status, b"proxy-tls-failed" in response.body) == (502, True)
    pinned = gateway(ways(way.url, **trusting(
        pki, hosts=[{"match": ["parent.test"], "pinsets": ["p"]}],
        pinsets={"p": {"mode": "publicKey", "pins": ["sha256/" + "A" * 43 + "="]}})))
    response = pinned.get(f"http://{HOST}:{there.port}/")
    assert (response.status, b"no-pin" in response.body or b"no pin" in response.body) == (502, True)
    assert way.application_bytes == b""
    assert there.accepted == 0


def test_a_websocket_gets_a_tunnel(gateway, scripted_origin, parent):
    def serve(connection):
        asked = connection.read_request()
        assert asked.target == "/chat"
        connection.send(b"HTTP/1.1 101 Switch\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        echo(connection)

    there = scripted_origin(serve)
    way = parent()
    running = gateway(ways(way.url))
    with running.wire() as wire:
        wire.send(request(f"http://{HOST}:{there.port}/chat", host=f"{HOST}:{there.port}",
                          Connection="Upgrade", Upgrade="websocket"))
        assert wire.read_head().status == 101
        wire.send(b"ping")
        assert wire.read_exactly(4) == b"ping"
    assert way.asked == [f"CONNECT {HOST}:{there.port}"]


# Destinations


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_literal_address_is_judged_as_without_a_parent(gateway, parent, pki, scheme):
    way = parent(scheme)
    running = gateway(ways(way.url, **trusting(
        pki, access={"destinations": {"allow": [], "deny": ["**.denied.test"]}})))
    for host in ("10.0.0.1", "127.0.0.1", "[::1]", "a.denied.test"):
        assert running.get(f"http://{host}:8099/").status == 403
        wire, response = running.connect(f"{host}:8099")
        wire.close()
        assert response.status == 403
    assert way.asked == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_name_is_refused_if_the_parent_might_take_a_refused_address(
    gateway, origin, parent, pki, dns, scheme
):
    there = origin(lambda _: reply(b"ok"))
    dns.set("mixed.example", "127.0.0.1", "10.0.0.1")
    dns.set("inner.example", "10.0.0.1")
    way = parent(scheme)
    running = gateway(ways(way.url, **trusting(pki)))
    for ask in (lambda host: running.get(f"http://{host}:{there.port}/"),
                lambda host: running.connect(f"{host}:{there.port}")[1]):
        assert ask("inner.example").status == 403
        # With socks5 the gateway chooses the address.
        assert ask("mixed.example").status == (200 if scheme == "socks5" else 403)
        unknown = ask("unknown.example")
        assert unknown.status == 502
    tokens = {line["reason"] for line in running.wait_access(4) if "unknown" in line["target"]}
    if scheme == "socks5":
        assert tokens == {"dns-nxdomain"}
        assert set(way.asked) == {f"127.0.0.1 {there.port}"}
    else:
        assert tokens == {"proxy-name-unchecked"}
        assert way.asked == []


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
def test_a_parent_may_know_names_that_the_gateway_does_not(
    gateway, origin, parent, dns, scheme
):
    there = origin(lambda _: reply(b"ok"))
    dns.set("inner.example", "10.0.0.1")
    way = parent(scheme)
    config = ways(way.url, access={"destinations": {"allow": [], "deny": ["bad.example"]}})
    config["parents"]["p0"]["resolves"] = "parent"
    running = gateway(config)
    for host in ("inner.example", "unknown.example"):
        assert running.get(f"http://{host}:{there.port}/").status == 200
    assert running.get(f"http://bad.example:{there.port}/").status == 403
    assert running.get("http://10.0.0.1/").status == 403
    assert dns.asked("unknown.example") == 0


def test_socks5_tries_the_addresses_of_a_name(gateway, origin, parent, dns):
    there = origin(lambda _: reply(b"ok"))
    dns.set("both.example", "::1", "127.0.0.1")
    way = parent("socks5", refused=("::1",))
    running = gateway(ways(way.url))
    assert running.get(f"http://both.example:{there.port}/").status == 200
    assert way.asked == [f"::1 {there.port}", f"127.0.0.1 {there.port}"]


# Loops


def test_two_gateways_that_are_each_others_parent_end(gateway, origin, pki):
    """By CONNECT in both; the request in the end is answered, and each asks the other a few times."""
    first = gateway(trusting(pki), start=False)
    second = gateway(trusting(pki), start=False)
    from support.gateway import free_port
    ports = [free_port(), free_port()]
    for own, other, running in ((0, 1, first), (1, 0, second)):
        running.config = running.config | ways(
            f"http://other.test:{ports[other]}", hosts=[{"match": ["up.test"], "upgrade": "https"}])
        running.config["listeners"] = [{"name": "proxy", "address": f"127.0.0.1:{ports[own]}",
                                        "kind": "forward"}]
        running.start()
    for ask in (lambda: first.get("http://plain.test:1/"), lambda: first.get("http://up.test:1/"),
                lambda: first.connect("tunnel.test:1")[1]):
        response = ask()
        assert response.status == 508, response.body
    assert first.metric("pinfold_http_requests_in_flight") == 0
    total = sum(one.metric("pinfold_parent_requests_total") for one in (first, second))
    assert total < 60


# Other commands and reloads


def test_explain_says_which_ways_a_url_takes(workspace):
    file = workspace / "pinfold.yaml"
    file.write_text("""
parents:
  corp: { url: "http://proxy.corp.test:3128", resolves: parent }
  spare: { url: "socks5h://127.0.0.1:1080" }
ways: { parents: [corp, spare, direct], noProxy: ["**.internal.test"] }
""")

    def explain(url: str) -> str:
        return run_pinfold(
            "explain", url, "--config", str(file), "--address", "10.0.0.1").stdout

    text = explain("http://a.test/")
    assert ("ways: corp (http://proxy.corp.test:3128, resolves names), then "
            "spare (socks5h://127.0.0.1:1080), then direct") in text
    assert "ways:" not in explain("http://a.internal.test/")


def test_a_reload_that_changes_a_parent_ends_what_went_through_it(
    gateway, scripted_origin, origin, parent
):
    there = scripted_origin(echo)
    web = origin(lambda _: reply(b"ok"))
    first, second = parent(), parent()
    running = gateway(ways(first.url))
    url = f"http://{HOST}:{web.port}/"
    assert running.get(url).status == 200
    wire, response = running.connect(f"{HOST}:{there.port}")
    with wire:
        assert response.status == 200
        config = dict(running.config)
        config["parents"] = {"p0": {"url": second.url, "probe": "off"}}
        reload(running, config)
        assert wire.read_to_end() == b""
    assert running.get(url).status == 200
    assert len(second.asked) == 1 and len(first.asked) == 2


BAD = [
    ("parents: { a: {} }", "parents.a.url", "is missing"),
    ("parents: { a: { url: 'ftp://x:1' } }", "parents.a.url", "is not the URL of a proxy"),
    ("parents: { a: { url: 'http://me:pwd@x:1' } }", "parents.a.url", "a user name or a password"),
    ("parents: { direct: { url: 'http://x:1' } }", "parents.direct", "is not a valid name"),
    ("parents: { a: { url: 'http://x:1', user: me } }", "parents.a.user", "has no password"),
    ("parents: { a: { url: 'http://x:1', passwordVariable: HOME } }", "parents.a.passwordVariable",
     "belongs to no user"),
    ("parents: { a: { url: 'socks5://x:1', authorization: pass } }", "parents.a.authorization",
     "SOCKS5 has no fields"),
    ("parents: { a: { url: 'socks5://x:1', resolves: parent } }", "parents.a.resolves", "socks5"),
    ("parents: { a: { url: 'http://127.0.0.1:8080' } }", "parents.a.url", "is a listener"),
    ("parents: { a: { url: 'http://x:1', probe: 1ms } }", "parents.a.probe", "out of range"),
    ("ways: { parents: [corp] }", "ways.parents[0]", "there is no parent"),
    ("hosts: [{ match: [a], parents: [] }]", "hosts[0].parents", "has no way"),
    ("ways: { parents: [direct, direct] }", "ways.parents[1]", "listed twice"),
    ("ways: { noProxy: ['a/b'] }", "ways.noProxy[0]", "is not a network"),
    ("hosts: [{ match: [a], parents: [corp] }]", "hosts[0].parents[0]", "there is no parent"),
    ("parents: { a: { url: 'http://x.test:1' } }\nhosts: [{ match: [x.test], pinsets: [p] }]\n"
     "pinsets: { p: { pins: ['sha256/" + "A" * 43 + "='] } }", "parents.a.url", "has pins"),
]


@pytest.mark.parametrize(("text", "key", "problem"), BAD)
def test_what_is_wrong_in_the_file_is_said(workspace, text, key, problem):
    file = workspace / "pinfold.yaml"
    file.write_text(text + "\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode != 0
    assert any(key in line and problem in line for line in done.stderr.splitlines()), done.stderr
    assert "pwd" not in done.stderr


def test_the_effective_configuration_reads_as_the_same(workspace):
    file, again = workspace / "pinfold.yaml", workspace / "again.yaml"
    file.write_text("""
parents:
  corp: { url: "https://proxy.corp.test", authorization: pass, probe: 30s }
  spare: { url: "socks5h://[::1]", resolves: parent, probe: off }
ways: { parents: [corp, direct], noProxy: [10.0.0.0/8, "**.internal.test"] }
hosts: [{ match: [a.test], parents: [spare], noProxy: [b.test] }]
""")
    first = run_pinfold("check", "--config", str(file))
    assert first.returncode == 0, first.stderr
    again.write_text(first.stdout)
    second = run_pinfold("check", "--config", str(again))
    assert second.stdout == first.stdout
    assert "https://proxy.corp.test:443" in first.stdout
    assert "socks5h://[::1]:1080" in first.stdout
