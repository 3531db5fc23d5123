"""Arithmetic on sets of numbers: the result holds every number that the instruction can give.

`ALU64[op]` and `ALU32[op]` take (dst, src) and give the new dst. 32-bit operations are the 64-bit
ones on lower halves, cut to 32 bits: all but right shifts with sign and signed divisions agree
modulo 2**32, and these see their operands extended.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .. import isa
from .scalar import (
    M32,
    M64,
    SIGN,
    Scalar,
    between,
    const,
    extended,
    narrowed_or_any,
    truncated,
    unknown,
)

Operation = Callable[[Scalar, Scalar], Scalar]
SDIV: Final = isa.DIV | 1  # keys of the tables for the signed forms (offset 1)
SMOD: Final = isa.MOD | 1


def _arc(lo: int, span: int, ring: int) -> tuple[int, int]:
    """Return an arc on a circle, at most all of it: (first number, numbers behind it).

    Args:
        lo: where it begins, any integer.
        span: numbers behind that.
        ring: the greatest number on the circle.
    """
    return (lo & ring, span) if span <= ring else (0, ring)


def add(a: Scalar, b: Scalar) -> Scalar:
    """Return the set of possible sums; a sum with a constant is related to the other operand.

    Args:
        a: the set of numbers that the first operand may be.
        b: the set of numbers that the second operand may be.
    """
    if not a.mask and not b.mask:
        return const(a.value + b.value & M64)
    low = a.value + b.value
    mask = (low ^ low + a.mask + b.mask | a.mask | b.mask) & M64
    out = narrowed_or_any(
        low & ~mask & M64,
        mask,
        *_arc(a.lo + b.lo, a.span + b.span, M64),
        *_arc(a.lo32 + b.lo32, a.span32 + b.span32, M32),
    )
    if not b.mask:
        out.relate(a, b.value)
    elif not a.mask:
        out.relate(b, a.value)
    return out


def sub(a: Scalar, b: Scalar) -> Scalar:
    """Return the set of possible differences; one of a constant is related to the first operand.

    Args:
        a: the set of numbers that are subtracted from.
        b: the numbers that are subtracted.
    """
    if not a.mask and not b.mask:
        return const(a.value - b.value & M64)
    if a is b:
        return const(0)
    low = a.value - b.value
    mask = (low + a.mask ^ low - b.mask | a.mask | b.mask) & M64
    out = narrowed_or_any(
        low & ~mask & M64,
        mask,
        *_arc(a.lo - b.lo - b.span, a.span + b.span, M64),
        *_arc(a.lo32 - b.lo32 - b.span32, a.span32 + b.span32, M32),
    )
    if not b.mask:
        out.relate(a, -b.value)
    return out


def negated(a: Scalar) -> Scalar:
    """Return the negated numbers, as two's complement."""
    return sub(const(0), a)


def mul(a: Scalar, b: Scalar) -> Scalar:
    """Return the set of possible products.

    Args:
        a: the set of numbers that the first operand may be.
        b: the set of numbers that the second operand may be.
    """
    if not a.mask and not b.mask:
        return const(a.value * b.value & M64)
    if not a.mask:
        a, b = b, a
    zeros = _trailing(a) + _trailing(b)
    mask = M64 >> zeros << zeros & M64 if zeros < 64 else 0
    if not b.mask:
        return narrowed_or_any(
            0,
            mask,
            *_arc(a.lo * b.value, a.span * b.value, M64),
            *_arc(a.lo32 * b.value, a.span32 * (b.value & M32), M32),
        )
    low = a.umin * b.umin
    high = a.umax * b.umax
    return narrowed_or_any(0, mask, *((low, high - low) if high <= M64 else (0, M64)), 0, M32)


def _trailing(a: Scalar) -> int:
    """Return how many of the lowest bits are 0 in all numbers; 64 for the constant 0."""
    bits = a.value | a.mask
    return (bits & -bits).bit_length() - 1 if bits else 64


