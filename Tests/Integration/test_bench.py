"""deploy/bench/instructions: how it reads ceilings and profiles, and what it complains of."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from support.gateway import BINARY, ROOT

sys.path.insert(0, str(ROOT / "deploy/bench"))
import costs  # noqa: E402
import instructions  # noqa: E402

LOADS = list(instructions.LOADS)
CEILINGS = "# why\nhit 1000\nhit100k 2000 # more\n\npass 3000\ntlspass 4000\nlone 5000\n" \
    "ruled 6000\nproved 7000\nroute 8000\nbalance 9000\npaths 1\npathpass 2\n"

# What callgrind writes: names said once and then by number, a callee's object
# named at the call, costs by absolute and relative lines, and a call's cost, which is its callee's.
PROFILE = """\
# callgrind format
events: Ir
summary: 99

ob=(1) /opt/a b/pinfold
fl=(1) a.swift
fn=(1) $s7Gateway4main
10 5
+2 7
cob=(2) /usr/lib/libcrypto.so.3
cfn=(2) EVP_Cipher
calls=3 20
+1 40
* 8

ob=(2)
fn=(2)
20 40
cob=(3) /usr/lib/libc.so.6
cfn=(3) memcpy
calls=1 0
-4 2
ob=(3)
fn=(3)
0 2
ob=(1)
fn=(4) $s7Gateway3end
-3 1
+1

totals: 63
"""


def test_every_load_has_a_ceiling() -> None:
    file = ROOT / "deploy/bench/ceilings"
    assert costs.ceilings(file.read_text(), LOADS).keys() == set(LOADS)


def test_ceilings_are_read() -> None:
    assert costs.ceilings(CEILINGS, LOADS) == {
        "hit": 1000, "hit100k": 2000, "pass": 3000, "tlspass": 4000, "lone": 5000,
        "ruled": 6000, "proved": 7000, "route": 8000, "balance": 9000, "paths": 1, "pathpass": 2}


@pytest.mark.parametrize(("line", "problem"), [
    ("hot 1000", "ceilings:14: expected a load"),
    ("hit", "ceilings:14: expected a load"),
    ("hit 1,000", "ceilings:14: expected a load"),
    ("hit -5", "ceilings:14: expected a load"),
    ("hit 1 2", "ceilings:14: expected a load"),
    ("hit 1100", "ceilings:14: hit already has a ceiling"),
])
def test_a_line_that_is_no_ceiling_is_an_error(line: str, problem: str) -> None:
    with pytest.raises(costs.Failure, match=problem):
        costs.ceilings(CEILINGS + line, LOADS)


def test_a_missing_ceiling_is_an_error() -> None:
    with pytest.raises(costs.Failure, match="pass has no ceiling"):
        costs.ceilings(CEILINGS.replace("pass 3000\n", ""), LOADS)


def test_only_more_than_the_ceiling_is_a_complaint() -> None:
    assert costs.complaint("hit", 1000, 1000) is None
    complaint = costs.complaint("hit", 1100, 1000)
    assert "hit takes 1,100" in complaint and "10.0% above" in complaint
    assert "raise it to 1130" in complaint


def test_a_new_ceiling_is_neither_too_low_nor_too_high() -> None:
    for measured in (950, 8_484, 35_422):
        ceiling = costs.with_margin(measured)
        assert costs.complaint("hit", measured, ceiling) is None
        assert costs.hint("hit", measured, ceiling) is None


def test_a_load_that_became_cheaper_asks_for_a_lower_ceiling() -> None:
    assert "lower it to 930" in costs.hint("hit", 900, 1000)


def test_a_report_names_each_load_and_what_is_wrong_with_it() -> None:
    suite = ElementTree.fromstring(costs.report({"hit": None, "pass": "5 < 6 & \"more\""}))
    cases = list(suite.iter("testcase"))
    assert [case.get("name") for case in cases] == ["hit", "pass"]
    assert [[one.get("message") for one in case.iter("failure")] for case in cases] == [
        [], ['5 < 6 & "more"']]


def test_a_load_that_could_not_be_measured_has_failed(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_binary: Path, name: str, _profiles: Path | None, ceiling: int) -> int:
        if name == "hit":
            raise costs.Failure("the gateway ended")
        return ceiling + (name == "pass")

    monkeypatch.setattr(instructions, "run", run)
    monkeypatch.setattr(instructions, "stripped", contextlib.nullcontext)
    file = tmp_path / "report.xml"
    monkeypatch.setattr(
        sys, "argv", ["", "binary", "--loads", "hit,lone,pass", "--junitxml", str(file)])
    assert instructions.main() == 1
    cases = {case.get("name"): [one.get("message") for one in case]
             for case in ElementTree.parse(file).iter("testcase")}
    assert cases["hit"] == ["hit: the gateway ended"]
    assert cases["lone"] == []
    assert "above its ceiling" in cases["pass"][0]


def test_a_profile_is_divided_by_object_and_counts_each_cost_once() -> None:
    assert costs.by_object(PROFILE) == {"pinfold": 21, "libcrypto.so.3": 40, "libc.so.6": 2}


@pytest.mark.parametrize(
    "profile", [PROFILE.replace("totals: 63", "totals: 64"), "", PROFILE[:200]],
    ids=["another total", "empty", "cut off"])
def test_a_profile_whose_parts_are_not_its_total_is_an_error(profile: str) -> None:
    with pytest.raises(costs.Failure, match="its total is"):
        costs.by_object(profile)


def test_a_load_that_does_not_exist_is_refused_before_anything_starts() -> None:
    refused = subprocess.run(
        [sys.executable, ROOT / "deploy/bench/instructions.py", BINARY, "--loads", "hit,hot"],
        capture_output=True, text=True, timeout=30)
    assert refused.returncode == 2
    assert "unknown load hot; expected one of hit, lone, hit100k, pass, tlspass" in refused.stderr
