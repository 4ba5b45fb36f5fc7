"""What a program is linked with: the shared libraries that it loads, and Debian's packages that they
are in."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path


def output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, check=True, text=True,
                          env={"LC_ALL": "C.UTF-8", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}).stdout


@dataclass(frozen=True)
class Package:
    """An installed package of Debian, with what dpkg's database says of it."""

    name: str
    architecture: str
    version: str
    source: str
    record: str

    @property
    def copyright(self) -> Path:
        return Path("/usr/share/doc") / self.name / "copyright"


@dataclass(frozen=True)
class Library:
    """A shared library: as the loader finds it, and whether the program itself asks for it."""

    path: Path
    package: Package
    direct: bool


@cache
def package(name: str) -> Package:
    shown = "${Package}\\n${Architecture}\\n${Version}\\n${source:Package}"
    fields = output("dpkg-query", "-W", "-f", shown, name).split("\n")
    return Package(*fields, record=output("dpkg-query", "-s", name))


def owner(path: Path) -> Package:
    """The package that a file is in. With a merged /usr, dpkg may know it by either name."""
    real = path.resolve()
    for name in (real, path, *(Path(str(p).removeprefix("/usr")) for p in (real, path))):
        found = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True)
        if found.returncode == 0:
            return package(found.stdout.split(": ")[0])
    raise SystemExit(f"error: {path} is in no package of Debian")


def loaded(program: Path) -> list[Library]:
    """All that the loader maps for a program, the loader itself included, by path."""
    asked = set(re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "--dynamic", program)))
    paths = re.findall(r"(/\S+) \(0x[0-9a-f]+\)$", output("ldd", program), re.MULTILINE)
    return [Library(Path(path), owner(Path(path)), Path(path).name in asked)
            for path in sorted(set(paths))]


def packages(libraries: list[Library]) -> list[Package]:
    """Each package once, by name."""
    return sorted({library.package for library in libraries}, key=lambda p: p.name)
