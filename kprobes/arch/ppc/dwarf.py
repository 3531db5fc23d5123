"""PowerPC in debug information."""

from __future__ import annotations

from attrs import evolve

from .._dwarf import DwarfFacts

FLOATS = {32 + n: f"f{n}" for n in range(32)}
# a long double may be a pair of doubles
PPC = DwarfFacts(others={65: "lr", **FLOATS}, first_real=32, reals="double", long_double={})
ROWS = {"ppc": evolve(PPC, pairs_reversed=True, convention="pairs"), "ppc64": PPC, "ppc64le": PPC}
