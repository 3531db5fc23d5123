"""The guide to a new architecture is enough, and what it makes is small."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from kprobes import Kprobes, UnicornMachine
from kprobes.machine.unicorn import machine as engine
from kprobes.testing import check_arch

pytestmark = pytest.mark.quick
GUIDE = Path(__file__).resolve().parent.parent.parent / "docs" / "adding-an-architecture.md"
SUM = bytes.fromhex("93050000 b385a500 1305f5ff e31c05fe 13850500 67800000")


def package() -> list[str]:
    """The lines of a package with the guide's architecture in it and its row for the engine: all that the guide
    defines, and nothing it shows."""
    text = GUIDE.read_text()
    before, _, rest = text.partition("## Instructions of several lengths")
    row = rest.partition("## On an engine")[2]
    blocks = re.findall(r"```python\n(.*?)```", before,
                        re.DOTALL) + re.findall(r"```python\n(.*?)```", row, re.DOTALL)[:1]
    lines = []
    for block in blocks:
        for node in ast.parse(block).body:
            shown = isinstance(node, ast.For) or (isinstance(node, ast.Expr) and ast.unparse(node).startswith("print("))
            if not shown and not ast.unparse(node).startswith("from kprobes.testing"):
                lines += block.splitlines()[node.lineno - 1 : node.end_lineno]
    return lines


def test_a_small_architecture_out_of_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    lines, names = package(), dict[str, Any]()
    exec("\n".join(lines), names)
    assert check_arch(names["rv32i"]) == []
    monkeypatch.setattr("kprobes.arch._load", lambda name: names[name])
    monkeypatch.setitem(engine.GUESTS, "rv32i", names["guest"])
    m = UnicornMachine.from_code(SUM, arch="rv32i", base=0x10000, symbols={"sum": (0x10000, 24)})
    with Kprobes(m) as k, k.kprobe("sum", offset=12) as p, k.kretprobe("sum", handler=lambda ri, regs: None) as r:
        assert (m.call("sum", 4), p.nhit, r.nreturned) == (10, 4, 1)
    said = re.search(r"(\d+) lines, the engine's row included", GUIDE.read_text())
    assert said is not None and int(said[1]) == len(lines) < 150
