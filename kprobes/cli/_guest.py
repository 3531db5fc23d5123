"""Options of commands that run a guest: the file, how it is loaded, what of it is run."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

import click
from attrs import field, frozen

from ..calltext import Call, parse_call
from ..controls import CONTROLS
from ..errors import GuestFault, KprobeError, Unsupported
from ..newfile import NewFile
from ..stacks import MARK, Stack
from ._board import BoardOptions, show_accesses, with_board
from ._files import (
    arch_option,
    check_sysroot,
    discover_option,
    file_argument,
    find_functions,
    process,
    sysroot_option,
)
from ._render import number, patience, stack_lines, table

if TYPE_CHECKING:
    from ..core.probe import Probe
    from ..events._watchpoint import Watchpoint
    from ..kprobes import Kprobes

FIRST = 5  #: functions that are not probed, and are told without -v
PROGRAM = "kprobes.arguments"  #: where the words behind `--` are, in click's context


class GuestCommand(click.Command):
    """A click command whose words behind `--` are the guest's arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words in front of `--`; keep those behind it as ctx.meta[PROGRAM], which is
        None where there is no `--`. click calls it.
        """
        own, found, rest = args, "--" in args, list[str]()
        if found:
            at = args.index("--")
            own, rest = args[:at], args[at + 1 :]
        ctx.meta[PROGRAM] = rest if found else None
        return super().parse_args(ctx, own)


@frozen(kw_only=True)
class GuestOptions:
    """Values of the options for a guest; opened() loads it, start() runs it.

    Attributes:
        file: path of the image.
        arch: the architecture's name; None: the file's header tells it.
        around: memory, devices and names, as the options of a board say.
        qemu: run it as a process under qemu-user.
        sysroot: folder of the libraries of a process under QEMU; None: not given.
        discover: look for functions that have no names.
        preload: paths of libraries that are loaded as well.
        syscalls: serve Linux's system calls of library code.
        call: the texts of --call.
        run: run from the entry point.
        timeout: seconds that a run or a call may take; None: no limit.
        max_insns: instructions that a run or a call may take; None: no limit.
        arguments: the words behind `--`, the guest's own; None: there was no `--`.
        reads: a process under QEMU has the command's standard input.
        wanted: the calls of `call`, parsed.
    """

    file: str
    arch: str | None
    around: BoardOptions
    qemu: bool
    sysroot: str | None
    discover: bool
    preload: tuple[str, ...]
    syscalls: bool
    call: tuple[str, ...]
    run: bool
    timeout: float | None
    max_insns: int | None
    arguments: Sequence[str] | None
    reads: bool = False
    wanted: tuple[Call, ...] = field(init=False)

    @wanted.default
    def _parsed(self) -> tuple[Call, ...]:
        """Parse the calls of --call. Raises EventError."""
        return tuple(map(parse_call, self.call))

    @contextlib.contextmanager
    def opened(self) -> Iterator[tuple[Any, Kprobes]]:
        """Load the guest, check the calls, and yield (machine, Kprobes); nothing has run yet.

        At the end print which devices were accessed, and with --syscalls what the guest has
        written. After a GuestFault from the body, which is raised again, registers and stack are
        printed before that, and options that might help are appended to its message.

        Raises:
            UsageError: both a call (--call) and a run were given, or neither; or there is no entry
                point. A run is --run, arguments for the program, or --qemu without --call.
            KprobeError: the file cannot be loaded, or there is no such function.
        """
        from ..kprobes import Kprobes

        process = self.arguments is not None or (self.qemu and not self.call)
        if bool(self.call) + (self.run or process) != 1:
            raise click.UsageError(
                "give one of --call 'NAME(ARG, ...)', --run and --qemu"
                " (arguments for the program run it, too)"
            )
        with warnings_said(), self.loaded() as machine, Kprobes(machine) as k:
            if self.discover:
                find_functions(machine, self.file)
            for call in self.wanted:
                call.resolved(machine)  # what is wrong is said before anything runs
            if not self.wanted and not machine.executable(machine.regs.pc):
                if self.around.raw and machine.arch.files.vectors is not None:
                    raise click.UsageError(
                        f"no code is at {machine.regs.pc:#x}, where {self.file} starts by its "
                        "vector table; is --base the address that it was linked for? --vectors "
                        "ADDRESS says where its table is, --entry ADDRESS where it starts"
                    )
                raise click.UsageError(
                    f"{self.file} has no entry point; give --call 'NAME(ARG, ...)' instead of "
                    "--run, or where it starts: --entry ADDRESS, on a Cortex-M --vectors ADDRESS"
                )
            try:
                yield machine, k
            except GuestFault as error:
                is_bare = self.run and not (self.syscalls or self.qemu)
                has_libc = machine.symbols.find("__libc_start_main") is not None
                self.around.explain(error, firmware=is_bare and not has_libc)
                if error.access == "interrupt" and not (
                    self.qemu or self.syscalls or self.around.raw
                ):
                    error.plain += "; --syscalls serves Linux's system calls of library code"
                if is_bare and has_libc:
                    error.plain += (
                        "; a program with a C library of its own expects a process: instead of "
                        "--run give --syscalls -- ARGUMENTS, or --qemu"
                    )
                _show_crash(machine, k, error)
                raise
            finally:
                show_accesses(getattr(machine, "board", None))
                if self.syscalls:
                    _show_output(machine.system_calls)

    def loaded(self) -> Any:
        """Make a machine with the file and its libraries; nothing of the guest has run, but under
        QEMU the dynamic linker.

        With words behind `--` the guest becomes a process with these arguments; for --call and
        --syscalls it becomes one without, where the library can.

        Raises:
            UsageError: options contradict each other.
            KprobeError: the file cannot be loaded.
        """
        if self.qemu and (self.preload or self.syscalls):
            raise click.UsageError(
                "--preload and --syscalls are for Unicorn: QEMU has both by itself"
            )
        if self.qemu:
            self.around.check_unused()
            running = process(
                [self.file, *(self.arguments or ())], self.arch, self.sysroot, self.reads
            )
            self.around.name(running)
            return running
        check_sysroot(self.sysroot)
        with patience(f"loading {os.path.basename(self.file)}"):
            machine = self.around.load(self.file, self.arch)
        machine.load_libraries(self.preload)
        if self.syscalls:
            machine.serve_system_calls()
        if self.arguments is not None:
            machine.process([os.fsencode(word) for word in (self.file, *self.arguments)])
        elif not self.around.raw and (self.call or self.syscalls):
            # a library's functions need their thread-local storage, a program its stack
            with contextlib.suppress(Unsupported):
                machine.process([os.fsencode(self.file)])
        return machine

    def start(self, machine: Any, prints: bool = False) -> None:
        """Run the guest: its entry point, or the calls of --call one after the other.

        What each call returns is printed to stderr. --timeout and --max-insns bound each call.

        Args:
            machine: has the file.
            prints: True: something else is printed to stdout meanwhile, so that no spinner is shown
                there.

        Raises:
            GuestFault: the guest has failed.
            GuestTimeout: a bound was reached.
            GuestStopped: a call was ended by machine.stop(), as by a board's reset.
        """
        bounds: dict[str, Any] = {"timeout": self.timeout}
        if self.max_insns is not None:
            bounds["max_insns"] = self.max_insns
        own = prints and sys.stdout.isatty()

        def running() -> contextlib.AbstractContextManager[None]:
            """Return a context manager that shows a spinner, unless stdout is a terminal with other
            output.
            """
            return (
                contextlib.nullcontext()
                if own
                else patience(f"running {os.path.basename(self.file)}")
            )

        if not self.wanted:
            with running():
                machine.run(**bounds)
        for call in [each.resolved(machine) for each in self.wanted]:
            with running():
                result = machine.call(call.function, *call.with_input(), **bounds)
            click.echo(
                f"{call.text.strip().translate(CONTROLS)} = {number(result, machine.arch.bits)}",
                err=True,
            )


def _show_output(calls: Any) -> None:
    """Print on stderr what the guest has written, and its exit status.

    stdout has the command's own output.

    Args:
        calls: the machine's system calls.
    """
    for descriptor in (1, 2):
        text = bytes(calls.output[descriptor]).decode("utf-8", "replace")
        for line in text.splitlines():
            click.echo(f"guest, {descriptor}: {line.translate(CONTROLS)}", err=True)
    if calls.status is not None:
        click.echo(f"guest: exit({calls.status})", err=True)


@contextlib.contextmanager
def warnings_said() -> Iterator[None]:
    """Collect the library's warnings while the body runs, and print each text once at its end.

    ReturnMissed and TextOverwritten come always, others as Python's filters say. Nothing is printed
    after a BrokenPipeError.
    """
    from ..core.hit.returns import ReturnMissed
    from ..core.patch.text import TextOverwritten

    said = dict[str, None]()
    with warnings.catch_warnings():
        others = warnings.showwarning
        for kind in (ReturnMissed, TextOverwritten):
            warnings.simplefilter("always", kind)

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            """Keep the text of a RuntimeWarning of the library's own class, once; pass any other
            warning on.
            """
            if (
                issubclass(category, RuntimeWarning)
                and category.__module__.partition(".")[0] == "kprobes"
            ):
                said[str(message)] = None
            else:
                others(message, category, *where, **more)

        warnings.showwarning = show
        try:
            yield
        finally:
            if not isinstance(sys.exc_info()[1], BrokenPipeError):
                for line in said:
                    click.echo(f"kprobes: {line.translate(CONTROLS)}", err=True)


def on_guest(command: Callable[..., None]) -> Callable[..., None]:
    """Give a click command FILE and the options that run it: a decorator.

    The command is called with a GuestOptions as its first argument, in the place of these options.

    Args:
        command: the function below the decorator.

    Returns:
        The function to be decorated further.
    """

    @functools.wraps(command)
    def wrapped(**options: Any) -> None:
        """Make the GuestOptions of the options, and call the command."""
        words = click.get_current_context().meta.get(PROGRAM)
        guest = GuestOptions(arguments=words, **{name: options.pop(name) for name in NAMES})
        command(guest, **options)

    for option in reversed(OPTIONS):
        wrapped = option(wrapped)
    return file_argument(arch_option(with_board(wrapped)))


#: what code there is besides the file's, and what names it has
LIBRARY_OPTIONS = (
    discover_option,
    click.option(
        "--preload",
        multiple=True,
        metavar="LIBRARY",
        help="Load a library first, whose functions FILE calls; may be given again.",
    ),
    click.option(
        "--syscalls",
        is_flag=True,
        help="Serve Linux's system calls of library code: memory, random bytes, time, output, "
        "locks, exit.",
    ),
)


def with_libraries(command: Callable[..., None]) -> Callable[..., None]:
    """Give a click command the options of LIBRARY_OPTIONS: a decorator."""
    for option in reversed(LIBRARY_OPTIONS):
        command = option(command)
    return command


OPTIONS = (
    click.option("--qemu", is_flag=True, help="Run it as a Linux process under qemu-user."),
    sysroot_option,
    *LIBRARY_OPTIONS,
    click.option(
        "--call",
        multiple=True,
        metavar="'NAME(ARG, ...)'",
        help="Call a function; arguments are integers, 'c', \"text\" and &SYMBOL. May be given "
        "again: one after the other, in one guest.",
    ),
    click.option(
        "--run", is_flag=True, help="Run from the entry point; `-- ARGS ...` gives arguments."
    ),
    click.option(
        "--timeout",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        help="Stop the guest after this time; of several calls, each.",
    ),
    click.option(
        "--max-insns",
        type=click.IntRange(1),
        metavar="N",
        help="Stop the guest after this many instructions; of several calls, each.",
    ),
)
NAMES = (
    "file",
    "arch",
    "around",
    "qemu",
    "sysroot",
    "discover",
    "preload",
    "syscalls",
    "call",
    "run",
    "timeout",
    "max_insns",
)


def on_events(command: Callable[..., None]) -> Callable[..., None]:
    """Give a click command the arguments that name events: [EVENT]... and -e EVENT, -i GLOB (an
    event at the entry of each function that it names), -x GLOB and --filter TEXT.

    A decorator. The command is called with `definitions` (events, at least one), `exclude` (globs
    of functions to leave out) and `condition` (a filter in ftrace's language; "": none).

    Args:
        command: the function below the decorator.

    Raises:
        UsageError: when the command runs: no event was given.
    """

    @functools.wraps(command)
    def wrapped(
        *args: Any,
        words: tuple[str, ...],
        texts: tuple[str, ...],
        include: tuple[str, ...],
        **options: Any,
    ) -> None:
        """Put all events together, and call the command. Raises UsageError: there are none."""
        definitions = [*words, *texts, *(f"p {pattern}" for pattern in include)]
        if not definitions:
            raise click.UsageError("give an event, as in -e 'p crc32 len=$arg3', or -i 'GLOB'")
        command(*args, definitions=definitions, **options)

    for option in reversed(
        (
            click.argument("words", nargs=-1, metavar="[EVENT]..."),
            click.option(
                "-e",
                "--event",
                "texts",
                multiple=True,
                metavar="EVENT",
                help="p[:[GRP/]NAME] PLACE [ARG=FETCH[:TYPE]]... or r[MAXACTIVE][:NAME] PLACE "
                "...; may be "
                "given again.",
            ),
            click.option(
                "-i",
                "--include",
                multiple=True,
                metavar="GLOB",
                help="Probe the functions that match GLOB; may be given again.",
            ),
            click.option(
                "-x",
                "--exclude",
                multiple=True,
                metavar="GLOB",
                help="Skip the functions that match GLOB; may be given again.",
            ),
            click.option(
                "--filter",
                "condition",
                default="",
                metavar="TEXT",
                help="Only hits for which this holds, as in ftrace: 'len > 3'.",
            ),
        )
    ):
        wrapped = option(wrapped)
    return wrapped


def on_clock(default: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a decorator that gives a click command the option --clock.

    Args:
        default: the clock without the option: "counter", "host" or "instructions".
    """
    return click.option(
        "--clock",
        type=click.Choice(["counter", "host", "instructions"]),
        default=default,
        help="Timestamp source: counter (none), host (ns), or instructions (the guest's, slow). "
        f"Default: {default}.",
    )


@contextlib.contextmanager
def to_file(path: str, binary: bool = False) -> Iterator[IO[Any]]:
    """Yield a file to write, which replaces `path` when the body ends; for "-" yield stdout.

    If the body fails by a KprobeError or Ctrl-C and has written something, that replaces `path`
    nevertheless. After any other error, or if it has written nothing, `path` stays as it was.

    Args:
        path: of the file, or "-".
        binary: True: open for bytes; False: for text.
    """
    if path == "-":
        yield sys.stdout.buffer if binary else sys.stdout
        return
    with NewFile(path, binary=binary) as new:
        try:
            yield new.file
        except BaseException as error:
            new.keep = isinstance(error, KprobeError | KeyboardInterrupt) and new.file.tell() > 0
            raise


on_verbose = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Say of each function that a pattern names and that is not probed why that is.",
)


