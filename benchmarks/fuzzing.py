"""What going back and coverage cost: `python benchmarks/fuzzing.py`. Processor time, medians of rounds in which all
rows have their turn.

    snapshot, restore   after four pages were written, with 1,000 probes armed (libz); and by comparing everything
    fuzz                runs of examples/fuzz.py a second: restore, 64 bytes of input, call, coverage
    cycle               restore, the same input of 64 bytes, call, a second: as it is; with blocks covered; with 10 and
                        1,000 probes on code that the run does not come to; with a probe on the function that is called
    coverage            the demo's time with every block counted, by its time bare
    heap                a run of examples/tags.x86_64 from a snapshot under a heap check, by its time with malloc() and
                        free() as functions of Python; and what each of its six allocations and frees takes more
"""

from __future__ import annotations

import contextlib
import io
import statistics
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from time import process_time
from typing import Any

from kprobes import Kprobe, KprobeError, Kprobes, UnicornMachine
from kprobes.machine.unicorn.hostpages import PageCopies

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "examples"))
DEMO = str(HERE.parent / "examples" / "demo.x86_64")
PROBES, PAGES, IN_A_ROW = 1000, 4, 20
ELSEWHERE = 0x3000_0000  # code that no run comes to
#: row -> (blocks are covered, probes elsewhere, a probe on the function)
CYCLES = {
    "cycle": (False, 0, False),
    "cycle, covered": (True, 0, False),
    "cycle, 10 probes": (False, 10, False),
    "cycle, 1,000 probes": (False, PROBES, False),
    "cycle, probed": (False, 0, True),
}
TAGS = b"TG" + b"T\x04nameH\x05hello" * 3 + b"D\x00" * 3
#: of rows that are no microseconds
UNITS = {"fuzz": "runs/s", **dict.fromkeys(CYCLES, "runs/s"), "coverage": "of bare", "heap": "of bare"}
RUNS, CALLS = 200, 6  # of that input in a row; of malloc() and free() in each


def probed(file: str, plain: bool = False) -> tuple[UnicornMachine, Kprobes, int]:
    """A machine with that many probes armed, and where four pages of its memory are."""
    m = UnicornMachine.load(file)
    if plain:
        m.parts.snapshots.pages = PageCopies()
    k = Kprobes(m)
    left = count(1)
    for symbol in sorted({s.address: s for s in m.symbols if s.kind == "func"}.values(), key=lambda s: s.address):
        addr, end = symbol.address, symbol.address + symbol.size
        while addr < end:
            insn = m.arch.decode(m.read(addr, min(m.arch.max_insn, end - addr)), addr)
            with contextlib.suppress(KprobeError):
                k.register(Kprobe(addr=addr, optimize=False))
                if next(left) == PROBES:
                    return m, k, m.alloc((PAGES + 1) * m.page_size)
            addr = max(insn.next, addr + 1)
    return m, k, m.alloc((PAGES + 1) * m.page_size)


def going_back(file: str, plain: bool) -> tuple[Callable[[], float], Callable[[], float]]:
    """Two functions that give the seconds of a snapshot, and of a restore."""
    def timed(m: UnicornMachine, block: int, act: Callable[[], Any]) -> float:
        for n in range(PAGES):
            m.write(block + n * m.page_size, b"written")
        begin = process_time()
        made = act()
        seconds = process_time() - begin
        del made
        return seconds

    (one, _k, block), (other, _l, place) = probed(file, plain), probed(file, plain)
    last = other.snapshot()
    return lambda: timed(one, block, one.snapshot), lambda: timed(other, place, lambda: other.restore(last))


def fuzz() -> float:
    """Seconds of a run."""
    from fuzz import fuzz as run

    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        run(DEMO, 2000)
    return 1 / float(said.getvalue().rsplit("; ", 1)[1].split()[0].replace(",", ""))


