"""The alerts and dashboards of deploy/monitoring: as files, and in a Prometheus that scrapes a gateway."""

from __future__ import annotations

import contextlib
import json
import re
import ssl
import subprocess
import sys
import threading

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from support.checkout import PAGES
from support.gateway import free_port
from support.interception import inside
from support.monitoring import ALERTS, DASHBOARDS, MONITORING, Prometheus, queries
from support.origin import reply
from support.wait import until
from support.wire import Closed

PINNED, OURS, LATER = "pinned.test", "ours.test", "2030-01-01"
RULES = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def promtool(*arguments: str) -> str:
    done = subprocess.run(["promtool", *arguments], cwd=MONITORING, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def expressions() -> list[str]:
    """Those of all alerts and dashboards."""
    return [rule["expr"] for rule in RULES] + [
        query for file in DASHBOARDS for query in queries(file).values()]


# As files


def test_the_alerts_are_valid_and_fire_when_they_are_to():
    assert f"{len(RULES)} rules found" in promtool("check", "rules", ALERTS.name)
    assert "SUCCESS" in promtool("test", "rules", "alerts.test.yaml")
    tests = yaml.safe_load((MONITORING / "alerts.test.yaml").read_text())["tests"]
    checked = [one for test in tests for one in test["alert_rule_test"]]
    assert {one["alertname"] for one in checked if one.get("exp_alerts")} == {
        rule["alert"] for rule in RULES}


def test_the_runbook_has_a_section_for_each_alert():
    sections = re.findall(r"^### (\w+)$", PAGES["Runbook"].read_text(), re.MULTILINE)
    assert len(sections) == len(set(sections))
    named = {rule["annotations"]["runbook"].partition("#")[2] for rule in RULES}
    assert named == {section.lower() for section in sections}


def test_alerts_and_dashboards_name_real_metrics():
    listed = set(re.findall(r"^\| `([a-z_]+)` \| ", PAGES["Metrics"].read_text(), re.MULTILINE))
    named = {name for text in expressions() for name in re.findall(r"\b(?:pinfold|process)_\w+", text)}
    assert len(named) > 80
    assert {name for name in named
            if name not in listed and re.sub(r"_(bucket|sum|count)$", "", name) not in listed} == set()


def test_the_dashboards_are_what_is_declared():
    made = subprocess.run([sys.executable, MONITORING / "dashboards.py", "--check"], timeout=60)
    assert made.returncode == 0, "run deploy/monitoring/dashboards.py"
    assert [file.stem for file in DASHBOARDS] == ["cache", "fleet", "host", "overview", "pins"]


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_a_dashboard_is_one_to_grafana(file):
    """Read into Grafana's types and written again, nothing of it is lost."""
    register_default_plugins()
    text = json.loads(file.read_text())
    read = Dashboard.from_json(text)
    written = json.loads(JSONEncoder().encode(read))

    def lost(given, kept, place: str) -> list[str]:
        if isinstance(given, dict) and isinstance(kept, dict):
            return [one for key, value in given.items()
                    for one in lost(value, kept.get(key), f"{place}.{key}")]
        if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
            return [one for index, pair in enumerate(zip(given, kept))
                    for one in lost(*pair, f"{place}[{index}]")]
        return [] if given == kept else [f"{place}: {given!r} is {kept!r}"]

    assert lost(text, written, file.stem) == []
    ids = [panel["id"] for panel in text["panels"]]
    assert len(ids) == len(set(ids))
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in text["panels"]]
    assert len(places) == len(set(places))


# In a Prometheus


@pytest.fixture
def busy(fleet, origin, pki, authority):
    """A gateway with traffic of every kind, as long as the test lasts."""
    def answer(seen):
        control = "max-age=60" if "stored" in seen.target else "no-store"
        return reply(b"x" * 1000, "200 OK", f"Cache-Control: {control}")

    leaf, later = pki.root.issue(PINNED), pki.root.issue(OURS)
    good = origin(answer, tls=leaf.server_context())
    wrong = origin(answer, tls=pki.root.issue(PINNED).server_context())
    rogue = origin(answer, tls=pki.rogue_root.issue(PINNED).server_context())
    ours = origin(answer, tls=later.server_context())
    plain = origin(answer)
    closed = free_port()
    running, = fleet(1, {
        "workers": 2, "interception": authority.section,
        "tls": {"roots": [str(pki.root.pem_file)]},
        "hosts": [
            {"match": [PINNED], "name": "pinned", "upgrade": "https", "pinsets": ["right"]},
            {"match": [OURS], "name": "ours", "intercept": True},
            {"match": ["down.test"], "name": "down"}],
        "pinsets": {"right": {"mode": "publicKey", "pins": [leaf.pin, pki.intermediate.pin],
                              "expires": LATER}}})

    def everything() -> None:
        for port in (good.port, wrong.port, rogue.port):
            running.get(f"http://{PINNED}:{port}/")
        for _ in range(3):
            running.get(f"http://{PINNED}:{good.port}/stored")
            running.get(plain.url("/stored"))
        running.get(plain.url("/"))
        running.get(f"http://down.test:{closed}/")
        running.connect(plain.authority)[0].close()
        wire, refused = inside(running, OURS, ours.port)
        with wire:
            assert refused is None
            wire.ask(f"GET / HTTP/1.1\r\nHost: {OURS}:{ours.port}\r\nConnection: close\r\n\r\n")
        # One that does not trust the authority.
        wire, _ = running.connect(f"{OURS}:{ours.port}")
        with wire, contextlib.suppress(OSError):
            ssl.create_default_context().wrap_socket(wire.socket, server_hostname=OURS)

    stop = threading.Event()
    failures: list[BaseException] = []

    def go_on() -> None:
        try:
            while not stop.wait(0.2):
                everything()
        except (AssertionError, OSError, Closed) as error:
            failures.append(error)

    everything()
    thread = threading.Thread(target=go_on)
    thread.start()
    yield running
    stop.set()
    thread.join()
    assert failures == []


@pytest.fixture
def prometheus(busy, tmp_path):
    server = Prometheus(tmp_path, busy)
    yield server
    server.stop()


@pytest.mark.slow
def test_every_panel_shows_something_and_the_alerts_that_fit_are_pending_or_firing(prometheus):
    until(lambda: prometheus.values('up{job="pinfold"} == 1'), "it is scraped", 30)
    missing: dict[str, str] = {}

    def all_show_something() -> bool:
        missing.clear()
        for file in DASHBOARDS:
            asked = queries(file, instance=".*", host="pinned", __rate_interval="15s")
            missing.update({f"{file.stem}: {panel}": query for panel, query in asked.items()
                            if not prometheus.values(query)})
        return not missing

    until(all_show_something, lambda: json.dumps(missing, indent=1), 60)

    expected = {"PinfoldPinMismatch", "PinfoldServerNotTrusted", "PinfoldInterceptionRejected",
                "PinfoldServerUnreachable"}

    def seen() -> set[str]:
        return {rule["name"] for rule in prometheus.rules() if rule["state"] != "inactive"}

    until(lambda: expected <= seen(), lambda: f"alerts: {seen()}", 60)
    rules = prometheus.rules()
    assert {rule["name"] for rule in rules} == {rule["alert"] for rule in RULES}
    assert [rule for rule in rules if rule["health"] != "ok" or rule.get("lastError")] == []
    # Nothing else is wrong with it.
    assert seen() <= expected | {"PinfoldHostFails", "PinfoldWorkerSaturated"}
