"""Records the hits of events: a probe for each, and the ring that its hits go to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol

from ..core.probe import Kprobe, Kretprobe, Probe
from ..errors import BadArgument, EventError, KprobeError, Unsupported
from ..events import parse_events
from ..events._event import Event, Value, locate
from ..events._filter import parse_filter
from ..events._globs import many
from ..events._handler import handler
from ..events._siblings import check_sibling
from ..machine._base import Machine
from ..regs import Regs
from .info import EventInfo
from .ring import Ring, Row
from .trace import Trace

if TYPE_CHECKING:
    import pyarrow

RECORDS = 1 << 20  #: that are kept, where nobody says
CLOCKS: dict[str, Callable[[], int] | None] = {"counter": None, "host": time.monotonic_ns}


class Owner(Protocol):
    """The Kprobes."""

    machine: Machine

    def register(self, probe: Probe) -> None: ...
    def unregister(self, probe: Probe) -> None: ...
    def stack_trace(self, regs: Regs, limit: int = 64) -> list[int]: ...


class Live:
    """A ring as the source of a trace."""

    def __init__(self, infos: Sequence[EventInfo], ring: Ring) -> None:
        self.infos, self.ring, self.timed = infos, ring, ring.clock is not None
        self.tasks: Sequence[Any] = ring.tasks

    @property
    def lost(self) -> int:
        return self.ring.lost

    def __len__(self) -> int:
        return len(self.ring)

    def row(self, n: int) -> Row:
        return self.ring.row(n)

    def rows(self) -> Iterator[Row]:
        return self.ring.rows()

    def table(self, names: Callable[[int], str]) -> pyarrow.Table:
        from .columns import table_of_ring

        return table_of_ring(self.infos, self.ring, names)


class Recording:
    """Events that are recorded while it is entered: `with k.trace("p crc32 len=$arg3") as t`.

    Attributes:
        trace: what is recorded. events: the parsed definitions. probes: of them, while they are armed. skipped: (function, why) of
        those that a pattern names and that cannot be probed. armed: (event's name, probe) of all that ever were. told: for each event who
        is told of a hit's values, return address and stack at once, instead of recording it; empty: nobody.
    """

    def __init__(self, k: Owner, definitions: Sequence[str], *, stack: bool = False, records: int = RECORDS,
                 clock: str | Callable[[], int] = "counter", filter: str = "", exclude: Sequence[str] = ()) -> None:
        if not definitions:
            raise BadArgument("no event is given", hint='write one, as in k.trace("p crc32 len=$arg3")')
        if isinstance(records, bool) or not isinstance(records, int) or not 0 < records <= 1 << 32:
            raise BadArgument(f"records={records!r} is no number of records", hint="give 1 or more")
        if isinstance(clock, str) and clock not in CLOCKS:
            raise BadArgument(f"no clock {clock!r}", hint=f"there are: {', '.join(CLOCKS)}; or give a function")
        machine = k.machine
        self._k, self._stack, symbols = k, stack, machine.symbols
        self._exclude = list(exclude)
        self.skipped: list[tuple[str, str]] = []
        self.events = self._parse(definitions)
        self._filters = [parse_filter(filter, event, symbols) for event in self.events]
        infos = [EventInfo.of(event) for event in self.events]
        self._ring = Ring(infos, records, CLOCKS[clock] if isinstance(clock, str) else clock, stack)
        self.probes: list[Probe] = []
        self.armed: list[tuple[str, Probe]] = []
        self.told: list[Callable[[Any, int, Sequence[int]], None]] = []
        self._before = 0
        self.trace = Trace(Live(infos, self._ring), lambda address: locate(symbols, address), self._missed)

    def _parse(self, definitions: Sequence[str]) -> list[Event]:
        """The events, one for each function that a pattern names; of these, those that cannot be probed are left out."""
        machine, found = self._k.machine, list[Event]()
        self._many: list[Event] = []
        for text in definitions:
            pattern = many(text, machine)
            if pattern is None:
                found += parse_events([text], machine)
                continue
            for place, definition in pattern.texts:
                if any(fnmatchcase(place, glob) for glob in self._exclude):
                    continue
                try:
                    self._many += parse_events([definition], machine)
                except EventError as error:
                    self.skipped.append((place, error.reason))
            if not self._many:
                raise EventError("BAD_PROBE_ADDR", f"nothing that {pattern.pattern} names can be probed", pattern.text, pattern.text.index(" ") + 1)
        for n, event in enumerate(found):
            for other in found[:n]:
                if (event.group, event.name) == (other.group, other.name):
                    check_sibling(event, other)
        return [*found, *self._many]

    def __enter__(self) -> Trace:
        """Arm the events: all or none. Raises EventError (the place is refused)."""
        try:
            for number, event in enumerate(self.events):
                try:
                    self.probes.append(self._arm(event, number))
                    self.armed.append((event.name, self.probes[-1]))
                except EventError as error:
                    if event not in self._many:
                        raise
                    self.skipped.append((event.symbol or f"{event.target:#x}", error.reason))
        except BaseException:
            self.__exit__()
            raise
        return self.trace

    def __exit__(self, *exc: object) -> None:
        self._before += self._missed()
        probes, self.probes = self.probes, []
        for probe in probes:
            if probe.registered:
                self._k.unregister(probe)

    def _missed(self) -> int:
        return self._before + sum(missed(probe) for probe in self.probes)

    def _arm(self, event: Event, number: int) -> Probe:
        sink: Any = _Sink(self._writer(number))
        hit = handler(event, self._k.machine, sink, number, self._filters[number], (), Walker(self._k), self._stack)

        def enter(ri: Any, regs: Regs) -> None:
            ri.data["saved"] = event.enter(regs)

        place: dict[str, Any] = {"symbol_name": event.symbol, "offset": event.offset} if event.symbol else {"addr": event.target}
        probe = Kprobe(pre_handler=hit, **place) if event.kind == "p" else Kretprobe(
            handler=hit, entry_handler=enter if event.saves else None, maxactive=event.maxactive, **place)
        try:
            self._k.register(probe)
        except KprobeError as error:
            raise event.refused(error) from error
        return probe

    def _writer(self, number: int) -> Callable[[int, Any, Sequence[Value], int, Sequence[int]], None]:
        """What a hit goes to: the ring, or whoever wants to be told at once."""
        if not self.told:
            return self._ring.writer(number)
        tell = self.told[number]
        return lambda cpu, task, values, caller, stack: tell(values, caller, stack)


class _Sink:
    """What the handler of an event takes for the place of its records. words: as of a buffer of events."""

    limit, dropped = 1, 0

    def __init__(self, put: Callable[[int, Any, Sequence[Value], int, Sequence[int]], None]) -> None:
        self.words = [0, 1]
        self.rows = self

        def append(row: tuple[Any, ...]) -> None:
            put(row[3], row[4], row[2], row[5], row[6])

        self.append = append

    def __len__(self) -> int:
        return 0


class Walker:
    """Stacks of hits, where there are any to be had: else only the place of the hit."""

    enabled = True

    def __init__(self, k: Owner) -> None:
        self._k = k

    def stack_of(self, regs: Regs) -> tuple[int, ...]:
        """The stack of a hit."""
        try:
            return tuple(self._k.stack_trace(regs))
        except Unsupported:
            return (regs.pc,)


def missed(probe: Probe) -> int:
    """Hits of a probe that no handler saw."""
    rp: Any = probe
    return int(rp.nmissed + rp.entry_nmissed) if probe.family == "r" else int(rp.nmissed)
