"""Headers of the PROXY protocol, and load balancers that send them."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import threading
from dataclasses import dataclass
from pathlib import Path

from .gateway import Gateway, free_port
from .origin import HTTPOrigin, OriginConnection, Request
from .pki import Certificate
from .servers import Server
from .wire import Address, Wire

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
LOCAL, PROXY = 0x20, 0x21


def line(source: str, port: int = 56324, destination: str = "198.51.100.2") -> bytes:
    family = "TCP6" if ":" in source else "TCP4"
    if family == "TCP6" and ":" not in destination:
        destination = "2001:db8::2"
    return f"PROXY {family} {source} {destination} {port} 443\r\n".encode()


def framed(command: int, family: int, rest: bytes = b"") -> bytes:
    return SIGNATURE + bytes([command, family]) + struct.pack(">H", len(rest)) + rest


def binary(source: str, port: int = 56324, fields: bytes = b"") -> bytes:
    kind, family = (socket.AF_INET6, 0x21) if ":" in source else (socket.AF_INET, 0x11)
    destination = "2001:db8::2" if ":" in source else "198.51.100.2"
    addresses = socket.inet_pton(kind, source) + socket.inet_pton(kind, destination)
    return framed(PROXY, family, addresses + struct.pack(">HH", port, 443) + fields)


def crc32c(data: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


def checked(source: str) -> bytes:
    """A header with its checksum."""
    header = binary(source, fields=b"\x03\0\x04\0\0\0\0")
    return header[:-4] + struct.pack(">I", crc32c(header))


def behind(*senders: str, **more: object) -> dict:
    """A listener that requires headers from these networks."""
    return {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward",
            "proxyProtocol": {"from": list(senders)}, **more}


def wire_after(running: Gateway, header: bytes, listener: str = "proxy") -> Wire:
    wire = running.wire(listener)
    wire.send(header)
    return wire


@dataclass(frozen=True)
class Header:
    """A header as a server has read it; without addresses for UNKNOWN and LOCAL."""

    version: int
    source: tuple[str, int] | None = None
    destination: tuple[str, int] | None = None


def _exactly(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = sock.recv(count - len(data))
        if not part:
            raise ConnectionError("ended within the header")
        data += part
    return data


def read_header(sock: socket.socket) -> Header:
    """Reads the header with which a connection begins, and nothing behind it."""
    start = _exactly(sock, 1)
    if start == b"P":
        while not start.endswith(b"\r\n"):
            start += _exactly(sock, 1)
        words = start.decode().split()
        if words == ["PROXY", "UNKNOWN"]:
            return Header(1)
        word, family, source, destination, port, to = words
        assert word == "PROXY" and family == ("TCP6" if ":" in source else "TCP4"), start
        return Header(1, (source, int(port)), (destination, int(to)))
    start += _exactly(sock, 15)
    assert start[:12] == SIGNATURE, start
    command, family, length = struct.unpack(">BBH", start[12:])
    rest = _exactly(sock, length)
    if command == LOCAL:
        assert family == 0 and not rest
        return Header(2)
    assert command == PROXY and family in (0x11, 0x21), start
    kind, size = (socket.AF_INET, 4) if family == 0x11 else (socket.AF_INET6, 16)
    ports = struct.unpack(">HH", rest[2 * size:2 * size + 4])
    return Header(2, (socket.inet_ntop(kind, rest[:size]), ports[0]),
                  (socket.inet_ntop(kind, rest[size:2 * size]), ports[1]))


class ToldOrigin(HTTPOrigin):
    """An origin whose connections begin with a header. `told` has the header under which each
    request arrived, `headers` those of all connections."""

    def __init__(self, handler, **options: object):
        self.headers: list[Header] = []
        self.told: list[Header] = []
        self._of_connection: dict[int, Header] = {}
        super().__init__(handler, **options)

    def _serve(self, sock: socket.socket) -> None:
        sock.settimeout(60)
        try:
            header = read_header(sock)
        except (ConnectionError, OSError):
            return sock.close()
        except AssertionError as error:
            self.problems.append(error)
            return sock.close()
        self._of_connection[threading.get_ident()] = header
        self.headers.append(header)
        super()._serve(sock)

    def _converse(self, connection: OriginConnection) -> None:
        header = self._of_connection[threading.get_ident()]
        handler = self.handler

        def handle(request: Request) -> bytes | None:
            self.told.append(header)
            return handler(request)

        while (request := connection.read_request()) is not None:
            self.requests.append(request)
            answer = handle(request)
            if answer is None:
                return
            connection.send(answer)


_HAPROXY = """
defaults
    mode tcp
    timeout client 20s
    timeout server 20s
    timeout connect 5s
