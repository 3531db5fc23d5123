"""The site table: address -> what of ours is there."""

from __future__ import annotations

import enum
from typing import Any

from attrs import frozen

Point = Any  # a Probepoint: that knows these rooms, and they know nothing of it


class Kind(enum.Enum):
    """What a trap at the address means."""

    PROBEPOINT = 0
    SLOT_END = 1
    TRAMPOLINE = 2
    SLOT = 3  # the start of a slot: never a trap, but faults there belong to the probepoint


@frozen
class Site:
    """An address of ours. `owner` is the probepoint (PROBEPOINT, SLOT, SLOT_END) or None (TRAMPOLINE)."""

    kind: Kind
    owner: Point


class SiteTable(dict[int, Site]):
    """Address (mode bits stripped) -> Site. A trap at an address that is not here is not ours."""

    def probepoint(self, addr: int) -> Point | None:
        """The probepoint at an address, or None."""
        site = self.get(addr)
        return site.owner if site is not None and site.kind is Kind.PROBEPOINT else None

    def between(self, start: int, end: int) -> list[Point]:
        """Probepoints in [start, end), by address. For short stretches: it looks at every address."""
        get, kind = self.get, Kind.PROBEPOINT
        return [site.owner for a in range(start, end) if (site := get(a)) is not None and site.kind is kind]
