"""What is stored, and what Cache-Status reports of it, while the cache is busy."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.origin import OriginConnection, reply
from support.preload import library
from support.wait import until
from support.wire import Closed, Wire, request

FRESH = "Cache-Control: max-age=600"
ONE = {"workers": 1}
STORES = "pinfold_cache_stores_total"


class Server:
    """Answers what changes something at once, and everything else when it is let go."""

    def __init__(self, body: bytes = b"body", fields: tuple[str, ...] = (), at_head: bool = True):
        self.body = body
        self.fields = fields
        self.at_head = at_head
        self.release = threading.Event()
        self.asked: list[str] = []

    def __call__(self, connection: OriginConnection) -> None:
        while (seen := connection.read_request()) is not None:
            if seen.method != "GET":
                connection.send(reply(b"", "200 OK", *self.fields))
                continue
            self.asked.append(seen.target)
            whole = reply(self.body, "200 OK", FRESH)
            if not self.at_head:
                connection.send(whole[:-1])
            self.release.wait(20)
            connection.send(whole if self.at_head else whole[-1:])


def post(url: str) -> str:
    return request(url, method="POST", Content_Length="0")


# What changes something


def test_changes_elsewhere_keep_no_response_from_being_stored(gateway, scripted_origin):
    server = Server()
    there = scripted_origin(server)
    running = gateway()
    urls = [there.url(f"/{number}") for number in range(24)]
    wires = [running.wire() for _ in urls]
    for wire, url in zip(wires, urls):
        wire.send(request(url))
    until(lambda: len(server.asked) == len(urls), "all are under way")
    with running.wire() as changing:
        for number in range(2000):
            assert changing.ask(post(there.url(f"/other/{number}")), "POST").status == 200
    server.release.set()
    assert all("stored" in wire.read().cache_status for wire in wires)
    for wire in wires:
        wire.close()
    assert all("hit" in running.get(url).cache_status for url in urls)
    assert running.metric("pinfold_cache_invalidations_total") == 2000


@pytest.mark.parametrize("named", [None, "Location", "Content-Location"])
@pytest.mark.parametrize("at_head", [True, False], ids=["before the head", "within the body"])
def test_a_response_invalidated_on_its_way_is_not_stored_and_reported_so(
        gateway, scripted_origin, named, at_head):
    server = Server(fields=(f"{named}: /x",) if named else (), at_head=at_head)
    there = scripted_origin(server)
    running = gateway({**ONE})
    url = there.url("/x")
    with running.wire() as wire:
        wire.send(request(url))
        until(lambda: server.asked, "it is under way")
        if not at_head:
            head = wire.read_head()
        changed = there.url("/collection") if named else url
        assert running.ask(post(changed)).status == 200
        server.release.set()
        response = wire.read() if at_head else wire.read_body(head)
    assert response.body == b"body"
    if at_head:
        assert "stored" not in response.cache_status
        assert response.cache_status["detail"] == "invalidated"
    line = next(line for line in running.wait_access(2) if line["method"] == "GET")
    assert (line["not_stored"], line["cache"]) == ("invalidated", "uncacheable")
    assert running.metric("pinfold_cache_not_stored_total", reason="invalidated") == 1
    assert "hit" not in running.get(url).cache_status
    assert "hit" in running.get(url).cache_status


def test_after_a_change_the_next_of_those_who_wait_leads(gateway, scripted_origin):
    server = Server()
    there = scripted_origin(server)
    running = gateway({**ONE, "timeouts": {"collapse": "60s"}})
    url = there.url("/x")
    wires = [running.wire() for _ in range(6)]
    for wire in wires:
        wire.send(request(url))
    until(lambda: running.metric("pinfold_cache_collapse_waits_total") == 5, "they wait")
    assert running.ask(post(url)).status == 200
    server.release.set()
    responses = [wire.read() for wire in wires]
    for wire in wires:
        wire.close()
    assert len(server.asked) == 2
    assert sum("collapsed" in response.cache_status for response in responses) == 4


def test_a_change_leaves_those_who_read_already_alone(gateway, scripted_origin):
    server = Server(at_head=False)
    there = scripted_origin(server)
    running = gateway({**ONE})
    url = there.url("/x")
    wires = [running.wire() for _ in range(6)]
    for wire in wires:
        wire.send(request(url))
    heads = [wire.read_head() for wire in wires]
    assert running.ask(post(url)).status == 200
    with running.wire() as late:
        late.send(request(url))
        waits = "pinfold_cache_collapse_waits_total"
        until(lambda: running.metric(waits) == 6, "it waits for the end")
        server.release.set()
        for wire, head in zip(wires, heads):
            assert wire.read_body(head).body == b"body"
        # It came after the change: it gets a response of its own, which is stored.
        assert "stored" in late.read().cache_status
    for wire in wires:
        wire.close()
    assert len(server.asked) == 2
    assert sum("collapsed" in head.cache_status for head in heads) == 5
    assert running.metric(STORES) == 1


# Waiting for another's response


class Slow:
    """Sends a body in pieces, and each of them after a pause."""

    def __init__(self, pieces: int, pause: float):
        self.pieces = pieces
        self.pause = pause
        self.asked = 0

    def __call__(self, connection: OriginConnection) -> None:
        while connection.read_request() is not None:
            self.asked += 1
            connection.send(
                f"HTTP/1.1 200 OK\r\n{FRESH}\r\nContent-Length: {self.pieces}\r\n\r\n".encode())
            for _ in range(self.pieces):
                time.sleep(self.pause)
                connection.send(b"x")


def test_those_who_wait_go_on_while_the_server_does_and_it_is_stored_once(
        gateway, scripted_origin):
    server = Slow(12, 0.25)
    url = scripted_origin(server).url("/")
    running = gateway({**ONE, "timeouts": {"collapse": "1s"}})
    wires = [running.wire() for _ in range(6)]
    for wire in wires:
        wire.send(request(url))
    responses = [wire.read() for wire in wires]
    for wire in wires:
        wire.close()
    assert all(response.body == b"x" * 12 for response in responses)
    assert server.asked == 1
    assert sum("collapsed" in response.cache_status for response in responses) == 5
    assert running.metric(STORES) == 1


def test_of_requests_that_stopped_waiting_one_response_is_stored(gateway, scripted_origin):
    together = threading.Barrier(5)
    release = threading.Event()
    asked = 0

    def script(connection: OriginConnection) -> None:
        nonlocal asked
        while connection.read_request() is not None:
            asked += 1
            if asked == 1:
                release.wait(20)
            else:
                together.wait(20)
            connection.send(reply(b"body", "200 OK", FRESH))

    url = scripted_origin(script).url("/")
    running = gateway({**ONE, "timeouts": {"collapse": "500ms"}})
    leader = running.wire()
    leader.send(request(url))
    until(lambda: asked == 1, "the first one is under way")
    wires = [running.wire() for _ in range(5)]
    for wire in wires:
        wire.send(request(url))
    statuses = [wire.read().cache_status for wire in wires]
    assert asked == 6
    assert sum("stored" in one for one in statuses) == 1
    assert [one["detail"] for one in statuses if "stored" not in one] == ["duplicate"] * 4
    assert running.metric(STORES) == 1
    assert "hit" in running.get(url).cache_status
    release.set()
    late = leader.read()
    assert late.body == b"body" and late.cache_status["detail"] == "duplicate"
    assert running.metric(STORES) == 1
    for wire in [leader, *wires]:
        wire.close()


def test_of_requests_that_do_not_wait_one_response_of_each_variant_is_stored(
        gateway, scripted_origin):
    together = threading.Barrier(6)
    release = threading.Event()
    asked: list[str] = []

    def script(connection: OriginConnection) -> None:
        while (seen := connection.read_request()) is not None:
            language = seen.get("accept-language")
            asked.append(language)
            if len(asked) == 1:
                connection.send(reply(b"", "200 OK", "Cache-Control: no-store"))
                continue
            together.wait(20)
            whole = reply(language.encode(), "200 OK", FRESH, "Vary: Accept-Language")
            connection.send(whole[:-1])
            release.wait(20)
            connection.send(whole[-1:])

    url = scripted_origin(script).url("/")
    running = gateway({**ONE})
    # From now on nobody waits.
    assert "stored" not in running.get(url, Accept_Language="en").cache_status
    wires = [running.wire() for _ in range(6)]
    for wire, language in zip(wires, ("en", "en", "en", "de", "de", "de")):
        wire.send(request(url, Accept_Language=language))
    heads = [wire.read_head() for wire in wires]
    release.set()
    statuses = [wire.read_body(head).cache_status for wire, head in zip(wires, heads)]
    assert len(asked) == 7
    for same in (statuses[:3], statuses[3:]):
        assert sum("stored" in one for one in same) == 1
        assert [one["detail"] for one in same if "stored" not in one] == ["duplicate"] * 2
    assert running.metric(STORES) == 2
    for wire, language in zip(wires, ("en", "en", "en", "de", "de", "de")):
        response = wire.ask(request(url, Accept_Language=language))
        assert "hit" in response.cache_status and response.body == language.encode()
        wire.close()


def test_of_requests_that_stopped_waiting_one_response_of_each_variant_is_stored(
    gateway, scripted_origin
):
    together = threading.Barrier(3)
    release = threading.Event()
    asked: list[str] = []

    def script(connection: OriginConnection) -> None:
        while (seen := connection.read_request()) is not None:
            language = seen.get("accept-language")
            asked.append(language)
            if len(asked) == 1:
                release.wait(20)
            else:
                together.wait(20)
            connection.send(reply(language.encode(), "200 OK", FRESH, "Vary: Accept-Language"))

    url = scripted_origin(script).url("/")
    running = gateway({**ONE, "timeouts": {"collapse": "500ms"}})
    leader = running.wire()
    leader.send(request(url, Accept_Language="en"))
    until(lambda: asked, "the first one is under way")
    wires = [running.wire() for _ in range(3)]
    for wire, language in zip(wires, ("en", "de", "de")):
        wire.send(request(url, Accept_Language=language))
    english, *german = [wire.read().cache_status for wire in wires]
    assert "stored" in english
    assert sorted("stored" in one for one in german) == [False, True]
    assert [one["detail"] for one in german if "stored" not in one] == ["duplicate"]
    release.set()
    assert leader.read().cache_status["detail"] == "duplicate"
    for language in ("en", "de"):
        with running.wire() as wire:
            response = wire.ask(request(url, Accept_Language=language))
        assert "hit" in response.cache_status and response.body == language.encode()
    for wire in [leader, *wires]:
        wire.close()


def test_a_client_that_reads_slowly_delays_no_other(gateway, scripted_origin):
    """What comes from the server comes as fast as it can."""
    size = 16 << 20
    asked = 0

    def script(connection: OriginConnection) -> None:
        nonlocal asked
        while connection.read_request() is not None:
            asked += 1
            connection.send(
                f"HTTP/1.1 200 OK\r\n{FRESH}\r\nContent-Length: {size}\r\n\r\n".encode())
            for _ in range(size >> 20):
                connection.send(bytes(1 << 20))

    url = scripted_origin(script).url("/")
    running = gateway({**ONE, "timeouts": {"collapse": "1s"}, "cache": {"disk": "1GiB"}})
    running.wait_for_disk()
    over = threading.Event()
    with running.wire() as slow:
        slow.send(request(url))
        slow.read_head()

        def trickle() -> None:
            with contextlib.suppress(TimeoutError):
                while not over.wait(0.05):
                    slow.socket.recv(32 << 10)

        reader = threading.Thread(target=trickle)
        reader.start()
        try:
            with running.wire() as other:
                other.send(request(url))
                until(lambda: running.metric("pinfold_cache_collapse_waits_total") == 1, "it waits")
                assert len(other.read().body) == size
            assert asked == 1
        finally:
            over.set()
            reader.join()


# The disk


def test_what_the_disk_cannot_follow_is_stored_in_memory(gateway, origin, tmp_path, monkeypatch):
    stalled = tmp_path / "stalled"
    monkeypatch.setenv("LD_PRELOAD", str(library(STALLED_DISK, stalled)))
    body = os.urandom(100_000)
    there = origin(lambda _: reply(body, "200 OK", FRESH))
    running = gateway({**ONE, "cache": {"memory": "256MiB", "disk": "1GiB"}})
    running.wait_for_disk()
    stalled.touch()
    urls = [there.url(f"/{number}") for number in range(600)]
    with running.wire() as wire:
        for url in urls:
            assert "stored" in wire.ask(request(url)).cache_status
        assert running.metric("pinfold_cache_store_dropped_total") > 0
        assert running.metric(STORES) == len(urls)
        assert all("hit" in wire.ask(request(url)).cache_status for url in urls)
    stalled.unlink()


# While a file is there, the thread that writes to disk stands still, or finds the disk full.
DISK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
static int is_concerned(void) {
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    return strcmp(name, "cache-writer") == 0 && access(FILE_PATH, F_OK) == 0;
}
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    static ssize_t (*next)(int, const void *, size_t, off64_t);
    if (next == 0) next = dlsym(RTLD_NEXT, "pwrite64");
    BEHAVIOUR
    return next(fd, bytes, count, offset);
}
"""
STALLED_DISK = DISK.replace("BEHAVIOUR", "while (is_concerned()) usleep(1000);")
FULL_DISK = DISK.replace("BEHAVIOUR", "if (is_concerned()) { errno = ENOSPC; return -1; }")


