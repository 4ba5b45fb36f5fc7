"""The configuration in force, and what its files say by now, as the API shows them."""

from __future__ import annotations

import hashlib

import pytest
import yaml
from support.gateway import Gateway, run_pinfold
from support.wait import until
from support.wire import Response
from test_admin_api import described, reload_by_api
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
    times = {configuration(running)["files"]["looked"] for _ in range(50)}
    assert len(times) <= 3
