"""How x86 takes maskable interrupts, in 32-bit protected and in 64-bit mode.

Intel 64 and IA-32 Architectures Software Developer's Manual, Volume 3, 6.12 and 6.14. An
interrupt's number is its vector, as an interrupt controller would say.
"""

from __future__ import annotations

from functools import partial

from ...errors import GuestFault, Unsupported
from .._interrupts import ExceptionCpu, InterruptLines, InterruptRules

TF, IF, NT, RF = 1 << 8, 1 << 9, 1 << 14, 1 << 16  #: of the flags
INTERRUPT_GATE, TRAP_GATE = 0xE, 0xF


def masked(cpu: ExceptionCpu, line: int) -> bool:
    """Whether the flags mask interrupts: IF is clear."""
    return not cpu.system("flags") & IF


def enter(cpu: ExceptionCpu, line: int) -> int:
    """Take an interrupt as the CPU does: push flags, code segment and pc, load the gate's code
    segment, and change the flags.

    Args:
        cpu: the CPU between two instructions; its stack and registers are changed.
        line: the vector.

    Returns:
        The handler's address, from the gate in the IDT.

    Raises:
        GuestFault: the IDT has no such gate, or memory of the IDT or the stack is not mapped.
        Unsupported: the gate changes the stack: it has an IST entry, or changes the privilege.
    """
    wide = cpu.bits == 64
    base, limit = cpu.system("idt"), cpu.system("idt_limit")
    size = 16 if wide else 8
    if limit < size * line + size - 1:
        raise GuestFault(
            f"no gate for interrupt {line}: the IDT has {(limit + 1) // size}",
            pc=cpu.regs.pc,
            access="interrupt",
            number=line,
            serve="have the guest load its IDT first",
        )
    gate = int.from_bytes(cpu.read(base + size * line, size), "little")
    selector, kind, present = gate >> 16 & 0xFFFF, gate >> 40 & 0xF, gate >> 47 & 1
    if not present or kind not in (INTERRUPT_GATE, TRAP_GATE):
        raise GuestFault(
            f"the gate of interrupt {line} is not there",
            pc=cpu.regs.pc,
            access="interrupt",
            number=line,
            serve="have the guest fill its IDT first",
        )
    if (wide and gate >> 32 & 7) or (cpu.system("cs") ^ selector) & 3:
        raise Unsupported(
            f"interrupt {line} changes the stack",
            hint="gates without an IST entry, for the privilege that the guest has, are served",
        )
    _push(cpu, selector, wide)
    cpu.set_system(
        "flags", cpu.system("flags") & ~(TF | NT | RF | (IF if kind == INTERRUPT_GATE else 0))
    )
    offset = gate & 0xFFFF | gate >> 32 & 0xFFFF0000
    return offset | (gate >> 64 & 0xFFFFFFFF) << 32 if wide else offset


def _push(cpu: ExceptionCpu, selector: int, wide: bool) -> None:
    """Push an interrupt's frame, and load the code segment.

    In 64-bit mode the frame has the stack pointer as well, and lies at a multiple of 16.

    Args:
        cpu: its stack and registers change.
        selector: of the code segment that the gate names.
        wide: True in 64-bit mode.

    Raises:
        GuestFault: the stack is not mapped.
    """
    flags, code, back, sp = cpu.system("flags"), cpu.system("cs"), cpu.regs.pc, cpu.regs.sp
    if wide:
        words, size = [back, code, flags, sp, cpu.system("ss")], 8
        sp &= ~15
    else:
        words, size = [back, code, flags], 4
    sp = sp - size * len(words) & (1 << cpu.bits) - 1
    cpu.write(sp, b"".join(word.to_bytes(size, "little") for word in words))
    cpu.regs.sp = sp
    if selector != code:
        cpu.set_system("cs", selector)


RULES = InterruptRules(numbers=range(32, 256), names={}, masked=masked, enter=enter,
                       wakes=lambda cpu, line: bool(cpu.system("flags") & IF))
CONTROLLER = partial(InterruptLines, RULES)
