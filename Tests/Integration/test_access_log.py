"""The fields of a line of the access log."""

import fcntl
import json
import os
import signal
import subprocess
import time
from datetime import datetime

import pytest
from support.gateway import BINARY, free_port, merged
from support.interception import HOST, curl
from support.origin import reply
from support.wait import until
from support.wire import Wire, ask

F_SETPIPE_SZ = 1031


def test_the_time_of_a_line_is_that_of_its_request_not_of_its_response(gateway, origin):
    arrived = []

    def answer_late(_):
        arrived.append(time.time())
        until(lambda: time.time() > arrived[0] + 0.3, "the response is late")
        return reply()

    there = origin(answer_late)
    running = gateway()
    before = time.time()
    assert running.get(there.url("/")).status == 200
    (line,) = running.wait_access(1)
    logged = datetime.fromisoformat(line["time"].replace("Z", "+00:00")).timestamp()
    # The gateway reads its clock once a turn, in whole milliseconds.
    assert before - 0.05 < logged < arrived[0] + 0.05
    assert line["duration_us"] >= 300_000


def test_a_combined_line_of_an_intercepted_request_has_its_host(gateway, origin, pki, authority):
    there = origin(lambda _: reply(b"x"), tls=pki.intermediate.issue(HOST).server_context())
    running = gateway({
        "tls": {"roots": [str(pki.root.pem_file)]}, "interception": authority.section,
        "hosts": [{"match": [HOST], "intercept": True}],
        "log": {"access": {"path": "access.log", "format": "combined"}}})
    curl(running, authority, f"https://{HOST}:{there.port}/path?q")
    text = until(lambda: "GET" in running.access_file.read_text() and
                 running.access_file.read_text(), "the request's line")
    assert f'"GET https://{HOST}:{there.port}/path?q HTTP/1.1" 200 1 ' in text, text


