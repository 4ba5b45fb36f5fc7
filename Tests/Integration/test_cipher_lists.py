"""The cipher suites that servers are offered, by host."""

from __future__ import annotations

import ssl

import pytest
import yaml
from support.gateway import run_pinfold
from support.origin import reply
from support.wire import request

HOST, OTHER = "chosen.test", "other.test"
ONE, TWO = "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"
SUITES = ["TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"]


@pytest.fixture
def there(origin, pki):
    """A server that answers with the suite that was agreed on."""
    def make(version):
        context = pki.intermediate.issue(HOST, OTHER).server_context(version, version)
        made = origin(lambda _: reply(
            made.connections[-1].socket.cipher()[0].encode(), "200 OK", "Cache-Control: no-store"),
            tls=context)
        return made
    return make


def token(answer):
    return answer.proxy_status["details"].split(":")[0]


def configuration(pki, tls, top=None):
    return {"workers": 1, "tls": {"roots": [str(pki.root.pem_file)]} | (top or {}),
            "hosts": [{"match": [HOST], "upgrade": "https", "tls": tls},
                      {"match": [OTHER], "upgrade": "https"}]}


@pytest.mark.parametrize("version, key, choices", [
    (ssl.TLSVersion.TLSv1_2, "ciphers", [ONE, TWO]),
    (ssl.TLSVersion.TLSv1_3, "cipherSuites", SUITES)])
def test_a_host_is_offered_its_suites_alone(gateway, pki, there, version, key, choices):
    server = there(version)
    for chosen in choices:
        running = gateway(configuration(pki, {key: chosen}, {key: ":".join(choices)}))
        for host, possible in ((HOST, [chosen]), (OTHER, choices)):
            answer = running.ask(request(f"http://{host}:{server.port}/"))
            assert answer.status == 200, answer
            assert answer.body.decode() in possible


def test_a_server_without_any_of_them_is_not_asked(gateway, pki, origin):
    context = pki.intermediate.issue(HOST).server_context(maximum=ssl.TLSVersion.TLSv1_2)
    context.set_ciphers(ONE)
    server = origin(lambda _: reply(), tls=context)
    running = gateway(configuration(pki, {"ciphers": [TWO]}))
    answer = running.ask(request(f"http://{HOST}:{server.port}/"))
    assert (answer.status, token(answer)) == (502, "tls-alert-received")
    assert server.application_bytes == b""


def check(folder, pki, tls):
    file = folder / "checked.yaml"
    file.write_text(yaml.safe_dump(configuration(pki, tls)))
    return run_pinfold("check", "--config", str(file))


@pytest.mark.parametrize("key, value, word", [
    ("ciphers", "ECDHE+AESGCM:FOO", '"FOO"'), ("ciphers", "HIGH:!aNUL", '"!aNUL"'),
    ("ciphers", "HIGH:ECDHE+AESGMC", '"ECDHE+AESGMC"'), ("ciphers", "HIGH:+", '"+"'),
    ("ciphers", "HIGH:DEFAULT", '"DEFAULT"'), ("ciphers", "HIGH:@SECLEVEL=0", "@SECLEVEL"),
    ("ciphers", "ALL@SECLEVEL=0", "@SECLEVEL"), ("ciphers", "eNULL@SECLEVEL=0", "@SECLEVEL"),
    ("ciphers", "COMPLEMENTOFALL", "no cipher suite is left"),
    ("ciphers", "HIGH:TLS_AES_128_GCM_SHA256", "belongs in cipherSuites"),
    ("ciphers", "aNULL", "no cipher suite is left"), ("ciphers", "eNULL", "no cipher suite"),
    ("ciphers", "HIGH:!ALL", "no cipher suite is left"), ("ciphers", "", "no cipher suite"),
    ("ciphers", "RC4", "no cipher suite is left"), ("ciphers", [], "no cipher suite is left"),
    ("cipherSuites", "TLS_AES_128_GCM_SHA265", '"TLS_AES_128_GCM_SHA265"'),
    ("cipherSuites", ONE, ONE), ("cipherSuites", [], "no cipher suite is left"),
    ("ciphers", {"a": 1}, "expected a cipher list in OpenSSL")])
def test_check_names_what_is_wrong_with_a_list(workspace, pki, key, value, word):
    done = check(workspace, pki, {key: value})
    assert done.returncode == 1
    (error,) = done.stderr.splitlines()
    assert f"hosts[0].tls.{key}" in error and word in error and "expected" in error, error


@pytest.mark.parametrize("value", [
    "DEFAULT:!SHA1", "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL:!MD5:!RC4:!DSS", "HIGH, !3DES", ONE,
    "ALL:@STRENGTH", "HIGH:-AES128:+AES256", [ONE, TWO]])
def test_check_takes_what_openssl_takes(workspace, pki, value):
    done = check(workspace, pki, {"ciphers": value})
    assert (done.returncode, done.stderr) == (0, "")
    shown = ":".join(value) if isinstance(value, list) else value
    assert f'ciphers: "{shown}"' in done.stdout


def test_check_warns_of_a_list_without_effect(workspace, pki):
    done = check(workspace, pki, {"minimum": "1.3", "ciphers": ONE})
    assert done.returncode == 0
    assert "hosts[0].tls.ciphers: has no effect with minimum" in done.stderr
