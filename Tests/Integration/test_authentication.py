"""Who is asking: Basic against htpasswd files and Bearer against a file of tokens, on forward and
reverse listeners, for CONNECT and in intercepted tunnels."""

from __future__ import annotations

import concurrent.futures
import re
import signal
import subprocess
import time

import pytest
import requests
from support.credentials import SCHEMES, argon2, basic, bcrypt, crypt, digest, sha_crypt, write
from support.gateway import run_pinfold, wire_from
from support.interception import HOST, Inside
from support.origin import OriginConnection, reply
from support.wait import until

ANN, TOKEN = basic("ann", "secret"), "open-sesame.1"


@pytest.fixture
def files(workspace):
    write(workspace / "users", "# users", f"ann:{bcrypt('secret')}", f"jürgen:{bcrypt('pässwörd')}")
    write(workspace / "groups", "staff: ann jürgen", "admins: ann")
    write(workspace / "tokens", f"ci:{digest(TOKEN)}:build",
          f"old:{digest('expired')}::2020-01-01", f"later:{digest('later-token')}:build:2100-01-01")
    return workspace


def section(files, **more):
    return {"realm": "Example", "users": str(files / "users"), "groups": str(files / "groups"),
            "tokens": str(files / "tokens"), **more}


def listener(*methods, **more):
    return {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward",
            "authentication": list(methods)} | more


@pytest.fixture
def running(gateway, files):
    return gateway({"listeners": [listener("basic", "bearer")], "authentication": section(files)})


@pytest.fixture
def there(origin):
    return origin(lambda seen: reply(b"here", "200 OK", "Cache-Control: no-store"))


def get(there, *credentials, field="Proxy-Authorization", target=None):
    lines = [f"GET {target or there.url('/')} HTTP/1.1", f"Host: {there.authority}"]
    lines += [f"{field}: {value}" for value in credentials]
    return "\r\n".join(lines) + "\r\n\r\n"


def reason(response):
    return response.proxy_status["details"].split(":")[0]


CHALLENGES = ['Bearer realm="Example"', 'Basic realm="Example", charset="UTF-8"']


# Forward listeners

def test_nobody_is_served_without_credentials_and_the_connection_stays(running, there):
    with running.wire() as wire:
        for _ in range(3):
            wire.send(get(there))
            response = wire.read()
            assert response.status == 407
            assert response.all("Proxy-Authenticate") == CHALLENGES
            assert "www-authenticate" not in response
            assert response.get("Connection") == ""
            assert reason(response) == "authentication-required"
        wire.send(get(there, ANN))
        assert wire.read().body == b"here"
        # Each request proves it by itself.
        wire.send(get(there))
        assert wire.read().status == 407
    assert len(there.requests) == 1


@pytest.mark.parametrize("credentials, user", [
    (ANN, "ann"), (basic("jürgen", "pässwörd"), "jürgen"), (f"Bearer {TOKEN}", "ci"),
    ("bearer later-token", "later"), (ANN.replace("Basic ", "bAsIc  "), "ann")])
def test_who_proves_it_is_served_and_logged(running, there, credentials, user):
    response = running.get(there.url("/"), Proxy_Authorization=credentials)
    assert response.body == b"here"
    assert "proxy-authorization" not in there.requests[0]
    line = running.wait_access()[-1]
    assert line["user"] == user
    assert credentials.split()[-1] not in running.access_file.read_text() + running.log()


@pytest.mark.parametrize("credentials, expected", [
    (basic("ann", "wrong"), "credentials-wrong"), (basic("eve", "secret"), "credentials-wrong"),
    (basic("ann", ""), "credentials-wrong"), (basic("Ann", "secret"), "credentials-wrong"),
    (basic("ann", "secret "), "credentials-wrong"), ("Bearer wrong", "credentials-wrong"),
    ("Bearer expired", "credentials-expired"), (f"Bearer {digest(TOKEN)}", "credentials-wrong"),
    ("Basic", "credentials-unusable"), ("Basic ann:secret", "credentials-unusable"),
    ("Basic " + "A" * 2000, "credentials-unusable"), (basic("ann", "a\0b"), "credentials-unusable"),
    (ANN.rstrip("=") + "=", "credentials-unusable"), (ANN + " x", "credentials-unusable"),
    ("Digest username=\"ann\"", "credentials-unusable"), ("Negotiate YII=", "credentials-unusable"),
    ("", "credentials-unusable"), (f"{ANN}, Bearer {TOKEN}", "credentials-unusable")])
