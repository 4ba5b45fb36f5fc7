"""gRPC through the gateway, with gRPC's own client and server: in four ways, with deadlines,
cancellation, and statuses in trailers; and gRPC-Web."""

from __future__ import annotations

import contextlib
import ssl
import threading

import grpc
import pytest
from support import grpcs
from support.gateway import free_port
from support.grpcs import Bridge, Client, Echo
from support.http2 import HTTP2Client
from support.interception import HOST
from support.origin import reply
from support.secure import NAME, client_context, forward, reverse, tls_of
from support.wire import request

ROUTES = ["reverse-tls", "reverse-clear", "intercepted", "https-forward", "https-intercepted"]


class Authority:
    """The file of an authority, as a certificate has it."""

    def __init__(self, file):
        self.pem_file = file


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture(params=ROUTES)
def route(request) -> str:
    return request.param


@pytest.fixture
def service(gateway, pki, echo, route):
    """A client, by each of the routes."""
    with contextlib.ExitStack() as stack:
        clear = route == "reverse-clear"
        leaf = None if clear else pki.intermediate.issue(HOST)
        port = stack.enter_context(grpcs.serving(echo, leaf))
        yield stack.enter_context(connected(stack, gateway, pki, route, port))


def connected(stack, gateway, pki, route: str, port: int):
    tls = tls_of(pki.intermediate.issue(NAME, HOST))
    entry: dict = {"match": [HOST]}
    config: dict = {"workers": 1, "tls": {"roots": [str(pki.root.pem_file)]}, "hosts": [entry]}
    if route == "reverse-tls":
        running = gateway(config | {"listeners": [reverse(tls, f"https://{HOST}:{port}")]})
        return grpcs.client("127.0.0.1:%d" % running.listeners["route"][1], pki.root,
                            ssl_target_name_override=NAME)
    if route == "reverse-clear":
        entry["http2"] = "require"
        running = gateway(config | {"listeners": [
            {"name": "route", "address": "127.0.0.1:0", "kind": "reverse",
             "upstream": f"http://{HOST}:{port}"}]})
        return grpcs.client("127.0.0.1:%d" % running.listeners["route"][1], None)
    intercepted = Authority(pki.interception.file)
    if "intercepted" in route:
        entry["intercept"] = True
        config["interception"] = pki.interception.section
    if route == "intercepted":
        running = gateway(config)
        return grpcs.client(f"{HOST}:{port}", intercepted, http_proxy=running.proxy_url)
    running = gateway(config | {"listeners": [forward(tls)]})
    context = client_context(pki.root)
    # In TLS 1.3, what can be read may be no content, but a ticket.
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    bridge = stack.enter_context(contextlib.closing(Bridge(
        lambda: HTTP2Client(running.proxy, context, NAME), f"{HOST}:{port}")))
    return grpcs.client(
        f"127.0.0.1:{bridge.port}", intercepted if "intercepted" in route else pki.root,
        ssl_target_name_override=HOST, default_authority=f"{HOST}:{port}")


def test_one_message_is_answered_by_one(service: Client, echo):
    answer, call = service.unary.with_call(
        b"abc", timeout=20, metadata=(("x-mine", "1"), ("x-mine-bin", b"\0\xff")))
    assert answer == b"cba"
    assert call.code() == grpc.StatusCode.OK
    first, last = dict(call.initial_metadata()), dict(call.trailing_metadata())
    assert (first["x-first"], first["x-first-bin"]) == ("1", b"\0\xff")
    assert (last["x-last"], last["x-last-bin"]) == ("2", b"\xfe\1")
    assert (echo.metadata[0]["x-mine"], echo.metadata[0]["x-mine-bin"]) == ("1", b"\0\xff")


