"""Programs compiled for the guest do what the interpreter does, on every guest that LLVM compiles for."""

from __future__ import annotations

import random
from typing import Any

import pytest
import test_host as same
from arches import RUNNABLE

from kprobes import UnicornMachine
from kprobes import arch as architectures
from kprobes.errors import ProgramError, Unsupported
from kprobes.programs import guest
from kprobes.programs.host import HostEngine
from kprobes.programs.interpreter import Interpreter
from kprobes.programs.isa import ADD, ALU64, CALL, DW, EXIT, JMP, MAP, MEM, MOV, ST, STX, Instruction, K, X, lddw
from kprobes.programs.maps import MapType, Spec, create
from kprobes.programs.nowhere import Nowhere
from kprobes.programs.program import Program
from kprobes.programs.verifier import Facts

pytest.importorskip("llvmlite")
#: no backend: these run programs on the host
NO_BACKEND = {"m68k", "tricore"}
GUESTS = [name for name in RUNNABLE if name not in NO_BACKEND]
TRUSTED = Facts({}, {}, {}, {}, 0, 1, 0)
SETS = {"alu64": same.arithmetic(ALU64), "alu32": same.arithmetic(same.ALU), "swaps": same.swaps(),
        "jumps": same.jumps(JMP), "jumps32": same.jumps(same.JMP32), "memory": same.memory(), "atomics": same.atomics()}


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.delenv("KPROBES_HOST_CODE", raising=False)


def machine(arch: str) -> UnicornMachine:
    return UnicornMachine.from_code(bytes(64), arch=arch, base=0x10000)


def check(arch: str, code: list[Instruction], maps: list[Any], contexts: list[bytes]) -> None:
    """The same results and maps as the interpreter's, run after run."""
    made = Program.from_instructions(code, {m.name: m for m in maps}).code
    there, here = guest.PlacedProgram(made, machine(arch), TRUSTED), Interpreter(made)
    for context in contexts:
        before = [bytes(m.block.view) for m in maps]
        memory, own = bytearray(context), bytearray(context)
        wanted = here.run(memory, Nowhere()), [bytes(m.block.view) for m in maps], memory
        for m, old in zip(maps, before, strict=True):
            m.block.view[:] = old
        got = there.run(own)
        there.pull()
        assert (got, [bytes(m.block.view) for m in maps], own) == wanted


@pytest.mark.parametrize("arch", GUESTS)
@pytest.mark.parametrize("name", SETS)
def test_every_instruction(arch: str, name: str) -> None:
    code, count = same.collect(SETS[name])
    check(arch, same.flat(code), [same.results(count)], same.pairs(8))


@pytest.mark.quick
@pytest.mark.parametrize("arch", GUESTS)
def test_random_programs(arch: str) -> None:
    check(arch, same.whole(GUESTS.index(arch)), [], same.pairs(3))


@pytest.mark.parametrize("arch", GUESTS)
@pytest.mark.parametrize("seed", range(5))
def test_more_random_programs(arch: str, seed: int) -> None:
    check(arch, same.whole(100 + seed), [], same.pairs(3, seed))


@pytest.mark.parametrize("arch", GUESTS)
@pytest.mark.parametrize("kind", [MapType.HASH, MapType.PERCPU_HASH, MapType.ARRAY, MapType.PERCPU_ARRAY],
                         ids=lambda kind: kind.name)
def test_maps_are_the_same_byte_for_byte(arch: str, kind: MapType) -> None:
    m: Any = create(Spec(type=kind, name="t", key_size=4 if kind in (2, 6) else 13, value_size=12, max_entries=5,
                         cpus=2))
    # an array's deletion is Python's
    code = same.on_table(random.Random(5), m, (1, 2, 2) if kind in (2, 6) else (1, 2, 2, 2, 3))
    check(arch, same.flat(code), [m], [b""] * 3)


