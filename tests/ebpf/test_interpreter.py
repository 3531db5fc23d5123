"""What every instruction of RFC 9669 means. Expected values are worked out from the RFC's text, never from a run."""

from __future__ import annotations

import pytest

from kprobes import ProgramError
from kprobes.programs import isa
from kprobes.programs.interpreter import Interpreter
from kprobes.programs.isa import Instruction as I  # noqa: N817
from kprobes.programs.isa import lddw
from kprobes.programs.maps import MapType, Spec, create
from kprobes.programs.nowhere import Nowhere
from kprobes.programs.program import Program

pytestmark = pytest.mark.quick
EXIT = I(isa.EXIT | isa.JMP)
M1 = 0xFFFF_FFFF_FFFF_FFFF
MIN64, MIN32 = 1 << 63, 1 << 31
ALU64, ALU = isa.ALU64, isa.ALU


def run(*code, ctx=b"", **more):
    return Program.from_instructions([*code, EXIT], **more).run(ctx, engine="interpreter")


# operation, offset, first, second -> 64-bit result, 32-bit result (the same operands; upper halves must not matter
# there)
ALU_CASES = [
    (isa.ADD, 0, M1, 2, 1, 1), (isa.ADD, 0, 0x7FFF_FFFF, 1, 0x8000_0000, 0x8000_0000),
    (isa.ADD, 0, 0xFFFF_FFFF, 1, 0x1_0000_0000, 0),
    (isa.SUB, 0, 0, 1, M1, 0xFFFF_FFFF), (isa.SUB, 0, 5, 3, 2, 2),
    (isa.MUL, 0, 0x1_0000_0001, 0x1_0000_0001, 0x2_0000_0001, 1), (isa.MUL, 0, M1, M1, 1, 1),
    (isa.DIV, 0, M1, 2, 0x7FFF_FFFF_FFFF_FFFF, 0x7FFF_FFFF), (isa.DIV, 0, 7, 0, 0, 0), (isa.DIV, 0, 13, 3, 4, 4),
    (isa.DIV, 1, M1 - 12, 3, M1 - 3, 0xFFFF_FFFC), (isa.DIV, 1, MIN64, M1, MIN64, 0),
    (isa.DIV, 1, MIN32, M1, M1 - MIN32 + 1, MIN32),
    (isa.DIV, 1, M1, 0, 0, 0), (isa.DIV, 1, 13, M1 - 2, M1 - 3, 0xFFFF_FFFC),
    (isa.MOD, 0, 13, 3, 1, 1), (isa.MOD, 0, M1, 0, M1, 0xFFFF_FFFF), (isa.MOD, 0, 0x5_0000_0007, 0x1_0000_0000, 7, 7),
    (isa.MOD, 1, M1 - 12, 3, M1, 0xFFFF_FFFF), (isa.MOD, 1, 13, M1 - 2, 1, 1), (isa.MOD, 1, MIN64, M1, 0, 0),
    (isa.MOD, 1, MIN32, M1, 0, 0),
    (isa.MOD, 1, M1 - 4, 0, M1 - 4, 0xFFFF_FFFB),
    (isa.OR, 0, 0xF0F0 << 32 | 5, 0x0F0F << 32 | 2, 0xFFFF << 32 | 7, 7),
    (isa.AND, 0, 0xFF00_FF00_FF00_FF00, 0x0FF0_0FF0_0FF0_0FF0, 0x0F00_0F00_0F00_0F00, 0x0F00_0F00),
    (isa.XOR, 0, M1, 0x5555_5555_5555_5555, 0xAAAA_AAAA_AAAA_AAAA, 0xAAAA_AAAA),
    (isa.LSH, 0, 1, 63, MIN64, MIN32), (isa.LSH, 0, 3, 65, 6, 6), (isa.LSH, 0, 1, 32, 1 << 32, 1),
    (isa.RSH, 0, M1, 63, 1, 1), (isa.RSH, 0, MIN64, 64, MIN64, 0), (isa.RSH, 0, 0xFF << 32 | 0x80, 36, 0xF, 0x8),
    (isa.ARSH, 0, MIN64, 63, M1, 0), (isa.ARSH, 0, MIN32, 31, 1, 0xFFFF_FFFF),
    (isa.ARSH, 0, M1 - 7, 1, M1 - 3, 0xFFFF_FFFC), (isa.ARSH, 0, 16, 33, 0, 8),
    (isa.MOV, 0, 5, M1, M1, 0xFFFF_FFFF),
    (isa.MOV, 8, 0, 0x180, M1 - 0x7F, 0xFFFF_FF80), (isa.MOV, 8, 0, 0x7F, 0x7F, 0x7F),
    (isa.MOV, 16, 0, 0x1_8000, M1 - 0x7FFF, 0xFFFF_8000),
    (isa.MOV, 32, 0, 0x1_8000_0000, M1 - 0x7FFF_FFFF, None),
]


