"""PA-RISC's branches in another place: code that goes where they go, keeps what they have in their
delay slots, and links the addresses that they link.

An unconditional branch keeps its delay slot: what nullifies there nullifies the target's first
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
    return value.to_bytes(4, "big")


def number(code: bytes) -> int:
    return int.from_bytes(code, "big")


def nullifies(code: int) -> bool:
    """Return True where an instruction may nullify the next one: arithmetic and shifts by a
    condition, assists by their n bit.
    """
    opcode = code >> 26
    if opcode in (0x02, 0x24, 0x25, 0x2C, 0x2D):
        return bool(code >> 12 & 15)
    if opcode in (0x34, 0x35):
        return bool(code >> 13 & 7)
    return opcode in (0x04, 0x0C) and bool(code >> 5 & 1)


def scattered(w: int, high: int, low: int, bits: int) -> int:
    """Return a displacement of so many bits from its pieces: the sign, what precedes, and eleven
    bits, the last one first.
    """
    return w << bits - 1 | high << 11 | (low & 1) << 10 | low >> 1


def _fields(offset: int, bits: int) -> int:
    """Return a distance's pieces as they stand in an instruction: the inverse of scattered()."""
    high = offset >> 11 & (1 << bits - 12) - 1
    return offset >> bits - 1 | high << 16 | (offset & 0x3FF) << 3 | (offset >> 10 & 1) << 2


def _b(frm: int, to: int, n: int) -> bytes:
    return word(B | n | _fields(displacement(frm + 8, to, 17, 4, MASK), 17))


def jump(frm: int, to: int) -> bytes:
    """Return B,N from `frm` to `to`, 256 KiB either way; raise OutOfReach beyond.

    Nothing runs in its delay slot. A far one needs its target in a register.
    """
    return _b(frm, to, NULLIFY)


def set_register(n: int, value: int) -> bytes:
    """Return code that puts a value into a register: LDIL of the upper 21 bits, which are
    scattered, and LDO.

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
    return set_register(n, insn.addr + 8 & MASK | USER) if n else b""


def _slot(insn: Insn) -> bytes:
    """Return the code of the delay slot that the branch takes along; b"": none."""
    return (insn.body or NOP) if insn.delay_slot else b""


def b(insn: Insn, to: int, d: int = 0, **_: int) -> bytes:
    """Return the link, then the branch with what it has in its delay slot."""
    code = _link(insn, d)
    assert insn.target is not None
    return code + _b(to + len(code), insn.target, 0 if insn.delay_slot else NULLIFY) + _slot(insn)


def b_l(insn: Insn, to: int, **_: int) -> bytes:
    return b(insn, to, RP)


def computed(insn: Insn, to: int, **_: int) -> bytes:
    """BV, BVE and BE neither read nor keep their own addresses."""
    return insn.raw + _slot(insn)


def _linking(insn: Insn, n: int, b: int, without: int) -> bytes:
    """Return the link, a branch that keeps none, and the delay slot; OutOfReach where both need one
    register.

    Args:
        insn: the branch.
        n: number of the link's register.
        b: number of the base's register.
        without: encoding of the branch without its link.
    """
    if b == n:
        raise OutOfReach(
            f"{insn.name} needs its register for both", address=insn.addr, hint="it is simulated"
        )
    return _link(insn, n) + word(without) + _slot(insn)


def bve_l(insn: Insn, to: int, b: int) -> bytes:
    """The link, then BVE."""
    return _linking(insn, RP, b, number(insn.raw) & ~(1 << 13))


def be_l(insn: Insn, to: int, b: int, **_: int) -> bytes:
    """The link, then BE."""
    return _linking(insn, LINK, b, number(insn.raw) & ~(1 << 26))


def conditional(opposite: int) -> Callable[..., bytes]:
    """Return the `displace` of a conditional branch: the opposite condition, which differs in the
    bits `opposite`, skips the jump.
    """

    def elsewhere(insn: Insn, to: int, **_: int) -> bytes:
        """Return the opposite branch, the delay slot and the jump; OutOfReach where the delay slot
        may nullify.
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
