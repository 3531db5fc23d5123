"""MIPS, 32 and 64 bits, both orders, with release 6."""

NAMES = ("mips", "mipsel", "mips64", "mips64el", "mips32r6", "mips32r6el", "mips64r6", "mips64r6el")
MACHINES = (8,)  # e_machine
