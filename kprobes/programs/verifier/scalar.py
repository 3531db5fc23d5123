"""Describes a number in a register by what is known: which bits, and where on the circle of 2**64
(and of 2**32) it lies.

A `Scalar` is a set of 64-bit numbers, described thrice; a number is in the set if all three allow
it:

- **bits** (`value`, `mask`), the kernel's tnum: bits of `mask` are unknown, the others are as in
  `value`;
- **arc** (`lo`, `span`): one of lo, lo+1, .. lo+span, modulo 2**64. One arc serves unsigned and
  signed bounds alike (wrapped intervals: Navas et al., *Signedness-Agnostic Program Analysis*,
  APLAS 2012), and adding arcs has no overflow to get wrong;
- **arc32** (`lo32`, `span32`): the same for the lower 32 bits, modulo 2**32.

Scalars are immutable. **Copies of a register share one object, and nothing else does**: what a
branch tells of one copy holds for every register and stack slot with the identical object. So every
operation makes a new object, but for constants. Sums with a constant remember what they were made
from (`root`, `delta`): what is learnt of `i - 4` is learnt of `i`, too.
"""

from __future__ import annotations

from typing import Final

M32: Final = 0xFFFF_FFFF
M64: Final = 0xFFFF_FFFF_FFFF_FFFF
SIGN: Final = 1 << 63


class Scalar:
    """A set of 64-bit numbers: those that fit bits, arc, and arc of the lower halves.

    With `mask` 0 it is the constant `value`.

    Attributes:
        value: the bits that are known; 0 at those of `mask`.
        mask: the bits that are not known.
        lo: where the arc of 64 bits begins.
        span: numbers on that arc behind `lo`.
        lo32: where the arc of lower halves begins.
        span32: numbers on that arc behind `lo32`.
        root: scalars with the same root, less their `delta`, are one number; None: there are no
            others.
        delta: how much more than its root this number is, modulo 2**64.
    """

    __slots__ = ("delta", "lo", "lo32", "mask", "root", "span", "span32", "value")

    def __init__(self, value: int, mask: int, lo: int, span: int, lo32: int, span32: int) -> None:
        """Make a set of three descriptions that do not contradict each other.

        narrowed_or_any() makes one of any descriptions; the arguments are the attributes.
        """
        self.value = value
        self.mask = mask
        self.lo = lo
        self.span = span
        self.lo32 = lo32
        self.span32 = span32
        self.root: Scalar | None = None
        self.delta = 0

    @property
    def umin(self) -> int:
        """The smallest number, unsigned."""
        return self.lo if self.lo + self.span <= M64 else 0

    @property
    def umax(self) -> int:
        """The largest number, unsigned."""
        end = self.lo + self.span
        return end if end <= M64 else M64

    @property
    def smin(self) -> int:
        """The smallest number, signed."""
        lo = self.lo ^ SIGN
        return lo - SIGN if lo + self.span <= M64 else -SIGN

    @property
    def smax(self) -> int:
        """The largest number, signed."""
        end = (self.lo ^ SIGN) + self.span
        return end - SIGN if end <= M64 else SIGN - 1

    @property
    def umax32(self) -> int:
        """The largest lower half, unsigned."""
        end = self.lo32 + self.span32
        return end if end <= M32 else M32

    def holds(self, number: int) -> bool:
        """Return True where the (unsigned) number is in the set."""
        return (
            (number ^ self.value) & ~self.mask == 0
            and (number - self.lo & M64) <= self.span
            and (number - self.lo32 & M32) <= self.span32
        )

    def contains(self, other: Scalar) -> bool:
        """Return True where each description of `other` lies within this set's.

        Then all numbers of `other` are in this set; it may be False although they are.
        """
        return (
            not (self.value ^ other.value) & ~self.mask
            and not other.mask & ~self.mask
            and (self.span == M64 or (other.lo - self.lo & M64) + other.span <= self.span)
            and (self.span32 == M32 or (other.lo32 - self.lo32 & M32) + other.span32 <= self.span32)
        )

    def relate(self, other: Scalar, by: int) -> None:
        """Note that this number is `other` plus `by`: what is learnt of one holds for the other.

        Nothing is noted where one of both is a constant. `other` becomes its own root if it has
        none.
        """
        if self.mask and other.mask:
            if other.root is None:
                other.root = other
            self.root = other.root
            self.delta = other.delta + by & M64

    def __str__(self) -> str:
        if not self.mask:
            return str(self.value if self.value < SIGN else self.value - (1 << 64))
        bits = "" if self.mask & self.mask + 1 == 0 else f" of bits {self.mask | self.value:#x}"
        if self.lo + self.span <= M64:
            return (
                f"{self.lo}..{self.lo + self.span if self.lo + self.span < M64 else '2^64-1'}{bits}"
            )
        return f"{self.smin}..{self.smax}{bits}"

    __repr__ = __str__


