"""`pinfold ca`: making, showing, exporting and rotating the authority of intercepted tunnels."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from support.gateway import run_pinfold
from support.pki import without_readable_end


@pytest.fixture
def folder(tmp_path) -> Path:
    """The working folder, where the authority goes too, unless files are named."""
    folder = tmp_path / "pinfold"
    folder.mkdir()
    return folder


def ca(folder: Path, *arguments: str, code: int = 0) -> str:
    """What a command prints, on either stream."""
    done = run_pinfold("ca", *arguments, cwd=folder, XDG_STATE_HOME=str(folder.parent))
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def certificates(path: Path) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(path.read_bytes())


def key(path: Path):
    return serialization.load_pem_private_key(path.read_bytes(), None)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def fingerprint(certificate: x509.Certificate) -> str:
    return certificate.fingerprint(hashes.SHA256()).hex(":").upper()


def days(certificate: x509.Certificate) -> int:
    return (certificate.not_valid_after_utc - certificate.not_valid_before_utc).days


def verifies(folder: Path, trusted: str, certificate: str, untrusted: str) -> bool:
    """Whether openssl accepts, strictly, the second certificate of a file under an anchor."""
    (folder / "second.pem").write_bytes(
        certificates(folder / certificate)[1].public_bytes(serialization.Encoding.PEM))
    done = subprocess.run(
        ["openssl", "verify", "-x509_strict", "-CAfile", trusted, "-untrusted", untrusted,
         "second.pem"], cwd=folder, capture_output=True, timeout=20)
    return done.returncode == 0


def test_init_makes_an_authority_and_a_key_for_its_owner_alone(folder):
    output = ca(folder, "init")
    (made,) = certificates(folder / "ca.pem")
    assert mode(folder / "ca.key") == 0o600
    assert mode(folder / "ca.pem") & 0o022 == 0
    assert isinstance(key(folder / "ca.key").curve, ec.SECP256R1)
    assert key(folder / "ca.key").public_key() == made.public_key()
    assert made.issuer == made.subject
    assert days(made) == 3651
    constraints = made.extensions.get_extension_for_class(x509.BasicConstraints)
    assert constraints.critical
    assert constraints.value.ca
    assert fingerprint(made) in output
    assert f"interception: {{ certificate: {folder}/ca.pem, key: {folder}/ca.key }}" in output


def test_the_key_is_secret_under_any_mask(folder):
    done = run_pinfold_with_mask(folder, 0)
    assert done.returncode == 0
    assert mode(folder / "ca.key") == 0o600


def run_pinfold_with_mask(folder: Path, mask: int) -> subprocess.CompletedProcess[str]:
    before = os.umask(mask)
    try:
        return run_pinfold("ca", "init", XDG_STATE_HOME=str(folder.parent))
    finally:
        os.umask(before)


def test_init_takes_type_bits_days_name_and_limits(folder):
    ca(folder, "init", "--type", "rsa", "--bits", "3072", "--days", "90", "--name", "Our CA",
       "--permit", "Example.com", "--permit", "10.0.0.0/8",
       "--certificate", "our.pem", "--key", "our.key")
    (made,) = certificates(folder / "our.pem")
    assert isinstance(key(folder / "our.key"), rsa.RSAPrivateKey)
    assert made.public_key().key_size == 3072
    assert days(made) == 91
    assert made.subject.rfc4514_string() == "CN=Our CA,O=Pinfold"
    limits = made.extensions.get_extension_for_class(x509.NameConstraints)
    assert limits.critical
    assert [str(one.value) for one in limits.value.permitted_subtrees] == [
        "example.com", "10.0.0.0/8"]
    # A permitted network forbids all others by itself.
    assert limits.value.excluded_subtrees is None


def test_init_limited_to_names_excludes_every_address(folder):
    ca(folder, "init", "--permit", "example.com")
    (made,) = certificates(folder / "ca.pem")
    limits = made.extensions.get_extension_for_class(x509.NameConstraints)
    assert [str(one.value) for one in limits.value.excluded_subtrees] == ["0.0.0.0/0", "::/0"]


@pytest.mark.parametrize("arguments", [
    ["--type", "dsa"], ["--bits", "1024"], ["--days", "0"], ["--days", "20000"], ["--name", ""],
    ["--name", "n" * 65], ["--permit", "*.example.com"], ["--permit", "10.0.0.1/8"],
    ["--permit", "a.test,excluded;DNS:b.test"],
])
def test_init_refuses_what_makes_no_authority(folder, arguments):
    done = run_pinfold("ca", "init", *arguments, XDG_STATE_HOME=str(folder.parent))
    assert done.returncode != 0
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("there", ["ca.pem", "ca.key"])
def test_init_overwrites_nothing_and_leaves_nothing_half_made(folder, there):
    (folder / there).write_text("precious")
    assert f"{there}: already exists" in ca(folder, "init", code=1)
    assert (folder / there).read_text() == "precious"
    assert [one.name for one in folder.iterdir()] == [there]


def test_init_follows_no_link(folder):
    (folder / "ca.key").symlink_to(folder / "elsewhere")
    assert "ca.key: already exists" in ca(folder, "init", code=1)
    assert not (folder / "elsewhere").exists()
    assert not (folder / "ca.pem").exists()


def test_show_prints_subject_end_and_fingerprint(folder):
    ca(folder, "init", "--name", "Our CA", "--days", "9")
    (made,) = certificates(folder / "ca.pem")
    output = ca(folder, "show")
    assert "subject: CN=Our CA,O=Pinfold\n" in output
    assert "key: ECDSA P-256\n" in output
    end = made.not_valid_after_utc.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert re.search(rf"^valid until: {end} \([89] days\)$", output, re.MULTILINE)
    assert f"SHA-256 fingerprint: {fingerprint(made)}\n" in output
    assert "PRIVATE" not in output


def test_show_refuses_a_key_that_others_may_read(folder):
    ca(folder, "init")
    (folder / "ca.key").chmod(0o640)
    assert "chmod 600" in ca(folder, "show", code=1)


def test_export_gives_the_certificate_in_both_forms_and_never_the_key(folder):
    ca(folder, "init")
    ca(folder, "rotate")
    first = certificates(folder / "ca.pem")[0]
    (folder / "ca.key").unlink()
    pem = ca(folder, "export")
    assert pem.count("BEGIN") == 1
    assert x509.load_pem_x509_certificate(pem.encode()) == first
    ca(folder, "export", "--format", "der", "--output", "ca.cer")
    assert x509.load_der_x509_certificate((folder / "ca.cer").read_bytes()) == first
    assert "already exists" in ca(folder, "export", "--output", "ca.cer", code=1)
    ca(folder, "export", "--certificate", "none.pem", code=1)


def test_rotate_makes_an_authority_that_clients_of_the_old_one_accept(folder):
    ca(folder, "init", "--type", "rsa", "--permit", "example.com")
    old, old_key = (folder / "ca.pem").read_bytes(), (folder / "ca.key").read_bytes()
    output = ca(folder, "rotate", "--days", "5000")
    first, link = certificates(folder / "ca.pem")
    assert (folder / "ca.pem.previous").read_bytes() == old
    assert (folder / "ca.key.previous").read_bytes() == old_key
    assert mode(folder / "ca.key") == mode(folder / "ca.key.previous") == 0o600
    assert not list(folder.glob("*.new"))
    # Of the old one's kind and with its limits, unless options say otherwise.
    assert isinstance(key(folder / "ca.key"), rsa.RSAPrivateKey)
    (before,) = certificates(folder / "ca.pem.previous")
    for one in (first, link):
        assert one.public_key() == key(folder / "ca.key").public_key()
        assert one.extensions.get_extension_for_class(x509.NameConstraints) == (
            before.extensions.get_extension_for_class(x509.NameConstraints))
    assert first.issuer == first.subject != link.issuer == before.subject
    assert days(first) == 5001
    # The link ends with the old authority.
    assert link.not_valid_after_utc == before.not_valid_after_utc
    assert before.not_valid_after_utc.strftime("%Y-%m-%dT%H:%M:%SZ") in output
    assert verifies(folder, "ca.pem.previous", "ca.pem", "ca.pem")
    assert "also accepted by clients that trust the previous CA" in ca(folder, "show")


def test_rotate_overwrites_no_former_authority(folder):
    ca(folder, "init")
    ca(folder, "rotate", "--type", "rsa")
    content = {one.name: one.read_bytes() for one in folder.iterdir()}
    assert "ca.pem.previous: already exists" in ca(folder, "rotate", code=1)
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == content


def test_rotate_refuses_a_name_that_is_taken(folder):
    ca(folder, "init", "--name", "Our CA")
    content = (folder / "ca.pem").read_bytes()
    assert "same name" in ca(folder, "rotate", "--name", "Our CA", code=1)
    assert (folder / "ca.pem").read_bytes() == content
    assert sorted(one.name for one in folder.iterdir()) == ["ca.key", "ca.pem"]


def test_check_takes_what_init_and_rotate_made(folder):
    (folder / "c.yaml").write_text("interception: { certificate: ca.pem, key: ca.key }\n")
    for command in ("init", "rotate"):
        ca(folder, command)
        done = run_pinfold("check", "--config", "c.yaml", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert f"certificate: \"{folder}/ca.pem\"" in done.stdout
        assert "PRIVATE" not in done.stdout


def test_an_authority_without_a_readable_end_is_refused(folder):
    (folder / "c.yaml").write_text("interception: { certificate: ca.pem, key: ca.key }\n")
    ca(folder, "init")
    (made,) = certificates(folder / "ca.pem")
    (folder / "ca.pem").write_text(without_readable_end(made))
    assert "its times cannot be read" in ca(folder, "show", code=1)
    done = run_pinfold("check", "--config", "c.yaml", cwd=folder)
    assert done.returncode == 1 and "its times cannot be read" in done.stderr, done.stderr


def test_init_makes_what_a_configuration_names_once(folder):
    (folder / "etc").mkdir()
    (folder / "etc/c.yaml").write_text("interception: { certificate: our.pem, key: our.key }\n")
    output = ca(folder, "init", "--if-missing", "--config", "etc/c.yaml")
    made = (folder / "etc/our.pem").read_bytes()
    assert mode(folder / "etc/our.key") == 0o600
    assert str(folder / "etc/our.pem") in output
    assert ca(folder, "init", "--if-missing", "--config", "etc/c.yaml") == ""
    assert (folder / "etc/our.pem").read_bytes() == made
    assert "already exists" in ca(folder, "init", "--config", "etc/c.yaml", code=1)
    (folder / "etc/our.key").unlink()
    assert "our.pem: already exists" in ca(
        folder, "init", "--if-missing", "--config", "etc/c.yaml", code=1)
    assert not (folder / "etc/our.key").exists()


def test_init_makes_nothing_for_a_configuration_without_interception(folder):
    (folder / "c.yaml").write_text("workers: 1\n")
    assert ca(folder, "init", "--if-missing", "--config", "c.yaml") == ""
    assert "interception.certificate and interception.key are missing" in ca(
        folder, "init", "--config", "c.yaml", code=1)
    assert [one.name for one in folder.iterdir()] == ["c.yaml"]
    ca(folder, "init", "--config", "none.yaml", code=1)


def test_init_makes_what_run_intercepts_with(folder):
    (folder / "c.yaml").write_text("workers: 1\n")
    state = folder / "state"
    for _ in range(2):
        done = run_pinfold("ca", "init", "--if-missing", "--config", "c.yaml", "--intercept",
                           "a.test", cwd=folder, XDG_STATE_HOME=str(state))
        assert done.returncode == 0, done.stderr
    assert mode(state / "pinfold") == 0o700
    done = run_pinfold("check", "--config", "c.yaml", "--intercept", "a.test", cwd=folder,
                       XDG_STATE_HOME=str(state))
    assert done.returncode == 0, done.stderr
    assert f"certificate: \"{state}/pinfold/ca.pem\"" in done.stdout
