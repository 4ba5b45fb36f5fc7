"""Counts the instructions per request, and compares them with checked-in ceilings.

Time differs from run to run and from machine to machine, but the number of instructions that the
gateway executes per request hardly does (less than 1 %). It can therefore have a ceiling, so that a
change that makes requests more expensive is noticed before it is merged. Only user space is counted,
not the kernel: an additional system call hardly shows here, but it does in the times of
deploy/compare.

Loads, each on 64 kept-alive client connections of a proxy with one worker, on loopback:

  hit      1 KiB from the cache's memory
  lone     the same on one connection, so that each request takes its own iteration of the event loop
  hit100k  100 KiB from the cache's memory
  pass     1 KiB that must not be stored, so that each request goes to the server
  tlspass  the same, over verified TLS to the server; the share of OpenSSL is shown
  ruled    hit, behind ten rules of access of which none matches
  paths    hit, of a host with rules of the cache for ten paths, of which the last matches
  pathpass pass, of the same host
  proved   hit, by a client that proves who it is with a password that was checked before
  route    pass, by a reverse proxy with one server
  balance  the same with two servers

The gateway runs under callgrind. It is warmed up until the cache is filled and all connections to
the server are established, and then left until it is idle. Then the counters are set to zero, the
requests are sent, and the counters are read. The requests are sent in rounds, one on each connection,
while the gateway is stopped. So it finds them all at once, and the cost of an iteration of its event
loop is always shared by the same number of requests; a single connection does not need this. Each
response is checked. The instructions that memcpy and the ciphers use depend on the processor, so one
without AES or AVX2 gives other numbers, and so may other versions of the system's libraries.

To raise a ceiling, write the new measurement plus 3 % to deploy/bench/ceilings, and explain in the
commit what the instructions are needed for. When a change makes a load cheaper, lower its ceiling.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import re
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from costs import Failure, by_object, ceilings, complaint, hint, report

HERE = Path(__file__).resolve().parent
CEILINGS = HERE / "ceilings"
CONNECTIONS = 64
END = b"\r\n\r\n"


@dataclass(frozen=True)
class Load:
    size: int
    stored: bool = False
    tls: bool = False
    rounds: int = 150
    connections: int = CONNECTIONS
    rules: str = ""
    paths: str = ""
    proof: str = ""
    servers: int = 0  # of a reverse proxy; 0: a forward proxy

    @property
    def requests(self) -> int:
        return self.rounds * self.connections

    def configured(self, text: str, ports: list[int]) -> str:
        """deploy/bench/pinfold.yaml with what the load needs besides, for servers at these ports."""
        urls = [f"http://127.0.0.1:{port}" for port in ports]
        if self.servers == 1:
            text = text.replace("kind: forward", f'kind: reverse, upstream: "{urls[0]}"')
        elif self.servers:
            servers = ", ".join(f'{{ url: "{url}" }}' for url in urls)
            text = text.replace(
                "kind: forward", f"kind: reverse, upstreams: {{ servers: [{servers}] }}")
        text = text.replace("access:\n", f"access:\n{self.rules}")
        text = text.replace("hosts:\n", f"hosts:\n{self.paths}")
        if self.proof:
            text = text.replace("kind: forward", "kind: forward, authentication: [basic]")
            text += "authentication: { realm: bench, users: users }\n"
        return text


# Of every kind of condition, none of which holds.
RULES = """  rules:
    - { name: clients, clients: ["10.0.0.0/8", "192.168.0.0/16"], action: deny }
    - { name: listeners, listeners: [bench], methods: [POST], action: deny }
    - { name: hosts, hosts: ["**.example.com", "www.example.org"], action: deny }
    - { name: ports, ports: [25, 8443], action: deny }
    - { name: methods, methods: [PUT, DELETE], action: deny }
    - { name: paths, hosts: ["127.0.0.2"], paths: ["/v1/**"], action: deny }
    - { name: all, hosts: ["**.example.net"], methods: [GET], ports: [443], action: allow }
    - { name: reports, hosts: ["*.example.com"], action: report }
    - { name: addresses, hosts: ["192.0.2.1"], action: deny }
    - { name: more, clients: ["172.16.0.0/12"], hosts: ["**"], action: deny }