@pytest.mark.quick
@pytest.mark.parametrize("arch", GUESTS)
def test_records_and_guest_memory(arch: str) -> None:
    """What is readable comes into the record, and what is not is zeros and an error."""
    at = machine(arch)
    there = at.alloc(64)
    at.write(there, b"0123456789abcdef\0" + bytes(range(20)))
    ring: Any = create(Spec(type=MapType.RINGBUF, name="r", max_entries=4096))

    def read(helper: int, size: int, address: int, to: int) -> list[Any]:
        return [Instruction(MOV | X | ALU64, 1, 6), Instruction(ADD | K | ALU64, 1, imm=to),
                Instruction(MOV | K | ALU64, 2, imm=size),
                lddw(3, address), Instruction(CALL | JMP, imm=helper), Instruction(STX | MEM | DW, 6, 0, to + 24)]

    code = [lddw(1, 0, MAP), Instruction(MOV | K | ALU64, 2, imm=128), Instruction(MOV | K | ALU64, 3),
            Instruction(CALL | JMP, imm=131),
            Instruction(MOV | X | ALU64, 6, 0), *(Instruction(ST | MEM | DW, 6, 0, n, -1) for n in range(0, 128, 8)),
            *read(113, 10, there + 2, 0), *read(115, 24, there + 3, 32), *read(115, 5, there, 64),
            *read(112, 8, 0x7777_0000, 96),
            Instruction(MOV | X | ALU64, 1, 6), Instruction(MOV | K | ALU64, 2), Instruction(CALL | JMP, imm=132),
            Instruction(MOV | K | ALU64, 0), Instruction(EXIT | JMP)]
    made = Program.from_instructions(same.flat(code), {"r": ring}).code
    program = guest.PlacedProgram(made, at, TRUSTED, [(there, 64)])
    assert program.run() == 0
    program.pull()
    record, = ring
    assert record[:10] == b"23456789ab"
    assert record[32:46] == b"3456789abcdef\0"
    assert record[64:69] == b"0123\0"
    assert record[96:104] == bytes(8)
    assert [int.from_bytes(record[n + 24 : n + 32], "little", signed=True) for n in (0, 32, 64, 96)] == [0, 14, 5, -14]


@pytest.mark.quick
@pytest.mark.parametrize("arch", sorted(NO_BACKEND))
def test_guests_that_llvm_does_not_know_are_refused(arch: str) -> None:
    made = Program.from_instructions([Instruction(MOV | K | ALU64, 0), Instruction(EXIT | JMP)]).code
    with pytest.raises(Unsupported, match=f"does not compile for {arch}"):
        guest.compiled(made, architectures.get(arch))


@pytest.mark.quick
@pytest.mark.parametrize("arch", GUESTS)
def test_code_is_made_for_it(arch: str) -> None:
    made = Program.from_instructions([Instruction(MOV | K | ALU64, 0), Instruction(EXIT | JMP)]).code
    code, _ = guest.compiled(made, architectures.get(arch))
    assert code and len(code) % architectures.get(arch).insn_align == 0


@pytest.mark.quick
def test_what_only_the_host_can_do_is_refused() -> None:
    made = Program.from_instructions([Instruction(CALL | JMP, imm=5), Instruction(EXIT | JMP)]).code
    with pytest.raises(Unsupported, match="helper 5"):
        guest.compiled(made, architectures.get("x86_64"))
    unsafe = Program.from_instructions([Instruction(EXIT | JMP)]).code
    with pytest.raises(ProgramError):
        guest.compiled(unsafe, architectures.get("x86_64"))


@pytest.mark.quick
def test_functions_that_call_functions_do_not_make_code_without_end() -> None:
    """Eight levels, each calling the next one nine times: on the host they are called, in a guest they would be 40
    million copies."""
    body, levels = 11, 8
    code = []
    for level in range(levels):
        last = level == levels - 1
        step = Instruction(ADD | K | ALU64, 1, imm=1) if last else None
        code += [step or Instruction(CALL | JMP, 0, 1, 0, (level + 1) * body - (level * body + n) - 1)
                 for n in range(9)]
        code += [Instruction(MOV | K | ALU64, 0, imm=level), Instruction(EXIT | JMP)]
    program = Program.from_instructions(code)
    with pytest.raises(Unsupported, match="instructions"):
        guest.compiled(program.code, architectures.get("arm64"), TRUSTED)
    shallow = Program.from_instructions(code[-2 * body :])
    assert guest.compiled(shallow.code, architectures.get("arm64"), TRUSTED)[0]
    assert HostEngine(program.code, TRUSTED)
