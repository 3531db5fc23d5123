"""Programs compiled for the host do what the interpreter does: same results, same memory, same maps."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kprobes.errors import KprobeError, Unsupported
from kprobes.programs import engines, isa, native
from kprobes.programs.host import HostEngine
from kprobes.programs.isa import (
    ADD,
    ALU,
    ALU64,
    AND,
    ATOMIC,
    CALL,
    CMPXCHG,
    DIV,
    DW,
    END,
    EXIT,
    FETCH,
    JA,
    JEQ,
    JMP,
    JMP32,
    LDX,
    LOCAL,
    MAP,
    MAP_VALUE,
    MEM,
    MEMSX,
    MOD,
    MOV,
    MUL,
    NEG,
    OR,
    ST,
    STX,
    SUB,
    XCHG,
    XOR,
    B,
    H,
    Instruction,
    K,
    W,
    X,
    lddw,
)
from kprobes.programs.maps import MapType, Spec, create
from kprobes.programs.program import Program
from kprobes.programs.verifier import Facts

pytestmark = pytest.mark.quick
pytest.importorskip("llvmlite")

ENGINES = ("interpreter", "host")
CONDITIONS = (isa.JEQ, isa.JGT, isa.JGE, isa.JSET, isa.JNE, isa.JSGT, isa.JSGE, isa.JLT, isa.JLE, isa.JSLT, isa.JSLE)
OPERATIONS = (ADD, SUB, MUL, OR, AND, isa.LSH, isa.RSH, XOR, isa.ARSH)
VALUES = (0, 1, 2, 7, 31, 32, 33, 63, 64, 127, 128, 255, 0x7FFF, 0x8000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32,
          (1 << 32) + 5, 0x7FFFFFFFFFFFFFFF, 1 << 63, (1 << 63) + 1, (1 << 64) - 1, (1 << 64) - 13, 0x0123456789ABCDEF)
IMMEDIATES = (0, 1, -1, 3, -13, 31, 0x7FFFFFFF, -(1 << 31))
Code = list[Any]  # of instructions, and of tuples of them


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(autouse=True)
def switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KPROBES_HOST_CODE", raising=False)


@pytest.fixture(autouse=True)
def trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What these programs do is right, but not what the verifier can see."""
    facts = Facts({}, {}, {}, {}, 0, 1, 0)
    monkeypatch.setitem(engines.ENGINES, "host", lambda code, _, size: HostEngine(code, facts, size))
    monkeypatch.setattr("kprobes.programs.verifier.verify", lambda *_, **__: facts)
    monkeypatch.setattr(Program, "verify", lambda self: facts)


def i(opcode: int, dst: int = 0, src: int = 0, offset: int = 0, imm: int = 0) -> Instruction:
    return Instruction(opcode, dst, src, offset, imm)


def flat(code: Code) -> list[Instruction]:
    return [one for part in code for one in (part if isinstance(part, tuple) else (part,))]


def results(size: int) -> Any:
    return create(Spec(type=MapType.ARRAY, name="out", key_size=4, value_size=8 * size, max_entries=1))


def collect(cases: list[Code]) -> tuple[Code, int]:
    """A program that does each case with r1, r2 as the context's first words, and keeps r1 of each."""
    code: Code = [i(MOV | X | ALU64, 9, 1), lddw(8, 0, MAP_VALUE, high=0)]
    for n, case in enumerate(cases):
        code += [i(LDX | MEM | DW, 1, 9, 0), i(LDX | MEM | DW, 2, 9, 8), *case, i(STX | MEM | DW, 8, 1, 8 * n)]
    return [*code, i(MOV | K | ALU64, 0), i(EXIT | JMP)], len(cases)


def both(make: Callable[[], tuple[Program, list[Any]]], contexts: list[bytes]) -> None:
    """Results and maps are the same after each run."""
    made = [(name, *make()) for name in ENGINES]
    for context in contexts:
        seen = []
        for name, program, maps in made:
            memory = bytearray(context)
            seen.append((program.run(memory, name), bytes(memory), [bytes(m.block.view) for m in maps]))
        assert seen[0] == seen[1], context.hex()


