"""Reverse listeners with several servers: which of them gets a request, and what happens when one fails."""

from __future__ import annotations

import collections
import signal
import socket
import ssl
import threading

import pytest
from support.gateway import Gateway
from support.origin import HTTPOrigin, OriginConnection, Request, reply
from support.wait import until
from support.wire import Closed, Response, Wire

FRESH = "Cache-Control: max-age=600"


def route(*servers: object, listener: dict | None = None, **keys: object) -> dict:
    """A configuration with one route; a server is an origin, or a mapping with url."""
    written = [one if isinstance(one, dict) else {"url": one.url("")} for one in servers]
    return {"listeners": [{"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
                           "upstreams": {"servers": written, **keys}, **(listener or {})}]}


def ask(running: Gateway, *fields: str, path: str = "/", method: str = "GET", body: str = "",
        wire: Wire | None = None) -> Response:
    lines = [f"{method} {path} HTTP/1.1", "Host: front", *fields]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    if wire is None:
        lines.append("Connection: close")
    data = "\r\n".join(lines) + "\r\n\r\n" + body
    if wire is None:
        return running.ask(data, listener="back")
    wire.send(data)
    return wire.read(method)


def named(origin, name: str, *fields: str, **options: object) -> HTTPOrigin:
    return origin(lambda _: reply(name.encode(), "200 OK", *fields), **options)


