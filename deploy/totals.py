"""Adds up JUnit reports and prints the closing line of a test run.

    totals.py STATUS FOLDER

STATUS is 0 if every runner succeeded so far. FOLDER holds the reports (`*.xml`). A runner that died
before it wrote its report, or a run in which a runner found no test, counts as one failure: nothing
that did not run is reported as passed.
"""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def count(report: Path) -> tuple[int, int, int]:
    """Returns (passed, failed, skipped) of one report."""
    suites = ElementTree.parse(report).getroot().iter("testsuite")
    tests = failed = skipped = 0
    for suite in suites:
        tests += int(suite.get("tests", 0))
        failed += int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        skipped += int(suite.get("skipped", 0) or 0)
    return tests - failed - skipped, failed, skipped


def main() -> int:
    status, folder = int(sys.argv[1]), Path(sys.argv[2])
    passed = failed = skipped = 0
    for report in sorted(folder.glob("*.xml")):
        one = count(report)
        if sum(one) > 0:
            print(f"{report.stem}: {one[0]} passed, {one[1]} failed, {one[2]} skipped")
        passed, failed, skipped = passed + one[0], failed + one[1], skipped + one[2]
    if passed + failed == 0 or (status != 0 and failed == 0):
        failed += 1
    tail = f", {skipped} skipped" if skipped else ""
    print(f"{passed} passed, {failed} failed{tail}", flush=True)
    return 1 if failed or status else 0


if __name__ == "__main__":
    sys.exit(main())
