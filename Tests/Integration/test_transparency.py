"""`tls.certificateTransparency`: servers must show that logs have promised to publish their
certificates, in the certificate, in the handshake or in the stapled OCSP response."""

from __future__ import annotations

import hashlib
import json
import signal
import ssl
import subprocess
import time

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from support.gateway import run_pinfold
from support.inspection import ask, careless, openssl_server, through
from support.origin import reply
from support.transparency import Log, embedding, log_list, server_info, spki, status_file, utc
from support.wait import until
from test_reload import reload

HOST = "api.logged.test"
REASON = "tls-certificate-transparency"
ONE, TWO, UNLISTED = Log("one"), Log("two"), Log("unlisted")


@pytest.fixture
def logs(workspace):
    return log_list(workspace / "logs.json", ONE.entry(), TWO.entry())


def configuration(pki, logs, minimum=2, **entry) -> dict:
    return {"workers": 1, "access": {"connectPorts": "any"}, "hosts": [{
        "match": ["**.logged.test"], "upgrade": "https",
        "tls": {"roots": [str(pki.root.pem_file)],
                "certificateTransparency": {"minimumSCTs": minimum, "logs": logs}}, **entry}]}


def get(running, port, host=HOST):
    return running.get(f"http://{host}:{port}/", Accept="application/json")


def refused(response) -> str:
    assert response.status == 502
    assert response.json()["reason"] == REASON
    return response.json()["message"]


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_timestamps_in_the_certificate(gateway, origin, pki, logs, version):
    maximum = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}[version]
    running = gateway(configuration(pki, logs))
    plain = pki.intermediate.issue(HOST)

    def serve(made):
        return origin(lambda _: reply(b"genuine"), tls=made.server_context(maximum=maximum))

    enough = serve(embedding(pki.intermediate, plain, ONE, TWO))
    for _ in range(3):
        assert get(running, enough.port).body == b"genuine"
    for made, expected in [
        (plain, "the server has none"),
        (embedding(pki.intermediate, plain, ONE), "has them from 1"),
        (embedding(pki.intermediate, plain, ONE, ONE), "another one from one"),
        (embedding(pki.intermediate, plain, ONE, UNLISTED), "not in the list"),
        (embedding(pki.intermediate, plain, ONE, TWO, at=time.time() + 3600), "issued in the future"),
        (embedding(pki.intermediate, plain, ONE, TWO,
                   altered=lambda them: [them[0], them[1][:-1] + bytes([them[1][-1] ^ 1])]),
         "whose signature is wrong"),
        (embedding(pki.intermediate, plain, ONE, TWO, altered=lambda them: [them[0], b"\0\1"]),
         "a malformed one"),
        # The other certificate's promises.
        (embedding(pki.intermediate, plain, altered=lambda _: [
            log.of_precertificate(pki.intermediate.issue(HOST).certificate.tbs_certificate_bytes,
                                  pki.intermediate) for log in (ONE, TWO)]),
         "whose signature is wrong"),
    ]:
        there = serve(made)
        assert expected in refused(get(running, there.port))
        assert there.application_bytes == b""
    assert running.metric("pinfold_http_request_failures_total", reason=REASON) == 8
    running.wait_log("server refused")


@pytest.mark.parametrize("flag", ["-tls1_2", "-tls1_3"])
def test_timestamps_in_the_handshake(gateway, workspace, pki, logs, flag):
    running = gateway(configuration(pki, logs))
    leaf = embedding(pki.intermediate, pki.intermediate.issue(HOST), ONE)
    other = pki.intermediate.issue(HOST)
    shown = server_info(workspace / "right.pem", TWO.of_certificate(leaf))
    with openssl_server(workspace, leaf, flag, "-serverinfo", shown) as port:
        assert get(running, port).status == 200
    for timestamp, expected in [(TWO.of_certificate(other), "in the handshake one from two whose"),
                            (ONE.of_certificate(leaf), "in the handshake another one from one")]:
        shown = server_info(workspace / "wrong.pem", timestamp)
        with openssl_server(workspace, leaf, flag, "-serverinfo", shown) as port:
            assert expected in refused(get(running, port))


