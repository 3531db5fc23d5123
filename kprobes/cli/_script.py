"""`kprobes script`: bpftrace's language at probes of any guest."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..controls import CONTROLS
from ._board import ELF_MAGIC, with_board
from ._files import arch_option, find_functions, sysroot_option
from ._guest import PROGRAM, GuestCommand, GuestOptions, to_file, with_libraries
from ._render import objects

if TYPE_CHECKING:
    from ..script.output import ScriptOutput
    from ..script.script import Script

#: what bpftrace's own tests have it say when its probes are attached
_NOTIFY = "__BPFTRACE_NOTIFY_PROBES_ATTACHED"
#: beginnings of a pattern that names a type, which -l shows instead of probes
_TYPES = ("struct ", "union ", "enum ")
#: how long a benchmark runs, in nanoseconds
_LONG = 200_000_000
#: exit status where a probe cannot be attached
NOT_ATTACHED = 255


def _refuse_pid(ctx: click.Context, option: click.Parameter, value: str | None) -> None:
    """Refuse -p, which of bpftrace's options has no counterpart. click calls it.

    Raises:
        UsageError: the option is given.
    """
    if value is not None:
        raise click.UsageError(
            "-p: the script's run starts its guest; give the program as GUEST, with --qemu"
        )


@click.command(cls=GuestCommand)
@click.argument("names", nargs=-1, metavar="[GUEST] [FILE.bt]")
@click.option("-p", "--pid", hidden=True, expose_value=False, callback=_refuse_pid)
@click.option("-e", "text", metavar="TEXT", help="The script.")
@click.option(
    "-c", "--cmd", "command", metavar="'GUEST ARG ...'", help="The guest and its arguments in one."
)
@click.option(
    "--arg",
    "guest_arguments",
    multiple=True,
    metavar="ARG",
    help="An argument of the guest's; may be given again.",
)
@click.option("-f", "form", metavar="FORMAT", help="text (without -f) or json.")
@click.option("--json", "as_json", is_flag=True, help="-f json; with -l one JSON object per probe.")
@click.option(
    "-o",
    "--output",
    default="-",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="File for the output.",
)
@click.option("-q", "quiet", is_flag=True, help="Do not say how many probes there are.")
@click.option(
    "-l",
    "listed",
    is_flag=True,
    help="List the probes that a pattern names (-lv: with arguments); or a type: 'struct table'.",
)
@click.option("-v", "verbose", is_flag=True, help="Say how each program runs.")
@click.option("-d", "dump", is_flag=True, help="Show the programs, and run nothing.")
@click.option("--dry-run", is_flag=True, help="Compile and verify, and run nothing.")
@click.option("--test", is_flag=True, help="Run test: probes, which pass where they return 0.")
@click.option(
    "--mode",
    type=click.Choice(["test", "bench"]),
    help="Run test: probes, or measure bench: probes.",
)
@click.option(
    "--probe-filter",
    metavar="REGEX",
    default="",
    help="Only probes whose name it is found in, and begin and end.",
)
@click.option(
    "--unsafe",
    is_flag=True,
    help="Allow functions that change the guest or run programs of this computer.",
)
@click.option(
    "--usdt-file-activation",
    is_flag=True,
    hidden=True,
    help="For bpftrace's command lines: semaphores of markers are raised anyway.",
)
@click.option(
    "-k",
    "wary",
    is_flag=True,
    help="Warn of missing map keys, and of guest memory that cannot be read.",
)
@click.option(
    "-I",
    "folders",
    multiple=True,
    metavar="FOLDER",
    help="A folder of headers; may be given again.",
)
@click.option(
    "--include",
    "headers",
    multiple=True,
    metavar="FILE",
    help="A header in front of the script; may be given again.",
)
@click.option("--no-warnings", is_flag=True, help="Suppress warnings.")
@click.option(
    "--clock",
    type=click.Choice(["host", "instructions"]),
    default="host",
    help="What nsecs and timers go by (host): its clock, or the guest's instructions as ns.",
)
@click.option(
    "--engine",
    type=click.Choice(["interpreter", "host"]),
    help="What runs the programs (the best there is).",
)
@arch_option
@with_board
@with_libraries
@click.option("--qemu", is_flag=True, help="Run it as a Linux process under qemu-user.")
@sysroot_option
@click.option(
    "--call",
    multiple=True,
    metavar="'NAME(ARG, ...)'",
    help="Call a function of the guest's; may be given again.",
)
@click.option("--run", is_flag=True, help="Run from the entry point.")
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Stop the guest after this time.",
)
@click.option(
    "--max-insns",
    type=click.IntRange(1),
    metavar="N",
    help="Stop the guest after this many instructions.",
)
@click.pass_context
def script(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    text: str | None,
    command: str | None,
    guest_arguments: tuple[str, ...],
    form: str | None,
    as_json: bool,
    output: str,
    quiet: bool,
    listed: bool,
    folders: tuple[str, ...],
    headers: tuple[str, ...],
    verbose: bool,
    dump: bool,
    dry_run: bool,
    test: bool,
    mode: str | None,
    probe_filter: str,
    unsafe: bool,
    usdt_file_activation: bool,
    wary: bool,
    no_warnings: bool,
    clock: str,
    engine: str | None,
    **options: Any,
) -> None:
    """Run a script in bpftrace's language at probes of GUEST.

    Words behind `--` are the script's parameters: $1, $2 ..., and --NAME=VALUE for getopt(). The
    guest's own arguments are given by --arg, each, or with the guest by -c.

    \b
    kprobes script demo -e 'kprobe:crc32 { @bytes = hist(arg2); }' --run
    kprobes script demo tool.bt --call 'fib(8)' -- 5 --name=x
    kprobes script -c './program its arguments' --qemu tool.bt -- 5
    kprobes script -e 'begin { print(6 * 7); }'
    """
    from ..script import ScriptError
    from ..script.folding import Parameters

    if as_json and (form not in (None, "json") or dump):
        raise click.UsageError(f"give either --json or {'-d' if dump else f'-f {form}'}")
    form = "json" if as_json else form or "text"
    if form not in ("text", "json"):
        click.echo(
            f"ERROR: Invalid output format \"{form}\"\nValid formats: 'text', 'json'", err=True
        )
        ctx.exit(1)
    programmed = text if listed else None  # -l with -e: the script's probes
    file, source_name, text, rest = _sorted_out(names, text, listed, command)
    words = [*rest, *(ctx.meta.get(PROGRAM) or ())]
    if command is not None:
        file, *more = shlex.split(command)
        guest_arguments = (*more, *guest_arguments)
    guest = None
    if file is not None:
        runs = command is not None and not options["call"]
        given: Sequence[str] | None = list(guest_arguments) if guest_arguments or runs else None
        from_input = source_name == "stdin" and "-" in names  # the script has been read there
        guest = GuestOptions(file=file, arguments=given, reads=not from_input, **options)
    elif options["call"] or options["run"] or options["qemu"]:
        if rest:  # not behind `--`: the guest was meant
            raise click.UsageError(f"{rest[0]}: No such file or directory")
        raise click.UsageError("--call, --run and --qemu are for a guest, and none is given")
    if listed:
        try:
            _list(guest, text or "*", verbose, as_json, programmed, (folders, headers))
        except ScriptError as error:
            click.echo(error.shown, err=True)
            ctx.exit(1)
        return
    if text is None:
        raise click.UsageError("give a script: -e 'TEXT', or a file FILE.bt")
    parameters = Parameters(
        [word for word in words if not word.startswith("--")],
        dict(_named(word) for word in words if word.startswith("--") and word != "--help"),
    )
    try:
        with contextlib.ExitStack() as closing:
            write = _writer(closing, output)
            kprobes = None
            machine = None
            if (
                guest is not None
                and (dump or dry_run)
                and not (guest.call or guest.run or guest.qemu)
            ):
                machine, kprobes = closing.enter_context(_looked_at(guest))
            elif guest is not None:
                machine, kprobes = closing.enter_context(guest.opened())
            from ..script.headers import Headers
            from ..script.script import Script

            mode = "test" if test else mode
            caught = io.StringIO()
            shown = _output(form, write, not no_warnings)
            told = _output(form, caught.write) if mode == "test" else shown
            made = Script(
                text,
                kprobes=kprobes,
                name=source_name,
                parameters=parameters,
                output=told,
                unsafe=unsafe,
                clock=clock,
                engine=engine,
                quiet=quiet or mode is not None,
                probe_filter=probe_filter,
                mode=mode,
                wary=wary,
                headers=Headers(folders, headers, os.path.dirname(source_name)),
            )
            if "--help" in words:
                _options_of(parameters)
                ctx.exit(1)
            unknown = [name for name in parameters.named if name not in parameters.asked]
            if unknown:
                _refuse_options(unknown, parameters)
                ctx.exit(1)
            for warning in () if no_warnings else made.warnings:
                click.echo(warning, err=True)
            if parameters.unused and not no_warnings:
                _warn_of_unused(parameters.unused, guest is not None)
            if dump or dry_run:
                _show(made, dump, write)
                return
            if not made.programs:
                write("No probes to attach\n")
                status = 1
            elif mode == "test":
                status = _run_tests(made, shown, caught)
            elif mode == "bench":
                status = _run_benchmarks(made, shown)
            else:
                status = _run(made, guest, machine, write, verbose)
    except ScriptError as error:
        click.echo(error.shown, err=True)
        ctx.exit(1)
    ctx.exit(status)


def _sorted_out(
    names: tuple[str, ...], text: str | None, listed: bool, command: str | None
) -> tuple[str | None, str, str | None, list[str]]:
    """Tell which of a command's words is the guest and which the script, and read the script.

    Without -e the script is the first word that is "-" or ends in .bt, else the last of the first
    two words that is no ELF file. The guest is then the first word that is left, if it exists or
    has a slash; without a script, whatever it is. With `listed` the first word is the guest, the
    second the pattern; a lone one that ends in .bt or is no file is the pattern. Where the script's
    file cannot be read, the command ends with exit status 1.

    Args:
        names: the words in front of `--`.
        text: the script of -e; None: a word names its file, or is "-" for stdin.
        listed: True: probes are listed; the word behind the guest is a pattern.
        command: the guest and its arguments, of -c, and no word names the guest; None: a word does.

    Returns:
        (guest's file or None, script's name ("stdin" for -e and stdin), script's text (with
        `listed` the pattern) or None, words that are left: the script's parameters).
    """
    rest = list(names)
    file: str | None = None
    name = "stdin"
    if text is None and not listed:
        at = next((n for n, word in enumerate(rest) if word.endswith(".bt") or word == "-"), None)
        if at is None and rest:
            plain = [n for n, word in enumerate(rest[:2]) if not _is_elf(word)]
            at = plain[-1] if plain else None
        if at is not None:
            name = rest.pop(at)
            text = _text_of(name)
            name = "stdin" if name == "-" else name
    if (
        rest
        and command is None
        and (listed or text is None or os.path.exists(rest[0]) or os.sep in rest[0])
    ):
        file = rest.pop(0)
        if listed and not rest and (file.endswith(".bt") or not os.path.exists(file)):
            file, rest = None, [str(file)]
    if listed and rest:
        text = rest.pop(0)
    return file, name, text, rest


def _is_elf(path: str) -> bool:
    """Whether a path is that of an ELF file; False where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(4) == ELF_MAGIC
    except OSError:
        return False


