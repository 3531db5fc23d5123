"""MIPS, 32 and 64 bits, both orders, with release 6."""

from .isa import ARCHES

__all__ = ["ARCHES"]
