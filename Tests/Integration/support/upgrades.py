"""Gateways that hand over to a successor."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import signal
from pathlib import Path

from . import gateway as gateways
from .gateway import Gateway
from .wait import until

SERVES = re.compile(r"the successor serves.* pid=(\d+)")


class Succession:
    """A gateway and those that succeed it: all are in one process group, of which only the first is
    our child. The program is a link that can be made to lead to another."""

    def __init__(self, first: Gateway):
        self.gateway = first
        self.program = first.folder / "bin" / "pinfold"
        self.program.parent.mkdir()
        self.lead_to(gateways.BINARY)
        first.launcher = [
            "/bin/sh", "-c", f"shift; exec {shlex.quote(str(self.program))} \"$@\"", "sh"]
        first.start()
        self.group = first.pid
        self.pid = first.pid

    def lead_to(self, program: Path) -> None:
        link = self.program.with_name("next")
        link.symlink_to(program)
        link.rename(self.program)

    def script(self, text: str) -> None:
        """Puts a shell script in the program's place. `"$PINFOLD" "$@"` runs the program."""
        file = self.program.with_name("script")
        file.unlink(missing_ok=True)
        file.write_text(f"#!/bin/sh\nPINFOLD={shlex.quote(str(gateways.BINARY))}\n{text}\n")
        file.chmod(0o755)
        self.lead_to(file)

    def log_from(self, start: int) -> str:
        return self.gateway.log()[start:]

    def begin(self) -> int:
        """Asks for an upgrade; returns the length of the log before it."""
        start = len(self.gateway.log())
        os.kill(self.pid, signal.SIGUSR2)
        return start

    def upgrade(self) -> int:
        """Another process serves: its number."""
        start = self.begin()
        match = until(lambda: SERVES.search(self.log_from(start)),
                      lambda: f"the successor serves:\n{self.log_from(start)}", 30)
        self.pid = int(match[1])
        return self.pid

    def fail(self) -> str:
        """An upgrade that fails: the line that says why."""
        start = self.begin()
        return self.failure(start)

    def failure(self, start: int) -> str:
        def line() -> str:
            return next((line for line in self.log_from(start).splitlines()
                         if "upgrade failed; this process goes on" in line), "")

        return until(line, lambda: f"the upgrade has failed:\n{self.log_from(start)}", 30)

    def members(self) -> set[int]:
        """The processes of the group that have not ended."""
        found = set()
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[2]) == self.group and fields[0] != "Z":
                    found.add(int(entry.name))
        return found

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        try:
            until(lambda: not self.members(), lambda: f"all have ended: {self.members()}, {self.pid}\n" + self.gateway.log()[-3000:], 15)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.group, signal.SIGKILL)
