"""The page Fleet: its commands print what it shows, in their order."""

from __future__ import annotations

import shlex

from support.checkout import PAGES
from support.examples import agrees, sessions
from support.gateway import run_pinfold
from support.policies import Signer, policy
from support.wait import until
from test_fleet import DENY, OTHER, configuration, pinfold
from support.fleet import wait_shared
from support.policies import start_unready

PAGE = PAGES["Fleet"]


def test_the_page_shows_what_commands_print(fleet, workspace):
    signer = Signer()
    signer.write(workspace / "policy.key")
    (workspace / "first.yaml").write_bytes(policy(DENY, 7, signer))
    (workspace / "second.yaml").write_bytes(policy(OTHER, 8, signer))
    gateways = fleet(0)
    for _ in range(3):
        running = gateways.add(configuration([signer]), start=False)
        start_unready(running)
        wait_shared(running)
    commands = sessions(PAGE)
    assert len(commands) == 5
    for command, shown in commands:
        words = shlex.split(command)
        assert words[:2] == ["pinfold", "fleet"]
        if words[2] == "status":
            until(lambda: pinfold(gateways[0], "status").returncode == 0,
                  lambda: pinfold(gateways[0], "status").stdout, 20)
        done = run_pinfold(*words[1:], "--admin", "%s:%d" % gateways[1].admin, cwd=workspace,
                           timeout=60)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        agrees(done.stdout, shown)
