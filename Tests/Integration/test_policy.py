"""A policy from elsewhere: fetched, verified, put in force as a whole, or refused as a whole."""

from __future__ import annotations

import json

import pytest
from support.gateway import run_pinfold
from support.origin import reply
from support.policies import (
    HOST,
    PIN,
    Signer,
    alarms,
    configuration,
    policy,
    policy_server,
    refused,
    serial,
    start_unready,
    unsigned,
    wait_serial,
)
from support.secure import reload
from support.wait import until

DENY = {"access": {"rules": [{"name": "policy-deny", "hosts": ["denied.test"], "action": "deny",
                              "status": 451}]}}
OTHER = {"access": {"rules": [{"name": "policy-other", "hosts": ["other.test"], "action": "deny",
                               "status": 451}]}}


@pytest.fixture
def signer() -> Signer:
    return Signer()


@pytest.fixture
def server(pki, signer):
    with policy_server(pki, policy(DENY, 7, signer)) as made:
        yield made


@pytest.fixture
def there(origin):
    return origin(lambda _: reply(b"here", "200 OK", "Cache-Control: no-store"))


def status_of(running, there, host: str) -> int:
    return running.get(f"http://{host}:{there.port}/").status


def in_force(running, there) -> set[str]:
    """Which of the two rules refuse."""
    return {host for host in ("denied.test", "other.test")
            if status_of(running, there, host) == 451}


def test_a_policy_is_fetched_and_put_in_force(gateway, pki, server, signer, there):
    running = gateway(configuration(pki, server, signer))
    wait_serial(running, 7)
    assert in_force(running, there) == {"denied.test"}
    assert server.requests[0].target == "/pinfold.yaml"
    assert server.requests[0].get("host") == f"{HOST}:{server.port}"
    assert server.requests[0].get("if-none-match") == ""
    running.wait_log(r"the policy is in force.*serial=\"?7")
    # From then on it is asked with the tag of what it has.
    until(lambda: running.metric("pinfold_policy_fetches_total", result="unchanged") >= 1,
          "the server says that it is unchanged")
    assert server.requests[-1].get("if-none-match").startswith('"')
    assert alarms(running) == set()
    stored = running.folder / "cache" / "policy.yaml"
    assert stored.read_bytes() == server.content and stored.stat().st_mode & 0o777 == 0o600
    server.content = policy(OTHER, 8, signer)
    wait_serial(running, 8)
    assert in_force(running, there) == {"other.test"}
    until(lambda: stored.read_bytes() == server.content, "it is stored")


def test_without_a_first_policy_the_gateway_is_not_ready(gateway, pki, signer, there):
    with policy_server(pki, None) as server:
        running = start_unready(gateway(configuration(pki, server, signer), start=False))
        answer = running.admin_get("/readyz")
        assert (answer.status, b"no policy has been verified yet" in answer.body) == (503, True)
        assert running.metric("pinfold_policy_serial") == 0 and "missing" in alarms(running)
        assert not any(name.startswith("pinfold_policy_expires") for name in running.metrics())
        # The local file applies.
        assert status_of(running, there, "denied.test") == 200
        server.content = policy(DENY, 1, signer)
        wait_serial(running, 1)
        until(lambda: running.admin_get("/readyz").status == 200, "it is ready")
        assert in_force(running, there) == {"denied.test"} and alarms(running) == set()


def test_without_a_first_policy_everything_may_be_refused(gateway, pki, signer, there):
    with policy_server(pki, None) as server:
        running = start_unready(gateway(
            configuration(pki, server, signer, afterExpiry="refuse"), start=False))
        assert status_of(running, there, "free.test") == 503
        server.content = policy(DENY, 1, signer)
        wait_serial(running, 1)
        until(lambda: status_of(running, there, "free.test") == 200, "requests are served")


