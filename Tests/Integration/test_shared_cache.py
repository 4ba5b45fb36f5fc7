"""Gateways with a cache in common: what one has stored the others find, and what one purges is gone
in all."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time

import pytest
from support.fleet import (
    Sentinel, get, is_hit, is_shared_hit, is_up, settle, share, stored, wait_shared)
from support.gateway import Gateway, free_port, run_pinfold
from support.origin import Request, reply
from support.upgrades import Succession
from support.wait import SLOWDOWN, until
from test_reload import reload

FRESH = "Cache-Control: max-age=600"


class Site:
    """Answers with how often it was asked; what else it says is in the path."""

    def __init__(self) -> None:
        self.count = 0
        self.large = secrets.token_bytes(1_500_000)

    def __call__(self, seen: Request) -> bytes:
        self.count += 1
        body = b"%d" % self.count
        path = seen.target
        if path.startswith("/language"):
            return reply(seen.get("accept-language").encode(), "200 OK", FRESH,
                         "Vary: Accept-Language")
        if path.startswith("/private"):
            return reply(body, "200 OK", "Cache-Control: private, max-age=600")
        if path.startswith("/public"):
            return reply(body, "200 OK", "Cache-Control: public, max-age=600")
        if path.startswith("/large"):
            return reply(self.large, "200 OK", FRESH)
        if path.startswith("/digits"):
            return reply(b"0123456789", "200 OK", FRESH, 'ETag: "d"')
        if path.startswith("/checked"):
            if seen.get("if-none-match") == '"v"':
                return reply(b"", "304 Not Modified", FRESH, 'ETag: "v"', length=False)
            return reply(body, "200 OK", "Cache-Control: max-age=1", 'ETag: "v"')
        if path.startswith(("/briefly", "/later")):
            if seen.get("if-none-match") == '"v"':
                return reply(b"", "304 Not Modified", FRESH, 'ETag: "v"', length=False)
            more = ", stale-while-revalidate=600" if path.startswith("/later") else ""
            return reply(body, "200 OK", f"Cache-Control: max-age=3{more}", 'ETag: "v"')
        if seen.get("if-none-match") == '"v"':
            return reply(b"", "304 Not Modified", FRESH, 'ETag: "v"', length=False)
        return reply(body, "200 OK", FRESH, 'ETag: "v"', f"Surrogate-Key: all {path.strip('/')}")


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def there(origin, site):
    return origin(site)


@pytest.fixture
def two(fleet):
    return fleet(2)


def cache(running: Gateway, *arguments: str) -> str:
    done = run_pinfold("cache", *arguments, "--admin", "%s:%d" % running.admin)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def purge(running: Gateway, url: str, **fields: str) -> dict:
    """With the method PURGE; what is answered."""
    response = get(running, url, method="PURGE", **fields)
    assert response.status == 200, response
    return json.loads(response.body)


# What is shared


def test_what_one_has_stored_is_a_hit_by_the_other_and_then_in_its_own_memory(two, there):
    url = there.url("/a")
    first = share(two[0], url)
    asked = len(there.requests)
    second = get(two[1], url)
    assert is_shared_hit(second) and second.body == first.body
    assert second.get("etag") == '"v"' and int(second.get("age")) >= 0
    third = get(two[1], url)
    assert is_hit(third) and not is_shared_hit(third) and third.body == first.body
    assert len(there.requests) == asked
    assert two[1].metric("pinfold_cache_hits_total", tier="shared") == 1
    assert two[1].metric("pinfold_cache_hits_total", tier="memory") == 1
    assert two[1].metric("pinfold_cache_shared_lookups_total", result="hit") == 1


def test_each_variant_is_found_by_the_requests_that_it_is_for(two, there):
    url = there.url("/language")
    for language in ("de", "en"):
        share(two[0], url, Accept_Language=language)
    asked = len(there.requests)
    for language in ("de", "en"):
        response = get(two[1], url, Accept_Language=language)
        assert is_hit(response) and response.body == language.encode()
    assert len(there.requests) == asked
    assert not is_hit(get(two[1], url, Accept_Language="fr"))


def test_what_one_has_had_confirmed_is_fresh_for_the_others(fleet, there):
    three = fleet(3)
    url = there.url("/checked")
    first = share(three[0], url)
    until(lambda: int(get(three[0], url, Cache_Control="only-if-cached").status) == 504,
          "it is stale", 20)
    before = stored(three[1])
    assert get(three[1], url).body == first.body
    assert there.requests[-1].get("if-none-match") == '"v"'
    until(lambda: stored(three[1]) > before, "what was confirmed is in the engine")
    asked = len(there.requests)
    response = get(three[2], url)
    assert is_shared_hit(response) and response.body == first.body
    assert len(there.requests) == asked


def both_stale(two, url: str) -> bytes:
    """Both have the response, which the second has asked for, and in both it is stale. Returns its
    content."""
    first = share(two[1], url)
    assert get(two[0], url).body == first.body
    for running in two:
        until(lambda running=running: get(running, url, Cache_Control="only-if-cached, min-fresh=1")
              .status == 504, "it is stale", 20)
    return first.body


@pytest.mark.parametrize("memory", ["16MiB", 0], ids=["memory", "disk"])
@pytest.mark.parametrize("fields", [{}, {"Cookie": "a=1"}, {"Range": "bytes=0-0"}],
                         ids=["plain", "cookie", "range"])
def test_what_is_stale_is_not_confirmed_again_after_another_has_done_so(
        fleet, there, memory, fields):
    two = fleet(1)
    two.add({"cache": {"memory": memory}})
    url = there.url("/briefly")
    body = both_stale(two, url)
    before = stored(two[0])
    asked = len(there.requests)
    assert get(two[0], url).body == body
    assert len(there.requests) == asked + 1
    assert there.requests[-1].get("if-none-match") == '"v"'
    until(lambda: stored(two[0]) > before, "what was confirmed is in the engine")
    response = get(two[1], url, **fields)
    assert is_shared_hit(response) and response.body == body
    assert is_hit(get(two[1], url))
    assert len(there.requests) == asked + 1
    assert two[1].metric("pinfold_cache_hits_total", tier="shared") >= 1


@pytest.mark.parametrize("directive", ["no-cache", "max-age=0"])
def test_a_request_that_demands_it_is_confirmed_by_the_server(two, there, directive):
    url = there.url("/briefly")
    both_stale(two, url)
    before = stored(two[0])
    get(two[0], url)
    until(lambda: stored(two[0]) > before, "what was confirmed is in the engine")
    asked = len(there.requests)
    assert not is_hit(get(two[1], url, Cache_Control=directive))
    assert len(there.requests) == asked + 1


def test_what_is_served_stale_is_replaced_by_what_another_has_confirmed(two, there):
    url = there.url("/later")
    body = both_stale(two, url)
    before = stored(two[0])
    asked = len(there.requests)
    assert is_hit(get(two[0], url))
    until(lambda: stored(two[0]) > before, "it was confirmed in the background")
    assert len(there.requests) == asked + 1
    response = get(two[1], url)
    assert is_hit(response) and int(response.cache_status["ttl"]) < 1
    until(lambda: int(get(two[1], url).cache_status["ttl"]) > 60, "it is fresh there as well")
    assert get(two[1], url).body == body
    assert len(there.requests) == asked + 1


def test_a_range_and_a_head_are_answered_from_it(two, there):
    url = there.url("/digits")
    share(two[0], url)
    asked = len(there.requests)
    part = get(two[1], url, Range="bytes=2-4")
    assert part.status == 206 and part.body == b"234" and is_hit(part)
    head = get(two[1], url, method="HEAD")
    assert head.status == 200 and head.get("content-length") == "10" and is_hit(head)
    assert get(two[1], url, If_None_Match='"d"').status == 304
    assert len(there.requests) == asked


def test_a_large_response_comes_whole(two, there, site, engine):
    url = there.url("/large")
    share(two[0], url)
    asked = len(there.requests)
    response = get(two[1], url)
    assert is_shared_hit(response) and response.body == site.large
    part = get(two[1], url, Range="bytes=700000-700099")
    assert part.status == 206 and part.body == site.large[700_000:700_100]
    assert len(there.requests) == asked


def test_what_is_for_one_client_is_not_shared(two, there):
    for path, fields in (("/private", {}), ("/a", {"Authorization": "Basic eDp5"})):
        get(two[0], there.url(path), **fields)
        asked = len(there.requests)
        settle()
        assert not is_hit(get(two[1], there.url(path), **fields)), path
        assert len(there.requests) == asked + 1
    assert stored(two[0]) == stored(two[1]) == 0
    # What says that it is for all is shared, whoever asked for it.
    share(two[0], there.url("/public"), Authorization="Basic eDp5")
    assert is_shared_hit(get(two[1], there.url("/public")))


def test_more_than_the_maximum_is_stored_by_each_for_itself(fleet, there):
    two = fleet(2, maximumObject="1MiB")
    url = there.url("/large")
    get(two[0], url)
    share(two[0], there.url("/a"))
    assert is_hit(get(two[0], url))
    asked = len(there.requests)
    assert not is_hit(get(two[1], url))
    assert len(there.requests) == asked + 1


def test_it_serves_where_nothing_else_is_stored(fleet, there):
    two = fleet(2, {"cache": {"memory": 0, "disk": 0}})
    url = there.url("/a")
    first = share(two[0], url)
    asked = len(there.requests)
    for running in (two[1], two[0], two[1]):
        response = get(running, url)
        assert is_shared_hit(response) and response.body == first.body
    assert len(there.requests) == asked


def test_it_is_there_after_a_restart_of_the_gateway(two, there):
    url = there.url("/a")
    share(two[0], url)
    two[1].restart()
    wait_shared(two[1])
    asked = len(there.requests)
    assert is_shared_hit(get(two[1], url))
    assert len(there.requests) == asked


# Who shares


def test_what_was_obtained_under_other_trust_is_not_used(fleet, origin, pki):
    leaf = pki.root.issue("api.shared.test")
    there = origin(lambda _: reply(b"kept", "200 OK", FRESH), tls=leaf.server_context())
    url = f"https://api.shared.test:{there.port}/"
    trust = {"tls": {"roots": [str(pki.root.pem_file)]}, "hosts": [{"match": ["api.shared.test"]}]}
    pinned = {
        "tls": trust["tls"], "pinsets": {"p": {"mode": "publicKey", "pins": [leaf.pin]}},
        "hosts": [{"match": ["api.shared.test"], "pinsets": ["p"]}]}
    gateways = fleet(0)
    verified = [gateways.add(trust) for _ in range(2)]
    other = gateways.add(pinned)
    before = stored(verified[0])
    assert verified[0].get(url).body == b"kept"
    until(lambda: stored(verified[0]) > before, "it is in the engine")
    asked = len(there.requests)
    assert is_shared_hit(verified[1].get(url))
    assert len(there.requests) == asked
    assert not is_hit(other.get(url))
    assert len(there.requests) == asked + 1
    # Each keeps its own.
    assert is_hit(other.get(url)) and is_hit(verified[0].get(url))


def test_fleets_with_other_prefixes_and_other_secrets_share_nothing(fleet, engine, there, workspace):
    gateways = fleet(0)
    own = gateways.add()
    apart = gateways.add(prefix="other:")
    secret = workspace / "other.key"
    secret.write_text(secrets.token_hex(32))
    secret.chmod(0o600)
    foreign = gateways.add(keyFile=str(secret), wait=False)
    line = foreign.wait_log("the shared cache is not in use")
    assert "reason=other_secret" in line
    url = there.url("/a")
    first = share(own, url)
    for running in (apart, foreign):
        response = get(running, url)
        assert not is_hit(response) and response.body != first.body
    assert foreign.metric("pinfold_cache_shared_errors_total", reason="other_secret") >= 1
    assert {key.split(b"1:")[0] for key in engine.keys()} == {b"pinfold:", b"other:"}


def test_a_secret_is_changed_without_losing_what_is_stored(fleet, engine, there, workspace):
    old, new = secrets.token_hex(32), secrets.token_hex(32)
    files = []
    # As in the middle of a change: both accept both, and one writes with the new one already.
    for index, text in enumerate((f"{old}\n{new}\n", f"{new}\n{old}\n")):
        file = workspace / f"keys-{index}"
        file.write_text(text)
        file.chmod(0o600)
        files.append(str(file))
    gateways = fleet(0)
    before, after = (gateways.add(keyFile=file) for file in files)
    share(before, there.url("/a"))
    assert is_shared_hit(get(after, there.url("/a")))
    share(after, there.url("/b"))
    assert is_shared_hit(get(before, there.url("/b")))


def test_a_unix_socket_needs_no_secret(fleet, engine, there):
    gateways = fleet(2, url=engine.unix_url, keyFile=None)
    share(gateways[0], there.url("/a"))
    assert is_shared_hit(get(gateways[1], there.url("/a")))


def test_the_engine_may_want_a_user_and_a_password(fleet, engines, there, workspace):
    engine = engines(*"--user pinfold on >s3cret ~pinfold:* &pinfold:* +@all -@dangerous +info "
                       "+role".split(),
                     *"--user default on >other ~* &* +@all".split())
    password = workspace / "password"
    password.write_text("s3cret\n")
    password.chmod(0o600)
    gateways = fleet(2, url=engine.url, user="pinfold", passwordFile=str(password))
    share(gateways[0], there.url("/a"))
    assert is_shared_hit(get(gateways[1], there.url("/a")))
    for running in gateways:
        assert "s3cret" not in running.log()
        assert b"s3cret" not in running.admin_get("/api/v1/configuration").body


def test_sentinels_say_where_the_engine_is(fleet, engine, there, workspace):
    sentinel = Sentinel(workspace / "sentinel", engine)
    try:
        gateways = fleet(2, url=None, sentinels=[f"127.0.0.1:{sentinel.port}"], master="cache")
        share(gateways[0], there.url("/a"))
        assert is_shared_hit(get(gateways[1], there.url("/a")))
        status = gateways[1].admin_get("/api/v1/status").json()["cache"]["shared"]
        assert status["engine"] == "cache, by Sentinels"
    finally:
        sentinel.close()


def test_an_engine_is_verified_like_any_server_with_its_pins(fleet, engines, there, pki):
    leaf = pki.root.issue("cache.test")
    port = free_port()
    engines("--tls-port", str(port), "--tls-cert-file", str(leaf.pem_file),
            "--tls-key-file", str(leaf.key_file), "--tls-ca-cert-file", str(pki.root.pem_file),
            "--tls-auth-clients", "no")
    url = f"rediss://cache.test:{port}"

    def trust(pin: str) -> dict:
        return {"tls": {"roots": [str(pki.root.pem_file)]},
                "hosts": [{"match": ["cache.test"], "pinsets": ["p"]}],
                "pinsets": {"p": {"mode": "publicKey", "pins": [pin]}}}

    gateways = fleet(2, trust(leaf.pin), url=url)
    share(gateways[0], there.url("/a"))
    assert is_shared_hit(get(gateways[1], there.url("/a")))
    other = gateways.add(trust("sha256/" + "A" * 43 + "="), url=url, wait=False)
    line = other.wait_log(r"the shared cache is not in use")
    assert "reason=tls" in line
    assert not is_hit(get(other, there.url("/a"))) and not is_up(other)
    # Its root alone is not trusted either, unless a gateway is told so.
    untold = gateways.add(url=url, wait=False)
    assert "reason=tls" in untold.wait_log(r"the shared cache is not in use")


def test_a_wrong_password_is_said_and_harms_nobody(fleet, engines, there, workspace):
    engine = engines("--requirepass", "right")
    password = workspace / "password"
    password.write_text("wrong")
    password.chmod(0o600)
    running = fleet(0).add(url=engine.url, wait=False, passwordFile=str(password))
    line = running.wait_log(r"the shared cache is not in use")
    assert "reason=wrong_password" in line and engine.url in line
    assert get(running, there.url("/a")).status == 200 and is_hit(get(running, there.url("/a")))
    assert not is_up(running)
    assert running.metric("pinfold_cache_shared_errors_total", reason="wrong_password") >= 1
    status = running.admin_get("/api/v1/status").json()["cache"]["shared"]
    assert status["state"] == "off" and status["reason"] == "wrong_password"
    found = running.admin_get("/api/v1/overview").json()["attention"]
    assert [one["level"] for one in found if one["kind"] == "shared-cache"] == ["warning"]
    shown = run_pinfold("status", "--admin", "%s:%d" % running.admin).stdout
    assert "shared is off (wrong_password)" in shown


# Purges

TARGETS = ["url", "tag", "prefix", "host", "everything"]


def order(running: Gateway, target: str, url: str, soft: bool) -> dict:
    """Purges what `url` is a part of."""
    host = url.split("/")[2]
    options = {"url": [url], "tag": ["--tag", "a"], "prefix": ["--prefix", url[:-1]],
               "host": ["--host", host], "everything": ["--everything"]}[target]
    return json.loads(cache(running, "purge", "--json", *options, *(["--soft"] if soft else [])))


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
@pytest.mark.parametrize("target", TARGETS)
def test_what_one_purges_no_other_serves_from_then_on(two, there, target, soft):
    url = there.url("/a")
    share(two[0], url)
    assert is_shared_hit(get(two[1], url)) and is_hit(get(two[1], url))
    for purging, other in ((two[0], two[1]), (two[1], two[0])):
        answer = order(purging, target, url, soft)
        assert answer["fleet"] == {
            "recorded": True, "confirmed": ["gateway-0", "gateway-1"], "unconfirmed": [], "away": []}
        asked = len(there.requests)
        response = get(other, url)
        assert not is_hit(response) and len(there.requests) == asked + 1
        # What was made stale is confirmed, and what was removed is not asked about.
        assert there.requests[-1].get("if-none-match") == ('"v"' if soft else "")
        assert is_hit(get(other, url))
        response = get(purging, url)
        # What the other has stored since is in the engine by now, or soon.
        assert response.body == get(other, url).body or not is_hit(response)
        for running in two:
            get(running, url)
            assert is_hit(get(running, url))


def test_a_purge_hides_what_nobody_has_but_the_engine(fleet, there):
    two = fleet(2, {"cache": {"memory": 0, "disk": 0}})
    for path in ("/a", "/b"):
        share(two[0], there.url(path))
    assert purge(two[1], there.url("/"), Surrogate_Key="a")["fleet"]["unconfirmed"] == []
    asked = len(there.requests)
    assert not is_hit(get(two[0], there.url("/a"))) and len(there.requests) == asked + 1
    assert is_shared_hit(get(two[0], there.url("/b")))


def test_the_method_says_who_has_confirmed_and_the_log_too(two, there):
    url = there.url("/a")
    share(two[0], url)
    answer = purge(two[1], url)
    assert answer["fleet"] == {
        "recorded": True, "confirmed": ["gateway-0", "gateway-1"], "unconfirmed": [], "away": []}
    line = two[1].wait_log(r"\bpurged\b.*fleet_recorded=true")
    assert "fleet_confirmed=2" in line
    other = two[0].wait_log(r"purged for the fleet")
    assert url in other
    assert two[1].metric("pinfold_cache_shared_purges_total", direction="sent") >= 1
    assert two[0].metric("pinfold_cache_shared_purges_total", direction="received") >= 1
    text = cache(two[0], "purge", "--everything")
    assert "confirmed by gateway-0, gateway-1\n" in text and "not confirmed" not in text


def test_a_dry_run_purges_nowhere(two, there):
    url = there.url("/a")
    share(two[0], url)
    assert is_shared_hit(get(two[1], url))
    answer = json.loads(cache(two[0], "purge", "--json", "--dry-run", url))
    assert answer["dryRun"] and "fleet" not in answer
    assert is_hit(get(two[1], url)) and is_hit(get(two[0], url))


def test_one_that_does_not_answer_is_named_and_holds_nobody_up(two, there):
    share(two[0], there.url("/a"))
    two[1].pause()
    try:
        began = time.monotonic()
        answers: list[dict] = []
        threads = [
            threading.Thread(target=lambda path=path: answers.append(
                purge(two[0], there.url(path)))) for path in ("/a", "/b", "/c", "/d", "/e", "/f")]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        # They wait for the same second, and not one after the other.
        assert time.monotonic() - began < 3 * SLOWDOWN
        assert len(answers) == 6
        for answer in answers:
            assert answer["fleet"]["unconfirmed"] == ["gateway-1"]
            assert answer["fleet"]["confirmed"] == ["gateway-0"]
        text = cache(two[0], "purge", there.url("/a"))
        assert "not confirmed by gateway-1\n" in text
    finally:
        two[1].signal(18)


def test_without_the_engine_a_purge_says_so_and_reaches_the_others_later(fleet, engine, there):
    two = fleet(2)
    url = there.url("/a")
    share(two[0], url)
    assert is_shared_hit(get(two[1], url)) and is_hit(get(two[1], url))
    engine.stop()
    for running in two:
        wait_shared(running, up=False)
    answer = purge(two[0], url)
    assert answer["fleet"]["recorded"] is False
    assert answer["fleet"]["confirmed"] == ["gateway-0"]
    assert "the shared cache is away" in cache(two[0], "purge", there.url("/b"))
    assert not is_hit(get(two[0], url))
    engine.start()
    for running in two:
        wait_shared(running)
    # The other one has been told, or confirms whatever it has.
    until(lambda: there.requests[-1].get("if-none-match") == '"v"' or not is_hit(get(two[1], url)),
          "the other gateway asks the server")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_what_an_unsafe_request_invalidates_is_invalid_everywhere(two, there, method):
    url = there.url("/a")
    share(two[0], url)
    assert is_shared_hit(get(two[1], url))
    assert get(two[1], url, method=method).status == 200
    assert not is_hit(get(two[1], url))

    def is_new() -> bool:
        # It has heard of it, or found what the other has stored since.
        return get(two[0], url).body != b"1"

    until(is_new, "the other gateway has heard of it")


@pytest.mark.parametrize("soft", [False, True], ids=["hard", "soft"])
def test_what_was_purged_while_a_gateway_was_away_is_not_its_first_answer(two, there, soft):
    url = there.url("/a")
    share(two[1], url)
    assert is_shared_hit(get(two[0], url))
    two[1].restart()
    response = get(two[1], url)
    assert is_hit(response) and not is_shared_hit(response)
    two[1].stop(patience=20)
    order(two[0], "everything", url, soft)
    asked = len(there.requests)
    two[1].start()
    assert not is_hit(get(two[1], url))
    assert len(there.requests) == asked + 1
    assert there.requests[-1].get("if-none-match") == ('"v"' if soft else "")
    assert "serves without knowing" not in two[1].log()


# The engine away, and what is configured


def test_a_gateway_starts_without_the_engine_and_uses_it_when_it_comes(fleet, engine, there):
    engine.stop()
    gateways = fleet(0)
    began = time.monotonic()
    two = [gateways.add(wait=False) for _ in range(2)]
    assert time.monotonic() - began < 15 * SLOWDOWN
    for running in two:
        assert running.admin_get("/readyz").status == 200
        assert get(running, there.url("/a")).status == 200
        assert is_hit(get(running, there.url("/a")))
        assert not is_up(running)
        status = running.admin_get("/api/v1/status").json()["cache"]["shared"]
        assert status["state"] in ("off", "opening") and status["engine"] == engine.url
    engine.start()
    for running in two:
        wait_shared(running)
        assert running.wait_log("the shared cache is in use")
    share(two[0], there.url("/b"))
    assert is_shared_hit(get(two[1], there.url("/b")))


def test_requests_go_on_while_the_engine_is_gone(two, engine, there):
    share(two[0], there.url("/a"))
    engine.stop()
    for number in range(20):
        for running in two:
            assert get(running, there.url(f"/{number}")).status == 200
    wait_shared(two[0], up=False)
    assert is_hit(get(two[0], there.url("/a")))
    asked = two[0].metric("pinfold_cache_shared_connections_total")
    engine.start()
    wait_shared(two[0])
    assert two[0].metric("pinfold_cache_shared_connections_total") > asked


def test_one_connection_for_each_worker_and_one_more_are_enough(two, engine, there):
    def ask(numbers) -> None:
        for number in numbers:
            get(two[0], there.url(f"/{number}"))

    def made() -> float:
        return two[0].metric("pinfold_cache_shared_connections_total")

    most = 1 + (os.cpu_count() or 1)
    ask(range(60))
    assert made() <= most
    # Each worker has its own by now, or needs none.
    ask(range(60))
    assert made() <= most and engine.clients <= 2 * most


def test_what_the_status_and_the_figures_say(two, there, engine):
    share(two[0], there.url("/a"))
    get(two[1], there.url("/a"))
    until(lambda: two[1].metrics().get("pinfold_fleet_members") == 2, "both know of both", 20)
    status = two[1].admin_get("/api/v1/status").json()["cache"]["shared"]
    assert status == {"state": "on", "engine": engine.url, "name": "gateway-1", "members": 2}
    figures = two[1].admin_get("/api/v1/cache/stats").json()["shared"]
    assert figures["on"] and figures["hits"] == 1 and figures["members"] == 2
    shown = run_pinfold("status", "--admin", "%s:%d" % two[1].admin).stdout
    assert f"shared: by 2 gateways, this one being gateway-1, at {engine.url}\n" in shown
    assert "shared  2 gateways, 1 hits" in cache(two[1], "stats")
    times = {sample: value for sample, value in two[1].metrics().items()
             if sample.startswith("pinfold_cache_shared_lookup_times_total")}
    assert times['pinfold_cache_shared_lookup_times_total{le="+Inf"}'] >= 1
    bounds = [value for _, value in sorted(
        times.items(), key=lambda one: float(one[0].split('"')[1].replace("+Inf", "inf")))]
    assert bounds == sorted(bounds)


def test_nothing_is_said_of_what_is_not_configured(gateway):
    running = gateway({})
    assert not any(name.startswith("pinfold_cache_shared") for name in running.metrics())
    assert "shared" not in running.admin_get("/api/v1/status").json()["cache"]
    assert "shared" not in running.admin_get("/api/v1/cache/stats").json()


def test_a_change_of_it_waits_for_a_restart(two, there):
    config = {**two[0].config}
    config["cache"] = {**config["cache"], "shared": {**config["cache"]["shared"], "prefix": "new:"}}
    reload(two[0], config)
    two[0].wait_log(r"restart.*cache|cache.*restart")
    share(two[0], there.url("/a"))
    assert is_shared_hit(get(two[1], there.url("/a")))


def test_a_successor_shares_it_too(fleet, engine, there):
    gateways = fleet(1)
    one = Succession(gateways.add(start=False))
    try:
        wait_shared(one.gateway)
        share(gateways[0], there.url("/a"))
        assert is_shared_hit(get(one.gateway, there.url("/a")))
        one.upgrade()
        wait_shared(one.gateway)
        share(gateways[0], there.url("/b"))
        assert is_shared_hit(get(one.gateway, there.url("/b")))
        answer = purge(gateways[0], there.url("/b"))
        assert "gateway-1" in answer["fleet"]["confirmed"], answer
        assert not is_hit(get(one.gateway, there.url("/b")))
    finally:
        one.close()


def test_a_configuration_that_cannot_be_used_is_said_where_it_is(workspace):
    def errors(shared: dict | str) -> str:
        file = workspace / "pinfold.yaml"
        file.write_text("cache: { shared: %s }\n" % json.dumps(shared))
        done = run_pinfold("check", "--config", str(file))
        assert done.returncode != 0, done.stdout
        return done.stdout + done.stderr

    short = workspace / "short"
    short.write_text("brief")
    os.chmod(short, 0o600)
    assert "cache.shared.keyFile" in errors({"url": "redis://localhost", "keyFile": str(short)})
    assert "too short" in errors({"url": "redis://localhost", "keyFile": str(short)})
    assert "has no keyFile" in errors({"url": "redis://localhost"})
    assert "is given beside url" in errors({"url": "unix:/run/r", "cluster": ["a"]})
