"""`pinfold user`: the file of users, changed by a command."""

from __future__ import annotations

import os
import pty
import signal
import stat
import subprocess
import termios

import pytest
from support.credentials import SCHEMES, basic, bcrypt, write
from support.gateway import BINARY
from support.origin import reply
from support.wait import until


def user(*arguments, text="", **options):
    return subprocess.run([str(BINARY), "user", *map(str, arguments)], input=text, text=True,
                          capture_output=True, timeout=60, **options)


def done(*arguments, **options):
    finished = user(*arguments, **options)
    assert finished.returncode == 0, finished.stderr
    return finished


@pytest.mark.parametrize("options, beginning", [
    ([], "$2y$12$"), (["--cost", "4"], "$2y$04$"), (["--scheme", "yescrypt"], "$y$j9T$"),
    (["--scheme", "yescrypt", "--cost", "1"], "$y$j75$")])
def test_a_user_is_added_and_served(workspace, gateway, origin, options, beginning):
    file = workspace / "users"
    done("add", file, "ann", *options, text="sécret\nnot this\n")
    assert file.read_text().startswith(f"ann:{beginning}")
    assert file.read_text().count("\n") == 1
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    there = origin(lambda seen: reply(b"here"))
    running = gateway({
        "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "authentication": ["basic"]}],
        "authentication": {"users": str(file)}})
    assert running.get(there.url("/"), Proxy_Authorization=basic("ann", "sécret")).status == 200
    assert running.get(there.url("/"), Proxy_Authorization=basic("ann", "not this")).status == 407
    done("add", file, "bob", "--cost", "4", text="bobs")
    bobs = basic("bob", "bobs")
    until(lambda: running.get(there.url("/"), Proxy_Authorization=bobs).status == 200, "bob is known")
    done("remove", file, "ann")
    anns = basic("ann", "sécret")
    until(lambda: running.get(there.url("/"), Proxy_Authorization=anns).status == 407, "ann is gone")


def test_the_rest_of_the_file_stays_as_it_is(workspace):
    file = write(workspace / "users", "# people", f"ann:{bcrypt('a')}", "", f"bob:{bcrypt('b')}",
                 f" ann : {bcrypt('old')}")
    file.chmod(0o640)
    before = file.read_text().splitlines()
    done("add", file, "ann", "--cost", "4", text="new")
    after = file.read_text().splitlines()
    assert [after[0], *after[2:]] == [before[0], *before[2:4]]
    assert after[1].startswith("ann:$2y$04$") and after[1] != before[1]
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    done("remove", file, "bob")
    assert file.read_text().splitlines() == [after[0], after[1], ""]
    failed = user("remove", file, "bob")
    assert failed.returncode == 1 and "no such user" in failed.stderr
    assert list(workspace.glob("users*")) == [file]


def test_a_link_to_the_file_stays_one(workspace):
    real = write(workspace / "real", f"ann:{bcrypt('a')}")
    link = workspace / "users"
    link.symlink_to(real)
    done("add", link, "bob", "--cost", "4", text="b")
    assert link.is_symlink() and "bob:" in real.read_text()


def test_users_are_listed_without_their_hashes(workspace):
    file = write(workspace / "users",
                 *(f"{name}:{make('x')}" for name, make in sorted(SCHEMES.items())))
    listed = done("list", file).stdout
    assert listed.splitlines() == [
        "argon2i: argon2i, 256 KiB, 1 passes", "argon2id: argon2id, 256 KiB, 1 passes",
        "bcrypt: bcrypt, cost 4", "sha256: SHA-256, 5000 rounds", "sha512: SHA-512, 5000 rounds",
        "yescrypt: yescrypt, j75"]
    assert "$" not in listed


def test_a_line_that_no_gateway_takes_is_mended_by_the_command(workspace):
    file = workspace / "users"
    file.write_text("ann:$apr1$salt$HYnGBRZwNmLL9bzwsOp0E.\nbob:plain-text\n")
    listed = user("list", file)
    assert listed.returncode == 1 and f"{file}:1: " in listed.stderr
    changed = done("add", file, "ann", "--cost", "4", text="x")
    assert f"Warning: {file}:2: " in changed.stderr and "plain-text" not in changed.stderr
    assert done("add", file, "bob", "--cost", "4", text="y").stderr == ""
    assert len(done("list", file).stdout.splitlines()) == 2


