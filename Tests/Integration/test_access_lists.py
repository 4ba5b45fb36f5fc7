"""Lists of domains: their files are read at the start, and again when they change."""

from __future__ import annotations

import signal

from support.gateway import run_pinfold
from support.wait import until


def test_a_list_is_in_force_without_a_reload_once_its_file_has_changed(gateway, workspace):
    names, more = workspace / "names.txt", workspace / "more.txt"
    names.write_text("one.test\n")
    more.write_text("||more.test^\n")
    running = gateway({"access": {"lists": {"names": {"files": [str(names), str(more)]}}}})

    def state(file, name):
        return running.metric("pinfold_config_file_state", file=str(file), state=name)

    def generation():
        return running.metric("pinfold_config_generation")

    assert state(names, "current") == 1
    assert generation() == 1
    names.write_text("two.test\nno name\n")
    running.wait_log("changed configuration files are now in effect")
    running.wait_log("line 2 is not a name, an address or a network")
    until(lambda: generation() == 2, running.log)
    # A page in place of a list: the one before stays, together with the other file.
    names.write_text("<!DOCTYPE html>\n")
    running.wait_log("a configuration file has changed and cannot be used")
    assert state(names, "unusable") == state(more, "unusable") == 1
    assert running.metric("pinfold_config_file_refusals_total") == 1
    assert generation() == 2
    found = run_pinfold("check", "--config", str(running.config_file))
    assert found.returncode == 1
    message = found.stderr.strip().split(": ", 2)[2]
    assert message.startswith("access.lists.names.files[0]: ") and "; expected " in message
    assert message.replace('"', '\\"') in running.log()
    # A reload of the configuration refuses it as well.
    running.signal(signal.SIGHUP)
    running.wait_log("configuration not reloaded")
    names.write_text("three.test\n")
    running.wait_log("a configuration file can be used again")
    until(lambda: generation() == 3 and state(names, "current") == 1, running.log)
    # The same names in another text change nothing.
    names.write_text("# three\nThree.test.\n")
    more.write_text("@@||more.test^\n")
    until(lambda: generation() == 4, running.log)
    running.signal(signal.SIGHUP)
    running.wait_log("configuration reloaded")


def test_check_prints_what_the_files_have(workspace):
    (workspace / "a.txt").write_text("0.0.0.0 one.test\n0.0.0.0 two.test\n")
    (workspace / "b.txt").write_text("three.test\n10.0.0.0/8\nhttp://four.test/\n")
    (workspace / "pinfold.yaml").write_text("access: { lists: { a: { files: [a.txt, b.txt] } } }\n")
    found = run_pinfold("check", "--config", str(workspace / "pinfold.yaml"))
    assert found.returncode == 0
    assert "# 3 names, 1 network, hosts, domains\n" in found.stdout
    (warning,) = [line for line in found.stderr.splitlines() if "access.lists" in line]
    assert "read as domains, has a line that means nothing here: line 3 is not a name" in warning
