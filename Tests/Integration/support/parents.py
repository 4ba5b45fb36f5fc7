"""Proxies that a gateway has as its parents: programs, and ones that follow a script."""

from __future__ import annotations

import base64
import contextlib
import os
import select
import shutil
import socket
import ssl
import tempfile
from pathlib import Path

from .gateway import free_port
from .origin import Origin, OriginConnection, Request
from .servers import Server


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def relay(one: socket.socket, other: socket.socket) -> None:
    """Bytes both ways until one side ends."""
    peers = {one: other, other: one}
    while True:
        waiting = [end for end in peers if isinstance(end, ssl.SSLSocket) and end.pending()]
        for end in waiting or select.select(list(peers), [], [], 30)[0]:
            try:
                data = end.recv(1 << 16)
            except (ConnectionError, OSError):
                data = b""
            if not data:
                return
            peers[end].sendall(data)


class HTTPParent(Origin):
    """A proxy in a test's hands. `answer(request)` returns bytes to send in place of what it was
    asked for, an empty value to do that, or None to close. `asked` has the request lines."""

    def __init__(self, answer=lambda request: b"", tls: ssl.SSLContext | None = None):
        self.answer = answer
        self.asked: list[str] = []
        # Where names lead to, in place of loopback.
        super().__init__(self._proxy, tls=tls)

    def _proxy(self, connection: OriginConnection) -> None:
        while (request := connection.read_request()) is not None:
            if request.target != "*":
                self.asked.append(f"{request.method} {request.target}")
                with self._lock:
                    self.requests.append(request)
            given = self.answer(request)
            if given is None:
                return
            if given:
                connection.send(given)
                if request.method != "CONNECT":
                    continue
                connection.read_to_end()
                return
            if request.target == "*":
                connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            elif request.method == "CONNECT":
                return self._tunnel(connection, request)
            else:
                # It ends the connection: what may follow on it is not asked.
                return self._forward(connection, request)

    @staticmethod
    def _tunnel(connection: OriginConnection, request: Request) -> None:
        port = int(request.target.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=20) as there:
            connection.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
            relay(connection.socket, there)

    @staticmethod
    def _forward(connection: OriginConnection, request: Request) -> None:
        authority, _, path = request.target.removeprefix("http://").partition("/")
        port = int(authority.partition(":")[2] or 80)
        with socket.create_connection(("127.0.0.1", port), timeout=20) as there:
            fields = "".join(f"{name}: {value}\r\n" for name, value in request.headers
                             if name.lower() not in ("connection", "proxy-authorization"))
            there.sendall(
                f"{request.method} /{path} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n".encode()
                + request.body)
            begins = True
            while data := there.recv(1 << 16):
                if begins and not data.startswith(b"HTTP/1.1 1"):
                    # The next request is not to count on this connection.
                    line, end, rest = data.partition(b"\r\n")
                    data = line + end + b"Connection: close\r\n" + rest
                begins = False
                connection.send(data)
        connection.socket.shutdown(socket.SHUT_RDWR)


