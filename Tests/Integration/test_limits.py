"""Limits hold for the process and for each client: one client cannot take what others need."""

from __future__ import annotations

import contextlib
import resource
import signal
import socket
import threading
import time

import pytest
from support.gateway import Gateway, merged, wire_from
from support.origin import OriginConnection, reply, waiting
from support.wait import SANITIZER, until
from support.wire import Closed, Wire, connect, request

NO_CACHE = {"cache": {"enabled": False}}


def is_refused(wire: Wire, url: str) -> bool:
    """Whether the gateway closes the connection without an answer."""
    try:
        wire.ask(request(url))
    except (Closed, ConnectionError):
        return True
    return False


@contextlib.contextmanager
def closing(*wires: Wire):
    try:
        yield
    finally:
        for wire in wires:
            wire.close()


# One client


@pytest.mark.parametrize("workers", [1, 2])
def test_a_client_has_at_most_its_share_of_connections(gateway, origin, scripted_origin, workers):
    there = origin(lambda _: reply(b"x"))
    release, arrived = threading.Event(), threading.Event()
    slow = scripted_origin(waiting(release, arrived))
    running = gateway({**NO_CACHE, "workers": workers, "limits": {"perClient": {"connections": 3}}})
    held = [wire_from(running, "127.0.0.2") for _ in range(3)]
    with closing(*held):
        for wire in held:
            wire.send(request(slow.url("/")))
        until(lambda: running.metric("pinfold_http_requests_in_flight") == 3, "all are in use")
        beyond = wire_from(running, "127.0.0.2")
        assert is_refused(beyond, there.url("/")), "a fourth connection is closed"
        beyond.close()
        other = wire_from(running, "127.0.0.3")
        assert other.ask(request(there.url("/"))).status == 200, "others have a share of their own"
        other.close()
        assert running.metric(
            "pinfold_client_connections_refused_total", reason="client_limit") == 1
        running.wait_log(r"client-connection-limit")
        release.set()
        assert [wire.read().status for wire in held] == [200] * 3
        held.pop().close()

        def served() -> bool:
            with contextlib.closing(wire_from(running, "127.0.0.2")) as wire:
                return not is_refused(wire, there.url("/"))

        until(served, "a connection that was closed makes room")


