"""AArch64 on Linux."""

from __future__ import annotations

from .._linux import CallRules, KernelRegisters, Linux, MemoryCalls, ThreadStorage

SIGTRAP = 5
ARM64 = Linux(
    # BTI jc, SVC #0: the program is at an instruction that a branch leads to, and its page may be
    # guarded
    memory=MemoryCalls(code=bytes.fromhex("df2403d5 010000d4"), number="x8",
                       args=("x0", "x1", "x2", "x3", "x4", "x5"),
                       result="x0", map=222, unmap=215),
    calls=CallRules(table="arm64"),
    exits=(93, 94), clone=220, trap=(SIGTRAP, 0),
    storage=ThreadStorage(register="tpidr_el0", first=16),
    kernel_registers=KernelRegisters(marks=("pstate",), array="regs", prefix="x"),
    event_names=(*(f"x{n}" for n in range(31)), "lr", "sp", "pc", "pstate"))
ROWS = {"arm64": ARM64, "arm64be": ARM64}
