"""Fields of the responses that clients are sent (`response.headers`): changed while they are sent, wherever they
come from, and never in what is stored or in the gateway's own replies."""

from __future__ import annotations

import socket

import pytest
from support.credentials import bcrypt, write
from support.gateway import run_pinfold
from support.interception import HOST, ask_inside
from support.origin import Request, chunked, reply, scripted
from support.secure import reload
from support.wait import until
from support.wire import Response, request

FRESH = "Cache-Control: max-age=600"
STEPS = {
    "remove": ["Server", "X-Gone"], "rename": {"X-Old": "X-New"}, "set": {"X-Frame-Options": "DENY"},
    "add": {"X-Added": ["1", "2"]}, "defaults": {"X-Default": "own", "X-Sent": "own"}}
SERVER = ["Server: theirs", "X-Gone: 1", "x-gone: 2", "X-Old: a", "X-Frame-Options: SAMEORIGIN",
          "X-Frame-Options: ALLOWALL", "X-Sent: theirs", 'ETag: "1"', FRESH]


def answer(seen: Request) -> bytes:
    if seen.get("if-none-match"):
        return reply(b"", "304 Not Modified", *SERVER)
    return reply(b"0123456789", "200 OK", *SERVER)


def config(steps: dict = STEPS, **keys) -> dict:
    return {"hosts": [{"match": ["127.0.0.1"], "response": {"headers": steps}, **keys}]}


def check_changed(response: Response, status: int = 200) -> None:
    assert response.status == status
    assert "server" not in response and "x-gone" not in response and "x-old" not in response
    assert response.all("x-new") == ["a"]
    assert response.all("x-frame-options") == ["DENY"]
    assert response.all("x-added") == ["1", "2"]
    assert (response.get("x-default"), response.get("x-sent")) == ("own", "theirs")


def test_misses_hits_and_parts_have_the_same_fields(gateway, origin):
    there = origin(answer)
    running = gateway(config())
    url = there.url("/a")
    check_changed(running.get(url))
    hit = running.get(url)
    assert "hit" in hit.cache_status and hit.body == b"0123456789"
    check_changed(hit)
    part = running.get(url, Range="bytes=2-3")
    assert (part.body, part.get("content-range")) == (b"23", "bytes 2-3/10")
    check_changed(part, 206)
    parts = running.get(url, Range="bytes=0-1,4-5")
    check_changed(parts, 206)
    assert parts.body.count(parts.get("content-type").partition("boundary=")[2].encode()) == 3
    assert len(there.requests) == 1
    with running.wire() as wire:
        check_changed(wire.ask(request(url, method="HEAD"), "HEAD"))


def test_a_304_changes_nothing_that_the_client_has_stored_for_the_worse(gateway, origin):
    """What a 304 leaves out stays at the client; what is added or a default there would replace it."""
    there = origin(answer)
    running = gateway(config({**STEPS, "add": {"X-Sent": "more"}, "defaults": {"X-Gone2": "own"}}))
    url = there.url("/a")
    assert running.get(url).all("x-sent") == ["theirs", "more"]
    fresh = running.get(url, If_None_Match='"1"')
    assert fresh.status == 304 and len(there.requests) == 1
    assert fresh.all("x-sent") == [] and "x-gone2" not in fresh
    assert fresh.get("x-frame-options") == "DENY" and fresh.get("etag") == '"1"'
    # One from the server has the field, so that another line belongs to it.
    passed = running.get(url, If_None_Match='"1"', Cache_Control="no-cache")
    assert passed.status == 304 and len(there.requests) == 2
    assert passed.all("x-sent") in ([], ["theirs", "more"])


def test_a_reload_applies_to_what_is_stored_at_once(gateway, origin):
    there = origin(answer)
    running = gateway(config())
    url = there.url("/a")
    check_changed(running.get(url))
    reload(running, {**running.config, **config({"set": {"X-Frame-Options": "ANOTHER"}})})
    hit = running.get(url)
    assert "hit" in hit.cache_status and len(there.requests) == 1
    assert hit.all("x-frame-options") == ["ANOTHER"]
    assert (hit.get("server"), hit.get("x-old"), hit.all("x-gone")) == ("theirs", "a", ["1", "2"])
    reload(running, {**running.config, "hosts": []})
    hit = running.get(url)
    assert "hit" in hit.cache_status and hit.all("x-frame-options") == ["SAMEORIGIN", "ALLOWALL"]