def _text_of(path: str) -> str:
    """Read a script's file, or stdin for "-"; print an error and exit with 1 if there is none.

    Bytes that are no UTF-8 stay, as surrogates.
    """
    if path == "-":
        return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "surrogateescape")
    except OSError as error:
        click.echo(f"ERROR: failed to open file '{path}': {error.strerror}", err=True)
        if "{" in path:
            click.echo("HINT: -e gives the text of a script", err=True)
        click.get_current_context().exit(1)


def _named(word: str) -> tuple[str, str | bool]:
    """Parse a script's parameter `--NAME=VALUE` or `--NAME`.

    Returns:
        (name, value); the value of `--NAME` is True.
    """
    name, equals, value = word.removeprefix("--").partition("=")
    return name, value if equals else True


def _refuse_options(unknown: Sequence[str], parameters: Any) -> None:
    """Print which named parameters the script does not ask for, and which it does.

    Args:
        unknown: names that were given.
        parameters: the script's Parameters.
    """
    click.echo(f"ERROR: unexpected program command line options: {_dashed(unknown)}", err=True)
    if parameters.asked:
        click.echo(f"HINT: expected program options: {_dashed(parameters.asked)}", err=True)


def _warn_of_unused(words: Sequence[str], has_guest: bool) -> None:
    """Print that the script does not use some of its positional parameters.

    Args:
        words: these parameters.
        has_guest: True: there is a guest, which may be meant.
    """
    said = shlex.join(words).translate(CONTROLS)
    click.echo(f"WARNING: the script does not use its parameters: {said}", err=True)
    if has_guest:
        click.echo(
            "HINT: --arg WORD gives an argument to the guest, -c 'GUEST WORD ...' all", err=True
        )


