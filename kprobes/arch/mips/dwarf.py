"""MIPS in debug information."""

from __future__ import annotations

from attrs import evolve

from .._dwarf import DwarfFacts, RealFlags

FLOATS = {32 + n: f"f{n}" for n in range(32)}
#: Byte fp_abi of .MIPS.abiflags: double, soft, any (a CPU with registers of 32 or 64 bits), and two
#: of 64 bits.
_WAYS = {1: "halves", 3: "counted", 5: "single registers", 6: "registers", 7: "registers"}
O32 = RealFlags(0xFF, _WAYS, section=".MIPS.abiflags", at=7)
#: release 6 has registers of 64 bits only
O32_R6 = evolve(O32, ways={3: "counted", 5: "registers", 6: "registers", 7: "registers"})
N64 = evolve(O32, ways={1: "registers", 3: "counted"})
LITTLE = DwarfFacts(
    convention="slots", real_flags=(O32,), others=FLOATS, first_real=32, reals="word"
)
BIG = evolve(LITTLE, pairs_reversed=True)
LONG = DwarfFacts(
    convention="slots", real_flags=(N64,), others=FLOATS, first_real=32, reals="low",
    sign_extended=True, variadic_reals="word"
)
ROWS = {
    "mips": BIG,
    "mipsel": LITTLE,
    "mips32r6": evolve(BIG, real_flags=(O32_R6,), reals="low"),
    "mips32r6el": evolve(LITTLE, real_flags=(O32_R6,), reals="low"),
    **dict.fromkeys(("mips64", "mips64el", "mips64r6", "mips64r6el"), LONG),
}