def test_wrong_credentials_are_asked_for_again(running, there, credentials, expected):
    with running.wire() as wire:
        wire.send(get(there, credentials))
        response = wire.read()
        assert response.status == 407
        assert reason(response) == expected
        shown = list(CHALLENGES)
        if credentials.startswith("Bearer"):
            shown[0] += ', error="invalid_token"'
        assert response.all("Proxy-Authenticate") == shown
        wire.send(get(there, ANN))
        assert wire.read().body == b"here"
    assert len(there.requests) == 1
    assert "user" not in running.wait_access(2)[0]


@pytest.mark.parametrize("pair", [(ANN, ANN), (ANN, basic("ann", "wrong")),
                                  (f"Bearer {TOKEN}", ANN), ("", ANN)])
def test_two_fields_are_refused(running, there, pair):
    with running.wire() as wire:
        wire.send(get(there, *pair))
        response = wire.read()
        assert (response.status, reason(response)) == (400, "credentials-repeated")
        assert "proxy-authenticate" not in response
        assert wire.ended()
    assert there.requests == []


def test_an_authorization_for_the_server_proves_nothing_and_is_passed_on(running, there):
    response = running.ask(get(there, ANN, field="Authorization"))
    assert response.status == 407
    both = (f"GET {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\nAuthorization: mine\r\n"
            f"Proxy-Authorization: {ANN}\r\nConnection: close\r\n\r\n")
    assert running.ask(both).body == b"here"
    assert there.requests[0].get("authorization") == "mine"


@pytest.mark.parametrize("method, credentials, status", [
    ("bearer", ANN, 407), ("basic", f"Bearer {TOKEN}", 407), ("basic", ANN, 200),
    ("bearer", f"Bearer {TOKEN}", 200)])
def test_a_listener_accepts_only_its_own_methods(
    gateway, files, there, method, credentials, status
):
    running = gateway({"listeners": [listener(method)], "authentication": section(files)})
    response = running.get(there.url("/"), Proxy_Authorization=credentials)
    assert response.status == status
    if status == 407:
        assert len(response.all("Proxy-Authenticate")) == 1


def test_the_networks_of_clients_come_first(gateway, files, there):
    running = gateway({"listeners": [listener("basic")], "authentication": section(files),
                       "access": {"clients": ["127.0.0.2/32"]}})
    with wire_from(running, "127.0.0.3") as wire:
        wire.send(get(there, ANN))
        response = wire.read()
        assert (response.status, reason(response)) == (403, "client-not-allowed")


def test_the_administration_asks_nobody(running):
    assert running.admin_get("/metrics").status == 200


