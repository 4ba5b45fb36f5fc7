"""What happens to a fleet when its engine is killed, stopped, slow, full, wrong or damaged.

Under load and purges, in each case: no request fails, no body is wrong, and nothing is served that a gateway
has confirmed to be purged. Then hits cross again. Each prints a row of the table of SharedCache.md (`-s`).
"""

from __future__ import annotations

import contextlib
import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.damage import Damage
from support.fleet import Engine, EngineError, Fleet, Link, is_up, wait_shared
from support.fleetstorm import CONFIGURATION, FleetStorm, Objects, SlowLink, record, steadily, storm
from support.gateway import Gateway, free_port
from support.wait import SLOWDOWN, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120 * min(SLOWDOWN, 5))]
GATEWAYS = 3
# How long each fault lasts: longer than it takes to open the breaker.
LASTS = 4.0
FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")


class Stage:
    """Three gateways on an engine, and an origin."""

    def __init__(self, make_fleet: Callable[..., Fleet], origin: Callable, engine: Engine):
        self.engine = engine
        self.objects = Objects()
        self.origin = origin(self.objects.answer)
        self.fleet = make_fleet(0)

    def add(self, **shared) -> Gateway:
        return self.fleet.add(CONFIGURATION, **{"grace": "2s", "timeout": "100ms"} | shared)

    @contextlib.contextmanager
    def load(self, fault: str, note: str = "", longest: float = 4) -> Iterator[FleetStorm]:
        """The storm around a fault; afterwards hits cross again, and nothing has gone wrong."""
        while len(self.fleet) < GATEWAYS:
            self.add()
        with storm(self.fleet, self.origin, self.objects) as made:
            yield made
            seconds = made.until_hits(40)
            made.until_confirmed(40)
            made.end()
        record(fault, made, seconds, note)
        assert not made.problems(), "\n".join(made.problems()[:20])
        assert made.tally.hits > 100 and made.tally.purges > 2, vars(made.tally)
        # Nobody waits for an engine that is away: a purge does for a second, a request for a lease.
        assert made.tally.slowest < 4 * SLOWDOWN and made.tally.slowest_large < longest * SLOWDOWN, vars(made.tally)


@pytest.fixture
def stage(fleet, origin, engine) -> Stage:
    return Stage(fleet, origin, engine)


def test_the_engine_is_killed_and_starts_again_empty(stage):
    with stage.load("killed, and started again without anything") as load:
        stage.engine.process.kill()
        stage.engine.process.wait()
        for one in stage.fleet:
            wait_shared(one, up=False)
        before = load.tally.requests
        # Requests go on without it.
        until(lambda: load.tally.requests > before + 100, "requests go on", 20)
        stage.engine.start()


def test_the_engine_comes_back_with_an_older_state(stage):
    with stage.load("started again with an older state (RDB)") as load:
        stage.engine.command("SAVE")
        assert (stage.engine.folder / "dump.rdb").stat().st_size > 10_000
        old = load.tally.purges
        until(lambda: load.tally.purges >= old + 5, "purges that the older state knows nothing of", 20)
        stage.engine.process.kill()
        stage.engine.process.wait()
        stage.engine.start()
        assert stage.engine.command("DBSIZE") > 5


def test_the_engine_is_stopped_for_ten_seconds(stage):
    with stage.load("stopped for 10 s (SIGSTOP)") as load:
        stage.engine.pause()
        try:
            before = load.tally.requests
            # While it is stopped a connection to it stays, or is made and not answered.
            until(lambda: not any(is_up(one) for one in stage.fleet), "all have given it up", 9)
            until(lambda: load.tally.requests > before + 100, "requests go on", 9)
            time.sleep(10)
        finally:
            stage.engine.resume()


def test_the_engine_is_slow(stage):
    link = SlowLink(stage.engine)
    try:
        for _ in range(GATEWAYS):
            stage.add(url=link.url, timeout="20ms")
        # Of a large body each part of 64 KiB takes 0.4 s, there and back, while the link is slow.
        with stage.load("slow by 200 ms", "lookups end after 20 ms", longest=LASTS + 10):
            link.delay = 0.2
            time.sleep(LASTS)
            link.delay = 0
    finally:
        link.close()


@pytest.mark.parametrize("policy", ["noeviction", "allkeys-lru"])
def test_the_engine_has_no_memory_left(stage, policy):
    with stage.load(f"out of memory, {policy}") as load:
        used = int(next(line.split(b":")[1] for line in stage.engine.command("INFO", "memory").splitlines()
                        if line.startswith(b"used_memory:")))
        stage.engine.command("CONFIG", "SET", "maxmemory-policy", policy)
        stage.engine.command("CONFIG", "SET", "maxmemory", used - 200_000)
        before = load.tally.requests
        until(lambda: load.tally.requests > before + 100, "requests go on", 20)
        time.sleep(LASTS)
        figures = stage.engine.command("INFO", "stats").decode()
        if policy == "allkeys-lru":
            assert "evicted_keys:0\r" not in figures, figures
        else:
            assert "errorstat_OOM" in stage.engine.command("INFO", "errorstats").decode()
        stage.engine.command("CONFIG", "SET", "maxmemory", 0)


def test_the_engine_has_become_a_read_only_replica(stage):
    with stage.load("a read-only replica without its master") as load:
        stage.engine.command("REPLICAOF", "127.0.0.1", free_port())
        with pytest.raises(EngineError, match="READONLY"):
            stage.engine.command("SET", "x", "y")
        before = load.tally.requests
        until(lambda: load.tally.requests > before + 100, "requests go on", 20)
        time.sleep(LASTS)
        stage.engine.command("REPLICAOF", "NO", "ONE")


