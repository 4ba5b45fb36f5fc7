"""Which hosts may be requested, and the rules for requests: who may have what."""

from __future__ import annotations

import contextlib
import ssl

import pytest
from support.gateway import run_pinfold
from support.interception import HOST, OTHER, Inside, connect_head, curl
from support.origin import reply
from support.secure import reload
from support.wait import until
from support.wire import Wire, request

LOOPBACK = {"allow": ["127.0.0.0/8", "**.test", "::1"]}
MATCHES = "pinfold_access_rule_matches_total"


def access(**keys) -> dict:
    return {"access": {"destinations": LOOPBACK, "connectPorts": "any",
                       "clients": ["127.0.0.0/8", "::1/128"], **keys}}


def rules(*rules: dict, **keys) -> dict:
    return access(rules=list(rules), **keys)


@pytest.fixture
def there(origin):
    return origin(lambda seen: reply(
        f"{seen.method} {seen.target}".encode(), "200 OK", "Cache-Control: max-age=600"))


# Only what is listed


LISTED = {**access(hosts="listed"), "hosts": [
    {"match": ["api.test", "**.tree.test"]}, {"match": ["**"], "name": "rest"}]}


@pytest.mark.parametrize("host", [
    "api.test", "API.Test", "api.test.", "tree.test", "a.b.tree.test"])
def test_a_listed_host_is_reached(gateway, there, host):
    running = gateway(LISTED)
    assert running.get(f"http://{host}:{there.port}/").status == 200
    wire, response = running.connect(f"{host}:{there.port}")
    wire.close()
    assert response.status == 200


@pytest.mark.parametrize("host", [
    "other.test", "OTHER.test", "other.test.", "api.test.other.test", "xapi.test", "api.tes",
    "a.api.test", "xtree.test", "127.0.0.1", "127.0.0.1.", "127.1", "2130706433", "0x7f000001",
    "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "[0:0:0:0:0:ffff:7f00:1]", "localhost",
    "xn--pi-xka.test", "api%2etest", "api.test%00.other.test", "%61pi.test.x", "..", "test"])
def test_a_host_that_is_not_listed_is_not_reached_however_it_is_written(gateway, there, host):
    running = gateway(LISTED)
    response = running.get(f"http://{host}:{there.port}/", Accept="application/json")
    assert response.status in (400, 403)
    wire, tunnel = running.connect(f"{host}:{there.port}")
    wire.close()
    assert tunnel.status in (400, 403)
    assert there.accepted == 0


def test_the_reply_names_the_host_and_what_to_add(gateway, there):
    running = gateway(LISTED)
    response = running.get(f"http://other.test:{there.port}/", Accept="application/json")
    assert response.status == 403
    assert response.json()["reason"] == "host-not-listed"
    assert response.json()["message"].startswith(
        f'other.test:{there.port} is not listed: add it to match of an entry of hosts, as in '
        'match: ["other.test"]')
    [line] = running.wait_access()
    assert (line["reason"], line["host"]) == ("host-not-listed", "rest")


def test_host_and_target_of_a_request_do_not_smuggle_a_host(gateway, there):
    running = gateway(LISTED)
    port = there.port
    for head in [
        f"GET http://other.test:{port}/ HTTP/1.1\r\nHost: api.test:{port}",
        f"GET http://api.test@other.test:{port}/ HTTP/1.1\r\nHost: api.test",
        f"CONNECT other.test:{port} HTTP/1.1\r\nHost: api.test:{port}",
    ]:
        with running.wire() as wire:
            wire.send(f"{head}\r\nConnection: close\r\n\r\n")
            assert wire.read_head().status in (400, 403)
    # The target decides, and Host is made from it.
    with running.wire() as wire:
        wire.send(f"GET http://api.test:{port}/ HTTP/1.1\r\nHost: other.test\r\n\r\n")
        assert wire.read().status == 200
    assert [seen.get("host") for seen in there.requests] == [f"api.test:{port}"]


def test_a_reverse_listeners_upstream_need_not_be_listed(gateway, there):
    running = gateway({**access(hosts="listed"), "listeners": [
        {"name": "route", "address": "127.0.0.1:0", "kind": "reverse",
         "upstream": f"http://127.0.0.1:{there.port}"}]})
    assert running.get("/", listener="route").status == 200


