"""What tracing costs: `python benchmarks/tracing.py`. Processor time; each row's ratio is to a handler that does
nothing, of the same round.

Rounds are interleaved; shown is the median. Each way of looking runs once before the clock starts: the first run
translates the guest's code and arms the probes' jumps. Files: a million records of three numbers.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kprobes import Kprobes, UnicornMachine, Unsupported
from kprobes.image import read_elf
from kprobes.programs import native
from kprobes.tracing.recorder import Recording

DEMO = Path(__file__).resolve().parent.parent / "examples" / "demo.x86_64"
NOTHING = "a handler that does nothing"
EVENT = "p fib n=$arg1:u32 b=$arg2:x32 c=$arg3"
N, ROUNDS, MILLION = 22, 9, 1_000_000
FEW = 14  # of fib, where a hit takes microseconds
FUNCTIONS = 5_000
LIBRARIES = sorted(Path("/usr/lib").glob("*/libcrypto.so.*"))


def spent(work: Callable[[], object]) -> float:
    """Seconds of processor time."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


@contextmanager
def no_compiler() -> Iterator[None]:
    """As on a computer without llvmlite: events are Python's."""
    def compiled(*_: object) -> bytes:
        raise Unsupported("there is no compiler")

    kept, native.compiled = native.compiled, compiled
    try:
        yield
    finally:
        native.compiled = kept


def hits(m: UnicornMachine, k: Kprobes) -> dict[str, float]:
    """Nanoseconds that each way of looking adds to a hit."""
    def cost(n: int = N) -> float:
        m.call("fib", n)
        return spent(lambda: m.call("fib", n)) * 1e9 / calls[n]

    calls: dict[int, int] = {}
    with k.kprobe("fib") as p:
        for n in (N, FEW):
            before = p.nhit
            m.call("fib", n)
            calls[n] = p.nhit - before
    bare, bare_few = cost(), cost(FEW)
    out = {}
    with k.kprobe("fib", pre_handler=lambda p, regs: None):
        out[NOTHING] = cost() - bare
    with k.event(EVENT):
        out["k.event(), compiled"] = cost() - bare
    with k.event(EVENT, stack=True):
        out["k.event(stack=True)"] = cost(FEW) - bare_few
    with k.trace(EVENT, filter="n >= 0") as t:
        out["k.trace(), 3 fetches and a filter"] = cost() - bare
    out["its records, when one looks"] = spent(lambda: len(t)) * 1e9 / len(t)
    with no_compiler(), k.trace(EVENT, filter="n >= 0"):
        out["the same in Python"] = cost() - bare
    with k.trace(EVENT, filter="n > 10"):
        out["k.trace(filter='n > 10')"] = cost() - bare
    with k.graph("fib", args=1):
        out["k.graph()"] = cost(FEW) - bare_few
    return out


def files(k: Kprobes) -> dict[str, float]:
    """Seconds to turn a million records into something else."""
    recording = Recording(k, [EVENT])
    put = recording._ring.writer(0)
    recording.trace.to_arrow()  # imports
    out = {"a million records": spent(lambda: [put(n + 1, 0, 0, (n, n & 0xFFFF, 7)) for n in range(MILLION)])}
    with tempfile.TemporaryDirectory() as directory:
        out["to Arrow"] = spent(recording.trace.to_arrow)
        out["to an Arrow file"] = spent(lambda: recording.trace.save(Path(directory, "x.arrow")))
        out["to ftrace's text"] = spent(lambda: recording.trace.export(Path(directory, "x.txt"), "ftrace"))
        out["to JSON lines"] = spent(lambda: recording.trace.export(Path(directory, "x.jsonl"), "jsonl"))
        out["to CSV"] = spent(lambda: recording.trace.export(Path(directory, "x.csv"), "csv"))
    return out


def many() -> dict[str, float]:
    """Seconds for what is done once for each of many functions."""
    nops = bytes.fromhex("0f1f440000 0f1f440000 0f1f440000 c3")
    names = {f"function_{n:04}": (0x10000 + len(nops) * n, len(nops)) for n in range(FUNCTIONS)}
    out = {}
    found = next((path for path in LIBRARIES if path.exists()), None)
    if found is not None:
        out[f"symbols of {found.name}"] = spent(lambda: read_elf(found).symbols)
        with UnicornMachine.load(found) as m, Kprobes(m) as k:
            starts = sorted({s.address for s in m.symbols if s.kind == "func" and s.size})
            out[f"check its {len(starts):,} functions"] = spent(lambda: [k.check(start) for start in starts])
    with (UnicornMachine.from_code(nops * FUNCTIONS, arch="x86_64", base=0x10000, symbols=names) as m, Kprobes(m) as k,
          ExitStack() as stack):
        out[f"an event on {FUNCTIONS:,} functions, by a glob"] = spent(
            lambda: stack.enter_context(k.event("p function_* n=$arg1")))
    with UnicornMachine.load(DEMO) as m:
        m.call("fib", N)
        bare = spent(lambda: m.call("fib", N))
        with Kprobes(m) as k, k.coverage():
            m.call("fib", N)
            out["block coverage, times the bare run"] = spent(lambda: m.call("fib", N)) / bare
    return out


def main() -> None:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        rounds = [hits(m, k) for _ in range(ROUNDS)]
        print(f"{'per hit':<36}{'ns':>8}{'ratio':>8}")
        for name in rounds[0]:
            cost = statistics.median(r[name] for r in rounds)
            ratio = statistics.median(r[name] / r[NOTHING] for r in rounds)
            print(f"{name:<36}{cost:>8.0f}{ratio:>8.2f}")
        print(f"\n{'at once':<44}{'s':>8}")
        for name, seconds in files(k).items():
            print(f"{name:<44}{seconds:>8.2f}")
    for name, seconds in many().items():
        print(f"{name:<44}{seconds:>8.2f}")


if __name__ == "__main__":
    main()