def pairs(count: int = 60, seed: int = 1) -> list[bytes]:
    r = random.Random(seed)
    chosen = [(r.choice(VALUES), r.choice(VALUES)) for _ in range(count)] + [(1 << 63, (1 << 64) - 1),
        (0x80000000, 0xFFFFFFFF)]
    return [a.to_bytes(8, "little") + b.to_bytes(8, "little") for a, b in chosen]


def arithmetic(cls: int) -> list[Code]:
    cases: list[Code] = [[i(op | X | cls, 1, 2)] for op in (*OPERATIONS, MOV)]
    cases += [[i(op | K | cls, 1, imm=imm)] for op in (*OPERATIONS, MOV) for imm in IMMEDIATES]
    cases += [[i(op | X | cls, 1, 2, signed)] for op in (DIV, MOD) for signed in (0, 1)]
    cases += [[i(op | K | cls, 1, 0, signed, imm)] for op in (DIV, MOD) for signed in (0, 1) for imm in IMMEDIATES]
    cases += [[i(MOV | X | cls, 1, 2, bits)] for bits in ((8, 16, 32) if cls == ALU64 else (8, 16))]
    return [*cases, [i(NEG | cls, 1)]]


def swaps() -> list[Code]:
    return [[i(kind, 1, imm=bits)] for kind in (END | K | ALU, END | X | ALU, END | K | ALU64) for bits in (16, 32, 64)]


def jumps(cls: int) -> list[Code]:
    taken = [i(MOV | K | ALU64, 3, imm=5), None, i(MOV | K | ALU64, 3, imm=6), i(MOV | X | ALU64, 1, 3)]
    cases = [[*taken[:1], i(op | X | cls, 1, 2, 1), *taken[2:]] for op in CONDITIONS]
    cases += [[*taken[:1], i(op | K | cls, 1, 0, 1, imm), *taken[2:]] for op in CONDITIONS for imm in IMMEDIATES]
    far = i(JA | JMP, offset=1) if cls == JMP else i(JA | JMP32, imm=1)
    return [*cases, [*taken[:1], far, *taken[2:]]]


def memory() -> list[Code]:
    cases: list[Code] = []
    for size in (B, H, W, DW):
        cases.append([i(STX | MEM | DW, 10, 2, -8), i(STX | MEM | size, 10, 1, -8), i(LDX | MEM | DW, 1, 10, -8)])
        cases.append([i(STX | MEM | DW, 10, 2, -8), i(ST | MEM | size, 10, 0, -8, -2), i(LDX | MEM | DW, 1, 10, -8)])
        cases.append([i(LDX | MEM | size, 1, 9, 8 - isa.SIZES[size])])
        if size != DW:
            cases.append([i(LDX | MEMSX | size, 1, 9, 8 - isa.SIZES[size])])
            cases.append([i(STX | MEM | DW, 10, 2, -8), i(LDX | MEMSX | size, 1, 10, -8)])
    return cases


def atomics() -> list[Code]:
    cases: list[Code] = []
    for size in (W, DW):
        for op in (ADD, OR, AND, XOR, ADD | FETCH, OR | FETCH, AND | FETCH, XOR | FETCH, XCHG):
            begin = [i(STX | MEM | DW, 10, 2, -8), i(STX | ATOMIC | size, 10, 1, -8, op), i(LDX | MEM | DW, 3, 10, -8)]
            cases.append([*begin, i(MUL | K | ALU64, 1, imm=31), i(ADD | X | ALU64, 1, 3)])
        for expected in (1, 2):
            cases.append([i(STX | MEM | DW, 10, 2, -8), i(MOV | X | ALU64, 0, expected),
                          i(STX | ATOMIC | size, 10, 1, -8, CMPXCHG),
                          i(LDX | MEM | DW, 1, 10, -8), i(MUL | K | ALU64, 1, imm=31), i(ADD | X | ALU64, 1, 0)])
    return cases


@pytest.mark.parametrize("cases", [arithmetic(ALU64), arithmetic(ALU), swaps(), jumps(JMP), jumps(JMP32), memory(),
                                   atomics()],
                         ids=["alu64", "alu32", "swaps", "jumps", "jumps32", "memory", "atomics"])
