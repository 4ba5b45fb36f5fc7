"""Real clients that speak HTTP/2 in intercepted tunnels, with a server that does."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import ssl
import subprocess

import httpx
import pycurl
import pytest
from support.chromium import Chromium
from support.http2 import HTTP2Client, TLSInStream, http2
from support.http2origin import content
from support.interception import HOST, curl, no_client_is_connected
from support.programs import Settings, answer, clean_environment
from support.secure import NAME, client_context, forward, tls_of
from support.wait import SLOWDOWN, until
from support.wire import request
from test_http2_proxy_clients import Transfer
from test_interception_browser import PARTS, part

LARGE = content(1_500_000)
H2 = ("h2", "http/1.1")


@pytest.fixture
def running(gateway, pki, authority):
    return gateway({
        "tls": {"roots": [str(pki.root.pem_file)]},
        "interception": authority.section | {"default": True}})


@pytest.fixture
def there(http2_origin, pki):
    def serve(stream) -> None:
        no_store = ("cache-control", "no-store")
        if stream.method == "PUT":
            return stream.respond(200, no_store, body=stream.read_all()[::-1])
        body = LARGE if stream.target == "/large" else b"answer to " + stream.target.encode()
        stream.respond(200, no_store, body=body)

    return http2_origin(serve, tls=pki.intermediate.issue(HOST).server_context(alpn=H2))


def inside(running, count: int) -> list[dict]:
    """The lines of the requests in tunnels."""
    return until(lambda: found if len(found := [
        line for line in running.access_lines() if line.get("tunnel")]) >= count else [],
        f"{count} requests in tunnels")


def test_curl_transfers_content_both_ways(running, there, authority, workspace):
    upload = workspace / "upload"
    upload.write_bytes(LARGE)
    url = f"https://{HOST}:{there.port}"
    printed = curl(running, authority, "--http2", "-w", " %{http_version}", f"{url}/one")
    assert printed == "answer to /one 2"
    down, back = workspace / "down", workspace / "back"
    curl(running, authority, "--http2", "-o", str(down), f"{url}/large")
    curl(running, authority, "--http2", "-T", str(upload), "-o", str(back), f"{url}/up")
    assert down.read_bytes() == LARGE and back.read_bytes() == LARGE[::-1]
    assert there.versions == {"HTTP/2"}
    assert all("pinfold" in seen.get("via") for seen in there.requests)
    assert {line["version"] for line in inside(running, 3)} == {"HTTP/2.0"}


def test_curl_gets_many_urls_at_once_in_one_tunnel(running, there, authority):
    urls = [f"https://{HOST}:{there.port}/{number}" for number in range(30)]
    out = curl(running, authority, "--http2", "--parallel", "--parallel-max", "30", "-w",
               " %{num_connects}\n", *urls)
    assert sum(int(count) for count in re.findall(r" ([0-9]+)$", out, re.M)) <= 2
    assert len(there.requests) == 30
    assert running.metric("pinfold_tunnels_intercepted_total") <= 2


def test_curl_may_prefer_http_1(running, there, authority):
    """A server's connection carries requests of any version."""
    url = f"https://{HOST}:{there.port}/one"
    assert curl(running, authority, "-w", " %{http_version}", url) == "answer to /one 1.1"
    assert there.versions == {"HTTP/2"}


@pytest.mark.parametrize("name", ["go", "java", "httpx", "node-undici", "requests"])
def test_a_program_asks_on_one_connection(
        running, there, authority, workspace, toolchains, name):
    upload = workspace / "upload"
    upload.write_bytes(data := os.urandom(1_000_000))
    steps = ["GET:/one", "GET:/large", "PUT:/upload", "GET:/after"]
    done = toolchains.programs[name](
        Settings(workspace, running.proxy_url, authority.file), f"https://{HOST}:{there.port}",
        upload, steps)
    assert done.code == 0, done.output
    assert done.answers == [answer(b"answer to /one"), answer(LARGE), answer(data[::-1]),
                            answer(b"answer to /after")]
    # Those that choose HTTP/2 by themselves; to the server it is spoken in any case.
    expected = "HTTP/2.0" if name in ("go", "java") else "HTTP/1.1"
    assert {line["version"] for line in inside(running, 4)} == {expected}
    assert there.versions == {"HTTP/2"}
    assert len(there.served) == 1
    no_client_is_connected(running)