def and_(a: Scalar, b: Scalar) -> Scalar:
    """Return the set of possible results of `&`.

    Args:
        a: the set of numbers that the first operand may be.
        b: the set of numbers that the second operand may be.
    """
    value = a.value & b.value
    mask = (a.value | a.mask) & (b.value | b.mask) & ~value
    if not mask:
        return const(value)
    return narrowed_or_any(value, mask, 0, min(a.umax, b.umax), 0, min(a.umax32, b.umax32))


def or_(a: Scalar, b: Scalar) -> Scalar:
    """Return the set of possible results of `|`.

    Args:
        a: the set of numbers that the first operand may be.
        b: the set of numbers that the second operand may be.
    """
    value = a.value | b.value
    mask = (a.mask | b.mask) & ~value
    if not mask:
        return const(value)
    low = max(a.umin, b.umin)
    high = _filled(a.umax | b.umax)
    return narrowed_or_any(value, mask, low, high - low, 0, _filled(a.umax32 | b.umax32))


def xor(a: Scalar, b: Scalar) -> Scalar:
    """Return the set of possible results of `^`.

    Args:
        a: the set of numbers that the first operand may be.
        b: the set of numbers that the second operand may be.
    """
    if a is b:
        return const(0)
    mask = a.mask | b.mask
    value = (a.value ^ b.value) & ~mask
    if not mask:
        return const(value)
    return narrowed_or_any(
        value, mask, 0, _filled(a.umax | b.umax), 0, _filled(a.umax32 | b.umax32)
    )


def _filled(number: int) -> int:
    """Return a number's highest bit and all bits below it, all set; 0 for 0."""
    return (1 << number.bit_length()) - 1


def _amounts(b: Scalar, limit: int) -> tuple[int, int]:
    """Return (smallest, largest) distance of a shift in bits.

    Args:
        b: the numbers of the shift's second operand, which count modulo limit + 1.
        limit: the width less one: 63 or 31.
    """
    if not b.mask:
        return b.value & limit, b.value & limit
    return (b.umin, b.umax) if b.umax <= limit else (0, limit)


def lsh(a: Scalar, b: Scalar, limit: int = 63) -> Scalar:
    """Return the set of possible results of shifts to the left.

    Args:
        a: the set of numbers that are shifted.
        b: the distances in bits, taken modulo limit + 1.
        limit: the width less one: 63 or 31.
    """
    least, most = _amounts(b, limit)
    if least == most:
        return _lsh_by(a, least)
    if a.umax << most <= M64:
        return between(a.umin << least, a.umax << most)
    return unknown()


def _lsh_by(a: Scalar, k: int) -> Scalar:
    """Return the numbers shifted to the left by a known distance.

    Args:
        a: the numbers.
        k: the distance in bits, 0 to 63.
    """
    if not a.mask:
        return const(a.value << k & M64)
    if a.span << k <= M64:
        arc = a.lo << k & M64, a.span << k
    elif k >= 32 and a.span32 << k <= M64:  # what is above the lower half is shifted out
        arc = a.lo32 << k & M64, a.span32 << k
    else:
        arc = 0, M64
    return narrowed_or_any(
        a.value << k & M64, a.mask << k & M64, *arc, *_arc(a.lo32 << k, a.span32 << k, M32)
    )


def rsh(a: Scalar, b: Scalar, limit: int = 63) -> Scalar:
    """Return the set of possible results of shifts to the right that fill with zeros.

    Args:
        a: the set of numbers that are shifted.
        b: the distances in bits, taken modulo limit + 1.
        limit: the width less one: 63 or 31.
    """
    least, most = _amounts(b, limit)
    low = a.umin >> most
    high = a.umax >> least
    if least == most:
        return narrowed_or_any(a.value >> least, a.mask >> least, low, high - low, 0, M32)
    return between(low, high)


def arsh(a: Scalar, b: Scalar, limit: int = 63) -> Scalar:
    """Return the set of possible results of shifts to the right that keep the sign.

    Args:
        a: the set of numbers that are shifted.
        b: the distances in bits, taken modulo limit + 1.
        limit: the width less one: 63 or 31.
    """
    least, most = _amounts(b, limit)
    low = min(a.smin >> least, a.smin >> most)
    high = max(a.smax >> least, a.smax >> most)
    if least != most:
        return between(low, high)
    value, mask = ((bits ^ SIGN) - SIGN >> least & M64 for bits in (a.value, a.mask))
    return narrowed_or_any(value, mask, low & M64, high - low, 0, M32)


