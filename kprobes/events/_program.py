"""Events as programs: a hit becomes a record of a ring buffer without calling Python.

A record is a row of u64: its number among all in the buffer, from 1; the cookie of the place; the
time, where it has one; for return events the return address; fault bits; then a value for each
element of each argument, extended as its type says, or STRING bytes of text. Fault bits are counted
from 0: one for each argument; for an array, where its own says that its address could not be had,
one for each element.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Hashable, Iterator
from typing import Final

from attrs import evolve, frozen

from ..arch._base import Arch
from ..clocknames import HOST_CLOCK
from ..errors import ProgramError, Unsupported
from ..machine._base import Machine
from ..programs.inguest import RETURNS
from ..programs.maps import Array, Map, MapType, Spec
from ..programs.meanings import SLOTS
from ..programs.program import AtEntry, Program
from ..symbols import Symbols
from ._buffer import Buffer
from ._counting import Counts
from ._event import Argument, Event
from ._filter import Filter
from ._layout import HEAD, STATE, RecordLayout, elements, width
from ._plans import Word
from ._styles import Scalar, Value, converter
from ._writer import KEPT, Part, Writer

#: bytes of the largest record
LARGEST: Final = 1 << 16


def why_not(event: Event, filter: Filter | None = None) -> str:
    """Return why an event needs Python, as a clause; "" if a program can record it on some machine.

    Python is needed for tasks' names, for values that only Python finds or reads, for filters that
    test more than numbers, and where too much is kept from the entry (KEPT) or recorded (LARGEST).

    Args:
        event: the event.
        filter: which hits are recorded; None: all.
    """
    if filter is not None and not filter.compilable:
        return "the filter looks at more than numbers"
    if any(arg.source.tree.kind == "comm" for arg in event.args):
        return "Python knows the task's name"
    trees = [tree for arg in event.args for tree in _walk(arg.source.tree)]
    if any(tree.kind == "variable" for tree in trees):
        return "Python knows where variables are"
    if any(arg.type.is_whole for arg in event.args):
        return "Python reads values of these types"
    if any(not isinstance(n, int) for n in event.saves):
        return "Python knows where variables are"
    if len(event.saves) > KEPT:
        return f"a return event keeps more than {KEPT} arguments from the entry on"
    if RecordLayout(event).size > LARGEST:
        return f"a record takes more than {LARGEST} bytes"
    return ""


def needs_python(
    machine: Machine,
    event: Event,
    filter: Filter | None,
    make: Callable[[], EventProgram],
    clock: str = HOST_CLOCK,
) -> str:
    """Return why hits of an event need Python on this machine, as one clause; "" where a program
    can record them.

    Args:
        machine: the guest.
        event: the event.
        filter: which hits are recorded; None: all.
        make: returns the event's program; it is called only where nothing else speaks against one,
            and the program is then compiled for the machine, to see whether that works.
        clock: name of the clock that the program reads for its records' times.
    """
    if machine.cpu_task is not None:
        return "Python knows which task runs"
    guest = machine.guest_view
    if machine.cpus > 1 and (guest is None or guest.several):
        return "Python knows which CPU runs"
    if why := why_not(event, filter):
        return why
    if guest is not None and event.kind == "r":
        return RETURNS
    sites, host = machine.call_sites, machine.host_view
    if guest is None and (sites is None or not sites.can_run or host is None):
        return "this machine runs no code of the host's at its call sites"
    try:
        made = make()
        if guest is not None:
            made.program.in_guest(guest)
        elif host is not None:
            made.program.at_sites(host, clock)
            if (entry := made.program.at_entry) is not None:
                entry.program.at_sites(host, clock)
    except (Unsupported, ProgramError) as error:
        return error.reason
    return ""


def shape(event: Event) -> Hashable:
    """Return a key of what an event fetches; events with equal keys can share one program.

    Their text alone is not enough: a parameter's name stands for another word in another function.
    """
    return tuple((arg.name, arg.text, arg.type, arg.source.tree) for arg in event.args)


def _walk(tree: Word) -> Iterator[Word]:
    """Yield a word, then the word that its address is counted from, and so on to one not in
    memory.
    """
    yield tree
    if tree.base is not None:
        yield from _walk(tree.base)


@frozen
class RecordReader:
    """Decodes an event's records.

    Attributes:
        event: the event.
        layout: of the records.
    """

    event: Event
    layout: RecordLayout
    _symbols: Symbols

    def decode(self, record: bytes) -> tuple[tuple[Value, ...], int]:
        """Return (the arguments' values, as Event.fetch() gives them; the return address, 0 for
        other events).
        """
        layout = self.layout
        head = layout.head
        faults = int.from_bytes(record[head.faults : head.data], sys.byteorder)
        places = zip(self.event.args, layout.places, strict=True)
        values = [self._value(arg, record, faults >> bit, at) for arg, (bit, at) in places]
        caller = 0
        if head.caller:
            (caller,) = struct.unpack_from("=Q", record, head.caller)
        return tuple(values), caller

    @property
    def size(self) -> int:
        """Bytes of a record."""
        return self.layout.size

    @property
    def time(self) -> int:
        """The offset of the time in a record; 0: it has none."""
        return self.layout.head.time

    def reader(self) -> Callable[[bytes], tuple[tuple[Value, ...], int]]:
        """Return a function of a record's bytes that returns what decode() does, faster for many
        records.
        """
        head, args = self.layout.head, self.event.args
        if any(
            arg.source.literal is not None or arg.type.count or arg.type.is_string for arg in args
        ):
            return self.decode
        returns = bool(head.caller)
        first = bool(head.caller) + head.words
        words = "Q" * (head.words + len(args))
        unpack = struct.Struct(
            f"={HEAD}x{'8x' * bool(head.time)}{'Q' * returns}{words}"
        ).unpack_from
        convert = [self._shown(arg) for arg in args]

        def read(record: bytes) -> tuple[tuple[Value, ...], int]:
            """Return (values, return address) of a record; the address is 0 in events without
            one.
            """
            raw = unpack(record)
            if any(raw[returns:first]):
                return self.decode(record)
            return (
                tuple([show(word) for show, word in zip(convert, raw[first:], strict=True)]),
                raw[0] if returns else 0,
            )

        return read

    def _value(self, arg: Argument, record: bytes, faults: int, at: int) -> Value:
        """Return the value of an argument in a record; None: guest memory could not be read.

        For an array it is a tuple, in which elements that could not be read are None; for a literal
        the literal's text.

        Args:
            arg: the argument.
            record: the record's bytes.
            faults: its fault bits, shifted so that bit 0 is the argument's first one.
            at: offset of the argument's first byte in the record.
        """
        if arg.source.literal is not None:
            return str(arg.source.literal)
        if faults & 1:
            return None
        show = self._text if arg.type.is_string else self._number(arg)
        size = width(arg)
        pieces = (record[at + n * size : at + (n + 1) * size] for n in range(elements(arg)))
        if not arg.type.count:
            return show(next(pieces))
        return tuple(
            [None if faults >> 1 + n & 1 else show(piece) for n, piece in enumerate(pieces)]
        )

    def _shown(self, arg: Argument) -> Callable[[int], Scalar]:
        """Return the function from an argument's number in a record to its value, such as a
        symbol's name.

        Args:
            arg: the argument; programs have shifted the number already.
        """
        return converter(evolve(arg.type, shift=0), self._symbols)

    def _number(self, arg: Argument) -> Callable[[bytes], Scalar]:
        """Return the function from the 8 bytes of an element in a record to its value."""
        convert = self._shown(arg)
        return lambda raw: convert(int.from_bytes(raw, sys.byteorder))

    @staticmethod
    def _text(raw: bytes) -> str:
        """Return the text in a record, up to its NUL."""
        return raw.partition(b"\0")[0].decode("utf-8", "backslashreplace")


@frozen
class EventProgram(RecordReader):
    """A program for an event, and what its records mean.

    Attributes:
        program: what to attach, at the event's place.
        ring: the records, of this event and of all others in the buffer.
    """

    program: Program
    ring: Map


def compiled(
    event: Event,
    machine: Machine,
    buffer: Buffer,
    filter: Filter | None = None,
    timed: bool = False,
    counts: Counts | None = None,
    least: int = 0,
) -> EventProgram:
    """Compile an event into a program, which at a hit counts in histograms, applies the filter, and
    writes a record.

    For a return event that needs arguments of the entry a second program is compiled, which keeps
    them (`program.at_entry`).

    Args:
        event: the event.
        machine: the guest; its symbols name addresses when records are decoded.
        buffer: where the records go.
        filter: which hits are recorded; None: all.
        timed: records have times.
        counts: histograms that the program counts, whatever the filter says; None: there are none.
        least: bytes that a record has at least.

    Raises:
        ProgramError: only Python can record its hits; the message says why.
    """
    why = why_not(event, filter)
    if why:
        raise ProgramError(why, program=event.name, hint="its hits are fetched by Event.fetch()")
    layout = RecordLayout(event, timed, least)
    maps: dict[int | str, Map] = {"records": buffer.ring, "state": buffer.state}
    first: list[Part] = []
    if counts is not None:
        first = counts.parts(event, len(maps) + 1)
        maps |= counts.maps
    entry = _at_entry(event, machine.arch)
    if entry is not None:
        maps[len(maps)] = entry.kept
    code = Writer(machine.arch, layout).write(
        event, filter, first, STATE + 1 if counts else 0, 0 if entry is None else len(maps) - 1
    )
    program = Program.from_instructions(code, maps=maps, name=event.name, order=sys.byteorder)
    program.at_entry = entry
    return EventProgram(event, layout, machine.symbols, program, buffer.ring)


def _at_entry(event: Event, arch: Arch) -> AtEntry | None:
    """Compile the program that runs at a function's entry for a return event, and keeps arguments.

    Args:
        event: the return event.
        arch: the guest's architecture.

    Returns:
        The program and the map in which it keeps them; None: the event needs no argument of the
        entry.
    """
    numbers = [n for n in event.saves if isinstance(n, int)]
    if not numbers:
        return None
    kept = Array(
        Spec(
            type=MapType.ARRAY,
            name="kept",
            key_size=4,
            value_size=8 * (1 + len(numbers)),
            max_entries=SLOTS,
            order=sys.byteorder,
        )
    )
    code = Writer(arch, None).keep(numbers)
    return AtEntry(
        Program.from_instructions(
            code, maps={"kept": kept}, name=f"{event.name}_entry", order=sys.byteorder
        ),
        kept,
    )
