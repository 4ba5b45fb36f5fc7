"""Zstandard (RFC 8878) by its own program: Python has had it since 3.14 only."""

from __future__ import annotations

import subprocess


def _run(data: bytes, *options: str) -> bytes:
    return subprocess.run(["zstd", "--stdout", "--quiet", *options], input=data,
                          stdout=subprocess.PIPE, check=True).stdout


def compress(data: bytes, *options: str) -> bytes:
    """One frame, which does not state its size."""
    return _run(data, *options)


def decompress(data: bytes) -> bytes:
    return _run(data, "--decompress")


def skippable(data: bytes) -> bytes:
    """A frame that decoders skip (§3.1.2)."""
    return b"\x53\x2a\x4d\x18" + len(data).to_bytes(4, "little") + data
