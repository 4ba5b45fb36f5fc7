"""X-Forwarded-User, which tells servers who is asking: never what a client says, and in a cache of each
user's own."""

from __future__ import annotations

import concurrent.futures
import threading

import pytest
from support.credentials import basic, bcrypt, digest, write
from support.interception import HOST, Inside
from support.origin import reply
from support.secure import reload
from support.wait import until

ANN = basic("ann", "secret")


@pytest.fixture
def section(workspace):
    write(workspace / "users", *(f"{name}:{bcrypt('secret')}" for name in ("ann", "bob", "jürgen")))
    write(workspace / "tokens", f"ci:{digest('open-sesame')}")
    return {"users": str(workspace / "users"), "tokens": str(workspace / "tokens")}


@pytest.fixture
def there(origin):
    return origin(lambda seen: reply(
        seen.get("x-forwarded-user", "-").encode("latin-1"), "200 OK", "Cache-Control: no-store"))


def get(there, *fields):
    return "\r\n".join([f"GET {there.url('/')} HTTP/1.1", f"Host: {there.authority}", *fields, "", ""])


@pytest.fixture
def telling(gateway, section, there):
    def make(forwards=True, kind="forward", **more):
        listener = {"name": "proxy", "address": "127.0.0.1:0", "kind": kind,
                    "authentication": ["basic", "bearer"]}
        if kind == "reverse":
            listener["upstream"] = there.url("")
        return gateway({
            "workers": 1, "listeners": [listener | more], "authentication": section,
            "hosts": [{"match": ["127.0.0.1"], "request": {"forwardUser": forwards}}]})
    return make


SPOOFED = ["X-Forwarded-User: root", "x-forwarded-user: a", "X_Forwarded_User: root",
           "X-Forwarded_User: root", "X-FORWARDED-USER:root"]


@pytest.mark.parametrize("kind", ["forward", "reverse"])
def test_the_server_is_told_who_is_asking(telling, there, kind):
    running = telling(kind=kind)
    field = "Proxy-Authorization" if kind == "forward" else "Authorization"
    for credentials, user in ((ANN, "ann"), ("Bearer open-sesame", "ci"),
                              (basic("jürgen", "secret"), "jürgen")):
        for extra in ([], SPOOFED, ["Connection: X-Forwarded-User", "X-Forwarded-User: root"],
                      ["Connection: close, x-forwarded-user"]):
            target = there.url("/") if kind == "forward" else "/"
            lines = [f"GET {target} HTTP/1.1", f"Host: {there.authority}",
                     f"{field}: {credentials}", *extra]
            with running.wire() as wire:
                assert wire.ask("\r\n".join([*lines, "", ""])).status == 200
            seen = there.requests[-1]
            told = [(key, value) for key, value in seen.headers
                    if key.lower().replace("_", "-") == "x-forwarded-user"]
            assert [value.encode("latin-1").decode() for _, value in told] == [user], told


def test_without_a_user_nothing_is_said(gateway, there):
    running = gateway({"hosts": [{"match": ["127.0.0.1"], "request": {"forwardUser": True}}]})
    with running.wire() as wire:
        assert wire.ask(get(there, *SPOOFED)).body == b"-"
    assert not any("forwarded" in key.lower() for key, _ in there.requests[0].headers)


def test_what_clients_say_is_passed_on_where_it_is_off(telling, there):
    running = telling(forwards=False)
    with running.wire() as wire:
        response = wire.ask(get(there, f"Proxy-Authorization: {ANN}", "X-Forwarded-User: other"))
        assert response.body == b"other"


@pytest.mark.parametrize("name", [
    "X-Forwarded-User", "x-forwarded-user", "X_Forwarded_User", "X-Forwarded_User",
    "X_FORWARDED-USER"])
def test_a_trailer_says_nothing_about_the_user(telling, origin, name):
    there = origin(lambda seen: reply(b"here"))
    running = telling()
    with running.wire() as wire:
        wire.send(f"POST {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n"
                  f"Proxy-Authorization: {ANN}\r\nTransfer-Encoding: chunked\r\n\r\n"
                  f"2\r\nhi\r\n0\r\n{name}: root\r\nX-Other: kept\r\n\r\n")
        assert wire.read().status == 200
    seen = there.requests[0]
    assert seen.body == b"hi" and seen.get("x-forwarded-user") == "ann"
    assert "root" not in str(vars(seen))


def test_each_user_has_responses_of_their_own(telling, origin):
    there = origin(lambda seen: reply(
        seen.get("x-forwarded-user", "-").encode(), "200 OK", "Cache-Control: max-age=60"))
    running = telling()
    for _ in range(2):
        for user in ("ann", "bob"):
            response = running.get(
                there.url("/"), Proxy_Authorization=basic(user, "secret"))
            assert response.body == user.encode()
    assert len(there.requests) == 2
    assert running.get(there.url("/"), Proxy_Authorization=ANN).cache_status.get("hit")


def test_simultaneous_requests_of_two_users_share_nothing(telling, origin):
    both = threading.Barrier(2, timeout=20)

    def answer(seen):
        both.wait()
        return reply(seen.get("x-forwarded-user", "-").encode(), "200 OK",
                     "Cache-Control: max-age=60")

    there = origin(answer)
    running = telling()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(running.get, there.url("/"), Proxy_Authorization=basic(user, "secret"))
                 for user in ("ann", "bob")]
        assert [one.result().body for one in asked] == [b"ann", b"bob"]


def test_a_revalidation_in_the_background_is_the_users(telling, origin):
    there = origin(lambda seen: reply(
        seen.get("x-forwarded-user", "-").encode(), "200 OK",
        "Cache-Control: max-age=0, stale-while-revalidate=60"))
    running = telling()
    for _ in range(2):
        assert running.get(there.url("/"), Proxy_Authorization=ANN).body == b"ann"
    until(lambda: len(there.requests) >= 2, "it is asked again")
    assert {one.get("x-forwarded-user") for one in there.requests} == {"ann"}


def test_a_reload_that_begins_to_tell_reuses_nothing(telling, origin):
    there = origin(lambda seen: reply(
        seen.get("x-forwarded-user", "-").encode(), "200 OK", "Cache-Control: max-age=60"))
    running = telling(forwards=False)
    assert running.get(there.url("/"), Proxy_Authorization=ANN).body == b"-"
    config = running.config
    config["hosts"][0]["request"]["forwardUser"] = True
    reload(running, config)
    assert running.get(there.url("/"), Proxy_Authorization=ANN).body == b"ann"


def test_in_intercepted_tunnels(gateway, pki, authority, section, origin):
    there = origin(lambda seen: reply(seen.get("x-forwarded-user", "-").encode() + b"!"),
                   tls=pki.intermediate.issue(HOST).server_context())
    running = gateway({
        "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
        "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "authentication": ["basic"]}],
        "authentication": section, "interception": authority.section,
        "hosts": [{"match": [HOST], "intercept": True, "request": {"forwardUser": True}}]})
    with running.wire() as wire:
        wire.send(f"CONNECT {HOST}:{there.port} HTTP/1.1\r\nHost: x\r\n"
                  f"Proxy-Authorization: {ANN}\r\n\r\n")
        assert wire.read_head().status == 200
        inside = Inside(authority.file)
        wire.send(inside.hello)
        inside.shake(wire)
        answer = inside.ask(wire, f"GET / HTTP/1.1\r\nHost: {HOST}:{there.port}\r\n"
                            "X-Forwarded-User: root\r\n\r\n".encode(), b"!")
        assert answer.endswith(b"ann!")
