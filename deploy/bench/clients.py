"""Compares HTTP clients in one run, on loopback only: CPU, time and memory.

  kept      GET requests of 1 KiB, 64 at a time, on kept-alive connections
  new       the same, each on a new connection
  kept100   as kept, 100 at a time
  h2        as kept, in streams of HTTP/2 over TLS
  h2new     as h2, one after another and each on a new connection; a tenth as many
  h2100     as h2, 100 at a time

The server is nginx with one worker; HTTP/1 is in clear text. All clients verify the certificate of
HTTP/2's. curl is its multi interface with nghttp2. CPU is the time of the whole process per request,
user and system, including its start; RSS is its maximum. Last come the CPU of "ours" and of "loop" in
proportion to each. The rounds are interleaved client by client,
and the table has the medians. deploy/bench/clients builds the clients and calls this.
"""

import argparse
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

HTTPX = """
import asyncio, ssl, sys, httpx
async def main(url, count, width, trusted=None):
    limits = httpx.Limits(max_connections=width, max_keepalive_connections=width)
    verify = ssl.create_default_context(cafile=trusted) if trusted else False
    async with httpx.AsyncClient(
            limits=limits, timeout=60, trust_env=False, verify=verify,
            http2=trusted is not None) as client:
        numbers = iter(range(count))
        async def work():
            for _ in numbers:
                response = await client.get(url)
                assert response.status_code == 200 and len(response.content) == 1024
                assert (response.http_version == "HTTP/2") == (trusted is not None)
        await asyncio.gather(*[work() for _ in range(width)])
asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:]))
"""

NGINX = """
worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2;
  fastcgi_temp_path {folder}/t3; uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  server {{ listen 127.0.0.1:{kept}; root {folder}/files; keepalive_requests 1000000; }}
  server {{ listen 127.0.0.1:{new}; root {folder}/files; keepalive_timeout 0; }}
  ssl_certificate {folder}/server.pem; ssl_certificate_key {folder}/server.key;
  server {{ listen 127.0.0.1:{h2} ssl http2; root {folder}/files; keepalive_requests 1000000; }}
  server {{ listen 127.0.0.1:{h2new} ssl http2; root {folder}/files; keepalive_timeout 0; }}
}}
"""


@dataclass
class Load:
    """Which server is asked, by how many requests at a time (none: as many as the command says), and
    by which part of all requests."""

    server: str
    width: int | None = None
    part: int = 1
    # Clients that cannot.
    without: tuple[str, ...] = ()

    @property
    def is_secure(self) -> bool:
        return self.server.startswith("h2")


LOADS = {
    "kept": Load("kept"), "new": Load("new"), "kept100": Load("kept", 100),
    # nginx says goodbye before it responds, which Python's h2 takes for the end.
    "h2": Load("h2"), "h2new": Load("h2new", 1, 10, ("httpx",)), "h2100": Load("h2", 100),
}


@dataclass
class Cost:
    """The cost of one run: microseconds of CPU per request, seconds, MiB."""

    cpu: float
    seconds: float
    rss: float


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def serve(folder: pathlib.Path, ports: dict[str, int]) -> subprocess.Popen:
    (folder / "files").mkdir()
    (folder / "files" / "1k").write_bytes(b"x" * 1024)
    folder.chmod(0o755)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-days", "2", "-subj", "/CN=clients.test", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", folder / "server.key", "-out", folder / "server.pem"],
        check=True, stderr=subprocess.DEVNULL)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, **ports))
    nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    server = subprocess.Popen([nginx, "-p", folder, "-c", folder / "nginx.conf"])
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", ports["kept"])) == 0:
                return server
        time.sleep(0.05)
    raise SystemExit("error: nginx did not start")


def commands(
    built: str, python: str, count: int, width: int, trusted: str | None
) -> dict[str, list[str]]:
    """The command of each client. URL is a placeholder for the server's URL."""
    numbers = [str(count), str(width)] + ([trusted] if trusted else [])
    secure = ["--http2", "--cacert", trusted] if trusted else []
    return {
        "ours": [f"{built}/pinfold-requests", "URL", *numbers],
        "loop": [f"{built}/pinfold-requests", "--on-loop", "URL", *numbers],
        "curl": ["curl", "-sf", "--noproxy", "*", *secure, "-Z", "--parallel-max", str(width),
                 "-o", "/dev/null", f"URL?[1-{count}]"],
        "ahc": [f"{built}/ahc-requests", "URL", *numbers],
        "httpx": [python, "-c", HTTPX, "URL", *numbers],
    }


def run(name: str, command: list[str], url: str, count: int) -> Cost:
    with tempfile.TemporaryFile() as said:
        started = time.monotonic()
        words = [word.replace("URL", url) for word in command]
        process = subprocess.Popen(words, stdout=said, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            said.seek(0)
            text = said.read()[-1000:].decode(errors="replace")
            raise SystemExit(f"error: {name} ended with {process.returncode}: {text}")
    cpu = (used.ru_utime + used.ru_stime) / count * 1e6
    return Cost(cpu, seconds, used.ru_maxrss / 1024)


def median(costs: list[Cost]) -> Cost:
    return Cost(*(
        statistics.median(getattr(cost, field) for cost in costs)
        for field in ("cpu", "seconds", "rss")))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("built", help="the folder with pinfold-requests and ahc-requests")
    parser.add_argument("--clients", default="ours,loop,curl,ahc",
                        help="a list of ours, loop (ours, by tasks on its loop), curl, ahc and httpx")
    parser.add_argument("--loads", default=",".join(LOADS), help="a list of those above")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--width", type=int, default=64, help="requests at a time")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=sys.executable, help="a Python that has httpx")
    arguments = parser.parse_args()
    ports = {server: free_port() for server in ("kept", "new", "h2", "h2new")}
    with tempfile.TemporaryDirectory() as folder:
        server = serve(pathlib.Path(folder), ports)
        try:
            for name in arguments.loads.split(","):
                load = LOADS[name]
                chosen = [client for client in arguments.clients.split(",")
                          if client not in load.without]
                count, width = arguments.requests // load.part, load.width or arguments.width
                trusted = f"{folder}/server.pem" if load.is_secure else None
                every = commands(arguments.built, arguments.python, count, width, trusted)
                scheme = "https" if load.is_secure else "http"
                url = f"{scheme}://127.0.0.1:{ports[load.server]}/1k"
                costs = {client: [] for client in chosen}
                for _ in range(arguments.rounds):
                    for client in chosen:
                        costs[client].append(run(client, every[client], url, count))
                print(f"== {name}", flush=True)
                own = [median(costs[client]).cpu for client in ("ours", "loop") if client in costs]
                for client in chosen:
                    cost = median(costs[client])
                    ratios = "".join(f"{cpu / cost.cpu:6.2f} x" for cpu in own)
                    print(f"{client:6} {cost.cpu:8.1f} us CPU {cost.seconds:7.2f} s "
                          f"{cost.rss:6.1f} MiB  {ratios}", flush=True)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
