"""eBPF in a fuzz loop: what the parser does with the inputs, counted by a program while it runs.

    python examples/ebpf_fuzz.py [RUNS]

The loop is that of fuzz.py. A program counts how often crc32() is called with each length; Python looks at the map when
all is done, so that the runs stay fast. Compare the two numbers at the end.
"""

import contextlib
import random
import sys
from pathlib import Path
from time import process_time

from fuzz import SIZE, mutate

from kprobes import Kprobes, Program, UnicornMachine

HERE = Path(__file__).resolve().parent


def loop(machine: UnicornMachine, runs: int) -> float:
    """The runs, from the same state each; how long they took, in seconds of the processor."""
    rng = random.Random(1)
    machine.call("table_init")
    text = machine.alloc(SIZE)
    start, began = machine.snapshot(), process_time()
    for _ in range(runs):
        machine.restore(start)
        machine.write(text, mutate(rng, b"width=640, height=480").ljust(SIZE, b"\0"))
        machine.call("parse_settings", text)
    return process_time() - began


def main(runs: int) -> None:
    """With the program, and without it."""
    program = Program.from_c((HERE / "programs" / "count.bpf.c").read_text(), "count.bpf.c")
    with UnicornMachine.load(HERE / "demo.x86_64") as machine, Kprobes(machine) as k:
        with k.attach(program) as attached:
            counted = loop(machine, runs)
        for length, count in sorted(attached.maps["counts"].items(), key=lambda item: -item[1])[:4]:
            print(f"crc32 of {length:2} bytes: {count}")
        with contextlib.suppress(ZeroDivisionError):
            print(f"{counted / loop(machine, runs):.2f} times the time of the loop without it", file=sys.stderr)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
