"""Prints what commands show: tables, JSON, spinners, names, disassembly."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

import click

from ..controls import CONTROLS
from ..errors import KprobeError, Unsupported
from ..names import can_demangle, readable
from ..stacks import INCOMPLETE

if TYPE_CHECKING:
    from ..arch._base import Arch
    from ..core.register.verdict import Verdict

Entered = TypeVar("Entered")


DEMANGLED = "kprobes.demangled"  #: whether names are, in click's context


def _wanted(ctx: click.Context, _: click.Parameter, wanted: bool | None) -> None:
    """Note in click's context whether names are to be demangled: the callback of -C. None stands
    for what the format of an output has.

    Raises:
        Unsupported: nothing here can demangle.
    """
    if wanted and not can_demangle():
        raise Unsupported(
            "nothing here reads C++ and Rust names", hint="pip install 'kprobes[dwarf]'"
        )
    ctx.meta[DEMANGLED] = wanted


#: -C
on_names = click.option(
    "-C",
    "--demangle/--no-demangle",
    default=None,
    expose_value=False,
    callback=_wanted,
    help="Show C++ and Rust names as people write them; pictures do.",
)
#: for commands whose output is a file for other programs
on_names_in_files = click.option(
    "-C",
    "--demangle/--no-demangle",
    default=None,
    expose_value=False,
    callback=_wanted,
    help="C++ and Rust names in pictures, and in files that others make pictures of, are as people "
    "write them (the default).",
)


def pictures_are_demangled() -> bool:
    """Return what export() takes as `demangle`: False where --no-demangle was given."""
    return click.get_current_context().meta.get(DEMANGLED) is not False


def named(text: str) -> str:
    """Return a text with its C++ and Rust names demangled, if -C was given; else as it is."""
    ctx = click.get_current_context(silent=True)
    return readable(text) if ctx is not None and ctx.meta.get(DEMANGLED) else text


class NamedFile:
    """A file for text, to which mangled names are written demangled.

    Args:
        file: where the text goes.
        as_json: True: the text is JSON, and names get its escapes.
    """

    def __init__(self, file: IO[str], as_json: bool) -> None:
        self._file, self._shown = file, _escaped if as_json else str

    def write(self, text: str) -> int:
        """Demangle the names in a text, and write it; return the number of characters written."""
        return self._file.write(readable(text, self._shown))

    def flush(self) -> None:
        self._file.flush()


def naming(file: IO[str], as_json: bool = False) -> IO[str]:
    """Return a file to write to that demangles names if -C was given, else the file itself.

    Args:
        file: open for text.
        as_json: True: JSON is written to it.
    """
    wanted = click.get_current_context().meta.get(DEMANGLED)
    return cast("IO[str]", NamedFile(file, as_json)) if wanted else file


def _escaped(name: str) -> str:
    """Return a name with the escapes that a JSON string needs, without quotes around it."""
    import json

    return json.dumps(name)[1:-1]


def table(heads: tuple[str, ...], rows: Sequence[tuple[Any, ...]], to_stderr: bool = False) -> None:
    """Print a table: by rich on a terminal, as plain columns elsewhere.

    A column is right-aligned where the first row has an integer in it. Control characters of values
    are escaped.

    Args:
        heads: names of the columns.
        rows: a value for each column; names are shown as named() has them.
        to_stderr: True: to stderr; False: to stdout.
    """
    sides = [
        ">" if rows and isinstance(value, int) else "<" for value in (rows[0] if rows else heads)
    ]
    cells = [
        heads,
        *(tuple(named(str(value)).translate(CONTROLS) for value in row) for row in rows),
    ]
    if not (sys.stderr if to_stderr else sys.stdout).isatty():
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            click.echo(
                "  ".join(
                    f"{c:{s}{w}}" for c, s, w in zip(line, sides, widths, strict=True)
                ).rstrip(),
                err=to_stderr,
            )
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for head, side in zip(heads, sides, strict=True):
        table.add_column(head, justify="right" if side == ">" else "left", overflow="fold")
    for line in cells[1:]:
        table.add_row(*line)
    Console(stderr=to_stderr, markup=False, highlight=False).print(table)


@contextlib.contextmanager
def patience(text: str) -> Iterator[None]:
    """Show a spinner on stderr while the body runs, from its first second on; only on a terminal.

    Args:
        text: what is being done.
    """
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    progress = Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    progress.add_task(text.translate(CONTROLS), total=None)
    timer = threading.Timer(1, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        progress.live.stop()


@contextlib.contextmanager
def probing(recording: contextlib.AbstractContextManager[Entered], file: str) -> Iterator[Entered]:
    """Enter a context that places probes, and leave it behind the body. While probes are placed,
    which takes a walk of all functions of a large program, patience() shows a spinner.

    Args:
        recording: the context.
        file: path of the guest's file.

    Yields:
        What entering the context returns.
    """
    with contextlib.ExitStack() as closing:
        with patience(f"placing probes in {os.path.basename(file)}"):
            entered = closing.enter_context(recording)
        yield entered


#: --json of commands that print a table
on_json = click.option("--json", "as_json", is_flag=True, help="One JSON object per row.")


def objects(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print each row as a JSON object of one line; texts as named() has them."""
    import json

    for facts in rows:
        shown = {
            key: named(value) if isinstance(value, str) else value for key, value in facts.items()
        }
        click.echo(json.dumps(shown))


