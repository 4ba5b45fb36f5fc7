#!/usr/bin/env python3
"""Writes the bill of materials: SPDX 2.3 as JSON.

It names what is linked into the program (Swift's runtime and packages) and what it loads (Debian's
libraries), with versions.

    sbom.py --program pinfold --version 1.0 --revision 1a2b --workspace .build/workspace-state.json
            --output pinfold.spdx.json
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from datetime import datetime, timezone
from os import environ
from pathlib import Path
from typing import Any

from libraries import loaded, package, packages

# Of Swift's packages, by their names: under which licence they are.
APACHE = "Apache-2.0 WITH Swift-exception"
LICENSES = {"swift-http-types": "Apache-2.0", "swift-http-structured-headers": "Apache-2.0",
            "swift-log": "Apache-2.0", "swift-metrics": "Apache-2.0",
            "swift-distributed-tracing": "Apache-2.0"}


def identifier(name: str) -> str:
    return "SPDXRef-Package-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def entry(name: str, version: str, license: str = "NOASSERTION", location: str = "NOASSERTION",
          **more: Any) -> dict[str, Any]:
    return {"SPDXID": identifier(name), "name": name, "versionInfo": version,
            "downloadLocation": location, "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
            "licenseDeclared": license, "copyrightText": "NOASSERTION", **more}


def reference(locator: str) -> dict[str, Any]:
    return {"externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": locator}]}


def swift_packages(workspace: Path) -> list[dict[str, Any]]:
    """The packages that SwiftPM resolved; all of them are linked statically."""
    state = json.loads(workspace.read_text(encoding="utf-8"))
    made = []
    for dependency in state["object"]["dependencies"]:
        about, checkout = dependency["packageRef"], dependency["state"]["checkoutState"]
        version, location = checkout.get("version", checkout["revision"]), about["location"]
        host = re.sub(r"^https://|\.git$", "", location)
        made.append(entry(
            about["identity"], version, LICENSES.get(about["identity"], APACHE),
            f"git+{location}@{checkout['revision']}", **reference(f"pkg:swift/{host}@{version}")))
    return sorted(made, key=lambda each: str(each["name"]))


def swift_runtime(swift: str) -> dict[str, Any]:
    """The parts of the toolchain that are linked statically: standard library and Foundation."""
    release = re.search(r"\((swift-[^)]+)\)", swift)
    version = re.search(r"Swift version (\S+)", swift)
    if not version:
        raise SystemExit(f"error: no version in {swift!r}")
    return entry("swift-runtime", version[1], APACHE, "https://www.swift.org/install/linux/",
                 comment="Standard library, concurrency and FoundationEssentials"
                         + (f" of {release[1]}" if release else ""))


def document(arguments: argparse.Namespace) -> dict[str, Any]:
    epoch = int(environ.get("SOURCE_DATE_EPOCH", "0"))
    program = arguments.program.read_bytes()
    main = entry("pinfold", arguments.version, "Apache-2.0", primaryPackagePurpose="APPLICATION",
                 comment=f"Revision {arguments.revision}; the checksum is the program's.",
                 checksums=[{"algorithm": "SHA256",
                             "checksumValue": hashlib.sha256(program).hexdigest()}])
    static = [swift_runtime(arguments.swift), *swift_packages(arguments.workspace)]
    libraries = loaded(arguments.program)
    direct = {each.package.name for each in libraries if each.direct}
    shared = [entry(each.name, each.version, primaryPackagePurpose="LIBRARY",
                    sourceInfo=f"built from Debian's source package {each.source}",
                    **reference(f"pkg:deb/debian/{each.name}@{each.version}"
                                f"?arch={each.architecture}"))
              for each in packages(libraries)]
    roots = package("ca-certificates")
    shared.append(entry(roots.name, roots.version,
                        **reference(f"pkg:deb/debian/{roots.name}@{roots.version}?arch=all")))
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", main["SPDXID"])]
    relations += [(main["SPDXID"], "STATIC_LINK", each["SPDXID"]) for each in static]
    relations += [(main["SPDXID"], "DYNAMIC_LINK" if each["name"] in direct else "DEPENDS_ON",
                   each["SPDXID"]) for each in shared]
    name = f"pinfold-{arguments.version}"
    digest = hashlib.sha256(program).hexdigest()
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": name, "documentNamespace": f"https://spdx.org/spdxdocs/{name}-{digest}",
        "creationInfo": {
            "created": datetime.fromtimestamp(epoch, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Organization: The Pinfold developers", "Tool: deploy/package"]},
        "packages": [main, *static, *shared],
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in relations],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--program", type=Path, required=True, metavar="FILE")
    parser.add_argument("--version", required=True, metavar="TEXT")
    parser.add_argument("--revision", required=True, metavar="TEXT")
    parser.add_argument("--swift", required=True, metavar="TEXT", help="what `swift --version` says")
    parser.add_argument("--workspace", type=Path, required=True, metavar="FILE")
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    arguments = parser.parse_args()
    made = json.dumps(document(arguments), indent=2, ensure_ascii=False)
    arguments.output.write_text(made + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
