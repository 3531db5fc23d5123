"""What a new architecture has to show: its record is right, and a probe on every instruction changes nothing.

    pip install ./examples/rv32i && python examples/rv32i/prove.py
"""

from kprobes import Kprobes, UnicornMachine, get_arch
from kprobes.testing import check_arch, functions, kprobes_everywhere, transparency

# sum: li a1, 0; loop: add a1, a1, a0; addi a0, a0, -1; bnez a0, loop; mv a0, a1; ret
SUM = bytes.fromhex("93050000 b385a500 1305f5ff e31c05fe 13850500 67800000")


def machine() -> UnicornMachine:
    """A guest of the new architecture."""
    return UnicornMachine.from_code(SUM, arch="rv32i", base=0x10000, symbols={"sum": (0x10000, 24)})


def main() -> None:
    """Check it, probe it, compare."""
    print("what is wrong with the record:", check_arch(get_arch("rv32i")) or "nothing")
    with machine() as m, Kprobes(m) as k:
        for offset in range(0, 24, 4):
            verdict = k.check(f"sum+{offset:#x}")
            print(f"sum+{offset:#04x}: {verdict.how}, "
                  f"{'becomes a jump' if verdict.optimizable else verdict.why_not_optimized}")
        with k.kretprobe("sum", handler=lambda ri, regs: print("sum returns", regs.return_value)):
            m.call("sum", 4)
        everywhere = kprobes_everywhere(k, functions(m))
    differing = transparency(machine, lambda m: m.call("sum", 100), lambda m: everywhere)
    print(f"{len(everywhere)} probes at once make {len(differing)} differences")


if __name__ == "__main__":
    main()
