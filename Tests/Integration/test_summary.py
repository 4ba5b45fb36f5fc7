"""The end of a test run: what `deploy/summary.py` prints for made-up reports, and what is kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.gateway import ROOT

GREEN = '<testcase classname="A.BTests" name="fine()" time="0.1" />'
RED = """<testcase classname="A.BTests" name="one()" time="0.1">
  <failure message="Expectation failed: 1 == 2&#10;because" />
  <failure message="Expectation failed: 3 == 4" />
</testcase>"""
OFF = '<testcase classname="A.BTests" name="off()"><skipped>later</skipped></testcase>'
PYTHON = """<testcase classname="test_x" name="test_y[1]" time="0.1">
<failure message="AssertionError: not within 10 s">def test_y(value):
&gt;       until(value)
Tests/Integration/test_x.py:12:
_ _ _
Tests/Integration/support/wait.py:30: AssertionError</failure></testcase>"""


def report(*cases: str) -> str:
    # The attributes are wrong on purpose: the runners do not agree on what they count.
    return ('<?xml version="1.0"?><testsuites><testsuite name="n" tests="9" failures="7" skipped="5">'
            + "".join(cases) + "</testsuite></testsuites>")


def summary(folder: Path, status: int = 0, **files: str) -> tuple[int, list[str]]:
    """The exit code and the lines that are printed for a folder with these files (`_` for `.`)."""
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    done = subprocess.run(
        [sys.executable, str(ROOT / "deploy/summary.py"), str(status), str(folder)],
        capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def test_the_last_line_is_the_total(tmp_path: Path) -> None:
    code, lines = summary(tmp_path, swift_xml=report(GREEN, OFF), integration_xml=report(GREEN))
    assert code == 0
    assert lines[-1] == "2 passed, 0 failed, 1 skipped"
    assert "swift: 1 passed, 0 failed, 1 skipped" in lines
    assert f"logs and reports: {tmp_path.resolve()}" in lines
    assert not any("failed:" in line for line in lines)


def test_a_failed_swift_test_is_named_with_its_place_and_its_words(tmp_path: Path) -> None:
    identifier = "A.BTests/one()/BTests.swift:3:6"
    events = [
        {"kind": "test", "payload": {"id": identifier, "displayName": "one is two"}},
        {"kind": "event", "payload": {
            "kind": "issueRecorded", "testID": identifier,
            "issue": {"isKnown": True, "sourceLocation": {"fileID": "A/BTests.swift", "line": 4}}}},
        {"kind": "event", "payload": {
            "kind": "issueRecorded", "testID": identifier,
            "issue": {"isKnown": False, "sourceLocation": {"fileID": "A/BTests.swift", "line": 5}}}},
    ]
    text = "\n".join(json.dumps(one) for one in events) + '\n{"kind": "ev'
    code, lines = summary(tmp_path, 1, swift_xml=report(GREEN, RED), swift_events=text)
    assert code == 1
    assert ("  Tests/A/BTests.swift:5: A.BTests: one is two: Expectation failed: 1 == 2 because"
            in lines)
    assert lines[-1] == "1 passed, 1 failed"


def test_the_place_of_a_failed_swift_test_is_the_path_of_its_file(tmp_path: Path) -> None:
    identifier = "A.BTests/one()/ManifestTests.swift:3:6"
    location = {"fileID": "ArchitectureTests/ManifestTests.swift", "line": 7}
    events = [{"kind": "event", "payload": {
        "kind": "issueRecorded", "testID": identifier,
        "issue": {"isKnown": False, "sourceLocation": location}}}]
    _, lines = summary(
        tmp_path, 1, swift_xml=report(RED), swift_events="\n".join(map(json.dumps, events)))
    assert any(line.startswith("  Tests/Support/ArchitectureTests/ManifestTests.swift:7: ")
               for line in lines), lines


def test_without_events_a_failed_swift_test_is_named_by_its_function(tmp_path: Path) -> None:
    _, lines = summary(tmp_path, 1, swift_xml=report(RED))
    assert "  A.BTests: one(): Expectation failed: 1 == 2 because" in lines


def test_a_failed_python_test_is_named_with_its_own_line(tmp_path: Path) -> None:
    code, lines = summary(tmp_path, 1, swift_xml=report(GREEN), integration_xml=report(PYTHON))
    assert code == 1
    assert ("  Tests/Integration/test_x.py:12: test_x: test_y[1]: AssertionError: not within 10 s"
            in lines)


def test_a_test_that_fails_and_ends_badly_counts_once(tmp_path: Path) -> None:
    error = '<testcase classname="test_x" name="test_y[1]"><error message="left open" /></testcase>'
    _, lines = summary(tmp_path, 1, integration_xml=report(PYTHON, error))
    assert lines[-1] == "0 passed, 1 failed"


def test_a_message_with_hundreds_of_numbers_is_cut(tmp_path: Path) -> None:
    numbers = ", ".join(map(str, range(256)))
    case = f'<testcase classname="A.B" name="c()"><failure message="[{numbers}]" /></testcase>'
    _, lines = summary(tmp_path, 1, swift_xml=report(case))
    assert all(len(line) <= 310 for line in lines)


def test_a_runner_that_died_is_a_failure_and_its_last_words_are_shown(tmp_path: Path) -> None:
    code, lines = summary(
        tmp_path, 1, swift_xml='<?xml version="1.0"?>\n<testsuites>\n',
        swift_log="many\n" * 20 + "P.swift:3: Fatal error: ouch\n", integration_xml=report(GREEN))
    assert code == 1
    assert "  swift ended before its report was complete" in lines
    assert "    P.swift:3: Fatal error: ouch" in lines
    assert lines[-1] == "1 passed, 1 failed"


@pytest.mark.parametrize("status, cases", [(1, [GREEN]), (0, []), (0, [OFF])])
def test_what_did_not_run_is_not_passed(tmp_path: Path, status: int, cases: list[str]) -> None:
    code, lines = summary(tmp_path, status, swift_xml=report(*cases))
    assert code == 1
    assert lines[-1].startswith(f"{len([one for one in cases if one == GREEN])} passed, 1 failed")


def again(folder: Path, text: str) -> None:
    (folder / "again").mkdir()
    (folder / "again" / "integration.xml").write_text(text)


def test_what_passes_alone_is_listed_but_no_failure(tmp_path: Path) -> None:
    again(tmp_path, report('<testcase classname="test_x" name="test_y[1]" />'))
    code, lines = summary(tmp_path, 0, swift_xml=report(GREEN), integration_xml=report(PYTHON))
    assert code == 0
    assert lines[-1] == "2 passed, 0 failed, 1 only alone"
    listed = lines.index("failed beside others, and passed alone:") + 1
    assert lines[listed].startswith("  Tests/Integration/test_x.py:12: test_x: test_y[1]: ")


@pytest.mark.parametrize("second", [report(PYTHON), report(), "<?xml"])
def test_what_fails_or_does_not_run_again_is_a_failure(tmp_path: Path, second: str) -> None:
    again(tmp_path, second)
    code, lines = summary(tmp_path, 1, swift_xml=report(GREEN), integration_xml=report(PYTHON))
    assert code == 1
    assert lines[-1] == "1 passed, 1 failed"


@pytest.mark.parametrize("number, expected", [
    (1, ["Tests/Integration/test_x.py::test_y[1]"]),
    (3, [f"Tests/Integration/test_x.py::test_y[{one}]" for one in (1, 2, 3)]), (4, [])])
def test_a_few_failed_tests_are_run_again(
        tmp_path: Path, number: int, expected: list[str]) -> None:
    failed = [PYTHON.replace("[1]", f"[{one + 1}]") for one in range(number)]
    (tmp_path / "integration.xml").write_text(report(*failed))
    done = subprocess.run(
        [sys.executable, str(ROOT / "deploy/summary.py"), "--again", str(tmp_path)],
        capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == expected


@pytest.mark.parametrize("text", ["<?xml", report(), report(GREEN)])
def test_nothing_is_run_again_where_no_test_failed(tmp_path: Path, text: str) -> None:
    (tmp_path / "integration.xml").write_text(text)
    done = subprocess.run(
        [sys.executable, str(ROOT / "deploy/summary.py"), "--again", str(tmp_path)],
        capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == ""


def test_a_run_without_any_report_fails(tmp_path: Path) -> None:
    assert summary(tmp_path)[1][-1] == "0 passed, 1 failed"


def environment(**added: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items()
            if not name.startswith("PYTEST_")} | added


def test_the_gateways_of_a_failed_test_are_kept(tmp_path: Path) -> None:
    """A run of this run's own, with one test that fails and one that does not."""
    integration = Path(__file__).parent
    (tmp_path / "tests").mkdir()
    for name in ("conftest.py", "support"):
        (tmp_path / "tests" / name).symlink_to(integration / name)
    (tmp_path / "tests/test_made_up.py").write_text(
        "def test_red(gateway):\n    gateway()\n    assert False\n\n"
        "def test_green(gateway):\n    gateway()\n")
    results = tmp_path / "results"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", str(tmp_path / "tests")],
        cwd=tmp_path, capture_output=True, text=True, timeout=100,
        env=environment(PINFOLD_TEST_RESULTS=str(results)))
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    kept = {file.relative_to(results).as_posix() for file in results.rglob("*") if file.is_file()}
    folder = "gateways/test_made_up-test_red/gateway-0"
    assert {f"{folder}/stderr.log", f"{folder}/pinfold.yaml"} <= kept
    assert all(name.startswith(folder) for name in kept)
    assert "listening" in (results / folder / "stderr.log").read_text()