def test_a_request_that_is_none_for_a_proxy_is_told_so(running):
    response = running.get("/", Proxy_Authorization=ANN)
    assert (response.status, reason(response)) == (400, "not-a-proxy-request")
    response = running.ask("OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert response.status == 407


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_hash_is_checked(gateway, files, there, scheme):
    write(files / "users", f"ann:{SCHEMES[scheme]('sécret')}")
    running = gateway({"listeners": [listener("basic")],
                       "authentication": {"users": str(files / "users")}})
    for password, status in (("sécret", 200), ("secret", 407), ("sécret", 200)):
        response = running.get(there.url("/"), Proxy_Authorization=basic("ann", password))
        assert response.status == status
    assert running.metric("pinfold_authentications_total", result="remembered") == 1
    assert running.metric("pinfold_authentications_total", result="accepted") == 1
    assert running.metric("pinfold_authentications_total", result="wrong") == 1


def test_content_waits_for_the_password_check(gateway, files, origin):
    write(files / "users", f"ann:{bcrypt('secret', 10)}")
    echo = origin(lambda seen: reply(seen.body))
    running = gateway({"listeners": [listener("basic")],
                       "authentication": {"users": str(files / "users")}})
    body = b"x" * 300_000
    with running.wire() as wire:
        wire.send(f"POST {echo.url('/')} HTTP/1.1\r\nHost: {echo.authority}\r\n"
                  f"Proxy-Authorization: {ANN}\r\nContent-Length: {len(body)}\r\n\r\n")
        wire.send(body)
        assert wire.read().body == body
        # One behind the other in the same segment.
        wire.send(get(echo, ANN) * 3)
        assert [wire.read().status for _ in range(3)] == [200] * 3


def test_a_request_with_content_and_wrong_credentials_ends_the_connection(running, there):
    with running.wire() as wire:
        wire.send(f"POST {there.url('/')} HTTP/1.1\r\nHost: {there.authority}\r\n"
                  "Content-Length: 5\r\n\r\nhello")
        response = wire.read()
        assert response.status == 407
        assert wire.ended() or response.get("Connection") == ""
    assert there.requests == []


# CONNECT

def echo(connection: OriginConnection) -> None:
    while connection.buffer or connection._more():
        data, connection.buffer = connection.buffer, b""
        connection.send(data)


def connect_head(authority, *credentials):
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
    lines += [f"Proxy-Authorization: {value}" for value in credentials]
    return "\r\n".join(lines) + "\r\n\r\n"


def test_connect_may_be_repeated_on_the_same_connection(running, scripted_origin):
    there = scripted_origin(echo)
    with running.wire() as wire:
        for credentials in ([], [basic("ann", "wrong")]):
            wire.send(connect_head(there.authority, *credentials))
            response = wire.read()
            assert response.status == 407
            assert response.get("Connection") == ""
            assert response.all("Proxy-Authenticate") == CHALLENGES
        wire.send(connect_head(there.authority, ANN))
        assert wire.read_head().status == 200
        wire.send(b"through")
        assert wire.read_exactly(7) == b"through"
    assert [line.get("user") for line in running.wait_access(3)] == [None, None, "ann"]


def test_what_follows_a_refused_connect_is_never_a_request(running, there, scripted_origin):
    tunnel = scripted_origin(echo)
    with running.wire() as wire:
        wire.send(connect_head(tunnel.authority) + get(there, ANN))
        response = wire.read()
        assert response.status == 407
        assert response.get("Connection") == "close"
        assert wire.ended()
    with running.wire() as wire:
        wire.send(connect_head(tunnel.authority, basic("ann", "wrong")) + get(there, ANN))
        assert wire.read().get("Connection") == "close"
        assert wire.ended()
    assert there.requests == []


def test_other_refusals_of_connect_end_the_connection(gateway, files):
    running = gateway({"listeners": [listener("basic")], "authentication": section(files),
                       "access": {"connectPorts": [443]}})
    with running.wire() as wire:
        wire.send(connect_head("127.0.0.1:1", ANN))
        response = wire.read()
        assert (response.status, response.get("Connection")) == (403, "close")
        assert wire.ended()


@pytest.mark.parametrize("tunnel", [[], ["--proxytunnel"]])
@pytest.mark.parametrize("way", ["given", "any"])
def test_curl(running, there, tunnel, way):
    """By itself, and asking first which methods there are."""
    arguments = ["--proxy-anyauth"] if way == "any" else []
    done = subprocess.run(
        ["curl", "-q", "-sS", "--max-time", "20", "-x", running.proxy_url, "-U", "ann:secret",
         *arguments, *tunnel, there.url("/")], capture_output=True, text=True, timeout=30)
    assert (done.stdout, done.returncode) == ("here", 0), done.stderr
    if way == "any":
        assert [line["status"] for line in running.wait_access(2)][0] == 407
        assert running.metric("pinfold_client_connections_accepted_total") <= 4


def test_curl_with_wrong_credentials_does_not_ask_for_ever(running, there):
    done = subprocess.run(
        ["curl", "-q", "-sS", "--max-time", "20", "-x", running.proxy_url, "-U", "ann:wrong",
         "-o", "/dev/null", "-w", "%{http_code}", there.url("/")],
        capture_output=True, text=True, timeout=30)
    assert done.stdout == "407"


# Interception

@pytest.fixture
def intercepting(gateway, pki, authority, files):
    return gateway({
        "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
        "listeners": [listener("basic")], "authentication": section(files),
        "interception": authority.section, "hosts": [{"match": [HOST], "intercept": True}]})


def test_who_asked_for_the_tunnel_is_the_user_of_its_requests(
    intercepting, authority, pki, origin, files
):
    leaf = pki.intermediate.issue(HOST)
    there = origin(lambda seen: reply(b"seen"), tls=leaf.server_context())
    with intercepting.wire() as wire:
        wire.send(connect_head(f"{HOST}:{there.port}", ANN))
        assert wire.read_head().status == 200
        inside = Inside(authority.file)
        wire.send(inside.hello)
        inside.shake(wire)
        for _ in range(2):
            seen = inside.ask(
                wire, f"GET / HTTP/1.1\r\nHost: {HOST}:{there.port}\r\n"
                "Proxy-Authorization: stray\r\nAuthorization: Basic servers\r\n\r\n".encode(),
                b"seen")
            assert seen.startswith(b"HTTP/1.1 200")
        assert [one.get("authorization") for one in there.requests] == ["Basic servers"] * 2
        assert not any("proxy-authorization" in one for one in there.requests)
        assert [line.get("user") for line in intercepting.wait_access(3)] == ["ann"] * 3
        # A user who is gone has no tunnel any more.
        write(files / "users", f"bob:{bcrypt('secret')}")
        write(files / "groups", "staff: bob")
        assert wire.read_to_end() is not None
    with intercepting.wire() as wire:
        wire.send(connect_head(f"{HOST}:{there.port}", ANN))
        assert wire.read().status == 407


def change_password(files):
    write(files / "users", f"ann:{bcrypt('other')}", f"jürgen:{bcrypt('pässwörd')}")


def remove_user(files):
    write(files / "users", f"jürgen:{bcrypt('pässwörd')}")
    write(files / "groups", "staff: jürgen")


def remove_token(files):
    write(files / "tokens", f"later:{digest('later-token')}:build")


def end_token(files):
    write(files / "tokens", f"later:{digest('later-token')}:build",
          f"ci:{digest(TOKEN)}:build:2020-01-01")


def change_nothing_of_theirs(files):
    write(files / "users", f"ann:{ANN_HASH}", f"bob:{bcrypt('bobs')}")
    write(files / "tokens", f"later:{digest('later-token')}:build", f"ci:{digest(TOKEN)}:build")


ANN_HASH = bcrypt("secret")
CHANGES = [(ANN, change_password), (ANN, remove_user), (f"Bearer {TOKEN}", remove_token),
           (f"Bearer {TOKEN}", end_token)]


def tunnelled(gateway, files, **entry):
    return gateway({"listeners": [listener("basic", "bearer")], "authentication": section(files),
                    "access": {"connectPorts": "any"},
                    "hosts": [{"match": ["127.0.0.1"], **entry}]})


@pytest.mark.parametrize("live", ["auto", "close", "keep"])
@pytest.mark.parametrize("credentials, change", CHANGES)
def test_open_tunnels_end_when_their_user_could_not_open_them_any_more(
    gateway, files, scripted_origin, credentials, change, live
):
    write(files / "users", f"ann:{ANN_HASH}")
    running = tunnelled(gateway, files, liveTunnels=live)
    there = scripted_origin(echo)
    with running.wire() as wire, running.wire() as other:
        for one, proof in ((wire, credentials), (other, "Bearer later-token")):
            one.send(connect_head(there.authority, proof))
            assert one.read_head().status == 200
            one.send(b"through")
            assert one.read_exactly(7) == b"through"
        change(files)
        if live == "keep":
            ask_until(running, there, credentials, 407)
        else:
            assert wire.ended()
            line = until(lambda: next((one for one in running.access_lines()
                                       if one.get("reason") == "tunnel-policy-changed"), None),
                         "its line in the log")
            assert line["user"] in ("ann", "ci")
        for one in [wire, other] if live == "keep" else [other]:
            one.send(b"still")
            assert one.read_exactly(5) == b"still"


def test_tunnels_stay_open_when_nothing_of_their_user_changes(
    gateway, files, scripted_origin
):
    write(files / "users", f"ann:{ANN_HASH}")
    running = tunnelled(gateway, files, liveTunnels="close")
    there = scripted_origin(echo)
    with running.wire() as ann, running.wire() as ci:
        for wire, proof in ((ann, ANN), (ci, f"Bearer {TOKEN}")):
            wire.send(connect_head(there.authority, proof))
            assert wire.read_head().status == 200
        change_nothing_of_theirs(files)
        ask_until(running, there, basic("bob", "bobs"), 502)
        for wire in (ann, ci):
            wire.send(b"still")
            assert wire.read_exactly(5) == b"still"


@pytest.mark.parametrize("credentials, change", CHANGES)
def test_intercepted_tunnels_end_when_their_user_could_not_open_them_any_more(
    gateway, pki, authority, files, origin, credentials, change
):
    running = gateway({
        "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
        "listeners": [listener("basic", "bearer")], "authentication": section(files),
        "interception": authority.section, "hosts": [{"match": [HOST], "intercept": True}]})
    there = origin(lambda seen: reply(b"seen"), tls=pki.intermediate.issue(HOST).server_context())
    with running.wire() as wire:
        wire.send(connect_head(f"{HOST}:{there.port}", credentials))
        assert wire.read_head().status == 200
        inside = Inside(authority.file)
        wire.send(inside.hello)
        inside.shake(wire)
        ask = f"GET / HTTP/1.1\r\nHost: {HOST}:{there.port}\r\n\r\n".encode()
        assert inside.ask(wire, ask, b"seen").startswith(b"HTTP/1.1 200")
        change(files)
        assert wire.read_to_end() is not None
    assert len(there.requests) == 1


def test_a_token_that_expires_ends_its_intercepted_tunnel(
    gateway, pki, authority, files, origin
):
    """Nothing changes in the files: the clock decides."""
    end = time.time() + 4
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end))
    write(files / "tokens", f"ci:{digest(TOKEN)}:build:{stamp}")
    running = gateway({
        "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
        "listeners": [listener("bearer")], "authentication": section(files),
        "interception": authority.section, "hosts": [{"match": [HOST], "intercept": True}]})
    there = origin(lambda seen: reply(b"seen"), tls=pki.intermediate.issue(HOST).server_context())
    with running.wire() as wire:
        wire.send(connect_head(f"{HOST}:{there.port}", f"Bearer {TOKEN}"))
        assert wire.read_head().status == 200
        inside = Inside(authority.file)
        wire.send(inside.hello)
        inside.shake(wire)
        ask = f"GET / HTTP/1.1\r\nHost: {HOST}:{there.port}\r\n\r\n".encode()
        assert inside.ask(wire, ask, b"seen").startswith(b"HTTP/1.1 200")
        time.sleep(max(0, end + 0.2 - time.time()))
        answer = inside.ask(wire, ask, b"credentials-ended")
        assert answer.startswith(b"HTTP/1.1 403")
        assert b"roxy-authenticate" not in answer.lower()
        assert wire.read_to_end() is not None
    assert len(there.requests) == 1
    assert running.metric("pinfold_authentications_total", result="ended") == 1


