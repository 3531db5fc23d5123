"""What a verification takes does not depend on how large maps are, and it ends when its time is over."""

from __future__ import annotations

import importlib
import pkgutil
import random
import re
import time
from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from verifier.asm import code, maps
from verifier.fuzz import mutated, written
from verifier.test_verifier_c import NAMES, built

import kprobes.programs
from kprobes import Kprobes, Program, ProgramError, UnicornMachine
from kprobes.programs import isa
from kprobes.programs.code import Code
from kprobes.programs.isa import Instruction
from kprobes.programs.maps import Map, MapType, Spec, create
from kprobes.programs.verifier import verify

#: what looks at a map's entries; identity and attributes do not
LOOKS = ("__eq__", "__ne__", "__iter__", "__len__", "__contains__", "__getitem__", "__bool__", "__reversed__", "keys",
         "values", "items")
MOV = Instruction(isa.MOV | isa.ALU64, 0, imm=1)
EXIT = Instruction(isa.JMP | isa.EXIT)


def kinds(of: type[Map]) -> Iterator[type[Map]]:
    """A class and all that derive from it."""
    yield of
    for kind in of.__subclasses__():
        yield from kinds(kind)


@pytest.fixture
def sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at a map's entries: there may be a billion."""
    def looked(*_: object) -> Any:
        raise AssertionError("the entries of a map are looked at")

    for kind in kinds(Map):
        for name in LOOKS:
            monkeypatch.setattr(kind, name, looked, raising=False)
        monkeypatch.setattr(kind, "__hash__", object.__hash__, raising=False)


@pytest.mark.usefixtures("sealed")
@pytest.mark.parametrize("name", NAMES)
def test_no_entry_of_a_map_is_looked_at(name: str) -> None:
    verify(built("bpfel", "-O2", "v3")[name].code)


@pytest.mark.usefixtures("sealed")
@pytest.mark.parametrize("block", range(4))
def test_no_entry_is_looked_at_in_random_programs(block: int) -> None:
    """Accepted and refused ones: paths join, meet and are refused in all ways there are."""
    for seed in range(70_000 + block * 40, 70_040 + block * 40):
        for one in (written(seed), mutated(written(seed), random.Random(seed))):
            try:
                verify(one, seconds=0.5)
            except ProgramError as error:
                str(error)


ANY_KIND = """
#include <kprobes/bpf.h>
struct { __uint(type, BPF_MAP_TYPE_%s); __uint(max_entries, 64); __type(key, u32); __type(value, u64); } m SEC(".maps");
u64 total;
SEC("kprobe/f") int on_f(struct pt_regs *ctx)
{
    u32 key = PT_REGS_PARM1(ctx) & 63;
    for (u32 i = 0; i < 4; i++, key = (key + i) & 63) {
        u64 *n = bpf_map_lookup_elem(&m, &key), one = 1;
        if (n) *n += i; else bpf_map_update_elem(&m, &key, &one, BPF_ANY);
    }
    total += 1;
    return 0;
}
"""


@pytest.mark.parametrize("kind", ["HASH", "ARRAY", "PERCPU_HASH", "PERCPU_ARRAY", "LRU_HASH", "LRU_PERCPU_HASH"])
def test_no_entry_is_looked_at_on_the_way_to_a_hit(kind: str, sealed: None) -> None:
    """Loaded, verified, compiled, attached, hit and detached."""
    pytest.importorskip("ziglang")
    machine = UnicornMachine.from_code(bytes.fromhex("9090909090c3"), arch="x86_64", symbols={"f": 0x10000})
    program = Program.from_c(ANY_KIND % kind)
    with Kprobes(machine) as k, k.attach(program):
        for n in range(3):
            machine.call("f", n)
    assert program.variables["total"] == 3


def test_no_value_with_a_map_is_compared_by_its_entries() -> None:
    """Of all attrs classes of programs: a field with maps is compared by identity, or the class not at all."""
    seen = []
    for info in pkgutil.walk_packages(kprobes.programs.__path__, "kprobes.programs."):
        module = importlib.import_module(info.name)
        for kind in vars(module).values():
            if isinstance(kind, type) and attrs.has(kind) and kind.__module__ == info.name and "__eq__" in vars(kind):
                with_maps = [f for f in attrs.fields(kind) if re.search(r"\bMap\b", str(f.type))]
                wrong = [f.name for f in with_maps if f.eq and f.eq_key is not id]
                assert not wrong, f"{kind.__module__}.{kind.__name__}: {', '.join(wrong)}"
                seen += with_maps
    assert seen


