"""Chains made octet by octet, so that each can be wrong in one place, and questions about them."""

from __future__ import annotations

import base64
import functools
import hashlib
import ipaddress
import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, padding, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID as Purpose
from cryptography.x509.oid import NameOID
from support.gateway import BINARY

DER = serialization.Encoding.DER
PEM = serialization.Encoding.PEM
SPKI = serialization.PublicFormat.SubjectPublicKeyInfo

BASIC, USAGE, SAN, PURPOSES = "2.5.29.19", "2.5.29.15", "2.5.29.17", "2.5.29.37"
SUBJECT_KEY, AUTHORITY_KEY = "2.5.29.14", "2.5.29.35"
NAMES, POLICY, ACCESS = "2.5.29.30", "2.5.29.36", "1.3.6.1.5.5.7.1.1"

SHA256_RSA = bytes.fromhex("300d06092a864886f70d01010b0500")
SHA1_RSA = bytes.fromhex("300d06092a864886f70d0101050500")
MD5_RSA = bytes.fromhex("300d06092a864886f70d0101040500")
SHA256_ECDSA = bytes.fromhex("300a06082a8648ce3d040302")
SHA224_ECDSA = bytes.fromhex("300a06082a8648ce3d040301")
SHA1_ECDSA = bytes.fromhex("300906072a8648ce3d0401")
SHA256_DSA = bytes.fromhex("300b0609608648016503040302")
ED25519 = bytes.fromhex("300506032b6570")


def tlv(tag: int, *contents: bytes) -> bytes:
    body = b"".join(contents)
    if len(body) < 0x80:
        return bytes([tag, len(body)]) + body
    size = (len(body).bit_length() + 7) // 8
    return bytes([tag, 0x80 | size]) + len(body).to_bytes(size, "big") + body


def sequence(*contents: bytes) -> bytes:
    return tlv(0x30, *contents)


def oid(text: str) -> bytes:
    parts = [int(part) for part in text.split(".")]
    body = bytes([parts[0] * 40 + parts[1]])
    for part in parts[2:]:
        digits = [part & 0x7F]
        while part := part >> 7:
            digits.append(0x80 | part & 0x7F)
        body += bytes(reversed(digits))
    return tlv(0x06, body)


def dns(*names: str | bytes) -> bytes:
    """A subjectAltName of DNS names, well-formed or not, and of addresses."""
    entries = []
    for name in names:
        try:
            entries.append(tlv(0x87, ipaddress.ip_address(name).packed))
        except ValueError:
            entries.append(tlv(0x82, name.encode() if isinstance(name, str) else name))
    return sequence(*entries)


def subtrees(permitted: list[bytes] | None = None, excluded: list[bytes] | None = None) -> bytes:
    """nameConstraints with GeneralNames as they are given."""
    lists = [tlv(tag, *(sequence(one) for one in bases))
             for tag, bases in ((0xA0, permitted), (0xA1, excluded)) if bases is not None]
    return sequence(*lists)


