"""SuperH, from SH-1 to SH-4A."""

NAMES = ("sh4", "sh4eb")
MACHINES = (42,)  # e_machine
