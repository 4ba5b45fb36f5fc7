"""`pinfold replay`: the requests of a gateway's own access log, judged under configurations."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
import yaml
from support.credentials import basic, bcrypt, write
from support.gateway import BINARY, Gateway, merged, run_pinfold
from support.observed import key_pin, observed_certificate, observed_host, write_record
from support.origin import reply
from support.wire import Wire, request

COUNT = 400
EMPTY_PIN = "sha256/" + "A" * 43 + "="


class Traffic:
    """Requests of many kinds, each with the reason for which it is refused, if it is."""

    def __init__(self, clear: int, secure: int):
        at, tls = f":{clear}", f":{secure}"
        get = self.get
        self.kinds: dict[str, tuple[str, bytes, str | None]] = {
            "plain": ("proxy", get(f"http://plain.test{at}/a?x=1"), None),
            "path": ("proxy", get(f"http://plain.test{at}/admin/x"), "denied-by-rule"),
            "method": ("proxy", get(f"http://plain.test{at}/a", "DELETE"), "denied-by-rule"),
            "ambiguous": ("proxy", get(f"http://plain.test{at}/x/..;/admin/x"), "ambiguous-path"),
            "list": ("proxy", get(f"http://ads.example.test{at}/"), "denied-by-rule"),
            "wildcard": ("proxy", get(f"http://api.example.test{at}/"), None),
            "unknown": ("proxy", get(f"http://unknown.invalid{at}/"), "host-not-listed"),
            "denied": ("proxy", get(f"http://denied.example.test{at}/"), "destination-refused"),
            "private": ("proxy", get(f"http://private.test{at}/"), "destination-refused"),
            "report": ("proxy", get(f"http://report.test{tls}/"), None),
            "strict": ("proxy", get(f"http://strict.test{tls}/"), "tls-no-pin-matches"),
            "right": ("proxy", get(f"http://right.test{tls}/"), None),
            "clear": ("proxy", get(f"http://closed.test{at}/"), "clear-text-refused"),
            "path alone": ("proxy", get("/", host="plain.test"), "not-a-proxy-request"),
            "tunnel": ("proxy", self.connect(f"plain.test{tls}"), None),
            "pinned tunnel": ("proxy", self.connect(f"right.test{tls}"), "tunnel-refused"),
            "unknown tunnel": ("proxy", self.connect(f"unknown.invalid{tls}"), "host-not-listed"),
            "nobody": ("staff", get(f"http://plain.test{at}/"), "authentication-required"),
            "ann": ("staff", get(f"http://plain.test{at}/", who=basic("ann", "one")), None),
            "bea": ("staff", get(f"http://plain.test{at}/", who=basic("bea", "two")),
                    "denied-by-rule"),
            "wrong": ("staff", get(f"http://plain.test{at}/", who=basic("ann", "three")),
                      "credentials-wrong"),
            "reverse": ("back", get("/page", host="site.test"), None),
            "reverse path": ("back", get("/admin/x", host="site.test"), "denied-by-rule"),
        }

    @staticmethod
    def get(target: str, method: str = "GET", host: str | None = None, who: str | None = None):
        fields = {"Proxy_Authorization": who} if who else {}
        return request(target, host, method, Connection="close", **fields)

    @staticmethod
    def connect(authority: str) -> bytes:
        return f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode()

    def send(self, running: Gateway, count: int) -> Counter[str]:
        """Sends `count` requests, at least one of each kind; how many there were of each."""
        names = list(self.kinds)
        # Once only: who guesses passwords is answered more and more slowly.
        often = [name for name in names if name != "wrong"]
        chosen = names + random.Random(7).choices(often, k=count - len(names))
        for name in chosen:
            listener, data, _ = self.kinds[name]
            with Wire(running.listeners[listener]) as wire:
                wire.send(data)
                wire.read_head()
        return Counter(chosen)


@pytest.fixture
def traffic(origin, pki, dns) -> Traffic:
    dns.set("private.test", "10.255.255.1")
    leaf = pki.intermediate.issue("report.test", "strict.test", "right.test", "plain.test")
    return Traffic(origin(lambda _: reply(b"answer")).port,
                   origin(lambda _: reply(b"answer"), tls=leaf.server_context()).port)


@pytest.fixture
def config(workspace, pki, traffic) -> dict:
    write(workspace / "users", f"ann:{bcrypt('one')}", f"bea:{bcrypt('two')}")
    write(workspace / "ads", "ads.example.test")
    clear = traffic.kinds["plain"][1].split(b"plain.test:")[1].split(b"/")[0].decode()
    pinned = {"upgrade": "https"}
    return {
        "listeners": [
            {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
            {"name": "staff", "address": "127.0.0.1:0", "kind": "forward",
             "authentication": ["basic"]},
            {"name": "back", "address": "127.0.0.1:0", "kind": "reverse",
             "upstream": f"http://plain.test:{clear}"}],
        "authentication": {"users": str(workspace / "users")},
        "access": {
            "hosts": "listed",
            "destinations": {"deny": ["denied.example.test"]},
            "lists": {"ads": {"files": [str(workspace / "ads")]}},
            "rules": [
                {"name": "seen", "hosts": ["api.example.test"], "action": "report"},
                {"name": "no-ads", "lists": ["ads"], "action": "deny"},
                {"name": "no-admin", "paths": ["/admin/**"], "action": "deny"},
                {"name": "ann", "users": ["ann"], "action": "allow"},
                {"name": "nobody-else", "listeners": ["staff"], "action": "deny"},
                {"name": "no-delete", "methods": ["DELETE"], "action": "deny"}]},
        "tls": {"roots": [str(pki.root.pem_file)]},
        "pinsets": {
            "loose": {"mode": "publicKey", "enforce": False, "pins": [EMPTY_PIN]},
            "wrong": {"mode": "publicKey", "pins": [EMPTY_PIN]},
            "right": {"mode": "publicKey", "pins": [pki.intermediate.pin]}},
        "hosts": [
            {"match": ["plain.test", "private.test"]},
            {"match": ["report.test"], "pinsets": ["loose"], **pinned},
            {"match": ["strict.test"], "pinsets": ["wrong"], **pinned},
            {"match": ["right.test"], "pinsets": ["right"], **pinned},
            {"match": ["closed.test"], "clearText": "refuse"},
            {"match": ["*.example.test"], "name": "examples"}]}


def replay(running: Gateway, *options: str | Path, code: int = 0) -> dict:
    done = run_pinfold(
        "replay", "--log", str(running.access_file), "--format", "json",
        *(str(option) for option in options), cwd=running.folder)
    assert done.returncode == code, (done.stdout, done.stderr)
    return json.loads(done.stdout)


def changed(running: Gateway, name: str, change) -> Path:
    """The gateway's configuration with a change, beside it."""
    config = yaml.safe_load(running.config_file.read_text())
    change(config)
    file = running.folder / name
    file.write_text(yaml.safe_dump(config, sort_keys=False))
    return file


