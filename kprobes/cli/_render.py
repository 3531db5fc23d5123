"""Tables, verdicts in words, disassembly."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, cast

import click

from ..controls import CONTROLS
from ..errors import KprobeError, Unsupported
from ..names import can_demangle, readable
from ..stacks import INCOMPLETE

if TYPE_CHECKING:
    from ..arch._base import Arch
    from ..core.register.verdict import Verdict


DEMANGLED = "kprobes.demangled"  #: whether names are, in click's context


def _wanted(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not can_demangle():
        raise Unsupported("nothing here reads C++ and Rust names", hint="pip install 'kprobes[dwarf]'")
    ctx.meta[DEMANGLED] = wanted


#: -C
on_names = click.option("-C", "--demangle", is_flag=True, expose_value=False, callback=_wanted,
                        help="Show C++ and Rust names as people write them.")


def named(text: str) -> str:
    """Text as it is shown: with -C, its names readable."""
    ctx = click.get_current_context(silent=True)
    return readable(text) if ctx is not None and ctx.meta.get(DEMANGLED) else text


class NamedFile:
    """A file whose text is written as named() has it; of JSON, with JSON's escapes."""

    def __init__(self, file: IO[str], as_json: bool) -> None:
        self._file, self._shown = file, _escaped if as_json else str

    def write(self, text: str) -> int:
        return self._file.write(readable(text, self._shown))

    def flush(self) -> None:
        self._file.flush()


def naming(file: IO[str], as_json: bool = False) -> IO[str]:
    """The file, or with -C what writes to it."""
    wanted = click.get_current_context().meta.get(DEMANGLED)
    return cast("IO[str]", NamedFile(file, as_json)) if wanted else file


def _escaped(name: str) -> str:
    import json

    return json.dumps(name)[1:-1]


def table(heads: tuple[str, ...], rows: Sequence[tuple[Any, ...]], to_stderr: bool = False) -> None:
    """A table: rich's on a terminal, plain columns elsewhere; numbers are right-aligned."""
    sides = [">" if rows and isinstance(value, int) else "<" for value in (rows[0] if rows else heads)]
    cells = [heads, *(tuple(named(str(value)).translate(CONTROLS) for value in row) for row in rows)]
    if not (sys.stderr if to_stderr else sys.stdout).isatty():
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            click.echo("  ".join(f"{c:{s}{w}}" for c, s, w in zip(line, sides, widths, strict=True)).rstrip(),
                       err=to_stderr)
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
    """Say on a terminal that work goes on which takes longer than a second; then the line is gone again."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    progress = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False,
                        redirect_stderr=False)
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


#: --json of commands that print a table
on_json = click.option("--json", "as_json", is_flag=True, help="One JSON object per row.")


def objects(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print an object a line, with its texts as named() has them."""
    import json

    for facts in rows:
        shown = {key: named(value) if isinstance(value, str) else value for key, value in facts.items()}
        click.echo(json.dumps(shown))


def number(value: int, bits: int) -> str:
    """A return value: whether it is signed, and an int or a word, nobody knows; so all that it may be."""
    readings = dict.fromkeys([value - (value >> bits - 1 << bits), *([value - (1 << 32)] if value >> 31 == 1 else [])])
    return f"{value:#x} ({' or '.join(map(str, readings))})"


def where(machine: Any, address: int) -> str:
    """The source line of an address, `FILE:LINE`; "" where none is known."""
    try:
        return str(machine.debug.where(address)).translate(CONTROLS)
    except KprobeError:
        return ""


def stack_lines(machine: Any, stack: Sequence[int]) -> str:
    """A line for each address of a hit's stack, with its source line where a file tells, as ftrace has them."""
    from ..events import locate

    lines = []
    for n, address in enumerate(stack):
        # a call's own line, not that of what follows it
        line = where(machine, address - bool(n)) if address != INCOMPLETE else ""
        lines.append(f" => {locate(machine.symbols, address)}{f' {line}' if line else ''}\n")
    return "".join(lines)


def describe(verdict: Verdict) -> str:
    if not verdict.probeable:
        return f"refused: {verdict.reason}"
    if verdict.boostable:
        return "boosted"
    return {"step": "stepped", "simulate": "simulated"}.get(verdict.how, "stepped and simulated")


def disassembler(arch: Arch) -> Callable[[bytes, int, int], str]:
    """(bytes, address, mode bits) -> text; empty where capstone is absent or does not know."""
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
    engines = [capstone.Cs(getattr(capstone, f"CS_ARCH_{known.arch}"), flags | extra) for extra in (0, other)]

    def disassemble(raw: bytes, address: int, mode: int) -> str:
        return next((f"{name} {operands}".rstrip()
                     for _, _, name, operands in engines[mode & 1].disasm_lite(raw, address)), "")

    return disassemble
