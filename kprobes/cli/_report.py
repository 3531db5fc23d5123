"""`kprobes report` and `convert`: they read a recording, and run nothing."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ..stacks import addresses_of
from ._guest import to_file
from ._render import (
    named,
    on_names,
    on_names_in_files,
    patience,
    pictures_are_demangled,
    table,
)
from ._trace import KINDS, format_of, save

if TYPE_CHECKING:
    from ..tracing.trace import Trace

FORMATS = [
    "arrow",
    "parquet",
    "ftrace",
    "perf",
    "jsonl",
    "csv",
    "chrome",
    "perfetto",
    "otlp",
    "folded",
    "speedscope",
    "svg",
    "html",
]
#: that are bytes, not text
BINARY = ("arrow", "parquet", "perfetto")
PICTURES = ["flame", "timeline", "heat", "histogram", "callgraph"]


def _read(path: str) -> Trace:
    """Load a recording from a file.

    Raises:
        ImageError: the file cannot be read, is damaged, or another program's.
        Unsupported: pyarrow is not installed.
    """
    from ..tracing.trace import Trace

    return Trace.load(path)


@click.command()
@click.argument("recording", default="trace.arrow")
@click.option(
    "--by",
    type=click.Choice(["event", "function", "caller", "task", "stack"]),
    default="event",
    help="What hits are counted by.",
)
@on_names
@click.option("--json", "as_json", is_flag=True, help="One JSON object per row.")
@click.option(
    "--flame",
    type=click.Path(dir_okay=False),
    metavar="FILE.svg",
    help="Write a flame graph as well.",
)
def report(recording: str, by: str, as_json: bool, flame: str | None) -> None:
    """Summarize what `kprobes record` wrote: hits by event, function, caller, task or stack.

    Stacks are as `record --stack` left them, innermost first, with source lines where the guest was
    built with -g.
    """
    import json

    trace = _read(recording)
    rows: Counter[str] = Counter(
        _key(trace, by, info, task, row) for info, task, row in trace.rows()
    )
    total = max(len(trace), 1)
    if as_json:
        for name, hits in rows.most_common():
            click.echo(json.dumps({by: named(name), "hits": hits}))
    else:
        table(
            (by, "hits", "percent"),
            [(name, hits, f"{100 * hits / total:.1f}") for name, hits in rows.most_common()],
        )
        click.echo(f"{len(trace)} records, {trace.lost} lost", err=True)
    if flame is not None:
        with to_file(flame) as out:
            trace.export(out, "svg", pictures_are_demangled())


def _key(trace: Trace, by: str, info: Any, task: Any, row: Any) -> str:
    """Return the text under which a record is counted; of a caller its function's name.

    Where the recording tells no caller or stack, the text says so, and what to record.

    Args:
        trace: the recording.
        by: "event", "function", "caller", "task" or "stack".
        info: the record's event.
        task: its task.
        row: the record as a Row: its caller is row[5], its stack row[7].
    """
    if by == "caller":
        stack = addresses_of(row[7])
        if row[5]:
            return trace.name(row[5]).partition("+")[0]
        if len(stack) > 1:
            return trace.caller_name(stack[1]).partition("+")[0]
        return "(unknown: record with --stack, or return events)"
    if by == "stack":
        return _stack(trace, row[7]) or "(unknown: record with --stack)"
    return str({"event": info.name, "function": info.function, "task": task}[by])


def _stack(trace: Trace, stack: Sequence[int]) -> str:
    """Return a stack as text: `insert (a.c:12) < main (b.c:3)`, innermost first; "" for an empty
    one.

    Args:
        trace: names addresses, and knows their source lines.
        stack: code addresses, as a record keeps them.
    """
    frames = (
        f"{name.partition('+')[0]}{f' ({line})' if line else ''}"
        for name, line in zip(trace.names(stack), trace.lines(stack), strict=True)
    )
    return " < ".join(frames)


@click.command(
    epilog="Endings of names: " + ", ".join(f".{name} {kind}" for name, kind in KINDS.items())
)
@click.argument("recording")
@click.argument("output")
@click.option(
    "--format", type=click.Choice(FORMATS), help="What to write; else OUTPUT's name tells."
)
@click.option(
    "--picture",
    "pictures",
    type=click.Choice(PICTURES),
    multiple=True,
    help="Of a page (.html): only this picture; may be given again.",
)
@click.option(
    "--before",
    type=click.Path(exists=True, dir_okay=False),
    metavar="RECORDING",
    help="Of a page: the flame graph shows the difference from this recording.",
)
@on_names_in_files
@click.option("--open", "opened", is_flag=True, help="Show the page in the browser.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, of what was written.")
def convert(
    recording: str,
    output: str,
    format: str | None,
    pictures: tuple[str, ...],
    before: str | None,
    opened: bool,
    as_json: bool,
) -> None:
    """Write what `kprobes record` wrote in another format; OUTPUT - is stdout.

    \b
    kprobes convert trace.arrow trace.html --open
    kprobes convert after.arrow change.html --before before.arrow --picture flame
    """
    import json

    kind = format if output == "-" else format_of(output, format)
    if kind != "html" and (pictures or before or opened):
        raise click.UsageError("--picture, --before and --open are for pages: end OUTPUT in .html")
    if output == "-" and (opened or kind in (None, "arrow")):
        raise click.UsageError("for stdout give --format, and not arrow; --open needs a file")
    if output == "-" and as_json:
        raise click.UsageError("stdout cannot be both OUTPUT and what --json prints: name a file")
    with patience(f"reading {os.path.basename(recording)}"):
        trace = _read(recording)
    with patience(f"writing {os.path.basename(output)}"):
        if kind == "html":
            from ..tracing.html import page_of

            demangle = pictures_are_demangled()
            text = page_of(
                trace.with_names(demangle),
                pictures,
                None if before is None else _read(before).with_names(demangle),
                os.path.basename(recording),
            )
            with to_file(output) as out:
                out.write(text)
        elif output == "-":
            with to_file("-", binary=kind in BINARY) as out:
                trace.export(out, str(kind), pictures_are_demangled())
        else:
            save(trace, output, kind)
    if as_json:
        facts = {"file": output, "format": kind, "records": len(trace), "lost": trace.lost}
        click.echo(json.dumps(facts))
    if opened and click.launch(os.path.abspath(output)):
        click.echo(f"no browser could be started; open {os.path.abspath(output)}", err=True)