def kinds(report: dict) -> dict[tuple[str, str, str], int]:
    return {(one["kind"], one["before"], one["after"]): one["count"] for one in report["changes"]}


def test_a_gateways_log_is_what_its_configuration_says(gateway, config, traffic, pki):
    running = gateway(config)
    sent = traffic.send(running, COUNT)
    lines = running.wait_access(COUNT)
    logged = Counter(line.get("reason") for line in lines)
    expected: Counter[str | None] = Counter()
    for name, count in sent.items():
        expected[traffic.kinds[name][2]] += count
    assert logged == expected

    # Every line of which the configuration decides, and with servers' keys those of pins, too.
    own = replay(running, "--config", running.config_file)
    assert (own["lines"], own["judged"], own["changed"]) == (COUNT, COUNT - sent["wrong"], 0)
    assert own["notJudged"] == {
        "unreadable": 0, "lacking": {},
        "undecided": {"the credentials, which are not in the log: credentials-wrong": sent["wrong"]}}
    observed = running.folder / "observed.json"
    keys = [{"spki": [pki.intermediate.spki_sha256]}]
    observed.write_text(json.dumps(
        {host: keys for host in ("report.test", "strict.test", "right.test")}))
    with_keys = replay(running, "--config", running.config_file, "--observed", observed)
    assert (with_keys["changed"], with_keys["withoutKeys"], with_keys["observedHosts"]) == (0, 0, 3)

    # Other configurations: exactly the requests that they are about.
    def other(config: dict) -> None:
        rules = config["access"]["rules"]
        rules[:] = [rule for rule in rules if rule["name"] not in ("no-ads", "nobody-else")]
        rules.append({"name": "no-examples", "hosts": ["api.example.test"], "action": "deny"})
        config["access"]["destinations"]["deny"] = []
        config["access"]["destinations"]["allow"].append("10.0.0.0/8")
        config["pinsets"]["wrong"]["pins"] = [pki.intermediate.pin]
        config["pinsets"]["loose"]["enforce"] = True
        config["hosts"][3]["tunnel"] = "inspect"
        config["hosts"][0]["name"] = "plain"

    new = changed(running, "new.yaml", other)
    wanted = {
        ("refused", "passed", "denied-by-rule by no-examples"): sent["wildcard"],
        ("refused", "passed", "tls-no-pin-matches by loose"): sent["report"],
        ("allowed", "denied-by-rule by no-ads", "passed"): sent["list"],
        ("allowed", "denied-by-rule by nobody-else", "passed"): sent["bea"],
        ("allowed", "destination-refused", "passed"): sent["private"] + sent["denied"],
        ("allowed", "tunnel-refused", "passed"): sent["pinned tunnel"],
        ("entry", "plain.test", "plain"):
            sum(sent[name] for name in ("plain", "tunnel", "ann", "reverse")),
    }
    from_log = replay(running, "--config", new, "--observed", observed, code=1)
    assert kinds(from_log) == {
        **wanted, ("allowed", "tls-no-pin-matches", "passed"): sent["strict"]}
    between = replay(
        running, "--config", new, "--against", running.config_file, "--observed", observed, code=1)
    assert kinds(between) == {
        **wanted, ("allowed", "tls-no-pin-matches by wrong", "passed"): sent["strict"]}
    assert between["changed"] == sum(wanted.values()) + sent["strict"]
    assert between["users"] == {"ann": sent["ann"], "bea": sent["bea"]}
    assert list(between["clients"]) == ["127.0.0.1/32"]
    assert all(len(one["examples"]) == min(3, one["count"]) for one in between["changes"])


