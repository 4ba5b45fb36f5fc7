"""`pinfold explain --running`: what the running gateway says is what is in force in it."""

from __future__ import annotations

import json

import pytest
from support.credentials import bcrypt, write
from support.gateway import Gateway, run_pinfold
from support.origin import reply
from support.wait import until
from test_admin_api import described, reload_by_api
from test_admin_commands import address
from test_flows import BEARER, TOKEN

CONFIG = {
    "access": {"rules": [{"name": "no-admin", "paths": ["/admin"], "action": "deny"}]},
    "hosts": [{"match": ["a.test"], "name": "api", "upgrade": "https"}],
}


def explained(running: Gateway, url: str, *options: str, code: int = 0) -> list[str]:
    done = run_pinfold("explain", url, "--running", *address(running), *options)
    assert (done.returncode, done.stderr) == (code, ""), done
    return done.stdout.splitlines()


@pytest.fixture
def socket(gateway, workspace):
    return gateway({**CONFIG, "admin": {"address": f"unix:{workspace / 'admin.sock'}"}})


def named(running: Gateway) -> list[str]:
    return ["--config", str(running.config_file)]


@pytest.mark.parametrize("url", [
    "http://a.test/x?y=1&z=%20", "https://a.test:8443/", "http://b.test/admin", "unix:/no.sock"])
def test_it_says_what_the_command_says_of_the_same_file(socket, url):
    options = ["--address", "192.0.32.1", "--client", "127.0.0.1", *named(socket)]
    own = run_pinfold("explain", url, *options)
    running = run_pinfold("explain", url, "--running", *options)
    assert running.returncode == own.returncode, (own, running)
    lines = running.stdout.splitlines()
    assert lines[:len(own.stdout.splitlines())] == own.stdout.splitlines()
    assert lines[-1].startswith("configuration: number 1, loaded ")
    answer = json.loads(run_pinfold("explain", url, "--running", "--json", *options).stdout)
    assert answer["text"] == lines and answer["access"] == "full"
    same = json.loads(run_pinfold("explain", url, "--json", *options).stdout)
    assert {name: answer[name] for name in same} == same


def test_what_is_in_force_counts_and_not_what_the_file_says(socket):
    before = explained_at(socket, "http://a.test/")
    config = json.loads(json.dumps(socket.config))
    config["hosts"][0]["name"] = "renamed"
    socket.write_config(config)
    assert explained_at(socket, "http://a.test/") == before
    assert any("(api)" in line for line in before)
    assert any("(renamed)" in line for line in run_pinfold(
        "explain", "http://a.test/", "--address", "192.0.32.1",
        *named(socket)).stdout.splitlines())
    assert reload_by_api(socket).status == 200
    after = explained_at(socket, "http://a.test/")
    assert any("(renamed)" in line for line in after)
    assert after[-1].startswith("configuration: number 2, ")


def explained_at(running: Gateway, url: str, code: int = 0) -> list[str]:
    done = run_pinfold("explain", url, "--running", "--address", "192.0.32.1", *named(running))
    assert (done.returncode, done.stderr) == (code, ""), done
    return done.stdout.splitlines()


def test_a_users_file_counts_as_it_was_read(gateway, workspace):
    users = workspace / "users"
    write(users, f"ann:{bcrypt('one')}")
    running = gateway({
        "admin": {"address": f"unix:{workspace / 'admin.sock'}"},
        "authentication": {"users": str(users)},
        "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward",
                       "authentication": ["basic"]}],
        "access": {"rules": [{"name": "ann", "users": ["ann"], "action": "deny"}]}})
    lines = run_pinfold("explain", "http://a.test/", "--running", "--address", "192.0.32.1",
                        "--user", "ann", *named(running))
    assert (lines.returncode, lines.stderr) == (1, "")
    assert "ann decides" in lines.stdout
    unknown = run_pinfold("explain", "http://a.test/", "--running", "--user", "bea",
                          *named(running))
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "there is no user bea" in unknown.stderr


def test_the_moment_is_said(gateway, origin, workspace):
    there = origin(lambda _: reply(b"answer", "200 OK", "Cache-Control: max-age=100"))
    running = gateway({
        "admin": {"address": f"unix:{workspace / 'admin.sock'}"},
        "hosts": [{"match": ["localhost"]}],
        "listeners": [
            {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
            {"name": "app", "address": "127.0.0.1:0", "kind": "reverse", "upstreams": {
                "servers": [{"url": there.url("")}, {"url": "http://127.0.0.1:1"}]}}]})
    url = f"http://localhost:{there.port}/stored"

    def lines() -> list[str]:
        return run_pinfold("explain", url, "--running", *named(running)).stdout.splitlines()

    assert "stored: nothing" in lines()
    assert running.get(url).status == 200
    stored = until(
        lambda: next((one for one in lines() if one.startswith(f"stored: {url}: ")), ""),
        "it is stored")
    assert "status 200, in memory, age " in stored and stored.endswith(": used")
    assert any(one.startswith("reachability: localhost") and one.endswith(" is reachable")
               for one in lines())
    balanced = run_pinfold(
        "explain", there.url("/"), "--running", "--address", "192.0.32.1", *named(running))
    assert any(one.startswith("server of app: ") for one in balanced.stdout.splitlines()), balanced


def test_who_has_no_token_sees_no_more_than_of_flows(gateway, tmp_path):
    open_to_this_machine = gateway(CONFIG)
    response = open_to_this_machine.admin_get("/api/v1/explain?url=http://b.test/admin")
    assert response.status == 200
    described(open_to_this_machine, "get", "/api/v1/explain", response)
    answer = response.json()
    assert (answer["access"], answer["verdict"]) == ("masked", "refused")
    assert "no-admin" not in response.body.decode()
    assert "addresses" not in answer and "rules" not in answer
    lines = explained(open_to_this_machine, "http://b.test/admin", code=1)
    assert lines == answer["text"]
    assert lines[-1].startswith("masked: ")

    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    guarded = gateway({**CONFIG, "admin": {"tokenFile": str(token)}})
    assert guarded.admin_get("/api/v1/explain?url=http://b.test/admin").status == 401
    full = guarded.admin_get(
        "/api/v1/explain?url=http://b.test/admin&address=192.0.32.1", **BEARER)
    described(guarded, "get", "/api/v1/explain", full)
    assert full.json()["rules"][0]["rule"] == "no-admin"
    lines = explained(guarded, "http://b.test/admin", "--token-file", str(token),
                      "--address", "192.0.32.1", code=1)
    assert lines == full.json()["text"]
    done = run_pinfold("explain", "http://b.test/", "--running", *address(guarded))
    assert (done.returncode, done.stdout) == (2, "") and "token" in done.stderr


def test_options_that_mean_nothing_there_are_refused():
    for options in (["--running", "--connect"], ["--running", "--listen", "127.0.0.1:1"],
                    ["--running", "--workers", "1"], ["--token-file", "x"], ["--timeout", "3"]):
        done = run_pinfold("explain", "http://a.test/", *options)
        assert (done.returncode, done.stdout) == (64, ""), done
    done = run_pinfold("explain", "http://a.test/", "--running", "--admin", "127.0.0.1:1")
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith("Error: ")
