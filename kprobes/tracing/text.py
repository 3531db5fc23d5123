"""A trace as text: ftrace's, JSON lines, CSV.

Lines are written some thousands at a time: of each event that occurs there is one template, which
`%` fills from columns. What is no plain number is made a text once for each value that is
different.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, Final

from ..events._styles import Type, Value
from ..events._text import HEAD, task_column
from .batches import Batch, EventColumns
from .clocks import COUNTER, COUNTS
from .info import EventInfo, Field

if TYPE_CHECKING:
    from .trace import Trace

MOST_TEXTS: Final = 1 << 16  #: values that are kept with their text

#: (template of one column, its values; None: the template is text without any)
Column = tuple[str, "Sequence[Any] | None"]


def write(trace: Trace, file: IO[str], format: str) -> None:
    """Write a text file.

    Args:
        trace: the records.
        file: takes the text.
        format: "ftrace" (the kernel's `trace` file, its clock "counter", or "local" where there are
            times in ns), "jsonl" or "csv".
    """
    lines = _LINES[format](trace)
    file.write(lines.head())
    for batch in trace.batches():
        file.write("".join(lines.of(batch)))


class _Known(dict[Any, str]):
    """Dictionary value -> its text, made once by a function when it is asked for.

    When there are some ten thousand texts it begins anew.
    """

    def __init__(self, text: Callable[[Any], str]) -> None:
        """Begin without texts. text: the function that makes the text of a value."""
        super().__init__()
        self._text = text

    def __missing__(self, value: Any) -> str:
        """Make the text of a value, and keep it."""
        if len(self) > MOST_TEXTS:
            self.clear()
        text = self[value] = self._text(value)
        return text


class _Lines:
    """The lines of a trace in one format: what all formats have in common.

    Args:
        trace: the records.
        task: a task -> its text.
    """

    def __init__(self, trace: Trace, task: Callable[[Any], str]) -> None:
        """Prepare.

        Args:
            trace: the records.
            task: function from a task to its text.
        """
        self._trace = trace
        self._tasks = _Known(lambda number: task(trace.source.tasks[number]))
        self._known: dict[Type, _Known] = {}

    def head(self) -> str:
        """Return the text above the lines."""
        return ""

    def of(self, batch: Batch) -> Sequence[str]:
        """Return the lines of a batch's records, in their order."""
        rows = [""] * len(batch)
        for part in batch.parts:
            for places, columns in self._alike(batch, part):
                template = "".join([text for text, _ in columns])
                filled = map(
                    template.__mod__,
                    zip(*[each for _, each in columns if each is not None], strict=True),
                )
                if len(places) == len(rows):
                    return [*filled]
                for place, row in zip(places, filled, strict=True):
                    rows[place] = row
        return rows

    def _alike(
        self, batch: Batch, part: EventColumns
    ) -> Iterator[tuple[Sequence[int], list[Column]]]:
        """Yield groups of a part's records for which one template does.

        Args:
            batch: the records of all events.
            part: those of one event.

        Yields:
            (indices of the group's records in the batch, the columns of their lines).
        """
        yield part.places, self._columns(self._trace.events[part.event], batch, part)

    def _columns(self, info: EventInfo, batch: Batch, part: EventColumns) -> list[Column]:
        """Return the pieces of text that the lines of one event's records consist of, from left to
        right.

        Args:
            info: the event.
            batch: the records of all events.
            part: those of this event.

        Returns:
            For each piece (text with a %-format, a value for each record that fills the format), or
            (text without a format, None) for what is the same in all lines.
        """
        raise NotImplementedError

    def _text(self, value: Any, type: Type) -> str:
        """Return the text of an argument's value that is no plain number."""
        raise NotImplementedError

    def _number(self, type: Type) -> str:
        """Return the %-format of plain numbers of a type; here the same for all types."""
        return "%d"

    def _argument(self, field: Field, values: Sequence[Value]) -> Column:
        """Return the column of an argument: a %-format, and the numbers or texts that fill it.

        Args:
            field: the argument.
            values: its value in each record; None: memory could not be read.
        """
        type = field.type
        if not field.text and not type.count and None not in values:
            return self._number(type), values
        if type.is_ambiguous:  # -0.0 equals 0.0, and 1 equals 1.0: each has its own text
            return "%s", [self._text(value, type) for value in values]
        known = self._known.get(type)
        if known is None:
            known = self._known[type] = _Known(lambda value: self._text(value, type))
        return "%s", [known[value] for value in values]

    def _times(self, batch: Batch, places: Sequence[int]) -> Sequence[int]:
        """Return the time of some records; without a clock the numbers of the records.

        Args:
            batch: the records.
            places: indices of the wanted records in the batch.
        """
        return _at(batch.seqs if self._trace.clock == COUNTER else batch.times, places)

    def _task_texts(self, batch: Batch, places: Sequence[int]) -> list[str]:
        """Return the text of the task of some records.

        Args:
            batch: the records.
            places: indices of the wanted records in the batch.
        """
        return [self._tasks[number] for number in _at(batch.tasks, places)]