def test_a_tunnel_to_a_host_that_is_no_longer_listed_is_closed(gateway, scripted_origin):
    def echo(connection):
        while data := connection.socket.recv(1000):
            connection.socket.sendall(data)

    there = scripted_origin(echo)
    running = gateway(LISTED)
    wire, response = running.connect(f"api.test:{there.port}")
    assert response.status == 200
    wire.send("x")
    assert wire.read_exactly(1) == b"x"
    reload(running, {**running.config, "hosts": [{"match": ["other.test"]}]})
    assert wire.ended()
    wire.close()


def test_everything_else_has_one_entry(gateway, there):
    running = gateway({**access(), "hosts": [
        {"match": ["api.test"]}, {"match": ["**"], "name": "rest", "clearText": "refuse"}]})
    assert running.get(f"http://api.test:{there.port}/").status == 200
    response = running.get(f"http://other.test:{there.port}/")
    assert response.status == 403 and b"clear-text-refused" in response.body
    assert {line["host"] for line in running.wait_access(2)} == {"api.test", "rest"}


# Rules


def test_the_first_rule_that_matches_decides(gateway, there):
    running = gateway(rules(
        {"name": "read", "methods": ["GET", "HEAD"], "action": "allow"},
        {"name": "no-writing", "hosts": ["a.test"], "action": "deny"}))
    url = f"http://a.test:{there.port}/"
    assert running.get(url).status == 200
    response = running.ask(request(url, method="POST", Content_Length="0",
                                   Accept="application/json"))
    assert response.status == 403
    assert response.json()["reason"] == "denied-by-rule"
    assert "the rule no-writing of access.rules" in response.json()["message"]
    assert running.ask(request(url.replace("a.test", "b.test"), method="POST",
                               Content_Length="0")).status == 200
    lines = running.wait_access(3)
    assert {line.get("rule") for line in lines} == {"read", "no-writing", None}
    assert running.metric(MATCHES, rule="read") == 1
    assert running.metric(MATCHES, rule="no-writing") == 1


def test_what_no_rule_allows_is_refused_by_default(gateway, there):
    running = gateway(rules({"name": "api", "paths": ["/v1/**"], "action": "allow"},
                            default="deny"))
    assert running.get(there.url("/v1/x?y")).status == 200
    response = running.get(there.url("/v2"))
    assert response.status == 403 and b"denied-by-default" in response.body
    wire, tunnel = running.connect(f"127.0.0.1:{there.port}")
    wire.close()
    assert tunnel.status == 403


def test_a_stored_response_is_given_only_to_those_who_may_ask(gateway, there):
    running = gateway(rules({"name": "no", "methods": ["HEAD"], "action": "deny"}))
    url = there.url("/x")
    assert running.get(url).status == 200
    assert "hit" in running.get(url).cache_status
    with running.wire() as wire:
        assert wire.ask(request(url, method="HEAD"), "HEAD").status == 403


@pytest.mark.parametrize("path", [
    "/admin", "/admin/", "/admin/x", "//admin", "/./admin", "/x/../admin", "/%61dmin",
    "/%2e/admin", "/x/%2e%2e/admin", "/x/%2E%2e/admin", "/x/..;/admin", "/;/admin", "/admin;x",
    "/x%2f..%2fadmin", "/x/..%2fadmin", "/x/%252e%252e/admin", "/%2561dmin", "/x%5c..%5cadmin",
    "/admin/../admin", "/.//admin", "/%2f/admin", "/a/b/../../admin", "/admin%2fx", "/admin?x"])
def test_no_spelling_of_a_path_evades_a_rule(gateway, there, path):
    running = gateway(rules({"name": "no", "paths": ["/admin/**"], "action": "deny"}))
    with running.wire() as wire:
        wire.send(f"GET http://127.0.0.1:{there.port}{path} HTTP/1.1\r\n"
                  f"Host: 127.0.0.1:{there.port}\r\n\r\n")
        response = wire.read()
    assert response.status in (400, 403)
    assert (b"ambiguous-path" if response.status == 400 else b"denied-by-rule") in response.body
    assert there.accepted == 0
    assert running.get(there.url("/public//x/%2e;a")).status == 200


