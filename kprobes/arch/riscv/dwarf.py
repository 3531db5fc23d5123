"""RISC-V in debug information."""

from __future__ import annotations

from attrs import evolve

from .._dwarf import DwarfFacts

FLOATS = {32 + n: f"f{n}" for n in range(32)}
RISCV = DwarfFacts(others=FLOATS, first_real=32, reals="low")
ROWS = {"riscv32": evolve(RISCV, convention="aligned words"), "riscv64": RISCV}
