"""Effects of ARM instructions on registers that hold addresses, for `Walking.follow`.

ADR, MOVW and MOVT, additions of constants and of PC, and loads and stores through what these set.
Sections as in shared.py. _a32, _t16 and _t32 take an instruction and its encoding as a number (in
T32 the first halfword is the high one), and return what it does with a base register.
"""

from __future__ import annotations

from .._addresses import HALF, WHOLE, AddressUse
from .._insn import Insn
from .shared import here

#: type of VLD1 and VST1 (multiple elements) -> doublewords
VECTORS = {0b0111: 1, 0b1010: 2, 0b0110: 3, 0b0010: 4}


def use(insn: Insn) -> AddressUse:
    """Return what an instruction does with a register that may hold an address."""
    if not insn.mode:
        return _a32(insn, int.from_bytes(insn.raw, "little"))
    if insn.size == 2:
        return _t16(insn, int.from_bytes(insn.raw, "little"))
    return _t32(
        insn, int.from_bytes(insn.raw[:2], "little") << 16 | int.from_bytes(insn.raw[2:], "little")
    )


def _vector(word: int) -> AddressUse | None:
    """Return the bytes that VLDR, VSTR, VLDMIA or VSTMIA (A7.6) accesses from its base register on,
    and whether it changes the base; None for others, among them VLDMDB and VSTMDB.

    Bits 27:0 of these are the same in both instruction sets.

    Args:
        word: the encoding as a number.
    """
    n, low = word >> 16 & 15, word & 0xFF
    if word & 0x0F200E00 == 0x0D000A00:  # VLDR, VSTR
        return AddressUse(n, 4 * low if word >> 23 & 1 else -4 * low, 8 if word >> 8 & 1 else 4)
    if word & 0x0F800E00 == 0x0C800A00:  # VLDMIA, VSTMIA
        return AddressUse(n, 0, 4 * low, (n,) if word >> 21 & 1 else ())
    return None


def _elements(word: int) -> AddressUse:
    """Return what VLD1 or VST1 (A7.7) does with its base register: the bytes that it accesses
    there.

    The base is written, by the size of the transfer or by Rm, unless Rm is PC.

    Args:
        word: the encoding as a number.
    """
    n = word >> 16 & 15
    return AddressUse(n, 0, 8 * VECTORS.get(word >> 8 & 15, 1), () if word & 15 == 15 else (n,))


def _a32(insn: Insn, word: int) -> AddressUse:
    """Return what an A32 instruction does with a register that may hold an address.

    Args:
        insn: the instruction.
        word: its encoding as a number.
    """
    n, d, low = word >> 16 & 15, word >> 12 & 15, word & 0xFFF
    up = 1 if word >> 23 & 1 else -1
    if insn.operand is not None and not insn.data:
        return AddressUse(WHOLE, insn.operand, into=(d,))
    if word >> 28 == 15:
        return _elements(word) if word & 0x0F900000 == 0x04000000 else AddressUse()
    if word & 0x0FA00000 == 0x02800000 or word & 0x0FE00000 == 0x02400000:  # ADD, SUB (immediate)
        return _sum(n, d, word)
    if word & 0x0FB00000 == 0x03000000:  # MOVW, MOVT
        value = word >> 4 & 0xF000 | low
        return AddressUse(d, value << 16, into=(d,)) if word >> 22 & 1 else AddressUse(HALF, value, into=(d,))
    if word & 0x0FFF0FF0 == 0x008F0000:  # ADD of PC
        return AddressUse(word & 15, here(insn), into=(d,))
    load = (d,) if word >> 20 & 1 else ()
    moves = (n,) if word >> 21 & 1 or not word >> 24 & 1 else ()
    if word & 0x0E000000 == 0x04000000:  # LDR, STR
        return AddressUse(n, up * low if word >> 24 & 1 else 0, 1 if word >> 22 & 1 else 4, load + moves)
    if word & 0x0E400090 == 0x00400090 and word & 0x60:  # LDRH, LDRD and the like
        dual = word & 0x100040 == 0x40
        offset = up * (word >> 4 & 0xF0 | word & 15)
        pair = (d, d + 1) if dual and not word >> 5 & 1 else ()
        return AddressUse(n, offset if word >> 24 & 1 else 0, 8 if dual else 2, (*load, *pair, *moves))
    if word & 0x0F800000 == 0x08800000:  # LDMIA, STMIA
        listed = tuple(r for r in range(16) if word >> r & 1)
        into = listed if word >> 20 & 1 else ()
        return AddressUse(n, 0, 4 * len(listed), into + ((n,) if word >> 21 & 1 else ()))
    return _vector(word) or AddressUse(into=(n, d) if word & 0xF0 == 0x90 else (d,))


def _sum(n: int, d: int, word: int) -> AddressUse:
    """Return what ADD or SUB of a rotated constant (A5.2.4) does: register `n` and the constant go
    to `d`.

    Args:
        word: the encoding as a number.
    """
    turn, low = 2 * (word >> 8 & 15), word & 0xFF
    value = (low << 32 | low) >> turn & 0xFFFFFFFF
    return AddressUse(n, value if word >> 23 & 1 else -value, into=(d,))