@pytest.mark.parametrize("flag", ["-tls1_2", "-tls1_3"])
def test_timestamps_in_the_stapled_response(gateway, workspace, pki, logs, flag):
    running = gateway(configuration(pki, logs))
    leaf = pki.intermediate.issue(HOST)
    both = [log.of_certificate(leaf) for log in (ONE, TWO)]
    staple = status_file(workspace / "staple.der", leaf, pki.intermediate, *both)
    with openssl_server(workspace, leaf, flag, "-status_file", staple) as port:
        for _ in range(2):
            assert get(running, port).status == 200
    staple = status_file(workspace / "one.der", leaf, pki.intermediate, both[0], both[0])
    with openssl_server(workspace, leaf, flag, "-status_file", staple) as port:
        assert "in the stapled OCSP response another one" in refused(get(running, port))


@pytest.mark.parametrize("way", ["certificate", "handshake", "staple", "none"])
def test_inspected_tunnels_are_verified_alike(gateway, workspace, pki, logs, way):
    running = gateway(configuration(pki, logs, tunnel="inspect", upgrade="none"))
    leaf = pki.intermediate.issue(HOST)
    if way == "certificate":
        leaf = embedding(pki.intermediate, leaf, ONE, TWO)
    both = [log.of_certificate(leaf) for log in (ONE, TWO)]
    arguments = {
        "handshake": ["-serverinfo", server_info(workspace / "info.pem", *both)],
        "staple": ["-status_file",
                   status_file(workspace / "staple.der", leaf, pki.intermediate, *both)],
    }.get(way, [])
    with openssl_server(workspace, leaf, "-tls1_2", *arguments) as port:
        if way == "certificate":
            assert ask(through(running, HOST, port, careless("1.2")), HOST).status == 200
            return
        # Python's clients ask for neither; OpenSSL's do.
        if way == "none":
            with pytest.raises(ssl.SSLError, match="access denied"):
                through(running, HOST, port, careless("1.2"))
            (line,) = running.wait_access(1)
            assert line["reason"] == REASON
            return
        known = workspace / "known.cnf"
        known.write_text("enabled_logs=\n")
        asks = ["-status"] if way == "staple" else ["-ct", "-ctlogfile", str(known)]
        client = run_client(running, port, *asks)
        assert "HTTP/1.0 200" in client, client


def run_client(running, port, *arguments: str) -> str:
    """What `openssl s_client` prints for a page, through a tunnel."""
    made = subprocess.run(
        ["openssl", "s_client", "-connect", f"{HOST}:{port}", "-proxy",
         "{}:{}".format(*running.proxy), "-servername", HOST, "-tls1_2", "-ign_eof", *arguments],
        input=b"GET / HTTP/1.0\r\n\r\n", capture_output=True, timeout=30)
    return (made.stdout + made.stderr).decode(errors="replace")


@pytest.mark.parametrize("logged", [True, False])
def test_a_probed_tunnel_is_verified_alike(gateway, origin, pki, logs, logged):
    running = gateway(configuration(
        pki, logs, tunnel="inspect", tls13Tunnel="probe", upgrade="none"))
    leaf = pki.intermediate.issue(HOST)
    if logged:
        leaf = embedding(pki.intermediate, leaf, ONE, TWO)
    there = origin(lambda _: reply(b"genuine"), tls=leaf.server_context())
    if logged:
        assert ask(through(running, HOST, there.port, careless("1.3")), HOST).body == b"genuine"
        return
    with pytest.raises((ssl.SSLError, OSError)):
        ask(through(running, HOST, there.port, careless("1.3")), HOST)
    (line,) = running.wait_access(1)
    assert line["reason"] == REASON


def test_another_list_ends_what_the_first_let_pass(gateway, origin, pki, workspace, logs):
    """Connections, sessions and stored responses under the first list are not used again."""
    leaf = embedding(pki.intermediate, pki.intermediate.issue(HOST), ONE, TWO)
    there = origin(lambda _: reply(b"genuine", "200 OK", "Cache-Control: max-age=3600"),
                   tls=leaf.server_context())
    running = gateway(configuration(pki, logs))
    assert get(running, there.port).status == 200
    assert get(running, there.port).status == 200
    assert there.accepted == 1
    log_list(workspace / "logs.json", ONE.entry(), TWO.entry("retired", since=1000),
             UNLISTED.entry())
    reload(running)
    assert "after it was retired" in refused(get(running, there.port))
    # A list that is none leaves the one that is in force.
    (workspace / "logs.json").write_text("{")
    running.signal(signal.SIGHUP)
    running.wait_log("is not a list of logs")
    assert "after it was retired" in refused(get(running, there.port))
    log_list(workspace / "logs.json", ONE.entry(), TWO.entry())
    reload(running)
    assert get(running, there.port).body == b"genuine"


