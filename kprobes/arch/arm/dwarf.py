"""Arm in debug information."""

from __future__ import annotations

from attrs import evolve

from .._dwarf import DwarfFacts, RealFlags

DOUBLES = {256 + n: f"d{n}" for n in range(32)}
#: EF_ARM_ABI_FLOAT_SOFT and EF_ARM_ABI_FLOAT_HARD; AAPCS32, 6.1.2
FLAGS = RealFlags(0x600, {0x200: "counted", 0x400: "halves"}, variadic=False)
PAIRS = DwarfFacts(convention="pairs", real_flags=FLAGS)
ARM = evolve(PAIRS, others=DOUBLES, first_real=256, reals="low")
ROWS = {"arm": ARM, "armeb": evolve(PAIRS, pairs_reversed=True),
        "cortexm": evolve(ARM, others={256 + n: f"d{n}" for n in range(16)})}
