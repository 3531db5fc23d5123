"""SPARC, versions 8 and 9."""

NAMES = ("sparc", "sparc64")
MACHINES = (2, 18, 43)  # e_machine
