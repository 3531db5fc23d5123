"""RISC-V, 32 and 64 bits."""

from .isa import ARCHES

__all__ = ["ARCHES"]
