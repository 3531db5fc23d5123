"""Programs compiled for PowerPC."""

from __future__ import annotations

from .._compiling import Compiling, Triple

# HAZARD: with vectors, LLVM 22 makes vectors of neighbouring loads and stores, and fails over them.
ROWS = {
    "ppc": Compiling(triple=Triple("powerpc-unknown-elf")),
    "ppc64": Compiling(triple=Triple("powerpc64-unknown-elf"), described=True),
    "ppc64le": Compiling(triple=Triple("powerpc64le-unknown-elf", "", "-altivec,-vsx",
                                       unused=frozenset({250, 252}))),  # REL16_LO, _HA: a TOC pointer
}
