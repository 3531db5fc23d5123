"""RISC-V on Linux."""

from __future__ import annotations

from attrs import evolve

from .._linux import CallRules, KernelRegisters, Linux, MemoryCalls, ThreadStorage

SIGTRAP = 5
RISCV = Linux(
    memory=MemoryCalls(code=bytes.fromhex("73000000"), number="a7",
                       args=("a0", "a1", "a2", "a3", "a4", "a5"),
                       result="a0", map=222, unmap=215),
    exits=(93, 94), clone=220, trap=(SIGTRAP, 0), storage=ThreadStorage(register="tp", bias=0x800),
    kernel_registers=KernelRegisters(marks=("a7",)),
    event_names=("epc", "ra", "sp", "gp", "tp", *(f"t{n}" for n in range(7)),
                 *(f"s{n}" for n in range(12)), *(f"a{n}" for n in range(8))))
ROWS = {"riscv32": evolve(RISCV, calls=CallRules(table="riscv32"), wide_times=True),
        "riscv64": evolve(RISCV, calls=CallRules(table="riscv64"))}
