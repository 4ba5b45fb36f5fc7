"""Shows a fleet of three gateways with a cache in common: a hit across, a purge across, the engine gone, and a
policy that is rolled out and back.

A redis-server, three gateways (berlin, lyon, oslo), HAProxy before them, which gives each new connection to
the next one, and a server behind them, all on loopback. Every command is printed with what it says. The status
is 1 if anything is not as expected. With --check the ports are free ones, and lookups have the time that they
need on a machine that is busy with something else.

With --soak there are three gateways under load and purges for as many minutes, and one fault after another:
see fleet_soak.py. With --skew some of them run another program: see fleet_skew.py.
"""

from __future__ import annotations

import argparse
import contextlib
import http.server
import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NAMES = ["berlin", "lyon", "oslo"]
# Ports that are the same each time, if nobody else has them.
USUAL = {"engine": 6390, "balancer": 8000, "server": 8090, "berlin": 8001, "lyon": 8002, "oslo": 8003,
         "berlin-admin": 9001, "lyon-admin": 9002, "oslo-admin": 9003}

GATEWAY = """\
listeners:
  - { name: front, address: "127.0.0.1:@PORT@", kind: reverse, upstream: "http://127.0.0.1:@SERVER@" }
admin: { address: "127.0.0.1:@ADMIN@" }
access: { destinations: { allow: ["127.0.0.0/8"] } }
via: @NAME@
workers: 1
cache:
  memory: 16MiB
  disk: 0
  shared:
    url: "redis://127.0.0.1:@ENGINE@"
    keyFile: fleet.key
    name: @NAME@
    timeout: @TIMEOUT@
"""
POLICY = """
policy: { engine: true, publicKeys: ["@KEY@"], interval: 1s }
"""
BALANCER = """\
global
  nbthread 1
defaults
  mode tcp
  timeout connect 2s
  timeout client 30s
  timeout server 30s
listen fleet
  bind 127.0.0.1:@BALANCER@
  balance roundrobin
"""


