"""Three gateways on one engine under load and purges, and one fault after another.

The faults are those of Tests/Integration/test_shared_faults.py, in random order, each for some seconds: the
engine killed and started again, stopped, slow, out of memory, read-only, with another password; values
damaged; a gateway cut off. Between two faults hits cross again, and all gateways confirm a purge.

The status is 1 if a request failed, if a body was wrong, if something was served that had been purged, if
hits do not come back, or if memory, descriptors or threads of a gateway grow.
"""

from __future__ import annotations

import contextlib
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "Tests/Integration"))

from support.damage import Damage  # noqa: E402
from support.fleet import Engine, EngineError, Fleet  # noqa: E402
from support.fleetstorm import CONFIGURATION, FleetStorm, Objects, SlowLink, steadily  # noqa: E402
from support.gateway import Gateway, free_port, merged, raise_descriptor_limit  # noqa: E402
from support.origin import HTTPOrigin  # noqa: E402

GATEWAYS = 3
BASE = {
    "workers": 2,
    "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"}],
    "admin": {"address": "127.0.0.1:0"},
    "access": {"destinations": {"allow": ["127.0.0.0/8"]}},
    "log": {"level": "info"},
}


class Starter:
    """Makes gateways in folders of their own."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.all: list[Gateway] = []

    def __call__(self, config: dict, start: bool = True) -> Gateway:
        folder = self.folder / f"gateway-{len(self.all)}"
        folder.mkdir()
        made = Gateway(folder, merged(BASE, config), [])
        self.all.append(made)
        return made.start() if start else made


class Faults:
    """What can happen to the fleet."""

    def __init__(self, engine: Engine, links: list[SlowLink], choice: random.Random):
        self.engine, self.links, self.choice = engine, links, choice
        self.kinds: list[Callable[[], Any]] = [
            self.killed, self.stopped, self.slow, self.full, self.evicting, self.read_only, self.password,
            self.damaged, self.cut_off]

    def _pass(self, least: float = 1, most: float = 6) -> None:
        time.sleep(self.choice.uniform(least, most))

    def killed(self) -> None:
        assert self.engine.process is not None
        self.engine.process.kill()
        self.engine.process.wait()
        self._pass()
        self.engine.start()

    def stopped(self) -> None:
        self.engine.pause()
        self._pass(1, 10)
        self.engine.resume()

    def slow(self) -> None:
        for link in self.links:
            link.delay = self.choice.choice([0.01, 0.05, 0.2])
        self._pass()
        for link in self.links:
            link.delay = 0

    def _limit(self, policy: str) -> None:
        self.engine.command("CONFIG", "SET", "maxmemory-policy", policy)
        self.engine.command("CONFIG", "SET", "maxmemory", 2 << 20)
        self._pass()
        self.engine.command("CONFIG", "SET", "maxmemory", 0)

    def full(self) -> None:
        self._limit("noeviction")

    def evicting(self) -> None:
        self._limit("allkeys-lru")

    def read_only(self) -> None:
        self.engine.command("REPLICAOF", "127.0.0.1", free_port())
        self._pass()
        self.engine.command("REPLICAOF", "NO", "ONE")

    def password(self) -> None:
        self.engine.command("CONFIG", "SET", "requirepass", "other")
        self.engine.command("CLIENT", "KILL", "TYPE", "normal", credentials=("other",))
        self._pass()
        self.engine.command("CONFIG", "SET", "requirepass", "", credentials=("other",))

    def damaged(self) -> None:
        damage = Damage(self.engine, "pinfold:1:[vcngl]:*", self.choice.randrange(1 << 30))
        action = self.choice.choice([damage.values, damage.other_types])
        with contextlib.suppress(EngineError):
            steadily(action, self.choice.uniform(1, 6), 0.01)

    def cut_off(self) -> None:
        link = self.choice.choice(self.links)
        link.cut()
        self._pass(1, 15)
        link.mend()


def usage(running: Gateway) -> tuple[float, int, int]:
    return running.rss_bytes / (1 << 20), running.descriptors, running.status("Threads")


def soak(folder: Path, minutes: float, seed: int) -> int:
    raise_descriptor_limit()
    choice = random.Random(seed)
    engine = Engine(folder / "engine")
    links = [SlowLink(engine) for _ in range(GATEWAYS)]
    starter, objects = Starter(folder), Objects()
    origin = HTTPOrigin(objects.answer)
    problems: list[str] = []
    counts: dict[str, int] = {}
    back: list[float] = []
    samples: list[list[tuple[float, int, int]]] = [[] for _ in links]
    try:
        fleet = Fleet(starter, folder, engine)
        for link in links:
            fleet.add(CONFIGURATION, url=link.url, grace="2s", timeout="100ms")
        load = FleetStorm(fleet, origin, objects, seed=seed)
        faults = Faults(engine, links, choice)
        begun = time.monotonic()
        try:
            load.until_hits(40)
            while time.monotonic() - begun < 60 * minutes:
                fault = choice.choice(faults.kinds)
                counts[fault.__name__] = counts.get(fault.__name__, 0) + 1
                fault()
                back.append(load.until_hits(60))
                load.until_confirmed(60)
                for one, list_ in zip(fleet, samples, strict=True):
                    list_.append(usage(one))
                # What an origin keeps of each request is for tests that look at it.
                origin.requests.clear()
            load.end()
        except AssertionError as problem:
            problems.append(str(problem))
        load.ends.set()
        seconds = time.monotonic() - begun
        tally = load.tally
        problems += load.problems()
        shown = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
        print(f"{seconds / 60:.1f} minutes: {tally.requests:,} requests ({tally.requests / seconds:.0f}/s), "
              f"{tally.hits:,} hits, {len(tally.failed)} failed, {len(tally.wrong)} wrong bodies; slowest answer "
              f"{1000 * tally.slowest:.0f} ms")
        print(f"{tally.purges:,} purges, of which {tally.unconfirmed} were not confirmed by all; "
              f"{len(tally.old)} purged things served; slowest reply {1000 * tally.slowest_purge:.0f} ms")
        if back:
            print(f"{len(back)} faults ({shown}); hits were back after {statistics.median(back):.1f} s, at most "
                  f"{max(back):.1f} s")
        for number, list_ in enumerate(samples):
            third = max(1, len(list_) // 3)
            if len(list_) < 3:
                continue
            first = statistics.median(one[0] for one in list_[:third])
            last = statistics.median(one[0] for one in list_[-third:])
            most = (max(one[1] for one in list_), max(one[2] for one in list_))
            print(f"gateway-{number}: memory {first:.1f} MiB in the first third, {last:.1f} MiB in the last; at most "
                  f"{most[0]} descriptors and {most[1]} threads")
            if last > first * 1.25 + 16:
                problems.append(f"memory of gateway-{number} grows")
            if list_[-1][1] > list_[0][1] + 32 or list_[-1][2] > list_[0][2] + 2:
                problems.append(f"gateway-{number} has descriptors or threads left over: {list_[0]}, {list_[-1]}")
    finally:
        for one in starter.all:
            try:
                one.finish()
            except AssertionError as problem:
                problems.append(str(problem))
        for link in links:
            link.close()
        engine.stop()
        origin.close()
    for problem in problems[:40]:
        print(f"wrong: {problem}")
    return 1 if problems else 0
