"""Installs the package over a running one, under load: what deploy/package-test shows of that.

systemd is booted in namespaces of its own on a copy of the root. If this machine does not allow that,
the command of the unit is run as its user, and asked to hand over as the package would ask it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "Tests/Integration"))

from support.booted import Machine, NotBootable, booted  # noqa: E402

CONFIGURATION = "/etc/pinfold/pinfold.yaml"
# So that the gateway may send requests to the server of this test.
ALLOWED = "\naccess:\n  destinations:\n    allow: [127.0.0.0/8]\n"
GATEWAY_PORT, SERVER_PORT = 8080, 8088
# What dpkg needs to know that services may be started, which is not so in the root itself.
SETUP = """#!/bin/sh
set -e
rm -f "$1/usr/sbin/policy-rc.d"
"""


def expect(holds: object, text: str) -> None:
    if not holds:
        raise SystemExit(f"error: {text}")


def until(holds: Callable[[], object], text: str) -> None:
    """Waits for a condition, for a minute at most."""
    deadline = time.monotonic() + 60
    while not holds():
        expect(time.monotonic() < deadline, text)
        time.sleep(0.05)


class Load:
    """load.py in the network of a system."""

    def __init__(self, machine: Machine):
        self.process = subprocess.Popen(
            ["nsenter", "-t", str(machine.pid), "-n", sys.executable,
             str(Path(__file__).with_name("load.py")), str(GATEWAY_PORT), str(SERVER_PORT)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def wait(self) -> int:
        """Until the clients have been served a while longer."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        expect(line, "the clients are not served")
        return int(line)

    def end(self) -> dict:
        rest, _ = self.process.communicate(timeout=60)
        return json.loads(rest)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


class Service:
    """The package's service in a booted system."""

    def __init__(self, machine: Machine):
        self.machine = machine

    def install(self, package: str) -> str:
        """What dpkg prints."""
        return self.machine.run("sh", "-c", f"dpkg --install /mnt/shared/{package} 2>&1", timeout=300)

    @property
    def pid(self) -> int:
        return int(self.machine.show()["MainPID"])

    def version(self) -> str:
        return self.machine.run("dpkg-query", "-W", "-f", "${Version}", "pinfold")

    def status(self) -> dict:
        """What the gateway that answers says about itself."""
        text = self.machine.run("pinfold", "get", "-s", "http://127.0.0.1:9090/api/v1/status")
        return json.loads(text)

    def program(self, pid: int) -> tuple[int, bool]:
        """The inode of a process's program, and whether it is the one that is installed."""
        outer = self.machine.outer_pid(pid)
        running = os.stat(f"/proc/{outer}/exe")
        installed = os.stat(f"/proc/{self.machine.pid}/root/usr/bin/pinfold")
        return running.st_ino, running.st_ino == installed.st_ino

    def wait_for_end(self, pid: int) -> None:
        def ended() -> bool:
            return subprocess.run(
                ["nsenter", "-t", str(self.machine.pid), "-m", "-p", "kill", "-0", str(pid)],
                capture_output=True).returncode != 0

        until(ended, f"the former gateway {pid} does not end")

    def configure(self, text: str) -> None:
        self.machine.write(CONFIGURATION, text)


def _revision(service: Service) -> str:
    """The revision of the installed program, which the gateway that answers must have, too."""
    said = service.machine.run("pinfold", "--version").strip()
    version, _, revision = said.partition(" ")
    status = service.status()
    expect(status["version"] == version, f"the gateway's version is {status['version']}, not {version}")
    revision = revision.strip("()")
    expect(status["revision"] == (revision or "unknown"),
           f"the gateway's revision is {status['revision']}, not {revision or 'unknown'}")
    return said


def under_load(machine: Machine, say: Callable[[str], None]) -> None:
    service = Service(machine)
    service.install("first.deb")
    shown = machine.show()
    expect(shown["ActiveState"] == "active", f"the service was not started: {shown['ActiveState']}")
    text = machine.run("cat", CONFIGURATION) + ALLOWED
    service.configure(text)
    machine.run("systemctl", "reload", "pinfold")
    load = Load(machine)
    try:
        load.wait()
        programs = [f"{service.version()}: {_revision(service)}"]
        for package in ("second.deb", "first.deb"):
            before = service.pid
            said = service.install(package)
            load.wait()
            after = service.pid
            expect(after != before, f"{package}: no other process is the service:\n{said}")
            expect("does not answer" not in said and "cannot serve" not in said, said)
            expect(service.program(after)[1], f"{package}: the service runs another program")
            programs.append(f"{service.version()}: {_revision(service)}")
            service.wait_for_end(before)
            load.wait()
        # One that cannot serve changes nothing.
        before = service.pid
        service.configure("workers: many\n")
        said = service.install("second.deb")
        expect("cannot serve" in said and "workers" in said, f"no reason is given:\n{said}")
        load.wait()
        expect(service.pid == before, "another process is the service")
        service.configure(text)
        machine.run("pinfold", "upgrade", "--config", CONFIGURATION, timeout=150)
        load.wait()
        expect(service.program(service.pid)[1], "the service runs another program")
        result = load.end()
    finally:
        load.kill()
    expect(not result["lost"], f"{result['lost']} requests were lost: {result['wrong']}")
    restarts = int(machine.show()["NRestarts"])
    expect(restarts == 0, f"systemd restarted it {restarts} times")
    say(f"under systemd, upgraded and downgraded under load: none of {result['served']} requests was "
        f"lost, every new connection was answered within {result['longest'] * 1000:.0f} ms")
    for program in programs:
        say(f"  served by {program}")
    # Where the gateway cannot be asked, it is restarted.
    before = service.pid
    service.configure(text.replace("9090", "9091"))
    said = service.install("first.deb")
    expect("does not answer" in said, f"it was asked:\n{said}")
    expect(service.pid not in (before, 0) and service.program(service.pid)[1],
           "the gateway that does not answer was not restarted")
    machine.run("dpkg", "--purge", "pinfold")
    expect(machine.show()["LoadState"] == "not-found", "the unit is left after the purge")


def check(root: Path, first: Path, second: Path, work: Path, say: Callable[[str], None]) -> bool:
    """Whether it could be done with systemd."""
    folder = work / "machine"
    folder.mkdir()
    try:
        with booted(folder, root, SETUP) as machine:
            shutil.copy(first, machine.shared / "first.deb")
            shutil.copy(second, machine.shared / "second.deb")
            under_load(machine, say)
    except NotBootable as problem:
        say(f"no systemd can be booted in a namespace of this machine: {problem}")
        return False
    return True
