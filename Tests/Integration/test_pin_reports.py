"""Reports of pin failures: what they say, where they go, and that they get there."""

from __future__ import annotations

import json
import socket
import ssl

import pytest
from support.gateway import free_port, run_pinfold
from support.inspection import careless, opened
from support.origin import reply, serving
from support.reports import (
    HOST,
    WRONG,
    Collector,
    ask,
    certificates,
    configuration,
    counted,
    files,
    seconds_ago,
    serve,
    waiting,
)
from support.secure import reload
from support.wait import until


def test_a_refused_server_is_reported_with_all_there_is_to_know(gateway, origin, pki, collector):
    leaf = pki.intermediate.issue(HOST)
    there, taker = serve(origin, leaf), collector()
    running = gateway(configuration(pki, taker.url("/pins?from=test"), host="*.report.test",
                                    expires="2126-06-01"))
    refused = ask(running, there)
    assert refused.status == 502
    [report] = taker.wait()
    [request] = taker.requests
    assert (request.method, request.target) == ("POST", "/pins?from=test")
    assert request.get("content-type") == "application/json"
    assert request.get("host") == taker.authority
    assert report["hostname"] == HOST and report["port"] == there.port
    assert report["noted-hostname"] == "*.report.test"
    assert report["include-subdomains"] is True
    assert report["effective-expiration-date"] == "2126-06-01T00:00:00Z"
    assert report["reason"] == refused.json()["reason"] == "tls-no-pin-matches"
    assert report["pinset"] == "wanted" and report["enforced"] is True and report["count"] == 1
    assert report["known-pins"] == [f'pin-sha256="{one[7:]}"' for one in WRONG]
    assert leaf.pin in report["detail"]
    assert certificates(report["served-certificate-chain"]) == [leaf.certificate, *leaf.chain]
    assert certificates(report["validated-certificate-chain"]) == [
        leaf.certificate, pki.intermediate.certificate, pki.root.certificate]
    assert -5 < seconds_ago(report) < 60
    until(lambda: counted(running, "delivered") == 1, "it is counted")
    assert waiting(running) == 0 and files(running) == []


def test_a_server_that_passes_is_reported_so(gateway, origin, pki, collector):
    there, taker = serve(origin, pki.intermediate.issue(HOST)), collector()
    running = gateway(configuration(pki, taker.url("/"), enforce=False))
    assert ask(running, there).status == 200
    [report] = taker.wait()
    assert report["enforced"] is False and report["noted-hostname"] == HOST
    assert report["include-subdomains"] is False
    assert "effective-expiration-date" not in report


def test_each_of_several_pinsets_reports_the_whole_chain(gateway, origin, pki, collector):
    leaf = pki.intermediate.issue(HOST)
    there, taker = serve(origin, leaf), collector()
    config = configuration(pki, taker.url("/"), enforce=False)
    config["pinsets"]["second"] = {**config["pinsets"]["wanted"], "pins": [WRONG[0], leaf.pin]}
    config["pinsets"]["third"] = {**config["pinsets"]["wanted"], "pins": WRONG[::-1]}
    config["hosts"][0]["pinsets"] = ["wanted", "second", "third"]
    running = gateway(config)
    assert ask(running, there).status == 200
    reports = taker.wait(2)
    assert sorted(one["pinset"] for one in reports) == ["third", "wanted"]
    for one in reports:
        assert certificates(one["served-certificate-chain"]) == [leaf.certificate, *leaf.chain]
        assert len(one["validated-certificate-chain"]) == 3


def test_a_chain_that_leads_nowhere_is_reported_as_it_was_served(gateway, origin, pki, collector):
    leaf = pki.rogue_root.issue(HOST)
    there, taker = serve(origin, leaf), collector()
    running = gateway(configuration(pki, taker.url("/")))
    reason = ask(running, there).json()["reason"]
    [report] = taker.wait()
    assert report["reason"] == reason and reason.startswith("tls-")
    assert certificates(report["served-certificate-chain"]) == [leaf.certificate]
    assert report["validated-certificate-chain"] == []


def test_pinned_certificates_are_reported_by_their_fingerprint(gateway, origin, pki, collector):
    other = pki.intermediate.issue("other.test")
    there, taker = serve(origin, pki.intermediate.issue(HOST)), collector()
    running = gateway(configuration(pki, taker.url("/"), mode="certificate",
                                    pins=[other.fingerprint]))
    assert ask(running, there).status == 502
    [pin] = taker.wait()[0]["known-pins"]
    name, _, value = pin.partition("=")
    assert name == "certificate-sha256"
    assert value.strip('"').replace(":", "").lower() == other.fingerprint


