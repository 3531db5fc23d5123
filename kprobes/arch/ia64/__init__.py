"""Itanium, 64 bits."""

NAMES = ("ia64",)
MACHINES = (50,)  # e_machine
