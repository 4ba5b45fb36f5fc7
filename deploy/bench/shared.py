"""Measures the shared level of the cache, with a redis-server on loopback.

  hits     responses of 1 KiB, of which the gateway keeps none itself (memory and disk 0): each request is a
           lookup in the engine. Measured are the processor time of the gateway and of the engine for each
           request under load (wrk, 64 connections), and p50 and p99 at 2,000 requests a second (h2load,
           16 connections). Beside it the same from nginx with memcached_pass, and from the gateway's memory.
  fill     requests for responses of 16 KiB that were never asked for: each is fetched and stored.
           Measured are the processor time of the level's thread for each store, how many were stored a
           second, and how many not.
  away     the same requests of 1 KiB to the origin, without cache.shared, and with an engine that nobody
           listens at: processor time for each, in turns.
  one      2,000 clients at three gateways ask for one object of 1 MiB at the same time, which its origin
           takes a second to send. Measured is how often the origin was asked.

The load and the servers share the machine's processors, so processor time is what to compare. The medians
of the rounds are printed. Aims: 10 µs for a hit, p99 of 1 ms, 10 µs of the level's thread for a store, 10,000
stores a second, nothing for an engine that is away (within 3 %), and one request for one object. What is
missed is listed at the end; it is no failure, as it depends on the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from surroundings import apart, running
from support.fleet import Engine, wait_shared
from support.gateway import Gateway, free_port, raise_descriptor_limit
from support.wait import until

os.environ["PATH"] += ":/usr/sbin"
URLS = 1000
CLIENTS = 2000
NGINX = """\
daemon off; pid @DIR@/pid; error_log @DIR@/error.log crit; worker_processes 1;
events { worker_connections 8192; }
http {
  access_log off; keepalive_requests 100000000; sendfile on; default_type text/plain; client_body_temp_path @DIR@/b;
  proxy_temp_path @DIR@/p; fastcgi_temp_path @DIR@/f; uwsgi_temp_path @DIR@/u; scgi_temp_path @DIR@/s;
  open_file_cache max=100; root @DIR@/www;
  upstream m { server 127.0.0.1:@MEMCACHED@; keepalive 64; keepalive_requests 100000000; }
  server { listen 127.0.0.1:@ORIGIN@ backlog=4096; add_header Cache-Control max-age=3600;
    location /1k/ { try_files /1k =404; } location /16k/ { try_files /16k =404; } }
  server { listen 127.0.0.1:@PEER@ backlog=4096;
    location / { set $memcached_key $uri; memcached_pass m; memcached_socket_keepalive on; } }
}
"""
SCRIPT = """\
local n = @FIRST@
request = function() n = n + 1; return wrk.format(nil, "@PATH@" .. @NUMBER@) end
"""


def cpu(pid: int) -> float:
    """Seconds of a process, to the nanosecond (clock_getcpuclockid(3))."""
    return time.clock_gettime(~pid << 3 | 2)


def thread_cpu(pid: int, name: str) -> float:
    """Seconds of the threads of that name."""
    seconds = 0.0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            if (task / "comm").read_text().strip() == name[:15]:
                seconds += int((task / "schedstat").read_text().split()[0]) / 1e9
    return seconds


def child(pid: int) -> int:
    """The only worker of an nginx."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


