"""Writes code that does MIPS's branches and pc-relative addresses at another address.

What is in a delay slot stands there in straight line, before the jump: a branch has read its
condition by then, and a copy is on either way. So its faults are where it stands, it can be
executed again after one, and nothing has to know whether a branch waits for it.

A function that takes `insn` and `to` is a row's `displace`: it returns code that does at address
`to` what the instruction does at its original address, and raises OutOfReach where there is no such
code. Its other parameters are numbers of registers, by the letters of the row: s and t sources, d
destination.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import OutOfReach
from .._base import Insn, Jump, Order, signed

NOP = bytes(4)
RA = 31


def word(value: int, order: Order) -> bytes:
    """Return an instruction's four bytes as they lie in memory."""
    return value.to_bytes(4, order.value)


def slot_of(insn: Insn) -> bytes:
    """Return the code of a branch's delay slot; b"" for a nop."""
    return b"" if insn.body == NOP else insn.body


def may_write(code: int, n: int) -> bool:
    """Whether an instruction may write register `n`; `code`: its encoding.

    True also for some that only read it, or have such a number elsewhere.
    """
    opcode = code >> 26
    places: tuple[int, ...] = (16,)
    if opcode in (0, 1):
        places = (21,) if opcode else (11,)
    elif opcode >> 2 in (0b0100, 0b0111):
        places = (21, 16, 11, 6)
    return n != 0 and any(code >> place & 31 == n for place in places)


class MipsElsewhere:
    """Makes the `Row.displace` functions for one word size, byte order and generation.

    Attributes:
        longest: bytes of the longest code: of a branch that links.
    """

    def __init__(self, bits: int, order: Order, jump: Jump) -> None:
        """Note the kind of MIPS.

        Args:
            bits: width of a register.
            order: byte order of code.
            jump: the jump that probes use.
        """
        self._mask = (1 << bits) - 1
        self._order = order
        self._jump = jump
        self.longest = (8 if bits == 32 else 24) + 16 + jump.size

    def unconditional(self, insn: Insn, to: int, **_: int) -> bytes:
        """Return code of J, BAL, BC and their kin: set the link if there is one, do the delay slot,
        jump to the target.
        """
        code = self.linking(insn, to)
        assert insn.target is not None
        return code + self._jump.encode(to + len(code), insn.target)

    def linking(self, insn: Insn, to: int, **_: int) -> bytes:
        """Return code of NAL: set the link if there is one, do the delay slot. It does not jump."""
        return self._link(insn) + slot_of(insn)

    def branch(self, flip: int, width: int = 16, *, likely: bool = False) -> Callable[..., bytes]:
        """Make the `displace` of a conditional branch, (insn, to, **fields) -> code: the opposite
        condition skips the jump.

        Behind the opposite branch is a nop: its delay slot, or its forbidden slot.

        Args:
            flip: bits in which the opposite condition's encoding differs.
            width: bits of the displacement.
            likely: True: the branch annuls its delay slot where it is not taken.
        """

        def elsewhere(insn: Insn, to: int, s: int = 0, **_: int) -> bytes:
            """Return code for `to`: the link, the opposite branch, the delay slot and the jump;
            behind the jump the delay slot again, unless the branch annuls it.

            Raises:
                OutOfReach: the branch links, and tests register `s` that the link changes.
            """
            if insn.links and s == RA:
                raise OutOfReach(
                    f"{insn.name} tests the register that it writes",
                    address=insn.addr,
                    hint="it is simulated",
                )
            link, slot = self._link(insn), slot_of(insn)
            assert insn.target is not None
            taken = slot + self._jump.encode(to + len(link) + 8 + len(slot), insn.target)
            opposite = (self._number(insn.raw) ^ flip) >> width << width | 1 + len(taken) // 4
            return link + word(opposite, self._order) + NOP + taken + (b"" if likely else slot)

        return elsewhere

    def likely(self, flip: int) -> Callable[..., bytes]:
        """Make the `displace`, (insn, to, **fields) -> code, of a branch that annuls its delay slot
        where it is not taken.

        Args:
            flip: bits in which the opposite condition's encoding differs.
        """
        return self.branch(flip, likely=True)

    def jalr(self, insn: Insn, to: int, s: int, d: int = 0) -> bytes:
        """Return code that sets the link (register `d`), does the delay slot, and jumps to register
        `s`.

        Raises:
            OutOfReach: the link or the delay slot changes register `s`.
        """
        slot = slot_of(insn)
        if s == d != 0 or may_write(self._number(slot), s):
            raise OutOfReach(
                f"{insn.name} needs its register twice", address=insn.addr, hint="it is simulated"
            )
        link = self._set(d, insn.next) if d else b""
        return link + slot + word(self._number(insn.raw) & ~(31 << 11), self._order) + NOP

    def jialc(self, insn: Insn, to: int, t: int, **_: int) -> bytes:
        """Return code that sets the link, then JIC to register `t`. Raises OutOfReach: that is the
        link's.
        """
        if t == RA:
            raise OutOfReach(
                f"{insn.name} needs its register twice", address=insn.addr, hint="it is simulated"
            )
        return self._link(insn) + word(self._number(insn.raw) & ~(1 << 29), self._order)

    def address(self, value: Callable[[Insn, int], int]) -> Callable[..., bytes]:
        """Make the `displace`, (insn, to, **fields) -> code, of an instruction that computes a
        pc-relative address.

        Args:
            value: (insn, its field `i`) -> the address, which the code puts into register `s`.
        """
        return lambda insn, to, s, i: self._set(s, value(insn, i))

    def _link(self, insn: Insn) -> bytes:
        """Return code that sets ra to the original return address; b"" for a branch that does not
        link.
        """
        return self._set(RA, insn.next) if insn.links else b""

    def _set(self, n: int, value: int) -> bytes:
        """Return code that puts a value into a register.

        LUI, which sign-extends, and ORI; where that is not the value, DSLL and ORI for two
        halfwords more.

        Args:
            n: number of the register.
            value: of the width of a register.
        """
        value &= self._mask
        high, low, *rest = (16, 0) if signed(value, 32) & self._mask == value else (48, 32, 16, 0)
        code = [0x3C000000 | n << 16 | value >> high & 0xFFFF, self._ori(n, value >> low)]
        for shift in rest:
            code += [n << 16 | n << 11 | 16 << 6 | 0x38, self._ori(n, value >> shift)]
        return b"".join(word(w, self._order) for w in code)

    def _ori(self, n: int, value: int) -> int:
        """Return the encoding of ORI of the low 16 bits of `value` to register `n`."""
        return 0x34000000 | n << 21 | n << 16 | value & 0xFFFF

    def _number(self, code: bytes) -> int:
        """Return an instruction's encoding from its bytes."""
        return int.from_bytes(code, self._order.value)
