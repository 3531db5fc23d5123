"""Histograms: hits counted by the values of fields, printed as ftrace's `hist` files are."""

from __future__ import annotations

import math
import re
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import field, frozen

from ..arguments import SORTS, look
from ..errors import GuestFault
from ..machine._base import Machine
from ..regs import Regs
from ..stacks import MARK, addresses_of, is_incomplete
from ..symbols import CONTROLS, Symbols
from ._counts import DROPPED, HITS, PAUSED, Counted, CountTable
from ._event import locate
from ._filter import EventField, Filter
from ._plans import comm, pid

U64: Final = (1 << 64) - 1
SIZE: Final = 2048  #: entries, where nobody says
KEY_MODIFIERS: Final = (
    "hex",
    "sym",
    "sym-offset",
    "execname",
    "log2",
    "buckets",
    "stacktrace",
    "syscall",
    "usecs",
)
VALUE_MODIFIERS: Final = ("hex", "percent", "graph", "usecs")
_SYSCALL_TABLE: Final = "sys_call_table"
_UNKNOWN_SYSCALL: Final = "unknown_syscall"  # as ftrace prints it
CLOCK: Final = "mono"  #: of common_timestamp, by ftrace's name
#: common_timestamp, by its modifier; both are in _counting, too
TIMES: Final = {
    modifier: EventField("common_timestamp", -1, python, False)
    for modifier, python in (("", "now()"), ("usecs", "now() // 1000"))
}
#: of texts, which stand without quotes
_SHOWN: Final = CONTROLS | {ord("\\"): "\\\\"}
Get = Callable[[tuple[Any, ...], Regs, int, int], Any]


@frozen
class Column:
    """A key or a value of a histogram.

    Attributes:
        name: of the field, or "hitcount", "stacktrace".
        field: what it is made of; None: the hit count, or a stack.
        modifier: as written, without the dot; "": none.
        buckets: width of .buckets; 0 without.
    """

    name: str
    field: EventField | None
    modifier: str = ""
    buckets: int = 0

    def __str__(self) -> str:
        width = f"={self.buckets}" if self.buckets else ""
        return f"{self.name}{'.' if self.modifier else ''}{self.modifier}{width}"

    @property
    def text(self) -> bool:
        """Whether the column is text."""
        return self.field is not None and self.field.text

    @property
    def signed(self) -> bool:
        """Whether the column is a signed number."""
        return self.field is not None and self.field.signed

    def wrap(self, number: int) -> int:
        """Cut a sum or a key to 64 bits, which are a signed number where the column's field is
        signed.
        """
        number &= U64
        return number - (1 << 64) if self.signed and number >> 63 else number


@frozen
class SortKey:
    """The column that rows are sorted by.

    Attributes:
        column: a key or value; None: the hit count.
        descending: the greatest comes first.
    """

    column: Column | None
    descending: bool = False

    def __str__(self) -> str:
        return (
            f"{'hitcount' if self.column is None else self.column}{'.descending' * self.descending}"
        )


@frozen
class HistogramRow:
    """An entry of a histogram. row["name"] gives a key, a value, or "hitcount".

    Attributes:
        keys: by name; a key with .log2 is the exponent, one with .buckets where its bucket begins.
        hitcount: number of hits.
        values: sums by name.
    """

    keys: Mapping[str, Any]
    hitcount: int
    values: Mapping[str, int]
    _raw: tuple[tuple[Any, ...], list[int]] = field(repr=False, eq=False)

    def __getitem__(self, name: str) -> Any:
        """Return the number of hits for "hitcount"; else the key or the value of that name."""
        if name == "hitcount":
            return self.hitcount
        return self.keys[name] if name in self.keys else self.values[name]


