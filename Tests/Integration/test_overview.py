"""The gateway at a glance: reports, what is under way, and events, as the API shows them."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import threading
import time
from datetime import datetime
from pathlib import Path

import pytest
from support.gateway import Gateway
from support.origin import reply
from support.revocation import crl
from support.transparency import Log, log_list
from support.wait import until
from support.wire import Wire, request
from test_admin_api import described
from test_flows import BEARER, guarded  # noqa: F401


def report(running: Gateway, name: str, **fields: str) -> dict:
    response = running.admin_get(f"/api/v1/{name}", **fields)
    assert response.status == 200, response.body
    described(running, "get", f"/api/v1/{name}", response)
    return response.json()


class Events:
    """A reader of events, on a thread of its own. It has ended with the response, or the
    connection."""

    def __init__(self, running: Gateway, *fields: str):
        self.wire = Wire(running.admin)
        self.wire.send("\r\n".join(
            ["GET /api/v1/events HTTP/1.1", "Host: localhost", *fields]) + "\r\n\r\n")
        self.text = b""
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        try:
            while data := self.wire.socket.recv(65536):
                self.text += data
                if self.text.endswith(b"\r\n0\r\n\r\n"):
                    self.ended.set()
        except OSError:
            pass
        self.ended.set()

    def all(self, name: str) -> list[dict]:
        """The data of the events of a name. A chunk's frame is never within a line of data."""
        found, current = [], ""
        for line in self.text.decode(errors="replace").splitlines():
            if line.startswith("event: "):
                current = line[7:]
            elif line.startswith("data: ") and current == name:
                found.append(json.loads(line[6:]))
        return found

    def ids(self) -> list[str]:
        return [line[4:] for line in self.text.decode(errors="replace").splitlines()
                if line.startswith("id: ")]

    def wait(self, name: str, count: int = 1) -> list[dict]:
        return until(lambda: found if len(found := self.all(name)) >= count else [],
                     lambda: f"{count} times {name} in {self.text[-2000:]!r}")

    def close(self) -> None:
        # Closing alone does not wake who reads it.
        with contextlib.suppress(OSError):
            self.wire.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)
        self.wire.close()


@pytest.mark.parametrize("name", ["overview", "hosts", "pins", "reachability", "transfers"])
def test_reports_are_as_described(shared_gateway, name):
    report(shared_gateway, name)
    refused = shared_gateway.admin_get(f"/api/v1/{name}?sort=x")
    assert refused.status == 400


@pytest.mark.parametrize(
    "name", ["overview", "hosts", "pins", "reachability", "transfers", "events"])
def test_reports_need_the_token(guarded, name):  # noqa: F811
    assert guarded.admin_get(f"/api/v1/{name}").status == 401
    if name != "events":
        assert report(guarded, name, **BEARER) is not None


