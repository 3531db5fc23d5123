"""A trace on a line of time: Chrome's trace event format, and the spans that this and Perfetto's show.

Where a function's entry and its return are both recorded, a call is a span; every other hit is an instant. Without a
clock a record is a microsecond behind the one before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from attrs import frozen

from .info import EventInfo

if TYPE_CHECKING:
    from .trace import Trace


@frozen
class Mark:
    """What happens at a time. phase: "B" a span begins, "E" the youngest one ends, "i" an instant. time: in ns. track:
    index into Marks.tasks."""

    phase: str
    name: str
    time: int
    task: int
    cpu: int
    args: dict[str, Any]


class Marks:
    """The marks of a trace, in order; every span that begins ends."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        kinds: dict[int, set[str]] = {}
        for info in trace.events:
            kinds.setdefault(info.address, set()).add(info.kind)
        self._paired = {address for address, both in kinds.items() if both == {"p", "r"}}
        self.tasks: list[Any] = list(trace.source.tasks)

    def __iter__(self) -> Iterator[Mark]:
        trace, last = self._trace, 0
        open_calls: list[list[int]] = [[] for _ in self.tasks]
        for info, _, (seq, _, cpu, task, time, caller, values, stack) in trace.rows():
            last = time if trace.timed else 1000 * seq
            args = self._args(info, values, caller, stack)
            calls = open_calls[task]
            if info.address not in self._paired:
                yield Mark("i", info.name, last, task, cpu, args)
            elif info.kind == "p":
                calls.append(info.address)
                yield Mark("B", info.function, last, task, cpu, args)
            elif info.address in calls:
                while calls.pop() != info.address:  # left by a longjmp
                    yield Mark("E", "", last, task, cpu, {})
                yield Mark("E", info.function, last, task, cpu, args)
            else:  # its entry was overwritten, or before the trace
                yield Mark("i", info.name, last, task, cpu, args)
        for task, calls in enumerate(open_calls):
            for _ in calls:
                yield Mark("E", "", last, task, 0, {})

    def _args(self, info: EventInfo, values: tuple[Any, ...], caller: int, stack: tuple[int, ...]) -> dict[str, Any]:
        args = {field.name: field.type.show(value) if field.type.style == "x" or value is None else value
                for field, value in zip(info.fields, values, strict=True)}
        if info.kind != "p":
            args["caller"] = self._trace.name(caller)
        if stack:
            args["stack"] = [self._trace.name(address) for address in stack]
        return args


def task_name(task: Any) -> str:
    """What a track is called."""
    return f"task {task}" if isinstance(task, int) else str(task)


def write(trace: Trace, file: IO[str], format: str) -> None:
    """Chrome's JSON: what chrome://tracing, ui.perfetto.dev and speedscope open."""
    marks = Marks(trace)
    file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
    rows: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "guest"}}]
    rows += [{"ph": "M", "name": "thread_name", "pid": 1, "tid": n + 1, "args": {"name": task_name(t)}}
             for n, t in enumerate(marks.tasks)]
    file.write(",\n".join(map(json.dumps, rows)))
    for mark in marks:
        row = {"ph": mark.phase, "name": mark.name, "cat": "kprobes", "ts": mark.time / 1000, "pid": 1,
               "tid": mark.task + 1, "args": mark.args}
        file.write(",\n" + json.dumps(row | ({"s": "t"} if mark.phase == "i" else {})))
    file.write("\n]}\n")
