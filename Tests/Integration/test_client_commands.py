"""The client's commands, against httpbin, nginx and servers of the tests' own."""

from __future__ import annotations

import hashlib
import json
import os
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support.gateway import BINARY, free_port
from support.origin import reply
from support.preload import library
from support.servers import HTTPBin, Nginx
from support.wait import SLOWDOWN, until

PATIENCE = 60 * SLOWDOWN


def client(*arguments: object, input: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [BINARY, *map(str, arguments)], input=input, capture_output=True, timeout=PATIENCE,
        stdin=subprocess.DEVNULL if input is None else None)


def answer(*arguments: object, input: bytes | None = None) -> dict:
    done = client(*arguments, input=input)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_get_prints_the_content(httpbin: HTTPBin) -> None:
    seen = answer("get", httpbin.url("/get?a=b"), "-H", "X-One: 1", "-H", "Accept: text/x")
    assert seen["args"] == {"a": "b"}
    assert seen["headers"]["X-One"] == "1"
    assert seen["headers"]["Accept"] == "text/x"
    assert seen["headers"]["User-Agent"].startswith("pinfold/")


def test_include_prints_the_head_too(httpbin: HTTPBin) -> None:
    done = client("get", "-i", httpbin.url("/response-headers?X-Two=2"))
    head, _, content = done.stdout.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nX-Two: 2" in head
    assert json.loads(content)["X-Two"] == "2"


def test_head_prints_the_head_alone(httpbin: HTTPBin) -> None:
    done = client("head", httpbin.url("/get"))
    assert done.returncode == 0
    assert done.stdout.startswith(b"HTTP/1.1 200 OK\r\n")
    assert done.stdout.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_each_method_sends_data(httpbin: HTTPBin, method: str) -> None:
    seen = answer(method, httpbin.url(f"/{method}"), "--data", "some text")
    assert seen["data"] == "some text"