def _dashed(names: Iterable[str]) -> str:
    """Return names as text, each as an option: "--a, --b"."""
    return ", ".join(f"--{name}" for name in names)


def _options_of(parameters: Any) -> None:
    """Print the named parameters that the script asks for, and their descriptions, to stderr."""
    lines = ["HINT: expected program options:"]
    for name, (_, about) in parameters.asked.items():
        lines.append(f"  --{name}: {about}" if about else f"  --{name}")
    click.echo("\n".join(lines), err=True)


def _writer(closing: contextlib.ExitStack, output: str) -> Callable[[str], object]:
    """Open the output; return a function that writes a text to it and flushes.

    Bytes of the guest's that are no UTF-8 come out unchanged. Where the file cannot be made, an
    error is printed, and the command ends with 1.

    Args:
        closing: closes the file.
        output: path, or "-" for stdout.
    """
    try:
        file = closing.enter_context(to_file(output, binary=True))
    except OSError as error:
        click.echo(f'ERROR: Failed to open output file: "{output}": {error.strerror}', err=True)
        click.get_current_context().exit(1)

    def write(text: str) -> None:
        """Write a text at once."""
        file.write(text.encode("utf-8", "surrogateescape"))
        file.flush()

    return write


def _output(form: str, write: Callable[[str], object], warnings: bool = True) -> ScriptOutput:
    """Make the object that formats a script's output.

    Args:
        form: "text" or "json".
        write: takes the output's text.
        warnings: True: warnings are printed to stderr, where errors go.
    """
    from ..script.output import JsonOutput, TextOutput

    def complain(text: str) -> None:
        """Print a text to stderr."""
        sys.stderr.write(
            text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        )
        sys.stderr.flush()

    return (JsonOutput if form == "json" else TextOutput)(write, complain, warnings)


