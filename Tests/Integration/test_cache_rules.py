"""What an entry of hosts and its paths say about the cache: each key, with servers that say what they say."""

from __future__ import annotations

import socket

import pytest
from support.gateway import Gateway
from support.origin import HTTPOrigin, Request, reply
from support.wire import Response
from test_reload import reload

LONG = "Cache-Control: max-age=600"
# It has been fresh for long enough when it arrives.
STALE = ("Cache-Control: max-age=10", "Age: 20")
TAG = 'ETag: "1"'


class Site:
    """A gateway with an entry, and a server whose answers depend on what was asked how often."""

    def __init__(self, gateway, origin, said: dict | None = None, paths: list | None = None,
                 **config):
        self.fields: list[str] = []
        self.status = "200 OK"
        self.there: HTTPOrigin = origin(self.answer)
        entry = {"match": ["127.0.0.1"]}
        if said is not None:
            entry["cache"] = said
        if paths is not None:
            entry["paths"] = paths
        self.entry = entry
        self.running: Gateway = gateway({"hosts": [entry], **config})

    def answer(self, asked: Request) -> bytes:
        if asked.get("if-none-match") == '"1"' and "304" not in self.status and TAG in self.fields \
                and self.status.startswith("200"):
            return reply(b"", "304 Not Modified", *self.fields, length=False)
        body = f"{len(self.there.requests)} {asked.target}".encode()
        return reply(body, self.status, *self.fields)

    def get(self, path: str = "/x", method: str = "GET", listener: str = "proxy",
            **fields: str) -> Response:
        lines = [f"{method} {self.there.url(path)} HTTP/1.1", f"Host: {self.there.authority}",
                 "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
        return self.running.ask("\r\n".join(lines) + "\r\n\r\n", listener)

    def is_reused(self, path: str = "/x", **fields: str) -> bool:
        """Whether the second of two requests is answered from the cache."""
        self.get(path, **fields)
        return is_hit(self.get(path, **fields))

    @property
    def asked(self) -> list[Request]:
        return self.there.requests


def is_hit(response: Response) -> bool:
    return "hit" in response.cache_status


def ttl(response: Response) -> int:
    return int(response.get("cache-status").rpartition("ttl=")[2].split(";")[0])


@pytest.fixture
def site(gateway, origin):
    def make(said: dict | None = None, paths: list | None = None, **config) -> Site:
        return Site(gateway, origin, said, paths, **config)
    return make


# Paths


def test_the_first_path_that_matches_counts_and_wins_key_by_key(site):
    there = site({"freshness": {"default": "1h"}},
                 [{"match": ["/a/**"], "cache": {"freshness": {"default": "10m"}}},
                  {"match": ["/a/b", "/c/*.css"], "cache": {"freshness": {"default": "1m"}}},
                  {"match": ["/none"], "cache": {"store": False}}])
    for path, seconds in [("/a/b", 600), ("/a", 600), ("/c/x.css", 60), ("/other", 3600),
                          ("/c/x.css?v=1", 60)]:
        there.get(path)
        hit = there.get(path)
        assert is_hit(hit), path
        assert seconds - 5 <= ttl(hit) <= seconds, path
    assert not there.is_reused("/none")


@pytest.mark.parametrize("path", [
    "/static/../account", "/static/%2e%2e/account", "/static/..%2faccount", "/static/..%5caccount",
    "/%73tatic/x"])
def test_a_path_that_a_server_may_read_as_another_is_not_stored(site, path):
    """Otherwise a link to somebody's account that looks like a static file would store it for all."""
    there = site(None, [{"match": ["/static/**"],
                         "cache": {"freshness": {"default": "1h", "overrides": ["private"]}}}])
    there.fields = ["Cache-Control: private"]
    assert not there.is_reused(path)
    assert there.is_reused("/static/x")


def test_a_path_counts_as_the_server_sees_it(gateway, origin):
    there = origin(lambda asked: reply(asked.target.encode()))
    running = gateway({"hosts": [{
        "match": ["127.0.0.1"], "request": {"path": {"prefixes": {"/old": "/new"}}},
        "paths": [{"match": ["/new/**"], "cache": {"freshness": {"default": "1h"}}}]}]})
    assert [is_hit(running.get(there.url("/old/x"))) for _ in range(2)] == [False, True]


def test_rules_hold_on_a_reverse_route_and_with_several_servers(gateway, origin):
    there = [origin(lambda asked: reply(asked.target.encode())) for _ in range(2)]
    entry = {"match": ["127.0.0.1"], "cache": {"store": False},
             "paths": [{"match": ["/s/**"], "cache": {"store": True, "freshness": {"default": "1h"},
                                                       "key": {"query": {"ignore": ["utm_*"]}}}}]}
    running = gateway({"hosts": [entry], "listeners": [
        {"name": "one", "address": "127.0.0.1:0", "kind": "reverse",
         "upstream": f"http://{there[0].authority}"},
        {"name": "two", "address": "127.0.0.1:0", "kind": "reverse", "upstreams": {
            "servers": [{"url": f"http://{server.authority}"} for server in there]}}]})
    for listener in ("one", "two"):
        running.get("/s/x?utm_a=1", listener)
        assert is_hit(running.get("/s/x?utm_b=2", listener)), listener
        running.get("/other", listener)
        assert not is_hit(running.get("/other", listener)), listener


# Freshness


@pytest.mark.parametrize(("freshness", "status", "fields", "seconds"), [
    ({"default": "1h"}, 200, [], 3600),
    ({"default": "1h"}, 200, ["Cache-Control: max-age=60"], 60),
    ({"default": "1h"}, 404, [], 3600),
    ({"default": "1h"}, 302, [], None),
    ({"default": "1h"}, 200, ["Cache-Control: no-store"], None),
    ({"minimum": "1h"}, 200, ["Cache-Control: max-age=60"], 3600),
    ({"minimum": "1h"}, 404, ["Cache-Control: max-age=60"], 60),
    ({"maximum": "1m"}, 200, [LONG], 60),
    ({"byStatus": {"404": "30s", "5xx": "5s"}}, 404, [], 30),
    ({"byStatus": {"404": "30s", "5xx": "5s"}}, 500, [], 5),
    ({"byStatus": {"404": "30s", "5xx": "5s"}}, 200, [], None),
    ({"byStatus": {"4xx": "30s"}}, 429, [], None),
    ({"byStatus": {"4xx": "30s"}}, 401, [], None),
    ({"overrides": ["noStore"]}, 200, ["Cache-Control: no-store, max-age=60"], 60),
    ({"overrides": ["private"]}, 200, ["Cache-Control: private, max-age=60"], 60),
    ({"overrides": ["private"]}, 200, ["Cache-Control: no-store, max-age=60"], None),
    ({"overrides": ["noCache"]}, 200, ["Cache-Control: no-cache, max-age=60", TAG], 60),
])
def test_how_long_a_response_is_used(site, freshness, status, fields, seconds):
    there = site({"freshness": freshness})
    there.status, there.fields = f"{status} Reason", fields
    there.get()
    second = there.get()
    assert is_hit(second) == (seconds is not None)
    if seconds is not None:
        assert seconds - 5 <= ttl(second) <= seconds


@pytest.mark.parametrize("directive", ["private", "no-store", "no-cache"])
@pytest.mark.parametrize("field", [{"Cookie": "a=1"}, {"Authorization": "Basic YTpi"}])
def test_nothing_personal_is_shared_whatever_is_overridden(site, directive, field):
    there = site({"freshness": {"minimum": "1h", "overrides": ["noStore", "private", "noCache"]}})
    there.fields = [f"Cache-Control: {directive}, max-age=60"]
    first = there.get(**field)
    others = [there.get(), there.get(**field)]
    assert all(other.body != first.body for other in others)


def test_with_the_cookie_in_the_key_each_cookie_has_its_own(site):
    there = site({"key": ["Cookie"], "freshness": {"overrides": ["private"]}})
    there.fields = ["Cache-Control: private, max-age=60"]
    one, two = there.get(Cookie="u=1"), there.get(Cookie="u=2")
    assert one.body != two.body
    assert there.get(Cookie="u=1").body == one.body and there.get(Cookie="u=2").body == two.body
    assert there.get().body not in (one.body, two.body)


def test_users_that_are_known_share_nothing_private(gateway, origin, workspace):
    from support.credentials import basic, bcrypt
    (workspace / "users").write_text(f"ann:{bcrypt('a')}\nbob:{bcrypt('b')}\n")
    there = origin(lambda asked: reply(f"{len(there.requests)}".encode(), "200 OK",
                                       "Cache-Control: private, max-age=60"))
    cache = {"freshness": {"overrides": ["private"]}}
    running = gateway({
        "authentication": {"users": str(workspace / "users")},
        "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "authentication": ["basic"]}],
        "hosts": [{"match": ["127.0.0.1"], "cache": cache}]})
    ann = {"Proxy_Authorization": basic("ann", "a")}
    bob = {"Proxy_Authorization": basic("bob", "b")}
    bodies = [running.get(there.url("/"), **who).body for who in (ann, bob, ann)]
    assert len(set(bodies)) == 3
    # Told who asks, the server gets each user's requests apart, and each has their own.
    reload(running, {"hosts": [{"match": ["127.0.0.1"], "cache": cache,
                                "request": {"forwardUser": True}}]})
    bodies = [running.get(there.url("/"), **who).body for who in (ann, bob, ann, bob)]
    assert bodies[0] == bodies[2] != bodies[1] == bodies[3]


def test_a_lifetime_that_nobody_states_is_not_for_requests_with_a_cookie(site):
    there = site(None, [
        {"match": ["/all/*"], "cache": {"freshness": {
            "default": "1h", "overrides": ["requestCookie"]}}},
        {"match": ["/**"], "cache": {"freshness": {"default": "1h"}}}])
    assert not there.is_reused("/x", Cookie="a=1")
    assert there.is_reused("/all/x", Cookie="a=1")
    assert there.is_reused("/y")


def test_a_reload_by_a_client_does_not_count_where_it_is_overridden(site):
    there = site({"freshness": {"overrides": ["requestNoCache"]}})
    there.fields = [LONG]
    first = there.get()
    for fields in ({"Cache_Control": "no-cache"}, {"Pragma": "no-cache"},
                   {"Cache_Control": "max-age=0"}):
        assert there.get(**fields).body == first.body
    assert len(there.asked) == 1


def test_another_rule_applies_to_what_is_stored(site):
    """A reload changes how long what is there is used, in memory and on disk, and keeps it."""
    there = site({"freshness": {"default": "1h"}})
    first = there.get("/a")
    there.running.wait_for_disk()
    there.entry["cache"] = {"freshness": {"default": "2h", "maximum": "90m"}}
    reload(there.running, {"hosts": [there.entry]})
    hit = there.get("/a")
    assert hit.body == first.body and 5300 < ttl(hit) <= 5400
    # And once more from the disk.
    there.entry["cache"] = {"freshness": {"default": "30m"}}
    there.running.write_config({**there.running.config, "hosts": [there.entry]})
    there.running.config["hosts"] = [there.entry]
    there.running.wait_for_disk()
    there.running.restart()
    hit = there.get("/a")
    assert hit.body == first.body and 1700 < ttl(hit) <= 1800
    assert len(there.asked) == 1


@pytest.mark.parametrize("restarts", [False, True])
def test_what_was_made_stale_stays_so_under_other_rules(site, restarts):
    """What says that it is stale is not in the head by which it is read again."""
    there = site({"freshness": {"maximum": "1h"}}, cache={"purge": {"clients": ["127.0.0.1"]}})
    there.fields = [LONG, TAG]
    assert there.is_reused()
    assert there.get(method="PURGE", Soft_Purge="1").status == 200
    there.entry["cache"] = {"freshness": {"maximum": "2h", "byStatus": {"404": "1s", "5xx": "1s"}}}
    if restarts:
        there.running.config["hosts"] = [there.entry]
        there.running.write_config(there.running.config)
        there.running.wait_for_disk()
        there.running.restart()
    else:
        reload(there.running, {"hosts": [there.entry]})
    again = there.get()
    assert not is_hit(again) and there.asked[-1].get("if-none-match") == '"1"'
    assert is_hit(there.get())


@pytest.mark.parametrize("change", [
    {"freshness": {"default": "1h"}}, {"freshness": {"minimum": "1h"}}, {"staleIfError": "1d"},
    {"offline": True}])
def test_a_reload_gives_nobody_what_was_for_one(site, change):
    there = site()
    there.fields = [TAG, "Cache-Control: max-age=0"] if "minimum" in str(change) else [TAG]
    mine = there.get(Cookie="user=me")
    there.entry["cache"] = change
    reload(there.running, {"hosts": [there.entry]})
    there.status, there.fields = "503 Service Unavailable", []
    for fields in ({}, {"Cookie": "user=you"}):
        assert there.get(**fields).body != mine.body


@pytest.mark.parametrize(("cache", "fields"), [
    ({"setCookie": "strip"}, ["Set-Cookie: a=1", LONG]), ({"setCookie": "always"},
                                                          ["Set-Cookie: a=1", LONG]),
    ({"freshness": {"default": "1h", "overrides": ["requestCookie"]}}, [])])
def test_what_a_rule_let_in_is_gone_with_the_rule(site, cache, fields):
    there = site(cache)
    there.fields = fields
    mine = there.get(Cookie="user=me")
    assert is_hit(there.get(Cookie="user=you"))
    there.entry["cache"] = {"freshness": {"maximum": "2h"}}
    reload(there.running, {"hosts": [there.entry]})
    assert there.get(Cookie="user=you").body != mine.body


@pytest.mark.parametrize("control", ["max-age=0, must-revalidate", "must-revalidate", "s-maxage=0"])
def test_a_rule_gives_no_lifetime_to_what_a_user_got(site, control):
    there = site({"freshness": {"default": "1h", "minimum": "1m"}})
    there.fields = [f"Cache-Control: {control}", TAG]
    mine = there.get(Authorization="Basic YTpi")
    for fields in ({"Authorization": "Basic YTpj"}, {}):
        assert there.get(**fields).body != mine.body


def test_what_was_stored_because_of_an_override_is_gone_with_it(site):
    there = site({"freshness": {"overrides": ["noStore"]}})
    there.fields = ["Cache-Control: no-store, max-age=60"]
    assert there.is_reused()
    there.entry["cache"] = {"freshness": {"maximum": "1h"}}
    reload(there.running, {"hosts": [there.entry]})
    assert not is_hit(there.get())
    assert len(there.asked) == 2


def test_a_response_is_not_shared_by_requests_that_another_key_would_tell_apart(site):
    there = site({"key": {"query": {"ignore": ["id"]}}})
    there.fields = [LONG]
    first = there.get("/x?id=1")
    assert there.get("/x?id=2").body == first.body
    there.entry["cache"] = {}
    reload(there.running, {"hosts": [there.entry]})
    assert there.get("/x").body != first.body, "it may be the response to /x?id=1"


# The key


def test_the_key_ignores_parameters_and_the_server_gets_them(site):
    there = site({"key": {"query": {"ignore": ["utm_*", "fbclid"], "sort": True}}})
    there.fields = [LONG]
    first = there.get("/x?b=2&utm_source=a&a=1")
    assert there.asked[0].target == "/x?b=2&utm_source=a&a=1"
    assert there.get("/x?a=1&b=2&fbclid=9").body == first.body
    assert there.get("/x?a=2&b=2").body != first.body
    # What servers may read in another way is another key.
    assert there.get("/x?a=1&b=2&utm_x=1;c=3").body != first.body
    assert len(there.asked) == 3


def test_the_key_keeps_the_parameters_that_count(site):
    there = site(None, [{"match": ["/x"], "cache": {"key": {"query": {"keep": ["id"]}}}}])
    there.fields = [LONG]
    first = there.get("/x?id=1&anything=2")
    assert there.get("/x?other&id=1").body == first.body
    assert there.get("/x?id=2").body != first.body
    assert there.get("/x?%69d=1").body != first.body
    # On other paths all count.
    assert there.get("/y?id=1&a=1").body != there.get("/y?id=1&a=2").body


def test_a_change_invalidates_by_the_same_key(site):
    there = site({"key": {"query": {"ignore": ["utm_*"], "sort": True}}})
    there.fields = [LONG]
    first = there.get("/x?b=1&a=2")
    there.fields = [LONG, "Location: /y?utm_b=1&c=2"]
    other = there.get("/y?c=2")
    assert is_hit(there.get("/x?a=2&b=1"))
    there.get("/x?a=2&utm_z=0&b=1", method="DELETE")
    assert there.get("/x?b=1&a=2").body != first.body
    assert there.get("/y?c=2").body != other.body


def test_request_fields_are_added_ignored_and_understood(site):
    there = site({"key": {"fields": {
        "add": ["X-Tenant"], "ignore": ["User-Agent"], "normalise": ["Accept-Encoding",
                                                                     "Accept-Language"]}}})
    there.fields = [LONG, "Vary: User-Agent, Accept-Encoding, Accept-Language"]
    first = there.get(User_Agent="a", Accept_Encoding="gzip, br;q=0.5",
                      Accept_Language="de, en;q=0.5")
    assert there.asked[0].get("accept-encoding") == "gzip, br;q=0.5"
    same = there.get(User_Agent="b", Accept_Encoding="br, gzip", Accept_Language="de,en;q=0.1")
    assert same.body == first.body and is_hit(same)
    for other in ({"Accept_Encoding": "gzip"}, {"Accept_Language": "en, de;q=0.5"},
                  {"X_Tenant": "t"}):
        fields = {"Accept_Encoding": "br, gzip", "Accept_Language": "de, en;q=0.5", **other}
        assert there.get(**fields).body != first.body


@pytest.mark.parametrize(("one", "other"), [
    ("gzip, deflate, br", "br, gzip, deflate"), ("deflate, gzip", "gzip,deflate")])
def test_the_order_of_what_is_accepted_makes_no_difference(through, one, other):
    there = through.origin(lambda asked: reply(b"x", "200 OK", LONG, "Vary: Accept-Encoding"))
    running = through.gateway()
    running.get(there.url("/"), Accept_Encoding=one)
    assert is_hit(running.get(there.url("/"), Accept_Encoding=other))
    assert not is_hit(running.get(there.url("/"), Accept_Encoding=other + ";q=0.5"))


# Cookies


@pytest.mark.parametrize(("rule", "control", "stored", "has_cookie"), [
    (None, "max-age=60", False, False), (None, "public, max-age=60", True, True),
    ("explicit", "s-maxage=60", True, True), ("never", "public, max-age=60", False, False),
    ("strip", "max-age=60", True, False), ("strip", "public, max-age=60", True, False),
    ("always", "max-age=60", True, True)])
def test_responses_that_set_cookies(site, rule, control, stored, has_cookie):
    there = site({"setCookie": rule} if rule else None)
    there.fields = [f"Cache-Control: {control}", "Set-Cookie: a=1", "Set-Cookie: b=2", TAG]
    first = there.get()
    assert first.all("set-cookie") == ["a=1", "b=2"]
    second = there.get()
    assert is_hit(second) == stored
    if stored:
        assert ("set-cookie" in second) == has_cookie
    # Whoever has it confirmed gets the cookie of their own request.
    there.fields[1:3] = ["Set-Cookie: c=3"]
    third = there.get(Cache_Control="no-cache")
    assert third.all("set-cookie")[-1] == "c=3"


# When the server fails


def failures(there: Site) -> None:
    there.there.close()


@pytest.mark.parametrize(("cache", "control", "served"), [
    ({"staleIfError": "1d"}, "max-age=10", True), (None, "max-age=10", False),
    ({"staleIfError": "5s"}, "max-age=10", False),
    ({"staleIfError": "1d"}, "max-age=10, must-revalidate", False),
    ({"staleIfError": "1d"}, "max-age=10, stale-if-error=1", False),
    ({"staleIfError": "1d", "freshness": {"overrides": ["mustRevalidate"]}},
     "max-age=10, must-revalidate", True)])
@pytest.mark.parametrize("tag", [[], [TAG]])
def test_a_stale_response_stands_in_for_a_server_error(site, cache, control, served, tag):
    there = site(cache)
    there.fields = [f"Cache-Control: {control}", "Age: 20", *tag]
    first = there.get()
    there.status = "503 Service Unavailable"
    second = there.get()
    assert (second.body == first.body, second.status == 200) == (served, served)
    if served:
        assert second.get("cache-status").endswith("detail=stale-if-error")


@pytest.mark.parametrize("failure", ["refused", "reset", "closed", "silent"])
@pytest.mark.parametrize("key", ["staleIfError", "staleWhenUnreachable"])
def test_a_stale_response_stands_in_for_a_server_that_is_away(
        gateway, scripted_origin, failure, key):
    def script(connection):
        while (asked := connection.read_request()) is not None:
            if len(seen) == 0:
                seen.append(asked)
                connection.send(reply(b"old", "200 OK", *STALE))
                continue
            if failure == "reset":
                connection.socket.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            if failure == "silent":
                connection.finished.wait(20)
            return

    seen: list[Request] = []
    there = scripted_origin(script)
    running = gateway({"timeouts": {"firstByte": "500ms"},
                       "hosts": [{"match": ["127.0.0.1"], "cache": {key: "1d"}}]})
    url = f"http://{there.authority}/"
    assert running.get(url).body == b"old"
    if failure == "refused":
        there.close()
    second = running.get(url)
    assert (second.status, second.body) == (200, b"old"), second
    assert second.get("cache-status").endswith(
        "detail=" + {"staleIfError": "stale-if-error", "staleWhenUnreachable": "unreachable"}[key])


def test_an_error_is_not_a_server_that_is_away(site):
    there = site({"staleWhenUnreachable": "1d"})
    there.fields = list(STALE)
    there.get()
    there.status = "503 Service Unavailable"
    assert there.get().status == 503


# Bypassing, and offline


def test_what_bypasses_the_cache(site):
    there = site(None, [{"match": ["/x"], "cache": {"bypass": {
        "fields": ["X-Preview"], "cookies": ["session*"], "query": ["nocache"]}}}])
    there.fields = [LONG]
    first = there.get()
    assert is_hit(there.get()) and is_hit(there.get(Cookie="a=session; other=1"))
    for path, fields in [("/x", {"X_Preview": "1"}), ("/x", {"Cookie": "a=1; session_id=2"}),
                         ("/x?nocache=1", {}), ("/x?a&NoCache", {})]:
        for _ in range(2):
            response = there.get(path, **fields)
            assert not is_hit(response) and response.body != first.body, (path, fields)
            assert "bypass" in response.get("cache-status")
    assert there.get().body == first.body, "and nothing of that has been stored"
    assert there.is_reused("/y?nocache=1")


def test_offline_the_server_is_not_asked(site):
    there = site()
    there.fields = ["Cache-Control: max-age=10, must-revalidate", "Age: 20", TAG, "Vary: X-A"]
    first = there.get("/x", X_A="1")
    there.entry["cache"] = {"offline": True}
    reload(there.running, {"hosts": [there.entry]})
    for fields in ({}, {"Cache_Control": "no-cache"}, {"Pragma": "no-cache"}):
        old = there.get("/x", X_A="1", **fields)
        assert (old.status, old.body) == (200, first.body)
        assert "detail=offline" in old.get("cache-status")
    assert there.get("/x", X_A="1", If_None_Match='"1"').status == 304
    assert there.get("/x", method="HEAD", X_A="1").status == 200
    for path, method, fields in [("/y", "GET", {}), ("/x", "GET", {"X_A": "2"}), ("/x", "DELETE", {}),
                                 ("/x", "OPTIONS", {}),
                                 ("/x", "GET", {"X_A": "1", "Cache_Control": "no-store"})]:
        missing = there.get(path, method=method, **fields)
        assert missing.status == 504, (path, method)
        assert "offline" in missing.get("proxy-status")
    assert len(there.asked) == 1


# Targeted fields, tags


def test_a_targeted_field_of_any_name_counts_where_it_is_said(site):
    there = site({"targetedField": "Edge-Control"},
                 [{"match": ["/both"], "cache": {"targetedField": ["X-One", "Edge-Control"]}},
                  {"match": ["/none"], "cache": {"targetedField": []}}])
    there.fields = ["Cache-Control: no-store", "Edge-Control: max-age=60", "X-One: max-age=30"]
    there.get("/x")
    assert 55 <= ttl(there.get("/x")) <= 60
    there.get("/both")
    assert 25 <= ttl(there.get("/both")) <= 30
    assert not there.is_reused("/none")
    assert there.get("/x").get("edge-control") == "max-age=60", "others may be meant too"


@pytest.mark.parametrize("passes", [True, False])
def test_clients_get_tags_only_where_they_are_passed_on(site, passes):
    there = site(None, [{"match": ["/t"], "cache": {"passTags": passes}},
                        {"match": ["/own"], "cache": {"passTags": passes, "tags": ["X-Tags"]}}])
    there.fields = [LONG, "Surrogate-Key: a b", "Cache-Tag: c", 'Cache-Groups: "d"', "X-Tags: e"]
    names = ["surrogate-key", "cache-tag", "cache-groups"]
    for _ in range(2):
        response = there.get("/t")
        assert [name in response for name in names] == [passes] * 3
        assert "x-tags" in response
        own = there.get("/own")
        assert ("x-tags" in own) == passes and all(name in own for name in names)
    assert is_hit(there.get("/t"))


# What is checked


def test_check_says_which_keys_leave_the_rfc(tmp_path):
    from support.gateway import run_pinfold
    file = tmp_path / "pinfold.yaml"
    file.write_text("hosts: [{ match: [a.test], cache: { freshness: { overrides: [private] } } }]\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 0
    assert "hosts[0].cache.freshness.overrides: private of responses does not count, which is " \
        "outside RFC 9111" in done.stderr


def test_explain_shows_the_path_and_what_it_says(tmp_path):
    import json

    from support.gateway import run_pinfold
    file = tmp_path / "pinfold.yaml"
    file.write_text("hosts: [{ match: [a.test], cache: { staleIfError: 1d }, paths: [{ match: [/s/**], "
                    "cache: { freshness: { default: 1h } } }] }]\n")

    def explained(path: str, *options: str) -> str:
        return run_pinfold("explain", "--config", str(file), *options, f"http://a.test{path}").stdout

    assert 'cache rules: hosts[0].paths[0] (/s/**): { store: true, key: [], freshness: { default: 1h }, ' \
        'staleIfError: 1d }' in explained("/s/x?y")
    assert "cache rules: hosts[0].cache: { store: true, key: [], staleIfError: 1d }" in explained("/")
    assert "cache rules: none: servers may read" in explained("/s/..%2fx")
    rules = json.loads(explained("/s/x", "--json"))["cache"]["rules"]
    assert (rules["path"], rules["index"], rules["isAmbiguous"]) == ("/s/**", 0, False)
    file.write_text("{}\n")
    assert "cache rules" not in explained("/")
