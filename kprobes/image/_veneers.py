"""Veneers: code between a call and a target that is far away, of another mode, or of another image.

Each function (_arm, _thumb ...) takes the target's run address, mode bits included, and returns
[(bytes, value)]: numbers to be stored one after the other, which are the veneer's code.
"""

from __future__ import annotations

from collections.abc import Callable

from ._types import ARM, MIPS, PPC64

SIZES = {ARM: 8, MIPS: 16, PPC64: 48}  #: bytes of the longest veneer, a multiple of its alignment


def _arm(target: int) -> list[tuple[int, int]]:
    """Return the veneer for ARM code, as [(bytes, value)]: ldr pc, [pc, #-4], then the target; the
    target's bit 0 selects the mode.
    """
    return [(4, 0xE51FF004), (4, target)]


def _thumb(target: int) -> list[tuple[int, int]]:
    """Return the veneer for Thumb code, as [(bytes, value)]: ldr.w pc, [pc, #0], then the
    target.
    """
    return [(2, 0xF8DF), (2, 0xF000), (4, target)]


def _mips(target: int) -> list[tuple[int, int]]:
    """Return the veneer lui t9; addiu t9; jr t9; nop, as [(bytes, value)].

    Position-independent functions find their GOT from t9.
    """
    return [
        (4, 0x3C190000 | (target + 0x8000 >> 16 & 0xFFFF)),
        (4, 0x27390000 | target & 0xFFFF),
        (4, 0x03200008),
        (4, 0),
    ]


def _load_r12(value: int) -> list[int]:
    """Return the instructions that put a value of 64 bits into r12: lis, ori, sldi 32, oris,
    ori.
    """
    return [
        0x3D800000 | value >> 48 & 0xFFFF,
        0x618C0000 | value >> 32 & 0xFFFF,
        0x798C07C6,
        0x658C0000 | value >> 16 & 0xFFFF,
        0x618C0000 | value & 0xFFFF,
    ]


def _elfv2(target: int) -> list[tuple[int, int]]:
    """Return the veneer std r2, 24(r1); r12 = target; mtctr r12; bctr, as [(bytes, value)].

    The target is a global entry point, which makes its TOC from r12.
    """
    return [(4, word) for word in (0xF8410018, *_load_r12(target), 0x7D8903A6, 0x4E800420)]


def _elfv1(target: int) -> list[tuple[int, int]]:
    """Return the veneer that calls by a descriptor, whose address is `target`, as [(bytes, value)].

    It is std r2, 40(r1); r12 = descriptor; ld r0, 0(r12); mtctr r0; ld r2, 8(r12); ld r11, 16(r12);
    bctr.
    """
    return [
        (4, word)
        for word in (
            0xF8410028,
            *_load_r12(target),
            0xE80C0000,
            0x7C0903A6,
            0xE84C0008,
            0xE96C0010,
            0x4E800420,
        )
    ]


#: kind -> its code
CODE: dict[str, Callable[[int], list[tuple[int, int]]]] = {
    "arm": _arm,
    "thumb": _thumb,
    "mips": _mips,
    "elfv1": _elfv1,
    "elfv2": _elfv2,
}
