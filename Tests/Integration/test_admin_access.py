"""Who may read the administrative address, and under which names."""

from __future__ import annotations

import json
import os
import signal
import stat

import pytest
from support.gateway import Gateway, run_pinfold
from support.wire import Response

PAGES = ["/", "/metrics", "/healthz", "/readyz"]


def ask(gateway: Gateway, path: str, host: str | None, *fields: str) -> Response:
    lines = [f"GET {path} HTTP/1.{0 if host is None else 1}", *fields, "Connection: close"]
    if host is not None:
        lines.insert(1, f"Host: {host}")
    return gateway.ask("\r\n".join(lines) + "\r\n\r\n", listener="admin")


def test_only_its_own_names_are_answered(gateway):
    running = gateway({"admin": {"hosts": ["metrics.example"]}})
    port = running.admin[1]
    for path in PAGES:
        for host in ["localhost", f"localhost:{port}", "a.localhost", "127.0.0.1",
                     f"127.0.0.1:{port}", f"[::1]:{port}", f"metrics.example:{port}", None]:
            assert ask(running, path, host).status == 200, (path, host)
        for host in ["evil.example", f"evil.example:{port}", "192.0.2.1", "localhost.evil.example"]:
            refused = ask(running, path, host)
            assert refused.status == 421, (path, host)
            assert b"admin.hosts" in refused.body
    running.config["admin"]["hosts"] = []
    assert ask(running, "http://evil.example/metrics", "localhost").status == 421


def test_a_token_protects_what_the_file_requires(gateway, tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret-token-of-some-length\n")
    running = gateway({"admin": {"address": "0.0.0.0:0", "tokenFile": str(token)}}, start=False)
    running.start(wait=False)
    running.wait_log("listener=admin")
    for line in running.log().splitlines():
        if "listener=admin" in line:
            running.listeners["admin"] = (
                "127.0.0.1", int(line.split("address=")[1].split()[0].strip('"').split(":")[-1]))
    host = f"127.0.0.1:{running.admin[1]}"
    right = "Authorization: Bearer s3cret-token-of-some-length"
    for path in ["/", "/page/main.js", "/healthz", "/readyz"]:
        assert ask(running, path, host).status == 200
    for path in ["/metrics", "/api/v1/status"]:
        refused = ask(running, path, host)
        assert refused.status == 401
        assert refused.get("www-authenticate").startswith("Bearer")
        assert ask(running, path, host, "Authorization: Bearer wrong").status == 401
        assert ask(running, path, host, right).status == 200


def test_metrics_beyond_loopback_are_open_only_if_the_file_says_so(tmp_path):
    def check(admin: str) -> tuple[int, str]:
        file = tmp_path / "pinfold.yaml"
        file.write_text(f"cache: {{ path: cache }}\nadmin: {{ {admin} }}\n")
        done = run_pinfold("check", "--config", str(file))
        return done.returncode, done.stderr + done.stdout

    code, text = check('address: "0.0.0.0:9090"')
    assert code == 1
    assert "admin.address" in text and "admin.metrics: open" in text
    code, text = check('address: "0.0.0.0:9090", metrics: open')
    assert code == 0 and "metrics: open" in text
    code, text = check("metrics: token")
    assert code == 1 and "admin.metrics" in text
    code, text = check("hosts: [a.example]")
    assert code == 0 and "a.example" in text


def test_readyz_reports_that_the_disk_tier_is_off(gateway):
    running = gateway({"cache": {"path": "/dev/null/cache"}})
    ready = running.admin_get("/readyz", Accept="application/json")
    assert ready.status == 200
    assert json.loads(ready.body)["status"] == "ready"
    assert "disk tier is off (folder)" in json.loads(ready.body)["message"]
    assert running.metric("pinfold_cache_disk_state", state="failed") == 1
    assert "cache.path" in running.log()


# Files that are no configuration


@pytest.mark.parametrize("text", ["", "\n  \n", "# later\n"])
def test_a_reload_of_an_emptied_file_changes_nothing(gateway, text):
    running = gateway()
    running.write_config(text)
    running.signal(signal.SIGHUP)
    running.wait_log("not reloaded.*has no key")
    assert running.metric("pinfold_config_generation") == 1
    assert running.get("http://127.0.0.1:1/").status == 502


def test_a_reload_logs_what_it_removes(gateway):
    running = gateway({
        "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
                      {"name": "second", "address": "127.0.0.1:0", "kind": "forward"}],
        "hosts": [{"match": ["a.example"], "upgrade": "https", "pinsets": ["mine"]}],
        "pinsets": {"mine": {"mode": "publicKey", "pins": ["sha256/" + "A" * 43 + "="]}}})
    del running.config["listeners"][1], running.config["pinsets"], running.config["hosts"]
    running.write_config(running.config)
    running.signal(signal.SIGHUP)
    running.wait_log("configuration reloaded")
    log = running.log()
    for removed in ["listeners=second", "pinsets=mine", "hosts=a.example"]:
        assert any(" warning " in line and "removes" in line and removed in line
                   for line in log.splitlines()), (removed, log)


def test_a_pipe_as_configuration_is_refused_at_once(gateway, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in [str(pipe), "/dev/stdin", "/dev/zero"]:
        done = run_pinfold("run", "--config", path)
        assert done.returncode == 1
        assert "not a regular file" in done.stderr
    running = gateway()
    running.config_file.unlink()
    os.mkfifo(running.config_file)
    assert stat.S_ISFIFO(running.config_file.stat().st_mode)
    running.signal(signal.SIGHUP)
    running.wait_log("not reloaded.*is a pipe")
    running.signal(signal.SIGTERM)
    assert running.wait_exit() == 0


@pytest.mark.parametrize("key, text", [
    ("tokenFile", "admin: { tokenFile: PIPE }"), ("roots", "tls: { roots: [PIPE] }"),
    ("pins", "pinsets: { a: { mode: certificate, pins: [PIPE] } }"),
])
def test_a_pipe_in_place_of_another_file_is_refused_too(tmp_path, key, text):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    file = tmp_path / "pinfold.yaml"
    file.write_text(text.replace("PIPE", str(pipe)) + "\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1
    assert key in done.stderr and "is a pipe" in done.stderr


# Paths


def test_check_and_run_name_the_key_of_a_log_that_cannot_be_written(tmp_path):
    file = tmp_path / "pinfold.yaml"
    file.write_text("log: { access: { path: none/access.log } }\ncache: { path: cache }\n")
    for command in ("check", "run"):
        done = run_pinfold(command, "--config", str(file))
        assert done.returncode == 1
        assert f"{file}:1: log.access.path: " in done.stderr
        assert "does not exist" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pinfold.yaml"], "nothing is made"


def test_check_warns_of_a_cache_that_cannot_be_written(tmp_path):
    (tmp_path / "taken").write_text("")
    file = tmp_path / "pinfold.yaml"
    file.write_text("cache: { path: taken/cache }\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 0
    assert f"{file}:1: cache.path: " in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pinfold.yaml", "taken"]


def test_a_tab_is_reported_with_line_and_column(tmp_path):
    file = tmp_path / "pinfold.yaml"
    file.write_text("cache:\n  disk: 0\n\tmemory: 1MiB\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1
    assert f"{file}:3: not valid YAML at column 1: a tab in the indentation" in done.stderr
