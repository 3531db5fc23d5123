"""`kprobes demo`: the tutorial's guests, for those who have only the package."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from kprobes.cli import main
from kprobes.cli._demo import names

pytestmark = pytest.mark.quick
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def test_demo_guests_are_those_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):  # the second time they are there, and the same
        done = CliRunner().invoke(main, ["demo"])
        assert done.exit_code == 0, done.output
    written = tmp_path / "examples"
    assert {path.relative_to(written).as_posix(): path.read_bytes() for path in written.rglob("*") if path.is_file()} == {
        name: (EXAMPLES / name).read_bytes() for name in names(EXAMPLES)}


@pytest.mark.parametrize("page", ["tutorial", "cookbook/firmware", "cookbook/stripped"])
def test_files_that_pages_name_are_written(page: str) -> None:
    """Pages say that their commands can be typed where `kprobes demo` was."""
    text = (EXAMPLES.parent / "docs" / f"{page}.md").read_text()
    commands = [block for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL) if "$ python" not in block]
    named = {name.rstrip(".,:") for block in commands for name in re.findall(r"\bexamples/([\w./-]+)", block)}
    assert named and named <= {*names(EXAMPLES)}


def test_a_wheel_has_what_demo_writes() -> None:
    project = (EXAMPLES.parent / "pyproject.toml").read_text()
    assert set(re.findall(r'"examples/(.*)" = "kprobes/demo/\1"', project)) == {*names(EXAMPLES)}


def test_what_demo_says_to_try_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(main, ["demo", "here"]).output.splitlines()
    commands = [shlex.split(line) for line in said if line.startswith("  kprobes ")]
    assert len(commands) == 3
    for _, *words in commands:
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, (words, done.output)
        assert "crc32" in done.output or "@calls" in done.output


def test_a_file_of_another_content_stays(tmp_path: Path) -> None:
    (tmp_path / names(EXAMPLES)[-1]).write_text("mine")
    done = CliRunner().invoke(main, ["demo", str(tmp_path)])
    assert done.exit_code == 1 and "name another folder" in done.output
    assert [path.name for path in tmp_path.iterdir()] == [names(EXAMPLES)[-1]]