class Histogram:
    """A hist trigger. Iterating gives its rows, sorted; str() is what ftrace prints.

    Attributes:
        name: histograms of one name share what is counted; "": none.
        keys: the columns that make an entry's key.
        values: the columns that are summed up.
        sort: what rows are sorted by, the most important first.
        size: entries at most.
        filter: which hits are counted; None: all.
    """

    def __init__(
        self,
        keys: Sequence[Column],
        values: Sequence[Column],
        sort: Sequence[SortKey],
        size: int,
        filter: Filter | None,
        symbols: Symbols,
        stack: Callable[[Regs], tuple[int, ...]],
        *,
        shows_count: bool = True,
        paused: bool = False,
        name: str = "",
        syscall: Callable[[int], str] | None = None,
    ) -> None:
        """Make an empty histogram.

        Args:
            keys: what makes an entry's key.
            values: what is summed up, besides the hit count.
            sort: what rows are sorted by, the most important first.
            size: entries at most.
            filter: which hits are counted; None: all.
            symbols: name addresses.
            stack: gives the stack of a hit, for keys that are stacks.
            shows_count: the hit count is printed.
            paused: no hits are counted until it is continued.
            name: histograms of one name share what is counted; "": none.
            syscall: names a system call by number; None: keys have no .syscall.
        """
        self.keys = tuple(keys)
        self.values = tuple(values)
        self.sort = tuple(sort)
        self.size = size
        self.filter = filter
        self._symbols = symbols
        self._shows_count = shows_count
        self.name = name
        self._syscall = syscall
        self._counted = Counted(paused)
        self._keys = [_getter(key, stack) for key in keys]
        self._values = [_getter(value, stack) for value in values]

    def hit(self, values: tuple[Any, ...], regs: Regs, caller: int, func: int) -> bool:
        """Count a hit, unless the histogram is paused or its filter keeps the hit out. Where there
        is no room for another key, count the hit in `dropped`.

        Args:
            values: the arguments' values.
            regs: the registers.
            caller: where a return event's function returns to; of an access to watched memory the
                instruction; 0 in others.
            func: the probed address.

        Returns:
            False, always: the record needs no stack for this trigger.
        """
        counted = self._counted
        table, state = counted.table, counted.words
        if state[PAUSED] or (
            self.filter is not None and not self.filter.keep(values, regs, caller, func)
        ):
            return False
        key = tuple([get(values, regs, caller, func) for get in self._keys])
        if table is not None:  # another place, or another event of the name, runs a program
            counts = [1, *[get(values, regs, caller, func) or 0 for get in self._values]]
            what = HITS if table.add(key, counts) else DROPPED
            state[what] = state[what] + 1 & U64  # of a guest, which may have written over it
            return False
        entry = counted.entries.get(key)
        if entry is None:
            if len(counted.entries) >= self.size:
                state[DROPPED] += 1
                return False
            entry = counted.entries[key] = [0] * (1 + len(self._values))
        state[HITS] += 1
        entry[0] += 1
        for n, get in enumerate(self._values, 1):
            entry[n] += get(values, regs, caller, func) or 0
        return False

    @property
    def hits(self) -> int:
        """The number of hits that were counted."""
        return int(self._counted.words[HITS])

    @property
    def dropped(self) -> int:
        """The number of hits that were not counted, as there were too many entries."""
        return int(self._counted.words[DROPPED])

    @property
    def paused(self) -> bool:
        """Whether no hits are counted at present."""
        return bool(self._counted.words[PAUSED])

    @paused.setter
    def paused(self, on: bool) -> None:
        """Stop counting hits where `on` is true, else count them (again)."""
        look("paused", on, SORTS["bool"])
        self._counted.words[PAUSED] = int(on)

    def lend(self) -> CountTable:
        """Move what was counted into a table in which an event's programs count, and return the
        table.

        Each call is ended by a call of give_back().
        """
        counted = self._counted
        if counted.table is None:
            table = CountTable([key.wrap for key in self.keys], len(self.values), self.size)
            table.words[:] = array("Q", counted.state)
            for key, counts in self._rows().items():
                table.add(key, counts)
            counted.table = table
            counted.entries = {}
        counted.borrowers += 1
        return counted.table

    def give_back(self) -> None:
        """End one lend(). After the last one move the counts back: Python alone counts again."""
        counted = self._counted
        counted.borrowers -= 1
        if not counted.borrowers:
            counted.entries = self._rows()
            counted.state = list(counted.words)
            counted.table = None

    def share(self, other: Histogram) -> bool:
        """Count from now on in the counts of another histogram of the same name, and take over its
        size and whether the hit count is printed.

        Args:
            other: the histogram that is there already.

        Returns:
            False: the other one has other columns, or is sorted otherwise; nothing has changed.
        """
        mine, theirs = (
            [(str(c), c.text, c.signed, c.field and c.field.bits) for c in (*h.keys, *h.values)]
            + [*map(str, h.sort)]
            for h in (self, other)
        )
        if mine == theirs and len(self.keys) == len(other.keys):
            self._counted = other._counted
            self.size = other.size
            self._shows_count = other._shows_count
            return True
        return False

    def clear(self) -> None:
        """Forget all that was counted, for all histograms that share these counts; a paused one
        stays paused.
        """
        counted = self._counted
        counted.entries.clear()
        if counted.table is not None:
            counted.table.entries.clear()
        counted.words[HITS] = counted.words[DROPPED] = 0

    def _rows(self) -> dict[tuple[Any, ...], list[int]]:
        """Return key -> hit count, and sums as 64 bits hold them."""
        counted = (
            self._counted.entries if self._counted.table is None else self._counted.table.rows()
        )
        return {
            key: [hits, *[column.wrap(n) for column, n in zip(self.values, sums, strict=True)]]
            for key, (hits, *sums) in counted.items()
        }

    def __iter__(self) -> Iterator[HistogramRow]:
        """Yield the rows, sorted by `sort`."""
        rows = [
            HistogramRow(
                {c.name: _shown(c, v) for c, v in zip(self.keys, key, strict=True)},
                entry[0],
                {str(c): n for c, n in zip(self.values, entry[1:], strict=True)},
                (key, entry),
            )
            for key, entry in self._rows().items()
        ]
        for sort in reversed(self.sort):
            rows.sort(key=self._order(sort), reverse=sort.descending)
        return iter(rows)

    def __len__(self) -> int:
        return len(
            self._counted.entries if self._counted.table is None else self._counted.table.entries
        )

    def _order(self, sort: SortKey) -> Callable[[HistogramRow], Any]:
        """Return the function from a row to what it is sorted by, for `sorted(key=...)`."""
        column = sort.column
        if column in self.keys and column not in self.values:
            at = self.keys.index(column)
            return lambda row: row._raw[0][at] or ("" if column.text else 0)
        at = 0 if column is None else 1 + self.values.index(column)
        return lambda row: row._raw[1][at]

    # --- as text

    @property
    def text(self) -> str:
        """The trigger as ftrace prints it: its parameters, its filter, and whether it is paused."""
        values = [*(["hitcount"] if self._shows_count else []), *map(str, self.values)]
        clock = (
            f":clock={CLOCK}"
            if any(c.field in TIMES.values() for c in (*self.keys, *self.values))
            else ""
        )
        name = f"name={self.name}:" if self.name else ""
        condition = f" if {self.filter.text}" if self.filter else ""
        return (
            f"hist:{name}keys={','.join(map(str, self.keys))}:vals={','.join(values)}"
            f":sort={','.join(map(str, self.sort))}:size={self.size}{clock}"
            f"{'' if self._shows_count else ':nohitcount'}{condition}"
            f" [{'paused' if self.paused else 'active'}]"
        )

    def __str__(self) -> str:
        """Return the text of ftrace's file `hist`: the trigger, the rows, and the totals."""
        sums = [(sum(column), max(column)) for column in zip(*self._rows().values(), strict=True)]
        rows = "".join(self._line(row, sums) for row in self)
        return (
            f"# event histogram\n#\n# trigger info: {self.text}\n#\n\n{rows}\n"
            f"Totals:\n    Hits: {self.hits}\n    Entries: {len(self)}\n    Dropped: "
            f"{self.dropped}\n"
        )

    def __repr__(self) -> str:
        return f"<Histogram {self.text}: {len(self)} entries, {self.hits} hits>"

    def _line(self, row: HistogramRow, sums: Sequence[tuple[int, int]]) -> str:
        """Return the line that ftrace prints for a row, with its newline.

        Args:
            row: of this histogram.
            sums: (total, greatest value) over all rows, for percentages and graphs: of the hit
                count first, then of each of `values`.
        """
        key, entry = row._raw
        keys = ", ".join(
            self._key(column, value) for column, value in zip(self.keys, key, strict=True)
        )
        count = [f" hitcount: {entry[0]:10}"] if self._shows_count else []
        values = [
            f" {_value(column, entry[n] & U64, *sums[n])}"
            for n, column in enumerate(self.values, 1)
        ]
        return f"{{ {keys}{'' if keys.endswith(chr(10)) else ' '}}}{''.join([*count, *values])}\n"

    def _key(self, column: Column, value: Any) -> str:
        """Return one column of a row's key as ftrace prints it: its name, then the value.

        Args:
            column: the column.
            value: a number, a text, (pid, name) of a task, or the addresses of a stack; None:
                memory could not be read, which is shown as "(fault)" for a text, else as 0.
        """
        name = f"{column.name}: "
        if column.field is None or column.modifier == "stacktrace":
            return f"{column.name}:\n" + "".join(
                f"         {locate(self._symbols, address)}\n" for address in value
            )
        if column.text:
            return f"{name}{'(fault)' if value is None else value.translate(_SHOWN):<50}"
        if column.modifier == "execname":
            return f"{name}{value[1].translate(_SHOWN):<16}[{value[0]:10}]"
        if self._syscall is not None and column.modifier == "syscall":
            called = self._syscall(int(value or 0) & U64).translate(_SHOWN)
            return f"{name}{called:<30}[{int(value or 0) & U64:3}]"
        return name + self._number(column, int(value or 0) & U64)

    def _number(self, column: Column, number: int) -> str:
        """Return a number of a key as ftrace prints it with its column's modifier; without one,
        decimal and unsigned.

        Args:
            column: the column, with modifier "hex", "sym", "sym-offset", "log2", "buckets" or none.
            number: of 64 bits, unsigned; of "log2" the exponent.
        """
        found = self._symbols.covering(number)
        plain = hex(number) if found is None else found.name.translate(_SHOWN)
        return {
            "hex": f"{number:x}",
            "sym": f"[{number:x}] {plain:<45}",
            "sym-offset": f"[{number:x}] {locate(self._symbols, number):<55}",
            "log2": f"~ 2^{number:<2}",
            "buckets": f"~ {number}-{number + column.buckets - 1}",
        }.get(column.modifier, f"{number:10}")


