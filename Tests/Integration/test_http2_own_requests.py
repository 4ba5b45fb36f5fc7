"""What the gateway asks of servers for itself is spoken in HTTP/2 as well: probes, and reports of pin
failures."""

from __future__ import annotations

import contextlib
import json

import pytest
from support.gateway import Gateway
from support.http2origin import HTTP2Origin, Setting
from support.http2served import Gone
from support.http2upstream import H2, Code, get, goaway, refused, refusing
from support.interception import HOST
from support.reports import HOST as PINNED
from support.reports import ask, configuration, counted, serve, waiting
from support.wait import until

HOWS = {"refused": refused, "goaway": goaway}


@pytest.fixture
def context(pki):
    return lambda *names, alpn=H2: pki.intermediate.issue(
        *(names or (HOST,))).server_context(alpn=alpn)


# Probes


@pytest.fixture
def probing(gateway, pki):
    """probing(there, entry, config): a gateway that probes the server."""
    def start(there: HTTP2Origin, entry: dict | None = None, **config) -> Gateway:
        return gateway({
            "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]}, "cache": {"enabled": False},
            "hosts": [{"match": [f"{HOST}:{there.port}"],
                       "clearText": "refuse" if there.tls else "allow",
                       "probe": {"interval": "20ms", "path": "/health?probe=1"}}
                      | (entry or {})]} | config)
    return start


def is_shown_as(running: Gateway, state: str) -> bool:
    return running.metric("pinfold_host_reachability", state=state) == 1


@pytest.mark.parametrize("over, mode", [("tls", "auto"), ("tls", "require"), ("clear", "require")])
def test_a_probe_is_a_stream(probing, http2_origin, context, over, mode):
    there = http2_origin(lambda stream: stream.respond(204),
                         tls=context() if over == "tls" else None)
    running = probing(there, {"http2": mode})
    there.wait_request(5)
    until(lambda: is_shown_as(running, "reachable"), "it is reachable")
    seen = there.requests[0]
    assert seen.pseudo == {":method": "GET", ":path": "/health?probe=1",
                           ":scheme": "https" if over == "tls" else "http",
                           ":authority": f"{HOST}:{there.port}"}
    assert seen.get("user-agent").endswith("-probe") and seen.complete and "host" not in seen
    assert there.versions == {"HTTP/2"} and len(there.served) == 1
    assert running.metric("pinfold_host_reachability_transitions_total",
                          state="not_reachable") == 0


def test_a_probe_shares_the_connection_with_traffic(probing, http2_origin, context):
    there = http2_origin(tls=context())
    running = probing(there)
    there.wait_request(2)
    for _ in range(5):
        assert get(running, there).status == 200
    assert len(there.served) == 1


@pytest.mark.parametrize("length", [True, False])
def test_the_content_of_an_answer_to_a_probe_is_not_read(probing, http2_origin, context, length):
    def endless(stream) -> None:
        stream.head(200, [("content-length", str(1 << 40))] if length else [])
        while True:
            stream.data(bytes(1 << 14))

    there = http2_origin(endless, tls=context())
    running = probing(there)
    there.wait_request(5)
    until(lambda: is_shown_as(running, "reachable"), "it is reachable")
    until(lambda: there.requests[0].reset is not None, "the stream is reset")
    assert there.requests[0].reset == Code.CANCEL
    assert len(there.served) == 1


def test_interim_responses_are_no_answer_to_a_probe(probing, http2_origin, context):
    def hints(stream) -> None:
        stream.interim(103, [("link", "</a.css>; rel=preload")])
        # The gateway ends while a probe is under way.
        with contextlib.suppress(Gone):
            stream.wait(lambda: stream.reset is not None, "a reset")

    there = http2_origin(hints, tls=context())
    running = probing(there, timeouts={"firstByte": "200ms"})
    until(lambda: is_shown_as(running, "not_reachable"), "it does not answer")
    assert running.metric("pinfold_host_reachability_transitions_total", state="reachable") <= 1


@pytest.mark.parametrize("how", [
    lambda stream: stream.wait_reset(),
    lambda stream: stream.reset_with(Code.INTERNAL_ERROR),
    lambda stream: stream.connection.close(),
], ids=["silent", "reset", "closed"])
def test_a_server_that_does_not_answer_a_probe_is_not_reachable(
        probing, http2_origin, context, how):
    there = http2_origin(how, tls=context())
    running = probing(there, timeouts={"firstByte": "200ms"})
    until(lambda: is_shown_as(running, "not_reachable"), "it does not answer")
    there.handler = lambda stream: stream.respond()
    until(lambda: is_shown_as(running, "reachable"), "it answers again")


def test_a_server_without_http_2_fails_a_probe_that_requires_it(probing, http2_origin, context):
    there = http2_origin(tls=context(alpn=("http/1.1",)))
    running = probing(there, {"http2": "require"})
    until(lambda: is_shown_as(running, "not_reachable"), "it is not reachable")
    assert not there.requests


