"""Rules that name the parents of the requests that they allow."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading

import pytest
from support.gateway import Gateway, run_pinfold, wire_from
from support.interception import ask_inside
from support.origin import HTTPOrigin, reply, serving
from support.parents import HTTPParent, SOCKSParent
from support.secure import reload
from support.socks import asked, code, listener, negotiated
from support.wait import until
from support.wire import request
from test_connect import echo

HOST = "api.behind.test"
LOOPBACK = {"allow": ["127.0.0.0/8", "**.test"]}


@pytest.fixture
def parents():
    """parents(*schemes): parents in the test's hands."""
    with contextlib.ExitStack() as stack:
        def make(*schemes: str):
            made = []
            for scheme in schemes:
                one = SOCKSParent() if scheme.startswith("socks") else HTTPParent()
                made.append(stack.enter_context(serving(one)))
                made[-1].url = f"{scheme}://127.0.0.1:{made[-1].port}"
            return made[0] if len(made) == 1 else made

        yield make


def rules(*written: dict, parents: dict, **more) -> dict:
    """`parents` are by their names; the rules are for the client 127.0.0.2 unless they say more."""
    made = [{"name": f"r{index}", "action": "allow", "clients": ["127.0.0.2"], **rule}
            for index, rule in enumerate(written)]
    return {"parents": {name: {"url": one.url, "probe": "off"} for name, one in parents.items()},
            "access": {"rules": made, "clients": ["127.0.0.0/8"], "connectPorts": "any",
                       "destinations": LOOPBACK},
            "cache": {"enabled": False}, **more}


def get(running: Gateway, url: str, client: str = "127.0.0.2", listener: str = "proxy"):
    with wire_from(running, client, listener=listener) as wire:
        return wire.ask(request(url))


def plain(_):
    return reply(b"plain")


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
def test_the_rule_that_allows_a_request_names_its_parent(gateway, origin, parents, scheme):
    there, way = origin(plain), parents(scheme)
    running = gateway(rules({"parents": ["corp"]}, parents={"corp": way}))
    url = f"http://{HOST}:{there.port}/"
    assert get(running, url).body == b"plain"
    assert len(way.asked) == 1
    assert get(running, url, client="127.0.0.3").body == b"plain"
    assert len(way.asked) == 1, "the other client has no rule"
    by_client = {line["client"].split(":")[0]: line for line in running.wait_access(2)}
    assert by_client["127.0.0.2"]["parent"] == "corp"
    assert by_client["127.0.0.2"]["rule"] == "r0"
    assert "parent" not in by_client["127.0.0.3"]


def test_it_takes_the_place_of_the_ways_of_the_entry_and_of_all(gateway, origin, parents):
    there = origin(plain)
    corp, entry, general = parents("http", "http", "http")
    config = rules(
        {"parents": ["corp"]}, {"clients": ["127.0.0.4"], "parents": ["direct"]},
        parents={"corp": corp, "entry": entry, "general": general})
    running = gateway({**config, "ways": {"parents": ["general"]},
                       "hosts": [{"match": [HOST], "parents": ["entry"]}]})
    expected = {"127.0.0.2": corp, "127.0.0.3": entry, "127.0.0.4": None}
    for client, way in expected.items():
        before = [len(one.asked) for one in (corp, entry, general)]
        assert get(running, f"http://{HOST}:{there.port}/", client).status == 200
        after = [len(one.asked) for one in (corp, entry, general)]
        assert [b - a for a, b in zip(before, after)] == [
            one is way for one in (corp, entry, general)]
    assert get(running, f"http://other.test:{there.port}/", "127.0.0.3").status == 200
    assert len(general.asked) == 1


def test_its_ways_are_tried_in_their_order(gateway, origin, parents):
    there, way = origin(plain), parents("http")
    gone = parents("http")
    gone.close()
    running = gateway(rules({"parents": ["gone", "corp"]}, parents={"gone": gone, "corp": way}))
    assert get(running, f"http://{HOST}:{there.port}/").status == 200
    assert len(way.asked) == 1
    way.close()
    assert get(running, f"http://{HOST}:{there.port}/").status == 502
    failed = [line for line in running.wait_access(2) if line["status"] == 502]
    assert failed[0]["reason"] == "proxy-unreachable"
    assert len(there.requests) == 1, "there is no direct way in the rule"


