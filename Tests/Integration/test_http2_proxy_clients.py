"""Programs that speak HTTP/2 with an https proxy: requests and tunnels in streams of a listener of
kind `forward` with `tls`."""

from __future__ import annotations

import io
import json
import os
import subprocess
from pathlib import Path

import pycurl
import pytest
from support.chromium import Chromium
from support.http2 import TLSInStream, http2
from support.interception import HOST
from support.origin import HTTPOrigin, Request, reply
from support.secure import NAME, client_context, forward, tls_of
from support.wait import SLOWDOWN, until
from test_interception_browser import part

LARGE = os.urandom(1_500_000)
WAYS = ["relayed", "inspected", "intercepted"]
# CURLPROXY_HTTPS2: TLS with the proxy, where HTTP/2 is offered. pycurl has no name for it yet.
HTTPS2 = 3


def serve(seen: Request) -> bytes:
    if seen.method == "PUT":
        return reply(seen.body)
    return reply(LARGE if seen.target == "/large" else b"hello", "200 OK",
                 "Cache-Control: no-store")


@pytest.fixture(scope="module")
def leaf(pki):
    return pki.intermediate.issue(NAME, "127.0.0.1", "localhost")


@pytest.fixture
def clear(origin) -> HTTPOrigin:
    return origin(serve)


@pytest.fixture
def secure(origin, pki) -> HTTPOrigin:
    return origin(serve, tls=pki.intermediate.issue(HOST).server_context())


@pytest.fixture(params=WAYS)
def way(request) -> str:
    """What becomes of the tunnels."""
    return request.param


@pytest.fixture
def running(gateway, leaf):
    return gateway({"listeners": [forward(tls_of(leaf))]})


@pytest.fixture
def tunnelling(gateway, leaf, pki, way):
    entry: dict = {"match": [HOST], "tls": {"roots": [str(pki.root.pem_file)]}}
    config: dict = {"listeners": [forward(tls_of(leaf))], "hosts": [entry]}
    if way == "intercepted":
        entry["intercept"] = True
        config["interception"] = pki.interception.section
    elif way == "inspected":
        entry |= {"tunnel": "inspect", "tls13Tunnel": "probe"}
    return gateway(config)


@pytest.fixture
def trusted(pki, way) -> Path:
    """The authority that a client trusts in its tunnels."""
    return pki.interception.file if way == "intercepted" else pki.root.pem_file


def proxy_url(running) -> str:
    return "https://127.0.0.1:%d" % running.proxy[1]


def lines_of(running, count: int) -> list[dict]:
    """Lines of the access log, but for requests inside tunnels."""
    return [line for line in running.wait_access(count) if not line.get("tunnel")]


# curl


class Transfer:
    """A transfer of libcurl's by an https proxy."""

    def __init__(self, url: str, running, pki, trusted: Path | None = None,
                 body: bytes | None = None):
        self.content = io.BytesIO()
        self.handle = pycurl.Curl()
        for option, value in [
                (pycurl.URL, url), (pycurl.PROXY, proxy_url(running)),
                (pycurl.PROXYTYPE, HTTPS2), (pycurl.PROXY_CAINFO, str(pki.root.pem_file)),
                (pycurl.CAINFO, str(trusted or pki.root.pem_file)), (pycurl.NOPROXY, ""),
                (pycurl.TIMEOUT, 30 * SLOWDOWN), (pycurl.WRITEDATA, self.content)]:
            self.handle.setopt(option, value)
        if body is not None:
            self.handle.setopt(pycurl.UPLOAD, 1)
            self.handle.setopt(pycurl.READDATA, io.BytesIO(body))
            self.handle.setopt(pycurl.INFILESIZE, len(body))

    def run(self) -> bytes:
        """Its content; the connection is closed."""
        self.handle.perform()
        body = self.body
        self.handle.close()
        return body

    @property
    def body(self) -> bytes:
        assert self.handle.getinfo(pycurl.RESPONSE_CODE) == 200
        return self.content.getvalue()


