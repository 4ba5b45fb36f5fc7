"""The documentation is sound as DocC reads it: each catalogue is converted, the client's with the
public symbols that it documents, and every link resolves."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from support.checkout import PAGES
from support.gateway import ROOT
from test_public_symbols import BUILT, exports, symbols

GATEWAY = PAGES["Gateway"].parent
CLIENT = PAGES["PinfoldClient"].parent


def converted(catalogue: Path, to: Path, name: str, graphs: Path | None = None) -> list[str]:
    """The archive of a catalogue is written to `to/made`; returns what DocC found wrong.

    A parameter without a line is no error: its name may say everything."""
    command = [
        "docc", "convert", catalogue, "--fallback-display-name", name,
        "--fallback-bundle-identifier", name, "--output-path", to / "made",
        "--diagnostics-file", to / "found.json",
        *(["--additional-symbol-graph-dir", graphs] if graphs else [])]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    found = json.loads((to / "found.json").read_text())["diagnostics"]
    return sorted(
        f"{Path(one.get('source', '')).name}:{one.get('range', {}).get('start', {}).get('line')}: "
        + one["summary"]
        for one in found
        if not re.fullmatch(r"Parameter '\w+' is missing documentation", one["summary"]))


def client_symbols(folder: Path) -> Path:
    """The symbol graphs of both products, as one module: a program that imports the library sees
    the types of the modules that it exports as its own, and the pages link to them as such."""
    extracted = folder / "extracted"
    extracted.mkdir()
    modules = exports().keys()
    for module in modules:
        symbols(module, BUILT / "Modules", extracted)
    for number, file in enumerate(sorted(extracted.glob("*.symbols.json"))):
        graph = json.loads(file.read_text())
        graph["module"]["name"] = "PinfoldClient"
        _, _, extended = file.name.removesuffix(".symbols.json").partition("@")
        name = f"PinfoldClient@{extended}" if extended and extended not in modules else "PinfoldClient"
        # Graphs of the same name are merged.
        merged = folder / "graphs" / str(number) / f"{name}.symbols.json"
        merged.parent.mkdir(parents=True)
        merged.write_text(json.dumps(graph))
    return folder / "graphs"


def test_the_pages_of_the_gateway_are_sound(tmp_path: Path) -> None:
    assert converted(GATEWAY, tmp_path, "Pinfold") == []


def test_the_pages_and_docstrings_of_the_client_and_its_tutorial_are_sound(tmp_path: Path) -> None:
    assert converted(CLIENT, tmp_path, "PinfoldClient", client_symbols(tmp_path)) == []
    made = tmp_path / "made/data"
    assert (made / "tutorials/pinfoldclient/callingaservice.json").exists()
    assert (made / "documentation/pinfoldclient/migration.json").exists()
    assert (made / "documentation/pinfoldclient/sessionmanager.json").exists()


def test_broken_links_in_pages_and_docstrings_are_found(tmp_path: Path) -> None:
    source = tmp_path / "Sample.swift"
    source.write_text("/// As ``Absent``.\npublic struct Present {}\n")
    graphs = tmp_path / "graphs"
    graphs.mkdir()
    subprocess.run(
        ["swiftc", "-emit-module", "-module-name", "Sample", "-emit-symbol-graph",
         "-emit-symbol-graph-dir", graphs, "-emit-module-path", tmp_path / "Sample.swiftmodule",
         source], check=True, capture_output=True, timeout=300)
    catalogue = tmp_path / "Sample.docc"
    catalogue.mkdir()
    (catalogue / "Sample.md").write_text(
        "# ``Sample``\n\nA sample: ``Present``, ``Missing``, <doc:Nowhere>, <doc:Page#Nothing>.\n")
    (catalogue / "Page.md").write_text("# Page\n\nA page.\n\n## Something\n\nText.\n")
    assert [one.partition(" doesn't")[0] for one in converted(catalogue, tmp_path, "Sample", graphs)] == [
        "Sample.md:3: 'Missing'", "Sample.md:3: 'Nothing'", "Sample.md:3: 'Nowhere'",
        "Sample.swift:1: 'Absent'"]


@pytest.mark.parametrize("root", [PAGES["Gateway"], PAGES["PinfoldClient"]], ids=lambda p: p.stem)
def test_a_catalogue_lists_each_of_its_pages(root: Path) -> None:
    listed = re.findall(r"^- <doc:([A-Za-z0-9]+)>$", root.read_text(), re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) >= {path.stem for path in root.parent.glob("*.md")} - {root.stem}


def test_the_files_that_answer_a_contributors_questions_exist() -> None:
    table = PAGES["Architecture"].read_text().partition("## Where things are\n")[2]
    rows = re.findall(r"^\| (.+\?) \| (.+) \|$", table.partition("\n## ")[0], re.MULTILINE)
    assert len(rows) >= 30
    for _, files in rows:
        paths = re.findall(r"`([^`]+)`", files)
        assert paths
        assert [path for path in paths if not (ROOT / "Sources" / path).exists()] == []


def system_packages(product: str, scratch: Path) -> set[str]:
    """The Debian packages of the system's libraries that a target links, directly or not."""
    # Libraries behind a header in C declare no packages.
    behind = {"CRE2": {"libre2-dev"},
              "CImages": {"libjpeg62-turbo-dev", "libpng-dev", "libwebp-dev", "libavif-dev"}}
    dumped = subprocess.run(
        ["swift", "package", "--scratch-path", scratch, "dump-package"], cwd=ROOT,
        capture_output=True, text=True, check=True, timeout=300)
    targets = {one["name"]: one for one in json.loads(dumped.stdout)["targets"]}
    reached, waiting = set(), [product]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += [one["target"][0] for one in targets[name]["dependencies"] if "target" in one]
    found = set().union(*(behind.get(name, set()) for name in reached))
    for name in reached:
        for provider in targets[name].get("providers") or []:
            found |= set(provider["apt"][0])
    return found


def test_the_clients_page_lists_the_debian_packages_that_each_product_needs(
    tmp_path: Path
) -> None:
    section = PAGES["PinfoldClient"].read_text().partition("## Debian packages\n")[2]
    section = section.partition("\n## ")[0]
    table = set(re.findall(r"`([a-z0-9.+-]+)`", "".join(
        line.split("|")[1] for line in section.splitlines() if line.startswith("| `"))))
    command = re.search(r"```shell\napt-get install (.*?)```", section, re.DOTALL)
    assert command is not None
    assert set(command[1].replace("\\\n", " ").split()) == table
    library = system_packages("PinfoldClient", tmp_path)
    assert table == library | {"g++", "pkg-config"}
    built = re.search(
        r"^build_packages=\((.*?)\)", (ROOT / "deploy/packages.sh").read_text(),
        re.MULTILINE | re.DOTALL)
    assert built is not None
    assert table <= set(built[1].split())
    (row,) = [line for line in PAGES["PinfoldClient"].read_text().splitlines()
              if line.startswith("| `PinfoldImages`")]
    assert set(re.findall(r"`(lib[a-z0-9-]+-dev)`", row)) == (
        system_packages("PinfoldImages", tmp_path) - library)
