"""What a release consists of: the source distribution, and the list of what is in the wheel (.ci/release)."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

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
