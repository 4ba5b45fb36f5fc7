"""Gateways that share a cache: a redis-server, and several gateways on it."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from .gateway import Gateway, free_port, merged
from .wait import until
from .wire import Response, request


class EngineError(Exception):
    """The engine replied with an error."""


class Engine:
    """A redis-server without persistence. It has a port of loopback, and a Unix socket, both with
    the same data."""

    def __init__(self, folder: Path, *options: str, start: bool = True):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.options = options
        self.port = free_port()
        # Short, as the path of a socket must be.
        self.socket = folder / "r.sock"
        self.log_file = folder / "redis.log"
        self.process: subprocess.Popen[bytes] | None = None
        if start:
            self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    @property
    def unix_url(self) -> str:
        return f"unix://{self.socket}"

    def start(self) -> Engine:
        binary = shutil.which("redis-server")
        assert binary, "redis-server is not installed"
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [binary, "--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket",
                 str(self.socket), "--unixsocketperm", "700", "--save", "", "--appendonly", "no",
                 "--dir", str(self.folder), *self.options],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True)
        until(self._answers, lambda: f"redis-server answers:\n{self.log_file.read_text()}", 20)
        return self

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log_file.read_text()
        try:
            return b"PONG" in self._exchange(b"PING\r\n") or self.options != ()
        except OSError:
            return False

    def _exchange(self, data: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            connection.sendall(data)
            return connection.recv(4096)

    def stop(self) -> None:
        """It is gone, with all that it had."""
        if self.process is not None and self.process.poll() is None:
            self.resume()
            self.process.terminate()
            self.process.wait(20)

    def restart(self) -> Engine:
        self.stop()
        return self.start()

    def pause(self) -> None:
        """It neither answers nor refuses anything until `resume`."""
        assert self.process is not None
        self.process.send_signal(19)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(18)

    # What it says

    def command(self, *words: str | bytes | int, credentials: tuple[str, ...] = ()) -> Any:
        """One command, with its reply as None, int, bytes or a list of these."""
        with socket.create_connection(("127.0.0.1", self.port), 10) as connection:
            stream = connection.makefile("rwb")
            for one in ([("AUTH", *credentials)] if credentials else []) + [words]:
                parts = [part if isinstance(part, bytes) else str(part).encode() for part in one]
                stream.write(b"*%d\r\n" % len(parts) + b"".join(
                    b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
                stream.flush()
                reply = self._reply(stream)
            return reply

    def _reply(self, stream) -> Any:
        line = stream.readline().rstrip(b"\r\n")
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise EngineError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            count = int(rest)
            return None if count < 0 else stream.read(count + 2)[:-2]
        if kind == b"*":
            return [self._reply(stream) for _ in range(max(0, int(rest)))]
        return rest

    def keys(self, pattern: str = "*") -> list[bytes]:
        return sorted(self.command("KEYS", pattern))

    @property
    def clients(self) -> int:
        """Connections other than the one that asks."""
        return len(self.command("CLIENT", "LIST").splitlines()) - 1


class Sentinel:
    """A redis-sentinel that watches one engine, which it calls `cache`."""

    def __init__(self, folder: Path, engine: Engine):
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        file = folder / "sentinel.conf"
        file.write_text(f"port {self.port}\nbind 127.0.0.1\n"
                        f"sentinel monitor cache 127.0.0.1 {engine.port} 1\n")
        binary = shutil.which("redis-sentinel")
        assert binary, "redis-sentinel is not installed"
        with (folder / "sentinel.log").open("ab") as log:
            self.process = subprocess.Popen(
                [binary, str(file)], cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True)
        until(self._listens, "redis-sentinel listens", 20)

    def _listens(self) -> bool:
        assert self.process.poll() is None
        try:
            socket.create_connection(("127.0.0.1", self.port), 5).close()
        except OSError:
            return False
        return True

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(20)


class Link:
    """A port between gateways and an engine that can be cut, and mended."""

    def __init__(self, engine: Engine):
        self.engine = engine
        self.port = free_port()
        self._listener: socket.socket | None = None
        self._pairs: list[socket.socket] = []
        self._lock = threading.Lock()
        self.mend()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def mend(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        """Ends what there is, and refuses what comes."""
        with self._lock:
            listener, self._listener = self._listener, None
            pairs, self._pairs = self._pairs, []
        if listener is not None:
            # A thread in accept() keeps it open otherwise.
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        for one in pairs:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", self.engine.port), 5)
            except OSError:
                if self._listener is not listener:
                    return
                with contextlib.suppress(OSError, UnboundLocalError):
                    client.close()
                continue
            server.settimeout(None)
            with self._lock:
                if self._listener is not listener:
                    client.close()
                    server.close()
                    return
                self._pairs += [client, server]
            for source, target in (client, server), (server, client):
                threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        for one in source, target:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    close = cut


# A lookup is not given up on a machine that is busy with other tests.
PATIENT = "2s"


class Fleet:
    """Gateways with an engine in common, by number: `fleet[0]`."""

    def __init__(self, gateways, folder: Path, engine: Engine):
        self._gateways = gateways
        self.folder = folder
        self.engine = engine
        self.key_file = folder / "fleet.key"
        if not self.key_file.exists():
            self.key_file.write_text(secrets.token_hex(32) + "\n")
            self.key_file.chmod(0o600)
        self.all: list[Gateway] = []

    def add(
        self, config: dict | None = None, *, start: bool = True, wait: bool = True, **shared: Any
    ) -> Gateway:
        """Another gateway, with `shared` on top of `cache.shared`; `None` leaves a key out."""
        section = {"url": self.engine.url, "keyFile": str(self.key_file), "timeout": PATIENT,
                   "name": f"gateway-{len(self.all)}"} | shared
        section = {key: value for key, value in section.items() if value is not None}
        base = {"cache": {"shared": section, "purge": {"clients": ["127.0.0.1/32"]}}}
        made = self._gateways(merged(base, config or {}), start=start)
        self.all.append(made)
        if start and wait:
            wait_shared(made)
        return made

    def __getitem__(self, index: int) -> Gateway:
        return self.all[index]

    def __len__(self) -> int:
        return len(self.all)

    def __iter__(self):
        return iter(self.all)


def is_up(running: Gateway) -> bool:
    return running.metrics().get("pinfold_cache_shared_up") == 1


def wait_shared(running: Gateway, up: bool = True, timeout: float = 20) -> None:
    """Until it uses the engine, or does not."""
    until(lambda: is_up(running) == up,
          lambda: f"the shared level is {'up' if up else 'down'}:\n{running.log()}", timeout)


def stored(running: Gateway) -> float:
    """How many responses it has stored in the engine since it began."""
    return running.metric("pinfold_cache_shared_stores_total")


def share(running: Gateway, url: str, **fields: str) -> Response:
    """Asks for what is not stored yet, and waits until it is in the engine."""
    before = stored(running)
    response = get(running, url, **fields)
    until(lambda: stored(running) > before, f"{url} is in the engine")
    return response


def get(running: Gateway, url: str, method: str = "GET", **fields: str) -> Response:
    return running.ask(request(url, method=method, **fields))


def is_hit(response: Response) -> bool:
    return "hit" in response.cache_status


def is_shared_hit(response: Response) -> bool:
    """Whether it came from the engine."""
    return is_hit(response) and str(response.cache_status.get("detail")) == "shared"


def settle(seconds: float = 0.3) -> None:
    """For what cannot be waited for: that something does not happen."""
    time.sleep(seconds)
