"""The kernel's kretprobe sample for a guest: what a function returns, and how long it took.

    python examples/kretprobe_example.py [FILE [SYMBOL]]

An emulated guest has no clock of its own, so the host's is read, as the kernel's module reads the machine's.
"""

import sys
import time
from pathlib import Path

from kprobes import Kprobes, Kretprobe, KretprobeInstance, Regs, UnicornMachine


def entry_handler(ri: KretprobeInstance, regs: Regs) -> int:
    """Remember when this call began; the data belongs to this call alone."""
    ri.data["entry"] = time.perf_counter_ns()
    return 0


def ret_handler(ri: KretprobeInstance, regs: Regs) -> None:
    """Report the call that has returned."""
    duration = time.perf_counter_ns() - ri.data["entry"]
    print(f"{ri.rp.symbol_name} returned {regs.return_value} and took {duration} ns to execute")


def main(file: str, symbol: str) -> None:
    """Register, run the guest, unregister; say how many calls could not be followed."""
    with UnicornMachine.load(file) as machine, Kprobes(machine) as k:
        r = Kretprobe(symbol_name=symbol, entry_handler=entry_handler, handler=ret_handler, maxactive=20)
        k.register_kretprobe(r)
        where = r.address
        print(f"Planted return probe at {symbol}: {where:#x}")
        machine.call(symbol, 4)
        k.unregister_kretprobe(r)
        print(f"kretprobe at {where:#x} unregistered")
        print(f"Missed probing {r.nmissed} instances of {symbol}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("demo.x86_64")),
         sys.argv[2] if len(sys.argv) > 2 else "fib")
