"""`kprobes trace`, `record`, `stat` and `graph`: they run a guest, and print or keep what
happened.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any, cast

import click

from ..newfile import NewFile
from ..stacks import INCOMPLETE
from ._guest import (
    GuestCommand,
    GuestOptions,
    counted,
    left_out,
    on_clock,
    on_events,
    on_guest,
    on_verbose,
    sums,
    to_file,
)
from ._render import (
    named,
    naming,
    on_names,
    on_names_in_files,
    pictures_are_demangled,
    probing,
    stack_lines,
    table,
    where,
)

if TYPE_CHECKING:
    from ..events import Event, Value
    from ..kprobes import Kprobes
    from ..tracing.trace import Trace

    Emit = Callable[
        [tuple[Value, ...], int, Sequence[int]], None
    ]  # (values, return address, stack)

KINDS = {
    "arrow": "arrow",
    "json": "chrome",
    "pftrace": "perfetto",
    "perfetto-trace": "perfetto",
    "jsonl": "jsonl",
    "csv": "csv",
    "folded": "folded",
    "svg": "svg",
    "html": "html",
    "parquet": "parquet",
    "otlp": "otlp",
    "perf": "perf",
    "txt": "ftrace",
    "ftrace": "ftrace",
    "speedscope": "speedscope",
}


@click.command(cls=GuestCommand)
@on_guest
@on_events
@on_names
@click.option("--stack", is_flag=True, help="With each hit, the calls that led to it.")
@on_clock("counter")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per hit.")
@click.option("-f", "--follow", is_flag=True, help="Write each hit as it comes, also into a pipe.")
@on_verbose
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="-",
    help="File for the hits.",
)
def trace(
    guest: GuestOptions,
    definitions: list[str],
    exclude: tuple[str, ...],
    condition: str,
    stack: bool,
    clock: str,
    as_json: bool,
    follow: bool,
    verbose: bool,
    output: str,
) -> None:
    """Probe FILE, run it, and print every hit.

    \b
    kprobes trace demo -e 'r:crc crc32 len=$arg3:u32 crc=$retval:x32' --call 'crc32(0, "hello", 5)'
    kprobes trace demo 'p *insert* key=+0($arg1):string' --stack --run
    kprobes trace demo -f -i 'table_*' --run | grep insert
    """
    if follow and output != "-":
        raise click.UsageError(
            "--follow is for stdout: a file that -o names is there when it is complete"
        )
    with guest.opened() as (machine, k), contextlib.ExitStack() as closing:
        recording = _recording(k, definitions, exclude, condition, stack, clock)
        out = naming(closing.enter_context(to_file(output)), as_json)
        # what a process prints goes to the same place: hits come in front of what follows them
        if follow or (guest.qemu and output == "-"):
            out = cast("IO[str]", _Flushed(out))
        recording.told = [
            _printer(k, event, out, as_json, recording.now) for event in recording.events
        ]
        with _counting(recording, guest.file, verbose, out):
            guest.start(machine, prints=output == "-")


def _recording(
    k: Kprobes,
    definitions: list[str],
    exclude: tuple[str, ...],
    condition: str,
    stack: bool,
    clock: str = "counter",
) -> Any:
    """Make the Recording of a command's events; it probes nothing until it is entered.

    Args:
        k: the Kprobes.
        definitions: of the events.
        exclude: globs of functions that are not probed.
        condition: a filter in ftrace's language; "": every hit.
        stack: True: each hit has its stack.
        clock: "counter", "host" or "instructions".
    """
    from ..tracing.recorder import Recording

    return Recording(k, definitions, stack=stack, filter=condition, exclude=exclude, clock=clock)


class _Flushed:
    """A file that is flushed after each write, so that lines come at once, also into a pipe."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self.flush = file.flush

    def write(self, text: str) -> int:
        """Write a hit's lines, and flush the file."""
        written = self._file.write(text)
        self._file.flush()
        return written


