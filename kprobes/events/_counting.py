"""Histograms that an event's eBPF program counts: the instructions for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ..programs import isa
from ..programs.context import PC
from ..programs.isa import lddw
from ..programs.maps import NOEXIST, Array, Map, MapType, Spec
from ._counts import DROPPED, HITS, PAUSED
from ._event import Event
from ._hist import Column, Histogram
from ._writer import Part, Writer

COLUMNS: Final = 56  #: keys and values that the stack has room for
_TEMPORARY: Final = 16  # bytes at the stack's end that the writer uses
_LOOKUP = 1
_UPDATE = 2
_TIME = 5
_FUNC_IP = 173
_NO_KEYS: Final = ("execname", "stacktrace")


def why_not(hist: Histogram) -> str:
    """Return why a histogram needs Python, as one clause; "" where a program can count it."""
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
        return [Counting(event, hist, n, first + 2 * n) for n, hist in enumerate(self._hists)]

    def give_back(self) -> None:
        """Move what programs have counted back to Python, which counts the histograms again."""
        for hist in self._hists:
            hist.give_back()


class Counting:
    """Writer of the eBPF instructions by which a program counts a hit in one histogram (a Part of
    events._writer: called with the Writer, it appends them).

    Each method appends the instructions that do what its first line says; the program does it at a
    hit. In the program r6 is the context, r7 the histogram's entry, r8 the histogram's state (the
    words PAUSED, HITS and DROPPED). "Load into r3" fetches a number. The key is built on the stack:
    a word of fault bits, then a word for each column.
    """

    _w: Writer

    def __init__(self, event: Event, hist: Histogram, number: int, state: int) -> None:
        """Prepare; instructions are appended when the object is called.

        Args:
            event: the event, whose arguments are counted.
            hist: the histogram.
            number: index of the histogram among those of the program, which makes labels unique.
            state: number of the map with the histogram's state, among the program's maps; the next
                map has its entries.
        """
        self._event = event
        self._hist = hist
        self._number = number
        self._state = state
        self._key = -_TEMPORARY - 8 * (1 + len(hist.keys))
        self._new = self._key - 8 * (1 + len(hist.values))

    def __call__(self, w: Writer) -> None:
        """Append the instructions to a program."""
        self._w, over = w, self._name("over")
        w.code += lddw(8, self._state, isa.MAP_VALUE, 0)
        w.op(isa.MEM | isa.DW | isa.LDX, 1, 8, 8 * PAUSED)
        w.jump(isa.JNE | isa.JMP, over, 1)
        w.passes(self._event, self._hist.filter, over)
        w.op(isa.MEM | isa.DW | isa.ST, 10, 0, self._key)
        for n, column in enumerate(self._hist.keys):
            self._part(n, column)
        self._find()
        self._count(8, 8 * HITS)
        self._count(7, 0)
        for n, column in enumerate(self._hist.values):
            self._add(n, column)
        w.label(over)

    def _name(self, text: str) -> str:
        """Return the name of a label, made of `text`, that no other histogram of the program
        has.
        """
        return f"histogram {self._number} {text}"

    def _part(self, n: int, column: Column) -> None:
        """Compute a word of the key and store it on the stack.

        Where guest memory cannot be read, the word is 0 and the column's fault bit is set.

        Args:
            n: index of the column in the key, from 0.
            column: the column of the key, with its modifier.
        """
        w = self._w
        at = self._key + 8 * (1 + n)
        failed = self._name(f"no key {n}")
        done = self._name(f"key {n}")
        self._fetch(column, failed)
        if column.modifier == "log2":
            self._log2(n, column)
        elif column.modifier == "buckets":
            self._bucket(n, column)
        w.op(isa.MEM | isa.DW | isa.STX, 10, 3, at)
        if w.jumps_to(failed):
            w.jump(isa.JA | isa.JMP, done)
            w.label(failed)
            w.op(isa.MEM | isa.DW | isa.ST, 10, 0, at)
            w.op(isa.MEM | isa.DW | isa.LDX, 1, 10, self._key)
            w.code += lddw(2, 1 << n)
            w.op(isa.OR | isa.X | isa.ALU64, 1, 2)
            w.op(isa.MEM | isa.DW | isa.STX, 10, 1, self._key)
            w.label(done)

    def _fetch(self, column: Column, failed: str) -> None:
        """Load into r3 the number that a column is made of, before its modifier is applied.

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

    def _log2(self, n: int, column: Column) -> None:
        """Replace r3 by its logarithm to base 2, rounded up: the bits that the number (r3 - 1) has,
        as ftrace's .log2; by 0 where r3 is not above 0.

        Args:
            n: index of the column in the key, which makes labels unique.
            column: the column, whose field says whether r3 is signed.
        """
        w = self._w
        low = self._name(f"low {n}")
        done = self._name(f"log2 {n}")
        w.jump((isa.JSLE if column.signed else isa.JEQ) | isa.JMP, low, 3)
        w.op(isa.ADD | isa.ALU64, 3, imm=-1)
        w.op(isa.MOV | isa.ALU64, 1)
        for step in (32, 16, 8, 4, 2, 1):
            less = self._name(f"below {step} {n}")
            w.op(isa.MOV | isa.X | isa.ALU64, 2, 3)
            w.op(isa.RSH | isa.ALU64, 2, imm=step)
            w.jump(isa.JEQ | isa.JMP, less, 2)
            w.op(isa.MOV | isa.X | isa.ALU64, 3, 2)
            w.op(isa.ADD | isa.ALU64, 1, imm=step)
            w.label(less)
        w.op(isa.ADD | isa.X | isa.ALU64, 3, 1)
        w.jump(isa.JA | isa.JMP, done)
        w.label(low)
        w.op(isa.MOV | isa.ALU64, 3)
        w.label(done)

    def _bucket(self, n: int, column: Column) -> None:
        """Round r3 down to a multiple of the column's bucket width.

        Args:
            n: index of the column in the key, which makes labels unique.
            column: the column, with the width.
        """
        w = self._w
        down = self._name(f"negative {n}")
        done = self._name(f"bucket {n}")
        if column.signed:
            w.jump(isa.JSLT | isa.JMP, down, 3)
        w.op(isa.MOV | isa.X | isa.ALU64, 1, 3)
        w.op(isa.MOD | isa.ALU64, 1, imm=column.buckets)
        w.op(isa.SUB | isa.X | isa.ALU64, 3, 1)
        if column.signed:
            w.jump(isa.JA | isa.JMP, done)
            w.label(down)
            w.op(isa.NEG | isa.ALU64, 3)
            w.op(isa.ADD | isa.ALU64, 3, imm=column.buckets - 1)
            w.op(isa.MOV | isa.X | isa.ALU64, 1, 3)
            w.op(isa.MOD | isa.ALU64, 1, imm=column.buckets)
            w.op(isa.SUB | isa.X | isa.ALU64, 3, 1)
            w.op(isa.NEG | isa.ALU64, 3)
            w.label(done)

    def _find(self) -> None:
        """Point r7 at the entry of the key on the stack; make an entry of zeros where there is
        none.

        Where the map has no room for another entry, count the hit as dropped, and leave the
        histogram.
        """
        w = self._w
        there = self._name("there")
        self._lookup()
        w.jump(isa.JNE | isa.JMP, there, 0)
        for at in range(self._new, self._key, 8):
            w.op(isa.MEM | isa.DW | isa.ST, 10, 0, at)
        self._arguments()
        w.op(isa.MOV | isa.X | isa.ALU64, 3, 10)
        w.op(isa.ADD | isa.ALU64, 3, imm=self._new)
        w.op(isa.MOV | isa.ALU64, 4, imm=NOEXIST)
        w.op(isa.CALL | isa.JMP, imm=_UPDATE)
        self._lookup()
        w.jump(isa.JNE | isa.JMP, there, 0)
        self._count(8, 8 * DROPPED)
        w.jump(isa.JA | isa.JMP, self._name("over"))
        w.label(there)
        w.op(isa.MOV | isa.X | isa.ALU64, 7, 0)

    def _lookup(self) -> None:
        """Look up the key on the stack; r0 becomes the address of its entry, 0 where there is
        none.
        """
        self._arguments()
        self._w.op(isa.CALL | isa.JMP, imm=_LOOKUP)

    def _arguments(self) -> None:
        """Load the arguments of a map helper: the map of entries into r1, the key's address into
        r2.
        """
        w = self._w
        w.code += lddw(1, self._state + 1, isa.MAP, 0)
        w.op(isa.MOV | isa.X | isa.ALU64, 2, 10)
        w.op(isa.ADD | isa.ALU64, 2, imm=self._key)

    def _count(self, base: int, at: int) -> None:
        """Add 1 to a 64-bit word in memory; r1 is overwritten.

        Args:
            base: number of the register that has an address.
            at: bytes from that address to the word.
        """
        w = self._w
        w.op(isa.MEM | isa.DW | isa.LDX, 1, base, at)
        w.op(isa.ADD | isa.ALU64, 1, imm=1)
        w.op(isa.MEM | isa.DW | isa.STX, base, 1, at)

    def _add(self, n: int, column: Column) -> None:
        """Add a value to its sum in the entry at r7; add nothing where guest memory cannot be read.

        Args:
            n: index of the sum in the entry, from 0.
            column: the column of the value; where it has no field, 1 is added.
        """
        w = self._w
        failed = self._name(f"no value {n}")
        if column.field is None:
            return self._count(7, 8 * (1 + n))
        self._fetch(column, failed)
        w.op(isa.MEM | isa.DW | isa.LDX, 1, 7, 8 * (1 + n))
        w.op(isa.ADD | isa.X | isa.ALU64, 1, 3)
        w.op(isa.MEM | isa.DW | isa.STX, 7, 1, 8 * (1 + n))
        w.label(failed)


