"""Real servers of HTTP/2 as origins: nginx, HAProxy, nghttpx and h2o before an origin of HTTP/1.1,
and Go's net/http.

All answer alike: /body/N with N bytes, /digest with the SHA-256 of what was sent, /trailers with
trailers, /etag with a validator, and anything else with what was asked for."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from .gateway import free_port
from .http2origin import content
from .origin import Request, chunked, reply
from .pki import Certificate
from .programs import SOURCES, Toolchains
from .servers import Server, accepts
from .wait import until


def backend(seen: Request) -> bytes:
    """What the servers pass on."""
    what, _, rest = seen.target.lstrip("/").partition("/")
    match what:
        case "body":
            body = b"" if seen.method == "HEAD" else content(int(rest))
            return reply(body, "200 OK", "Cache-Control: no-store", f"Content-Length: {rest}",
                         length=False)
        case "digest":
            return reply(hashlib.sha256(seen.body).hexdigest().encode(), "200 OK",
                         "Cache-Control: no-store")
        case "trailers":
            return chunked([b"content"], "Cache-Control: no-store", "Trailer: X-Sum",
                           trailers=("X-Sum: 42",))
        case "etag":
            if seen.get("if-none-match") == '"one"':
                return reply(b"", "304 Not Modified", 'ETag: "one"', "Cache-Control: no-cache",
                             length=False)
            return reply(b"validated", "200 OK", 'ETag: "one"', "Cache-Control: no-cache")
    return reply(f"{seen.method} {seen.target}".encode(), "200 OK", "Cache-Control: no-store")


_NGINX = """
daemon off; {user} pid {folder}/pid; error_log {folder}/error.log; worker_processes 1;
events {{ worker_connections 1024; }}
http {{
    access_log off; keepalive_requests {requests}; client_max_body_size 100m;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi; upstream o {{ server 127.0.0.1:{origin}; keepalive 32; }}
    server {{
        listen 127.0.0.1:{tls} ssl http2; listen 127.0.0.1:{clear} http2;
        ssl_certificate {chain}; ssl_certificate_key {key};
        proxy_http_version 1.1; proxy_set_header Connection "";
        location / {{ proxy_pass http://o; }}
        location /small/ {{ client_max_body_size 1k; proxy_pass http://o; }}
    }}
}}
"""

_HAPROXY = """
global
    nbthread 1
    maxconn 500
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend f
    bind 127.0.0.1:{tls} ssl crt {both} alpn h2,http/1.1
    bind 127.0.0.1:{clear} proto h2
    default_backend b
backend b
    server o 127.0.0.1:{origin}
"""

_NGHTTPX = """
frontend=127.0.0.1,{tls}
frontend=127.0.0.1,{clear};no-tls
private-key-file={key}
certificate-file={chain}
backend=127.0.0.1,{origin}
workers=1
errorlog-file={folder}/error.log
no-ocsp=yes
"""

_H2O = """
num-threads: 1
{user}
error-log: {folder}/error.log
listen: {{ host: 127.0.0.1, port: {clear} }}
listen: {{ host: 127.0.0.1, port: {tls}, ssl: {{ certificate-file: {chain}, key-file: {key} }} }}
hosts:
  default:
    paths:
      /: {{ proxy.reverse.url: "http://127.0.0.1:{origin}/", proxy.preserve-host: ON }}
"""

CONFIGURATIONS = {"nginx": _NGINX, "haproxy": _HAPROXY, "nghttpx": _NGHTTPX, "h2o": _H2O}
COMMANDS = {"nginx": ["-e", "{folder}/error.log", "-p", "{folder}", "-c", "{file}"],
            "haproxy": ["-db", "-f", "{file}"], "nghttpx": ["--conf={file}"],
            "h2o": ["-c", "{file}"]}
NAMES = [*CONFIGURATIONS, "go"]


class HTTP2Server(Server):
    """One of `NAMES`, with HTTP/2 over TLS at `port`, and by prior knowledge at `clear_port`,
    before the origin at a port. nginx takes so many `requests` on a connection."""

    def __init__(self, name: str, folder: Path, leaf: Certificate, origin: int,
                 toolchains: Toolchains, requests: int = 1_000_000):
        self.name = name
        port, self.clear_port = free_port(), free_port()
        both = folder / "both.pem"
        both.write_bytes(leaf.chain_file().read_bytes() + leaf.key_file.read_bytes())
        root = os.geteuid() == 0
        values = {
            "folder": folder, "tls": port, "clear": self.clear_port, "origin": origin,
            "both": both, "chain": leaf.chain_file(), "key": leaf.key_file, "requests": requests,
            "file": folder / f"{name}.conf",
            "user": "" if not root else "user: root" if name == "h2o" else "user root;"}
        if name == "go":
            command = [str(toolchains.go_program("go-server", SOURCES / "server.go")), str(port),
                       str(self.clear_port), str(leaf.chain_file()), str(leaf.key_file)]
        else:
            values["file"].write_text(CONFIGURATIONS[name].format(**values))
            binary = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")
            assert binary, f"{name} is not installed"
            command = [binary, *(word.format(**values) for word in COMMANDS[name])]
        super().__init__(folder, port, command)
        until(lambda: accepts(("127.0.0.1", self.clear_port)), f"{name} listens on both ports")