def test_the_caches_decisions_are_the_servers(gateway, origin):
    """What clients are told of storing changes nothing about what is stored."""
    there = origin(lambda seen: reply(
        b"x", "200 OK", FRESH if seen.target == "/kept" else "Cache-Control: no-store"))
    running = gateway(config({"set": {"Cache-Control": "no-store"}}))
    assert running.get(there.url("/kept")).get("cache-control") == "no-store"
    hit = running.get(there.url("/kept"))
    assert "hit" in hit.cache_status and hit.get("cache-control") == "no-store"
    reload(running, {**running.config, **config({"set": {"Cache-Control": "max-age=60"}})})
    for _ in range(2):
        response = running.get(there.url("/not"))
        assert "hit" not in response.cache_status and response.get("cache-control") == "max-age=60"


def test_the_gateways_own_replies_are_not_changed(gateway, origin):
    there = origin(answer)
    running = gateway({
        **config({"set": {"X-Frame-Options": "DENY"}, "remove": ["Date2"]}),
        "access": {"rules": [{"name": "no", "paths": ["/no"], "action": "deny"}]}})
    refused = running.get(there.url("/no"))
    assert refused.status == 403 and "x-frame-options" not in refused
    check = running.get(there.url("/stored"))
    assert check.get("x-frame-options") == "DENY"
    there.close()
    failed = running.get(there.url("/gone"))
    assert failed.status in (502, 504) and "x-frame-options" not in failed
    assert "proxy-status" in failed
    with running.wire() as wire:
        own = wire.ask(request(there.url("/"), method="OPTIONS", Max_Forwards="0"))
    assert own.status == 200 and "x-frame-options" not in own


def test_errors_of_the_server_are_changed(gateway, origin):
    there = origin(lambda seen: reply(b"no", "500 Oops", *SERVER))
    running = gateway(config())
    response = running.get(there.url("/"))
    check_changed(response, 500)
    assert response.reason == "Oops" and response.body == b"no"


def test_chunked_responses_keep_their_framing(gateway, scripted_origin):
    there = scripted_origin(scripted(chunked([b"ab", b"c"], "Server: theirs", "Trailer: X-T",
                                             trailers=("X-T: 1",))))
    running = gateway(config({"remove": ["Server"], "set": {"X-Big": "v" * 4000}}))
    response = running.get(there.url("/"))
    assert response.body == b"abc" and "server" not in response
    assert response.get("x-big") == "v" * 4000


def test_many_large_fields_fit(gateway, origin):
    there = origin(answer)
    steps = {"set": {f"X-{number}": "v" * 4096 for number in range(50)}}
    running = gateway(config(steps))
    for _ in range(2):
        with running.wire() as wire:
            wire.send(request(there.url("/a")))
            head = wire.read_until(b"\r\n\r\n")
            assert wire.read_exactly(10) == b"0123456789"
        assert head.count(b"v" * 4096 + b"\r\n") == 50


def test_requests_in_an_intercepted_tunnel_and_on_a_reverse_route(gateway, origin, pki, authority):
    there = origin(answer, tls=pki.intermediate.issue(HOST).server_context())
    clear = origin(answer)
    entry = {"match": [HOST, "127.0.0.1"], "intercept": True, "response": {"headers": STEPS}}
    running = gateway({
        "tls": {"roots": [str(pki.root.pem_file)]}, "interception": authority.section,
        "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
                      {"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
                       "upstream": clear.url("")}],
        "access": {"connectPorts": "any", "destinations": {"allow": ["127.0.0.0/8", "**.test"]}},
        "hosts": [entry]})
    seen = ask_inside(running, HOST, there.port,
                      f"GET / HTTP/1.1\r\nHost: {HOST}:{there.port}\r\n\r\n".encode())
    check_changed(seen)
    check_changed(running.get("/a", listener="back"))


def test_a_switch_of_protocols_has_the_fields_too(gateway, scripted_origin):
    def agree(connection):
        assert connection.read_request_head() is not None
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                        b"Upgrade: echo\r\nServer: theirs\r\n\r\nhello")

    there = scripted_origin(agree)
    running = gateway(config({"remove": ["Server"], "set": {"X-Own": "1"}}))
    with running.wire() as wire:
        wire.send(request(there.url("/"), Connection="Upgrade", Upgrade="echo"))
        head = wire.read_head()
        assert (head.status, head.get("upgrade"), head.get("x-own")) == (101, "echo", "1")
        assert "server" not in head
        assert wire.read_exactly(5) == b"hello"