BROKEN = {
    "format": lambda signer: b"hosts: []\n",
    "half": lambda signer: policy(OTHER, 8, signer)[:-20],
    "empty": lambda signer: b"",
    "huge": lambda signer: policy("#" * (2 << 20), 8, signer),
    "unsigned": lambda signer: unsigned(OTHER, 8),
    "signature": lambda signer: policy(OTHER, 8, Signer()),
    "changed": lambda signer: policy(OTHER, 8, signer).replace(b"other.test", b"others.test"),
    "older": lambda signer: policy(OTHER, 6, signer),
    "same_serial": lambda signer: policy(OTHER, 7, signer),
    "expired": lambda signer: policy(OTHER, 8, signer, expires=-1),
    "yaml": lambda signer: policy("hosts: [", 8, signer),
    "key": lambda signer: policy({**OTHER, "listeners": []}, 8, signer),
    "include": lambda signer: policy({"include": ["/etc/passwd"]}, 8, signer),
    "file": lambda signer: policy(
        {"pinsets": {"p": {"mode": "publicKey", "pins": ["/etc/hostname"]}}}, 8, signer),
    "variable": lambda signer: policy({"hosts": [{"match": ["${HOME}"]}]}, 8, signer),
    "destinations": lambda signer: policy(
        {"access": {"destinations": {"allow": ["10.0.0.1"]}}}, 8, signer),
    "tunnel": lambda signer: policy(
        {"hosts": [{"match": ["a.test"], "tunnel": "pass"}]}, 8, signer),
    "invalid": lambda signer: policy(
        {"pinsets": {"p": {"mode": "publicKey", "pins": [PIN], "allowInvalidCertificates": True}}},
        8, signer),
    "clear": lambda signer: policy(
        {"hosts": [{"match": ["a.test"], "clearText": "allow"}]}, 8, signer),
    "headers": lambda signer: policy(
        {"hosts": [{"match": ["a.test"], "request": {"headers": {"set": {"A": "b"}}}}]}, 8, signer),
    "parents": lambda signer: policy(
        {"hosts": [{"match": ["a.test"], "parents": ["direct"]}]}, 8, signer),
    "report": lambda signer: policy(
        {"pinsets": {"p": {"mode": "publicKey", "pins": [PIN],
                           "reportTo": "https://evil.test/"}}}, 8, signer),
    "shape": lambda signer: policy(
        {"access": {"destinations": [{"deny": ["other.test"]}]}}, 8, signer),
    "label": lambda signer: policy({"hosts": [{"match": ["default"]}]}, 8, signer),
    "aliases": lambda signer: policy(
        "hosts: [&a [x, x, x, x, x, x, x, x, x, x], "
        + ", ".join(f"&{chr(98 + at)} [{', '.join([f'*{chr(97 + at)}'] * 10)}]" for at in range(7))
        + "]", 8, signer),
}
CAUSES = {"half": "format", "empty": "format", "huge": "format", "unsigned": "format",
          "changed": "signature", **{name: name for name in (
              "format", "signature", "older", "same_serial", "expired")}}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_no_good_is_refused_and_the_old_one_stays(
        gateway, pki, server, signer, there, what):
    running = gateway(configuration(pki, server, signer))
    wait_serial(running, 7)
    former, stored = server.content, running.folder / "cache" / "policy.yaml"
    server.content = BROKEN[what](signer)
    until(lambda: refused(running, CAUSES.get(what, "content")) >= 1, lambda: running.log()[-2000:])
    assert in_force(running, there) == {"denied.test"} and serial(running) == 7
    assert "refused" in alarms(running) and stored.read_bytes() == former
    assert running.admin_get("/readyz").status == 200
    running.wait_log("a policy is refused; what was in force before remains in force")
    # It recovers by itself.
    server.content = policy(OTHER, 9, signer)
    wait_serial(running, 9)
    assert in_force(running, there) == {"other.test"} and alarms(running) == set()


def test_the_same_refusal_is_logged_once(gateway, pki, server, signer):
    running = gateway(configuration(pki, server, signer))
    wait_serial(running, 7)
    server.content = policy(OTHER, 6, signer)
    until(lambda: refused(running, "older") >= 3, "it is refused each time")
    assert running.log().count("a policy is refused") == 1


@pytest.mark.parametrize("answer", [
    reply(b"", "500 Internal Server Error"), reply(b"", "404 Not Found"),
    reply(b"", "301 Moved Permanently", "Location: /other"),
    reply(b"", "304 Not Modified", length=False), b"nonsense\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\nConnection: close\r\n\r\nshort"],
    ids=["500", "404", "redirect", "304", "nonsense", "short"])
