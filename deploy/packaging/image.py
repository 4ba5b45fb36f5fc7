#!/usr/bin/env python3
"""Writes an image for containers: an OCI image layout as one tar file, made without a daemon.

The image has one layer: the files of --root, the shared libraries that the program loads, and the
packages' records and copyright notices that go with them, where scanners look for them. There is no
shell and no other program. With the same input the file has the same bytes.

    image.py --root tree --program usr/bin/pinfold --version 1.0 --revision 1a2b --output image.tar
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import tarfile
from datetime import datetime, timezone
from os import environ
from pathlib import Path
from typing import Any

from libraries import Library, loaded, output, owner, package, packages

# Of nobody else: what distroless images use for the same purpose.
USER = 65532
# What the program writes: owned by it.
STATE = "var/lib/pinfold"
EPOCH = int(environ.get("SOURCE_DATE_EPOCH", "0"))


class Layer:
    """A tar file, made of entries in the order of their names."""

    def __init__(self) -> None:
        self.entries: dict[str, tuple[tarfile.TarInfo, bytes]] = {}

    def add(self, name: str, kind: bytes, mode: int, content: bytes = b"", link: str = "",
            user: int = 0) -> None:
        for parent in reversed(Path(name).parents[:-1]):
            if str(parent) not in self.entries:
                self.add(str(parent), tarfile.DIRTYPE, 0o755)
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode, entry.mtime, entry.linkname = kind, mode, EPOCH, link
        entry.uid = entry.gid = user
        entry.size = len(content)
        self.entries[name] = (entry, content)

    def file(self, name: str, content: bytes, mode: int = 0o644) -> None:
        self.add(name, tarfile.REGTYPE, mode, content)

    def folder(self, name: str, mode: int, user: int = 0) -> None:
        self.add(name, tarfile.DIRTYPE, mode, user=user)

    def link(self, name: str, to: str) -> None:
        self.add(name, tarfile.SYMTYPE, 0o777, link=to)

    def tree(self, root: Path) -> None:
        for path in sorted(root.rglob("*")):
            if path.is_file():
                mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
                self.file(str(path.relative_to(root)), path.read_bytes(), mode)

    def tar(self) -> bytes:
        return tar([self.entries[name] for name in sorted(self.entries)])


def tar(entries: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for entry, content in entries:
            archive.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def system(layer: Layer, libraries: list[Library]) -> None:
    """What of Debian the program needs at run time."""
    # As in Debian, where /lib is /usr/lib.
    for name in ("bin", "lib", "lib64", "sbin"):
        layer.link(name, f"usr/{name}")
        layer.folder(f"usr/{name}", 0o755)
    # Where an engine mounts.
    for name in ("dev", "proc", "run", "sys"):
        layer.folder(name, 0o755)
    for library in libraries:
        path = str(library.path).lstrip("/")
        name = path if path.startswith("usr/") else f"usr/{path}"
        layer.file(name, library.path.resolve().read_bytes(), 0o755)
    files = [Path("/etc/ssl/certs/ca-certificates.crt"), Path("/etc/ssl/openssl.cnf")]
    files += filter(Path.exists, [Path("/usr/share/publicsuffix/public_suffix_list.dafsa")])
    zones = Path("/usr/share/zoneinfo")
    # By region and city, and not once more for leap seconds and old names.
    files += [path for path in sorted(zones.rglob("*")) if path.is_file() and (
        "/" in str(path.relative_to(zones)) or path.name == "UTC")
        and path.relative_to(zones).parts[0] not in ("posix", "right")]
    for path in files:
        layer.file(str(path).lstrip("/"), path.read_bytes())
    layer.link("usr/lib/ssl/openssl.cnf", "/etc/ssl/openssl.cnf")
    sources = {package("ca-certificates"), package("tzdata"),
               *(owner(path) for path in files if "publicsuffix" in str(path))}
    for each in sorted({*packages(libraries), *sources}, key=lambda p: p.name):
        layer.file(f"var/lib/dpkg/status.d/{each.name}", each.record.encode())
        layer.file(f"usr/share/doc/{each.name}/copyright", each.copyright.read_bytes())
    layer.file("etc/os-release", Path("/etc/os-release").read_bytes())
    layer.file("etc/passwd", f"root:x:0:0:root:/root:/usr/sbin/nologin\n"
               f"pinfold:x:{USER}:{USER}:Pinfold:/{STATE}:/usr/sbin/nologin\n".encode())
    layer.file("etc/group", f"root:x:0:\npinfold:x:{USER}:\n".encode())
    layer.file("etc/nsswitch.conf", b"hosts: files dns\n")


class Layout:
    """An OCI image layout: blobs by their hash, and an index."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def blob(self, kind: str, content: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(content).hexdigest()
        self.files[f"blobs/sha256/{digest}"] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}",
                "size": len(content)}

    def json(self, kind: str, content: dict[str, Any]) -> dict[str, Any]:
        return self.blob(kind, json.dumps(content, indent=1).encode())

    def tar(self) -> bytes:
        layer = Layer()
        for name, content in self.files.items():
            layer.file(name, content)
        return layer.tar()


