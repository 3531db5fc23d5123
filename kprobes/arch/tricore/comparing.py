"""Comparisons of TriCore: TriCore Architecture Manual, volume 2.

A fuzzer asks what an instruction compares, to learn how near an input came to what a program wants.
"""

from __future__ import annotations

from .._base import signed
from .._comparing import Comparing, OperandComparison, constant, register

IMPLICIT = register(15)  #: D15, the first operand of 16-bit forms of jumps
BITS = 32
#: second opcodes of EQ, NE, LT, LT.U, GE, GE.U, by registers (0x0B) and with a constant (0x8B)
COMPARED = range(0x10, 0x16)
UNSIGNED = (0x13, 0x15)
JUMPS = (0x5F, 0x3F, 0x7F)  #: JEQ and JNE, JLT and JLT.U, JGE and JGE.U, of two registers
JUMPS_CONSTANT = (0xDF, 0xBF, 0xFF)
SHORT_JUMPS = (0x3E, 0x7E)  #: JEQ, JNE of D15 and a register
SHORT_JUMPS_CONSTANT = (0x1E, 0x5E)
SHORT = (0x3A, 0x7A)  #: EQ, LT into D15
SHORT_CONSTANT = (0xBA, 0xFA)


def find(code: bytes, _addr: int) -> OperandComparison | None:
    """Return what an instruction compares: EQ, NE, LT, GE, and the jumps on these conditions.

    Args:
        code: the instruction's bytes.
        _addr: not used.

    Returns:
        None for other instructions.
    """
    word = int.from_bytes(code[:4], "little")
    opcode = word & 0xFF
    left, right = register(word >> 8 & 15), register(word >> 12 & 15)
    short = constant(signed(word >> 12, 4))
    if opcode in JUMPS or opcode in SHORT:
        return OperandComparison(BITS, left, right)
    if opcode in JUMPS_CONSTANT or opcode in SHORT_CONSTANT:
        return OperandComparison(BITS, left, short)
    if opcode in SHORT_JUMPS:
        return OperandComparison(BITS, IMPLICIT, right)
    if opcode in SHORT_JUMPS_CONSTANT:
        return OperandComparison(BITS, IMPLICIT, short)
    if opcode == 0x0B and word >> 20 & 0xFF in COMPARED:
        return OperandComparison(BITS, left, right)
    if opcode == 0x8B and word >> 21 & 0x7F in COMPARED:
        given = word >> 12 & 0x1FF
        return OperandComparison(BITS, left, constant(given if word >> 21 & 0x7F in UNSIGNED else signed(given, 9)))
    return None


ROWS = {"tricore": Comparing(find)}