@contextlib.contextmanager
def _counting(recording: Any, file: str, verbose: bool, out: IO[str] | None = None) -> Any:
    """Record while the body runs; then print the table of hits and misses, and what was left out.

    It is printed after errors, too, but not after a BrokenPipeError: nobody reads the output then.
    Yields the recording's trace.

    Args:
        recording: the Recording.
        file: path of the guest's file.
        verbose: True: all functions that are not probed are named, not only the first ones.
        out: the file that hits were written to, which is flushed before; None: there is none.
    """
    with probing(recording, file) as trace:
        try:
            yield trace
        finally:
            if not isinstance(sys.exc_info()[1], BrokenPipeError):
                if out is not None:
                    out.flush()
                counted(recording.armed)
                left_out(recording.skipped, verbose)


def _printer(k: Kprobes, event: Event, out: IO[str], as_json: bool, now: Any) -> Emit:
    """Make the function that is called at each hit of an event, and prints it.

    Args:
        k: the Kprobes.
        event: the event.
        out: open for text.
        as_json: True: a JSON object a line.
        now: returns the time of a hit; None: lines have none.
    """
    import json

    from ..events import locate
    from ..tracing.text import for_json

    machine, symbols, write = k.machine, k.machine.symbols, out.write
    head = _stamper(machine, now)
    numbers = all(arg.type.is_integer and not arg.type.count for arg in event.args)
    if numbers and not as_json and now is None and event.kind == "p":
        return _numbers(k, event, out)

    def emit(values: tuple[Value, ...], return_address: int, stack: Sequence[int]) -> None:
        """Print a hit: its values, and its stack if there is one.

        Args:
            values: what the event has fetched.
            return_address: where a return event's function returns to; not used for entry events.
            stack: addresses, the innermost first; () without --stack.
        """
        if as_json:
            facts = for_json(event.as_dict(values, return_address)) | (
                {} if now is None else {"time": now()}
            )
            if stack:
                facts |= {
                    "stack": [locate(symbols, address, n > 0) for n, address in enumerate(stack)],
                    "lines": [
                        where(machine, address - bool(n)) or None if address != INCOMPLETE else None
                        for n, address in enumerate(stack)
                    ],
                }
            write(json.dumps(facts) + "\n")
        else:
            write(f"{head()}{event.format(values, return_address)}\n" + stack_lines(machine, stack))

    return emit


def _stamper(machine: Any, now: Any) -> Callable[[], str]:
    """Make a function that returns the beginning of a hit's line, `TIME: `; "" without a clock.

    Args:
        machine: the guest, which has a clock of instructions.
        now: returns the time; None: there is no clock.
    """
    from ..clocknames import HOST_CLOCK, INSTRUCTION_CLOCK
    from ..tracing.clocks import stamp

    if now is None:
        return lambda: ""
    clock = INSTRUCTION_CLOCK if now is machine.clock else HOST_CLOCK
    return lambda: f"{stamp(0, now(), clock)}: "


def _numbers(k: Kprobes, event: Event, out: IO[str]) -> Emit:
    """Return the function that prints the hits of an entry event whose arguments are all numbers.

    The function writes the line that Event.format() makes, but by a single %-format, which is
    quicker; Event.format() is left for hits with a value that could not be read. The hit's stack
    follows, if it has one.

    Args:
        k: has the machine, which names the addresses of stacks.
        event: the event whose hits are printed; its lines begin with no time.
        out: where to print, open for text.
    """
    machine, write = k.machine, out.write
    head = (
        event.format([0] * len(event.args)).partition(") ")[0].removesuffix(")").replace("%", "%%")
    )
    forms = ["%#x" if arg.type.is_hexadecimal else "%d" for arg in event.args]
    shown = [f" {arg.name}={form}" for arg, form in zip(event.args, forms, strict=True)]
    line = f"{head}){''.join(shown)}\n"

    def emit(values: tuple[Value, ...], return_address: int, stack: Sequence[int]) -> None:
        """Print a hit: its values, and its stack if there is one.

        Args:
            values: the numbers that the event has fetched.
            return_address: not used: only entry events are printed here.
            stack: addresses, the innermost first; () without --stack.
        """
        try:
            write(line % values)
        except TypeError:  # (fault)
            write(event.format(values, return_address) + "\n")
        if stack:
            write(stack_lines(machine, stack))

    return emit