def _at(column: Sequence[Any], places: Sequence[int]) -> Sequence[Any]:
    """Return the values of a column at some indices.

    Args:
        column: a value for each record.
        places: indices into `column`, in ascending order.
    """
    return column if len(places) == len(column) else [column[place] for place in places]


def _fixed(text: str) -> str:
    """Return a text so that `%` leaves it as it is in a template."""
    return text.replace("%", "%%")


# --- ftrace


class _FtraceLines(_Lines):
    """Writes the lines of the kernel's `trace` file."""

    def __init__(self, trace: Trace) -> None:
        """Prepare. trace: the records."""
        super().__init__(trace, task_column)
        self._stacks = _Known(
            lambda stack: "".join([f" => {name}\n" for name in trace.names(stack)])
        )
        self._places: dict[int, _Known] = {}

    def head(self) -> str:
        """Return the lines that the kernel writes above records."""
        there = len(self._trace)
        return HEAD.format(there, there + self._trace.lost)

    def _alike(
        self, batch: Batch, part: EventColumns
    ) -> Iterator[tuple[Sequence[int], list[Column]]]:
        """Yield the records of a part that have a stack, then those without: a template for each.

        Args:
            batch: the records of all events.
            part: those of one event.

        Yields:
            (indices of the records in the batch, the columns of their lines).
        """
        info = self._trace.events[part.event]
        deep = [n for n, stack in enumerate(part.stacks) if stack]
        if not deep or len(deep) == len(part.places):
            yield part.places, self._columns(info, batch, part)
            return
        without = [n for n, stack in enumerate(part.stacks) if not stack]
        for which in (deep, without):
            some = EventColumns(
                part.event,
                _at(part.places, which),
                _at(part.callers, which),
                [_at(column, which) for column in part.values],
                _at(part.stacks, which),
            )
            yield some.places, self._columns(info, batch, some)

    def _columns(self, info: EventInfo, batch: Batch, part: EventColumns) -> list[Column]:
        """Return the columns of a line of `trace`: task, processor, time, place, arguments, stack.

        Args:
            info: the event.
            batch: the records of all events.
            part: those of this event; either all have a stack, or none has.
        """
        head = self._head(batch, part.places)
        columns = [*head, self._place(info, part)]
        for field, values in zip(info.fields, part.values, strict=True):
            form, column = self._argument(field, values)
            columns.append((f" {_fixed(field.name)}={form}", column))
        columns.append(("\n", None))
        if any(part.stacks):
            columns += [
                *head,
                ("<stack trace>\n", None),
                ("%s", [self._stacks[stack] for stack in part.stacks]),
            ]
        return columns

    def _head(self, batch: Batch, places: Sequence[int]) -> list[Column]:
        """Return the columns at the beginning of a line: the task, the processor, the time.

        Args:
            batch: the records of all events.
            places: indices of the wanted records in the batch.
        """
        times = self._times(batch, places)
        columns: list[Column] = [
            ("%s", self._task_texts(batch, places)),
            (" [%03d] ..... ", _at(batch.cpus, places)),
        ]
        if self._trace.clock in COUNTS:
            return [*columns, ("%12d: ", times)]
        seconds = [time // 1_000_000_000 for time in times]
        return [
            *columns,
            ("%5d", seconds),
            (".%06d: ", [time // 1000 % 1_000_000 for time in times]),
        ]

    def _place(self, info: EventInfo, part: EventColumns) -> Column:
        """Return the column `NAME: (PLACE)`: the event's name and where the hit was.

        A probe has one place. A return event has another one for each address that it returns to,
        and a watchpoint for each instruction that accesses the data.

        Args:
            info: the event.
            part: its records in a batch.
        """
        name = _fixed(info.name)
        if info.kind == "p":
            return f"{name}: ({_fixed(info.place(''))})", None
        known = self._places.get(part.event)
        if known is None:
            known = self._places[part.event] = _Known(
                lambda caller: info.place(self._trace.name(caller))
            )
        return f"{name}: (%s)", [known[caller] for caller in part.callers]

    def _text(self, value: Any, type: Type) -> str:
        """Return the text of an argument's value as ftrace prints it."""
        return type.show(value)

    def _number(self, type: Type) -> str:
        """Return the %-format of numbers of a type as ftrace prints them."""
        return "%#x" if type.is_hexadecimal else "%d"


# --- JSON lines


class _JsonLines(_Lines):
    """Writes a JSON object for each record: event, seq, cpu, task, time, caller with its name as
    "to", args, and stack (as symbols) with its source lines.
    """

    def __init__(self, trace: Trace) -> None:
        """Prepare. trace: the records."""
        super().__init__(
            trace, lambda task: json.dumps(task if isinstance(task, int) else str(task))
        )
        self._callers = _Known(
            lambda caller: f'"caller": {caller}, "to": {json.dumps(trace.name(caller))}, '
        )
        self._stacks = _Known(self._stack)

    def _columns(self, info: EventInfo, batch: Batch, part: EventColumns) -> list[Column]:
        """Return the columns of a record's JSON object.

        Its members are event, seq, cpu, task, time, caller with its name as "to", args and stack
        with lines. Time is there if the trace has a clock, caller for events that are no plain
        probes.

        Args:
            info: the event.
            batch: the records of all events.
            part: those of this event.
        """
        places = part.places
        columns: list[Column] = [
            (f'{{"event": {_fixed(json.dumps(info.name))}', None),
            (', "seq": %d', _at(batch.seqs, places)),
            (', "cpu": %d', _at(batch.cpus, places)),
            (', "task": %s, ', self._task_texts(batch, places)),
        ]
        if self._trace.timed:
            columns.append(('"time": %d, ', _at(batch.times, places)))
        if info.kind != "p":
            columns.append(("%s", [self._callers[caller] for caller in part.callers]))
        columns.append(('"args": {', None))
        # of arguments of one name, which only a damaged file has, the last one counts
        last = {field.name: n for n, field in enumerate(info.fields)}
        separator = ""
        for name, n in last.items():
            form, column = self._argument(info.fields[n], part.values[n])
            columns.append((f"{separator}{_fixed(json.dumps(name))}: {form}", column))
            separator = ", "
        columns.append(("}", None))
        if any(part.stacks):
            columns.append(("%s", [self._stacks[stack] for stack in part.stacks]))
        columns.append(("}\n", None))
        return columns

    def _stack(self, stack: tuple[int, ...]) -> str:
        """Return the members "stack" (names) and "lines" (source lines; left out where none is
        known) of a JSON object, each behind a comma; "" for an empty stack.
        """
        if not stack:
            return ""
        lines = self._trace.lines(stack)
        names = f', "stack": {json.dumps(self._trace.names(stack))}'
        return (
            f'{names}, "lines": {json.dumps([line or None for line in lines])}'
            if any(lines)
            else names
        )

    def _text(self, value: Any, type: Type) -> str:
        """Return an argument's value as JSON."""
        return json.dumps(for_json(value))


def for_json(value: Any) -> Any:
    """Return a value without the numbers that JSON has no words for (infinity, NaN), which become
    texts.

    Tuples become lists, and dicts are converted member by member; any other value is returned as it
    is.
    """
    if isinstance(value, tuple):
        return [for_json(each) for each in value]
    if isinstance(value, dict):
        return {name: for_json(each) for name, each in value.items()}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


# --- CSV


class _CsvLines(_Lines):
    """Writes one table with a column for each argument, as Trace.to_arrow() has them; what an event
    does not have is empty.
    """

    def __init__(self, trace: Trace) -> None:
        """Prepare. trace: the records, whose arguments become columns."""
        from .columns import names_of

        super().__init__(trace, lambda task: _cell("" if task is None else str(task)))
        self._callers = _Known(lambda caller: _cell(trace.name(caller)))
        self._stacks = _Known(lambda stack: _cell(" ".join(trace.names(stack))))
        self._arguments = names_of(trace.events)
        self._names = [*dict.fromkeys(name for names in self._arguments for name in names)]

    def head(self) -> str:
        """Return the line with the names of the columns."""
        time = ["time"] if self._trace.timed else []
        return (
            ",".join(
                map(_cell, ["seq", "event", "cpu", "task", *time, "caller", "stack", *self._names])
            )
            + "\n"
        )

    def _columns(self, info: EventInfo, batch: Batch, part: EventColumns) -> list[Column]:
        """Return the columns of a record's row.

        They are those of head(): seq, event, cpu, task, time (if the trace has a clock), caller,
        stack (empty where there is none), and an argument in each further column. Arguments of
        other events are empty cells.

        Args:
            info: the event.
            batch: the records of all events.
            part: those of this event.
        """
        places = part.places
        columns: list[Column] = [
            (f"%d,{_fixed(_cell(info.name))}", _at(batch.seqs, places)),
            (",%d,", _at(batch.cpus, places)),
            ("%s,", self._task_texts(batch, places)),
        ]
        if self._trace.timed:
            columns.append(("%d,", _at(batch.times, places)))
        if info.kind != "p":
            columns.append(("%s", [self._callers[caller] for caller in part.callers]))
        columns.append((",", None))
        if any(part.stacks):
            columns.append(("%s", [self._stacks[stack] for stack in part.stacks]))
        own = {name: n for n, name in enumerate(self._arguments[part.event])}
        for name in self._names:
            if name not in own:
                columns.append((",", None))
                continue
            form, column = self._argument(info.fields[own[name]], part.values[own[name]])
            columns.append((f",{form}", column))
        columns.append(("\n", None))
        return columns

    def _text(self, value: Any, type: Type) -> str:
        """Return the text of a cell as CSV has it, in quotes where it needs them.

        Structures and other values that Python reads as a whole are JSON; the elements of an array
        have blanks between them; what could not be read is "(fault)".

        Args:
            value: an argument's value.
            type: the argument's type.
        """
        if value is None:
            return "(fault)"
        if type.is_whole and not isinstance(value, str):
            return _cell(json.dumps(for_json(value)))
        if isinstance(value, tuple):
            return _cell(" ".join(["(fault)" if each is None else str(each) for each in value]))
        return _cell(str(value))


def _cell(text: str) -> str:
    """Return a text as Python's writer of CSV has it: in quotes where it needs these."""
    row = io.StringIO()
    # a row of one cell would be in quotes where that is empty
    csv.writer(row, lineterminator="\n").writerow([text, ""])
    return row.getvalue().removesuffix(",\n")


_LINES: Final[Mapping[str, type[Any]]] = {
    "ftrace": _FtraceLines,
    "jsonl": _JsonLines,
    "csv": _CsvLines,
}
