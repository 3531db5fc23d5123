"""Kprobe events: Linux's one-line probe definitions, compiled once into fetch plans.

`parse_event("p:crc crc32 len=$arg3:u32 head=+0($arg2):string", machine)` gives an Event: where to
probe, and closures that fetch its arguments from Regs at a hit. Symbols and registers are looked up
while parsing, so a hit only reads. A wrong definition raises EventError with Linux's error name and
the column Linux points at.

Beyond Linux: unreadable integers are (fault) like strings, control characters in strings are
escaped, an address that lies in no symbol counts as a function entry, and `$argN` in a return event
works everywhere (see Event.enter).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ..machine._base import Machine
from ._event import Argument, Event, KeptAtEntry, locate
from ._parser import Parser
from ._siblings import check_sibling
from ._styles import Scalar, Type, Value

if TYPE_CHECKING:
    from ._program import EventProgram
else:
    # Type checkers do not see this function: to them a name that is not here is an error.
    def __getattr__(name: str) -> object:
        """Import EventProgram, and all of programs with it, when it is first asked for."""
        if name != "EventProgram":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from ._program import EventProgram

        return EventProgram


__all__ = [
    "Argument",
    "Event",
    "EventProgram",
    "KeptAtEntry",
    "Scalar",
    "Type",
    "Value",
    "locate",
    "parse_event",
    "parse_events",
    "program_of",
    "why_python",
]


def parse_event(
    text: str, machine: Machine, read: Callable[[int, int], bytes] | None = None
) -> Event:
    """Parse one definition against a machine's symbols and registers.

    Args:
        text: the definition, as a line of Linux's kprobe_events.
        machine: the guest; its symbols, registers and debug information give names their meaning.
        read: gives `size` bytes of guest code at an address as they are without probes
            (`k.original`); None: machine.read, as there are no probes.

    Raises:
        EventError: the definition is wrong; it has Linux's error name and the column.
    """
    return Parser(text, machine, read).event()


def parse_events(texts: Iterable[str], machine: Machine) -> list[Event]:
    """Parse definitions that are to live together.

    Under one name, kind and arguments must agree, and no two may be the same.

    Args:
        texts: the definitions, one each.
        machine: the guest.

    Raises:
        EventError: a definition is wrong, or does not go with an earlier one of its name.
    """
    events: list[Event] = []
    for text in texts:
        event = parse_event(text, machine)
        for other in events:
            if (event.group, event.name) == (other.group, other.name):
                check_sibling(event, other)
        events.append(event)
    return events


def program_of(event: Event, machine: Machine) -> EventProgram:
    """Compile an event into an eBPF program for k.attach(); a hit then runs no Python.

    Strings are cut to 511 bytes. The records go to a buffer of 1 MiB of the program's own.

    Args:
        event: the event.
        machine: the guest that the program is for.

    Returns:
        The program, which also decodes its records.

    Raises:
        ProgramError: only Python can serve the event; why_python() says why.
    """
    from ._buffer import Buffer
    from ._program import compiled

    return compiled(event, machine, Buffer(size=1 << 20))


def why_python(event: Event) -> str:
    """Return why an event's hits need Python, as one clause; "" where program_of() gives a
    program.
    """
    from ._program import why_not

    return why_not(event)
