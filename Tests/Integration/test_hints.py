"""What the commands say of a slip of the pen: what is wrong, and what to write."""

from __future__ import annotations

import pytest
from support.gateway import run_pinfold

DIGEST = "A" * 43 + "="


@pytest.mark.parametrize("names", [["nosuch"], ["pin", "nosuch"], ["run", "check"]])
def test_help_of_a_command_that_is_none_is_an_error(names):
    done = run_pinfold("help", *names)
    assert done.returncode == 64 and done.stdout == ""
    assert f"unknown command {names[-1]}" in done.stderr


@pytest.mark.parametrize("names", [[], ["run"], ["pin"], ["pin", "import"], ["ca", "init"]])
def test_help_of_a_command_is_printed(names):
    done = run_pinfold("help", *names)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"USAGE: {' '.join(['pinfold', *names])} " in done.stdout


SLIPS = {
    "a size as nginx has it": ("cache: { memory: 64M }", ['"64M" is not valid', "64MiB?"]),
    "a duration as systemd has it": ("timeouts: { idle: 5min }", ['"5min" is not valid', "5m?"]),
    "a number of seconds": ("timeouts: { idle: 60 }", ['"60" is not valid', "60s?"]),
    "a URL as a pattern": (
        "hosts: [{ match: ['https://api.example.com/'] }]",
        ["it is a URL", "write its host alone"]),
    "a URL as a destination": (
        "access: { destinations: { allow: ['http://api.example.com:8080'] } }", ["it is a URL"]),
    "a pin without its hash": (
        f"pinsets: {{ p: {{ mode: publicKey, pins: ['{DIGEST}'] }} }}",
        ["does not name its hash", f"sha256/{DIGEST}"]),
    "a pin as a browser has it": (
        f"pinsets: {{ p: {{ mode: publicKey, pins: ['sha256-{DIGEST}'] }} }}",
        ["does not name its hash", f"sha256/{DIGEST}"]),
    "a key that is near to one": ("listeneers: []", ['did you mean "listeners"?']),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_is_told_with_what_to_write(tmp_path, name):
    text, words = SLIPS[name]
    (tmp_path / "slip.yaml").write_text(text)
    done = run_pinfold("check", "--config", str(tmp_path / "slip.yaml"))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    for word in words:
        assert word in done.stderr, done.stderr


def test_nothing_is_suggested_where_no_key_is_near(tmp_path):
    (tmp_path / "slip.yaml").write_text("frobnicate: 1")
    done = run_pinfold("check", "--config", str(tmp_path / "slip.yaml"))
    assert done.returncode == 1
    assert "frobnicate: unknown key; expected one of workers" in done.stderr


def test_a_pin_without_its_hash_is_told_by_trust_and_by_the_client(pki, workspace):
    leaf = pki.intermediate.issue("a.test")
    asked = run_pinfold("trust", "--chain", str(leaf.chain_file()), "--host", "a.test",
                        "--pin", DIGEST)
    got = run_pinfold("get", "https://a.test/", "--pin", DIGEST)
    for done in (asked, got):
        assert done.returncode not in (0, 1)
        assert f"sha256/{DIGEST}" in done.stderr, done.stderr


@pytest.mark.parametrize("connections", [100, 600])
def test_a_limit_beyond_the_open_files_is_warned_of(gateway, tmp_path, connections):
    import resource

    def few() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 1000))

    running = gateway({"limits": {"connections": connections}, "workers": 1}, preexec=few)
    running.stop()
    warned = "limits.connections: this many connections and as many to servers need 1200" in running.log()
    assert warned == (connections == 600), running.log()
