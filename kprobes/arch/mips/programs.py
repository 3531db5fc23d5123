"""Programs compiled for MIPS."""

from __future__ import annotations

from .._compiling import Compiling, Triple


def _row(name: str, cpu: str) -> Compiling:
    """Make the row of one architecture.

    Args:
        name: LLVM's name of the architecture.
        cpu: LLVM's name of the CPU that programs are compiled for.
    """
    # else jumps are to absolute addresses
    return Compiling(triple=Triple(f"{name}-unknown-elf", cpu, "", "pic"))


ROWS = {
    "mips": _row("mips", "mips32r2"), "mipsel": _row("mipsel", "mips32r2"),
    "mips64": _row("mips64", "mips64r2"), "mips64el": _row("mips64el", "mips64r2"),
    "mips32r6": _row("mipsisa32r6", "mips32r6"), "mips32r6el": _row("mipsisa32r6el", "mips32r6"),
    "mips64r6": _row("mipsisa64r6", "mips64r6"), "mips64r6el": _row("mipsisa64r6el", "mips64r6"),
}
