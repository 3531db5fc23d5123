"""The conformance plugin: cells, failures, blanks, and the same through xdist."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
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

def test_elsewhere(conformance):
    conformance.under("Elsewhere")("toy", "kprobe", 3)

def test_nothing_here(conformance):
    table = conformance.under("Elsewhere")
    table.absent("other", "no emulator")
    table.absent("third", "no emulator")
    table.blank("third", "decode", "proved above")
    pytest.skip("no emulator")

def test_skipped(conformance):
    conformance("other", "post")
    conformance.blank("other", "boost", "no Jump")
    pytest.skip("not here")
'''


def run(tmp_path: Path, name: str, *options: str) -> str:
    (tmp_path / "test_suite.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "kprobes.conformance",
               f"--conformance={tmp_path / name}", *options, str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return (tmp_path / name).read_text()


@pytest.mark.quick
def test_other_runs_are_left_alone(tmp_path: Path) -> None:
    """Where the package is installed, neither it nor the option is loaded into pytest's runs of other projects."""
    assert "pytest11" not in (ROOT / "pyproject.toml").read_text()
    if any(entry.value == "kprobes.conformance" for entry in entry_points(group="pytest11")):
        pytest.skip("what is installed here is older than the sources: pip install -e . again")
    (tmp_path / "test_suite.py").write_text("import sys\n\ndef test_it():\n"
                                            "    assert not [name for name in sys.modules if name.startswith('kprobes')]\n")
    for options, status in ((), 0), (("--conformance=matrix.md",), 4):
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, str(tmp_path)],
                              cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr


@pytest.mark.parametrize("options", [pytest.param((), id="one process", marks=pytest.mark.quick),
                                     pytest.param(("-n", "2"), id="xdist")])
def test_json(tmp_path: Path, options: tuple[str, ...]) -> None:
    tables = json.loads(run(tmp_path, "matrix.json", *options))
    assert [*tables] == ["", "Elsewhere"]
    cells, elsewhere = tables.values()
    assert cells["toy"]["kprobe"] == {"proved": 12, "failed": 0}
    assert cells["toy"]["made up"] == {"proved": 6, "failed": 0}
    assert cells["toy"]["jprobe"] == {"proved": 0, "failed": 1}
    assert cells["toy"]["post"] == {"blank": "not tested in this run"}
    assert cells["paper"]["kprobe"] == {"proved": 1, "failed": 0, "note": "a toy"}
    assert cells["other"]["boost"] == {"blank": "no Jump"}
    assert cells["other"]["post"] == {"blank": "not tested in this run"}
    assert elsewhere["toy"]["kprobe"] == {"proved": 3, "failed": 0} and elsewhere["toy"]["post"].keys() == {"blank"}
    assert elsewhere["other"]["kprobe"] == {"blank": "no emulator", "absent": True}
    assert elsewhere["third"]["decode"] == {"blank": "proved above"}


def test_markdown(tmp_path: Path) -> None:
    first, second = run(tmp_path, "matrix.md").split("\n## Elsewhere\n\n")
    assert "- without a row: other: no emulator\n" in second and "| other " not in second
    assert "| third | - (" in second
    lines = first.splitlines()
    assert lines[0].startswith("| architecture | decode | step |")
    toy = next(line for line in lines if line.startswith("| toy "))
    assert " 12 |" in toy
    assert "**1 FAILED**" in toy
    assert any("no Jump" in line for line in lines)


def test_what_was_skipped_is_not_lost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """docs/generate.py --proved: where there is no emulator nothing is missed; where there is, everything."""
    spec = importlib.util.spec_from_file_location("generate_proved", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    page = tmp_path / "support.json"
    monkeypatch.setattr(generate, "SUPPORT", page)
    proved, absent, lost = {"proved": 3, "failed": 0}, {"blank": "no emulator", "absent": True}, {"blank": "not tested"}
    page.write_text(json.dumps({"": {"a": {"kprobe": proved}}, "Elsewhere": {"a": {"kprobe": proved}}}))
    here = {"": {"a": {"kprobe": proved}}}
    assert generate.changed({**here, "Elsewhere": {"a": {"kprobe": absent}}}) == []
    for now in (here, {**here, "Elsewhere": {"a": {"kprobe": lost}}}):
        assert [line.split(";")[0] for line in generate.changed(now)] == [
            "docs/support.json: Elsewhere: a, kprobe: no longer proved"]
    assert len(generate.changed({**here, "Elsewhere": {"a": {"kprobe": proved, "post": proved}}})) == 1
