"""Finds returns and tail calls through another register than r14, for `Walking.leaves`.

    lg %r4,272(%r15); lmg %r11,%r15,248(%r15); br %r4
GCC loads the return address, or a function's, before it releases the frame. A jump after the frame
is released leaves the function.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._base import Insn

SP = 15
LG, LMG = (0xE3, 0x04), (0xEB, 0x04)  # first and last byte
#: What may stand between: first byte, and the last of the opcode. All have their destination in
#: bits 8 to 11; FPRs are none of ours.
GENERAL = {(0xE3, 0x04), (0xE3, 0x58), (0xB9, 0x04), (0xB9, 0x14), (0xA7, 0x09), (0xC0, 0x01),
           (0x58, None), (0x18, None)}
FLOATING = {(0x68, None), (0xED, 0x65), (0xB3, 0xC1), (0x28, None)}


def opcode(raw: bytes) -> tuple[int, int | None]:
    """Return what tells an instruction from others: (first byte, rest of the opcode or None)."""
    first = raw[0]
    if len(raw) == 6:
        return first, raw[1] & 15 if first == 0xC0 else raw[5]
    if first in (0xB3, 0xB9):
        return first, raw[1]
    return (first, raw[1] & 15) if first == 0xA7 else (first, None)


def destination(raw: bytes) -> int:
    """Return the general register that one of GENERAL writes."""
    return raw[3] >> 4 if raw[0] in (0xB3, 0xB9) else raw[1] >> 4


def leaves(jump: Insn, before: Sequence[Insn]) -> Insn | None:
    """Return the load of the register that BCR 15 jumps to, if the frame is released after it.

    Args:
        jump: the computed jump.
        before: instructions that always precede it, the nearest last.

    Returns:
        None: the jump is another, the register gets its value in another way, or instructions
        between are not known here.
    """
    raw = jump.raw
    if raw[0] != 0x07 or raw[1] >> 4 != 15:
        return None
    wanted, gone = raw[1] & 15, False
    for insn in reversed(before):
        code, what = insn.raw, opcode(insn.raw)
        if what == LMG:
            first, last = code[1] >> 4, code[1] & 15
            if first <= wanted <= last if first <= last else not last < wanted < first:
                return None
            gone = gone or (last == SP and code[2] >> 4 == SP)
        elif what in GENERAL and destination(code) == wanted:
            return insn if gone and what == LG and not code[1] & 15 else None
        elif what not in GENERAL | FLOATING:
            return None
    return None
