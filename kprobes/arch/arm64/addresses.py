"""Effects of AArch64 instructions on registers that hold addresses, for `Walking.follow`.

ADR; ADRP and ADD; loads and stores through what these set. Sections as in isa.py.
"""

from __future__ import annotations

from .._addresses import HALF, WHOLE, AddressUse
from .._base import signed
from .._insn import Insn

#: opcode of LD1 and ST1 (multiple structures) -> registers
VECTORS = {0b0111: 1, 0b1010: 2, 0b0110: 3, 0b0010: 4}


def use(insn: Insn) -> AddressUse:
    """Return what an instruction does with a register that may hold an address."""
    word = int.from_bytes(insn.raw, "little")
    d, n = word & 31, word >> 5 & 31
    if insn.name in ("ADR", "ADRP"):
        offset = signed((word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3, 21)
        if insn.name == "ADR":
            return AddressUse(WHOLE, insn.addr + offset, into=(d,))
        return AddressUse(HALF, (insn.addr & ~0xFFF) + (offset << 12), into=(d,))
    if word & 0xFF800000 == 0x91000000:  # ADD (immediate), 64 bits
        return AddressUse(n, (word >> 10 & 0xFFF) << 12 * (word >> 22 & 1), into=(d,))
    vector, load = word >> 26 & 1, () if word >> 26 & 1 or not word >> 22 & 3 else (d,)
    if word >> 24 & 0x3B == 0x39:  # LDR, STR (unsigned offset)
        scale = 4 if vector and word >> 23 & 1 else word >> 30
        return AddressUse(n, (word >> 10 & 0xFFF) << scale, 1 << scale, load)
    if word >> 24 & 0x3B == 0x38 and not word >> 21 & 1:  # LDUR; indexed
        size = 16 if vector and word >> 23 & 1 else 1 << (word >> 30)
        moves = word >> 10 & 1
        return AddressUse(
            n,
            0 if word >> 10 & 3 == 1 else signed(word >> 12 & 0x1FF, 9),
            size,
            (*load, n) if moves else load,
        )
    if word >> 27 & 7 == 0b101 and not word >> 25 & 1:  # LDP, STP
        size = 4 << (word >> 30 if vector else word >> 31)
        kind, offset = word >> 23 & 3, signed(word >> 15 & 0x7F, 7) * size
        pair = () if vector or not word >> 22 & 1 else (d, word >> 10 & 31)
        return AddressUse(n, 0 if kind == 1 else offset, 2 * size, (*pair, n) if kind & 1 else pair)
    # LD1, ST1 (multiple structures)
    if word & 0xBF200000 == 0x0C000000 and word >> 12 & 15 in VECTORS:
        size = VECTORS[word >> 12 & 15] * (16 if word >> 30 & 1 else 8)
        return AddressUse(n, 0, size, (n,) if word >> 23 & 1 else ())
    return AddressUse(into=(d,))


def begins(insn: Insn) -> bool:
    """Whether an instruction makes an address of its own: ADR, ADRP."""
    return insn.name in ("ADR", "ADRP")
