"""LoongArch on Linux."""

from __future__ import annotations

from .._linux import KernelRegisters, Linux, MemoryCalls

SIGTRAP = 5
ROWS = {"loongarch64": Linux(
    memory=MemoryCalls(code=bytes.fromhex("00002b00"), number="r11",
                       args=("r4", "r5", "r6", "r7", "r8", "r9"),
                       result="r4", map=222, unmap=215),
    exits=(93, 94), clone=220, trap=(SIGTRAP, 0),
    kernel_registers=KernelRegisters(marks=("csr_era",), array="regs", prefix="r"),
    event_names=(*(f"r{n}" for n in range(32)), "csr_era"))}
