"""Programs compiled for RISC-V."""

from __future__ import annotations

from .._compiling import Compiling, Triple

ROWS = {"riscv32": Compiling(triple=Triple("riscv32-unknown-elf", "", "+m,-relax")),
        "riscv64": Compiling(triple=Triple("riscv64-unknown-elf", "", "+m,-relax"))}
