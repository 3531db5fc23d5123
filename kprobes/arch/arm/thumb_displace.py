"""Writes code that does T32's branches and PC readers at another address than their own.

None of them is in an IT block: the core does not displace such. A function that takes `insn` and
`to` is a row's `displace`: it returns code that does at address `to` what the instruction does at
its original address, and raises OutOfReach where there is no such code. Its other parameters are
the instruction's fields, by the letters of the row.
"""

from __future__ import annotations

from .._base import Insn
from .encode import add_wide, move_wide, t32
from .encode import b as jump_a32
from .encode import b_wide as jump
from .shared import LR, PC, SP, after, here, literal, stays

NOP, BX_PC = 0xBF00, 0x4778


def b(insn: Insn, to: int, **_: int) -> bytes:
    """Return B.W from `to` to the original target."""
    assert insn.target is not None
    return jump(to, insn.target)


def b_cond(insn: Insn, to: int, c: int, **_: int) -> bytes:
    """Return code for `to`: a branch on the opposite condition, which skips a B.W to the target."""
    return t32(0xD001 | (c ^ 1) << 8) + b(insn, to + 2)


def cbz(insn: Insn, to: int, n: int, **_: int) -> bytes:
    """Return code for `to`: CBNZ for CBZ or the other way round, which skips a B.W to the
    target.
    """
    return t32(int.from_bytes(insn.raw, "little") & 0xFD00 ^ 0x0800 | 1 << 3 | n) + b(insn, to + 2)


def bl(insn: Insn, to: int, **_: int) -> bytes:
    """Return code that sets LR to the original return address, then branches to the target."""
    code = move_wide(LR, after(insn))
    return code + b(insn, to + len(code))


def blx(insn: Insn, to: int, **_: int) -> bytes:
    """Return code that sets LR and changes to A32 by BX PC, at a multiple of four (A8.8.27), then
    branches.
    """
    assert insn.target is not None
    code = move_wide(LR, after(insn))
    code += t32(*[NOP] * ((to + len(code)) % 4 // 2), BX_PC, NOP)
    return code + jump_a32(to + len(code), insn.target)


def bx(insn: Insn, to: int, m: int, **_: int) -> bytes:
    """Return BX to register `m` as it is; OutOfReach where that is PC."""
    if m == PC:
        raise stays(insn)
    return insn.raw


def blx_register(insn: Insn, to: int, m: int, **_: int) -> bytes:
    """Return code that sets LR to the original return address, then BX to register `m`; OutOfReach
    where that is LR.
    """
    if m == LR:
        raise stays(insn)
    return move_wide(LR, after(insn)) + t32(0x4700 | m << 3)


def mov(insn: Insn, to: int, d: int, m: int) -> bytes:
    """Return code that puts the original PC into register `d`, or MOV to PC as it is; OutOfReach
    where `d` is SP, or both registers are PC.
    """
    if d in (SP, m):
        raise stays(insn)
    return insn.raw if d == PC else move_wide(d, here(insn))


def add(insn: Insn, to: int, d: int, m: int) -> bytes:
    """Return code that adds the original PC to register `d`; OutOfReach where `d` is SP or PC."""
    if d in (SP, PC):
        raise stays(insn)
    return add_wide(d, here(insn))


def adr(insn: Insn, to: int, d: int, i: int) -> bytes:
    """Return code that puts the original address into register `d`."""
    return move_wide(d, literal(insn, 1, 4 * i))


def adr_wide(insn: Insn, to: int, d: int, i: int, u: int) -> bytes:
    """Return code that puts the original address into register `d`; OutOfReach for SP.

    The address is `i` bytes behind (`u` 0) or before PC.
    """
    if d == SP:
        raise stays(insn)
    return move_wide(d, literal(insn, not u, i))


def hint(insn: Insn, to: int, t: int, **_: int) -> bytes:
    """Return b"", no code, for PLD and PLI (loads into PC, field `t`).

    Raises:
        OutOfReach: it is a load into another register.
    """
    if t != PC:
        raise stays(insn)
    return b""
