"""Requests of every kind that a configuration decides about, drawn by a seed, and who sends them: many
connections at once, each for many requests."""

from __future__ import annotations

import contextlib
import queue
import random
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .credentials import basic, bcrypt, digest, write
from .gateway import Gateway
from .proxy_headers import line
from .socks import GREETING, asked
from .wire import Closed, Wire

EMPTY_PIN = "sha256/" + "A" * 43 + "="
PASSWORDS = {"ann": "one", "bea": "two", "cat": "three", "dan": "four"}
TOKENS = {"robot": "sesame-sesame", "crawler": "open-open-open"}

# What their entries say is in `configuration`; names that end in `.test` have the address 127.0.0.1.
PLAIN = ["plain.test", "www.test", "api.test", "cached.test", "closed.test", "a.example.test",
         "b.c.example.test", "x.deep.test", "y.x.deep.test", "ads.test", "www.ads.test",
         "t1.tracker.test", "ported.test", "PLAIN.test", "plain.test.", "xn--bcher-kva.test"]
SECURE = ["report.test", "right.test", "observed.test", "plain.test", "www.test", "a.example.test"]
UNLISTED = ["unknown.invalid", "other.invalid", "127.0.0.1", "[::1]", "10.1.2.3"]
REFUSED = ["denied.example.test", "private.test", "10.9.1.1"]
FAILING = ["strict.test", "expired.test"]
TUNNELS = ["plain.test", "www.test", "right.test", "pass.test", "shut.test", "ads.test", "api.test",
           "t1.tracker.test", "ported.test", "strict.test", "expired.test", "unknown.invalid",
           "denied.example.test", "10.9.1.1", "report.test"]
SHAKEN = ["inspected.test", "misfit.test", "seen.test"]
# Names in the certificate of the server that speaks TLS.
NAMES = sorted({*SECURE, *FAILING, *SHAKEN, "pass.test"} - {"10.9.1.1"})
PATHS = ["/", "/a?x=1", "/index.html", "/admin", "/admin/x", "/ADMIN/x", "/%61dmin/x", "/a/../admin/x",
         "/static/a.css", "/api/v1/users?page=2", "/download/big.iso", "/x/..;/admin/x", "/a%2fb",
         "/a//b", "/private/%2e%2e/admin/", "?q", "/static/%63.css", "/a;b=c/d", "/api/v2/"]
METHODS = ["GET"] * 12 + ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "REPORT"]
MALFORMED = ["http://:80/", "http://plain.test:99999/", "ftp://plain.test/", "http:///x", "*", "//x",
             "plain.test", "http://a_b..test/", "http://plain.test:x/", "http://[::1/"]
# Clients as a load balancer tells them: inside the networks of rules and of `access.clients`, and not.
CLIENTS = ["10.1.0.5", "10.1.255.255", "10.2.3.4", "10.3.0.1", "192.0.2.1", "192.0.2.255",
           "198.51.100.7", "203.0.113.9", "2001:db8::5", "2001:db9::1", "127.0.0.9"]


@dataclass
class Sent:
    """A request: `number` is in its user agent, by which it is found in the log."""

    number: int
    listener: str
    kind: str
    method: str = "GET"
    target: str = "/"
    host: str = "plain.test"
    client: str | None = None
    who: str | None = None
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def data(self) -> bytes:
        lines = [f"{self.method} {self.target} HTTP/1.1", f"Host: {self.host}",
                 f"User-Agent: n{self.number}"]
        if self.who:
            name = "Authorization" if self.listener.startswith("back") else "Proxy-Authorization"
            lines.append(f"{name}: {self.who}")
        if self.method in ("POST", "PUT", "PATCH", "REPORT"):
            lines.append("Content-Length: 0")
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


