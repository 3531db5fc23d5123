"""What a hit costs in a Linux process under qemu-user, beside the same run without a probe.

    python benchmarks/remote.py [--arch x86_64] [--rounds 5]

`fib` of examples/demo is called, with one kind of probe at a time: every round runs every row. Shown are medians over
the rounds: hits a second of the whole run, what a hit adds to it in microseconds, and times the unprobed call.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from kprobes import Kprobe, Kprobes, Kretprobe, Program, QemuMachine, Regs

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
STOPS, RUNS = 12, 27  #: what fib is called with
PROGRAM = """
#include <kprobes/bpf.h>
u64 calls, sum;
struct { __uint(type, BPF_MAP_TYPE_HASH); __uint(max_entries, 1024); __type(key, u64); __type(value, u64); }
    counts SEC(".maps");
struct { __uint(type, BPF_MAP_TYPE_RINGBUF); __uint(max_entries, 1 << 12); } records SEC(".maps");
SEC("kprobe") int count(struct pt_regs *ctx) { calls += 1; return 0; }
SEC("kprobe") int filter(struct pt_regs *ctx)
{
    if (PT_REGS_PARM1(ctx) > 1) sum += PT_REGS_PARM1(ctx);
    return 0;
}
SEC("kprobe") int histogram(struct pt_regs *ctx)
{
    u64 key = PT_REGS_PARM1(ctx) & 63, one = 1, *n = bpf_map_lookup_elem(&counts, &key);
    if (n) *n += 1; else bpf_map_update_elem(&counts, &key, &one, BPF_ANY);
    return 0;
}
SEC("kprobe") int record(struct pt_regs *ctx)
{
    u64 *e = bpf_ringbuf_reserve(&records, 16, 0);
    if (!e) return 0;
    e[0] = PT_REGS_PARM1(ctx); e[1] = PT_REGS_IP(ctx);
    bpf_ringbuf_submit(e, 0);
    return 0;
}
"""
Row = tuple[int, Callable[[Kprobes], AbstractContextManager[object]]]


def asked(probe: Kprobe, regs: Regs) -> None:
    """Two arguments, as handlers read them."""
    regs.arg(0), regs.arg(1)


def registered(*probes: Kprobe | Kretprobe) -> Callable[[Kprobes], AbstractContextManager[object]]:
    """Probes, while a call is made."""
    def start(k: Kprobes) -> AbstractContextManager[object]:
        for probe in probes:
            k.register(probe)
        return _Registered(k, *probes)

    return start


class _Registered:
    def __init__(self, k: Kprobes, *probes: Kprobe | Kretprobe) -> None:
        self._k, self._probes = k, probes

    def __enter__(self) -> _Registered:
        return self

    def __exit__(self, *exc: object) -> None:
        for probe in self._probes:
            self._k.unregister(probe)


def program(name: str) -> Callable[[Kprobes], AbstractContextManager[object]]:
    """A program in the guest."""
    return lambda k: k.attach(Program.from_c(PROGRAM)[name], "fib")


ROWS: dict[str, Row] = {
    "no probe, few calls": (STOPS, lambda k: nullcontext()),
    "breakpoint and step, two arguments": (STOPS, registered(
        Kprobe(symbol_name="fib", pre_handler=asked, post_handler=lambda p, regs, flags: None))),
    "boosted, two arguments": (STOPS, registered(Kprobe(symbol_name="fib", pre_handler=asked))),
    "return probe": (STOPS, registered(Kretprobe(symbol_name="fib", handler=lambda ri, regs: None))),
    "event that Python records, with times": (STOPS, lambda k: k.trace("p fib n=$arg1:u32", clock="host")),
    "no probe": (RUNS, lambda k: nullcontext()),
    **{f"program: {name}": (RUNS, program(name)) for name in ("count", "filter", "histogram", "record")},
    "event: record": (RUNS, lambda k: k.event("p:e fib n=$arg1:u32")),
    "event: filter": (RUNS, lambda k: k.event("p:e fib n=$arg1:u32", "n > 26")),
    "event: histogram": (RUNS, lambda k: k.event("p:e fib n=$arg1:u32", "n > 26").trigger("hist:keys=n")),
}


def entered(m: QemuMachine, k: Kprobes, n: int) -> int:
    """How often fib is entered for fib(n), as it is compiled: a loop may stand for one of its two calls."""
    with k.attach(Program.from_c(PROGRAM)["count"], "fib") as attachment:
        m.call("fib", n)
        return attachment.runs


def timed(m: QemuMachine, k: Kprobes, row: Row) -> float:
    """Seconds of one call."""
    n, start = row
    with start(k):
        m.call("fib", 2)
        before = time.monotonic()
        m.call("fib", n)
        return time.monotonic() - before


def measured(arch: str, rounds: int) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Row -> seconds, for each round; and hits."""
    found: dict[str, list[float]] = {name: [] for name in ROWS}
    with tempfile.TemporaryDirectory() as folder:
        demo = Path(shutil.copy(EXAMPLES / f"demo.{arch}", folder))
        demo.chmod(0o755)
        with QemuMachine.user([demo], env={}, stdout=subprocess.DEVNULL) as m, Kprobes(m) as k:
            for _ in range(rounds):
                for name, row in ROWS.items():
                    found[name].append(timed(m, k, row))
            hits = {n: entered(m, k, n) for n in (STOPS, RUNS)}
    return found, {name: hits[n] for name, (n, _) in ROWS.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", action="append", choices=("x86_64", "arm64"), help="default: both")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for arch in options.arch or ["x86_64", "arm64"]:
        found, hits = measured(arch, options.rounds)
        print(f"{arch:36} {'hits/s':>12} {'us a hit':>9} {'times':>7}")
        for name, seconds in found.items():
            plain = found["no probe, few calls" if ROWS[name][0] == STOPS else "no probe"]
            more = statistics.median(mine - bare for mine, bare in zip(seconds, plain, strict=True))
            times = statistics.median(mine / bare for mine, bare in zip(seconds, plain, strict=True))
            print(f"  {name:34} {hits[name] / statistics.median(seconds):12,.0f} "
                  f"{more / hits[name] * 1e6:9.3f} {times:7.1f}")


if __name__ == "__main__":
    main()