def test_what_is_no_answer_is_a_failure(gateway, pki, signer, answer):
    with policy_server(pki, None) as server:
        server.answer = answer
        running = start_unready(gateway(configuration(pki, server, signer), start=False))
        until(lambda: running.metric("pinfold_policy_fetches_total", result="failed") >= 2,
              "it is asked again")
        assert running.log().count("the policy cannot be fetched") == 1
        assert len({one.target for one in server.requests}) == 1
        server.answer, server.content = None, policy(DENY, 1, signer)
        wait_serial(running, 1)
        running.wait_log("the policy can be fetched again")


def test_its_server_must_be_trusted(gateway, pki, signer):
    with policy_server(pki, policy(DENY, 1, signer)) as server:
        config = configuration(pki, server, signer)
        config["tls"] = {"roots": [str(pki.rogue_root.pem_file)]}
        running = start_unready(gateway(config, start=False))
        until(lambda: running.metric("pinfold_policy_fetches_total", result="failed") >= 1, "")
        assert serial(running) == 0 and server.requests == []


def test_silence_is_an_alarm(gateway, pki, server, signer, there):
    running = gateway(configuration(pki, server, signer))
    wait_serial(running, 7)
    server.answer = reply(b"", "503 Service Unavailable")
    until(lambda: "unreachable" in alarms(running), "the alarm", 30)
    running.wait_log("no policy can be fetched since")
    assert in_force(running, there) == {"denied.test"}
    shown = run_pinfold("status", "--admin", "%s:%d" % running.admin)
    assert "no policy can be fetched since" in shown.stdout and shown.returncode == 0


# Expiry


@pytest.mark.parametrize("then", ["keep", "refuse"])
def test_a_policy_expires(gateway, pki, signer, there, then):
    with policy_server(pki, policy(DENY, 1, signer)) as server:
        running = gateway(configuration(pki, server, signer, afterExpiry=then))
        wait_serial(running, 1)
        # However long the start took, this one is taken before it expires.
        server.content = policy(DENY, 2, signer, expires=10)
        wait_serial(running, 2)
        until(lambda: "expired" in alarms(running), "the alarm", 20)
        running.wait_log("the policy expired at")
        if then == "keep":
            assert in_force(running, there) == {"denied.test"}
            assert status_of(running, there, "free.test") == 200
            assert running.admin_get("/readyz").status == 200
        else:
            until(lambda: status_of(running, there, "free.test") == 503, "requests are refused")
            assert running.admin_get("/readyz").status == 503
            reload(running)
            assert status_of(running, there, "free.test") == 503
        server.content = policy(OTHER, 3, signer)
        wait_serial(running, 3)
        until(lambda: in_force(running, there) == {"other.test"}, "the next one is in force")
        assert alarms(running) == set() and running.admin_get("/readyz").status == 200


# The disk


def test_a_restart_needs_no_network(gateway, pki, server, signer, there):
    running = gateway(configuration(pki, server, signer))
    wait_serial(running, 7)
    server.answer = reply(b"", "503 Service Unavailable")
    running.restart()
    assert serial(running) == 7 and in_force(running, there) == {"denied.test"}
    # Nor is an older one taken after it.
    server.answer, server.content = None, policy(OTHER, 6, signer)
    until(lambda: refused(running, "older") >= 1, "it is refused")
    assert in_force(running, there) == {"denied.test"}


@pytest.mark.parametrize("damage", [
    lambda content: b"", lambda content: content[:-1], lambda content: content[1:],
    lambda content: content.replace(b"denied", b"denies")], ids=["empty", "end", "begin", "changed"])
def test_a_damaged_store_is_worth_nothing(gateway, pki, server, signer, there, damage):
    running = gateway(configuration(pki, server, signer))
    wait_serial(running, 7)
    running.stop()
    stored = running.folder / "cache" / "policy.yaml"
    stored.write_bytes(damage(server.content))
    server.answer = reply(b"", "503 Service Unavailable")
    start_unready(running)
    assert serial(running) == 0 and running.admin_get("/readyz").status == 503
    server.answer = None
    wait_serial(running, 7)
    assert stored.read_bytes() == server.content


def test_what_cannot_be_stored_is_in_force_with_an_alarm(gateway, pki, server, signer):
    running = gateway(configuration(pki, server, signer), start=False)
    # A folder is where the file would be.
    (running.folder / "cache" / "policy.yaml").mkdir(parents=True)
    start_unready(running)
    wait_serial(running, 7)
    assert alarms(running) == {"unkept"}
    (running.folder / "cache" / "policy.yaml").rmdir()
    until(lambda: alarms(running) == set(), "it is stored")


