"""Writes code that does SPARC's branches and pc readers at another address than their own.

What is in the delay slot of a branch or call stands there in straight line, before the jump: a
branch has read its condition by then, and a copy is on either way. A jump through a register keeps
it in its delay slot, as RESTORE changes that register.

A function that takes `insn` and `to` is a row's `displace`: it returns code that does at address
`to` what the instruction does at its original address, and raises OutOfReach where there is no such
code. Its other parameters are the instruction's fields, by the letters of the row: a annul bit, d
destination, s and t sources.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import OutOfReach
from .._base import Insn, displacement

NOP = bytes.fromhex("01000000")
LINK = 15  # o7
ANNUL = 1 << 29


def word(value: int) -> bytes:
    """Return an instruction's four bytes, big-endian."""
    return value.to_bytes(4, "big")


def immediate(op3: int, n: int, value: int) -> bytes:
    """Return an arithmetic instruction (`op3`) of register `n` and an immediate, into
    register `n`.
    """
    return word(2 << 30 | n << 25 | op3 << 19 | n << 14 | 1 << 13 | value)


def shift(n: int, count: int) -> bytes:
    """Return SLLX, which shifts register `n` left by `count` bits."""
    return immediate(0b100101, n, 1 << 12 | count)


def set_register(n: int, value: int) -> bytes:
    """Return code that puts a value into a register.

    SETHI and OR; beyond 4 GiB also SLLX and OR for the low half, in pieces that an immediate holds.

    Args:
        n: number of the register.
        value: unsigned.
    """
    if value >> 32:
        code = set_register(n, value >> 32)
        for count, low in ((12, 20), (12, 8), (8, 0)):
            code += shift(n, count) + immediate(0b000010, n, value >> low & (1 << count) - 1)
        return code
    return word(n << 25 | 0b100 << 22 | value >> 10) + immediate(0b000010, n, value & 0x3FF)


def slot_of(insn: Insn) -> bytes:
    """Return the code of a branch's delay slot; b"" for a nop."""
    return b"" if insn.body == NOP else insn.body


class SparcElsewhere:
    """Makes the `Row.displace` functions for one word size.

    Args:
        mask: the greatest address.

    Attributes:
        longest: bytes of the longest code: a branch, or a jump that links beyond 4 GiB.
    """

    def __init__(self, mask: int) -> None:
        self._mask = mask
        self.longest = 40 if mask >> 32 else 20

    def jump(self, frm: int, to: int) -> bytes:
        """Return BA,A from `frm` to `to`, whose delay slot never runs; raise OutOfReach beyond 8
        MiB.
        """
        return word(0x30800000 | displacement(frm, to, 22, 4, self._mask))

    def unconditional(self, insn: Insn, to: int, **_: int) -> bytes:
        """Return code of CALL and BA,A: set the link if there is one, do the delay slot, jump to
        the target.
        """
        code = (set_register(LINK, insn.addr) if insn.links else b"") + slot_of(insn)
        assert insn.target is not None
        return code + self.jump(to + len(code), insn.target)

    def branch(self, opposite: int, field: int) -> Callable[..., bytes]:
        """Make the `displace` of a conditional branch, (insn, to, **fields) -> code: the opposite
        condition skips the jump.

        Args:
            opposite: bits in which the opposite condition's encoding differs.
            field: the bits of the displacement.
        """

        def elsewhere(insn: Insn, to: int, a: int, **_: int) -> bytes:
            """Return code for `to`: the opposite branch, the delay slot and the jump to the target.

            The delay slot follows again unless the branch annuls it (`a`).
            """
            slot = slot_of(insn)
            assert insn.target is not None
            taken = slot + self.jump(to + 8 + len(slot), insn.target)
            skips = (int.from_bytes(insn.raw, "big") ^ opposite) & ~(ANNUL | field) | 2 + len(
                taken
            ) // 4
            return word(skips) + NOP + taken + (b"" if a else slot)

        return elsewhere


def jmpl(insn: Insn, to: int, d: int, s: int, t: int = 0, **_: int) -> bytes:
    """Return code that puts the original address into register `d`, then JMPL without link, and
    last the instruction in its delay slot.

    Raises:
        OutOfReach: register `d`, unless it is g0, is one of `s` and `t`, which tell the target.
    """
    if d in (s, t) and d:
        raise OutOfReach(
            f"{insn.name} needs its register twice", address=insn.addr, hint="it is simulated"
        )
    link = set_register(d, insn.addr) if d else b""
    return link + word(int.from_bytes(insn.raw, "big") & ~(31 << 25)) + insn.body


def rdpc(insn: Insn, to: int, d: int) -> bytes:
    """Return code that puts the original address into register `d`; b"" for register 0."""
    return set_register(d, insn.addr) if d else b""
