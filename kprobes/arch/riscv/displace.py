"""Writes code that does RISC-V's branches and AUIPC at another address than their own.

A function that takes `insn` and `to` is a row's `displace`: it returns code that does at address
`to` what the instruction does at its original address, and raises OutOfReach where there is no such
code. `mask` is the greatest address; other parameters are the instruction's fields, by the letters
of the row: s source, d destination, i immediate.
"""

from __future__ import annotations

from ...errors import OutOfReach
from .._base import Insn, displacement, signed

RA = 1


def word(value: int) -> bytes:
    """Return an instruction's four bytes, little-endian."""
    return value.to_bytes(4, "little")


def jump(mask: int, frm: int, to: int) -> bytes:
    """Return JAL x0 from `frm` to `to`, 1 MiB either way; raise OutOfReach beyond."""
    offset = displacement(frm, to, 20, 2, mask)  # imm[20:1], printed as 20, 10:1, 11, 19:12
    imm = offset >> 19 << 19 | (offset & 0x3FF) << 9 | (offset >> 10 & 1) << 8 | offset >> 11 & 0xFF
    return word(imm << 12 | 0b1101111)


def set_address(mask: int, to: int, d: int, value: int) -> bytes:
    """Return code that puts an address into a register: AUIPC, and ADDI of the low twelve bits.

    Args:
        mask: the greatest address.
        to: address of the code.
        d: number of the register.
        value: the address.

    Raises:
        OutOfReach: it is farther than 2 GiB from `to`.
    """
    field = displacement(to, value + 0x800 & mask, 32, 1, mask)
    return word(field & ~0xFFF | d << 7 | 0b0010111) + word(
        (field - 0x800 & 0xFFF) << 20 | d << 15 | d << 7 | 0b0010011
    )


def auipc(mask: int, insn: Insn, to: int, i: int, d: int) -> bytes:
    """Return code that puts AUIPC's original address into register `d`; b"" for register 0."""
    return set_address(mask, to, d, insn.addr + (signed(i, 20) << 12) & mask) if d else b""


def jal(mask: int, insn: Insn, to: int, d: int = 0, **_: int) -> bytes:
    """Return code that puts the original return address into register `d` (0: none), then jumps."""
    assert insn.target is not None
    code = set_address(mask, to, d, insn.next & mask) if d else b""
    return code + jump(mask, to + len(code), insn.target)


def jalr(mask: int, insn: Insn, to: int, s: int, d: int, **_: int) -> bytes:
    """Return code that puts the original return address into register `d` (0: none), then JALR
    without link; OutOfReach where `d` is the register that it jumps through.
    """
    return _linked(mask, insn, to, s, d) + word(int.from_bytes(insn.raw, "little") & ~(0x1F << 7))


def branch(mask: int, insn: Insn, to: int, **_: int) -> bytes:
    """Return code for `to`: the opposite branch, which skips a JAL to the target."""
    return word(int.from_bytes(insn.raw, "little") & 0x01FFF07F ^ 1 << 12 | 8 >> 1 << 8) + jal(
        mask, insn, to + 4
    )


def c_branch(mask: int, insn: Insn, to: int, **_: int) -> bytes:
    """Return code of C.BEQZ or C.BNEZ for `to`: the opposite one, which skips a JAL to the
    target.
    """
    skip = int.from_bytes(insn.raw, "little") & 0xE383 ^ 1 << 13 | 6 >> 1 << 3
    return skip.to_bytes(2, "little") + jal(mask, insn, to + 2)


def c_jal(mask: int, insn: Insn, to: int, **_: int) -> bytes:
    """Return code that puts the original return address into ra, then jumps."""
    return jal(mask, insn, to, RA)


def c_jalr(mask: int, insn: Insn, to: int, s: int) -> bytes:
    """Return code that puts the original return address into ra, then C.JR to register `s`;
    OutOfReach where `s` is ra.
    """
    return _linked(mask, insn, to, s, RA) + (0x8002 | s << 7).to_bytes(2, "little")  # C.JR


def _linked(mask: int, insn: Insn, to: int, s: int, d: int) -> bytes:
    """Return code that puts the original return address into register `d`; b"" for register 0.

    It goes before a jump through register `s`.

    Raises:
        OutOfReach: both are the same register.
    """
    if d and s == d:
        raise OutOfReach(f"{insn.name} needs its register for both addresses", address=insn.addr,
                         hint="it is simulated")
    return set_address(mask, to, d, insn.next & mask) if d else b""
