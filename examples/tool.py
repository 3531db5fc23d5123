"""A tool of your own: what each setting does to a program's table, each from the same state.

    python examples/tool.py [TEXT ...]
"""

import sys
from pathlib import Path

from kprobes import Kprobes, UnicornMachine

GUEST = Path(__file__).resolve().parent / "demo.arm64"


def main(texts: list[str]) -> None:
    """Parse each text; print keys, results, and what wrote where."""
    with UnicornMachine.load(GUEST) as machine, Kprobes(machine) as k:
        machine.call("table_init")
        initialised = machine.snapshot()
        keys, results, written = list[bytes](), list[int](), list[str]()

        def wrote(watchpoint, regs):
            place, code = map(machine.symbols.describe, (watchpoint.accessed, regs.pc))
            written.append(f"{watchpoint.accessed_size} bytes at {place} by {code}")

        k.kprobe("table_insert")(lambda p, regs: keys.append(regs.read_cstr(regs.arg(0))))
        k.kretprobe("table_insert")(lambda ri, regs: results.append(regs.return_value))
        k.watchpoint("pool", machine.symbols["pool"].size, "w", wrote)
        for text in texts:
            result = machine.call("parse_settings", text)
            print(f"{text!r}: {result}, keys {keys}, results {results}", *written, sep="\n  ")
            machine.restore(initialised)
            for found in (keys, results, written):
                found.clear()


if __name__ == "__main__":
    main(sys.argv[1:] or ["width=640", "", "depth=24, =3"])
