"""Comparisons of MIPS: The MIPS64 Instruction Set Reference Manual, revisions 5 and 6.

A fuzzer asks what an instruction compares, to learn how near an input came to what a program wants.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from .._base import signed
from .._comparing import Comparing, OperandComparison, constant, register

SPECIAL = 0
LESS = (0x2A, 0x2B)  #: functions of SLT, SLTU
SLTI, SLTIU = 0x0A, 0x0B
EQUAL = (0x04, 0x05)  #: BEQ, BNE
LIKELY = (0x14, 0x15)  #: BEQL, BNEL; gone in release 6
#: release 6: BGEUC, BLTUC, BGEC, BLTC where both registers are named and differ
ORDERED = (0x06, 0x07, 0x16, 0x17)
NAMED = (0x08, 0x18)  #: release 6: BEQC, BNEC where the first register's number is the lower one
WITH_ZERO = (0x36, 0x3E)  #: release 6: BEQZC, BNEZC


def find(bits: int, order: Literal["little", "big"], six: bool, code: bytes,
         _addr: int) -> OperandComparison | None:
    """Return what an instruction compares: BEQ, BNE and their likely and compact kin, SLT and its
    kin; of release 6 also BEQZC and BNEZC.

    Other branches that compare with 0, as BLEZ, do not count.

    Args:
        bits: width of a register.
        order: byte order of code.
        six: True: code of release 6.
        code: the instruction's bytes.
        _addr: not used.

    Returns:
        None for other instructions.
    """
    word = int.from_bytes(code[:4], order)
    opcode, first, second = word >> 26, word >> 21 & 31, word >> 16 & 31
    compact = six and (
        (opcode in ORDERED and first and second and first != second)
        or (opcode in NAMED and 0 < first < second)
    )
    if opcode in EQUAL or compact or (opcode in LIKELY and not six):
        return OperandComparison(bits, register(first), register(second))
    if opcode == SPECIAL and word & 0x3F in LESS and not word & 0x7C0:
        return OperandComparison(bits, register(first), register(second))
    if opcode in (SLTI, SLTIU):
        return OperandComparison(bits, register(first), constant(signed(word, 16)))
    if six and opcode in WITH_ZERO and first:
        return OperandComparison(bits, register(first), constant(0))
    return None


def _row(bits: int, order: Literal["little", "big"], six: bool = False) -> Comparing:
    """Make the row of one architecture.

    Args:
        bits: width of a register.
        order: byte order of code.
        six: True: code of release 6.
    """
    return Comparing(partial(find, bits, order, six))


ROWS = {
    "mips": _row(32, "big"),
    "mipsel": _row(32, "little"),
    "mips64": _row(64, "big"),
    "mips64el": _row(64, "little"),
    "mips32r6": _row(32, "big", True),
    "mips32r6el": _row(32, "little", True),
    "mips64r6": _row(64, "big", True),
    "mips64r6el": _row(64, "little", True),
}
