"""The manual that is packed: pages made of what the program says about itself."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.gateway import BINARY, ROOT, run_pinfold

PAGES = ROOT / "deploy/packaging/manual.py"
CONFIGURATION = ROOT / "config/pinfold.yaml"


@pytest.fixture(scope="module")
def manual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("manual")
    dump = folder / "help.json"
    dump.write_text(run_pinfold("--experimental-dump-help").stdout)
    subprocess.run([sys.executable, PAGES, "--dump", dump, "--configuration", CONFIGURATION,
                    "--version", "1.2.3", "--output", folder / "man"], check=True, timeout=60)
    return folder / "man"


def text(page: Path) -> str:
    """A page as it is read, in one line."""
    shown = subprocess.run(["mandoc", "-T", "utf8", "-O", "width=1000", page], capture_output=True, check=True,
                           encoding="utf-8", timeout=60).stdout
    return " ".join(re.sub(".\b", "", shown).split())


def bare(text: str) -> str:
    """A text without what marks it as a comment, or as code."""
    return " ".join(text.replace("#", "").replace("`", "").replace("…", "...").split())


def listed(*command: str) -> list[str]:
    """The commands below one, as its help lists them."""
    shown = run_pinfold("help", *command).stdout.partition("SUBCOMMANDS:\n")[2]
    return re.findall(r"^  ([a-z][\w-]*)", shown, re.MULTILINE)


def test_each_command_has_a_page_with_all_its_options(manual: Path) -> None:
    commands = [[name] for name in listed()]
    commands += [[*command, name] for command in commands for name in listed(*command)]
    assert len(commands) > 20
    names = {"-".join(["pinfold", *command]) for command in [[], *commands]}
    assert {path.stem for path in manual.glob("*.1")} == names
    for command in commands:
        page = text(manual / ("-".join(["pinfold", *command]) + ".1"))
        for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SEE ALSO"):
            assert f" {heading} " in page, (command, heading)
        assert f"pinfold {' '.join(command)} " in page
        options = run_pinfold("help", *command).stdout.partition("\nOPTIONS:\n")[2]
        for option in re.findall(r"^  (?:-\w, )?(--[\w-]+)", options, re.MULTILINE):
            assert option in page, (command, option)


def test_the_configurations_page_has_each_key_with_its_comments(manual: Path) -> None:
    page = text(manual / "pinfold.yaml.5")
    source = CONFIGURATION.read_text()
    for key in re.findall(r"^([a-z]\w*):", source, re.MULTILINE):
        assert f" {key} " in page, key
    shown = bare(page)
    for line in filter(None, map(bare, source.splitlines())):
        assert line in shown


def test_the_pages_are_sound(manual: Path) -> None:
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *sorted(manual.iterdir())],
                          capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def arguments(command: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Of a command in the dump, and of all below it."""
    yield from command.get("arguments", [])
    for below in command.get("subcommands", []):
        yield from arguments(below)


def test_arguments_that_are_files_complete_them() -> None:
    dump = json.loads(run_pinfold("--experimental-dump-help").stdout)
    found = [a for a in arguments(dump["command"]) if a["valueName"] in ("file", "directory", "roots")]
    assert len(found) > 20
    for argument in found:
        assert {"file", "directory"} & argument.get("completionKind", {}).keys(), argument


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_are_completions_for_each_shell(shell: str) -> None:
    done = run_pinfold("--generate-completion-script", shell)
    assert done.returncode == 0
    for word in ("explain", "cache-path"):
        assert word in done.stdout


def test_the_packed_configuration_is_valid(tmp_path: Path) -> None:
    packed = ROOT / "deploy/packaging/pinfold.yaml"
    done = run_pinfold("check", "--config", str(packed))
    assert (done.returncode, done.stderr) == (0, "")
    # What it suggests in comments is valid, too.
    suggested = re.sub(r"^( *)# (access:|  clients:)", r"\1\2", packed.read_text(), flags=re.MULTILINE)
    suggested = suggested.replace("  access: none\n", "").replace("/var/log/pinfold", str(tmp_path))
    assert suggested.count("access:") == 2
    (tmp_path / "pinfold.yaml").write_text(suggested)
    done = run_pinfold("check", "--config", str(tmp_path / "pinfold.yaml"))
    assert (done.returncode, done.stderr) == (0, "")
