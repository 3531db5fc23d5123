"""Records the hits of events: a probe for each, and the ring that its hits go to.

A Recording is what a `with k.trace(...)` makes. (events/_recording.py is about single hits: those
that a machine records by itself, without a program.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any

from ..arguments import checked
from ..clocknames import INSTRUCTION_CLOCK
from ..core.probe import Probe
from ..errors import BadArgument, EventError, GuestFault, KprobeError, MachineBusy
from ..events import parse_event
from ..events._event import Event, locate
from ..events._filter import parse_filter
from ..events._globs import expand_pattern
from ..events._handler import Handler, RecordedPlace, handler
from ..events._parser import Parser
from ..events._place import EventOwner, add_to_semaphore, counts_of, lower_semaphore, probe_of
from ..events._siblings import check_sibling
from ..events._watchpoint import Watchpoint
from ..machine._base import Machine
from ..regs import Regs
from .batches import Batch, Row
from .clocks import OWN, clock_of, epoch_of
from .info import EventInfo
from .ring import RecordRing
from .stores import HitForwarder, IntoRing, Tell
from .trace import Trace

if TYPE_CHECKING:
    import pyarrow

    from .compiled import RecordingPrograms

RECORDS = 1 << 20  #: that are kept, where nobody says


def _source_line(machine: Machine, address: int) -> str:
    """Return the source line of an address, as DebugInfo.where() has it: `a.c:12`, with the
    functions that are inlined there; "": it is not known.
    """
    from ..debug.info import DebugInfo

    return DebugInfo(machine).where(address)


class Live:
    """A ring as the source of a trace that is still being recorded. Before each read, records that
    are elsewhere are moved into the ring.
    """

    def __init__(
        self, infos: Sequence[EventInfo], ring: RecordRing, clock: str, drain: Callable[[], None]
    ) -> None:
        """Make a source of a ring's records.

        Args:
            infos: the events.
            ring: the records.
            clock: the name of the clock that their times are by.
            drain: moves the records that programs have written into the ring; called before each
                read.
        """
        self.infos = infos
        self._ring = ring
        self.clock = clock
        self.epoch = epoch_of(clock)
        self._drain = drain

    @property
    def ring(self) -> RecordRing:
        """The ring; asking for it first moves the records that programs have written into it."""
        self._drain()
        return self._ring

    @property
    def tasks(self) -> Sequence[Any]:
        """The tasks that numbers in records stand for, by number."""
        return self.ring.tasks

    @property
    def lost(self) -> int:
        """Number of records that were overwritten, or that there was no room for."""
        return self.ring.lost

    def __len__(self) -> int:
        return len(self.ring)

    def row(self, n: int) -> Row:
        """Return the n-th oldest record."""
        return self.ring.row(n)

    def rows(self) -> Iterator[Row]:
        """Return an iterator of all records, the oldest first."""
        return self.ring.rows()

    def batches(self) -> Iterator[Batch]:
        """Return an iterator of all records in batches, the oldest first."""
        return self.ring.batches()

    def record_batches(
        self,
        names: Callable[[int], str],
        lines: Callable[[int], str],
        callers: Callable[[int], str],
    ) -> tuple[pyarrow.Schema, Iterator[pyarrow.RecordBatch]]:
        """Return the schema of the records, and an iterator of them as batches of Arrow.

        Args:
            names: a code address -> its name.
            lines: a code address -> its source line, "" where none is known.
            callers: a return address in a stack -> its name.

        Raises:
            Unsupported: pyarrow is not installed.
        """
        from .columns import batches_of_ring

        return batches_of_ring(self.infos, self.ring, self.clock, self.epoch, names, lines, callers)


@checked()
class Recording:
    """Records events from entering to leaving the `with` statement: `with k.trace("p crc32
    len=$arg3") as t`.

    Attributes:
        now: the function that tells the time of a record; None: records have none.
        trace: the records.
        events: the parsed definitions, one event for each function that a pattern names.
        probes: the probes of the events, while they are armed.
        skipped: (function, why) of each function that a pattern names and that cannot be probed.
        armed: (name of the event, probe) of all that were ever armed.
        told: for each event a function of (values, return address, stack) that gets each hit at
            once, and then no hit is recorded; empty, as at first: all hits are recorded. To be
            filled before the `with` statement is entered.
    """

    def __init__(
        self,
        k: EventOwner,
        definitions: Sequence[str],
        *,
        stack: bool = False,
        records: int = RECORDS,
        clock: str | Callable[[], int] = "counter",
        filter: str = "",
        exclude: Sequence[str] = (),
    ) -> None:
        """Parse the definitions; nothing is armed before the `with` statement is entered.

        Args:
            k: the Kprobes that registers the probes.
            definitions: as lines of Linux's kprobe_events; a pattern stands for many functions.
            stack: record the stack of each hit.
            records: how many are kept, 1 to 2**32; then the oldest are overwritten.
            clock: "counter", "host", "instructions", or a function that gives a number of 64 bits.
            filter: condition on arguments that a hit is recorded under; "": all are recorded.
            exclude: globs of functions that patterns do not stand for.

        Raises:
            BadArgument: there is no definition, no such clock, or `records` is out of range.
            EventError: a definition or the filter is wrong.
            Unsupported: the machine does not count instructions.
        """
        if not definitions:
            raise BadArgument(
                "no event is given", hint='write one, as in k.trace("p crc32 len=$arg3")'
            )
        if isinstance(records, bool) or not isinstance(records, int) or not 0 < records <= 1 << 32:
            raise BadArgument(f"records={records!r} is no number of records", hint="give 1 or more")
        machine = k.machine
        self.now = clock_of(machine, clock)
        self._clock = clock if isinstance(clock, str) else OWN
        self._stop_counting: Callable[[], None] | None = None
        self._looks: list[Event] = []
        self._k = k
        self._stack = stack
        symbols = machine.symbols
        self._exclude = [exclude] if isinstance(exclude, str) else list(exclude)
        self.skipped: list[tuple[str, str]] = []
        self.events = self._parse(definitions)
        self._filters = [parse_filter(filter, event, symbols) for event in self.events]
        infos = [EventInfo.of(event) for event in self.events]
        self._ring = RecordRing(infos, records, self.now, stack)
        self._compilable = not stack and self._clock != OWN
        self._programs: RecordingPrograms | None = None
        self._words: Any = [0, 1]
        self.probes: list[Probe | Watchpoint] = []
        self.armed: list[tuple[str, Probe | Watchpoint]] = []
        self.told: list[Tell] = []
        self._before = 0
        self.trace = Trace(
            Live(infos, self._ring, self._clock, self._drain),
            lambda address: locate(symbols, address),
            self._missed,
            partial(_source_line, k.machine),
            lambda address: locate(symbols, address, returns=True),
        )

    def _parse(self, definitions: Sequence[str]) -> list[Event]:
        """Return the events of the definitions, one for each function that a pattern names;
        functions that cannot be probed go to `skipped`, and those that are to be excluded are left
        out. The events of patterns come last, and are kept in `_many` as well.

        Raises:
            EventError: a definition is wrong, disagrees with another one of its name (patterns are
                not compared), or is a pattern that names nothing that can be probed.
        """
        machine = self._k.machine
        found = list[Event]()
        self._many: list[Event] = []
        for text in definitions:
            pattern = expand_pattern(text, machine)
            if pattern is None:
                found.append(parse_event(text, machine, self._k.original))
                continue
            before = len(self._many)
            first = None
            for place, definition in pattern.texts:
                if any(fnmatchcase(place, glob) for glob in self._exclude):
                    continue
                try:
                    parser = Parser(definition, machine, self._k.original, pattern.inside)
                    self._many.append(parser.event())
                except EventError as error:
                    first = first or pattern.original(error, definition)
                    self.skipped.append((place, error.reason))
            if len(self._many) == before:
                if first is not None:
                    raise first
                raise EventError(
                    "BAD_PROBE_ADDR",
                    f"nothing that {pattern.pattern} names can be probed",
                    pattern.text,
                    pattern.text.index(" ") + 1,
                )
        for n, event in enumerate(found):
            for other in found[:n]:
                if (event.group, event.name) == (other.group, other.name):
                    check_sibling(event, other)
        return [*found, *self._many]

    def __enter__(self) -> Trace:
        """Arm all events, or none, and return the trace, which grows with each hit.

        The semaphores of markers are raised, and the machine begins to count instructions where the
        clock goes by these. An error undoes all of this.

        Raises:
            EventError: a place cannot be probed. Functions that a pattern names go to `skipped`
                instead.
            MachineBusy: another thread runs the machine.
        """
        if self._programs is None and self._compilable and not self.told:
            from .compiled import RecordingPrograms

            programs = RecordingPrograms(
                self._k, self._ring, self._clock, self.events, self._filters
            )
            if programs.made or programs.others:
                self._programs = programs
                self._words = programs.buffer.words
        try:
            self._count()
            for number, event in enumerate(self.events):
                try:
                    self._look(event)
                    self.probes.append(self._arm(event, number))
                    self.armed.append((event.name, self.probes[-1]))
                except EventError as error:
                    if event not in self._many:
                        raise
                    self.skipped.append((event.function, error.reason))
        except BaseException:
            self.__exit__()
            raise
        return self.trace

    def __exit__(self, *exc: object) -> None:
        """Unregister all probes, lower the markers' semaphores, and detach programs. The trace
        stays, and its `missed` keeps what the probes have counted.

        Raises:
            MachineBusy: another thread runs the machine; the probes that are left stay, until this
                is called again.
        """
        removed = 0
        try:
            for probe in self.probes:
                if isinstance(probe, Watchpoint):
                    probe.remove()
                elif probe.registered:
                    self._k.unregister(probe)
                removed += 1
        finally:
            self._before += sum(counts_of(probe)[1] for probe in self.probes[:removed])
            del self.probes[:removed]
        while self._looks:
            lower_semaphore(self._k, self._looks.pop())
        if self._programs is not None:
            self._programs.detach()
        if self._stop_counting is not None:
            self._stop_counting()
            self._stop_counting = None

    def _count(self) -> None:
        """Have the machine count the guest's instructions, where the clock goes by these and it is
        not counting for this recording yet; else do nothing.
        """
        clock = self._k.machine.clock
        if self._clock == INSTRUCTION_CLOCK and clock is not None and self._stop_counting is None:
            self._stop_counting = clock.start()

    def _missed(self) -> int:
        """Return the number of hits that were not recorded because another probe was running, or a
        return probe had no instance left.
        """
        return self._before + sum(counts_of(probe)[1] for probe in self.probes)

    def _drain(self) -> None:
        """Move the records of programs into the ring."""
        if self._programs is not None:
            self._programs.drain()

    def _arm(self, event: Event, number: int) -> Probe | Watchpoint:
        """Arm one event, with its program where it has one, and return its probe, which the caller
        keeps. The semaphore of the event's marker, which _look() has raised, is lowered where it
        cannot be armed.

        Args:
            event: the event.
            number: its index in `events`.

        Raises:
            EventError: the place cannot be probed.
            MachineBusy: another thread runs the machine.
        """
        try:
            if self._programs is not None and number in self._programs.made:
                made = self._programs.arm(event, number)
                if made is not None:
                    return made
            if event.kind == "w":
                return self._k.watchpoint(
                    event.address, event.size, event.access, self._handler(event, number)
                )
            probe = probe_of(event, self._k.machine, self._handler(event, number))
            self._k.register(probe)
        except BaseException as error:
            lower_semaphore(self._k, self._looks.pop())
            # nothing is wrong with the event where the machine is busy
            if isinstance(error, KprobeError) and not isinstance(error, MachineBusy):
                raise event.refused(error) from error
            raise
        return probe

    def _look(self, event: Event) -> None:
        """Raise the semaphore of an event's marker, so that the guest knows it is traced.

        The event is noted, for __exit__() to lower it again. Without a semaphore nothing is changed
        in the guest.

        Args:
            event: an event that is about to be armed.

        Raises:
            EventError: the guest memory of the semaphore cannot be read or written.
        """
        try:
            add_to_semaphore(self._k, event, 1)
        except GuestFault as error:
            raise event.refused(error) from error
        self._looks.append(event)

    def _handler(self, event: Event, number: int) -> Handler:
        """Return the Python or machine handler of an event's hits.

        The handler puts records into the ring, or, where `told` is given, passes hits to the
        event's function.

        Args:
            event: the event.
            number: its index in `events`.
        """
        store = (
            HitForwarder(self.told[number])
            if self.told
            else IntoRing(self._ring, self._words, self._programs)
        )
        filter = self._filters[number]
        place = RecordedPlace(event, number, filter)
        plain = handler(place, self._k.machine, store, (), Walker(self._k), self._stack)
        if self._programs is not None and number in self._programs.others:
            return self._programs.recorder(number, filter, plain)
        return plain


class Walker:
    """Gives handlers of events the stack of a hit, as a tuple of addresses, innermost first.

    The first address is the place of the hit; where no more can be found it is the only one.

    Attributes:
        enabled: True, always: a trace's events are not switched off.
    """

    enabled = True

    def __init__(self, k: EventOwner) -> None:
        """Prepare. k: the Kprobes, which finds the stacks."""
        self._k = k

    @property
    def stack_of(self) -> Callable[[Regs], tuple[int, ...]]:
        """The function from the registers at a hit to its stack."""
        return self._k.kept_stack
