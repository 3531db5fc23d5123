"""Assembly text of SPARC."""

from __future__ import annotations

from .._assembly import AssemblyText, CapstoneMode

ROWS = {"sparc": AssemblyText(capstone=CapstoneMode("SPARC", "BIG_ENDIAN"),
                              keystone=("SPARC", "SPARC32", "BIG_ENDIAN")),
        "sparc64": AssemblyText(capstone=CapstoneMode("SPARC", "V9 BIG_ENDIAN"),
                                keystone=("SPARC", "SPARC64", "BIG_ENDIAN"))}
