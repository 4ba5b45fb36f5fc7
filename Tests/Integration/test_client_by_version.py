"""The client library as a dependency like any other: a new package that knows its address, a version
and the name of the product.

What such a package consists of is read from the plan of its build. `deploy/client` builds it as well,
from nothing, and runs it: that compiles the whole library once more. The same program is built and run
where the library is compiled already in test_client_package.py."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from support import outside
from support.gateway import ROOT
from support.servers import HTTPBin

pytestmark = pytest.mark.timeout(1800)

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


def swift_build(package: Path, *options: str) -> str:
    result = subprocess.run(["swift", "build", "--package-path", package, *options],
                            capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the package, with the plan of its build."""
    folder = tmp_path_factory.mktemp("by-version")
    clone, package = folder / "pinfold", folder / "fresh"
    # The last commit, as a release of it would be.
    subprocess.run(["git", "clone", "--quiet", "--no-local", ROOT, clone], check=True)
    subprocess.run(["git", "-C", clone, "tag", VERSION], check=True)
    outside.write_if_new(package / "Package.swift", MANIFEST.replace("{clone}", str(clone)))
    outside.write_if_new(package / "Sources/fresh/main.swift", outside.program())
    # Everything that comes before the first command of a build, and no command.
    swift_build(package, "--print-manifest-job-graph")
    return package


def steps(package: Path, description: str) -> dict[str, list[str]]:
    """The commands of the plan that a description begins like this: its rest, and the command."""
    text = (package / ".build/debug.yaml").read_text()
    found = re.findall(rf'description: "{description}(.*)"\n    args: (\[.*\])$', text, re.MULTILINE)
    return {rest: json.loads(command) for rest, command in found}


def test_it_gets_the_version_that_it_asks_for(fresh: Path) -> None:
    resolved = (fresh / "Package.resolved").read_text()
    assert f'"version" : "{VERSION}"' in resolved


def test_no_module_has_a_name_that_others_are_likely_to_have(fresh: Path) -> None:
    modules = {command[command.index("-module-name") + 1]
               for command in steps(fresh, "Compiling Swift Module ").values()}
    assert {"PinfoldClient", "PinfoldEngine", "fresh"} <= modules
    assert not modules & COMMON_NAMES


def test_it_links_no_library_that_it_does_not_need(fresh: Path) -> None:
    (command,) = [command for rest, command in steps(fresh, "Linking ").items()
                  if rest.endswith("/fresh")]
    linked = [f"lib{word[2:]}" for word in command if word.startswith("-l")]
    assert "libssl" in linked
    assert [one for one in linked
            if one.startswith(tuple(name.removesuffix(".so") for name in NOT_LINKED))] == []


@pytest.mark.slow
@pytest.mark.skipif("PINFOLD_CLIENT_FROM_NOTHING" not in os.environ,
                    reason="deploy/client builds it from nothing")
def test_its_program_builds_from_nothing_and_runs(fresh: Path, httpbin: HTTPBin) -> None:
    swift_build(fresh)
    program = fresh / ".build/debug/fresh"
    url = httpbin.url("/").removesuffix("/")
    ran = subprocess.run([program, url], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"asked {url}/get?name=Ada")
    loaded = subprocess.run(
        ["ldd", program], capture_output=True, text=True, check=True, timeout=60).stdout
    assert "libssl" in loaded
    assert [name for name in NOT_LINKED if name in loaded] == []
    modules = {path.stem for path in (fresh / ".build/debug/Modules").glob("*.swiftmodule")}
    assert "PinfoldClient" in modules and not modules & COMMON_NAMES
