"""Writes code that does Alpha's branches and jumps at another address than their own.

A function that takes `insn` and `to` is a row's `displace`: it returns code that does at address
`to` what the instruction does at its original address, and raises OutOfReach where there is no such
code. Its other parameters are the instruction's fields, by the letters of the row.
"""

from __future__ import annotations

from ...errors import OutOfReach
from .._base import Insn, displacement

MASK = (1 << 64) - 1
ZERO = 31  #: the register that is always zero
BR, LDA, LDAH = 0x30, 0x08, 0x09


def word(value: int) -> bytes:
    """Return an instruction's four bytes, little-endian."""
    return value.to_bytes(4, "little")


def _br(frm: int, to: int, a: int) -> bytes:
    """Return BR from `frm` to `to` that keeps its return address in register `a`; it
    reaches 4 MiB.
    """
    return word(BR << 26 | a << 21 | displacement(frm + 4, to, 21, 4, MASK))


def jump(frm: int, to: int) -> bytes:
    """Return BR R31 from `frm` to `to`: the only jump that changes no register. Raises
    OutOfReach.
    """
    return _br(frm, to, ZERO)


def set_address(to: int, a: int, value: int) -> bytes:
    """Return code that sets a register to an address.

    BR to the next instruction gives the address there; LDAH and LDA add the rest, both signed.

    Args:
        to: address where the code will stand.
        a: number of the register.
        value: the address that it gets.

    Raises:
        OutOfReach: `value` is farther than 2 GiB from `to`.
    """
    here = to + 4
    offset = displacement(here, value, 32, 1, MASK)
    low = offset & 0xFFFF
    high = displacement(here, value - (low - (low >> 15 << 16)) & MASK, 32, 1, MASK) >> 16
    return (
        _br(to, here, a)
        + word(LDAH << 26 | a << 21 | a << 16 | high)
        + word(LDA << 26 | a << 21 | a << 16 | low)
    )


def _link(insn: Insn, to: int, a: int) -> bytes:
    """Return code that sets register `a` to the original return address; b"" where `a` is the zero
    one.
    """
    return b"" if a == ZERO else set_address(to, a, insn.next & MASK)


def br(insn: Insn, to: int, a: int, **_: int) -> bytes:
    """Return code that puts the original return address into register `a`, then jumps to the
    target.
    """
    assert insn.target is not None
    link = _link(insn, to, a)
    return link + jump(to + len(link), insn.target)


def branch(insn: Insn, to: int, **_: int) -> bytes:
    """Return code for `to`: the opposite branch, which skips a BR to the original target.

    Op bit 28 turns BEQ into BNE, BLT into BGE, BLE into BGT, BLBC into BLBS, FBEQ into FBNE ...
    """
    assert insn.target is not None
    skip = int.from_bytes(insn.raw, "little") & 0xFFE00000 ^ 1 << 28 | 1
    return word(skip) + jump(to + 4, insn.target)


def jmp(insn: Insn, to: int, a: int, b: int, **_: int) -> bytes:
    """Return code that puts the original return address into register `a`, then jumps through
    register `b`; OutOfReach where both are one register (not the zero one).
    """
    if a == b != ZERO:
        raise OutOfReach(f"{insn.name} needs its register for both addresses", address=insn.addr,
                         hint="it is simulated")
    return _link(insn, to, a) + word(int.from_bytes(insn.raw, "little") | ZERO << 21)
