"""z/Architecture in debug information."""

from __future__ import annotations

from .._dwarf import DwarfFacts

#: floating-point registers from 16 on
FLOATS = (0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15)
NUMBERS = {16 + n: f"f{number}" for n, number in enumerate(FLOATS)}
S390X = DwarfFacts(
    general=16,
    call_frame=160,
    others=NUMBERS,
    first_real=16,
    reals="high",
    convention="small values",
    variadic_reals="named",
)
ROWS = {"s390x": S390X}
