"""The kernel's jprobe sample for a guest: a Python function with the probed function's own parameters.

    python examples/jprobe_example.py [FILE]

The kernel's mirrors _do_fork; this one mirrors table_insert(const char *key, int32_t value). The annotations convert.
"""

import ctypes
import sys
from pathlib import Path

from kprobes import Jprobe, Kprobes, UnicornMachine


def jtable_insert(key: ctypes.c_char_p, value: ctypes.c_int32) -> None:
    """Called with the arguments of every call of table_insert, before it runs. There is no jprobe_return() to
    forget."""
    print(f"jprobe: key = {key!r}, value = {value}")


def main(file: str) -> None:
    """Register, run the guest, unregister."""
    with UnicornMachine.load(file) as machine, Kprobes(machine) as k:
        jp = Jprobe(symbol_name="table_insert", entry=jtable_insert)
        k.register_jprobe(jp)
        where = jp.address
        print(f"Planted jprobe at {where:#x}, handler addr {jtable_insert.__qualname__}")
        machine.call("table_init")
        machine.call("parse_settings", b"width=640, scale=-3")
        k.unregister_jprobe(jp)
        print(f"jprobe at {where:#x} unregistered")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("demo.x86_64")))