class Generator:
    """Draws requests; the same seed draws the same ones."""

    def __init__(self, seed: int, clear: int, secure: int):
        self.random = random.Random(seed)
        self.clear, self.secure = clear, secure
        pick = self.random.choice
        kinds: list[tuple[int, Callable[[int], Sent]]] = [
            (40, lambda n: self.absolute(n, pick(PLAIN), self.clear)),
            (12, lambda n: self.absolute(n, pick(SECURE), self.secure)),
            (5, lambda n: self.absolute(n, pick(UNLISTED), self.clear)),
            (4, lambda n: self.absolute(n, pick(REFUSED), self.clear)),
            (1, lambda n: self.absolute(n, pick(FAILING), self.secure)),
            (8, self.reverse), (8, self.tunnel), (2, self.shaken), (2, self.socks), (2, self.malformed),
            (1, self.bare)]
        self.kinds = [make for weight, make in kinds for _ in range(weight)]

    def draw(self, count: int) -> list[Sent]:
        return [self.random.choice(self.kinds)(number) for number in range(count)]

    def arrive(self, sent: Sent) -> Sent:
        """The listener that it comes to, the client, and who asks."""
        sent.listener = self.random.choice(["proxy"] * 3 + ["balanced"] * 3 + ["staff"] * 2)
        if sent.listener == "balanced":
            sent.client = self.random.choice(CLIENTS)
        if sent.listener == "staff":
            sent.who = self.identity()
        return sent

    def identity(self) -> str | None:
        known = [basic(user, password) for user, password in PASSWORDS.items()]
        known += [f"Bearer {token}" for token in TOKENS.values()]
        return self.random.choice([*known, None])

    def absolute(self, number: int, host: str, port: int) -> Sent:
        pick = self.random.choice
        method, path = pick(METHODS), pick(PATHS)
        scheme = "https" if port == self.secure and host in SECURE and self.random.random() < 0.2 else "http"
        at = f"{host}:{port}"
        if host in ("unknown.invalid", "10.1.2.3") and self.random.random() < 0.5:
            at = host
        return self.arrive(Sent(number, "", "absolute", method, f"{scheme}://{at}{path}", at))

    def reverse(self, number: int) -> Sent:
        path = self.random.choice([one for one in PATHS if one.startswith("/")])
        listener = self.random.choice(["back", "back", "back-staff", "back-secure"])
        return Sent(number, listener, "reverse", self.random.choice(METHODS), path, "site.test",
                    who=self.identity() if listener == "back-staff" else None)

    def tunnel(self, number: int) -> Sent:
        port = self.random.choice([self.secure] * 8 + [25, 443])
        host = self.random.choice(TUNNELS)
        if port == 443 and host not in ("unknown.invalid", "denied.example.test", "shut.test"):
            port = self.secure  # Nobody listens there.
        authority = f"{host}:{port}"
        return self.arrive(Sent(number, "", "tunnel", "CONNECT", authority, authority))

    def shaken(self, number: int) -> Sent:
        authority = f"{self.random.choice(SHAKEN)}:{self.secure}"
        sent = self.arrive(Sent(number, "", "shaken", "CONNECT", authority, authority))
        sent.fields["inside"] = self.random.choice(PATHS[:6])
        return sent

    def socks(self, number: int) -> Sent:
        return Sent(number, "socks", "socks", host=self.random.choice(TUNNELS), target=str(self.secure))

    def malformed(self, number: int) -> Sent:
        return self.arrive(Sent(number, "", "malformed", target=self.random.choice(MALFORMED)))

    def bare(self, number: int) -> Sent:
        """What is no request for a proxy, or none for a server."""
        if self.random.random() < 0.5:
            return self.arrive(Sent(number, "", "bare", target="/path"))
        return Sent(number, "back", "bare", "CONNECT", f"plain.test:{self.secure}")


