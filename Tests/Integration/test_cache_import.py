"""Archives that no gateway has written: what is in them is not served."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.gateway import Gateway, run_pinfold
from support.origin import reply
from support.wire import request

FRESH = "Cache-Control: max-age=600"
ENTRY, CONTENT, ENTRY_END, ARCHIVE_END, SLICE = 1, 2, 3, 4, 5
MAGIC = b"PINFOLD-CACHE-2\n"


@dataclass(frozen=True)
class Stored:
    """An entry of an archive, or a slice."""

    kind: int
    # Policy, times and since when it is stale.
    start: bytes
    # The length that its record states.
    length: int
    key: bytes
    vary: bytes
    head: bytes
    content: bytes

    @property
    def record(self) -> bytes:
        parts = (self.key, self.vary, self.head)
        return (self.start + struct.pack(">Q", self.length)
                + b"".join(struct.pack(">I", len(part)) + part for part in parts))


def checksum(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value


def read(archive: bytes) -> list[Stored]:
    assert archive.startswith(MAGIC)
    entries: list[Stored] = []
    rest = archive[len(MAGIC):]
    while rest:
        kind, size = struct.unpack(">BI", rest[:5])
        data, rest = rest[5:5 + size], rest[5 + size:]
        if kind in (ENTRY, SLICE):
            (length,) = struct.unpack(">Q", data[40:48])
            start, parts, data = data[:40], [], data[48:]
            for _ in range(3):
                (count,) = struct.unpack(">I", data[:4])
                parts.append(data[4:4 + count])
                data = data[4 + count:]
            entries.append(Stored(kind, start, length, *parts, b""))
        elif kind == CONTENT:
            entries[-1] = replace(entries[-1], content=entries[-1].content + data)
    return entries


def written(entries: list[Stored]) -> bytes:
    archive = MAGIC

    def add(kind: int, data: bytes) -> None:
        nonlocal archive
        archive += struct.pack(">BI", kind, len(data)) + data

    for entry in entries:
        add(entry.kind, entry.record)
        add(CONTENT, entry.content)
        add(ENTRY_END, struct.pack(">Q", checksum(entry.record + entry.content)))
    add(ARCHIVE_END, struct.pack(">Q", len(entries)))
    return archive


def exported(running: Gateway, file: Path) -> list[Stored]:
    done = run_pinfold("cache", "export", str(file), "--admin", "%s:%d" % running.admin)
    assert done.returncode == 0, done.stderr
    return read(file.read_bytes())


def imported(running: Gateway, file: Path, entries: list[Stored]) -> str:
    file.write_bytes(written(entries))
    done = run_pinfold("cache", "import", str(file), "--admin", "%s:%d" % running.admin)
    assert done.returncode == (0 if " 0 damaged" in done.stdout else 1), done.stderr
    return done.stdout


def field(line: bytes) -> Callable[[Stored], Stored]:
    return lambda entry: replace(entry, head=entry.head + line + b"\r\n")


def without_length(entry: Stored) -> Stored:
    return replace(entry, head=re.sub(rb"Content-Length: \d+\r\n", b"", entry.head))


def longer(entry: Stored) -> Stored:
    return replace(entry, content=entry.content * 200, length=len(entry.content) * 200)


def no_content(entry: Stored) -> Stored:
    return without_length(replace(entry, head=entry.head.replace(b"200 OK", b"204 No Content", 1)))


WHOLE = {
    "longer than it says": longer,
    "two lengths": field(b"Content-Length: 4"),
    "chunked": field(b"Transfer-Encoding: chunked"),
    "chunked without a length": lambda entry: field(b"Transfer-Encoding: chunked")(
        without_length(entry)),
    "a hop-by-hop field": field(b"Keep-Alive: timeout=5"),
    "a connection option": field(b"Connection: upgrade"),
    "an age": field(b"Age: 7"),
    "content where there can be none": no_content,
}


@pytest.mark.parametrize("change", WHOLE.values(), ids=WHOLE.keys())
def test_a_head_that_does_not_go_with_its_content_is_left_out(gateway, origin, workspace, change):
    there = origin(lambda seen: reply(seen.target.encode(), "200 OK", FRESH))
    first, second = gateway({}), gateway({})
    urls = [there.url("/good"), there.url("/evil")]
    for url in urls:
        first.ask(request(url))
    entries = exported(first, workspace / "archive")
    assert len(entries) == 2 and all(b"Content-Length: 5\r\n" in entry.head for entry in entries)
    changed = [change(entry) if entry.key.endswith(b"/evil") else entry for entry in entries]
    assert imported(second, workspace / "changed", changed) == (
        "1 stored, 0 of another trust left out, 1 damaged, 0 not accepted\n")
    asked = len(there.requests)
    # One connection, on which nothing is left over.
    with second.wire() as wire:
        for url in [urls[0], urls[1], urls[0]]:
            assert wire.ask(request(url)).body == url[-5:].encode()
    assert [seen.target for seen in there.requests[asked:]] == ["/evil"]


def test_without_a_length_the_content_says_it(gateway, origin, workspace):
    there = origin(lambda seen: reply(b"12345", "200 OK", FRESH))
    first, second = gateway({}), gateway({})
    first.ask(request(there.url("/")))
    entries = [longer(without_length(one)) for one in exported(first, workspace / "archive")]
    assert imported(second, workspace / "changed", entries).startswith("1 stored")
    response = second.ask(request(there.url("/")))
    assert response.body == b"12345" * 200 and response.get("content-length") == "1000"


def length(value: int) -> Callable[[Stored], Stored]:
    return lambda entry: replace(entry, head=re.sub(
        rb"Content-Length: \d+", b"Content-Length: %d" % value, entry.head))


def slices_of(count: int) -> Callable[[Stored], Stored]:
    return lambda entry: replace(entry, content=entry.content[:8] + struct.pack("<Q", count))


IN_PARTS = {
    "no length of the whole": without_length,
    "a length of zero": length(0),
    "a length of 2^63": length(1 << 63),
    "a length beyond 64 bits": length(1 << 64),
    "slices of a byte": slices_of(1),
    "slices of nothing": slices_of(0),
    "slices of too much": slices_of((1 << 64) - 1),
    "another status": lambda entry: replace(
        entry, head=entry.head.replace(b"200 OK", b"404 No", 1)),
    "other content": lambda entry: replace(entry, content=b"x" * 1000, length=1000),
}


@pytest.mark.parametrize("change", IN_PARTS.values(), ids=IN_PARTS.keys())
def test_parts_that_cannot_be_are_left_out(gateway, origin, workspace, change):
    body = bytes(range(256)) * 1000

    def served(seen) -> bytes:
        if not seen.get("range"):
            return reply(body, "200 OK", FRESH, 'ETag: "v"')
        first, last = (int(one) for one in seen.get("range").removeprefix("bytes=").split("-"))
        return reply(body[first:last + 1], "206 Partial Content", FRESH, 'ETag: "v"',
                     f"Content-Range: bytes {first}-{last}/{len(body)}")

    there = origin(served)
    first, second = gateway({}), gateway({})
    url = there.url("/film")
    first.ask(request(url, Range="bytes=0-9999"))
    entries = sorted(exported(first, workspace / "archive"), key=lambda entry: entry.kind)
    assert [entry.kind for entry in entries] == [ENTRY, SLICE]
    assert entries[0].head.startswith(b"PART/1.1 200 OK\r\n") and len(entries[0].content) == 16
    assert "1 stored with 1 slice, 0 of another trust left out, 0 damaged" in imported(
        gateway({}), workspace / "same", entries)
    changed = [change(entries[0]), entries[1]]
    assert ", 1 damaged, 0 not accepted" in imported(second, workspace / "changed", changed)
    asked = len(there.requests)
    assert second.ask(request(url)).body == body
    assert len(there.requests) == asked + 1


def test_a_slice_has_no_fields(gateway, origin, workspace):
    there = origin(lambda seen: reply(
        b"0123456789", "206 Partial Content", FRESH, 'ETag: "v"', "Content-Range: bytes 0-9/100"))
    first = gateway({})
    first.ask(request(there.url("/film"), Range="bytes=0-9"))
    whole, part = sorted(exported(first, workspace / "archive"), key=lambda entry: entry.kind)
    for line in b"Content-Length: 3", b"X: y":
        text = imported(gateway({}), workspace / "changed", [whole, field(line)(part)])
        assert "1 stored, 0 of another trust left out, 1 damaged, 0 not accepted" in text
