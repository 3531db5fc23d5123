"""x86 in Unicorn: what the CPU starts as, its segments, and system calls, which the engine passes
over unless they are hooked.
"""

from __future__ import annotations

from collections.abc import Callable

import unicorn
from unicorn import x86_const as const

from ....errors import BadArgument
from ....regs import Regs
from ..engine import Engine
from ..registers.conditions import Access, word
from ..registers.system import ByField, ByNumber, SystemRegister
from .guest import (
    INTR,
    Blocks,
    Breakpoint,
    Compares,
    Contexts,
    Cpu,
    Faults,
    Guest,
    HookedFlags,
    Interrupts,
    Mapped,
    Pc,
    RegisterFile,
    Served,
    Silenced,
    SingleStep,
    SystemCall,
    SystemCalls,
)

SYSCALL, SYSENTER = 0x100, 0x101  #: numbers of their interrupts; those of INT n end at 0xFF
CODE, DATA, USER_CODE, USER_DATA = 0x60, 0x68, 0x73, 0x7B  # selectors, as Linux has them on i386
#: exceptions at which pc stays at the instruction (Intel SDM volume 3, table 6-1)
FAULTS = frozenset({0, 5, 6, 7, 10, 11, 12, 13, 14, 16, 17, 19})
#: selector -> access byte of its flat segment
GDT = {CODE: 0x9B, DATA: 0x93, USER_CODE: 0xFB, USER_DATA: 0xF3}
#: what a process starts with by the psABI: exceptions masked, extended precision, an empty register
#: stack
START = {
    const.UC_X86_REG_FPCW: 0x37F,
    const.UC_X86_REG_FPTAG: 0xFFFF,
    const.UC_X86_REG_MXCSR: 0x1F80,
}


def set_up(engine: Engine) -> None:
    """Set the registers of the FPU and of SSE as a process finds them (Cpu.setup).

    Args:
        engine: a new engine.
    """
    for register, value in START.items():
        engine.uc.reg_write(register, value)


def segment(number: int) -> Callable[[Engine], Access]:
    """Return a function that finds a segment register in an engine: (engine) -> (function that
    reads it, function that writes it).

    Writing the selector that it holds already changes nothing: loading it again could change its
    base. A selector of no segment is a BadArgument.

    Args:
        number: the engine's number of the register.
    """

    def make(engine: Engine) -> Access:
        """Return (read, write) of a segment register's selector.

        Args:
            engine: the engine.
        """
        read = engine.reader(number, 16)

        def write(value: int) -> None:
            """Load a selector, unless the register has it.

            Raises:
                BadArgument: no descriptor has it.
            """
            if value == read():
                return
            try:
                engine.uc.reg_write(number, value & 0xFFFF)
            except unicorn.UcError:
                raise BadArgument(
                    f"no segment has the selector {value:#x}",
                    hint="write a descriptor into the guest's GDT first",
                ) from None

        return read, write

    return make


def flat_segments(engine: Engine, regs: Regs, start: int, size: int) -> None:
    """Write a GDT for i386 into guest memory, and load the segment registers (Contexts.furnish).

    Without one, every load of a segment register makes the stack 16 bits wide.

    Args:
        engine: the engine.
        regs: the CPU's registers; its memory is written.
        start: address of the table.
        size: bytes that are there; not used.
    """
    table = bytearray(0x80)
    for selector, access in GDT.items():
        at = selector & ~7
        # base 0, 4 GiB, 32 bits
        table[at : at + 8] = (0xCF000000_00FFFF | access << 40).to_bytes(8, "little")
    regs.machine.write(start, bytes(table))
    engine.uc.reg_write(const.UC_X86_REG_GDTR, (0, start, len(table) - 1, 0))
    for register, selector in (
        (const.UC_X86_REG_SS, DATA),
        (const.UC_X86_REG_DS, USER_DATA),
        (const.UC_X86_REG_ES, USER_DATA),
        (const.UC_X86_REG_CS, CODE),
    ):
        engine.uc.reg_write(register, selector)


