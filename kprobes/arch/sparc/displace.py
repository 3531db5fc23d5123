"""Branches and pc readers of SPARC in another place.

What stands in a branch's or a call's delay slot stands there in straight line, before the jump: a
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
    """Return an instruction as in memory."""
    return value.to_bytes(4, "big")


def immediate(op3: int, n: int, value: int) -> bytes:
    """Return an arithmetic instruction on register `n`."""
    return word(2 << 30 | n << 25 | op3 << 19 | n << 14 | 1 << 13 | value)


def shift(n: int, count: int) -> bytes:
    """SLLX."""
    return immediate(0b100101, n, 1 << 12 | count)


def set_register(n: int, value: int) -> bytes:
    """Return code that puts a value into a register: SETHI and OR; beyond 4 GiB SLLX and OR for the
    low half, as much at a time as an immediate holds.

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
    """Return the code of the delay slot; nothing for a nop."""
    return b"" if insn.body == NOP else insn.body


class SparcElsewhere:
    """`Row.displace` for addresses of `mask`'s width.

    Attributes:
        longest: bytes of code, at most: a branch, or a jump that links beyond 4 GiB.
    """

    def __init__(self, mask: int) -> None:
        self._mask = mask
        self.longest = 40 if mask >> 32 else 20

    def jump(self, frm: int, to: int) -> bytes:
        """BA,A: 8 MiB either way. Nothing runs in its delay slot."""
        return word(0x30800000 | displacement(frm, to, 22, 4, self._mask))

    def unconditional(self, insn: Insn, to: int, **_: int) -> bytes:
        """Return code that sets the link if there is one, does the delay slot, and jumps to the
        target: CALL and BA,A.
        """
        code = (set_register(LINK, insn.addr) if insn.links else b"") + slot_of(insn)
        assert insn.target is not None
        return code + self.jump(to + len(code), insn.target)

    def branch(self, opposite: int, field: int) -> Callable[..., bytes]:
        """Return the `displace` of a branch: the opposite condition skips the jump.

        Args:
            opposite: bits in which the opposite condition's encoding differs.
            field: the bits of the displacement.
        """

        def elsewhere(insn: Insn, to: int, a: int, **_: int) -> bytes:
            """Return the opposite branch, the delay slot and the jump, and the delay slot again
            unless the branch annuls it.
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
    """Return code that puts the original address into register `d`, and JMPL that keeps nothing;
    OutOfReach where `d` tells the target.
    """
    if d in (s, t) and d:
        raise OutOfReach(
            f"{insn.name} needs its register twice", address=insn.addr, hint="it is simulated"
        )
    link = set_register(d, insn.addr) if d else b""
    return link + word(int.from_bytes(insn.raw, "big") & ~(31 << 25)) + insn.body


def rdpc(insn: Insn, to: int, d: int) -> bytes:
    """Return code that puts the original address into register `d`."""
    return set_register(d, insn.addr) if d else b""
