"""Scripts without a guest print what real bpftrace printed, which tools/beside_bpftrace asked in a real kernel."""

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from kprobes.cli import main

ROOT = Path(__file__).resolve().parents[2]
ANSWERS = {
    command: answer
    for command, *answer in json.loads((ROOT / "tools/beside_bpftrace/answers.json").read_text())["answers"]
}
ROWS = json.loads((ROOT / "docs/beside-bpftrace.json").read_text())["cases"]
ALONE = {row["name"]: row["command"] for row in ROWS if row["result"] == "same" and " ./guest" not in row["command"]
         and "./guest:" not in row["command"]}


@pytest.mark.parametrize("name", ALONE)
def test_prints_what_bpftrace_printed(name: str) -> None:
    words = shlex.split(ALONE[name])
    done = CliRunner().invoke(main, ["script", *words[1:]], env={"TZ": "UTC", "TERM": "dumb"})
    status, output, error = ANSWERS[ALONE[name]]
    assert (done.exit_code, done.stdout, done.stderr) == (status, output, error)


def test_each_difference_has_a_reason() -> None:
    assert len(ALONE) > 15
    assert [row["name"] for row in ROWS if (row["result"] == "same") == bool(row["why"])] == []