class Content(http.server.BaseHTTPRequestHandler):
    """The server behind the fleet."""

    protocol_version = "HTTP/1.1"
    version = 1
    asked = 0

    def do_GET(self) -> None:  # noqa: N802
        Content.asked += 1
        body = f"hello, version {Content.version}\n".encode()
        self.send_response(200)
        for name, value in (("Cache-Control", "max-age=600"), ("Surrogate-Key", "greeting"),
                            ("Content-Type", "text/plain"), ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Unexpected(Exception):
    """What came is not what was expected."""


class Show:
    """Runs commands in a folder, and prints them with what they say."""

    def __init__(self, folder: Path, binary: Path, fixed: bool):
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.ports = {name: port if fixed and self._is_free(port) else 0 for name, port in USUAL.items()}
        # All are held until each has its own.
        with contextlib.ExitStack() as held:
            for name, port in self.ports.items():
                if not port:
                    taken = held.enter_context(socket.create_server(("127.0.0.1", 0)))
                    self.ports[name] = taken.getsockname()[1]
        os.symlink(binary, folder / "pinfold")
        self.environment = os.environ | {
            "PATH": f"{folder}:{os.environ['PATH']}:/usr/sbin", "XDG_STATE_HOME": str(folder / "state")}

    @staticmethod
    def _is_free(port: int) -> bool:
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return True
        return False

    def say(self, text: str) -> None:
        print("\n# " + text.replace("\n", "\n# "), flush=True)

    def begin(self, name: str, *command: str) -> None:
        """Starts what runs until the end, or until it is killed."""
        print(f"$ {shlex.join(command)} &", flush=True)
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True)

    def kill(self, name: str) -> None:
        print(f"$ kill -9 {name}", flush=True)
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def __call__(self, command: str, *expected: str, status: int = 0, tries: float = 0) -> str:
        """Runs a command. Its output must have what is expected: regular expressions; it is run again for so
        many seconds until it has. What does not matter of a response's head is not printed."""
        end = time.monotonic() + tries
        while True:
            done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.environment, text=True,
                                  stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
            output = done.stdout + done.stderr
            missing = [one for one in expected if not re.search(one, output)]
            if not missing and done.returncode == status or time.monotonic() >= end:
                break
            time.sleep(0.1)
        print(f"$ {command}\n{self._shown(output)}", end="", flush=True)
        if done.returncode != status:
            raise Unexpected(f"{command}\nended with {done.returncode}:\n{output}")
        if missing:
            raise Unexpected(f"{command}\nsaid:\n{output}\nexpected: {missing}")
        return output

    @staticmethod
    def _shown(output: str) -> str:
        if not output.startswith("HTTP/"):
            return output
        head, _, body = output.replace("\r", "").partition("\n\n")
        wanted = ("HTTP/", "age:", "cache-status:")
        return "\n".join(line for line in head.splitlines()
                         if line.lower().startswith(tuple(one.lower() for one in wanted))) + f"\n\n{body}"

    def wait(self, condition: Callable[[], object], what: str, timeout: float = 30) -> None:
        end = time.monotonic() + timeout
        while not condition():
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise Unexpected(f"{name} ended:\n{(self.folder / f'{name}.log').read_text()[-3000:]}")
            if time.monotonic() > end:
                logs = "".join((self.folder / f"{name}.log").read_text()[-1500:] for name in NAMES)
                raise Unexpected(f"not within {timeout} s: {what}\n{logs}")
            time.sleep(0.02)

    def accepts(self, name: str) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.ports[name]), 1):
            return True
        return False

    def end(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Demonstration:
    """What is shown, in its order."""

    def __init__(self, show: Show, patient: bool):
        self.show = show
        self.url = f"http://127.0.0.1:{show.ports['balancer']}/hello"
        # In a test a lookup is not given up because the machine is busy.
        self.timeout = "2s" if patient else "20ms"

    def fill(self, text: str, name: str = "") -> str:
        ports = self.show.ports
        values = {"NAME": name, "ENGINE": ports["engine"], "SERVER": ports["server"],
                  "BALANCER": ports["balancer"], "TIMEOUT": self.timeout}
        if name:
            values |= {"PORT": ports[name], "ADMIN": ports[f"{name}-admin"]}
        for key, value in values.items():
            text = text.replace(f"@{key}@", str(value))
        return text

    def files(self) -> None:
        show, folder = self.show, self.show.folder
        (folder / "fleet.key").write_text(secrets.token_hex(32) + "\n")
        (folder / "fleet.key").chmod(0o600)
        policy = ""
        self.has_policy = subprocess.run(
            ["pinfold", "fleet", "publish", "--help"], env=show.environment, capture_output=True).returncode == 0
        if self.has_policy:
            made = subprocess.run(["pinfold", "policy", "keygen", "policy.key"], cwd=folder,
                                  env=show.environment, text=True, capture_output=True, check=True)
            policy = POLICY.replace("@KEY@", made.stdout.strip())
        for name in NAMES:
            (folder / f"{name}.yaml").write_text(self.fill(GATEWAY, name) + policy)
        servers = "".join(f"  server {name} 127.0.0.1:{show.ports[name]}\n" for name in NAMES)
        (folder / "haproxy.cfg").write_text(self.fill(BALANCER) + servers)

    def is_up(self, name: str) -> bool:
        """Whether a gateway uses the engine."""
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(
                ["curl", "-s", f"http://127.0.0.1:{self.show.ports[f'{name}-admin']}/metrics"], text=True,
                capture_output=True, timeout=5)
            return "\npinfold_cache_shared_up 1\n" in done.stdout
        return False

    def engine(self) -> None:
        self.show.begin("engine", "redis-server", "--port", str(self.show.ports["engine"]), "--bind",
                        "127.0.0.1", "--save", "", "--daemonize", "no")
        self.show.wait(lambda: self.show.accepts("engine"), "the engine accepts connections")

    def start(self) -> None:
        show = self.show
        show.say("An engine, three gateways on it, and a balancer before them.")
        self.files()
        self.engine()
        for name in NAMES:
            show.begin(name, "pinfold", "run", "--config", f"{name}.yaml")
        show.begin("balancer", "haproxy", "-db", "-f", "haproxy.cfg")
        show.wait(lambda: all(self.is_up(name) for name in NAMES), "all gateways use the engine")
        show.wait(lambda: show.accepts("balancer"), "the balancer accepts connections")

    def hit(self) -> None:
        show = self.show
        show.say("Each connection reaches another gateway. The first one asks the server, and the next\n"
                 "ones have the response without asking it: it is a hit in what they share.")
        first = show(f"curl -si {self.url}", r"HTTP/1.1 200 OK", r"(?i)cache-status: \w+; fwd=uri-miss",
                     "hello, version 1")
        self.settle()
        second = show(f"curl -si {self.url}", r"(?i)cache-status: \w+; hit", r"(?im)^age: \d", "hello, version 1")
        third = show(f"curl -si {self.url}", r"(?i)cache-status: \w+; hit", "hello, version 1")
        names = [re.search(r"(?i)cache-status: (\w+)", one)[1] for one in (first, second, third)]  # type: ignore
        if len(set(names)) != 3:
            raise Unexpected(f"three gateways were asked, and these answered: {names}")
        self.expect_asked(1)

    def purge(self) -> None:
        show = self.show
        show.say("The server has something new. One gateway is told to purge it; when it answers, all have.")
        Content.version = 2
        show(f"pinfold cache purge --config {NAMES[0]}.yaml --tag greeting", *NAMES)
        for _ in NAMES:
            show(f"curl -si {self.url}", "hello, version 2")
            self.settle()
        self.expect_asked(2)

    def without(self) -> None:
        show = self.show
        show.say("The engine is killed. Requests go on, with what each gateway has itself.")
        show.kill("engine")
        for _ in NAMES:
            show(f"curl -si {self.url}", r"HTTP/1.1 200 OK", "hello, version 2")
        show.wait(lambda: not any(self.is_up(name) for name in NAMES), "all know that the engine is gone")
        Content.version = 3
        show.say("A purge is carried out where it is ordered, and its answer says who has not confirmed it.\n"
                 "The others are told when the engine is back.")
        show(f"pinfold cache purge --config {NAMES[0]}.yaml --tag greeting", "told when it is back")
        show.say("It starts again, without anything that it had.")
        self.engine()
        show.wait(lambda: all(self.is_up(name) for name in NAMES), "all use the engine again")
        before = Content.asked
        show.wait(lambda: self.versions() == {3}, "all serve what is new")
        if Content.asked == before:
            raise Unexpected("the server was not asked for what is new")
        for _ in NAMES:
            show(f"curl -si {self.url}", r"(?i)cache-status: \w+; hit", "hello, version 3")

    def policy(self) -> None:
        show = self.show
        if not self.has_policy:
            return show.say("This version has no `pinfold fleet publish`.")
        show.say("A policy for all: a signed file with entries that narrow each gateway's own.")
        for serial, method in ((1, "DELETE"), (2, "PUT")):
            (show.folder / f"policy-{serial}.yaml").write_text(
                "access:\n  rules:\n"
                f"    - {{ name: no-{method.lower()}, methods: [{method}], action: deny }}\n")
        first = f"--config {NAMES[0]}.yaml"
        show("cat policy-1.yaml")
        show("pinfold policy sign policy-1.yaml --key policy.key --serial 1 --days 30 --output signed-1.yaml")
        everyone = [rf"{name} +taken" for name in NAMES]
        show(f"pinfold fleet publish signed-1.yaml {first}", *everyone)
        self.refused("DELETE", set(NAMES))
        show.say("The next one is taken by a tenth of the gateways first: of these, by one.")
        show("pinfold policy sign policy-2.yaml --key policy.key --serial 2 --days 30 --output signed-2.yaml")
        show(f"pinfold fleet publish signed-2.yaml --canary 10% {first}", r"lyon +taken", r"berlin +keeps",
             r"oslo +keeps")
        self.refused("PUT", {"lyon"})
        show.say("Then by all; and back again, with one command.")
        show(f"pinfold fleet publish --rest {first}", *everyone)
        self.refused("PUT", set(NAMES))
        show(f"pinfold fleet rollback --policy-key policy.key {first}", *everyone)
        self.refused("DELETE", set(NAMES))
        self.refused("PUT", set())
        show(f"pinfold fleet status {first}", *NAMES)

    # Looking

    def settle(self) -> None:
        """Until what was asked for last is stored in the engine, or nothing was."""
        time.sleep(0.1)
        for name in NAMES:
            self.show.wait(lambda name=name: self.metric(name, "pinfold_cache_shared_queue_commands") == 0,
                           "what is to be stored is stored")

    def metric(self, name: str, metric: str) -> float:
        done = subprocess.run(
            ["curl", "-s", f"http://127.0.0.1:{self.show.ports[f'{name}-admin']}/metrics"], text=True,
            capture_output=True, timeout=5)
        found = re.search(rf"(?m)^{metric} (\S+)$", done.stdout)
        if found is None:
            raise Unexpected(f"{name} has no metric {metric}")
        return float(found[1])

    def versions(self) -> set[int]:
        """What the gateways have for those who come by the balancer: a response is of a host."""
        found = set()
        host = f"Host: 127.0.0.1:{self.show.ports['balancer']}"
        for name in NAMES:
            done = subprocess.run(["curl", "-s", "-H", host, f"http://127.0.0.1:{self.show.ports[name]}/hello"],
                                  text=True, capture_output=True, timeout=30)
            found.add(int(done.stdout.rpartition(" ")[2] or 0))
        return found

    def expect_asked(self, times: int) -> None:
        print(f"# The server was asked {times} time{'s' if times > 1 else ''}.", flush=True)
        if Content.asked != times:
            raise Unexpected(f"the server was asked {Content.asked} times")

    def refused(self, method: str, expected: set[str]) -> None:
        """Waits until these gateways refuse a method, and the others do not."""

        def refusing() -> set[str]:
            found = set()
            for name in NAMES:
                done = subprocess.run(
                    ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X", method,
                     f"http://127.0.0.1:{self.show.ports[name]}/hello"], text=True, capture_output=True, timeout=30)
                if done.stdout == "403":
                    found.add(name)
            return found

        self.show.wait(lambda: refusing() == expected, f"{method} is refused by {sorted(expected)}")
        who = ", ".join(sorted(expected)) or "none of them"
        print(f"# {method} is refused by: {who}", flush=True)