@pytest.mark.parametrize("op, offset, a, b, want64, want32", ALU_CASES)
def test_arithmetic_of_registers(op, offset, a, b, want64, want32):
    load = [*lddw(0, a), *lddw(3, b)]
    assert run(*load, I(op | isa.X | ALU64, 0, 3, offset)) == want64
    if want32 is not None:
        assert run(*load, I(op | isa.X | ALU, 0, 3, offset)) == want32


@pytest.mark.parametrize("op, offset, a, b, want64, want32", [c for c in ALU_CASES if not (c[0] == isa.MOV and c[1])])
def test_arithmetic_of_constants(op, offset, a, b, want64, want32):
    imm = isa.signed(b, 32)
    if imm & M1 == b:
        assert run(*lddw(0, a), I(op | ALU64, 0, 0, offset, imm)) == want64
    assert run(*lddw(0, a), I(op | ALU, 0, 0, offset, imm)) == want32


# constants are sign-extended to 64 bits in ALU64, also for unsigned operations; in ALU they are 32 bits
@pytest.mark.parametrize("op, cls, a, imm, want", [
    (isa.DIV, ALU64, M1, -1, 1), (isa.DIV, ALU64, M1 - 1, -1, 0), (isa.DIV, ALU, M1, -1, 1),
    (isa.DIV, ALU, 0xFFFF_FFFE, -1, 0),
    (isa.MOD, ALU64, 5, -1, 5), (isa.MOD, ALU, 0xFFFF_FFFF, -1, 0), (isa.MOV, ALU64, 0, -1, M1),
    (isa.MOV, ALU, 0, -1, 0xFFFF_FFFF),
    (isa.AND, ALU64, M1, -16, M1 - 15), (isa.AND, ALU, M1, -16, 0xFFFF_FFF0),
    (isa.OR, ALU64, 0, MIN32 - (1 << 32), M1 - MIN32 + 1),
])
def test_how_constants_are_extended(op, cls, a, imm, want):
    assert run(*lddw(0, a), I(op | cls, 0, 0, 0, imm)) == want


@pytest.mark.parametrize("a, want64, want32", [(1, M1, 0xFFFF_FFFF), (0, 0, 0), (MIN64, MIN64, 0),
                                               (0x5_0000_0001, M1 - 0x5_0000_0000, 0xFFFF_FFFF)])
def test_negation(a, want64, want32):
    assert run(*lddw(0, a), I(isa.NEG | ALU64)) == want64
    assert run(*lddw(0, a), I(isa.NEG | ALU)) == want32


@pytest.mark.parametrize("bits, cut, swapped", [
    (16, 0xCDEF, 0xEFCD), (32, 0x89AB_CDEF, 0xEFCD_AB89), (64, 0x0123_4567_89AB_CDEF, 0xEFCD_AB89_6745_2301),
])
def test_byte_swaps(bits, cut, swapped):
    value = 0x0123_4567_89AB_CDEF
    for order, same, other in (("little", isa.K, isa.X), ("big", isa.X, isa.K)):
        assert run(*lddw(0, value), I(isa.END | same | ALU, imm=bits), order=order) == cut
        assert run(*lddw(0, value), I(isa.END | other | ALU, imm=bits), order=order) == swapped
        assert run(*lddw(0, value), I(isa.END | ALU64, imm=bits), order=order) == swapped


