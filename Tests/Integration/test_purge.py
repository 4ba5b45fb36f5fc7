"""PURGE: what is stored is gone, for those who may, and for nobody else."""

from __future__ import annotations

import json
import threading

import pytest
from support.credentials import basic, sha_crypt, write
from support.gateway import Gateway, wire_from
from support.interception import ask_inside
from support.origin import reply
from support.proxy_headers import behind, line, wire_after
from support.upgrades import Succession
from support.wait import until
from support.wire import Response, Wire, request

FRESH = "Cache-Control: max-age=600"
LOCAL = {"cache": {"purge": {"clients": ["127.0.0.1/32"]}}}


class Counting:
    """Answers with how often it was asked; `fields` by path."""

    def __init__(self, **fields: str):
        self.fields = {f"/{name}": value for name, value in fields.items()}
        self.count = 0

    def __call__(self, seen) -> bytes:
        self.count += 1
        extra = [self.fields[seen.target]] if seen.target in self.fields else []
        if seen.get("if-none-match") == '"v"':
            return reply(b"", "304 Not Modified", FRESH, 'ETag: "v"', length=False)
        return reply(b"%d" % self.count, "200 OK", FRESH, 'ETag: "v"', *extra)


@pytest.fixture
def there(origin):
    return origin(Counting(a="Surrogate-Key: one two", b="Cache-Tag: two, three four",
                           c='Cache-Groups: "g", "two"'))


@pytest.fixture
def running(gateway) -> Gateway:
    return gateway(LOCAL)


def get(running: Gateway, url: str, **fields: str) -> Response:
    return running.ask(request(url, **fields))


def purge(running: Gateway, url: str, **fields: str) -> Response:
    return running.ask(request(url, method="PURGE", **fields))


def is_hit(response: Response) -> bool:
    return "hit" in response.cache_status


def stored(running: Gateway, *urls: str) -> None:
    for url in urls:
        get(running, url)
        assert is_hit(get(running, url))


def present(running: Gateway, *urls: str) -> list[bool]:
    """Which of them are stored; those that are not are stored afterwards."""
    return [is_hit(get(running, url)) for url in urls]



# Who may


def test_without_the_key_it_is_an_ordinary_method(gateway, there):
    running = gateway({})
    stored(running, there.url("/a"))
    response = purge(running, there.url("/a"))
    assert there.requests[-1].method == "PURGE"
    assert response.status == 200 and response.get("content-type") != "application/json"


def test_an_allowed_client_purges_a_url_with_all_its_variants(running, origin):
    there = origin(lambda seen: reply(seen.get("accept-language").encode(), "200 OK", FRESH,
                                      "Vary: Accept-Language"))
    url = there.url("/a?b=c")
    for language in ("en", "de"):
        get(running, url, Accept_Language=language)
    asked = len(there.requests)
    response = purge(running, url)
    assert response.status == 200 and response.get("content-type") == "application/json"
    answer = json.loads(response.body)
    assert answer["memoryEntries"] == 2 and answer["soft"] is answer["dryRun"] is False
    for language in ("en", "de"):
        assert not is_hit(get(running, url, Accept_Language=language))
    assert len(there.requests) == asked + 2
    assert all(seen.method == "GET" for seen in there.requests)


def test_the_log_says_who_has_purged_what(running, there):
    stored(running, there.url("/a"))
    purge(running, there.url("/a"))
    written = running.wait_log(r"purged .*")
    lines = running.log().splitlines()
    assert written and any(" purge begins " in line for line in lines)
    found = next(line for line in lines if " purged " in line)
    assert "client=127.0.0.1:" in found and there.url("/a") in found and "listener=proxy" in found
    assert running.metric("pinfold_cache_purges_total", scope="url") == 1


def test_others_are_refused_whatever_their_fields_say(running, there):
    url = there.url("/a")
    stored(running, url)
    with wire_from(running, "127.0.0.2") as wire:
        for fields in ({}, {"X_Forwarded_For": "127.0.0.1"}, {"Forwarded": "for=127.0.0.1"},
                       {"X_Real_IP": "127.0.0.1", "Client_IP": "127.0.0.1"}):
            response = wire.ask(request(url, method="PURGE", **fields))
            assert response.status == 403
            assert "purge-client-not-allowed" in response.get("proxy-status")
    assert present(running, url) == [True]
    assert running.metric("pinfold_http_request_failures_total", listener="proxy",
                          reason="purge-client-not-allowed") == 4
    assert "purge refused" in running.log()