def test_a_log_on_standard_output_is_no_file(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway({"log": {"access": {"path": "-"}}})
    assert running.get(there.url("/on-standard-output")).status == 200
    # The fixture has both of the process's outputs in one file.
    running.wait_log('"target":"[^"]*/on-standard-output"')
    assert not (running.folder / "-").exists()


@pytest.fixture
def on_pipe(workspace):
    """A gateway whose standard output is a pipe that is read only by the test: the process, its
    proxy and administration, and the pipe."""
    proxy, admin = ("127.0.0.1", free_port()), ("127.0.0.1", free_port())
    reader, writer = os.pipe()
    fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
    configuration = workspace / "pipe.yaml"
    configuration.write_text(json.dumps({
        "workers": 1, "log": {"access": {"path": "-"}}, "cache": {"disk": 0},
        "listeners": [{"name": "proxy", "address": "%s:%d" % proxy, "kind": "forward"}],
        "admin": {"address": "%s:%d" % admin}}))
    with (workspace / "stderr.log").open("wb") as errors:
        process = subprocess.Popen(
            [str(BINARY), "run", "--config", str(configuration)], stdin=subprocess.DEVNULL,
            stdout=writer, stderr=errors, cwd=workspace)
    os.close(writer)

    def ready() -> bool:
        try:
            return ask(admin, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 200
        except OSError:
            return False

    until(ready, "/readyz answers 200", 20)
    yield process, proxy, admin, reader
    process.kill()
    process.wait()
    os.close(reader)


def test_standard_output_has_whole_lines_also_if_it_stalls_and_is_reopened(on_pipe):
    process, proxy, admin, reader = on_pipe

    def dropped() -> int:
        text = ask(admin, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").body.decode()
        name = "pinfold_access_log_dropped_lines_total "
        return int(next(line for line in text.splitlines() if line.startswith(name)).split()[1])

    # Refused at once, and with a long line: nobody waits for the pipe.
    one = f"GET http://10.0.0.1/{'x' * 6000} HTTP/1.1\r\nHost: 10.0.0.1\r\n\r\n"
    sent = 0
    with Wire(proxy) as wire:
        while dropped() == 0:
            for _ in range(20):
                wire.send(one)
                assert wire.read().status == 403
            sent += 20
            assert sent < 2000
            # It says nothing about where lines go on.
            process.send_signal(signal.SIGUSR1)
    process.send_signal(signal.SIGTERM)
    written = b""
    while part := os.read(reader, 65536):
        written += part
    assert process.wait(20) == 0
    lines = [json.loads(line) for line in written.splitlines()]
    assert 0 < len(lines) < sent and all(line["status"] == 403 for line in lines)
    assert written.endswith(b"\n")


FIELDS = ["status", "id", "request.x-a", "response.content-type", "user", "time"]


def test_only_the_chosen_fields_are_in_a_line_in_their_order(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", "Content-Type: text/x", "X-B: http://u:p@h/"))
    running = gateway({"log": {"access": {"fields": FIELDS}}})
    assert running.get(there.url("/"), X_A="one").status == 200
    (line,) = running.wait_access(1)
    assert list(line) == ["status", "id", "request.x-a", "response.content-type", "time"]
    assert (line["status"], line["request.x-a"]) == (200, "one")
    assert line["response.content-type"] == "text/x"
    # A reload changes them.
    running.write_config(merged(running.config, {"log": {"access": {
        "fields": ["method", "response.x-b", "response.cache-status"]}}}))
    running.signal(signal.SIGHUP)
    until(lambda: running.metric("pinfold_config_generation") == 2, "reloaded")
    assert running.get(there.url("/2")).status == 200
    second = running.wait_access(2)[1]
    assert list(second) == ["method", "response.x-b", "response.cache-status"]
    assert second["response.x-b"] == "http://***@h/"
    # What the gateway itself answers has fields, too.
    assert running.get("http://10.0.0.1/").status == 403
    assert list(running.wait_access(3)[2]) == ["method", "response.cache-status"]


def test_the_fields_of_a_request_are_those_that_the_client_sent(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway({
        "hosts": [{"match": ["127.0.0.1"],
                   "request": {"headers": {"set": {"X-A": "gateway"}, "remove": ["X-B"]}}}],
        "log": {"access": {"fields": ["request.x-a", "request.x-b"]}}})
    assert running.get(there.url("/"), X_A="client", X_B="b").status == 200
    assert running.wait_access(1) == [{"request.x-a": "client", "request.x-b": "b"}]


def test_userinfo_is_masked_wherever_a_value_or_a_head_is_cut(gateway, origin):
    url = "http://h/?" + "a" * 985 + "http://user:SECRETONE" + "a" * 100 + "@h/"
    torn = "http://user:SECRETTWO" + "a" * 4000 + "@h/"
    there = origin(lambda _: reply(b"x", "200 OK", f"X-Url: {url}", f"Location: {torn}"))
    running = gateway({"log": {"access": {
        "fields": ["request.x-one", "request.referer", "response.x-url", "response.location"]}}})
    assert running.get(there.url("/"), X_One=url, Referer=url).status == 200
    (line,) = running.wait_access(1)
    assert "SECRET" not in str(line)
    assert line["request.x-one"] == line["response.x-url"] == line["request.referer"]
    assert line["request.x-one"].startswith("http://h/?aaa")


def test_a_share_of_what_was_served_has_lines_and_all_that_was_refused(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: max-age=60"))
    running = gateway({"log": {"access": {"sample": [{"status": "2xx", "share": "10%"}]}}})
    one = f"GET {there.url('/')} HTTP/1.1\r\nHost: 127.0.0.1:{there.port}\r\n\r\n"
    count = 1000
    with running.wire() as wire:
        for _ in range(count // 50):
            wire.send(one * 50)
            for _ in range(50):
                assert wire.read().status == 200
    for _ in range(20):
        assert running.get("http://10.0.0.1/").status == 403
    until(lambda: [line["status"] for line in running.access_lines()].count(403) == 20, "refusals")
    lines = running.access_lines()
    served = [line for line in lines if line["status"] == 200]
    # Five standard deviations.
    assert 50 < len(served) < 150
    assert all(line["sample"] == 0.1 for line in served)
    assert not any("sample" in line for line in lines if line["status"] == 403)
    assert running.metric("pinfold_http_requests_total") >= count


def test_a_reload_begins_and_ends_the_sampling(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway({"log": {"access": {"sample": [
        {"longerThan": "1h", "share": "100%"}, {"share": "0%"}, {"reason": "any", "share": "0%"}]}}})
    assert running.get(there.url("/")).status == 200
    assert running.get("http://10.0.0.1/").status == 403
    running.write_config(merged(running.config, {"log": {"access": {"sample": []}}}))
    running.signal(signal.SIGHUP)
    until(lambda: running.metric("pinfold_config_generation") == 2, "reloaded")
    assert running.get(there.url("/last")).status == 200
    assert [line["target"] for line in running.wait_access(1)] == [there.url("/last")]