class Quick:
    """Sends a large body as fast as it is taken."""

    def __init__(self, body: bytes, *fields: str, pause: float = 0):
        """The first response stands still for `pause` seconds near its end."""
        self.body = body
        self.pause = pause
        self.fields = "".join(f"{field}\r\n" for field in fields)
        self.asked: list[str] = []
        self.sent = 0

    def __call__(self, connection: OriginConnection) -> None:
        while (seen := connection.read_request()) is not None:
            wanted = seen.get("range")
            self.asked.append(wanted)
            first, last = 0, len(self.body) - 1
            status = "200 OK"
            if wanted:
                start, end = wanted.removeprefix("bytes=").split("-")
                first, last = int(start), int(end or last)
                status = (f"206 Partial Content\r\nContent-Range: bytes {first}-{last}/"
                          f"{len(self.body)}")
            connection.send(
                f"HTTP/1.1 {status}\r\n{FRESH}\r\n{self.fields}"
                f"Content-Length: {last + 1 - first}\r\n\r\n".encode())
            with contextlib.suppress(OSError):
                for start in range(first, last + 1, 1 << 20):
                    if not wanted and start >= len(self.body) - (2 << 20):
                        time.sleep(self.pause)
                    connection.send(self.body[start:min(start + (1 << 20), last + 1)])
                    self.sent += 1


