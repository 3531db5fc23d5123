"""Assembly text of TriCore."""

from __future__ import annotations

from .._assembly import AssemblyText, CapstoneMode

ROWS = {"tricore": AssemblyText(capstone=CapstoneMode("TRICORE", "TRICORE_162"))}
