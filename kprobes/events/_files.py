"""Linux's folder tracefs, as far as events go: files by name, which are read and written as
text.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

from ..arguments import checked
from ..errors import BadArgument, EventError
from ..machine._base import Machine
from ._armed import TraceEvent
from ._buffer import Buffer
from ._text import format_text, lines_of, trace_text

README: Final = """kprobes: what these files take

kprobe_events, dynamic_events - definitions, a line each; Create/append/remove/show the events
\tp[:[<group>/][<event>]] <place> [<args>]
\tr[maxactive][:[<group>/][<event>]] <place> [<args>]
\tf[maxactive][:[<group>/][<event>]] <symbol>[%return] [<args>]
\tw[:[<group>/][<event>]] [r|w|rw]@<address>[:<length>] [<args>]
\t-:[<group>/][<event>]
\tplace: [<module>:]<symbol>[+<offset>]|<address>|<file>:<offset>|%<provider>:<marker>
\tplace (kretprobe): [<module>:]<symbol>[+<offset>]%return|<address>%return
\targs: <name>=fetcharg[:type]
\tfetcharg: (%<register>|$stack<N>|$stack|$retval|$comm|$arg<N>),
\t          @<address>, @<symbol>[+|-<offset>], \\imm-value, \\"imm-string",
\t          +|-[u]<offset>(<fetcharg>)
\tkernel return probes support: $retval, $arg<N>, $comm
\ttype: s8/16/32/64, u8/16/32/64, x8/16/32/64, f32/64, char, string, ustring, symbol, symstr,
\t      b<width>@<offset>/<size>, <type>\\[<array-size>\\]
kprobe_profile - hits and misses of each event
trace - the records; an empty line written empties it
trace_pipe - the records; each is read once
tracing_on - 1: records are kept
error_log - what was wrong with the last definitions
events/<group>/<event>/enable, filter, trigger, hist, format, id
events/<group>/enable, events/enable - of all that are in there
"""
_LOGGED: Final = 8  #: errors that are kept
_SWITCHES: Final = {"0": False, "1": True}
_TRIGGERS: Final = (
    "# Available triggers:\n"
    "# traceon traceoff snapshot stacktrace enable_event disable_event hist\n"
)
_DEFINED: Final = ("kprobe_events", "dynamic_events")
_OF_EVENT: Final = ("enable", "filter", "format", "hist", "id", "trigger")
_NO_FILE: Final = 2  #: ENOENT
_READ_ONLY: Final = 13  #: EACCES


class EventTable(Protocol):
    """The events, as these files need them (Events of _table)."""

    buffer: Buffer

    def __iter__(self) -> Any: ...
    def __getitem__(self, name: str) -> TraceEvent: ...
    def values(self) -> Any:
        """Return all events."""

    def text(self) -> str:
        """Return the text of kprobe_events."""

    def profile(self) -> str:
        """Return the text of kprobe_profile."""

    def write(self, text: str) -> None:
        """Carry out a line as if it were written to kprobe_events, by `>>`; "" removes all
        events.
        """


@checked()
class EventFiles:
    """Events and their records as Linux's files, by their names in tracefs.

    Names are such as "trace" or "events/kprobes/crc/format". Files that nothing here has a meaning
    for, such as those of Linux's other tracers, are not there.
    """

    def __init__(self, events: EventTable, machine: Machine) -> None:
        """Show events as files.

        Args:
            events: the events.
            machine: their guest, whose symbols name addresses.
        """
        self._events = events
        self._machine = machine
        self._errors: deque[tuple[float, str, EventError]] = deque(maxlen=_LOGGED)
        self._started = time.monotonic()
        self._top: dict[str, tuple[Callable[[], str], Callable[[str], None] | None]] = {
            "README": (lambda: README, None),
            "available_tracers": (lambda: "nop\n", None),
            "current_tracer": (lambda: "nop\n", self._set_tracer),
            "kprobe_profile": (events.profile, None),
            "trace": (self._trace, lambda text: self._events.buffer.clear()),
            "trace_pipe": (self._taken, None),
            "tracing_on": (lambda: f"{int(self._events.buffer.on)}\n", self._set_recording),
            "error_log": (self._errors_text, lambda text: self._errors.clear()),
        }

    def names(self) -> list[str]:
        """Return the names of all files."""
        names = [*_DEFINED, *self._top, "events/enable"]
        for group in dict.fromkeys(event.group for event in self._events.values()):
            names.append(f"events/{group}/enable")
        for event in self._events.values():
            names += [f"events/{event.group}/{event.name}/{file}" for file in _OF_EVENT]
        return names

    def read(self, name: str) -> str:
        """Return the text of a file.

        Args:
            name: the file's.

        Raises:
            BadArgument: there is no file of this name (ENOENT).
        """
        if name in _DEFINED:
            return self._events.text()
        if name in self._top:
            return self._top[name][0]()
        if name.startswith("events/"):
            words = name.split("/")[1:]
            if words[-1] == "enable":
                return self._enabled(self._of(name, words[:-1]))
            if len(words) == 3 and words[2] in _OF_EVENT:
                return self._file(self._of(name, words[:2])[0], words[2])
        raise self._unknown(name)

    def write(self, name: str, text: str, append: bool = False) -> None:
        """Write to a file, as `echo TEXT > FILE` does.

        Args:
            name: the file's.
            text: a command, or lines of them.
            append: write as `>>` does; False: definitions replace all that there are.

        Raises:
            BadArgument: there is no such file (ENOENT), it is not to be written (EACCES), or takes
                no such text.
            EventError: a definition, filter or trigger is wrong, or a place cannot be armed any
                more; error_log has it, too.
            EventBusy: an event that is to be deleted is in use.
            NotRegistered: an event that is to be deleted does not exist.
        """
        try:
            if name in _DEFINED:
                self._define(text, append)
            elif name in self._top:
                write = self._top[name][1]
                if write is None:
                    raise _failure(f"{name} is not to be written", "read it", _READ_ONLY)
                write(text)
            elif name.startswith("events/"):
                self._write_event(name, text.strip())
            else:
                raise self._unknown(name)
        except EventError as error:
            self._errors.append((time.monotonic() - self._started, _reporter(name), error))
            raise

    # --- definitions

    def _define(self, text: str, append: bool) -> None:
        """Carry out lines written to kprobe_events: definitions, and `-:NAME` or `!DEFINITION` to
        delete.

        Args:
            text: the lines.
            append: False: all events are removed first.

        Raises:
            EventError, EventBusy, NotRegistered: of the first line that fails; what was done before
                it stays.
        """
        if not append:
            self._events.write("")
        for line in text.splitlines():
            command = line.strip()
            if command[:1] == "!":  # a definition whose event goes
                head, *rest = command[1:].split() or [""]
                command = " ".join([f"-:{head.partition(':')[2]}", *rest])
            if command:
                self._events.write(command)

    # --- files of events

    def _of(self, name: str, words: list[str]) -> list[TraceEvent]:
        """Return the events that a path under events/ means.

        Args:
            name: the whole path, for the error.
            words: the path's group and event, or only the group, or none for all events.

        Raises:
            BadArgument: there is no such group or event (ENOENT).
        """
        found = [
            each for each in self._events.values() if [each.group, each.name][: len(words)] == words
        ]
        if words and not found:
            raise self._unknown(name)
        return found

    def _file(self, event: TraceEvent, file: str) -> str:
        """Return the text of one file of an event.

        Args:
            event: the event.
            file: "format", "id", "filter", "trigger" or "hist".
        """
        number = event.number
        if file == "format":
            return format_text(event.definition, number, self._machine.arch.bits // 8)
        return {
            "id": lambda: f"{number}\n",
            "filter": lambda: f"{event.filter or 'none'}\n",
            "trigger": lambda: "".join(f"{line}\n" for line in event.triggers) or _TRIGGERS,
            "hist": lambda: "\n".join(str(hist) for hist in event.hists),
        }[file]()

    def _enabled(self, events: list[TraceEvent]) -> str:
        """Return the text of a file `enable`: "1" where all events are enabled, "0" where none is,
        else "X".
        """
        states = {event.enabled for event in events}
        return "X\n" if len(states) == 2 else f"{int(states == {True})}\n"

    def _write_event(self, name: str, text: str) -> None:
        """Write to a file under events/: `enable`, `filter` or `trigger`; this changes the events.

        Args:
            name: of the file; `enable` may be that of an event, of a group, or of all.
            text: what is written; "" for `trigger` does nothing.

        Raises:
            BadArgument: there is no such file, it is not to be written, or takes no such text.
            EventError: a filter or trigger is wrong, or a place cannot be armed any more.
        """
        words = name.split("/")[1:]
        if words[-1] == "enable":
            wanted = _switch(name, text)
            for event in self._of(name, words[:-1]):
                event.enabled = wanted
        elif len(words) == 3 and words[2] in ("filter", "trigger"):
            (event,) = self._of(name, words[:2])
            if words[2] == "filter":
                event.filter = text
            elif text:
                event.trigger(text)
        elif name in self.names():
            raise _failure(f"{name} is not to be written", "read it", _READ_ONLY)
        else:
            raise self._unknown(name)

    # --- other files

    def _trace(self) -> str:
        """Return the text of `trace`: a line for each record. The records stay."""
        return trace_text(self._events.buffer, self._machine.symbols)

    def _taken(self) -> str:
        """Return the text of `trace_pipe`: a line for each record. The records are removed."""
        lines = lines_of(self._events.buffer, self._machine.symbols)
        self._events.buffer.clear()
        return "".join(lines)

    def _set_recording(self, text: str) -> None:
        """Write to tracing_on. Raises BadArgument where the text is neither 0 nor 1."""
        self._events.buffer.on = _switch("tracing_on", text.strip())

    def _set_tracer(self, text: str) -> None:
        """Take a text written to current_tracer, which changes nothing. Raises BadArgument where it
        is not "nop".
        """
        if text.strip() != "nop":
            raise BadArgument(
                f"there is no tracer {text.strip()!r}", hint="there is nop; events need no other"
            )

    def _errors_text(self) -> str:
        """Return the text of error_log: for each error a line with time, origin and message, a line
        with what was written, and a line with `^` under the column that is wrong.
        """
        out = []
        for seconds, reporter, error in self._errors:
            out.append(
                f"[{seconds:12.6f}] {reporter}: error: {error.reason}\n  Command: {error.event}\n"
                f"           {' ' * error.position}^\n"
            )
        return "".join(out)

    def _unknown(self, name: str) -> BadArgument:
        """Return the error, to be raised, for a file that does not exist. name: the file's."""
        return _failure(f"there is no file {name}", "names() lists them", _NO_FILE)


def _failure(message: str, hint: str, number: int) -> BadArgument:
    """Make the error of an access to a file.

    Args:
        message: what is wrong.
        hint: what to do.
        number: the errno.
    """
    error = BadArgument(message, hint=hint)
    error.errno = number
    return error


def _reporter(name: str) -> str:
    """Return what error_log calls the origin of an error, such as "trace_kprobe".

    Args:
        name: of the file that was written to.
    """
    words = name.split("/")
    if words[-1] == "trigger":
        return ":".join(["hist", *words[1:3]])
    return "event filter parse error" if words[-1] == "filter" else "trace_kprobe"


def _switch(name: str, text: str) -> bool:
    """Return True for the text "1", False for "0".

    Args:
        name: of the file that the text is written to, for the error.
        text: what is written.

    Raises:
        BadArgument: it is any other text.
    """
    if text not in _SWITCHES:
        raise BadArgument(f"{text!r} is nothing for {name}", hint="write 0 or 1")
    return _SWITCHES[text]
