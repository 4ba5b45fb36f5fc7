"""The page Policy: its commands print what it shows, and its table is the one in force."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from support.checkout import PAGES
from support.examples import agrees, blocks, sessions
from support.gateway import ROOT, run_pinfold
from support.policies import Signer, configuration, policy, policy_server, wait_serial

PAGE = PAGES["Policy"]
KEYS = ROOT / "Sources/Core/PinfoldConfiguration/Policy/PolicyKey.swift"


def write_files(folder: Path) -> Signer:
    """The files that the page is about, with a key of the test's."""
    signer = Signer()
    signer.write(folder / "policy.key")
    local, fleet = (one.text for one in blocks(PAGE) if one.language == "yaml")
    local = re.sub(r"ed25519:[A-Za-z0-9+/=]+", signer.public, local)
    (folder / "gateway.yaml").write_text(local + "\ncache: { path: cache }\n")
    (folder / "fleet.yaml").write_text(fleet + "\n")
    (folder / "pinfold.yaml").write_bytes(policy(fleet, 7, signer))
    (folder / "wider.yaml").write_bytes(
        policy("hosts:\n  - { match: [files.example], tunnel: pass }\n", 7, signer))
    Signer().write(folder / "next.key")
    return signer


COMMANDS = sessions(PAGE)


@pytest.mark.parametrize("command, shown", COMMANDS, ids=[command for command, _ in COMMANDS])
def test_the_page_shows_what_commands_print(workspace, gateway, pki, command, shown):
    signer = write_files(workspace)
    words = shlex.split(command)
    assert words[:2] == ["pinfold", "policy"]
    if words[2] == "keygen":
        (workspace / "policy.key").unlink()
    if words[2] == "show":
        fleet = (workspace / "fleet.yaml").read_text()
        with policy_server(pki, policy(fleet, 7, signer)) as server:
            config = configuration(pki, server, signer)
            running = gateway(config)
            wait_serial(running, 7)
            done = run_pinfold(*words[1:-1], "%s:%d" % running.admin)
            output = done.stdout.replace(
                config["policy"]["url"], "https://policy.example.com/pinfold.yaml")
        assert done.returncode == 0, done.stderr
    else:
        done = run_pinfold(*words[1:], cwd=workspace)
        is_refused = bool(shown) and shown[0].startswith("Error")
        assert done.returncode == (1 if is_refused else 0), done.stderr
        output = done.stderr if is_refused else done.stdout
    agrees(output, shown)


def test_the_table_is_the_one_that_policies_are_read_by():
    rows = re.findall(r"^\| `([a-zA-Z.0-9]+)` \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    page = {name: reason for name, reason in rows if "." in name}
    source = KEYS.read_text()
    names = dict(re.findall(r'case (\w+) = "([^"]+)"', source))
    body = source[source.index("var reason"):]
    text = r'"(?:[^"\\]|\\.)*"'
    reasons = {}
    for cases, parts in re.findall(rf"case ((?:\.\w+,?\s*)+):((?:\s*{text}(?:\s*\+)?)+)", body):
        for case in re.findall(r"\.(\w+)", cases):
            reasons[names[case]] = "".join(one[1:-1] for one in re.findall(text, parts))
    assert len(reasons) == len(names) and page == reasons
