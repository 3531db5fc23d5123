"""A32 and T32 instructions that displaced code is made of. None of them changes a flag."""

from __future__ import annotations

from collections.abc import Iterator

from .._base import displacement
from .shared import MASK, SP

ALWAYS = 14


def a32(word: int) -> bytes:
    """Return an A32 instruction's bytes; code is little-endian, whatever data are."""
    return word.to_bytes(4, "little")


def t32(*halfwords: int) -> bytes:
    """Return the bytes of T32 halfwords, each little-endian."""
    return b"".join(halfword.to_bytes(2, "little") for halfword in halfwords)


def b(frm: int, to: int, c: int = ALWAYS) -> bytes:
    """Return A32's B (A1) from `frm` to `to` under a condition; raise OutOfReach beyond 32 MiB."""
    return a32(c << 28 | 0x0A000000 | displacement(frm + 8, to, 24, 4, MASK))


def b_wide(frm: int, to: int) -> bytes:
    """Return T32's B.W (T4) from address `frm` to `to`, 16 MiB either way; raise OutOfReach beyond.

    J1 and J2 are the two bits below the sign, inverted if S is 0.
    """
    field = displacement(frm + 4, to, 24, 2, MASK)
    s, i1, i2 = (field >> bit & 1 for bit in (23, 22, 21))
    return t32(
        0xF000 | s << 10 | field >> 11 & 0x3FF,
        0x9000 | (i1 ^ s ^ 1) << 13 | (i2 ^ s ^ 1) << 11 | field & 0x7FF,
    )


def move(d: int, value: int, c: int = ALWAYS) -> bytes:
    """Return A32's MOVW and MOVT, which put `value` (32 bits) into register `d` under condition
    `c`.
    """
    return b"".join(a32(c << 28 | opcode | half >> 12 << 16 | d << 12 | half & 0xFFF)
                    for opcode, half in _halves(0x03000000, 0x03400000, value))


def move_wide(d: int, value: int) -> bytes:
    """Return T32's MOVW, and MOVT unless the upper half is 0, which put `value` (32 bits) into
    register `d`, which is not SP.
    """
    assert d != SP
    return b"".join(t32(opcode | half >> 1 & 0x400 | half >> 12,
                        half << 4 & 0x7000 | d << 8 | half & 0xFF)
                    for opcode, half in _halves(0xF240, 0xF2C0, value))  # fmt: skip


def _halves(low: int, high: int, value: int) -> Iterator[tuple[int, int]]:
    """Yield (opcode, 16 bits): `low` for the low half of a value, `high` for the upper one unless
    that is 0.
    """
    yield low, value & 0xFFFF
    if value >> 16:
        yield high, value >> 16


def add(d: int, value: int, c: int = ALWAYS) -> bytes:
    """Return A32's ADDs of a value to a register: one for each eight bits, at an even place; b""
    for 0.

    Args:
        d: number of the register.
        value: 32 bits.
        c: condition.
    """
    code = b""
    while value:
        place = (value & -value).bit_length() - 1 & ~1
        code += a32(
            c << 28
            | 0x02800000
            | d << 16
            | d << 12
            | (32 - place) // 2 % 16 << 8
            | value >> place & 0xFF
        )
        value &= ~(0xFF << place)
    return code


def add_wide(d: int, value: int) -> bytes:
    """Return T32's ADD.Ws of a value to a register: one for each eight bits; b"" for 0.

    Args:
        d: number of the register.
        value: 32 bits.
    """
    code = b""
    while value:
        place = max(value.bit_length() - 8, 0)
        rotation, bits = (32 - place) % 32, value >> place
        bits = rotation << 7 | bits & 0x7F if rotation else bits
        code += t32(0xF100 | bits >> 1 & 0x400 | d, bits << 4 & 0x7000 | d << 8 | bits & 0xFF)
        value &= (1 << place) - 1
    return code