@pytest.mark.parametrize("arguments, text, code, message", [
    (["add", "users", "a b"], "x", 64, "name"), (["add", "users", "a:b"], "x", 64, "name"),
    (["add", "users", "ann", "--cost", "17"], "x", 64, "4 to 16"),
    (["add", "users", "ann", "--scheme", "md5"], "x", 64, "scheme"),
    (["add", "users", "ann"], "", 1, "not usable"), (["add", "users", "ann"], "\n", 1, "not usable"),
    (["add", "users", "ann"], "x" * 512, 1, "not usable"),
    (["add", "users", "ann"], "a\tb", 1, "not usable"),
    (["add", "absent/users", "ann", "--cost", "4"], "x", 1, "absent"),
    (["remove", "absent", "ann"], "", 1, "absent"), (["list", "absent"], "", 1, "absent")])
def test_mistakes_change_nothing(workspace, arguments, text, code, message):
    failed = user(*arguments, text=text, cwd=workspace)
    assert failed.returncode == code and message in failed.stderr
    assert not (workspace / "users").exists()


@pytest.mark.parametrize("again, code", [("secret", 0), ("other", 1)])
def test_a_terminal_is_asked_twice_and_shows_nothing(workspace, again, code):
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen([str(BINARY), "user", "add", workspace / "users", "ann", "--cost", "4"],
                              stdin=theirs, stdout=theirs, stderr=subprocess.PIPE,
                              text=True) as asking:
            assert asking.stderr is not None
            shown = ""
            for prompt, answer in (("Password: ", "secret"), ("Again: ", again)):
                while not shown.endswith(prompt):
                    shown += asking.stderr.read(1)
                os.write(ours, f"{answer}\n".encode())
            shown += asking.stderr.read()
            assert asking.wait(20) == code
        assert ("differ" in shown) == bool(code)
        assert (workspace / "users").exists() == (code == 0)
        os.set_blocking(ours, False)
        try:
            echoed = os.read(ours, 1000)
        except BlockingIOError:
            echoed = b""
        assert b"secret" not in echoed
    finally:
        os.close(ours)
        os.close(theirs)


def test_commands_at_the_same_time_lose_nobody(workspace):
    file, names = workspace / "users", [f"user{n}" for n in range(12)]
    running = [subprocess.Popen([str(BINARY), "user", "add", str(file), name, "--cost", "4"],
                                stdin=subprocess.PIPE, stderr=subprocess.PIPE) for name in names]
    for one in running:
        one.stdin.write(b"secret\n")
        one.stdin.close()
    assert [one.wait(60) for one in running] == [0] * len(names)
    for one in running:
        one.stderr.close()
    listed = [line.partition(":")[0] for line in done("list", file).stdout.splitlines()]
    assert listed == sorted(names)
    removing = [subprocess.Popen([str(BINARY), "user", "remove", str(file), name])
                for name in names[1:]]
    assert [one.wait(60) for one in removing] == [0] * (len(names) - 1)
    assert done("list", file).stdout == "user0: bcrypt, cost 4\n"
    assert list(workspace.glob("users*")) == [file]


def echoes(terminal):
    return bool(termios.tcgetattr(terminal)[3] & termios.ECHO)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("typed", [b"", b"half a pass"])
def test_an_interrupted_command_leaves_the_terminal_as_it_was(workspace, number, typed):
    ours, theirs = pty.openpty()
    try:
        # Whoever runs the tests may ignore some of them.
        with subprocess.Popen([str(BINARY), "user", "add", workspace / "users", "ann"],
                              stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True,
                              preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)) as asking:
            assert asking.stderr is not None
            assert asking.stderr.read(10) == "Password: "
            assert not echoes(theirs)
            os.write(ours, typed)
            asking.send_signal(number)
            assert asking.wait(20) == -number
            assert echoes(theirs)
        assert not (workspace / "users").exists()
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_stopped_command_shows_what_is_typed_until_it_goes_on(workspace):
    ours, theirs = pty.openpty()
    try:
        # The kernel stops no process of an orphaned group: it gets one of its own in this session.
        with subprocess.Popen([str(BINARY), "user", "add", workspace / "users", "ann", "--cost", "4"],
                              stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, text=True,
                              process_group=0) as asking:
            assert asking.stderr is not None
            assert asking.stderr.read(10) == "Password: "
            asking.send_signal(signal.SIGTSTP)
            until(lambda: os.waitpid(asking.pid, os.WUNTRACED | os.WNOHANG)[1] & 0xFF == 0x7F,
                  "it stops")
            assert echoes(theirs)
            asking.send_signal(signal.SIGCONT)
            until(lambda: not echoes(theirs), "it asks on")
            os.write(ours, b"secret\n")
            assert asking.stderr.read(8) == "\nAgain: "
            os.write(ours, b"secret\n")
            assert asking.wait(20) == 0
        assert (workspace / "users").exists()
    finally:
        os.close(ours)
        os.close(theirs)
