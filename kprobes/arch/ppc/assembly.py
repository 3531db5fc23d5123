"""Assembly text of PowerPC."""

from __future__ import annotations

from .._assembly import AssemblyText, CapstoneMode


def _row(modes: str, *keystone: str) -> AssemblyText:
    """Make the row of one architecture: how its assembly is written.

    Args:
        modes: Capstone's modes.
        keystone: Keystone's names of the architecture and its modes.
    """
    # numbers are registers
    return AssemblyText(
        capstone=CapstoneMode("PPC", modes), keystone=keystone, is_register=str.isdecimal
    )


ROWS = {"ppc": _row("32 BIG_ENDIAN", "PPC", "PPC32", "BIG_ENDIAN"),
        "ppc64": _row("64 BIG_ENDIAN", "PPC", "PPC64", "BIG_ENDIAN"),
        "ppc64le": _row("64", "PPC", "PPC64")}
