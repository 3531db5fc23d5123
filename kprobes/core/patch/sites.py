"""The site table: address -> what of ours is there."""

from __future__ import annotations

import enum
from bisect import insort
from typing import Any

from attrs import frozen

_STRETCH = 6  # log2 of the bytes that between() looks at together

Point = Any  # a Probepoint: that knows these rooms, and they know nothing of it


class SiteKind(enum.Enum):
    """Meanings of a trap at an address."""

    PROBEPOINT = 0
    SLOT_END = 1
    TRAMPOLINE = 2
    SLOT = 3  # the start of a slot: never a trap, but faults there belong to the probepoint


@frozen
class Site:
    """An address of ours. `owner` is the probepoint (PROBEPOINT, SLOT, SLOT_END) or None
    (TRAMPOLINE).
    """

    kind: SiteKind
    owner: Point


class SiteTable(dict[int, Site]):
    """Address (mode bits stripped) -> Site. A trap at an address that is not here is not ours."""

    def __init__(self) -> None:
        super().__init__()
        #: number of a stretch of 64 bytes -> addresses of the probepoints in it
        self._stretches: dict[int, list[int]] = {}

    def __setitem__(self, addr: int, site: Site) -> None:
        self.pop(addr, None)
        super().__setitem__(addr, site)
        if site.kind is SiteKind.PROBEPOINT:
            insort(self._stretches.setdefault(addr >> _STRETCH, []), addr)

    def __delitem__(self, addr: int) -> None:
        site = self[addr]
        super().__delitem__(addr)
        if site.kind is SiteKind.PROBEPOINT:
            stretch = self._stretches[addr >> _STRETCH]
            stretch.remove(addr)
            if not stretch:
                del self._stretches[addr >> _STRETCH]

    def pop(self, addr: int, default: Any = None) -> Any:
        """Remove an address. Returns its site, `default` where it has none."""
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
        """Probepoints in [start, end), by address. For short stretches: it looks at every 64 bytes.
        """
        stretches = self._stretches
        found: list[Point] = []
        for number in range(start >> _STRETCH, ((end - 1) >> _STRETCH) + 1):
            if number in stretches:
                found += [self[addr].owner for addr in stretches[number] if start <= addr < end]
        return found
