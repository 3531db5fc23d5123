"""Writes code that does m68k's branches and pc-relative operands at another address.

Nothing here touches the condition codes. Every displacement has 32 bits and reaches everywhere. A
return address is pushed by PEA, before anything else changes. A function that takes `insn` and `to`
is a row's `displace`: it returns code that does at address `to` what the instruction does at its
original address. Its other parameters are the instruction's fields, by the letters of the row: c
condition, e effective address.
"""

from __future__ import annotations

from ...errors import OutOfReach
from .._base import Insn, signed
from .addressing import MASK, PC_DISPLACED, PC_INDEXED, half, mode


def long(value: int) -> bytes:
    """Return a number's low 32 bits as bytes, big-endian."""
    return (value & MASK).to_bytes(4, "big")


def jump(frm: int, to: int) -> bytes:
    """Return JMP (xxx).L to address `to`; `frm`, where it will stand, is not needed.

    It is not BRA: at a BRA to another page the engine leaves its loop, and it follows this JMP at
    once.
    """
    return b"\x4e\xf9" + long(to)


def reaching(raw: bytes, at: int, home: int, to: int) -> bytes:
    """Return an instruction for address `to` whose pc-relative operand stays the same.

    It gets the addressing mode PC with index in full format, which has 32 bits. An instruction that
    leaves PC out of its address is returned as it is.

    Args:
        raw: its bytes.
        at: offset of the operand's extension word in it.
        home: its original address.
        to: its new address.
    """
    here, there, word = home + at, to + at, half(raw, at)
    if mode(raw[1] & 0x3F) == PC_DISPLACED:
        opcode = half(raw, 0) + 1  # ... 111 011; no index
        return opcode.to_bytes(2, "big") + raw[2:at] + b"\x01\x70" + long(here + signed(word,
            16) - there) + raw[at + 2 :]
    if not word & 0x100:
        full = word & 0xFE00 | 0x130
        return (
            raw[:at]
            + full.to_bytes(2, "big")
            + long(here + signed(word, 8) - there)
            + raw[at + 2 :]
        )
    if word & 0x80:
        return raw  # the base is suppressed
    size = (0, 0, 2, 4)[word >> 4 & 3]
    base = signed(int.from_bytes(raw[at + 2 : at + 2 + size], "big"), 8 * size) if size else 0
    return (
        raw[:at]
        + (word | 0x30).to_bytes(2, "big")
        + long(here + base - there)
        + raw[at + 2 + size :]
    )


def push(value: int) -> bytes:
    """Return PEA (xxx).L, which pushes a value."""
    return b"\x48\x79" + long(value)


def bra(insn: Insn, to: int, **_: int) -> bytes:
    """Return a jump to the original target."""
    assert insn.target is not None
    return jump(to, insn.target)


def distance(insn: Insn, to: int) -> bytes:
    """Return the 32-bit displacement of a branch at `to` to the instruction's original target."""
    assert insn.target is not None
    return long(insn.target - to - 2)


def bcc(insn: Insn, to: int, c: int, **_: int) -> bytes:
    """Return Bcc.L for `to`, to the original target."""
    return bytes([0x60 | c, 0xFF]) + distance(insn, to)


def fbcc(insn: Insn, to: int, c: int) -> bytes:
    """Return FBcc.L for `to`, to the original target."""
    return bytes([0xF2, 0xC0 | c]) + distance(insn, to)


def dbcc(insn: Insn, to: int, **_: int) -> bytes:
    """Return code for `to`: DBcc itself, then a jump to its target, which is skipped if it falls
    through.
    """
    return insn.raw[:2] + b"\0\4\x60\6" + bra(insn, to + 6)


def bsr(insn: Insn, to: int, **_: int) -> bytes:
    """Return code that pushes the original return address, then jumps to the target."""
    pushed = push(insn.next)
    return pushed + bra(insn, to + len(pushed))


def jmp(insn: Insn, to: int, e: int) -> bytes:
    """Return JMP for `to`, with its original pc-relative operand (`e`) if it has one; else the
    instruction as it is.
    """
    return (
        reaching(insn.raw, 2, insn.addr, to) if mode(e) in (PC_DISPLACED, PC_INDEXED) else insn.raw
    )


def jsr(insn: Insn, to: int, e: int) -> bytes:
    """Return code that pushes the original return address (PEA), then JMP to the operand.

    Raises:
        OutOfReach: the address depends on what PEA changes, or is read from memory, where it may
            fault.
    """
    if _depends(insn.raw, e):
        raise OutOfReach(
            "JSR computes its address before it pushes", address=insn.addr, hint="it is simulated"
        )
    pushed, raw = push(insn.next), insn.raw
    branch = raw[:1] + bytes([raw[1] | 0x40]) + raw[2:]
    return pushed + (
        reaching(branch, 2, insn.addr, to + len(pushed))
        if mode(e) in (PC_DISPLACED, PC_INDEXED)
        else branch
    )


def _depends(raw: bytes, e: int) -> bool:
    """Whether an operand's address depends on A7, or on an address that is read from memory.

    Args:
        raw: the instruction.
        e: mode and register of the operand.
    """
    kind, word = mode(e), half(raw, 2)
    indexed = kind in (6, PC_INDEXED)
    return (kind < 7 and e & 7 == 7) or (
        indexed and (word >> 12 == 15 or (word & 0x100 > 0 and word & 7 > 0))
    )
