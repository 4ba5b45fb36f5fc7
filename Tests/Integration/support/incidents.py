"""Whoever is called when something goes wrong: the commands that they type, and the alerts that call
them."""

from __future__ import annotations

import json
import math
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from .gateway import BINARY, Gateway
from .monitoring import ALERTS
from .wait import SLOWDOWN, until
from .wire import Closed

RULES = {rule["alert"]: rule for group in yaml.safe_load(ALERTS.read_text())["groups"]
         for rule in group["rules"]}
# What a busy machine makes of the tests themselves is no part of an incident.
_OF_THE_MACHINE = ("pinfold_worker_", "process_start_")
_NAMED = {name for rule in RULES.values()
          for name in re.findall(r"\b(?:pinfold|process)_\w+", rule["expr"])
          if not name.startswith(_OF_THE_MACHINE)}


def crowd(running: Gateway, urls: Sequence[str], clients: int = 4, each: int = 6) -> list[int]:
    """What so many clients at a time are answered who ask for these in turn; 0 is no answer."""
    def one(index: int) -> list[int]:
        seen = []
        for number in range(each):
            try:
                seen.append(running.get(urls[(index + number) % len(urls)]).status)
            except (OSError, Closed):
                seen.append(0)
        return seen

    with ThreadPoolExecutor(clients) as threads:
        return [status for seen in threads.map(one, range(clients)) for status in seen]


def fields(line: str) -> dict[str, str]:
    """The level, the message and the fields of a line of the operational log."""
    found = {name: quoted or plain
             for name, quoted, plain in re.findall(r'(\w+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))', line)}
    _, level, rest = line.split(" ", 2)
    return found | {"level": level, "message": re.split(r" \w+=", rest)[0]}


def has(found: dict, **wanted: object) -> bool:
    """Whether these are among what was found."""
    return wanted.items() <= found.items()


class Operator:
    """Types commands in the gateway's folder; `commands` has those that were needed."""

    def __init__(self, running: Gateway):
        self.running = running
        self.commands: list[str] = []

    def run(self, command: str) -> str:
        """What a line of the shell prints, on standard error as well."""
        self.commands.append(command)
        done = subprocess.run(
            ["sh", "-c", command.replace("pinfold ", f"{shlex.quote(str(BINARY))} ", 1)
             if command.startswith("pinfold ") else command],
            cwd=self.running.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, timeout=20 * min(SLOWDOWN, 4))
        return done.stdout

    def status(self) -> str:
        return self.run("pinfold status --config pinfold.yaml")

    def explain(self, url: str) -> str:
        return self.run(f"pinfold explain {url} --connect --config pinfold.yaml")

    def metrics(self, pattern: str) -> str:
        return self.run("curl -s --unix-socket admin.sock http://localhost/metrics"
                        f" | grep -E {shlex.quote(pattern)}")

    def log(self, pattern: str) -> str:
        return self.run(f"grep -E {shlex.quote(pattern)} stderr.log")

    def api(self, path: str) -> dict:
        """What a panel of the live page shows. No command: whoever looks at the page types none."""
        answer = self.running.admin_get(f"/api/v1/{path}")
        assert answer.status == 200, answer.body
        return answer.json()

    def waits_for(self, path: str, find: Callable[[dict], object]) -> object:
        """The same once it shows what is looked for."""
        return until(lambda: find(self.api(path)),
                     lambda: json.dumps(self.api(path), indent=1)[:6000])


def fires(
    folder: Path, before: dict[str, float], after: dict[str, float],
    **expected: dict[str, str] | list[dict[str, str]]
) -> None:
    """Exactly these alerts fire, with these labels of their own, if the incident goes on for half
    an hour as it was between two readings of the metrics. The rules are those that are shipped,
    and Prometheus's own evaluation says it."""
    now = time.time()
    series = []
    for name in sorted(before | after):
        base, _, labels = name.partition("{")
        value = after.get(name)
        if base not in _NAMED or value is None or not math.isfinite(value):
            continue
        first = before.get(name)
        step = value - (first or 0) if base.endswith(("_total", "_bucket", "_count", "_sum")) else 0
        if base.endswith("_timestamp_seconds"):
            # There it is 1970.
            value, first = value - now, None if first is None else first - now
        series.append({
            "series": f'{base}{{job="pinfold",instance="gw"' + ("," + labels if labels else "}"),
            "values": ("_x30" if first is None else f"{first!r}x30") + f" {value!r}+{step!r}x30"})
    firing = 'ALERTS{alertstate="firing"}'
    tests = [{"expr": f"group by (alertname) ({firing})", "eval_time": "60m", "exp_samples": [
        {"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in sorted(expected)]}]
    for alert, own in expected.items():
        common = {"alertname": alert, "alertstate": "firing", "instance": "gw", "job": "pinfold",
                  **RULES[alert]["labels"]}
        texts = [",".join(f"{key}={json.dumps(value)}" for key, value in (common | one).items())
                 for one in (own if isinstance(own, list) else [own])]
        tests.append({"expr": f'ALERTS{{alertstate="firing",alertname="{alert}"}}',
                      "eval_time": "60m",
                      "exp_samples": [
                          {"labels": f"ALERTS{{{text}}}", "value": 1} for text in texts]})
    file = folder / "incident.test.yaml"
    file.write_text(yaml.safe_dump({
        "rule_files": [str(ALERTS)], "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": tests}]}))
    done = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
