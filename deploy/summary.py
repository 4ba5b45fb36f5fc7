"""The end of a test run: adds up what the runners reported, and names what failed.

    summary.py STATUS FOLDER

STATUS is 0 if every runner succeeded so far. FOLDER holds, by runner, its JUnit report
(`swift.xml`), its output (`swift.log`) and, from Swift, the events (`swift.events`), which say
where an issue was recorded. The last line is the total. A runner that died before its report was
whole, or a run in which no test was found, counts as one failure: nothing that did not run is
reported as passed.
"""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

# Failed tests that are named; a run with more is wrong from end to end.
NAMED = 50
# Characters of a line; messages may show whole arguments.
WIDTH = 300


@dataclass
class Report:
    """What one runner reported."""

    runner: str
    passed: int = 0
    skipped: int = 0
    # One text for each failed test, by its name.
    failed: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return (f"{self.runner}: {self.passed} passed, {len(self.failed)} failed, "
                f"{self.skipped} skipped")


def one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


def events(file: Path) -> tuple[dict[str, str], dict[str, str]]:
    """By a Swift test's `Target.Suite/function()`: its name in words, and where its first issue
    is."""
    names: dict[str, str] = {}
    places: dict[str, str] = {}
    lines = file.read_text(errors="replace").splitlines() if file.exists() else []
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:  # the last one of a runner that died
            continue
        payload = record.get("payload", {})
        if record.get("kind") == "test" and payload.get("displayName"):
            names[test_of(payload["id"])] = payload["displayName"]
        issue = payload.get("issue")
        if payload.get("kind") == "issueRecorded" and issue and not issue.get("isKnown"):
            place = issue.get("sourceLocation")
            if place:
                # `Target/File.swift`: targets are folders of Tests.
                places.setdefault(
                    test_of(payload.get("testID", "")), f"Tests/{place['fileID']}:{place['line']}")
    return names, places


def test_of(identifier: str) -> str:
    """`Target.Suite/function()` of `Target.Suite/function()/File.swift:3:6`."""
    return re.sub(r"/[^/]+\.swift:\d+:\d+$", "", identifier)


def place_in(traceback: str) -> str:
    """The last line of a test that a Python traceback names, else of any file."""
    places = re.findall(r"^(\S+\.py:\d+):", traceback, re.MULTILINE)
    own = [place for place in places if Path(place).name.startswith("test_")]
    return (own or places or [""])[-1]


def read(file: Path) -> Report:
    """Reads `RUNNER.xml`, with what lies beside it. The tests are counted one by one: the runners
    do not agree on what the attributes of a suite count."""
    report = Report(file.stem)
    try:
        root = ElementTree.parse(file).getroot()
    except (ElementTree.ParseError, OSError):
        tail = last_lines(file.with_suffix(".log"))
        report.failed[file.stem] = f"{file.stem} ended before its report was whole{tail}"
        return report
    names, places = events(file.with_suffix(".events"))
    cases: dict[tuple[str, str], list[ElementTree.Element]] = {}
    for case in root.iter("testcase"):
        key = (case.get("classname", ""), case.get("name", ""))
        cases.setdefault(key, []).extend(case)
    for (suite, name), outcomes in cases.items():
        failures = [one for one in outcomes if one.tag in ("failure", "error")]
        if failures:
            first = failures[0]
            test = f"{suite}/{name}"
            place = places.get(test) or place_in(first.text or "")
            words = names.get(test, name)
            message = first.get("message", "")
            report.failed[test] = one_line(
                f"{place + ': ' if place else ''}{suite}: {words}: {message}")
        elif any(one.tag == "skipped" for one in outcomes):
            report.skipped += 1
        else:
            report.passed += 1
    return report


def last_lines(log: Path) -> str:
    """What a runner said last."""
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    return "".join(f"\n    {one_line(line)}" for line in [one for one in lines if one.strip()][-5:])


def main() -> int:
    status, folder = int(sys.argv[1]), Path(sys.argv[2])
    reports = [read(file) for file in sorted(folder.glob("*.xml"))]
    for report in reports:
        print(report)
    passed = sum(report.passed for report in reports)
    skipped = sum(report.skipped for report in reports)
    failed = [text for report in reports for text in report.failed.values()]
    if not failed and (status != 0 or passed == 0):
        failed = ["a runner failed, or found no test, and names none: see its log"]
    if failed:
        print("\nfailed:")
        print("\n".join(f"  {text}" for text in failed[:NAMED]))
        if len(failed) > NAMED:
            print(f"  and {len(failed) - NAMED} more")
    print(f"\nlogs and reports: {folder.resolve()}")
    tail = f", {skipped} skipped" if skipped else ""
    print(f"{passed} passed, {len(failed)} failed{tail}", flush=True)
    return 1 if failed or status else 0


if __name__ == "__main__":
    sys.exit(main())
