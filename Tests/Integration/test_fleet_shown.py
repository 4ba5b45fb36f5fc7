"""deploy/fleet, in its short forms: what it shows is as it says, and a minute of the soak loses nothing."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from support.gateway import BINARY, ROOT
from support.wait import SLOWDOWN


def run(*arguments: str, timeout: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(ROOT / "deploy/fleet"), *arguments, "--binary", str(BINARY)], text=True,
                          capture_output=True, timeout=timeout * min(SLOWDOWN, 4), env=os.environ)


@pytest.mark.slow
def test_a_fleet_shows_hits_purges_and_policies_across():
    done = run("--check", timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    steps = re.findall(r"(?m)^(\w+): as expected$", done.stdout)
    assert steps == ["start", "hit", "purge", "without", "policy"], done.stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_short_soak_of_a_fleet_loses_nothing():
    done = run("--soak", "0.3", timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    requests, hits = re.search(r"([\d,]+) requests \(\d+/s\), ([\d,]+) hits, 0 failed, 0 wrong", done.stdout).groups()
    assert int(requests.replace(",", "")) > int(hits.replace(",", "")) > 100, done.stdout
    assert re.search(r"(?m)^[1-9]\d* faults \(", done.stdout), done.stdout
