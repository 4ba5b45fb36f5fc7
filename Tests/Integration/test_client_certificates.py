"""Client certificates to servers that ask for them: who is shown which, what comes of servers that
want one or another, and files that change while the gateway runs."""

from __future__ import annotations

import ssl
import threading

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID
from support.gateway import run_pinfold
from support.origin import reply
from support.pki import without_readable_end
from support.secure_ways import WAYS, ask_by, prepare
from support.wait import until
from support.wire import request

HOST, OTHER = "mutual.test", "other.test"
CLIENT = ExtendedKeyUsageOID.CLIENT_AUTH
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


class Files:
    """A client's certificate and key at paths that stay, whatever is in them."""

    def __init__(self, folder):
        self.certificate, self.key = folder / "client.pem", folder / "client.key"
        self.keys = {"clientCertificate": str(self.certificate), "clientKey": str(self.key)}
        self.key.touch(0o600)

    def hold(self, leaf):
        self.certificate.write_bytes(leaf.chain_file().read_bytes())
        self.key.write_bytes(leaf.key_file.read_bytes())
        return self


@pytest.fixture
def files(workspace):
    return Files(workspace)


def client(authority, name, **options):
    return authority.issue(name, usage=options.pop("usage", CLIENT), **options)


@pytest.fixture
def serve(origin, pki):
    """A server that asks for certificates of `other_root`, and answers whose it was shown."""
    def make(verify=ssl.CERT_REQUIRED, version=None, cached=False, before=lambda: None):
        context = pki.intermediate.issue(HOST, OTHER).server_context(
            *[VERSIONS[version]] * 2 if version else [])
        context.load_verify_locations(pki.other_root.pem_file)
        context.verify_mode = verify
        how = "max-age=600" if cached else "no-store"

        def answer(_):
            before()
            shown = there.connections[-1].socket.getpeercert() or {}
            subject = [value for part in shown.get("subject", ()) for _, value in part]
            return reply("".join(subject).encode() or b"nobody", "200 OK",
                         f"Cache-Control: {how}")

        there = origin(answer, tls=context)
        return there
    return make


def configuration(pki, tls, *more, **top):
    roots = {"roots": [str(pki.root.pem_file)]}
    return {"workers": 1, "tls": roots,
            "hosts": [{"match": [HOST], "upgrade": "https", "tls": tls}, *more], **top}


def token(answer):
    return answer.proxy_status["details"].split(":")[0]


def ask(running, there, host=HOST, path="/"):
    return running.ask(request(f"http://{host}:{there.port}{path}"))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("way", WAYS)
def test_the_certificate_is_shown_on_every_way(gateway, pki, files, serve, way, version):
    there = serve(version=version)
    files.hold(client(pki.other_root, "gateway-1"))
    config = configuration(pki, files.keys)
    running = gateway(prepare(config, pki, way, HOST, there.port))
    answer = ask_by(way, running, HOST, there.port)
    assert (answer.status, answer.body) == (200, b"gateway-1"), answer


def test_one_file_may_hold_certificate_chain_and_key(gateway, pki, files, serve):
    there = serve()
    leaf = client(pki.other_root.intermediate("Clients"), "gateway-2")
    files.key.write_bytes(leaf.chain_file().read_bytes() + leaf.key_file.read_bytes())
    running = gateway(configuration(pki, {"clientCertificate": str(files.key)}))
    assert ask(running, there).body == b"gateway-2"


def test_other_hosts_are_shown_nothing(gateway, pki, files, serve):
    there = serve(verify=ssl.CERT_OPTIONAL)
    files.hold(client(pki.other_root, "gateway-1"))
    running = gateway(configuration(
        pki, files.keys, {"match": [OTHER], "upgrade": "https"}))
    assert ask(running, there).body == b"gateway-1"
    assert ask(running, there, OTHER).body == b"nobody"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("shown, reason", [
    (None, "tls-client-certificate-required"), ("rogue", "tls-client-certificate-rejected"),
    ("expired", "tls-client-certificate-rejected")])