@contextlib.contextmanager
def _looked_at(guest: GuestOptions) -> Iterator[tuple[Any, Any]]:
    """Load a guest without running it; yield (machine, Kprobes)."""
    from ..kprobes import Kprobes

    with guest.loaded() as machine, Kprobes(machine) as kprobes:
        if guest.discover:
            find_functions(machine, guest.file)
        yield machine, kprobes


def _list(
    guest: GuestOptions | None,
    pattern: str,
    verbose: bool,
    as_json: bool,
    script: str | None = None,
    headers: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
) -> None:
    """Print the probes that a pattern names, those that a script uses, or a type.

    Args:
        guest: the guest whose functions can be named; None: there is none.
        pattern: a probe with wildcards, the path of a script (.bt), or a type: "struct table".
        verbose: True: with the arguments' types, and a type's members.
        as_json: True: one JSON object a line for each probe.
        script: a script's text, whose probes are printed, whatever `pattern` is; None: there is
            none.
        headers: folders of headers, and headers that stand in front of a script.

    Raises:
        ScriptError: the script is wrong.
    """
    from ..errors import KprobeError
    from ..script.compiler import read
    from ..script.folding import Parameters
    from ..script.headers import Headers
    from ..script.listing import (
        ListedProgram,
        Listing,
        MachineNames,
        lines,
        looks_like_a_missing_file,
        missing_file_warning,
        programs_of,
    )
    from ..script.source import ScriptSource

    def names(path: str) -> MachineNames:
        """Load an ELF file that a pattern names by its path; return the names of its functions."""
        from ..machine.unicorn.machine import UnicornMachine

        return MachineNames(closing.enter_context(UnicornMachine.load(path)))

    if script is None and looks_like_a_missing_file(pattern) and not os.path.exists(pattern):
        click.echo(missing_file_warning(pattern), err=True)
    with contextlib.ExitStack() as closing:
        program: ListedProgram | None = None
        libraries = list[ListedProgram]()
        if guest is not None:
            machine, _ = closing.enter_context(_looked_at(guest))
            program, *libraries = programs_of(machine, guest.file)
        listing = Listing(program, names, (OSError, KprobeError), libraries)
        name = "stdin"
        if script is None and pattern.endswith(".bt") and os.path.exists(pattern):
            name, script = pattern, _text_of(pattern)
        if guest is not None and script is None and pattern.startswith(_TYPES):
            shown = machine.debug.type(" ".join(pattern.split()))
            click.echo(str(shown) if verbose else shown.name)
            return
        if script is not None:
            folders, files = headers
            front = read(
                ScriptSource(name, script),
                Parameters(),
                os.environ,
                64 if guest is None else machine.arch.bits,
                Headers(folders, files, os.path.dirname(name)),
            )
            found = listing.of_points(point for points in front.points for point in points)
        else:
            found = listing.search(pattern)
        if as_json:
            objects({"probe": probe.text, "arguments": [*probe.parameters]} for probe in found)
            return
        some = False
        for line in lines(found, verbose):
            some = True
            click.echo(line)
        if not some and guest is None:
            click.echo(f"No probes: give a guest, whose functions {pattern} may name", err=True)


