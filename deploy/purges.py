"""Proves that nothing comes back that was purged.

A gateway with two workers, little memory and a small database serves a storm of requests: GET and
ranges, for objects of a few bytes to 300 KiB, some in slices, some that must be confirmed with every
use. Each byte of a response follows from its URL and its generation. At random moments objects get
another generation at the origin and are purged: by URL, by the beginning of URLs, by tag, by host, or
everything, hard or soft, with PURGE or by the API, while responses of the old generation are under
way, stored, confirmed and read. Whoever asks after the purge was answered must get the new one. In
between the gateway is ended and started again, or killed (SIGKILL) at once after a purge was
answered.

The status is 1 if anything old was served, if a response mixed generations, or if nothing was served
from the cache at all. The choices follow from the seed, the moments do not.
"""

from __future__ import annotations

import argparse
import os
import random
import secrets
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "Tests/Integration"))
# Where the support finds the gateway is decided when it is imported.
for argument, following in zip(sys.argv, [*sys.argv[1:], ""]):
    if argument == "--binary" or argument.startswith("--binary="):
        os.environ["PINFOLD_BINARY"] = argument.partition("=")[2] or following

from support.gateway import Gateway  # noqa: E402
from support.generations import Generations, Name, order, post  # noqa: E402
from support.origin import HTTPOrigin, Request  # noqa: E402
from support.wire import Closed, Response, Wire, request  # noqa: E402

# The beginning of a body of this group is in slices of 64 KiB.
SLICED = 3


class Objects(Generations):
    """What there is at the origin, and which generation of it may still be served."""

    sizes = [20, 3_000, 40_000, 300_000]
    groups = 4

    def __init__(self) -> None:
        super().__init__()
        # What who asks from now on must get at least.
        self.floor = dict.fromkeys(self.names, 0)
        self.delay = random.Random(1)

    @staticmethod
    def control(name: Name) -> str:
        return "max-age=600" if name[1] % 3 else "no-cache"

    def answer(self, seen: Request) -> bytes:
        made = super().answer(seen)
        # Some responses are under way for a while.
        if self.delay.random() < 0.2:
            time.sleep(self.delay.random() * 0.05)
        return made


class Storm:
    """Clients that ask all the time, and what they have seen."""

    def __init__(self, objects: Objects, origin: HTTPOrigin) -> None:
        self.objects, self.origin = objects, origin
        self.running: Gateway | None = None
        # What the gateway calls itself. Another one may get the port of one that has ended.
        self.name = f"purged-{os.getpid()}-{secrets.token_hex(4)}"
        self.ends = threading.Event()
        self.lock = threading.Lock()
        self.checked = self.hits = self.broken = self.foreign = 0
        self.wrong: list[str] = []

    def note(self, text: str) -> None:
        with self.lock:
            self.wrong.append(text)

    def work(self, seed: int) -> None:
        choice = random.Random(seed)
        wire: Wire | None = None
        while not self.ends.is_set():
            running = self.running
            if running is None:
                time.sleep(0.01)
                continue
            try:
                if wire is None:
                    wire = running.wire(timeout=20)
                self.ask(wire, choice)
            except (OSError, Closed, ValueError, AssertionError, KeyError):
                # The gateway was ended or killed, or its port is another one by now.
                with self.lock:
                    self.broken += 1
                if wire is not None:
                    wire.close()
                wire = None
        if wire is not None:
            wire.close()

    def ask(self, wire: Wire, choice: random.Random) -> None:
        name = choice.choice(self.objects.names)
        size = Objects.size(name)
        fields = {}
        first, last = 0, size - 1
        if choice.random() < 0.3:
            first = choice.randrange(size)
            last = choice.randrange(first, size)
            fields["Range"] = f"bytes={first}-{last}"
        with self.objects.lock:
            floor = self.objects.floor[name]
        response = wire.ask(request(self.origin.url("/%d/%d" % name), **fields))
        if not response.get("cache-status").startswith(self.name):
            with self.lock:
                self.foreign += 1
            raise ConnectionError(f"another gateway answered: {response.get('cache-status')}")
        if response.status not in (200, 206):
            return
        if response.status == 200:
            first, last = 0, size - 1
        generation = int(response.get("etag").strip('"'))
        if response.body != Objects.content(name, generation)[first:last + 1]:
            return self.note(f"{name}: {len(response.body)} bytes are not of generation {generation}")
        if generation < floor:
            self.note(f"{name}: generation {generation} after {floor}: "
                      f"{response.get('cache-status')}, {fields}")
        with self.lock:
            self.checked += 1
            self.hits += "hit" in response.cache_status