def test_what_is_removed_is_stored_again(gateway, pki, server, signer):
    running = gateway(configuration(pki, server, signer))
    wait_serial(running, 7)
    stored = running.folder / "cache" / "policy.yaml"
    until(stored.exists, "it is stored")
    stored.unlink()
    until(lambda: stored.exists() and stored.read_bytes() == server.content, "it is stored again")


def test_another_path_gets_the_policy_too(gateway, pki, server, signer, there):
    running = gateway(configuration(pki, server, signer))
    wait_serial(running, 7)
    server.answer = reply(b"", "503 Service Unavailable")
    config = json.loads(json.dumps(running.config))
    moved = running.folder / "moved"
    config["cache"]["path"] = str(moved)
    reload(running, config)
    until(lambda: (moved / "policy.yaml").exists(), "it is stored")
    assert (moved / "policy.yaml").read_bytes() == server.content
    running.config = config
    running.restart()
    assert serial(running) == 7 and in_force(running, there) == {"denied.test"}


# Keys


def resigned(content: bytes, *signers: Signer) -> bytes:
    """The same policy, with lines of signatures by these keys."""
    signed = content[:content.index(b"# signature: ")]
    return signed + b"".join(one.line(signed) for one in signers)


def keys_in_force(running) -> list[str]:
    return json.loads(running.admin_get("/api/v1/status").body)["policy"]["keys"]


def test_only_the_signature_of_a_known_key_is_taken_anew(gateway, pki, server, signer, there):
    following, stranger = Signer(), Signer()
    running = gateway(configuration(pki, server, signer))
    wait_serial(running, 7)
    taken = running.metric("pinfold_policy_fetches_total", result="taken")
    stored = running.folder / "cache" / "policy.yaml"
    former = server.content
    # Anybody could have written that.
    server.content = resigned(former, signer, stranger)
    before = running.metric("pinfold_policy_fetches_total", result="unchanged")
    until(lambda: running.metric("pinfold_policy_fetches_total", result="unchanged") >= before + 2,
          "it is not another")
    assert stored.read_bytes() == former
    assert running.metric("pinfold_policy_fetches_total", result="taken") == taken
    reload(running, merged_keys(running, signer, following))
    server.content = resigned(former, signer, following)
    until(lambda: keys_in_force(running) == [signer.public, following.public], "both have signed")
    reload(running, merged_keys(running, following))
    assert keys_in_force(running) == [following.public]
    assert in_force(running, there) == {"denied.test"}


def test_the_highest_serial_by_a_stolen_key_is_left_behind(gateway, pki, server, signer, there):
    following = Signer()
    running = gateway(configuration(pki, server, signer))
    wait_serial(running, 7)
    server.content = policy(OTHER, 2**53 - 1, signer)
    wait_serial(running, 2**53 - 1)
    server.content = policy(DENY, 8, signer, following)
    until(lambda: refused(running, "older") >= 1, "none can follow")
    config = merged_keys(running, following)
    settings = config.pop("policy")
    reload(running, config)
    assert in_force(running, there) == set()
    reload(running, {**config, "policy": settings})
    wait_serial(running, 8)
    assert in_force(running, there) == {"denied.test"}
    stored = running.folder / "cache" / "policy.yaml"
    until(lambda: stored.read_bytes() == server.content, "it is stored")


def test_keys_are_rotated(gateway, pki, server, signer, there):
    following = Signer()
    config = configuration(pki, server, signer)
    running = gateway(config)
    wait_serial(running, 7)
    # The new key alone is not known yet.
    server.content = policy(OTHER, 8, following)
    until(lambda: refused(running, "signature") >= 1, "it is refused")
    signed = server.content[: -len(following.line(b""))]
    server.content = signed + signer.line(signed) + following.line(signed)
    wait_serial(running, 8)
    reload(running, merged_keys(running, following))
    assert in_force(running, there) == {"other.test"}
    server.content = policy(DENY, 9, following)
    wait_serial(running, 9)
    before = refused(running, "signature")
    server.content = policy(OTHER, 10, signer)
    until(lambda: refused(running, "signature") > before, "the old key is not known any more")


