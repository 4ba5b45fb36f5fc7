"""Metrics and log lines of exchanges name the listener and the host entry, from the configuration."""

from __future__ import annotations

import re
import signal

from support.origin import reply
from support.wait import until

HOST = "named.series.test"


def samples(running, name: str) -> dict[tuple, float]:
    """A metric's samples by listener, host and the other labels that are asked for."""
    found = {}
    for sample, value in running.metrics().items():
        base, _, rest = sample.partition("{")
        if base == name:
            labels = dict(re.findall(r'(\w+)="([^"]*)"', rest))
            found[tuple(sorted(labels.items()))] = value
    return found


def count(running, name: str, **labels: str) -> float:
    wanted = set(labels.items())
    return sum(value for key, value in samples(running, name).items() if wanted <= set(key))


def test_exchanges_are_told_by_listener_and_host_entry(gateway, origin):
    there = origin(lambda _: reply(b"12345", "200 OK", "Cache-Control: no-store"))
    running = gateway({
        "hosts": [{"match": [HOST]}],
        "listeners": [
            {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
            {"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
             "upstream": f"http://{HOST}:{there.port}"},
            {"name": "other-back", "address": "127.0.0.1:0", "kind": "reverse",
             "upstream": f"http://127.0.0.1:{there.port}"}]})
    assert running.get(f"http://{HOST}:{there.port}/").status == 200
    assert running.get(f"http://127.0.0.1:{there.port}/").status == 200
    assert running.get("/", "back").status == 200
    assert running.get("/", "back").status == 200
    assert running.get("/", "other-back").status == 200
    assert running.get("/", "proxy").status == 400
    assert running.get("http://10.0.0.1/").status == 403
    running.wait_access(7)
    expected = {("proxy", HOST): 1, ("proxy", "default"): 2, ("back", HOST): 2,
                ("other-back", "default"): 1, ("proxy", "none"): 1}
    for (listener, host), number in expected.items():
        assert count(running, "pinfold_http_requests_total", listener=listener, host=host) == number
    logged = [(line["listener"], line["host"]) for line in running.access_lines()]
    assert {pair: logged.count(pair) for pair in logged} == expected
    failures = "pinfold_http_request_failures_total"
    assert count(running, failures, listener="proxy", host="none",
                 reason="not-a-proxy-request") == 1
    assert count(running, failures, listener="proxy", host="default",
                 reason="destination-refused") == 1
    assert count(running, failures) == 2
    assert count(running, "pinfold_cache_not_stored_total", listener="back", host=HOST,
                 reason="no-store") == 2
    assert count(running, "pinfold_upstream_first_byte_seconds_count", listener="back") == 2
    assert count(running, "pinfold_http_response_content_bytes_total", listener="back",
                 cache="uncacheable") == 10


def test_a_tunnel_counts_for_its_host_and_not_as_a_slow_request(gateway, scripted_origin):
    there = scripted_origin(lambda connection: connection.read_to_end())
    running = gateway({"hosts": [{"match": [HOST]}]})
    wire, response = running.connect(f"{HOST}:{there.port}")
    assert response.status == 200
    wire.close()
    running.wait_access(1)
    until(lambda: count(running, "pinfold_http_stream_duration_seconds_count",
                        listener="proxy", host=HOST, kind="tunnel") == 1, "the tunnel is counted")
    assert count(running, "pinfold_http_request_duration_seconds_count", host=HOST) == 0
    assert count(running, "pinfold_http_requests_total", listener="proxy", host=HOST,
                 method="CONNECT") == 1


def test_a_response_that_is_cut_off_counts_as_a_failure(gateway, scripted_origin):
    def truncated(connection) -> None:
        connection.read_request()
        connection.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 100000\r\n\r\n" + b"x" * 50_000)

    there = scripted_origin(truncated)
    running = gateway()
    with running.wire() as wire:
        wire.send(f"GET http://127.0.0.1:{there.port}/ HTTP/1.1\r\nHost: a\r\n\r\n")
        wire.read_to_end()
    (line,) = running.wait_access(1)
    assert line["reason"] == "upstream-truncated-body"
    assert line["not_stored"] == "incomplete"
    assert count(running, "pinfold_http_request_failures_total",
                 reason="upstream-truncated-body") == 1


def test_series_go_on_over_a_reload_that_moves_listeners_and_entries(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: no-store"))
    back = {"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
            "upstream": f"http://{HOST}:{there.port}"}
    proxy = {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"}
    running = gateway({"listeners": [proxy, back], "hosts": [{"match": [HOST]}]})
    assert running.get("/", "back").status == 200
    running.write_config({**running.config, "listeners": [back, proxy],
                          "hosts": [{"match": ["first.test"]}, {"match": [HOST]}]})
    running.signal(signal.SIGHUP)
    until(lambda: running.metric("pinfold_config_generation") == 2, "reloaded")
    assert running.get("/", "back").status == 200
    lines = running.wait_access(2)
    assert [(line["listener"], line["host"]) for line in lines] == [("back", HOST)] * 2
    assert count(running, "pinfold_http_requests_total", listener="back", host=HOST) == 2


def test_a_host_entry_has_its_name_its_pool_and_its_certificate(gateway, origin, pki):
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: no-store"),
                   tls=pki.root.issue(HOST).server_context())
    running = gateway({"workers": 1, "hosts": [
        {"match": [HOST], "name": "payments", "tls": {"roots": [str(pki.root.pem_file)]}}]})
    assert running.get(f"https://{HOST}:{there.port}/").status == 200
    (line,) = running.wait_access(1)
    assert line["host"] == "payments"
    assert running.metric("pinfold_host_connections", host="payments", state="idle") == 1
    assert running.metric("pinfold_host_connections", host="payments", state="in_use") == 0
    left = running.metric("pinfold_host_certificate_expiry_seconds", host="payments")
    certificate = pki.root.certificate
    assert 0 < left < (certificate.not_valid_after_utc - certificate.not_valid_before_utc
                       ).total_seconds()
    assert running.metric("pinfold_origin_connections_limit") == 256
