"""A trace as text: ftrace's, JSON lines, CSV."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

from attrs import evolve

from ..clocknames import INSTRUCTION_CLOCK
from ..events._event import Type, Value
from ..events._text import HEAD, task_column
from .batches import Row
from .clocks import COUNTS, stamp
from .info import EventInfo
from .recorder import Live
from .ring import Layout, Ring

if TYPE_CHECKING:
    from .trace import Trace

CHUNK = 1 << 13  #: lines written at a time


def write(trace: Trace, file: IO[str], format: str) -> None:
    """ftrace: the kernel's `trace` file, its clock "counter" (or "local", where there are times in ns); jsonl; csv."""
    if format == "csv":
        _csv(trace, file)
        return
    if format == "ftrace":
        file.write(HEAD.format(len(trace), len(trace) + trace.lost))
    lines = ftrace_lines(trace) if format == "ftrace" else json_lines(trace)
    block: list[str] = []
    for line in lines:
        block.append(line)
        if len(block) == CHUNK:
            file.write("".join(block))
            block.clear()
    file.write("".join(block))


# --- ftrace


def ftrace_lines(trace: Trace) -> Iterator[str]:
    """The lines of a trace."""
    source = trace.source
    if isinstance(source, Live):
        yield from _fast(trace, source.ring)
        return
    for info, task, row in trace.rows():
        yield _line(trace, info, task, row)


def _place(trace: Trace, info: EventInfo, caller: int) -> str:
    return info.place(trace.name(caller) if info.kind != "p" else "")


def _line(trace: Trace, info: EventInfo, task: Any, row: Row) -> str:
    seq, _, cpu, _, time, caller, values, stack = row
    head = f"{task_column(task)} [{cpu:03d}] ..... {stamp(seq, time, trace.clock)}: "
    line = f"{head}{info.name}: ({_place(trace, info, caller)}){info.arguments(values)}\n"
    return (line + f"{head}<stack trace>\n" + "".join([f" => {trace.name(address)}\n" for address in stack]) if stack
            else line)


