"""Compiled programs at probes: what they see of the guest, on every architecture, and who runs them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from arches import RUNNABLE

from kprobes import Kprobe, Kprobes, Kretprobe, UnicornMachine
from kprobes.machine.unicorn.host import hostcode
from kprobes.programs.code import Code
from kprobes.programs.isa import ALU64, DW, EXIT, JMP, LDX, MAP_VALUE, MEM, MOV, STX, Instruction, K, lddw
from kprobes.programs.maps import MapType, Spec, create

pytestmark = pytest.mark.quick
pytest.importorskip("llvmlite")
if not hostcode.available():
    pytest.skip("there is no host code here", allow_module_level=True)

from kprobes.programs import site  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import worlds  # noqa: E402

READ = 113


def words(count: int, name: str = "words") -> Any:
    return create(Spec(type=MapType.ARRAY, name=name, key_size=4, value_size=8 * count, max_entries=1))


def program(code: list[Any], *maps: Any) -> Code:
    flat = [i for part in code for i in (part if isinstance(part, tuple) else (part,))]
    return Code("test", tuple(flat), maps)


def all_registers(machine: UnicornMachine, into: Any) -> Code:
    """A program that keeps the context."""
    code: list[Any] = [lddw(2, 0, MAP_VALUE, high=0)]
    for n in range(len(machine.arch.regs.names)):
        code += [Instruction(LDX | MEM | DW, 3, 1, 8 * n), Instruction(STX | MEM | DW, 2, 3, 8 * n)]
    return program([*code, Instruction(MOV | K | ALU64, 0), Instruction(EXIT | JMP)], into)


def attached(machine: UnicornMachine, probe: Any, code: Code, call: Any = None) -> Any:
    """A probe that runs a program."""
    address = None if isinstance(probe, Kretprobe) else machine.symbols[probe.symbol_name].address + probe.offset
    made = site.SiteProgram(code, machine.host_view, call, address)
    if address is None:
        probe.handler = lambda ri, regs: made.run(regs.pc) and None
    else:
        probe.pre_handler = lambda p, regs: made.run(regs.pc) and None
    probe._host = made
    return probe


def values(machine: UnicornMachine, regs: Any) -> list[int]:
    return [regs[name] & 2**64 - 1 for name in machine.arch.regs.names]


@pytest.mark.parametrize("way", ["entry", "return"])
@pytest.mark.parametrize("arch", RUNNABLE)
def test_a_program_sees_the_registers_that_a_handler_sees(arch: str, way: str) -> None:
    seen: list[list[int]] = []
    for kind in ("handler", "program"):
        machine = worlds.make_machine(arch)
        count = len(machine.arch.regs.names)
        into = words(count)
        probe: Any = Kprobe(symbol_name="tiny") if way == "entry" else Kretprobe(symbol_name="tiny")
        kept: list[list[int]] = []
        if kind == "program":
            attached(machine, probe, all_registers(machine, into))
        elif way == "entry":
            probe.pre_handler = lambda p, regs, kept=kept, machine=machine: kept.append(values(machine, regs))
        else:
            probe.handler = lambda ri, regs, kept=kept, machine=machine: kept.append(values(machine, regs))
        with Kprobes(machine) as k:
            k.register(probe)
            assert machine.call("loop", 100, 7) == 8
            assert probe.nhit == 100
            assert way == "entry" or probe.nreturned == 100
        seen.append(kept[-1] if kind == "handler" else [int.from_bytes(into[0][8 * n : 8 * n + 8], "little") for n in range(count)])
    names = worlds.make_machine(arch).arch.regs.names
    assert dict(zip(names, seen[0], strict=True)) == dict(zip(names, seen[1], strict=True))
