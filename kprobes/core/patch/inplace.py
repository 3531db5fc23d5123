"""Probepoints whose instruction is its own call site: nothing is patched, and no jump leads away
and back.

For programs alone, where the machine can do it and the guest cannot write the text; and only while
there is no other call site, as they make each other slower.
"""

from __future__ import annotations

from collections.abc import Callable

from .detour import Detour
from .probepoint import Probepoint
from .rooms import Rooms


class InPlace:
    """The probes that stay in place.

    Attributes:
        points: probepoint -> the function that ends its call site.
    """

    def __init__(self, rooms: Rooms) -> None:
        self._rooms = rooms
        self.points: dict[Probepoint, Callable[[], None]] = {}

    def take(self, point: Probepoint) -> Detour | None:
        """Return the instruction as its own detour: the bytes that are written are those that stand
        there. None: the instruction cannot be a call site, handlers other than programs are at it,
        the guest may write it, or there is another call site.
        """
        insn, rooms = point.insn, self._rooms
        if (
            not point.programs
            or insn.simulate is not None
            or insn.repeats
            or len(rooms.called) > len(self.points)
            or rooms.text.writes.may_write(insn.addr, insn.next)
        ):
            return None
        end = rooms.sites_in_place.serve_here(insn.addr, point.programs)
        if end is None:
            return None
        self.points[point] = end
        return Detour(call=insn.addr, buffer=None, jump=insn.raw, size=insn.size)

    def unfit(self, point: Probepoint) -> bool:
        """Return True for a probepoint that is served in place and whose probes have changed."""
        return point in self.points and bool(point.active) and not point.programs

    def leave(self, point: Probepoint) -> bool:
        """Serve a probepoint in place no more; True where it was served so."""
        end = self.points.pop(point, None)
        if end is not None:
            end()
        return end is not None