def test_curl_opens_tunnels(tunnelling, secure, pki, trusted, way):
    for path, expected, body in [("/", b"hello", None), ("/large", LARGE, None),
                                 ("/up", LARGE, LARGE)]:
        transfer = Transfer(secure.url(path).replace("http://127.0.0.1", f"https://{HOST}"),
                            tunnelling, pki, trusted, body)
        assert transfer.run() == expected
    assert [seen.target for seen in secure.requests] == ["/", "/large", "/up"]
    assert all(("via" in seen) == (way == "intercepted") for seen in secure.requests)
    tunnels = lines_of(tunnelling, 6 if way == "intercepted" else 3)
    assert {(line["method"], line["version"], line["status"]) for line in tunnels} == {
        ("CONNECT", "HTTP/2.0", 200)}
    assert len(tunnels) == 3


def test_curl_is_told_why_a_tunnel_is_refused(gateway, leaf, pki):
    running = gateway({"listeners": [forward(tls_of(leaf))], "access": {"connectPorts": [443]}})
    transfer = Transfer(f"https://{HOST}:1/", running, pki)
    told: list[bytes] = []
    transfer.handle.setopt(pycurl.VERBOSE, 1)
    transfer.handle.setopt(pycurl.DEBUGFUNCTION, lambda _, text: told.append(text))
    with pytest.raises(pycurl.error, match=r"\(7, "):
        transfer.run()
    assert b"CONNECT Response Status 403" in b"".join(told)
    assert b"connect-port-refused" in b"".join(told)
    line = running.wait_access()[0]
    assert (line["version"], line["status"]) == ("HTTP/2.0", 403)


def test_curl_opens_tunnels_at_once(running, secure, pki):
    """libcurl gives each tunnel a connection of its own."""
    multi = pycurl.CurlMulti()
    url = f"https://{HOST}:{secure.port}/"
    transfers = [Transfer(url, running, pki) for _ in range(10)]
    for transfer in transfers:
        multi.add_handle(transfer.handle)
    left = len(transfers)
    while left:
        _, left = multi.perform()
        multi.select(1.0)
    assert [transfer.body for transfer in transfers] == [b"hello"] * 10
    for transfer in transfers:
        multi.remove_handle(transfer.handle)
    multi.close()


# Node

NODE = """
const http2 = require("http2"), tls = require("tls"), http = require("http"), fs = require("fs");
const [url, proxyAuthority, authority, host, port, clear] = process.argv.slice(2);
const session = http2.connect(url, { ca: fs.readFileSync(proxyAuthority) });
function failed(error) { console.error(error); process.exit(1); }
session.on("error", failed);

function tunnel() {
  return new Promise((resolve, reject) => {
    const stream = session.request({ ":method": "CONNECT", ":authority": `${host}:${port}` });
    stream.on("error", reject);
    stream.on("response", (head) => {
      if (head[":status"] !== 200) return reject(new Error(`CONNECT: ${head[":status"]}`));
      resolve(tls.connect({ socket: stream, servername: host, ca: fs.readFileSync(authority) }));
    });
  });
}

async function through(method, path, data) {
  const socket = await tunnel();
  return new Promise((resolve, reject) => {
    const asked = http.request(
      { host, port, path, method, createConnection: () => socket }, (answer) => {
        const parts = [];
        answer.on("data", (part) => parts.push(part));
        answer.on("end", () => { resolve(Buffer.concat(parts).length); socket.end(); });
        answer.on("error", reject);
      });
    asked.on("error", reject);
    asked.end(data);
  });
}

function plain(path) {
  return new Promise((resolve, reject) => {
    const stream = session.request(
      { ":scheme": "http", ":authority": clear, ":path": path });
    let count = 0;
    stream.on("data", (part) => { count += part.length; });
    stream.on("end", () => resolve(count));
    stream.on("error", reject);
  });
}

const all = [through("GET", "/large"), through("PUT", "/up", Buffer.alloc(1000000, "x"))];
for (let number = 0; number < 8; number++) all.push(through("GET", "/" + number));
for (let number = 0; number < 8; number++) all.push(plain("/" + number));
all.push(plain("/large"));
Promise.all(all).then((counts) => {
  console.log(JSON.stringify(counts));
  session.close();
}, failed);
"""


