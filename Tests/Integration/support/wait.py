"""Waiting for conditions: no test sleeps for a fixed time."""

import os
import time
from typing import Callable, TypeVar

T = TypeVar("T")

# A sanitizer makes the gateway several times slower; limits on time are widened by this much.
SANITIZER = os.environ.get("PINFOLD_SANITIZER", "")
SLOWDOWN = {"": 1, "address": 4, "thread": 12}[SANITIZER]


def until(
    condition: Callable[[], T], what: str | Callable[[], str], timeout: float = 10.0
) -> T:
    """Returns the first true value of `condition`, or fails after `timeout` seconds, saying what
    was waited for (a function is asked only then)."""
    deadline = time.monotonic() + timeout * min(SLOWDOWN, 4)
    pause = 0.002
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            text = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {timeout} s: {text}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)
