"""Sets of numbers hold what instructions and branches can give: held against plain integers, with fixed seeds."""

from __future__ import annotations

import random

import pytest

from kprobes.programs import isa
from kprobes.programs.verifier import alu, branches
from kprobes.programs.verifier.scalar import (
    M32,
    M64,
    Scalar,
    between,
    const,
    extended,
    narrowed,
    swapped,
    truncated,
    unknown,
)

pytestmark = pytest.mark.quick

EDGES = [0, 1, 2, 7, 8, 31, 32, 63, 64, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, M32 - 1,
         M32, M32 + 1, M64 >> 1, (M64 >> 1) + 1, M64 - 1, M64, M64 ^ 0xFF, M64 ^ M32]


def number(r: random.Random) -> int:
    kind = r.randrange(4)
    if kind == 0:
        return r.choice(EDGES)
    if kind == 1:
        return r.choice(EDGES) + r.randrange(-20, 20) & M64
    return r.getrandbits(r.choice((4, 8, 16, 31, 32, 33, 63, 64)))


def a_set(r: random.Random) -> tuple[Scalar, list[int]]:
    """A set and some of its numbers."""
    x = number(r)
    kind = r.randrange(6)
    if kind == 0:
        return const(x), [x]
    if kind == 1:
        return unknown(), [number(r) for _ in range(6)]
    span, mask, span32 = number(r), number(r) if kind > 3 else M64, number(r) & M32 if kind % 2 else M32
    lo, lo32 = x - r.randrange(span + 1) & M64, x - r.randrange(span32 + 1) & M32
    s = narrowed(x & ~mask, mask, lo, span, lo32, span32)
    assert s is not None and s.holds(x), (x, s)
    near = [x, s.lo, s.lo + s.span & M64, s.umin, s.umax, s.value, s.value | s.mask,
            *(x + r.randrange(-9, 9) & M64 for _ in range(4)),
            *((x & ~M32) | (y & M32) for y in (s.lo32, s.lo32 + s.span32)),
            *(s.lo + r.randrange(s.span + 1) & M64 for _ in range(4))]
    return s, [y for y in near if s.holds(y)]