class Servers:
    """nginx as the origin, and as what is compared, with memcached."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.origin, self.peer, self.memcached_port = free_port(), free_port(), free_port()
        (folder / "www").mkdir()
        folder.chmod(0o755)
        for name, size in (("1k", 1024), ("16k", 16384)):
            (folder / "www" / name).write_bytes(b"x" * size)
        text = NGINX
        for name, value in (("DIR", folder), ("MEMCACHED", self.memcached_port), ("ORIGIN", self.origin),
                            ("PEER", self.peer)):
            text = text.replace(f"@{name}@", str(value))
        if os.geteuid() == 0:
            text = "user root;\n" + text
        (folder / "nginx.conf").write_text(text)
        self.nginx = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")])
        user = ["-u", "root"] if os.geteuid() == 0 else []
        self.memcached = subprocess.Popen(["memcached", "-l", "127.0.0.1", "-p", str(self.memcached_port),
                                           "-t", "1", *user])
        for port in (self.origin, self.peer, self.memcached_port):
            until(lambda: accepts(port), f"port {port} listens", 20)
        with socket.create_connection(("127.0.0.1", self.memcached_port)) as connection:
            for number in range(URLS):
                connection.sendall(b"set /1k/%d 0 0 1024\r\n%s\r\n" % (number, b"x" * 1024))
                assert connection.recv(100) == b"STORED\r\n"

    def end(self) -> None:
        for process in (self.nginx, self.memcached):
            process.terminate()
            process.wait()


def accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class Load:
    """wrk and h2load."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.first = 0

    def wrk(self, port: int, path: str, seconds: float, *, fresh: bool = False, connections: int = 64) -> int:
        """Requests for the paths in turn, or for new ones; returns how many were answered with 200."""
        script = self.folder / "load.lua"
        number = "n" if fresh else f"(n % {URLS})"
        text = SCRIPT.replace("@PATH@", path).replace("@NUMBER@", number).replace("@FIRST@", str(self.first))
        script.write_text(text)
        output = subprocess.run(
            ["wrk", "-t1", f"-c{connections}", f"-d{seconds:g}s", "-s", str(script), f"http://127.0.0.1:{port}/"],
            text=True, capture_output=True, check=True).stdout
        if "Non-2xx" in output or "Socket errors" in output:
            raise SystemExit(f"wrk says:\n{output}")
        found = re.search(r"(\d+) requests in", output)
        assert found, output
        if fresh:
            self.first += int(found[1]) + 100_000
        return int(found[1])

    def latencies(self, port: int, seconds: float, connections: int = 16, rate: int = 2000) -> tuple[float, float]:
        """p50 and p99 in milliseconds, at that many requests a second."""
        log, urls = self.folder / "times.log", self.folder / "urls"
        log.unlink(missing_ok=True)
        urls.write_text("".join(f"http://127.0.0.1:{port}/1k/{number}\n" for number in range(URLS)))
        subprocess.run(
            ["h2load", "--h1", "-t1", f"-c{connections}", f"-n{int(seconds * rate)}",
             f"--rps={rate // connections}", f"--log-file={log}", "-i", str(urls)],
            capture_output=True, check=True)
        # Seconds since the epoch, status, microseconds.
        times = sorted(int(line.split()[2]) / 1000 for line in log.read_text().splitlines()
                       if line.split()[1] == "200")
        if len(times) < seconds * rate * 0.9:
            raise SystemExit(f"h2load had {len(times)} answers")
        return times[len(times) // 2], times[len(times) * 99 // 100]


def configuration(url: str | None, origin: int, memory: str = "0", workers: int = 1) -> dict:
    shared = {"shared": {"url": url, "keyFile": KEY, "timeout": "1s"}} if url else {}
    return {
        "workers": workers,
        "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "reverse",
                       "upstream": f"http://127.0.0.1:{origin}"}],
        "limits": {"connections": 15000}, "cache": {"memory": memory, "disk": "0"} | shared}


KEY = ""


def shared_count(gateway: Gateway, name: str, **labels: str) -> float:
    return gateway.metric(f"pinfold_cache_shared_{name}_total", **labels)