_CONSTANTS: Final = {
    n: Scalar(n, 0, n, 0, n & M32, 0) for n in (*range(1025), *range(M64 - 512, M64 + 1))
}


def const(number: int) -> Scalar:
    """Return the scalar of a single number, which is given unsigned: 0 to 2**64 - 1.

    It may be a shared object: there is nothing left to learn of a constant.
    """
    return _CONSTANTS.get(number) or Scalar(number, 0, number, 0, number & M32, 0)


def unknown() -> Scalar:
    """Return the scalar of all numbers, a new object each time."""
    return Scalar(0, M64, 0, M64, 0, M32)


def between(low: int, high: int) -> Scalar:
    """Return the scalar of all numbers low .. high, both given unsigned or both signed."""
    return narrowed_or_any(0, M64, low & M64, min(high - low, M64), 0, M32)


def meet(a: int, a_span: int, b: int, b_span: int, ring: int) -> tuple[int, int] | None:
    """Return an arc that holds all numbers which two arcs have in common.

    Args:
        a: number where the first arc begins.
        a_span: how many numbers are on the first arc behind `a`.
        b: number where the second arc begins.
        b_span: how many numbers are on the second arc behind `b`.
        ring: the greatest number on the circle.

    Returns:
        (number where the arc begins, how many numbers are behind that); None: the arcs have no
        number in common.
    """
    at = b - a & ring  # where b begins, seen from a's begin
    end = at + b_span
    if at <= a_span:
        if end <= ring:
            return b, min(b_span, a_span - at)
        # b comes around to a's begin: two pieces
        return (a, a_span) if a_span <= b_span else (b, b_span)
    if end <= ring:
        return None
    return a, min(end - ring - 1, a_span)


def narrowed(value: int, mask: int, lo: int, span: int, lo32: int, span32: int) -> Scalar | None:
    """Return the numbers that three descriptions allow together, each narrowed by the others, in
    one pass: another might narrow them more.

    Args:
        value: the known bits.
        mask: the bits that are not known.
        lo: where the arc of 64 bits begins.
        span: numbers on that arc behind `lo`.
        lo32: where the arc of lower halves begins.
        span32: numbers on that arc behind `lo32`.

    Returns:
        A new scalar, or a shared constant; None: no number fits all descriptions.
    """
    if mask != M64:  # bits -> arcs
        both = meet(lo, span, value, mask, M64)
        low = meet(lo32, span32, value & M32, mask & M32, M32)
        if both is None or low is None:
            return None
        lo, span = both
        lo32, span32 = low
    if span <= M32:  # arc <-> arc32: as many numbers as lower halves
        low = meet(lo & M32, span, lo32, span32, M32)
        if low is None:
            return None
        lo32, span32 = low
        at = lo32 - lo & M32
        if at + span32 <= span:
            lo = lo + at & M64
            span = span32
    if lo + span <= M64:  # arc -> bits: the leading ones that its ends share
        known = -1 << (lo ^ lo + span).bit_length() & M64
        if (value ^ lo) & known & ~mask:
            return None
        value = value | lo & known & mask
        mask = mask & ~known
    if lo32 + span32 <= M32:
        known = -1 << (lo32 ^ lo32 + span32).bit_length() & M32
        if (value ^ lo32) & known & ~mask:
            return None
        value = value | lo32 & known & mask
        mask = mask & ~known
    if mask:
        return Scalar(value, mask, lo, span, lo32, span32)
    inside = (value - lo & M64) <= span and (value - lo32 & M32) <= span32
    return const(value) if inside else None


