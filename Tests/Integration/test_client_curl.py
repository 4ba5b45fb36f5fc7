"""Options of the client's commands that are curl's, and what they print for people."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path

from support.gateway import BINARY
from support.origin import reply
from support.servers import HTTPBin
from support.wait import SLOWDOWN

PATIENCE = 60 * SLOWDOWN


def client(*arguments: object, input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([BINARY, *map(str, arguments)], input=input, capture_output=True,
                          timeout=PATIENCE, env={**os.environ, "no_proxy": "*"})


def seen(*arguments: object, input: bytes = b"") -> dict:
    done = client(*arguments, input=input)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_insecure_is_refused_with_the_way_to_go() -> None:
    done = client("get", "-k", "https://127.0.0.1/")
    assert done.returncode == 64
    assert b"--cacert" in done.stderr and b"--pin" in done.stderr


def test_a_url_needs_no_scheme(httpbin: HTTPBin) -> None:
    assert seen("get", httpbin.url("/get").removeprefix("http://"))["url"] == httpbin.url("/get")


def test_method_and_form_data_are_sent(httpbin: HTTPBin, tmp_path: Path) -> None:
    assert seen("get", "-X", "PUT", httpbin.url("/put"))["url"] == httpbin.url("/put")
    (tmp_path / "data").write_text("c=3\n")
    sent = seen("get", "-L", "--compressed", "-d", "a=1", "-d", "b=2", "-d", f"@{tmp_path}/data",
                httpbin.url("/post"))
    assert sent["form"] == {"a": "1", "b": "2", "c": "3"}
    typed = seen("get", "-d", "{}", "-H", "Content-Type: application/json", httpbin.url("/post"))
    assert typed["json"] == {}
    assert client("get", "-X", "a b", httpbin.url("/get")).returncode == 64


def test_a_password_is_asked_for(httpbin: HTTPBin) -> None:
    url = httpbin.url("/basic-auth/me/secret")
    assert seen("get", "-u", "me", url, input=b"secret\n")["authenticated"] is True


def test_fail_prints_no_content(origin: Callable) -> None:
    server = origin(lambda request: reply(b"gone", "404 Not Found"))
    assert client("get", server.url()).stdout == b"gone"
    done = client("get", "-f", server.url())
    assert (done.returncode, done.stdout) == (22, b"")


def test_write_out_has_curls_variables(httpbin: HTTPBin) -> None:
    url = httpbin.url("/redirect/1")
    done = client("get", "-w", r"\n%{http_code} %{num_redirects} %{url_effective}\n", url)
    assert done.stdout.endswith(f"\n200 1 {httpbin.url('/get')}\n".encode())
    assert client("get", "-w", "%{nonsense}", url).returncode == 64


def test_write_out_follows_files(httpbin: HTTPBin, tmp_path: Path) -> None:
    for command, *place in (("get", "-o", tmp_path / "a"), ("get", "-O", "--folder", tmp_path),
                            ("download", "-o", tmp_path / "b")):
        done = client(command, httpbin.url("/get"), *place, "-w", r"%{http_code} %{method}\n")
        assert (done.returncode, done.stdout) == (0, b"200 GET\n"), done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "get"]


def test_verbose_prints_both_sides_without_secrets(httpbin: HTTPBin) -> None:
    done = client("get", "-v", "-H", "Authorization: secret", httpbin.url("/get"))
    lines = done.stderr.decode().splitlines()
    assert "> GET /get" in lines and "< HTTP/1.1 200 OK" in lines
    assert "> Authorization: ***" in lines
    assert [line for line in lines if line.startswith("* 200 http://")]
    assert "secret" not in done.stderr.decode()


def test_hosts_are_resolved_as_told(httpbin: HTTPBin) -> None:
    port = httpbin.url("").rpartition(":")[2].strip("/")
    url = f"http://service.test:{port}/get"
    found = seen("get", "--resolve", f"service.test:{port}:127.0.0.1", url)
    assert found["headers"]["Host"] == f"service.test:{port}"
    assert client("get", "--resolve", "nonsense", url).returncode == 64
    assert client("get", "--interface", "127.0.0.2", httpbin.url("/get")).returncode == 0


def test_an_archive_has_requests_and_responses(httpbin: HTTPBin, tmp_path: Path) -> None:
    path = tmp_path / "all.har"
    done = client("get", "--har", path, "-H", "Authorization: secret", httpbin.url("/get?a=b"),
                  httpbin.url("/status/404"))
    assert done.returncode == 22
    entries = json.loads(path.read_text())["log"]["entries"]
    assert sorted(entry["response"]["status"] for entry in entries) == [200, 404]
    (found,) = [entry for entry in entries if entry["response"]["status"] == 200]
    assert found["request"]["queryString"] == [{"name": "a", "value": "b"}]
    assert json.loads(found["response"]["content"]["text"])["args"] == {"a": "b"}
    # The server's own copy of the field is content.
    assert {"name": "Authorization", "value": "***"} in found["request"]["headers"]
    assert found["time"] > 0 and found["timings"]["wait"] >= 0
    assert client("get", "--har", path, httpbin.url("/get")).returncode == 23


def test_there_is_no_archive_of_files(httpbin: HTTPBin, tmp_path: Path) -> None:
    url, path = httpbin.url("/get"), tmp_path / "all.har"
    for command, *options in (("get", "-o", tmp_path / "a"), ("get", "-O"), ("download",)):
        done = client(command, url, "--har", path, *options)
        assert done.returncode == 64
        assert b"--har cannot be combined with" in done.stderr
    done = client("get", url, "--har", "-")
    assert (done.returncode, done.stdout) == (64, b"")
    assert b"expected the name of a new file" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_json_is_indented_on_request_and_on_a_terminal(origin: Callable) -> None:
    server = origin(lambda request: reply(
        b'{"a":[1]}', "200 OK", "Content-Type: application/problem+json"))
    assert client("get", server.url()).stdout == b'{"a":[1]}'
    done = subprocess.run(
        [BINARY, "get", "--pretty", "always", server.url()], capture_output=True, timeout=PATIENCE,
        env={**os.environ, "NO_COLOR": "1", "no_proxy": "*"})
    assert done.stdout == b'{\n  "a": [\n    1\n  ]\n}\n'
    ours, theirs = pty.openpty()
    with subprocess.Popen([BINARY, "get", server.url()], stdin=theirs, stdout=theirs,
                          stderr=theirs, env={**os.environ, "no_proxy": "*"}) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # Nobody has the other side any more.
                break
            written += part
        assert process.wait(PATIENCE) == 0
    os.close(ours)
    assert b"\x1b[36m1\x1b[0m" in written
