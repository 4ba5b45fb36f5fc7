"""systemd, booted in namespaces of its own on a copy of a root file system (`boot`).

deploy/package-test uses this, too: nothing is imported here that is not Python's own.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .wait import until

ROOT = Path(__file__).resolve().parents[3]
BOOT = Path(__file__).with_name("boot")
UNITS = ROOT / "deploy/systemd"

# Makes the copy a machine with the service: the program, the units, the user.
SETUP = """#!/bin/sh
set -e
cd "$1"
cp "{binary}" usr/bin/pinfold
chmod 755 usr/bin/pinfold
rm -rf etc/systemd/system/*.wants etc/pinfold
mkdir -p etc/pinfold
cp "{units}"/pinfold.service "{units}"/pinfold.socket etc/systemd/system
chroot . useradd --system --home-dir /var/lib/pinfold --shell /usr/sbin/nologin pinfold
"""


class NotBootable(Exception):
    """What this machine does not allow."""


class Machine:
    """The booted system, in which commands are run."""

    def __init__(self, pid: int, shared: Path):
        self.pid = pid
        self.shared = shared

    def run(self, *command: str, check: bool = True, timeout: float = 60) -> str:
        """A command's output."""
        done = subprocess.run(
            ["nsenter", "-t", str(self.pid), "-m", "-p", "-n", "-u", "-i", "-C", *command],
            capture_output=True, text=True, timeout=timeout)
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def write(self, path: str, text: str) -> None:
        (self.shared / "file").write_text(text)
        self.run("mkdir", "-p", os.path.dirname(path))
        self.run("cp", "/mnt/shared/file", path)

    def drop_in(self, unit: str, name: str, text: str) -> None:
        self.write(f"/etc/systemd/system/{unit}.d/{name}", text)
        self.run("systemctl", "daemon-reload")

    def show(self, unit: str = "pinfold") -> dict[str, str]:
        """The unit's properties."""
        return dict(line.split("=", 1) for line in self.run("systemctl", "show", unit).splitlines())

    def outer_pid(self, pid: int) -> int:
        """A process of the system, as it is numbered outside."""
        for one in Path("/proc").iterdir():
            if one.name.isdigit():
                try:
                    if os.readlink(one / "ns/pid") == os.readlink(f"/proc/{self.pid}/ns/pid"):
                        text = (one / "status").read_text()
                        numbers = next(line.split()[1:] for line in text.splitlines()
                                       if line.startswith("NSpid:"))
                        if int(numbers[-1]) == pid:
                            return int(one.name)
                except (FileNotFoundError, ProcessLookupError, PermissionError):
                    continue
        raise AssertionError(f"no process {pid}")


def _init_of(pid: int) -> int | None:
    """The systemd among a process's descendants, some of which may be ending."""
    with suppress(FileNotFoundError, ProcessLookupError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                if (Path("/proc") / child / "comm").read_text().strip() == "systemd":
                    return int(child)
                found = _init_of(int(child))
                if found is not None:
                    return found
    return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the system, with all that runs in its namespace, and whoever started it."""
    if process.poll() is None:
        # It may not have begun yet.
        with suppress(AssertionError):
            found = until(lambda: process.poll() is not None or _init_of(process.pid), "it ends")
            if found is not True and found:
                os.kill(found, signal.SIGKILL)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _service() -> str:
    from .gateway import BINARY

    return SETUP.format(binary=BINARY, units=UNITS)


@contextmanager
def booted(folder: Path, root: Path = Path("/"), setup_text: str | None = None) -> Iterator[Machine]:
    """The system, until it is left. NotBootable if this machine does not allow it.

    `root` is not changed. The script `setup_text`, which gets the copy as its argument, is run
    before; by default it makes the copy a machine with the service.
    """
    for needed in ("unshare", "nsenter"):
        if shutil.which(needed) is None:
            raise NotBootable(f"there is no {needed}")
    for program in ("bin/systemctl", "lib/systemd/systemd", "usr/sbin/useradd"):
        if not (root / program).exists():
            raise NotBootable(f"there is no /{program}")
    if os.geteuid() != 0:
        raise NotBootable("this needs root")
    shared = folder / "shared"
    shared.mkdir()
    setup = folder / "setup"
    setup.write_text(_service() if setup_text is None else setup_text)
    setup.chmod(0o755)
    log = folder / "boot.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(BOOT), str(shared), str(setup), str(root)], stdin=subprocess.DEVNULL, stdout=output,
            stderr=output, start_new_session=True)
    try:
        def init() -> int | None:
            if process.poll() is not None:
                raise NotBootable(log.read_text().strip() or f"it ended with {process.returncode}")
            return _init_of(process.pid)

        pid = until(init, lambda: f"systemd has begun:\n{log.read_text()}", 30)
        machine = Machine(pid, shared)
        until(lambda: machine.run("systemctl", "is-active", "basic.target", check=False).strip()
              == "active", lambda: f"the system is up:\n{log.read_text()}", 60)
        yield machine
    finally:
        _end(process)
