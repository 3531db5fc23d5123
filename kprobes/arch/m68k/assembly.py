"""Assembly text of m68k."""

from __future__ import annotations

from .._assembly import AssemblyText, CapstoneMode

ROWS = {"m68k": AssemblyText(capstone=CapstoneMode("M68K", "M68K_040 BIG_ENDIAN"))}
