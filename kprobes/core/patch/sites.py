"""The site table: address -> what the library has there.

A probepoint is an address that has probes (patch/probepoint.py). A slot is memory of the library's
with the copy of a probed instruction.
"""

from __future__ import annotations

import enum
from bisect import insort
from typing import Any

from attrs import frozen

_STRETCH = 6  # log2 of the bytes whose probepoints SiteTable keeps in one list

Point = Any  # a Probepoint (not imported: that module imports this one)


class SiteKind(enum.Enum):
    """The kinds of sites: things of the library's that stand at an address."""

    PROBEPOINT = 0  # the breakpoint, or the jump
    SLOT_END = 1  # the trap behind a body in a slot
    TRAMPOLINE = 2  # the trap that followed calls return to
    SLOT = 3  # the start of a slot: no trap, but a fault there belongs to the probepoint


@frozen
class Site:
    """An address where the library has something.

    Attributes:
        kind: what.
        owner: its probepoint; None for TRAMPOLINE.
    """

    kind: SiteKind
    owner: Point


class SiteTable(dict[int, Site]):
    """Address (mode bits stripped) -> Site. A trap at an address without a site is the guest's."""

    def __init__(self) -> None:
        super().__init__()
        #: number of a stretch of 64 bytes -> addresses of the probepoints in it
        self._stretches: dict[int, list[int]] = {}

    def __setitem__(self, addr: int, site: Site) -> None:
        """Put a site at an address, in the place of one that is there already."""
        self.pop(addr, None)
        super().__setitem__(addr, site)
        if site.kind is SiteKind.PROBEPOINT:
            insort(self._stretches.setdefault(addr >> _STRETCH, []), addr)

    def __delitem__(self, addr: int) -> None:
        """Remove the site at an address. KeyError: there is none."""
        site = self[addr]
        super().__delitem__(addr)
        if site.kind is SiteKind.PROBEPOINT:
            stretch = self._stretches[addr >> _STRETCH]
            stretch.remove(addr)
            if not stretch:
                del self._stretches[addr >> _STRETCH]

    def pop(self, addr: int, default: Any = None) -> Any:
        """Remove an address; return its site, or `default` where it has none."""
        site = self.get(addr)
        if site is None:
            return default
        del self[addr]
        return site

    def probepoint(self, addr: int) -> Point | None:
        """Return the probepoint at an address, or None."""
        site = self.get(addr)
        return site.owner if site is not None and site.kind is SiteKind.PROBEPOINT else None

    def between(self, start: int, end: int) -> list[Point]:
        """Return the probepoints in [start, end), by address.

        Args:
            start: address of the first byte.
            end: address behind the last byte. The range should be short: every 64 bytes are looked
                up.
        """
        stretches = self._stretches
        found: list[Point] = []
        for number in range(start >> _STRETCH, ((end - 1) >> _STRETCH) + 1):
            if number in stretches:
                found += [self[addr].owner for addr in stretches[number] if start <= addr < end]
        return found
