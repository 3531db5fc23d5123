"""Finds jump tables of ARM code, and how many entries they have.

`Walking.table`: switches of position-independent code, whose table holds distances from itself.
    adr lr, table; ldr.w r12, [lr, r11, lsl #2]; add lr, r12; bx lr    T32
    adr r1, table; ldr r0, [r1, r0, lsl #2]; add pc, r0, r1            A32
`Walking.entries`: how long the tables behind TBB and TBH are.
    cmp r1, #19; bhi default; tbb [pc, r1]                             T32
"""

from __future__ import annotations

from collections.abc import Sequence

from .._base import Insn, Order, Table
from .addresses import use


def table(order: Order, jump: Insn, before: Sequence[Insn]) -> Table | None:
    """Return the jump table that a computed jump goes through; None where none is found.

    Args:
        order: byte order of data.
        jump: the jump.
        before: instructions that always precede it, the nearest last.
    """
    pair = _thumb(jump, before) if jump.mode else _arm(jump)
    for register, distance in () if pair is None else (pair, pair[::-1]):
        start = _start(before, register, distance)
        if start is not None:  # in T32 distances are to odd addresses
            return Table(
                start=start, size=4, base=start - jump.mode, signed=True, order=order.value
            )
    return None


def _word(insn: Insn) -> int:
    """Return an instruction's encoding as a number; of 32 bits in T32 the first halfword is the
    high one.
    """
    low = int.from_bytes(insn.raw[:2], "little")
    if insn.mode:
        return low << 16 | int.from_bytes(insn.raw[2:], "little") if insn.size == 4 else low
    return int.from_bytes(insn.raw, "little")


def _thumb(jump: Insn, before: Sequence[Insn]) -> tuple[int, int] | None:
    """Return the two registers whose sum a BX goes to: (its own, the one that was added to it).

    Args:
        jump: the jump.
        before: instructions that always precede it, the nearest last.

    Returns:
        None for any other jump, or where no ADD is found.
    """
    if jump.name != "BX":
        return None
    register = _word(jump) >> 3 & 15
    for insn in reversed(before):
        word = _word(insn)
        if insn.size == 2 and word >> 8 == 0x44 and (word >> 4 & 8 | word & 7) == register:  # ADD
            return register, word >> 3 & 15
    return None


def _arm(jump: Insn) -> tuple[int, int] | None:
    """Return (first, second): numbers of the registers that an ADD to PC adds up; None for any
    other jump.
    """
    word = _word(jump)
    return (word >> 16 & 15, word & 15) if word & 0x0FE0FFF0 == 0x0080F000 else None


def _start(before: Sequence[Insn], register: int, distance: int) -> int | None:
    """Return the address of the table that `register` holds, from which `distance` was loaded.

    Args:
        before: instructions that always precede the jump, the nearest last.
        register: number of the register with the table's address.
        distance: number of the register with the entry.

    Returns:
        None: no such load, or no ADR of the register before it.
    """
    loaded = False
    for insn in reversed(before):
        word = _word(insn)
        if insn.mode:
            load = insn.size == 4 and word & 0xFFF00FF0 == 0xF8500020
        else:
            load = word & 0x0FF00FF0 == 0x07900100
        if load and (word >> 16 & 15, word >> 12 & 15) == (register, distance):
            loaded = True
        elif loaded and insn.operand is not None and not insn.data:
            if not insn.mode:
                into = word >> 12 & 15
            elif insn.size == 2:
                into = word >> 8 & 7
            else:
                into = word >> 8 & 15
            if into == register:
                return insn.operand
    return None


def entries(jump: Insn, before: Sequence[Insn]) -> int | None:
    """Return how many entries the table of TBB or TBH has, by the comparison that bounds its index.

    Args:
        jump: the TBB or TBH.
        before: instructions that always precede it, the nearest last.

    Returns:
        None where no comparison is found whose register is the index still.
    """
    index, bounded = _word(jump) & 15, False
    for insn in reversed(before):
        word = _word(insn)
        compared = _compared(insn, word)
        if compared is not None:
            if bounded and compared[0] == index:
                return compared[1] + 1
            bounded = False
        elif _is_bhi(insn, word):
            bounded = True
        elif index in use(insn).into:
            return None
    return None


def _compared(insn: Insn, word: int) -> tuple[int, int] | None:
    """Return (register, constant below 256) of CMP; None for any other instruction (A8.8.37).

    Args:
        insn: the instruction, of T32.
        word: its encoding as a number.
    """
    if insn.size == 2:
        return (word >> 8 & 7, word & 0xFF) if word >> 11 == 0b00101 else None
    # the constant is not shifted or repeated
    if word & 0xFBF08F00 != 0xF1B00F00 or word & 0x04007000:
        return None
    return word >> 16 & 15, word & 0xFF


def _is_bhi(insn: Insn, word: int) -> bool:
    """Whether an instruction is a branch on unsigned "higher than" (A8.8.18); `word`: its
    encoding.
    """
    if insn.size == 2:
        return word >> 8 == 0xD8
    return word & 0xF800D000 == 0xF0008000 and word >> 22 & 15 == 8
