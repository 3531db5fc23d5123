"""PowerPC in debug information."""

from __future__ import annotations

from attrs import evolve

from .._calls import Results
from .._dwarf import AttributeTag, DwarfFacts, RealFlags, ResultFlags

FLOATS = {32 + n: f"f{n}" for n in range(32)}
# a long double may be a pair of doubles
PPC = DwarfFacts(others={65: "lr", **FLOATS}, first_real=32, reals="double", long_double={})
#: Tag_GNU_Power_ABI_FP: hard double, and soft; with hard single, numbers of 8 bytes go elsewhere
FLAGS = RealFlags(0x3, {1: "registers", 2: "counted"}, AttributeTag(4))
#: Tag_GNU_Power_ABI_Struct_Return: structures of at most 8 bytes in r3 and r4, and in memory
RESULTS = ResultFlags(AttributeTag(12), {1: Results(registers=8, memory=8), 2: Results(registers=0, memory=0)})
PPC32 = evolve(
    PPC,
    pairs_reversed=True,
    convention="pairs and addresses",
    real_flags=(FLAGS,),
    result_flags=RESULTS,
)
PPC64LE = evolve(PPC, convention="doublewords")
ROWS = {"ppc": PPC32, "ppc64": evolve(PPC64LE, pairs_reversed=True), "ppc64le": PPC64LE}
