"""Motorola 68000 and ColdFire."""

NAMES = ("m68k",)
MACHINES = (4,)  # e_machine
DESCRIBED = {"m68k": "m68k"}  # GDB's target descriptions
