"""Proves that an upgrade loses nothing.

A server (nginx) has clients through the gateway, over and over replaced by another process (SIGUSR2):

  kept     requests on kept connections, 4,000 a second (hey)
  new      a connection for each request, 1,000 a second (hey)
  tls      requests over TLS on kept connections, 500 a second (hey)
  probe    a connection for each request, one after the other, whose time is taken
  tunnels  CONNECT, and what is sent comes back; each for some seconds
  sockets  connections that are upgraded to another protocol, likewise
  uploads  256 KiB in pieces over a second; the answer is the content's digest

Some upgrades fail on purpose: the program is another one, or ends, the configuration is wrong, or the new
process is killed (SIGKILL) after a number of milliseconds. A response that is missing, cut off or not the
right one, and a connection that is refused or reset, is counted. What a process that is killed after it
serves had accepted is lost with it; so a kill comes before that, and if it comes too late it is counted
apart.

The same load without tunnels, sockets and uploads runs through nginx (USR2 and QUIT) and HAProxy (-sf with
the listeners' descriptors) if --peers names them.

The status is 1 if the gateway lost anything.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONTENT = b"x" * 1024
KILLS = [2, 5, 10, 15, 20, 30, 40, 60, 80, 120]  # milliseconds after the start
READY = re.compile(r"the successor serves.* pid=(\d+)")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


def until(condition: Callable[[], object], what: str, timeout: float = 60) -> object:
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.005)
    raise SystemExit(f"not within {timeout} s: {what}")


def accepts(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class Server(threading.Thread):
    """What tunnels, upgraded connections and uploads lead to."""

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.socket.getsockname()[1]
        self.start()

    def run(self) -> None:
        while True:
            connection, _ = self.socket.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as file:
            while line := file.readline():
                if line.startswith(b"echo"):
                    connection.sendall(line)
                    continue
                fields = {}
                while (field := file.readline()) not in (b"\r\n", b""):
                    name, _, value = field.partition(b":")
                    fields[name.lower()] = value.strip()
                if b"upgrade" in fields:
                    connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
                                       b"Upgrade: echo\r\n\r\n")
                    continue
                if b"cut" in line:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 9000)
                    return
                body = file.read(int(fields.get(b"content-length", b"0")))
                digest = hashlib.sha256(body).hexdigest().encode()
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n" + digest)


class Clients:
    """Threads that do something over and over, and count what was lost."""

    def __init__(self):
        self.done: dict[str, int] = {}
        self.lost: dict[str, list[str]] = {}
        self.longest = 0.0
        self.ended = threading.Event()
        self.threads: list[threading.Thread] = []
        self.lock = threading.Lock()

    def run(self, name: str, count: int, body: Callable[[], None]) -> None:
        self.done[name], self.lost[name] = 0, []

        def loop() -> None:
            while not self.ended.is_set():
                problem = ""
                try:
                    body()
                except (OSError, ValueError) as error:
                    problem = repr(error)
                with self.lock:
                    if not problem:
                        self.done[name] += 1
                    else:
                        self.lost[name].append(f"{time.strftime('%H:%M:%S')} {problem}")

        for _ in range(count):
            thread = threading.Thread(target=loop, daemon=True)
            thread.start()
            self.threads.append(thread)

    def end(self) -> None:
        self.ended.set()
        for thread in self.threads:
            thread.join(30)


def head_of(file) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = file.readline()
        if not line:
            raise ValueError(f"closed after {head!r}")
        head += line
    return head


def probe(clients: Clients, port: int) -> None:
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), 30) as sock, sock.makefile("rb") as file:
        sock.sendall(b"GET /1k HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        head = head_of(file)
        body = file.read()
    if b" 200 " not in head or body != CONTENT:
        raise ValueError(f"answered {head[:60]!r}, {len(body)} bytes")
    clients.longest = max(clients.longest, time.monotonic() - begun)
    time.sleep(0.002)


def echo(port: int, request: bytes, status: bytes, seconds: float) -> None:
    with socket.create_connection(("127.0.0.1", port), 30) as sock, sock.makefile("rb") as file:
        sock.sendall(request)
        head = head_of(file)
        if status not in head:
            raise ValueError(f"answered {head[:80]!r}")
        end = time.monotonic() + seconds
        number = 0
        heard = time.monotonic()
        while time.monotonic() < end:
            line = b"echo %d\n" % number
            # While the old process finishes, a tunnel may be without data for timeouts.tunnelGrace.
            silent = time.monotonic() - heard
            sock.sendall(line)
            back = file.readline()
            if back != line:
                raise ValueError(f"{line!r} came back as {back!r}, sent after {silent:.1f} s of silence")
            heard = time.monotonic()
            number += 1
            time.sleep(0.05)


def upload(port: int, server: int) -> None:
    body = os.urandom(256 << 10)
    with socket.create_connection(("127.0.0.1", port), 30) as sock, sock.makefile("rb") as file:
        sock.sendall(b"POST http://127.0.0.1:%d/ HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n"
                     b"Content-Length: %d\r\n\r\n" % (server, server, len(body)))
        for start in range(0, len(body), 16 << 10):
            sock.sendall(body[start : start + (16 << 10)])
            time.sleep(0.06)
        head = head_of(file)
        if b" 200 " not in head or file.read() != hashlib.sha256(body).hexdigest().encode():
            raise ValueError(f"answered {head[:60]!r}")


class Hey:
    """hey: what was answered with 200, and what was not."""

    # It looks at the first million responses only; 4,000 a second are that in 250 seconds.
    longest = 200

    def __init__(self, folder: Path, name: str, url: str, *arguments: str):
        self.name = name
        self.file = folder / f"{name}.txt"
        self.command = ["hey", "-z", "100000s", "-t", "30", *arguments, url]
        self.served = 0
        self.lost: list[str] = []
        self._begin()

    def _begin(self) -> None:
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            self.command, stdout=self.file.open("w"), stderr=subprocess.STDOUT)

    def renew(self) -> None:
        """To be called now and then: it begins anew before it looks away."""
        if time.monotonic() - self.begun > self.longest:
            self.end()
            self._begin()

    def end(self) -> tuple[int, list[str]]:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)
        text = self.file.read_text()
        self.served += sum(int(count) for count in re.findall(r"\[200\]\t(\d+) responses", text))
        self.lost += re.findall(r"\[(?!200)\d+\]\t\d+ responses", text)
        self.lost += re.findall(r"^  \[\d+\]\t(?!\d+ responses).*$", text, re.M)
        return self.served, self.lost


class Rig:
    """Server, load and what is upgraded. `front` has the ports for clear text and TLS."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.origin = free_port()
        self.clear, self.tls, self.forward = free_port(), free_port(), free_port()
        (folder / "www").mkdir()
        (folder / "www" / "1k").write_bytes(CONTENT)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-subj", "/CN=localhost",
             "-days", "2"], check=True, capture_output=True)
        (folder / "both.pem").write_text(
            (folder / "cert.pem").read_text() + (folder / "key.pem").read_text())
        (folder / "origin.conf").write_text(f"""
            worker_processes 1; daemon off; error_log {folder}/origin.log crit; pid {folder}/origin.pid;
            events {{ worker_connections 20000; }}
            http {{ access_log off; keepalive_requests 100000000; root {folder}/www;
              client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
              uwsgi_temp_path {folder}; scgi_temp_path {folder};
              server {{ listen 127.0.0.1:{self.origin} backlog=4096; add_header Cache-Control no-store; }} }}
            """)
        self.server = subprocess.Popen(["nginx", "-c", folder / "origin.conf"])
        until(lambda: accepts(self.origin), "the server")

    def end(self) -> None:
        self.server.terminate()
        self.server.wait(20)

    def load(self, clients: Clients, share: float = 1) -> list[Hey]:
        """5,500 requests a second, or a share of them, and as many others as one client sends."""
        url = f"http://127.0.0.1:{self.clear}/1k"
        clients.run("probe", 1, lambda: probe(clients, self.clear))

        def rate(each: int) -> str:
            return str(max(1, round(each * share)))

        return [
            Hey(self.folder, "kept", url, "-c", "50", "-q", rate(80)),
            Hey(self.folder, "new", url, "-c", "25", "-q", rate(40), "-disable-keepalive"),
            Hey(self.folder, "tls", f"https://127.0.0.1:{self.tls}/1k", "-c", "10", "-q", rate(50)),
        ]


