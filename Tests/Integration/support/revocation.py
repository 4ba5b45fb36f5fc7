"""Lists of revoked certificates."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from cryptography import x509
from cryptography.hazmat.primitives import hashes


def crl(issuer, *revoked, days=(-1, 7), signer=None, extensions=()):
    """A list of an authority, with an authority key identifier as RFC 5280 asks for."""
    now = datetime.now(timezone.utc)
    signer = signer or issuer
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(issuer.certificate.subject)
        .last_update(now + timedelta(days=days[0])).next_update(now + timedelta(days=days[1]))
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(
            issuer.key.public_key()), critical=False)
        .add_extension(x509.CRLNumber(1), critical=False))
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    for one in revoked:
        builder = builder.add_revoked_certificate(
            x509.RevokedCertificateBuilder().serial_number(one.certificate.serial_number)
            .revocation_date(now - timedelta(days=1)).build())
    return builder.sign(signer.key, hashes.SHA256())
