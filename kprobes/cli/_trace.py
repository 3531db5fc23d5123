"""`kprobes trace`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

import click

from ..calltext import parse_call
from ..errors import KprobeError
from ..symbols import CONTROLS
from ._main import load, on_file
from ._render import number, table

if TYPE_CHECKING:
    from ..core.kprobes import Kprobes
    from ..core.probe import Kretprobe, Probe
    from ..events import Event, Value
    from ..machine.unicorn.machine import UnicornMachine

    Emit = Callable[[tuple[Value, ...], int], None]  # (values, return address)


@click.command()
@on_file
@click.option("-e", "--event", "texts", multiple=True, required=True, metavar="EVENT",
              help="p[:[GRP/]NAME] SYMBOL[+OFF] [ARG=FETCH[:TYPE]]... or r[MAXACTIVE][:NAME] SYMBOL ...; may be given again.")
@click.option("--call", metavar="'NAME(ARG, ...)'", help="Call a function; arguments are integers, 'c' and \"text\".")
@click.option("--run", is_flag=True, help="Run from the entry point.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per hit.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="Stop the guest after this time.")
@click.option("--max-insns", type=click.IntRange(1), metavar="N", help="Stop the guest after this many instructions.")
@click.option("-o", "--output", type=click.Path(dir_okay=False, allow_dash=True), default="-", help="File for the hits.")
def trace(file: str, arch: str | None, texts: tuple[str, ...], call: str | None, run: bool, as_json: bool, timeout: float | None,
          max_insns: int | None, output: str) -> None:
    """Probe FILE, run it, and print every hit.

    \b
    kprobes trace demo -e 'r:crc crc32 len=$arg3:u32 crc=$retval:x32' --call 'crc32(0, "hello", 5)'
    """
    if run == (call is not None):
        raise click.UsageError("give either --call 'NAME(ARG, ...)' or --run")
    from ..core.kprobes import Kprobes
    from ..events import parse_events

    wanted = parse_call(call) if call is not None else None
    with load(file, arch) as machine, Kprobes(machine) as k, contextlib.ExitStack() as stack:
        events = parse_events(texts, machine)
        if wanted is not None:
            wanted.check(machine)
        else:
            _check_entry(file, machine)
        out: IO[str] = sys.stdout if output == "-" else stack.enter_context(open(output, "w", encoding="utf-8", errors="backslashreplace"))
        probes = [_arm(k, event, _printer(event, out, as_json)) for event in events]
        try:
            if wanted is None:
                machine.run(timeout=timeout, max_insns=max_insns)
            else:
                result = machine.call(wanted.function, *wanted.with_input(), timeout=timeout, max_insns=max_insns)
                click.echo(f"{wanted.text.strip().translate(CONTROLS)} = {number(result, machine.arch.bits)}", err=True)
        finally:
            if not isinstance(sys.exc_info()[1], BrokenPipeError):
                out.flush()
                counts = [(event.name, *_counts(probe)) for event, probe in zip(events, probes, strict=True)]
                table(("event", "hits", "missed"), counts, to_stderr=True)


def _check_entry(file: str, machine: UnicornMachine) -> None:
    if not machine.executable(machine.regs.pc):
        raise click.UsageError(f"{file} has no entry point; give --call 'NAME(ARG, ...)' instead of --run")


def _printer(event: Event, out: IO[str], as_json: bool) -> Emit:
    import json

    def emit(values: tuple[Value, ...], return_address: int) -> None:
        out.write((json.dumps(event.as_dict(values, return_address)) if as_json else event.format(values, return_address)) + "\n")
    return emit


def _arm(k: Kprobes, event: Event, emit: Emit) -> Probe:
    from ..core.probe import Kprobe, Kretprobe

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