@pytest.mark.parametrize("flag", ["-tls1_2", "-tls1_3"])
def test_keys_of_retired_logs_are_of_no_use(gateway, workspace, pki, logs, flag):
    """Who has them can date a timestamp back to before their end."""
    old, gone = Log("old"), time.time() - 300 * 86400
    log_list(workspace / "logs.json", ONE.entry(), TWO.entry(),
             *(log.entry("retired", since=gone) for log in (old, UNLISTED)))
    running = gateway(configuration(pki, logs))
    leaf = pki.intermediate.issue(HOST)
    shown = server_info(workspace / "shown.pem", ONE.of_certificate(leaf),
                        *(log.of_certificate(leaf, gone - 86400) for log in (old, UNLISTED)))
    with openssl_server(workspace, leaf, flag, "-serverinfo", shown) as port:
        assert "one from old, which is retired" in refused(get(running, port))
    leaf = embedding(pki.intermediate, leaf, old, UNLISTED, at=gone - 86400)
    with openssl_server(workspace, leaf, flag) as port:
        assert "has them from 2, all retired" in refused(get(running, port))
    embedded = embedding(pki.intermediate, pki.intermediate.issue(HOST), old, at=gone - 86400)
    shown = server_info(workspace / "shown.pem", ONE.of_certificate(embedded))
    with openssl_server(workspace, embedded, flag, "-serverinfo", shown) as port:
        assert get(running, port).status == 200


def test_a_list_that_decides_the_same_ends_nothing(gateway, origin, pki, workspace, logs):
    leaf = embedding(pki.intermediate, pki.intermediate.issue(HOST), ONE, TWO)
    there = origin(lambda _: reply(b"genuine", "200 OK", "Cache-Control: max-age=3600"),
                   tls=leaf.server_context())
    running = gateway(configuration(pki, logs, tunnel="inspect"))
    assert get(running, there.port).body == b"genuine"
    with openssl_server(workspace, leaf, "-tls1_2") as port:
        client = careless("1.2")
        first = through(running, HOST, port, client)
        session = first.session
        assert ask(first, HOST).status == 200
        log_list(workspace / "logs.json", ONE.entry(), TWO.entry(), age_days=0)
        reload(running)
        # The session was seen to be made under a list that is only older.
        again = through(running, HOST, port, client, session=session)
        assert again.session_reused
        log_list(workspace / "logs.json", TWO.entry("qualified", since=9),
                 ONE.entry("readonly", since=5, description="renamed"), UNLISTED.entry("pending"))
        reload(running)
        assert ask(again, HOST).status == 200
    assert get(running, there.port).body == b"genuine"
    assert there.accepted == 1


