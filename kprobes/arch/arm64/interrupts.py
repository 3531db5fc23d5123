"""How AArch64 takes IRQ and FIQ to EL1: Arm Architecture Reference Manual Armv8-A, D1.10 and D1.13.
"""

from __future__ import annotations

from functools import partial

from ...errors import Unsupported
from .._interrupts import ExceptionCpu, InterruptLines, InterruptRules

IRQ, FIQ = 0, 1
MASK = {IRQ: 1 << 7, FIQ: 1 << 6}
OFFSET = {IRQ: 0x80, FIQ: 0x100}
DAIF = 0xF << 6
CURRENT_SP0, CURRENT_SPX, LOWER = 0, 0x200, 0x400  #: parts of the vector table
EL1H = 5


def masked(cpu: ExceptionCpu, line: int) -> bool:
    """Whether PSTATE masks an interrupt (IRQ or FIQ), at EL0 as well."""
    return bool(cpu.system("pstate") & MASK[line])


def enter(cpu: ExceptionCpu, line: int) -> int:
    """Take an interrupt to EL1 as the CPU does: save PSTATE and the return address, mask
    interrupts.

    Args:
        cpu: the CPU between two instructions; its registers are changed.
        line: IRQ or FIQ.

    Returns:
        The vector's address.

    Raises:
        Unsupported: the CPU is above EL1.
    """
    pstate = cpu.system("pstate")
    level = pstate >> 2 & 3
    if level > 1:
        raise Unsupported(f"the guest is at EL{level}, and interrupts are taken to EL1",
                          hint="have it enter EL1 first, where machines start")
    part = CURRENT_SPX if pstate & 1 else CURRENT_SP0
    if level == 0:
        part = LOWER
    back, vectors = cpu.regs.pc, cpu.system("vbar_el1")
    cpu.set_system("spsr_el1", pstate)
    cpu.set_system("elr_el1", back)
    cpu.set_system("pstate", pstate & ~0xF & ~(3 << 20) | DAIF | EL1H)  # IL and SS are clear
    return vectors + part + OFFSET[line]


RULES = InterruptRules(numbers=range(2), names={"irq": IRQ, "fiq": FIQ}, masked=masked, enter=enter,
                       order=lambda lines: sorted(lines, reverse=True))
CONTROLLER = partial(InterruptLines, RULES)