def _show(made: Script, dump: bool, write: Callable[[str], object]) -> None:
    """Verify a script's programs; write their instructions if `dump`, with the parts of the script
    that these are made of. Nothing runs.

    Args:
        made: the script.
        dump: True: write the instructions.
        write: takes the text.

    Raises:
        ScriptError: a program is not safe.
    """
    from ..programs.disassembly import disassemble
    from ..programs.helpers import HELPERS
    from ..programs.isa import steps
    from ..script.source import span_of

    made.verify()
    for program in made.programs if dump else ():
        write(f"{program.name}:\n")
        shown = None
        for pc, instruction in steps(program.code.instructions):
            line = program.code.line(pc)
            if line is not None and line is not shown:
                write(f"; {made.source.mark(span_of(line))}: {line.word}\n")
                shown = line
            helper = HELPERS.get(instruction.imm) if instruction.is_helper_call else None
            name = f"  ; bpf_{helper.name}" if helper is not None else ""
            write(f"{pc:5}  {disassemble(instruction)}{name}\n")


def _start(made: Script, guest: GuestOptions, machine: Any) -> None:
    """Run the guest of a script; that the script's exit() stops it is no error.

    Args:
        made: the script.
        guest: the options that say what runs.
        machine: has the guest.

    Raises:
        GuestStopped: something else has stopped it.
    """
    from ..errors import GuestStopped

    try:
        guest.start(machine, prints=True)
    except GuestStopped:
        if not made.ended:
            raise


