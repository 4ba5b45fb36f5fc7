"""The gateway's process: started on a configuration, observed, stopped."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from .wait import SLOWDOWN, until
from .wire import Address, Response, Wire, ask, connect

ROOT = Path(__file__).resolve().parents[3]
BINARY = Path(os.environ.get("PINFOLD_BINARY", ROOT / ".build/release/pinfold")).resolve()

# libyaml's, where PyYAML was built with it: every gateway's configuration is written by this.
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

# Reports of a sanitizer, of the Swift runtime, or of an assertion: never part of a good run.
CRASH = re.compile(
    r"ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|Fatal error|\*\*\* Program crashed"
    r"|Thread \d+ crashed|SUMMARY: \w+Sanitizer")

_LISTENING = re.compile(r"\blistening\b")
# As text, and as JSON.
_LISTENER = re.compile(r"\blistener(?:=|\":)\"?([^\s\"]+)")
_ADDRESS = re.compile(r"\baddress(?:=|\":)\"?([^\s\"]+)")


def merged(base: dict, over: dict) -> dict:
    """`over` on top of `base`, section by section."""
    result = copy.deepcopy(base)
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def split_address(text: str) -> Address:
    if text.startswith("unix:"):
        return text, 0
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


class Gateway:
    """One gateway. `folder` is its working folder; its cache and logs are there."""

    # What it has in its environment besides the variables of the tests.
    environment: dict[str, str] = {}

    def __init__(self, folder: Path, config: dict, arguments: list[str], preexec: Any = None):
        self.folder = folder
        self.config = config
        self.arguments = arguments
        self.preexec = preexec
        self.binary = BINARY
        # What starts it in place of this process, and the descriptors that it needs for that.
        self.launcher: list[str] = []
        self.passed: tuple[int, ...] = ()
        self.config_file = folder / "pinfold.yaml"
        self.stderr_file = folder / "stderr.log"
        self.access_file = folder / "access.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.listeners: dict[str, Address] = {}
        self._started_at = 0
        self.expect_crash = False
        self.is_killed = False

    # Starting

    def write_config(self, config: dict | str) -> None:
        if not isinstance(config, str):
            config = yaml.dump(config, Dumper=DUMPER, sort_keys=False)
        self.config_file.write_text(config)

    def start(self, wait: bool = True) -> Gateway:
        self.is_killed = False
        self.write_config(self.config)
        self._started_at = self.stderr_file.stat().st_size if self.stderr_file.exists() else 0
        with self.stderr_file.open("ab") as stderr:
            self.process = subprocess.Popen(
                [*self.launcher, str(self.binary), "run", "--config", str(self.config_file),
                 *self.arguments],
                stdin=subprocess.DEVNULL, stdout=stderr, stderr=stderr, cwd=self.folder,
                env=os.environ | self.environment, preexec_fn=self.preexec,
                pass_fds=self.passed, start_new_session=True)
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self) -> None:
        expected = {one["name"] for one in self.config.get("listeners", [])} | {"admin"}

        def listening() -> bool:
            assert self.process is not None
            code = self.process.poll()
            if code is not None:
                raise AssertionError(f"the gateway ended with {code}:\n{self.log()}")
            for line in self.log().splitlines():
                name, address = _LISTENER.search(line), _ADDRESS.search(line)
                if _LISTENING.search(line) and name and address:
                    self.listeners[name[1]] = split_address(address[1])
            return expected <= self.listeners.keys()

        self.listeners = {}
        until(listening, lambda: f"listening: {sorted(expected)} in the log:\n{self.log()}", 20)
        until(self._is_ready, "/readyz answers 200", 20)
        until(self._has_looked_for_disk, "the cache's disk tier is open, or is known not to be", 20)

    def _is_ready(self) -> bool:
        try:
            return self.admin_get("/readyz").status == 200
        except OSError:
            return False

    def _has_looked_for_disk(self) -> bool:
        """Until then, what is on disk is a miss, and a large response is not stored."""
        return b'pinfold_cache_disk_state{state="opening"} 1\n' not in self.admin_get("/metrics").body

    # Its output

    def log(self) -> str:
        """What the present process has written to standard error."""
        with self.stderr_file.open("rb") as file:
            file.seek(self._started_at)
            return file.read().decode(errors="replace")

    def wait_log(self, pattern: str, timeout: float = 10.0) -> str:
        compiled = re.compile(pattern)

        def found() -> str:
            return next((line for line in self.log().splitlines() if compiled.search(line)), "")

        return until(found, f"/{pattern}/ in the log", timeout)

    def access_lines(self) -> list[dict]:
        if not self.access_file.exists():
            return []
        whole = self.access_file.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines() if line]

    def wait_access(self, count: int = 1) -> list[dict]:
        """Waits for that many lines in the access log and returns all of them."""
        return until(
            lambda: lines if len(lines := self.access_lines()) >= count else [],
            f"{count} lines in the access log")

    # Talking to it

    @property
    def proxy(self) -> Address:
        return self.listeners["proxy"]

    @property
    def proxy_url(self) -> str:
        return "http://%s:%d" % self.proxy

    @property
    def admin(self) -> Address:
        return self.listeners["admin"]

    def wire(self, listener: str = "proxy", **options: float) -> Wire:
        return Wire(self.listeners[listener], **options)

    def ask(self, data: bytes | str, listener: str = "proxy", **options: float) -> Response:
        return ask(self.listeners[listener], data, **options)

    def get(self, url: str, listener: str = "proxy", **fields: str) -> Response:
        """GET with the connection closed afterwards."""
        if url.startswith("http"):
            host = url.split("//", 1)[1].split("/", 1)[0].split("?", 1)[0]
        else:
            host = fields.pop("host", "localhost")
        lines = [f"GET {url} HTTP/1.1", f"Host: {host}", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        return self.ask("\r\n".join(lines) + "\r\n\r\n", listener)

    def connect(self, authority: str, **options: float) -> tuple[Wire, Response]:
        return connect(self.proxy, authority, **options)

    def admin_get(self, path: str, **fields: str) -> Response:
        lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        return ask(self.admin, "\r\n".join(lines) + "\r\n\r\n")

    def metrics(self) -> dict[str, float]:
        """Samples of /metrics by `name{labels}`."""
        samples = {}
        for line in self.admin_get("/metrics").body.decode().splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                samples[name] = float(value)
        return samples

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples whose labels include these."""
        total, found = 0.0, False
        for sample, value in self.metrics().items():
            base, _, rest = sample.partition("{")
            if base == name and all(f'{key}="{text}"' in rest for key, text in labels.items()):
                total, found = total + value, True
        assert found, f"no sample {name} {labels}"
        return total

    # The process

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def status(self, key: str) -> int:
        """A figure of /proc/PID/status, in its unit (kB for memory)."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(f"{key}:"):
                return int(line.split()[1])
        raise AssertionError(f"no {key} in /proc/PID/status")

    @property
    def rss_bytes(self) -> int:
        return self.status("VmRSS") * 1024

    @property
    def peak_rss_bytes(self) -> int:
        return self.status("VmHWM") * 1024

    @property
    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def cpu_seconds(self) -> float:
        """The processor time that it has used, to the nanosecond: a clock that stands still while
        others have the processor (clock_getcpuclockid(3))."""
        return time.clock_gettime(~self.pid << 3 | 2)

    def work(
        self, ask: Callable[[], object], count: int, between: Callable[[], object] = lambda: None
    ) -> list[float]:
        """How much processor time it used in each of `count` calls, in order of size: what it did
        for the caller and, meanwhile, for others."""
        found = []
        for _ in range(count):
            before = self.cpu_seconds()
            ask()
            found.append(self.cpu_seconds() - before)
            between()
        return sorted(found)

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def pause(self) -> None:
        """Stops every thread until SIGCONT."""
        self.signal(signal.SIGSTOP)
        threads = list(Path(f"/proc/{self.pid}/task").iterdir())
        until(lambda: all((one / "stat").read_text().rpartition(")")[2].split()[0] == "T"
                          for one in threads), "every thread has stopped")

    def wait_exit(self, timeout: float = 15.0) -> int:
        assert self.process is not None
        try:
            return self.process.wait(timeout * min(SLOWDOWN, 4))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout} s:\n{self.log()}") from None

    def kill(self) -> None:
        self.is_killed = True
        self.signal(signal.SIGKILL)
        self.wait_exit()

    def wait_for_disk(self) -> None:
        """Until the cache's disk tier is open: what is on disk is a miss before that."""
        until(lambda: self.metric("pinfold_cache_disk_state", state="on"), "the disk is open")

    def restart(self) -> Gateway:
        """Stops it, with time to write what it has stored even if others have the disk, and starts it
        again."""
        if self.process is not None and self.process.poll() is None:
            until(lambda: not self.metrics().get("pinfold_cache_store_queue_operations"),
                  "what it has stored is on disk, or about to be", 20)
            self.stop(patience=20)
        return self.start()

    def stop(self, patience: float = 2) -> int:
        """Ends it with SIGTERM, after `patience` seconds with SIGINT; whatever it is doing."""
        if self.process is None or self.process.poll() is not None:
            return self.process.returncode if self.process else 0
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(patience * SLOWDOWN)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGINT)
            self.signal(signal.SIGINT)
        try:
            return self.process.wait(5 * SLOWDOWN)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(
                f"did not end on SIGTERM and two SIGINT:\n{self.log()[-4000:]}") from None

    def finish(self) -> None:
        """The end of a test: stopped, and no line of its log shows a crash."""
        code = self.stop()
        text = self.stderr_file.read_text(errors="replace") if self.stderr_file.exists() else ""
        crash = CRASH.search(text)
        assert crash is None, text[max(0, crash.start() - 500) : crash.start() + 6000]
        if not self.expect_crash:
            assert code not in (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGILL, -signal.SIGTRAP,
                                -signal.SIGBUS, 86), f"ended with {code}:\n{text[-4000:]}"