@pytest.mark.parametrize("is_strong, pause", [(True, 0), (True, 2), (False, 0)],
                         ids=["strong tag", "slower than the rest", "no tag"])
def test_a_disk_that_is_full_in_the_middle_of_a_body_cuts_nobody_off_who_can_go_on(
        gateway, scripted_origin, tmp_path, monkeypatch, is_strong, pause):
    full = tmp_path / "full"
    monkeypatch.setenv("LD_PRELOAD", str(library(FULL_DISK, full)))
    body = os.urandom(1 << 20) * 64
    server = Quick(body, *(['ETag: "1"'] if is_strong else []), pause=pause)
    url = scripted_origin(server).url("/")
    running = gateway({**ONE, "cache": {"memory": "16MiB", "disk": "1GiB"}})
    running.wait_for_disk()
    wires = [running.wire() for _ in range(6)]
    heads = []
    for wire in wires:
        wire.send(request(url))
        heads.append(wire.read_head())
    full.touch()
    until(lambda: running.metric("pinfold_cache_stores_aborted_total") == 1, "it is not stored")

    def read(wire: Wire, head) -> bool:
        with contextlib.suppress(Closed):
            assert wire.read_body(head).body == body
            return True
        return False

    with ThreadPoolExecutor(len(wires)) as pool:
        complete = list(pool.map(read, wires, heads))
    for wire in wires:
        wire.close()
    assert server.asked[0] == "" and all(server.asked[1:])
    if is_strong:
        assert all(complete)
        # At worst, each of them has fetched the rest.
        assert server.sent <= 7 * 64
    else:
        assert not all(complete) and len(server.asked) == 1
    assert running.get(url, Range="bytes=0-9").body == body[:10]
    assert "please report" not in running.log()


