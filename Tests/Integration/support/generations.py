"""Objects of which each byte follows from the URL and a generation, and purges of them."""

from __future__ import annotations

import json
import threading

from .gateway import Gateway
from .origin import HTTPOrigin, Request, reply
from .wire import Response

# A group and a number within it: both are in the URL and in the tags.
Name = tuple[int, int]


class Generations:
    """What there is at an origin."""

    # They repeat over the objects of a group.
    sizes = [20, 3_000, 50_000, 200_000]
    groups, per_group = 3, 8

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.names: list[Name] = [
            (group, number) for group in range(self.groups) for number in range(self.per_group)]
        self.generation = dict.fromkeys(self.names, 0)

    @classmethod
    def size(cls, name: Name) -> int:
        return cls.sizes[name[1] % len(cls.sizes)]

    @classmethod
    def content(cls, name: Name, generation: int) -> bytes:
        piece = b"%02d-%02d-%010d;" % (*name, generation)
        size = cls.size(name)
        return (piece * (size // len(piece) + 1))[:size]

    @staticmethod
    def control(name: Name) -> str:
        """What its Cache-Control says."""
        return "max-age=600"

    def further(self, seen: Request) -> list[str]:
        """Further fields of a response."""
        return []

    def answer(self, seen: Request) -> bytes:
        group, number = map(int, seen.target.strip("/").split("/"))
        name = (group, number)
        with self.lock:
            generation = self.generation[name]
        tag = f'"{generation}"'
        fields = [f"Cache-Control: {self.control(name)}", f"ETag: {tag}", f"Surrogate-Key: g{group} n{number}",
                  *self.further(seen)]
        if seen.get("if-none-match") == tag:
            return reply(b"", "304 Not Modified", *fields, length=False)
        body = self.content(name, generation)
        asked = seen.get("range")
        if asked.startswith("bytes=") and seen.get("if-range") in ("", tag):
            first, _, last = asked[6:].partition("-")
            start, end = int(first), min(int(last or len(body)), len(body) - 1)
            if start <= end:
                return reply(body[start:end + 1], "206 Partial Content", *fields,
                             f"Content-Range: bytes {start}-{end}/{len(body)}")
        return reply(body, "200 OK", *fields)

    def renew(self, names: list[Name]) -> dict[Name, int]:
        """Gives objects another generation; returns which ones."""
        with self.lock:
            for one in names:
                self.generation[one] += 1
            return {one: self.generation[one] for one in names}

    def concerned(self, kind: str, name: Name) -> list[Name]:
        """What a purge of this kind removes."""
        if kind == "url":
            return [name]
        part = {"prefix": 0, "tag": 1}.get(kind)
        return [one for one in self.names if part is None or one[part] == name[part]]


def order(origin: HTTPOrigin, kind: str, name: Name, soft: bool) -> dict:
    """A purge for the API."""
    group, number = name
    return {
        "url": {"urls": [origin.url("/%d/%d" % name)]}, "prefix": {"prefixes": [origin.url(f"/{group}/")]},
        "tag": {"tags": [f"n{number}"]}, "host": {"hosts": ["127.0.0.1"]},
        "everything": {"everything": True}}[kind] | {"soft": soft}


def post(running: Gateway, wanted: dict) -> Response:
    """Purges by the API."""
    body = json.dumps(wanted).encode()
    with running.wire("admin") as wire:
        return wire.ask(
            b"POST /api/v1/cache/purge HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n" % len(body) + body)
