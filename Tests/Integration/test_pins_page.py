"""The page Pins: what its commands print of a record is what it shows."""

from __future__ import annotations

import re
import shlex
import time
from datetime import date, timedelta
from pathlib import Path

import pytest
import yaml
from support.checkout import PAGES
from support.examples import agrees, sessions
from support.gateway import run_pinfold
from support.observed import DAY, key_pin, observed_certificate, observed_host, write_record

PAGE = PAGES["Pins"]
# The day on which the page's commands are said to have been run.
SHOWN = date(2026, 11, 30)

ENTRY = {"match": ["**.example.com"], "upgrade": "https", "pins": "observe"}
OBSERVING = {"cache": {"path": "cache"}, "hosts": [ENTRY]}
PINNED = {"cache": {"path": "cache"}, "pinsets": {
    "api.example.com": {"mode": "publicKey", "pins": [key_pin("CN=Example Issuing CA"),
                                                      key_pin("CN=Example Root")]},
    "legacy": {"mode": "publicKey", "pins": [key_pin("second")]}},
    "hosts": [
        {"match": ["api.example.com"], "pinsets": ["api.example.com"], "pins": "observe",
         "upgrade": "https"},
        {"match": ["legacy.example.com"], "pinsets": ["legacy"], "pins": "observe", "upgrade": "https"}]}


def hosts(now: int) -> dict[str, dict]:
    """What servers have shown: for 90 days, with a renewal in the middle, or only today."""
    issuing = observed_certificate("CN=Example Issuing CA", "CN=Example Root", now + 2000 * DAY)
    root = observed_certificate("CN=Example Root", "CN=Example Root", now + 3000 * DAY)
    begin, middle, end = now - 90 * DAY, now - 43 * DAY, now + 60 * DAY

    def chain(name: str, key: str, ends: int) -> list[dict]:
        return [observed_certificate(f"CN={name}", issuing["subject"], ends, key), issuing, root]

    def renewed(name: str, first: str, second: str, ends: int = end) -> dict:
        return observed_host(name, (chain(name, first, middle + DAY), begin, middle),
                             (chain(name, second, ends), middle, now))

    return {
        "api": renewed("api.example.com", "one", "two"),
        "shop": renewed("shop.example.com", "kept", "kept"),
        "new": observed_host("new.example.com", (chain("new.example.com", "new", end), now, now)),
        "legacy": renewed("legacy.example.com", "first", "second", now + 5 * DAY + DAY // 2)}


def write_files(folder: Path, config: dict, *names: str) -> None:
    (folder / "pinfold.yaml").write_text(yaml.safe_dump(config))
    found = hosts(int(time.time()))
    write_record(folder / "cache" / "observed-pins.sqlite", *(found[name] for name in names))


def as_shown(output: str) -> str:
    """With dates as if the command had been run on the page's day. Days are those of UTC."""
    shift = date.fromisoformat(time.strftime("%Y-%m-%d", time.gmtime())) - SHOWN

    def earlier(match: re.Match[str]) -> str:
        return str(date.fromisoformat(match[0]) - timedelta(days=shift.days))

    return re.sub(r"\b\d{4}-\d\d-\d\d\b", earlier, output)


CASES = {
    "pinfold pin observed": (OBSERVING, ["api", "new", "shop"], 0),
    "pinfold pin propose": (OBSERVING, ["api", "new", "shop"], 0),
    "pinfold pin status": (PINNED, ["api", "legacy"], 1),
}


@pytest.mark.parametrize("start", CASES)
def test_the_page_shows_what_commands_print(workspace, start):
    config, names, code = CASES[start]
    write_files(workspace, config, *names)
    (command, shown), = [one for one in sessions(PAGE) if one[0].startswith(start)]
    done = run_pinfold(*shlex.split(command)[1:], cwd=workspace)
    assert done.returncode == code, done.stderr
    agrees(as_shown(done.stderr + done.stdout), shown)