def merged_keys(running, *signers: Signer) -> dict:
    config = json.loads(json.dumps(running.config))
    config["policy"]["publicKeys"] = [one.public for one in signers]
    return config


def test_a_reload_without_the_key_of_the_policy_is_refused(gateway, pki, server, signer, there):
    running = gateway(configuration(pki, server, signer))
    wait_serial(running, 7)
    reload(running, merged_keys(running, Signer()), succeeds=False)
    running.wait_log("no signature by a key of policy.publicKeys")
    assert in_force(running, there) == {"denied.test"}
    # Started so, it waits for another.
    running.config = merged_keys(running, Signer())
    running.stop()
    start_unready(running)
    assert running.admin_get("/readyz").status == 503


# Reloads


def test_a_reload_keeps_the_policy(gateway, pki, server, signer, there):
    running = gateway(configuration(pki, server, signer))
    wait_serial(running, 7)
    config = json.loads(json.dumps(running.config))
    config["access"]["rules"] = [{"name": "own", "hosts": ["own.test"], "action": "deny"}]
    reload(running, config)
    assert in_force(running, there) == {"denied.test"}
    assert status_of(running, there, "own.test") == 403
    del config["policy"]
    reload(running, config)
    assert in_force(running, there) == set()
    assert not any(name.startswith("pinfold_policy_serial") for name in running.metrics())
    config["policy"] = running.config["policy"]
    reload(running, config)
    wait_serial(running, 7)
    assert in_force(running, there) == {"denied.test"}


def test_a_local_file_that_the_policy_would_widen_is_not_loaded(gateway, pki, signer, there):
    content = {"hosts": [{"match": ["a.test"], "tunnel": "inspect"}]}
    with policy_server(pki, policy(content, 1, signer)) as server:
        running = gateway(configuration(pki, server, signer))
        wait_serial(running, 1)
        config = json.loads(json.dumps(running.config))
        config["hosts"] = [{"match": ["**"], "tunnel": "refuse"}]
        reload(running, config, succeeds=False)
        running.wait_log("tunnel: inspect is not as strict as refuse")
        tried = run_pinfold("reload", "--dry-run", "--admin", "%s:%d" % running.admin)
        assert tried.returncode == 1 and "inspect is not as strict as refuse" in (
            tried.stdout + tried.stderr)
        # A policy that fits comes first, then the reload.
        server.content = policy({"hosts": [{"match": ["a.test"], "tunnel": "refuse"}]}, 2, signer)
        wait_serial(running, 2)
        reload(running, config)


def test_edits_of_the_local_file_wait_for_a_reload(gateway, pki, server, signer, there):
    running = gateway(configuration(pki, server, signer))
    wait_serial(running, 7)
    running.config_file.write_text("not: [valid")
    server.content = policy(OTHER, 8, signer)
    wait_serial(running, 8)
    assert in_force(running, there) == {"other.test"}


def test_a_refused_content_is_read_again_after_a_reload(gateway, pki, server, signer):
    config = configuration(pki, server, signer)
    running = gateway(config | {"hosts": [{"match": ["b.test"], "name": "own"}]})
    wait_serial(running, 7)
    server.content = policy({"hosts": [{"match": ["a.test"], "name": "own"}]}, 8, signer)
    until(lambda: refused(running, "content") >= 2, "it is refused each time")
    assert running.log().count("a policy is refused") == 1
    # Under another local file it is.
    config = json.loads(json.dumps(running.config))
    config["hosts"] = []
    reload(running, config)
    wait_serial(running, 8)


# What it narrows


def test_a_local_parent_is_none_of_the_policys_business(gateway, pki, server, signer, there):
    config = configuration(pki, server, signer)
    config |= {"parents": {"corp": {"url": "https://proxy.test:3128"}},
               "ways": {"parents": ["corp", "direct"]}}
    running = gateway(config)
    wait_serial(running, 7)
    content = {"hosts": [{"match": ["*.test"], "tls": {"minimum": "1.3"}}]}
    server.content = policy(content, 8, signer)
    until(lambda: refused(running, "content") >= 1, "it is refused")
    running.wait_log("applies to proxy.test:3128, which is the local parent corp")
    # The local file says how its parent is verified.
    config = json.loads(json.dumps(running.config))
    config["hosts"] = [{"match": ["proxy.test"]}]
    reload(running, config)
    wait_serial(running, 8)


