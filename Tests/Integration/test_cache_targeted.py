"""CDN-Cache-Control (RFC 9213) is for a cache that stands before an origin: a reverse route."""

from __future__ import annotations

import pytest
from support.origin import Request, reply


@pytest.mark.parametrize(("targeted", "ordinary", "before_origin", "beside_clients"), [
    ("max-age=600", "no-store", True, False),
    ("no-store", "max-age=600", False, True),
    ("max-age=600, &", "no-store", False, False)])
def test_the_targeted_field_counts_on_reverse_routes_only(
        gateway, origin, targeted, ordinary, before_origin, beside_clients):
    def handler(_: Request) -> bytes:
        return reply(b"body", "200 OK", f"CDN-Cache-Control: {targeted}",
                     f"Cache-Control: {ordinary}")

    there = origin(handler)
    running = gateway({"listeners": [
        {"name": "proxy", "address": "127.0.0.1:0", "kind": "forward"},
        {"name": "route", "address": "127.0.0.1:0", "kind": "reverse",
         "upstream": f"http://{there.authority}"}]})

    def is_reused(url: str, listener: str) -> bool:
        running.get(url, listener)
        response = running.get(url, listener)
        assert response.get("cdn-cache-control") == targeted, "others may be meant too"
        return "hit" in response.cache_status

    assert is_reused("/route", "route") == before_origin
    assert is_reused(there.url("/proxy"), "proxy") == beside_clients
