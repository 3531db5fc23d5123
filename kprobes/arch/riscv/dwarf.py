"""RISC-V in debug information."""

from __future__ import annotations

from attrs import evolve

from .._dwarf import DwarfFacts, RealFlags

FLOATS = {32 + n: f"f{n}" for n in range(32)}
#: EF_RISCV_FLOAT_ABI: none, single and double
FLAGS = RealFlags(0x6, {0: "counted", 2: "single registers", 4: "registers"})
RISCV = DwarfFacts(
    others=FLOATS,
    first_real=32,
    reals="low",
    convention="flattened",
    boxed=True,
    real_flags=(FLAGS,),
    first_real_argument=10,
)
ROWS = {"riscv32": RISCV, "riscv64": evolve(RISCV, sign_extended=True,
                                                    variadic_reals="word")}
