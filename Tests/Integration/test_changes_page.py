"""The page Changes: its commands print what it shows."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from support.checkout import PAGES
from support.examples import agrees, blocks, sessions
from support.gateway import run_pinfold

PAGE = PAGES["Changes"]


def line(second: int, host: str, target: str, **fields: object) -> str:
    return json.dumps({
        "time": f"2026-11-30T08:00:{second:02}.000Z", "id": f"65d531000000{second:04x}",
        "client": f"127.0.0.1:{40000 + second}", "listener": "proxy", "host": host,
        "method": "GET", "target": target, "version": "HTTP/1.1", "status": 200,
        "cache": "miss", **fields}) + "\n"


def write_files(folder: Path) -> None:
    """The files that the page is about: two configurations, a list, and a log."""
    texts = [block.text for block in blocks(PAGE) if block.language == "yaml"]
    for name, text in zip(("old.yaml", "new.yaml"), texts, strict=True):
        (folder / name).write_text(text + "\n")
    (folder / "ads.txt").write_text("ads.example\n")
    pinned, other, public = "https://api.example.com/", "*.example.com", "93.184.215.14:80"
    (folder / "access.log").write_text("".join([
        *(line(at, "api.example.com", f"{pinned}v1/{at}", upstream="93.184.215.14:443",
               upstream_tls="TLSv1.3") for at in range(4)),
        *(line(at, "default", f"http://cdn.ads.example/{at}.js", upstream=public,
               reported="no-ads") for at in range(4, 9)),
        *(line(at, other, f"http://static.example.com/{at}.png", upstream=public)
          for at in range(9, 12)),
        *(line(at, "default", "http://www.example/", upstream=public) for at in range(12, 20)),
        line(20, "none", "http://:80/", status=400, reason="malformed-target"),
    ]))


@pytest.mark.parametrize("start", ["pinfold diff", "pinfold replay"])
def test_the_page_shows_what_commands_print(workspace, start):
    write_files(workspace)
    (command, shown), = [one for one in sessions(PAGE) if one[0].startswith(start)]
    done = run_pinfold(*shlex.split(command)[1:], cwd=workspace)
    assert (done.returncode, done.stderr) == (1, "")
    agrees(done.stdout, shown)