"""
# The last one applies.
PATHS = """  - match: ["127.0.0.1"]
    cache: { staleIfError: 1d }
    paths:
""" + "".join(f"      - {{ match: [{match}], cache: {{ freshness: {{ maximum: {hours}h }} }} }}\n"
              for hours, match in enumerate([
                  "/static/**", "/api/v1/**", "/api/v2/items", '"/img/*.png"', '"/**/*.css"',
                  "/assets/fonts/**", "/news/2026/**", "/feed", "/health", '"/**"'], 1))
# `ann` with the password `open sesame`, and its hash by bcrypt.
PROOF = "Proxy-Authorization: Basic YW5uOm9wZW4gc2VzYW1l\r\n"
USERS = "ann:$2y$04$abcdefghijklmnopqrstuu/LVz6MZlItEy42I2juLihZ66HnQx/cy\n"

LOADS = {
    "hit": Load(1024, stored=True),
    "lone": Load(1024, stored=True, rounds=3000, connections=1),
    "hit100k": Load(102_400, stored=True, rounds=50),
    "pass": Load(1024),
    "tlspass": Load(1024, tls=True),
    "ruled": Load(1024, stored=True, rules=RULES),
    "paths": Load(1024, stored=True, paths=PATHS),
    "pathpass": Load(1024, paths=PATHS),
    "proved": Load(1024, stored=True, proof=PROOF),
    "route": Load(1024, servers=1),
    "balance": Load(1024, servers=2),
}


# The server


class Origin:
    """Answers every request with the same response; counts connections.

    The first request of each connection is answered when as many connections stand as `gate` says,
    so that the gateway has to make them all.
    """

    def __init__(self, load: Load, context: ssl.SSLContext | None, gate: int):
        control = "max-age=3600" if load.stored else "no-store"
        head = (
            "HTTP/1.1 200 OK\r\nServer: origin\r\nContent-Type: text/plain\r\n"
            f"Cache-Control: {control}\r\nContent-Length: {load.size}\r\n"
            f"Date: {time.strftime('%a, %d %b %Y %H:%M:%S GMT', time.gmtime())}\r\n\r\n")
        self.response = head.encode() + b"x" * load.size
        self.context = context
        self.barrier = threading.Barrier(gate)
        self.accepted = 0
        self.listeners = [socket.create_server(("127.0.0.1", 0), backlog=2 * load.connections)
                          for _ in range(max(1, load.servers))]
        self.ports = [listener.getsockname()[1] for listener in self.listeners]
        self.port = self.ports[0]
        for listener in self.listeners:
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def close(self) -> None:
        for listener in self.listeners:
            listener.close()

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                self.accepted += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, threading.BrokenBarrierError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.context:
                connection = self.context.wrap_socket(connection, server_side=True)
            received, waited = b"", False
            while data := connection.recv(65536):
                received += data
                while END in received:
                    received = received.partition(END)[2]
                    if not waited:
                        self.barrier.wait(60)
                        waited = True
                    connection.sendall(self.response)


def authority(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """An authority's certificate, and the context of a server on `localhost` that it certified."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout"]
    openssl("req", "-x509", *key, "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=bench",
            "-addext", "basicConstraints=critical,CA:true")
    openssl("req", *key, "leaf.key", "-out", "leaf.csr", "-subj", "/CN=localhost")
    (folder / "names").write_text("subjectAltName=DNS:localhost\n")
    openssl("x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-out", "leaf.pem", "-days", "2", "-extfile", "names")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "leaf.pem", folder / "leaf.key")
    return folder / "ca.pem", context


# The gateway


