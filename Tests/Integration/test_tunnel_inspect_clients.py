"""Real clients in inspected tunnels, unaware of it, and pairs of client and host that are inspected
because they keep rejecting the certificates of the interception."""

from __future__ import annotations

import os
import ssl
import subprocess
from pathlib import Path

import pytest
from support.chromium import Chromium
from support.inspection import inspected, inspections
from support.interception import HOST, curl
from support.origin import reply
from support.programs import Done, Program, Settings, Toolchains, answer
from support.wait import until

PROGRAMS = ["curl", "go", "httpx", "java", "node-https", "requests", "wget"]
VERSIONS = {"TLSv1.2": (ssl.TLSVersion.TLSv1_2, "verified"),
            "TLSv1.3": (ssl.TLSVersion.TLSv1_3, "probed")}


@pytest.fixture(scope="session")
def toolchains(tmp_path_factory) -> Toolchains:
    base = tmp_path_factory.getbasetemp()
    return Toolchains(base.parent if "PYTEST_XDIST_WORKER" in os.environ else base)


def configured(pki, pin=None, **keys) -> dict:
    return inspected(HOST, [pin or pki.intermediate.pin], [pki.root.pem_file],
                     tls13Tunnel="probe", **keys)


def server_of(pki, origin, version: str):
    tls = pki.intermediate.issue(HOST).server_context(maximum=VERSIONS[version][0])
    return origin(lambda seen: reply(
        b"<title>there</title>" + seen.target.encode(), "200 OK", "Cache-Control: no-store",
        "Content-Type: text/html"), tls=tls)


def retrying(pki, origin):
    tls = pki.intermediate.issue(HOST).server_context()
    tls.set_ecdh_curve("secp384r1")
    return origin(lambda seen: reply(
        b"<title>there</title>" + seen.target.encode(), "200 OK", "Cache-Control: no-store",
        "Content-Type: text/html"), tls=tls)


def run(program: Program, folder: Path, gate, pki, base: str, *steps: str) -> Done:
    """What a program does that trusts the server's own authority."""
    folder.mkdir()
    (folder / "upload").write_bytes(b"upload")
    return program(Settings(folder, gate.proxy_url, pki.root.pem_file), base, folder / "upload",
                   list(steps))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_unaware(gateway, pki, origin, workspace, toolchains, name, version):
    there = server_of(pki, origin, version)
    gate = gateway(configured(pki))
    base = f"https://{HOST}:{there.port}"
    for count in range(2):
        done = run(toolchains.programs[name], workspace / str(count), gate, pki, base,
                   "GET:/one", "GET:/two")
        assert done.code == 0, done.output
        assert done.answers == [answer(b"<title>there</title>/one"),
                                answer(b"<title>there</title>/two")]
    assert not any("pinfold" in one.get("via") for one in there.requests)
    results = {(line["inspected"], line["upstream_tls"]) for line in gate.wait_access(2)}
    assert results <= {(VERSIONS[version][1], version), ("resumed", version)}, results
    assert (VERSIONS[version][1], version) in results


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_unaware_of_its_second_hello(
        gateway, pki, origin, workspace, toolchains, name):
    """The server takes a group that no client sends a key of before it is asked."""
    there = retrying(pki, origin)
    gate = gateway(configured(pki))
    done = run(toolchains.programs[name], workspace / "run", gate, pki,
               f"https://{HOST}:{there.port}", "GET:/one", "GET:/two")
    assert done.code == 0, done.output
    assert done.answers == [answer(b"<title>there</title>/one"),
                            answer(b"<title>there</title>/two")]
    for line in gate.wait_access(1):
        assert (line["inspected"], line["upstream_tls"]) == ("probed", "TLSv1.3"), line


def test_a_browser_is_unaware_of_its_second_hello(gateway, pki, origin, workspace):
    there = retrying(pki, origin)
    gate = gateway(configured(pki))
    browser = Chromium(workspace / "browser", "http://%s:%d" % gate.proxy, [pki.root.pem_file])
    assert "<title>there</title>" in browser.shows(f"https://{HOST}:{there.port}/page")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_would_trust_the_server_does_not_reach_it(
        gateway, pki, origin, workspace, toolchains, name):
    there = server_of(pki, origin, "TLSv1.2")
    gate = gateway(configured(pki, pki.other_root.pin))
    done = run(toolchains.programs[name], workspace / "run", gate, pki,
               f"https://{HOST}:{there.port}", "GET:/one")
    assert done.code != 0, done.output
    assert there.application_bytes == b"" and there.requests == []
    assert all(line["reason"] == "tls-no-pin-matches" for line in gate.wait_access(1))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_browser_is_unaware(gateway, pki, origin, workspace, version):
    there = server_of(pki, origin, version)
    gate = gateway(configured(pki))
    browser = Chromium(workspace / "browser", "http://%s:%d" % gate.proxy, [pki.root.pem_file])
    for _ in range(2):
        assert "<title>there</title>" in browser.shows(f"https://{HOST}:{there.port}/page")
    results = {line["inspected"] for line in gate.access_lines()
               if line["target"] == f"{HOST}:{there.port}"}
    assert results <= {VERSIONS[version][1], "resumed"} and VERSIONS[version][1] in results