@pytest.fixture
def guarded(gateway, workspace) -> Gateway:
    token = workspace / "purge.token"
    token.write_text("s3cret\n")
    return gateway({"cache": {"purge": {"clients": ["127.0.0.1/32"], "tokenFile": str(token)}}})


def test_where_both_are_given_both_must_hold(guarded, there):
    url = there.url("/a")
    stored(guarded, url)
    missing = purge(guarded, url)
    assert missing.status == 401 and missing.get("www-authenticate") == 'Bearer realm="purge"'
    assert "purge-token-missing" in missing.get("proxy-status")
    for wrong in ("Bearer other", "Bearer s3cre", "Bearer s3cret2", "Basic s3cret", "s3cret"):
        response = purge(guarded, url, Authorization=wrong)
        assert response.status == 401 and "purge-token-wrong" in response.get("proxy-status")
    with wire_from(guarded, "127.0.0.2") as wire:
        response = wire.ask(request(url, method="PURGE", Authorization="Bearer s3cret"))
        assert response.status == 403
    assert present(guarded, url) == [True]
    assert purge(guarded, url, Authorization="bearer  s3cret").status == 200
    assert present(guarded, url) == [False]
    assert all("authorization" not in seen for seen in there.requests)


def test_the_token_may_be_in_a_field_of_its_own(guarded, there):
    url = there.url("/a")
    stored(guarded, url)
    right = {"X_Purge_Token": "s3cret"}
    for wrong in ({"X_Purge_Token": "other"}, {"X_Purge_Token": "Bearer s3cret"},
                  {"X_Purge_Token": ""}, {"X_Purge_Token": "other", "Authorization": "Bearer s3cret"}):
        response = purge(guarded, url, **wrong)
        assert response.status == 401 and "purge-token-wrong" in response.get("proxy-status"), wrong
    twice = request(url, method="PURGE", **right).replace(
        b"X-Purge-Token", b"X-Purge-Token: s3cret\r\nX-Purge-Token")
    assert guarded.ask(twice).status == 401
    with wire_from(guarded, "127.0.0.2") as wire:
        assert wire.ask(request(url, method="PURGE", **right)).status == 403
    assert present(guarded, url) == [True]
    for also in ({}, {"Authorization": "Bearer other"}):
        assert purge(guarded, url, **right, **also).status == 200
        assert present(guarded, url) == [False]
    assert "s3cret" not in guarded.log()


def test_no_server_sees_the_token_whatever_the_method(guarded, there, gateway):
    get(guarded, there.url("/b"), X_Purge_Token="s3cret", X_Other="kept")
    assert "x-purge-token" not in there.requests[-1] and there.requests[-1].get("x-other") == "kept"
    shown = guarded.ask(request(there.url("/"), method="TRACE", Max_Forwards="0",
                                X_Purge_Token="s3cret"))
    assert shown.status == 200 and b"s3cret" not in shown.body
    # Rules make another head.
    token = guarded.folder / "token"
    token.write_text("s3cret")
    ruled = gateway({
        "cache": {"purge": {"tokenFile": str(token)}},
        "hosts": [{"match": ["127.0.0.1"], "request": {"headers": {"set": {"X-By": "rules"}}}}]})
    get(ruled, there.url("/c"), X_Purge_Token="s3cret")
    assert there.requests[-1].get("x-by") == "rules"
    assert "x-purge-token" not in there.requests[-1]
    # Where no token is expected, it is a field like any other.
    get(gateway(LOCAL), there.url("/d"), X_Purge_Token="s3cret")
    assert there.requests[-1].get("x-purge-token") == "s3cret"


def test_where_authorization_says_who_asks_the_token_has_its_own_field(gateway, there, workspace):
    token = workspace / "purge.token"
    token.write_text("s3cret")
    write(workspace / "users", f"ann:{sha_crypt('secret', 6)}")
    running = gateway({
        "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "reverse",
                       "upstream": there.url(""), "authentication": ["basic"]}],
        "authentication": {"users": str(workspace / "users")},
        "cache": {"purge": {"tokenFile": str(token)}}})
    ann = {"Authorization": basic("ann", "secret")}

    def ask(method: str, **fields: str) -> Response:
        return running.ask(request("/a", host="site.test", method=method, **fields))

    assert ask("PURGE", X_Purge_Token="s3cret").status == 401
    # What says who asks is not taken for a wrong token, however often.
    for _ in range(12):
        response = ask("PURGE", **ann)
        assert response.status == 401 and "purge-token-missing" in response.get("proxy-status")
    response = ask("PURGE", X_Purge_Token="wrong", **ann)
    assert response.status == 401 and "purge-token-wrong" in response.get("proxy-status")
    assert ask("PURGE", X_Purge_Token="s3cret", **ann).status == 200
    assert not any("x-purge-token" in seen for seen in there.requests)


