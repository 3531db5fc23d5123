"""Arithmetic and jumps, as functions of unsigned numbers of 32 or 64 bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from . import isa
from .isa import signed

#: (first operand, second operand, bits), both below 2**bits -> result, to be cut to `bits`
Binary = Callable[[int, int, int], int]


def _divide(a: int, b: int) -> int:
    """Return the quotient of signed numbers, truncated toward zero as in C; 0 if `b` is 0."""
    if b == 0:
        return 0
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def sdiv(a: int, b: int, bits: int) -> int:
    """Return the signed quotient, truncated toward zero; 0 for division by zero.

    Args:
        a: the dividend, unsigned.
        b: the divisor, unsigned.
        bits: 32 or 64: both are taken as signed numbers of so many bits.
    """
    return _divide(signed(a, bits), signed(b, bits))


def smod(a: int, b: int, bits: int) -> int:
    """Return the signed remainder, whose sign is the dividend's; by zero it is the dividend.

    Args:
        a: the dividend, unsigned.
        b: the divisor, unsigned.
        bits: 32 or 64: both are taken as signed numbers of so many bits.
    """
    a = signed(a, bits)
    b = signed(b, bits)
    return a - b * _divide(a, b)


ARITHMETIC: Final[Mapping[int, Binary]] = {
    isa.ADD: lambda a, b, bits: a + b,
    isa.SUB: lambda a, b, bits: a - b,
    isa.MUL: lambda a, b, bits: a * b,
    isa.DIV: lambda a, b, bits: a // b if b else 0,
    isa.OR: lambda a, b, bits: a | b,
    isa.AND: lambda a, b, bits: a & b,
    isa.LSH: lambda a, b, bits: a << (b & bits - 1),
    isa.RSH: lambda a, b, bits: a >> (b & bits - 1),
    isa.NEG: lambda a, b, bits: -a,
    isa.MOD: lambda a, b, bits: a % b if b else a,
    isa.XOR: lambda a, b, bits: a ^ b,
    isa.MOV: lambda a, b, bits: b,
    isa.ARSH: lambda a, b, bits: signed(a, bits) >> (b & bits - 1),
}
#: the same with offset 1
SIGNED: Final[Mapping[int, Binary]] = {isa.DIV: sdiv, isa.MOD: smod}

CONDITIONS: Final[Mapping[int, Callable[[int, int, int], bool]]] = {
    isa.JEQ: lambda a, b, bits: a == b,
    isa.JGT: lambda a, b, bits: a > b,
    isa.JGE: lambda a, b, bits: a >= b,
    isa.JSET: lambda a, b, bits: bool(a & b),
    isa.JNE: lambda a, b, bits: a != b,
    isa.JSGT: lambda a, b, bits: signed(a, bits) > signed(b, bits),
    isa.JSGE: lambda a, b, bits: signed(a, bits) >= signed(b, bits),
    isa.JLT: lambda a, b, bits: a < b,
    isa.JLE: lambda a, b, bits: a <= b,
    isa.JSLT: lambda a, b, bits: signed(a, bits) < signed(b, bits),
    isa.JSLE: lambda a, b, bits: signed(a, bits) <= signed(b, bits),
}

#: atomic operation without FETCH -> new value in memory
ATOMIC: Final[Mapping[int, Binary]] = {
    op: ARITHMETIC[op] for op in (isa.ADD, isa.OR, isa.AND, isa.XOR)
}


def swap(value: int, bits: int) -> int:
    """Return the lower bits of a number with their bytes in the opposite order.

    Args:
        value: the number.
        bits: how many bits count: 16, 32 or 64.
    """
    return int.from_bytes((value & (1 << bits) - 1).to_bytes(bits // 8, "little"), "big")
