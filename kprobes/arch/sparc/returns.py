"""Where functions of SPARC return to: behind the call's delay slot, or behind an UNIMP there.

Callers that expect a structure have that UNIMP.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

from ...errors import GuestFault
from ...regs import Regs
from .._base import Linkage, Returning
from .displace import NOP

# a caller of a function that returns a structure has UNIMP with its size, modulo 4096, behind the
# delay slot
UNIMP_SIZE = 0xFFF
# machine -> what such functions return to
_SKIPPED: WeakKeyDictionary[object, set[int]] = WeakKeyDictionary()


def structures(regs: Regs) -> tuple[Callable[[int], int], Callable[[int], int]]:
    """Make `skips` of version 8: how a call that may return a structure changes the return address.

    UNIMP is behind the call's delay slot, and the function returns behind that.

    Args:
        regs: the guest's registers, whose machine's text is read.

    Returns:
        (skip(return address by the call) -> the real one, unskip(the real one) -> by the call).
    """
    load, mask = regs.words()[0], regs.arch.mask
    skipped = _SKIPPED.setdefault(regs.machine, set())

    def skip(back: int) -> int:
        """Return where a function really returns to: behind an UNIMP at `back`, else `back` itself,
        also where that cannot be read.

        `back` is the address behind the call's delay slot. An address behind an UNIMP is noted for
        the machine, so that unskip() knows it.
        """
        try:
            if 0 < load(back) <= UNIMP_SIZE:
                skipped.add(back + 4)
                return back + 4
        except GuestFault:
            pass
        return back

    def unskip(target: int) -> int:
        """Return the address that skip() was given, from the one that it returned; any other
        address, and one before which no UNIMP stands any more, as it is.
        """
        if target not in skipped:
            return target
        try:
            return target - 4 if 0 < load(target - 4 & mask) <= UNIMP_SIZE else target
        except GuestFault:
            return target

    return skip, unskip


def linkage(bits: int) -> Linkage:
    """Make the linkage: o7 has the address of the call, and functions return 8 bytes behind it.

    A function that returns a structure comes to the instruction behind the trampoline's, and a pc
    write takes it behind the UNIMP.

    Args:
        bits: 32 (version 8) or 64.
    """
    skips = structures if bits == 32 else None

    def get(regs: Regs) -> int:
        """Return where the function returns to."""
        back: int = regs["o7"] + 8 & regs.arch.mask
        return skips(regs)[0](back) if skips else back

    def put(regs: Regs, target: int) -> None:
        """Make the function return to `target`."""
        regs["o7"] = target - 8 & regs.arch.mask

    # RETL
    return Linkage(get=get, set=put, register="o7", bias=8, back=bytes.fromhex("81c3e008") + NOP,
                   returning=Returning(skips=skips))
