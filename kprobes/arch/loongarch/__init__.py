"""LoongArch, 64 bits."""

NAMES = ("loongarch64",)
MACHINES = (258,)  # e_machine
