"""Assembly text of RISC-V."""

from __future__ import annotations

from .._assembly import AssemblyText, CapstoneMode

ROWS = {"riscv32": AssemblyText(capstone=CapstoneMode("RISCV", "RISCV32 RISCVC")),
        "riscv64": AssemblyText(capstone=CapstoneMode("RISCV", "RISCV64 RISCVC"))}
