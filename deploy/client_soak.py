"""Makes a million requests through the client library to a server with faults (deploy/faults), and checks
that nothing of them is left.

The requests are made by a program, many at once, by several sessions, over HTTP/1 in clear text and over TLS
and over HTTP/2, on kept and new connections: read whole, in part or not at all, into memory and into files,
with contents of every kind, with redirects, retries, refreshed tokens, through transports, cancelled and
suspended at random moments, and while their session or runtime ends. The server refuses connections, resets and
closes them at every point, sends what is not HTTP, nothing, or one byte after the other, resets streams, and
says goodbye. What happens to a call follows from its number and the seed.

The status is 1 unless every call has ended once, within its time, and as its fault allows; every task has told
of one end and of nothing after it; after each round no descriptor, file, thread of a closed runtime, session or
closure is left; and resident memory after the first tenth of the rounds and at the end differ by less than 10 %.
The server says how often it has served each fault, and that no connection is left.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "Tests/Integration"))

from support import pki  # noqa: E402

SERVERS = 2


def certificates(folder: Path) -> Path:
    """Those of the server, as files of a folder; returns the authority's."""
    authority, other = pki.root(folder, "soak"), pki.root(folder, "unknown")
    made = {
        "good": authority.issue("127.0.0.1", "localhost"),
        "misnamed": authority.issue("other.test"),
        "expired": authority.issue("127.0.0.1", "localhost", days=(-60, -2)),
        "unknown": other.issue("127.0.0.1", "localhost"),
    }
    for name, certificate in made.items():
        (folder / f"{name}.pem").write_bytes(certificate.pem)
        (folder / f"{name}.key").write_bytes(certificate.key_file.read_bytes())
    (folder / "anchors.pem").write_bytes(authority.pem)
    return folder / "anchors.pem"


class Server:
    """A process of the server."""

    def __init__(self, folder: Path):
        self.process = subprocess.Popen(
            [sys.executable, ROOT / "deploy/faults/server.py", folder], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.ports: dict[str, int] = json.loads(self.process.stdout.readline())

    @property
    def argument(self) -> str:
        return ",".join(f"{name}={port}" for name, port in self.ports.items())

    def end(self) -> dict:
        """What it has served, and its open connections."""
        said, _ = self.process.communicate("")
        return json.loads(said)


def soak(program: str, arguments: list[str], environment: dict[str, str]) -> int:
    with tempfile.TemporaryDirectory(prefix="client-soak-") as name:
        folder, files = Path(name) / "server", Path(name) / "files"
        folder.mkdir()
        files.mkdir()
        anchors = certificates(folder)
        servers = [Server(folder) for _ in range(SERVERS)]
        begun = time.monotonic()
        try:
            done = subprocess.run(
                [program, "--anchors", anchors, "--folder", files, *arguments,
                 *(server.argument for server in servers)], env=os.environ | environment)
            seconds = time.monotonic() - begun
            ends = [server.end() for server in servers]
        finally:
            for server in servers:
                server.process.kill()
                server.process.wait()
    served = sum((Counter(end["served"]) for end in ends), Counter())
    print("the server has served: " + ", ".join(
        f"{count} {fault}" for fault, count in served.most_common()))
    print(f"{sum(served.values())} requests reached it in {seconds:.0f} s")
    status = done.returncode
    open_connections = sum(end["connections"] for end in ends)
    if open_connections:
        print(f"wrong: {open_connections} connections of the server are open")
        status = status or 1
    return status


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="faulty-requests, built from deploy/faults")
    parser.add_argument("--requests", type=int, help="how many; by default a million")
    parser.add_argument("--rounds", type=int, help="in how many rounds; by default 20")
    parser.add_argument("--seed", type=int, default=1, help="what happens follows from it")
    parser.add_argument("--width", type=int, default=96, help="so many at a time")
    parser.add_argument("--only", type=int, help="only the call of this number, in each round")
    parser.add_argument("--fault", help="only calls with this fault, by its name in the report")
    parser.add_argument("--check", action="store_true", help="5,000 requests in 3 rounds")
    parser.add_argument("--sanitize", choices=["thread", "address"],
                        help="what the program is built with; 20,000 requests in 4 rounds by default")
    arguments = parser.parse_args()
    count, rounds = (5_000, 3) if arguments.check else (
        (20_000, 4) if arguments.sanitize else (1_000_000, 20))
    # Threads with heaps of their own leave different holes in each, in which a small leak would not be seen.
    environment = {"MALLOC_ARENA_MAX": "1"}
    environment |= {
        "TSAN_OPTIONS": "exitcode=86:" + os.environ.get("TSAN_OPTIONS", ""),
        "ASAN_OPTIONS": "exitcode=86:" + os.environ.get("ASAN_OPTIONS", ""),
    } if arguments.sanitize else {}
    words = ["--requests", str(arguments.requests or count), "--rounds", str(arguments.rounds or rounds),
             "--seed", str(arguments.seed), "--width", str(arguments.width)]
    if arguments.only is not None:
        words += ["--only", str(arguments.only)]
    if arguments.fault:
        words += ["--fault", arguments.fault]
    return soak(arguments.program, words, environment)


if __name__ == "__main__":
    sys.exit(main())