def test_nothing_is_intercepted_for_whom_nobody_knows(intercepting):
    with intercepting.wire() as wire:
        wire.send(connect_head(f"{HOST}:443"))
        assert wire.read().status == 407
        wire.send(connect_head(f"{HOST}:443", basic("eve", "secret")))
        assert wire.read().status == 407


# Reverse listeners and the cache

def reverse(gateway, files, there, **more):
    return gateway({
        "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "reverse",
                       "upstream": there.url(""), "authentication": ["basic", "bearer"]}],
        "authentication": section(files), **more})


def own(*credentials, path="/"):
    lines = [f"GET {path} HTTP/1.1", "Host: site.test"]
    lines += [f"Authorization: {value}" for value in credentials]
    return "\r\n".join(lines) + "\r\n\r\n"


def test_a_reverse_listener_asks_as_a_server_and_keeps_the_proof(gateway, files, there):
    running = reverse(gateway, files, there)
    with running.wire() as wire:
        wire.send(own())
        response = wire.read()
        assert response.status == 401
        assert response.all("WWW-Authenticate") == CHALLENGES
        assert "proxy-authenticate" not in response
        assert b"401 authentication-required" in response.body
        wire.send(own("Bearer wrong"))
        assert wire.read().status == 401
        for credentials in (ANN, ANN, f"Bearer {TOKEN}"):
            wire.send(own(credentials))
            assert wire.read().body == b"here"
        wire.send(own(ANN, ANN))
        assert wire.read().status == 400
    assert not any("authorization" in one for one in there.requests)
    assert [line.get("user") for line in running.wait_access(6)] == [
        None, None, "ann", "ann", "ci", None]


