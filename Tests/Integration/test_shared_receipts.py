"""Whom the receipt of a purge names: those who have carried it out, those who may yet serve what was purged,
and those who were away for so long that they confirm it first."""

from __future__ import annotations

import os
import struct

import pytest
from support.fleet import Fleet, Link, get, wait_shared
from support.gateway import Gateway
from support.origin import reply
from support.records import Record, Records
from support.wait import until
from test_shared_cache import cache, purge

MEMBERS = b"pinfold:1:p:{fleet}:members"
# Numbers of fields.
TOKEN, NAME, TIME, GRACE = 13, 14, 16, 22
OWN_GRACE = 10_000


class Members:
    """What the gateways of a fleet have written of themselves."""

    def __init__(self, fleet: Fleet):
        self.engine, self.records = fleet.engine, Records(fleet.key_file)

    def fields(self) -> list[bytes]:
        return self.engine.command("HKEYS", MEMBERS)

    def read(self, field: bytes) -> Record:
        return self.records.read(MEMBERS + b"/" + field, self.engine.command("HGET", MEMBERS, field))

    def named(self, name: bytes) -> bytes:
        """The field of a gateway."""
        field, = (one for one in self.fields() if self.read(one).fields[NAME] == name)
        return field

    def write(self, field: bytes, record: Record) -> None:
        self.engine.command("HSET", MEMBERS, field, self.records.write(MEMBERS + b"/" + field, record))

    def add(self, like: bytes, name: bytes, age: int, grace: int | None) -> None:
        """Another gateway, which was last heard of so many seconds ago."""
        record = self.read(like)
        record.fields[TOKEN], record.fields[NAME] = os.urandom(16), name
        self.set(record, age, grace)
        self.write(record.fields[TOKEN].hex().encode(), record)

    @staticmethod
    def set(record: Record, age: int, grace: int | None) -> None:
        seconds, = struct.unpack_from("<q", record.fields[TIME])
        record.fields[TIME] = struct.pack("<qB", seconds - age, 0)
        record.fields.pop(GRACE, None)
        if grace is not None:
            record.fields[GRACE] = struct.pack("<q", grace)


@pytest.fixture
def there(origin):
    return origin(lambda _: reply(b"body", "200 OK", "Cache-Control: max-age=600"))


@pytest.fixture
def one(fleet) -> Gateway:
    return fleet(1, grace=f"{OWN_GRACE}ms")[0]


@pytest.fixture
def members(fleet, one) -> Members:
    made = Members(fleet(0))
    until(lambda: len(made.fields()) == 1, "it has said that it is there", 20)
    return made


def test_a_gateway_says_for_how_long_it_uses_what_it_has(members):
    assert members.read(members.named(b"gateway-0")).fields[GRACE] == struct.pack("<q", OWN_GRACE)


@pytest.mark.parametrize(("age", "grace", "expected"), [
    # Each gateway's own grace counts, and not that of the one that asks.
    (60, 3_600_000, "unconfirmed"), (6, 1_000, "away"), (60, 1_000, "away"),
    # Earlier versions do not say: then the own one is all that there is.
    (6, None, "unconfirmed"), (60, None, "away"),
    # What nobody configures counts as the most that one can.
    (3600, 1 << 62, "unconfirmed"), (3600, -1, "away"),
    # A day later it is forgotten.
    (90_000, 1 << 62, None),
])
def test_one_that_has_not_carried_it_out_is_named_by_what_it_does(one, members, there, age, grace, expected):
    members.add(members.named(b"gateway-0"), b"other", age, grace)
    fleet = purge(one, there.url("/a"))["fleet"]
    assert fleet["confirmed"] == ["gateway-0"]
    assert fleet["unconfirmed"] == (["other"] if expected == "unconfirmed" else [])
    assert fleet["away"] == (["other"] if expected == "away" else [])
    assert ("away: other\n" in cache(one, "purge", there.url("/a"))) == (expected == "away")


def test_one_that_was_started_again_is_not_away(one, members, there):
    members.add(members.named(b"gateway-0"), b"gateway-0", 60, 1_000)
    assert purge(one, there.url("/a"))["fleet"]["away"] == []


def test_one_that_cannot_be_read_hides_nobody(one, members, there):
    """Its field has another length than any version gives it."""
    own = members.named(b"gateway-0")
    record = members.read(own)
    record.fields[TOKEN], record.fields[GRACE] = os.urandom(16), b"short"
    members.write(record.fields[TOKEN].hex().encode(), record)
    members.add(own, b"other", 60, 3_600_000)
    assert purge(one, there.url("/a"))["fleet"]["unconfirmed"] == ["other"]


def test_one_that_is_cut_off_is_named_until_its_own_grace_is_over(fleet, one, members, there):
    link = Link(fleet(0).engine)
    try:
        other = fleet(0).add(url=link.url, grace="1h")
        url = there.url("/a")
        get(one, url)
        get(other, url)
        until(lambda: len(members.fields()) == 2, "it is there", 20)
        assert purge(one, there.url("/b"))["fleet"]["confirmed"] == ["gateway-0", "gateway-1"]
        link.cut()
        wait_shared(other, up=False)
        field = members.named(b"gateway-1")
        record = members.read(field)
        members.set(record, 60, 3_600_000)
        members.write(field, record)
        assert purge(one, url)["fleet"]["unconfirmed"] == ["gateway-1"]
        # It comes back, and carries it out.
        link.mend()
        wait_shared(other)
        until(lambda: purge(one, url)["fleet"]["confirmed"] == ["gateway-0", "gateway-1"], "it has heard", 20)
        # One that ends in order is not missed.
        other.stop(patience=20)
        fleet_now = purge(one, url)["fleet"]
        assert fleet_now["unconfirmed"] == fleet_now["away"] == []
    finally:
        link.close()
