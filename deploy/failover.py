"""Proves that failover loses nothing that can be repeated, and repeats nothing that may not be.

A reverse listener divides requests among four servers, another one among two with TLS and pins, and a forward
listener has two parents (gateways, too). Clients with kept connections send GET and POST, each with a number of
its own; every server writes down the numbers that it gets. Meanwhile, one thing at a time:

  shares   nothing; how many of the requests each server gets, by its weight (2, 1, 1, 1)
  kill     a server is killed (SIGKILL), and started again half a second later; another one each time
  hang     a server stops (SIGSTOP) for two seconds
  reset    a server resets one of ten connections after it has read the request
  moving   a name's address changes: the server is killed, and another one is started there
  pins     a server comes back with another key: it must not see a request
  return   a server comes back after a while, and gets its share little by little (slowStart)
  parents  a parent is killed, and started again a second later; the next time the other

A GET that is not answered with what was asked for is lost, unless it was under way in a parent that was killed: what
a parent was sent as a whole is not repeated on another way. A POST that fails is counted, and is no loss: a
server may have carried it out. A number that servers wrote down twice for a POST was repeated.

The status is 1 if anything was lost or repeated, if a server without the pinned key was sent a request, or, unless there
are fewer than 20,000 requests, if shares are wrong. With so few, time-outs are long, for machines that are busy with
something else.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "Tests/Integration"))
# Where the support finds the gateway is decided when it is imported.
for argument, following in zip(sys.argv, [*sys.argv[1:], ""]):
    if argument == "--binary" or argument.startswith("--binary="):
        os.environ["PINFOLD_BINARY"] = argument.partition("=")[2] or following

from support.dns import NameServer  # noqa: E402
from support.gateway import CRASH, Gateway, free_port  # noqa: E402
from support.pki import Certificate, root  # noqa: E402
from support.wait import until  # noqa: E402

CLIENTS = 16
RATE, QUICK_RATE = 1600, 300  # requests a second, of all clients


class Serve(asyncio.Protocol):
    """A server, in a process of its own: answers each request with its name and the request's number, and
    writes the number down first."""

    name, log, resets, seen = "", -1, False, 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data
        while (end := self.data.find(b"\r\n\r\n")) >= 0:
            head, length = self.data[:end], 0
            for line in head.split(b"\r\n")[1:]:
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if len(self.data) < end + 4 + length:
                return
            self.data = self.data[end + 4 + length:]
            method, target, _ = head.split(b"\r\n")[0].split(b" ")
            self.answer(method, target)

    def answer(self, method: bytes, target: bytes) -> None:
        if target != b"/health":
            os.write(Serve.log, target[1:] + b" " + method + b"\n")
            Serve.seen += 1
            if Serve.resets and Serve.seen % 10 == 0:
                sock = self.transport.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return self.transport.abort()
        body = Serve.name.encode() + b" " + target[1:]
        self.transport.write(b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: %d\r\n\r\n"
                             % len(body) + body)


def serve(name: str, address: str, port: int, log: str, chain: str = "", key: str = "") -> None:
    async def run() -> None:
        context = None
        if chain:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(chain, key)
        loop = asyncio.get_running_loop()
        # It ends with the process that has started it.
        loop.add_reader(0, lambda: os._exit(0))
        loop.add_signal_handler(signal.SIGUSR1, lambda: setattr(Serve, "resets", not Serve.resets))
        server = await loop.create_server(Serve, address, port, ssl=context, backlog=512)
        await server.serve_forever()

    Serve.name = name
    Serve.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    asyncio.run(run())


class Server:
    """Such a process, which can be killed and started again."""

    def __init__(self, folder: Path, name: str, leaf: Certificate | None = None):
        self.name, self.leaf = name, leaf
        self.address, self.port = "127.0.0.1", free_port()
        self.log = folder / f"{name}.requests"
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        pair = [str(self.leaf.chain_file()), str(self.leaf.key_file)] if self.leaf else []
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", self.name, self.address, str(self.port),
             str(self.log), *pair], stdin=subprocess.PIPE)
        until(self.accepts, f"{self.name} listens")

    def accepts(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((self.address, self.port), 1):
            return True
        return False

    def signal(self, number: int) -> None:
        if self.process:
            self.process.send_signal(number)

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def numbers(self) -> list[tuple[int, str]]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [(int(number), method) for number, _, method in (line.partition(" ") for line in lines)]


class Client(threading.Thread):
    """Sends requests one after the other on a connection."""

    def __init__(self, load: Load, address: tuple[str, int]):
        super().__init__(daemon=True)
        self.load, self.address = load, address
        self.socket: socket.socket | None = None
        self.start()

    def run(self) -> None:
        due = time.monotonic()
        while (number := self.load.next()) is not None:
            method = "POST" if number % 5 == 0 else "GET"
            try:
                status, body = self.exchange(method, number)
            except OSError as error:
                status, body = 0, f"{error}"
                self.close()
            self.load.finished(number, method, status, body)
            due = max(due + CLIENTS / self.load.rate, time.monotonic() - 0.1)
            time.sleep(max(0, due - time.monotonic()))
        self.close()

    def close(self) -> None:
        if self.socket:
            self.socket.close()
            self.socket = None

    def exchange(self, method: str, number: int) -> tuple[int, str]:
        body = "x" * 10 if method == "POST" else ""
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        data = f"{method} {self.load.base}/{number} HTTP/1.1\r\nHost: {self.load.host}\r\n{length}\r\n{body}"
        if not self.socket:
            self.socket = socket.create_connection(self.address, 30)
        self.socket.sendall(data.encode())
        received = b""
        while b"\r\n\r\n" not in received:
            received += self.more()
        head, _, content = received.partition(b"\r\n\r\n")
        fields = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:])
        while len(content) < int(fields["content-length"]):
            content += self.more()
        if fields.get("connection") == "close":
            self.close()
        return int(head.split(b" ")[1]), content.decode()

    def more(self) -> bytes:
        if not self.socket or not (data := self.socket.recv(1 << 16)):
            raise ConnectionError("closed")
        return data


class Load:
    """So many requests to a listener, and what became of them."""

    def __init__(self, address: tuple[str, int], numbers: range, rate: int, base: str, host: str):
        self.rate, self.base, self.host = rate, base, host
        self.numbers = iter(numbers)
        self.lock = threading.Lock()
        self.by: collections.Counter[str] = collections.Counter()
        self.latest: collections.deque[tuple[float, str]] = collections.deque(maxlen=RATE * 30)
        self.lost: list[str] = []
        self.failed: dict[int, int] = {}
        self.longest = 0.0
        self.clients = [Client(self, address) for _ in range(CLIENTS)]

    def next(self) -> int | None:
        with self.lock:
            return next(self.numbers, None)

    def finished(self, number: int, method: str, status: int, body: str) -> None:
        with self.lock:
            name, _, said = body.partition(" ")
            if status == 200 and said == str(number):
                self.by[name] += 1
                self.latest.append((time.monotonic(), name))
            elif method == "GET":
                self.lost.append(f"GET {number}: {status} {body[:160]!r}")
            elif status == 200 or status == 0:
                self.lost.append(f"POST {number}: {status} {body[:160]!r}")
            else:
                self.failed[number] = status

    def is_running(self) -> bool:
        return any(client.is_alive() for client in self.clients)

    def wait(self, seconds: float) -> bool:
        """Waits as long as there are requests; whether there still are some."""
        end = time.monotonic() + seconds
        while self.is_running() and time.monotonic() < end:
            time.sleep(0.01)
        return self.is_running()

    def share(self, name: str, begin: float, end: float) -> float:
        """The part of the answers in this time that are a server's."""
        with self.lock:
            names = [one for moment, one in self.latest if begin <= moment < end]
        return names.count(name) / max(1, len(names))


