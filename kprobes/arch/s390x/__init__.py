"""z/Architecture."""

NAMES = ("s390x",)
MACHINES = (22,)  # e_machine
DESCRIBED = {"s390:64-bit": "s390x"}  # GDB's target descriptions
