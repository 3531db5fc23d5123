"""Itanium on the model: whole functions, every slot, alone and with its neighbours, boosted, stepped and as a jump."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kprobes import Kprobe, Kprobes
from kprobes.arch.ia64.displace import word_of
from kprobes.arch.ia64.rows import ALWAYS
from kprobes.arch.ia64.simulate import holds
from kprobes.conformance import Conformance
from kprobes.machine.ia64 import model
from kprobes.machine.paper import PaperMachine
from kprobes.testing import functions, transparency
from kprobes.testing._transparency import instructions

HERE = Path(__file__).resolve().parent.parent
BASE, DATA = 0x1000, 0xC800
ONES = (1 << 64) - 1


@cache
def image() -> tuple[bytes, dict[str, int | tuple[int, int]]]:
    """The text of tests/data/ia64.s, and its functions."""
    lines = (HERE / "data" / "ia64.txt").read_text().splitlines()
    named = [(name, BASE + int(at, 16)) for at, name in (line.split() for line in lines if " " in line)]
    code = bytes.fromhex("".join(line for line in lines if " " not in line))
    return code, {name: (at, end - at) for (name, at), (_, end) in itertools.pairwise(named)}


def machine() -> PaperMachine:
    code, symbols = image()
    m = model(code, symbols=symbols)
    m.write(DATA, b"hello, Itanium\0")
    m.write(DATA + 0x80, m.symbols["fact"].address.to_bytes(8, "little") + (0x777).to_bytes(8, "little"))
    m.write(DATA + 0x100, b"".join(n.to_bytes(8, "little") for n in (3, 5, 7, 11, 13)))
    return m


CHOICES = [(1, 2, 3, 3, 8, 5, 6, 7, 9), (2, 1, 3, 3, 8, 5, 6, 7, 9), (1, 2, 3, 4, 8, 5, 6, 7, 9),
           (1, 2, 3, 4, 0, 5, 6, 7, 9), (1, 2, 3, 3, 8, ONES - 4, 6, 7, 9)]


#: What is done with the guest, by the function that is called.
RUNS: dict[str, Callable[[PaperMachine], Any]] = {
    "sum": lambda m: m.call("sum", 4),
    "fact": lambda m: m.call("fact", 6),
    "copy": lambda m: (m.call("copy", DATA + 0x200, DATA + 0x100, 5), m.read(DATA + 0x200, 48)),
    "length": lambda m: m.call("length", DATA),
    "fill": lambda m: (m.call("fill", DATA + 0x40, 5, 0xAB), m.read(DATA + 0x3F, 8)),
    "through": lambda m: m.call("through", DATA + 0x80, 5),
    "deep": lambda m: m.call("deep", 2),
    "swap": lambda m: (m.call("swap", DATA + 0x300, 0x1234, 77), m.read(DATA + 0x300, 8)),
    "choose": lambda m: [m.call("choose", *arguments) for arguments in CHOICES],
}


def run(m: PaperMachine, *names: str) -> list[Any]:
    """Call these functions, or every one; the results."""
    return [RUNS[name](m) for name in names or RUNS]


@pytest.mark.quick
def test_the_functions_do_what_they_are_written_to() -> None:
    words = b"".join(n.to_bytes(8, "little") for n in (3, 5, 7, 11, 13))
    filled = DATA + 0x40, b"\0" + b"\xab" * 5 + b"\0\0"
    assert run(machine())[:7] == [10, 720, (39, words + bytes(8)), 14, filled, 120 + 15, 3]


@cache
def executed(name: str) -> Counter[int]:
    """How often each instruction is executed with a true predicate, or with any, where it has an effect then."""
    counts: Counter[int] = Counter()

    def look(m: PaperMachine, cpu: int) -> None:
        pc = m.regs.pc
        if BASE <= pc < BASE + len(image()[0]):
            insn = m.arch.decode(m.read(pc & -16, 16), pc)
            counts[pc] += insn.name in ALWAYS or holds(m.regs, word_of(insn) & 63)

    m = machine()
    m.before = look
    run(m, name)
    return counts


def everywhere() -> list[int]:
    with Kprobes(machine()) as k:
        return [addr for symbol in functions(k.machine) for addr in instructions(k, symbol)]


KINDS: dict[str, dict[str, Any]] = {
    "boosted or a jump": {}, "stepped": {"optimize": False}, "with a post_handler": {"post_handler": lambda p, regs, flags: None}}


@pytest.mark.parametrize("kind", KINDS)
def test_every_slot_alone(kind: str, conformance: Conformance) -> None:
    """What the guest does is what it does without the probe; hits are executions with a true predicate."""
    plain, how = {name: run(machine(), name) for name in RUNS}, Counter[str]()
    for addr in everywhere():
        m = machine()
        name = m.symbols.covering(addr).name
        with Kprobes(m) as k:
            k.register(probe := Kprobe(addr=addr, pre_handler=lambda p, regs: None, **KINDS[kind]))
            assert run(m, name) == plain[name], hex(addr)
            assert probe.nhit == executed(name)[addr], hex(addr)
            how["optimize" if probe.optimized else "boost" if k.check(addr).boostable else "kprobe"] += 1
        assert m.read(BASE, len(image()[0])) == image()[0], hex(addr)
    if kind == "stepped":
        conformance("ia64", "real program", sum(how.values()))
    elif kind == "boosted or a jump":
        assert min(how["optimize"], how["boost"], how["kprobe"]) > 20
        conformance("ia64", "boost", how["boost"])
        conformance("ia64", "optimize", how["optimize"])
    else:
        conformance("ia64", "post", sum(how.values()))


@pytest.mark.quick
def test_all_slots_at_once() -> None:
    assert transparency(machine, run, lambda m: [Kprobe(addr=addr) for addr in everywhere()]) == []
