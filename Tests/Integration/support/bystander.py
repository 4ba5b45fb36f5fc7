"""How long somebody waits for the gateway while others keep it busy."""

from __future__ import annotations

import time
from collections.abc import Callable

from .gateway import Gateway
from .wait import SLOWDOWN

# Of the gateway's processor time while somebody waits: so it does not count who else keeps the
# machine busy. What is bounded here is a stall, which lasts for seconds.
STALL = 0.4 * SLOWDOWN


def waits(running: Gateway, ask: Callable[[], object], count: int) -> list[float]:
    """How much the gateway worked until each of `count` requests was answered, one after the other,
    in order of size."""
    def pause() -> None:
        time.sleep(0.002)  # the bystander's pace: it is no flood itself

    return running.work(ask, count, between=pause)


def p99(sorted_values: list[float]) -> float:
    return sorted_values[int(len(sorted_values) * 0.99) - 1]