def left_out(skipped: Sequence[tuple[str, str]], verbose: bool) -> None:
    """Print on stderr which functions are not probed, and why.

    Args:
        skipped: (function, why) of each.
        verbose: True: all of them; False: the first FIRST, and how many more there are.
    """
    shown = skipped if verbose else skipped[:FIRST]
    for place, why in shown:
        click.echo(f"left out: {place.translate(CONTROLS)}: {why.translate(CONTROLS)}", err=True)
    if len(skipped) > len(shown):
        click.echo(f"left out: {len(skipped) - len(shown)} more; -v says which", err=True)


def counted(events: Sequence[tuple[str, Probe | Watchpoint]]) -> None:
    """Print the table of hits and misses to stderr, one row for each event's name.

    Args:
        events: (event's name, its probe); several probes may have one name.
    """
    rows = [(name, *row) for name, row in sums(events).items()]
    table(("event", "hits", "missed"), rows, to_stderr=True)


def sums(events: Sequence[tuple[str, Probe | Watchpoint]]) -> dict[str, tuple[int, int]]:
    """Return the hits and the misses of each event's name: name -> (hits, misses), added up.

    Args:
        events: (event's name, its probe); several probes may have one name.
    """
    from ..events._place import counts_of

    found: dict[str, tuple[int, int]] = {}
    for name, probe in events:
        hits, missed = counts_of(probe)
        before = found.get(name, (0, 0))
        found[name] = before[0] + hits, before[1] + missed
    return found


