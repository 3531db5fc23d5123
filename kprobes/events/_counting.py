"""Histograms that an event's eBPF program counts: the instructions for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ..programs.assembler import Assembler
from ..programs.context import PC
from ..programs.maps import NOEXIST, Array, Map, MapType, Spec
from ._counts import DROPPED, HITS, PAUSED
from ._event import Event
from ._hist import Column, Histogram
from ._writer import BUFFER, CONTEXT, FETCHED, STACK, Part, Writer

COLUMNS: Final = 56  #: keys and values that the stack has room for
_TEMPORARY: Final = 16  # bytes at the stack's end that the writer uses
#: registers of the program: the histogram's entry; its state
_ENTRY, _STATE = 7, BUFFER
_NO_KEYS: Final = ("execname", "stacktrace")


def why_not(hist: Histogram) -> str:
    """Return why a histogram needs Python, as one clause; "" where a program can count it.

    Python is needed for filters that test more than numbers, for keys that are texts, stacks or
    tasks' names, and for more columns than COLUMNS.
    """
    if hist.filter is not None and not hist.filter.compilable:
        return "a histogram's filter looks at more than numbers"
    for column in hist.keys:
        if column.text or column.field is None or column.modifier in _NO_KEYS:
            return f"the histogram's key {column} is no number"
    much = len(hist.keys) + len(hist.values) > COLUMNS
    return f"a histogram has more than {COLUMNS} keys and values" if much else ""


class Counts:
    """The histograms of an event while its program counts them, and the switch of its records.

    Making it moves what Python has counted into the programs' tables; give_back() moves it back.

    Attributes:
        maps: the program's maps by name: the switch first, then two for each histogram.
    """

    def __init__(self, hists: Sequence[Histogram]) -> None:
        """Move what histograms have counted into maps in which a program counts, until give_back().

        Args:
            hists: the histograms; why_not() is "" for each.
        """
        self._hists = tuple(hists)
        self._switch = Array(
            Spec(
                type=MapType.ARRAY,
                name="switch",
                key_size=4,
                value_size=8,
                max_entries=1,
                order=sys.byteorder,
            )
        )
        self.maps: dict[int | str, Map] = {"switch": self._switch}
        for n, hist in enumerate(self._hists):
            table = hist.lend()
            self.maps |= {f"histogram {n}": table.state, f"entries {n}": table.entries}

    def record(self, on: bool) -> None:
        """Switch the records: whether programs make a record of each hit, besides counting it."""
        self._switch.fetch_from_guests()
        self._switch[0] = int(on)

    def parts(self, event: Event, first: int) -> list[Part]:
        """Return a Counting for each histogram: it appends the instructions that count a hit.

        Args:
            event: the event, whose arguments are counted.
            first: number of the first histogram's first map, among the program's maps.
        """
        return [Counting(event, hist, first + 2 * n) for n, hist in enumerate(self._hists)]

    def give_back(self) -> None:
        """Move what programs have counted back to Python, which counts the histograms again."""
        for hist in self._hists:
            hist.give_back()


class Counting:
    """Writer of the eBPF instructions by which a program counts a hit in one histogram (a Part of
    events._writer: called with the Writer, it appends them).

    Each method appends the instructions that do what its first line says; the program does it at a
    hit. Registers have names as in the Writer: _ENTRY is the histogram's entry, _STATE its state
    (the words PAUSED, HITS and DROPPED), FETCHED the number of a column. The key is built on the
    stack: a word of fault bits, then a word for each column.
    """

    _w: Writer
    _asm: Assembler
    _over: str  #: label behind the instructions of the histogram

    def __init__(self, event: Event, hist: Histogram, state: int) -> None:
        """Prepare; instructions are appended when the object is called.

        Args:
            event: the event, whose arguments are counted.
            hist: the histogram.
            state: number of the map with the histogram's state, among the program's maps; the next
                map has its entries.
        """
        self._event = event
        self._hist = hist
        self._state = state
        self._key = -_TEMPORARY - 8 * (1 + len(hist.keys))
        self._new = self._key - 8 * (1 + len(hist.values))

    def __call__(self, w: Writer) -> None:
        """Append the instructions to a program."""
        self._w = w
        self._asm = asm = w.asm
        self._over = asm.label()
        asm.value(_STATE, self._state, 0)
        asm.load(1, _STATE, 8 * PAUSED, 8)
        asm.jump_if_number("!=", 1, 0, self._over)
        w.passes(self._event, self._hist.filter, self._over)
        asm.store_number(STACK, self._key, 0, 8)
        for n, column in enumerate(self._hist.keys):
            self._part(n, column)
        self._find()
        self._count(_STATE, 8 * HITS)
        self._count(_ENTRY, 0)
        for n, column in enumerate(self._hist.values):
            self._add(n, column)
        asm.place(self._over)

    def _part(self, n: int, column: Column) -> None:
        """Compute a word of the key and store it on the stack.

        Where guest memory cannot be read, the word is 0 and the column's fault bit is set.

        Args:
            n: index of the column in the key, from 0.
            column: the column of the key, with its modifier.
        """
        asm = self._asm
        at = self._key + 8 * (1 + n)
        failed = asm.label()
        self._fetch(column, failed)
        if column.modifier == "log2":
            self._log2(column)
        elif column.modifier == "buckets":
            self._bucket(column)
        asm.store(STACK, at, FETCHED, 8)
        if asm.is_target(failed):
            done = asm.label()
            asm.jump(done)
            asm.place(failed)
            asm.store_number(STACK, at, 0, 8)
            asm.load(1, STACK, self._key, 8)
            asm.set(2, 1 << n)
            asm.compute("|", 1, 2)
            asm.store(STACK, self._key, 1, 8)
            asm.place(done)

    def _fetch(self, column: Column, failed: str) -> None:
        """Load into FETCHED the number that a column is made of, before its modifier is applied.

        Args:
            column: the column; it has a field.
            failed: label to go to where guest memory cannot be read.
        """
        field = column.field
        assert field is not None
        if field.number >= 0:
            self._w.number(self._event.args[field.number], failed)
        else:
            _COMMON[field.python](self._w)

    def _log2(self, column: Column) -> None:
        """Replace FETCHED by its logarithm to base 2, rounded up: the bits that the number
        (FETCHED - 1) has, as ftrace's .log2; by 0 where FETCHED is not above 0.

        Args:
            column: the column, whose field says whether FETCHED is signed.
        """
        asm = self._asm
        low = asm.label()
        done = asm.label()
        asm.jump_if_number("s<=" if column.signed else "==", FETCHED, 0, low)
        asm.compute_with("+", FETCHED, -1)
        asm.set(1, 0)
        for step in (32, 16, 8, 4, 2, 1):
            less = asm.label()
            asm.move(2, FETCHED)
            asm.compute_with(">>", 2, step)
            asm.jump_if_number("==", 2, 0, less)
            asm.move(FETCHED, 2)
            asm.compute_with("+", 1, step)
            asm.place(less)
        asm.compute("+", FETCHED, 1)
        asm.jump(done)
        asm.place(low)
        asm.set(FETCHED, 0)
        asm.place(done)

    def _bucket(self, column: Column) -> None:
        """Round FETCHED down to a multiple of the column's bucket width.

        Args:
            column: the column, with the width.
        """
        asm = self._asm
        down = asm.label()
        done = asm.label()
        if column.signed:
            asm.jump_if_number("s<", FETCHED, 0, down)
        asm.move(1, FETCHED)
        asm.compute_with("%", 1, column.buckets)
        asm.compute("-", FETCHED, 1)
        if column.signed:
            asm.jump(done)
            asm.place(down)
            asm.negate(FETCHED)
            asm.compute_with("+", FETCHED, column.buckets - 1)
            asm.move(1, FETCHED)
            asm.compute_with("%", 1, column.buckets)
            asm.compute("-", FETCHED, 1)
            asm.negate(FETCHED)
            asm.place(done)

    def _find(self) -> None:
        """Point _ENTRY at the entry of the key on the stack; make an entry of zeros where there is
        none.

        Where the map has no room for another entry, count the hit as dropped, and leave the
        histogram.
        """
        asm = self._asm
        there = asm.label()
        self._lookup()
        asm.jump_if_number("!=", 0, 0, there)
        for at in range(self._new, self._key, 8):
            asm.store_number(STACK, at, 0, 8)
        self._arguments()
        asm.move(3, STACK)
        asm.compute_with("+", 3, self._new)
        asm.set(4, NOEXIST)
        asm.call("map_update_elem")
        self._lookup()
        asm.jump_if_number("!=", 0, 0, there)
        self._count(_STATE, 8 * DROPPED)
        asm.jump(self._over)
        asm.place(there)
        asm.move(_ENTRY, 0)

    def _lookup(self) -> None:
        """Look up the key on the stack; r0 becomes the address of its entry, 0 where there is
        none.
        """
        self._arguments()
        self._asm.call("map_lookup_elem")

    def _arguments(self) -> None:
        """Load the arguments of a map helper: the map of entries into r1, the key's address into
        r2.
        """
        asm = self._asm
        asm.map(1, self._state + 1)
        asm.move(2, STACK)
        asm.compute_with("+", 2, self._key)

    def _count(self, base: int, at: int) -> None:
        """Add 1 to a 64-bit word in memory; r1 is overwritten.

        Args:
            base: number of the register that has an address.
            at: bytes from that address to the word.
        """
        asm = self._asm
        asm.load(1, base, at, 8)
        asm.compute_with("+", 1, 1)
        asm.store(base, at, 1, 8)

    def _add(self, n: int, column: Column) -> None:
        """Add a value to its sum in the entry; add nothing where guest memory cannot be read.

        Args:
            n: index of the sum in the entry, from 0.
            column: the column of the value; where it has no field, 1 is added.
        """
        asm = self._asm
        at = 8 * (1 + n)
        failed = asm.label()
        if column.field is None:
            return self._count(_ENTRY, at)
        self._fetch(column, failed)
        asm.load(1, _ENTRY, at, 8)
        asm.compute("+", 1, FETCHED)
        asm.store(_ENTRY, at, 1, 8)
        asm.place(failed)


def _called(w: Writer) -> None:
    """Append instructions that load into FETCHED the address of the function whose return is
    probed.

    Args:
        w: takes the instructions.
    """
    w.asm.move(1, CONTEXT)
    w.asm.call("get_func_ip")
    w.asm.move(FETCHED, 0)


def _time(w: Writer, unit: int) -> None:
    """Append instructions that load the host's time into FETCHED.

    Args:
        w: takes the instructions.
        unit: nanoseconds that one step of the time has.
    """
    w.asm.call("ktime_get_ns")
    w.asm.move(FETCHED, 0)
    if unit > 1:
        w.asm.compute_with("/", FETCHED, unit)


#: fields that are no arguments, by their Python -> what puts them into FETCHED; programs run where
#: there is one CPU, and no tasks
_COMMON: Final[Mapping[str, Callable[[Writer], None]]] = {
    "func": _called,
    "back": lambda w: w.context(FETCHED, PC),
    "regs.pc": lambda w: w.context(FETCHED, PC),
    "now()": lambda w: _time(w, 1),
    "now() // 1000": lambda w: _time(w, 1000),
    "pid(regs)": lambda w: w.asm.set(FETCHED, 0),
    "regs.cpu": lambda w: w.asm.set(FETCHED, 0),
}
