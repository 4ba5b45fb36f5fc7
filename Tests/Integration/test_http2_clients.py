"""Programs that speak HTTP/2 with the gateway: by ALPN, by prior knowledge, and as with a proxy."""

from __future__ import annotations

import json
import os
import re
import subprocess

import httpx
import pytest
from support.chromium import Chromium
from support.origin import reply
from support.programs import Settings, answer
from support.secure import NAME, client_context, curl, forward, reverse, tls_of
from support.wait import until
from test_interception_browser import part

LARGE = os.urandom(1_500_000)


def serve(seen):
    if seen.method == "PUT":
        return reply(seen.body, "200 OK")
    return reply(LARGE if seen.target == "/large" else b"hello", "200 OK",
                 "Cache-Control: max-age=60")


@pytest.fixture(scope="module")
def leaf(pki):
    return pki.intermediate.issue(NAME, "127.0.0.1", "localhost")


@pytest.fixture
def there(origin):
    return origin(serve)


@pytest.fixture
def running(gateway, leaf, there):
    upstream = there.url().rstrip("/")
    return gateway({"listeners": [
        forward(tls_of(leaf)), reverse(tls_of(leaf), upstream),
        {"name": "clear", "address": "127.0.0.1:0", "kind": "reverse", "upstream": upstream}]})


def url(running, listener: str = "route", path: str = "/") -> str:
    return f"https://127.0.0.1:{running.listeners[listener][1]}{path}"


def versions(running, count: int) -> set[str]:
    return {line["version"] for line in running.wait_access(count)}


def test_curl_speaks_it_by_alpn(running, pki):
    printed = curl("--http2", "--cacert", str(pki.root.pem_file), "-w", "%{http_version}",
                   url(running))
    assert printed == "hello2"
    assert versions(running, 1) == {"HTTP/2.0"}


def test_curl_speaks_it_by_prior_knowledge(running):
    printed = curl("--http2-prior-knowledge", "-w", "%{http_version}",
                   f"http://127.0.0.1:{running.listeners['clear'][1]}/")
    assert printed == "hello2"


def test_curl_s_upgrade_from_http_1_is_answered_in_http_1(running):
    """RFC 9113 has no Upgrade to h2c any more."""
    printed = curl("--http2", "-w", "%{http_version}",
                   f"http://127.0.0.1:{running.listeners['clear'][1]}/")
    assert printed == "hello1.1"


def test_curl_transfers_large_content_both_ways(running, pki, workspace):
    file = workspace / "large"
    file.write_bytes(LARGE)
    there, back = workspace / "there", workspace / "back"
    curl("--http2", "--cacert", str(pki.root.pem_file), "-o", str(there),
         url(running, path="/large"), "--next", "-sS", "--http2", "--cacert",
         str(pki.root.pem_file), "-T", str(file),
         "-o", str(back), url(running, path="/up"))
    assert there.read_bytes() == LARGE
    assert back.read_bytes() == LARGE


def test_curl_gets_many_urls_at_once_on_one_connection(running, pki):
    urls = [url(running, path=f"/{number}") for number in range(50)]
    out = curl("--http2", "--parallel", "--parallel-max", "50", "--cacert",
               str(pki.root.pem_file), "-w", "%{num_connects}\n", *urls)
    connects = re.findall(r"[01]", out.replace("hello", ""))
    assert len(connects) == 50 and connects.count("1") <= 2


def test_httpx_speaks_it(running, pki):
    with httpx.Client(http2=True, verify=client_context(pki.root)) as client:
        for _ in range(3):
            response = client.get(url(running))
            assert (response.http_version, response.text) == ("HTTP/2", "hello")
        assert client.get(url(running, path="/large")).content == LARGE
        assert client.put(url(running, path="/up"), content=LARGE).content == LARGE


@pytest.mark.parametrize("name", ["go", "java"])
def test_a_program_speaks_it(running, pki, toolchains, workspace, name):
    """net/http and java.net.http choose HTTP/2 by themselves."""
    file = workspace / "file"
    file.write_bytes(LARGE)
    program = toolchains.programs[name]
    done = program(
        # Its proxy is not for what is on this machine.
        Settings(workspace, "http://127.0.0.1:9", pki.root.pem_file), url(running).rstrip("/"),
        file, ["GET:/", "GET:/large", "PUT:/up", "GET:/"])
    assert done.code == 0, done.output
    assert done.answers == [answer(b"hello"), answer(LARGE), answer(LARGE), answer(b"hello")]
    assert versions(running, 4) == {"HTTP/2.0"}


NODE = """
const http2 = require("http2"), fs = require("fs");
const session = http2.connect(process.argv[2], { ca: fs.readFileSync(process.argv[3]) });
session.on("error", (error) => { console.error(error); process.exit(1); });
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
Promise.all(all).then((counts) => { console.log(JSON.stringify(counts)); session.close(); });
"""


def test_node_speaks_it(running, pki, workspace):
    (workspace / "client.js").write_text(NODE)
    done = subprocess.run(
        ["node", "client.js", url(running), str(pki.root.pem_file)], cwd=workspace,
        capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [len(LARGE) if n == 7 else 5 for n in range(20)]


def test_nghttp_speaks_it(running, pki):
    done = subprocess.run(
        ["nghttp", "-v", "--no-verify-peer", url(running, path="/large"), url(running, path="/a"),
         url(running, path="/b")], capture_output=True, timeout=60)
    assert done.returncode == 0
    assert done.stdout.count(b":status: 200") == 3
    assert b"GOAWAY" not in done.stdout.split(b"send GOAWAY")[0]


def test_a_browser_speaks_it(gateway, origin, leaf, pki, workspace):
    """A page with fifty parts comes in streams of one connection, or of two."""
    there = origin(lambda seen: part(seen.target))
    running = gateway({"listeners": [reverse(tls_of(leaf), there.url().rstrip("/"))]})
    browser = Chromium(workspace, "direct://", [pki.root.pem_file])
    shown = browser.shows(f"https://{NAME}:{running.listeners['route'][1]}/")
    assert '<p id="seen">20 20 10</p>' in shown
    assert len({seen.target for seen in there.requests}) == 51
    until(lambda: len(running.access_lines()) >= 51, "all are in the access log")
    assert versions(running, 51) == {"HTTP/2.0"}
    assert running.metric("pinfold_client_tls_handshakes_total") <= 2
