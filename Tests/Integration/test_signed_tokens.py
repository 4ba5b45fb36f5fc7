"""JSON Web Tokens as proof of who is asking: what is accepted, every wrong token, keys that change."""

from __future__ import annotations

import json
import re
import time

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from support.credentials import basic, bcrypt, digest, write
from support.gateway import run_pinfold, wire_from
from support.interception import HOST, Inside
from support.origin import reply
from support.signed_tokens import (
    Signer, claims, hmac_token, key_set, signers, signing_input, url_safe)
from support.wait import until

KEYS, OTHERS = signers(), signers()
RSA, EC, ED = KEYS["rsa"], KEYS["ec"], KEYS["ed"]


@pytest.fixture
def files(workspace):
    write(workspace / "jwks.json", key_set(*KEYS.values()))
    write(workspace / "users", f"ann:{bcrypt('secret')}")
    write(workspace / "tokens", f"ci:{digest('open-sesame')}")
    return workspace


def section(files, **more):
    return {"realm": "Example", "users": str(files / "users"), "tokens": str(files / "tokens"),
            "jwt": {"keys": str(files / "jwks.json"), "issuer": "https://id.test",
                    "audience": "pinfold", "groups": "roles"} | more}


def listener(*methods, **more):
    return {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward",
            "authentication": list(methods)} | more


@pytest.fixture
def running(gateway, files):
    return gateway({"workers": 1, "listeners": [listener("bearer", "basic")],
                    "authentication": section(files),
                    "access": {"clients": ["127.0.0.0/8"], "connectPorts": "any"}})


@pytest.fixture
def there(origin):
    return origin(lambda seen: reply(b"here", "200 OK", "Cache-Control: no-store"))


def get(there, *credentials, field="Proxy-Authorization"):
    lines = [f"GET {there.url('/')} HTTP/1.1", f"Host: {there.authority}"]
    lines += [f"{field}: {value}" for value in credentials]
    return "\r\n".join(lines) + "\r\n\r\n"


def reason(response):
    return response.proxy_status["details"].split(":")[0]


@pytest.mark.parametrize("name", KEYS)
def test_a_token_proves_who_is_asking(running, there, name):
    token = KEYS[name].token(claims())
    for _ in range(2):
        response = running.get(there.url("/"), Proxy_Authorization=f"Bearer {token}")
        assert response.body == b"here"
    assert [line["user"] for line in running.wait_access(2)] == ["jwt:ann"] * 2
    assert "proxy-authorization" not in there.requests[0]
    # The second one cost no signature.
    assert running.metric("pinfold_authentications_total", result="accepted") == 1
    assert running.metric("pinfold_authentications_total", result="remembered") == 1
    assert token not in running.access_file.read_text() + running.log()


def test_other_proofs_work_beside_it(running, there):
    for credentials in ("Bearer open-sesame", basic("ann", "secret"), f"Bearer {EC.token(claims())}"):
        assert running.get(there.url("/"), Proxy_Authorization=credentials).status == 200
    assert [line["user"] for line in running.wait_access(3)] == ["ci", "ann", "jwt:ann"]


@pytest.mark.parametrize("name", KEYS)
def test_a_single_key_in_pem(gateway, files, there, name):
    key = Signer(KEYS[name].key)
    (files / "key.pem").write_bytes(key.pem)
    running = gateway({"listeners": [listener("bearer")],
                       "authentication": section(files, keys=str(files / "key.pem"))})
    for kid in (None, "any"):
        token = key.token(claims(), kid=kid)
        assert running.get(there.url("/"), Proxy_Authorization=f"Bearer {token}").status == 200
    wrong = Signer(OTHERS[name].key).token(claims())
    assert running.get(there.url("/"), Proxy_Authorization=f"Bearer {wrong}").status == 407


def flipped(token, place):
    """The same with one bit of a part changed."""
    parts = token.split(".")
    part = parts[place]
    middle = len(part) // 2
    parts[place] = part[:middle] + ("A" if part[middle] != "A" else "B") + part[middle + 1:]
    return ".".join(parts)


