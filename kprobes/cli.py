"""The `kprobes` command: trace, check, symbols, archs.

Exit status: 0 done, 1 the guest failed, 2 the command line or an event is wrong, 130 interrupted, 141 nobody reads the
output. Results go to stdout; the guest's answer, the table of hits and every message go to stderr.
"""

from __future__ import annotations

import contextlib
import fnmatch
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, NoReturn

import click
from attrs import frozen

from .errors import EventError, GuestFault, GuestTimeout, KprobeError, ReentryError, UnknownSymbol

if TYPE_CHECKING:
    from .arch._base import Arch
    from .core.kprobes import Kprobes
    from .core.probe import Kretprobe, Probe
    from .core.verdict import Verdict
    from .events import Event, Value
    from .machine.unicorn import UnicornMachine
    from .symbols import Symbol

    Emit = Callable[[tuple[Value, ...], int], None]  # (values, return address)

GUEST_FAILED, WRONG, INTERRUPTED, UNREAD = 1, 2, 130, 141


class _Commands(click.Group):
    """Turns every failure that is not click's own into a message and an exit status."""

    def invoke(self, ctx: click.Context) -> Any:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # guest text in a terminal that cannot show it
        try:
            super().invoke(ctx)
            sys.stdout.flush()
        except (GuestFault, GuestTimeout, ReentryError) as error:
            _leave(ctx, str(error), GUEST_FAILED)
        except KeyboardInterrupt:
            _leave(ctx, "interrupted", INTERRUPTED)
        except BrokenPipeError:
            with contextlib.suppress(OSError, ValueError):  # or the interpreter's last flush complains
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(UNREAD)
        except OSError as error:  # KprobeError is one
            _leave(ctx, str(error), WRONG)


def _leave(ctx: click.Context, message: str, status: int) -> NoReturn:
    click.echo(f"kprobes: {message}", err=True)
    ctx.exit(status)


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        with contextlib.suppress(metadata.PackageNotFoundError):
            click.echo(f"kprobes {metadata.version('kprobes')}")
            ctx.exit()
        _leave(ctx, "no version: the package is not installed", WRONG)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version and exit.")
def main() -> None:
    """Linux's kprobes for guest code: trace functions of a binary for any architecture, without running it natively."""


_file = click.argument("file")


def _load(file: str) -> UnicornMachine:
    from .machine.unicorn import UnicornMachine

    return UnicornMachine.load(file)


# --- trace


@main.command()
@_file
@click.option("-e", "--event", "texts", multiple=True, required=True, metavar="EVENT",
              help="p[:[GRP/]NAME] SYMBOL[+OFF] [ARG=FETCH[:TYPE]]... or r[MAXACTIVE][:NAME] SYMBOL ...; may be given again.")
