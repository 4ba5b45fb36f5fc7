"""kill -9, damaged files, full disks: the cache never serves damage, never fails a request."""

from __future__ import annotations

import hashlib
import os
import random
import resource
import signal
import sqlite3
import threading
from contextlib import closing

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
    """Fetches over and over until it is stopped or the gateway goes away."""
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
def test_the_cache_survives_kill_9_during_a_storm_of_stores(gateway, origin):
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
    with closing(sqlite3.connect(running.folder / "cache/cache.sqlite")) as database:
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
    running.wait_for_disk()
    for number in range(5):
        running.get(there.url(f"/{number}"))
    until(lambda: running.metric("pinfold_cache_disk_writes_total") >= 5, "all are on disk")
    running.signal(signal.SIGTERM)
    assert running.wait_exit() == 0
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


def damage_chunks(running: Gateway, chunks: range) -> None:
    """Changes these pieces of every long body on disk, behind the database's back."""
    # An open connection would keep the gateway out of the file.
    with closing(sqlite3.connect(running.folder / "cache/cache.sqlite")) as database, database:
        marks = ",".join(str(chunk) for chunk in chunks)
        changed = database.execute(
            "UPDATE chunk SET data = zeroblob(length(data)) WHERE (id & 1048575) IN (" + marks + ")")
        assert changed.rowcount >= len(chunks)


def test_a_long_body_damaged_at_its_start_comes_from_the_origin(gateway, origin):
    body = os.urandom(3_000_000)
    there = origin(lambda seen: reply(body, "200 OK", FRESH, 'ETag: "1"'))
    running = gateway({"cache": {"memory": "1MiB"}})
    running.wait_for_disk()
    for number in range(3):
        running.get(there.url(f"/{number}"))
    until(lambda: running.metric("pinfold_cache_disk_writes_total") == 3, "they are on disk")
    running.stop()
    damage_chunks(running, range(1))
    running.start()
    running.wait_for_disk()
    asked = len(there.requests)
    for number in range(3):
        response = running.get(there.url(f"/{number}"))
        assert response.status == 200 and response.body == body
        assert "hit" not in response.cache_status
    assert len(there.requests) == asked + 3
    assert running.metric("pinfold_cache_damaged_entries_total") == 3
    assert running.metric("pinfold_upstream_retries_total", reason="stored_body_unreadable") == 3
    until(lambda: "hit" in running.get(there.url("/0")).cache_status, "it is stored anew")


def test_a_part_of_a_long_body_that_is_damaged_comes_from_the_origin(gateway, origin):
    body = os.urandom(3_000_000)
    there = origin(lambda seen: reply(body, "200 OK", FRESH, 'ETag: "1"'))
    running = gateway({"cache": {"memory": "1MiB"}})
    running.wait_for_disk()
    running.get(there.url("/"))
    until(lambda: running.metric("pinfold_cache_disk_writes_total") == 1, "it is on disk")
    running.stop()
    damage_chunks(running, range(20, 40))
    running.start()
    running.wait_for_disk()
    with running.wire() as wire:
        # The start is intact, and no more is read of it than is asked for.
        response = wire.ask(request(there.url("/"), Range="bytes=0-99"))
        assert response.status == 206 and response.body == body[:100]
        assert "hit" in response.cache_status
        response = wire.ask(request(there.url("/"), Range="bytes=2000000-2000099"))
        assert response.status in (200, 206)
        assert response.body == body if response.status == 200 else body[2_000_000:2_000_100]
        assert "hit" not in response.cache_status
    assert running.metric("pinfold_cache_damaged_entries_total") == 1


@pytest.mark.parametrize("names", [
    ("cache.sqlite",), ("cache.sqlite-wal",), ("cache.sqlite", "cache.sqlite-wal")])
def test_cache_files_deleted_while_running_are_noticed(gateway, origin, names):
    there = origin(summed)
    running = gateway({"cache": {"memory": "0"}})
    running.wait_for_disk()
    fill(running, there)
    until(lambda: running.metric("pinfold_cache_disk_writes_total") >= 30, "they are on disk")
    for name in names:
        (running.folder / "cache" / name).unlink()

    def noticed() -> bool:
        fill(running, there)
        return running.metric("pinfold_cache_disk_restarts_total") == 1

    until(noticed, "the gateway notices")
    running.wait_log("a new database was created")
    written = running.metric("pinfold_cache_disk_writes_total") + 1

    until(lambda: fill(running, there) or
          running.metric("pinfold_cache_disk_writes_total") >= written, "it stores again")
    running.stop()
    running.start()
    running.wait_for_disk()
    asked = len(there.requests)
    fill(running, there)
    assert len(there.requests) < asked + 30, "what was stored since is there after a restart"


def test_files_stay_within_the_limit_and_its_allowance(gateway, origin):
    there = origin(lambda seen: reply(b"x" * 300, "200 OK", FRESH))
    running = gateway({"cache": {"memory": "1MiB", "disk": "2MiB", "entries": 100000}})
    largest = 0
    with running.wire() as wire:
        for number in range(8000):
            wire.ask(request(there.url(f"/{number}")))
            if number % 50 == 0:
                largest = max(largest, sum(
                    file.stat().st_size for file in (running.folder / "cache").iterdir()))
    until(lambda: running.metric("pinfold_cache_store_queue_operations") == 0, "all is written")
    assert running.metric("pinfold_cache_disk_evictions_total", reason="bytes") > 0
    assert largest <= (2 << 20) + (16 << 20)
    until(lambda: running.metric("pinfold_cache_disk_file_bytes", file="log") == 0,
          "the log's space is given back")
    size = running.metric("pinfold_cache_disk_file_bytes", file="database")
    assert size == (running.folder / "cache/cache.sqlite").stat().st_size <= 2 << 20


def test_a_database_of_a_newer_version_is_not_touched_blindly(gateway, origin):
    there = origin(summed)
    running = gateway()
    fill(running, there)
    running.stop()
    with closing(sqlite3.connect(running.folder / "cache/cache.sqlite")) as database:
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
    running.wait_for_disk()
    with running.wire() as wire:
        for number in range(100):
            response = wire.ask(request(there.url(f"/{number}")))
            assert response.body == random.Random(f"/{number}").randbytes(50_000)
        for number in range(100):
            assert wire.ask(request(there.url(f"/{number}"))).body == random.Random(
                f"/{number}").randbytes(50_000)
    until(lambda: running.metric("pinfold_cache_disk_state", state="failed") == 1,
          "a metric shows it")


def test_two_gateways_on_one_cache_folder_both_serve(gateway, origin, workspace):
    there = origin(summed)
    shared = str(workspace / "shared-cache")
    one = gateway({"cache": {"path": shared}})
    two = gateway({"cache": {"path": shared}})
    for _ in range(2):
        fill(one, there)
        fill(two, there)
