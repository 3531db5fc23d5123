"""Armed events: probes whose hits become records, by a program where that can be, else by
Python.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import islice

from ..arguments import checked
from ..core.probe import Probe
from ..errors import BadLocation, EventError, KprobeError, MachineBusy
from ..notebook import table
from ..regs import Regs
from ..symbols import Symbols
from ._buffer import Buffer
from ._counting import Counts, why_not
from ._event import Event
from ._filter import Filter, parse_filter
from ._handler import Handler, RecordedPlace, handler
from ._hist import Histogram, syscall_names
from ._layout import RecordLayout
from ._place import EventOwner, EventPlace, probe_of
from ._program import EventProgram, RecordReader, compiled, needs_python, shape
from ._record import Record
from ._recording import machine_handler
from ._triggers import Triggers


@checked("__init__", "add")
class TraceEvent:
    """An armed event: one name, one kind, and the same arguments, at one place or many.

    Iterating gives its records, oldest first. As a context manager it is removed at the end.

    Attributes:
        name: as defined.
        group: as defined; "kprobes" where the definition has none.
        kind: "p" (probe), "r" (return probe) or "w" (watchpoint).
        places: the places where it is armed.
        buffer: the buffer of its records, which other events share.
        skipped: (place, reason) of functions that its pattern names and that cannot be probed.
        find: gives an event by name, for triggers that switch it; None: there is none.
        named: gives a histogram by name, which hist triggers of that name share; None: there is
            none.
    """

    def __init__(
        self,
        owner: EventOwner,
        buffer: Buffer,
        definitions: Sequence[Event],
        *,
        enabled: bool = True,
        filter: str = "",
        stack: bool = False,
        lenient: bool = False,
        gone: Callable[[TraceEvent], None] = lambda event: None,
        find: Callable[[str], TraceEvent | None] = lambda name: None,
        named: Callable[[str], Histogram | None] = lambda name: None,
    ) -> None:
        """Arm an event at all its places.

        Args:
            owner: the Kprobes that registers the probes.
            buffer: where records go.
            definitions: one for each place, of the same name, kind and arguments.
            enabled: record hits from the beginning.
            filter: which hits are recorded, in ftrace's language; "": all.
            stack: records have the call stack of their hit.
            lenient: skip places that are refused, as long as there is another.
            gone: called once, when the event is removed.
            find: (name of an event, "GROUP/NAME") -> that event, or None where there is none.
            named: (name of a histogram) -> that histogram, or None where there is none.

        Raises:
            EventError: the filter is wrong, or a place is refused. Then nothing is armed.
            MachineBusy: another thread runs the machine. Nothing is armed.
        """
        first = definitions[0]
        self.name = first.name
        self.group = first.group
        self.kind = first.kind
        self._owner = owner
        self.buffer = buffer
        self._stack = stack
        self._recording = enabled
        self.find = find
        self.named = named
        self._written = Triggers(self)
        self._triggers = self._written.all
        self._filter: Filter | None = parse_filter(filter, first, owner.machine.symbols)
        self.places, self._all = list[EventPlace](), list[EventPlace]()
        self.skipped: list[tuple[str, str]] = []
        self._why = ""
        self._made: dict[Hashable, EventProgram] = {}
        self._counts: Counts | None = None
        self._removed = False
        self._gone = gone
        self.add(definitions, lenient)

    # --- what it is

    @property
    def definition(self) -> Event:
        """The definition of its first place."""
        return self.places[0].definition

    @property
    def number(self) -> int:
        """The event's number among the events of its buffer, from 1: ID in its file `format`."""
        return self._all[0].cookie + 1

    @property
    def hits(self) -> int:
        """The number of hits at its places, whether the filter kept them or not."""
        return sum(place.counts()[0] for place in self.places)

    @property
    def missed(self) -> int:
        """The number of hits that were not served.

        Another probe's handler was running, or too many calls of the function were being followed.
        """
        return sum(place.counts()[1] for place in self.places)

    @property
    def why_python(self) -> str:
        """Why hits at some place are recorded by Python, as one clause; "" where a program records
        all.
        """
        return self._why or next((place.why for place in self.places if place.why), "")

    @property
    def enabled(self) -> bool:
        """Whether hits are recorded. Triggers act in either case.

        Setting it raises BadLocation where the event is removed, EventError where a place cannot be
        armed any more.
        """
        return self._recording and not self._removed

    @enabled.setter
    def enabled(self, on: bool) -> None:
        """Record hits from now on, or do not; probes that nothing needs are disabled.

        Raises:
            EventError: a place cannot be armed any more; the others are.
            BadLocation: the event is removed.
            MachineBusy: another thread runs the machine; nothing has changed.
        """
        self._check()
        before = self._recording
        self._recording = bool(on)
        try:
            self._follow_recording(self._recording)
        except MachineBusy:
            self._recording = before
            self._record()
            raise

    def _follow_recording(self, on: bool) -> None:
        """Arm or disable the probes of all places, now that recording was switched.

        Args:
            on: True: hits are recorded.

        Raises:
            EventError: a place cannot be armed any more; the others are.
            MachineBusy: another thread runs the machine; no probe was changed.
        """
        if self.kind == "w" or (
            on and not self._why and not all(place.compiled or place.why for place in self.places)
        ):
            self._rearm()
        elif self.kind != "w":
            self._switch()

    @property
    def filter(self) -> str:
        """The filter: which hits are recorded, in ftrace's language; "" for all.

        Setting it to "" or "0" clears it, and arms all places again. EventError where it is wrong,
        and then it stays as it was; or where a place cannot be armed any more.
        """
        return "" if self._filter is None else self._filter.text

    @filter.setter
    def filter(self, text: str) -> None:
        """Set the filter, and arm all places again with it; "": all hits are recorded.

        Nothing is done where there was no filter and there is to be none.

        Raises:
            EventError: the filter is wrong, and the old one stays; or a place cannot be armed any
                more.
            BadLocation: the event is removed.
            MachineBusy: another thread runs the machine.
        """
        self._check()
        before = self._filter
        self._filter = parse_filter(text, self.definition, self._owner.machine.symbols)
        if before is not self._filter:
            try:
                self._rearm()
            except MachineBusy:  # before anything has changed
                self._filter = before
                raise

    def trigger(self, text: str) -> TraceEvent:
        """Add a trigger, as ftrace writes them, or remove one by `!` and its text.

        Args:
            text: for example "traceoff:1 if len > 3", "hist:keys=len.log2:sort=hitcount".

        Returns:
            The event itself.

        Raises:
            EventError: the trigger is wrong, there already (EEXIST), or not there to be removed
                (ENOENT); or a place cannot be armed any more.
            BadLocation: the event is removed.
            MachineBusy: another thread runs the machine.
        """
        self._check()
        before = bool(self._triggers)
        was = self._why
        if self._written.write(text) and not (
            before and self._triggers and was and self._refused()
        ):
            self._rearm()
        # another one
        if was and self._refused():
            self._why = self._mode_of([place.definition for place in self.places])
        return self

    @property
    def triggers(self) -> list[str]:
        """The triggers, each as the text that ftrace prints."""
        return [trigger.text for trigger in self._triggers]

    @property
    def hists(self) -> list[Histogram]:
        """The histograms of its hist triggers."""
        return [trigger for trigger in self._triggers if isinstance(trigger, Histogram)]

    @property
    def hist(self) -> Histogram:
        """The first of `hists`. BadLocation where there is none."""
        if not self.hists:
            raise BadLocation(
                f"event {self.name} has no histogram", hint='add one: .trigger("hist:keys=FIELD")'
            )
        return self.hists[0]

    @property
    def symbols(self) -> Symbols:
        """The symbols of its machine."""
        return self._owner.machine.symbols

    def syscalls(self) -> Callable[[int], str] | None:
        """Return the function from a system call's number to its name.

        None: the guest's symbols have no table of system calls.
        """
        return syscall_names(self._owner.machine)

    def remove(self) -> None:
        """Remove the event's probes; its records and counters stay. The table of events that has it
        forgets it.

        Removing an event again has no effect.

        Raises:
            MachineBusy: another thread runs the machine; the event stays armed.
        """
        for place in self.places:
            self._drop(place)
        if not self._removed:
            self._removed = True
            self._counting(False)
            self._gone(self)

    def __iter__(self) -> Iterator[Record]:
        """Yield the event's records that are in the buffer, oldest first."""
        mine = {place.cookie: place for place in self._all}
        for row in list(self.buffer.pull()):
            if row[1] in mine:
                yield mine[row[1]].record(row)

    def __enter__(self) -> TraceEvent:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()

    def __str__(self) -> str:
        return "\n".join(str(place.definition) for place in self.places)

    def _repr_html_(self) -> str:
        """Return the first 20 records as a table of HTML, for notebooks."""
        rows = [
            (r.seq, r.cpu, r.task, " ".join(f"{name}={value}" for name, value in r.args.items()))
            for r in islice(self, 20)
        ]
        return table(repr(self)[1:-1], ("seq", "cpu", "task", "arguments"), rows)

    def __repr__(self) -> str:
        where = (
            self.definition
            if len(self.places) == 1
            else f"{self.kind}:{self.group}/{self.name} at {len(self.places)} places"
        )
        state = ""
        if not self.enabled:
            state = ", removed" if self._removed else ", disabled"
        state += f"; in Python: {self.why_python}" * bool(self.why_python)
        return f"<TraceEvent {where}: {self.hits} hits, {self.missed} missed{state}>"

    # --- its places

    def add(self, definitions: Sequence[Event], lenient: bool = False) -> None:
        """Arm the event at more places, and add these to `places`.

        Args:
            definitions: one for each place.
            lenient: skip places that are refused, and note them in `skipped`; the last one is not
                skipped where no other was armed.

        Raises:
            EventError: a place was refused. Then none of these places is armed.
            MachineBusy: another thread runs the machine; none of these places is armed.
        """
        before = (self._why, list(self.skipped))
        done = list[EventPlace]()
        self._why = self._why or self._mode_of(definitions)
        try:
            for definition in definitions:
                place = EventPlace(definition, self.buffer)
                try:
                    self._arm(place)
                except EventError as error:
                    if not lenient or (definition is definitions[-1] and not done):
                        raise
                    self.skipped.append((definition.symbol or hex(definition.target), error.reason))
                    continue
                done.append(place)
        except BaseException:
            self._why, self.skipped[:] = before
            for place in done:
                self._drop(place)
            raise
        self.places += done
        self._all += done

    def leave(self, places: Sequence[EventPlace]) -> None:
        """Disarm some of the event's places, and take them out of `places` and of the counts.

        Args:
            places: which of the event's places.

        Raises:
            MachineBusy: another thread runs the machine; the place that it is raised at, and those
                behind, stay.
        """
        for place in places:
            self._drop(place)
            self.places.remove(place)

    def _mode_of(self, definitions: Sequence[Event]) -> str:
        """Return why the event's hits go through Python, as one clause: because those of one place
        do; "" where a program can do it at all places.

        Places may fetch different values, as `$arg*` does of functions that share a name.

        Args:
            definitions: one for each place.
        """
        kinds = {shape(definition): definition for definition in reversed(definitions)}
        return next(filter(None, map(self._mode, reversed(kinds.values()))), "")

    def _mode(self, definition: Event) -> str:
        """Return why hits of a definition go through Python, as one clause; "" where a program can
        do it.
        """
        machine = self._owner.machine
        if self.kind == "w":
            return "accesses to memory are reported to Python"
        if self._stack:
            return "records have stacks"
        return self._refused() or needs_python(
            machine, definition, self._filter, lambda: self._program(definition)
        )

    def _refused(self) -> str:
        """Return why the event's triggers need Python, as one clause; "" where a program can do
        them all.
        """
        if len(self.hists) < len(self._triggers):
            return "triggers are Python's"
        return next(filter(None, map(why_not, self.hists)), "")

    def _program(self, definition: Event) -> EventProgram:
        """Return the program of a definition; compile it where that has not been done. Definitions
        that fetch the same words share one.

        Raises:
            ProgramError: only Python can record its hits.
        """
        key = shape(definition)
        made = self._made.get(key)
        if made is None:
            machine = self._owner.machine
            made = self._made[key] = compiled(
                definition,
                machine,
                self.buffer,
                self._filter,
                counts=self._counts,
            )
        return made

    def _arm(self, place: EventPlace) -> None:
        """Register the probe of a place, with a program where that can be, else with a handler.

        The semaphore of the place's marker is counted up while hits are recorded or there are
        triggers, and down again where an error is raised. Without either, a probe is registered as
        disabled, and a watchpoint is not set. `place.probe` becomes the probe or watchpoint;
        `compiled` and `why` are set, too.

        Raises:
            EventError: the registration was refused.
            MachineBusy: another thread runs the machine.
        """
        definition = place.definition
        wanted = self._recording or bool(self._triggers)
        place.compiled = False
        place.why = ""
        try:
            place.set_semaphore(self._owner, wanted)
            if wanted and not self._why and place.attach(self._owner, self._program(definition)):
                return
            if self.kind == "w":
                self._watch(place)
            else:
                probe = probe_of(
                    definition, self._owner.machine, self._handler(place), disabled=not wanted
                )
                self._owner.register(probe)
                place.probe = probe
        except BaseException as error:
            place.lower_semaphore(self._owner)
            # nothing is wrong with the event where the machine is busy
            if isinstance(error, KprobeError) and not isinstance(error, MachineBusy):
                raise definition.refused(error) from error
            raise

    def _drop(self, place: EventPlace) -> None:
        """Unregister the probe of a place, and count its marker's semaphore down. Its counts stay.

        Raises:
            MachineBusy: another thread runs the machine; the place stays as it is.
        """
        counts = place.counts()
        probe = place.probe
        if isinstance(probe, Probe) and probe.registered:
            self._owner.unregister(probe)  # MachineBusy: the place stays as it is
        elif probe is not None and not isinstance(probe, Probe):
            probe.remove()
        place.probe = None
        place.hits, place.missed = counts
        place.lower_semaphore(self._owner)

    def _rearm(self) -> None:
        """Unregister the probes of all places, and arm these again with new programs or handlers.

        Called after a change of filter, triggers or recording that registered probes cannot follow.

        Raises:
            EventError: of the first place that cannot be armed now. Such places have no probe any
                more; the others are armed.
            MachineBusy: another thread runs the machine; no probe was changed.
        """
        refused: EventError | None = None
        self._made.clear()
        self._counting(not self._refused())
        self._why = self._mode_of([place.definition for place in self.places])
        if self._why:
            self._counting(False)
        for place in self.places:
            self._drop(place)
        for place in self.places:
            try:
                self._arm(place)
            except EventError as error:
                refused = refused or error
        if refused is not None:
            raise refused

    def _counting(self, programs: bool) -> None:
        """Choose who counts the event's histograms. What earlier programs have counted goes back to
        Python first. The programs' switch of records is set.

        Args:
            programs: True: the event's programs; False: Python.
        """
        if self._counts is not None:
            self._counts.give_back()
        self._counts = Counts(self.hists) if programs and self.hists else None
        self._record()

    def _record(self) -> None:
        """Tell programs that count histograms whether hits become records, too."""
        if self._counts is not None:
            self._counts.record(self._recording)

    def _switch(self) -> None:
        """Enable the probes of all places while hits are recorded or there are triggers; else
        disable them.

        Semaphores of markers are counted up or down, and the programs' switch of records is set.

        Raises:
            EventError: of the first place that cannot be armed any more. Such places stay disabled;
                the others are enabled.
            MachineBusy: another thread runs the machine; no probe was changed.
        """
        self._record()
        wanted = self._recording or bool(self._triggers)
        refused: EventError | None = None
        for place in self.places:
            probe = place.probe
            if isinstance(probe, Probe) and probe.registered and probe.enabled != wanted:
                try:
                    self._turn(place, probe, wanted)
                except MachineBusy:
                    raise
                except KprobeError as error:
                    refused = refused or place.definition.refused(error)
        if refused is not None:
            raise refused

    def _turn(self, place: EventPlace, probe: Probe, on: bool) -> None:
        """Enable or disable the probe of a place, and count its marker's semaphore up or down.

        Args:
            place: the place.
            probe: its probe, registered.
            on: True: enable it.

        Raises:
            KprobeError: the probe cannot be enabled, or the semaphore not be written; both are as
                before.
        """
        if not on:
            self._owner.disable(probe)
            place.lower_semaphore(self._owner)
            return
        place.set_semaphore(self._owner, True)
        try:
            self._owner.enable(probe)
        except BaseException:
            place.lower_semaphore(self._owner)
            raise

    def _check(self) -> None:
        """Raise BadLocation if the event is removed."""
        if self._removed:
            raise BadLocation(f"event {self.name} is removed", hint="define it again")

    # --- hits in Python

    def _handler(self, place: EventPlace) -> Handler:
        """Return the handler of a place's probe: the machine's own recorder where it has one, or
        Python's. Where the machine may record, set the place's `reader`, which decodes its records.
        """
        event = place.definition
        machine = self._owner.machine
        recorded = RecordedPlace(event, place.cookie, self._filter)
        plain = handler(recorded, machine, self.buffer, self._triggers, self, self._stack)
        if self._triggers or self._stack:
            return plain
        place.reader = RecordReader(event, RecordLayout(event), machine.symbols)
        return machine_handler(recorded, machine, self.buffer, place.reader.layout, None, plain)

    def _watch(self, place: EventPlace) -> None:
        """Set a watchpoint at a place, if hits are recorded or there are triggers; else do nothing.

        Args:
            place: a place without a watchpoint; `place.probe` becomes the new one.
        """
        d = place.definition
        if self._recording or self._triggers:
            place.probe = self._owner.watchpoint(d.address, d.size, d.access, self._handler(place))

    @property
    def stack_of(self) -> Callable[[Regs], tuple[int, ...]]:
        """The function from the registers at a hit to the call stack: pc and return addresses,
        innermost first.
        """
        return self._owner.kept_stack
