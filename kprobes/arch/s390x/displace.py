"""Writes code that does z/Architecture's branches at another address than their own.

Nothing here touches the condition code, and all of it is right in every addressing mode. A function
that takes `insn` and `to` is a row's `displace`: it returns code that does at address `to` what the
instruction does at its original address, and raises OutOfReach where there is no such code. Its
other parameters are the instruction's fields, by the letters of the row: r register that gets the
return address, s register with the target, d, b and x an operand's address.
"""

from __future__ import annotations

from ...errors import OutOfReach
from .._base import Insn, displacement

MASK = (1 << 64) - 1
OVER_A_JUMP = bytes.fromhex("a7f40005")  # BRC 15 over itself and six bytes


def relative(opcode: bytes, frm: int, to: int) -> bytes:
    """Return an instruction with a relative operand of 32 bits; raise OutOfReach beyond 4 GiB.

    Args:
        opcode: its first two bytes.
        frm: its address.
        to: the operand's address.
    """
    return opcode + displacement(frm, to, 32, 2, MASK).to_bytes(4, "big")


def jump(frm: int, to: int) -> bytes:
    """Return BRCL 15 from `frm` to `to`; raise OutOfReach beyond 4 GiB."""
    return relative(b"\xc0\xf4", frm, to)


def far(insn: Insn, to: int, **_: int) -> bytes:
    """Return BRCL or BRCTH from `to` to the original target; BRC becomes BRCL."""
    assert insn.target is not None
    return relative((insn.raw[:1] if insn.size == 6 else b"\xc0") + insn.raw[1:2], to, insn.target)


def near(insn: Insn, to: int, **_: int) -> bytes:
    """Return code for `to`: a branch of 16 bits to a jump to the original target, with a jump
    around it.
    """
    assert insn.target is not None
    ahead = insn.size + 4
    return (
        insn.raw[:2]
        + (ahead // 2).to_bytes(2, "big")
        + insn.raw[4:]
        + OVER_A_JUMP
        + jump(to + ahead, insn.target)
    )


def save(insn: Insn, to: int, r: int) -> bytes:
    """Return code that puts the original return address into register `r`, with the mode in 31
    bits.

    BASR r,0 tells the mode by the sign, and sets the upper bits, which IILF leaves alone.

    Args:
        insn: the instruction.
        to: address of the code.
        r: number of the register.

    Raises:
        OutOfReach: the address is not one of 31 bits, and `to` is below 2 GiB.
    """
    if to >> 31:  # only 64-bit addressing gets there
        return relative(bytes([0xC0, r << 4]), to, insn.next)  # LARL
    if insn.next >> 32:
        raise OutOfReach(
            f"{insn.name} keeps its next address", address=insn.addr, hint="map code nearer"
        )
    ask = bytes([0x0D, r << 4, 0xEC, r << 4 | 4, 0, 8, 0, 0x7E])  # BASR; CIJL r,0
    # IILF
    plain, marked = (
        bytes([0xC0, r << 4 | 9]) + (insn.next | mode << 31).to_bytes(4, "big") for mode in (0, 1)
    )
    return ask + plain + OVER_A_JUMP + marked


def bras(insn: Insn, to: int, r: int, **_: int) -> bytes:
    """Return code that puts the original return address into register `r`, then jumps."""
    assert insn.target is not None
    saved = save(insn, to, r)
    return saved + jump(to + len(saved), insn.target)


def basr(insn: Insn, to: int, r: int, s: int) -> bytes:
    """Return code that puts the original return address into register `r`, then goes to register
    `s`.

    With `s` 0 it goes on to the next instruction.

    Raises:
        OutOfReach: both are the same register.
    """
    if s == 0:
        return save(insn, to, r)
    _check_free(insn, r, s)
    return save(insn, to, r) + bytes([0x07, 0xF0 | s])  # BCR 15


def bas(insn: Insn, to: int, r: int, x: int, d: int, b: int) -> bytes:
    """Return code that puts the original return address into register `r`, then goes to an operand.

    Args:
        insn: BAS at its original address.
        to: address of the code.
        r: number of the register.
        x: number of the operand's index register.
        d: displacement of the operand.
        b: number of the operand's base register.

    Raises:
        OutOfReach: register `r` is part of the operand's address.
    """
    _check_free(insn, r, x, b)
    return save(insn, to, r) + bytes([0x47, 0xF0 | x]) + insn.raw[2:]  # BC 15


def _check_free(insn: Insn, r: int, *used: int) -> None:
    """Raise OutOfReach where the target depends on register `r`, which gets the return address.

    Args:
        insn: the instruction, for the message.
        r: number of the register; 0 is none.
        used: registers that tell the target.
    """
    if r and r in used:
        raise OutOfReach(
            f"{insn.name} needs r{r} for both addresses", address=insn.addr, hint="it is simulated"
        )