def test_a_combined_log_is_replayed_compressed_and_from_standard_input(gateway, config, traffic):
    # Without the listeners' names, one of each kind can be told.
    config["listeners"] = [config["listeners"][0], config["listeners"][2]]
    del config["access"]["rules"][4]
    del config["access"]["rules"][3]
    for name in ("nobody", "ann", "bea", "wrong", "path alone"):
        del traffic.kinds[name]
    running = gateway(merged(config, {
        "authentication": {}, "log": {"access": {"path": "access.log", "format": "combined"}}}))
    sent = traffic.send(running, 60)
    running.stop()
    text = running.access_file.read_bytes()
    assert text.count(b"\n") == 60
    (running.folder / "access.log.1.gz").write_bytes(gzip.compress(text[:1000])
                                                     + gzip.compress(text[1000:]))
    own = replay(
        running, "--log", running.folder / "access.log.1.gz", "--config", running.config_file)
    assert (own["lines"], own["judged"], own["changed"]) == (120, 120, 0)
    new = changed(running, "new.yaml", lambda config: config["access"]["rules"].append(
        {"name": "none", "methods": ["CONNECT"], "action": "deny"}))
    done = subprocess.run(
        [str(BINARY), "replay", "--log", "-", "--config", str(new), "--format", "json"],
        input=text, capture_output=True, cwd=running.folder, timeout=60)
    assert done.returncode == 1, done.stderr
    assert kinds(json.loads(done.stdout)) == {
        ("refused", "passed", "denied-by-rule by none"): sent["tunnel"]}


