"""Writes code that does A32's branches and PC readers at another address, under their conditions.

A function that takes `insn` and `to` is a row's `displace`: it returns code that does at address
`to` what the instruction does at its original address, and raises OutOfReach where there is no such
code. Its other parameters are the instruction's fields, by the letters of the row: c condition, o
opcode, s whether it sets flags, n and m operands, d destination.
"""

from __future__ import annotations

from .._base import Insn
from .encode import a32, add, b_wide, move, move_wide
from .encode import b as jump
from .shared import LR, PC, here, stays

ADD, COMPARES, MOVES = 4, (8, 9, 10, 11), (13, 15)


def b(insn: Insn, to: int, c: int, **_: int) -> bytes:
    """Return B from `to` to the original target, under the condition `c`."""
    assert insn.target is not None
    return jump(to, insn.target, c)


def bl(insn: Insn, to: int, c: int, **_: int) -> bytes:
    """Return code that sets LR to the original return address, then branches, under the condition
    `c`.
    """
    code = move(LR, insn.next, c)
    return code + b(insn, to + len(code), c)


def blx(insn: Insn, to: int, **_: int) -> bytes:
    """Return code that changes to T32 by BLX (only that does so without a register), sets LR,
    branches.
    """
    assert insn.target is not None
    code = a32(0xFAFFFFFF) + move_wide(LR, insn.next)  # BLX to the next word
    return code + b_wide(to + len(code), insn.target)


def bx(insn: Insn, to: int, m: int, **_: int) -> bytes:
    """Return BX to register `m` as it is; OutOfReach where that is PC."""
    if m == PC:
        raise stays(insn)
    return insn.raw


def blx_register(insn: Insn, to: int, c: int, m: int, **_: int) -> bytes:
    """Return code that sets LR to the original return address, then BX to register `m`, both under
    condition `c`; OutOfReach where `m` is LR.
    """
    if m == LR:
        raise stays(insn)
    return move(LR, insn.next, c) + a32(c << 28 | 0x012FFF10 | m)


def process(
    insn: Insn,
    to: int,
    c: int,
    o: int,
    s: int,
    n: int,
    d: int,
    m: int = -1,
    i: int = 0,
    y: int = 0,
    **_: int,
) -> bytes:
    """Return code for data processing that reads PC, or writes it.

    An instruction that only writes PC is returned as it is. Else the code puts PC's original value
    into the destination, and then does the instruction with the destination in PC's place; where
    the destination is the other operand as well, only an ADD has code: additions of the parts of
    PC's value.

    Args:
        insn: the instruction at its original address.
        to: address of the code; not used.
        c: condition.
        o: opcode.
        s: 1: it sets flags.
        n: number of the first operand's register.
        d: number of the destination.
        m: number of the second operand's register; -1: it is an immediate.
        i: amount by which register `m` is shifted, or the immediate.
        y: kind of the shift.

    Raises:
        OutOfReach: the instruction would need another register: a compare, one that reads and
            writes PC, or one whose destination is an operand and that is no plain ADD.
    """
    operands = {m} if o in MOVES else {n, m}
    if PC not in operands:
        return insn.raw
    if o in COMPARES or d == PC:
        raise stays(insn)
    if d not in operands:
        word = int.from_bytes(insn.raw, "little")
        return move(d, here(insn), c) + a32(
            word ^ ((n ^ d) << 16 if n == PC else 0) ^ (m ^ d if m == PC else 0)
        )
    if o != ADD or s or i or y:
        raise stays(insn)
    return add(d, here(insn), c)


def load(insn: Insn, to: int, f: int, n: int, **_: int) -> bytes:
    """Return LDR to PC as it is (`f` 1); OutOfReach where its base `n` is PC, or it is a store."""
    if n == PC or not f:
        raise stays(insn)
    return insn.raw
