"""Rates of rules: requests, exchanges at once, bytes in each direction and of a day, for each client,
user and group or all together; refused, delayed or slowed down. What is allowed is compared with what
has passed in the time that it took: a machine under load may be slower, but never faster."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest
from support.credentials import basic, bcrypt, write
from support.gateway import Gateway, run_pinfold, wire_from
from support.interception import HOST, inside
from support.origin import reply
from support.secure import NAME, forward, reload, secure_wire, tls_of
from support.wait import until
from support.wire import Closed, Wire, request

LIMITED = "pinfold_access_rate_limited_total"
PIECE = bytes(64 << 10)


def rated(rate: dict, **rule) -> dict:
    return {"name": "r", "action": "allow", "rate": rate, **rule}


def config(*rules: dict, **keys) -> dict:
    return {"access": {"connectPorts": "any", "clients": ["127.0.0.0/8"], "rules": list(rules),
                       "destinations": {"allow": ["127.0.0.0/8", "**.test"]}}, **keys}


@pytest.fixture
def there(origin):
    return origin(lambda seen: reply(
        b"x" * int(seen.target.rpartition("/")[2] or 1), "200 OK", "Cache-Control: max-age=600"))


def statuses(running: Gateway, url: str, count: int, source: str = "127.0.0.1") -> list[int]:
    with wire_from(running, source) as wire:
        found = []
        for _ in range(count):
            wire.send(request(url))
            found.append(wire.read().status)
        return found


def is_at_rate(count: int, seconds: float, rate: float, slack: float) -> None:
    """What has passed is no more than the rate allows in the time, and not much less than it does."""
    assert count <= rate * seconds * 1.02 + slack, (count, seconds)
    assert count >= rate * seconds * 0.5 - slack, (count, seconds)


# Requests


def test_requests_beyond_the_burst_are_refused_until_the_time_that_is_said(gateway, there):
    running = gateway(config(rated({"requests": "1/s", "burst": 3})))
    with running.wire() as wire:
        answers = []
        for _ in range(5):
            wire.send(request(there.url("/"), Accept="application/json"))
            answers.append(wire.read())
        assert [one.status for one in answers][:3] == [200, 200, 200]
        refused = next(one for one in answers if one.status == 429)
        assert refused.json()["reason"] == "rate-limited"
        assert "the rule r of access.rules" in refused.json()["message"]
        assert refused.get("retry-after") == "1"
        # The connection is kept, and what was said is true.
        time.sleep(1.05)
        wire.send(request(there.url("/")))
        assert wire.read().status == 200
    assert running.metric(LIMITED, rule="r", result="refused") >= 1
    lines = running.wait_access(6)
    assert {(line["rule"], line.get("reason")) for line in lines} == {
        ("r", None), ("r", "rate-limited")}


def test_the_time_to_ask_again_is_that_of_the_rate(gateway, there):
    running = gateway(config(rated({"requests": "2/m"})))
    with running.wire() as wire:
        wire.send(request(there.url("/")))
        assert wire.read().status == 200
        wire.send(request(there.url("/")))
        refused = wire.read()
    assert refused.status == 429
    assert 25 <= int(refused.get("retry-after")) <= 30


def test_each_client_has_its_own_rate_by_default(gateway, there):
    running = gateway(config(rated({"requests": "1/h", "burst": 2})))
    for source in ("127.0.0.1", "127.0.0.2", "127.0.0.3"):
        assert statuses(running, there.url("/"), 3, source) == [200, 200, 429]


def test_all_clients_have_one_rate_together_and_each_a_share_of_it(gateway, there):
    running = gateway(config(rated({"per": "rule", "requests": "1/h", "burst": 8})))
    first = statuses(running, there.url("/"), 10, "127.0.0.1")
    assert first == [200] * 8 + [429, 429]
    assert statuses(running, there.url("/"), 1, "127.0.0.2") == [429]
    fair = gateway(config(rated({"per": "rule", "requests": "1/h", "burst": 8})))
    assert statuses(fair, there.url("/"), 1, "127.0.0.2") == [200]
    # Two share it: the other half is not for the first alone.
    assert statuses(fair, there.url("/"), 8, "127.0.0.1").count(200) == 4
    assert statuses(fair, there.url("/"), 4, "127.0.0.2").count(200) == 3


def test_hits_count_and_other_rules_do_not(gateway, there):
    running = gateway(config(
        {"name": "free", "hosts": ["free.test"], "action": "allow"},
        rated({"requests": "1/h", "burst": 4})))
    assert statuses(running, there.url("/hit/5"), 5) == [200, 200, 200, 200, 429]
    assert len(there.requests) == 1
    assert statuses(running, f"http://free.test:{there.port}/", 5) == [200] * 5
    assert running.metric("pinfold_access_rule_matches_total", rule="r") == 5


@pytest.mark.parametrize("workers", [1, 2])
def test_the_rate_holds_for_all_workers_together(gateway, there, workers):
    running = gateway({**config(rated({"requests": "50/s", "burst": 10})), "workers": workers})
    end = time.monotonic() + 3
    passed = []

    def ask() -> None:
        count = 0
        with running.wire() as wire:
            while time.monotonic() < end:
                wire.send(request(there.url("/hit/1")))
                if wire.read().status == 200:
                    count += 1
                else:
                    time.sleep(0.002)
        passed.append(count)

    began = time.monotonic()
    together(*[ask] * 6)
    is_at_rate(sum(passed), time.monotonic() - began, 50, 12)


def together(*work) -> None:
    failures = []

    def run(one) -> None:
        try:
            one()
        except BaseException as failure:  # noqa: BLE001
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(one,)) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


# Delayed


def test_requests_wait_for_their_turn(gateway, there):
    running = gateway(config(rated({"requests": "20/s", "burst": 1, "over": "delay"})))
    began = time.monotonic()
    assert statuses(running, there.url("/hit/1"), 21) == [200] * 21
    assert time.monotonic() - began >= 0.98
    assert running.metric(LIMITED, rule="r", result="delayed") >= 10
    assert running.metric(LIMITED, rule="r", result="refused") == 0


def test_many_wait_at_once_on_both_workers(gateway, there):
    running = gateway(config(rated({"requests": "40/s", "burst": 1, "over": "delay"})))
    began = time.monotonic()
    found = []
    together(*[lambda: found.extend(statuses(running, there.url("/hit/1"), 2))] * 20)
    assert found == [200] * 40
    assert time.monotonic() - began >= 0.95


def test_those_who_would_wait_too_long_are_refused(gateway, there):
    running = gateway(config(rated({"requests": "1/m", "over": "delay"})))
    with running.wire() as wire:
        wire.send(request(there.url("/")))
        assert wire.read().status == 200
        wire.send(request(there.url("/")))
        refused = wire.read()
    assert refused.status == 429 and 50 <= int(refused.get("retry-after")) <= 60


def test_who_leaves_while_waiting_takes_nothing(gateway, there):
    running = gateway(config(rated({"requests": "2/s", "burst": 1, "over": "delay"})))
    assert statuses(running, there.url("/"), 1) == [200]
    waiting = [running.wire() for _ in range(10)]
    for wire in waiting:
        wire.send(request(there.url("/")))
    until(lambda: running.metric(LIMITED, rule="r", result="delayed") == 10, "all wait")
    for wire in waiting:
        wire.reset()
    until(lambda: running.metric("pinfold_http_requests_in_flight") == 0, "all have left")
    began = time.monotonic()
    assert statuses(running, there.url("/"), 1) == [200]
    assert time.monotonic() - began < 3


def test_a_reload_while_requests_wait_judges_them_again(gateway, there):
    slow = config(rated({"requests": "1/s", "burst": 1, "over": "delay"}))
    running = gateway(slow)
    assert statuses(running, there.url("/"), 1) == [200]
    with running.wire() as wire:
        wire.send(request(there.url("/")))
        until(lambda: running.metric(LIMITED, rule="r", result="delayed") == 1, "it waits")
        denying = {**running.config, "access": {**running.config["access"], "rules": [
            {"name": "none", "action": "deny"}]}}
        reload(running, denying)
        assert wire.read().status == 403


# Exchanges at once


def slow_origin(scripted_origin):
    """An origin that answers when it is told to."""
    go = threading.Semaphore(0)

    def serve(connection) -> None:
        while connection.read_until(b"\r\n\r\n"):
            go.acquire()
            connection.socket.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    return scripted_origin(serve), go


@pytest.mark.parametrize("over", ["refuse", "delay"])
def test_so_many_exchanges_are_under_way_at_once(gateway, scripted_origin, over):
    there, go = slow_origin(scripted_origin)
    running = gateway(config(rated({"exchanges": 2, "over": over})))
    wires = [running.wire() for _ in range(3)]
    for number, wire in enumerate(wires):
        wire.send(request(f"http://127.0.0.1:{there.port}/{number}"))
        until(lambda: running.metric("pinfold_http_requests_in_flight") == number + 1
              or running.metric(LIMITED, rule="r") > 0, "it has begun")
    if over == "refuse":
        refused = wires[2].read()
        assert refused.status == 429 and int(refused.get("retry-after")) >= 1
    go.release(3)
    assert [wire.read().status for wire in wires[:2]] == [200, 200]
    if over == "delay":
        assert wires[2].read().status == 200
    wires[2].send(request(f"http://127.0.0.1:{there.port}/again"))
    go.release()
    assert wires[2].read().status == 200
    for wire in wires:
        wire.close()


def test_an_open_tunnel_is_an_exchange(gateway, scripted_origin):
    there = scripted_origin(lambda connection: connection.socket.recv(1))
    running = gateway(config(rated({"exchanges": 1})))
    authority = f"127.0.0.1:{there.port}"
    wire, answer = running.connect(authority)
    assert answer.status == 200
    assert running.connect(authority)[1].status == 429
    wire.close()
    until(lambda: running.connect(authority)[1].status == 200, "the tunnel has ended")


# Bytes


def paced(running: Gateway, url: str, rate: int, count: int, source: str = "127.0.0.1") -> float:
    """Reads a response and checks that it came at the rate. Returns how long it took."""
    with wire_from(running, source, timeout=60) as wire:
        began = time.monotonic()
        wire.send(request(url))
        response = wire.read()
        taken = time.monotonic() - began
    assert response.status == 200 and len(response.body) == count
    # A burst of 100 ms, and what one turn of a busy machine may send ahead.
    is_at_rate(count, taken, rate, rate * 0.16)
    return taken


@pytest.mark.parametrize("rate,text", [(20_000, "20KB/s"), (1 << 20, "1MiB/s"), (8 << 20, "8MiB/s")])
def test_responses_pass_at_the_rate(gateway, there, rate, text):
    running = gateway(config(rated({"down": text})))
    size = rate * 2
    # From the server, and from the cache.
    for _ in range(2):
        paced(running, there.url(f"/{size}"), rate, size)
    assert len(there.requests) == 1
    assert running.metric(LIMITED, rule="r", result="paced") == 2


def test_a_body_of_unknown_length_passes_at_the_rate(gateway, scripted_origin):
    def serve(connection) -> None:
        connection.read_until(b"\r\n\r\n")
        connection.socket.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(20):
            connection.socket.sendall(b"6400\r\n" + b"y" * 25_600 + b"\r\n")
        connection.socket.sendall(b"0\r\n\r\n")

    there = scripted_origin(serve)
    running = gateway(config(rated({"down": "256KB/s"})))
    paced(running, f"http://127.0.0.1:{there.port}/", 256_000, 512_000)


def test_several_connections_share_what_a_client_has(gateway, there):
    rate = 1 << 20
    running = gateway(config(rated({"down": "1MiB/s"})))
    began = time.monotonic()
    together(*[lambda: statuses(running, there.url("/262144"), 1)] * 8)
    is_at_rate(8 * 262_144, time.monotonic() - began, rate, rate * 0.11)


def test_clients_share_what_they_have_together_fairly(gateway, there):
    running = gateway({**config(rated({"per": "rule", "down": "1MiB/s"})), "workers": 2})
    end = time.monotonic() + 3
    got: dict[str, int] = {"127.0.0.1": 0, "127.0.0.2": 0}
    lock = threading.Lock()

    def read(source: str) -> None:
        with wire_from(running, source, timeout=60) as wire:
            wire.send(request(there.url("/30000000"), Connection="close"))
            while time.monotonic() < end:
                data = wire.socket.recv(1 << 16)
                with lock:
                    got[source] += len(data)

    began = time.monotonic()
    together(*[lambda: read("127.0.0.1")] * 12, lambda: read("127.0.0.2"))
    taken = time.monotonic() - began
    assert sum(got.values()) <= (1 << 20) * (taken * 1.02 + 0.11) + 13 * 4096
    assert got["127.0.0.2"] >= got["127.0.0.1"] * 0.5, got


def upload(wire: Wire, url: str, count: int, chunked: bool = False) -> int:
    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {count}"
    wire.send(f"POST {url} HTTP/1.1\r\nHost: x\r\n{framing}\r\n\r\n")
    left = count
    while left:
        piece = PIECE[:min(left, len(PIECE))]
        wire.send(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        left -= len(piece)
    if chunked:
        wire.send(b"0\r\n\r\n")
    return wire.read().status


@pytest.mark.parametrize("chunked", [False, True])
def test_content_of_requests_passes_at_the_rate(gateway, origin, chunked):
    there = origin(lambda seen: reply(b"%d" % len(seen.body)))
    running = gateway(config(rated({"up": "400KB/s"})))
    with running.wire(timeout=60) as wire:
        for count in (800_000, 1):
            began = time.monotonic()
            assert upload(wire, there.url("/"), count, chunked) == 200
            taken = time.monotonic() - began
            if count > 1:
                is_at_rate(count, taken, 400_000, 400_000 * 0.11)
    assert [len(seen.body) for seen in there.requests] == [800_000, 1]


def pour(connection) -> None:
    """Sends for ever."""
    with contextlib.suppress(OSError):
        while True:
            connection.socket.sendall(PIECE)


def sink(connection) -> None:
    while connection.socket.recv(1 << 20):
        pass


@pytest.mark.parametrize("limits", [{"down": "1MB/s"}, {"per": "rule", "down": "1MB/s"}])
def test_a_tunnel_passes_down_at_the_rate(gateway, scripted_origin, limits):
    there = scripted_origin(pour)
    running = gateway(config(rated(limits)))
    wire, answer = running.connect(f"127.0.0.1:{there.port}")
    assert answer.status == 200
    began = time.monotonic()
    wire.read_exactly(2_000_000)
    is_at_rate(2_000_000, time.monotonic() - began, 1_000_000, 110_000)
    wire.close()
    line = running.wait_access()[0]
    assert line["rule"] == "r"


def test_a_tunnel_passes_up_at_the_rate(gateway, scripted_origin):
    received = []

    def count(connection) -> None:
        while data := connection.socket.recv(1 << 16):
            received.append(len(data))

    there = scripted_origin(count)
    running = gateway(config(rated({"up": "1MB/s"})))
    wire, answer = running.connect(f"127.0.0.1:{there.port}")
    assert answer.status == 200
    began = time.monotonic()
    wire.send(bytes(2_000_000))
    wire.half_close()
    until(lambda: sum(received) == 2_000_000, "all of it has arrived", 30)
    is_at_rate(2_000_000, time.monotonic() - began, 1_000_000, 110_000)
    wire.close()


def test_a_secure_listeners_tunnel_passes_at_the_rate(gateway, scripted_origin, pki):
    there = scripted_origin(pour)
    leaf = pki.intermediate.issue(NAME, "127.0.0.1")
    running = gateway(config(rated({"down": "1MB/s"}), listeners=[forward(tls_of(leaf))]))
    with secure_wire(running, pki.root, "proxy") as wire:
        wire.send(f"CONNECT 127.0.0.1:{there.port} HTTP/1.1\r\nHost: x\r\n\r\n")
        assert wire.read_head().status == 200
        began = time.monotonic()
        wire.read_exactly(2_000_000)
        is_at_rate(2_000_000, time.monotonic() - began, 1_000_000, 110_000)


def test_requests_in_an_intercepted_tunnel_pass_at_the_rate(gateway, origin, pki, authority):
    there = origin(lambda _: reply(b"z" * 600_000), tls=pki.intermediate.issue(HOST).server_context())
    running = gateway(config(
        rated({"down": "300KB/s", "requests": "1/h", "burst": 3}),
        tls={"roots": [str(pki.root.pem_file)]},
        interception={**authority.section, "default": True}))
    wire, refused = inside(running, HOST, there.port, timeout=60)
    assert refused is None
    with wire:
        began = time.monotonic()
        wire.send(request("/", host=f"{HOST}:{there.port}"))
        assert len(wire.read().body) == 600_000
        is_at_rate(600_000, time.monotonic() - began, 300_000, 33_000)
        # CONNECT was the first.
        wire.send(request("/", host=f"{HOST}:{there.port}", method="HEAD"))
        assert wire.read_head().status == 200
        wire.send(request("/", host=f"{HOST}:{there.port}"))
        assert wire.read().status == 429


def test_a_slow_reader_of_one_response_holds_up_no_other(gateway, origin):
    """Both get the response that one of them fetches, each at its own speed."""
    gate = threading.Event()

    def serve(_seen):
        gate.wait(10)
        return reply(b"s" * 3_000_000, "200 OK", "Cache-Control: max-age=60")

    there = origin(serve)
    running = gateway(config(rated({"down": "300KB/s"}, clients=["127.0.0.2"])))
    with wire_from(running, "127.0.0.2", 60) as slow, wire_from(running, "127.0.0.1", 60) as fast:
        slow.send(request(there.url("/")))
        until(lambda: len(there.requests) == 1, "it is asked for")
        fast.send(request(there.url("/")))
        gate.set()
        assert len(fast.read().body) == 3_000_000
        # What the slow one has by now is a small part of it.
        slow.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                slow._more()
        assert len(slow.buffer) < 2_500_000
    assert len(there.requests) == 1


# The bytes of a day


def test_the_bytes_of_a_day_are_used_up(gateway, there):
    running = gateway(config(rated({"day": "1MB"})))
    with running.wire() as wire:
        wire.send(request(there.url("/600000")))
        assert wire.read().status == 200
        # The second goes over it, and is cut off.
        wire.send(request(there.url("/x/600000")))
        with pytest.raises(Closed):
            wire.read()
    with running.wire() as wire:
        wire.send(request(there.url("/1"), Accept="application/json"))
        refused = wire.read()
    assert refused.status == 429 and refused.json()["reason"] == "quota-exceeded"
    assert 0 < int(refused.get("retry-after")) <= 90_000
    assert statuses(running, there.url("/1"), 1, "127.0.0.2") == [200]
    assert "quota-exceeded" in {line.get("reason") for line in running.wait_access(4)}


def test_the_bytes_of_a_day_end_a_tunnel(gateway, scripted_origin):
    there = scripted_origin(pour)
    running = gateway(config(rated({"day": "2MB"})))
    count = 0
    while True:
        # What the other direction has in hand is left for another tunnel.
        wire, answer = running.connect(f"127.0.0.1:{there.port}")
        if answer.status == 429:
            break
        with wire, contextlib.suppress(OSError):
            while data := wire.socket.recv(1 << 16):
                count += len(data)
    # What was on its way to the client when it was cut off need not have come.
    assert 0 < count <= 2_000_000
    assert {line["reason"] for line in running.wait_access(2)} == {"quota-exceeded"}


# By whom


def test_users_and_groups_have_rates(gateway, there, workspace):
    write(workspace / "users", *[f"{name}:{bcrypt('x')}" for name in ("ann", "bea", "eve")])
    write(workspace / "groups", "guests: ann bea", "staff: eve")
    running = gateway({
        **config(
            rated({"per": "group", "requests": "1/h", "burst": 2}, name="guests",
                  groups=["staff", "guests"], hosts=["group.test"]),
            rated({"per": "user", "requests": "1/h", "burst": 2}, name="each")),
        "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward",
                       "authentication": ["basic"]}],
        "authentication": {"users": str(workspace / "users"), "groups": str(workspace / "groups")}})
    with running.wire() as wire:
        def ask(host: str, user: str) -> int:
            wire.send(request(f"http://{host}:{there.port}/",
                              Proxy_Authorization=basic(user, "x")))
            return wire.read().status

        # Two of one group share a rate, and who is in another has that one's.
        assert [ask("group.test", name) for name in ("ann", "bea", "ann", "eve")] == [
            200, 200, 429, 200]
        assert [ask("a.test", name) for name in ("ann", "ann", "ann", "bea")] == [
            200, 200, 429, 200]


def test_a_rule_that_reports_counts_and_limits_nothing(gateway, there):
    running = gateway(config(
        rated({"requests": "1/h", "burst": 2, "down": "10KB/s"}, action="report"),
        {"name": "all", "action": "allow"}))
    assert statuses(running, there.url("/hit/1"), 6) == [200] * 6
    began = time.monotonic()
    assert statuses(running, there.url("/200000"), 1) == [200]
    assert time.monotonic() - began < 5
    until(lambda: running.metric(LIMITED, rule="r", result="paced") == 1, "it is counted")
    assert running.metric(LIMITED, rule="r", result="refused") == 5


def test_a_reload_keeps_what_was_used(gateway, there):
    running = gateway(config(rated({"requests": "2/h", "burst": 3})))
    assert statuses(running, there.url("/"), 3) == [200, 200, 200]
    changed = {**running.config, "access": {**running.config["access"], "rules": [
        rated({"requests": "4/h", "burst": 3})]}}
    reload(running, changed)
    assert statuses(running, there.url("/"), 1) == [429]
    # Without a rate nothing is limited; and with one again, it is still used up.
    free = {**running.config, "access": {**running.config["access"], "rules": [
        {"name": "r", "action": "allow"}]}}
    reload(running, free)
    assert statuses(running, there.url("/"), 3) == [200] * 3
    reload(running, changed)
    assert statuses(running, there.url("/"), 1) == [429]


# The configuration


def test_check_and_explain_show_rates(gateway, there):
    running = gateway(config(rated(
        {"per": "rule", "requests": "50/s", "exchanges": 20, "down": "1MiB/s", "up": "256KiB/s",
         "day": "2GiB", "over": "delay"})))
    shown = ("rate { per: rule, requests: 50/s, exchanges: 20, down: 1MiB/s, up: 256KiB/s, "
             "day: 2GiB, over: delay }")
    checked = run_pinfold("check", "--config", str(running.config_file))
    assert checked.returncode == 0 and shown in checked.stdout, checked.stdout + checked.stderr
    explained = run_pinfold("explain", there.url("/"), "--config", str(running.config_file))
    assert "rate of r: { per: rule, requests: 50/s," in explained.stdout


@pytest.mark.parametrize("rate,message", [
    ({}, "limits nothing"),
    ({"requests": "50"}, "did you mean 50/s"),
    ({"requests": "0/s"}, "not valid"),
    ({"requests": "1/w"}, "not valid"),
    ({"requests": "99999999999999999999/s"}, "not valid"),
    ({"down": "1MiB"}, "did you mean 1MiB/s"),
    ({"down": "1M/s"}, "not valid"),
    ({"up": "0/s"}, "not valid"),
    ({"day": "0"}, "out of range"),
    ({"burst": 5, "down": "1MiB/s"}, "burst: has no rate"),
    ({"requests": "1/s", "burst": 0}, "out of range"),
    ({"exchanges": 0}, "out of range"),
    ({"requests": "1/s", "per": "group"}, "the rule names no groups"),
    ({"requests": "1/s", "per": "host"}, "client, user, group, rule"),
    ({"requests": "1/s", "over": "drop"}, "refuse, delay"),
    ({"requsts": "1/s"}, "requests"),
])
def test_a_rate_that_cannot_be_is_an_error(gateway, rate, message):
    made = gateway(config(rated(rate)), start=False)
    made.write_config(made.config)
    checked = run_pinfold("check", "--config", str(made.config_file))
    assert checked.returncode == 1, checked.stdout
    assert message in checked.stderr and "access.rules[0]" in checked.stderr, checked.stderr


def test_a_rate_of_a_rule_that_denies_is_an_error(gateway):
    made = gateway(config({"name": "r", "action": "deny", "rate": {"requests": "1/s"}}), start=False)
    made.write_config(made.config)
    checked = run_pinfold("check", "--config", str(made.config_file))
    assert checked.returncode == 1 and "does not apply to action: deny" in checked.stderr


@pytest.mark.parametrize("rate,message", [
    ({"down": "1MiB/s", "over": "delay"}, "has no effect"),
    ({"requests": "1/s", "per": "user"}, "counts by the client's network"),
])
def test_a_rate_without_effect_is_warned_of(gateway, rate, message):
    made = gateway(config(rated(rate)), start=False)
    made.write_config(made.config)
    checked = run_pinfold("check", "--config", str(made.config_file))
    assert checked.returncode == 0 and message in checked.stderr, checked.stderr
