"""What users of curl expect of the client's commands, beside curl itself."""

from __future__ import annotations

import fcntl
import os
import pty
import subprocess
import termios
from collections.abc import Callable
from pathlib import Path

import pytest
from support.gateway import BINARY, free_port
from support.origin import Request, chunked, reply, scripted
from support.servers import HTTPBin
from support.wait import SLOWDOWN

PATIENCE = 60 * SLOWDOWN
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}


def run(
    *arguments: object, input: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    # In a session of its own, nobody is asked for passwords on the tests' terminal.
    return subprocess.run([*map(str, arguments)], input=input, capture_output=True,
                          timeout=PATIENCE, env=ENVIRONMENT | environment, start_new_session=True)


def same(*arguments: object, input: bytes = b"") -> tuple[int, bytes]:
    """What both end with and print, with the same arguments."""
    ours = run(BINARY, "get", *arguments, input=input)
    theirs = run("curl", "-sS", *arguments, input=input)
    assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout), ours.stderr
    return ours.returncode, ours.stdout


@pytest.fixture
def server(origin: Callable):
    def answer(request: Request) -> bytes:
        if request.target == "/404":
            return reply(b"gone", "404 Not Found")
        if request.target == "/dead":
            return reply(b"", "302 Found", f"Location: http://127.0.0.1:{free_port()}/")
        return reply(request.body or b"content")
    return origin(answer)


def test_content_goes_to_devices_pipes_and_standard_output(server, tmp_path: Path) -> None:
    assert same("-o", "/dev/null", "-w", "%{http_code}", server.url()) == (0, b"200")
    assert same("-o", "-", server.url()) == (0, b"content")
    assert same("-o", "/dev/stdout", server.url()) == (0, b"content")
    assert same("-i", "-o", "/dev/null", server.url()) == (0, b"")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        done = run(BINARY, "download", "-s", "-o", pipe, server.url())
        assert (done.returncode, done.stdout) == (0, b"")
        assert reader.communicate(timeout=PATIENCE)[0] == b"content"
    assert pipe.is_fifo()
    done = run(BINARY, "head", "-o", "/dev/null", "-w", "%{http_code}", server.url())
    assert (done.returncode, done.stdout) == (0, b"200")
    assert run(BINARY, "get", "-o", "/dev/null", "--resume", server.url()).returncode == 64
    done = run(BINARY, "get", "-o", "/dev/full", server.url())
    assert done.returncode == 23 and b"/dev/full cannot be written" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe"]


def test_failures_are_described_as_well(server, tmp_path: Path) -> None:
    form = r"%{http_code} %{http_version} %{method} %{num_redirects} %{size_download}\n"
    refused = f"http://127.0.0.1:{free_port()}/"
    assert same("-o", tmp_path / "a", "-w", form, refused) == (7, b"000 0 GET 0 0\n")
    assert same("-w", "%{http_code} %{url_effective}", refused) == (7, f"000 {refused}".encode())
    assert same("-w", "%{http_code}", "http://a.test:x/") == (3, b"000")
    # The last response is the redirect's.
    assert same("-L", "-w", "%{http_code} %{num_redirects}", server.url("/dead")) == (7, b"302 1")
    assert same("-f", "-o", tmp_path / "a", "-w", "%{http_code}", server.url("/404")) == (22, b"404")
    done = run(BINARY, "get", "-o", tmp_path / "a", "-w", "%{http_code}", server.url("/404"))
    assert (done.returncode, done.stdout) == (22, b"404")
    assert list(tmp_path.iterdir()) == []


def test_the_format_of_what_is_written_is_read_from_files(server, tmp_path: Path) -> None:
    file = tmp_path / "format"
    file.write_text("%{http_code}\\n\nx\n")
    assert same("-o", "/dev/null", "-w", f"@{file}", server.url())[1] == b"200\nx"
    assert same("-o", "/dev/null", "-w", "@-", server.url(), input=b"a%{http_code}\n")[1] == b"a200"
    assert run(BINARY, "get", "-w", f"@{tmp_path}/none", server.url()).returncode == 26


def test_form_data_is_read_from_standard_input(server) -> None:
    assert same("-d", "@-", "-d", "c", server.url(), input=b"a\r\nb\n") == (0, b"ab&c")
    for command in ("post", "put", "patch"):
        done = run(BINARY, command, "-d", "a=1", "-d", "@-", server.url(), input=b"b=2\n")
        assert (done.returncode, done.stdout) == (0, b"a=1&b=2")
        sent = server.requests[-1]
        assert sent.method == command.upper()
        assert sent.get("content-type") == "application/x-www-form-urlencoded"
    done = run(BINARY, "get", "-d", "@/nonexistent/file", server.url())
    assert done.returncode == 26 and b"-d @/nonexistent/file" in done.stderr
    assert run(BINARY, "post", "-d", "a", "--json", "1", server.url()).returncode == 64


def test_errors_are_shown_as_curl_is_told_to(server) -> None:
    assert same("-sS", server.url()) == (0, b"content")
    assert same("-fsSL", server.url("/404")) == (22, b"")