def narrowed_or_any(value: int, mask: int, lo: int, span: int, lo32: int, span32: int) -> Scalar:
    """Return the numbers that three descriptions allow together; all numbers if they contradict.

    Descriptions contradict each other in code that is never reached: any result is correct there.

    Args:
        value: the known bits.
        mask: the bits that are not known.
        lo: where the arc of 64 bits begins.
        span: numbers on that arc behind `lo`.
        lo32: where the arc of lower halves begins.
        span32: numbers on that arc behind `lo32`.
    """
    return narrowed(value, mask, lo, span, lo32, span32) or unknown()


def common(a: Scalar, b: Scalar) -> Scalar | None:
    """Return a set of all numbers that two sets have in common, perhaps with a few more.

    Args:
        a: the first set.
        b: the second.

    Returns:
        None: the sets have no number in common.
    """
    arc = meet(a.lo, a.span, b.lo, b.span, M64)
    low = meet(a.lo32, a.span32, b.lo32, b.span32, M32)
    if arc is None or low is None or (a.value ^ b.value) & ~(a.mask | b.mask):
        return None
    mask = a.mask & b.mask
    return narrowed((a.value | b.value) & ~mask, mask, *arc, *low)


def truncated(a: Scalar, bits: int) -> Scalar:
    """Return the set of the numbers' lower bits, zero-extended.

    Args:
        a: the set of numbers.
        bits: 8, 16, 32 or 64.

    Returns:
        `a` itself where all its numbers fit: a register that is a copy stays one.
    """
    ring = (1 << bits) - 1
    if a.umax <= ring:
        return a
    if not a.mask:
        return const(a.value & ring)
    lo = a.lo32 & ring
    span = min(a.span32, ring)
    if lo + span > ring:
        lo32, span32 = (lo, span) if bits == 32 else (0, ring)
        return narrowed_or_any(a.value & ring, a.mask & ring, 0, ring, lo32, span32)
    return narrowed_or_any(a.value & ring, a.mask & ring, lo, span, lo, span)


def extended(a: Scalar, bits: int) -> Scalar:
    """Return the set of the numbers' lower bits, sign-extended to 64.

    Args:
        a: the set of numbers.
        bits: 8, 16, 32 or 64.

    Returns:
        `a` itself where that changes none of its numbers: a register that is a copy stays one.
    """
    sign = 1 << bits - 1
    ring = (1 << bits) - 1
    if a.umax < sign or bits == 64:
        return a
    if not a.mask:
        return const((a.value & ring ^ sign) - sign & M64)
    lo = (a.lo32 & ring) + sign & ring
    span = a.span32
    if lo + span > ring:
        lo, span = 0, ring
    value = a.value & ring
    mask = a.mask & ring
    upper = M64 & ~ring
    if mask & sign:
        mask |= upper
    elif value & sign:
        value |= upper
    lo = lo - sign & M64
    return narrowed_or_any(value, mask, lo, span, lo & M32, span)


def swapped(a: Scalar, bits: int) -> Scalar:
    """Return the set of numbers whose lower bits have their bytes reversed.

    It is exact for a constant; else it is any number of `bits` bits.

    Args:
        a: the set of numbers.
        bits: 16, 32 or 64.
    """
    if not a.mask:
        size = bits // 8
        return const(int.from_bytes((a.value & (1 << bits) - 1).to_bytes(size, "little"), "big"))
    return between(0, (1 << bits) - 1)