def test_every_instruction(cases: list[Code]) -> None:
    def make() -> tuple[Program, list[Any]]:
        code, count = collect(cases)
        out = results(count)
        return Program.from_instructions(flat(code), {"out": out}), [out]

    both(make, pairs(20))

def kind_of(one: Instruction) -> tuple[int, ...]:
    """What makes it another instruction than others: its opcode, and where RFC 9669 looks further."""
    cls, op = one.cls, one.op
    if (one.mode == ATOMIC and cls == STX) or (cls in (ALU, ALU64) and op == END):
        return one.opcode, one.imm
    if cls in (ALU, ALU64) and op in (DIV, MOD, MOV):
        return one.opcode, one.offset
    if one.wide or one.opcode == CALL | JMP:
        return one.opcode, one.src
    return (one.opcode,)


def test_no_instruction_of_the_standard_is_missing() -> None:
    """Every legal kind is among the cases, which all engines run; what cannot stand alone is in all programs, or in
    other tests."""
    imms = [number | low for number in range(0, 256, 16) for low in (0, 1)]
    legal = {kind_of(one) for opcode in isa.USES for dst in (0, 1) for src in range(3) for offset in (0, 1, 8, 16, 32)
             for imm in imms
             if not (one := i(opcode, dst, src, offset, imm)).why_illegal()}
    sets = (arithmetic(ALU64), arithmetic(ALU), swaps(), jumps(JMP), jumps(JMP32), memory(), atomics())
    tested = {kind_of(one) for cases in sets for case in cases for one in flat(case)}
    elsewhere = {(EXIT | JMP,), *((CALL | JMP, src) for src in range(3)), *((isa.LDDW, src) for src in range(7))}
    assert legal - elsewhere == tested
    assert len(tested) == 153


def wild(r: random.Random, depth: int = 0) -> Code:
    """Straight and branching code on r0 to r8, and eight words of the stack."""
    code: Code = []
    for _ in range(r.randrange(3, 9)):
        kind, dst, src = r.randrange(9), r.randrange(6), r.randrange(9)
        cls = r.choice((ALU, ALU64))
        if kind < 3:
            code.append(i(r.choice(OPERATIONS) | X | cls, dst, src))
        elif kind == 3:
            code.append(i(r.choice((DIV, MOD)) | X | cls, dst, src, r.randrange(2)))
        elif kind == 4:
            code.append(lddw(dst, r.choice(VALUES)))
        elif kind == 5:
            code.append(i(STX | MEM | r.choice((B, H, W, DW)), 10, src, -8 * r.randrange(1, 9)))
        elif kind == 6:
            code.append(i(LDX | MEM | r.choice((B, H, W, DW)), dst, 10, -8 * r.randrange(1, 9)))
        elif depth < 3:
            inner = flat(wild(r, depth + 1))
            if kind == 7:
                code += [i(r.choice(CONDITIONS) | X | r.choice((JMP, JMP32)), dst, src, len(inner)), *inner]
            else:  # three times
                counter = i(STX | MEM | DW, 10, 0, -80 - 8 * depth)
                again = [i(LDX | MEM | DW, 6, 10, counter.offset), i(SUB | K | ALU64, 6, imm=1),
                         i(STX | MEM | DW, 10, 6, counter.offset)]
                code += [i(ST | MEM | DW, 10, 0, counter.offset, 3), *inner, *again,
                         i(isa.JNE | K | JMP, 6, 0, -len(inner) - 4)]
    return code


