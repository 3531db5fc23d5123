"""A guest that writes over its maps: programs there end, and write to nothing else; what comes over is sound, or lost
and counted."""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from arch_rows import TRIPLES
from arches import RUNNABLE

from kprobes import UnicornMachine
from kprobes.programs import guest
from kprobes.programs.copies import WholeMapCopy
from kprobes.programs.host import HostEngine
from kprobes.programs.interpreter import Interpreter
from kprobes.programs.isa import (
    ADD,
    ALU64,
    CALL,
    DW,
    EXIT,
    JEQ,
    JMP,
    LDX,
    MAP,
    MEM,
    MOV,
    STX,
    Instruction,
    K,
    X,
    lddw,
)
from kprobes.programs.maps import OVERWRITE, Hash, MapType, Ring, Spec, create
from kprobes.programs.maps.hash import HEADER
from kprobes.programs.maps.sound import sound
from kprobes.programs.nowhere import Nowhere
from kprobes.programs.program import Program

pytest.importorskip("llvmlite")
#: no backend: these run programs on the host
GUESTS = [name for name in RUNNABLE if name in TRIPLES]
ENTRIES, SECONDS = 8, 10.0  #: that a run may take
KEY, OTHER = -8, -16
NUMBERS = (0, 1, 2, ENTRIES, ENTRIES + 1, 15, 16, 17, 1000, 0x7FFFFFFF, 0xFFFFFFFE, 0xFFFFFFFF)


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


def helper(number: int, at: int, value: int = KEY) -> Iterator[Instruction]:
    """A call with the first map, and the key at r10 + at."""
    yield from lddw(1, 0, MAP)
    yield Instruction(MOV | X | ALU64, 2, 10)
    yield Instruction(ADD | K | ALU64, 2, imm=at)
    yield Instruction(MOV | X | ALU64, 3, 10)
    yield Instruction(ADD | K | ALU64, 3, imm=value)
    yield Instruction(MOV | K | ALU64, 4)
    yield Instruction(CALL | JMP, imm=number)


def on_table() -> list[Instruction]:
    """The context's first word is looked up, and counted or put in; the second one is deleted."""
    code = [Instruction(MOV | X | ALU64, 6, 1)]
    for n, at in enumerate((KEY, OTHER)):
        code += [Instruction(LDX | MEM | DW, 1, 6, 8 * n), Instruction(STX | MEM | DW, 10, 1, at)]
    code += helper(1, KEY)
    code += [Instruction(JEQ | K | JMP, 0, 0, 3), Instruction(LDX | MEM | DW, 1, 0),
             Instruction(ADD | K | ALU64, 1, imm=1), Instruction(STX | MEM | DW, 0, 1)]
    code += [*helper(2, KEY), *helper(3, OTHER), Instruction(MOV | K | ALU64, 0), Instruction(EXIT | JMP)]
    return code


def on_ring() -> list[Instruction]:
    """The context's words become a record."""
    code = [Instruction(MOV | X | ALU64, 6, 1)]
    for n, at in enumerate((KEY, OTHER)):
        code += [Instruction(LDX | MEM | DW, 1, 6, 8 * n), Instruction(STX | MEM | DW, 10, 1, at)]
    for size in (16, 16):
        code += [*lddw(1, 0, MAP), Instruction(MOV | X | ALU64, 2, 10), Instruction(ADD | K | ALU64, 2, imm=OTHER),
                 Instruction(MOV | K | ALU64, 3, imm=size), Instruction(MOV | K | ALU64, 4),
                 Instruction(CALL | JMP, imm=130)]
    return [*code, Instruction(MOV | K | ALU64, 0), Instruction(EXIT | JMP)]


def table() -> Hash:
    made = create(Spec(type=MapType.HASH, name="t", key_size=8, value_size=8, max_entries=ENTRIES, order=sys.byteorder))
    assert isinstance(made, Hash)
    return made


def ring(flags: int) -> Ring:
    made = create(Spec(type=MapType.RINGBUF, name="r", max_entries=4096, flags=flags, order=sys.byteorder))
    assert isinstance(made, Ring)
    return made


def scribbled(rng: random.Random, raw: bytearray, words: range) -> None:
    """Some of these words of memory, and their halves, become others."""
    for _ in range(rng.randint(1, 6)):
        at = rng.choice(words)
        if rng.random() < 0.5:
            struct.pack_into("=I", raw, at + rng.choice((0, 4)), rng.choice((*NUMBERS, rng.getrandbits(32))))
        else:
            value = rng.choice((*NUMBERS, 1 << 63, (1 << 64) - 1, (1 << 64) - 8, rng.getrandbits(64)))
            struct.pack_into("=Q", raw, at, value)
    if rng.random() < 0.2:
        start, end = sorted(rng.sample(words, 2))
        raw[start:end] = bytes([rng.choice((0, 1, 2, 0x7F, 0xFF))]) * (end - start)


class Bounded:
    """A guest, whose calls end."""

    def __init__(self, m: UnicornMachine) -> None:
        self.m, self.arch = m, m.arch
        self.alloc, self.free, self.read, self.write, self.map = m.alloc, m.free, m.read, m.write, m.map

    def call(self, function: int, *args: int) -> int:
        return self.m.call(function, *args, timeout=SECONDS)

    def memory(self, own: list[tuple[int, int]]) -> list[bytes]:
        """All but what lies in `own`. A hook would be simpler; with one, bare Unicorn breaks stores in delay slots."""
        found = []
        for start, last, _ in self.m.uc.mem_regions():
            raw = bytearray(self.m.uc.mem_read(start, last + 1 - start))
            for first, end in own:
                if start <= first <= last:
                    raw[first - start:end - start] = bytes(len(raw[first - start:end - start]))
            found.append(bytes(raw))
        return found


