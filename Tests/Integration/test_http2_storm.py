"""Many clients of HTTP/1.1 and HTTP/2 at a time ask servers of HTTP/2 that reset streams, end
connections and are slow: what looks complete to anyone is complete."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import h2.exceptions
import pytest
from support.http2 import http2
from support.http2origin import Setting
from support.http2upstream import H2, Code, configuration
from support.interception import HOST
from support.wire import Closed, Wire, request

CLIENTS, REQUESTS = 12, 12
SIZES = [0, 1, 1000, 16_384, 16_385, 65_535, 70_000, 400_000]


def unlike(seed: int, count: int) -> bytes:
    """Content that is like no other's, so that bytes of another stream or another time show."""
    stamp = hashlib.sha256(seed.to_bytes(8, "big")).hexdigest().encode()
    return bytes(stamp * (count // len(stamp) + 1))[:count]


class Chaos:
    """Answers `/SEED/SIZE/KIND`, where the kind says what goes wrong; the head of the answer has
    the digest of the request's content."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        # By connection, the last stream that is processed.
        self.last: dict[int, int] = {}

    def __call__(self, stream) -> None:
        seed, size, kind = stream.target.strip("/").split("/")
        body, connection = unlike(int(seed), int(size)), stream.connection
        with connection.changed:
            if stream.number > self.last.get(connection.number, stream.number):
                return
            if kind == "goaway" and connection.number not in self.last:
                self.last[connection.number] = max(connection.streams)
                connection.goaway(max(connection.streams))
        if kind == "refused" and stream.target not in self.refused:
            self.refused.add(stream.target)
            return stream.reset_with(Code.REFUSED_STREAM)
        if kind == "reset":
            stream.head(200, [("content-length", str(len(body) + 1))])
            stream.data(body)
            return stream.reset_with(Code.INTERNAL_ERROR)
        digest = ("x-digest", hashlib.sha256(stream.read_all()).hexdigest())
        stream.respond(200, digest, body=body, length=kind != "unknown")


@pytest.fixture
def running(gateway, pki):
    return gateway(configuration(pki, limits={"upstreamStreams": 20}) | {"workers": 2})


def kinds(random_: random.Random) -> str:
    return random_.choice(["well"] * 12 + ["unknown"] * 4 + ["refused", "reset"] * 2 + ["goaway"])


def one_of_http1(running, port: int, seed: int) -> Counter:
    """Requests on one connection after another; some read slowly, some leave."""
    random_, found = random.Random(seed), Counter()
    wire: Wire | None = None
    for number in range(REQUESTS):
        wire = wire or running.wire()
        size, kind = random_.choice(SIZES), kinds(random_)
        path = f"/{seed * 1000 + number}/{size}/{kind}"
        data = os.urandom(random_.choice([0, 0, 1000, 200_000]))
        try:
            wire.send(request(f"https://{HOST}:{port}{path}", method="PUT", body=data))
            if random_.random() < 0.1:
                wire.reset()
                raise Closed("on purpose")
            head = wire.read_head()
            answer = wire.read_body(head)
        except (Closed, ConnectionError):
            found["cut"] += 1
            wire.close()
            wire = None
            continue
        check(answer, seed * 1000 + number, size, kind, data, found)
        if "close" in answer.get("connection"):
            wire.close()
            wire = None
    if wire:
        wire.close()
    return found


def one_of_http2(running, port: int, seed: int) -> Counter:
    """Streams at a time; some are reset by the client."""
    random_, found = random.Random(seed), Counter()
    with http2(running.proxy, timeout=20) as client:
        asked = []
        for number in range(REQUESTS):
            size, kind = random_.choice(SIZES), kinds(random_)
            data = os.urandom(random_.choice([0, 1000, 100_000]))
            stream = client.begin(f"/{seed * 1000 + number}/{size}/{kind}", "PUT",
                                  f"{HOST}:{port}", "https", end=False)
            if random_.random() < 0.1:
                client.reset(stream)
                found["cut"] += 1
                continue
            # The gateway may have reset it by now.
            with contextlib.suppress(h2.exceptions.ProtocolError):
                client.send(stream, data, end=True)
            asked.append((stream, number, size, kind, data))
        for stream, number, size, kind, data in asked:
            answer = client.answer(stream)
            if not answer.complete:
                found["cut"] += 1
                continue
            check(answer, seed * 1000 + number, size, kind, data, found)
    return found


def check(answer, seed: int, size: int, kind: str, data: bytes, found: Counter) -> None:
    if answer.status == 200:
        assert kind != "reset", "a response that was reset is not complete"
        assert answer.body == unlike(seed, size), (seed, size, kind)
        assert answer.get("x-digest") == hashlib.sha256(data).hexdigest(), (seed, size, kind)
    else:
        assert answer.status in (502, 503), answer
    found[answer.status] += 1


@pytest.mark.parametrize("seed", range(3))
def test_what_looks_complete_is_complete(running, http2_origin, pki, seed):
    there = http2_origin(Chaos(), tls=pki.intermediate.issue(HOST).server_context(alpn=H2),
                         settings={Setting.MAX_CONCURRENT_STREAMS: 15,
                                   Setting.INITIAL_WINDOW_SIZE: 30_000})
    with ThreadPoolExecutor(CLIENTS) as pool:
        jobs = [pool.submit(one_of_http1 if number % 2 else one_of_http2, running, there.port,
                            seed * CLIENTS + number + 1) for number in range(CLIENTS)]
        found = sum((job.result() for job in jobs), Counter())
    assert found.total() == CLIENTS * REQUESTS
    # Most is served: faults do not spread.
    assert found[200] >= found.total() * 0.5, found
    assert there.versions == {"HTTP/2"}
    assert not [seen for seen in there.requests if seen.complete and seen.reset is not None
                and "content-length" in seen
                and len(seen.body) != int(seen.get("content-length"))]


def test_slow_clients_get_what_is_theirs(running, http2_origin, pki):
    """Content waits in the gateway for clients that read slowly, while other content arrives on the
    same connection."""
    there = http2_origin(Chaos(), tls=pki.intermediate.issue(HOST).server_context(alpn=H2))
    sizes = [200_000 + number for number in range(12)]
    wires = []
    for number, size in enumerate(sizes):
        wires.append(running.wire())
        wires[-1].send(request(f"https://{HOST}:{there.port}/{number}/{size}/well"))
    # In turn, a little of each.
    bodies = [bytearray() for _ in wires]
    heads = [wire.read_head() for wire in wires]
    assert {one.status for one in heads} == {200}
    while any(len(body) < size for body, size in zip(bodies, sizes)):
        for wire, body, size in zip(wires, bodies, sizes):
            if len(body) < size:
                body += wire.read_exactly(min(7000, size - len(body)))
    for number, (body, size) in enumerate(zip(bodies, sizes)):
        assert bytes(body) == unlike(number, size), number
    for wire in wires:
        wire.close()
