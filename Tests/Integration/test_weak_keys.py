"""Keys in JWK Sets and PEM for which anybody can sign: the points of low order on Ed25519 as the curve
has them, and exponents of RSA. Every one is refused at start, and at a reload the former keys stay."""

from __future__ import annotations

import base64
import json

import pytest
from support.credentials import write
from support.gateway import run_pinfold
from support.origin import reply
from support.signed_tokens import Signer, claims, key_set, signers, url_safe

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
ORDER = 2**252 + 27742317777372353535851937790883648493
JWT = '{ keys: jwks.json, issuer: "https://id.test", audience: pinfold }'
LISTENERS = "[{ address: 127.0.0.1:0, authentication: [bearer] }]"


def add(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """RFC 8032 §5.1.4, in affine coordinates."""
    (x, y), (u, v) = a, b
    product = D * x * u * y * v
    return ((x * v + u * y) * pow(1 + product, -1, P) % P,
            (y * v + x * u) * pow(1 - product, -1, P) % P)


def times(factor: int, point: tuple[int, int]) -> tuple[int, int]:
    total = (0, 1)
    while factor:
        if factor & 1:
            total = add(total, point)
        point, factor = add(point, point), factor >> 1
    return total


def with_y(y: int) -> tuple[int, int] | None:
    """RFC 8032 §5.1.3: a point with this y, if there is one."""
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    return (x, y) if x * x % P == square else None


def torsion() -> set[tuple[int, int]]:
    """The eight points whose order divides 8."""
    for y in range(2, 100):
        if (point := with_y(y)) is None:
            continue
        point = times(ORDER, point)
        found = {times(number, point) for number in range(8)}
        if len(found) == 8:
            return found
    raise AssertionError("no point of order 8")


def encodings(point: tuple[int, int]) -> set[bytes]:
    """Each that a lenient reader may take for the point."""
    x, y = point
    signs = {0, 1} if x == 0 else {x & 1}
    return {(value | sign << 255).to_bytes(32, "little")
            for value in (y, y + P) if value < 2**255 for sign in signs}


LOW_ORDER = sorted(set().union(*map(encodings, torsion())))
NOT_CANONICAL = [(P + number | sign << 255).to_bytes(32, "little")
                 for number in range(2, 19) for sign in (0, 1)]


def jwks(point: bytes) -> str:
    key = {"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": url_safe(point)}
    return json.dumps({"keys": [key]})


def pem(point: bytes) -> str:
    der = bytes.fromhex("302a300506032b6570032100") + point
    return f"-----BEGIN PUBLIC KEY-----\n{base64.b64encode(der).decode()}\n-----END PUBLIC KEY-----\n"


def check(folder, content: str) -> tuple[int, str]:
    write(folder / "jwks.json", content)
    (folder / "pinfold.yaml").write_text(
        f"listeners: {LISTENERS}\nauthentication: {{ jwt: {JWT} }}\n")
    done = run_pinfold("check", "--config", str(folder / "pinfold.yaml"))
    return done.returncode, done.stdout + done.stderr


def test_the_points_of_low_order_are_refused_in_every_encoding(workspace):
    assert len(LOW_ORDER) == 14
    for point in LOW_ORDER:
        for content, place in ((jwks(point), "keys[0]"), (pem(point), "its key")):
            code, out = check(workspace, content)
            assert code != 0 and f'jwks.json" {place} is a point of low order' in out, out


@pytest.mark.parametrize("form", [jwks, pem])
def test_encodings_that_are_not_canonical_are_refused(workspace, form):
    for point in NOT_CANONICAL[::6]:
        code, out = check(workspace, form(point))
        assert code != 0 and "not encoded canonically" in out, out


@pytest.mark.parametrize("exponent", [1, 2, 65536, 2**64 + 1])
def test_exponents_for_which_anybody_can_sign_are_refused(workspace, exponent):
    key = signers()["rsa"].jwk | {"e": url_safe(exponent.to_bytes(9, "big").lstrip(b"\0"))}
    code, out = check(workspace, json.dumps({"keys": [key]}))
    assert code != 0 and 'jwks.json" keys[0] has a public exponent' in out, out
    assert "expected an odd number from 3 to 2^64 - 1" in out


def test_a_reload_does_not_take_up_a_key_for_which_anybody_can_sign(gateway, origin, workspace):
    there = origin(lambda seen: reply(b"here", "200 OK", "Cache-Control: no-store"))
    good = signers()["ed"]
    write(workspace / "jwks.json", key_set(good))
    running = gateway({
        "listeners": [{"name": "proxy", "address": "127.0.0.1:0", "kind": "forward",
                       "authentication": ["bearer"]}],
        "authentication": {"jwt": {"keys": str(workspace / "jwks.json"),
                                   "issuer": "https://id.test", "audience": "pinfold"}}})
    # Whoever takes the neutral element for a key believes this signature of anything.
    neutral = (1).to_bytes(32, "little")

    class Anybody(Signer):
        def sign(self, data: bytes) -> bytes:
            return neutral + bytes(32)

    forged = Anybody(good.key, good.kid).token(claims(sub="root"))
    write(workspace / "jwks.json", jwks(neutral))
    assert "low order" in running.wait_log("cannot be used")
    statuses = [running.get(there.url("/"), Proxy_Authorization=f"Bearer {token}").status
                for token in (forged, good.token(claims()))]
    assert statuses == [407, 200]
