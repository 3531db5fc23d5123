"""i386 and x86-64."""

NAMES = ("i386", "x86_64")
MACHINES = (3, 62)  # e_machine
DESCRIBED = {"i386:x86-64": "x86_64", "i386": "i386"}  # GDB's target descriptions
