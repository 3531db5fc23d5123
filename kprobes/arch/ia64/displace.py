"""Writes bundles that do Itanium's instructions at another address than their own.

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
    """Return a bundle that jumps from `frm` to `to` by BRL, which reaches everywhere, without a
    register.
    """
    return bundle.far(0xC << 37 | 1 << 12, frm, to)


def alone(insn: Insn, to: int, **_: int) -> bytes:
    """Return the instruction in its slot of a bundle of nops, for instructions that run
    anywhere.
    """
    return bundle.only(insn.raw, (insn.addr % SIZE,))


def br_cond(insn: Insn, to: int, **_: int) -> bytes:
    """Return a bundle for `to` with the long form (BRL) of a branch, to its original target."""
    assert insn.target is not None
    return bundle.far(word_of(insn) & ~(15 << 37) | 12 << 37, to, insn.target)


def near(insn: Insn, to: int, pieces: bundle.Pieces = BRANCH, **_: int) -> bytes:
    """Return a bundle for `to` with the branch or check, its displacement adjusted to its target.

    For branches that count and rotate, and checks, which have no long form.

    Args:
        pieces: (shift, width) of the displacement's fields in the instruction.
    """
    assert insn.target is not None
    slot = insn.addr % SIZE
    return bundle.only(
        bundle.with_slot(insn.raw, slot, bundle.near(word_of(insn), to, insn.target, pieces)),
        (slot,),
    )


def brl_cond(insn: Insn, to: int, **_: int) -> bytes:
    """Return a bundle for `to` with the same BRL, to its original target."""
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
