"""Assembly text of z/Architecture."""

from __future__ import annotations

from .._assembly import AssemblyText, CapstoneMode

ROWS = {"s390x": AssemblyText(capstone=CapstoneMode("SYSZ", "BIG_ENDIAN"),
                              keystone=("SYSTEMZ", "BIG_ENDIAN"))}
