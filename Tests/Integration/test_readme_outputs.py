"""The commands that the pages print with their output print that, up to keys, times and addresses."""

from __future__ import annotations

import re
import subprocess
from datetime import datetime, timedelta, timezone

import pytest
import yaml
from support import pki as certificates
from support.checkout import PAGES
from support.examples import agrees, configurations, sessions
from support.gateway import BINARY
from support.origin import reply

HOST = "api.example.com"
PIN = "sha256/" + "A" * 43 + "="


def printed(start: str) -> tuple[str, list[str]]:
    """A command and its output."""
    return next(one for one in sessions() if one[0].startswith(start))


def run(command: str, folder, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", command.replace("pinfold ", f"{BINARY} ", 1)
         if "|" not in command else command.replace("| pinfold", f"| {BINARY}")],
        cwd=folder, capture_output=True, text=True, timeout=30,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **environment})


@pytest.fixture(scope="module")
def issuing(tmp_path_factory):
    """The pages' authority, which is trusted as the system's are."""
    root = certificates.root(tmp_path_factory.mktemp("readme"), "Example Root")
    issuing = root.intermediate("Example Issuing CA")
    issuing.root = root
    return issuing


def pinned(folder) -> None:
    """The configuration at the beginning of the page on pins."""
    text = next(one.text for one in configurations() if one.page == PAGES["Pins"])
    assert HOST in yaml.safe_load(text)["hosts"][0]["match"]
    (folder / "pinfold.yaml").write_text(text)


def test_pin(origin, issuing, tmp_path):
    command, shown = printed("pinfold pin api")
    assert command == f"pinfold pin {HOST}"
    there = origin(lambda _: reply(b"x"), tls=issuing.issue("localhost").server_context())
    done = run(f"pinfold pin localhost:{there.port}", tmp_path,
               SSL_CERT_FILE=str(issuing.root.pem_file), SSL_CERT_DIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    output = done.stdout.replace(f"127.0.0.1:{there.port}", "192.0.2.10:443")
    output = output.replace(f"localhost:{there.port}", f"{HOST}:443").replace("localhost", HOST)
    agrees(output, shown)
    # Each certificate's pin is the one to paste.
    pins = re.findall(r"sha256/[A-Za-z0-9+/]{43}=", output.partition("pinsets:")[2])
    assert pins == re.findall(r"pin: +(sha256/\S+)", output)[:len(pins)]


def test_pin_import(tmp_path):
    command, shown = printed("pinfold pin import")
    done = run(command, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == shown


def test_explain(tmp_path):
    pinned(tmp_path)
    command, shown = printed("pinfold explain")
    done = run(command, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == shown


def test_trust(issuing, tmp_path):
    command, shown = printed("pinfold trust")
    day = datetime.now(timezone.utc) + timedelta(days=10)
    leaf = issuing.issue(HOST, days=(11, 20))
    (tmp_path / "new.pem").write_bytes(leaf.chain_file().read_bytes())
    (tmp_path / "gateway.yaml").write_text(
        yaml.safe_dump({"tls": {"roots": [str(issuing.root.pem_file)]}}))
    command, count = re.subn(r"--at \S+", f"--at {day:%Y-%m-%dT%H:%M:%SZ}", command)
    assert count == 1
    done = run(command, tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    agrees(done.stdout, shown)


def test_trust_line_by_line(issuing, tmp_path):
    command, shown = printed("echo ")
    leaf = issuing.issue(HOST)
    (tmp_path / "new.pem").write_bytes(leaf.chain_file().read_bytes())
    done = run(command.replace("sha256/AAAA…=", PIN), tmp_path,
               SSL_CERT_FILE=str(issuing.root.pem_file), SSL_CERT_DIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    agrees(done.stdout, shown)
