"""Every public symbol of the client library has a docstring, as the compiler tells it (`swift
symbolgraph-extract` on the modules built beside the gateway)."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from support.gateway import BINARY, ROOT

BUILT = BINARY.parent

# Modules whose public symbols a caller of the library meets are imported so.
_PUBLIC_IMPORT = re.compile(r"^(?:@_exported )?public import (\w+)$", re.MULTILINE)


def modules() -> list[str]:
    """`PinfoldClient`, and the modules of this repository that are part of its interface."""
    found = ["PinfoldClient"]
    for module in found:
        sources = ROOT / "Sources" / module
        imported = {
            name for file in sources.rglob("*.swift")
            for name in _PUBLIC_IMPORT.findall(file.read_text())}
        found += sorted(
            name for name in imported - set(found) if (ROOT / "Sources" / name).is_dir())
    return found


def target() -> str:
    """What the compiler builds for."""
    told = subprocess.run(
        ["swiftc", "-print-target-info"], capture_output=True, text=True, check=True, timeout=60)
    return json.loads(told.stdout)["target"]["unversionedTriple"]


def symbols(module: str, folder: Path, to: Path) -> list[dict]:
    """The public symbols that a module declares, also in extensions of others."""
    maps = [*ROOT.glob("Sources/C*/module.modulemap"), *BUILT.glob("*.build/module.modulemap")]
    told = subprocess.run(
        ["swift", "symbolgraph-extract", "-module-name", module, "-I", folder,
         *(argument for file in maps for argument in ("-I", file.parent)),
         "-target", target(), "-minimum-access-level", "public", "-output-dir", to],
        capture_output=True, text=True, timeout=300)
    assert told.returncode == 0, told.stderr
    graphs = sorted(to.glob(f"{module}.symbols.json")) + sorted(to.glob(f"{module}@*.symbols.json"))
    assert graphs, f"no symbol graph of {module}"
    declared = [symbol for file in graphs for symbol in json.loads(file.read_text())["symbols"]]
    # What a type has by a protocol's extension is documented, or not, where that is declared.
    return [one for one in declared if "::SYNTHESIZED::" not in one["identifier"]["precise"]]


def undocumented(found: list[dict]) -> list[str]:
    """The names of symbols without a docstring of their own or of the requirement that they meet,
    and where they are declared."""
    def name(symbol: dict) -> str:
        place = symbol.get("location", {})
        file = place.get("uri", "").rpartition("/")[2]
        line = place.get("position", {}).get("line", -1) + 1
        return f"{'.'.join(symbol['pathComponents'])} ({file}:{line})"

    def text(symbol: dict) -> str:
        return "".join(line["text"] for line in symbol.get("docComment", {}).get("lines", []))

    return sorted(name(symbol) for symbol in found if not text(symbol).strip())


def test_the_interface_has_these_modules() -> None:
    assert {"PinfoldClient", "Documents", "EventStreams", "Retries", "Serialization"} <= set(
        modules())


@pytest.mark.parametrize("module", modules())
def test_every_public_symbol_has_a_docstring(module: str, tmp_path: Path) -> None:
    found = symbols(module, BUILT / "Modules", tmp_path)
    if module == "PinfoldClient":
        assert len(found) > 400
    assert undocumented(found) == []


def test_a_symbol_without_a_docstring_is_found(tmp_path: Path) -> None:
    source = tmp_path / "Sample.swift"
    source.write_text(
        "/// Documented.\npublic struct Told {\n    public var untold = 1\n"
        "    var hidden = 2\n    /// Documented.\n    public func told() {}\n}\n"
        "extension Int {\n    public var untold: Int { self }\n}\n")
    subprocess.run(
        ["swiftc", "-emit-module", "-module-name", "Sample", "-emit-module-path",
         tmp_path / "Sample.swiftmodule", "-target", target(), source],
        check=True, capture_output=True, timeout=300)
    (tmp_path / "graphs").mkdir()
    found = symbols("Sample", tmp_path, tmp_path / "graphs")
    assert undocumented(found) == ["Int.untold (Sample.swift:9)", "Told.untold (Sample.swift:3)"]