# condition, first, second -> as 64 bits, as 32 bits
JUMP_CASES = [
    (isa.JEQ, 1, 1, 1, 1), (isa.JEQ, 1 << 32, 0, 0, 1), (isa.JNE, 1, 1, 0, 0), (isa.JNE, 1 << 32, 0, 1, 0),
    (isa.JGT, M1, 1, 1, 1), (isa.JGT, 1, 1, 0, 0), (isa.JGT, 1 << 32, 5, 1, 0), (isa.JGE, 1, 1, 1, 1),
    (isa.JGE, 0, M1, 0, 0),
    (isa.JLT, 1, M1, 1, 1), (isa.JLT, 1, 1, 0, 0), (isa.JLT, 1 << 32, 5, 0, 1), (isa.JLE, 1, 1, 1, 1),
    (isa.JLE, M1, 0, 0, 0),
    (isa.JSET, 6, 2, 1, 1), (isa.JSET, 6, 1, 0, 0), (isa.JSET, MIN64, MIN64, 1, 0),
    (isa.JSGT, 1, M1, 1, 1), (isa.JSGT, M1, M1, 0, 0), (isa.JSGT, MIN32, 0, 1, 0), (isa.JSGE, M1, M1, 1, 1),
    (isa.JSGE, M1, 0, 0, 0),
    (isa.JSLT, M1, 0, 1, 1), (isa.JSLT, 0, 0, 0, 0), (isa.JSLT, MIN32, 0, 0, 1), (isa.JSLE, M1, M1, 1, 1),
    (isa.JSLE, 0, M1, 0, 0),
]


@pytest.mark.parametrize("op, a, b, taken64, taken32", JUMP_CASES)
def test_conditional_jumps(op, a, b, taken64, taken32):
    for cls, taken in ((isa.JMP, taken64), (isa.JMP32, taken32)):
        tail = [I(isa.MOV | ALU64), EXIT, I(isa.MOV | ALU64, imm=1)]
        assert run(*lddw(1, a), *lddw(2, b), I(op | isa.X | cls, 1, 2, 2), *tail) == taken
        imm = isa.signed(b, 32)
        if imm & M1 == b or cls == isa.JMP32:
            assert run(*lddw(1, a), I(op | cls, 1, 0, 2, imm), *tail) == taken


def test_unconditional_jumps_forwards_and_backwards():
    three = I(isa.MOV | ALU64, imm=3)
    for ja in (lambda d: I(isa.JA | isa.JMP, offset=d), lambda d: I(isa.JA | isa.JMP32, imm=d)):
        assert run(ja(2), three, EXIT, ja(-3)) == 3


SIZES = [(isa.B, 1), (isa.H, 2), (isa.W, 4), (isa.DW, 8)]
PATTERN = bytes.fromhex("f1e2d3c4b5a69788")


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("size, n", SIZES)
def test_loads_and_stores(size, n, order):
    ctx = b"\0\0" + PATTERN
    value = int.from_bytes(PATTERN[:n], order)
    assert run(I(isa.MEM | size | isa.LDX, 0, 1, 2), ctx=ctx, order=order) == value
    if n < 8:
        assert run(I(isa.MEMSX | size | isa.LDX, 0, 1, 2), ctx=ctx, order=order) == (value - (1 << 8 * n)) & M1
    memory = bytearray(b"\x55" * 16)
    run(*lddw(2, 0x0123_4567_89AB_CDEF), I(isa.MEM | size | isa.STX, 1, 2, 5), ctx=memory, order=order)
    assert memory == b"\x55" * 5 + (0x0123_4567_89AB_CDEF & (1 << 8 * n) - 1).to_bytes(n, order) + b"\x55" * (11 - n)
    memory = bytearray(b"\x55" * 16)
    run(I(isa.MEM | size | isa.ST, 1, 0, 8, -2), ctx=memory, order=order)
    assert memory == b"\x55" * 8 + (M1 - 1 & (1 << 8 * n) - 1).to_bytes(n, order) + b"\x55" * (8 - n)


# operation, memory, operand -> its lower 32 bits afterwards
ATOMIC_CASES = [
    (isa.ADD, M1, 3, 2), (isa.OR, 0xF0, 0x0F, 0xFF), (isa.AND, 0xFC, 0x3F, 0x3C), (isa.XOR, 0xFF, 0x0F, 0xF0),
]


