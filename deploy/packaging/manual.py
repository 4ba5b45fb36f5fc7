#!/usr/bin/env python3
"""Writes the manual: a page for each command, and one for the configuration file.

The commands' pages are made of what the program says about itself (`pinfold
--experimental-dump-help`), and pinfold.yaml(5) of the comments in config/pinfold.yaml, so that
nothing is written twice.

    manual.py --dump help.json --configuration config/pinfold.yaml --version 1.0 --output man
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from os import environ
from pathlib import Path
from typing import Any

FILES = {
    "/etc/pinfold/pinfold.yaml":
        "The configuration of the service that the package installs. Without `--config` no file is "
        "read.",
    "/usr/share/doc/pinfold/examples/pinfold.yaml":
        "Every key of the configuration with its default.",
    "~/.local/state/pinfold":
        "Where the cache and the certificate authority are, unless they are configured to be "
        "elsewhere; $XDG_STATE_HOME/pinfold if XDG_STATE_HOME is set.",
}


def escaped(text: str) -> str:
    """Text as roff prints it: hyphens that can be searched and pasted, no control lines."""
    text = text.replace("\\", "\\(rs").replace("-", "\\-").replace("~", "\\(ti")
    text = text.replace("^", "\\(ha").replace("'", "\\(aq").replace("`", "\\(ga")
    text = text.replace('"', "\\(dq")
    text = text.replace("…", "\\&...").replace("–", "\\(en").replace("—", "\\(em")
    return re.sub(r"^(?=[.])", r"\\&", text, flags=re.MULTILINE)


# In prose: `code`, and an option such as --config.
MARKED = re.compile(r"`([^`]+)`|(?<![\w-])(--?[a-zA-Z][\w-]*)")


def prose(text: str) -> str:
    """A paragraph; code and options in it are bold."""
    made, end = "", 0
    for match in MARKED.finditer(text):
        made += escaped(text[end:match.start()])
        made += f"\\fB{escaped(match[1] or match[2])}\\fR"
        end = match.end()
    made += escaped(text[end:])
    return re.sub(r"^(?=[.])", r"\\&", made, flags=re.MULTILINE)


def paragraphs(text: str) -> Iterator[str]:
    """Prose of several paragraphs, with lists whose entries are `  name<tab>text`."""
    for block in filter(None, re.split(r"\n\s*\n", text.strip("\n"))):
        yield ".PP"
        plain: list[str] = []
        for line in block.splitlines():
            entry = re.match(r"\s+(\S+)\t(.*)", line)
            if entry:
                if plain:
                    yield prose(" ".join(plain))
                plain = []
                yield from [".TP", f"\\fB{escaped(entry[1])}\\fR", prose(entry[2].strip())]
            else:
                plain.append(line.strip())
        if plain:
            yield prose(" ".join(plain))


@dataclass
class Command:
    """A command as it is in the dump."""

    words: list[str]
    entry: dict[str, Any]
    below: list[Command] = field(default_factory=list)

    @property
    def page(self) -> str:
        return "-".join(self.words)

    @property
    def abstract(self) -> str:
        return str(self.entry.get("abstract", "")).rstrip(".")

    @property
    def arguments(self) -> list[dict[str, Any]]:
        return [a for a in self.entry.get("arguments", []) if a.get("shouldDisplay", True)]

    @property
    def positional(self) -> list[dict[str, Any]]:
        return [a for a in self.arguments if a["kind"] == "positional"]

    @property
    def options(self) -> list[dict[str, Any]]:
        return [a for a in self.arguments if a["kind"] != "positional"]

    def takes(self, name: str) -> bool:
        return any(n["name"] == name for a in self.options for n in a["names"])

    def all(self) -> Iterator[Command]:
        yield self
        for command in self.below:
            yield from command.all()


def read(entry: dict[str, Any], above: list[str]) -> Command:
    """The command and those below it that are meant for people."""
    words = [*above, entry["commandName"]]
    shown = [e for e in entry.get("subcommands", [])
             if e.get("shouldDisplay", True) and e["commandName"] != "help"]
    return Command(words, entry, [read(e, words) for e in shown])


def value(argument: dict[str, Any]) -> str:
    return f"\\fI{escaped(argument['valueName'])}\\fR"


def named(argument: dict[str, Any]) -> str:
    """`-o, --output FILE`."""
    names = [f"\\fB{escaped(('-' if n['kind'] == 'short' else '--') + n['name'])}\\fR"
             for n in sorted(argument["names"], key=lambda n: n["kind"] != "short")]
    return ", ".join(names) + (f" {value(argument)}" if argument["kind"] == "option" else "")


def explained(argument: dict[str, Any]) -> str:
    text = argument.get("abstract", "")
    if argument.get("discussion"):
        text = f"{text} {argument['discussion']}".strip()
    if values := argument.get("allValues"):
        text += f" One of {', '.join(f'`{v}`' for v in values)}."
    if default := argument.get("defaultValue"):
        text += f" The default is `{default}`."
    return prose(" ".join(text.split())) if text else "\\&"


def synopsis(command: Command) -> Iterator[str]:
    yield ".SH SYNOPSIS"
    name = f".B {escaped(' '.join(command.words))}"
    operands = " ".join(
        ("[{}]" if a["isOptional"] else "{}").format(value(a))
        + (" \\&..." if a["isRepeating"] else "") for a in command.positional)
    if command.below:
        yield from [name, "\\fIcommand\\fR [\\fIoptions\\fR]"]
        if "defaultSubcommand" in command.entry:
            yield from [".br", name, "[\\fIoptions\\fR] \\fIarguments\\fR"]
    else:
        required = [a for a in command.options if not a["isOptional"]]
        others = [*(named(a).split(", ")[-1] for a in required), "[\\fIoptions\\fR]", operands]
        yield from [name, " ".join(filter(None, others))]


def command_page(command: Command, root: Command, heading: str) -> Iterator[str]:
    """The page of a command, line by line."""
    yield f'.TH {escaped(command.page).upper()} 1 {heading}'
    yield from [".SH NAME", f"{escaped(command.page)} \\- {escaped(command.abstract)}"]
    yield from synopsis(command)
    yield from [".SH DESCRIPTION", prose(command.abstract + ".")]
    yield from paragraphs(command.entry.get("discussion", ""))
    if command.below:
        yield ".SH COMMANDS"
        default = command.entry.get("defaultSubcommand")
        for each in command.below:
            yield from [".TP", f"\\fB{escaped(each.page)}\\fR(1)", prose(each.abstract + ".")
                        + (" This is the default." if each.words[-1] == default else "")]
    if command.positional:
        yield ".SH ARGUMENTS"
        for argument in command.positional:
            yield from [".TP", value(argument), explained(argument)]
    yield ".SH OPTIONS"
    for argument in command.options:
        yield from [".TP", named(argument), explained(argument)]
    if command is root or command.takes("config"):
        yield ".SH FILES"
        for path, text in FILES.items():
            yield from [".TP", f"\\fI{escaped(path)}\\fR", prose(text)]
    yield ".SH SEE ALSO"
    family = [root, *(c for c in root.all() if c.below and command in c.all()), *command.below]
    others = sorted({c.page for c in family} - {command.page})
    pages = [f"\\fB{escaped(page)}\\fR(1)" for page in others] + ["\\fBpinfold.yaml\\fR(5)"]
    yield ",\n".join(pages)


def configuration_page(text: str, heading: str) -> Iterator[str]:
    """pinfold.yaml(5): what precedes a key is prose, the key with all it has is shown as it is."""
    blocks = [block.splitlines() for block in re.split(r"\n\s*\n", text.strip("\n"))]
    introduction: list[list[str]] = []
    while blocks and all(line.startswith("#") for line in blocks[0]) and not commented_key(blocks[0]):
        introduction.append(blocks.pop(0))
    yield f".TH PINFOLD.YAML 5 {heading}"
    yield from [".SH NAME", "pinfold.yaml \\- configuration of the Pinfold HTTP gateway"]
    yield from [".SH SYNOPSIS", ".I /etc/pinfold/pinfold.yaml", ".SH DESCRIPTION"]
    for index, block in enumerate(introduction):
        if index:
            yield ".PP"
        yield from commented(block)
    yield ".SH KEYS"
    for block in blocks:
        yield from section(block)
    yield from [".SH FILES", ".TP", ".I /etc/pinfold/pinfold.yaml",
                prose(FILES["/etc/pinfold/pinfold.yaml"])]
    yield from [".TP", ".I /usr/share/doc/pinfold/examples/pinfold.yaml", "This text as a file."]
    yield from [".SH SEE ALSO", "\\fBpinfold\\fR(1),", "\\fBpinfold\\-check\\fR(1),",
                "\\fBpinfold\\-explain\\fR(1),", "\\fBpinfold\\-run\\fR(1)"]


# A top-level key, also one that is commented out.
KEY = re.compile(r"(?:# )?([a-z][A-Za-z0-9]*):(?: |$)")


def commented_key(block: list[str]) -> bool:
    return bool(KEY.match(block[-1]))


def commented(lines: list[str]) -> Iterator[str]:
    """Comments as prose; indented ones, which are examples, as they are."""
    example = False
    for line in lines:
        text = line[1:].removeprefix(" ") if line.startswith("#") else line
        if text.startswith("  ") != example:
            example = not example
            yield from [".PP", ".nf", ".RS 4"] if example else [".RE", ".fi", ".PP"]
        yield (escaped(text.strip()) if example else prose(text)) or ".PP"
    if example:
        yield from [".RE", ".fi"]


def section(block: list[str]) -> Iterator[str]:
    """The keys that a block of lines begins with, its comments, and the lines themselves."""
    first = next((i for i, line in enumerate(block) if not line.startswith("#")), None)
    if first is None:
        first = next((i for i, line in enumerate(block) if KEY.match(line)), len(block))
    names = [m[1] for line in block[first:] if (m := KEY.match(line)) and not line[0].isspace()]
    comments, body = block[:first], block[first:]
    if names:
        yield f".SS {escaped(', '.join(dict.fromkeys(names)))}"
    yield from commented(comments)
    if body:
        yield from [".PP", ".nf", ".RS 2", *(escaped(line) or "\\&" for line in body), ".RE", ".fi"]


def write(path: Path, lines: Iterator[str]) -> None:
    """Writes a page, without breaks between paragraphs where there is one anyway."""
    page: list[str] = []
    for line in lines:
        if page and page[-1] == ".PP" and line in (".PP", ".TP"):
            page.pop()
        if line != ".PP" or not page[-1].startswith((".SH", ".SS")):
            page.append(line)
    path.write_text("\n".join(page) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dump", type=Path, required=True, metavar="FILE")
    parser.add_argument("--configuration", type=Path, required=True, metavar="FILE")
    parser.add_argument("--version", required=True, metavar="TEXT")
    parser.add_argument("--output", type=Path, required=True, metavar="DIRECTORY")
    arguments = parser.parse_args()
    dump = json.loads(arguments.dump.read_text(encoding="utf-8"))
    if dump.get("serializationVersion") != 0:
        sys.exit(f"error: {arguments.dump}: expected serializationVersion 0")
    root = read(dump["command"], [])
    epoch = int(environ.get("SOURCE_DATE_EPOCH", "0"))
    date = datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%d")
    heading = f'"{date}" "pinfold {escaped(arguments.version)}" "Pinfold"'
    arguments.output.mkdir(parents=True, exist_ok=True)
    for command in root.all():
        write(arguments.output / f"{command.page}.1", command_page(command, root, heading))
    write(arguments.output / "pinfold.yaml.5", configuration_page(
        arguments.configuration.read_text(encoding="utf-8"), heading))


if __name__ == "__main__":
    main()
