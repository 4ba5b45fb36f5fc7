"""A fleet under load: clients at every gateway, purges by any of them, and what must not happen.

Each byte of a response follows from its URL and its generation. A purge is preceded by a new generation at the
origin; whoever asks one of the gateways that its reply calls `confirmed` from then on must get that
generation. A request that is not answered with 200 has failed, whatever the engine does meanwhile.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from .fleet import Fleet, Link
from .gateway import Gateway
from .generations import Generations, Name, order, post
from .origin import HTTPOrigin, Request, reply
from .wait import SLOWDOWN, until
from .wire import Closed, Response, Wire, request

LARGE = 1_500_000
# What gateways keep themselves is little, so that most requests go to the engine.
CONFIGURATION = {
    "cache": {"memory": "1MiB", "disk": "0"},
    "log": {"access": "none"},
}


class Objects(Generations):
    """What there is at the origin, and which generation each gateway may still serve."""

    def __init__(self) -> None:
        super().__init__()
        self.floors: defaultdict[int, dict[Name, int]] = defaultdict(lambda: dict.fromkeys(self.names, 0))
        self.asked: Counter[str] = Counter()

    @classmethod
    def size(cls, name: Name) -> int:
        # A body of up to 64 KiB is stored with its head, others in chunks, those above 1 MiB stay in the engine.
        return LARGE if name == (0, 7) else super().size(name)

    def answer(self, seen: Request) -> bytes:
        if not seen.target.startswith("/probe/"):
            return super().answer(seen)
        with self.lock:
            self.asked[seen.target] += 1
        return reply(seen.target.encode() * 50, "200 OK", "Cache-Control: max-age=600")

    def enforce(self, gateway: int, floors: dict[Name, int]) -> None:
        with self.lock:
            for one, floor in floors.items():
                self.floors[gateway][one] = max(self.floors[gateway][one], floor)


class CutOff(Closed):
    """A response broke off because the rest was there no longer, neither in the engine nor, as it had been
    changed, at the origin."""


class Tally:
    """What clients and purges have seen."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.requests = 0
        self.hits = 0
        self.cut = 0
        self.slowest_of = ""
        self.failed: list[str] = []
        self.wrong: list[str] = []
        self.old: list[str] = []
        self.purges = 0
        self.unrecorded = 0
        self.unconfirmed = 0
        self.slowest = 0.0
        # Of a body that is read from the engine part by part.
        self.slowest_large = 0.0
        self.slowest_purge = 0.0


