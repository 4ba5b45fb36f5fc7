"""Incidents with servers: what says which host it is, what it waits for, and why.

Each fault is made, and met by the requests of several clients through two workers; then its metric,
its lines in both logs, its panel of the live page and its alerts are looked at, and what an operator
has to type to know it. Counts such as "24 of 28 exchanges" hold for a gateway's first two and a half
minutes, in which these have to be done. Those of the gateway itself are in test_incidents_own.py."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.dns import NameServer
from support.gateway import Gateway, refusing_port
from support.incidents import Operator, crowd, fields, fires, has
from support.origin import HTTPOrigin, reply, serving, waiting
from support.wait import until
from test_overview import Events
from test_phases import Late

FAILURES = "pinfold_http_request_failures_total"


def incident(host: str, name: str, pki=None, **more) -> dict:
    """The configuration of a gateway in which an incident happens to the servers of one entry."""
    entry = {"match": [host], "name": name, **more.pop("entry", {})}
    config = {"workers": 2, "cache": {"enabled": False}, "hosts": [entry],
              "admin": {"address": "unix:admin.sock"}, **more}
    return config | ({"tls": {"roots": [str(pki.root.pem_file)]}} if pki else {})


def failed(running: Gateway, name: str, count: int, **wanted: object) -> None:
    """So many exchanges of an entry have failed in the same way; both logs and flows say how."""
    reason = str(wanted["reason"])
    until(lambda: running.metric(FAILURES, host=name, reason=reason) == count, "all are counted")
    lines = until(
        lambda: found if len(found := [
            line for line in running.access_lines() if has(line, host=name, **wanted)]) == count
        else [], lambda: f"{count} times {wanted} in {running.access_lines()[-3:]}")
    asked = re.sub(r"^\w+://|/.*", "", lines[0]["target"])
    told = fields(running.wait_log(f"request not served .*reason={reason}"))
    assert has(told, entry=name, reason=reason, status=str(wanted["status"])), told
    assert told["host"].partition(":")[2] == asked.partition(":")[2]
    shown = Operator(running).waits_for(
        f"flows?entry={name}&reason={reason}", lambda page: page["flows"])
    assert len(shown) == count
    assert all(one["status"] == wanted["status"] for one in shown)


def explained(operator: Operator, running: Gateway, reason: str) -> dict:
    """The latest exchange with a reason, as its panel shows it."""
    (one,) = operator.api(f"flows?reason={reason}&limit=1")["flows"]
    found = operator.api(f"flows/{one['id']}")
    assert found["explanation"]["token"] == reason
    assert found["explanation"]["remedy"]
    return found


def attention(operator: Operator, name: str, *texts: str) -> str:
    """What the overview says of an entry, and `pinfold status` with it."""
    def seen(overview: dict) -> bool:
        return [one["text"] for one in overview["attention"] if one.get("host") == name] == [*texts]

    operator.waits_for("overview", seen)
    shown = operator.status()
    for text in texts:
        assert re.search(rf"^attention +\w+: {name}: {re.escape(text)}$", shown, re.M), shown
    return shown


def host(operator: Operator, name: str) -> dict:
    return next(one for one in operator.api("hosts")["hosts"] if one["entry"] == name)


def test_a_slow_server(gateway, origin, workspace):
    """Its application takes five seconds; connections are made at once."""
    go = threading.Event()

    def answer(seen) -> bytes:
        if seen.target == "/slow":
            go.wait(5.2)
        return reply(b"x")

    there = origin(answer)
    running = gateway(incident("slow.test", "slow"))
    operator = Operator(running)
    urls = [f"http://slow.test:{there.port}/slow"]
    operator.api("flows")
    before = running.metrics()
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(crowd, running, urls, 6, 1)
        under_way = operator.waits_for("transfers", lambda found: [
            one for one in found["transfers"]
            if has(one, host=f"slow.test:{there.port}", entry="slow", state="requesting")])
        assert "first_byte_us" in under_way[0]["phases"]
        assert asked.result() == [200] * 6
    lines = running.wait_access(6)
    for line in lines:
        assert has(line, host="slow", upstream=there.authority, status=200), line
        assert line["first_byte_us"] >= 5_000_000 and "reason" not in line
    after = running.metrics()
    assert running.metric("pinfold_host_phase_duration_seconds_sum", host="slow",
                          phase="first_byte") >= 6 * 5.2
    for one in operator.api("flows?entry=slow")["flows"]:
        assert one["phases"]["first_byte_us"] >= 5_000_000
    found = host(operator, "slow")
    assert found["trouble"] == ["slow_first_byte"]
    shown = operator.status()
    assert re.search(
        r"^attention +warning: slow: first_byte takes \d{4,5} ms \(99 %\)$", shown, re.M), shown
    assert len(operator.commands) == 1
    fires(workspace, before, after, PinfoldServerSlow={"host": "slow"})


def test_a_slow_handshake(gateway, origin, pki, workspace):
    context = pki.intermediate.issue("handshake.test").server_context()
    there = origin(lambda _: reply(b"x", "200 OK", "Connection: close"), tls=Late(context, 1.3))
    running = gateway(incident("handshake.test", "handshake", pki))
    operator = Operator(running)
    before = running.metrics()
    url = f"https://handshake.test:{there.port}/"
    assert crowd(running, [url], clients=6, each=1) == [200] * 6
    for line in running.wait_access(6):
        assert has(line, host="handshake", upstream=there.authority, status=200), line
        assert line["tls_us"] >= 1_300_000 and line["connect_us"] < 1_000_000
    after = running.metrics()
    found = host(operator, "handshake")
    assert "slow_tls" in found["trouble"]
    (phase,) = (one for one in found["phases"] if one["phase"] == "tls")
    assert phase["p99_us"] >= 1_000_000
    shown = operator.status()
    assert re.search(r"^attention +warning: handshake: tls takes \d{4,5} ms \(99 %\)$", shown, re.M)
    # Without load it takes as long: it is the server.
    shown = operator.explain(url)
    assert "server: trusted" in shown
    assert re.search(r"^time: .*tls \d{4,5}\.\d ms$", shown, re.M), shown
    assert len(operator.commands) == 2
    fires(workspace, before, after, PinfoldConnectingSlow={"host": "handshake", "phase": "tls"})


def test_a_full_pool(gateway, scripted_origin, workspace):
    """Of twelve requests at once two get a connection, three may wait, and seven are refused."""
    release, arrived = threading.Event(), threading.Event()
    there = scripted_origin(waiting(release, arrived))
    running = gateway(incident(
        "pool.test", "pool", limits={"upstreamPerHost": 2, "pending": 3}))
    operator = Operator(running)
    before = running.metrics()
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(crowd, running, [f"http://pool.test:{there.port}/"], 12, 1)
        until(lambda: running.metric("pinfold_upstream_pool_wait_refusals_total") == 7, "seven")
        failed(running, "pool", 7, reason="too-many-pending", status=503)
        assert running.metric("pinfold_host_waiting", host="pool") == 3
        found = host(operator, "pool")
        assert has(found, open=2, idle=0, waiting=3, trouble=["failures"], causes=[
            {"reason": "too-many-pending", "count": 7}])
        attention(operator, "pool", "7 of 7 exchanges failed: too-many-pending 7")
        after = running.metrics()
        release.set()
        assert sorted(asked.result()) == [200] * 5 + [503] * 7
    # Those that waited got what they asked for, and the log says for how long they had waited.
    waited = [line for line in running.wait_access(12) if "queue_us" in line]
    assert len(waited) == 3 and all(has(line, host="pool", status=200) for line in waited)
    assert "limits.upstreamPerHost" in explained(
        operator, running, "too-many-pending")["explanation"]["remedy"]
    assert len(operator.commands) == 1
    fires(workspace, before, after, PinfoldHostFails={"host": "pool"}, PinfoldPoolFull={},
          PinfoldLimitNear=[{"limit": "limits.upstreamPerHost"}, {"limit": "limits.pending"}])


@pytest.fixture
def refused() -> Iterator[int]:
    """A port of 127.0.0.1 at which nobody listens as long as the test lasts."""
    with refusing_port() as port:
        yield port


def test_a_server_that_is_down(gateway, workspace, refused):
    running = gateway(incident("down.test", "down"))
    operator = Operator(running)
    reader = Events(running)
    reader.wait("hello")
    before = running.metrics()
    assert crowd(running, [f"http://down.test:{refused}/"]) == [502] * 24
    failed(running, "down", 24, reason="connection-refused", status=502,
           upstream=f"127.0.0.1:{refused}")
    assert all("connect_us" in line for line in running.access_lines())
    told = reader.wait("flow", 24)
    assert {(one["host"], one["entry"], one["reason"]) for one in told} == {
        (f"down.test:{refused}", "down", "connection-refused")}
    reader.close()
    assert has(fields(running.wait_log("reachability changed")), host="down.test", entry="down",
               to="not_reachable", reason="connection-refused")
    (entry,) = operator.api("reachability")["entries"]
    assert entry["servers"] == [{"host": "down.test", "state": "not_reachable"}]
    assert explained(operator, running, "connection-refused")["explanation"]["detail"] == (
        "the connection to the server failed: Connection refused (errno 111)")
    attention(operator, "down", "24 of 24 exchanges failed: connection-refused 24",
              "down.test is not reachable")
    assert len(operator.commands) == 1
    fires(workspace, before, running.metrics(), PinfoldHostFails={"host": "down"},
          PinfoldServerUnreachable={"host": "down", "state": "not_reachable"})


def test_a_certificate_that_has_expired(gateway, origin, pki, workspace):
    context = pki.intermediate.issue("old.test", days=(-9, -2)).server_context()
    there = origin(lambda _: reply(b"x"), tls=context)
    running = gateway(incident("old.test", "old", pki))
    operator = Operator(running)
    before = running.metrics()
    url = f"https://old.test:{there.port}/"
    assert crowd(running, [url]) == [502] * 24
    failed(running, "old", 24, reason="tls-certificate-expired", status=502,
           upstream=there.authority)
    assert all("tls_us" in line for line in running.access_lines())
    told = fields(running.wait_log("server refused"))
    assert has(told, level="warning", host="old.test", entry="old", port=str(there.port),
               reason="tls-certificate-expired")
    assert told["detail"].startswith("the certificate of CN=old.test expired at ")
    (end,) = operator.api("pins")["calendar"]
    assert (end["kind"], end["name"]) == ("upstream", "old")
    attention(operator, "old", "a server's certificate has expired",
              "24 of 24 exchanges failed: tls-certificate-expired 24")
    assert re.search(r"^server: refused: 502 tls-certificate-expired: .* of CN=old.test expired at ",
                     operator.explain(url), re.M)
    assert len(operator.commands) == 2
    fires(workspace, before, running.metrics(), PinfoldHostFails={"host": "old"},
          PinfoldServerNotTrusted={"reason": "tls-certificate-expired"},
          PinfoldServerCertificateExpires={"host": "old", "use": "upstream"})


def test_a_key_that_was_rotated_and_not_pinned(gateway, pki, workspace):
    """The server answers with another key from one moment to the next."""
    former, latter = (pki.intermediate.issue("pinned.test") for _ in range(2))
    pins = [former.pin, pki.self_signed("backup.test").pin]
    # No connection to the former server is kept.
    answer = reply(b"x", "200 OK", "Connection: close")
    with serving(HTTPOrigin(lambda _: answer, tls=former.server_context())) as there:
        running = gateway(incident(
            "pinned.test", "pinned", pki, entry={"upgrade": "https", "pinsets": ["keys"]},
            pinsets={"keys": {"mode": "publicKey", "pins": pins}}))
        url = f"http://pinned.test:{there.port}/"
        assert crowd(running, [url], each=1) == [200] * 4
    operator = Operator(running)
    before = running.metrics()
    listener = socket.create_server(("127.0.0.1", there.port))
    with serving(HTTPOrigin(
            lambda _: reply(b"x"), tls=latter.server_context(), listener=listener)) as there:
        assert crowd(running, [url]) == [502] * 24
        assert there.application_bytes == b""
        failed(running, "pinned", 24, reason="tls-no-pin-matches", status=502,
               upstream=there.authority)
        told = fields(running.wait_log("server refused"))
        assert has(told, level="warning", host="pinned.test", entry="pinned",
                   reason="tls-no-pin-matches")
        assert latter.pin in told["detail"] and former.pin in told["detail"]
        (pinset,) = operator.api("pins")["pinsets"]
        assert pinset["name"] == "keys" and pinset["results"]["no_pin_matched"] == 24
        assert {one["pin"] for one in operator.api("flows?entry=pinned")["flows"]} == {"refused"}
        # The pins to paste are in the panel of each exchange.
        detail = explained(operator, running, "tls-no-pin-matches")["explanation"]["detail"]
        assert f"the server's chain has {latter.pin} (CN=pinned.test)" in detail
        shown = attention(
            operator, "pinned",
            "a server has none of the keys of keys, and 24 exchanges were refused",
            "24 of 28 exchanges failed: tls-no-pin-matches 24")
        assert "critical: pinned: a server has none of the keys" in shown
        assert latter.pin in operator.explain(url)
    assert len(operator.commands) == 2
    fires(workspace, before, running.metrics(), PinfoldHostFails={"host": "pinned"},
          PinfoldPinMismatch={"pinset": "keys", "result": "no_pin_matched"})


def test_a_name_server_that_is_dead(gateway, origin, workspace):
    """What it has answered before goes on."""
    # Its port becomes free, and would otherwise be another test's while this one runs.
    names = NameServer("127.0.0.53")
    there = origin(lambda _: reply(b"x"))
    running = gateway(incident("*.names.test", "names", resolver={"servers": [names.address]}))
    known = f"http://known.names.test:{there.port}/"
    assert crowd(running, [known], each=1) == [200] * 4
    operator = Operator(running)
    before = running.metrics()
    names.close()
    hosts = [f"h{number}.names.test" for number in range(6)]
    urls = [f"http://{one}:{there.port}/" for one in hosts]
    assert crowd(running, urls) == [502] * 24
    failed(running, "names", 24, reason="dns-unreachable", status=502)
    assert {line["target"] for line in running.access_lines() if "reason" in line} == set(urls)
    assert all("dns_us" in line and "upstream" not in line
               for line in running.access_lines() if "reason" in line)
    assert running.metric("pinfold_dns_answers_total", result="unreachable") > 0
    (entry,) = operator.api("reachability")["entries"]
    assert entry["servers"] == [
        *({"host": one, "state": "not_reachable"} for one in hosts),
        {"host": "known.names.test", "state": "reachable"}]
    attention(operator, "names", "24 of 28 exchanges failed: dns-unreachable 24",
              "h0.names.test, h1.names.test, h2.names.test and 3 more are not reachable")
    assert "address: refused: 502 dns-unreachable: no name server could be reached\n" in (
        operator.explain(urls[0]))
    assert len(operator.commands) == 2
    fires(workspace, before, running.metrics(), PinfoldHostFails={"host": "names"},
          PinfoldNamesNotResolved={},
          PinfoldServerUnreachable={"host": "names", "state": "not_reachable"})
    assert running.get(known).status == 200


def test_one_host_of_a_pattern_that_is_down(gateway, dns, workspace):
    dns.set("up.example", "127.0.0.1")
    dns.set("down.example", "127.0.0.2")
    with serving(HTTPOrigin(lambda _: reply(b"x"))) as there:
        running = gateway(incident("*.example", "example"))
        operator = Operator(running)
        before = running.metrics()
        urls = [f"http://{one}.example:{there.port}/" for one in ("up", "down")]
        assert sorted(crowd(running, urls)) == [200] * 12 + [502] * 12
    failed(running, "example", 12, reason="connection-refused", status=502, target=urls[1],
           upstream=f"127.0.0.2:{there.port}")
    (entry,) = operator.api("reachability")["entries"]
    assert entry["servers"] == [{"host": "down.example", "state": "not_reachable"},
                                {"host": "up.example", "state": "reachable"}]
    assert {one["host"] for one in operator.api("flows?failed=true")["flows"]} == {
        f"down.example:{there.port}"}
    attention(operator, "example", "12 of 24 exchanges failed: connection-refused 12",
              "down.example is not reachable")
    assert len(operator.commands) == 1
    fires(workspace, before, running.metrics(), PinfoldHostFails={"host": "example"},
          PinfoldServerUnreachable={"host": "example", "state": "not_reachable"})