def test_requests_in_intercepted_tunnels_follow_their_tunnel(gateway, origin, pki, authority):
    from support.interception import HOST, ask_inside
    there = origin(lambda _: reply(b"x"), tls=pki.intermediate.issue(HOST).server_context())
    running = gateway({
        "tls": {"roots": [str(pki.root.pem_file)]}, "interception": authority.section,
        "hosts": [{"match": [HOST], "intercept": True}],
        "access": {"rules": [{"name": "no-admin", "paths": ["/admin"], "action": "deny"}]}})
    for path, status in (("/", 200), ("/admin", 403)):
        assert ask_inside(
            running, HOST, there.port, request(path, host=f"{HOST}:{there.port}")).status == status
    lines = running.wait_access(4)
    assert [line.get("intercepted") for line in lines] == [True] * 4
    assert replay(running, "--config", running.config_file)["changed"] == 0

    def relay(config: dict) -> None:
        config["hosts"][0]["intercept"] = False

    new = changed(running, "new.yaml", relay)
    # The rule no longer sees the path, and the other requests are no longer seen at all.
    report = replay(running, "--config", new, "--against", running.config_file, code=1)
    assert kinds(report) == {
        ("handling", "intercepted", "tunnelled"): 2,
        ("handling", "verified TLS", "tunnelled"): 1,
        ("allowed", "denied-by-rule by no-admin", "passed"): 1}


def test_a_tunnel_whose_client_rejects_the_certificate_is_inspected(workspace, authority):
    line = {"time": "2026-11-30T00:00:00.000Z", "client": "127.0.0.1:1", "listener": "proxy",
            "method": "CONNECT", "target": "a.test:443", "host": "a.test", "status": 200}
    (workspace / "log").write_text("".join(
        json.dumps({**line, name: True}) + "\n" for name in ("inspected", "intercepted")))

    def run(name: str, tunnel: str, *options: str):
        (workspace / name).write_text(json.dumps({
            "interception": authority.section,
            "hosts": [{"match": ["a.test"], "tunnel": tunnel, "intercept": True}]}))
        return run_pinfold("replay", "--log", "log", "--config", name, *options, cwd=workspace)

    done = run("inspect.yaml", "inspect")
    assert done.returncode == 0, done.stdout + done.stderr
    # Under a configuration that inspects no tunnel, that is another handling.
    done = run("pass.yaml", "pass")
    assert (done.returncode, "intercepted (was: inspected)" in done.stdout) == (1, True), done


def test_lines_that_cannot_be_judged_are_counted_by_what_they_lack(workspace):
    config = workspace / "new.yaml"
    config.write_text("hosts: [{ match: [a.test] }]\n")
    line = {"time": "2026-11-30T00:00:00.000Z", "client": "127.0.0.1:1", "listener": "proxy",
            "method": "GET", "target": "http://a.test/", "host": "a.test", "status": 200}
    log = workspace / "log"
    log.write_text("".join(json.dumps(one) + "\n" for one in (
        line, {**line, "client": "nobody"},
        {key: value for key, value in line.items() if key != "time"},
        {key: value for key, value in line.items() if key != "method"},
        {**line, "target": "*", "method": "OPTIONS"}, {**line, "listener": "admin"}))
        + "no line\n{\"time\":\n")
    done = run_pinfold("replay", "--log", str(log), "--config", str(config))
    assert done.returncode == 0, done.stderr
    for text in ("8 lines of", "1 request judged", "not judged: 2 not a line of an access log",
                 "not judged: 1 without a usable client", "not judged: 1 without a usable time",
                 "not judged: 1 without a usable method",
                 "not judged: 1 its target names no host",
                 "not judged: 1 a request to the administrative address",
                 "no request fares differently than the log says"):
        assert text in done.stdout, (text, done.stdout)


def test_what_is_in_a_log_is_printed_on_one_line_and_cut(workspace):
    config = workspace / "new.yaml"
    config.write_text("access: { rules: [{ name: none, action: deny }] }\n")
    line = {"time": "2026-11-30T00:00:00.000Z", "client": "127.0.0.1:1", "listener": "proxy",
            "method": "GET", "target": "http://a.test/" + "x" * 100_000, "host": "default",
            "status": 200, "user": "x\ny\x1b[31m\x07\u009b", "id": "i" * 1000}
    (workspace / "log").write_text(json.dumps(line) + "\n")
    done = run_pinfold("replay", "--log", "log", "--config", str(config), cwd=workspace)
    assert done.returncode == 1, done.stderr
    assert len(done.stdout) < 5_000
    assert not [one for one in done.stdout if one != "\n" and not one.isprintable()]
    assert r"127.0.0.1 x\u{A}y\u{1B}[31m\u{7}\u{9B} GET http://a.test/xxx" in done.stdout
    done = run_pinfold(
        "replay", "--log", "log", "--config", str(config), "--format", "json", cwd=workspace)
    assert len(done.stdout) < 5_000
    assert json.loads(done.stdout)["changes"][0]["examples"][0]["user"] == line["user"]


