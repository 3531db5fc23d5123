"""Comparisons of RISC-V: The RISC-V Instruction Set Manual, volume I, chapters 2 and "C" extension.

A fuzzer asks what an instruction compares, to learn how near an input came to what a program wants.
"""

from __future__ import annotations

from functools import partial

from .._base import signed
from .._comparing import Comparing, OperandComparison, constant, register

BRANCH, OP, OP_IMM = 0x63, 0x33, 0x13
LESS = (2, 3)  #: funct3 of SLT and SLTU, SLTI and SLTIU


def find(bits: int, code: bytes, _addr: int) -> OperandComparison | None:
    """Return what an instruction compares: conditional branches, SLT and its kin, C.BEQZ and
    C.BNEZ.

    Args:
        bits: width of a register.
        code: the instruction's bytes.
        _addr: not used.

    Returns:
        None for other instructions.
    """
    word = int.from_bytes(code[:4], "little")
    if word & 3 != 3:
        if word & 0xC003 == 0xC001:  # C.BEQZ, C.BNEZ
            return OperandComparison(bits, register(8 + (word >> 7 & 7)), constant(0))
        return None
    opcode, kind = word & 0x7F, word >> 12 & 7
    left, right = register(word >> 15 & 31), register(word >> 20 & 31)
    if opcode == BRANCH and kind not in (2, 3):
        return OperandComparison(bits, left, right)
    if opcode == OP and word >> 25 == 0 and kind in LESS:
        return OperandComparison(bits, left, right)
    if opcode == OP_IMM and kind in LESS:
        return OperandComparison(bits, left, constant(signed(word >> 20, 12)))
    return None


ROWS = {"riscv32": Comparing(partial(find, 32)), "riscv64": Comparing(partial(find, 64))}