def test_a_browser_does_not_reach_a_server_with_another_pin(gateway, pki, origin, workspace):
    there = server_of(pki, origin, "TLSv1.2")
    gate = gateway(configured(pki, pki.other_root.pin))
    browser = Chromium(workspace / "browser", "http://%s:%d" % gate.proxy, [pki.root.pem_file])
    assert "<title>there</title>" not in browser.shows(f"https://{HOST}:{there.port}/page")
    assert there.application_bytes == b""


# MARK: intercept: auto


def rejecting(gate, port: int, pki, *arguments: str) -> None:
    """A client that knows the server's authority, and not that of the interception."""
    done = subprocess.run(
        ["curl", "-q", "-sS", "-x", gate.proxy_url, "--cacert", str(pki.root.pem_file),
         f"https://{HOST}:{port}/", *arguments], capture_output=True, text=True, timeout=30)
    assert done.returncode == 60, done.stderr


@pytest.mark.parametrize("mode", ["auto", True])
@pytest.mark.parametrize("version", VERSIONS)
def test_who_keeps_rejecting_certificates_is_inspected(
        gateway, pki, origin, authority, mode, version):
    there = server_of(pki, origin, version)
    gate = gateway(configured(pki, intercept=mode) | {"interception": authority.section})
    # Who accepts them is intercepted.
    assert "there" in curl(gate, authority, f"https://{HOST}:{there.port}/")
    assert "pinfold" in there.requests[0].get("via")
    for count in range(1, 4):
        rejecting(gate, there.port, pki)
        until(lambda: gate.metric(
            "pinfold_interception_rejections_total", host=HOST) == count, "it is counted")
    gate.wait_log("tunnel: inspect for the host")
    gate.wait_log("its tunnels to this host are inspected")
    done = subprocess.run(
        ["curl", "-q", "-sS", "-x", gate.proxy_url, "--cacert", str(pki.root.pem_file),
         f"https://{HOST}:{there.port}/"], capture_output=True, text=True, timeout=30)
    assert "there" in done.stdout, done.stderr
    assert not there.requests[-1].get("via")
    line = until(lambda: [one for one in gate.access_lines() if "inspected" in one],
                 "the tunnel's line")[0]
    assert (line["inspected"], line["passed"]) == (VERSIONS[version][1], "rejected")
    assert gate.metric("pinfold_interception_passed_total", cause="rejected") == 1
    assert inspections(gate, VERSIONS[version][1], version[4:]) == 1


def test_without_an_authority_auto_inspects(gateway, pki, origin):
    there = server_of(pki, origin, "TLSv1.2")
    gate = gateway(configured(pki, intercept="auto"))
    done = subprocess.run(
        ["curl", "-q", "-sS", "-x", gate.proxy_url, "--cacert", str(pki.root.pem_file),
         f"https://{HOST}:{there.port}/"], capture_output=True, text=True, timeout=30)
    assert "there" in done.stdout, done.stderr
    assert gate.wait_access(1)[0]["inspected"] == "verified"


def test_inspection_alone_is_meant_where_there_is_an_authority(gateway, pki, origin, authority):
    there = server_of(pki, origin, "TLSv1.2")
    gate = gateway(configured(pki) | {"interception": authority.section})
    done = subprocess.run(
        ["curl", "-q", "-sS", "-x", gate.proxy_url, "--cacert", str(pki.root.pem_file),
         f"https://{HOST}:{there.port}/"], capture_output=True, text=True, timeout=30)
    assert "there" in done.stdout, done.stderr
    assert gate.wait_access(1)[0]["inspected"] == "verified"


def test_who_rejects_is_refused_where_only_interception_is_left(
        gateway, pki, origin, authority):
    """TLS 1.3 is intercepted by the entry's word, and the client does not accept that."""
    there = server_of(pki, origin, "TLSv1.3")
    config = configured(pki) | {"interception": authority.section | {"rejections": {"alerts": 1}}}
    config["hosts"][0]["tls13Tunnel"] = "intercept"
    gate = gateway(config)
    rejecting(gate, there.port, pki)
    gate.wait_log("its tunnels to this host are inspected")
    done = subprocess.run(
        ["curl", "-q", "-sS", "-x", gate.proxy_url, "--cacert", str(pki.root.pem_file),
         f"https://{HOST}:{there.port}/"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 35, done.stderr
    until(lambda: any(line.get("reason") == "tunnel-tls13-refused"
                      for line in gate.access_lines()), "the refusal is logged")