class FleetStorm:
    """Clients at every gateway of a fleet, and purges, until `end`."""

    def __init__(
        self, fleet: Fleet, origin: HTTPOrigin, objects: Objects, clients: int = 2, purges: bool = True,
        pause: float = 0.004, seed: int = 1,
    ):
        # Others may come and go meanwhile.
        self.gateways = list(fleet)
        self.origin, self.objects, self.pause = origin, objects, pause
        self.tally = Tally()
        self.ends = threading.Event()
        self.choice = random.Random(seed)
        self.numbers = itertools.count()
        # Purges that some gateways have not confirmed: when, which gateways, and what of.
        self.pending: list[tuple[float, list[int], dict[Name, int]]] = []
        # Of each gateway, one for each of its clients and one for purges: held while it is asked.
        self.turns = [[threading.Lock() for _ in range(clients + 1)] for _ in self.gateways]
        # How often each has been started again.
        self.lives = [0] * len(self.gateways)
        work = [lambda gateway=gateway, seed=seed: self._ask(gateway, seed)
                for gateway in range(len(self.gateways)) for seed in range(clients)]
        if purges:
            work.append(self._purge)
        self.threads = [threading.Thread(target=one, daemon=True) for one in work]
        for thread in self.threads:
            thread.start()

    # Clients

    def _ask(self, gateway: int, seed: int) -> None:
        choice = random.Random(1000 * gateway + seed)
        wire: Wire | None = None
        life = 0
        while not self.ends.is_set():
            name = choice.choice(self.objects.names)
            try:
                with self.turns[gateway][seed]:
                    if wire is not None and life != self.lives[gateway]:
                        wire.close()
                        wire = None
                    life = self.lives[gateway]
                    wire = wire or self.gateways[gateway].wire(timeout=20 * SLOWDOWN)
                    self.ask(gateway, name, wire)
            except (OSError, Closed, ValueError, AssertionError) as problem:
                if self.ends.is_set():
                    break
                if not isinstance(problem, CutOff):
                    with self.tally.lock:
                        self.tally.failed.append(f"{name} at {gateway}: {problem!r}")
                if wire is not None:
                    wire.close()
                wire = None
            # The pace of the load.
            time.sleep(self.pause * (0.5 + choice.random()))
        if wire is not None:
            wire.close()

    @contextlib.contextmanager
    def unasked(self, gateway: int) -> Iterator[Gateway]:
        """Nobody asks a gateway for anything meanwhile, and nobody has a connection to it afterwards."""
        with contextlib.ExitStack() as held:
            for turn in self.turns[gateway]:
                held.enter_context(turn)
            self.lives[gateway] += 1
            yield self.gateways[gateway]

    def ask(self, gateway: int, name: Name, wire: Wire) -> Response:
        """One request, whose answer is judged."""
        with self.objects.lock:
            floor = self.objects.floors[gateway][name]
        begun = time.monotonic()
        wire.send(request(self.origin.url("/%d/%d" % name)))
        response = wire.read_head()
        generation = int(response.get("etag").strip('"') or -1)
        try:
            wire.read_body(response)
        except Closed:
            with self.objects.lock:
                has_changed = generation != self.objects.generation[name]
            if has_changed and Objects.size(name) == LARGE:
                self.tally.cut += 1
                raise CutOff from None
            raise
        took = time.monotonic() - begun
        text = f"{name} at {gateway}: "
        with self.tally.lock:
            self.tally.requests += 1
            if Objects.size(name) == LARGE:
                self.tally.slowest_large = max(self.tally.slowest_large, took)
            elif took > self.tally.slowest:
                self.tally.slowest = took
                self.tally.slowest_of = text + response.get("cache-status")
            if response.status != 200:
                self.tally.failed.append(text + f"{response.status} {response.get('proxy-status')}")
                return response
            status = response.get("cache-status")
            self.tally.hits += "; hit" in status
            if response.body != Objects.content(name, generation):
                self.tally.wrong.append(text + f"{len(response.body)} bytes are not of {generation}: {status}")
            if generation < floor:
                self.tally.old.append(text + f"{generation} after {floor}: {status}")
        return response

    # Purges

    def _purge(self) -> None:
        while not self.ends.wait(0.1 + 0.4 * self.choice.random()):
            self.purge(self.choice.randrange(len(self.gateways)))

    def purge(self, gateway: int, kind: str = "", soft: bool | None = None) -> dict | None:
        """Gives objects another generation and purges them at a gateway; returns what its reply says of the
        fleet."""
        kind = kind or self.choice.choice(["url", "url", "prefix", "tag", "tag", "host", "everything"])
        soft = self.choice.random() < 0.3 if soft is None else soft
        name = self.choice.choice(self.objects.names)
        floors = self.objects.renew(self.objects.concerned(kind, name))
        wanted = order(self.origin, kind, name, soft)
        begun = time.monotonic()
        try:
            with self.turns[gateway][-1]:
                answer = purge(self.gateways[gateway], wanted)
        except (OSError, Closed, ValueError, AssertionError) as problem:
            with self.tally.lock:
                self.tally.failed.append(f"a purge at {gateway}: {problem!r}")
            return None
        took = time.monotonic() - begun
        # `Fleet` names them by number.
        confirmed = {int(one.rpartition("-")[2]) for one in answer["confirmed"]} | {gateway}
        others = [one for one in range(len(self.gateways)) if one not in confirmed]
        for one in confirmed:
            self.objects.enforce(one, floors)
        with self.tally.lock:
            self.tally.purges += 1
            self.tally.unrecorded += not answer["recorded"]
            self.tally.unconfirmed += bool(others)
            self.tally.slowest_purge = max(self.tally.slowest_purge, took)
            if others:
                self.pending.append((begun, others, floors))
        return answer

    def overdue(self, gateway: int, before: float) -> None:
        """From now on the gateway may not serve what was purged before that time, confirmed or not."""
        with self.tally.lock:
            floors = [what for when, which, what in self.pending if when < before and gateway in which]
        for one in floors:
            self.objects.enforce(gateway, one)

    # Hits across

    def crosses(self, first: int, second: int) -> bool:
        """Whether a response that one gateway has stored is a hit at another, which has not asked before."""
        path = f"/probe/{next(self.numbers)}"
        url = self.origin.url(path)
        for gateway in first, second:
            response = self.gateways[gateway].get(url)
            if response.status != 200 or response.body != path.encode() * 50:
                with self.tally.lock:
                    self.tally.failed.append(f"{path} at {gateway}: {response.status}")
                return False
            # It is stored when the response has been sent.
            time.sleep(0.05)
        return self.objects.asked[path] == 1

    def until_hits(self, timeout: float = 20) -> float:
        """Seconds until hits cross from each gateway to the next."""
        begun = time.monotonic()
        for first in range(len(self.gateways)):
            second = (first + 1) % len(self.gateways)
            until(lambda: self.crosses(first, second),
                  lambda: f"hits from {first} to {second}:\n{self.gateways[second].log()[-3000:]}", timeout)
        return time.monotonic() - begun

    def until_confirmed(self, timeout: float = 20) -> None:
        """Until all gateways confirm a purge, and so have carried out all that came before it."""

        def confirmed() -> bool:
            answer = self.purge(0, "url", soft=False)
            return answer is not None and answer["recorded"] and all(
                f"gateway-{one}" in answer["confirmed"] for one in range(len(self.gateways)))

        until(confirmed, lambda: f"all confirm a purge:\n{self.gateways[0].log()[-3000:]}", timeout)
        now = time.monotonic()
        for gateway in range(len(self.gateways)):
            self.overdue(gateway, now)

    def end(self) -> None:
        """Ends the load, and asks every gateway for every object once more."""
        self.ends.set()
        for thread in self.threads:
            thread.join(60 * SLOWDOWN)
            assert not thread.is_alive(), "a client has ended"
        for gateway in range(len(self.gateways)):
            with self.gateways[gateway].wire() as wire:
                for name in self.objects.names:
                    self.ask(gateway, name, wire)

    def problems(self) -> list[str]:
        tally = self.tally
        return [f"{kind}: {text}" for kind, texts in (
            ("failed", tally.failed), ("wrong body", tally.wrong), ("purged, and served", tally.old))
            for text in texts]


