"""Latencies and a flame graph: where a run spends its instructions, the same in every run.

    python examples/latency.py [OUT.svg]

A guest has no clock that means anything; the instructions it executes do. A program counts a histogram of one
function's calls by them, a graph gives those of each path of calls: as folded stacks here, as a picture where a file is
named.
"""

import sys
from pathlib import Path

from kprobes import Kprobes, Program, UnicornMachine

HERE = Path(__file__).resolve().parent
SETTINGS = b"width=640, height=480, depth=24, scale=-3, a=1"


def main(picture: str) -> None:
    """Measure, and print."""
    with UnicornMachine.load(HERE / "demo.x86_64") as machine, Kprobes(machine) as k:
        machine.call("table_init")
        source = (HERE / "programs" / "latency.bpf.c").read_text()
        with k.attach(Program.from_c(source, "latency.bpf.c"), clock="instructions") as attached:
            machine.call("parse_settings", SETTINGS)
        print("crc32: instructions a call")
        for power, calls in attached.maps["histogram"].items():
            if calls:
                print(f"{1 << power:4} to {(2 << power) - 1:4} |{'#' * calls:8}| {calls}")
        with k.graph("parse_settings", instructions=True) as tree:
            machine.call("parse_settings", SETTINGS)
        folded = tree.folded()
        for path, count in sorted(folded.items(), key=lambda item: -item[1])[:5]:
            print(f"{count:5} {';'.join(path)}")
        print(sum(folded.values()), "instructions in all")
        if picture:
            tree.export(picture, "svg")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
