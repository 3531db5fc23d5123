"""How RISC-V takes interrupts to machine mode: The RISC-V Instruction Set Manual, Volume II, 3.1.6
to 3.1.9.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from .._interrupts import ExceptionCpu, InterruptLines, InterruptRules

SOFTWARE, TIMER, EXTERNAL = 3, 7, 11
MACHINE = 3
MIE, MPIE, MPP = 1 << 3, 1 << 7, 3 << 11  #: bits of mstatus


def masked(cpu: ExceptionCpu, line: int) -> bool:
    """Whether mie or mstatus masks an interrupt; below machine mode only mie counts.

    Args:
        cpu: the CPU between two instructions.
        line: number of the interrupt.
    """
    if not cpu.system("mie") >> line & 1:
        return True
    return cpu.system("priv") == MACHINE and not cpu.system("mstatus") & MIE


def wakes(cpu: ExceptionCpu, line: int) -> bool:
    """Whether a pending interrupt ends WFI: its bit of mie decides alone."""
    return bool(cpu.system("mie") >> line & 1)


def enter(cpu: ExceptionCpu, line: int) -> int:
    """Take an interrupt to machine mode as the CPU does: save privilege and pc, set mcause, and
    mask interrupts (MIE).

    Args:
        cpu: the CPU between two instructions; its registers are changed.
        line: number of the interrupt.

    Returns:
        The handler's address, from mtvec.
    """
    status, privilege = cpu.system("mstatus"), cpu.system("priv")
    bits = cpu.bits
    cpu.set_system("mepc", cpu.regs.pc)
    cpu.set_system("mcause", 1 << bits - 1 | line)
    cpu.set_system("mtval", 0)
    status = status & ~(MIE | MPIE | MPP) | (MPIE if status & MIE else 0) | privilege << 11
    cpu.set_system("mstatus", status)
    cpu.set_system("priv", MACHINE)
    vector = cpu.system("mtvec")
    return (vector & ~3) + (4 * line if vector & 1 else 0)


def show(cpu: ExceptionCpu, lines: frozenset[int]) -> None:
    """Set mip, where the guest reads which interrupts are pending.

    Args:
        cpu: the CPU between two instructions.
        lines: numbers of the interrupts that are pending.
    """
    value = sum(1 << line for line in lines)
    if cpu.system("mip") != value:
        cpu.set_system("mip", value)


def order(lines: Iterable[int]) -> list[int]:
    """Sort pending interrupts, the most urgent first.

    The platform's, then external, software, timer (3.1.9).
    """
    rank = {EXTERNAL: 1, SOFTWARE: 2, TIMER: 3}
    return sorted(lines, key=lambda line: (rank.get(line, 0 if line >= 16 else 4), -line))


RULES = InterruptRules(numbers=range(32),
                       names={"software": SOFTWARE, "timer": TIMER, "external": EXTERNAL},
                       masked=masked, enter=enter, wakes=wakes, show=show, order=order)
CONTROLLER = partial(InterruptLines, RULES)
