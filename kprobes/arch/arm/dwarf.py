"""Arm in debug information."""

from __future__ import annotations

from attrs import evolve

from .._dwarf import AttributeTag, DwarfFacts, RealFlags

DOUBLES = {256 + n: f"d{n}" for n in range(32)}
#: GCC still writes the numbers that DWARF for the Arm architecture calls obsolete
SINGLES = {64 + n: f"s{n}" for n in range(32)}
#: Tag_ABI_VFP_args of the build attributes: AAPCS32's base variant, and that with VFP registers.
#: GCC's object files have no more; executables have EF_ARM_ABI_FLOAT_SOFT and _HARD as well
VFP_ARGS = AttributeTag(28, ".ARM.attributes", b"aeabi", low_texts=(4, 5))
ATTRIBUTE = RealFlags(0xFF, {0: "counted", 1: "halves"}, VFP_ARGS)
FLAGS = RealFlags(0x600, {0x200: "counted", 0x400: "halves"})
ARMEB = DwarfFacts(
    convention="aapcs32", real_flags=(ATTRIBUTE, FLAGS), variadic_reals="named", pairs_reversed=True
)
ARM = evolve(ARMEB, others=SINGLES | DOUBLES, first_real=64, reals="low", pairs_reversed=False)
ROWS = {"arm": ARM, "armeb": ARMEB,
        "cortexm": evolve(ARM, others=SINGLES | {256 + n: f"d{n}" for n in range(16)})}
