"""Runs the gateway for a long time, and looks at what it loses, what it answers, and what grows.

The load of deploy/upgrades.py, and besides

  storm    GET, ranges and POST for 120 objects of 0 bytes to 2 MiB, some in slices, some with variants,
           whose every byte is checked, from the cache and past it
  cut      responses whose server closes in the middle: they must not look complete
  rude     clients that leave in the middle of a response, send half a request, or nonsense

Meanwhile the configuration is read again every --reload seconds, and every --upgrade seconds another
process takes over, each third time after an upgrade that fails. Memory, descriptors and threads are
looked at every 5 seconds, and once more when all clients have left and the connections to servers, which
are kept for a while, have ended. Files in memory, in which the cache keeps large bodies, are counted apart.

The status is 1 if anything was lost or wrong, if a process wrote a crash or a sanitizer's report, if
descriptors or threads are left over, if there are more files in memory than fit into the cache, or if the
median of memory in the last third is a quarter and 16 MiB above that of the first.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import upgrades

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "Tests/Integration"))

from support.gateway import CRASH  # noqa: E402
from support.origin import Origin, serving  # noqa: E402
from support.storm import Objects, Storm, Tally  # noqa: E402
from support.wire import Wire  # noqa: E402

MIB = 1 << 20
# How long an idle connection to a server is kept, timeouts.idle, and some time for its end.
IDLE = 60 + 15
# What the cache holds in memory by default, in bodies of the smallest size that are kept in files.
MEMORY_FILES = 64 * MIB // (256 << 10)
# What may be opened when it is first needed: the cache's readers, for example.
LATER = 16


class Front:
    """The gateway as the storm sees it."""

    is_killed = False

    def __init__(self, ports: dict[str, int]):
        self.ports = ports

    def wire(self, listener: str) -> Wire:
        return Wire(("127.0.0.1", self.ports[listener]))


class Sample(NamedTuple):
    """What a process uses."""

    seconds: float
    pid: int
    kibibytes: int
    descriptors: int
    threads: int
    memory_files: int


class Watch(threading.Thread):
    """What the process that serves uses, over time."""

    def __init__(self, gateway: upgrades.Gateway):
        super().__init__(daemon=True)
        self.gateway = gateway
        self.begun = time.monotonic()
        self.samples: list[Sample] = []
        self.ended = threading.Event()

    def look(self) -> Sample | None:
        pid = self.gateway.pid
        with contextlib.suppress(OSError, KeyError):
            fields = dict(line.split(":", 1) for line in
                          Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
            links = []
            for entry in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    links.append(os.readlink(entry))
            files = sum(link.startswith("/memfd:") for link in links)
            return Sample(time.monotonic() - self.begun, pid, int(fields["VmRSS"].split()[0]),
                          len(links) - files, int(fields["Threads"]), files)
        return None

    def rest(self, start: Sample) -> Sample | None:
        """What it uses once nobody needs anything of it."""
        end = time.monotonic() + IDLE
        while True:
            sample = self.look()
            if sample and sample.descriptors <= start.descriptors + LATER or time.monotonic() > end:
                return sample
            time.sleep(1)

    def run(self) -> None:
        while not self.ended.wait(5):
            if sample := self.look():
                self.samples.append(sample)


def cut(port: int, server: int) -> None:
    """A response that breaks off must not look complete."""
    with socket.create_connection(("127.0.0.1", port), 30) as sock, sock.makefile("rb") as file:
        sock.sendall(b"GET http://127.0.0.1:%d/cut HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % server)
        head = upgrades.head_of(file)
        body = b""
        with contextlib.suppress(ConnectionResetError):
            body = file.read()
        if b" 200 " in head and (b"Content-Length: 100000" not in head or len(body) >= 100000):
            raise ValueError(f"{len(body)} bytes after {head!r}")
    time.sleep(0.05)


def rude(port: int, origin: int, picked: random.Random) -> None:
    with socket.create_connection(("127.0.0.1", port), 30) as sock:
        kind = picked.randrange(3)
        if kind == 0:
            sock.sendall(b"GET http://127.0.0.1:%d/1k HTTP/1.1\r\nHost: x\r\n\r\n" % origin)
            sock.recv(1)
        elif kind == 1:
            sock.sendall(b"GET http://127.0.0.1")
        else:
            sock.sendall(picked.randbytes(200))
            with contextlib.suppress(OSError):
                sock.recv(1000)
    time.sleep(0.05)


def judge(watch: Watch, rest: Sample, start: Sample) -> list[str]:
    """What has grown, in words."""
    problems = []
    thirds = [one for one in watch.samples if one.seconds > 30] or watch.samples
    size = max(1, len(thirds) // 3)
    first = statistics.median(one.kibibytes for one in thirds[:size])
    last = statistics.median(one.kibibytes for one in thirds[-size:])
    print(f"memory: median of the first third {first / 1024:.1f} MiB, of the last {last / 1024:.1f} MiB, "
          f"most {max(one.kibibytes for one in thirds) / 1024:.1f} MiB")
    if last > first * 1.25 + 16 * 1024:
        problems.append("memory grows")
    files = max(one.memory_files for one in [*thirds, rest])
    print(f"descriptors: {start.descriptors} at the start, at most "
          f"{max(one.descriptors for one in thirds)}, {rest.descriptors} when all clients had left and "
          f"idle connections had ended; besides at most {files} files in memory, {rest.memory_files} left")
    if rest.descriptors > start.descriptors + LATER:
        problems.append("descriptors are left over")
    if files > MEMORY_FILES:
        problems.append("there are more files in memory than fit into the cache")
    print(f"threads: {start.threads} at the start, at most {max(one.threads for one in thirds)}, "
          f"{rest.threads} at the end")
    if rest.threads > start.threads + 2:
        problems.append("threads are left over")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=os.environ.get("PINFOLD_BINARY"))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--load", type=float, default=1,
                        help="a share of the requests: 0.2 leaves most of two processors to others")
    parser.add_argument("--reload", type=float, default=30, help="seconds; 0: never")
    parser.add_argument("--upgrade", type=float, default=120, help="seconds; 0: never")
    parser.add_argument("--sanitize", help="for deploy/soak: a sanitizer to build with")
    options = parser.parse_args()
    if options.binary is None:
        parser.error("--binary or PINFOLD_BINARY is needed")
    picked = random.Random(1)
    objects = Objects(Objects.make_pool(1))
    tally = Tally()
    server = upgrades.Server()
    problems: list[str] = []
    with (tempfile.TemporaryDirectory(prefix="pinfold-soak-") as folder,
          serving(Origin(objects.serve)) as storm_origin):
        rig = upgrades.Rig(Path(folder))
        ports = {"plain": upgrades.free_port(), "sliced": upgrades.free_port()}
        gateway = upgrades.Gateway(rig, Path(options.binary).resolve(), "".join(
            f'  - {{ name: {name}, kind: reverse, address: "127.0.0.1:{ports[name]}",\n'
            f'      upstream: "http://{host}:{storm_origin.port}" }}\n'
            for name, host in (("plain", "127.0.0.1"), ("sliced", "localhost"))) + """
