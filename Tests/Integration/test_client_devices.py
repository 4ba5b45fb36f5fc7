"""What devices send that is not quite HTTP: read where curl reads it, refused where it would be a guess."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.gateway import BINARY
from support.origin import OriginConnection, Request, reply
from support.wait import SLOWDOWN

PATIENCE = 60 * SLOWDOWN
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}


def run(*arguments: object) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=PATIENCE, env=ENVIRONMENT)


def md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


def proves(answer: str, realm: str, nonce: str) -> bool:
    """Whether a Digest answer proves that its sender knows Ann's password."""
    given = {name: quoted or bare for name, quoted, bare in
             re.findall(r'(\w+)=(?:"([^"]*)"|([^," ]+))', answer.removeprefix("Digest "))}
    middle = f":{given['nc']}:{given['cnonce']}:{given['qop']}" if "qop" in given else ""
    expected = md5(f"{md5(f'ann:{realm}:secret')}:{nonce}{middle}:{md5('GET:/')}")
    return given["response"] == expected and given["nonce"] == nonce


def guarded(challenge: str, *, realm: str = "", nonce: str = "") -> Callable[[Request], bytes]:
    def answer(request: Request) -> bytes:
        field = request.get("authorization")
        right = "Basic YW5uOnNlY3JldA=="
        if field == right if challenge.startswith("Basic") else field and proves(field, realm, nonce):
            return reply(b"welcome")
        return reply(b"who?", "401 Who", f"WWW-Authenticate: {challenge}")

    return answer


@pytest.mark.parametrize("challenge,realm,nonce", [
    ("Basic realm=my realm", "my realm", ""),
    ("Basic", "", ""),
    ("Basic realm=\"x\"; charset=\"UTF-8\"", "x", ""),
    ("Basic \"my realm\"", "", ""),
    ("Basic realm=\"a\" Digest realm=\"b\", nonce=\"n\", qop=\"auth\"", "a", ""),
    ("Digest realm=\"r\", nonce=\"n\", qop=\"\"", "r", "n"),
    ("Digest realm=\"r\", nonce=YWJj==", "r", "YWJj=="),
    ("Digest realm=\"r\" nonce=\"n\" qop=\"auth\"", "r", "n"),
    ("Digest nonce=\"n\", qop=\"auth\"", "", "n"),
    ("Digest realm=\"r\", nonce=\"a\", nonce=\"b\", qop=\"auth\"", "r", "b"),
])
def test_challenges_of_devices_are_answered_as_by_curl(
    origin: Callable, challenge: str, realm: str, nonce: str
) -> None:
    url = origin(guarded(challenge, realm=realm, nonce=nonce)).url()
    for done in [run(BINARY, "get", url, "--user", "ann:secret"),
                 run("curl", "-sS", "--anyauth", url, "--user", "ann:secret")]:
        assert done.stdout == b"welcome", (done.args, done.stderr)


@pytest.mark.parametrize("challenge", [
    "Basic realm=\"a\", realm=\"b\"", "Digest realm=a Basic realm=b", "Digest realm=\"a",
])
def test_a_challenge_that_cannot_be_read_is_an_error_with_credentials(
    origin: Callable, challenge: str
) -> None:
    there = origin(lambda request: reply(b"who?", "401 Who", f"WWW-Authenticate: {challenge}"))
    done = run(BINARY, "get", there.url(), "--user", "ann:secret")
    assert done.returncode == 94
    assert b"the challenge cannot be parsed" in done.stderr and challenge.encode() in done.stderr
    assert [request.get("authorization") for request in there.requests] == [""]
    assert run(BINARY, "get", there.url()).returncode == 22, "else it is a response like others"


@pytest.mark.parametrize("challenge", ["Bearer realm=\"x\"; error=y", "="])
def test_a_challenge_of_another_scheme_is_a_response_despite_credentials(
    origin: Callable, challenge: str
) -> None:
    there = origin(lambda request: reply(b"who?", "401 Who", f"WWW-Authenticate: {challenge}"))
    done = run(BINARY, "get", there.url(), "--user", "ann:secret")
    assert (done.returncode, b"cannot be read" in done.stderr) == (22, False)


