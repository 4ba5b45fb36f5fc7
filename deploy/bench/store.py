"""Measures the disk tier of the cache with many responses.

  entries   responses with bodies of 200 bytes are stored, the process is killed with SIGKILL, and
            another one opens what it has left. Measured are the resident memory for each entry (that
            of the process with the index, less that of a process without a store), and the seconds
            from the start of the process until a response was read. The file is in the page cache.
  space     responses with bodies of 200 bytes, 4 KiB and 100,000 bytes are stored, each in a
            database of its own. Measured are the bytes of the file for each response, how much of
            them is not its body, head or key, and what the entries count for beside `cache.disk`,
            in percent of the file; also the responses stored and read per second.

  purges    responses with bodies of 200 bytes and tags are stored, and a sixteenth of them purged by
            a tag, by a prefix, by a host and by a pattern of hosts. Measured are the milliseconds
            until each purge was acknowledged, the seconds until it was carried out, and how long
            lookups in memory took before and meanwhile.

Ceilings: from a million entries on (below that, buffers are in the way), 64 bytes of memory for each
and four seconds for up to five million; counts that are within 5 % of the file; 10 ms for a purge, and
for the slowest hundredth of the lookups twice the usual. The status is 1 if one is exceeded.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# Bytes of the head and the key that the program stores.
TEXT = 105 + 36
MEMORY = 64
SECONDS = 4.0
MILLION = 1_000_000


def fill(program: str, folder: Path, count: int, size: int) -> dict[str, Any]:
    """Fills a database, and kills the process that did."""
    with subprocess.Popen([program, "fill", str(folder), str(count), str(size)],
                          stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        line = process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    if not line:
        raise SystemExit("the process that stores has ended")
    return json.loads(line)


def reopen(program: str, folder: Path, count: int, size: int) -> dict[str, Any]:
    """Opens it again; `seconds` are those since the process was started."""
    start = time.monotonic()
    done = subprocess.run([program, "open", str(folder), str(count), str(size)],
                          stdout=subprocess.PIPE, text=True, check=True)
    figures = json.loads(done.stdout)
    figures["seconds"] = figures["readyAt"] / 1e9 - start
    return figures


def file_bytes(folder: Path) -> int:
    return (folder / "cache.sqlite").stat().st_size


def entries(program: str, folder: Path, count: int) -> list[str]:
    complaints = []
    filled = fill(program, folder, count, 200)
    print(f"{filled['entries']:,} responses stored in {filled['seconds']:.1f} s", flush=True)
    for attempt in ("after kill -9", "once more"):
        opened = reopen(program, folder, count, 200)
        memory = opened["residentKiB"] * 1024 / opened["entries"]
        print(f"ready {attempt}: {opened['seconds']:.2f} s; {memory:.1f} bytes of memory for each "
              f"of {opened['entries']:,} entries", flush=True)
        if opened["entries"] != filled["entries"]:
            complaints.append(f"{filled['entries'] - opened['entries']} entries are missing")
        if count >= MILLION and memory > MEMORY:
            complaints.append(f"{memory:.1f} bytes of memory for each entry, more than {MEMORY}")
        if count >= MILLION and opened["seconds"] > SECONDS * max(1, count / (5 * MILLION)):
            complaints.append(f"ready after {opened['seconds']:.2f} s")
    return complaints


def space(program: str, folder: Path, count: int, size: int) -> list[str]:
    filled = fill(program, folder, count, size)
    opened = reopen(program, folder, count, size)
    total = file_bytes(folder)
    each = total / opened["entries"]
    share = 100 * opened["accounted"] / total
    print(f"{size:>7,} bytes: {each:>9,.0f} bytes of the file for each, "
          f"{100 * (each - size - TEXT) / each:.1f} % overhead, counted as {share:.1f} %; "
          f"{filled['entries'] / filled['seconds']:,.0f} stored and "
          f"{opened['loads'] / opened['loadSeconds']:,.0f} read per second", flush=True)
    if abs(share - 100) > 5:
        return [f"bodies of {size} bytes count for {share:.1f} % of the file"]
    return []


def purges(program: str, folder: Path, count: int) -> list[str]:
    complaints = []
    done = subprocess.run([program, "purge", str(folder), str(count), "200"],
                          stdout=subprocess.PIPE, text=True, check=True)
    for line in done.stdout.splitlines():
        figures = json.loads(line)
        milliseconds = figures["acknowledged"] * 1000
        print(f"purge by {figures['purge']:<6} among {figures['entries']:,}: acknowledged after "
              f"{milliseconds:.1f} ms, {figures['memory']:,} in memory and {figures['disk']:,} on "
              f"disk removed after {figures['complete']:.1f} s; lookups p50 {figures['p50']} ns "
              f"(usually {figures['usual50']}), p99 {figures['p99']} ns "
              f"(usually {figures['usual99']})", flush=True)
        if count >= MILLION and milliseconds > 10:
            complaints.append(f"{milliseconds:.1f} ms for a purge by {figures['purge']}")
        if count >= MILLION and figures["p99"] > 2 * figures["usual99"]:
            complaints.append(f"lookups p99 of {figures['p99']} ns during a purge")
    return complaints


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the program StoreBench")
    parser.add_argument("--quick", action="store_true", help="50,000 responses")
    parser.add_argument("--entries", type=int, help="the number of responses")
    parser.add_argument("--only", choices=("entries", "space", "purges"),
                        help="one of the three")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"),
                        help="where the databases are, for as long as it takes")
    arguments = parser.parse_args()
    count = arguments.entries or (50_000 if arguments.quick else 5 * MILLION)
    part = 20 if arguments.quick else 1
    complaints: list[str] = []
    folder = Path(tempfile.mkdtemp(prefix="pinfold-store-", dir=arguments.folder))
    try:
        if arguments.only in (None, "entries"):
            complaints += entries(arguments.program, folder / "entries", count)
            shutil.rmtree(folder / "entries")
        if arguments.only in (None, "purges"):
            complaints += purges(arguments.program, folder / "purges", count)
            shutil.rmtree(folder / "purges")
        if arguments.only in (None, "space"):
            for size, number in ((200, 200_000), (4096, 100_000), (100_000, 5000)):
                complaints += space(arguments.program, folder / str(size), number // part, size)
                shutil.rmtree(folder / str(size))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for complaint in complaints:
        print(f"too much: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
