"""Effects of MIPS instructions on registers that hold addresses, for `Walking.follow`.

LUI (release 6: AUIPC, ALUIPC, ADDIUPC), ADDIU or ORI, and loads and stores through what these set.
"""

from __future__ import annotations

from .._addresses import HALF, WHOLE, AddressUse
from .._base import Order, signed
from .._insn import Insn

LUI, ADDS, ORI = 0x0F, (0x09, 0x19), 0x0D  # ADDIU, DADDIU
#: LB, LH, LW, LBU, LHU, LWU, LD; of the stores and the FPU's: opcode -> bytes that are read or
#: written
LOADS = {0x20: 1, 0x21: 2, 0x23: 4, 0x24: 1, 0x25: 2, 0x27: 4, 0x37: 8}
OTHERS = {0x28: 1, 0x29: 2, 0x2B: 4, 0x3F: 8, 0x31: 4, 0x35: 8, 0x39: 4, 0x3D: 8}


def use(order: Order, insn: Insn) -> AddressUse:
    """Return what an instruction does with a register that may hold an address.

    Args:
        order: byte order of code.
        insn: the instruction.
    """
    word = int.from_bytes(insn.raw[:4], order.value)
    opcode, s, t, low = word >> 26, word >> 21 & 31, word >> 16 & 31, signed(word & 0xFFFF, 16)
    if opcode == LUI and not s:
        return AddressUse(HALF, low << 16, into=(t,))
    if insn.name == "AUIPC":
        return AddressUse(HALF, insn.addr + (low << 16), into=(s,))
    if insn.name == "ALUIPC":
        return AddressUse(HALF, insn.addr + (low << 16) & ~0xFFFF, into=(s,))
    if insn.name == "ADDIUPC":
        return AddressUse(WHOLE, (insn.addr & ~3) + 4 * signed(word & 0x7FFFF, 19), into=(s,))
    if opcode in ADDS:
        return AddressUse(s, low, into=(t,))
    if opcode == ORI:
        return AddressUse(s, word & 0xFFFF, into=(t,))
    if opcode in LOADS:
        return AddressUse(s, low, LOADS[opcode], (t,))
    if opcode in OTHERS:
        return AddressUse(s, low, OTHERS[opcode])
    return AddressUse(into=(t, word >> 11 & 31, s) if opcode == 0x3B else (t, word >> 11 & 31))