def meaning(op: int, x: int, y: int, bits: int) -> int:
    """RFC 9669, on integers."""
    ring = (1 << bits) - 1
    x, y = x & ring, y & ring
    sx, sy = isa.signed(x, bits), isa.signed(y, bits)
    count = y & bits - 1
    table = {
        isa.ADD: lambda: x + y, isa.SUB: lambda: x - y, isa.MUL: lambda: x * y, isa.DIV: lambda: x // y if y else 0,
        isa.MOD: lambda: x % y if y else x, isa.AND: lambda: x & y, isa.OR: lambda: x | y, isa.XOR: lambda: x ^ y,
        isa.LSH: lambda: x << count, isa.RSH: lambda: x >> count, isa.ARSH: lambda: sx >> count,
        alu.SDIV: lambda: (abs(sx) // abs(sy) * (1 if (sx < 0) == (sy < 0) else -1)) if sy else 0,
        alu.SMOD: lambda: (abs(sx) % abs(sy) * (-1 if sx < 0 else 1)) if sy else sx,
    }
    return table[op]() & ring


@pytest.mark.parametrize("bits", [64, 32])
@pytest.mark.parametrize("op", sorted(alu.ALU64))
def test_arithmetic_holds_every_result(op: int, bits: int) -> None:
    r = random.Random(op * 64 + bits)
    operation = (alu.ALU64 if bits == 64 else alu.ALU32)[op]
    for _ in range(250):
        (a, xs), (b, ys) = a_set(r), a_set(r)
        if r.random() < 0.05:
            out = operation(a, a)
            assert all(out.holds(meaning(op, x, x, bits)) for x in xs), (a, out)
            continue
        out = operation(a, b)
        for x in xs:
            for y in ys:
                assert out.holds(meaning(op, x, y, bits)), (hex(x), hex(y), a, b, out)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_widths_hold_every_result(bits: int) -> None:
    r = random.Random(bits)
    ring = (1 << bits) - 1
    for _ in range(700):
        a, xs = a_set(r)
        for x in xs:
            assert truncated(a, bits).holds(x & ring), (hex(x), a)
            assert extended(a, bits).holds(isa.signed(x, bits) & M64), (hex(x), a)
            if bits > 8:
                assert swapped(a, bits).holds(int.from_bytes((x & ring).to_bytes(bits // 8, "little"),
                                                             "big")), (hex(x), a)
            if truncated(a, bits) is a:
                assert x <= ring
            if extended(a, bits) is a:
                assert isa.signed(x, bits) & M64 == x


def holds(op: int, x: int, y: int, bits: int) -> bool:
    ring = (1 << bits) - 1
    x, y = x & ring, y & ring
    sx, sy = isa.signed(x, bits), isa.signed(y, bits)
    return {isa.JEQ: x == y, isa.JNE: x != y, isa.JGT: x > y, isa.JGE: x >= y, isa.JLT: x < y, isa.JLE: x <= y,
            isa.JSGT: sx > sy,
            isa.JSGE: sx >= sy, isa.JSLT: sx < sy, isa.JSLE: sx <= sy, isa.JSET: bool(x & y),
            branches.JCLEAR: not x & y}[op]


@pytest.mark.parametrize("bits", [64, 32])
@pytest.mark.parametrize("op", sorted(branches.NOT))
def test_branches_keep_every_number_that_takes_them(op: int, bits: int) -> None:
    r = random.Random(op * 64 + bits)
    for _ in range(400):
        (a, xs), (b, ys) = a_set(r), a_set(r)
        if r.random() < 0.1:
            b, ys = a, []
            assert refined_same(op, a, xs, bits)
        out = branches.refined(op, a, b, bits == 64)
        taken = [(x, y) for x in xs for y in ys if holds(op, x, y, bits)]
        assert out is not None or not taken, (a, b, taken)
        for x, y in taken:
            assert out is not None and out[0].holds(x) and out[1].holds(y), (hex(x), hex(y), a, b, out)
        if not a.mask and not b.mask:
            assert (out is not None) == holds(op, a.value, b.value, bits)


def refined_same(op: int, a: Scalar, xs: list[int], bits: int) -> bool:
    out = branches.refined(op, a, a, bits == 64)
    return all(out is not None and out[0].holds(x) for x in xs if holds(op, x, x, bits))


def test_containment_is_of_numbers() -> None:
    r = random.Random(5)
    seen = 0
    for _ in range(3000):
        (a, _), (b, ys) = a_set(r), a_set(r)
        if a.contains(b):
            seen += 1
            assert all(a.holds(y) for y in ys), (a, b)
    assert seen > 250


@pytest.mark.parametrize(("op", "imm", "bits", "left"), [
    (isa.JLE, 10, 64, between(0, 10)), (isa.JGT, 10, 64, between(11, M64)), (isa.JSLE, 10, 64, between(-(1 << 63), 10)),
    (isa.JSGT, -1, 64, between(0, M64 >> 1)), (isa.JEQ, 5, 64, const(5)), (isa.JLT, 1, 64, const(0)),
])
def test_a_branch_tells_the_bounds(op: int, imm: int, bits: int, left: Scalar) -> None:
    out = branches.refined(op, unknown(), const(imm & M64), bits == 64)
    assert out is not None and str(out[0]) == str(left)


def test_the_signed_checks_of_an_int_bound_its_zero_extension() -> None:
    """`int n; if (n < 0 || n > 64)`: two signed 32-bit comparisons, then the lower half is used."""
    n = unknown()
    for op, imm in ((isa.JSGE, 0), (isa.JSLE, 64)):
        pair = branches.refined(op, n, const(imm), False)
        assert pair is not None
        n = pair[0]
    assert str(truncated(n, 32)) == "0..64" and str(extended(n, 32)) == "0..64"


def test_shift_pairs_extend() -> None:
    n = branches.refined(isa.JLE, unknown(), const(64), False)
    assert n is not None
    up = alu.lsh(n[0], const(32))
    assert str(alu.rsh(up, const(32))) == "0..64" and str(alu.arsh(up, const(32))) == "0..64"
