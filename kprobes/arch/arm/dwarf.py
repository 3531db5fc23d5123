"""Arm in debug information."""

from __future__ import annotations

from .._dwarf import DwarfFacts

DOUBLES = {256 + n: f"d{n}" for n in range(32)}
ARM = DwarfFacts(others=DOUBLES, first_real=256, reals="low", convention="pairs")
ROWS = {"arm": ARM, "armeb": DwarfFacts(pairs_reversed=True, convention="pairs"),
        "cortexm": DwarfFacts(others={256 + n: f"d{n}" for n in range(16)}, first_real=256, reals="low",
                              convention="pairs")}
