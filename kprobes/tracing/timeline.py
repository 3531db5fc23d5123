"""A trace on a line of time: the calls in it, and Chrome's trace event format.

Where a function's entry and its return are both recorded, a call is a span; every other hit is an
instant. Without a clock a record is a microsecond behind the one before.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import accumulate, chain
from typing import IO, TYPE_CHECKING, Any

from attrs import frozen

from ..events._record import task_text
from ..events._styles import Type
from ..symbols import CONTROLS
from .batches import Batch, EventColumns
from .info import EventInfo

if TYPE_CHECKING:
    from .trace import Trace

EXACT = 1 << 53  #: up to here every integer is a double
NEAR = 1 << 50  #: ns, up to which a double of microseconds tells them
MOST_TEXTS = 1 << 16  #: values that are kept with their JSON
#: a span begins; the youngest one of its task ends; neither
BEGIN = "B"
END = "E"
INSTANT = "i"


@frozen
class Marks:
    """The meaning of a batch's records on the line of time: beginnings and ends of spans, and
    instants.

    Attributes:
        batch: the records.
        times: of each record, by the trace's clock; 1,000 times the record's number without one;
            none is smaller than the one before.
        phases: for each event, by its number, BEGIN, END or INSTANT.
        unmatched: indices in the batch of records of END events that end no span; they are
            instants.
        left: (index in the batch, number of the task) for each span that ends just before that
            record without having returned.
    """

    batch: Batch
    times: Sequence[int]
    phases: Sequence[str]
    unmatched: Set[int]
    left: Sequence[tuple[int, int]]

    def parts(self) -> Iterator[tuple[str, EventColumns, Sequence[int]]]:
        """Yield (phase, part, indices in that part) for each part and phase that occurs."""
        for part in self.batch.parts:
            phase = self.phases[part.event]
            every = range(len(part.places))
            if phase != END or self.unmatched.isdisjoint(part.places):
                yield phase, part, every
                continue
            yield INSTANT, part, [n for n in every if part.places[n] in self.unmatched]
            yield END, part, [n for n in every if part.places[n] not in self.unmatched]

    def phase(self, place: int, event: int) -> str:
        """Return the phase of the record of `event` that is at `place` in the batch."""
        return INSTANT if place in self.unmatched else self.phases[event]

    def ordered(self, marks: list[Any], end: Callable[[int, int], Any]) -> list[Any]:
        """Put the marks that end spans without a return between the marks of the batch's records.

        Args:
            marks: a mark for each record of the batch, of any type, such as a line of the file.
            end: makes the mark that ends a span, from (time by the trace's clock, number of the
                task).

        Returns:
            All marks in order: for each of `left` one just before its record's. `marks` itself
            where nothing is left: `left` is empty.
        """
        if not self.left:
            return marks
        out: list[Any] = []
        done = 0
        for place, task in self.left:
            out += marks[done:place]
            out.append(end(self.times[place], task))
            done = place
        return out + marks[done:]


class Spans:
    """Pairs entries and returns of functions to spans, one batch of a trace after the other.
    Iteration yields the Marks of each batch.

    Attributes:
        tasks: what the numbers of tasks stand for, by number.
        spans: number of the event that begins a function's spans -> number of the one that ends
            them.
        open: for each task the numbers of the events that end its open spans, the youngest last.
        last: time of the last record so far, as in Marks.
    """

    def __init__(self, trace: Trace) -> None:
        """Find out which events begin and end spans: those at the entry and the return of one
        function.

        Args:
            trace: the records, which are read in the iteration.
        """
        self._trace = trace
        first: dict[tuple[str, int], int] = {}
        for n, info in enumerate(trace.events):
            first.setdefault((info.kind, info.address), n)
        #: number of the event that begins a function's spans -> that of the one which ends them
        self.spans = {
            n: first["r", address]
            for (kind, address), n in first.items()
            if kind == "p" and ("r", address) in first
        }
        self._ends = set(self.spans.values())
        self._phases = [INSTANT] * len(trace.events)
        for n in self._ends:
            self._phases[n] = END
        for n in self.spans:
            self._phases[n] = BEGIN
        self.tasks: list[Any] = list(trace.source.tasks)
        self.open: list[list[int]] = [[] for _ in self.tasks]
        self.last = 0

    def __iter__(self) -> Iterator[Marks]:
        for batch in self._trace.batches():
            yield self._marks(batch)

    def _marks(self, batch: Batch) -> Marks:
        """Return the marks of the next batch. Spans that begin in the batch are added to `open`,
        those that end in it are removed, and `last` becomes the time of its last record.
        """
        times = batch.times if self._trace.timed else [1000 * seq for seq in batch.seqs]
        times = list(accumulate(times, max, initial=self.last))[1:]
        self.last = times[-1] if times else self.last
        unmatched = set[int]()
        left = list[tuple[int, int]]()
        if self.spans:
            self._match(batch, unmatched, left)
        return Marks(batch, times, self._phases, unmatched, left)

    def _match(self, batch: Batch, unmatched: set[int], left: list[tuple[int, int]]) -> None:
        """Match the returns in a batch with open spans; add spans that begin to `open`, and remove
        those that end.

        Args:
            batch: the records.
            unmatched: takes the indices of returns that end no span.
            left: takes (index, task) of each span that was left without returning.
        """
        spans = self.spans
        ends = self._ends
        open_calls = self.open
        tasks = batch.tasks
        for place, event in enumerate(batch.events):
            if event in spans:
                open_calls[tasks[place]].append(spans[event])
            elif event in ends:
                calls = open_calls[tasks[place]]
                if calls and calls[-1] == event:
                    calls.pop()
                elif event in calls:
                    while calls.pop() != event:  # left by a longjmp
                        left.append((place, tasks[place]))
                else:  # its entry was overwritten, or before the trace
                    unmatched.add(place)


def task_name(task: Any) -> str:
    """Return a task's name as text without control characters: `task 3` for an integer, "task" for
    an empty name, as readers refuse that.
    """
    return (
        f"task {task}" if isinstance(task, int) else task_text(task).translate(CONTROLS) or "task"
    )


def clean(value: Any) -> Any:
    """Return a value without characters that control a terminal in its texts, NUL included, at
    which some readers' texts end.

    Tuples and dicts are converted element by element; any other value is returned as it is.
    """
    if isinstance(value, tuple):
        return tuple([clean(each) for each in value])
    if isinstance(value, dict):
        return {name.translate(CONTROLS): clean(each) for name, each in value.items()}
    return value.translate(CONTROLS) if isinstance(value, str) else value


# --- Chrome


def write(trace: Trace, file: IO[str], format: str) -> None:
    """Write a trace as Chrome's JSON, which chrome://tracing, ui.perfetto.dev and speedscope open.

    Its times are doubles in microseconds. Where the first record's is too large for them to tell
    nanoseconds apart, times begin at 0 with that record.

    Calls that have not returned end with the last record.

    Args:
        trace: the records.
        file: an open text file.
        format: not used; all writers of a trace have it.
    """
    spans = Spans(trace)
    rows = _Rows(trace)
    file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
    heads: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "guest"}}
    ]
    heads += [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": n, "args": {"name": task_name(t)}}
        for n, t in enumerate(spans.tasks, 1)
    ]
    file.write(",\n".join(map(json.dumps, heads)))
    for marks in spans:
        file.write(rows.text(marks))
    for task in chain.from_iterable([task] * len(calls) for task, calls in enumerate(spans.open)):
        file.write(rows.end(spans.last, task))
    file.write("\n]}\n")


class _Rows:
    """The rows of Chrome's file: for each event and phase a template, filled by `%`."""

    def __init__(self, trace: Trace) -> None:
        """Prepare. trace: the records."""
        self._trace = trace
        self._start: int | None = None
        self._json = _Json()
        self._callers = _Callers(trace)
        self._stacks: dict[tuple[int, ...], str] = {}

    def text(self, marks: Marks) -> str:
        """Return the rows of a batch, each behind a comma. The first batch decides from when the
        file's times count.
        """
        if self._start is None:
            self._start = marks.times[0] if marks.times[0] > NEAR else 0
        start = self._start
        times = marks.times
        tasks = marks.batch.tasks
        rows = [""] * len(marks.batch)
        for phase, part, which in marks.parts():
            info = self._trace.events[part.event]
            form, columns = self._arguments(info, part)
            row = _template(info, self._trace.readable(info.function), phase, form)
            places = part.places
            if len(which) < len(places):
                places = [places[n] for n in which]
                columns = [[column[n] for n in which] for column in columns]
            since = [times[place] - start for place in places]
            heads = (
                [time // 1000 for time in since],
                [time % 1000 for time in since],
                [tasks[place] + 1 for place in places],
            )
            for place, filled in zip(places, zip(*heads, *columns, strict=True), strict=True):
                rows[place] = row % filled
        return "".join(marks.ordered(rows, self.end))

    def end(self, time: int, task: int) -> str:
        """Return a row that ends the youngest open span of a task.

        Args:
            time: of the end, in ns by the trace's clock.
            task: number of the task, from 0.
        """
        row = {
            "ph": END,
            "name": "",
            "cat": "kprobes",
            "ts": (time - (self._start or 0)) / 1000,
            "pid": 1,
            "tid": task + 1,
            "args": {},
        }
        return ",\n" + json.dumps(row)

    def _arguments(self, info: EventInfo, part: EventColumns) -> tuple[str, list[Sequence[Any]]]:
        """Return (template of an event's arguments, columns that fill it).

        The caller, but for events at a place, and the call stack, where a record has one, stand
        behind the arguments.

        Args:
            info: the event.
            part: its records in a batch.
        """
        forms = list[str]()
        columns = list[Sequence[Any]]()
        for field, values in zip(info.fields, part.values, strict=True):
            number = not (field.text or field.type.count)
            form = _number_form(field.type, values) if number else ""
            if form:
                columns.append(values)
            else:
                columns.append(self._json.of(values, field.type))
            forms.append(f"{_quoted(field.name)}: {form or '%s'}")
        if info.kind != "p":
            forms.append('"caller": %s')
            columns.append([self._callers[caller] for caller in part.callers])
        template = ", ".join(forms)
        if any(part.stacks):
            template += "%s"
            lead = ', "stack": ' if forms else '"stack": '
            columns.append([lead + self._stack(stack) if stack else "" for stack in part.stacks])
        return template, columns

    def _stack(self, stack: tuple[int, ...]) -> str:
        """Return the names of a stack's addresses as a JSON array, made once for each stack."""
        found = self._stacks.get(stack)
        if found is None:
            if len(self._stacks) > MOST_TEXTS:
                self._stacks.clear()
            found = self._stacks[stack] = json.dumps(
                [*map(self._trace.readable, self._trace.names(stack))]
            )
        return found


class _Callers(dict[int, str]):
    """Dictionary from an address to its name as a JSON string, made when it is first asked for."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._trace = trace

    def __missing__(self, address: int) -> str:
        """Make the name of an address, and keep it."""
        found = self[address] = json.dumps(self._trace.readable(self._trace.name(address)))
        return found


def _template(info: EventInfo, function: str, phase: str, arguments: str) -> str:
    """Return the template of a row: a comma, a newline, and a JSON object.

    The object's name is the event's for INSTANT, else the function's. Its "args" has the arguments;
    for END, in an object "return".

    Args:
        info: the event.
        function: name of its function, as it is shown.
        phase: BEGIN, END or INSTANT.
        arguments: template of the arguments, as members of a JSON object.

    Returns:
        A %-format of (microseconds, nanoseconds beyond these, thread, *arguments).
    """
    name = _quoted(info.name if phase == INSTANT else function)
    args = f'{{"return": {{{arguments}}}}}' if phase == END else f"{{{arguments}}}"
    scope = ', "s": "t"' if phase == INSTANT else ""
    return (
        ",\n"
        f'{{"ph": "{phase}", "name": {name}, "cat": "kprobes", "ts": %d.%03d, "pid": 1, "tid": %d, '
        f'"args": {args}{scope}}}'
    )


def _quoted(text: str) -> str:
    """Return a text as a JSON string, with each `%` doubled, for a template that `%` fills."""
    return json.dumps(text.translate(CONTROLS)).replace("%", "%%")


def _number_form(type: Type, values: Sequence[Any]) -> str:
    """Return the %-format that writes a column of numbers as JSON.

    Args:
        type: the argument's; a hexadecimal number is written as a text.
        values: the column; None: memory could not be read.

    Returns:
        The format; "": none does, since values are missing or do not fit a double.
    """
    if None in values:
        return ""
    if type.is_hexadecimal:
        return '"%#x"'
    return "%d" if type.size < 8 or -EXACT <= min(values) <= max(values) <= EXACT else ""


class _Json:
    """Writes values as JSON for readers whose numbers are doubles: a number that does not fit, and
    one that is shown in hexadecimal, becomes text.
    """

    def __init__(self) -> None:
        self._known: dict[Any, str] = {}

    def of(self, values: Sequence[Any], type: Type) -> list[str]:
        """Return a column of values, each as JSON.

        Args:
            values: an argument's value in each record.
            type: of the argument.
        """
        if type.is_ambiguous:  # -0.0 equals 0.0, and 1 equals 1.0
            return [json.dumps(_plain(clean(value), False)) for value in values]
        hexadecimal = type.is_hexadecimal
        return [self._one(value, hexadecimal) for value in values]

    def _one(self, value: Any, hexadecimal: bool) -> str:
        """Return a value as JSON, made once for each value.

        Args:
            value: an argument's value.
            hexadecimal: True: its integers are shown in hexadecimal.
        """
        found = self._known.get((value, hexadecimal))
        if found is None:
            if len(self._known) > MOST_TEXTS:
                self._known.clear()
            found = json.dumps(_plain(clean(value), hexadecimal))
            self._known[value, hexadecimal] = found
        return found


def _plain(value: Any, hexadecimal: bool) -> Any:
    """Return a value for JSON, with a text for each part that JSON cannot tell.

    Texts stand for integers that do not fit a double, infinities and NaN, and for what could not be
    read ("(fault)").

    Args:
        value: an argument's value; tuples and dicts are converted element by element.
        hexadecimal: True: integers become texts such as "0x10".
    """
    if isinstance(value, tuple):
        return [_plain(each, hexadecimal) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each, hexadecimal) for name, each in value.items()}
    if isinstance(value, int):
        if hexadecimal:
            return hex(value)
        return value if abs(value) <= EXACT else str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return "(fault)" if value is None else value