def _t16(insn: Insn, word: int) -> AddressUse:
    """Return what a 16-bit T32 instruction does with a register that may hold an address.

    Args:
        insn: the instruction.
        word: its encoding as a number.
    """
    d, n, five = word & 7, word >> 3 & 7, word >> 6 & 31
    named = word >> 8 & 7
    if insn.operand is not None and not insn.data:
        return AddressUse(WHOLE, insn.operand, into=(named,))
    if word & 0xFF78 == 0x4478:  # ADD of PC
        d = word >> 4 & 8 | d
        return AddressUse(d, here(insn), into=(d,))
    match word >> 11:
        case 0b00110:  # ADD of 8 bits
            return AddressUse(named, word & 0xFF, into=(named,))
        case 0b00111:
            return AddressUse(named, -(word & 0xFF), into=(named,))
        case 0b00011 if word >> 10 & 1:  # ADD, SUB of 3 bits
            return AddressUse(n, (five & 7) * (-1 if word >> 9 & 1 else 1), into=(d,))
        case 0b01101 | 0b01100:  # LDR, STR
            return AddressUse(n, 4 * five, 4, (d,) if word >> 11 & 1 else ())
        case 0b01111 | 0b01110:
            return AddressUse(n, five, 1, (d,) if word >> 11 & 1 else ())
        case 0b10001 | 0b10000:
            return AddressUse(n, 2 * five, 2, (d,) if word >> 11 & 1 else ())
        case 0b11001 | 0b11000:  # LDM, STM
            listed = tuple(r for r in range(8) if word >> r & 1)
            return AddressUse(named, 0, 4 * len(listed), (*listed, named) if word >> 11 & 1 else (named,))
        case 0b01000 if word >> 8 & 3 in (0, 2):  # with registers of both halves
            d = word >> 4 & 8 | d
    return AddressUse(into=(d, named))


def _t32(insn: Insn, word: int) -> AddressUse:
    """Return what a 32-bit T32 instruction does with a register that may hold an address.

    Args:
        insn: the instruction.
        word: its encoding as a number, the first halfword the high one.
    """
    n, t, d, low = word >> 16 & 15, word >> 12 & 15, word >> 8 & 15, word & 0xFFF
    up = 1 if word >> 23 & 1 else -1
    imm12 = word >> 15 & 0x800 | word >> 4 & 0x700 | word & 0xFF
    if insn.operand is not None and not insn.data:
        return AddressUse(WHOLE, insn.operand, into=(d,))
    if word & 0xFBF08000 in (0xF2000000, 0xF2A00000):  # ADDW, SUBW
        return AddressUse(n, imm12 if word >> 23 & 1 == 0 else -imm12, into=(d,))
    if word & 0xFB708000 == 0xF2400000:  # MOVW, MOVT
        value = word >> 4 & 0xF000 | imm12
        return AddressUse(d, value << 16, into=(d,)) if word >> 23 & 1 else AddressUse(HALF, value, into=(d,))
    load = (t,) if word >> 20 & 1 else ()
    if word & 0xFE400000 == 0xE8400000 and word & 0x01200000:  # LDRD, STRD
        moves = (n,) if word >> 21 & 1 else ()
        offset = 4 * up * (word & 0xFF) if word >> 24 & 1 else 0
        return AddressUse(n, offset, 8, ((t, d) if load else ()) + moves)
    if word & 0xFE800000 == 0xF8800000:  # LDR, STR, LDRB, LDRH of 12 bits
        return AddressUse(n, low, 1 << (word >> 21 & 3), load)
    if word & 0xFE800800 == 0xF8000800:  # indexed
        offset = (1 if word >> 9 & 1 else -1) * (word & 0xFF)
        return AddressUse(
            n,
            offset if word >> 10 & 1 else 0,
            1 << (word >> 21 & 3),
            (*load, n) if word >> 8 & 1 else load,
        )
    if word & 0xFFC00000 == 0xE8800000:  # LDMIA, STMIA
        listed = tuple(r for r in range(16) if word >> r & 1)
        return AddressUse(
            n, 0, 4 * len(listed), (listed if load else ()) + ((n,) if word >> 21 & 1 else ())
        )
    if word & 0xFF900000 == 0xF9000000:
        return _elements(word)
    return (_vector(word) if word >> 28 == 14 else None) or AddressUse(into=(t, d))


def begins(insn: Insn) -> bool:
    """Return False if an instruction surely does not make an address without a base register.

    ADR and MOVW make one. This is a quick test of a few bits, which is also True for some other
    instructions.
    """
    if insn.operand is not None:
        return not insn.data
    if not insn.mode:
        return insn.raw[3] & 15 == 3
    return insn.size == 4 and insn.raw[1] & 0xFB == 0xF2
