"""Many connections, few descriptors, slow peers, large bodies, nonsense."""

from __future__ import annotations

import random
import resource
import selectors
import socket
import statistics
import subprocess
import threading
import time
from pathlib import Path

import pytest
from support.gateway import Gateway, raise_descriptor_limit
from support.origin import OriginConnection, reply
from support.wait import SANITIZER, SLOWDOWN, until
from support.wire import Closed, Wire, request

FRESH = "Cache-Control: max-age=6000"


def serves(running: Gateway, url: str, count: int) -> None:
    """Exchanges on a kept connection, one after the other."""
    with running.wire() as wire:
        for _ in range(count):
            assert wire.ask(request(url)).status == 200


def median_work(running: Gateway, url: str) -> float:
    """The processor time of an exchange on a kept connection: of many at a time, because what a
    thread has used is known only once it rests."""
    with running.wire() as wire:
        batches = running.work(lambda: [wire.ask(request(url)) for _ in range(50)], 20)
    return statistics.median(batches) / 50


# Many connections


@pytest.mark.large
def test_ten_thousand_idle_connections_while_requests_go_on(gateway, origin):
    assert raise_descriptor_limit() >= 11_000, "raise the limit of descriptors (ulimit -n)"
    there = origin(lambda _: reply(b"x", "200 OK", FRESH))
    running = gateway({"timeouts": {"idle": "300s", "head": "300s"}})
    url = there.url("/")
    running.get(url)
    before = running.rss_bytes
    alone = median_work(running, url)
    idle: list[Wire] = []
    try:
        for number in range(10_000):
            wire = Wire(running.proxy)
            idle.append(wire)
            if number % 2:  # half of them have had a request before
                assert wire.ask(request(url)).status == 200
        until(lambda: running.metric("pinfold_client_connections_open") >= 10_000, "all accepted")
        crowded = median_work(running, url)
        assert crowded < 8 * alone, f"{alone} s of processor time for a request, then {crowded} s"
        used = running.rss_bytes - before
        if not SANITIZER:
            assert used < 20 << 20, f"{used / 10_000:.0f} bytes per idle connection"
        for wire in random.Random(1).sample(idle, 200):
            assert wire.ask(request(url)).body == b"x", "and each of them still works"
    finally:
        for wire in idle:
            wire.close()
    until(lambda: running.metric("pinfold_client_connections_open") <= 2, "all closed", 30)


def test_running_out_of_descriptors_is_survived(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", FRESH))

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))

    running = gateway({"workers": 1, "limits": {"connections": 20_000},
                       "timeouts": {"head": "60s"}}, preexec=limit)
    url = there.url("/")
    assert running.get(url).status == 200
    # In use, all of them: idle ones would make room.
    crowd: list[Wire] = []
    whole = request(url)
    while running.descriptors < 80:
        crowd.append(running.wire())
        crowd[-1].send(whole + whole[:20])
        assert crowd[-1].read().body == b"x"
    existing = crowd[0]
    crowd += [running.wire() for _ in range(60)]  # the kernel's backlog takes them
    try:
        existing.send(whole[20:] + whole[:20])
        assert existing.read().body == b"x", "existing connections go on"
        used = running.cpu_seconds()
        time.sleep(0.5)  # the span itself: what is measured is the CPU's time in it
        assert running.cpu_seconds() - used < 0.25, "it does not spin meanwhile"
        existing.send(whole[20:])
        assert existing.read().body == b"x"
    finally:
        for wire in crowd:
            wire.close()
    with running.wire() as fresh:
        assert fresh.ask(request(url)).body == b"x", "it resumes by itself"
    until(lambda: running.metric("pinfold_accept_paused") == 0, "no longer paused")
    assert running.metric("pinfold_accept_pauses_total") >= 1


def test_no_descriptor_for_the_upstream_is_an_error_reply(gateway, scripted_origin):
    """The exchange fails with a reason; the gateway goes on."""
    release = threading.Event()

    def script(connection: OriginConnection) -> None:
        connection.read_request()
        release.wait(20)
        connection.send(reply(b"x", "200 OK", "Connection: close"))

    there = scripted_origin(script)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))

    running = gateway({"workers": 1, "cache": {"enabled": False}}, preexec=limit)
    wires = [running.wire() for _ in range(60)]
    try:
        for wire in wires:
            wire.send(request(there.url("/"), Connection="close"))
        until(lambda: running.descriptors >= 58, "no descriptor is left")
        release.set()
        statuses = set()
        for wire in wires:
            try:
                statuses.add(wire.read().status)
            except Closed:
                statuses.add(0)
        assert 200 in statuses
        assert statuses <= {0, 200, 502, 503}
    finally:
        release.set()
        for wire in wires:
            wire.close()
    assert running.get(there.url("/")).status == 200


