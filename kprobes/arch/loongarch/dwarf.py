"""LoongArch in debug information."""

from __future__ import annotations

from .._dwarf import DwarfFacts

FLOATS = {32 + n: f"f{n}" for n in range(32)}
ROWS = {"loongarch64": DwarfFacts(others=FLOATS, first_real=32, reals="low")}