def _run_tests(made: Script, output: ScriptOutput, caught: io.StringIO) -> int:
    """Run a script's tests, and print how each went.

    Args:
        made: the script.
        output: takes the results.
        caught: what the script itself prints, which is shown for tests that fail.

    Returns:
        The exit status: 1 where a test failed.
    """
    tests = made.named("test")
    names = [name for name, _ in tests]
    passed: list[bool] = []
    made.start()
    for _, program in tests:
        caught.seek(0)
        caught.truncate()
        begun = time.monotonic_ns()
        passed.append(made.run(program) == 0)
        output.test_result(names, passed, time.monotonic_ns() - begun, caught.getvalue())
    made.finish()
    return 0 if all(passed) else 1


def _run_benchmarks(made: Script, output: ScriptOutput) -> int:
    """Run each of a script's benchmarks for _LONG ns or more, or until the script ends, and print
    how long one run takes.

    Args:
        made: the script.
        output: takes the results.

    Returns:
        The exit status, the script's.
    """
    benchmarks = made.named("bench")
    names = [name for name, _ in benchmarks]
    results: list[tuple[int, int]] = []
    made.start()
    for _, program in benchmarks:
        made.run(program)  # compiles it
        runs, spent = 0, 0
        begun = time.monotonic_ns()
        while spent < _LONG and not made.ended:
            made.run(program)
            runs += 1
            spent = time.monotonic_ns() - begun
        results.append((spent // max(runs, 1), runs))
    for index, (nanoseconds, runs) in enumerate(results):
        output.benchmark_result(names, index, nanoseconds, runs)
    made.finish()
    return made.status


def _run(
    made: Script,
    guest: GuestOptions | None,
    machine: Any,
    write: Callable[[str], object],
    verbose: bool,
) -> int:
    """Run a script to its end; what it has gathered is printed, also if the guest fails. Ctrl-C
    ends it.

    Args:
        made: the script.
        guest: the options that say what runs; None: no guest, and the script waits for signals.
        machine: has the guest.
        write: writes a text to the output.
        verbose: True: print what runs each program.

    Returns:
        The exit status; NOT_ATTACHED: a probe cannot be attached, and nothing has run.

    Raises:
        GuestFault, GuestTimeout, GuestStopped: the guest has failed.
    """
    from ..errors import KprobeError
    from ..script.source import Message, ScriptError, span_of

    try:
        made.attach()
    except ScriptError as error:
        click.echo(error.shown, err=True)
        return NOT_ATTACHED
    except KprobeError as error:
        point = made.attaching
        message = Message("ERROR", error.plain, None if point is None else point.span)
        click.echo(message.shown(made.source), err=True)
        return NOT_ATTACHED
    try:
        with contextlib.suppress(KeyboardInterrupt):
            if _NOTIFY in os.environ:
                write(f"{_NOTIFY}\n")
            made.start()
            if verbose and made.attachments:
                from ..programs.attach import Attachment

                for one in made.attachments:
                    if isinstance(one, Attachment):
                        for name, why in one.why_python.items():
                            click.echo(f"{name}: {why or one.compiled}", err=True)
                            for line in one.why_lines[name]:
                                click.echo("\n".join(made.source.quoted(span_of(line))), err=True)
            if not made.ended:
                if guest is None:
                    with made.told_by_signals():
                        made.wait()
                else:
                    _start(made, guest, machine)
    finally:
        made.finish()  # what was gathered is printed, also where the guest has failed
    return made.status