def test_what_failed_is_seen_by_host(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway({"hosts": [{"match": ["127.0.0.1"], "name": "local"}]})
    running.get(there.url("/"))
    running.get("http://127.0.0.1:1/")

    def counted() -> dict:
        hosts = {one["entry"]: one for one in report(running, "hosts")["hosts"]}
        return hosts["local"] if hosts["local"]["total"]["requests"] == 2 else {}
    found = until(counted, "two exchanges")
    assert found["total"] == {"requests": 2, "failures": 1}
    assert "first_byte" in {one["phase"] for one in found["phases"]}


def test_a_refused_reload_needs_attention(gateway):
    running = gateway()
    assert report(running, "overview")["attention"] == []
    running.write_config(running.config_file.read_text() + "nonsense: 1\n")
    running.signal(signal.SIGHUP)
    found = until(lambda: report(running, "overview")["attention"], "something needs attention")
    assert found[0]["level"] == "critical"
    assert found[0]["kind"] == "configuration"
    assert "nonsense" in report(running, "overview")["lastError"]


def test_a_transfer_and_a_tunnel_are_under_way(gateway, origin):
    go = threading.Event()
    there = origin(lambda got: (go.wait(20), reply(b"x" * 100))[1])
    running = gateway()
    with running.wire() as wire:
        wire.send(request(there.url("/slow?a=b")))
        tunnel, answer = running.connect(there.authority)
        assert answer.status == 200
        found = until(
            lambda: now if (now := report(running, "transfers"))["open"] and now["transfers"]
            else None, "both are under way")
        assert found["requests"] == 1 and found["tunnels"] == 1
        (one,) = found["transfers"]
        assert (one["method"], one["path"], one["host"]) == ("GET", "/slow?***", there.authority)
        assert "client" not in one
        assert found["open"][0]["host"] == there.authority
        go.set()
        assert wire.read().status == 200
        tunnel.close()
    until(lambda: not report(running, "transfers")["requests"], "nothing is under way")


def test_events_tell_of_exchanges_as_they_end(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway()
    reader = Events(running)
    assert reader.wait("hello")[0]["access"] == "masked"
    running.get("http://127.0.0.1:1/failed?a=b")
    assert reader.wait("flow")[0]["path"] == "/failed?***"

    def served() -> bool:
        running.get(there.url("/served"))
        return any(one["path"] == "/served" for one in reader.all("flow"))
    until(served, "what is served is seen, too")
    assert reader.wait("overview")[0]["load"]["connectionsLimit"] > 0
    sampled = until(lambda: [one for one in reader.all("overview") if "sample" in one],
                    "a sample", 30)
    assert all("busyPercent" in worker for worker in sampled[-1]["workers"])
    assert reader.wait("activity")
    reader.close()


def test_a_reader_goes_on_where_it_was(gateway):
    running = gateway()
    first = Events(running)
    first.wait("hello")
    running.get("http://127.0.0.1:1/one")
    first.wait("flow")
    known = first.ids()[-1]
    first.close()
    running.get("http://127.0.0.1:1/two")
    second = Events(running, f"Last-Event-ID: {known}")
    assert [one["path"] for one in second.wait("flow")] == ["/two"]
    second.close()
    # What another process has numbered is no place here.
    other = Events(running, "Last-Event-ID: other-0")
    other.wait("hello")
    running.get("http://127.0.0.1:1/three")
    assert [one["path"] for one in other.wait("flow")] == ["/three"]
    other.close()


def test_there_is_a_limit_of_readers(gateway):
    running = gateway()
    readers = [Events(running) for _ in range(16)]
    for reader in readers:
        reader.wait("hello")
    refused = running.admin_get("/api/v1/events")
    assert refused.status == 503
    assert refused.json()["type"].endswith("too-many-readers")
    readers.pop().close()

    def taken() -> bool:
        reader = Events(running)
        readers.append(reader)
        return bool(until(lambda: reader.text, "an answer")) and b" 200 " in reader.text
    # The gateway notices at the second event that it sends there.
    until(taken, "a place is given up with its connection", 30)
    for reader in readers:
        reader.close()


def test_readers_are_told_of_the_end(gateway):
    running = gateway()
    reader = Events(running)
    reader.wait("hello")
    running.signal(signal.SIGTERM)
    reader.wait("bye")
    until(reader.ended.is_set, "the stream has ended")
    assert reader.text.endswith(b"0\r\n\r\n"), "as a complete response"
    assert running.wait_exit() == 0


def test_a_reload_ends_the_stream_with_an_event(gateway):
    running = gateway()
    reader = Events(running)
    reader.wait("hello")
    running.signal(signal.SIGHUP)
    assert reader.wait("configuration")[0]["generation"] == 2
    until(reader.ended.is_set, "the stream has ended")
    assert reader.text.endswith(b"0\r\n\r\n"), "as a complete response"
    again = Events(running)
    again.wait("hello")
    again.close()


def test_another_token_ends_what_is_read_with_the_former(guarded):  # noqa: F811
    running = guarded
    reader = Events(running, "Authorization: " + BEARER["Authorization"])
    assert reader.wait("hello")[0]["access"] == "full"
    Path(running.config["admin"]["tokenFile"]).write_text("another-token-of-16-bytes")
    running.signal(signal.SIGHUP)
    until(reader.ended.is_set, "the stream has ended")
    running.get("http://127.0.0.1:1/later")
    assert b"/later" not in reader.text
    assert running.admin_get("/api/v1/events", **BEARER).status == 401


def test_a_web_page_of_another_site_takes_no_place(gateway):
    running = gateway()
    reader = Events(running, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors")
    until(lambda: b"403" in reader.text, "it is refused")
    assert b"hello" not in reader.text
    reader.close()


def test_lists_that_must_be_replaced_are_in_the_calendar(gateway, pki, lists, workspace):
    current = lists.hold("current", crl(pki.root), crl(pki.intermediate, days=(-1, 3)))
    old = lists.hold("old", crl(pki.root, days=(-9, -2)))
    logs = log_list(workspace / "logs.json", Log("one").entry())
    running = gateway({"hosts": [
        {"match": ["a.test"], "tls": {"crls": [current], "certificateTransparency": {"logs": logs}}},
        {"match": ["b.test"], "tls": {"crls": [old, current]}}]})
    ends = {(one["kind"], one["name"]): one["time"] for one in report(running, "pins")["calendar"]}
    assert set(ends) == {("crl", current), ("crl", old), ("logs", logs)}
    # The first of the two in the file ends in three days.
    name = "pinfold_crl_next_update_timestamp_seconds"
    now = time.time()
    assert running.metric(name, file=current) == pytest.approx(now + 3 * 86400, abs=600)
    assert running.metric(name, file=old) == pytest.approx(now - 2 * 86400, abs=600)
    assert datetime.fromisoformat(ends["crl", current]).timestamp() == running.metric(name, file=current)
    made = running.metric("pinfold_log_list_timestamp_seconds", file=logs)
    assert datetime.fromisoformat(ends["logs", logs]).timestamp() == made + 70 * 86400
    # Lists are replaced every few days: one that has not been needs attention.
    (attention,) = report(running, "overview")["attention"]
    assert attention["level"] == "critical" and old in attention["text"]


def test_of_lists_that_replace_each_other_the_newest_counts(gateway, pki, lists):
    both = lists.hold("both", crl(pki.root, days=(-9, -2)), crl(pki.root, days=(-1, 5), number=2))
    running = gateway({"hosts": [{"match": ["a.test"], "tls": {"crls": [both]}}]})
    assert running.metric("pinfold_crl_next_update_timestamp_seconds", file=both) == pytest.approx(
        time.time() + 5 * 86400, abs=600)
    assert report(running, "overview")["attention"] == []


def test_a_list_of_logs_that_is_old_needs_attention(gateway, workspace):
    logs = log_list(workspace / "logs.json", Log("one").entry(), age_days=71)
    running = gateway({"hosts": [{"match": ["a.test"], "tls": {
        "certificateTransparency": {"logs": logs}}}]})
    (attention,) = report(running, "overview")["attention"]
    assert (attention["level"], attention["kind"]) == ("warning", "certificate")
    assert attention["text"] == f"the list of logs {logs} is more than 70 days old"


def test_a_list_that_is_merely_newer_is_in_the_calendar_with_its_time(gateway, workspace):
    log, path = Log("one"), workspace / "logs.json"
    log_list(path, log.entry(), age_days=29)
    name = "pinfold_log_list_timestamp_seconds"
    running = gateway({"hosts": [{"match": ["a.test"], "tls": {
        "certificateTransparency": {"logs": str(path)}}}]})
    assert running.metric(name, file=path) == pytest.approx(time.time() - 29 * 86400, abs=600)
    # Renewed as a tool does it: with another file in its place.
    new = workspace / "new.json"
    log_list(new, log.entry(), age_days=1)
    new.rename(path)
    made = until(
        lambda: found if (found := running.metric(name, file=path)) > time.time() - 2 * 86400
        else 0, "the new list's time", 30)
    (end,) = report(running, "pins")["calendar"]
    assert datetime.fromisoformat(end["time"]).timestamp() == made + 70 * 86400
    assert running.metric("pinfold_config_generation") == 1, "servers are evaluated as before"
