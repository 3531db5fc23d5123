"""PowerPC, 32 and 64 bits."""

from . import ppc, ppc64

ARCHES = (*ppc.ARCHES, *ppc64.ARCHES)

__all__ = ["ARCHES"]
