"""How MIPS takes interrupts without an external controller (compatibility mode).

MIPS32 Architecture Volume III, 6.1 and 6.2. No interrupt is taken between a branch and its delay
slot: machines do not ask there.
"""

from __future__ import annotations

from functools import partial

from .._interrupts import ExceptionCpu, InterruptLines, InterruptRules

IE, EXL, ERL, BEV = 1, 2, 4, 1 << 22  #: bits of Status
IV = 1 << 23  #: of Cause
LINES = 8  #: of which the first two are software's


def masked(cpu: ExceptionCpu, line: int) -> bool:
    """Whether Status masks an interrupt."""
    status = cpu.system("status")
    return status & (IE | EXL | ERL) != IE or not status >> 8 + line & 1


def wakes(cpu: ExceptionCpu, line: int) -> bool:
    """Whether a pending interrupt ends WAIT: its bit of Status.IM decides alone."""
    return bool(cpu.system("status") >> 8 + line & 1)


def enter(cpu: ExceptionCpu, line: int) -> int:
    """Take an interrupt as the CPU does: set EXL, and EPC to pc.

    Args:
        cpu: the CPU between two instructions; its registers are changed.
        line: number of the interrupt; all have one vector.

    Returns:
        The vector's address.
    """
    status, back = cpu.system("status"), cpu.regs.pc
    cpu.set_system("status", status | EXL)
    cpu.set_system("epc", back)
    cause = cpu.system("cause")
    special = bool(cause & IV)
    base = 0xBFC00200 if status & BEV else cpu.system("ebase") & 0xBFFFF000 | 0x80000000
    return base + (0x200 if special else 0x180)


def show(cpu: ExceptionCpu, lines: frozenset[int]) -> None:
    """Set IP2 to IP7 of Cause by the pending lines; the guest writes IP0 and IP1 itself. The
    exception's code and BD become 0.

    Args:
        cpu: the CPU.
        lines: numbers of the pending lines.
    """
    cause = cpu.system("cause")
    value = cause & ~(0xFC << 8 | 0x7C | 1 << 31) | sum(1 << 8 + line for line in lines)
    if value != cause:
        cpu.set_system("cause", value)


RULES = InterruptRules(numbers=range(LINES), names={f"ip{n}": n for n in range(LINES)},
                       masked=masked, enter=enter,
                       wakes=wakes, show=show, order=lambda lines: sorted(lines, reverse=True))
CONTROLLER = partial(InterruptLines, RULES)
