"""What the gateway answers in place of a server: what the client accepts, with the same content."""

import json
import plistlib
import re
import signal
from datetime import datetime

import pytest
from support.gateway import merged, run_pinfold
from support.wait import until
from support.wire import request

URL = "http://10.0.0.1/a?<b>"
BROWSER = ("text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8")


def refused(running, **fields):
    response = running.ask(request(URL, **fields))
    assert response.status == 403
    return response


@pytest.mark.parametrize("accept, kind", [
    (None, "text/plain; charset=utf-8"), ("*/*", "text/plain; charset=utf-8"),
    ("image/png", "text/plain; charset=utf-8"),
    ("application/json, text/plain, */*", "text/plain; charset=utf-8"),
    ("application/json", "application/json"), ("application/*", "application/json"),
    ("application/problem+json", "application/problem+json"),
    ("application/problem+json, application/json;q=0.9", "application/problem+json"),
    (BROWSER, "text/html; charset=utf-8"), ("text/html", "text/html; charset=utf-8"),
    ("application/x-plist", "application/x-plist"), ("application/xml", "application/xml"),
    ("text/html;q=0, */*;q=0.1", "text/plain; charset=utf-8"),
])
def test_a_refusal_is_written_in_what_its_client_accepts(shared_gateway, accept, kind):
    response = refused(shared_gateway, **({"Accept": accept} if accept else {}))
    assert response.get("content-type") == kind
    assert b"destination-refused" in response.body


def check_members(running, members):
    assert members["status"] == 403 and members["reason"] == "destination-refused"
    assert members["host"] == "10.0.0.1"
    assert re.fullmatch("[0-9a-f]{16}", members["id"])
    until(lambda: members["id"] in [line["id"] for line in running.access_lines()], "its line")


def test_every_format_has_status_reason_host_time_and_the_id_of_the_log(gateway):
    running = gateway()
    answer = json.loads(refused(running, Accept="application/json").body)
    check_members(running, answer)
    datetime.fromisoformat(answer["time"].replace("Z", "+00:00"))
    problem = json.loads(refused(running, Accept="application/problem+json").body)
    check_members(running, problem)
    assert problem["type"] == "about:blank" and problem["title"] == "Forbidden"
    assert problem["detail"] == answer["message"]
    listed = plistlib.loads(refused(running, Accept="application/x-plist").body)
    check_members(running, listed)
    assert listed["message"] == answer["message"] and isinstance(listed["time"], datetime)
    page = refused(running, Accept=BROWSER)
    assert page.get("content-security-policy").startswith("default-src 'none';")
    assert page.get("x-content-type-options") == "nosniff"
    text = page.body.decode()
    assert "<h1>403 Forbidden</h1>" in text and "10.0.0.1" in text
    found = re.search("<dt>id</dt><dd>([0-9a-f]{16})</dd>", text)
    until(lambda: found[1] in [line["id"] for line in running.access_lines()], "its line")


def test_a_head_that_was_not_understood_is_refused_in_what_it_seems_to_accept(shared_gateway):
    for accept, kind in [("text/html", "text/html"), ("application/x-plist", "application/x-plist")]:
        response = shared_gateway.ask(f"GET / HTTP/11\r\nAccept: {accept}\r\n\r\n")
        assert response.status == 400
        assert response.get("content-type").split(";")[0] == kind
        assert b"malformed-version" in response.body


