"""How 32-bit PowerPC takes external and decrementer interrupts: Programming Environments Manual,
6.4.
"""

from __future__ import annotations

from functools import partial

from .._interrupts import ExceptionCpu, InterruptLines, InterruptRules

EXTERNAL, DECREMENTER = 0, 1
VECTOR = {EXTERNAL: 0x500, DECREMENTER: 0x900}
EE, IP, ILE, LE, ME = 1 << 15, 1 << 6, 1 << 16, 1, 1 << 12  #: bits of MSR
KEPT = ME | IP | ILE
SAVED = 0x87C0FFFF  #: bits of MSR that go to SRR1


def masked(cpu: ExceptionCpu, line: int) -> bool:
    """Whether MSR masks interrupts: EE is clear."""
    return not cpu.system("msr") & EE


def enter(cpu: ExceptionCpu, line: int) -> int:
    """Take an interrupt as the CPU does: save pc and MSR, change MSR.

    Args:
        cpu: the CPU between two instructions; its registers are changed.
        line: number of the interrupt.

    Returns:
        The vector's address.
    """
    msr, back = cpu.system("msr"), cpu.regs.pc
    cpu.set_system("srr0", back)
    cpu.set_system("srr1", msr & SAVED)
    cpu.set_system("msr", msr & KEPT | (LE if msr & ILE else 0))
    return (0xFFF00000 if msr & IP else 0) + VECTOR[line]


RULES = InterruptRules(numbers=range(2), names={"external": EXTERNAL, "decrementer": DECREMENTER},
                       masked=masked,
                       enter=enter)
CONTROLLER = partial(InterruptLines, RULES)