def test_each_limit_is_shown_beside_what_is_used_of_it(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()
    slow = scripted_origin(waiting(release, arrived))
    running = gateway({
        **NO_CACHE, "workers": 2,
        "limits": {"connections": 50, "upstreamPerHost": 2, "pending": 7,
                   "perClient": {"connections": 20, "exchanges": 10}}})

    def use() -> dict[str, tuple[float, float]]:
        found = running.metrics()
        return {
            "client": (found["pinfold_busiest_client_connections"],
                       found["pinfold_per_client_connections_limit"]),
            "exchanges": (found["pinfold_busiest_client_exchanges"],
                          found["pinfold_per_client_exchanges_limit"]),
            "origin": (found["pinfold_busiest_origin_connections"],
                       found["pinfold_origin_connections_limit"]),
            "waiting": (found["pinfold_busiest_origin_waiting"],
                        found["pinfold_origin_waiting_limit"]),
            "upstream": (found["pinfold_upstream_connections_open"],
                         found["pinfold_upstream_connections_limit"])}

    assert use() == {"client": (0, 20), "exchanges": (0, 10), "origin": (0, 2), "waiting": (0, 7),
                     "upstream": (0, 50)}
    held = [wire_from(running, "127.0.0.2") for _ in range(3)]
    other = wire_from(running, "127.0.0.3")
    with closing(other, *held):
        for number, wire in enumerate((*held, other)):
            wire.send(request(slow.url("/")))
            until(lambda n=number + 1: running.metric("pinfold_http_requests_in_flight") == n and (
                slow.accepted == min(n, 2)), "it has a connection, or waits for one")
        until(lambda: use() == {
            "client": (3, 20), "exchanges": (3, 10), "origin": (2, 2), "waiting": (2, 7),
            "upstream": (2, 50)}, lambda: f"two of four wait: {use()}")
        assert running.metric("pinfold_client_connections_open") >= 4
        assert running.metric("pinfold_client_connections_limit") == 50
        release.set()
        assert [wire.read().status for wire in (*held, other)] == [200] * 4


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_at_its_limit_a_client_gives_up_its_longest_idle_connection(gateway, origin, workers):
    """On whichever worker it is; other clients' are left alone."""
    there = origin(lambda _: reply(b"x"))
    running = gateway({**NO_CACHE, "workers": workers, "limits": {"perClient": {"connections": 3}}})
    other = wire_from(running, "127.0.0.3")
    held = [wire_from(running, "127.0.0.2") for _ in range(3)]
    with closing(other, *held):
        for wire in [other, *held]:
            assert wire.ask(request(there.url("/"))).status == 200
        for _ in range(3 * workers):
            held.append(wire_from(running, "127.0.0.2"))
            answer = held[-1].ask(request(there.url("/")))
            assert answer.status == 200, "no connection is refused while another one is idle"
        assert running.metric(
            "pinfold_client_connections_evicted_total", reason="client_limit") == 3 * workers
        assert running.metric(
            "pinfold_client_connections_refused_total", reason="client_limit") == 0
        assert other.ask(request(there.url("/"))).status == 200
        if workers == 1:
            for wire in held[:3]:
                assert wire.ended(), "the longest idle are closed"
            for wire in held[3:]:
                assert wire.ask(request(there.url("/"))).status == 200


def test_connections_that_become_idle_in_the_same_millisecond_are_given_up_in_their_order(
        gateway, origin):
    """Some hundred times, so that many share a millisecond."""
    there = origin(lambda _: reply(b"x"))
    running = gateway({**NO_CACHE, "workers": 1, "limits": {"perClient": {"connections": 3}}})
    held: list[Wire] = []
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            held.append(stack.enter_context(contextlib.closing(wire_from(running, "127.0.0.2"))))
            assert held[-1].ask(request(there.url("/"))).status == 200
            if len(held) > 3:
                assert held.pop(0).ended(), "it has been idle the longest"
            # Used again, it is idle the shortest.
            held.append(held.pop(0))
            assert held[-1].ask(request(there.url("/"))).status == 200


def test_a_client_has_at_most_its_share_of_exchanges(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway({**NO_CACHE, "limits": {"perClient": {"exchanges": 2}}})
    held = [wire_from(running, "127.0.0.2") for _ in range(2)]
    beyond, other = wire_from(running, "127.0.0.2"), wire_from(running, "127.0.0.3")
    try:
        for wire in held:
            wire.send(request(there.url("/")))
        until(lambda: there.accepted == 2, "both are at the origin")
        refused = beyond.ask(request(there.url("/")))
        assert refused.status == 503
        assert b"client-exchange-limit" in refused.body
        assert refused.proxy_status["error"] == "connection_limit_reached"
        assert running.wait_access(1)[-1]["reason"] == "client-exchange-limit"
        other.send(request(there.url("/")))
        until(lambda: there.accepted == 3, "another client's request goes on")
        release.set()
        assert [wire.read().status for wire in held + [other]] == [200] * 3
        assert beyond.ask(request(there.url("/"))).status == 200, "the connection goes on"
    finally:
        release.set()
        for wire in [*held, beyond, other]:
            wire.close()


def test_a_tunnel_counts_as_an_exchange_as_long_as_it_is_open(gateway, scripted_origin):
    there = scripted_origin(lambda connection: connection.read_to_end())
    running = gateway({**NO_CACHE, "limits": {"perClient": {"exchanges": 1}}})
    tunnel, opened = connect(running.proxy, there.authority)
    assert opened.status == 200
    second, refused = connect(running.proxy, there.authority)
    second.close()
    assert refused.status == 503
    tunnel.close()
    until(lambda: running.metric("pinfold_tunnels_open") == 0, "the tunnel is closed")
    third, opened = connect(running.proxy, there.authority)
    third.close()
    assert opened.status == 200


def test_what_is_answered_from_memory_is_not_counted(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()

    def script(connection: OriginConnection) -> None:
        while (asked := connection.read_request()) is not None:
            if asked.target == "/slow":
                arrived.set()
                release.wait(20)
            connection.send(reply(b"x", "200 OK", "Cache-Control: max-age=60"))

    there = scripted_origin(script)
    running = gateway({"limits": {"perClient": {"exchanges": 1}}})
    with running.wire() as one, running.wire() as other:
        assert one.ask(request(there.url("/hit"))).status == 200
        one.send(request(there.url("/slow")))
        try:
            assert arrived.wait(10)
            assert other.ask(request(there.url("/hit"))).status == 200
            assert other.ask(request(there.url("/miss"))).status == 503
        finally:
            release.set()
        assert one.read().status == 200


# The process


@pytest.mark.parametrize("workers", [1, 3])
def test_of_idle_connections_the_longest_idle_makes_room_first(gateway, origin, workers):
    there = origin(lambda _: reply(b"x"))
    running = gateway({**NO_CACHE, "workers": workers, "limits": {"connections": 6}})
    held = [running.wire() for _ in range(6)]
    with closing(*held):
        for wire in held:
            assert wire.ask(request(there.url("/"))).status == 200
        newcomers = []
        for _ in range(3):
            newcomers.append(wire_from(running, "127.0.0.2"))
            answer = newcomers[-1].ask(request(there.url("/")))
            assert answer.status == 200, "nobody is turned away"
        with closing(*newcomers):
            assert running.metric("pinfold_client_connections_evicted_total") == 3
            if workers == 1:
                for wire in held[:3]:
                    assert wire.ended(), "the longest idle are closed"
                for wire in held[3:]:
                    assert wire.ask(request(there.url("/"))).status == 200
            assert running.metric("pinfold_client_connections_refused_total", reason="limit") == 0


def test_connections_that_never_asked_make_room_too(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway({**NO_CACHE, "workers": 2, "limits": {"connections": 20}})
    flood = [running.wire() for _ in range(20)]
    with closing(*flood):
        until(lambda: running.metric("pinfold_client_connections_open") >= 20, "all are there")
        for _ in range(5):
            with contextlib.closing(wire_from(running, "127.0.0.2")) as wire:
                assert wire.ask(request(there.url("/"))).status == 200


@pytest.mark.parametrize("workers", [1, 2])
def test_a_connection_in_use_is_not_closed_for_another(gateway, scripted_origin, workers):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway({**NO_CACHE, "workers": workers, "limits": {"connections": 3}})
    held = [running.wire() for _ in range(3)]
    try:
        for wire in held:
            wire.send(request(there.url("/")))
        until(lambda: running.metric("pinfold_http_requests_in_flight") == 3, "all are in use")
        with contextlib.closing(wire_from(running, "127.0.0.2")) as beyond:
            assert is_refused(beyond, there.url("/")), "there is no room"
        assert running.metric("pinfold_client_connections_refused_total", reason="limit") >= 1
        release.set()
        assert [wire.read().status for wire in held] == [200] * 3
    finally:
        release.set()
        for wire in held:
            wire.close()


def test_a_connection_is_not_idle_when_its_request_has_just_arrived(gateway, origin):
    """It is there and not read yet when somebody else's connection is accepted."""
    there = origin(lambda _: reply(b"x"))
    running = gateway({**NO_CACHE, "workers": 1, "limits": {"connections": 1}})
    with running.wire() as held:
        assert held.ask(request(there.url("/"))).status == 200
        running.pause()
        newcomer = wire_from(running, "127.0.0.2")  # epoll reports it first
        held.send(request(there.url("/")))
        running.signal(signal.SIGCONT)
        assert held.read().status == 200
        assert is_refused(newcomer, there.url("/"))
        newcomer.close()


@pytest.mark.parametrize("workers", [1, 3])
def test_of_requests_that_do_not_arrive_the_oldest_makes_room_first(gateway, origin, workers):
    there = origin(lambda _: reply(b"x"))
    running = gateway({**NO_CACHE, "workers": workers, "limits": {"connections": 4},
                       "timeouts": {"head": "60s"}})
    slow = []
    for _ in range(4):
        before = running.metric("pinfold_client_head_buffer_bytes")
        slow.append(running.wire())
        slow[-1].send("GET http://a.test/ HTTP/1.1\r\nHost: a.t")
        until(lambda held=before: running.metric("pinfold_client_head_buffer_bytes") > held,
              "it has begun")

    def served() -> bool:
        with contextlib.closing(wire_from(running, "127.0.0.2")) as wire:
            return not is_refused(wire, there.url("/"))

    with closing(*slow):
        until(served, "after a second a request that does not arrive makes room")
        assert running.metric("pinfold_client_connections_evicted_total", state="head") == 1
        line = next(line for line in running.wait_access(1) if line["status"] == 408)
        assert line["reason"] == "connections-full"
        if workers == 1:
            refused = slow[0].read()
            assert refused.status == 408 and b"connections-full" in refused.body
            slow[3].send(b"est\r\n\r\n" + request(there.url("/")))
            assert slow[3].read().status >= 500, "the others go on: this name has no address"
            assert slow[3].read().status == 200


@pytest.mark.parametrize("workers", [1, 3])
def test_answered_connections_that_linger_make_room(gateway, origin, workers):
    """The response has been given, and the client does not close its end."""
    there = origin(lambda _: reply(b"x"))
    running = gateway({**NO_CACHE, "workers": workers, "limits": {"connections": 4}})
    answered = [running.wire() for _ in range(4)]
    with closing(*answered):
        for wire in answered:
            assert wire.ask(request(there.url("/"), Connection="close")).status == 200
        for _ in range(4):
            with contextlib.closing(wire_from(running, "127.0.0.2")) as wire:
                assert wire.ask(request(there.url("/"))).status == 200, "nobody is turned away"
        assert running.metric("pinfold_client_connections_refused_total", reason="limit") == 0
        for wire in answered:
            assert wire.ended(), "nothing of the response is lost"


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_idle_connections_make_room_when_descriptors_run_out(gateway, origin, workers):
    def few_descriptors() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))

    there = origin(lambda _: reply(b"x"))
    running = gateway(
        {**NO_CACHE, "workers": workers, "limits": {"connections": 20_000}},
        preexec=few_descriptors)
    crowd = [running.wire()]
    with closing(crowd[0]):
        for _ in range(150):
            crowd.append(wire_from(running, "127.0.0.2"))
            answer = crowd[-1].ask(request(there.url("/")))
            assert answer.status == 200, "idle ones make room for it and for what it asks"
        assert running.metric(
            "pinfold_client_connections_evicted_total", reason="descriptors") >= 70
        running.wait_log("descriptors have run out")
        if workers == 1:
            assert crowd[0].ended(), "the longest idle goes first"
    for wire in crowd:
        wire.close()


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("limits", [{"connections": 2}, {"perClient": {"connections": 2}}])
def test_a_lowered_limit_of_client_connections_holds(
        gateway, origin, scripted_origin, limits, workers):
    """Idle ones beyond it are closed at once, and those in use as others come."""
    release, arrived = threading.Event(), threading.Event()
    slow = scripted_origin(waiting(release, arrived))
    there = origin(lambda _: reply(b"x"))
    running = gateway({**NO_CACHE, "workers": workers})
    idle, used = ([running.wire() for _ in range(4)] for _ in range(2))
    try:
        for wire in idle:
            assert wire.ask(request(there.url("/"))).status == 200
        for wire in used:
            wire.send(request(slow.url("/")))
        until(lambda: slow.accepted == 4, "four are in use")
        running.write_config(merged(running.config, {"limits": limits}))
        running.signal(signal.SIGHUP)
        for wire in idle:
            assert wire.ended()
        release.set()
        assert [wire.read().status for wire in used] == [200] * 4

        def kept() -> bool:
            try:
                with running.wire() as wire:
                    assert wire.ask(request(there.url("/"))).status == 200
            except Closed:
                return False  # the answers have come, their exchanges have not ended yet
            return running.metric("pinfold_client_connections_open") <= 3  # the question's own too

        until(kept, "as many as there may be")
    finally:
        release.set()
        for wire in [*idle, *used]:
            wire.close()


# Thousands at once


@pytest.mark.large
@pytest.mark.parametrize("answers", [True, False])
def test_thousands_who_wait_for_one_response_are_all_answered(gateway, scripted_origin, answers):
    """One response helps them all; and when it does not come, all of them give up together."""
    release, arrived = threading.Event(), threading.Event()

    def script(connection: OriginConnection) -> None:
        while (asked := connection.read_request()) is not None:
            if asked.target == "/slow":
                arrived.set()
                release.wait(60)
            connection.send(reply(b"x", "200 OK", "Cache-Control: max-age=60"))

    there = scripted_origin(script)
    running = gateway({
        "workers": 1, "limits": {"upstreamPerHost": 4, "pending": 8},
        "timeouts": {"collapse": "60s" if answers else "1s", "connect": "1s", "firstByte": "5s"}})
    wires = [running.wire(timeout=60) for _ in range(2000)]
    try:
        with running.wire() as bystander:
            assert bystander.ask(request(there.url("/hit"))).status == 200
            for wire in wires:
                wire.send(request(there.url("/slow")))
            assert arrived.wait(10)
            until(lambda: running.metric("pinfold_cache_collapse_waits_total") >= 1999, "all wait")
            if answers:
                release.set()
            statuses = [wire.read().status for wire in wires]
            assert bystander.ask(request(there.url("/hit"))).status == 200
        assert len(statuses) == 2000
        if answers:
            assert set(statuses) == {200}
        else:
            assert statuses.count(503) > 1900, "few of them find a place in the queue"
    finally:
        release.set()
        for wire in wires:
            wire.close()


# Connections to an origin


def upload_head(url: str, length: int, *fields: str) -> str:
    lines = [f"PUT {url} HTTP/1.1", f"Host: {url.split('/')[2]}", f"Content-Length: {length}"]
    return "\r\n".join([*lines, *fields]) + "\r\n\r\n"


@pytest.mark.large
@pytest.mark.parametrize("sent", [10, 70_000])
def test_uploads_that_trickle_leave_connections_for_others(gateway, scripted_origin, sent):
    """Whether they have sent a little or more than is gathered."""

    def script(connection: OriginConnection) -> None:
        while (asked := connection.read_request()) is not None:
            connection.send(reply(b"got %d" % len(asked.body)))

    there = scripted_origin(script)
    running = gateway({**NO_CACHE, "limits": {"upstreamPerHost": 16}})
    uploads = [wire_from(running, "127.0.0.2") for _ in range(40)]
    with closing(*uploads):
        for wire in uploads:
            wire.send(upload_head(there.url("/"), 100_000))
            wire.send(b"x" * sent)
        until(lambda: running.metric("pinfold_http_requests_in_flight") >= 40, "all have begun")
        for _ in range(20):
            with contextlib.closing(wire_from(running, "127.0.0.3")) as wire:
                assert wire.ask(request(there.url("/"))).body == b"got 0"
        if sent == 10:
            for wire in uploads:
                wire.send(b"x" * (100_000 - sent))
            assert {wire.read().body for wire in uploads} == {b"got 100000"}, "all arrive whole"


@pytest.mark.parametrize("names", [1, 4300])
def test_a_connection_is_found_by_others_however_long_its_request_took_to_arrive(
        gateway, scripted_origin, names):
    """While the upload arrives, others make the gateway forget origins: by one name that is asked
    for in vain many times, or by many names."""

    def script(connection: OriginConnection) -> None:
        while (asked := connection.read_request()) is not None:
            connection.send(reply(asked.body))

    there = scripted_origin(script)
    running = gateway({**NO_CACHE, "workers": 1, "limits": {"upstreamPerHost": 1},
                       "timeouts": {"connect": "500ms"}})
    with running.wire() as slow, running.wire() as failing:
        slow.send(upload_head(there.url("/"), 10) + "12345")
        until(lambda: running.metric("pinfold_http_requests_in_flight") == 1, "it has begun")
        for number in range(max(names, 1100)):
            url = f"http://n{number % names}.localhost:1/"
            assert failing.ask(request(url)).status == 502
        slow.send("67890")
        assert slow.read().body == b"1234567890"
        assert failing.ask(request(there.url("/"))).status == 200, "on the idle connection"
    assert running.metric("pinfold_upstream_connections_open") == 1


def test_upgraded_requests_use_the_connections_of_those_that_name_tls(gateway, dns, origin, pki):
    name = "upgraded.limits.test"
    dns.set(name, "127.0.0.1")
    there = origin(lambda _: reply(b"x"), tls=pki.root.issue(name).server_context())
    running = gateway({**NO_CACHE, "workers": 1, "limits": {"upstreamPerHost": 1},
                       "timeouts": {"connect": "500ms"},
                       "tls": {"roots": [str(pki.root.pem_file)]},
                       "hosts": [{"match": [name], "upgrade": "https"}]})
    with running.wire() as wire:
        for scheme in ("http", "https", "http"):
            assert wire.ask(request(f"{scheme}://{name}:{there.port}/")).status == 200
    assert there.accepted == 1


def test_an_upload_streams_while_connections_are_plenty(gateway, scripted_origin):
    """The origin may answer before the content has ended, and the client may wait for that."""

    def script(connection: OriginConnection) -> None:
        connection.read_until(b"\r\n\r\n")
        assert connection.read_exactly(5) == b"first"
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\ngot ")
        assert connection.read_exactly(6) == b"second"
        connection.send("both")
        connection.read_to_end()

    there = scripted_origin(script)
    running = gateway(NO_CACHE)
    with running.wire() as wire:
        wire.send(upload_head(there.url("/"), 11) + "first")
        head = wire.read_head()
        assert wire.read_exactly(4) == b"got "
        wire.send("second")
        assert head.status == 200 and wire.read_exactly(4) == b"both"


@pytest.mark.parametrize("workers", [1, 2])
def test_gathered_content_arrives_as_it_was_sent(gateway, origin, workers):
    """With one connection to the origin content is gathered before: chunked, empty, long."""
    there = origin(lambda asked: reply(asked.body[:20] + b"|%d" % len(asked.body)))
    running = gateway({**NO_CACHE, "workers": workers, "limits": {"upstreamPerHost": 1}})
    url = there.url("/")
    chunked_head = (f"POST {url} HTTP/1.1\r\nHost: {there.authority}\r\n"
                    "Transfer-Encoding: chunked\r\n\r\n")
    with running.wire() as wire:
        wire.send(upload_head(url, 6))
        wire.send("abc")
        wire.send("def")
        assert wire.read().body == b"abcdef|6"
        wire.send(chunked_head)
        wire.send("3\r\nabc\r\n")
        wire.send("2\r\nde\r\n0\r\nX-Trailer: yes\r\n\r\n")
        assert wire.read().body == b"abcde|5"
        assert there.requests[-1].trailers == [("X-Trailer", "yes")]
        wire.send(chunked_head)
        wire.send("0\r\n\r\n")
        assert wire.read().body == b"|0"
        wire.send(upload_head(url, 3_000_000))
        wire.send(b"z" * 3_000_000)
        assert wire.read().body == b"z" * 20 + b"|3000000"
        # A request that follows in the same segment is another one.
        wire.send(upload_head(url, 4))
        wire.send(b"tail" + request(url))
        assert [wire.read().body, wire.read().body] == [b"tail|4", b"|0"]


def test_gathered_content_that_does_not_come_is_a_408(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway({
        **NO_CACHE, "limits": {"upstreamPerHost": 1}, "timeouts": {"body": "300ms"}})
    with running.wire() as wire:
        wire.send(upload_head(there.url("/"), 5) + "ab")
        assert wire.read().status == 408
    assert there.accepted == 0
    assert running.get(there.url("/")).status == 200


def test_content_that_is_asked_for_is_not_gathered(gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        connection.read_until(b"\r\n\r\n")
        connection.send("HTTP/1.1 100 Continue\r\n\r\n")
        assert connection.read_exactly(5) == b"hello"
        connection.send(reply(b"thanks"))

    there = scripted_origin(script)
    running = gateway({**NO_CACHE, "limits": {"upstreamPerHost": 1}})
    with running.wire() as wire:
        wire.send(upload_head(there.url("/"), 5, "Expect: 100-continue"))
        assert wire.read().status == 100
        wire.send("hello")
        assert wire.read().body == b"thanks"


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_one_connection_to_an_origin_is_one_for_all_workers(gateway, scripted_origin, workers):
    """Workers that want it in turn get it in turn; never are there two at once."""
    lock = threading.Lock()
    now, most = 0, 0

    def script(connection: OriginConnection) -> None:
        nonlocal now, most
        while connection.read_request() is not None:
            with lock:
                now += 1
                most = max(most, now)
            time.sleep(0.001)  # the time in which a second one, if there were one, is seen
            with lock:
                now -= 1
            connection.send(reply(b"x"))

    there = scripted_origin(script)
    running = gateway({**NO_CACHE, "workers": workers, "limits": {"upstreamPerHost": 1}})
    wires = [running.wire() for _ in range(8)]
    with closing(*wires):
        for _ in range(20):  # one after the other: idle at one worker, wanted by another
            for wire in wires:
                assert wire.ask(request(there.url("/"))).status == 200
        for _ in range(20):  # all at once
            for wire in wires:
                wire.send(request(there.url("/")))
            assert [wire.read().status for wire in wires] == [200] * 8
    assert most == 1, "there is one request at a time"
    assert running.metric("pinfold_upstream_connections_open") <= 1
    assert running.metric("pinfold_upstream_pool_waiting") == 0


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_no_exchange_waits_where_none_may(gateway, scripted_origin, workers):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway({
        **NO_CACHE, "workers": workers, "limits": {"upstreamPerHost": 1, "pending": 0}})
    wires = [running.wire() for _ in range(8)]
    try:
        wires[0].send(request(there.url("/")))
        assert arrived.wait(10)
        for wire in wires[1:]:
            refused = wire.ask(request(there.url("/")))
            assert refused.status == 503
            assert b"too-many-pending" in refused.body
        release.set()
        assert wires[0].read().status == 200
        for wire in wires:  # the idle connection is used, whichever worker has it
            assert wire.ask(request(there.url("/"))).status == 200
    finally:
        release.set()
        for wire in wires:
            wire.close()


@pytest.mark.parametrize("workers", [2, 4])
def test_no_client_is_refused_while_an_idle_connection_can_be_closed(gateway, origin, workers):
    """None may wait, all places are taken by idle connections, most of them on other workers."""
    origins = [origin(lambda _: reply(b"x")) for _ in range(6)]
    running = gateway({**NO_CACHE, "workers": workers, "limits": {"connections": 4, "pending": 0}})
    wires = [running.wire() for _ in range(4)]
    with closing(*wires):
        for _ in range(3):
            for wire in wires:
                for there in origins:
                    answer = wire.ask(request(there.url("/")))
                    assert answer.status == 200, answer.body
        for turn in range(20):  # all at once: as many as there are places
            for number, wire in enumerate(wires):
                wire.send(request(origins[(turn + number) % 6].url("/")))
            assert [wire.read().status for wire in wires] == [200] * 4
        assert running.metric("pinfold_upstream_connections_open") <= 4


@pytest.mark.parametrize("workers", [1, 3])
def test_a_lowered_limit_holds_although_there_are_always_requests_waiting(
        gateway, scripted_origin, workers):
    """The connections beyond it are closed when they are given back, and not used on."""
    def script(connection: OriginConnection) -> None:
        while connection.read_request() is not None:
            time.sleep(0.002)  # long enough for others to wait meanwhile
            connection.send(reply(b"x"))

    there = scripted_origin(script)
    config = {**NO_CACHE, "workers": workers, "limits": {"upstreamPerHost": 6}}
    running = gateway(config)
    ended, failures = threading.Event(), []

    def client() -> None:
        with running.wire() as wire:
            while not ended.is_set():
                status = wire.ask(request(there.url("/"))).status
                if status != 200:
                    failures.append(status)

    clients = [threading.Thread(target=client, daemon=True) for _ in range(24)]
    for one in clients:
        one.start()
    try:
        until(lambda: running.metric("pinfold_upstream_connections_open") == 6, "all are used")
        running.write_config(merged(running.config, {"limits": {"upstreamPerHost": 2}}))
        running.signal(signal.SIGHUP)
        until(lambda: running.metric("pinfold_upstream_connections_open") <= 2, "the lower limit")
        running.write_config(merged(running.config, {"limits": {"upstreamPerHost": 5}}))
        running.signal(signal.SIGHUP)
        until(lambda: running.metric("pinfold_upstream_connections_open") == 5, "the higher limit")
    finally:
        ended.set()
        for one in clients:
            one.join(20)
    assert failures == []


def test_the_queue_for_an_origin_is_one_for_all_workers(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway({
        **NO_CACHE, "workers": 4, "limits": {"upstreamPerHost": 2, "pending": 3}})
    wires = [running.wire() for _ in range(5)]
    try:
        for wire in wires:
            wire.send(request(there.url("/")))
        until(lambda: there.accepted == 2 and running.metric("pinfold_upstream_pool_waiting") == 3,
              "two are at the origin, three wait")
        for _ in range(5):
            assert running.get(there.url("/")).status == 503, "no fourth one may"
        release.set()
        assert [wire.read().status for wire in wires] == [200] * 5
    finally:
        release.set()
        for wire in wires:
            wire.close()


def test_connections_to_all_origins_are_limited_for_all_workers(gateway, origin):
    origins = [origin(lambda _: reply(b"x")) for _ in range(6)]
    running = gateway({**NO_CACHE, "workers": 3, "limits": {"connections": 4}})
    wires = [running.wire() for _ in range(4)]
    with closing(*wires):
        for _ in range(3):
            for wire in wires:
                for there in origins:
                    assert wire.ask(request(there.url("/"))).status == 200
                    assert running.metric("pinfold_upstream_connections_open") <= 4


def test_a_probe_that_finds_no_place_says_nothing_about_the_host(gateway, scripted_origin):
    release, arrived = threading.Event(), threading.Event()

    def script(connection: OriginConnection) -> None:
        while (asked := connection.read_request()) is not None:
            if asked.target == "/slow":
                arrived.set()
                release.wait(20)
            connection.send(reply(b"x"))

    there = scripted_origin(script)
    running = gateway({
        **NO_CACHE, "workers": 1, "limits": {"upstreamPerHost": 1, "pending": 0},
        "hosts": [{"match": [there.authority], "probe": {"interval": "1s"}}]})

    def reachable() -> bool:
        return running.metric("pinfold_host_reachability", state="reachable") == 1

    until(reachable, "the probe has been answered")
    with running.wire() as wire:
        until(lambda: (wire.ask(request(there.url("/"))).status == 200), "it is free")
        wire.send(request(there.url("/slow")))
        try:
            assert arrived.wait(10)
            until(lambda: running.metric("pinfold_upstream_pool_wait_refusals_total") >= 2,
                  "probes are refused")
            assert reachable()
        finally:
            release.set()
        assert wire.read().status == 200


# Names


@pytest.mark.large
def test_an_unresponsive_zone_leaves_lookups_for_others(gateway, dns, origin):
    there = origin(lambda _: reply(b"x"))
    dns.silence_zone("dead.test")
    running = gateway({**NO_CACHE, "timeouts": {"connect": "20s"}})
    flood = [wire_from(running, "127.0.0.2", timeout=60) for _ in range(1200)]
    with closing(*flood):
        for number, wire in enumerate(flood):
            wire.send(request(f"http://h{number}.dead.test:{there.port}/"))
        until(lambda: running.metric("pinfold_dns_queries_total") >= 1200, "all have been asked for")
        for number in range(30):
            with contextlib.closing(wire_from(running, "127.0.0.3")) as wire:
                answer = wire.ask(request(f"http://n{number}.live{number}.test:{there.port}/"))
                assert answer.status == 200, answer.body
        replies = [wire.read() for wire in flood]
        refused = [one for one in replies if one.status == 503]
        assert refused, "some of the flood found no place"
        assert any(b"dns-client-limit" in one.body or b"dns-zone-limit" in one.body
                   for one in refused)


# Memory


def unfinished(running: Gateway, count: int, size: int) -> list[Wire]:
    head = f"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX-Pad: {'x' * size}"
    wires = [running.wire() for _ in range(count)]
    for wire in wires:
        wire.send(head)
    return wires


@pytest.mark.large
def test_unfinished_heads_share_one_budget_and_the_oldest_goes(gateway, origin):
    """All are one client's, which has half of it."""
    there = origin(lambda _: reply(b"x"))
    running = gateway({**NO_CACHE, "workers": 1, "limits": {"bufferBytes": "8MiB"},
                       "timeouts": {"head": "60s"}})
    first = unfinished(running, 100, 20_000)
    until(lambda: running.metric("pinfold_client_head_buffer_bytes") >= 100 * 32_768, "all are there")
    second = unfinished(running, 100, 20_000)
    with closing(*first, *second):
        refused = first[0].read()
        assert refused.status == 408
        assert b"head-buffers-full" in refused.body
        until(lambda: running.metric("pinfold_client_heads_evicted_total") >= 72, "they made room")
        assert running.metric("pinfold_client_head_buffer_bytes") <= 4 << 20
        assert running.get(there.url("/")).status == 200
        url = there.url("/")
        with running.wire() as wire:  # two segments: unfinished in between
            whole = request(url)
            wire.send(whole[:20])
            until(lambda: running.metric("pinfold_client_heads_evicted_total") >= 73, "one goes")
            wire.send(whole[20:])
            assert wire.read().status == 200
    until(lambda: running.metric("pinfold_client_head_buffer_bytes") == 0, "all is given back")


@pytest.mark.large
@pytest.mark.slow
def test_what_a_burst_took_is_given_back(gateway):
    running = gateway({**NO_CACHE, "limits": {"bufferBytes": "1GiB"}, "timeouts": {"head": "60s"}})
    before = running.rss_bytes
    wires = unfinished(running, 3000, 31_000)
    with closing(*wires):
        until(lambda: running.metric("pinfold_client_head_buffer_bytes") >= 3000 * 32_000, "a burst")
        burst = running.rss_bytes - before
        assert burst > 80 << 20
    if not SANITIZER:  # whose allocator keeps what was freed
        until(lambda: running.rss_bytes - before < 40 << 20, "it was given back", 60)
