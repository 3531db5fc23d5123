"""Narrows both operands of a comparison by its outcome.

`refined(op, a, b, wide)` gives what is left of two scalars where the jump is taken; None: it is
never taken. `NOT[op]` is the opposite.
"""

from __future__ import annotations

from typing import Final

from .. import isa
from .scalar import M32, M64, Scalar, common, meet, narrowed

#: the opposite of JSET, which no instruction has
JCLEAR: Final = 0xF0
Pair = tuple[Scalar, Scalar]

NOT: Final = {
    isa.JEQ: isa.JNE,
    isa.JGT: isa.JLE,
    isa.JGE: isa.JLT,
    isa.JSGT: isa.JSLE,
    isa.JSGE: isa.JSLT,
    isa.JSET: JCLEAR,
}
NOT.update({b: a for a, b in NOT.items()})
#: a < b is b > a
_MIRROR: Final = {isa.JLT: isa.JGT, isa.JLE: isa.JGE, isa.JSLT: isa.JSGT, isa.JSLE: isa.JSGE}
#: op -> (signed, a - b at least)
_ORDER: Final = {isa.JGT: (False, 1), isa.JGE: (False, 0), isa.JSGT: (True, 1), isa.JSGE: (True, 0)}
#: what the jump is where both operands are the same number
_REFLEXIVE: Final = {isa.JEQ: True, isa.JGE: True, isa.JLE: True, isa.JSGE: True, isa.JSLE: True}


def refined(op: int, a: Scalar, b: Scalar, wide: bool) -> Pair | None:
    """Narrow two operands to where a comparison holds.

    Args:
        op: the comparison, JEQ .. JSLE or JCLEAR.
        a: the first operand.
        b: the second.
        wide: True where 64 bits are compared, False for the lower 32.

    Returns:
        Both operands, the same objects where nothing is learnt; None: it never holds.
    """
    if a is b and op not in (isa.JSET, JCLEAR):
        return (a, b) if _REFLEXIVE.get(op) else None
    if op in _MIRROR:
        pair = refined(_MIRROR[op], b, a, wide)
        return pair and (pair[1], pair[0])
    if op in _ORDER:
        return _ordered(*_ORDER[op], a, b, wide)
    if op == isa.JEQ:
        return _equal(a, b, wide)
    if op == isa.JNE:
        return _different(a, b, wide)
    return _tested(op == isa.JSET, a, b, M64 if wide else M32)


def _within(a: Scalar, low: int, high: int, wide: bool) -> Scalar | None:
    """Return the numbers of a set that lie on the arc low .. high.

    Args:
        a: the set of numbers.
        low: where the arc begins.
        high: where the arc ends, less than a full circle behind `low`.
        wide: True where the arc is one of 64-bit numbers; False where it is one of lower halves,
            whatever the upper halves are.

    Returns:
        A set of these numbers, perhaps with a few more; `a` itself where all its numbers lie on the
        arc; None where none does.
    """
    ring = M64 if wide else M32
    low, span = low & ring, high - low & ring
    lo, size = (a.lo, a.span) if wide else (a.lo32, a.span32)
    both = meet(lo, size, low, span, ring)
    if both is None:
        return None
    if both == (lo, size):
        return a
    if wide:
        return narrowed(a.value, a.mask, *both, a.lo32, a.span32)
    return narrowed(a.value, a.mask, a.lo, a.span, *both)


def _bounds(a: Scalar, signed: bool, wide: bool) -> tuple[int, int]:
    """Return (smallest, largest) number of a set, in their order.

    Both are given as distances from 0, or with `signed` from the most negative number.

    Args:
        a: the set.
        signed: True where the numbers are ordered as signed ones.
        wide: True where all 64 bits count, False for the lower 32.
    """
    ring, lo, span = (M64, a.lo, a.span) if wide else (M32, a.lo32, a.span32)
    if signed:
        lo ^= ring // 2 + 1
    return (lo, lo + span) if lo + span <= ring else (0, ring)