hosts:
  - { match: [localhost], cache: { slice: 256KiB } }
""")
        clients = upgrades.Clients()
        try:
            watch = Watch(gateway)
            time.sleep(2)
            start = watch.look()
            host = b"127.0.0.1:%d" % server.port
            tunnel = b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host)
            upgraded = (b"GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: upgrade\r\n"
                        b"Upgrade: echo\r\n\r\n" % (host, host))
            clients.run("tunnels", 10, lambda: upgrades.echo(rig.forward, tunnel, b" 200 ", 3))
            clients.run("sockets", 10, lambda: upgrades.echo(rig.forward, upgraded, b" 101 ", 3))
            clients.run("uploads", 5, lambda: upgrades.upload(rig.forward, server.port))
            clients.run("cut", 2, lambda: cut(rig.forward, server.port))
            clients.run("rude", 2, lambda: rude(rig.forward, rig.origin, picked))
            loads = rig.load(clients, options.load)
            # A client that does not pause sends a thousand requests a second.
            pause = 0.004 * (1 / options.load - 1)
            storm = Storm(Front(ports), objects, tally, 1, pause=pause)
            watch.start()
            reloads = upgraded_times = failures = 0
            begun = last_reload = last_upgrade = time.monotonic()
            while time.monotonic() - begun < options.minutes * 60:
                time.sleep(0.5)
                for load in loads:
                    load.renew()
                now = time.monotonic()
                if options.reload and now - last_reload >= options.reload:
                    last_reload = now
                    reloads += 1
                    gateway.file.write_text(
                        gateway.config + f"via: gateway-{reloads % 2}\n")
                    os.kill(gateway.pid, signal.SIGHUP)
                if options.upgrade and now - last_upgrade >= options.upgrade:
                    last_upgrade = now
                    if upgraded_times % 3 == 2:
                        gateway.fail(2 * failures)
                        failures += 1
                    gateway.upgrade()
                    upgraded_times += 1
            seconds = time.monotonic() - begun
            storm.stopped.set()
            served = dict(load_result := {load.name: load.end() for load in loads})
            clients.end()
            for thread in storm.threads:
                thread.join(30)
            watch.ended.set()
            rest = watch.rest(start) if start else None
            gateway.first.poll()
            lost = {name: lines for name, (_, lines) in load_result.items()} | clients.lost
            counts = {name: count for name, (count, _) in served.items()} | clients.done
            total = sum(counts.values()) + tally.checked
            print(f"{seconds / 60:.1f} minutes: {total} exchanges, {total / seconds:.0f}/s; {reloads} reloads, "
                  f"{upgraded_times} upgrades, {failures} that failed; longest probe "
                  f"{clients.longest * 1000:.0f} ms")
            for name, count in counts.items():
                lines = [] if name == "rude" else lost[name]
                print(f"  {name:8s} {count:9d}, {len(lines)} lost")
                for line in lines[:10]:
                    print(f"    {line.strip()}")
                if lines:
                    problems.append(f"{name} lost {len(lines)}")
            print(f"  {'storm':8s} {tally.checked:9d}, {tally.served} from the cache, {tally.cut} cut off "
                  f"because they had changed, {len(tally.wrong)} wrong")
            for line in tally.wrong[:10]:
                print(f"    {line}")
            if tally.wrong:
                problems.append(f"{len(tally.wrong)} wrong answers")
            if rest is None or start is None:
                problems.append("the gateway is gone")
            else:
                problems += judge(watch, rest, start)
        finally:
            gateway.end()
            rig.end()
        log = gateway.log.read_text(errors="replace")
        if crash := CRASH.search(log):
            problems.append("a crash or a report: " + log[crash.start() : crash.start() + 2000])
        for line in log.splitlines():
            if " critical " in line:
                problems.append(line)
    for problem in problems:
        print(f"wrong: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
