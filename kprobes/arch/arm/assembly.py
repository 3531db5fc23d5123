"""Assembly text of Arm's 32-bit processors. Their code is little-endian, whatever their data is."""

from __future__ import annotations

from .._assembly import AssemblyText, CapstoneMode

ARM = CapstoneMode("ARM", "ARM", "THUMB")
ROWS = {"arm": AssemblyText(capstone=ARM, keystone=("ARM", "ARM")),
        "armeb": AssemblyText(capstone=ARM),
        "cortexm": AssemblyText(capstone=CapstoneMode("ARM", "MCLASS", "THUMB"))}
