"""Logs of Certificate Transparency made for a test: their promises, and lists that name them."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from support.chains import oid, sequence, tlv
from support.pki import Certificate

DER = serialization.Encoding.DER
SPKI = serialization.PublicFormat.SubjectPublicKeyInfo
EMBEDDED = "1.3.6.1.4.1.11129.2.4.2"
STAPLED = "1.3.6.1.4.1.11129.2.4.5"


def utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def spki(key) -> bytes:
    return key.public_key().public_bytes(DER, SPKI)


def vector(size: int, content: bytes) -> bytes:
    return len(content).to_bytes(size, "big") + content


def sct_list(*timestamps: bytes) -> bytes:
    return vector(2, b"".join(vector(2, one) for one in timestamps))


class Log:
    """A log that promises whatever it is asked to."""

    def __init__(self, name: str):
        self.name = name
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.id = hashlib.sha256(spki(self.key)).digest()

    def entry(self, state: str | None = "usable", since: float = 0, **members: object) -> dict:
        """How a list of logs describes it."""
        made = {"description": self.name, "url": "https://log.test/", "mmd": 86400,
                "log_id": base64.b64encode(self.id).decode(),
                "key": base64.b64encode(spki(self.key)).decode(), **members}
        if state is not None:
            made["state"] = {state: {"timestamp": utc(since)}}
        return made

    def promise(self, content: bytes, at: float | None = None) -> bytes:
        """A timestamp over an entry in its wire form (RFC 6962 §3.2)."""
        when = int((time.time() if at is None else at) * 1000).to_bytes(8, "big")
        signature = self.key.sign(
            b"\0\0" + when + content + b"\0\0", ec.ECDSA(hashes.SHA256()))
        return b"\0" + self.id + when + b"\0\0" + b"\4\3" + vector(2, signature)

    def of_certificate(self, made: Certificate, at: float | None = None) -> bytes:
        return self.promise(b"\0\0" + vector(3, made.der), at)

    def of_precertificate(self, signed: bytes, issuer: Certificate, at: float | None = None):
        return self.promise(
            b"\0\1" + hashlib.sha256(spki(issuer.key)).digest() + vector(3, signed), at)


def embedding(issuer: Certificate, leaf: Certificate, *logs: Log, at: float | None = None,
              altered=lambda timestamps: timestamps) -> Certificate:
    """The same certificate with the logs' timestamps in it."""
    old = leaf.certificate

    def built(content: bytes | None) -> x509.Certificate:
        builder = x509.CertificateBuilder(
            issuer_name=old.issuer, subject_name=old.subject, public_key=old.public_key(),
            serial_number=old.serial_number, not_valid_before=old.not_valid_before_utc,
            not_valid_after=old.not_valid_after_utc)
        for one in old.extensions:
            builder = builder.add_extension(one.value, one.critical)
        if content is not None:
            builder = builder.add_extension(
                x509.UnrecognizedExtension(x509.ObjectIdentifier(EMBEDDED), tlv(0x04, content)),
                critical=False)
        return builder.sign(issuer.key, hashes.SHA256())

    signed = built(None).tbs_certificate_bytes
    timestamps = altered([log.of_precertificate(signed, issuer, at) for log in logs])
    made = built(sct_list(*timestamps))
    # What the logs have signed, by another's reading of RFC 6962.
    assert made.tbs_precertificate_bytes == signed
    name = f"{leaf.name}-{made.fingerprint(hashes.SHA256()).hex()[:16]}"
    return Certificate(made, leaf.key, leaf.chain, leaf.folder, name)


def log_list(path: Path, *entries: dict, age_days: float = 1, **members: object) -> str:
    """A file in the form of log_list.json, version 3."""
    path.write_text(json.dumps({
        "version": "3.1", "log_list_timestamp": utc(time.time() - age_days * 86400),
        "operators": [{"name": "Tests", "email": ["a@test"], "logs": list(entries)}], **members}))
    return str(path)


def server_info(path: Path, *timestamps: bytes) -> str:
    """A file for `openssl s_server -serverinfo`: the extension in a ServerHello up to TLS 1.2, and
    beside the certificate in TLS 1.3."""
    content = (0x11C0).to_bytes(4, "big") + (18).to_bytes(2, "big") + vector(
        2, sct_list(*timestamps))
    body = base64.encodebytes(content).decode()
    path.write_text(
        f"-----BEGIN SERVERINFOV2 FOR CT-----\n{body}-----END SERVERINFOV2 FOR CT-----\n")
    return str(path)


def status_file(path: Path, made: Certificate, issuer: Certificate, *timestamps: bytes,
                signed: bool = False) -> str:
    """A file for `openssl s_server -status_file`: an OCSP response with timestamps. Unless it is to
    be signed its signature is none, for it is theirs that count."""
    sha1 = sequence(oid("1.3.14.3.2.26"), tlv(0x05))
    name = hashlib.sha1(issuer.certificate.subject.public_bytes()).digest()
    serial = made.certificate.serial_number
    number = tlv(0x02, serial.to_bytes(serial.bit_length() // 8 + 1, "big"))
    key = x509.SubjectKeyIdentifier.from_public_key(issuer.key.public_key()).digest

    def time_in(days: int) -> bytes:
        when = datetime.now(timezone.utc) + timedelta(days=days)
        return tlv(0x18, when.strftime("%Y%m%d%H%M%SZ").encode())

    single = sequence(
        sequence(sha1, tlv(0x04, name), tlv(0x04, key), number), tlv(0x80), time_in(-1),
        tlv(0xA0, time_in(4)), tlv(0xA1, sequence(sequence(
            oid(STAPLED), tlv(0x04, tlv(0x04, sct_list(*timestamps)))))))
    data = sequence(tlv(0xA2, tlv(0x04, key)), time_in(0), sequence(single))
    signature = issuer.key.sign(data, ec.ECDSA(hashes.SHA256())) if signed else bytes(8)
    algorithm = sequence(oid("1.2.840.10045.4.3.2"))
    basic = sequence(data, algorithm, tlv(0x03, b"\0" + signature))
    response = sequence(tlv(0x0A, b"\0"), tlv(0xA0, sequence(
        oid("1.3.6.1.5.5.7.48.1.1"), tlv(0x04, basic))))
    path.write_bytes(response)
    return str(path)
