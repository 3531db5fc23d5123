"""Writes code that does TriCore's jumps and calls at another address than their own.

No flags change. A function that takes `insn` and `to` is a row's `displace`: it returns code that
does at address `to` what the instruction does at its original address, and raises OutOfReach where
there is no such code. Its other parameters are numbers of registers, by the letters of the row.
"""

from __future__ import annotations

from ...errors import OutOfReach
from .._base import Insn, displacement

MASK = 0xFFFFFFFF
A10, A11 = 10, 11


def word(value: int) -> bytes:
    """Return an instruction's four bytes, little-endian."""
    return value.to_bytes(4, "little")


def jump(frm: int, to: int) -> bytes:
    """Return J from `frm` to `to`; raise OutOfReach beyond 16 MiB."""
    offset = displacement(frm, to, 24, 2, MASK)
    return word((offset & 0xFFFF) << 16 | offset >> 16 << 8 | 0x1D)


def linked(insn: Insn, before: bytes = b"") -> bytes:
    """Return code that puts the original return address into A11: MOVH.A a11; LEA a11.

    Args:
        insn: the instruction at its original address.
        before: code to put in front.
    """
    high, low = insn.next + 0x8000 >> 16 & 0xFFFF, insn.next & 0xFFFF
    return (
        before
        + word(0xB << 28 | high << 12 | 0x91)
        + word((low & 0x3F) << 16 | (low >> 10) << 22 | (low >> 6 & 15) << 28 | 0xBBD9)
    )


def called(insn: Insn) -> bytes:
    """Return code that does all of a call but the jump: CALL .+4 saves the upper context, then A11
    is set.
    """
    return linked(insn, word(2 << 16 | 0x6D))


def alone(insn: Insn, to: int, **_: int) -> bytes:
    """Return a jump as it is: it neither reads nor keeps its own address."""
    return insn.raw


def j(insn: Insn, to: int, **_: int) -> bytes:
    """Return J from `to` to the original target."""
    assert insn.target is not None
    return jump(to, insn.target)


def _then(code: bytes, insn: Insn, to: int, s: int | None) -> bytes:
    """Return `code`, then a jump: to the original target where `s` is None, else through address
    register `s` (JI).
    """
    return code + (j(insn, to + len(code)) if s is None else bytes([0xDC, s]))


def _unless(insn: Insn, s: int | None, *changed: int) -> None:
    """Raise OutOfReach where register `s`, which has the target (None: none has), is one of those
    `changed` before the jump.
    """
    if s in changed:
        raise OutOfReach(f"{insn.name} changes its register before it reads it", address=insn.addr,
                         hint="it is simulated")


def call(insn: Insn, to: int, s: int | None = None, **_: int) -> bytes:
    """Return code of CALL: save the upper context, set A11, then jump to the target or register
    `s`; OutOfReach where `s` is A11.
    """
    _unless(insn, s, A11)
    return _then(called(insn), insn, to, s)


def jl(insn: Insn, to: int, s: int | None = None, **_: int) -> bytes:
    """Return code of JL: set A11 to the original return address, then jump to the target or
    register `s`; OutOfReach where `s` is A11.
    """
    _unless(insn, s, A11)
    return _then(linked(insn), insn, to, s)


def fcall(insn: Insn, to: int, s: int | None = None, **_: int) -> bytes:
    """Return code of FCALL: push A11 (FCALL .+4), set it, then jump to the target or register `s`.

    Raises:
        OutOfReach: that changes the target's register.
    """
    _unless(insn, s, A10, A11)
    return _then(linked(insn, word(2 << 16 | 0x61)), insn, to, s)


def _over(branch: bytes, insn: Insn, to: int) -> bytes:
    """Return code for `to`: `branch`, which skips a J that skips the jump to the original
    target.
    """
    code = branch + b"\x3c\3"
    return code + j(insn, to + len(code))


def branch(insn: Insn, to: int, **_: int) -> bytes:
    """Return code of a branch with a displacement of 15 bits."""
    return _over(insn.raw[:2] + bytes([3, insn.raw[3] & 0x80]), insn, to)


def short(insn: Insn, to: int, **_: int) -> bytes:
    """Return code of a branch with a displacement of four bits, next to a register, bit or
    constant.
    """
    return _over(bytes([insn.raw[0], insn.raw[1] & 0xF0 | 2]), insn, to)


def distant(insn: Insn, to: int, **_: int) -> bytes:
    """Return code of a branch whose bit 7 puts its target 32 bytes farther."""
    return _over(bytes([insn.raw[0] & 0x7F, insn.raw[1] & 0xF0 | 2]), insn, to)


def wide(insn: Insn, to: int, **_: int) -> bytes:
    """Return code of a branch with a displacement of eight bits."""
    return _over(insn.raw[:1] + b"\2", insn, to)


def loop(insn: Insn, to: int, t: int, **_: int) -> bytes:
    """Return code of LOOP, in its long form: the short one can only go back."""
    return _over(word(3 << 16 | t << 12 | 0xFD), insn, to)
