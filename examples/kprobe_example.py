"""The kernel's kprobe sample for a guest: a handler before an instruction and one behind it, with a line for each.

    python examples/kprobe_example.py [FILE [SYMBOL]]

The lines are those that the kernel's module prints, with the registers it prints on the machine at hand.
"""

import sys
from pathlib import Path

from kprobes import Kprobe, Kprobes, Regs, UnicornMachine

#: what the kernel's sample calls them; elsewhere they have the architecture's names
SHOWN = {"x86_64": ("ip", "flags"), "arm64": ("pc", "pstate")}


def registers(regs: Regs) -> str:
    """The program counter, and the flags where there are any."""
    names = SHOWN.get(regs.arch.name, (regs.arch.regs.pc, regs.arch.regs.flags))
    return ", ".join(f"{name} = 0x{regs[name]:x}" for name in names if name is not None)


def handler_pre(p: Kprobe, regs: Regs) -> int:
    """Runs before the instruction."""
    print(f"<{p.symbol_name}> p->addr = 0x{p.address:x}, {registers(regs)}")
    return 0


def handler_post(p: Kprobe, regs: Regs, flags: int) -> None:
    """Runs after it."""
    print(f"<{p.symbol_name}> p->addr = 0x{p.address:x}, {registers(regs)}")


def main(file: str, symbol: str) -> None:
    """Register, run the guest, unregister."""
    with UnicornMachine.load(file) as machine, Kprobes(machine) as k:
        p = Kprobe(symbol_name=symbol, pre_handler=handler_pre, post_handler=handler_post)
        k.register_kprobe(p)
        where = p.address
        print(f"Planted kprobe at {where:#x}")
        machine.call(symbol, 0, b"hello", 5)
        k.unregister_kprobe(p)
        print(f"kprobe at {where:#x} unregistered")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).with_name("demo.x86_64")),
         sys.argv[2] if len(sys.argv) > 2 else "crc32")
