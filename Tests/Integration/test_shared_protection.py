"""What a server that is not trusted can do to a fleet, and what it cannot: an engine, a Sentinel, or somebody
who can write to the engine."""

from __future__ import annotations

import contextlib
import json
import socket
import threading

import pytest
from support.fleet import Engine, Link, get, is_hit, is_shared_hit, is_up, share, wait_shared
from support.gateway import Gateway
from support.origin import Request, reply
from support.wait import SLOWDOWN, until
from test_reload import reload

FRESH = "Cache-Control: max-age=600"
STREAM = "pinfold:1:p:{fleet}:stream"


class Site:
    """Answers with how often it was asked."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, seen: Request) -> bytes:
        self.count += 1
        return reply(b"%d" % self.count, "200 OK", FRESH)


@pytest.fixture
def there(origin):
    return origin(Site())


def purge(running: Gateway, url: str) -> dict:
    """With the method PURGE: what is said of the fleet."""
    answer = get(running, url, method="PURGE")
    assert answer.status == 200, answer.body
    return json.loads(answer.body)["fleet"]


class Flood:
    """A Sentinel that says where the engine is until it is told to flood whoever asks."""

    def __init__(self, engine: Engine, what: bytes):
        port = str(engine.port).encode()
        self.answer = b"*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n" % (len(port), port)
        self.flood = what * (65536 // len(what))
        self.floods = False
        self.flooded = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.place = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            while client.recv(4096):
                if not self.floods:
                    client.sendall(self.answer)
                    continue
                self.flooded += 1
                while self.floods:
                    client.sendall(self.flood)

    def close(self) -> None:
        self.floods = False
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.mark.parametrize("what", [b">0\r\n", b"|1\r\n+a\r\n+b\r\n"], ids=["pushes", "attributes"])
def test_a_sentinel_that_sends_without_end_holds_nothing_up(fleet, engine, there, what):
    flood = Flood(engine, what)
    try:
        running, other = (fleet(1, url=None, sentinels=[flood.place], master="cache")[0], fleet(1)[1])
        flood.floods = True
        # It is asked every second whether the master is still one.
        until(lambda: flood.flooded >= 2, "it floods, and is asked again", 20)
        share(running, there.url("/a"))
        assert is_shared_hit(get(other, there.url("/a")))
        share(other, there.url("/b"))
        assert is_shared_hit(get(running, there.url("/b")))
        assert is_up(running)
        running.stop(patience=10 * SLOWDOWN)
    finally:
        flood.close()


class PushingLink(Link):
    """An engine that can be made to send push messages, which nobody has asked for."""

    def push(self) -> None:
        with self._lock:
            clients = self._pairs[::2]
        for client in clients:
            with contextlib.suppress(OSError):
                client.sendall(b">0\r\n")


def test_an_engine_that_tells_what_was_not_asked_is_left(fleet, engine, there):
    link = PushingLink(engine)
    try:
        running = fleet(1, url=link.url)[0]
        before = running.metric("pinfold_cache_shared_errors_total", reason="protocol_error")
        link.push()
        until(lambda: running.metric("pinfold_cache_shared_errors_total", reason="protocol_error") > before,
              "it was noticed", 20)
        wait_shared(running)
        share(running, there.url("/a"))
    finally:
        link.close()


def test_a_purge_that_was_deleted_voids_what_is_before_it_and_nothing_else(fleet, engine, there):
    """Whoever deletes it hides it, but from nobody who knows that there was one."""
    gateways = fleet(2)
    url = there.url("/a")
    share(gateways[0], url)
    assert purge(gateways[0], there.url("/never-stored"))["recorded"]
    (last, _), = engine.command("XREVRANGE", STREAM, "+", "-", "COUNT", 1)
    assert engine.command("XDEL", STREAM, last) == 1
    # One that comes later, and one that has not read it, may use the engine.
    third = gateways.add()
    assert not is_hit(get(third, url))
    gateways[0].restart()
    wait_shared(gateways[0])
    share(gateways[0], there.url("/b"))
    assert is_shared_hit(get(third, there.url("/b")))
    assert is_shared_hit(get(gateways[1], there.url("/b")))


@pytest.fixture
def secure(origin, pki):
    leaf = pki.system_root.issue("api.shared.test")
    return origin(Site(), tls=leaf.server_context())


def test_what_was_obtained_under_other_roots_of_the_system_is_not_used(
        fleet, secure, there, pki, workspace, monkeypatch):
    """Machines differ in the certificates that they have, and configurations only name the system's."""
    gateways = fleet(0)
    url = f"https://api.shared.test:{secure.port}/"
    lax = gateways.add()
    share(lax, url + "a")
    assert is_shared_hit(get(gateways.add(), url + "a"))
    share(lax, there.url("/clear"))
    monkeypatch.setattr(Gateway, "environment", {"SSL_CERT_FILE": str(pki.root.pem_file)})
    strict = gateways.add()
    assert get(strict, url + "b").status == 502
    response = get(strict, url + "a")
    assert response.status == 502 and not is_hit(response)
    # In clear text it is of no account who is trusted.
    assert is_shared_hit(get(strict, there.url("/clear")))


def test_a_disk_outlives_an_update_of_the_systems_roots(fleet, secure, pki, workspace, monkeypatch):
    gateways = fleet(0)
    url = f"https://api.shared.test:{secure.port}/a"
    bundle = workspace / "roots.pem"
    bundle.write_text(pki.system_root.pem_file.read_text())
    monkeypatch.setattr(Gateway, "environment", {"SSL_CERT_FILE": str(bundle)})
    first, second = gateways.add(), gateways.add()
    share(first, url)
    bundle.write_text(pki.system_root.pem_file.read_text() + pki.root.pem_file.read_text())
    first.restart()
    wait_shared(first)
    found = get(first, url)
    assert is_hit(found) and not is_shared_hit(found)
    # The other one takes to them with a reload: they have no response in common from before.
    reload(second)
    assert not is_hit(get(second, url))
    share(first, url + "b")
    until(lambda: is_shared_hit(get(second, url + "b")), "they have the same roots again", 20)


def test_what_was_purged_and_put_back_is_used_by_nobody_who_has_read_the_purge(fleet, engine, there):
    gateways = fleet(2, {"cache": {"memory": 0, "disk": 0}})
    url = there.url("/a")
    share(gateways[0], url)
    key, = engine.keys("pinfold:1:v:*")
    saved = engine.command("HGETALL", key)
    assert purge(gateways[0], url)["confirmed"] == ["gateway-0", "gateway-1"]
    for number, running in enumerate(gateways):
        engine.command("DEL", key)
        engine.command("HSET", key, *saved)
        response = get(running, url)
        assert not is_hit(response) and int(response.body) == number + 2
