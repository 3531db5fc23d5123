"""A small fuzzer: 10,000 runs of the demo's parser, each from the same state, guided by block coverage.

    python examples/fuzz.py [RUNS [FILE]]

Each run restores a snapshot, writes 64 bytes of input, calls the parser, and looks whether it has reached a block that
none had before: then the input is kept, and more are made of it.
"""

import random
import sys
from pathlib import Path
from time import process_time

from kprobes import GuestFault, GuestTimeout, Kprobes, UnicornMachine

SIZE = 64
WORDS = (b"a", b"key", b"=", b",", b"-", b"0x1f", b"640", b" ")


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Another input: a byte or a word put somewhere, or a piece cut out."""
    at = rng.randrange(len(data) + 1)
    kind = rng.randrange(3)
    if kind == 0:
        data = data[:at] + bytes([rng.randrange(1, 256)]) + data[at + 1 :]
    elif kind == 1:
        data = data[:at] + rng.choice(WORDS) + data[at:]
    else:
        data = data[:at] + data[at + rng.randrange(1, 9) :]
    return data[: SIZE - 1]


def fuzz(file: str, runs: int, seed: int = 1) -> None:
    """Run it, and say what was found."""
    rng, corpus, crashes = random.Random(seed), [b"width=640"], set[bytes]()
    with UnicornMachine.load(file) as machine, Kprobes(machine) as k, k.coverage() as coverage:
        machine.call("table_init")
        text = machine.alloc(SIZE)
        start = machine.snapshot()
        began = process_time()
        for _ in range(runs):
            data = mutate(rng, rng.choice(corpus))
            machine.restore(start)
            machine.write(text, data.ljust(SIZE, b"\0"))
            try:
                machine.call("parse_settings", text)
            except (GuestFault, GuestTimeout):
                crashes.add(data)
            if coverage.new():
                corpus.append(data)
        seconds = process_time() - began
        found = f"{len(coverage)} blocks, {len(corpus)} inputs kept, {len(crashes)} crashes"
        print(f"{runs:,} runs, {found}; {runs / seconds:,.0f} runs/s", file=sys.stderr)
        for data in corpus:
            print(data)


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    fuzz(sys.argv[2] if len(sys.argv) > 2 else str(here / "demo.x86_64"),
         int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