def test_data_is_read_from_a_file_and_from_standard_input(
    httpbin: HTTPBin, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("from a file")
    assert answer("post", httpbin.url("/post"), "--data", f"@{tmp_path}/file")["data"] == "from a file"
    seen = answer("post", httpbin.url("/post"), "--data", "@-", input=b"from a pipe")
    assert seen["data"] == "from a pipe"


def test_json_form_and_multipart_have_their_content_types(httpbin: HTTPBin, tmp_path: Path) -> None:
    seen = answer("post", httpbin.url("/post"), "--json", '{"a": [1, "ü"]}')
    assert seen["json"] == {"a": [1, "ü"]}
    assert seen["headers"]["Content-Type"] == "application/json"
    seen = answer("post", httpbin.url("/post"), "--form", "a=b c&d", "--form", "ü=1=2")
    assert seen["form"] == {"a": "b c&d", "ü": "1=2"}
    (tmp_path / "one.txt").write_text("content")
    seen = answer("post", httpbin.url("/post"), "--multipart", "a=b",
                  "--multipart", f"file=@{tmp_path}/one.txt")
    assert seen["form"] == {"a": "b"}
    assert seen["files"] == {"file": "content"}


@pytest.mark.parametrize("path", ["basic-auth", "digest-auth/auth"])
def test_user_answers_challenges(httpbin: HTTPBin, path: str) -> None:
    url = httpbin.url(f"/{path}/me/secret")
    assert answer("get", url, "--user", "me:secret")["authenticated"] is True
    done = client("get", url, "--user", "me:wrong")
    assert done.returncode == 22
    assert b"status 401; expected one below 400" in done.stderr


def test_a_cookie_jar_keeps_cookies(httpbin: HTTPBin, tmp_path: Path) -> None:
    jar = tmp_path / "jar"
    field = "Set-Cookie=a=b;%20Max-Age=1000"
    assert client("get", httpbin.url(f"/response-headers?{field}"), "--cookie-jar", jar).returncode == 0
    assert "\ta\tb\n" in jar.read_text()
    assert answer("get", httpbin.url("/cookies"), "--cookie-jar", jar) == {"cookies": {"a": "b"}}
    jar.write_text("nonsense\n")
    done = client("get", httpbin.url("/cookies"), "--cookie-jar", jar)
    assert done.returncode == 26
    assert f"{jar}:1: " in done.stderr.decode()


def test_a_cookie_jar_keeps_cookies_of_a_session_as_curl_does(
    httpbin: HTTPBin, tmp_path: Path
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    url = httpbin.url("/response-headers?Set-Cookie=a=b")
    assert client("get", url, "--cookie-jar", ours).returncode == 0
    subprocess.run(["curl", "-s", "-c", theirs, url], check=True, capture_output=True)
    assert [line for line in ours.read_text().splitlines() if line.endswith("\t0\ta\tb")]
    seen = httpbin.url("/cookies")
    assert answer("get", seen, "--cookie-jar", ours) == {"cookies": {"a": "b"}}
    assert answer("get", seen, "--cookie-jar", theirs) == {"cookies": {"a": "b"}}
    by_curl = subprocess.run(["curl", "-s", "-b", ours, seen], check=True, capture_output=True)
    assert json.loads(by_curl.stdout) == {"cookies": {"a": "b"}}


def test_redirects_are_followed_as_often_as_allowed(httpbin: HTTPBin) -> None:
    url = httpbin.url("/redirect/3")
    assert answer("get", url)["url"].endswith("/get")
    done = client("get", url, "--max-redirects", "2")
    assert done.returncode == 47
    assert b"tooManyRedirects" in done.stderr
    done = client("get", "-i", url, "--max-redirects", "0")
    assert done.returncode == 0
    assert done.stdout.startswith(b"HTTP/1.1 302 ")


def test_several_urls_are_printed_in_their_order(httpbin: HTTPBin) -> None:
    urls = [httpbin.url(f"/base64/{code}") for code in ("b25lCg==", "dHdvCg==", "dGhyZWUK")]
    done = client("get", *urls, "--parallel", "3")
    assert done.stdout == b"one\ntwo\nthree\n"


def test_the_first_failure_is_the_exit_code(httpbin: HTTPBin) -> None:
    nobody = f"http://127.0.0.1:{free_port()}/"
    done = client("get", httpbin.url("/status/500"), nobody, httpbin.url("/base64/b25lCg=="))
    assert done.returncode == 22
    assert done.stdout == b"one\n"
    lines = done.stderr.decode().splitlines()
    assert lines[0] == f"Error: {httpbin.url('/status/500')}: status 500; expected one below 400"
    assert lines[1].startswith(f"Error: {nobody}: connection-refused: ")
    assert client("get", nobody).returncode == 7


def test_a_request_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    assert client("get", "nonsense").returncode == 3
    assert client("get").returncode == 64
    assert client("get", "http://a/", "-H", "nonsense").returncode == 64
    assert client("post", "http://a/", "--data", "x", "--json", "1").returncode == 64
    assert client("get", "http://a/", "--resume").returncode == 64
    assert client("get", "http://a/", "http://b/", "-o", "x").returncode == 64
    done = client("upload", "http://127.0.0.1/", "--file", tmp_path / "none")
    assert done.returncode == 26
    assert b"none" in done.stderr


# Its handler of exit(3) is registered first, so it runs last: after OpenSSL's, if there is one.
LAST_HANDLER = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
static void look(void) {
    int (*start)(unsigned long, void *) = dlsym(RTLD_DEFAULT, "OPENSSL_init_crypto");
    if (start == 0) _exit(98);
    if (start(0, 0) != 1) _exit(99);
}
__attribute__((constructor)) static void begin(void) { atexit(look); }
"""


def test_openssl_is_there_for_threads_that_outlive_the_exit(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, httpbin: HTTPBin) -> None:
    # A session's TLS contexts are freed on the runtime's thread, while the process exits.
    monkeypatch.setenv("LD_PRELOAD", str(library(LAST_HANDLER, tmp_path / "last")))
    assert client("get", "nonsense").returncode == 3
    assert client("get", httpbin.url("/get")).returncode == 0


def test_timing_names_the_parts(origin) -> None:
    # Each response arrives in one piece: a redirect whose content is late is left with its connection.
    moved = reply(b"", "302 Found", "Location: /")
    server = origin(lambda request: moved if request.target == "/redirect" else reply(b"here"))
    done = client("get", "--timing", server.url("/redirect"))
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"302 {server.url('/redirect')}: queue ")
    # The connection of the first request carries the second.
    assert ", connect " in lines[0] and ", connect " not in lines[1]
    assert ", first byte " in lines[1] and ", total " in lines[1]


def test_the_parts_of_a_timing_add_up(origin) -> None:
    def answer_late(_: object) -> object:
        begun = time.monotonic()
        until(lambda: time.monotonic() > begun + 0.5, "the response is late")
        return reply(b"x" * 100)

    done = client("get", "--timing", origin(answer_late).url("/"))
    (line,) = done.stderr.decode().splitlines()
    times = {name: float(value) for name, value in
             re.findall(r"(queue|dns|connect|tls|first byte|body|total) ([\d.]+) ms", line)}
    assert times["first byte"] >= 500, line
    total = times.pop("total")
    assert total / 2 < sum(times.values()) <= total, line


def test_timing_names_what_failed_too(httpbin: HTTPBin, tmp_path: Path) -> None:
    nobody = f"http://127.0.0.1:{free_port()}/"
    done = client("get", "--timing", nobody, httpbin.url("/delay/10"), "--timeout", "0.2")
    assert done.returncode == 7
    lines = [line for line in done.stderr.decode().splitlines() if line.startswith("no response ")]
    assert sorted(line.split()[2].removesuffix(":") for line in lines) == sorted(
        [nobody, httpbin.url("/delay/10")])
    assert any(line.endswith(", failed (connection-refused)") for line in lines)
    done = client("download", "--timing", nobody, "-o", tmp_path / "a")
    assert f"no response {nobody}: queue " in done.stderr.decode()
    done = client("download", "--timing", httpbin.url("/status/404"), "-o", tmp_path / "a")
    assert f"404 {httpbin.url('/status/404')}: queue " in done.stderr.decode()


def test_a_timeout_is_reported(httpbin: HTTPBin) -> None:
    done = client("get", httpbin.url("/delay/10"), "--timeout", "0.2")
    assert done.returncode == 28
    assert b"no data was transferred for 200 ms" in done.stderr


def test_a_failed_request_is_sent_again(origin) -> None:
    served = []

    def handler(request):
        served.append(request)
        return reply(b"at last") if len(served) == 3 else reply(b"", "503 Service Unavailable")

    server = origin(handler)
    done = client("get", f"http://127.0.0.1:{server.port}/", "--retry", "3")
    assert done.stdout == b"at last"
    assert len(served) == 3


# MARK: Output


def to(output: int, *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen([BINARY, *map(str, arguments)], stdout=output, stderr=subprocess.PIPE)


@pytest.mark.parametrize("arguments", [["get"], ["get", "-i"], ["head"], ["get", "--parallel", "2"]])
def test_output_that_cannot_be_written_is_an_error(httpbin: HTTPBin, arguments: list[str]) -> None:
    url = httpbin.url("/get")
    urls = [url, url] if "--parallel" in arguments else [url]
    with open("/dev/full", "wb") as full:
        process = to(full.fileno(), *arguments, *urls)
    errors = process.communicate(timeout=PATIENCE)[1].decode()
    assert process.returncode == 23
    line = f"Error: {url}: standard output cannot be written: No space left on device"
    assert errors.splitlines() == [line] * len(urls)


def test_output_that_cannot_be_written_is_an_error_of_other_commands_too() -> None:
    with open("/dev/full", "wb") as full:
        process = to(full.fileno(), "reasons")
    errors = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 2
    assert errors == b"Error: standard output cannot be written: No space left on device\n"


def test_output_waits_for_a_pipe_that_does_not_block(nginx: Nginx, large: Path) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    process = to(writing, "get", nginx.url("/large.bin"))
    with open(reading, "rb") as pipe:
        until(lambda: not select.select([], [writing], [], 0)[1], "the pipe is full", PATIENCE)
        os.close(writing)
        content = pipe.read()
    assert process.wait(PATIENCE) == 0
    assert process.communicate()[1] == b""
    assert hashlib.sha256(content).hexdigest() == digest(large)


@pytest.mark.parametrize("ignored", [True, False])
def test_output_without_a_reader_is_no_error(httpbin: HTTPBin, ignored: bool) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.Popen(
        [BINARY, "get", httpbin.url("/get")], stdout=writing, stderr=subprocess.PIPE,
        restore_signals=not ignored)
    os.close(writing)
    assert process.communicate(timeout=PATIENCE)[1] == b""
    assert process.returncode == (0 if ignored else -signal.SIGPIPE)


# MARK: Files


@pytest.fixture
def large(nginx: Nginx) -> Path:
    path = nginx.files / "large.bin"
    if not path.exists():
        path.write_bytes(os.urandom(30_000_000))
    return path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_download_makes_a_file_of_the_urls_name(
    nginx: Nginx, large: Path, tmp_path: Path
) -> None:
    done = client("download", nginx.url("/large.bin"), "--folder", tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    assert digest(tmp_path / "large.bin") == digest(large)
    assert [path.name for path in tmp_path.iterdir()] == ["large.bin"]
    again = client("download", nginx.url("/large.bin"), "-o", tmp_path / "large.bin")
    assert again.returncode == 23
    assert b"exists; expected no file there" in again.stderr
    again = client("download", nginx.url("/large.bin"), "-o", tmp_path / "large.bin", "--replace")
    assert again.returncode == 0


@pytest.mark.parametrize("naming", ["-o", "-O"])
def test_a_download_resumes_after_kill_9(
    origin, tmp_path: Path, naming: str
) -> None:
    content = os.urandom(4_000_000)
    asked: list[str] = []

    def handler(request):
        asked.append(request.get("range"))
        if not asked[-1]:
            # All of it is promised, and half of it comes.
            length = f"Content-Length: {len(content)}"
            return reply(content[:2_000_000], "200 OK", 'ETag: "1"', length, length=False)
        first = int(asked[-1].removeprefix("bytes=").removesuffix("-"))
        part = f"Content-Range: bytes {first}-{len(content) - 1}/{len(content)}"
        return reply(content[first:], "206 Partial Content", 'ETag: "1"', part)

    server = origin(handler)
    url = f"http://127.0.0.1:{server.port}/a.bin"
    place = ["-o", tmp_path / "a.bin"] if naming == "-o" else ["-O", "--folder", tmp_path]
    process = subprocess.Popen(
        [BINARY, "download", url, "--resume", *map(str, place)], stderr=subprocess.DEVNULL)
    try:
        until(lambda: any(path.stat().st_size >= 1_000_000 for path in tmp_path.glob("*.part")),
              "half of it is written", PATIENCE)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    there = next(tmp_path.glob("*.part")).stat().st_size
    done = client("download", url, "--resume", *place)
    assert done.returncode == 0, done.stderr.decode()
    assert asked == ["", f"bytes={there}-"]
    assert f"{there} of them kept from before" in done.stderr.decode()
    assert (tmp_path / "a.bin").read_bytes() == content
    assert [path.name for path in tmp_path.iterdir()] == ["a.bin"]


@pytest.mark.parametrize(("first", "second"), [
    (["-o", "f"], ["-o", "./f"]),
    (["-o", "f"], ["-o", "d/../f"]),
    (["-o", "f"], ["-o", "{}/f"]),
    (["-o", "link/f"], ["-o", "d/f"]),
    (["-O", "--folder", "d"], ["-O", "--folder", "d/"]),
    (["-O", "--folder", "d"], ["-O", "--folder", "{}/link"]),
])
def test_a_download_resumes_by_whatever_path_its_file_is_named(
    origin, tmp_path: Path, first: list[str], second: list[str]
) -> None:
    content = os.urandom(300_000)
    asked: list[str] = []

    def handler(request):
        asked.append(request.get("range"))
        if not asked[-1]:
            length = f"Content-Length: {len(content)}"
            return reply(
                content[:200_000], "200 OK", 'ETag: "1"', length, "Connection: close",
                length=False)
        start = int(asked[-1].removeprefix("bytes=").removesuffix("-"))
        part = f"Content-Range: bytes {start}-{len(content) - 1}/{len(content)}"
        return reply(content[start:], "206 Partial Content", 'ETag: "1"', part)

    (tmp_path / "d").mkdir()
    (tmp_path / "link").symlink_to("d")
    url = f"http://127.0.0.1:{origin(handler).port}/f"
    for place in (first, second):
        done = subprocess.run(
            [BINARY, "download", url, "--resume", *(word.format(tmp_path) for word in place)],
            cwd=tmp_path, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr.decode()
    assert asked == ["", "bytes=200000-"]
    assert [path.read_bytes() for path in tmp_path.rglob("f*")] == [content]


def test_cookies_that_are_not_utf_8_are_sent_back_as_they_came(origin, tmp_path: Path) -> None:
    server = origin(lambda _: reply(b"", "200 OK", "Set-Cookie: a=caf\xe9; Max-Age=1000"))
    jar = tmp_path / "jar"
    for _ in range(2):
        done = client("get", f"http://127.0.0.1:{server.port}/", "--cookie-jar", jar)
        assert done.returncode == 0, done.stderr.decode()
        assert jar.read_bytes().endswith(b"\ta\tcaf\xe9\n")
    assert [request.get("cookie") for request in server.requests] == ["", "a=caf\xe9"]


def test_a_redirect_that_is_not_utf_8_leads_to_its_bytes(origin) -> None:
    server = origin(lambda request: reply(b"there") if request.target != "/" else reply(
        b"", "302 Found", "Location: /caf\xe9"))
    assert client("get", f"http://127.0.0.1:{server.port}/").stdout == b"there"
    assert [request.target for request in server.requests] == ["/", "/caf%E9"]


def test_digest_hashes_and_sends_back_the_bytes_of_a_challenge(origin) -> None:
    def md5(data: bytes) -> bytes:
        return hashlib.md5(data).hexdigest().encode()

    challenge = 'WWW-Authenticate: Digest realm="caf\xe9", nonce="\xff", opaque="\xfe"'
    server = origin(lambda request: reply(b"in") if request.get("authorization") else reply(
        b"", "401 Unauthorized", challenge))
    done = client("get", f"http://127.0.0.1:{server.port}/p", "--user", "u:p")
    assert done.stdout == b"in", done.stderr.decode()
    sent = server.requests[1].get("authorization").encode("latin-1")
    response = md5(md5(b"u:caf\xe9:p") + b":\xff:" + md5(b"GET:/p"))
    for parameter in (b'realm="caf\xe9"', b'nonce="\xff"', b'opaque="\xfe"',
                      b'response="' + response + b'"'):
        assert parameter in sent


def test_upload_sends_a_file(nginx: Nginx, large: Path) -> None:
    done = client("upload", nginx.url("/store/up.bin"), "--file", large)
    assert done.returncode == 0, done.stderr.decode()
    assert digest(nginx.uploads / "up.bin") == digest(large)


def test_a_status_of_failure_makes_no_file(nginx: Nginx, tmp_path: Path) -> None:
    done = client("download", nginx.url("/none"), "-o", tmp_path / "none")
    assert done.returncode == 22
    assert list(tmp_path.iterdir()) == []


# MARK: Proxies


def test_requests_go_through_a_proxy(gateway, httpbin: HTTPBin) -> None:
    proxy = gateway({"access": {"destinations": {"allow": ["127.0.0.1"]}}})
    url = httpbin.url("/get")
    forwarded = client("get", "-i", url, "--proxy", proxy.proxy_url)
    assert forwarded.returncode == 0, forwarded.stderr
    assert b"\nvia:" in forwarded.stdout.lower()
    alone = client("get", "-i", url, "--proxy", "")
    assert b"\nvia:" not in alone.stdout.lower()


def test_tls_goes_through_a_tunnel(gateway, secure, pki) -> None:
    url, leaf = secure
    proxy = gateway({"access": {"connectPorts": "any", "destinations": {"allow": ["127.0.0.1"]}}})
    done = client("get", url, "--cacert", pki.root.pem_file, "--pin", leaf.pin,
                  "--proxy", proxy.proxy_url, "--timing")
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"secret"
    errors = done.stderr.decode()
    places = [errors.find(f"{part} ") for part in
              (", connect", " (tunnel", ", tls", ", first byte", ", total")]
    assert -1 not in places and places == sorted(places), errors


def test_a_proxy_that_cannot_be_used_is_reported(httpbin: HTTPBin) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    done = client("get", httpbin.url("/get"), "--proxy", dead)
    assert done.returncode == 7
    assert b"proxy-unreachable" in done.stderr


# MARK: Trust


@pytest.fixture
def secure(pki, origin):
    leaf = pki.root.issue("127.0.0.1")
    server = origin(lambda request: reply(b"secret"), tls=leaf.server_context())
    return f"https://127.0.0.1:{server.port}/", leaf


def test_a_server_is_trusted_by_a_file_of_authorities(secure, pki) -> None:
    url, _ = secure
    done = client("get", url)
    assert done.returncode == 60
    assert f"Error: {url}: tls-" in done.stderr.decode()
    assert client("get", url, "--cacert", pki.root.pem_file).stdout == b"secret"


def test_expected_and_presented_pins_are_printed(secure, pki) -> None:
    url, leaf = secure
    trusted = ["get", url, "--cacert", pki.root.pem_file]
    assert client(*trusted, "--pin", leaf.pin).stdout == b"secret"
    wrong = "sha256/" + "A" * 43 + "="
    done = client(*trusted, "--pin", wrong)
    assert done.returncode == 90
    errors = done.stderr.decode()
    assert f"{url}: tls-no-pin-matches: " in errors
    assert f"expected one of: {wrong}" in errors
    assert f"the server presented: {leaf.pin}" in errors
    clear = client("get", url.replace("https", "http"), "--pin", leaf.pin)
    assert clear.returncode == 90


def test_invalid_certificates_are_taken_in_so_many_words_only(secure) -> None:
    url, leaf = secure
    assert client("get", url, "--allow-invalid-certificates").stdout == b"secret"
    assert client(
        "get", url, "--allow-invalid-certificates", "--pin", leaf.pin).stdout == b"secret"
    wrong = "sha256/" + "A" * 43 + "="
    done = client("get", url, "--allow-invalid-certificates", "--pin", wrong)
    assert done.returncode == 90
    assert client("get", url, "--insecure").returncode == 64
