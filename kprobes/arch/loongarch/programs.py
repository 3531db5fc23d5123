"""Programs compiled for LoongArch."""

from __future__ import annotations

from .._compiling import Compiling, Triple

# HAZARD: with vectors, LLVM 22 makes vectors of neighbouring loads and stores, and fails over them.
ROWS = {"loongarch64": Compiling(triple=Triple("loongarch64-unknown-elf", "", "-relax,-lsx,-lasx"))}