def test_a_rule_that_reports_is_logged_and_counted_and_decides_nothing(gateway, there):
    running = gateway(rules(
        {"name": "trial", "hosts": ["**"], "action": "report"},
        {"name": "never", "methods": ["PUT"], "action": "report"},
        {"name": "second", "paths": ["/x"], "action": "report"},
        {"name": "ok", "action": "allow"}))
    assert running.get(there.url("/x")).status == 200
    [line] = running.wait_access()
    assert (line["rule"], line["reported"]) == ("ok", "trial,second")
    assert [running.metric(MATCHES, rule=name) for name in ("trial", "never", "second", "ok")] == [
        1, 0, 1, 1]


def test_conditions_on_listener_client_port_and_time(gateway, there):
    running = gateway({
        **rules({"name": "l", "listeners": ["second"], "paths": ["/l"], "action": "deny"},
                {"name": "c", "clients": ["127.0.0.2/32"], "paths": ["/c"], "action": "deny"},
                {"name": "p", "ports": [1, there.port], "paths": ["/p"], "action": "deny"},
                {"name": "q", "ports": [1], "paths": ["/q"], "action": "deny"},
                {"name": "t", "times": ["00:00-12:00", "12:00-24:00"], "paths": ["/t"],
                 "action": "deny"}),
        "listeners": [{"name": "first", "address": "127.0.0.1:0", "kind": "forward"},
                      {"name": "second", "address": "127.0.0.1:0", "kind": "forward"}]})
    assert running.get(there.url("/l"), listener="first").status == 200
    assert running.get(there.url("/l"), listener="second").status == 403
    assert running.get(there.url("/c"), listener="first").status == 200
    assert running.get(there.url("/p"), listener="first").status == 403
    assert running.get(there.url("/q"), listener="first").status == 200
    assert running.get(there.url("/t"), listener="first").status == 403


def test_a_page_of_ones_own(gateway, there, tmp_path):
    page = tmp_path / "blocked.html"
    page.write_text("<h1>{{rule}}</h1><p>{{url}} of {{host}} for {{client}} ({{id}})")
    running = gateway(rules({"name": "ads", "action": "deny", "status": 451, "page": str(page)}))
    response = running.get(there.url("/<script>'\"&"))
    assert response.status == 451
    assert response.get("content-type") == "text/html; charset=utf-8"
    assert response.get("x-content-type-options") == "nosniff"
    assert response.get("content-security-policy").startswith("default-src 'none';")
    text = response.body.decode()
    assert text.startswith("<h1>ads</h1><p>http://127.0.0.1:")
    assert "/&#60;script&#62;&#39;&#34;&#38; of 127.0.0.1:" in text
    assert " for 127.0.0.1 (" in text
    [line] = running.wait_access()
    assert line["id"] in text and line["status"] == 451
    # Programs that prefer it get JSON.
    response = running.get(there.url("/"), Accept="application/json")
    assert (response.status, response.json()["status"]) == (451, 451)


def test_rules_never_open_what_else_is_closed(gateway, there):
    running = gateway({
        "access": {"rules": [{"name": "all", "action": "allow"}], "destinations": {"allow": []},
                   "connectPorts": [443]},
        "hosts": [{"match": ["pinned.test"], "pinsets": ["p"]}],
        "pinsets": {"p": {"mode": "publicKey", "pins": ["sha256/" + "A" * 43 + "="]}}})
    for host, reason in [("a.test", "destination-refused"), ("pinned.test", "clear-text-refused")]:
        response = running.get(f"http://{host}:{there.port}/", Accept="application/json")
        assert (response.status, response.json()["reason"]) == (403, reason)
    wire, response = running.connect(f"a.test:{there.port}")
    wire.close()
    assert response.status == 403 and there.accepted == 0


# Tunnels


def inside(running, authority, host: str, port: int, head: str) -> bytes:
    with running.wire() as wire:
        wire.send(connect_head(host, port))
        response = wire.read_head()
        if response.status != 200:
            return str(response.status).encode()
        client = Inside(authority.file, host)
        client.shake(wire)
        return client.ask(wire, (head + "\r\n\r\n").encode(), b"\r\n\r\n")


