"""Alpha, 64 bits."""

NAMES = ("alpha",)
MACHINES = (0x9026,)  # e_machine
