"""The administrative address sets clients up: the authority's certificate, PAC, and what to paste."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from support.gateway import Gateway, run_pinfold
from support.origin import reply
from support.wait import until
from support.wire import Response, ask


@pytest.fixture
def authority(tmp_path) -> dict[str, str]:
    folder = tmp_path / "authority"
    folder.mkdir()
    done = run_pinfold("ca", "init", "--certificate", "ca.pem", "--key", "ca.key", cwd=folder)
    assert done.returncode == 0, done.stderr
    return {"certificate": str(folder / "ca.pem"), "key": str(folder / "ca.key")}


@pytest.fixture
def trusted(gateway, authority) -> Gateway:
    return gateway({"interception": authority})


def ask_as(running: Gateway, host: str, path: str) -> Response:
    """A browser's request for a page of the administration under some name."""
    return ask(running.admin, f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/html\r\n"
               "Connection: close\r\n\r\n")


def certificate(path: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(Path(path).read_bytes())


def test_the_certificate_is_served_and_never_the_key(trusted, authority):
    pem, der = trusted.admin_get("/ca.pem"), trusted.admin_get("/ca.der")
    assert pem.status == der.status == 200
    assert pem.get("content-type") == der.get("content-type") == "application/x-x509-ca-cert"
    assert x509.load_pem_x509_certificate(pem.body) == certificate(authority["certificate"])
    assert x509.load_der_x509_certificate(der.body) == certificate(authority["certificate"])
    for path in ("/ca.key", "/ca.pem", "/ca.der", "/setup", "/proxy.pac", "/"):
        assert b"PRIVATE" not in trusted.admin_get(path).body
    assert trusted.admin_get("/ca.key").status == 404


def test_after_a_rotation_and_a_reload_the_new_certificate_alone_is_served(trusted, authority):
    before = certificate(authority["certificate"])
    done = run_pinfold(
        "ca", "rotate", "--certificate", authority["certificate"], "--key", authority["key"])
    assert done.returncode == 0, done.stderr
    assert x509.load_pem_x509_certificate(trusted.admin_get("/ca.pem").body) == before
    trusted.signal(signal.SIGHUP)
    until(lambda: trusted.metric("pinfold_config_generation") == 2, "reloaded")
    served = trusted.admin_get("/ca.pem").body
    assert served.count(b"BEGIN CERTIFICATE") == 1
    assert x509.load_pem_x509_certificate(served) == certificate(authority["certificate"]) != before


def test_without_an_authority_the_certificate_is_not_found_and_the_rest_is_there(gateway):
    running = gateway()
    for path in ("/ca.pem", "/ca.der"):
        missing = running.admin_get(path)
        assert missing.status == 404
        assert b"interception.certificate" in missing.body
    assert running.admin_get("/proxy.pac").status == 200
    assert running.admin_get("/setup").status == 200
    assert b"ca.pem" not in running.admin_get("/setup").body


@pytest.mark.parametrize(("host", "direct"), [
    ("example.com", False), ("intranet", False), ("10.0.0.1", False), ("localhost", True),
    ("a.localhost", True), ("127.0.0.1", True), ("::1", True), ("notlocalhost", False),
])
def test_the_auto_configuration_sends_everything_but_the_loopback_through_the_gateway(
        gateway, host, direct):
    running = gateway()
    given = running.admin_get("/proxy.pac")
    assert given.get("content-type") == "application/x-ns-proxy-autoconfig"
    # The functions that a browser gives such a file.
    script = """
        const dnsDomainIs = (host, domain) => host.endsWith(domain);
        const shExpMatch = (text, glob) => new RegExp(
            '^' + glob.replaceAll('.', '\\\\.').replaceAll('*', '.*') + '$').test(text);
        """ + given.body.decode() + f"""
        const host = {json.dumps(host)};
        console.log(FindProxyForURL('http://' + host + '/', host));
        """
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    name, port = running.proxy
    assert done.stdout.strip() == ("DIRECT" if direct else f"PROXY {name}:{port}")


def section(text: str, title: str) -> list[str]:
    """The lines to paste for a kind of client."""
    after = text.split(f"\n# {title}", 1)[1].split("\n", 1)[1]
    lines = []
    for line in after.split("\n"):
        if line.startswith("# "):
            if lines:
                break
        elif line.startswith("    "):
            lines.append(line[4:])
    return lines


def test_the_lines_for_the_certificate_and_for_curl_do_what_they_say(
        trusted, authority, origin, tmp_path):
    text = trusted.admin_get("/setup").body.decode()
    server = origin(lambda _: reply(b"by the gateway"))
    fetch, show, expected, bundle = section(text, "The certificate, first")
    assert bundle.startswith("cat ")
    (curl,) = section(text, "curl")
    curl = curl.replace("http://example.com/", server.url("/")).replace(
        "pinfold-bundle.pem", "pinfold-ca.pem")
    done = subprocess.run(["sh", "-ec", f"{fetch}\n{show}\n{curl}"], cwd=tmp_path,
                          capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    fingerprint = certificate(authority["certificate"]).fingerprint(hashes.SHA256()).hex(":").upper()
    assert expected == f"# {fingerprint}"
    assert f"Fingerprint={fingerprint}\n" in done.stdout
    assert done.stdout.endswith("by the gateway")


def test_the_lines_for_chrome_have_it_trust_the_certificate(trusted, authority, tmp_path):
    """On a machine where it has not run yet."""
    lines = section(trusted.admin_get("/setup").body.decode(), "Chrome")
    lines = [line for line in lines if "--proxy-pac-url" not in line]
    shutil.copy(authority["certificate"], tmp_path / "pinfold-ca.pem")
    done = subprocess.run(
        ["sh", "-ec", "\n".join([*lines, "certutil -d sql:$HOME/.pki/nssdb -L"])], cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)}, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^pinfold\s+C,,", done.stdout, re.M), done.stdout


def test_the_lines_for_wget_do_what_they_say(trusted, authority, origin, tmp_path):
    server = origin(lambda _: reply(b"by the gateway"))
    (line,) = section(trusted.admin_get("/setup").body.decode(), "wget")
    line = line.replace("http://example.com/", server.url("/"))
    shutil.copy(authority["certificate"], tmp_path / "pinfold-bundle.pem")
    done = subprocess.run(["sh", "-ec", line + " -qO-"], cwd=tmp_path, capture_output=True,
                          text=True, timeout=30)
    assert (done.returncode, done.stdout) == (0, "by the gateway"), done.stderr
    assert "via" in server.requests[0]


@pytest.mark.parametrize("title", [
    "A shell, and most programs started from it", "Python: requests", "Go", "git", "pip", "npm",
    "Docker", "Linux", "macOS", "Chrome", "wget", "Java", "Node", "apt"])
def test_the_lines_for_a_shell_are_a_shell_s(trusted, title):
    lines = section(trusted.admin_get("/setup").body.decode(), title)
    assert lines
    shell = [line for line in lines if not line.startswith(("COPY ", "RUN "))]
    done = subprocess.run(["sh", "-n"], input="\n".join(shell), text=True, capture_output=True,
                          timeout=10)
    assert done.returncode == 0, done.stderr


def test_a_request_s_host_is_not_reflected(gateway):
    running = gateway({"listeners": [
        {"name": "proxy", "address": "0.0.0.0:0", "kind": "forward"}],
        "access": {"clients": ["127.0.0.0/8"]}})
    for path in ("/setup", "/proxy.pac"):
        for host in ("a$(reboot).localhost", "a'b.localhost", "a&b;c.localhost"):
            given = ask_as(running, host, path)
            assert given.status == 200
            assert host.encode() not in given.body
            assert b"127.0.0.1:" in given.body
        named = ask_as(running, "Gateway.localhost", path)
        assert b"gateway.localhost:" in named.body


def test_the_pages_need_no_token_and_answer_no_other_host(gateway, tmp_path):
    (tmp_path / "token").write_text("secret-token")
    running = gateway({"admin": {"address": "127.0.0.1:0", "metrics": "token",
                                 "tokenFile": str(tmp_path / "token")}})
    assert running.admin_get("/metrics").status == 401
    for path in ("/setup", "/proxy.pac"):
        assert running.admin_get(path).status == 200
        assert ask_as(running, "rebound.test", path).status == 421


def test_a_proxy_with_tls_is_written_so_where_there_is_no_other(gateway, pki, tmp_path):
    identity = pki.root.issue("localhost")
    tls = {"certificate": str(identity.pem_file), "key": str(identity.key_file)}
    secure = {"name": "secure", "address": "127.0.0.1:0", "kind": "forward", "tls": tls}
    clear = {"name": "clear", "address": "127.0.0.1:0", "kind": "forward"}
    assert b'return "HTTPS 127.0.0.1:' in gateway({"listeners": [secure]}).admin_get(
        "/proxy.pac").body
    assert b'return "PROXY 127.0.0.1:' in gateway({"listeners": [secure, clear]}).admin_get(
        "/proxy.pac").body
