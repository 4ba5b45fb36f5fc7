"""A gateway that hands over to a successor: nothing is refused, reset or answered wrongly, whether
the successor gets ready or not."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
from support.askers import Clients
from support.gateway import free_port
from support.observed import Rotating, chains, wait_chains
from support.origin import HTTPOrigin, reply, serving
from support.reports import HOST, Collector, configuration, files, serve
from support.reports import ask as ask_host
from support.upgrades import Succession
from support.wait import until
from support.wire import Wire, ask

CONTENT = b"a small answer"


@pytest.fixture(scope="module")
def there():
    with serving(HTTPOrigin(lambda seen: reply(CONTENT))) as made:
        yield made


@pytest.fixture
def succession(gateway):
    made: list[Succession] = []

    def make(config: dict | None = None) -> Succession:
        one = Succession(gateway({"cache": {"enabled": False}} | (config or {}), start=False))
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


def clients(running, there) -> Clients:
    return Clients(running.proxy, f"GET http://{there.authority}/ HTTP/1.1\r\n"
                   f"Host: {there.authority}".encode(), CONTENT)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_nothing_is_lost_when_one_succeeds_the_other(succession, there, workers):
    one = succession({"workers": workers})
    pids = {one.pid}
    load = clients(one.gateway, there)
    with load.running() as wait:
        for _ in range(3):
            former = one.pid
            pids.add(one.upgrade())
            wait()
            until(lambda: former not in one.members(), "the predecessor has ended", 20)
    assert load.wrong == []
    assert len(pids) == 4
    assert one.members() == {one.pid}
    assert one.gateway.admin_get("/readyz").status == 200


@pytest.mark.parametrize("numbers", [(4, 1), (1, 4), (3, 2)])
def test_the_successor_may_have_more_or_fewer_workers(succession, there, numbers):
    first, second = numbers
    one = succession({"workers": first})
    load = clients(one.gateway, there)
    with load.running() as wait:
        one.gateway.write_config(one.gateway.config | {"workers": second})
        former = one.pid
        one.upgrade()
        wait()
        until(lambda: former not in one.members(), "the predecessor has ended", 20)
        wait()
        # Whose reload finds them all.
        start = len(one.gateway.log())
        os.kill(one.pid, signal.SIGHUP)
        until(lambda: "configuration reloaded" in one.log_from(start), "reloaded")
        wait()
        one.upgrade()
        wait()
    assert load.wrong == []


def test_addresses_chosen_by_the_system_stay(succession, there):
    one = succession()
    before = one.gateway.listeners
    start = len(one.gateway.log())
    one.upgrade()
    for name, (host, port) in before.items():
        # Each process writes its own lines.
        until(lambda: f"address={host}:{port} listener={name}" in one.log_from(start),
              lambda: f"{name} stays at {port}:\n{one.log_from(start)}")


def test_listeners_come_and_go_with_the_configuration(succession, there):
    one = succession()
    gone, stays = one.gateway.proxy, one.gateway.admin
    port = free_port()
    one.gateway.write_config(one.gateway.config | {
        "listeners": [{"name": "another", "address": f"127.0.0.1:{port}", "kind": "forward"}]})
    one.upgrade()
    url = f"GET http://{there.authority}/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert ask(("127.0.0.1", port), url).status == 200
    with pytest.raises(ConnectionRefusedError):
        ask(gone, url)
    assert ask(stays, "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
               ).status == 200


def test_the_api_answers_when_the_successor_serves(succession, there):
    one = succession()
    wire = Wire(one.gateway.admin)
    answer = wire.ask("POST /api/v1/upgrade HTTP/1.1\r\nHost: localhost\r\n"
                      "Content-Type: application/json\r\nContent-Length: 0\r\n\r\n")
    assert answer.status == 200
    one.pid = answer.json()["pid"]
    status = json.loads(one.gateway.admin_get("/api/v1/status").body)
    assert status["pid"] == one.pid != one.group


# Successors that fail.

FAILURES = {
    "ends at once": ("exit 3", "exit code 3"),
    "is killed": ("kill -9 $$", "signal 9"),
    "is another program": ("exec sleep 0", "exit code 0"),
    "refuses the file": ("exec \"$PINFOLD\" run --config /nonexistent", "/nonexistent"),
}


@pytest.mark.parametrize("failure", [*FAILURES])
def test_the_process_goes_on_if_its_successor(succession, there, failure):
    one = succession({"workers": 2})
    script, reason = FAILURES[failure]
    load = clients(one.gateway, there)
    with load.running() as wait:
        one.script(script)
        assert reason in one.fail()
        wait()
        one.script('exec "$PINFOLD" "$@"')
        former = one.pid
        one.upgrade()
        wait()
        until(lambda: former not in one.members(), "the predecessor has ended", 20)
    assert load.wrong == []


def test_a_configuration_that_is_refused_is_named(succession, there):
    one = succession()
    good = one.gateway.config_file.read_text()
    one.gateway.write_config(one.gateway.config | {"workers": "many"})
    assert "workers" in one.fail()
    assert one.gateway.get(f"http://{there.authority}/").status == 200
    one.gateway.config_file.write_text(good)
    one.upgrade()


def test_an_address_that_is_taken_is_named(succession, there):
    one = succession()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        one.gateway.write_config(one.gateway.config | {
            "listeners": [{"name": "proxy", "address": f"127.0.0.1:{port}", "kind": "forward"}]})
        assert f"127.0.0.1:{port}" in one.fail()
    assert one.gateway.get(f"http://{there.authority}/").status == 200


@pytest.mark.parametrize("milliseconds", [0, 5, 10, 20, 30, 50, 80, 120, 200, 400])
def test_a_successor_may_be_killed_at_any_moment(succession, there, milliseconds):
    one = succession({"workers": 2})
    load = clients(one.gateway, there)
    # As long as a tunnel is open, the predecessor has not finished.
    tunnel, answer = one.gateway.connect(there.authority)
    assert answer.status == 200
    with load.running() as wait:
        start = one.begin()
        until(lambda: "a successor is starting" in one.log_from(start), "it starts")
        successor = until(lambda: one.members() - {one.pid}, "its process")
        time.sleep(milliseconds / 1000)  # A moment, of which none is better than another.
        for pid in successor:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(lambda: "this process goes on" in one.log_from(start)
              or "this process serves again" in one.log_from(start),
              lambda: f"it goes on:\n{one.log_from(start)}", 20)
        until(lambda: one.gateway.get(f"http://{there.authority}/").status == 200, "it serves")
        before = len(load.wrong)
        wait()
    # What the successor had accepted is lost with it, and only that.
    assert len(load.wrong) == before
    if "this process goes on" in one.log_from(start):
        assert load.wrong == []
    tunnel.close()


def test_a_program_that_others_can_write_is_not_run(succession, there):
    one = succession()
    one.script('exec "$PINFOLD" "$@"')
    script = one.program.with_name("script")
    for mode, who in ((0o777, "everyone"), (0o757, "everyone")):
        script.chmod(mode)
        assert who in one.fail()
    script.chmod(0o755)
    one.program.parent.chmod(0o777)
    assert "everyone" in one.fail()
    one.program.parent.chmod(0o755)
    one.program.unlink()
    assert "No such file" in one.fail()
    one.script('exec "$PINFOLD" "$@"')
    one.upgrade()


def test_what_is_in_progress_ends_by_itself(succession, there):
    with serving(HTTPOrigin(lambda seen: reply(b"in the tunnel"))) as origin:
        one = succession()
        wire, answer = one.gateway.connect(origin.authority)
        assert answer.status == 200
        former = one.pid
        one.upgrade()
        # The tunnel is in the predecessor, new requests are in the successor.
        assert one.gateway.get(f"http://{there.authority}/").status == 200
        assert former in one.members()
        assert wire.ask(f"GET / HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n").body == b"in the tunnel"
        wire.close()
        until(lambda: former not in one.members(), "the predecessor has ended", 20)


def test_a_tunnel_is_cut_when_the_grace_is_over(succession, there):
    one = succession({"timeouts": {"grace": "1s"}})
    wire, answer = one.gateway.connect(there.authority)
    assert answer.status == 200
    former = one.pid
    one.upgrade()
    with contextlib.suppress(ConnectionResetError):
        assert wire.socket.recv(1) == b""
    until(lambda: former not in one.members(), "the predecessor has ended", 20)


def test_an_idle_connection_may_be_used_once_more(succession, there):
    one = succession()
    wire = one.gateway.wire()
    request = f"GET http://{there.authority}/ HTTP/1.1\r\nHost: x\r\n\r\n"
    assert wire.ask(request).status == 200
    one.upgrade()
    answer = wire.ask(request)
    assert answer.status == 200
    assert answer.get("Connection").lower() == "close"
    assert wire.socket.recv(1) == b""


def test_the_predecessor_serves_again_if_its_successor_dies(succession, there):
    one = succession({"workers": 2})
    wire, answer = one.gateway.connect(there.authority)
    assert answer.status == 200
    former = one.pid
    start = len(one.gateway.log())
    os.kill(one.upgrade(), signal.SIGKILL)
    until(lambda: "this process serves again" in one.log_from(start), "it serves again")
    one.pid = former
    load = clients(one.gateway, there)
    with load.running() as wait:
        wait()
        assert one.gateway.admin_get("/readyz").status == 200
        # As if nothing had happened: another upgrade works.
        one.upgrade()
        wait()
    assert load.wrong == []
    wire.close()
    until(lambda: one.members() == {one.pid}, "one is left", 20)


def test_a_reload_waits_for_an_upgrade_that_fails(succession, there):
    one = succession()
    one.script("sleep 1; exit 1")
    start = one.begin()
    until(lambda: "a successor is starting" in one.log_from(start), "it starts")
    os.kill(one.pid, signal.SIGHUP)
    until(lambda: "configuration reloaded" in one.log_from(start), "it is reloaded", 20)
    text = one.log_from(start)
    assert text.index("this process goes on") < text.index("configuration reloaded")


def test_sigterm_ends_a_successor_that_is_not_ready(succession, there):
    one = succession()
    one.script("exec sleep 60")
    start = one.begin()
    until(lambda: "a successor is starting" in one.log_from(start), "it starts")
    os.kill(one.pid, signal.SIGTERM)
    assert one.gateway.wait_exit() == 0
    until(lambda: not one.members(), "none is left")


def test_descriptors_do_not_add_up(succession, there):
    one = succession({"workers": 2})
    counts = []
    for _ in range(6):
        former = one.pid
        one.upgrade()
        until(lambda: former not in one.members(), "the predecessor has ended", 20)
        until(lambda: "the predecessor has ended" in one.gateway.log(), "it knows")
        counts.append(len(list(Path(f"/proc/{one.pid}/fd").iterdir())))
    assert max(counts[2:]) <= counts[1] + 2


CUMULATIVE = ("_total", "_count", "_sum", "_bucket")


def test_counters_go_on_from_those_of_the_predecessor(succession, there):
    one = succession({"workers": 2})
    load = clients(one.gateway, there)
    before: dict[str, float] = {}

    def scrape() -> None:
        nonlocal before
        now = {name: value for name, value in one.gateway.metrics().items()
               if name.startswith("pinfold_") and name.partition("{")[0].endswith(CUMULATIVE)}
        fallen = {name: (value, now.get(name)) for name, value in before.items()
                  if now.get(name, -1) < value}
        assert not fallen
        before = now

    with load.running() as wait:
        scrape()
        for _ in range(3):
            former = one.pid
            one.upgrade()
            wait()
            # The last values come when the predecessor has ended.
            until(lambda: former not in one.members(), "the predecessor has ended", 20)
            start = len(one.gateway.log())
            until(lambda: f"predecessor={former}" in one.gateway.log()[start:]
                  or "the predecessor has ended" in one.gateway.log(), "it knows", 20)
            scrape()
            wait()
            scrape()
    assert load.wrong == []
    until(lambda: one.gateway.metric("pinfold_http_requests_total", listener="proxy")
          == load.served, lambda: f"all {load.served} are counted")


def test_counters_by_server_go_on_as_well(succession, there):
    one = succession({"workers": 1, "listeners": [
        {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
        {"name": "back", "address": "127.0.0.1:0", "kind": "reverse", "upstreams": {
            "servers": [{"url": there.url("")}], "health": {"path": "/", "interval": "1s", "timeout": "1s"}}}]})

    def count(what: str, **labels: str) -> float:
        return one.gateway.metric(f"pinfold_upstream_server_{what}_total", server=there.url(""), **labels)

    for number in range(3):
        assert one.gateway.get("/", "back").status == 200
        assert count("requests") == number + 1
        until(lambda n=number: count("checks", result="passed") > n, "it is checked")
        before, former = count("checks"), one.pid
        one.upgrade()
        until(lambda p=former: p not in one.members(), "the predecessor has ended", 20)
        until(lambda n=number: count("requests") == n + 1, lambda: f"{count('requests')} are counted")
        assert count("checks") >= before


@pytest.mark.parametrize("ending", ["upgrade", "SIGTERM"])
def test_an_idle_tunnel_ends_sooner_than_one_in_use(succession, there, ending):
    one = succession({"timeouts": {"grace": "20s", "tunnelGrace": "2s"}})
    idle, answer = one.gateway.connect(there.authority)
    assert answer.status == 200
    used, answer = one.gateway.connect(there.authority)
    assert answer.status == 200
    former = one.pid
    if ending == "upgrade":
        one.upgrade()
    else:
        os.kill(one.pid, signal.SIGTERM)
    ended = threading.Event()

    def wait() -> None:
        with contextlib.suppress(OSError):
            idle.socket.recv(1)
        ended.set()

    thread = threading.Thread(target=wait)
    thread.start()
    request = f"GET / HTTP/1.1\r\nHost: {there.authority}\r\n\r\n"
    while not ended.is_set():
        assert used.ask(request).body == CONTENT
    thread.join()
    assert used.ask(request).body == CONTENT
    assert former in one.members()
    used.close()
    until(lambda: former not in one.members(), "it has ended", 20)


# The cache.

def stored(running, origin, path: str) -> bool:
    """Asks for an object; whether the cache had it."""
    answer = running.get(f"http://{origin.authority}{path}")
    assert answer.status == 200
    return answer.cache_status.get("hit", False)


@pytest.fixture
def cached():
    counts: dict[str, int] = {}

    def answer(seen):
        counts[seen.target] = counts.get(seen.target, 0) + 1
        size = int(seen.target.rpartition("-")[2] or 1)
        content = f"{seen.target} {counts[seen.target]} ".encode()
        return reply((content * (size // len(content) + 1))[:size], "200 OK",
                     "Cache-Control: max-age=1000")

    with serving(HTTPOrigin(answer)) as made:
        made.counts = counts
        yield made


@pytest.mark.parametrize("disk", ["64MiB", "0"])
def test_the_cache_moves(succession, cached, disk):
    one = succession({"cache": {"enabled": True, "disk": disk}})
    paths = [f"/object-{number}-{100 << number % 12}" for number in range(40)]
    for path in paths:
        assert not stored(one.gateway, cached, path)
        assert stored(one.gateway, cached, path)
    for _ in range(3):
        former = one.pid
        one.upgrade()
        if disk != "0":
            # At once, while the predecessor may still be there.
            assert all(stored(one.gateway, cached, path) for path in paths)
            assert one.gateway.metric("pinfold_cache_disk_state", state="on") == 1
        until(lambda: former not in one.members(), "the predecessor has ended", 20)
        assert not stored(one.gateway, cached, f"/new-{former}-500")
        assert stored(one.gateway, cached, f"/new-{former}-500")
    if disk != "0":
        assert all(cached.counts[path] == 1 for path in paths)


def test_a_body_that_is_read_from_disk_arrives_whole(succession, cached):
    one = succession({"cache": {"enabled": True, "disk": "256MiB", "memory": "1MiB"}})
    path = f"/large-{40 << 20}"
    assert not stored(one.gateway, cached, path)
    until(lambda: one.gateway.metric("pinfold_cache_entries", tier="disk") >= 1, "it is on disk")
    wire = one.gateway.wire(timeout=60)
    wire.send(f"GET http://{cached.authority}{path} HTTP/1.1\r\nHost: x\r\n\r\n")
    wire.read_until(b"\r\n\r\n")
    former = one.pid
    one.upgrade()
    assert former in one.members()
    assert stored(one.gateway, cached, path)
    content = f"{path} 1 ".encode()
    received = 0
    body = bytearray()
    while received < 40 << 20:
        part = wire.read_exactly(min(1 << 20, (40 << 20) - received))
        body += part
        received += len(part)
    assert bytes(body) == (content * ((40 << 20) // len(content) + 1))[: 40 << 20]
    wire.close()
    until(lambda: former not in one.members(), "the predecessor has ended", 20)
    assert cached.counts[path] == 1


def test_the_cache_comes_back_if_the_successor_fails(succession, cached):
    one = succession({"cache": {"enabled": True, "disk": "64MiB"}})
    assert not stored(one.gateway, cached, "/before-1000")
    # It has got the cache's database when it finds that an address is taken.
    wire, answer = one.gateway.connect(cached.authority)
    assert answer.status == 200
    former = one.pid
    start = len(one.gateway.log())
    os.kill(one.upgrade(), signal.SIGKILL)
    until(lambda: "this process serves again" in one.log_from(start), "it serves again")
    one.pid = former
    until(lambda: one.gateway.metric("pinfold_cache_disk_state", state="on") == 1, "it is back")
    assert stored(one.gateway, cached, "/before-1000")
    assert not stored(one.gateway, cached, "/after-1000")
    wire.close()
    one.upgrade()
    assert stored(one.gateway, cached, "/after-1000")
    assert stored(one.gateway, cached, "/before-1000")


# Reports of pin failures


def test_reports_that_wait_move(succession, origin, pki):
    there, port = serve(origin, pki.intermediate.issue(HOST)), free_port()
    one = succession(configuration(pki, f"http://127.0.0.1:{port}/"))
    assert ask_host(one.gateway, there).status == 502
    until(lambda: len(files(one.gateway)) == 1, "it is on disk")
    one.upgrade()
    until(lambda: one.members() == {one.pid}, "the one before has ended")
    with serving(Collector(listener=socket.create_server(("127.0.0.1", port)))) as taker:
        [report] = taker.wait()
        assert report["hostname"] == HOST
        until(lambda: files(one.gateway) == [], "its file is gone")
        assert len(taker.reports) == 1
    assert "cannot be used" not in one.gateway.log()


# Keys of servers that are remembered


def test_a_successor_knows_the_keys_that_were_seen(succession, origin, pki):
    turning = Rotating(pki.intermediate.issue(HOST))
    there = origin(lambda _: reply(b"genuine", "200 OK", "Cache-Control: no-store",
                                   "Connection: close"), tls=turning.context)
    one = succession({
        "hosts": [{"match": [HOST], "upgrade": "https", "pins": "observe"}],
        "tls": {"roots": [str(pki.root.pem_file)]}})

    def ask_it() -> None:
        assert one.gateway.get(f"http://{HOST}:{there.port}/").status == 200

    # What was seen a moment before is not written yet: the successor has it all the same.
    ask_it()
    ask_it()
    one.upgrade()
    until(lambda: one.members() == {one.pid}, "the one before has ended")
    assert [chain["verified"] for chain in wait_chains(one.gateway, HOST, 1)] == [2]
    start = len(one.gateway.log())
    ask_it()
    turning.use(pki.intermediate.issue(HOST))
    ask_it()
    until(lambda: "a key never seen before" in one.log_from(start), "it is told of")
    assert len(wait_chains(one.gateway, HOST, 2)) == 2
    one.upgrade()
    until(lambda: one.members() == {one.pid}, "the one before has ended")
    assert [chain["verified"] for chain in chains(one.gateway, HOST)] == [3, 1]
