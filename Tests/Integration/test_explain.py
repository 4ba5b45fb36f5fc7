"""`pinfold explain`: what it says becomes of a request is what becomes of it."""

from __future__ import annotations

import pytest
import yaml
from support.gateway import run_pinfold
from support.origin import reply
from support.wire import request

HOST = "localhost"
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


CASES = {
    "nothing said": ({}, "clear text", "relayed unread"),
    "pinned": ({"pinsets": ["wanted"], "upgrade": "none"}, "403 clear-text-refused",
               "403 tunnel-refused"),
    "upgraded": ({"pinsets": ["wanted"], "upgrade": "https"}, "upgraded", "403 tunnel-refused"),
    "passed": ({"pinsets": ["wanted"], "upgrade": "https", "tunnel": "pass"}, "upgraded",
               "relayed unread"),
    "clear text refused": ({"clearText": "refuse", "tunnel": "refuse"}, "403 clear-text-refused",
                           "403 tunnel-refused"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_said_of_a_request_is_what_the_gateway_does(gateway, origin, pki, tmp_path, case):
    entry, clear, tunnel = CASES[case]
    context = pki.intermediate.issue(HOST).server_context() if clear == "upgraded" else None
    there = origin(lambda _: reply(b"answer"), tls=context)
    config = configuration(pki, entry)
    running = gateway(config)
    url = f"http://{HOST}:{there.port}/"
    _, said = explained(tmp_path, config, url)
    assert clear in said["a request with the whole URL"]
    answer = running.ask(request(url, Connection="close", Accept="application/json"))
    if "refused: " in said["a request with the whole URL"]:
        problem = answer.json()
        assert said["a request with the whole URL"] == (
            f"refused: {answer.status} {problem['reason']}: {problem['message']}")
    else:
        assert answer.status == (502 if clear == "upgraded" else 200)
    _, said = explained(tmp_path, config, f"https://{HOST}:{there.port}/")
    name = f"CONNECT {HOST}:{there.port}"
    assert tunnel in said[name]
    if "refused: " not in said[name]:
        wire, answer = running.connect(f"{HOST}:{there.port}")
        with wire:
            assert answer.status == 200
        return
    answer = running.ask(
        f"CONNECT {HOST}:{there.port} HTTP/1.1\r\nHost: {HOST}\r\n"
        "Accept: application/json\r\nConnection: close\r\n\r\n")
    assert said[name] == f"refused: 403 {answer.json()['reason']}: {answer.json()['message']}"


def test_the_entry_its_pinsets_and_the_cache_are_named(pki, tmp_path):
    config = configuration(pki, {"name": "api", "upgrade": "https", "pinsets": ["wanted"],
                                 "cache": {"store": False}})
    config["pinsets"]["wanted"] |= {"expires": "2999-01-01", "enforce": False}
    code, said = explained(tmp_path, config, f"http://{HOST}/path?query")
    assert code == 0
    assert said["entry"] == "hosts[0] (api), by the pattern localhost"
    assert said["pinset"] == (
        "wanted (mode publicKey, 2 pins, only reports, expires 2999-01-01T00:00:00Z)")
    assert said["a request with the whole URL"] == "upgraded: sent as verified TLS to port 443"
    assert said["cache"] == "does not take part: the entry says cache.store: false"
    code, said = explained(tmp_path, config, "http://elsewhere.test/")
    assert said["entry"] == "none applies (default)"
    assert said["pinsets"] == "none"
    assert said["cache"].startswith("takes part")


@pytest.mark.parametrize(("client", "served"), [("127.0.0.9", True), ("192.0.2.1", False)])
def test_the_client_is_judged(pki, tmp_path, client, served):
    code, said = explained(
        tmp_path, configuration(pki), "http://a.test/", "--client", client)
    assert code == (0 if served else 1)
    assert ("served" in said["client"]) == served
    assert ("403 client-not-allowed" in said["client"]) != served


def test_intercepted_hosts_are_told(pki, tmp_path):
    config = configuration(
        pki, {"pinsets": ["wanted"], "upgrade": "https"}, interception=pki.interception.section)
    _, said = explained(tmp_path, config, f"https://{HOST}/")
    assert said[f"CONNECT {HOST}:443"].startswith("intercepted: ")
    config["hosts"][0] |= {"intercept": True, "tunnel": "pass"}
    done = run_pinfold("explain", f"https://{HOST}/", "--config",
                       str(tmp_path / "explained.yaml"))
    assert "CONNECT localhost:443: intercepted: " in done.stdout
    _, said = explained(tmp_path, config, f"https://{HOST}/")
    assert "relayed unread" in said[f"CONNECT {HOST}:443"]
    config["hosts"][0] |= {"tunnel": "inspect", "tls13Tunnel": "probe"}
    _, said = explained(tmp_path, config, f"https://{HOST}/")
    assert said[f"CONNECT {HOST}:443"] == (
        "intercepted; clients that keep rejecting are inspected; TLS 1.3 there: another connection "
        "to the same address is judged")


def test_inspected_hosts_are_told(pki, tmp_path):
    config = configuration(pki, {"pinsets": ["wanted"], "tunnel": "inspect"})
    _, said = explained(tmp_path, config, f"https://{HOST}/")
    assert said[f"CONNECT {HOST}:443"] == (
        "inspected: relayed unread once the server has been judged; TLS 1.3: refused")


@pytest.mark.parametrize("url", ["http://169.254.169.254/", "https://10.0.0.1/"])
def test_a_destination_that_is_refused_is_told_in_the_words_of_the_reply(gateway, tmp_path, url):
    config: dict = {}
    code, said = explained(tmp_path, config or {"workers": 1}, url)
    assert code == 1
    answer = gateway(config).ask(
        request(url, Connection="close", Accept="application/json")).json()
    assert answer["message"] in said["destination"]
    assert f"403 {answer['reason']}: {answer['message']}" in said["a request with the whole URL"]


@pytest.mark.parametrize("kind", ["right", "wrong pin", "reported", "untrusted"])
def test_the_live_server_is_judged_as_by_the_gateway(gateway, origin, pki, tmp_path, kind):
    leaf = pki.self_signed(HOST) if kind == "untrusted" else pki.intermediate.issue(HOST)
    there = origin(lambda _: reply(b"answer"), tls=leaf.server_context())
    config = configuration(pki, {"pinsets": ["wanted"], "upgrade": "https"})
    if kind == "right":
        config["pinsets"]["wanted"]["pins"] = [leaf.pin, *WRONG]
    if kind == "reported":
        config["pinsets"]["wanted"]["enforce"] = False
    url = f"http://{HOST}:{there.port}/"
    code, said = explained(tmp_path, config, url, "--connect")
    answer = gateway(config).ask(request(url, Connection="close", Accept="application/json"))
    if kind in ("right", "reported"):
        assert code == 0
        assert said["server"].startswith("trusted (TLS 1.")
        assert answer.status == 200
        assert ("reported only" in said) == (kind == "reported")
    else:
        assert code == 1
        problem = answer.json()
        assert said["server"] == (
            f"refused: {answer.status} {problem['reason']}: {problem['message']}")


@pytest.mark.parametrize(("arguments", "word"), [
    (["localhost"], "no URL"), (["ftp://a/"], "no URL"), (["http://a b/"], "no URL"),
    (["http://a.test/", "--client", "here"], "no address")])
def test_wrong_arguments_are_told(arguments, word):
    done = run_pinfold("explain", *arguments)
    assert done.returncode == 1
    assert word in done.stderr and "expected" in done.stderr
