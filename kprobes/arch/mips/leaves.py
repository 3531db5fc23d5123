"""Finds position-independent calls at a function's tail, for `Walking.leaves` of MIPS.

They jump through t9, which is loaded from the global offset table.
    lw t9,-32716(gp); addiu t9,t9,1020; jr t9
"""

from __future__ import annotations

from collections.abc import Sequence

from .._base import Insn, Order

T9, GP = 25, 28
LOADS, ADDS = (0x23, 0x37), (0x09, 0x19)  # LW, LD; ADDIU, DADDIU
LIKELY = (0x14, 0x15, 0x16, 0x17)


def annuls(code: int) -> bool:
    """Whether an encoding is a likely branch, which skips its delay slot where it is not taken."""
    return (code >> 26 in LIKELY or (code >> 26 == 1 and code >> 17 & 1 == 1)
            or (code >> 26 == 0x11 and code >> 21 & 31 == 8 and code >> 17 & 1 == 1))


def leaves(order: Order, jump: Insn, before: Sequence[Insn]) -> Insn | None:
    """Return the load of t9 from the table, if a jump goes to what that loads.

    Nothing but the low half of an address may be added to t9 in between.

    Args:
        order: byte order of code.
        jump: the computed jump.
        before: instructions that always precede it, the nearest last; the first may be a
            branch that was not taken.

    Returns:
        None: the jump is another.
    """
    codes = [int.from_bytes(insn.raw, order.value) for insn in (jump, *before)]
    if codes[0] >> 21 & 31 != T9:
        return None
    if len(before) > 1 and before[0].target is not None and annuls(codes[1]):
        before, codes = before[2:], [codes[0], *codes[3:]]
    for insn, code in zip(reversed(before), reversed(codes[1:]), strict=True):
        opcode, s, t = code >> 26, code >> 21 & 31, code >> 16 & 31
        if opcode in LOADS and (s, t) == (GP, T9):
            return insn
        writes = (code >> 11 & 31,) if not opcode else (t, code >> 11 & 31)
        if T9 in writes and not (opcode in ADDS and (s, t) == (T9, T9)):
            return None
    return None