def test_httpx_speaks_it(running, there, authority):
    context = ssl.create_default_context(cafile=str(authority.file))
    url = f"https://{HOST}:{there.port}"
    with httpx.Client(http2=True, verify=context, proxy=running.proxy_url) as client:
        for number in range(3):
            response = client.get(f"{url}/{number}")
            assert (response.http_version, response.text) == ("HTTP/2", f"answer to /{number}")
        assert client.get(f"{url}/large").content == LARGE
        assert client.put(f"{url}/up", content=LARGE).content == LARGE[::-1]
    assert running.metric("pinfold_tunnels_intercepted_total") == 1


NODE = """
const http = require("http"), http2 = require("http2"), tls = require("tls"), fs = require("fs");
const [proxyPort, authority, host, port] = process.argv.slice(2);
function failed(error) { console.error(error); process.exit(1); }
const asked = http.request({
  host: "127.0.0.1", port: proxyPort, method: "CONNECT", path: `${host}:${port}`,
  headers: { Host: `${host}:${port}` },
});
asked.on("error", failed);
asked.on("connect", (answer, socket) => {
  if (answer.statusCode !== 200) failed(answer.statusCode);
  const session = http2.connect(`https://${host}:${port}`, {
    createConnection: () => tls.connect({
      socket, servername: host, ca: fs.readFileSync(authority), ALPNProtocols: ["h2"] }),
  });
  session.on("error", failed);
  const all = [];
  for (let number = 0; number < 20; number++) {
    all.push(new Promise((resolve, reject) => {
      const stream = session.request({ ":path": number === 7 ? "/large" : "/" + number });
      let count = 0;
      stream.on("data", (part) => { count += part.length; });
      stream.on("end", () => resolve(count));
      stream.on("error", reject);
      stream.end();
    }));
  }
  Promise.all(all).then((counts) => {
    console.log(JSON.stringify(counts));
    session.close();
    socket.end();
  }, failed);
});
asked.end();
"""


def test_node_speaks_it(running, there, authority, workspace):
    (workspace / "client.js").write_text(NODE)
    done = subprocess.run(
        ["node", "client.js", str(running.proxy[1]), str(authority.file), HOST, str(there.port)],
        cwd=workspace, capture_output=True, text=True, timeout=60 * SLOWDOWN,
        env=clean_environment())
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        len(LARGE) if number == 7 else len(f"answer to /{number}") for number in range(20)]
    assert {line["version"] for line in inside(running, 20)} == {"HTTP/2.0"}
    assert len(there.served) == 1


@pytest.mark.parametrize("proxy", ["http", "https"])
def test_a_browser_speaks_it(gateway, http2_origin, pki, authority, workspace, proxy):
    listener = [forward(tls_of(pki.root.issue(NAME)) if proxy == "https" else None)]
    running = gateway({
        "listeners": listener, "tls": {"roots": [str(pki.root.pem_file)]},
        "interception": authority.section | {"default": True}})

    def serve(stream) -> None:
        head, _, body = part(stream.target).partition(b"\r\n\r\n")
        fields = [tuple(line.split(": ", 1)) for line in head.decode().split("\r\n")[1:]]
        stream.respond(200, *((name.lower(), value) for name, value in fields
                              if name != "Content-Length"), body=body)

    there = http2_origin(serve, tls=pki.intermediate.issue(HOST).server_context(alpn=H2))
    browser = Chromium(workspace, "%s://%s:%d" % (proxy, NAME, running.proxy[1]),
                       [pki.root.pem_file, authority.file])
    assert '<p id="seen">20 20 10</p>' in browser.shows(f"https://{HOST}:{there.port}/")
    assert there.versions == {"HTTP/2"}
    assert len(there.requests) == len({seen.target for seen in there.requests}) == 1 + sum(
        PARTS.values())
    mine = [line for line in inside(running, 51) if line["tunnel"] == f"{HOST}:{there.port}"]
    assert {line["version"] for line in mine} == {"HTTP/2.0"}
    assert len(there.served) <= 2


