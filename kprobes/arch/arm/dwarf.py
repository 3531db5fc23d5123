"""Arm in debug information."""

from __future__ import annotations

from .._dwarf import DwarfFacts

ROWS = {"armeb": DwarfFacts(pairs_reversed=True)}
