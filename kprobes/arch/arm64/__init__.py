"""AArch64."""

NAMES = ("arm64", "arm64be")
MACHINES = (183,)  # e_machine
DESCRIBED = {"aarch64": "arm64"}  # GDB's target descriptions
