"""Each aim for the price of a hit, what was measured, and whether it is reached:
`python benchmarks/aims.py [--rounds 15] [--arch x86_64] [--all] [--keep FILE] [--only REGEX]`.

`--all` measures every architecture, in fewer rounds; one table names for each aim the architecture that is furthest
from it, and those that do not reach it. That takes ten minutes on a quiet machine and an hour on a busy one, so with
`--keep` it may be ended at any time: what was measured is in FILE, and the same command goes on behind it.

All rows of an architecture take turns in each round; what is shown is the median over the rounds, of the processor's
time of this thread, less that of the same loop without a hit. Aims in time are those of the project's plan, for a
computer on which an empty function that is called through Python's C API by the engine's hook takes 120 ns. "At this
speed" is the aim for one on which that takes as long as it did here: it tells what a busy or a quick computer hides,
and does not decide. Ratios are medians of the ratios of each round.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path
from time import thread_time
from typing import Any

import calls
import programs
import rows
import tracing
import yardsticks
from attrs import asdict, frozen
from subjects import SUBJECTS
from unicorn import unicorn_const as const
from worlds import BASE, Absent, BareEngine, Crowd, K, Machine

from kprobes import Kprobe, Kprobes, UnicornMachine

USUAL = 120.0  # ns of `hook through the C API, empty` on the computer that the absolute aims are for
API, API_TWO, IN_C = "hook through the C API, empty", "hook through the C API, two arguments", "hook in C, empty"
WRITE_HOOK = "stores, an engine's write hook elsewhere"
C_ATOMIC = "hook in C, counts atomically"
C_RECORD, C_PAIR = "hook in C, a record", "hooks in C, the time from entry to return"
OTHERS = 10_000  # probes elsewhere
DEMO = Path(__file__).resolve().parent.parent / "examples" / "demo.x86_64"
Sample = Callable[[], float]  #: nanoseconds
Run = Callable[[int], object]  #: iterations of a loop


@frozen
class Aim:
    """What a row is to be.

    Attributes:
        row: name of what is measured.
        most: nanoseconds; None: none is given.
        to: row that it is compared with; "": with none.
        ratio: what the comparison is to give at most; of a speed, at least.
        speed: the ratio is one of speeds: the other row's time to this one's.
    """

    row: str
    most: float | None = None
    to: str = ""
    ratio: float | None = None
    speed: bool = False


AIMS = (
    Aim("o, empty", 120, API, 1.5),
    Aim("o, two arguments", 200, API_TWO, 1.5),
    Aim("ro, empty", 180),
    Aim("ro, return value", 250),
    Aim("ro, two arguments", 450),
    Aim("b, empty", 700),
    Aim("k, empty", 1500),
    Aim("event in Python, three fetches", 250),
    Aim("event `r $arg1 $retval`", 450),
    Aim("event with a stack", 3000),
    Aim("m.call of an empty function", 12_000),
    Aim("m.call with 3 arguments", 12_000),
    Aim("program: count", 5),
    Aim("program: count", None, IN_C, 1.2),
    Aim("program: count, atomically", None, C_ATOMIC, 1.2),
    Aim("program: record", 20, C_RECORD, 1.2),
    Aim("program: entry and return", 60, C_PAIR, 1.2),
    Aim("restore, write, call", None, "the same by hand", 0.9, speed=True),
    Aim("the same with a Kprobes", None, "the same by hand", 0.9, speed=True),
    Aim("unprobed loop, others elsewhere", None, "bare engine", 1.02),
    Aim("o, two arguments, others elsewhere", None, "o, two arguments", 1.02),
    Aim("k, two arguments, others elsewhere", None, "k, two arguments", 1.02),
    Aim("stores, one probe elsewhere", None, "stores, bare engine", 1.02),
    Aim("stores, one probe on writable text", None, "stores, bare engine", 1.02),
    Aim("stores, one probe on writable text", None, WRITE_HOOK, 1.02),
)


# --- what is measured


def taken(run: Callable[[int], object], count: int) -> float:
    """Nanoseconds of one of `count` iterations."""
    run(1)
    begin = thread_time()
    run(count)
    return (thread_time() - begin) / count * 1e9


def of_loop(stack: ExitStack, enter: Callable[[], AbstractContextManager[Any]], count: int) -> Sample:
    """A loop that stays set up. Where there is none, the sample says so."""
    try:
        return partial(taken, stack.enter_context(enter()), count)
    except Absent as why:
        reason = str(why)

    def absent() -> float:
        raise Absent(reason)
    return absent


def each_time(enter: Callable[[], AbstractContextManager[Any]], count: int) -> Sample:
    """A loop that is set up for each sample."""
    def sample() -> float:
        with enter() as run:
            return taken(run, count)
    return sample


@contextmanager
def hooked(arch: str, hooks: dict[str, str]) -> Iterator[Run]:
    """The loop in an engine of its own with hooks of yardsticks.c at labels of the subject: label -> function."""
    bare = BareEngine(arch)
    number = bare.names.parts.cpu.register(bare.names.arch.regs.sp)
    with ExitStack() as stack:
        for label, function in hooks.items():
            hook = yardsticks.in_c(function, *bare.arguments(), stack=number)
            stack.callback(yardsticks.add(bare.uc, hook, BASE + bare.subject.at[label]))
        yield lambda count: bare.call("loop", count, K)


@contextmanager
def stores_beside_write_hook(arch: str) -> Iterator[Run]:
    """The loop of stores in an engine with a hook on stores to the text: each store goes through the engine's list."""
    bare = BareEngine(arch)
    bare.uc.hook_add(const.UC_HOOK_MEM_WRITE, lambda *_: None, begin=BASE, end=BASE)
    with bare.stores() as run:
        yield run


