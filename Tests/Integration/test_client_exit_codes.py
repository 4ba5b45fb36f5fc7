"""The exit codes of the client's commands, beside curl's."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.gateway import BINARY, free_port
from support.origin import reply, scripted
from support.wait import SLOWDOWN

PATIENCE = 60 * SLOWDOWN
NO_PIN = "A" * 43 + "="
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}


def run(*arguments: object) -> tuple[int, str]:
    done = subprocess.run([*map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=PATIENCE, env=ENVIRONMENT)
    return done.returncode, done.stderr.decode()


def compare(expected: int, ours: list[object], theirs: list[object] | None = None) -> None:
    """Both end with the same code, with the same arguments unless curl has others."""
    ended, output = run(BINARY, "get", *ours)
    assert ended == expected, output
    assert run("curl", "-sS", *(ours if theirs is None else theirs))[0] == expected


@pytest.mark.parametrize("code,answer", [
    (18, reply(b"abc")[:-1]),
    (18, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"),
    (52, b""),
    (56, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
])
def test_malformed_responses_have_curls_codes(
    scripted_origin: Callable, code: int, answer: bytes
) -> None:
    compare(code, [scripted_origin(scripted(answer)).url()])


def test_a_download_that_breaks_off_has_curls_code(
    scripted_origin: Callable, tmp_path: Path
) -> None:
    compare(18, [scripted_origin(scripted(reply(b"abc")[:-1])).url(), "-o", tmp_path / "file"])


def test_content_that_cannot_be_decoded_has_curls_code(origin: Callable) -> None:
    url = origin(lambda request: reply(b"no gzip", "200 OK", "Content-Encoding: gzip")).url()
    compare(61, [url], ["--compressed", url])


def test_tls_has_curls_codes(origin: Callable, scripted_origin: Callable, pki, tmp_path: Path) -> None:
    server = origin(lambda request: reply(), tls=pki.root.issue("127.0.0.1").server_context())
    url = f"https://127.0.0.1:{server.port}/"
    compare(60, [url])
    trusted = ["--cacert", pki.root.pem_file, url]
    compare(90, [*trusted, "--pin", f"sha256/{NO_PIN}"],
            [*trusted, "--pinnedpubkey", f"sha256//{NO_PIN}"])
    compare(77, ["--cacert", tmp_path / "none", url])
    no_certificates = tmp_path / "text"
    no_certificates.write_text("none")
    compare(77, ["--cacert", no_certificates, url])
    # What answers a ClientHello in clear text, and what closes.
    for sent in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b""):
        def answer(connection, sent=sent) -> None:
            connection._more()
            connection.send(sent)
        compare(35, [f"https://127.0.0.1:{scripted_origin(answer).port}/"])


def test_proxies_have_curls_codes() -> None:
    def through(proxy: str) -> list[object]:
        return ["--proxy", proxy, "http://server.test/"]

    compare(7, through(f"http://127.0.0.1:{free_port()}"))
    compare(5, through("http://none.invalid"))
    compare(5, through("http://a b"))


def test_urls_have_curls_codes() -> None:
    compare(1, ["gopherx://127.0.0.1/"])
    compare(3, ["http://127.0.0.1:99999/"])
    compare(6, ["http://none.invalid/"])
    compare(7, [f"http://127.0.0.1:{free_port()}/"])


def test_redirects_have_curls_codes(origin: Callable) -> None:
    def to(place: str) -> str:
        return origin(lambda request: reply(b"", "302 Found", f"Location: {place}")).url()

    url = to("/")
    compare(47, ["--max-redirects", "2", url], ["-L", "--max-redirs", "2", url])
    url = to("gopherx://a.test/")
    compare(1, [url], ["-L", url])


def test_standard_input_that_cannot_be_read_is_an_error_of_the_content() -> None:
    done = subprocess.run(
        ["sh", "-c", f'"$0" post http://127.0.0.1:{free_port()}/ --data @- <&-', BINARY],
        capture_output=True, timeout=PATIENCE)
    assert done.returncode == 26
    assert done.stderr.startswith(b"Error: standard input cannot be read: ")


def test_pins_that_cannot_be_read_or_would_not_be_asked_for_end_with_90(tmp_path: Path) -> None:
    ended, output = run(BINARY, "get", "https://127.0.0.1/", "--pin", tmp_path / "none")
    assert (ended, "--pin " in output) == (90, True)
    assert run(BINARY, "get", "http://127.0.0.1/", "--pin", f"sha256/{NO_PIN}")[0] == 90


@pytest.mark.parametrize("name", ["ab" * 20, "sha384/x"])
def test_a_file_that_is_named_like_no_pin_holds_pins(
    origin: Callable, pki, tmp_path: Path, name: str
) -> None:
    leaf = pki.root.issue("127.0.0.1")
    server = origin(lambda request: reply(b"secret"), tls=leaf.server_context())
    command = [BINARY, "get", f"https://127.0.0.1:{server.port}/", "--cacert", pki.root.pem_file,
               "--pin", name]
    bad = subprocess.run(command, capture_output=True, timeout=PATIENCE, cwd=tmp_path)
    assert bad.returncode == 90
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(pki.root.pem_file.read_bytes())
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, b"secret"), done.stderr


def test_help_lists_the_codes_in_their_order() -> None:
    done = subprocess.run([BINARY, "get", "--help"], capture_output=True, text=True, check=True)
    codes = [int(code) for code in re.findall(r"^  (\d+)\t\S", done.stdout, re.MULTILINE)]
    assert {1, 5, 18, 35, 52, 61, 77, 90, 97} <= set(codes)
    assert codes == sorted(set(codes))
    assert "with 64 if the command line is invalid" in " ".join(done.stdout.split())