@pytest.mark.parametrize("how", sorted(HOWS))
def test_a_probe_that_was_not_processed_is_sent_again(probing, http2_origin, context, how):
    """The server is there: it is only that one connection, or stream, of which it takes no more."""
    there = http2_origin(refusing(1, HOWS[how]), tls=context())
    running = probing(there)
    there.wait_request(3)
    until(lambda: is_shown_as(running, "reachable"), "it is reachable")
    assert running.metric("pinfold_host_reachability_transitions_total",
                          state="not_reachable") == 0


def test_a_server_that_asks_for_http_1_is_probed_in_that(probing, http2_origin, context):
    there = http2_origin(
        refusing(1, lambda stream: stream.reset_with(Code.HTTP_1_1_REQUIRED)), tls=context())
    running = probing(there)
    there.wait_request(3)
    until(lambda: is_shown_as(running, "reachable"), "it is reachable")
    assert [seen.version for seen in there.requests[:3]] == ["HTTP/2", "HTTP/1.1", "HTTP/1.1"]
    assert running.metric("pinfold_host_reachability_transitions_total",
                          state="not_reachable") == 0


# Reports of pin failures


@pytest.fixture
def taker(http2_origin, context):
    """taker(handler): a server that takes reports over HTTP/2."""
    def answer(stream) -> None:
        stream.read_all()
        stream.respond(204)

    def start(handler=answer, alpn=H2, **options) -> HTTP2Origin:
        return http2_origin(handler, tls=context("taker.report.test", alpn=alpn), **options)
    return start


def reporting(gateway, pki, taker) -> Gateway:
    return gateway(configuration(pki, taker.url("/pins?from=test", "taker.report.test")))


def delivered(running: Gateway) -> None:
    until(lambda: counted(running, "delivered") == 1, "it is delivered")
    until(lambda: waiting(running) == 0, "no report waits")


@pytest.mark.parametrize("alpn", [H2, ("h2",)])
def test_a_report_is_a_stream(gateway, origin, pki, taker, alpn):
    there, taker = serve(origin, pki.intermediate.issue(PINNED)), taker(alpn=alpn)
    running = reporting(gateway, pki, taker)
    assert ask(running, there).status == 502
    seen = taker.wait_request()
    delivered(running)
    assert seen.pseudo == {":method": "POST", ":path": "/pins?from=test", ":scheme": "https",
                           ":authority": f"taker.report.test:{taker.port}"}
    assert seen.get("content-type") == "application/json"
    assert int(seen.get("content-length")) == len(seen.body)
    assert json.loads(seen.body)["hostname"] == PINNED
    until(lambda: taker.served[0].is_closed, "its connection carries nothing else")
    assert len(taker.requests) == 1


def test_a_server_that_fails_a_pin_over_http_2_is_reported(
        gateway, http2_origin, pki, taker, context):
    there, taker = http2_origin(tls=context(PINNED)), taker()
    running = reporting(gateway, pki, taker)
    assert ask(running, there).status == 502
    taker.wait_request()
    delivered(running)
    assert json.loads(taker.requests[0].body)["port"] == there.port
    assert not there.requests


def test_a_report_goes_as_the_windows_allow(gateway, origin, pki, taker):
    """A report has whole chains of certificates: more than these windows take at once."""
    there = serve(origin, pki.intermediate.issue(PINNED))
    taker = taker(settings={Setting.INITIAL_WINDOW_SIZE: 500})
    running = reporting(gateway, pki, taker)
    assert ask(running, there).status == 502
    delivered(running)
    assert json.loads(taker.requests[0].body)["hostname"] == PINNED


def test_an_answer_before_the_end_of_a_report_is_not_all(gateway, origin, pki, taker):
    """Accepted is what was sent in full."""
    def early(stream) -> None:
        stream.head(200, end=True)
        stream.wait(lambda: stream.complete, "the end")

    there = serve(origin, pki.intermediate.issue(PINNED))
    taker = taker(early, settings={Setting.INITIAL_WINDOW_SIZE: 500})
    running = reporting(gateway, pki, taker)
    assert ask(running, there).status == 502
    delivered(running)
    assert taker.requests[0].complete


@pytest.mark.parametrize("how", [refused, goaway], ids=["refused", "goaway"])
def test_a_report_that_was_not_taken_is_sent_again(gateway, origin, pki, taker, how):
    there, taker = serve(origin, pki.intermediate.issue(PINNED)), taker(refusing(1, how))
    running = reporting(gateway, pki, taker)
    assert ask(running, there).status == 502
    delivered(running)
    assert len(taker.requests) == 2
    assert json.loads(taker.requests[1].body)["hostname"] == PINNED


def test_a_report_that_the_server_rejects_is_not_sent_again(gateway, origin, pki, taker):
    def rejects(stream) -> None:
        stream.read_all()
        stream.respond(400, body=b"no")

    there, taker = serve(origin, pki.intermediate.issue(PINNED)), taker(rejects)
    running = reporting(gateway, pki, taker)
    assert ask(running, there).status == 502
    until(lambda: counted(running, "rejected") == 1, "it is rejected")
    assert waiting(running) == 0
    assert len(taker.requests) == 1
