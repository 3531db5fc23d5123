"""AArch64 in debug information."""

from __future__ import annotations

from attrs import evolve

from .._dwarf import DwarfFacts

VECTORS = {64 + n: f"v{n}" for n in range(32)}
ARM64 = DwarfFacts(others=VECTORS, first_real=64, reals="low", convention="aapcs64",
                   variadic_reals="named")
ROWS = {"arm64": ARM64, "arm64be": evolve(ARM64, pairs_reversed=True)}
