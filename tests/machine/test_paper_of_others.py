"""The toy engine with another instruction set than its own: what an engine would do, it does."""

from __future__ import annotations

from typing import Any

import pytest

from kprobes import GuestFault, Kprobes, UnicornMachine
from kprobes import arch as architectures
from kprobes.machine.paper import PaperMachine

pytestmark = pytest.mark.quick
#: Architecture -> sum(n) = n + (n - 1) + ... + 1: an addition, a decrement, a branch back, a return
SUMS = {
    "riscv32": "93050000 b385a500 1305f5ff e31c05fe 13850500 67800000",  # li a1; add; addi; bnez; mv; ret
    # addiu a1; addu; addiu a0; bnez, nop; or v0; jr, nop
    "mipsel": "00000524 2128a400 ffff8424 fdff8014 00000000 2510a000 0800e003 00000000",
}


def riscv(regs: Any, word: int) -> None:
    d, s, t = (f"x{word >> at & 31}" for at in (7, 15, 20))
    value = word >> 20 if word & 0x7F == 0x13 else regs[t]
    if d != "x0":
        regs[d] = regs[s] + (value - (value >> 11 << 12) if word & 0x7F == 0x13 else value)


def mips(regs: Any, word: int) -> None:
    s, t, d = (regs.arch.regs.names[word >> at & 31] for at in (21, 16, 11))
    if word >> 26 == 9:
        regs[t] = regs[s] + (word & 0xFFFF ^ 0x8000) - 0x8000
    elif word:
        regs[d] = regs[s] + regs[t] if word & 63 == 0x21 else regs[s] | regs[t]


EFFECTS = {"riscv32": riscv, "mipsel": mips}


@pytest.mark.parametrize("arch", SUMS)
@pytest.mark.parametrize("optimize", [False, True])
def test_it_does_what_an_engine_does(arch: str, optimize: bool) -> None:
    code = bytes.fromhex(SUMS[arch])
    paper = PaperMachine(code, arch=architectures.get(arch), symbols={"sum": (0x1000, len(code))},
                         execute=lambda regs, insn: EFFECTS[arch](regs, int.from_bytes(insn.raw, "little")))
    with UnicornMachine.from_code(code, arch=arch, base=0x1000, symbols={"sum": (0x1000, len(code))}) as unicorn:
        assert seen(paper, optimize) == seen(unicorn, optimize)


def seen(machine: Any, optimize: bool) -> list[Any]:
    """Results and what probes on every instruction, and on the return, were told."""
    out: list[Any] = []
    with Kprobes(machine) as k:
        symbol = machine.symbols["sum"]
        for insn in k._survey.instructions(symbol):
            if k.check(insn.addr).probeable:
                k.register(k.kprobe(addr=insn.addr, optimize=optimize,
                                    pre_handler=lambda p, regs: out.append(regs.pc)).probe)
        with k.kretprobe("sum", handler=lambda ri, regs: out.append(regs.return_value)):
            out += [machine.call("sum", 4), machine.call("sum", 1)]
            k.flush_optimizer()
            out.append(machine.call("sum", 3))
    return out


def test_what_nobody_says_is_a_fault() -> None:
    machine = PaperMachine(bytes.fromhex(SUMS["riscv32"]), arch=architectures.get("riscv32"),
                           symbols={"sum": (0x1000, 24)})
    with pytest.raises(GuestFault, match="does not know what insn does"):
        machine.call("sum", 1)
