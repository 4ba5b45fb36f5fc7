"""Servers that answer before they have read the request (RFC 9110 §7.5)."""

from __future__ import annotations

import hashlib
import os
import subprocess

import pytest
import requests
from support.gateway import BINARY
from support.origin import OriginConnection, reply
from support.wait import SLOWDOWN, until
from support.wire import request

SIZE = 8 << 20


class Server:
    """Answers as soon as it has a head, and then reads what follows."""

    def __init__(self, scripted_origin, *fields: str, status: str = "200 OK"):
        self.answer = reply(b"early", status, *fields)
        self.digests: list[str] = []
        self.origin = scripted_origin(self.script)

    def script(self, connection: OriginConnection) -> None:
        while (head := connection.read_request_head()) is not None:
            connection.send(self.answer)
            if b"close" in self.answer:
                return
            digest = hashlib.sha256()
            if head.get("transfer-encoding") == "chunked":
                while size := int(connection.read_until(b"\r\n"), 16):
                    digest.update(connection.read_exactly(size + 2)[:-2])
                connection.read_until(b"\r\n")
            else:
                digest.update(connection.read_exactly(int(head.get("content-length") or "0")))
            self.digests.append(digest.hexdigest())

    def has_read(self, *contents: bytes) -> None:
        """Waits until it has: what was sent to it may still be on its way."""
        expected = [hashlib.sha256(content).hexdigest() for content in contents]
        until(lambda: len(self.digests) >= len(expected), "everything is read")
        assert self.digests == expected


@pytest.fixture
def content(workspace):
    data = os.urandom(SIZE)
    (workspace / "content").write_bytes(data)
    return data


def parts(content: bytes):
    for start in range(0, len(content), 1 << 16):
        yield content[start:start + (1 << 16)]


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_the_gateway_passes_on_the_rest(gateway, scripted_origin, content, framing):
    server = Server(scripted_origin)
    running = gateway({"workers": 1})
    with requests.Session() as session:
        session.trust_env = False
        session.proxies = {"http": running.proxy_url}
        for _ in range(2):
            done = session.put(
                server.origin.url(), data=content if framing == "length" else parts(content))
            assert (done.status_code, done.content) == (200, b"early")
    server.has_read(content, content)


def test_the_response_is_not_held_back(gateway, scripted_origin):
    server = Server(scripted_origin)
    running = gateway()
    with running.wire() as wire:
        wire.send(request(server.origin.url(), method="POST", Content_Length="10") + b"12345")
        response = wire.read_final()
        assert (response.status, response.body) == (200, b"early")
        wire.send(b"67890")
        assert wire.ended(), "the connection field of the response holds"
    server.has_read(b"1234567890")


@pytest.mark.parametrize("command", [
    ["upload", "--file"], ["post", "--multipart"], ["put", "--data"]], ids=lambda it: it[0])
def test_a_command_sends_the_whole_content(scripted_origin, workspace, content, command):
    server = Server(scripted_origin)
    file = str(workspace / "content")
    name, option = command
    value = {"--file": file, "--multipart": f"file=@{file}", "--data": f"@{file}"}[option]
    done = subprocess.run(
        [BINARY, name, server.origin.url("/up"), option, value, "--silent"], capture_output=True,
        timeout=60 * SLOWDOWN)
    assert (done.returncode, done.stdout) == (0, b"early"), done.stderr
    if name == "post":
        until(lambda: server.digests, "the whole form is read")
    else:
        server.has_read(content)


def test_a_server_that_closes_ends_the_request(gateway, scripted_origin, content):
    server = Server(scripted_origin, "Connection: close", status="413 Content Too Large")
    running = gateway()
    with running.wire() as wire:
        wire.send(request(server.origin.url(), method="PUT", Content_Length=str(SIZE)) + b"begin")
        assert wire.read_final().status == 413
        assert wire.ended()