def _value(column: Column, value: int, total: int, most: int) -> str:
    """Return a sum as ftrace prints it, with its name; "[ERROR]" in its place where a share is
    wanted of a total of 0.

    Args:
        column: the value's column.
        value: the sum.
        total: the sum over all rows, for .percent.
        most: the greatest one, for .graph.
    """
    if column.modifier == "percent":
        part = _percentage(value, total)
        return (
            f" {column.name} (%):[ERROR]"
            if part is None
            else f" {column.name} (%): {part // 100:3}.{part % 100:02}"
        )
    if column.modifier == "graph":
        part = _percentage(value, most)
        return (
            f" {column.name}: {'[ERROR]':>20}"
            if part is None
            else f" {column.name}: {'#' * (part * 20 // 10000):<20}"
        )
    return (
        f" {column.name}: {value:10x}"
        if column.modifier == "hex"
        else f" {column.name}: {value:10}"
    )


def _percentage(value: int, total: int) -> int | None:
    """Return the share of a value in a total, in hundredths of a percent.

    Args:
        value: the value.
        total: the total.

    Returns:
        The share; None: the total is 0 and the value is not.
    """
    if total > 0:
        return value * 10000 // total
    return None if value else 0


def _getter(column: Column, stack: Callable[[Regs], tuple[int, ...]]) -> Get:
    """Return the function of (arguments' values, registers, return address, probed address) that
    gives a column's value at a hit; of keys with buckets, the bucket. The value is None where
    memory could not be read.

    Args:
        column: the column.
        stack: function from the registers at a hit to the call stack, for a key that is a stack.
    """
    if column.field is None:
        return (
            (lambda v, regs, back, func: 1)
            if column.name == "hitcount"
            else (lambda v, regs, back, func: stack(regs))
        )
    argument = f"v[{column.field.number}]"
    python = column.field.python.format(argument)
    if column.modifier == "log2":
        python = f"max({python} - 1, 0).bit_length()"
    elif column.modifier == "buckets":
        python = f"({python} - {python} % {column.buckets})"
    elif column.modifier == "execname":
        python = f"({python}, comm(regs))"
    guarded = f"None if {argument} is None else {python}" if column.field.number >= 0 else python
    # our own text: numbers, and names of ours
    names = {"comm": comm, "pid": pid, "now": time.monotonic_ns}
    return eval(f"lambda v, regs, back, func: {guarded}", names)  # type: ignore[no-any-return]