def test_a_disk_that_stands_still_for_a_while_cuts_no_reader_off(
        gateway, scripted_origin, tmp_path, monkeypatch):
    stalled = tmp_path / "stalled"
    monkeypatch.setenv("LD_PRELOAD", str(library(STALLED_DISK, stalled)))
    body = os.urandom(1 << 20) * 64
    server = Quick(body)
    url = scripted_origin(server).url("/")
    running = gateway({**ONE, "cache": {"memory": "16MiB", "disk": "1GiB"}})
    running.wait_for_disk()
    stalled.touch()
    wires = [running.wire() for _ in range(4)]
    heads = []
    for wire in wires:
        wire.send(request(url))
        heads.append(wire.read_head())
    until(lambda: server.sent > 16, "the origin has sent what the queue takes")
    paused = server.sent
    time.sleep(2.5)
    assert server.sent - paused < 16, "the origin waits for the disk as well"
    stalled.unlink()
    with ThreadPoolExecutor(len(wires)) as pool:
        for response in pool.map(Wire.read_body, wires, heads):
            assert response.body == body
    for wire in wires:
        wire.close()
    assert len(server.asked) == 1
    assert running.metric(STORES) == 1
    assert "hit" in running.get(url).cache_status


def test_the_thread_that_writes_has_a_workers_share_of_the_processor(gateway):
    running = gateway()
    running.wait_for_disk()
    writer = os.getpriority(os.PRIO_PROCESS, cache_writer(running.pid))
    assert writer == os.getpriority(os.PRIO_PROCESS, running.pid)


