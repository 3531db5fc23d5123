"""`kprobes hist`, `top` and `cover`: a guest is run, and numbers are told."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import click

from ..newfile import NewFile
from ._guest import Guest, GuestCommand, on_events, on_guest
from ._render import table


@click.command(cls=GuestCommand)
@on_guest
@click.argument("event")
@click.argument("keys", metavar="KEYS")
@click.option("--filter", "condition", default="", metavar="TEXT",
              help="Only hits for which this holds, as in ftrace: 'len > 3'.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per entry.")
def hist(guest: Guest, event: str, keys: str, condition: str, as_json: bool) -> None:
    """Probe FILE, run it, and show a histogram of an event's values, as ftrace's hist trigger does.

    KEYS: `len.log2`, or all that ftrace takes: `keys=len.log2,caller:vals=hitcount:sort=hitcount.descending`.

    \b
    kprobes hist demo 'p crc32 len=$arg3:u32' len --run
    """
    with guest.opened() as (machine, k):
        armed = k.event(event)
        wanted = keys if keys.startswith("keys=") else f"keys={keys}"
        armed.trigger(f"hist:{wanted} if {condition}" if condition else f"hist:{wanted}")
        try:
            guest.start(machine)
        finally:
            if not isinstance(sys.exc_info()[1], BrokenPipeError):
                if as_json:
                    for row in armed.hist:
                        click.echo(json.dumps({**row.keys, "hitcount": row.hitcount, **row.values}, default=str))
                else:
                    click.echo(str(armed.hist).rstrip("\n"))


@click.command(cls=GuestCommand)
@on_guest
@on_events
@click.option("--interval", type=click.FloatRange(0.05, 3600), default=1.0, metavar="SECONDS",
              help="How often the table is shown (1).")
@click.option("-n", "--rows", type=click.IntRange(1, 1000), default=20, metavar="N",
              help="How many functions are shown (20).")
@click.option("--json", "as_json", is_flag=True,
              help="Each time one JSON object: seconds so far, and the functions with their hits.")
def top(guest: Guest, definitions: list[str], exclude: tuple[str, ...], condition: str, interval: float, rows: int,
        as_json: bool) -> None:
    """Probe FILE, run it, and show the functions that are hit most, while it runs."""
    from ..tracing.recorder import Recording

    with guest.opened() as (machine, k):
        recording = Recording(k, definitions, filter=condition, exclude=exclude)
        shown = _Top(interval, rows, as_json)
        recording.told = [shown.counter(event.symbol or f"{event.target:#x}") for event in recording.events]
        with recording:
            try:
                guest.start(machine, prints=True)
            finally:
                if not isinstance(sys.exc_info()[1], BrokenPipeError):
                    shown.show(clear=guest.wanted is None)  # the call's result stays


ROOM = 4  #: lines of a terminal that are no rows of a table: its head, a call's result, what a shell says


class _Top:
    """Hits by function, shown now and then; on a terminal always in the same place."""

    def __init__(self, interval: float, rows: int, as_json: bool) -> None:
        self._interval, self._rows, self._json, self._begun = interval, rows, as_json, time.perf_counter()
        self._due, self._calls = self._begun + interval, 0
        self._counts: dict[str, int] = {}

    def counter(self, function: str) -> Callable[[Any, int, Sequence[int]], None]:
        """Who is told of a function's hits."""
        counts = self._counts
        counts[function] = 0

        def told(values: Any, return_address: int, stack: Sequence[int]) -> None:
            counts[function] += 1
            self._calls += 1
            if not self._calls % 64 and time.perf_counter() > self._due:
                self.show()
        return told

    def show(self, clear: bool = True) -> None:
        """Show the table as it is now. clear: alone on the screen."""
        now, rows = time.perf_counter(), self._rows
        self._due, spent = now + self._interval, max(now - self._begun, 1e-9)
        if sys.stdout.isatty() and not self._json:
            rows = min(rows, max(shutil.get_terminal_size().lines - ROOM, 1))
        found = [(name, hits) for name, hits in sorted(self._counts.items(), key=lambda row: -row[1])[:rows] if hits]
        if self._json:
            click.echo(json.dumps({"seconds": round(spent, 6), "hits": dict(found)}))
        else:
            if clear and sys.stdout.isatty():
                click.clear()
            table(("function", "hits", "per second"), [(name, hits, round(hits / spent)) for name, hits in found])
        sys.stdout.flush()


@click.command(cls=GuestCommand)
@on_guest
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="FILE",
              help="x.drcov (Lighthouse), x.info (lcov), x.html (source lines) or x.afl (the bitmap).")
@click.option("-m", "--module", "modules", multiple=True, metavar="GLOB",
              help="Only modules that it names; may be given again.")
@click.option("-i", "--include", "functions", multiple=True, metavar="GLOB",
              help="Only functions that it names; may be given again.")
@click.option("--sources", default=".", metavar="FOLDER", help="Where relative paths of source files begin (.).")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per function.")
def cover(guest: Guest, output: str | None, modules: tuple[str, ...], functions: tuple[str, ...], sources: str,
          as_json: bool) -> None:
    """Run FILE and say how much of each function was executed."""
    from ..tracing.coverage import format_of

    kind = "" if output is None else format_of(output)
    with (guest.opened() as (machine, k), k.coverage(modules, functions) as coverage,
          contextlib.nullcontext() if output is None else NewFile(output, binary=True) as new):
        try:
            guest.start(machine)
        finally:
            if new is not None:
                new.file.write(coverage.contents(kind, sources))
                new.keep = True
            executed: set[int] = set()
            for block in coverage.blocks:
                executed.update(range(block.address, block.address + block.size))
            rows = []
            for symbol in sorted((s for s in machine.symbols if s.kind == "func" and 0 < s.size < 1 << 20),
                                 key=lambda s: s.address):
                done = len(executed.intersection(range(symbol.address, symbol.address + symbol.size)))
                if done:
                    rows.append((symbol.name, done, symbol.size, f"{100 * done / symbol.size:.1f}"))
            if as_json:
                for name, done, size, _ in rows:
                    click.echo(json.dumps({"function": name, "executed": done, "size": size}))
            else:
                table(("function", "executed", "size", "percent"), rows)