def test_parts_are_still_stored(gateway, origin):
    """What only changes on the way out is no reason to store less."""
    body = bytes(range(256)) * 40

    def parts(seen: Request) -> bytes:
        value = seen.get("range")
        if not value:
            return reply(body, "200 OK", 'ETag: "1"', FRESH)
        first, last = (int(end) for end in value.removeprefix("bytes=").split("-"))
        return reply(body[first:last + 1], "206 Partial Content", 'ETag: "1"', FRESH,
                     f"Content-Range: bytes {first}-{last}/{len(body)}")

    there = origin(parts)
    running = gateway(config({"set": {"X-Own": "1"}}))
    for _ in range(2):
        response = running.get(there.url("/a"), Range="bytes=100-199")
        assert (response.status, response.body, response.get("x-own")) == (206, body[100:200], "1")
    assert len(there.requests) == 1


# A pseudonym


NAMED = ("via", "cache-status", "proxy-status")


def products(response: Response) -> list[str]:
    """Where the product is named."""
    texts = [f"{name}: {value}" for name, value in response.headers] + [response.body.decode("latin-1")]
    return [text for text in texts if "pinfold" in text.lower()]


@pytest.fixture
def hidden(gateway, origin):
    there = origin(answer)
    running = gateway({"via": "gateway-1", "hosts": [
        {"match": ["127.0.0.1"], "via": "front"}, {"match": ["refused.test"], "clearText": "refuse"}]})
    return running, there


def test_nothing_names_the_product(hidden):
    running, there = hidden
    url = there.url("/a")
    for response in [running.get(url), running.get(url), running.get(url, Range="bytes=0-1,3-4"),
                     running.get(url, If_None_Match='"1"')]:
        assert products(response) == []
        assert response.get("via") == "1.1 front"
        assert response.members("cache-status")[-1][0] == "front"
    refused = running.get("http://refused.test/")
    assert refused.status == 403 and products(refused) == []
    assert refused.members("proxy-status")[0][0] == "gateway-1"
    assert refused.members("cache-status")[0][0] == "gateway-1"
    with running.wire() as wire:
        wire.send("NONSENSE\r\n\r\n")
        bad = wire.read()
    assert bad.status == 400 and products(bad) == []
    there.close()
    failed = running.get(there.url("/gone"))
    assert failed.status >= 500 and products(failed) == []
    assert failed.members("proxy-status")[0][0] == "front"


def test_a_server_sees_the_pseudonym_with_a_mark(hidden):
    running, there = hidden
    running.get(there.url("/a"), Via="1.0 other")
    protocol, name, mark = there.requests[0].all("via")[-1].split(" ")
    assert (protocol, name) == ("1.1", "front")
    assert len(mark) == 18 and mark[0] == "(" and mark[-1] == ")"
    assert there.requests[0].all("via")[0] == "1.0 other"
    assert not [text for text in there.requests[0].headers if "pinfold" in f"{text}".lower()]


def test_a_tunnel_is_opened_under_the_pseudonym(gateway, scripted_origin):
    there = scripted_origin(lambda connection: None)
    running = gateway({"hosts": [{"match": ["127.0.0.1"], "via": "front"}],
                       "access": {"connectPorts": "any", "destinations": {"allow": ["127.0.0.0/8"]}}})
    wire, response = running.connect(f"127.0.0.1:{there.port}")
    wire.close()
    assert (response.status, response.get("via")) == (200, "1.1 front")


def test_another_gateway_of_the_same_name_is_no_loop(hidden):
    running, there = hidden
    via = ", ".join("1.1 front (0123456789abcdef)" for _ in range(50))
    assert running.get(there.url("/a"), Via=via).status == 200