def test_listed_hosts_stay_those_of_the_local_file(gateway, pki, signer, there):
    content = {"hosts": [{"match": ["new.test", "**.test"]}]}
    with policy_server(pki, policy(content, 1, signer)) as server:
        config = configuration(pki, server, signer)
        config |= {"access": {"hosts": "listed"}, "hosts": [{"match": ["known.test"]}]}
        running = gateway(config)
        wait_serial(running, 1)
        assert status_of(running, there, "known.test") == 200
        assert status_of(running, there, "new.test") == 403


def test_a_host_that_is_pinned_locally_is_not_reached_by_other_pins(gateway, pki, signer, origin):
    leaf = pki.intermediate.issue("pinned.test")
    there = origin(lambda _: reply(b"genuine"), tls=leaf.server_context())
    content = {"pinsets": {"theirs": {"mode": "publicKey", "pins": [leaf.pin]}},
               "hosts": [{"match": ["**.test"], "pinsets": ["theirs"]}]}
    with policy_server(pki, policy(content, 1, signer)) as server:
        config = configuration(pki, server, signer)
        config |= {"pinsets": {"own": {"mode": "publicKey", "pins": [PIN]}},
                   "hosts": [{"match": ["pinned.test:443"], "pinsets": ["own"]},
                             {"match": ["**"], "upgrade": "https"}]}
        running = gateway(config)
        wait_serial(running, 1)
        answer = running.get(f"http://pinned.test:{there.port}/")
        assert (answer.status, there.requests) == (403, [])


def test_pins_of_the_policy_are_enforced(gateway, pki, signer, origin):
    leaf = pki.intermediate.issue("api.test")
    there = origin(lambda _: reply(b"genuine"), tls=leaf.server_context())

    def content(pin: str) -> dict:
        return {"pinsets": {"api": {"mode": "publicKey", "pins": [pin]}},
                "hosts": [{"match": ["api.test"], "pinsets": ["api"], "upgrade": "https"}]}

    with policy_server(pki, policy(content(leaf.pin), 1, signer)) as server:
        running = gateway(configuration(pki, server, signer))
        wait_serial(running, 1)
        assert running.get(f"http://api.test:{there.port}/").status == 200
        server.content = policy(content(PIN), 2, signer)
        wait_serial(running, 2)
        refusal = running.get(f"http://api.test:{there.port}/")
        assert refusal.status == 502 and b"tls-no-pin-matches" in refusal.body


def test_the_api_tells_of_it(gateway, pki, server, signer):
    running = gateway(configuration(pki, server, signer))
    wait_serial(running, 7)
    until(lambda: "taken" in json.loads(running.admin_get("/api/v1/status").body)["policy"], "")
    for place in ("status", "configuration"):
        told = json.loads(running.admin_get(f"/api/v1/{place}").body)["policy"]
        assert told["serial"] == 7 and told["state"] == "inForce" and told["alarms"] == []
        assert told["keys"] == [signer.public] and told["rules"] == 1
    server.content = policy(OTHER, 6, signer)
    until(lambda: refused(running, "older") >= 1, "it is refused")
    told = json.loads(running.admin_get("/api/v1/status").body)["policy"]
    assert told["lastRefused"]["reason"] == "older"
    overview = json.loads(running.admin_get("/api/v1/overview").body)
    assert any("the policy that was fetched last is refused" in one["text"]
               for one in overview["attention"])
    shown = run_pinfold("policy", "show", "--admin", "%s:%d" % running.admin)
    assert shown.returncode == 1 and "lower than 7" in shown.stdout
    assert "policy" not in json.loads(gateway().admin_get("/api/v1/status").body)


# The commands