def _ordered(signed: bool, least: int, a: Scalar, b: Scalar, wide: bool) -> Pair | None:
    """Narrow two operands to where a - b >= least.

    Args:
        signed: True where signed numbers are compared.
        least: 1 for "greater", 0 for "greater or equal".
        a: the first operand.
        b: the second.
        wide: True where 64 bits are compared, False for the lower 32.

    Returns:
        Both operands; None: it never holds.
    """
    ring = M64 if wide else M32
    zero = ring // 2 + 1 if signed else 0  # the smallest number of all
    low = _bounds(b, signed, wide)[0] + least
    high = _bounds(a, signed, wide)[1] - least
    if low > ring or high < 0:
        return None
    new_a = _within(a, low + zero, ring + zero, wide)
    new_b = _within(b, zero, high + zero, wide)
    return None if new_a is None or new_b is None else (new_a, new_b)


def _equal(a: Scalar, b: Scalar, wide: bool) -> Pair | None:
    """Narrow two operands to where they are equal.

    Args:
        a: the first operand.
        b: the second.
        wide: True where 64 bits are compared, False for the lower 32.

    Returns:
        Both operands, with `wide` one object: a copy; None: they never are equal.
    """
    if wide:
        both = common(a, b)
        # one object from here on: equal numbers are copies
        return None if both is None else (both, both)
    low = meet(a.lo32, a.span32, b.lo32, b.span32, M32)
    if low is None or (a.value ^ b.value) & ~(a.mask | b.mask) & M32:
        return None
    value = (a.value | b.value) & M32
    mask = a.mask & b.mask & M32
    new = [
        narrowed(x.value & ~M32 | value & ~mask, x.mask & ~M32 | mask, x.lo, x.span, *low)
        for x in (a, b)
    ]
    return None if new[0] is None or new[1] is None else (new[0], new[1])


def _different(a: Scalar, b: Scalar, wide: bool) -> Pair | None:
    """Narrow two operands to where they differ.

    That tells something only where one is a constant with which the other's arc begins or ends.

    Args:
        a: the first operand.
        b: the second.
        wide: True where 64 bits are compared, False for the lower 32.

    Returns:
        Both operands; None: they never differ.
    """
    if b.mask:
        if a.mask:
            return a, b
        pair = _different(b, a, wide)
        return pair and (pair[1], pair[0])
    number = b.value if wide else b.value & M32
    lo, span, ring = (a.lo, a.span, M64) if wide else (a.lo32, a.span32, M32)
    if not span:
        return None if lo == number else (a, b)
    if number not in (lo, lo + span & ring):
        return a, b
    lo = lo + 1 & ring if number == lo else lo
    new = _within(a, lo, lo + span - 1, wide)
    return None if new is None else (new, b)


def _tested(some: bool, a: Scalar, b: Scalar, ring: int) -> Pair | None:
    """Narrow two operands to where a test of bits, `a & b`, has the given outcome.

    Args:
        some: the outcome: True: a & b has a bit set, False: it has none.
        a: the first operand.
        b: the second.
        ring: mask of the bits that count: 64, or the lower 32.

    Returns:
        Both operands; None: the test never has this outcome.
    """
    if b.mask:
        if not a.mask:
            pair = _tested(some, b, a, ring)
            return pair and (pair[1], pair[0])
        return a, b
    tested = b.value & ring
    if not some:
        if a.value & tested:
            return None
        new = narrowed(a.value, a.mask & ~tested, a.lo, a.span, a.lo32, a.span32)
    else:
        if not (a.value | a.mask) & tested:
            return None
        if tested & tested - 1 or not tested & a.mask:
            return a, b
        new = narrowed(a.value | tested, a.mask & ~tested, a.lo, a.span, a.lo32, a.span32)
    return None if new is None else (new, b)
