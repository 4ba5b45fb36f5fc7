"""Gateways that do not reach their engine for a while, and engines that take each other's place: what was
purged stays so, and nobody loses what is current."""

from __future__ import annotations

import pytest
from support.fleet import Link, get, is_hit, share, wait_shared
from support.origin import Request, reply
from support.wait import until
from test_shared_cache import order

FRESH = "Cache-Control: max-age=600"


class Site:
    """Answers with how often it was asked."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, seen: Request) -> bytes:
        self.count += 1
        return reply(b"%d" % self.count, "200 OK", FRESH, f"Surrogate-Key: {seen.target.strip('/')}")


@pytest.fixture
def there(origin):
    return origin(Site())


@pytest.fixture
def pair(engines):
    """A master, and its replica."""
    pair = engines(), engines()
    for engine in pair:
        engine.command("CONFIG", "SET", "repl-diskless-sync-delay", "0")
    follow(pair[1], pair[0])
    return pair


def follow(replica, master) -> None:
    """Has an engine be another's replica, which has all that that has."""
    replica.command("REPLICAOF", "127.0.0.1", master.port)

    def offset(engine, name: bytes) -> bytes:
        lines = engine.command("INFO", "replication").split(b"\r\n")
        return dict(line.split(b":", 1) for line in lines if b":" in line).get(name, b"")

    until(lambda: offset(replica, b"master_link_status") == b"up"
          and offset(replica, b"slave_repl_offset") == offset(master, b"master_repl_offset"),
          "the replica follows", 30)


def fail_over(link: Link, new, old) -> None:
    """The replica takes the master's place, which becomes its replica."""
    link.cut()
    new.command("REPLICAOF", "NO", "ONE")
    follow(old, new)
    link.engine = new
    link.mend()


@pytest.mark.parametrize("is_there", [True, False], ids=["there", "stopped-meanwhile"])
def test_what_was_purged_does_not_come_back_with_an_earlier_master(fleet, pair, there, is_there):
    """There and back without a restart of either: the process of the first master is still the same one."""
    first, second = pair
    link = Link(first)
    two = fleet(0)
    for _ in range(2):
        two.add(url=link.url)
    url = there.url("/a")
    share(two[0], url)
    if not is_there:
        assert is_hit(get(two[1], url))
        two[1].stop(patience=20)
    follow(second, first)
    assert order(two[0], "tag", url, False)["fleet"]["recorded"]
    follow(second, first)
    for number, (new, old) in enumerate([(second, first), (first, second)], 2):
        fail_over(link, new, old)
        for running in list(two)[: 2 if is_there else 1]:
            # It may be out of use for a moment only.
            until(lambda: running.log().count("the shared cache is in use") >= number,
                  running.log, 30)
            wait_shared(running)
    if not is_there:
        two[1].start()
        wait_shared(two[1])
    answer = get(two[1], url)
    assert not is_hit(answer) and answer.body == b"2"
    link.close()


def test_what_one_has_stored_alone_costs_the_others_nothing(fleet, engine, there):
    """One response that the engine does not know of, and a restart."""
    link = Link(engine)
    gateways = fleet(0)
    one = gateways.add()
    url = there.url("/a")
    share(one, url)
    link.cut()
    other = gateways.add(url=link.url, wait=False)
    assert get(other, there.url("/other")).status == 200
    other.stop(patience=20)
    link.mend()
    other.start()
    wait_shared(other)
    share(other, there.url("/later"))
    assert is_hit(get(one, there.url("/later")))
    assert is_hit(get(one, url))
    assert one.metric("pinfold_cache_shared_purges_total", direction="received") == 0
    link.close()
