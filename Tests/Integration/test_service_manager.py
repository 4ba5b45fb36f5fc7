"""Under a service manager: what it is told, its watchdog, and the journal's levels."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.gateway import Gateway
from support.origin import reply, waiting
from support.services import NotifySocket, stopped_threads
from support.wait import until
from support.wire import connect, request

SERVING = "serving on 1 listener"


@pytest.fixture
def manager(tmp_path) -> Iterator[NotifySocket]:
    one = NotifySocket(str(tmp_path / "notify"))
    yield one
    one.close()


@pytest.fixture
def service(gateway, manager):
    """Starts a gateway that this manager watches."""

    def start(config: dict | None = None, wait: bool = True, **environment: str) -> Gateway:
        made = gateway(config, start=False)
        made.environment = made.environment | {"NOTIFY_SOCKET": manager.address} | environment
        return made.start(wait)

    return start


def threads(running: Gateway) -> list[str]:
    return [(one / "comm").read_text().strip()
            for one in Path(f"/proc/{running.pid}/task").iterdir()]


def listening(running: Gateway) -> list[tuple[str, int]]:
    """The addresses of IPv4 that it listens on, as the kernel has them."""
    descriptors = Path(f"/proc/{running.pid}/fd")
    own = {os.readlink(one) for one in descriptors.iterdir()}
    rows = [line.split() for line in Path(f"/proc/{running.pid}/net/tcp").read_text().splitlines()]
    found = {row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own}
    return [(socket.inet_ntoa(bytes.fromhex(one[:8])[::-1]), int(one[9:], 16)) for one in found]


# The start


def test_it_is_ready_once_every_listener_accepts(service, manager):
    running = service(wait=False)
    manager.wait(READY="1", STATUS=SERVING)
    # Nothing is waited for now.
    addresses = listening(running)
    assert len(addresses) == 2
    for address in addresses:
        with socket.create_connection(address, 5):
            pass
    before = manager.messages[:-1]
    assert not any("READY" in one for one in before)
    assert [one["STATUS"] for one in before] == [
        "starting: reading the configuration", "starting: opening the listeners",
        "starting: opening the cache", "starting: waiting for the workers"]
    assert manager.senders == {running.pid}


def test_the_socket_may_be_an_abstract_name(gateway, tmp_path):
    manager = NotifySocket(f"@pinfold-{tmp_path.name}-{id(tmp_path)}")
    made = gateway(start=False)
    made.environment = made.environment | {"NOTIFY_SOCKET": manager.address}
    made.start()
    manager.wait(READY="1")
    manager.close()


@pytest.mark.parametrize("address", ["relative", "@", "/" + "x" * 200])
def test_an_address_that_is_none_is_said_and_does_no_harm(gateway, address):
    made = gateway(start=False)
    made.environment = made.environment | {"NOTIFY_SOCKET": address}
    made.start()
    assert "NOTIFY_SOCKET" in made.log()


def test_a_manager_that_is_gone_does_no_harm(service, manager, origin):
    there = origin(lambda _: reply(b"x"))
    running = service()
    manager.close()
    Path(manager.address).unlink()
    running.signal(signal.SIGHUP)
    until(lambda: running.metric("pinfold_config_generation") == 2, "reloaded")
    assert running.get(there.url("/")).status == 200


def test_an_invalid_configuration_is_its_status(service, manager):
    running = service({"workers": "many"}, wait=False)
    assert running.wait_exit() == 1
    statuses = manager.waiting()
    assert statuses[-1] == {"STATUS": "not started: the configuration is invalid"}
    assert not any("READY" in one for one in statuses)


def test_an_address_in_use_is_its_status_and_error(service, manager):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        running = service({"listeners": [
            {"name": "proxy", "address": f"127.0.0.1:{port}", "kind": "forward"}]}, wait=False)
        assert running.wait_exit() == 1
    last = manager.waiting()[-1]
    assert last["ERRNO"] == "98"
    assert f"127.0.0.1:{port}" in last["STATUS"]
    assert not any("READY" in one for one in manager.messages)


def test_without_a_manager_there_is_no_watchdog(gateway):
    assert "watchdog" not in threads(gateway())


# A reload


def test_a_reload_is_announced_and_ends_when_it_is_in_force(service, manager, origin):
    there = origin(lambda _: reply(b"x"))
    running = service()
    manager.wait(READY="1")
    config = running.config | {"listeners": running.config["listeners"] + [
        {"name": "second", "address": "127.0.0.1:0", "kind": "forward"}]}
    running.write_config(config)
    before = time.clock_gettime(time.CLOCK_MONOTONIC)
    running.signal(signal.SIGHUP)
    reloading = manager.wait(RELOADING="1")
    after = time.clock_gettime(time.CLOCK_MONOTONIC)
    assert before <= int(reloading["MONOTONIC_USEC"]) / 1e6 <= after
    manager.wait(READY="1", STATUS="serving on 2 listeners")
    addresses = listening(running)
    assert len(addresses) == 3
    for address in set(addresses) - {running.admin}:
        with connect(address, there.authority)[0]:
            pass


def test_a_reload_that_fails_ends_too(service, manager):
    running = service()
    manager.wait(READY="1")
    running.write_config("workers: many\n")
    running.signal(signal.SIGHUP)
    manager.wait(RELOADING="1")
    manager.wait(READY="1", STATUS=f"{SERVING}; the last reload failed: see the log")
    running.write_config(running.config)
    running.signal(signal.SIGHUP)
    manager.wait(READY="1", STATUS=SERVING)


# The end


def test_the_status_says_what_the_end_waits_for(service, manager, scripted_origin, origin):
    release, arrived = threading.Event(), threading.Event()
    slow = scripted_origin(waiting(release, arrived))
    there = origin(lambda _: reply(b"x"))
    running = service({"timeouts": {"grace": "60s"}})
    manager.wait(READY="1")
    tunnel, answer = running.connect(there.authority)
    try:
        assert answer.status == 200
        with running.wire() as wire:
            wire.send(request(slow.url("/")))
            assert arrived.wait(10)
            running.signal(signal.SIGTERM)
            stopping = manager.wait(STOPPING="1")
            # As long as it may take: longer than the manager would wait by itself, perhaps.
            assert int(stopping["EXTEND_TIMEOUT_USEC"]) >= 60_000_000
            manager.wait(STATUS=r"draining: waiting for 1 request, 1 tunnel; up to \d+s")
            tunnel.close()
            manager.wait(STATUS=r"draining: waiting for 1 request, 0 tunnels; up to \d+s")
            release.set()
            assert wire.read().body == b"late"
    finally:
        release.set()
        tunnel.close()
    assert running.wait_exit() == 0
    manager.wait(STATUS="stopping: .*")
    assert not any("READY" in one for one in manager.messages[-2:])


# The watchdog


def test_the_watchdog_is_fed_while_every_worker_turns(service, manager, origin):
    there = origin(lambda _: reply(b"x"))
    running = service(WATCHDOG_USEC="400000")
    manager.wait(READY="1")
    for _ in range(3):
        manager.wait(WATCHDOG="1")
    try:
        with stopped_threads(running.pid, "worker-1"):
            running.wait_log("does not turn.* worker=1")
            manager.waiting()

            def lines() -> int:
                return len(re.findall("does not turn.* worker=1", running.log()))

            # Another half of the interval, and another.
            for count in (2, 3):
                until(lambda n=count: lines() >= n, f"{count} lines")
            assert not any("WATCHDOG" in one for one in manager.waiting())
    except PermissionError as problem:
        pytest.skip(f"no thread can be stopped on this machine: {problem}")
    manager.wait(WATCHDOG="1")
    assert running.get(there.url("/")).status == 200


def test_the_watchdog_is_fed_while_the_gateway_drains(service, manager, origin):
    there = origin(lambda _: reply(b"x"))
    running = service({"timeouts": {"grace": "60s"}}, WATCHDOG_USEC="200000")
    tunnel, answer = running.connect(there.authority)
    try:
        assert answer.status == 200
        running.signal(signal.SIGTERM)
        manager.wait(STOPPING="1")
        for _ in range(3):
            manager.wait(WATCHDOG="1")
    finally:
        tunnel.close()
    assert running.wait_exit() == 0


def test_a_watchdog_for_another_process_is_not_fed(service, manager):
    running = service(WATCHDOG_USEC="200000", WATCHDOG_PID="1")
    manager.wait(READY="1")
    assert "watchdog" not in threads(running)


# The journal


def test_lines_for_the_journal_have_their_level(gateway):
    made = gateway(start=False)
    made.stderr_file.touch()
    status = made.stderr_file.stat()
    made.environment = made.environment | {
        "JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
    made.start()
    made.write_config("workers: many\n")
    made.signal(signal.SIGHUP)
    made.wait_log("configuration not reloaded")
    levels = {"error": 3, "warning": 4, "notice": 5, "info": 6}
    lines = [line for line in made.log().splitlines() if re.match(r"<\d>\d{4}-", line)]
    assert {line.split()[1] for line in lines} >= {"info", "error"}
    for line in lines:
        assert line[:3] == f"<{levels[line.split()[1]]}>", line
    # Whatever else is on it is no line of ours: the second one of an error with two.
    assert all(re.match(r"<\d>", line) for line in made.log().splitlines()), made.log()


def test_lines_for_anything_else_do_not(gateway):
    made = gateway(start=False)
    made.environment = made.environment | {"JOURNAL_STREAM": "8:1"}
    made.start()
    assert "<6>" not in made.log()


def test_errors_at_the_start_have_their_level_in_the_journal(gateway):
    made = gateway({"workers": "many"}, start=False)
    made.stderr_file.touch()
    status = made.stderr_file.stat()
    made.environment = made.environment | {
        "JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
    made.start(wait=False)
    assert made.wait_exit() == 1
    assert re.match(r"<3>Error: .*workers", made.log())
