"""Ways that fail: which way is tried next, and when one that is down is used again."""

from __future__ import annotations

import contextlib
import signal
import socket
from collections import Counter

import pytest
from support.origin import Origin, reply, serving
from support.parents import HTTPParent, SOCKSParent, Tinyproxy, stopping, ways
from support.wait import until
from support.wire import request
from test_connect import echo

HOST = "api.behind.test"
TIMES = {"timeouts": {"connect": "1s"}}


def hang(connection):
    connection.read_to_end()


def sends(data: bytes):
    def run(connection):
        connection.read_request()
        connection.send(data)
        connection.read_to_end()

    return run


def resets(connection):
    connection.read_request()
    connection.reset()


def closes(connection):
    connection.read_request()


# What a parent does with CONNECT, the reason if there is no other way, and whether another is tried.
FAULTS = {
    "hang": (hang, "proxy-timeout", True),
    "reset": (resets, "proxy-bad-response", True),
    "close": (closes, "proxy-bad-response", True),
    "garbage": (sends(b"\x00\x01garbage\r\n\r\n"), "proxy-bad-response", True),
    "too long": (sends(b"HTTP/1.1 200 OK\r\nA: " + b"x" * 1_000_000), "proxy-bad-response", True),
    "interim": (sends(b"HTTP/1.1 103 Early\r\n\r\n" * 20), "proxy-bad-response", True),
    "502": (sends(reply(b"x" * 100_000, "502 Bad")), "proxy-refused", True),
    "503": (sends(reply(b"no", "503 Busy")), "proxy-refused", True),
    "403": (sends(reply(b"no", "403 Forbidden")), "proxy-refused", False),
    "407": (sends(reply(b"no", "407 Who")), "proxy-authentication-required", False),
    "508": (sends(reply(b"no", "508 Loop")), "proxy-loop", False),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_tunnel_takes_the_next_way(gateway, scripted_origin, fault):
    script, reason, goes_on = FAULTS[fault]
    there = scripted_origin(echo)
    with serving(Origin(script)) as bad, serving(HTTPParent()) as good:
        running = gateway(ways(f"http://127.0.0.1:{bad.port}", f"http://127.0.0.1:{good.port}",
                               **TIMES))
        wire, response = running.connect(f"{HOST}:{there.port}")
        with wire:
            if goes_on:
                assert response.status == 200
                wire.send(b"ping")
                assert wire.read_exactly(4) == b"ping"
            else:
                assert response.status == (508 if fault == "508" else 502)
                assert good.asked == []
        line = running.wait_access()[0]
        assert line["parent"] == ("p1" if goes_on else "p0")
        alone = gateway(ways(f"http://127.0.0.1:{bad.port}", **TIMES))
        wire, response = alone.connect(f"{HOST}:{there.port}")
        wire.close()
        assert response.status in (502, 504, 508)
        # The parent's own words are not the server's.
        assert b"xxx" not in response.body
        assert alone.wait_access()[0]["reason"] == reason


@pytest.mark.parametrize("code", range(1, 9))
def test_a_refusal_by_socks_is_followed_by_the_next_way_unless_it_is_a_rule(
    gateway, origin, code
):
    there = origin(lambda _: reply(b"ok"))
    with serving(SOCKSParent(code)) as bad, serving(SOCKSParent()) as good:
        running = gateway(ways(f"socks5h://127.0.0.1:{bad.port}",
                               f"socks5h://127.0.0.1:{good.port}"))
        response = running.get(f"http://{HOST}:{there.port}/")
        assert response.status == (502 if code == 2 else 200)
        assert len(good.asked) == (0 if code == 2 else 1)


def test_socks_credentials_are_sent_and_their_refusal_is_said(gateway, origin, workspace):
    there = origin(lambda _: reply(b"ok"))
    secret = workspace / "secret"
    secret.write_text("right")
    with serving(SOCKSParent(user="me", password="right")) as way:
        for user, status in (("me", 200), ("other", 502), (None, 502)):
            config = ways(f"socks5h://127.0.0.1:{way.port}", "direct")
            if user:
                config["parents"]["p0"] |= {"user": user, "passwordFile": str(secret)}
            running = gateway(config)
            response = running.get(f"http://{HOST}:{there.port}/")
            assert response.status == status
            if status != 200:
                assert b"proxy-authentication-required" in response.body


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
def test_a_request_takes_the_next_way_if_a_parent_cannot_be_reached(
    gateway, origin, pki, secure
):
    leaf = pki.intermediate.issue(HOST)
    there = origin(lambda _: reply(b"ok"), **({"tls": leaf.server_context()} if secure else {}))
    with serving(HTTPParent()) as dead, serving(HTTPParent()) as good:
        dead.close()
        running = gateway(ways(
            f"http://127.0.0.1:{dead.port}", f"http://127.0.0.1:{good.port}", "direct",
            tls={"roots": [str(pki.root.pem_file)]}))
        url = f"{'https' if secure else 'http'}://{HOST}:{there.port}/"
        for _ in range(3):
            assert running.get(url).body == b"ok"
        assert [line["parent"] for line in running.wait_access(3)] == ["p1"] * 3
        assert running.metric("pinfold_parent_up", parent="p0") == 0
        # While it is down it is not asked.
        failures = running.metric("pinfold_parent_failures_total", parent="p0", cause="unreachable")
        assert failures < 3
        good.close()
        assert running.get(url).body == b"ok"
        assert "parent" not in running.wait_access(4)[3]


def test_content_that_was_sent_is_not_sent_by_another_way(gateway, origin):
    """The first parent has taken the request: whatever becomes of it, it is not repeated."""
    there = origin(lambda _: reply(b"ok"))
    with serving(Origin(closes)) as bad, serving(HTTPParent()) as good:
        running = gateway(ways(f"http://127.0.0.1:{bad.port}", f"http://127.0.0.1:{good.port}"))
        response = running.ask(request(
            f"http://{HOST}:{there.port}/", host=f"{HOST}:{there.port}", method="POST",
            body=b"once", Connection="close"))
        assert response.status == 502
        assert good.asked == [] and there.accepted == 0


def test_a_parent_that_comes_back_is_used_again_without_traffic(gateway, origin):
    there = origin(lambda _: reply(b"ok"))
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    listener.close()
    with serving(HTTPParent()) as spare:
        running = gateway(ways(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{spare.port}"))
        url = f"http://{HOST}:{there.port}/"
        assert running.get(url).status == 200
        running.wait_log("a parent proxy is down")
        again = socket.create_server(("127.0.0.1", port))
        back = HTTPParent.__new__(HTTPParent)
        back.answer, back.asked = (lambda asked: b""), []
        Origin.__init__(back, back._proxy, listener=again)
        with serving(back):
            until(lambda: running.metric("pinfold_parent_up", parent="p0") == 1, "it is up", 20)
            running.wait_log("a parent proxy is up again")
            assert back.asked == []
            assert running.get(url).status == 200
            assert len(back.asked) == 1
        assert [line["parent"] for line in running.wait_access(2)] == ["p1", "p0"]


def test_a_parent_that_says_nothing_is_found_out_without_traffic(gateway):
    with serving(Origin(hang)) as silent, serving(HTTPParent()) as good:
        config = ways(f"http://127.0.0.1:{silent.port}", f"http://127.0.0.1:{good.port}")
        for one in config["parents"].values():
            one["probe"] = "100ms"
        running = gateway(config)
        until(lambda: running.metric("pinfold_parent_up", parent="p0") == 0, "it is down", 30)
        assert running.metric("pinfold_parent_up", parent="p1") == 1
        assert running.metric("pinfold_parent_failures_total", parent="p0", cause="probe") >= 1
        assert good.asked == []


def test_a_slow_server_does_not_put_a_parent_down_for_others(gateway, origin):
    """Whoever asks for a server that does not answer must not have the parent passed over."""
    there = origin(lambda _: reply(b"ok"))

    def answer(asked):
        if "slow" in asked.target:
            stuck.append(asked)
            return b"HTTP/1.1 103 Wait\r\n\r\n"
        return b""

    stuck: list = []
    with serving(HTTPParent(answer)) as way, serving(HTTPParent(answer)) as spare:
        running = gateway(ways(f"http://127.0.0.1:{way.port}", f"http://127.0.0.1:{spare.port}",
                               **TIMES))
        wire, response = running.connect("slow.test:443")
        wire.close()
        assert response.status == 504
        assert len(stuck) == 2
        assert running.get(f"http://{HOST}:{there.port}/").status == 200
        # The lines of two workers are in no order.
        assert {line["method"]: line["parent"] for line in running.wait_access(2)}["GET"] == "p0"
        assert running.metric("pinfold_parent_up", parent="p0") == 1


def test_a_parent_that_is_killed_is_replaced_and_none_of_its_descriptors_stays(
    gateway, origin, workspace
):
    there = origin(lambda _: reply(b"ok"))
    url = f"http://{HOST}:{there.port}/"
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(stopping(Tinyproxy(workspace / "a")))
        second = stack.enter_context(stopping(Tinyproxy(workspace / "b")))
        config = ways(f"http://127.0.0.1:{first.port}", f"http://127.0.0.1:{second.port}")
        for one in config["parents"].values():
            one["resolves"] = "parent"
        running = gateway(config | {"hosts": []})
        # Names lead nowhere on tinyproxy's machine; addresses do.
        url = f"http://127.0.0.1:{there.port}/"
        assert running.get(url).status == 200
        before = running.descriptors
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
        for _ in range(20):
            assert running.get(url).status == 200
            wire, response = running.connect(f"127.0.0.1:{there.port}")
            wire.close()
            assert response.status == 200
        assert Counter(line["parent"] for line in running.wait_access(41)) == {"p0": 1, "p1": 40}
        until(lambda: running.descriptors <= before + 4, "what was opened is closed", 20)


def test_clients_that_leave_leave_nothing_behind(gateway):
    with serving(Origin(hang)) as silent:
        running = gateway(ways(f"http://127.0.0.1:{silent.port}", **TIMES))
        before = running.descriptors
        wires = []
        for number in range(20):
            wire = running.wire()
            wire.send(f"CONNECT s{number}.test:443 HTTP/1.1\r\nHost: s{number}.test:443\r\n\r\n")
            wires.append(wire)
        until(lambda: silent.accepted >= 20, "all are at the parent")
        for wire in wires:
            wire.close()
        until(lambda: running.descriptors <= before, "their connections are closed", 20)
        assert running.metric("pinfold_http_requests_in_flight") == 0
