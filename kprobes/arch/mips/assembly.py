"""Assembly text of MIPS."""

from __future__ import annotations

from .._assembly import AssemblyText, CapstoneMode


def _is_register(operand: str) -> bool:
    """Whether a number names a register: `$9` does."""
    return operand[0] == "$"


def _row(modes: str, *keystone: str) -> AssemblyText:
    """Make the row of one architecture: how its assembly is written.

    Args:
        modes: Capstone's modes.
        keystone: Keystone's names of the architecture and its modes; none: it has none.
    """
    return AssemblyText(
        capstone=CapstoneMode("MIPS", modes), keystone=keystone, is_register=_is_register
    )


ROWS = {
    "mips": _row("MIPS32 BIG_ENDIAN", "MIPS", "MIPS32", "BIG_ENDIAN"),
    "mipsel": _row("MIPS32", "MIPS", "MIPS32"),
    "mips64": _row("MIPS64 BIG_ENDIAN", "MIPS", "MIPS64", "BIG_ENDIAN"),
    "mips64el": _row("MIPS64", "MIPS", "MIPS64"),
    "mips32r6": _row("MIPS32R6 BIG_ENDIAN"), "mips32r6el": _row("MIPS32R6"),
    "mips64r6": _row("MIPS64 MIPS32R6 BIG_ENDIAN"), "mips64r6el": _row("MIPS64 MIPS32R6"),
}
