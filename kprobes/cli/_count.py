"""`kprobes hist`, `top` and `cover`: a guest runs, and numbers are printed."""

from __future__ import annotations

import contextlib
import json
import math
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from ..newfile import NewFile
from ._guest import GuestCommand, GuestOptions, left_out, on_events, on_guest, on_verbose
from ._keys import typed
from ._render import objects, on_names, pictures_are_demangled, probing, table

ORDERS = {"hits": "h", "rate": "s", "name": "n"}  #: what top's rows are sorted by -> the key for it


@click.command(cls=GuestCommand)
@on_guest
@click.argument("event")
@click.argument("keys", metavar="KEYS")
@click.option(
    "--filter",
    "condition",
    default="",
    metavar="TEXT",
    help="Only hits for which this holds, as in ftrace: 'len > 3'.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per entry.")
def hist(guest: GuestOptions, event: str, keys: str, condition: str, as_json: bool) -> None:
    """Probe FILE, run it, and show a histogram of an event's values, as ftrace's hist trigger does.

    KEYS: `len.log2`, or all that ftrace takes:
    `keys=len.log2,caller:vals=hitcount:sort=hitcount.descending`.

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
                        click.echo(
                            json.dumps(
                                {**row.keys, "hitcount": row.hitcount, **row.values}, default=str
                            )
                        )
                else:
                    click.echo(str(armed.hist).rstrip("\n"))


@click.command(cls=GuestCommand)
@on_guest
@on_events
@click.option(
    "--interval",
    type=click.FloatRange(0.05, 3600),
    default=1.0,
    metavar="SECONDS",
    help="How often the table is shown (1).",
)
@click.option(
    "-n",
    "--rows",
    type=click.IntRange(1, 1000),
    default=20,
    metavar="N",
    help="How many functions are shown (20).",
)
@click.option(
    "--sort",
    "order",
    type=click.Choice([*ORDERS]),
    default="hits",
    help="What the rows are sorted by (hits): hits, hits a second since the table before, or "
    "names.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Each time one JSON object: seconds so far, and the functions with their hits.",
)
@on_verbose
def top(
    guest: GuestOptions,
    definitions: list[str],
    exclude: tuple[str, ...],
    condition: str,
    interval: float,
    rows: int,
    order: str,
    as_json: bool,
    verbose: bool,
) -> None:
    """Probe FILE, run it, and show the functions that are hit most, while it runs.

    In a terminal keys sort the rows anew: h hits, s hits a second, n names, r the other way round.
    """
    from ..tracing.recorder import Recording

    with guest.opened() as (machine, k), typed() as keys:
        recording = Recording(k, definitions, filter=condition, exclude=exclude)
        shown = _Top(interval, rows, as_json, order, None if as_json else keys)
        recording.told = [shown.counter(event.function) for event in recording.events]
        with probing(recording, guest.file):
            try:
                with shown.again():
                    guest.start(machine, prints=True)
            finally:
                if not isinstance(sys.exc_info()[1], BrokenPipeError):
                    shown.show_last(clear=not guest.wanted)  # the call's result stays
                    if verbose:
                        left_out(recording.skipped, verbose)


LOOKING = 0.1  #: seconds between two looks for keys
#: Lines of a terminal that are no rows of a table: its head, the keys, a call's result, the
#: shell's prompt.
ROOM = 5


class _Top:
    """Counts hits by function, and prints the table now and then; on a terminal in the same
    place.
    """

    def __init__(
        self, interval: float, rows: int, as_json: bool, order: str, keys: Callable[[], str] | None
    ) -> None:
        """Begin to count; nothing is printed yet.

        Args:
            interval: seconds between two tables.
            rows: how many rows a table has at most.
            as_json: True: a line of JSON takes the place of a table.
            order: what rows are sorted by, one of ORDERS.
            keys: returns the keys typed since its last call; None: there is no keyboard.
        """
        self._interval = interval
        self._rows = rows
        self._json = as_json
        self._order = order
        self._keys = keys
        self._reversed = False
        self._begun = self._shown = time.perf_counter()
        self._due = self._begun + interval
        self._failed: OSError | None = None  #: why no table can be printed any more
        self._counts: dict[str, int] = {}
        self._before: dict[str, int] = {}  #: of the table before
        self._rates: dict[str, float] = {}

    def counter(self, function: str) -> Callable[[Any, int, Sequence[int]], None]:
        """Make a function to be called at each hit of one guest function, which counts it.

        The made function raises the OSError with which a table could not be printed. The count is 0
        from now on.

        Args:
            function: name of the guest's function, as the table has it.

        Returns:
            A function of (values, return address, stack), none of which it uses.
        """
        counts = self._counts
        counts[function] = 0

        def count(values: Any, return_address: int, stack: Sequence[int]) -> None:
            """Count a hit."""
            counts[function] += 1
            if self._failed is not None:
                raise self._failed

        return count

    @contextlib.contextmanager
    def again(self) -> Iterator[None]:
        """Show the table again and again while the body runs, and sort it anew at each key.

        A thread does it, so that tables come also while the guest hits no probe. Seconds count from
        now on.
        """
        self._begun = self._shown = time.perf_counter()
        self._due = self._begun + self._interval
        ended = threading.Event()
        thread = threading.Thread(target=self._show_until, args=(ended,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _show_until(self, ended: threading.Event) -> None:
        """Show the table whenever it is due or a key was typed; see to it that counting fails where
        it cannot be printed.

        Args:
            ended: is set when no more tables are wanted.
        """
        most = math.inf if self._keys is None else LOOKING
        while not ended.wait(max(min(self._due - time.perf_counter(), most), 0)):
            try:
                if time.perf_counter() >= self._due or self._typed():
                    self.show()
            except OSError as error:
                self._failed = error
                return

    def _typed(self) -> bool:
        """Read the keys typed so far, and change the order by them.

        Returns:
            True: the order has changed.
        """
        was = self._order, self._reversed
        for key in self._keys() if self._keys is not None else "":
            if key == "r":
                self._reversed = not self._reversed
            else:
                self._order = next(
                    (order for order, sorts in ORDERS.items() if sorts == key), self._order
                )
        return was != (self._order, self._reversed)

    def show_last(self, clear: bool) -> None:
        """Show the table of the whole run, whose rates are hits by the seconds since the beginning.

        Keys are not read any more.

        Args:
            clear: True: the screen is cleared first; False: the table comes below what is there.
        """
        self._before = {}
        self._shown = self._begun
        self._keys = None
        self.show(clear)

    def show(self, clear: bool = True) -> None:
        """Print the table as it is now (or a line of JSON), and set the time of the next one.

        Rates are of the time since the table before. A table that comes sooner than half an
        interval after that one, as after a key, shows its rates again.

        Args:
            clear: True: a terminal is cleared first; False: the table comes below what is there.
        """
        now, rows = time.perf_counter(), self._rows
        self._due, spent = now + self._interval, max(now - self._begun, 1e-9)
        if (
            now - self._shown > self._interval / 2 or not self._before
        ):  # a key's table has the rates of the one before
            since = max(now - self._shown, 1e-9)
            self._rates = {
                name: (hits - self._before.get(name, 0)) / since
                for name, hits in self._counts.items()
            }
            self._before, self._shown = dict(self._counts), now
        if sys.stdout.isatty() and not self._json:
            rows = min(rows, max(shutil.get_terminal_size().lines - ROOM, 1))
        found = [(name, hits) for name, hits in self._sorted() if hits][:rows]
        if self._json:
            click.echo(json.dumps({"seconds": round(spent, 6), "hits": dict(found)}))
        else:
            if clear and sys.stdout.isatty():
                click.clear()
            table(
                ("function", "hits", "per second"),
                [(name, hits, round(self._rates.get(name, 0))) for name, hits in found],
            )
            if self._keys is not None:
                click.echo(
                    f"{time.strftime('%H:%M:%S', time.gmtime(spent))}  sorted by {self._order}"
                    f"{', reversed' * self._reversed}; h hits, s a second, n names, r "
                    "reverse, Ctrl-C ends"
                )
        sys.stdout.flush()

    def _sorted(self) -> list[tuple[str, int]]:
        """Return (function, hits) of all functions, in the order that was chosen.

        Most hits come first, names from A on; or the other way round.
        """
        by: dict[str, Callable[[tuple[str, int]], Any]] = {
            "hits": lambda row: -row[1],
            "rate": lambda row: -self._rates.get(row[0], 0),
            "name": lambda row: row[0],
        }
        return sorted(self._counts.items(), key=by[self._order], reverse=self._reversed)


@click.command(cls=GuestCommand)
@on_guest
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="x.drcov (Lighthouse), x.info (lcov), x.html (source lines) or x.afl (the bitmap).",
)
@click.option(
    "-m",
    "--module",
    "modules",
    multiple=True,
    metavar="GLOB",
    help="Only modules that it names; may be given again.",
)
@click.option(
    "-i",
    "--include",
    "functions",
    multiple=True,
    metavar="GLOB",
    help="Only functions that it names; may be given again.",
)
@click.option(
    "--sources",
    default=".",
    metavar="FOLDER",
    help="Where relative paths of source files begin (.).",
)
@on_names
@click.option("--json", "as_json", is_flag=True, help="One JSON object per function.")
def cover(
    guest: GuestOptions,
    output: str | None,
    modules: tuple[str, ...],
    functions: tuple[str, ...],
    sources: str,
    as_json: bool,
) -> None:
    """Run FILE and say how much was executed of each function that ran."""
    from ..tracing.coverage import format_of

    kind = "" if output is None else format_of(output)
    with (
        guest.opened() as (machine, k),
        k.coverage(modules, functions) as coverage,
        contextlib.nullcontext() if output is None else NewFile(output, binary=True) as new,
    ):
        try:
            guest.start(machine)
        finally:
            if new is not None:
                new.file.write(coverage.contents(kind, sources, pictures_are_demangled()))
                new.keep = True
            executed: set[int] = set()
            for block in coverage.blocks:
                executed.update(range(block.address, block.address + block.size))
            rows = []
            for symbol in sorted(
                (s for s in machine.symbols if s.kind == "func" and 0 < s.size < 1 << 20),
                key=lambda s: s.address,
            ):
                done = len(
                    executed.intersection(range(symbol.address, symbol.address + symbol.size))
                )
                if done:
                    rows.append((symbol.name, done, symbol.size, f"{100 * done / symbol.size:.1f}"))
            if as_json:
                objects(
                    {"function": name, "executed": done, "size": size}
                    for name, done, size, _ in rows
                )
            else:
                table(("function", "executed", "size", "percent"), rows)
