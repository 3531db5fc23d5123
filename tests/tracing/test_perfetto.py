"""Perfetto's own trace processor reads what k.trace() writes: every slice, argument, thread and time."""

from __future__ import annotations

import io
import itertools
import json
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from arches import NO_PROGRAMS, RUNNABLE, programs_of
from test_trace import DEMO, EVENTS, exported, work
from trace_processor import ask

from kprobes import Kprobes, Trace, UnicornMachine

SLICES = """select slice.ts, dur, depth, slice.name, thread.name, category, process.name, slice.arg_set_id
    from slice join thread_track on track_id = thread_track.id join thread using (utid) join process using (upid)
    order by slice.id"""
ARGS = "select arg_set_id, key, coalesce(int_value, string_value), value_type from args"
ERRORS = "select name, value from stats where value != 0 and severity != 'info'"
FORMATS = ("chrome", "perfetto")
Span = list[Any]  #: begin, duration, depth, name, thread, arguments


def written(t: Trace, format: str) -> bytes:
    if format != "perfetto":
        return exported(t, format).encode()
    t.export(file := io.BytesIO(), format)
    return file.getvalue()


def read(t: Trace, format: str) -> list[Span]:
    """What the trace processor makes of a trace: its slices, in order of their begin."""
    slices, args, errors = ask(written(t, format), SLICES, ARGS, ERRORS)
    assert not errors
    found: dict[int, dict[str, Any]] = defaultdict(dict)
    for n, key, value, kind in args:
        found[n][key.partition(".")[2]] = value & (1 << 64) - 1 if kind in ("uint", "pointer") else value
    assert all(row[5:7] == ("kprobes", "guest") for row in slices)
    return [[*row[:5], found[row[7]]] for row in slices]


def flat(value: Any, key: str) -> dict[str, Any]:
    """As the trace processor names what is in lists: a[0], a[1]."""
    if isinstance(value, tuple):
        return {name: each for n, one in enumerate(value) for name, each in flat(one, f"{key}[{n}]").items()}
    return {key: "(fault)" if value is None else value}


def arguments(t: Trace, n: int, format: str) -> dict[str, Any]:
    """What was recorded at a hit. In JSON numbers are text where they are shown in hexadecimal, or no doubles."""
    row, record = t.source.row(n), t[n]
    info = t.events[row[1]]
    out: dict[str, Any] = {}
    for field in info.fields:
        for key, value in flat(record.args[field.name], field.name).items():
            texts = format == "chrome" and isinstance(value, int)
            out[key] = (hex(value) if texts and field.type.style == "x" else
                        str(value) if texts and abs(value) > 1 << 53 else value)
    if info.kind == "r":
        out["caller"] = t.name(record.caller)
    return out | flat((*map(t.name, record.stack), *["[incomplete]"] * record.incomplete), "stack")


def expected(t: Trace, format: str, spans: dict[str, str]) -> list[Span]:
    """The slices that k.trace()'s records stand for. spans: the events that begin one -> those that end it."""
    out: list[Span] = []
    calls: dict[Any, list[tuple[str, Span]]] = defaultdict(list)
    for n, record in enumerate(t):
        now = (record.time or 0) if t.timed else 1000 * record.seq
        own, args = calls[record.task], arguments(t, n, format)
        if own and record.event == own[-1][0]:
            span = own.pop()[1]
            span[1] = now - span[0]
            span[5].update({f"return.{name}": value for name, value in args.items()})
            continue
        place = record.event in spans
        name = t.events[t.source.row(n)[1]].function if place else record.event
        out.append([now, 0, len(own), name, f"task {record.task}", args])
        if place:
            own.append((spans[record.event], out[-1]))
    return out


def clocks() -> dict[str, Any]:
    return {"counter": "counter", "host": "host", "instructions": "instructions",
            "near": itertools.count((1 << 50) - 50_000, 777).__next__}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("stack", [False, True])
@pytest.mark.parametrize("clock", [*clocks()])
def test_every_record(clock: str, stack: bool, format: str) -> None:
    """Spans that nest, instants, numbers of 64 bits, texts, arrays, faults; the same name at entry and return."""
    more = ("p:kinds crc32 big=\\0xfffffffffffffff1:u64 neg=\\-5:s64 hex=\\0xfffffffffffffff1:x64 none=@0x8 "
            "c=\\65:char", "p:again fib", "r:later fib n=$retval")
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        m.call("table_init")
        with k.trace(*EVENTS[:2], "p:in fib n=$arg1:u32 caller=$stack0", "r:out fib n=$retval", *more, stack=stack,
                     clock=clocks()[clock]) as t:
            work(k)
        seen, wanted = read(t, format), expected(t, format, {"in": "out"})
        for span in (*seen, *wanted):
            span[2] *= clock != "instructions"  # what happens at the same time as an instant is shown below it
        assert len(t) > 25 and seen == wanted


