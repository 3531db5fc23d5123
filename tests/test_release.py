"""What a release consists of: the source distribution, and the list of what is in the wheel (.ci/release)."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from packaging.utils import parse_wheel_filename

from kprobes.native.build import MACOS

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
def built(tmp_path: Path) -> tuple[ModuleType, list[Path]]:
    """The wheels that tools/wheels.py makes of a small one."""
    about = "kprobes-1.0.dist-info"
    found = {"kprobes/__init__.py": b"", "kprobes/native/x86_64.so": b"1", "kprobes/native/aarch64.so": b"2",
             "kprobes/native/hits.c": b"3", f"{about}/RECORD": b"",
             f"{about}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    with zipfile.ZipFile(tmp_path / "kprobes-1.0-py3-none-any.whl", "w") as archive:
        for name, content in found.items():
            archive.writestr(zipfile.ZipInfo(name, (2020, 2, 2, 0, 0, 0)), content)
    for name in ("x86_64.dylib", "aarch64.dylib", "x86_64.dll"):
        (tmp_path / name).write_text(name)
    (tmp_path / "made").mkdir()
    spec = spec_from_file_location("wheels", ROOT / "tools" / "wheels.py")
    assert spec is not None and spec.loader is not None
    wheels = module_from_spec(spec)
    spec.loader.exec_module(wheels)
    return wheels, wheels.make(tmp_path / "kprobes-1.0-py3-none-any.whl", tmp_path, tmp_path / "made")


def test_each_platform_has_its_wheel_with_its_library(built: tuple[ModuleType, list[Path]]) -> None:
    libraries = {}
    for path in built[1]:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            tags = re.findall(r"^Tag: (.*)$", archive.read("kprobes-1.0.dist-info/WHEEL").decode(), re.MULTILINE)
            pure = b"Root-Is-Purelib: true" in archive.read("kprobes-1.0.dist-info/WHEEL")
            record = archive.read("kprobes-1.0.dist-info/RECORD").decode().splitlines()
            assert {line.split(",")[0] for line in record} == names
            assert all(line.split(",")[1] for line in record if "RECORD" not in line)
        assert {"kprobes/__init__.py", "kprobes/native/hits.c"} < names
        ours = sorted(name for name in names if name.endswith((".so", ".dylib", ".dll")))
        assert pure == (ours == [])
        assert {str(tag) for tag in parse_wheel_filename(path.name)[3]} == {*tags}
        for tag in tags:
            libraries[tag.removeprefix("py3-none-")] = [name.removeprefix("kprobes/native/") for name in ours]
    assert libraries == {
        "any": [],
        "manylinux_2_17_x86_64": ["x86_64.so"], "manylinux2014_x86_64": ["x86_64.so"],
        "manylinux_2_17_aarch64": ["aarch64.so"], "manylinux2014_aarch64": ["aarch64.so"],
        "musllinux_1_1_x86_64": ["x86_64.so"], "musllinux_1_1_aarch64": ["aarch64.so"],
        "macosx_11_0_x86_64": ["x86_64.dylib"], "macosx_11_0_arm64": ["aarch64.dylib"],
        "win_amd64": ["x86_64.dll"]}


def test_wheels_made_twice_are_the_same(built: tuple[ModuleType, list[Path]], tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    again = built[0].make(tmp_path / "kprobes-1.0-py3-none-any.whl", tmp_path, tmp_path / "again")
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in built[1]]


def test_wheels_for_macos_are_for_what_their_library_is_built_for(built: tuple[ModuleType, list[Path]]) -> None:
    names = {"x86_64": "x86_64", "aarch64": "arm64"}
    wanted = {f"macosx_{oldest.replace('.', '_')}_{names[host]}" for host, oldest in MACOS.items()}
    assert {tag for tag in built[0].platforms() if tag.startswith("macosx")} == wanted


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
