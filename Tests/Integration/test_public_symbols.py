"""Every public symbol of the client library has a docstring, according to the compiler (`swift
symbolgraph-extract` on the modules that were built with the tests)."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from support import outside
from support.checkout import MODULES, module_maps
from support.gateway import BINARY

# A release build of the gateway has no module for images.
BUILT = (BINARY.parent if (BINARY.parent / "Modules/PinfoldImages.swiftmodule").exists()
         else outside.BUILT)

# Modules whose public symbols a caller of the library meets are imported so.
_PUBLIC_IMPORT = re.compile(r"^(?:@_exported )?public import (\w+)$", re.MULTILINE)

# What comes with the library: whole modules, and single types of others.
_EXPORTS = re.compile(
    r"^@_exported public import (?:(?:struct|enum|class|protocol) )?(\w+)(?:\.(\w+))?$", re.MULTILINE)

_TYPES = {"swift.struct", "swift.enum", "swift.class", "swift.protocol", "swift.typealias"}

# Arguments with which a generic type is named where a type within it is.
_ARGUMENTS = {
    "HTTPSessionManager": "JSONResponseSerializer", "DecodableResponseSerializer": "Int",
    "AuthenticationInterceptor": "BearerAuthenticator", "SessionTask": "Int",
    "AutoPurgingImageCache": "Int", "SerializedResponse": "Int",
}

# Members of types that come from other modules, and modules whose names might be taken twice.
_MEMBERS = """
import Foundation
import FoundationNetworking
import FoundationXML
import PinfoldClient
import PinfoldImages

func member(_ status: NetworkStatus) -> Int { status.code }
func member(_ kind: InterfaceKind) -> String { kind.rawValue }
func member(_ cookie: Cookie) -> String { cookie.name }
func member(_ jar: CookieJar) -> Int { jar.cookies.count }
func member(_ source: borrowing MemoryPressureSource) -> Int32 { source.descriptor }
func member(_ value: DocumentValue) -> DocumentValue? { value["a"] }
func member(_ event: ServerSentEvent) -> String { event.data }
func member(_ policy: RetryPolicy) -> Int { policy.maximumAttempts }
func member(_ request: HTTPRequest) -> HTTPFields { request.headerFields }
func member(_ form: inout MultipartForm) { form.append("a", name: "b") }
func member(_ limits: CookieJar.Limits, _ outcome: CookieJar.Outcome) {}
"""


def modules() -> list[str]:
    """The libraries' modules, and those of this repository that are part of their interface."""
    found = ["PinfoldClient", "PinfoldImages"]
    for module in found:
        sources = MODULES[module]
        imported = {
            name for file in sources.rglob("*.swift")
            for name in _PUBLIC_IMPORT.findall(file.read_text())}
        found += sorted(name for name in imported - set(found) if name in MODULES)
    return found


def target() -> str:
    """What the compiler builds for."""
    result = subprocess.run(
        ["swiftc", "-print-target-info"], capture_output=True, text=True, check=True, timeout=60)
    return json.loads(result.stdout)["target"]["unversionedTriple"]


def symbols(module: str, folder: Path, to: Path) -> list[dict]:
    """The public symbols that a module declares, also in extensions of others."""
    maps = module_maps(BUILT)
    result = subprocess.run(
        ["swift", "symbolgraph-extract", "-module-name", module, "-I", folder,
         *(argument for file in maps for argument in ("-I", file.parent)),
         "-target", target(), "-minimum-access-level", "public", "-output-dir", to],
        capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
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


def exports() -> dict[str, set[str] | None]:
    """The types of each module that come with the library; None: all of them."""
    found: dict[str, set[str] | None] = {"PinfoldClient": None, "PinfoldImages": None}
    text = (MODULES["PinfoldClient"] / "Exports.swift").read_text()
    for module, name in _EXPORTS.findall(text):
        if not name:
            found[module] = None
        elif (names := found.setdefault(module, set())) is not None:
            names.add(name)
    return {module: names for module, names in found.items() if module in MODULES}


def exported(graphs: dict[str, list[dict]]) -> list[dict]:
    """The symbols that whoever imports the library can name."""
    return [
        symbol for module, names in exports().items() for symbol in graphs[module]
        if names is None or symbol["pathComponents"][0] in names]


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict]]:
    """The public symbols of each module of the interface."""
    folder = tmp_path_factory.mktemp("graphs")
    return {module: symbols(module, BUILT / "Modules", folder) for module in modules()}