def test_a_challenge_of_another_server_is_a_response(origin: Callable) -> None:
    other = origin(lambda request: reply(b"who?", "401 Who", "WWW-Authenticate: Basic realm=\"a"))
    there = origin(lambda request: reply(b"", "302 Found", f"Location: {other.url()}"))
    done = run(BINARY, "get", there.url(), "--user", "ann:secret")
    assert (done.returncode, b"cannot be read" in done.stderr) == (22, False)


def test_a_challenge_of_a_proxy_that_cannot_be_read_is_its_407(origin: Callable) -> None:
    there = origin(
        lambda request: reply(b"who?", "407 Who", "Proxy-Authenticate: Digest realm=\"a"))
    proxy = there.url().replace("//", "//ann:secret@")
    done = run(BINARY, "get", "http://origin.test/", "--proxy", proxy)
    assert (done.returncode, b"cannot be read" in done.stderr) == (22, False)
    done = run(BINARY, "get", "https://origin.test/", "--proxy", proxy)
    assert done.returncode == 97
    assert b"proxy-authentication-required" in done.stderr
    assert b"the challenge cannot be parsed" in done.stderr


def test_of_two_redirects_in_one_none_is_followed(origin: Callable) -> None:
    def answer(request: Request) -> bytes:
        places = {"/equal": ["/one", "/one"], "/different": ["/one", "/two"]}.get(request.target)
        if places is None:
            return reply(request.target.encode())
        return reply(b"", "302 Found", *(f"Location: {place}" for place in places))

    there = origin(answer)
    assert run(BINARY, "get", there.url("/equal")).stdout == b"/one"
    done = run(BINARY, "get", there.url("/different"))
    assert done.returncode == 56
    assert b"2 different Location fields (/one, /two)" in done.stderr
    assert [request.target for request in there.requests] == ["/equal", "/one", "/different"]


@pytest.mark.parametrize("fields,name", [
    (["attachment; filename=\"a.txt\""] * 2, "a.txt"),
    (["attachment; filename=\"a.txt\"", "attachment"], "url.bin"),
])
def test_a_file_has_the_servers_name_if_there_is_only_one(
    origin: Callable, tmp_path: Path, fields: list[str], name: str
) -> None:
    there = origin(lambda request: reply(
        b"content", "200 OK", *(f"Content-Disposition: {value}" for value in fields)))
    done = run(BINARY, "get", there.url("/url.bin"), "-O", "--folder", tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_post_whose_kept_connection_is_closed_is_sent_again_as_by_curl(
    scripted_origin: Callable,
) -> None:
    def script(connection: OriginConnection) -> None:
        if request := connection.read_request():
            asked.append(request.target)
            connection.send(reply(b"one "))
            if request := connection.read_request():
                asked.append(request.target)

    for command in [[BINARY, "post", "--parallel", "1"], ["curl", "-sS"]]:
        asked: list[str] = []
        there = scripted_origin(script)
        done = run(*command, "--data", "x", there.url("/1"), there.url("/2"))
        assert (done.returncode, done.stdout) == (0, b"one one "), done.stderr
        assert there.accepted == 2
        assert asked == ["/1", "/2", "/2"]


def test_urls_that_share_a_cookie_jar_are_asked_for_in_order(
    origin: Callable, tmp_path: Path
) -> None:
    def answer(request: Request) -> bytes:
        if request.target == "/login":
            return reply(b"", "200 OK", "Set-Cookie: session=1")
        return reply(f"<{request.get('cookie')}>".encode())

    there = origin(answer)
    urls = [there.url("/login"), *(there.url(f"/{number}") for number in range(6))]
    done = run(BINARY, "get", *urls, "--cookie-jar", tmp_path / "jar")
    assert done.stdout == b"<session=1>" * 6, done.stderr
    assert [request.target for request in there.requests] == ["/login", *(f"/{n}" for n in range(6))]


def test_zero_bytes_behind_a_gzip_file_are_passed_over(origin: Callable) -> None:
    content = gzip.compress(b"content")
    bodies = {"/padded": content + bytes(700), "/other": content + bytes(700) + b"x"}
    there = origin(lambda request: reply(bodies[request.target], "200 OK", "Content-Encoding: gzip"))
    done = run(BINARY, "get", there.url("/padded"))
    assert (done.returncode, done.stdout) == (0, b"content"), done.stderr
    assert run(BINARY, "get", there.url("/other")).returncode == 61