def wrong_tokens():
    """Every wrong token with what the reply says."""
    now = int(time.time())
    made: list[tuple[str, str, str]] = []

    def add(name, token, expected="credentials-wrong"):
        made.append((name, token, expected))

    good = EC.token(claims())
    for name, key in OTHERS.items():
        add(f"another {name} key", key.token(claims()))
        add(f"another {name} key, no kid", key.token(claims(), kid=None))
    for alg in ("none", "None", "NONE", "nOnE", ""):
        for kid in (None, "ec"):
            data = signing_input({"alg": alg} | ({"kid": kid} if kid else {}), claims())
            add(f"alg {alg!r} {kid}", data + ".")
            add(f"alg {alg!r} {kid} and a signature", data + "." + good.split(".")[2])
    for key in KEYS.values():
        for secret in (key.pem, key.pem.strip(), json.dumps(key.jwk).encode(),
                       url_safe(key.pem).encode()):
            for alg in ("HS256", key.algorithm):
                for kid in ({}, {"kid": key.kid}):
                    add(f"{key.kid} as HMAC secret, {alg}",
                        hmac_token(secret, {"alg": alg, **kid}, claims()))
    for key in KEYS.values():
        for alg in ("RS256", "ES256", "EdDSA", "PS256", "ES384", "RS512", "HS256"):
            if alg != key.algorithm:
                add(f"{key.kid} says {alg}", key.token(claims(), alg=alg))
                add(f"{key.kid} says {alg}, no kid", key.token(claims(), alg=alg, kid=None))
    for name, header in {
            "jwk": {"jwk": OTHERS["ec"].jwk}, "jku": {"jku": "https://evil.test/jwks.json"},
            "x5u": {"x5u": "https://evil.test/cert.pem"}, "x5c": {"x5c": ["AAAA"]},
            "crit": {"crit": ["exp"]}, "b64": {"b64": False, "crit": ["b64"]},
            "typ": {"typ": "dpop+jwt"}, "logout": {"typ": "logout+jwt"}, "cty": {"cty": "JWT"},
            "kid": {"kid": "unknown"}, "kid path": {"kid": "../../etc/passwd"},
            "kid sql": {"kid": "x' UNION SELECT 'k"}}.items():
        add(f"header {name}", EC.token(claims(), **header))
        add(f"header {name}, other key", Signer(OTHERS["ec"].key, "ec").token(claims(), **header))
    for name, change in {
            "issuer": {"iss": "https://evil.test"}, "no issuer": {"iss": None},
            "issuers": {"iss": ["https://id.test"]}, "audience": {"aud": "other"},
            "no audience": {"aud": None}, "audiences": {"aud": ["other", "another"]},
            "no end": {"exp": None}, "later": {"nbf": now + 3600},
            "issued later": {"iat": now + 3600}, "no user": {"sub": None}, "empty": {"sub": ""},
            "root\\r\\n": {"sub": "root\r\nX-Forwarded-User: admin"}, "nul": {"sub": "ann\0"},
            "umlaut": {"sub": "jürgen"}, "space": {"sub": "a b"}, "number": {"sub": 7},
            "bidi": {"sub": "ann\u202e"}, "groups": {"roles": 7}, "group": {"roles": ["a\n"]},
            "nested group": {"roles": [["build"]]}}.items():
        add(f"claim {name}", EC.token(claims(**change)))
    for name, change in {"expired": now - 60, "long ago": 0}.items():
        add(name, EC.token(claims(exp=change)), "credentials-expired")
        add(f"{name}, other key", OTHERS["ec"].token(claims(exp=change)), "credentials-expired")
    text = json.dumps(claims())
    for name, change in {
            "exp text": text.replace('"exp": ', '"exp": "').replace(', "iat"', '", "iat"'),
            "exp big": re.sub(r'"exp": \d+', '"exp": 1e99', text),
            "two sub": text.replace('"sub": "ann"', '"sub": "ann", "sub": "root"'),
            "two exp": text.replace('"exp"', '"exp": 99999999999, "exp"'),
            "array": f"[{text}]", "nothing": "", "half": text[:-1], "more": text + "{}",
            "comment": text.replace("{", "{/**/", 1)}.items():
        add(f"claims {name}", EC.token(change), "credentials-unusable")
    add("two alg", raw('{"alg":"none","alg":"ES256","kid":"ec"}'), "credentials-unusable")
    for place in range(3):
        add(f"flipped {place}", flipped(good, place), "")
    for name, token in {
            "padded": good + "=", "four parts": good + ".x", "two parts": good.rpartition(".")[0],
            "space in it": good.replace(".", " .", 1), "empty signature": good.rpartition(".")[0] + ".",
            "swapped": ".".join(reversed(good.split("."))), "quoted": f'"{good}"',
            "header only": good.split(".")[0] + "..", "dots": "..", "twice": f"{good}.{good}",
            "url": good.replace("-", "+").replace("_", "/") + "A"}.items():
        add(name, token, "")
    half = EC.sign(signing_input({"alg": "ES256", "kid": "ec"}, claims()).encode())
    data = signing_input({"alg": "ES256", "kid": "ec"}, claims())
    der = EC.key.sign(data.encode(), ec.ECDSA(hashes.SHA256()))
    for name, signature in {"zeros": bytes(64), "r only": half[:32], "r zero": bytes(32) + half[32:],
                            "s zero": half[:32] + bytes(32), "DER": der, "long": half + b"\0",
                            "huge": bytes(4096)}.items():
        add(f"signature {name}", f"{data}.{url_safe(signature)}", "")
    add("too long", EC.token(claims(x="x" * 13_000)), "credentials-unusable")
    return made


