"""TriCore."""

from .isa import ARCHES

__all__ = ["ARCHES"]
