"""A trace as a page: a flame graph, a timeline of calls, how long calls took, histograms of values,
a call graph.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from functools import partial
from itertools import accumulate
from typing import IO, TYPE_CHECKING, Any

from attrs import Factory, define, field

from ..arguments import shown
from ..clocknames import INSTRUCTION_CLOCK
from ..errors import BadArgument
from ..pictures.page import ChartView, page
from ..symbols import CONTROLS
from .charts import Names, Stacks, flame_data, graph_data, of_stacks
from .clocks import COUNTER
from .profile import folded
from .timeline import BEGIN, END, Marks, Spans, task_name

if TYPE_CHECKING:
    from .batches import Batch
    from .trace import Trace

#: key of a picture -> its title
PICTURES = {
    "flame": "Flame graph",
    "timeline": "Timeline",
    "heat": "Latency over time",
    "histogram": "Histograms",
    "callgraph": "Call graph",
}
MOST_SLICES = 200_000  #: that a timeline has: browsers stay quick, files small
MOST_BARS = 64
FEW_CALLS = 10  #: histograms of fewer stand behind the others
MOST_VALUES = 1 << 16  #: different values of which percentiles are exact
COLUMNS = 240  #: of a heat map
PER = 4  #: rows of a heat map for each power of two
NO_RETURN = -1


def write(trace: Trace, file: IO[str], format: str) -> None:
    """Write the page of a trace to an open file, with all pictures that the trace has data for.

    Args:
        trace: the records.
        file: an open text file.
        format: not used; all writers of a trace have it.
    """
    file.write(page_of(trace))


def page_of(
    trace: Trace, pictures: Sequence[str] = (), before: Trace | None = None, title: str = ""
) -> str:
    """Return the HTML of a page that shows a trace.

    Args:
        trace: what is shown.
        pictures: keys of PICTURES, in the order in which they are shown; none: all for which the
            trace has data, and an empty flame graph where there are none.
        before: another trace, with which the flame graph compares this one; None: there is none.
        title: of the page; "": the functions' names.

    Raises:
        BadArgument: there is no such picture.
    """
    for key in pictures:
        if key not in PICTURES:
            raise BadArgument(f"no picture {shown(key)}", hint=f"there are: {', '.join(PICTURES)}")
    calls = _Calls(trace, times=trace.clock != COUNTER)
    stacks = _stacks(trace)
    made = {
        "flame": _flame(trace, calls, stacks, before),
        "timeline": calls.timeline(),
        "heat": calls.heat(),
        "histogram": calls.histograms(),
        "callgraph": _call_graph(stacks, calls),
    }
    wanted = list(pictures) or [key for key, (is_there, _) in made.items() if is_there]
    views = [
        ChartView(key=key, title=PICTURES[key], chart=key, data=made[key][1])
        for key in wanted or ["flame"]
    ]
    return page(
        title or _title(trace), views, facts=_facts(trace), warnings=_warnings(trace, calls)
    )


def _stacks(trace: Trace) -> Stacks:
    """Return a trace's stacks, with functions' names as people write them.

    Returns:
        (frames, the outermost first and the event last) -> hits.
    """
    found: dict[tuple[str, ...], int] = {}
    for frames, hits in folded(trace).items():
        names = *map(trace.readable, frames[:-1]), frames[-1]
        found[names] = found.get(names, 0) + hits
    return found


def _title(trace: Trace) -> str:
    """Return the title of a page that was given none: the names of the functions in the trace."""
    names = list(dict.fromkeys(trace.readable(info.function) for info in trace.events))
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def _facts(trace: Trace) -> list[str]:
    """Return what stands below the title: how many records there are, of which events, by which
    clock.
    """
    clocks = {
        COUNTER: "no clock: in order of records",
        INSTRUCTION_CLOCK: "clock: the guest's instructions",
    }
    events = len(trace.events)
    tasks = len(trace.source.tasks)
    return [
        f"{len(trace):,} record{'s' * (len(trace) != 1)}",
        f"{events:,} event{'s' * (events != 1)}",
        f"{tasks:,} task{'s' * (tasks != 1)}",
        clocks.get(trace.clock, f"clock: {trace.clock} (ns)"),
    ]


def _warnings(trace: Trace, calls: _Calls) -> list[str]:
    """Return a sentence for each kind of loss: lost records, missed hits, calls left out.

    Args:
        trace: the records.
        calls: its calls.
    """
    said = []
    if trace.lost:
        said.append(
            f"{trace.lost:,} records were lost, the oldest ones: there was no room for them "
            "(records=, --records)."
        )
    if trace.missed:
        said.append(
            f"{trace.missed:,} hits were not recorded: another probe was running, or a return "
            "probe had no instance left."
        )
    if calls.left_out:
        said.append(
            f"The timeline has the first {MOST_SLICES:,} calls; {calls.left_out:,} more are in the "
            "other pictures."
        )
    return said


# --- calls


@define
class _Open:
    """A call that has not returned.

    Attributes:
        ends: number of the event that ends it.
        function: number of its name in `_Calls.functions`.
        time: when it began, by the trace's clock.
        slice: its index in the timeline's columns; -1: it is not there.
        inner: time that the calls which it has made took; those that are open are not in it.
        path: number of the path: the functions that are open in this task, this one last.
    """

    ends: int
    function: int
    time: int
    slice: int
    path: int
    inner: int = 0


@define
class _Slices:
    """Columns of a timeline, which scripts/timeline.js draws: one value for each call or hit.

    Attributes:
        task: number of the task, from 0.
        depth: number of calls that are open around it.
        name: number of the function's or event's name in `_Calls.functions`.
        start: time from the trace's beginning, by its clock.
        length: time that the call took; 0 of a single hit; NO_RETURN: it has not returned.
        args: number of the text of its arguments.
        kind: 0: a call; 1: a single hit.
    """

    task: list[int] = field(factory=list)
    depth: list[int] = field(factory=list)
    name: list[int] = field(factory=list)
    start: list[int] = field(factory=list)
    length: list[int] = field(factory=list)
    args: list[int] = field(factory=list)
    kind: list[int] = field(factory=list)


def _arguments(batch: Batch) -> list[tuple[int, int]]:
    """Return for each record of a batch (index of its part, index in that part)."""
    found = [(0, 0)] * len(batch)
    for number, part in enumerate(batch.parts):
        for n, place in enumerate(part.places):
            found[place] = number, n
    return found


class _Calls:
    """The calls that the records of a trace tell of.

    Attributes:
        functions: numbers of the names of functions and events.
        edges: (caller's number in `functions`, function's number) -> number of calls.
        counts: function's number in `functions` -> number of calls.
        left_out: number of calls and single hits that are not in the timeline.
        begin: time of the first record.
        end: time of the last record; calls that are open then are closed.
    """

    def __init__(self, trace: Trace, times: bool) -> None:
        """Read all records of a trace, and pair entries and returns to calls.

        Args:
            trace: the records.
            times: the records have times.
        """
        self._trace = trace
        self._timed = times
        self.functions = Names()
        self._texts = Names()
        self._texts.number("")
        #: (number of a path, or -1; function called there) -> number of the longer path
        self._paths: dict[tuple[int, int], int] = {}
        self._own: list[int] = []  # time of each path's last function itself
        self.edges: Counter[tuple[int, int]] = Counter()
        self.counts: Counter[int] = Counter()
        self.left_out = 0
        self._slices = _Slices()
        self._open: list[list[_Open]] = [[] for _ in trace.source.tasks]
        # times of a clock fit 64 bits; without one they are a thousand times a record's number
        column: Callable[[], MutableSequence[int]] = partial(array, "Q") if times else list
        self._durations: defaultdict[int, MutableSequence[int]] = defaultdict(column)
        self._begins: defaultdict[int, MutableSequence[int]] = defaultdict(column)
        self._values = [_Distribution() for info in trace.events for _ in info.fields]
        self._numbers = [
            not (field.text or field.type.count) for info in trace.events for field in info.fields
        ]
        self._first = list(accumulate((len(info.fields) for info in trace.events), initial=0))
        spans = Spans(trace)
        self._spans = spans.spans
        self.begin = 0
        for n, marks in enumerate(spans):
            if not n:
                self.begin = marks.times[0]
            self._take(marks)
        self.end = spans.last
        for calls in self._open:
            while calls:
                self._leave(calls, self.end)

    def _take(self, marks: Marks) -> None:
        """Open, close and count the calls of a batch's records, add them to the timeline while it
        has room (what finds no room is counted in `left_out`), and count the values of arguments
        that are numbers.

        Args:
            marks: the batch, with the time and the phase (BEGIN, END, INSTANT) of each record.
        """
        batch, infos = marks.batch, self._trace.events
        left: dict[int, int] = Counter(place for place, _ in marks.left)
        for part in batch.parts:
            for n, values in enumerate(part.values):
                if self._numbers[self._first[part.event] + n]:
                    self._values[self._first[part.event] + n].add(values)
        wanted = self._has_room or any(calls and calls[0].slice >= 0 for calls in self._open)
        arguments = _arguments(batch) if wanted else []
        for place, event in enumerate(batch.events):
            calls = self._open[batch.tasks[place]]
            time = marks.times[place]
            phase = marks.phase(place, event)
            info = infos[event]
            if left:
                for _ in range(left.get(place, 0)):
                    self._leave(calls, time)
            if phase == END:
                text = self._text(marks, *arguments[place]) if calls[-1].slice >= 0 else ""
                self._return(calls, time, text)
                continue
            number = -1
            if self._has_room:
                name = info.function if phase == BEGIN else info.name
                text = self._text(marks, *arguments[place])
                number = self._slice(batch.tasks[place], len(calls), name, time, phase, text)
            else:
                self.left_out += 1
            if phase == BEGIN:
                function = self.functions.number(info.function)
                caller = calls[-1] if calls else None
                path = self._path(caller.path if caller else -1, function)
                calls.append(_Open(self._spans[event], function, time, number, path))
                self.counts[function] += 1
                if caller:
                    self.edges[caller.function, function] += 1

    @property
    def _has_room(self) -> bool:
        """Return True while the timeline takes more slices."""
        return len(self._slices.task) < MOST_SLICES

    def _slice(self, task: int, depth: int, name: str, time: int, phase: str, text: str) -> int:
        """Append a slice to the timeline, which has room for it. Return the slice's index.

        Args:
            task: number of the task, from 0.
            depth: calls that are open around it; 0: none.
            name: of the function or event.
            time: of its begin, by the trace's clock.
            phase: BEGIN: a call, whose end comes later; INSTANT: a single hit.
            text: its arguments, as text.
        """
        slices = self._slices
        slices.task.append(task)
        slices.depth.append(depth)
        slices.name.append(self.functions.number(name))
        slices.start.append(time - self.begin)
        slices.length.append(NO_RETURN if phase == BEGIN else 0)
        slices.args.append(self._texts.number(text))
        slices.kind.append(int(phase != BEGIN))
        return len(slices.task) - 1

    def _text(self, marks: Marks, number: int, n: int) -> str:
        """Return the arguments of a record, one on each line.

        Args:
            marks: the batch.
            number: index of the part that the record is in.
            n: index of the record in that part.
        """
        part = marks.batch.parts[number]
        info = self._trace.events[part.event]
        lines = [
            f"{field.name}={field.type.show(values[n])}"
            for field, values in zip(info.fields, part.values, strict=True)
        ]
        if info.kind != "p":
            lines.append(
                f"{'by' if info.kind == 'w' else 'returns to'}={self._trace.name(part.callers[n])}"
            )
        return "\n".join(
            [line if line.isprintable() else line.translate(CONTROLS) for line in lines]
        )

    def _return(self, calls: list[_Open], time: int, text: str) -> None:
        """Close the youngest open call of a task as returned at `time`, and note how long it took
        for the heat map and the histograms.

        Where the call is in the timeline, its length is set there and `text` is added to its
        arguments.

        Args:
            calls: the open calls of the task.
            time: of the return.
            text: the arguments of the return event.
        """
        number = calls[-1].slice
        function = calls[-1].function
        begun = calls[-1].time
        self._leave(calls, time)
        self._durations[function].append(time - begun)
        self._begins[function].append(begun - self.begin)
        if number >= 0:
            slices = self._slices
            slices.length[number] = time - begun
            entry = self._texts.text(slices.args[number])
            slices.args[number] = self._texts.number("\n".join(filter(None, (entry, text))))

    def _leave(self, calls: list[_Open], time: int) -> None:
        """Remove the youngest open call of a task. Add the time of the function itself to its path,
        and the time of the whole call to `inner` of the call around it.

        Args:
            calls: the open calls of the task; the last one is removed.
            time: when it ended, by the trace's clock.
        """
        call = calls.pop()
        self._own[call.path] += max(time - call.time - call.inner, 0)
        if calls:
            calls[-1].inner += time - call.time

    def _path(self, shorter: int, function: int) -> int:
        """Return the number of the path that a call of `function` makes; a new path takes the next
        number.

        Args:
            shorter: number of the path that it is called from; -1: nothing is open.
            function: number of the function's name.
        """
        number = self._paths.get((shorter, function))
        if number is None:
            number = self._paths[shorter, function] = len(self._own)
            self._own.append(0)
        return number

    @property
    def has_paths(self) -> bool:
        """Whether a call was seen."""
        return bool(self._own)

    def named_paths(self) -> Stacks:
        """Return the paths of open functions by name, outermost first, with the time that the last
        function itself has taken, in the clock's unit, or in records where the trace has no clock.
        """
        names: list[tuple[str, ...]] = []
        readable = self._trace.readable
        for shorter, function in self._paths:
            names.append(
                (*(names[shorter] if shorter >= 0 else ()), readable(self.functions.text(function)))
            )
        return {
            path: own // (1 if self._timed else 1000)
            for path, own in zip(names, self._own, strict=True)
        }

    @property
    def unit(self) -> str:
        """The unit of times: ns, instructions, or records where there is no clock."""
        return {COUNTER: "records", INSTRUCTION_CLOCK: "instructions"}.get(self._trace.clock, "ns")

    def _scaled(self, times: Sequence[int]) -> list[int]:
        """Return times, or lengths of time, as the page shows them: in the unit of `unit`.

        Without a clock the times are 1,000 times a record's number; they are divided by that.

        Args:
            times: of the trace; negative ones are marks, and stay.
        """
        return (
            [time if time < 0 else time // 1000 for time in times]
            if not self._timed
            else list(times)
        )

    def names(self) -> list[str]:
        """Return the names of functions and events by their numbers, as people write them."""
        return [self._trace.readable(name) for name in self.functions.texts()]

    def timeline(self) -> tuple[bool, Any]:
        """Return whether there is a timeline, and its data for scripts/timeline.js: columns with a
        value for each call or hit, sorted by task, depth and start.

        Returns:
            (True: there is a call or a hit in it; the data).
        """
        slices = self._slices
        order = sorted(
            range(len(slices.task)),
            key=lambda n: (slices.task[n], slices.depth[n], slices.start[n]),
        )
        columns = {
            name: [getattr(slices, name)[n] for n in order]
            for name in ("task", "depth", "name", "start", "length", "args", "kind")
        }
        columns |= {name: self._scaled(columns[name]) for name in ("start", "length")}
        begin, end = self._scaled((self.begin, self.end))
        data = {
            "unit": self.unit,
            "begin": begin,
            "end": end,
            "names": self.names(),
            "texts": self._texts.texts(),
            "tasks": list(map(task_name, self._trace.source.tasks)),
            **columns,
        }
        return bool(slices.task), data

    def heat(self) -> tuple[bool, Any]:
        """Return whether there is a heat map of how long calls took, and its data for
        scripts/heat.js.

        Returns:
            (True: calls have returned, and records have times; the data).
        """
        span = max(self.end - self.begin, 1)
        functions = []
        names = self.names()
        for function, durations in self._durations.items():
            cells = Counter(
                (min(begun * COLUMNS // span, COLUMNS - 1), _power(length))
                for begun, length in zip(self._begins[function], durations, strict=True)
            )
            functions.append(
                {
                    "name": names[function],
                    "cells": [
                        number for (x, y), count in cells.items() for number in (x, y, count)
                    ],
                }
            )
        functions.sort(key=lambda row: -len(row["cells"]))
        data = {
            "unit": self.unit,
            "begin": self.begin,
            "end": self.end,
            "per": PER,
            "columns": COLUMNS,
            "functions": functions,
        }
        return self._timed and bool(functions), data

    def histograms(self) -> tuple[bool, Any]:
        """Return whether there are histograms, and their data for scripts/histogram.js: of the
        times of each function's calls, where the trace has times, and of each argument's numbers.

        Returns:
            (True: there is at least one; the data).
        """
        series = []
        names = self.names()
        if self._timed:
            # what took most of the time first; a few calls make no histogram
            for function, durations in sorted(
                self._durations.items(), key=lambda row: (len(row[1]) < FEW_CALLS, -sum(row[1]))
            ):
                found = _Distribution()
                found.add(durations)
                series.append(
                    found.series(
                        f"{names[function]}: time of a call"
                        if self.unit == "ns"
                        else f"{names[function]}: {self.unit} of a call",
                        self.unit,
                        False,
                    )
                )
        for event, info in enumerate(self._trace.events):
            for n, argument in enumerate(info.fields):
                found = self._values[self._first[event] + n]
                if found.counts:
                    label = f"{info.name}: {argument.name}".translate(CONTROLS)
                    series.append(found.series(label, "", argument.type.is_hexadecimal))
        return bool(series), {"series": series}


def _power(value: int) -> int:
    """Return the row of a heat map that a value is in: 0 for 0; row n begins at 2 ** ((n - 1) /
    PER).
    """
    return 0 if value <= 0 else int(math.log2(value) * PER + 1e-9) + 1


# --- histograms


@define
class _Distribution:
    """Counts of the different values of a column.

    Attributes:
        counts: value -> how often. Where there are many, values are rounded to 10 bits.
        missing: values that could not be read.
    """

    counts: Counter[int] = Factory(Counter)
    missing: int = 0
    _rounded: bool = False

    def add(self, values: Iterable[Any]) -> None:
        """Count numbers.

        Once there are more than MOST_VALUES different values, all values, later ones too, are
        rounded to their 10 highest bits.

        Args:
            values: the numbers; None counts as missing.
        """
        if self._rounded:
            values = [_rounded(value) for value in values]
        counts = self.counts
        counts.update(values)
        self.missing += counts.pop(None, 0)  # type: ignore[call-overload]
        if len(counts) > MOST_VALUES and not self._rounded:
            self._rounded = True
            self.counts = Counter()
            for value, count in counts.items():
                self.counts[_rounded(value)] += count

    def series(self, label: str, unit: str, is_hex: bool) -> dict[str, Any]:
        """Return the data of one histogram, for scripts/histogram.js. There is at least one value.

        Args:
            label: the histogram's title.
            unit: unit of the values: "ns", "instructions", "records" or "".
            is_hex: True for addresses and the like: they are shown in hexadecimal and have no mean.

        Returns:
            "label", "unit", "hex" (`is_hex`), "from" and "to" (the bounds of each bar), "counts"
            (of each bar), "stats" ((name, number) of each: values, least, median, 90 %, 99 %, most,
            mean) and "missing".
        """
        values = sorted(self.counts)
        edges = _edges(values)
        bars = [0] * (len(edges) - 1)
        at = 0
        for value in values:
            while value >= edges[at + 1]:
                at += 1
            bars[at] += self.counts[value]
        total = sum(bars)
        upto = list(accumulate(self.counts[value] for value in values))
        stats: list[tuple[str, float]] = [("values", total), ("least", values[0])]
        for name, share in (("median", 0.5), ("90 %", 0.9), ("99 %", 0.99)):
            stats.append((name, values[bisect_left(upto, share * total)]))
        stats.append(("most", values[-1]))
        if not is_hex:
            mean = sum(value * many for value, many in self.counts.items()) / total
            stats.append(("mean", round(mean, 3)))
        return {
            "label": label,
            "unit": unit,
            "hex": is_hex,
            "from": edges[:-1],
            "to": edges[1:],
            "counts": bars,
            "stats": stats,
            "missing": self.missing,
        }


def _rounded(value: Any) -> Any:
    """Return an integer with all but its 10 highest bits cleared; other values as they are."""
    shift = max(value.bit_length() - 10, 0) if isinstance(value, int) else 0
    return value >> shift << shift if shift else value


def _edges(values: Sequence[int]) -> list[int]:
    """Return the bounds of a histogram's bars, in ascending order: one more than there are bars.

    A bar has the numbers from its bound up to the next bound, without the latter. Where least and
    greatest number are less than MOST_BARS apart, there is a bar for each integer. Else, where none
    is negative and the greatest is more than 16 times the median, bars get wider: there are one to
    four for each power of two. In all other cases about 40 bars at most have the same, round width.

    Args:
        values: the numbers that are counted, each once, in ascending order; at least one.
    """
    least, most = values[0], values[-1]
    if most - least < MOST_BARS:
        return list(range(least, most + 2))
    middle = values[len(values) // 2]
    # a few are much larger: as many bars for each power of two
    if least >= 0 and (most + 1) / (middle + 1) > 16:
        per = max(1, min(4, int(MOST_BARS / max(math.log2(most + 1) - math.log2(least + 1), 1))))
        first, last = (int(math.log2(value + 1) * per) for value in (least, most))
        edges = sorted({math.ceil(2 ** (n / per)) - 1 for n in range(first, last + 2)})
        return [*(edge for edge in edges if edge <= most), max(edges[-1], most + 1)]
    step = -(-(most - least + 1) // 40)
    power = 10 ** (len(str(step)) - 1)
    step = next(power * n for n in (1, 2, 5, 10) if power * n >= step)
    return list(range(least // step * step, most + step + 1, step))


# --- flame graphs


def _flame(trace: Trace, calls: _Calls, stacks: Stacks, before: Trace | None) -> tuple[bool, Any]:
    """Return whether the trace has a flame graph, and the data that scripts/flame.js draws.

    Args:
        trace: the records.
        calls: its calls; a second graph, by their duration, is made of them where there are any.
        stacks: (frames, the outermost first and the event last) -> hits.
        before: an earlier trace; then the graphs show the difference from it. None: there is none.

    Returns:
        (True if the trace has records, data).
    """
    stacked = any(any(part.stacks) for batch in _some(trace) for part in batch.parts)
    trees: list[tuple[str, str, Stacks, Stacks | None]] = []
    label = "Hits by stack" if stacked else "Hits by function"
    trees.append((label, "hits", stacks, None if before is None else _stacks(before)))
    if calls.has_paths:
        earlier = None if before is None else _Calls(before, before.clock != COUNTER).named_paths()
        kind = {
            "ns": "Time in calls",
            "instructions": "Instructions in calls",
            "records": "Records in calls",
        }
        trees.insert(
            0 if not stacked else 1, (kind[calls.unit], calls.unit, calls.named_paths(), earlier)
        )
    return bool(len(trace)), flame_data(trees)


def _some(trace: Trace) -> Iterator[Any]:
    """Yield the first batch only (none of an empty trace), enough to see what records have."""
    for batch in trace.batches():
        yield batch
        return


# --- call graphs


def _call_graph(stacks: Stacks, calls: _Calls) -> tuple[bool, Any]:
    """Return whether the trace has a call graph, and the data that scripts/callgraph.js draws.

    The graph is made of stacks where any hit has a caller in its stack, else of calls.

    Args:
        stacks: (frames, the outermost first and the event last) -> hits.
        calls: calls between functions whose entry and return were both recorded.

    Returns:
        (True if there are edges, data).
    """
    found: Counter[tuple[str, ...]] = Counter()
    for frames, hits in stacks.items():
        found[frames[:-1]] += hits
    if any(len(frames) > 1 for frames in found):
        own, weight, edges = of_stacks(found)
        return True, graph_data("hits", own, weight, edges)
    names = calls.names()
    count = Counter({names[function]: many for function, many in calls.counts.items()})
    pairs = Counter({(names[a], names[b]): many for (a, b), many in calls.edges.items()})
    return bool(pairs), graph_data("calls", count, count, pairs)
