"""Keys of every kind in certificates, whatever the cryptographic library is made up of."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import datetime, timedelta, timezone

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa, x25519
from cryptography.x509.oid import ExtendedKeyUsageOID
from support.chains import PEM
from support.gateway import BINARY


def key_kinds() -> dict[str, object]:
    """A public key of each kind that certificates have, and some that servers' must not have."""
    private = {
        "rsa-2048": rsa.generate_private_key(65537, 2048),
        "p-224": ec.generate_private_key(ec.SECP224R1()),
        "p-256": ec.generate_private_key(ec.SECP256R1()),
        "p-384": ec.generate_private_key(ec.SECP384R1()),
        "p-521": ec.generate_private_key(ec.SECP521R1()),
        "secp256k1": ec.generate_private_key(ec.SECP256K1()),
        "ed25519": ed25519.Ed25519PrivateKey.generate(),
        "ed448": ed448.Ed448PrivateKey.generate(),
        "dsa": dsa.generate_private_key(2048),
        "x25519": x25519.X25519PrivateKey.generate(),
    }
    return {kind: key.public_key() for kind, key in private.items()}


PROVIDERS = """\
openssl_conf = start
[start]
providers = list
[list]
default = active
legacy = active
[active]
activate = 1
"""


def test_keys_of_every_kind_are_read_alike_whatever_providers_there_are(pki, workspace):
    """Certificates are read by a context of the library with fewer decoders, or, where there are
    other providers than the default one, as the library does by itself."""
    issuer = pki.intermediate.certificate
    now = datetime.now(timezone.utc)
    lines = []
    for kind, public in key_kinds().items():
        certificate = (
            x509.CertificateBuilder().subject_name(x509.Name([])).issuer_name(issuer.subject)
            .public_key(public).serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=9))
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("trust.test")]), True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key()), False)
            .sign(pki.intermediate.key, hashes.SHA256()))
        lines.append(json.dumps({
            "id": kind, "host": "trust.test", "roots": pki.root.pem.decode(),
            "chain": certificate.public_bytes(PEM).decode() + pki.intermediate.pem.decode()}))
    cut = workspace / "cut.der"
    cut.write_bytes(pki.intermediate.der[:-20])
    lines.append(json.dumps({"id": "cut", "chain": str(cut), "host": "trust.test"}))
    other = workspace / "openssl.cnf"
    other.write_text(PROVIDERS)

    def answers(**environment: str) -> dict[str, str]:
        done = subprocess.run([BINARY, "trust", "--batch"], input="\n".join(lines), text=True,
                              capture_output=True, timeout=60, env={**os.environ, **environment})
        assert (done.returncode, done.stderr) == (0, "")
        found = map(json.loads, done.stdout.splitlines())
        return {one["id"]: (one["reason"], one["detail"]) for one in found}

    plain = answers()
    assert plain == answers(OPENSSL_CONF=str(other))
    accepted = {kind for kind, (reason, _) in plain.items() if reason == "trusted"}
    assert accepted >= {"rsa-2048", "p-256", "p-384", "p-521", "ed25519"}
    assert accepted.isdisjoint({"dsa", "x25519", "p-224", "secp256k1", "cut"})
