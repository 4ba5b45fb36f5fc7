"""The tables on the page ComingFromSquid: each example is a configuration that loads without a warning and prints
itself, and each does what the directives beside it do."""

from __future__ import annotations

import contextlib
import datetime
import re
import select
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from support.coming_from import ISSUER, ROWS, Row, files, in_folder, section
from support.credentials import basic
from support.gateway import besides_open_hosts, merged, run_pinfold, wire_from
from support.origin import reply
from support.signed_tokens import claims
from support.wait import until
from support.wire import Closed, Response, request

LARGE = 1 << 20


def test_every_cell_with_an_example_is_one_example():
    assert len(ROWS) >= 90
    for row in ROWS:
        assert re.fullmatch(r"`[^`]+`", row.yaml), row
        assert row.squid != "–" or row.haproxy != "–", row
    assert len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_an_example_is_a_configuration(row: Row, tmp_path: Path):
    files(tmp_path)
    file = tmp_path / "pinfold.yaml"
    file.write_text(row.example.replace("unix:/run/", f"unix:{tmp_path}/"))
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 0, done.stderr
    # What tunnels bypass is warned of in so many words, and is what the page Access says.
    warnings = [line for line in besides_open_hosts(done.stderr).splitlines()
                if "tunnels" not in line]
    assert warnings == []
    # Whatever an example says is in force, and not only accepted.
    (tmp_path / "printed.yaml").write_text(done.stdout)
    said = yaml.safe_load(row.example)
    assert set(said) <= set(yaml.safe_load(done.stdout))


# What they do


class Running:
    """A gateway with an example, which may reach servers on this machine."""

    def __init__(self, gateway, origin, row: Row, folder: Path):
        files(folder)
        self.origin = origin(lambda seen: reply(
            b"x" * LARGE if seen.target == "/large" else f"{seen.method} {seen.target}".encode(),
            "200 OK", "Server: theirs", "Cache-Control: max-age=60"))
        example = in_folder(row.example, folder)
        # Names of this machine in place of those on the page, and its ports.
        text = (yaml.safe_dump(example).replace("example.com", "example.test")
                .replace("10.0.0.0/8", "127.0.0.0/30").replace("10.9.0.0/16", "127.0.0.2/32"))
        example = yaml.safe_load(text)
        base = {"access": {"clients": ["127.0.0.0/8"], "connectPorts": "any",
                           "destinations": {"allow": ["127.0.0.0/8", "**.test"]}}}
        self.gateway = gateway(merged(base, example))

    def get(self, host: str = "other.test", path: str = "/", method: str = "GET",
            listener: str = "proxy", **fields: str) -> Response:
        url = f"http://{host}:{self.origin.port}{path}"
        return self.gateway.ask(
            request(url, method=method, Connection="close", **fields), listener=listener)

    def status(self, *arguments, **named) -> int:
        return self.get(*arguments, **named).status

    def connect(self, host: str = "other.test", port: int = 0) -> int:
        wire, response = self.gateway.connect(f"{host}:{port or self.origin.port}")
        wire.close()
        return response.status


def user(name: str, password: str) -> dict:
    return {"Proxy_Authorization": basic(name, password)}


def status_from(running: Running, address: str) -> int:
    with wire_from(running.gateway, address) as wire:
        wire.send(request(f"http://other.test:{running.origin.port}/"))
        return wire.read().status


def clients(running: Running) -> None:
    assert [status_from(running, f"127.0.0.{number}") for number in (1, 2, 5)] == [200, 200, 403]


def lab(running: Running) -> None:
    assert [status_from(running, f"127.0.0.{number}") for number in (1, 2, 5)] == [200, 403, 403]


def site(running: Running) -> None:
    assert [running.status(host) for host in ("example.test", "a.b.example.test", "xexample.test")] == [
        403, 403, 200]


def one(running: Running) -> None:
    assert [running.status(host) for host in ("www.example.test", "a.www.example.test")] == [403, 200]


def ads(running: Running) -> None:
    assert [running.status(host) for host in ("ads.test", "x.tracker.test", "other.test")] == [
        403, 403, 200]


def inside(running: Running) -> None:
    assert running.gateway.ask(request("http://192.0.2.1/")).status == 403


def loopback(running: Running) -> None:
    assert running.status("127.0.0.1") == 200


def safe_ports(running: Running) -> None:
    assert running.status() == 403
    assert running.gateway.ask(request("http://127.0.0.2:8080/")).status != 403