class Purger:
    """Gives objects another generation and purges them."""

    def __init__(self, objects: Objects, origin: HTTPOrigin, seed: int) -> None:
        self.objects, self.origin = objects, origin
        self.choice = random.Random(seed)
        self.kinds: dict[str, int] = {}

    def __call__(self, running: Gateway) -> None:
        kind = self.choice.choice(["url", "url", "prefix", "tag", "host", "everything"])
        soft = self.choice.random() < 0.3
        name = self.choice.choice(self.objects.names)
        floors = self.objects.renew(self.objects.concerned(kind, name))
        by_api = kind in ("host", "everything") or self.choice.random() < 0.5
        end = time.monotonic() + 20
        # Until the cache on disk is open, after a start, no purge is acknowledged.
        while (answer := self.send(running, kind, name, soft, by_api)).status == 500:
            assert time.monotonic() < end, answer.body
            time.sleep(0.05)
        assert answer.status == 200, (kind, answer.status, answer.body)
        with self.objects.lock:
            for one, floor in floors.items():
                self.objects.floor[one] = max(self.objects.floor[one], floor)
        label = f"{'soft ' if soft else ''}{kind}"
        self.kinds[label] = self.kinds.get(label, 0) + 1

    def send(self, running: Gateway, kind: str, name: Name, soft: bool, by_api: bool) -> Response:
        if by_api:
            return post(running, order(self.origin, kind, name, soft))
        group, number = name
        url = self.origin.url("/%d/%d" % name)
        target = {"url": url, "prefix": self.origin.url(f"/{group}/*"), "tag": url}[kind]
        fields = {"Surrogate_Key": f"n{number}"} if kind == "tag" else {}
        if soft:
            fields["Soft_Purge"] = "1"
        return running.ask(request(target, method="PURGE", **fields))


def run(folder: Path, runs: int, seed: int, quick: bool) -> int:
    objects = Objects()
    origin = HTTPOrigin(objects.answer)
    storm, purger, choice = Storm(objects, origin), Purger(objects, origin, seed), random.Random(seed)
    running = Gateway(folder, {
        "workers": 2,
        "via": storm.name,
        "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"}],
        "admin": {"address": "127.0.0.1:0"},
        "access": {"destinations": {"allow": ["127.0.0.0/8"]}},
        "hosts": [{"match": ["127.0.0.1"], "paths": [
            {"match": [f"/{SLICED}/**"], "cache": {"slice": "64KiB"}}]}],
        "cache": {"memory": "2MiB", "disk": "16MiB", "path": "cache",
                  "purge": {"clients": ["127.0.0.0/8"]}},
        "log": {"level": "info"}}, [])
    threads = [threading.Thread(target=storm.work, args=(seed + number,), daemon=True)
               for number in range(4 if quick else 8)]
    kills = restarts = 0
    try:
        running.start()
        storm.running = running
        for thread in threads:
            thread.start()
        for number in range(runs):
            time.sleep(choice.random() * (0.05 if quick else 0.2))
            purger(running)
            if number % 10 == 4:
                storm.running = None
                running.kill()
                kills += 1
            elif number % 10 == 9:
                storm.running = None
                running.stop()
                restarts += 1
            if storm.running is None:
                running.start()
                storm.running = running
        time.sleep(0.2)
    finally:
        storm.ends.set()
        for thread in threads:
            if thread.is_alive():
                thread.join(30)
        running.stop()
        origin.close()
    shown = ", ".join(f"{count} {kind}" for kind, count in sorted(purger.kinds.items()))
    print(f"{runs} purges ({shown}), {kills} kills, {restarts} restarts: {storm.checked:,} requests "
          f"checked, {storm.hits:,} served from the cache, {len(storm.wrong)} wrong; "
          f"{storm.foreign} answers of other gateways left out", flush=True)
    for text in storm.wrong[:20]:
        print(text, file=sys.stderr)
    return 1 if storm.wrong or not storm.hits else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="how many purges (1000)")
    parser.add_argument("--quick", action="store_true", help="30 purges; part of the tests")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--binary", help="the gateway")
    parser.add_argument("--folder", type=Path, help="where to keep what it leaves")
    arguments = parser.parse_args()
    runs = 30 if arguments.quick else arguments.runs
    print(f"seed {arguments.seed}", flush=True)
    if arguments.folder:
        return run(arguments.folder, runs, arguments.seed, arguments.quick)
    with tempfile.TemporaryDirectory(prefix="pinfold-purges-") as folder:
        return run(Path(folder), runs, arguments.seed, arguments.quick)


if __name__ == "__main__":
    sys.exit(main())
