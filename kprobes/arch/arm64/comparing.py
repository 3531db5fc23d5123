"""Comparisons of AArch64: Arm Architecture Reference Manual for A-profile, C4 and C6.2.

A fuzzer asks what an instruction compares, to learn how near an input came to what a program wants.
"""

from __future__ import annotations

from .._comparing import Comparing, OperandComparison, Value, constant, register

ZERO = 31  #: number of XZR, and where an instruction adds, of SP


def _value(number: int) -> Value:
    """Return the Value of a register by its number; 31 is zero."""
    return constant(0) if number == ZERO else register(number)


def find(code: bytes, _addr: int) -> OperandComparison | None:
    """Return what a comparison compares; None for any other instruction.

    Known are CCMP, CBZ, CBNZ, and CMP and CMN (SUBS and ADDS without a result) with a constant;
    CMN's is negated. CMP with a register is known where the register is neither shifted nor
    extended, or extended by UXTH without a shift: that compares 16 bits.

    Args:
        code: bytes from the instruction on.
        _addr: address of the instruction; it does not matter here.
    """
    word = int.from_bytes(code[:4], "little")
    bits = 64 if word >> 31 else 32
    left = word >> 5 & 31
    right = word >> 16 & 31
    discarded = word & 31 == ZERO
    if word & 0x7F800000 == 0x71000000 and discarded:  # SUBS (immediate)
        return OperandComparison(bits, register(left),
                                 constant((word >> 10 & 0xFFF) << 12 * (word >> 22 & 1)))
    if word & 0x7F800000 == 0x31000000 and discarded:  # ADDS (immediate)
        return OperandComparison(bits, register(left),
                                 constant(-((word >> 10 & 0xFFF) << 12 * (word >> 22 & 1))))
    if word & 0x7FE0FC00 == 0x6B000000 and discarded:  # SUBS (shifted register), by nothing
        return OperandComparison(bits, _value(left), _value(right))
    if word & 0x7FE0FC00 == 0x6B202000 and discarded:  # SUBS (extended register), UXTH
        return OperandComparison(16, register(left), _value(right))
    if word & 0x7FE00C10 == 0x7A400000:  # CCMP (register)
        return OperandComparison(bits, _value(left), _value(right))
    if word & 0x7FE00C10 == 0x7A400800:  # CCMP (immediate)
        return OperandComparison(bits, _value(left), constant(right))
    if word & 0x7E000000 == 0x34000000:  # CBZ, CBNZ
        return OperandComparison(bits, _value(word & 31), constant(0))
    return None


ROWS = {"arm64": Comparing(find), "arm64be": Comparing(find)}
