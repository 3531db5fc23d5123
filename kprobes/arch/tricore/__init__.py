"""TriCore."""

NAMES = ("tricore",)
MACHINES = (44,)  # e_machine
