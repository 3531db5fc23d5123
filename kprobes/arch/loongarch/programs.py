"""Programs compiled for LoongArch."""

from __future__ import annotations

from .._compiling import Compiling, Triple

ROWS = {"loongarch64": Compiling(triple=Triple("loongarch64-unknown-elf", "", "-relax"))}
