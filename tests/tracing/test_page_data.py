"""What pages and folded stacks are made of, against the records one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kprobes import Kprobes, Trace, UnicornMachine
from kprobes.tracing import html
from kprobes.tracing.profile import folded

pytestmark = pytest.mark.quick
DEMO = str(Path(__file__).resolve().parents[2] / "examples" / "demo.x86_64")


@pytest.fixture(params=[(False, "live"), (True, "live"), (False, "file"), (True, "file")], ids=str)
def trace(request: Any, tmp_path: Path) -> Iterator[Trace]:
    stack, kind = request.param
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        with k.trace("p:fib fib n=$arg1:u32", "r:back fib v=$retval:u32", "p:x crc32 t=+0($arg2):string",
                     clock="instructions", stack=stack) as made:
            m.call("crc32", 0, b"one", 3)
            for n in (7, 11):
                m.call("fib", n)
                m.call("crc32", 0, b"two", 3)
        assert len(made) > (1 << 8)
        if kind == "file":
            made.save(tmp_path / "x.arrow")
            made = Trace.load(tmp_path / "x.arrow")
        yield made


def test_stacks_are_those_of_the_records(trace: Trace) -> None:
    """The counts, and the order in which stacks are first seen."""
    expected: dict[tuple[str, ...], int] = {}
    for info, _, row in trace.rows():
        frames = [trace.name(address).partition("+")[0] for address in reversed(row[7])] or [info.function]
        expected[(*frames, info.name)] = expected.get((*frames, info.name), 0) + 1
    assert [*folded(trace).items()] == [*expected.items()]


@pytest.mark.parametrize("room", [html.MOST_SLICES, 100])
def test_calls_are_those_of_the_records(trace: Trace, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time of each path, calls of each function and from each, slices with their arguments, whether there is room or
    not."""
    monkeypatch.setattr(html, "MOST_SLICES", room)
    paths: dict[tuple[str, ...], int] = {}
    slices: list[tuple[int, str]] = []  # depth, arguments
    counts: dict[str, int] = {}
    edges: dict[tuple[str, str], int] = {}
    open_calls: list[list[int]] = []  # when it began, time of those within, number of its slice
    for info, _, row in trace.rows():
        time, (value,) = row[4], row[6]
        if info.name == "back":
            begun, inner, number = open_calls.pop()
            path = ("fib",) * (len(open_calls) + 1)
            paths[path] = paths.get(path, 0) + time - begun - inner
            if open_calls:
                open_calls[-1][1] += time - begun
            if number < room:
                slices[number] = (len(open_calls), f"{slices[number][1]}\nv={value}\nreturns to={trace.name(row[5])}")
            continue
        if len(slices) < room:
            slices.append((len(open_calls), f"n={value}" if info.name == "fib" else f't="{value}"'))
            number = len(slices) - 1
        else:
            number = room
        if info.name == "fib":
            counts["fib"] = counts.get("fib", 0) + 1
            if open_calls:
                edges["fib", "fib"] = edges.get(("fib", "fib"), 0) + 1
            open_calls.append([time, 0, number])
    calls = html._Calls(trace, times=True)
    assert calls.named_paths() == paths
    text = calls.functions.text
    assert {text(n): many for n, many in calls.counts.items()} == counts
    assert {(text(a), text(b)): many for (a, b), many in calls.edges.items()} == edges
    assert calls.left_out == max(sum(info.name != "back" for info, _, _ in trace.rows()) - room, 0)
    data = calls.timeline()[1]
    assert sorted((depth, data["texts"][n]) for depth, n in zip(data["depth"], data["args"], strict=True)
                  ) == sorted(slices)