def purge(running: Gateway, wanted: dict) -> dict:
    """Purges by the API; returns what the reply says of the fleet."""
    answer = post(running, wanted)
    assert answer.status == 200, (answer.status, answer.body)
    return answer.json()["fleet"]


class SlowLink(Link):
    """A link on which what either end sends arrives later by `delay` seconds, in its order."""

    delay = 0.0

    def _pass(self, source, target) -> None:  # type: ignore[override]
        waiting: list[tuple[float, bytes]] = []
        arrived = threading.Condition()

        def deliver() -> None:
            while True:
                with arrived:
                    arrived.wait_for(lambda: bool(waiting))
                    due, data = waiting.pop(0)
                time.sleep(max(0.0, due - time.monotonic()))
                with contextlib.suppress(OSError):
                    if not data:
                        return target.shutdown(1)
                    target.sendall(data)

        threading.Thread(target=deliver, daemon=True).start()
        data = b"-"
        while data:
            data = b""
            with contextlib.suppress(OSError):
                data = source.recv(1 << 16)
            with arrived:
                waiting.append((time.monotonic() + self.delay, data))
                arrived.notify()


@contextlib.contextmanager
def storm(fleet: Fleet, origin: HTTPOrigin, objects: Objects, **options) -> Iterator[FleetStorm]:
    """A storm that has got going: hits cross, and purges are confirmed by all."""
    made = FleetStorm(fleet, origin, objects, **options)
    try:
        made.until_hits(40)
        made.until_confirmed(40)
        yield made
    finally:
        made.ends.set()


def record(fault: str, made: FleetStorm, seconds: float, note: str = "") -> None:
    """A row of the table: printed, and added to the file PINFOLD_FAULTS."""
    tally = made.tally
    cells = [
        fault, f"{tally.requests:,}", str(len(tally.failed)), str(tally.cut), str(len(tally.wrong)),
        f"{tally.purges} ({tally.unconfirmed})", str(len(tally.old)), f"{1000 * tally.slowest:.0f} ms",
        f"{1000 * tally.slowest_large:.0f} ms",
        f"{seconds:.1f} s", note]
    row = "| " + " | ".join(cells) + " |"
    print(row, f"slowest: {tally.slowest_of}", flush=True)
    if path := os.environ.get("PINFOLD_FAULTS"):
        with Path(path).open("a") as file:
            file.write(row + "\n")


HEADING = (
    "| Fault | Requests | Failed | Cut off | Wrong bodies | Purges (not confirmed by all) | Purged, and served | "
    "Slowest answer | of 1.5 MB | Hits are back after | |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|")


def steadily(action: Callable[[], object], seconds: float, pause: float = 0.05) -> int:
    """Does something over and over; returns how often."""
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        action()
        count += 1
        time.sleep(pause)
    return count