def number(value: int, bits: int) -> str:
    """Return a value as text in hexadecimal, and in parentheses the numbers that it may mean.

    These are the value as a signed number of the guest's width, and as one of 32 bits where its
    highest set bit is bit 31.

    Args:
        value: the unsigned value of a register.
        bits: the width of the guest's registers.
    """
    readings = dict.fromkeys(
        [value - (value >> bits - 1 << bits), *([value - (1 << 32)] if value >> 31 == 1 else [])]
    )
    return f"{value:#x} ({' or '.join(map(str, readings))})"


def where(machine: Any, address: int) -> str:
    """Return the source line of an address, `FILE:LINE`; "" where none is known.

    Args:
        machine: has the debug information.
        address: of an instruction.
    """
    try:
        return str(machine.debug.where(address)).translate(CONTROLS)
    except KprobeError:
        return ""


def stack_lines(machine: Any, stack: Sequence[int]) -> str:
    """Return a line of text for each address of a hit's stack, as ftrace has them.

    Args:
        machine: names addresses, and knows their source lines.
        stack: addresses, the innermost first.
    """
    from ..events import locate

    lines = []
    for n, address in enumerate(stack):
        # a call's own function and line, not those of what follows it
        line = where(machine, address - bool(n)) if address != INCOMPLETE else ""
        name = locate(machine.symbols, address, n > 0)
        lines.append(f" => {name}{f' {line}' if line else ''}\n")
    return "".join(lines)


def describe(verdict: Verdict) -> str:
    """Return in a word what a probe at an instruction does: "boosted", "stepped", "refused: WHY"
    ...

    Args:
        verdict: what Kprobes.check() says of the instruction.
    """
    if not verdict.probeable:
        return f"refused: {verdict.reason}"
    if verdict.boostable:
        return "boosted"
    return {"step": "stepped", "simulate": "simulated"}.get(verdict.how, "stepped and simulated")


def disassembler(arch: Arch) -> Callable[[bytes, int, int], str]:
    """Make a function that disassembles one instruction with capstone.

    Args:
        arch: the guest's architecture.

    Returns:
        A function of (the instruction's bytes, its address, mode bits) that returns the text; ""
        where capstone is not installed, or does not know the architecture or the instruction. Mode
        bit 0 chooses the other instruction set where there is one (Thumb).
    """
    from ..arch._assembly import AssemblyText
    from ..arch._rows import row

    text = row(arch, AssemblyText)
    known = text.capstone if text is not None else None
    try:
        import capstone
    except ImportError:
        known = None
    if known is None:
        return lambda raw, address, mode: ""
    flags = 0
    for mode in known.modes.split():
        flags |= getattr(capstone, f"CS_MODE_{mode}")
    other = getattr(capstone, f"CS_MODE_{known.other}") if known.other else 0
    engines = [
        capstone.Cs(getattr(capstone, f"CS_ARCH_{known.arch}"), flags | extra)
        for extra in (0, other)
    ]

    def disassemble(raw: bytes, address: int, mode: int) -> str:
        """Return the text of the instruction at the beginning of some bytes; "": capstone does not
        know it.
        """
        return next(
            (
                f"{name} {operands}".rstrip()
                for _, _, name, operands in engines[mode & 1].disasm_lite(raw, address)
            ),
            "",
        )

    return disassemble
