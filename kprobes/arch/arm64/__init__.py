"""AArch64."""

NAMES = ("arm64", "arm64be")
MACHINES = (183,)  # e_machine
