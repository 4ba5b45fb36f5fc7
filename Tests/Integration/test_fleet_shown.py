"""deploy/fleet: what it shows is what the page prints, and a short soak loses nothing."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from support.checkout import PAGES
from support.examples import agrees, blocks
from support.gateway import BINARY, ROOT
from support.wait import SLOWDOWN


def run(*arguments: str, timeout: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(ROOT / "deploy/fleet"), *arguments, "--binary", str(BINARY)], text=True,
                          capture_output=True, timeout=timeout * min(SLOWDOWN, 4), env=os.environ)


def plain(text: str) -> str:
    """Without what is another one each time."""
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", text)
    text = re.sub(r"--port \d+", "--port PORT", text)
    return re.sub(r"(?m)^(Age: )\d+|\b(ttl=)\d+", lambda found: (found[1] or found[2]) + "N", text)


@pytest.mark.slow
def test_a_fleet_shows_hits_purges_and_policies_across():
    done = run("--check", timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    page = next(block.text for block in blocks(PAGES["SharedCache"]) if block.text.startswith("# An engine"))
    agrees(plain(done.stdout).lstrip("\n"), plain(page).splitlines())
    # Serial 1 refused DELETE, serial 2 refused PUT as well, and was taken back.
    refused = re.findall(r"(?m)^# (\w+) is refused by: (.+)$", done.stdout)
    assert refused == [
        ("DELETE", "berlin, lyon, oslo"), ("PUT", "lyon"), ("PUT", "berlin, lyon, oslo"),
        ("DELETE", "berlin, lyon, oslo"), ("PUT", "none of them")], done.stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_short_soak_of_a_fleet_loses_nothing():
    done = run("--soak", "0.3", timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    requests, hits = re.search(
        r"([\d,]+) requests \(\d+/s\), ([\d,]+) hits, 0 failed, 0 wrong", done.stdout).groups()
    assert int(requests.replace(",", "")) > int(hits.replace(",", "")) > 100, done.stdout
    assert re.search(r"(?m)^[1-9]\d* faults \(", done.stdout), done.stdout