def raw(header):
    data = f"{url_safe(header.encode())}.{url_safe(json.dumps(claims()).encode())}"
    return f"{data}.{url_safe(EC.sign(data.encode()))}"


def test_no_wrong_token_passes(running, there):
    """The attack table: each from a network of its own, so that none is turned away for another."""
    attempts = wrong_tokens()
    assert len(attempts) > 150
    told: dict[str, int] = {}
    for number, (name, token, expected) in enumerate(attempts):
        with wire_from(running, f"127.1.{number // 250}.{number % 250 + 1}") as wire:
            wire.send(get(there, f"Bearer {token}"))
            response = wire.read()
        assert response.status == 407, name
        assert reason(response) in ([expected] if expected else [
            "credentials-wrong", "credentials-unusable"]), (name, reason(response))
        told[reason(response)] = told.get(reason(response), 0) + 1
    print(len(attempts), "wrong tokens:", told)
    assert there.requests == []
    assert not any("user" in line for line in running.wait_access(len(attempts)))
    good = EC.token(claims())
    for pair in ([f"Bearer {good}"] * 2, [f"Bearer {good}", basic("ann", "secret")],
                 [f"Bearer {attempts[0][1]}", f"Bearer {good}"]):
        response = running.ask(get(there, *pair))
        assert (response.status, reason(response)) == (400, "credentials-repeated")
    for value in (f"Bearer {good}, Basic x", f"Bearer {good} x", f"Basic {good}", f"JWT {good}",
                  f"Bearer={good}", good):
        assert running.get(there.url("/"), Proxy_Authorization=value).status == 407
    assert running.ask(get(there, f"Bearer {good}", field="Authorization")).status == 407
    assert there.requests == []
    assert running.get(there.url("/"), Proxy_Authorization=f"Bearer {good}").status == 200


def test_a_token_that_is_meant_as_signed_counts_as_nothing_else(gateway, files, there):
    """Not even if a file lists its digest."""
    token = OTHERS["ec"].token(claims())
    write(files / "tokens", f"ci:{digest(token)}", f"dots:{digest('a.b.c')}")
    running = gateway({"listeners": [listener("bearer")], "authentication": section(files)})
    assert running.get(there.url("/"), Proxy_Authorization=f"Bearer {token}").status == 407
    assert running.get(there.url("/"), Proxy_Authorization="Bearer a.b.c").status == 200
    without = {key: value for key, value in section(files).items() if key != "jwt"}
    running = gateway({"listeners": [listener("bearer")], "authentication": without})
    assert running.get(there.url("/"), Proxy_Authorization=f"Bearer {token}").status == 200


