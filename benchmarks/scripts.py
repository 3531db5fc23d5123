"""What scripts cost: a hit beside the same program in C, and the time to start.

    python benchmarks/scripts.py [FILE]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from kprobes import Kprobes, Program, UnicornMachine

COUNT = """
#include <kprobes/bpf.h>
u64 calls;
SEC("kprobe") int on(struct pt_regs *ctx) { calls += 1; return 0; }
"""
SCRIPTS = {
    "@ = count()": "kprobe:fib { @ = count(); }",
    "@[arg0] = count()": "kprobe:fib { @[arg0] = count(); }",
    "@ = hist(arg0)": "kprobe:fib { @ = hist(arg0); }",
    "printf of two numbers": 'kprobe:fib { printf("%d %d\\n", arg0, arg1); }',
}
TEN = """
kprobe:fib { @start[tid] = nsecs; @depth++; }
kprobe:fib /arg0 > 2/ { @big = count(); @args = hist(arg0); }
kretprobe:fib /@start[tid]/ {
    @ns = hist(nsecs - @start[tid]);
    @by[retval] = count();
    delete(@start, tid);
}
begin { printf("here we go\\n"); }
end { clear(@start); }
"""
#: fib(18) is some 4,000 hits: their records fit into the ring, so that reading them is not measured
ARGUMENT, ROUNDS = 18, 40


def hit(machine: UnicornMachine, hits: int, between: Callable[[], object] = lambda: None) -> float:
    """Nanoseconds that a call takes, for each hit; the least of several rounds.

    Args:
        machine: with the guest.
        hits: of one call.
        between: done between two rounds, and not measured.
    """
    best = float("inf")
    for _ in range(ROUNDS):
        begun = time.perf_counter_ns()
        machine.call("fib", ARGUMENT)
        best = min(best, (time.perf_counter_ns() - begun) / hits)
        between()
    return best


def main() -> None:
    """Print a table."""
    machine = UnicornMachine.load(sys.argv[1] if len(sys.argv) > 1 else "examples/demo.arm64")
    with Kprobes(machine) as k:
        with k.script("kprobe:fib { @ = count(); }") as s:
            machine.call("fib", ARGUMENT)
        hits = s.maps[""]
        bare = hit(machine, hits)
        with k.attach(Program.from_c(COUNT), "fib"):
            in_c = hit(machine, hits) - bare
        print(f"{'calls += 1 in C':28}{in_c:8.1f} ns")
        for name, text in SCRIPTS.items():
            with k.script(text) as s:
                cost = hit(machine, hits, s.poll) - bare
            print(f"{name:28}{cost:8.1f} ns")
        begun = time.perf_counter()
        with k.script(TEN):
            started = time.perf_counter() - begun
        begun = time.perf_counter()
        with k.script(TEN):
            again = time.perf_counter() - begun
        print(f"{'start of ten lines':28}{started:8.3f} s, again {again:.3f} s")


if __name__ == "__main__":
    main()
