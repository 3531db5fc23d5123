"""A trace on a line of time: Chrome's trace event format, and the spans that this and Perfetto's show.

Where a function's entry and its return are both recorded, a call is a span; every other hit is an instant. Without a
clock a record is a microsecond behind the one before.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from attrs import frozen

from ..events._record import task_text
from ..symbols import CONTROLS
from .info import EventInfo

if TYPE_CHECKING:
    from .trace import Trace

EXACT = 1 << 53  #: up to here every integer is a double
NEAR = 1 << 50  #: ns, up to which a double of microseconds tells them


class Hex(int):
    """A number that is shown in hexadecimal."""


@frozen
class Mark:
    """What happens at a time. phase: "B" a span begins, "E" the youngest one ends, "i" an instant. time: in ns, never
    before the mark before. task: index into Marks.tasks. args: numbers, texts, None (unreadable), tuples or
    dictionaries of these."""

    phase: str
    name: str
    time: int
    task: int
    args: dict[str, Any]


class Marks:
    """The marks of a trace, in order; every span that begins ends."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        first: dict[tuple[str, int], int] = {}
        for n, info in enumerate(trace.events):
            first.setdefault((info.kind, info.address), n)
        #: number of the event that begins a function's spans -> that of the one which ends them
        self._spans = {n: first["r", address] for (kind, address), n in first.items()
                       if kind == "p" and ("r", address) in first}
        self._ends = set(self._spans.values())
        self.tasks: list[Any] = list(trace.source.tasks)

    def __iter__(self) -> Iterator[Mark]:
        trace, last = self._trace, 0
        open_calls: list[list[int]] = [[] for _ in self.tasks]
        for info, _, (seq, event, _, task, time, caller, values, stack) in trace.rows():
            last = max(last, time if trace.timed else 1000 * seq)
            args, calls = self._args(info, values, caller, stack), open_calls[task]
            if event in self._spans:
                calls.append(self._spans[event])
                yield Mark("B", info.function, last, task, args)
            elif event in self._ends and event in calls:
                while calls.pop() != event:  # left by a longjmp
                    yield Mark("E", "", last, task, {})
                yield Mark("E", info.function, last, task, {"return": args})
            else:  # another event there; or its entry was overwritten, or before the trace
                yield Mark("i", info.name, last, task, args)
        for task, calls in enumerate(open_calls):
            for _ in calls:
                yield Mark("E", "", last, task, {})

    def _args(self, info: EventInfo, values: tuple[Any, ...], caller: int, stack: tuple[int, ...]) -> dict[str, Any]:
        args = {field.name: _shown(value, field.type.style)
                for field, value in zip(info.fields, values, strict=True)}
        if info.kind != "p":
            args["caller"] = self._trace.name(caller)
        if stack:
            args["stack"] = tuple([self._trace.name(address) for address in stack])
        return args


def _shown(value: Any, style: str) -> Any:
    """Without characters that control a terminal; some readers' texts end at a NUL."""
    if isinstance(value, tuple):
        return tuple([_shown(each, style) for each in value])
    if isinstance(value, dict):
        return {name.translate(CONTROLS): _shown(each, style) for name, each in value.items()}
    if isinstance(value, str):
        return value.translate(CONTROLS)
    return Hex(value) if style == "x" and value is not None else value


def task_name(task: Any) -> str:
    """What a thread is called; never nothing, which readers refuse."""
    return f"task {task}" if isinstance(task, int) else task_text(task).translate(CONTROLS) or "task"


def write(trace: Trace, file: IO[str], format: str) -> None:
    """Chrome's JSON: what chrome://tracing, ui.perfetto.dev and speedscope open. Where its times, doubles in
    microseconds, could not tell nanoseconds, they begin with the first record."""
    marks, start = Marks(trace), None
    file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
    rows: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "guest"}}]
    rows += [{"ph": "M", "name": "thread_name", "pid": 1, "tid": n + 1, "args": {"name": task_name(t)}}
             for n, t in enumerate(marks.tasks)]
    file.write(",\n".join(map(json.dumps, rows)))
    for mark in marks:
        if start is None:
            start = mark.time if mark.time > NEAR else 0
        row = {"ph": mark.phase, "name": mark.name, "cat": "kprobes", "ts": (mark.time - start) / 1000, "pid": 1,
               "tid": mark.task + 1, "args": _plain(mark.args)}
        file.write(",\n" + json.dumps(row | ({"s": "t"} if mark.phase == "i" else {})))
    file.write("\n]}\n")


def _plain(value: Any) -> Any:
    """For JSON, whose readers have doubles for numbers: those that are none as text."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, int):
        return hex(value) if isinstance(value, Hex) else value if abs(value) <= EXACT else str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return "(fault)" if value is None else value