def _fast(trace: Trace, ring: Ring) -> Iterator[str]:
    """The lines of records without stacks, arrays and faults by one format for each event; the others one by one."""
    buffer, size, infos, tasks, texts = ring.buffer, ring.size, trace.events, ring.tasks, ring.texts
    columns: dict[int, str] = {}
    faults = [layout.head if layout.words else 0 for layout in ring.layouts]
    templates = [None if ring.stacked else _template(trace, ring.layouts[n], info) for n, info in enumerate(infos)]
    unpack = [each.unpack_from for each in ring.formats]
    events = buffer[:len(ring) * size].cast("H")[4 :: size // 2].tolist() if len(ring) else []
    for place in ring.order():
        event = events[place]
        template = templates[event]
        raw = unpack[event](buffer, place * size)
        if template is not None and not (faults[event] and raw[faults[event]]):
            task = columns.get(raw[3])
            if task is None:
                task = columns[raw[3]] = task_column(tasks[raw[3]])
            yield template(task, raw, texts[place] if texts else None)
        else:
            row = ring.at_place(place)
            yield _line(trace, infos[event], tasks[row[3]], row)


def _template(trace: Trace, layout: Layout, info: EventInfo) -> Callable[[str, Any, Any], str] | None:
    """(task, fields of the record, values beside it) -> a line; None where that takes more than a format."""
    if any(layout.counts) or layout.words > 1:
        return None
    name, at = trace.name, 4 + layout.clock
    numbers = ["%#x" if field.type.style == "x" else "%d" for field in info.fields]
    forms = ["%s" if field.text else number for field, number in zip(info.fields, numbers, strict=True)]
    shown = "".join([f" {field.name}={form}" for field, form in zip(info.fields, forms, strict=True)])
    where = evolve(info, where=info.where.replace("%", "%%")).place("%s")
    counts, first = trace.clock in COUNTS, layout.head + layout.words
    stamp, count = "%12d" if counts else "%5d.%06d", 4 if trace.clock == INSTRUCTION_CLOCK else 0
    line = f"%s [%03d] ..... {stamp}: {info.name}: ({where}){shown}\n"
    pick = _picker(layout, info, first)
    if layout.returns or not counts:
        return lambda task, raw, texts: line % (
            task, raw[2], *((raw[count],) if counts else (raw[4] // 1_000_000_000, raw[4] // 1000 % 1_000_000)),
            *((name(raw[at]),) if layout.returns else ()), *pick(raw, texts))
    return lambda task, raw, texts: line % (task, raw[2], raw[count], *pick(raw, texts))


def _picker(layout: Layout, info: EventInfo, first: int) -> Callable[[Any, Any], Sequence[Any]]:
    """(fields of a record, values beside it) -> what is shown of each argument."""
    if layout.plain:
        return lambda raw, texts: raw[first:first + len(layout.numbers)]
    show = [_shown(field.type) if field.text else None for field in info.fields]
    numbers = dict(zip(layout.numbers, range(first, first + len(layout.numbers)), strict=True))
    steps = [(shown, numbers.get(n, n)) for n, shown in enumerate(show)]
    return lambda raw, texts: [raw[n] if shown is None else shown(texts[n]) for shown, n in steps]


def _shown(type: Type) -> Callable[[Value], str]:
    """Return what shows values of a type. -0.0 equals 0.0, and is shown otherwise: such values are shown one by one."""
    return type.show if type.style in ("f", "value") else _ShownTexts(type).__getitem__


class _ShownTexts(dict[Value, str]):
    """Text -> how it is shown; made once."""

    def __init__(self, type: Type) -> None:
        super().__init__()
        self._type = type

    def __missing__(self, value: Value) -> str:
        if len(self) > 1 << 16:
            self.clear()
        shown = self[value] = self._type.show(value)
        return shown


# --- JSON lines, CSV


def json_lines(trace: Trace) -> Iterator[str]:
    """An object for each record: event, seq, cpu, task, time, caller, args, stack (as symbols) and its source lines."""
    for info, task, row in trace.rows():
        seq, _, cpu, _, time, caller, values, stack = row
        facts: dict[str, Any] = {"event": info.name, "seq": seq, "cpu": cpu,
                                 "task": task if isinstance(task, int) else str(task)}
        if trace.timed:
            facts["time"] = time
        if info.kind != "p":
            facts |= {"caller": caller, "to": trace.name(caller)}
        names = [field.name for field in info.fields]
        facts["args"] = dict(zip(names, [for_json(value) for value in values], strict=True))
        if stack:
            facts["stack"] = [trace.name(address) for address in stack]
            lines = trace.lines(stack)
            facts |= {"lines": [line or None for line in lines]} if any(lines) else {}
        yield json.dumps(facts) + "\n"


def for_json(value: Any) -> Any:
    """A value without what JSON has no words for: infinity, and what is no number."""
    if isinstance(value, tuple):
        return [for_json(each) for each in value]
    if isinstance(value, dict):
        return {name: for_json(each) for name, each in value.items()}
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _csv(trace: Trace, file: IO[str]) -> None:
    """Write one table: a column for each argument, as in Trace.to_arrow(); what an event has not is empty."""
    from .columns import names_of

    rows = names_of(trace.events)
    head = ["seq", "event", "cpu", "task", *(["time"] if trace.timed else []), "caller", "stack"]
    columns = {name: len(head) + n for n, name in enumerate(dict.fromkeys(name for row in rows for name in row))}
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*head, *columns])
    for info, task, (seq, event, cpu, _, time, caller, values, stack) in trace.rows():
        out: list[Any] = [""] * (len(head) + len(columns))
        shown = (trace.name(caller) if info.kind != "p" else "", " ".join([trace.name(address) for address in stack]))
        out[: len(head)] = [seq, info.name, cpu, task, *([time] if trace.timed else []), *shown]
        for n, (name, value) in enumerate(zip(rows[event], values, strict=True)):
            out[columns[name]] = _cell(value, info.fields[n].type)
        writer.writerow(out)


def _cell(value: Value, type: Type) -> Any:
    """A value in CSV: structures and what else debug information knows as a whole as JSON; arrays of numbers and texts
    with blanks between."""
    if value is None:
        return "(fault)"
    if type.style == "value" and not isinstance(value, str):
        return json.dumps(for_json(value))
    return " ".join(["(fault)" if each is None else str(each) for each in value]) if isinstance(value, tuple) else value
