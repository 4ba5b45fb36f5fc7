"""A gateway that drains gives its cache's database to the next one, while it still reads from it."""

from __future__ import annotations

import random
import signal
import sqlite3
import threading
from contextlib import closing

from support.gateway import Gateway, run_pinfold
from support.origin import Request, reply
from support.wait import until
from support.wire import Response, Wire, request

FRESH = "Cache-Control: max-age=6000"
LARGE = random.Random(1).randbytes(24 << 20)


class Site:
    """An origin with a large body, and one that answers POST when it is told to."""

    def __init__(self):
        self.may_answer = threading.Event()
        self.has_post = threading.Event()

    def __call__(self, seen: Request) -> bytes:
        if seen.method == "POST":
            self.has_post.set()
            assert self.may_answer.wait(60)
            return reply(b"changed")
        return reply(LARGE if seen.target.startswith("/large") else seen.target.encode() * 5000,
                     "200 OK", FRESH)


def gateways(gateway, workspace) -> tuple[Gateway, Gateway]:
    config = {"cache": {"memory": "4MiB", "disk": "128MiB", "path": str(workspace / "cache")},
              "timeouts": {"grace": "60s"}}
    return gateway(config), gateway(config, start=False)


def is_hit(running: Gateway, url: str) -> bool:
    response = running.get(url)
    assert response.status == 200
    return "hit" in response.cache_status


def stored(running: Gateway, there) -> None:
    """A large body and some others, on disk."""
    for number in range(20):
        assert not is_hit(running, there.url(f"/{number}"))
    # A disk that has not caught up passes over a large body, and takes it the next time.
    until(lambda: is_hit(running, there.url("/large")), "the large body is on disk", 30)
    until(lambda: running.metric("pinfold_cache_store_queue_operations") == 0, "all is on disk")


def reading(running: Gateway, there) -> tuple[Wire, Response]:
    """A connection on which the large body is being read, from disk."""
    wire = running.wire(timeout=60)
    wire.send(request(there.url("/large")))
    head = wire.read_head()
    assert "hit" in head.cache_status
    return wire, head


def draining(running: Gateway) -> None:
    running.signal(signal.SIGTERM)
    running.wait_log("handed over")


def integrity(path) -> str:
    with closing(sqlite3.connect(path / "cache/cache.sqlite")) as database:
        return database.execute("PRAGMA integrity_check").fetchone()[0]


def test_the_next_gateway_has_the_cache_while_the_first_one_ends(gateway, origin, workspace):
    there = origin(Site())
    first, second = gateways(gateway, workspace)
    stored(first, there)
    wire, head = reading(first, there)
    with wire:
        draining(first)
        second.start()
        second.wait_for_disk()
        assert "no longer shared" not in second.log()
        for number in range(20):
            assert is_hit(second, there.url(f"/{number}"))
        assert second.get(there.url("/large")).body == LARGE
        # What it stores itself displaces what it has: not what is being read.
        for number in range(8):
            assert second.get(there.url(f"/large?{number}")).status == 200
        assert not is_hit(second, there.url("/new"))
        assert second.ask(request(there.url("/7"), method="DELETE")).status == 200
        assert wire.read_body(head).body == LARGE
    assert first.wait_exit(60) == 0
    second.wait_log("no longer shared")
    assert is_hit(second, there.url("/new"))
    assert not is_hit(second, there.url("/7"))
    assert is_hit(second, there.url("/8"))
    assert second.stop() == 0
    assert integrity(workspace) == "ok"


def test_the_next_gateway_waits_for_the_cache(gateway, origin, workspace):
    there = origin(Site())
    first, second = gateways(gateway, workspace)
    stored(first, there)
    second.start()
    second.wait_log("disk tier is off.*locked")
    assert not is_hit(second, there.url("/1"))
    wire, head = reading(first, there)
    with wire:
        draining(first)
        second.wait_for_disk()
        assert is_hit(second, there.url("/2"))
        assert wire.read_body(head).body == LARGE
    assert first.wait_exit(60) == 0
    assert len([line for line in second.log().splitlines() if "locked" in line]) == 1


def test_what_the_first_gateway_invalidates_is_gone_from_the_next_one(gateway, origin, workspace):
    site = Site()
    there = origin(site)
    first, second = gateways(gateway, workspace)
    stored(first, there)
    with first.wire(timeout=60) as wire:
        wire.send(request(there.url("/3"), method="POST", body=b"x"))
        assert site.has_post.wait(60)
        draining(first)
        second.start()
        second.wait_for_disk()
        assert is_hit(second, there.url("/3"))
        site.may_answer.set()
        assert wire.read("POST").body == b"changed"
        until(lambda: not is_hit(second, there.url("/3")), "it is asked for again")
    assert first.wait_exit(60) == 0
    assert is_hit(second, there.url("/4"))


def test_kills_leave_a_cache_that_the_next_gateway_opens(gateway, origin, workspace):
    there = origin(Site())
    first, second = gateways(gateway, workspace)
    stored(first, there)
    wire, head = reading(first, there)
    with wire:
        draining(first)
        for number in range(3):
            second.start()
            second.wait_for_disk()
            assert is_hit(second, there.url(f"/{number}"))
            assert second.ask(request(there.url("/large"), method="DELETE")).status == 200
            assert second.get(there.url("/large")).body == LARGE
            second.kill()
        assert wire.read_body(head).body == LARGE
        second.start()
        second.wait_for_disk()
        first.kill()
    second.wait_log("no longer shared")
    for number in range(20):
        assert is_hit(second, there.url(f"/{number}"))
    assert "set aside" not in second.log()
    second.kill()
    second.start()
    second.wait_for_disk()
    assert is_hit(second, there.url("/5"))
    assert second.stop() == 0
    assert integrity(workspace) == "ok"


def test_a_gateway_that_has_given_its_cache_away_says_so(gateway, origin, workspace):
    there = origin(Site())
    first, _ = gateways(gateway, workspace)
    stored(first, there)
    wire, head = reading(first, there)
    with wire:
        draining(first)
        archive = workspace / "archive"
        for arguments, status in [
                (["ls"], 2), (["sql", "SELECT count(*) FROM cache"], 2), (["stats", "--hosts"], 2),
                (["export", str(archive)], 2), (["purge", "--everything", "--dry-run"], 1)]:
            done = run_pinfold("cache", *arguments, "--admin", "%s:%d" % first.admin)
            assert (done.returncode, done.stdout) == (status, ""), done
            assert "another process has the cache: a new connection reaches it" in done.stderr
        assert not archive.exists()
        done = run_pinfold("cache", "stats", "--admin", "%s:%d" % first.admin)
        assert "disk    passed to another process" in done.stdout
        assert wire.read_body(head).body == LARGE
    assert first.wait_exit(60) == 0