def test_no_proxy_applies_to_the_ways_of_rules(gateway, origin, parents):
    there, way = origin(plain), parents("http")
    running = gateway({**rules({"parents": ["corp"]}, parents={"corp": way}),
                       "ways": {"noProxy": [HOST]}})
    assert get(running, f"http://{HOST}:{there.port}/").status == 200
    assert way.asked == []


def test_a_rule_of_paths_names_the_parent_of_these(gateway, origin, parents):
    there, way = origin(plain), parents("http")
    running = gateway(rules({"paths": ["/v1/**"], "parents": ["corp"]}, parents={"corp": way}))
    with wire_from(running, "127.0.0.2") as wire:
        for path in ("/v1/a", "/v2/a", "/v1/b"):
            assert wire.ask(request(f"http://{HOST}:{there.port}{path}")).status == 200
    assert [line.rpartition("/")[0][-2:] for line in way.asked] == ["v1", "v1"]


@pytest.mark.parametrize("scheme", ["http", "socks5"])
def test_a_tunnel_goes_by_the_ways_of_its_rule(gateway, scripted_origin, parents, scheme):
    there, way = scripted_origin(echo), parents(scheme)
    running = gateway(rules({"parents": ["corp"]}, parents={"corp": way}))
    for client, count in (("127.0.0.2", 1), ("127.0.0.3", 1)):
        with wire_from(running, client) as wire:
            wire.send(f"CONNECT {HOST}:{there.port} HTTP/1.1\r\nHost: {HOST}\r\n\r\n")
            assert wire.read_head().status == 200
            wire.send(b"hello")
            assert wire.read_exactly(5) == b"hello"
        assert len(way.asked) == count


def test_a_client_of_socks_goes_by_the_ways_of_its_rule(gateway, scripted_origin, parents):
    there, way = scripted_origin(echo), parents("http")
    config = rules({"clients": ["127.0.0.1"], "parents": ["corp"]}, parents={"corp": way})
    running = gateway({**config, "listeners": [listener()]})
    with negotiated(running) as wire:
        wire.send(asked(HOST, there.port))
        assert code(wire) == 0
        wire.send(b"hello")
        assert wire.read_exactly(5) == b"hello"
    assert way.asked == [f"CONNECT {HOST}:{there.port}"]


@pytest.mark.parametrize("tls13", [False, True])
def test_an_inspected_tunnel_goes_by_the_ways_of_its_rule(gateway, origin, parents, pki, tls13):
    leaf = pki.intermediate.issue(HOST)
    context = leaf.server_context()
    if not tls13:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
    there, way = origin(lambda _: reply(b"inside"), tls=context), parents("http")
    running = gateway({**rules({"clients": ["127.0.0.1"], "parents": ["corp"]},
                               parents={"corp": way}),
                       "tls": {"roots": [str(pki.root.pem_file)]},
                       "hosts": [{"match": [HOST], "tunnel": "inspect", "tls13Tunnel": "probe",
                                  "pinsets": ["p"]}],
                       "pinsets": {"p": {"mode": "publicKey", "pins": [leaf.pin]}}})
    wire, response = running.connect(f"{HOST}:{there.port}")
    assert response.status == 200
    client = ssl.create_default_context(cafile=str(pki.root.pem_file))
    with wire, client.wrap_socket(wire.socket, server_hostname=HOST) as inside:
        inside.sendall(request("/", host=HOST, Connection="close"))
        assert b"inside" in b"".join(iter(lambda: inside.recv(4096), b""))
    assert running.wait_access()[0]["parent"] == "corp"
    assert len(way.asked) == (2 if tls13 else 1), "also for the other connection"


@pytest.mark.parametrize("inner", [False, True])
def test_in_an_intercepted_tunnel_the_rule_of_each_request_applies(
    gateway, origin, parents, pki, authority, inner
):
    """The server is verified by the ways of the rule for the tunnel, if there is one."""
    leaf = pki.intermediate.issue(HOST)
    there, way = origin(plain, tls=leaf.server_context()), parents("http")
    rule = {"clients": ["127.0.0.1"], "parents": ["corp"]}
    running = gateway({**rules({**rule, "paths": ["/v1/**"]} if inner else rule,
                               parents={"corp": way}),
                       "tls": {"roots": [str(pki.root.pem_file)]},
                       "hosts": [{"match": [HOST], "intercept": True}],
                       "interception": authority.section})
    for path in ("/v1/a", "/v2/a"):
        answer = ask_inside(running, HOST, there.port, request(
            path, host=f"{HOST}:{there.port}", Connection="close"))
        assert answer.body == b"plain"
    until(lambda: len(running.access_lines()) == 4, "all are logged")
    found = {line["target"]: line.get("parent") for line in running.access_lines()
             if line["method"] == "GET"}
    targets = {target.rpartition(str(there.port))[2] if "//" in target else target: parent
               for target, parent in found.items()}
    assert targets == {"/v1/a": "corp", "/v2/a": None if inner else "corp"}


