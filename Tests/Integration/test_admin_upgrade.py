"""The administration's Unix socket when one gateway succeeds another."""

from __future__ import annotations

import os
import signal

import pytest
from support.upgrades import Succession
from support.wait import until
from support.wire import Wire


@pytest.fixture
def succession(gateway, workspace):
    one = Succession(gateway({
        "cache": {"enabled": False},
        "admin": {"address": f"unix:{workspace / 'admin.sock'}"}}, start=False))
    yield one
    one.close()
    assert not list(workspace.glob("*.sock")), "removed at the end"


def served_by(one: Succession) -> int:
    return one.gateway.admin_get("/api/v1/status").json()["pid"]


def test_a_successor_answers_at_the_same_socket(succession, workspace):
    path = workspace / "admin.sock"
    inode = path.lstat().st_ino
    for _ in range(3):
        former = succession.pid
        succession.upgrade()
        until(lambda: served_by(succession) == succession.pid, "the successor answers")
        until(lambda: former not in succession.members(), "the predecessor has ended", 20)
        assert path.lstat().st_ino == inode
        assert served_by(succession) == succession.pid
    # The successor's reload finds it, too.
    start = len(succession.gateway.log())
    os.kill(succession.pid, signal.SIGHUP)
    until(lambda: "configuration reloaded" in succession.log_from(start), "reloaded")
    assert served_by(succession) == succession.pid


def test_no_connection_is_refused_meanwhile(succession):
    with Wire(succession.gateway.admin) as kept:
        ask = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert kept.ask(ask).status == 200
        start = succession.begin()
        while "the successor serves" not in succession.log_from(start):
            assert succession.gateway.admin_get("/healthz").status == 200
        succession.pid = int(succession.log_from(start).split("pid=")[-1].split()[0].strip('"'))


def test_a_successor_that_fails_leaves_the_socket(succession, workspace):
    succession.script("exit 7")
    succession.fail()
    assert served_by(succession) == succession.pid
    assert (workspace / "admin.sock").is_socket()


def test_a_socket_that_moves_leaves_nothing_behind(succession, workspace):
    former, config = succession.pid, succession.gateway.config
    config["admin"] = {"address": f"unix:{workspace / 'next.sock'}"}
    succession.gateway.write_config(config)
    succession.upgrade()
    succession.gateway.listeners["admin"] = (f"unix:{workspace / 'next.sock'}", 0)
    until(lambda: former not in succession.members(), "the predecessor has ended", 20)
    assert served_by(succession) == succession.pid
    until(lambda: not (workspace / "admin.sock").exists(), "the former socket is gone")
