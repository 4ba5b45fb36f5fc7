"""The units of deploy/systemd in a booted systemd: what they promise, they keep."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest
from support.booted import UNITS, Machine, NotBootable, booted
from support.services import stopped_threads
from support.wait import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

CONFIG = """
listeners:
  - { name: proxy, address: "127.0.0.1:8080", kind: forward }
  - { name: low, address: "127.0.0.1:80", kind: reverse, upstream: "http://127.0.0.1:9090" }
cache: { path: /var/lib/pinfold }
log: { access: { path: /var/log/pinfold/access.log, format: json } }
"""
ACTIVATED = """
listeners:
  - { name: proxy, address: "fd:proxy", kind: reverse, upstream: "http://127.0.0.1:9090" }
access: { clients: ["127.0.0.0/8", "::1/128"] }
cache: { path: /var/lib/pinfold }
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory) -> Iterator[Machine]:
    try:
        with booted(tmp_path_factory.mktemp("booted")) as one:
            yield one
    except NotBootable as problem:
        pytest.skip(f"no systemd can be booted in a namespace of this machine: {problem}")


@pytest.fixture
def service(machine) -> Iterator[Machine]:
    """The service as it is installed, running."""
    machine.run("rm", "-rf", "/etc/systemd/system/pinfold.service.d",
                "/etc/systemd/system/pinfold.socket.d")
    machine.write("/etc/pinfold/pinfold.yaml", CONFIG)
    machine.drop_in("pinfold.service", "reload.conf",
                    "[Service]\nExecReload=\nExecReload=/bin/kill -HUP $MAINPID\n")
    machine.run("systemctl", "start", "pinfold")
    yield machine
    machine.run("systemctl", "stop", "pinfold.socket", "pinfold")
    machine.run("systemctl", "reset-failed", "pinfold", check=False)


def status(machine: Machine) -> dict[str, str]:
    pid = machine.outer_pid(int(machine.show()["MainPID"]))
    with open(f"/proc/{pid}/status") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def code(machine: Machine, url: str) -> str:
    return machine.run("curl", "-s", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}", url,
                       check=False)


def test_it_starts_as_a_user_with_one_capability(service):
    shown = service.show()
    assert (shown["ActiveState"], shown["SubState"]) == ("active", "running")
    assert shown["StatusText"] == "serving on 2 listeners"
    found = status(service)
    assert found["Uid"].split()[0] != "0"
    for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(found[name], 16) == 1 << 10, name  # CAP_NET_BIND_SERVICE
    assert found["NoNewPrivs"] == "1" and found["Seccomp"] == "2"
    assert code(service, "http://127.0.0.1:9090/readyz") == "200"
    modes = service.run("stat", "-c", "%U %a %n", "/var/lib/pinfold", "/var/log/pinfold",
                        "/run/pinfold", "/var/lib/pinfold/cache.sqlite",
                        "/var/log/pinfold/access.log").splitlines()
    assert modes == [
        "pinfold 700 /var/lib/pinfold", "pinfold 2750 /var/log/pinfold", "pinfold 755 /run/pinfold",
        "pinfold 600 /var/lib/pinfold/cache.sqlite", "pinfold 640 /var/log/pinfold/access.log"]


def test_a_reload_is_complete_when_systemctl_returns(service):
    service.write("/etc/pinfold/pinfold.yaml", CONFIG.replace("8080", "8081"))
    service.run("systemctl", "reload", "pinfold")
    assert code(service, "http://127.0.0.1:8081/") != "000"

    # The service manager reads what it was told a moment later.
    def shown() -> tuple[str, str]:
        found = service.show()
        return found["ActiveState"], found["StatusText"]
    until(lambda: shown() == ("active", "serving on 2 listeners"), "the status says so")
    service.write("/etc/pinfold/pinfold.yaml", "workers: many\n")
    service.run("systemctl", "reload", "pinfold")
    until(lambda: "the last reload failed" in service.show()["StatusText"], "the status says so")


def test_the_journal_has_the_levels(service):
    service.write("/etc/pinfold/pinfold.yaml", "workers: many\n")
    service.run("systemctl", "reload", "pinfold")

    def levels() -> dict[str, str]:
        lines = service.run("journalctl", "-u", "pinfold", "-o", "json", "--no-pager").splitlines()
        entries = [json.loads(line) for line in lines]
        return {entry["MESSAGE"].split()[1]: entry["PRIORITY"] for entry in entries
                if str(entry["MESSAGE"]).startswith("20")}

    found = until(lambda: one if "error" in (one := levels()) else {}, "the error is there")
    assert found["error"] == "3" and found["info"] == "6"


def test_a_hanging_worker_is_restarted(service):
    service.drop_in("pinfold.service", "watchdog.conf", "[Service]\nWatchdogSec=2s\n")
    service.run("systemctl", "restart", "pinfold")
    before = service.show()
    pid = service.outer_pid(int(before["MainPID"]))

    def restarted() -> bool:
        for thread in threads:
            # A dead process lasts until whoever traces it has seen its end.
            try:
                os.waitpid(thread, os.WNOHANG | 0x40000000)
            except ChildProcessError:
                pass
        now = service.show()
        return now["ActiveState"] == "active" and now["MainPID"] != before["MainPID"]

    try:
        with stopped_threads(pid, "worker-1") as threads:
            until(restarted, lambda: f"it is restarted: {service.show()}", 60)
    except PermissionError as problem:
        pytest.skip(f"no thread can be stopped on this machine: {problem}")
    now = service.show()
    assert int(now["NRestarts"]) >= 1
    assert now["StatusText"] == "serving on 2 listeners"
    journal = service.run("journalctl", "-u", "pinfold", "--no-pager")
    assert "a worker's loop does not turn" in journal and "worker=1" in journal


def test_with_sockets_it_needs_no_capability_and_nobody_is_refused(service):
    service.run("systemctl", "stop", "pinfold")
    for unit, name in (("pinfold.service", "no-capabilities.conf"), ("pinfold.socket", "ports.conf")):
        service.drop_in(unit, name, (UNITS / "drop-ins" / name).read_text())
    service.write("/etc/pinfold/pinfold.yaml", ACTIVATED)
    service.run("systemctl", "start", "pinfold.socket")
    assert service.show()["ActiveState"] == "inactive"
    # The first request starts it.
    for url in ("http://127.0.0.1/healthz", "http://[::1]/healthz"):
        assert code(service, url) == "200"
    assert service.show()["StatusText"] == "serving on 1 listener"
    assert int(status(service)["CapEff"], 16) == 0
    # Whoever comes while it is not there waits for the next, which is started for it.
    for _ in range(3):
        service.run("systemctl", "stop", "pinfold")
        assert code(service, "http://127.0.0.1/healthz") == "200"


def test_the_limits_of_the_unit_are_the_gateway_s(service):
    service.drop_in("pinfold.service", "memory.conf", (UNITS / "drop-ins/memory.conf").read_text())
    service.run("systemctl", "restart", "pinfold")
    pid = service.show()["MainPID"]
    journal = service.run("journalctl", f"_PID={pid}", "--no-pager", "-o", "cat")
    line = next(line for line in journal.splitlines() if " info resources " in line)
    # Version 1 has no MemoryHigh.
    limit = next(mebibytes for mebibytes in (448, 512) if f"memoryLimit={mebibytes << 20}" in line)
    assert f"cacheMemory={limit // 8 << 20}" in line and "pinfold.service" in line


def test_a_stop_is_a_success(service):
    service.run("systemctl", "stop", "pinfold")
    shown = service.show()
    assert (shown["ActiveState"], shown["Result"]) == ("inactive", "success")
