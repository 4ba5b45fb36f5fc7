"""The API at the administrative address: status, reload, and the document that describes them."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from openapi_spec_validator import OpenAPIV31SpecValidator
from support.gateway import Gateway, free_port
from support.origin import reply
from support.wait import until
from support.wire import Response, Wire, ask, request

JSON = "Content-Type: application/json"


def call(
    running: Gateway, method: str, path: str, *fields: str, body: bytes = b"",
    host: str = "localhost"
) -> Response:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *fields]
    if body or method == "POST":
        lines.append(f"Content-Length: {len(body)}")
    return ask(running.admin, "\r\n".join(lines).encode() + b"\r\n\r\n" + body)


def reload_by_api(running: Gateway) -> Response:
    return call(running, "POST", "/api/v1/reload", JSON)


def status(running: Gateway) -> dict:
    response = running.admin_get("/api/v1/status")
    assert response.status == 200, response.body
    return response.json()


def strict(schema: object) -> object:
    """A schema in which every object has only the members that it declares."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items()}
    if "properties" in made:
        made["additionalProperties"] = False
    return made


def described(running: Gateway, method: str, path: str, response: Response) -> None:
    """That a response is one that the description has, and conforms to its schema."""
    document = running.admin_get("/api/v1/openapi.json").json()
    responses = document["paths"][path][method]["responses"]
    content = responses.get(str(response.status), responses["default"])["content"]
    kind = response.get("content-type")
    assert list(content) == [kind]
    schema = content[kind]["schema"]
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    Draft202012Validator(strict(schema), format_checker=FormatChecker()).validate(response.json())