class Sender:
    """Sends requests over connections that stay open, one for each listener and client."""

    def __init__(self, running: Gateway, threads: int = 12):
        self.running = running
        self.threads = threads
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE

    def send(self, requests: list[Sent]) -> None:
        waiting: queue.SimpleQueue[Sent] = queue.SimpleQueue()
        for one in requests:
            waiting.put(one)
        problems: list[BaseException] = []

        def work() -> None:
            wires: dict[tuple[str, str | None], Wire] = {}
            try:
                while not problems:
                    try:
                        one = waiting.get_nowait()
                    except queue.Empty:
                        return
                    self.one(one, wires)
            except BaseException as problem:
                problems.append(problem)
            finally:
                for wire in wires.values():
                    wire.close()

        workers = [threading.Thread(target=work, daemon=True) for _ in range(self.threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if problems:
            raise problems[0]

    def open(self, sent: Sent) -> Wire:
        wire = Wire(self.running.listeners[sent.listener])
        if sent.client:
            wire.send(line(sent.client))
        return wire

    def one(self, sent: Sent, wires: dict[tuple[str, str | None], Wire]) -> None:
        if sent.kind == "socks":
            return self.by_socks(sent)
        key = (sent.listener, sent.client)
        if sent.method == "CONNECT":
            with self.open(sent) as wire:
                return self.through(sent, wire)
        wire = wires.pop(key, None) or self.open(sent)
        try:
            wire.send(sent.data)
            answer = wire.read_final(sent.method)
        except (Closed, ConnectionError):
            # It was closed since the last answer: a new one, once.
            wire.close()
            wire = self.open(sent)
            wire.send(sent.data)
            answer = wire.read_final(sent.method)
        closes = "close" in answer.get("connection").lower() or wire.buffer
        if closes or answer.version == "HTTP/1.0":
            wire.close()
        else:
            wires[key] = wire

    def through(self, sent: Sent, wire: Wire) -> None:
        wire.send(sent.data)
        if wire.read_head().status != 200 or sent.kind != "shaken":
            return
        name = sent.target.rpartition(":")[0]
        with contextlib.suppress(OSError), self.context.wrap_socket(
                wire.socket, server_hostname=name) as inside:
            inside.sendall((f"GET {sent.fields['inside']} HTTP/1.1\r\nHost: {sent.target}\r\n"
                            f"User-Agent: i{sent.number}\r\nConnection: close\r\n\r\n").encode())
            while inside.recv(1 << 16):
                pass

    def by_socks(self, sent: Sent) -> None:
        with Wire(self.running.listeners["socks"]) as wire:
            wire.send(GREETING)
            wire.read_exactly(2)
            wire.send(asked(sent.host, int(sent.target)))
            with contextlib.suppress(Closed, socket.timeout):
                wire.read_exactly(10)


def configuration(folder: Path, pki: Any, authority: dict, clear: int, secure: int) -> dict:
    write(folder / "users", *(f"{user}:{bcrypt(word)}" for user, word in PASSWORDS.items()))
    write(folder / "groups", "dev: ann cat", "ops: bea cat")
    write(folder / "tokens", *(
        f"{name}:{digest(token)}:{group}" for (name, token), group in zip(
            TOKENS.items(), ("build", "ops"), strict=True)))
    write(folder / "ads", "ads.test", "tracker.test")
    write(folder / "more", "www.test", "deep.test")
    pinned = {"upgrade": "https"}
    address = "127.0.0.1:0"
    rules = [
        {"name": "seen-api", "hosts": ["api.test", "**.example.test"], "action": "report"},
        {"name": "seen-guests", "clients": ["10.1.0.0/16", "2001:db8::/32"], "action": "report"},
        {"name": "no-ads", "lists": ["ads"], "action": "deny"},
        {"name": "no-admin", "paths": ["/admin/**"], "action": "deny", "status": 404},
        {"name": "no-delete", "methods": ["DELETE"], "hosts": ["plain.test", "www.test"], "action": "deny"},
        {"name": "guests", "clients": ["10.2.0.0/16"], "hosts": ["www.test", "plain.test"],
         "action": "allow"},
        {"name": "no-guests", "clients": ["10.2.0.0/16"], "action": "deny"},
        {"name": "developers", "groups": ["dev"], "paths": ["/api/**", "/"], "action": "allow"},
        {"name": "operators", "groups": ["ops"], "methods": ["GET", "HEAD", "CONNECT"], "action": "allow"},
        {"name": "robots", "users": ["robot"], "hosts": ["plain.test"], "action": "allow"},
        {"name": "no-staff", "listeners": ["staff"], "action": "deny"},
        {"name": "relayed", "clients": ["10.3.0.0/16"], "hosts": ["seen.test", "shut.test"],
         "action": "allow", "tunnel": "pass"},
        {"name": "no-reports", "methods": ["REPORT"], "action": "deny", "status": 451},
        {"name": "static", "paths": ["/static/*.css"], "action": "allow"},
        {"name": "seen-iso", "paths": ["/**/*.iso"], "action": "report"},
        {"name": "no-port", "hosts": [f"ported.test:{secure}"], "action": "deny"}]
    return {
        "listeners": [
            {"name": "proxy", "address": address, "kind": "forward"},
            {"name": "balanced", "address": address, "kind": "forward",
             "proxyProtocol": {"from": ["127.0.0.0/8"]}},
            {"name": "staff", "address": address, "kind": "forward",
             "authentication": ["basic", "bearer"]},
            {"name": "socks", "address": address, "kind": "socks5"},
            {"name": "back", "address": address, "kind": "reverse",
             "upstream": f"http://plain.test:{clear}"},
            {"name": "back-staff", "address": address, "kind": "reverse",
             "upstream": f"http://api.test:{clear}", "authentication": ["basic", "bearer"]},
            {"name": "back-secure", "address": address, "kind": "reverse",
             "upstream": f"https://right.test:{secure}"}],
        "authentication": {name: str(folder / name) for name in ("users", "groups", "tokens")},
        "access": {
            "hosts": "listed", "connectPorts": [443, secure],
            "clients": ["127.0.0.0/8", "::1/128", "10.0.0.0/8", "192.0.2.0/24", "2001:db8::/32"],
            "destinations": {"allow": ["127.0.0.0/8"], "deny": ["denied.example.test", "10.9.0.0/16"]},
            "lists": {"ads": {"files": [str(folder / "ads")]}, "more": {"files": [str(folder / "more")]}},
            "rules": rules},
        "tls": {"roots": [str(pki.root.pem_file)]},
        "interception": authority,
        "pinsets": {
            "loose": {"mode": "publicKey", "enforce": False, "pins": [EMPTY_PIN]},
            "wrong": {"mode": "publicKey", "pins": [EMPTY_PIN]},
            "right": {"mode": "publicKey", "pins": [pki.intermediate.pin]},
            "old": {"mode": "publicKey", "pins": [pki.intermediate.pin], "expires": "2020-01-01"}},
        "hosts": [
            {"match": ["plain.test", "private.test"]},
            {"match": ["www.test"], "cache": {"store": False}},
            {"match": ["cached.test"], "paths": [{"match": ["/static/**"], "cache": {"store": False}}]},
            {"match": ["closed.test"], "clearText": "refuse"},
            {"match": ["shut.test"], "tunnel": "refuse"},
            {"match": ["report.test"], "pinsets": ["loose"], **pinned},
            {"match": ["right.test"], "pinsets": ["right"], **pinned},
            {"match": ["pass.test"], "pinsets": ["right"], "tunnel": "pass", **pinned},
            {"match": ["strict.test"], "pinsets": ["wrong"], **pinned},
            {"match": ["expired.test"], "pinsets": ["old"], **pinned},
            {"match": ["observed.test"], "pins": "observe", **pinned},
            {"match": ["inspected.test"], "pinsets": ["right"], "tunnel": "inspect",
             "tls13Tunnel": "probe", **pinned},
            {"match": ["misfit.test"], "pinsets": ["wrong"], "tunnel": "inspect", "tls13Tunnel": "probe",
             **pinned},
            {"match": ["seen.test"], "intercept": True},
            {"match": [f"ported.test:{clear}"], "name": "ported-clear"},
            {"match": ["ported.test"]},
            {"match": ["*.example.test"], "name": "examples"},
            {"match": ["**.example.test"], "name": "all-examples"},
            {"match": ["**.deep.test", "xn--bcher-kva.test"], "name": "deep"},
            {"match": ["api.test"]},
            {"match": ["ads.test", "*.ads.test", "**.tracker.test"], "name": "advertisers"}]}


def change(config: dict) -> None:
    """Another configuration: rules in another order and with other actions, other networks, lists,
    groups, destinations, pins and tunnels."""
    access, hosts = config["access"], {one["match"][0]: one for one in config["hosts"]}
    rules = {one["name"]: one for one in access["rules"]}
    rules["seen-api"]["action"] = "deny"
    rules["no-admin"]["action"] = "report"
    del rules["no-admin"]["status"]
    rules["no-ads"]["lists"] = ["more"]
    rules["developers"]["groups"] = ["build", "ops"]
    rules["seen-guests"]["clients"] = ["192.0.2.0/25", "10.3.0.0/16"]
    rules["relayed"]["tunnel"] = "refuse"
    order = ["no-delete", "robots", "seen-guests", "operators", "developers", "no-admin", "no-staff",
             "static", "no-ads", "seen-iso", "relayed", "guests", "seen-api", "no-port"]
    access["rules"] = [rules[name] for name in order]
    access["clients"] = ["127.0.0.0/8", "::1/128", "10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16",
                         "192.0.2.0/25", "203.0.113.0/24"]
    access["destinations"]["deny"] = ["private.test", "t1.tracker.test"]
    config["pinsets"]["loose"]["enforce"] = True
    config["pinsets"]["wrong"]["enforce"] = False
    del config["pinsets"]["old"]["expires"]
    hosts["closed.test"]["clearText"] = "allow"
    hosts["cached.test"]["clearText"] = "refuse"
    hosts["shut.test"]["tunnel"] = "pass"
    hosts["right.test"]["tunnel"] = "pass"
    hosts["pass.test"]["tunnel"] = "refuse"
    hosts["*.example.test"]["name"] = "renamed"
    config["hosts"].insert(0, {"match": ["x.deep.test", "other.invalid"], "name": "new"})