def test_requests_in_an_intercepted_tunnel_are_judged_themselves(gateway, origin, pki, authority):
    leaf = pki.intermediate.issue(HOST, OTHER)
    there = origin(lambda seen: reply(b"inside"), tls=leaf.server_context())
    running = gateway({
        **rules({"name": "read", "hosts": [HOST], "methods": ["GET"], "paths": ["/v1/**"],
                 "action": "allow"}, default="deny"),
        "tls": {"roots": [str(pki.root.pem_file)]}, "interception": {
            **authority.section, "default": True}})

    def status(line: str, host: str = HOST) -> bytes:
        seen = inside(running, authority, host, there.port,
                      f"{line} HTTP/1.1\r\nHost: {host}:{there.port}\r\nContent-Length: 0")
        return seen[9:12] if seen.startswith(b"HTTP/") else seen

    assert status("GET /v1/x") == b"200"
    assert status("POST /v1/x") == b"403"
    assert status("GET /v2") == b"403"
    assert status("GET /v1/../v2") == b"400"
    assert status(f"GET https://{HOST}:{there.port}/v2") == b"403"
    assert status(f"GET https://{OTHER}:{there.port}/v1/") == b"421"
    # None of its requests would be allowed.
    assert status("GET /v1/x", OTHER) == b"403"
    assert [seen.target for seen in there.requests] == ["/v1/x"]
    lines = running.wait_access(12)
    assert {line.get("rule") for line in lines if line["status"] == 200
            and line["method"] == "GET"} == {"read"}


def test_what_only_requests_may_do_is_not_relayed(gateway, origin, pki, authority):
    """With `tunnel: pass`, tunnels without TLS would be."""
    there = origin(lambda seen: reply(b"clear"))
    config = {
        **rules({"name": "api", "hosts": [HOST], "paths": ["/v1/**"], "action": "allow"},
                default="deny"),
        "interception": authority.section,
        "hosts": [{"match": [HOST], "intercept": True, "tunnel": "pass"}]}
    running = gateway(config)
    with running.wire() as wire:
        wire.send(connect_head(HOST, there.port))
        assert wire.read_head().status != 200 or not there.requests
        with contextlib.suppress(OSError):
            wire.send(f"GET / HTTP/1.1\r\nHost: {HOST}\r\n\r\n")
            wire.read_to_end()
    assert not there.requests


def test_what_a_method_rule_denies_is_not_relayed_either(gateway, origin, pki, authority):
    there = origin(lambda seen: reply(b"clear"))
    running = gateway({
        **rules({"name": "read-only", "methods": ["POST", "PUT"], "action": "deny"}),
        "interception": authority.section, "timeouts": {"head": "2s"},
        "hosts": [{"match": [HOST], "intercept": True, "tunnel": "pass"}]})
    with running.wire() as wire, contextlib.suppress(OSError):
        wire.send(connect_head(HOST, there.port))
        wire.send(f"POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 0\r\n\r\n")
        wire.read_to_end()
    assert not there.requests


def test_a_tunnel_ends_when_a_reload_takes_the_permission_away(gateway, scripted_origin):
    def echo(connection):
        while data := connection.socket.recv(1000):
            connection.socket.sendall(data)

    there = scripted_origin(echo)
    running = gateway(rules({"name": "mine", "clients": ["127.0.0.1/32"], "action": "allow"},
                            default="deny"))
    wires = [running.connect(f"{host}:{there.port}")[0] for host in ("a.test", "b.test")]

    def works(wire: Wire) -> bool:
        wire.send("x")
        return wire.read_exactly(1) == b"x"

    assert all(works(wire) for wire in wires)
    reload(running, {**running.config, **rules(
        {"name": "mine", "clients": ["127.0.0.1/32"], "hosts": ["b.test"], "action": "allow"},
        default="deny")})
    assert wires[0].ended()
    assert works(wires[1])
    for wire in wires:
        wire.close()


def test_a_websocket_ends_when_a_reload_takes_the_permission_away(gateway, scripted_origin):
    def script(connection):
        connection.read_request_head()
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                        b"Upgrade: echo\r\n\r\n")
        while data := connection.socket.recv(1000):
            connection.socket.sendall(data)

    there = scripted_origin(script)
    running = gateway(rules({"name": "chat", "paths": ["/chat"], "action": "allow"},
                            default="deny"))
    with running.wire() as wire:
        wire.send(f"GET http://a.test:{there.port}/chat HTTP/1.1\r\nHost: a.test:{there.port}\r\n"
                  "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n")
        assert wire.read_head().status == 101
        wire.send("x")
        assert wire.read_exactly(1) == b"x"
        reload(running, {**running.config, **rules(
            {"name": "chat", "paths": ["/talk"], "action": "allow"}, default="deny")})
        assert wire.ended()


