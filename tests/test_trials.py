"""tools/trials.py: the same trials in every process, results that survive a kill, and a table of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parent.parent / "tools" / "trials.py"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """The command."""
    return subprocess.run([sys.executable, str(TOOL), *words], capture_output=True, text=True, timeout=600, check=False)


def test_an_item_is_the_same_everywhere() -> None:
    first, second = run("-", "--item", "sequence:arm:1"), run("-", "--item", "sequence:arm:1")
    assert first.stdout == second.stdout and first.returncode == 0, first.stdout + first.stderr
    assert int(first.stdout.split()[-2]) > 20


def test_where_instructions_cannot_be_counted() -> None:
    done = run("-", "--item", "sequence:sparc:1")
    assert done.returncode == 0 and int(done.stdout.split()[-2]) > 20, done.stdout + done.stderr


def test_a_journal_goes_on(tmp_path: Path) -> None:
    pytest.importorskip("pebble")
    journal = tmp_path / "trials.jsonl"
    words = (str(journal), "--kinds", "sequence", "function", "--arch", "x86_64", "--jobs", "1")
    done = run(*words, "--count", "1")
    assert done.returncode == 0, done.stderr
    lines = journal.read_text().splitlines()
    journal.write_text("\n".join(lines[:2]) + "\n" + lines[1][:9])  # as a kill leaves it
    again = run(*words, "--count", str(json.loads(lines[1])["result"]["trials"] + 1))
    entries = [json.loads(line) for line in journal.read_text().splitlines()[1:]]
    assert len({entry["item"] for entry in entries}) == len(entries) >= 2, "what was done is not done again"
    assert entries[0] == json.loads(lines[1])
    total = sum(entry["result"]["trials"] for entry in entries)
    assert f"{total:,} trials in {len(entries):,} items" in again.stdout
    assert run(str(journal), "--table").stdout == again.stdout
    # an item that once found something is done again
    head, first, *others = journal.read_text().splitlines()
    entry = json.loads(first)
    entry["result"]["findings"] = ["a difference"]
    journal.write_text("\n".join([head, json.dumps(entry), *others]) + "\n")
    found = run(str(journal), "--table")
    assert found.returncode == 1 and f"{entry['item']}: a difference" in found.stdout
    repeated = run(str(journal), "--again", "--jobs", "1")
    assert repeated.returncode == 0, repeated.stdout + repeated.stderr
    assert len(journal.read_text().splitlines()) == len(others) + 3, "one item was done"


def test_a_difference_is_a_finding() -> None:
    """A probe whose handler changes a register shows."""
    code = f"""
import sys
sys.path.insert(0, {str(TOOL.parent)!r})
import trials
trials._pre = lambda p, regs: regs.__setitem__("rcx", regs["rcx"] ^ 1)
print(trials.Job()("sequence:x86_64:1")["findings"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert "register rcx" in done.stdout, done.stdout + done.stderr
