"""Stores, where handlers of a trace's events put hits: into the ring, or to a listener at once."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .ring import RecordRing

if TYPE_CHECKING:
    from .compiled import RecordingPrograms

Tell = Callable[[Any, int, Sequence[int]], None]  #: (values, return address, stack)


class IntoRing:
    """Puts the records of a trace's events into its ring. It is a Store of events._handler.

    Attributes:
        words: two words, SEQ and ON of events._layout: the number of records so far, and whether
            any are taken; one pair for all events of a trace.
    """

    def __init__(self, ring: RecordRing, words: Any, programs: RecordingPrograms | None) -> None:
        """Prepare.

        Args:
            ring: takes the records.
            words: the pair of words; with programs, the one in their memory.
            programs: the trace's programs, whose earlier records go into the ring first; None:
                there are none.
        """
        self.words = words
        self._ring = ring
        self._programs = programs

    def fetch_from_guests(self) -> None:
        """Fetch the records that programs of a remote guest have written."""
        if self._programs is not None:
            self._programs.buffer.fetch_from_guests()

    def lines(
        self, cookie: int, cpu: str, stack: str, values: str, names: dict[str, Any]
    ) -> list[str]:
        """Return lines of Python that put a record of the event with number `cookie` into the ring.

        Where an event has nothing but numbers, and no event of the ring has texts or call stacks,
        they pack the record at once, and call the slower writer only for a fault or a new task.

        The lines stand in the code of an event's handler, and use its variables `number` (of the
        record), `who` (the task) and `back` (the caller).

        Args:
            cookie: number of the event.
            cpu: an expression for the processor.
            stack: an expression for the stack.
            values: an expression for the values, without parentheses.
            names: takes the objects that the lines use, by name.
        """
        ring, layout = self._ring, self._ring.layouts[cookie]
        names |= {
            "ring": ring,
            "put": ring.writer(cookie),
            "pack": ring.formats[cookie].pack_into,
            "known": ring.known,
            "clock": ring.clock,
            "error": struct.error,
        }
        before = []
        if self._programs is not None:
            names["drain"], before = self._programs.drain, ["drain()"]
        if ring.clock is not None:
            before.append("now = clock()")
        slow = f"put(number, {cpu}, who, ({values}), back, {stack}{', now' * layout.clock})"
        if not layout.plain or ring.worded or ring.stacked:
            return [*before, slow]
        head = ", now" * layout.clock + ", back" * layout.has_caller + ", 0" * layout.head.words
        return [
            *before,
            "at = ring.at if ring.at < ring.end else ring.turn()",
            "try:",
            f"    pack(ring.buffer, at, number, {cookie}, {cpu}, known[who]{head}, {values})",
            f"    ring.at = at + {ring.size}",
            "except (error, KeyError):",  # a fault; a task that is new
            f"    {slow}",
        ]


class HitForwarder:
    """Passes the values of hits on to a function at once, and keeps nothing. It is a Store of
    events._handler.

    Attributes:
        words: two words, as those of IntoRing.
    """

    def __init__(self, tell: Tell) -> None:
        """Prepare. tell: called at each hit with its values, caller and stack."""
        self.words = [0, 1]
        self._tell = tell

    def fetch_from_guests(self) -> None:
        """Do nothing, as nothing is kept."""

    def lines(
        self, cookie: int, cpu: str, stack: str, values: str, names: dict[str, Any]
    ) -> list[str]:
        """Return a line of Python that calls the function with a hit's values, caller and stack.

        The line stands in the code of an event's handler, and uses its variable `back` (the
        caller).

        Args:
            cookie: the event's number; not used.
            cpu: expression for the processor; not used.
            stack: expression for the stack.
            values: expressions for the arguments' values, with commas between.
            names: names that the generated code uses -> objects; gets `tell`.
        """
        names["tell"] = self._tell
        return [f"tell(({values}), back, {stack})"]
