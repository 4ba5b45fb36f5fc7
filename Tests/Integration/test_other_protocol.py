"""A clear-text request to a port that speaks TLS, and the reverse: the reply says what it looks like, with the
key that mends it, by the gateway and by the client."""

from __future__ import annotations

import threading

import pytest
from support.gateway import run_pinfold
from support.origin import reply, scripted
from support.wire import request

HOST = "there.test"
ALERT = bytes.fromhex("15030300020228")
HANDSHAKE = bytes.fromhex("160303000402000000")


def refusal(running, url: str) -> tuple[str, str]:
    answer = running.ask(request(url, Connection="close", Accept="application/json"))
    assert answer.status == 502
    return answer.json()["reason"], answer.json()["message"]


def is_explained(token: str) -> bool:
    return run_pinfold("reasons", token).returncode == 0


def clear_text(data: bytes, *, reads: bool = True):
    """A script of a server for clear text that is sent a ClientHello."""
    def run(connection) -> None:
        if reads:
            connection.read_exactly(5)
            connection.socket.setblocking(False)
            try:
                connection.socket.recv(1 << 16)
            except BlockingIOError:
                pass
            connection.socket.setblocking(True)
        connection.send(data)
    return run


@pytest.mark.parametrize("answer", [ALERT, HANDSHAKE], ids=["an alert", "a handshake"])
def test_a_server_that_answers_clear_text_with_tls_is_reported(shared_gateway, scripted_origin, answer):
    there = scripted_origin(scripted(answer))
    reason, message = refusal(shared_gateway, there.url("/"))
    assert reason == "upstream-speaks-tls" and is_explained(reason)
    assert "upgrade: https" in message and "https://" in message
    done = run_pinfold("get", there.url("/"))
    assert done.returncode == 56
    assert "upstream-speaks-tls" in done.stderr and "https" in done.stderr


def test_a_server_that_ends_clear_text_without_a_byte_may_speak_tls(shared_gateway, origin, pki):
    """As Python's and many others do, by closing or by a reset."""
    there = origin(lambda _: reply(), tls=pki.intermediate.issue(HOST).server_context())
    reason, message = refusal(shared_gateway, f"http://{HOST}:{there.port}/")
    assert reason in ("upstream-closed", "upstream-reset", "upstream-speaks-tls")
    assert "upgrade: https" in message and "https://" in message


def test_a_server_that_has_answered_before_is_not_taken_for_one_of_tls(gateway, scripted_origin):
    def run(connection) -> None:
        connection.read_request()
        connection.send(reply(b"x"))
        connection.read_request()

    there = scripted_origin(run)
    running = gateway({"cache": {"enabled": False}})
    with running.wire() as wire:
        assert wire.ask(request(there.url("/"), method="POST", body=b"1")).status == 200
        answer = wire.ask(request(
            there.url("/"), method="POST", body=b"1", Accept="application/json"))
    assert answer.json()["reason"] == "upstream-closed"
    assert "TLS" not in answer.json()["message"]


def test_a_server_that_answered_on_another_connection_is_not_taken_for_one_of_tls(
        gateway, scripted_origin):
    def run(connection) -> None:
        if connection.read_request().target == "/answers":
            connection.send(reply(b"x", "200 OK", "Connection: close"))

    there = scripted_origin(run)
    running = gateway({"cache": {"enabled": False}, "workers": 1})
    reason, message = refusal(running, there.url("/"))
    assert reason == "upstream-closed" and "TLS" in message
    assert running.ask(request(there.url("/answers"), Connection="close")).status == 200
    reason, message = refusal(running, there.url("/"))
    assert reason == "upstream-closed" and "TLS" not in message


def test_a_server_that_answered_by_tls_before_is_not_taken_for_one_of_clear_text(
        gateway, scripted_origin, pki):
    context = pki.intermediate.issue(HOST).server_context()
    ends = threading.Event()

    def run(connection) -> None:
        if ends.is_set():
            return
        with context.wrap_socket(connection.socket, server_side=True) as inner:
            inner.recv(1 << 16)
            inner.sendall(reply(b"x", "200 OK", "Connection: close"))

    there = scripted_origin(run)
    running = gateway({"hosts": [{"match": [HOST], "upgrade": "https"}], "workers": 1,
                       "tls": {"roots": [str(pki.root.pem_file)]}})
    url = f"http://{HOST}:{there.port}/"
    assert running.ask(request(url, Connection="close")).status == 200
    ends.set()
    reason, message = refusal(running, url)
    assert reason in ("tls-truncated", "tls-transport-error") and "clear text" not in message


@pytest.fixture
def upgrading(gateway, pki):
    return gateway({"hosts": [{"match": [HOST], "upgrade": "https"}],
                    "tls": {"roots": [str(pki.root.pem_file)]}})


def test_an_answer_in_clear_text_to_a_client_hello_is_quoted(upgrading, scripted_origin):
    there = scripted_origin(clear_text(b"HTTP/1.1 400 Bad\x07 Request\r\nConnection: close\r\n\r\n"))
    reason, message = refusal(upgrading, f"http://{HOST}:{there.port}/")
    assert reason == "tls-not-tls"
    assert "answered in clear text: HTTP/1.1 400 Bad" in message and "\x07" not in message
    assert "http://" in message and "upgrade: https" in message
    done = run_pinfold("get", f"https://127.0.0.1:{there.port}/")
    assert done.returncode == 35
    assert "answered in clear text: HTTP/1.1 400 Bad" in done.stderr


@pytest.mark.parametrize("reads", [True, False], ids=["closed", "reset"])
def test_a_server_that_ends_the_handshake_without_a_byte_may_speak_clear_text(
        upgrading, scripted_origin, reads):
    there = scripted_origin(clear_text(b"", reads=reads))
    reason, message = refusal(upgrading, f"http://{HOST}:{there.port}/")
    assert reason == "tls-unanswered" and is_explained(reason)
    assert "before any TLS data arrived" in message
    assert "http://" in message and "upgrade: https" in message
    done = run_pinfold("get", f"https://127.0.0.1:{there.port}/")
    assert done.returncode == 35 and "tls-unanswered" in done.stderr


def test_a_server_that_ends_the_handshake_in_its_midst_is_truncated(upgrading, scripted_origin):
    there = scripted_origin(clear_text(HANDSHAKE[:5]))
    reason, message = refusal(upgrading, f"http://{HOST}:{there.port}/")
    assert reason == "tls-truncated"
    assert "clear text" not in message
