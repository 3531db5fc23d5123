"""Motorola 68000 and ColdFire."""

NAMES = ("m68k",)
MACHINES = (4,)  # e_machine