def test_the_same_failure_is_reported_once(gateway, origin, pki, collector):
    there, taker = serve(origin, pki.intermediate.issue(HOST)), collector()
    running = gateway(configuration(pki, taker.url("/")))
    for _ in range(20):
        assert ask(running, there).status == 502
    taker.wait()
    assert counted(running, "repeated") == 19
    # What was only counted is written down at the end, and reported by the next process.
    running.stop()
    assert len(files(running)) == 1
    running.start()
    first, second = taker.wait(2)
    assert first["count"] == 1 and second["count"] == 19
    assert first["served-certificate-chain"] == second["served-certificate-chain"]
    assert len(taker.reports) == 2


def test_inspected_tunnels_are_reported(gateway, origin, pki, collector):
    leaf = pki.intermediate.issue(HOST)
    there, taker = serve(origin, leaf), collector()
    running = gateway(configuration(pki, taker.url("/"), entry={"tunnel": "inspect"}))
    with pytest.raises(OSError), opened(running, HOST, there.port) as wire:
        careless("1.2").wrap_socket(wire.socket, server_hostname=HOST)
    [report] = taker.wait()
    assert report["enforced"] is True and report["reason"] == "tls-no-pin-matches"
    assert certificates(report["served-certificate-chain"]) == [leaf.certificate, *leaf.chain]
    assert len(report["validated-certificate-chain"]) == 3


def test_probed_tunnels_are_reported(gateway, origin, pki, collector):
    there, taker = serve(origin, pki.intermediate.issue(HOST)), collector()
    running = gateway(configuration(
        pki, taker.url("/"), entry={"tunnel": "inspect", "tls13Tunnel": "probe"}))
    with pytest.raises(OSError), opened(running, HOST, there.port) as wire:
        careless("1.3").wrap_socket(wire.socket, server_hostname=HOST)
    [report] = taker.wait()
    assert len(report["served-certificate-chain"]) == 2


def test_intercepted_tunnels_are_reported(gateway, origin, pki, collector, authority):
    there, taker = serve(origin, pki.intermediate.issue(HOST)), collector()
    config = configuration(pki, taker.url("/"), entry={"intercept": True})
    running = gateway(config | {"interception": authority.section})
    wire, response = running.connect(f"{HOST}:{there.port}")
    wire.close()
    assert response.status == 502
    [report] = taker.wait()
    assert report["enforced"] is True and len(report["served-certificate-chain"]) == 2


def test_reports_go_by_verified_tls_and_past_the_pins(gateway, origin, pki, collector):
    """The server that takes the reports is itself one that the pinset would refuse."""
    taker = collector(tls=pki.intermediate.issue("taker.report.test").server_context())
    there = serve(origin, pki.intermediate.issue(HOST))
    running = gateway(configuration(
        pki, f"https://taker.report.test:{taker.port}/", host="*.report.test"))
    assert ask(running, there).status == 502
    [report] = taker.wait()
    assert report["hostname"] == HOST
    # The pins do hold for requests of clients, and make another report.
    assert ask(running, taker, "taker.report.test").status == 502
    assert taker.wait(2)[1]["hostname"] == "taker.report.test"


@pytest.mark.parametrize("bad", ["unknown authority", "another name"])
def test_reports_are_not_sent_to_another_server(gateway, origin, pki, collector, bad):
    leaf = (pki.rogue_root.issue("taker.report.test") if bad == "unknown authority"
            else pki.root.issue("other.test"))
    taker = collector(tls=leaf.server_context())
    there = serve(origin, pki.intermediate.issue(HOST))
    running = gateway(configuration(pki, f"https://taker.report.test:{taker.port}/"))
    assert ask(running, there).status == 502
    running.wait_log("pin failure reports are not accepted, and will be retried.*TLS")
    assert taker.application_bytes == b""
    assert waiting(running) == 1 and len(files(running)) == 1
    # It is no pin failure, and no report is made of it.
    assert running.metric("pinfold_pin_evaluations_total", pinset="wanted") == 1