@click.option("--call", metavar="'NAME(ARG, ...)'", help="Call a function; arguments are integers, 'c' and \"text\".")
@click.option("--run", is_flag=True, help="Run from the entry point.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per hit.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Stop the guest after this time.")
@click.option("--max-insns", type=click.IntRange(1), metavar="N", help="Stop the guest after this many instructions.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, allow_dash=True), default="-", help="File for the hits.")
def trace(file: str, texts: tuple[str, ...], call: str | None, run: bool, as_json: bool, timeout: float | None,
          max_insns: int | None, output: str) -> None:
    """Probe FILE, run it, and print every hit.

    \b
    kprobes trace demo -e 'r:crc crc32 len=$arg3:u32 crc=$retval:x32' --call 'crc32(0, "hello", 5)'
    """
    if run == (call is not None):
        raise click.UsageError("give either --call 'NAME(ARG, ...)' or --run")
    from .core.kprobes import Kprobes
    from .events import parse_events

    wanted = parse_call(call) if call is not None else None
    with _load(file) as machine, Kprobes(machine) as k, contextlib.ExitStack() as stack:
        events = parse_events(texts, machine)
        if wanted is not None:
            wanted.check(machine)
        out: IO[str] = sys.stdout if output == "-" else stack.enter_context(open(output, "w", encoding="utf-8"))
        probes = [_arm(k, event, _printer(event, out, as_json)) for event in events]
        try:
            if wanted is None:
                machine.run(timeout=timeout, max_insns=max_insns)
            else:
                result = machine.call(wanted.function, *wanted.args, timeout=timeout, max_insns=max_insns)
                click.echo(f"{wanted.text.strip()} = {result:#x}", err=True)
        finally:
            if not isinstance(sys.exc_info()[1], BrokenPipeError):
                out.flush()
                counts = [(event.name, *_counts(probe)) for event, probe in zip(events, probes, strict=True)]
                _table(("event", "hits", "missed"), counts, to_stderr=True)


def _printer(event: Event, out: IO[str], as_json: bool) -> Emit:
    import json

    def emit(values: tuple[Value, ...], return_address: int) -> None:
        out.write((json.dumps(event.as_dict(values, return_address)) if as_json else event.format(values, return_address)) + "\n")
    return emit


def _arm(k: Kprobes, event: Event, emit: Emit) -> Probe:
    from .core.probe import Kprobe, Kretprobe

    def hit(p: Any, regs: Any) -> None:
        emit(event.fetch(regs), 0)

    def enter(ri: Any, regs: Any) -> None:
        ri.data["saved"] = event.enter(regs)

    def returned(ri: Any, regs: Any) -> None:
        emit(event.fetch(regs, ri.data.get("saved", ())), regs.pc)

    place: dict[str, Any] = {"symbol_name": event.symbol, "offset": event.offset} if event.symbol else {"addr": event.target}
    probe = Kprobe(pre_handler=hit, **place) if event.kind == "p" else Kretprobe(
        handler=returned, entry_handler=enter if event.saves else None, maxactive=event.maxactive, **place)
    try:
        k.register(probe)
    except KprobeError as error:
        raise event.refused(error) from error
    return probe


def _counts(probe: Probe) -> tuple[int, int]:
    """Hits printed, and hits missed; a return event misses entries and, without a free instance, returns."""
    rp: Kretprobe | Any = probe
    return (rp.nreturned, rp.nmissed + rp.entry_nmissed) if probe.family == "r" else (probe.nhit, rp.nmissed)


def _table(heads: tuple[str, ...], rows: Sequence[tuple[Any, ...]], to_stderr: bool = False) -> None:
    """A table: rich's on a terminal, plain columns elsewhere; numbers are right-aligned."""
    sides = [">" if rows and isinstance(value, int) else "<" for value in (rows[0] if rows else heads)]
    cells = [heads, *(tuple(map(str, row)) for row in rows)]
    if not (sys.stderr if to_stderr else sys.stdout).isatty():
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for line in cells:
            click.echo("  ".join(f"{c:{s}{w}}" for c, s, w in zip(line, sides, widths, strict=True)).rstrip(), err=to_stderr)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for head, side in zip(heads, sides, strict=True):
        table.add_column(head, justify="right" if side == ">" else "left", overflow="fold")
    for line in cells[1:]:
        table.add_row(*line)
    Console(stderr=to_stderr, markup=False, highlight=False).print(table)


# --- check, symbols, archs


@main.command()
@_file
@click.argument("place", required=False, metavar="[SYMBOL[+OFF]]")
def check(file: str, place: str | None) -> None:
    """Say for each instruction of a function (of all, without SYMBOL; of one instruction, with +OFF) what a probe there would do.

    boosted: one trap a hit; stepped: two; simulated: in Python; refused: no probe, and why.
    """
    from .core.kprobes import Kprobes

    with _load(file) as machine, Kprobes(machine) as k:
        disassemble = _disassembler(machine.arch)
        for symbol, addresses in _places(machine, k, place):
            click.echo(f"{symbol.name}:")
            for address in addresses:
                verdict = k.check(address)
                text = disassemble(verdict.raw, address, symbol.mode) or verdict.name
                raw = f"{verdict.raw.hex(' '):<{3 * min(machine.arch.max_insn, 8)}}"
                click.echo(f"  {address:#x} +{address - symbol.address:#05x}  {raw} {text:<36} {_verdict(verdict)}")


def _places(machine: UnicornMachine, k: Kprobes, place: str | None) -> Iterator[tuple[Symbol, Iterator[int]]]:
    if place is None:
        for symbol in _functions(machine, "*"):
            yield symbol, _instructions(machine, k, symbol)
        return
    first = k.check(place)  # refuses what is no place at all
    symbol, offset = machine.symbols.at(first.addr)
    start = machine.arch.code_address(symbol.address | symbol.mode, machine.read)
    yield symbol, iter([first.addr]) if offset not in (0, start.local) or "+" in place else _instructions(machine, k, symbol)


def _instructions(machine: UnicornMachine, k: Kprobes, symbol: Symbol) -> Iterator[int]:
    from .core.locate import code_of

    entry = machine.arch.code_address(symbol.address | symbol.mode, machine.read)
    address, end = entry.addr, machine.symbols.extent(code_of(machine, symbol, entry))
    while address < end:
        yield address
        address += k.check(address).size or machine.arch.insn_align


def _verdict(verdict: Verdict) -> str:
    if not verdict.probeable:
        return f"refused: {verdict.reason}"
    if verdict.boostable:
        return "boosted"
    return {"step": "stepped", "simulate": "simulated"}.get(verdict.how, "stepped and simulated")


#: Our names' beginnings, longest first -> capstone's architecture and mode.
_CAPSTONE = {
    "x86_64": ("X86", "64"), "i386": ("X86", "32"), "arm64": ("ARM64", "ARM"), "arm": ("ARM", "ARM"),
    "mips64": ("MIPS", "MIPS64"), "mips": ("MIPS", "MIPS32"), "ppc64": ("PPC", "64"), "ppc": ("PPC", "32"),
    "riscv64": ("RISCV", "RISCV64"), "riscv32": ("RISCV", "RISCV32"), "s390x": ("SYSZ", "ARM"),
    "sparc64": ("SPARC", "V9"), "sparc": ("SPARC", "ARM"), "m68k": ("M68K", "M68K_040"), "tricore": ("TRICORE", "TRICORE_162"),
}


def _disassembler(arch: Arch) -> Callable[[bytes, int, int], str]:
    """(bytes, address, mode bits) -> text; empty where capstone is absent or does not know."""
    known = next((row for name, row in _CAPSTONE.items() if arch.name.startswith(name)), None)
    try:
        import capstone
    except ImportError:
        known = None
    if known is None:
        return lambda raw, address, mode: ""
    flags = getattr(capstone, f"CS_MODE_{known[1]}") | (capstone.CS_MODE_RISCVC if known[0] == "RISCV" else 0)
    if arch.order.value == "big":
        flags |= capstone.CS_MODE_BIG_ENDIAN
    engines = [capstone.Cs(getattr(capstone, f"CS_ARCH_{known[0]}"), flags | extra)
               for extra in (0, capstone.CS_MODE_THUMB if known[0] == "ARM" else 0)]

    def disassemble(raw: bytes, address: int, mode: int) -> str:
        return next((f"{name} {operands}".rstrip() for _, _, name, operands in engines[mode & 1].disasm_lite(raw, address)), "")

    return disassemble


def _functions(machine: UnicornMachine, pattern: str) -> list[Symbol]:
    named = [symbol for symbol in machine.symbols if symbol.kind in ("func", "ifunc")]
    return sorted((s for s in named if fnmatch.fnmatchcase(s.name, pattern)), key=lambda s: (s.address, s.name))


@main.command()
@_file
@click.argument("pattern", default="*")
def symbols(file: str, pattern: str) -> None:
    """List functions that can be probed, by address; PATTERN is a shell glob."""
    from .core.kprobes import Kprobes

    with _load(file) as machine, Kprobes(machine) as k:
        found = [s for s in _functions(machine, pattern) if k.check(s.address | s.mode).probeable]
        if not found:
            if pattern.isidentifier():
                machine.symbols[pattern]  # raises, with names that are near
            raise UnknownSymbol("is no function that can be probed", symbol=pattern, hint="`kprobes check FILE SYMBOL` says why")
        _table(("address", "size", "name", "module"), [(f"{s.address:#x}", s.size, s.name, s.module or "-") for s in found])


@main.command()
def archs() -> None:
    """List the architectures, and what is known of each: its calls, its returns, its jumps."""
    from . import arch

    known = [arch.get(name) for name in arch.names()]
    _table(("name", "bits", "order", "$argN, --call", "return probes", "boost"), [
        (a.name, a.bits, a.order.value, *("yes" if power else "-" for power in (a.abi, a.linkage, a.jump))) for a in known])


# --- the --call expression

_HEAD = re.compile(r"\s*([^\s()'\",]+)\s*\(\s*")
_LITERAL = re.compile(r"""(?P<number>[+-]?\d\w*)|(?P<char>'(?:\\.|[^'\\])+')|b?"(?P<text>(?:\\.|[^"\\])*)\"""", re.A | re.S)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|([0-3]?[0-7]{1,2})|(.?))|[^\\]+", re.DOTALL)
_ESCAPES = dict(zip("abtnvfre\\'\"?", b"\a\b\t\n\v\f\r\x1b\\'\"?", strict=True))


