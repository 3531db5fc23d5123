"""`kprobes fuzz`."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

from ..errors import BadArgument
from ._board import BoardOptions, NumberOption, RegionOption, contents_of, with_board
from ._campaign import STOPPED, cluster, progress
from ._files import arch_option
from ._main import GUEST_FAILED
from ._render import table

if TYPE_CHECKING:
    from ..campaign._journal import Journal, JournalEntry
    from ..fuzz.bench import InputRunner
    from ..fuzz.findings import Findings
    from ..fuzz.target import CallTarget, PythonTarget, Target

PYTHON = ".py"  #: how the name of a target in Python ends
LONGEST = 1e7  #: seconds of --timeout: what timers take
GRACE = (
    10.0  #: seconds beyond --timeout until a process is killed that does not end a run by itself
)


class MapSize(click.ParamType):  # type: ignore[type-arg]  # of some versions only
    """An option's value that is the size of a map in bytes: a power of two."""

    name = "bytes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes; fail with a usage error where they are no power of two from 256 to
        8388608.
        """
        size = NumberOption().convert(value, param, ctx)
        if size < 1 << 8 or size > 1 << 23 or size & size - 1:
            self.fail(
                f"{value!r} is no size of a map; write a power of two, 256 to 8388608", param, ctx
            )
        return size


@click.command()
@click.argument("target", metavar="TARGET.py|FILE")
@click.argument("given", required=False, metavar="[INPUT]")
@click.option(
    "--call",
    metavar="'NAME(@@, @len)'",
    help="The function to call, where FILE is an image: @@ (or @input) is the address of the "
    "input's bytes, "
    "@len (or len) their number.",
)
@click.option(
    "--before",
    multiple=True,
    metavar="'NAME(ARG, ...)'",
    help="With --call: call this first, once; may be given again.",
)
@arch_option
@with_board
@click.option(
    "--max-insns",
    type=click.IntRange(1),
    metavar="N",
    help="With --call: a run of more instructions hangs.",
)
@click.option(
    "--preload",
    multiple=True,
    metavar="LIBRARY",
    help="With --call: load a library as well, whose functions FILE calls; may be given again.",
)
@click.option(
    "--syscalls", is_flag=True, help="With --call: serve Linux's system calls of library code."
)
@click.option(
    "--heap",
    is_flag=True,
    help="With --call: check the heap; an overflow, a use after free and the like is a crash.",
)
@click.option(
    "--module",
    "modules",
    multiple=True,
    metavar="NAME",
    help="Count edges in this image only; may be given again.",
)
@click.option(
    "--function",
    "functions",
    multiple=True,
    metavar="GLOB",
    help="Count edges in functions of such names only; may be given again.",
)
@click.option(
    "--range",
    "ranges",
    type=RegionOption(),
    multiple=True,
    metavar="START:SIZE",
    help="Count edges in this code only; may be given again.",
)
@click.option(
    "--comparisons",
    is_flag=True,
    help="Count equal bytes of comparisons as well, so that the fuzzer sees how near it is; "
    "refused "
    "where they cannot be seen.",
)
@click.option(
    "--map-size",
    type=MapSize(),
    metavar="BYTES",
    help="Of the map of edges; AFL_MAP_SIZE, or 65536.",
)
@click.option(
    "--handshake",
    type=click.Choice(["old", "new"]),
    default="old",
    help="How to greet afl-fuzz: `new` is for 4.20 and newer, which know `old` as well.",
)
@click.option(
    "--replay",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Run all inputs of a folder again: a corpus, crashes, or AFL++'s output.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="With --replay: keep crashes, a minimal corpus and reports there, and go on where it "
    "was stopped.",
)
@click.option(
    "--coverage",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="With --replay: write what the corpus executes, as `cover` does: .info, .drcov ...",
)
@click.option(
    "--sarif",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --replay: write what was found as SARIF.",
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="With --replay: processes; one for each processor unless given.",
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="With --replay: a dask scheduler, whose workers do it instead.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="What a run may take; afl-fuzz has its own, -t.",
)
@click.option(
    "--max-input",
    type=click.IntRange(1),
    metavar="BYTES",
    help="Of an input, 1048576 unless given, as AFL++'s have at most; a larger one is told "
    "of, and not run.",
)
@click.option(
    "--memory",
    type=click.IntRange(1),
    default=2048,
    show_default=True,
    metavar="MIB",
    help="With --replay: what a run may take beyond what its process has.",
)
@click.option("--json", "as_json", is_flag=True, help="What was found as one JSON object.")
def fuzz(
    target: str,
    given: str | None,
    call: str | None,
    before: tuple[str, ...],
    arch: str | None,
    around: BoardOptions,
    max_insns: int | None,
    preload: tuple[str, ...],
    syscalls: bool,
    heap: bool,
    modules: tuple[str, ...],
    functions: tuple[str, ...],
    ranges: tuple[tuple[int, int], ...],
    comparisons: bool,
    map_size: int | None,
    handshake: str,
    replay: Path | None,
    output: Path | None,
    coverage: str | None,
    sarif: Path | None,
    jobs: int | None,
    dask: str | None,
    timeout: float,
    max_input: int | None,
    memory: int,
    as_json: bool,
) -> None:
    """Fuzz guest code with AFL++, run one input, or run what a fuzzer has found again.

    TARGET.py defines `machine`, a UnicornMachine, and fuzz(data), which runs it. Every run begins
    in the state that the file leaves it in.

    \b
    afl-fuzz -U -i seeds -o found -- kprobes fuzz TARGET.py @@
    afl-fuzz -U -i seeds -o found -- kprobes fuzz FILE --call 'parse(@@, @len)'
    kprobes fuzz TARGET.py INPUT
    kprobes fuzz TARGET.py --replay found -o replayed
    """
    if not timeout < LONGEST:
        raise click.UsageError(f"--timeout {timeout:g}: give less than {LONGEST:g} seconds")
    named, afl_file = _target(
        target,
        call,
        {
            "before": before,
            "arch": arch,
            "max_insns": max_insns,
            "preload": preload,
            "syscalls": syscalls,
            "heap": heap,
        },
        around,
    )
    if replay is not None:
        if given is not None:
            raise click.UsageError("with --replay the inputs are the folder's: leave INPUT out")
        _replay(
            named,
            replay,
            output,
            coverage,
            sarif,
            jobs,
            dask,
            timeout,
            max_input,
            memory,
            map_size,
            as_json,
        )
        return
    if (
        output is not None
        or coverage is not None
        or sarif is not None
        or dask is not None
        or jobs is not None
    ):
        raise click.UsageError("-o, --coverage, --sarif, --jobs and --dask go with --replay FOLDER")
    from ..fuzz.server import called_by_afl

    counted = CountedCode(modules, functions, ranges)
    if called_by_afl():
        _serve(named, afl_file or given, counted, comparisons, map_size, handshake == "new")
        return
    if given is None or given == "@@":
        raise click.UsageError(
            "afl-fuzz has not started this: give an INPUT to run it, or --replay FOLDER; or start "
            "it as afl-fuzz -U -i SEEDS -o FOUND -- kprobes fuzz ..."
        )
    _run_one(named, given, counted, timeout, max_input, as_json)


def _target(
    target: str, call: str | None, options: dict[str, Any], around: BoardOptions
) -> tuple[PythonTarget | CallTarget, str | None]:
    """Make the target that a command line describes; nothing is loaded yet.

    Args:
        target: path of a file of Python, or of an image.
        call: the text of --call, where `target` is an image; None: it is a file of Python.
        options: further fields of a CallTarget: name -> value, None, False or () where not given.
        around: memory, devices and names, as the options of a board say.

    Returns:
        (the target, path of AFL's input file where --call has one in place of `@@`, else None).

    Raises:
        click.UsageError: without a call, `target` is no file of Python, or an option is given; or
            --debuginfod is, and no server is known.
        EventError: the text of a call is wrong.
        ImageError: the file of --input cannot be read.
    """
    from ..calltext import parse_call
    from ..fuzz.target import CallTarget, PythonTarget, call_of

    if call is None:
        if not target.endswith(PYTHON):
            raise click.UsageError(
                f"how is {target} called? Give --call 'NAME(@@, @len)', or a TARGET.py"
            )
        if around.words or any(value not in (None, False, ()) for value in options.values()):
            raise click.UsageError(
                "--before, --arch, --max-insns, --preload, --syscalls, --heap and options of a "
                "board go with --call; TARGET.py makes its machine itself, and has "
                "k.heap(raising=True)"
            )
        return PythonTarget(target), None
    text, path = call_of(call)
    parse_call(text, inputs=True)
    for first in options["before"]:
        parse_call(first)
    around.say_taken_raw(target)
    return CallTarget(
        target,
        text,
        **options,
        board=around.board,
        symbols=around.symbols,
        received=None if around.fed is None else contents_of(around.fed),
        debug_files=around.debug_files,
        servers=around.servers,
        options=around.words,
    ), path


def _check(named: PythonTarget | CallTarget, runner: InputRunner) -> None:
    """Run a loaded target once, to see that it is not wrong itself.

    Args:
        named: the target.
        runner: of its inputs.

    Raises:
        BadArgument: it calls what does not exist, or its Python code is wrong.
    """
    error = runner.try_target()
    if error is not None:
        raise named.error_of(error)


# --- under AFL++


@frozen
class CountedCode:
    """The code whose edges are counted; all code where nothing is given.

    Attributes:
        modules: names of images.
        functions: globs of functions.
        ranges: (start, bytes).
    """

    modules: tuple[str, ...]
    functions: tuple[str, ...]
    ranges: tuple[tuple[int, int], ...]

    def spans(self, target: Target) -> list[tuple[int, int]]:
        """Return (start, end) of all code that was chosen in a target; [] where all of it counts.

        Raises:
            BadArgument: there is no such image, or no such function.
        """
        machine = target.machine
        found = [(start, start + length) for start, length in self.ranges]
        for name in self.modules:
            if name not in machine.modules:
                there = ", ".join(sorted(machine.modules)) or "none"
                raise BadArgument(f"no module {name!r} is loaded", hint=f"there are {there}")
            found.append(machine.modules[name])
        for glob in self.functions:
            named = [
                symbol
                for symbol in machine.symbols
                if fnmatchcase(symbol.name, glob) and symbol.kind == "func"
            ]
            if not named:
                raise BadArgument(
                    f"no function is called {glob!r}", hint="`kprobes list FILE` shows them"
                )
            found += [(symbol.address, machine.symbols.extent(symbol)) for symbol in named]
        return found


def _serve(
    named: PythonTarget | CallTarget,
    path: str | None,
    counted: CountedCode,
    comparisons: bool,
    map_size: int | None,
    new: bool,
) -> None:
    """Run the inputs that afl-fuzz sends, and end the process.

    It is AFL's fork server where afl-fuzz asks for one. Without one a single input runs, and the
    process dies of the signal that stands for a crash or a hang, or ends with exit status 0.

    Args:
        named: the target.
        path: of the file that AFL++ writes inputs into; None: they come by shared memory or stdin.
        counted: the code whose edges are counted.
        comparisons: True: equal bytes of comparisons are counted as well.
        map_size: bytes of the map of edges; None: as AFL++ says.
        new: True: greet as AFL++ 4.20 and newer do.
    """
    from ..fuzz import server
    from ..fuzz.bench import InputRunner

    size = server.wanted_size(map_size)

    def bench() -> InputRunner:
        """Load the target, and make the Bench that runs inputs with AFL's map."""
        target = named.load()
        runner = InputRunner(target, server.map_of_afl(size), counted.spans(target), comparisons)
        _check(named, runner)
        return runner

    if server.has_server():
        click.get_current_context().exit(server.serve(bench, path, size, new))
    fate = bench().run(server.Inputs(path, None).read())
    server.die(fate.signal)


# --- one input


def _run_one(
    named: PythonTarget | CallTarget,
    path: str,
    counted: CountedCode,
    timeout: float,
    max_input: int | None,
    as_json: bool,
) -> None:
    """Run one input, and print what happened: a crash, a hang, or that nothing went wrong.

    The command's exit status is GUEST_FAILED after a crash or a hang.

    Args:
        named: the target.
        path: of the input.
        counted: the code whose edges afl-fuzz would have counted; it is only looked up.
        timeout: seconds that the run may take.
        max_input: bytes that an input may have; None: LARGEST.
        as_json: True: one JSON object instead of text.

    Raises:
        BadArgument: the input has more bytes than `max_input`, or no code is as `counted` says.
        OSError: the input cannot be read.
    """
    from ..fuzz.bench import InputRunner
    from ..fuzz.crash import examine
    from ..fuzz.replay import LARGEST, input_at
    from ..fuzz.reports import Kept, json_of, text_of

    data = input_at(path, max_input or LARGEST)
    words = _words(named, max_input)
    with _apart(as_json):
        target = named.load()
        counted.spans(target)
        runner = InputRunner(target)
        _check(named, runner)
        fate, finding = examine(runner, data, timeout)
    if finding is not None:
        kept = Kept(finding, path, 1, [*words, path])
        click.echo(json_of([kept], words) if as_json else text_of(kept), nl=False)
    elif as_json:
        click.echo(json_of([], words), nl=False)
    elif fate.timeout:
        click.echo(f"{path}: hangs: {_error_text(fate.error)}")
    else:
        click.echo(f"{path}: nothing went wrong")
    if fate.signal:
        click.get_current_context().exit(GUEST_FAILED)


def _words(named: PythonTarget | CallTarget, max_input: int | None) -> list[str]:
    """Return the words of the command that runs an input when its path is appended.

    Args:
        named: the target.
        max_input: of --max-input; None: it was not given.
    """
    bound = [] if max_input is None else ["--max-input", str(max_input)]
    return ["kprobes", "fuzz", *named.words, *bound]


@contextlib.contextmanager
def _apart(as_json: bool) -> Iterator[None]:
    """Send all that is printed to stderr while the body runs, so that stdout is one JSON object.

    All that is what a target and processes that it starts print.

    Args:
        as_json: False: nothing is changed.
    """
    if not as_json:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def _error_text(error: BaseException | None) -> str:
    """Return an error's text as the command line shows it."""
    return str(getattr(error, "plain", error))


# --- a folder


def _replay(
    named: PythonTarget | CallTarget,
    folder: Path,
    output: Path | None,
    coverage: str | None,
    sarif: Path | None,
    jobs: int | None,
    dask: str | None,
    timeout: float,
    max_input: int | None,
    memory: int,
    map_size: int | None,
    as_json: bool,
) -> None:
    """Run all inputs of a folder; print, and on demand write, what was found.

    The command's exit status is GUEST_FAILED if any input has crashed, hung or failed, and STOPPED
    after Ctrl-C.

    Args:
        named: the target.
        folder: of inputs; AFL++'s output is known by its files.
        output: folder for crashes, corpus, reports and the journal by which a stopped replay goes
            on; None: nothing is kept.
        coverage: file for the coverage of the minimal corpus, which is not written after Ctrl-C;
            None: none.
        sarif: file for the findings as SARIF; None: none.
        jobs: number of processes; None: one for each processor.
        dask: address of a scheduler whose workers run the inputs; None: processes here.
        timeout: seconds that a run may take.
        max_input: bytes that an input may have; None: LARGEST.
        memory: MiB that a run may take beyond what its process has.
        map_size: bytes of the map of edges; None: SIZE.
        as_json: True: one JSON object instead of tables.

    Raises:
        BadArgument: there are no inputs, the target does not load, or `output` cannot be used or
            written.
    """
    from ..campaign import Journal, run
    from ..campaign._journal import entry_of
    from ..fuzz.bench import InputRunner
    from ..fuzz.findings import JOURNAL, Findings, check_folder
    from ..fuzz.replay import LARGEST, SIZE, Cover, Replay, inputs_of
    from ..tracing.coverage import format_of

    if coverage is not None:
        format_of(coverage)
    items = inputs_of(folder)
    if output is not None:
        check_folder(output, folder)
        output.mkdir(parents=True, exist_ok=True)
    with _apart(as_json):  # what is wrong with the target is said once, and here
        loaded = named.load()
        _check(named, InputRunner(loaded))
        loaded.machine.close()
    most = (
        memory << 20 if sys.platform.startswith("linux") else None
    )  # elsewhere there is no such limit
    job = Replay(named, _stamp(named), timeout, most, map_size or SIZE, max_input or LARGEST)
    found = Findings(_words(named, max_input), output)
    entries: list[JournalEntry] = []
    stopped = False
    with contextlib.ExitStack() as stack:
        stack.enter_context(_apart(as_json))
        executor, jobs = stack.enter_context(cluster(dask, jobs)) if dask else (None, jobs)
        journal = (
            stack.enter_context(Journal(output / JOURNAL, repr(job)))
            if output is not None
            else None
        )
        entries = _entries(journal, items, found, output)
        left = [*journal.left(items)] if journal is not None else items
        outcomes = run(job, [*map(str, left)], executor, timeout + GRACE, jobs=jobs)
        follow = stack.enter_context(
            progress(len(left), lambda: f"{len(found)} crashes" if len(found) else "")
        )
        try:
            for outcome in follow(outcomes):
                try:
                    entry = journal.note(outcome) if journal is not None else entry_of(outcome)
                    entries.append(entry)
                    found.note(entry.item, entry.result)
                except OSError as error:
                    raise BadArgument(
                        f"{output} cannot be written: {error.strerror or error}",
                        hint="what was found is kept: make room, and type the same command to "
                        "go on",
                    ) from None
        except KeyboardInterrupt:
            stopped = True
    chosen = _sum_up(entries, found, output, as_json, sarif, stopped)
    if stopped:
        click.echo(
            f"stopped: {len(entries)} of {len(items)} inputs were run{_how_to_go_on(output)}",
            err=True,
        )
        click.get_current_context().exit(STOPPED)
    if coverage is not None:
        _cover(Cover(named, coverage, timeout, max_input or LARGEST), chosen)
    if len(found) or any(entry.error for entry in entries):
        click.get_current_context().exit(GUEST_FAILED)


def _stamp(named: PythonTarget | CallTarget) -> str:
    """Return a digest of the target's file, which tells whether it has changed since a journal.

    Raises:
        OSError: it cannot be read.
    """
    content = Path(named.words[0]).read_bytes()
    return hashlib.sha256(content).hexdigest()[:16]


def _entries(
    journal: Journal | None, items: Sequence[Path], found: Findings, path: Path | None
) -> list[JournalEntry]:
    """Return what a journal has of these inputs already, and put its findings into `found`.

    Args:
        journal: of the output folder; None: there is none, and [] is returned.
        items: the inputs.
        found: gets the findings.
        path: the output folder, for the error.

    Raises:
        BadArgument: the journal has results that no replay writes.
    """
    from ..fuzz.replay import smallest

    if journal is None:
        return []
    known = [journal.entries[str(item)] for item in items if str(item) in journal.entries]
    try:
        smallest({entry.item: entry.result for entry in known if entry.result is not None})
        for entry in known:
            found.note(entry.item, entry.result)
    except (KeyError, TypeError, ValueError):
        raise BadArgument(
            f"{path} is damaged: it has results that no replay writes",
            hint="remove it, and all inputs are run again",
        ) from None
    return known


def _how_to_go_on(output: Path | None) -> str:
    """Return the end of a message about a stopped replay (`--replay FOLDER`), which says how to
    continue it.

    Args:
        output: folder of -o, which has what was found; None: it was not given.
    """
    if output is None:
        return "; with -o FOLDER they had been kept, and the same command had gone on"
    return f"; {output} has what was found: type the same command to go on"


def _sum_up(
    entries: Sequence[JournalEntry],
    found: Findings,
    output: Path | None,
    as_json: bool,
    sarif: Path | None,
    stopped: bool,
) -> list[str]:
    """Print what a replay has found; write reports, SARIF and the minimal corpus where asked for.

    Args:
        entries: what came of each input that was run.
        found: the findings.
        output: folder for reports and corpus; None: neither is written.
        as_json: True: one JSON object instead of tables.
        sarif: file for the findings as SARIF; None: none.
        stopped: True: inputs are left, so no corpus is written.

    Returns:
        The minimal corpus: paths of inputs that together cover all edges.
    """
    from ..fuzz.findings import write, write_corpus
    from ..fuzz.replay import edges_in, smallest
    from ..fuzz.reports import headline, sarif_of, typed

    entries = sorted(entries, key=lambda entry: entry.item)  # they came in any order
    results = {entry.item: entry.result for entry in entries if isinstance(entry.result, dict)}
    failed = [entry for entry in entries if entry.error]
    chosen = smallest(results)
    if output is not None:
        found.report()
        if not stopped:
            write_corpus(output, chosen)
    kept = found.all
    if sarif is not None:
        write(sarif, sarif_of(kept).encode())
    edges = edges_in(results.values())
    if as_json:
        click.echo(
            json.dumps(
                {
                    "inputs": len(entries),
                    "edges": edges,
                    "corpus": chosen,
                    "failed": {entry.item: entry.error for entry in failed},
                    "findings": [one.to_json() for one in kept],
                }
            )
        )
        return chosen
    if kept:
        table(
            ("crash", "inputs", "what", "again"),
            [
                (one.finding.hash, one.count, headline(one.finding), typed(one.again))
                for one in kept
            ],
        )
    click.echo(
        f"{len(entries)} inputs cover {edges} edges; {len(chosen)} of them do as well; "
        f"{len(kept)} crashes, "
        f"{len(failed)} inputs hang or fail",
        err=True,
    )
    if failed:
        table(
            ("failed", "why"),
            [(entry.item, entry.error.splitlines()[0]) for entry in failed],
            to_stderr=True,
        )
    return chosen


def _cover(job: Any, items: Sequence[str]) -> None:
    """Run a job that writes the coverage of a corpus, in a process of its own; print to stderr how
    many blocks that is.

    An input may end the process.

    Args:
        job: the Cover to be done.
        items: paths of the inputs.

    Raises:
        BadArgument: it could not be written.
    """
    from ..campaign import run

    for outcome in run(job, [tuple(items)], jobs=1):
        if outcome.error is not None:
            raise BadArgument(
                f"{job.path} is not written: {_error_text(outcome.error)}",
                hint="run the inputs of the corpus one by one to find which it is",
            )
        click.echo(f"{job.path}: {outcome.result} blocks", err=True)
