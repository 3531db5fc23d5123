"""Conditions of PA-RISC's conditional branches, on 32-bit values ("Conditions", in the manual's
appendix D).

A condition's number has three bits; a further bit of the instruction asks for the opposite, but see
moved().
"""

from __future__ import annotations

from .._base import signed

LIMIT = 1 << 31


def compared(c: int, left: int, right: int) -> bool:
    """Whether a condition of a comparison holds, which subtracts `right` from `left`.

    Args:
        c: 0 never, 1 =, 2 <, 3 <=, 4 unsigned <, 5 unsigned <=, 6 signed overflow, 7 odd.
        left: 32 bits.
        right: 32 bits.
    """
    a, b = signed(left, 32), signed(right, 32)
    return (
        False,
        a == b,
        a < b,
        a <= b,
        left < right,
        left <= right,
        not -LIMIT <= a - b < LIMIT,
        bool(a - b & 1),
    )[c]


def added(c: int, left: int, right: int) -> bool:
    """Whether a condition of a sum holds.

    Args:
        c: 0 never, 1 the lower 32 bits are 0, 2 the exact signed sum < 0, 3 either of these, 4 no
            unsigned overflow, 5 the lower 32 bits are 0 or no unsigned overflow, 6 signed overflow,
            7 odd.
        left: 32 bits.
        right: 32 bits.
    """
    total, exact = left + right, signed(left, 32) + signed(right, 32)
    fits, zero, overflows = total < 1 << 32, not total & 2 * LIMIT - 1, not -LIMIT <= exact < LIMIT
    return (
        False,
        zero,
        exact < 0,
        zero or exact < 0,
        fits,
        zero or fits,
        overflows,
        bool(total & 1),
    )[c]


def moved(c: int, value: int) -> bool:
    """Whether a condition of one value holds.

    Args:
        c: 0 never, 1 zero, 2 negative, 3 odd; 4 to 7 their opposites.
        value: 32 bits.
    """
    return (False, value == 0, value >= LIMIT, bool(value & 1))[c & 3] is not bool(c & 4)
