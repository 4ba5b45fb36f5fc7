"""Summarizes a test run: adds up the reports of the runners, and lists the failed tests.

    summary.py STATUS FOLDER

STATUS is 0 if every runner succeeded so far. FOLDER has, for each runner, its JUnit report
(`swift.xml`), its output (`swift.log`) and, for Swift, the events (`swift.events`), which have the
source location of issues. The last line is the total. A runner that died before its report was
complete counts as a failure, and so does a run without any tests: nothing that did not run is
reported as passed.

A few failed tests may have been run again, alone (`again/integration.xml`). Those that passed then
are not counted as failed, but always listed: they depend on what runs beside them.

    summary.py --again FOLDER

prints which tests to run again, one a line, as pytest names them; none if there are more than a few.
"""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

# The maximum number of failed tests that are listed.
NAMED = 50
# The maximum number of failed tests that are run again: more of them have a reason in common.
AGAIN = 3
# The maximum length of a line, since messages may contain whole arguments.
WIDTH = 300


@dataclass
class Report:
    """The report of one runner."""

    runner: str
    passed: int = 0
    skipped: int = 0
    # A line for each failed test, by name.
    failed: dict[str, str] = field(default_factory=dict)
    # The same for those that passed when they were run again.
    unstable: dict[str, str] = field(default_factory=dict)
    # The names of all.
    tests: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        return (f"{self.runner}: {self.passed} passed, {len(self.failed)} failed, "
                f"{self.skipped} skipped")


def one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else line[: WIDTH - 1] + "…"


def events(file: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The display names of Swift tests, and the locations of their first issues, both by
    `Target.Suite/function()`."""
    names: dict[str, str] = {}
    places: dict[str, str] = {}
    lines = file.read_text(errors="replace").splitlines() if file.exists() else []
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:  # an incomplete last line, if the runner died
            continue
        payload = record.get("payload", {})
        if record.get("kind") == "test" and payload.get("displayName"):
            names[test_of(payload["id"])] = payload["displayName"]
        issue = payload.get("issue")
        if payload.get("kind") == "issueRecorded" and issue and not issue.get("isKnown"):
            place = issue.get("sourceLocation")
            if place:
                places.setdefault(
                    test_of(payload.get("testID", "")),
                    f"{test_file(place['fileID'])}:{place['line']}")
    return names, places


def test_file(identifier: str) -> str:
    """The path of `Target/File.swift`: a target is a folder of a room of Tests, and its files may be
    in folders of it."""
    target, _, name = identifier.partition("/")
    root = Path(__file__).resolve().parents[1]
    found = sorted(root.glob(f"Tests/*/{target}/**/{name}"))
    return str(found[0].relative_to(root)) if found else f"Tests/{identifier}"


def test_of(identifier: str) -> str:
    """`Target.Suite/function()` of `Target.Suite/function()/File.swift:3:6`."""
    return re.sub(r"/[^/]+\.swift:\d+:\d+$", "", identifier)


def place_in(traceback: str) -> str:
    """The last location in a test file in a Python traceback, or else in any file."""
    places = re.findall(r"^(\S+\.py:\d+):", traceback, re.MULTILINE)
    own = [place for place in places if Path(place).name.startswith("test_")]
    return (own or places or [""])[-1]


def read(file: Path) -> Report:
    """Reads `RUNNER.xml` and the files beside it. Counts the tests one by one, because the runners
    disagree on what the counts of a suite include."""
    report = Report(file.stem)
    try:
        root = ElementTree.parse(file).getroot()
    except (ElementTree.ParseError, OSError):
        tail = last_lines(file.with_suffix(".log"))
        report.failed[file.stem] = f"{file.stem} ended before its report was complete{tail}"
        return report
    names, places = events(file.with_suffix(".events"))
    cases: dict[tuple[str, str], list[ElementTree.Element]] = {}
    for case in root.iter("testcase"):
        key = (case.get("classname", ""), case.get("name", ""))
        cases.setdefault(key, []).extend(case)
    for (suite, name), outcomes in cases.items():
        failures = [one for one in outcomes if one.tag in ("failure", "error")]
        test = f"{suite}/{name}"
        report.tests.add(test)
        if failures:
            first = failures[0]
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
    """The last lines of a runner's output."""
    lines = log.read_text(errors="replace").split("\n") if log.exists() else []
    return "".join(f"\n    {one_line(line)}" for line in [one for one in lines if one.strip()][-5:])


def consider_second_run(report: Report, file: Path) -> None:
    """Takes what passed in a second run out of the failures."""
    if not file.exists():
        return
    second = read(file)
    for test in [one for one in report.failed if one in second.tests - set(second.failed)]:
        report.unstable[test] = report.failed.pop(test)
        report.passed += 1


def print_tests_to_run_again(folder: Path) -> None:
    report = read(folder / "integration.xml")
    if len(report.failed) > AGAIN or not report.tests.issuperset(report.failed):
        return
    for test in report.failed:
        suite, _, name = test.partition("/")  # `test_x[.Class]/test_y[a/b]`
        file, *classes = suite.split(".")
        print("::".join([f"Tests/Integration/{file}.py", *classes, name]))


def main() -> int:
    if sys.argv[1] == "--again":
        print_tests_to_run_again(Path(sys.argv[2]))
        return 0
    status, folder = int(sys.argv[1]), Path(sys.argv[2])
    reports = [read(file) for file in sorted(folder.glob("*.xml"))]
    for report in reports:
        consider_second_run(report, folder / "again" / f"{report.runner}.xml")
        print(report)
    passed = sum(report.passed for report in reports)
    skipped = sum(report.skipped for report in reports)
    failed = [text for report in reports for text in report.failed.values()]
    if not failed and (status != 0 or passed == 0):
        failed = ["a runner failed without naming a test, or found no tests: see its log"]
    if failed:
        print("\nfailed:")
        print("\n".join(f"  {text}" for text in failed[:NAMED]))
        if len(failed) > NAMED:
            print(f"  and {len(failed) - NAMED} more")
    unstable = [text for report in reports for text in report.unstable.values()]
    if unstable:
        print("\nfailed beside others, and passed alone:")
        print("\n".join(f"  {text}" for text in unstable))
    print(f"\nlogs and reports: {folder.resolve()}")
    tail = f", {skipped} skipped" if skipped else ""
    tail += f", {len(unstable)} only alone" if unstable else ""
    print(f"{passed} passed, {len(failed)} failed{tail}", flush=True)
    return 1 if failed or status else 0


if __name__ == "__main__":
    sys.exit(main())
