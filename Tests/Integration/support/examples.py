"""The code blocks that README and the pages with examples print."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import yaml

from .checkout import PAGES
from .gateway import ROOT

README = ROOT / "README.md"

# Where each configuration and each printed command has to work as it stands.
EXAMPLES = [README, *(PAGES[name] for name in (
    "Running", "Examples", "Pins", "Trust", "Tunnels", "Interception", "Troubleshooting",
    "CommandLine"))]


class Block(NamedTuple):
    """A fenced code block: its page, the heading above it, its language and its text."""

    page: Path
    heading: str
    language: str
    text: str


def blocks(*pages: Path) -> list[Block]:
    """The fenced code blocks of pages, by default of all with examples."""
    found = []
    for page in pages or EXAMPLES:
        pattern = r"^#+ (?P<heading>[^\n]*)$|^```(?P<language>\w*)\n(?P<text>.*?)^```$"
        heading = ""
        for one in re.finditer(pattern, page.read_text(), re.MULTILINE | re.DOTALL):
            if one["heading"] is not None:
                heading = one["heading"]
            else:
                found.append(Block(page, heading, one["language"], one["text"].rstrip("\n")))
    return found


def configurations() -> list[Block]:
    """The blocks that are a part of a configuration file."""
    keys = yaml.safe_load((ROOT / "config/pinfold.yaml").read_text()).keys()
    return [block for block in blocks()
            if block.language == "yaml" and yaml.safe_load(block.text).keys() <= keys]


def sessions(*pages: Path) -> list[tuple[str, list[str]]]:
    """The commands that are printed with their output, and that output's lines."""
    found: list[tuple[str, list[str]]] = []
    for block in blocks(*pages):
        if block.language == "console":
            for line in block.text.splitlines():
                if line.startswith("$ "):
                    found.append((line.removeprefix("$ "), []))
                else:
                    found[-1][1].append(line)
    return found


def normal(line: str) -> str:
    """Without what is another one each time."""
    line = re.sub(r"sha256(//?)[A-Za-z0-9+/]{43}=", r"sha256\1PIN", line)
    line = re.sub(r"sha256(//?)[A-Za-z0-9+/]+…", r"sha256\1…", line)
    line = re.sub(r"^id: [0-9a-f]{16}$", "id: ID", line)
    line = re.sub(r"(?:[0-9A-F]{2}:){8,}(?:[0-9A-F]{2}|…)", "FINGERPRINT", line)
    line = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "TIME", line)
    return re.sub(r"\(\d+ days\)", "(N days)", line)


def agrees(output: str, shown: list[str]) -> None:
    """`…` stands for the rest of a line, or alone for lines that are left out."""
    pattern = ""
    for line in map(normal, shown):
        if line == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.split("…")) + r"\n"
    actual = "".join(normal(line) + "\n" for line in output.splitlines())
    assert re.fullmatch(pattern, actual), f"{actual}\n---\n" + "\n".join(shown)
