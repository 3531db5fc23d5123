"""`kprobes check`, `symbols`, `list` and `archs`: they look at a file, and run nothing."""

from __future__ import annotations

import fnmatch
import linecache
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..controls import CONTROLS
from ..errors import EventError, ImageError, UnknownSymbol
from ..inventory import functions, instructions
from ..names import name_matcher
from ._files import File, on_file
from ._render import describe, disassembler, objects, on_json, on_names, patience, table, where

if TYPE_CHECKING:
    from ..kprobes import Kprobes
    from ..machine.unicorn.machine import UnicornMachine
    from ..symbols import SourceLine, Symbol


@click.command()
@on_file
@click.argument("place", required=False, metavar="[SYMBOL[+OFF]]")
@click.option(
    "-e",
    "--event",
    "texts",
    multiple=True,
    metavar="EVENT",
    help="Say of an event (see `kprobes trace`) whether a program records its hits, or why "
    "Python has to; "
    "may be given again.",
)
@on_json
def check(file: File, place: str | None, texts: tuple[str, ...], as_json: bool) -> None:
    """Say for each instruction of a function (of all, without SYMBOL; of one instruction, with
    +OFF) what a probe there would do.

    boosted: one trap a hit; stepped: two; simulated: in Python; refused: no probe, and why. Of a
    FILE that was built with -g the source lines stand above their instructions. With -e only the
    events are explained; SYMBOL cannot be given then.
    """
    from ..kprobes import Kprobes

    if texts and place is not None:
        raise click.UsageError("give either SYMBOL or events")
    with file.loaded() as machine, Kprobes(machine) as k:
        for text in texts:
            _event(k, text, as_json)
        if texts:
            return
        if as_json:
            objects(_verdicts(machine, k, place))
            return
        disassemble = disassembler(machine.arch)
        for symbol, addresses in _places(machine, k, place):
            note = (
                " (IFUNC: its resolver, which chooses the function that is called)"
                if symbol.kind == "ifunc"
                else ""
            )
            click.echo(f"{symbol.name.translate(CONTROLS)}:{note}")
            line = ""
            for address in addresses:
                verdict = k.check(address)
                if (now := where(machine, address)) != line:
                    line = now
                    click.echo(f" {line or '(no line)'}")
                text = disassemble(verdict.raw, address, symbol.mode) or verdict.name
                raw = f"{verdict.raw.hex(' '):<{3 * min(machine.arch.max_insn, 8)}}"
                click.echo(
                    f"  {address:#x} +{address - symbol.address:#05x}  {raw} {text:<36} "
                    f"{describe(verdict)}"
                )


