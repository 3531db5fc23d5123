"""Comparisons of m68k: M68000 Family Programmer's Reference Manual, section 4.

A fuzzer asks what an instruction compares, to learn how near an input came to what a program wants.
"""

from __future__ import annotations

from .._base import signed
from .._comparing import Comparing, OperandComparison, Value, constant, register
from .addressing import LONG, PC_DISPLACED, SHORT, extension, half, mode

A0 = 8  #: number of the first address register
IMMEDIATE = 11
BITS = (8, 16, 32)  #: by the field of the operand's size


def _value(e: int, code: bytes, at: int, bits: int, addr: int) -> Value | None:
    """Return the operand that an effective address names.

    Args:
        e: the field of the effective address.
        code: the instruction.
        at: offset of its extension words.
        bits: of the operand.
        addr: of the instruction.

    Returns:
        None: its address has more parts than a Value can have.
    """
    number, base = mode(e), A0 + (e & 7)
    displacement = signed(half(code, at), 16)
    if number == 0:
        return register(e & 7)
    if number == 1:
        return register(base)
    if number in (2, 3):
        return Value(base, memory=True)
    if number == 4:
        return Value(base, constant=-bits // 8, memory=True)
    if number == 5:
        return Value(base, constant=displacement, memory=True)
    if number == SHORT:
        return Value(constant=displacement, memory=True)
    if number == LONG:
        return Value(constant=int.from_bytes(code[at : at + 4], "big"), memory=True)
    if number == PC_DISPLACED:
        return Value(constant=addr + at + displacement, memory=True)
    if number == IMMEDIATE:
        return constant(_immediate(code, at, bits))
    return None


def _immediate(code: bytes, at: int, bits: int) -> int:
    """Return the immediate operand at an offset in an instruction; a byte is the lower one of a
    word.
    """
    size = max(bits // 8, 2)
    return int.from_bytes(code[at : at + size], "big") & (1 << bits) - 1


def find(code: bytes, addr: int) -> OperandComparison | None:
    """Return what an instruction compares: CMP, CMPA of long words, CMPM, CMPI, TST.

    Args:
        code: its bytes and what follows.
        addr: its address.

    Returns:
        None: another instruction, or an operand whose address no Value can say, as one with an
        index.
    """
    word = half(code, 0)
    line, e = word >> 12, word & 63
    size = word >> 6 & 3
    if line == 0xB and word >> 6 & 7 == 7:  # CMPA.L
        other = _value(e, code, 2, 32, addr)
        return None if other is None else OperandComparison(32, register(A0 + (word >> 9 & 7)), other)
    if size == 3:
        return None
    bits = BITS[size]
    if line == 0xB and word >> 8 & 1:
        if mode(e) != 1:  # EOR
            return None
        one, other = Value(A0 + (word >> 9 & 7), memory=True), Value(A0 + (e & 7), memory=True)
        return OperandComparison(bits, one, other)
    if line == 0xB:
        other = _value(e, code, 2, bits, addr)
        return None if other is None else OperandComparison(bits, register(word >> 9 & 7), other)
    if word >> 8 == 0x0C:  # CMPI
        given = extension(0o74, code, 2, max(bits // 8, 2))
        compared = _value(e, code, 2 + given, bits, addr)
        number = constant(_immediate(code, 2, bits))
        return None if compared is None else OperandComparison(bits, compared, number)
    if word >> 8 == 0x4A:  # TST
        compared = _value(e, code, 2, bits, addr)
        return None if compared is None else OperandComparison(bits, compared, constant(0))
    return None


ROWS = {"m68k": Comparing(find)}