# What is said about them


def test_explain_names_the_rule(gateway, tmp_path):
    file = tmp_path / "pinfold.yaml"
    file.write_text("""
access:
  clients: [10.0.0.0/8, 127.0.0.0/8]
  default: deny
  rules:
    - { name: watch, action: report }
    - { name: admins, clients: [10.1.0.0/16], action: allow }
    - { name: readers, methods: [GET], paths: [/v1/**], action: allow }
    - { name: nobody, hosts: [secret.example.com], action: deny }
""")

    def explain(url: str, *arguments: str) -> tuple[int, str]:
        done = run_pinfold("explain", "--config", str(file), "--address", "93.184.216.34", url,
                           *arguments)
        return done.returncode, done.stdout

    code, text = explain("http://example.com/v1/x")
    assert code == 0
    assert "rules for a request with the full URL: readers decides; allowed; reported by watch" in text
    code, text = explain("http://example.com/v1/x", "--method", "POST")
    assert code == 1 and "none decides; refused: 403 denied-by-default" in text
    code, text = explain("https://secret.example.com/", "--method", "POST")
    assert code == 1 and "rules for CONNECT secret.example.com:443: nobody decides" in text
    code, text = explain("https://secret.example.com/", "--client", "10.1.2.3")
    assert code == 0 and "admins decides; allowed" in text
    code, text = explain("http://example.com/v2/../v1/x")
    assert code == 1 and "refused: 400 ambiguous-path" in text


