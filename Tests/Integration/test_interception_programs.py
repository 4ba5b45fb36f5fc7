"""What single programs do in intercepted tunnels: curl, git, openssl, and a browser's WebSocket;
and programs that speak TLS with their proxy."""

from __future__ import annotations

import os
import re
import subprocess
import threading

import pytest
from support.chromium import Chromium
from support.git import git, git_http_backend, make_repository
from support.interception import HOST, OTHER, curl, no_client_is_connected
from support.origin import OriginConnection, reply
from support.programs import Settings, Toolchains, answer, clean_environment
from support.secure import forward, tls_of
from support.websocket import serving


@pytest.fixture
def running(gateway, pki, authority):
    return gateway({
        "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
        "interception": authority.section | {"default": True}})


@pytest.fixture
def tls(pki):
    return pki.intermediate.issue(HOST).server_context()


# curl


def test_the_protocol_inside_is_http_1_1(running, origin, authority, tls):
    there = origin(lambda seen: reply(seen.version.encode(), "200 OK"), tls=tls)
    done = subprocess.run(
        ["curl", "-q", "-sSv", "--http2", "-x", running.proxy_url, "--cacert",
         str(authority.file), f"https://{HOST}:{there.port}/"],
        capture_output=True, text=True, timeout=30, env=clean_environment())
    assert done.stdout == "HTTP/1.1", done.stderr
    assert "ALPN: offers h2,http/1.1" in done.stderr
    assert "ALPN: server accepted http/1.1" in done.stderr


def test_a_body_waits_until_the_server_asks_for_it(
        running, scripted_origin, authority, workspace, tls):
    data = os.urandom(3_000_000)
    (workspace / "body").write_bytes(data)
    bytes_before: list[bytes] = []

    def asks(connection: OriginConnection) -> None:
        head = connection.read_request_head()
        assert head is not None and head.get("expect") == "100-continue"
        bytes_before.append(connection.buffer)
        connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = connection.read_exactly(int(head.get("content-length")))
        connection.send(reply(b"whole" if body == data else b"broken"))

    there = scripted_origin(asks, tls=tls)
    assert curl(running, authority, f"https://{HOST}:{there.port}/", "-T",
                str(workspace / "body"), "-H", "Expect: 100-continue",
                "--expect100-timeout", "30") == "whole"
    assert bytes_before == [b""]


def test_a_body_that_the_server_does_not_want_stays_away(
        running, scripted_origin, authority, workspace, tls):
    (workspace / "body").write_bytes(os.urandom(3_000_000))

    def refuses(connection: OriginConnection) -> None:
        assert connection.read_request_head() is not None
        connection.send(reply(b"too large", "413 Content Too Large", "Connection: close"))

    there = scripted_origin(refuses, tls=tls)
    output = curl(running, authority, f"https://{HOST}:{there.port}/", "-T",
                str(workspace / "body"), "-H", "Expect: 100-continue",
                "--expect100-timeout", "30", "-w", " %{http_code} %{size_upload}")
    assert output == "too large 413 0"


# openssl


def test_openssl_asks_twice(running, origin, authority, tls):
    there = origin(lambda seen: reply(b"answer to " + seen.target.encode() + b"\n"), tls=tls)
    host = f"Host: {HOST}:{there.port}\r\n"
    done = subprocess.run(
        ["openssl", "s_client", "-proxy", "%s:%d" % running.proxy, "-connect",
         f"{HOST}:{there.port}", "-servername", HOST, "-CAfile", str(authority.file),
         "-verify_return_error", "-verify_hostname", HOST, "-alpn", "h2,http/1.1", "-ign_eof"],
        input=f"GET /one HTTP/1.1\r\n{host}\r\n"
              f"GET /two HTTP/1.1\r\n{host}Connection: close\r\n\r\n",
        capture_output=True, text=True, timeout=30)
    assert "Verify return code: 0 (ok)" in done.stdout, done.stderr
    assert "ALPN protocol: http/1.1" in done.stdout
    assert re.findall("^answer to .*$", done.stdout, re.M) == ["answer to /one", "answer to /two"]


# git


