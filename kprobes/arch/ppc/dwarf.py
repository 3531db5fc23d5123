"""PowerPC in debug information."""

from __future__ import annotations

from .._dwarf import DwarfFacts

PPC = DwarfFacts(others={65: "lr"}, long_double={})  # a long double may be a pair of doubles
ROWS = {"ppc": PPC, "ppc64": PPC, "ppc64le": PPC}
