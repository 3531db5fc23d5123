#!/usr/bin/env python3
"""Complete the list of what is in a release (CycloneDX): `tools/sbom.py ENVIRONMENT > sbom.json`.

ENVIRONMENT is what `cyclonedx-py environment` says of an environment where only the wheel is installed. That program
knows Python packages, and their licences as far as their metadata does.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = "kprobes"

#: What an environment has before anything is installed; no part of a release.
INSTALLERS = {"pip", "setuptools", "wheel"}

#: Licences that the packages' own metadata does not say, or says wrongly, by their licence texts: package -> SPDX id,
#: or a name where SPDX has none.
LICENCES = {
    "capstone": {"id": "BSD-3-Clause"},
    "pyelftools": {"name": "Public domain"},
    "unicorn": {"id": "GPL-2.0-only"},
}

D3 = "kprobes/pictures/libraries/d3.js"
DAGRE = "kprobes/pictures/libraries/dagre.js"
UPLOT = "kprobes/pictures/libraries/uplot.js"
FREERTOS = "kprobes/demo/freertos/freertos.bin"

#: What the wheel has of others: type of the package's address, name, version or "" where none is recorded, SPDX id of
#: its licence, file in the wheel. Versions are those of the notices beside these files (tests/test_release.py).
BUNDLED = [
    ("npm", "d3-scale", "4.0.3", "ISC", D3),
    ("npm", "d3-scale-chromatic", "3.1.1", "ISC", D3),
    ("npm", "d3-zoom", "3.0.1", "ISC", D3),
    ("npm", "d3-selection", "3.0.1", "ISC", D3),
    ("npm", "d3-ease", "3.0.2", "BSD-3-Clause", D3),
    ("npm", "internmap", "2.0.3", "ISC", D3),
    ("npm", "d3-array", "", "ISC", D3),
    ("npm", "d3-color", "", "ISC", D3),
    ("npm", "d3-dispatch", "", "ISC", D3),
    ("npm", "d3-drag", "", "ISC", D3),
    ("npm", "d3-format", "", "ISC", D3),
    ("npm", "d3-interpolate", "", "ISC", D3),
    ("npm", "d3-time", "", "ISC", D3),
    ("npm", "d3-time-format", "", "ISC", D3),
    ("npm", "d3-timer", "", "ISC", D3),
    ("npm", "d3-transition", "", "ISC", D3),
    ("npm", "@dagrejs/dagre", "3.1.3", "MIT", DAGRE),
    ("npm", "@dagrejs/graphlib", "4.0.6", "MIT", DAGRE),
    ("npm", "uPlot", "1.6.32", "MIT", UPLOT),
    ("github", "FreeRTOS/FreeRTOS-Kernel", "4269c69a16f924c11adeedbb31591f6fad9f41b2", "MIT", FREERTOS),
]


def bundled() -> list[dict[str, Any]]:
    """The components that are inside the wheel."""
    out = []
    for kind, name, version, licence, file in BUNDLED:
        address = f"pkg:{kind}/{quote(name.lower())}" + (f"@{version}" if version else "")
        component: dict[str, Any] = {
            "bom-ref": address,
            "evidence": {"occurrences": [{"location": file}]},
            "licenses": [{"license": {"acknowledgement": "declared", "id": licence}}],
            "name": name,
            "purl": address,
            "type": "library",
        }
        if version:
            component["version"] = version
        out.append(component)
    return out


def without_installers(bom: dict[str, Any]) -> None:
    """Remove what was in the environment before the wheel."""
    gone = {part["bom-ref"] for part in bom["components"] if part["name"] in INSTALLERS}
    bom["components"] = [part for part in bom["components"] if part["bom-ref"] not in gone]
    bom["dependencies"] = [entry for entry in bom["dependencies"] if entry["ref"] not in gone]


def take_root(bom: dict[str, Any]) -> dict[str, Any]:
    """Make the wheel the component that the list is about.

    Returns:
        That component.
    """
    root: dict[str, Any] = next(part for part in bom["components"] if part["name"] == ROOT)
    bom["components"].remove(root)
    bom["metadata"]["component"] = root
    root["purl"] = f"pkg:pypi/{ROOT}@{root['version']}"
    links = root.pop("externalReferences", [])
    for link in links:
        if link["type"] == "distribution":  # a file in the folder of the build, which nobody else has
            root["hashes"] = link["hashes"]
    root["externalReferences"] = [link for link in links if link["type"] != "distribution"]
    return root


def has_spdx_licence(part: dict[str, Any]) -> bool:
    """True if the component has licences, and each is an SPDX id or an SPDX expression."""
    said = part.get("licenses", [])
    return bool(said) and all("expression" in choice or "id" in choice["license"] for choice in said)


def complete(bom: dict[str, Any]) -> None:
    """Add what is known here, and remove what is not shipped.

    Args:
        bom: what cyclonedx-py said, changed in place.

    Raises:
        SystemExit: a package's licence is known neither by an SPDX id nor by LICENCES.
    """
    without_installers(bom)
    root = take_root(bom)
    for part in bom["components"]:
        if part["name"] in LICENCES:
            part["licenses"] = [{"license": {"acknowledgement": "concluded", **LICENCES[part["name"]]}}]
        elif not has_spdx_licence(part):
            raise SystemExit(
                f"sbom: {part['name']}: its metadata names no SPDX licence; read its text, add it to LICENCES"
            )
    inside = bundled()
    bom["components"] += inside
    for entry in bom["dependencies"]:
        if entry["ref"] == root["bom-ref"]:
            entry["dependsOn"] = sorted([*entry.get("dependsOn", []), *(part["bom-ref"] for part in inside)])
    bom["dependencies"] += [{"ref": part["bom-ref"]} for part in inside]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment", type=Path, help="what cyclonedx-py wrote")
    bom = json.loads(parser.parse_args().environment.read_text())
    complete(bom)
    print(json.dumps(bom, indent=2, sort_keys=True))


if __name__ == "__main__":
    main()
