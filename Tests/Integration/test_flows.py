"""The latest exchanges, as the API shows them."""

from __future__ import annotations

import ssl
import time

import pytest
from support.gateway import Gateway, refusing_port
from support.origin import reply
from support.wait import until
from support.wire import request
from test_admin_api import described
from test_pinset_life import HOST, ask, configuration, serve
from test_recording import streamed

TOKEN = "a-token-of-16-bytes-or-more"
SECRET = "c2VjcmV0"


def flows(running: Gateway, query: str = "", **fields: str) -> dict:
    response = running.admin_get("/api/v1/flows" + (f"?{query}" if query else ""), **fields)
    assert response.status == 200, response.body
    described(running, "get", "/api/v1/flows", response)
    return response.json()


def held(running: Gateway, count: int, query: str = "", **fields: str) -> list[dict]:
    """The newest ones, once there are so many: an exchange ends after its client has all of it."""
    return until(
        lambda: found[:count] if len(found := flows(running, query, **fields)["flows"]) >= count
        else [], f"{count} exchanges")


def flow(running: Gateway, id: str, **fields: str) -> dict:
    response = running.admin_get(f"/api/v1/flows/{id}", **fields)
    assert response.status == 200, response.body
    described(running, "get", "/api/v1/flows/{id}", response)
    return response.json()


def watched(running: Gateway, there, **fields: str) -> None:
    """Until every worker holds all exchanges: each is told by a message."""
    def all_are_held() -> bool:
        before = flows(running, **fields)["newest"]
        for _ in range(8):
            running.get(there.url("/begin"))
        # The last of a client's connections may end a little later.
        return flows(running, **fields)["newest"] - before >= 7
    until(all_are_held, "every exchange is held")
    last = flows(running, **fields)["newest"]
    running.get(there.url("/begun"))
    until(lambda: flows(running, f"after={last}", **fields)["flows"], "the last of them")


@pytest.fixture
def guarded(gateway, tmp_path):
    """A gateway whose API needs a token."""
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    return gateway({"admin": {"tokenFile": str(token)}})


BEARER = {"Authorization": f"Bearer {TOKEN}"}