def test_a_server_that_wants_another_certificate_is_logged(
        gateway, pki, files, serve, version, shown, reason):
    there = serve(version=version)
    if shown == "rogue":
        files.hold(client(pki.rogue_root, "gateway-1"))
    elif shown:
        files.hold(client(pki.other_root, "gateway-1", days=(-9, -2)))
    running = gateway(configuration(pki, files.keys if shown else {}))
    answer = ask(running, there)
    assert (answer.status, token(answer)) == (502, reason), answer
    assert answer.proxy_status["error"] == "tls_alert_received"
    assert int(answer.proxy_status["alert-id"]) in range(40, 117)
    assert running.wait_access(1)[0]["reason"] == reason
    assert running.metric("pinfold_http_request_failures_total", reason=reason) == 1
    running.wait_log(reason)
    assert there.application_bytes == b""


def test_an_alert_of_a_server_that_asks_for_no_certificate_is_reported_as_such(
        gateway, pki, files, origin):
    context = pki.intermediate.issue(HOST).server_context(maximum=VERSIONS["1.2"])
    context.set_ciphers("DHE-RSA-AES256-GCM-SHA384")
    there = origin(lambda _: reply(), tls=context)
    files.hold(client(pki.other_root, "gateway-1"))
    answer = ask(gateway(configuration(pki, files.keys)), there)
    assert (answer.status, token(answer)) == (502, "tls-alert-received"), answer


def test_a_renewed_certificate_is_shown_without_a_reload(gateway, pki, files, serve):
    gate, held = threading.Event(), threading.Event()

    def before():
        if len(there.requests) == 2:
            held.set()
            assert gate.wait(30)

    there = serve(before=before)
    files.hold(client(pki.other_root, "gateway-old"))
    running = gateway(configuration(pki, files.keys))
    assert ask(running, there).body == b"gateway-old"
    answers = []
    slow = threading.Thread(target=lambda: answers.append(ask(running, there)))
    slow.start()
    assert held.wait(30)
    files.hold(client(pki.other_root, "gateway-new"))
    running.wait_log("files are now in effect")
    gate.set()
    slow.join()
    assert answers[0].status == 200, "what is in flight finishes"
    assert ask(running, there).body == b"gateway-new"
    assert running.log().count("configuration reloaded") == 0


def test_a_broken_new_file_leaves_the_old_one_in_force(gateway, pki, files, serve):
    there = serve()
    old = client(pki.other_root, "gateway-old")
    files.hold(old)
    running = gateway(configuration(pki, files.keys))
    assert ask(running, there).body == b"gateway-old"
    files.key.write_bytes(client(pki.other_root, "x").key_file.read_bytes())
    log = running.wait_log("cannot be used; the old content stays in use")
    assert "hosts[0].tls.clientKey" in log
    assert running.metric("pinfold_config_last_reload_successful") == 0
    assert ask(running, there).body == b"gateway-old"
    files.certificate.unlink()
    until(lambda: running.log().count("cannot be used") > 1, "the missing file is logged")
    assert ask(running, there).body == b"gateway-old"
    files.hold(old)
    until(lambda: running.metric("pinfold_config_last_reload_successful") == 1, "all is well")


def test_a_response_to_one_certificate_is_not_served_to_another(gateway, pki, files, serve):
    there = serve(cached=True)
    first = client(pki.other_root, "gateway-a")
    files.hold(first)
    running = gateway(configuration(pki, files.keys))
    assert ask(running, there).body == b"gateway-a"
    assert ask(running, there).body == b"gateway-a"
    assert len(there.requests) == 1, "the second is a hit"
    files.hold(client(pki.other_root, "gateway-b"))
    running.wait_log("files are now in effect")
    assert ask(running, there).body == b"gateway-b"
    assert len(there.requests) == 2


def spoil_end(files):
    leaf = x509.load_pem_x509_certificate(files.certificate.read_bytes())
    files.certificate.write_text(without_readable_end(leaf))


def test_a_new_certificate_without_a_readable_end_leaves_the_old_one_in_force(
        gateway, pki, files, serve):
    there = serve()
    files.hold(client(pki.other_root, "gateway-old"))
    running = gateway(configuration(pki, files.keys))
    spoil_end(files)
    assert "notAfter" in running.wait_log("cannot be used; the old content stays in use")
    assert ask(running, there).body == b"gateway-old"