def wire_from(
    running: Gateway, source: str, timeout: float = 20, listener: str = "proxy"
) -> Wire:
    """A connection from an address of loopback: another client."""
    address = running.listeners[listener]
    sock = socket.create_connection(address, timeout, source_address=(source, 0))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Wire(address, timeout, sock)


def besides_open_hosts(warnings: str) -> str:
    """What `pinfold check` says besides that pins protect no hosts without an entry."""
    return "".join(line for line in warnings.splitlines(keepends=True)
                   if not line.startswith("Warning: pinsets protect the hosts of their entries"))


def run_pinfold(*arguments: str, cwd: Path | None = None, timeout: float = 20, **env: str
                ) -> subprocess.CompletedProcess[str]:
    """Runs a command of pinfold to its end."""
    return subprocess.run(
        [str(BINARY), *arguments], cwd=cwd, text=True, capture_output=True,
        stdin=subprocess.DEVNULL, timeout=timeout * min(SLOWDOWN, 4), env={**os.environ, **env})


def raise_descriptor_limit() -> int:
    """Lets this process open as many descriptors as the system allows; returns how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def free_port() -> int:
    """A port that was free a moment ago: for addresses that must be known before the start. It is
    none that the system gives to connections, of which the tests make thousands meanwhile."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(min(10_000, first - 1000), first)
        with contextlib.suppress(OSError), socket.create_server(("0.0.0.0", port)):
            return port


@contextlib.contextmanager
def refusing_port(port: int = 0) -> Iterator[int]:
    """A port of 127.0.0.1 that refuses connections: nobody listens there, and nobody else gets it."""
    with socket.socket() as held:
        if port:
            # Something has just listened there.
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", port))
        yield held.getsockname()[1]