@contextmanager
def stores_beside_probe_in_writable_text(arch: str) -> Iterator[Run]:
    """The loop of stores, with a probe elsewhere in text that the guest may write."""
    made = SUBJECTS[arch]
    machine = UnicornMachine.from_code(made.code, arch=arch, base=BASE,
                                       symbols={name: ((BASE + at) | made.mode, size)
                                                for name, (at, size) in made.functions.items()})
    data = machine.alloc(64)
    with Kprobes(machine) as k, k.kprobe("tiny", pre_handler=lambda p, regs: None):
        yield lambda count: machine.call("stores", count, data)


def hit_rows(arch: str, stack: ExitStack) -> dict[str, tuple[Sample, str]]:
    """Rows of hit_cost.py: name -> (sample, the loop that is taken off)."""
    wanted = {aim.row for aim in AIMS} | {aim.to for aim in AIMS} | {rows.ENGINE, rows.MACHINE}
    found: dict[str, tuple[Sample, str]] = {}
    for row in (*rows.raw_rows(BareEngine(arch)), *rows.probe_rows(Machine(arch))):
        if row.name in wanted:
            found[row.name] = each_time(row.enter, 2500 * min(row.longer, 20)), row.over
    found["stores, one probe on writable text"] = of_loop(
        stack, partial(stores_beside_probe_in_writable_text, arch), 50_000), ""
    found[WRITE_HOOK] = of_loop(stack, partial(stores_beside_write_hook, arch), 50_000), ""

    @cache  # when it is wanted: to register the probes takes a second
    def crowd() -> Crowd:
        return Crowd(arch, OTHERS)

    alone = "unprobed loop, others elsewhere"
    found[alone] = each_time(lambda: crowd().unhit(), 50_000), ""
    for kind in "ok":
        def probed(kind: str = kind) -> AbstractContextManager[Any]:
            probe = Kprobe(symbol_name="tiny", pre_handler=rows.two, optimize=kind != "k")
            return crowd().probed(rows.WAYS[kind], probe)  # type: ignore[return-value]
        found[f"{kind}, two arguments, others elsewhere"] = each_time(probed, 2500), alone
    return found


