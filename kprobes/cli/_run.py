"""`kprobes run`: programs in C, or objects of a BPF compiler, at probes of any guest."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from ..errors import BadArgument, ProgramError
from ._guest import GuestCommand, GuestOptions, on_guest, to_file

if TYPE_CHECKING:
    from ..programs.attach import Attachment

#: seconds between two looks at ring buffers
_EVERY: Final = 0.1


@click.command(cls=GuestCommand)
@on_guest
@click.argument("program", metavar="PROGRAM")
@click.option(
    "--attach",
    "places",
    multiple=True,
    metavar="NAME=FUNCTION[+OFFSET]",
    help="Where a program goes whose section does not say it; may be given again.",
)
@click.option(
    "--set",
    "constants",
    multiple=True,
    metavar="NAME=NUMBER",
    help="A global variable's value at the beginning; may be given again.",
)
@click.option(
    "--map",
    "wanted",
    multiple=True,
    metavar="NAME",
    help="Print this map or variable at the end, and no others; may be given again.",
)
@click.option(
    "-I",
    "--include",
    multiple=True,
    metavar="FOLDER",
    type=click.Path(file_okay=False),
    help="A folder of headers; may be given again.",
)
@click.option(
    "--clock",
    type=click.Choice(["host", "instructions"]),
    default="host",
    help="What bpf_ktime_get_ns() goes by (host): its clock, or the guest's instructions as ns.",
)
@click.option(
    "--engine",
    type=click.Choice(["interpreter", "host"]),
    help="What runs the programs (the best there is).",
)
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object per line printed, record and map."
)
@click.option("-v", "verbose", is_flag=True, help="Say where each program is, and how it runs.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, allow_dash=True),
    default="-",
    help="File for the output.",
)
def run(
    guest: GuestOptions,
    program: str,
    places: tuple[str, ...],
    constants: tuple[str, ...],
    wanted: tuple[str, ...],
    include: tuple[str, ...],
    clock: str,
    engine: str | None,
    as_json: bool,
    verbose: bool,
    output: str,
) -> None:
    """Run FILE with the programs of PROGRAM at its probes: C (prog.bpf.c), or an object of a BPF
    compiler.

    Each program goes where its section says. What programs print, and records of their ring
    buffers, are shown as they come, maps and variables at the end.

    \b
    kprobes run demo count.bpf.c --call 'crc32(0, "hello", 5)'
    kprobes run ./server latency.bpf.o --qemu --map hists -- --port 8080
    """
    by_hand = dict(_place(one) for one in places)
    with guest.opened() as (machine, k), contextlib.ExitStack() as closing:
        from ..programs.program import Program

        loaded = Program.from_file(program, machine.cpus, include)
        for one in constants:
            _set(loaded, one)
        out = closing.enter_context(to_file(output))
        shown = _ProgramOutput(loaded, out, as_json, machine.symbols.describe)
        shown.refuse_unknown(wanted)
        attachments = [
            closing.enter_context(one)
            for one in _attached(
                k, loaded, by_hand, clock=clock, engine=engine, printed=shown.printed
            )
        ]
        told: dict[tuple[int, str], str] = {}
        if verbose:
            _say_how(attachments, told)
        try:
            with shown.as_they_come():
                guest.start(machine, prints=output == "-")
        finally:
            if verbose:
                _say_how(attachments, told)
            if not isinstance(sys.exc_info()[1], BrokenPipeError):
                for attachment in attachments:
                    assert (
                        attachment.maps is not None
                    )  # which brings what programs in the guest have counted
                shown.records()
                shown.maps(wanted)
        for attachment in attachments:
            if attachment.missed:
                click.echo(
                    f"kprobes: {attachment.missed} runs were missed: another probe was running",
                    err=True,
                )


def _say_how(attachments: list[Attachment], told: dict[tuple[int, str], str]) -> None:
    """Print where each program is, and what runs it; nothing where that was printed already.

    Args:
        attachments: of the programs.
        told: (index of the attachment, program name) -> reason or kind that was printed last;
            brought up to date.
    """
    for number, attachment in enumerate(attachments):
        for name, why in attachment.why_python.items():
            how = why or attachment.compiled
            if told.get((number, name)) != how:
                told[number, name] = how
                where = attachment.probes[name]
                click.echo(f"{name}: at {where.symbol or where.place()}: {how}", err=True)


def _place(text: str) -> tuple[str, tuple[str, int]]:
    """Parse an --attach, NAME=FUNCTION[+OFFSET].

    Returns:
        (name of the program, (function, offset in bytes)).

    Raises:
        UsageError: it is something else.
    """
    name, equals, place = text.partition("=")
    match = re.fullmatch(r"(.+?)(?:\+(0[xX][0-9a-fA-F]+|\d+))?", place)
    with contextlib.suppress(ValueError):
        if equals and name and match is not None:
            return name, (match[1], int(match[2] or "0", 0))
    raise click.UsageError(f"--attach {text}: write NAME=FUNCTION or NAME=FUNCTION+OFFSET")


def _set(program: Any, text: str) -> None:
    """Set the initial value of a global variable of a program's object, as --set says.

    Args:
        program: has the object's variables; it is not loaded yet.
        text: NAME=NUMBER.

    Raises:
        UsageError: the text is something else, there is no such variable, or the number does not
            fit.
    """
    name, equals, value = text.partition("=")
    try:
        number = int(value, 0)
    except ValueError:
        raise click.UsageError(f"--set {text}: write NAME=NUMBER") from None
    if not equals:
        raise click.UsageError(f"--set {text}: write NAME=NUMBER")
    try:
        program.variables[name] = number
    except (KeyError, BadArgument) as error:
        reason = error.args[0] if isinstance(error, KeyError) else error.plain
        raise click.UsageError(f"--set {text}: {reason}") from None


def _attached(
    k: Any, program: Any, by_hand: dict[str, tuple[str, int]], **how: Any
) -> Iterator[Any]:
    """Attach the programs of an object to the guest, and yield the attachments, each once it is
    made.

    The first is of all programs whose section says where they belong; then comes one for each of
    `by_hand`. Programs that are damaged, or say no place, are named on stderr and not attached, but
    for those that others continue with. The error of a program that attach() refuses ends this.

    Args:
        k: the Kprobes.
        program: the object's programs.
        by_hand: name of a program -> (function, offset in bytes), of --attach.
        how: further arguments of Kprobes.attach().

    Raises:
        ProgramError: no program can be attached, or one is refused.
        UsageError: --attach names a program that there is not.
    """
    from ..programs.sections import target_of

    unknown = sorted(by_hand.keys() - program.codes.keys() - program.broken.keys())
    if unknown:
        raise click.UsageError(
            f"--attach {unknown[0]}: there is no such program; there is "
            f"{', '.join([*program.codes, *program.broken])}"
        )
    left = dict(program.broken)
    some = []
    continued = _continued(program)
    for name, code in program.codes.items():
        if name in by_hand:
            continue
        try:
            if target_of(code) is None:
                if name in continued:
                    continue
                left[name] = code.error(
                    "its section does not say where it belongs",
                    hint=f"--attach {name}=FUNCTION says it",
                )
            else:
                some.append(name)
        except ProgramError as error:
            left[name] = error
    if not some and not by_hand:
        raise next(iter(left.values()))
    for why in left.values():
        click.echo(f"kprobes: not attached: {why.plain}", err=True)
    if some:
        yield k.attach(program, only=some, **how)
    for name, (function, offset) in by_hand.items():
        section = program[name].section.removeprefix("?")
        yield k.attach(
            program[name], function, offset, section.startswith(("kret", "uret", "fexit")), **how
        )


def _continued(program: Any) -> set[str]:
    """Return the names of an object's programs that its maps hold, for others to continue with.

    Args:
        program: the object's programs.
    """
    from ..programs.maps import Programs

    return {
        name
        for held in program.maps.values()
        if isinstance(held, Programs)
        for one in held.values()
        for name in one.codes
    }


class _ProgramOutput:
    """Writes what programs print, the records of their ring buffers, and at the end maps and
    variables.
    """

    def __init__(
        self, program: Any, out: Any, as_json: bool, describe: Callable[[int], str]
    ) -> None:
        """Note where output goes; nothing is written yet.

        Args:
            program: all that the object has.
            out: the file.
            as_json: True: each line is a JSON object.
            describe: a guest address -> its name.
        """
        self._program = program
        self._out = out
        self._json = as_json
        self._describe = describe
        self._lock = threading.RLock()

    def _write(self, line: str) -> None:
        """Write a line, and flush the file."""
        self._out.write(f"{line}\n")
        self._out.flush()

    def printed(self, line: str) -> None:
        """Write a line that a program has printed by bpf_printk(), after the records that came
        before it.
        """
        with self._lock:
            self.records()
            line = line.removesuffix("\n")
            self._write(json.dumps({"type": "printk", "data": line}) if self._json else line)

    def records(self) -> None:
        """Take the records from all ring buffers, and write each in a line: as the structure that
        it is by its size, else as bytes.
        """
        from ..programs.maps import Ring
        from . import _maps

        with self._lock:
            for name, m in self._program.maps.items():
                if not isinstance(m, Ring):
                    continue
                for raw in m:
                    kind = _maps.record_type(self._program.types, len(raw))
                    value: Any = raw if kind is None else kind.from_buffer_copy(raw)
                    self._write(
                        json.dumps({"type": "record", "map": name, "data": _maps.plain(value)})
                        if self._json
                        else f"{name}: {_maps.text(value)}"
                    )

    @contextlib.contextmanager
    def as_they_come(self) -> Iterator[None]:
        """Write records while the body runs: every _EVERY seconds, from a thread.

        The thread ends with the body. Records that come after its last look are not written here:
        the caller calls records() for them.

        Raises:
            OSError, ValueError: the thread could not write the output; raised behind the body.
        """
        over = threading.Event()
        failed: list[BaseException] = []

        def look() -> None:
            """Write records until the body is over; keep an error for the main thread."""
            while not over.wait(_EVERY):
                try:
                    self.records()
                except (
                    OSError,
                    ValueError,
                ) as error:  # nobody reads the output: the main thread finds that, too
                    failed.append(error)
                    return

        thread = threading.Thread(target=look, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
        if failed:
            raise failed[0]

    def _known(self) -> dict[str, Any]:
        """Return name -> map of the object's maps, without those that are sections of variables."""
        from . import _maps

        return {name: m for name, m in self._program.maps.items() if not _maps.is_data(name)}

    def refuse_unknown(self, wanted: tuple[str, ...]) -> None:
        """Raise a UsageError for names of maps and variables that the object does not have.

        Args:
            wanted: the names.
        """
        known = self._known()
        variables = self._program.variables
        unknown = [name for name in wanted if name not in known and name not in variables]
        if unknown:
            from ..programs.object.variables import is_compilers

            names = [*known, *(name for name in variables if not is_compilers(name))]
            raise click.UsageError(
                f"--map {unknown[0]}: there is no such map or variable; there is {', '.join(names)}"
            )

    def maps(self, wanted: tuple[str, ...]) -> None:
        """Write maps and variables at the end of a run.

        Args:
            wanted: their names; (): all maps, and those variables that programs change and that are
                no addresses.
        """
        from . import _maps

        variables = self._program.variables
        for name, m in self._known().items():
            if wanted and name not in wanted:
                continue
            if self._json:
                line = _maps.as_json(name, m, self._describe)
                if line:
                    self._write(line)
                continue
            for text in _maps.lines(name, m, self._describe):
                self._write(text)
        for name in variables:
            if name in wanted or (not wanted and variables.counts(name)):
                value = variables[name]
                self._write(
                    json.dumps({"type": "variable", "name": name, "data": _maps.plain(value)})
                    if self._json
                    else f"{name}: {_maps.text(value)}"
                )