def test_loops_are_found_by_the_mark_and_where_it_is_removed_by_the_name(hidden):
    running, there = hidden
    running.get(there.url("/a"), Cache_Control="no-cache")
    own = there.requests[0].all("via")[-1]
    mark = own.split(" ")[2]
    for member in [own, f"1.1 another-name {mark}", "1.1 front", "1.1 gateway-1", "1.0 FRONT"]:
        assert running.get(there.url("/b"), Via=", ".join([member] * 10)).status == 200, member
        looped = running.get(there.url("/b"), Via=", ".join([member] * 11))
        assert looped.status == 508, member
    assert running.get(there.url("/b"), Via=", ".join(["1.1 fronted"] * 30)).status == 200


def test_a_real_loop_through_another_proxy_ends(gateway, origin, scripted_origin):
    """Whoever stands in between sends everything back."""
    sent = []

    def back(connection):
        while (seen := connection.read_request()) is not None:
            sent.append(seen)
            with socket.create_connection(running.proxy) as again:
                lines = "\r\n".join(f"{name}: {value}" for name, value in seen.headers
                                    if name.lower() != "connection")
                again.sendall(f"GET http://loop.test:{there.port}/ HTTP/1.1\r\n{lines}\r\n"
                              "Connection: close\r\n\r\n".encode())
                data = b""
                while part := again.recv(1 << 16):
                    data += part
            connection.send(data)

    there = scripted_origin(back)
    running = gateway({"via": "front", "workers": 2,
                       "access": {"destinations": {"allow": ["127.0.0.0/8", "**.test"]}},
                       "timeouts": {"firstByte": "20s"}})
    response = running.get(f"http://loop.test:{there.port}/")
    assert response.status == 508
    assert 11 <= len(sent) <= 12


# What is sent to servers is part of what a stored response is for


def test_another_field_or_credential_of_the_gateway_is_another_response(gateway, origin, workspace):
    there = origin(lambda seen: reply(
        f"{seen.get('x-tenant')} {seen.get('authorization')}".encode(), "200 OK",
        "Cache-Control: public, max-age=600"))
    secret = workspace / "secret"
    secret.write_text("one\n")

    def entry(tenant: str) -> dict:
        return {"hosts": [{"match": ["127.0.0.1"], "request": {
            "headers": {"set": {"X-Tenant": tenant}},
            "authorization": {"bearer": {"tokenFile": str(secret)}, "clearText": "allow"}}}]}

    running = gateway(entry("a"))
    url = there.url("/x")
    assert running.get(url).body == b"a Bearer one"
    assert "hit" in running.get(url).cache_status
    reload(running, {**running.config, **entry("b")})
    other = running.get(url)
    assert (other.body, "hit" in other.cache_status) == (b"b Bearer one", False)
    secret.write_text("two\n")
    until(lambda: running.get(url).body == b"b Bearer two", "the new token is in force")
    # A rule of access that tells clients apart changes nothing that is sent.
    reload(running, {**running.config, **entry("b"), "access": {**running.config["access"], "rules": [
        {"name": "no", "paths": ["/no"], "action": "deny"}]}})
    assert "hit" in running.get(url).cache_status
    # Another response field is no other response.
    config = entry("b")
    config["hosts"][0]["response"] = {"headers": {"set": {"X-Own": "1"}}}
    reload(running, {**running.config, **config})
    hit = running.get(url)
    assert "hit" in hit.cache_status and hit.get("x-own") == "1"


@pytest.mark.parametrize(("realm", "is_warned"), [("", True), ("realm: Front, ", False)])
def test_a_realm_that_names_the_product_is_warned_of(workspace, realm, is_warned):
    write(workspace / "users", f"ann:{bcrypt('a')}")
    file = workspace / "pinfold.yaml"
    file.write_text(
        "via: front\nlisteners: [{ name: proxy, address: '127.0.0.1:0', kind: forward, "
        f"authentication: [basic] }}]\nauthentication: {{ {realm}users: users }}\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 0
    assert ("authentication.realm" in done.stderr) is is_warned


def test_a_reverse_route_that_asks_who_is_there_does_so_under_the_pseudonym(gateway, origin, workspace):
    write(workspace / "users", f"ann:{bcrypt('a')}")
    there = origin(answer)
    running = gateway({
        "listeners": [{"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
                       "upstream": there.url(""), "authentication": ["basic"]}],
        "authentication": {"realm": "Front", "users": str(workspace / "users")},
        "hosts": [{"match": ["127.0.0.1"], "via": "front"}]})
    response = running.get("/", listener="back")
    assert response.status == 401 and products(response) == []
    assert response.members("proxy-status")[0][0] == "front"
