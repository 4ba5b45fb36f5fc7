"""Where things are in the checkout that the tests are part of."""

from __future__ import annotations

from pathlib import Path

from .gateway import ROOT

# The documentation's catalogues.
CATALOGUES = sorted(ROOT.glob("Sources/*/*/*.docc"))

# Its pages and tutorials, by their names.
PAGES = {path.stem: path for catalogue in CATALOGUES
         for pattern in ("*.md", "Tutorials/*.tutorial") for path in catalogue.glob(pattern)}

# The folders of the modules, by their names.
MODULES = {path.name: path for path in ROOT.glob("Sources/*/*") if path.is_dir()}


def module_maps(built: Path) -> list[Path]:
    """What the compiler needs beside the modules that were built in a folder."""
    return [*ROOT.glob("Sources/C/*/module.modulemap"), *built.glob("*.build/module.modulemap")]
