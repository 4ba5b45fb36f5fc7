"""The units in deploy/systemd, as systemd reads them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.gateway import BINARY, ROOT

UNITS = ROOT / "deploy/systemd"
DROP_INS = {
    "credentials.conf": "pinfold.service.d", "memory.conf": "pinfold.service.d",
    "no-capabilities.conf": "pinfold.service.d", "ports.conf": "pinfold.socket.d",
    "transparent.conf": "pinfold.service.d",
}
# The most exposure that `systemd-analyze security` may find, in tenths.
THRESHOLD = 20


@pytest.fixture
def analyze():
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed: the units are not verified")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60)

    return run


@pytest.fixture
def units(tmp_path) -> Path:
    """Copies of the units, with this gateway as their program."""
    for one in UNITS.glob("pinfold.*"):
        text = one.read_text().replace("/usr/bin/pinfold", str(BINARY))
        (tmp_path / one.name).write_text(text)
    return tmp_path


def verified(analyze, units: Path) -> str:
    done = analyze("verify", "--man=no", str(units / "pinfold.service"),
                   str(units / "pinfold.socket"))
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_systemd_has_nothing_against_the_units(analyze, units):
    assert verified(analyze, units) == ""


@pytest.mark.parametrize("name", DROP_INS)
def test_systemd_has_nothing_against_a_drop_in(analyze, units, name):
    folder = units / DROP_INS[name]
    folder.mkdir()
    shutil.copy(UNITS / "drop-ins" / name, folder)
    assert verified(analyze, units) == ""


def test_a_wrong_directive_would_be_found(analyze, units):
    with (units / "pinfold.service").open("a") as file:
        file.write("\n[Service]\nProtectSystme=strict\n")
    assert "ProtectSystme" in verified(analyze, units)


def test_every_drop_in_is_verified():
    assert {one.name for one in (UNITS / "drop-ins").iterdir()} == set(DROP_INS)


def test_the_service_is_little_exposed(analyze):
    done = analyze("security", "--offline=true", f"--threshold={THRESHOLD}", "--no-pager",
                   str(UNITS / "pinfold.service"))
    assert done.returncode == 0, done.stdout
    found = re.search(r"Overall exposure level for pinfold\.service: (\d+\.\d)", done.stdout)
    assert found is not None and float(found[1]) * 10 <= THRESHOLD


def test_no_other_capability_than_for_low_ports():
    text = (UNITS / "pinfold.service").read_text()
    for key in ("CapabilityBoundingSet", "AmbientCapabilities"):
        assert re.findall(rf"^{key}=(.*)$", text, re.M) == ["CAP_NET_BIND_SERVICE"]
