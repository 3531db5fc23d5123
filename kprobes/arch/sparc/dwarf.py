"""SPARC in debug information."""

from __future__ import annotations

from .._dwarf import DwarfFacts

SPARC = DwarfFacts(windows=True)
ROWS = {"sparc": SPARC, "sparc64": SPARC}