def whole(seed: int) -> list[Instruction]:
    """A program with a subprogram, which is called from two places."""
    r = random.Random(seed)
    begin = [i(ST | MEM | DW, 10, 0, -8 * n, r.randrange(100)) for n in range(1, 9)]
    values = [i(LDX | MEM | DW, n, 1, 8 * (n % 2)) for n in (0, 2, 3, 4, 5, 6, 7, 8)]
    main = flat([*begin, *values, i(MOV | K | ALU64, 1, imm=3), *wild(r)])
    calls = []
    for _ in range(2):
        calls.append([i(CALL | JMP, 0, LOCAL), *(i(MOV | X | ALU64, n, 0) for n in range(1, 6))])
    body = [*main, *calls[0], *flat(wild(r)), *calls[1], i(EXIT | JMP)]
    code = [*body, *begin, i(MOV | X | ALU64, 0, 1), *(i(MOV | X | ALU64, n, 2) for n in (6, 7, 8)), *flat(wild(r)),
            i(EXIT | JMP)]
    for pc, one in enumerate(code[:len(body)]):
        if one.is_local_call:
            code[pc] = i(CALL | JMP, 0, LOCAL, 0, len(body) - pc - 1)
    return code


@pytest.mark.parametrize("seed", range(25))
def test_random_programs(seed: int) -> None:
    both(lambda: (Program.from_instructions(whole(seed)), []), pairs(6, seed))


