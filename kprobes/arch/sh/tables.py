"""Finds what SuperH functions read of their own text through R0, which MOVA has set.

For `Walking.table`: values, and jump tables.
    mova value,r0; fmov.s @r0+,fr5; fmov.s @r0+,fr4
    mova table,r0; mov.b @(r0,r1),r1; extu.b r1,r1; braf r1    the distances of a switch
"""

from __future__ import annotations

from collections.abc import Sequence

from .._base import Insn, Order, Table

#: FMOV's size is another one then; others that end in 9 do not set their register
FSCHG, MOVT_R0 = 0xF3FD, 0x0029
#: MOV.B, MOV.W and MOV.L @(R0,Rm),Rn: low bits -> bytes that are read
INDEXED = {0xC: 1, 0xD: 2, 0xE: 4}
#: high bits -> low bits of what sets the register in bits 11:8
SETS = {0: (2, 10, 12, 13, 14), 2: (4, 5, 6, 9, 10, 11, 13), 3: range(16), 4: range(16),
        5: range(16), 6: range(16), 7: range(16), 9: range(16), 13: range(16), 14: range(16)}
#: high bytes of what sets R0 without saying so
SETS_R0 = (0x84, 0x85, 0xC4, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB)


def code_of(order: Order, insn: Insn) -> int:
    """Return an instruction's encoding."""
    return int.from_bytes(insn.raw, order.value)


def loaded(code: int) -> tuple[int, bool]:
    """Return what a load from @R0 or @R0+ reads: (bytes, True where R0 is incremented).

    Args:
        code: the instruction's encoding.

    Returns:
        (0, False): it is no such load.
    """
    if code & 0xF0FE == 0xF008:  # FMOV.S @Rm,FRn and @Rm+,FRn
        return 4, bool(code & 1)
    if code & 0xF0F8 == 0x6000 and code & 3 < 3:  # MOV.B, MOV.W, MOV.L
        return 1 << (code & 3), bool(code & 4)
    return 0, False


def table(order: Order, insn: Insn, before: Sequence[Insn]) -> Table | None:
    """Return the table of a BRAF's distances, or the value that a load reads (`Walking.table`).

    Args:
        order: byte order of code and data.
        insn: the instruction.
        before: instructions that always precede it.

    Returns:
        None: it is neither a BRAF nor a load through R0, or MOVA has not set the address.
    """
    if insn.name == "BRAF":
        return _distances(order, insn, before)
    size, _ = loaded(code_of(order, insn)) if insn.name == "insn" else (0, False)
    return _value(order, size, before) if size else None


def _value(order: Order, size: int, before: Sequence[Insn]) -> Table | None:
    """Return the value that a load through R0 reads, at MOVA's address and what loads have added
    since. An FSCHG in between doubles the loads' size.

    Args:
        order: byte order of code.
        size: bytes that the load reads.
        before: instructions that always precede it, the nearest last.

    Returns:
        None: R0 has no such address.
    """
    passed, wide = 0, 1
    for insn in reversed(before):
        code = code_of(order, insn)
        if insn.name == "MOVA":
            assert insn.operand is not None
            return Table(start=insn.operand + passed * wide, size=size * wide)
        read, moves = loaded(code)
        passed += read if moves else 0
        wide = 2 if code == FSCHG else wide
        if not read and _sets_r0(code):
            return None
    return None


def _sets_r0(code: int) -> bool:
    """Whether the instruction of an encoding sets R0."""
    return (
        code >> 8 in SETS_R0
        or code == MOVT_R0
        or (code >> 8 & 15 == 0 and code & 15 in SETS.get(code >> 12, ()))
    )


def _distances(order: Order, jump: Insn, before: Sequence[Insn]) -> Table | None:
    """Return the jump table that a BRAF reads its distance from.

    Looked for are, backwards from the BRAF, the load of its register through R0, and the MOVA that
    has put the table's address into R0. EXTU of the register says that entries have no sign. Other
    instructions in between are passed over.

    Args:
        order: byte order of code and data.
        jump: the BRAF.
        before: instructions that always precede it, the nearest last.

    Returns:
        None: there is no such load or MOVA.
    """
    register = code_of(order, jump) >> 8 & 15
    size, signed = 0, True
    for insn in reversed(before):
        code = code_of(order, insn)
        if insn.name == "MOVA" and size:
            assert insn.operand is not None
            return Table(
                start=insn.operand, size=size, base=jump.next, signed=signed, order=order.value
            )
        if code >> 8 & 15 == register and not size:
            if code >> 12 == 0 and code & 15 in INDEXED:
                size = INDEXED[code & 15]
            elif code >> 12 == 6 and code & 15 in (0xC, 0xD):  # EXTU.B, EXTU.W
                signed = False
    return None
