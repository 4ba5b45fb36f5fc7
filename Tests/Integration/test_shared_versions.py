"""Gateways that find in their engine what another version of the program has written, as while half of a
fleet is upgraded: with a code that is right, and a form that they do not know.

Whatever it is, requests go on; it is no damage, and stays for those who can use it.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable

import pytest
from support.fleet import get, is_hit, is_shared_hit, is_up, share, stored, wait_shared
from support.gateway import BINARY, ROOT, Gateway
from support.origin import Request, reply
from support.records import CRITICAL, UNKNOWN, Record, Records
from support.wait import SLOWDOWN, until

# The field of a generation's record that names the history of the engine's data.
HISTORY = 23


def of_another_format(record: Record) -> None:
    record.major = 2


def with_a_field_to_be_understood(record: Record) -> None:
    record.minor, record.fields[CRITICAL] = 1, b"later"


LATER = [of_another_format, with_a_field_to_be_understood]
later = pytest.mark.parametrize("later", LATER, ids=lambda change: change.__name__)


class Site:
    """Says how often it was asked. What it sends may be stored until it is told otherwise."""

    def __init__(self) -> None:
        self.count = 0
        self.control = "max-age=600"

    def __call__(self, seen: Request) -> bytes:
        self.count += 1
        return reply(b"%d" % self.count, "200 OK", f"Cache-Control: {self.control}", "Surrogate-Key: tagged")


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def there(origin, site):
    return origin(site)


class Versions:
    """Two gateways, and what a third one of a later version would write."""

    def __init__(self, fleet):
        self.gateways, self.engine = fleet, fleet.engine
        self.records = Records(fleet.key_file)

    def key(self) -> bytes:
        """That of the only URL of which there is a response."""
        key, = (one for one in self.engine.keys("pinfold:1:v:*")
                if any(len(field) == 16 for field in self.engine.command("HKEYS", one)))
        return key

    def fields(self, length: int) -> list[bytes]:
        return [one for one in self.engine.command("HKEYS", self.key()) if len(one) == length]

    def change(self, key: bytes, field: bytes, name: bytes, by: Callable[[Record], None]) -> bytes:
        """Writes a field of a hash as another version would; returns it."""
        record = self.records.read(name, self.engine.command("HGET", key, field))
        by(record)
        written = self.records.write(name, record)
        self.engine.command("HSET", key, field, written)
        return written

    def change_response(self, by: Callable[[Record], None]) -> bytes:
        field, = self.fields(16)
        return self.change(self.key(), field, self.key() + field, by)

    def response(self) -> bytes:
        field, = self.fields(16)
        return self.engine.command("HGET", self.key(), field)

    def announce(self, stream: str, by: Callable[[Record], None]) -> None:
        """Adds the last entry of a stream once more, as another version would."""
        name = b"pinfold:1:p:{fleet}:" + stream.encode()
        (_, fields), = self.engine.command("XREVRANGE", name, "+", "-", "COUNT", 1)
        assert fields[0] == b"r"
        record = self.records.read(name, fields[1])
        by(record)
        self.engine.command("XADD", name, "*", "r", self.records.write(name, record))

    @staticmethod
    def wait_removed(running: Gateway, count: int) -> None:
        """Until it knows what another one has removed."""
        until(lambda: running.metric("pinfold_cache_shared_invalidations_total", direction="received") == count,
              "it knows what was removed")

    def errors(self, running: Gateway, reason: str) -> float:
        return running.metric("pinfold_cache_shared_errors_total", reason=reason)

    def check(self) -> None:
        """Nobody takes it for damage, and the engine is in use."""
        for running in self.gateways:
            assert is_up(running)
            assert self.errors(running, "damaged") == self.errors(running, "other_secret") == 0


@pytest.fixture
def versions(fleet) -> Versions:
    return Versions(fleet(2))


@later
def test_a_response_of_a_later_version_is_a_miss_and_stays(versions, there, site, later):
    one, other = versions.gateways
    url = there.url("/a")
    share(one, url)
    written = versions.change_response(later)
    site.control = "no-store"
    for count in 2, 3:
        response = get(other, url)
        assert response.body == b"%d" % count and not is_hit(response)
    assert versions.response() == written
    assert versions.errors(other, "other_version") > 0
    # The one that has it in its own memory goes on with that.
    assert is_hit(get(one, url))
    versions.check()


@later
def test_a_response_takes_the_place_of_one_of_a_later_version(versions, there, later):
    one, other = versions.gateways
    url = there.url("/a")
    share(one, url)
    versions.change_response(later)
    assert not is_hit(share(other, url))
    field, = versions.fields(16)
    record = versions.records.read(versions.key() + field, versions.response())
    assert record.major == 1 and CRITICAL not in record.fields and record.body == b"2"
    third = versions.gateways.add()
    found = get(third, url)
    assert is_shared_hit(found) and found.body == b"2"
    versions.check()


def test_a_field_that_only_a_later_version_knows_is_passed_over(versions, there):
    one, other = versions.gateways
    url = there.url("/a")
    share(one, url)

    def enlarge(record: Record) -> None:
        record.minor, record.fields[UNKNOWN] = 7, b"of a later version"

    versions.change_response(enlarge)
    found = get(other, url)
    assert is_shared_hit(found) and found.body == b"1"
    assert versions.errors(other, "other_version") == 0
    versions.check()


@later
def test_the_number_of_a_url_that_a_later_version_has_drawn_is_left(versions, there, later):
    """Everything of the URL belongs to it: without it nothing of the URL can be used, or removed."""
    one, other = versions.gateways
    url = there.url("/a")
    share(one, url)
    # What was removed has a number of its own from then on.
    assert get(one, url, method="DELETE").status == 200
    share(one, url)
    number = b"pinfold:1:i:" + versions.key().removeprefix(b"pinfold:1:v:").removesuffix(b":")
    written = versions.change(versions.key(), b"i", number, later)
    for _ in range(3):
        assert get(other, url).status == 200
        assert versions.engine.command("HGET", versions.key(), "i") == written
    assert versions.errors(other, "other_version") > 0
    versions.check()
    # An unsafe request removes it with all the rest, by whichever gateway.
    assert get(other, url, method="DELETE").status == 200
    versions.wait_removed(one, 1)
    third = share(one, url)
    found = get(other, url)
    assert is_shared_hit(found) and found.body == third.body


@later
def test_a_lease_of_a_later_version_is_not_waited_for(versions, there, later):
    one, other = versions.gateways
    url = there.url("/a")
    share(one, url)
    name = versions.key().replace(b":v:", b":l:").removesuffix(b":")
    versions.engine.command("DEL", versions.key())
    record = Record(1, 4, 0, versions.records.secret, {13: os.urandom(16)})
    later(record)
    written = versions.records.write(name, record)
    versions.engine.command("SET", name, written, "PX", 60_000)
    response = get(other, url)
    assert response.body == b"2" and not is_hit(response)
    assert versions.engine.command("GET", name) == written
    assert other.metric("pinfold_cache_shared_waits_total", result="timed_out") == 0
    assert versions.errors(other, "other_version") > 0
    versions.check()


@later
def test_a_purge_of_a_later_version_may_be_any_and_is_carried_out_as_one_of_everything(
        versions, there, later):
    one, other = versions.gateways
    urls = [there.url(path) for path in ("/a", "/b")]
    for url in urls:
        share(one, url)
        assert is_shared_hit(get(other, url)) and is_hit(get(other, url))
    get(one, there.url("/never-stored"), method="PURGE")
    versions.announce("stream", later)
    for running in versions.gateways:
        until(lambda: all(int(get(running, url).body) > 2 for url in urls), "nothing is from before", 20)
        assert running.metric("pinfold_cache_shared_purges_total", direction="received") > 0
    versions.check()


@later
def test_a_removal_of_a_later_version_has_everything_confirmed(versions, there, later):
    one, other = versions.gateways
    url = there.url("/a")
    for removed in there.url("/b"), url:
        share(one, removed)
    assert is_shared_hit(get(other, url)) and is_hit(get(other, url))
    assert get(one, there.url("/b"), method="DELETE").status == 200
    versions.wait_removed(other, 1)
    before = other.metric("pinfold_cache_shared_made_stale_total")
    versions.announce("removed", later)
    until(lambda: other.metric("pinfold_cache_shared_made_stale_total") > before, "all is stale", 20)
    # What the engine still has is confirmed by that: it has another number if it is removed.
    versions.engine.command("DEL", versions.key())
    asked = len(there.requests)
    get(other, url)
    assert len(there.requests) == asked + 1
    versions.check()


@later
def test_a_gateway_of_a_later_version_is_not_counted_and_stays(versions, later):
    one, _ = versions.gateways
    members = b"pinfold:1:p:{fleet}:members"
    until(lambda: one.metrics().get("pinfold_fleet_members") == 2, "two are there", 20)
    field = versions.engine.command("HKEYS", members)[0]
    record = versions.records.read(members + b"/" + field, versions.engine.command("HGET", members, field))
    later(record)
    strange = os.urandom(16)
    written = versions.records.write(members + b"/" + strange, record)
    versions.engine.command("HSET", members, strange, written)
    until(lambda: versions.errors(one, "other_version") > 0, "it was seen", 20)
    assert one.metric("pinfold_fleet_members") == 2
    assert versions.engine.command("HGET", members, strange) == written
    versions.check()


@later
def test_without_the_generation_of_its_own_version_a_gateway_does_without_the_engine(
        versions, there, later):
    """What they have to agree on is not theirs: another format has to have other names."""
    one, other = versions.gateways
    share(one, there.url("/a"))
    name, = versions.engine.keys("pinfold:1:p:{fleet}:all:*")
    record = versions.records.read(name, versions.engine.command("GET", name))
    later(record)
    written = versions.records.write(name, record)
    versions.engine.command("SET", name, written)
    for running in one, other:
        wait_shared(running, up=False)
    for number in range(5):
        assert get(other, there.url(f"/{number}")).status == 200
    assert is_hit(get(one, there.url("/a")))
    assert versions.engine.command("GET", name) == written
    versions.engine.command("DEL", name)
    for running in one, other:
        wait_shared(running)
    before = stored(one)
    share(one, there.url("/b"))
    assert stored(one) > before and is_shared_hit(get(other, there.url("/b")))


def test_a_generation_that_an_earlier_version_has_begun_goes_on(versions, there):
    """It does not say of which history of the engine's data it is. The next gateway adds that."""
    one, _ = versions.gateways
    url = there.url("/a")
    share(one, url)
    name, = versions.engine.keys("pinfold:1:p:{fleet}:all:*")
    record = versions.records.read(name, versions.engine.command("GET", name))
    history = record.fields.pop(HISTORY)
    versions.engine.command("SET", name, versions.records.write(name, record), "KEEPTTL")
    third = versions.gateways.add()
    assert is_shared_hit(get(third, url))

    def fields() -> dict[int, bytes]:
        return versions.records.read(name, versions.engine.command("GET", name)).fields

    until(lambda: fields() == record.fields | {HISTORY: history}, "it says so")
    assert versions.engine.command("TTL", name) > 0
    for running in versions.gateways:
        assert running.metric("pinfold_cache_shared_errors_total", reason="begun_anew") == 0
    versions.check()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_fleet_is_restarted_one_gateway_after_the_other_under_load():
    """deploy/fleet --skew, with one program as both: nothing of it depends on how they differ."""
    done = subprocess.run(
        [str(ROOT / "deploy/fleet"), "--skew", str(BINARY), "--binary", str(BINARY)], text=True,
        capture_output=True, timeout=300 * min(SLOWDOWN, 4), env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if re.match(r"\| (old|new) ", line)]
    assert len(rows) == 6, done.stdout
    assert all(row[2] == row[3] == row[8] == "0" and row[9] == "3 of 3" for row in rows), done.stdout