@pytest.mark.parametrize("size", [0, 1, 16_380, 3_000_000])
def test_messages_of_any_size_pass(service: Client, size):
    message = bytes(range(256)) * (size // 256 + 1)
    assert service.unary(message[:size], timeout=20) == message[:size][::-1]


def test_one_message_is_answered_by_many(service: Client):
    answers = list(service.split(b"abcdef" * 20, timeout=20))
    assert b"".join(answer[:1] for answer in answers) == b"abcdef" * 20


def test_many_messages_are_answered_by_one(service: Client):
    messages = [b"%d," % number for number in range(500)]
    assert service.join(iter(messages), timeout=20) == b"".join(messages)


def test_messages_go_to_and_fro(service: Client):
    """Each message is sent when the answer to the one before is there."""
    answered = threading.Semaphore(1)

    def messages():
        for number in range(50):
            assert answered.acquire(timeout=20)
            yield b"message %d" % number

    count = 0
    for number, answer in enumerate(service.converse(messages(), timeout=30)):
        assert answer == b"MESSAGE %d" % number
        count += 1
        answered.release()
    assert count == 50


def test_an_error_is_a_status_in_trailers_alone(service: Client):
    with pytest.raises(grpc.RpcError) as error:
        service.fail(b"x", timeout=20)
    assert error.value.code() == grpc.StatusCode.NOT_FOUND
    assert error.value.details() == "nothing like that: ü %"
    assert dict(error.value.trailing_metadata())["x-last"] == "2"


def test_an_error_after_messages_is_a_status_in_trailers(service: Client):
    answers = service.fail_later(b"first", timeout=20)
    assert next(answers) == b"first"
    with pytest.raises(grpc.RpcError) as error:
        next(answers)
    assert error.value.code() == grpc.StatusCode.DATA_LOSS
    assert error.value.details() == "in the middle"


def test_a_method_that_there_is_not_is_unimplemented(service: Client):
    with pytest.raises(grpc.RpcError) as error:
        service.unknown(b"x", timeout=20)
    assert error.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_a_deadline_ends_the_call_at_client_and_server(service: Client, echo):
    with pytest.raises(grpc.RpcError) as error:
        service.wait(b"x", timeout=0.5)
    assert error.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    assert echo.ended.wait(10)
    # The connection goes on.
    assert service.unary(b"abc", timeout=20) == b"cba"


def test_a_cancellation_reaches_the_server(service: Client, echo):
    call = service.wait.future(b"x", timeout=60)
    assert echo.waiting.wait(20)
    call.cancel()
    assert echo.ended.wait(10)
    with pytest.raises(grpc.FutureCancelledError):
        call.result()
    assert service.unary(b"abc", timeout=20) == b"cba"


def test_a_conversation_may_be_cancelled_in_the_middle(service: Client, echo):
    release = threading.Event()

    def messages():
        yield b"one"
        release.wait(30)

    answers = service.converse(messages(), timeout=60)
    assert next(answers) == b"ONE"
    answers.cancel()
    assert echo.ended.wait(10)
    release.set()


def test_many_calls_at_a_time(service: Client):
    calls = [service.unary.future(b"%d" % number, timeout=30) for number in range(60)]
    assert [call.result() for call in calls] == [(b"%d" % n)[::-1] for n in range(60)]


def test_a_server_that_is_not_there_is_unavailable(gateway, pki):
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(
            connected(stack, gateway, pki, "reverse-clear", free_port()))
        with pytest.raises(grpc.RpcError) as error:
            client.unary(b"x", timeout=20)
        assert error.value.code() == grpc.StatusCode.UNAVAILABLE


# gRPC-Web: what browsers speak, which any proxy can pass


WEB = b"\0\0\0\0\3abc" + b"\x80\0\0\0\x0fgrpc-status:0\r\n"


@pytest.mark.parametrize("server", ["HTTP/1.1", "HTTP/2"])
@pytest.mark.parametrize("kind", ["application/grpc-web+proto", "application/grpc-web-text"])
def test_grpc_web_passes_unchanged(gateway, origin, http2_origin, pki, server, kind):
    running = gateway({"workers": 1, "tls": {"roots": [str(pki.root.pem_file)]}})
    leaf = pki.intermediate.issue(HOST)
    if server == "HTTP/2":
        there = http2_origin(
            lambda seen: seen.respond(200, ("content-type", kind), body=seen.read_all() + WEB),
            tls=leaf.server_context(alpn=("h2",)))
    else:
        there = origin(lambda seen: reply(seen.body + WEB, "200 OK", f"Content-Type: {kind}"),
                       tls=leaf.server_context())
    answer = running.ask(request(
        f"https://{HOST}:{there.port}{grpcs.SERVICE}Unary", method="POST", body=b"\0\0\0\0\1x",
        Content_Type=kind, X_Grpc_Web="1"))
    assert (answer.status, answer.body) == (200, b"\0\0\0\0\1x" + WEB)
    assert answer.get("content-type") == kind
    seen = there.requests[0]
    assert seen.get("content-type") == kind and seen.get("x-grpc-web") == "1"
