"""Configurations of several files, with variables, that are read again when they change."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from support.gateway import BINARY, Gateway, run_pinfold
from support.origin import reply
from support.wait import until

SECRET = "correct-horse-battery-staple"


def generation(running: Gateway) -> float:
    return running.metric("pinfold_config_generation")


def after(running: Gateway, change: Callable[[], object]) -> None:
    """Makes a change, and waits until a configuration has been read because of it."""
    before = generation(running)
    change()
    until(lambda: generation(running) > before, lambda: f"read again:\n{running.log()}", 20)


def refused(running: Gateway, change: Callable[[], object]) -> str:
    """Makes a change, and waits until it has been refused. Returns what was logged."""
    known = running.log()
    change()
    until(lambda: "not reloaded" in running.log()[len(known):], "refused", 20)
    return running.log()[len(known):]


def entry(host: str) -> str:
    return f"hosts: [{{ match: [{host}], tunnel: refuse }}]\n"


def labels(running: Gateway) -> str:
    """The hosts of the entries that are in force: their tunnels are refused."""
    found = ""
    for name in ("one", "two", "three", "four"):
        wire, response = running.connect(f"{name}.test:443")
        wire.close()
        if response.status == 403:
            found += f"{name} "
    return found


# Variables


def test_the_value_of_a_variable_is_used_and_printed_nowhere(gateway, origin, monkeypatch):
    there = origin(lambda _: reply(b"x"))
    monkeypatch.setenv("API_KEY", SECRET)
    monkeypatch.setenv("THREADS", "1")
    config = {
        "workers": "${THREADS}",
        "admin": {"address": "127.0.0.1:0", "metrics": "open",
                  "tokenFile": "${CREDENTIALS_DIRECTORY}/admin.token"},
        "hosts": [{"match": ["127.0.0.1"], "request": {"headers": {"set": {
            "X-Key": "Bearer ${API_KEY}", "X-Literal": "$${API_KEY}"}}}}]}
    running = gateway(config, start=False)
    credentials = running.folder / "credentials-of-the-unit"
    credentials.mkdir(mode=0o700)
    (credentials / "admin.token").write_text("token\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(credentials))
    running.start()
    assert running.get(there.url("/")).status == 200
    fields = dict(there.requests[0].headers)
    assert fields["X-Key"] == f"Bearer {SECRET}"
    assert fields["X-Literal"] == "${API_KEY}"

    seen = [running.admin_get(path).body.decode()
            for path in ("/metrics", "/", "/setup", "/proxy.pac", "/readyz")]
    after(running, lambda: running.signal(signal.SIGHUP))
    # Each of these is refused, with the variable in or near what is wrong.
    for wrong in (
        {"hosts": [{"match": ["${API_KEY}..x"]}]}, {"workers": "${API_KEY}"},
        {"cache": {"memory": "${API_KEY}"}}, {"admin": {"tokenFile": "${API_KEY}"}},
        {"tls": {"roots": ["${API_KEY}"]}}, {"limits": {"fields": "${API_KEY}"}},
        {"hosts": [{"match": ["a"], "request": {"headers": {"set": {"X": "${API_KEY}\n"}}}}]},
        {"listeners": [{"address": "${API_KEY}:80"}, {"address": "${API_KEY}:80"}]},
        {"access": {"rules": [{"name": "${API_KEY}", "action": "allow"}, {
            "name": "${API_KEY}", "action": "deny"}]}},
    ):
        running.write_config({**running.config, **wrong})
        refused(running, lambda: running.signal(signal.SIGHUP))
        checked = run_pinfold("check", "--config", str(running.config_file))
        assert checked.returncode == 1
        assert "${API_KEY}" in checked.stderr, checked.stderr
        seen += [checked.stdout, checked.stderr]
    (credentials / "admin.token").unlink()
    refused(running, lambda: running.signal(signal.SIGHUP))
    (credentials / "admin.token").write_text("token\n")

    running.write_config(running.config)
    checked = run_pinfold("check", "--config", str(running.config_file))
    assert checked.returncode == 0, checked.stderr
    for line in ('workers: "${THREADS}"', '"X-Key": "Bearer ${API_KEY}"',
                 '"X-Literal": "$${API_KEY}"', '"${CREDENTIALS_DIRECTORY}/admin.token"'):
        assert line in checked.stdout
    # What is printed is the same configuration.
    again = running.folder / "again.yaml"
    again.write_text(checked.stdout)
    twice = run_pinfold("check", "--config", str(again))
    assert twice.stdout == checked.stdout
    seen += [checked.stdout, checked.stderr, running.log()]
    seen += [str(line) for line in running.wait_access()]
    for text in seen:
        assert SECRET not in text
        assert str(credentials) not in text


def test_a_variable_that_is_not_set_is_named(workspace):
    file = workspace / "pinfold.yaml"
    file.write_text("log:\n  level: ${NOT_SET_ANYWHERE}\n")
    for command in ("check", "run"):
        done = run_pinfold(command, "--config", str(file))
        assert done.returncode == 1
        assert done.stderr.startswith(
            f'Error: {file}:2: log.level: the environment variable "NOT_SET_ANYWHERE" is not set;')


# Included files


def test_included_files_are_read_at_each_reload_and_named_by_check(gateway):
    running = gateway({"include": ["conf.d/*.yaml"]}, start=False)
    folder = running.folder / "conf.d"
    folder.mkdir(mode=0o755)
    (folder / "10-one.yaml").write_text(entry("one.test"))
    running.start()
    assert labels(running) == "one "
    (folder / "20-two.yaml").write_text(entry("two.test"))
    (folder / "30-no.yml").write_text(entry("three.test"))
    after(running, lambda: running.signal(signal.SIGHUP))
    assert labels(running) == "one two "
    checked = run_pinfold("check", "--config", "pinfold.yaml", cwd=running.folder)
    assert checked.returncode == 0, checked.stderr
    assert checked.stdout.endswith(
        "# Read, in this order: pinfold.yaml, conf.d/10-one.yaml, conf.d/20-two.yaml\n")
    (folder / "20-two.yaml").write_text("hosts:\n  - match: [a, 'b b']\nlog: { level: debug }\n")
    text = refused(running, lambda: running.signal(signal.SIGHUP))
    assert f"{folder}/20-two.yaml:3: log.level: is written twice, first in " in text
    assert labels(running) == "one two "
    (folder / "20-two.yaml").write_text("\nhosts:\n  - match: [a, 'b b']\n")
    text = refused(running, lambda: running.signal(signal.SIGHUP))
    assert f"{folder}/20-two.yaml:3: hosts[1].match[1]:" in text
    (folder / "20-two.yaml").unlink()
    (folder / "10-one.yaml").chmod(0o666)
    text = refused(running, lambda: running.signal(signal.SIGHUP))
    assert "can be written by others" in text
    (folder / "10-one.yaml").chmod(0o644)
    after(running, lambda: running.signal(signal.SIGHUP))
    assert labels(running) == "one "


# Files that change


class Volume:
    """A folder of files as Kubernetes mounts a ConfigMap: each is a link to ..data/NAME, and ..data is
    a link to a folder with one version of all."""

    def __init__(self, folder: Path, files: dict[str, str]):
        self.folder = folder
        self.version = 0
        folder.mkdir(mode=0o755)
        self.swap(files)

    def swap(self, files: dict[str, str]) -> None:
        last = self.folder / f"..2026_{self.version:02}"
        self.version += 1
        new = self.folder / f"..2026_{self.version:02}"
        new.mkdir(mode=0o755)
        for name, text in files.items():
            (new / name).write_text(text)
            (new / name).chmod(0o644)
        (self.folder / "..data_tmp").symlink_to(new.name)
        (self.folder / "..data_tmp").rename(self.folder / "..data")
        for name in files:
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(f"..data/{name}")
        for link in self.folder.iterdir():
            if link.is_symlink() and link.name not in {*files, "..data"}:
                link.unlink()
        if self.version > 1:
            shutil.rmtree(last)


def test_a_volume_that_is_mounted_read_only_may_have_any_mode(workspace):
    """The folder of a ConfigMap has mode 0777, and nobody can write it."""
    volume = Volume(workspace / "volume", {"a.yaml": entry("one.test")})
    volume.folder.chmod(0o777)
    file = workspace / "pinfold.yaml"
    file.write_text("include: [volume/*.yaml]\ncache: { path: cache }\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1
    assert f'is in the folder "{volume.folder}", which can be written by others' in done.stderr
    mounted = subprocess.run(
        ["unshare", "--mount", "sh", "-ec",
         'mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; echo mounted; '
         'exec "$2" check --config "$3"', "sh", str(volume.folder), str(BINARY), str(file)],
        capture_output=True, text=True, timeout=30)
    if not mounted.stdout.startswith("mounted\n"):
        pytest.skip("no mounts here")
    assert mounted.returncode == 0, mounted.stderr
    assert f"# Read, in this order: {file}, {volume.folder}/a.yaml" in mounted.stdout


@pytest.fixture
def watching(gateway):
    """A gateway that watches its files, with a volume of included ones."""
    running = gateway({"watch": True, "include": ["volume/*.yaml"]}, start=False)
    volume = Volume(running.folder / "volume", {"a.yaml": entry("one.test")})
    return running.start(), volume


def test_the_files_of_a_volume_are_read_when_its_link_is_swapped(watching):
    running, volume = watching
    assert labels(running) == "one "
    after(running, lambda: volume.swap({"a.yaml": entry("two.test")}))
    assert labels(running) == "two "
    after(running, lambda: volume.swap({"a.yaml": entry("two.test"), "b.yaml": entry("three.test")}))
    until(lambda: labels(running) == "two three ", "the new file is read")
    after(running, lambda: volume.swap({"b.yaml": entry("four.test")}))
    until(lambda: labels(running) == "four ", "the old file is gone")


def test_the_main_file_may_be_in_a_volume(gateway, workspace):
    running = gateway(start=False)
    running.start()
    text = running.config_file.read_text()
    other = gateway({"watch": True}, start=False)
    other.write_config(other.config)
    plain = other.config_file.read_text()
    volume = Volume(other.folder / "volume", {"pinfold.yaml": plain + entry("one.test")})
    other.config_file = volume.folder / "pinfold.yaml"
    other.write_config = lambda config: None  # type: ignore[method-assign]
    other.start()
    assert labels(other) == "one "
    for host in ("two", "three"):
        after(other, lambda name=host: volume.swap(
            {"pinfold.yaml": plain + entry(f"{name}.test")}))
        assert labels(other) == f"{host} "
    # Without `watch` nothing is read.
    running.config_file.write_text(text + entry("one.test"))
    assert generation(running) == 1


def test_each_way_to_write_a_file_is_seen(watching):
    running, volume = watching
    main = running.config_file
    plain = main.read_text()
    ways = {
        "one": lambda text: main.write_text(text),
        "two": lambda text: (main.with_suffix(".new").write_text(text),
                             main.with_suffix(".new").rename(main)),
        "three": lambda text: (main.rename(main.with_suffix(".yaml~")), main.write_text(text)),
        "four": lambda text: (main.unlink(), main.write_text(text)),
    }
    volume.swap({"a.yaml": "{}"})
    until(lambda: labels(running) == "", "the entry is gone", 20)
    for host, write in ways.items():
        after(running, lambda: write(plain + entry(f"{host}.test")))
        until(lambda: labels(running) == f"{host} ", f"{host} is in force")


def test_what_cannot_be_used_is_logged_once_and_the_old_stays(watching):
    running, volume = watching
    text = refused(running, lambda: volume.swap({"a.yaml": "hosts: [{ match: ['a a'] }]\n"}))
    assert f"{volume.folder}/a.yaml:1: hosts[0].match[0]:" in text
    assert labels(running) == "one "
    assert running.metric("pinfold_config_last_reload_successful") == 0
    # Whatever else happens in the folders, it is not read again: a change of something else is.
    (running.folder / "other.yaml").write_text("x")
    (volume.folder / "other").write_text("x")
    after(running, lambda: volume.swap({"a.yaml": entry("two.test")}))
    assert labels(running) == "two "
    assert running.log().count("not reloaded") == 1
    assert running.metric("pinfold_config_last_reload_successful") == 1


def test_a_file_that_the_configuration_names_is_watched_also_before_it_exists(watching):
    running, volume = watching
    token = running.folder / "secrets" / "token"
    page = "admin: { tokenFile: ../secrets/token }\n"
    text = refused(running, lambda: volume.swap({"a.yaml": page}))
    assert "No such file or directory" in text
    token.parent.mkdir()
    after(running, lambda: token.write_text("one"))
    after(running, lambda: token.write_text("two"))


def test_watching_may_be_turned_on_and_off(gateway):
    running = gateway()
    on = {**running.config, "watch": True}
    running.write_config(on)
    after(running, lambda: running.signal(signal.SIGHUP))
    after(running, lambda: running.write_config({**on, "timeouts": {"idle": "50s"}}))
    after(running, lambda: running.write_config(running.config))
    until(lambda: not inotify_descriptors(running), "nothing is watched")


def inotify_descriptors(running: Gateway) -> list[str]:
    folder = Path(f"/proc/{running.pid}/fd")
    return [name for name in os.listdir(folder)
            if (folder / name).is_symlink() and os.readlink(folder / name) == "anon_inode:inotify"]


def test_nothing_grows_with_many_changes(watching):
    running, volume = watching

    def swap(number: int) -> None:
        after(running, lambda: volume.swap(
            {f"{number}.yaml": entry(f"h{number}.test"), "a.yaml": entry("one.test")}))

    for number in range(3):
        swap(number)
    descriptors, threads = running.descriptors, running.status("Threads")
    for number in range(3, 23):
        swap(number)
    until(lambda: len(inotify_descriptors(running)) == 1, "the folders are watched")
    until(lambda: running.descriptors <= descriptors + 4, "descriptors do not grow")
    assert running.status("Threads") <= threads


def without_inotify() -> None:
    """In the process to be started: a user namespace in which nothing can be watched."""
    new_user = 0x10000000
    if ctypes.CDLL(None, use_errno=True).unshare(new_user) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/uid_map").write_text("0 0 1")
    Path("/proc/sys/user/max_inotify_instances").write_text("0")


def test_files_are_looked_at_where_the_system_tells_nothing(gateway):
    running = gateway({"watch": True, "include": ["conf.d/*.yaml"]}, start=False,
                      preexec=without_inotify)
    (running.folder / "conf.d").mkdir(mode=0o755)
    try:
        running.start()
    except subprocess.SubprocessError:
        pytest.skip("no user namespaces here")
    running.wait_log("the system does not tell about changes")
    assert not inotify_descriptors(running)
    after(running, lambda: (running.folder / "conf.d/a.yaml").write_text(entry("one.test")))
    assert labels(running) == "one "
    after(running, lambda: (running.folder / "conf.d/a.yaml").unlink())
    assert running.log().count("the system does not tell about changes") == 1
