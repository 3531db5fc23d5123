"""The architectures of this family."""

from . import ppc, ppc64

ARCHES = (*ppc.ARCHES, *ppc64.ARCHES)
