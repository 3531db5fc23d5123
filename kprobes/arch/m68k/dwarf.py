"""m68k in debug information."""

from __future__ import annotations

from .._dwarf import DwarfFacts

ROWS = {"m68k": DwarfFacts(general=16, long_double={})}  # a long double has a gap
