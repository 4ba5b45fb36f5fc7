"""The operational log: it stops nothing, it does not flood, and it counts what it left out."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import time

import pytest
from support.gateway import BINARY, free_port, merged
from support.origin import reply
from support.wait import SLOWDOWN, until
from support.wire import Wire, ask

F_SETPIPE_SZ = 1031

# Refusals of many kinds, so that the limit of lines per kind does not keep the pipe empty.
REFUSALS = [
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://10.0.0.1/ HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n",
    "GET http://a.test/ HTTP/3.0\r\n\r\n",
    "GET http://a.test/ HTTP/11\r\n\r\n",
    "GET http://a.test/ HTTP/1.1\r\n\r\n",
    "GET http://a.test/ HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
    "GET http://a.test/#x HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
    "CONNECT a.test:25 HTTP/1.1\r\nHost: a.test:25\r\n\r\n",
    "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n x: a\r\n\r\n",
    "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nx : a\r\n\r\n",
    "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nContent-Length: x\r\n\r\n",
]


@pytest.fixture
def stalled(workspace):
    """A gateway whose standard error is a pipe that nobody reads; its proxy and administration."""
    proxy, admin = ("127.0.0.1", free_port()), ("127.0.0.1", free_port())
    reader, writer = os.pipe()
    fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
    process = subprocess.Popen(
        [str(BINARY), "run", "--listen", "%s:%d" % proxy, "--admin", "%s:%d" % admin,
         "--allow-destination", "127.0.0.0/8", "--cache-path", str(workspace)],
        stdin=subprocess.DEVNULL, stderr=writer, cwd=workspace)
    os.close(writer)

    def ready() -> bool:
        try:
            return ask(admin, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 200
        except OSError:
            return False

    until(ready, "/readyz answers 200", 20)
    yield process, proxy, admin
    process.kill()
    process.wait()
    os.close(reader)


def test_a_log_without_a_reader_stops_neither_requests_nor_signals(stalled, origin):
    process, proxy, admin = stalled
    there = origin(lambda _: reply(b"served"))
    for _ in range(30):
        for refused in REFUSALS:
            assert ask(proxy, refused).status >= 400
    target = f"http://127.0.0.1:{there.port}/"
    served = ask(proxy, f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{there.port}\r\n\r\n")
    assert served.body == b"served"
    health = ask(admin, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert health.status == 200
    process.send_signal(signal.SIGTERM)
    assert process.wait(10 * min(SLOWDOWN, 4)) == 0


def test_a_flood_of_one_refusal_is_a_few_lines_and_a_number(gateway):
    running = gateway({"workers": 1})
    began = time.monotonic()
    count = 3000
    one = "GET http://10.0.0.1/ HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n"
    with running.wire() as wire:
        for _ in range(count // 100):
            wire.send(one * 100)
            for _ in range(100):
                assert wire.read().status == 403
    running.wait_log(r"request not served … and [\d,]+ more .*reason=destination-refused")

    def logged() -> int:
        lines = [line for line in running.log().splitlines() if " request not served" in line]
        more = [re.search(r"… and ([\d,]+) more", line) for line in lines]
        seconds = time.monotonic() - began
        assert len(lines) <= 6 * (seconds + 2), f"{len(lines)} lines in {seconds} s"
        return sum(int(found[1].replace(",", "")) if found else 1 for found in more)

    until(lambda: logged() == count, "every refusal is written or counted")
    assert running.metric("pinfold_log_suppressed_lines_total") > 0
    assert running.metric("pinfold_log_dropped_lines_total") == 0


def test_as_json_every_line_is_an_object_and_numbers_are_numbers(gateway):
    running = gateway({"workers": 1, "log": {"format": "json"}})
    refused = "GET http://10.0.0.1/ HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n"
    for _ in range(20):
        assert running.ask(refused).status == 403

    def refusals() -> list[dict]:
        lines = [json.loads(line) for line in running.log().splitlines() if line.endswith("}")]
        assert all(line["time"].endswith("Z") and line["level"] for line in lines)
        return [line for line in lines if line["message"] == "request not served"]

    # "more" is in place of lines.
    until(lambda: sum(line.get("more", 1) for line in refusals()) == 20, "all are accounted for")
    first = refusals()[0]
    assert first["status"] == 403 and first["reason"] == "destination-refused"
    assert first["id"] == running.wait_access(20)[0]["id"]


def test_a_reload_changes_the_format_of_the_operational_log(gateway):
    running = gateway({"workers": 1})
    running.write_config(merged(running.config, {"log": {"format": "json"}}))
    running.signal(signal.SIGHUP)
    running.wait_log('"message":"configuration reloaded","generation":2')
    assert re.match(r"\S+Z info \w", running.log())


def test_a_reload_changes_the_level_of_all_threads(gateway):
    running = gateway({"workers": 2})
    refused = "GET http://10.0.0.1/ HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n"
    for generation, level in enumerate(["error", "info"], start=2):
        running.write_config(merged(running.config, {"log": {"level": level}}))
        running.signal(signal.SIGHUP)
        until(lambda: running.metric("pinfold_config_generation") == generation, "reloaded")
        before = len(running.access_lines())
        assert running.ask(refused).status == 403
        running.wait_access(before + 1)
        assert ("request not served" in running.log()) == (level == "info")


def test_a_drain_delay_lets_balancers_notice(gateway, origin):
    there = origin(lambda _: reply(b"served", "200 OK", "Cache-Control: no-store"))
    running = gateway({"timeouts": {"drainDelay": "1h"}})
    running.signal(signal.SIGTERM)
    until(lambda: running.admin_get("/readyz").status == 503, "/readyz answers 503")
    assert running.metric("pinfold_ready") == 0
    # A new connection is still accepted and served.
    assert running.get(f"http://127.0.0.1:{there.port}/").body == b"served"
    running.signal(signal.SIGTERM)
    running.wait_exit()


def test_after_the_drain_delay_listeners_close_and_the_gateway_ends(gateway, scripted_origin):
    def slowly(connection) -> None:
        connection.read_request()
        connection.read_to_end()

    there = scripted_origin(slowly)
    running = gateway({"timeouts": {"drainDelay": "300ms", "grace": "1h"}})
    with running.wire() as held:
        held.send(f"GET http://127.0.0.1:{there.port}/ HTTP/1.1\r\nHost: a\r\n\r\n")
        until(lambda: there.connections, "the request is under way")
        running.signal(signal.SIGTERM)

        def refused() -> bool:
            try:
                Wire(running.proxy).close()
            except OSError:
                return True
            return False

        until(refused, "the listeners are closed")
        # The administration answers until the last exchange has ended.
        assert running.admin_get("/readyz").status == 503
        assert running.process.poll() is None
        held.reset()
    assert running.wait_exit() == 0


def test_at_level_debug_each_phase_logs_what_it_decided(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: max-age=60"))
    running = gateway({"workers": 1, "log": {"level": "debug"}})
    for _ in range(2):
        assert running.get(f"http://127.0.0.1:{there.port}/").status == 200
    first, second = (line["id"] for line in running.wait_access(2))
    running.wait_log(rf" ended .*{second}")

    def phases(identity: str) -> list[str]:
        lines = [line for line in running.log().splitlines() if identity in line]
        return [re.sub(r"^\S+ debug (\w[\w ]*?) \w+=.*", r"\1", line) for line in lines]

    assert phases(first) == ["routed", "looked up", "connection", "store", "ended"]
    assert phases(second) == ["routed", "looked up", "ended"]
    running.wait_log(rf"looked up decision=uri-miss id={first}")
    running.wait_log(rf"store decision=stored id={first}")
    running.wait_log(rf"looked up decision=hit id={second}")


def test_at_level_trace_connections_are_logged(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway({"workers": 1, "log": {"level": "trace"}})
    assert running.get(f"http://127.0.0.1:{there.port}/").status == 200
    running.wait_log(r" trace accepted .*listener=proxy")
    running.wait_log(rf" trace connecting .*server=127.0.0.1:{there.port}")


@pytest.mark.parametrize("level, quiet", [("info", "debug|trace"), ("debug", "trace")])
def test_nothing_of_a_level_that_is_off_is_written(gateway, origin, level, quiet):
    there = origin(lambda _: reply(b"x"))
    running = gateway({"workers": 1, "log": {"level": level}})
    assert running.get(f"http://127.0.0.1:{there.port}/").status == 200
    running.wait_access(1)
    assert not re.search(rf"^\S+ ({quiet}) ", running.log(), re.MULTILINE)
