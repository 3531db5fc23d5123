"""z/Architecture."""

from .isa import ARCHES

__all__ = ["ARCHES"]