def tls_ports(running: Running) -> None:
    assert running.connect(port=80) == 403
    assert running.connect(port=8443) != 403


def no_tunnels(running: Running) -> None:
    assert (running.connect(), running.status()) == (403, 200)


def read_only(running: Running) -> None:
    assert [running.status(method=method, Content_Length="0") for method in ("POST", "PUT", "DELETE")] == [
        403, 403, 200]


def admin(running: Running) -> None:
    assert [running.status(path=path) for path in ("/admin", "/admin/x", "/administer")] == [403, 403, 200]


def zips(running: Running) -> None:
    assert [running.status(path=path) for path in ("/a/b.zip", "/a.zip", "/a.zip.txt")] == [403, 403, 200]


def status_by_the_clock() -> int:
    now = datetime.datetime.now()
    return 200 if now.weekday() < 5 and 8 <= now.hour < 18 else 403


def work(running: Running) -> None:
    # The hours may begin or end meanwhile.
    before = status_by_the_clock()
    assert running.status() in (before, status_by_the_clock())


def listeners(running: Running) -> None:
    assert [running.status(listener=name) for name in ("first", "second")] == [200, 403]


def deny_all(running: Running) -> None:
    assert [running.status(host) for host in ("a.example.test", "other.test")] == [200, 403]


def page(running: Running) -> None:
    refused = running.get("a.example.test")
    assert (refused.status, refused.body) == (451, b"<p>ads</p>\n")
    assert running.status() == 200


def trial(running: Running) -> None:
    assert running.status("a.example.test") == 200
    [line] = running.gateway.wait_access()
    assert line["reported"] == "trial"


def limits(running: Running) -> None:
    """The eleventh connection of a client makes room by closing one that is idle."""
    wires = []
    for _ in range(11):
        wires.append(running.gateway.wire())
        wires[-1].send(request(f"http://other.test:{running.origin.port}/"))
        assert wires[-1].read().status == 200
    sockets = [wire.socket for wire in wires]
    closed = until(lambda: select.select(sockets, [], [], 0)[0], "one is closed")
    assert [sock.recv(1) for sock in closed] == [b""]
    for wire in wires:
        wire.close()


def password(running: Running) -> None:
    assert running.status() == 407
    assert running.status(**user("ann", "a")) == 200
    assert running.status(**user("ann", "b")) == 407


def realm(running: Running) -> None:
    assert 'realm="Example"' in running.get().get("proxy-authenticate")


def one_user(running: Running) -> None:
    assert running.status(**user("ci", "c")) == 200
    assert running.status(**user("ann", "a")) == 403


def one_group(running: Running) -> None:
    assert running.status(**user("ann", "a")) == 200
    assert running.status(**user("ci", "c")) == 403


def tokens(running: Running) -> None:
    assert running.status() == 407
    assert running.status(Proxy_Authorization="Bearer open-sesame") == 200
    assert running.status(Proxy_Authorization="Bearer other") == 407


def signed_tokens(running: Running) -> None:
    assert running.status() == 407
    assert running.status(Proxy_Authorization=f"Bearer {ISSUER.token(claims())}") == 200
    expired = ISSUER.token(claims(exp=1))
    assert running.status(Proxy_Authorization=f"Bearer {expired}") == 407


def forwarded_user(running: Running) -> None:
    running.get("www.example.test", X_Forwarded_User="root", **user("ann", "a"))
    assert running.origin.requests[-1].all("x-forwarded-user") == ["ann"]


def slow(way: str) -> Callable[[Running], None]:
    """Four times the bytes of a second take more than three in this direction, and in the other they
    are not slowed down."""
    def upload(running: Running) -> None:
        target = f"other.test:{running.origin.port}"
        with running.gateway.wire() as wire:
            wire.send(f"POST http://{target}/ HTTP/1.1\r\nHost: {target}\r\n"
                      f"Content-Length: {LARGE}\r\n\r\n" + "x" * LARGE)
            assert wire.read().status == 200

    def download(running: Running) -> None:
        assert len(running.get(path="/large").body) == LARGE

    def paced(running: Running) -> float:
        return running.gateway.metric(
            "pinfold_access_rate_limited_total", rule="slow", result="paced")

    def check(running: Running) -> None:
        one, other = (download, upload) if way == "down" else (upload, download)
        other(running)
        assert paced(running) == 0
        began = time.monotonic()
        one(running)
        assert time.monotonic() - began > 3
        assert paced(running) == 1
    return check


