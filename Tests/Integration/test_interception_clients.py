"""Real clients in intercepted tunnels, each with proxy and authority configured as its users do."""

from __future__ import annotations

import os
import re

import pytest
from support.interception import HOST, OTHER, no_client_is_connected
from support.origin import HTTPOrigin, reply
from support.programs import Done, Program, Settings, answer

LARGE = os.urandom(3 << 20)
UPLOAD = os.urandom(3 << 20)

# What each says of a tunnel that the gateway refuses, what of an authority that it does not know,
# and whether it tells the gateway of the latter by an alert. The others just close: within the
# handshake, or after it, for they look at the certificate when it has ended.
ERRORS = {
    "curl": (r"\(22\) .*: 502", r"\(60\) SSL certificate problem", True),
    "wget": (r"Proxy tunneling failed: tls-host-mismatch", r"doesn't have a known issuer", False),
    "requests": (r"ProxyError.*502 tls-host-mismatch", r"CERTIFICATE_VERIFY_FAILED", True),
    "httpx": (r"ProxyError: 502 tls-host-mismatch", r"CERTIFICATE_VERIFY_FAILED", True),
    "httpx-async": (r"ProxyError: 502 tls-host-mismatch", r"CERTIFICATE_VERIFY_FAILED", False),
    "node-https": (r"CONNECT: 502 tls-host-mismatch", r"UNABLE_TO_VERIFY_LEAF_SIGNATURE", False),
    "node-undici": (r"Proxy response !== 200", r"UNABLE_TO_VERIFY_LEAF_SIGNATURE", False),
    "java": (r"Tunnel failed, got: 502", r"PKIX path building failed", False),
    "go": (r"tls-host-mismatch", r"certificate signed by unknown authority", True),
}


@pytest.fixture(params=sorted(ERRORS))
def name(request) -> str:
    return request.param


@pytest.fixture
def program(toolchains, name) -> Program:
    return toolchains.programs[name]


@pytest.fixture
def upload(workspace):
    file = workspace / "upload"
    file.write_bytes(UPLOAD)
    return file


@pytest.fixture
def running(gateway, pki, authority):
    return gateway({
        "workers": 1, "tls": {"roots": [str(pki.root.pem_file)]},
        "interception": authority.section | {"default": True}})


@pytest.fixture
def there(origin, pki) -> HTTPOrigin:
    def answered(seen):
        if seen.method == "PUT":
            return reply(seen.body[::-1], "200 OK", "Cache-Control: no-store")
        body = LARGE if seen.target == "/large" else b"answer to " + seen.target.encode()
        return reply(body, "200 OK", "Cache-Control: no-store")

    return origin(answered, tls=pki.intermediate.issue(HOST).server_context(), continues=True)


def test_a_client_asks_on_one_connection(
        running, there, authority, workspace, upload, name, program):
    settings = Settings(workspace, running.proxy_url, authority.file)
    steps = ["GET:/one", "GET:/two", "GET:/large", "PUT:/upload", "GET:/after"]
    done = program(settings, f"https://{HOST}:{there.port}", upload, steps)
    assert done.code == 0, done.output
    assert done.answers == [
        answer(b"answer to /one"), answer(b"answer to /two"), answer(LARGE),
        answer(UPLOAD[::-1]), answer(b"answer to /after")]
    assert [one.target for one in there.requests] == [step.partition(":")[2] for step in steps]
    assert all("pinfold" in one.get("via") for one in there.requests)
    # wget asks with one method only.
    tunnels = 3 if name == "wget" else 1
    assert running.metric("pinfold_tunnels_intercepted_total") == tunnels
    assert len(there.connections) == 1
    lines = running.wait_access(len(steps) + tunnels)
    assert {line["client_tls"] for line in lines if line["method"] != "CONNECT"} == {"TLSv1.3"}
    no_client_is_connected(running)


def failed(program: Program, *arguments) -> Done:
    done = program(*arguments, ["GET:/"])
    assert done.code != 0 and not done.answers, done
    return done


def test_a_client_gets_an_error_for_a_bad_certificate_of_the_server(
        running, origin, pki, authority, workspace, upload, name, program):
    there = origin(lambda _: reply(b"here"), tls=pki.intermediate.issue(OTHER).server_context())
    settings = Settings(workspace, running.proxy_url, authority.file)
    done = failed(program, settings, f"https://{HOST}:{there.port}", upload)
    assert re.search(ERRORS[name][0], done.output, re.S), done.output
    assert running.wait_access(1)[0]["reason"] == "tls-host-mismatch"
    assert there.application_bytes == b""


def test_a_client_that_does_not_know_the_authority_gives_up(
        running, there, workspace, upload, name, program):
    settings = Settings(workspace, running.proxy_url)
    done = failed(program, settings, f"https://{HOST}:{there.port}", upload)
    _, error, tells = ERRORS[name]
    assert re.search(error, done.output, re.S), done.output
    no_client_is_connected(running)
    assert there.requests == []
    assert running.metric("pinfold_tunnels_intercepted_total") == 1
    if tells:
        assert running.metric("pinfold_client_tls_failures_total", reason="untrusted") == 1
        assert running.metric("pinfold_interception_rejections_total", host="default") == 1
    else:
        closed = running.metric("pinfold_client_tls_failures_total", reason="closed")
        assert closed + running.metric("pinfold_client_tls_handshakes_total") == 1


# The last that is seen of a client that does not know the authority.
SIGNS = {"curl": r"alert unknown_ca", "go": r"alert bad_certificate",
         "requests": r"alert unknown_ca", "httpx": r"alert unknown_ca"}


def test_a_client_that_gives_up_is_logged_and_counted(
        running, there, workspace, upload, name, program):
    settings = Settings(workspace, running.proxy_url)
    failed(program, settings, f"https://{HOST}:{there.port}", upload)
    sign = SIGNS.get(name, r"(alert \w+|closed after the (certificate|handshake.*))")
    line = running.wait_log(rf"(does not accept|gave up).*sign=\"?{sign}")
    assert f"authority={HOST}:{there.port}" in line and "client=127.0.0.1" in line
    assert "entry=default" in line and re.search(r"alpn=\S", line)
    assert running.metric("pinfold_interception_given_up_total", host="default") == 1