@pytest.mark.parametrize("entries", [1 << 20, 1 << 22])
def test_a_large_map_costs_what_a_small_one_does(entries: int) -> None:
    text = ("mov64 r6, 0; loop: stxw [r10-4], r6; mov64 r2, r10; add64 r2, -4; lddw r1, map[0]; call 1; "
            "jeq r0, 0, next; ldxdw r1, [r0+0]; add64 r1, 1; stxdw [r0+0], r1; next: add64 r6, 1; jlt r6, 20, loop; "
            "mov64 r0, 0; exit")
    taken = []
    for size in (64, entries):
        large = create(Spec(type=MapType.ARRAY, name="a", key_size=4, value_size=8, max_entries=size))
        one = code(text, maps=(large,))
        taken.append(min(spent(one) for _ in range(3)))
    assert taken[1] < 5 * taken[0] + 0.01


def spent(one: Code) -> float:
    """Processor time that the verification takes."""
    start = time.thread_time()
    verify(one)
    return time.thread_time() - start


# ---- the limit of time

def nested(loops: int) -> list[Instruction]:
    """Loops in each other: the jump back of each is behind those of all that it has in it."""
    return [MOV] * loops + [Instruction(isa.JMP | isa.JEQ, 0, 0, -2 * n - 2, 5) for n in range(loops)] + [EXIT]


def many_functions(count: int) -> list[Instruction]:
    calls = [Instruction(isa.JMP | isa.CALL, 0, isa.LOCAL, 0, count + n) for n in range(count)]
    return [*calls, EXIT, *[MOV, EXIT] * count]


def crowded(turns: int) -> list[Instruction]:
    """All slots of the stack are different in each turn: where ways meet, many are compared."""
    fill = [Instruction(isa.STX | isa.DW | isa.MEM, 10, 6, -8 * n) for n in range(1, 65)]
    body = [Instruction(isa.ALU64 | isa.ADD, 6, imm=1), *fill]
    look = [Instruction(isa.LDX | isa.DW | isa.MEM, 0, 1, 0), Instruction(isa.JMP | isa.JEQ, 0, 0, 1, 0), MOV]
    back = Instruction(isa.JMP | isa.JLT, 6, 0, -len(body) - len(look) - 1, turns)
    sum_up = [Instruction(isa.LDX | isa.DW | isa.MEM, 0, 10, -8 * n) for n in range(1, 65)]
    return [Instruction(isa.ALU64 | isa.MOV, 6, imm=0), *body, *look, back, *sum_up, MOV, EXIT]


@pytest.mark.parametrize("insns", [nested(4000), many_functions(30_000), [MOV] * 60_000 + [EXIT], crowded(1 << 20)],
                         ids=["nested loops", "functions", "a long one", "a crowded stack"])
def test_the_limit_of_time_holds(insns: list[Instruction]) -> None:
    """Before any instruction is walked, too, and within what one instruction takes."""
    starts = {0, *(n + 1 + i.imm for n, i in enumerate(insns) if i.is_local_call)}
    one = Code("p", tuple(insns), maps(), functions={at: f"f{at}" for at in starts})
    start = time.thread_time()
    with pytest.raises(ProgramError, match="takes too long"):
        verify(one, seconds=0.1)
    assert time.thread_time() - start < 1


@pytest.mark.parametrize("entries", [1024, 1 << 20])
def test_a_loop_over_a_map_ends(entries: int) -> None:
    """What clang makes of `for (i = 0; i < 1000; i++) count(i)`, as in bounded_loop.o of the samples of the Prevail
    verifier: the counter is a key on the stack, and the loop ends where it equals 1000. It is walked turn by turn,
    whatever the map has: 40,000 instructions, of a million."""
    counts = create(Spec(type=MapType.ARRAY, name="counts", key_size=4, value_size=4, max_entries=entries))
    facts = verify(code("""mov64 r6, 0
        loop: stxw [r10-4], r6; mov64 r2, r10; add64 r2, -4; lddw r1, map[0]; call 1; jeq r0, 0, next
              ldxw r1, [r0+0]; add64 r1, 1; stxw [r0+0], r1
        next: add64 r6, 1; mov64 r1, r6; lsh64 r1, 32; rsh64 r1, 32; jne r1, 1000, loop
        mov64 r0, 0; exit""", maps=(counts,)))
    assert 10_000 < facts.steps < 100_000


def test_a_large_constant_is_not_read_to_its_end() -> None:
    """A text ends within the bytes that helpers look at."""
    large = create(Spec(type=MapType.ARRAY, name=".rodata", key_size=4, value_size=1 << 29, max_entries=1,
                        readonly=True))
    large.block.view[:2048] = b"x" * 2048
    text = ("mov64 r6, 0; loop: stdw [r10-8], 0; mov64 r1, r10; add64 r1, -8; mov64 r2, 8; lddw r3, map[0].value+{}; "
            "call 182; add64 r6, 1; jlt r6, 100, loop; mov64 r0, 0; exit")
    with pytest.raises(ProgramError, match="no end within 1024 bytes"):
        verify(code(text.format(0), maps=(large,)))
    assert spent(code(text.format(1500), maps=(large,))) < 1
