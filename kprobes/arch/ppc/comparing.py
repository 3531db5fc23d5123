"""Comparisons of PowerPC: Power ISA, book I, 3.3.10.

A fuzzer asks what an instruction compares, to learn how near an input came to what a program wants.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from .._base import signed
from .._comparing import Comparing, OperandComparison, constant, register

CMPLI, CMPI, EXTENDED = 10, 11, 31
CMP, CMPL = 0, 32  #: extended opcodes


def find(order: Literal["little", "big"], code: bytes, _addr: int) -> OperandComparison | None:
    """Return what an instruction compares: CMP, CMPL and those with a constant; None for others.

    Args:
        order: byte order of code.
        code: the instruction's bytes.
        _addr: not used.
    """
    word = int.from_bytes(code[:4], order)
    opcode = word >> 26
    bits = 64 if word >> 21 & 1 else 32
    left = register(word >> 16 & 31)
    if opcode == CMPI:
        return OperandComparison(bits, left, constant(signed(word, 16)))
    if opcode == CMPLI:
        return OperandComparison(bits, left, constant(word & 0xFFFF))
    if opcode == EXTENDED and word >> 1 & 0x3FF in (CMP, CMPL):
        return OperandComparison(bits, left, register(word >> 11 & 31))
    return None


ROWS = {
    "ppc": Comparing(partial(find, "big")),
    "ppc64": Comparing(partial(find, "big")),
    "ppc64le": Comparing(partial(find, "little")),
}