class Gateway:
    name = "pinfold"

    def __init__(self, rig: Rig, binary: Path, listeners: str = ""):
        self.rig = rig
        self.binary = binary
        folder = rig.folder
        self.log = folder / "pinfold.log"
        self.program = folder / "bin" / "pinfold"
        self.program.parent.mkdir()
        self.lead_to(binary)
        self.config = f"""
workers: 2
listeners:
  - {{ name: clear, kind: reverse, address: "127.0.0.1:{rig.clear}", upstream: "http://127.0.0.1:{rig.origin}" }}
  - {{ name: secure, kind: reverse, address: "127.0.0.1:{rig.tls}", upstream: "http://127.0.0.1:{rig.origin}",
      tls: {{ certificate: "{folder}/cert.pem", key: "{folder}/key.pem" }} }}
  - {{ name: proxy, kind: forward, address: "127.0.0.1:{rig.forward}" }}
{listeners}
admin: {{ address: "127.0.0.1:{free_port()}" }}
access: {{ destinations: {{ allow: ["127.0.0.0/8", localhost] }}, connectPorts: any }}
cache: {{ path: "{folder}/cache" }}
timeouts: {{ grace: 60s }}
"""
        self.file = folder / "pinfold.yaml"
        self.file.write_text(self.config)
        self.first = subprocess.Popen(
            [str(self.program), "run", "--config", str(self.file)], stdout=self.log.open("w"),
            stderr=subprocess.STDOUT, start_new_session=True)
        self.pid = self.first.pid
        until(lambda: accepts(rig.clear) and accepts(rig.tls), f"the gateway, see {self.log}")

    def lead_to(self, program: Path) -> None:
        link = self.program.with_name("next")
        link.symlink_to(program)
        link.rename(self.program)

    def script(self, text: str) -> None:
        file = self.program.with_name("script")
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
        self.lead_to(file)

    def signal(self) -> int:
        start = self.log.stat().st_size
        os.kill(self.pid, signal.SIGUSR2)
        return start

    def since(self, start: int) -> str:
        with self.log.open("rb") as file:
            file.seek(start)
            return file.read().decode(errors="replace")

    def upgrade(self) -> None:
        start = self.signal()
        match = until(lambda: READY.search(self.since(start)), f"an upgrade, see {self.log}")
        self.pid = int(match[1])

    def fail(self, number: int) -> str:
        """An upgrade that fails: how, or that it did not."""
        kinds: list[tuple[str, Callable[[], None]]] = [
            ("ends", lambda: self.script("exit 3")),
            ("another program", lambda: self.script("exec sleep 0.2")),
            ("not executable", lambda: self.lead_to(self.file)),
            ("wrong file", lambda: self.file.write_text("workers: many\n")),
            ("missing file", lambda: self.file.rename(self.file.with_suffix(".gone"))),
            ("address in use", lambda: self.file.write_text(
                self.config.replace(str(self.rig.forward), str(self.rig.origin)))),
        ]
        milliseconds = None
        if number % 2:
            milliseconds = KILLS[number // 2 % len(KILLS)]
            kind = f"killed after {milliseconds} ms"
        else:
            kind, prepare = kinds[number // 2 % len(kinds)]
            prepare()
        start = self.signal()
        if milliseconds is not None:
            match = until(lambda: re.search(r"successor is starting pid=(\d+)", self.since(start)), "a start")
            time.sleep(milliseconds / 1000)
            if READY.search(self.since(start)):
                kind = "too late to kill"
            else:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(match[1]), signal.SIGKILL)
        until(lambda: re.search("this process goes on|serves again|successor serves", self.since(start)),
              f"a failure, see {self.log}")
        if match := READY.search(self.since(start)):
            self.pid = int(match[1])
        self.lead_to(self.binary)
        self.file.with_suffix(".gone").unlink(missing_ok=True)
        self.file.write_text(self.config)
        return kind

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        time.sleep(1)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.first.pid, signal.SIGKILL)
        self.first.wait()


