"""The measurements of instructions.py: reads callgrind's profiles, checks the ceilings, and reports
the results."""

from __future__ import annotations

import collections
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path

# A ceiling is the measurement plus this. If a measurement is further below, the ceiling should be lower.
MARGIN = 0.03


class Failure(Exception):
    """Why a measurement could not be made or checked."""


def ceilings(text: str, loads: Iterable[str]) -> dict[str, int]:
    """Reads the ceilings in a file: a load and a number on each line; `#` begins a comment. Each of
    `loads` must have one."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or words[0] not in loads or not words[1].isdecimal():
            raise Failure(f"ceilings:{number}: expected a load ({', '.join(loads)}) and a number")
        if words[0] in found:
            raise Failure(f"ceilings:{number}: {words[0]} already has a ceiling")
        found[words[0]] = int(words[1])
    for name in loads:
        if name not in found:
            raise Failure(f"ceilings: {name} has no ceiling")
    return found


def complaint(load: str, measured: int, ceiling: int) -> str | None:
    """A message if a measurement is above its ceiling."""
    if measured <= ceiling:
        return None
    return (
        f"{load} takes {measured:,} instructions per request, {measured / ceiling - 1:.1%} above "
        f"its ceiling of {ceiling:,} in deploy/bench/ceilings. If this is justified, raise it to "
        f"{with_margin(measured)} and say why in the commit; use --profiles to see where they go.")


def hint(load: str, measured: int, ceiling: int) -> str | None:
    """A message if a measurement is further below its ceiling than the margin."""
    if with_margin(measured) >= ceiling * (1 - MARGIN):
        return None
    return f"{load} is well below its ceiling: lower it to {with_margin(measured)}."


def report(problems: dict[str, str | None]) -> str:
    """A JUnit report in which each load is a test, which failed if there is a problem with it."""
    suite = ElementTree.Element("testsuite", name="instructions")
    for load, problem in problems.items():
        case = ElementTree.SubElement(
            suite, "testcase", classname="deploy/bench/instructions", name=load)
        if problem:
            ElementTree.SubElement(case, "failure", message=problem)
    return ElementTree.tostring(suite, encoding="unicode")


def with_margin(measured: int) -> int:
    """The ceiling for a measurement, in tens."""
    return round(measured * (1 + MARGIN) / 10) * 10


def by_object(profile: str) -> dict[str, int]:
    """The instructions in each program or library of a callgrind profile, by file name.

    `ob=(1) /path` names the object that the following cost lines belong to; a later `ob=(1)` refers
    to the same object. The line after `calls=` has the cost of a callee, which is counted at the
    callee's own lines.
    """
    names: dict[str, str] = {}
    costs: collections.Counter[str] = collections.Counter()
    current, callee = "", False
    for line in profile.splitlines():
        if match := re.match(r"c?ob=\((\d+)\)(?: (.*))?", line):
            names.setdefault(match[1], Path(match[2] or "").name)
            if not line.startswith("c"):
                current = names[match[1]]
        elif line.startswith("calls="):
            callee = True
        elif match := re.match(r"[-+*\d]\d*(?: (\d+))?$", line):
            if not callee:
                costs[current] += int(match[1] or 0)
            callee = False
    total = re.search(r"^totals: (\d+)$", profile, re.MULTILINE)
    if total is None or int(total[1]) != costs.total():
        raise Failure(
            f"the profile's parts add up to {costs.total()}, but its total is {total and total[1]}")
    return dict(costs)