def test_no_more_connections_are_held_than_the_limit(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", FRESH))
    running = gateway({"workers": 1, "limits": {"connections": 10}})
    url = there.url("/")
    held = [running.wire() for _ in range(10)]
    try:
        for wire in held:
            assert wire.ask(request(url)).status == 200
            wire.send("GET")  # in use: those that are idle would make room
        with Wire(running.proxy, timeout=0.5) as beyond:
            try:
                assert beyond.ask(request(url)).status == 503
            except (TimeoutError, Closed, ConnectionError):
                pass  # not accepted, or closed at once
        held[0].send(request(url)[3:])
        assert held[0].read().status == 200
    finally:
        for wire in held:
            wire.close()

    def served() -> bool:
        try:
            return running.get(url).status == 200
        except (Closed, OSError):
            return False

    until(served, "there is room again")


# Slow peers


def test_slow_senders_and_readers_delay_no_other_client(gateway, scripted_origin):
    """One worker; fifty clients that send a head byte by byte and fifty that read so. None of them
    moves while another is served: who waited for a next byte would wait for ever."""
    body = b"z" * 4_000_000

    def script(connection: OriginConnection) -> None:
        while (seen := connection.read_request()) is not None:
            connection.send(reply(body if seen.target == "/large" else b"x"))

    there = scripted_origin(script)
    running = gateway({"workers": 1, "cache": {"enabled": False},
                       "timeouts": {"head": "120s", "body": "120s"}})
    url = there.url("/small")
    serves(running, url, 1)
    before = running.rss_bytes
    senders, readers = [], []
    data = request(there.url("/dripped"), X="y" * 10_000)
    try:
        for _ in range(50):
            senders.append(running.wire())
            readers.append(Wire(running.proxy))
            readers[-1].socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            readers[-1].send(request(there.url("/large")))
        for at in range(40):
            for wire in senders:
                wire.send(data[at : at + 1])
            for wire in readers:
                wire.socket.recv(1)
            serves(running, url, 5)
        grown = running.rss_bytes - before
    finally:
        for wire in senders + readers:
            wire.close()
    if not SANITIZER:
        assert grown < 48 << 20, f"{grown >> 20} MiB for 50 slow readers"


def test_slow_content_either_way_delays_no_other_client(gateway, scripted_origin):
    """One worker; a client that sends its content byte by byte and one that reads so. Neither moves
    while others are served: who waited for a next byte would wait for ever."""
    body = b"z" * 4_000_000
    start = b"HTTP/1.1 200 OK"

    def script(connection: OriginConnection) -> None:
        while (seen := connection.read_request()) is not None:
            connection.send(reply(body if seen.target == "/large" else b"x"))

    there = scripted_origin(script)
    running = gateway({"workers": 1, "cache": {"enabled": False},
                       "timeouts": {"head": "120s", "body": "120s"}})
    url = there.url("/small")
    upload = request(there.url("/upload"), method="POST", body=b"u" * len(start))
    with running.wire() as sender, socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        raw.connect(running.proxy)
        reader = Wire(running.proxy, sock=raw)
        sender.send(upload[: -len(start)])
        reader.send(request(there.url("/large")))
        # Both are in the middle of it: one's request is at the origin, the other's answer is held
        # back by its full sockets.
        until(lambda: there.accepted == 2, "both have begun")
        got = b""
        for _ in start:
            serves(running, url, 30)
            assert running.get(url).status == 200
            sender.send(b"u")
            got += reader.socket.recv(1)
        assert got == start, "the slow reader is served meanwhile"
        assert sender.read().status == 200, "the slow sender is served in the end"


def test_a_slow_origin_does_not_slow_others(gateway, scripted_origin):
    def script(connection: OriginConnection) -> None:
        while (seen := connection.read_request()) is not None and seen.target != "/slow":
            connection.send(reply(b"x"))
        if seen is None:
            return
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        for _ in range(100_000):
            connection.send(b".")
            time.sleep(0.01)  # the server's pace

    there = scripted_origin(script)
    running = gateway({"workers": 1, "cache": {"enabled": False}})
    slow = [running.wire() for _ in range(30)]
    try:
        for wire in slow:
            wire.send(request(there.url("/slow")))
        for wire in slow:
            wire.read_until(b"\r\n\r\n.")
        for _ in range(50):
            assert running.get(there.url("/fast")).body == b"x"
        assert slow[0].read_exactly(1) == b".", "each byte is passed on at once"
    finally:
        for wire in slow:
            wire.close()


def test_a_slow_head_is_cut_off_however_steadily_it_comes(gateway):
    """Slowloris: the time for a head is for all of it, not between two bytes."""
    running = gateway({"timeouts": {"head": "1s"}})
    began = time.monotonic()
    with running.wire() as wire:
        wire.socket.settimeout(0.05)

        def is_cut_off() -> bool:
            """One byte more, and then fifty milliseconds or the end."""
            try:
                wire.send("a")
                wire.socket.recv(1000)
            except TimeoutError:
                return False
            except ConnectionError:
                pass
            return True

        wire.send("GET http://a.test/ HTTP/1.1\r\nX: ")
        assert any(is_cut_off() for _ in range(600)), "it takes one byte after the other"
    assert time.monotonic() - began > 0.5


# Large bodies


SIZE = (2 << 30) if not SANITIZER else (128 << 20)
RSS = 100 << 20 if not SANITIZER else 1 << 30


def check_memory(running: Gateway) -> None:
    assert running.peak_rss_bytes < RSS, f"{running.peak_rss_bytes >> 20} MiB"


@pytest.fixture
def sparse(workspace: Path) -> Path:
    """A file of 2 GiB that takes no room."""
    path = workspace / "sparse.bin"
    with path.open("wb") as file:
        file.truncate(SIZE)
    return path


def curl(*arguments: str) -> list[str]:
    done = subprocess.run(
        ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code} %{size_download} %{size_upload}",
         *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.large
@pytest.mark.timeout(400)
@pytest.mark.parametrize("path", ["/", "/fresh/"], ids=["not stored", "too large to be stored"])
def test_two_gibibytes_pass_down(gateway, nginx, sparse, path):
    target = nginx.files / sparse.name
    target.unlink(missing_ok=True)
    target.symlink_to(sparse)
    running = gateway()
    assert curl("-x", running.proxy_url, nginx.url(path + sparse.name))[:2] == ["200", str(SIZE)]
    check_memory(running)


@pytest.mark.large
@pytest.mark.timeout(400)
def test_two_gibibytes_pass_down_a_tunnel(gateway, nginx, sparse):
    target = nginx.files / sparse.name
    target.unlink(missing_ok=True)
    target.symlink_to(sparse)
    running = gateway()
    assert curl("-p", "-x", running.proxy_url, nginx.url("/" + sparse.name))[:2] == [
        "200", str(SIZE)]
    check_memory(running)


def counting_sink(counted: list[int]):
    """Reads a body as fast as it comes and counts it; understands length and chunked."""
    def script(connection: OriginConnection) -> None:
        seen = connection.read_request_head()
        if seen is None:
            return
        total = len(connection.buffer)
        tail = connection.buffer[-5:]
        buffer = bytearray(1 << 20)
        length = int(seen.get("content-length") or -1)
        while (total < length) if length >= 0 else not tail.endswith(b"0\r\n\r\n"):
            count = connection.socket.recv_into(buffer)
            if not count:
                break
            total += count
            tail = (tail + bytes(buffer[max(0, count - 5) : count]))[-5:]
        counted.append(total)
        connection.send(reply(b"", "201 Created", "Connection: close"))

    return script


@pytest.mark.large
@pytest.mark.timeout(400)
@pytest.mark.parametrize("coding", ["length", "chunked"])
def test_two_gibibytes_pass_up(gateway, scripted_origin, sparse, coding):
    counted: list[int] = []
    there = scripted_origin(counting_sink(counted))
    running = gateway()
    extra = ["-H", "Transfer-Encoding: chunked"] if coding == "chunked" else []
    code, _, uploaded = curl("-x", running.proxy_url, "-H", "Expect:", *extra, "-T", str(sparse),
                             there.url("/sink"))
    # curl counts the chunks' heads too.
    assert (code, int(uploaded) >= SIZE) == ("201", True)
    assert counted[0] >= SIZE
    check_memory(running)


def test_a_slow_reader_of_a_large_response_costs_little(gateway, nginx, workspace):
    (nginx.files / "slow.bin").write_bytes(b"")
    with (nginx.files / "slow.bin").open("r+b") as file:
        file.truncate(200 << 20)
    running = gateway()
    before = running.rss_bytes
    wire = Wire(running.proxy)
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    with wire:
        wire.send(request(nginx.url("/slow.bin")))
        wire.read_head()
        last = -1.0

        def stalled() -> bool:
            nonlocal last
            previous, last = last, running.metric("pinfold_upstream_received_bytes_total")
            return last == previous

        until(stalled, "the upstream is no longer read")
        assert last < 32 << 20
        assert running.rss_bytes - before < (16 << 20) * SLOWDOWN


def test_memory_does_not_grow_with_requests(gateway, origin):
    there = origin(lambda seen: reply(b"x" * 1000, "200 OK", "Cache-Control: no-store"))
    running = gateway({"workers": 1})

    def load(count: int) -> None:
        with running.wire() as wire:
            for _ in range(count // 20):
                wire.send(request(there.url("/"), X_Pad="p" * 500) * 20)
                for _ in range(20):
                    wire.read()
        for _ in range(count // 40):
            running.get(there.url("/"))

    load(2000)
    before = running.rss_bytes
    load(6000)
    if not SANITIZER:  # which keeps what was freed for a while
        assert running.rss_bytes - before < 8 << 20


# Nonsense


def test_random_bytes_never_harm(gateway):
    running = gateway({"workers": 1, "timeouts": {"head": "2s"}})
    picked = random.Random(7)
    for _ in range(150):
        with running.wire() as wire:
            try:
                wire.send(picked.randbytes(picked.choice((1, 10, 100, 2000))) + b"\r\n\r\n")
                wire.half_close()
                answer = wire.read_to_end()
            except (ConnectionError, OSError):
                continue
            assert answer == b"" or answer.startswith(b"HTTP/1.1 "), answer[:100]
    assert running.admin_get("/healthz").status == 200


def test_mutated_requests_never_harm_and_never_smuggle(gateway, origin):
    """Whatever a mutation does to a request, the origin sees well-formed requests only, and of a
    target that was in the text; its own strict reader would fail otherwise."""
    there = origin(lambda seen: reply(seen.body, "200 OK", "Cache-Control: no-store"))
    running = gateway({"workers": 1, "timeouts": {"head": "1s", "body": "1s"}})
    picked = random.Random(11)
    base = (request(there.url("/first"), method="POST", body=b"GET /evil HTTP/1.1\r\n\r\n")
            + request(there.url("/second"), method="POST", Transfer_Encoding="chunked")
            + b"5;x=y\r\nhello\r\n0\r\nT: 1\r\n\r\n" + request(there.url("/third")))
    pieces = [b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b"0", b"\0", b"Content-Length: 3\r\n",
              b"Transfer-Encoding: chunked\r\n", b"HTTP/1.0", b"GET ", b"\x0b", b",", b";"]
    for _ in range(400):
        data = bytearray(base)
        for _ in range(picked.choice((1, 1, 2, 4))):
            at = picked.randrange(len(data))
            kind = picked.randrange(4)
            if kind == 0:
                del data[at : at + picked.randrange(1, 8)]
            elif kind == 1:
                data[at:at] = picked.choice(pieces)
            elif kind == 2:
                data[at] = picked.randrange(256)
            else:
                data[at : at + 1] = picked.choice(pieces)
        with running.wire() as wire:
            try:
                wire.send(bytes(data))
                wire.half_close()
                answer = wire.read_to_end()
            except (ConnectionError, OSError):
                continue
            assert answer == b"" or answer.startswith(b"HTTP/1."), answer[:100]
    assert running.admin_get("/healthz").status == 200
    assert not any(seen.target == "/evil" for seen in there.requests)
    assert not there.problems, there.problems[0]


def test_connections_that_come_and_go_at_once_do_no_harm(gateway):
    running = gateway({"workers": 1})
    for number in range(500):
        wire = running.wire()
        if number % 3 == 0:
            wire.reset()
        elif number % 3 == 1:
            wire.send("GET ")
            wire.reset()
        else:
            wire.close()
    until(lambda: running.metric("pinfold_client_connections_open") <= 1, "all are gone")


def test_many_short_connections_at_once_are_all_served(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", FRESH))
    running = gateway()
    running.get(there.url("/"))
    with selectors.DefaultSelector() as selector:
        pending = {}
        for _ in range(300):
            wire = running.wire()
            wire.send(request(there.url("/"), Connection="close"))
            pending[wire.socket.fileno()] = wire
            selector.register(wire.socket, selectors.EVENT_READ)
        done = 0
        while pending:
            for key, _ in selector.select(20):
                wire = pending.pop(key.fd)
                selector.unregister(wire.socket)
                assert wire.read().body == b"x"
                wire.close()
                done += 1
    assert done == 300
