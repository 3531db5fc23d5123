"""Instructions in another place than their original address, in a bundle of their own.

A function that takes `insn` and `to` is a row's `displace`: it returns a bundle that does at
address `to` what the instruction does at its original address, and raises OutOfReach where there is
no such bundle. Its other parameters are the instruction's fields, by the letters of the row.
"""

from __future__ import annotations

from .._base import Insn
from . import bundle
from .bundle import BRANCH, SIZE


def word_of(insn: Insn) -> int:
    """Return the 41 bits of an instruction; of L+X those of X."""
    _, slots = bundle.parts(insn.raw)
    return slots[2 if insn.span == SIZE - 1 else insn.addr % SIZE]


def jump(frm: int, to: int) -> bytes:
    """BRL.COND.SPTK.MANY: everywhere, and no register."""
    return bundle.far(0xC << 37 | 1 << 12, frm, to)


def alone(insn: Insn, to: int, **_: int) -> bytes:
    """Put the instruction into its slot of a bundle of NOPs."""
    return bundle.only(insn.raw, (insn.addr % SIZE,))


def br_cond(insn: Insn, to: int, **_: int) -> bytes:
    """Return the long branch, which has the same fields."""
    assert insn.target is not None
    return bundle.far(word_of(insn) & ~(15 << 37) | 12 << 37, to, insn.target)


def near(insn: Insn, to: int, pieces: bundle.Pieces = BRANCH, **_: int) -> bytes:
    """Return the same branch to its target, for branches that count and rotate, and checks: they
    have no long form.

    Args:
        pieces: where the displacement's bits stand in the instruction.
    """
    assert insn.target is not None
    slot = insn.addr % SIZE
    return bundle.only(
        bundle.with_slot(insn.raw, slot, bundle.near(word_of(insn), to, insn.target, pieces)),
        (slot,),
    )


def brl_cond(insn: Insn, to: int, **_: int) -> bytes:
    assert insn.target is not None
    return bundle.far(word_of(insn), to, insn.target)


def mov_ip(insn: Insn, to: int, d: int, q: int) -> bytes:
    """Return MOVL of the original bundle's address into register `d`, under predicate `q`."""
    value = insn.addr & -SIZE
    word = (
        6 << 37
        | (value >> 63) << 36
        | (value >> 7 & 511) << 27
        | (value >> 16 & 31) << 22
        | (value >> 21 & 1) << 21
    )
    return bundle.long(word | (value & 127) << 13 | d << 6 | q, value >> 22 & bundle.ONES)
