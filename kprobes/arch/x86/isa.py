"""The architectures of this family."""

from . import i386, x86_64

ARCHES = (*i386.ARCHES, *x86_64.ARCHES)