@pytest.mark.parametrize("control, asked", [
    ("max-age=60", 2), ("max-age=60, public", 1), ("s-maxage=60", 1)])
@pytest.mark.parametrize("rules", [{}, {"request": {"headers": {"set": {"X-By": "rules"}}}}])
def test_the_consumed_field_counts_as_authorization_for_the_cache(
    gateway, files, origin, control, asked, rules
):
    """RFC 9111 §3.5, with and without rules that write another head."""
    there = origin(lambda seen: reply(b"here", "200 OK", f"Cache-Control: {control}"))
    running = reverse(gateway, files, there,
                      hosts=[{"match": ["127.0.0.1"], **rules}] if rules else [])
    with running.wire() as wire:
        for credentials in (ANN, f"Bearer {TOKEN}"):
            wire.send(own(credentials))
            assert wire.read().body == b"here"
        # Whoever proves nothing gets nothing of what is stored either.
        wire.send(own())
        assert wire.read().status == 401
    assert len(there.requests) == asked
    assert not any("authorization" in one for one in there.requests)
    assert all(one.get("x-by") == ("rules" if rules else "") for one in there.requests)


def test_rules_may_add_a_credential_of_their_own_in_its_place(gateway, files, there):
    write(files / "secret", "servers-token")
    running = reverse(
        gateway, files, there,
        hosts=[{"match": ["127.0.0.1"], "request": {"authorization": {
            "bearer": {"tokenFile": str(files / "secret")}, "clearText": "allow"}}}])
    assert running.get("/", Authorization=ANN).body == b"here"
    assert there.requests[0].all("authorization") == ["Bearer servers-token"]


