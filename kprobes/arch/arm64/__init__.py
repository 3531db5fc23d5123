"""AArch64."""

from .isa import ARCHES

__all__ = ["ARCHES"]
