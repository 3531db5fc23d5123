"""Probepoints whose instruction is its own call site: no patch, no jump away and back.

At a call site the machine runs programs (compiled handlers) or calls the core. This is for programs
alone, where the machine can serve them so and the guest cannot write the text; and only while there
are no other call sites, since the two make each other slower.
"""

from __future__ import annotations

from collections.abc import Callable

from .detour import Detour
from .probepoint import Probepoint
from .rooms import Rooms


class InPlace:
    """The probepoints that are served in place.

    Attributes:
        points: probepoint -> the function that ends its call site.
    """

    def __init__(self, rooms: Rooms) -> None:
        """Begin without probepoints.

        Args:
            rooms: the parts of the Kprobes.
        """
        self._rooms = rooms
        self.points: dict[Probepoint, Callable[[], None]] = {}

    def take(self, point: Probepoint) -> Detour | None:
        """Make the instruction of a probepoint its own call site, if possible.

        Args:
            point: the probepoint. Where this is possible, its programs run there from now on, and
                it is noted in `points`.

        Returns:
            A detour that stands for that: its jump is the instruction itself, so the bytes that are
            written are those that are there. None: the instruction cannot be a call site, a handler
            that is no program is there, the guest may write the text, or there is another call
            site.
        """
        insn = point.insn
        rooms = self._rooms
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
        """Return True if a probepoint is served in place, but has a handler now that is no
        program.
        """
        return point in self.points and bool(point.active) and not point.programs

    def leave(self, point: Probepoint) -> bool:
        """End serving a probepoint in place.

        Args:
            point: any probepoint.

        Returns:
            True where it was served in place; False: nothing was done.
        """
        end = self.points.pop(point, None)
        if end is not None:
            end()
        return end is not None
