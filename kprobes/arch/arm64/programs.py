"""Programs compiled for AArch64."""

from __future__ import annotations

from .._compiling import Compiling, Triple

#: pages may be guarded, and detours call programs by a register, so these begin with a landing pad
PADDED = '"branch-target-enforcement"="true"'
ROWS = {"arm64": Compiling(triple=Triple("aarch64-none-elf"), attributes=PADDED),
        "arm64be": Compiling(triple=Triple("aarch64_be-none-elf"), attributes=PADDED)}
