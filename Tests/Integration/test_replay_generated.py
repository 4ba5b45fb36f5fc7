"""`pinfold replay` and the running gateway on the same requests, thousands of every kind: the same verdict
and reason wherever the configuration decides."""

from __future__ import annotations

import copy
import json
import os
from collections import Counter
from pathlib import Path

import pytest
import yaml
from support.gateway import Gateway, run_pinfold
from support.generated import NAMES, Generator, Sender, Sent, change, configuration
from support.origin import reply

# As many as take some seconds by a program that is not optimized; deploy/replay sends more, by any seed.
COUNT = int(os.environ.get("PINFOLD_REPLAY_REQUESTS", "1000"))
SEED = int(os.environ.get("PINFOLD_REPLAY_SEED", "20261130"))

# Reasons that a configuration decides, all of which these requests have to meet with.
DECIDED = {
    "not-a-proxy-request", "client-not-allowed", "connect-on-reverse-route", "connect-port-refused",
    "host-not-listed", "denied-by-rule", "ambiguous-path", "tunnel-refused", "clear-text-refused",
    "destination-refused", "authentication-required", "tls-no-pin-matches", "tls-pinset-expired",
}


def replay(log: Path, *options: str | Path) -> dict:
    done = run_pinfold(
        "replay", "--log", str(log), "--format", "json", "--examples", "5",
        *(str(option) for option in options), cwd=log.parent, timeout=300)
    assert done.returncode in (0, 1), (done.stdout, done.stderr)
    return json.loads(done.stdout)




def reason(line: dict) -> str | None:
    """Why a line's request was refused, if the configuration decided that, as replay says it."""
    token = line.get("reason")
    if token not in DECIDED:
        return None
    return f"{token} by {line['rule']}" if token == "denied-by-rule" else token


def differences(before: dict, after: dict, is_by_log: bool) -> list[tuple[str, str, str]]:
    """How one request fared differently, as replay says it. In a log alone, a field that is not there may
    have been left out."""
    one, other = reason(before), reason(after)
    if one != other:
        kind = "refused" if one is None else "allowed" if other is None else "reason"
        return [(kind, one or "passed", other or "passed")]
    if one is not None:
        return []
    return [
        (kind, before.get(name, "none"), after.get(name, "none"))
        for kind, name in (("entry", "host"), ("rule", "rule"), ("reported", "reported"))
        if before.get(name) != after.get(name) and (name in before or not is_by_log)]


def kinds(report: dict) -> Counter[tuple[str, str, str]]:
    """What replay says, without the pinset that the log does not have."""
    def plain(text: str) -> str:
        return text if text.startswith("denied-by-rule") else text.partition(" by ")[0]

    found: Counter[tuple[str, str, str]] = Counter()
    for one in report["changes"]:
        found[one["kind"], plain(one["before"]), plain(one["after"])] += one["count"]
    return found


def served(gateway, config: dict, requests: list[Sent]) -> tuple[Gateway, list[dict]]:
    """The gateway that has served them, and the lines of its log."""
    running = gateway(config)
    Sender(running).send(requests)
    running.stop()
    lines = running.access_lines()
    assert len(lines) >= len(requests)
    return running, lines


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_replay_says_what_the_gateway_does(gateway, origin, dns, pki, authority, workspace):
    dns.set("private.test", "10.255.255.1")
    leaf = pki.intermediate.issue(*NAMES)
    there = origin(lambda _: reply(b"answer"))
    secure = origin(lambda _: reply(b"answer"), tls=leaf.server_context())
    config = configuration(workspace, pki, authority.section, there.port, secure.port)
    requests = Generator(SEED, there.port, secure.port).draw(COUNT)
    observed = workspace / "observed.json"
    observed.write_text(json.dumps(
        {host: [{"spki": [leaf.spki_sha256, pki.intermediate.spki_sha256]}] for host in NAMES}))

    first, lines = served(gateway, config, requests)
    assert {line.get("reason") for line in lines} >= DECIDED, "a kind of request is missing"
    own = replay(first.access_file, "--config", first.config_file, "--observed", observed)
    assert own["changes"] == []
    assert (own["lines"], own["withoutKeys"], own["withoutAddress"]) == (len(lines), 0, 0)
    assert own["notJudged"]["unreadable"] == 0 and own["notJudged"]["lacking"] == {}
    assert own["judged"] > 0.9 * len(lines), own["notJudged"]
    assert sum(line.get("reason") in DECIDED for line in lines) > 0.3 * len(lines)

    # Another configuration: what replay says of the first log is what the gateway then does.
    other = copy.deepcopy(config)
    change(other)
    second, after = served(gateway, other, requests)
    again = replay(second.access_file, "--config", second.config_file, "--observed", observed)
    assert again["changes"] == []

    def by_number(lines: list[dict]) -> dict[str, dict]:
        return {line["user_agent"]: line for line in lines if line.get("user_agent", "")[:1] == "n"}

    earlier, later = by_number(lines), by_number(after)
    # What was refused before there was an address is judged without one.
    compared = [agent for agent, line in earlier.items()
                if agent in later and "private.test" not in line["target"]
                and line.get("reason") != "malformed-target"]
    assert len(compared) > 0.9 * COUNT
    log = workspace / "compared.log"
    log.write_text("".join(json.dumps(earlier[agent]) + "\n" for agent in compared))
    for options in ([], ["--against", first.config_file]):
        wanted: Counter[tuple[str, str, str]] = Counter()
        for agent in compared:
            wanted.update(differences(earlier[agent], later[agent], is_by_log=not options))
        predicted = kinds(
            replay(log, "--config", second.config_file, "--observed", observed, *options))
        for key in [key for key in predicted if key[0] in ("handling", "pins", "cache")]:
            del predicted[key]
        assert predicted == wanted
        assert wanted["allowed", "denied-by-rule by no-ads", "passed"] > 0
        assert sum(wanted.values()) > 0.2 * len(compared), wanted
