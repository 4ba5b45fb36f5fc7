"""Signed tokens, by an issuer and by those who want to be taken for one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature


def url_safe(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _number(value: int) -> str:
    return url_safe(value.to_bytes((value.bit_length() + 7) // 8, "big"))


class Signer:
    """A key that signs."""

    def __init__(self, key: Any, kid: str | None = None):
        self.key, self.kid = key, kid

    @property
    def algorithm(self) -> str:
        if isinstance(self.key, rsa.RSAPrivateKey):
            return "RS256"
        return "ES256" if isinstance(self.key, ec.EllipticCurvePrivateKey) else "EdDSA"

    def sign(self, data: bytes) -> bytes:
        if self.algorithm == "RS256":
            return self.key.sign(data, padding.PKCS1v15(), hashes.SHA256())
        if self.algorithm == "ES256":
            pair = decode_dss_signature(self.key.sign(data, ec.ECDSA(hashes.SHA256())))
            return b"".join(number.to_bytes(32, "big") for number in pair)
        return self.key.sign(data)

    @property
    def pem(self) -> bytes:
        return self.key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)

    @property
    def jwk(self) -> dict[str, str]:
        public = self.key.public_key()
        more = {"kid": self.kid} if self.kid else {}
        if self.algorithm == "RS256":
            numbers = public.public_numbers()
            return {"kty": "RSA", "n": _number(numbers.n), "e": _number(numbers.e), **more}
        if self.algorithm == "ES256":
            numbers = public.public_numbers()
            return {"kty": "EC", "crv": "P-256", "x": url_safe(numbers.x.to_bytes(32, "big")),
                    "y": url_safe(numbers.y.to_bytes(32, "big")), **more}
        raw = public.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return {"kty": "OKP", "crv": "Ed25519", "x": url_safe(raw), **more}

    def token(self, claims: dict | str, **header: Any) -> str:
        head = {"alg": self.algorithm, **({"kid": self.kid} if self.kid else {}), **header}
        data = signing_input({name: value for name, value in head.items() if value is not None},
                             claims)
        return f"{data}.{url_safe(self.sign(data.encode()))}"


def signing_input(header: dict | str, claims: dict | str) -> str:
    return ".".join(
        url_safe((part if isinstance(part, str) else json.dumps(part)).encode())
        for part in (header, claims))


def hmac_token(secret: bytes, header: dict, claims: dict) -> str:
    data = signing_input(header, claims)
    return f"{data}.{url_safe(hmac.new(secret, data.encode(), hashlib.sha256).digest())}"


def signers() -> dict[str, Signer]:
    return {"rsa": Signer(rsa.generate_private_key(65537, 2048), "rsa"),
            "ec": Signer(ec.generate_private_key(ec.SECP256R1()), "ec"),
            "ed": Signer(ed25519.Ed25519PrivateKey.generate(), "ed")}


def key_set(*keys: Signer) -> str:
    return json.dumps({"keys": [key.jwk for key in keys]})


def claims(**more: Any) -> dict:
    """What an issuer says of ann; None leaves a claim out."""
    now = int(time.time())
    made = {"iss": "https://id.test", "aud": "pinfold", "sub": "ann", "exp": now + 600,
            "iat": now, "roles": ["build"]} | more
    return {name: value for name, value in made.items() if value is not None}