def test_a_page_of_ones_own_has_the_values_escaped_and_is_reloaded(gateway, tmp_path):
    page = tmp_path / "error.html"
    page.write_text("{{status}}|{{phrase}}|{{reason}}|{{message}}|{{host}}|{{url}}|{{client}}|"
                    "{{id}}|{{ time }}")
    running = gateway({"errorReplies": {"page": str(page)}})
    response = refused(running, Accept=BROWSER)
    assert response.get("content-security-policy")
    values = response.body.decode().split("|")
    assert values[:3] == ["403", "Forbidden", "destination-refused"]
    assert values[4:7] == ["10.0.0.1", "http://10.0.0.1/a?&#60;b&#62;", "127.0.0.1"]
    assert values[7] == running.wait_access(1)[0]["id"] and values[8].endswith("Z")
    # Who does not ask for HTML gets none.
    assert refused(running).get("content-type") == "text/plain; charset=utf-8"
    page.write_text("another")
    running.signal(signal.SIGHUP)
    until(lambda: running.metric("pinfold_config_generation") == 2, "reloaded")
    assert refused(running, Accept="text/html").body == b"another"


@pytest.mark.parametrize("content, problem", [
    (b"<p>{{nothing}}", "there is no value {{nothing}}; expected {{status}}, "),
    (b"\n{{id", "line 2: '{{' is not closed"),
    (b"x" * 65537, "has 65537 bytes; expected at most 65536 bytes"),
])
def test_a_page_that_cannot_be_used_is_an_error_of_the_configuration(tmp_path, content, problem):
    (tmp_path / "error.html").write_bytes(content)
    (tmp_path / "pinfold.yaml").write_text("errorReplies: { page: error.html }")
    result = run_pinfold("check", "--config", str(tmp_path / "pinfold.yaml"))
    assert result.returncode != 0
    assert "errorReplies.page" in result.stderr and problem in result.stderr, result.stderr


@pytest.mark.parametrize("name, is_shown", [
    ("text", False), ("json", False), ("html", True), ("negotiate", True)])
def test_a_page_that_nobody_gets_is_warned_of(tmp_path, name, is_shown):
    (tmp_path / "error.html").write_bytes(b"<p>{{id}}")
    (tmp_path / "pinfold.yaml").write_text(
        f"errorReplies: {{ page: error.html, format: {name} }}")
    result = run_pinfold("check", "--config", str(tmp_path / "pinfold.yaml"))
    warning = f"errorReplies.page: has no effect with format: {name}"
    assert (warning in result.stderr + result.stdout) is not is_shown, result


@pytest.mark.parametrize("name, kind", [
    ("text", "text/plain"), ("html", "text/html"), ("json", "application/json")])
def test_the_format_can_be_the_same_for_all(gateway, name, kind):
    running = gateway({"errorReplies": {"format": name}})
    for accept in ["text/html", "application/json", "*/*"]:
        assert refused(running, Accept=accept).get("content-type").split(";")[0] == kind


def test_clients_of_a_reverse_listener_are_not_told_the_server(gateway):
    running = gateway({"listeners": [
        {"name": "proxy", "address": "127.0.0.1:0", "kind": "reverse",
         "upstream": "http://127.0.0.1:1"}]})
    for accept in ["text/html", "application/json", "application/x-plist", "text/plain"]:
        response = running.ask(
            f"GET / HTTP/1.1\r\nHost: shop.test\r\nAccept: {accept}\r\nConnection: close\r\n\r\n")
        assert response.status == 502
        assert b"127.0.0.1:1" not in response.body
        if accept != "text/plain":
            assert b"shop.test" in response.body


def test_a_page_of_a_rule_takes_the_place_of_the_general_one(gateway, tmp_path):
    general, own = tmp_path / "general.html", tmp_path / "own.html"
    general.write_text("general")
    own.write_text("own")
    running = gateway({"errorReplies": {"page": str(general)}})
    configuration = merged(running.config, {"access": {"rules": [
        {"name": "no", "hosts": ["no.test"], "action": "deny", "page": str(own)}]}})
    running.write_config(configuration)
    running.signal(signal.SIGHUP)
    until(lambda: running.metric("pinfold_config_generation") == 2, "reloaded")
    for accept, body in [("text/html", b"own"), ("*/*", b"own")]:
        assert running.ask(request("http://no.test/", Accept=accept)).body == body
    assert refused(running, Accept="text/html").body == b"general"
