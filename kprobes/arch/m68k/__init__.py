"""Motorola 68000 and ColdFire."""

from .isa import ARCHES

__all__ = ["ARCHES"]
