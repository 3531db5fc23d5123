"""i386 and x86-64."""

from . import i386, x86_64

ARCHES = (*i386.ARCHES, *x86_64.ARCHES)

__all__ = ["ARCHES"]