def test_a_server_that_is_down_gets_its_report_when_it_is_up(gateway, origin, pki):
    there, port = serve(origin, pki.intermediate.issue(HOST)), free_port()
    running = gateway(configuration(pki, f"http://127.0.0.1:{port}/"))
    assert ask(running, there).status == 502
    running.wait_log("pin failure reports are not accepted, and will be retried.*refused")
    until(lambda: counted(running, "retried") >= 2, "it is tried again")
    assert waiting(running) == 1
    with serving(Collector(listener=socket.create_server(("127.0.0.1", port)))) as taker:
        [report] = taker.wait()
        assert report["hostname"] == HOST
        running.wait_log("pin failure reports are accepted again")
    until(lambda: waiting(running) == 0, "nothing waits")


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_reports_survive_the_process(gateway, origin, pki, end):
    there, port = serve(origin, pki.intermediate.issue(HOST)), free_port()
    running = gateway(configuration(pki, f"http://127.0.0.1:{port}/"))
    assert ask(running, there).status == 502
    until(lambda: len(files(running)) == 1, "it is on disk")
    getattr(running, end)()
    assert len(files(running)) == 1
    with serving(Collector(listener=socket.create_server(("127.0.0.1", port)))) as taker:
        running.start()
        [report] = taker.wait()
        assert report["hostname"] == HOST
        running.wait_log("found waiting pin failure reports.*reports=1")
        until(lambda: files(running) == [], "its file is gone")
        assert len(taker.reports) == 1


def test_a_damaged_report_is_dropped_and_logged(gateway, origin, pki, collector):
    there, port = serve(origin, pki.intermediate.issue(HOST)), free_port()
    running = gateway(configuration(pki, f"http://127.0.0.1:{port}/"))
    assert ask(running, there).status == 502
    [file] = until(lambda: files(running), "it is on disk")
    running.stop()
    file.write_bytes(file.read_bytes()[:-10])
    running.start()
    line = running.wait_log("a damaged pin failure report was dropped")
    assert file.name in line
    until(lambda: counted(running, "damaged") == 1, "it is counted")
    assert files(running) == [] and waiting(running) == 0


def test_a_server_that_will_not_take_a_report_gets_it_once(gateway, origin, pki, collector):
    there = serve(origin, pki.intermediate.issue(HOST))
    taker = collector(answers=[reply(b"no", "400 Bad Request")])
    running = gateway(configuration(pki, taker.url("/")))
    assert ask(running, there).status == 502
    running.wait_log("a pin failure report was rejected and dropped.*status=400")
    assert counted(running, "rejected") == 1
    assert waiting(running) == 0 and files(running) == []
    assert len(taker.reports) == 1


@pytest.mark.parametrize("status", ["500 Oops", "503 Busy", "429 Slow down", "302 Elsewhere"])
def test_a_server_that_is_in_trouble_gets_it_again(gateway, origin, pki, collector, status):
    there = serve(origin, pki.intermediate.issue(HOST))
    taker = collector(answers=[reply(b"", status, "Retry-After: 1", "Location: /other")])
    running = gateway(configuration(pki, taker.url("/there")))
    assert ask(running, there).status == 502
    first, second = taker.wait(2)
    assert first == second
    assert [one.target for one in taker.requests] == ["/there", "/there"]
    until(lambda: counted(running, "delivered") == 1, "it is delivered")
    assert counted(running, "retried") == 1


def test_a_reload_determines_where_reports_go(gateway, origin, pki, collector):
    there, port = serve(origin, pki.intermediate.issue(HOST)), free_port()
    config = configuration(pki, f"http://127.0.0.1:{port}/")
    running = gateway(config)
    assert ask(running, there).status == 502
    until(lambda: waiting(running) == 1, "it waits")
    taker = collector()
    config["pinsets"]["wanted"]["reportTo"] = taker.url("/new")
    reload(running, {**running.config, **config})
    taker.wait()
    assert taker.requests[0].target == "/new"
    # Connections and sessions go on: nothing of the trust is another.
    config["pinsets"]["wanted"]["reportTo"] = f"http://127.0.0.1:{port}/"
    reload(running, {**running.config, **config})
    another = serve(origin, pki.intermediate.issue(HOST))
    assert ask(running, another).status == 502
    until(lambda: waiting(running) == 1, "it waits")
    del config["pinsets"]["wanted"]["reportTo"]
    reload(running, {**running.config, **config})
    running.wait_log("their pinsets no longer report.*reports=1")
    assert waiting(running) == 0 and files(running) == []
    assert counted(running, "withdrawn") == 1
    assert ask(running, another).status == 502
    assert len(taker.reports) == 1


