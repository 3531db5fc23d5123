"""The conformance plugin: cells, failures, blanks, and the same through xdist."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = '''
import pytest

@pytest.mark.parametrize("n", range(6))
def test_many(n, conformance):
    conformance("toy", "kprobe", 2)
    conformance("toy", "made up")

def test_on_paper(conformance):
    conformance("paper", "kprobe")
    conformance.note("paper", "a toy")

def test_fails(conformance):
    conformance("toy", "jprobe")
    assert False

def test_skipped(conformance):
    conformance("other", "post")
    conformance.blank("other", "boost", "no Jump")
    pytest.skip("not here")
'''


def run(tmp_path: Path, name: str, *options: str) -> str:
    (tmp_path / "test_suite.py").write_text(SUITE)
    plugin = ["-p", "kprobes.conformance"] if not _installed() else []
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin,
               f"--conformance={tmp_path / name}", *options, str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return (tmp_path / name).read_text()


def _installed() -> bool:
    from importlib.metadata import entry_points

    return any(e.value == "kprobes.conformance" for e in entry_points(group="pytest11"))


@pytest.mark.parametrize("options", [pytest.param((), id="one process", marks=pytest.mark.quick),
                                     pytest.param(("-n", "2"), id="xdist")])
def test_json(tmp_path: Path, options: tuple[str, ...]) -> None:
    cells = json.loads(run(tmp_path, "matrix.json", *options))
    assert cells["toy"]["kprobe"] == {"proved": 12, "failed": 0}
    assert cells["toy"]["made up"] == {"proved": 6, "failed": 0}
    assert cells["toy"]["jprobe"] == {"proved": 0, "failed": 1}
    assert cells["toy"]["post"] == {"blank": "not tested in this run"}
    assert cells["paper"]["kprobe"] == {"proved": 1, "failed": 0, "note": "a toy"}
    assert cells["other"]["boost"] == {"blank": "no Jump"}
    assert cells["other"]["post"] == {"blank": "not tested in this run"}


def test_markdown(tmp_path: Path) -> None:
    lines = run(tmp_path, "matrix.md").splitlines()
    assert lines[0].startswith("| architecture | decode | step |")
    toy = next(line for line in lines if line.startswith("| toy "))
    assert " 12 |" in toy
    assert "**1 FAILED**" in toy
    assert any("no Jump" in line for line in lines)
