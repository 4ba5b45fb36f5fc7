"""Real servers as origins: nginx, and httpbin under gunicorn."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from .gateway import free_port
from .wait import until
from .wire import Address, Wire


def accepts(address: Address) -> bool:
    try:
        Wire(address, timeout=2).close()
    except OSError:
        return False
    return True


class Server:
    """A child process that listens on a port of loopback."""

    def __init__(self, folder: Path, port: int, command: list[str]):
        self.folder = folder
        self.port = port
        self.address: Address = ("127.0.0.1", port)
        log = (folder / "server.log").open("ab")
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True)
        log.close()
        until(self._running, f"{command[0]} listens on {port}", 20)

    def _running(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError((self.folder / "server.log").read_text())
        return accepts(self.address)

    @property
    def authority(self) -> str:
        return f"127.0.0.1:{self.port}"

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


_NGINX = """
daemon off; {user} pid nginx.pid; error_log error.log warn; worker_processes 1;
events {{ worker_connections 4096; }}
http {{
    access_log off; default_type application/octet-stream; sendfile on; keepalive_requests 1000000;
    client_body_temp_path tmp/body; proxy_temp_path tmp/proxy; fastcgi_temp_path tmp/fastcgi;
    uwsgi_temp_path tmp/uwsgi; scgi_temp_path tmp/scgi; client_max_body_size 0;
    server {{
        listen 127.0.0.1:{port}; root files;
        location / {{ add_header Cache-Control no-store; }}
        location /fresh/ {{ alias files/; add_header Cache-Control max-age=600; }}
        location /paced/ {{ alias files/; limit_rate $arg_rate; }}
        location /validate/ {{ alias files/; add_header Cache-Control no-cache; }}
        location /packed/ {{ alias files/; gzip on; gzip_min_length 1; gzip_types *;
            gzip_proxied any;
            gzip_vary on; add_header Cache-Control max-age=600; }}
        location /status/ {{ add_header Cache-Control no-store; return 204; }}
        location /store/ {{ alias uploads/; dav_methods PUT DELETE; create_full_put_path on; }}
    }}
}}
"""


class Nginx(Server):
    """nginx, serving `files`: as it is, under /fresh/ with max-age, under /validate/ with
    no-cache, under /packed/ with gzip and Vary, under /paced/ with ?rate= bytes a second; PUT
    under /store/ writes to `uploads`."""

    def __init__(self, folder: Path):
        self.files = folder / "files"
        self.uploads = folder / "uploads"
        for part in (self.files, self.uploads, folder / "tmp"):
            part.mkdir(parents=True)
        port = free_port()
        config = folder / "nginx.conf"
        user = "user root;" if os.geteuid() == 0 else ""
        config.write_text(_NGINX.format(port=port, user=user))
        binary = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
        assert binary, "nginx is not installed"
        super().__init__(folder, port, [binary, "-p", str(folder), "-c", str(config),
                                        "-e", str(folder / "error.log")])


class HTTPBin(Server):
    """httpbin under gunicorn."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True)
        port = free_port()
        super().__init__(folder, port, [
            sys.executable, "-m", "gunicorn", "--workers", "1", "--threads", "8",
            "--bind", f"127.0.0.1:{port}", "--no-control-socket", "httpbin:app"])
