"""What a release consists of: the source distribution, and the list of what is in the wheel (.ci/release)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
BUILD = PROJECT["tool"]["hatch"]["build"]["targets"]

pytestmark = pytest.mark.quick


@pytest.mark.skipif(not (ROOT / ".git").exists() or shutil.which("git") is None, reason="not a clone")
def test_the_source_distribution_has_all_that_git_has() -> None:
    said = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = {name.split("/")[0] for name in said.splitlines()}
    needed = {name for name in tracked if not name.startswith(".git")} - {"pyproject.toml"}  # which is always in it
    assert {f"/{name}" for name in needed} == set(BUILD["sdist"]["include"])


@pytest.fixture
def sbom(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import sbom
    return sbom


def part(name: str, version: str, licence: str, **more: Any) -> dict[str, Any]:
    """As cyclonedx-py says it, of a package whose licence is an SPDX id or a classifier."""
    kind = "name" if "::" in licence else "id"
    return {"bom-ref": f"{name}=={version}", "name": name, "version": version, "type": "library",
            "licenses": [{"license": {"acknowledgement": "declared", kind: licence}}], **more}


def environment() -> dict[str, Any]:
    built = {"type": "distribution", "url": "file:///tmp/build/kprobes.whl",
             "hashes": [{"alg": "SHA-256", "content": "12fb"}]}
    return {"metadata": {},
            "components": [part("kprobes", "1.0", "MIT", externalReferences=[built]), part("pip", "23.2.1", "MIT"),
                           part("setuptools", "65.5.0", "MIT"), part("attrs", "26.1.0", "MIT"),
                           part("unicorn", "2.1.4", "License :: OSI Approved :: BSD License")],
            "dependencies": [{"ref": "kprobes==1.0", "dependsOn": ["attrs==26.1.0", "unicorn==2.1.4"]},
                             {"ref": "pip==23.2.1"}, {"ref": "setuptools==65.5.0", "dependsOn": ["pip==23.2.1"]},
                             {"ref": "attrs==26.1.0"}, {"ref": "unicorn==2.1.4"}]}


def test_the_list_is_about_the_wheel_and_has_what_is_in_it(sbom: ModuleType) -> None:
    bom = environment()
    sbom.complete(bom)
    root = bom["metadata"]["component"]
    assert (root["name"], root["purl"]) == ("kprobes", "pkg:pypi/kprobes@1.0")
    assert root["hashes"] == [{"alg": "SHA-256", "content": "12fb"}]
    assert "file://" not in str(bom)
    names = [found["name"] for found in bom["components"]]
    assert names[:2] == ["attrs", "unicorn"]
    assert {"d3-scale", "@dagrejs/dagre", "uPlot", "FreeRTOS/FreeRTOS-Kernel"} < {*names}
    refs = {found["bom-ref"] for found in bom["components"]}
    assert len(refs) == len(names)
    depends = {entry["ref"]: entry.get("dependsOn", []) for entry in bom["dependencies"]}
    assert depends.keys() == {*refs, "kprobes==1.0"}
    assert {*depends["kprobes==1.0"]} == refs


def test_licences_that_metadata_says_wrongly(sbom: ModuleType) -> None:
    bom = environment()
    sbom.complete(bom)
    unicorn = next(found for found in bom["components"] if found["name"] == "unicorn")
    assert unicorn["licenses"] == [{"license": {"acknowledgement": "concluded", "id": "GPL-2.0-only"}}]


@pytest.mark.parametrize("licences", [[], [{"license": {"name": "License :: OSI Approved :: BSD License"}}]])
def test_a_licence_that_nobody_read_is_refused(sbom: ModuleType, licences: list[dict[str, Any]]) -> None:
    bom = environment()
    bom["components"].append({**part("new", "1", "MIT"), "licenses": licences})
    with pytest.raises(SystemExit, match="new: its metadata names no SPDX licence"):
        sbom.complete(bom)


def test_what_is_bundled_is_what_the_notices_say(sbom: ModuleType) -> None:
    shipped = {to: ROOT / source for source, to in BUILD["wheel"]["force-include"].items()}
    listed = set()
    for _, name, version, _, file in sbom.BUNDLED:
        path = shipped.get(file, ROOT / file)
        assert path.is_file()
        notice = path.with_suffix(".LICENSE") if path.suffix == ".js" else path.with_name("build.py")
        words = notice.read_text().split()
        assert name.split("/")[-1] in notice.read_text()
        assert not version or any(word.strip(",:") == version for word in words)
        listed.add(path)
    assert {*(ROOT / "kprobes/pictures/libraries").glob("*.js")} < listed