def test_node_opens_tunnels_and_asks_on_one_connection(
        tunnelling, secure, clear, pki, trusted, workspace):
    (workspace / "client.js").write_text(NODE)
    done = subprocess.run(
        ["node", "client.js", proxy_url(tunnelling), str(pki.root.pem_file), str(trusted), HOST,
         str(secure.port), clear.authority],
        cwd=workspace, capture_output=True, text=True, timeout=60 * SLOWDOWN)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == (
        [len(LARGE), 1_000_000] + [5] * 8 + [5] * 8 + [len(LARGE)])
    assert tunnelling.metric("pinfold_tunnels_opened_total") + tunnelling.metric(
        "pinfold_tunnels_intercepted_total") == 10
    assert {line["version"] for line in lines_of(tunnelling, 19)} == {"HTTP/2.0"}
    until(lambda: tunnelling.metric("pinfold_tunnels_open") == 0, "the tunnels are over")


# Python's h2


def test_python_s_h2_opens_tunnels_and_asks_on_one_connection(
        tunnelling, secure, clear, pki, trusted):
    with http2(tunnelling.proxy, client_context(pki.root), NAME) as client:
        assert client.socket.selected_alpn_protocol() == "h2"
        context = client_context(pki.root)
        context.load_verify_locations(trusted)
        streams = [client.begin(f"/{number}", authority=clear.authority, scheme="http")
                   for number in range(5)]
        inside = TLSInStream(client, f"{HOST}:{secure.port}", context, HOST)
        text = inside.ask(f"GET /large HTTP/1.1\r\nHost: {HOST}:{secure.port}\r\n"
                          "Connection: close\r\n\r\n".encode())
        assert text.endswith(LARGE)
        assert [client.answer(stream).body for stream in streams] == [b"hello"] * 5
        stream = client.begin("/up", "PUT", clear.authority, "http", end=False)
        client.send(stream, LARGE, end=True)
        assert client.answer(stream).body == LARGE
    assert {line["version"] for line in lines_of(tunnelling, 7)} == {"HTTP/2.0"}


# Chromium


def test_a_browser_asks_and_opens_tunnels_in_streams(
        tunnelling, origin, pki, trusted, workspace, way):
    browser = Chromium(workspace, "https://%s:%d" % (NAME, tunnelling.proxy[1]),
                       {pki.root.pem_file, trusted})
    tls = pki.intermediate.issue(HOST).server_context()
    there = origin(lambda seen: part(seen.target), tls=tls)
    shown = '<p id="seen">20 20 10</p>'
    assert shown in browser.shows(f"https://{HOST}:{there.port}/")
    assert all(("via" in seen) == (way == "intercepted") for seen in there.requests)
    plain = origin(lambda seen: part(seen.target))
    assert shown in browser.shows(f"http://{HOST}:{plain.port}/")
    assert all("pinfold" in seen.get("via") for seen in plain.requests)

    def mine() -> list[dict]:
        """It asks for things of its own, too."""
        return [line for line in tunnelling.access_lines() if not line.get("tunnel") and any(
            line["target"].startswith(start) for start in
            (f"{HOST}:{there.port}", f"http://{HOST}:{plain.port}/"))]

    until(lambda: len([line for line in mine() if line["method"] == "GET"]) >= 51,
          "all are in the access log")
    until(lambda: any(line["method"] == "CONNECT" for line in mine()), "the tunnels as well")
    assert {line["version"] for line in mine()} == {"HTTP/2.0"}
