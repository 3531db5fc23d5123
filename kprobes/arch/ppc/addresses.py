"""Effects of PowerPC instructions on registers that hold addresses, for `Walking.follow`.

ADDIS, ADDI or ORI, BCL to the next instruction and MFLR, and loads and stores through what these
set.
"""

from __future__ import annotations

from .._addresses import HALF, AddressUse
from .._base import Order, signed
from .._insn import Insn

ADDI, ADDIS, ORI = 14, 15, 24
LR = 32  #: the number that stands for the link register here
MFLR = 0x7C0802A6
#: LWZ, LBZ, LHZ, LHA; stores and the FPU's: opcode -> bytes that are read or written
LOADS, OTHERS = {32: 4, 34: 1, 40: 2, 42: 2}, {36: 4, 38: 1, 44: 2, 48: 4, 50: 8, 52: 4, 54: 8}


def use(order: Order, insn: Insn) -> AddressUse:
    """Return what an instruction does with a register that may hold an address.

    Args:
        order: byte order of code.
        insn: the instruction.
    """
    word = int.from_bytes(insn.raw[:4], order.value)
    opcode, d, a, low = word >> 26, word >> 21 & 31, word >> 16 & 31, signed(word & 0xFFFF, 16)
    if insn.links:
        return AddressUse(HALF, insn.next, into=(LR,))
    if word & ~(31 << 21) == MFLR:
        return AddressUse(LR, 0, into=(d,))
    if opcode == ADDIS:
        return AddressUse(a or HALF, low << 16, into=(d,))
    if opcode == ADDI and a:
        return AddressUse(a, low, into=(d,))
    if opcode == ORI:
        return AddressUse(d, word & 0xFFFF, into=(a,))
    if opcode in LOADS and a:
        return AddressUse(a, low, LOADS[opcode], (d,))
    if opcode in OTHERS and a:
        return AddressUse(a, low, OTHERS[opcode])
    if opcode in (58, 62) and a:  # LD, LDU, LWA; STD, STDU
        return AddressUse(a, low & ~3, 8, (d,) if opcode == 58 else ())
    return AddressUse(into=(d, a))