class Trial:
    def __init__(self, folder: Path, requests: int):
        self.folder, self.requests = folder, requests
        self.is_quick = requests < 20_000
        # Of the times between faults.
        self.pace = 0.3 if self.is_quick else 1.0
        self.names = NameServer()
        self.authority = root(folder, "authority")
        self.plain = [Server(folder, name) for name in "abcd"]
        self.pinned = [Server(folder, f"{name}s", self.authority.issue(f"{name}.pinned.test"))
                       for name in "xy"]
        self.names.set("d.plain.test", "127.0.0.1", ttl=1)
        self.parents = [self.gateway(f"parent{number}", {
            "listeners": [{"name": "proxy", "address": f"127.0.0.1:{free_port()}",
                           "kind": "forward"}]}) for number in (1, 2)]
        for parent in self.parents:
            parent.start()
        self.running = self.gateway("gateway", self.configuration())
        self.running.start()
        self.begun = 0
        self.faults: list[str] = []

    def gateway(self, name: str, more: dict) -> Gateway:
        folder = self.folder / name
        folder.mkdir()
        return Gateway(folder, {
            "workers": 2, "admin": {"address": "127.0.0.1:0"},
            "access": {"clients": ["127.0.0.0/8"], "connectPorts": "any",
                       "destinations": {"allow": ["127.0.0.0/8", "**.test"]}},
            "resolver": {"servers": [self.names.address]},
            "cache": {"enabled": False}, "log": {"level": "info"}, **more}, [])

    def configuration(self) -> dict:
        ejection = {"ejection": {"failures": 5, "period": "1s"}}
        patience = "3s" if self.is_quick else "200ms"
        checks = {"health": {"path": "/health", "interval": patience, "timeout": patience, "fall": 2}}
        servers = [{"url": f"http://{one.name}.plain.test:{one.port}"} for one in self.plain]
        servers[0]["weight"] = 2
        pinned = [{"url": f"https://{one.name[0]}.pinned.test:{one.port}"} for one in self.pinned]
        first, second = (parent.config["listeners"][0]["address"] for parent in self.parents)
        return {
            "listeners": [
                {"name": name, "address": "127.0.0.1:0", "kind": "reverse",
                 "upstreams": {"servers": chosen, "balance": balance, **ejection, **keys}}
                for name, balance, chosen, keys in (
                    ("least", "leastRequests", servers, checks), ("turns", "roundRobin", servers, checks),
                    ("slow", "roundRobin", servers, {**checks, "slowStart": "4s"}),
                    ("pinned", "leastRequests", pinned, {}))]
            + [{"name": "forward", "address": "127.0.0.1:0", "kind": "forward"}],
            "parents": {"one": {"url": f"http://{first}"}, "two": {"url": f"http://{second}"}},
            "ways": {"parents": ["one", "two"], "noProxy": ["**.plain.test", "**.pinned.test"]},
            "timeouts": {"firstByte": "10s", "connect": "5s"} if self.is_quick else {
                "firstByte": "500ms", "connect": "500ms"},
            "hosts": [{"match": [f"{one.name[0]}.pinned.test"], "pinsets": [one.name]}
                      for one in self.pinned],
            "pinsets": {one.name: {"mode": "publicKey", "pins": [one.leaf.pin]}
                        for one in self.pinned if one.leaf},
            "tls": {"roots": [str(self.authority.pem_file)]}}

    @contextlib.contextmanager
    def load(self, name: str, listener: str, part: float, spared: int = 0,
             base: str = "", host: str = "front.test") -> Iterator[Load]:
        """Requests during the block, and until they are all answered; then what became of them."""
        count = int(self.requests * part)
        load = Load(self.running.listeners[listener], range(self.begun + 1, self.begun + count + 1),
                    QUICK_RATE if self.is_quick else RATE, base, host)
        self.begun += count
        began = time.monotonic()
        yield load
        until(lambda: not load.is_running(), f"all requests of {name} are answered", 600)
        written = collections.Counter(
            number for server in [*self.plain, *self.pinned] for number, method in server.numbers()
            if method == "POST" and self.begun - count < number <= self.begun)
        repeated = [number for number, times in written.items() if times > 1]
        nowhere = sum(number not in written for number in load.failed)
        print(f"{name:8}{count:8,} requests in {time.monotonic() - began:4.0f} s: {len(load.lost)} lost, "
              f"{len(repeated)} repeated, {len(load.failed)} POST failed ({nowhere} of them without a "
              f"trace); {', '.join(f'{one} {load.by[one]:,}' for one in sorted(load.by))}", flush=True)
        for line in load.lost[:5]:
            print(f"         {line}")
        if len(load.lost) > spared:
            self.faults.append(f"{name}: {len(load.lost)} lost")
        if repeated:
            self.faults.append(f"{name}: repeated {repeated[:5]}")

    def expect(self, what: str, value: float, least: float, most: float) -> None:
        print(f"         {what}: {value:.3f}, from {least} to {most}", flush=True)
        if not least <= value <= most and (not self.is_quick or most == 0):
            self.faults.append(f"{what}: {value:.3f}")

    # What happens

    def shares(self) -> None:
        for name, listener, margin in (("turns", "turns", 0.002), ("least", "least", 0.06)):
            with self.load(name, listener, 0.05) as load:
                load.wait(3600)
            for server, share in zip("abcd", (0.4, 0.2, 0.2, 0.2)):
                self.expect(f"{name}, share of {server}", load.by[server] / load.by.total(),
                            share - margin, share + margin)

    def kill(self) -> None:
        with self.load("kill", "least", 0.15) as load:
            turn = 0
            while load.wait(1.5 * self.pace):
                server = self.plain[turn % 4]
                server.kill()
                time.sleep(0.5 * self.pace)
                server.start()
                turn += 1

    def hang(self) -> None:
        with self.load("hang", "least", 0.12) as load:
            turn = 0
            while load.wait(2 * self.pace):
                server = self.plain[turn % 4]
                server.signal(signal.SIGSTOP)
                time.sleep(2 * self.pace)
                server.signal(signal.SIGCONT)
                turn += 1

    def reset(self) -> None:
        with self.load("reset", "least", 0.1) as load:
            self.plain[1].signal(signal.SIGUSR1)
            load.wait(3600)
        self.plain[1].signal(signal.SIGUSR1)

    def moving(self) -> None:
        server, turn = self.plain[3], 0
        with self.load("moving", "least", 0.12) as load:
            while load.wait(2 * self.pace):
                server.kill()
                server.address = f"127.0.0.{2 + turn % 2}"
                server.start()
                self.names.set("d.plain.test", server.address, ttl=1)
                turn += 1
        until(lambda: self.running.metric("pinfold_upstream_server_state", server=(
            f"http://d.plain.test:{server.port}"), listener="least", state="up") == 1,
            "the server that has moved is used again", 30)

    def pins(self) -> None:
        server, right = self.pinned[0], self.pinned[0].leaf
        with self.load("pins", "pinned", 0.08) as load:
            load.wait(self.pace)
            server.kill()
            before = len(server.numbers())
            server.leaf = self.authority.issue("x.pinned.test")
            server.start()
            load.wait(3 * self.pace)
            self.expect("requests to the wrong key", len(server.numbers()) - before, 0, 0)
            server.kill()
            server.leaf = right
            server.start()

    def slow_start(self) -> None:
        server = self.plain[2]
        label = {"server": f"http://c.plain.test:{server.port}", "listener": "slow"}
        if self.is_quick:
            return
        with self.load("return", "slow", 0.2) as load:
            server.kill()
            until(lambda: self.running.metric(
                "pinfold_upstream_server_state", state="down", **label) == 1, "it is down")
            server.start()
            until(lambda: self.running.metric(
                "pinfold_upstream_server_state", state="up", **label) == 1, "it is up")
            began = time.monotonic()
            is_judged = load.wait(1) and load.wait(5)
            if is_judged:
                self.expect("share in the first second", load.share("c", began, began + 1), 0, 0.12)
                self.expect(
                    "share after slowStart", load.share("c", began + 4.5, began + 6), 0.17, 0.23)
            elif self.requests >= 100_000:
                self.faults.append("return: the requests ended too early to judge the shares")

    def failing_parents(self) -> None:
        server = self.plain[0]
        base = f"http://a.forward.test:{server.port}"
        # What is under way in a parent that is killed is not repeated.
        kills = 0
        with self.load("parents", "forward", 0.13, spared=0, base=base,
                       host=base.removeprefix("http://")) as load:
            while load.wait(3 * self.pace):
                parent = self.parents[kills % 2]
                until(lambda: self.running.metric("pinfold_parent_up") == 2, "both parents are up", 30)
                parent.is_killed = True
                if parent.process:
                    parent.process.kill()
                    parent.process.wait()
                time.sleep(self.pace)
                parent.start()
                kills += 1
            spared = [line for line in load.lost if ": 502 " in line]
            if len(spared) > kills * CLIENTS:
                self.faults.append(f"parents: {len(spared)} lost by {kills} kills")
            load.lost = [line for line in load.lost if line not in spared]
            print(f"         {kills} kills; {len(spared)} that were under way in the parent")

    def run(self) -> None:
        kinds: list[Callable[[], None]] = [
            self.shares, self.kill, self.hang, self.reset, self.moving, self.pins, self.slow_start,
            self.failing_parents]
        for kind in kinds:
            kind()
        log = self.running.log()
        if CRASH.search(log):
            self.faults.append("a crash is in the log")
        print(f"{self.begun:,} requests; retries on another server: "
              f"{self.running.metric('pinfold_upstream_retries_total', reason='other_server'):,.0f}")

    def stop(self) -> None:
        for server in [*self.plain, *self.pinned]:
            server.kill()
        for gateway in [self.running, *self.parents]:
            gateway.stop()
        self.names.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", help="the gateway; PINFOLD_BINARY, or .build/release/pinfold")
    parser.add_argument("--requests", type=int, default=100_000, help="of all together (%(default)s)")
    parser.add_argument("--serve", nargs="+", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        name, address, port, *rest = chosen.serve
        serve(name, address, int(port), *rest)
        return 0
    with tempfile.TemporaryDirectory(prefix="pinfold-failover-") as folder:
        trial = Trial(Path(folder), chosen.requests)
        try:
            trial.run()
        finally:
            trial.stop()
    for fault in trial.faults:
        print(f"wrong: {fault}")
    print("nothing was lost or repeated" if not trial.faults else f"{len(trial.faults)} faults")
    return 1 if trial.faults else 0


if __name__ == "__main__":
    sys.exit(main())
