"""kill -9, damaged files, full disks: the cache never serves damage, never fails a request."""

from __future__ import annotations

import hashlib
import os
import random
import resource
import sqlite3
import threading

import pytest
from support.gateway import Gateway
from support.origin import Request, reply
from support.wait import until
from support.wire import Closed, Wire, request

FRESH = "Cache-Control: max-age=6000"


def summed(seen: Request) -> bytes:
    """A body that depends on the target, from 1 byte to 400 kB, with its checksum in a field."""
    picked = random.Random(seen.target)
    size = picked.choice((1, 100, 5_000, 70_000, 400_000))
    body = picked.randbytes(size)
    return reply(body, "200 OK", FRESH, f"X-Sum: {hashlib.sha256(body).hexdigest()}",
                 f"X-Target: {seen.target}")


def check(response, target: str) -> None:
    assert response.status == 200
    assert response.get("x-target") == target
    assert hashlib.sha256(response.body).hexdigest() == response.get("x-sum"), "a damaged body"


def storm(running: Gateway, url, stop: threading.Event, problems: list, count: list[int]) -> None:
    """Fetches over and over until told to stop or the gateway goes away."""
    picked = random.Random()
    while not stop.is_set():
        try:
            with Wire(running.proxy, timeout=10) as wire:
                while not stop.is_set():
                    target = f"/{picked.randrange(400)}"
                    check(wire.ask(request(url(target))), target)
                    count[0] += 1
        except (OSError, Closed):
            continue  # killed in the middle: that is the point
        except BaseException as problem:
            problems.append(problem)
            return


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_kill_9_during_a_storm_of_stores_ten_times(gateway, origin):
    there = origin(summed)
    running = gateway({"cache": {"memory": "1MiB", "disk": "32MiB"}})
    from_disk = 0
    for round_number in range(10):
        stop, problems, count = threading.Event(), [], [0]
        threads = [threading.Thread(target=storm, args=(running, there.url, stop, problems, count))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            # Each round a little longer, so that the kill comes at different moments.
            until(lambda: count[0] > 60 + 25 * round_number or problems, "the storm rages", 30)
        finally:
            running.kill()
            stop.set()
            for thread in threads:
                thread.join()
        assert not problems, problems[0]
        running.start()
        assert "set aside" not in running.log(), "WAL recovers; nothing is given up"
        with running.wire() as wire:
            for number in range(0, 400, 4):
                target = f"/{number}"
                response = wire.ask(request(there.url(target)))
                check(response, target)
                from_disk += "hit" in response.cache_status
    assert from_disk > 0, "some entries survived"
    assert integrity(running) == "ok"


def integrity(running: Gateway) -> str:
    running.stop()
    with sqlite3.connect(running.folder / "cache/cache.sqlite") as database:
        return database.execute("PRAGMA integrity_check").fetchone()[0]


def fill(running: Gateway, there, count: int = 30) -> None:
    with running.wire() as wire:
        for number in range(count):
            check(wire.ask(request(there.url(f"/{number}"))), f"/{number}")


def garbage(path) -> None:
    path.write_bytes(os.urandom(100_000))


def no_header(path) -> None:
    with path.open("r+b") as file:
        file.write(b"\0" * 100)


def half(path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path) -> None:
    os.truncate(path, 0)


def holes(path) -> None:
    with path.open("r+b") as file:
        for at in range(4096, path.stat().st_size, 8192):
            file.seek(at)
            file.write(os.urandom(4096))


@pytest.mark.parametrize("damage", [garbage, no_header, half, empty, holes])
def test_a_corrupt_database_is_set_aside_or_survived(gateway, origin, damage):
    there = origin(summed)
    running = gateway({"cache": {"memory": "1MiB"}})
    fill(running, there)
    running.stop()
    for extra in ("-wal", "-shm"):
        (running.folder / f"cache/cache.sqlite{extra}").unlink(missing_ok=True)
    damage(running.folder / "cache/cache.sqlite")
    running.start()
    fill(running, there)
    if damage in (garbage, no_header, half):
        running.wait_log("(?i)corrupt|set aside|damaged")
    fill(running, there)
    asked = len(there.requests)

    def answered_from_the_cache() -> bool:
        before = len(there.requests)
        fill(running, there)
        return len(there.requests) < before + 30

    until(answered_from_the_cache, f"it stores again ({asked} requests so far)")


def test_damage_below_sqlites_notice_is_not_served(gateway, origin):
    """A body changed on disk without the database noticing: the checksum does."""
    there = origin(lambda seen: reply(b"GENUINE" * 20_000, "200 OK", FRESH))
    running = gateway({"cache": {"memory": "1MiB"}})
    for number in range(5):
        running.get(there.url(f"/{number}"))
    running.stop()
    path = running.folder / "cache/cache.sqlite"
    data = path.read_bytes()
    changed = data.replace(b"GENUINEGENUINE", b"GENUINEDAMAGED")
    assert changed != data, "the bodies are in the database"
    path.write_bytes(changed)
    running.start()
    for number in range(5):
        try:
            body = running.get(there.url(f"/{number}")).body
        except Closed:
            continue  # noticed in the middle of the body: cut off, never passed off as whole
        assert body == b"GENUINE" * 20_000


def test_a_database_of_a_newer_version_is_not_touched_blindly(gateway, origin):
    there = origin(summed)
    running = gateway()
    fill(running, there)
    running.stop()
    with sqlite3.connect(running.folder / "cache/cache.sqlite") as database:
        database.execute("PRAGMA user_version = 9999")
    running.start()
    fill(running, there)


def test_a_locked_database_turns_the_disk_tier_off_not_the_gateway(gateway, origin):
    there = origin(summed)
    running = gateway()
    fill(running, there, 3)
    running.stop()
    database = sqlite3.connect(running.folder / "cache/cache.sqlite", isolation_level=None)
    try:
        database.execute("BEGIN EXCLUSIVE")
        running.start()
        fill(running, there)
        fill(running, there)
    finally:
        database.close()


def test_an_unwritable_cache_folder_turns_the_disk_tier_off(gateway, origin):
    there = origin(summed)
    running = gateway(start=False)
    (running.folder / "cache").write_text("a file where the folder should be")
    running.start()
    fill(running, there)
    fill(running, there)
    running.wait_log("(?i)disk|cache")
    assert running.metric("pinfold_cache_disk_state", state="failed") == 1


def test_a_full_disk_turns_the_disk_tier_off(gateway, origin):
    """RLIMIT_FSIZE stands in for a full disk: writes past 1 MiB of a file fail."""
    there = origin(lambda seen: reply(random.Random(seen.target).randbytes(50_000), "200 OK", FRESH))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    running = gateway(preexec=limit)
    with running.wire() as wire:
        for number in range(100):
            response = wire.ask(request(there.url(f"/{number}")))
            assert response.body == random.Random(f"/{number}").randbytes(50_000)
        for number in range(100):
            assert wire.ask(request(there.url(f"/{number}"))).body == random.Random(
                f"/{number}").randbytes(50_000)
    until(lambda: running.metric("pinfold_cache_disk_state", state="failed") == 1,
          "a metric says so")


def test_two_gateways_on_one_cache_folder_both_serve(gateway, origin, workspace):
    there = origin(summed)
    shared = str(workspace / "shared-cache")
    one = gateway({"cache": {"path": shared}})
    two = gateway({"cache": {"path": shared}})
    for _ in range(2):
        fill(one, there)
        fill(two, there)
