"""Lists of revoked certificates, and the configurations that hold servers to them."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from . import pki as certificates
from .gateway import run_pinfold
from .origin import reply

HOST = "listed.test"
PEM, DER = serialization.Encoding.PEM, serialization.Encoding.DER


def crl(issuer, *revoked, days=(-1, 7), signer=None, extensions=(), entry=None, number=1,
        keyed=True):
    """A list of an authority, `keyed` with an authority key identifier as RFC 5280 asks for. `entry`
    is an extension of each revoked certificate."""
    now = datetime.now(timezone.utc)
    signer = signer or issuer
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(issuer.certificate.subject)
        .last_update(now + timedelta(days=days[0])).next_update(now + timedelta(days=days[1])))
    if keyed:
        builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(
            issuer.key.public_key()), critical=False)
    if number is not None:
        builder = builder.add_extension(x509.CRLNumber(number), critical=False)
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    for one in revoked:
        made = (x509.RevokedCertificateBuilder().serial_number(one.certificate.serial_number)
                .revocation_date(now - timedelta(days=1)))
        if entry is not None:
            made = made.add_extension(entry, critical=False)
        builder = builder.add_revoked_certificate(made.build())
    return builder.sign(signer.key, hashes.SHA256())


class Lists:
    """Files of lists, by name."""

    def __init__(self, folder):
        self.folder = folder

    def hold(self, name, *lists, encoding=PEM):
        file = self.folder / f"{name}.crl"
        file.write_bytes(b"".join(one.public_bytes(encoding) for one in lists))
        return str(file)


def configuration(pki, crls, **tls):
    return {"workers": 1, "hosts": [
        {"match": [HOST], "upgrade": "https",
         "tls": {"roots": [str(pki.root.pem_file)], "crls": crls, **tls}}]}


def token(answer):
    return answer.proxy_status["details"].split(":")[0]


def trust_result(folder, config, leaf, *arguments):
    """The reason by which `pinfold trust` decides under a configuration."""
    file = folder / "trust.yaml"
    file.write_text(yaml.safe_dump(config))
    done = run_pinfold("trust", "--chain", str(leaf.chain_file()), "--host", HOST, "--json",
                       "--config", str(file), *arguments)
    return json.loads(done.stdout)


def served(origin, leaf, **fields):
    return origin(lambda _: reply(b"here", "200 OK", "Cache-Control: no-store"),
                  tls=leaf.server_context(**fields))


def twin(pki, of):
    """Another authority of the same name."""
    name = of.certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value
    return certificates.root(pki.folder, name)


def check(folder, config):
    file = folder / "checked.yaml"
    file.write_text(yaml.safe_dump(config))
    return run_pinfold("check", "--config", str(file))