def few(running: Running) -> None:
    answers = [running.get() for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert 0 < int(answers[2].get("retry-after")) <= 30


def daily(running: Running) -> None:
    path = "/" + "x" * 2000
    statuses = []
    for _ in range(60):
        # The response in which the day's bytes run out is cut off.
        with contextlib.suppress(Closed):
            statuses.append(running.status(path=path))
    assert statuses[0] == 200 and statuses[-1] == 429


def each(running: Running) -> None:
    for name in (user("ann", "a"), user("ci", "c")):
        assert [running.status(**name) for _ in range(2)] == [200, 429]


def busy(running: Running) -> None:
    wires = []
    for _ in range(3):
        wires.append(running.gateway.wire())
        wires[-1].send(f"POST http://other.test:{running.origin.port}/ HTTP/1.1\r\n"
                       f"Host: other.test:{running.origin.port}\r\nContent-Length: 1\r\n\r\n")
    sockets = [wire.socket for wire in wires]
    [refused] = until(lambda: select.select(sockets, [], [], 0)[0], "one is refused")
    for wire in wires:
        if wire.socket is not refused:
            wire.send("x")
        assert wire.read().status == (429 if wire.socket is refused else 200)
    for wire in wires:
        wire.close()


EFFECTS: dict[str, Callable[[Running], None]] = {
    "acl net src": clients, "acl lab src": lab, "acl site dstdomain": site,
    "acl one dstdomain": one, "acl ads dstdomain": ads, "acl inside dst": inside,
    "http_access allow to_localhost": loopback, "acl Safe_ports": safe_ports,
    "acl SSL_ports": tls_ports, "acl CONNECT": no_tunnels, "acl write method": read_only,
    "acl admin urlpath_regex": admin, "acl zips": zips, "acl work time": work,
    "acl second myportname": listeners, "http_access deny all": deny_all,
    "a list of all sites": deny_all, "deny_info": page, "access_log with": trial,
    "acl Limit": limits, "auth_param basic program": password, "auth_param basic realm": realm,
    "a helper that verifies JWT": signed_tokens, "request_header_add X-Forwarded-User": forwarded_user,
    "delay_pools": slow("down"), "client_delay_pools": slow("up"),
    "acl busy maxconn": busy, "stick-table … store http_req_rate": few,
    "stick-table … store bytes_out_rate": daily, "delay_access": each,
    "acl ci proxy_auth": one_user, "acl admins external": one_group, "auth_param with": tokens,
}


def field(name: str, expected: list[str]) -> Callable[[Running], None]:
    def check(running: Running) -> None:
        assert running.get("www.example.test").all(name) == expected
    return check


def sent(name: str, expected: list[str]) -> Callable[[Running], None]:
    def check(running: Running) -> None:
        running.get("www.example.test", Cookie="a=1")
        assert running.origin.requests[-1].all(name) == expected
    return check


def renamed(running: Running) -> None:
    response = running.get("other.test")
    assert response.get("via") == "1.1 gateway-1"
    assert "pinfold" not in f"{response.headers}"


def prefix(running: Running) -> None:
    assert running.get("www.example.test", "/old/x").body == b"GET /new/x"


def unstored(running: Running) -> None:
    for _ in range(2):
        assert "hit" not in running.get("www.example.test").cache_status


EFFECTS |= {
    "reply_header_access": field("server", []), "reply_header_replace": field("server", ["hidden"]),
    "reply_header_add": field("x-frame-options", ["DENY"]),
    "request_header_access": sent("cookie", []), "request_header_add X-Tenant": sent("x-tenant", ["one"]),
    "visible_hostname": renamed, "url_rewrite_program that changes": prefix, "cache deny": unstored,
}

# What needs a server with TLS is tested where that is: credentials, upgrades and inspected tunnels.
ELSEWHERE = ["cache_peer", "url_rewrite_program that makes", "ssl_bump", "https_port"]


# The sections on ways, and on limits and time-outs, have tests of their own: test_coming_from_ways.
HERE = section("Who, what and when", "Users and groups", "Rates", "Fields, names and what is changed")


def effect(row: Row) -> Callable[[Running], None] | None:
    found = [check for start, check in EFFECTS.items() if row.name.startswith(start)]
    assert len(found) + sum(row.name.startswith(start) for start in ELSEWHERE) == 1, row.name
    return found[0] if found else None


@pytest.mark.parametrize("row", HERE, ids=lambda row: row.name)
def test_an_example_does_what_the_directives_do(row: Row, gateway, origin, tmp_path: Path):
    if (check := effect(row)) is not None:
        check(Running(gateway, origin, row, tmp_path))
