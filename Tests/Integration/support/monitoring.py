"""A Prometheus that scrapes a gateway, with the alerts and dashboards of deploy/monitoring."""

from __future__ import annotations

import json
import math
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import yaml

from .gateway import ROOT, Gateway, free_port
from .servers import Server
from .wait import until

MONITORING = ROOT / "deploy/monitoring"
ALERTS = MONITORING / "alerts.yaml"
DASHBOARDS = sorted((MONITORING / "dashboards").glob("*.json"))


class Prometheus(Server):
    """It scrapes the gateway, and evaluates the alerts, every second."""

    def __init__(self, folder: Path, running: Gateway):
        config = folder / "prometheus.yaml"
        config.write_text(yaml.safe_dump({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(ALERTS)],
            "scrape_configs": [{"job_name": "pinfold", "static_configs": [
                {"targets": ["%s:%d" % running.admin]}]}]}))
        port = free_port()
        super().__init__(folder, port, [
            "prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}"])
        until(self._is_ready, "Prometheus is ready", 30)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(self.url("/-/ready"), timeout=20) as answer:
                return answer.status == 200
        except urllib.error.HTTPError:
            return False

    def get(self, path: str, **parameters: str) -> dict:
        """The data of an answer of the API."""
        url = self.url(f"/api/v1/{path}?{urllib.parse.urlencode(parameters)}")
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def values(self, expression: str) -> list[float]:
        """What a query finds now, without what is not a number."""
        data = self.get("query", query=expression)
        if data["resultType"] == "scalar":
            return [float(data["result"][1])]
        return [value for one in data["result"]
                if not math.isnan(value := float(one["value"][1]))]

    def rules(self) -> list[dict]:
        return [rule for group in self.get("rules")["groups"] for rule in group["rules"]]


def queries(dashboard: Path, **variables: str) -> dict[str, str]:
    """The queries of a dashboard by panel and legend, with what Grafana replaces in them."""
    found = {}
    for panel in json.loads(dashboard.read_text())["panels"]:
        for target in panel.get("targets", []):
            text = target["expr"]
            for name, value in variables.items():
                text = text.replace(f"${name}", value)
            found[f"{panel['title']}, {target['legendFormat']}"] = text
    return found
