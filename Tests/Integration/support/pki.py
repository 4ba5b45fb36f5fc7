"""Certificates made for a test: authorities, leaves of every kind of wrongness, and their pins."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import ssl
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PEM = serialization.Encoding.PEM
DER = serialization.Encoding.DER


@dataclass
class Certificate:
    """A certificate with its key. `chain` is what a server sends after it."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    chain: list[x509.Certificate]
    folder: Path
    name: str

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(PEM)

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(DER)

    @property
    def spki_sha256(self) -> str:
        """BASE64 of the SHA-256 of the public key's SubjectPublicKeyInfo."""
        spki = self.key.public_key().public_bytes(
            DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        return base64.b64encode(hashlib.sha256(spki).digest()).decode()

    @property
    def pin(self) -> str:
        return f"sha256/{self.spki_sha256}"

    @property
    def fingerprint(self) -> str:
        """Hexadecimal SHA-256 of the certificate."""
        return hashlib.sha256(self.der).hexdigest()

    def _write(self, suffix: str, data: bytes, mode: int = 0o644) -> Path:
        path = self.folder / f"{self.name}{suffix}"
        if not path.exists():
            path.touch(mode)
            path.write_bytes(data)
        return path

    @property
    def pem_file(self) -> Path:
        return self._write(".pem", self.pem)

    @property
    def der_file(self) -> Path:
        return self._write(".cer", self.der)

    @property
    def key_file(self) -> Path:
        data = self.key.private_bytes(
            PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        return self._write(".key", data, 0o600)

    def chain_file(self) -> Path:
        data = self.pem + b"".join(one.public_bytes(PEM) for one in self.chain)
        return self._write(".chain.pem", data)

    def server_context(
        self,
        minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2,
        maximum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
        alpn: tuple[str, ...] = ("http/1.1",),
    ) -> ssl.SSLContext:
        """A context for an origin; the server name of each handshake goes to `context.names`."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        if minimum < ssl.TLSVersion.TLSv1_2:
            context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.minimum_version = minimum
        context.maximum_version = maximum
        context.load_cert_chain(self.chain_file(), self.key_file)
        if alpn:
            context.set_alpn_protocols(list(alpn))
        names: list[str | None] = []
        context.names = names  # type: ignore[attr-defined]
        context.sni_callback = lambda _socket, name, _context: names.append(name)
        return context


class Authority(Certificate):
    """A certificate that signs others."""

    def issue(
        self,
        *names: str,
        days: tuple[int, int] = (-1, 60),
        append: list[x509.Certificate] | None = None,
        key: ec.EllipticCurvePrivateKey | None = None,
        authority: bool = False,
        usage: x509.ObjectIdentifier | None = ExtendedKeyUsageOID.SERVER_AUTH,
        subject: x509.Name | None = None,
        extensions: tuple[x509.ExtensionType, ...] = (),
    ) -> Certificate:
        """A leaf for `names` (host names or addresses), valid from `days[0]` to `days[1]` counted
        from today; its subject is the first name if there is none. `append` are certificates
        that the server sends besides its own chain. `extensions` may have other names in place of
        `names`."""
        chain = [] if self._is_root else [self.certificate, *self.chain]
        chain += append or []
        return make(
            self.folder, names, issuer=self, days=days, chain=chain, key=key,
            authority=authority, usage=usage, subject=subject, extensions=extensions)

    def intermediate(self, name: str) -> Authority:
        made = self.issue(name, authority=True, usage=None)
        return Authority(made.certificate, made.key, made.chain, made.folder, made.name)

    def crossed(self, issuer: Authority) -> Certificate:
        """A certificate for the same name and key by another authority."""
        name = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        return issuer.issue(name, authority=True, usage=None, key=self.key)

    def cross_signed(self, issuer: Authority) -> x509.Certificate:
        return self.crossed(issuer).certificate

    @property
    def _is_root(self) -> bool:
        return self.certificate.issuer == self.certificate.subject


def root(folder: Path, name: str) -> Authority:
    made = make(folder, (name,), issuer=None, authority=True, usage=None, days=(-2, 3650))
    return Authority(made.certificate, made.key, [], folder, made.name)


def self_signed(folder: Path, *names: str) -> Certificate:
    return make(folder, names, issuer=None)


def without_readable_end(certificate: x509.Certificate) -> str:
    """The certificate in PEM with a month 99 in its notAfter. Its signature is wrong then."""
    der = certificate.public_bytes(DER)
    end = certificate.not_valid_after_utc.strftime("%y%m%d%H%M%SZ").encode()
    assert der.count(end) == 1
    return ssl.DER_cert_to_PEM_cert(der.replace(end, end[:2] + b"99" + end[4:]))


_count = 0


def make(
    folder: Path,
    names: tuple[str, ...],
    *,
    issuer: Certificate | None,
    days: tuple[int, int] = (-1, 60),
    chain: list[x509.Certificate] | None = None,
    key: ec.EllipticCurvePrivateKey | None = None,
    authority: bool = False,
    usage: x509.ObjectIdentifier | None = ExtendedKeyUsageOID.SERVER_AUTH,
    subject: x509.Name | None = None,
    extensions: tuple[x509.ExtensionType, ...] = (),
) -> Certificate:
    global _count
    _count += 1
    now = datetime.now(timezone.utc)
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = subject or x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    public = key.public_key()
    signer = issuer.key if issuer else key
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + timedelta(days=days[0]))
        .not_valid_after(now + timedelta(days=days[1]))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if authority:
        builder = builder.add_extension(
            x509.KeyUsage(
                digital_signature=False, content_commitment=False, key_encipherment=False,
                data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=True,
                encipher_only=False, decipher_only=False),
            critical=True)
    else:
        entries: list[x509.GeneralName] = []
        for name in names:
            try:
                entries.append(x509.IPAddress(ipaddress.ip_address(name)))
            except ValueError:
                entries.append(x509.DNSName(name))
        if not any(isinstance(one, x509.SubjectAlternativeName) for one in extensions):
            builder = builder.add_extension(x509.SubjectAlternativeName(entries), critical=False)
    if usage:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    for extension in extensions:
        builder = builder.add_extension(extension, critical=False)
    certificate = builder.sign(signer, hashes.SHA256())
    label = "".join(c if c.isalnum() else "-" for c in names[0][:64])
    return Certificate(certificate, key, chain or [], folder, f"{_count}-{label}")
