"""Writes code that does LoongArch's branches and pc-relative addresses at another address.

A function that takes `insn` and `to` is a row's `displace`: it returns code that does at address
`to` what the instruction does at its original address, and raises OutOfReach where there is no such
code. Its other parameters are the instruction's fields, by the letters of the row: d destination, s
source.
"""

from __future__ import annotations

from ...errors import OutOfReach
from .._base import Insn, displacement, signed

MASK = (1 << 64) - 1
RA = 1
B = 0x50000000
PCADDU12I, ADDI_D, LU12I_W, ORI, LU32I_D, LU52I_D = (0x1C000000, 0x02C00000, 0x14000000, 0x03800000,
                                                     0x16000000, 0x03000000)


def word(value: int) -> bytes:
    """Return an instruction's four bytes, little-endian."""
    return value.to_bytes(4, "little")


def jump(frm: int, to: int) -> bytes:
    """Return B from `frm` to `to`, 128 MiB either way; raise OutOfReach beyond.

    It is the only jump that changes no register; Linux's far one loses a temporary.
    """
    offset = displacement(frm, to, 26, 4, MASK)
    return word(B | (offset & 0xFFFF) << 10 | offset >> 16)


def set_address(to: int, d: int, value: int) -> bytes:
    """Return code that puts a value into a register.

    PCADDU12I and ADDI.D (whose twelve bits are signed) where they reach, 2 GiB either way; else the
    64 bits in four pieces.

    Args:
        to: address of the code.
        d: number of the register.
        value: 64 bits.
    """
    try:
        field = displacement(to, value + 0x800 & MASK, 32, 1, MASK)
    except OutOfReach:
        return _absolute(d, value)
    return word(PCADDU12I | field >> 12 << 5 | d) + word(
        ADDI_D | (field - 0x800 & 0xFFF) << 10 | d << 5 | d
    )


def _absolute(d: int, value: int) -> bytes:
    """Return code that puts a value of 64 bits into register number `d`, in four pieces."""
    return (
        word(LU12I_W | (value >> 12 & 0xFFFFF) << 5 | d)
        + word(ORI | (value & 0xFFF) << 10 | d << 5 | d)
        + word(LU32I_D | (value >> 32 & 0xFFFFF) << 5 | d)
        + word(LU52I_D | value >> 52 << 10 | d << 5 | d)
    )


def pcadd(insn: Insn, to: int, d: int, **_: int) -> bytes:
    """Return code that puts the instruction's original address into register `d`; b"" for register
    0.
    """
    assert insn.operand is not None
    return set_address(to, d, insn.operand) if d else b""


def b(insn: Insn, to: int, **_: int) -> bytes:
    """Return B from `to` to the original target."""
    assert insn.target is not None
    return jump(to, insn.target)


def bl(insn: Insn, to: int, **_: int) -> bytes:
    """Return code that sets ra to the original return address, then branches to the target."""
    link = set_address(to, RA, insn.next & MASK)
    return link + b(insn, to + len(link))


def branch(insn: Insn, to: int, **_: int) -> bytes:
    """Return code for `to`: the opposite branch, which skips a B to the target.

    Op bit 26 turns BEQ into BNE, BLT into BGE, BLTU into BGEU, BEQZ into BNEZ.
    """
    return _skip(insn, 1 << 26, 0xFC0003FF) + b(insn, to + 4)


def branch_zero(insn: Insn, to: int, **_: int) -> bytes:
    """Return code of BEQZ or BNEZ for `to`: the opposite branch, which skips a B to the target."""
    return _skip(insn, 1 << 26, 0xFC0003E0) + b(insn, to + 4)


def branch_flag(insn: Insn, to: int, **_: int) -> bytes:
    """Return code of BCEQZ or BCNEZ for `to`: the opposite branch, which skips a B to the
    target.
    """
    return _skip(insn, 1 << 8, 0xFC0003E0) + b(insn, to + 4)


def jirl(insn: Insn, to: int, s: int, d: int, **_: int) -> bytes:
    """Return code that puts the original return address into register `d`, then jumps through `s`.

    Raises:
        OutOfReach: both are the same register.
    """
    if d and s == d:
        raise OutOfReach(f"{insn.name} needs its register for both addresses", address=insn.addr,
                         hint="it is simulated")
    link = set_address(to, d, insn.next & MASK) if d else b""
    return link + word(int.from_bytes(insn.raw, "little") & ~0x1F)


def _skip(insn: Insn, opposite: int, kept: int) -> bytes:
    """Return a branch on the opposite condition that skips the one instruction behind it.

    Args:
        insn: the original branch.
        opposite: bits in which the opposite condition's encoding differs.
        kept: mask of the encoding without the offset.
    """
    return word(int.from_bytes(insn.raw, "little") & kept ^ opposite | 8 >> 2 << 10)


def low(pair: int) -> int:
    """Return the signed twelve bits of displacement of a load, store or ADDI.D; `pair`: its
    encoding.
    """
    return signed(pair >> 10, 12)
