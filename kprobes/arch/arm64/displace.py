"""Writes code that does A64's branches and PC-relative addresses at another address than their own.

A function that takes `insn` and `to` is a row's `displace`: it returns code that does at address
`to` what the instruction does at its original address, and raises OutOfReach where there is no such
code. Its other parameters are the instruction's fields, by the letters of the row: n register, d
destination, c condition, i and j parts of an immediate.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import OutOfReach
from .._base import Insn, displacement, signed

MASK = (1 << 64) - 1


def jump(frm: int, to: int) -> bytes:
    """Return B from `frm` to `to`; raise OutOfReach beyond 128 MiB."""
    return (0b000101 << 26 | displacement(frm, to, 26, 4, MASK)).to_bytes(4, "little")


def set_address(d: int, value: int) -> bytes:
    """Return MOVZ and MOVKs that put `value` into register number `d`; halfwords of zero
    need none.
    """
    code = b""
    for n in range(4):
        half = value >> 16 * n & 0xFFFF
        if half or not n:
            code += ((0x1E5 if n else 0x1A5) << 23 | n << 21 | half << 5 | d).to_bytes(4, "little")
    return code


def b(insn: Insn, to: int, **_: int) -> bytes:
    """Return B from `to` to the original target."""
    assert insn.target is not None
    return jump(to, insn.target)


def bl(insn: Insn, to: int, **_: int) -> bytes:
    """Return code that sets X30 to the original return address, then branches to the target."""
    code = set_address(30, insn.next)
    return code + b(insn, to + len(code))


def conditional(opposite: int) -> Callable[..., bytes]:
    """Make the `displace` of a conditional branch, (insn, to, **fields) -> code: the opposite
    condition skips a B to the target.

    Args:
        opposite: bits of the encoding by which the opposite condition differs.
    """

    def elsewhere(insn: Insn, to: int, i: int, **_: int) -> bytes:
        """Return code for `to`: the opposite branch, then a B to the original target."""
        skip = int.from_bytes(insn.raw, "little") & ~(i << 5) ^ opposite | 2 << 5
        return skip.to_bytes(4, "little") + b(insn, to + 4)

    return elsewhere


def b_cond(insn: Insn, to: int, c: int, **fields: int) -> bytes:
    """Return code for B under the condition `c`: the opposite branch, then a B to the target."""
    # AL and NV have no opposite
    return b(insn, to) if c >= 14 else conditional(1)(insn, to, **fields)


def blr(insn: Insn, to: int, n: int) -> bytes:
    """Return code that sets X30 to the original next address and branches to register `n`;
    OutOfReach for X30.
    """
    if n == 30:
        raise OutOfReach(
            "BLR X30 needs its register for both addresses",
            address=insn.addr,
            hint="it is simulated",
        )
    return set_address(30, insn.next) + (0xD61F0000 | n << 5).to_bytes(4, "little")  # BR


def adr(insn: Insn, to: int, i: int, j: int, d: int) -> bytes:
    """Return code that puts ADR's original address into register `d`; b"" for XZR."""
    return set_address(d, insn.addr + signed(i << 2 | j, 21) & MASK) if d < 31 else b""


def adrp(insn: Insn, to: int, i: int, j: int, d: int) -> bytes:
    """Return code that puts ADRP's original page address into register `d`; b"" for XZR.

    The immediate is `i` and, below it, the two bits `j`.
    """
    return (
        set_address(d, (insn.addr & ~0xFFF) + (signed(i << 2 | j, 21) << 12) & MASK)
        if d < 31
        else b""
    )
