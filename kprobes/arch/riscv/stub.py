"""RISC-V as stubs of GDB's protocol show it."""

from __future__ import annotations

from attrs import evolve

from .._stub import RegisterPart, StubFacts

FLOATS = (*(f"ft{n}" for n in range(8)), "fs0", "fs1", *(f"fa{n}" for n in range(8)),
          *(f"fs{n}" for n in range(2, 12)), "ft8", "ft9", "ft10", "ft11")
RISCV = StubFacts(
    parts={"s0": RegisterPart("fp"),
           **{f"f{n}": RegisterPart(name) for n, name in enumerate(FLOATS)}},
    kinds={2: 2, 4: 4},  # a hart without compressed instructions has no short breakpoint
    takes_pc=True)
ROWS = {"riscv32": RISCV, "riscv64": evolve(RISCV, kernel=("priv", 0x3, 0x1))}