@pytest.mark.parametrize(("text", "error"), [
    (b"", "no line of the logs could be judged"),
    (b"GET / HTTP/1.1\n", "no line of the logs could be judged"),
    (b"\x1f\x8b\x08broken", "the gzip data is damaged or incomplete"),
])
def test_a_log_without_requests_is_an_error(workspace, text, error):
    (workspace / "log").write_bytes(text)
    (workspace / "new.yaml").write_text("hosts: []\n")
    done = run_pinfold(
        "replay", "--log", str(workspace / "log"), "--config", str(workspace / "new.yaml"))
    assert done.returncode == 2
    assert error in done.stderr, done.stderr


def seen_until(middle: int, later: int) -> dict:
    """A server that has renewed its certificate, with another key."""
    issuing = observed_certificate("CN=Issuing", "CN=Root", later + 1000)
    return observed_host(
        "api.test", *(([observed_certificate("CN=api.test", "CN=Issuing", later + 1000, key), issuing],
                       first, last) for key, first, last in (
            ("one", middle - 1000, middle - 10), ("two", middle, later))))


def test_pins_are_judged_by_the_gateways_record_and_by_what_is_exported_of_it(workspace):
    begin = 1_790_000_000
    record = write_record(workspace / "cache" / "observed-pins.sqlite", seen_until(begin, begin + 1000))
    (workspace / "old.yaml").write_text(yaml.safe_dump({
        "cache": {"path": "cache"}, "hosts": [{"match": ["api.test"]}]}))
    (workspace / "new.yaml").write_text(yaml.safe_dump({
        "hosts": [{"match": ["api.test"], "pinsets": ["keys"], "upgrade": "https"}],
        "pinsets": {"keys": {"mode": "publicKey", "pins": [key_pin("two"), key_pin("three")]}}}))
    export = run_pinfold("pin", "observed", "--json", "--config", "old.yaml", cwd=workspace)
    (workspace / "export.json").write_text(export.stdout)
    # Long before, while the first certificate was in use, between the two, with the second, and after.
    moments = [begin - 5000, begin - 500, begin - 5, begin + 5, begin + 5000]
    (workspace / "log").write_text("".join(json.dumps({
        "time": time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(at)), "client": "127.0.0.1:1",
        "listener": "proxy", "method": "GET", "target": f"https://{host}/", "host": "api.test",
        "status": 200}) + "\n" for at in moments for host in ("api.test:443", "api.test:8443")))
    reports = []
    for file in (str(record), "export.json"):
        done = run_pinfold("replay", "--log", "log", "--config", "new.yaml", "--observed", file,
                           "--format", "json", cwd=workspace)
        assert (done.returncode, done.stderr) == (1, ""), done
        reports.append(json.loads(done.stdout))
    assert reports[0] == reports[1]
    assert kinds(reports[0]) == {("refused", "passed", "tls-no-pin-matches by keys"): 3}
    # Nothing is known of the other port.
    assert (reports[0]["observedHosts"], reports[0]["withoutKeys"]) == (1, 5)
    (workspace / "broken").write_bytes(record.read_bytes()[:2000])
    done = run_pinfold(
        "replay", "--log", "log", "--config", "new.yaml", "--observed", "broken", cwd=workspace)
    assert (done.returncode, done.stdout) == (2, "") and "broken" in done.stderr


def test_a_configuration_or_file_that_is_refused_is_an_error(workspace):
    (workspace / "new.yaml").write_text("hots: []\n")
    (workspace / "good.yaml").write_text("hosts: []\n")
    (workspace / "observed").write_text('{"a.test": [{"spki": ["x"]}]}')
    for options, error in (
            (["--config", "new.yaml"], "hots"),
            (["--config", "good.yaml", "--against", "new.yaml"], "hots"),
            (["--config", "good.yaml", "--observed", "observed"], "no SHA-256"),
            (["--config", "good.yaml"], "log: cannot be read")):
        done = run_pinfold("replay", "--log", "log", *options, cwd=workspace)
        assert done.returncode == 2, done.stdout
        assert error in done.stderr, done.stderr