def _verdicts(machine: UnicornMachine, k: Kprobes, place: str | None) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects that `check --json` prints, one for each instruction.

    Args:
        machine: has the file.
        k: the Kprobes that checks.
        place: SYMBOL, SYMBOL+OFFSET or an address; None: all functions.

    Yields:
        "function", "offset", "address", "bytes" (hexadecimal), "text" (disassembled), "probe"
        (describe(), without the reason), "reason" and "line" (None: there is none).
    """
    disassemble = disassembler(machine.arch)
    for symbol, addresses in _places(machine, k, place):
        for address in addresses:
            verdict = k.check(address)
            text = disassemble(verdict.raw, address, symbol.mode) or verdict.name
            yield {
                "function": symbol.name,
                "offset": address - symbol.address,
                "address": address,
                "bytes": verdict.raw.hex(),
                "text": text,
                "probe": describe(verdict).partition(":")[0],
                "reason": verdict.reason or None,
                "line": where(machine, address) or None,
            }


def _event(k: Kprobes, text: str, as_json: bool) -> None:
    """Print for each place of an event what records a hit there: a program, or Python and why.

    The event is armed for that, and removed again.

    Args:
        k: the Kprobes.
        text: the event's definition.
        as_json: True: one JSON object a line.
    """
    event = k.event(text)
    for place in event.places:
        why = place.why or event.why_python or k.check(place.definition.target).why_not_optimized
        if as_json:
            objects([{"event": str(place.definition), "why_python": why or None}])
        else:
            click.echo(f"{place.definition}: {f'Python: {why}' if why else 'a program'}")
    event.remove()


def _places(
    machine: UnicornMachine, k: Kprobes, place: str | None
) -> Iterator[tuple[Symbol, Iterator[int]]]:
    """Yield (function, addresses of its instructions to show) for what a command names.

    A place with an offset, or inside of a function, means one instruction; else all are meant.

    Args:
        machine: the guest.
        k: its probes.
        place: SYMBOL, SYMBOL+OFF or an address; None: all functions.

    Raises:
        KprobeError: there is no such place.
    """
    if place is None:
        for symbol in functions(machine, "*"):
            yield symbol, instructions(machine, k, symbol)
        return
    first = k.check(place)  # refuses what is no place at all
    symbol, offset = machine.symbols.at(first.addr)
    start = machine.arch.pointers.code_address(symbol.address | symbol.mode, machine.read)
    is_whole = offset in (0, start.local) and "+" not in place
    yield symbol, instructions(machine, k, symbol) if is_whole else iter([first.addr])


@click.command()
@on_file
@click.argument("pattern", default="*")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["ghidra", "ida", "binja", "map"]),
    help="Print all names, data's as well, for another tool: lines for Ghidra's "
    "ImportSymbolsScript, a "
    "script in IDA's IDC, JSON for Binary Ninja, or what nm -S prints.",
)
@on_json
def symbols(file: File, pattern: str, format_: str | None, as_json: bool) -> None:
    """List functions that can be probed, by address; PATTERN is a shell glob."""
    if as_json and format_ is not None:
        raise click.UsageError("give either --json or --format")
    if format_ is None:
        _symbols(file, pattern, as_json)
    else:
        _export(file, pattern, format_)


def _export(file: File, pattern: str, format_: str) -> None:
    """Print the symbols that a glob names, in one of the formats of machine.symbols.export().

    Args:
        file: the file.
        pattern: a shell glob.
        format_: the format.

    Raises:
        UnknownSymbol: the glob names nothing.
    """
    with file.loaded() as machine:
        matches = name_matcher(pattern)
        if not any(matches(s.name) for s in machine.symbols):
            raise UnknownSymbol(
                "names nothing",
                symbol=pattern,
                hint="--discover finds functions without names; or give another pattern",
            )
        click.echo(machine.symbols.export(format_, pattern), nl=False)


def _symbols(file: File, pattern: str, as_json: bool) -> None:
    """Print the functions that a glob names and that can be probed, by address.

    Args:
        file: the file.
        pattern: a shell glob.
        as_json: True: one JSON object a line.

    Raises:
        ImageError: the file has no names of functions.
        UnknownSymbol: the glob names no function that can be probed.
    """
    from ..kprobes import Kprobes

    with file.loaded() as machine, Kprobes(machine) as k:
        with patience(f"checking the functions of {os.path.basename(file.name)}"):
            found = [
                s for s in functions(machine, pattern) if k.check(s.address | s.mode).probeable
            ]
        if not found:
            if not functions(machine, "*"):
                at = (
                    f" (its entry point is {machine.regs.pc:#x})"
                    if machine.executable(machine.regs.pc)
                    else ""
                )
                raise ImageError(
                    f"{file.name}: no names of functions are in it; it is stripped{at}",
                    hint="--discover finds them; or probe addresses, as in `kprobes trace "
                    "FILE -e 'p "
                    "0x1234'`",
                )
            if pattern.isidentifier():
                machine.symbols[pattern]  # raises, with names that are near
            if machine.debug.has_source(pattern):
                raise UnknownSymbol(
                    "is a source file, no function",
                    symbol=pattern,
                    hint=f"'{pattern}:*' has its lines",
                )
            raise UnknownSymbol(
                "is no function that can be probed",
                symbol=pattern,
                hint="`kprobes check FILE SYMBOL` says why",
            )
        if as_json:
            objects(
                {"address": s.address, "size": s.size, "name": s.name, "module": s.module}
                for s in found
            )
            return
        table(
            ("address", "size", "name", "module"),
            [(f"{s.address:#x}", s.size, s.name, s.module or "-") for s in found],
        )


@click.command(name="list")
@on_file
@on_names
@click.argument("pattern", default="*")
@click.option(
    "--sdt",
    is_flag=True,
    help="List the static tracepoints instead: places for events, %PROVIDER:NAME.",
)
@on_json
def list_(file: File, pattern: str, sdt: bool, as_json: bool) -> None:
    """List functions, by a shell glob; or with FUNCTION:* the source lines of a function where a
    probe can be, with FUNCTION:N its N-th line, with FILE.c:* those of a source file, with
    'FUNCTION;GLOB' or 'FILE.c;GLOB' the statements of lines whose text fits, blanks aside.

    Lines need a FILE that was built with -g; N counts from the function's first line, as perf does.
    """
    if sdt:
        _markers(file, pattern, as_json)
        return
    if ";" in pattern:
        _fitting(file, pattern, as_json)
        return
    name, colon, line = pattern.rpartition(":")
    is_all = line == "*" and not name.endswith(":")  # not the glob geo::*
    if not colon or not (is_all or (line.isdecimal() and len(line) < 10)):
        _symbols(file, pattern, as_json)
        return
    from ..kprobes import Kprobes

    with file.loaded() as machine, Kprobes(machine) as k:
        is_file = name not in machine.symbols and machine.debug.has_source(name)
        if is_file:
            lines, path, first = machine.debug.source_lines(name), name, 0
        else:
            lines, path, first = _function_lines(machine, k, name)
        counted = {
            each: each.line - first
            for each in lines
            if each.path == path and each.line >= first  # the rest is of functions inlined there
        }
        wanted = [each for each in lines if line == "*" or counted.get(each) == int(line)]
        if not wanted and line == "0":
            wanted = lines[:1]  # its entry, as in an event
        if not wanted:
            raise UnknownSymbol(
                f"there is no code at its line {line}",
                symbol=name,
                hint="`FUNCTION:*` shows where there is",
            )
        _print_lines(machine, k, wanted, path, counted, as_json)


def _fitting(file: File, pattern: str, as_json: bool) -> None:
    """Print a row for each statement of the source lines that an event's place with a glob stands
    for.

    Args:
        file: the file.
        pattern: the place, 'FUNCTION;GLOB' or 'FILE.c;GLOB'.
        as_json: True: one JSON object a line.

    Raises:
        UnknownSymbol: no line with code fits, or the source is not known or not here.
    """
    from ..events._lines import fitting_statements
    from ..kprobes import Kprobes

    name = pattern.partition(";")[0]
    with file.loaded() as machine, Kprobes(machine) as k:
        try:
            lines = fitting_statements(pattern, machine)
        except EventError as error:
            raise UnknownSymbol(error.reason, symbol=pattern) from None
        first = 0
        if name in machine.symbols:
            first = machine.debug.source_of(machine.symbols[name].address)[1]
        counted = {each: each.line - first for each in lines}
        _print_lines(machine, k, lines, lines[0].path, counted, as_json)


def _print_lines(
    machine: Any,
    k: Kprobes,
    lines: Sequence[SourceLine],
    path: str,
    counted: Mapping[SourceLine, int],
    as_json: bool,
) -> None:
    """Print a row for each of some source lines: its number, where its code is, what a probe there
    does, and its text.

    Args:
        machine: the guest.
        k: its probes.
        lines: one or more.
        path: source file whose lines are named by their number alone.
        counted: line -> the N by which FUNCTION:N names it, from the function's first line; for a
            source file's lines the line number. Lines of inlined functions have none.
        as_json: True: one JSON object a line.
    """
    covering = machine.symbols.covering(lines[0].address)
    mode = 0 if covering is None else covering.mode
    files = {each.path: machine.debug.source_file(each.path) for each in lines}
    rows = [
        (
            each.line,
            counted.get(each),
            each.address,
            describe(k.check(each.address | mode)),
            _source(each, files[each.path]),
        )
        for each in lines
    ]
    heads = ("line", "n", "address", "probe", "source")
    if as_json:
        objects(
            {**dict(zip(heads, row, strict=True)), "file": each.path}
            for row, each in zip(rows, lines, strict=True)
        )
        return
    table(
        heads,
        [
            (
                line if each.path == path else str(each),
                "-" if n is None else n,
                f"{address:#x}",
                *rest,
            )
            for (line, n, address, *rest), each in zip(rows, lines, strict=True)
        ],
    )


def _function_lines(machine: Any, k: Kprobes, name: str) -> tuple[list[SourceLine], str, int]:
    """Return the lines of a function by address, its source file and the number of its first line;
    "" and 0 where nothing tells these.

    Args:
        machine: the guest.
        k: its probes.
        name: of the function.

    Raises:
        UnknownSymbol: there is no such function, it is only inlined, or its source is not known.
    """
    if name not in machine.symbols and machine.debug.copies(name):
        raise UnknownSymbol(
            "it is inlined wherever it is called", symbol=name, hint="list 'FILE.c:*' has its lines"
        )
    start = k.check(name).addr
    found = machine.debug.function(start)
    if found is None:  # or its entry is in a .dwo file that is not here
        symbol = machine.symbols.covering(start)
        lines = [] if symbol is None else machine.debug.lines(start, machine.symbols.extent(symbol))
        if lines:
            return lines, "", 0
        raise UnknownSymbol(
            "nothing is known of its source", symbol=name, hint="build the file with -g"
        )
    lines = machine.debug.lines(start, found[1].end + found[0].bias)
    path, first = machine.debug.source_of(start)
    if not path and lines:
        path = lines[0].path
    return lines, path, first or min((each.line for each in lines), default=0)


def _markers(file: File, pattern: str, as_json: bool) -> None:
    """Print a row for each place of the static tracepoints (USDT) that a glob names.

    Args:
        file: the file.
        pattern: a shell glob of PROVIDER:NAME, or of NAME.
        as_json: True: one JSON object a line.

    Raises:
        UnknownSymbol: the glob names none.
    """
    with file.loaded() as machine:
        found = [
            m
            for m in machine.debug.markers()
            if fnmatch.fnmatchcase(f"{m.provider}:{m.name}", pattern)
            or fnmatch.fnmatchcase(m.name, pattern)
        ]
    if not found:
        raise UnknownSymbol(
            "names no static tracepoint",
            symbol=pattern,
            hint="build the file with <sys/sdt.h>, or give another pattern",
        )
    if as_json:
        objects(
            {
                "address": m.address,
                "place": f"%{m.provider}:{m.name}",
                "semaphore": m.semaphore or None,
                "module": m.module,
                "arguments": [*m.arguments],
            }
            for m in found
        )
        return
    table(
        ("address", "place", "semaphore", "module", "arguments"),
        [
            (
                f"{m.address:#x}",
                f"%{m.provider}:{m.name}",
                f"{m.semaphore:#x}" if m.semaphore else "-",
                m.module or "-",
                " ".join(m.arguments),
            )
            for m in found
        ],
    )


def _source(line: SourceLine, file: str) -> str:
    """Return the text of a source line; `PATH:LINE` where it cannot be read.

    Args:
        line: the line.
        file: where its source file is on this computer; "": it is not here.
    """
    text = linecache.getline(file, line.line).rstrip() if file else ""
    return text or f"{line.path}:{line.line}"


@click.command()
@on_json
def archs(as_json: bool) -> None:
    """List the architectures, and what is known of each: what runs it, its calls, its returns, its
    jumps.
    """
    from .. import arch
    from ..inventory import engines, summary

    known = [arch.get(name) for name in arch.names()]
    if as_json:
        objects(
            {
                "name": a.name,
                "bits": a.bits,
                "order": a.order.value,
                "runs_in": list(engines(a)),
                "calls": a.abi is not None,
                "return_probes": a.linkage is not None,
                "boost": a.jump is not None,
            }
            for a in known
        )
        return
    table(
        ("name", "bits", "order", "runs in", "$argN, --call", "return probes", "boost"),
        [
            (
                a.name,
                a.bits,
                a.order.value,
                ", ".join(engines(a)) or "-",
                *("yes" if power else "-" for power in (a.abi, a.linkage, a.jump)),
            )
            for a in known
        ],
    )
    click.echo(f"\n{summary()}")
