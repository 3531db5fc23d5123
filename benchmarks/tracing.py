"""What tracing costs: `python benchmarks/tracing.py`. Processor time; each row's ratio is to a hit that only counts, of
the same round.

Rounds are interleaved; shown is the median of five. Files: a million records of three numbers.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from kprobes import Kprobes, UnicornMachine
from kprobes.tracing.recorder import Recording

DEMO = Path(__file__).resolve().parent.parent / "examples" / "demo.x86_64"
EVENT = "p fib n=$arg1:u32 b=$arg2:x32 c=$arg3"
N, ROUNDS, MILLION = 20, 5, 1_000_000


def spent(work: Callable[[], object]) -> float:
    """Seconds of processor time."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def hits(m: UnicornMachine, k: Kprobes) -> dict[str, float]:
    """Seconds that each way of looking adds to a run, and how many hits that were."""
    def run() -> object:
        return m.call("fib", N)

    out = {"bare": spent(run)}
    with k.kprobe("fib", pre_handler=lambda p, regs: None) as p:
        out["a handler that does nothing"] = spent(run)
        out["hits"] = p.nhit
    with k.event(EVENT):
        out["k.event(), compiled"] = spent(run)
    with k.event(EVENT, stack=True):
        out["k.event(stack=True)"] = spent(run)
    with k.trace(EVENT, filter="n >= 0") as t:
        out["k.trace(), 3 fetches and a filter"] = spent(run)
    out["its records, when one looks"] = out["bare"] + spent(lambda: len(t))
    m.cpu_task = lambda regs: 0
    with k.trace(EVENT, filter="n >= 0"):
        out["the same in Python"] = spent(run)
    m.cpu_task = None
    with k.trace(EVENT, filter="n > 10"):
        out["k.trace(filter='n > 10')"] = spent(run)
    with k.graph("fib", args=1):
        out["k.graph()"] = spent(run)
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
        out["to CSV"] = spent(lambda: recording.trace.export(Path(directory, "x.csv"), "csv"))
    return out


def main() -> None:
    with UnicornMachine.load(DEMO) as m, Kprobes(m) as k:
        rounds = [hits(m, k) for _ in range(ROUNDS)]
        print(f"{'per hit':<36}{'ns':>8}{'ratio':>8}")
        for name in rounds[0]:
            if name not in ("bare", "hits"):
                cost = statistics.median((r[name] - r["bare"]) / r["hits"] for r in rounds)
                ratio = statistics.median((r[name] - r["bare"]) / (r["a handler that does nothing"] - r["bare"])
                                          for r in rounds)
                print(f"{name:<36}{cost * 1e9:>8.0f}{ratio:>8.2f}")
        print(f"\n{'files':<32}{'s':>8}")
        for name, seconds in files(k).items():
            print(f"{name:<32}{seconds:>8.2f}")


if __name__ == "__main__":
    main()
