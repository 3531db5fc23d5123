"""`Walking.table` of SuperH: compiled functions jump through a table of distances in their text.

    mova table,r0; mov.b @(r0,r1),r1; extu.b r1,r1; braf r1
"""

from __future__ import annotations

from collections.abc import Sequence

from .._base import Insn, Order, Table

INDEXED = {0xC: 1, 0xD: 2, 0xE: 4}  #: MOV.B, MOV.W and MOV.L @(R0,Rm),Rn: low bits -> bytes that are read


def table(order: Order, jump: Insn, before: Sequence[Insn]) -> Table | None:
    """The load of BRAF's register, and MOVA before that; EXTU between them says that entries have no sign."""
    if jump.name != "BRAF":
        return None
    register = int.from_bytes(jump.raw, order.value) >> 8 & 15
    size, signed = 0, True
    for insn in reversed(before):
        code = int.from_bytes(insn.raw, order.value)
        if insn.name == "MOVA" and size:
            assert insn.operand is not None
            return Table(start=insn.operand, size=size, base=jump.next, signed=signed, order=order.value)
        if code >> 8 & 15 == register and not size:
            if code >> 12 == 0 and code & 15 in INDEXED:
                size = INDEXED[code & 15]
            elif code >> 12 == 6 and code & 15 in (0xC, 0xD):  # EXTU.B, EXTU.W
                signed = False
    return None
