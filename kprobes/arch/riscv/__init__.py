"""RISC-V, 32 and 64 bits."""

NAMES = ("riscv32", "riscv64")
MACHINES = (243,)  # e_machine
DESCRIBED = {"riscv:rv32": "riscv32", "riscv:rv64": "riscv64"}  # GDB's target descriptions
