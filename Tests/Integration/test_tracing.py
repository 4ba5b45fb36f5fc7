"""Traces: what servers are told by traceparent and tracestate (W3C Trace Context), and the spans that a
collector gets by OTLP, decoded with OpenTelemetry's own definitions."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
import time

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from support.gateway import free_port, run_pinfold
from support.http2 import http2
from support.http2fixtures import context, start
from support.http2upstream import HOST as H2_HOST
from support.interception import HOST, ask_inside
from support.origin import HTTPOrigin, Origin, OriginConnection, reply, serving
from support.secure import reload
from support.traces import (
    PARENT,
    PHASES,
    SAMPLED,
    TRACE,
    UNSAMPLED,
    SpanCollector,
    accepted,
    counted,
    parts,
    values,
)
from support.wait import until
from support.wire import request

ALL = {"sample": "100%"}


@pytest.fixture
def collector():
    """collector(**options): a server that takes spans."""
    with contextlib.ExitStack() as stack:
        yield lambda **options: stack.enter_context(serving(SpanCollector(**options)))


@pytest.fixture
def there(origin) -> HTTPOrigin:
    return origin(lambda _: reply(b"here", "200 OK", "Cache-Control: no-store"))


def tracing(propagation: str, taker: SpanCollector | None = None, **more) -> dict:
    section = {"traceparent": propagation, **more}
    if taker:
        section["otlp"] = taker.url("")
    return {"tracing": section}


def told(there: HTTPOrigin) -> dict[str, str]:
    """What the server was last told of a trace."""
    names = ("traceparent", "tracestate")
    return {name: there.requests[-1].get(name) for name in names if name in there.requests[-1]}


# What servers are told


@pytest.mark.parametrize("config", [{}, tracing("pass")], ids=["default", "pass"])
def test_the_fields_pass_unchanged_by_default(gateway, there, config):
    running = gateway(config)
    fields = {"traceparent": SAMPLED, "tracestate": "vendor=1,other=2"}
    running.get(there.url(), **fields)
    assert told(there) == fields
    # Nobody here has to understand them.
    running.get(there.url(), traceparent="nonsense", tracestate="=")
    assert told(there) == {"traceparent": "nonsense", "tracestate": "="}
    running.get(there.url())
    assert told(there) == {}
    # In any order: there are two workers.
    lines = running.wait_access(3)
    assert [line["trace"] for line in lines if "trace" in line] == [TRACE]


def test_they_are_removed(gateway, there):
    running = gateway(tracing("off"))
    running.get(there.url(), traceparent=SAMPLED, tracestate="vendor=1", A="b")
    assert told(there) == {} and there.requests[-1].get("a") == "b"
    assert "trace" not in running.wait_access()[0]


@pytest.mark.parametrize("incoming", [SAMPLED, UNSAMPLED])
def test_a_trace_is_continued_and_its_state_is_kept(gateway, there, incoming):
    running = gateway(tracing("begin", **ALL))
    running.get(there.url(), traceparent=incoming, tracestate="vendor=1 , other=2")
    trace, span, sampled = parts(told(there)["traceparent"])
    assert trace == TRACE and span != PARENT and sampled == (incoming == SAMPLED)
    assert told(there)["tracestate"] == "vendor=1 , other=2"
    assert running.wait_access()[0]["trace"] == TRACE


@pytest.mark.parametrize("fields", [
    "", "tracestate: vendor=1\r\n", "traceparent: 00-1-2-01\r\ntracestate: vendor=1\r\n",
    f"traceparent: {SAMPLED}\r\ntraceparent: {SAMPLED}\r\ntracestate: vendor=1\r\n",
    f"traceparent: {SAMPLED.upper()}\r\n", f"traceparent: {SAMPLED}-x\r\n",
    f"traceparent: 00-{'0' * 32}-{PARENT}-01\r\n", f"traceparent: 00-{TRACE}-{'0' * 16}-01\r\n",
    f"traceparent: ff-{TRACE}-{PARENT}-01\r\n"],
    ids=["none", "state", "short", "two", "upper", "longer", "trace", "span", "version"])
def test_a_trace_begins_where_none_is_valid(gateway, there, fields):
    running = gateway(tracing("begin", **ALL))
    head = f"GET {there.url()} HTTP/1.1\r\nHost: {there.authority}\r\n{fields}Connection: close\r\n\r\n"
    assert running.ask(head).status == 200
    assert there.requests[-1].all("tracestate") == []
    [value] = there.requests[-1].all("traceparent")
    trace, _, sampled = parts(value)
    assert trace != TRACE and sampled
    assert running.wait_access()[0]["trace"] == trace


@pytest.mark.parametrize("state", ["vendor", "Vendor=1", ",".join(f"k{n}=v" for n in range(33))],
                         ids=["no value", "upper case", "too long"])
def test_an_invalid_state_is_dropped_alone(gateway, there, state):
    running = gateway(tracing("begin"))
    running.get(there.url(), traceparent=SAMPLED, tracestate=state)
    assert set(told(there)) == {"traceparent"}
    assert parts(told(there)["traceparent"])[0] == TRACE


def test_of_a_later_version_what_is_known_is_continued(gateway, there):
    running = gateway(tracing("begin"))
    running.get(there.url(), traceparent=f"cc-{TRACE}-{PARENT}-01-future")
    assert parts(told(there)["traceparent"])[::2] == (TRACE, True)


def test_each_request_has_a_span_of_its_own(gateway, there):
    running = gateway(tracing("begin", sample="0%"))
    with running.wire() as wire:
        for _ in range(20):
            assert wire.ask(request(there.url())).status == 200
    seen = [parts(one.get("traceparent")) for one in there.requests]
    assert len({trace for trace, *_ in seen}) == len({span for _, span, _ in seen}) == 20
    assert not any(sampled for *_, sampled in seen)


@pytest.mark.parametrize("by_rules", [False, True], ids=["as sent", "by rules"])
@pytest.mark.parametrize(("propagation", "vary", "count"), [
    ("pass", "traceparent", 2), ("begin", "traceparent", 1), ("off", "traceparent", 1),
    ("begin", "tracestate", 2), ("off", "tracestate", 1)])
def test_what_ends_here_chooses_no_variant(gateway, origin, propagation, vary, count, by_rules):
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: max-age=60", f"Vary: {vary}"))
    rules = {"hosts": [{"match": ["127.0.0.1"], "request": {"headers": {"set": {"X-By": "rules"}}}}]}
    running = gateway(tracing(propagation) | (rules if by_rules else {}))
    for number in "12":
        parent = f"00-{number * 32}-{PARENT}-01"
        response = running.get(there.url(), traceparent=parent, tracestate=f"vendor={number}")
        assert response.status == 200
    assert len(there.requests) == count
    assert all((one.get("x-by") == "rules") == by_rules for one in there.requests)
    if propagation == "begin":
        assert parts(there.requests[0].get("traceparent"))[0] == "1" * 32
        assert there.requests[0].get("tracestate") == "vendor=1"


def test_a_revalidation_in_the_background_is_sent_in_the_span_that_caused_it(
        gateway, origin, collector):
    there = origin(lambda _: reply(
        b"x", "200 OK", "Cache-Control: max-age=0, stale-while-revalidate=60", "Vary: traceparent"))
    taker = collector()
    running = gateway(tracing("begin", taker, sample="0%"))
    running.get(there.url(), traceparent=UNSAMPLED)
    stale = running.get(there.url(), traceparent=SAMPLED, tracestate="vendor=1")
    assert stale.cache_status["detail"] == "stale-while-revalidate"
    until(lambda: len(there.requests) == 2, "it is revalidated")
    [span] = taker.wait()
    assert parts(told(there)["traceparent"]) == (TRACE, span.span_id.hex(), True)
    assert told(there)["tracestate"] == "vendor=1"


def test_traces_begin_over_http2(gateway, there):
    running = gateway(tracing("begin", **ALL) | {"listeners": [
        {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
        {"name": "route", "address": "127.0.0.1:0", "kind": "reverse", "upstream": there.url("")}]})
    with http2(running.listeners["route"]) as client:
        assert client.get("/a", traceparent=UNSAMPLED, tracestate="vendor=1").status == 200
        trace, span, sampled = parts(told(there)["traceparent"])
        assert (trace, sampled) == (TRACE, False) and span != PARENT
        assert told(there)["tracestate"] == "vendor=1"
        assert client.get("/b", tracestate="vendor=1").status == 200
    assert parts(told(there)["traceparent"])[0] != TRACE and "tracestate" not in told(there)


@pytest.mark.parametrize("propagation", ["pass", "begin", "off"])
def test_servers_of_http2_are_told_likewise(start, http2_origin, context, propagation):
    there = http2_origin(lambda stream: stream.respond(204), tls=context())
    running = start(**tracing(propagation))
    answer = running.get(there.url("/", H2_HOST), traceparent=SAMPLED, tracestate="vendor=1")
    assert answer.status == 204
    seen = there.wait_request()
    assert seen.version == "HTTP/2"
    if propagation == "off":
        assert "traceparent" not in seen and "tracestate" not in seen
        return
    assert seen.get("tracestate") == "vendor=1"
    trace, span, sampled = parts(seen.get("traceparent"))
    assert (trace, sampled, span == PARENT) == (TRACE, True, propagation == "pass")


def test_requests_in_intercepted_tunnels_belong_to_traces(gateway, origin, pki, authority, collector):
    there = origin(lambda _: reply(b"inside"), tls=pki.intermediate.issue(HOST).server_context())
    taker = collector()
    running = gateway(tracing("begin", taker, **ALL) | {
        "tls": {"roots": [str(pki.root.pem_file)]},
        "interception": authority.section | {"default": True}})
    data = request("/path?secret=1", host=f"{HOST}:{there.port}", traceparent=SAMPLED,
                   Connection="close")
    assert ask_inside(running, HOST, there.port, data).body == b"inside"
    taker.wait(2)
    inner = next(span for span in taker.exchanges if span.name == "GET")
    tunnel = next(span for span in taker.exchanges if span.name == "CONNECT")
    assert inner.trace_id.hex() == TRACE != tunnel.trace_id.hex()
    assert parts(told(there)["traceparent"])[:2] == (TRACE, inner.span_id.hex())
    seen = values(inner.attributes)
    assert seen["url.scheme"] == "https" and seen["url.path"] == "/path"
    assert (seen["server.address"], seen["server.port"]) == (HOST, there.port)
    outside = values(tunnel.attributes)
    assert outside["http.request.method"] == "CONNECT" and "url.path" not in outside
    assert outside["server.address"] == HOST


# Spans


def test_an_exchange_is_a_span_with_its_phases_below_it(gateway, there, collector):
    taker = collector()
    before = time.time_ns()
    running = gateway(tracing("begin", taker))
    assert running.get(there.url("/a/b?token=secret"), traceparent=SAMPLED, User_Agent="test/1",
                       Connection="close").status == 200
    [span] = taker.wait()
    after = time.time_ns()
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert span.span_id.hex() == parts(told(there)["traceparent"])[1]
    assert (span.name, span.kind) == ("GET", Span.SPAN_KIND_SERVER)
    assert span.status.code == Status.STATUS_CODE_UNSET
    assert before < span.start_time_unix_nano <= span.end_time_unix_nano < after
    assert span.flags == 0x301
    [line] = running.wait_access()
    assert values(span.attributes) == {
        "http.request.method": "GET", "url.scheme": "http", "url.path": "/a/b",
        "server.address": "127.0.0.1", "server.port": there.port, "client.address": "127.0.0.1",
        "network.protocol.name": "http", "network.protocol.version": "1.1",
        "user_agent.original": "test/1", "http.response.status_code": 200,
        "http.request.body.size": 0, "http.response.body.size": 4,
        "pinfold.exchange.id": line["id"], "pinfold.listener": "proxy",
        "pinfold.host": "default", "pinfold.cache": line["cache"]}
    duration = span.end_time_unix_nano - span.start_time_unix_nano
    assert duration == line["duration_us"] * 1000
    below = taker.phases(span)
    assert [one.name for one in below] == [name for name in PHASES if f"{name}_us" in line]
    start = span.start_time_unix_nano
    for one in below:
        assert (one.trace_id, one.kind) == (span.trace_id, Span.SPAN_KIND_INTERNAL)
        assert one.start_time_unix_nano == start
        assert one.end_time_unix_nano - start == line[f"{one.name}_us"] * 1000
        start = one.end_time_unix_nano
    assert start <= span.end_time_unix_nano
    assert len({one.span_id for one in taker.spans}) == len(taker.spans)
    first = values(next(one for one in below if one.name == "first_byte").attributes)
    assert first == {"network.peer.address": "127.0.0.1", "network.peer.port": there.port,
                     "network.protocol.version": "1.1", "pinfold.connection.reused": False}
    assert b"secret" not in taker.requests[0].body and b"password" not in taker.requests[0].body
    until(lambda: counted(running, "exported") == len(taker.spans), "they are counted")


def test_the_resource_is_the_gateway(gateway, there, collector):
    taker = collector()
    running = gateway(tracing("begin", taker, **ALL))
    running.get(there.url())
    taker.wait()
    [received] = taker.requests
    assert (received.method, received.target) == ("POST", "/v1/traces")
    [resource] = taker.messages[0].resource_spans
    seen = values(resource.resource.attributes)
    assert seen["service.name"] == "pinfold" and seen["host.name"] == socket.gethostname()
    assert seen["service.version"] in run_pinfold("--version").stdout
    assert [one.scope.name for one in resource.scope_spans] == ["pinfold"]


def test_a_hit_has_a_span(gateway, origin, collector):
    there, taker = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: max-age=60")), collector()
    running = gateway(tracing("begin", taker, **ALL))
    for _ in range(2):
        running.get(there.url())
    miss, hit = sorted(taker.wait(2), key=lambda span: span.start_time_unix_nano)
    assert values(miss.attributes)["pinfold.cache"] == "miss"
    assert values(hit.attributes)["pinfold.cache"] == "hit" and not hit.parent_span_id
    assert [one.name for one in taker.phases(hit)] == ["body"]
    assert hit.trace_id != miss.trace_id and len(there.requests) == 1


def test_what_failed_says_why_and_in_which_phase(gateway, collector):
    taker = collector()
    running = gateway(tracing("begin", taker, **ALL))
    assert running.get(f"http://127.0.0.1:{free_port()}/").status == 502
    [span] = taker.wait()
    [line] = running.wait_access()
    assert span.status.code == Status.STATUS_CODE_ERROR
    assert values(span.attributes)["error.type"] == line["reason"]
    last = taker.phases(span)[-1]
    assert last.name == "connect" and values(last.attributes)["error.type"] == line["reason"]
    assert last.status.code == Status.STATUS_CODE_ERROR


def test_a_refusal_is_the_clients_error(gateway, collector):
    taker = collector()
    running = gateway(tracing("begin", taker, **ALL) | {
        "access": {"rules": [{"name": "none", "action": "deny"}]}})
    assert running.get("http://a.test/").status == 403
    [span] = taker.wait()
    seen = values(span.attributes)
    assert seen["http.response.status_code"] == 403 and seen["pinfold.rule"] == "none"
    assert seen["error.type"] == running.wait_access()[0]["reason"]
    assert span.status.code == Status.STATUS_CODE_UNSET


def test_odd_methods_and_bytes_are_decodable(gateway, there, collector):
    taker = collector()
    running = gateway(tracing("begin", taker, **ALL))
    head = b"BREW %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: \xff\xfe\r\nConnection: close\r\n\r\n"
    data = head % (there.url("/%FF").encode(), there.authority.encode())
    assert running.ask(data).status == 200
    [span] = taker.wait()
    seen = values(span.attributes)
    assert span.name == "HTTP" and seen["http.request.method"] == "_OTHER"
    assert seen["http.request.method_original"] == "BREW" and seen["url.path"] == "/%FF"


@pytest.mark.parametrize("propagation", ["pass", "off"])
def test_spans_do_not_need_servers_that_are_told(gateway, there, collector, propagation):
    taker = collector()
    running = gateway(tracing(propagation, taker, **ALL))
    running.get(there.url())
    running.get(there.url(), traceparent=SAMPLED)
    own, other = sorted(taker.wait(2), key=lambda span: span.start_time_unix_nano)
    assert not own.parent_span_id
    assert (other.trace_id.hex() == TRACE) == (propagation == "pass")
    assert (other.parent_span_id.hex() == PARENT) == (propagation == "pass")
    assert told(there) == ({"traceparent": SAMPLED} if propagation == "pass" else {})


# Which are sampled


def test_the_client_decides_on_its_own_traces(gateway, there, collector):
    taker = collector()
    running = gateway(tracing("begin", taker, sample="0%"))
    running.get(there.url("/no"), traceparent=UNSAMPLED)
    running.get(there.url("/own"))
    running.get(there.url("/yes"), traceparent=SAMPLED)
    [span] = taker.wait()
    assert values(span.attributes)["url.path"] == "/yes"
    assert len(running.wait_access(3)) == 3 and all("trace" in one for one in running.access_lines())


def test_a_share_of_the_traces_that_begin_is_sampled(gateway, origin, collector):
    there, taker = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: no-store")), collector()
    running = gateway(tracing("begin", taker, sample="30%"))
    count = 1000
    with running.wire() as wire:
        for _ in range(count):
            assert wire.ask(request(there.url())).status == 200
    seen = [parts(one.get("traceparent")) for one in there.requests]
    sampled = {trace for trace, _, is_sampled in seen if is_sampled}
    # Six standard deviations of a binomial distribution: once in 500 million runs.
    assert abs(len(sampled) - 300) < 6 * (count * 0.3 * 0.7) ** 0.5
    # What other samplers would choose.
    threshold = 2 ** 56 * 7 // 10
    assert all((int(trace[18:], 16) >= threshold) == is_sampled for trace, _, is_sampled in seen)
    spans = taker.wait(len(sampled))
    assert {span.trace_id.hex() for span in spans} == sampled
    assert running.metric("pinfold_trace_dropped_exchanges_total") == 0


# Collectors


def test_a_collector_is_verified(gateway, there, pki, collector):
    known = collector(tls=pki.intermediate.issue("localhost").server_context())
    rogue = collector(tls=pki.rogue_root.issue("localhost").server_context())
    roots = {"tls": {"roots": [str(pki.root.pem_file)]}}
    url = "https://localhost:{}/tenant"
    section = {"traceparent": "begin", "sample": "100%"}
    running = gateway(roots | {"tracing": section | {"otlp": url.format(known.port)}})
    running.get(there.url())
    known.wait()
    assert known.requests[0].target == "/tenant/v1/traces"
    reload(running, running.config | {"tracing": section | {"otlp": url.format(rogue.port)}})
    running.get(there.url())
    running.wait_log("the collector does not accept spans.*TLS")
    assert rogue.requests == [] and rogue.application_bytes == b""


def test_batches_reuse_a_connection_and_survive_its_end(gateway, there, collector):
    taker = collector()
    running = gateway(tracing("begin", taker, **ALL))
    for number in range(3):
        running.get(there.url())
        taker.wait(number + 1)
    assert len(taker.connections) == 1
    taker.connections[0].socket.shutdown(socket.SHUT_RDWR)
    running.get(there.url())
    taker.wait(4)
    assert counted(running, "failed") == 0


@pytest.mark.parametrize("status", ["429 Busy", "502 Bad", "503 Busy", "504 Late"])
def test_what_a_collector_cannot_take_now_is_sent_again(gateway, there, collector, status):
    taker = collector(answers=[reply(b"", status)])
    running = gateway(tracing("begin", taker, **ALL))
    running.get(there.url())
    until(lambda: len(taker.requests) == 2, "it is sent again")
    assert taker.requests[0].body == taker.requests[1].body
    running.wait_log("the collector does not accept spans.*it answered " + status[:3])
    running.wait_log("the collector accepts spans again")
    until(lambda: counted(running, "exported") > 0, "it is counted")
    assert running.metric("pinfold_trace_export_retries_total") == 1
    assert counted(running, "rejected") == counted(running, "failed") == 0


def test_a_collector_says_when_it_is_to_be_asked_again(gateway, there, collector):
    taker = collector(answers=[reply(b"", "503 Busy", "Retry-After: 3")])
    running = gateway(tracing("begin", taker, **ALL))
    running.get(there.url())
    until(lambda: len(taker.times) == 2, "it is sent again")
    # Without the field it would be after a second at most.
    assert taker.times[1] - taker.times[0] >= 3


@pytest.mark.parametrize("status", ["400 Bad", "404 Not Found", "500 Oops", "301 Moved"])
def test_what_a_collector_refuses_is_lost(gateway, there, collector, status):
    taker = collector(answers=[reply(b"", status)])
    running = gateway(tracing("begin", taker, **ALL))
    running.get(there.url("/lost"))
    running.wait_log("the collector rejected spans.*it answered " + status[:3])
    assert counted(running, "rejected") > 0
    running.get(there.url("/next"))
    taker.wait(2)
    until(lambda: counted(running, "exported") > 0, "it is counted")
    assert [values(span.attributes)["url.path"] for span in taker.exchanges] == ["/lost", "/next"]


def test_what_a_collector_takes_in_part_is_counted(gateway, there, collector):
    taker = collector(answers=[accepted(2, "too old")])
    running = gateway(tracing("begin", taker, **ALL))
    running.get(there.url())
    running.wait_log("the collector rejected spans.*too old")
    assert counted(running, "rejected") == 2
    assert counted(running, "exported") == len(taker.spans) - 2


def test_a_dead_collector_holds_nobody_up_and_is_found_when_it_comes(gateway, there, collector):
    port = free_port()
    running = gateway({"tracing": {"traceparent": "begin", "otlp": f"http://127.0.0.1:{port}",
                                   "sample": "100%"}})
    assert running.get(there.url()).status == 200
    running.wait_log("the collector does not accept spans.*cannot connect")
    taker = collector(listener=socket.create_server(("127.0.0.1", port)))
    taker.wait()
    running.wait_log("the collector accepts spans again")


def test_a_collector_that_takes_nothing_costs_spans_and_no_request(gateway, there):
    held = threading.Event()

    def hold(connection: OriginConnection) -> None:
        connection.read_request()
        held.wait(60)

    with serving(Origin(hold)) as slow:
        running = gateway({"workers": 1, "tracing": {
            "traceparent": "begin", "otlp": slow.url(""), "sample": "100%"}})
        running.get(there.url())
        until(lambda: slow.connections and slow.connections[0].received, "it is sent")
        # More than a queue has room for.
        path = "/" + "x" * 2000
        with running.wire() as wire:
            for _ in range(600):
                assert wire.ask(request(there.url(path))).status == 200
        assert running.metric("pinfold_trace_dropped_exchanges_total") > 0
        held.set()


def test_what_is_waiting_is_sent_when_the_gateway_ends(gateway, there, collector):
    taker = collector()
    running = gateway(tracing("begin", taker, **ALL))
    running.get(there.url())
    assert running.stop() == 0
    assert len(taker.exchanges) == 1


def test_a_reload_begins_changes_and_ends_it(gateway, there, collector):
    first, second = collector(), collector()
    running = gateway({})
    running.get(there.url("/before"))
    base = running.config
    reload(running, base | tracing("begin", first, **ALL))
    running.get(there.url("/first"))
    [span] = first.wait()
    assert values(span.attributes)["url.path"] == "/first"
    reload(running, base | tracing("begin", second, **ALL))
    running.get(there.url("/second"))
    [span] = second.wait()
    assert values(span.attributes)["url.path"] == "/second"
    reload(running, base)
    running.get(there.url("/after"))
    assert told(there) == {}
    assert running.stop() == 0
    assert len(first.exchanges) == len(second.exchanges) == 1


def test_what_a_reload_leaves_without_a_collector_is_counted(gateway, there):
    running = gateway({})
    base = running.config
    dead = {"tracing": {"otlp": f"http://127.0.0.1:{free_port()}", **ALL}}
    reload(running, base | dead)
    running.get(there.url())
    running.wait_log("the collector does not accept spans")
    # These wait behind what is to be sent again.
    for _ in range(20):
        running.get(there.url())
    lines = running.wait_access(21)
    reload(running, base)
    spans = sum(1 + sum(f"{name}_us" in line for name in PHASES) for line in lines)
    until(lambda: counted(running, "failed") == spans, f"{spans} spans are counted")


def test_check_prints_the_section_and_warns_of_clear_text(workspace):
    file = workspace / "traced.yaml"
    file.write_text("tracing: { traceparent: begin, otlp: 'http://otel.example:4318', sample: 2.50% }\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 0, done.stderr
    assert "tracing.otlp: sends spans in clear text" in done.stderr
    assert re.search(r"traceparent: begin.*\n?.*otlp: \"http://otel.example:4318\".*\n?.*sample: 2.5%",
                     done.stdout)
    file.write_text("tracing: { otlp: 'http://127.0.0.1:4318', sample: 1 }\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1 and "tracing.sample" in done.stderr
    assert "clear text" not in done.stderr
