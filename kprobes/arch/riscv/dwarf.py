"""RISC-V in debug information."""

from __future__ import annotations

from attrs import evolve

from .._dwarf import DwarfFacts, RealFlags

FLOATS = {32 + n: f"f{n}" for n in range(32)}
RISCV = DwarfFacts(others=FLOATS, first_real=32, reals="low")
#: EF_RISCV_FLOAT_ABI: none, and double; with single, numbers of 8 bytes go elsewhere
FLAGS = RealFlags(0x6, {0: "counted", 4: "registers"}, variadic=True)
ROWS = {"riscv32": evolve(RISCV, convention="aligned words", real_flags=FLAGS), "riscv64": RISCV}