class Bench:
    """The measurements; what misses its aim is noted."""

    def __init__(self, servers: Servers, load: Load, engine: Engine, seconds: float, rounds: int):
        self.servers, self.load, self.engine = servers, load, engine
        self.seconds, self.rounds = seconds, rounds
        self.missed: list[str] = []

    def aim(self, condition: bool, text: str) -> None:
        if not condition:
            self.missed.append(text)

    def measured(self, processes: list[int], ask: Callable[[], int]) -> list[float]:
        """Microseconds of each process for each request, the median of the rounds; and requests a second."""
        rows = []
        for _ in range(self.rounds):
            before, begun = [cpu(one) for one in processes], time.monotonic()
            count = ask()
            took = time.monotonic() - begun
            rows.append([1e6 * (cpu(one) - was) / count for one, was in zip(processes, before, strict=True)]
                        + [count / took])
        return [statistics.median(column) for column in zip(*rows, strict=True)]

    # What is measured

    def hits(self) -> None:
        engine_pid = self.engine.process.pid  # type: ignore[union-attr]
        with running(configuration(self.engine.url, self.servers.origin)) as gateway:
            wait_shared(gateway)
            port = gateway.proxy[1]
            self.load.wrk(port, "/1k/", 2)
            until(lambda: gateway.metric("pinfold_cache_shared_queue_commands") == 0, "all is stored")
            before, counts = shared_count(gateway, "lookups", result="hit"), []

            def ask() -> int:
                counts.append(self.load.wrk(port, "/1k/", self.seconds))
                return counts[-1]

            own, engine, rate = self.measured([gateway.pid, engine_pid], ask)
            # Those that wrk did not wait for are answered, too.
            share = min(1, (shared_count(gateway, "lookups", result="hit") - before) / sum(counts))
            p50, p99 = self.load.latencies(port, self.seconds)
            print(f"a hit of 1 KiB in the engine: {own:.1f} µs of the gateway, {engine:.1f} µs of the engine, "
                  f"{rate:,.0f}/s; p50 {p50:.2f} ms, p99 {p99:.2f} ms at 2,000/s; "
                  f"{100 * share:.1f} % were hits there", flush=True)
            self.aim(own <= 10, f"{own:.1f} µs for a hit, more than 10")
            self.aim(p99 < 1, f"p99 of {p99:.2f} ms")
            self.aim(share > 0.99, f"{100 * share:.1f} % hits")
        with running(configuration(None, self.servers.origin, memory="64MiB")) as gateway:
            port = gateway.proxy[1]
            self.load.wrk(port, "/1k/", 2)
            own, rate = self.measured([gateway.pid], lambda: self.load.wrk(port, "/1k/", self.seconds))
            print(f"a hit of 1 KiB in the gateway's memory: {own:.1f} µs, {rate:,.0f}/s", flush=True)
        peer = child(self.servers.nginx.pid)
        own, memcached, rate = self.measured(
            [peer, self.servers.memcached.pid],
            lambda: self.load.wrk(self.servers.peer, "/1k/", self.seconds))
        p50, p99 = self.load.latencies(self.servers.peer, self.seconds)
        print(f"nginx with memcached_pass: {own:.1f} µs of nginx, {memcached:.1f} µs of memcached, {rate:,.0f}/s; "
              f"p50 {p50:.2f} ms, p99 {p99:.2f} ms at 2,000/s", flush=True)

    def fill(self) -> None:
        with running(configuration(self.engine.url, self.servers.origin, workers=2)) as gateway:
            wait_shared(gateway)
            self.engine.command("CONFIG", "SET", "maxmemory", "512mb")
            self.engine.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
            port = gateway.proxy[1]
            self.load.wrk(port, "/16k/", 2, fresh=True)
            stores, skipped = shared_count(gateway, "stores"), shared_count(gateway, "stores_skipped")
            thread, whole, begun = thread_cpu(gateway.pid, "shared-cache"), cpu(gateway.pid), time.monotonic()
            count = self.load.wrk(port, "/16k/", max(10, self.seconds), fresh=True)
            until(lambda: gateway.metric("pinfold_cache_shared_queue_commands") == 0, "all is stored", 30)
            took = time.monotonic() - begun
            stores = shared_count(gateway, "stores") - stores
            skipped = shared_count(gateway, "stores_skipped") - skipped
            each = 1e6 * (thread_cpu(gateway.pid, "shared-cache") - thread) / max(1, stores)
            print(f"stores of 16 KiB: {stores / took:,.0f}/s for {took:.0f} s, {each:.1f} µs of the thread for "
                  f"each ({1e6 * (cpu(gateway.pid) - whole) / count:.1f} µs of the gateway for each request); "
                  f"{skipped:.0f} of {count:,} were not stored", flush=True)
            self.aim(stores / took >= 10_000, f"{stores / took:,.0f} stores a second")
            self.aim(skipped == 0, f"{skipped:.0f} responses were not stored")
            self.engine.command("FLUSHALL")
            self.engine.command("CONFIG", "SET", "maxmemory", "0")

    def publishing(self) -> None:
        """What a worker's loop does for a response of 16 KiB that is stored in the engine as well."""
        rows: dict[str, list[float]] = {"without": [], "with": []}
        with contextlib.ExitStack() as stack:
            gateways = {
                name: stack.enter_context(running(
                    configuration(url, self.servers.origin, memory="64MiB")))
                for name, url in (("without", None), ("with", self.engine.url))}
            wait_shared(gateways["with"])
            self.engine.command("CONFIG", "SET", "maxmemory", "512mb")
            self.engine.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
            for turn in range(2 * self.rounds + 1):
                for name, gateway in gateways.items():
                    before = thread_cpu(gateway.pid, "worker-0")
                    count = self.load.wrk(gateway.proxy[1], "/16k/", self.seconds / 2, fresh=True)
                    if turn:
                        rows[name].append(1e6 * (thread_cpu(gateway.pid, "worker-0") - before) / count)
                until(lambda: gateways["with"].metric("pinfold_cache_shared_queue_commands") == 0, "all is stored", 30)
            self.engine.command("FLUSHALL")
            self.engine.command("CONFIG", "SET", "maxmemory", "0")
        without, with_engine = (statistics.median(rows[name]) for name in ("without", "with"))
        share = with_engine - without
        print(f"a response of 16 KiB that is fetched and stored: {without:.1f} µs of the worker without "
              f"cache.shared, {with_engine:.1f} µs with it: {share:.1f} µs for looking there and publishing", flush=True)
        self.aim(share <= 10, f"{share:.1f} µs of the worker for publishing, more than 10")

    def away(self) -> None:
        rows: dict[str, list[float]] = {"without": [], "away": []}
        with contextlib.ExitStack() as stack:
            gateways = {
                "without": stack.enter_context(running(configuration(None, self.servers.origin))),
                "away": stack.enter_context(running(
                    configuration(f"redis://127.0.0.1:{free_port()}", self.servers.origin)))}
            for turn in range(2 * self.rounds + 1):
                for name, gateway in gateways.items():
                    before = cpu(gateway.pid)
                    count = self.load.wrk(gateway.proxy[1], "/1k/", self.seconds / 2, fresh=True)
                    if turn:
                        rows[name].append(1e6 * (cpu(gateway.pid) - before) / count)
        without, away = (statistics.median(rows[name]) for name in ("without", "away"))
        print(f"a request to the origin: {without:.2f} µs without cache.shared, {away:.2f} µs with an engine "
              f"that is away ({100 * (away / without - 1):+.1f} %)", flush=True)
        self.aim(away < without * 1.03, f"an engine that is away costs {away - without:.2f} µs")

    def one(self) -> None:
        control = apart(serve_slowly)
        port = control.recv()
        with contextlib.ExitStack() as stack:
            gateways = [
                stack.enter_context(running(configuration(self.engine.url, port, memory="64MiB")))
                for _ in range(3)]
            for gateway in gateways:
                wait_shared(gateway)
            begun = time.monotonic()
            share = -(-CLIENTS // len(gateways))
            loads = [subprocess.Popen(
                # A response is of the host that the request names.
                ["h2load", "--h1", "-t1", f"-c{share}", f"-n{share}", "-T60s",
                 f"--connect-to=127.0.0.1:{gateway.proxy[1]}", "http://fleet.test/one"],
                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for gateway in gateways]
            answered = 0
            for load in loads:
                output = load.communicate()[0]
                found = re.search(r"(\d+) succeeded, (\d+) failed", output)
                assert found, output
                answered += int(found[1])
            took = time.monotonic() - begun
            control.send("asked")
            asked = control.recv()
        print(f"{CLIENTS} clients at three gateways, one object of 1 MiB: the origin was asked {asked} times, "
              f"{answered} answers within {took:.1f} s", flush=True)
        self.aim(asked == 1, f"the origin was asked {asked} times for one object")
        self.aim(answered >= CLIENTS, f"{CLIENTS - answered} clients had no answer")


def serve_slowly(control) -> None:
    """An origin of 1 MiB, which it takes a second to send; in a process of its own."""
    asked = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                asked += 1
                writer.write(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 1048576\r\n\r\n")
                for _ in range(16):
                    writer.write(b"x" * 65536)
                    await writer.drain()
                    await asyncio.sleep(1 / 16)

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
        control.send(server.sockets[0].getsockname()[1])

        def reply() -> None:
            try:
                control.recv()
                control.send(asked)
            except (EOFError, OSError):
                os._exit(0)

        asyncio.get_running_loop().add_reader(control.fileno(), reply)
        await server.serve_forever()

    asyncio.run(run())


@contextlib.contextmanager
def surrounded() -> Iterator[tuple[Servers, Load, Engine]]:
    global KEY
    with tempfile.TemporaryDirectory(prefix="pinfold-shared-") as name:
        folder = Path(name)
        key = folder / "fleet.key"
        key.write_text(os.urandom(32).hex() + "\n")
        key.chmod(0o600)
        KEY = str(key)
        (folder / "servers").mkdir()
        servers, engine = Servers(folder / "servers"), Engine(folder / "engine")
        try:
            yield servers, Load(folder), engine
        finally:
            engine.stop()
            servers.end()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("hits", "fill", "publishing", "away", "one"))
    parser.add_argument("--seconds", type=float, default=8, help="of each round (8)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--binary", help="the gateway")
    options = parser.parse_args()
    for program in ("nginx", "memcached", "wrk", "h2load", "redis-server"):
        if shutil.which(program) is None:
            parser.error(f"{program} is not installed")
    raise_descriptor_limit()
    with surrounded() as (servers, load, engine):
        bench = Bench(servers, load, engine, options.seconds, options.rounds)
        for kind in (bench.hits, bench.fill, bench.publishing, bench.away, bench.one):
            if options.only in (None, kind.__name__):
                kind()
    for text in bench.missed:
        print(f"missed: {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