def test_git_clones_and_pushes(running, origin, authority, workspace, tls):
    repository = make_repository(workspace)
    there = origin(git_http_backend(repository.parent), tls=tls)
    settings = ["-c", f"http.proxy={running.proxy_url}", "-c", f"http.sslCAInfo={authority.file}"]
    clone = workspace / "clone"
    git(*settings, "clone", "-q", f"https://{HOST}:{there.port}/repo.git", str(clone))
    assert git("rev-parse", "HEAD", cwd=clone) == git("rev-parse", "HEAD", cwd=repository)
    (clone / "new").write_bytes(os.urandom(3 << 20))
    git("add", "new", cwd=clone)
    git("commit", "-q", "-m", "new", cwd=clone)
    # A small buffer makes git send the pack chunked.
    git(*settings, "-c", "http.postBuffer=65536", "push", "-q", "origin", "main", cwd=clone)
    assert git("rev-parse", "HEAD", cwd=clone) == git("rev-parse", "main", cwd=repository)
    assert all("pinfold" in one.get("via") for one in there.requests)
    assert running.metric("pinfold_tunnels_intercepted_total") == 2


@pytest.mark.parametrize("wrong, output", [
    ("authority", "server certificate verification failed"),
    ("server", "CONNECT tunnel failed, response 502")], ids=["authority", "server"])
def test_git_shows_what_is_wrong(running, origin, authority, pki, wrong, output):
    leaf = pki.intermediate.issue(OTHER if wrong == "server" else HOST)
    there = origin(lambda _: reply(b"here"), tls=leaf.server_context())
    trusted = ["-c", f"http.sslCAInfo={authority.file}"] if wrong == "server" else []
    with pytest.raises(AssertionError, match=output):
        git("-c", f"http.proxy={running.proxy_url}", *trusted, "ls-remote",
            f"https://{HOST}:{there.port}/repo.git")
    assert there.application_bytes == b""
    no_client_is_connected(running)


# A browser's WebSocket

_PAGE = """<!doctype html><link rel="icon" href="data:,"><title></title><img src="/wait"><script>
const socket = new WebSocket("wss://{authority}/");
socket.onopen = () => socket.send("to and fro");
socket.onmessage = (message) => {{
  document.title = message.data;
  socket.send("it came");
}};
</script>"""


def test_a_browser_s_websocket(running, origin, authority, workspace, pki, tls):
    came = threading.Event()

    async def echo_once(connection) -> None:
        await connection.send(await connection.recv())
        assert await connection.recv() == "it came"
        came.set()

    def answered(seen) -> bytes:
        if seen.target == "/wait":
            # The page has not loaded before this.
            return reply(b"", "200 OK" if came.wait(20) else "504 Gateway Timeout")
        page = _PAGE.format(authority=f"{HOST}:{port}")
        return reply(page.encode(), "200 OK", "Content-Type: text/html")

    certificate = pki.intermediate.issue(HOST).server_context(alpn=())
    with serving(echo_once, tls=certificate) as port:
        there = origin(answered, tls=tls)
        browser = Chromium(workspace, running.proxy_url, [authority.file])
        shown = browser.shows(f"https://{HOST}:{there.port}/")
    assert "<title>to and fro</title>" in shown
    assert running.metric("pinfold_upgrades_total") == 1


# TLS with the proxy itself


@pytest.mark.parametrize("name", ["curl", "requests", "httpx", "node-undici", "go"])
def test_a_client_speaks_tls_with_its_proxy(gateway, origin, workspace, pki, tls, name):
    """Without interception: what goes on in the tunnel is between client and server."""
    running = gateway({"listeners": [forward(tls_of(pki.root.issue("localhost")))]})
    there = origin(lambda seen: reply(seen.body or b"no body"), tls=tls)
    (workspace / "upload").write_bytes(data := os.urandom(3 << 20))
    settings = Settings(workspace, f"https://localhost:{running.proxy[1]}", pki.root.pem_file)
    program = Toolchains(workspace).programs[name]
    done = program(settings, f"https://{HOST}:{there.port}", workspace / "upload",
                   ["GET:/one", "PUT:/two"])
    assert done.code == 0, done.output
    assert done.answers == [answer(b"no body"), answer(data)]
    assert not any("via" in one for one in there.requests)
    assert running.metric("pinfold_client_tls_handshakes_total") == 1
    assert running.metric("pinfold_tunnels_opened_total") == 1
