"""deploy/crash, in its quick form: what is served after kills, power failures and full disks."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from support.gateway import BINARY, ROOT
from support.wait import SLOWDOWN


@pytest.mark.slow
def test_nothing_wrong_is_served_after_crashes(tmp_path):
    done = subprocess.run(
        [str(ROOT / "deploy/crash"), "--quick", "--binary", str(BINARY), "--folder", str(tmp_path)],
        text=True, capture_output=True, timeout=60 * SLOWDOWN, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = re.findall(
        r"(?m)^(kill|hand|power|full): 2 runs, ([\d,]+) requests checked, ([\d,]+) served "
        r"from the cache, 0 wrong", done.stdout)
    assert [kind for kind, _, _ in lines] == ["kill", "hand", "power", "full"], done.stdout
    for kind, checked, served in lines:
        assert int(checked.replace(",", "")) > int(served.replace(",", "")) > 0, kind
    survived = re.findall(r"([\d,]+) of them had survived", done.stdout)
    assert len(survived) == 3 and "0" not in survived, done.stdout


def test_full_says_that_it_needs_root(tmp_path):
    # Root without the capability to mount is like anybody else.
    prefix = ["setpriv", "--bounding-set=-sys_admin"] if os.geteuid() == 0 else []
    done = subprocess.run(
        [*prefix, str(ROOT / "deploy/crash"), "--only", "full", "--binary", str(BINARY),
         "--folder", str(tmp_path)], text=True, capture_output=True, timeout=60 * SLOWDOWN)
    assert done.returncode == 1
    assert "it needs root" in done.stderr
