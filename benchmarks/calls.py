"""What a guest call costs, beside the engine's least for it, in the same run.

    python benchmarks/calls.py [--arch x86_64] [--rounds 25] [--calls 400]

Every round runs every row, so that whatever disturbs the machine disturbs all alike; shown are medians over the rounds,
in microseconds of the processor's time, the process's other threads included, and the ratio to the same round's first
row.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from kprobes import Kprobe, Kprobes, UnicornMachine

BASE = 0x10000
RETURNS = {"x86_64": "c3", "i386": "c3", "arm64": "c0035fd6", "arm": "1eff2fe1", "mips": "03e0000800000000",
           "riscv64": "82800000", "mips64": "03e0000800000000", "ppc": "4e800020", "m68k": "4e75"}
Rows = dict[str, Callable[[], object]]


def rows_of(arch: str) -> tuple[Rows, list[object]]:
    """The rows; and what has to live as long."""
    m, probed = (UnicornMachine.from_code(bytes.fromhex(RETURNS[arch]), arch=arch, base=BASE) for _ in range(2))
    k = Kprobes(probed)
    k.register(Kprobe(addr=BASE, pre_handler=lambda p, regs: None))
    engine, target = m.parts.memory.engine, m.arch.pointers.code_address(BASE, m.read)
    m.call(BASE)
    linkage = m.arch.linkage
    assert linkage is not None

    def least() -> None:
        saved = engine.save()
        linkage.set(m.regs, m.parts.state.exit)
        engine.start(target.addr | target.mode, m.parts.state.exit)
        engine.restore(saved)
        engine.discard(saved)

    def in_turn() -> None:
        m.call(BASE)
        m.call(BASE, max_insns=100)

    return {
        "engine: save, start, restore": least,
        "m.call of an empty function": lambda: m.call(BASE),
        "with timeout": lambda: m.call(BASE, timeout=5),
        "with max_insns": lambda: m.call(BASE, max_insns=100),
        "with both": lambda: m.call(BASE, timeout=5, max_insns=100),
        "without and with max_insns, two calls": in_turn,
        "with 3 arguments": lambda: m.call(BASE, 1, 2, 3),
        "of a probed function": lambda: probed.call(BASE),
    }, [m, k]


def measured(rows: Rows, rounds: int, calls: int) -> dict[str, list[float]]:
    """Microseconds a call, for each round."""
    out: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(rounds):
        for name, run in rows.items():
            run()
            start = time.process_time()
            for _ in range(calls):
                run()
            out[name].append((time.process_time() - start) / calls * 1e6)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", action="append", choices=RETURNS, help="default: x86_64 and arm64")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--calls", type=int, default=400)
    options = parser.parse_args()
    for arch in options.arch or ["x86_64", "arm64"]:
        rows, kept = rows_of(arch)
        found = measured(rows, options.rounds, options.calls)
        first = found[next(iter(found))]
        print(f"{arch}: us a call")
        for name, times in found.items():
            ratio = statistics.median(mine / least for mine, least in zip(times, first, strict=True))
            print(f"  {name:36} {statistics.median(times):8.1f}  x{ratio:.1f}")
        del kept


if __name__ == "__main__":
    main()
