"""How A and R profile CPUs take IRQ and FIQ in AArch32: Arm Architecture Reference Manual
Armv7-A/R, B1.8.
"""

from __future__ import annotations

from functools import partial

from .._interrupts import ExceptionCpu, InterruptLines, InterruptRules

IRQ, FIQ = 0, 1
MODE = {IRQ: 0x12, FIQ: 0x11}
MASK = {IRQ: 1 << 7, FIQ: 1 << 6}
VECTOR = {IRQ: 0x18, FIQ: 0x1C}
T, E = 1 << 5, 1 << 9
HIGH_VECTORS, ENDIAN, THUMB = 1 << 13, 1 << 25, 1 << 30  #: bits V, EE, TE of SCTLR
ITSTATE_AND_J = 0x3 << 25 | 1 << 24 | 0x3F << 10


def masked(cpu: ExceptionCpu, line: int) -> bool:
    """Whether CPSR masks an interrupt (IRQ or FIQ)."""
    return bool(cpu.regs["cpsr"] & MASK[line])


def enter(cpu: ExceptionCpu, line: int) -> int:
    """Take an interrupt as the CPU does: bank CPSR and the return address, change the mode, mask
    interrupts (by an FIQ also FIQs).

    Args:
        cpu: the CPU between two instructions; its registers are changed.
        line: IRQ or FIQ.

    Returns:
        The vector's address, with the Thumb bit.
    """
    cpsr, back = cpu.regs["cpsr"], (cpu.regs.pc & ~1) + 4
    control = cpu.system("sctlr")
    base = 0xFFFF0000 if control & HIGH_VECTORS else cpu.system("vbar")
    new = cpsr & ~(0x1F | T | E | ITSTATE_AND_J) | MODE[line] | MASK[IRQ] | 1 << 8
    if line == FIQ:
        new |= MASK[FIQ]
    if control & ENDIAN:
        new |= E
    thumb = bool(control & THUMB)
    cpu.set_system("cpsr", new | (T if thumb else 0))
    cpu.set_system("spsr", cpsr)
    cpu.regs["lr"] = back & 0xFFFFFFFF
    return base + VECTOR[line] | thumb


RULES = InterruptRules(numbers=range(2), names={"irq": IRQ, "fiq": FIQ}, masked=masked, enter=enter,
                       order=lambda lines: sorted(lines, reverse=True))
CONTROLLER = partial(InterruptLines, RULES)
