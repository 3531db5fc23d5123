"""PA-RISC, 32 bits."""

NAMES = ("parisc",)
MACHINES = (15,)  # e_machine
