"""MIPS in debug information."""

from __future__ import annotations

from .._dwarf import DwarfFacts

LITTLE = DwarfFacts(convention="pairs")
BIG = DwarfFacts(convention="pairs", pairs_reversed=True)
ROWS = {"mips": BIG, "mipsel": LITTLE, "mips32r6": BIG, "mips32r6el": LITTLE}