listen front
    bind 127.0.0.1:{port}{bind}
    server gateway {gateway} {options}
"""

_NGINX = """
daemon off; {user} pid nginx.pid; error_log error.log warn; worker_processes 1;
events {{ worker_connections 64; }}
stream {{
    server {{ listen 127.0.0.1:{port}; proxy_pass {gateway}; proxy_protocol on; }}
}}
"""


def program(name: str) -> str:
    found = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")
    assert found, f"{name} is not installed"
    return found


class HAProxyServer(Server):
    """HAProxy as a server whose connections begin with a header: it answers with the address that
    the header names, and with `tls` over TLS."""

    def __init__(self, folder: Path, tls: Certificate | None = None):
        folder.mkdir()
        bind = ""
        if tls:
            both = folder / "both.pem"
            both.write_bytes(tls.chain_file().read_bytes() + tls.key_file.read_bytes())
            bind = f" ssl crt {both}"
        file = folder / "haproxy.cfg"
        port = free_port()
        file.write_text(f"""
defaults
    mode http
    timeout client 20s
    timeout server 20s
    timeout connect 5s
frontend front
    bind 127.0.0.1:{port} accept-proxy{bind}
    http-request return status 200 content-type text/plain lf-string "%[src]:%[src_port] %[dst]:%[dst_port]"
""")
        super().__init__(folder, port, [program("haproxy"), "-db", "-f", str(file)])


class NginxServer(Server):
    """nginx as such a server."""

    def __init__(self, folder: Path):
        folder.mkdir()
        port = free_port()
        file = folder / "nginx.conf"
        user = "user root;" if os.geteuid() == 0 else ""
        file.write_text(f"""
daemon off; {user} pid nginx.pid; error_log error.log warn; worker_processes 1;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    server {{
        listen 127.0.0.1:{port} proxy_protocol;
        location / {{ return 200 "$proxy_protocol_addr:$proxy_protocol_port $proxy_protocol_server_addr:$proxy_protocol_server_port"; }}
    }}
}}
""")
        super().__init__(folder, port, [program("nginx"), "-p", str(folder), "-c", str(file),
                                        "-e", str(folder / "error.log")])


class HAProxy(Server):
    """HAProxy before a gateway, with options of its `server` line; with `tls` it ends TLS."""

    def __init__(self, folder: Path, gateway: Address, options: str, tls: Certificate | None = None):
        folder.mkdir()
        bind = ""
        if tls:
            both = folder / "both.pem"
            both.write_bytes(tls.chain_file().read_bytes() + tls.key_file.read_bytes())
            bind = f" ssl crt {both} alpn h2,http/1.1"
        host, at = gateway
        file = folder / "haproxy.cfg"
        port = free_port()
        file.write_text(_HAPROXY.format(
            port=port, bind=bind, gateway=f"{host}:{at}" if at else host.replace("unix:", "unix@"),
            options=options))
        super().__init__(folder, port, [program("haproxy"), "-db", "-f", str(file)])


class NginxStream(Server):
    """nginx before a gateway, as a relay of bytes."""

    def __init__(self, folder: Path, gateway: Address):
        folder.mkdir()
        port = free_port()
        file = folder / "nginx.conf"
        module = Path("/usr/lib/nginx/modules/ngx_stream_module.so")
        load = f"load_module {module};\n" if module.exists() else ""
        file.write_text(load + _NGINX.format(
            port=port, gateway="%s:%d" % gateway, user="user root;" if os.geteuid() == 0 else ""))
        super().__init__(folder, port, [program("nginx"), "-p", str(folder), "-c", str(file),
                                        "-e", str(folder / "error.log")])