def test_an_intercepted_server_is_verified_by_the_ways_of_the_requests_that_are_allowed(
    gateway, origin, parents, pki, authority
):
    """No rule allows the tunnel itself: nothing goes directly."""
    there = origin(plain, tls=pki.intermediate.issue(HOST).server_context())
    way = parents("http")
    config = rules({"clients": ["127.0.0.1"], "methods": ["GET", "POST"], "parents": ["corp"]},
                   parents={"corp": way})
    running = gateway({**config, "access": {**config["access"], "default": "deny"},
                       "tls": {"roots": [str(pki.root.pem_file)]},
                       "hosts": [{"match": [HOST], "intercept": True}],
                       "interception": authority.section})
    answer = ask_inside(running, HOST, there.port, request(
        "/", host=f"{HOST}:{there.port}", Connection="close"))
    assert answer.body == b"plain"
    assert way.asked == [f"CONNECT {HOST}:{there.port}"], "the connection is the only one"
    assert there.accepted == 1


def test_a_tunnel_whose_rule_goes_another_way_now_is_closed(gateway, scripted_origin, parents):
    there, (one, two) = scripted_origin(echo), parents("http", "http")
    config = rules({"clients": ["127.0.0.1"], "parents": ["one"]},
                   parents={"one": one, "two": two})
    running = gateway(config)
    wire, response = running.connect(f"{HOST}:{there.port}")
    assert response.status == 200
    with wire:
        access = {**config["access"], "rules": [
            {**config["access"]["rules"][0], "parents": ["two", "one"]}]}
        reload(running, {**running.config, "access": access})
        wire.send(b"hello")
        assert wire.read_exactly(5) == b"hello", "its way is still one of the rule's"
        access = {**config["access"], "rules": [
            {**config["access"]["rules"][0], "parents": ["two"]}]}
        reload(running, {**running.config, "access": access})
        try:
            assert wire.read_to_end() == b""
        except ConnectionResetError:
            pass


def test_a_request_of_a_reverse_listener_goes_by_the_ways_of_its_rule(gateway, origin, parents):
    there, way = origin(plain), parents("http")
    for servers in ({"upstream": there.url("")},
                    {"upstreams": {"servers": [{"url": there.url("")}]}}):
        way.asked.clear()
        running = gateway({**rules({"paths": ["/v1/**"], "clients": ["127.0.0.1"],
                                    "parents": ["corp"]}, parents={"corp": way}),
                           "listeners": [{"name": "back", "address": "127.0.0.1:0",
                                          "kind": "reverse", **servers}]})
        with running.wire("back") as wire:
            for path in ("/v1/a", "/v2/a", "/v1/b"):
                wire.send(f"GET {path} HTTP/1.1\r\nHost: front\r\n\r\n")
                assert wire.read("GET").body == b"plain"
        assert [line.rpartition("/")[2] for line in way.asked] == ["a", "b"]
        running.stop()


