"""Two versions of the program on one engine, as while a fleet is upgraded, under load and purges.

Three gateways: two of the old program and one of the new; then each is stopped and started again as the new
one, one after the other, and back to the old one. In between, at each step: hits cross from every gateway to
the next; purges of every kind by every gateway are confirmed by all; what an unsafe request through any of them
removes is gone in all; a policy that one publishes is taken by all. Each prints a row of a table.

The status is 1 if a request failed, if a body was wrong, if something was served that had been purged or
removed, if a receipt does not name all, if a policy is not taken by all, if there are no hits on what the other
program has stored, or if a gateway calls something in the engine damaged or foreign.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "Tests/Integration"))

from fleet_soak import Starter  # noqa: E402
from support.fleet import Engine, Fleet, get, is_shared_hit, wait_shared  # noqa: E402
from support.fleetstorm import CONFIGURATION, FleetStorm, Objects  # noqa: E402
from support.gateway import Gateway, merged, raise_descriptor_limit  # noqa: E402
from support.generations import Name  # noqa: E402
from support.origin import HTTPOrigin, Request, reply  # noqa: E402
from support.policies import Signer, policy, start_unready  # noqa: E402
from support.wait import SLOWDOWN, until  # noqa: E402
from support.wire import Response, Wire  # noqa: E402

# At each step, which program each gateway runs. One of them changes from one to the next.
STEPS = [
    ("old", "old", "new"), ("old", "new", "new"), ("new", "new", "new"), ("new", "new", "old"),
    ("new", "old", "old"), ("old", "old", "old")]
KINDS = ["url", "prefix", "tag", "host", "everything"]
# A purge has a second to be confirmed, and this machine is busy with three gateways and their clients.
TRIES = 5
# What a gateway makes of what another one has written, if it does not understand it.
REASONS = ["damaged", "foreign", "other_secret", "other_version", "protocol_error", "refused"]
HEADING = (
    "| gateways | requests | failed | wrong bodies | new on what old has stored | old on what new has stored | "
    "purges (not confirmed by all) | removals: slowest | purged or removed, and served | policies taken | "
    "not understood |\n|---|" + "---:|" * 10)


class Wrong(Exception):
    """What is not as it is to be."""


class Marked(Objects):
    """Responses say which gateway has fetched them."""

    def further(self, seen: Request) -> list[str]:
        return [f"Fetched-By: {seen.get('via').split()[1]}"]

    def answer(self, seen: Request) -> bytes:
        if seen.method == "GET":
            return super().answer(seen)
        return reply(b"", "204 No Content", "Cache-Control: no-store", length=False)


class SkewStorm(FleetStorm):
    """Counts on whose responses there are hits in the engine."""

    def __init__(self, *arguments, **options):
        self.crossed: Counter[tuple[str, str]] = Counter()
        super().__init__(*arguments, **options)

    def ask(self, gateway: int, name: Name, wire: Wire) -> Response:
        response = super().ask(gateway, name, wire)
        if response.status == 200 and is_shared_hit(response):
            # They call themselves by the program and their number.
            served = response.get("cache-status").partition(";")[0].partition("-")[0]
            with self.tally.lock:
                self.crossed[served, response.get("fetched-by").partition("-")[0]] += 1
        return response

    def remove(self, gateway: int) -> float:
        """An unsafe request through a gateway changes something; returns in how many seconds all know."""
        name = self.choice.choice(self.objects.names)
        url = self.origin.url("/%d/%d" % name)
        floors = self.objects.renew([name])
        with self.turns[gateway][-1]:
            answer = get(self.gateways[gateway], url, method="DELETE")
        if answer.status != 204:
            raise Wrong(f"DELETE at {gateway}: {answer.status}")
        begun = time.monotonic()
        self.objects.enforce(gateway, floors)
        for one in range(len(self.gateways)):
            until(lambda: int(get(self.gateways[one], url).get("etag").strip('"')) >= floors[name],
                  f"what gateway {gateway} has removed is gone in {one}", 5)
            self.objects.enforce(one, floors)
        return time.monotonic() - begun


class Skew:
    """The fleet, and what is asked of it at each step."""

    def __init__(self, folder: Path, programs: dict[str, Path]):
        self.folder, self.programs = folder, programs
        self.engine = Engine(folder / "engine")
        self.starter = Starter(folder)
        self.objects = Marked()
        self.origin = HTTPOrigin(self.objects.answer)
        self.fleet = Fleet(self.starter, folder, self.engine)
        self.signer = Signer()
        self.serial = 0
        self.storm: SkewStorm | None = None

    def configured(self, running: Gateway, number: int, program: str) -> None:
        running.binary = self.programs[program]
        running.config = merged(running.config, {"via": f"{program}-{number}"})

    def start(self) -> None:
        for number, program in enumerate(STEPS[0]):
            running = self.fleet.add(merged(CONFIGURATION, {
                "policy": {"engine": True, "publicKeys": [self.signer.public], "interval": "1s"}}),
                start=False, grace="10s")
            self.configured(running, number, program)
            # It is ready when it has a policy.
            start_unready(running)
            wait_shared(running)
        self.publish(0)
        self.storm = SkewStorm(self.fleet, self.origin, self.objects)

    def change(self, before: tuple[str, ...], after: tuple[str, ...]) -> None:
        """Starts those again that run another program at the next step."""
        assert self.storm is not None
        for number, program in enumerate(after):
            if program != before[number]:
                with self.storm.unasked(number) as running:
                    running.stop(patience=20)
                    self.configured(running, number, program)
                    running.start()
                    wait_shared(running)

    def cli(self, number: int, *arguments: str) -> str:
        """The command of the gateway's own program."""
        running = self.fleet[number]
        done = subprocess.run(
            [str(running.binary), "fleet", *arguments, "--admin", "%s:%d" % running.admin], text=True,
            capture_output=True, stdin=subprocess.DEVNULL, timeout=60 * SLOWDOWN)
        if done.returncode != 0:
            raise Wrong(f"pinfold fleet {arguments[0]} at {number}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def publish(self, number: int) -> int:
        """Publishes another policy by a gateway; returns how many have taken it."""
        self.serial += 1
        file = self.folder / "signed.yaml"
        denied = f"denied-{self.serial}.test"
        file.write_bytes(policy({"access": {"rules": [
            {"name": f"no-{self.serial}", "hosts": [denied], "action": "deny", "status": 451}]}},
            self.serial, self.signer))
        taken = self.cli(number, "publish", str(file)).count(" taken")
        refusing = [one.get(f"http://{denied}:{self.origin.port}/").status == 451 for one in self.fleet]
        if taken != len(self.fleet) or not all(refusing):
            raise Wrong(f"policy {self.serial} is taken by {taken}, and in force: {refusing}")
        return taken

    def agree(self) -> None:
        """By each gateway's view, all are there, have the policy and have carried out all purges."""
        for number in range(len(self.fleet)):
            def agrees() -> bool:
                with contextlib.suppress(Wrong):
                    seen = json.loads(self.cli(number, "status", "--json"))
                    return seen["agree"] and len(seen["gateways"]) == len(self.fleet)
                return False

            until(agrees, f"gateway {number} sees all agree", 30)

    def step(self, programs: tuple[str, ...]) -> str:
        """Everything at one step; returns its row."""
        storm = self.storm
        assert storm is not None
        tally, everyone = storm.tally, range(len(self.fleet))
        with tally.lock:
            before = (tally.requests, len(tally.failed), len(tally.wrong), tally.purges, tally.unconfirmed,
                      len(tally.old))
            crossed = Counter(storm.crossed)
        storm.until_hits(40)
        storm.until_confirmed(40)
        for gateway in everyone:
            for kind in KINDS:
                self.purge(gateway, kind)
        slowest = max(storm.remove(gateway) for gateway in everyone for _ in range(4))
        taken = self.publish(self.serial % len(self.fleet))
        self.agree()
        pairs = [pair for pair in (("new", "old"), ("old", "new")) if set(pair) == set(programs)]
        until(lambda: all(storm.crossed[pair] >= crossed[pair] + 50 for pair in pairs),
              lambda: f"hits on what the other program has stored: {storm.crossed - crossed}", 60)
        strange = sum(one.metrics().get(f'pinfold_cache_shared_errors_total{{reason="{reason}"}}', 0)
                      for one in self.fleet for reason in REASONS)
        if strange:
            raise Wrong(f"{strange:.0f} records were not understood: {self.fleet[0].log()[-2000:]}")
        with tally.lock:
            requests, failed, wrong, purges, unconfirmed, old = (now - then for now, then in zip(
                (tally.requests, len(tally.failed), len(tally.wrong), tally.purges, tally.unconfirmed,
                 len(tally.old)), before, strict=True))
            hits = storm.crossed - crossed
        self.origin.requests.clear()
        shown = [f"{hits[pair]:,}" if pair in pairs else "–" for pair in (("new", "old"), ("old", "new"))]
        return "| " + " | ".join([
            " ".join(programs), f"{requests:,}", str(failed), str(wrong), *shown, f"{purges} ({unconfirmed})",
            f"{4 * len(self.fleet)}: {1000 * slowest:.0f} ms", str(old), f"{taken} of {len(self.fleet)}",
            f"{strange:.0f}"]) + " |"

    def purge(self, gateway: int, kind: str) -> None:
        """A purge that the receipt says all have carried out."""
        assert self.storm is not None
        names = {f"gateway-{number}" for number in range(len(self.fleet))}
        for _ in range(TRIES):
            answer = self.storm.purge(gateway, kind, soft=False)
            if answer is not None and answer["recorded"] and set(answer["confirmed"]) == names:
                return
        raise Wrong(f"a purge by {kind} at {gateway} is confirmed by {answer}")

    def close(self) -> list[str]:
        problems = []
        if self.storm is not None:
            self.storm.ends.set()
        for one in self.starter.all:
            try:
                one.finish()
            except AssertionError as problem:
                problems.append(str(problem))
        self.engine.stop()
        self.origin.close()
        return problems


def skew(folder: Path, old: Path, new: Path) -> int:
    raise_descriptor_limit()
    for name, program in ("old", old), ("new", new):
        shown = subprocess.run([str(program), "--version"], text=True, capture_output=True, check=True)
        print(f"{name}: {shown.stdout.strip()} ({program.stat().st_size:,} bytes)")
    print(HEADING, flush=True)
    made = Skew(folder, {"old": old, "new": new})
    problems: list[str] = []
    begun = time.monotonic()
    try:
        made.start()
        assert made.storm is not None
        for number, programs in enumerate(STEPS):
            if number:
                made.change(STEPS[number - 1], programs)
            print(made.step(programs), flush=True)
        made.storm.end()
    except (AssertionError, Wrong) as problem:
        problems.append(str(problem))
    if made.storm is not None:
        problems += made.storm.problems()
        print(f"{time.monotonic() - begun:.0f} s, {made.storm.tally.hits:,} hits of {made.storm.tally.requests:,} "
              "requests")
    problems += made.close()
    for problem in problems[:40]:
        print(f"wrong: {problem}")
    return 1 if problems else 0
