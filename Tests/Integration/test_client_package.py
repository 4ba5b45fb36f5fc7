"""The client library in a package of its own: what README shows builds and runs as printed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from support.gateway import ROOT
from support.servers import HTTPBin

# The first build compiles the library and what it stands on.
pytestmark = pytest.mark.timeout(1800)

README = (ROOT / "README.md").read_text()

MANIFEST = """// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "outside",
    dependencies: [.package(name: "pinfold", path: "{root}")],
    targets: [
        .executableTarget(
            name: "outside", dependencies: [.product(name: "PinfoldClient", package: "pinfold")],
            swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)])
    ]
)
"""


def program() -> str:
    """README's program, without its indentation."""
    section = README.split("## The client library\n", 1)[1].split("\n## ", 1)[0]
    blocks = re.findall(r"(?:^(?:    .*)?\n)+", section, re.MULTILINE)
    code = next(block for block in blocks if "import PinfoldClient" in block)
    return re.sub(r"^    ", "", code, flags=re.MULTILINE).strip("\n") + "\n"


@pytest.fixture(scope="module")
def outside() -> Path:
    """The program, built; its folder stays, so that a second run builds little."""
    folder = ROOT / ".build-outside"
    (folder / "Sources/outside").mkdir(parents=True, exist_ok=True)
    (folder / "Package.swift").write_text(MANIFEST.format(root=ROOT))
    (folder / "Sources/outside/main.swift").write_text(program())
    built = subprocess.run(
        ["swift", "build", "--package-path", folder], capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder / ".build/debug/outside"


def test_the_program_has_about_twenty_lines() -> None:
    assert 15 <= len(program().splitlines()) <= 25


def test_the_program_of_the_readme_builds_and_runs_as_printed(
    outside: Path, httpbin: HTTPBin
) -> None:
    url = httpbin.url("/").removesuffix("/")
    ran = subprocess.run([outside, url], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    asked, sent, refused = ran.stdout.splitlines()
    assert asked == f'asked {url}/get?name=Ada, which saw ["name": "Ada"]'
    assert '"en"' in sent and '"fr"' in sent
    assert refused.startswith("refused:") and "404" in refused
