"""Events of a trace whose hits run programs, or are recorded by the machine: Python is not asked until somebody looks,
and then their records go into the trace's ring."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from ..clocknames import HOST_CLOCK, INSTRUCTION_CLOCK
from ..core.probe import Probe
from ..events._buffer import Buffer
from ..events._event import Event
from ..events._filter import Filter
from ..events._handler import Handler
from ..events._layout import RecordLayout
from ..events._place import Attached, EventOwner, attached, probe_at
from ..events._program import EventProgram, RecordReader, compiled, needs_python, shape
from ..events._recording import described, recorder
from .ring import HEAD, Put, Ring

MOST: Final = 1 << 28  #: bytes for records of programs: those of a trace that takes more go through Python
_HEAD: Final = struct.Struct(HEAD)
#: where the event's number is in the second word of a record: see ring.HEAD
_EVENT: Final = 0 if sys.byteorder == "little" else 48


class Programs:
    """The programs of a trace's events, as far as there can be any.

    Attributes:
        buffer: where they record.
        made: event's number -> its program.
        others: the same of those that have none, and that the machine records by itself -> what reads their records.
    """

    def __init__(self, k: EventOwner, ring: Ring, clock: str, events: Sequence[Event],
                 filters: Sequence[Filter | None]) -> None:
        self._k = k
        self._ring = ring
        self._clock = clock
        timed = ring.clock is not None
        self._attached: list[Attached] = []
        able = [n for n, event in enumerate(events) if event.kind != "w"
                and not any(arg.type.style in ("string", "f") for arg in event.args)]
        #: bytes of a record, all the same: where they are the ring's own, what was recorded is copied in one piece
        self._size = max([ring.size, *(RecordLayout(events[n], timed).size for n in able)])
        room = ring.records * (8 + self._size)
        self.buffer = Buffer.of(k.machine, room if able and room <= MOST else 1)
        self.made: dict[int, EventProgram] = {}
        self.others: dict[int, RecordReader] = {}
        self._known: dict[Any, EventProgram | None] = {}
        for n in able if room <= MOST else ():
            made = self._program(events[n], filters[n])
            if made is not None:
                self.made[n] = made
            elif described(events[n], k.machine, filters[n]) is not None:
                layout = RecordLayout(events[n], timed, self._size)
                self.others[n] = RecordReader(events[n], layout, k.machine.symbols)
        self._copied = self._size == ring.size and not any(ring.layouts[n].texted for n in (*self.made, *self.others))
        self._take: dict[int, Callable[[int, bytes], None]] = {n: self._taker(made, ring.writer(n))
                                                               for n, made in (self.made | self.others).items()}
        if self._take:
            ring.task(0)  # the only one: its number is 0, too

    def _program(self, event: Event, filter: Filter | None) -> EventProgram | None:
        machine, key = self._k.machine, (event.kind, shape(event))
        if key not in self._known:
            def make() -> EventProgram:
                return compiled(event, machine.arch, machine.symbols, self.buffer, filter, self._ring.clock is not None,
                                least=self._size)

            self._known[key] = None if needs_python(machine, event, filter, make, self._ticks) else make()
        return self._known[key]

    def recorder(self, number: int, filter: Filter | None, plain: Handler) -> Handler:
        """Return the machine's handler for an event that is in `others`, or `plain`. See events._recording.recorder().
        """
        reader = self.others[number]
        return recorder(reader.event, self._k.machine, self.buffer, reader.layout, number << _EVENT, filter,
                        self._ring.clock, plain)

    def _taker(self, made: RecordReader, put: Put) -> Callable[[int, bytes], None]:
        read, at = made.reader(), made.time

        def take(seq: int, data: bytes) -> None:
            values, caller = read(data)
            put(seq, 0, 0, values, caller, (), struct.unpack_from("=Q", data, at)[0] if at else None)
        return take

    def arm(self, event: Event, number: int) -> Probe | None:
        """Register the probe of an event that is in `made`; None: a remote guest would stop there at every hit, as it
        does for Python."""
        attachment = attached(self._k, self.made[number], event, number << _EVENT, self._ticks)
        if self._k.machine.guest_view is not None and any(attachment.why_python.values()):
            attachment.detach()
            return None
        self._attached.append(attachment)
        return probe_at(attachment)

    @property
    def _ticks(self) -> str:
        """The programs' clock."""
        return INSTRUCTION_CLOCK if self._clock == INSTRUCTION_CLOCK else HOST_CLOCK

    def detach(self) -> None:
        """Detach the programs: they run no more."""
        attached, self._attached = self._attached, []
        for each in attached:
            each.detach()

    def _whose(self, data: bytes) -> bool:
        """Return True where one of the programs may have written a record."""
        return len(data) == self._size and _HEAD.unpack_from(data)[1] in self._take

    def drain(self) -> None:
        """Put what was recorded into the trace's ring."""
        self.buffer.settle()
        if self._copied and not self.buffer.ring.copies:
            self._ring.extend(self.buffer.ring.take(self._size))
        else:
            for data in self.buffer.taken(self._whose):
                seq, number, _, _ = _HEAD.unpack_from(data)
                self._take[number](seq, data)
        self._ring.elsewhere = self.buffer.lost