def on_table(r: random.Random, m: Any, helpers: tuple[int, ...] = (1, 2, 2, 2, 3)) -> Code:
    """Random operations on a hash table or an array."""
    key, value = -8 * ((m.key_size + 7) // 8) - 64, -64
    code: Code = [i(MOV | K | ALU64, 7), *(i(ST | MEM | DW, 10, 0, at, 0) for at in range(-128, 0, 8))]
    for _ in range(20):
        code += [i(ST | MEM | B, 10, 0, key, r.randrange(8)), i(ST | MEM | DW, 10, 0, value, r.randrange(1000)),
                 i(MOV | X | ALU64, 2, 10), i(ADD | K | ALU64, 2, imm=key), i(MOV | X | ALU64, 3, 10),
                 i(ADD | K | ALU64, 3, imm=value),
                 i(MOV | K | ALU64, 4, imm=r.choice((0, 0, 0, 1, 2, 3))), lddw(1, 0, MAP)]
        helper = r.choice(helpers)
        code.append(i(CALL | JMP, imm=helper))
        if helper == 1:
            code += [i(JEQ | K | JMP, 0, 0, 3), i(LDX | MEM | B, 1, 0, 0), i(ADD | X | ALU64, 7, 1),
                     i(MOV | K | ALU64, 0)]
        code += [i(MUL | K | ALU64, 7, imm=31), i(ADD | X | ALU64, 7, 0)]
    return [*code, i(MOV | X | ALU64, 0, 7), i(EXIT | JMP)]


@pytest.mark.parametrize("key, value", [(4, 8), (3, 1), (13, 12), (16, 64)])
@pytest.mark.parametrize("kind", [MapType.HASH, MapType.LRU_HASH, MapType.PERCPU_HASH, MapType.LRU_PERCPU_HASH],
                         ids=lambda kind: kind.name)
def test_tables_are_the_same_byte_for_byte(kind: MapType, key: int, value: int) -> None:
    def make() -> tuple[Program, list[Any]]:
        m: Any = create(Spec(type=kind, name="t", key_size=key, value_size=value, max_entries=5,
                             cpus=2 if kind in (5, 10) else 1))
        m._head[3] = 12345  # the seed
        return Program.from_instructions(flat(on_table(random.Random(key), m)), {"t": m}), [m]

    both(make, [b""] * 3)


@pytest.mark.parametrize("kind", [MapType.ARRAY, MapType.PERCPU_ARRAY], ids=lambda kind: kind.name)
def test_arrays_are_the_same(kind: MapType) -> None:
    def make() -> tuple[Program, list[Any]]:
        m: Any = create(Spec(type=kind, name="t", key_size=4, value_size=20, max_entries=5, cpus=2))
        return Program.from_instructions(flat(on_table(random.Random(2), m)), {"t": m}), [m]

    both(make, [b""] * 3)


def test_records_are_the_same() -> None:
    """Reserved and submitted, discarded, put out whole; until the buffer is full."""
    begin = [i(MOV | X | ALU64, 6, 1), *(i(ST | MEM | DW, 10, 0, at, at) for at in range(-32, 0, 8))]
    code: Code = [*begin]
    for size, end in ((24, 132), (7, 133), (100, 132)):
        code += [lddw(1, 0, MAP), i(MOV | K | ALU64, 2, imm=size), i(MOV | K | ALU64, 3), i(CALL | JMP, imm=131),
                 i(JEQ | K | JMP, 0, 0, 4),
                 i(ST | MEM | W, 0, 0, 0, size), i(MOV | X | ALU64, 1, 0), i(MOV | K | ALU64, 2),
                 i(CALL | JMP, imm=end)]
    code += [lddw(1, 0, MAP), i(MOV | X | ALU64, 2, 10), i(ADD | K | ALU64, 2, imm=-32), i(MOV | K | ALU64, 3, imm=29),
             i(MOV | K | ALU64, 4, imm=1), i(CALL | JMP, imm=130), i(EXIT | JMP)]

    def make() -> tuple[Program, list[Any]]:
        m = create(Spec(type=MapType.RINGBUF, name="r", max_entries=4096))
        return Program.from_instructions(flat(code), {"r": m}), [m]

    both(make, [b""] * 30)


def test_helpers_in_python_are_called_and_their_errors_raised() -> None:
    text = b"x %d\n\0\0\0"
    code = [*lddw(1, int.from_bytes(text, "little")), i(STX | MEM | DW, 10, 1, -8), i(MOV | X | ALU64, 1, 10),
            i(ADD | K | ALU64, 1, imm=-8),
            i(MOV | K | ALU64, 2, imm=6), i(MOV | K | ALU64, 3, imm=7), i(CALL | JMP, imm=6), i(EXIT | JMP)]
    told = []
    for name in ENGINES:
        program = Program.from_instructions(code)
        told.append((program.run(b"", name), program.printed))
    assert told[0] == told[1]
    assert told[0][1] == ["x 7\n"]


def test_the_cache_is_used_and_a_damaged_file_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made: list[int] = []
    translate = native.translate
    monkeypatch.setattr(native, "translate", lambda *arguments: made.append(1) or translate(*arguments))
    code = [i(MOV | K | ALU64, 0, imm=42), i(EXIT | JMP)]
    for _ in range(2):
        assert Program.from_instructions(code).run(b"", "host") == 42
    assert len(made) == 1
    file, = (tmp_path / "kprobes" / "programs").iterdir()
    image = bytearray(file.read_bytes())
    image[-1] ^= 1
    for damaged in (bytes(image), b"", image[:20]):
        file.write_bytes(damaged)
        assert Program.from_instructions(code).run(b"", "host") == 42
    assert len(made) == 4
    file.chmod(0o666)  # anybody may have written it
    assert Program.from_instructions(code).run(b"", "host") == 42
    assert len(made) == 5


def test_a_cache_that_cannot_be_written_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kprobes").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert Program.from_instructions([i(MOV | K | ALU64, 0, imm=42), i(EXIT | JMP)]).run(b"", "host") == 42


def test_who_has_no_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", none)
    assert native.directory() is None
    assert Program.from_instructions([i(MOV | K | ALU64, 0, imm=42), i(EXIT | JMP)]).run(b"", "host") == 42


def test_the_switch_is_for_programs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPROBES_HOST_CODE", "0")
    program = Program.from_instructions([i(MOV | K | ALU64, 0, imm=42), i(EXIT | JMP)])
    assert program.run() == 42
    with pytest.raises(Unsupported, match="KPROBES_HOST_CODE=0"):
        Program.from_instructions([i(MOV | K | ALU64, 0, imm=42), i(EXIT | JMP)]).run(b"", "host")


def test_without_llvmlite_it_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(__import__("sys").modules, "llvmlite", None)
    native.llvm.cache_clear()
    try:
        with pytest.raises(Unsupported, match=r"need llvmlite.*kprobes\[jit\]"):
            Program.from_instructions([i(MOV | K | ALU64, 0, imm=43), i(EXIT | JMP)]).run(b"", "host")
    finally:
        native.llvm.cache_clear()


def test_functions_of_an_operating_system_are_refused() -> None:
    with pytest.raises(KprobeError, match="operating system"):
        Program.from_instructions([i(CALL | JMP, 0, isa.BTF_CALL, 0, 5), i(EXIT | JMP)]).run(b"", "host")