@pytest.mark.parametrize("fetch", [0, isa.FETCH])
@pytest.mark.parametrize("op, old, operand, want32", ATOMIC_CASES)
def test_atomic_operations(op, old, operand, want32, fetch):
    for size, n in ((isa.DW, 8), (isa.W, 4)):
        memory = bytearray(old.to_bytes(8, "little"))
        code = [*lddw(2, operand | 7 << 40), I(isa.ATOMIC | size | isa.STX, 1, 2, 0, op | fetch),
                I(isa.MOV | isa.X | ALU64, 0, 2)]
        result = run(*code, ctx=memory)
        mask = (1 << 8 * n) - 1
        full = operand | 7 << 40
        want64 = {isa.ADD: old + full & M1, isa.OR: old | full, isa.AND: old & full, isa.XOR: old ^ full}[op]
        assert int.from_bytes(memory[:n], "little") == (want64 if n == 8 else want32)
        assert memory[n:] == old.to_bytes(8, "little")[n:]  # what is not addressed stays
        assert result == (old & mask if fetch else full)


def test_every_instruction_of_the_rfc_has_its_cases():
    ops, sources, widths = {c[0] for c in ALU_CASES}, (isa.K, isa.X), (ALU, ALU64)
    covered = {op | s | c for op in ops for s in sources for c in widths} | {isa.NEG | c for c in widths}
    covered |= {isa.END | s | ALU for s in sources} | {isa.END | ALU64}  # test_byte_swaps
    covered |= {c[0] | s | cls for c in JUMP_CASES for s in sources for cls in (isa.JMP, isa.JMP32)}
    covered |= {isa.JA | isa.JMP, isa.JA | isa.JMP32, isa.CALL | isa.JMP, isa.EXIT | isa.JMP, isa.LDDW}
    covered |= {isa.MEM | size | cls for size, _ in SIZES for cls in (isa.LDX, isa.ST, isa.STX)}
    covered |= {isa.MEMSX | size | isa.LDX for size, n in SIZES
                if n < 8} | {isa.ATOMIC | size | isa.STX for size in (isa.W, isa.DW)}
    assert covered == set(isa.USES)
    assert {c[0] | fetch for c in ATOMIC_CASES for fetch in (0,
                                                             isa.FETCH)} | {isa.XCHG, isa.CMPXCHG} == set(isa.ATOMICS)
    assert {(c[0], c[1]) for c in ALU_CASES if c[1]} == {(isa.DIV, 1), (isa.MOD, 1), (isa.MOV, 8), (isa.MOV, 16),
                                                         (isa.MOV, 32)}


def test_exchange_and_compare_and_exchange():
    for size, n in ((isa.DW, 8), (isa.W, 4)):
        mask = (1 << 8 * n) - 1
        old, new = 0x1122_3344_5566_7788, 0xAABB_CCDD_EEFF_0011
        memory = bytearray(old.to_bytes(8, "little"))
        out = run(*lddw(2, new), I(isa.ATOMIC | size | isa.STX, 1, 2, 0, isa.XCHG), I(isa.MOV | isa.X | ALU64, 0, 2),
                  ctx=memory)
        assert (out, int.from_bytes(memory[:n], "little")) == (old & mask, new & mask)
        for expected, stored in ((old | (5 << 32 if n == 4 else 0), new), (old ^ 1, old)):
            memory = bytearray(old.to_bytes(8, "little"))
            out = run(*lddw(0, expected), *lddw(2, new), I(isa.ATOMIC | size | isa.STX, 1, 2, 0, isa.CMPXCHG),
                      ctx=memory)
            assert (out, int.from_bytes(memory[:n], "little")) == (old & mask, stored & mask)


def test_local_calls_keep_r6_to_r9_and_have_frames_of_their_own():
    code = [
        I(isa.MOV | ALU64, 6, imm=7), I(isa.MEM | isa.DW | isa.ST, 10, 0, -8, 1), I(isa.MOV | ALU64, 1, imm=5),
        I(isa.CALL | isa.JMP, 0, isa.LOCAL, 0, 4),  # r0 = f(5)
        I(isa.ADD | isa.X | ALU64, 0, 6), I(isa.MEM | isa.DW | isa.LDX, 3, 10, -8), I(isa.ADD | isa.X | ALU64, 0, 3),
        EXIT,
        I(isa.MEM | isa.DW | isa.ST, 10, 0, -8, 100), I(isa.MOV | ALU64, 6, imm=50), I(isa.MOV | isa.X | ALU64, 0, 1),
        I(isa.ADD | ALU64, 0, imm=10),
    ]
    assert run(*code) == 5 + 10 + 7 + 1