@frozen
class Call:
    """A parsed `--call`. function: symbol or address. args: text and b"bytes" are bytes (the machine appends a NUL).
    columns: where the function and each argument stand in text."""

    text: str
    function: str | int
    args: tuple[int | bytes, ...]
    columns: tuple[int, ...]

    def check(self, machine: UnicornMachine) -> None:
        """EventError where the machine has no such function (with near names), or an integer does not fit its words."""
        try:
            if isinstance(self.function, str):
                machine.symbols[self.function]
        except KprobeError as error:
            raise EventError("BAD_CALL", str(error), self.text, self.columns[0]) from error
        bits = machine.arch.bits
        for arg, at in zip(self.args, self.columns[1:], strict=True):
            if isinstance(arg, int) and not -(1 << bits - 1) <= arg < 1 << bits:
                raise EventError("BAD_CALL", f"{arg} does not fit into {bits} bits; write a smaller one", self.text, at)


def parse_call(text: str) -> Call:
    """Parse `NAME(ARG, ...)`; EventError (kind BAD_CALL) with the column of what is wrong."""
    def fail(at: int, message: str) -> NoReturn:
        raise EventError("BAD_CALL", message, text, at)

    head = _HEAD.match(text)
    if head is None:
        fail(len(text) - len(text.lstrip()), "this is no call; write NAME(ARG, ...)")
    args: list[int | bytes] = []
    columns = [head.start(1)]
    at = head.end()
    while not text.startswith(")", at) or args:
        found = _LITERAL.match(text, at)
        if found is None:
            fail(at, 'no argument here; write an integer, a character or a closed string: 5 0x1f \'a\' "text" b"bytes"')
        args.append(_value(found, fail))
        columns.append(found.start())
        separator = re.compile(r"\s*([,)]?)\s*").match(text, found.end())
        assert separator is not None
        at = separator.end()
        if separator[1] == ")":
            at = separator.start(1)
            break
        if not separator[1]:
            fail(at, "the call goes on unexpectedly; write , or )")
    if text[at + 1 :].strip():
        fail(at + 1, "nothing may follow the call; drop it")
    return Call(text, number if (number := _integer(head[1])) is not None else head[1], tuple(args), tuple(columns))


