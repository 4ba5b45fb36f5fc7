"""deploy/fleet-simulation: its model agrees with what can be calculated."""

from __future__ import annotations

import subprocess

import pytest
from support.gateway import ROOT
from support.wait import SLOWDOWN


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(SLOWDOWN > 1, reason="nothing of it is built with the sanitizer")
def test_the_simulated_fleet_agrees_with_the_closed_form():
    done = subprocess.run([str(ROOT / "deploy/fleet-simulation"), "--check"], capture_output=True,
                          text=True, timeout=300)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(lines) == 6 and all(line.startswith("right: ") for line in lines), lines