def cycle(covered: bool, elsewhere: int, probed: bool) -> Callable[[], float]:
    """Make a function that gives the seconds of a run from a snapshot.

    Args:
        covered: True: blocks are noted, and asked for after each run.
        elsewhere: number of probes on code that the run does not come to.
        probed: True: a probe with an empty handler is on the function that is called.
    """
    m = UnicornMachine.load(DEMO)
    k = Kprobes(m)
    m.call("table_init")
    text = m.alloc(64)
    m.write(text, b"width=640,height=480".ljust(64, b"\0"))
    if elsewhere:
        m.map(ELSEWHERE, m.page_size, "rw")
        m.write(ELSEWHERE, b"\x90" * elsewhere + b"\xc3")  # nop ... ret
        m.protect(ELSEWHERE, m.page_size, "rx")
        k.register_all([Kprobe(addr=ELSEWHERE + n, optimize=False) for n in range(elsewhere)])
    if probed:
        k.register(Kprobe(symbol_name="parse_settings", pre_handler=lambda p, regs: None))
    coverage = k.coverage() if covered else None
    start = m.snapshot()

    def timed() -> float:
        begin = process_time()
        for _ in range(RUNS):
            m.restore(start)
            m.write(text, b"width=640,height=480".ljust(64, b"\0"))
            m.call("parse_settings", text)
            if coverage is not None:
                coverage.new()
        return (process_time() - begin) / RUNS

    return timed


def demo() -> tuple[Callable[[], float], Callable[[], float]]:
    """The demo bare, and with every block counted: seconds of its main, a recursion and a CRC."""
    def timed(m: UnicornMachine, text: int) -> float:
        begin = process_time()
        m.call("fib", 18)
        m.call("crc32", 0, text, 20_000)
        for _ in range(10):
            m.call("main")
        return process_time() - begin

    bare, counted = UnicornMachine.load(DEMO), UnicornMachine.load(DEMO)
    Kprobes(counted).coverage()
    texts = bare.alloc(20_000), counted.alloc(20_000)
    return lambda: timed(bare, texts[0]), lambda: timed(counted, texts[1])


def heap() -> tuple[Callable[[], float], Callable[[], float]]:
    """Runs of an allocating function with malloc() and free() in Python, and under a heap check: seconds of some."""
    def runs(m: UnicornMachine) -> Callable[[], float]:
        text = m.alloc(4096)
        start = m.snapshot()

        def timed() -> float:
            begin = process_time()
            for _ in range(RUNS):
                m.restore(start)
                m.write(text, TAGS)
                m.call("tags_read", text, len(TAGS))
            return process_time() - begin

        return timed

    file = str(HERE.parent / "examples" / "tags.x86_64")
    plain, checked = UnicornMachine.load(file), UnicornMachine.load(file)
    room, blocks = plain.alloc(1 << 16), count()
    plain.bind("malloc", lambda regs: room + next(blocks) % 256 * 256)
    plain.bind("free", lambda regs: 0)
    Kprobes(checked).heap(raising=True, leaks=False)
    return runs(plain), runs(checked)


def measure(file: str, rounds: int = 41) -> dict[str, float]:
    """Row -> microseconds, runs a second, or a ratio."""
    rows = dict(zip(("snapshot", "restore"), going_back(file, False), strict=True))
    rows |= dict(zip(("snapshot, comparing", "restore, comparing"), going_back(file, True), strict=True))
    bare, counted = demo()
    without, checked = heap()
    cycles = {name: cycle(*how) for name, how in CYCLES.items()}
    names = *rows, *cycles, "fuzz", "coverage", "heap", "heap, a call"
    samples: dict[str, list[float]] = {name: [] for name in names}
    for n in range(rounds):
        for name, timed in rows.items():
            samples[name].append(1e6 * statistics.median(timed() for _ in range(IN_A_ROW)))
        for name, seconds in cycles.items():
            samples[name].append(1 / seconds())
        samples["coverage"].append(1 / (bare() / counted()))
        less, more = without(), checked()
        samples["heap"].append(more / less)
        samples["heap, a call"].append(1e6 * (more - less) / RUNS / CALLS)
        if not n % 8:
            samples["fuzz"].append(1 / fuzz())
    return {name: statistics.median(values) for name, values in samples.items()}


if __name__ == "__main__":
    for name, value in measure(sys.argv[1] if len(sys.argv) > 1 else "libz.so.1").items():
        print(f"{name:20} {value:10,.2f} {UNITS.get(name, 'us')}")