@pytest.mark.parametrize("arch", [name for name in RUNNABLE if name not in NO_PROGRAMS])
def test_of_every_architecture(arch: str) -> None:
    with UnicornMachine.load(programs_of(arch)[-1]) as m, Kprobes(m) as k:
        with k.trace("p:in fib n=$arg1 s=$arg1:s8 word=+0($stack):x64", "r:out fib $retval:s32", stack=True) as t:
            m.call("fib", 4)
        assert len(t) == 10 and len(t[0].args) == 3 and read(t, "perfetto") == expected(t, "perfetto", {"in": "out"})


@pytest.mark.parametrize("format", FORMATS)
def test_calls_that_do_not_return_in_order(format: str) -> None:
    """Left by a longjmp; a return whose entry was overwritten; entries without a return: all end, at the last time."""
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        with k.trace("p:in fib", "r:out fib", "p:other crc32", records=5) as t:
            m.call("fib", 3)
            m.call("crc32", 0, 16, 0)
        depths = [(row[2], row[3], row[1]) for row in read(t, format)]
        assert [r.event for r in t] == ["in", "out", "out", "out", "other"] and depths[0] == (0, "fib", 1000)
        assert [row[1] for row in depths] == ["fib", "out", "out", "other"]
        with pytest.warns(Warning), k.trace("p:in fib", "r1:out fib", "p:other crc32") as t:
            m.call("fib", 3)
            m.call("crc32", 0, 16, 0)
        assert [r.event for r in t] == ["in"] * 3 + ["out", "other"]
        assert [row[1:4] for row in read(t, format)] == [[4000, 0, "fib"], [3000, 1, "fib"], [1000, 2, "fib"],
                                                         [0, 2, "other"]]


NAMES = (7, "seven", "a\x1b[31m b", "a\0b", "\ud800x", "é", "", ("a", 1), None, 1 << 70)
THREADS = ["task 7", "seven", "a\\x1b[31m b", "a\\x00b", "\\ud800x", "é", "task", "('a', 1)", "None",
           f"task {1 << 70}"]


@pytest.mark.parametrize("format", FORMATS)
def test_tasks_are_threads(format: str) -> None:
    """Their calls nest each on its own, whatever their names; two of the same name are two threads."""
    names: Callable[[], Any] = itertools.chain(NAMES, itertools.repeat("seven")).__next__
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        m.cpu_task = lambda regs: names()
        with k.trace("p:in fib n=$arg1:u32") as t:
            for _ in NAMES:
                m.call("fib", 1)
        rows = ask(written(t, format), "select thread.name from slice join thread_track on "
                   "track_id = thread_track.id join thread using (utid) order by slice.id", ERRORS)
    # its reader of JSON leaves escapes as they are
    shown = [json.loads(f'"{name}"') if format == "chrome" else name for name, in rows[0]]
    assert shown == THREADS and not rows[1]


@pytest.mark.parametrize("format", FORMATS)
def test_times_of_a_wrong_clock(format: str) -> None:
    """One that goes backwards ends no span before it begins; a day in this century is told to the nanosecond."""
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        with k.trace("p:in fib", "r:out fib", clock=iter((50, 40, 60, 60, 55, 70)).__next__) as t:
            m.call("fib", 3)
        assert [row[:3] for row in read(t, format)] == [[50, 20, 0], [50, 10, 1], [60, 0, 2]]
        with k.trace("p:in fib", "r:out fib", clock=time.time_ns) as t:
            m.call("fib", 3)
        start = (t[0].time or 0) if format == "chrome" else 0
        assert [row[0] + start for row in read(t, format)] == [r.time for r in t if r.event == "in"]
        assert read(t, format)[0][1] == (t[-1].time or 0) - (t[0].time or 0)


def test_ftrace_text() -> None:
    """It reads the kernel's text, too: every line of a trace in seconds, without stacks."""
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        m.cpu_task = lambda regs: "init two"
        with k.trace(*EVENTS, clock="host") as t:
            work(k)
    errors, names = ask(exported(t, "ftrace").encode(), ERRORS, "select distinct name from thread where tid = 0")
    assert not errors and names