@pytest.fixture
def secure(gateway, pki, authority):
    """As `running`, but TLS is spoken with the proxy itself."""
    return gateway({
        "listeners": [forward(tls_of(pki.root.issue(NAME, "127.0.0.1")))],
        "tls": {"roots": [str(pki.root.pem_file)]},
        "interception": authority.section | {"default": True}})


def test_curl_speaks_it_in_a_tunnel_in_a_stream(secure, there, pki, authority):
    """HTTP/2 with the proxy, in its stream TLS, and in that HTTP/2 again."""
    for path, expected in (("/one", b"answer to /one"), ("/large", LARGE)):
        transfer = Transfer(f"https://{HOST}:{there.port}{path}", secure, pki, authority.file)
        transfer.handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
        assert transfer.run() == expected
    assert {line["version"] for line in secure.wait_access(4)} == {"HTTP/2.0"}
    assert {line["version"] for line in inside(secure, 2)} == {"HTTP/2.0"}
    assert there.versions == {"HTTP/2"}


def test_http_1_in_a_tunnel_in_a_stream_is_asked_in_http_2(secure, there, pki, authority):
    with http2(secure.proxy, client_context(pki.root), NAME) as client:
        context = ssl.create_default_context(cafile=str(authority.file))
        inner = TLSInStream(client, f"{HOST}:{there.port}", context, HOST)
        text = inner.ask(f"GET /large HTTP/1.1\r\nHost: {HOST}:{there.port}\r\n"
                         "Connection: close\r\n\r\n".encode())
    assert hashlib.sha256(text[-len(LARGE):]).digest() == hashlib.sha256(LARGE).digest()
    assert there.versions == {"HTTP/2"}


# What is offered


@pytest.mark.parametrize("offered", [H2, ("http/1.1",)])
def test_a_client_in_a_tunnel_is_offered_what_the_server_speaks(
        running, http2_origin, pki, authority, offered):
    there = http2_origin(tls=pki.intermediate.issue(HOST).server_context(alpn=offered))
    wire, answer = running.connect(f"{HOST}:{there.port}")
    assert answer.status == 200
    trusted = ssl.create_default_context(cafile=str(authority.file))
    if offered == H2:
        with contextlib.closing(HTTP2Client(wire.socket, trusted, HOST)) as client:
            assert client.socket.selected_alpn_protocol() == "h2"
            streams = [client.begin(f"/body/{size}", authority=f"{HOST}:{there.port}")
                       for size in (0, 10, 100_000)]
            assert [len(client.answer(stream).body) for stream in streams] == [0, 10, 100_000]
        assert there.versions == {"HTTP/2"} and len(there.served) == 1
    else:
        trusted.set_alpn_protocols(list(H2))
        with trusted.wrap_socket(wire.socket, server_hostname=HOST) as made:
            assert made.selected_alpn_protocol() == "http/1.1"


def test_a_client_in_a_tunnel_may_choose_http_1(running, http2_origin, pki, authority):
    there = http2_origin(tls=pki.intermediate.issue(HOST).server_context(alpn=H2))
    wire, _ = running.connect(f"{HOST}:{there.port}")
    trusted = ssl.create_default_context(cafile=str(authority.file))
    trusted.set_alpn_protocols(["http/1.1"])
    with trusted.wrap_socket(wire.socket, server_hostname=HOST) as made:
        assert made.selected_alpn_protocol() == "http/1.1"
        made.sendall(request("/body/10", host=f"{HOST}:{there.port}", Connection="close"))
        text = b""
        while part := made.recv(1 << 16):
            text += part
    assert text.endswith(content(10))
    assert there.versions == {"HTTP/2"}