def runs(arch: str, code: list[Instruction], m: Any, words: range, rounds: int) -> None:
    """Each begins with what the last one has left, and some of it scribbled over."""
    there = Bounded(UnicornMachine.from_code(bytes(64), arch=arch, base=0x10000))
    program = guest.PlacedProgram(Program.from_instructions(code, {m.name: m}, order=sys.byteorder).code, there)
    at, = program.maps
    stack = there.m.regs.sp
    own = [(at, at + m.block.size), (program.environment, program.environment + 0x100),
           (program._context, program._context + guest.CONTEXT_SIZE), (stack - 0x4000, stack + 0x1000)]
    rng, sound = random.Random(arch), bytes(m.block.view)
    before = there.memory(own)
    for turn in range(rounds):
        raw = bytearray(there.read(at, m.block.size) if turn % 8 else sound)
        scribbled(rng, raw, words)
        there.write(at, bytes(raw))
        for _ in range(3):
            program.run(struct.pack("=QQ", rng.randrange(12), rng.randrange(12)))
        assert there.memory(own) == before


@pytest.mark.parametrize("arch", GUESTS)
def test_programs_in_the_guest_end(arch: str) -> None:
    m = table()
    for n in range(5):
        m[n] = n
    runs(arch, on_table(), m, range(0, m.block.size - 8, 8), 120)


@pytest.mark.parametrize("arch", GUESTS)
@pytest.mark.parametrize("flags", [0, OVERWRITE], ids=["full", "overwriting"])
def test_records_in_the_guest_end(arch: str, flags: int) -> None:
    runs(arch, on_ring(), ring(flags), range(0, 256, 8), 60)


# --- what comes over

class Memory:
    """A guest's, of one copy."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.there = bytearray(raw), True

    def read(self, at: int, size: int) -> bytes:
        return bytes(self.raw[at:at + size])

    def write(self, at: int, data: bytes) -> None:
        self.raw[at:at + len(data)] = data

    def fresh(self, size: int) -> int:
        return 0


@pytest.mark.parametrize("kind", [MapType.HASH, MapType.LRU_HASH, MapType.PERCPU_HASH, MapType.LRU_PERCPU_HASH],
                         ids=lambda kind: kind.name)
def test_what_comes_over_is_a_table(kind: MapType) -> None:
    """Whatever the guest has left there: Python and the host's programs find a table, and what was lost is counted."""
    rng, seen = random.Random(kind), set()
    for size in (1, 4, 6, 8, 13):
        for turn in range(150):
            m: Any = create(Spec(type=kind, name="t", key_size=size, value_size=8, max_entries=ENTRIES, cpus=2))
            one = [7, 9] if m.percpu else 7
            key = (lambda n, size=size: n) if size in (1, 4, 8) else (lambda n, size=size: bytes([n]) * size)
            for n in rng.sample(range(20), rng.randint(0, ENTRIES)):
                m[key(n)] = one
            for n in list(m)[:rng.randint(0, 3)]:
                del m[n]
            memory = Memory(bytes(m.block.view))
            copy, before = WholeMapCopy(memory, 0, m), dict(m)
            copy.push()
            copy.pull()
            assert dict(m) == before and not m.lost and sound(m)  # nobody has
            if turn % 3:
                scribbled(rng, memory.raw, range(0, len(memory.raw) - 8, 8))
            else:
                scribbled(rng, memory.raw, range(0, HEADER, 8))
            copy.pull()
            seen.add(m.lost)
            assert sound(m) and m.lost in (0, 1) and (not m.lost or not len(m))
            assert len(list(m)) == len(dict(m)) == len(m) <= ENTRIES and repr(m)
            for n in range(20):
                try:
                    m[key(n)] = one
                except ValueError:
                    assert len(m) == ENTRIES and not m.lru
            for n in list(m):
                del m[n]
            assert not len(m) and not dict(m) and sound(m)
            copy.push()
            assert memory.raw == m.block.view  # and goes on in the guest
    assert seen == {0, 1}


@pytest.mark.parametrize("engine", [Interpreter, HostEngine])
def test_programs_of_the_host_on_what_came_over(engine: Any) -> None:
    rng = random.Random(1)
    m = table()
    program = Program.from_instructions(on_table(), {"t": m}, order=sys.byteorder)
    program.verify()
    made, memory = engine(program.code), Memory(bytes(m.block.view))
    copy = WholeMapCopy(memory, 0, m)
    for _ in range(400):
        copy.push()
        scribbled(rng, memory.raw, range(0, len(memory.raw) - 8, 8))
        copy.pull()
        for _ in range(3):
            made.run(struct.pack("=QQ", rng.randrange(12), rng.randrange(12)), Nowhere())
        assert sound(m) and len(dict(m)) == len(m)
    assert m.lost > 50


def test_the_hosts_records_end_whatever_a_ring_says() -> None:
    """Its header came over as it was; of what stands in it nobody knows."""
    rng = random.Random(2)
    m = ring(OVERWRITE)
    program = Program.from_instructions(on_ring(), {"r": m}, order=sys.byteorder)
    program.verify()
    made = HostEngine(program.code)
    for _ in range(300):
        for _ in range(200):
            made.run(bytes(16), Nowhere())
        raw = bytearray(m.block.view)
        scribbled(rng, raw, range(HEADER, 4096, 8))
        m.block.view[:] = raw
        for _ in range(300):
            made.run(bytes(16), Nowhere())
        list(m)
        m.drop()
