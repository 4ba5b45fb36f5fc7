"""Proves that the cache's disk tier serves nothing wrong after crashes and on a full disk.

A gateway with two workers, little memory and a small database serves a storm of requests: GET,
ranges, and POSTs that invalidate, for objects of 0 bytes to 2 MiB, some in slices, some with
variants. Every byte of a response follows from its URL and the generation in its head, and is
checked. A response that breaks off is wrong, unless its object has another generation at the origin
by then, or what was stored may be gone (on a full disk, or with a damaged log).

  kill   at a random moment the gateway is killed (SIGKILL) and started on what it has left, over
         and over on one database. It must open it without a complaint, serve only what is right,
         and nothing that a POST invalidated, if that was answered a second or more before the kill
         (later ones may be undone, as the page Design says; how many were is printed).
  hand   at a random moment the gateway is ended (SIGTERM), so that it hands its database to another
         one that starts meanwhile, and one of the two is killed while it does. The other one, or its
         successor, must have what was stored, as after kill.
  power  the files are copied at a random moment, with a worthless -shm or without, and what a power
         failure may lose is taken away: the end of the write-ahead log behind what was copied into
         the database, or a page there is torn. Another gateway must open the copy without a
         complaint, and serve only what is right. In every second run the log is cut or torn
         anywhere: then the database may be refused, if the gateway says so.
  full   the cache is on a small file system (tmpfs, which needs root) that is filled to a random
         rest during the storm, and emptied again. Everything is served right all the time, and
         stored again when the disk tier is back, which takes a minute: many gateways wait at once.

The status is 1 if anything was wrong, or if nothing that was stored before was served. The choices follow from the seed, the moments do not.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "Tests/Integration"))
# Where the support finds the gateway is decided when it is imported.
for argument, following in zip(sys.argv, [*sys.argv[1:], ""]):
    if argument == "--binary" or argument.startswith("--binary="):
        os.environ["PINFOLD_BINARY"] = argument.partition("=")[2] or following

from support.gateway import CRASH, Gateway  # noqa: E402
from support.origin import Origin, serving  # noqa: E402
from support.storm import Client, Cut, Objects, Storm, Tally  # noqa: E402

MIB = 1 << 20
# Invalidations that were answered this many seconds before a kill must outlive it.
HOLDS = 1.0
# Seconds until a disk tier that was turned off is back: it is tried again after 60.
BACK = 100.0
# What the log says of a database that is not as it should be.
COMPLAINT = re.compile(
    r"set aside|disk tier is off|database was removed|files were changed|damaged cache entry")


class Bench:
    """What all runs share."""

    def __init__(self, folder: Path, seed: int, quick: bool):
        self.folder = folder
        self.seed = seed
        self.quick = quick
        self.pool = Objects.make_pool(seed)
        # How many objects there are, and the longest part of a storm in seconds.
        self.count, self.longest = (40, 0.6) if quick else (120, 2.5)

    def random(self, kind: str, run: int) -> random.Random:
        return random.Random(f"{self.seed} {kind} {run}")

    def gateway(self, name: str, origin: Origin, cache: Path | None = None) -> Gateway:
        folder = self.folder / name
        folder.mkdir()
        listeners = [
            {"name": listener, "address": "127.0.0.1:0", "kind": "reverse",
             "upstream": f"http://{host}:{origin.port}"}
            for listener, host in (("plain", "127.0.0.1"), ("sliced", "localhost"))]
        return Gateway(folder, {
            "workers": 2, "listeners": listeners, "admin": {"address": "127.0.0.1:0"},
            "access": {"clients": ["127.0.0.0/8"],
                       "destinations": {"allow": ["127.0.0.0/8", "localhost"]}},
            "hosts": [{"match": ["localhost"], "cache": {"slice": "64KiB"}}],
            "cache": {"memory": "1MiB", "disk": "24MiB", "path": str(cache or folder / "cache")},
            "log": {"level": "info"}}, [])


@contextlib.contextmanager
def world(bench: Bench) -> Iterator[tuple[Objects, Origin]]:
    objects = Objects(bench.pool, bench.count)
    with serving(Origin(objects.serve)) as origin:
        yield objects, origin


def complaints(running: Gateway) -> list[str]:
    """Lines of the log about its database, and any crash."""
    return [line for line in running.log().splitlines()
            if COMPLAINT.search(line) or CRASH.search(line)]


def open_disk(running: Gateway, tally: Tally, what: str, may_refuse: bool = False) -> None:
    """Starts it, and waits for its disk tier."""
    running.start()
    with contextlib.suppress(AssertionError):
        running.wait_for_disk()
    said = complaints(running)
    if said and not may_refuse:
        tally.wrong.append(f"{what}: {said[0]}")
    elif not said and running.metric("pinfold_cache_disk_state", state="on") != 1:
        tally.wrong.append(f"{what}: the disk tier is not on, and nothing is said about it")


def check_alive(running: Gateway, tally: Tally, what: str) -> None:
    assert running.process is not None
    if running.process.poll() is not None or CRASH.search(running.log()):
        tally.wrong.append(f"{what}: it has crashed:\n{running.log()[-2000:]}")


def wait_random(chooser: random.Random, longest: float) -> None:
    """The moment is what is random, and what is tested."""
    time.sleep(chooser.uniform(0.02, longest))


# Killed


def sweep_after_kill(
    client: Client, undone: dict[int, list[tuple[float, int]]], killed: float
) -> None:
    """Looks at everything in the cache, and notes which late invalidations are undone."""
    client.tally.survived += client.sweep()
    for number, late in undone.items():
        with contextlib.suppress(Cut):
            client.last_generation = late[-1][1]
            client.ask(number, stored=True)
            lost = [when for when, generation in late if generation > client.last_generation]
            if lost:
                client.tally.undone.append(killed - lost[0])


def kill(bench: Bench, runs: int, tally: Tally) -> None:
    with world(bench) as (objects, origin):
        running = bench.gateway("kill", origin)
        open_disk(running, tally, "the first start")
        try:
            for run in range(runs):
                chooser = bench.random("kill", run)
                storm = Storm(running, objects, tally, chooser.randrange(1 << 30))
                wait_random(chooser, bench.longest)
                killed = time.monotonic()
                running.kill()
                storm.end()
                undone = objects.forgive(killed - HOLDS)
                open_disk(running, tally, f"kill {run}")
                client = Client(running, objects, tally, chooser.randrange(1 << 30))
                with contextlib.closing(client):
                    sweep_after_kill(client, undone, killed)
                if running.metric("pinfold_cache_damaged_entries_total"):
                    tally.wrong.append(f"kill {run}: a damaged entry")
        finally:
            running.stop()


# Handed over


def hand(bench: Bench, runs: int, tally: Tally) -> None:
    with world(bench) as (objects, origin):
        cache = bench.folder / "hand-cache"
        running = bench.gateway("hand", origin, cache)
        open_disk(running, tally, "the first start")
        try:
            for run in range(runs):
                running = hand_on(bench, run, running, objects, origin, tally)
        finally:
            running.stop()


def hand_on(
    bench: Bench, run: int, running: Gateway, objects: Objects, origin: Origin, tally: Tally
) -> Gateway:
    """Returns the gateway that has the database afterwards."""
    chooser = bench.random("hand", run)
    what = f"hand {run}"
    storm = Storm(running, objects, tally, chooser.randrange(1 << 30))
    wait_random(chooser, bench.longest)
    ended = time.monotonic()
    # Its connections end from now on.
    running.is_killed = True
    running.signal(signal.SIGTERM)
    following = bench.gateway(f"hand-{run}", origin, running.folder.parent / "hand-cache")
    following.start(wait=chooser.random() < 0.5)
    time.sleep(chooser.uniform(0, 0.1))
    (running if chooser.random() < 0.5 else following).kill()
    storm.end()
    undone = objects.forgive(ended - HOLDS)
    if following.is_killed:
        following.start()
    running.kill()
    following.wait_ready()
    with contextlib.suppress(AssertionError):
        following.wait_for_disk()
    tally.wrong += [f"{what}: {line}" for line in complaints(following) if "locked" not in line]
    client = Client(following, objects, tally, chooser.randrange(1 << 30))
    with contextlib.closing(client):
        sweep_after_kill(client, undone, ended)
    if following.metric("pinfold_cache_damaged_entries_total"):
        tally.wrong.append(f"{what}: a damaged entry")
    return following


# Without power


def synchronized(folder: Path) -> int:
    """How many bytes of the write-ahead log (sqlite.org/walformat.html) a power failure cannot
    lose, because what they say is in the database, or may be: up to the end of the transaction with
    the last frame that equals its page there. SQLite synchronizes the log before it copies it."""
    log = (folder / "cache.sqlite-wal").read_bytes()
    if len(log) < 32:
        return 0
    page = struct.unpack_from(">I", log, 8)[0]
    frame = 24 + page
    ends, copied = 0, False
    with (folder / "cache.sqlite").open("rb") as database:
        for at in range(32, len(log) - frame + 1, frame):
            number, commit = struct.unpack_from(">II", log, at)
            if log[at + 8 : at + 16] != log[16:24]:
                break
            database.seek((number - 1) * page)
            copied = copied or database.read(page) == log[at + 24 : at + frame]
            if copied and commit:
                ends, copied = at + frame, False
    return ends


def lose_power(chooser: random.Random, folder: Path, anywhere: bool) -> None:
    """Takes from a copy what was not synchronized, or, `anywhere`, something else."""
    log = folder / "cache.sqlite-wal"
    first = 0 if anywhere else synchronized(folder)
    if chooser.random() < 0.7:
        os.truncate(log, chooser.randrange(first, log.stat().st_size + 1))
    if chooser.random() < 0.4 and (size := log.stat().st_size) > first:
        with log.open("r+b") as file:
            file.seek(chooser.randrange(first, size))
            file.write(chooser.randbytes(chooser.choice((1, 512, 4096))))
    # The gateway itself has no such file; SQLite's own tools leave one.
    if chooser.random() < 0.5:
        (folder / "cache.sqlite-shm").write_bytes(chooser.randbytes(32_768))


def power(bench: Bench, runs: int, tally: Tally) -> None:
    with world(bench) as (objects, origin):
        running = bench.gateway("power", origin)
        open_disk(running, tally, "the first start")
        storm = Storm(running, objects, tally, bench.seed)
        try:
            for run in range(runs):
                lose_power_once(bench, run, running, objects, origin, tally)
            check_alive(running, tally, "power")
            storm.end()
        finally:
            storm.stopped.set()
            running.stop()


def lose_power_once(
    bench: Bench, run: int, running: Gateway, objects: Objects, origin: Origin, tally: Tally
) -> None:
    chooser = bench.random("power", run)
    wait_random(chooser, bench.longest / 2)
    copy = bench.folder / f"power-{run}-cache"
    running.pause()
    shutil.copytree(running.folder / "cache", copy)
    running.signal(signal.SIGCONT)
    anywhere = run % 2 == 1
    lose_power(chooser, copy, anywhere)
    # Whatever the log's end says may be lost: of any generation, but right.
    past, found = Objects(bench.pool, bench.count), Tally()
    past.generations = objects.generations
    other = bench.gateway(f"power-{run}", origin, copy)
    try:
        open_disk(other, found, f"power {run}", may_refuse=anywhere)
        client = Client(other, past, found, chooser.randrange(1 << 30), may_break=anywhere)
        with contextlib.closing(client):
            survived = client.sweep()
            found.survived = 0 if anywhere else survived
            # It also stores upon it.
            for number in range(objects.count):
                with contextlib.suppress(Cut):
                    client.ask(number)
            client.sweep()
        check_alive(other, found, f"power {run}")
    finally:
        other.stop()
        tally.add(found)
        shutil.rmtree(copy)
        shutil.rmtree(other.folder)


# A full disk

CLONE_NEWNS = 0x20000
MIB_OF_DISK = 32


def own_mounts() -> None:
    """What is mounted from now on is seen by this process and its children only, and gone with
    them."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0:
        raise SystemExit(f"full: no mount namespace ({os.strerror(ctypes.get_errno())}); "
                         "it needs root, or use --quick or --only")
    mounted = subprocess.run(["mount", "--make-rprivate", "/"], text=True, capture_output=True)
    if mounted.returncode != 0:
        raise SystemExit(f"full: cannot mount: {mounted.stderr.strip()}")


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={MIB_OF_DISK}m", "pinfold-crash", str(folder)],
        text=True, capture_output=True)
    if done.returncode != 0:
        raise SystemExit(f"full: cannot mount a tmpfs: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def filled(folder: Path, left: int) -> Iterator[None]:
    """While it lasts, `left` bytes are free there."""
    room = os.statvfs(folder)
    ballast = folder / "ballast"
    with ballast.open("wb") as file:
        with contextlib.suppress(OSError):
            os.posix_fallocate(file.fileno(), 0, max(1, room.f_bavail * room.f_frsize - left))
    try:
        yield
    finally:
        ballast.unlink()


@contextlib.contextmanager
def short_files(running: Gateway, left: int) -> Iterator[None]:
    """While it lasts, no file may grow beyond `left` bytes."""
    everything = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(running.pid, resource.RLIMIT_FSIZE, (left, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(running.pid, resource.RLIMIT_FSIZE, everything)


# Not more storms at a time than there is processor time for.
STORMS = threading.Semaphore(2)


def fill_once(bench: Bench, run: int, tally: Tally) -> None:
    chooser = bench.random("full", run)
    cache = bench.folder / f"full-{run}-cache"
    disk = contextlib.nullcontext() if bench.quick else small_disk(cache)
    with disk, world(bench) as (objects, origin):
        running = bench.gateway(f"full-{run}", origin, cache)
        try:
            with STORMS:
                open_disk(running, tally, f"full {run}")
                storm = Storm(running, objects, tally, chooser.randrange(1 << 30), clients=2,
                              may_break=True)
                wait_random(chooser, bench.longest / 2)
                left = int(chooser.choice((0, 0.2, 1, 4)) * chooser.random() * MIB)
                with short_files(running, left) if bench.quick else filled(cache, left):
                    wait_random(chooser, bench.longest / 2)
                wait_random(chooser, bench.longest / 2)
                storm.end()
            if not bench.quick:
                wait_until_stored(running, objects, chooser, tally, f"full {run}")
            check_alive(running, tally, f"full {run}")
        finally:
            running.stop()


def wait_until_stored(
    running: Gateway, objects: Objects, chooser: random.Random, tally: Tally, what: str
) -> None:
    """After the disk has room again, responses get there."""
    deadline = time.monotonic() + BACK
    client = Client(running, objects, tally, chooser.randrange(1 << 30), may_break=True)
    with contextlib.closing(client):
        while running.metric("pinfold_cache_disk_state", state="on") != 1:
            if time.monotonic() > deadline:
                tally.wrong.append(f"{what}: the disk tier is not back: {complaints(running)}")
                return
            with contextlib.suppress(Cut):
                client.act()
            time.sleep(0.5)
        written = running.metric("pinfold_cache_disk_writes_total")
        while running.metric("pinfold_cache_disk_writes_total") < written + 5:
            if time.monotonic() > deadline + 10:
                tally.wrong.append(f"{what}: nothing is stored again")
                return
            with contextlib.suppress(Cut):
                client.act()


def full(bench: Bench, runs: int, tally: Tally) -> None:
    def once(run: int) -> None:
        try:
            fill_once(bench, run, tally)
        except BaseException as error:
            tally.wrong.append(f"full {run}: {error!r}")

    with ThreadPoolExecutor(2 if bench.quick else 40) as pool:
        for _ in pool.map(once, range(runs)):
            pass


KINDS: dict[str, Callable[[Bench, int, Tally], None]] = {
    "kill": kill, "hand": hand, "power": power, "full": full}


def report(kind: str, runs: int, tally: Tally) -> None:
    text = (f"{kind}: {runs} runs, {tally.checked:,} requests checked, {tally.served:,} served "
            f"from the cache, {len(tally.wrong)} wrong; cut off: {tally.cut} as the object had "
            f"changed, {tally.broken} as what was stored was gone")
    if kind != "full":
        text += f"; {tally.survived:,} of them had survived"
    if kind in ("kill", "hand"):
        text += f"; {len(tally.undone)} late invalidations undone"
        if tally.undone:
            text += f", the oldest {max(tally.undone) * 1000:.0f} ms before its kill"
    print(text, flush=True)
    for one in tally.wrong[:20]:
        print(f"  wrong: {one}", file=sys.stderr)


def has_shown_something(kind: str, tally: Tally) -> bool:
    """Whether there was anything that could have been wrong."""
    return tally.served > 0 and (kind == "full" or tally.survived > 0)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, help="runs of each kind (100)")
    parser.add_argument("--binary", help="the gateway")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 31),
                        help="for the choices (a random one)")
    parser.add_argument("--only", choices=KINDS, help="one kind")
    parser.add_argument("--quick", action="store_true",
                        help="two runs of each kind with shorter storms; the size of files is "
                        "limited in place of a file system's, so that no root is needed, and "
                        "nothing waits for the disk tier to be back")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"),
                        help="where the files are, for as long as it takes")
    arguments = parser.parse_args()
    runs = arguments.runs or (2 if arguments.quick else 100)
    kinds = [arguments.only] if arguments.only else list(KINDS)
    if "full" in kinds and not arguments.quick:
        own_mounts()
    print(f"seed {arguments.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="pinfold-crash-", dir=arguments.folder))
    is_wrong = False
    try:
        for kind in kinds:
            tally = Tally()
            # Of a few runs, it may be that none had anything that could have been wrong.
            for attempt in range(5):
                own = folder / f"{kind}-{attempt}"
                own.mkdir()
                KINDS[kind](Bench(own, arguments.seed + attempt, arguments.quick), runs, tally)
                if tally.wrong or has_shown_something(kind, tally):
                    break
            report(kind, runs, tally)
            is_wrong = is_wrong or bool(tally.wrong) or not has_shown_something(kind, tally)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if is_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
