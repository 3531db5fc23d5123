"""Effects of SPARC instructions on registers that hold addresses, for `Walking.follow`.

SETHI, OR or ADD, CALL of what follows its delay slot, RDPC, and loads and stores through what these
set.
"""

from __future__ import annotations

from .._addresses import HALF, WHOLE, AddressUse
from .._base import signed
from .._insn import Insn

O7 = 15
#: op3 of loads and stores -> bytes that they read or write
SIZES = {0x00: 4, 0x01: 1, 0x02: 2, 0x03: 8, 0x04: 4, 0x05: 1, 0x06: 2, 0x07: 8, 0x08: 4, 0x09: 1,
         0x0A: 2, 0x0B: 8, 0x0E: 8, 0x20: 4, 0x22: 16, 0x23: 8, 0x24: 4, 0x26: 16, 0x27: 8}
INTO_FLOAT, STORES = 0x20, (0x04, 0x05, 0x06, 0x07, 0x0E)


def use(insn: Insn) -> AddressUse:
    """Return what an instruction does with a register that may hold an address."""
    word = int.from_bytes(insn.raw[:4], "big")
    op, d, op3, s = word >> 30, word >> 25 & 31, word >> 19 & 63, word >> 14 & 31
    immediate = word & 0x2000 or not word & 31  # %g0 is 0
    low = signed(word & 0x1FFF, 13) if word & 0x2000 else 0
    if op == 1:
        return AddressUse(HALF, insn.addr, into=(O7,))
    if op == 0:
        return AddressUse(HALF, (word & 0x3FFFFF) << 10, into=(d,)) if word >> 22 & 7 == 4 and d else AddressUse()
    if op == 2 and op3 == 0x28 and s == 5:  # RDPC
        return AddressUse(WHOLE, insn.addr, into=(d,))
    if op == 2 and immediate and op3 in (0x00, 0x02):  # ADD, OR
        return AddressUse(s, low, into=(d,)) if s else AddressUse(into=(d,))
    if op == 3 and immediate and op3 in SIZES and s:
        pair = (d, d + 1) if op3 == 0x03 else (d,)
        return AddressUse(s, low, SIZES[op3], () if op3 >= INTO_FLOAT or op3 in STORES else pair)
    return AddressUse(into=(d,))
