"""Metrics and log lines of exchanges name the listener and the host entry, from the configuration."""

from __future__ import annotations

import gzip
import re
import signal
import time
from pathlib import Path

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID
from support.gateway import BINARY
from support.origin import reply
from support.secure import NAME, forward, tls_of
from support.wait import SLOWDOWN, until
from support.wire import request

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


def test_exchanges_are_counted_by_listener_and_host_entry(gateway, origin):
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


def test_responses_are_counted_by_their_exact_status(gateway, origin):
    there = origin(lambda seen: reply(b"x", f"{seen.target[1:]} Some", "Cache-Control: no-store"))
    running = gateway({"hosts": [{"match": [HOST]}]})
    for status in (200, 418, 503, 555, 599, 200):
        assert running.get(f"http://{HOST}:{there.port}/{status}").status == status
    assert running.get("/").status == 400
    running.wait_access(7)
    found = {(dict(key)["host"], dict(key)["code"]): value
             for key, value in samples(running, "pinfold_http_responses_total").items()}
    assert found == {(HOST, "200"): 2, (HOST, "418"): 1, (HOST, "503"): 1, (HOST, "555"): 1,
                     (HOST, "599"): 1, ("none", "400"): 1}


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
    leaf = pki.root.issue(HOST)
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: no-store"),
                   tls=leaf.server_context())
    running = gateway({"workers": 1, "hosts": [
        {"match": [HOST], "name": "payments", "tls": {"roots": [str(pki.root.pem_file)]}}]})
    assert running.get(f"https://{HOST}:{there.port}/").status == 200
    (line,) = running.wait_access(1)
    assert line["host"] == "payments"
    assert running.metric("pinfold_host_connections", host="payments", state="idle") == 1
    assert running.metric("pinfold_host_connections", host="payments", state="in_use") == 0
    assert running.metric(
        "pinfold_certificate_not_after_timestamp_seconds", use="upstream", host="payments"
    ) == end_of(leaf.certificate)
    assert running.metric("pinfold_origin_connections_limit") == 256


def reload(running, **changes) -> None:
    running.config = {**running.config, **changes}
    running.write_config(running.config)
    generation = running.metric("pinfold_config_generation")
    running.signal(signal.SIGHUP)
    until(lambda: running.metric("pinfold_config_generation") > generation, "reloaded")


