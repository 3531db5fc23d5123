"""`kprobes campaign`: the command, and the bar of progress that `fuzz --replay` has, too."""

from __future__ import annotations

import contextlib
import gc
import glob
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import BadArgument, Unsupported
from ._main import GUEST_FAILED
from ._render import table

if TYPE_CHECKING:
    from ..campaign._journal import Journal, JournalEntry

CONNECT = 10.0  #: seconds until a scheduler must have answered
LINES = 10.0  #: seconds between lines that say how far it is
STOPPED = 130  #: exit status after Ctrl-C, as a shell has it


@click.command()
@click.argument("what", metavar="IMAGE|check")
@click.option(
    "--call",
    metavar="'NAME(@input, len)'",
    help="The function to call for each input: @input is its bytes' address, len their number.",
)
@click.option(
    "--before",
    multiple=True,
    metavar="'NAME(ARG, ...)'",
    help="Call this first, once; may be given again.",
)
@click.option(
    "--inputs",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="A directory of inputs, or one; may be given again.",
)
@click.option(
    "--files", multiple=True, metavar="GLOB", help="With `check`: the files; may be given again."
)
@click.option(
    "-e",
    "--event",
    "events",
    multiple=True,
    metavar="EVENT",
    help="Count an event, as for `trace`; may be given again.",
)
@click.option("--coverage", is_flag=True, help="Count the blocks that were executed.")
@click.option(
    "--dataset",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Record the events' hits there: Arrow files, a data set for any reader.",
)
@click.option("--arch", metavar="NAME", help="The architecture, where files do not tell.")
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Number of processes, or of the cluster's workers; without it one for each processor, "
    "or all workers.",
)
@click.option("--dask", metavar="ADDRESS", help="A dask scheduler, whose workers do it instead.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Give an item up after this time.",
)
@click.option(
    "--memory",
    type=click.IntRange(1),
    metavar="MIB",
    help="Give an item up that takes more memory than this beyond what its worker has.",
)
@click.option(
    "--max-insns",
    type=click.IntRange(1),
    metavar="N",
    help="Stop the guest after this many instructions.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Journal: an outcome a line. What it holds already is not done again, so that a "
    "killed campaign "
    "goes on.",
)
@click.option("--json", "as_json", is_flag=True, help="The sum as one JSON object.")
def campaign(
    what: str,
    call: str | None,
    before: tuple[str, ...],
    inputs: tuple[Path, ...],
    files: tuple[str, ...],
    events: tuple[str, ...],
    coverage: bool,
    dataset: str | None,
    arch: str | None,
    jobs: int | None,
    dask: str | None,
    timeout: float | None,
    memory: int | None,
    max_insns: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Do one thing for many inputs or files, on all processors or on a cluster, and sum up.

    \b
    kprobes campaign parser --call 'parse(@input, len)' --inputs corpus/ --jobs 2
    kprobes campaign check --files 'lib/*.so'
    """
    job, items, again = (
        _check_job(files, arch)
        if files
        else _call_job(what, call, before, inputs, events, coverage, dataset, arch, max_insns)
    )
    if dataset and not events:
        raise click.UsageError("--dataset records events: give some with -e")
    if files and what != "check":
        raise click.UsageError(f"with --files, what to do is `check`, not {what!r}")
    from ..campaign import Journal, gather, merged, run
    from ..campaign._journal import entry_of

    stopped = False
    with contextlib.ExitStack() as stack:
        executor, jobs = stack.enter_context(cluster(dask, jobs)) if dask else (None, jobs)
        journal = stack.enter_context(Journal(output, repr(job))) if output else None
        entries = _kept(journal, items)
        left = [*journal.left(items)] if journal else items
        kept = len(entries)
        outcomes = run(
            job,
            [*map(str, left)],
            executor,
            timeout,
            jobs=jobs,
            memory=None if memory is None else memory << 20,
        )
        follow = stack.enter_context(progress(len(left)))
        try:
            for outcome in follow(outcomes):
                entries.append(journal.note(outcome) if journal else entry_of(outcome))
        except KeyboardInterrupt:
            stopped = True
    total = merged(_countable(entry.result) for entry in entries) or {}
    failed = [entry for entry in entries if entry.error]
    _show(total, len(entries), failed, again, as_json)
    if dataset:
        found = gather(dataset, (entry.result for entry in entries))
        click.echo(f"{dataset}: {found.count_rows()} records in {len(found.files)} files", err=True)
    if stopped:
        click.echo(_resumption(len(entries) - kept, len(left), output), err=True)
        click.get_current_context().exit(STOPPED)
    if failed:
        click.get_current_context().exit(GUEST_FAILED)


def _resumption(done: int, count: int, output: Path | None) -> str:
    """Return the message of a campaign that Ctrl-C has stopped: how much was done, how to go on.

    Args:
        done: number of items that this run has done.
        count: number of items that it was to do.
        output: the journal; None: there is none, and nothing is kept.
    """
    said = f"stopped: {done} of {count} items were done"
    if output is None:
        return f"{said}; with -o FILE they had been kept, and the same command had gone on"
    return (
        f"{said}, {count - done} are left; {output} has what was done: type the same command "
        "to go on"
    )


def _call_job(
    image: str,
    call: str | None,
    before: tuple[str, ...],
    inputs: Sequence[Path],
    events: tuple[str, ...],
    coverage: bool,
    dataset: str | None,
    arch: str | None,
    max_insns: int | None,
) -> tuple[Callable[[Any], Any], list[Path], str]:
    """Make the job of a campaign that calls a function with each input; nothing runs yet.

    Args:
        image: the file with the function.
        call: the call, with @input and len for the input; None: an error.
        before: calls that are made once, before all.
        inputs: files, and folders whose files, at any depth, are inputs.
        events: definitions of events whose hits are counted.
        coverage: True: executed blocks are counted.
        dataset: folder that hits are recorded into; None: none.
        arch: the architecture's name; None: the file's header tells it.
        max_insns: instructions that a call may take; None: no limit.

    Returns:
        (job, which is called with the path of an input; the inputs; the command that repeats one
        input when its path is appended; it lacks --coverage and --dataset).

    Raises:
        UsageError: --call or --inputs is missing.
        BadArgument: there are no inputs.
        EventError: the text of a call is wrong.
    """
    if call is None or not inputs:
        raise click.UsageError(
            "give --call 'NAME(@input, len)' and --inputs DIRECTORY; or `check` and --files 'GLOB'"
        )
    from ..calltext import parse_call
    from ..campaign import Calls

    parse_call(call, inputs=True)
    for text in before:
        parse_call(text)
    items = [
        item
        for path in inputs
        for item in (
            [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
        )
    ]
    if not items:
        raise BadArgument(
            f"no files are in {', '.join(map(str, inputs))}",
            hint="--inputs takes a directory of inputs, one file each",
        )
    words = [
        "kprobes",
        "campaign",
        image,
        "--call",
        call,
        *(word for text in before for word in ("--before", text)),
        *(word for event in events for word in ("-e", event)),
        *(() if arch is None else ("--arch", arch)),
        *(() if max_insns is None else ("--max-insns", str(max_insns))),
        "--inputs",
    ]
    job = Calls(
        image, call, events, before, arch, max_insns=max_insns, coverage=coverage, dataset=dataset
    )
    return job, items, shlex.join(words)


def _check_job(
    files: tuple[str, ...], arch: str | None
) -> tuple[Callable[[Any], Any], list[Path], str]:
    """Make the job of a campaign that checks files; nothing runs yet.

    Args:
        files: glob patterns of files.
        arch: the architecture's name; None: each file's header tells it.

    Returns:
        (job, which is called with the path of a file; the files; the command that repeats one file
        when its path is appended).

    Raises:
        BadArgument: no file matches.
    """
    from ..campaign import Checks

    items = [
        Path(name)
        for pattern in files
        for name in sorted(glob.glob(pattern, recursive=True))
        if Path(name).is_file()
    ]
    if not items:
        raise BadArgument(
            f"no file matches {', '.join(files)}",
            hint="quote the pattern, as in --files 'lib/*.so'; ** stands for directories",
        )
    words = ["kprobes", "check", *(() if arch is None else ("--arch", arch))]
    return Checks(arch), items, shlex.join(words)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the collector off inside a with block.

    Hazard: a Client of distributed that could not connect is garbage in a circle. If the collector
    found it while another Client starts, its __del__ would wait for the lock that the start holds.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def cluster(
    address: str, jobs: int | None
) -> contextlib.AbstractContextManager[tuple[Executor, int]]:
    """Return a context manager that connects to a dask cluster when it is entered.

    Args:
        address: of the scheduler, HOST:PORT or tcp://HOST:PORT.
        jobs: number of workers that are counted on; None: as many threads as the cluster has.

    Returns:
        A context manager that yields (executor, number of workers), or raises BadArgument: no
        scheduler answers.

    Raises:
        Unsupported: the package distributed is not installed.
    """
    try:
        from distributed import Client
    except ImportError:
        raise Unsupported(
            "--dask needs the package distributed", hint="pip install 'kprobes[campaign]'"
        ) from None

    @contextlib.contextmanager
    def connected() -> Iterator[tuple[Executor, int]]:
        """Connect; yield (executor, number of workers).

        Raises:
            BadArgument: no scheduler answers.
        """
        client: Any = Client
        try:
            with _uncollected():
                connection = client(address, timeout=CONNECT)
        except (
            Exception
        ) as error:  # nobody there; no certificates; no address; seldom an assertion of its own
            what = str(error) or type(error).__name__
            raise BadArgument(
                f"--dask {address}: {what}",
                hint="give a scheduler's, as HOST:PORT or tcp://HOST:PORT",
            ) from None
        with connection:
            yield connection.get_executor(), jobs or max(1, sum(connection.nthreads().values()))

    return connected()


def _kept(journal: Journal | None, items: Sequence[Path]) -> list[JournalEntry]:
    """Return the entries that a journal has of these items already; [] without a journal.

    Args:
        journal: the campaign's; None: there is none.
        items: inputs or files.
    """
    return (
        [journal.entries[str(item)] for item in items if str(item) in journal.entries]
        if journal
        else []
    )


@contextlib.contextmanager
def progress(
    count: int, more: Callable[[], str] = str
) -> Iterator[Callable[[Iterable[Any]], Iterable[Any]]]:
    """Show on stderr how far a campaign is: a bar on a terminal, else a line now and then.

    Yields a function. The caller passes the campaign's outcomes through it, and each one that comes
    out moves the bar on.

    Args:
        count: number of outcomes to come.
        more: returns a text to be shown beside, such as "3 crashes", or "".
    """
    if not sys.stderr.isatty():
        yield lambda outcomes: _with_lines(outcomes, count, more)
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        MofNCompleteColumn(),
        TextColumn("done"),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=count)

        def follow(outcomes: Iterable[Any]) -> Iterator[Any]:
            """Yield the outcomes, and move the bar on behind each."""
            for outcome in outcomes:
                yield outcome
                bar.update(task, advance=1, description=more())

        yield follow


def _with_lines(outcomes: Iterable[Any], count: int, more: Callable[[], str]) -> Iterator[Any]:
    """Yield the outcomes, and print now and then to stderr how many are done.

    A line comes at most every LINES seconds, and none after the last outcome.

    Args:
        outcomes: of a campaign's items, as they come.
        count: number of outcomes to come.
        more: returns further text for the line, or "".
    """
    start = said = time.monotonic()
    failed = 0
    for done, outcome in enumerate(outcomes, 1):
        failed += not outcome.ok
        yield outcome
        now = time.monotonic()
        if now - said >= LINES and done < count:
            said = now
            left = (now - start) / done * (count - done)
            said_more = f", {more()}" if more() else ""
            click.echo(
                f"{done} of {count} items, {failed} failed{said_more}, about {left:.0f} s left",
                err=True,
            )


def _countable(result: Any) -> Any:
    """Return the part of an item's outcome that can be added up with others'.

    Args:
        result: a mapping, from which the call's result and the rows of a data set are left out, and
            whose blocks become a set.

    Returns:
        A dict; None: `result` is no mapping, and nothing can be added up.
    """
    if not isinstance(result, dict):
        return None
    return {
        key: {*value} if key == "blocks" else value
        for key, value in result.items()
        if key not in ("result", "part", "rows")
    }


def _show(
    total: dict[str, Any], count: int, failed: Sequence[JournalEntry], again: str, as_json: bool
) -> None:
    """Print what a campaign has counted to stdout, and its failures to stderr.

    Args:
        total: the sums; a set of blocks is replaced by its size.
        count: number of items.
        failed: items with an error.
        again: the command that repeats one item when its path is appended.
        as_json: True: one JSON object, failures included, instead of tables, and nothing to stderr.
    """
    if "blocks" in total:
        total["blocks"] = len(total["blocks"])
    if as_json:
        click.echo(
            json.dumps(
                {"items": count, "failed": {entry.item: entry.error for entry in failed}, **total}
            )
        )
        return
    if "hits" in total:
        table(
            ("event", "hits", "missed"),
            [(name, hits, total["missed"][name]) for name, hits in total["hits"].items()],
        )
        if "blocks" in total:
            click.echo(f"{total['blocks']} blocks were executed")
    else:
        table(("", "number"), [*total.items()])
    click.echo(f"{count} items, {len(failed)} failed", err=True)
    if failed:
        rows = [
            (entry.item, entry.error.splitlines()[0], f"{again} {shlex.quote(entry.item)}")
            for entry in failed
        ]
        table(("failed", "why", "again"), rows, to_stderr=True)
