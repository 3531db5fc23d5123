"""Effects of LoongArch instructions on registers that hold addresses, for `Walking.follow`.

PCALAU12I, PCADDU12I or LU12I.W, ADDI or ORI, and loads and stores through what these set. Titles as
in isa.py.
"""

from __future__ import annotations

from .._addresses import HALF, AddressUse
from .._base import signed
from .._insn import Insn

ADDI_W, ADDI_D, ORI = 0b0000001010, 0b0000001011, 0b0000001110  # bits 31:22
#: bits 31:22 of loads and stores with a displacement -> bytes that they read or write
SIZES = {0b0010100000 + n: size for n, size in enumerate((1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4))} | {
    0b0010101100 + n: size for n, size in enumerate((4, 4, 8, 8, 16, 16, 32, 32))}  # FLD, FST; VLD, VST, XVLD, XVST


def use(insn: Insn) -> AddressUse:
    """Return what an instruction does with a register that may hold an address."""
    word = int.from_bytes(insn.raw, "little")
    d, s, opcode = word & 31, word >> 5 & 31, word >> 22
    into = (d,) if d else ()
    upper = signed(word >> 5 & 0xFFFFF, 20) << 12
    if insn.name == "PCALAU12I":
        return AddressUse(HALF, insn.addr + upper & ~0xFFF, into=into)
    if insn.name == "PCADDU12I":
        return AddressUse(HALF, insn.addr + upper, into=into)
    if word >> 25 == 0b0001010:  # LU12I.W
        return AddressUse(HALF, upper, into=into)
    if opcode in (ADDI_W, ADDI_D):
        return AddressUse(s, signed(word >> 10 & 0xFFF, 12), into=into)
    if opcode == ORI:
        return AddressUse(s, word >> 10 & 0xFFF, into=into)
    if opcode in SIZES:
        integer = opcode < 0b0010101100 and not 0b0010100100 <= opcode < 0b0010101000
        return AddressUse(s, signed(word >> 10 & 0xFFF, 12), SIZES[opcode], into if integer else ())
    return AddressUse(into=into)
