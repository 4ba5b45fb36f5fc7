"""nginx behind `tunnel: inspect`, asked by curl, Python's requests and `openssl s_client`, in TLS 1.2,
where its flight is read, and in TLS 1.3, where another connection is verified."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from support.gateway import free_port
from support.inspection import inspected, inspections
from support.servers import Server
from support.wait import until

HOST = "api.nginx.test"
VERSIONS = {"TLSv1.2": "verified", "TLSv1.3": "probed"}

CONFIGURATION = """
daemon off; {user} pid nginx.pid; error_log error.log warn; worker_processes 1;
events {{ worker_connections 1024; }}
http {{
    access_log requests.log; client_body_temp_path tmp; proxy_temp_path tmp;
    fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp;
    server {{
        listen 127.0.0.1:{port} ssl; ssl_protocols {version};
        ssl_certificate {certificate}; ssl_certificate_key {key};
        ssl_session_cache shared:sessions:1m; ssl_session_tickets {tickets};
        location / {{ return 200 "there $ssl_protocol $ssl_session_reused\\n"; }}
    }}
}}
"""


@pytest.fixture
def nginx(workspace, pki):
    """Starts nginx with a certificate for the host, in one version of TLS."""
    started: list[Server] = []

    def start(version: str, tickets: str = "on") -> Server:
        folder = workspace / f"nginx-{len(started)}"
        (folder / "tmp").mkdir(parents=True)
        leaf = pki.intermediate.issue(HOST)
        port = free_port()
        config = folder / "nginx.conf"
        config.write_text(CONFIGURATION.format(
            user="user root;" if os.geteuid() == 0 else "", port=port, version=version,
            tickets=tickets, certificate=leaf.chain_file(), key=leaf.key_file))
        binary = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
        assert binary, "nginx is not installed"
        started.append(Server(folder, port, [
            binary, "-p", str(folder), "-c", str(config), "-e", str(folder / "error.log")]))
        return started[-1]

    yield start
    for server in started:
        server.stop()


def done(*command: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, **options)


def curl(gate, port, root):
    # A request a connection: each has a tunnel of its own.
    return done("curl", "-q", "-sS", "-x", gate.proxy_url, "--cacert", str(root),
                "-H", "Connection: close", f"https://{HOST}:{port}/a", f"https://{HOST}:{port}/b")


def requests(gate, port, root):
    script = ("import requests, sys\n"
              "for path in 'ab':\n"
              "    print(requests.get(sys.argv[1] + path, verify=sys.argv[2],\n"
              "          proxies={'https': sys.argv[3]}, timeout=30).text, end='')\n")
    return done(sys.executable, "-c", script, f"https://{HOST}:{port}/", str(root), gate.proxy_url)


def openssl(gate, port, root):
    """Twice, the second time with the session of the first."""
    session = str(root) + f".{port}.session"
    found = ""
    for arguments in (["-sess_out", session], ["-sess_in", session]):
        result = done(
            "openssl", "s_client", "-connect", f"{HOST}:{port}", "-servername", HOST,
            "-proxy", "{}:{}".format(*gate.proxy), "-CAfile", str(root), "-verify_return_error",
            "-ign_eof", "-quiet", *arguments,
            input=f"GET /a HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n")
        if "there" not in result.stdout:
            return result
        found += result.stdout[result.stdout.index("there"):]
    return subprocess.CompletedProcess(result.args, result.returncode, found, result.stderr)


CLIENTS = {"curl": curl, "requests": requests, "openssl": openssl}


@pytest.mark.parametrize("tickets", ["on", "off"])
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_is_unaware(gateway, nginx, pki, client, version, tickets):
    server = nginx(version, tickets)
    gate = gateway(inspected(HOST, [pki.intermediate.pin], [pki.root.pem_file],
                             tls13Tunnel="probe"))
    answered = CLIENTS[client](gate, server.port, pki.root.pem_file)
    assert [line.split()[:2] for line in answered.stdout.splitlines()] == [
        ["there", version]] * 2, answered.stderr
    lines = gate.wait_access(2 if client != "curl" else 1)
    results = {line["inspected"] for line in lines}
    assert VERSIONS[version] in results and results <= {VERSIONS[version], "resumed"}
    assert {line["upstream_tls"] for line in lines} == {version}
    if client == "openssl" and version == "TLSv1.2":
        # What nginx has proved once, it need not prove again.
        assert answered.stdout.splitlines()[1] == f"there {version} r"
        assert inspections(gate, "resumed", "1.2") == 1


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("client", CLIENTS)
def test_with_another_pin_nothing_is_asked(gateway, nginx, pki, client, version):
    server = nginx(version)
    gate = gateway(inspected(HOST, [pki.other_root.pin], [pki.root.pem_file],
                             tls13Tunnel="probe"))
    answered = CLIENTS[client](gate, server.port, pki.root.pem_file)
    assert "there" not in answered.stdout
    until(lambda: [line["reason"] for line in gate.access_lines()], "the tunnels are logged")
    assert {line["reason"] for line in gate.access_lines()} == {"tls-no-pin-matches"}
    assert (server.folder / "requests.log").read_text() == ""
