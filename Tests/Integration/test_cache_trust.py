"""Stored responses are used only where their server was verified as it has to be now: each step from
one way of verifying it to another makes what was stored before unusable, in memory and on disk."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest
from support.gateway import Gateway
from support.origin import HTTPOrigin, reply
from support.pki import Certificate
from support.wire import Response
from test_reload import reload

HOST = "api.verified.test"
OTHER_PIN = "sha256/" + "A" * 43 + "="
# Every step from one of four to another, once.
STEPS = [0, 1, 0, 2, 0, 3, 1, 2, 1, 3, 2, 3, 0]


def ways_of_trust(leaf: Certificate) -> dict[str, dict | None]:
    """The pinset, by what is required of the server."""
    pinned = {"mode": "publicKey", "pins": [leaf.pin]}
    return {
        "verified": None,
        "pinned": pinned,
        "other pins": {**pinned, "pins": [leaf.pin, OTHER_PIN]},
        "reported": {**pinned, "enforce": False},
    }


def configuration(roots: list[str], pinset: dict | None) -> dict:
    entry: dict = {"match": [HOST]}
    if pinset is not None:
        entry["pinsets"] = ["wanted"]
    return {"hosts": [entry], "pinsets": {} if pinset is None else {"wanted": pinset},
            "tls": {"roots": roots}, "workers": 1}


def restart(running: Gateway, config: dict) -> None:
    running.config = {**running.config, **config}
    running.write_config(running.config)
    running.restart()
    running.wait_for_disk()


def trust(running: Gateway) -> set[str]:
    """How the servers of what is stored were verified, as operators are told."""
    page = running.admin_get("/api/v1/cache/entries").json()
    return {entry["trust"] for entry in page["entries"]}


SAID = {"verified": "verified", "pinned": "pinned: wanted", "other pins": "pinned: wanted",
        "reported": "verified; reported: wanted"}


def is_hit(response: Response) -> bool:
    return "hit" in response.cache_status


@pytest.mark.parametrize("change", [reload, restart], ids=["memory", "disk"])
def test_what_was_verified_otherwise_is_not_used(gateway, origin, pki, change: Callable):
    leaf = pki.root.issue(HOST)
    there: HTTPOrigin = origin(
        lambda _: reply(b"kept", "200 OK", "Cache-Control: max-age=600"), tls=leaf.server_context())
    all_of_them = list(ways_of_trust(leaf).items())
    configured = [configuration([str(pki.root.pem_file)], pinset) for _, pinset in all_of_them]
    url = f"https://{HOST}:{there.port}/"
    running = gateway(configured[STEPS[0]])
    running.wait_for_disk()
    running.get(url)
    for former, latter in zip(STEPS, STEPS[1:], strict=False):
        step = f"{all_of_them[former][0]} to {all_of_them[latter][0]}"
        assert is_hit(running.get(url)), step
        change(running, configured[former])
        assert trust(running) == {SAID[all_of_them[former][0]]}
        assert is_hit(running.get(url)), f"nothing has changed before {step}"
        change(running, configured[latter])
        response = running.get(url)
        assert response.body == b"kept"
        assert response.cache_status["fwd"] == "miss", step
    assert is_hit(running.get(url))
    assert len(there.requests) == len(STEPS)


def test_what_came_in_clear_text_says_so(gateway, origin):
    there = origin(lambda _: reply(b"kept", "200 OK", "Cache-Control: max-age=600"))
    running = gateway()
    running.get(there.url("/"))
    assert trust(running) == {"clear"}


def test_what_is_decoded_was_verified_as_well(gateway, origin, pki):
    """A variant that would only have to be decoded is as unusable as any other."""
    leaf = pki.root.issue(HOST)

    def answer(asked):
        fields = ["Cache-Control: max-age=600", "Vary: Accept-Encoding"]
        if "gzip" in asked.get("accept-encoding"):
            return reply(gzip.compress(b"kept"), "200 OK", *fields, "Content-Encoding: gzip")
        return reply(b"asked", "200 OK", *fields)

    there = origin(answer, tls=leaf.server_context())
    pinsets = ways_of_trust(leaf)
    roots = [str(pki.root.pem_file)]
    running = gateway(configuration(roots, pinsets["verified"]))
    url = f"https://{HOST}:{there.port}/"
    running.get(url, Accept_Encoding="gzip")
    assert running.get(url, Accept_Encoding="identity").body == b"kept"
    reload(running, configuration(roots, pinsets["pinned"]))
    assert running.get(url, Accept_Encoding="identity").body == b"asked"
