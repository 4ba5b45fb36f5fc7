"""A package outside of this one that depends on the client library by its path: README's program, the
code of the documentation's pages, as they are printed, and the program of deploy/client-soak."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from .checkout import PAGES, module_maps
from .examples import README, blocks
from .gateway import ROOT

# How the Swift tests were built, and where their modules are: deploy/test says. It runs them
# meanwhile, and what runs them has locked the folder.
TEST_BUILD = shlex.split(os.environ.get("PINFOLD_TEST_BUILD", "")) or ["--scratch-path", ".build"]
BUILT = ROOT / TEST_BUILD[TEST_BUILD.index("--scratch-path") + 1] / "debug"

# What the pages ask, and what stands in for it: arguments of the program.
SERVICES = {"https://httpbin.org": 2, "https://files.example.com": 3}

_MANIFEST = """// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6), .treatAllWarnings(as: .error),
    .enableUpcomingFeature("MemberImportVisibility"),
]
let library: [Target.Dependency] = [.product(name: "PinfoldClient", package: "pinfold")]

let package = Package(
    name: "outside",
    dependencies: [.package(name: "pinfold", path: "{root}")],
    targets: [
        .executableTarget(name: "outside", dependencies: library, swiftSettings: settings),
        .executableTarget(
            name: "pages",
            dependencies: library + [.product(name: "PinfoldImages", package: "pinfold")],
            swiftSettings: settings),
        .executableTarget(
            name: "faulty-requests", dependencies: library + ["CMalloc"], swiftSettings: settings),
        .systemLibrary(name: "CMalloc"),
    ]
)
"""

# Foundation has names of its own for much of this.
_PAGES = """import FoundationXML
import PinfoldClient
import PinfoldImages

typealias Part =
    @Sendable (SessionManager, HTTPSessionManager<JSONResponseSerializer>) async throws -> Void

{functions}

let parts: [String: Part] = [
{entries}
]
"""

_MAIN = """import PinfoldClient

let api = try HTTPSessionManager(
    baseURL: CommandLine.arguments[2], responses: JSONResponseSerializer())
guard let part = parts[CommandLine.arguments[1]] else { fatalError("no such part") }
try await part(api.session, api)
"""


def program() -> str:
    """README's program."""
    (code,) = [block.text for block in blocks(README)
               if block.heading == "The client library" and block.language == "swift"]
    return code + "\n"


def migration() -> dict[str, str]:
    """Our code of the page on migration, by its headings."""
    sections = PAGES["Migration"].read_text().split("\n## ")[2:]
    found = {}
    for section in sections:
        heading, _, rest = section.partition("\n")
        blocks = re.findall(r"^Pinfold:\n\n```swift\n(.*?)^```$", rest, re.MULTILINE | re.DOTALL)
        assert len(blocks) == 1, heading
        found[heading] = blocks[0]
    return found


def tutorial() -> list[Path]:
    """The programs of the tutorial, one for each step, in their order."""
    tutorial = PAGES["CallingAService"]
    page = tutorial.read_text()
    names = re.findall(r'@Code\(name: "main.swift", file: "([\w.-]+)"\)', page)
    return [tutorial.parent / "Resources" / name for name in names]


def parts() -> dict[str, str]:
    """All code of the pages that is run, by its name."""
    found = {f"migration: {heading}": code for heading, code in migration().items()}
    return found | {file.stem: file.read_text() for file in tutorial()}


def _function(number: int, code: str) -> str:
    body = re.sub(r"^import Pinfold\w+\n", "", code, flags=re.MULTILINE)
    for service, index in SERVICES.items():
        body = body.replace(f'"{service}', f'"\\(CommandLine.arguments[{index}])')
    return (f"@Sendable func part{number}(\n"
            "    _ session: SessionManager, _ api: HTTPSessionManager<JSONResponseSerializer>\n"
            f") async throws {{\n{body}}}\n")


def write_if_new(path: Path, text: str) -> None:
    """Leaves a file alone that has the same text, so that it is not compiled again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def build() -> Path:
    """The folder of the programs, built; it stays, so that a second run builds little.

    They are built where this package's tests are: what the library consists of has been compiled
    there, by the same commands."""
    folder = ROOT / ".build-outside"
    all_parts = parts()
    functions = "\n".join(_function(number, code) for number, code in enumerate(all_parts.values()))
    entries = "\n".join(f'    "{name}": part{number},' for number, name in enumerate(all_parts))
    write_if_new(folder / "Package.swift", _MANIFEST.replace("{root}", str(ROOT)))
    write_if_new(folder / "Sources/outside/main.swift", program())
    write_if_new(folder / "Sources/pages/main.swift", _MAIN)
    write_if_new(
        folder / "Sources/pages/Parts.swift",
        _PAGES.replace("{functions}", functions).replace("{entries}", entries))
    soak = ROOT / "deploy/faults/Sources"
    for name, target in {"requests": "faulty-requests", "CMalloc": "CMalloc"}.items():
        for file in (soak / name).iterdir():
            write_if_new(folder / "Sources" / target / file.name, file.read_text())
    if (resolved := ROOT / "Package.resolved").exists():
        # The versions of the packages that this one is built with.
        shutil.copy(resolved, folder)
    built = subprocess.run(
        ["swift", "build", "--package-path", folder, *TEST_BUILD, "--ignore-lock"], cwd=ROOT,
        capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return BUILT


def check(program: Path, built: Path) -> str:
    """What the compiler has to say about a program as it is, as the main file of a target."""
    result = subprocess.run(
        ["swiftc", "-typecheck", "-swift-version", "6", "-warnings-as-errors",
         "-I", built / "Modules",
         *(argument for file in module_maps(built) for argument in ("-I", file.parent)), program],
        capture_output=True, text=True, timeout=300)
    return result.stderr or f"exit code {result.returncode}" * (result.returncode != 0)
