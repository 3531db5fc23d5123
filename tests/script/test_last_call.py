"""Stacks of a function that ends in a call: the return address is the next function's, the frame is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kprobes import Kprobe, Kprobes, Trace, UnicornMachine, Unsupported
from kprobes.cli import main
from kprobes.cli._render import stack_lines
from kprobes.tracing.profile import folded
from kprobes.tracing.trace import FORMATS

pytestmark = pytest.mark.quick
BASE = 0x10000
#: outer's last instruction calls inner, which drops the return address, and returns to outer's caller
CODE = bytes.fromhex("90" "e801000000" "c3" "58" "c3")
SYMBOLS: Any = {"outer": (BASE, 6), "next": (BASE + 6, 1), "inner": (BASE + 7, 2)}


def machine() -> UnicornMachine:
    return UnicornMachine.from_code(CODE, arch="x86_64", base=BASE, symbols=SYMBOLS)


def test_a_script_s_stack() -> None:
    m = machine()
    with Kprobes(m) as k, k.script("kprobe:inner { print(ustack(2)); }") as script:
        m.call("outer")
    assert [line.split() for line in script.output.splitlines() if line.strip()][-2:] == [["inner+0"], ["outer+6"]]


def test_a_stack_of_the_command() -> None:
    m = machine()
    stacks: list[list[int]] = []
    with Kprobes(m) as k:
        k.register(Kprobe(symbol_name="inner", pre_handler=lambda p, regs: stacks.append(k.stack_trace(regs, 2))))
        m.call("outer")
    assert stack_lines(m, stacks[0]).splitlines() == [" => inner+0x0/0x2", " => outer+0x6/0x6"]


@pytest.mark.parametrize("saved", [False, True], ids=["live", "file"])
def test_traces_and_what_is_made_of_them(saved: bool, tmp_path: Path) -> None:
    """Records keep addresses; every format has the caller's function, also from a file."""
    with Kprobes(m := machine()) as k, k.trace("p:in inner", stack=True, clock="instructions") as trace:
        m.call("outer")
    if saved:
        pytest.importorskip("pyarrow")
        trace.save(tmp_path / "t.arrow")
        trace = Trace.load(tmp_path / "t.arrow")
    stack = trace[0].stack
    assert trace.names(stack)[:2] == ["inner+0x0/0x2", "outer+0x6/0x6"]
    assert trace.name(stack[1]) == "next+0x0/0x1" and trace.caller_name(stack[1]) == "outer+0x6/0x6"
    assert ["outer", "inner", "in"] in [[*frames[-3:]] for frames in folded(trace)]
    for name in FORMATS:
        try:
            trace.export(tmp_path / name, name)
        except Unsupported:
            continue
        if name not in ("parquet", "svg"):
            text = (tmp_path / name).read_bytes()
            assert b"outer" in text and b"next+" not in text and b'"next"' not in text, name
    if saved:
        done = CliRunner().invoke(main, ["report", str(tmp_path / "t.arrow"), "--by", "caller"])
        assert "outer" in done.output and "next" not in done.output, done.output
        done = CliRunner().invoke(main, ["report", str(tmp_path / "t.arrow"), "--by", "stack"])
        assert "inner < outer" in done.output


def test_the_place_of_a_hit_is_its_own_function() -> None:
    m = machine()
    assert stack_lines(m, [BASE + 6]) == " => next+0x0/0x1\n"
