"""Real clients through the real gateway: curl, requests, httpx, openssl, git, WebSocket."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import threading
from pathlib import Path

import httpx
import pytest
import requests
from support.gateway import Gateway
from support.git import git, git_http_backend, make_repository, run
from support.origin import HTTPOrigin, Request, reply
from support.programs import SOURCES
from support.websocket import converse, serving
from support.wire import Wire


@pytest.fixture
def running(gateway, pki) -> Gateway:
    return gateway({"tls": {"roots": [str(pki.root.pem_file)]}})


@pytest.fixture
def secure(origin, pki) -> HTTPOrigin:
    return origin(lambda seen: reply(b"over TLS " + seen.target.encode()),
                  tls=pki.intermediate.issue("secure.test", "localhost", "127.0.0.1")
                  .server_context())


# curl


def test_curl_gets_a_plain_url(running, nginx):
    (nginx.files / "plain.txt").write_bytes(b"plain text")
    done = run("curl", "-sS", "-x", running.proxy_url, nginx.url("/plain.txt"))
    assert done.stdout == "plain text"


def test_curl_finds_the_proxy_in_the_environment(running, nginx):
    (nginx.files / "env.txt").write_bytes(b"by environment")
    done = run("curl", "-sS", nginx.url("/env.txt"), http_proxy=running.proxy_url)
    assert done.stdout == "by environment"


def test_curl_gets_an_https_url(running, secure, pki):
    done = run("curl", "-sSv", "-x", running.proxy_url, "--cacert", str(pki.root.pem_file),
               f"https://secure.test:{secure.port}/tunnelled")
    assert done.stdout == "over TLS /tunnelled"
    assert "CONNECT tunnel" in done.stderr


def test_curl_gets_a_cached_url_twice(running, nginx):
    (nginx.files / "cached.txt").write_bytes(b"keep me")
    outputs = [run("curl", "-sSi", "-x", running.proxy_url, nginx.url("/fresh/cached.txt")).stdout
               for _ in range(2)]
    statuses = [next(line for line in output.splitlines() if line.lower().startswith("cache-status:"))
                for output in outputs]
    assert "fwd=uri-miss" in statuses[0]
    assert "hit" in statuses[1]


def test_curl_uploads_with_expect_continue(running, nginx, workspace):
    data = os.urandom(3_000_000)
    (workspace / "up.bin").write_bytes(data)
    run("curl", "-sSf", "-x", running.proxy_url, "-H", "Expect: 100-continue",
        "-T", str(workspace / "up.bin"), nginx.url("/store/up.bin"))
    assert (nginx.uploads / "up.bin").read_bytes() == data
    run("curl", "-sSf", "-x", running.proxy_url, "-H", "Transfer-Encoding: chunked",
        "-T", str(workspace / "up.bin"), nginx.url("/store/chunked.bin"))
    assert (nginx.uploads / "chunked.bin").read_bytes() == data


def test_curl_gets_many_urls_on_one_connection(running, nginx):
    for number in range(20):
        (nginx.files / f"many-{number}").write_text(f"{number}\n")
    done = run("curl", "-sS", "-x", running.proxy_url, nginx.url("/many-[0-19]"))
    assert done.stdout.split() == [str(number) for number in range(20)]


def test_curl_speaks_http_1_0(running, nginx):
    (nginx.files / "old.txt").write_bytes(b"old")
    assert run("curl", "-sS", "-0", "-x", running.proxy_url, nginx.url("/old.txt")).stdout == "old"


# requests and httpx, against httpbin


@pytest.fixture(params=["requests", "httpx"])
def session(request, running):
    if request.param == "requests":
        with requests.Session() as made:
            made.trust_env = False
            made.proxies = {"http": running.proxy_url, "https": running.proxy_url}
            yield made
    else:
        with httpx.Client(proxy=running.proxy_url, trust_env=False, follow_redirects=True) as made:
            yield made


def test_every_method_passes(session, httpbin):
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        answer = session.request(method, httpbin.url("/anything"), params={"show_env": "1"},
                                 headers={"X-Mine": "yes"})
        assert answer.status_code == 200
        seen = answer.json()
        assert (seen["method"], seen["args"]) == (method, {"show_env": "1"})
        assert seen["headers"]["X-Mine"] == "yes"
        assert "Via" in seen["headers"]


def test_bodies_of_every_kind_pass(session, httpbin):
    assert session.post(httpbin.url("/post"), json={"k": [1]}).json()["json"] == {"k": [1]}
    assert session.post(httpbin.url("/post"), data={"k": "v"}).json()["form"] == {"k": "v"}
    files = {"file": ("name.bin", os.urandom(300_000))}
    assert len(session.post(httpbin.url("/post"), files=files).json()["files"]["file"]) > 300_000


def test_an_upload_is_streamed(session, nginx):
    parts = [os.urandom(10_000) for _ in range(20)]
    streamed = {"content": iter(parts)} if isinstance(session, httpx.Client) else {
        "data": iter(parts)}
    answer = session.put(nginx.url(f"/store/{type(session).__module__}"), **streamed)
    assert answer.status_code in (201, 204)
    assert (nginx.uploads / type(session).__module__).read_bytes() == b"".join(parts)


@pytest.mark.parametrize("status", [200, 201, 204, 304, 400, 401, 404, 418, 500, 503])
def test_every_status_passes(session, httpbin, status):
    assert session.get(httpbin.url(f"/status/{status}")).status_code == status


def test_redirects_cookies_and_codings_pass(session, httpbin):
    assert session.get(httpbin.url("/redirect/3")).json()["url"].endswith("/get")
    session.get(httpbin.url("/cookies/set?name=value"))
    assert session.get(httpbin.url("/cookies")).json()["cookies"] == {"name": "value"}
    assert session.get(httpbin.url("/gzip")).json()["gzipped"] is True
    assert session.get(httpbin.url("/deflate")).json()["deflated"] is True


def test_a_download_is_streamed(session, httpbin):
    url = httpbin.url("/stream-bytes/100000?seed=1&chunk_size=777")
    first, second = session.get(url).content, session.get(url).content
    assert len(first) == 100_000
    assert first == second


def test_authentication_passes(session, httpbin):
    assert session.get(httpbin.url("/basic-auth/u/p"), auth=("u", "p")).json()["authenticated"]
    assert session.get(httpbin.url("/basic-auth/u/p"), auth=("u", "x")).status_code == 401


def test_etags_and_ranges_pass(session, httpbin):
    answer = session.get(httpbin.url("/etag/abc"), headers={"If-None-Match": "abc"})
    assert answer.status_code == 304
    answer = session.get(httpbin.url("/range/1000"), headers={"Range": "bytes=10-19"})
    assert (answer.status_code, len(answer.content)) == (206, 10)


def test_requests_speaks_https_through_a_tunnel(running, secure, pki):
    answer = requests.get(f"https://secure.test:{secure.port}/requests",
                          proxies={"https": running.proxy_url}, verify=str(pki.root.pem_file))
    assert answer.text == "over TLS /requests"


def test_httpx_speaks_https_through_a_tunnel(running, secure, pki):
    import ssl
    context = ssl.create_default_context(cafile=str(pki.root.pem_file))
    with httpx.Client(proxy=running.proxy_url, verify=context) as client:
        assert client.get(f"https://secure.test:{secure.port}/httpx").text == "over TLS /httpx"


def test_a_legacy_client_speaks_clear_text_to_a_pinned_server(gateway, secure, pki):
    """What the gateway is for: the client knows nothing of TLS."""
    running = gateway({
        "hosts": [{"match": ["secure.test"], "upgrade": "https", "pinsets": ["ours"],
                   "tls": {"roots": [str(pki.root.pem_file)]}}],
        "pinsets": {"ours": {"mode": "publicKey", "pins": [pki.intermediate.pin]}}})
    answer = requests.get(f"http://secure.test:{secure.port}/legacy",
                          proxies={"http": running.proxy_url})
    assert answer.text == "over TLS /legacy"


def test_many_clients_at_once_get_their_own_responses(running, httpbin):
    problems: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with requests.Session() as one:
                one.proxies = {"http": running.proxy_url}
                for index in range(10):
                    seen = one.get(httpbin.url(f"/anything/{number}-{index}")).json()
                    assert seen["url"].endswith(f"/{number}-{index}")
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems[0]


# openssl


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_openssl_s_client_reaches_its_server_through_a_tunnel(running, secure, pki, version):
    done = subprocess.run(
        ["openssl", "s_client", version, "-proxy", "%s:%d" % running.proxy, "-connect",
         f"secure.test:{secure.port}", "-servername", "secure.test", "-CAfile",
         str(pki.root.pem_file), "-verify_return_error", "-verify_hostname", "secure.test",
         "-quiet", "-ign_eof"],
        input=b"GET /s_client HTTP/1.1\r\nHost: secure.test\r\nConnection: close\r\n\r\n",
        capture_output=True, timeout=30)
    assert done.stdout.endswith(b"over TLS /s_client"), done.stderr.decode()


# git


@pytest.fixture
def repository(workspace: Path) -> Path:
    return make_repository(workspace)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_git_clones_and_pushes(running, origin, repository, workspace, pki, scheme):
    tls = pki.root.issue("git.test").server_context() if scheme == "https" else None
    there = origin(git_http_backend(repository.parent), tls=tls)
    url = f"{scheme}://git.test:{there.port}/repo.git"
    env = {"http_proxy": running.proxy_url, "https_proxy": running.proxy_url,
           "GIT_SSL_CAINFO": str(pki.root.pem_file)}
    clone = workspace / "clone"
    git("clone", "-q", url, str(clone), **env)
    assert git("rev-parse", "HEAD", cwd=clone) == git("rev-parse", "HEAD", cwd=repository)
    (clone / "new").write_bytes(os.urandom(1_500_000))
    git("add", "new", cwd=clone)
    git("commit", "-q", "-m", "new", cwd=clone)
    # A small buffer makes git send the pack chunked.
    git("-c", "http.postBuffer=65536", "push", "-q", "origin", "main", cwd=clone, **env)
    assert git("rev-parse", "HEAD", cwd=clone) == git("rev-parse", "main", cwd=repository)
    if scheme == "http":
        assert any("via" in one for one in there.requests)


def test_git_clones_from_plain_files(running, nginx, repository, workspace):
    shutil.copytree(repository, nginx.files / "dumb.git", dirs_exist_ok=True)
    clone = workspace / "dumb"
    git("clone", "-q", nginx.url("/dumb.git"), str(clone), http_proxy=running.proxy_url)
    assert git("rev-parse", "HEAD", cwd=clone) == git("rev-parse", "HEAD", cwd=repository)


# WebSocket


@pytest.fixture
def echo_server():
    with serving() as port:
        yield port


MESSAGES = "text", "x" * 200_000, os.urandom(2_000_000), ""


def test_a_websocket_passes_through_a_tunnel(running, echo_server):
    converse(f"ws://ws.test:{echo_server}/", *MESSAGES, proxy=running.proxy_url)


def test_a_websocket_passes_through_a_reverse_listener(gateway, echo_server):
    running = gateway({"listeners": [
        {"name": "ws", "address": "127.0.0.1:0", "kind": "reverse",
         "upstream": f"http://127.0.0.1:{echo_server}"}]})
    host, port = running.listeners["ws"]
    converse(f"ws://{host}:{port}/", *MESSAGES, proxy=None)


def test_a_websocket_upgrade_passes_in_absolute_form(running, echo_server):
    """What a client does that sends ws:// through an HTTP proxy without a tunnel."""
    authority = f"127.0.0.1:{echo_server}"
    with Wire(running.proxy) as wire:
        wire.send(f"GET http://{authority}/ HTTP/1.1\r\nHost: {authority}\r\n"
                  "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        response = wire.read()
        assert response.status == 101
        assert response.get("sec-websocket-accept") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
        # A masked text frame with the mask 0: "hi".
        wire.send(b"\x81\x82\0\0\0\0hi")
        assert wire.read_exactly(4) == b"\x81\x02hi"


# h2c


def careful_with_h2c(seen: Request) -> bytes:
    """What a server answers that knows h2c, which needs HTTP2-Settings (RFC 7540 §3.2.1)."""
    if "h2c" in seen.get("upgrade").lower() and "http2-settings" not in seen:
        return reply(b"no HTTP2-Settings", "400 Bad Request")
    return reply(b"fine", "200 OK", "Cache-Control: max-age=600")


def test_curl_may_offer_h2c_to_a_server_that_looks_at_it(running, origin):
    there = origin(careful_with_h2c)
    for hit in (False, True):
        done = run("curl", "-sSi", "--http2", "-x", running.proxy_url, there.url("/"))
        assert done.stdout.startswith("HTTP/1.1 200 ")
        assert done.stdout.endswith("fine")
        assert ("; hit" in done.stdout) == hit, "it is no other request than without the offer"


def test_the_http_client_of_java_may_offer_h2c_to_a_server_that_looks_at_it(
        gateway, origin, workspace):
    """To a proxy it offers nothing."""
    there = origin(careful_with_h2c)
    running = gateway({"listeners": [
        {"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
         "upstream": f"http://{there.authority}"}]})
    host, port = running.listeners["back"]
    (workspace / "unused").touch()
    done = run("java", "-XX:TieredStopAtLevel=1", str(SOURCES / "Client.java"),
               f"http://{host}:{port}", str(workspace / "unused"), "GET:/", "GET:/2")
    assert done.stdout.splitlines() == [
        f"200 4 {hashlib.sha256(b'fine').hexdigest()}"] * 2


def test_large_downloads_keep_their_checksums(running, nginx, workspace):
    data = os.urandom(1 << 20) * 40
    (nginx.files / "forty.bin").write_bytes(data)
    for path in ("/forty.bin", "/fresh/forty.bin", "/fresh/forty.bin"):
        target = workspace / "got.bin"
        run("curl", "-sSf", "-x", running.proxy_url, "-o", str(target), nginx.url(path))
        assert hashlib.sha256(target.read_bytes()).digest() == hashlib.sha256(data).digest()
