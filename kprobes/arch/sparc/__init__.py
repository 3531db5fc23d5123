"""SPARC, versions 8 and 9."""

from .isa import ARCHES

__all__ = ["ARCHES"]
