"""Many clients that want the same."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from .gateway import Gateway
from .wire import Wire, request


@contextlib.contextmanager
def crowd(gateway: Gateway, url: str, count: int, **fields: str) -> Iterator[list[Wire]]:
    """So many clients that have sent the same request."""
    wires = [gateway.wire() for _ in range(count)]
    try:
        for wire in wires:
            wire.send(request(url, **fields))
        yield wires
    finally:
        for wire in wires:
            wire.close()