def event_rows(arch: str, stack: ExitStack) -> dict[str, tuple[Sample, str]]:
    """Events, on the subject's function."""
    found: dict[str, tuple[Sample, str]] = {}

    @contextmanager
    def recorded(text: str, compiled: bool, **options: Any) -> Iterator[Run]:
        machine = Machine(arch)
        with ExitStack() as inner:
            if not compiled:
                inner.enter_context(tracing.no_compiler())
            k = inner.enter_context(Kprobes(machine.machine))
            event = inner.enter_context(k.event(text, **options))
            with machine.loop() as run:
                before = event.hits
                run(10)
                if event.hits != before + 10:
                    raise RuntimeError(f"{event.hits - before} hits, not 10")
                yield run

    in_python = partial(recorded, "p tiny n=$arg1:u32 b=$arg2:x32 c=$arg2", False)
    returning = partial(recorded, "r tiny n=$arg1 v=$retval", True)
    stacked = partial(recorded, "p tiny n=$arg1", True, stack=True)
    found["event in Python, three fetches"] = each_time(in_python, 2500), rows.MACHINE
    found["event `r $arg1 $retval`"] = each_time(returning, 2500), rows.MACHINE
    found["event with a stack"] = each_time(stacked, 500), rows.MACHINE
    return found


def call_rows(arch: str, stack: ExitStack) -> dict[str, tuple[Sample, str]]:
    """Calls of guest functions."""
    if arch not in calls.RETURNS:
        return {}
    made, kept = calls.rows_of(arch)
    stack.callback(kept.clear)

    def loop(name: str) -> Run:
        call = made[name]

        def run(count: int) -> None:
            for _ in range(count):
                call()
        return run

    return {name: (partial(taken, loop(of), 300), "") for name, of in (
        ("m.call of an empty function", "m.call of an empty function"),
        ("m.call with 3 arguments", "with 3 arguments"))}


def program_rows(arch: str, stack: ExitStack) -> dict[str, tuple[Sample, str]]:
    """Compiled programs, and hooks in C that do the same."""
    wanted = {"count": "count", "count, atomically": "count, atomically", "3 registers, filter, record": "record",
              "entry and return, latency histogram": "entry and return"}
    found: dict[str, tuple[Sample, str]] = {
        "programs' loop": (of_loop(stack, partial(programs.plain, arch), 50_000), "")}
    for of, name in wanted.items():
        entry, back, _ = programs.ROWS[of]
        found[f"program: {name}"] = of_loop(stack, partial(programs.row, arch, entry, back), 50_000), "programs' loop"
    by_hand = {C_ATOMIC: {"tiny": "c_atomic"}, C_RECORD: {"tiny": "c_record"},
               C_PAIR: {"tiny": "c_entered", "ret": "c_returning"}}
    for name, hooks in by_hand.items():
        # one after the other: what they do is in words that they share
        found[name] = each_time(partial(hooked, arch, hooks), 50_000), rows.ENGINE
    return found


def cycle_rows(arch: str, stack: ExitStack) -> dict[str, tuple[Sample, str]]:
    """A fuzzer's cycle, and a harness written by hand: the demo's parser, from the same state each time."""
    if arch != "x86_64":
        return {}
    inputs = [word.ljust(64, b"\0") for word in (b"width=640", b"a=1,b=-2", b"key=0x1f,key=2", b"=,,=")]
    found: dict[str, tuple[Sample, str]] = {}
    for name in ("restore, write, call", "the same with a Kprobes"):
        m = stack.enter_context(UnicornMachine.load(DEMO))
        if found:
            Kprobes(m)
        m.call("table_init")
        text = m.alloc(64)
        begin = m.snapshot()

        def one(data: bytes, m: UnicornMachine = m, text: int = text, begin: Any = begin) -> int:
            m.restore(begin)
            m.write(text, data)
            return m.call("parse_settings", text)

        def ours(count: int, one: Callable[[bytes], int] = one) -> None:
            for n in range(count):
                one(inputs[n % 4])

        found[name] = partial(taken, ours, 500), ""
    run_by_hand = Harness(m, m.symbols["parse_settings"].address, text).run

    def plain(count: int) -> None:
        for n in range(count):
            run_by_hand(inputs[n % 4])

    if any(one(data) != run_by_hand(data) for data in inputs):
        raise RuntimeError("the harness by hand finds something else")
    return found | {"the same by hand": (partial(taken, plain, 500), "")}


