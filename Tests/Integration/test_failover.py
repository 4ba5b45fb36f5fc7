"""The trial of failover in deploy/failover, with few requests."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.gateway import BINARY, ROOT
from support.wait import SLOWDOWN


@pytest.mark.slow
def test_nothing_is_lost_or_repeated_when_servers_fail():
    done = subprocess.run(
        [sys.executable, str(ROOT / "deploy/failover.py"), "--binary", str(BINARY), "--requests", "4000"],
        text=True, capture_output=True, timeout=60 * SLOWDOWN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing was lost or repeated" in done.stdout