def test_a_callee_reaches_its_callers_stack():
    code = [I(isa.MOV | isa.X | ALU64, 1, 10), I(isa.CALL | isa.JMP, 0, isa.LOCAL, 0, 2),
            I(isa.MEM | isa.W | isa.LDX, 0, 10, -4), EXIT, I(isa.MEM | isa.W | isa.ST, 1, 0, -4, 42)]
    assert run(*code) == 42


def test_maps_by_number_and_by_index():
    m = create(Spec(type=MapType.ARRAY, name="a", key_size=4, value_size=8, max_entries=2))
    m[1] = 5
    lookup = [I(isa.MEM | isa.W | isa.ST, 10, 0, -4, 1), I(isa.MOV | isa.X | ALU64, 2, 10),
              I(isa.ADD | ALU64, 2, imm=-4), I(isa.CALL | isa.JMP, imm=1),
              I(isa.JEQ | isa.JMP, 0, 0, 3), I(isa.MOV | ALU64, 1, imm=3),
              I(isa.ATOMIC | isa.DW | isa.STX, 0, 1, 0, isa.ADD), I(isa.MEM | isa.DW | isa.LDX, 0, 0)]
    assert run(*lddw(1, 7, isa.MAP_FD, 0), *lookup, maps={7: m}) == 8
    assert run(*lddw(1, 0, isa.MAP, 0), *lookup, maps={"a": m}) == 11
    assert run(*lddw(1, 0, isa.MAP_VALUE, 8), I(isa.MEM | isa.DW | isa.LDX, 0, 1), maps={"a": m}) == 11
    assert m[1] == 11


def deep():
    return [I(isa.CALL | isa.JMP, 0, isa.LOCAL, 0, -1)]


@pytest.mark.parametrize("code, reason", [
    ([I(isa.MEM | isa.B | isa.LDX, 0, 10, 0)], "none of its memory"),
    ([I(isa.MEM | isa.DW | isa.LDX, 0, 10, -4)], "a stack frame has only 4 left"),
    ([I(isa.MEM | isa.B | isa.ST, 10, 0, -513)], "below its stack frame"),
    ([I(isa.MEM | isa.B | isa.ST, 1, 0, 0)], "the context, which is read-only"),
    ([I(isa.MOV | ALU64, 1), I(isa.MEM | isa.B | isa.LDX, 0, 1)], "0x0, which is none of its memory"),
    ([I(isa.MOV | ALU64, 10)], "r10, which is read-only"),
    ([I(isa.JA | isa.JMP, offset=7)], "jumps to slot 8"),
    ([I(isa.CALL | isa.JMP, imm=9999)], "helper 9999"),
    ([I(isa.CALL | isa.JMP, src=isa.BTF_CALL, imm=3)], "kernel function 3"),
    ([I(isa.CALL | isa.JMP, imm=1)], "no map for it"),
    (deep(), "deeper than 8 frames"),
    ([I(0xFF)], "no instruction"),
    ([I(isa.JA | isa.JMP, offset=1), *lddw(0, 5)], "no instruction"),
    ([I(isa.CALL | isa.JMP, imm=132)], "record that it has not reserved"),
])
def test_what_a_program_may_not_do_ends_it(code, reason):
    with pytest.raises(ProgramError, match=reason) as e:
        Program.from_instructions([*code, EXIT]).run(b"", engine="interpreter")
    assert e.value.instruction is not None
    assert "instruction" in str(e.value)


def test_falling_off_the_end():
    with pytest.raises(ProgramError, match="behind the last"):
        Program.from_instructions([I(isa.MOV | ALU64)]).run()


def test_an_endless_loop_ends():
    endless = Program.from_instructions([I(isa.JA | isa.JMP, offset=-1)])
    with pytest.raises(ProgramError, match="not ended after 1,000 instructions"):
        Interpreter(endless.code).run(b"", Nowhere(), limit=1000)


@pytest.mark.parametrize("code, reason", [
    ([], "no instructions"), (b"\x95", "not whole"), ([*lddw(1, 3, isa.MAP_FD, 0)], "no map 3"),
    ([lddw(1, 3)[0], EXIT], "second slot"), (lddw(1, 3)[:1], "second slot"),
])
def test_what_cannot_be_linked(code, reason):
    with pytest.raises(ProgramError, match=reason):
        Program.from_instructions(code)
