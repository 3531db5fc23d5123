"""z/Architecture in debug information."""

from __future__ import annotations

from .._dwarf import DwarfFacts

ROWS = {"s390x": DwarfFacts(general=16, call_frame=160)}
