"""The compiled gateway itself."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest
from support.gateway import BINARY

# Constants that the optimizer makes of a function's literals: "outlined variable #N of F".
OUTLINED = re.compile(r"Tv\d*_[A-Za-z]?$")


def read(*arguments: str) -> str:
    return subprocess.run(["readelf", "--wide", *arguments], capture_output=True, check=True,
                          encoding="utf-8", errors="replace").stdout


def outlined_constants(path: Path) -> dict[str, tuple[bytes, tuple[tuple[int, str], ...]]]:
    """The bytes and relocations of the constants that an object file defines weakly."""
    found = [line.split() for line in read("--symbols", str(path)).splitlines()]
    symbols = [f for f in found
               if len(f) == 8 and f[3:5] == ["OBJECT", "WEAK"] and OUTLINED.search(f[7])]
    if not symbols:
        return {}
    offsets, names = {}, {}
    for line in read("--section-headers", str(path)).splitlines():
        if m := re.match(r"\s*\[\s*(\d+)\] (\S+)\s+\S+\s+[0-9a-f]+ ([0-9a-f]+)", line):
            names[m[1]], offsets[m[1]] = m[2], int(m[3], 16)
    relocations, section = defaultdict(list), ""
    for line in read("--relocs", str(path)).splitlines():
        if m := re.match(r"Relocation section '\.rela?(\S+)'", line):
            section = m[1]
        elif re.match(r"[0-9a-f]{16} ", line):
            where, _, *what = line.split()
            relocations[section].append((int(where, 16), " ".join(what)))
    data, constants = path.read_bytes(), {}
    for _, value, size, _, _, _, index, name in symbols:
        start, length = int(value, 16), int(size, 0)
        at = offsets[index] + start
        constants[name] = (data[at:at + length], tuple(
            (where - start, what) for where, what in sorted(relocations[names[index]])
            if start <= where < start + length))
    return constants


@pytest.mark.slow
def test_no_two_modules_define_a_constant_differently() -> None:
    """The linker keeps one of several: the other module's code would read the wrong literal.

    Swift 6.3.1 made such constants, which is why a pass of its optimizer is off in Package.swift.
    """
    objects = sorted(BINARY.resolve().parent.glob("*.build/*.o"))
    if not objects:
        pytest.skip(f"{BINARY} is not in the folder in which it was built")
    seen: dict[str, tuple[Path, object]] = {}
    differing = []
    for path in objects:
        for name, content in outlined_constants(path).items():
            first, known = seen.setdefault(name, (path, content))
            if known != content:
                differing.append(f"{name}: {first.parent.name} and {path.parent.name}")
    assert not differing


def test_the_gateway_loads_no_foundation_and_no_icu() -> None:
    """They are 54 MB; of Foundation, FoundationEssentials alone is needed, which has no ICU."""
    loaded = subprocess.run(["ldd", str(BINARY)], capture_output=True, check=True,
                            encoding="utf-8").stdout
    libraries = {line.split()[0] for line in loaded.splitlines() if line.strip()}
    assert any(library.startswith("libc.so.") for library in libraries)
    assert not any(re.search(r"^libFoundation(?!Essentials)|ICU|libicu", library)
                   for library in libraries), sorted(libraries)