def _integer(text: str) -> int | None:
    """An integer as C or Python writes it, or None."""
    if len(text) > 80 or not re.fullmatch(r"[+-]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)", text, re.ASCII):
        return None
    return int(re.sub(r"^([+-]?)0(?=[0-7])", r"\g<1>0o", text), 0)


def _value(found: re.Match[str], fail: Callable[[int, str], NoReturn]) -> int | bytes:
    if found["number"]:
        number = _integer(found["number"])
        return number if number is not None else fail(found.start(), f"{found[0]!r} is no integer; write 5, 0x1f, 0b101 or 017")
    body, start = (found["char"][1:-1], found.start() + 1) if found["char"] else (found["text"], found.start("text"))
    raw = bytearray()
    for piece in _ESCAPE.finditer(body):
        hexadecimal, octal, letter = piece.groups()
        if letter is not None and letter not in _ESCAPES:
            fail(start + piece.start(), f"unknown escape {piece[0]}; write \\\\ for a backslash")
        raw += (bytes([int(hexadecimal, 16)]) if hexadecimal else bytes([int(octal, 8)]) if octal
                else bytes([_ESCAPES[letter]]) if letter else piece[0].encode())
    if not found["char"]:
        return bytes(raw)
    if len(raw) != 1:
        fail(found.start(), "a character constant is one byte; write text in double quotes")
    return raw[0]