def name(common: str | None) -> bytes:
    attributes = [] if common is None else [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    return x509.Name(attributes).public_bytes()


@functools.lru_cache(maxsize=None)
def key(kind: str, label: str = "") -> Any:
    """A private key, the same for the same words."""
    match kind:
        case "p256": return ec.generate_private_key(ec.SECP256R1())
        case "p384": return ec.generate_private_key(ec.SECP384R1())
        case "p521": return ec.generate_private_key(ec.SECP521R1())
        case "p224": return ec.generate_private_key(ec.SECP224R1())
        case "k256": return ec.generate_private_key(ec.SECP256K1())
        case "ed25519": return ed25519.Ed25519PrivateKey.generate()
        case "dsa": return dsa.generate_private_key(2048)
    return rsa.generate_private_key(65537, int(kind.removeprefix("rsa")))


def signature(signer: Any, algorithm: bytes, data: bytes) -> bytes:
    digest: Any = hashes.SHA256()
    if algorithm in (SHA1_RSA, SHA1_ECDSA):
        digest = hashes.SHA1()
    elif algorithm == MD5_RSA:
        digest = hashes.MD5()
    elif algorithm == SHA224_ECDSA:
        digest = hashes.SHA224()
    if isinstance(signer, rsa.RSAPrivateKey):
        return signer.sign(data, padding.PKCS1v15(), digest)
    if isinstance(signer, ed25519.Ed25519PrivateKey):
        return signer.sign(data)
    if isinstance(signer, dsa.DSAPrivateKey):
        return signer.sign(data, digest)
    return signer.sign(data, ec.ECDSA(digest))


def natural_algorithm(signer: Any) -> bytes:
    if isinstance(signer, rsa.RSAPrivateKey):
        return SHA256_RSA
    if isinstance(signer, ed25519.Ed25519PrivateKey):
        return ED25519
    return SHA256_DSA if isinstance(signer, dsa.DSAPrivateKey) else SHA256_ECDSA


def key_identifier(private: Any) -> bytes:
    return hashlib.sha1(private.public_key().public_bytes(DER, SPKI)).digest()


def time(when: datetime) -> bytes:
    return tlv(0x18, when.strftime("%Y%m%d%H%M%SZ").encode())


@dataclass
class Draft:
    """A certificate to be made. `extensions` are (critical, value) by their identifiers."""

    subject: bytes
    key: Any
    extensions: dict[str, tuple[bool, bytes]]
    serial: bytes = b"\x01\x23\x45\x67\x89"
    version: bytes = tlv(0xA0, tlv(0x02, b"\x02"))
    algorithm: bytes | None = None
    inner_algorithm: bytes | None = None
    public_key: bytes | None = None
    days: tuple[int, int] = (-1, 60)
    twice: str | None = None
    issuer: bytes | None = None
    signer: Any = None

    def made(self, issuer: Draft | None) -> bytes:
        """The DER; signed by itself without an issuer."""
        signer = self.signer or (issuer or self).key
        algorithm = self.algorithm or natural_algorithm(signer)
        now = datetime.now(timezone.utc).replace(microsecond=0)
        items = list(self.extensions.items())
        if self.twice:
            items.append((self.twice, self.extensions[self.twice]))
        extensions = b"".join(
            sequence(oid(identifier), tlv(0x01, b"\xff") if critical else b"", tlv(0x04, value))
            for identifier, (critical, value) in items)
        signed = sequence(
            self.version, tlv(0x02, self.serial), self.inner_algorithm or algorithm,
            self.issuer or (issuer or self).subject,
            sequence(*(time(now + timedelta(days=day)) for day in self.days)), self.subject,
            self.public_key or self.key.public_key().public_bytes(DER, SPKI),
            tlv(0xA3, sequence(extensions)) if extensions else b"")
        return sequence(signed, algorithm, tlv(0x03, b"\0" + signature(signer, algorithm, signed)))

    def put(self, identifier: str, value: bytes, critical: bool = False) -> Draft:
        self.extensions[identifier] = (critical, value)
        return self

    def drop(self, identifier: str) -> Draft:
        del self.extensions[identifier]
        return self

    def criticality(self, identifier: str, critical: bool) -> Draft:
        return self.put(identifier, self.extensions[identifier][1], critical)


def usage(bits: int) -> bytes:
    """keyUsage: the first octet of its bits."""
    unused = (bits & -bits).bit_length() - 1
    return tlv(0x03, bytes([unused, bits]))


def authority_key(private: Any) -> bytes:
    return sequence(tlv(0x80, key_identifier(private)))


def authority(common: str | None, private: Any, issuer: Any = None) -> Draft:
    draft = Draft(name(common), private, {
        BASIC: (True, sequence(tlv(0x01, b"\xff"))), USAGE: (True, usage(0x06)),
        SUBJECT_KEY: (False, tlv(0x04, key_identifier(private)))})
    return draft.put(AUTHORITY_KEY, authority_key(issuer)) if issuer else draft


def server(private: Any, issuer: Any, *names: str, common: str | None = "Server") -> Draft:
    return Draft(name(common), private, {
        USAGE: (True, usage(0x80)), SAN: (common is None, dns(*names)),
        PURPOSES: (False, x509.ExtendedKeyUsage([Purpose.SERVER_AUTH]).public_bytes()),
        SUBJECT_KEY: (False, tlv(0x04, key_identifier(private))),
        AUTHORITY_KEY: (False, authority_key(issuer))})


HOST = "www.example.com"


@dataclass
class Chain:
    """A root, an intermediate authority and a server, without fault until one is put in."""

    root: Draft = field(default_factory=lambda: authority("Root", key("p256", "root")))
    middle: Draft = field(default_factory=lambda: authority(
        "Middle", key("p256", "middle"), key("p256", "root")))
    leaf: Draft = field(default_factory=lambda: server(
        key("p256", "leaf"), key("p256", "middle"), HOST))
    host: str | None = HOST

    def question(self, **members: Any) -> dict:
        return {"chain": pem(self.leaf.made(self.middle), self.middle.made(self.root)),
                "roots": pem(self.root.made(None)), "host": self.host, **members}


def chain(change: Callable[[Chain], Any] = lambda _: None) -> Chain:
    made = Chain()
    change(made)
    return made


def pem(*certificates: bytes | x509.Certificate) -> str:
    text = ""
    for one in certificates:
        der = one if isinstance(one, bytes) else one.public_bytes(DER)
        body = base64.b64encode(der).decode()
        lines = "\n".join(body[at:at + 64] for at in range(0, len(body), 64))
        text += f"-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n"
    return text


def ask(questions: list[dict | str], code: int = 0) -> list[dict]:
    """The answers of `pinfold trust --batch`, one for each question."""
    lines = [one if isinstance(one, str) else json.dumps(one) for one in questions]
    done = subprocess.run([BINARY, "trust", "--batch"], input="\n".join(lines) + "\n", text=True,
                          capture_output=True, timeout=60)
    assert done.returncode == code, (done.returncode, done.stderr[-500:], done.stdout[-500:])
    assert done.stderr == ""
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(questions)
    return answers