def div(a: Scalar, b: Scalar) -> Scalar:
    """Return the set of possible unsigned quotients; 0 for division by zero.

    Args:
        a: the set of dividends.
        b: the divisors.
    """
    if b.umin:
        return between(a.umin // b.umax, a.umax // b.umin)
    return between(0, a.umax) if b.umax else const(0)


def mod(a: Scalar, b: Scalar) -> Scalar:
    """Return the set of possible unsigned remainders; the dividend for division by zero. It is `a`
    itself where the divisor is 0 or greater than all dividends.

    Args:
        a: the set of dividends.
        b: the divisors.
    """
    if not b.umax or a.umax < b.umin:
        return a
    if not a.mask and not b.mask:
        return const(a.value % b.value)
    return between(0, min(a.umax, b.umax - 1) if b.umin else a.umax)


def _signed(a: Scalar) -> int:
    """Return the number that a constant scalar is, as a signed number."""
    return (a.value ^ SIGN) - SIGN


def sdiv(a: Scalar, b: Scalar) -> Scalar:
    """Return the set of possible signed quotients; 0 for division by zero.

    It is exact for constants, and else any number.

    Args:
        a: the set of dividends.
        b: the divisors.
    """
    if a.mask or b.mask:
        return unknown()
    x = _signed(a)
    y = _signed(b)
    quotient = abs(x) // abs(y) if y else 0
    return const((quotient if (x < 0) == (y < 0) else -quotient) & M64)


def smod(a: Scalar, b: Scalar) -> Scalar:
    """Return a set that has all possible signed remainders, whose sign is the dividend's.

    It is any number for a divisor that is no constant, and the dividend for division by zero. Else
    only the divisor limits it, and whether dividends may be negative; with two constants it is the
    remainder.

    Args:
        a: the set of dividends.
        b: the divisors.
    """
    if b.mask:
        return unknown()
    y = abs(_signed(b))
    if not y:
        return a
    if not a.mask:
        x = _signed(a)
        return const((abs(x) % y if x >= 0 else -(abs(x) % y)) & M64)
    return between(0 if a.smin >= 0 else 1 - y, y - 1)


def _lower(operation: Operation) -> Operation:
    """Make a 32-bit operation of a 64-bit one: it zero-extends both lower halves, and cuts the
    result to 32 bits.
    """
    return lambda a, b: truncated(operation(truncated(a, 32), truncated(b, 32)), 32)


def _lower_signed(operation: Operation) -> Operation:
    """Make a 32-bit operation of a 64-bit one: it sign-extends both lower halves, and cuts the
    result to 32 bits.
    """
    return lambda a, b: truncated(operation(extended(a, 32), extended(b, 32)), 32)


ALU64: Final[dict[int, Operation]] = {
    isa.ADD: add,
    isa.SUB: sub,
    isa.MUL: mul,
    isa.DIV: div,
    isa.OR: or_,
    isa.AND: and_,
    isa.LSH: lsh,
    isa.RSH: rsh,
    isa.MOD: mod,
    isa.XOR: xor,
    isa.ARSH: arsh,
    SDIV: sdiv,
    SMOD: smod,
}
ALU32: Final[dict[int, Operation]] = {
    **{
        op: _lower(ALU64[op])
        for op in (isa.ADD, isa.SUB, isa.MUL, isa.DIV, isa.OR, isa.AND, isa.MOD, isa.XOR)
    },
    isa.LSH: _lower(lambda a, b: lsh(a, b, 31)),
    isa.RSH: _lower(lambda a, b: rsh(a, b, 31)),
    isa.ARSH: lambda a, b: truncated(arsh(extended(a, 32), b, 31), 32),
    SDIV: _lower_signed(sdiv),
    SMOD: _lower_signed(smod),
}
