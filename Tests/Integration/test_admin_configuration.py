"""The configuration in force, and what its files say by now, as the API shows them."""

from __future__ import annotations

import hashlib
import re
import time

import pytest
import yaml
from support.gateway import Gateway, run_pinfold
from support.wait import until
from support.wire import Response
from test_admin_api import described, reload_by_api, status
from test_flows import BEARER, TOKEN, guarded  # noqa: F401

PATH = "/api/v1/configuration"


def configuration(running: Gateway, **fields: str) -> dict:
    response = running.admin_get(PATH, **fields)
    assert response.status == 200, response.body
    described(running, "get", PATH, response)
    return response.json()


def files(running: Gateway, state: str) -> dict:
    """What the files say, once it is this: they are looked at every two seconds."""
    return until(
        lambda: found if (found := configuration(running)["files"])["state"] == state else {}, state)


def refused(running: Gateway, text: str) -> Response:
    running.write_config(text)
    response = reload_by_api(running)
    assert response.status == 422
    return response


# What is in force


def test_what_is_in_force_is_shown_to_who_has_the_token(guarded):  # noqa: F811
    assert guarded.admin_get(PATH).status == 401
    assert guarded.admin_get(f"{PATH}?x=1", **BEARER).status == 400
    shown = configuration(guarded, **BEARER)
    assert (shown["access"], shown["generation"]) == ("full", 1)
    assert shown["files"]["path"] == str(guarded.config_file)
    assert shown["files"]["state"] == "unchanged"
    assert "lastReload" not in shown and "lastRefused" not in shown
    assert shown["fingerprint"] == hashlib.sha256(shown["text"].encode()).hexdigest()
    assert not shown["textIsCut"]
    # Of the token it has the file.
    assert yaml.safe_load(shown["text"])["admin"]["tokenFile"] == guarded.config["admin"]["tokenFile"]
    assert TOKEN not in shown["text"]
    checked = run_pinfold("check", "--config", str(guarded.config_file)).stdout
    assert checked.startswith(shown["text"]), "it is what pinfold check prints"


def test_the_text_is_not_shown_without_the_token(gateway):
    shown = configuration(gateway())
    assert shown["access"] == "masked"
    assert "text" not in shown
    assert len(shown["fingerprint"]) == 64


def test_no_secret_is_in_the_text(gateway, workspace, monkeypatch):
    secret, password = "c2VjcmV0a2V5", workspace / "password"
    password.write_text("c2VjcmV0-password")
    password.chmod(0o600)
    monkeypatch.setenv("PINFOLD_TEST_SECRET", "c2VjcmV0-of-a-variable")
    running = gateway({
        "admin": {"address": f"unix:{workspace / 'admin.sock'}"},
        "hosts": [{"match": ["a.example"], "upgrade": "https", "pinsets": ["mine"], "request": {
            "headers": {"remove": ["X-Other"], "set": {"X-Api-Key": secret, "X-Two": "${PINFOLD_TEST_SECRET}"},
                        "add": {"X-More": [secret, "plain"]}},
            "authorization": {"basic": {"user": "me", "passwordFile": str(password)}}}}],
        "pinsets": {"mine": {"mode": "publicKey", "pins": ["sha256/" + "A" * 43 + "="],
                             "reportTo": f"https://reports.example/pins?token={secret}"}}})
    assert "c2VjcmV0" not in running.admin_get(PATH).body.decode()
    # Who comes by the Unix socket needs no token.
    text = configuration(running)["text"]
    (entry,) = yaml.safe_load(text)["hosts"]
    assert entry["request"]["headers"]["set"] == {"X-Api-Key": "***", "X-Two": "***"}
    assert entry["request"]["headers"]["add"] == {"X-More": ["***", "***"]}
    assert entry["request"]["headers"]["remove"] == ["X-Other"]
    assert entry["request"]["authorization"]["basic"]["user"] == "me"
    assert yaml.safe_load(text)["pinsets"]["mine"]["reportTo"] == "https://reports.example/pins?***"