def test_a_socket_among_several_servers_is_reached_directly_and_the_others_by_the_rule(
        gateway, origin, parents, workspace):
    way, near = parents("http"), workspace / "near.sock"
    far = origin(lambda _: reply(b"far"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(near))
        listening.listen()
        with serving(HTTPOrigin(lambda _: reply(b"near"), listener=listening)):
            running = gateway({
                **rules({"clients": ["127.0.0.1"], "parents": ["corp"]}, parents={"corp": way}),
                "workers": 1, "listeners": [{
                    "name": "back", "address": "127.0.0.1:0", "kind": "reverse", "upstreams": {
                        "servers": [{"url": f"unix:{near}"}, {"url": far.url("")}],
                        "balance": "roundRobin"}}]})
            with running.wire("back") as wire:
                answers = []
                for _ in range(4):
                    wire.send("GET / HTTP/1.1\r\nHost: front\r\n\r\n")
                    answers.append(wire.read("GET").body)
    assert sorted(answers) == [b"far", b"far", b"near", b"near"]
    assert len(way.asked) == 2


def test_another_protocol_goes_by_the_ways_of_its_rule(gateway, origin, parents):
    there = origin(lambda _: b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                             b"Upgrade: echo\r\n\r\nhello")
    way = parents("http")
    running = gateway(rules({"parents": ["corp"]}, parents={"corp": way}))
    with wire_from(running, "127.0.0.2") as wire:
        wire.send(request(f"http://{HOST}:{there.port}/", Connection="Upgrade", Upgrade="echo"))
        assert b"101" in wire.read_until(b"\r\n\r\n")
        assert wire.read_exactly(5) == b"hello"
        assert way.asked == [f"CONNECT {HOST}:{there.port}"]
        # It is kept over a reload by which nothing about it changes.
        reload(running, {**running.config, "limits": {"pending": 99}})
        assert wire.socket.fileno() >= 0


@pytest.mark.parametrize("ways", [["direct"], ["gone", "direct"]])
def test_what_a_server_says_of_proxies_is_not_passed_on(gateway, origin, parents, ways):
    """Clients would take it for a challenge of the gateway."""
    there = origin(lambda _: reply(b"who", "407 Who", 'Proxy-Authenticate: Basic realm="x"'))
    gone = parents("http")
    gone.close()
    running = gateway(rules({"parents": ways}, parents={"gone": gone}))
    for client in ("127.0.0.2", "127.0.0.3"):
        answer = get(running, f"http://{HOST}:{there.port}/", client)
        assert answer.status == 407 and not answer.get("proxy-authenticate")


# The cache


FRESH = "Cache-Control: max-age=600"


def test_in_clear_text_what_a_parent_answered_is_for_its_ways_only(gateway, origin, parents):
    """A parent may answer as it likes, with a page of its own for example."""
    there = origin(lambda _: reply(b"server", "200 OK", FRESH))
    way = parents("http")
    way.answer = lambda _: reply(b"page of the parent", "200 OK", FRESH)
    running = gateway({**rules({"parents": ["corp"]}, parents={"corp": way}), "cache": {}})
    url = f"http://{HOST}:{there.port}/"
    for _ in range(2):
        assert get(running, url).body == b"page of the parent"
        assert get(running, url, client="127.0.0.3").body == b"server"
    assert len(way.asked) == len(there.requests) == 1
    assert sorted(line["cache"] for line in running.wait_access(4)) == ["hit", "hit", "miss", "miss"]


def test_requests_by_different_ways_do_not_share_a_response(gateway, origin, parents):
    """Of two at the same time, the second does not wait for the response to the first."""
    release, arrived = threading.Event(), threading.Event()
    there, way = origin(lambda _: reply(b"server", "200 OK", FRESH)), parents("http")

    def slow(_):
        arrived.set()
        release.wait(20)
        return reply(b"parent", "200 OK", FRESH)

    way.answer = slow
    running = gateway({**rules({"parents": ["corp"]}, parents={"corp": way}), "cache": {},
                       "workers": 1})
    url = f"http://{HOST}:{there.port}/"
    with wire_from(running, "127.0.0.2") as wire:
        wire.send(request(url))
        assert arrived.wait(20)
        assert get(running, url, client="127.0.0.3").body == b"server"
        release.set()
        assert wire.read("GET").body == b"parent"


def test_over_tls_they_share_it(gateway, origin, parents, pki):
    """Nobody on the way can answer in the server's name."""
    leaf = pki.intermediate.issue(HOST)
    there = origin(lambda _: reply(b"server", "200 OK", FRESH), tls=leaf.server_context())
    way = parents("http")
    running = gateway({**rules({"parents": ["corp"]}, parents={"corp": way}), "cache": {},
                       "tls": {"roots": [str(pki.root.pem_file)]},
                       "hosts": [{"match": [HOST], "upgrade": "https"}]})
    url = f"http://{HOST}:{there.port}/"
    assert get(running, url).body == b"server"
    assert get(running, url, client="127.0.0.3").body == b"server"
    assert len(there.requests) == 1


def test_an_unsafe_request_invalidates_what_was_obtained_by_any_ways(gateway, origin, parents):
    versions = iter(range(100))
    there = origin(lambda _: reply(b"%d" % next(versions), "200 OK", FRESH))
    way = parents("http")
    running = gateway({**rules({"parents": ["corp"]}, parents={"corp": way}), "cache": {}})
    url = f"http://{HOST}:{there.port}/"
    for poster in ("127.0.0.2", "127.0.0.3"):
        stored = {client: get(running, url, client).body for client in ("127.0.0.2", "127.0.0.3")}
        assert {c: get(running, url, c).body for c in stored} == stored
        with wire_from(running, poster) as wire:
            assert wire.ask(request(url, method="POST", body=b"x")).status == 200
        for client, body in stored.items():
            assert get(running, url, client).body != body


def test_it_also_invalidates_what_was_obtained_by_ways_that_no_rule_names_any_more(
    gateway, origin, parents
):
    """A reload may name them again."""
    there, way = origin(lambda _: reply(b"server", "200 OK", FRESH)), parents("http")
    answers = iter([b"first", b"second"])
    way.answer = lambda _: reply(next(answers), "200 OK", FRESH)
    config = {**rules({"parents": ["corp"]}, parents={"corp": way}), "cache": {}}
    running = gateway(config)
    url = f"http://{HOST}:{there.port}/"
    assert [get(running, url).body for _ in range(2)] == [b"first"] * 2
    reload(running, {**running.config, "access": {**config["access"], "rules": []}})
    with wire_from(running, "127.0.0.2") as wire:
        assert wire.ask(request(url, method="POST", body=b"x")).status == 200
    reload(running, {**running.config, "access": config["access"]})
    assert get(running, url).body == b"second"


def test_a_stale_response_is_validated_by_the_ways_of_its_rule(gateway, origin, parents):
    there = origin(lambda _: reply(b"x", "200 OK",
                                   "Cache-Control: max-age=0, stale-while-revalidate=60", 'ETag: "a"'))
    way = parents("http")
    running = gateway({**rules({"parents": ["corp"]}, parents={"corp": way}), "cache": {}})
    url = f"http://{HOST}:{there.port}/"
    until(lambda: get(running, url).status == 200 and any(
        request.get("if-none-match") for request in there.requests), "it is validated")
    until(lambda: len(way.asked) == len(there.requests), "each request came through the parent")
    assert running.metric("pinfold_cache_background_revalidations_total") >= 1


# A reload


def held():
    """A handler that waits, an event when it is called, and another that releases it."""
    release, arrived = threading.Event(), threading.Event()

    def slow(_):
        arrived.set()
        release.wait(20)
        return reply(b"slow")

    return slow, arrived, release


@pytest.mark.parametrize("more", [{}, {"hosts": [{"match": [HOST], "timeouts": {"body": "31s"}}]}],
                         ids=["rules", "entries"])
@pytest.mark.parametrize("before, after", [
    (["one"], ["two"]), (["one"], None), (["one"], "deny"), (None, ["two"])],
    ids=["other", "none", "denied", "new"])
def test_a_request_that_waits_goes_by_the_ways_of_the_new_rules(
    gateway, origin, parents, before, after, more
):
    """It waits for a connection while the rule is changed. A change of the entry makes the connections of before
    outdated, a change of the rules alone does not."""
    slow, arrived, release = held()
    answers = iter([slow])
    there, (one, two) = origin(lambda asked: next(answers, plain)(asked)), parents("http", "http")
    if before:
        one.answer, answers = slow, iter([])

    def rule(ways):
        if ways == "deny":
            return {"clients": ["127.0.0.1"], "action": "deny"}
        # There is always a rule, so that only its ways differ.
        return {"clients": ["127.0.0.1"], "parents": ways} if ways else {"clients": ["127.0.0.9"]}

    def config(ways):
        return rules(rule(ways), parents={"one": one, "two": two}, workers=1,
                     limits={"upstreamPerHost": 1})

    running = gateway(config(before))
    url = f"http://{HOST}:{there.port}/"
    with running.wire() as first, running.wire() as second:
        first.send(request(url))
        assert arrived.wait(20)
        second.send(request(url))
        until(lambda: running.metric("pinfold_upstream_pool_waiting") == 1, "the second waits")
        reload(running, {**running.config, **config(after), **more})
        answer = second.read("GET")
        if after == "deny":
            assert answer.status == 403
        else:
            assert answer.body == b"plain"
        assert len(two.asked) == (after == ["two"])
        assert len(one.asked) == bool(before)
        release.set()
        assert first.read("GET").body == b"slow"


def test_one_of_several_servers_is_asked_by_the_ways_of_the_new_rules(gateway, origin, parents):
    slow, arrived, release = held()
    there, (one, two) = origin(plain), parents("http", "http")
    one.answer = slow

    def config(name):
        return rules({"clients": ["127.0.0.1"], "parents": [name]}, parents={"one": one, "two": two},
                     workers=1, limits={"upstreamPerHost": 1}, listeners=[
                         {"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
                          "upstreams": {"servers": [{"url": there.url("")}]}}])

    running = gateway(config("one"))
    with running.wire("back") as first, running.wire("back") as second:
        first.send(request("/", host="front"))
        assert arrived.wait(20)
        second.send(request("/", host="front"))
        until(lambda: running.metric("pinfold_upstream_pool_waiting") == 1, "the second waits")
        reload(running, {**running.config, "access": config("two")["access"]})
        assert second.read("GET").body == b"plain"
        assert len(two.asked) == 1
        release.set()
        assert first.read("GET").body == b"slow"


def test_after_a_reload_the_rules_see_the_path_that_the_client_sent(gateway, origin, parents):
    """Not the one that the entry's rules have made of it."""
    slow, arrived, release = held()
    there, (one, two) = origin(plain), parents("http", "http")
    one.answer = slow

    def config(name):
        return rules({"clients": ["127.0.0.1"], "paths": ["/old/**"], "parents": [name]},
                     parents={"one": one, "two": two}, workers=1, limits={"upstreamPerHost": 1},
                     hosts=[{"match": [HOST], "request": {"path": {"prefixes": {"/old": "/new"}}}}])

    running = gateway(config("one"))
    url = f"http://{HOST}:{there.port}/old/a"
    with running.wire() as first, running.wire() as second:
        first.send(request(url))
        assert arrived.wait(20)
        second.send(request(url))
        until(lambda: running.metric("pinfold_upstream_pool_waiting") == 1, "the second waits")
        reload(running, {**running.config, **config("two")})
        assert second.read("GET").body == b"plain"
        assert [line.rpartition("/new/")[2] for line in two.asked] == ["a"]
        release.set()
        assert first.read("GET").body == b"slow"


# What is refused


@pytest.mark.parametrize("rule, problem", [
    ("action: deny, parents: [corp]", "does not apply to action: deny"),
    ("action: report, parents: [corp]", "does not apply to action: report"),
    ("action: allow, parents: []", "has no way"),
    ("action: allow, parents: [corp, corp]", "is listed twice"),
    ("action: allow, parents: [cor]", 'there is no parent "cor" (did you mean "corp"?)')])
def test_what_makes_no_sense_is_refused(workspace, rule, problem):
    file = workspace / "pinfold.yaml"
    file.write_text("parents: { corp: { url: 'http://127.0.0.1:3128' } }\n"
                    f"ways: {{ parents: [corp] }}\naccess:\n  rules:\n  - {{ name: a, {rule} }}\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1
    assert "access.rules[0].parents" in done.stderr and problem in done.stderr


def test_a_parent_that_only_a_rule_names_is_used(workspace):
    file = workspace / "pinfold.yaml"
    file.write_text("parents: { corp: { url: 'http://127.0.0.1:3128' } }\n"
                    "access:\n  rules:\n  - { name: a, action: allow, parents: [corp, direct] }\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 0 and "no request goes through it" not in done.stderr
    assert 'parents: ["corp", "direct"]' in done.stdout
    assert "every request; by corp, direct" in done.stdout


def test_explain_shows_the_ways_of_the_rule(workspace):
    file = workspace / "pinfold.yaml"
    file.write_text("""
parents: { corp: { url: "http://127.0.0.1:3128" }, other: { url: "socks5h://127.0.0.1:1080" } }
ways: { parents: [other] }
access:
  clients: [127.0.0.0/8]
  rules:
    - { name: builds, clients: [127.0.0.2], action: allow, parents: [corp, direct] }
""")
    arguments = ["explain", "--config", str(file), "--address", "93.184.216.34",
                 "http://a.example.com/"]
    done = run_pinfold(*arguments, "--client", "127.0.0.2")
    assert "ways by the rule builds: corp (http://127.0.0.1:3128), then direct" \
        in done.stdout, done.stdout
    done = run_pinfold(*arguments, "--client", "127.0.0.3")
    assert "by the rule" not in done.stdout and "ways: other" in done.stdout
    done = run_pinfold(*arguments, "--client", "127.0.0.2", "--json")
    assert '"ways":["corp","direct"]' in done.stdout.replace(" ", ""), done.stdout
