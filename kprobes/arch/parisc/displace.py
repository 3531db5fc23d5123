"""Writes code that does PA-RISC's branches at another address than their own.

The code goes where they go, does what is in their delay slots, and links what they link. An
unconditional branch keeps its delay slot: what nullifies there nullifies the target's first
instruction. A conditional one has it in straight line, before the jump, so none that may nullify
can be there.

A function that takes `insn` and `to` is a row's `displace`: it returns code that does at address
`to` what the instruction does at its original address, and raises OutOfReach where there is no such
code. Its other parameters are numbers of registers, by the letters of the row: b base, d link.
"""

from __future__ import annotations

from collections.abc import Callable

from ...errors import OutOfReach
from .._base import Insn, displacement

MASK = (1 << 32) - 1
NOP = bytes.fromhex("08000240")
USER = 3  #: privilege level in the low bits of every link value
RP, LINK = 2, 31  #: registers of return addresses: the usual one, and BE,L's
NULLIFY = 2  #: the bit of branches: their delay slot may be nullified
B, LDIL, LDO = 0x3A << 26, 0x08 << 26, 0x0D << 26


def word(value: int) -> bytes:
    """Return an instruction's four bytes, big-endian."""
    return value.to_bytes(4, "big")


def number(code: bytes) -> int:
    """Return an instruction's encoding from its bytes."""
    return int.from_bytes(code, "big")


def nullifies(code: int) -> bool:
    """Whether an instruction may nullify the next one; `code`: its encoding.

    Arithmetic and shifts do so by a condition, assists by their n bit.
    """
    opcode = code >> 26
    if opcode in (0x02, 0x24, 0x25, 0x2C, 0x2D):
        return bool(code >> 12 & 15)
    if opcode in (0x34, 0x35):
        return bool(code >> 13 & 7)
    return opcode in (0x04, 0x0C) and bool(code >> 5 & 1)


def scattered(w: int, high: int, low: int, bits: int) -> int:
    """Join the pieces of a displacement as they stand in an instruction.

    Args:
        w: its sign bit.
        high: the bits behind the sign.
        low: the eleven lowest bits, of which the last stands first.
        bits: width of the displacement.
    """
    return w << bits - 1 | high << 11 | (low & 1) << 10 | low >> 1


def _fields(offset: int, bits: int) -> int:
    """Return a displacement's bits as they stand in an instruction: the inverse of scattered()."""
    high = offset >> 11 & (1 << bits - 12) - 1
    return offset >> bits - 1 | high << 16 | (offset & 0x3FF) << 3 | (offset >> 10 & 1) << 2


def _b(frm: int, to: int, n: int) -> bytes:
    """Return B from `frm` to `to`; `n`: NULLIFY, or 0. Raises OutOfReach beyond 256 KiB."""
    return word(B | n | _fields(displacement(frm + 8, to, 17, 4, MASK), 17))


def jump(frm: int, to: int) -> bytes:
    """Return B,N from `frm` to `to`, 256 KiB either way; raise OutOfReach beyond.

    Nothing runs in its delay slot. A far one needs its target in a register.
    """
    return _b(frm, to, NULLIFY)


def set_register(n: int, value: int) -> bytes:
    """Return code that puts a value into a register: LDIL of the upper 21 bits, and LDO.

    Args:
        n: number of the register.
        value: 32 bits.
    """
    high = value >> 11
    field = (
        high >> 20
        | (high >> 9 & 0x7FF) << 1
        | (high & 3) << 12
        | (high >> 7 & 3) << 14
        | (high >> 2 & 0x1F) << 16
    )
    return word(LDIL | n << 21 | field) + word(LDO | n << 21 | n << 16 | (value & 0x7FF) << 1)


def _link(insn: Insn, n: int) -> bytes:
    """Return code that puts the original return address into register `n`; b"" for register 0."""
    return set_register(n, insn.addr + 8 & MASK | USER) if n else b""


def _slot(insn: Insn) -> bytes:
    """Return the code of the delay slot that the branch takes along; b"": none."""
    return (insn.body or NOP) if insn.delay_slot else b""


def b(insn: Insn, to: int, d: int = 0, **_: int) -> bytes:
    """Return code that sets the link (register `d`), then B to the target with its delay slot."""
    code = _link(insn, d)
    assert insn.target is not None
    return code + _b(to + len(code), insn.target, 0 if insn.delay_slot else NULLIFY) + _slot(insn)


def b_l(insn: Insn, to: int, **_: int) -> bytes:
    """Return code that sets r2 to the original return address, then B to the target."""
    return b(insn, to, RP)


def computed(insn: Insn, to: int, **_: int) -> bytes:
    """Return BV, BVE or BE with its delay slot as it is: it neither reads nor keeps its own
    address.
    """
    return insn.raw + _slot(insn)


def _linking(insn: Insn, n: int, b: int, without: int) -> bytes:
    """Return code that does the same as a branch with link, at another address.

    The code puts the original return address into the link's register; then come the branch
    without its link, and the instruction of its delay slot.

    Args:
        insn: the branch.
        n: number of the register that gets the return address.
        b: number of the register that has the branch's target.
        without: encoding of the branch without its link.

    Raises:
        OutOfReach: `n` and `b` are the same register: setting the link would destroy the target.
    """
    if b == n:
        raise OutOfReach(
            f"{insn.name} needs its register for both", address=insn.addr, hint="it is simulated"
        )
    return _link(insn, n) + word(without) + _slot(insn)


def bve_l(insn: Insn, to: int, b: int) -> bytes:
    """Return code that sets r2 to the original return address, then BVE to register `b`."""
    return _linking(insn, RP, b, number(insn.raw) & ~(1 << 13))


def be_l(insn: Insn, to: int, b: int, **_: int) -> bytes:
    """Return code that sets r31 to the original return address, then BE."""
    return _linking(insn, LINK, b, number(insn.raw) & ~(1 << 26))


def conditional(opposite: int) -> Callable[..., bytes]:
    """Make the `displace` of a conditional branch, (insn, to, **fields) -> code: the opposite
    condition skips the jump.

    Args:
        opposite: bits in which the opposite condition's encoding differs.
    """

    def elsewhere(insn: Insn, to: int, **_: int) -> bytes:
        """Return code for `to`: the opposite branch, the delay slot and the jump.

        Raises:
            OutOfReach: the delay slot may nullify.
        """
        code, slot = number(insn.raw), insn.body
        assert insn.target is not None
        if nullifies(number(slot)):
            raise OutOfReach(
                f"{insn.name}'s delay slot may nullify", address=insn.addr, hint="it is simulated"
            )
        skips = (code ^ opposite) & ~0x1FFF
        if not insn.delay_slot:  # forwards: where it is taken, nothing else is executed
            return word(skips | NULLIFY) + jump(to + 4, insn.target)
        if not code & NULLIFY:  # both ways
            return word(skips | _fields(1, 12)) + (slot or NOP) + jump(to + 8, insn.target)
        return (
            word(skips | NULLIFY | _fields(len(slot) // 4, 12))
            + slot
            + jump(to + 4 + len(slot), insn.target)
        )

    return elsewhere