def _shown(column: Column, value: Any) -> Any:
    """Return a column's value as a HistogramRow has it.

    Args:
        column: the column.
        value: as it is counted; of a task only the number is returned, and an incomplete stack ends
            with the mark MARK.
    """
    if column.modifier == "execname":
        return value[0]
    if isinstance(value, tuple) and is_incomplete(value):
        return (*addresses_of(value), MARK)
    return value


def power_of_two(text: str) -> int:
    """Return the size that a text is, rounded up to a power of two, as ftrace does.

    0 for a text that is no decimal number from 1 to 131072.
    """
    number = int(text) if re.fullmatch("[0-9]{1,6}", text) else 0
    return 1 << max(number - 1, 0).bit_length() if 0 < number <= 131072 else 0


def syscall_names(machine: Machine) -> Callable[[int], str] | None:
    """Return a function from a system call's number to its name ("sys_read").

    Args:
        machine: the guest, a kernel: the function reads the table of system calls in its memory.

    Returns:
        None: the guest's symbols have no table of system calls.
    """
    table = machine.symbols.find(_SYSCALL_TABLE)
    if table is None:
        return None
    word = machine.arch.bits // 8
    end = machine.symbols.extent(table) or math.inf

    def name(number: int) -> str:
        """Return a system call's name, read from the guest's table; "unknown_syscall": it has
        none.
        """
        at = table.address + number * word
        if at + word > end:
            return _UNKNOWN_SYSCALL
        try:
            address = int.from_bytes(machine.read(at, word), machine.arch.order.value)
        except GuestFault:
            return _UNKNOWN_SYSCALL
        function = machine.symbols.covering(address)
        found = (
            re.search("sys_(?!ni_syscall)[a-z0-9_]+$", function.name)
            if function is not None
            else None
        )
        return found[0] if found else _UNKNOWN_SYSCALL

    return name