@pytest.mark.parametrize("removed", [[], ["Authorization"], ["X-Purge-Token"]])
def test_the_token_is_the_clients_whatever_rules_put_in_its_place(
        gateway, there, workspace, removed):
    for name, secret in ("purge.token", "s3cret"), ("own.token", "servers"):
        (workspace / name).write_text(secret)
    running = gateway({
        "cache": {"purge": {"tokenFile": str(workspace / "purge.token")}},
        "hosts": [{"match": ["127.0.0.1"], "request": {
            **({"headers": {"remove": removed}} if removed else {}),
            "authorization": {"bearer": {"tokenFile": str(workspace / "own.token")},
                              "clearText": "allow"}}}]})
    url = there.url("/a")
    # Who shows none has not guessed wrongly, however often.
    for _ in range(12):
        response = purge(running, url)
        assert response.status == 401 and "purge-token-missing" in response.get("proxy-status")
    response = purge(running, url, Authorization="Bearer servers")
    assert response.status == 401 and "purge-token-wrong" in response.get("proxy-status")
    assert purge(running, url, Authorization="Bearer s3cret").status == 200
    assert purge(running, url, X_Purge_Token="s3cret").status == 200
    get(running, url)
    assert there.requests[-1].all("authorization") == ["Bearer servers"]


def test_who_guesses_tokens_is_slowed_down(guarded, there):
    url = there.url("/a")
    statuses = [purge(guarded, url, Authorization=f"Bearer {number}").status
                for number in range(12)]
    assert statuses[0] == 401 and statuses[-1] == 503
    late = purge(guarded, url, Authorization="Bearer s3cret")
    assert late.status == 503 and int(late.get("retry-after")) > 0
    assert "purge-too-many-failures" in late.get("proxy-status")


def test_a_new_token_in_the_file_counts(guarded, there, workspace):
    (workspace / "purge.token").write_text("another")
    until(lambda: purge(guarded, there.url("/a"), Authorization="Bearer another").status == 200,
          "the file has been read again", 20)
    assert purge(guarded, there.url("/a"), Authorization="Bearer s3cret").status == 401


def test_in_a_tunnel_the_address_of_the_tunnels_client_counts(gateway, origin, pki):
    host = "seen.test"
    there = origin(Counting(), tls=pki.intermediate.issue(host).server_context())
    running = gateway({
        "tls": {"roots": [str(pki.root.pem_file)]},
        "interception": pki.interception.section | {"default": True},
        "cache": {"purge": {"clients": ["127.0.0.2/32"]}}})

    def inside(method: str, **fields: str) -> Response:
        return ask_inside(running, host, there.port, request(
            "/x", host=f"{host}:{there.port}", method=method, Connection="close", **fields))

    inside("GET")
    assert is_hit(inside("GET"))
    assert inside("PURGE", X_Forwarded_For="127.0.0.2").status == 403
    assert is_hit(inside("GET"))


def test_behind_a_load_balancer_the_address_in_its_header_counts(gateway, there):
    running = gateway({
        "listeners": [behind("127.0.0.1")], "access": {"clients": ["192.0.2.0/24"]},
        "cache": {"purge": {"clients": ["192.0.2.7/32"]}}})
    url = there.url("/a")

    def ask(client: str, method: str) -> Response:
        with wire_after(running, line(client)) as wire:
            return wire.ask(request(url, method=method))

    ask("192.0.2.7", "GET")
    assert ask("192.0.2.8", "PURGE").status == 403
    assert is_hit(ask("192.0.2.8", "GET"))
    assert ask("192.0.2.7", "PURGE").status == 200
    assert not is_hit(ask("192.0.2.8", "GET"))


def test_clients_of_a_unix_socket_may_if_that_is_said(gateway, there, workspace):
    path = workspace / "proxy.sock"
    for clients, status in (["unix"], 200), (["127.0.0.1/32"], 403), (["0.0.0.0/0"], 403):
        running = gateway({
            "listeners": [{"name": "proxy", "address": f"unix:{path}", "kind": "forward"}],
            "access": {"clients": ["unix"]}, "cache": {"purge": {"clients": clients}}})
        assert purge(running, there.url("/a")).status == status
        running.stop()


