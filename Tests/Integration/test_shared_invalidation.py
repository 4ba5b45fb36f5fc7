"""What an unsafe request makes invalid (RFC 9111 §4.4) is so at all gateways, whatever the engine has."""

from __future__ import annotations

import secrets
import threading
import time

import pytest
from support.fleet import get, is_hit, is_up, share
from support.origin import Request, reply
from support.wait import SLOWDOWN, until

FRESH = "Cache-Control: max-age=600"
REMOVED = "pinfold:1:p:{fleet}:removed"


class Site:
    """Answers with how often it was asked for a path. The first answer to one that is `held` is held back
    until it is let go, by which time it is outdated."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.held: dict[str, threading.Event] = {}
        self.lock = threading.Lock()
        self.rest = secrets.token_bytes(1_200_000)

    def __call__(self, seen: Request) -> bytes:
        path = seen.target
        if seen.method != "GET":
            return reply(b"done", "200 OK")
        if seen.get("x-kind"):
            return reply(b"of a kind", "200 OK", FRESH, "Vary: X-Kind")
        with self.lock:
            self.counts[path] = count = self.counts.get(path, 0) + 1
        if count == 1 and path in self.held:
            self.held[path].wait(30 * SLOWDOWN)
        body = b"%d" % count
        if path.startswith("/large"):
            body += self.rest
        return reply(body, "200 OK", FRESH, "Vary: X-Kind")


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def there(origin, site):
    return origin(site)


def have_own(gateways, url: str) -> None:
    """Until each of them has it itself."""
    for running in gateways:
        get(running, url)
        until(lambda: is_hit(get(running, url)), f"{url} is stored")


def test_also_if_the_engine_has_evicted_it(fleet, engine, there):
    two = fleet(2)
    url = there.url("/a")
    have_own(two, url)
    for key in engine.keys("*:v:*"):
        engine.command("DEL", key)
    assert get(two[1], url, method="POST").status == 200
    until(lambda: get(two[0], url).body == b"2", "the other gateway has heard of it")


def test_also_if_it_is_too_large_for_the_engine(fleet, there):
    two = fleet(2, maximumObject="1MiB")
    url = there.url("/large")
    have_own(two, url)
    assert get(two[1], url, method="DELETE").status == 200
    before = there.requests[-1]
    until(lambda: get(two[0], url).body[:1] not in (b"1", b"2"), "the other gateway has heard of it")
    assert there.requests[-1] is not before


@pytest.mark.parametrize("by", [0, 1], ids=["by-another", "by-the-same"])
@pytest.mark.parametrize("learns", [False, True], ids=["", "number-is-found"])
@pytest.mark.parametrize("has_variant", [False, True], ids=["nothing-stored", "variant-stored"])
def test_also_if_it_is_on_its_way(fleet, there, site, by, learns, has_variant):
    """A response that was asked for before is neither in the engine nor in the tier of its gateway, also if
    another request has found in between that the URL has been invalidated."""
    three = fleet(3)
    for number in range(4):
        path = f"/race{number}"
        site.held[path] = threading.Event()
        url = there.url(path)
        if has_variant:
            share(three[0], url, X_Kind="other")
        first = threading.Thread(target=get, args=(three[1], url))
        first.start()
        until(lambda: site.counts.get(path) == 1, "it is asked for")
        assert get(three[by], url, method="POST").status == 200
        if learns:
            # With a cookie it does not wait for the first one's response.
            assert get(three[1], url, X_Kind="mine", Cookie="a=b").status == 200
        site.held[path].set()
        first.join()
        until(lambda: get(three[1], url).body != b"1", "its own gateway asks again")
        for running in three:
            assert get(running, url).body != b"1"


def test_also_if_the_engine_had_no_memory_for_it(fleet, engine, there):
    two = fleet(2)
    url = there.url("/a")
    have_own(two, url)
    engine.command("CONFIG", "SET", "maxmemory", "1")
    engine.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert get(two[1], url, method="POST").status == 200
    until(lambda: two[1].metric("pinfold_cache_shared_errors_total", reason="out_of_memory") > 0,
          "it could not be written")
    engine.command("CONFIG", "SET", "maxmemory", "0")
    until(lambda: get(two[0], url).body == b"2", "the other gateway has heard of it", 20)
    assert all(is_up(running) for running in two)


def test_what_is_posted_to_again_and_again_is_told_now_and_then(fleet, engine, there):
    two = fleet(2)
    url = there.url("/form")
    before = engine.command("XLEN", REMOVED)
    began = time.monotonic()
    for _ in range(200):
        assert get(two[0], url, method="POST").status == 200
    took = time.monotonic() - began
    # Each request is about the keys of all routes.
    assert 1 <= engine.command("XLEN", REMOVED) - before <= 2 + 2 * took
    assert two[0].metric("pinfold_cache_shared_lost_keys") == 0
