"""Assembly text of AArch64. Its code is little-endian, whatever its data is."""

from __future__ import annotations

import re

from .._assembly import AssemblyText, CapstoneMode


def _register(name: str, bits: int) -> tuple[str, int]:
    """Return (name of the 64-bit register that has the named one, 0): w0 is in x0.

    The name is "" for XZR and WZR, which are always 0. `bits` is not used.
    """
    if name in ("xzr", "wzr"):
        return "", 0
    return re.sub(r"^w(?=\d|sp)", "x", name).replace("xsp", "sp"), 0


ARM64 = AssemblyText(capstone=CapstoneMode("ARM64", "ARM"), keystone=("ARM64", "LITTLE_ENDIAN"),
                     register=_register)
ROWS = {"arm64": ARM64, "arm64be": ARM64}
