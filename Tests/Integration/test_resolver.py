"""Names: asked for once, kept as long as they live, raced when there are several addresses."""

from __future__ import annotations

import itertools
import select
import socket
from contextlib import ExitStack, contextmanager

import pytest
from dnslib import RCODE
from support.gateway import free_port
from support.origin import reply
from support.wait import until
from support.wire import request


@pytest.fixture
def closing_origin(origin):
    """Closes after each response, so that each request needs a connection, and so an address."""
    return origin(lambda _: reply(b"x", "200 OK", "Connection: close", "Cache-Control: no-store"))


def url(name: str, there) -> str:
    return f"http://{name}:{there.port}/"


def test_an_answer_is_kept_for_its_time_to_live(gateway, dns, closing_origin):
    dns.set("kept.test", "127.0.0.1", ttl=300)
    running = gateway()
    for _ in range(5):
        assert running.get(url("kept.test", closing_origin)).status == 200
    assert dns.asked("kept.test") == 1
    assert closing_origin.accepted == 5


def test_a_time_to_live_of_zero_is_honoured(gateway, dns, closing_origin):
    dns.set("zero.test", "127.0.0.1", ttl=0)
    running = gateway()
    for _ in range(5):
        assert running.get(url("zero.test", closing_origin)).status == 200
    assert dns.asked("zero.test") == 5


def test_a_short_time_to_live_ends(gateway, dns, closing_origin):
    dns.set("short.test", "127.0.0.1", ttl=1)
    running = gateway()

    def asked_again() -> bool:
        assert running.get(url("short.test", closing_origin)).status == 200
        return dns.asked("short.test") >= 2

    until(asked_again, "asked again after a second")


def test_no_answer_is_kept_beyond_the_maximum_time_to_live(gateway, dns, closing_origin):
    dns.set("long.test", "127.0.0.1", ttl=86_400)
    running = gateway({"resolver": {"maximumTTL": "1s"}})

    def asked_again() -> bool:
        assert running.get(url("long.test", closing_origin)).status == 200
        return dns.asked("long.test") >= 2

    until(asked_again, "asked again after a second")


def test_every_answer_is_kept_for_the_minimum_time_to_live(gateway, dns, closing_origin):
    dns.set("fleeting.test", "127.0.0.1", ttl=0)
    running = gateway({"resolver": {"minimumTTL": "60s"}})
    for _ in range(5):
        assert running.get(url("fleeting.test", closing_origin)).status == 200
    assert dns.asked("fleeting.test") == 1


def test_a_name_that_does_not_exist_is_a_502_and_remembered(gateway, dns):
    running = gateway()
    for _ in range(5):
        response = running.get("http://missing.invalid/")
        assert response.status == 502
        assert response.proxy_status["error"] == "dns_error"
    assert dns.asked("missing.invalid") <= 2, "negative answers are cached"


def test_a_name_without_addresses_is_a_502(gateway, dns):
    dns.set("empty.test")
    running = gateway()
    response = running.get("http://empty.test/")
    assert response.status == 502
    assert response.proxy_status["error"] == "dns_error"


@pytest.mark.parametrize("code", [RCODE.SERVFAIL, RCODE.REFUSED])
def test_a_name_server_that_fails_is_a_502(gateway, dns, code):
    dns.fail("failing.test", code)
    running = gateway()
    response = running.get("http://failing.test/")
    assert response.status == 502
    assert response.proxy_status["error"] == "dns_error"


def test_a_name_server_that_is_silent_is_a_504(gateway, dns):
    dns.silence("silent.test")
    running = gateway({"timeouts": {"connect": "500ms"}})
    response = running.get("http://silent.test/")
    assert response.status == 504
    assert response.proxy_status["error"] in ("dns_timeout", "connection_timeout")


def test_a_silent_name_server_delays_no_other_lookup(gateway, dns, closing_origin):
    running = gateway({"workers": 1, "timeouts": {"connect": "60s"}})
    numbers = itertools.count()

    def overtakes() -> bool:
        """Whether other names are served while those who wait for a silent server still do."""
        number = next(numbers)
        name = f"silent.zone{number}.test"
        dns.silence(name)
        with ExitStack() as stack:
            waiting = [running.wire() for _ in range(20)]
            for wire in waiting:
                stack.callback(wire.reset)
                wire.send(request(f"http://{name}/"))
            until(lambda: dns.asked(name), "the silent server is asked")
            for letter in "abc":
                other = url(f"{letter}{number}.test", closing_origin)
                assert running.get(other).status == 200
            return not select.select([wire.socket for wire in waiting], [], [], 0)[0]

    # Nobody waits for ever: on a machine that is busy enough the resolver gives up first.
    until(overtakes, "others are served while some wait")


def test_simultaneous_questions_are_asked_once(gateway, dns, closing_origin):
    running = gateway({"workers": 1})
    wires = [running.wire() for _ in range(50)]
    try:
        for wire in wires:
            wire.send(request(url("together.test", closing_origin)))
        for wire in wires:
            assert wire.read().status == 200
    finally:
        for wire in wires:
            wire.close()
    assert dns.asked("together.test") == 1


