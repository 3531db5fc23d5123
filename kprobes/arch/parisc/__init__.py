"""PA-RISC, 32 bits."""

from .isa import ARCHES

__all__ = ["ARCHES"]