class Gateway:
    """The gateway under callgrind, on deploy/bench/pinfold.yaml."""

    def __init__(self, binary: Path, folder: Path, load: Load, origin: Origin, roots: Path):
        self.folder = folder
        tls_port = origin.port if load.tls else 1
        text = load.configured((HERE / "pinfold.yaml").read_text(), origin.ports)
        (folder / "users").write_text(USERS)
        for name, value in {"PORT": 0, "DIR": folder, "TLS": tls_port, "CA": roots}.items():
            text = text.replace(f"@{name}@", str(value))
        (folder / "pinfold.yaml").write_text(text)
        self.log = folder / "log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["valgrind", "--tool=callgrind", "--separate-threads=yes",
                 f"--callgrind-out-file={folder}/profile",
                 str(binary), "run", "--config", "pinfold.yaml"],
                cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def port(self) -> int:
        """The port on which it listens, once it does."""
        pattern = re.compile(r"listening address=127\.0\.0\.1:(\d+) listener=bench\b")
        return int(until(lambda: pattern.search(self._text()), "it listens", self.process)[1])

    def rest(self) -> None:
        """Returns when it has used no processor time for half a second: nothing is left to do."""
        last = [-1]

        def rests() -> bool:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
            before, last[0] = last[0], int(fields[11]) + int(fields[12])
            return before == last[0]

        until(rests, "it rests", self.process, every=0.5)

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """What arrives meanwhile it finds all at once when it goes on."""
        self.process.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            raise Failure("the gateway ended")
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def zero(self) -> None:
        self._control("--zero")

    def profiles(self) -> list[Path]:
        """What each thread did since `zero`, except for the main thread: it serves no requests, and
        tidies up whenever it was stopped."""
        self._control("--dump")
        threads = len(os.listdir(f"/proc/{self.process.pid}/task"))

        def written() -> list[Path]:
            files = sorted(self.folder.glob("profile.1-*"))
            whole = all("\ntotals: " in file.read_text() for file in files)
            return files if whole and len(files) >= threads else []

        return until(written, "the profiles are written", self.process)[1:]

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _control(self, command: str) -> None:
        subprocess.run(["callgrind_control", command, str(self.process.pid)],
                       check=True, capture_output=True, timeout=60)

    def _text(self) -> str:
        return self.log.read_text(errors="replace")


def until(condition: Callable, what: str, process: subprocess.Popen, every: float = 0.1):
    """The first result of `condition` that counts as true; within two minutes."""
    end = time.monotonic() + 120
    while not (result := condition()):
        if process.poll() is not None:
            raise Failure(f"waiting until {what}, but the gateway ended with {process.returncode}")
        if time.monotonic() > end:
            raise Failure(f"waited two minutes until {what}")
        time.sleep(every)
    return result


# The clients


class Clients:
    """Kept-alive connections, each with one request on its way at a time."""

    def __init__(self, port: int, authority: str, load: Load):
        target = "/" if load.servers else f"http://{authority}/"
        self.request = (f"GET {target} HTTP/1.1\r\nHost: {authority}\r\n"
                        f"User-Agent: bench\r\n{load.proof}\r\n").encode()
        self.load = load
        self.poll = select.epoll()
        self.sockets: dict[int, socket.socket] = {}
        for _ in range(load.connections):
            one = socket.create_connection(("127.0.0.1", port), 60)
            self.sockets[one.fileno()] = one
            self.poll.register(one, select.EPOLLIN)

    def ask(self, expected: bytes, stopped: Callable = contextlib.nullcontext) -> None:
        """A request on each connection, sent within `stopped`, and its response on each, which must
        say `expected` in its head."""
        with stopped():
            for one in self.sockets.values():
                one.sendall(self.request)
        received = {number: bytearray() for number in self.sockets}
        while received:
            events = self.poll.poll(60)
            if not events:
                raise Failure(f"no response for a minute on {len(received)} connections")
            for number, _ in events:
                data = self.sockets[number].recv(1 << 20)
                response = received.get(number, bytearray())
                response += data
                if self._is_whole(response, expected, ended=not data):
                    del received[number]

    def fill(self) -> None:
        """One request alone, whose response is stored."""
        one = next(iter(self.sockets.values()))
        one.sendall(self.request)
        response = bytearray()
        while not self._is_whole(response, b"; fwd=", ended=False):
            data = one.recv(1 << 20)
            response += data
            self._is_whole(response, b"; fwd=", ended=not data)

    def _is_whole(self, response: bytearray, expected: bytes, ended: bool) -> bool:
        head = response.find(END)
        whole = head >= 0 and len(response) == head + len(END) + self.load.size
        wrong = head >= 0 and not (
            response.startswith(b"HTTP/1.1 200 ") and expected in response[:head])
        if wrong or ended and not whole:
            raise Failure(f"unexpected response: {bytes(response[:600])!r}")
        return whole

    def close(self) -> None:
        self.poll.close()
        for one in self.sockets.values():
            one.close()


# One measurement