class Harness:
    """What one writes by hand: an engine with the same memory, of which all that is written is put back."""

    def __init__(self, m: UnicornMachine, function: int, text: int) -> None:
        from unicorn import UC_ARCH_X86, UC_MODE_64, UC_PROT_WRITE, Uc
        from unicorn import x86_const as x86

        self._uc, self._function, self._text, self._exit = Uc(UC_ARCH_X86, UC_MODE_64), function, text, m.exit_address
        self._back: list[tuple[int, bytes]] = []
        stack = m.regs.sp
        for start, end, perms in m.parts.memory.engine.regions():
            size = end - start + 1
            data = m.parts.memory.engine.read(start, size) or b""
            self._uc.mem_map(start, size, perms)
            self._uc.mem_write(start, data)
            if perms & UC_PROT_WRITE and not start <= stack < end:
                self._back.append((start, data))
        self._uc.mem_write(stack - 8, self._exit.to_bytes(8, "little"))
        self._uc.reg_write(x86.UC_X86_REG_RSP, stack - 8)
        self._uc.reg_write(x86.UC_X86_REG_RDI, text)
        self._uc.reg_write(x86.UC_X86_REG_FS_BASE, m.regs["fs_base"])
        self._result, self._context = x86.UC_X86_REG_RAX, self._uc.context_save()

    def run(self, data: bytes) -> int:
        """One run; the function's result."""
        self._uc.context_restore(self._context)
        for start, held in self._back:
            self._uc.mem_write(start, held)
        self._uc.mem_write(self._text, data)
        self._uc.emu_start(self._function, self._exit)
        return self._uc.reg_read(self._result)  # type: ignore[no-any-return]


GROUPS = (hit_rows, event_rows, call_rows, program_rows, cycle_rows)


# --- the table


def measured(arch: str, rounds: int, wanted: re.Pattern[str]) -> Found:
    """Measure the rows of an architecture."""
    aims = [aim for aim in AIMS if wanted.search(aim.row)]
    needed = {name for aim in aims for name in (aim.row, aim.to) if name} | {API}
    found: dict[str, tuple[Sample, str]] = {}
    samples: dict[str, list[float]] = {}
    absent: dict[str, str] = {}
    with ExitStack() as stack:
        for group in GROUPS:
            try:
                found |= group(arch, stack)
            except (Absent, yardsticks.NoCompiler) as why:
                absent[group.__name__] = str(why)
        needed |= {over for name, (_, over) in found.items() if name in needed and over}
        for _ in range(rounds):
            for name in [name for name in found if name in needed and name not in absent]:
                try:
                    samples.setdefault(name, []).append(found[name][0]())
                except Absent as why:
                    absent[name] = str(why)
    times = {name: [one - loop for one, loop in zip(times, samples.get(found[name][1]) or [0.0] * rounds, strict=True)]
             for name, times in samples.items() if name not in absent}
    return Found(times, absent)


def shown(ns: float) -> str:
    """A time, in the unit that suits it."""
    return f"{ns / 1000:.1f} us" if ns >= 2000 else f"{ns:.0f} ns" if ns >= 20 else f"{ns:.1f} ns"


def line(aim: Aim, found: dict[str, list[float]], scale: float) -> tuple[list[str], bool]:
    """A row of the table, and whether the aim is reached.

    Args:
        aim: the row's.
        found: row -> nanoseconds in each round.
        scale: how much slower than the plan's computer this one is.
    """
    time = statistics.median(found[aim.row])
    cells, reached = [aim.row, shown(time), "", "", ""], True
    if aim.most is not None:
        cells[2] = f"<= {shown(aim.most)}"
        cells[3] = f"{shown(aim.most * scale)}{'' if time <= aim.most * scale else ' (more)'}"
        reached = time <= aim.most
    if aim.ratio is not None and aim.to in found:
        pairs = zip(found[aim.row], found[aim.to], strict=True)
        ratio = statistics.median(other / one if aim.speed else one / other for one, other in pairs)
        wanted = f"{'>=' if aim.speed else '<='} {aim.ratio:g}"
        cells[4] = f"{ratio:.2f} ({wanted}) of {aim.to}, {shown(statistics.median(found[aim.to]))}"
        reached = reached and (ratio >= aim.ratio if aim.speed else ratio <= aim.ratio)
    return cells, reached


@frozen
class Found:
    """What was measured on an architecture.

    Attributes:
        times: row -> nanoseconds in each round.
        absent: row -> why it is absent.
    """

    times: dict[str, list[float]]
    absent: dict[str, str]

    @property
    def scale(self) -> float:
        """How much slower than the plan's computer this one is."""
        return statistics.median(self.times[API]) / USUAL if API in self.times else 1.0