def image(layer: bytes, arguments: argparse.Namespace) -> bytes:
    layout = Layout()
    created = datetime.fromtimestamp(EPOCH, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    program = f"/{arguments.program}"
    about = {
        "org.opencontainers.image.title": "pinfold",
        "org.opencontainers.image.description":
            "HTTP gateway that verifies and pins servers' certificates",
        "org.opencontainers.image.version": arguments.version,
        "org.opencontainers.image.revision": arguments.revision,
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.licenses": "Apache-2.0",
    }
    config: dict[str, Any] = {
        "User": f"{USER}:{USER}",
        "ExposedPorts": {"8080/tcp": {}},
        "Env": ["PATH=/usr/bin", "HOME=/" + STATE, "XDG_STATE_HOME=/var/lib",
                "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt"],
        "Entrypoint": [program],
        "Cmd": ["run", "--config", "/etc/pinfold/pinfold.yaml"],
        "Volumes": {f"/{STATE}": {}},
        "WorkingDir": "/etc/pinfold",
        "StopSignal": "SIGTERM",
        "Labels": about,
    }
    if arguments.health:
        # Not in OCI's specification, but what Docker reads in its images, too.
        config["Healthcheck"] = {"Test": ["CMD", program, *arguments.health.split()],
                                 "Interval": 30_000_000_000, "Timeout": 5_000_000_000}
    blob = layout.blob("layer.v1.tar+gzip", gzip.compress(layer, 9, mtime=0))
    configuration = layout.json("config.v1+json", {
        "created": created, "architecture": arguments.architecture, "os": "linux", "config": config,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
        "history": [{"created": created, "created_by": "deploy/package"}],
    })
    manifest = layout.json("manifest.v1+json", {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": configuration, "layers": [blob], "annotations": about,
    })
    manifest["platform"] = {"architecture": arguments.architecture, "os": "linux"}
    manifest["annotations"] = {
        "org.opencontainers.image.ref.name": arguments.tag,
        "io.containerd.image.name": f"localhost/pinfold:{arguments.tag}",
    }
    layout.files["index.json"] = json.dumps({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest]}, indent=1).encode()
    layout.files["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    return layout.tar()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--root", type=Path, required=True, metavar="DIRECTORY")
    parser.add_argument("--program", required=True, metavar="PATH", help="within --root")
    parser.add_argument("--version", required=True, metavar="TEXT")
    parser.add_argument("--revision", required=True, metavar="TEXT")
    parser.add_argument("--tag", required=True, metavar="TEXT")
    parser.add_argument("--health", default="", metavar="COMMAND", help="of the program")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    debian = output("dpkg", "--print-architecture").strip()
    arguments.architecture = {"armhf": "arm", "i386": "386"}.get(debian, debian)
    layer = Layer()
    system(layer, loaded(arguments.root / arguments.program))
    layer.tree(arguments.root)
    layer.folder(STATE, 0o700, USER)
    layer.folder("tmp", 0o1777)
    arguments.output.write_bytes(image(layer.tar(), arguments))


if __name__ == "__main__":
    main()
