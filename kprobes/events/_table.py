"""All events of a Kprobes: what the files kprobe_events and kprobe_profile are in Linux."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from ..arguments import checked
from ..errors import EventBusy, EventError, NotRegistered
from ._armed import TraceEvent
from ._buffer import Buffer
from ._event import Event
from ._files import EventFiles
from ._filter import parse_filter
from ._globs import expand_pattern
from ._hist import Histogram
from ._messages import make_error
from ._parser import Parser
from ._place import EventOwner, EventPlace
from ._siblings import check_sibling
from ._triggers import SWITCHES


@checked()
class Events(Mapping[str, TraceEvent]):
    """The events of a Kprobes by name; those of another group than "kprobes" by group/name.

    Attributes:
        buffer: their records, in order; iterating it gives them all.
    """

    def __init__(self, owner: EventOwner, buffer: Buffer | None = None) -> None:
        """Begin without events.

        Args:
            owner: the Kprobes.
            buffer: where records go; None: a new buffer.
        """
        self._owner = owner
        self.buffer = Buffer.of(owner.machine) if buffer is None else buffer
        self._events: dict[tuple[str, str], TraceEvent] = {}

    # --- a mapping

    def __getitem__(self, name: str) -> TraceEvent:
        """Return the event called `name`: NAME in the group "kprobes", or GROUP/NAME. Raises
        KeyError.
        """
        group, slash, event = str(name).rpartition("/")
        found = self._events.get((group if slash else "kprobes", event))
        if found is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(
            [name if group == "kprobes" else f"{group}/{name}" for group, name in self._events]
        )

    def __len__(self) -> int:
        return len(self._events)

    def __repr__(self) -> str:
        return f"<Events {', '.join(self) or 'none'}>"

    # --- adding

    def add(
        self, text: str, filter: str = "", stack: bool = False, enabled: bool = True
    ) -> TraceEvent:
        """Arm an event; where there is one of this name, at one more place.

        Args:
            text: the definition.
            filter: which hits are recorded, in ftrace's language; "": all, or as the event has it
                already.
            stack: records of a new event have the call stack.
            enabled: a new event records hits at once.

        Returns:
            The event: a new one, or the one of this name, which then has more places.

        Raises:
            EventError: the definition or the filter is wrong, or the place is refused. Then nothing
                has changed.
            MachineBusy: another thread runs the machine. Nothing has changed.
        """
        definitions, lenient, left_out = self._parse(text)
        first = definitions[0]
        known = self._events.get((first.group, first.name))
        if known is not None:
            for definition in definitions:
                for place in known.places:
                    check_sibling(definition, place.definition)
            # before there is anything to undo
            parse_filter(filter, known.definition, self._owner.machine.symbols)
            before = known.filter
            if filter:
                known.filter = filter
            try:
                known.add(definitions, lenient)
            except BaseException:
                known.filter = before
                raise
            known.skipped += left_out
            return known
        event = TraceEvent(
            self._owner,
            self.buffer,
            definitions,
            enabled=enabled,
            filter=filter,
            stack=stack,
            lenient=lenient,
            gone=self._forget,
            find=self.get,
            named=self._named,
        )
        event.skipped += left_out
        self._events[first.group, first.name] = event
        return event

    def _parse(self, text: str) -> tuple[list[Event], bool, list[tuple[str, str]]]:
        """Parse a definition, or those that its pattern stands for; nothing is armed. Of a
        pattern's, those with an error are left out.

        Args:
            text: the definition.

        Returns:
            (the events, one for each place; True for a pattern: places that are refused are
            skipped; (place, reason) of each that is left out).

        Raises:
            EventError: the first error, where no definition is right.
        """
        machine = self._owner.machine
        found = expand_pattern(text, machine)
        if found is None:
            return [Parser(text, machine, self._owner.original).event()], False, []
        definitions = list[Event]()
        left_out = list[tuple[str, str]]()
        first = None
        for name, definition in found.texts:
            try:
                definitions.append(
                    Parser(definition, machine, self._owner.original, found.inside).event()
                )
            except EventError as error:
                first = first or found.original(error, definition)
                left_out.append((name, error.reason))
        if not definitions:
            assert first is not None
            raise first
        return definitions, True, left_out

    # --- Linux's files

    def write(self, text: str) -> None:
        """Carry out lines written to Linux's kprobe_events, as by `>>`.

        A line is a definition, which is disabled until it is enabled, or `-:[GROUP/][NAME] [PLACE
        [ARG ...]]`, which deletes; `#` and what follows is a comment. Nothing at all ("", or an
        empty line as `echo > kprobe_events` writes it) removes all events.

        Args:
            text: the lines.

        Raises:
            EventError: a definition is wrong, or `-:` has neither group nor name.
            NotRegistered: there is no such event to be deleted (ENOENT).
            EventBusy: an event to be deleted is enabled, has triggers, or is switched by another
                event's; then the line deletes none. Lines before one that fails stay done.
        """
        if not text.strip():
            for event in self._events.values():
                self._check_idle(event)
            self.clear()
        for line in text.splitlines():
            command = line.partition("#")[0].strip()
            if command.startswith("-:"):
                self._delete(command)
            elif command:
                self.add(command, enabled=False)

    def _delete(self, line: str) -> None:
        """Delete the events that a line `-:...` names; without a group, those of the name in all
        groups. With a place behind the name only the places that match are disarmed, and an event
        goes with its last one.

        Raises:
            EventError: it names none.
            NotRegistered: there is none.
            EventBusy: one that would lose all places is in use; then nothing is deleted.
        """
        words = line.split()
        name = words[0][2:]
        group, slash, event = name.rpartition("/" if "/" in name else ".")
        if not name:
            raise make_error("NO_EVENT_NAME", 2, " ".join(words))
        found = [
            e
            for (g, n), e in self._events.items()
            if (not slash or g == group) and (not event or n == event)
        ]
        done = [(e, places) for e in found if (places := self._matching(e, words[1:]))]
        if not done:
            error = NotRegistered(
                f"there is no event {name} to delete", hint=f"there is {', '.join(self) or 'none'}"
            )
            error.errno = 2
            raise error
        for each, places in done:
            # as in Linux, one of several places may go at any time
            if len(places) == len(each.places):
                self._check_idle(each)
        for each, places in done:
            each.leave(places)
            if not each.places:
                each.remove()

    def _check_idle(self, event: TraceEvent) -> None:
        """Check that an event is disabled, has no triggers, and no trigger switches it.

        Raises:
            EventBusy: one of these does not hold.
        """
        switches = tuple(f"{name}:{event.group}:{event.name}:" for name in SWITCHES)
        triggers = [text for other in self._events.values() for text in other.triggers]
        use = ""
        if event.enabled:
            use = "is enabled"
        elif event.triggers:
            use = "has triggers"
        elif any(text.startswith(switches) for text in triggers):
            use = "is switched by triggers"
        if use:
            raise EventBusy(
                f"event {event.group}/{event.name} {use}",
                hint="disable it first, and remove its triggers",
                python="or call its remove()",
            )

    @staticmethod
    def _matching(event: TraceEvent, words: list[str]) -> list[EventPlace]:
        """Return those places of an event that a line `-:NAME PLACE ARG ...` removes.

        Args:
            event: the event.
            words: what the line has behind the name: place and arguments, as the definition has
                them; last arguments may be left out. []: all places are meant.
        """
        if not words:
            return list(event.places)
        wanted = [str(place.definition).split(" ", 1)[1].split() for place in event.places]
        return [
            place
            for place, have in zip(event.places, wanted, strict=True)
            if have[: len(words)] == words
        ]

    def _forget(self, event: TraceEvent) -> None:
        """Take an event out of the mapping. The event calls it once it is removed."""
        self._events.pop((event.group, event.name), None)

    def _named(self, name: str) -> Histogram | None:
        """Return the histogram of a name among those of all events; None: there is none."""
        return next(
            (hist for event in self._events.values() for hist in event.hists if hist.name == name),
            None,
        )

    def clear(self) -> None:
        """Remove all events."""
        for event in list(self._events.values()):
            event.remove()

    def leave(self) -> None:
        """Count the semaphores of all events' markers down, as if nobody traced; the events stay.

        Called when the Kprobes is closed: the guest may go on without it.
        """
        for event in self._events.values():
            for place in event.places:
                place.lower_semaphore(self._owner)

    @cached_property
    def files(self) -> EventFiles:
        """The events, their records and their settings as Linux's files, by name."""
        return EventFiles(self, self._owner.machine)

    def text(self) -> str:
        """Return the definitions, normalized, a line each: the file kprobe_events."""
        return "".join(f"{event}\n" for event in self._events.values())

    def profile(self) -> str:
        """Return hits and misses of each event: the file kprobe_profile."""
        return "".join(
            f"  {event.name:<44} {event.hits:>15} {event.missed:>15}\n"
            for event in self._events.values()
        )
