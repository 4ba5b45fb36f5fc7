"""Damage to what a fleet has stored in its engine."""

from __future__ import annotations

import contextlib
import random

from .fleet import Engine, EngineError


class Damage:
    """Somebody who writes nonsense into what the fleet has stored."""

    def __init__(self, engine: Engine, pattern: str, seed: int):
        self.engine, self.pattern = engine, pattern
        self.choice = random.Random(seed)
        self.done = 0

    def keys(self) -> list[bytes]:
        return self.engine.keys(self.pattern)

    def _any(self, keys: list[bytes]) -> bytes:
        return self.choice.choice(keys)

    def values(self) -> None:
        """One value, of whatever kind, is removed, replaced, cut, prolonged, changed or moved."""
        keys = self.keys()
        if not keys:
            return
        key, other = self._any(keys), self._any(keys)
        with contextlib.suppress(EngineError, TypeError):
            kind = self.engine.command("TYPE", key)
            if kind == b"hash":
                self._field(key, other)
            elif kind == b"string":
                self._string(key, other)
            self.done += 1

    def _field(self, key: bytes, other: bytes) -> None:
        fields = self.engine.command("HKEYS", key)
        field = self._any(fields)
        value = self.engine.command("HGET", key, field)
        action = self.choice.randrange(5)
        if action == 0:
            self.engine.command("HDEL", key, field)
        elif action == 1:
            self.engine.command("HSET", other, field, value)
        else:
            self.engine.command("HSET", key, field, self._damaged(value))

    def _string(self, key: bytes, other: bytes) -> None:
        action = self.choice.randrange(4)
        if action == 0:
            self.engine.command("DEL", key)
        elif action == 1:
            self.engine.command("COPY", key, other, "REPLACE")
        else:
            value = self.engine.command("GET", key)
            self.engine.command("SET", key, self._damaged(value), "KEEPTTL")

    def _damaged(self, value: bytes) -> bytes:
        place = self.choice.randrange(max(1, len(value)))
        kind = self.choice.randrange(5)
        if kind == 0:
            return value[:place]
        if kind == 1:
            return value + self.choice.randbytes(20)
        if kind == 2:
            return self.choice.randbytes(self.choice.randrange(200))
        if kind == 3:
            return value[:place] + bytes([value[place] ^ 1 << self.choice.randrange(8)]) + value[place + 1:] \
                if value else b"?"
        return value[place:] + value[:place]

    def other_types(self) -> None:
        """A key is another program's."""
        keys = self.keys()
        if not keys:
            return
        key = self._any(keys)
        with contextlib.suppress(EngineError):
            self.engine.command("DEL", key)
            self.engine.command(*self.choice.choice([
                ("LPUSH", key, "x"), ("SADD", key, "x"), ("ZADD", key, 1, "x"), ("SET", key, "x"),
                ("HSET", key, "x", "y"), ("XADD", key, "*", "x", "y")]))
            self.done += 1
