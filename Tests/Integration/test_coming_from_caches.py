"""The tables on the page ComingFromCaches: each example is a configuration that loads and prints itself, and does what
the lines of nginx, Squid and Varnish beside it do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from support.checkout import PAGES
from support.gateway import Gateway, besides_open_hosts, merged, run_pinfold
from support.origin import HTTPOrigin, Request, reply
from support.wait import until
from support.wire import Response


class Row(NamedTuple):
    nginx: str
    squid: str
    varnish: str
    yaml: str

    @property
    def name(self) -> str:
        """What the example says."""
        return re.sub(r"[`\"]|www\.example\.com", "", self.yaml)

    @property
    def example(self) -> str:
        return self.yaml.strip("`") + "\n"


def rows() -> list[Row]:
    found = []
    for line in PAGES["ComingFromCaches"].read_text().splitlines():
        cells = re.fullmatch(r"\| (.*) \| (.*) \| (.*) \| (`[^`]+`) \|", line)
        if cells:
            found.append(Row(*cells.groups()))
    return found


ROWS = rows()


def test_every_row_has_lines_of_others_and_one_example():
    assert len(ROWS) >= 40
    assert len({row.yaml for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert {row.nginx, row.squid, row.varnish} != {"-"}, row


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_example_is_a_configuration(row: Row, tmp_path: Path):
    file = tmp_path / "pinfold.yaml"
    file.write_text(row.example)
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 0, done.stderr
    # Of the RFC, of cookies for all, and of a disk that is smaller than that of the example.
    warnings = [line for line in besides_open_hosts(done.stderr).splitlines()
                if not re.search("outside RFC 9111|sent to all others|file system", line)]
    assert warnings == []
    assert set(yaml.safe_load(row.example)) <= set(yaml.safe_load(done.stdout))
    (tmp_path / "printed.yaml").write_text(done.stdout)
    again = run_pinfold("check", "--config", str(tmp_path / "printed.yaml"))
    assert (again.returncode, again.stdout) == (0, done.stdout)


# What they do


class Running:
    """A gateway with an example, and a server whose answers have fields that a test chooses."""

    def __init__(self, gateway, origin, row: Row):
        self.fields: list[str] = []
        self.status = "200 OK"
        self.body = b""
        self.there: HTTPOrigin = origin(self.answer)
        example = yaml.safe_load(row.example.replace("www.example.com", "127.0.0.1"))
        example.get("cache", {}).pop("path", None)
        example.get("cache", {}).pop("disk", None)
        self.gateway: Gateway = gateway(merged({}, example))

    def answer(self, asked: Request) -> bytes:
        body = self.body or f"{len(self.there.requests)} {asked.target}".encode()
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", asked.get("range"))
        if wanted and self.body:
            first, last = int(wanted[1]), min(int(wanted[2]), len(body) - 1)
            return reply(body[first:last + 1], "206 Partial Content", *self.fields,
                         f"Content-Range: bytes {first}-{last}/{len(body)}")
        return reply(body, self.status, *self.fields)

    def get(self, path: str = "/x", **fields: str) -> Response:
        return self.gateway.get(self.there.url(path), **fields)

    def reused(self, path: str = "/x", *own: str, status: str = "200 OK", **fields: str) -> bool:
        self.fields, self.status = list(own), status
        self.get(path, **fields)
        return "hit" in self.get(path, **fields).cache_status

    def ttl(self, path: str = "/x", *own: str, status: str = "200 OK") -> int:
        """The seconds for which the response is fresh."""
        assert self.reused(path, *own, status=status), (path, own, status)
        found = re.search(r"ttl=(\d+)", self.get(path).get("cache-status"))
        assert found
        return int(found[1]) + 5 - (int(found[1]) + 5) % 10

    def same(self, one: tuple[str, dict], other: tuple[str, dict], *own: str) -> bool:
        """Whether two requests get one response."""
        self.fields = ["Cache-Control: max-age=600", *own]
        return self.get(one[0], **one[1]).body == self.get(other[0], **other[1]).body


HOUR, DAY = 3600, 86400
STALE = ("Cache-Control: max-age=10", "Age: 20")


def stale(at: Running, instead_of: str) -> bool:
    at.fields = list(STALE)
    first = at.get("/stale")
    if instead_of == "nothing":
        at.there.close()
    at.status = f"{instead_of} Error"
    return at.get("/stale").body == first.body


def gone(at: Running) -> bool:
    """Offline, nothing is asked."""
    response = at.get("/x")
    return response.status == 504 and not at.there.requests


def keyed(*pairs: tuple[str, str, bool]) -> Callable[[Running], bool]:
    return lambda at: all(at.same((one, {}), (other, {})) == same for one, other, same in pairs)


def by(field: str, *pairs: tuple[str, str, bool], vary: bool = True) -> Callable[[Running], bool]:
    def check(at: Running) -> bool:
        own = [f"Vary: {field}"] if vary else []
        name = field.replace("-", "_")
        return all(at.same(("/x", {name: one}), ("/x", {name: other}), *own) == same
                   for one, other, same in pairs)
    return check


def sliced(at: Running) -> bool:
    at.body = b"x" * (3 << 20)
    at.fields = ["Cache-Control: max-age=600", 'ETag: "1"']
    response = at.get("/large", Range="bytes=1500000-1500009")
    return response.status == 206 and "range" in at.there.requests[0] \
        and at.there.requests[0].get("range") == "bytes=1048576-2097151"


def is_filled(at: Running, expected: bool) -> bool:
    """Whether a response is received to its end although its client leaves."""
    at.body = b"x" * (8 << 20)
    at.fields = ["Cache-Control: max-age=600"]
    wire = at.gateway.wire()
    wire.send(f"GET {at.there.url('/fill')} HTTP/1.1\r\nHost: {at.there.authority}\r\n\r\n".encode())
    wire.read_until(b"\r\n\r\n")
    wire.close()
    if expected:
        until(lambda: at.gateway.metric("pinfold_cache_stores_total") >= 1, "stored")
    else:
        until(lambda: at.gateway.metric("pinfold_cache_stores_aborted_total") >= 1, "given up")
    return ("hit" in at.get("/fill").cache_status) == expected


def cookies(stored: bool, kept: bool) -> Callable[[Running], bool]:
    def check(at: Running) -> bool:
        if at.reused("/x", "Cache-Control: max-age=60, public", "Set-Cookie: a=1") != stored:
            return False
        return not stored or ("set-cookie" in at.get()) == kept
    return check


PUBLIC = "Cache-Control: max-age=60"


def purged(at: Running) -> bool:
    if not at.reused("/x", PUBLIC):
        return False
    answer = at.gateway.ask(f"PURGE {at.there.url('/x')} HTTP/1.1\r\nHost: {at.there.authority}\r\n"
                            "Connection: close\r\n\r\n")
    return answer.status == 200 and "hit" not in at.get("/x").cache_status


CHECKS: dict[str, Callable[[Running], bool]] = {
    "{ default: 1h } } }]": lambda at: at.ttl() == HOUR and at.ttl("/y", PUBLIC) == 60,
    '{ "404": 30s }': lambda at: at.ttl("/x", status="404 Not Found") == 30 and not at.reused("/y"),
    '{ "301": 10m': lambda at: at.ttl("/x", "Location: /", status="302 Found") == 600,
    "2xx: 1m": lambda at: all(at.ttl(f"/{status}", status=f"{status} X") == 60
                              for status in (200, 302, 404, 503))
    and not at.reused("/401", status="401 X"),
    "{ byStatus: { 5xx: 5s } }": lambda at: at.reused("/x", status="503 X") and not at.reused("/y"),
    '["/static/**"], cache: { freshness: { default: 1d } }':
        lambda at: at.ttl("/static/a") == DAY and not at.reused("/a"),
    '"/**/*.js"]': lambda at: at.ttl("/a/b.css") == DAY and at.ttl("/x.js?v=1") == DAY
    and not at.reused("/x.jsx"),
    "{ minimum: 1d, maximum: 7d }": lambda at: at.ttl("/x", PUBLIC) == DAY
    and at.ttl("/y", "Cache-Control: max-age=999999") == 7 * DAY,
    "{ maximum: 3d }": lambda at: at.ttl("/x", "Cache-Control: max-age=999999") == 3 * DAY,
    "noCache, mustRevalidate] }": lambda at: at.ttl(
        "/x", "Cache-Control: no-store, private, no-cache, must-revalidate") == HOUR,
    "overrides: [noStore] }": lambda at: at.ttl("/x", "Cache-Control: no-store") == HOUR
    and not at.reused("/y", "Cache-Control: private"),
    "default: 1h, overrides: [private] }": lambda at: at.ttl(
        "/x", "Cache-Control: private") == HOUR and not at.reused("/y", "Cache-Control: no-store"),
    "overrides: [mustRevalidate] }": lambda at: not at.reused(
        "/x", "Cache-Control: max-age=0, must-revalidate"),
    "overrides: [requestNoCache] }": lambda at: at.reused(
        "/x", PUBLIC, Cache_Control="no-cache"),
    "Surrogate-Control": lambda at: at.ttl(
        "/x", "Surrogate-Control: max-age=3600", "Cache-Control: no-store") == HOUR,
    "{ enabled: false }": lambda at: not at.reused("/x", PUBLIC),
    "{ store: false }": lambda at: at.reused("/x", PUBLIC) and not at.reused("/api/x", PUBLIC),
    "cookies: [": lambda at: at.reused("/x", PUBLIC, Cookie="a=1")
    and not at.reused("/x", PUBLIC, Cookie="session_id=1"),
    "fields: [X-Preview]": lambda at: at.reused("/x", PUBLIC)
    and not at.reused("/x", PUBLIC, X_Preview="1"),
    "query: [nocache]": lambda at: at.reused("/x?a", PUBLIC) and not at.reused("/x?nocache", PUBLIC),
    "setCookie: strip": cookies(True, False), "setCookie: never": cookies(False, False),
    "setCookie: always": cookies(True, True),
    "requestCookie": lambda at: at.reused("/static/x", Cookie="a=1")
    and not at.reused("/x", Cookie="a=1"),
    "maximumObject: 8MiB": lambda at: at.reused("/x", PUBLIC),
    "{ keep: [] }": keyed(("/x?a=1", "/x?b=2", True), ("/x?a=1", "/y?a=1", False)),
    "{ keep: [id] }": keyed(("/x?a=1&id=1", "/x?id=1&b=2", True), ("/x?id=1", "/x?id=2", False)),
    'ignore: ["utm_*", fbclid]': keyed(("/x?a=1&utm_b=2", "/x?a=1&fbclid=1", True),
                                       ("/x?a=1", "/x?a=2", False)),
    "{ sort: true }": keyed(("/x?a=1&b=2", "/x?b=2&a=1", True), ("/x?a=1&a=2", "/x?a=2&a=1", False)),
    "key: [X-Tenant]": by("X-Tenant", ("a", "a", True), ("a", "b", False), vary=False),
    "key: [Cookie]": lambda at: at.reused("/x", "Cache-Control: private, max-age=60", Cookie="a=1")
    and "hit" not in at.get("/x", Cookie="a=2").cache_status,
    "ignore: [User-Agent]": by("User-Agent", ("a", "b", True)),
    "normalise: [Accept-Encoding]": by("Accept-Encoding", ("gzip, br;q=0.5", "br, gzip", True),
                                       ("gzip", "br", False)),
    "normalise: [Accept-Language]": by("Accept-Language", ("de, en;q=0.5", "de,en;q=0.1", True),
                                       ("de", "en", False)),
    "staleIfError: 1d } }]": lambda at: stale(at, "503"),
    "staleWhenUnreachable": lambda at: stale(at, "nothing"),
    "offline: true": gone,
    "collapse: 5s": lambda at: at.reused("/x", PUBLIC),
    "fill: always": lambda at: is_filled(at, True),
    "fill: whileWanted": lambda at: is_filled(at, False),
    "slice: 1MiB": sliced,
    "purge: {": purged,
    "tags: [xkey]": lambda at: at.reused("/x", PUBLIC, "xkey: a b") and "xkey" in at.get(),
    "passTags: false": lambda at: at.reused("/x", PUBLIC, "Surrogate-Key: a")
    and "surrogate-key" not in at.get(),
    "disk: 10GiB": lambda at: at.reused("/x", PUBLIC),
    "memory: 256MiB": lambda at: at.reused("/x", PUBLIC),
    "compress": lambda at: at.reused("/x", PUBLIC, "Content-Type: text/css"),
}


def test_every_example_is_run_by_one_check():
    for row in ROWS:
        assert len([key for key in CHECKS if key in row.example]) == 1, row.example


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_example_does_what_it_says(row: Row, gateway, origin):
    check = next(check for key, check in CHECKS.items() if key in row.example)
    assert check(Running(gateway, origin, row))