def syscall_effect(regs: Regs, behind: int) -> None:
    """Set the registers that the instruction SYSCALL itself changes: rcx and r11.

    Args:
        regs: the CPU's registers.
        behind: address behind the instruction.
    """
    regs["rcx"], regs["r11"] = behind, regs.flags


def _system(wide: bool) -> dict[str, SystemRegister]:
    """Return the registers that interrupts read and change: name -> how they are reached.

    Args:
        wide: True for 64 bits.
    """
    return {
        "flags": ByNumber("RFLAGS" if wide else "EFLAGS"),
        "cs": ByNumber("CS"),
        "ss": ByNumber("SS"),
        "idt": ByField("IDTR", 1),
        "idt_limit": ByField("IDTR", 2),
    }


def _guest(mode: int, registers: dict[str, str]) -> Guest:
    """Make the engine's row of an x86 guest.

    Args:
        mode: the engine's, unicorn.UC_MODE_32 or UC_MODE_64.
        registers: the architecture's name -> name in unicorn's constants, where these differ.
    """
    wide = mode == unicorn.UC_MODE_64
    segments = {
        name: segment(getattr(const, f"UC_X86_REG_{name.upper()}"))
        for name in ("cs", "ss", "ds", "es", "fs", "gs")
    }
    calls = {
        const.UC_X86_INS_SYSCALL: SystemCall(SYSCALL, 2, syscall_effect if wide else None),
        const.UC_X86_INS_SYSENTER: SystemCall(SYSENTER, 2),
    }
    first, bits = (const.UC_X86_REG_RAX, 64) if wide else (const.UC_X86_REG_EAX, 32)
    served = Served(word(first, bits, 0x1578), bytes.fromhex("31c9f7f1"), 0)  # XOR ecx,ecx; DIV ecx
    # CC_SRC behind the general registers, RIP, EFLAGS and CC_DST. CMP al,0x4f; MOV [0],ecx
    store = "890c2500000000" if wide else "890d00000000"
    hooked = HookedFlags(
        word(first, bits, 19 * 8, 64), 0x8D5, bytes.fromhex("3c4f" + store), FAULTS
    )
    # MOV [0x10009],eax; NOPs
    itself = bytes.fromhex(("89042509000100" if wide else "a309000100") + "90" * 9)
    interrupts = (*range(0x20, 0x100), SYSCALL, SYSENTER)  # of software: INT n, and these two
    # TF of EFLAGS, which are behind the general registers and RIP; #DB
    step = SingleStep(1, word(first, bits, 17 * 8), 0x100)
    return Guest(
        cpu=Cpu(arch=unicorn.UC_ARCH_X86, mode=mode, setup=set_up),
        registers=RegisterFile(
            constants=const,
            prefix="X86",
            names=registers,
            hidden=segments,
            moving=frozenset({"mxcsr"}),
            system=_system(wide),
        ),
        breakpoint=Breakpoint(channel=INTR, number=3, bias=1),
        pc=Pc(plain=True),
        blocks=Blocks(
            served_in_place=True, repetitions_reported=True, compares=Compares.COMPARISONS
        ),
        interrupts=Interrupts(bias=dict.fromkeys(interrupts, 2), served=served, step=step),
        faults=Faults(
            arithmetic=frozenset({0, 16, 19}),
            undefined=frozenset({6}),
            breakpoints=frozenset({1, 3}),
            hooked_flags=hooked,
        ),
        calls=SystemCalls(
            linux=SYSCALL if wide else 0x80, skip=dict.fromkeys(interrupts, 0), unreported=calls
        ),
        memory=Mapped(address_bits=52 if wide else 0, silenced=Silenced(0x568, itself)),
        contexts=Contexts(furnish=None if wide else flat_segments),
    )


GUESTS = {
    "x86_64": _guest(unicorn.UC_MODE_64, {"rflags": "EFLAGS"}),
    "i386": _guest(unicorn.UC_MODE_32, {}),
}
