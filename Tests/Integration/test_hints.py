"""What the commands say of a slip of the pen: what is wrong, and what to write."""

from __future__ import annotations

import os

import pytest
from support.gateway import run_pinfold

DIGEST = "A" * 43 + "="


@pytest.mark.parametrize("names", [["nosuch"], ["pin", "nosuch"], ["run", "check"]])
def test_help_of_an_unknown_command_is_an_error(names):
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
def test_a_slip_is_an_error_with_what_to_write(tmp_path, name):
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
    assert "frobnicate: unknown key; expected one of include, watch, workers" in done.stderr


def test_a_pin_without_its_hash_is_an_error_of_trust_and_of_the_client(pki, workspace):
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


ERRORS = {
    "an unknown option": (["check", "--nosuch"], 64),
    "a missing value": (["run", "--config"], 64),
    "an unknown command": (["help", "nosuch"], 64),
    "an unknown reason": (["reasons", "nosuch"], 64),
    "a contradiction": (["get", "http://a/", "--resume"], 64),
    "check": (["check", "--config", "none.yaml"], 1),
    "check of several errors": (["check", "--workers", "x", "--admin", "x"], 1),
    "run": (["run", "--config", "none.yaml"], 1),
    "explain": (["explain", "nonsense"], 2),
    "explain without a configuration": (["explain", "http://a/", "--config", "none.yaml"], 2),
    "trust": (["trust", "--chain", "none.pem", "--host", "a"], 2),
    "trust without a configuration": (
        ["trust", "--chain", "none.pem", "--host", "a", "--config", "none.yaml"], 2),
    "transform": (["transform", "--route", "nosuch"], 2),
    "transform without a configuration": (
        ["transform", "--route", "nosuch", "--config", "none.yaml"], 2),
    "pin": (["pin", "none.pem"], 1),
    "pin with roots": (["pin", "none.pem", "--roots", "none.pem"], 1),
    "pin import": (["pin", "import", "none.xml"], 1),
    "pin export": (["pin", "export", "--config", "none.yaml", "--format", "curl"], 1),
    "ca show": (["ca", "show", "--certificate", "none.pem", "--key", "none.key"], 1),
    "ca export": (["ca", "export", "--certificate", "none.pem"], 1),
    "get": (["get", "nonsense"], 3),
    "get with a missing file": (["get", "https://a.test/", "--cacert", "none.pem"], 77),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_all_commands_have_one_form_and_their_codes(tmp_path, name):
    arguments, code = ERRORS[name]
    done = run_pinfold(*arguments, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    # The parser's own errors are followed by the usage.
    lines = done.stderr.splitlines()
    for line in lines[:1] if code == 64 else lines:
        assert line.startswith("Error: ") and not line.startswith("Error: Error"), done.stderr
    assert lines


def test_an_error_in_an_option_names_the_option_alone():
    done = run_pinfold("check", "--workers", "0", "--admin", "here", "--cache-path", "")
    assert done.returncode == 1
    assert [line.partition(";")[0] for line in done.stderr.splitlines()] == [
        'Error: --admin: "here" is not valid', "Error: --workers: 0 is out of range",
        'Error: --cache-path: "" is not valid']


def test_a_warning_about_a_path_names_it_once(tmp_path):
    (tmp_path / "taken").write_text("")
    done = run_pinfold("check", "--cache-path", str(tmp_path / "taken"))
    assert done.returncode == 0
    assert (f'Warning: --cache-path: "{tmp_path}/taken" is not a directory: nothing will be cached '
            "on disk") in done.stderr.splitlines()


def test_the_printed_number_of_workers_is_that_of_this_machine():
    done = run_pinfold("check")
    line = next(line for line in done.stdout.splitlines() if line.startswith("workers: "))
    comment, number = line.rsplit(" ", 1)
    assert comment == "workers: auto  # one per core that may be used here,"
    # Fewer where this process has a share of the processor time.
    assert 1 <= int(number) <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize("name", ["init", "show", "export", "rotate"])
def test_help_does_not_show_the_home_directory_of_its_reader(tmp_path, name):
    done = run_pinfold("help", "ca", name, HOME=str(tmp_path), XDG_STATE_HOME=str(tmp_path))
    text = " ".join(done.stdout.split())
    assert str(tmp_path) not in text
    assert "(default: ca.pem in $XDG_STATE_HOME/pinfold, or in ~/.local/state/pinfold)" in text


def test_help_names_all_kinds_of_refused_addresses():
    text = " ".join(run_pinfold("help", "run").stdout.split())
    for kind in ("loopback", "link-local", "private", "shared", "unspecified", "multicast",
                 "broadcast", "reserved", "metadata"):
        assert kind in text.partition("--allow-destination <destination>")[2], kind


def test_reasons_lists_what_each_side_can_send():
    listed = {line.split()[0] for line in run_pinfold("reasons").stdout.splitlines()
              if line.startswith("  ")}
    assert {"host-missing", "method-too-long", "upstream-malformed-status-line"} <= listed
    assert not {"upstream-host-missing", "upstream-method-too-long",
                "malformed-status-line"} & listed


@pytest.mark.parametrize("arguments", [
    ["trust", "--chain", "chain.pem", "--host", "a"], ["pin", "export", "--format", "curl"]])
def test_a_pinset_is_not_expected_where_there_is_none(tmp_path, arguments):
    (tmp_path / "pinfold.yaml").write_text("workers: 1")
    done = run_pinfold(*arguments, "--config", "pinfold.yaml", "--pinset", "p", cwd=tmp_path)
    assert done.returncode == (2 if arguments[0] == "trust" else 1)
    assert "there is no pinset p" in done.stderr and "pinsets is empty" in done.stderr
    assert "expected" not in done.stderr