def cache_writer(pid: int) -> int:
    """The thread that writes to disk."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == "cache-writer":
            return int(task.name)
    raise AssertionError("there is no thread cache-writer")


def test_the_log_has_the_time_when_the_disk_is_tried_again(gateway):
    running = gateway({"cache": {"path": "/dev/null/cache"}})
    line = running.wait_log("disk tier is off")
    assert "in 60s" in line


# The gateway's own replies


def test_the_gateways_own_replies_do_not_count_as_misses(gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        connection.read_request()

    closing = scripted_origin(script)
    running = gateway({**ONE})
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        failed = running.get(f"http://127.0.0.1:{bound.getsockname()[1]}/")
    assert failed.status == 502
    assert "fwd" not in failed.cache_status
    assert failed.cache_status["detail"] == "uri-miss"
    cut = running.get(closing.url("/"))
    assert cut.status == 502
    assert cut.cache_status["fwd"] == "uri-miss"
    absent = running.get(closing.url("/"), Cache_Control="only-if-cached")
    assert absent.status == 504
    assert "fwd" not in absent.cache_status
    lines = running.wait_access(3)
    assert [line.get("forwarded") for line in lines] == [None, "uri-miss", None]
    assert [line["cache"] for line in lines] == ["none"] * 3
    assert running.metric("pinfold_http_requests_total", cache="none") == 3
