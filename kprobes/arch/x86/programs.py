"""Programs compiled for i386 and x86-64."""

from __future__ import annotations

from .._compiling import Compiling, Triple

ROWS = {"x86_64": Compiling(triple=Triple("x86_64-unknown-none-elf")),
        "i386": Compiling(triple=Triple("i686-unknown-none-elf"))}
