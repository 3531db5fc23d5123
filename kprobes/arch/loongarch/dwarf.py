"""LoongArch in debug information."""

from __future__ import annotations

from .._dwarf import DwarfFacts

FLOATS = {32 + n: f"f{n}" for n in range(32)}
LOONGARCH = DwarfFacts(
    others=FLOATS, first_real=32, reals="low", convention="flattened", widest_real=8,
    boxed=True, sign_extended=True, variadic_reals="word"
)
ROWS = {"loongarch64": LOONGARCH}
