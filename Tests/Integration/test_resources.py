"""What the gateway takes of the machine: the limits of its control groups.

With groups of the test's own, where the machine lets it make some; how they are found in all their
forms is tested without (`ControlGroupTests`)."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.gateway import BINARY
from support.wait import until

GROUPS = Path("/sys/fs/cgroup")


class Group:
    """A control group for processor time, and one for memory; in version 2 the same."""

    def __init__(self, name: str):
        self.is_unified = (GROUPS / "cgroup.controllers").exists()
        parents = [GROUPS] if self.is_unified else [GROUPS / "cpu", GROUPS / "memory"]
        self.folders = [parent / name for parent in parents]
        self.outer = [folder / "inner" for folder in self.folders]

    def make(self) -> None:
        for folder in (*self.folders, *self.outer):
            folder.mkdir()
            if self.is_unified and folder in self.folders:
                (folder / "cgroup.subtree_control").write_text("+cpu +memory")

    def limit(self, *, inner: bool, hundredths: int | None = None,
              memory: int | None = None) -> None:
        folders = self.outer if inner else self.folders
        if hundredths is not None:
            if self.is_unified:
                (folders[0] / "cpu.max").write_text(f"{hundredths * 1000} 100000")
            else:
                (folders[0] / "cpu.cfs_quota_us").write_text(str(hundredths * 1000))
        if memory is not None:
            name = "memory.max" if self.is_unified else "memory.limit_in_bytes"
            (folders[-1] / name).write_text(str(memory))

    def enter(self) -> None:
        """The calling process belongs to the inner group from now on."""
        for folder in self.outer:
            (folder / "cgroup.procs").write_text(str(os.getpid()))

    def remove(self) -> None:
        for folder in (*self.outer, *self.folders):
            if folder.exists():
                until(lambda f=folder: not (f / "cgroup.procs").read_text(), "the group is empty")
                folder.rmdir()


@pytest.fixture
def group(tmp_path) -> Iterator[Group]:
    made = Group(f"pinfold-test-{os.getpid()}-{tmp_path.name[-8:]}")
    try:
        made.make()
        made.limit(inner=True, hundredths=100, memory=1 << 30)
    except OSError as problem:
        made.remove()
        pytest.skip(f"no control group can be made here: {problem}")
    yield made
    made.remove()


def resources(log: str) -> dict[str, str]:
    line = next(line for line in log.splitlines() if " info resources " in line)
    return {name: quoted or plain for name, quoted, plain
            in re.findall(r'(\w+)=(?:"([^"]*)"|(\S+))', line)}


def automatic() -> dict:
    return {"workers": "auto", "cache": {"memory": "auto"}, "limits": {"bufferBytes": "auto"}}


def test_the_smallest_limits_of_the_groups_count(gateway, group):
    # The quota is of the inner group, the memory of the outer one.
    group.limit(inner=False, hundredths=200, memory=256 << 20)
    group.limit(inner=True, hundredths=50)
    made = gateway(automatic(), start=False, preexec=group.enter)
    running = made.start()
    found = resources(running.log())
    assert found["workers"] == "1"
    assert "inner" in found["workersFrom"] and "0.5 of" in found["workersFrom"]
    assert found["memoryLimit"] == str(256 << 20)
    assert "inner" not in found["memoryLimitFrom"] and "pinfold-test" in found["memoryLimitFrom"]
    assert found["cacheMemory"] == found["buffers"] == str(32 << 20)
    assert running.metric("pinfold_cache_limit_bytes", tier="memory") == 32 << 20
    threads = [(one / "comm").read_text().strip()
               for one in Path(f"/proc/{running.pid}/task").iterdir()]
    assert [one for one in threads if one.startswith("worker-")] == ["worker-0"]
    running.stop()


def test_what_is_written_is_not_changed(gateway, group):
    group.limit(inner=True, hundredths=50, memory=256 << 20)
    made = gateway({"workers": 3, "cache": {"memory": "48MiB"}}, start=False,
                   preexec=group.enter)
    found = resources(made.start().log())
    assert found["workers"] == "3" and found["workersFrom"] == "configuration"
    assert found["cacheMemory"] == str(48 << 20)
    made.stop()


def test_check_warns_of_sizes_beyond_the_limit(group, workspace):
    group.limit(inner=True, memory=64 << 20)
    file = workspace / "pinfold.yaml"
    file.write_text(f"cache: {{ memory: 100MiB, path: {workspace} }}\n")
    done = subprocess.run([str(BINARY), "check", "--config", str(file)], capture_output=True,
                          text=True, preexec_fn=group.enter, timeout=20)
    assert done.returncode == 0
    assert re.search(r"cache\.memory: .*exceed the limit on the memory of this process, 64MiB",
                     done.stderr)


def test_the_processors_that_it_may_use_are_counted(gateway):
    one = next(iter(os.sched_getaffinity(0)))
    made = gateway(automatic(), start=False, preexec=lambda: os.sched_setaffinity(0, {one}))
    found = resources(made.start().log())
    assert found["workers"] == "1"
    if (os.cpu_count() or 1) > 1:
        assert found["workersFrom"].startswith("affinity (of ")