@click.command(cls=GuestCommand)
@on_guest
@on_events
@click.option("--stack", is_flag=True, help="With each hit, the calls that led to it.")
@click.option(
    "--records",
    type=click.IntRange(1, 1 << 28),
    default=1 << 20,
    metavar="N",
    help="Hits that are kept: the last ones (1048576).",
)
@on_clock("host")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False),
    default="trace.arrow",
    help="File to write (trace.arrow); `kprobes convert` says which names stand for which formats.",
)
@on_names_in_files
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object of what is kept.")
@on_verbose
def record(
    guest: GuestOptions,
    definitions: list[str],
    exclude: tuple[str, ...],
    condition: str,
    stack: bool,
    records: int,
    clock: str,
    output: str,
    as_json: bool,
    verbose: bool,
) -> None:
    """Probe FILE, run it, and keep the hits in a file, for `kprobes report` and other tools."""
    import json

    from ..tracing.recorder import Recording
    from ..tracing.trace import ready, write

    kind = format_of(output, None)
    binary = ready(kind)
    with guest.opened() as (machine, k):
        recording = Recording(
            k,
            definitions,
            stack=stack,
            filter=condition,
            exclude=exclude,
            records=records,
            clock=clock,
        )
        written = False
        try:
            with NewFile(output, binary=binary) as new:
                try:
                    with (
                        probing(recording, guest.file)
                        if as_json
                        else _counting(recording, guest.file, verbose)
                    ):
                        new.keep = True
                        guest.start(machine)
                finally:
                    if new.keep:
                        new.keep = False  # half of a file is none
                        write(recording.trace, new.file, kind, pictures_are_demangled())
                        new.keep = written = True
        finally:
            if as_json and written:
                click.echo(json.dumps(_recorded(recording, output, kind)))
        if not as_json:
            click.echo(
                f"{output}: {len(recording.trace)} records, {recording.trace.lost} lost, "
                f"{recording.trace.missed} missed",
                err=True,
            )


def _recorded(recording: Any, output: str, format: str) -> dict[str, Any]:
    """Return what `record --json` prints of a recording: its file, format, numbers of records, lost
    and missed ones, and the events and left-out functions, each a list of dicts.

    Args:
        recording: the Recording, which has ended.
        output: path of its file.
        format: of the file.
    """
    trace = recording.trace
    return {
        "file": output,
        "format": format,
        "records": len(trace),
        "lost": trace.lost,
        "missed": trace.missed,
        "events": [
            {"event": name, "hits": hits, "missed": missed}
            for name, (hits, missed) in sums(recording.armed).items()
        ],
        "left_out": [{"function": place, "reason": why} for place, why in recording.skipped],
    }


def format_of(output: str, format: str | None) -> str:
    """Return the format of a trace's file: `format`, or the one that the file's name ends in.

    Args:
        output: path of the file.
        format: the format, or None.

    Raises:
        UsageError: `format` is None, and the name's end stands for no format.
    """
    kind = format or KINDS.get(output.rpartition(".")[2].lower())
    if kind is None:
        raise click.UsageError(
            f"{output}: the name tells no format; give --format, or end it in one of: "
            f"{' '.join('.' + name for name in KINDS)}"
        )
    return kind


def save(trace: Trace, output: str, format: str | None) -> None:
    """Write a trace to a file.

    Args:
        trace: the trace.
        output: path of the file.
        format: the format; None: the file's name tells it.

    Raises:
        UsageError: the name's end stands for no format.
        OSError: the file cannot be written.
    """
    kind = format_of(output, format)
    if kind == "arrow":
        trace.save(output)
    else:
        trace.export(output, kind, pictures_are_demangled())


