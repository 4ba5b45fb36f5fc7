"""The tables on the page ComingFromSquid, and the files that their examples name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import yaml
from cryptography.x509.oid import ExtendedKeyUsageOID

from .checkout import PAGES
from .credentials import bcrypt, digest, write
from .pki import root
from .signed_tokens import signers

PAGE = PAGES["ComingFromSquid"]
ISSUER = signers()["ec"]


class Row(NamedTuple):
    section: str
    squid: str
    haproxy: str
    yaml: str

    @property
    def name(self) -> str:
        """What the directive in Squid, or else in HAProxy, begins with."""
        said = self.haproxy if self.squid == "–" else self.squid
        return re.sub(r"`", "", said).split(", `")[0][:56]

    @property
    def example(self) -> str:
        """The configuration, as text."""
        return self.yaml.strip("`") + "\n"


def rows() -> list[Row]:
    found = []
    section = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        cells = re.fullmatch(r"\| (.*) \| (.*) \| (.*) \|", line)
        if cells and cells[1] != "Squid" and not cells[1].startswith("---"):
            found.append(Row(section, *(cell.strip() for cell in cells.groups())))
    return found


ROWS = rows()


def section(*names: str) -> list[Row]:
    """The rows below these headings."""
    assert {row.section for row in ROWS} >= set(names)
    return [row for row in ROWS if row.section in names]


def files(folder: Path) -> None:
    """What the examples name."""
    write(folder / "ads.txt", "ads.test", "tracker.test")
    write(folder / "blocked.html", "<p>{{rule}}</p>")
    write(folder / "users.htpasswd", f"ann:{bcrypt('a')}", f"ci:{bcrypt('c')}")
    write(folder / "groups.txt", "admins: ann")
    write(folder / "tokens.txt", f"ci:{digest('open-sesame')}:build")
    write(folder / "secret", "hush")
    (folder / "issuer.pem").write_bytes(ISSUER.pem)
    authority = root(folder, "authority")
    leaf = authority.issue("proxy.test", "127.0.0.1")
    device = authority.issue("device.test", usage=ExtendedKeyUsageOID.CLIENT_AUTH)
    for name, made in {"ca.pem": authority.pem_file, "ca.key": authority.key_file,
                       "cert.pem": leaf.chain_file(), "key.pem": leaf.key_file,
                       "client.pem": device.chain_file(), "client.key": device.key_file}.items():
        write(folder / name, made.read_text().rstrip())


def in_folder(example: str, folder: Path) -> dict:
    """An example whose files are those of a folder."""
    return yaml.safe_load(re.sub(
        r"\b(ads\.txt|blocked\.html|users\.htpasswd|groups\.txt|tokens\.txt|secret|issuer\.pem|"
        r"cert\.pem|key\.pem|ca\.pem|ca\.key|client\.pem|client\.key)\b",
        lambda one: str(folder / one[0]), yaml.safe_dump(yaml.safe_load(example))))
