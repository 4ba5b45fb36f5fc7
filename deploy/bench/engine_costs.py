"""Measures what the commands of the shared level cost a redis-server: microseconds of its processor.

One connection sends batches of commands at once, as the loop of a gateway does in a turn, with values of
1 and 64 KiB under names as long as the level's. The engine's own processor time, which it says itself, is
divided by their number; so what else the machine does matters little. The result is a line for
`fleet-simulation --costs`: for a lookup, a store, a chunk (a GET or SET), and each KiB read and written.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def encoded(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Engine:
    """A redis-server on a Unix socket, and a connection to it."""

    def __init__(self, path: str):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb", 1 << 20)

    def reply(self) -> object:
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(max(0, int(rest)))]
        if kind == b"-":
            raise SystemExit(f"the engine says {rest!r}")
        return rest

    def processor(self) -> float:
        """Seconds of processor time that its thread has used."""
        self.socket.sendall(encoded(b"INFO", b"cpu"))
        text = bytes(self.reply()).decode()  # type: ignore[arg-type]
        return sum(float(line.split(":")[1]) for line in text.splitlines()
                   if line.startswith(("used_cpu_sys_main_thread", "used_cpu_user_main_thread")))

    def cost(self, commands: list[list[bytes]], batch: int) -> float:
        """Microseconds for each of these groups of commands, sent `batch` groups at a time."""
        begun = self.processor()
        for start in range(0, len(commands), batch):
            group = [command for one in commands[start:start + batch] for command in one]
            self.socket.sendall(b"".join(group))
            for _ in group:
                self.reply()
        return 1e6 * (self.processor() - begun) / len(commands)


@contextmanager
def running() -> Iterator[Engine]:
    binary = shutil.which("redis-server")
    if binary is None:
        raise SystemExit("redis-server is not installed")
    with tempfile.TemporaryDirectory(prefix="pinfold-engine-") as folder:
        path = Path(folder) / "s"
        with subprocess.Popen(
            [binary, "--port", "0", "--unixsocket", str(path), "--save", "", "--appendonly", "no",
             "--dir", folder], stdout=subprocess.DEVNULL) as process:
            try:
                end = time.monotonic() + 20
                while not path.exists() and time.monotonic() < end:
                    time.sleep(0.01)
                yield Engine(str(path))
            finally:
                process.terminate()


def lookups(number: int) -> list[list[bytes]]:
    return [[encoded(b"HGETALL", name(one))] for one in range(number)]


def stores(number: int, body: bytes) -> list[list[bytes]]:
    """As the level stores a response: at once, with the time for which it lives."""
    field, chunks = b"0123456789abcdef", b"c0123456789abcdef"
    return [[
        encoded(b"HGET", name(one), chunks), encoded(b"MULTI"),
        encoded(b"HSET", name(one), field, body), encoded(b"HDEL", name(one), chunks),
        encoded(b"PEXPIRE", name(one), b"4200000", b"NX"),
        encoded(b"PEXPIRE", name(one), b"4200000", b"GT"), encoded(b"HLEN", name(one)),
        encoded(b"EXEC")] for one in range(number)]


def name(number: int) -> bytes:
    return b"pinfold:1:v:{%032x}:" % number


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=20_000, help="commands of each kind (20,000)")
    number = max(200, parser.parse_args().number)
    record = bytes(700)
    costs: dict[str, float] = {}
    with running() as engine:
        for kib, part in ((1, 1), (64, 10)):
            body, count = record + bytes(kib << 10), number // part
            batch = 16 if kib == 1 else 4
            costs[f"store {kib}"] = engine.cost(stores(count, body), batch)
            costs[f"lookup {kib}"] = engine.cost(lookups(count), batch)
            chunks = [b"pinfold:1:c:{%032x}:%032x:0" % (one, one) for one in range(count)]
            costs[f"set {kib}"] = engine.cost(
                [[encoded(b"SET", chunk, body, b"PX", b"4200000")] for chunk in chunks], batch)
            costs[f"get {kib}"] = engine.cost([[encoded(b"GET", chunk)] for chunk in chunks], batch)
    for kind, cost in costs.items():
        print(f"{kind} KiB: {cost:.2f} µs", file=sys.stderr)
    read = max(0.0, (costs["lookup 64"] - costs["lookup 1"]) / 63)
    written = max(0.0, (costs["set 64"] - costs["set 1"]) / 63)
    of_chunk = (costs["set 1"] - written + costs["get 1"] - read) / 2
    print(",".join(f"{max(0.0, cost):.3f}" for cost in (
        costs["lookup 1"] - read, costs["store 1"] - written, of_chunk, read, written)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