def test_an_alias_is_followed(gateway, dns, closing_origin):
    dns.alias("alias.test", "canonical.test")
    dns.set("canonical.test", "127.0.0.1")
    running = gateway()
    assert running.get(url("alias.test", closing_origin)).status == 200
    assert closing_origin.requests[0].get("host") == f"alias.test:{closing_origin.port}"


def test_names_are_case_insensitive(gateway, dns, closing_origin):
    running = gateway()
    for name in ("Mixed.Case.test", "mixed.case.TEST"):
        assert running.get(url(name, closing_origin)).status == 200
    assert dns.asked("mixed.case.test") == 1


def test_the_hosts_file_needs_no_name_server(gateway, dns, closing_origin):
    running = gateway()
    assert running.get(url("localhost", closing_origin)).status == 200
    assert dns.asked("localhost") == 0


def test_literals_need_no_name_server(gateway, dns, closing_origin):
    running = gateway()
    assert running.get(closing_origin.url()).status == 200
    assert not dns.questions


def test_a_second_name_server_is_asked_when_the_first_is_down(gateway, dns, closing_origin):
    down = f"127.0.0.1:{free_port()}"
    running = gateway({"resolver": {"servers": [down, dns.address]},
                       "timeouts": {"connect": "15s"}})
    assert running.get(url("second.test", closing_origin)).status == 200


@pytest.mark.parametrize("name", ["a" * 64 + ".test", "a..test", ".test", ".".join(["a" * 60] * 5),
                                  "-", "xn--", "a_b.test", "bücher.test"])
def test_odd_names_are_answered_somehow(gateway, dns, name):
    running = gateway()
    wire_name = name.encode().decode("latin-1")
    response = running.ask(f"GET http://{wire_name}/ HTTP/1.1\r\nHost: {wire_name}\r\n"
                           "Connection: close\r\n\r\n")
    assert response.status in (400, 403, 502, 504)
    assert running.admin_get("/healthz").status == 200


# Several addresses (RFC 8305)


@contextmanager
def black_hole(host: str, port: int):
    """A listening socket whose backlog is full: connecting there gets no answer."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as full:
        full.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        full.bind((host, port))
        full.listen(0)
        fillers = [socket.socket(family) for _ in range(8)]
        try:
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex((host, port))
            yield
        finally:
            for filler in fillers:
                filler.close()


def test_the_other_family_is_tried_when_one_is_refused(gateway, dns, closing_origin):
    dns.set("dual.test", "127.0.0.1", "::1")
    running = gateway()
    assert running.get(url("dual.test", closing_origin)).status == 200


def test_ipv6_is_used_when_it_works(gateway, dns, origin):
    there = origin(lambda _: reply(b"six"), host="::1")
    dns.set("six.test", "::1")
    running = gateway()
    assert running.get(f"http://six.test:{there.port}/").body == b"six"


def test_an_address_that_does_not_answer_is_raced(gateway, dns, closing_origin):
    dns.set("raced.test", "127.0.0.1", "::1")
    with black_hole("::1", closing_origin.port):
        running = gateway({"timeouts": {"connect": "10s"}})
        # Alone, the first attempt would take all the time that there is.
        assert running.get(url("raced.test", closing_origin)).status == 200


def test_a_family_whose_answer_never_comes_is_not_waited_for(gateway, dns, origin):
    """The request is there before the resolver asks for the other family again."""
    def seen(incoming):
        name = incoming.get("host").partition(":")[0]
        tries.append(dns.asked(name, "AAAA"))
        return reply(b"x", "200 OK", "Connection: close", "Cache-Control: no-store")

    tries: list[int] = []
    there = origin(seen)
    running = gateway({"timeouts": {"connect": "10s"}})

    def overtakes() -> bool:
        name = f"half-silent-{len(tries)}.test"
        dns.records[name, "A"] = (["127.0.0.1"], 60)
        dns.records[name, "AAAA"] = None
        assert running.get(url(name, there)).status == 200
        return tries[-1] <= 1

    until(overtakes, "the question for the other family is not asked again first")


def test_all_addresses_are_tried(gateway, dns, closing_origin):
    dns.set("many.test", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.1")
    running = gateway()
    assert running.get(url("many.test", closing_origin)).status == 200


def test_when_no_address_answers_the_fault_is_named(gateway, dns):
    dns.set("dead.test", "127.0.0.2", "127.0.0.3")
    running = gateway()
    response = running.get(f"http://dead.test:{free_port()}/")
    assert response.status == 502
    assert response.proxy_status["error"] == "connection_refused"


def test_dns_is_counted(gateway, dns, closing_origin):
    running = gateway()
    for _ in range(3):
        running.get(url("counted.test", closing_origin))
    running.get("http://missing.invalid/")
    assert running.metric("pinfold_dns_queries_total") >= 2
    assert running.metric("pinfold_dns_cache_hits_total") >= 2
    assert running.metric("pinfold_dns_answers_total") >= 2