@pytest.fixture
def three_entries(gateway):
    """A gateway whose file may be changed, and that warns of something in it."""
    return gateway({
        "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
                      {"name": "route", "address": "127.0.0.1:0", "kind": "reverse",
                       "upstream": "http://127.0.0.1:9"}],
        "hosts": [{"match": [f"{name}.test"]} for name in "abc"],
        "pinsets": {"unused": {"mode": "publicKey", "pins": [
            "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
            "sha256/AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]}}})


# The description


def test_the_description_is_valid_openapi(shared_gateway):
    response = shared_gateway.admin_get("/api/v1/openapi.json")
    assert response.get("content-type") == "application/json"
    document = response.json()
    OpenAPIV31SpecValidator(document).validate()
    assert set(document["paths"]) >= {
        "/api/v1/status", "/api/v1/reload", "/api/v1/openapi.json"}


def test_every_described_path_is_served(shared_gateway):
    document = shared_gateway.admin_get("/api/v1/openapi.json").json()
    for path, methods in document["paths"].items():
        for method in ("get", "head", "post", "put", "delete", "patch", "options"):
            known = method in methods or method == "head" and "get" in methods
            if path in ("/api/v1/events", "/api/v1/record") and method == "get":
                continue  # They do not end.
            answer = call(shared_gateway, method.upper(), path.replace("{id}", "0" * 16))
            assert (answer.status == 405) != known, (method, path, answer.status)


# The state


def test_the_state_of_a_gateway_at_rest(three_entries):
    before = datetime.now(timezone.utc)
    response = three_entries.admin_get("/api/v1/status")
    described(three_entries, "get", "/api/v1/status", response)
    found = response.json()
    assert found["state"] == "ready"
    assert found["pid"] == three_entries.pid
    assert found["workers"] == 2
    started = datetime.fromisoformat(found["started"])
    assert abs((before - started).total_seconds() - found["uptimeSeconds"]) < 5
    assert found["configuration"]["file"] == str(three_entries.config_file)
    assert found["configuration"]["generation"] == 1
    assert (found["configuration"]["hosts"], found["configuration"]["pinsets"]) == (3, 1)
    assert any("unused" in one["text"] for one in found["configuration"]["warnings"])
    line = next(one for one in found["configuration"]["warnings"] if "unused" in one["text"])
    text = three_entries.config_file.read_text().splitlines()
    assert "unused" in text[line["line"] - 1]
    assert "lastReload" not in found
    listeners = {one["name"]: one for one in found["listeners"]}
    assert {name: one["kind"] for name, one in listeners.items()} == {
        "proxy": "forward", "route": "reverse", "admin": "admin"}
    for name, one in listeners.items():
        assert one["address"] == "%s:%d" % three_entries.listeners[name]
        assert one["accepting"] is True
        assert one["tls"] is False
    assert found["load"] == {
        "connections": 0, "requests": 0, "tunnels": 0, "serverConnections": 0}
    assert found["cache"]["memory"]["limitBytes"] == 16 << 20
    assert found["cache"]["disk"]["limitBytes"] == 64 << 20
    assert found["cache"]["disk"]["path"] == str(three_entries.folder / "cache")


def test_the_state_counts_what_is_in_progress(gateway, origin):
    go = threading.Event()

    def served(got):
        if got.target.endswith("/slow"):
            go.wait(20)
        return reply(b"x" * 1000, "200 OK", "Cache-Control: max-age=60")

    there = origin(served)
    # Of several, each has connections to servers of its own.
    running = gateway({"workers": 1})
    running.get(there.url("/stored"))
    until(lambda: status(running)["cache"]["memory"]["entries"] == 1, "one stored response")
    until(lambda: status(running)["cache"]["disk"]["entries"] == 1, "one stored response on disk")
    assert status(running)["cache"]["memory"]["bytes"] >= 1000
    slow = [running.wire() for _ in range(3)]
    for number, wire in enumerate(slow):
        wire.send(request(there.url(f"/{number}/slow")))
    tunnel, _ = running.connect(there.authority)
    idle = running.wire()
    idle.ask(request(there.url("/stored")))
    until(lambda: status(running)["load"] == {
        "connections": 5, "requests": 4, "tunnels": 1, "serverConnections": 3},
        lambda: f"{status(running)['load']}")
    go.set()
    for wire in slow:
        assert wire.read().status == 200
        wire.close()
    tunnel.close()
    idle.close()
    until(lambda: status(running)["load"]["connections"] == 0, "no connection")
    assert status(running)["load"]["tunnels"] == 0
    response = running.admin_get("/api/v1/status")
    described(running, "get", "/api/v1/status", response)


def test_the_state_while_draining(gateway, origin):
    go = threading.Event()
    there = origin(lambda _: go.wait(20) and reply(b"done"))
    running = gateway({"timeouts": {"grace": "20s", "drainDelay": "300ms"}})
    wire = running.wire()
    wire.send(request(there.url("/")))
    until(lambda: status(running)["load"]["requests"] == 1, "one request")
    before = datetime.now(timezone.utc)
    running.signal(signal.SIGTERM)
    found = until(
        lambda: found if (found := status(running))["state"] == "draining"
        and not found["listeners"][0]["accepting"] else None, "listeners are closed")
    after = datetime.now(timezone.utc)
    response = running.admin_get("/api/v1/status")
    described(running, "get", "/api/v1/status", response)
    draining = found["draining"]
    assert draining["waitsFor"]["connections"] == 1
    assert draining["waitsFor"]["requests"] == 1
    since, closes, ends = (datetime.fromisoformat(draining[key])
                           for key in ("since", "closesListeners", "ends"))
    assert before.timestamp() - 0.01 <= since.timestamp() <= after.timestamp()
    assert (closes - since).total_seconds() == pytest.approx(0.3)
    assert (ends - closes).total_seconds() == pytest.approx(20)
    assert {one["name"]: one["accepting"] for one in found["listeners"]} == {
        "proxy": False, "admin": True}
    refused = reload_by_api(running)
    assert refused.status == 503
    described(running, "post", "/api/v1/reload", refused)
    go.set()
    assert wire.read().status == 200
    assert running.wait_exit() == 0


def test_a_listener_without_descriptors_accepts_nothing(gateway, origin):
    import resource
    running = gateway({"limits": {"connections": 5000}},
                      preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80)))
    held: list[Wire] = []
    with Wire(running.admin) as admin:
        # Requests in progress, which make no room for others.
        def paused() -> bool:
            held.append(running.wire())
            held[-1].send("GET http://127.0.0.1/ HTTP/1.1\r\nHost: a\r\nX: ")
            found = admin.ask("GET /api/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n").json()
            listeners = {one["name"]: one["accepting"] for one in found["listeners"]}
            return listeners["proxy"] is False
        until(paused, "accepting is paused", 30)
    for wire in held:
        wire.close()
    until(lambda: status(running)["listeners"][0]["accepting"], "accepting again")


# Reload


def test_a_reload_is_answered_when_every_worker_uses_it(three_entries):
    running = three_entries
    del running.config["hosts"][1]
    running.config["cache"]["memory"] = "8MiB"
    running.write_config(running.config)
    response = reload_by_api(running)
    assert response.status == 200
    described(running, "post", "/api/v1/reload", response)
    found = response.json()
    assert found["generation"] == 2
    assert running.metric("pinfold_config_generation") == 2
    assert found["changed"] == ["hosts", "cache"]
    assert found["removed"] == ["hosts: b.test"]
    assert found["needRestart"] == ["cache"]
    assert any("unused" in one["text"] for one in found["warnings"])
    now = status(running)
    assert now["configuration"]["generation"] == 2
    assert now["configuration"]["hosts"] == 2
    assert now["configuration"]["warnings"] == found["warnings"]
    assert now["lastReload"]["result"] == "applied"
    assert now["cache"]["memory"]["limitBytes"] == 16 << 20, "until a restart"
    assert running.metric("pinfold_cache_limit_bytes", tier="memory") == 16 << 20


def test_a_refused_reload_says_where_and_what_was_expected(three_entries):
    running = three_entries
    good = status(running)["configuration"]
    running.write_config(running.config_file.read_text() + "timeouts: { grace: 5 parsecs }\nno: 1\n")
    lines = running.config_file.read_text().splitlines()
    response = reload_by_api(running)
    assert response.status == 422
    described(running, "post", "/api/v1/reload", response)
    errors = response.json()["errors"]
    assert [one["key"] for one in errors] == ["timeouts.grace", "no"]
    for one in errors:
        assert one["file"] == str(running.config_file)
        assert one["key"].split(".")[0] in lines[one["line"] - 1]
        assert one["expected"]
        assert one["text"].startswith(f"{running.config_file}:{one['line']}: {one['key']}: ")
    now = status(running)
    assert now["configuration"] == good
    assert now["lastReload"]["result"] == "refused"
    assert now["lastReload"]["errors"] == errors
    running.write_config(running.config)
    assert reload_by_api(running).status == 200
    assert status(running)["lastReload"]["result"] == "applied"


def test_an_address_in_use_refuses_the_reload(gateway):
    running = gateway()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        running.config["listeners"].append(
            {"name": "more", "address": f"127.0.0.1:{port}", "kind": "forward"})
        running.write_config(running.config)
        refused = reload_by_api(running)
        assert refused.status == 422
        described(running, "post", "/api/v1/reload", refused)
        (error,) = refused.json()["errors"]
        assert f"127.0.0.1:{port}" in error["text"]
        assert "file" not in error
    assert reload_by_api(running).status == 200


def test_reloads_at_once_are_all_answered(gateway):
    running = gateway()
    ends = threading.Event()

    def signals() -> None:
        while not ends.is_set():
            running.signal(signal.SIGHUP)
            time.sleep(0.002)

    beside = threading.Thread(target=signals)
    beside.start()
    try:
        with ThreadPoolExecutor(12) as pool:
            answers = list(pool.map(lambda _: reload_by_api(running), range(60)))
    finally:
        ends.set()
        beside.join()
    assert {one.status for one in answers} == {200}
    assert all(one.json()["generation"] > 1 for one in answers)
    assert running.get("http://127.0.0.1:1/").status == 502, "it still serves"


def test_a_reload_that_moves_the_address_is_still_answered(gateway):
    running = gateway({"admin": {"address": f"127.0.0.1:{free_port()}"}})
    former = running.admin
    port = free_port()
    running.config["admin"]["address"] = f"127.0.0.1:{port}"
    running.write_config(running.config)
    response = reload_by_api(running)
    assert response.status == 200
    assert response.json()["changed"] == ["admin"]
    running.listeners["admin"] = ("127.0.0.1", port)
    assert status(running)["listeners"][-1]["address"] == f"127.0.0.1:{port}"
    with pytest.raises(OSError):
        socket.create_connection(former, 5)


def test_a_client_that_leaves_has_its_reload_nevertheless(gateway):
    running = gateway()
    with Wire(running.admin) as wire:
        wire.send(f"POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\n"
                  "Content-Length: 0\r\n\r\n")
        wire.reset()
    until(lambda: status(running)["configuration"]["generation"] == 2, "reloaded")


def test_requests_that_follow_a_reload_on_its_connection_are_answered_in_order(gateway):
    running = gateway()
    with Wire(running.admin) as wire:
        post = (f"POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\n"
                "Content-Length: 0\r\n\r\n")
        wire.send(post + "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + post)
        assert wire.read().json()["generation"] == 2
        assert wire.read().body == b"ok\n"
        assert wire.read().json()["generation"] == 3


# Who may not


@pytest.mark.parametrize(("fields", "expected"), [
    ((), 415),
    (("Content-Type: text/plain",), 415),
    (("Content-Type: application/x-www-form-urlencoded",), 415),
    (("Content-Type: text/plain", "Content-Type: application/json"), 415),
    ((JSON, "Origin: http://evil.example"), 403),
    ((JSON, "Origin: null"), 403),
    ((JSON, "Origin: http://localhost:1"), 403),
    ((JSON, "Sec-Fetch-Site: cross-site"), 403),
    ((JSON, "sec-fetch-site: same-site"), 403),
    ((JSON, "Origin: http://localhost", "Sec-Fetch-Site: same-origin"), 200),
])
def test_a_web_page_makes_no_browser_reload(shared_gateway, fields, expected):
    before = status(shared_gateway)["configuration"]["generation"]
    response = call(shared_gateway, "POST", "/api/v1/reload", *fields)
    assert response.status == expected
    described(shared_gateway, "post", "/api/v1/reload", response)
    assert not [name for name, _ in response.headers if name.lower().startswith("access-control")]
    after = status(shared_gateway)["configuration"]["generation"]
    assert after == before + (expected == 200)


def test_another_name_is_refused_and_changes_nothing(shared_gateway):
    before = status(shared_gateway)["configuration"]["generation"]
    for method, path in [("POST", "/api/v1/reload"), ("GET", "/api/v1/status")]:
        refused = call(shared_gateway, method, path, JSON, host="evil.example")
        assert refused.status == 421
        assert refused.get("content-type") == "application/problem+json"
        assert refused.json()["type"] == "urn:pinfold:problem:misdirected-request"
    assert status(shared_gateway)["configuration"]["generation"] == before


def test_a_browser_gets_no_permission_beforehand(shared_gateway):
    answer = call(shared_gateway, "OPTIONS", "/api/v1/reload", "Origin: http://evil.example",
                  "Access-Control-Request-Method: POST",
                  "Access-Control-Request-Headers: content-type")
    assert answer.status == 405
    assert not [name for name, _ in answer.headers if name.lower().startswith("access-control")]


def test_a_token_is_needed_where_there_is_one(gateway, tmp_path):
    token = tmp_path / "token"
    token.write_text("s3cret-token\n")
    token.chmod(0o600)
    running = gateway({"admin": {"tokenFile": str(token)}})
    right = "Authorization: Bearer s3cret-token"
    for method, path in [("GET", "/api/v1/status"), ("POST", "/api/v1/reload")]:
        for wrong in [(), ("Authorization: Bearer wrong",)]:
            refused = call(running, method, path, JSON, *wrong)
            assert refused.status == 401
            assert refused.get("www-authenticate").startswith("Bearer")
            described(running, method.lower(), path, refused)
        assert call(running, method, path, JSON, right).status == 200
    assert running.admin_get("/api/v1/openapi.json").status == 200
    assert running.admin_get("/metrics").status == 200, "open on loopback, as before"


def test_without_a_token_other_machines_are_refused(gateway, own_address):
    running = gateway(
        {"admin": {"address": f"{own_address}:{free_port()}", "metrics": "open"}})
    for method, path in [("GET", "/api/v1/status"), ("POST", "/api/v1/reload")]:
        refused = call(running, method, path, JSON, host=own_address)
        assert refused.status == 403
        assert refused.json()["type"] == "urn:pinfold:problem:not-an-operator"
    assert call(running, "GET", "/metrics", host=own_address).status == 200


@pytest.fixture
def own_address() -> str:
    """An address of this machine that is not a loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("no network")
        address = probe.getsockname()[0]
    if address.startswith("127."):
        pytest.skip("no address but loopback ones")
    return address


# Content, and clients that are slow


@pytest.mark.parametrize("framing", ["Content-Length: 1000000000", "Transfer-Encoding: chunked"])
def test_content_without_end_is_refused_at_once(shared_gateway, framing):
    with Wire(shared_gateway.admin) as wire:
        wire.send(f"POST /api/v1/reload HTTP/1.1\r\nHost: localhost\r\n{JSON}\r\n{framing}\r\n\r\n")
        refused = wire.read()
        assert refused.status == 413
        described(shared_gateway, "post", "/api/v1/reload", refused)
        assert refused.get("connection") == "close"


def test_small_content_is_taken_and_ignored(shared_gateway):
    for body in (b"{}", b" ", b"x" * 65_536):
        assert call(shared_gateway, "POST", "/api/v1/reload", JSON, body=body).status == 200
    assert call(shared_gateway, "POST", "/api/v1/reload", JSON, body=b"x" * 65_537).status == 413


def test_clients_that_do_not_read_hold_no_worker(gateway, origin):
    there = origin(lambda _: reply(b"served"))
    running = gateway({"workers": 1})
    stuck = []
    for _ in range(8):
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(running.admin)
        stuck.append(sock)
        sock.setblocking(False)
        asked = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2000
        try:
            sock.send(asked)
        except BlockingIOError:
            pass
    for _ in range(20):
        assert running.get(there.url("/")).body == b"served"
        assert status(running)["state"] == "ready"
    for sock in stuck:
        sock.close()


def test_a_request_that_never_ends_is_given_up(gateway):
    running = gateway({"timeouts": {"head": "300ms"}})
    with Wire(running.admin) as wire:
        wire.send("POST /api/v1/reload HTTP/1.1\r\nHost: local")
        assert wire.read().status == 408
        assert wire.ended()
    assert status(running)["configuration"]["generation"] == 1


def test_the_head_is_that_of_get(shared_gateway):
    for path in ("/api/v1/status", "/api/v1/openapi.json", "/api/v1/none"):
        with Wire(shared_gateway.admin) as wire:
            wire.send(f"HEAD {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            head = wire.read("HEAD")
            assert head.status == (404 if path.endswith("none") else 200)
            assert head.body == b""
            assert int(head.get("content-length")) > 50
            assert wire.ended()


def test_the_index_lists_what_can_be_read(shared_gateway):
    text = shared_gateway.admin_get("/").body.decode()
    assert "/api/v1/status\t" in text
    assert "/api/v1/openapi.json\t" in text
    assert "/api/v1/reload\t" not in text
