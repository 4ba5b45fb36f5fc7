"""The tables on the page ComingFromSquid about ways in, parents and servers: each example does what the directives
beside it do. What its other examples do is tested where those keys are."""

from __future__ import annotations

import collections
import contextlib
import re
import select
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.coming_from import Row, files, in_folder, section
from support.gateway import Gateway, merged, wire_from
from support.origin import HTTPOrigin, Origin, Request, reply, serving
from support.parents import HTTPParent, SOCKSParent
from support.parents import basic as credentials
from support.proxy_headers import ToldOrigin, line
from support.wait import until
from support.wire import Closed, Response, Wire, request

HERE = section("Where clients connect", "Parents", "Servers")
ADMITTED = {"workers": 1, "cache": {"enabled": False}, "access": {
    "connectPorts": "any", "destinations": {"allow": ["127.0.0.0/8", "**.test"]}}}


class Setting:
    """An example, the servers that it names, and a gateway with it."""

    def __init__(self, start: Callable[[dict], Gateway], row: Row, folder: Path,
                 stack: contextlib.ExitStack):
        files(folder)
        self._start, self._row, self.folder, self._stack = start, row, folder, stack
        self._ports: dict[str, int] = {}
        self.gateway: Gateway

    def server(self, name: str, made: Origin | None = None) -> Origin:
        """What the example calls NAME.example.com: an origin that says its name, unless told otherwise."""
        origin = made or HTTPOrigin(lambda _: reply(name.encode()))
        self._ports[name] = self._stack.enter_context(serving(origin)).port
        return origin

    def absent(self, name: str) -> None:
        """Nothing listens where the example says NAME.example.com."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            self._ports[name] = server.getsockname()[1]

    def run(self) -> None:
        text = self._row.example.replace("unix:/run/", f"unix:{self.folder}/")
        text = text.replace("10.0.0.0/8", "127.0.0.0/30").replace("10.9.0.0/16", "127.0.0.2/32")
        for name, port in self._ports.items():
            text = re.sub(rf"(//{name}\.example)\.com(:\d+)?", rf"\1.test:{port}", text)
        example = in_folder(text.replace("example.com", "example.test"), self.folder)
        # Examples that begin with a parent have the listener that there is without any.
        self.gateway = self._start(merged(ADMITTED, example))

    def ask(self, *fields: str, path: str = "/", wire: Wire | None = None) -> Response:
        """A request to the reverse listener."""
        data = "\r\n".join([f"GET {path} HTTP/1.1", "Host: front.test", *fields, "\r\n"])
        if wire:
            wire.send(data)
            return wire.read()
        return self.gateway.ask(data.replace("Host:", "Connection: close\r\nHost:"), listener="site")

    def answers(self, times: int, *fields: str) -> collections.Counter:
        return collections.Counter(self.ask(*fields).body.decode() for _ in range(times))

    def get(self, origin: Origin, host: str = "www.example.test", **fields: str) -> Response:
        """A request to the forward proxy."""
        return self.gateway.ask(request(f"http://{host}:{origin.port}/", Connection="close", **fields))


# Where clients connect


def proxy_header(setting: Setting) -> None:
    there = setting.server("www")
    setting.run()
    asked = request(f"http://www.example.test:{there.port}/")
    with wire_from(setting.gateway, "127.0.0.1") as wire:
        wire.send(line("192.0.2.7") + asked)
        assert wire.read().status == 200
    assert setting.gateway.wait_access()[0]["client"].startswith("192.0.2.7")
    for sender, data in (("127.0.0.1", asked), ("127.0.0.5", line("192.0.2.7") + asked)):
        with wire_from(setting.gateway, sender) as wire, contextlib.suppress(Closed, ConnectionError):
            wire.send(data)
            assert wire.read_to_end() == b""


def unix_socket(setting: Setting) -> None:
    there = setting.server("www")
    setting.run()
    with setting.gateway.wire("local") as wire:
        assert wire.ask(request(f"http://www.example.test:{there.port}/")).body == b"www"


def host_of_server(setting: Setting) -> None:
    there = setting.server("a")
    setting.run()
    assert setting.ask().body == b"a"
    assert there.requests[0].get("host") == f"a.example.test:{there.port}"


def host_of_client(setting: Setting) -> None:
    there = setting.server("a")
    setting.run()
    assert setting.ask().body == b"a"
    assert there.requests[0].get("host") == "front.test"


def forwarded(*expected: str) -> Callable[[Setting], None]:
    def check(setting: Setting) -> None:
        there = setting.server("a")
        setting.run()
        assert setting.ask("X-Forwarded-For: 198.51.100.1").body == b"a"
        [said] = there.requests[0].all("x-forwarded-for")
        assert re.split(r",\s*", said) == list(expected)
    return check


# Parents


def only_the_parent(setting: Setting) -> None:
    there, corp = setting.server("www"), HTTPParent()
    setting.server("corp", corp)
    setting.run()
    assert setting.get(there).body == b"www"
    assert corp.asked == [f"GET http://www.example.test:{there.port}/"]
    corp.close()
    assert setting.get(there).status == 502
    assert len(there.requests) == 1


def directly_in_need(setting: Setting) -> None:
    there = setting.server("www")
    setting.absent("corp")
    setting.run()
    assert setting.get(there).body == b"www"


def spare(setting: Setting) -> None:
    there, other = setting.server("www"), HTTPParent()
    setting.absent("corp")
    setting.server("spare", other)
    setting.run()
    assert setting.get(there).body == b"www"
    assert len(other.asked) == 1


def not_for(host: str, other: str) -> Callable[[Setting], None]:
    """A parent is asked for one of two hosts."""
    def check(setting: Setting) -> None:
        there, corp = setting.server("www"), HTTPParent()
        setting.server("corp", corp)
        setting.run()
        for name in (host, other):
            assert setting.get(there, f"{name}.example.test").body == b"www"
        assert corp.asked == [f"GET http://{other}.example.test:{there.port}/"]
    return check


def by_rule(setting: Setting) -> None:
    there, corp = setting.server("www"), HTTPParent()
    setting.server("corp", corp)
    setting.run()
    asked = request(f"http://www.example.test:{there.port}/")
    for client, count in (("127.0.0.1", 0), ("127.0.0.2", 1)):
        with wire_from(setting.gateway, client) as wire:
            assert wire.ask(asked).body == b"www"
        assert len(corp.asked) == count


def password(setting: Setting) -> None:
    there, corp = setting.server("www"), HTTPParent()
    setting.server("corp", corp)
    setting.run()
    assert setting.get(there).body == b"www"
    assert corp.requests[-1].get("proxy-authorization") == credentials("pinfold", "hush")


def passed_on(setting: Setting) -> None:
    there, corp = setting.server("www"), HTTPParent()
    setting.server("corp", corp)
    setting.run()
    own = credentials("ann", "a")
    assert setting.get(there, Proxy_Authorization=own).body == b"www"
    assert corp.requests[-1].get("proxy-authorization") == own


def by_socks(setting: Setting) -> None:
    there, corp = setting.server("www"), SOCKSParent()
    setting.server("corp", corp)
    setting.run()
    assert setting.get(there).body == b"www"
    assert corp.asked == [f"www.example.test {there.port}"]


# Servers


def two(setting: Setting) -> tuple[Origin, Origin]:
    servers = setting.server("a"), setting.server("b")
    setting.run()
    return servers


def turns(setting: Setting) -> None:
    two(setting)
    assert setting.answers(30) == {"a": 20, "b": 10}


def fewest(setting: Setting) -> None:
    release = threading.Event()
    held: list[Request] = []

    def slow(seen: Request) -> bytes:
        held.append(seen)
        release.wait(20)
        return reply(b"a")

    setting.server("a", HTTPOrigin(slow))
    setting.server("b")
    setting.run()
    with contextlib.ExitStack() as stack:
        while not held:
            wire = stack.enter_context(setting.gateway.wire("site"))
            wire.send("GET / HTTP/1.1\r\nHost: front\r\n\r\n")
            until(lambda wire=wire: held or select.select([wire.socket], [], [], 0)[0],
                  "it is answered or held")
        assert setting.answers(10) == {"b": 10}
        release.set()


def same(field: str = "", by_path: bool = False) -> Callable[[Setting], None]:
    """What is equal goes to one server, and what is not to both."""
    def check(setting: Setting) -> None:
        two(setting)
        found: dict[int, bytes] = {}
        for _ in range(2):
            for value in range(16):
                body = setting.ask(*([f"{field}: u{value}"] if field else []),
                                   path=f"/p{value}" if by_path else "/").body
                assert found.setdefault(value, body) == body
        assert len(set(found.values())) == (2 if field or by_path else 1)
    return check


def checked(setting: Setting) -> None:
    setting.server("a", HTTPOrigin(
        lambda seen: reply(b"a", "500 No" if seen.target == "/health" else "200 OK")))
    setting.server("b")
    setting.run()
    until(lambda: setting.answers(4) == {"b": 4}, "the first server is left out")


def ejected(setting: Setting) -> None:
    bad = setting.server("a", HTTPOrigin(lambda _: reply(b"a", "503 No")))
    setting.server("b")
    setting.run()
    until(lambda: setting.answers(10) == {"b": 10}, "the first server is left out")
    assert len(bad.requests) == 5


def retried(setting: Setting) -> None:
    setting.absent("a")
    setting.server("b")
    setting.run()
    assert setting.answers(4) == {"b": 4}


def backup(setting: Setting) -> None:
    first, _ = two(setting)
    assert setting.answers(4) == {"a": 4}
    first.close()
    assert setting.answers(4) == {"b": 4}


def sticky(setting: Setting) -> None:
    two(setting)
    seen = set()
    for _ in range(4):
        first = setting.ask()
        cookie = first.get("set-cookie")
        assert "HttpOnly" in cookie
        seen.add(first.body)
        assert setting.answers(4, "Cookie: " + cookie.split(";")[0]) == {first.body.decode(): 4}
    assert len(seen) == 2


def told(setting: Setting) -> None:
    there = ToldOrigin(lambda _: reply(b"a"))
    setting.server("a", there)
    setting.run()
    with wire_from(setting.gateway, "127.0.0.2", listener="site") as wire:
        assert setting.ask(wire=wire).body == b"a"
        assert [header.source for header in there.told] == [wire.socket.getsockname()]


def on_socket(setting: Setting) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(f"{setting.folder}/app.sock")
        listener.listen()
        with serving(HTTPOrigin(lambda _: reply(b"app"), listener=listener)):
            setting.run()
            assert setting.ask().body == b"app"


EFFECTS: dict[str, Callable[[Setting], None]] = {
    "http_port 8080 require-proxy-header": proxy_header, "bind unix@": unix_socket,
    "http_port 80 accel defaultsite": host_of_server, "http_port 80 accel vhost": host_of_client,
    "option forwardfor, where": forwarded("127.0.0.1"),
    "option forwardfor, behind": forwarded("198.51.100.1", "127.0.0.1"),
    "cache_peer corp.example.com parent": only_the_parent, "prefer_direct off": directly_in_need,
    "two of cache_peer": spare, "always_direct": not_for("a.inside", "a"),
    "cache_peer_access corp allow site": not_for("a", "a.site"),
    "cache_peer_access corp allow lab": by_rule, "server a … send-proxy": told,
    "server a unix@": on_socket, "cache_peer … login=pinfold": password, "cache_peer … login=PASSTHRU": passed_on,
    "server a a.example.com:80 socks4": by_socks,
    "cache_peer … round-robin": turns, "balance leastconn": fewest,
    "cache_peer … sourcehash": same(), "cache_peer … carp": same(by_path=True),
    "cache_peer … userhash": same("X-User"), "option httpchk": checked,
    "cache_peer … connect-fail-limit": ejected, "retries 1": retried, "server b … backup": backup,
    "cookie route": sticky,
}

# What needs TLS, time or a firewall is tested with these keys.
ELSEWHERE = ["http_port 3129 ", "https_port", "cache_peer … tls", "dead_peer_timeout", "cache_peer … max-conn",
             "server … slowstart", "tls_outgoing_options"]


def effect(row: Row) -> Callable[[Setting], None] | None:
    found = [check for start, check in EFFECTS.items() if row.name.startswith(start)]
    assert len(found) + sum(row.name.startswith(start) for start in ELSEWHERE) == 1, row.name
    return found[0] if found else None


def test_every_effect_is_of_an_example():
    for start in [*EFFECTS, *ELSEWHERE]:
        assert any(row.name.startswith(start) for row in HERE), start


@pytest.fixture
def setting(gateway, tmp_path: Path) -> Iterator[Callable[[Row], Setting]]:
    with contextlib.ExitStack() as stack:
        yield lambda row: Setting(gateway, row, tmp_path, stack)


@pytest.mark.parametrize("row", HERE, ids=lambda row: row.name)
def test_an_example_does_what_the_directives_do(row: Row, setting):
    if (check := effect(row)) is not None:
        check(setting(row))