WRONG = {
    "another's key": (lambda pki, files: files.key.write_bytes(
        client(pki.other_root, "x").key_file.read_bytes()), "clientKey", "cannot be used"),
    "no key": (lambda pki, files: files.key.write_bytes(b"hello"), "clientKey", "no unencrypted private key"),
    "no certificate": (lambda pki, files: files.certificate.write_bytes(b"hello"),
                       "clientCertificate", "no certificate"),
    "an unreadable end": (lambda pki, files: spoil_end(files), "clientCertificate",
                          "notBefore or notAfter"),
    "missing": (lambda pki, files: files.key.unlink(), "clientKey", "cannot be read"),
    "a folder": (lambda pki, files: (files.key.unlink(), files.key.mkdir()), "clientKey",
                 "a directory"),
    "encrypted": (lambda pki, files: files.key.write_bytes(
        client(pki.other_root, "y").key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"))), "clientKey", "encrypted"),
    "encrypted as of old": (lambda pki, files: files.key.write_bytes(
        client(pki.other_root, "y").key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.BestAvailableEncryption(b"secret"))), "clientKey", "encrypted"),
}


def check(folder, pki, keys):
    import yaml
    file = folder / "checked.yaml"
    file.write_text(yaml.safe_dump(configuration(pki, keys)))
    return run_pinfold("check", "--config", str(file))


@pytest.mark.parametrize("name", WRONG)
def test_check_refuses_files_that_cannot_be_used(workspace, pki, files, name):
    spoil, key, word = WRONG[name]
    files.hold(client(pki.other_root, "gateway-1"))
    spoil(pki, files)
    done = check(workspace, pki, files.keys)
    assert done.returncode == 1
    (error,) = done.stderr.splitlines()
    assert f"hosts[0].tls.{key}" in error and word in error and "expected" in error, error


def test_check_refuses_a_key_without_a_certificate(workspace, pki, files):
    files.hold(client(pki.other_root, "gateway-1"))
    done = check(workspace, pki, {"clientKey": str(files.key)})
    assert done.returncode == 1
    assert "hosts[0].tls.clientKey: requires clientCertificate" in done.stderr


def test_check_warns_of_certificates_that_servers_will_refuse(workspace, pki, files):
    files.hold(client(pki.other_root, "gateway-1"))
    done = check(workspace, pki, files.keys)
    assert done.returncode == 0
    assert [line for line in done.stderr.splitlines() if "expires in" not in line] == []
    assert f"clientCertificate: \"{files.certificate}\"" in done.stdout
    assert f"clientKey: \"{files.key}\"" in done.stdout
    assert "PRIVATE" not in done.stdout
    files.hold(client(pki.other_root, "gateway-1", days=(-9, -2)))
    assert "has expired" in check(workspace, pki, files.keys).stderr
    files.hold(client(pki.other_root, "gateway-1", usage=ExtendedKeyUsageOID.SERVER_AUTH))
    assert "not a client certificate" in check(workspace, pki, files.keys).stderr
    files.hold(client(pki.other_root, "gateway-1"))
    files.key.chmod(0o644)
    assert "chmod 640" in check(workspace, pki, files.keys).stderr


def test_explain_shows_the_certificate_too(workspace, pki, files, serve):
    import yaml
    there = serve(version="1.2")
    files.hold(client(pki.other_root, "gateway-1"))
    for keys, word in ((files.keys, "server: trusted"),
                       ({}, "requires a client certificate and was given none")):
        config = configuration(pki, keys)
        config["hosts"][0]["match"] = ["localhost"]
        config["hosts"][0]["pinsets"] = ["any"]
        config["pinsets"] = {"any": {"mode": "none", "validatesDomainName": False}}
        config["access"] = {"destinations": {"allow": ["127.0.0.0/8", "::1"]}}
        file = workspace / "explained.yaml"
        file.write_text(yaml.safe_dump(config))
        done = run_pinfold("explain", f"https://localhost:{there.port}/", "--connect",
                           "--config", str(file))
        assert word in done.stdout + done.stderr, done.stdout + done.stderr
