"""The client's commands, and so its library, with servers that speak HTTP/2."""

from __future__ import annotations

import hashlib
import os
import subprocess

import pytest
from support.gateway import BINARY
from support.origin import reply
from support.wait import SLOWDOWN

H2 = ("h2", "http/1.1")


@pytest.fixture
def run(pki):
    """run(command, *arguments): a command of the client that trusts the tests' root."""

    def made(*arguments: object, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        command = [BINARY, *map(str, arguments), "--cacert", str(pki.root.pem_file)]
        done = subprocess.run(command, capture_output=True, timeout=60 * SLOWDOWN,
                              stdin=subprocess.DEVNULL)
        assert not check or done.returncode == 0, done.stderr.decode()
        return done

    return made


@pytest.fixture
def there(http2_origin, pki):
    """A server by address: the client resolves names as the system does."""
    return http2_origin(
        tls=pki.intermediate.issue("127.0.0.1").server_context(alpn=H2))


def test_http_2_is_spoken_with_servers_that_select_it(run, there):
    done = run("get", "-i", there.url("/body/1000"))
    head, _, content = done.stdout.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/2 200 ") and len(content) == 1000
    assert [one.version for one in there.requests] == ["HTTP/2"]


def test_http_1_is_spoken_with_others(run, origin, pki):
    older = origin(lambda seen: reply(b"x"), tls=pki.intermediate.issue(
        "127.0.0.1").server_context(alpn=("http/1.1",)))
    done = run("get", "-i", older.url("/").replace("http:", "https:", 1))
    assert done.stdout.startswith(b"HTTP/1.1 200 ")


def test_requests_share_a_connection(run, there):
    run("get", *[there.url(f"/body/{number}") for number in range(1, 31)])
    assert len(there.requests) == 30
    assert len({id(one.connection) for one in there.requests}) == 1


def test_content_is_sent_and_received(run, there, tmp_path):
    data = os.urandom(3_000_000)
    (tmp_path / "data").write_bytes(data)
    done = run("upload", "--file", tmp_path / "data", there.url("/digest"))
    assert done.stdout == hashlib.sha256(data).hexdigest().encode()
    run("download", there.url("/body/5000000"), "-o", tmp_path / "got", "-s")
    assert (tmp_path / "got").stat().st_size == 5_000_000


def test_a_pin_is_checked_before_anything_is_sent(run, there):
    pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
    done = run("get", "--pin", pin, there.url("/"), check=False)
    assert done.returncode == 90 and there.requests == []