def _show_crash(machine: Any, k: Kprobes, error: GuestFault) -> None:
    """Print to stderr where a guest has failed: registers, the stack, and the return address.

    Nothing is printed where it waits for ever or for a system call, or where it is gone with its
    registers.

    Args:
        machine: the guest's.
        k: its probes.
        error: says how it has failed.
    """
    if (
        error.access in ("halt", "engine", "interrupt")
        or getattr(machine, "exit_status", None) is not None
    ):
        return
    from ..events import locate

    arch, regs = machine.arch, machine.regs
    shown: list[str] = []
    for name in arch.regs.names:
        if name not in arch.regs.widths and name != arch.regs.pc:
            with contextlib.suppress(KprobeError):
                shown.append(f"{name:>5} {regs[name]:0{arch.bits // 4}x}")
    for first in range(0, len(shown), 4):
        click.echo("  ".join(shown[first : first + 4]), err=True)
    try:
        stack = k.stack_trace(regs)
    except KprobeError:  # nothing tells of the code's callers
        stack = Stack([regs.pc], incomplete=True)
    click.echo(stack_lines(machine, stack), nl=False, err=True)
    if stack.incomplete:
        click.echo(f" => {MARK}", err=True)
    register = "" if arch.linkage is None else arch.linkage.register
    if register:
        with contextlib.suppress(KprobeError):
            pointers = arch.pointers
            back = pointers.without_signature(regs[register]) & ~pointers.mode_bits
            if back:
                caller = locate(machine.symbols, back, returns=True)
                click.echo(f"  {register}, where the last call returns to: {caller}", err=True)