@click.command(cls=GuestCommand)
@on_guest
@on_events
@on_names
@click.option("--json", "as_json", is_flag=True, help="One JSON object per event.")
@on_verbose
def stat(
    guest: GuestOptions,
    definitions: list[str],
    exclude: tuple[str, ...],
    condition: str,
    as_json: bool,
    verbose: bool,
) -> None:
    """Probe FILE, run it, and count the hits of each event, by function, with their rate."""
    import json
    import time

    with guest.opened() as (machine, k):
        recording = _recording(k, definitions, exclude, condition, False)
        counts: dict[tuple[str, str], int] = {
            (event.name, event.function): 0 for event in recording.events
        }
        recording.told = [
            _counter(counts, (event.name, event.function)) for event in recording.events
        ]
        begun = time.perf_counter()
        try:
            with probing(recording, guest.file):
                guest.start(machine)
        finally:
            spent = max(time.perf_counter() - begun, 1e-9)
            rows = sorted(
                (
                    (event, function, hits, round(hits / spent))
                    for (event, function), hits in counts.items()
                ),
                key=lambda row: -row[2],
            )
            if as_json:
                for event, function, hits, rate in rows:
                    click.echo(
                        json.dumps(
                            {
                                "event": event,
                                "function": named(function),
                                "hits": hits,
                                "per_second": rate,
                            }
                        )
                    )
            else:
                table(("event", "function", "hits", "per second"), rows)
            left_out(recording.skipped, verbose)


def _counter(counts: dict[tuple[str, str], int], key: tuple[str, str]) -> Emit:
    """Make the function that is called at each hit of an event, and counts it.

    Args:
        counts: (event, function) -> hits. At each hit the entry of `key`, which is there already,
            becomes one more.
        key: of the event.
    """

    def emit(values: tuple[Value, ...], return_address: int, stack: Sequence[int]) -> None:
        """Count a hit."""
        counts[key] += 1

    return emit


@click.command(cls=GuestCommand)
@on_guest
@on_names
@click.argument("function")
@click.option("-i", "--include", default="*", metavar="GLOB", help="Which functions are shown.")
@click.option(
    "--args",
    type=click.IntRange(0, 16),
    default=0,
    metavar="N",
    help="How many arguments are shown.",
)
@click.option("--depth", type=click.IntRange(0), metavar="N", help="How far down.")
@click.option(
    "--instructions",
    is_flag=True,
    help="Count the instructions of each call; flame graphs are by them.",
)
@click.option(
    "--format",
    type=click.Choice(["text", "jsonl", "folded", "speedscope", "svg", "html"]),
    default="text",
    help="What is written.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per call: --format jsonl.")
@on_verbose
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="-",
    help="File to write.",
)
def graph(
    guest: GuestOptions,
    function: str,
    include: str,
    args: int,
    depth: int | None,
    instructions: bool,
    format: str,
    as_json: bool,
    verbose: bool,
    output: str,
) -> None:
    """Run FILE and show the tree of calls below FUNCTION: arguments, results, depth."""
    if as_json and format not in ("text", "jsonl"):
        raise click.UsageError(f"give either --json or --format {format}")
    with guest.opened() as (machine, k), to_file(output) as out:
        graph = k.graph(
            function, functions=include, args=args, depth=depth, instructions=instructions
        )
        try:
            with probing(graph, guest.file) as tree:
                guest.start(machine)
        finally:
            if not isinstance(sys.exc_info()[1], BrokenPipeError):
                tree = graph.tree
                for call in (call for root in tree.calls for call in root):
                    call.name = named(call.name)
                tree.export(out, "jsonl" if as_json else format, pictures_are_demangled())
                out.flush()
                click.echo(
                    f"{len(tree)} calls, {tree.missed} missed, {len(tree.skipped)} "
                    "functions left out",
                    err=True,
                )
                if verbose:
                    left_out([*tree.skipped.items()], verbose)
