"""Assembly text of i386 and x86-64."""

from __future__ import annotations

import re

from .._assembly import AssemblyText, CapstoneMode

PARTS = re.compile(r"[re]?([abcd])([xlh])|[re]?([sd]i|[sb]p)l?|(r\d+)[dwb]")


def _register(name: str, bits: int) -> tuple[str, int]:
    """Return the full register that has a part, and where: eax, ax, al and ah are in rax; r8d in
    r8.

    Args:
        name: as assembly has it.
        bits: of a word, 32 or 64.

    Returns:
        (its name, bits of it below the part); (`name`, 0) where `name` is no part of a register.
    """
    wide = "r" if bits == 64 else "e"
    found = PARTS.fullmatch(name)
    if found is None:
        return name, 0
    letter, part, pointer, extended = found.groups()
    above = 8 if part == "h" else 0
    if letter:
        return f"{wide}{letter}x", above
    return f"{wide}{pointer}" if pointer else extended, above


ROWS = {"x86_64": AssemblyText(capstone=CapstoneMode("X86", "64"), keystone=("X86", "64"),
                               register=_register),
        "i386": AssemblyText(capstone=CapstoneMode("X86", "32"), keystone=("X86", "32"),
                             register=_register)}