def measure(binary: Path, load: Load, folder: Path) -> list[Path]:
    """The profiles of all requests of a load, one of each thread; they are in `folder`."""
    roots, context = authority(folder)
    origin = Origin(load, context if load.tls else None, 1 if load.stored else load.connections)
    gateway = Gateway(binary, folder, load, origin, roots)
    try:
        name = f"localhost:{origin.port}" if load.tls else f"127.0.0.1:{origin.port}"
        clients = Clients(gateway.port(), name, load)
        if load.stored:
            clients.fill()
        expected = b"; hit" if load.stored else b"; fwd="
        gateway.rest()
        for _ in range(8):
            clients.ask(expected)
        gateway.rest()
        accepted = origin.accepted
        together = gateway.stopped if load.connections > 1 else contextlib.nullcontext
        gateway.zero()
        for _ in range(load.rounds):
            clients.ask(expected, together)
        profiles = gateway.profiles()
        if origin.accepted != accepted:
            raise Failure("the gateway made connections to the server meanwhile")
        clients.close()
        return profiles
    except (Failure, OSError, subprocess.SubprocessError) as problem:
        raise Failure(f"{problem}\n{gateway.log.read_text(errors='replace')[-3000:]}") from None
    finally:
        gateway.stop()
        origin.close()


@contextlib.contextmanager
def stripped(binary: Path) -> Iterator[Path]:
    """A copy without debugging information, which the valgrind of Debian 12 cannot read."""
    with tempfile.TemporaryDirectory(prefix="pinfold-bench-") as folder:
        copy = Path(folder) / "pinfold"
        shutil.copy(binary, copy)
        subprocess.run(["strip", "-g", str(copy)], check=True)
        yield copy


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=Path, help="a release build")
    parser.add_argument("--loads", default=",".join(LOADS), help="a comma-separated list")
    parser.add_argument("--profiles", type=Path, metavar="FOLDER",
                        help="keep the profiles here, for callgrind_annotate FOLDER/LOAD-THREAD")
    parser.add_argument("--junitxml", type=Path, metavar="FILE",
                        help="write a report in which each load is a test")
    options = parser.parse_args()
    names = options.loads.split(",")
    if unknown := [name for name in names if name not in LOADS]:
        parser.error(f"unknown load {unknown[0]}; expected one of {', '.join(LOADS)}")
    problems: dict[str, str | None] = {}
    try:
        allowed = ceilings(CEILINGS.read_text(), LOADS)
        print(f"{'load':8}  {'instructions':>12}  {'ceiling':>8}  of these OpenSSL", flush=True)
        with stripped(options.binary) as binary:
            for name in names:
                problems[name] = check(binary, name, options.profiles, allowed[name])
    except Failure as problem:
        problems = dict.fromkeys(names, str(problem))
    for problem in dict.fromkeys(filter(None, problems.values())):
        print(f"error: {problem}", file=sys.stderr)
    if options.junitxml:
        options.junitxml.write_text(report(problems))
    return 1 if any(problems.values()) else 0


def check(binary: Path, name: str, profiles: Path | None, ceiling: int) -> str | None:
    """Measures a load; returns what is wrong with the measurement."""
    try:
        return complaint(name, run(binary, name, profiles, ceiling), ceiling)
    except Failure as problem:
        return f"{name}: {problem}"


def run(binary: Path, name: str, profiles: Path | None, ceiling: int) -> int:
    """Measures a load, prints its line, and returns the instructions of one request."""
    load = LOADS[name]
    with tempfile.TemporaryDirectory(prefix="pinfold-bench-") as folder:
        costs: collections.Counter[str] = collections.Counter()
        for file in measure(binary, load, Path(folder)):
            costs.update(by_object(file.read_text()))
            if profiles:
                profiles.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, profiles / f"{name}-{file.name[-2:]}")
    measured = costs.total() // load.requests
    openssl = sum(cost for file, cost in costs.items() if re.match("lib(ssl|crypto)", file))
    share = f"{openssl // load.requests:,}" if openssl else "–"
    print(f"{name:8}  {measured:12,}  {ceiling:8,}  {share:>16}", flush=True)
    if text := hint(name, measured, ceiling):
        print(text, flush=True)
    return measured


if __name__ == "__main__":
    sys.exit(main())
