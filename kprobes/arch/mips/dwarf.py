"""MIPS in debug information."""

from __future__ import annotations

from .._dwarf import DwarfFacts

LITTLE = DwarfFacts(convention="counted pairs")
BIG = DwarfFacts(convention="counted pairs", pairs_reversed=True)
ROWS = {"mips": BIG, "mipsel": LITTLE, "mips32r6": BIG, "mips32r6el": LITTLE}