def test_neither_queries_of_paths_nor_paths_that_rules_write_are_in_the_text(gateway, workspace):
    secret = "c2VjcmV0"
    running = gateway({
        "admin": {"address": f"unix:{workspace / 'admin.sock'}"},
        "listeners": [
            {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
            {"name": "front", "address": "127.0.0.1:0", "kind": "reverse", "upstreams": {
                "servers": [{"url": f"http://127.0.0.1:{port}"} for port in (1, 2)],
                "health": {"path": f"/health?token={secret}"}}}],
        "hosts": [{"match": ["a.example"], "request": {
            "path": {"prefixes": {"/old": f"/hooks/{secret}"}}}}]})
    text = configuration(running)["text"]
    assert secret not in text
    shown = yaml.safe_load(text)
    (front,) = (one for one in shown["listeners"] if one["name"] == "front")
    assert front["upstreams"]["health"]["path"] == "/health?***"
    assert shown["hosts"][0]["request"]["path"]["prefixes"] == {"/old": "***"}


def test_errors_quote_nothing_for_whom_the_text_is_not_shown(gateway, workspace):
    secret = "c2VjcmV0"
    wrong = {"tracing": {"otlp": f"http://user:{secret}@127.0.0.1:4318/v1?key={secret}"}}
    running = gateway()
    # Saving it is enough.
    running.write_config({**running.config, **wrong})
    (error,) = files(running, "refused")["errors"]
    assert error["key"] == "tracing.otlp" and error["line"]
    assert "***" in error["problem"] and "***" in error["text"]
    assert "none, or the URL" in error["expected"]
    assert reload_by_api(running).status == 422
    shown = running.admin_get(PATH).body.decode()
    assert secret not in shown
    assert configuration(running)["lastRefused"]["errors"] == [error]
    # Who may see the text sees what is quoted.
    full = gateway({"admin": {"address": f"unix:{workspace / 'admin.sock'}"}})
    full.write_config({**full.config, **wrong})
    (error,) = files(full, "refused")["errors"]
    assert "127.0.0.1:4318" in error["problem"]


# What the files say


def test_a_change_is_told_before_it_is_in_force(gateway):
    running = gateway()
    assert files(running, "unchanged")
    running.write_config({**running.config, "timeouts": {"grace": "7s"}, "limits": {"pending": 9}})
    found = files(running, "changed")
    assert found["changed"] == ["limits", "timeouts"]
    assert configuration(running)["generation"] == 1
    assert reload_by_api(running).status == 200
    shown = configuration(running)
    assert shown["generation"] == 2
    # Not only after two seconds.
    assert shown["files"]["state"] == "unchanged"
    assert shown["lastReload"]["result"] == "applied"


def test_sections_that_wait_for_a_restart_are_named(gateway):
    running = gateway()

    def reloaded(**over: object) -> list[str]:
        """Those that are named once this is in force, everywhere the same."""
        running.write_config({**running.config, **over})
        assert reload_by_api(running).status == 200
        named = configuration(running)["needRestart"]
        assert status(running)["configuration"]["needRestart"] == named
        shown = run_pinfold("status", "--admin", "%s:%d" % running.admin).stdout
        assert re.findall(r"^needs restart +(.+)$", shown, re.M) == named, shown
        return named

    assert configuration(running)["needRestart"] == []
    assert reloaded(workers=1, timeouts={"grace": "7s"}) == ["workers"]
    assert configuration(running)["files"]["state"] == "unchanged"
    # As long as they wait: they do not differ from what was read last.
    assert reloaded(workers=1, timeouts={"grace": "8s"}) == ["workers"]
    assert reloaded(timeouts={"grace": "8s"}) == []


def test_a_comment_is_no_change(gateway):
    running = gateway()
    before = configuration(running)
    running.write_config("# a comment\n" + running.config_file.read_text())
    looked = until(lambda: now if (now := configuration(running))["files"]["looked"]
                   != before["files"]["looked"] else {}, "another look")
    assert looked["files"]["state"] == "unchanged"
    assert looked["fingerprint"] == before["fingerprint"]


def test_what_would_be_refused_says_where(gateway):
    running = gateway()
    good = running.config_file.read_text()
    running.write_config(good + "timeouts:\n    grace: 5 parsecs\n")
    (error,) = files(running, "refused")["errors"]
    lines = running.config_file.read_text().splitlines()
    assert error["key"] == "timeouts.grace"
    assert lines[error["line"] - 1][error["column"] - 1:].startswith("grace")
    running.write_config(good + "timeouts: {\n")
    (error,) = until(
        lambda: found if "not valid YAML" in (found := files(running, "refused")["errors"])[0]["problem"]
        else [], "a syntax error")
    assert f"at column {error['column']}" in error["problem"]
    assert error["line"]
    running.write_config(good)
    assert files(running, "unchanged")


def test_a_file_that_cannot_be_read_says_so(gateway):
    running = gateway()
    running.config_file.unlink()
    assert "cannot be read" in files(running, "unreadable")["problem"]
    running.config_file.mkdir()
    until(lambda: "a directory" in configuration(running)["files"].get("problem", ""), "a directory")
    running.config_file.rmdir()


def test_the_last_error_stays_known_after_a_success(gateway):
    running = gateway()
    good = running.config
    errors = refused(running, running.config_file.read_text() + "no: 1\n").json()["errors"]
    shown = configuration(running)
    assert shown["lastReload"]["result"] == "refused"
    assert shown["lastRefused"]["errors"] == errors == shown["lastReload"]["errors"]
    assert errors[0]["column"] == 1
    running.write_config(good)
    assert reload_by_api(running).status == 200
    shown = configuration(running)
    assert shown["lastReload"]["result"] == "applied"
    assert shown["lastRefused"]["errors"] == errors


@pytest.mark.slow
def test_the_files_are_looked_at_seldom_however_many_ask(gateway):
    running = gateway()
    begun = time.monotonic()
    times = {configuration(running)["files"]["looked"] for _ in range(50)}
    assert len(times) <= (time.monotonic() - begun) / 2 + 2
