"""z/Architecture."""

NAMES = ("s390x",)
MACHINES = (22,)  # e_machine
