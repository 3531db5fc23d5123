"""Arm, 32 bits: A32 and Thumb."""

from .isa import ARCHES

__all__ = ["ARCHES"]
