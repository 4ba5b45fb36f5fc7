"""Partial content (RFC 9111 §3.3 and §3.4): parts of responses are stored, combined under a strong
entity tag, and completed by requests for what is missing."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import pytest
from support.gateway import Gateway
from support.origin import OriginConnection, Request
from support.wait import until
from support.wire import Closed, Response, request

FRESH = "Cache-Control: max-age=600"
MEBIBYTE = 1 << 20
FETCHES = "pinfold_cache_part_fetches_total"

# Before servers of both versions.
pytestmark = pytest.mark.ways("forward", "http2-server")


@pytest.fixture
def start(through) -> Callable[..., Gateway]:
    """start(config): a gateway of the test's own."""
    return lambda config={}: through.gateway({"workers": 2} | config).gateway



def content(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


class Ranged:
    """An origin that knows ranges and If-Range, and whose content can change."""

    def __init__(self, size: int, *fields: str, tag: str = '"one"'):
        self.body = content(size)
        self.fields = [FRESH, *fields]
        self.tag = tag
        self.knows_ranges = True
        self.asked: list[Request] = []
        # Sends no more than this of a response, and then waits or breaks off.
        self.halts_after: int | None = None
        self.breaks_off = False
        self.release = threading.Event()

    @property
    def ranges(self) -> list[str]:
        return [one.get("range") for one in self.asked]

    def __call__(self, connection: OriginConnection) -> None:
        while (seen := connection.read_request()) is not None:
            self.asked.append(seen)
            if not self.answer(connection, seen):
                return

    def select(self, seen: Request) -> tuple[int, int] | None:
        wanted = seen.get("range").removeprefix("bytes=")
        condition = seen.get("if-range")
        if not wanted or not self.knows_ranges or "," in wanted:
            return None
        if condition and condition != self.tag:
            return None
        first, _, last = wanted.partition("-")
        size = len(self.body)
        if not first:
            return max(0, size - int(last)), size
        return int(first), min(int(last) + 1, size) if last else size

    def answer(self, connection: OriginConnection, seen: Request) -> bool:
        if self.tag and seen.get("if-none-match") == self.tag:
            lines = ["HTTP/1.1 304 Not Modified", *self.fields, f"ETag: {self.tag}"]
            connection.send("\r\n".join(lines) + "\r\n\r\n")
            return True
        selected = self.select(seen)
        start, end = selected or (0, len(self.body))
        if start >= len(self.body):
            connection.send("HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\n"
                            f"Content-Range: bytes */{len(self.body)}\r\n\r\n")
            return True
        lines = ["HTTP/1.1 206 Partial Content" if selected else "HTTP/1.1 200 OK", *self.fields,
                 f"Content-Length: {end - start}", "Content-Type: video/x"]
        if self.tag:
            lines.append(f"ETag: {self.tag}")
        if selected:
            lines.append(f"Content-Range: bytes {start}-{end - 1}/{len(self.body)}")
        part = b"" if seen.method == "HEAD" else self.body[start:end]
        head = ("\r\n".join(lines) + "\r\n\r\n").encode()
        if self.halts_after is not None and len(part) > self.halts_after:
            connection.send(head + part[:self.halts_after])
            self.release.wait(20)
            if self.breaks_off:
                return False
            connection.send(part[self.halts_after:])
            return True
        connection.send(head + part)
        return True


def get(gateway: Gateway, url: str, first: int | None = None, last: int | str = "",
        **fields: str) -> Response:
    if first is not None:
        fields["Range"] = f"bytes={first}-{last}"
    return gateway.get(url, **fields)


def is_part(response: Response, server: Ranged, first: int, last: int) -> bool:
    return (response.status == 206 and response.body == server.body[first:last + 1]
            and response.get("content-range") == f"bytes {first}-{last}/{len(server.body)}")


def hit(response: Response) -> bool:
    return "hit" in response.cache_status


@pytest.fixture
def there(through):
    """Makes an origin, and its URL."""
    def make(size: int, *fields: str, **options: str) -> tuple[Ranged, str]:
        server = Ranged(size, *fields, **options)
        return server, through.scripted_origin(server).url("/film")
    return make


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("tag", ['"one"', 'W/"one"', ""])
def test_a_part_is_stored_and_answers_what_is_within_it(start, there, tag, workers):
    server, url = there(10_000, tag=tag)
    running = start({"workers": workers})
    first = get(running, url, 1000, 4999)
    assert is_part(first, server, 1000, 4999)
    assert "stored" in first.cache_status
    for start, end in ((1000, 4999), (1000, 1000), (4999, 4999), (2000, 2999)):
        part = get(running, url, start, end)
        assert is_part(part, server, start, end) and hit(part)
        assert part.get("content-type") == "video/x"
    assert server.ranges == ["bytes=1000-4999"]


def test_parts_are_combined(start, there):
    server, url = there(10_000)
    running = start({})
    assert is_part(get(running, url, 2000, 3999), server, 2000, 3999)
    assert is_part(get(running, url, 4000, 5999), server, 4000, 5999)
    part = get(running, url, 2500, 5499)
    assert is_part(part, server, 2500, 5499) and hit(part)
    # What is missing, and only that.
    part = get(running, url, 5000, 7999)
    assert is_part(part, server, 5000, 7999)
    assert part.cache_status["fwd"] == "partial"
    assert server.ranges[2:] == ["bytes=6000-7999"]
    assert server.asked[2].get("if-range") == '"one"'
    part = get(running, url, 2000, 7999)
    assert is_part(part, server, 2000, 7999) and hit(part)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("size", [10_000, 5 * MEBIBYTE + 17])
def test_parts_are_completed_to_a_whole(start, there, size, workers):
    server, url = there(size)
    running = start({"workers": workers})
    half = size // 2
    assert is_part(get(running, url, 0, half - 1), server, 0, half - 1)
    whole = get(running, url)
    assert whole.status == 200 and whole.body == server.body
    assert whole.get("content-length") == str(size) and not whole.get("content-range")
    assert server.ranges == [f"bytes=0-{half - 1}", f"bytes={half}-"]
    whole = get(running, url)
    assert whole.status == 200 and whole.body == server.body and hit(whole)
    suffix = get(running, url, Range="bytes=-100")
    assert is_part(suffix, server, size - 100, size - 1) and hit(suffix)
    assert len(server.asked) == 2


def test_seeking_in_a_film(start, there):
    server, url = there(6 * MEBIBYTE)
    running = start({})
    chosen = random.Random(5)
    for _ in range(40):
        start = chosen.randrange(len(server.body))
        end = min(len(server.body), start + chosen.randrange(1, 3 * MEBIBYTE)) - 1
        assert is_part(get(running, url, start, end), server, start, end)
    asked = len(server.asked)
    assert get(running, url).body == server.body
    assert len(server.asked) <= asked + 1
    for start in (0, 3 * MEBIBYTE - 5, 5 * MEBIBYTE):
        part = get(running, url, start)
        assert is_part(part, server, start, len(server.body) - 1) and hit(part)


def test_parts_of_different_contents_are_never_mixed(start, there):
    server, url = there(3 * MEBIBYTE)
    running = start({})
    old = server.body
    assert is_part(get(running, url, 0, MEBIBYTE - 1), server, 0, MEBIBYTE - 1)
    server.body, server.tag = content(len(old), 2), '"two"'
    # It is still fresh, and is found to be outdated when more of it is asked for.
    whole = get(running, url)
    assert whole.status == 200 and whole.body == server.body
    assert get(running, url, 0, 99).body == server.body[:100]


def test_a_part_without_a_strong_tag_is_not_combined(start, there):
    server, url = there(10_000, tag='W/"one"')
    running = start({})
    get(running, url, 0, 999)
    server.body = content(10_000, 2)
    assert is_part(get(running, url, 500, 1499), server, 500, 1499)
    assert get(running, url, 500, 1499).body == server.body[500:1500]
    assert get(running, url).body == server.body
    assert server.ranges == ["bytes=0-999", "bytes=500-1499", ""]


def test_a_server_that_stops_to_know_ranges_is_understood(start, there):
    server, url = there(3 * MEBIBYTE)
    running = start({})
    get(running, url, 0, 999_999)
    server.knows_ranges = False
    assert get(running, url).body == server.body
    part = get(running, url, 2_000_000, 2_999_999)
    assert is_part(part, server, 2_000_000, 2_999_999) and hit(part)
    assert len(server.asked) == 2


@pytest.mark.parametrize("workers", [1, 2])
def test_of_a_whole_sent_instead_of_a_part_everything_is_stored(start, there, workers):
    server, url = there(3 * MEBIBYTE)
    running = start({"workers": workers})
    get(running, url, 0, 99)
    server.knows_ranges = False
    part = get(running, url, 2_600_000, 2_600_099)
    assert is_part(part, server, 2_600_000, 2_600_099)

    def is_complete() -> bool:
        whole = get(running, url, **{"Cache-Control": "only-if-cached"})
        return whole.status == 200 and hit(whole) and whole.body == server.body

    until(is_complete, "what precedes the part is stored as well")
    assert len(server.asked) == 2


def test_a_part_that_breaks_off_is_resumed(start, there):
    server, url = there(4 * MEBIBYTE)
    server.halts_after, server.breaks_off = 1_500_000, True
    server.release.set()
    running = start({})
    whole = get(running, url, 0)
    assert is_part(whole, server, 0, len(server.body) - 1)
    assert server.ranges == ["bytes=0-", "bytes=1500000-", "bytes=3000000-"]


def test_what_arrived_before_the_client_left_is_kept(start, there):
    server, url = there(8 * MEBIBYTE)
    server.halts_after = 2_500_000
    running = start({})
    with running.wire() as wire:
        wire.send(request(url, Range="bytes=0-"))
        assert wire.read_head().status == 206
        assert wire.read_exactly(2_500_000) == server.body[:2_500_000]
        wire.reset()
    until(lambda: running.metric("pinfold_client_connections_open") <= 1, "it left")
    server.release.set()
    server.halts_after = None
    part = get(running, url, 0, 2_000_000)
    assert is_part(part, server, 0, 2_000_000) and hit(part)
    assert len(server.asked) == 1


@pytest.mark.parametrize("workers", [1, 2])
def test_a_crowd_reads_a_part_while_it_arrives(start, there, workers):
    server, url = there(4 * MEBIBYTE)
    server.halts_after = 2_000_000
    running = start({"workers": workers})
    wires = [running.wire() for _ in range(8)]
    for wire in wires:
        wire.send(request(url, Range="bytes=0-"))
        assert wire.read_head().status == 206
        assert wire.read_exactly(1_900_000) == server.body[:1_900_000]
    server.release.set()
    for wire in wires:
        assert wire.read_exactly(len(server.body) - 1_900_000) == server.body[1_900_000:]
        wire.close()
    assert len(server.asked) == 1


def test_a_client_that_reads_nothing_holds_no_other_up(start, there):
    server, url = there(24 * MEBIBYTE)
    running = start({"workers": 1})
    with running.wire() as slow:
        slow.send(request(url, Range="bytes=0-"))
        until(lambda: server.asked, "it is under way")
        part = get(running, url, 0)
        assert is_part(part, server, 0, len(server.body) - 1)
        assert slow.read().body == server.body


@pytest.mark.parametrize("asks", [None, "bytes=0-1499", "bytes=0-99,5000-5099"])
@pytest.mark.parametrize("tag", ['W/"one"', ""])
@pytest.mark.parametrize("memory", [0, "64MiB"])
def test_a_part_on_disk_without_a_strong_tag_is_never_taken_for_more(
        start, there, memory, tag, asks):
    # A slice on disk says only once it is read how much of it there is.
    server, url = there(10_000, tag=tag)
    running = start({"cache": {"memory": memory}})
    running.wait_for_disk()
    get(running, url, 0, 999)
    if memory:
        running.restart()
        running.wait_for_disk()
    fields = {"Range": asks} if asks else {}
    response = get(running, url, **fields)
    if asks == "bytes=0-1499":
        assert is_part(response, server, 0, 1499)
    else:
        assert response.status == 200 and response.body == server.body
    assert not hit(response)


def test_parts_survive_a_restart(start, there):
    server, url = there(5 * MEBIBYTE)
    running = start({})
    running.wait_for_disk()
    get(running, url, 0, 2_999_999)
    running.restart()
    running.wait_for_disk()
    part = get(running, url, 1_000_000, 2_499_999)
    assert is_part(part, server, 1_000_000, 2_499_999) and hit(part)
    assert get(running, url).body == server.body
    assert server.ranges == ["bytes=0-2999999", "bytes=3000000-"]


def test_an_unsafe_request_makes_parts_unusable(start, there):
    server, url = there(10_000)
    running = start({})
    get(running, url, 0, 4999)
    assert hit(get(running, url, 0, 4999))
    running.ask(request(url, method="POST", body=b"x", Connection="close"))
    part = get(running, url, 0, 4999)
    assert is_part(part, server, 0, 4999) and not hit(part)


def test_stale_parts_are_validated_once(start, there):
    server, url = there(10_000)
    server.fields[0] = "Cache-Control: max-age=1"
    running = start({})
    get(running, url, 0, 4999)
    time.sleep(2.1)
    server.fields[0] = FRESH
    part = get(running, url, 1000, 1999)
    assert is_part(part, server, 1000, 1999)
    assert part.cache_status["fwd-status"] == 304
    assert hit(get(running, url, 0, 4999))
    assert len(server.asked) == 2


def test_only_if_cached_gets_what_is_there(start, there):
    server, url = there(10_000)
    running = start({})
    get(running, url, 0, 4999)
    part = get(running, url, 0, 99, Cache_Control="only-if-cached")
    assert is_part(part, server, 0, 99)
    assert get(running, url, 0, 5000, Cache_Control="only-if-cached").status == 504
    assert get(running, url, Cache_Control="only-if-cached").status == 504
    assert len(server.asked) == 1


def test_conditions_and_head_are_answered_from_parts(start, there):
    server, url = there(10_000)
    running = start({})
    get(running, url, 0, 4999)
    assert get(running, url, If_None_Match='"one"').status == 304
    changed = get(running, url, 0, 99, If_Range='"other"')
    assert changed.status == 200 and changed.body == server.body
    with running.wire() as wire:
        wire.send(request(url, method="HEAD"))
        head = wire.read("HEAD")
    assert head.status == 200 and head.get("content-length") == "10000"
    assert get(running, url, 10_000, 10_010).status == 416
    assert server.ranges == ["bytes=0-4999", "bytes=5000-"]


def test_parts_of_variants_are_apart(start, there):
    server, url = there(10_000, "Vary: Accept-Language")
    running = start({})
    for language in ("de", "en"):
        get(running, url, 0, 999, Accept_Language=language)
    for language in ("de", "en"):
        assert hit(get(running, url, 0, 999, Accept_Language=language))
    assert len(server.asked) == 2


def test_what_must_not_be_stored_is_not(start, there):
    server, url = there(10_000)
    server.fields[0] = "Cache-Control: no-store"
    running = start({})
    for _ in range(2):
        part = get(running, url, 0, 999)
        assert is_part(part, server, 0, 999) and not hit(part)
    assert len(server.asked) == 2
    assert running.metric("pinfold_cache_stores_total") == 0


@pytest.mark.parametrize("numbers", [
    "0-18446744073709551613/18446744073709551614", "0-0/18446744073709551614",
    "0-9/9223372036854775808", "9223372036854775806-9223372036854775807/9223372036854775808",
    "0-9/9223372036854775807"])
@pytest.mark.parametrize("asks", [True, False])
def test_a_part_of_what_no_server_can_have_ends_nothing(start, through, numbers, asks):
    """A server that lies about its size, also to those who did not ask for a part."""
    def lies(connection: OriginConnection) -> None:
        while connection.read_request() is not None:
            connection.send("HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=600\r\n"
                            f'ETag: "x"\r\nContent-Range: bytes {numbers}\r\n'
                            "Transfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n")

    url = through.scripted_origin(lies).url("/film")
    running = start({"workers": 1})
    for first in (0 if asks else None, None, 9_223_372_036_854_775_800):
        try:
            get(running, url, first, 9 if first == 0 else "")
        except (Closed, TimeoutError):
            pass  # What is missing never comes.
    assert running.metric("pinfold_cache_stores_total") >= 0


def test_a_complete_response_is_not_replaced_by_a_part(start, there):
    server, url = there(10_000)
    running = start({})
    get(running, url)
    part = get(running, url, 0, 99, Cache_Control="no-cache")
    assert is_part(part, server, 0, 99)
    assert hit(get(running, url))


def test_a_part_that_ends_early_is_cut_off(start, there):
    """Nothing that is missing is made up."""
    server, url = there(10_000, tag='W/"one"')
    server.halts_after, server.breaks_off = 500, True
    server.release.set()
    running = start({})
    with pytest.raises(Closed):
        get(running, url, 0, 999)
    server.halts_after = None
    part = get(running, url, 0, 999)
    assert is_part(part, server, 0, 999) and not hit(part)


# Slices


def sliced(start, url: str, **options: object) -> Gateway:
    host = url.split("//")[1].split(":")[0]
    return start({"hosts": [{"match": [host], "cache": {"slice": "1MiB"}}], **options})


@pytest.mark.parametrize("workers", [1, 2])
def test_slices_are_asked_for(start, there, workers):
    server, url = there(3 * MEBIBYTE + 5)
    running = sliced(start, url, workers=workers)
    part = get(running, url, MEBIBYTE + 10, MEBIBYTE + 19)
    assert is_part(part, server, MEBIBYTE + 10, MEBIBYTE + 19)
    assert server.ranges == ["bytes=1048576-2097151"]
    part = get(running, url, MEBIBYTE, 2 * MEBIBYTE - 1)
    assert is_part(part, server, MEBIBYTE, 2 * MEBIBYTE - 1)
    assert len(server.asked) == 1
    whole = get(running, url)
    assert whole.status == 200 and whole.body == server.body
    assert server.ranges[1:] == ["bytes=0-1048575", "bytes=2097152-3145727", "bytes=3145728-"]
    assert hit(get(running, url))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_crowd_asks_for_each_slice_once(start, there, workers):
    server, url = there(4 * MEBIBYTE)
    running = sliced(start, url, workers=workers)
    # All begin in the first slice: before anything is known, nobody waits for another's slice.
    wires = [running.wire() for _ in range(12)]
    for number, wire in enumerate(wires):
        wire.send(request(url, Range=f"bytes={number * 90_000}-"))
    for number, wire in enumerate(wires):
        part = wire.read()
        assert is_part(part, server, number * 90_000, len(server.body) - 1)
        wire.close()
    assert sorted(server.ranges) == sorted(
        ["bytes=0-1048575", "bytes=1048576-2097151", "bytes=2097152-3145727", "bytes=3145728-"])


def test_slices_of_a_server_that_knows_no_ranges(start, there):
    server, url = there(3 * MEBIBYTE)
    server.knows_ranges = False
    running = sliced(start, url)
    assert get(running, url).body == server.body
    part = get(running, url, 2 * MEBIBYTE, 2 * MEBIBYTE + 9)
    assert is_part(part, server, 2 * MEBIBYTE, 2 * MEBIBYTE + 9) and hit(part)
    assert len(server.asked) == 1


def test_slices_beyond_the_end_are_the_servers_to_refuse(start, there):
    server, url = there(1000)
    running = sliced(start, url)
    assert get(running, url, 5 * MEBIBYTE).status == 416
    assert get(running, url, 10, 19).body == server.body[10:20]


# Several ranges


def parts_of(response: Response) -> list[tuple[str, bytes]]:
    """The Content-Range and the content of each part."""
    kind, _, boundary = response.get("content-type").partition("; boundary=")
    assert kind == "multipart/byteranges"
    before, *parts, after = response.body.split(b"\r\n--" + boundary.encode())
    assert before == b"" and after == b"--\r\n"
    found = []
    for part in parts:
        head, _, body = part.partition(b"\r\n\r\n")
        fields = dict(line.split(": ") for line in head.decode().split("\r\n")[1:])
        assert fields["Content-Type"] == "video/x"
        found.append((fields["Content-Range"], body))
    return found


@pytest.mark.parametrize("size", [1000, 100_000, 3 * MEBIBYTE])
@pytest.mark.parametrize("memory", ["64MiB", "1MiB"])
@pytest.mark.parametrize("stored", ["whole", "parts"])
def test_several_ranges_are_sent_in_parts(start, there, size, memory, stored):
    server, url = there(size)
    running = start({"cache": {"memory": memory}})
    running.wait_for_disk()
    get(running, url, *([] if stored == "whole" else [0]))
    def served() -> Response:
        return get(running, url, Range=f"bytes=900-999,0-0, {size // 2}-{size // 2 + 49},-10")
    until(lambda: hit(served()), "it is stored")
    response = served()
    if size == 1000:
        # The first and the last overlap.
        assert response.status == 200 and response.body == server.body
        return
    assert response.status == 206 and int(response.get("content-length")) == len(response.body)
    assert not response.get("content-range")
    wanted = [(900, 999), (0, 0), (size // 2, size // 2 + 49), (size - 10, size - 1)]
    assert parts_of(response) == [
        (f"bytes {first}-{last}/{size}", server.body[first:last + 1]) for first, last in wanted]


@pytest.mark.parametrize("wanted, status", [
    ("bytes=0-9,5-20", 200), ("bytes=" + ",".join(f"{n}-{n}" for n in range(17)), 200),
    ("bytes=0-1,x", 200), ("bytes=0-1,,2000-", 206), ("bytes=2000-,3000-", 416),
])
def test_ranges_that_make_no_sense(start, there, wanted, status):
    server, url = there(1000)
    running = start({})
    get(running, url)
    response = get(running, url, Range=wanted)
    assert response.status == status
    if status == 200:
        assert response.body == server.body
    if status == 206:
        assert is_part(response, server, 0, 1)


def test_a_crowd_that_asks_for_the_same_part_asks_once(start, there):
    server, url = there(50_000)
    server.halts_after = 10
    running = start({"workers": 2})
    wires = [running.wire() for _ in range(10)]
    for wire in wires:
        wire.send(request(url, Range="bytes=1000-1999"))
    until(lambda: server.asked, "it is under way")
    server.release.set()
    for wire in wires:
        assert is_part(wire.read(), server, 1000, 1999)
        wire.close()
    assert len(server.asked) == 1