# What is purged


def test_what_a_url_with_a_star_begins_like_is_purged(running, there):
    urls = [there.url(path) for path in ("/x/1", "/x/2?q", "/x", "/y")]
    stored(running, *urls)
    assert purge(running, there.url("/x/*")).status == 200
    assert present(running, *urls) == [False, False, True, True]
    assert purge(running, there.url("/*")).status == 200
    assert present(running, *urls) == [False] * 4
    assert running.metric("pinfold_cache_purges_total", scope="prefix") == 2


def test_tags_are_purged_whatever_their_field(running, there):
    urls = [there.url(path) for path in ("/a", "/b", "/c", "/d")]
    stored(running, *urls)
    assert purge(running, there.url("/d"), Surrogate_Key="one nothing").status == 200
    assert present(running, *urls) == [False, True, True, True]
    assert purge(running, there.url("/d"), Cache_Tag="three four").status == 200
    assert present(running, *urls) == [True, False, True, True]
    assert purge(running, there.url("/d"), Cache_Groups='"g"').status == 200
    assert present(running, *urls) == [True, True, False, True]
    assert purge(running, there.url("/d"), Surrogate_Key="two").status == 200
    assert present(running, *urls) == [False, False, False, True]


def test_a_soft_purge_makes_stale(running, there):
    url = there.url("/e")
    stored(running, url)
    for field in ("Soft_Purge", "Fastly_Soft_Purge"):
        response = purge(running, url, **{field: "1"})
        assert json.loads(response.body)["soft"] is True
        confirmed = get(running, url)
        assert confirmed.cache_status["fwd"] == "stale"
        assert there.requests[-1].get("if-none-match") == '"v"'
        assert is_hit(get(running, url))


def test_a_dry_run_counts_and_purges_nothing(running, there):
    urls = [there.url(f"/n/{number}") for number in range(5)]
    stored(running, *urls)
    response = purge(running, there.url("/n/*"), Purge_Dry_Run="1")
    answer = json.loads(response.body)
    assert answer["dryRun"] is True and "id" not in answer
    assert answer["memoryEntries"] == 5 and answer["diskEntries"] <= 5
    assert present(running, *urls) == [True] * 5


@pytest.mark.parametrize("fields", [
    {"Surrogate_Key": ""}, {"Cache_Tag": " , "}, {"Cache_Groups": "g"}, {"Cache_Groups": '"g'},
    {"Cache_Groups": '"g",'}, {"Soft_Purge": "yes"}, {"Purge_Dry_Run": "2"},
    {"Surrogate_Key": "x" * 1025}, {"Surrogate_Key": " ".join(map(str, range(257)))}])
def test_what_cannot_be_read_purges_nothing(running, there, fields):
    url = there.url("/a")
    stored(running, url)
    response = purge(running, url, **fields)
    assert response.status == 400 and "purge-malformed" in response.get("proxy-status")
    assert present(running, url) == [True]


def test_reverse_listeners_purge_what_they_have_stored(gateway, there, workspace):
    reverse = {"name": "web", "address": "127.0.0.1:0", "kind": "reverse",
               "upstream": there.url("").rstrip("/")}
    running = gateway({"listeners": [reverse], **LOCAL})

    def ask(method: str, path: str = "/a") -> Response:
        return running.ask(request(path, host="any", method=method), "web")

    ask("GET")
    assert is_hit(ask("GET"))
    assert ask("PURGE").status == 200
    assert not is_hit(ask("GET"))
    assert ask("PURGE", "/*").status == 200
    assert not is_hit(ask("GET"))


def test_a_rule_of_access_decides_about_the_method_too(gateway, there):
    running = gateway({
        "access": {"default": "deny", "rules": [
            {"name": "read", "methods": ["GET"], "action": "allow"}]}, **LOCAL})
    stored(running, there.url("/a"))
    assert purge(running, there.url("/a")).status == 403
    assert present(running, there.url("/a")) == [True]


