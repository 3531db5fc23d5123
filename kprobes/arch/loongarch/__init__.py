"""LoongArch, 64 bits."""

NAMES = ("loongarch64",)
MACHINES = (258,)  # e_machine
DESCRIBED = {"loongarch64": "loongarch64"}  # GDB's target descriptions
