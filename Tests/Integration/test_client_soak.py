"""deploy/client-soak, in its short form: requests with faults of every kind each end once, as they must, and
leave nothing behind."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support import outside, pki
from support.gateway import ROOT

# Without a debug build of the tests, the library is compiled first.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def program() -> Path:
    return outside.build() / "faulty-requests"


def soak(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "deploy/client_soak.py", program, *arguments], capture_output=True,
        text=True, timeout=600)


def test_requests_with_faults_end_once_and_leave_nothing(program: Path) -> None:
    ran = soak(program, "--requests", "3000", "--rounds", "2")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "wrong" not in ran.stdout
    assert "\n3000 calls, 0 problems\n" in ran.stdout
    # Every kind of end was seen, and the server has served what it was asked for.
    ends = re.search(r"^ends: (.*)$", ran.stdout, re.MULTILINE)
    assert ends, ran.stdout
    kinds = {end.split()[-1] for end in ends[1].split(", ")}
    assert kinds >= {
        "right", "left", "cancelled", "connectionLost", "badResponse", "cannotConnect", "timedOut",
        "secureConnectionFailed", "contentFailed", "contentUndecodable"}
    served = re.search(r"^the server has served: (.*)$", ran.stdout, re.MULTILINE)
    assert served and {"junk", "goaway", "reset-body", "slow-head", "mute"} <= {
        one.split()[-1] for one in served[1].split(", ")}


def test_a_call_that_ends_otherwise_than_its_fault_allows_is_told(program: Path, tmp_path: Path) -> None:
    # Nobody listens there, so that not even what must succeed does.
    names = [
        "plain", "tls", "h2", "lossy", "junk", "fickle", "fickleTLS", "unknown", "misnamed", "expired",
        "hangup", "garbage", "mute", "refused", "full"]
    anchors = tmp_path / "anchors.pem"
    anchors.write_bytes(pki.root(tmp_path, "soak").pem)
    files = tmp_path / "files"
    files.mkdir()
    ran = subprocess.run(
        [program, "--anchors", anchors, "--folder", files, "--requests", "50", "--rounds", "1",
         "--fault", "whole", ",".join(f"{name}=1" for name in names)],
        capture_output=True, text=True, timeout=300)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    assert re.search(r"^wrong: call \d+: whole of .* ended with cannotConnect", ran.stdout, re.MULTILINE)