def test_a_revalidation_in_the_background_does_not_send_the_proof(gateway, files, origin):
    there = origin(lambda seen: reply(
        b"here", "200 OK", "Cache-Control: public, max-age=0, stale-while-revalidate=60",
        "ETag: \"a\""))
    running = reverse(gateway, files, there)
    for _ in range(2):
        assert running.get("/", Authorization=ANN).body == b"here"
    until(lambda: len(there.requests) >= 2, "the response is revalidated")
    assert not any("authorization" in one for one in there.requests)


def test_proving_oneself_to_a_proxy_changes_nothing_about_the_cache(running, origin):
    there = origin(lambda seen: reply(b"here", "200 OK", "Cache-Control: max-age=60"))
    for credentials in (ANN, f"Bearer {TOKEN}"):
        response = running.get(there.url("/"), Proxy_Authorization=credentials)
        assert response.body == b"here"
    assert len(there.requests) == 1
    assert running.get(there.url("/")).status == 407


# Reloads

def ask_until(running, there, credentials, status):
    def answered():
        return running.get(there.url("/"), Proxy_Authorization=credentials).status == status
    until(answered, f"status {status}", 10)


def test_files_are_taken_up_when_they_change(running, there, files):
    ask_until(running, there, ANN, 200)
    write(files / "users", f"ann:{bcrypt('other')}", f"bob:{bcrypt('bobs')}")
    ask_until(running, there, basic("bob", "bobs"), 200)
    # What was remembered is not what counts now.
    assert running.get(there.url("/"), Proxy_Authorization=ANN).status == 407
    write(files / "tokens", f"new:{digest('new-token')}")
    ask_until(running, there, "Bearer new-token", 200)
    assert running.get(there.url("/"), Proxy_Authorization=f"Bearer {TOKEN}").status == 407


def test_a_wrong_file_leaves_the_old_content_in_use(running, there, files):
    ask_until(running, there, ANN, 200)
    write(files / "users", f"ann:{bcrypt('other')}", "bob:plain-secret")
    line = running.wait_log("cannot be used")
    assert "line 2" in line and "bob" in line and "plain text" in line
    assert running.get(there.url("/"), Proxy_Authorization=ANN).status == 200
    write(files / "tokens", "ci:not-hex-secret")
    assert "line 1" in running.wait_log("tokens.* line 1")
    assert running.get(there.url("/"), Proxy_Authorization=f"Bearer {TOKEN}").status == 200
    assert "plain-secret" not in running.log() and "not-hex-secret" not in running.log()
    write(files / "users", f"ann:{bcrypt('other')}")
    ask_until(running, there, basic("ann", "other"), 200)
    ask_until(running, there, ANN, 407)


def test_a_reload_that_asks_for_credentials_ends_open_connections(gateway, files, there):
    running = gateway({"listeners": [listener()], "authentication": section(files)})
    with running.wire() as wire:
        wire.send(get(there))
        assert wire.read().status == 200
        asking = listener("basic", address="127.0.0.1:%d" % running.proxy[1])
        running.write_config(running.config | {"listeners": [asking]})
        running.signal(signal.SIGHUP)
        running.wait_log("configuration reloaded")
        assert wire.ended()
    until(lambda: running.get(there.url("/")).status == 407, "the listener asks")
    assert running.get(there.url("/"), Proxy_Authorization=ANN).status == 200


# Mistakes in the configuration

@pytest.mark.parametrize("lines, problem", [
    (["ann:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="], "line 1.*SHA-1"),
    (["ann:" + "$apr1$salt$HYnGBRZwNmLL9bzwsOp0E."], "line 1.*MD5"),
    (["", "bob:rqXexS6ZhobKA"], "line 2.*DES"), (["bob:letmein-please"], "line 1.*plain text"),
    (["bob"], "line 1 has no colon|line 1: has no colon")])