def dead_url() -> str:
    """The URL of a port at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return "http://127.0.0.1:%d" % server.getsockname()[1]


def count(running: Gateway, what: str, server: str, **labels: str) -> float:
    return running.metric(f"pinfold_upstream_server_{what}", server=server, **labels)


def state(running: Gateway, server: str) -> str:
    for word in ["up", "down", "ejected", "draining"]:
        if count(running, "state", server, state=word):
            return word
    return ""


def answers(running: Gateway, times: int, *fields: str) -> collections.Counter:
    return collections.Counter(ask(running, *fields).body.decode() for _ in range(times))


def reload(running: Gateway, config: dict) -> None:
    running.config = {**running.config, **config}
    running.write_config(running.config)
    generation = running.metric("pinfold_config_generation")
    running.signal(signal.SIGHUP)
    until(lambda: running.metric("pinfold_config_generation") > generation,
          lambda: f"reloaded:\n{running.log()}")


# Which server


def test_requests_are_divided_in_turns_by_weight(gateway, origin):
    one, two = named(origin, "one"), named(origin, "two")
    running = gateway({"workers": 1} | route(
        {"url": one.url(""), "weight": 3}, two, balance="roundRobin"))
    found = answers(running, 80)
    assert 58 <= found["one"] <= 62 and found["one"] + found["two"] == 80
    assert count(running, "requests_total", one.url("")) == found["one"]
    assert len(one.requests) == found["one"]


def test_the_server_with_the_fewest_requests_is_asked(gateway, origin):
    release, held = threading.Event(), threading.Semaphore(0)

    def slow(_: Request) -> bytes:
        held.release()
        release.wait(20)
        return reply(b"slow")

    one, two = origin(slow), named(origin, "two")
    running = gateway({"cache": {"enabled": False}} | route(one, two))
    waiting = []
    # One request is held at the first server; as long as it is, all others go to the second.
    while not one.requests:
        wire = running.wire("back")
        wire.send("GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        until(lambda n=len(waiting) + 1: len(one.requests) + len(two.requests) == n, "it arrived")
        waiting.append(wire)
    until(lambda: count(running, "requests_in_flight", two.url("")) == 0, "the others are answered")
    assert answers(running, 20) == {"two": 20}
    assert count(running, "requests_in_flight", one.url("")) == 1
    release.set()
    for wire in waiting:
        assert wire.read().status == 200
        wire.close()
    until(lambda: count(running, "requests_in_flight", one.url("")) == 0, "nothing is under way")


@pytest.mark.parametrize("hashed, field", [("path", None), ({"field": "X-User"}, "X-User"),
                                           ("client", None)])
def test_the_same_value_goes_to_the_same_server(gateway, origin, hashed, field):
    servers = [named(origin, str(number)) for number in range(4)]
    running = gateway({"cache": {"enabled": False}} | route(*servers, balance={"hash": hashed}))
    found = {}
    for turn in range(3):
        for value in range(24):
            fields = [f"{field}: u{value}"] if field else []
            path = f"/p{value}?turn={turn}" if hashed == "path" else "/"
            body = ask(running, *fields, path=path).body
            assert found.setdefault(value, body) == body
    assert len(set(found.values())) == (1 if hashed == "client" else 4)


def test_requests_without_the_field_go_in_turns(gateway, origin):
    servers = [named(origin, str(number)) for number in range(2)]
    running = gateway({"workers": 1} | route(*servers, balance={"hash": {"field": "X-User"}}))
    found = answers(running, 20)
    assert 9 <= found["0"] <= 11


def test_a_backup_is_asked_while_no_other_can_be(gateway, origin):
    spare = named(origin, "spare")
    gone = dead_url()
    running = gateway(route({"url": gone}, {"url": spare.url(""), "backup": True},
                            ejection={"failures": 3, "period": "1h"}))
    # Nothing is lost: what the first server did not get goes to the backup.
    assert answers(running, 10) == {"spare": 10}
    assert state(running, gone) == "ejected"
    line = running.wait_log("a server is left out")
    assert gone in line and "back" in line and "refused" in line
    assert count(running, "failures_total", gone, cause="connect") == 3
    assert count(running, "ejections_total", gone) == 1
    assert count(running, "retries_total", spare.url("")) == 3


def test_a_server_of_weight_0_is_not_asked(gateway, origin):
    one, two = named(origin, "one"), named(origin, "two")
    running = gateway(route({"url": one.url(""), "weight": 0}, two))
    assert answers(running, 10) == {"two": 10}
    assert state(running, one.url("")) == "draining"


def test_host_is_the_servers_own_or_the_clients(gateway, origin):
    one = named(origin, "one")
    running = gateway(route(one))
    ask(running)
    assert one.requests[0].get("host") == one.authority
    reload(running, route(one, listener={"host": "keep"}))
    ask(running)
    assert one.requests[1].get("host") == "front"


def test_what_one_server_sent_is_stored_for_all(gateway, origin):
    servers = [named(origin, str(number), FRESH) for number in range(3)]
    running = gateway(route(*servers, balance="roundRobin"))
    assert len(answers(running, 12)) == 1
    assert sum(len(one.requests) for one in servers) == 1
    # Not even the server's end matters, nor its removal.
    for one in servers:
        if one.requests:
            gone = one
    reload(running, route(*[one for one in servers if one is not gone]))
    assert answers(running, 3) == {str(servers.index(gone)): 3}


# Failures


def test_a_killed_server_loses_nothing_that_may_be_repeated(gateway, origin):
    one, two = named(origin, "one"), named(origin, "two")
    running = gateway(route(one, two, ejection={"failures": 5, "period": "1h"}))
    total, lost, repeated = 1500, [], collections.Counter()
    lock = threading.Lock()
    started = threading.Semaphore(0)

    def client(number: int) -> None:
        with running.wire("back") as wire:
            for index in range(total // 6):
                response = ask(running, path=f"/{number}/{index}", wire=wire)
                with lock:
                    if response.status != 200:
                        lost.append(response.body)
                started.release()

    threads = [threading.Thread(target=client, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    for _ in range(300):
        started.acquire()
    one.close()
    for thread in threads:
        thread.join()
    assert lost == []
    for request in one.requests + two.requests:
        repeated[request.target] += 1
    assert len(repeated) == total // 6 * 6
    until(lambda: state(running, one.url("")) == "ejected", "the dead server is left out")


def test_what_may_have_been_acted_on_is_not_repeated(gateway, scripted_origin, origin):
    def dies(connection: OriginConnection) -> None:
        connection.read_request()

    one = scripted_origin(dies)
    two = named(origin, "two")
    running = gateway(route(one, {"url": two.url(""), "backup": True},
                            ejection={"failures": 0}, retries={"attempts": 3, "budget": "100%"}))
    for _ in range(5):
        response = ask(running, method="POST", body="x")
        assert response.status == 502 and b"upstream-closed" in response.body
    assert two.requests == []
    # The same for GET is sent to the other one.
    assert ask(running).body == b"two"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_what_was_not_sent_goes_to_another_server(gateway, origin, method):
    two = named(origin, "two")
    gone = dead_url()
    running = gateway(route({"url": gone}, {"url": two.url(""), "backup": True}))
    response = ask(running, method=method, body="content" if method == "POST" else "")
    assert response.body == b"two"
    assert [request.body for request in two.requests] == [b"content" if method == "POST" else b""]


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_an_answer_of_a_failing_server_is_replaced_by_another(gateway, origin, status):
    one = origin(lambda _: reply(b"one", f"{status} No"))
    two = named(origin, "two")
    running = gateway(route(one, {"url": two.url(""), "backup": True}))
    assert ask(running).body == (b"one" if status == 500 else b"two")
    # A POST may have been acted on.
    assert ask(running, method="POST", body="x").body == b"one"
    failed = count(running, "failures_total", one.url(""), cause="status")
    assert failed == (0 if status == 500 else 2)


def test_a_server_that_hangs_is_given_up_for_another(gateway, scripted_origin, origin):
    one = scripted_origin(lambda connection: connection.read_to_end())
    two = named(origin, "two")
    running = gateway({"timeouts": {"firstByte": "200ms"}} | route(
        one, {"url": two.url(""), "backup": True}, ejection={"failures": 2, "period": "1h"}))
    assert answers(running, 5) == {"two": 5}
    assert count(running, "failures_total", one.url(""), cause="timeout") == 2


def test_if_all_servers_fail_the_retries_keep_to_their_budget(gateway, origin):
    servers = [origin(lambda _: reply(b"no", "503 No")) for _ in range(3)]
    running = gateway({"cache": {"enabled": False}} | route(
        *servers, retries={"attempts": 2, "budget": "20%"}, ejection={"failures": 0}))
    total = 300
    with running.wire("back") as wire:
        for _ in range(total):
            assert ask(running, wire=wire).status == 503
    asked = sum(len(one.requests) for one in servers)
    # A fifth of the requests, and the ten that there are to begin with.
    assert total < asked <= total + total // 5 + 10
    assert running.metric("pinfold_upstream_retries_total", reason="other_server") == asked - total


def test_without_attempts_nothing_is_repeated(gateway, origin):
    two = named(origin, "two")
    gone = dead_url()
    running = gateway(route({"url": gone}, {"url": two.url(""), "backup": True},
                            retries={"attempts": 0}, ejection={"failures": 3, "period": "1h"}))
    found = [ask(running).status for _ in range(5)]
    assert found == [502, 502, 502, 200, 200]


def test_an_ejected_server_comes_back(gateway, origin):
    is_broken = threading.Event()
    is_broken.set()
    one = origin(lambda _: reply(b"one", "503 No" if is_broken.is_set() else "200 OK"))
    two = named(origin, "two")
    running = gateway(route(one, two, ejection={"failures": 2, "period": "300ms"},
                            balance="roundRobin"))
    until(lambda: ask(running) and count(running, "ejections_total", one.url("")) == 1, "ejected")
    is_broken.clear()
    until(lambda: ask(running).body == b"one", "it is asked again")
    assert state(running, one.url("")) == "up"


# Checks


def checks(path: str = "/health", **keys: object) -> dict:
    return {"health": {"path": path, "interval": "300ms", "timeout": "300ms", "rise": 2, "fall": 2,
                       **keys}}


def test_checks_take_a_server_out_and_bring_it_back(gateway, origin):
    is_ill = threading.Event()
    one = origin(lambda request: reply(
        b"one", "500 No" if is_ill.is_set() and request.target == "/health" else "200 OK"))
    two = named(origin, "two")
    running = gateway(route(one, two, balance="roundRobin", **checks()))
    until(lambda: count(running, "checks_total", one.url(""), result="passed") > 1, "it is checked")
    check = next(request for request in one.requests if request.target == "/health")
    assert check.get("host") == one.authority and check.get("user-agent") == "pinfold-check"
    assert len(answers(running, 10)) == 2
    is_ill.set()
    until(lambda: state(running, one.url("")) == "down", "it is down")
    line = running.wait_log("a server is down")
    assert one.url("") in line and "500" in line
    assert answers(running, 10) == {"two": 10}
    is_ill.clear()
    until(lambda: state(running, one.url("")) == "up", "it is up")
    running.wait_log("a server is up")
    assert len(answers(running, 10)) == 2


def test_without_a_server_the_gateway_says_so(gateway, origin):
    one = origin(lambda _: reply(b"one", "500 No"))
    running = gateway(route(one, {"url": dead_url(), "backup": True}, **checks()))
    until(lambda: state(running, one.url("")) == "down", "it is down")
    until(lambda: running.metric("pinfold_upstream_server_state", state="down") == 2, "both are")
    response = ask(running)
    assert response.status == 503 and b"no-server" in response.body
    assert response.get("retry-after") == "1"
    assert one.authority.encode() not in response.body
    status = running.admin_get("/api/v1/status").json()
    assert [server["state"] for server in status["servers"]] == ["down", "down"]
    assert "500" in status["servers"][0]["cause"]


def test_a_check_that_is_not_answered_has_failed(gateway, scripted_origin, origin):
    one = scripted_origin(lambda connection: connection.read_to_end())
    two = named(origin, "two")
    running = gateway(route(one, two, **checks()))
    until(lambda: state(running, one.url("")) == "down", "it is down")
    assert "300 ms" in running.wait_log("a server is down")


def test_statuses_of_checks_are_chosen(gateway, origin):
    one = origin(lambda _: reply(b"", "404 No"))
    running = gateway(route(one, **checks(statusCodes=["200-299", "404"])))
    until(lambda: count(running, "checks_total", one.url(""), result="passed") > 2, "it passes")
    assert count(running, "checks_total", one.url(""), result="failed") == 0


def test_a_server_with_another_key_is_taken_out(gateway, origin, pki, dns):
    leaf, other = pki.intermediate.issue("a.test"), pki.intermediate.issue("b.test")
    dns.set("a.test", "127.0.0.1")
    dns.set("b.test", "127.0.0.1")
    one = named(origin, "one", tls=leaf.server_context())
    two = named(origin, "two", tls=other.server_context())
    first, second = f"https://a.test:{one.port}", f"https://b.test:{two.port}"
    running = gateway(
        {"tls": {"roots": [str(pki.root.pem_file)]},
         "pinsets": {"right": {"mode": "publicKey", "pins": [leaf.pin, pki.rogue_root.pin]}},
         "hosts": [{"match": ["a.test"], "pinsets": ["right"]},
                   {"match": ["b.test"], "pinsets": ["right"]}]}
        | route({"url": first}, {"url": second}, **checks()))
    until(lambda: state(running, second) == "down", "the one with another key is down")
    assert "no pin matches" in running.wait_log("a server is down")
    assert state(running, first) == "up"
    assert answers(running, 10) == {"one": 10}
    assert two.requests == []


# Cookies


def cookie(response: Response) -> str:
    return response.get("set-cookie").partition(";")[0]


def test_a_cookie_binds_a_client_to_a_server(gateway, origin):
    servers = [named(origin, str(number)) for number in range(4)]
    running = gateway(route(*servers, balance="roundRobin", sticky={"cookie": "route"}))
    first = ask(running)
    value = first.get("set-cookie")
    assert value.endswith("; Path=/; HttpOnly; SameSite=Lax") and value.startswith("route=")
    for one in servers:
        assert str(one.port) not in value and "127.0.0.1" not in value
    bound = f"Cookie: a=1; {cookie(first)}; b=2"
    for _ in range(8):
        response = ask(running, bound)
        assert response.body == first.body and "set-cookie" not in response
    server = servers[int(first.body)]
    assert {request.get("cookie") for request in server.requests[1:]} == {"a=1; b=2"}
    ask(running, f"Cookie: {cookie(first)}")
    assert "cookie" not in server.requests[-1]
    # Over a restart the same.
    running.restart()
    assert ask(running, bound).body == first.body
    # While it drains, it serves those who are bound to it and no others.
    drained = [{"url": one.url(""), "weight": 0 if one is server else 1} for one in servers]
    reload(running, route(*drained, balance="roundRobin", sticky={"cookie": "route"}))
    assert ask(running, bound).body == first.body
    assert first.body.decode() not in answers(running, 8)


def test_the_answer_to_upgrade_sets_the_cookie(gateway, scripted_origin):
    def switch(connection: OriginConnection) -> None:
        connection.read_request()
        connection.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")
        connection.send(connection.read_exactly(4))
        connection.read_to_end()

    running = gateway(route(*(scripted_origin(switch) for _ in range(3)), balance="roundRobin",
                            sticky={"cookie": "route"}))
    asking = ("GET / HTTP/1.1\r\nHost: front\r\nConnection: Upgrade\r\nUpgrade: echo\r\n{}\r\n")
    with running.wire("back") as wire:
        wire.send(asking.format(""))
        first = wire.read_head()
        assert first.status == 101 and first.get("set-cookie").startswith("route=")
        wire.send("ping")
        assert wire.read_exactly(4) == b"ping"
    server = running.wait_access()[0]["upstream"]
    for _ in range(3):
        with running.wire("back") as wire:
            wire.send(asking.format(f"Cookie: {cookie(first)}\r\n"))
            response = wire.read_head()
            assert response.status == 101 and "set-cookie" not in response
            wire.send("ping")
            assert wire.read_exactly(4) == b"ping"
    assert {line["upstream"] for line in running.wait_access(4)} == {server}


@pytest.mark.parametrize("value", ["route=forged", "route=", "route=AAAAAAAAAAAAAAAAAAAAAA",
                                   "routes=x", "Route=x"])
def test_a_value_that_is_not_ours_is_ignored(gateway, origin, value):
    one = named(origin, "one")
    running = gateway(route(one, sticky={"cookie": "route"}))
    response = ask(running, f"Cookie: {value}")
    assert response.status == 200 and "set-cookie" in response
    assert one.requests[0].get("cookie") == ("" if value.startswith("route=") else value)


def test_the_cookie_is_not_stored(gateway, origin):
    one = named(origin, "one", FRESH, "Vary: Cookie")
    running = gateway(route(one, sticky={"cookie": "route"}))
    first = ask(running)
    assert "set-cookie" in first
    for fields in [[], [f"Cookie: {cookie(first)}"], ["Cookie: route=other"]]:
        again = ask(running, *fields)
        assert "hit" in again.cache_status and "set-cookie" not in again


def test_a_client_whose_server_is_gone_gets_another(gateway, origin):
    servers = [named(origin, str(number)) for number in range(2)]
    running = gateway({"cache": {"enabled": False}} | route(
        *servers, sticky={"cookie": "route"}, ejection={"failures": 1, "period": "1h"}))
    first = ask(running)
    servers[int(first.body)].close()
    second = ask(running, f"Cookie: {cookie(first)}")
    assert second.status == 200 and second.body != first.body
    assert cookie(second) not in ("", cookie(first))


# Limits


def test_a_server_has_no_more_connections_than_it_may(gateway, origin):
    release = threading.Event()
    lock, most, now = threading.Lock(), [0], [0]

    def slow(_: Request) -> bytes:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        release.wait(20)
        with lock:
            now[0] -= 1
        return reply(b"one")

    one = origin(slow)
    running = gateway({"cache": {"enabled": False}} | route(
        {"url": one.url(""), "maxConnections": 3}))
    wires = [running.wire("back") for _ in range(9)]
    for number, wire in enumerate(wires):
        wire.send(f"GET /{number} HTTP/1.1\r\nHost: front\r\n\r\n")
    until(lambda: running.metric("pinfold_upstream_server_requests_in_flight") == 9, "all wait")
    until(lambda: now[0] == 3, "three are there")
    release.set()
    for wire in wires:
        assert wire.read().status == 200
        wire.close()
    assert most[0] == 3


def test_a_full_server_leaves_requests_to_the_others(gateway, origin):
    release = threading.Event()

    def slow(_: Request) -> bytes:
        release.wait(20)
        return reply(b"one")

    one, two = origin(slow), named(origin, "two")
    running = gateway({"workers": 1, "cache": {"enabled": False}} | route(
        {"url": one.url(""), "maxConnections": 1, "weight": 200}, two, balance="roundRobin"))
    wires = []
    while not one.requests:
        wire = running.wire("back")
        wire.send("GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        until(lambda n=len(wires) + 1: len(one.requests) + len(two.requests) == n, "it arrived")
        wires.append(wire)
    assert answers(running, 10) == {"two": 10}
    release.set()
    for wire in wires:
        assert wire.read().status == 200
        wire.close()


# Reloads


def test_a_server_that_is_removed_finishes_what_it_has(gateway, origin):
    release, arrived = threading.Event(), threading.Event()

    def slow(request: Request) -> bytes:
        if request.target == "/slow":
            arrived.set()
            release.wait(20)
        return reply(b"one")

    one, two = origin(slow), named(origin, "two")
    running = gateway({"cache": {"enabled": False}} | route(one))
    with running.wire("back") as wire:
        wire.send("GET /slow HTTP/1.1\r\nHost: front\r\n\r\n")
        assert arrived.wait(20)
        reload(running, route(two))
        assert answers(running, 5) == {"two": 5}
        release.set()
        assert wire.read().body == b"one"
        # The client's connection goes on, with the servers that there are now.
        assert ask(running, wire=wire).body == b"two"
    assert [request.target for request in one.requests] == ["/slow"]


def test_a_server_whose_address_changes_is_followed(gateway, origin, dns):
    one = named(origin, "one", "Connection: close")
    two = named(origin, "two", "Connection: close",
                listener=socket.create_server(("127.0.0.2", one.port)))
    dns.set("moving.test", "127.0.0.1", ttl=1)
    running = gateway({"cache": {"enabled": False}} | route(
        {"url": f"http://moving.test:{one.port}"}))
    assert ask(running).body == b"one"
    dns.set("moving.test", "127.0.0.2", ttl=1)
    assert two.port == one.port
    until(lambda: ask(running).body == b"two", "the new address is asked")


def test_many_reloads_under_load_lose_nothing(gateway, origin):
    servers = [named(origin, str(number)) for number in range(3)]
    running = gateway({"cache": {"enabled": False}} | route(*servers))
    problems: list[object] = []
    ends = threading.Event()

    def client() -> None:
        with running.wire("back") as wire:
            while not ends.is_set():
                response = ask(running, wire=wire)
                if response.status != 200:
                    problems.append(response)

    threads = [threading.Thread(target=client) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(12):
        left = [one for index, one in enumerate(servers) if index != number % 4]
        reload(running, route(*left, balance=["roundRobin", "leastRequests"][number % 2]))
    ends.set()
    for thread in threads:
        thread.join()
    assert problems == []
    assert running.metric("pinfold_upstream_server_requests_in_flight") == 0


# HTTP/2


def test_servers_that_speak_http2_share_requests(gateway, http2_origin, pki, dns):
    leaf = pki.intermediate.issue("h2.test")
    dns.set("h2.test", "127.0.0.1")
    servers = [http2_origin(tls=leaf.server_context(alpn=("h2",))) for _ in range(2)]
    running = gateway(
        {"tls": {"roots": [str(pki.root.pem_file)]}, "cache": {"enabled": False}}
        | route(*[{"url": f"https://h2.test:{one.port}", "maxConnections": 1} for one in servers],
                balance="roundRobin"))
    for _ in range(20):
        assert ask(running).status == 200
    for one in servers:
        url = f"https://h2.test:{one.port}"
        assert 8 <= count(running, "requests_total", url) <= 12


# What else shows


def test_a_reset_counts_as_a_failure_and_is_repeated(gateway, scripted_origin, origin):
    def resets(connection: OriginConnection) -> None:
        connection.read_request()
        connection.reset()

    one = scripted_origin(resets)
    two = named(origin, "two")
    running = gateway(route(one, {"url": two.url(""), "backup": True},
                            ejection={"failures": 2, "period": "1h"}))
    assert answers(running, 4) == {"two": 4}
    assert count(running, "failures_total", one.url(""), cause="connection") == 2
    assert state(running, one.url("")) == "ejected"


def test_a_response_that_has_begun_is_cut_off_not_repeated(gateway, scripted_origin, origin):
    def breaks(connection: OriginConnection) -> None:
        connection.read_request()
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        # The client has it before the end.
        connection.read_to_end()

    one = scripted_origin(breaks)
    two = named(origin, "two")
    running = gateway({"timeouts": {"body": "300ms"}, "cache": {"enabled": False}} | route(
        one, {"url": two.url(""), "backup": True}))
    with running.wire("back") as wire:
        wire.send("GET / HTTP/1.1\r\nHost: front\r\n\r\n")
        assert wire.read_head().status == 200
        with pytest.raises(Closed):
            wire.read_exactly(100)
    assert two.requests == []
    until(lambda: count(running, "failures_total", one.url(""), cause="timeout") == 1, "counted")


def test_an_upload_that_has_begun_is_not_repeated(gateway, scripted_origin, origin):
    def dies(connection: OriginConnection) -> None:
        connection.read_request_head()
        connection.read_exactly(1)

    one = scripted_origin(dies)
    two = named(origin, "two")
    running = gateway(route(one, {"url": two.url(""), "backup": True}))
    # Idempotent, but its content is too large to be kept.
    response = ask(running, method="PUT", body="x" * 300_000)
    assert response.status == 502
    assert two.requests == []


def test_the_cookie_of_a_listener_with_tls_is_secure(gateway, origin, pki):
    leaf = pki.intermediate.issue("front.test")
    one = named(origin, "one")
    running = gateway(route(one, sticky={"cookie": "route"}, listener={
        "tls": {"certificate": str(leaf.chain_file()), "key": str(leaf.key_file)}}))
    context = ssl.create_default_context(cafile=str(pki.root.pem_file))
    with socket.create_connection(running.listeners["back"]) as plain:
        with context.wrap_socket(plain, server_hostname="front.test") as sock:
            with Wire(("", 0), sock=sock) as wire:
                assert ask(running, wire=wire).get("set-cookie").endswith("; SameSite=Lax; Secure")
    key = running.folder / "cache" / "sticky-key"
    assert key.stat().st_mode & 0o777 == 0o600 and key.stat().st_size == 32


def test_a_key_that_cannot_be_kept_is_warned_of(gateway, origin):
    one = named(origin, "one")
    running = gateway(route(one, sticky={"cookie": "route"}), start=False)
    (running.folder / "cache").mkdir()
    (running.folder / "cache" / "sticky-key").write_bytes(b"short")
    running.start()
    assert "sticky-key: not a file of 32 bytes" in running.wait_log("upstreams.sticky cannot be kept")
    assert "set-cookie" in ask(running)


def test_a_server_that_comes_back_begins_slowly(gateway, origin):
    is_ill = threading.Event()
    is_ill.set()
    one = origin(lambda request: reply(
        b"one", "500 No" if is_ill.is_set() and request.target == "/health" else "200 OK"))
    two = named(origin, "two")
    running = gateway({"workers": 1} | route(
        one, two, balance="roundRobin", slowStart="1h", **checks()))
    until(lambda: state(running, one.url("")) == "down", "it is down")
    is_ill.clear()
    until(lambda: state(running, one.url("")) == "up", "it is up")
    # A tenth of its weight: one request in eleven.
    found = answers(running, 110)
    assert 8 <= found["one"] <= 12, found


def test_the_access_log_has_the_server_that_answered(gateway, origin):
    two = named(origin, "two")
    running = gateway(route({"url": dead_url()}, {"url": two.url(""), "backup": True}))
    assert ask(running).body == b"two"
    line = running.wait_access()[0]
    assert line["listener"] == "back" and line["upstream"] == two.authority