def test_the_commands_and_another_implementation_agree(workspace, signer):
    key = signer.write(workspace / "policy.key")
    (workspace / "fleet.yaml").write_text("hosts: [{ match: [a.example] }]")
    shown = run_pinfold("policy", "keygen", "--public", str(key))
    assert shown.stdout == f"{signer.public}\n"
    signed = run_pinfold("policy", "sign", "fleet.yaml", "--key", str(key), "--serial", "3",
                         "--expires", "2040-01-01T00:00:00Z", cwd=workspace)
    body, _, line = signed.stdout.encode().rstrip(b"\n").rpartition(b"\n")
    assert line + b"\n" == signer.line(body + b"\n")
    (workspace / "signed.yaml").write_text(signed.stdout)

    def verify(*keys: str):
        options = [option for one in keys for option in ("--public-key", one)]
        return run_pinfold("policy", "verify", "signed.yaml", *options, cwd=workspace)

    assert verify(signer.public).returncode == 0
    assert verify(Signer().public).returncode == 1
    following = Signer()
    again = run_pinfold("policy", "sign", "signed.yaml", "--key",
                        str(following.write(workspace / "next.key")), "--output", "signed.yaml",
                        cwd=workspace)
    assert (again.returncode, again.stdout) == (0, "")
    assert verify(following.public).returncode == 0 and verify(signer.public).returncode == 0
    twice = run_pinfold("policy", "sign", "signed.yaml", "--key", str(key), cwd=workspace)
    assert twice.returncode == 1 and "signed by this key already" in twice.stderr
    text = (workspace / "signed.yaml").read_text()
    (workspace / "signed.yaml").write_text(text.replace("a.example", "b.example"))
    edited = run_pinfold("policy", "sign", "signed.yaml", "--key",
                         str(Signer().write(workspace / "third.key")), cwd=workspace)
    assert edited.returncode == 1 and "is not of this content" in edited.stderr


@pytest.mark.parametrize("serial, code", [("2", 1), ("3", 1), ("4", 0), (None, 0)])
def test_a_serial_must_be_higher_than_the_one_before(workspace, signer, serial, code):
    key = signer.write(workspace / "policy.key")
    (workspace / "old.yaml").write_bytes(policy({}, 3, signer))
    (workspace / "new.yaml").write_text("{}\n")
    number = ["--serial", serial] if serial else []
    done = run_pinfold("policy", "sign", "new.yaml", "--key", str(key), "--days", "1",
                       "--previous", "old.yaml", *number, cwd=workspace)
    assert done.returncode == code, done.stderr
    if code == 0:
        assert "# serial: 4\n" in done.stdout
    else:
        assert "is not higher than 3" in done.stderr


def test_what_no_gateway_would_take_is_not_signed(workspace, signer):
    key = signer.write(workspace / "policy.key")
    (workspace / "bad.yaml").write_text("listeners: []\nhosts:\n  - request: {}\n")
    done = run_pinfold("policy", "sign", "bad.yaml", "--key", str(key), "--days", "1",
                       "--serial", "1", cwd=workspace)
    assert (done.returncode, done.stdout) == (1, "")
    assert "bad.yaml:4: listeners: may not be in a policy" in done.stderr
    assert "bad.yaml:6: hosts[0].request: may not be in a policy" in done.stderr


def test_commands_take_a_policy_with_the_file(workspace, pki, signer):
    (workspace / "local.yaml").write_text(json.dumps(
        {"policy": {"url": "https://p.test/", "publicKeys": [signer.public]},
         "cache": {"path": "cache"}}))
    (workspace / "policy.yaml").write_bytes(policy(DENY, 7, signer))
    given = ["--policy", "policy.yaml"]
    checked = run_pinfold("check", "--config", "local.yaml", *given, cwd=workspace)
    assert checked.returncode == 0 and "policy-deny" in checked.stdout, checked.stderr
    assert "# serial 7, expires" in checked.stdout
    explained = run_pinfold("explain", "http://denied.test/", "--config", "local.yaml", *given,
                            "--address", "93.184.215.14", cwd=workspace)
    assert explained.returncode == 1 and "policy-deny" in explained.stdout
    changed = run_pinfold("diff", "local.yaml", "local.yaml", *given, cwd=workspace)
    assert changed.returncode == 1 and "policy-deny" in changed.stdout
    (workspace / "policy.yaml").write_bytes(policy(DENY, 7, Signer()))
    for command in (["check", "--config", "local.yaml"], ["diff", "local.yaml", "local.yaml"],
                    ["explain", "http://a.test/", "--config", "local.yaml"]):
        done = run_pinfold(*command, *given, cwd=workspace)
        assert done.returncode in (1, 2) and "no signature by a key" in done.stderr