def _called(w: Writer) -> None:
    """Append instructions that load into r3 the address of the function whose return is probed.

    Args:
        w: takes the instructions.
    """
    w.op(isa.MOV | isa.X | isa.ALU64, 1, 6)
    w.op(isa.CALL | isa.JMP, imm=_FUNC_IP)
    w.op(isa.MOV | isa.X | isa.ALU64, 3, 0)


def _time(w: Writer, unit: int) -> None:
    """Append instructions that load the host's time into r3.

    Args:
        w: takes the instructions.
        unit: nanoseconds that one step of the time has.
    """
    w.op(isa.CALL | isa.JMP, imm=_TIME)
    w.op(isa.MOV | isa.X | isa.ALU64, 3, 0)
    if unit > 1:
        w.op(isa.DIV | isa.ALU64, 3, imm=unit)


#: fields that are no arguments, by their Python -> what puts them into r3; programs run where there
#: is one CPU, and no tasks
_COMMON: Final[Mapping[str, Callable[[Writer], None]]] = {
    "func": _called,
    "back": lambda w: w.context(3, PC),
    "regs.pc": lambda w: w.context(3, PC),
    "now()": lambda w: _time(w, 1),
    "now() // 1000": lambda w: _time(w, 1000),
    "pid(regs)": lambda w: w.op(isa.MOV | isa.ALU64, 3),
    "regs.cpu": lambda w: w.op(isa.MOV | isa.ALU64, 3),
}
