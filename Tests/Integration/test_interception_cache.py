"""One cache for all ways: what is asked for inside an intercepted tunnel is the same resource as an
`https://` target, and as clear text that is upgraded; and never the same as clear text."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest
from support.interception import ask_inside, inside
from support.origin import reply
from support.wait import until
from support.wire import Response, request

HOST, CLEAR = "seen.test", "clear.test"
FRESH = "Cache-Control: max-age=600"
WAYS = ["interception", "https target", "upgrade"]


@pytest.fixture
def running(gateway, pki):
    return gateway({
        "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
        "interception": pki.interception.section | {"default": True},
        "hosts": [{"match": [HOST], "upgrade": "https", "intercept": True}]})


@pytest.fixture
def there(origin, pki):
    counted = []

    def answer(seen):
        counted.append(seen)
        return reply(b"%d" % len(counted), "200 OK", FRESH)

    return origin(answer, tls=pki.intermediate.issue(HOST, CLEAR).server_context())


def ask(running, there, way: str, method: str = "GET", host: str = HOST, **fields) -> Response:
    authority = f"{host}:{there.port}"
    target = {"https target": f"https://{authority}/x", "upgrade": f"http://{authority}/x"}
    data = request(target.get(way, "/x"), host=authority, method=method, Connection="close",
                   **fields)
    if way == "interception":
        return ask_inside(running, host, there.port, data)
    return running.ask(data)


def hit(response: Response) -> bool:
    return "hit" in response.cache_status


@pytest.mark.parametrize("first", WAYS)
def test_what_one_way_has_stored_answers_the_others(running, there, first):
    assert ask(running, there, first).cache_status.get("stored") is True
    for way in WAYS:
        response = ask(running, there, way)
        assert hit(response) and response.body == b"1", way
    assert len(there.requests) == 1


@pytest.mark.parametrize("unsafe", WAYS)
def test_an_unsafe_request_by_one_way_invalidates_for_the_others(running, there, unsafe):
    ask(running, there, "interception")
    assert all(hit(ask(running, there, way)) for way in WAYS)
    assert ask(running, there, unsafe, "POST").status == 200
    others = [ask(running, there, way) for way in WAYS]
    assert [hit(one) for one in others] == [False, True, True]
    assert {one.body for one in others} == {b"3"}


def test_a_crowd_by_all_ways_asks_the_server_once(running, scripted_origin, pki):
    release, asked = threading.Event(), []

    def script(connection) -> None:
        while (seen := connection.read_request()) is not None:
            asked.append(seen)
            release.wait(20)
            connection.send(reply(b"shared", "200 OK", FRESH))

    there = scripted_origin(script, tls=pki.intermediate.issue(HOST).server_context())
    authority = f"{HOST}:{there.port}"
    with contextlib.ExitStack() as stack:
        wires = []
        for target in ("/x", f"https://{authority}/x", f"http://{authority}/x") * 3:
            if target == "/x":
                wire, refused = inside(running, HOST, there.port)
                assert refused is None
            else:
                wire = running.wire()
            wires.append(stack.enter_context(wire))
            wire.send(request(target, host=authority))
        until(lambda: running.metric("pinfold_cache_collapse_waits_total") == len(wires) - 1,
              "all but the first wait")
        release.set()
        assert all(wire.read().body == b"shared" for wire in wires)
    assert len(asked) == 1


@pytest.mark.parametrize("written", [HOST, HOST.upper(), f"{HOST}."])
def test_the_host_of_connect_is_read_as_that_of_a_url(running, there, written):
    ask(running, there, "https target")
    wire, answer = running.connect(f"{written}:{there.port}")
    wire.close()
    assert answer.status == 200
    response = ask(running, there, "interception", host=written)
    assert hit(response) and response.body == b"1"


def test_what_came_in_clear_text_and_what_came_by_tls_are_kept_apart(running, origin, pki):
    """At one port even, where a server has begun to speak TLS."""
    body = [b"in clear text"]
    there = origin(lambda _: reply(body[0], "200 OK", FRESH, "Connection: close"))
    url = f"http://{CLEAR}:{there.port}/x"
    running.get(url)
    assert hit(running.get(url))
    body[0], there.tls = b"by TLS", pki.intermediate.issue(CLEAR).server_context()
    for way in ("interception", "https target"):
        response = ask(running, there, way, host=CLEAR)
        assert response.body == b"by TLS"
        assert hit(response) == (way == "https target")
    assert hit(running.get(url)) and running.get(url).body == b"in clear text"
    assert hit(ask(running, there, "interception", host=CLEAR))
    assert len(there.requests) == 2


@pytest.mark.parametrize("change", ["another key", "gone"])
def test_what_is_stored_is_served_inside_a_tunnel_whose_server_has_changed(
        running, there, pki, change):
    """It came from the server while that was trusted; the next tunnel is refused."""
    wire, _ = inside(running, HOST, there.port)
    data = request("/x", host=f"{HOST}:{there.port}")
    with wire:
        assert wire.ask(data).body == b"1"
        if change == "gone":
            there.close()
        else:
            there.tls = pki.rogue_root.issue(HOST).server_context()
            for one in there.connections:
                one.socket.shutdown(socket.SHUT_RDWR)
        until(lambda: running.metric("pinfold_upstream_connections_idle") == 0, "it is let go of")
        response = wire.ask(data)
        assert hit(response) and response.body == b"1"
        asked = wire.ask(request("/x", host=f"{HOST}:{there.port}", Cache_Control="no-cache"))
        assert asked.status == 502
        assert hit(wire.ask(data)), "which stays open"
    assert ask(running, there, "interception").status == 502
    assert len(there.requests) == 1


@pytest.mark.parametrize(("targeted", "ordinary", "reused"), [
    ("max-age=600", "no-store", False), ("no-store", "max-age=600", True)])
def test_the_targeted_field_is_not_for_what_stands_beside_clients(
        running, origin, pki, targeted, ordinary, reused):
    there = origin(
        lambda _: reply(b"x", "200 OK", f"CDN-Cache-Control: {targeted}",
                        f"Cache-Control: {ordinary}"),
        tls=pki.intermediate.issue(HOST).server_context())
    ask(running, there, "interception")
    response = ask(running, there, "interception")
    assert hit(response) == reused
    assert response.get("cdn-cache-control") == targeted, "others may be meant too"