class Nginx:
    name = "nginx"

    def __init__(self, rig: Rig):
        folder = rig.folder
        self.pid_file = folder / "nginx.pid"
        (folder / "nginx.conf").write_text(f"""
            worker_processes 2; daemon on; error_log {folder}/nginx.log crit; pid {self.pid_file};
            events {{ worker_connections 20000; }}
            http {{ access_log off; keepalive_requests 100000000; client_body_temp_path {folder};
              proxy_temp_path {folder}; fastcgi_temp_path {folder}; uwsgi_temp_path {folder};
              scgi_temp_path {folder};
              upstream o {{ server 127.0.0.1:{rig.origin}; keepalive 200; keepalive_requests 100000000; }}
              server {{ listen 127.0.0.1:{rig.clear} backlog=4096 reuseport;
                listen 127.0.0.1:{rig.tls} ssl backlog=4096 reuseport;
                ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
                location / {{ proxy_pass http://o; proxy_http_version 1.1;
                  proxy_set_header Connection ""; }} }} }}
            """)
        # By its path, without which an upgrade cannot find the program.
        subprocess.run([shutil.which("nginx") or "nginx", "-c", folder / "nginx.conf"], check=True)
        until(lambda: accepts(rig.clear) and accepts(rig.tls), "nginx")

    def upgrade(self) -> None:
        old = int(self.pid_file.read_text())
        os.kill(old, signal.SIGUSR2)

        def new() -> int:
            with contextlib.suppress(OSError, ValueError):
                pid = int(self.pid_file.read_text())
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                if pid != old and len(children) >= 2:
                    return pid
            return 0

        until(new, "another nginx")
        time.sleep(0.1)
        os.kill(old, signal.SIGQUIT)
        until(lambda: not Path(f"/proc/{old}").exists(), "the end of the old nginx")

    def end(self) -> None:
        os.kill(int(self.pid_file.read_text()), signal.SIGTERM)
        time.sleep(1)


