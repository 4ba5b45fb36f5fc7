"""The administrative listener: metrics, health; the access log; activity and reachability."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading

import pytest
from support.gateway import free_port
from support.origin import HTTPOrigin, OriginConnection, reply
from support.secure import reload
from support.wait import until
from support.wire import Wire, request


def promtool(text: bytes) -> None:
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True,
                          timeout=30)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    assert done.stderr.strip() == b"", done.stderr.decode()


@pytest.fixture
def busy(gateway, origin, pki):
    """A gateway with some traffic of every kind behind it."""
    leaf = pki.root.issue("pinned.test")
    secure = origin(lambda _: reply(b"s", "200 OK", "Cache-Control: max-age=60"),
                    tls=leaf.server_context())
    plain = origin(lambda _: reply(b"p", "200 OK", "Cache-Control: max-age=60"))
    running = gateway({
        "hosts": [{"match": ["pinned.test"], "upgrade": "https", "pinsets": ["a-set"],
                   "tls": {"roots": [str(pki.root.pem_file)]}}],
        "pinsets": {"a-set": {"mode": "publicKey", "pins": [leaf.pin]}}})
    for _ in range(3):
        running.get(f"http://pinned.test:{secure.port}/")
        running.get(plain.url("/"))
        running.ask(request(plain.url("/"), method="POST", body=b"123"))
    running.ask("GET nonsense HTTP/1.1\r\nHost: a\r\n\r\n")
    wire, _ = running.connect(plain.authority)
    wire.close()
    return running


def test_metrics_in_prometheus_text_satisfy_promtool(busy):
    response = busy.admin_get("/metrics")
    assert response.status == 200
    assert response.get("content-type").startswith("text/plain; version=0.0.4")
    promtool(response.body)


def test_openmetrics_is_given_to_who_accepts_it(busy):
    response = busy.admin_get("/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert response.get("content-type").startswith("application/openmetrics-text; version=1.0.0")
    text = response.body.decode()
    assert text.endswith("# EOF\n")
    assert "# TYPE pinfold_http_requests counter" in text


@pytest.mark.parametrize(("accept", "kind"), [
    ("", "text/plain"), ("*/*", "text/plain"), ("text/html", "text/plain"),
    ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
     "application/openmetrics-text"),
    ("application/openmetrics-text;q=0.1, text/plain;q=0.9", "text/plain")])
def test_the_format_follows_accept(busy, accept, kind):
    fields = {"Accept": accept} if accept else {}
    assert busy.admin_get("/metrics", **fields).get("content-type").startswith(kind)


def test_a_scraper_like_prometheus_reads_it_compressed_or_not(busy):
    response = busy.admin_get("/metrics", Accept_Encoding="identity")
    assert response.body.startswith(b"# ")


def test_exchanges_of_every_kind_are_counted(busy):
    assert busy.metric("pinfold_http_requests_total", method="GET", code_class="2xx") >= 6
    assert busy.metric("pinfold_http_requests_total", method="POST") == 3
    assert busy.metric("pinfold_http_requests_total", cache="hit") >= 2
    assert busy.metric("pinfold_http_request_failures_total") >= 1
    assert busy.metric("pinfold_http_request_duration_seconds_count") >= 10
    assert busy.metric("pinfold_http_request_size_bytes_sum") >= 9
    assert busy.metric("pinfold_pin_evaluations_total", pinset="a-set", result="passed") >= 1
    assert busy.metric("pinfold_tls_handshakes_total") >= 1
    assert busy.metric("pinfold_tunnels_opened_total") == 1
    assert busy.metric("pinfold_client_connections_accepted_total") >= 10
    assert busy.metric("pinfold_upstream_connections_created_total") >= 2
    assert busy.metric("pinfold_cache_entries", tier="memory") >= 1
    assert busy.metric("pinfold_cache_limit_bytes", tier="disk") == 64 << 20
    assert busy.metric("pinfold_dns_queries_total") >= 1
    assert busy.metric("pinfold_ready") == 1
    assert busy.metric("process_resident_memory_bytes") > 1 << 20
    assert any(name.startswith("pinfold_build_info{") for name in busy.metrics())


def test_the_build_metric_has_the_version_of_the_compiler(busy):
    built = next(name for name in busy.metrics() if name.startswith("pinfold_build_info{"))
    version = re.search(r'swift_version="([^"]*)"', built)[1]
    assert re.fullmatch(r"\d+\.\d+(\.\d+)?", version)
    result = subprocess.run(["swift", "--version"], capture_output=True, text=True, timeout=60)
    assert f"Swift version {version} " in result.stdout


def test_labels_never_come_from_traffic(gateway, origin):
    there = origin(lambda _: reply())
    running = gateway()
    running.get(f"http://evil-host-name.test:{there.port}/evil-path")
    running.ask(request(there.url("/"), method="EVILMETHOD"))
    running.ask("GET http://evil-host-name.test/\x01 HTTP/1.1\r\nHost: evil\r\n\r\n")
    assert "evil" not in running.admin_get("/metrics").body.decode().lower()


def test_a_gateway_that_serves_is_healthy_and_ready(gateway):
    running = gateway()
    for path in ("/healthz", "/readyz"):
        response = running.admin_get(path)
        assert response.status == 200
        assert response.body


def test_other_paths_and_methods_are_refused(gateway):
    from support.wire import ask
    running = gateway()
    assert running.admin_get("/nothing-here").status == 404
    response = ask(running.admin, "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
                                  "Connection: close\r\n\r\n")
    assert response.status == 405
    assert "GET" in response.get("allow")
    head = ask(running.admin, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert head.status == 200
    assert head.body == b""


def test_the_admin_listener_is_no_proxy(gateway, origin):
    from support.wire import ask
    there = origin(lambda _: reply(b"reached"))
    running = gateway()
    response = ask(running.admin, request(there.url("/")))
    assert response.body != b"reached"
    assert there.accepted == 0


def test_the_admin_listener_keeps_connections(gateway):
    running = gateway()
    with Wire(running.admin) as wire:
        for _ in range(3):
            assert wire.ask("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 200


def test_a_malformed_request_to_the_admin_listener_is_refused(gateway):
    running = gateway()
    with Wire(running.admin) as wire:
        wire.send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: b\r\n\r\n")
        assert wire.read().status == 400
        assert wire.ended()


# The access log


def test_every_exchange_is_a_line_of_json(gateway, origin):
    there = origin(lambda _: reply(b"12345", "200 OK", "Cache-Control: max-age=60"))
    running = gateway()
    running.ask(request(there.url("/a?b=c"), method="POST", body=b"123", User_Agent="tester/1",
                        Connection="close", Authorization="Basic c2VjcmV0"))
    (line,) = running.wait_access(1)
    assert line["method"] == "POST"
    assert line["target"] == there.url("/a?b=c")
    assert line["status"] == 200
    assert "tester/1" in line.values()
    assert (line["request_bytes"], line["response_bytes"]) == (3, 5), "of the bodies"
    text = running.access_file.read_text()
    assert "c2VjcmV0" not in text
    assert re.search(r"20\d\d-\d\d-\d\dT", text)


def test_every_exchange_is_logged_once(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: max-age=60"))
    running = gateway()
    with running.wire() as wire:
        wire.send(b"".join(request(there.url(f"/{number}")) for number in range(100)))
        for _ in range(100):
            wire.read()
    lines = running.wait_access(100)
    assert len(lines) == 100
    assert {line["target"] for line in lines} == {there.url(f"/{n}") for n in range(100)}


def test_hostile_text_stays_one_line_of_json(gateway, origin):
    there = origin(lambda _: reply())
    running = gateway()
    running.get(there.url('/"quoted"\\back'), User_Agent='a"b\\c\xff\xe9')
    lines = running.wait_access(1)
    assert len(lines) == 1


def test_a_combined_line_is_what_apache_would_write(gateway, origin):
    there = origin(lambda _: reply(b"12345"))
    running = gateway({"log": {"access": {"format": "combined"}}})
    running.get(there.url("/x"), User_Agent="agent", Referer="http://from.test/")
    text = until(lambda: running.access_file.exists() and running.access_file.read_text(), "a line")
    assert re.fullmatch(
        r'127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \+0000\] "GET http://\S+ HTTP/1\.1" '
        r'200 5 "http://from\.test/" "agent" [0-9a-f]{16} -'
        # What Apache has no place for.
        r'( [a-z_]+=\S+)+\n', text), text


def test_sigusr1_reopens_the_access_log(gateway, origin):
    there = origin(lambda _: reply())
    running = gateway()
    running.get(there.url("/before"))
    running.wait_access(1)
    rotated = running.folder / "access.log.1"
    running.access_file.rename(rotated)
    running.get(there.url("/still-the-old-file"))
    until(lambda: "still" in rotated.read_text(), "the old file is written on")
    running.signal(signal.SIGUSR1)
    until(running.access_file.exists, "the new file")
    running.get(there.url("/after"))
    (line,) = running.wait_access(1)
    assert line["target"].endswith("/after")
    assert "after" not in rotated.read_text()


def test_a_log_that_cannot_be_written_fails_no_request(gateway, origin):
    there = origin(lambda _: reply(b"fine"))
    running = gateway({"log": {"access": {"path": "/dev/full"}}})
    for _ in range(20):
        assert running.get(there.url("/")).body == b"fine"
    until(lambda: running.metric("pinfold_access_log_dropped_lines_total") >= 20, "it is counted")


def test_a_log_without_a_reader_blocks_no_request(gateway, origin, workspace):
    """A pipe that is never read stands in for a disk that hangs."""
    import os
    there = origin(lambda _: reply(b"fine", "200 OK", "Cache-Control: max-age=60"))
    pipe = workspace / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        running = gateway({"log": {"access": {"path": str(pipe)}}, "workers": 1})
        long = "x" * 7000
        with running.wire() as wire:
            for _ in range(4000):
                assert wire.ask(request(there.url("/"), User_Agent=long)).body == b"fine"
        until(lambda: running.metric("pinfold_access_log_dropped_lines_total") > 0,
              "lines are dropped and counted")
    finally:
        os.close(reader)


def test_logs_name_what_happened(gateway, origin):
    running = gateway()
    for line in running.log().splitlines():
        assert re.match(r"\d{4}-\d\d-\d\dT", line), f"not a line of the log: {line}"


# Activity (AFNetworking's indicator: 1.0 s and 0.17 s) and reachability


def state(running, name: str = "pinfold_activity_state", **labels: str) -> str:
    for sample, value in running.metrics().items():
        if sample.startswith(name + "{") and value == 1 and all(
                f'{key}="{text}"' in sample for key, text in labels.items()):
            return re.search(r'state="([^"]+)"', sample)[1]
    raise AssertionError(f"no state in {name}")


def test_activity_follows_the_exchanges_in_flight(gateway, scripted_origin):
    release = threading.Event()

    def script(connection: OriginConnection) -> None:
        connection.read_request()
        release.wait(30)
        connection.send(reply())

    there = scripted_origin(script)
    running = gateway({"activity": {"activationDelay": "100ms", "completionDelay": "400ms"}})
    assert state(running) == "not_active"
    with running.wire() as wire:
        wire.send(request(there.url("/")))
        until(lambda: state(running) == "active", "active after the activation delay")
        release.set()
        wire.read()
        until(lambda: state(running) == "delaying_end", "still shown for the completion delay")
        until(lambda: state(running) == "not_active", "hidden after it")
    assert running.metric("pinfold_activity_transitions_total", state="active") == 1


def test_short_exchanges_do_not_show_as_activity(gateway, origin):
    there = origin(lambda _: reply())
    running = gateway({"activity": {"activationDelay": "300ms"}})
    running.get(there.url("/"))
    until(lambda: state(running) == "not_active", "the activation delay passes without activity")
    assert running.metric("pinfold_activity_transitions_total", state="active") == 0


def test_traffic_shows_what_is_reachable(gateway, dns):
    there = HTTPOrigin(lambda _: reply(b"x", "200 OK", "Connection: close"))
    running = gateway({"hosts": [{"match": [f"seen.test:{there.port}"]}], "workers": 1})
    name = "pinfold_host_reachability"
    assert state(running, name) == "unknown"
    running.get(f"http://seen.test:{there.port}/")
    until(lambda: state(running, name) == "reachable", "reachable by traffic")
    there.close()
    assert running.get(f"http://seen.test:{there.port}/").status == 502
    until(lambda: state(running, name) != "reachable", "not reachable by traffic")


def test_a_probe_shows_what_is_reachable(gateway):
    there = HTTPOrigin(lambda _: reply())
    running = gateway({"hosts": [{"match": [f"probed.test:{there.port}"],
                                  "probe": {"interval": "1s", "path": "/health"}}]})
    name = "pinfold_host_reachability"
    until(lambda: state(running, name) == "reachable", "a probe finds it")
    until(lambda: there.requests, "its request comes after the connection")
    assert there.requests[0].target == "/health"
    there.close()
    until(lambda: state(running, name) != "reachable", "a probe misses it")


def test_a_busy_scrape_does_not_disturb_the_traffic(busy):
    stop = threading.Event()

    def scrape() -> None:
        while not stop.is_set():
            busy.admin_get("/metrics")

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        for _ in range(100):
            assert busy.ask("OPTIONS http://a.test/ HTTP/1.1\r\nHost: a.test\r\nMax-Forwards: 0\r\n"
                            "Connection: close\r\n\r\n").status // 100 == 2
    finally:
        stop.set()
        thread.join()


def test_json_lines_parse_under_load(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: max-age=60"))
    running = gateway()
    threads = [threading.Thread(target=lambda: [running.get(there.url("/")) for _ in range(50)])
               for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(running.wait_access(200)) == 200
    for line in running.access_file.read_text().splitlines():
        json.loads(line)


def test_the_administration_does_not_count_as_a_client(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway({"limits": {"connections": 2}})
    watchers = [Wire(running.admin) for _ in range(3)]
    clients = [running.wire() for _ in range(2)]
    try:
        for wire in watchers:
            assert wire.ask("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").status == 200
        for wire in clients:
            assert wire.ask(request(there.url("/"))).body == b"x"
    finally:
        for wire in watchers + clients:
            wire.close()


def test_the_reachability_of_a_wildcard_is_that_of_each_server(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", "Connection: close"))
    running = gateway({"hosts": [{"match": ["*.wild.test"], "name": "wild"}]})
    name = "pinfold_host_reachability"
    assert running.metric(name, host="wild") == 0
    closed = free_port()
    for _ in range(2):
        assert running.get(f"http://up.wild.test:{there.port}/").status == 200
        assert running.get(f"http://down.wild.test:{closed}/").status == 502
    assert running.metric(name, host="wild", state="reachable") == 1
    assert running.metric(name, host="wild", state="not_reachable") == 1
    transitions = "pinfold_host_reachability_transitions_total"
    assert running.metric(transitions, host="wild", state="reachable") == 1
    assert running.metric(transitions, host="wild", state="not_reachable") == 1


@pytest.mark.parametrize("name", ["main", "other"])
def test_a_server_that_goes_down_shows_among_many(gateway, origin, name):
    """One that the entry says exactly, and one of its wildcard's, which the gateway has asked."""
    there = HTTPOrigin(lambda _: reply(b"x", "200 OK", "Connection: close"))
    others = origin(lambda _: reply())
    running = gateway({"hosts": [{"match": ["main.localhost", "*.localhost"], "name": "wild"}],
                       "cache": {"enabled": False}, "workers": 1})
    url = f"http://{name}.localhost:{there.port}/"
    assert running.get(url).status == 200
    with running.wire() as wire:
        for number in range(500):
            assert wire.ask(request(f"http://n{number}.localhost:{others.port}/")).status == 200
    gauge = "pinfold_host_reachability"
    assert running.metric(gauge, host="wild", state="not_reachable") == 0
    there.close()
    until(lambda: running.get(url).status == 502, "it is down")
    assert running.metric(gauge, host="wild", state="not_reachable") == 1


def test_entries_of_one_name_share_what_is_known_of_their_servers(gateway):
    hosts = [{"match": [f"{name}.test"], "name": "same"} for name in ("one", "two", "three")]
    running = gateway({"hosts": hosts})
    assert running.metric("pinfold_host_reachability", host="same", state="unknown") == 3
    reload(running, {**running.config, "hosts": hosts[:2]})
    assert running.metric("pinfold_host_reachability", host="same", state="unknown") == 2


def test_servers_of_an_entry_that_come_again_are_counted_once(gateway, origin):
    there = origin(lambda _: reply())
    running = gateway({"hosts": [{"match": ["*.localhost"], "name": "wild"}], "workers": 1})
    for _ in range(3):
        for number in range(150):
            wire, response = running.connect(f"n{number}.localhost:{there.port}")
            wire.close()
            assert response.status == 200
        transitions = "pinfold_host_reachability_transitions_total"
        assert running.metric(transitions, host="wild", state="reachable") == 100
        gauge = "pinfold_host_reachability"
        assert running.metric(gauge, host="wild", state="reachable") == 100