def test_what_failed_is_held_although_nobody_looked(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway()
    running.get(there.url("/served"))
    refused = running.get("http://127.0.0.1:1/refused?key=1")
    assert refused.status == 502
    (one,) = held(running, 1)
    found = flows(running)
    assert found["access"] == "masked"
    assert found["held"] == 1
    assert one["path"] == "/refused?***"
    assert one["host"] == "127.0.0.1:1"
    assert (one["method"], one["status"]) == ("GET", 502)
    assert one["reason"]
    assert "client" not in one
    shown = flow(running, one["id"])
    assert shown["explanation"]["token"] == one["reason"]
    assert shown["explanation"]["remedy"]
    assert "requestFields" not in shown, "heads need the token"
    assert "detail" not in shown["explanation"]


def test_of_a_flood_of_refusals_few_are_held(gateway):
    count, at_once = 2000, 100
    running = gateway({"workers": 1, "access": {
        "clients": ["127.0.0.0/8"],
        "rules": [{"name": "no", "hosts": ["refused.test"], "action": "deny"}]}})
    ask = request("http://refused.test/") * at_once

    def flood(times: int) -> None:
        with running.wire() as wire:
            for _ in range(times):
                wire.send(ask)
                assert {wire.read().status for _ in range(at_once)} == {403}

    flood(count // at_once)
    before = flows(running, "failed=true")["newest"]
    # At most 25 in each second that it took.
    assert 1 <= before < count // 2

    def each_is_counted() -> bool:
        found = flows(running)
        flood(1)
        later = flows(running)
        # The last one may end a little later than its response arrives.
        return sum(later[one] - found[one] for one in ("newest", "leftOut")) >= at_once - 1
    until(each_is_counted, "the worker knows that somebody looks")


def test_what_is_served_is_held_once_somebody_looks(gateway, origin):
    there = origin(lambda _: reply(b"abc", "200 OK", "Cache-Control: max-age=60"))
    running = gateway()
    watched(running, there)
    running.get(there.url("/seen?a=1"))
    running.get(there.url("/seen?a=1"))
    (hit, miss) = until(
        lambda: found if len(found := [one for one in flows(running)["flows"]
                                       if one["path"] == "/seen?***"]) == 2 else [], "both")
    assert (miss["cache"], hit["cache"]) == ("miss", "hit")
    assert miss["responseBytes"] == hit["responseBytes"] == 3
    assert "first_byte_us" in miss["phases"]
    assert miss["host"] == there.authority
    assert miss["sequence"] < hit["sequence"]
    assert flows(running, "limit=1&cache=miss")["flows"][0]["id"] == miss["id"]


def test_pages_follow_each_other(gateway, origin):
    there = origin(lambda _: reply(b"x"))
    running = gateway()
    watched(running, there)
    for number in range(5):
        running.get(there.url(f"/{number}"))
    newest = until(
        lambda: found[0]["sequence"] if (found := flows(running)["flows"])[0]["path"] == "/4"
        else 0, "the last one")
    first = flows(running, "limit=3")
    second = flows(running, f"limit=3&cursor={first['next']}")
    sequences = [one["sequence"] for one in first["flows"] + second["flows"]]
    assert sequences == list(range(newest, newest - 6, -1))
    assert flows(running, f"after={newest}")["flows"] == []
    assert len(flows(running, f"after={newest - 2}")["flows"]) == 2


def test_the_token_shows_heads_without_secrets(guarded, origin):
    running = guarded
    there = origin(lambda _: reply(b"x", "200 OK", f"Set-Cookie: sid={SECRET}", "X-From: server"))
    watched(running, there, **BEARER)
    running.get(there.url("/x?name=value"), Authorization=f"Basic {SECRET}", Cookie=SECRET,
                X_Seen="client")
    one = until(
        lambda: found[0] if (found := flows(running, **BEARER)["flows"])[0]["path"].startswith("/x")
        else None, "the request")
    assert one["path"] == "/x?name=value"
    assert one["client"].startswith("127.0.0.1:")
    assert one["upstream"] == there.authority
    response = running.admin_get(f"/api/v1/flows/{one['id']}", **BEARER)
    assert SECRET.encode() not in response.body
    shown = flow(running, one["id"], **BEARER)
    assert shown["access"] == "full"
    sent = {one["name"].lower(): one for one in shown["requestFields"]}
    got = {one["name"].lower(): one for one in shown["responseFields"]}
    assert sent["authorization"] == {"name": sent["authorization"]["name"], "value": "***",
                                     "isMasked": True}
    assert sent["cookie"]["isMasked"] and got["set-cookie"]["isMasked"]
    assert sent["x-seen"]["value"] == "client"
    assert got["x-from"]["value"] == "server"
    assert shown["statusLine"].startswith("HTTP/1.1 200")
    assert shown["requestLine"].startswith("GET http")


def test_nothing_is_shown_without_the_token(guarded):
    running = guarded
    running.get("http://127.0.0.1:1/refused")
    for path in ("/api/v1/flows", "/api/v1/flows/0000000000000000"):
        for given in ({}, {"Authorization": "Bearer wrong"}):
            assert running.admin_get(path, **given).status == 401
    assert running.admin_get("/api/v1/flows?host=127.0.0.1", **BEARER).status == 200


def test_without_token_nobody_learns_who_asked(gateway):
    running = gateway()
    for query in ("client=127.0.0.1", "user=a", "rule=b"):
        refused = running.admin_get(f"/api/v1/flows?{query}")
        assert refused.status == 403
        assert refused.json()["type"].endswith("token-needed")


@pytest.mark.parametrize("query", ["status=50", "sort=x", "limit=0", "reason=nonsense"])
def test_a_wrong_query_says_what_was_expected(shared_gateway, query):
    refused = shared_gateway.admin_get(f"/api/v1/flows?{query}")
    assert refused.status == 400
    assert "expected" in refused.json()["detail"]


def test_an_unknown_exchange(shared_gateway):
    for id in ("0" * 16, "x", "%7Bid%7D"):
        refused = shared_gateway.admin_get(f"/api/v1/flows/{id}")
        assert refused.status == 404
        assert refused.json()["type"].endswith("not-held")


def ask_ten_thousand_times(running: Gateway, there) -> None:
    with running.wire() as wire:
        for _ in range(50):
            wire.send(request(there.url("/hit")) * 200)
            for _ in range(200):
                assert wire.read().status == 200


def test_of_ten_thousand_exchanges_few_are_held_and_the_rest_is_counted(gateway, origin):
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: max-age=600"))
    running = gateway({"workers": 1})
    running.get("http://127.0.0.1:1/failed")
    watched(running, there)
    before = flows(running)
    began = time.monotonic()
    ask_ten_thousand_times(running, there)
    def ended():
        found = flows(running, "limit=1000")
        news = found["newest"] - before["newest"] + found["leftOut"] - before["leftOut"]
        return found if news >= 10_000 else None
    found = until(ended, "all are held or left out")
    assert found["newest"] - before["newest"] + found["leftOut"] - before["leftOut"] == 10_000
    assert running.metric("pinfold_flows_left_out_total") == found["leftOut"]
    # A client network may have 37 of the 50 of each quarter of a second.
    quarters = (time.monotonic() - began) * 4 + 2
    assert 37 <= found["newest"] - before["newest"] <= 37 * quarters
    assert [one["path"] for one in flows(running, "failed=true")["flows"]] == ["/failed"]


def test_ten_thousand_recorded_exchanges_leave_a_thousand(gateway, origin, tmp_path):
    there = origin(lambda _: reply(b"x", "200 OK", "Cache-Control: max-age=600"))
    running = gateway({"workers": 1, "admin": {"address": f"unix:{tmp_path}/admin.sock"}})
    running.get("http://127.0.0.1:1/failed")
    watched(running, there)
    before = flows(running)["leftOut"]
    with streamed(running):
        ask_ten_thousand_times(running, there)
        found = until(
            lambda: (
                found if (found := flows(running, "limit=1000"))["gaveWay"] >= 9000 else None),
            "all have ended")
    assert found["leftOut"] == before
    assert found["held"] == found["capacity"] == 1000
    assert [one["path"] for one in flows(running, "failed=true")["flows"]] == ["/failed"]


def test_a_refused_tunnel_has_its_host(gateway):
    running = gateway()
    wire, answer = running.connect("127.0.0.1:1")
    wire.close()
    assert answer.status >= 400
    (one,) = held(running, 1)
    assert (one["method"], one["host"]) == ("CONNECT", "127.0.0.1:1")
    assert "path" not in one


def verdict(running: Gateway, there) -> str:
    """What pins had to do with a server, once every exchange is held."""
    def shown() -> str:
        ask(running, there)
        found = flows(running, f"host={HOST}")["flows"]
        return next((one["pin"] for one in found if "pin" in one), "")
    return until(shown, "a verdict")


PIN_WORDS = [
    ("passed", {}, True), ("refused", {}, False), ("report_only", {"enforce": False}, False),
    ("report_only", {"expires": "2020-01-01T00:00:00Z", "afterExpiry": "report"}, False),
    ("refused", {"expires": "2020-01-01T00:00:00Z", "afterExpiry": "refuse"}, True),
]


@pytest.mark.parametrize("word, pinset, is_right", PIN_WORDS)
def test_what_pins_had_to_do_with_it(gateway, origin, pki, word, pinset, is_right):
    leaf = pki.intermediate.issue(HOST)
    there = serve(origin, leaf)
    config = configuration(pki, **pinset)
    if is_right:
        config["pinsets"]["wanted"]["pins"][0] = leaf.pin
    assert verdict(gateway(config), there) == word


def test_without_pins_a_valid_chain_is_enough(gateway, origin, pki):
    there = serve(origin, pki.intermediate.issue(HOST))
    config = configuration(pki)
    del config["hosts"][0]["pinsets"], config["pinsets"]
    assert verdict(gateway(config), there) == "unpinned"


# The certificates of the server


def with_token(config: dict, tmp_path) -> dict:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    return {**config, "admin": {"tokenFile": str(token)}}


def chain_of(running: Gateway, there, query: str = "") -> dict:
    """What a server presented, as a flow with it has it."""
    def shown() -> dict:
        ask(running, there)
        found = flows(running, f"host={HOST}{query}", **BEARER)["flows"]
        return next((chain for one in found
                     if (chain := flow(running, one["id"], **BEARER).get("serverChain"))), {})
    return until(shown, "a chain")


def test_a_refused_server_shows_its_certificates_and_what_would_match(gateway, origin, pki, tmp_path):
    leaf = pki.intermediate.issue(HOST)
    there = serve(origin, leaf)
    running = gateway(with_token(configuration(pki), tmp_path))
    chain = chain_of(running, there)
    assert chain["verdict"] == "refused"
    assert chain["pinset"] == "wanted"
    assert "no pin matches" in chain["problem"] and chain["hasOtherPins"]
    assert chain["matches"] == []
    own, *others = chain["certificates"]
    assert (own["position"], own["pin"], own["names"]) == (1, leaf.pin, [HOST])
    assert own["notBefore"] < own["notAfter"]
    assert own["key"].startswith(("EC P-", "RSA "))
    assert not own["isAuthority"] and all(one["isAuthority"] for one in others)
    assert others[0]["pin"] == pki.intermediate.pin
    assert own["issuer"] == others[0]["subject"]
    (one, *_) = flows(running, f"host={HOST}", **BEARER)["flows"]
    assert flow(running, one["id"], **BEARER)["explanation"]["token"] == "tls-no-pin-matches"


@pytest.mark.parametrize("fault", ["name", "expiry"])
def test_a_server_that_is_refused_for_another_reason_has_no_other_pins(
        gateway, origin, pki, tmp_path, fault):
    """To pin its key would not help: it may be a stranger's."""
    expiry = {"expires": "2020-01-01T00:00:00Z", "afterExpiry": "refuse"} if fault == "expiry" else {}
    there = serve(origin, pki.intermediate.issue("other.test" if fault == "name" else HOST))
    chain = chain_of(gateway(with_token(configuration(pki, **expiry), tmp_path)), there)
    assert chain["verdict"] == "refused" and chain["problem"]
    assert chain["hasOtherPins"] is False


def test_a_server_that_passes_shows_which_pin_matched(gateway, origin, pki, tmp_path):
    there = serve(origin, pki.intermediate.issue(HOST))
    config = configuration(pki)
    config["pinsets"]["wanted"]["pins"][0] = pki.intermediate.pin
    running = gateway(with_token(config, tmp_path))
    chain = chain_of(running, there)
    assert chain["verdict"] == "trusted" and "problem" not in chain
    assert chain["matches"] == [{"pinset": "wanted", "pins": [pki.intermediate.pin]}]
    assert [one["matches"] for one in chain["certificates"]][:2] == [[], [pki.intermediate.pin]]
    # Also of a connection that was there before, and after the session has been resumed.
    reused = until(
        lambda: ask(running, there) and next(
            (one for one in flows(running, f"host={HOST}", **BEARER)["flows"] if one.get("reused")), {}),
        "a connection that is used again")
    assert flow(running, reused["id"], **BEARER)["serverChain"] == chain


def test_a_server_that_is_only_reported_says_why(gateway, origin, pki, tmp_path):
    there = serve(origin, pki.intermediate.issue(HOST))
    running = gateway(with_token(configuration(pki, enforce=False), tmp_path))
    chain = chain_of(running, there)
    assert chain["verdict"] == "reported"
    assert chain["pinset"] == "wanted" and "no pin matches" in chain["problem"]


def test_another_certificate_is_shown_to_whom_it_was_presented(gateway, origin, pki, tmp_path):
    first, second = pki.intermediate.issue(HOST), pki.intermediate.issue(HOST)
    config = configuration(pki)
    del config["hosts"][0]["pinsets"], config["pinsets"]
    there = serve(origin, first, Connection="close")
    running = gateway(with_token(config, tmp_path))
    assert chain_of(running, there)["certificates"][0]["pin"] == first.pin
    held_before = flows(running, f"host={HOST}", **BEARER)["flows"][0]
    there.tls = second.server_context()
    until(lambda: chain_of(running, there)["certificates"][0]["pin"] == second.pin,
          "the new certificate")
    shown = flow(running, held_before["id"], **BEARER)["serverChain"]
    assert shown["certificates"][0]["pin"] == first.pin


def test_a_chain_is_shown_only_where_it_was_judged(gateway, origin, pki, tmp_path):
    """The same server has one by another connection, which says nothing about these exchanges."""
    leaf = pki.intermediate.issue(HOST)
    there = serve(origin, leaf, Connection="close")
    config = configuration(pki)
    del config["hosts"][0]["pinsets"], config["pinsets"]
    config["hosts"][0]["tunnel"] = "pass"
    running = gateway(with_token(config, tmp_path))
    assert chain_of(running, there)["verdict"] == "trusted"

    def shown(query: str) -> dict:
        (one, *_) = until(lambda: flows(running, query, **BEARER)["flows"], query)
        return flow(running, one["id"], **BEARER)

    # Nobody has verified anything.
    tunnel, answer = running.connect(f"{HOST}:{there.port}")
    tunnel.close()
    assert answer.status == 200
    assert "serverChain" not in shown("method=CONNECT")
    # The handshake ends before a certificate is sent.
    context = leaf.server_context(maximum=ssl.TLSVersion.TLSv1_2)
    context.set_ciphers("DHE-RSA-AES256-GCM-SHA384")
    there.tls = context
    assert ask(running, there).status == 502
    assert "serverChain" not in shown("reason=tls-alert-received")
    # Nobody listens any more.
    there.close()
    with refusing_port(there.port):
        assert ask(running, there).status == 502
        assert "serverChain" not in shown("reason=connection-refused")
    assert any("serverChain" in flow(running, one["id"], **BEARER)
               for one in flows(running, f"host={HOST}", **BEARER)["flows"]), "it is still known"


def test_certificates_are_not_shown_without_the_token(gateway, origin, pki):
    there = serve(origin, pki.intermediate.issue(HOST))
    running = gateway(configuration(pki))
    ask(running, there)
    (one,) = held(running, 1)
    assert "serverChain" not in flow(running, one["id"])
