"""Arm, 32 bits: A32 and Thumb."""

NAMES = ("arm", "armeb", "cortexm")
MACHINES = (40,)  # e_machine
DESCRIBED = {"arm": "arm"}  # GDB's target descriptions
