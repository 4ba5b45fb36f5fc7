"""What the connections of a process of the faulty server have in common."""

from __future__ import annotations

import functools
import gzip
import os
from collections import Counter, OrderedDict


def body(number: int, size: int) -> bytes:
    """The content of a response: its client knows it."""
    return bytes([number % 251]) * size


@functools.lru_cache(maxsize=1024)
def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, 1)


class State:
    """Counts, and what requests that are sent again have been answered."""

    # Requests that were cancelled leave their failures behind.
    MOST_FAILURES = 10_000
    # Requests that a token is good for.
    USES = 50
    # Older tokens are not good any more.
    MOST_TOKENS = 8

    def __init__(self) -> None:
        self.connections = 0
        self.served: Counter[str] = Counter()
        self._failures: OrderedDict[int, int] = OrderedDict()
        self._uses: dict[str, int] = {}
        self._tokens = 0

    def count(self, fault: str) -> None:
        self.served[fault] += 1

    def compressed(self, content: bytes) -> bytes:
        return _compressed(content)

    def fails(self, number: int, times: int) -> bool:
        """Whether a request fails once more, of so many times."""
        failed = self._failures.pop(number, 0)
        if failed >= times:
            return False
        self._failures[number] = failed + 1
        if len(self._failures) > self.MOST_FAILURES:
            self._failures.popitem(last=False)
        return True

    def new_token(self) -> str:
        self._tokens += 1
        token = f"{os.getpid()}-{self._tokens}"
        self._uses[token] = self.USES
        if len(self._uses) > self.MOST_TOKENS:
            del self._uses[next(iter(self._uses))]
        return token

    def uses(self, token: str) -> bool:
        """Whether a token is good for one more request."""
        left = self._uses.get(token, 0)
        if left > 0:
            self._uses[token] = left - 1
        return left > 0