class SOCKSParent(Origin):
    """A SOCKS5 proxy in a test's hands. `asked` has the targets, as they were named. `code` is what
    it answers, `user` and `password` what it wants."""

    def __init__(self, code: int = 0, user: str = "", password: str = "", refused=()):
        self.code, self.user, self.password, self.refused = code, user, password, refused
        self.asked: list[str] = []
        super().__init__(self._proxy)

    def _proxy(self, connection: OriginConnection) -> None:
        version, count = connection.read_exactly(2)
        assert version == 5
        methods = connection.read_exactly(count)
        if self.user:
            if 2 not in methods:
                return connection.send(b"\x05\xff")
            connection.send(b"\x05\x02")
            assert connection.read_exactly(1) == b"\x01"
            user = connection.read_exactly(connection.read_exactly(1)[0]).decode()
            password = connection.read_exactly(connection.read_exactly(1)[0]).decode()
            if (user, password) != (self.user, self.password):
                return connection.send(b"\x01\x01")
            connection.send(b"\x01\x00")
        else:
            connection.send(b"\x05\x00")
        try:
            _, command, _, kind = connection.read_exactly(4)
        except Exception:
            return  # a probe
        assert command == 1
        if kind == 3:
            host = connection.read_exactly(connection.read_exactly(1)[0]).decode()
        elif kind == 1:
            host = socket.inet_ntoa(connection.read_exactly(4))
        else:
            host = socket.inet_ntop(socket.AF_INET6, connection.read_exactly(16))
        port = int.from_bytes(connection.read_exactly(2), "big")
        self.asked.append(f"{host} {port}")
        code = 4 if host in self.refused else self.code
        if code:
            return connection.send(bytes([5, code, 0, 1, 0, 0, 0, 0, 0, 0]))
        with socket.create_connection(("127.0.0.1", port), timeout=20) as there:
            connection.send(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
            relay(connection.socket, there)


def program(name: str) -> str:
    found = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")
    assert found, f"{name} is not installed"
    return found


class Squid(Server):
    """Squid as a forward proxy; with `password`, for the user `pinfold` alone."""

    def __init__(self, folder: Path, password: str = "", hosts: str = "", tls: str = ""):
        folder.mkdir(parents=True, exist_ok=True)
        self.public: Path | None = None
        port = free_port()
        lines = [
            f"http_port 127.0.0.1:{port}" if not tls else f"https_port 127.0.0.1:{port} {tls}",
            f"pid_filename {folder}/squid.pid", "access_log none", f"cache_log {folder}/cache.log",
            "cache deny all", "cache_mem 8 MB", f"coredump_dir {folder}", "shutdown_lifetime 0",
            "visible_hostname squid.test", "via on", "max_filedescriptors 1024",
            "pinger_enable off", "netdb_filename none",
        ]
        if hosts:
            (folder / "hosts").write_text(hosts)
            lines.append(f"hosts_file {folder}/hosts")
        if os.geteuid() == 0:
            lines.append("cache_effective_user proxy")
            folder.chmod(0o777)
        if password:
            # Where Squid's own user may run it.
            self.public = Path(tempfile.mkdtemp(prefix="pinfold-squid-"))
            self.public.chmod(0o755)
            helper = self.public / "check"
            helper.write_text(
                "#!/bin/sh\nwhile read -r line; do\n"
                f'[ "$line" = "pinfold {password}" ] && echo OK || echo ERR\ndone\n')
            helper.chmod(0o755)
            lines += [f"auth_param basic program {helper}", "auth_param basic children 1",
                      "acl known proxy_auth REQUIRED", "http_access allow known",
                      "http_access deny all"]
        else:
            lines.append("http_access allow all")
        (folder / "squid.conf").write_text("\n".join(lines) + "\n")
        super().__init__(folder, port, [program("squid"), "-N", "-f", str(folder / "squid.conf")])

    def stop(self) -> None:
        super().stop()
        if self.public:
            shutil.rmtree(self.public)


class Tinyproxy(Server):
    def __init__(self, folder: Path, password: str = ""):
        folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        login = f"BasicAuth pinfold {password}\n" if password else ""
        (folder / "tinyproxy.conf").write_text(
            f"Port {port}\nListen 127.0.0.1\nTimeout 60\nMaxClients 50\n{login}"
            f"LogFile \"{folder}/tinyproxy.log\"\nPidFile \"{folder}/tinyproxy.pid\"\n")
        super().__init__(
            folder, port, [program("tinyproxy"), "-d", "-c", str(folder / "tinyproxy.conf")])


class Microsocks(Server):
    def __init__(self, folder: Path, password: str = ""):
        folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        login = ["-u", "pinfold", "-P", password] if password else []
        super().__init__(
            folder, port, [program("microsocks"), "-i", "127.0.0.1", "-p", str(port), *login])


class HAProxy(Server):
    """HAProxy before another proxy: what it takes, it passes on as it is."""

    def __init__(self, folder: Path, behind: int, tls: Path | None = None):
        folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        secure = f" ssl crt {tls}" if tls else ""
        (folder / "haproxy.cfg").write_text(
            "defaults\n mode tcp\n timeout connect 10s\n timeout client 60s\n timeout server 60s\n"
            f"frontend f\n bind 127.0.0.1:{port}{secure}\n default_backend b\n"
            f"backend b\n server s 127.0.0.1:{behind}\n")
        super().__init__(folder, port, [program("haproxy"), "-f", str(folder / "haproxy.cfg")])


@contextlib.contextmanager
def stopping(server: Server):
    try:
        yield server
    finally:
        server.stop()


def ways(*parents: str, **more: dict) -> dict:
    """A configuration with these URLs as its parents `p0`, `p1`…, in this order."""
    made = {f"p{index}": {"url": url, "probe": "off"} for index, url in enumerate(parents)
            if url != "direct"}
    names = ["direct" if url == "direct" else f"p{index}" for index, url in enumerate(parents)]
    return {"parents": made, "ways": {"parents": names}, "cache": {"enabled": False}, **more}
