"""`pinfold record`: what passes through a running gateway, as an HTTP Archive."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import subprocess
import threading
import time
import zlib
from pathlib import Path

import brotlicffi
import pytest
from haralyzer import HarParser
from support import zstd
from support.gateway import BINARY, Gateway, run_pinfold
from support.http2 import http2
from support.interception import HOST, ask_inside
from support.origin import reply
from support.wait import SLOWDOWN, until
from support.wire import request

SECRET = "c2VjcmV0"
TOKEN = "a-token-of-16-bytes-or-more"


class Recorder:
    """A command that records, from the moment at which every worker does."""

    def __init__(self, running: Gateway, *arguments: str, file: Path | None = None):
        self.file = file or running.folder / "recorded.har"
        self.process = subprocess.Popen(
            [str(BINARY), "record", str(self.file), "--config", str(running.config_file),
             *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.said = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        until(lambda: "recording to" in self.said or self.process.poll() is not None,
              "it records", 30)

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.said += line.decode()

    def wait(self) -> int:
        code = self.process.wait(30 * SLOWDOWN)
        self._reader.join()
        return code

    def end(self, number: signal.Signals = signal.SIGINT) -> None:
        self.process.send_signal(number)
        assert self.wait() == 0, self.said

    @property
    def log(self) -> dict:
        """It is complete after each entry, which one may be reading the file before."""
        def complete() -> dict | None:
            try:
                return json.loads(self.file.read_text())["log"]
            except json.JSONDecodeError:
                return None
        return until(complete, "the file is complete")

    @property
    def entries(self) -> list[dict]:
        return self.log["entries"]

    def holds(self, count: int) -> list[dict]:
        return until(
            lambda: found if len(found := self.entries) >= count else [],
            lambda: f"{count} entries in {self.entries}, {self.said}")

    def ended(self, count: int) -> list[dict]:
        """The entries, once there are so many, as they are read."""
        self.holds(count)
        self.end()
        parsed = HarParser(json.loads(self.file.read_text()))
        read = [entry for page in parsed.pages for entry in page.entries]
        # It has its own order.
        assert sorted((one.url, one.status) for one in read) == sorted(
            (one["request"]["url"], one["response"]["status"]) for one in self.entries)
        assert all(one.startTime for one in read)
        return self.entries


@pytest.fixture
def recorder():
    """recorder(running, *arguments): a command that records, ended after the test."""
    made: list[Recorder] = []

    def make(running: Gateway, *arguments: str, **options) -> Recorder:
        made.append(Recorder(running, *arguments, **options))
        return made[-1]

    yield make
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
        one.wait()
        one.process.stdout.close()
        one.process.stderr.close()


def operated(gateway, workspace: Path, config: dict | None = None, **admin: object) -> Gateway:
    """A gateway whose operator proves to be one by a Unix socket."""
    return gateway({
        "admin": {"address": f"unix:{workspace / 'admin.sock'}", **admin}, **(config or {})})


@pytest.fixture
def running(gateway, workspace):
    return operated(gateway, workspace)


def fields(message: dict) -> dict[str, str]:
    return {one["name"].lower(): one["value"] for one in message["headers"]}


# What is in it


def test_a_request_and_its_response(running, origin, recorder):
    there = origin(lambda _: reply(b"abc", "200 Fine", "Content-Type: text/plain", "X-From: it"))
    recording = recorder(running)
    running.get(there.url("/x?a=1&b=%20c"), X_Seen="client")
    (one,) = recording.ended(1)
    assert one["request"]["method"] == "GET"
    assert one["request"]["url"] == there.url("/x?a=1&b=%20c")
    assert one["request"]["queryString"] == [
        {"name": "a", "value": "1"}, {"name": "b", "value": " c"}]
    assert fields(one["request"])["x-seen"] == "client"
    assert one["response"]["status"] == 200
    assert one["response"]["statusText"] == "Fine"
    assert fields(one["response"])["x-from"] == "it"
    assert one["response"]["bodySize"] == one["response"]["content"]["size"] == 3
    assert one["response"]["content"]["mimeType"] == "text/plain"
    assert "text" not in one["response"]["content"], "bodies were not asked for"
    assert one["serverIPAddress"] == "127.0.0.1"
    assert one["_cache"] == "uncacheable" and one["_reused"] is False
    assert one["_client"].startswith("127.0.0.1:")
    times = one["timings"]
    assert times["connect"] >= 0 and times["wait"] > 0 and times["dns"] == times["ssl"] == -1
    assert one["time"] == pytest.approx(
        sum(times[name] for name in times if name != "ssl" and times[name] > 0), abs=0.01)
    assert recording.log["creator"]["name"] == "Pinfold"
    assert (recording.file.stat().st_mode & 0o777) == 0o600


def test_what_the_cache_answers(running, origin, recorder):
    there = origin(lambda _: reply(b"abc", "200 OK", "Cache-Control: max-age=60"))
    recording = recorder(running, "--bodies", "1KiB")
    running.get(there.url("/hit"))
    running.get(there.url("/hit"))
    # Workers write in any order.
    miss, hit = sorted(recording.ended(2), key=lambda one: one["_cache"] == "hit")
    assert (miss["_cache"], hit["_cache"]) == ("miss", "hit")
    assert miss["response"]["content"]["text"] == hit["response"]["content"]["text"] == "abc"
    assert hit["timings"]["connect"] == -1 and hit["timings"]["wait"] == 0
    assert "serverIPAddress" not in hit


def test_a_large_body_from_memory(running, origin, recorder):
    body = os.urandom(300_000).hex().encode()
    there = origin(lambda _: reply(body, "200 OK", "Cache-Control: max-age=60"))
    recording = recorder(running, "--bodies", "4MiB")
    for _ in range(2):
        assert running.get(there.url("/large")).body == body
    for one in recording.ended(2):
        assert one["response"]["content"]["text"] == body.decode()


def test_what_is_refused_has_its_reason(gateway, workspace, recorder):
    running = operated(gateway, workspace, {"access": {
        "clients": ["127.0.0.0/8"],
        "rules": [{"name": "never", "hosts": ["refused.test"], "action": "deny"}]}})
    recording = recorder(running, "--bodies", "64KiB")
    assert running.get("http://refused.test/x").status == 403
    assert running.get("http://127.0.0.1:1/").status == 502
    running.ask("GET http://a b c HTTP/1.1\r\n\r\n")
    # Workers write in any order.
    refused, failed, garbage = sorted(
        recording.ended(3), key=lambda one: [403, 502, 400].index(one["response"]["status"]))
    assert refused["response"]["status"] == 403
    assert refused["_rule"] == "never"
    assert refused["_reason"] == "destination-denied-by-rule" or refused["_reason"]
    assert refused["_reason"] in refused["response"]["content"]["text"]
    assert refused["_detail"]
    assert failed["response"]["status"] == 502 and failed["_reason"]
    assert garbage["_reason"] and garbage["request"]["url"].startswith("http")


def test_a_tunnel(gateway, workspace, origin, recorder):
    there = origin(lambda _: reply(b"inside"))
    port = there.address[1]
    running = operated(gateway, workspace, {"access": {"connectPorts": [port]}})
    recording = recorder(running, "--bodies", "64KiB")
    wire, answer = running.connect(there.authority)
    assert answer.status == 200
    with wire:
        assert wire.ask(request("/x", there.authority)).body == b"inside"
    (one,) = recording.ended(1)
    assert one["request"]["method"] == "CONNECT"
    assert one["request"]["url"] == f"https://{there.authority}/"
    assert one["_kind"] == "tunnel"
    assert one["response"]["bodySize"] > 0
    assert one["response"]["content"].get("text", "") == ""


def test_http_2(gateway, workspace, origin, recorder):
    there = origin(lambda seen: reply(seen.body, "200 OK", "Set-Cookie: a=" + SECRET))
    running = operated(gateway, workspace, {"listeners": [
        {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
        {"name": "route", "address": "127.0.0.1:0", "kind": "reverse",
         "upstream": there.url().rstrip("/")}]})
    recording = recorder(running, "--bodies", "64KiB")
    with http2(running.listeners["route"]) as client:
        stream = client.begin("/path?query", method="POST", end=False)
        client.send(stream, b"posted", end=True)
        assert client.answer(stream).body == b"posted"
    (one,) = recording.ended(1)
    assert one["request"]["httpVersion"] == one["response"]["httpVersion"] == "HTTP/2"
    assert one["request"]["url"] == "http://origin.test/path?query"
    assert one["request"]["postData"]["text"] == "posted"
    assert one["response"]["content"]["text"] == "posted"
    assert fields(one["response"])["set-cookie"] == "***"


def test_inside_an_intercepted_tunnel(gateway, workspace, origin, pki, authority, recorder):
    leaf = pki.intermediate.issue(HOST, "127.0.0.1")
    there = origin(lambda _: reply(b"secure"), tls=leaf.server_context())
    running = operated(gateway, workspace, {
        "tls": {"roots": [str(pki.root.pem_file)]}, "interception": authority.section,
        "hosts": [{"match": [HOST], "intercept": True}]})
    recording = recorder(running, "--host", HOST + f":{there.address[1]}", "--bodies", "1KiB")
    port = there.address[1]
    assert ask_inside(running, HOST, port, request("/x", f"{HOST}:{port}")).body == b"secure"
    entries = recording.ended(2)
    (inner,) = [one for one in entries if one["request"]["method"] == "GET"]
    (outer,) = [one for one in entries if one["request"]["method"] == "CONNECT"]
    assert inner["request"]["url"] == f"https://{HOST}:{port}/x"
    assert inner["response"]["content"]["text"] == "secure"
    assert inner["_isIntercepted"] and inner["_clientTLS"] and inner["_pin"] == "unpinned"
    assert outer["timings"]["ssl"] >= 0 or inner["timings"]["ssl"] >= 0


# Bodies

CODINGS = {
    "gzip": gzip.compress, "deflate": zlib.compress, "br": brotlicffi.compress,
    "zstd": lambda text: zstd.compress(text),
}


@pytest.mark.parametrize("coding", CODINGS)
def test_a_body_is_recorded_without_its_coding(running, origin, recorder, coding):
    text = b"some text " * 1000
    sent = CODINGS[coding](text)
    there = origin(lambda _: reply(
        sent, "200 OK", f"Content-Encoding: {coding}", "Content-Type: text/plain"))
    recording = recorder(running, "--bodies", "64KiB")
    assert running.get(there.url("/x"), Accept_Encoding=coding).body == sent
    (one,) = recording.ended(1)
    content = one["response"]["content"]
    assert content["text"] == text.decode()
    assert content["size"] == len(text) and content["compression"] == len(text) - len(sent)
    assert one["response"]["bodySize"] == len(sent)


def test_a_body_that_is_no_text(running, origin, recorder):
    there = origin(lambda _: reply(bytes(range(256)), "200 OK", "Content-Type: image/png"))
    recording = recorder(running, "--bodies", "64KiB")
    running.ask(f"POST {there.url('/x')} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n"
                "Connection: close\r\n\r\na=b")
    (one,) = recording.ended(1)
    content = one["response"]["content"]
    assert content["encoding"] == "base64"
    assert __import__("base64").b64decode(content["text"]) == bytes(range(256))
    assert one["request"]["postData"]["text"] == "a=b"
    assert one["request"]["bodySize"] == 3


def test_no_more_of_a_body_than_was_asked_for(running, origin, recorder):
    bomb = gzip.compress(bytes(20 << 20))
    there = origin(lambda seen: reply(
        bomb, "200 OK", "Content-Encoding: gzip") if "bomb" in seen.target
        else reply(b"a" * 100_000))
    recording = recorder(running, "--bodies", "4KiB")
    running.get(there.url("/long"))
    running.get(there.url("/bomb"))
    cut, bomb_entry = recording.ended(2)
    assert cut["response"]["content"]["text"] == "a" * 4096
    assert cut["response"]["content"]["_isCut"] is True
    assert cut["response"]["content"]["size"] == cut["response"]["bodySize"] == 100_000
    assert bomb_entry["response"]["content"]["_isCut"] is True


def test_many_bodies_that_are_large_when_decoded(running, origin, recorder):
    text = b"abcdefg " * (128 << 10)
    bomb = gzip.compress(text)
    there = origin(lambda _: reply(bomb, "200 OK", "Content-Encoding: gzip"))
    recording = recorder(running, "--bodies", "1MiB", "--count", "6")
    posted = (f"POST {there.url('/x')} HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\n"
              f"Content-Length: {len(bomb)}\r\nConnection: close\r\n\r\n").encode() + bomb
    before = running.rss_bytes
    for _ in range(64):
        running.ask(posted)
    until(lambda: recording.process.poll() is not None, "it has as many as it may", 120)
    assert running.peak_rss_bytes - before < 120 << 20
    assert len(recording.entries) == 6
    assert recording.entries[0]["request"]["postData"]["text"] == text.decode()


def test_bodies_of_others_are_not_kept(running, origin, recorder):
    there = origin(lambda _: reply(b"a" * (1 << 20)))
    recorder(running, "--bodies", "4MiB", "--host", "other.test")
    before = running.rss_bytes
    for _ in range(50):
        running.get(there.url("/x"))
    assert running.rss_bytes - before < 30 << 20


# Who may have what


def test_secrets_are_masked(running, origin, recorder):
    there = origin(lambda _: reply(b"x", "200 OK", f"Set-Cookie: sid={SECRET}"))
    recording = recorder(running)
    running.get(there.url("/x"), Authorization=f"Basic {SECRET}", Cookie=f"sid={SECRET}",
                Proxy_Authorization=f"Basic {SECRET}")
    (one,) = recording.ended(1)
    assert SECRET not in recording.file.read_text()
    assert fields(one["request"])["authorization"] == "***"
    assert one["request"]["cookies"] == one["response"]["cookies"] == []


def test_secrets_only_where_the_configuration_allows_it(gateway, workspace, origin, recorder):
    there = origin(lambda _: reply(b"x", "200 OK", f"Set-Cookie: sid={SECRET}; Path=/"))
    running = operated(gateway, workspace)
    refused = run_pinfold("record", str(workspace / "a.har"), "--secrets", "--config",
                          str(running.config_file))
    assert refused.returncode == 2
    assert "admin.recordSecrets" in refused.stderr
    assert not (workspace / "a.har").exists()
    running.config["admin"]["recordSecrets"] = True
    running.write_config(running.config)
    assert run_pinfold("reload", "--config", str(running.config_file)).returncode == 0
    recording = recorder(running, "--secrets")
    running.get(there.url("/x"), Authorization=f"Basic {SECRET}")
    (one,) = recording.ended(1)
    assert fields(one["request"])["authorization"] == f"Basic {SECRET}"
    assert one["response"]["cookies"] == [{"name": "sid", "value": SECRET}]


def test_without_proof_there_are_no_heads_and_no_bodies(gateway, origin, recorder):
    there = origin(lambda _: reply(b"x", "200 OK", "X-From: it"))
    running = gateway({"admin": {"recordSecrets": True}})
    where = ["--admin", "%s:%d" % running.admin]
    for wish in (["--bodies", "1KiB"], ["--secrets"], ["--client", "127.0.0.1"]):
        refused = run_pinfold("record", "-", *where, *wish)
        assert refused.returncode == 2 and "token" in refused.stderr, wish
    recording = recorder(running, *where)
    running.get(there.url(f"/x?key={SECRET}"), X_Seen=SECRET)
    (one,) = recording.ended(1)
    assert SECRET not in recording.file.read_text()
    assert one["request"]["headers"] == one["response"]["headers"] == []
    assert one["request"]["url"] == there.url("/x?***")
    assert "_client" not in one and "serverIPAddress" not in one
    assert one["timings"]["wait"] > 0


def test_the_token_is_a_proof(gateway, tmp_path, origin, recorder):
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    running = gateway({"admin": {"tokenFile": str(token)}})
    there = origin(lambda _: reply(b"text"))
    where = ["--admin", "%s:%d" % running.admin]
    refused = run_pinfold("record", "-", *where)
    assert refused.returncode == 2 and "token" in refused.stderr
    recording = recorder(running, *where, "--token-file", str(token), "--bodies", "1KiB")
    running.get(there.url("/x"), X_Seen="client")
    (one,) = recording.ended(1)
    assert fields(one["request"])["x-seen"] == "client"
    assert one["response"]["content"]["text"] == "text"


# What is recorded


FILTERS = [
    (["--host", "127.0.0.1:1"], ["/failed"]), (["--failed"], ["/failed"]),
    (["--status", "5xx"], ["/failed"]), (["--method", "HEAD"], ["/head"]),
    (["--client", "192.0.2.0/24"], []), (["--client", "127.0.0.0/8"], ["/failed", "/head", "/x"]),
]


@pytest.mark.parametrize("arguments, paths", FILTERS)
def test_only_what_was_asked_for(running, origin, recorder, arguments, paths):
    there = origin(lambda _: reply(b""))
    recording = recorder(running, *arguments)
    everything = recorder(running, file=running.folder / "everything.har")
    running.get("http://127.0.0.1:1/failed")
    running.ask(f"HEAD {there.url('/head')} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    running.get(there.url("/x"))
    everything.ended(3)
    found = recording.ended(len(paths)) if paths else recording.end() or recording.entries
    assert sorted(one["request"]["url"].rpartition("/")[2] for one in found) == sorted(
        path[1:] for path in paths)


# How it ends


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it(running, origin, recorder, number):
    recording = recorder(running)
    recording.end(number)
    assert recording.entries == []
    assert HarParser(json.loads(recording.file.read_text()))


def test_it_is_complete_if_it_is_killed(running, origin, recorder):
    there = origin(lambda _: reply(b"x"))
    recording = recorder(running)
    running.get(there.url("/x"))
    recording.holds(1)
    recording.process.kill()
    recording.wait()
    assert len(recording.entries) == 1


def test_its_limits(running, origin, recorder):
    there = origin(lambda _: reply(b"x"))
    started = time.monotonic()
    over = recorder(running, "--duration", "300ms", file=running.folder / "over.har")
    assert over.wait() == 0 and time.monotonic() - started >= 0.3
    counted = recorder(running, "--count", "2", file=running.folder / "counted.har")
    small = recorder(running, "--size", "4KiB", file=running.folder / "small.har")
    for _ in range(20):
        running.get(there.url("/x"))
    assert counted.wait() == 0 and len(counted.entries) == 2
    assert small.wait() == 0 and 0 < len(small.entries) < 20
    assert small.file.stat().st_size <= 4096


def test_standard_output(running, origin):
    there = origin(lambda _: reply(b"x"))
    process = subprocess.Popen(
        [str(BINARY), "record", "-", "--count", "1", "--config", str(running.config_file)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert b"recording to standard output" in process.stderr.readline()
    running.get(there.url("/x"))
    written, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert len(json.loads(written)["log"]["entries"]) == 1


def to_a_pipe(running: Gateway, *arguments: str) -> subprocess.Popen:
    """A command that records to a pipe, once it does."""
    process = subprocess.Popen(
        [str(BINARY), "record", "-", "--config", str(running.config_file), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert b"recording to standard output" in process.stderr.readline()
    return process


@pytest.mark.parametrize("traffic", [0, 3])
def test_it_ends_when_nobody_reads_its_output_any_more(running, origin, traffic):
    there = origin(lambda _: reply(b"x"))
    with to_a_pipe(running) as process:
        process.stdout.close()
        for _ in range(traffic):
            running.get(there.url("/x"))
        assert process.wait(10 * SLOWDOWN) == 0
    until(lambda: recordings_end(running), "its place is free again", 30)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_although_its_reader_does_not_read(running, origin, number):
    there = origin(lambda _: reply(b"a" * 20_000))
    with to_a_pipe(running, "--bodies", "64KiB") as process:
        for _ in range(10):
            running.get(there.url("/x"))
        time.sleep(0.5)
        process.send_signal(number)
        assert process.wait(20 * SLOWDOWN) == 1
        assert b"standard output is incomplete" in process.stderr.read()
        process.stdout.close()


def test_a_limit_ends_it_although_its_reader_does_not_read(running, origin):
    there = origin(lambda _: reply(b"a" * 20_000))
    with to_a_pipe(running, "--bodies", "64KiB", "--duration", "2s") as process:
        for _ in range(10):
            running.get(there.url("/x"))
        assert process.wait(40 * SLOWDOWN) == 1
        assert b"standard output is incomplete" in process.stderr.read()
        process.stdout.close()


def test_a_file_is_replaced_only_if_that_is_asked_for(running, recorder):
    file = running.folder / "there.har"
    file.write_text("something else")
    done = run_pinfold("record", str(file), "--config", str(running.config_file))
    assert done.returncode == 1
    assert "--overwrite" in done.stderr
    assert file.read_text() == "something else"
    recorder(running, "--overwrite", file=file).end()
    assert json.loads(file.read_text())["log"]["entries"] == []


def test_it_goes_on_under_another_configuration(running, origin, recorder):
    there = origin(lambda _: reply(b"x"))
    recording = recorder(running)
    running.get(there.url("/before"))
    recording.holds(1)
    running.config["limits"] = {"pending": 100}
    running.write_config(running.config)
    assert run_pinfold("reload", "--config", str(running.config_file)).returncode == 0

    def is_recorded() -> bool:
        running.get(there.url("/after"))
        return any(one["request"]["url"].endswith("/after") for one in recording.entries)
    # It is asked again a moment after the reload.
    until(lambda: "Warning: the configuration was reloaded" in recording.said, "it is asked again")
    until(is_recorded, "it goes on")
    recording.end()


def test_it_ends_with_the_gateway(running, origin, recorder):
    there = origin(lambda _: reply(b"x"))
    recording = recorder(running)
    running.get(there.url("/x"))
    recording.holds(1)
    running.stop()
    assert recording.wait() == 2
    assert "Error: " in recording.said
    assert len(recording.entries) == 1


# The resource


def streamed(running: Gateway, query: str = "") -> socket.socket:
    wire = socket.socket(socket.AF_UNIX)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    wire.settimeout(30)
    wire.connect(running.config["admin"]["address"].removeprefix("unix:"))
    wire.sendall(f"GET /api/v1/record{query} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
    received = b""
    while b"\"hello\"" not in received:
        part = wire.recv(1)
        assert part, received
        received += part
    return wire


def test_a_slow_reader_loses_what_is_too_much_and_holds_up_nobody(running, origin):
    there = origin(lambda _: reply(b"a" * (1 << 20), "200 OK", "Cache-Control: max-age=60"))
    running.get(there.url("/large"))
    with streamed(running, "?bodies=4194304") as wire:
        before = running.rss_bytes
        for _ in range(150):
            assert running.get(there.url("/large")).status == 200
        assert running.rss_bytes - before < 120 << 20
        running.get("http://127.0.0.1:1/last")
        received = b""
        while b"/last" not in received:
            part = wire.recv(1 << 20)
            assert part
            received += part
        assert b"\"dropped\"" in received or b"\"_isCut\":true" in received
    until(lambda: recordings_end(running), "its place is free again")


def recordings_end(running: Gateway) -> bool:
    """Whether there are as many places as ever."""
    wires = []
    try:
        for _ in range(4):
            wires.append(streamed(running))
        return True
    except AssertionError:
        return False
    finally:
        for wire in wires:
            wire.close()


def test_there_are_four_at_a_time(running):
    wires = [streamed(running) for _ in range(4)]
    done = run_pinfold("record", "-", "--config", str(running.config_file))
    assert done.returncode == 2 and "4 recordings" in done.stderr
    for wire in wires:
        wire.close()
    until(lambda: recordings_end(running), "their places are free again")


@pytest.mark.parametrize("is_tcp", [False, True])
def test_places_of_clients_that_have_left_are_free(running, gateway, is_tcp):
    where = ["--config", str(running.config_file)]
    if is_tcp:
        where = ["--admin", "%s:%d" % gateway({}).admin]
    for number in range(12):
        done = run_pinfold("record", str(running.folder / f"{number}.har"), "--duration", "100ms",
                           *where)
        assert done.returncode == 0, (number, done.stderr)


@pytest.mark.parametrize(
    "query", ["bodies=x", "bodies=4194305", "limit=1", "unknown=1", "secrets=yes", "status=50"])
def test_a_wrong_query_says_what_was_expected(running, query):
    refused = running.admin_get(f"/api/v1/record?{query}")
    assert refused.status == 400
    assert "expected" in refused.json()["detail"]


@pytest.mark.parametrize("arguments", [
    ["--bodies", "much"], ["--size", "1"], ["--duration", "soon"], ["--count", "0"]])
def test_a_wrong_option_says_what_was_expected(arguments):
    done = run_pinfold("record", "a.har", *arguments)
    assert done.returncode == 64
    assert "expected" in done.stderr