@pytest.mark.parametrize("fields", [
    ["Accept:", "User-Agent: x"], ["Accept:", "Accept: a/b", "User-Agent: "], ["X-Empty;", "User-Agent:"],
])
def test_fields_are_left_out_or_empty(server, fields: list[str]) -> None:
    options = [word for field in fields for word in ("-H", field)]
    same(*options, server.url())
    ours, theirs = (
        {name.lower(): value for name, value in request.headers} for request in server.requests)
    # Which curl sends only if it is asked to.
    del ours["accept-encoding"]
    assert ours == theirs


def test_fields_of_content_are_left_out(server) -> None:
    same("-d", "a", "-H", "Content-Type:", server.url())
    assert [request.get("content-type") for request in server.requests] == ["", ""]
    run(BINARY, "get", "-H", "Accept-Encoding:", server.url())
    assert "accept-encoding" not in {name.lower() for name, _ in server.requests[-1].headers}
    assert run(BINARY, "get", "-H", "Host:", server.url()).returncode == 64


def test_a_password_is_asked_for_on_the_terminal(httpbin: HTTPBin) -> None:
    url = httpbin.url("/basic-auth/me/secret")
    ours, theirs = pty.openpty()

    def become_its_session() -> None:
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    with subprocess.Popen(
        [BINARY, "get", "-X", "GET", "-d", "@-", "-u", "me", url], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT,
        preexec_fn=become_its_session, pass_fds=[theirs],
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(b"content")
        process.stdin.close()
        assert process.stderr.read(len("Password for me: ")) == b"Password for me: "
        os.write(ours, b"secret\n")
        assert b'"authenticated": true' in process.stdout.read()
        assert process.wait(PATIENCE) == 0
    os.close(ours)
    os.close(theirs)


def test_a_password_that_nobody_gives_is_not_taken_for_an_empty_one(server) -> None:
    for command, *options in (("get",), ("post", "--data", "@-")):
        done = run(BINARY, command, "-u", "me", *options, server.url())
        assert done.returncode == 64 and b"there is no password" in done.stderr
    assert server.requests == []


def test_json_that_is_cut_off_is_printed_as_far_as_it_came(scripted_origin: Callable) -> None:
    cut = reply(b'{"a": 1', "200 OK", "Content-Type: application/json", "Content-Length: 100",
                length=False)
    done = run(BINARY, "get", "--pretty", "always", scripted_origin(scripted(cut)).url())
    assert (done.returncode, done.stdout) == (18, b'{"a": 1')


def test_an_empty_no_color_has_no_effect(origin: Callable) -> None:
    server = origin(lambda request: reply(b"[1]", "200 OK", "Content-Type: application/json"))
    for value, text in (("", b"[\n  \x1b[36m1\x1b[0m\n]\n"), ("1", b"[\n  1\n]\n")):
        assert run(BINARY, "get", "--pretty", "always", server.url(), NO_COLOR=value).stdout == text


def test_every_host_is_resolved_as_told(server) -> None:
    for place in ("*", "+service.test", "service.test"):
        resolve = f"{place}:{server.port}:127.0.0.1"
        assert same("--resolve", resolve, f"http://service.test:{server.port}/") == (0, b"content")


def test_verbose_has_tls_the_certificate_and_the_version(http2_origin: Callable, pki) -> None:
    leaf = pki.intermediate.issue("127.0.0.1")
    server = http2_origin(tls=leaf.server_context(alpn=("h2", "http/1.1")))
    options = ["-v", "--cacert", pki.root.pem_file, server.url("/body/1")]
    for more, version in ([], "2"), (["--http1.1"], "1.1"):
        ours = run(BINARY, "get", *more, *options).stderr.decode().splitlines()
        theirs = run("curl", "-sS", *more, *options).stderr.decode().splitlines()
        (suite,) = [line for line in theirs if "SSL connection using" in line]
        assert suite in ours
        assert f"* using HTTP/{version}" in ours
        (status,) = [line for line in ours if line.startswith(f"< HTTP/{version} 200")]
        end = f"{leaf.certificate.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}"
        assert f"*  expire date: {end}" in ours
        for name in ("subject", "issuer"):
            (line,) = [line for line in ours if line.startswith(f"*  {name}: ")]
            (other,) = [line for line in theirs if line.startswith(f"*  {name}: ")]
            assert other.rpartition("=")[2].strip() in line
        assert ours.index(suite) < ours.index(status)


def test_verbose_says_which_connections_are_reused(server) -> None:
    lines = run(BINARY, "get", "-v", "--parallel", "1", server.url("/1"), server.url("/2")).stderr
    shown = [line for line in lines.decode().splitlines() if f"to {server.authority}" in line]
    assert shown == [f"* connected to {server.authority}", f"* reused the connection to {server.authority}"]


def test_chunked_content_goes_to_a_device_as_it_comes(scripted_origin: Callable) -> None:
    done = run(BINARY, "get", "-o", "-", scripted_origin(scripted(chunked([b"a", b"b"]))).url())
    assert (done.returncode, done.stdout) == (0, b"ab")