@pytest.mark.slow
def test_a_new_list_is_in_force_without_a_reload(gateway, origin, pki, workspace, logs):
    leaf = embedding(pki.intermediate, pki.intermediate.issue(HOST), ONE, TWO)
    there = origin(lambda _: reply(b"genuine", "200 OK", "Cache-Control: max-age=3600"),
                   tls=leaf.server_context())
    running = gateway(configuration(pki, logs))
    file = workspace / "logs.json"

    def is_in_force(times):
        until(lambda: running.log().count("files are now in effect") == times, running.log)

    def state(name):
        return running.metric("pinfold_config_file_state", file=str(file), state=name)

    assert get(running, there.port).body == b"genuine"
    # Half of a list, or one that no server could satisfy: the one before stays.
    whole = file.read_bytes()
    file.write_bytes(whole[:len(whole) // 2])
    running.wait_log("is not a list of logs at")
    assert state("unusable") == 1
    log_list(file, ONE.entry(), TWO.entry("retired", since=9))
    running.wait_log("2 exceeds the number of usable logs")
    assert running.metric("pinfold_config_file_refusals_total") == 2
    assert running.metric("pinfold_config_last_reload_successful") == 0
    assert get(running, there.port).status == 200
    # One that decides the same: what is stored is used on.
    log_list(file, TWO.entry(), ONE.entry(description="renamed"))
    is_in_force(1)
    assert state("current") == 1
    assert get(running, there.port).status == 200
    assert there.accepted == 1
    # A log less, and another in its place: neither connection nor stored response is used.
    log_list(file, ONE.entry(), TWO.entry("rejected", since=1), UNLISTED.entry())
    is_in_force(2)
    assert "a log that is rejected" in refused(get(running, there.port))
    # An older list does not take the place of a newer one.
    log_list(file, ONE.entry(), TWO.entry(), age_days=40)
    running.wait_log("holds an older list than the one in use")
    assert state("outdated") == 1
    assert "a log that is rejected" in refused(get(running, there.port))
    reload(running)
    assert state("current") == 1
    assert get(running, there.port).status == 200


def test_a_list_of_several_entries_is_reported_once(gateway, pki, workspace, logs):
    config = configuration(pki, logs)
    config["tls"] = {"certificateTransparency": {"minimumSCTs": 1, "logs": logs}}
    config["hosts"] += [{"match": [f"{number}.test"]} for number in range(3)]
    running = gateway(config)
    (workspace / "logs.json").write_text("hello")
    running.wait_log("is not a list of logs at")
    log_list(workspace / "logs.json", ONE.entry("retired", since=1))
    until(lambda: running.log().count("minimumSCTs: ") == 2, running.log)
    assert running.log().count("is not a list of logs at") == 1
    assert running.metric("pinfold_config_file_refusals_total") == 2


def test_an_entry_may_ask_for_less_than_the_rest(gateway, origin, pki, logs):
    there = origin(lambda _: reply(b"genuine"), tls=pki.intermediate.issue(
        "free.logged.test", HOST).server_context())
    config = configuration(pki, logs)
    config["tls"] = {"certificateTransparency": {"minimumSCTs": 1, "logs": logs}}
    del config["hosts"][0]["tls"]["certificateTransparency"]
    config["hosts"].insert(0, {"match": ["free.logged.test"], "upgrade": "https", "tls": {
        "roots": [str(pki.root.pem_file)], "certificateTransparency": {"minimumSCTs": 0}}})
    running = gateway(config)
    assert get(running, there.port, "free.logged.test").status == 200
    assert "1 log are required" in refused(get(running, there.port))


def test_trust_and_explain_judge_alike(origin, pki, workspace, logs):
    config = workspace / "gateway.yaml"
    config.write_text(json.dumps(configuration(pki, logs)))
    plain = pki.intermediate.issue(HOST)
    for made, code, word in [(plain, 1, "certificate-transparency"),
                             (embedding(pki.intermediate, plain, ONE, TWO), 0, "trusted")]:
        asked = run_pinfold("trust", "--config", str(config), "--chain", str(made.chain_file()),
                            "--host", HOST)
        assert (asked.returncode, asked.stderr) == (code, "")
        assert word in asked.stdout
    there = origin(lambda _: reply(b"x"), tls=plain.server_context())
    config.write_text(json.dumps({
        **configuration(pki, logs), "access": {"destinations": {"allow": ["127.0.0.0/8"]}},
        "hosts": [{**configuration(pki, logs)["hosts"][0], "match": ["localhost"]}]}))
    local = pki.intermediate.issue("localhost")
    for made, code in [(local, 1), (embedding(pki.intermediate, local, ONE, TWO), 0)]:
        there = origin(lambda _: reply(b"x"), tls=made.server_context())
        result = run_pinfold(
            "explain", "--connect", f"https://localhost:{there.port}/", "--config", str(config))
        assert result.returncode == code, result.stdout + result.stderr
        assert ("SCTs" in result.stdout) == (code == 1)


def test_trust_counts_timestamps_of_the_response_that_it_is_given(pki, workspace, logs):
    config = workspace / "gateway.yaml"
    config.write_text(json.dumps(configuration(pki, logs)))
    made = pki.intermediate.issue(HOST)
    both = [log.of_certificate(made) for log in (ONE, TWO)]
    for shown, code in [(both, 0), (both[:1], 1)]:
        response = status_file(
            workspace / "response.der", made, pki.intermediate, *shown, signed=True)
        asked = run_pinfold("trust", "--config", str(config), "--chain", str(made.chain_file()),
                            "--host", HOST, "--ocsp", response)
        assert (asked.returncode, asked.stderr) == (code, ""), asked.stdout
        assert ("certificate-transparency" in asked.stdout) == (code == 1)


@pytest.mark.parametrize(("change", "message"), [
    ({"logs": None}, "requires a list of logs"),
    ({"minimumSCTs": 3}, "3 exceeds the number of usable logs"),
    ({"logs": "retired"}, "usable logs in the list, 1"),
    ({"logs": "over"}, "usable logs in the list, 1"),
    ({"minimumSCTs": 11}, "out of range"),
    ({"logs": "none.json"}, "none.json"),
    ({"logs": "text"}, "is not a list of logs at \"line 1, byte 1\""),
    ({"logs": "state"}, "operators[0].logs[0].state"),
    ({"logs": "id"}, "not the SHA-256 of the log's key"),
    ({"sct": 1}, "unknown key"),
])
def test_a_wrong_list_or_number_is_refused(pki, workspace, logs, change, message):
    (workspace / "text").write_text("hello")
    log_list(workspace / "state", ONE.entry("excellent"))
    log_list(workspace / "retired", ONE.entry(), TWO.entry("retired", since=time.time()))
    log_list(workspace / "over", ONE.entry(), TWO.entry(temporal_interval={
        "start_inclusive": utc(0), "end_exclusive": utc(time.time())}))
    log_list(workspace / "id", ONE.entry(log_id=TWO.entry()["log_id"]))
    config = configuration(pki, logs)
    wanted = config["hosts"][0]["tls"]["certificateTransparency"]
    wanted |= change
    if wanted["logs"] is None:
        del wanted["logs"]
    path = workspace / "gateway.yaml"
    path.write_text(json.dumps(config))
    made = run_pinfold("check", "--config", str(path))
    assert made.returncode == 1
    assert message in made.stderr and "certificateTransparency" in made.stderr, made.stderr


def test_an_old_list_is_warned_of(pki, workspace, logs):
    path = workspace / "gateway.yaml"
    path.write_text(json.dumps(configuration(pki, logs)))

    def warnings() -> str:
        made = run_pinfold("check", "--config", str(path))
        assert made.returncode == 0, made.stderr
        return made.stdout + made.stderr

    assert "days old" not in warnings()
    log_list(workspace / "logs.json", ONE.entry(), TWO.entry(), age_days=71)
    assert "the list is 71 days old" in warnings()
    content = json.loads((workspace / "logs.json").read_text())
    del content["log_list_timestamp"]
    (workspace / "logs.json").write_text(json.dumps(content))
    assert "has no log_list_timestamp" in warnings()
    # Also where only entries ask for timestamps of its logs.
    config = configuration(pki, logs)
    del config["hosts"][0]["tls"]["certificateTransparency"]["logs"]
    path.write_text(json.dumps({**config, "tls": {"certificateTransparency": {"logs": logs}}}))
    assert "has no log_list_timestamp" in warnings()
    log_list(workspace / "logs.json", ONE.entry(), TWO.entry(), age_days=71)
    assert "the list is 71 days old" in warnings()


def test_a_log_with_a_key_of_another_kind_does_not_count(pki, workspace):
    odd = Log("odd")
    odd.key = ed25519.Ed25519PrivateKey.generate()
    odd.id = hashlib.sha256(spki(odd.key)).digest()
    pending = Log("pending").entry("pending")
    logs = log_list(workspace / "logs.json", ONE.entry(), TWO.entry(), odd.entry(), pending)
    path = workspace / "gateway.yaml"
    path.write_text(json.dumps(configuration(pki, logs)))
    made = run_pinfold("check", "--config", str(path))
    assert made.returncode == 0
    assert "odd does not count: the key of a log must be" in made.stdout + made.stderr
    result = run_pinfold("explain", f"https://{HOST}/", "--config", str(path))
    assert "certificate transparency: 2 of 2 logs" in result.stdout, result.stdout + result.stderr
