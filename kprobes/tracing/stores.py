"""The stores where handlers of a trace's events put what a hit was: into the ring, or to whoever is told at once."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .ring import Ring

if TYPE_CHECKING:
    from .compiled import Programs

Tell = Callable[[Any, int, Sequence[int]], None]  #: (values, return address, stack)


class IntoRing:
    """Records in a ring (a handler's Store).

    words: as of a buffer of events, one for all of a trace. programs: what they recorded before comes first.
    """

    def __init__(self, ring: Ring, words: Any, programs: Programs | None) -> None:
        self.words = words
        self._ring = ring
        self._programs = programs

    def settle(self) -> None:
        """Have the records that programs of a remote guest have written."""
        if self._programs is not None:
            self._programs.buffer.settle()

    def lines(self, cookie: int, cpu: str, stack: str, values: str, names: dict[str, Any]) -> list[str]:
        """Return the lines that put a record of event number `cookie` there: an event of numbers only is
        packed at once."""
        ring, layout = self._ring, self._ring.layouts[cookie]
        names |= {"ring": ring, "put": ring.writer(cookie), "pack": ring.formats[cookie].pack_into, "known": ring.known,
                  "clock": ring.clock, "error": struct.error}
        before = []
        if self._programs is not None:
            names["drain"], before = self._programs.drain, ["drain()"]
        if ring.clock is not None:
            before.append("now = clock()")
        slow = f"put(number, {cpu}, who, ({values}), back, {stack}{', now' * layout.clock})"
        if not layout.plain or ring.worded or ring.stacked:
            return [*before, slow]
        head = ", now" * layout.clock + ", back" * layout.returns + ", 0" * layout.words
        return [*before, "at = ring.at if ring.at < ring.end else ring.turn()",
                "try:",
                f"    pack(ring.buffer, at, number, {cookie}, {cpu}, known[who]{head}, {values})",
                f"    ring.at = at + {ring.size}",
                "except (error, KeyError):",  # a fault; a task that is new
                f"    {slow}"]


class Told:
    """Nothing is kept (a handler's Store)."""

    def __init__(self, tell: Tell) -> None:
        self.words, self._tell = [0, 1], tell

    def settle(self) -> None:
        """Nothing is kept."""

    def lines(self, cookie: int, cpu: str, stack: str, values: str, names: dict[str, Any]) -> list[str]:
        """Return the lines that tell of a hit."""
        names["tell"] = self._tell
        return [f"tell(({values}), back, {stack})"]