class HAProxy:
    name = "haproxy"

    def __init__(self, rig: Rig):
        self.folder = rig.folder
        (rig.folder / "haproxy.cfg").write_text(f"""
global
  nbthread 2
  maxconn 9000
  stats socket {rig.folder}/haproxy.sock mode 600 level admin expose-fd listeners
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend clear
  bind 127.0.0.1:{rig.clear} backlog 4096
  bind 127.0.0.1:{rig.tls} ssl crt {rig.folder}/both.pem backlog 4096
  default_backend o
backend o
  http-reuse always
  server o 127.0.0.1:{rig.origin}
""")
        self.process = self.begin([])
        until(lambda: accepts(rig.clear) and accepts(rig.tls), "HAProxy")

    def begin(self, more: list[str]) -> subprocess.Popen:
        return subprocess.Popen(["haproxy", "-f", str(self.folder / "haproxy.cfg"), "-db", *more],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def upgrade(self) -> None:
        old = self.process
        self.process = self.begin(
            ["-x", str(self.folder / "haproxy.sock"), "-sf", str(old.pid)])
        old.wait(60)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def measure(rig: Rig, front, options: argparse.Namespace, server: Server | None) -> dict:
    clients = Clients()
    if server is not None:
        host = b"127.0.0.1:%d" % server.port
        tunnel = b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host)
        upgraded = (b"GET http://%s/ HTTP/1.1\r\nHost: %s\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n"
                    % (host, host))
        clients.run("tunnels", 20, lambda: echo(rig.forward, tunnel, b" 200 ", 3))
        clients.run("sockets", 20, lambda: echo(rig.forward, upgraded, b" 101 ", 3))
        clients.run("uploads", 10, lambda: upload(rig.forward, server.port))
    loads = rig.load(clients)
    time.sleep(2)
    times, kinds = [], []
    begun = time.monotonic()
    for number in range(options.upgrades):
        start = time.monotonic()
        front.upgrade()
        times.append(time.monotonic() - start)
        time.sleep(options.pause)
        for load in loads:
            load.renew()
    if server is not None:
        for number in range(options.failures):
            kinds.append(front.fail(number))
            time.sleep(options.pause)
            for load in loads:
                load.renew()
    seconds = time.monotonic() - begun
    time.sleep(1)
    result = {"served": {}, "lost": {}, "kinds": kinds, "seconds": seconds}
    for load in loads:
        result["served"][load.name], result["lost"][load.name] = load.end()
    clients.end()
    result["served"] |= clients.done
    result["lost"] |= clients.lost
    result["longest"] = clients.longest
    result["upgrade"] = sorted(times)[len(times) // 2] if times else 0
    return result


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=os.environ.get("PINFOLD_BINARY"))
    parser.add_argument("--upgrades", type=int, default=100)
    parser.add_argument("--failures", type=int, default=20)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds after each")
    parser.add_argument("--peers", default="", help="nginx, haproxy")
    options = parser.parse_args()
    if options.binary is None:
        parser.error("--binary or PINFOLD_BINARY is needed")
    status = 0
    for name in ["pinfold", *filter(None, options.peers.split(","))]:
        with tempfile.TemporaryDirectory(prefix="pinfold-upgrades-") as folder:
            rig = Rig(Path(folder))
            try:
                server = Server() if name == "pinfold" else None
                front = (Gateway(rig, Path(options.binary).resolve()) if name == "pinfold"
                         else Nginx(rig) if name == "nginx" else HAProxy(rig))
                try:
                    result = measure(rig, front, options, server)
                finally:
                    front.end()
            finally:
                rig.end()
        count = sum(result["served"].values())
        print(f"{name}: {options.upgrades} upgrades, {len(result['kinds'])} failures in "
              f"{result['seconds']:.0f} s; median {result['upgrade'] * 1000:.0f} ms; {count} served, "
              f"{count / (result['seconds'] + 3):.0f}/s; longest probe {result['longest'] * 1000:.0f} ms")
        for load, served in result["served"].items():
            lost = result["lost"][load]
            print(f"  {load:8s} {served:8d} served, {len(lost)} lost")
            for line in lost[:10]:
                print(f"    {line.strip()}")
        if result["kinds"]:
            print("  failures: " + ", ".join(result["kinds"]))
        if name == "pinfold" and any(result["lost"].values()):
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
