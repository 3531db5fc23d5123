"""SuperH, from SH-1 to SH-4A."""

from .isa import ARCHES

__all__ = ["ARCHES"]