def run(folder: Path, options: argparse.Namespace) -> int:
    show = Show(folder, options.binary, fixed=not options.check)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", show.ports["server"]), Content)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    demonstration = Demonstration(show, patient=options.check)
    try:
        for step in (demonstration.start, demonstration.hit, demonstration.purge, demonstration.without,
                     demonstration.policy):
            step()
        if options.stay:
            show.say(f"All of it stays until Ctrl-C: {demonstration.url}, files in {folder}")
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
        return 0
    except Unexpected as problem:
        print(f"not as expected: {problem}", file=sys.stderr)
        return 1
    finally:
        show.end()
        server.shutdown()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, default=os.environ.get("PINFOLD_BINARY"), help="the gateway")
    parser.add_argument("--check", action="store_true", help="on free ports, with patience: for tests")
    parser.add_argument("--stay", action="store_true", help="runs until Ctrl-C")
    parser.add_argument("--soak", type=float, metavar="MINUTES", help="under load and faults")
    parser.add_argument("--skew", type=Path, metavar="OLD", help="beside gateways of an older program")
    parser.add_argument("--seed", type=int, default=1, help="of the order of faults (1)")
    options = parser.parse_args()
    if options.binary is None:
        parser.error("--binary or PINFOLD_BINARY is needed")
    options.binary = Path(options.binary).resolve()
    for program in ("redis-server", "haproxy", "curl"):
        if shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin") is None:
            parser.error(f"{program} is not installed")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory(prefix="pinfold-fleet-") as folder:
        if options.skew is not None:
            os.environ["PINFOLD_BINARY"] = str(options.binary)
            from fleet_skew import skew

            return skew(Path(folder), options.skew.resolve(), options.binary)
        if options.soak is not None:
            os.environ["PINFOLD_BINARY"] = str(options.binary)
            from fleet_soak import soak

            return soak(Path(folder), options.soak, options.seed)
        return run(Path(folder), options)


if __name__ == "__main__":
    sys.exit(main())