def distance(aim: Aim, found: dict[str, list[float]]) -> float:
    """How far a row is from its aim: above 1, it is not reached.

    Args:
        aim: the row's.
        found: row -> nanoseconds in each round.
    """
    time = statistics.median(found[aim.row])
    distances = [] if aim.most is None else [time / aim.most]
    if aim.ratio is not None and aim.to in found:
        ratio = statistics.median(one / other for one, other in zip(found[aim.row], found[aim.to], strict=True))
        distances.append(ratio * aim.ratio if aim.speed else ratio / aim.ratio)
    return max(distances, default=0.0)


def overview(found: dict[str, Found], wanted: re.Pattern[str]) -> str:
    """The Markdown table of all architectures: for each aim the worst one, and those that do not reach it.

    Args:
        found: architecture -> what was measured.
        wanted: names of rows.
    """
    out = [f"## {len(found)} architectures, Python {platform.python_version()}; a call through the C API takes "
           f"{statistics.median(one.scale for one in found.values()) * USUAL:.0f} ns", "",
           "| row | worst | measured | aim | at this speed | ratio | reached | not on |",
           "| --- | --- | ---: | ---: | ---: | --- | ---: | --- |"]
    for aim in (one for one in AIMS if wanted.search(one.row)):
        far = {arch: distance(aim, one.times) for arch, one in found.items() if aim.row in one.times}
        if not far:
            continue
        worst = max(far, key=lambda arch: far[arch])
        missed = [arch for arch in far if not line(aim, found[arch].times, found[arch].scale)[1]]
        cells, _ = line(aim, found[worst].times, found[worst].scale)
        out.append(f"| {' | '.join([cells[0], worst, *cells[1:]])} | {len(far) - len(missed)} of {len(far)} | "
                   f"{', '.join(missed)} |")
    why = {f"{name} on {arch}: {text}" for arch, one in found.items() for name, text in one.absent.items()}
    return "\n".join([*out, *(f"\n{text}" for text in sorted(why))])


def table(arch: str, measured_there: Found, wanted: re.Pattern[str]) -> str:
    """The Markdown table of an architecture."""
    found, absent, scale = measured_there.times, measured_there.absent, measured_there.scale
    out = [f"## {arch}, Python {platform.python_version()}; a call through the C API takes {scale * USUAL:.0f} ns", "",
           "| row | measured | aim | at this speed | ratio | |", "| --- | ---: | ---: | ---: | --- | --- |"]
    for aim in AIMS:
        if aim.row in found and wanted.search(aim.row):
            cells, reached = line(aim, found, scale)
            out.append(f"| {' | '.join(cells)} | {'reached' if reached else 'NOT REACHED'} |")
    return "\n".join([*out, *(f"\n{name}: {why}" for name, why in absent.items())])


def kept(file: Path | None) -> dict[str, Found]:
    """What a run before has measured, by architecture.

    Args:
        file: of the option `--keep`; None: there is none.
    """
    if file is None or not file.exists():
        return {}
    return {arch: Found(**one) for arch, one in json.loads(file.read_text()).items()}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", action="append", choices=sorted(SUBJECTS), help="default: x86_64 and arm64")
    parser.add_argument("--all", action="store_true", help="every architecture, and one table of the worst of each")
    parser.add_argument("--rounds", type=int, help="default: 15; with --all 3")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="with --all: write there what was measured, as JSON, "
                        "and measure only what is not there yet")
    parser.add_argument("--only", default="", metavar="REGEX", help="rows")
    options = parser.parse_args()
    wanted = re.compile(options.only)
    if options.all:
        found = kept(options.keep)
        for arch in (arch for arch in options.arch or sorted(SUBJECTS) if arch not in found):
            found[arch] = measured(arch, options.rounds or 3, wanted)
            print(arch, file=sys.stderr, flush=True)
            if options.keep is not None:
                options.keep.write_text(json.dumps({name: asdict(one) for name, one in found.items()}))
        print(overview(found, wanted))
        return
    for arch in options.arch or ("x86_64", "arm64"):
        print(table(arch, measured(arch, options.rounds or 15, wanted), wanted), flush=True)


if __name__ == "__main__":
    main()