def test_what_was_obtained_by_other_ways_is_purged_as_well(gateway, there, workspace):
    """The rule that allows PURGE names no parents, and the one that allows GET does."""
    parent = gateway({})
    running = gateway({
        "parents": {"up": {"url": "http://%s:%d" % parent.proxy}},
        "access": {"rules": [
            {"name": "ops", "methods": ["PURGE"], "action": "allow"},
            {"name": "all", "methods": ["GET"], "action": "allow", "parents": ["up"]}]}, **LOCAL})
    url = there.url("/a")
    get(running, url)
    assert "hit" in get(running, url).cache_status
    assert purge(running, url).status == 200
    assert get(running, url).cache_status.get("fwd") == "uri-miss"


# What is under way


@pytest.mark.parametrize("scope", ["url", "prefix", "tag"])
def test_a_later_request_does_not_wait_for_an_earlier_response(gateway, origin, scope):
    """The first request is under way when its URL is purged: who asks afterwards gets another
    response, and the first one is not stored."""
    running = gateway({"workers": 2, **LOCAL})
    release, arrived = threading.Event(), threading.Event()
    count = 0

    def answer(seen):
        nonlocal count
        count += 1
        number = count
        if number == 1:
            arrived.set()
            release.wait(20)
        return reply(b"%d" % number, "200 OK", FRESH, "Surrogate-Key: k")

    there = origin(answer)
    url = there.url("/x/held")
    first: list[Response] = []
    asking = threading.Thread(target=lambda: first.append(get(running, url)))
    asking.start()
    assert arrived.wait(10)
    fields = {"Surrogate_Key": "k"} if scope == "tag" else {}
    assert purge(running, there.url("/x/*") if scope == "prefix" else url, **fields).status == 200
    # Several connections: some are the other worker's.
    later = []
    for _ in range(6):
        with Wire(running.proxy) as wire:
            later.append(wire.ask(request(url)))
    assert {response.body for response in later} == {b"2"}
    release.set()
    asking.join()
    assert first[0].body == b"1"
    assert get(running, url).body == b"2"


def test_many_at_once_are_all_answered(running, there):
    """Purges of one client network: each is carried out, or refused with what to do."""
    url = there.url("/a")
    results: list[int] = []

    def work(part: int) -> None:
        with Wire(running.proxy) as wire:
            for number in range(50):
                response = wire.ask(request(there.url(f"/{part}/{number}/*"), method="PURGE"))
                results.append(response.status)

    threads = [threading.Thread(target=work, args=(part,)) for part in range(8)]
    stored(running, url)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 400 and set(results) <= {200, 503} and results.count(200) > 0


def test_a_process_that_has_handed_over_purges_for_both(gateway, there):
    one = Succession(gateway(LOCAL, start=False))
    try:
        running = one.gateway
        urls = [there.url(path) for path in ("/x/1", "/x/2", "/a", "/b", "/e")]
        stored(running, *urls)
        running.wait_for_disk()
        # One request each: the response ends the connection.
        wires = [running.wire() for _ in range(4)]
        for wire in wires:
            assert is_hit(wire.ask(request(urls[0])))
        one.upgrade()
        running.wait_for_disk()
        fresh = there.url("/x/3")
        # The successor's own, which is in its memory.
        stored(running, *urls, fresh)
        for wire, path, fields in zip(
                wires, ("/x/*", "/a", "/b", "/e"),
                ({}, {}, {"Surrogate_Key": "two"}, {"Soft_Purge": "1"})):
            response = wire.ask(request(there.url(path), method="PURGE", **fields))
            assert response.status == 200 and response.get("connection").lower() == "close"
            wire.close()
        assert present(running, *urls, fresh) == [False] * 6
        assert there.requests[-2].get("if-none-match") == '"v"'
    finally:
        one.close()


def test_without_a_cache_on_disk_the_connection_ends_so_that_the_next_reaches_the_successor(
        gateway, there):
    without = {"cache": LOCAL["cache"] | {"disk": 0}}
    one = Succession(gateway(without, start=False))
    try:
        running = one.gateway
        url = there.url("/a")
        stored(running, url)
        wires = [running.wire() for _ in range(2)]
        for wire in wires:
            assert is_hit(wire.ask(request(url)))
        one.upgrade()
        stored(running, url)
        for wire, path in zip(wires, ("/a", "/*")):
            refused = wire.ask(request(there.url(path), method="PURGE"))
            assert refused.status == 503 and "purge-draining" in refused.get("proxy-status")
            assert refused.get("connection").lower() == "close"
            assert int(refused.get("retry-after")) > 0
            wire.close()
        assert purge(running, url).status == 200
        assert not is_hit(get(running, url))
    finally:
        one.close()
