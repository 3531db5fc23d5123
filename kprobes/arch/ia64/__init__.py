"""Itanium, 64 bits."""

from .isa import ARCHES

__all__ = ["ARCHES"]