def test_wrong_signatures_close_a_network_out_for_a_while(running, there):
    """And neither others, nor tokens that were verified before."""
    known = EC.token(claims())
    with wire_from(running, "127.0.0.2") as wire:
        wire.send(get(there, f"Bearer {known}"))
        assert wire.read().status == 200
        statuses = []
        for number in range(33):
            wire.send(get(there, f"Bearer {OTHERS['ec'].token(claims(jti=number))}"))
            response = wire.read()
            statuses.append(response.status)
        assert statuses[:31] == [407] * 31 and statuses[31:] == [503] * 2
        assert response.get("Retry-After") == "1"
        wire.send(get(there, f"Bearer {EC.token(claims(jti=1))}"))
        assert wire.read().status == 503
        # Costs no signature: neither verified nor counted.
        wire.send(get(there, f"Bearer {EC.token(claims(exp=1))}"))
        assert wire.read().status == 407
        wire.send(get(there, f"Bearer {known}"))
        assert wire.read().status == 200
    with wire_from(running, "127.0.0.3") as wire:
        wire.send(get(there, f"Bearer {EC.token(claims(jti=2))}"))
        assert wire.read().status == 200


# Reverse listeners, rules, tunnels

def test_a_reverse_listener_keeps_the_token(gateway, files, there):
    running = gateway({
        "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "reverse",
                       "upstream": there.url(""), "authentication": ["bearer"]}],
        "authentication": section(files)})
    token = RSA.token(claims())
    assert running.get("/", Authorization=f"Bearer {token}").body == b"here"
    assert "authorization" not in there.requests[0]
    refused = running.get("/", Authorization=f"Bearer {OTHERS['rsa'].token(claims())}")
    assert refused.status == 401
    assert refused.all("WWW-Authenticate") == ['Bearer realm="Example", error="invalid_token"']


def test_rules_know_the_users_and_groups_of_tokens(gateway, files, there):
    running = gateway({
        "listeners": [listener("bearer", "basic")], "authentication": section(files),
        "access": {"default": "deny", "rules": [
            {"name": "builds", "groups": ["jwt:build"], "action": "allow"},
            {"name": "bob", "users": ["jwt:bob"], "action": "allow"},
            {"name": "ann", "users": ["ann"], "paths": ["/ann"], "action": "allow"}]}})

    def status(credentials, path="/"):
        return running.get(there.url(path), Proxy_Authorization=credentials).status

    assert status(f"Bearer {EC.token(claims())}") == 200
    assert status(f"Bearer {EC.token(claims(roles='deploy build'))}") == 200
    assert status(f"Bearer {EC.token(claims(roles=[]))}") == 403
    assert status(f"Bearer {EC.token(claims(roles=None, sub='bob'))}") == 200
    # The ann of the issuer is not the ann of the file.
    assert status(basic("ann", "secret"), "/ann") == 200
    assert status(f"Bearer {EC.token(claims(roles=[]))}", "/ann") == 403


def test_a_token_that_expires_ends_its_intercepted_tunnel(
    gateway, pki, authority, files, origin
):
    running = gateway({
        "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]}, "listeners": [listener("bearer")],
        "authentication": section(files, leeway="0s"), "interception": authority.section,
        "hosts": [{"match": [HOST], "intercept": True}]})
    there = origin(lambda seen: reply(b"seen"), tls=pki.intermediate.issue(HOST).server_context())
    end = int(time.time()) + 4
    token = ED.token(claims(exp=end))
    with running.wire() as wire:
        wire.send(f"CONNECT {HOST}:{there.port} HTTP/1.1\r\nHost: {HOST}:{there.port}\r\n"
                  f"Proxy-Authorization: Bearer {token}\r\n\r\n")
        assert wire.read_head().status == 200
        inside = Inside(authority.file)
        wire.send(inside.hello)
        inside.shake(wire)
        ask = f"GET / HTTP/1.1\r\nHost: {HOST}:{there.port}\r\n\r\n".encode()
        assert inside.ask(wire, ask, b"seen").startswith(b"HTTP/1.1 200")
        time.sleep(max(0, end + 0.2 - time.time()))
        assert inside.ask(wire, ask, b"credentials-ended").startswith(b"HTTP/1.1 403")
        assert wire.read_to_end() is not None
    assert running.get("http://x.test/", Proxy_Authorization=f"Bearer {token}").status == 407
    assert reason(running.get("http://x.test/", Proxy_Authorization=f"Bearer {token}")) == (
        "credentials-expired")


# Changes

