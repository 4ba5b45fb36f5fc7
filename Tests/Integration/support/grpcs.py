"""A gRPC service without generated code, whose messages are bytes, and a way for gRPC's clients to
an https proxy, with which gRPC cannot speak itself."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent import futures

import grpc

from .http2 import HTTP2Client
from .pki import Certificate

SERVICE = "/pinfold.test.Echo/"
LARGE = [("grpc.max_receive_message_length", 16 << 20), ("grpc.max_send_message_length", 16 << 20)]


class Echo(grpc.GenericRpcHandler):
    """Echoes in each of the four ways; fails, or waits, when it is asked to."""

    def __init__(self) -> None:
        # What each call's client has sent as metadata, and how calls ended before their answer.
        self.metadata: list[dict[str, str | bytes]] = []
        self.ended = threading.Event()
        self.waiting = threading.Event()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        self.metadata.append(dict(details.invocation_metadata))
        match details.method.removeprefix(SERVICE):
            case "Unary":
                return grpc.unary_unary_rpc_method_handler(self._unary)
            case "Split":
                return grpc.unary_stream_rpc_method_handler(self._split)
            case "Join":
                return grpc.stream_unary_rpc_method_handler(self._join)
            case "Converse":
                return grpc.stream_stream_rpc_method_handler(self._converse)
            case "Fail":
                return grpc.unary_unary_rpc_method_handler(self._fail)
            case "FailLater":
                return grpc.unary_stream_rpc_method_handler(self._fail_later)
            case "Wait":
                return grpc.unary_unary_rpc_method_handler(self._wait)
        return None

    def _unary(self, message: bytes, context: grpc.ServicerContext) -> bytes:
        context.send_initial_metadata((("x-first", "1"), ("x-first-bin", b"\0\xff")))
        context.set_trailing_metadata((("x-last", "2"), ("x-last-bin", b"\xfe\1")))
        return message[::-1]

    def _split(self, message: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        for index in range(len(message)):
            yield message[index:index + 1] * 1000

    def _join(self, messages: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        return b"".join(messages)

    def _converse(
        self, messages: Iterator[bytes], context: grpc.ServicerContext
    ) -> Iterator[bytes]:
        context.add_callback(self.ended.set)
        for message in messages:
            yield message.upper()

    def _fail(self, message: bytes, context: grpc.ServicerContext) -> bytes:
        context.set_trailing_metadata((("x-last", "2"),))
        context.abort(grpc.StatusCode.NOT_FOUND, "nothing like that: ü %")
        raise AssertionError("aborted")

    def _fail_later(self, message: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        yield message
        context.abort(grpc.StatusCode.DATA_LOSS, "in the middle")

    def _wait(self, message: bytes, context: grpc.ServicerContext) -> bytes:
        context.add_callback(self.ended.set)
        self.waiting.set()
        self.ended.wait(30)
        return message


@contextlib.contextmanager
def serving(echo: Echo, leaf: Certificate | None = None) -> Iterator[int]:
    """The service at a port of loopback, which is what it yields: with TLS, or in clear text."""
    server = grpc.server(futures.ThreadPoolExecutor(40), handlers=[echo], options=LARGE)
    if leaf:
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials(
            [(leaf.key_file.read_bytes(), leaf.chain_file().read_bytes())]))
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(None).wait(10)


class Client:
    """The service, through a channel."""

    def __init__(self, channel: grpc.Channel):
        self.unary = channel.unary_unary(SERVICE + "Unary")
        self.split = channel.unary_stream(SERVICE + "Split")
        self.join = channel.stream_unary(SERVICE + "Join")
        self.converse = channel.stream_stream(SERVICE + "Converse")
        self.fail = channel.unary_unary(SERVICE + "Fail")
        self.fail_later = channel.unary_stream(SERVICE + "FailLater")
        self.wait = channel.unary_unary(SERVICE + "Wait")
        self.unknown = channel.unary_unary(SERVICE + "Unknown")


@contextlib.contextmanager
def client(target: str, authority: Certificate | None, **options: str) -> Iterator[Client]:
    """A client of a target that speaks TLS by this authority's certificates, or clear text. Options
    are those of channels, with `_` for `.`; without one for a proxy there is none."""
    settings = [*LARGE, *(("grpc." + key, value) for key, value in options.items())]
    if "http_proxy" not in options:
        settings.append(("grpc.enable_http_proxy", 0))
    if authority:
        channel = grpc.secure_channel(
            target, grpc.ssl_channel_credentials(authority.pem_file.read_bytes()), settings)
    else:
        channel = grpc.insecure_channel(target, settings)
    try:
        yield Client(channel)
    finally:
        channel.close()


class Bridge:
    """Leads each connection through a tunnel in a stream of an https proxy."""

    def __init__(self, connect: Callable[[], HTTP2Client], authority: str):
        self.connect, self.authority = connect, authority
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=(accepted,), daemon=True).start()

    def _relay(self, accepted: socket.socket) -> None:
        with accepted, contextlib.closing(self.connect()) as proxy:
            # A call that fails is seen by its client.
            with contextlib.suppress(OSError, AssertionError):
                self._through(accepted, proxy)

    def _through(self, accepted: socket.socket, proxy: HTTP2Client) -> None:
        stream = proxy.head([(":method", "CONNECT"), (":authority", self.authority)], end=False)
        answer = proxy.answers[stream]
        proxy.until(lambda: answer.status, "the tunnel")
        assert answer.status == 200, answer
        passed = 0
        while not (answer.complete or answer.reset is not None):
            ready = [proxy.socket] if proxy.socket.pending() else select.select(
                [accepted, proxy.socket], [], [], 60)[0]
            # Not both in one turn: sending also reads, where it waits for a window.
            if proxy.socket in ready:
                if not proxy.receive():
                    return
            elif not (data := accepted.recv(1 << 16)):
                return
            else:
                proxy.send(stream, data)
            if len(answer.body) > passed:
                accepted.sendall(answer.body[passed:])
                passed = len(answer.body)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
