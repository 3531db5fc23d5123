"""Texts of a trace, made record by record: what the quick writers are held against."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from kprobes import Trace
from kprobes.events._text import HEAD, task_column
from kprobes.tracing.clocks import stamp
from kprobes.tracing.columns import names_of
from kprobes.tracing.text import for_json


def text(trace: Trace, format: str) -> str:
    """Return a trace as "ftrace", "jsonl" or "csv"."""
    return {"ftrace": _ftrace, "jsonl": _jsonl, "csv": _csv}[format](trace)


def _ftrace(trace: Trace) -> str:
    out = [HEAD.format(len(trace), len(trace) + trace.lost)]
    for info, task, (seq, _, cpu, _, time, caller, values, stack) in trace.rows():
        head = f"{task_column(task)} [{cpu:03d}] ..... {stamp(seq, time, trace.clock)}: "
        place = info.place(trace.name(caller) if info.kind != "p" else "")
        out.append(f"{head}{info.name}: ({place}){info.arguments(values)}\n")
        if stack:
            out.append(f"{head}<stack trace>\n")
            out += [f" => {trace.name(address)}\n" for address in stack]
    return "".join(out)


def _jsonl(trace: Trace) -> str:
    out = []
    for info, task, (seq, _, cpu, _, time, caller, values, stack) in trace.rows():
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
        out.append(json.dumps(facts) + "\n")
    return "".join(out)


def _csv(trace: Trace) -> str:
    rows = names_of(trace.events)
    head = ["seq", "event", "cpu", "task", *(["time"] if trace.timed else []), "caller", "stack"]
    columns = {name: len(head) + n for n, name in enumerate(dict.fromkeys(name for row in rows for name in row))}
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([*head, *columns])
    for info, task, (seq, event, cpu, _, time, caller, values, stack) in trace.rows():
        out: list[Any] = [""] * (len(head) + len(columns))
        shown = (trace.name(caller) if info.kind != "p" else "", " ".join([trace.name(address) for address in stack]))
        out[: len(head)] = [seq, info.name, cpu, task, *([time] if trace.timed else []), *shown]
        for n, (name, value) in enumerate(zip(rows[event], values, strict=True)):
            out[columns[name]] = _cell(value, info.fields[n].type)
        writer.writerow(out)
    return file.getvalue()


def _cell(value: Any, type: Any) -> Any:
    if value is None:
        return "(fault)"
    if type.style == "value" and not isinstance(value, str):
        return json.dumps(for_json(value))
    return " ".join(["(fault)" if each is None else str(each) for each in value]) if isinstance(value, tuple) else value