def test_keys_are_taken_up_when_the_file_changes(running, there, files, scripted_origin):
    def echo(connection):
        while data := connection.socket.recv(1000):
            connection.socket.sendall(data)

    token, next_token = EC.token(claims()), OTHERS["ec"].token(claims())
    tunnel = scripted_origin(echo)
    assert running.get(there.url("/"), Proxy_Authorization=f"Bearer {token}").status == 200
    with running.wire() as wire:
        wire.send(f"CONNECT {tunnel.authority} HTTP/1.1\r\nHost: x\r\n"
                  f"Proxy-Authorization: Bearer {token}\r\n\r\n")
        assert wire.read_head().status == 200
        write(files / "jwks.json", key_set(OTHERS["ec"]))
        until(lambda: running.get(there.url("/"), Proxy_Authorization=f"Bearer {next_token}")
              .status == 200, "the new key counts", 10)
        # Neither what was remembered nor the tunnel counts any more.
        assert running.get(there.url("/"), Proxy_Authorization=f"Bearer {token}").status == 407
        assert wire.ended()
    write(files / "jwks.json", '{"keys": [', '{"kty": "oct", "k": "c2VjcmV0LXNlY3JldA"}]}')
    line = running.wait_log("authentication.jwt.keys.*cannot be used|cannot be used")
    assert "jwks.json" in line and "c2VjcmV0" not in running.log()
    assert running.get(there.url("/"), Proxy_Authorization=f"Bearer {next_token}").status == 200


# Mistakes in the configuration

GOOD = '{ keys: jwks.json, issuer: "https://id.test", audience: pinfold }'


def check(files, jwt, listeners="[{ address: 127.0.0.1:0, authentication: [bearer] }]", more=""):
    config = files / "pinfold.yaml"
    config.write_text(f"listeners: {listeners}\nauthentication: {{ users: users, jwt: {jwt} }}\n"
                      + more)
    done = run_pinfold("check", "--config", str(config))
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("jwt, problem", [
    ("{}", "keys"), ('{ keys: jwks.json, audience: pinfold }', "issuer"),
    ('{ keys: jwks.json, issuer: "https://id.test" }', "audience"),
    (GOOD.replace("jwks.json", "absent"), "absent"), (GOOD.replace("pinfold", '""'), "aud"),
    (GOOD.replace("}", ", leeway: 6m }"), "leeway"), (GOOD.replace("}", ", algorithm: none }"), "algorithm"),
    (GOOD.replace("}", ", prefix: 'a b:' }"), "prefix"), (GOOD.replace("}", ", prefix: sso }"), "colon")])
def test_what_cannot_be_meant_is_an_error(files, jwt, problem):
    code, out = check(files, jwt)
    assert code != 0 and problem in out, out


@pytest.mark.parametrize("content, problem", [
    ("{\n\"keys\": [\n,]}", "jwks.json\" line 3: "), ("{}", "jwks.json\" has no list"),
    ('{"keys": [{"kty": "oct", "k": "c2VjcmV0LXNlY3JldA"}]}', 'keys[0] has "k"'),
    ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "private key"),
    (key_set(Signer(rsa.generate_private_key(65537, 1024))), "1024 bits")])
def test_wrong_keys_are_errors_with_their_place(files, content, problem):
    (files / "jwks.json").write_text(content)
    code, out = check(files, GOOD)
    assert code != 0 and problem in out, out
    assert "c2VjcmV0" not in out


def test_check_warns_of_keys_that_are_not_used(files):
    keys = json.loads(key_set(*KEYS.values()))
    keys["keys"][0]["use"] = "enc"
    (files / "jwks.json").write_text(json.dumps(keys))
    code, out = check(files, GOOD)
    assert code == 0 and "keys[0] is not used: it is for use enc" in out, out


@pytest.mark.parametrize("users, code", [
    ("jwt:ann", 0), ("jwt:repo:org/x", 0), ("ann", 0), ("bob", 1), ("jwt:", 1), ("Jwt:ann", 1)])
def test_rules_may_name_whoever_a_token_may_name(files, users, code):
    done, out = check(
        files, GOOD, more='access: { rules: [{ name: r, users: ["%s"], action: deny }] }\n' % users)
    assert bool(done) == bool(code), out
