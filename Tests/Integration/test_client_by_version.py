"""The client library as a dependency like any other: a new package that knows its address, a version
and the name of the product."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support import outside
from support.gateway import ROOT
from support.servers import HTTPBin

# Everything that the library consists of is compiled.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

VERSION = "900.1.0"

MANIFEST = """// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "fresh",
    dependencies: [.package(url: "file://{clone}", from: "900.0.0")],
    targets: [
        .executableTarget(
            name: "fresh", dependencies: [.product(name: "PinfoldClient", package: "pinfold")])
    ]
)
"""

# Names that other packages' modules are likely to have.
COMMON_NAMES = {"TLS", "Engine", "Cookies", "Resolver", "Pinning", "Admin", "Notation"}

# What the library does without: RE2, and what decodes images.
NOT_LINKED = ("libre2", "libjpeg", "libpng", "libwebp", "libavif", "libFoundation.so", "libicu",
              "lib_FoundationICU")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the program, which is built from nothing."""
    folder = tmp_path_factory.mktemp("by-version")
    clone, package = folder / "pinfold", folder / "fresh"
    # The last commit, as a release of it would be.
    subprocess.run(["git", "clone", "--quiet", "--no-local", ROOT, clone], check=True)
    subprocess.run(["git", "-C", clone, "tag", VERSION], check=True)
    outside.write_if_new(package / "Package.swift", MANIFEST.replace("{clone}", str(clone)))
    outside.write_if_new(package / "Sources/fresh/main.swift", outside.program())
    result = subprocess.run(
        ["swift", "build", "--package-path", package], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return package / ".build/debug"


def test_its_program_builds_and_runs(built: Path, httpbin: HTTPBin) -> None:
    url = httpbin.url("/").removesuffix("/")
    ran = subprocess.run([built / "fresh", url], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"asked {url}/get?name=Ada")


def test_it_gets_the_version_that_it_asks_for(built: Path) -> None:
    resolved = (built.parents[1] / "Package.resolved").resolve().read_text()
    assert f'"version" : "{VERSION}"' in resolved


def test_no_module_has_a_name_that_others_are_likely_to_have(built: Path) -> None:
    modules = {path.stem for path in (built / "Modules").glob("*.swiftmodule")}
    assert "PinfoldClient" in modules and "PinfoldEngine" in modules
    assert not modules & COMMON_NAMES


def test_it_links_no_library_that_it_does_not_need(built: Path) -> None:
    linked = subprocess.run(
        ["ldd", built / "fresh"], capture_output=True, text=True, check=True, timeout=60).stdout
    assert "libssl" in linked
    assert [name for name in NOT_LINKED if name in linked] == []
