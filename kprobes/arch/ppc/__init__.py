"""PowerPC, 32 and 64 bits."""

NAMES = ("ppc", "ppc64", "ppc64le")
MACHINES = (20, 21)  # e_machine
DESCRIBED = {"powerpc:common": "ppc"}  # GDB's target descriptions
