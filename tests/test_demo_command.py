"""`kprobes demo`: the tutorial's guests, for those who have only the package."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from kprobes.cli import main

FILES = ("demo.arm64", "demo.c", "demo.x86_64")
pytestmark = pytest.mark.quick
EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def test_demo_guests_are_those_of_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):  # the second time they are there, and the same
        done = CliRunner().invoke(main, ["demo"])
        assert done.exit_code == 0, done.output
    assert {path.name: path.read_bytes() for path in (tmp_path / "examples").iterdir()} == {
        name: (EXAMPLES / name).read_bytes() for name in FILES}


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
    (tmp_path / FILES[-1]).write_text("mine")
    done = CliRunner().invoke(main, ["demo", str(tmp_path)])
    assert done.exit_code == 1 and "name another folder" in done.output
    assert [path.name for path in tmp_path.iterdir()] == [FILES[-1]]
