"""deploy/purges, in its quick form: nothing comes back that was purged."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from support.gateway import BINARY, ROOT
from support.wait import SLOWDOWN


@pytest.mark.slow
def test_nothing_comes_back_that_was_purged(tmp_path):
    done = subprocess.run(
        [str(ROOT / "deploy/purges"), "--quick", "--binary", str(BINARY),
         "--folder", str(tmp_path)],
        text=True, capture_output=True, timeout=60 * SLOWDOWN, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.search(r"3 kills, 3 restarts: ([\d,]+) requests checked, ([\d,]+) served from the "
                      r"cache, 0 wrong", done.stdout)
    assert found, done.stdout
    checked, served = (int(text.replace(",", "")) for text in found.groups())
    assert checked > served > 0
