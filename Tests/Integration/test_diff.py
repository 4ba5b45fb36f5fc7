"""`pinfold diff`, and what `pinfold reload` says of differences."""

from __future__ import annotations

import json

from support.gateway import run_pinfold

OLD = """
access: { connectPorts: [443, 8443], clients: [127.0.0.0/8] }
pinsets:
  api: { mode: publicKey, enforce: false, pins: [sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=] }
hosts:
  - { match: [api.example.com], pinsets: [api], upgrade: https }
  - { match: [old.example.com], cache: { store: false } }
"""
NEW = """
access:
  clients: [127.0.0.0/8]
  connectPorts: [8443, 443]
  rules: [{ name: no-ads, hosts: ["**.ads.example"], action: deny }]
pinsets:
  api: { mode: publicKey, pins: [sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=] }
hosts:
  - { match: [api.example.com], pinsets: [api], upgrade: https, tunnel: auto }
timeouts: { idle: 2m }
"""


def diff(workspace, old: str, new: str, *options: str):
    (workspace / "old.yaml").write_text(old)
    (workspace / "new.yaml").write_text(new)
    return run_pinfold("diff", "old.yaml", "new.yaml", *options, cwd=workspace)


def test_what_differs_is_said_and_nothing_else(workspace):
    done = diff(workspace, OLD, NEW)
    assert done.returncode == 1, done.stderr
    assert done.stdout == """\
access.rules: no-ads: added; it is the rule 1 of 1: hosts [**.ads.example], action deny, status 403
hosts: old.example.com: removed; no entry applies now:
  cache.store was false, is true
  name was old.example.com, is default (in metrics and logs)
pinsets: api: used by api.example.com:
  enforce was false, is true (a server without a pinned key is refused)
timeouts: idle was 1m, is 2m
"""
    found = json.loads(diff(workspace, OLD, NEW, "--format", "json").stdout)
    assert [one["section"] for one in found["differences"]] == [
        "access.rules", "hosts", "pinsets", "timeouts"]
    assert found["differences"][3]["details"] == [{
        "key": "idle", "before": "1m", "after": "2m", "added": [], "removed": [],
        "meaning": None}]


def test_the_exit_code_says_whether_something_differs(workspace):
    same = diff(workspace, OLD, OLD + "\nworkers: auto\nlog: { level: info }\n")
    assert (same.returncode, same.stdout) == (0, "nothing differs in effect\n"), same.stderr
    refused = diff(workspace, OLD, "hots: []\n")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "hots" in refused.stderr


def test_the_order_of_files_is_no_difference_but_their_content_is(workspace, pki, gateway):
    one, other = pki.root.pem_file, pki.intermediate.pem_file
    (workspace / "one.pem").write_bytes(one.read_bytes())
    (workspace / "other.pem").write_bytes(other.read_bytes())
    old = "tls: { roots: [one.pem, other.pem] }\nhosts: [{ match: [a.test] }]\n"
    new = old.replace("one.pem, other.pem", "other.pem, one.pem")
    done = diff(workspace, old, new)
    assert (done.returncode, done.stdout) == (0, "nothing differs in effect\n"), done.stderr
    config = {"tls": {"roots": [str(workspace / "one.pem"), str(workspace / "other.pem")]}}
    running = gateway(config)
    (workspace / "one.pem").write_bytes(one.read_bytes() + other.read_bytes())
    config["tls"]["roots"].reverse()
    running.write_config({**running.config, **config})
    done = run_pinfold("reload", "--dry-run", "--config", str(running.config_file), "--admin",
                       f"{running.admin[0]}:{running.admin[1]}")
    assert "tls: the content of a file, or the value of a variable was other" in done.stdout, done


def test_a_reload_is_tried_out_and_then_says_what_differs(gateway):
    running = gateway({"hosts": [{"match": ["a.test"]}]})
    at = ["--config", str(running.config_file), "--admin",
          f"{running.admin[0]}:{running.admin[1]}"]
    done = run_pinfold("reload", "--dry-run", *at)
    assert (done.returncode, done.stdout) == (0, "nothing would differ in effect\n"), done.stderr
    running.config["hosts"] = [{"match": ["a.test"], "upgrade": "https"}]
    running.write_config(running.config)
    difference = ("hosts: a.test: upgrade was none, is https (requests in clear text are sent as "
                  "verified TLS)\n")
    done = run_pinfold("reload", "--dry-run", *at)
    assert (done.returncode, done.stdout) == (0, "a reload would change:\n" + difference)
    assert running.metric("pinfold_config_generation") == 1
    done = run_pinfold("reload", *at)
    assert (done.returncode, done.stdout) == (
        0, "configuration reloaded: hosts\n" + difference), done.stderr
    running.write_config({**running.config, "hots": []})
    done = run_pinfold("reload", "--dry-run", *at)
    assert (done.returncode, done.stdout) == (1, "")
    assert "hots" in done.stderr


def test_warnings_are_errors_with_strict(workspace):
    (workspace / "new.yaml").write_text("pinsets: { a: { mode: none } }\n")
    done = run_pinfold("check", "--config", "new.yaml", "--quiet", cwd=workspace)
    assert (done.returncode, done.stdout) == (0, "")
    assert "Warning: " in done.stderr
    done = run_pinfold("check", "--config", "new.yaml", "--strict", cwd=workspace)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Error: " in done.stderr and "Warning: " not in done.stderr


def test_what_may_be_a_secret_is_not_printed(gateway, workspace):
    def hosts(secret: str) -> dict:
        return {"hosts": [{"match": ["a.test"], "request": {
            "headers": {"set": {"X-Api-Key": secret}}, "query": {"set": {"key": secret}}}}]}

    old, new = hosts("c2VjcmV0"), hosts("b3RoZXI")
    expected = ("hosts: a.test:\n"
                "  request.headers.set.X-Api-Key was ***, is *** (another)\n"
                "  request.query.set.key was ***, is *** (another)\n")
    assert diff(workspace, json.dumps(old), json.dumps(new)).stdout == expected
    added = diff(workspace, "{}", json.dumps(new), "--format", "json").stdout
    assert "X-Api-Key" in added and "b3RoZXI" not in added
    running = gateway(old)
    running.config |= new
    running.write_config(running.config)
    at = ["--config", str(running.config_file), "--admin",
          f"{running.admin[0]}:{running.admin[1]}"]
    assert run_pinfold("reload", "--dry-run", *at).stdout == "a reload would change:\n" + expected
    assert run_pinfold("reload", *at).stdout == "configuration reloaded: hosts\n" + expected