def test_all_types_that_the_interface_mentions_come_with_it(graphs: dict[str, list[dict]]) -> None:
    own = {
        symbol["identifier"]["precise"]: ".".join(symbol["pathComponents"])
        for found in graphs.values() for symbol in found}
    named = {symbol["identifier"]["precise"] for symbol in exported(graphs)}
    missing = {
        f"{'.'.join(symbol['pathComponents'])} mentions {own[mentioned]}"
        for symbol in exported(graphs) for fragment in symbol["declarationFragments"]
        if (mentioned := fragment.get("preciseIdentifier", "")) in own and mentioned not in named}
    assert sorted(missing) == []


def compiled_outside(source: Path) -> str:
    """The compiler's errors for a file of another package."""
    maps = module_maps(BUILT)
    result = subprocess.run(
        ["swiftc", "-typecheck", "-swift-version", "6", "-warnings-as-errors",
         "-enable-upcoming-feature", "MemberImportVisibility", "-I", BUILT / "Modules",
         *(argument for file in maps for argument in ("-I", file.parent)), source],
        capture_output=True, text=True, timeout=300)
    return result.stderr or f"exit code {result.returncode}" * (result.returncode != 0)


def test_every_public_type_can_be_named_from_outside_beside_foundations(
    graphs: dict[str, list[dict]], tmp_path: Path
) -> None:
    lines = []
    for symbol in exported(graphs):
        if symbol["kind"]["identifier"] not in _TYPES:
            continue
        *outer, name = symbol["pathComponents"]
        outer = [f"{one}<{_ARGUMENTS[one]}>" if one in _ARGUMENTS else one for one in outer]
        lines.append(f"typealias Name{len(lines)} = {'.'.join([*outer, name])}\n")
    assert len(lines) > 150
    source = tmp_path / "Names.swift"
    source.write_text(_MEMBERS + "".join(sorted(lines)))
    assert compiled_outside(source) == ""


def test_parameters_are_written_in_all_these_forms() -> None:
    assert compiled_outside(Path(__file__).parent / "support" / "ParameterForms.swift") == ""


def test_the_interface_has_these_modules() -> None:
    assert modules() == ["PinfoldClient", "PinfoldImages", "Documents"]


@pytest.mark.parametrize("module", modules())
def test_every_public_symbol_has_a_docstring(module: str, tmp_path: Path) -> None:
    found = symbols(module, BUILT / "Modules", tmp_path)
    if module == "PinfoldClient":
        assert len(found) > 400
    assert undocumented(found) == []


def test_a_symbol_without_a_docstring_is_found(tmp_path: Path) -> None:
    source = tmp_path / "Sample.swift"
    source.write_text(
        "/// Documented.\npublic struct Known {\n    public var untold = 1\n"
        "    var hidden = 2\n    /// Documented.\n    public func known() {}\n}\n"
        "extension Int {\n    public var untold: Int { self }\n}\n")
    subprocess.run(
        ["swiftc", "-emit-module", "-module-name", "Sample", "-emit-module-path",
         tmp_path / "Sample.swiftmodule", "-target", target(), source],
        check=True, capture_output=True, timeout=300)
    (tmp_path / "graphs").mkdir()
    found = symbols("Sample", tmp_path, tmp_path / "graphs")
    assert undocumented(found) == ["Int.untold (Sample.swift:9)", "Known.untold (Sample.swift:3)"]
