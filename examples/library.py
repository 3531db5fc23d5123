"""Trace a shared library that nobody here wrote: the system's own zlib, function by function.

    python examples/library.py

Python is its C library: the few functions that it imports are served by `bind`.
"""

import zlib

from kprobes import Kprobes, UnicornMachine

TEXT = b"to be, or not to be, that is the question: " * 20


def load() -> UnicornMachine:
    """zlib, with the imports that inflating takes."""
    machine = UnicornMachine.load("libz.so.1")
    machine.bind("malloc", lambda regs: machine.alloc(regs.arg(0)))
    machine.bind("free", lambda regs: machine.free(regs.arg(0)) if regs.arg(0) else None)

    def copy(regs):
        machine.write(regs.arg(0), machine.read(regs.arg(1), regs.arg(2)))
        return regs.arg(0)

    def fill(regs):
        machine.write(regs.arg(0), bytes([regs.arg(1) & 255]) * regs.arg(2))
        return regs.arg(0)

    for name, function in (("memcpy", copy), ("memmove", copy), ("memset", fill)):
        machine.bind(name, function)
    return machine


def main() -> None:
    """Let it inflate, and say what was called."""
    packed = zlib.compress(TEXT)
    with load() as machine, Kprobes(machine) as k:
        machine.process()  # thread-local storage, for what was compiled with a stack protector
        out, size = bytearray(len(TEXT)), bytearray(len(TEXT).to_bytes(8, "little"))
        with k.graph("uncompress", functions="[!_]*") as tree:
            print("uncompress returns", machine.call("uncompress", out, size, packed, len(packed)), bytes(out) == TEXT)
        counts = {}
        for path, count in tree.folded().items():
            counts[path[-1]] = counts.get(path[-1], 0) + count
        print("called:", ", ".join(sorted(name for name in counts if "@" not in name)))
        damaged = packed[:-1] + bytes([packed[-1] ^ 1])
        message = "+0(+48($arg1)):string"  # z_stream.msg: the sixth pointer or padded int
        with k.trace(f"r inflate $retval:s32 why={message}", "r adler32 $retval:x32") as trace:
            print("damaged:", machine.call("uncompress", out, size, damaged, len(damaged)) - (1 << 32))
        for record in trace:
            print(record.event, dict(record.args))


if __name__ == "__main__":
    main()