def test_the_engine_wants_another_password(stage):
    with stage.load("another password") as load:
        stage.engine.command("CONFIG", "SET", "requirepass", "other")
        stage.engine.command("CLIENT", "KILL", "TYPE", "normal", credentials=("other",))
        for one in stage.fleet:
            wait_shared(one, up=False)
        before = load.tally.requests
        until(lambda: load.tally.requests > before + 100, "requests go on", 20)
        time.sleep(LASTS / 2)
        stage.engine.command("CONFIG", "SET", "requirepass", "", credentials=("other",))


def errors(fleet: Fleet) -> float:
    return sum(value for one in fleet for sample, value in one.metrics().items()
               if sample.startswith("pinfold_cache_shared_errors_total"))


def test_values_are_damaged_at_random(stage):
    damage = Damage(stage.engine, "pinfold:1:[vcn]:*", 1)
    with stage.load("values damaged at random"):
        before = errors(stage.fleet)
        steadily(damage.values, 2 * LASTS, 0.005)
        assert damage.done > 50
        until(lambda: errors(stage.fleet) > before, "damage was noticed, and counted")


def test_chunks_are_written_by_half(stage):
    damage = Damage(stage.engine, "pinfold:1:c:*", 2)
    with stage.load("chunks cut, changed and missing"):
        before = errors(stage.fleet)
        steadily(damage.values, 2 * LASTS, 0.002)
        assert damage.done > 50
        until(lambda: errors(stage.fleet) > before, "damage was noticed, and counted")


def test_another_program_uses_the_same_names(stage):
    damage = Damage(stage.engine, "pinfold:1:[vcngl]:*", 3)
    with stage.load("another program's keys, under the fleet's names"):
        for number in range(2000):
            if number % 200 == 0:
                stage.engine.command("HSET", f"pinfold:{number}", "a", "b")
            stage.engine.command("SET", f"other:{number}", "x" * 100)
        steadily(damage.other_types, 2 * LASTS, 0.01)
        assert damage.done > 50
    # What is not the fleet's is left alone.
    assert stage.engine.command("GET", "other:1999") == b"x" * 100
    assert stage.engine.command("HGET", "pinfold:200", "a") == b"b"


def test_the_stream_of_purges_is_removed(stage):
    with stage.load("the stream of purges removed, and other things in its place"):
        choice = random.Random(4)

        def remove() -> None:
            for key in stage.engine.keys("pinfold:1:p:*"):
                with contextlib.suppress(EngineError):
                    kind = choice.randrange(3)
                    if kind == 0:
                        stage.engine.command("DEL", key)
                    elif kind == 1:
                        stage.engine.command("XADD", key, "*", "e", choice.randbytes(100))
                    else:
                        stage.engine.command("HSET", key, choice.randbytes(10), choice.randbytes(60))

        steadily(remove, LASTS, 0.5)


@pytest.mark.skipif(not FAKETIME.exists(), reason="the package faketime is not installed")
def test_the_clocks_are_an_hour_apart(stage):
    for skew in "+0", "+3600", "-3600":
        made = stage.fleet.add(CONFIGURATION, start=False, grace="2s", timeout="100ms")
        made.environment = Gateway.environment | {
            "LD_PRELOAD": str(FAKETIME), "FAKETIME": skew, "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1"}
        # The library changes the environment when a process loads it first, and Swift finds its
        # arguments beside the environment.
        made.launcher = ["sh", "-c", 'exec "$0" "$@"']
        made.start()
        wait_shared(made)
    hours = {re.search(r"\d{4}-\d\d-\d\d[T ]\d\d", one.log())[0] for one in stage.fleet}
    assert len(hours) == 3, hours
    with stage.load("clocks an hour apart, either way"):
        time.sleep(LASTS)


def test_a_gateway_is_cut_off(stage):
    links = [Link(stage.engine) for _ in range(GATEWAYS)]
    try:
        for link in links:
            stage.add(url=link.url)
        with stage.load("one gateway cut off from the engine", "2 s of grace") as load:
            links[2].cut()
            cut = time.monotonic()
            wait_shared(stage.fleet[2], up=False)
            answer = load.purge(0, "everything", soft=False)
            assert answer is not None and answer["recorded"] and "gateway-2" not in answer["confirmed"]
            # It is told of no purge, and so confirms all that it has once the grace is over.
            time.sleep(max(0.0, cut + 2 + 1 * SLOWDOWN - time.monotonic()))
            load.overdue(2, cut + 2)
            time.sleep(LASTS / 2)
            links[2].mend()
    finally:
        for link in links:
            link.close()


def test_the_engine_is_killed_again_and_again(stage):
    with stage.load("killed and started again, eight times"):
        for number in range(8):
            stage.engine.process.kill()
            stage.engine.process.wait()
            time.sleep(0.1 * number)
            stage.engine.start()
            time.sleep(0.3)


def test_a_gateway_is_killed_and_started_again(stage):
    """Not a fault of the engine's: others do not wait for one that is gone, and it comes back."""
    with stage.load("a gateway killed, and a fourth added") as load:
        fourth = stage.add()
        until(lambda: (answer := load.purge(0, "url", soft=False)) and "gateway-3" in answer["confirmed"],
              "the fourth confirms, too", 20)
        fourth.kill()
        until(lambda: (answer := load.purge(0, "url", soft=False))
              and "gateway-3" not in answer["confirmed"] + answer["unconfirmed"],
              "one that is gone is not waited for", 40)
        stage.fleet.all.remove(fourth)
