"""PA-RISC in debug information."""

from __future__ import annotations

from .._dwarf import DwarfFacts

ROWS = {"parisc": DwarfFacts(numbers=(None, *(f"r{n}" for n in range(1, 32))))}  # r0 has no name
