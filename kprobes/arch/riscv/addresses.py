"""Effects of RISC-V instructions on registers that hold addresses, for `Walking.follow`.

AUIPC or LUI, ADDI, and loads and stores through what these set. Titles as in isa.py.
"""

from __future__ import annotations

from .._addresses import HALF, AddressUse
from .._base import signed
from .._insn import Insn

#: opcode -> is it of an x register
LOADS, STORES = {0b0000011: True, 0b0000111: False}, (0b0100011, 0b0100111)
LUI, AUIPC, ADDI, ADDIW, BRANCH = 0b0110111, 0b0010111, 0b0010011, 0b0011011, 0b1100011


def use(insn: Insn) -> AddressUse:
    """Return what an instruction does with a register that may hold an address."""
    word = int.from_bytes(insn.raw, "little")
    return _short(word) if insn.size == 2 else _full(word, insn.addr)


def _written(register: int) -> tuple[int, ...]:
    """Return (register,), as AddressUse.into has it; () for register 0, which is never written."""
    return (register,) if register else ()


def _full(word: int, addr: int) -> AddressUse:
    """Return what a 32-bit instruction does with a register that may hold an address.

    Args:
        word: its encoding.
        addr: its address.
    """
    opcode, d, s = word & 0x7F, word >> 7 & 31, word >> 15 & 31
    low = signed(word >> 20, 12)
    if opcode in (LUI, AUIPC):
        return AddressUse(
            HALF,
            (addr if opcode == AUIPC else 0) + (signed(word >> 12, 20) << 12),
            into=_written(d),
        )
    if opcode in (ADDI, ADDIW) and not word >> 12 & 7:
        return AddressUse(s, low, into=_written(d))
    size = 1 << (word >> 12 & 3)
    if opcode in LOADS:
        return AddressUse(s, low, size, _written(d) if LOADS[opcode] else ())
    if opcode in STORES:
        return AddressUse(s, signed(word >> 20 & 0xFE0 | d, 12), size)
    return AddressUse(into=() if opcode == BRANCH else _written(d))


def _short(word: int) -> AddressUse:
    """Return what a 16-bit instruction does with a register that may hold an address.

    "RVC Instruction Set Listings".

    Args:
        word: its encoding.
    """
    kind, low, high = word >> 13, 8 + (word >> 2 & 7), 8 + (word >> 7 & 7)
    d, imm = word >> 7 & 31, signed(word >> 7 & 0x20 | word >> 2 & 0x1F, 6)
    match word & 3, kind:
        case 0, 1 | 3 | 5 | 7 | 2 | 6:  # C.FLD, C.LW, C.LD or C.FLW, and their stores
            wide = kind in (1, 3, 5, 7)
            offset = word >> 7 & 0x38 | (
                word << 1 & 0xC0 if wide else word >> 4 & 4 | word << 1 & 0x40
            )
            return AddressUse(high, offset, 8 if wide else 4, (low,) if kind in (2, 3) else ())
        case 0, _:
            return AddressUse(into=(low,))
        case 1, 0 | 1:  # C.ADDI, C.ADDIW; C.JAL writes no address that counts
            return AddressUse(d, imm, into=_written(d))
        case 1, 3 if d != 2:  # C.LUI
            return AddressUse(HALF, imm << 12, into=_written(d))
        case 1, 4:
            return AddressUse(into=(high,))
        case 1, 5 | 6 | 7:
            return AddressUse()
        case 2, 4 if not word >> 12 & 1 and word >> 2 & 31:  # C.MV
            return AddressUse(word >> 2 & 31, 0, into=_written(d))
        case _:
            return AddressUse(into=_written(d))


def begins(insn: Insn) -> bool:
    """Whether an instruction may make an address of its own: AUIPC, LUI and perhaps C.LUI."""
    return insn.raw[0] & 0x5F == 0x17 or (insn.size == 2 and insn.raw[1] >> 5 == 3)