def test_every_host_entry_and_every_pinset_has_series_of_its_own(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: no-store"))
    names = [f"h{number}.series.test" for number in range(300)]
    pin = "sha256/" + "A" * 43 + "="
    running = gateway({
        "hosts": [{"match": [name]} for name in names]
        + [{"match": [f"*.p{number}.test"], "pinsets": [f"pins{number}"], "upgrade": "https"}
           for number in range(150)],
        "pinsets": {f"pins{number}": {"mode": "publicKey", "pins": [pin]}
                    for number in range(150)}})
    asked = [names[0], names[99], names[150], names[299]]
    for name in asked:
        assert running.get(f"http://{name}:{there.port}/").status == 200
    lines = running.wait_access(4)
    assert {line["host"] for line in lines} == set(asked)
    for name in asked:
        assert count(running, "pinfold_http_requests_total", host=name) == 1
    shown = {dict(key)["host"] for key in samples(running, "pinfold_host_connections")}
    assert set(names) <= shown and "other" not in shown
    pinsets = {dict(key)["pinset"] for key in samples(running, "pinfold_pin_evaluations_total")}
    assert pinsets == {f"pins{number}" for number in range(150)}


def test_the_metrics_of_a_thousand_entries_are_cheap_and_delay_nobody(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: no-store", "Connection: close"))
    names = [f"h{number}.localhost" for number in range(1000)]
    running = gateway({"workers": 1, "hosts": [{"match": [name]} for name in names]})
    with running.wire() as wire:
        for name in names:
            assert wire.ask(request(f"http://{name}:{there.port}/")).status == 200
    shown = {dict(key)["host"] for key in samples(running, "pinfold_http_responses_total")}
    assert set(names) <= shown

    def scrape() -> None:
        response = running.admin_get("/metrics", Accept_Encoding="gzip")
        assert response.get("content-encoding") == "gzip"

    # Processor time of the whole gateway, which is what a scrape takes on an idle machine.
    took = min(running.work(scrape, 20))
    if "release" in str(BINARY):
        assert took < 0.05 * SLOWDOWN
    # It is done on a thread of its own, and not in the turn of a worker.
    threads = {
        (task / "comm").read_text().strip()
        for task in Path(f"/proc/{running.pid}/task").iterdir()}
    assert "metrics" in threads


def test_a_removed_entrys_series_end_and_its_successors_begin_at_zero(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: no-store"))

    def entries(generation: int) -> list[dict]:
        return [{"match": [f"h{number}.g{generation}.test"]} for number in range(120)]

    running = gateway({"workers": 1, "hosts": entries(0)})
    for generation in range(6):
        if generation > 0:
            reload(running, hosts=entries(generation))
        for number in (0, 60, 119):
            name = f"h{number}.g{generation}.test"
            assert running.get(f"http://{name}:{there.port}/").status == 200
            assert count(running, "pinfold_http_requests_total", host=name) == 1
        hosts = {dict(key)["host"] for key in samples(running, "pinfold_http_requests_total")}
        assert hosts == {f"h{number}.g{generation}.test" for number in (0, 60, 119)}
    # What comes back soon goes on.
    reload(running, hosts=[{"match": ["h0.g4.test"]}])
    assert running.get(f"http://h0.g4.test:{there.port}/").status == 200
    assert count(running, "pinfold_http_requests_total", host="h0.g4.test") == 2
    lines = running.wait_access(19)
    assert [line["host"] for line in lines] == [
        f"h{number}.g{generation}.test" for generation in range(6) for number in (0, 60, 119)
    ] + ["h0.g4.test"]


def test_a_tunnel_that_outlives_its_entry_is_logged_with_the_entrys_name(gateway, scripted_origin):
    there = scripted_origin(lambda connection: connection.read_to_end())
    running = gateway({"hosts": [{"match": [HOST], "name": "named"}, {"match": ["b.test"]}]})
    wire, response = running.connect(f"{HOST}:{there.port}")
    assert response.status == 200
    reload(running, hosts=[{"match": ["c.test"]}, {"match": ["b.test"]}])
    wire.close()
    (line,) = running.wait_access(1)
    assert line["host"] == "named"
    hosts = {dict(key)["host"] for key in samples(running, "pinfold_host_connections")}
    assert hosts == {"none", "default", "c.test", "b.test"}


def test_each_worker_shows_how_busy_it_is(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: no-store"))
    running = gateway({"workers": 2})
    began = time.monotonic()
    before = samples(running, "pinfold_worker_busy_seconds_total")
    for _ in range(20):
        assert running.get(there.url("/")).status == 200
    after = samples(running, "pinfold_worker_busy_seconds_total")
    elapsed = time.monotonic() - began
    assert {dict(key)["worker"] for key in after} == {"0", "1"}
    assert all(after[key] >= before[key] for key in after)
    # Neither more than there was, nor nothing at all.
    busy = sum(after.values()) - sum(before.values())
    assert 0 < busy <= 2 * elapsed
    longest = samples(running, "pinfold_worker_longest_turn_seconds")
    assert longest.keys() == after.keys()
    assert max(longest.values()) > 0


def test_the_metrics_page_is_compressed_where_asked(gateway):
    running = gateway({})
    plain = running.admin_get("/metrics")
    assert "content-encoding" not in plain
    compressed = running.admin_get("/metrics", Accept_Encoding="gzip")
    assert compressed.get("content-encoding") == "gzip"
    text = gzip.decompress(compressed.body).decode()
    assert [line for line in text.splitlines() if line.startswith("# HELP")] == [
        line for line in plain.body.decode().splitlines() if line.startswith("# HELP")]


def test_failures_are_counted_from_the_start_by_reason_and_by_host_entry(gateway):
    running = gateway({"hosts": [{"match": [HOST]}, {"match": ["10.0.0.1"], "name": "denied"}]})
    assert count(running, "pinfold_failures_total") == 0
    reasons = {dict(key)["reason"] for key in samples(running, "pinfold_failures_total")}
    assert {"destination-refused", "tls-no-pin-matches", "connection-refused"} <= reasons
    hosts = {dict(key)["host"]: value
             for key, value in samples(running, "pinfold_host_failures_total").items()}
    assert hosts == {"none": 0, "default": 0, HOST: 0, "denied": 0}
    assert running.get("http://10.0.0.1/").status == 403
    assert running.get("/").status == 400
    running.wait_access(2)
    assert count(running, "pinfold_failures_total", reason="destination-refused") == 1
    assert count(running, "pinfold_failures_total") == 2
    assert count(running, "pinfold_host_failures_total", host="denied") == 1
    assert count(running, "pinfold_host_failures_total", host=HOST) == 0


def end_of(certificate) -> float:
    return certificate.not_valid_after_utc.timestamp()


def test_of_an_entrys_certificates_the_first_to_end_is_shown_trusted_or_not(gateway, origin, pki):
    def there(authority, host, days):
        leaf = authority.issue(host, days=(-1, days))
        return leaf, origin(lambda _: reply(b"x"), tls=leaf.server_context())

    running = gateway({"workers": 1, "hosts": [
        {"match": ["*.series.test"], "name": "series",
         "tls": {"roots": [str(pki.root.pem_file)]}}]})
    earliest = float("inf")
    # One that is refused, one that ends later, one that ends before both, and the second again.
    for authority, host, days, status in [
        (pki.other_root, "a.series.test", 20, 502), (pki.root, "b.series.test", 30, 200),
        (pki.root, "c.series.test", 10, 200), (pki.root, "d.series.test", 30, 200),
    ]:
        leaf, server = there(authority, host, days)
        assert running.get(f"https://{host}:{server.port}/").status == status
        earliest = min(earliest, end_of(leaf.certificate))
        end = running.metric(
            "pinfold_certificate_not_after_timestamp_seconds", use="upstream", host="series")
        assert end == earliest, host


def test_the_gateways_own_certificates_are_shown_by_use_and_file(gateway, pki, workspace):
    listener = pki.intermediate.issue(NAME, "127.0.0.1", days=(-1, 12))
    client = pki.other_root.issue("client", usage=ExtendedKeyUsageOID.CLIENT_AUTH, days=(-1, 9))
    authority = pki.interception.section["certificate"]
    running = gateway({
        "listeners": [forward(tls_of(listener))], "interception": pki.interception.section,
        "hosts": [{"match": [HOST], "tls": {"clientCertificate": str(client.chain_file()),
                                            "clientKey": str(client.key_file)}}]})
    with open(authority, "rb") as file:
        made = x509.load_pem_x509_certificate(file.read())
    for use, path, certificate in [
        ("listener", tls_of(listener)["certificate"], listener.certificate),
        ("client", str(client.chain_file()), client.certificate), ("authority", authority, made),
    ]:
        end = running.metric(
            "pinfold_certificate_not_after_timestamp_seconds", use=use, file=path)
        assert end == end_of(certificate), use