def test_hashes_that_prove_little_are_errors(files, lines, problem):
    write(files / "users", *lines)
    config = files / "pinfold.yaml"
    config.write_text("listeners: [{ name: proxy, address: 127.0.0.1:0, authentication: [basic] }]\n"
                      "authentication: { users: users }\n")
    done = run_pinfold("check", "--config", str(config))
    assert done.returncode != 0
    assert re.search(problem, done.stdout + done.stderr), done.stdout + done.stderr
    secret = lines[-1].partition(":")[2]
    assert not secret or secret not in done.stdout + done.stderr


@pytest.mark.parametrize("text, problem", [
    ("listeners: [{ address: 127.0.0.1:0, authentication: [basic] }]", "authentication.users"),
    ("listeners: [{ address: 127.0.0.1:0, authentication: [bearer] }]", "authentication.tokens"),
    ("listeners: [{ address: 127.0.0.1:0, authentication: [kerberos] }]", "basic, bearer"),
    ("listeners: [{ address: 127.0.0.1:0, authentication: [basic, basic] }]\n"
     "authentication: { users: users }", "twice"),
    ("authentication: { realm: \"\" }", "realm"),
    ("authentication: { users: absent }", "absent")])
def test_what_cannot_be_meant_is_an_error(files, text, problem):
    config = files / "pinfold.yaml"
    config.write_text(text + "\n")
    done = run_pinfold("check", "--config", str(config))
    assert done.returncode != 0 and problem in done.stdout + done.stderr


def test_check_warns_and_prints_no_secret(files):
    config = files / "pinfold.yaml"
    config.write_text(
        "listeners: [{ name: proxy, address: 0.0.0.0:0, authentication: [basic] }]\n"
        "access: { clients: [10.0.0.0/8] }\n"
        "authentication: { users: users, groups: groups, tokens: tokens }\n")
    write(files / "groups", "staff: ann nobody-known")
    done = run_pinfold("check", "--config", str(config))
    out = done.stdout + done.stderr
    assert done.returncode == 0, out
    assert "clear text" in out
    assert "groups\" line 1 names \"nobody-known\"" in out
    assert "$2y$" not in out and digest(TOKEN) not in out


# Time

def test_an_unknown_user_takes_as_long_as_a_known_one(gateway, files, there):
    write(files / "users", *(f"u{n}:{bcrypt('secret', 8)}" for n in range(3)),
          f"x:{sha_crypt('secret', 5)}")
    running = gateway({"listeners": [listener("basic")],
                       "authentication": {"users": str(files / "users")}})

    # In turns, and the shortest: what else the machine does only makes it take longer.
    times = {"u1": [], "nobody": []}
    for n in range(9):
        for user, taken in times.items():
            with wire_from(running, f"127.0.{n + 1}.1") as wire:
                began = time.monotonic()
                wire.send(get(there, basic(user, f"wrong{n}")))
                assert wire.read().status == 407
                taken.append(time.monotonic() - began)
    known, unknown = min(times["u1"]), min(times["nobody"])
    assert known > 0.003
    assert 0.5 < unknown / known < 2


def test_failures_delay_the_same_user_from_the_same_network_alone(gateway, files, there):
    running = gateway({"listeners": [listener("basic")], "authentication": section(files)})

    def attempt(source, credentials):
        with wire_from(running, source) as wire:
            began = time.monotonic()
            wire.send(get(there, credentials))
            return wire.read().status, time.monotonic() - began

    for n in range(4):
        status, took = attempt("127.0.0.2", basic("ann", f"wrong{n}"))
        assert status == 407 and took < 0.9
    assert attempt("127.0.0.2", basic("ann", "wrong4"))[1] >= 0.9
    assert running.metric("pinfold_authentication_delays_total") == 1
    # Somebody else's failures slow nobody.
    for source, user in (("127.0.0.3", ANN), ("127.0.0.2", basic("jürgen", "pässwörd"))):
        status, took = attempt(source, user)
        assert status == 200 and took < 0.9
    # Nor a credential that was verified.
    for n in range(3):
        attempt("127.0.0.3", basic("ann", f"wrong{n}"))
    status, took = attempt("127.0.0.3", ANN)
    assert status == 200 and took < 0.5


