"""PowerPC in debug information."""

from __future__ import annotations

from attrs import evolve

from .._dwarf import DwarfFacts, RealFlags

FLOATS = {32 + n: f"f{n}" for n in range(32)}
# a long double may be a pair of doubles
PPC = DwarfFacts(others={65: "lr", **FLOATS}, first_real=32, reals="double", long_double={})
#: Tag_GNU_Power_ABI_FP: hard double, and soft; with hard single, numbers of 8 bytes go elsewhere
FLAGS = RealFlags(0x3, {1: "registers", 2: "counted"}, variadic=True, attribute=4)
ROWS = {"ppc": evolve(PPC, pairs_reversed=True, convention="pairs", real_flags=FLAGS), "ppc64": PPC, "ppc64le": PPC}
