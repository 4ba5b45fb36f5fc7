"""Arguments that the client's commands refuse, and their errors."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from support.gateway import BINARY
from support.origin import reply
from support.wait import SLOWDOWN

PATIENCE = 60 * SLOWDOWN


def run(*arguments: str) -> tuple[int, str]:
    done = subprocess.run([BINARY, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=PATIENCE)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("field,reason", [
    ("Host: a.test", "it is taken from the URL"),
    ("Content-Length: 5", "the client computes it"),
    ("Transfer-Encoding: chunked", "the client frames the content"),
    ("Connection: close", "the client manages the connection"),
    ("keep-alive: timeout=5", "the client manages the connection"),
    ("Proxy-Connection: close", "the client manages the connection"),
    ("Upgrade: h2c", "the client opens WebSockets by itself"),
    ("HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA", "the client agrees on HTTP/2 over TLS"),
    ("Proxy-Authorization: Basic eDp5", "credentials for the proxy belong in the URL of --proxy"),
])
def test_a_field_that_would_not_be_sent_is_refused(field: str, reason: str) -> None:
    ended, output = run("get", "http://127.0.0.1/", "-H", field)
    assert ended == 64
    name = field.partition(":")[0]
    assert output.startswith(f"Error: --header {name} cannot be set: {reason}\n")


def test_a_url_with_credentials_is_refused_with_the_option_for_them() -> None:
    ended, output = run("get", "http://u:secret@127.0.0.1/x")
    assert ended == 3
    assert output == ("Error: http://***@127.0.0.1/x: credentials in URLs are not supported; "
                    "expected --user\n")


@pytest.mark.parametrize("url", ["http:/u:secret@a.test", "http://u:x/secret@a.test"])
def test_a_password_in_a_malformed_url_is_not_printed(origin: Callable, url: str) -> None:
    ended, output = run("get", url)
    assert (ended, "secret" in output) == (3, False)
    assert "***@a.test" in output
    server = origin(lambda request: reply(b"", "302 Found", f"Location: {url}"))
    _, output = run("get", server.url(), "--max-redirects", "2")
    assert "secret" not in output
