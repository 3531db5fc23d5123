"""RISC-V, 32 and 64 bits."""

NAMES = ("riscv32", "riscv64")
MACHINES = (243,)  # e_machine