def test_a_change_of_where_reports_go_ends_no_connection(gateway, origin, pki, collector):
    leaf = pki.intermediate.issue(HOST)
    there, taker = serve(origin, leaf), collector()
    config = configuration(pki, taker.url("/"), pins=[leaf.pin, WRONG[0]])
    running = gateway(config)
    assert ask(running, there).status == 200
    config["pinsets"]["wanted"]["reportTo"] = taker.url("/other")
    reload(running, {**running.config, **config})
    assert ask(running, there).status == 200
    assert there.accepted == 1


def test_a_resumed_session_is_reported_with_the_certificate_that_it_kept(
    gateway, origin, pki, collector
):
    leaf = pki.intermediate.issue(HOST)
    there = origin(lambda _: reply(b"genuine", "200 OK", "Connection: close"),
                   tls=leaf.server_context(maximum=ssl.TLSVersion.TLSv1_2))
    taker = collector()
    config = configuration(pki, taker.url("/"), enforce=False)
    del config["pinsets"]["wanted"]["reportTo"]
    running = gateway(config)
    assert ask(running, there).status == 200
    config["pinsets"]["wanted"]["reportTo"] = taker.url("/")
    reload(running, {**running.config, **config})
    assert ask(running, there).status == 200
    assert running.metric("pinfold_tls_handshakes_total", resumed="true") == 1
    [report] = taker.wait()
    assert certificates(report["served-certificate-chain"]) == [leaf.certificate]


def test_a_silent_server_delays_nothing(gateway, origin, pki, scripted_origin):
    silent = scripted_origin(lambda connection: connection.read_request_head() and
                             connection.socket.recv(1 << 20) and connection.socket.recv(1))
    there = serve(origin, pki.intermediate.issue(HOST))
    config = configuration(pki, silent.url("/"), enforce=False)
    running = gateway(config | {"timeouts": {"grace": "1s"}})
    assert ask(running, there).status == 200
    until(lambda: silent.accepted == 1, "it is being delivered")
    another = serve(origin, pki.intermediate.issue(HOST))
    assert ask(running, another).status == 200
    # What happens during a delivery is on disk all the same.
    until(lambda: len(files(running)) == 2, "both are on disk")
    assert running.stop() == 0
    assert len(files(running)) == 2


def test_a_path_that_is_no_folder_is_logged_and_reports_are_still_sent(
    gateway, origin, pki, collector
):
    there, taker = serve(origin, pki.intermediate.issue(HOST)), collector()
    running = gateway(configuration(pki, taker.url("/")), start=False)
    (running.folder / "cache").mkdir()
    (running.folder / "cache" / "pin-reports").write_text("not a folder")
    running.start()
    running.wait_log("pin failure reports are kept in memory.*pin-reports")
    assert ask(running, there).status == 502
    taker.wait()
    until(lambda: counted(running, "delivered") == 1, "it is delivered")


def test_no_storm_of_different_failures_fills_the_queue(gateway, origin, pki):
    """Each connection is shown another key."""
    port = free_port()
    contexts = [pki.root.issue(HOST).server_context() for _ in range(40)]
    servers = [origin(lambda _: reply(b""), tls=one) for one in contexts]
    running = gateway(configuration(pki, f"http://127.0.0.1:{port}/"))
    for one in servers:
        assert ask(running, one).status == 502
    until(lambda: waiting(running) == 30, "as many wait as may")
    assert counted(running, "limited") == 10
    assert len(files(running)) == 30


def test_check_reports_what_is_wrong_and_what_is_doubtful(workspace):
    file = workspace / "pinfold.yaml"
    (workspace / "cache").mkdir()
    (workspace / "cache" / "pin-reports").write_text("")
    file.write_text(json.dumps({
        "cache": {"path": "cache"},
        "hosts": [{"match": ["a.test"], "pinsets": ["p"]}],
        "pinsets": {"p": {"mode": "publicKey", "pins": WRONG,
                          "reportTo": "http://reports.test/pins"}}}))
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 0
    assert 'reportTo: "http://reports.test/pins"' in done.stdout
    assert "pinsets.p.reportTo: sends reports in clear text" in done.stderr
    assert "pin-reports" in done.stderr and "is not a directory" in done.stderr
