"""Events of a trace whose hits run programs, or are recorded by the machine: Python is not asked
until somebody looks, and then their records go into the trace's ring.
"""

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
from ..events._handler import Handler, RecordedPlace
from ..events._layout import RecordLayout
from ..events._place import EventOwner, attached, probe_at
from ..events._program import EventProgram, RecordReader, compiled, needs_python, shape
from ..events._recording import described, machine_handler
from .ring import FIRST_FIELDS, Put, RecordRing

#: bytes for records of programs: those of a trace that takes more go through Python
MOST: Final = 1 << 28
_HEAD: Final = struct.Struct(FIRST_FIELDS)
#: where the event's number is in the second word of a record: see ring.FIRST_FIELDS
_EVENT: Final = 0 if sys.byteorder == "little" else 48


class RecordingPrograms:
    """The eBPF programs that record a trace's events, and the buffer that these write into.

    An event that no program can record (text, floating point, a watched place) has none, and its
    hits run Python.

    Attributes:
        buffer: the buffer that programs and the machine write records into.
        made: number of an event -> its program.
        others: number of an event without a program that the machine records by itself -> what
            reads its records.
    """

    def __init__(
        self,
        k: EventOwner,
        ring: RecordRing,
        clock: str,
        events: Sequence[Event],
        filters: Sequence[Filter | None],
    ) -> None:
        """Make the buffer, and compile a program for each event that can have one; nothing is
        attached yet.

        Where any event is recorded without Python, task 0 is put into the ring's tasks: all such
        records are of that task.

        Args:
            k: the Kprobes that the events are to be registered with.
            ring: the trace's ring, which drain() fills.
            clock: the name of the trace's clock.
            events: the trace's events.
            filters: each event's filter; None: all hits are recorded.
        """
        self._k = k
        self._ring = ring
        self._clock = clock
        timed = ring.clock is not None
        self._detach: list[Callable[[], None]] = []
        able = [
            n
            for n, event in enumerate(events)
            if event.kind != "w"
            and not any(arg.type.is_string or arg.type.is_float for arg in event.args)
        ]
        #: bytes of a record, all the same: where they are the ring's own, what was recorded is
        #: copied in one piece
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
        self._copied = self._size == ring.size and not any(
            ring.layouts[n].texted for n in (*self.made, *self.others)
        )
        self._take: dict[int, Callable[[int, bytes], None]] = {
            n: self._taker(made, ring.writer(n)) for n, made in (self.made | self.others).items()
        }
        if self._take:
            ring.task(0)  # the only one: its number is 0, too

    def _program(self, event: Event, filter: Filter | None) -> EventProgram | None:
        """Return the program that records an event; None: its hits need Python.

        Events of one kind and shape share a program, which is compiled once.

        Args:
            event: the event.
            filter: which hits are recorded; None: all.
        """
        machine = self._k.machine
        key = (event.kind, shape(event))
        if key not in self._known:

            def make() -> EventProgram:
                """Compile the program."""
                return compiled(
                    event,
                    machine,
                    self.buffer,
                    filter,
                    self._ring.clock is not None,
                    least=self._size,
                )

            self._known[key] = (
                None if needs_python(machine, event, filter, make, self._ticks) else make()
            )
        return self._known[key]

    def recorder(self, number: int, filter: Filter | None, plain: Handler) -> Handler:
        """Return the handler by which the machine itself records an event of `others`.

        Args:
            number: of the event, a key of `others`.
            filter: of its hits; None: all are recorded.
            plain: the handler in Python, which is returned where the machine cannot record this
                event.
        """
        reader = self.others[number]
        return machine_handler(
            RecordedPlace(reader.event, number << _EVENT, filter),
            self._k.machine,
            self.buffer,
            reader.layout,
            self._ring.clock,
            plain,
        )

    def _taker(self, made: RecordReader, put: Put) -> Callable[[int, bytes], None]:
        """Return a function that copies one record of a program into the ring, with 0 as its CPU
        and its task.

        Args:
            made: decodes the program's records.
            put: writes a record of the event into the ring.

        Returns:
            A function of (number of the record, its bytes).
        """
        read = made.reader()
        at = made.time

        def take(seq: int, data: bytes) -> None:
            """Copy a record into the ring. seq: its number; data: its bytes."""
            values, caller = read(data)
            put(
                seq, 0, 0, values, caller, (), struct.unpack_from("=Q", data, at)[0] if at else None
            )

        return take

    def arm(self, event: Event, number: int) -> Probe | None:
        """Attach the program of an event that is in `made`, and return its probe. detach() detaches
        the program again.

        Args:
            event: the event.
            number: its number, a key of `made`.

        Returns:
            The probe; None: nothing is attached, since a remote guest would stop at every hit,
            where a program gains nothing over Python.

        Raises:
            KprobeError: the place cannot be probed.
        """
        attachment = attached(self._k, self.made[number], event, number << _EVENT, self._ticks)
        if self._k.machine.guest_view is not None and any(attachment.why_python.values()):
            attachment.detach()
            return None
        self._detach.append(attachment.detach)
        return probe_at(attachment)

    @property
    def _ticks(self) -> str:
        """The name of the clock that programs read; "host" where the trace has no times."""
        return INSTRUCTION_CLOCK if self._clock == INSTRUCTION_CLOCK else HOST_CLOCK

    def detach(self) -> None:
        """Detach all programs. Records that they have written stay in the buffer."""
        for detach in self._detach:
            detach()
        self._detach = []

    def _whose(self, data: bytes) -> bool:
        """Return True where bytes in the buffer have the size and event number of a record of these
        programs.
        """
        return len(data) == self._size and _HEAD.unpack_from(data)[1] in self._take

    def drain(self) -> None:
        """Move what programs and the machine have recorded from the buffer into the trace's ring,
        and note in the ring's `elsewhere` how many records the buffer has lost.

        Records of a remote guest are fetched first.
        """
        self.buffer.fetch_from_guests()
        if self._copied and not self.buffer.ring.copies:
            self._ring.extend(self.buffer.ring.take(self._size))
        else:
            for data in self.buffer.taken(self._whose):
                seq, number, _, _ = _HEAD.unpack_from(data)
                self._take[number](seq, data)
        self._ring.elsewhere = self.buffer.lost
