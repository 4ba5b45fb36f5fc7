"""The HTTP Archives of the client's commands: every exchange, with what was really sent in it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from support.gateway import BINARY, free_port
from support.origin import Request, reply
from support.wait import SLOWDOWN

PATIENCE = 60 * SLOWDOWN
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}


def recorded(path: Path, *arguments: object, ends: int = 0) -> list[dict]:
    file = path / "all.har"
    done = subprocess.run([BINARY, *map(str, arguments), "--har", file], stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=PATIENCE, env=ENVIRONMENT)
    assert done.returncode == ends, done.stderr.decode()
    entries = json.loads(file.read_text())["log"]["entries"]
    assert entries == sorted(entries, key=lambda entry: entry["startedDateTime"])
    return entries


def shape(entries: list[dict], server) -> list[tuple]:
    return [
        (entry["request"]["method"], entry["request"]["url"].removeprefix(server.url("")),
         entry["request"].get("postData", {}).get("text"), entry["response"]["status"],
         entry["response"]["content"]["text"])
        for entry in entries
    ]


def test_each_hop_of_redirects_is_recorded_with_its_own_content(
    origin: Callable, tmp_path: Path
) -> None:
    def answer(request: Request) -> bytes:
        if request.target in ("/303", "/307"):
            return reply(b"there", f"{request.target[1:]} X", "Location: /ok")
        return reply(b"found")
    server = origin(answer)
    (tmp_path / "file").write_text("of a file")
    for name, options, expected in (
        ("a", ("get", "-d", "secret=1", server.url("/303")),
         [("POST", "/303", "secret=1", 303, ""), ("GET", "/ok", None, 200, "found")]),
        ("b", ("post", "--data", f"@{tmp_path}/file", server.url("/307")),
         [("POST", "/307", "of a file", 307, ""), ("POST", "/ok", "of a file", 200, "found")]),
    ):
        (tmp_path / name).mkdir()
        entries = recorded(tmp_path / name, *options)
        assert shape(entries, server) == expected
        assert entries[0]["response"]["redirectURL"] == "/ok"
        assert [entry["request"]["bodySize"] for entry in entries] == [
            len(text or "") for _, _, text, _, _ in expected]


def test_an_answered_challenge_is_recorded(origin: Callable, tmp_path: Path) -> None:
    def answer(request: Request) -> bytes:
        if request.get("authorization"):
            return reply(b"welcome")
        return reply(b"who?", "401 X", 'WWW-Authenticate: Basic realm="x"')
    server = origin(answer)
    entries = recorded(tmp_path, "get", "-u", "me:secret", server.url("/"))
    assert shape(entries, server) == [("GET", "/", None, 401, ""), ("GET", "/", None, 200, "welcome")]
    fields = [{field["name"]: field["value"] for field in entry["request"]["headers"]}
              for entry in entries]
    assert "Authorization" not in fields[0] and fields[1]["Authorization"] == "***"


def test_failures_are_recorded(origin: Callable, scripted_origin: Callable, tmp_path: Path) -> None:
    def cut(connection) -> None:
        connection.read_request()
        connection.send(reply(b"abc", "200 OK", "Content-Length: 9", length=False))
    server, broken = origin(lambda request: reply(b"found")), scripted_origin(cut)
    refused = f"http://127.0.0.1:{free_port()}/"
    entries = recorded(tmp_path, "get", "--parallel", "1", refused, broken.url(), server.url("/"),
                       ends=7)
    assert [entry["request"]["url"] for entry in entries] == [refused, broken.url(), server.url("/")]
    assert [entry["response"]["status"] for entry in entries] == [0, 200, 200]
    assert [entry["response"].get("_error") for entry in entries] == [
        "connection-refused", "upstream-truncated-body", None]


def test_exchanges_are_in_the_order_of_their_beginnings(origin: Callable, tmp_path: Path) -> None:
    server = origin(lambda request: reply(request.target.encode()))
    urls = [server.url(f"/{number}") for number in range(20)]
    entries = recorded(tmp_path, "get", *urls)
    assert sorted(entry["request"]["url"] for entry in entries) == sorted(urls)
    for entry in entries:
        assert entry["request"]["url"].endswith(entry["response"]["content"]["text"])