@pytest.mark.parametrize("rule, warning", [
    ("{ name: b, methods: [GET], action: deny }", "never applies: the earlier rule a"),
    ("{ name: b, clients: [192.0.2.1], action: allow }",
     "never applies: access.clients serves none of these clients"),
])
def test_rules_that_never_match_are_warned_of(tmp_path, rule, warning):
    file = tmp_path / "pinfold.yaml"
    first = "{ name: a, methods: [GET, HEAD], action: allow }"
    file.write_text(f"access: {{ rules: [{first}, {rule}] }}\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 0 and warning in done.stderr


@pytest.mark.parametrize("text, error", [
    ("access: { rules: [{ name: a, listeners: [prox], action: deny }] }",
     'there is no listener "prox" (did you mean "proxy"?)'),
    ("access: { rules: [{ name: a, paths: [/x], hosts: [a.test], action: deny }] }\n"
     "hosts: [{ match: [a.test], clearText: refuse }]",
     "applies to no request: the gateway cannot read requests to these hosts"),
    ("access: { rules: [{ name: a, action: allow, status: 404 }] }",
     "does not apply to action: allow; expected action: deny"),
    ("access: { rules: [{ name: a, clients: [], action: allow }] }",
     "is empty, so that the rule applies to nothing"),
    ("access: { rules: [{ action: allow }] }", "expected a name for logs and metrics"),
    ("access: { rules: [{ name: a }] }", "expected allow, deny or report"),
    ("access: { rules: [{ name: a, action: allow }, { name: a, action: deny }] }",
     'there is another rule "a"'),
    ("access: { rules: [{ name: a, paths: [/a/../b], action: allow }] }", "canonical path"),
    ("access: { rules: [{ name: a, times: [always], action: allow }] }", "mon-fri 08:00-18:00"),
    ("access: { rules: [{ name: a, methods: [get], action: allow }] }", "did you mean GET"),
    ("hosts: [{ match: ['**', a.test] }]", "as the last pattern of the last entry"),
    ("hosts: [{ match: ['**'] }, { match: [a.test] }]", "as the last pattern of the last entry"),
])
def test_wrong_rules_are_errors(tmp_path, text, error):
    file = tmp_path / "pinfold.yaml"
    file.write_text(text)
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1 and error in done.stderr, done.stderr


def check(tmp_path, text: str) -> tuple[str, str]:
    file = tmp_path / "pinfold.yaml"
    file.write_text(text)
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize("text, line", [
    ("{}", "hosts without an entry (tunnels, clear text)"),
    ("access: { hosts: listed }", "nothing"),
    ("access: { hosts: listed }\nhosts: [{ match: [a.test] }, { match: ['**'] }]",
     'a.test (tunnels, clear text); "**" lists nothing: hosts that only it matches are refused'),
    ("hosts: [{ match: ['**'], name: rest, tunnel: inspect, clearText: refuse }]", "nothing"),
    ("hosts: [{ match: ['**'], name: rest, tunnel: inspect }]", "rest (clear text)"),
    ("access: { connectPorts: [] }", "hosts without an entry (clear text)"),
    ("listeners: [{ name: r, address: '127.0.0.1:0', kind: reverse, upstream: 'https://a.test' }]",
     "nothing, there is no forward listener"),
])
def test_check_says_what_is_reached_unverified(tmp_path, text, line):
    out, _ = check(tmp_path, text)
    assert f"\n# Reached unverified: {line}\n" in out


def test_check_prints_the_rules_as_a_table(tmp_path):
    out, _ = check(tmp_path, """
access:
  default: deny
  rules:
    - { name: no-ads, hosts: ["**.ads.test"], action: deny, status: 451 }
    - { name: ci, clients: [127.0.0.1], methods: [GET], paths: [/v1/**], action: allow }
""")
    assert """# Rules, the first that matches decides:
#   deny (451)  no-ads  hosts **.ads.test
#   allow       ci      clients 127.0.0.1/32; methods GET; paths /v1/**
#   deny                everything else
""" in out


@pytest.mark.parametrize("more, warns", [
    ("", True), ("access: { hosts: listed }\n", False),
])
def test_check_warns_where_pinned_hosts_are_beside_open_ones(tmp_path, more, warns):
    _, err = check(tmp_path, more + """
hosts: [{ match: [a.test], upgrade: https, pinsets: [p] }]
pinsets:
  p: { mode: publicKey, pins: ["sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "sha256/AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="] }
""")
    assert ("hosts without an entry are reached unverified" in err) == warns


# Lists


def test_a_rule_applies_to_the_hosts_of_a_list(gateway, there, workspace):
    ads, work = workspace / "ads.txt", workspace / "work.txt"
    ads.write_text("||ads.test^\n||tracker.work.test^\n@@||good.ads.test^\n")
    work.write_text("work.test\n127.0.0.0/8\n")
    running = gateway(rules(
        {"name": "no-ads", "lists": ["ads"], "action": "deny"},
        {"name": "work", "lists": ["work", "ads"], "action": "allow"}, default="deny",
        lists={"ads": {"files": [str(ads)]}, "work": {"files": [str(work)]}}))

    def status(host: str) -> int:
        return running.get(f"http://{host}:{there.port}/").status

    assert [status(host) for host in (
        "ads.test", "x.ads.test", "good.ads.test", "tracker.work.test", "work.test", "a.work.test",
        "127.0.0.1", "other.test")] == [403, 403, 403, 403, 200, 200, 200, 403]
    assert running.metric(MATCHES, rule="no-ads") == 3
    # Taken up without a reload, also for hosts that were asked for before.
    work.write_text("other.test\n")
    running.wait_log("changed configuration files are now in effect")
    until(lambda: status("other.test") == 200, "it is in force")
    assert status("work.test") == 403
    done = run_pinfold("explain", "--config", str(running.config_file), "--address", "127.0.0.1",
                       f"http://x.ads.test:{there.port}/")
    assert "no-ads decides; refused: 403 denied-by-rule" in done.stdout


def test_a_tunnel_ends_when_a_list_changes(gateway, scripted_origin, workspace):
    def echo(connection):
        while data := connection.socket.recv(1000):
            connection.socket.sendall(data)

    there = scripted_origin(echo)
    work = workspace / "work.txt"
    work.write_text("work.test\n")
    running = gateway(rules({"name": "work", "lists": ["work"], "action": "allow"}, default="deny",
                            lists={"work": {"files": [str(work)]}}))
    wire, response = running.connect(f"work.test:{there.port}")
    assert response.status == 200
    wire.send("x")
    assert wire.read_exactly(1) == b"x"
    work.write_text("other.test\n")
    assert wire.ended()
    wire.close()


def test_a_rule_that_names_an_unknown_list_is_an_error(workspace):
    file = workspace / "pinfold.yaml"
    (workspace / "a.txt").write_text("a.test\n")
    file.write_text("access: { lists: { trackers: { files: [a.txt] } },\n"
                    "  rules: [{ name: a, lists: [tracker], action: deny }] }\n")
    done = run_pinfold("check", "--config", str(file))
    assert done.returncode == 1
    assert 'there is no list "tracker" (did you mean "trackers"?)' in done.stderr
