"""Compiled programs at probes: what they see of the guest, on every architecture, and who runs them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from arches import RUNNABLE

from kprobes import Kprobe, Kprobes, Kretprobe, UnicornMachine
from kprobes.programs import context
from kprobes.programs.code import Code
from kprobes.programs.isa import ADD, ALU64, DW, EXIT, JMP, LDX, MAP_VALUE, MEM, MOV, STX, Instruction, K, X, lddw
from kprobes.programs.maps import MapType, Spec, create

pytestmark = [pytest.mark.quick, pytest.mark.host_code]
pytest.importorskip("llvmlite")

from kprobes.programs import site  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import worlds  # noqa: E402

OUT = lddw(8, 0, MAP_VALUE, high=0)  # r8 = address of the map's value
HITS = 50
#: returns that do not lead by themselves where the caller wants them: the core runs the programs there
BY_THE_CORE = {"sparc", "tricore"}


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def i(opcode: int, dst: int = 0, src: int = 0, offset: int = 0, imm: int = 0) -> Instruction:
    return Instruction(opcode, dst, src, offset, imm)


def out(words: int) -> Any:
    return create(Spec(type=MapType.ARRAY, name="out", key_size=4, value_size=8 * words, max_entries=1))


def kept(m: Any) -> list[int]:
    """The words of the map's value."""
    raw = bytes(m.block.view[:m.value_size])
    return [int.from_bytes(raw[at : at + 8], sys.byteorder) for at in range(0, len(raw), 8)]


def program(code: list[Instruction], m: Any) -> Code:
    return Code("test", (*OUT, *code, i(MOV | K | ALU64, 0), i(EXIT | JMP)), (m,))


def whole_context(m: Any) -> Code:
    """A program that keeps every word of the context."""
    return program([one for n in range(context.WORDS) for one in (i(LDX | MEM | DW, 3, 1, 8 * n),
                                                                  i(STX | MEM | DW, 8, 3, 8 * n))], m)


def place(machine: UnicornMachine, probe: Any, code: Code, call: Any = None) -> Any:
    """Have the machine run a program where the probe is."""
    made = probe._host = site.SiteProgram(code, machine.host_view, call, isinstance(probe, Kretprobe))
    if isinstance(probe, Kprobe):
        made.at(machine.symbols[probe.symbol_name].address + probe.offset)
        probe.pre_handler = lambda p, regs: None
    return made


@pytest.mark.parametrize("way", [Kprobe, Kretprobe])
@pytest.mark.parametrize("arch", RUNNABLE)
def test_a_program_sees_the_context_that_a_handler_sees(arch: str, way: Any) -> None:
    """A handler by the interpreter's reader, and a program that keeps all words; then one whose context has to be
    memory."""
    seen: list[list[int]] = []

    def handler(probe: Any, regs: Any) -> None:
        seen[:] = [[context.reader(regs.arch, n)(regs) for n in range(context.WORDS)]]

    machine = worlds.make_machine(arch)
    with Kprobes(machine) as k:
        probe = way(symbol_name="tiny", **{"pre_handler" if way is Kprobe else "handler": handler})
        k.register(probe)
        assert machine.call("loop", HITS, 7) == 8
        k.unregister(probe)
        by_offset, by_pointer = out(context.WORDS), out(context.WORDS)
        sum_of = [one for n in range(context.WORDS)
                  for one in (i(MOV | X | ALU64, 3, 1), i(MOV | K | ALU64, 4, imm=8 * n), i(ADD | X | ALU64, 3, 4),
                              i(LDX | MEM | DW, 3, 3), i(STX | MEM | DW, 8, 3, 8 * n))]
        for code in (whole_context(by_offset), program(sum_of, by_pointer)):
            probe = way(symbol_name="tiny")
            place(machine, probe, code)
            k.register(probe)
            assert machine.call("loop", HITS, 7) == 8
            assert probe.nhit == HITS == getattr(probe, "nreturned", HITS)
            k.unregister(probe)
            assert probe.nhit == HITS == getattr(probe, "nreturned", HITS)
    names = [*machine.arch.regs.names, *range(len(machine.arch.regs.names), context.WORDS)]
    for m in (by_offset, by_pointer):
        if way is Kretprobe and arch in BY_THE_CORE:
            assert not any(kept(m))
            continue
        assert dict(zip(names, kept(m), strict=True)) == dict(zip(names, seen[0], strict=True))
