"""`pinfold explain`: what it shows for a request is what the gateway does. Every kind of
configuration with every kind of request is in test_explain_table.py."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from support.checkout import PAGES
from support.gateway import run_pinfold
from support.origin import reply
from support.wire import request

HOST = "localhost"
# An address that no rule is about.
PUBLIC = ("--address", "192.0.32.1")
WRONG = ["sha256/" + letter * 42 + "A=" for letter in "AB"]


def explained(folder, config: dict, *arguments: str) -> tuple[int, dict[str, str]]:
    """The exit code, and the lines by what stands before their first colon."""
    file = folder / "explained.yaml"
    file.write_text(yaml.safe_dump(config))
    done = run_pinfold("explain", *arguments, "--config", str(file))
    assert done.stderr == "", done.stderr
    lines = [line.partition(": ") for line in done.stdout.splitlines()[1:]]
    return done.returncode, {name: text for name, _, text in lines}


def configuration(pki, entry: dict | None = None, **top) -> dict:
    config: dict = {"access": {"connectPorts": "any",
                               "destinations": {"allow": ["127.0.0.0/8", "::1"]}}}
    if entry is not None:
        config["hosts"] = [{"match": [HOST], "tls": {"roots": [str(pki.root.pem_file)]}, **entry}]
    if entry and "pinsets" in entry:
        config["pinsets"] = {"wanted": {"mode": "publicKey", "pins": WRONG}}
    return config | top


def explain_json(folder, *arguments: str) -> tuple[int, dict]:
    """The exit code and the JSON for the configuration that was explained last."""
    done = run_pinfold(
        "explain", *arguments, "--json", "--config", str(folder / "explained.yaml"))
    assert done.stderr == "" and done.stdout.count("\n") == 1
    return done.returncode, json.loads(done.stdout)


def sentence(refusal: dict) -> str:
    """A refusal of the JSON as the text has it."""
    return f"refused: {refusal['status']} {refusal['reason']}: {refusal['detail']}"


CASES = {
    "no settings": ({}, "clear text", "relayed unread"),
    "pinned": ({"pinsets": ["wanted"], "upgrade": "none"}, "403 clear-text-refused",
               "403 tunnel-refused"),
    "upgraded": ({"pinsets": ["wanted"], "upgrade": "https"}, "upgraded", "403 tunnel-refused"),
    "passed": ({"pinsets": ["wanted"], "upgrade": "https", "tunnel": "pass"}, "upgraded",
               "relayed unread"),
    "clear text refused": ({"clearText": "refuse", "tunnel": "refuse"}, "403 clear-text-refused",
                           "403 tunnel-refused"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_explanation_of_a_request_is_what_the_gateway_does(gateway, origin, pki, tmp_path, case):
    entry, clear, tunnel = CASES[case]
    context = pki.intermediate.issue(HOST).server_context() if clear == "upgraded" else None
    there = origin(lambda _: reply(b"answer"), tls=context)
    config = configuration(pki, entry)
    running = gateway(config)
    url = f"http://{HOST}:{there.port}/"
    _, shown = explained(tmp_path, config, url)
    assert clear in shown["a request with the full URL"]
    answer = running.ask(request(url, Connection="close", Accept="application/json"))
    if "refused: " in shown["a request with the full URL"]:
        problem = answer.json()
        assert shown["a request with the full URL"] == (
            f"refused: {answer.status} {problem['reason']}: {problem['message']}")
    else:
        assert answer.status == (502 if clear == "upgraded" else 200)
    _, shown = explained(tmp_path, config, f"https://{HOST}:{there.port}/")
    name = f"CONNECT {HOST}:{there.port}"
    assert tunnel in shown[name]
    if "refused: " not in shown[name]:
        wire, answer = running.connect(f"{HOST}:{there.port}")
        with wire:
            assert answer.status == 200
        return
    answer = running.ask(
        f"CONNECT {HOST}:{there.port} HTTP/1.1\r\nHost: {HOST}\r\n"
        "Accept: application/json\r\nConnection: close\r\n\r\n")
    assert shown[name] == f"refused: 403 {answer.json()['reason']}: {answer.json()['message']}"


def test_the_entry_its_pinsets_and_the_cache_are_named(pki, tmp_path):
    config = configuration(pki, {"name": "api", "upgrade": "https", "pinsets": ["wanted"],
                                 "cache": {"store": False}})
    config["pinsets"]["wanted"] |= {"expires": "2999-01-01", "enforce": False}
    code, shown = explained(tmp_path, config, f"http://{HOST}/path?query")
    assert code == 0
    assert shown["entry"] == "hosts[0] (api), by the pattern localhost"
    assert shown["pinset"] == (
        "wanted (mode publicKey, 2 pins, report only, expires 2999-01-01T00:00:00Z)")
    assert shown["a request with the full URL"] == "upgraded: sent as verified TLS to port 443"
    assert shown["cache"] == "not used: the entry has cache.store: false"
    code, shown = explained(tmp_path, config, "http://elsewhere.test/", *PUBLIC)
    assert shown["entry"] == "none applies (default)"
    assert shown["pinsets"] == "none"
    assert shown["cache"].startswith("used: ")


def test_what_is_refused_does_not_use_the_cache(pki, tmp_path):
    refused = configuration(pki, {"pinsets": ["wanted"], "upgrade": "none"})
    code, shown = explained(tmp_path, refused, f"http://{HOST}/")
    assert (code, shown["cache"]) == (1, "not used: no request gets as far as the cache")
    # With https:// the same host is asked for its responses, and they are stored.
    code, shown = explained(tmp_path, refused, f"https://{HOST}/")
    assert code == 0 and shown["cache"].startswith("used: ")
    code, shown = explained(
        tmp_path, configuration(pki), "http://a.test/", "--client", "192.0.2.1", *PUBLIC)
    assert (code, shown["cache"]) == (1, "not used: the client is refused")
    # The name is resolved only once no stored response can be used.
    code, shown = explained(tmp_path, configuration(pki), "http://no-such-name.invalid/")
    assert code == 1 and "502 dns-nxdomain" in shown["a request with the full URL"]
    assert shown["cache"] == "used: stored responses may be served, although no connection is made"


def test_one_pin_is_not_counted_in_the_plural(pki, tmp_path):
    config = configuration(pki, {"pinsets": ["wanted"], "upgrade": "https"})
    config["pinsets"]["wanted"]["pins"] = WRONG[:1]
    _, shown = explained(tmp_path, config, f"http://{HOST}/")
    assert shown["pinset"] == "wanted (mode publicKey, 1 pin, enforced)"


@pytest.mark.parametrize(("client", "served"), [("127.0.0.9", True), ("192.0.2.1", False)])
def test_the_client_is_checked(pki, tmp_path, client, served):
    code, shown = explained(
        tmp_path, configuration(pki), "http://a.test/", "--client", client, *PUBLIC)
    assert code == (0 if served else 1)
    assert ("served" in shown["client"]) == served
    assert ("403 client-not-allowed" in shown["client"]) != served


def test_intercepted_hosts_are_shown(pki, tmp_path):
    config = configuration(
        pki, {"pinsets": ["wanted"], "upgrade": "https"}, interception=pki.interception.section)
    _, shown = explained(tmp_path, config, f"https://{HOST}/")
    assert shown[f"CONNECT {HOST}:443"].startswith("intercepted: ")
    config["hosts"][0] |= {"intercept": True, "tunnel": "pass"}
    done = run_pinfold("explain", f"https://{HOST}/", "--config",
                       str(tmp_path / "explained.yaml"))
    assert "CONNECT localhost:443: intercepted: " in done.stdout
    _, shown = explained(tmp_path, config, f"https://{HOST}/")
    assert "relayed unread" in shown[f"CONNECT {HOST}:443"]
    config["hosts"][0] |= {"tunnel": "inspect", "tls13Tunnel": "probe"}
    _, shown = explained(tmp_path, config, f"https://{HOST}/")
    assert shown[f"CONNECT {HOST}:443"] == (
        "intercepted; inspected if the client keeps rejecting certificates; TLS 1.3 there: another "
        "connection to the same address is verified")


def test_inspected_hosts_are_shown(pki, tmp_path):
    config = configuration(pki, {"pinsets": ["wanted"], "tunnel": "inspect"})
    _, shown = explained(tmp_path, config, f"https://{HOST}/")
    assert shown[f"CONNECT {HOST}:443"] == (
        "inspected: relayed unread once the server is verified; TLS 1.3: refused")


@pytest.mark.parametrize("url", ["http://169.254.169.254/", "https://10.0.0.1/"])
def test_a_refused_destination_is_explained_in_the_words_of_the_reply(gateway, tmp_path, url):
    config: dict = {}
    code, shown = explained(tmp_path, config or {"workers": 1}, url)
    assert code == 1
    answer = gateway(config).ask(
        request(url, Connection="close", Accept="application/json")).json()
    assert answer["message"] in shown["destination"]
    assert f"403 {answer['reason']}: {answer['message']}" in shown["a request with the full URL"]


@pytest.mark.parametrize("kind", ["right", "wrong pin", "reported", "untrusted"])
def test_the_live_server_is_verified_as_by_the_gateway(gateway, origin, pki, tmp_path, kind):
    leaf = pki.self_signed(HOST) if kind == "untrusted" else pki.intermediate.issue(HOST)
    there = origin(lambda _: reply(b"answer"), tls=leaf.server_context())
    config = configuration(pki, {"pinsets": ["wanted"], "upgrade": "https"})
    if kind == "right":
        config["pinsets"]["wanted"]["pins"] = [leaf.pin, *WRONG]
    if kind == "reported":
        config["pinsets"]["wanted"]["enforce"] = False
    url = f"http://{HOST}:{there.port}/"
    code, shown = explained(tmp_path, config, url, "--connect")
    answer = gateway(config).ask(request(url, Connection="close", Accept="application/json"))
    if kind in ("right", "reported"):
        assert code == 0
        assert shown["server"].startswith("trusted (TLS 1.")
        assert answer.status == 200
        assert ("reported only" in shown) == (kind == "reported")
    else:
        assert code == 1
        problem = answer.json()
        assert shown["server"] == (
            f"refused: {answer.status} {problem['reason']}: {problem['message']}")


@pytest.mark.parametrize(("arguments", "word"), [
    (["localhost"], "does not serve"), (["ftp://a/"], "does not serve"),
    (["http://a b/"], "does not serve"),
    (["http://a.test/", "--client", "here"], "is not an IP address"),
    (["http://a.test/", "--address", "a"], "is not an IP address"),
    (["http://127.1/"], "does not serve"), (["http://me@a.test/"], "does not serve"),
    (["http://a.test/", "--config", "/nowhere/pinfold.yaml"], "cannot be read")])
def test_wrong_arguments_are_errors(arguments, word):
    done = run_pinfold("explain", *arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert word in done.stderr and "expected" in done.stderr


TYPES = {"url": str, "verdict": str, "client": dict, "entry": dict, "label": str, "pinsets": list,
         "certificateTransparency": dict, "http2": str, "destination": dict, "addresses": list,
         "ways": list, "cache": dict, "server": dict}


def test_the_members_are_those_that_the_page_lists(tmp_path):
    explained(tmp_path, configuration(None), "http://a.test/", *PUBLIC)
    _, found = explain_json(tmp_path, "http://a.test/", *PUBLIC)
    table = PAGES["Troubleshooting"].read_text().partition("`--json` prints the same")[2]
    rows = re.findall(r"^\| (`.*?) \| ", table.partition("\n\n##")[0], re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert listed == list(found) == list(TYPES)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_json_and_text_agree(pki, tmp_path, case, scheme):
    entry, _, _ = CASES[case]
    config = configuration(pki, {**entry, "name": "api"} if entry else None)
    url = f"{scheme}://{HOST}:8443/"
    code, shown = explained(tmp_path, config, url, "--client", "127.0.0.1")
    same, found = explain_json(tmp_path, url, "--client", "127.0.0.1")
    assert same == code == (found["verdict"] == "refused")
    assert all(value is None or isinstance(value, TYPES[name]) for name, value in found.items())
    assert found["url"] == url
    assert found["client"] == {"address": "127.0.0.1", "served": True, "status": None,
                               "reason": None, "detail": None}
    assert found["entry"] == ({"index": 0, "pattern": HOST} if entry else None)
    assert found["label"] == ("api" if entry else "default")
    assert [one["name"] for one in found["pinsets"]] == entry.get("pinsets", [])
    for one in found["pinsets"]:
        assert one == {"name": "wanted", "mode": "publicKey", "pins": 2, "state": "enforced",
                       "expires": None}
    assert found["destination"] == {
        "verdict": "by-address", "address": None, "detail": shown["destination"]}
    assert found["addresses"] == [
        {"address": address, "allowed": True, "status": None, "reason": None, "detail": None}
        for address in ("::1", "127.0.0.1")]
    ways = {"connect": f"CONNECT {HOST}:8443", "absolute": "a request with the full URL"}
    assert [one["asking"] for one in found["ways"]] == (
        ["connect", "absolute"] if scheme == "https" else ["absolute"])
    for one in found["ways"]:
        text = shown[ways[one["asking"]]]
        assert text == (sentence(one) if one["way"] == "refused" else one["detail"])
        assert one["port"] == (8443 if one["way"] == "upgrade" else None)
        assert one["listener"] is None
    assert shown["cache"].endswith(": " + found["cache"]["detail"])
    # A request that is refused, or that a tunnel carries, does not reach the cache.
    assert found["cache"]["takesPart"] is any(
        one["way"] in ("verified", "upgrade", "clear-text") for one in found["ways"])
    assert found["server"] is None


def test_json_of_refused_clients_expired_pinsets_and_addresses(pki, tmp_path):
    config = configuration(pki, {"pinsets": ["wanted"], "upgrade": "https", "tunnel": "inspect",
                                 "tls13Tunnel": "probe", "cache": {"store": False}})
    config["pinsets"]["wanted"]["expires"] = "2020-01-01"
    config["hosts"][0]["match"] = ["10.0.0.1"]
    code, shown = explained(tmp_path, config, "https://10.0.0.1/", "--client", "192.0.2.7")
    same, found = explain_json(tmp_path, "https://10.0.0.1/", "--client", "192.0.2.7")
    assert code == same == 1 and found["verdict"] == "refused"
    assert found["client"]["served"] is False
    assert shown["client"] == f"192.0.2.7 is {sentence(found['client'])}"
    assert found["pinsets"][0]["state"] == "expired"
    assert found["pinsets"][0]["expires"] == "2020-01-01T00:00:00Z"
    assert found["destination"]["verdict"] == "refused"
    assert found["destination"]["address"] == "10.0.0.1"
    assert found["cache"]["takesPart"] is False


def test_what_is_not_asked_says_why(pki, tmp_path):
    parents = {"corp": {"url": "http://127.0.0.1:1"}}
    to_corp = "not checked: requests are sent to the parent proxy corp in clear text"
    for ways, wanted in (
            (["corp"], to_corp),
            (["corp", "direct"], f"{to_corp}, and to the server itself only if that cannot be used")):
        config = configuration(pki, {"parents": ways}, parents=parents)
        _, shown = explained(tmp_path, config, f"http://{HOST}:1/", "--connect")
        assert shown["server"] == wanted
        _, found = explain_json(tmp_path, f"http://{HOST}:1/", "--connect")
        assert found["server"]["verdict"] == "not-asked"
    config = {"listeners": [{"name": "app", "address": "127.0.0.1:0", "kind": "reverse",
                             "upstream": "unix:/run/app.sock"}]}
    _, shown = explained(tmp_path, config, "unix:/run/app.sock", "--connect")
    assert shown["server"] == "not checked: this command does not connect to Unix sockets"


@pytest.mark.parametrize("kind", ["trusted", "refused", "unreachable", "reached"])
def test_json_of_a_live_server(origin, pki, tmp_path, kind):
    leaf = pki.self_signed(HOST) if kind == "refused" else pki.intermediate.issue(HOST)
    there = origin(lambda _: reply(b"answer"), tls=leaf.server_context())
    config = configuration(pki, {"pinsets": ["wanted"], "upgrade": "https"})
    config["pinsets"]["wanted"]["enforce"] = False
    if kind == "reached":
        config["hosts"][0] |= {"upgrade": "none", "clearText": "allow"}
    url = f"http://{HOST}:{1 if kind == 'unreachable' else there.port}/"
    code, shown = explained(tmp_path, config, url, "--connect")
    same, found = explain_json(tmp_path, url, "--connect")
    server = found["server"]
    assert same == code == (1 if kind in ("refused", "unreachable") else 0)
    assert server["verdict"] == kind
    times = {name: value for name, value in server.items() if name.endswith("_us")}
    port = url.rstrip("/").rpartition(":")[2]
    assert server["tried"] in (f"127.0.0.1:{port}", f"[::1]:{port}")
    # The name is in the hosts file, or an address: how it was resolved does not matter here.
    assert set(times) - {"dns_us"} == {"connect_us"} | (
        {"tls_us"} if kind in ("trusted", "refused") else set())
    assert shown["time"].count(" ms") == len(times)
    if kind == "unreachable":
        assert shown["tried"] == server["tried"]
    if kind == "reached":
        assert shown["server"] == "reachable; it is not verified"
        assert server["address"]["address"] == shown["connected to"]
    if kind == "trusted":
        assert shown["server"] == f"trusted (TLS {server['version']})"
        assert server["address"]["verdict"] == "allowed"
        assert shown["connected to"] == server["address"]["address"]
        assert [(one["pinset"], one["reason"]) for one in server["reported"]] == [
            ("wanted", "tls-no-pin-matches")]
        assert shown["reported only"] == server["reported"][0]["detail"]
    elif kind == "refused":
        assert shown["server"] == sentence(server)
        assert server["reason"] == "tls-self-signed"
    elif kind == "unreachable":
        assert shown["server"] == server["detail"] and server["address"] is None
