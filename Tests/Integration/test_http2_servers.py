"""HTTP/2 towards real servers: nginx, HAProxy, nghttpx, h2o and Go."""

from __future__ import annotations

import hashlib
import os
import signal

import pytest
from support.http2 import http2
from support.http2origin import content
from support.http2servers import NAMES, HTTP2Server, backend
from support.http2upstream import configuration
from support.interception import HOST
from support.origin import HTTPOrigin, serving
from support.wire import request

CLEAR = "clear.test"


@pytest.fixture(scope="module")
def behind():
    with serving(HTTPOrigin(backend)) as made:
        yield made


# net/http speaks HTTP/2 over TLS only.
WAYS = [(name, carrier) for name in NAMES for carrier in ("tls", "clear")
        if (name, carrier) != ("go", "clear")]


@pytest.fixture(scope="module", params=WAYS, ids="-".join)
def way(request, tmp_path_factory, pki, behind, toolchains):
    """A server, and how it is spoken to."""
    name, carrier = request.param
    made = HTTP2Server(name, tmp_path_factory.mktemp(name), pki.intermediate.issue(HOST),
                       behind.port, toolchains)
    yield made, carrier
    made.stop()


@pytest.fixture
def running(gateway, pki):
    made = configuration(pki)
    made["hosts"].append({"match": [CLEAR], "http2": "require"})
    return gateway(made)


class Asking:
    def __init__(self, running, server: HTTP2Server, carrier: str):
        self.running = running
        self.scheme = "https" if carrier == "tls" else "http"
        self.authority = (f"{HOST}:{server.port}" if carrier == "tls"
                          else f"{CLEAR}:{server.clear_port}")

    def __call__(self, path: str, method: str = "GET", body: bytes = b"", **fields: str):
        answer = self.running.ask(request(f"{self.scheme}://{self.authority}{path}",
                                          method=method, body=body, **fields))
        assert answer.get("via").endswith("2.0 pinfold"), answer
        return answer


@pytest.fixture
def ask(running, way) -> Asking:
    return Asking(running, *way)


def test_content_of_any_size_comes_back(ask):
    for size in (0, 1, 1024, 16_385, 3_000_000):
        assert ask(f"/body/{size}").body == content(size)


def test_a_head_comes_without_content(ask):
    answer = ask("/body/70000", "HEAD")
    assert (answer.status, answer.body) == (200, b"")
    assert answer.get("content-length") == "70000"
    assert ask("/after").body == b"GET /after"


def test_what_was_not_modified_is_told(ask):
    assert ask("/etag").body == b"validated"
    answer = ask("/etag", If_None_Match='"one"')
    assert (answer.status, answer.body) == (304, b"")


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_content_arrives(ask, method):
    for size in (0, 1, 70_000, 1 << 20):
        data = os.urandom(size)
        answer = ask("/digest", method, data)
        assert answer.body == hashlib.sha256(data).hexdigest().encode()


def test_trailers_come_back(ask, way):
    answer = ask("/trailers", TE="trailers")
    assert answer.body == b"content"
    # nginx and h2o of this age do not pass those of their origin.
    if way[0].name not in ("nginx", "h2o"):
        assert [(name.lower(), value) for name, value in answer.trailers] == [("x-sum", "42")]


def test_twenty_requests_share_at_most_two_connections(ask, running):
    assert ask("/first").status == 200
    with http2(running.proxy) as client:
        streams = [client.begin("/body/100000", authority=ask.authority, scheme=ask.scheme)
                   for _ in range(20)]
        for stream in streams:
            assert client.answer(stream).body == content(100_000)
    assert running.metric("pinfold_upstream_connections_created_total") <= 2


def test_uploads_and_downloads_share_a_connection(ask, running):
    with http2(running.proxy) as client:
        data = os.urandom(300_000)
        streams = []
        for _ in range(5):
            streams.append(client.begin("/body/300000", authority=ask.authority,
                                        scheme=ask.scheme))
            upload = client.begin("/digest", "PUT", ask.authority, ask.scheme, end=False)
            client.send(upload, data, end=True)
            streams.append(upload)
        for number, stream in enumerate(streams):
            expected = (hashlib.sha256(data).hexdigest().encode() if number % 2
                        else content(300_000))
            assert client.answer(stream).body == expected


def test_a_client_that_goes_leaves_the_connection_to_others(ask, running):
    assert ask("/first").status == 200
    with http2(running.proxy, reads=False) as client:
        streams = [client.begin("/body/3000000", authority=ask.authority, scheme=ask.scheme)
                   for _ in range(3)]
        client.until(lambda: any(client.answers[stream].body for stream in streams))
        for stream in streams:
            client.reset(stream)
    assert ask("/body/70000").body == content(70_000)
    assert running.metric("pinfold_upstream_connections_created_total") <= 2


# nginx


@pytest.fixture
def nginx(tmp_path, pki, behind, toolchains):
    made = HTTP2Server("nginx", tmp_path, pki.intermediate.issue(HOST), behind.port, toolchains,
                       requests=50)
    yield made
    made.stop()


def test_a_server_that_ends_connections_after_fifty_requests_loses_none(running, nginx):
    """nginx sends GOAWAY then, and ignores what came after."""
    ask = Asking(running, nginx, "tls")
    for number in range(110):
        assert ask(f"/{number}").body == f"GET /{number}".encode()
    with http2(running.proxy) as client:
        for _ in range(10):
            streams = [client.begin("/body/1000", authority=ask.authority, scheme=ask.scheme)
                       for _ in range(20)]
            assert [client.answer(stream).status for stream in streams] == [200] * 20


def test_a_server_that_is_reloaded_loses_no_request(running, nginx):
    ask = Asking(running, nginx, "tls")
    for number in range(60):
        if number % 20 == 10:
            nginx.process.send_signal(signal.SIGHUP)
        assert ask(f"/{number}").body == f"GET /{number}".encode()


def test_a_server_may_refuse_content_before_it_is_there(running, nginx):
    ask = Asking(running, nginx, "tls")
    answer = ask("/small/", "POST", b"x" * 1_000_000)
    assert answer.status == 413
    assert ask("/after").body == b"GET /after"