def test_a_flood_of_guesses_is_turned_away(gateway, files, there):
    running = gateway({"listeners": [listener("basic")], "authentication": section(files)})

    def guess(number):
        with wire_from(running, "127.0.0.9", timeout=60) as wire:
            wire.send(get(there, basic("ann", f"guess{number}")))
            try:
                response = wire.read()
            except TimeoutError:
                return 0
            return response.status, response.get("Retry-After")

    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        pending = [pool.submit(guess, number) for number in range(40)]
        done = [one.result() for one in concurrent.futures.as_completed(pending[:], 90)
                if one.result()[0] == 503]
        # When the next attempt begins at once: the last delay before was 8 or 16 s.
        assert done and all(8 <= int(after) <= 61 for _, after in done)
        assert running.metric("pinfold_authentications_total", result="busy") >= 30


def test_a_slow_hash_delays_no_other_client(gateway, files, there):
    """One bcrypt of cost 12 takes a quarter of a second; others are served meanwhile."""
    write(files / "users", f"slow:{bcrypt('secret', 12)}", f"ann:{bcrypt('secret')}")
    running = gateway({"workers": 1, "listeners": [listener("basic", "bearer")],
                       "authentication": section(files)})
    assert running.get(there.url("/"), Proxy_Authorization=ANN).status == 200
    with running.wire() as slow, running.wire() as other:
        slow.send(get(there, basic("slow", "secret")))
        began, count = time.monotonic(), 0
        while running.metric("pinfold_authentications_total", result="accepted") == count + 1:
            other.send(get(there, ANN))
            assert other.read().status == 200
            other.send(get(there, f"Bearer {TOKEN}"))
            assert other.read().status == 200
            count += 1
            if time.monotonic() - began > 10:
                break
        assert slow.read().status == 200
    assert count >= 2


def test_equal_credentials_at_the_same_time_are_checked_once(gateway, files, there):
    write(files / "users", f"slow:{bcrypt('secret', 12)}")
    running = gateway({"listeners": [listener("basic")],
                       "authentication": {"users": str(files / "users")}})
    wires = [running.wire() for _ in range(8)]
    before = running.cpu_seconds()
    for wire in wires:
        wire.send(get(there, basic("slow", "secret")))
    for wire in wires:
        assert wire.read().status == 200
        wire.close()
    used = running.cpu_seconds() - before
    began = time.process_time()
    crypt("secret", "$2y$12$abcdefghijklmnopqrstuu")
    assert used < 4 * (time.process_time() - began) + 0.2


def test_a_client_that_leaves_cancels_its_check(gateway, files, there):
    running = gateway({"workers": 1, "listeners": [listener("basic")],
                       "authentication": section(files)})
    for n in range(4):
        with wire_from(running, "127.0.0.2") as wire:
            wire.send(get(there, basic("ann", f"wrong{n}")))
            assert wire.read().status == 407
    wire = wire_from(running, "127.0.0.2")
    wire.send(get(there, basic("ann", "wrong5")))
    until(lambda: running.metric("pinfold_http_requests_in_flight") == 1, "it waits")
    wire.reset()
    until(lambda: running.metric("pinfold_http_requests_in_flight") == 0, "it has ended", 0.9)
    time.sleep(1.2)
    assert running.metric("pinfold_authentications_total", result="wrong") == 4


def test_argon2_uses_one_thread(gateway, files, there):
    write(files / "users", f"ann:{argon2('secret')}")
    running = gateway({"workers": 1, "listeners": [listener("basic")],
                       "authentication": {"users": str(files / "users")}})
    before = running.status("Threads")
    assert running.get(there.url("/"), Proxy_Authorization=ANN).status == 200
    assert running.status("Threads") <= before + 1


def test_the_combined_format_names_the_user(gateway, files, there):
    running = gateway({"listeners": [listener("basic")], "authentication": section(files),
                       "log": {"access": {"path": "access.log", "format": "combined"}}})
    assert running.get(there.url("/"), Proxy_Authorization=ANN).status == 200
    text = until(lambda: running.access_file.exists() and running.access_file.read_text(), "a line")
    assert text.startswith("127.0.0.1 - ann [")


def test_requests_of_a_session(running, there):
    with requests.Session() as session:
        session.trust_env = False
        session.proxies = {"http": "http://ann:secret@%s:%d" % running.proxy}
        assert [session.get(there.url("/")).text for _ in range(3)] == ["here"] * 3
        session.proxies = {"http": "http://ann:wrong@%s:%d" % running.proxy}
        assert session.get(there.url("/")).status_code == 407
